"""Notebook 04: the size of a score by chance, and the cure."""

from helpers import attention as course
from workshop.exercises.exercise import exercise, numbers

scale_scores = exercise(
    """
    def scale_scores(S, d_k):
        return S / np.sqrt(d_k)
    """,
    course=course.scale_scores,
    story=True,
    hints="""By how much is a score too large with d_k features: by d_k, or by its square root?
    Divide every score by np.sqrt(d_k), one number for all of them.""",
    probes=[("three scores, d_k = 4", [8.0, -4.0, 2.0], 4), ("one feature", [[1.5, -2.0]], 1),
            ("d_k = 9", [[3.0, -6.0], [4.5, 1.5]], 9), ("more keys", 5 * numbers(2, 3), 5),
            ("four axes", 5 * numbers(2, 2, 3, 5), 24), ("wide keys", [[30.0, 25.5, 20.25]], 512)],
    slips="""
    power-without-brackets: np.sqrt(d_k) → d_k**1 / 2
        `** 1/2` means: to the power of 1, then halved. Put brackets round the exponent: ** (1/2).
    divided-by-d-k: np.sqrt(d_k) → d_k
        This takes d_k itself: the root is missing, or the scores are scaled twice.
    root-of-the-number-of-keys: np.sqrt(d_k) → np.sqrt(S.shape[-1])
        It takes the root of the number of keys. The scale is d_k, the width of a key.
    always-eight: np.sqrt(d_k) → 8
        This takes 8, the root of 64, whatever d_k is. Keys of another width need another root.
    multiplied: S / → S *
        The scores are multiplied. They are too large already: divide them by √d_k.
    root-rounded: np.sqrt(d_k) → int(np.sqrt(d_k))
        The root is cut to a whole number: of 5, it is 2.236…, not 2. Divide by it as it is.
    root-of-the-scores-too: S / np.sqrt(d_k) → np.sqrt(S / d_k)
        The root covers the scores as well: negative scores give nan. Take the root of d_k only.
    divided-by-their-own-deviation: np.sqrt(d_k) → S.std()
        This takes the deviation of the scores at hand, so each depends on all. Divide by √d_k.
    """,
)  # fmt: skip

score_deviation = exercise(
    """
    def score_deviation(sigma, d_k):
        return sigma**2 * np.sqrt(d_k)
    """,
    hints="""What is the deviation of one product of two features, and how do d_k of them add up?
    A product has sigma² for its deviation; variances add up, so a sum has √d_k times as much.""",
    probes=[("sigma 1, 9 features", 1.0, 9), ("sigma 3", 3.0, 64), ("one feature", 2.0, 1),
            ("sigma 0.5", 0.5, 5), ("sigma 1.5", 1.5, 512), ("sigma 0", 0.0, 7)],
    slips="""
    variance-returned: sigma**2 * np.sqrt(d_k) → sigma**4 * d_k
        This is the variance, sigma⁴ · d_k. Its root is the standard deviation.
    divided: sigma**2 * → sigma**2 /
        It is divided by √d_k, as scaled scores are. Before that they grow by it.
    sigma-not-squared: sigma**2 → sigma
        sigma counts once. A product has two factors, and both are sigma times as large.
    sigma-under-the-root: sigma**2 * np.sqrt(d_k) → np.sqrt(sigma * d_k)
        sigma stands below the root. Both factors of a product bring it: sigma² before the root.
    one-product-too-few: np.sqrt(d_k) → np.sqrt(d_k - 1)
        It adds up d_k − 1 products. All d_k count: range(1, d_k) leaves one out.
    sigma-ignored: sigma**2 * → ∅
        sigma has no effect. Larger features make every product larger, sigma² times.
    deviations-added: np.sqrt(d_k) → d_k
        It grows with d_k itself. Variances add up, deviations do not: take the root of d_k.
    """,
)  # fmt: skip

scale_queries = exercise(
    """
    def scale_queries(Q):
        d_k = Q.shape[-1]
        return Q / np.sqrt(d_k)
    """,
    hints="""If every feature of a query is divided by a number, what happens to its dot products?
    They are divided by the same number. Divide Q by √d_k; d_k is the last axis of Q.""",
    probes=[("one query", [[8.0, -4.0, 2.0, 1.0]]), ("more queries", numbers(5, 2)),
            ("a batch of two", numbers(2, 3, 7)), ("two batch axes", numbers(2, 4, 3, 5))],
    slips="""
    divided-by-the-width: np.sqrt(d_k) → d_k
        The root is missing: a dot product of d_k features has the size √d_k.
    multiplied: Q / → Q *
        The queries are multiplied. Scores are too large already: divide by √d_k.
    fourth-root: np.sqrt(d_k) → d_k**0.25
        It takes the fourth root, as if keys were scaled too. The queries alone take all of √d_k.
    root-of-the-number-of-queries: shape[-1] → shape[-2]
        The number of queries is taken for d_k, which counts features, the last axis.
    axis-0: Q.shape[-1] → len(Q)
        The length of axis 0 is taken, the queries or the batch. d_k counts features: Q.shape[-1].
    axis-1: shape[-1] → shape[1]
        Axis 1 is the features of one sentence only; in a batch it is the words. Take the last axis.
    unit-length: np.sqrt(d_k) → np.linalg.norm(Q, axis=-1, keepdims=True)
        Each query is divided by its own length, so none asks louder. Divide all by the same √d_k.
    """,
)  # fmt: skip
