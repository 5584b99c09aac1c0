"""Notebook 10: pre-norm, where the norm stands before the sub-layer."""

from collections.abc import Callable, Sequence

import numpy as np

from helpers import blocks as reference
from workshop.exercises.exercise import Exercise, drawn, numbers
from workshop.exercises.n10_norms import (
    BETA,
    FLAT,
    GAMMA,
    ONES,
    OUT,
    WORD,
    ZEROS,
    why_norm,
    words,
)  # fmt: skip

# ---------------------------------------------------------------- pre_norm

pre_norm = Exercise(
    reference.pre_norm,
    notebook="10",
    level=2,
    minutes=6,
    task="Normalise what the sublayer reads, and keep the river itself clean. `sublayer` is a "
    "function from vectors to vectors, and x must keep its values.",
    hints=(
        "Which of the two paths, through the sublayer or around it, sees the normalised x?",
        "Give the normalised x a name of its own. The sublayer gets it; x itself is added.",
        "`h = layer_norm(x, gamma, beta, eps)`, then `return x + sublayer(h)`",
    ),
)
MIX, MIX5 = drawn((numbers(4, 4), numbers(5, 5)), "sub-layers")


def bent(h: np.ndarray) -> np.ndarray:
    """A sub-layer that is not linear and treats each word alone."""
    return np.tanh(h @ MIX5)


def mixes_words(h: np.ndarray) -> np.ndarray:
    """A sub-layer in which words meet, as in attention."""
    return 2 * h[..., ::-1, :] @ MIX5


def negative(h: np.ndarray) -> np.ndarray:
    return -h


pre_norm.probe("a sub-layer turns the sign", WORD[None], negative, ONES, ZEROS)
pre_norm.probe("with a gain and a bias", WORD[None], negative, GAMMA, BETA)
pre_norm.probe("a sub-layer that squares", np.array([WORD, -OUT]), np.square, GAMMA, BETA)
pre_norm.probe("a sub-layer that is linear", words(3, 4), lambda h: h @ MIX, words(4), words(4))
pre_norm.probe("a batch of two sentences", words(2, 3, 5), bent, words(5), words(5))
pre_norm.probe("a sub-layer where words meet", words(2, 3, 5), mixes_words, words(5), words(5))
pre_norm.probe("one sentence whose words meet", words(3, 5), mixes_words, words(5), words(5))
pre_norm.probe("as many words as features", words(2, 4, 4), np.abs, words(4), words(4))
pre_norm.probe("a silent sub-layer", words(2, 4, 4), np.zeros_like, words(4), words(4))
pre_norm.probe("nearly equal features", FLAT, np.square, GAMMA, BETA)
pre_norm.probe("features that are all equal", np.full((1, 4), 3.0), np.square, GAMMA, BETA)
pre_norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, 1.0]]), np.square, GAMMA, BETA, eps=0.5)
pre_norm.probe("large numbers", 1000 + WORD[None], lambda h: 10 * h, GAMMA, BETA)
pre_norm.answer("""
    def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        h = gamma * (x - mean) / np.sqrt(variance + eps) + beta
        return x + sublayer(h)
""")
pre_norm.answer("""
    def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
        h = layer_norm(x, gamma, beta, eps)
        return x + sublayer(h)
""")
pre_norm.answer("""
    def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
        d = x.shape[-1]
        mean = x.sum(axis=-1, keepdims=True) / d
        var = ((x - mean) ** 2).sum(axis=-1, keepdims=True) / d
        normed = (x - mean) / np.sqrt(var + eps) * gamma + beta
        out = sublayer(normed)
        return x + out
""")
pre_norm.answer("""
    import torch.nn.functional as F

    def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
        h = F.layer_norm(x, x.shape[-1:], gamma, beta, eps)
        return x + sublayer(h)
""")
why_norm(pre_norm)
pre_norm.why(
    "x + sublayer(h) | x + | x + out",
    "The residual path carries x itself, unchanged, from layer to layer; the sub-layer only adds "
    "to it.",
)
pre_norm.why(
    "sublayer(h) | sublayer | h | layer_norm(x, gamma, beta, eps) | sublayer(normed)",
    "In pre-norm the norm stands before the sub-layer: this reads the normalised x, and nothing "
    "is normalised after it.",
)


@pre_norm.mistake
def norm_after_the_sublayer(x, sublayer, gamma, beta, eps=1e-5):
    """The norm comes after the sub-layer: what comes out is normalised. Pre-norm normalises what
    goes in, and adds the output as it is."""
    return x + reference.layer_norm(sublayer(x), gamma, beta, eps)


@pre_norm.mistake
def post_norm(x, sublayer, gamma, beta, eps=1e-5):
    """This is post-norm: the sum is normalised at the end. In pre-norm the norm stands before the
    sub-layer, and nothing comes after the sum."""
    return reference.layer_norm(x + sublayer(x), gamma, beta, eps)


@pre_norm.mistake
def residual_normalised(x, sublayer, gamma, beta, eps=1e-5):
    """The residual path is normalised too: the normalised x is added in place of x. Only the
    sub-layer reads the normalised one, so give it a name of its own."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return h + sublayer(h)


@pre_norm.mistake
def residual_missing(x, sublayer, gamma, beta, eps=1e-5):
    """The residual is missing: only the sub-layer's output comes back. Add x itself, so that the
    path around the sub-layer stays open."""
    return sublayer(reference.layer_norm(x, gamma, beta, eps))


@pre_norm.mistake
def sum_normalised_too(x, sublayer, gamma, beta, eps=1e-5):
    """The sum is normalised once more, as in post-norm. In pre-norm only what the sub-layer reads
    is normalised, and nothing comes after the sum."""
    h = reference.layer_norm(x, gamma, beta, eps)
    return reference.layer_norm(x + sublayer(h), gamma, beta, eps)


@pre_norm.mistake
def norm_missing(x, sublayer, gamma, beta, eps=1e-5):
    """The norm is missing: the sub-layer reads x as it is. Normalise its input, with gain and bias;
    x itself is added unchanged."""
    return x + sublayer(x)


@pre_norm.mistake
def sublayer_not_called(x, sublayer, gamma, beta, eps=1e-5):
    """The sub-layer is never called: x plus the normalised x leaves it out. `sublayer` is a
    function: hand it the normalised x, and add what it returns."""
    return x + reference.layer_norm(x, gamma, beta, eps)


@pre_norm.mistake
def norm_on_the_wrong_path(x, sublayer, gamma, beta, eps=1e-5):
    """The norm is on the wrong path: the sub-layer reads the raw x, and the normalised x is added.
    It is the other way round."""
    return reference.layer_norm(x, gamma, beta, eps) + sublayer(x)


@pre_norm.mistake
def sum_in_place(x, sublayer, gamma, beta, eps=1e-5):
    """The sum is written into x, the array that was given, and whoever still uses it finds other
    numbers. Make a new array for the sum."""
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
    task="Let a river flow through several pre-norm sublayers, one after the other, then norm it "
    "once at its end, as GPT-2 does. Row i of gammas and betas belongs to sublayer i; they have "
    "one row more than there are sublayers, and this last row belongs to the last norm.",
    hints=(
        "What does the second sublayer read, and what is its result added to?",
        "Let one name stand for the river: it starts as x, and each sublayer replaces it by "
        "pre_norm of it. Only after the loop comes layer_norm, with row -1.",
        "`for sublayer, gamma, beta in zip(sublayers, gammas, betas): x = pre_norm(x, "
        "sublayer, gamma, beta, eps)`, then `return layer_norm(x, gammas[-1], betas[-1], eps)`",
    ),
)
GAMMAS, BETAS = np.array([ONES, GAMMA]), np.array([ZEROS, BETA])


def stretched(h: np.ndarray) -> np.ndarray:
    return 3 * np.cos(h)


THREE = [bent, mixes_words, stretched]
ROWS = words(4, 5), words(4, 5)  # gammas and betas for three sub-layers and the last norm
stack.probe("one sub-layer that squares", WORD[None], [np.square], GAMMAS, BETAS)
stack.probe(
    "two sub-layers for two words",
    np.array([WORD, OUT]),
    [np.square, np.abs],
    np.array([GAMMA, ONES, GAMMA[::-1]]),
    np.array([BETA, ZEROS, BETA[::-1]]),
)
stack.probe("no sub-layer at all", WORD[None], [], GAMMAS[1:], BETAS[1:])
stack.probe("three sub-layers for a batch", words(2, 3, 5), THREE, *ROWS)
stack.probe("the three in another order", words(2, 3, 5), THREE[::-1], *ROWS)
stack.probe("as many sub-layers as words", words(3, 5), THREE, *ROWS)
stack.probe("eps=0.5", FLAT, [np.square], GAMMAS, BETAS, eps=0.5)
stack.probe("nearly equal features", FLAT, [np.square], GAMMAS, BETAS)
stack.answer("""
    def pre_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
        for sublayer, gamma, beta in zip(sublayers, gammas, betas):
            x = pre_norm(x, sublayer, gamma, beta, eps)
        return layer_norm(x, gammas[-1], betas[-1], eps)
""")
stack.answer("""
    def pre_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
        for i in range(len(sublayers)):
            h = layer_norm(x, gammas[i], betas[i], eps)
            x = x + sublayers[i](h)
        return layer_norm(x, gammas[-1], betas[-1], eps)
""")
stack.answer("""
    def pre_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
        state = x
        for i, sublayer in enumerate(sublayers):
            mean = state.mean(axis=-1, keepdims=True)
            variance = state.var(axis=-1, keepdims=True)
            h = gammas[i] * (state - mean) / np.sqrt(variance + eps) + betas[i]
            state = state + sublayer(h)
        n = len(sublayers)
        return layer_norm(state, gammas[n], betas[n], eps)
""")
stack.answer("""
    import torch.nn.functional as F

    def pre_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
        width = x.shape[-1:]
        for sublayer, gamma, beta in zip(sublayers, gammas[:-1], betas[:-1]):
            x = x + sublayer(F.layer_norm(x, width, gamma, beta, eps))
        return F.layer_norm(x, width, gammas[-1], betas[-1], eps)
""")
stack.why(
    "layer_norm(x, gammas[-1], betas[-1], eps) | gammas[-1] | betas[-1] | gammas[n] | return",
    "Nothing has bounded the sum: one last norm, after the loop, with the last row of gains and "
    "biases.",
)
stack.why(
    "gammas[i] | betas[i] | gamma | beta | zip(sublayers, gammas, betas) | gammas[:-1]",
    "Each norm has learned its own gain and bias: row i belongs to sub-layer i.",
)
stack.why(
    "x = pre_norm(x, sublayer, gamma, beta, eps) | state | x = x + sublayers[i](h) | x +",
    "The state runs through all: each sub-layer reads what the one before has left, and adds "
    "to it.",
)
stack.why(
    "h | sublayers[i](h) | layer_norm(x, gammas[i], betas[i], eps) | sublayer | pre_norm",
    "In pre-norm each sub-layer reads the normalised state, and its output is added as it is.",
)
stack.why("eps", "eps is the caller's choice, and belongs to every norm, the last one too.")
stack.why(
    "sublayers | range(len(sublayers)) | enumerate(sublayers) | sublayers[::-1]",
    "All sub-layers have their turn, once each, from the first to the last.",
)


def stacked(step: Callable) -> Callable:
    """Add a mistake: another step(state, sublayer, gamma, beta, eps, x) in place of pre_norm."""

    def wrong(x, sublayers, gammas, betas, eps=1e-5):
        state = x
        for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
            state = step(state, sublayer, gamma, beta, eps, x)
        return reference.layer_norm(state, gammas[-1], betas[-1], eps)

    return stack.mistake(wrong, told_by=step)


@stack.mistake
def last_norm_missing(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm is missing: the sum of all sub-layers comes back as it is. After the loop,
    normalise once more, with the last row of gammas and betas."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
    return x


@stack.mistake
def last_norm_in_the_loop(x, sublayers, gammas, betas, eps=1e-5):
    """The last norm is applied after every sub-layer, so the residual path is normalised each time.
    It comes once, after all of them."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
        x = reference.layer_norm(x, gammas[-1], betas[-1], eps)
    return x


@stacked
def post_norm_stack(state, sublayer, gamma, beta, eps, x):
    """These are post-norm steps, which normalise after adding. In pre-norm each sub-layer reads the
    normalised state, and its output is added to the state itself."""
    return reference.layer_norm(state + sublayer(state), gamma, beta, eps)


@stacked
def inner_norms_missing(state, sublayer, gamma, beta, eps, x):
    """Only the end is normalised, and the sub-layers read the state as it is. Before each of them
    stands a norm with its own row of gammas and betas."""
    return state + sublayer(state)


@stacked
def residuals_missing(state, sublayer, gamma, beta, eps, x):
    """The residual is missing: each sub-layer's output replaces the state. Add it to the state, so
    that the path around the sub-layers stays open."""
    return sublayer(reference.layer_norm(state, gamma, beta, eps))


@stacked
def residuals_normalised(state, sublayer, gamma, beta, eps, x):
    """The residual path is normalised too: the normalised state is added. Only the sub-layer reads
    it; what is added to is the state itself."""
    h = reference.layer_norm(state, gamma, beta, eps)
    return h + sublayer(h)


@stacked
def residual_from_the_start(state, sublayer, gamma, beta, eps, x):
    """Every residual adds the first input, x. Add the state which the sub-layer itself has read,
    with all that came before in it."""
    return x + sublayer(reference.layer_norm(state, gamma, beta, eps))


@stacked
def side_by_side(state, sublayer, gamma, beta, eps, x):
    """Every sub-layer reads the first input, side by side. Each reads what the one before it has
    left: let one name carry the state."""
    return state + sublayer(reference.layer_norm(x, gamma, beta, eps))


@stacked
def only_the_last(state, sublayer, gamma, beta, eps, x):
    """Each sub-layer starts from the first input, and only the last one's result is kept. Hand on
    the result of each to the next."""
    return reference.pre_norm(x, sublayer, gamma, beta, eps)


@stack.mistake
def returns_in_the_loop(x, sublayers, gammas, betas, eps=1e-5):
    """Only the first sub-layer has its turn, and without any nothing comes back. All of them come
    first, then the last norm, and then the return, after the loop."""
    for sublayer, gamma, beta in zip(sublayers, gammas, betas, strict=False):
        x = reference.pre_norm(x, sublayer, gamma, beta, eps)
        return reference.layer_norm(x, gammas[-1], betas[-1], eps)


@stack.mistake
def eps_ignored(x, sublayers, gammas, betas, eps=1e-5):
    """eps has no effect: every norm uses its default of 0.00001. Hand the caller's eps on to each,
    to the last one too."""
    return pre_norm_stack(x, sublayers, gammas, betas)


@stack.mistake
def first_row_for_all(x, sublayers, gammas, betas, eps=1e-5):
    """All sub-layers share the first row of gammas and betas. Each norm has learned gain and bias
    of its own: row i belongs to sub-layer i."""
    rows = np.array([*[gammas[0]] * len(sublayers), gammas[-1]])
    shifts = np.array([*[betas[0]] * len(sublayers), betas[-1]])
    return pre_norm_stack(x, sublayers, rows, shifts, eps)
