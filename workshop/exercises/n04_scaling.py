"""Notebook 04: the size of a score by chance, and the cure."""

import math

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers

# ---------------------------------------------------------------- scale_scores

scale_scores = Exercise(
    reference.scale_scores,
    notebook="04",
    level=1,
    minutes=5,
    task="Two random vectors of d_k features score about √d_k by luck alone. Divide every "
    "score by this much, so that scores have the same typical size whatever the width d_k of a "
    "key.",
    hints=(
        "By how much is a score too large when keys have d_k features: d_k, or its square root?",
        "A typical score has the size √d_k. So divide every score by that root, `np.sqrt(d_k)`: "
        "one number for all of them.",
        "`return S / np.sqrt(d_k)`",
    ),
)
scale_scores.answer("""
    def scale_scores(S, d_k):
        return S / np.sqrt(d_k)
""")
scale_scores.answer("""
    def scale_scores(S, d_k):
        scale = d_k**-0.5
        return S * scale
""")
scale_scores.answer("""
    import math

    def scale_scores(S, d_k):
        root = math.sqrt(d_k)
        return S / root
""")
scale_scores.answer("""
    import torch

    def scale_scores(S, d_k):
        root = torch.sqrt(torch.tensor(d_k))
        return S / root
""")
scale_scores.why(
    "d_k**-0.5 | np.sqrt(d_k) | math.sqrt(d_k) | d_k**0.5",
    "A sum of d_k products spreads like √d_k, not like d_k: taking out that root brings every "
    "score to a spread of 1.",
)
scale_scores.why(
    "S / np.sqrt(d_k) | S / math.sqrt(d_k) | S / d_k**0.5 | S / root | S * scale | S * d_k**-0.5",
    "Scores of wide keys are too large: divide by √d_k, or multiply by its inverse, and keep the "
    "decimals.",
)
scale_scores.why(
    "-0.5 | 0.5 | 1 / 2",
    "The exponent is one half, in brackets or as a decimal: a power binds before the division.",
)
scale_scores.why(
    "d_k",
    "The width d_k of a key sets the spread of a score; how many tokens there are does not count.",
)
scale_scores.why(
    "S",
    "Only the size of the scores changes: the root is that of d_k alone, and they keep sign and "
    "decimals.",
)
scale_scores.probe("three scores, d_k = 4", np.array([8.0, -4.0, 2.0]), 4)
scale_scores.probe("two rows, d_k = 9", np.array([[3.0, -6.0], [4.5, 1.5]]), 9)
scale_scores.probe("more keys than queries", 5 * numbers(2, 3), 5)
scale_scores.probe("a batch of two sentences", 5 * numbers(2, 3, 4), 7)
scale_scores.probe("sentences, heads, queries and keys", 5 * numbers(2, 2, 3, 5), 24)
scale_scores.probe("keys of one feature", np.array([[1.5, -2.0]]), 1)
scale_scores.probe("positive scores of wide keys", np.array([[30.0, 25.5], [1.0, 20.25]]), 512)
scale_scores.probe("S given by name", S=np.array([[0.5, -0.25, 1.0]]), d_k=2)


@scale_scores.mistake
def power_without_brackets(S, d_k):
    """In Python d_k ** 1/2 means (d_k ** 1) / 2, because powers take precedence: half of d_k, not
    its root. Put brackets round the exponent, or write it as a decimal number."""
    return S / d_k**1 / 2


@scale_scores.mistake
def root_of_the_number_of_keys(S, d_k):
    """It divides by the root of the number of keys, the last axis of S. The scale is the width d_k
    of a key, however many tokens there are: each score sums d_k products."""
    return S / math.sqrt(S.shape[-1])


@scale_scores.mistake
def rounded_down(S, d_k):
    """Floor division: // rounds every quotient down to a whole number, so scores that differ become
    equal. A score needs its decimals: a single /."""
    return S // math.sqrt(d_k)


@scale_scores.mistake
def divided_by_d_k(S, d_k):
    """The square root is missing, or the scores are scaled twice: they are divided by d_k itself
    and shrink with the width of the keys. A typical score has the size √d_k, so divide by that."""
    return S / d_k


@scale_scores.mistake
def divided_by_their_own_deviation(S, d_k):
    """The scores are divided by their own standard deviation (std), so one large score changes all
    others. The divisor is a constant, √d_k, the deviation to be expected by chance."""
    return S / S.std()


@scale_scores.mistake
def whole_root(S, d_k):
    """The root of d_k is cut to a whole number (int, isqrt or //), which is right for square
    numbers such as 64 only. For other widths its decimals count."""
    return S / math.isqrt(d_k)


@scale_scores.mistake
def root_of_the_scores_too(S, d_k):
    """The root covers the scores as well: negative scores give nan, and large ones shrink more than
    small ones. Take the root of d_k only, and keep the scores as they are."""
    return np.sqrt(S / d_k)


# ---------------------------------------------------------------- scale_queries


def scale_queries(Q: np.ndarray) -> np.ndarray:
    """Scale queries so that their plain dot products with keys come out scaled: (…, Tq, d_k).

    Every product holds the query once, so dividing Q by √d_k divides each score by √d_k.
    """
    return Q / math.sqrt(Q.shape[-1])


scale_queries_exercise = Exercise(
    scale_queries,
    notebook="04",
    level=2,
    minutes=5,
    task="A long text has many more scores than its queries have features. So scale the queries "
    "instead: return new queries whose plain dot products with the keys come out already divided "
    "by √d_k. The function gets Q alone, for one sentence or a batch, and finds d_k in its shape.",
    hints=(
        "If every feature of a query is divided by a number, what happens to its dot products?",
        "They are divided by the same number. So divide Q by √d_k, and find d_k in the last axis "
        "of Q.",
        "`return Q / np.sqrt(Q.shape[-1])`",
    ),
)
scale_queries_exercise.answer("""
    def scale_queries(Q):
        d_k = Q.shape[-1]
        return Q / np.sqrt(d_k)
""")
scale_queries_exercise.answer("""
    def scale_queries(Q):
        return Q * Q.shape[-1] ** -0.5
""")
scale_queries_exercise.answer("""
    import math

    def scale_queries(Q):
        *batch, T, d_k = Q.shape
        scaled = Q.copy()
        scaled /= math.sqrt(d_k)
        return scaled
""")
scale_queries_exercise.answer("""
    import torch

    def scale_queries(Q):
        d_k = Q.size(-1)
        return Q / d_k**0.5
""")
scale_queries_exercise.why(
    "np.sqrt(d_k) | math.sqrt(d_k) | d_k**0.5 | np.sqrt(Q.shape[-1]) | math.sqrt(Q.shape[-1]) | "
    "Q.shape[-1] ** -0.5 | Q.shape[-1] ** 0.5",
    "A score sums d_k products and spreads like √d_k, and each holds the query once: the query "
    "takes the whole root.",
)
scale_queries_exercise.why(
    "Q.shape[-1] | Q.size(-1) | d_k",
    "d_k counts features. They are the last axis, counted from the end: with a batch in front, "
    "axis 1 counts tokens.",
)
scale_queries_exercise.why(
    "Q / np.sqrt(d_k) | Q / math.sqrt(Q.shape[-1]) | Q / d_k**0.5 | Q * Q.shape[-1] ** -0.5",
    "Smaller queries give smaller scores: each dot product is divided by what divides its query.",
)
scale_queries_exercise.why(
    "-0.5 | 0.5",
    "The root is the power one half, in brackets or as a decimal; it goes to the queries alone, so "
    "no quarter.",
)
scale_queries_exercise.why(
    "Q.copy()", "The caller still needs its own queries: scale a new array, not theirs."
)
scale_queries_exercise.probe("one query of 4 features", np.array([[8.0, -4.0, 2.0, 1.0]]))
scale_queries_exercise.probe("two queries of 3 features", np.array([[3.0, -6.0, 1.5], [0.5, 2, 9]]))
scale_queries_exercise.probe("more queries than features", numbers(5, 2))
scale_queries_exercise.probe("a batch of two sentences", numbers(2, 3, 7))
scale_queries_exercise.probe("two batch axes", numbers(2, 4, 3, 5))
scale_queries_exercise.probe("queries of one feature", np.array([[1.5], [-2.0]]))
scale_queries_exercise.probe("positive queries", np.array([[30.0, 25.5, 1.0, 2.0, 0.25]]))


@scale_queries_exercise.mistake
def unit_length(Q):
    """Each query is divided by its own length (norm), which makes all equally long and loses how
    strongly each one asks. Divide all queries by the same number, √d_k."""
    return Q / np.linalg.norm(Q, axis=-1, keepdims=True)


@scale_queries_exercise.mistake
def own_deviation(Q):
    """The queries are divided by their own standard deviation (std), each by another number. The
    divisor is the same for all of them, √d_k: it depends on the width alone."""
    return Q / Q.std(axis=-1, keepdims=True)


@scale_queries_exercise.mistake
def scores_instead_of_queries(Q):
    """This is a table of scores, queries with queries. There are no keys here: return queries, in
    the shape of Q, each divided by √d_k; their products with keys come later."""
    return Q @ np.swapaxes(Q, -1, -2) / math.sqrt(Q.shape[-1])


# ---------------------------------------------------------------- score_deviation


def score_deviation(sigma: float, d_k: int) -> float:
    """Give the standard deviation of q·k when all features have mean 0 and deviation sigma.

    A product of two features has variance sigma⁴, and d_k independent ones add up. The scale
    √d_k is that of sigma = 1: paper, footnote 4.
    """
    return sigma**2 * math.sqrt(d_k)


score_deviation_exercise = Exercise(
    score_deviation,
    notebook="04",
    level=2,
    minutes=5,
    task="How large is a score typically when the features of queries and keys have mean 0 and "
    "standard deviation sigma instead of 1? Return one number, computed from sigma and d_k: the "
    "standard deviation of q·k.",
    hints=(
        "What is the deviation of one product of two features, and how do d_k of them add up?",
        "Both factors are sigma times as large, so a product is sigma² times as large. The "
        "variances add up, so the deviation of the sum grows with the root of d_k.",
        "`return sigma**2 * np.sqrt(d_k)`",
    ),
)
score_deviation_exercise.answer("""
    def score_deviation(sigma, d_k):
        one_product = sigma**2
        return one_product * np.sqrt(d_k)
""")
score_deviation_exercise.answer("""
    def score_deviation(sigma, d_k):
        variance = sigma**4 * d_k
        return np.sqrt(variance)
""")
score_deviation_exercise.answer("""
    def score_deviation(sigma, d_k):
        variance = 0.0
        for feature in range(d_k):
            variance += sigma**4
        return variance**0.5
""")
score_deviation_exercise.answer("""
    import math

    def score_deviation(sigma, d_k):
        return sigma * sigma * math.sqrt(d_k)
""")
score_deviation_exercise.why(
    "sigma**2 | sigma * sigma",
    "A product has two factors, one of the query and one of the key, each sigma times as large: "
    "sigma squared.",
)
score_deviation_exercise.why(
    "np.sqrt(d_k) | math.sqrt(d_k) | d_k**0.5",
    "The variances of d_k products add up; the deviation is their root and grows like √d_k.",
)
score_deviation_exercise.why(
    "np.sqrt(variance) | math.sqrt(variance) | variance**0.5 | np.sqrt(sigma**4 * d_k)",
    "The variance is in squared units: the deviation, the size of a typical score, is its root.",
)
score_deviation_exercise.why(
    "sigma**4 | sigma**4 * d_k",
    "One product has deviation sigma², so its variance is sigma⁴; d_k independent ones add up.",
)
score_deviation_exercise.why(
    "sigma**2 * math.sqrt(d_k) | one_product * np.sqrt(d_k)",
    "Larger features and more of them both make scores larger: the size of a product times √d_k.",
)
score_deviation_exercise.probe("sigma 1, 9 features", 1.0, 9)
score_deviation_exercise.probe("sigma 3, 64 features", 3.0, 64)
score_deviation_exercise.probe("sigma 2, 1 feature", 2.0, 1)
score_deviation_exercise.probe("sigma 0.5, 5 features", 0.5, 5)
score_deviation_exercise.probe("sigma 1.5, 512 features", 1.5, 512)
score_deviation_exercise.probe("sigma 0, every score 0", 0.0, 7)


@score_deviation_exercise.mistake
def variance_returned(sigma, d_k):
    """This is the variance, sigma⁴ d_k, in squared units. Asked for is the standard deviation, the
    size of a typical score: the square root of the variance."""
    return sigma**4 * d_k


@score_deviation_exercise.mistake
def sigma_not_squared(sigma, d_k):
    """sigma counts once here. Every product has two factors, the feature of the query and that of
    the key, and both are sigma times as large: sigma squared."""
    return sigma * math.sqrt(d_k)


@score_deviation_exercise.mistake
def sigma_ignored(sigma, d_k):
    """sigma is ignored: √d_k is the deviation for features of deviation 1 only. With larger
    features every product is larger, sigma² times."""
    return math.sqrt(d_k)
