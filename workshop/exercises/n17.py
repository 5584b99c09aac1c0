"""Notebook 17: what is kept, and what travels, when a large model writes."""

import sys
import tracemalloc

import numpy as np

from helpers import attention as course
from helpers.attention import softmax
from workshop.exercises.exercise import Draw, drawn, exercise, numbers

LARGE, SMALL = [0.6, 0.3, 0.1], [0.4, 0.2, 0.4]  # chances of three words, as by hand


def chances(*shape: int) -> Draw:
    """Chances of a next word at random, each row with a sum of 1."""
    return numbers(*shape).then(softmax)


keep_guesses = exercise(
    """
    def keep_guesses(guesses, large, small, u):
        for i, guess in enumerate(guesses):
            if u[i] >= large[i, guess] / small[i, guess]:
                left = np.maximum(large[i] - small[i], 0)
                return i, left / left.sum()
        return len(guesses), large[-1]
    """,
    ways=["""
    def keep_guesses(guesses, large, small, u):
        i = np.arange(len(guesses))
        kept = u < large[i, guesses] / small[i, guesses]
        n = int(np.cumprod(kept).sum())
        left = np.maximum(large[n] - small[n], 0) if n < len(guesses) else large[n]
        return n, left / left.sum()
    """],
    hints="""At which guess is u[i] not below large[i, guess] / small[i, guess]? What ends there?
    A loop that returns at that i, with np.maximum(large[i] - small[i], 0) divided by its sum.""",
    probes=[("one guess, thrown away", [2], [LARGE, [0.2, 0.2, 0.6]], [SMALL], [0.9]),
            ("one guess, kept", [2], [LARGE, [0.2, 0.2, 0.6]], [SMALL], [0.2]),
            ("a guess that the large one likes more", [0], [LARGE, SMALL], [SMALL], [0.9]),
            ("three guesses, the second thrown away", [1, 3, 0], chances(4, 5), chances(3, 5),
             [0.01, 0.99, 0.01]),
            ("four guesses, all kept", [0, 3, 2, 2], chances(5, 4), chances(4, 4),
             [0.5, 0.3, 0.9, 0.7]),
            ("four guesses, the last thrown away", [1, 1, 5, 1], chances(5, 6), chances(4, 6),
             [0.3, 0.5, 0.6, 0.3]),
            ("only likeliest words", [1, 2], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
             [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.5, 0.5])],
    story=True, slips="""
    ratio-upside-down: large[i, guess] / small[i, guess] → small[i, guess] / large[i, guess]
        The quotient stands upside down. A guess is kept with chance large / small.
    u-left-out: u[i] >= large[i, guess] / small[i, guess] → large[i, guess] < small[i, guess]
        Every guess that the small one likes more is thrown away. Some are kept:
        where u is below large / small.
    kept-and-thrown-away-swapped: u[i] >= → u[i] <
        What should be kept is thrown away. A guess is kept where u is below large / small.
    compared-with-large-alone: / small[i, guess] → ∅
        u is compared with the large one's chance alone. Divide it by the small one's first.
    counted-beyond-the-first: np.cumprod(kept).sum() → kept.sum()
        Guesses behind one that is thrown away still count. Stop at the first: what follows
        hangs on a wrong word.
    drawn-from-large: left = np.maximum(large[i] - small[i], 0) → left = large[i]
        After a guess was thrown away, you draw from large itself. Draw from what is left of
        it: large minus small, nothing below zero.
    sum-not-one: return i, left / left.sum() → return i, left
        What is left over does not sum to 1. Divide it by its sum.
    below-zero: np.maximum(large[i] - small[i], 0) → large[i] - small[i]
        Chances below zero are left. Where small is larger, nothing is left: np.maximum(…, 0).
    absolute-differences: np.maximum(large[i] - small[i], 0) → abs(large[i] - small[i])
        Words that the small one likes more get a chance, too. Nothing is left of them:
        np.maximum(…, 0).
    only-the-guess-forbidden: np.maximum(large[i] - small[i], 0) → \
            np.where(np.arange(large.shape[1]) == guess, 0, large[i])
        Only the guess itself is taken out. Take all that small gives from large, and
        nothing below zero.
    row-before-the-last: large[-1] → large[-2]
        If all are kept, the next word stands behind the last guess: its chances are
        the last row of large.
    """,
)  # fmt: skip

latent_attention = exercise(
    """
    def latent_attention(Q, C, W_up_k, W_up_v):
        asked = Q @ W_up_k.T  # (Tq, d_latent)
        weights = softmax(asked @ C.T / np.sqrt(Q.shape[-1]))  # (Tq, T)
        return weights @ C @ W_up_v
    """,
    hints="""Which three things make a score? Two of them are there before any word is read.
    Q @ W_up_k.T asks the small vectors; by √d_head, softmax as always; weights @ C; W_up_v.""",
    probes=[("the word by hand", [[1.0, 1.0, 0.0]], [[1.0, 2.0]],
             [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], [[0.0, 1.0, 1.0], [2.0, 0.0, 1.0]]),
            ("two words", [[1.0, 1.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]],
             [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], [[0.0, 1.0, 1.0], [2.0, 0.0, 1.0]]),
            ("three queries, six words", numbers(3, 5), numbers(6, 2), numbers(2, 5),
             numbers(2, 5)),
            ("as many of everything", numbers(4, 4), numbers(4, 4), numbers(4, 4), numbers(4, 4))],
    slips="""
    keys-are-made: asked = Q @ W_up_k.T → asked, K = Q, C @ W_up_k ⊕ asked @ C.T → asked @ K.T
        Right numbers, but the key of every word is made. Multiply the queries by W_up_k.T
        instead, once, and let them ask the small vectors.
    values-are-made: weights @ C @ W_up_v → weights @ (C @ W_up_v)
        Right numbers, but the value of every word is made. Mix the small vectors first, then
        multiply the mix by W_up_v.
    root-of-the-small-width: Q.shape[-1] → C.shape[-1]
        You divide by √d_latent. The scores are those of whole keys, so take √d_head, the width
        of a query.
    not-divided:  / np.sqrt(Q.shape[-1]) → ∅
        The scores are not divided by √d_head, the width of a query.
    the-small-mix: weights @ C @ W_up_v → weights @ C
        This is a mix of small vectors. The head makes its value of it: multiply by W_up_v.
    one-matrix-for-both: @ W_up_v → @ W_up_k
        The mix is multiplied by W_up_k, which makes keys. Values are made by W_up_v.
    not-turned-over: W_up_k.T → W_up_k
        W_up_k leads from small vectors to keys. Queries go back that way: turn it over, W_up_k.T.
    weights-without-softmax: softmax(asked @ C.T / np.sqrt(Q.shape[-1])) → \\
            asked @ C.T / np.sqrt(Q.shape[-1])
        The scores mix the small vectors as they are. They become weights by softmax.
    softmax-over-queries: np.sqrt(Q.shape[-1])) → np.sqrt(Q.shape[-1]), axis=0)
        The softmax runs over the queries. The weights of one query sum to 1 over the words:
        axis=-1.
    """,
)  # fmt: skip


@latent_attention.experiment("vectors too large to multiply")
def what_it_makes(fn):
    """A key, or a value, that is made here is infinite; all else is not, nor any score large."""
    one, two = np.ones((1, 3)), np.ones((2, 3))
    with np.errstate(all="ignore"):
        by_keys = fn(3e-308 * one, 2e154 * np.eye(2), 2e154 * two, 1e-154 * two)
        by_values = fn(0 * one, np.array([[2e154], [-2e154]]), one, 2e154 * one)
    return {"no key is made": bool(np.isfinite(by_keys).all()),
            "no value is made": bool(np.isfinite(by_values).all())}  # fmt: skip


POSITIVE = {shape: numbers(*shape).then(np.exp) for shape in [(1, 3), (6, 3), (5, 4), (400, 2)]}

linear_attention = exercise(
    """
    def linear_attention(Q, K, V, g=1.0):
        S, z, context = np.zeros((K.shape[1], V.shape[1])), np.zeros(K.shape[1]), []
        for q, k, v in zip(Q, K, V):
            S = g * S + np.outer(k, v)
            z = g * z + k
            context.append(q @ S / (q @ z))
        return np.array(context)
    """,
    hints="""What must S and z hold before the first word, and what does each word do to them?
    For each q, k, v: S = g * S + np.outer(k, v), z = g * z + k, then q @ S / (q @ z).""",
    probes=[("the two words by hand", [[1.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [1.0, 1.0]],
             [[2.0, 0.0], [0.0, 4.0]]),
            ("half is left", [[1.0, 1.0], [1.0, 2.0], [3.0, 1.0]],
             [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 4.0], [6.0, 2.0]], 0.5),
            ("one word", POSITIVE[1, 3], POSITIVE[1, 3], numbers(1, 2)),
            ("values wider than keys", POSITIVE[6, 3], POSITIVE[6, 3], numbers(6, 5)),
            ("nine tenths are left", POSITIVE[5, 4], POSITIVE[5, 4], numbers(5, 2), 0.9)],
    slips="""
    a-table-of-all-words: S, z, context = → t = np.arange(len(Q))⏎    \\
            W = np.tril(g ** np.subtract.outer(t, t)) * (Q @ K.T)⏎    \\
            return W @ V / W.sum(1)[:, None]⏎    S, z, context =
        Right numbers, from a table of all words by all words, which grows with T². Go word by
        word, and keep S and z alone.
    not-divided:  / (q @ z) → ∅
        The values are summed with their weights, but never divided. Divide by q @ z, the sum of
        the weights.
    the-newest-is-not-read: S = g → context.append(q @ S / (q @ z))⏎        S = g ⊕ \\
            z = g * z + k⏎        context.append(q @ S / (q @ z)) → z = g * z + k
        A word reads the state before it is in there itself, so the first divides by 0. Write
        first, then read.
    reads-what-comes-later: context.append(q @ S / (q @ z)) → pass ⊕ \\
            np.array(context) → Q @ S / (Q @ z)[:, None]
        All words read the last state, with words in it that come after them. Word t reads the
        state when it holds words up to t.
    g-has-no-effect: g * → ∅
        g has no effect. Before each new word, S and z both shrink: g * S and g * z.
    z-does-not-shrink: g * z → z
        z keeps old keys whole while S shrinks, so weights sum to less than 1. Shrink both by g.
    only-the-newest: g * S +  → ∅ ⊕ g * z +  → ∅
        Only the newest word is left in the state. Add its part to what S and z hold already.
    a-share-of-the-new: np.outer → (1 - g) * np.outer ⊕ + k → + (1 - g) * k
        The new word is multiplied by 1 − g, so with g = 1 nothing is ever written. Add it whole.
    divided-by-the-number: q @ z → len(context) + 1
        The sum is divided by the number of words. Divide by q @ z, the sum of the weights.
    """,
)  # fmt: skip


@linear_attention.experiment("400 words")
def what_it_keeps(fn):
    """A table of all words by all words takes 4 bytes a number and more, the state is small."""
    Q, K, V = (drawn(POSITIVE[400, 2], name) for name in "QKV")
    tracemalloc.start()
    try:
        fn(Q, K, V)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"it keeps no table of 400 by 400": most < 400 * 400 * 2}


online_softmax = exercise(
    """
    def online_softmax(x, tile):
        largest, total = -np.inf, 0.0
        for start in range(0, x.shape[-1], tile):
            part = x[..., start : start + tile]
            higher = np.maximum(largest, part.max(axis=-1, keepdims=True))
            new = np.exp(part - higher).sum(axis=-1, keepdims=True)
            total = total * np.exp(largest - higher) + new
            largest = higher
        return np.exp(x - largest) / total
    """,
    course=course.online_softmax,
    hints="""A larger number comes: how many times too large is the sum, made with the old one?
    exp(x − new) = exp(x − old) · exp(old − new): multiply the sum by exp(old − new), then add.""",
    probes=[("six scores, tiles of two", [1.0, 3.0, 2.0, 5.0, 4.0, 0.0], 2),
            ("a wider tile", [1.0, 3.0, 2.0], 8), ("tiles of one", [0.0, 2.0, 1.0, 4.0], 1),
            ("a shorter last tile", [2.0, 1.0, 0.0, 3.0, -1.0], 2), ("integers", [3, 1, 6, 4], 2),
            ("huge scores", [[1000.0, 0.0, 998.0], [0.0, 3.0, 1000.0], [-999.0, -998.0, -9.0]], 2),
            ("far apart", [[3000.0, -3000.0, 0.0], [-1000.0, -1001.0, -999.0]], 2),
            ("a batch", 3 * numbers(2, 3, 7), 3)],
    slips="""
    plain-softmax: -np.inf, 0.0 → -np.inf, 0.0⏎    tile = x.shape[-1]
        This is the plain softmax: it adds up a whole row at once. Let the sum grow tile by tile.
    sum-never-shrunk: total * np.exp(largest - higher) → total
        When a larger number comes, the sum so far stays as it was. Multiply it by exp(old − new).
    everything-as-one-row: axis=-1, keepdims=True → ∅
        All rows share one largest and one sum. Each has its own: axis=-1, keepdims=True.
    new-terms-with-the-old-largest: -np.inf, → x[..., :1], ⊕ part - higher → part - largest
        The new tile's terms are made with the old largest. Take the new one for them.
    each-tile-by-itself: np.exp(x - largest) / total → \\
            np.concatenate([*map(softmax, np.split(x, range(tile, x.shape[-1], tile), -1))], -1)
        Each tile sums to 1 by itself. Keep one largest and one sum for the whole row.
    largest-of-the-last-tile: higher = np.maximum(largest, part → higher = (part
        The largest is that of the newest tile, even if an earlier one was larger. Keep the larger.
    largest-never-renewed: -np.inf, → x[..., :1], ⊕ largest = higher → pass
        The largest stays the first one, in spite of larger ones. Renew it after each tile.
    whole-tiles-alone: (0, x.shape[-1], → (0, x.shape[-1] // tile * tile,
        Only whole tiles are read, and of a wider one nothing. Go on to the end of the row.
    last-tile-dropped: (0, x.shape[-1], → (0, max(x.shape[-1] // tile, 1) * tile,
        The last, shorter tile is not read. Go on to the end: a slice beyond it is just shorter.
    one-largest-for-all-rows: part.max(axis=-1, keepdims=True) → part.max()
        All rows share one largest, so rows far below it vanish. Each row has its own: axis=-1.
    largest-from-zero: -np.inf, 0.0 → 0.0, 0.0
        The largest so far begins at 0, so rows far below it vanish. Begin with minus infinity.
    no-largest: np.maximum(largest, part.max(axis=-1, keepdims=True)) → 0.0
        No largest is subtracted, so exp of a large score is infinite. Subtract the largest so far.
    """,
)  # fmt: skip


@online_softmax.experiment("200 rows of twelve, tiles of three")
def how_it_adds(fn):
    """The last bits tell: two ways to add round differently in many of the rows."""
    x = np.float32(np.random.default_rng(15).normal(np.arange(12) / 20, 0.1, (200, 12)))
    largest = fn(x, 3).max(axis=-1)  # share of each row: 1 / its sum
    e = [np.exp(y - y.max(axis=-1, keepdims=True)) for y in (x, x.astype(float))]
    whole, tiled = [1 / y.sum(-1) for y in e], [1 / y.reshape(200, 4, 3).sum(-1).sum(-1) for y in e]
    if torch := sys.modules.get("torch"):
        y, z = torch.from_numpy(e[0]), torch.from_numpy(x - x.max(axis=-1, keepdims=True))
        whole += [1 / y.sum(-1), 1 / z.exp().sum(-1), z.softmax(-1).amax(-1)]
    alike = [max(np.mean(largest == np.asarray(y)) for y in ways) for ways in (whole, tiled)]
    return {"the sum grows tile by tile": alike[0] < 0.95, "the largest grows too": alike[1] < 0.95}
