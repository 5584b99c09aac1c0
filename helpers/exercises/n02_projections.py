"""Notebook 02: queries, keys and values."""

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(2)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


# ---------------------------------------------------------------- project_qkv

project_qkv = Exercise(
    reference.project_qkv,
    notebook="02",
    level=2,
    minutes=10,
    task="Make queries, keys and values with a single matrix product: set the three matrices side "
    "by side, multiply X by the wide matrix, and split the result. The keys may be narrower "
    "than the values, and X may be one sentence or a batch.",
    hints=(
        "How wide is the matrix that holds W_q, W_k and W_v side by side, and at which two columns "
        "do you cut the product?",
        "Join the matrices with np.concatenate along axis 1, multiply, then np.split along the "
        "last axis, at d_k and at 2 · d_k.",
        "`d_k = W_q.shape[1]`, then `QKV = X @ np.concatenate([W_q, W_k, W_v], axis=1)`, then "
        "`return tuple(np.split(QKV, [d_k, 2 * d_k], axis=-1))`",
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
    project_qkv.probe(label, normal(*shape), normal(D, d_k), normal(D, d_k), normal(D, d_v))


project_probe("values wider than keys", 5, 4, d_k=2, d_v=5)
project_probe("values narrower than keys", 4, 3, d_k=5, d_v=2)
project_probe("keys as wide as values", 5, 4, d_k=3, d_v=3)
project_probe("a batch of two", 2, 5, 4, d_k=2, d_v=3)
project_probe("as many sentences as words", 3, 3, 4, d_k=2, d_v=5)
project_probe("everything square", 4, 4, d_k=4, d_v=4)
project_probe("a batch, everything square", 3, 3, 3, d_k=3, d_v=3)
project_probe("two axes in front", 2, 3, 4, 6, d_k=2, d_v=5)
project_probe("a single word", 1, 4, d_k=1, d_v=3)


def side_by_side(X: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """X times the three matrices joined: (…, T, 2·d_k + d_v)."""
    return X @ np.concatenate(weights, axis=1)


@project_qkv.mistake
def values_with_w_k(X, W_q, W_k, W_v):
    """V is computed with W_k. V needs W_v: check the last of the three lines."""
    return X @ W_q, X @ W_k, X @ W_k


@project_qkv.mistake
def values_with_w_q(X, W_q, W_k, W_v):
    """V is computed with W_q. V needs W_v: check the last of the three lines."""
    return X @ W_q, X @ W_k, X @ W_q


@project_qkv.mistake
def keys_with_w_q(X, W_q, W_k, W_v):
    """K is computed with W_q, so Q and K are identical and every match is mutual. K needs its own
    matrix, W_k."""
    return X @ W_q, X @ W_q, X @ W_v


@project_qkv.mistake
def keys_with_w_v(X, W_q, W_k, W_v):
    """K is computed with W_v, so K and V are identical. K needs its own matrix, W_k."""
    return X @ W_q, X @ W_v, X @ W_v


@project_qkv.mistake
def queries_with_w_k(X, W_q, W_k, W_v):
    """Q is computed with W_k, so Q and K are identical. Q needs its own matrix, W_q."""
    return X @ W_k, X @ W_k, X @ W_v


@project_qkv.mistake
def queries_with_w_v(X, W_q, W_k, W_v):
    """Q is computed with W_v, so Q and V are identical. Q needs its own matrix, W_q."""
    return X @ W_v, X @ W_k, X @ W_v


@project_qkv.mistake
def all_with_w_q(X, W_q, W_k, W_v):
    """Q, K and V are identical: all three are computed with W_q. K needs W_k, and V needs W_v."""
    return X @ W_q, X @ W_q, X @ W_q


@project_qkv.mistake
def all_with_w_k(X, W_q, W_k, W_v):
    """Q, K and V are identical: all three are computed with W_k. Q needs W_q, and V needs W_v."""
    return X @ W_k, X @ W_k, X @ W_k


@project_qkv.mistake
def all_with_w_v(X, W_q, W_k, W_v):
    """Q, K and V are identical: all three are computed with W_v, the last one. Q needs W_q, and K
    needs W_k."""
    return X @ W_v, X @ W_v, X @ W_v


@project_qkv.mistake
def keys_before_queries(X, W_q, W_k, W_v):
    """Q and K are swapped: the keys are returned first. The order is Q, K, V."""
    return X @ W_k, X @ W_q, X @ W_v


@project_qkv.mistake
def values_before_keys(X, W_q, W_k, W_v):
    """K and V are swapped: the values are returned before the keys. The order is Q, K, V."""
    return X @ W_q, X @ W_v, X @ W_k


@project_qkv.mistake
def queries_and_values_swapped(X, W_q, W_k, W_v):
    """Q and V are swapped: the values are returned first. The order is Q, K, V."""
    return X @ W_v, X @ W_k, X @ W_q


@project_qkv.mistake
def order_k_v_q(X, W_q, W_k, W_v):
    """The results are returned in the order K, V, Q, swapped around. The order is Q, K, V."""
    return X @ W_k, X @ W_v, X @ W_q


@project_qkv.mistake
def order_v_q_k(X, W_q, W_k, W_v):
    """The results are returned in the order V, Q, K, swapped around. The order is Q, K, V."""
    return X @ W_v, X @ W_q, X @ W_k


@project_qkv.mistake
def weights_from_the_left(X, W_q, W_k, W_v):
    """The weights multiply from the left, W @ X. Words are rows, so the order of the product is X @
    W: weights multiply from the right."""
    return W_q @ X, W_k @ X, W_v @ X


@project_qkv.mistake
def weights_from_the_left_transposed(X, W_q, W_k, W_v):
    """W.T @ X multiplies from the left, as for words in columns. Here words are rows: the order of
    the product is X @ W, nothing transposed."""
    return W_q.T @ X, W_k.T @ X, W_v.T @ X


@project_qkv.mistake
def weights_transposed(X, W_q, W_k, W_v):
    """The weights are transposed: X @ W.T, as nn.Linear (F.linear) stores them. W has shape (D, d)
    here: X @ W, without .T."""
    return X @ W_q.T, X @ W_k.T, X @ W_v.T


@project_qkv.mistake
def tokens_transposed(X, W_q, W_k, W_v):
    """X is transposed before the product. Words are rows already: X @ W, without .T."""
    X = np.swapaxes(X, -1, -2)
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def results_transposed(X, W_q, W_k, W_v):
    """The results are transposed, (…, d, T). Each word is a row: (…, T, d)."""
    return tuple(np.swapaxes(X @ W, -1, -2) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def weights_times_tokens_transposed(X, W_q, W_k, W_v):
    """This is W.T @ X.T, the transpose of X @ W: words stand in columns. Transpose the results
    back, or use X @ W."""
    return tuple((X @ W).T for W in (W_q, W_k, W_v))


@project_qkv.mistake
def keys_transposed(X, W_q, W_k, W_v):
    """K is transposed already, (…, d_k, T). Each word is a row of K; the transpose belongs to the
    scores, in notebook 03."""
    return X @ W_q, np.swapaxes(X @ W_k, -1, -2), X @ W_v


@project_qkv.mistake
def place_by_place(X, W_q, W_k, W_v):
    """The product is place by place (*), not a matrix product. Use @: each row of X times the
    columns of W."""
    return X * W_q, X * W_k, X * W_v


@project_qkv.mistake
def reshaped_to_three(X, W_q, W_k, W_v):
    """One joined product is reshaped to (3, …), which cuts across the tokens: rows hold pieces of
    Q, K and V of one token. Split along the last axis instead: np.split(…, axis=-1)."""
    joined = side_by_side(X, W_q, W_k, W_v)
    return tuple(joined.reshape(3, *X.shape[:-1], W_q.shape[1]))


@project_qkv.mistake
def batch_reshaped_to_three(X, W_q, W_k, W_v):
    """One joined product is reshaped to (…, 3, T, d) with the 3 before the tokens, which cuts
    across them. Split along the last axis instead: np.split(…, axis=-1)."""
    joined = side_by_side(X, W_q, W_k, W_v)
    joined = joined.reshape(*X.shape[:-2], 3, X.shape[-2], W_q.shape[1])
    return tuple(np.moveaxis(joined, -3, 0))


@project_qkv.mistake
def every_third_column(X, W_q, W_k, W_v):
    """Every third column of the joined product is taken (0::3, or a reshape to (…, d, 3)). Q, K and
    V stand side by side: split the last axis in three blocks."""
    joined = side_by_side(X, W_q, W_k, W_v)
    return joined[..., 0::3], joined[..., 1::3], joined[..., 2::3]


@project_qkv.mistake
def three_equal_parts(X, W_q, W_k, W_v):
    """The joined product is split into three equal parts. V need not be as wide as Q and K: split
    the last axis at d_k and 2 · d_k."""
    return tuple(np.split(side_by_side(X, W_q, W_k, W_v), 3, axis=-1))


@project_qkv.mistake
def three_nearly_equal_parts(X, W_q, W_k, W_v):
    """The joined product is split into three parts of nearly equal width (np.array_split, chunk). V
    need not be as wide as Q and K: split the last axis at d_k and 2 · d_k."""
    return tuple(np.array_split(side_by_side(X, W_q, W_k, W_v), 3, axis=-1))


@project_qkv.mistake
def chunks_of_equal_width(X, W_q, W_k, W_v):
    """The joined product is cut into chunks of equal width (chunk), a third each, rounded up. V
    need not be as wide as Q and K: split the last axis at d_k and 2 · d_k."""
    joined = side_by_side(X, W_q, W_k, W_v)
    third = -(-joined.shape[-1] // 3)
    return tuple(np.split(joined, [third, 2 * third], axis=-1))


@project_qkv.mistake
def thirds_rounded_down(X, W_q, W_k, W_v):
    """The joined product is cut into three parts of equal width, a third each, and V gets what is
    left over. V need not be as wide as Q and K: split the last axis at d_k and 2 · d_k."""
    joined = side_by_side(X, W_q, W_k, W_v)
    third = joined.shape[-1] // 3
    return tuple(np.split(joined, [third, 2 * third], axis=-1))


@project_qkv.mistake
def equal_widths_only(X, W_q, W_k, W_v):
    """It works only if Q, K and V have the same width, as a reshape to (…, 3, d) needs. V may be
    wider or narrower: split the last axis at d_k and 2 · d_k."""
    joined = side_by_side(X, W_q, W_k, W_v)
    return tuple(np.moveaxis(joined.reshape(*X.shape[:-1], 3, W_q.shape[1]), -2, 0))


@project_qkv.mistake
def cut_at_the_width_of_the_values(X, W_q, W_k, W_v):
    """The joined product is cut at d_v and 2 · d_v, the width of the values. Q and K have the width
    d_k: cut at d_k and 2 · d_k."""
    d = W_v.shape[1]
    return tuple(np.split(side_by_side(X, W_q, W_k, W_v), [d, 2 * d], axis=-1))


@project_qkv.mistake
def cut_at_the_width_of_x(X, W_q, W_k, W_v):
    """The joined product is cut at D and 2 · D, the width of X. Q and K have the width of their
    matrix, W_q.shape[1]: cut at d_k and 2 · d_k."""
    d = X.shape[-1]
    return tuple(np.split(side_by_side(X, W_q, W_k, W_v), [d, 2 * d], axis=-1))


@project_qkv.mistake
def joined_in_the_order_q_v_k(X, W_q, W_k, W_v):
    """The matrices are joined in the order W_q, W_v, W_k, but split as Q, K, V. Join them in the
    order in which they are split: K and V are swapped."""
    d = W_q.shape[1]
    return tuple(np.split(side_by_side(X, W_q, W_v, W_k), [d, 2 * d], axis=-1))


@project_qkv.mistake
def joined_in_the_order_v_k_q(X, W_q, W_k, W_v):
    """The matrices are joined in the order W_v, W_k, W_q, but split as Q, K, V. Join them in the
    order in which they are split: Q and V are swapped."""
    d = W_q.shape[1]
    return tuple(np.split(side_by_side(X, W_v, W_k, W_q), [d, 2 * d], axis=-1))


@project_qkv.mistake
def same_width_for_all(X, W_q, W_k, W_v):
    """V is cut to the width of the keys: its slice ends at 3 · d_k. V has the width of W_v: take
    all that is left after 2 · d_k."""
    joined, d = side_by_side(X, W_q, W_k, W_v), W_q.shape[1]
    return joined[..., :d], joined[..., d : 2 * d], joined[..., 2 * d : 3 * d]


@project_qkv.mistake
def cut_at_widths_instead_of_places(X, W_q, W_k, W_v):
    """The joined product is cut at the widths, d_k and d_v. np.split wants the places of the cuts,
    counted from the start: d_k and 2 · d_k."""
    cuts = [W_q.shape[1], W_v.shape[1]]
    return tuple(np.split(side_by_side(X, W_q, W_k, W_v), cuts, axis=-1))


@project_qkv.mistake
def cut_once_with_overlap(X, W_q, W_k, W_v):
    """K reaches into V: the slice of the keys has no end. It ends at 2 · d_k, where the values
    begin."""
    joined, d = side_by_side(X, W_q, W_k, W_v), W_q.shape[1]
    return joined[..., :d], joined[..., d:], joined[..., 2 * d :]


@project_qkv.mistake
def split_along_the_tokens(X, W_q, W_k, W_v):
    """The joined product is split along the tokens, axis=-2. Split the last axis, the features:
    axis=-1."""
    return tuple(np.array_split(side_by_side(X, W_q, W_k, W_v), 3, axis=-2))


@project_qkv.mistake
def split_along_the_first_axis(X, W_q, W_k, W_v):
    """The joined product is split along the first axis, axis=0. Split the last axis, the features:
    axis=-1."""
    return tuple(np.array_split(side_by_side(X, W_q, W_k, W_v), 3, axis=0))


@project_qkv.mistake
def split_along_the_second_axis(X, W_q, W_k, W_v):
    """The joined product is split along axis=1, which is the features for a single sentence only;
    in a batch it is the tokens. Count from the end: axis=-1."""
    d = W_q.shape[1]
    return tuple(np.split(side_by_side(X, W_q, W_k, W_v), [d, 2 * d], axis=1))


@project_qkv.mistake
def not_split(X, W_q, W_k, W_v):
    """It returns one joined array. Split it along the last axis and return three: Q, K, V."""
    return side_by_side(X, W_q, W_k, W_v)


@project_qkv.mistake
def stacked_in_one_array(X, W_q, W_k, W_v):
    """Q, K and V are stacked in one array, which works only if all have the same width. Return
    three arrays: Q, K, V."""
    return np.stack([X @ W_q, X @ W_k, X @ W_v])


@project_qkv.mistake
def by_name(X, W_q, W_k, W_v):
    """It returns a dictionary. Return three arrays in the order Q, K, V."""
    return {"Q": X @ W_q, "K": X @ W_k, "V": X @ W_v}


@project_qkv.mistake
def queries_only(X, W_q, W_k, W_v):
    """Only Q is returned. Return three arrays: Q, K, V."""
    return X @ W_q


@project_qkv.mistake
def queries_and_keys_only(X, W_q, W_k, W_v):
    """Only Q and K are returned, V is missing. Return three arrays: Q, K, V."""
    return X @ W_q, X @ W_k


@project_qkv.mistake
def batch_flattened(X, W_q, W_k, W_v):
    """For a batch the results are (B·T, d): the leading axes were flattened and not put back. Keep
    them, (…, T, d): reshape at the end."""
    X = X.reshape(-1, X.shape[-1])
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def first_sentence_only(X, W_q, W_k, W_v):
    """Only the first sentence of a batch is projected. Keep all axes in front, (…, T, d)."""
    X = X[0] if X.ndim > 2 else X
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def single_sentences_only(X, W_q, W_k, W_v):
    """It works for a single sentence only and fails for a batch. Any axes may stand in front: X @ W
    keeps them, and einsum does with "..."."""
    return tuple(np.einsum("td,dk->tk", X, W) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def batches_only(X, W_q, W_k, W_v):
    """It works for a batch (B, T, D) only and fails for a single sentence. Any axes may stand in
    front, or none: X @ W keeps them."""
    return tuple(np.einsum("btd,dk->btk", X, W) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def sentences_added_up(X, W_q, W_k, W_v):
    """The sentences of a batch are added up: the batch axis is lost. Each sentence has its own
    queries, keys and values."""
    X = X.reshape(-1, *X.shape[-2:]).sum(axis=0)
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def words_averaged(X, W_q, W_k, W_v):
    """The words are averaged into one vector: the token axis is lost. Every word has its own query,
    key and value, (…, T, d)."""
    X = X.mean(axis=-2)
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def words_added_up(X, W_q, W_k, W_v):
    """The words are added up into one vector: the token axis is lost. Every word has its own query,
    key and value, (…, T, d)."""
    X = X.sum(axis=-2)
    return X @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def last_word_only(X, W_q, W_k, W_v):
    """Only the last word is projected: the token axis is lost. Every word has its own query, key
    and value, (…, T, d)."""
    return X[..., -1, :] @ W_q, X[..., -1, :] @ W_k, X[..., -1, :] @ W_v


@project_qkv.mistake
def first_word_only(X, W_q, W_k, W_v):
    """Only the first word is projected: the token axis is lost. Every word has its own query, key
    and value, (…, T, d)."""
    return X[..., 0, :] @ W_q, X[..., 0, :] @ W_k, X[..., 0, :] @ W_v


@project_qkv.mistake
def last_query_only(X, W_q, W_k, W_v):
    """Q holds the last word only. Every word asks: Q has T rows, as K and V have."""
    return X[..., -1:, :] @ W_q, X @ W_k, X @ W_v


@project_qkv.mistake
def queries_not_projected(X, W_q, W_k, W_v):
    """Q is X itself: the product with W_q is missing."""
    return X.copy(), X @ W_k, X @ W_v


@project_qkv.mistake
def keys_not_projected(X, W_q, W_k, W_v):
    """K is X itself: the product with W_k is missing."""
    return X @ W_q, X.copy(), X @ W_v


@project_qkv.mistake
def values_not_projected(X, W_q, W_k, W_v):
    """V is X itself: the product with W_v is missing."""
    return X @ W_q, X @ W_k, X.copy()


@project_qkv.mistake
def nothing_projected(X, W_q, W_k, W_v):
    """Q, K and V are X itself: the weights are ignored. Multiply X by W_q, W_k and W_v."""
    return X.copy(), X.copy(), X.copy()


@project_qkv.mistake
def weights_returned(X, W_q, W_k, W_v):
    """The weights themselves are returned. Multiply X by each of them: X @ W."""
    return W_q.copy(), W_k.copy(), W_v.copy()


@project_qkv.mistake
def values_are_the_queries_times_w_v(X, W_q, W_k, W_v):
    """V is made from Q, as Q @ W_v: the products are chained. All three are made from X."""
    return X @ W_q, X @ W_k, X @ W_q @ W_v


@project_qkv.mistake
def keys_from_queries(X, W_q, W_k, W_v):
    """K is made from Q, as Q @ W_k: the products are chained. All three are made from X."""
    return X @ W_q, X @ W_q @ W_k, X @ W_v


@project_qkv.mistake
def values_from_keys(X, W_q, W_k, W_v):
    """V is made from K, as K @ W_v: the products are chained. All three are made from X."""
    return X @ W_q, X @ W_k, X @ W_k @ W_v


@project_qkv.mistake
def each_from_the_last(X, W_q, W_k, W_v):
    """K is made from Q and V from K: X is overwritten, or the products are chained. All three are
    made from X."""
    return X @ W_q, X @ W_q @ W_k, X @ W_q @ W_k @ W_v


@project_qkv.mistake
def queries_scaled(X, W_q, W_k, W_v):
    """Q is divided by √d_k already. Scaling belongs to the scores (notebook 04): here Q = X @
    W_q."""
    return X @ W_q / np.sqrt(W_q.shape[1]), X @ W_k, X @ W_v


@project_qkv.mistake
def all_scaled(X, W_q, W_k, W_v):
    """Q, K and V are divided by the root of their width. Scaling belongs to the scores (notebook
    04): here only X @ W."""
    return tuple(X @ W / np.sqrt(W.shape[1]) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def negative_numbers_lost(X, W_q, W_k, W_v):
    """Negative numbers become 0, as by a ReLU. A projection is a product and nothing else: X @
    W."""
    return tuple(np.maximum(X @ W, 0) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def squeezed_by_tanh(X, W_q, W_k, W_v):
    """tanh is taken of the results. A projection is a product and nothing else: X @ W."""
    return tuple(np.tanh(X @ W) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def turned_into_shares(X, W_q, W_k, W_v):
    """A softmax is taken of the results, so that rows sum to 1. A projection is a product and
    nothing else: X @ W."""
    e = [np.exp(X @ W) for W in (W_q, W_k, W_v)]
    return tuple(x / x.sum(axis=-1, keepdims=True) for x in e)


@project_qkv.mistake
def a_number_added(X, W_q, W_k, W_v):
    """1 is added to the results, as by a bias. A projection here has no bias: X @ W."""
    return X @ W_q + 1, X @ W_k + 1, X @ W_v + 1


@project_qkv.mistake
def word_vectors_added(X, W_q, W_k, W_v):
    """X is added to the results. Q, K and V are the products alone: X @ W."""
    return X + X @ W_q, X + X @ W_k, X + X @ W_v


@project_qkv.mistake
def cut_to_whole_numbers(X, W_q, W_k, W_v):
    """The numbers are cut to whole numbers, as in an array of dtype int. They are floats."""
    return tuple(np.trunc(X @ W) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def stored_as_whole_numbers(X, W_q, W_k, W_v):
    """The results are arrays of whole numbers (dtype int), which cuts the decimals off. They are
    floats."""
    return tuple((X @ W).astype(int) for W in (W_q, W_k, W_v))


@project_qkv.mistake
def word_vectors_centred(X, W_q, W_k, W_v):
    """The mean of each word vector is subtracted before the products. Project X as it is: X @ W."""
    centred = X - X.mean(axis=-1, keepdims=True)
    return centred @ W_q, centred @ W_k, centred @ W_v


@project_qkv.mistake
def word_vectors_normalised(X, W_q, W_k, W_v):
    """The word vectors are normalised before the products, as by LayerNorm (notebook 10). Project X
    as it is: X @ W."""
    x = (X - X.mean(axis=-1, keepdims=True)) / X.std(axis=-1, keepdims=True)
    return x @ W_q, x @ W_k, x @ W_v


@project_qkv.mistake
def word_vectors_made_unit_length(X, W_q, W_k, W_v):
    """The word vectors are divided by their length (norm) before the products. Project X as it is:
    X @ W."""
    x = X / np.linalg.norm(X, axis=-1, keepdims=True)
    return x @ W_q, x @ W_k, x @ W_v


@project_qkv.mistake
def made_unit_length(X, W_q, W_k, W_v):
    """Every row is divided by its length (norm). Return the products as they are: X @ W."""
    results = (X @ W_q, X @ W_k, X @ W_v)
    return tuple(x / np.linalg.norm(x, axis=-1, keepdims=True) for x in results)


def mixed_by_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The whole of attention, which comes only in notebook 05."""
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ V


@project_qkv.mistake
def values_mixed(X, W_q, W_k, W_v):
    """V is mixed by attention weights already, so it depends on Q and K. That is notebook 05: here
    V = X @ W_v, each word on its own."""
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    return Q, K, mixed_by_attention(Q, K, V)


@project_qkv.mistake
def values_mixed_by_scores(X, W_q, W_k, W_v):
    """V is mixed by the scores Q Kᵀ already, so it depends on Q and K. That is a later step: here
    V = X @ W_v, each word on its own."""
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    return Q, K, Q @ np.swapaxes(K, -1, -2) @ V


@project_qkv.mistake
def values_mixed_by_keys(X, W_q, W_k, W_v):
    """V depends on K: the words are mixed by the products of the keys with each other, K Kᵀ. V is
    made from X alone: V = X @ W_v, each word on its own."""
    K, V = X @ W_k, X @ W_v
    return X @ W_q, K, K @ np.swapaxes(K, -1, -2) @ V


@project_qkv.mistake
def attention_returned(X, W_q, W_k, W_v):
    """It returns the result of attention, one array. That is notebook 05: return the three
    projections Q, K, V themselves."""
    return mixed_by_attention(X @ W_q, X @ W_k, X @ W_v)


@project_qkv.mistake
def queries_turned_into_shares(X, W_q, W_k, W_v):
    """A softmax is taken of Q, so that its rows sum to 1. The softmax belongs to the scores
    (notebook 05): here Q = X @ W_q."""
    e = np.exp(X @ W_q)
    return e / e.sum(axis=-1, keepdims=True), X @ W_k, X @ W_v


@project_qkv.mistake
def queries_times_keys(X, W_q, W_k, W_v):
    """The matches Q Kᵀ are returned. That is notebook 03: return Q, K and V themselves."""
    return (X @ W_q) @ np.swapaxes(X @ W_k, -1, -2)


# ---------------------------------------------------------------- joined_qk


def joined_qk(W_q: np.ndarray, W_k: np.ndarray) -> np.ndarray:
    """Join the two matrices of a match in one: (D, d_k) twice → M (D, D).

    X M Xᵀ is Q Kᵀ for every X, since X W_q (X W_k)ᵀ = X (W_q W_kᵀ) Xᵀ. Elhage et al. (2021) call
    M the QK circuit of a head.
    """
    return W_q @ W_k.T


joined = Exercise(
    joined_qk,
    notebook="02",
    level=2,
    minutes=8,
    task="Queries and keys only ever meet in the table Q Kᵀ. Find the one matrix M, of shape (D, "
    "D), that makes the same table from the word vectors themselves: X M Xᵀ = Q Kᵀ for every "
    "X.",
    hints=(
        "Write Q and K as products with X. What does the transpose do to a product of two?",
        "Q Kᵀ = (X W_q)(X W_k)ᵀ, and (X W_k)ᵀ = W_kᵀ Xᵀ. What stands between X and Xᵀ?",
        "`return W_q @ W_k.T`",
    ),
)
joined.probe("whole numbers", np.array([[1.0], [0.0], [2.0]]), np.array([[0.0], [3.0], [1.0]]))
joined.probe("three features, keys of two", normal(3, 2), normal(3, 2))
joined.probe("two features, keys of five", normal(2, 5), normal(2, 5))
joined.probe("square matrices", normal(3, 3), normal(3, 3))
joined.probe("queries and keys from one matrix", *[normal(4, 3)] * 2)


six_words, six_W_q, six_W_k = normal(6, 4), normal(4, 3), normal(4, 3)


@joined.experiment("the table of six words")
def table_of_six_words(fn):
    M = np.asarray(fn(six_W_q, six_W_k))
    table = six_words @ M @ six_words.T if M.shape == (4, 4) else M
    return {"Q Kᵀ": six_words @ six_W_q @ (six_words @ six_W_k).T, "X M Xᵀ": table}


@joined.mistake
def keys_in_front(W_q, W_k):
    """The order is swapped: W_k W_qᵀ is the transpose of M, and X M Xᵀ becomes K Qᵀ. W_q stands
    first: W_q @ W_k.T."""
    return W_k @ W_q.T


@joined.mistake
def inner_axis_is_the_features(W_q, W_k):
    """W_qᵀ W_k has shape (d_k, d_k): the wrong matrix is transposed. M is (D, D): transpose W_k,
    the second one."""
    return W_q.T @ W_k


@joined.mistake
def other_inner_product(W_q, W_k):
    """W_kᵀ W_q has shape (d_k, d_k): order and transpose are swapped. M is (D, D): W_q @ W_k.T."""
    return W_k.T @ W_q


@joined.mistake
def nothing_transposed(W_q, W_k):
    """Nothing is transposed, so that it runs for square matrices only. W_k needs its transpose:
    W_k.T."""
    return W_q @ W_k


@joined.mistake
def both_transposed(W_q, W_k):
    """Both matrices are transposed, so that it runs for square ones only. Only W_k is: W_q @
    W_k.T."""
    return W_q.T @ W_k.T


@joined.mistake
def keys_reshaped(W_q, W_k):
    """W_k is reshaped to (d_k, D), which mixes its numbers up. Transpose it: W_k.T."""
    return W_q @ W_k.reshape(W_k.shape[::-1])


@joined.mistake
def numbers_multiplied_one_by_one(W_q, W_k):
    """The product is place by place (*), not a matrix product. Use @, with W_k transposed."""
    return W_q * W_k


@joined.mistake
def queries_with_queries(W_q, W_k):
    """W_q is used twice. The second matrix is W_k: W_q @ W_k.T."""
    return W_q @ W_q.T


@joined.mistake
def keys_with_keys(W_q, W_k):
    """W_k is used twice. The first matrix is W_q: W_q @ W_k.T."""
    return W_k @ W_k.T


@joined.mistake
def scaled(W_q, W_k):
    """M is divided by √d_k. Q Kᵀ is not scaled here (notebook 04 does it): leave the division
    out."""
    return W_q @ W_k.T / np.sqrt(W_q.shape[1])


@joined.mistake
def scaled_fully(W_q, W_k):
    """M is divided by d_k, the mean is taken instead of the sum. The product of matrices adds."""
    return W_q @ W_k.T / W_q.shape[1]


@joined.mistake
def made_symmetric(W_q, W_k):
    """M is made symmetric, the mean of it and its transpose. Then X M Xᵀ is symmetric too, but Q Kᵀ
    is not: W_q @ W_k.T."""
    M = W_q @ W_k.T
    return (M + M.T) / 2


@joined.mistake
def added(W_q, W_k):
    """The matrices are added. A product of products is needed: W_q @ W_k.T."""
    return W_q + W_k


@joined.mistake
def subtracted(W_q, W_k):
    """The sign is wrong: a minus is too much. M = W_q W_kᵀ."""
    return -(W_q @ W_k.T)


@joined.mistake
def set_side_by_side(W_q, W_k):
    """The matrices are set side by side, (D, 2·d_k). Multiply them: W_q @ W_k.T."""
    return np.concatenate([W_q, W_k], axis=1)


@joined.mistake
def inverse_of_the_keys(W_q, W_k):
    """W_k is inverted instead of transposed. (X W_k)ᵀ is W_kᵀ Xᵀ: the transpose, .T."""
    return W_q @ np.linalg.pinv(W_k)


@joined.mistake
def first_column_only(W_q, W_k):
    """Only the first columns of the matrices meet. Sum over all d_k columns: W_q @ W_k.T."""
    return np.outer(W_q[:, 0], W_k[:, 0])


@joined.mistake
def diagonal_only(W_q, W_k):
    """Only the diagonal of M is filled: row i meets row i alone. Every row of W_q meets every row
    of W_k."""
    return np.diag((W_q * W_k).sum(axis=1))


@joined.mistake
def diagonal_as_a_row(W_q, W_k):
    """Row i of W_q meets row i of W_k alone, which gives D numbers. Every row of W_q meets every
    row of W_k: (D, D)."""
    return (W_q * W_k).sum(axis=1)


@joined.mistake
def everything_added_up(W_q, W_k):
    """All products are added up into one number. M is (D, D): sum over the d_k columns only."""
    return (W_q * W_k).sum()


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
layer.probe("four words", normal(4, 3), normal(2, 3), normal(2))
layer.probe("a square weight", normal(4, 3), normal(3, 3), normal(3))
layer.probe("as many words as features come out", normal(4, 3), normal(4, 3), normal(4))
layer.probe("everything square", normal(3, 3), normal(3, 3), normal(3))
layer.probe("a batch of two", normal(2, 5, 3), normal(4, 3), normal(4))
layer.probe("as many sentences as words", normal(3, 3, 4), normal(3, 4), normal(3))
layer.probe("a single vector", normal(3), normal(2, 3), normal(2))


@layer.mistake
def not_transposed(x, weight, bias):
    """The weight is not transposed. nn.Linear stores it as (d_out, d_in): x @ weight.T."""
    return x @ weight + bias


@layer.mistake
def not_transposed_with_bias_first(x, weight, bias):
    """The bias is added to the input, and the weight is not transposed. First x @ weight.T, then
    the bias."""
    return (x + bias) @ weight


@layer.mistake
def bias_added_first(x, weight, bias):
    """The bias is added to x before the product. It belongs after it: x @ weight.T + bias."""
    return (x + bias) @ weight.T


@layer.mistake
def bias_missing(x, weight, bias):
    """The bias is missing. Add it after the product: + bias."""
    return x @ weight.T


@layer.mistake
def bias_and_transpose_missing(x, weight, bias):
    """The bias is missing, and the weight is not transposed: x @ weight.T + bias."""
    return x @ weight


@layer.mistake
def bias_subtracted(x, weight, bias):
    """The bias is subtracted. Add it: + bias."""
    return x @ weight.T - bias


@layer.mistake
def bias_twice(x, weight, bias):
    """The bias is added twice. Add it once, after the product."""
    return x @ weight.T + 2 * bias


@layer.mistake
def bias_multiplied(x, weight, bias):
    """The result is multiplied by the bias. Add it: + bias."""
    return x @ weight.T * bias


@layer.mistake
def bias_per_word(x, weight, bias):
    """The bias is added along the words (bias[:, None]). It has one number for each feature that
    comes out: add it along the last axis, to every row."""
    return x @ weight.T + bias[:, None]


@layer.mistake
def bias_to_the_first_word_only(x, weight, bias):
    """Only the first word gets the bias. Add it to every row."""
    out = x @ weight.T
    if out.ndim == 1:
        return out + bias
    out[..., 0, :] += bias
    return out


@layer.mistake
def bias_added_up(x, weight, bias):
    """The sum (or mean) of the bias is added everywhere. Each feature that comes out has its own
    number: add bias as it is."""
    return x @ weight.T + bias.sum()


@layer.mistake
def weight_first(x, weight, bias):
    """The factors are swapped: weight @ x. Words are rows: x @ weight.T."""
    return weight @ x + bias


@layer.mistake
def words_in_columns(x, weight, bias):
    """The result is transposed, (…, d_out, T): weight @ x.T. Each word is a row: x @ weight.T."""
    out = x @ weight.T + bias
    return np.swapaxes(out, -1, -2) if out.ndim > 1 else out


@layer.mistake
def weight_reshaped(x, weight, bias):
    """The weight is reshaped to (d_in, d_out), which mixes its numbers up. Transpose it:
    weight.T."""
    return x @ weight.reshape(weight.shape[::-1]) + bias


@layer.mistake
def multiplied_place_by_place(x, weight, bias):
    """The product is place by place (*), not a matrix product. Use @ with weight.T."""
    return x * weight + bias


@layer.mistake
def axes_in_front_flattened(x, weight, bias):
    """The axes in front are flattened and not put back. Keep them: (…, d_in) gives (…, d_out)."""
    return x.reshape(-1, x.shape[-1]) @ weight.T + bias


@layer.mistake
def rest_of_the_batch_missing(x, weight, bias):
    """Only the first sentence of a batch is returned. Keep all axes in front."""
    return (x[0] if x.ndim > 2 else x) @ weight.T + bias


@layer.mistake
def relu_added(x, weight, bias):
    """Negative numbers become 0, as by a ReLU. nn.Linear does not do that: the product, then the
    bias."""
    return np.maximum(x @ weight.T + bias, 0)


@layer.mistake
def words_summed(x, weight, bias):
    """The words are added up: the token axis is lost. Every word is projected by itself."""
    return (x.sum(axis=-2) if x.ndim > 1 else x) @ weight.T + bias
