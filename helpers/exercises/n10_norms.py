"""Notebook 10: Add & Norm."""

from collections.abc import Callable, Sequence

import numpy as np

from helpers import blocks as reference
from helpers.exercises.exercise import Exercise, Untested

rng = np.random.default_rng(10)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on, with mean 1 and deviation 2."""
    return rng.normal(1, 2, size=shape).astype(np.float32)


def centred(x: np.ndarray, axis: int | tuple | None = -1) -> np.ndarray:
    """Mistakes below are made of this and of `variance`, with another axis, say."""
    return x - x.mean(axis=axis, keepdims=True)


def variance(x: np.ndarray, axis: int | tuple | None = -1, ddof: int = 0) -> np.ndarray:
    return x.var(axis=axis, ddof=ddof, keepdims=True)


def plain(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """LayerNorm without gain and bias."""
    return centred(x) / np.sqrt(variance(x) + eps)


def without_chance(exercise: Exercise, *args: object) -> None:
    """See whether an answer drops at random: the paper has dropout here, the exercise has not."""

    @exercise.experiment("the same call again")
    def again(fn: Callable) -> dict | Untested:
        try:
            results = [fn(*args) for _ in range(4)]
        except Exception:  # the next probe tells
            return Untested()
        if not all(isinstance(result, np.ndarray) for result in results):  # two things, or none
            return Untested()
        same = all(np.array_equal(results[0], other, equal_nan=True) for other in results[1:])
        return {"all calls give the same numbers: no dropout in here, nothing random": same}


# ---------------------------------------------------------------- layer_norm

layer_norm = Exercise(
    reference.layer_norm,
    notebook="10",
    level=2,
    minutes=10,
    task="Normalise each word again, this time from sums alone: no mean, var or std. "
    "It must work for a sentence (T, d) and for a batch (B, T, d).",
    hints=(
        "Which numbers belong to one word? And by how many must their sum be divided?",
        "The mean is x.sum over the last axis, divided by the number of features, x.shape[-1]. "
        "keepdims=True keeps the axis, so that the subtraction lines up. The variance is the same "
        "sum of the squared deviations.",
        "`mean = x.sum(axis=-1, keepdims=True) / x.shape[-1]`, then the same for `(x - mean) "
        "** 2`, then `return gamma * (x - mean) / np.sqrt(variance + eps) + beta`",
    ),
)
WORD = np.array([2.0, 4.0, 4.0, 10.0])  # mean 5, deviation 3
GAMMA, BETA = np.array([1.0, 2.0, 0.5, 3.0]), np.array([0.0, 1.0, -1.0, 2.0])
ONES, ZEROS = np.ones(4), np.zeros(4)
gamma5, beta5 = normal(5), normal(5)
gamma4, beta4 = normal(4), normal(4)
layer_norm.probe("one word, gamma 1 and beta 0", WORD[None], ONES, ZEROS)
layer_norm.probe("the same with a gain and a bias", WORD[None], GAMMA, BETA)
layer_norm.probe("two words", np.array([WORD, [9.0, 0.0, 0.0, 3.0]]), GAMMA, BETA)
layer_norm.probe("a sentence of three words", normal(3, 5), gamma5, beta5)
layer_norm.probe("a batch of two sentences", normal(2, 3, 5), gamma5, beta5)
layer_norm.probe("as many words as features", normal(2, 4, 4), gamma4, beta4)
layer_norm.probe("a gain only", WORD[None], GAMMA, ZEROS)
layer_norm.probe("nearly equal features", np.array([[3.0, 3.003, 3.001, 2.998]]), GAMMA, BETA)
layer_norm.probe("features that are all equal", np.array([[3.0, 3.0, 3.0, 3.0]]), GAMMA, BETA)
layer_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0], WORD]), GAMMA, BETA, eps=0.5)
layer_norm.probe("large numbers", 1000 + np.array([WORD, -WORD]), GAMMA, BETA)


@layer_norm.mistake
def unbiased(x, gamma, beta, eps=1e-5):
    """The variance is divided by D - 1 (unbiased, ddof=1, the default of torch.std and torch.var).
    Layer norm divides by D, the number of features: the biased variance, correction=0."""
    return gamma * centred(x) / np.sqrt(variance(x, ddof=1) + eps) + beta


@layer_norm.mistake
def unbiased_and_eps_outside(x, gamma, beta, eps=1e-5):
    """The standard deviation is the unbiased one, divided by D - 1 (the default of torch.std,
    ddof=1), and eps is added outside the root. Divide by D (correction=0) and add eps to the
    variance, inside the root."""
    return gamma * centred(x) / (np.sqrt(variance(x, ddof=1)) + eps) + beta


@layer_norm.mistake
def eps_outside(x, gamma, beta, eps=1e-5):
    """eps is added outside the root, to the standard deviation. It belongs inside the root, added
    to the variance before the root is taken: √(variance + eps)."""
    return gamma * centred(x) / (np.sqrt(variance(x)) + eps) + beta


@layer_norm.mistake
def eps_missing(x, gamma, beta, eps=1e-5):
    """eps is missing: equal features have variance 0, and 0 / 0 is nan. Add eps to the variance,
    inside the root."""
    return gamma * centred(x) / np.sqrt(variance(x)) + beta


@layer_norm.mistake
def eps_fixed(x, gamma, beta, eps=1e-5):
    """The argument eps is ignored, not passed on: the default 0.00001 is used whatever eps is. Use
    the parameter eps."""
    return gamma * centred(x) / np.sqrt(variance(x) + 1e-5) + beta


@layer_norm.mistake
def eps_as_least_variance(x, gamma, beta, eps=1e-5):
    """eps is used as a lower limit, max(variance, eps). It is added: variance + eps."""
    return gamma * centred(x) / np.sqrt(np.maximum(variance(x), eps)) + beta


@layer_norm.mistake
def eps_as_least_deviation(x, gamma, beta, eps=1e-5):
    """eps is used as a lower limit of the deviation, max(std, eps). It is added to the variance,
    inside the root: √(variance + eps)."""
    return gamma * centred(x) / np.maximum(np.sqrt(variance(x)), eps) + beta


@layer_norm.mistake
def eps_squared(x, gamma, beta, eps=1e-5):
    """eps is squared under the root. Add eps itself to the variance: √(variance + eps)."""
    return gamma * centred(x) / np.sqrt(variance(x) + eps**2) + beta


@layer_norm.mistake
def eps_inside_and_outside(x, gamma, beta, eps=1e-5):
    """eps is added twice, inside and outside the root. Add it once, to the variance, before the
    root is taken."""
    return gamma * centred(x) / (np.sqrt(variance(x) + eps) + eps) + beta


@layer_norm.mistake
def eps_subtracted(x, gamma, beta, eps=1e-5):
    """eps is subtracted from the variance: the sign is wrong, and the root of a small variance is
    nan. Add eps to it."""
    return gamma * centred(x) / np.sqrt(variance(x) - eps) + beta


@layer_norm.mistake
def divides_by_variance(x, gamma, beta, eps=1e-5):
    """It divides by the variance itself. Take its square root first, np.sqrt: divide by the
    standard deviation."""
    return gamma * centred(x) / (variance(x) + eps) + beta


@layer_norm.mistake
def squares_the_variance(x, gamma, beta, eps=1e-5):
    """It squares the variance, ** 2, where the square root is needed: the power is one half,
    ** 0.5 or np.sqrt."""
    return gamma * centred(x) / (variance(x) + eps) ** 2 + beta


@layer_norm.mistake
def root_twice(x, gamma, beta, eps=1e-5):
    """The square root is taken twice: std is already a root. Take the root of the variance
    (var + eps), or square std first."""
    return gamma * centred(x) / np.sqrt(np.sqrt(variance(x)) + eps) + beta


@layer_norm.mistake
def multiplies_by_the_deviation(x, gamma, beta, eps=1e-5):
    """It multiplies by the standard deviation instead of dividing by it: the operator must be /."""
    return gamma * centred(x) * np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def not_divided(x, gamma, beta, eps=1e-5):
    """The division by the standard deviation is missing: only the mean is subtracted. Divide by
    √(variance + eps) before gamma and beta."""
    return gamma * centred(x) + beta


@layer_norm.mistake
def sum_of_squares(x, gamma, beta, eps=1e-5):
    """It divides by the length of the vector: the root of the sum of squares (L2 norm,
    np.linalg.norm) instead of their mean. Divide the sum by D, the number of features, first."""
    return gamma * centred(x) / np.sqrt(variance(x) * x.shape[-1] + eps) + beta


@layer_norm.mistake
def mean_absolute_deviation(x, gamma, beta, eps=1e-5):
    """It divides by the mean absolute deviation. The deviations are squared, averaged (the
    variance), and the square root is taken."""
    return gamma * centred(x) / (np.abs(centred(x)).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def min_max(x, gamma, beta, eps=1e-5):
    """That is min-max scaling, (x - min) / (max - min). Layer norm subtracts the mean and divides
    by the standard deviation."""
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return gamma * (x - low) / (high - low + eps) + beta


@layer_norm.mistake
def centred_by_range(x, gamma, beta, eps=1e-5):
    """It divides by the range, max - min. Divide by the standard deviation, the root of the
    variance."""
    return gamma * centred(x) / (np.ptp(x, axis=-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def cosine(x, gamma, beta, eps=1e-5):
    """It divides x by its length (L2 norm) and does not subtract the mean. Layer norm centres each
    vector: subtract the mean, then divide by the standard deviation."""
    return gamma * x / np.sqrt((x**2).sum(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def mean_not_subtracted(x, gamma, beta, eps=1e-5):
    """The mean is not subtracted in the numerator: x is divided without being centred. Subtract
    the mean before the division."""
    return gamma * x / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def mean_subtracted_last(x, gamma, beta, eps=1e-5):
    """The mean is subtracted after the division. Subtract it from x before, with brackets:
    (x - mean) / √(variance + eps)."""
    y = x / np.sqrt(variance(x) + eps)
    return gamma * (y - x.mean(axis=-1, keepdims=True)) + beta


@layer_norm.mistake
def brackets_missing(x, gamma, beta, eps=1e-5):
    """Brackets are missing: only the mean is divided by the deviation, not x. Subtract first:
    (x - mean) / √(variance + eps)."""
    mean = x.mean(axis=-1, keepdims=True)
    return gamma * (x - mean / np.sqrt(variance(x) + eps)) + beta


@layer_norm.mistake
def sign_of_the_mean(x, gamma, beta, eps=1e-5):
    """The sign is wrong: it takes mean - x. The deviation is x - mean."""
    return -gamma * centred(x) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def mean_added(x, gamma, beta, eps=1e-5):
    """The mean is added, x + mean. Subtract it, so that each word is centred on 0: x - mean."""
    mean = x.mean(axis=-1, keepdims=True)
    return gamma * (x + mean) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def median(x, gamma, beta, eps=1e-5):
    """It subtracts the median. Layer norm subtracts the mean, the average of the features."""
    middle = np.median(x, axis=-1, keepdims=True)
    return gamma * (x - middle) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def root_mean_square(x, gamma, beta, eps=1e-5):
    """It divides by the root mean square (RMS) of x itself. The variance is measured around the
    mean: square the deviation from the mean, (x - mean) ** 2."""
    return gamma * centred(x) / np.sqrt((x**2).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def rms_norm(x, gamma, beta, eps=1e-5):
    """That is RMSNorm: the mean is not subtracted, and x is divided by its root mean square. Layer
    norm centres first: it subtracts the mean and measures the variance around the mean."""
    return gamma * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def gamma_and_beta_ignored(x, gamma, beta, eps=1e-5):
    """gamma and beta are not used, they are ignored: scale the normalised values by gamma and
    shift them by beta, gamma * … + beta."""
    return centred(x) / np.sqrt(variance(x) + eps)


@layer_norm.mistake
def gamma_ignored(x, gamma, beta, eps=1e-5):
    """The gain gamma is not used, the scale is missing: multiply the normalised values by gamma
    before beta is added."""
    return centred(x) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def beta_ignored(x, gamma, beta, eps=1e-5):
    """The bias beta is not used, the shift is missing: add beta at the end."""
    return gamma * centred(x) / np.sqrt(variance(x) + eps)


@layer_norm.mistake
def gamma_and_beta_swapped(x, gamma, beta, eps=1e-5):
    """gamma and beta are swapped: multiply by gamma (the gain, scale) and add beta (the bias,
    shift)."""
    return beta * centred(x) / np.sqrt(variance(x) + eps) + gamma


@layer_norm.mistake
def beta_before_gamma(x, gamma, beta, eps=1e-5):
    """beta is added before the multiplication by gamma, so gamma scales it too: a matter of order
    and brackets. Multiply by gamma first, then add beta."""
    return gamma * (centred(x) / np.sqrt(variance(x) + eps) + beta)


@layer_norm.mistake
def beta_divided_too(x, gamma, beta, eps=1e-5):
    """beta is added before the division, so it is divided by the standard deviation too: brackets.
    Divide first, multiply by gamma, and add beta last."""
    return (gamma * centred(x) + beta) / np.sqrt(variance(x) + eps)


@layer_norm.mistake
def gain_before_the_norm(x, gamma, beta, eps=1e-5):
    """gamma and beta are applied to x before it is normalised, and the norm undoes part of it.
    Order: normalise first, then scale by gamma and shift by beta."""
    return plain(gamma * x + beta, eps)


@layer_norm.mistake
def one_plus_gamma(x, gamma, beta, eps=1e-5):
    """It multiplies by 1 + gamma. gamma is the whole gain here (it starts at 1): multiply by
    gamma itself."""
    return (1 + gamma) * plain(x, eps) + beta


@layer_norm.mistake
def divides_by_gamma(x, gamma, beta, eps=1e-5):
    """It divides by gamma. gamma is the gain, the scale: multiply by it."""
    return plain(x, eps) / gamma + beta


@layer_norm.mistake
def gamma_added(x, gamma, beta, eps=1e-5):
    """gamma is added instead of multiplied. Scale by gamma with *, and shift by beta with +."""
    return plain(x, eps) + gamma + beta


@layer_norm.mistake
def beta_subtracted(x, gamma, beta, eps=1e-5):
    """beta is subtracted: the sign is wrong. Add beta."""
    return gamma * plain(x, eps) - beta


@layer_norm.mistake
def normalised_again(x, gamma, beta, eps=1e-5):
    """The result is normalised a second time after gamma and beta, which undoes their scale and
    shift. Normalise once; gamma and beta come last."""
    return plain(gamma * plain(x, eps) + beta, eps)


@layer_norm.mistake
def over_everything(x, gamma, beta, eps=1e-5):
    """One mean and variance for everything: the axis is missing. Each word (token, row) needs its
    own, over its features: axis=-1, keepdims=True."""
    return gamma * centred(x, None) / np.sqrt(variance(x, None) + eps) + beta


@layer_norm.mistake
def over_the_sentence(x, gamma, beta, eps=1e-5):
    """Mean and variance run over the whole sentence, the last two axes (-2, -1), words (tokens) and
    features together. Each word is normalised alone, over its features: the last axis, axis=-1."""
    return gamma * centred(x, (-2, -1)) / np.sqrt(variance(x, (-2, -1)) + eps) + beta


@layer_norm.mistake
def batch_norm(x, gamma, beta, eps=1e-5):
    """Mean and variance of each feature run over all words of the batch: that is batch norm. Layer
    norm takes the features of one word (token): the last axis, axis=-1."""
    axes = tuple(range(max(1, x.ndim - 1)))
    return gamma * centred(x, axes) / np.sqrt(variance(x, axes) + eps) + beta


@layer_norm.mistake
def over_axis_0(x, gamma, beta, eps=1e-5):
    """Mean and variance run over the first axis, axis=0, the batch (or the words of a sentence).
    Take the last axis, axis=-1, the features of each word (token)."""
    return gamma * centred(x, 0) / np.sqrt(variance(x, 0) + eps) + beta


@layer_norm.mistake
def summed_before_squaring(x, gamma, beta, eps=1e-5):
    """The deviations are summed first and then squared, so they cancel and the variance is 0.
    Square each of them, then sum: ((x - mean) ** 2).sum(…)."""
    return gamma * centred(x) / np.sqrt(eps) + beta


@layer_norm.mistake
def variance_below_zero(x, gamma, beta, eps=1e-5):
    """The variance has the wrong sign, and the root of a negative number is nan. It is the mean of
    the squares minus the square of the mean, in this order."""
    return gamma * centred(x) / np.sqrt(-variance(x) + eps) + beta


@layer_norm.mistake
def over_axis_1(x, gamma, beta, eps=1e-5):
    """Mean and variance run over axis=1 (or a loop takes x row by row): these are the features of a
    sentence (T, d), but the words (tokens) of a batch (B, T, d). Count from the end: the last axis,
    axis=-1, is always the features."""
    return gamma * centred(x, 1) / np.sqrt(variance(x, 1) + eps) + beta


@layer_norm.mistake
def over_the_words(x, gamma, beta, eps=1e-5):
    """Mean and variance run over the words (tokens) of a sentence, axis=-2. Normalise each word
    over its features: the last axis, axis=-1."""
    return gamma * centred(x, -2) / np.sqrt(variance(x, -2) + eps) + beta


@layer_norm.mistake
def one_mean_for_everything(x, gamma, beta, eps=1e-5):
    """One mean for everything is subtracted, though each word has its own variance. The mean needs
    the last axis too: axis=-1, keepdims=True."""
    return gamma * centred(x, None) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def one_variance_for_everything(x, gamma, beta, eps=1e-5):
    """All words share one variance (standard deviation), though each has its own mean. The
    variance needs the last axis too: axis=-1, keepdims=True."""
    return gamma * centred(x) / np.sqrt(variance(x, None) + eps) + beta


@layer_norm.mistake
def variance_over_the_words(x, gamma, beta, eps=1e-5):
    """The mean runs over the last axis, but the variance (standard deviation) over another one,
    the words (tokens). Both need axis=-1, the features."""
    return gamma * centred(x) / np.sqrt(variance(x, max(-2, -x.ndim)) + eps) + beta


@layer_norm.mistake
def mean_over_the_words(x, gamma, beta, eps=1e-5):
    """The variance runs over the last axis, but the mean over another one, the words (tokens).
    Both need axis=-1, the features."""
    return gamma * centred(x, max(-2, -x.ndim)) / np.sqrt(variance(x) + eps) + beta


@layer_norm.mistake
def keepdims_missing(x, gamma, beta, eps=1e-5):
    """keepdims=True is missing: mean and variance lose the last axis, and broadcasting then fails,
    or lines them up with the features instead of the words (tokens)."""
    return gamma * (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps) + beta


@layer_norm.mistake
def one_feature_left_out(x, gamma, beta, eps=1e-5):
    """The mean divides the sum by D - 1, one too few. A mean divides by D, the number of features,
    x.shape[-1]."""
    mean = x.sum(-1, keepdims=True) / (x.shape[-1] - 1)
    return gamma * (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def divided_by_the_words(x, gamma, beta, eps=1e-5):
    """The sums are divided by the length of the first axis, len(x) or x.shape[0]. Divide by the
    number of features, the last axis: x.shape[-1]."""
    mean = x.sum(-1, keepdims=True) / len(x)
    spread = ((x - mean) ** 2).sum(-1, keepdims=True) / len(x)
    return gamma * (x - mean) / np.sqrt(spread + eps) + beta


@layer_norm.mistake
def x_in_place(x, gamma, beta, eps=1e-5):
    """-=, /= or *= change x in place: whoever handed it over finds other numbers in it. Make a new
    array, x - mean instead of x -= mean."""
    y = gamma * centred(x) / np.sqrt(variance(x) + eps) + beta
    x -= x.mean(axis=-1, keepdims=True)
    return y


def norms_inside(
    exercise: Exercise, function_with: Callable[[Callable], Callable], only: Sequence[Callable] = ()
) -> None:
    """Add the mistakes of layer_norm, or some of them, to an exercise that normalises on its way.

    `function_with(norm)` is the exercise's function with another layer_norm.
    """
    for known in (mistake.function for mistake in layer_norm.mistakes):
        if known is not x_in_place and (not only or known in only):
            function = function_with(known)
            function.__name__, function.__doc__ = known.__name__, known.__doc__
            exercise.mistake(function)


# ---------------------------------------------------------------- add_and_norm

add_and_norm = Exercise(
    reference.add_and_norm,
    notebook="10",
    level=1,
    minutes=3,
    task="Add what a sub-layer found to its input, and normalise the sum.",
    hints=(
        "Which comes first in the name?",
        "Add x and sublayer_out, then hand the sum to layer_norm with gamma, beta and eps.",
        "`return layer_norm(x + sublayer_out, gamma, beta, eps)`",
    ),
)
OUT = np.array([1.0, -2.0, 0.0, 5.0])
without_chance(add_and_norm, np.tile(WORD, (6, 1)), np.tile(OUT, (6, 1)), GAMMA, BETA)
add_and_norm.probe("one word, gamma 1 and beta 0", WORD[None], OUT[None], ONES, ZEROS)
add_and_norm.probe("the same with a gain and a bias", WORD[None], OUT[None], GAMMA, BETA)
add_and_norm.probe(
    "two words", np.array([WORD, -OUT]), np.array([OUT, [3.0, 0.0, 1.0, 9.0]]), GAMMA, BETA
)
add_and_norm.probe("a sentence of three words", normal(3, 5), normal(3, 5), gamma5, beta5)
add_and_norm.probe("a batch of two sentences", normal(2, 3, 5), normal(2, 3, 5), gamma5, beta5)
add_and_norm.probe("as many words as features", normal(2, 4, 4), normal(2, 4, 4), gamma4, beta4)
flat = np.array([[3.0, 3.003, 3.001, 2.998]])
add_and_norm.probe("nearly equal features", flat, flat[:, ::-1] / 2, GAMMA, BETA)
add_and_norm.probe("a sum of equal features", 3 - OUT[None], OUT[None], GAMMA, BETA)
add_and_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0]]), 0.5 * OUT[None], GAMMA, BETA, 0.5)
add_and_norm.probe("large numbers", 1000 + WORD[None], OUT[None] - 500, GAMMA, BETA)

norms_inside(
    add_and_norm,
    lambda norm: lambda x, sublayer_out, *parameters: norm(x + sublayer_out, *parameters),
)


@add_and_norm.mistake
def sublayer_normalised_only(x, sublayer_out, gamma, beta, eps=1e-5):
    """Only sublayer_out is normalised, then x is added. Add first, then normalise the sum:
    LayerNorm(x + sublayer_out)."""
    return x + reference.layer_norm(sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def x_normalised_only(x, sublayer_out, gamma, beta, eps=1e-5):
    """Only x is normalised, then sublayer_out is added: LayerNorm(x) + sublayer_out. Add first,
    then normalise the sum: LayerNorm(x + sublayer_out)."""
    return reference.layer_norm(x, gamma, beta, eps) + sublayer_out


@add_and_norm.mistake
def both_normalised(x, sublayer_out, gamma, beta, eps=1e-5):
    """x and sublayer_out are normalised separately and then added. Add first, then normalise the
    sum: LayerNorm(x + sublayer_out)."""
    parts = (reference.layer_norm(part, gamma, beta, eps) for part in (x, sublayer_out))
    return sum(parts)


@add_and_norm.mistake
def x_normalised_too(x, sublayer_out, gamma, beta, eps=1e-5):
    """x is normalised before the addition, and the sum after it: one norm too many, done twice.
    Add x as it is, then normalise the sum once."""
    return reference.layer_norm(
        reference.layer_norm(x, gamma, beta, eps) + sublayer_out, gamma, beta, eps
    )


@add_and_norm.mistake
def sublayer_normalised_too(x, sublayer_out, gamma, beta, eps=1e-5):
    """sublayer_out is normalised before the addition, and the sum after it: one norm too many, done
    twice. Add sublayer_out as it is, then normalise the sum once."""
    return reference.layer_norm(
        x + reference.layer_norm(sublayer_out, gamma, beta, eps), gamma, beta, eps
    )


@add_and_norm.mistake
def normalised_twice(x, sublayer_out, gamma, beta, eps=1e-5):
    """The sum is normalised twice, with gamma and beta each time. Once is enough."""
    return reference.layer_norm(
        reference.layer_norm(x + sublayer_out, gamma, beta, eps), gamma, beta, eps
    )


@add_and_norm.mistake
def x_missing(x, sublayer_out, gamma, beta, eps=1e-5):
    """The residual is missing: x is not added, only sublayer_out is normalised. Normalise the sum,
    x + sublayer_out."""
    return reference.layer_norm(sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def sublayer_missing(x, sublayer_out, gamma, beta, eps=1e-5):
    """sublayer_out is not used, it is ignored: only x is normalised. Add it to x first and
    normalise the sum, x + sublayer_out."""
    return reference.layer_norm(x, gamma, beta, eps)


@add_and_norm.mistake
def not_normalised(x, sublayer_out, gamma, beta, eps=1e-5):
    """The norm is missing: the sum is returned as it is, not normalised. Hand it to layer_norm with
    gamma, beta and eps."""
    return x + sublayer_out


@add_and_norm.mistake
def x_added_after(x, sublayer_out, gamma, beta, eps=1e-5):
    """x is added twice: before the norm and once more after it. In post-norm nothing comes after
    the norm: LayerNorm(x + sublayer_out)."""
    return x + reference.layer_norm(x + sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def sublayer_added_after(x, sublayer_out, gamma, beta, eps=1e-5):
    """sublayer_out is added twice: before the norm and once more after it. Nothing comes after the
    norm: LayerNorm(x + sublayer_out)."""
    return reference.layer_norm(x + sublayer_out, gamma, beta, eps) + sublayer_out


@add_and_norm.mistake
def x_twice(x, sublayer_out, gamma, beta, eps=1e-5):
    """x is added twice to sublayer_out. The residual adds it once: x + sublayer_out."""
    return reference.layer_norm(x + x + sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def difference(x, sublayer_out, gamma, beta, eps=1e-5):
    """The sign is wrong: one is subtracted from the other, x - sublayer_out. The residual is a sum,
    x + sublayer_out."""
    return reference.layer_norm(x - sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def difference_reversed(x, sublayer_out, gamma, beta, eps=1e-5):
    """The sign is wrong: x is subtracted, sublayer_out - x. The residual is a sum,
    x + sublayer_out."""
    return reference.layer_norm(sublayer_out - x, gamma, beta, eps)


@add_and_norm.mistake
def product(x, sublayer_out, gamma, beta, eps=1e-5):
    """x and sublayer_out are multiplied. The residual adds them, x + sublayer_out."""
    return reference.layer_norm(x * sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def average(x, sublayer_out, gamma, beta, eps=1e-5):
    """It takes half of the sum, the average of x and sublayer_out. The residual is the sum itself,
    x + sublayer_out, without a factor: where the variance is small, eps tells them apart."""
    return reference.layer_norm((x + sublayer_out) / 2, gamma, beta, eps)


@add_and_norm.mistake
def adds_in_place(x, sublayer_out, gamma, beta, eps=1e-5):
    """x += sublayer_out changes x in place, the array that was given, and whoever still uses it
    gets the sum. Make a new array: x + sublayer_out."""
    x += sublayer_out
    return reference.layer_norm(x, gamma, beta, eps)


@add_and_norm.mistake
def adds_into_the_sublayer(x, sublayer_out, gamma, beta, eps=1e-5):
    """sublayer_out += x changes sublayer_out in place, the array that was given. Make a new array:
    x + sublayer_out."""
    sublayer_out += x
    return reference.layer_norm(sublayer_out, gamma, beta, eps)


# ---------------------------------------------------------------- pre_norm

pre_norm = Exercise(
    reference.pre_norm,
    notebook="10",
    level=2,
    minutes=6,
    task="Normalise what the sub-layer reads, and keep the path around it clean; this time write "
    "it without layer_norm. `sublayer` is a function, and x must keep its values.",
    hints=(
        "Which of the two paths, through the sub-layer or around it, sees the normalised x?",
        "Give the normalised x a name of its own. The sub-layer gets it; x itself is added.",
        "`h = gamma * (x - mean) / np.sqrt(variance + eps) + beta`, then `return x + sublayer(h)`",
    ),
)
MIX = rng.normal(size=(4, 4)).astype(np.float32)
MIX5 = rng.normal(size=(5, 5)).astype(np.float32)


def bent(h: np.ndarray) -> np.ndarray:
    """A sub-layer that is not linear and treats each word alone."""
    return np.tanh(h @ MIX5)


def mixes_words(h: np.ndarray) -> np.ndarray:
    """A sub-layer in which words meet, as in attention."""
    return 2 * h[..., ::-1, :] @ MIX5


def negative(h: np.ndarray) -> np.ndarray:
    return -h


pre_norm.probe("a sub-layer that turns the sign, for one word", WORD[None], negative, ONES, ZEROS)
pre_norm.probe("the same with a gain and a bias", WORD[None], negative, GAMMA, BETA)
pre_norm.probe("a sub-layer that squares", np.array([WORD, -OUT]), np.square, GAMMA, BETA)
pre_norm.probe("a sub-layer that is a product", normal(3, 4), lambda h: h @ MIX, gamma4, beta4)
pre_norm.probe("a batch of two sentences", normal(2, 3, 5), bent, gamma5, beta5)
pre_norm.probe("a sub-layer in which words meet", normal(2, 3, 5), mixes_words, gamma5, beta5)
pre_norm.probe("one sentence whose words meet", normal(3, 5), mixes_words, gamma5, beta5)
pre_norm.probe("as many words as features", normal(2, 4, 4), np.abs, gamma4, beta4)
pre_norm.probe("a silent sub-layer", normal(2, 4, 4), np.zeros_like, gamma4, beta4)
pre_norm.probe("nearly equal features", flat, np.square, GAMMA, BETA)
pre_norm.probe("features that are all equal", np.full((1, 4), 3.0), np.square, GAMMA, BETA)
pre_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0]]), np.square, GAMMA, BETA, eps=0.5)
pre_norm.probe("large numbers", 1000 + WORD[None], lambda h: 10 * h, GAMMA, BETA)

norms_inside(
    pre_norm,
    lambda norm: lambda x, sublayer, *args, **kw: x + sublayer(norm(x, *args, **kw)),
)


@pre_norm.mistake
def post_norm(x, sublayer, gamma, beta, eps=1e-5):
    """That is post-norm: it normalises after adding. In pre-norm the norm comes before the
    sub-layer, and nothing after the sum: x + sublayer(LayerNorm(x))."""
    return reference.layer_norm(x + sublayer(x), gamma, beta, eps)


@pre_norm.mistake
def residual_normalised(x, sublayer, gamma, beta, eps=1e-5):
    """The residual path is normalised too: LayerNorm(x) is added. Add the original, raw x; only the
    sub-layer sees the normalised one. A name of its own for it helps: h = layer_norm(x, …)."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return h + sublayer(h)


@pre_norm.mistake
def norm_after_the_sublayer(x, sublayer, gamma, beta, eps=1e-5):
    """The norm comes after the sub-layer: it normalises what comes out, x + LayerNorm(sublayer(x)).
    Pre-norm normalises what goes in, before the sub-layer: sublayer(LayerNorm(x))."""
    return x + reference.layer_norm(sublayer(x), gamma, beta, eps)


@pre_norm.mistake
def word_by_word(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer is called once for each word (token), one at a time. In attention words meet:
    hand it all of the normalised x at once, sublayer(h)."""
    h = reference.layer_norm(x, gamma, beta, eps)
    words = [sublayer(h[..., t : t + 1, :]) for t in range(x.shape[-2])]
    return x + np.concatenate(words, axis=-2)


@pre_norm.mistake
def row_by_row(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer is called in a loop, once for each row of x: in a sentence that is one word
    (token) at a time. In attention words meet: hand it all of x at once, sublayer(h)."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return x + np.stack([sublayer(row) for row in h])


@pre_norm.mistake
def norm_on_the_wrong_path(x, sublayer, gamma, beta, eps=1e-5):
    """The norm is on the wrong path: the residual is normalised, and the sub-layer reads the raw x.
    Swap them: x + sublayer(LayerNorm(x))."""
    return reference.layer_norm(x, gamma, beta, eps) + sublayer(x)


@pre_norm.mistake
def residual_missing(x, sublayer, gamma, beta, eps=1e-5):
    """The residual is missing: x is not added. Return x + sublayer(LayerNorm(x))."""
    return sublayer(reference.layer_norm(x, gamma, beta, eps))


@pre_norm.mistake
def norm_missing(x, sublayer, gamma, beta, eps=1e-5):
    """The norm is missing: the sub-layer reads x as it is, not normalised. Normalise its input,
    before the sub-layer: x + sublayer(LayerNorm(x))."""
    return x + sublayer(x)


@pre_norm.mistake
def sublayer_not_called(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer is never called: sublayer is a function, and x + LayerNorm(x) leaves it out,
    unused. Call it on the normalised x: sublayer(h)."""
    return x + reference.layer_norm(x, gamma, beta, eps)


@pre_norm.mistake
def sum_normalised_too(x, sublayer, gamma, beta, eps=1e-5):
    """The sum is normalised too, as in post-norm: one norm too many. In pre-norm nothing comes
    after the addition; only the sub-layer's input is normalised, before it."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return reference.layer_norm(x + sublayer(h), gamma, beta, eps)


@pre_norm.mistake
def output_normalised_too(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer's output is normalised too, before it is added: one norm too many. Normalise
    only what goes in."""
    out = sublayer(reference.layer_norm(x, gamma, beta, eps))
    return x + reference.layer_norm(out, gamma, beta, eps)


@pre_norm.mistake
def norm_of_residual_and_output(x, sublayer, gamma, beta, eps=1e-5):
    """x and the sub-layer's output are normalised separately and added. Pre-norm normalises the
    sub-layer's input alone, before it; the residual is the raw x."""
    out = reference.layer_norm(sublayer(x), gamma, beta, eps)
    return reference.layer_norm(x, gamma, beta, eps) + out


@pre_norm.mistake
def post_norm_without_x(x, sublayer, gamma, beta, eps=1e-5):
    """It normalises the sub-layer's output and leaves x out. Normalise what goes in, before the
    sub-layer, and add the residual: x + sublayer(LayerNorm(x))."""
    return reference.layer_norm(sublayer(x), gamma, beta, eps)


@pre_norm.mistake
def residual_twice(x, sublayer, gamma, beta, eps=1e-5):
    """x is added twice. The residual adds it once: x + sublayer(LayerNorm(x))."""
    return x + x + sublayer(reference.layer_norm(x, gamma, beta, eps))


@pre_norm.mistake
def normalised_x_added_too(x, sublayer, gamma, beta, eps=1e-5):
    """Besides x, the normalised x is added: two residual paths. Add only the original x, once:
    x + sublayer(h)."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return x + h + sublayer(h)


@pre_norm.mistake
def sublayer_twice(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer is applied twice, to its own output. Call it once:
    x + sublayer(LayerNorm(x))."""
    return x + sublayer(sublayer(reference.layer_norm(x, gamma, beta, eps)))


@pre_norm.mistake
def input_normalised_twice(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer's input is normalised twice, with gamma and beta each time. Once is enough."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return x + sublayer(reference.layer_norm(h, gamma, beta, eps))


@pre_norm.mistake
def sum_before_the_norm(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer reads the normalised sum x + sublayer(x): it is called twice, and the order is
    mixed up. It reads LayerNorm(x): x + sublayer(LayerNorm(x))."""
    return x + sublayer(reference.layer_norm(x + sublayer(x), gamma, beta, eps))


@pre_norm.mistake
def gain_after_the_sublayer(x, sublayer, gamma, beta, eps=1e-5):
    """gamma and beta are applied to the sub-layer's output. They belong to the norm, before the
    sub-layer: sublayer(gamma * … + beta)."""
    return x + gamma * sublayer(plain(x, eps)) + beta


@pre_norm.mistake
def difference_instead_of_sum(x, sublayer, gamma, beta, eps=1e-5):
    """The sign is wrong: the sub-layer's output is subtracted. The residual is a sum,
    x + sublayer(LayerNorm(x))."""
    return x - sublayer(reference.layer_norm(x, gamma, beta, eps))


@pre_norm.mistake
def product_instead_of_sum(x, sublayer, gamma, beta, eps=1e-5):
    """x is multiplied by the sub-layer's output. The residual adds: x + sublayer(LayerNorm(x))."""
    return x * sublayer(reference.layer_norm(x, gamma, beta, eps))


@pre_norm.mistake
def average_instead_of_sum(x, sublayer, gamma, beta, eps=1e-5):
    """It takes half of the sum, the average. The residual is the sum itself, without a factor:
    x + sublayer(LayerNorm(x))."""
    return (x + sublayer(reference.layer_norm(x, gamma, beta, eps))) / 2


@pre_norm.mistake
def gives_the_norm(x, sublayer, gamma, beta, eps=1e-5):
    """It returns the normalised x alone: sub-layer and residual are missing. Return
    x + sublayer(LayerNorm(x))."""
    return reference.layer_norm(x, gamma, beta, eps)


@pre_norm.mistake
def sum_in_place(x, sublayer, gamma, beta, eps=1e-5):
    """x += … changes x in place, the array that was given. Make a new array: x + sublayer(…)."""
    x += sublayer(reference.layer_norm(x, gamma, beta, eps))
    return x


# ---------------------------------------------------------------- pre_norm_stack


def pre_norm_stack(
    x: np.ndarray,
    sublayers: Sequence[Callable[[np.ndarray], np.ndarray]],
    gammas: np.ndarray,
    betas: np.ndarray,
    eps: float = 1e-5,
) -> np.ndarray:
    """Apply n pre-norm sub-layers in turn, then one last LayerNorm: (…, T, d) → (…, T, d).

    `gammas` and `betas` are (n + 1, d): row i for sub-layer i, the last row for the last norm.
    GPT-2 is built so: Radford et al. (2019), section 2.3.
    """
    for sublayer, gamma, beta in zip(sublayers, gammas[:-1], betas[:-1], strict=True):
        x = x + sublayer(reference.layer_norm(x, gamma, beta, eps))
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


stack = Exercise(
    pre_norm_stack,
    notebook="10",
    level=2,
    minutes=8,
    task="Apply several pre-norm sub-layers one after the other, then one last LayerNorm. Row i of "
    "gammas and betas belongs to sub-layer i; they have one row more than there are sub-layers, "
    "and this last row belongs to the last norm.",
    hints=(
        "What does the second sub-layer read, and what is its result added to?",
        "Let one name stand for the state: it starts as x, and each sub-layer replaces it by "
        "pre_norm of it. Only after the loop comes layer_norm, with row -1.",
        "`for sublayer, gamma, beta in zip(sublayers, gammas, betas): x = pre_norm(x, "
        "sublayer, gamma, beta, eps)`, then `return layer_norm(x, gammas[-1], betas[-1], eps)`",
    ),
)
GAMMAS, BETAS = np.array([ONES, GAMMA]), np.array([ZEROS, BETA])
gain_rows, bias_rows = normal(4, 5), normal(4, 5)


def stretched(h: np.ndarray) -> np.ndarray:
    return 3 * np.cos(h)


THREE = [bent, mixes_words, stretched]
stack.probe("one sub-layer that squares", WORD[None], [np.square], GAMMAS, BETAS)
stack.probe(
    "two sub-layers for two words",
    np.array([WORD, OUT]),
    [np.square, np.abs],
    np.array([GAMMA, ONES, GAMMA[::-1]]),
    np.array([BETA, ZEROS, BETA[::-1]]),
)
stack.probe("no sub-layer at all", WORD[None], [], GAMMAS[1:], BETAS[1:])
stack.probe("three sub-layers for a batch", normal(2, 3, 5), THREE, gain_rows, bias_rows)
stack.probe(
    "the same sub-layers in another order", normal(2, 3, 5), THREE[::-1], gain_rows, bias_rows
)
stack.probe("as many sub-layers as words", normal(3, 5), THREE, gain_rows, bias_rows)
stack.probe("eps=0.5", flat, [np.square], GAMMAS, BETAS, eps=0.5)
stack.probe("nearly equal features", flat, [np.square], GAMMAS, BETAS)


@stack.mistake
def last_norm_missing(x, sublayers, gammas, betas, eps=1e-5):
    """The last LayerNorm is missing: the sum is returned as it is, not normalised. After the loop,
    normalise once more with the last row, gammas[-1] and betas[-1]."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return x


@stack.mistake
def last_norm_with_the_row_before(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm uses the row of the last sub-layer again. Its own is the last row, gammas[-1]
    and betas[-1]."""
    for gamma, beta, sublayer in zip(gammas, betas, sublayers, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    row = max(0, len(sublayers) - 1)
    return reference.layer_norm(x, gammas[row], betas[row], eps)


@stack.mistake
def last_norm_without_gain(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm leaves gamma and beta out. It has its own, the last row: gammas[-1] and
    betas[-1]."""
    return plain(last_norm_missing(x, sublayers, gammas, betas, eps), eps)


@stack.mistake
def last_norm_in_the_loop(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm stands inside the loop, so that it is applied after every sub-layer. Take it
    out of the loop (indentation): once, at the end."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
        x = reference.layer_norm(x, gammas[-1], betas[-1], eps)
    return x


@stack.mistake
def last_norm_first(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm comes first, before the sub-layers. Order: the sub-layers in turn, and after
    the loop one LayerNorm with gammas[-1] and betas[-1]."""
    x = reference.layer_norm(x, gammas[-1], betas[-1], eps)
    return last_norm_missing(x, sublayers, gammas, betas, eps)


@stack.mistake
def post_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
    """These are post-norm steps: they normalise after adding. In pre-norm each sub-layer reads the
    normalised x, the norm comes before it: x + sublayer(LayerNorm(x))."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.layer_norm(x + sublayer(x), gamma, beta, eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def inner_norms_missing(x, sublayers, gammas, betas, eps=1e-5):
    """The norms before the sub-layers are missing: only the end is normalised. Each sub-layer reads
    LayerNorm(x) with its own row of gammas and betas."""
    for sublayer in sublayers:
        x = x + sublayer(x)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def residuals_missing(x, sublayers, gammas, betas, eps=1e-5):
    """The residual is missing: each sub-layer's output replaces x. Add it: x + sublayer(…)."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = sublayer(reference.layer_norm(x, gamma, beta, eps))
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def residuals_normalised(x, sublayers, gammas, betas, eps=1e-5):
    """The residual path is normalised too: the normalised x is added. Add the original x; only the
    sub-layer sees the normalised one, x + sublayer(LayerNorm(x))."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        h = reference.layer_norm(x, gamma, beta, eps)
        x = h + sublayer(h)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def residual_from_the_start(x, sublayers, gammas, betas, eps=1e-5):
    """Every residual adds the first input, the x that was handed in. Add the state that the
    sub-layer itself got, the output of the one before."""
    state = x
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        state = x + sublayer(reference.layer_norm(state, gamma, beta, eps))
    return reference.layer_norm(state, gammas[-1], betas[-1], eps)


@stack.mistake
def side_by_side(x, sublayers, gammas, betas, eps=1e-5):
    """Every sub-layer reads the first input, side by side. Each reads what the one before has left:
    keep the state in one name, x = pre_norm(x, …)."""
    total = x
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        total = total + sublayer(reference.layer_norm(x, gamma, beta, eps))
    return reference.layer_norm(total, gammas[-1], betas[-1], eps)


@stack.mistake
def only_the_last(x, sublayers, gammas, betas, eps=1e-5):
    """Each sub-layer gets the first input, and only the result of the last one is kept: the state
    is not chained. Write the result back into x, so that the next one reads it."""
    state = x
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        state = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return reference.layer_norm(state, gammas[-1], betas[-1], eps)


@stack.mistake
def returns_in_the_loop(x, sublayers, gammas, betas, eps=1e-5):
    """It stops after the first sub-layer: the return stands inside the loop. Take it out
    (indentation), after the loop."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
        return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def one_too_few(x, sublayers, gammas, betas, eps=1e-5):
    """The last sub-layer is left out: the loop ends one too early. There are len(sublayers)
    sub-layers, and one row more for the last norm."""
    for sublayer, gamma, beta in zip(sublayers[:-1], gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def first_row_for_all(x, sublayers, gammas, betas, eps=1e-5):
    """Every sub-layer uses the same row, gammas[0] and betas[0]. Sub-layer i has its own: gammas[i]
    and betas[i]."""
    for sublayer in sublayers:
        x = reference.pre_norm(x, sublayer, gammas[0], betas[0], eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def last_row_for_all(x, sublayers, gammas, betas, eps=1e-5):
    """Every norm uses the last row, gammas[-1] and betas[-1]. That one is for the last norm;
    sub-layer i has its own, gammas[i] and betas[i]."""
    for sublayer in sublayers:
        x = reference.pre_norm(x, sublayer, gammas[-1], betas[-1], eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def next_row(x, sublayers, gammas, betas, eps=1e-5):
    """The rows are shifted by one: sub-layer i gets gammas[i + 1]. Start at row 0: gammas[i] and
    betas[i]."""
    for sublayer, gamma, beta in zip(sublayers, gammas[1:], betas[1:], strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def sublayers_reversed(x, sublayers, gammas, betas, eps=1e-5):
    """The sub-layers are applied in reverse order, from the last to the first. Begin with
    sublayers[0]."""
    for sublayer, gamma, beta in zip(sublayers[::-1], gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def gains_and_biases_swapped(x, sublayers, gammas, betas, eps=1e-5):
    """gammas and betas are swapped. layer_norm takes gamma first, then beta."""
    return pre_norm_stack(x, sublayers, betas, gammas, eps)


@stack.mistake
def eps_not_passed_on(x, sublayers, gammas, betas, eps=1e-5):
    """The argument eps is ignored. Hand it on to every norm."""
    return pre_norm_stack(x, sublayers, gammas, betas)


@stack.mistake
def eps_for_the_last_norm_only(x, sublayers, gammas, betas, eps=1e-5):
    """eps reaches the last norm only; the norms inside the loop ignore it. Hand eps on to each."""
    x = last_norm_missing(x, sublayers, gammas, betas)
    return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def eps_for_the_inner_norms_only(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm ignores eps. Hand it on to that one too, after the loop."""
    x = last_norm_missing(x, sublayers, gammas, betas, eps)
    return reference.layer_norm(x, gammas[-1], betas[-1])


@stack.mistake
def states_in_place(x, sublayers, gammas, betas, eps=1e-5):
    """x += … changes x in place, the array that was given. Make a new one: x = x + sublayer(…)."""
    result = pre_norm_stack(x, sublayers, gammas, betas, eps)
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x += sublayer(reference.layer_norm(x, gamma, beta, eps))
    return result
