"""Notebook 03: scores of queries and keys, the best key, distances made of scores."""

from helpers import attention as course
from workshop.exercises.exercise import exercise, numbers

PAIRS = [("one query and two keys", [[1.0, 2.0]], [[3, 1], [0.5, 4]]),
         ("two queries, three keys", [[1.0, 2], [-1, 0.5]], [[3.0, 1], [0, 4], [-2, -1]]),
         ("more queries", numbers(5, 3), numbers(2, 3)), ("square", numbers(4, 4), numbers(4, 4)),
         ("a batch of two sentences", numbers(2, 3, 5), numbers(2, 4, 5)),
         ("three sentences, words and features", numbers(3, 3, 3), numbers(3, 3, 3)),
         ("two batch axes", numbers(2, 3, 2, 4), numbers(2, 3, 5, 4))]  # fmt: skip

attention_scores = exercise(
    course.attention_scores,
    story=True,
    hints="""Entry i, j is one dot product: of which row of Q with which row of K?
    Q @ K with two axes of K exchanged, the last two, so that a batch stays where it is.""",
    probes=PAIRS,
    slips="""
    transposed-every-axis: np.swapaxes(K, -1, -2) → K.T
        K.T turns all axes around, the batch too. Exchange the last two alone: np.swapaxes.
    reshaped-not-transposed: np.swapaxes(K, -1, -2) → K.reshape(*K.shape[:-2], -1, K.shape[-2])
        K is reshaped, which mixes the numbers of different keys. Exchange its last two axes.
    no-transpose: np.swapaxes(K, -1, -2) → K
        K is not transposed. On the right of @ its features must come first: swap its last two axes.
    features-with-features: Q @ np.swapaxes(K, -1, -2) → np.swapaxes(Q, -1, -2) @ K
        Features meet features. Words must meet words: transpose K, not Q.
    queries-and-keys-swapped: Q @ np.swapaxes(K, -1, -2) → K @ np.swapaxes(Q, -1, -2)
        Its rows are keys, as in K Qᵀ. Row i belongs to query i, column j to key j.
    every-sentence-with-every-other: Q @ np.swapaxes(K, -1, -2) → np.tensordot(Q, K, axes=(-1, -1))
        Each sentence meets the keys of all the others, as np.dot does it. Score each on its own.
    summed-over-the-batch: Q @ → np.sum(Q @ ⊕ -2) → -2), axis=tuple(range(Q.ndim - 2)))
        The scores of all sentences are added up. Each sentence keeps a table of its own.
    own-key-only: Q @ np.swapaxes(K, -1, -2) → (Q * K).sum(axis=-1)
        Each query meets only the key at its own place. Every query must meet every key.
    as-many-keys-as-queries: Q @ → np.take(Q @ ⊕ -2) → -2), range(Q.shape[-2]), axis=-1)
        Rows and columns are both counted by the queries. Columns go over the keys: K.shape[-2].
    already-scaled: -2) → -2) / np.sqrt(Q.shape[-1])
        The scores are divided by √d already. That is a step of its own, in notebook 04.
    mean-of-the-products: -2) → -2) / Q.shape[-1]
        The scores are divided by d: the mean of the products. A dot product is their sum.
    softmaxed: Q @ → softmax(Q @ ⊕ -2) → -2))
        A softmax has been applied. That comes in notebook 05; a score is the plain dot product.
    cosine-similarity: -2) → -2) / np.linalg.norm(Q, axis=-1)[..., None] \\
            / np.linalg.norm(K, axis=-1)[..., None, :]
        The vectors are divided by their lengths: the cosine. A score is the plain dot product.
    negative-distance: Q @ np.swapaxes(K, -1, -2) → \\
            -np.linalg.norm(Q[..., None, :] - K[..., None, :, :], axis=-1)
        This is minus the distance. In a dot product features are multiplied, not subtracted.
    """,
)

squared_distances = exercise(
    """
    def squared_distances(Q, K):
        queries = (Q * Q).sum(axis=-1)[..., :, None]
        keys = (K * K).sum(axis=-1)[..., None, :]
        return queries - 2 * attention_scores(Q, K) + keys
    """,
    hints="""Which two of the three terms have one number per vector, and which has one per pair?
    Squares summed over the features: a column [..., :, None] for Q, a row [..., None, :] for K.""",
    probes=PAIRS,
    slips="""
    no-axis-added: [..., :, None] → ∅ ⊕ [..., None, :] → ∅
        The squared lengths lack an axis. Those of queries stand as a column, of keys as a row.
    not-paired: return → return ((Q - K) ** 2).sum(axis=-1);
        Query i meets key i alone. Every query must meet every key, in a table (Tq, Tk).
    exchanged: :, None → None, : ⊕ K).sum(axis=-1)[..., None, : → K).sum(axis=-1)[..., :, None
        Rows and columns are exchanged. q · q stands as a column, a number for each row.
    one-length-for-all: (axis=-1)[..., :, None] → () ⊕ (axis=-1)[..., None, :] → ()
        All squares are summed into one number. Each vector has its own: sum over its features.
    plus: - 2 * → + 2 *
        q·k is added. The more alike two vectors, the nearer they are: subtract it, twice.
    without-two: 2 * attention → attention
        q·k comes once. The square holds it twice: 2 q·k.
    root: queries - → np.sqrt(queries - ⊕ + keys → + keys)
        The root is taken. Asked for are the squared distances.
    """,
)

best_key = exercise(
    """
    def best_key(Q, K):
        scores = attention_scores(Q, K)
        return scores.argmax(axis=-1)
    """,
    hints="""Which axis of the scores belongs to the keys, and what gives the largest one's place?
    The scores, with a row for each query; then argmax along the last axis.""",
    probes=[("all scores below 0", [[-1.0, -2.0]], [[1.0, 1.0], [2, 0], [0.5, 0.2]]), *PAIRS],
    slips="""
    best-query-of-each-key: axis=-1 → axis=-2
        This is the best query of each key. Each query, a row, chooses among the keys: axis=-1.
    whole-table: axis=-1 → ∅
        One key is chosen for the whole table. Each query, a row, chooses its own: axis=-1.
    counted-from-one: (axis=-1) → (axis=-1) + 1
        The places are counted from 1. The first key is number 0.
    score-instead-of-place: argmax → max
        This is the largest score. Asked for is its place: argmax.
    without-sign: attention_scores(Q, K) → np.abs(attention_scores(Q, K))
        The scores have lost their sign. A key that points away scores below 0: no good match.
    nearest-key: attention_scores(Q, K) → -((Q[..., None, :] - K[..., None, :, :]) ** 2).sum(-1)
        This is the nearest key. A long key far away may score higher than one close by.
    """,
)
