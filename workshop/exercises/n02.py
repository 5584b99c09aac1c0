"""Notebook 02: keys of one's own, queries, keys and values, the layer that makes them."""

import numpy as np

from helpers import attention as course
from helpers.examples import APPLE, APPLE_WORDS
from workshop.exercises.exercise import exercise, numbers


def three(label, shape, d_k, d_v):
    """Words of this shape, and three matrices of these widths."""
    return label, numbers(*shape), *(numbers(shape[-1], width) for width in (d_k, d_k, d_v))


same_card = exercise(
    """
    def same_card():
        return np.array([[1, 0], [0, 1], [0, 0]])
    """,
    hints="""Which feature has *shop*, [0, 1, 3], and *battery*, [0, 1, 0], not?
    Let trade leave nothing on a card. What must food and device leave, if none is empty?""",
    slips="""
    trade-counts: [0, 0]] → [1, 1]]
        Trade is on the card: shop adds three times its row, and battery adds nothing.
    trade-in-place-of-device: [[1, 0], [0, 1], [0, 0]] → [[1, 0], [0, 0], [0, 1]]
        Trade is on the card, and device is not. Shop and battery have their device in common.
    nothing-passes: [[1, 0], [0, 1], [0, 0]] → [[0, 0], [0, 0], [0, 0]]
        Every card is empty, so nobody can be found. Food and device must leave something on it.
    device-left-out: [[1, 0], [0, 1], → [[1, 0], [0, 0],
        Device leaves nothing on the card, and it is all that shop and battery have in common.
    food-left-out: [[1, 0], → [[0, 0],
        Food leaves nothing on the card, so banana's is empty. Give its row a number.
    food-like-device: [[1, 0], [0, 1], → [[0, 1], [0, 1],
        Food and device leave the same on the card: four of banana's are four of laptop's.
    turned: [[1, 0], [0, 1], [0, 0]] → [[1, 0, 0], [0, 1, 0]]
        It is turned over: W_k has a row for each of three features, a column for each of two.
    cards: np.array([[1, 0], [0, 1], [0, 0]]) → np.array([[0, 1], [0, 1], [4, 0], [0, 4]])
        These are cards, one for each word. Asked is the matrix that makes them, three rows of two.
    """,
    story=True,
)  # fmt: skip


@same_card.experiment("shop, battery, banana and laptop")
def cards(fn):
    """What their cards have in common with the chosen matrix, and which of them are empty."""
    W_k = fn()
    if np.shape(W_k) != (3, 2):
        return None if W_k is None else {"its shape": str(np.shape(W_k))}
    words = {word: APPLE["table"][APPLE_WORDS.index(word)] for word in ("shop", "banana", "laptop")}
    words["battery"] = np.array([0, 1, 0])
    held = {word: row @ np.asarray(W_k, dtype=float) for word, row in words.items()}
    empty = [word for word, card in held.items() if np.allclose(card, 0)]
    return {
        "its shape": "(3, 2)",
        "empty cards": ", ".join(empty) or "none",
        "shop and battery hold up the same card": np.allclose(held["shop"], held["battery"]),
        "banana and laptop hold up the same card": np.allclose(held["banana"], held["laptop"]),
    }


project_qkv = exercise(
    course.project_qkv,
    hints="""The query of one word is its row times W_q. What does the product do with many rows?
    Words times weights, X @ W: once for the queries, once for the keys, once for the values.""",
    probes=[("whole numbers", [[2.0, 1, 0], [0, 2, 1]], [[0.0, 2], [1, 0], [0, 1]],
             [[1.0, 0], [0, 1], [3, 0]], [[1.0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 3, 1]]),
            three("wider values", (5, 4), 2, 9), three("narrower values", (4, 3), 5, 2),
            three("a batch of two", (2, 5, 4), 2, 3), three("everything square", (4, 4), 4, 4),
            three("two batch axes", (2, 3, 4, 6), 2, 5), three("3 × 3 words", (3, 3, 4), 2, 5)],
    slips="""
    keys-with-w-q: X @ W_k → X @ W_q
        Queries and keys are identical, both made with W_q. K needs its own matrix, W_k.
    values-with-w-k: X @ W_v → X @ W_k
        The values are the keys once more. Their own matrix is missing: V needs W_v.
    queries-scaled: X @ W_q → X @ W_q / np.sqrt(W_q.shape[1])
        Q is divided by √d_k already. That belongs to the scores, in notebook 04.
    weights-from-the-left: X @ W_q, X @ W_k, X @ W_v → W_q @ X, W_k @ X, W_v @ X
        The weights stand on the left. Words are rows, so they multiply from the right: X @ W.
    stored-as-in-linear: X @ W_q, X @ W_k, X @ W_v → X @ W_q.T, X @ W_k.T, X @ W_v.T
        The matrices are turned over. nn.Linear keeps them so; these have D rows: X @ W.
    keys-transposed: X @ W_k → np.swapaxes(X @ W_k, -1, -2)
        K is transposed already. Each word has its key as a row; the scores turn it, in 03.
    relu: X @ W_q, X @ W_k, X @ W_v → [np.maximum(X @ W, 0) for W in (W_q, W_k, W_v)]
        Numbers below zero are lost, as by a ReLU. A projection is the product alone.
    one-array: X @ W_q, X @ W_k, X @ W_v → np.concatenate([X @ W_q, X @ W_k, X @ W_v], axis=-1)
        It returns one array with all three side by side. Hand back three: Q, K, V.
    """,
)  # fmt: skip

linear = exercise(
    """
    def linear(x, weight, bias):
        return x @ weight.T + bias
    """,
    hints="""Which axis of weight has to meet the last axis of x?
    Transpose the weight, multiply from the right, add the bias: it is added to every row.""",
    probes=[("one word", [[1.0, 2.0]], [[1.0, 0], [0, 3], [1, 1]], [10.0, 20.0, 30.0]),
            ("four words", numbers(4, 3), numbers(2, 3), numbers(2)),
            ("as many words as output features", numbers(4, 3), numbers(4, 3), numbers(4)),
            ("everything square", numbers(3, 3), numbers(3, 3), numbers(3)),
            ("a batch of two", numbers(2, 5, 3), numbers(4, 3), numbers(4)),
            ("as many sentences as words", numbers(3, 3, 4), numbers(3, 4), numbers(3)),
            ("a single vector", numbers(3), numbers(2, 3), numbers(2))],
    slips="""
    not-transposed: weight.T → weight
        The weight is not transposed. It has a row for each feature that comes out: weight.T.
    words-in-columns: x @ weight.T + bias → np.swapaxes(x @ weight.T + bias, -1, -2)
        The result is transposed, with words in columns. Words stand on the left: x @ weight.T.
    weight-reshaped: weight.T → weight.reshape(weight.shape[::-1])
        The weight is reshaped, which keeps the order of its numbers. Rows must become columns: .T.
    words-as-columns: x @ weight.T + bias → (weight @ x.T + bias[:, None]).T
        .T turns all axes around: right for two alone. Let the words stay rows: x @ weight.T.
    no-bias: + bias → ∅
        The bias is missing. Add it after the product.
    bias-of-last-word: return x → out = x ⊕ + bias → ⏎    out[..., -1:, :] += bias⏎    return out
        Only the last word gets the bias. Add it to every row.
    bias-of-one-word: return x → out = x ⊕ + bias → ⏎    out[..., 0, :] += bias⏎    return out
        Only the first word gets the bias. Add it to every row.
    """,
)  # fmt: skip

joined_qk = exercise(
    """
    def joined_qk(W_q, W_k):
        return W_q @ W_k.T
    """,
    hints="""Put W_k.T @ y in the place of y @ W_k. What does each bracket begin or end with?
    It is (x @ W_q) @ (W_k.T @ y), and brackets may be moved. What stands between x and y?""",
    probes=[("keys of one feature", [[1.0], [0.0], [2.0]], [[0.0], [3.0], [1.0]]),
            ("keys of two", numbers(3, 2), numbers(3, 2)), ("square", numbers(3, 3), numbers(3, 3)),
            ("keys of five features", numbers(2, 5), numbers(2, 5))],
    slips="""
    inner-axis-is-the-features: W_q @ W_k.T → W_q.T @ W_k
        The wrong matrix is transposed: this is (d_k, d_k). M is (D, D): transpose the second.
    not-transposed: W_k.T → W_k
        W_k is not transposed. y @ W_k is W_k.T @ y: so W_k.T stands between x and y.
    keys-reshaped: W_k.T → W_k.reshape(W_k.shape[::-1])
        W_k is reshaped, which keeps the order of its numbers. Rows must become columns: .T.
    features-summed-first: W_q @ W_k.T → np.outer(W_q.sum(axis=1), W_k.sum(axis=1))
        The features are summed before they meet. Feature meets feature, and then comes the sum.
    last-feature-alone: W_q @ W_k.T → np.outer(W_q[:, -1], W_k[:, -1])
        Only the last feature counts, as where a loop overwrites. Add up over all of them: +=.
    element-by-element: W_q @ W_k.T → W_q * W_k
        The matrices are multiplied number by number. Their product is @, rows with columns.
    roles-exchanged: W_q @ W_k.T → W_k @ W_q.T
        M is transposed, so that y asks x. The word on the left asks: W_q comes first.
    symmetric: W_q @ W_k.T → (W_q @ W_k.T + W_k @ W_q.T) / 2
        This M is symmetric, so asking is mutual. x @ M @ y is x's query times y's key alone.
    scaled: W_q @ W_k.T → W_q @ W_k.T / np.sqrt(W_q.shape[1])
        M is divided by √d_k. That belongs to the scores, in notebook 04.
    """,
)  # fmt: skip

choose_keys = exercise(
    """
    def choose_keys():
        return np.array([[0, 0], [0, 0], [1, 0]])
    """,
    hints="""The query of *apple* is [2, 2]. Of which feature has *shop* more than any other word?
    A row of W_k says what its feature puts into a key: zeros for food and device, 1 for trade.""",
    slips="""
    every-word: [1, 0] → [-1, 0]
        Each other word scores as high as shop, or higher: its trade must count, and not cancel out.
    as-in-the-picture: [[0, 0], [0, 0], [1, 0]] → [[1, 0], [0, 1], [0, 0]]
        Other features count too much beside trade. Shop is known by its trade: 3, most of all.
    only-what-shop-lacks: [[0, 0], [0, 0], [1, 0]] → [[-1, 0], [0, -1], [0, 0]]
        Shop scores no higher than words without any feature, such as *the*. Let its trade count.
    sells-too: [[0, 0], [0, 0], [1, 0]] → [[0, 0], [-1, 0], [0, 1]]
        Sells scores as high as shop, or higher: its other features make up for less trade.
    device-too: [[0, 0], [0, 0], [1, 0]] → [[0, 0], [0, 1], [0, 1]]
        Laptop scores as high as shop, or higher: its device, 4, counts too much beside trade.
    food-as-much-as-trade: [[0, 0], [0, 0], [1, 0]] → [[1, 0], [0, 0], [0, 1]]
        Sells and banana score as high as shop, or higher: their food counts too much.
    turned: [[0, 0], [0, 0], [1, 0]] → [[0, 0, 1], [0, 0, 0]]
        It is turned over: W_k has a row for each of three features, a column for each of two.
    keys: np.array([[0, 0], [0, 0], [1, 0]]) → np.zeros((6, 2))
        It has six rows, as many as there are words. W_k has one for each feature, three.
    """,
)


def rivals(fn, text):
    """The words of a text that apple scores at least as high as shop, with the chosen keys."""
    W_k, words = fn(), text.split()
    if np.shape(W_k) != (3, 2):
        return None if W_k is None else {"its shape": str(np.shape(W_k))}
    if not isinstance(W_k, np.ndarray):
        return {"it returns an array, np.array(…)": False}
    X = APPLE["table"][[APPLE_WORDS.index(word) for word in words]]
    scores = dict(zip(words, X @ np.array(W_k, dtype=float) @ [2, 2], strict=True))
    found = [w for w in words if w != "shop" and not scores[w] < scores["shop"] - 1e-6]
    return {"it returns an array, np.array(…)": True, "its shape": "(3, 2)",
            "as high as shop, or higher": ", ".join(found) or "no other"}  # fmt: skip


for text in ("the shop sells apple and banana", "the shop sells apple and laptop"):
    choose_keys.experiment(text)(lambda fn, text=text: rivals(fn, text))
