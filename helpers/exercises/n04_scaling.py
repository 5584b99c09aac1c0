"""Notebook 04: the size of a score by chance, and the cure."""

import math

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(4)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


# ---------------------------------------------------------------- scale_scores

scale_scores = Exercise(
    reference.scale_scores,
    notebook="04",
    level=1,
    minutes=5,
    task="Bring scores to the same typical size whatever the width d_k of a key. This time "
    "without a root and without `/`: multiply by a power of d_k.",
    hints=(
        "By how much is a score too large when keys have d_k features: d_k, or its square root?",
        "Dividing by √d_k is multiplying by d_k to the power −1/2. Write the power with brackets, "
        "or as a decimal number.",
        "`return S * d_k**-0.5`",
    ),
)
scale_scores.probe("three scores, keys of 4 features", np.array([8.0, -4.0, 2.0]), 4)
scale_scores.probe("two rows of scores, keys of 9 features", np.array([[3.0, -6.0], [4.5, 1.5]]), 9)
scale_scores.probe("more keys than queries, keys of 5 features", 5 * normal(2, 3), 5)
scale_scores.probe("a batch of two sentences, keys of 7 features", 5 * normal(2, 3, 4), 7)
scale_scores.probe("sentences, heads, queries and keys", 5 * normal(2, 2, 3, 5), 24)
scale_scores.probe("keys of one feature, which change nothing", np.array([[1.5, -2.0]]), 1)
scale_scores.probe("positive scores of wide keys", np.array([[30.0, 25.5], [1.0, 20.25]]), 512)
scale_scores.probe("S given by name", S=np.array([[0.5, -0.25, 1.0]]), d_k=2)


@scale_scores.mistake
def divided_by_d_k(S, d_k):
    """The scores are divided by d_k itself: the square root is missing (or they are scaled twice).
    Divide by √d_k, not by d_k."""
    return S / d_k


@scale_scores.mistake
def power_without_brackets(S, d_k):
    """In Python d_k ** 1/2 means (d_k ** 1) / 2, and d_k ** -1/2 means (d_k ** -1) / 2: powers take
    precedence. Put brackets, d_k ** (1/2), or write d_k ** 0.5 (math.sqrt)."""
    return S / d_k**1 / 2


@scale_scores.mistake
def divided_by_half_of_d_k(S, d_k):
    """The scores are divided by d_k / 2: in d_k ** 1/2 the brackets are missing. Divide by the
    square root, d_k ** (1/2)."""
    return S / (d_k / 2)


@scale_scores.mistake
def rounded_down(S, d_k):
    """// rounds the quotient down to a whole number. Use /, which keeps the decimals."""
    return S // math.sqrt(d_k)


@scale_scores.mistake
def rounded_down_with_d_k(S, d_k):
    """// rounds the quotient down to a whole number, and the root of d_k is missing. Divide by
    √d_k with a single /."""
    return S // d_k


@scale_scores.mistake
def root_of_the_scores_too(S, d_k):
    """The root covers the scores as well, so negative scores give nan. Take the root of d_k
    only: S / √d_k."""
    return np.sqrt(S / d_k)


@scale_scores.mistake
def root_of_the_scores_only(S, d_k):
    """The root is taken of the scores instead of d_k: negative scores give nan. Take the root of
    d_k only: S / √d_k."""
    return np.sqrt(S) / d_k


@scale_scores.mistake
def root_of_the_scores_alone(S, d_k):
    """The root is taken of the scores, which gives nan for negative ones, and d_k is ignored. Take
    the root of d_k: S / √d_k."""
    return np.sqrt(S)


@scale_scores.mistake
def root_of_the_scores_without_signs(S, d_k):
    """The root covers the scores as well, after their signs were dropped (abs): negative scores
    become positive. Take the root of d_k only, and keep the scores as they are: S / √d_k."""
    return np.sqrt(np.abs(S) / d_k)


@scale_scores.mistake
def root_of_the_scores_with_signs_kept(S, d_k):
    """The root covers the scores as well, and their signs are put back after it: large scores
    shrink more than small ones. Take the root of d_k only: S / √d_k."""
    return np.sign(S) * np.sqrt(np.abs(S) / d_k)


@scale_scores.mistake
def whole_root(S, d_k):
    """The root of d_k is cut to a whole number (int, isqrt or //), which is right for square
    numbers only. Keep its decimals: math.sqrt."""
    return S / math.isqrt(d_k)


@scale_scores.mistake
def rounded_root(S, d_k):
    """The root of d_k is rounded to a whole number, which is right for square numbers only. Keep
    its decimals."""
    return S / round(math.sqrt(d_k))


@scale_scores.mistake
def root_rounded_up(S, d_k):
    """The root of d_k is rounded up to a whole number, which is right for square numbers only.
    Keep its decimals."""
    return S / math.ceil(math.sqrt(d_k))


@scale_scores.mistake
def root_of_the_number_of_keys(S, d_k):
    """It divides by the root of the number of keys, the last axis of S, and ignores d_k. The scale
    is the width of a key, d_k, not how many tokens there are."""
    return S / math.sqrt(S.shape[-1])


@scale_scores.mistake
def root_of_the_number_of_queries(S, d_k):
    """It divides by the root of the number of queries, axis -2 of S, and ignores d_k. The scale is
    the width of a key, d_k, not how many tokens there are."""
    return S / math.sqrt(S.shape[-2])


@scale_scores.mistake
def root_of_the_length_of_S(S, d_k):
    """It divides by the root of len(S), the number of queries or sentences, and ignores d_k. The
    scale is the width of a key, d_k."""
    return S / math.sqrt(len(S))


@scale_scores.mistake
def root_of_axis_1(S, d_k):
    """It divides by the root of S.shape[1], a number of tokens, and ignores d_k. The scale is the
    width of a key, d_k, not how many keys or queries there are."""
    return S / math.sqrt(S.shape[1])


@scale_scores.mistake
def divided_by_the_number_of_keys(S, d_k):
    """It divides by the number of keys, S.shape[-1], and ignores d_k. Divide by √d_k, the root of
    the width of a key."""
    return S / S.shape[-1]


@scale_scores.mistake
def root_of_the_size_of_S(S, d_k):
    """It divides by the root of the number of scores and ignores d_k. Divide by √d_k, the root of
    the width of a key."""
    return S / math.sqrt(S.size)


@scale_scores.mistake
def multiplied(S, d_k):
    """The scores are multiplied by √d_k, which makes them larger. Divide by it: the exponent of
    d_k is negative, −1/2."""
    return S * math.sqrt(d_k)


@scale_scores.mistake
def multiplied_by_d_k(S, d_k):
    """The scores are multiplied by d_k, which makes them larger. Divide by its square root,
    √d_k."""
    return S * d_k


@scale_scores.mistake
def root_subtracted(S, d_k):
    """√d_k is subtracted. That moves the scores but leaves their spread: divide by √d_k."""
    return S - math.sqrt(d_k)


@scale_scores.mistake
def fourth_root(S, d_k):
    """The root is taken twice: this is the fourth root of d_k, right for queries and keys that are
    each scaled. Scores need the whole √d_k."""
    return S / d_k**0.25


@scale_scores.mistake
def squared(S, d_k):
    """The scores are divided by d_k squared. Take the square root of d_k, not its square."""
    return S / d_k**2


@scale_scores.mistake
def logarithm(S, d_k):
    """The scores are divided by the logarithm of d_k. Divide by its square root, √d_k."""
    return S / np.log(d_k)


@scale_scores.mistake
def logarithm_of_base_two(S, d_k):
    """The scores are divided by the logarithm (log2) of d_k. Divide by its square root, √d_k."""
    return S / np.log2(d_k)


@scale_scores.mistake
def cube_root(S, d_k):
    """The scores are divided by the cube root of d_k. Divide by its square root, √d_k."""
    return S / np.cbrt(d_k)


@scale_scores.mistake
def one_feature_more(S, d_k):
    """One is added to d_k below the root. Divide by √d_k, without + 1."""
    return S / math.sqrt(d_k + 1)


@scale_scores.mistake
def one_feature_less(S, d_k):
    """One is taken from d_k below the root, as in a sample's deviation. Divide by √d_k, without
    - 1."""
    return S / math.sqrt(d_k - 1) if d_k > 1 else S * np.inf


@scale_scores.mistake
def one_added_to_the_root(S, d_k):
    """One is added to the root. Divide by √d_k alone, without + 1."""
    return S / (math.sqrt(d_k) + 1)


@scale_scores.mistake
def twice_d_k(S, d_k):
    """The root is taken of 2 d_k. The scale is √d_k, without the 2."""
    return S / math.sqrt(2 * d_k)


@scale_scores.mistake
def twice_the_root(S, d_k):
    """The scores are divided by 2 √d_k. The scale is √d_k, without the 2."""
    return S / (2 * math.sqrt(d_k))


@scale_scores.mistake
def keys_counted_too(S, d_k):
    """The root is taken of d_k times the number of keys. The scale is √d_k alone: how many tokens
    there are does not count."""
    return S / math.sqrt(d_k * S.shape[-1])


@scale_scores.mistake
def fixed_at_eight(S, d_k):
    """It always divides by 8, the root of 64, and ignores its argument d_k. Use √d_k: keys may
    have another width."""
    return S / 8


@scale_scores.mistake
def fixed_at_two(S, d_k):
    """It always divides by 2, the root of 4, and ignores its argument d_k. Use √d_k: keys may have
    another width."""
    return S / 2


@scale_scores.mistake
def not_scaled(S, d_k):
    """The scores come back as they were: d_k is ignored, or the result is not stored. Return
    S / √d_k."""
    return S + 0.0


@scale_scores.mistake
def scale_without_scores(S, d_k):
    """This is the scale alone, 1 / √d_k, without the scores. Multiply S by it."""
    return 1 / math.sqrt(d_k)


@scale_scores.mistake
def root_alone(S, d_k):
    """This is √d_k alone, without the scores. Divide S by it."""
    return math.sqrt(d_k)


@scale_scores.mistake
def upside_down(S, d_k):
    """The division is upside down: √d_k / S. Divide the scores by √d_k: S / √d_k."""
    return math.sqrt(d_k) / S


@scale_scores.mistake
def already_weights(S, d_k):
    """A softmax was applied: each row sums to one. Return the scaled scores, S / √d_k; weights
    come after (notebook 05)."""
    return reference.softmax(S / math.sqrt(d_k))


@scale_scores.mistake
def divided_by_their_own_deviation(S, d_k):
    """The scores are divided by their own standard deviation (std). The divisor depends on d_k
    alone: √d_k, whatever the scores are."""
    return S / S.std()


@scale_scores.mistake
def standardised(S, d_k):
    """The scores are standardised: the mean subtracted, then divided by their own deviation (std).
    The divisor depends on d_k alone, √d_k, and nothing is subtracted."""
    return (S - S.mean()) / S.std()


@scale_scores.mistake
def mean_subtracted(S, d_k):
    """The mean of the scores is subtracted before the division. Divide by √d_k and leave the mean
    where it is."""
    return (S - S.mean(axis=-1, keepdims=True)) / math.sqrt(d_k)


@scale_scores.mistake
def divided_by_the_largest(S, d_k):
    """The scores are divided by the largest of them. The divisor depends on d_k alone: √d_k."""
    return S / S.max()


@scale_scores.mistake
def divided_by_their_sum(S, d_k):
    """Each row of scores is divided by its sum. The divisor depends on d_k alone: √d_k, the same
    for every score."""
    return S / S.sum(axis=-1, keepdims=True)


@scale_scores.mistake
def exponentials(S, d_k):
    """exp was applied: half a softmax. Return the scaled scores, S / √d_k; exponentials come after
    (notebook 05)."""
    return np.exp(S / math.sqrt(d_k))


@scale_scores.mistake
def divided_by_their_length(S, d_k):
    """Each row of scores is divided by its length (norm). The divisor depends on d_k alone: √d_k,
    the same for every score."""
    return S / np.linalg.norm(S, axis=-1, keepdims=True)


@scale_scores.mistake
def scores_rounded(S, d_k):
    """The scaled scores are rounded. Return them with all their digits, without round."""
    return np.round(S / math.sqrt(d_k), 2)


@scale_scores.mistake
def cut_to_whole_numbers(S, d_k):
    """The scaled scores are cut to whole numbers (int). Keep the decimals: no astype(int), and no
    array of an integer type for the result."""
    return (S / math.sqrt(d_k)).astype(int)


@scale_scores.mistake
def without_the_sign(S, d_k):
    """The sign is lost: negative scores became positive (abs). Divide by √d_k and keep the sign."""
    return np.abs(S) / math.sqrt(d_k)


@scale_scores.mistake
def only_positive_scores(S, d_k):
    """Negative scores are cut to 0. Divide by √d_k and keep the sign."""
    return np.maximum(S, 0) / math.sqrt(d_k)


@scale_scores.mistake
def first_row_only(S, d_k):
    """Only the first row is divided. Every score is divided by √d_k: S / √d_k does it for all."""
    out = np.array(S)
    out[0] = out[0] / math.sqrt(d_k)
    return out


@scale_scores.mistake
def last_axis_lost(S, d_k):
    """Only one row, query or sentence is returned, S[0]. Scale the whole array: the result has the
    shape of S."""
    return S[0] / math.sqrt(d_k)


@scale_scores.mistake
def turned(S, d_k):
    """The table is transposed. Scaling leaves every score at its place: rows stay queries."""
    return np.swapaxes(S, -1, -2) / math.sqrt(d_k)


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
    task="Scale the queries instead of the scores: return new queries whose plain dot products "
    "with the keys come out already divided by √d_k. The function gets Q alone, for one sentence "
    "or a batch, and must find d_k in its shape.",
    hints=(
        "If every feature of a query is divided by a number, what happens to its dot products?",
        "They are divided by the same number. So divide Q by √d_k, and find d_k in the last axis "
        "of Q.",
        "`return Q / np.sqrt(Q.shape[-1])`",
    ),
)
scale_queries_exercise.probe("one query of 4 features", np.array([[8.0, -4.0, 2.0, 1.0]]))
scale_queries_exercise.probe("two queries of 3 features", np.array([[3.0, -6.0, 1.5], [0.5, 2, 9]]))
scale_queries_exercise.probe("more queries than features", normal(5, 2))
scale_queries_exercise.probe("a batch of two sentences", normal(2, 3, 7))
scale_queries_exercise.probe("two batch axes", normal(2, 4, 3, 5))
scale_queries_exercise.probe("queries of one feature, which stay", np.array([[1.5], [-2.0]]))
scale_queries_exercise.probe("positive queries", np.array([[30.0, 25.5, 1.0, 2.0, 0.25]]))


@scale_queries_exercise.mistake
def fourth_root_of_d_k(Q):
    """The queries are divided by the fourth root of d_k: that is for queries and keys scaled
    alike. Here the keys stay as they are, so the queries take the whole √d_k."""
    return Q / Q.shape[-1] ** 0.25


@scale_queries_exercise.mistake
def divided_by_the_width(Q):
    """The queries are divided by d_k itself: the square root is missing. Divide by √d_k."""
    return Q / Q.shape[-1]


@scale_queries_exercise.mistake
def root_of_the_number_of_tokens(Q):
    """It divides by the root of the number of queries, Q.shape[-2]. d_k is the number of features,
    the last axis: Q.shape[-1]."""
    return Q / math.sqrt(Q.shape[-2])


@scale_queries_exercise.mistake
def root_of_axis_1_of_Q(Q):
    """Q.shape[1] is the number of features without a batch only; with one it counts tokens. d_k
    is the last axis: Q.shape[-1]."""
    return Q / math.sqrt(Q.shape[1])


@scale_queries_exercise.mistake
def root_of_axis_0(Q):
    """It divides by the root of len(Q), the number of queries or sentences. d_k is the number of
    features, the last axis: Q.shape[-1]."""
    return Q / math.sqrt(len(Q))


@scale_queries_exercise.mistake
def root_of_the_size(Q):
    """It divides by the root of Q.size, all numbers together. d_k is the number of features, the
    last axis: Q.shape[-1]."""
    return Q / math.sqrt(Q.size)


@scale_queries_exercise.mistake
def multiplied_by_the_root(Q):
    """The queries are multiplied by √d_k, which makes the scores larger. Divide by it."""
    return Q * math.sqrt(Q.shape[-1])


@scale_queries_exercise.mistake
def width_to_the_power_one_halved(Q):
    """In Python d ** 1/2 means (d ** 1) / 2: the precedence is not what it looks like. Put
    brackets, d ** (1/2), or write math.sqrt(d)."""
    return Q / (Q.shape[-1] ** 1 / 2)


@scale_queries_exercise.mistake
def quotient_rounded_down(Q):
    """// rounds down to a whole number. Use /, which keeps the decimals."""
    return Q // math.sqrt(Q.shape[-1])


@scale_queries_exercise.mistake
def root_cut_to_a_whole_number(Q):
    """The root of d_k is cut to a whole number (int, isqrt), which is right for square numbers
    only. Keep its decimals: math.sqrt."""
    return Q / math.isqrt(Q.shape[-1])


@scale_queries_exercise.mistake
def unit_length(Q):
    """Each query is divided by its own length (norm), which makes all of them equally long. Divide
    all by the same number, √d_k."""
    return Q / np.linalg.norm(Q, axis=-1, keepdims=True)


@scale_queries_exercise.mistake
def own_deviation(Q):
    """The queries are divided by their own standard deviation (std). The divisor depends on d_k
    alone: √d_k."""
    return Q / Q.std(axis=-1, keepdims=True)


@scale_queries_exercise.mistake
def root_of_the_queries(Q):
    """The root covers the queries as well, so negative features give nan. Take the root of d_k
    only."""
    return np.sqrt(Q / Q.shape[-1])


@scale_queries_exercise.mistake
def queries_unchanged(Q):
    """The queries come back as they were. Divide them by √d_k, the root of their last axis."""
    return Q + 0.0


@scale_queries_exercise.mistake
def scores_instead_of_queries(Q):
    """This is a table of scores, queries with queries. Return the queries, in the shape of Q, each
    divided by √d_k."""
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
    task="Say how large a score typically is when the features of queries and keys have mean 0 and "
    "standard deviation sigma instead of 1. Return one number, the standard deviation of q·k, "
    "without drawing anything at random.",
    hints=(
        "What is the deviation of one product of two features, and how do d_k of them add up?",
        "Both factors are sigma times as large, so a product is sigma² times as large. The "
        "variances add up, so the deviation of the sum grows with the root of d_k.",
        "`return sigma**2 * np.sqrt(d_k)`",
    ),
)
score_deviation_exercise.probe("sigma 1, 9 features", 1.0, 9)
score_deviation_exercise.probe("sigma 3, 64 features", 3.0, 64)
score_deviation_exercise.probe("sigma 2, 1 feature", 2.0, 1)
score_deviation_exercise.probe("sigma 0.5, 5 features", 0.5, 5)
score_deviation_exercise.probe("sigma 1.5, 512 features", 1.5, 512)
score_deviation_exercise.probe("sigma 0, every score 0", 0.0, 7)


@score_deviation_exercise.mistake
def sigma_not_squared(sigma, d_k):
    """sigma appears once. A product has two factors, the feature of the query and that of the key,
    each sigma times as large: sigma squared."""
    return sigma * math.sqrt(d_k)


@score_deviation_exercise.mistake
def root_missing(sigma, d_k):
    """The root is missing: the variance grows as d_k, the deviation as √d_k."""
    return sigma**2 * d_k


@score_deviation_exercise.mistake
def variance_returned(sigma, d_k):
    """This is the variance, sigma⁴ d_k. The deviation is its square root."""
    return sigma**4 * d_k


@score_deviation_exercise.mistake
def variance_of_one_factor(sigma, d_k):
    """This is sigma d_k. Both factors count, so sigma is squared, and of d_k the square root is
    taken."""
    return sigma * d_k


@score_deviation_exercise.mistake
def sigma_ignored(sigma, d_k):
    """sigma is ignored: √d_k is the deviation for sigma = 1 only. Multiply by sigma squared."""
    return math.sqrt(d_k)


@score_deviation_exercise.mistake
def width_ignored(sigma, d_k):
    """d_k is ignored: sigma² is the deviation of a single product. The sum of d_k products has √d_k
    times as much."""
    return sigma**2


@score_deviation_exercise.mistake
def sigma_doubled(sigma, d_k):
    """sigma is doubled, but must be squared: sigma ** 2, one factor from the query and one from
    the key."""
    return 2 * sigma * math.sqrt(d_k)


@score_deviation_exercise.mistake
def sigma_to_the_fourth(sigma, d_k):
    """The root is taken of d_k only: sigma⁴ belongs to the variance, sigma² to the deviation."""
    return sigma**4 * math.sqrt(d_k)


@score_deviation_exercise.mistake
def root_of_sigma(sigma, d_k):
    """The root covers sigma too, without its square: it must be sigma², outside the root."""
    return math.sqrt(sigma * d_k)


@score_deviation_exercise.mistake
def brackets_missing(sigma, d_k):
    """In Python d_k ** 1/2 means (d_k ** 1) / 2, and d_k ** -1/2 means (d_k ** -1) / 2: powers take
    precedence. Put brackets, d_k ** (1/2), or write d_k ** 0.5 (math.sqrt)."""
    return sigma**2 * d_k**1 / 2


@score_deviation_exercise.mistake
def divided_by_the_root(sigma, d_k):
    """It divides by √d_k. A sum of more products is larger: multiply by √d_k."""
    return sigma**2 / math.sqrt(d_k)


@score_deviation_exercise.mistake
def sigma_and_root_added(sigma, d_k):
    """sigma² and √d_k are added. Multiply them: each of the products is sigma² times as large."""
    return sigma**2 + math.sqrt(d_k)


@score_deviation_exercise.mistake
def root_of_the_width_cut(sigma, d_k):
    """The root of d_k is cut to a whole number (int, isqrt). Keep its decimals: math.sqrt."""
    return sigma**2 * math.isqrt(d_k)


@score_deviation_exercise.mistake
def divided_by_sigma(sigma, d_k):
    """It divides by sigma. Larger features make larger scores: multiply by sigma squared."""
    return math.sqrt(d_k) / sigma**2 if sigma else math.inf
