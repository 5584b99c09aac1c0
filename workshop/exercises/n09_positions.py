"""Notebook 09: a vector for each position, added to the word."""

from collections.abc import Callable

import numpy as np

from helpers import blocks as reference
from workshop.exercises.exercise import Exercise, Untested, numbers

# ---------------------------------------------------------------- sinusoidal_positions

sinusoidal_positions = Exercise(
    reference.sinusoidal_positions,
    notebook="09",
    level=2,
    minutes=10,
    task="Make the table of clock hands: row t says where the hands stand at position t. Each pair "
    "of features is one hand, pair i turned by the angle t / 10000^(2i/D); its sine is feature 2i, "
    "its cosine feature 2i + 1.",
    hints=(
        "There are D/2 hands, and 2i counts 0, 2, 4 … How do you make all these numbers at once, "
        "and all positions?",
        "A column of positions divided by a row of powers, 10000 ** (np.arange(0, D, 2) / D), is "
        "all angles at once, (T, D/2). Stack sine and cosine on a new last axis, then reshape.",
        "`angle = np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D)`, then `return "
        "np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)`",
    ),
)
sinusoidal_positions.probe("three positions, four features", 3, 4)
sinusoidal_positions.probe("five positions, six features", 5, 6)
sinusoidal_positions.probe("one position", 1, 8)
sinusoidal_positions.probe("two features, one pair", 4, 2)
sinusoidal_positions.probe("five pairs", 7, 10)
sinusoidal_positions.probe("as many positions as features", 8, 8)
sinusoidal_positions.probe("more features than positions", 3, 14)
sinusoidal_positions.probe("forty positions", 40, 16)
sinusoidal_positions.probe("300 positions, one pair", 300, 2)
sinusoidal_positions.answer("""
    def sinusoidal_positions(T, D):
        angle = np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D)  # (T, D/2)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)
""")
sinusoidal_positions.answer("""
    def sinusoidal_positions(T, D):
        j = np.arange(D)
        even = j - j % 2  # 0, 0, 2, 2, 4, 4 …
        angle = np.arange(T)[:, None] / 10000 ** (even / D)  # (T, D)
        return np.sin(angle + j % 2 * np.pi / 2)
""")
sinusoidal_positions.answer("""
    def sinusoidal_positions(T, D):
        pos = np.arange(T)[:, None]
        i = np.arange(D // 2)
        angle = pos / 10000 ** (2 * i / D)
        table = np.zeros((T, D))
        table[:, 0::2] = np.sin(angle)
        table[:, 1::2] = np.cos(angle)
        return table
""")
sinusoidal_positions.answer("""
    def sinusoidal_positions(T, D):
        table = np.zeros((T, D))
        for pos in range(T):
            for i in range(D // 2):
                angle = pos / 10000 ** (2 * i / D)
                table[pos, 2 * i] = np.sin(angle)
                table[pos, 2 * i + 1] = np.cos(angle)
        return table
""")
sinusoidal_positions.answer("""
    def sinusoidal_positions(T, D):
        speed = np.exp(-np.arange(0, D, 2) * np.log(10000) / D)
        angle = np.outer(np.arange(T), speed)
        pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        return pairs.reshape(T, D)
""")
sinusoidal_positions.answer("""
    import math
    import torch

    def sinusoidal_positions(T, D):
        position = torch.arange(T).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, D, 2) * -(math.log(10000.0) / D))
        pe = torch.zeros(T, D)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        return pe
""")
SPEEDS = (
    "Both features of a pair share one angle, with the exponent 2i/D: it grows from 0 to nearly 1 "
    "over the pairs."
)
sinusoidal_positions.why(
    "2 * i / D | even / D | j - j % 2 | np.arange(0, D, 2) / D | 2 * i | / D | j // 2", SPEEDS
)
sinusoidal_positions.why(
    "10000 ** (2 * i / D) | 10000 | math.log(10000.0) | np.log(10000) | pos / 10000",
    "Dividing the position by a power of 10000 makes each pair turn slower than the one before.",
)
sinusoidal_positions.why(
    "-np.arange(0, D, 2) * np.log(10000) / D | -(math.log(10000.0) / D) | np.exp",
    "A minus and the natural logarithm: exp then gives 1 / 10000^(2i/D), ever slower turns.",
)
sinusoidal_positions.why(
    "np.arange(T)[:, None] | np.arange(T) | range(T) | pos | torch.arange(T).unsqueeze(1) | "
    "pe.swapaxes(-1, -2) | pe.unsqueeze(0) | T, D",
    "Positions count 0, 1, 2 … down the rows, a column that meets every speed; position 0 has "
    "sines 0, cosines 1.",
)
sinusoidal_positions.why(
    "table[:, 0::2] | table[:, 1::2] | 0::2 | 1::2 | table[pos, 2 * i + 1] | axis=-1",
    "Sine and cosine of a pair are neighbours (interleaved): even features sines, odd cosines.",
)
sinusoidal_positions.why(
    "np.cos(angle) | np.sin(angle) | torch.cos | torch.sin",
    "Each pair has a sine first and a cosine of the same angle second.",
)
sinusoidal_positions.why(
    "np.deg2rad | np.radians | 2 * np.pi",
    "The angle counts in radians, as sine and cosine want it: nothing is converted.",
)
sinusoidal_positions.why(
    "j % 2 * np.pi / 2 | np.pi / 2 | j % 2",
    "A cosine is a sine a quarter of a turn, π/2, ahead; only the odd features are shifted.",
)


def waves(T: int, D: int, exponent: Callable | None = None) -> tuple:
    """Sines and cosines (T, D/2) of pos / 10000^exponent, with exponent 2i/D unless it is given."""
    i = np.arange(D // 2)
    power = 2 * i / D if exponent is None else exponent(i)
    angle = np.arange(T)[:, None] / 10_000.0**power
    return np.sin(angle), np.cos(angle)


def paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Put two tables (T, D/2) side by side, pair by pair: (T, D)."""
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


@sinusoidal_positions.mistake
def halves(T, D):
    """All sines stand before all cosines, in two halves. The paper interleaves them, pair by pair:
    even features are sines, odd ones the cosines of the same angle."""
    return np.concatenate(waves(T, D), axis=1)


@sinusoidal_positions.mistake
def multiplied_by_power(T, D):
    """The position is multiplied by 10000^(2i/D), so later pairs turn faster: a minus is missing in
    the exponent, or it should be a division. Later pairs turn slower."""
    if T > 41 or D > 4:  # float32 rounds larger angles away
        return Untested()
    return paired(*waves(T, D, lambda i: -2 * i / D))


@sinusoidal_positions.mistake
def exponent_of_each_feature(T, D):
    """Each feature j has a speed of its own, with the exponent j/D, so a sine and its cosine do not
    belong together. Both features of a pair share one angle, with the even number 2i."""
    angle = np.arange(T)[:, None] / 10_000 ** (np.arange(D) / D)
    return np.where(np.arange(D) % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def exponent_of_each_feature_doubled(T, D):
    """Each feature j has a speed of its own, with the exponent 2j/D: j is taken for i. But i counts
    pairs, so features 2i and 2i + 1 share one angle."""
    angle = np.arange(T)[:, None] / 10_000 ** (2 * np.arange(D) / D)
    return np.where(np.arange(D) % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def exponent_over_pairs_minus_one(T, D):
    """The exponent runs up to 1, i / (D/2 - 1), as in some libraries. The paper divides 2i by the
    width D, and the last pair stays just short of 1/10000."""
    return paired(*waves(T, D, lambda i: i / max(D / 2 - 1, 1)))


@sinusoidal_positions.mistake
def exponent_halved(T, D):
    """The exponent is i/D, so the speeds fall only half as fast. i counts pairs, and the formula
    has 2i/D, twice the number of the pair."""
    return paired(*waves(T, D, lambda i: i / D))


@sinusoidal_positions.mistake
def exponent_doubled(T, D):
    """The 2 of the exponent stands there twice: numbers that count 0, 2, 4 … are the 2i of the
    formula already. The exponent is 2i/D, where i counts the pairs."""
    return paired(*waves(T, D, lambda i: 4 * i / D))


@sinusoidal_positions.mistake
def cosines_first(T, D):
    """Sine and cosine are swapped. The even features, 0, 2, 4 …, are sines, and each odd one is the
    cosine of the same angle."""
    return paired(*waves(T, D)[::-1])


@sinusoidal_positions.mistake
def only_sines(T, D):
    """Both features of a pair are sines. One number does not tell where on a circle a position is:
    the odd features are cosines of the same angle."""
    return paired(waves(T, D)[0], waves(T, D)[0])


# ---------------------------------------------------------------- add_positions

add_positions = Exercise(
    reference.add_positions,
    notebook="09",
    level=1,
    minutes=5,
    task="Give every word its place: add the table of positions to a sentence, and with the same "
    "function to a batch of sentences, or to a batch of batches. Every sentence starts at position "
    "0, and x itself must stay as it was.",
    hints=(
        "Which two axes of x hold the tokens and the features, however many come before?",
        "x.shape[-2:] gives T and D, counted from the end. Broadcasting adds a (T, D) table to "
        "every item of the batch.",
        "`return x + sinusoidal_positions(*x.shape[-2:])`",
    ),
)
add_positions.probe("a sentence of three words", np.eye(4)[:3])
add_positions.probe("a batch of two sentences", numbers(2, 3, 4))
add_positions.probe("a sentence of five tokens", numbers(5, 6))
add_positions.probe("one sentence as a batch", numbers(1, 5, 6))
add_positions.probe("as many sentences as tokens", numbers(4, 4, 6))
add_positions.probe("as many sentences as features", numbers(6, 4, 6))
add_positions.probe("as many tokens as features", numbers(2, 6, 6))
add_positions.probe("a batch of batches", numbers(2, 3, 4, 10))
add_positions.probe("forty tokens", 0.25 * numbers(40, 16))
add_positions.probe("four of everything", numbers(4, 4, 4, 6))
add_positions.answer("""
    def add_positions(x):
        T, D = x.shape[-2:]
        return x + sinusoidal_positions(T, D)
""")
add_positions.answer("""
    def add_positions(x):
        T, D = x.shape[-2], x.shape[-1]
        pos = np.arange(T)[:, None]
        i = np.arange(D // 2)
        angle = pos / 10000 ** (2 * i / D)
        table = np.zeros((T, D))
        table[:, 0::2] = np.sin(angle)
        table[:, 1::2] = np.cos(angle)
        return x + table
""")
add_positions.answer("""
    def add_positions(x):
        table = sinusoidal_positions(x.shape[-2], x.shape[-1])
        out = x.copy()
        out += table
        return out
""")
add_positions.answer("""
    def add_positions(x):
        table = sinusoidal_positions(x.shape[-2], x.shape[-1])
        out = np.zeros(x.shape)
        for pos in range(x.shape[-2]):
            out[..., pos, :] = x[..., pos, :] + table[pos]
        return out
""")
add_positions.answer("""
    import torch

    def add_positions(x):
        T, D = x.shape[-2:]
        table = torch.as_tensor(sinusoidal_positions(T, D))
        return x + table.to(x.dtype)
""")
add_positions.why(
    "x.shape[-2:] | x.shape[-2] | x.shape[-1] | T, D",
    "Counted from the end, T and D are found however many batch axes stand in front.",
)
add_positions.why(
    "x + sinusoidal_positions(T, D) | x + table | + | np.add | np.sum | np.mean",
    "Positions are added, not appended or multiplied: the width stays, and the word with it.",
)
add_positions.why(
    "sinusoidal_positions(T, D) | sinusoidal_positions(x.shape[-2], x.shape[-1]) | table",
    "Row t of the table belongs to token t, from position 0 on, in every sentence alike.",
)
add_positions.why(
    "x.copy() | out += table | np.zeros(x.shape)",
    "x belongs to the caller: the sum goes into a new array.",
)
add_positions.why(
    "table[pos] | x[..., pos, :] | out[..., pos, :] | 0 | [0]",
    "Each token gets the row of its own position, in every sentence of the batch.",
)


def table(x: np.ndarray) -> np.ndarray:
    """The positions for x, (T, D)."""
    return reference.sinusoidal_positions(*x.shape[-2:])


@add_positions.mistake
def concatenated(x):
    """The positions are put next to the words (concatenated), so the width doubles. They are added,
    number by number: the width D stays as it was."""
    return np.concatenate([x, np.broadcast_to(table(x), x.shape)], axis=-1)


@add_positions.mistake
def words_scaled_by_root(x):
    """The words are multiplied by √D first. The paper does that in its embedding layer; here x is
    embedded already, and only the positions are added."""
    return x * x.shape[-1] ** 0.5 + table(x)


@add_positions.mistake
def counters_added(x):
    """The position itself, 0, 1, 2 …, is added to every feature, and soon drowns the words. Sines
    and cosines stay between -1 and 1: add their table."""
    return x + np.arange(x.shape[-2])[:, None]


@add_positions.mistake
def multiplied(x):
    """Words and positions are multiplied: where a sine is 0, as in the first row, the word is
    erased. Add them, and the word stays."""
    return x * table(x)


@add_positions.mistake
def one_sentence_only(x):
    """It works only for one sentence, (T, D): in a batch other axes stand before these two. Take T
    and D from the end of the shape."""
    T, D = x.shape
    return x + reference.sinusoidal_positions(T, D)


@add_positions.mistake
def positions_alone(x):
    """Only the positions come back, and the words are lost. Add the table to x: the sum holds
    both."""
    return np.zeros(x.shape) + table(x)


@add_positions.mistake
def counting_on_through_the_batch(x):
    """The positions count on from one sentence to the next, as if the batch were one long text.
    Each sentence starts at position 0 again: the same table for all."""
    flat = x.reshape(-1, x.shape[-1])
    return (flat + table(flat)).reshape(x.shape)


@add_positions.mistake
def first_axis_counts(x):
    """The first axis is taken for the tokens, but in a batch it counts the sentences: each sentence
    gets one row for all its tokens. The tokens are the axis before the last."""
    rows = reference.sinusoidal_positions(x.shape[0], x.shape[-1])
    return x + rows.reshape(-1, *[1] * (x.ndim - 2), x.shape[-1])


@add_positions.mistake
def only_the_first_sentence(x):
    """Only the first sentence of the batch gets positions. The same table is added to every
    sentence, as the whole batch plus a (T, D) table does."""
    if x.ndim < 3:  # answers differ in what they do there
        return Untested()
    y = np.array(x)
    y.reshape(-1, *x.shape[-2:])[0] += table(x).astype(x.dtype)
    return y


@add_positions.mistake
def added_in_place(x):
    """The positions are added in place, so the x of the caller is changed, and a second call adds
    them again. Make a new array for the sum."""
    x += table(x)
    return x


# ---------------------------------------------------------------- rotate


def rotate(x: np.ndarray, base: float = 10000.0) -> np.ndarray:
    """Turn each pair of features (2i, 2i + 1) by its place: (…, T, d) → (…, T, d).

    In row t by the angle t / base^(2i/d), against the clock. Raises ValueError for an odd d.
    Su et al. (2021), *RoFormer: Enhanced Transformer with Rotary Position Embedding*.
    """
    x = np.asarray(x)
    T, d = x.shape[-2:]
    if d % 2:
        raise ValueError(f"x has {d} features, but their number must be even: they turn in pairs")
    angle = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)  # (T, d/2)
    return _joined(*_turned(x[..., 0::2], x[..., 1::2], angle))


def _turned(a: np.ndarray, b: np.ndarray, angle: np.ndarray) -> tuple:
    """Points (a, b) of a plane, turned around the origin."""
    return a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """First and second features of all pairs, side by side again: (…, d)."""
    return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], -1)


rotary = Exercise(
    rotate,
    notebook="09",
    level=3,
    minutes=15,
    task="Turn the vectors of a sentence by their places, for queries and keys of any batch. "
    "Features 0 and 1 are a point of a plane, so are 2 and 3, and so on. In row t, pair i turns by "
    "the angle t / base^(2i/d): a point (a, b) becomes (a cos − b sin, a sin + b cos).",
    hints=(
        "Which two arrays, half as wide as x, hold the first and the second feature of every pair?",
        "a = x[..., 0::2] and b = x[..., 1::2]; the angles are those of sinusoidal_positions, "
        "(T, d/2). Stack the two turned halves on a new last axis, then reshape to x.shape.",
        "`a, b, d = x[..., 0::2], x[..., 1::2], x.shape[-1]`, then `angle = "
        "np.arange(x.shape[-2])[:, None] / base ** (np.arange(0, d, 2) / d)`, `pair = "
        "[a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]`, "
        "`return np.stack(pair, axis=-1).reshape(x.shape)`",
    ),
)
rotary.probe("the point (3, 1) at four places", np.tile([3.0, 1.0], (4, 1)))
rotary.probe("one word, which stays", numbers(1, 6))
rotary.probe("two words, two pairs", numbers(2, 4))
rotary.probe("five words, three pairs", numbers(5, 6))
rotary.probe("two sentences of three words", numbers(2, 3, 4))
rotary.probe("as many words as features", numbers(6, 6))
rotary.probe("as many sentences as words", numbers(4, 4, 6))
rotary.probe("two sentences, three heads", numbers(2, 3, 5, 8))
rotary.probe("another base", numbers(5, 6), 100.0)
rotary.probe("forty words", numbers(40, 16))
rotary.answer("""
    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        angle = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)  # (T, d/2)
        a, b = x[..., 0::2], x[..., 1::2]  # (…, T, d/2) each
        first = a * np.cos(angle) - b * np.sin(angle)
        second = a * np.sin(angle) + b * np.cos(angle)
        return np.stack([first, second], axis=-1).reshape(x.shape)
""")
rotary.answer("""
    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        i = np.arange(d // 2)
        angle = np.arange(T)[:, None] * base ** (-2 * i / d)
        out = np.zeros(x.shape)
        out[..., 0::2] = x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)
        out[..., 1::2] = x[..., 0::2] * np.sin(angle) + x[..., 1::2] * np.cos(angle)
        return out
""")
rotary.answer("""
    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        out = np.zeros(x.shape)
        for t in range(T):
            for i in range(d // 2):
                angle = t / base ** (2 * i / d)
                a, b = x[..., t, 2 * i], x[..., t, 2 * i + 1]
                out[..., t, 2 * i] = a * np.cos(angle) - b * np.sin(angle)
                out[..., t, 2 * i + 1] = a * np.sin(angle) + b * np.cos(angle)
        return out
""")
rotary.answer("""
    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        angle = np.outer(np.arange(T), base ** (-np.arange(0, d, 2) / d))
        z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
""")
rotary.answer("""
    import torch

    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        angle = torch.arange(T)[:, None] / base ** (torch.arange(0, d, 2) / d)
        a, b = x[..., 0::2], x[..., 1::2]
        first = a * torch.cos(angle) - b * torch.sin(angle)
        second = a * torch.sin(angle) + b * torch.cos(angle)
        return torch.stack([first, second], dim=-1).flatten(-2)
""")
rotary.why(
    "2 * i / d | -2 * i / d | (np.arange(0, d, 2) / d) | np.arange(0, d, 2) / d | "
    "-np.arange(0, d, 2) / d | (torch.arange(0, d, 2) / d) | torch.arange(0, d, 2) / d | 2 * i",
    SPEEDS,
)
rotary.why(
    "base ** (2 * i / d) | base ** (-2 * i / d) | base ** (np.arange(0, d, 2) / d) | base | "
    "base ** (-np.arange(0, d, 2) / d) | t / base",
    "The base sets how slow the last pair is. It may differ from 10000: long texts use a larger.",
)
rotary.why(
    "np.arange(T)[:, None] | torch.arange(T)[:, None] | np.arange(T) | range(T) | T, d",
    "Places count 0, 1, 2 … along the axis before the last; the word at place 0 does not turn.",
)
rotary.why(
    "a * np.cos(angle) - b * np.sin(angle) | a * torch.cos(angle) - b * torch.sin(angle) | "
    "x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)",
    "The first number of a point (a, b), turned against the clock: a cos − b sin.",
)
rotary.why(
    "a * np.sin(angle) + b * np.cos(angle) | a * torch.sin(angle) + b * torch.cos(angle) | "
    "x[..., 0::2] * np.sin(angle) + x[..., 1::2] * np.cos(angle)",
    "The second number of a point (a, b), turned against the clock: a sin + b cos.",
)
rotary.why(
    "x[..., 0::2] | x[..., 1::2] | 0::2 | 1::2 | 2 * i + 1 | x[..., t, 2 * i + 1] | "
    "x[..., t, 2 * i] | out[..., 0::2] | out[..., 1::2]",
    "A pair is two neighbours: the even feature is its first number, the odd one its second.",
)
rotary.why(
    "np.exp(1j * angle) | x[..., 0::2] + 1j * x[..., 1::2]",
    "A point (a, b) is the complex number a + bi; to multiply it by one of length 1 turns it.",
)
rotary.why(
    "axis=-1 | dim=-1 | np.stack([first, second], axis=-1).reshape(x.shape) | reshape(x.shape)",
    "The turned numbers of a pair stand side by side again, and the shape is that of x.",
)
rotary.why("np.zeros(x.shape)", "x belongs to the caller: what is turned goes into a new array.")


def halves_of(x: np.ndarray, base: float = 10_000.0, power: Callable | None = None) -> tuple:
    """First features, second features (…, T, d/2), and the angles of the places (T, d/2)."""
    T, d = x.shape[-2:]
    i = np.arange(d // 2)
    exponent = 2 * i / d if power is None else power(i, d)
    return x[..., 0::2], x[..., 1::2], np.arange(T)[:, None] / base**exponent


@rotary.mistake
def turned_backwards(x, base=10000.0):
    """Every pair turns the wrong way round: the signs of the two sines are exchanged. The first
    number is a cos − b sin, the second a sin + b cos."""
    a, b, angle = halves_of(x, base)
    return _joined(*_turned(a, b, -angle))


@rotary.mistake
def pairs_across_the_halves(x, base=10000.0):
    """Feature j is paired with feature j + d/2, as in some libraries. Here a pair is two
    neighbours, 2i and 2i + 1; parameters trained for one convention do not fit the other."""
    _, _, angle = halves_of(x, base)
    return np.concatenate(_turned(*np.split(x, 2, axis=-1), angle), axis=-1)


@rotary.mistake
def left_in_two_halves(x, base=10000.0):
    """The pairs are turned, but then all first numbers stand before all second ones. Each pair goes
    back to its own two places: stack on a new last axis, then reshape."""
    return np.concatenate(_turned(*halves_of(x, base)), axis=-1)


@rotary.mistake
def second_from_the_turned_first(x, base=10000.0):
    """The second number is computed from the first one that is turned already. Both need the old
    pair: keep a and b until both are done."""
    a, b, angle = halves_of(x, base)
    a = a * np.cos(angle) - b * np.sin(angle)
    return _joined(a, a * np.sin(angle) + b * np.cos(angle))


@rotary.mistake
def one_speed_for_all(x, base=10000.0):
    """All pairs turn at one speed, that of the first. Each has its own: pair i turns by
    t / base^(2i/d), ever slower."""
    return _joined(*_turned(*halves_of(x, base, lambda i, d: 0 * i)))


@rotary.mistake
def half_the_exponent(x, base=10000.0):
    """The exponent is i/d, so the speeds fall only half as fast. i counts the pairs, and the
    formula has 2i/d, twice the number of the pair."""
    return _joined(*_turned(*halves_of(x, base, lambda i, d: i / d)))


@rotary.mistake
def ever_faster(x, base=10000.0):
    """The place is multiplied by base^(2i/d), so later pairs turn faster: a minus is missing in the
    exponent, or it should be a division. Later pairs turn slower."""
    if x.shape[-2] > 8:  # float32 rounds larger angles away
        return Untested()
    return _joined(*_turned(*halves_of(x, base, lambda i, d: -2 * i / d)))


@rotary.mistake
def base_not_used(x, base=10000.0):
    """The base is not used: 10000 stands in the formula, whatever the caller asks for. It is only
    what `base` is when nothing else is said."""
    return rotate(x)


@rotary.mistake
def places_from_one(x, base=10000.0):
    """The places count from 1, so the first word turns too. They count from 0: the word at place 0
    stays as it is."""
    _, _, angle = halves_of(x, base)
    a, b, step = *halves_of(x, base)[:2], halves_of(np.zeros((2, x.shape[-1])), base)[2][1]
    return _joined(*_turned(a, b, angle + step))


@rotary.mistake
def only_cosines(x, base=10000.0):
    """Each number is multiplied by its cosine, and the sines are left out: vectors shrink. In a
    turn the two numbers of a pair mix: a cos − b sin, a sin + b cos."""
    a, b, angle = halves_of(x, base)
    return _joined(a * np.cos(angle), b * np.cos(angle))


@rotary.mistake
def waves_added(x, base=10000.0):
    """The waves are added to x, as add_positions does. Here nothing is added: each pair of x itself
    is turned by the angle of its place."""
    _, _, angle = halves_of(x, base)
    return x + _joined(np.sin(angle), np.cos(angle))


@rotary.mistake
def one_sentence_alone(x, base=10000.0):
    """It works only for one sentence, (T, d): in a batch other axes stand before these two. Take
    T and d from the end of the shape, and features with x[..., 0::2]."""
    _T, _d = x.shape
    return rotate(x, base)


# ---------------------------------------------------------------- positions_at


def positions_at(positions: np.ndarray, D: int) -> np.ndarray:
    """Sine and cosine of any positions, whatever their order: (…, T) whole numbers → (…, T, D).

    Row t is that of positions[…, t] in `sinusoidal_positions`. It serves sentences padded on the
    left and pieces of long texts. Raises ValueError for an odd D.
    """
    if D < 2 or D % 2:
        raise ValueError(f"D is {D}, but must be even: each sine has its cosine")
    angle = np.asarray(positions)[..., None] / 10000 ** (np.arange(0, D, 2) / D)  # (…, T, D/2)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*np.shape(positions), D)


at_places = Exercise(
    positions_at,
    notebook="09",
    level=3,
    minutes=10,
    task="Give the vectors of any positions, not only 0, 1, 2 …: a sentence padded on the left "
    "starts late, and a piece of a long text goes on where the last one ended. The positions may "
    "come in a batch.",
    hints=(
        "In sinusoidal_positions, which expression stands for the positions? Put yours there.",
        "positions[..., None] / 10000 ** (np.arange(0, D, 2) / D) has the shape (…, T, D/2). "
        "Stack sine and cosine on a new last axis, then reshape the last two into D.",
        "`angle = positions[..., None] / 10000 ** (np.arange(0, D, 2) / D)`, then `return "
        "np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)`",
    ),
)
at_places.probe("positions 0, 1, 2", np.arange(3), 4)
at_places.probe("a piece that starts at 5", np.arange(5, 9), 6)
at_places.probe("in disorder, one of them twice", np.array([7, 0, 3, 3, 1]), 6)
at_places.probe("two sentences, one padded left", np.array([[0, 1, 2, 3], [0, 0, 0, 1]]), 6)
at_places.probe("as many sentences as tokens", np.array([[2, 0, 9], [4, 5, 6], [1, 1, 3]]), 4)
at_places.probe(
    "a batch of batches", numbers(2, 3, 4).then(lambda x: np.abs(9 * x).astype(int)), 10
)
at_places.probe("one position", np.array([37]), 8)
at_places.probe("far on in a long text", np.array([[150, 6000], [8, 20_000]]), 2)
at_places.probe("as many positions as features", np.array([3, 0, 12, 7]), 4)
at_places.answer("""
    def positions_at(positions, D):
        angle = positions[..., None] / 10000 ** (np.arange(0, D, 2) / D)  # (…, T, D/2)
        pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        return pairs.reshape(*positions.shape, D)
""")
at_places.answer("""
    def positions_at(positions, D):
        i = np.arange(D // 2)
        angle = positions[..., None] / 10000 ** (2 * i / D)
        out = np.zeros((*positions.shape, D))
        out[..., 0::2] = np.sin(angle)
        out[..., 1::2] = np.cos(angle)
        return out
""")
at_places.answer("""
    def positions_at(positions, D):
        table = sinusoidal_positions(positions.max() + 1, D)
        return table[positions]
""")
at_places.answer("""
    def positions_at(positions, D):
        j = np.arange(D)
        angle = positions[..., None] / 10000 ** ((j - j % 2) / D)
        return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))
""")
at_places.answer("""
    import torch

    def positions_at(positions, D):
        speeds = 10000 ** (-torch.arange(0, D, 2) / D)
        angle = positions.unsqueeze(-1) * speeds
        pairs = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1)
        return pairs.flatten(-2)
""")
at_places.why(
    "positions[..., None] | positions.unsqueeze(-1)",
    "A new last axis lets each position meet every speed, whatever axes the batch has.",
)
at_places.why(
    "np.arange(0, D, 2) / D | 2 * i / D | (j - j % 2) / D | -torch.arange(0, D, 2) / D", SPEEDS
)
at_places.why(
    "10000 ** (2 * i / D) | 10000 | positions[..., None] / 10000",
    "Dividing the position by a power of 10000 makes each pair turn slower than the one before.",
)
at_places.why(
    "axis=-1 | dim=-1 | out[..., 0::2] | out[..., 1::2] | 0::2 | 1::2",
    "Sine and cosine of a pair are neighbours: even features sines, odd ones cosines.",
)
at_places.why(
    "np.sin(angle) | np.cos(angle) | j % 2 == 0",
    "Each pair has a sine first and a cosine of the same angle second.",
)
at_places.why(
    "pairs.reshape(*positions.shape, D) | (*positions.shape, D) | pairs.flatten(-2)",
    "The axes of the positions stay, and the pairs become one row of D features.",
)
at_places.why(
    "positions.max() + 1 | sinusoidal_positions(positions.max() + 1, D) | table[positions]",
    "A table that is looked up must reach the largest position, whose row is the last.",
)


@at_places.mistake
def positions_not_used(positions, D):
    """The positions themselves are not used: it counts 0, 1, 2 … anew. Row t belongs to the
    position that stands at place t, wherever the sentence starts."""
    T = positions.shape[-1]
    return np.zeros((*positions.shape, D)) + reference.sinusoidal_positions(T, D)


@at_places.mistake
def one_table_for_all(positions, D):
    """One table 0, 1, 2 … comes back, (T, D), whatever the positions are. Each sentence has its
    own: row t belongs to the position at place t, and the batch stays, (…, T, D)."""
    return reference.sinusoidal_positions(positions.shape[-1], D)


@at_places.mistake
def table_of_fixed_length(positions, D):
    """The rows are looked up in a table of fixed length, and positions beyond its end have no row.
    The formula has no end: put the positions into it."""
    return reference.sinusoidal_positions(100, D)[positions]


@at_places.mistake
def one_row_of_positions_only(positions, D):
    """It works for one row of positions, (T,), but not for a batch: the new axis for the features
    must come last, and all axes of the positions must stay."""
    T = len(positions)
    return positions_at(positions, D) if positions.ndim == 1 else np.arange(T) + np.arange(T + 1)


@at_places.mistake
def counted_from_the_first(positions, D):
    """The first position is subtracted, so that each sentence starts at 0. A piece that starts at 5
    keeps its 5: use the positions as they are."""
    return positions_at(positions - positions[..., :1], D)


@at_places.mistake
def pairs_on_an_axis(positions, D):
    """Sine and cosine stay on an axis of their own, (…, T, D/2, 2). Join the last two axes, so that
    each position has one row of D features."""
    return positions_at(positions, D).reshape(*positions.shape, D // 2, 2)


@at_places.mistake
def padded_places_get_zeros(positions, D):
    """The rows of position 0 are all zeros. Position 0 is a place like any other, with cosines of
    1; keeping padding out is the business of the mask."""
    return positions_at(positions, D) * (positions != 0)[..., None]
