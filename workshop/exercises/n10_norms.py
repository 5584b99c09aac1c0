"""Notebook 10: LayerNorm, and the residual path that it normalises."""

from collections.abc import Callable

import numpy as np

from helpers import blocks as reference
from workshop.exercises.exercise import Draw, Exercise, Untested, numbers


def words(*shape: int) -> Draw:
    """Numbers with mean 1 and deviation 2."""
    return 2 * numbers(*shape) + 1


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
    task="Bring each word to one scale, then apply gain and bias. Mean and variance run over the "
    "last axis, the features, so that no word looks at another; it must work for a sentence (T, d) "
    "and for a batch (B, T, d).",
    hints=(
        "Which numbers belong to one word? And how many means does a sentence have?",
        "Mean and variance over the last axis, axis=-1; keepdims=True keeps that axis, so that the "
        "subtraction lines up. eps is added to the variance, before the root.",
        "`mean = x.mean(axis=-1, keepdims=True)`, then `variance = ((x - mean) ** 2).mean(axis=-1, "
        "keepdims=True)`, then `return gamma * (x - mean) / np.sqrt(variance + eps) + beta`",
    ),
)
WORD = np.array([2.0, 4.0, 4.0, 10.0])  # mean 5, deviation 3
GAMMA, BETA = np.array([1.0, 2.0, 0.5, 3.0]), np.array([0.0, 1.0, -1.0, 2.0])
ONES, ZEROS = np.ones(4), np.zeros(4)
FLAT = np.array([[3.0, 3.003, 3.001, 2.998]])
layer_norm.probe("one word, gamma 1, beta 0", WORD[None], ONES, ZEROS)
layer_norm.probe("with a gain and a bias", WORD[None], GAMMA, BETA)
layer_norm.probe("two words", np.array([WORD, [9.0, 0.0, 0.0, 3.0]]), GAMMA, BETA)
layer_norm.probe("a sentence of three words", words(3, 5), words(5), words(5))
layer_norm.probe("a batch of two sentences", words(2, 3, 5), words(5), words(5))
layer_norm.probe("as many words as features", words(2, 4, 4), words(4), words(4))
layer_norm.probe("four of everything", words(4, 4, 4), words(4), words(4))
layer_norm.probe("a gain only", WORD[None], GAMMA, ZEROS)
layer_norm.probe("nearly equal features", FLAT, GAMMA, BETA)
layer_norm.probe(  # exact where the mean is subtracted first, lost where it is squared first
    "float32 features far from zero",
    np.float32([[4096.25, 4095.75, 4096.5, 4095.5]]), np.float32(ONES), np.float32(ZEROS),
)  # fmt: skip
layer_norm.probe("features that are all equal", np.full((1, 4), 3.0), GAMMA, BETA)
layer_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0], WORD]), GAMMA, BETA, eps=0.5)
layer_norm.probe("large numbers", 1000 + np.array([WORD, -WORD]), GAMMA, BETA)
layer_norm.answer("""
    def layer_norm(x, gamma, beta, eps=1e-5):
        d = x.shape[-1]
        mean = x.sum(axis=-1, keepdims=True) / d
        variance = ((x - mean) ** 2).sum(axis=-1, keepdims=True) / d
        return gamma * (x - mean) / np.sqrt(variance + eps) + beta
""")
layer_norm.answer("""
    def layer_norm(x, gamma, beta, eps=1e-5):
        mean = x.mean(axis=-1, keepdims=True)
        var = x.var(axis=-1, keepdims=True)
        x_hat = (x - mean) / (var + eps) ** 0.5
        return gamma * x_hat + beta
""")
layer_norm.answer("""
    def layer_norm(x, gamma, beta, eps=1e-5):
        centred = x - x.mean(axis=-1, keepdims=True)
        std = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
        return centred / std * gamma + beta
""")
layer_norm.answer("""
    def layer_norm(x, gamma, beta, eps=1e-5):
        out = np.zeros(x.shape)
        for word in np.ndindex(x.shape[:-1]):
            row = x[word]
            out[word] = gamma * (row - row.mean()) / np.sqrt(row.var() + eps) + beta
        return out
""")
layer_norm.answer("""
    import torch

    def layer_norm(x, gamma, beta, eps=1e-5):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return gamma * (x - mean) / torch.sqrt(var + eps) + beta
""")


def why_norm(exercise: Exercise) -> None:
    """What the parts of a LayerNorm are for."""
    exercise.why(
        "x - mean | row - row.mean() | x - x.mean",
        "Subtract the mean before dividing: each word is then centred on 0.",
    )
    exercise.why(
        "axis=-1 | dim=-1 | keepdims=True | keepdim=True | -1",
        "Each word is normalised alone, over its features, the last axis, kept so that mean and "
        "spread line up with their word.",
    )
    exercise.why(
        "np.sqrt(variance + eps) | (x - mean) ** 2 | torch.sqrt | ** 0.5 | ** 2 | "
        "x.var(axis=-1, keepdims=True) | "
        "np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)",
        "The variance averages squared distances from the mean; std is already its root. Dividing "
        "by the root gives each word deviation 1.",
    )
    exercise.why(
        "+ eps | eps | variance + eps | var + eps | 1e-5",
        "eps, as the caller chose it, stands inside the root: equal features then give 0, "
        "not 0 / 0.",
    )
    exercise.why(
        "unbiased=False | correction=0 | ddof=0 | ddof=1 | d | x.shape[-1] | / d",
        "Divide by d, the number of features (biased), not by d - 1: these features are all "
        "there are.",
    )
    exercise.why(
        "gamma * | * gamma | gamma * x_hat + beta | gamma | + beta | beta | gamma, beta",
        "First the learned gain gamma multiplies what is normalised, then the learned shift beta "
        "is added, unscaled.",
    )


why_norm(layer_norm)
layer_norm.why(
    "x.copy() | x = x.copy() | np.zeros(x.shape)",
    "x belongs to the caller: what is computed goes into a new array.",
)


@layer_norm.mistake
def divides_by_variance(x, gamma, beta, eps=1e-5):
    """It divides by the variance, which is a square: twice the numbers would not give the same
    result. Divide by the standard deviation, the root of the variance."""
    return gamma * centred(x) / (variance(x) + eps) + beta


@layer_norm.mistake
def unbiased(x, gamma, beta, eps=1e-5):
    """The variance is the unbiased one, divided by d - 1, as PyTorch's var and std do by default.
    LayerNorm divides by d, the number of features (correction 0)."""
    return gamma * centred(x) / np.sqrt(variance(x, ddof=1) + eps) + beta


@layer_norm.mistake
def beta_before_gamma(x, gamma, beta, eps=1e-5):
    """beta is added before gamma multiplies, so the gain scales the shift too. First multiply what
    is normalised by gamma, then add beta."""
    return gamma * (centred(x) / np.sqrt(variance(x) + eps) + beta)


@layer_norm.mistake
def eps_outside(x, gamma, beta, eps=1e-5):
    """eps is added to the standard deviation, outside the root. It belongs inside, to the variance:
    take the root of variance + eps."""
    return gamma * centred(x) / (np.sqrt(variance(x)) + eps) + beta


@layer_norm.mistake
def over_the_sentence(x, gamma, beta, eps=1e-5):
    """Mean and variance are those of the whole sentence, words and features together. Each word is
    normalised alone, over its features, the last axis."""
    return gamma * centred(x, (-2, -1)) / np.sqrt(variance(x, (-2, -1)) + eps) + beta


@layer_norm.mistake
def rms_norm(x, gamma, beta, eps=1e-5):
    """This is RMSNorm: x is divided by its root mean square and never centred. LayerNorm subtracts
    the mean first, and measures the spread around it."""
    return gamma * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def root_mean_square(x, gamma, beta, eps=1e-5):
    """x is centred, but divided by its own root mean square. The variance is measured around the
    mean: square the distances from it."""
    return gamma * centred(x) / np.sqrt((x**2).mean(-1, keepdims=True) + eps) + beta


@layer_norm.mistake
def over_axis_0(x, gamma, beta, eps=1e-5):
    """Mean and variance run over the first axis, which counts sentences in a batch and words in a
    sentence. Each word is normalised over its features, the last axis."""
    return gamma * centred(x, 0) / np.sqrt(variance(x, 0) + eps) + beta


@layer_norm.mistake
def unbiased_and_eps_outside(x, gamma, beta, eps=1e-5):
    """Two things: the standard deviation divides by d - 1 (unbiased, as torch.std does), and eps is
    added outside the root. Divide by d, and add eps to the variance."""
    return gamma * centred(x) / (np.sqrt(variance(x, ddof=1)) + eps) + beta


@layer_norm.mistake
def one_plus_gamma(x, gamma, beta, eps=1e-5):
    """It multiplies by 1 + gamma, as some models do whose gain starts at 0. Here gamma is the whole
    gain, and starts at 1: multiply by gamma itself."""
    return (1 + gamma) * plain(x, eps) + beta


@layer_norm.mistake
def gamma_and_beta_ignored(x, gamma, beta, eps=1e-5):
    """gamma and beta are not used. They are learned, one of each for every feature: gamma scales
    what is normalised, and beta shifts it."""
    return plain(x, eps)


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
add_and_norm.probe("one word, gamma 1, beta 0", WORD[None], OUT[None], ONES, ZEROS)
add_and_norm.probe("with a gain and a bias", WORD[None], OUT[None], GAMMA, BETA)
add_and_norm.probe(
    "two words", np.array([WORD, -OUT]), np.array([OUT, [3.0, 0.0, 1.0, 9.0]]), GAMMA, BETA
)
add_and_norm.probe("a sentence of three words", words(3, 5), words(3, 5), words(5), words(5))
add_and_norm.probe("a batch of two sentences", words(2, 3, 5), words(2, 3, 5), words(5), words(5))
add_and_norm.probe("as many words as features", words(2, 4, 4), words(2, 4, 4), words(4), words(4))
add_and_norm.probe("nearly equal features", FLAT, FLAT[:, ::-1] / 2, GAMMA, BETA)
add_and_norm.probe("a sum of equal features", 3 - OUT[None], OUT[None], GAMMA, BETA)
add_and_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0]]), 0.5 * OUT[None], GAMMA, BETA, 0.5)
add_and_norm.probe("large numbers", 1000 + WORD[None], OUT[None] - 500, GAMMA, BETA)
add_and_norm.answer("""
    def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
        total = x + sublayer_out
        return layer_norm(total, gamma, beta, eps)
""")
add_and_norm.answer("""
    def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
        x = x + sublayer_out
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return gamma * (x - mean) / np.sqrt(variance + eps) + beta
""")
add_and_norm.answer("""
    def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
        h = x.copy()
        h += sublayer_out
        mean = h.sum(axis=-1, keepdims=True) / h.shape[-1]
        variance = ((h - mean) ** 2).sum(axis=-1, keepdims=True) / h.shape[-1]
        return gamma * (h - mean) / np.sqrt(variance + eps) + beta
""")
add_and_norm.answer("""
    import torch.nn.functional as F

    def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
        total = x + sublayer_out
        return F.layer_norm(total, total.shape[-1:], gamma, beta, eps)
""")
why_norm(add_and_norm)
add_and_norm.why(
    "x + sublayer_out | total | layer_norm | x.copy()",
    "First the sum of input and output, in a new array, then one norm of it, and nothing after: "
    "post-norm.",
)
add_and_norm.why(
    "sublayer_out", "The sub-layer's output is a change to x: the residual path adds it as it is."
)


@add_and_norm.mistake
def sublayer_normalised_only(x, sublayer_out, gamma, beta, eps=1e-5):
    """Only the sub-layer's output is normalised, and x is added after it. Add first, then normalise
    the sum: so it stays bounded."""
    return x + reference.layer_norm(sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def adds_in_place(x, sublayer_out, gamma, beta, eps=1e-5):
    """The sum is written into x, the array that was given, and whoever still uses it finds other
    numbers. Make a new array for the sum."""
    x += sublayer_out
    return reference.layer_norm(x, gamma, beta, eps)


@add_and_norm.mistake
def x_normalised_only(x, sublayer_out, gamma, beta, eps=1e-5):
    """Only x is normalised, and the sub-layer's output is added after it. Add first: the norm is
    taken of the sum, and so bounds it."""
    return reference.layer_norm(x, gamma, beta, eps) + sublayer_out


@add_and_norm.mistake
def both_normalised(x, sublayer_out, gamma, beta, eps=1e-5):
    """x and the sub-layer's output are normalised apart and then added, so the sum has no fixed
    spread. Add first, then normalise once."""
    parts = (reference.layer_norm(part, gamma, beta, eps) for part in (x, sublayer_out))
    return sum(parts)


@add_and_norm.mistake
def x_added_after(x, sublayer_out, gamma, beta, eps=1e-5):
    """x is added twice, before the norm and again after it. In post-norm the norm comes last: what
    leaves the layer is the normalised sum itself."""
    return x + reference.layer_norm(x + sublayer_out, gamma, beta, eps)


@add_and_norm.mistake
def x_missing(x, sublayer_out, gamma, beta, eps=1e-5):
    """The residual is missing: only the sub-layer's output is normalised, and x is lost. Add x to
    it first, and normalise the sum."""
    return reference.layer_norm(sublayer_out, gamma, beta, eps)
