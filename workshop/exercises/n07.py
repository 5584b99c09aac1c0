"""Notebook 07: dropout, of single numbers and of whole tokens; judged by facts about many draws."""

import numpy as np

from helpers import attention as course
from workshop.exercises.exercise import About, drawn, exercise, numbers

CALLS, WITHIN = 12, 0.07  # draws enough to tell shares that differ by 0.14


def facts(x: np.ndarray, p: float, training: bool, fn) -> dict:
    """What becomes of numbers, none of them 0, in calls with a seed each, the first once more."""
    again, *calls = (fn(x, p, training, np.random.default_rng(s)) for s in (0, *range(CALLS)))
    if not all(isinstance(y, np.ndarray) and y.shape == x.shape for y in calls):
        return {"each call returns an array of the shape of x": False}
    factors = np.stack(calls) / x  # (calls, …, T, D)
    zero = factors == 0
    whole = [z.all() or not z.any() for z in zero]
    found = {
        "each call returns an array of the shape of x": True,
        "something is dropped": bool(zero.any()),
        "what is kept is multiplied by": list(np.unique(np.round(factors[~zero], 4))[:3]),
        "the same seed drops the same": np.array_equal(again, calls[0]),
        "each call drops some and keeps some": not any(whole),
    }
    if all(whole):  # as if one coin were thrown: its shares would be too rough
        return found
    found["another seed drops others"] = not np.array_equal(*calls[:2])
    found["the number of zeros varies"] = len({z.sum() for z in zero}) > 1
    found["share of zeros"] = About(zero.mean(), WITHIN)
    names = [*["calls", "sentences", "heads"][: x.ndim - 1], "tokens", "features"]
    for k, name in enumerate(names):
        z = zero.swapaxes(0, k)
        found[f"share of zeros in both of two {name}"] = About((z[1:] & z[:-1]).mean(), WITHIN)
    return found


IN_USE = ("p = 0, in use", numbers(2, 3, 4), 0.0, False, np.random.default_rng(0))
SLIPS = """
    global-random: rng.random → np.random.random
        The draws do not come from rng, which was passed in: its seed must decide what is dropped.
    fixed-seed: rng.random → np.random.default_rng(0).random
        Every call drops the same places: a seed stands inside. Draw from the rng of the caller.
    scaled-in-use: return x⏎ → return x * (1 - p)⏎ ⊕ / (1 - p) → ∅
        It scales by 1 - p in use, as the original dropout did. Inverted dropout scales in training.
    p-as-keep-probability: >= p → < p ⊕ / (1 - p) → / p
        p is taken for the probability of keeping. It is that of dropping: 1 - p is kept.
    divided-by-p: / (1 - p) → / p
        What is kept is divided by p, the share that is dropped. Divide by the share kept, 1 - p.
    multiplied: / (1 - p) → * (1 - p)
        What is kept is multiplied by 1 - p, and shrinks. Divide by it, so that the mean stays.
    not-rescaled: / (1 - p) → ∅
        What is kept is not scaled up, so the average shrinks in training. Divide it by 1 - p.
    kept-with-probability-p: >= p → < p
        A share p is kept. p is the probability of dropping: keep what draws at least p.
    half-dropped: >= p → >= 0.5
        Half is dropped, whatever p is. Compare draws between 0 and 1 with p.
    one-coin: SHAPE → ()
        A single random number decides for the whole array. Each NUMBER needs a draw of its own.
    exact-number: rng.random(SHAPE) → rng.permuted(np.linspace(0, 1, np.prod(SHAPE))).reshape(SHAPE)
        Every call drops exactly a share p. Each NUMBER needs a draw of its own: the count varies.
    same-for-each-sentence: SHAPE → SHAPE[-2:]
        All sentences of a batch lose the same places. Each of them needs draws of its own.
    drops-in-use: not training or p == 0 → p == 0
        It drops in use as well. While training is False, x stays as it is.
    flag-turned: not training → training
        It drops in use and not in training: the other way round.
    never-drops: or p == 0 → or p
        Nothing is ever dropped, in training neither. Return x early only when not training.
    written-into-x: return x * keep / (1 - p) → x *= keep⏎    return x / (1 - p)
        The zeros are written into the x of the caller. Make a new array, or work on a copy.
"""

dropout = exercise(
    course.dropout,
    story=True,
    hints="""Which of your random numbers mean: drop this one? What may not change on the way?
    keep = rng.random(x.shape) >= p, in training only; then x * keep / (1 - p), a new array.""",
    probes=[IN_USE],
    slips=SLIPS.replace("SHAPE", "x.shape").replace("NUMBER", "number"),
)  # fmt: skip

drop_tokens = exercise(
    """
    def drop_tokens(x, p, training, rng):
        if not training or p == 0:
            return x
        keep = rng.random((*x.shape[:-1], 1)) >= p
        return x * keep / (1 - p)
    """,
    hints="""How many coins are tossed for a sentence of T tokens with D features each?
    Draw one number for each token, (*x.shape[:-1], 1): broadcasting uses it for all features.""",
    probes=[IN_USE],
    slips=SLIPS.replace("SHAPE", "(*x.shape[:-1], 1)").replace("NUMBER", "token") + """
    single-numbers: (*x.shape[:-1], 1) → x.shape
        Single numbers are dropped, as in dropout. Draw once for a token: all its features fall.
    whole-features: (*x.shape[:-1], 1) → x.shape[-1]
        A feature is dropped for all tokens. Draw once for each token: all its features fall.
    no-axis-for-the-features: (*x.shape[:-1], 1) → x.shape[:-1]
        The draws, (…, T), do not fit x. They need an axis of length 1 for the features: (…, T, 1).
    """,
)  # fmt: skip

for known in (dropout, drop_tokens):
    for label, shape, p, training in (
        ("a model in use, training=False", (12, 2), 0.6, False),
        ("one text, p = 0.3", (120, 4), 0.3, True),
        ("a batch, p = 0.6", (4, 40, 3), 0.6, True),
        ("heads: an axis more", (3, 3, 20, 3), 0.3, True),
    ):
        x = drawn(numbers(*shape), label).astype(float)
        given = x + np.sign(x) / 2, p, training
        known.experiment(label)(lambda fn, given=given: facts(*given, fn))
