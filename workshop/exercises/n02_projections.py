"""Notebook 02: queries, keys and values."""

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, drawn, numbers

# ---------------------------------------------------------------- project_qkv

project_qkv = Exercise(
    reference.project_qkv,
    notebook="02",
    level=1,
    minutes=5,
    task="Give every word of a sentence its query, key and value, by the three matrices. X may be "
    "one sentence, (T, D): T words of D features each; or a batch of B sentences, (B, T, D). "
    "Queries and keys come out d_k numbers wide, values d_v, which may be more or fewer.",
    hints=(
        "The query of one word is its row times W_q. What does a matrix product do with many rows?",
        "A matrix product takes each row by itself: one product for the queries of all words, one "
        "for the keys, one for the values. Hand them back in this order.",
        "`return X @ W_q, X @ W_k, X @ W_v`",
    ),
)
project_qkv.probe(
    "two words and whole numbers",
    np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0]]),
    np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 1.0]]),
    np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0]]),
    np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 3.0, 1.0]]),
)


def project_probe(label: str, *shape: int, d_k: int, d_v: int) -> None:
    """Random tokens of this shape, and matrices of these widths."""
    D = shape[-1]
    project_qkv.probe(label, numbers(*shape), numbers(D, d_k), numbers(D, d_k), numbers(D, d_v))


project_probe("values wider than keys", 5, 4, d_k=2, d_v=9)
project_probe("values narrower than keys", 4, 3, d_k=5, d_v=2)
project_probe("keys as wide as values", 5, 4, d_k=3, d_v=3)
project_probe("a batch of two", 2, 5, 4, d_k=2, d_v=3)
project_probe("as many sentences as words", 3, 3, 4, d_k=2, d_v=5)
project_probe("everything square", 4, 4, d_k=4, d_v=4)
project_probe("a batch, everything square", 3, 3, 3, d_k=3, d_v=3)
project_probe("two axes in front", 2, 3, 4, 6, d_k=2, d_v=5)
project_probe("a single word", 1, 4, d_k=1, d_v=3)

project_qkv.answer("""
    def project_qkv(X, W_q, W_k, W_v):
        Q = X @ W_q
        K = X @ W_k
        V = X @ W_v
        return Q, K, V
""")
project_qkv.answer("""
    def project_qkv(X, W_q, W_k, W_v):
        d_k = W_q.shape[1]
        W = np.concatenate([W_q, W_k, W_v], axis=1)
        QKV = X @ W
        return tuple(np.split(QKV, [d_k, 2 * d_k], axis=-1))
""")
project_qkv.answer("""
    def project_qkv(X, W_q, W_k, W_v):
        QKV = X @ np.hstack([W_q, W_k, W_v])
        Q = QKV[..., : W_q.shape[1]]
        K = QKV[..., W_q.shape[1] : 2 * W_q.shape[1]]
        V = QKV[..., 2 * W_q.shape[1] :]
        return Q, K, V
""")
project_qkv.answer("""
    def project_qkv(X, W_q, W_k, W_v):
        return tuple(np.einsum("...td,dk->...tk", X, W) for W in (W_q, W_k, W_v))
""")
project_qkv.answer("""
    import torch

    def project_qkv(X, W_q, W_k, W_v):
        QKV = X @ torch.cat([W_q, W_k, W_v], dim=1)
        return torch.split(QKV, [W_q.shape[1], W_k.shape[1], W_v.shape[1]], dim=-1)
""")
project_qkv.why(
    "X @ W | W_q @ X, W_k @ X, W_v @ X | X @ W_q, X @ W_k, X @ W_v"
    ' | np.einsum("...td,dk->...tk", X, W)',
    "Words are rows, so weights multiply from the right; a projection is that product alone.",
)
project_qkv.why(
    "X @ W_q | W_q",
    "A query is what a word asks: the word's vector times W_q from the right, nothing more.",
)
project_qkv.why(
    "X @ W_k | W_k",
    "A key is how a word is found: made from X by a matrix of its own, W_k, a row per word.",
)
project_qkv.why(
    "X @ W_v | W_v",
    "A value is what a word passes on: made from X by W_v, as wide as W_v makes it.",
)
project_qkv.why(
    "(Q, K, V) | return Q, K, V | (W_q, W_k, W_v) | Q, K, V",
    "The three roles go in this order: queries, keys, values, each with a row for every word.",
)
project_qkv.why(
    "np.concatenate([W_q, W_k, W_v], axis=1) | np.hstack([W_q, W_k, W_v]) | [W_q, W_k, W_v]"
    " | torch.cat([W_q, W_k, W_v], dim=1) | axis=1 | dim=1",
    "Side by side, each column still makes its own feature: queries first, then keys, then values.",
)
project_qkv.why(
    "[d_k, 2 * d_k] | W_q.shape[1] | QKV[..., 2 * W_q.shape[1] :] | 2 * d_k"
    " | np.split(QKV, [d_k, 2 * d_k], axis=-1) | [W_q.shape[1], W_k.shape[1], W_v.shape[1]]",
    "Queries and keys are d_k wide each; all the rest is the values, however wide they are.",
)
project_qkv.why(
    "axis=-1 | dim=-1 | reshape(3)",
    "The features are the last axis: cut there, a word keeps its own query, key and value.",
)


def side_by_side(X: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """X times the three matrices joined: (…, T, 2·d_k + d_v)."""
    return X @ np.concatenate(weights, axis=1)


@project_qkv.mistake
def keys_with_w_q(X, W_q, W_k, W_v):
    """Queries and keys are identical, both made with W_q, so every match is mutual. What a word
    asks and how it is found differ: K needs its own matrix, W_k."""
    return X @ W_q, X @ W_q, X @ W_v


@project_qkv.mistake
def queries_scaled(X, W_q, W_k, W_v):
    """Q is divided by √d_k already. Scaling belongs to the scores, in notebook 04; a projection is
    the product of words and weights alone."""
    return X @ W_q / np.sqrt(W_q.shape[1]), X @ W_k, X @ W_v


@project_qkv.mistake
def keys_before_queries(X, W_q, W_k, W_v):
    """Q and K are swapped: the keys come first. The order is queries, keys, values, as in
    attention(Q, K, V)."""
    return X @ W_k, X @ W_q, X @ W_v


@project_qkv.mistake
def weights_from_the_left(X, W_q, W_k, W_v):
    """The weights multiply from the left. Words are rows, and each row must meet the columns of a
    matrix, so the order of the product is words times weights, X @ W."""
    return W_q @ X, W_k @ X, W_v @ X


@project_qkv.mistake
def keys_transposed(X, W_q, W_k, W_v):
    """K is transposed already, (…, d_k, T). Each word has its key as a row, as queries and values
    are; the transpose belongs to the scores, in notebook 03."""
    return X @ W_q, np.swapaxes(X @ W_k, -1, -2), X @ W_v


@project_qkv.mistake
def each_from_the_last(X, W_q, W_k, W_v):
    """The products are chained: K is made from Q, and V from K, as where X is overwritten. All
    three are made from X, the word vectors themselves."""
    return X @ W_q, X @ W_q @ W_k, X @ W_q @ W_k @ W_v


@project_qkv.mistake
def thirds_rounded_down(X, W_q, W_k, W_v):
    """The joined product is cut in three parts of equal width. V need not be as wide as Q and K:
    the cuts lie where the queries end and where the keys end."""
    joined = side_by_side(X, W_q, W_k, W_v)
    third = joined.shape[-1] // 3
    return tuple(np.split(joined, [third, 2 * third], axis=-1))


@project_qkv.mistake
def reshaped_to_three(X, W_q, W_k, W_v):
    """A joined product is reshaped to three blocks, which keeps the reading order and so cuts
    across the words. Q, K and V lie side by side in each word: split along the last axis."""
    joined = side_by_side(X, W_q, W_k, W_v)
    return tuple(joined.reshape(3, *X.shape[:-1], W_q.shape[1]))


@project_qkv.mistake
def batch_flattened(X, W_q, W_k, W_v):
    """For a batch the leading axes are flattened, (B·T, d), and not put back. The shape says which
    word stands in which sentence: keep it, (…, T, d)."""
    X = X.reshape(-1, X.shape[-1])
    return X @ W_q, X @ W_k, X @ W_v


# ---------------------------------------------------------------- joined_qk


def joined_qk(W_q: np.ndarray, W_k: np.ndarray) -> np.ndarray:
    """Join the two matrices of a match in one: (D, d_k) twice → M (D, D).

    x @ M @ y is (x @ W_q) @ (y @ W_k) for any two words, since y @ W_k is W_k.T @ y. Elhage et al.
    (2021) call M the QK circuit of a head.
    """
    return W_q @ W_k.T


joined = Exercise(
    joined_qk,
    notebook="02",
    level=2,
    minutes=8,
    task="A query and a key only ever meet in one number: when word x asks word y, it is "
    "(x @ W_q) @ (y @ W_k). Find the one matrix M, (D, D), that gives the same number without "
    "them: x @ M @ y, for any two words. A start with the pencil: y @ W_k can be written the other "
    "way round, W_k.T @ y.",
    hints=(
        "Put W_k.T @ y into the number, in the place of y @ W_k. What does each bracket begin or "
        "end with?",
        "It is (x @ W_q) @ (W_k.T @ y), and brackets may be moved. What stands between x and y?",
        "`return W_q @ W_k.T`",
    ),
)
joined.probe("whole numbers", np.array([[1.0], [0.0], [2.0]]), np.array([[0.0], [3.0], [1.0]]))
joined.probe("three features, keys of two", numbers(3, 2), numbers(3, 2))
joined.probe("two features, keys of five", numbers(2, 5), numbers(2, 5))
joined.probe("square matrices", numbers(3, 3), numbers(3, 3))


@joined.experiment("queries and keys from one matrix")
def one_matrix_for_both(fn):
    W = drawn(numbers(4, 3), "queries and keys from one matrix")
    return fn(W, W)


@joined.experiment("the table of six words")
def table_of_six_words(fn):
    words, W_q, W_k = drawn((numbers(6, 4), numbers(4, 3), numbers(4, 3)), "six words")
    M = np.asarray(fn(W_q, W_k))
    table = words @ M @ words.T if M.shape == (4, 4) else M
    return {"queries times keys": words @ W_q @ (words @ W_k).T, "words, M, words": table}


joined.answer("""
    def joined_qk(W_q, W_k):
        return W_q @ W_k.T
""")
joined.answer("""
    def joined_qk(W_q, W_k):
        return np.einsum("ik,jk->ij", W_q, W_k)
""")
joined.answer("""
    def joined_qk(W_q, W_k):
        D = len(W_q)
        M = np.zeros((D, D))
        for i in range(D):
            for j in range(D):
                M[i, j] = np.dot(W_q[i], W_k[j])
        return M
""")
joined.answer("""
    def joined_qk(W_q, W_k):
        W_k_T = np.swapaxes(W_k, 0, 1)
        return np.matmul(W_q, W_k_T)
""")
joined.answer("""
    import torch

    def joined_qk(W_q, W_k):
        return torch.matmul(W_q, W_k.transpose(0, 1))
""")
joined.why(
    "W_q @ W_k.T | np.sqrt | np.matmul(W_q, W_k_T) | np.dot(W_q[i], W_k[j])",
    "Between x and y stand W_q and W_k.T, in this order and nothing else: a row is what asks.",
)
joined.why(
    "W_k.T | np.swapaxes(W_k, 0, 1) | W_k.transpose(0, 1)",
    "y @ W_k is W_k.T @ y: this turns the keys' matrix over, and no other.",
)
joined.why(
    "M[i, j] | range(D) | np.zeros((D, D)) | W_q * W_k",
    "Every feature asks every feature: M is (D, D), each entry summed over the d_k columns.",
)
joined.why(
    "W_k | W_q @ W_q.T", "A match needs both sides: what one word asks, and how the other is found."
)


@joined.mistake
def inner_axis_is_the_features(W_q, W_k):
    """The wrong matrix is transposed: this is (d_k, d_k), which fits between no word vectors. M
    is (D, D), one row and one column for each feature: transpose the second matrix."""
    return W_q.T @ W_k


@joined.mistake
def keys_reshaped(W_q, W_k):
    """The matrix of the keys is reshaped, not transposed: reshape keeps the reading order, so rows
    are mixed up. Rows must become columns."""
    return W_q @ W_k.reshape(W_k.shape[::-1])


@joined.mistake
def diagonal_only(W_q, W_k):
    """Only the diagonal is filled: row i meets row i alone. Every row of W_q meets every row of
    W_k, for any feature of one word may ask for any feature of the other."""
    return np.diag((W_q * W_k).sum(axis=1))


# ---------------------------------------------------------------- linear


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Do what nn.Linear does: (…, d_in), (d_out, d_in), (d_out,) → (…, d_out)."""
    return x @ weight.T + bias


layer = Exercise(
    linear,
    notebook="02",
    level=1,
    minutes=5,
    task="Do in NumPy what `nn.Linear` does. It stores its matrix transposed, with one row for "
    "each feature that comes out, and adds the bias to every word.",
    hints=(
        "Which axis of weight has to meet the last axis of x?",
        "Transpose the weight, multiply from the right, add the bias: it is added to every row.",
        "`return x @ weight.T + bias`",
    ),
)
layer.probe(
    "one word and whole numbers",
    np.array([[1.0, 2.0]]),
    np.array([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]]),
    np.array([10.0, 20.0, 30.0]),
)
layer.probe("four words", numbers(4, 3), numbers(2, 3), numbers(2))
layer.probe("a square weight", numbers(4, 3), numbers(3, 3), numbers(3))
layer.probe("as many words as output features", numbers(4, 3), numbers(4, 3), numbers(4))
layer.probe("everything square", numbers(3, 3), numbers(3, 3), numbers(3))
layer.probe("a batch of two", numbers(2, 5, 3), numbers(4, 3), numbers(4))
layer.probe("as many sentences as words", numbers(3, 3, 4), numbers(3, 4), numbers(3))
layer.probe("a single vector", numbers(3), numbers(2, 3), numbers(2))

layer.answer("""
    def linear(x, weight, bias):
        return x @ weight.T + bias
""")
layer.answer("""
    def linear(x, weight, bias):
        out = np.einsum("...i,oi->...o", x, weight)
        return out + bias
""")
layer.answer("""
    def linear(x, weight, bias):
        out = np.zeros((*x.shape[:-1], len(weight)))
        for o in range(len(weight)):
            out[..., o] = (x * weight[o]).sum(axis=-1) + bias[o]
        return out
""")
layer.answer("""
    def linear(x, weight, bias):
        W = np.transpose(weight)
        return np.matmul(x, W) + bias
""")
layer.answer("""
    import torch.nn.functional as F

    def linear(x, weight, bias):
        return F.linear(x, weight, bias)
""")
layer.why(
    "x @ weight.T + bias | np.maximum",
    "The product, then the bias, the same to every word; nothing else, the layer is linear.",
)
layer.why(
    "weight.T | np.transpose(weight) | weight[o]",
    "nn.Linear stores a row for each feature that comes out; turned over, rows meet what comes in.",
)
layer.why(
    "x @ weight.T | np.matmul(x, W) | weight @ x | (x * weight[o]).sum(axis=-1)"
    ' | np.einsum("...i,oi->...o", x, weight)',
    "Words are rows: each row meets the weights from the left, and axes in front stay.",
)
layer.why(
    "+ bias | bias | out + bias | x += bias | bias[o]",
    "The bias is added after the product, the same to every word: one number per output feature.",
)


@layer.mistake
def not_transposed(x, weight, bias):
    """The weight is not transposed. nn.Linear stores a row for each feature that comes out, (d_out,
    d_in): turned over, its rows are what the words' features meet."""
    return x @ weight + bias


@layer.mistake
def words_in_columns(x, weight, bias):
    """The result is transposed, (…, d_out, T), as for words in columns. Each word is a row, on the
    way in and on the way out: the words stand on the left of the product."""
    out = x @ weight.T + bias
    return np.swapaxes(out, -1, -2) if out.ndim > 1 else out


@layer.mistake
def weight_reshaped(x, weight, bias):
    """The weight is reshaped, not transposed: reshape keeps the reading order, so the numbers of
    different features are mixed up. Rows must become columns."""
    return x @ weight.reshape(weight.shape[::-1]) + bias
