"""Notebook 14: what to do with the vectors, the weights and the tokens of a real model."""

import functools
import unicodedata
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(14)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def divided_or_not(known: Exercise, reminder: str) -> Callable:
    """Register what goes wrong in a total or a count twice: divided by at least 1, and by 0 too."""

    def register(wrong: Callable) -> Callable:
        @functools.wraps(wrong)
        def with_care(*args):
            total, count = wrong(*args)
            return total / np.maximum(count, 1)

        def without_care(*args):
            total, count = wrong(*args)
            return np.divide(total, count)

        without_care.__name__ = f"{wrong.__name__}_and_divides_by_0"
        without_care.__doc__ = f"{wrong.__doc__} {reminder}"
        known.mistake(with_care)
        known.mistake(without_care)
        return wrong

    return register


# ---------------------------------------------------------------- mean_pool


def mean_pool(hidden: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """One vector for each sentence, the mean of its real tokens: (B, T, D), (B, T) bool → (B, D).

    Padding counts neither in the sum nor in the number of tokens, wherever it stands. A sentence
    without a real token gets zeros. Raises ValueError for a mask of another shape or type.
    Reimers and Gurevych (2019), Sentence-BERT.
    """
    if is_real.shape != hidden.shape[:2] or is_real.dtype != bool:
        given = f"{is_real.dtype} {is_real.shape}"
        raise ValueError(f"is_real is {given}, but must be bool {hidden.shape[:2]}")
    total = np.where(is_real[..., None], hidden, 0).sum(axis=1)  # (B, D)
    count = is_real.sum(axis=1)  # (B,)
    return total / np.maximum(count, 1)[:, None]


pooling = Exercise(
    mean_pool,
    notebook="14",
    level=2,
    minutes=10,
    task="Make one vector of each sentence: the mean of its real tokens, where `is_real` is True. "
    "Padding may stand on either side and counts nowhere; a sentence without a real token gets "
    "zeros.",
    hints=(
        "A sentence has three real tokens and two of padding. What must be added up, and by what "
        "must it be divided?",
        "Set the vectors of padding to 0 with is_real[..., None], which has the shape (B, T, 1), "
        "and sum over the tokens, axis=1. Divide by the number of real tokens, and by 1 where "
        "there is none.",
        "`total = (hidden * is_real[..., None]).sum(axis=1)`, `count = is_real.sum(axis=1)`, "
        "then `return total / np.maximum(count, 1)[:, None]`",
    ),
)
PENCIL = np.array([[[1.0, 2.0], [3.0, 6.0], [8.0, 1.0]]])
CUBE = np.array([[True, True, False], [True, False, True], [False, True, True]])


def lengths(T: int, *real: int, left: bool = False) -> np.ndarray:
    """Which tokens are real in sentences of these lengths: (B, T), padding behind or before."""
    made = np.arange(T) < np.array(real)[:, None]
    return made[:, ::-1].copy() if left else made


def padded(is_real: np.ndarray, D: int) -> np.ndarray:
    """Vectors of tokens around 1, with numbers of ±100 where there is padding."""
    hidden = normal(*is_real.shape, D) + 1
    return np.where(is_real[..., None], hidden, 100 * np.sign(hidden)).astype(np.float32)


pooling.probe("one sentence of two words and one padding", PENCIL, np.array([[True, True, False]]))
pooling.probe("one sentence without padding", PENCIL, np.array([[True, True, True]]))
pooling.probe("a batch of two sentences", padded(lengths(4, 4, 2), 3), lengths(4, 4, 2))
pooling.probe(
    "padding on the left", padded(lengths(5, 5, 3, left=True), 3), lengths(5, 5, 3, left=True)
)
pooling.probe("as many sentences, tokens and features", padded(CUBE, 3), CUBE)
pooling.probe(
    "padding between words",
    padded(np.array([[True, False, True, True], [False, True, False, True]]), 6),
    np.array([[True, False, True, True], [False, True, False, True]]),
)
pooling.probe("three sentences of one word each", normal(3, 1, 4), np.ones((3, 1), bool))
pooling.probe(
    "a real token of zeros",
    np.array([[[4.0, 2.0], [0.0, 0.0], [7.0, 7.0], [0.0, 0.0]]]),
    np.array([[True, True, False, False]]),
)
pooling.probe("five sentences", padded(lengths(7, 3, 7, 1, 5, 2), 4), lengths(7, 3, 7, 1, 5, 2))
pooling.probe("a sentence of padding alone", padded(lengths(3, 0, 2, 3), 3), lengths(3, 0, 2, 3))

both = divided_or_not(
    pooling,
    "And divide by at least 1, np.maximum(count, 1): a sentence without a real token has 0 / 0, "
    "which is nan.",
)


def masked(hidden: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """The vectors with zeros for padding."""
    return np.where(is_real[..., None], hidden, 0)


def counted(is_real: np.ndarray) -> np.ndarray:
    """The number of real tokens of each sentence, (B, 1)."""
    return is_real.sum(axis=1, keepdims=True)


@pooling.mistake
def divides_by_0(hidden, is_real):
    """A sentence without a real token divides 0 by 0, which is nan. Divide by at least 1,
    np.maximum(count, 1), so that it gets zeros."""
    return masked(hidden, is_real).sum(axis=1) / counted(is_real)


@pooling.mistake
def padding_not_left_out(hidden, is_real):
    """is_real is not used: the mean runs over all T tokens, padding too. Sum only the real tokens,
    hidden * is_real[..., None], and divide by their number."""
    return hidden.mean(axis=1)


@pooling.mistake
def divided_by_all_tokens(hidden, is_real):
    """The sum leaves the padding out, but it is divided by T, the number of all tokens: zeros count
    in .mean(axis=1) too. Divide by the number of real tokens, is_real.sum(axis=1)."""
    return masked(hidden, is_real).mean(axis=1)


@both
def padding_in_the_sum(hidden, is_real):
    """The number of real tokens is right, but padding is still in the sum. Set it to zero first:
    hidden * is_real[..., None]."""
    return hidden.sum(axis=1), counted(is_real)


@both
def mask_inverted(hidden, is_real):
    """The mask is inverted: the padding is averaged, and the real tokens are left out. True in
    is_real marks a token that counts."""
    return masked(hidden, ~is_real).sum(axis=1), counted(~is_real)


@both
def mask_inverted_in_the_sum(hidden, is_real):
    """The mask is inverted in the sum: the vectors of padding are added up, and divided by the
    number of real tokens. Keep the vectors where is_real is True, and set the others to 0."""
    return masked(hidden, ~is_real).sum(axis=1), counted(is_real)


@both
def mask_inverted_in_the_count(hidden, is_real):
    """The mask is inverted in the count: the sum is right, but divided by the number of padding
    tokens. Divide by the number of real ones, is_real.sum(axis=1)."""
    return masked(hidden, is_real).sum(axis=1), counted(~is_real)


@pooling.mistake
def not_divided(hidden, is_real):
    """The sum is returned, not the mean: divide by the number of real tokens of each sentence,
    is_real.sum(axis=1)."""
    return masked(hidden, is_real).sum(axis=1)


@pooling.mistake
def one_count_for_the_batch(hidden, is_real):
    """It divides by the number of real tokens in the whole batch, is_real.sum() without an axis.
    Each sentence has its own: is_real.sum(axis=1)."""
    return masked(hidden, is_real).sum(axis=1) / is_real.sum()


@pooling.mistake
def count_of_the_longest(hidden, is_real):
    """Every sum is divided by the length of the longest sentence, counts.max(). Divide each by its
    own number of real tokens, is_real.sum(axis=1)."""
    return masked(hidden, is_real).sum(axis=1) / counted(is_real).max()


@both
def count_of_the_first(hidden, is_real):
    """Every sum is divided by the number of real tokens in the first sentence, is_real[0]. Each has
    its own: is_real.sum(axis=1)."""
    return masked(hidden, is_real).sum(axis=1), is_real[0].sum()


@both
def mask_of_the_first_sentence(hidden, is_real):
    """The mask of the first sentence, is_real[0], serves for the whole batch. Each sentence has its
    own row of is_real."""
    same = np.repeat(is_real[:1], len(is_real), axis=0)
    return masked(hidden, same).sum(axis=1), counted(same)


@both
def count_along_the_batch(hidden, is_real):
    """The real tokens are counted along axis 0, over the sentences, instead of axis=1, the tokens
    of one sentence."""
    return masked(hidden, is_real).sum(axis=1), is_real.sum(axis=0)[:, None]


@both
def mean_over_the_batch(hidden, is_real):
    """It runs along axis 0, the batch, so sentences are mixed and one vector for each place comes
    out, (T, D). Sum over the tokens, axis=1."""
    return masked(hidden, is_real).sum(axis=0), is_real.sum(axis=0)[:, None]


@pooling.mistake
def mean_over_the_features(hidden, is_real):
    """It runs along the last axis, the features, so one number for each token comes out, (B, T).
    Sum over the tokens, axis=1."""
    return masked(hidden, is_real).mean(axis=-1)


@pooling.mistake
def all_sentences_in_one(hidden, is_real):
    """All sentences of the batch become one vector, (D,): hidden[is_real] puts all real tokens in
    one list. Keep them apart: sum over axis=1 alone."""
    return hidden[is_real].mean(axis=0)


@both
def only_the_first_sentence(hidden, is_real):
    """Only the first sentence is pooled, and the batch is gone: is the `return` inside the loop?
    Give one vector for each sentence, (B, D)."""
    return masked(hidden, is_real)[0].sum(axis=0), is_real[0].sum()


@both
def first_tokens(hidden, is_real):
    """It takes the first n tokens, hidden[b, :n], as if padding always stood behind. Padding may
    stand on the left: choose by is_real itself."""
    count = counted(is_real)
    front = np.arange(is_real.shape[1]) < count
    return masked(hidden, front).sum(axis=1), count


@both
def last_tokens(hidden, is_real):
    """It takes the last n tokens, as if padding always stood before. Padding may stand on the
    right, behind the words: choose by is_real itself."""
    count = counted(is_real)
    back = np.arange(is_real.shape[1])[::-1] < count
    return masked(hidden, back).sum(axis=1), count


@pooling.mistake
def first_token_alone(hidden, is_real):
    """It returns the first token's vector, hidden[:, 0], the [CLS] token of some models. Needed is
    the mean over all real tokens."""
    return hidden[:, 0]


@pooling.mistake
def last_token_alone(hidden, is_real):
    """It returns the last token's vector, hidden[:, -1], which may be padding. Needed is the mean
    over all real tokens."""
    return hidden[:, -1]


@pooling.mistake
def last_real_token_alone(hidden, is_real):
    """It returns the vector of each sentence's last real token. Needed is the mean over all its
    real tokens."""
    last = is_real.shape[1] - 1 - is_real[:, ::-1].argmax(axis=1)
    return hidden[np.arange(len(hidden)), last]


@pooling.mistake
def largest_instead_of_mean(hidden, is_real):
    """It takes the maximum of each feature over the real tokens (max pooling). Needed is the mean:
    the sum divided by the number of real tokens."""
    return np.where(is_real[..., None], hidden, -np.inf).max(axis=1)


@pooling.mistake
def largest_with_zeros(hidden, is_real):
    """It takes the maximum over the tokens (max pooling), with zeros for padding. Needed is the
    mean: the sum divided by the number of real tokens."""
    return masked(hidden, is_real).max(axis=1)


@both
def median_instead_of_mean(hidden, is_real):
    """It takes the median of the real tokens. Needed is their mean: the sum divided by their
    number."""
    kept = [np.median(x[m], axis=0) if m.any() else np.zeros(x.shape[1]) for x, m in
            zip(hidden, is_real, strict=True)]  # fmt: skip
    return np.stack(kept) * counted(is_real), counted(is_real)


@both
def divided_by_the_root(hidden, is_real):
    """The sum is divided by the square root of the number of real tokens. The mean divides by the
    number itself."""
    return masked(hidden, is_real).sum(axis=1), np.sqrt(counted(is_real))


@pooling.mistake
def one_too_many(hidden, is_real):
    """It divides by the number of real tokens plus 1, against 0 / 0, and every mean becomes too
    small. Divide by np.maximum(count, 1) instead of count + 1."""
    return masked(hidden, is_real).sum(axis=1) / (counted(is_real) + 1)


@both
def one_too_few(hidden, is_real):
    """It divides by the number of real tokens minus 1. A mean divides by the number itself: count,
    instead of count - 1."""
    return masked(hidden, is_real).sum(axis=1), counted(is_real) - 1


@both
def first_place_left_out(hidden, is_real):
    """The first token, the [CLS] of some models, is left out. Every real token counts, also the
    first: is_real says which."""
    rest = is_real & (np.arange(is_real.shape[1]) > 0)
    return masked(hidden, rest).sum(axis=1), counted(rest)


@both
def separators_left_out(hidden, is_real):
    """The first and the last real token of each sentence, [CLS] and [SEP], are left out. All real
    tokens count: is_real says which."""
    before = np.cumsum(is_real, axis=1)
    inner = is_real & (before > 1) & (before < counted(is_real))
    return masked(hidden, inner).sum(axis=1), counted(inner)


@pooling.mistake
def zero_vectors_taken_for_padding(hidden, is_real):
    """is_real is not used: a vector of zeros is taken for padding. Padding may hold any numbers,
    and a real token zeros: choose by is_real."""
    filled = (hidden != 0).any(axis=-1)
    return hidden.sum(axis=1) / np.maximum(counted(filled), 1)


@both
def zeros_not_counted(hidden, is_real):
    """Each feature is divided by how many numbers in it are not zero. Divide by the number of real
    tokens, is_real.sum(axis=1): a real token may hold zeros."""
    kept = masked(hidden, is_real)
    return kept.sum(axis=1), (kept != 0).sum(axis=1)


@pooling.mistake
def length_made_1(hidden, is_real):
    """The mean is then divided by its length (normalised to length 1). Return the mean as it is:
    the cosine divides by the lengths later."""
    mean = mean_pool(hidden, is_real)
    return mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)


@pooling.mistake
def length_made_1_and_divides_by_0(hidden, is_real):
    """The mean is then divided by its length (normalised to length 1). Return the mean as it is;
    and divide by at least 1, since a sentence without a real token has 0 / 0, which is nan."""
    mean = masked(hidden, is_real).sum(axis=1) / counted(is_real)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


@both
def token_axis_kept(hidden, is_real):
    """The axis of the tokens stays, (B, 1, D): leave keepdims=True out of the sum of the vectors,
    so that the result is (B, D)."""
    return masked(hidden, is_real).sum(axis=1)[:, None], counted(is_real)[:, None]


@pooling.mistake
def rounded_down(hidden, is_real):
    """The division is // and rounds down to whole numbers. A mean needs /."""
    return masked(hidden, is_real).sum(axis=1) // np.maximum(counted(is_real), 1)


@both
def mask_without_a_feature_axis(hidden, is_real):
    """hidden * is_real lines the tokens of the mask up with the features, or does not fit. The mask
    needs a last axis of length 1, for the features: is_real[..., None], (B, T, 1)."""
    return (hidden * is_real).sum(axis=1), counted(is_real)


@both
def mask_with_the_axis_in_the_middle(hidden, is_real):
    """is_real[:, None] has the shape (B, 1, T), so it meets the features instead of the tokens.
    The new axis comes last: is_real[..., None], (B, T, 1)."""
    return (hidden * is_real[:, None]).sum(axis=1), counted(is_real)


@both
def count_without_a_feature_axis(hidden, is_real):
    """The counts, (B,), line up with the features of the sums, (B, D), or do not fit. Keep an axis
    for them: is_real.sum(axis=1, keepdims=True), (B, 1)."""
    return masked(hidden, is_real).sum(axis=1), is_real.sum(axis=1)


@both
def mask_and_count_without_a_feature_axis(hidden, is_real):
    """Mask and counts lack an axis for the features, so they line up with the features or do not
    fit. Use is_real[..., None], (B, T, 1), and is_real.sum(axis=1, keepdims=True), (B, 1)."""
    return (hidden * is_real).sum(axis=1), is_real.sum(axis=1)


@pooling.mistake
def padding_set_to_nan(hidden, is_real):
    """Padding is set to nan, and .mean(axis=1) of it is nan. Set it to 0, sum, and divide by the
    number of real tokens, is_real.sum(axis=1)."""
    return np.where(is_real[..., None], hidden, np.nan).mean(axis=1)


@pooling.mistake
def mask_as_soft_weights(hidden, is_real):
    """A softmax of the mask still gives padding some weight. Padding counts nothing: weights of
    1 / count for real tokens, and 0 for padding."""
    e = np.exp(is_real.astype(float))[..., None]
    return (e * hidden).sum(axis=1) / e.sum(axis=1)


# ---------------------------------------------------------------- cosine_similarity


def unit(x: np.ndarray) -> np.ndarray:
    """Each row divided by its length; a row of zeros stays."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length == 0, 1, length)


def cosine_similarity(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The cosine of each row of A with each row of B: (M, D), (N, D) → (M, N).

    A row of zeros has no direction: its cosine is 0 with everything. Raises ValueError where the
    widths differ. Salton, Wong and Yang (1975).
    """
    if A.shape[-1] != B.shape[-1]:
        raise ValueError(f"A is {A.shape[-1]} wide and B {B.shape[-1]}, but they must be the same")
    return unit(A) @ unit(B).T


cosine = Exercise(
    cosine_similarity,
    notebook="14",
    level=1,
    minutes=10,
    task="Compare each row of A with each row of B by the cosine of the angle between them, all "
    "pairs at once. A row of zeros has no direction: its cosine is 0 with everything.",
    hints=(
        "What does the dot product of two vectors of length 1 tell you?",
        "Divide each row by its length, np.linalg.norm(A, axis=1, keepdims=True), and by 1 where "
        "that is 0. Then all dot products are one product of matrices.",
        "`a, b = (np.linalg.norm(M, axis=1, keepdims=True) for M in (A, B))`, then `return (A "
        "/ np.where(a == 0, 1, a)) @ (B / np.where(b == 0, 1, b)).T`",
    ),
)
cosine.probe("one pair", np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]]))
cosine.probe(
    "two rows and three rows",
    np.array([[3.0, 4.0], [2.0, 0.0]]),
    np.array([[1.0, 0.0], [0.0, 5.0], [-6.0, -8.0]]),
)
cosine.probe("four rows and two rows", normal(4, 3) + 0.5, 3 * normal(2, 3))
cosine.probe("as many rows as features", 2 * normal(3, 3), normal(3, 3) + 1)
cosine.probe("long and short vectors", normal(3, 5) * np.float32(1000), normal(4, 5) / 100)
cosine.probe("very short vectors", normal(2, 4) / 1000, normal(3, 4) / 1000)
cosine.probe("the same rows twice", *2 * [normal(4, 6)])
cosine.probe("384 features", normal(5, 384) + 0.3, normal(6, 384) - 0.3)
cosine.probe(
    "a row of zeros on either side",
    np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]),
    np.array([[0.0, 0.0, 0.0], [2.0, 1.0, -2.0], [0.0, 3.0, 4.0]]),
)
cosine.probe(
    "rows and a feature of zeros",
    np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, -3.0, 0.0]]),
    np.array([[2.0, 1.0, 0.0], [4.0, 3.0, 0.0], [0.0, 0.0, 0.0]]),
)

ZEROS = (
    "And divide by 1 where a length is 0: a row of zeros has 0 / 0, which is nan, and its cosine "
    "is 0."
)


def over(x: np.ndarray, length: np.ndarray) -> np.ndarray:
    """A quotient with 1 for a divisor of 0."""
    return x / np.where(length == 0, 1, length)


def norm(x: np.ndarray) -> np.ndarray:
    """The length of each row, (N, 1)."""
    return np.linalg.norm(x, axis=-1, keepdims=True)


def zeros_or_not(wrong: Callable) -> Callable:
    """Register what goes wrong twice: rows of zeros looked after, and divided by 0."""

    @functools.wraps(wrong)
    def with_care(A, B):
        return wrong(A, B, over)

    def without_care(A, B):
        return wrong(A, B, np.divide)

    without_care.__name__ = f"{wrong.__name__}_and_divides_by_0"
    without_care.__doc__ = f"{wrong.__doc__} {ZEROS}"
    cosine.mistake(with_care)
    cosine.mistake(without_care)
    return wrong


@cosine.mistake
def zeros_become_nan(A, B):
    """A row of zeros has length 0, and 0 / 0 is nan. Divide by 1 there, np.where(length == 0, 1,
    length), or by at least a tiny number: its cosine is 0 with everything."""
    return (A / norm(A)) @ (B / norm(B)).T


@cosine.mistake
def dot_products(A, B):
    """These are dot products: long vectors seem alike because they are long. Divide by both
    lengths, the norms of the rows of A and of B."""
    return A @ B.T


@zeros_or_not
def only_A_made_1_long(A, B, divide):
    """Only the rows of A are divided by their length (norm). Divide those of B as well."""
    return divide(A, norm(A)) @ B.T


@zeros_or_not
def only_B_made_1_long(A, B, divide):
    """Only the rows of B are divided by their length (norm). Divide those of A as well."""
    return A @ divide(B, norm(B)).T


@zeros_or_not
def root_forgotten(A, B, divide):
    """It divides by the squared lengths: the square root is missing, or the rows, made 1 long, are
    divided by the lengths twice. A length (norm) is np.sqrt((A ** 2).sum(axis=1)); divide by it
    once."""
    return divide(A, norm(A) ** 2) @ divide(B, norm(B) ** 2).T


@zeros_or_not
def root_of_the_lengths(A, B, divide):
    """It divides by the square roots of the lengths: np.linalg.norm is the length already, without
    another np.sqrt."""
    return divide(A, norm(A) ** 0.5) @ divide(B, norm(B) ** 0.5).T


@zeros_or_not
def rows_and_columns_swapped(A, B, divide):
    """The result is transposed, (N, M): rows belong to A and columns to B, so A comes first in the
    product, A @ B.T."""
    return divide(B, norm(B)) @ divide(A, norm(A)).T


@zeros_or_not
def pair_by_pair(A, B, divide):
    """Row i of A meets only row i of B, so one number for each pair comes out, (M,), or the shapes
    do not fit. Needed are all pairs, (M, N): A @ B.T."""
    return divide((A * B).sum(axis=-1), (norm(A) * norm(B))[:, 0])


@zeros_or_not
def lengths_of_the_columns(A, B, divide):
    """The lengths run along axis 0, over the rows: each feature is divided by its own length. Each
    row needs its length: axis=1, keepdims=True."""
    a, b = (np.linalg.norm(x, axis=0, keepdims=True) for x in (A, B))
    return divide(A, a) @ divide(B, b).T


@cosine.mistake
def one_length_for_all_rows(A, B):
    """np.linalg.norm without an axis gives one length for the whole matrix. Each row needs its own:
    axis=1, keepdims=True."""
    return A @ B.T / (np.linalg.norm(A) * np.linalg.norm(B))


@zeros_or_not
def sums_for_lengths(A, B, divide):
    """Each row is divided by its sum. Divide by its length, the square root of the sum of squares:
    np.linalg.norm(A, axis=1, keepdims=True)."""
    a, b = (x.sum(axis=-1, keepdims=True) for x in (A, B))
    return divide(A, a) @ divide(B, b).T


@zeros_or_not
def sums_of_absolute_values(A, B, divide):
    """Each row is divided by the sum of its absolute values (L1 norm, ord=1). The cosine needs the
    L2 norm: the square root of the sum of squares."""
    a, b = (np.abs(x).sum(axis=-1, keepdims=True) for x in (A, B))
    return divide(A, a) @ divide(B, b).T


@zeros_or_not
def largest_for_lengths(A, B, divide):
    """Each row is divided by its largest absolute value. Divide by its length (norm), the square
    root of the sum of squares."""
    a, b = (np.abs(x).max(axis=-1, keepdims=True) for x in (A, B))
    return divide(A, a) @ divide(B, b).T


@zeros_or_not
def lengths_added(A, B, divide):
    """The dot products are divided by the sum of both lengths. Divide by their product, |a| |b|:
    multiply the norms instead of adding them."""
    return divide(A @ B.T, norm(A) + norm(B).T)


@zeros_or_not
def lengths_of_A_for_B(A, B, divide):
    """The rows of B are divided by the lengths of A, or the shapes do not fit. Each is divided by
    its own length: the norm of B for B."""
    return divide(A, norm(A)) @ divide(B, norm(A)).T


@zeros_or_not
def lengths_without_an_axis(A, B, divide):
    """Both norms have the shape (M,) and (N,) and are multiplied pair by pair, or do not fit. Those
    of A go down the rows: norms of A as (M, 1), with keepdims=True or [:, None]."""
    return divide(A @ B.T, (norm(A) * norm(B))[:, 0])


@zeros_or_not
def lengths_along_the_features(A, B, divide):
    """The lengths, (M,) and (N,), line up with the features of the rows, or do not fit. Keep an
    axis for them: np.linalg.norm(A, axis=1, keepdims=True), (M, 1)."""
    return divide(A, norm(A)[:, 0]) @ divide(B, norm(B)[:, 0]).T


@zeros_or_not
def pairs_along_another_axis(A, B, divide):
    """The pairs are summed along another axis than the features, so a number for each feature comes
    out, (M, D). Sum over the last axis: axis=-1 (dim=-1)."""
    pairs = A[:, None] * B[None]  # (M, N, D)
    lengths = np.sqrt((A[:, None] ** 2).sum(axis=1) * (B[None] ** 2).sum(axis=1))
    return divide(pairs.sum(axis=1), lengths)


@zeros_or_not
def lengths_the_wrong_way_round(A, B, divide):
    """The lengths stand the wrong way round: those of A along the columns, those of B down the
    rows, or they do not fit. Rows belong to A: its norms need the shape (M, 1), those of B
    (1, N)."""
    return divide(A @ B.T, norm(A).T * norm(B))


@zeros_or_not
def mean_for_the_sum(A, B, divide):
    """The products are averaged over the features instead of summed: a factor 1/D too small. Take
    the sum, that is the dot product."""
    return divide(A, norm(A)) @ divide(B, norm(B)).T / A.shape[-1]


@cosine.mistake
def scaled_dot_products(A, B):
    """The dot products are divided by √D, as attention scores are. Divide by both lengths instead,
    the norms of the two rows."""
    return A @ B.T / np.sqrt(A.shape[-1])


@cosine.mistake
def normalised_afterwards(A, B):
    """The rows of the result are made 1 long. Divide the rows of A and of B by their lengths
    (norm) before the product."""
    return over(A @ B.T, norm(A @ B.T))


@cosine.mistake
def softmax_of_the_cosines(A, B):
    """A softmax turns the rows into weights that sum to 1. Cosines are asked for, from -1 to 1:
    leave the softmax out."""
    e = np.exp(cosine_similarity(A, B))
    return e / e.sum(axis=-1, keepdims=True)


@zeros_or_not
def distance(A, B, divide):
    """It returns 1 - cosine, the cosine distance, which is 0 for the same direction. The similarity
    is the cosine itself."""
    return 1 - divide(A, norm(A)) @ divide(B, norm(B)).T


@zeros_or_not
def angle(A, B, divide):
    """It returns the angle, by np.arccos. The similarity is its cosine: leave arccos out."""
    return np.arccos(np.clip(divide(A, norm(A)) @ divide(B, norm(B)).T, -1, 1))


@zeros_or_not
def moved_to_0_to_1(A, B, divide):
    """The cosine is moved to 0 … 1, (1 + cos) / 2. Return it as it is, from -1 to 1."""
    return (1 + divide(A, norm(A)) @ divide(B, norm(B)).T) / 2


@zeros_or_not
def sign_lost(A, B, divide):
    """The sign is lost, by np.abs: opposite vectors have the cosine -1. Leave it negative."""
    return np.abs(divide(A, norm(A)) @ divide(B, norm(B)).T)


@zeros_or_not
def negative_ones_cut_off(A, B, divide):
    """Negative cosines are cut off at 0. Opposite vectors have the cosine -1: leave it negative."""
    return np.maximum(divide(A, norm(A)) @ divide(B, norm(B)).T, 0)


@zeros_or_not
def squared(A, B, divide):
    """The cosine is squared: a square root of the squared lengths is missing, or ** 2 is one too
    many, and the sign is lost."""
    return (divide(A, norm(A)) @ divide(B, norm(B)).T) ** 2


@zeros_or_not
def mean_subtracted(A, B, divide):
    """The mean of each row is subtracted first, which gives the correlation. The cosine takes the
    vectors as they are, without centring."""
    A, B = (x - x.mean(axis=-1, keepdims=True) for x in (A, B))
    return divide(A, norm(A)) @ divide(B, norm(B)).T


@cosine.mistake
def euclidean_distance(A, B):
    """It returns how far the vectors are apart, |a - b| (Euclidean distance). Needed is the cosine:
    their dot product divided by both lengths."""
    return np.linalg.norm(A[:, None] - B[None], axis=-1)


@cosine.mistake
def inverse_distance(A, B):
    """It returns 1 / (1 + distance). Needed is the cosine: the dot product divided by both
    lengths (norms)."""
    return 1 / (1 + np.linalg.norm(A[:, None] - B[None], axis=-1))


@zeros_or_not
def A_with_itself(A, B, divide):
    """A is compared with itself and B is ignored: the second factor must be the rows of B."""
    return divide(A, norm(A)) @ divide(A, norm(A)).T


@zeros_or_not
def B_with_itself(A, B, divide):
    """B is compared with itself and A is ignored: the first factor must be the rows of A."""
    return divide(B, norm(B)) @ divide(B, norm(B)).T


@zeros_or_not
def B_not_transposed(A, B, divide):
    """B is not transposed: the product multiplies rows of A with columns of B, or does not fit. The
    dot products of rows are A @ B.T."""
    return divide(A, norm(A)) @ divide(B, norm(B))


@cosine.mistake
def small_number_added(A, B):
    """A small number (eps) is added to the divisor, which makes short vectors seem less alike. Look
    after lengths of 0 alone: np.where(length == 0, 1, length), or np.maximum with a tiny one."""
    return A @ B.T / (norm(A) * norm(B).T + 1e-8)


@cosine.mistake
def larger_small_number_added(A, B):
    """A small number (eps) is added to the lengths, which makes short vectors seem less alike. Look
    after lengths of 0 alone: np.where(length == 0, 1, length), or np.maximum with a tiny one."""
    return (A / (norm(A) + 1e-6)) @ (B / (norm(B) + 1e-6)).T


@cosine.mistake
def zeros_count_as_alike(A, B):
    """A row of zeros gets the cosine 1, or with another number for nan. It has no direction: 0."""
    return np.nan_to_num((A / norm(A)) @ (B / norm(B)).T, nan=1.0)


# ---------------------------------------------------------------- head_scores


def head_scores(weights: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How much each head attends as `wanted` says: (L, H, T, T), (T, T) bool → (L, H).

    Of the queries that have a wanted key (True in their row), the mean share of attention that
    goes to their wanted keys, 0 to 1; 0 for all heads if no query has one. Raises ValueError for
    a mask of another shape or type. Clark et al. (2019), What does BERT look at?
    """
    if wanted.shape != weights.shape[-2:] or wanted.dtype != bool:
        given = f"{wanted.dtype} {wanted.shape}"
        raise ValueError(f"wanted is {given}, but must be bool {weights.shape[-2:]}")
    share = (weights * wanted).sum(axis=-1)  # (L, H, T), 0 for a query without a wanted key
    asking = wanted.any(axis=-1).sum()
    return share.sum(axis=-1) / max(asking, 1)


scoring = Exercise(
    head_scores,
    notebook="14",
    level=2,
    minutes=15,
    task="One function for every kind of head: `wanted[q, k]` is True where a head of that kind "
    "would look from query q. Give for each head the share of attention that a query spends on "
    "its wanted keys, averaged over the queries that have any; 0 if none has.",
    hints=(
        "For a head that looks at the token before: which entries of `wanted` are True, and how "
        "many queries have one?",
        "weights * wanted keeps the wanted weights. Sum over the keys gives one share for each "
        "query. Then take the mean over the queries with wanted.any(axis=-1) only.",
        "`share = (weights * wanted).sum(axis=-1)`, then `return share.sum(axis=-1) / "
        "max(wanted.any(axis=-1).sum(), 1)`",
    ),
)
SMALL = np.array(
    [
        [
            [[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.1, 0.6, 0.3]],
            [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.1, 0.4, 0.5]],
        ]
    ]
)


def heads(*shape: int) -> np.ndarray:
    """Attention weights, whose rows sum to 1."""
    e = np.exp(2 * normal(*shape, shape[-1]))
    return e / e.sum(axis=-1, keepdims=True)


def same_word(*ids: int) -> np.ndarray:
    """Where the same word stands elsewhere in the sentence."""
    row = np.array(ids)
    return (row[:, None] == row) & ~np.eye(len(ids), dtype=bool)


def column(T: int, *keys: int) -> np.ndarray:
    """These keys wanted by every query."""
    return np.zeros((T, T), bool) | np.isin(np.arange(T), keys)


def only(T: int, q: int, *keys: int) -> np.ndarray:
    """These keys wanted by one query alone."""
    made = np.zeros((T, T), bool)
    made[q, list(keys)] = True
    return made


scoring.probe("two heads, the token before", SMALL, np.eye(3, k=-1, dtype=bool))
scoring.probe("two heads, the last token", SMALL, column(3, 2))
scoring.probe("two layers of three heads, the token before", heads(2, 3, 5), np.eye(5, 5, -1) > 0)
scoring.probe("the token after", heads(3, 2, 4), np.eye(4, 4, 1) > 0)
scoring.probe("the query itself", heads(2, 4, 3), np.eye(3, dtype=bool))
scoring.probe("two separators", heads(2, 3, 6), column(6, 0, 5))
scoring.probe("the same word elsewhere", heads(3, 2, 7), same_word(4, 1, 4, 9, 1, 4, 5))
scoring.probe("one query alone has wanted keys", heads(2, 3, 5), only(5, 0, 1, 2, 4))
scoring.probe(
    "as many layers as heads and tokens",
    heads(3, 3, 3),
    np.array([[False, True, True], [False, False, False], [True, False, False]]),
)
scoring.probe("as many layers as tokens", heads(4, 2, 4), same_word(7, 7, 0, 7))
scoring.probe("all keys", heads(1, 3, 4), np.ones((4, 4), bool))
scoring.probe("no query has a wanted key", heads(2, 3, 4), np.zeros((4, 4), bool))

either = divided_or_not(
    scoring,
    "And divide by at least 1: where no query has a wanted key, 0 / 0 is nan, and the score is 0.",
)


def share_of(weights: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """What each query gives to its wanted keys, (L, H, T)."""
    return (weights * wanted).sum(axis=-1)


@scoring.mistake
def none_wanted_gives_nan(weights, wanted):
    """Where no query has a wanted key, it divides 0 by 0 (the mean of nothing), which is nan. The
    score is 0 there: divide by at least 1, max(count, 1)."""
    return share_of(weights, wanted).sum(axis=-1) / wanted.any(axis=-1).sum()


@scoring.mistake
def averaged_over_all_queries(weights, wanted):
    """The mean runs over all T queries, also those without a wanted key: the first token has none
    before it. Divide by the number of queries with one, wanted.any(axis=-1).sum()."""
    return share_of(weights, wanted).mean(axis=-1)


@either
def averaged_over_wanted_pairs(weights, wanted):
    """It divides by the number of wanted pairs, as weights[..., wanted].mean(axis=-1) does. A query
    may have several wanted keys: sum its weights over them, and average over queries."""
    return share_of(weights, wanted).sum(axis=-1), wanted.sum()


@either
def averaged_within_the_query(weights, wanted):
    """The weights of a query's wanted keys are averaged. Sum them over the keys, axis=-1: the score
    is the share of attention that goes to all of them. The mean is over queries."""
    several = np.maximum(wanted.sum(axis=-1), 1)
    return (share_of(weights, wanted) / several).sum(axis=-1), wanted.any(axis=-1).sum()


@scoring.mistake
def not_averaged(weights, wanted):
    """The sum over the queries is returned, not the mean. Divide by the number of queries that have
    a wanted key, wanted.any(axis=-1).sum()."""
    return share_of(weights, wanted).sum(axis=-1)


@scoring.mistake
def averaged_over_everything(weights, wanted):
    """The mean runs over all T · T pairs, zeros too: .mean(axis=(-2, -1)) divides by T². Sum over
    the keys, and divide by the number of queries that have a wanted key."""
    return (weights * wanted).mean(axis=(-2, -1))


@scoring.mistake
def one_query_less(weights, wanted):
    """It always divides by T - 1, which is right for the token before alone. Count the queries that
    have a wanted key: wanted.any(axis=-1).sum()."""
    return share_of(weights, wanted).sum(axis=-1) / (weights.shape[-1] - 1)


@scoring.mistake
def first_query_skipped(weights, wanted):
    """The first query is always skipped, weights[..., 1:, :], as for the token before. Another kind
    of head may want something of it: choose the queries by wanted.any(axis=-1)."""
    return share_of(weights[..., 1:, :], wanted[1:]).sum(axis=-1) / max(wanted[1:].any(-1).sum(), 1)


@either
def wanted_keys_counted(weights, wanted):
    """It divides by the number of keys that anyone wants, wanted.any(axis=-2): rows and columns are
    swapped. Count the queries that have a wanted key: wanted.any(axis=-1)."""
    return share_of(weights, wanted).sum(axis=-1), wanted.any(axis=-2).sum()


@either
def queries_chosen_by_keys(weights, wanted):
    """The mean runs over the places that someone wants, wanted.any(axis=-2), columns instead of
    rows. Choose the queries that have a wanted key: wanted.any(axis=-1)."""
    chosen = wanted.any(axis=-2)
    return share_of(weights, wanted)[..., chosen].sum(axis=-1), chosen.sum()


@either
def queries_without_weight_left_out(weights, wanted):
    """Queries that give nothing to their wanted keys are left out of the mean (share > 0). They
    count, with 0: choose the queries by wanted.any(axis=-1), not by their weights."""
    share = share_of(weights, wanted)
    return share.sum(axis=-1), (share > 0).sum(axis=-1)


@scoring.mistake
def layers_and_heads_summed(weights, wanted):
    """The sum runs over layers and heads, axis=(0, 1), so (T, T) comes out. Sum over the last two
    axes, keys and queries: the result is (L, H)."""
    return (weights * wanted).sum(axis=(0, 1)) / max(wanted.any(axis=-1).sum(), 1)


@either
def queries_and_keys_swapped(weights, wanted):
    """Queries and keys are swapped: rows of weights and of wanted are queries, columns are keys.
    One of them is transposed; sum over the last axis, the keys."""
    return share_of(np.swapaxes(weights, -1, -2), wanted).sum(axis=-1), wanted.any(axis=-1).sum()


@either
def wanted_transposed(weights, wanted):
    """wanted is transposed: wanted[q, k] has a row for each query and a column for each key, as
    the weights have. Use it without .T."""
    return share_of(weights, wanted.T).sum(axis=-1), wanted.T.any(axis=-1).sum()


@either
def wanted_inverted(weights, wanted):
    """wanted is inverted: it sums the weights of the keys that are not wanted. True marks where the
    head should look."""
    return share_of(weights, ~wanted).sum(axis=-1), (~wanted).any(axis=-1).sum()


@either
def rest_of_the_share(weights, wanted):
    """It gives the weight of the other keys, 1 minus the score. True in wanted marks where the head
    should look: sum those weights."""
    asking = wanted.any(axis=-1)
    return (1 - share_of(weights, wanted))[..., asking].sum(axis=-1), asking.sum()


@scoring.mistake
def always_the_token_before(weights, wanted):
    """wanted is not used: it always scores the token before (a diagonal, offset -1). Multiply the
    weights by wanted, whatever it says."""
    return head_scores(weights, np.eye(weights.shape[-1], k=-1, dtype=bool))


@scoring.mistake
def wanted_not_used(weights, wanted):
    """wanted is not used: the mean of all weights is 1/T for every head. Multiply the weights by
    wanted first."""
    return weights.mean(axis=(-2, -1))


@either
def largest_wanted_weight(weights, wanted):
    """It takes the largest weight among a query's wanted keys (max). Sum over the wanted keys,
    axis=-1: the share of attention that goes to all of them."""
    return (weights * wanted).max(axis=-1).sum(axis=-1), wanted.any(axis=-1).sum()


@either
def share_of_hits(weights, wanted):
    """It counts how often the heaviest key is a wanted one (argmax). Needed is the weight itself:
    sum the wanted weights of each query, then average."""
    heaviest = weights.argmax(axis=-1)  # (L, H, T)
    hits = wanted[np.arange(len(wanted)), heaviest]
    return hits.sum(axis=-1), wanted.any(axis=-1).sum()


@scoring.mistake
def best_query(weights, wanted):
    """It takes the best query of each head (max). Average over all queries that have a wanted key:
    one good place does not make a head of this kind."""
    return share_of(weights, wanted).max(axis=-1)


@scoring.mistake
def largest_weight(weights, wanted):
    """It takes the largest of all wanted weights of a head (max). Sum over the wanted keys of each
    query, then average over the queries."""
    return (weights * wanted).max(axis=(-2, -1))


@either
def own_place_left_out(weights, wanted):
    """The diagonal is left out, a query's own place, even where wanted asks for it. Use wanted as
    it is."""
    other = wanted & ~np.eye(len(wanted), dtype=bool)
    return share_of(weights, other).sum(axis=-1), other.any(axis=-1).sum()


@either
def later_keys_left_out(weights, wanted):
    """Later keys are left out (tril, a causal mask). This encoder's queries see the tokens behind
    them too: use wanted as it is."""
    return share_of(weights, np.tril(wanted)).sum(axis=-1), np.tril(wanted).any(axis=-1).sum()


@either
def earlier_keys_left_out(weights, wanted):
    """Only later keys count (triu). A query may want earlier ones too: use wanted as it is."""
    return share_of(weights, np.triu(wanted)).sum(axis=-1), np.triu(wanted).any(axis=-1).sum()


@scoring.mistake
def one_score_for_a_query(weights, wanted):
    """There is one share for each query, (L, H, T): the mean over the queries, axis=-1, is still
    missing, over those that have a wanted key."""
    return share_of(weights, wanted)


@scoring.mistake
def one_score_for_a_layer(weights, wanted):
    """The heads are averaged too, so one score for each layer comes out, (L,). Keep the axis of the
    heads: (L, H)."""
    return head_scores(weights, wanted).mean(axis=1)


@scoring.mistake
def layers_averaged(weights, wanted):
    """The layers are averaged, (H,). Keep their axis: head 3 of one layer has nothing to do with
    head 3 of another. The result is (L, H)."""
    return head_scores(weights, wanted).mean(axis=0)


@scoring.mistake
def one_score_for_all(weights, wanted):
    """One number for the whole model comes out, layers and heads averaged. Keep both axes: sum over
    the last two alone, and the result is (L, H)."""
    return head_scores(weights, wanted).mean()


@scoring.mistake
def only_the_last_layer(weights, wanted):
    """Only the last layer is scored, (H,). Keep all layers: (L, H)."""
    return head_scores(weights, wanted)[-1]


@scoring.mistake
def heads_before_layers(weights, wanted):
    """Heads and layers are swapped, (H, L), transposed. The layers come first: (L, H)."""
    return head_scores(weights, wanted).T


@scoring.mistake
def scores_that_sum_to_1(weights, wanted):
    """The scores are divided by their sum over the heads. Each head has its own share from 0 to 1:
    leave that division out."""
    scores = head_scores(weights, wanted)
    return scores / np.maximum(scores.sum(axis=-1, keepdims=True), 1e-12)


@either
def divided_by_the_chance(weights, wanted):
    """The score is compared with chance: divided by the share of keys that are wanted. Return the
    mean share of attention itself, from 0 to 1."""
    asking = wanted.any(axis=-1).sum()
    return share_of(weights, wanted).sum(axis=-1) * wanted.size, asking * wanted.sum()


# ---------------------------------------------------------------- word_pieces


def word_pieces(word: str, vocab: Mapping[str, int]) -> list[str]:
    """Split a word into the longest pieces of the vocabulary, from left to right.

    A piece that does not begin the word carries "##" in front. If at some place no piece fits, the
    whole word is ["[UNK]"]. Raises ValueError for an empty word. WordPiece: Schuster and Nakajima
    (2012), Wu et al. (2016); longest match first as in BERT, Devlin et al. (2019).
    """
    if not word:
        raise ValueError("word is empty, but must have a letter")
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start > 0 else ""
        fitting = [
            end for end in range(start + 1, len(word) + 1) if mark + word[start:end] in vocab
        ]
        if not fitting:
            return ["[UNK]"]
        pieces.append(mark + word[start : fitting[-1]])
        start = fitting[-1]
    return pieces


splitting = Exercise(
    word_pieces,
    notebook="14",
    level=3,
    minutes=15,
    task="Split a word as MiniLM's tokenizer does: from the left, always the longest piece in the "
    'vocabulary, with "##" in front of each piece but the first. If at some place nothing fits, '
    'the whole word is ["[UNK]"].',
    hints=(
        'For "unhappy", with "un", "##happy" and "##hap" in the vocabulary: which do you try '
        "first, and what is left afterwards?",
        "Keep the place `start` where the next piece begins. Try the ends from len(word) down to "
        'start + 1, and look up word[start:end], with "##" in front if start > 0. Take the first '
        "that is in the vocabulary and go on at its end.",
        "for each end of `range(len(word), start, -1)`: "
        '`piece = ("##" if start else "") + word[start:end]`, and with the first piece in vocab: '
        '`pieces.append(piece); start = end`. If there was none: `return ["[UNK]"]`',
    ),
)


def numbered(*words: str) -> dict[str, int]:
    """A vocabulary of these pieces."""
    return {piece: i for i, piece in enumerate(("[UNK]", *words))}


ENGLISH = numbered(
    "play", "##s", "##ing", "un", "a", "##able", "##a", "##play", "##ed", "the", "##ab", "re",
    "##le", "##re", "ed", "##ingly", "playing", "##d", "b", "##c", "##l", "##y",
)  # fmt: skip
NAMES = numbered("New", "new", "##ton", "##Ton", "##t", "##on", "n", "##e", "##é", "##o", "##ö")
FEW = numbered("play", "##s", "un", "##play", "##ed")
MORE = numbered("ab", "abc", "##cde", "##d", "##e")
for label, whole, vocabulary in (
    ("a word of the vocabulary", "play", FEW),
    ("two pieces", "plays", FEW),
    ("three pieces", "unplayed", FEW),
    ("a long word that is there whole", "playing", ENGLISH),
    ("a short piece that fits as well", "unplayable", ENGLISH),
    ("five pieces", "replayably", ENGLISH),
    ("pieces of one letter", "bal", ENGLISH),
    ("a word of one letter", "b", ENGLISH),
    ("letters that stand only behind others", "cd", ENGLISH),
    ("a beginning that is known and a rest that is not", "playful", ENGLISH),
    ("a rest that is known only as the beginning of a word", "bthe", ENGLISH),
    ("an unknown letter in the middle", "unqed", ENGLISH),
    ("an unknown first letter", "qed", ENGLISH),
    ("an unknown last letter", "playsz", ENGLISH),
    ("a word in which nothing is known", "qzq", ENGLISH),
    ("the same letters three times", "rerere", ENGLISH),
    ("a longest piece after which nothing fits", "abcd", numbered("ab", "abc", "##cd")),
    ("a longest piece that makes more pieces", "abcde", MORE),
    ("a long piece in the middle", "abcde", numbered("a", "##bcd", "ab", "##e", "##cd")),
    ("a long piece at the end", "abcd", numbered("a", "##bcd", "ab", "##cd")),
    ("capital letters", "NewTon", NAMES),
    ("letters with accents", "néö", NAMES),
):
    splitting.probe(label, whole, vocabulary)


def marked(piece: str, start: int) -> str:
    """A piece as it stands in the vocabulary, for the place where it begins."""
    return "##" + piece if start else piece


def bare(piece: str, start: int) -> str:
    """A piece without a mark."""
    return piece


def always_marked(piece: str, start: int) -> str:
    """A piece with a mark, wherever it begins."""
    return "##" + piece


def longest_first(start: int, T: int) -> range:
    """The ends of a piece that begins at start, in the order they are tried."""
    return range(T, start, -1)


def all_unknown(pieces: list[str], word: str, start: int) -> list[str]:
    """What comes out where nothing fits."""
    return ["[UNK]"]


def greedy(word, vocab, look=marked, write=marked, ends=longest_first, lost=all_unknown):
    """The loop of `word_pieces`, with parts to be replaced by wrong ones."""
    pieces, start = [], 0
    while start < len(word):
        found = [e for e in ends(start, len(word)) if look(word[start:e], start) in vocab]
        if not found:
            return lost(pieces, word, start)
        pieces.append(write(word[start : found[0]], start))
        start = found[0]
    return pieces


def all_splits(word: str, vocab: Mapping[str, int], start: int = 0) -> Iterator[list[str]]:
    """All ways to make a word of pieces, those with a longer first piece before."""
    if start == len(word):
        yield []
    for end in longest_first(start, len(word)):
        if marked(word[start:end], start) in vocab:
            for rest in all_splits(word, vocab, end):
                yield [marked(word[start:end], start), *rest]


@splitting.mistake
def no_marks(word, vocab):
    """Later pieces are looked up and written without "##", as if each began a word. Put "##" before
    every piece but the first (if start > 0), and look it up like that."""
    return greedy(word, vocab, look=bare, write=bare)


@splitting.mistake
def looked_up_without_mark(word, vocab):
    """Later pieces get "##" only after they were looked up without it. The vocabulary holds them
    with "##": put it in front (if start > 0) before the look-up."""
    return greedy(word, vocab, look=bare)


@splitting.mistake
def marks_not_written(word, vocab):
    """Later pieces are looked up with "##", but returned without it. Keep the mark: every piece but
    the first begins with "##"."""
    return greedy(word, vocab, write=bare)


@splitting.mistake
def first_looked_up_with_mark(word, vocab):
    """The first piece is looked up with "##" too, as if it continued a word. Only pieces with
    start > 0 get it."""
    return greedy(word, vocab, look=always_marked, write=always_marked)


@splitting.mistake
def first_written_with_mark(word, vocab):
    """The first piece gets "##" too. It begins the word: only the later pieces (start > 0) are
    marked."""
    return greedy(word, vocab, write=always_marked)


@splitting.mistake
def beginning_with_or_without_mark(word, vocab):
    """At the beginning of the word a piece with "##" is accepted as well. "##" marks pieces that
    stand behind others: the first piece must be in the vocabulary without it."""
    if greedy(word, vocab) != ["[UNK]"]:
        return greedy(word, vocab)
    marks = {piece.removeprefix("##") for piece in vocab} | {*vocab}
    return greedy(word, marks, look=lambda p, start: marked(p, start) if start else p)


@splitting.mistake
def rest_with_or_without_mark(word, vocab):
    """Later pieces are accepted without "##" as well. A piece that is not the first must be in the
    vocabulary with "##"."""
    both_ways = {*vocab, *("##" + piece for piece in vocab)}
    return greedy(word, both_ways)


@splitting.mistake
def marks_taken_off_the_vocabulary(word, vocab):
    """The marks are taken off the vocabulary, so any piece fits anywhere. "un" begins a word and
    "##un" continues one: look up later pieces with "##", and the first without."""
    letters = {piece.removeprefix("##") for piece in vocab}
    return greedy(word, letters, look=bare)


@splitting.mistake
def no_marks_and_known_pieces_kept(word, vocab):
    """The rest is split like a word of its own (recursion): without "##", and [UNK] for it alone.
    Look up later pieces with "##"; if a part fits nothing, the whole word is ["[UNK]"]."""
    lost = lambda pieces, word, start: [*pieces, "[UNK]"]  # noqa: E731
    return greedy(word, vocab, look=bare, write=bare, lost=lost)


@splitting.mistake
def looked_up_without_mark_and_known_pieces_kept(word, vocab):
    """Later pieces get "##" only after they were looked up without it, and [UNK] stands for the
    unknown rest alone. Look up "##" + piece; if one is missing, the whole word is ["[UNK]"]."""
    lost = lambda pieces, word, start: [*pieces, marked("[UNK]", start)]  # noqa: E731
    return greedy(word, vocab, look=bare, lost=lost)


@splitting.mistake
def grown_letter_by_letter(word, vocab):
    """A piece grows letter by letter while it is in the vocabulary, so it ends at the first gap:
    "pl" is missing, "play" is there. Try the longest first, down to one letter."""

    def ends(start, T):
        known = [marked(word[start:e], start) in vocab for e in range(start + 1, T + 1)]
        first_gap = [*known, False].index(False)
        return range(start + first_gap, start, -1)

    return greedy(word, vocab, ends=ends)


@splitting.mistake
def grown_after_one_letter(word, vocab):
    """A piece begins with one letter and grows while it is in the vocabulary, so it ends at the
    first gap: "pl" is missing, "play" is there. Try the longest first: end from len(word) down."""

    def ends(start, T):
        end = start + 1
        while end < T and marked(word[start : end + 1], start) in vocab:
            end += 1
        return [end]

    return greedy(word, vocab, ends=ends)


@splitting.mistake
def shortest_first(word, vocab):
    """The shortest piece is taken first. Try the longest first: the ends from len(word) down to
    start + 1."""
    return greedy(word, vocab, ends=lambda start, T: range(start + 1, T + 1))


@splitting.mistake
def shortest_of_two_letters(word, vocab):
    """Ends are tried from start + 2 on, the shortest first. Try the longest piece first: the ends
    from len(word) down to start + 1."""
    return greedy(word, vocab, ends=lambda start, T: range(start + 2, T + 1))


@splitting.mistake
def one_letter_never_tried(word, vocab):
    """A piece of one letter is never tried: range stops before its end. Let it run down to
    start + 1: range(len(word), start, -1)."""
    return greedy(word, vocab, ends=lambda start, T: range(T, start + 1, -1))


@splitting.mistake
def last_letter_never_tried(word, vocab):
    """The last letter is never part of a piece: the ends begin at len(word) - 1. A slice excludes
    its end, so begin at len(word): range(len(word), start, -1)."""
    return greedy(word, vocab, ends=lambda start, T: range(T - 1, start, -1))


@splitting.mistake
def last_letter_dropped(word, vocab):
    """The loop ends one letter too early: a last letter that is left alone is dropped. Go on while
    start < len(word)."""
    kept = [*greedy(word[:-1], vocab)] if len(word) > 1 else []
    whole = greedy(word, vocab)
    alone = whole == ["[UNK]"] or len(whole[-1].removeprefix("##")) == 1
    return kept if alone else whole


@splitting.mistake
def known_pieces_kept(word, vocab):
    """The pieces found so far stay, and [UNK] stands for the rest alone. If a part fits nothing,
    the whole word is ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda pieces, word, start: [*pieces, "[UNK]"])


@splitting.mistake
def rest_dropped(word, vocab):
    """The pieces found so far are returned and the unknown rest is dropped. If a part fits nothing,
    the whole word is ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda pieces, word, start: pieces)


@splitting.mistake
def rest_kept_as_it_is(word, vocab):
    """The unknown rest is added as a piece, though the vocabulary does not hold it. If a part fits
    nothing, the whole word is ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda p, word, start: [*p, marked(word[start:], start)])


@splitting.mistake
def word_kept_as_it_is(word, vocab):
    """A word that cannot be split is returned as it is. The model has no row for it: return
    ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda pieces, word, start: [word])


@splitting.mistake
def nothing_for_unknown(word, vocab):
    """An empty list comes back where a part fits nothing. The word must stay one token:
    ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda pieces, word, start: [])


@splitting.mistake
def unknown_as_text(word, vocab):
    """An unknown word gives the text "[UNK]", where a list is needed: ["[UNK]"]."""
    return greedy(word, vocab, lost=lambda pieces, word, start: "[UNK]")


@splitting.mistake
def another_name_for_unknown(word, vocab):
    """The unknown token has another name here: it must read "[UNK]", in brackets and capitals."""
    return greedy(word, vocab, lost=lambda pieces, word, start: ["<unk>"])


@splitting.mistake
def unknown_marked(word, vocab):
    """The unknown token gets "##" like a later piece. The whole word is ["[UNK]"], without a
    mark."""
    return greedy(word, vocab, lost=lambda pieces, word, start: [marked("[UNK]", start)])


@splitting.mistake
def raises_for_unknown(word, vocab):
    """A word that cannot be split raises an error. It is valid input: return ["[UNK]"]."""
    pieces = greedy(word, vocab)
    if pieces == ["[UNK]"]:
        raise ValueError("nothing fits")
    return pieces


def past_unknown(word: str, vocab: Mapping[str, int], token: list[str]) -> list[str]:
    """Goes on behind a letter at which nothing fits, with a token for it or none."""
    pieces, start = [], 0
    while start < len(word):
        found = [
            e for e in longest_first(start, len(word)) if marked(word[start:e], start) in vocab
        ]
        end = found[0] if found else start + 1
        pieces += [marked(word[start:end], start)] if found else token
        start = end
    return pieces


@splitting.mistake
def unknown_letter_by_letter(word, vocab):
    """An unknown letter becomes [UNK], and the splitting goes on behind it. If a part fits nothing,
    the whole word is ["[UNK]"]: return at once."""
    return past_unknown(word, vocab, ["[UNK]"])


@splitting.mistake
def unknown_letters_skipped(word, vocab):
    """Letters at which nothing fits are skipped. No letter may be lost: the whole word is
    ["[UNK]"], so return at once."""
    return past_unknown(word, vocab, [])


@splitting.mistake
def not_split(word, vocab):
    """A word that is not in the vocabulary as a whole is [UNK] at once. Try shorter pieces from its
    beginning first, and go on behind the longest that fits."""
    return [word] if word in vocab else ["[UNK]"]


@splitting.mistake
def into_letters(word, vocab):
    """A word that is not in the vocabulary as a whole is split into single letters. Take the
    longest piece that fits, and go on at its end."""
    return [word] if word in vocab else greedy(word, vocab, ends=lambda s, T: [s + 1])


@splitting.mistake
def two_pieces_at_most(word, vocab):
    """It splits only once: a first piece and the whole rest. The rest is split in the same way,
    until the end of the word: loop while start < len(word)."""
    ends = lambda start, T: range(T, start, -1) if not start else [T]  # noqa: E731
    return greedy(word, vocab, ends=ends)


@splitting.mistake
def first_piece_alone(word, vocab):
    """Only the first piece is returned: a `return` or a `break` comes too early. Go on behind it
    until the end of the word."""
    return greedy(word, vocab)[:1]


@splitting.mistake
def another_split_tried(word, vocab):
    """Where the longest piece leads nowhere, a shorter one is tried (backtracking). WordPiece is
    greedy and never goes back: the word is ["[UNK]"]."""
    return next(all_splits(word, vocab), ["[UNK]"])


@splitting.mistake
def fewest_pieces(word, vocab):
    """It looks for the split with the fewest pieces. WordPiece is greedy: from the left, always the
    longest piece, even if that makes more of them."""
    return min(all_splits(word, vocab), key=len, default=["[UNK]"])


@splitting.mistake
def from_the_end(word, vocab):
    """It takes the longest piece at the end of the word first. Begin on the left, and go on at the
    end of each piece."""
    pieces, end = [], len(word)
    while end > 0:
        found = [s for s in range(end) if marked(word[s:end], s) in vocab]
        if not found:
            return ["[UNK]"]
        pieces.insert(0, marked(word[found[0] : end], found[0]))
        end = found[0]
    return pieces


@splitting.mistake
def longest_anywhere(word, vocab):
    """It takes the longest piece anywhere in the word, then what is left on both sides. Begin on
    the left: the longest piece that begins at start, then go on at its end."""

    def split(start, stop):
        spans = [(s - e, s, e) for s in range(start, stop) for e in range(s + 1, stop + 1)]
        fits = [(n, s, e) for n, s, e in spans if marked(word[s:e], s) in vocab]
        if start == stop or not fits:
            return [] if start == stop else ["[UNK]"]
        _, s, e = min(fits)
        return [*split(start, s), marked(word[s:e], s), *split(e, stop)]

    pieces = split(0, len(word))
    return ["[UNK]"] if "[UNK]" in pieces else pieces


@splitting.mistake
def first_in_the_vocabulary(word, vocab):
    """It takes the first piece of the vocabulary that fits (startswith), whatever its length. Of
    all that fit, take the longest."""
    places = list(vocab)

    def in_order(start, T):
        ends = [e for e in longest_first(start, T) if marked(word[start:e], start) in vocab]
        return sorted(ends, key=lambda e: places.index(marked(word[start:e], start)))

    return greedy(word, vocab, ends=in_order)


@splitting.mistake
def mark_counted_as_letters(word, vocab):
    """start moves on by len(piece) with its "##", so two letters are skipped. Go on at `end`: the
    mark is no part of the word."""
    pieces, start = [], 0
    while start < len(word):
        found = [
            e for e in longest_first(start, len(word)) if marked(word[start:e], start) in vocab
        ]
        if not found:
            return ["[UNK]"]
        pieces.append(marked(word[start : found[0]], start))
        start += len(pieces[-1])
    return pieces


@splitting.mistake
def in_lower_case(word, vocab):
    """The word is put into lower case. That happens before, where a model asks for it: take the
    letters as they are, without .lower()."""
    return greedy(word.lower(), vocab)


@splitting.mistake
def accents_taken_off(word, vocab):
    """Accents are taken off. That happens before, where a model asks for it: take the letters as
    they are."""
    plain = unicodedata.normalize("NFD", word)
    return greedy("".join(c for c in plain if not unicodedata.combining(c)), vocab)


@splitting.mistake
def in_reverse(word, vocab):
    """The pieces stand in reverse order: each must be appended behind the last one."""
    return greedy(word, vocab)[::-1]


@splitting.mistake
def ids_instead_of_pieces(word, vocab):
    """It returns the ids of the pieces. Return the pieces themselves, as texts; vocab[piece] comes
    later."""
    return [vocab[piece] for piece in greedy(word, vocab)]


@splitting.mistake
def in_one_text(word, vocab):
    """The pieces are joined to one text. Return them as a list."""
    return " ".join(greedy(word, vocab))


@splitting.mistake
def special_tokens_added(word, vocab):
    """[CLS] and [SEP] stand around the pieces. They are added later, once around a sentence: return
    the pieces of the word alone."""
    return ["[CLS]", *greedy(word, vocab), "[SEP]"]
