"""Notebook 09: a vector for each position, added to the word."""

import math
from collections.abc import Callable

import numpy as np

from helpers import blocks as reference
from helpers.exercises.exercise import Exercise, Untested

rng = np.random.default_rng(9)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


# ---------------------------------------------------------------- sinusoidal_positions

sinusoidal_positions = Exercise(
    reference.sinusoidal_positions,
    notebook="09",
    level=2,
    minutes=10,
    task="Make the table of sines and cosines again, this time with np.sin alone: a cosine is a "
    "sine a quarter of a turn ahead, cos a = sin(a + π/2). Work on all D features at once.",
    hints=(
        "Features 0 and 1 form a pair and share one angle, so do 2 and 3. Which number, made from "
        "the feature j, is 0, 0, 2, 2, 4, 4 …?",
        "With j = np.arange(D), j - j % 2 is the 2i of the formula. The odd features, where j % 2 "
        "is 1, start a quarter of a turn ahead: add j % 2 * np.pi / 2 to the angle.",
        "`j = np.arange(D)`, then `return np.sin(np.arange(T)[:, None] / 10000 ** ((j - j % 2) "
        "/ D) + j % 2 * np.pi / 2)`",
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


def waves(T: int, D: int, exponent: Callable | None = None, base: float = 10_000.0) -> tuple:
    """Sines and cosines (T, D/2) of pos / base^exponent, with exponent 2i/D unless it is given."""
    i = np.arange(D // 2)
    power = 2 * i / D if exponent is None else exponent(i)
    angle = np.arange(T)[:, None] / base**power
    return np.sin(angle), np.cos(angle)


def paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Put two tables (T, D/2) side by side, pair by pair: (T, D)."""
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


def turned(angle: np.ndarray) -> np.ndarray:
    """Sine and cosine, pair by pair, of angles (T, D/2)."""
    return paired(np.sin(angle), np.cos(angle))


def speeds(D: int) -> np.ndarray:
    """10000^(-2i/D) for each pair: (D/2,)."""
    return 10_000.0 ** (-np.arange(0, D, 2) / D)


def places(T: int) -> np.ndarray:
    """A column of positions, (T, 1)."""
    return np.arange(T)[:, None]


# ---- the exponent


@sinusoidal_positions.mistake
def exponent_halved(T, D):
    """The exponent is i/D instead of 2i/D: a factor 2 is missing, so the speeds fall only half as
    fast (a base of 100 instead of 10000 does the same). i counts pairs; use 2 * i / D, or
    np.arange(0, D, 2) / D."""
    return paired(*waves(T, D, lambda i: i / D))


@sinusoidal_positions.mistake
def exponent_doubled(T, D):
    """The exponent is doubled: 2 * i, where i already counts the features 0, 2, 4 and so is the 2i
    of the formula (or 2i is divided by D / 2). Use the exponent 2i/D, factor 2 only once."""
    return paired(*waves(T, D, lambda i: 4 * i / D))


@sinusoidal_positions.mistake
def exponent_of_each_feature(T, D):
    """Each feature j has an exponent of its own, j/D, so a sine and its cosine turn at different
    speeds. Both features of a pair share one angle, with the even number 2i: exponent 2i/D, also
    for feature 2i + 1."""
    j = np.arange(D)
    angle = places(T) / 10000 ** (j / D)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def exponent_of_each_feature_doubled(T, D):
    """Each feature j has an exponent of its own, 2j/D: j is taken for i, which counts pairs. Both
    features of a pair share one angle: i = j // 2, exponent 2i/D."""
    j = np.arange(D)
    angle = places(T) / 10000 ** (2 * j / D)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def exponent_of_cosines_one_pair_on(T, D):
    """The cosines use the exponent of the next pair, 2(i + 1)/D. Sine and cosine of a pair share
    one angle, with 2i/D."""
    return paired(waves(T, D)[0], waves(T, D, lambda i: 2 * (i + 1) / D)[1])


@sinusoidal_positions.mistake
def exponent_from_one(T, D):
    """The pairs are counted from 1: the exponent starts at 2/D. i starts at 0, so the first pair
    turns by one radian per position."""
    return paired(*waves(T, D, lambda i: 2 * (i + 1) / D))


@sinusoidal_positions.mistake
def exponent_odd(T, D):
    """The exponent is (2i + 1)/D for both features of a pair. It is 2i/D for the sine and for the
    cosine: the first pair has the exponent 0."""
    return paired(*waves(T, D, lambda i: (2 * i + 1) / D))


@sinusoidal_positions.mistake
def exponent_without_two_for_sines(T, D):
    """The exponents of sine and cosine differ: i/D for one, 2i/D for the other. Both features of a
    pair share the angle with 2i/D."""
    return paired(waves(T, D, lambda i: i / D)[0], waves(T, D)[1])


@sinusoidal_positions.mistake
def exponent_without_two_for_cosines(T, D):
    """The exponents of sine and cosine differ: 2i/D for the sine, i/D for the cosine. Both features
    of a pair share the angle with 2i/D."""
    return paired(waves(T, D)[0], waves(T, D, lambda i: i / D)[1])


@sinusoidal_positions.mistake
def exponent_over_width_minus_one(T, D):
    """The exponent is divided by D - 1. It is the width D itself: 2i/D."""
    return paired(*waves(T, D, lambda i: 2 * i / (D - 1)))


@sinusoidal_positions.mistake
def exponent_over_pairs_minus_one(T, D):
    """The exponent runs up to 1, i / (D/2 - 1), so that the last pair has the speed 1/10000 (as in
    some libraries). Divide by D: 2i/D."""
    return paired(*waves(T, D, lambda i: i / max(D / 2 - 1, 1)))


@sinusoidal_positions.mistake
def exponent_over_length(T, D):
    """The exponent is divided by T, the number of positions (the length), instead of the width D. A
    row must not depend on how many positions there are: 2i/D."""
    return paired(*waves(T, D, lambda i: 2 * i / T))


@sinusoidal_positions.mistake
def exponent_not_divided(T, D):
    """The exponent is 2i: it is not divided by the width D. Use 2i/D, which grows from 0 to nearly
    1."""
    return paired(*waves(T, D, lambda i: 2.0 * i))


@sinusoidal_positions.mistake
def exponent_whole_division(T, D):
    """The exponent is always 0, so that all pairs turn at the same speed: 2 * i // D (//, whole
    numbers) cuts it off, or it is missing. Use /: 2 * i / D."""
    return paired(*waves(T, D, lambda i: 0.0 * i))


@sinusoidal_positions.mistake
def exponent_inverted(T, D):
    """The exponent is upside down, D / 2i. It is 2i / D: twice the number of the pair, divided by
    the width."""
    with np.errstate(divide="ignore"):
        return paired(*waves(T, D, lambda i: D / (2 * i)))


@sinusoidal_positions.mistake
def multiplied_by_power(T, D):
    """The position is multiplied by 10000^(2i/D): the sign of the exponent is lost (a minus is
    missing), and later pairs turn faster instead of slower. Divide by it."""
    angle = places(T) / speeds(D)
    return turned(angle) if angle.max() < 300 else Untested()  # float32 rounds larger ones away


@sinusoidal_positions.mistake
def multiplied_by_power_doubled(T, D):
    """The position is multiplied by a power of 10000, with 2 twice in its exponent. Divide by
    10000^(2i/D), where i counts pairs: later pairs turn slower."""
    return paired(*waves(T, D, lambda i: -4 * i / D))


@sinusoidal_positions.mistake
def speeds_reversed(T, D):
    """The speeds run in the reversed order: the first pair is the slowest. The first pair turns
    fastest, by one radian per position, and later ones slower."""
    sines, cosines = waves(T, D)
    return paired(sines[:, ::-1], cosines[:, ::-1])


@sinusoidal_positions.mistake
def log10_in_exp(T, D):
    """exp undoes the natural logarithm, but log10 is used. In exp(-2i · log(10000) / D) the log is
    natural: np.log or math.log."""
    return paired(*waves(T, D, base=math.exp(math.log10(10_000))))


@sinusoidal_positions.mistake
def log2_in_exp(T, D):
    """exp undoes the natural logarithm, but log2 is used. In exp(-2i · log(10000) / D) the log is
    natural: np.log or math.log."""
    return paired(*waves(T, D, base=math.exp(math.log2(10_000))))


@sinusoidal_positions.mistake
def no_log_in_exp(T, D):
    """The logarithm is missing: exp(-2i / D) is a power of e. For a power of 10000 write
    10000 ** (2i / D), or exp with log(10000) in it."""
    return paired(*waves(T, D, base=math.e))


def other_base(base: float) -> None:
    """Register another constant in place of 10000."""

    def other(T, D):
        return paired(*waves(T, D, base=base))

    other.__name__ = f"base_{base}"
    other.__doc__ = f"The base is {base:,} instead of 10,000, the constant of the formula."
    sinusoidal_positions.mistake(other)


for base in (10, 1000, 100_000):
    other_base(base)


# ---- the angle


@sinusoidal_positions.mistake
def power_for_product(T, D):
    """The power is a product: 10000 · 2i/D. Raise 10000 to the power 2i/D, with **."""
    with np.errstate(all="ignore"):
        return turned(places(T) / (10000 * np.arange(0, D, 2) / D))


@sinusoidal_positions.mistake
def divided_then_multiplied(T, D):
    """The power is missing: pos / 10000 · 2i/D. Divide by 10000 to the power 2i/D:
    pos / 10000 ** (2i / D), with brackets around the exponent."""
    return turned(places(T) / 10000 * np.arange(0, D, 2) / D)


@sinusoidal_positions.mistake
def power_without_brackets(T, D):
    """10000 ** 2i / D is (10000 ** 2i) / D: the brackets around the exponent are missing. Write
    10000 ** (2 * i / D)."""
    return turned(places(T) / (10000.0 ** np.arange(0, D, 2) / D))


@sinusoidal_positions.mistake
def everything_to_the_power(T, D):
    """The position too is raised to the power: (pos / 10000)^(2i/D). Only 10000 is, and the
    position is divided by it: pos / (10000 ** (2i/D))."""
    return turned((places(T) / 10000) ** (np.arange(0, D, 2) / D))


@sinusoidal_positions.mistake
def angle_cut_to_whole_numbers(T, D):
    """The angle is cut to whole numbers: // instead of /. Divide the position with /."""
    return turned(places(T) // 10000 ** (np.arange(0, D, 2) / D))


@sinusoidal_positions.mistake
def position_divided_by_length(T, D):
    """The positions are divided by their number T, so a row depends on the length. Use the
    positions 0, 1, 2 … themselves."""
    return turned(places(T) / T * speeds(D))


@sinusoidal_positions.mistake
def position_divided_by_the_last(T, D):
    """The positions are divided by the last one, T - 1, so a row depends on the length. Use the
    positions 0, 1, 2 … themselves."""
    return turned(places(T) / max(T - 1, 1) * speeds(D))


@sinusoidal_positions.mistake
def whole_turns(T, D):
    """The angle is multiplied by 2π. The position counts radians, without any 2π:
    pos / 10000^(2i/D)."""
    return turned(2 * np.pi * places(T) * speeds(D))


@sinusoidal_positions.mistake
def times_pi(T, D):
    """The angle is multiplied by π. The position counts radians, without any π:
    pos / 10000^(2i/D)."""
    return turned(np.pi * places(T) * speeds(D))


@sinusoidal_positions.mistake
def degrees(T, D):
    """The angle is taken for degrees and converted. np.sin and np.cos want radians, and the angle
    of the formula is in radians: leave it as it is."""
    return turned(np.radians(places(T) * speeds(D)))


@sinusoidal_positions.mistake
def from_position_one(T, D):
    """The positions are counted from 1. The first is position 0, where each sine is 0 and each
    cosine 1: np.arange(T)."""
    return turned((places(T) + 1) * speeds(D))


@sinusoidal_positions.mistake
def positions_reversed(T, D):
    """The positions run backwards. The first row is position 0, where each sine is 0 and each
    cosine 1."""
    return turned(places(T) * speeds(D))[::-1]


@sinusoidal_positions.mistake
def negative_positions(T, D):
    """The sines have the wrong sign: there is a minus before the angle (the position) or the sine.
    The minus of exp(-…) belongs to the exponent only."""
    return turned(-places(T) * speeds(D))


@sinusoidal_positions.mistake
def every_second_position(T, D):
    """The positions are doubled, 0, 2, 4 …: the factor 2 belongs to i in the exponent 2i/D, not to
    the position."""
    return turned(2 * places(T) * speeds(D))


@sinusoidal_positions.mistake
def divided_outside_the_sine(T, D):
    """The division by 10000^(2i/D) is outside of sine and cosine. It belongs inside, to the angle:
    sin(pos / 10000^(2i/D))."""
    return turned(places(T) + 0 * speeds(D)) * np.repeat(speeds(D), 2)


# ---- sine and cosine


@sinusoidal_positions.mistake
def halves(T, D):
    """All sines stand before all cosines, in two halves. The formula alternates (interleaves) them
    pair by pair: sin, cos, sin, cos; even features [0::2] are sines, odd ones [1::2] cosines."""
    return np.concatenate(waves(T, D), axis=1)


@sinusoidal_positions.mistake
def halves_cosines_first(T, D):
    """All cosines stand before all sines, in two halves. The formula alternates (interleaves) them
    pair by pair, sines first: sin, cos, sin, cos."""
    return np.concatenate(waves(T, D)[::-1], axis=1)


@sinusoidal_positions.mistake
def cosines_first(T, D):
    """Sine and cosine are swapped: the even features (0, 2, 4 …) are sines, the odd ones cosines.
    The sine comes first."""
    return paired(*waves(T, D)[::-1])


@sinusoidal_positions.mistake
def only_sines(T, D):
    """Both features of a pair are sines. The odd features (2i + 1) are cosines of the same
    angle."""
    return paired(waves(T, D)[0], waves(T, D)[0])


@sinusoidal_positions.mistake
def only_cosines(T, D):
    """Both features of a pair are cosines. The even features (2i) are sines of the same angle."""
    return paired(waves(T, D)[1], waves(T, D)[1])


@sinusoidal_positions.mistake
def sine_of_every_feature(T, D):
    """Every feature j is a sine, with a speed of its own. The features form pairs that share one
    angle: sine at 2i, cosine at 2i + 1."""
    return np.sin(places(T) / 10000 ** (np.arange(D) / D))


@sinusoidal_positions.mistake
def cosines_left_out(T, D):
    """The odd features stay 0: the cosines are missing. table[:, 1::2] holds the cosines of the
    same angles."""
    sines, _ = waves(T, D)
    return paired(sines, 0 * sines)


@sinusoidal_positions.mistake
def sines_left_out(T, D):
    """The even features stay 0: the sines are missing. table[:, 0::2] holds the sines of the same
    angles."""
    _, cosines = waves(T, D)
    return paired(0 * cosines, cosines)


@sinusoidal_positions.mistake
def sines_by_position(T, D):
    """Even positions (rows) are sines and odd ones cosines. The feature (column) decides, not the
    row: even features are sines, odd ones cosines, in every row."""
    j = np.arange(D)
    angle = places(T) / 10000 ** ((j - j % 2) / D)
    return np.where(places(T) % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def sines_by_pair(T, D):
    """Sine and cosine alternate pair by pair, not feature by feature: i is even or odd, not the
    feature j. Every pair has both: sine at 2i, cosine at 2i + 1."""
    j = np.arange(D)
    angle = places(T) / 10000 ** ((j - j % 2) / D)
    return np.where(j // 2 % 2 == 0, np.sin(angle), np.cos(angle))


@sinusoidal_positions.mistake
def tangents(T, D):
    """The odd features are tangents. They are cosines, np.cos, of the same angle."""
    return paired(waves(T, D)[0], np.tan(places(T) * speeds(D)))


@sinusoidal_positions.mistake
def minus_cosine(T, D):
    """The cosines have the wrong sign: sin(a - π/2) is -cos a. Shift by plus π/2."""
    sines, cosines = waves(T, D)
    return paired(sines, -cosines)


@sinusoidal_positions.mistake
def shifted_by_pi(T, D):
    """The shift is π, which gives -sin a. A cosine is a quarter of a turn ahead: π/2."""
    sines, _ = waves(T, D)
    return paired(sines, -sines)


@sinusoidal_positions.mistake
def shifted_by_one(T, D):
    """The odd features are sin(a + 1): the shift is one radian. A cosine is a quarter of a turn
    ahead: π/2."""
    return paired(waves(T, D)[0], np.sin(places(T) * speeds(D) + 1))


@sinusoidal_positions.mistake
def shifted_before_the_division(T, D):
    """The quarter of a turn is added to the position, before the division. Add π/2 to the angle:
    sin(pos / 10000^(2i/D) + π/2)."""
    return paired(waves(T, D)[0], np.sin((places(T) + np.pi / 2) * speeds(D)))


@sinusoidal_positions.mistake
def shift_grows_with_the_feature(T, D):
    """The shift grows with the feature, j · π/2. Only odd features are shifted, all by π/2:
    j % 2 * np.pi / 2."""
    j = np.arange(D)
    return np.sin(places(T) * np.repeat(speeds(D), 2) + j * np.pi / 2)


# ---- the table


@sinusoidal_positions.mistake
def table_transposed(T, D):
    """The table is transposed, (D, T). Rows are positions, columns are features: (T, D)."""
    return paired(*waves(T, D)).T


@sinusoidal_positions.mistake
def T_and_D_swapped(T, D):
    """T and D are swapped: this is the table of D positions with T features. T counts positions,
    the rows, and D features, the columns."""
    return paired(*waves(D, T)) if T % 2 == 0 else np.zeros((D, T))


@sinusoidal_positions.mistake
def one_row_for_all(T, D):
    """All positions get the same row, that of the last: is the loop over positions right? Row pos
    uses its own pos."""
    return np.repeat(paired(*waves(T, D))[-1:], T, axis=0)


@sinusoidal_positions.mistake
def one_position_only(T, D):
    """Only one row is returned, that of position T. The table has a row for each position 0 …
    T - 1: np.arange(T)[:, None]."""
    return turned(T * speeds(D)[None])[0]


@sinusoidal_positions.mistake
def last_row_missing(T, D):
    """The last row stays 0: the loop over the positions stops one too early. Use range(T)."""
    return np.concatenate([paired(*waves(T, D))[:-1], np.zeros((1, D))])


@sinusoidal_positions.mistake
def first_row_missing(T, D):
    """The first row stays 0: the loop over the positions starts at 1. At position 0 each sine is 0,
    but each cosine 1: use range(T)."""
    return np.concatenate([np.zeros((1, D)), paired(*waves(T, D))[1:]])


@sinusoidal_positions.mistake
def last_pair_missing(T, D):
    """The last pair of features stays 0: the loop over the pairs stops one too early. There are
    D // 2 pairs: range(D // 2), or range(0, D, 2)."""
    table = paired(*waves(T, D))
    table[:, -2:] = 0
    return table


@sinusoidal_positions.mistake
def second_half_missing(T, D):
    """The second half of the features stays 0: the loop ends at D // 2 in steps of 2. Count either
    pairs, range(D // 2), with columns 2i and 2i + 1, or features, range(0, D, 2)."""
    table = paired(*waves(T, D))
    table[:, (D // 2 + 1) // 2 * 2 :] = 0
    return table


@sinusoidal_positions.mistake
def columns_overwritten(T, D):
    """The pairs overlap: sine in column i, cosine in column i + 1, so the next pair overwrites the
    cosine. Pair i fills the columns 2i and 2i + 1."""
    sines, cosines = waves(T, D)
    table = np.zeros((T, D))
    table[:, : D // 2] = sines
    table[:, D // 2] = cosines[:, -1]
    return table


@sinusoidal_positions.mistake
def two_tables(T, D):
    """Sines and cosines stay apart, on an axis of their own: (T, D/2, 2). Lay the pairs out in one
    row of D features, with reshape."""
    return np.stack(waves(T, D), axis=-1)


@sinusoidal_positions.mistake
def whole_numbers_only(T, D):
    """The table holds whole numbers, so the decimals are cut off: its dtype is int. Make it of
    floats, np.zeros((T, D))."""
    return paired(*waves(T, D)).astype(int)


@sinusoidal_positions.mistake
def rounded(T, D):
    """The numbers are rounded. Keep all decimals: later rows and pairs differ only in them."""
    return paired(*waves(T, D)).round(2)


@sinusoidal_positions.mistake
def divided_by_root_of_width(T, D):
    """The table is divided by √D. That belongs to attention scores; here a sine is a sine, between
    -1 and 1."""
    return paired(*waves(T, D)) / D**0.5


@sinusoidal_positions.mistake
def division_by_width_outside(T, D):
    """D divides the angle, not the exponent: the brackets around 2i / D are missing. Write
    pos / 10000 ** (2 * i / D)."""
    return turned(places(T) / 10000.0 ** np.arange(0, D, 2) / D)


@sinusoidal_positions.mistake
def width_inside_the_log(T, D):
    """D stands inside the logarithm, log(10000 / D). Divide after it: exp(-2i · log(10000) / D)."""
    return turned(places(T) * np.exp(-np.arange(0, D, 2) * math.log(10_000 / D)))


@sinusoidal_positions.mistake
def quarter_turn_in_degrees(T, D):
    """The quarter of a turn is added as 90 degrees. np.sin counts in radians: π/2, np.pi / 2."""
    even = np.arange(D) // 2 * 2
    return np.sin(places(T) / 10_000 ** (even / D) + np.arange(D) % 2 * 90)


@sinusoidal_positions.mistake
def positions_not_a_column_for_all_features(T, D):
    """The positions must be a column, so that each meets all D speeds: np.arange(T)[:, None],
    (T, 1), broadcasts with (D,) to (T, D). Without the new axis it fails, or positions and features
    are paired off."""
    even = np.arange(D) // 2 * 2
    return np.sin(np.arange(T) / 10_000 ** (even / D) + np.arange(D) % 2 * np.pi / 2)


@sinusoidal_positions.mistake
def positions_not_a_column(T, D):
    """The positions must be a column, so that each meets all D/2 speeds: np.arange(T)[:, None],
    (T, 1), broadcasts with (D/2,) to (T, D/2). Without the new axis it fails for all but one
    position."""
    if T > 1:
        raise ValueError("operands could not be broadcast together")
    return paired(*waves(T, D))


@sinusoidal_positions.mistake
def returned_after_the_first_row(T, D):
    """Only the first row is filled: the return stands inside the loop over the positions. Indent it
    less, so that it comes after the loop."""
    filled = paired(*waves(T, D))
    filled[1:] = 0
    return filled


@sinusoidal_positions.mistake
def returned_after_the_first_pair(T, D):
    """Only the first pair of the first row is filled: the return stands inside the loops. Indent it
    less, so that it comes after both loops."""
    return np.eye(T, D, 1) * (places(T) == 0)


@sinusoidal_positions.mistake
def multiplied_by_root_of_width(T, D):
    """The table is multiplied by √D. That belongs to the words; here a sine is a sine, between -1
    and 1."""
    return paired(*waves(T, D)) * D**0.5


@sinusoidal_positions.mistake
def squares(T, D):
    """The sines and cosines are squared. Use them as they are, between -1 and 1."""
    return paired(*waves(T, D)) ** 2


@sinusoidal_positions.mistake
def shifted_to_zero_and_one(T, D):
    """The numbers are moved to lie between 0 and 1. Use sine and cosine as they are, between -1 and
    1."""
    return (paired(*waves(T, D)) + 1) / 2


@sinusoidal_positions.mistake
def positions_themselves(T, D):
    """Sine and cosine are missing: the table holds the angles. Take np.sin of them for even
    features, np.cos for odd ones."""
    angle = places(T) * speeds(D)
    return paired(angle, angle)


# ---------------------------------------------------------------- add_positions

add_positions = Exercise(
    reference.add_positions,
    notebook="09",
    level=1,
    minutes=5,
    task="Add the table of positions to a sentence, to a batch of sentences, or to a batch of "
    "batches, without a loop. x itself must stay as it was.",
    hints=(
        "Which two axes of x hold the tokens and the features, however many come before?",
        "x.shape[-2:] gives T and D, counted from the end. Broadcasting adds a (T, D) table to "
        "every item of the batch.",
        "`return x + sinusoidal_positions(*x.shape[-2:])`",
    ),
)
add_positions.probe("a sentence of three one-hot words", np.eye(4)[:3])
add_positions.probe("a batch of two sentences", normal(2, 3, 4))
add_positions.probe("a sentence of five tokens", normal(5, 6))
add_positions.probe("one sentence as a batch", normal(1, 5, 6))
add_positions.probe("as many sentences as tokens", normal(4, 4, 6))
add_positions.probe("as many sentences as features", normal(6, 4, 6))
add_positions.probe("as many tokens as features", normal(2, 6, 6))
add_positions.probe("a batch of batches", normal(2, 3, 4, 10))
add_positions.probe("forty tokens", normal(40, 16) / 4)
add_positions.probe("a batch of batches, as many as tokens", normal(4, 4, 4, 6))


def table(x: np.ndarray, step: int = 0) -> np.ndarray:
    """The positions for x, (T, D), counted from `step`."""
    return reference.sinusoidal_positions(x.shape[-2] + step, x.shape[-1])[step:]


@add_positions.mistake
def nothing_added(x):
    """Nothing is added: x comes back as it was. Return x + the table of positions."""
    return x


@add_positions.mistake
def positions_alone(x):
    """Only the positions are returned, for every sentence the same: the words are lost. Add the
    table to x: x + positions."""
    return np.zeros(x.shape) + table(x)


@add_positions.mistake
def table_alone(x):
    """Only the table of positions is returned, (T, D): the words are lost. Add it to x:
    x + positions."""
    return table(x)


@add_positions.mistake
def concatenated(x):
    """The positions are put next to the words (concatenated), so the width doubles. They are added:
    x + positions, of the same width."""
    return np.concatenate([x, np.broadcast_to(table(x), x.shape)], axis=-1)


@add_positions.mistake
def concatenated_before(x):
    """The positions are put next to the words, before them (concatenated), so the width doubles.
    They are added: x + positions, of the same width."""
    return np.concatenate([np.broadcast_to(table(x), x.shape), x], axis=-1)


@add_positions.mistake
def concatenated_below(x):
    """The positions are put below the words (concatenated along the tokens), so the length doubles.
    They are added: x + positions, of the same shape."""
    return np.concatenate([x, np.broadcast_to(table(x), x.shape)], axis=-2)


@add_positions.mistake
def multiplied(x):
    """Words and positions are multiplied: the sine 0 of the first position erases features. Add
    them: x + positions."""
    return x * table(x)


@add_positions.mistake
def subtracted(x):
    """The positions are subtracted. Add them: x + positions."""
    return x - table(x)


@add_positions.mistake
def subtracted_from(x):
    """The words are subtracted from the positions. Add both: x + positions."""
    return table(x) - x


@add_positions.mistake
def matrix_product(x):
    """A matrix product (@) of words and positions instead of a sum. Add them, number by number:
    x + positions."""
    return x @ table(x).T


@add_positions.mistake
def averaged(x):
    """The sum is halved: an average of words and positions. Add them: x + positions."""
    return (x + table(x)) / 2


@add_positions.mistake
def added_twice(x):
    """The positions are added twice. Add the table once: x + positions."""
    return x + 2 * table(x)


@add_positions.mistake
def words_scaled_by_root(x):
    """The words are multiplied by √D first. The paper does that in the embedding; here only the
    positions are added: x + positions."""
    return x * x.shape[-1] ** 0.5 + table(x)


@add_positions.mistake
def positions_divided_by_root(x):
    """The positions are divided by √D. Add them as they are: x + positions."""
    return x + table(x) / x.shape[-1] ** 0.5


@add_positions.mistake
def positions_multiplied_by_root(x):
    """The positions are multiplied by √D. Add them as they are: x + positions."""
    return x + table(x) * x.shape[-1] ** 0.5


@add_positions.mistake
def everything_divided_by_root(x):
    """The sum is divided by √D. Return it as it is: x + positions."""
    return (x + table(x)) / x.shape[-1] ** 0.5


@add_positions.mistake
def words_normalised(x):
    """The sum is normalised to mean 0 and spread 1. That comes later, in add & norm: return
    x + positions."""
    y = x + table(x)
    return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)


@add_positions.mistake
def counted_from_one(x):
    """The positions are counted from 1: the table starts one row too late. The first token stands
    at position 0."""
    return x + table(x, 1)


@add_positions.mistake
def counted_backwards(x):
    """The positions run backwards, from the last token. The first token stands at position 0."""
    return x + table(x)[::-1]


@add_positions.mistake
def first_axis_counts(x):
    """The first axis is taken for the tokens, x.shape[0], but in a batch it counts the sentences:
    every token of a sentence gets the same position. The tokens are the axis before the last,
    x.shape[-2]."""
    first = reference.sinusoidal_positions(x.shape[0], x.shape[-1])
    return x + first.reshape(-1, *[1] * (x.ndim - 2), x.shape[-1])


@add_positions.mistake
def first_axis_counts_and_broadcasts(x):
    """The length is taken from the first axis, x.shape[0] (or len(x)), which in a batch counts the
    sentences. The tokens are the axis before the last, x.shape[-2]."""
    return x + reference.sinusoidal_positions(x.shape[0], x.shape[-1])


@add_positions.mistake
def second_axis_counts(x):
    """The length is taken from x.shape[1], which is the number of tokens only in a batch with three
    axes. Count from the end: x.shape[-2], and x.shape[-1] for the width."""
    return x + reference.sinusoidal_positions(x.shape[1], x.shape[-1])


@add_positions.mistake
def batches_only(x):
    """It works only for a batch with three axes, (B, T, D). There may be no batch axis, or more
    than one: take T and D from the last two axes, x.shape[-2:]."""
    _, T, D = x.shape
    return x + reference.sinusoidal_positions(T, D)


@add_positions.mistake
def one_sentence_only(x):
    """It works only for one sentence, (T, D): a batch has axes before these. Take T and D from the
    last two axes, x.shape[-2:]."""
    T, D = x.shape
    return x + reference.sinusoidal_positions(T, D)


@add_positions.mistake
def one_row_for_all_tokens(x):
    """Every token gets the same position, the first, so the order stays unknown. Each token gets
    the row of its own position: add the whole table (T, D)."""
    return x + table(x)[0]


@add_positions.mistake
def last_row_for_all_tokens(x):
    """Every token gets the same position, the last, so the order stays unknown. Each token gets the
    row of its own position: add the whole table (T, D)."""
    return x + table(x)[-1]


@add_positions.mistake
def row_number_T_for_all_tokens(x):
    """Every token gets the same vector, that of position T. Each token gets the row of its own
    position, 0 … T - 1: add the whole table (T, D)."""
    return x + table(x, 1)[-1]


@add_positions.mistake
def only_the_first_sentence(x):
    """Only the first sentence gets positions. The same table is added to every item of the batch:
    x + positions broadcasts."""
    y = np.array(x)
    y.reshape(-1, *x.shape[-2:])[0] += table(x).astype(x.dtype)
    return y


@add_positions.mistake
def counting_on_through_the_batch(x):
    """The positions go on counting from one sentence to the next. Each sentence starts at position
    0: the same table for every item of the batch."""
    flat = x.reshape(-1, x.shape[-1])
    return (flat + table(flat)).reshape(x.shape)


@add_positions.mistake
def axis_added_to_the_table(x):
    """The table gets its new axis in the wrong place, [:, None]: it then counts the sentences. A
    (T, D) table broadcasts over the batch as it is, or with [None] in front."""
    return x + table(x)[:, None]


@add_positions.mistake
def batch_axis_always_added(x):
    """A sentence without a batch axis gains one: (1, T, D). The result has the shape of x; the
    table (T, D) broadcasts without a new axis."""
    return x + table(x)[None]


@add_positions.mistake
def axis_for_a_batch_of_one(x):
    """An axis is added in front of x itself: the result has one axis more than x. Keep its shape:
    x + positions."""
    return (x + table(x))[None]


@add_positions.mistake
def counters_added(x):
    """The position itself, 0, 1, 2 …, is added to every feature, and drowns the words. Add the
    table of sines and cosines, sinusoidal_positions(T, D)."""
    return x + np.arange(x.shape[-2])[:, None]


@add_positions.mistake
def positions_of_features(x):
    """Tokens and features are swapped: the positions count the features. Rows of the table are
    tokens, columns features: sinusoidal_positions(T, D), in this order."""
    T, D = x.shape[-2:]
    return x + (reference.sinusoidal_positions(D, T).T if T % 2 == 0 else np.zeros((D, D)))


@add_positions.mistake
def table_in_halves(x):
    """The table that is added has all sines first, then all cosines. They alternate (interleave):
    sin, cos, sin, cos."""
    return x + np.concatenate(waves(*x.shape[-2:]), axis=1)


@add_positions.mistake
def table_with_cosines_first(x):
    """Sine and cosine are swapped in the table that is added: even features are sines, odd ones
    cosines."""
    return x + paired(*waves(*x.shape[-2:])[::-1])


@add_positions.mistake
def only_sines_added(x):
    """Only the sines reach x: the odd features stay as they were. Add the whole table, sines and
    cosines."""
    return x + table(x) * (np.arange(x.shape[-1]) % 2 == 0)


@add_positions.mistake
def sentences_after_the_first_lost(x):
    """Only the first sentence is used, x[0]. Keep the batch: the same table is added to every
    sentence, x + positions."""
    return x[0] + table(x)


@add_positions.mistake
def concatenated_without_a_batch(x):
    """The positions are put next to the words (np.concatenate), so the width doubles, and with a
    batch it fails. They are added: x + positions, of the same width."""
    return np.concatenate([x, table(x)], axis=-1)


@add_positions.mistake
def concatenated_below_without_a_batch(x):
    """The positions are put below the words (np.concatenate), so the length doubles, and with a
    batch it fails. They are added: x + positions, of the same shape."""
    return np.concatenate([x, table(x)], axis=-2)


@add_positions.mistake
def first_axis_counts_with_new_axis(x):
    """The first axis is taken for the tokens, x.shape[0], and the table gets a new axis, [:, None]:
    in a batch the first axis counts the sentences. The tokens are the axis before the last,
    x.shape[-2], and the table needs no new axis."""
    return x + reference.sinusoidal_positions(x.shape[0], x.shape[-1])[:, None]


@add_positions.mistake
def length_and_width_swapped(x):
    """T and D are swapped in the call: sinusoidal_positions(T, D) wants the number of tokens first,
    x.shape[-2], then the width, x.shape[-1]."""
    return x + reference.sinusoidal_positions(x.shape[-1], x.shape[-2])


@add_positions.mistake
def loop_takes_tokens_for_sentences(x):
    """The loop over the first axis takes the tokens of a single sentence for sentences. There may
    be no batch axis: x + positions needs no loop, as the table broadcasts."""
    return np.stack([item + table(x) for item in x])


@add_positions.mistake
def fails_without_a_batch(x):
    """It fails for a single sentence, (T, D): the first axis need not be a batch. x + positions
    needs no loop and no index, as the table broadcasts."""
    if x.ndim < 3:
        raise ValueError("no batch axis")
    return x + table(x)


@add_positions.mistake
def features_counted(x):
    """The number of each feature is added, np.arange(D), the same for every token. Add the table of
    sines and cosines, sinusoidal_positions(T, D)."""
    return x + np.arange(x.shape[-1])


@add_positions.mistake
def added_in_place(x):
    """The positions are added in place (x += …), so the caller's x is changed. Make a new array:
    return x + positions."""
    x += table(x)
    return x


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
    "starts late, and a piece of a long text goes on at 100. The positions may come in a batch.",
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
at_places.probe("positions in another order, one of them twice", np.array([7, 0, 3, 3, 1]), 6)
at_places.probe("two sentences, one padded on the left", np.array([[0, 1, 2, 3], [0, 0, 0, 1]]), 6)
at_places.probe("as many sentences as tokens", np.array([[2, 0, 9], [4, 5, 6], [1, 1, 3]]), 4)
at_places.probe("a batch of batches", rng.integers(0, 40, size=(2, 3, 4)), 10)
at_places.probe("one position", np.array([37]), 8)


def rows(positions: np.ndarray, D: int) -> np.ndarray:
    """The right rows, for mistakes that look up the wrong positions."""
    return reference.sinusoidal_positions(200, D)[positions]


@at_places.mistake
def positions_not_used(positions, D):
    """The positions are not used: it counts 0, 1, 2 … itself (np.arange). Row t belongs to
    positions[t]."""
    return np.zeros((*positions.shape, D)) + rows(np.arange(positions.shape[-1]), D)


@at_places.mistake
def one_table_for_all(positions, D):
    """The positions are not used: the table of 0, 1, 2 … comes back, (T, D), without their batch.
    Row t belongs to positions[..., t], and the result is (…, T, D)."""
    return rows(np.arange(positions.shape[-1]), D)


@at_places.mistake
def table_too_short(positions, D):
    """The rows are looked up in a table of only T rows, but positions may be larger: a piece may
    start at 5. Make the table for positions.max() + 1, or put the positions into the formula."""
    return reference.sinusoidal_positions(positions.shape[-1], D)[positions]


@at_places.mistake
def table_as_long_as_the_first_axis(positions, D):
    """The rows are looked up in a table of len(positions) rows, but positions may be larger: a
    piece may start at 5. Make the table for positions.max() + 1."""
    return reference.sinusoidal_positions(len(positions), D)[positions]


@at_places.mistake
def table_one_row_too_short(positions, D):
    """The table has positions.max() rows, 0 to max - 1: the row of the largest position is missing.
    Make it for positions.max() + 1."""
    return reference.sinusoidal_positions(positions.max(), D)[positions]


@at_places.mistake
def positions_without_a_new_axis(positions, D):
    """The positions need an axis for the features, so that each meets all speeds:
    positions[..., None], (…, T, 1). Without the new axis it fails, or positions and features are
    paired off."""
    even = np.arange(D) // 2 * 2
    return np.sin(positions / 10_000 ** (even / D) + np.arange(D) % 2 * np.pi / 2)


@at_places.mistake
def one_row_of_positions_only(positions, D):
    """It works only for one row of positions, (T,): [:, None] or a reshape to (T, D) loses the
    batch. Use positions[..., None], and reshape to (*positions.shape, D)."""
    if positions.ndim > 1:
        raise ValueError("operands could not be broadcast together")
    return rows(positions, D)


@at_places.mistake
def counted_from_the_first(positions, D):
    """The first of the positions is subtracted, so that each sentence starts at 0. Use the
    positions as they are: a piece may start at 5."""
    return positions_at(positions - positions[..., :1], D)


@at_places.mistake
def counted_from_the_smallest(positions, D):
    """The smallest of the positions is subtracted. Use them as they are: a piece may start at 5."""
    return positions_at(positions - positions.min(), D)


@at_places.mistake
def one_too_far(positions, D):
    """Every position is one too far: 1 is added. Position 0 has each sine 0 and each cosine 1."""
    return rows(positions + 1, D)


@at_places.mistake
def sorted_first(positions, D):
    """The positions are sorted first. Keep their order: row t belongs to positions[t]."""
    return rows(np.sort(positions), D)


@at_places.mistake
def only_different_ones(positions, D):
    """Positions that come twice are given once (np.unique). Keep every one, and their order: row t
    belongs to positions[t]."""
    return rows(np.unique(positions), D)


@at_places.mistake
def all_in_one_row(positions, D):
    """The batch is flattened: all positions stand on one axis. Keep its axes: (…, T) becomes
    (…, T, D)."""
    return rows(positions.reshape(-1), D)


@at_places.mistake
def first_sentence_for_all(positions, D):
    """Every sentence gets the positions of the first. Each has its own: use positions[..., None],
    without an index for the batch."""
    first = positions.reshape(-1, positions.shape[-1])[0]
    return np.zeros((*positions.shape, D)) + rows(first, D)


@at_places.mistake
def divided_by_the_largest(positions, D):
    """The positions are divided by the largest. Use them as they are, in radians."""
    angle = positions[..., None] / max(positions.max(), 1) * speeds(D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)


@at_places.mistake
def sines_then_cosines(positions, D):
    """All sines stand before all cosines (concatenate, in halves). They alternate, pair by pair:
    stack sine and cosine on a new last axis, then reshape."""
    angle = positions[..., None] * speeds(D)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


@at_places.mistake
def cosine_before_sine(positions, D):
    """Sine and cosine are swapped: even features are sines, odd ones cosines."""
    angle = positions[..., None] * speeds(D)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(*positions.shape, D)


@at_places.mistake
def reshaped_in_the_wrong_order(positions, D):
    """Sine and cosine are stacked before the positions, so the reshape mixes the rows. Stack them
    on a new last axis, axis=-1, then reshape."""
    angle = positions[..., None] * speeds(D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-3).reshape(*positions.shape, D)


@at_places.mistake
def pairs_on_an_axis(positions, D):
    """Sine and cosine stay on an axis of their own, (…, T, D/2, 2). Merge it with the pairs by a
    reshape: (…, T, D)."""
    angle = positions[..., None] * speeds(D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)


@at_places.mistake
def each_feature_its_speed(positions, D):
    """Each feature has a speed of its own, with the exponent j/D. Both features of a pair share one
    angle: exponent 2i/D."""
    j = np.arange(D)
    angle = positions[..., None] / 10000 ** (j / D)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))


@at_places.mistake
def speeds_of_half_exponent(positions, D):
    """The exponent is i/D instead of 2i/D: a factor 2 is missing. Use np.arange(0, D, 2) / D."""
    angle = positions[..., None] / 10000 ** (np.arange(D // 2) / D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)


@at_places.mistake
def speeds_of_doubled_exponent(positions, D):
    """The exponent is doubled, 4i/D: np.arange(0, D, 2) is the 2i already. Divide it by D."""
    angle = positions[..., None] / 10000 ** (2 * np.arange(0, D, 2) / D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)


@at_places.mistake
def times_the_power(positions, D):
    """The positions are multiplied by 10000^(2i/D): a minus is missing. Divide by it, so that later
    pairs turn slower."""
    angle = positions[..., None] / speeds(D)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)


@at_places.mistake
def features_before_positions(positions, D):
    """The result is (…, D, T), transposed. The features are the last axis: (…, T, D)."""
    return rows(positions, D).swapaxes(-1, -2)


@at_places.mistake
def padded_places_get_zeros(positions, D):
    """The rows of position 0 are zeros. Position 0 has each sine 0, but each cosine 1; padding is
    the business of the mask."""
    return rows(positions, D) * (positions != 0)[..., None]
