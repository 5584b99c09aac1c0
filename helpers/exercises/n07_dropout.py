"""Notebook 07: dropout, of single numbers and of whole tokens.

The results are random, so a probe compares facts about many draws. A mistake is a function
(x, p, training, rng); those that both exercises know take a `shape` too, that of the draws.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from helpers import attention as reference
from helpers.checks.compare import type_name
from helpers.exercises.exercise import About, Exercise

CALLS, SIZE = 5, (16, 20, 8)  # draws enough to tell shares that differ by 0.1
WITHIN = 0.07


def numbers(*shape: int) -> np.ndarray:
    """Positive and negative numbers, none of them near 0: a 0 in the result was dropped."""
    rng = np.random.default_rng(7)
    return rng.uniform(0.5, 2, size=shape) * rng.choice([-1, 1, 1, 1], size=shape)


def draws(fn: Callable, x: np.ndarray, p: float, calls: int) -> list:
    """Results of several calls while training, each with another seed."""
    return [fn(x, p, True, np.random.default_rng(seed)) for seed in range(calls)]


def described(result: object) -> str:
    """The type and shape of a result."""
    if isinstance(result, np.ndarray):
        return f"an array of shape {result.shape}"
    return type_name(result) if result is not None else "None: is the return missing"


def facts(fn: Callable, x: np.ndarray, p: float) -> dict:
    """How often numbers are dropped, which together, and what becomes of those that stay."""
    results = draws(fn, x, p, CALLS)
    found = {"it returns": described(results[0])} | dict.fromkeys(SHARES, About(np.nan, WITHIN))
    found |= dict.fromkeys(FACTORS, np.nan)
    if any(not isinstance(r, np.ndarray) or r.shape != x.shape for r in results):
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
    results = draws(fn, x, p, CALLS)
    found = {"it returns": described(results[0])}
    if any(not isinstance(r, np.ndarray) or r.shape != x.shape for r in results):
        return found
    factors = np.stack(results) / x * (1 - p)  # (calls, …)
    right = bool(np.allclose(factors[factors != 0], 1))
    zero = factors == 0
    split = bool((zero.any(axis=-1) & ~zero.all(axis=-1)).any())
    features = (
        "a token keeps all of its features or none" if together else "features drop one by one"
    )
    return found | {
        "some numbers are 0": bool((factors == 0).any()),
        "some numbers are kept": bool((factors != 0).any()),
        f"what is kept is divided by 1 - p = {1 - p:g}": right,
        features: split != together,
    }


def unchanged(fn: Callable, x: np.ndarray, p: float, training: bool) -> dict:
    """What becomes of x where nothing must; if numbers are dropped, no matter which."""
    result = fn(x, p, training, np.random.default_rng(0))
    fits = isinstance(result, np.ndarray) and result.shape == x.shape
    zero = fits & (result == 0)
    return {
        "it returns": described(result),
        "nothing is dropped": not np.any(zero),
        "something is kept": not np.all(zero) if fits else True,
        "the result": result if fits and not np.any(zero) else None,
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
    a_dozen = numbers(12, 2)
    exercise.experiment("a model in use, training=False")(
        lambda fn: unchanged(fn, a_dozen, 0.6, False)
    )
    exercise.experiment("p = 0 in training")(lambda fn: unchanged(fn, a_dozen, 0.0, True))
    exercise.experiment("a dozen tokens in training, p = 0.4")(
        lambda fn: one_of(fn, a_dozen, 0.4, together)
    )
    exercise.probe("p = 0 in use", numbers(2, 3, 4), 0.0, False, np.random.default_rng(0))
    exercise.experiment("thousands of numbers, p = 0.3")(lambda fn: facts(fn, numbers(*SIZE), 0.3))
    exercise.experiment("thousands of numbers, p = 0.8")(lambda fn: facts(fn, numbers(*SIZE), 0.8))
    exercise.experiment("the same seed twice, and another")(
        lambda fn: seeds(fn, numbers(40, 3, 2), 0.4)
    )


# ---------------------------------------------------------------- dropout

dropout = Exercise(
    reference.dropout,
    notebook="07",
    level=2,
    minutes=10,
    task="Dropout again, without multiplying by a mask: write zeros into a copy of x, at random "
    "places. While the model is used (training=False) nothing changes.",
    hints=(
        "Which of your random numbers mean: drop this one? And what may not be changed on the way?",
        "x / (1 - p) is a new array already. Draw one number between 0 and 1 for each of its "
        "entries, and set those to 0 whose number is below p.",
        "`if not training: return x`, then `out = x / (1 - p)`, "
        "`out[rng.random(x.shape) < p] = 0`, `return out`",
    ),
)
probe(dropout, together=False)


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


@tokens.mistake
def draws_without_an_axis_for_features(x, p, training, rng):
    """The draws have one number per token, (…, T), and no axis for the features: they do not line
    up with x. Add one of length 1: keep[..., None], or draw in the shape (*x.shape[:-1], 1)."""
    return x * (rng.random(x.shape[:-1]) >= p) / (1 - p) if training else x


@tokens.mistake
def draws_without_an_axis_where_p_is_not_0(x, p, training, rng):
    """The draws have one number per token, (…, T), without an axis for the features: they do not
    line up with x. Add one of length 1: keep[..., None], or the shape (*x.shape[:-1], 1)."""
    return draws_without_an_axis_for_features(x, p, training, rng) if p > 0 else x


# ---------------------------------------------------------------- mistakes of both


def shared(function: Callable) -> Callable:
    """Add a mistake (x, p, training, rng, shape), `shape` being that of the draws, to both."""
    dropout.mistake(wraps(function)(lambda x, p, t, rng: function(x, p, t, rng, x.shape)))
    tokens.mistake(wraps(function)(lambda x, p, t, rng: function(x, p, t, rng, (*x.shape[:-1], 1))))
    return function


def trained(function: Callable) -> Callable:
    """Add a mistake that is made in training only, and for p > 0 only."""

    @wraps(function)
    def wrong(x, p, training, rng, shape):
        return function(x, p, rng, shape) if training and p > 0 else x

    return shared(wrong)


def kept(rng: np.random.Generator, p: float, shape: tuple[int, ...]) -> np.ndarray:
    """The right draws: True with probability 1 - p."""
    return rng.random(shape) >= p


def _with_mask(x: np.ndarray, p: float, rng: np.random.Generator, shape: tuple) -> tuple:
    mask = kept(rng, p, shape) / (1 - p)
    return x * mask, mask


@shared
def result_and_mask(x, p, training, rng, shape):
    """It returns a tuple, the result and the mask. Return only the result, an array of the shape
    of x."""
    return _with_mask(x, p, rng, shape) if training else (x, None)


@shared
def result_and_mask_in_training(x, p, training, rng, shape):
    """In training it returns a tuple, the result and the mask. Return only the result, an array of
    the shape of x."""
    return _with_mask(x, p, rng, shape) if training else x


@trained
def not_rescaled(x, p, rng, shape):
    """What is kept is not scaled up, so the average drops in training. The division is missing:
    divide the kept numbers by 1 - p."""
    return x * kept(rng, p, shape)


@trained
def divided_by_p(x, p, rng, shape):
    """You divide by p, which is right for p = 0.5 only. Divide by the share that is kept, 1 - p."""
    return x * kept(rng, p, shape) / p


@trained
def multiplied_by_keep_share(x, p, rng, shape):
    """What is kept is multiplied by 1 - p, which makes it smaller still. It must grow: divide by
    1 - p instead."""
    return x * kept(rng, p, shape) * (1 - p)


@trained
def multiplied_by_p(x, p, rng, shape):
    """What is kept is multiplied by p. To keep the average it must grow: divide by 1 - p."""
    return x * kept(rng, p, shape) * p


@trained
def factor_two(x, p, rng, shape):
    """What is kept is doubled, whatever p is: right for p = 0.5 only. Divide by 1 - p."""
    return x * kept(rng, p, shape) * 2


@trained
def one_plus_p(x, p, rng, shape):
    """What is kept is multiplied by 1 + p. That does not keep the average: divide by 1 - p."""
    return x * kept(rng, p, shape) * (1 + p)


@trained
def divided_by_the_root(x, p, rng, shape):
    """What is kept is divided by the root of 1 - p. To keep the average (mean), divide by 1 - p
    itself."""
    return x * kept(rng, p, shape) / np.sqrt(1 - p)


@trained
def rescaled_twice(x, p, rng, shape):
    """What is kept is divided by 1 - p twice. Divide once."""
    return x * kept(rng, p, shape) / (1 - p) ** 2


@trained
def rescaled_by_what_came(x, p, rng, shape):
    """What is kept is scaled by the share that this draw happened to keep (keep.mean()). The factor
    is always the same, 1 / (1 - p): only the average over many draws is kept."""
    keep = np.broadcast_to(kept(rng, p, shape), x.shape)
    return x * keep / max(keep.mean(), 1e-9)


@trained
def kept_with_probability_p(x, p, rng, shape):
    """Here p is the probability of keeping: the comparison is the wrong way round (inverted). p is
    the probability of dropping: keep where rng.random(...) >= p."""
    return x * ~kept(rng, p, shape) / (1 - p)


@trained
def p_as_keep_probability(x, p, rng, shape):
    """Here p is the probability of keeping, in the comparison and in the division. p is the
    probability of dropping: keep where rng.random(...) >= p, and divide by 1 - p."""
    return x * ~kept(rng, p, shape) / p


@trained
def kept_with_probability_p_not_rescaled(x, p, rng, shape):
    """A share p is kept, and it is not rescaled. p is the probability of dropping: keep where
    rng.random(...) >= p, and divide what is kept by 1 - p."""
    return x * ~kept(rng, p, shape)


@trained
def fair_coin(x, p, rng, shape):
    """Half of the numbers are dropped, whatever p is: a fair coin, as integers(0, 2) or 0.5 in the
    comparison. The draw has to depend on p: rng.random(...) >= p."""
    return x * rng.integers(0, 2, size=shape) / (1 - p)


@trained
def fair_coin_not_rescaled(x, p, rng, shape):
    """Half of the numbers are dropped, whatever p is (a fair coin), and what is kept is not
    rescaled. Compare rng.random(...) >= p, and divide by 1 - p."""
    return x * rng.integers(0, 2, size=shape)


@trained
def fair_coin_doubled(x, p, rng, shape):
    """It drops half and doubles the rest: p is ignored, as if it were always 0.5. Compare
    rng.random(...) >= p, and divide by 1 - p."""
    return x * rng.integers(0, 2, size=shape) * 2


@trained
def normal_draws(x, p, rng, shape):
    """The draws are normally distributed (standard_normal), and far more than a share p of those
    lies below p. Draw uniform numbers between 0 and 1: rng.random."""
    return x * (rng.standard_normal(shape) >= p) / (1 - p)


@trained
def uniform_from_minus_one(x, p, rng, shape):
    """The draws lie between -1 and 1, so more than a share p is below p. Draw uniform numbers
    between 0 and 1: rng.random."""
    return x * (rng.uniform(-1, 1, shape) >= p) / (1 - p)


@trained
def draws_never_fall_below(x, p, rng, shape):
    """Nothing is dropped in training, everything is only divided by 1 - p. Draw a number between 0
    and 1 for each, and drop where it is below p."""
    return x / (1 - p)


@trained
def nothing_dropped(x, p, rng, shape):
    """Nothing happens in training either: x is returned as it is. Drop with probability p, and
    divide what is kept by 1 - p."""
    return x


@trained
def everything_dropped(x, p, rng, shape):
    """Everything is dropped: the result is all zeros. Keep with probability 1 - p: where
    rng.random(...) >= p."""
    return x * 0


@trained
def noise_in_place_of_zeros(x, p, rng, shape):
    """The numbers are multiplied by the random draws themselves. The draws only decide what is
    dropped: compare them with p, which gives True and False (1 and 0)."""
    return x * rng.random(shape) / (1 - p)


@trained
def gaussian_noise(x, p, rng, shape):
    """The numbers are multiplied by normally distributed noise, and none of them becomes 0. Dropout
    sets each to 0 with probability p: rng.random(...) >= p."""
    return x * rng.normal(1, np.sqrt(p / (1 - p)), shape)


@trained
def places_drawn_again(x, p, rng, shape):
    """The places to drop are drawn with replacement, so some are drawn twice and less than a share
    p becomes 0. Draw a number between 0 and 1 for each: rng.random(...) >= p."""
    keep = np.ones(int(np.prod(shape)), dtype=bool)
    keep[rng.integers(0, keep.size, round(p * keep.size))] = False
    return x * keep.reshape(shape) / (1 - p)


@trained
def x_compared_with_p(x, p, rng, shape):
    """The numbers of x are compared with p, and no random draw decides. Compare as many random
    numbers: rng.random(...) >= p."""
    return x * (x >= p) / (1 - p)


@trained
def mask_alone(x, p, rng, shape):
    """This is the mask alone, rescaled: x is missing. Multiply x by it."""
    return np.broadcast_to(kept(rng, p, shape), x.shape) / (1 - p)


@trained
def true_and_false(x, p, rng, shape):
    """This is the mask alone, True and False: x is missing. Multiply x by the mask, and divide by
    1 - p."""
    return np.broadcast_to(kept(rng, p, shape), x.shape)


@trained
def dropped_to_minus_infinity(x, p, rng, shape):
    """What is dropped becomes −∞. That is for scores before softmax; here it becomes 0."""
    return np.where(kept(rng, p, shape), x / (1 - p), -np.inf)


@trained
def dropped_to_nan(x, p, rng, shape):
    """What is dropped becomes NaN, by dividing by the mask or by 0 · ∞. Multiply by the mask: it
    becomes 0."""
    return np.where(kept(rng, p, shape), x / (1 - p), np.nan)


@trained
def dropped_to_the_mean(x, p, rng, shape):
    """What is dropped becomes the mean of x. It must become 0."""
    return np.where(kept(rng, p, shape), x / (1 - p), x.mean())


@trained
def only_the_dropped_stay(x, p, rng, shape):
    """What is dropped stays as it was, only the others are rescaled. Set it to 0: multiply by the
    mask."""
    return np.where(kept(rng, p, shape), x / (1 - p), x)


@trained
def dropped_is_rescaled(x, p, rng, shape):
    """Nothing becomes 0: what is kept stays as it was, and what is dropped is divided by 1 - p, as
    if the two branches of np.where were mixed up. np.where(keep, x / (1 - p), 0)."""
    return np.where(kept(rng, p, shape), x, x / (1 - p))


@trained
def stored_as_whole_numbers(x, p, rng, shape):
    """The result is an array of whole numbers (dtype int), which cuts the decimals off. Give it the
    dtype of x: np.zeros_like(x)."""
    return (x * kept(rng, p, shape) / (1 - p)).astype(int)


@trained
def dropped_twice(x, p, rng, shape):
    """Dropout is applied twice, with two draws: too much is dropped, and what is kept grows twice.
    Draw once."""
    return x * kept(rng, p, shape) * kept(rng, p, shape) / (1 - p) ** 2


@trained
def two_masks(x, p, rng, shape):
    """Two masks are drawn, and what either drops is gone: more than a share p. Draw once."""
    return x * kept(rng, p, shape) * kept(rng, p, shape) / (1 - p)


@trained
def one_coin(x, p, rng, shape):
    """A single random number decides for the whole array: everything or nothing is dropped. Draw
    one for each: rng.random with a shape."""
    return x * kept(rng, p, ()) / (1 - p)


@trained
def one_coin_per_sentence(x, p, rng, shape):
    """One random number decides for all of x[i], a whole sentence of a batch: there are only as
    many draws as the first axis is long. Their shape is x.shape for single numbers, and
    (*x.shape[:-1], 1) for tokens."""
    return x * kept(rng, p, (len(x),) + (1,) * (x.ndim - 1)) / (1 - p)


@trained
def same_for_each_sentence(x, p, rng, shape):
    """All sentences of a batch share one mask: the batch axis is missing in the shape of the draws.
    Each sentence needs draws of its own."""
    return x * kept(rng, p, shape if x.ndim < 3 else shape[1:]) / (1 - p)


@trained
def columns_dropped(x, p, rng, shape):
    """Whole features (columns) are dropped together, the same in all rows: the draws have the shape
    of the last axis only. It is x.shape for single numbers, and (*x.shape[:-1], 1) for tokens."""
    return x * kept(rng, p, x.shape[-1:]) / (1 - p)


@trained
def features_of_a_sentence_dropped(x, p, rng, shape):
    """Features (columns) are dropped for a whole sentence at once: the axis of tokens is missing in
    the shape of the draws. Each token needs draws of its own."""
    features = (*x.shape[:-2], 1, x.shape[-1]) if x.ndim > 1 else x.shape
    return x * kept(rng, p, features) / (1 - p)


@trained
def exact_number(x, p, rng, shape):
    """Exactly a share p is dropped in each call (choice, permutation or shuffle). Each one has a
    draw of its own, so the number of zeros varies: rng.random(...) >= p."""
    return x * _fixed_share(rng, p, shape, 1).reshape(shape) / (1 - p)


@trained
def exact_number_in_each_row(x, p, rng, shape):
    """Exactly a share p is dropped in each row. Each number has a draw of its own, so the number of
    zeros varies: rng.random(...) >= p."""
    rows = int(np.prod(x.shape[:-1], dtype=int)) if shape == x.shape else len(x)
    return x * _fixed_share(rng, p, shape, rows).reshape(shape) / (1 - p)


def _fixed_share(rng: np.random.Generator, p: float, shape: tuple, rows: int) -> np.ndarray:
    """A mask that drops exactly a share p of each row: (rows, n)."""
    n = int(np.prod(shape)) // rows
    order = rng.permuted(np.broadcast_to(np.arange(n), (rows, n)), axis=1)
    return order >= round(p * n)


@shared
def scaled_in_use(x, p, training, rng, shape):
    """It scales by 1 - p at test time (training=False), and not in training. Inverted dropout does
    it the other way: divide by 1 - p in training, and leave x alone in use (eval)."""
    return x * kept(rng, p, shape) if training else x * (1 - p)


@shared
def scaled_in_use_too(x, p, training, rng, shape):
    """x is also scaled by 1 - p at test time (training=False). Only training changes anything:
    return x as it is in use (eval)."""
    return x * kept(rng, p, shape) / (1 - p) if training else x * (1 - p)


@shared
def divided_in_use_too(x, p, training, rng, shape):
    """x is also divided by 1 - p at test time (training=False). Only what is kept in training is:
    return x as it is in use (eval)."""
    return x * (kept(rng, p, shape) if training else 1) / (1 - p)


@shared
def divided_in_use_only(x, p, training, rng, shape):
    """x is divided by 1 - p at test time (training=False), and not in training. It belongs into
    training; in use (eval) return x as it is."""
    return x * kept(rng, p, shape) if training else x / (1 - p)


@shared
def training_ignored(x, p, training, rng, shape):
    """It drops also when the model is in use: the argument training is ignored. With training=False
    (eval) return x as it is."""
    return x * kept(rng, p, shape) / (1 - p)


@shared
def training_ignored_not_rescaled(x, p, training, rng, shape):
    """It drops also when the model is in use (training is ignored), and what is kept is not
    rescaled. With training=False return x, else divide the kept numbers by 1 - p."""
    return x * kept(rng, p, shape)


@shared
def training_inverted(x, p, training, rng, shape):
    """training is read the wrong way round (inverted): it drops when the model is in use, and not
    in training. Return x if not training."""
    return x if training else x * kept(rng, p, shape) / (1 - p)


@shared
def zeros_in_use(x, p, training, rng, shape):
    """With training=False the result is all zeros. Nothing is dropped in use (eval): return x as
    it is."""
    return x * kept(rng, p, shape) / (1 - p) if training else x * 0


@shared
def none_in_use(x, p, training, rng, shape):
    """With training=False it returns None: a return is missing. In use (eval) return x as it is."""
    return x * kept(rng, p, shape) / (1 - p) if training else None


@shared
def none_unless_something_happens(x, p, training, rng, shape):
    """With training=False and for p = 0 it returns None: a return is missing. Return x as it is."""
    return x * kept(rng, p, shape) / (1 - p) if training and p > 0 else None


@shared
def zero_p_drops_all(x, p, training, rng, shape):
    """For p = 0 everything becomes 0. p is the probability of dropping: with p = 0 nothing is
    dropped, return x."""
    return x * kept(rng, p, shape) / (1 - p) * (p > 0) if training else x


@shared
def divided_by_p_always(x, p, training, rng, shape):
    """It divides by p, which for p = 0 is a division by 0, and for other p the wrong factor. Divide
    by 1 - p, the share that is kept."""
    with np.errstate(all="ignore"):
        return x * kept(rng, p, shape) / np.float64(p) if training else x


@shared
def p_as_keep_probability_always(x, p, training, rng, shape):
    """Here p is the probability of keeping, for p = 0 too: then everything is dropped. p is the
    probability of dropping: keep where rng.random(...) >= p, and divide by 1 - p."""
    with np.errstate(all="ignore"):
        return x * ~kept(rng, p, shape) / np.float64(p) if training else x


@shared
def kept_with_probability_p_always(x, p, training, rng, shape):
    """A share p is kept, and with p = 0 nothing: the comparison is the wrong way round (inverted).
    p is the probability of dropping: keep where rng.random(...) >= p."""
    return x * ~kept(rng, p, shape) / (1 - p) if training else x


@shared
def kept_with_probability_p_always_not_rescaled(x, p, training, rng, shape):
    """A share p is kept, with p = 0 nothing, and it is not rescaled. p is the probability of
    dropping: keep where rng.random(...) >= p, and divide by 1 - p."""
    return x * ~kept(rng, p, shape) if training else x


@shared
def fair_coin_always(x, p, training, rng, shape):
    """Half of the numbers are dropped whatever p is, even for p = 0: a fair coin. The draw has to
    depend on p: rng.random(...) >= p."""
    return x * rng.integers(0, 2, size=shape) / (1 - p) if training else x


@shared
def normal_draws_always(x, p, training, rng, shape):
    """The draws are normally distributed (standard_normal), and half of those lies below 0, even
    for p = 0. Draw uniform numbers between 0 and 1: rng.random."""
    return x * (rng.standard_normal(shape) >= p) / (1 - p) if training else x


@shared
def doubled_always(x, p, training, rng, shape):
    """In training the numbers are doubled whatever p is, even for p = 0: right for p = 0.5 only.
    Divide by 1 - p."""
    return x * kept(rng, p, shape) * 2 if training else x


@trained
def global_random(x, p, rng, shape):
    """You draw from np.random (or torch) itself, not from the generator rng that was passed in: the
    result cannot be reproduced with a seed. Use rng.random."""
    return x * kept(np.random.default_rng(), p, shape) / (1 - p)


@trained
def fixed_seed(x, p, rng, shape):
    """Every call drops the same places: a fixed seed inside the function. The generator rng is
    passed in: draw from it, rng.random."""
    return x * kept(np.random.default_rng(0), p, shape) / (1 - p)


@shared
def global_random_and_training_ignored(x, p, training, rng, shape):
    """It drops also when the model is in use (training is ignored), and draws from np.random or
    torch itself, not from the rng that was passed in. Return x if not training; use rng.random."""
    return x * kept(np.random.default_rng(), p, shape) / (1 - p)


@trained
def global_random_not_rescaled(x, p, rng, shape):
    """You draw from np.random (or torch) itself, not from the generator rng that was passed in, and
    what is kept is not rescaled. Use rng.random, and divide by 1 - p."""
    return x * kept(np.random.default_rng(), p, shape)


@trained
def written_into_x(x, p, rng, shape):
    """The zeros are written into the x that was passed in: it is changed in place. Work on a copy,
    or multiply into a new array."""
    x *= kept(rng, p, shape)
    return x / (1 - p)


@trained
def kept_only(x, p, rng, shape):
    """What is dropped is left out, so the shape changes. Keep the shape: what is dropped becomes
    0."""
    return x[np.broadcast_to(kept(rng, p, shape), x.shape)] / (1 - p)


@trained
def with_its_mask(x, p, rng, shape):
    """It returns two things, the result and the mask. Return the result alone."""
    return x * kept(rng, p, shape) / (1 - p), kept(rng, p, shape)


# ---------------------------------------------------------------- mistakes of one of them


@dropout.mistake
def row_sums_restored(x, p, training, rng):
    """Each row is scaled back to the sum that it had. Dropout does not do that: what is kept is
    divided by 1 - p, and the sums of rows vary."""
    if not training or p == 0:
        return x
    left = x * kept(rng, p, x.shape)
    total = left.sum(axis=-1, keepdims=True)
    return left * x.sum(axis=-1, keepdims=True) / np.where(total == 0, 1, total)


@dropout.mistake
def whole_rows(x, p, training, rng):
    """Whole rows are dropped together (one draw per row). Each number needs a draw of its own:
    rng.random(x.shape)."""
    return drop_tokens(x, p, training, rng)


@dropout.mistake
def rows_of_all_sentences(x, p, training, rng):
    """Whole rows are dropped together, the same in all sentences. Each number needs a draw of its
    own: rng.random(x.shape)."""
    return _same_tokens(x, p, training, rng)


@tokens.mistake
def single_numbers(x, p, training, rng):
    """Single numbers are dropped, as in dropout. A token is dropped with all its features: draw one
    number per token, shape (…, T, 1)."""
    return reference.dropout(x, p, training, rng)


def _same_tokens(x: np.ndarray, p: float, training: bool, rng: np.random.Generator) -> np.ndarray:
    if not training or p == 0:
        return x
    return x * (rng.random((x.shape[-2] if x.ndim > 1 else 1, 1)) >= p) / (1 - p)
