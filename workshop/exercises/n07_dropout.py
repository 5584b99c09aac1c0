"""Notebook 07: dropout, of single numbers and of whole tokens.

The results are random, so a probe compares facts about many draws. A mistake is a function
(x, p, training, rng); those that both exercises know take a `shape` too, that of the draws.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import About, Exercise, Untested, drawn, numbers

CALLS, MANY = 5, (32, 40, 4)  # draws enough, of tokens too, to tell shares that differ by 0.1
WITHIN = 0.07


def sample(label: str, *shape: int) -> np.ndarray:
    """Positive and negative numbers, none of them near 0: a 0 in the result was dropped."""
    x = drawn(numbers(*shape), label).astype(float)
    return x + np.sign(x) / 2


def draws(fn: Callable, x: np.ndarray, p: float) -> list:
    """Results of several calls while training, each with another seed."""
    return [fn(x, p, True, np.random.default_rng(seed)) for seed in range(CALLS)]


def described(result: Any) -> str:
    """The type and shape of a result."""
    if isinstance(result, np.ndarray):
        return f"an array of shape {result.shape}"
    if result is None:
        return "None: is the return missing"
    if isinstance(result, list):
        return "several things instead of one array"
    return f"no array, but of type {getattr(result, 'kind', type(result).__name__)}"


def fits(result: Any, x: np.ndarray) -> bool:
    return isinstance(result, np.ndarray) and result.shape == x.shape


def facts(fn: Callable, x: np.ndarray, p: float) -> dict:
    """How often numbers are dropped, which together, and what becomes of those that stay."""
    results = draws(fn, x, p)
    found = {"it returns": described(results[0])} | dict.fromkeys(SHARES, About(np.nan, WITHIN))
    found |= dict.fromkeys(FACTORS, np.nan)
    if not all(fits(result, x) for result in results):
        return found
    factors = np.stack(results) / x  # (calls, B, T, D)
    zero = factors == 0
    whole = np.array([z.all() or not z.any() for z in zero])
    found["calls that keep or drop everything"] = float(whole.mean())
    if zero.all() or (whole.all() and zero.any()):  # one coin: its shares are too rough to compare
        return found
    found["the number of zeros varies from call to call"] = bool(np.ptp(zero.sum(axis=(1, 2, 3))))
    found["… and from row to row"] = bool(np.ptp(zero.sum(axis=-1)))
    found |= {name: About(f(zero).mean(), WITHIN) for name, f in SHARES.items()}
    return found | kept_factors(factors[~zero])


SHARES = {
    "share of zeros": lambda z: z,
    "zeros side by side in a row": lambda z: z[..., 1:] & z[..., :-1],
    "zeros below each other in a column": lambda z: z[..., 1:, :] & z[..., :-1, :],
    "zeros at the same place of two sentences": lambda z: z[:, 1:] & z[:, :-1],
}
FACTORS = (
    "smallest factor of what is kept",
    "largest factor of what is kept",
    "mean factor of what is kept",
    "spread of the factors",
)


def kept_factors(factors: np.ndarray) -> dict:
    """What is kept was multiplied by one number, or two; of more, the mean and the spread."""
    low, high = float(factors.min()), float(factors.max())
    two = np.isclose(factors, low) | np.isclose(factors, high)
    limits = (low, high) if two.all() else (np.nan, np.nan)
    about = About(factors.mean(), WITHIN), About(factors.std(), WITHIN)
    return dict(zip(FACTORS, (*limits, *about), strict=True))


def one_of(fn: Callable, x: np.ndarray, p: float, together: bool) -> dict:
    """Whether each number of a small result is 0 or x / (1 - p), and a token drops as a whole."""
    results = draws(fn, x, p)
    found = {"it returns": described(results[0])}
    if not all(fits(result, x) for result in results):
        return found
    zero = np.stack(results) == 0  # (calls, …)
    factors = (np.stack(results) / x)[~zero] * (1 - p)
    split = bool((zero.any(axis=-1) & ~zero.all(axis=-1)).any())
    a_token = "a token keeps all of its features or none" if together else "numbers drop one by one"
    if x.ndim > 2 and len(x) > 1:
        found["each sentence has draws of its own"] = bool((zero[:, 0] != zero[:, 1]).any())
    return found | {
        "some numbers are 0": bool(zero.any()),
        "some numbers are kept": not zero.all(),
        f"what is kept is divided by 1 - p = {1 - p:g}": bool(np.allclose(factors, 1)),
        a_token: split != together,
    }


def unchanged(fn: Callable, x: np.ndarray, p: float, training: bool) -> dict | Untested:
    """What becomes of x where nothing must; if numbers are dropped, no matter which."""
    result = fn(x, p, training, np.random.default_rng(0))
    if isinstance(result, Untested):
        return result
    zero = fits(result, x) and result == 0
    return {
        "it returns": described(result),
        "nothing is dropped": not np.any(zero),
        "something is kept": not np.all(zero) if fits(result, x) else True,
        "the result": result if fits(result, x) and not np.any(zero) else None,
    }


def seeds(fn: Callable, x: np.ndarray, p: float) -> dict:
    """Whether the generator that is passed in decides what is dropped, and nothing else."""
    first, again, other = (fn(x, p, True, np.random.default_rng(s)) for s in (3, 3, 8))
    return {
        "the same seed drops the same numbers again": bool(np.array_equal(first, again)),
        "another seed drops other numbers": not np.array_equal(first, other),
    }


def probe(exercise: Exercise, together: bool) -> None:
    """Add the probes of both exercises; `together` if all features of a token drop together."""

    def see(look: Callable, label: str, shape: tuple, *settings: Any) -> None:
        exercise.experiment(label)(lambda fn: look(fn, sample(label, *shape), *settings))

    see(unchanged, "a model in use, training=False", (12, 2), 0.6, False)
    see(unchanged, "p = 0 in training", (12, 2), 0.0, True)
    see(one_of, "a dozen tokens, p = 0.4", (12, 2), 0.4, together)
    see(one_of, "one sentence as a batch", (1, 12, 3), 0.5, together)
    see(one_of, "heads: an axis more", (2, 3, 4, 5), 0.4, together)
    exercise.probe("p = 0 in use", numbers(2, 3, 4), 0.0, False, np.random.default_rng(0))
    see(facts, "thousands of numbers, p = 0.3", MANY, 0.3)
    see(facts, "thousands of numbers, p = 0.8", MANY, 0.8)
    see(seeds, "the same seed twice, and another", (40, 3, 2), 0.4)


# ---------------------------------------------------------------- dropout

dropout = Exercise(
    reference.dropout,
    notebook="07",
    level=2,
    minutes=10,
    task="While the model learns (training=True), each number of x becomes 0 with probability p, "
    "by a draw of its own from rng, and every other is divided by 1 - p. While the model is used "
    "(training=False) nothing changes. The x of the caller stays as it was.",
    hints=(
        "Which of your random numbers mean: drop this one? And what may not be changed on the way?",
        "x / (1 - p) is a new array already. Draw one number between 0 and 1 for each of its "
        "entries, and set those to 0 whose number is below p.",
        "`if not training: return x`, then `out = x / (1 - p)`, "
        "`out[rng.random(x.shape) < p] = 0`, `return out`",
    ),
)
probe(dropout, together=False)
dropout.answer("""
    def dropout(x, p, training, rng):
        if not training:
            return x
        out = x / (1 - p)
        out[rng.random(x.shape) < p] = 0
        return out
""")
dropout.answer("""
    def dropout(x, p, training, rng):
        if not training or p == 0:
            return x
        keep = rng.random(x.shape) >= p
        return x * keep / (1 - p)
""")
dropout.answer("""
    def dropout(x, p, training, rng):
        if training:
            drawn = rng.random(x.shape)
            return np.where(drawn < p, 0, x / (1 - p))
        return x
""")
dropout.answer("""
    def dropout(x, p, training, rng):
        if not training or p == 0:
            return x
        out = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            if rng.random() >= p:
                out[place] = x[place] / (1 - p)
        return out
""")
dropout.answer("""
    import torch

    def dropout(x, p, training, rng):
        if not training or p == 0:
            return x
        keep = torch.rand(x.shape, generator=rng) >= p
        return x * keep / (1 - p)
""")
dropout.why(
    "rng.random(x.shape) | rng.random() | torch.rand(x.shape, generator=rng)",
    "Each number has its own draw, uniform between 0 and 1, from the generator that was passed in.",
)
dropout.why("x.shape", "Each number has a draw of its own, so there are as many draws as numbers.")
dropout.why(
    "rng | generator=rng | rng = np.random.default_rng(0) | np.random.default_rng(0)",
    "The generator comes from the caller: the same seed must drop the same numbers again.",
)

# ---------------------------------------------------------------- drop_tokens


def drop_tokens(x: np.ndarray, p: float, training: bool, rng: np.random.Generator) -> np.ndarray:
    """Drop each token with probability p, all its features at once: (…, T, D) → (…, T, D).

    Kept tokens are divided by 1 - p; x as it is when not training or p = 0. As the word dropout
    of Iyyer et al. (2015), *Deep Unordered Composition*, but rescaled.
    """
    if not training or p == 0:
        return x
    keep = rng.random((*x.shape[:-1], 1)) >= p  # one draw for each token
    return x * keep / (1 - p)


tokens = Exercise(
    drop_tokens,
    notebook="07",
    level=2,
    minutes=10,
    task="Drop whole tokens: with probability p all features of a token become 0 together, so that "
    "the model has to do without the word. Otherwise as dropout.",
    hints=(
        "How many coins are tossed for a sentence of T tokens with D features each?",
        "Draw one number per token, of shape (…, T, 1): broadcasting uses it for all features.",
        "`if not training: return x`, then `keep = rng.random((*x.shape[:-1], 1)) >= p`, "
        "`return x * keep / (1 - p)`",
    ),
)
probe(tokens, together=True)
tokens.answer("""
    def drop_tokens(x, p, training, rng):
        if not training:
            return x
        keep = rng.random((*x.shape[:-1], 1)) >= p  # one draw for each token
        return x * keep / (1 - p)
""")
tokens.answer("""
    def drop_tokens(x, p, training, rng):
        if not training or p == 0:
            return x
        keep = rng.random(x.shape[:-1]) >= p
        return x * keep[..., None] / (1 - p)
""")
tokens.answer("""
    def drop_tokens(x, p, training, rng):
        if not training:
            return x
        out = x / (1 - p)
        out[rng.random(x.shape[:-1]) < p] = 0
        return out
""")
tokens.answer("""
    def drop_tokens(x, p, training, rng):
        if not training or p == 0:
            return x
        out = np.zeros(x.shape)
        for token in np.ndindex(x.shape[:-1]):
            if rng.random() >= p:
                out[token] = x[token] / (1 - p)
        return out
""")
tokens.answer("""
    import torch

    def drop_tokens(x, p, training, rng):
        if not training or p == 0:
            return x
        keep = torch.rand(x.shape[:-1], generator=rng) >= p
        return x * keep.unsqueeze(-1) / (1 - p)
""")
tokens.why(
    "(*x.shape[:-1], 1) | x.shape[:-1] | keep[..., None] | keep.unsqueeze(-1)",
    "One draw decides for a whole token, all its features: the draws have the axes of x, "
    "but 1 for the features.",
)
tokens.why(
    "rng.random((*x.shape[:-1], 1)) | rng.random(x.shape[:-1]) | rng.random() | "
    "torch.rand(x.shape[:-1], generator=rng)",
    "Each token has its own draw, uniform between 0 and 1, from the generator that was passed in.",
)
for exercise in (dropout, tokens):
    exercise.why(
        "not training | training | not training or p == 0 | return x",
        "Dropout is for training: in use every number stays, so the model answers alike each time.",
    )
    exercise.why(
        "1 - p | x / (1 - p) | x * keep / (1 - p)",
        "Only a share 1 - p survives; dividing the survivors by it keeps the average as it was.",
    )
    exercise.why(
        ">= p | < p | keep | drawn < p | rng.random() >= p",
        "p is the probability of dropping: a number stays where its draw is at least p.",
    )
    exercise.why(
        "0 | x * keep | np.zeros(x.shape) | out | x = x.copy() | x.copy() | float('-inf')",
        "What is dropped becomes 0, in a new array: the x of the caller stays as it was.",
    )


# ---------------------------------------------------------------- mistakes of both


def shared(function: Callable) -> Callable:
    """Add a mistake (x, p, training, rng, shape), `shape` being that of the draws, to both."""
    dropout.mistake(wraps(function)(lambda x, p, t, rng: function(x, p, t, rng, x.shape)))
    tokens.mistake(wraps(function)(lambda x, p, t, rng: function(x, p, t, rng, (*x.shape[:-1], 1))))
    return function


def trained(function: Callable) -> Callable:
    """Add a mistake that is made in training only; what it does for p = 0 does not matter."""

    @wraps(function)
    def wrong(x, p, training, rng, shape):
        if not training:
            return x
        return function(x, p, rng, shape) if p > 0 else Untested()

    return shared(wrong)


def kept(rng: np.random.Generator, p: float, shape: tuple[int, ...]) -> np.ndarray:
    """The right draws: True with probability 1 - p."""
    return rng.random(shape) >= p


@trained
def global_random(x, p, rng, shape):
    """The same seed does not drop the same numbers again: the draws come from np.random or torch
    themselves. Draw from rng, the generator that was passed in, so that a run can be repeated."""
    return x * kept(np.random.default_rng(), p, shape) / (1 - p)


@shared
def scaled_in_use(x, p, training, rng, shape):
    """This is the original dropout: it multiplies by 1 - p in use and leaves training unscaled.
    Inverted dropout, wanted here, divides the survivors by 1 - p in training and leaves x alone in
    use."""
    return x * kept(rng, p, shape) if training else x * (1 - p)


@trained
def divided_by_p(x, p, rng, shape):
    """What is kept is divided by p, the share that is dropped: right for p = 0.5 only. Divide by
    the share that is kept, 1 - p, and the average stays as it was."""
    return x * kept(rng, p, shape) / p


@trained
def not_rescaled(x, p, rng, shape):
    """What is kept is not scaled up, so the average shrinks in training. Inverted dropout divides
    the survivors by the share that is kept, 1 - p."""
    return x * kept(rng, p, shape)


@trained
def p_as_keep_probability(x, p, rng, shape):
    """p is read as the probability of keeping, in the draw and in the division. Here p is the
    probability of dropping: keep what draws at least p, and divide it by 1 - p."""
    return x * ~kept(rng, p, shape) / p


@trained
def kept_with_probability_p(x, p, rng, shape):
    """A share p is kept and the rest is dropped: the comparison is the wrong way round. p is the
    probability of dropping, so keep what draws at least p."""
    return x * ~kept(rng, p, shape) / (1 - p)


@trained
def fixed_seed(x, p, rng, shape):
    """Every call drops the same places, whatever the generator: a seed is fixed inside the
    function. The caller's rng decides, and goes on from call to call."""
    return x * kept(np.random.default_rng(0), p, shape) / (1 - p)


@trained
def one_coin(x, p, rng, shape):
    """A single random number decides for the whole array: everything or nothing is dropped. Draw
    one for each number (for each token in drop_tokens), by handing the shape to the generator."""
    return x * kept(rng, p, ()) / (1 - p)


@trained
def exact_number(x, p, rng, shape):
    """Exactly a share p is dropped in each call, as a shuffle or a choice of places does. In
    dropout each one has a coin of its own, so the number of zeros varies from call to call."""
    order = rng.permutation(int(np.prod(shape)))
    return x * (order >= round(p * order.size)).reshape(shape) / (1 - p)


@trained
def same_for_each_sentence(x, p, rng, shape):
    """All sentences of a batch lose the same places: they share one mask, as its shape lacks the
    axis of the batch. Each sentence needs draws of its own."""
    return x * kept(rng, p, shape[-2:]) / (1 - p)


# ---------------------------------------------------------------- mistakes of one of them


@tokens.mistake
def single_numbers(x, p, training, rng):
    """Single numbers are dropped, as in dropout. A token is dropped with all its features or not at
    all: draw one number per token, in the shape of x with 1 for the features."""
    return reference.dropout(x, p, training, rng)
