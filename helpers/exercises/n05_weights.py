"""Notebook 05: from scores to weights, and from weights to the context."""

import functools
import inspect
import math
from collections.abc import Callable

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def turned(x: np.ndarray) -> np.ndarray:
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def exp(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    """Exponentials of the numbers less the largest along an axis."""
    x = np.asarray(x)
    return np.exp(x - x.max(axis=axis, keepdims=True))


# ---------------------------------------------------------------- softmax

softmax = Exercise(
    reference.softmax,
    notebook="05",
    level=2,
    minutes=10,
    task="Turn numbers into weights that sum to one along any axis, the last by default. Whole "
    "numbers are allowed, and numbers of ±1,000 must not overflow.",
    hints=(
        "What does np.exp(1000) give, and what changes when you subtract the same number from all "
        "scores of a row?",
        "Subtract the largest number along the axis, take exp, divide by the sum along the axis. "
        "keepdims=True keeps the axis, so that the division lines up.",
        "`e = np.exp(x - x.max(axis=axis, keepdims=True))`, then `return e / e.sum(axis=axis, "
        "keepdims=True)`",
    ),
)
TABLES = (
    ("three scores", np.array([1.0, 2.0, 3.0]), {}),
    ("two rows of three scores", np.array([[1.0, 2.0, 3.0], [1.0, 0.0, -1.0]]), {}),
    ("whole numbers", np.array([[1, 2, 3], [3, 1, 0]]), {}),
    ("the columns, axis=0", normal(3, 4), {"axis": 0}),
    ("a square", normal(4, 4), {}),
    ("a batch of two", normal(2, 3, 4), {}),
    ("the middle axis of a batch", normal(2, 3, 4), {"axis": 1}),
    ("the first axis of a batch, all axes of length 3", normal(3, 3, 3), {"axis": 0}),
    ("sentences, heads, queries and keys", normal(2, 2, 2, 2), {}),
    (
        "scores around ±1,000",
        np.array([[1000.0, 1001.0, 1002.0], [-1000.0, -1001.0, -1002.0]]),
        {},
    ),
    (
        "rows from -1,000 to 1,000",
        np.array([[1000.0, -1000.0, -1000.0, -1000.0], [-1000.0, 999.0, 1000.0, -1000.0]]),
        {},
    ),
    ("scores around 600", np.array([[600.0, 601.0, 599.0], [1.0, -600.0, 0.0]]), {}),
    ("one score far below", np.array([[0.0, 1.0, -1000.0], [-1000.0, 1.0, 0.0]]), {}),
    ("rows far apart", np.array([[0.0, 1.0], [900.0, 901.0]]), {}),
)
for label, x, axis in TABLES:
    softmax.probe(label, x, **axis)

OVERFLOW = "And subtract the largest number of each row before np.exp, or large ones overflow."


def shifted_or_not(wrong: Callable) -> Callable:
    """Register what goes wrong after exp twice: with the largest number subtracted, and without."""

    @functools.wraps(wrong)
    def with_shift(x, axis=-1):
        return wrong(exp(x, axis), axis)

    def without_shift(x, axis=-1):
        return wrong(np.exp(x), axis)

    without_shift.__name__ = f"{wrong.__name__}_and_overflows"
    without_shift.__doc__ = f"{wrong.__doc__} {OVERFLOW}"
    softmax.mistake(with_shift)
    softmax.mistake(without_shift)
    return wrong


@softmax.mistake
def overflows(x, axis=-1):
    """exp overflows to inf for large scores, and inf / inf is nan. Subtract the largest score, the
    max of each row, before exp: the result stays the same."""
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def one_maximum_for_everything(x, axis=-1):
    """One maximum of the whole array is subtracted, so rows far below it underflow to 0 / 0 = nan.
    Take the max of each row: axis=axis, keepdims=True."""
    e = exp(x, axis=None)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def overflows_beside_a_small_number(x, axis=-1):
    """A small number (eps) is added to the sum, which avoids 0 / 0 and not inf / inf = nan: exp
    overflows. Subtract the largest score, the max of each row, before exp, and leave eps out."""
    e = np.exp(x)
    return e / (e.sum(axis=axis, keepdims=True) + 1e-8)


@softmax.mistake
def one_maximum_and_a_small_number(x, axis=-1):
    """One maximum of the whole array is subtracted, and a small number (eps) added to the sum, so
    rows far below it underflow to weights of 0. Take the max of each row: axis=axis,
    keepdims=True."""
    e = exp(x, axis=None)
    return e / (e.sum(axis=axis, keepdims=True) + 1e-8)


@softmax.mistake
def maximum_along_another_axis(x, axis=-1):
    """The maximum runs along another axis than the sum, so the numbers of one row are shifted
    differently. Take both along the same axis: axis=axis."""
    x = np.asarray(x)
    last = axis % x.ndim == x.ndim - 1
    e = exp(x, -2 if last and x.ndim > 1 else -1)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def maximum_along_axis_0(x, axis=-1):
    """The maximum is taken along axis 0 whatever `axis` says, so the numbers of one row are shifted
    differently. Take max and sum along the same axis: axis=axis."""
    e = exp(x, 0)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def maximum_always_along_the_last_axis(x, axis=-1):
    """The maximum is always taken along the last axis, the sum along `axis`. Take both along the
    same axis: axis=axis."""
    e = exp(x, -1)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def sum_always_along_the_last_axis(x, axis=-1):
    """The sum always runs along the last axis, the maximum along `axis`. Take both along the same
    axis: axis=axis."""
    e = exp(x, axis)
    return e / e.sum(axis=-1, keepdims=True)


@softmax.mistake
def sum_along_axis_0(x, axis=-1):
    """The sum runs along axis 0 whatever `axis` says, so the columns sum to 1 instead of the rows.
    Take maximum and sum along the axis argument, the last axis by default."""
    e = exp(x, axis)
    return e / e.sum(axis=0, keepdims=True)


@softmax.mistake
def always_axis_0(x, axis=-1):
    """The axis argument is ignored: it always works along axis 0, so the columns sum to 1 instead
    of the rows. Take maximum and sum along axis=axis, the last axis by default."""
    return reference.softmax(x, 0)


@softmax.mistake
def always_axis_0_and_overflows(x, axis=-1):
    """The axis argument is ignored: it always works along axis 0, so the columns sum to 1 instead
    of the rows. Sum along axis=axis. And subtract the largest number before np.exp, or it
    overflows."""
    e = np.exp(x)
    return e / e.sum(axis=0, keepdims=True)


@softmax.mistake
def always_the_last_axis(x, axis=-1):
    """The axis argument is ignored: it always works along the last axis, and axis=0 changes
    nothing. Take maximum and sum along axis=axis."""
    return reference.softmax(x)


@softmax.mistake
def always_the_last_axis_and_overflows(x, axis=-1):
    """The axis argument is ignored: it always works along the last axis. Sum along axis=axis. And
    subtract the largest number before np.exp, or it overflows."""
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


@softmax.mistake
def always_axis_1(x, axis=-1):
    """The axis argument is ignored: it always works along axis 1, the last axis only of a table
    without a batch. Take maximum and sum along axis=axis."""
    return reference.softmax(x, 1)


@softmax.mistake
def always_axis_1_and_overflows(x, axis=-1):
    """The axis argument is ignored: it always works along axis 1, the last axis only of a table
    without a batch. Sum along axis=axis. And subtract the largest number before np.exp, or it
    overflows."""
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


@softmax.mistake
def entries_of_the_first_axis(x, axis=-1):
    """A loop over x takes the entries of its first axis, each as one row, whatever `axis` is: right
    for a table only. Take max and sum along axis=axis with keepdims=True, without a loop."""
    return np.array([exp(row, None) / exp(row, None).sum() for row in x])


@softmax.mistake
def entries_of_the_first_axis_and_overflows(x, axis=-1):
    """A loop over x takes the entries of its first axis, each as one row, whatever `axis` is: right
    for a table only. Sum along axis=axis, keepdims=True. And subtract the largest number before
    np.exp, or it overflows."""
    return np.array([np.exp(row) / np.exp(row).sum() for row in x])


@softmax.mistake
def default_is_axis_0(x, axis=0):
    """Without an axis argument it works along axis 0, so the columns sum to 1. The default must be
    the last axis: axis=-1."""
    return reference.softmax(x, axis)


@softmax.mistake
def rows_and_columns_exchanged(x, axis=-1):
    """It works along the wrong axis, the neighbour of the one asked for: the columns sum to 1
    instead of the rows. Take maximum and sum along axis=axis, the last by default."""
    x = np.asarray(x)
    last = axis % x.ndim == x.ndim - 1
    return reference.softmax(x, -2 if last else -1)


@shifted_or_not
def one_sum_for_everything(e, axis):
    """All entries of the whole array together sum to 1: the axis is missing in the sum. Each row
    needs its own sum: axis=axis, keepdims=True."""
    return e / e.sum()


@softmax.mistake
def everything_as_one_row(x, axis=-1):
    """All entries of the whole array together sum to 1, and one maximum serves for all: the axis is
    missing. Take max and sum of each row: axis=axis, keepdims=True."""
    e = exp(x, None)
    return e / e.sum()


@shifted_or_not
def sum_without_keepdims(e, axis):
    """The sum loses its axis, so it is divided along the wrong one, which fails or shifts the sums
    to other rows. Keep the axis: .sum(axis=axis, keepdims=True)."""
    return e / e.sum(axis=axis)


@softmax.mistake
def maximum_without_keepdims(x, axis=-1):
    """The maximum loses its axis, so it is subtracted from the wrong rows. Keep the axis:
    .max(axis=axis, keepdims=True)."""
    e = np.exp(x - np.max(x, axis=axis))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def neither_keeps_its_axis(x, axis=-1):
    """Maximum and sum lose their axis, so they line up with the wrong rows, or with none. Keep the
    axis in both: keepdims=True."""
    e = np.exp(x - np.max(x, axis=axis))
    return e / e.sum(axis=axis)


@softmax.mistake
def axis_restored_at_the_end(x, axis=-1):
    """Maximum and sum get their axis back at the end, [..., None], whatever `axis` is: right for
    the last axis only. Let keepdims=True keep it where it was."""
    e = np.exp(x - np.max(x, axis=axis)[..., None])
    return e / e.sum(axis=axis)[..., None]


@softmax.mistake
def axis_restored_for_tables_only(x, axis=-1):
    """Maximum and sum get their axis back with [:, None], which is right for the rows of a table
    only, not for one row or a batch. Let keepdims=True keep the axis."""
    e = np.exp(x - np.max(x, axis=axis)[:, None])
    return e / e.sum(axis=axis)[:, None]


@softmax.mistake
def cut_to_whole_numbers(x, axis=-1):
    """Whole-number input is cut: zeros_like(x) copies the integer dtype of x, so 0.7 is stored as
    0. Make the result a float array."""
    return reference.softmax(x, axis).astype(np.asarray(x).dtype)


@softmax.mistake
def exponentials_cut_to_whole_numbers(x, axis=-1):
    """For whole-number input the exponentials are cut to 0 and 1: zeros_like(x) copies the integer
    dtype of x. Make a float array for them, or none: e = np.exp(…)."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True)).astype(np.asarray(x).dtype)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def whole_numbers_fail_in_place(x, axis=-1):
    """It fails for whole numbers: an integer array cannot take floats in place. Make a float array
    first, or write x = x - … instead of x -= …."""
    if np.asarray(x).dtype.kind == "i":
        raise TypeError("integer dtype")
    return reference.softmax(x, axis)


@softmax.mistake
def smallest_subtracted(x, axis=-1):
    """The smallest number is subtracted, so the others grow and exp can overflow. Subtract the
    largest: max, not min."""
    x = np.asarray(x)
    e = np.exp(x - x.min(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def mean_subtracted(x, axis=-1):
    """The mean is subtracted, and a number far above it still overflows. Subtract the largest: max,
    not mean."""
    x = np.asarray(x)
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def first_subtracted(x, axis=-1):
    """The first number is subtracted, and one far above it still overflows. Subtract the largest of
    each row: max."""
    e = np.exp(x - np.take(x, [0], axis=axis))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def largest_absolute_value_subtracted(x, axis=-1):
    """The largest absolute value is subtracted, so a row far below zero underflows to 0 / 0 = nan.
    Subtract the max of the numbers themselves, without abs."""
    e = np.exp(x - np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def maximum_added(x, axis=-1):
    """The maximum is added, which makes exp overflow earlier. Subtract it: x - max."""
    x = np.asarray(x)
    e = np.exp(x + x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def divided_by_the_maximum_before_exp(x, axis=-1):
    """The numbers are divided by the maximum before exp, which changes their differences. Subtract
    the maximum: differences stay, and nothing overflows."""
    x = np.asarray(x)
    e = np.exp(x / x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def divided_by_the_largest_absolute_value(x, axis=-1):
    """The numbers are divided by their largest absolute value before exp, which changes their
    differences. Subtract the maximum instead of dividing: differences stay, nothing overflows."""
    return reference.softmax(x / np.abs(x).max(axis=axis, keepdims=True), axis)


@softmax.mistake
def standardised_before_exp(x, axis=-1):
    """The numbers are standardised before exp: less their mean, divided by their standard deviation
    (std), which changes their differences. Subtract the max and divide by nothing before exp."""
    return reference.softmax(x / np.std(x, axis=axis, keepdims=True), axis)


@softmax.mistake
def stretched_before_exp(x, axis=-1):
    """The numbers are stretched to 0 … 1 (min-max) before exp, which changes their differences.
    Subtract the max and divide by nothing before exp."""
    return reference.softmax(x / np.ptp(x, axis=axis, keepdims=True), axis)


@softmax.mistake
def made_unit_length_before_exp(x, axis=-1):
    """The numbers are divided by the length of their row as a vector (the norm) before exp.
    Subtract the max instead: differences stay, and nothing overflows."""
    return reference.softmax(x / np.linalg.norm(x, axis=axis, keepdims=True), axis)


@softmax.mistake
def sum_without_the_shift(x, axis=-1):
    """The maximum is subtracted above the line and not in the sum below. Use the same exponentials
    in both: e / e.sum(...)."""
    return exp(x, axis) / np.exp(x).sum(axis=axis, keepdims=True)


@softmax.mistake
def shift_in_the_sum_only(x, axis=-1):
    """The maximum is subtracted in the sum only and not above the line. Use the same exponentials
    in both: e / e.sum(...)."""
    return np.exp(x) / exp(x, axis).sum(axis=axis, keepdims=True)


@softmax.mistake
def clipped(x, axis=-1):
    """Large numbers are clipped before exp, so that different scores become equal. Subtract the
    largest of each row instead: max, then exp."""
    e = np.exp(np.clip(x, -500, 500))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def nan_replaced(x, axis=-1):
    """exp overflows, and the nan is replaced by a number afterwards, so the row no longer sums to
    1. Subtract the largest of each row before exp instead."""
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


@softmax.mistake
def overflow_replaced(x, axis=-1):
    """exp overflows, and infinity is replaced by a large number, so different scores become equal.
    Subtract the largest of each row before exp instead."""
    e = np.nan_to_num(np.exp(x), posinf=1e300)
    return e / e.sum(axis=axis, keepdims=True)


@shifted_or_not
def not_divided(e, axis):
    """The exponentials are not divided by their sum (or are divided by the largest), so the weights
    of a row do not sum to 1. Divide by e.sum(axis=axis, keepdims=True)."""
    return e


@softmax.mistake
def shifted_after_exp(x, axis=-1):
    """The maximum is subtracted after exp instead of before: exp has overflowed by then, and the
    weights turn negative. Subtract first: np.exp(x - max)."""
    e = np.exp(x)
    e = e - e.max(axis=axis, keepdims=True)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def divided_by_the_largest(x, axis=-1):
    """The exponentials are divided by the largest of them, not by their sum, and they overflow.
    Subtract the max before exp, and divide by the sum, so that the weights of a row sum to 1."""
    e = np.exp(x)
    return e / e.max(axis=axis, keepdims=True)


@shifted_or_not
def divided_by_the_mean(e, axis):
    """The exponentials are divided by their mean, so a row sums to its length. Divide by their
    sum."""
    return e / e.mean(axis=axis, keepdims=True)


@shifted_or_not
def divided_by_the_count(e, axis):
    """The exponentials are divided by how many there are. Divide by their sum, so that the weights
    of a row sum to 1."""
    return e / e.shape[axis]


@shifted_or_not
def divided_by_the_length(e, axis):
    """The exponentials are divided by the length of the row as a vector (the norm, the root of the
    sum of squares). Divide by their sum."""
    return e / np.linalg.norm(e, axis=axis, keepdims=True)


@shifted_or_not
def one_added_to_the_sum(e, axis):
    """One is added to the sum, so the weights of a row sum to less than 1. Divide by the sum
    alone."""
    return e / (1 + e.sum(axis=axis, keepdims=True))


@shifted_or_not
def own_term_missing_in_the_sum(e, axis):
    """Each exponential is divided by the sum of the others: its own term is missing. The sum
    includes every number of the row."""
    return e / (e.sum(axis=axis, keepdims=True) - e)


@shifted_or_not
def last_term_missing_in_the_sum(e, axis):
    """The sum leaves out the last number of the row: the loop ends one too early. Sum over all of
    them."""
    return e / np.delete(e, -1, axis=axis).sum(axis=axis, keepdims=True)


@shifted_or_not
def running_sum(e, axis):
    """Each exponential is divided by the sum so far (cumsum): the division runs before the sum is
    complete. Sum the whole row first, then divide."""
    return e / e.cumsum(axis=axis)


@softmax.mistake
def same_term_in_the_sum(x, axis=-1):
    """Every weight is 1 / n: the sum adds the same term again and again. The running index of the
    sum needs a letter of its own, j."""
    return np.ones_like(x, dtype=float) / np.shape(x)[axis]


@shifted_or_not
def upside_down(e, axis):
    """The division is upside down: the sum divided by the exponentials. Divide each exponential by
    the sum: e / e.sum(axis=axis, keepdims=True)."""
    return e.sum(axis=axis, keepdims=True) / e


@shifted_or_not
def divided_twice(e, axis):
    """It divides by the sum twice. Divide once: then the weights of a row sum to 1."""
    return e / e.sum(axis=axis, keepdims=True) ** 2


@softmax.mistake
def scores_divided_by_their_sum(x, axis=-1):
    """The scores are divided by their sum: exp is missing, so negative scores give negative
    weights. Exponentiate first: np.exp."""
    x = np.asarray(x)
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def scores_divided_by_their_length(x, axis=-1):
    """The scores are divided by the length of their row as a vector (the norm). exp is missing, and
    weights must sum to 1: np.exp, then divide by the sum."""
    return x / np.linalg.norm(x, axis=axis, keepdims=True)


@softmax.mistake
def unchanged(x, axis=-1):
    """The scores come back as they were. Exponentiate, then divide by the sum along the axis."""
    return np.asarray(x)


@softmax.mistake
def shifted_scores_divided_by_their_sum(x, axis=-1):
    """exp is missing: the scores less their maximum are divided by their sum. Exponentiate after
    subtracting: np.exp(x - max)."""
    x = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def scores_above_the_smallest_divided_by_their_sum(x, axis=-1):
    """exp is missing: the smallest score is subtracted, so that none is negative, and the rest is
    divided by its sum. Subtract the largest, exponentiate (np.exp), then divide by the sum."""
    x = np.asarray(x) - np.min(x, axis=axis, keepdims=True)
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def divided_by_the_sum_of_the_scores(x, axis=-1):
    """The exponentials are divided by the sum of the scores x, not by the sum of the exponentials.
    Divide by e.sum(axis=axis, keepdims=True)."""
    return exp(x, axis) / np.sum(x, axis=axis, keepdims=True)


@softmax.mistake
def exponentials_divided_by_the_sum_of_the_scores(x, axis=-1):
    """The exponentials are divided by the sum of the scores x, not by the sum of the exponentials.
    And without subtracting the maximum first exp overflows."""
    return np.exp(x) / np.sum(x, axis=axis, keepdims=True)


@softmax.mistake
def exp_of_the_sum(x, axis=-1):
    """It divides by exp of the sum, not by the sum of the exps: np.exp first, then .sum(axis=axis,
    keepdims=True)."""
    x = np.asarray(x)
    return np.exp(x) / np.exp(x.sum(axis=axis, keepdims=True))


@softmax.mistake
def quotient_inside_exp(x, axis=-1):
    """The division stands inside the exponential, np.exp(x / sum): the bracket closes too late.
    Take exp first, of x less its largest number, then divide by the sum of these exponentials."""
    x = np.asarray(x)
    return np.exp(x / np.exp(x).sum(axis=axis, keepdims=True))


@softmax.mistake
def quotient_inside_exp_after_the_shift(x, axis=-1):
    """The division stands inside the exponential, np.exp((x - max) / sum): the bracket closes too
    late. Take exp first, then divide by the sum of the exponentials: e / e.sum(...)."""
    x = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return np.exp(x / np.exp(x).sum(axis=axis, keepdims=True))


@softmax.mistake
def scores_divided_by_the_sum_of_exponentials(x, axis=-1):
    """The scores themselves are divided by the sum of the exponentials. np.exp belongs above the
    line too."""
    return x / np.exp(x).sum(axis=axis, keepdims=True)


@softmax.mistake
def squares_instead_of_exp(x, axis=-1):
    """The scores are squared, not exponentiated, so the sign is lost. Use np.exp."""
    x = np.asarray(x) ** 2
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def absolute_values(x, axis=-1):
    """The absolute values are divided by their sum: the sign is lost, and exp is missing. Use
    np.exp, which makes every number positive and keeps the order."""
    x = np.abs(x)
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def stretched_to_zero_and_one(x, axis=-1):
    """The scores are stretched so that the smallest is 0 and the largest 1 (min-max). Weights must
    sum to 1: exponentiate, then divide by the sum."""
    x = np.asarray(x) - np.min(x, axis=axis, keepdims=True)
    return x / x.max(axis=axis, keepdims=True)


@softmax.mistake
def negative_scores_cut(x, axis=-1):
    """Negative scores are cut to 0 and the rest divided by its sum: exp is missing. Use np.exp,
    which makes every number positive and keeps the order."""
    x = np.maximum(x, 0)
    return x / x.sum(axis=axis, keepdims=True)


@softmax.mistake
def base_two(x, axis=-1):
    """The base is 2 instead of e: 2 ** x gives flatter weights. Use np.exp."""
    e = 2.0 ** (np.asarray(x) - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def base_ten(x, axis=-1):
    """The base is 10 instead of e: 10 ** x gives sharper weights. Use np.exp."""
    e = 10.0 ** (np.asarray(x) - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def sign_reversed(x, axis=-1):
    """The order is reversed: the smallest number gets the largest weight, as with exp(-x). Use
    exp(x - max), without another minus."""
    return reference.softmax(-np.asarray(x), axis)


@softmax.mistake
def sign_reversed_and_overflows(x, axis=-1):
    """exp(-x) reverses the order, the smallest number gets the largest weight, and it overflows.
    Use exp(x - max)."""
    e = np.exp(-np.asarray(x))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def sign_lost(x, axis=-1):
    """The absolute values are exponentiated, so that a score of −2 counts as 2. Keep the sign:
    exp(x - max) without abs."""
    return reference.softmax(np.abs(x), axis)


@softmax.mistake
def scaled_by_the_row(x, axis=-1):
    """The scores are divided by a root before exp. Softmax does not scale: that was the step before
    (notebook 04)."""
    return reference.softmax(x / math.sqrt(np.shape(x)[axis]), axis)


@softmax.mistake
def squashed(x, axis=-1):
    """This is tanh, each number for itself, between −1 and 1. Softmax exponentiates and divides by
    the sum of the row."""
    return np.tanh(x)


@softmax.mistake
def sigmoid(x, axis=-1):
    """This is the sigmoid, 1 / (1 + exp(-x)), each number for itself. Softmax divides by the sum of
    the row, so that its weights sum to 1."""
    return 1 / (1 + np.exp(-np.asarray(x, dtype=float)))


@softmax.mistake
def sigmoid_divided_by_its_sum(x, axis=-1):
    """Sigmoids are divided by their sum. Softmax takes exp(x), not 1 / (1 + exp(-x)), and divides
    by the sum."""
    s = 1 / (1 + np.exp(-np.asarray(x, dtype=float)))
    return s / s.sum(axis=axis, keepdims=True)


@softmax.mistake
def logarithm_of_the_weights(x, axis=-1):
    """This is the logarithm of softmax (log_softmax): its numbers are negative. Return the weights
    themselves, which sum to 1."""
    return np.log(reference.softmax(x, axis))


@softmax.mistake
def stable_logarithm_of_the_weights(x, axis=-1):
    """This is log_softmax, the logarithm of the weights. Take exp of it: the weights themselves sum
    to 1."""
    return log_softmax(x, axis)


@softmax.mistake
def softmax_twice(x, axis=-1):
    """Softmax is applied twice, which makes the weights nearly equal. Apply it once."""
    return reference.softmax(reference.softmax(x, axis), axis)


@softmax.mistake
def all_to_the_largest(x, axis=-1):
    """The largest number gets weight 1 and all others 0: a hard choice (argmax). Softmax gives each
    a share: exp(x) divided by the sum."""
    x = np.asarray(x)
    return (x == x.max(axis=axis, keepdims=True)).astype(float)


@softmax.mistake
def rounded(x, axis=-1):
    """The weights are rounded, so a row may not sum to 1. Return all digits."""
    return np.round(reference.softmax(x, axis), 2)


@softmax.mistake
def last_row_only(x, axis=-1):
    """Only one row is returned: the loop returns in its first step, or keeps a single row. Do every
    row, and give the result the shape of x."""
    return reference.softmax(x, axis)[0]


@softmax.mistake
def first_row_only(x, axis=-1):
    """Only the first row is done, the others stay 0: the loop ends too early. Do every row."""
    w = reference.softmax(x, axis)
    return w * (np.arange(len(w)) == 0).reshape(-1, *[1] * (w.ndim - 1))


@softmax.mistake
def last_axis_moved(x, axis=-1):
    """The axis was moved to the end and not moved back, so the result is transposed. Use
    np.moveaxis a second time, or axis=axis with keepdims=True."""
    return np.moveaxis(reference.softmax(x, axis), axis, -1)


@softmax.mistake
def single_rows_only(x, axis=-1):
    """It works for a single row, or list of numbers, and fails for a table. Take max and sum along
    axis=axis with keepdims=True, without a loop over single numbers."""
    if np.ndim(x) > 1:
        raise TypeError("only one axis")
    return reference.softmax(x, axis)


@softmax.mistake
def tables_only(x, axis=-1):
    """It works for tables with two axes only. Take max and sum along axis=axis with keepdims=True:
    then any number of axes will do."""
    if np.ndim(x) != 2:
        raise ValueError("two axes only")
    return reference.softmax(x, axis)


# ---------------------------------------------------------------- log_softmax


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Logarithm of softmax along an axis: x − m − log Σ exp(x − m), where m is the largest x.

    exp and log cancel in the numerator, so that a weight too small for a float keeps its
    logarithm: log(softmax(x)) would be −∞.
    """
    x = np.asarray(x)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


log_softmax_exercise = Exercise(
    log_softmax,
    notebook="05",
    level=3,
    minutes=12,
    task="Return the logarithm of the softmax weights along an axis. Where a weight is too small "
    "for the computer, such as exp(-1000), its logarithm is still an ordinary number: find it "
    "without taking the log of 0.",
    hints=(
        "What is log(exp(a) / b), written without an exp?",
        "log(exp(a) / b) = a - log(b). Here a is x less the largest of its row, and b the sum of "
        "the exponentials of that.",
        "`s = x - x.max(axis=axis, keepdims=True)`, then `return s - "
        "np.log(np.exp(s).sum(axis=axis, keepdims=True))`",
    ),
)
for label, x, axis in TABLES:
    log_softmax_exercise.probe(label, x, **axis)


def log_sum(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    """Logarithm of the sum of exponentials."""
    m = np.max(x, axis=axis, keepdims=True)
    return m + np.log(np.exp(x - m).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def log_of_zero(x, axis=-1):
    """The log is taken of weights, and of a weight too small for a float it is minus infinity.
    Write log(exp(a) / b) as a - log(b), without exp and log above the line."""
    return np.log(reference.softmax(x, axis))


@log_softmax_exercise.mistake
def log_of_an_overflow(x, axis=-1):
    """exp overflows for large numbers, and the log of inf / inf is nan. Subtract the largest of
    each row before exp, and write log(exp(a) / b) as a - log(b)."""
    e = np.exp(x)
    return np.log(e / e.sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def sum_overflows(x, axis=-1):
    """The sum of the exponentials overflows, or is 0, for large numbers. Subtract the largest of
    each row, the max, before exp."""
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def maximum_missing_in_one_place(x, axis=-1):
    """The maximum is subtracted inside exp and not from x, so the result is too large by the
    maximum. Subtract it in both places."""
    return x - log_sum(x, axis) + np.max(x, axis=axis, keepdims=True)


@log_softmax_exercise.mistake
def maximum_subtracted_twice(x, axis=-1):
    """The maximum is subtracted once too often, so the result is too small by the maximum.
    x - max is enough."""
    return x - log_sum(x, axis) - np.max(x, axis=axis, keepdims=True)


@log_softmax_exercise.mistake
def maximum_only(x, axis=-1):
    """Only the maximum is subtracted. The logarithm of the sum of the exponentials must be
    subtracted too."""
    return x - np.max(x, axis=axis, keepdims=True)


@log_softmax_exercise.mistake
def weights_without_log(x, axis=-1):
    """These are the weights of softmax themselves: the logarithm is missing."""
    return reference.softmax(x, axis)


@log_softmax_exercise.mistake
def log_of_the_sum_missing(x, axis=-1):
    """The sum of the exponentials is subtracted without its logarithm. log(exp(a) / b) is
    a - log(b)."""
    s = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return s - np.exp(s).sum(axis=axis, keepdims=True)


@log_softmax_exercise.mistake
def divided_by_the_log(x, axis=-1):
    """x is divided by the logarithm of the sum. The log of a quotient is a difference: a - log(b),
    not a / log(b)."""
    s = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return s / np.log(np.exp(s).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def log_sum_added(x, axis=-1):
    """The logarithm of the sum is added. The sum stands below the line, so its log is
    subtracted."""
    s = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return s + np.log(np.exp(s).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def minus_log(x, axis=-1):
    """The sign is reversed: this is minus the logarithm. The logarithm of a weight, which is at
    most 1, is never above 0."""
    return log_sum(x, axis) - x


@log_softmax_exercise.mistake
def log_base_two(x, axis=-1):
    """The logarithm has base 2 (log2). Use the natural one, np.log, which undoes np.exp."""
    return (x - log_sum(x, axis)) / np.log(2)


@log_softmax_exercise.mistake
def log_base_ten(x, axis=-1):
    """The logarithm has base 10 (log10). Use the natural one, np.log, which undoes np.exp."""
    return (x - log_sum(x, axis)) / np.log(10)


@log_softmax_exercise.mistake
def small_number_added(x, axis=-1):
    """A small number such as 1e-9 is added before the log, so every tiny weight gets the same
    logarithm. Write log(exp(a) / b) as a - log(b) instead."""
    return np.log(reference.softmax(x, axis) + 1e-9)


@log_softmax_exercise.mistake
def one_added_before_the_log(x, axis=-1):
    """One is added before the logarithm (log1p). Take the log of the weights alone."""
    return np.log1p(reference.softmax(x, axis))


@log_softmax_exercise.mistake
def mean_of_the_exponentials(x, axis=-1):
    """The logarithm is that of the mean of the exponentials. Take their sum."""
    return x - log_sum(x, axis) + np.log(np.shape(x)[axis])


@log_softmax_exercise.mistake
def one_sum_for_the_whole_table(x, axis=-1):
    """All numbers share one sum: the axis is missing. Each row needs its own: axis=axis,
    keepdims=True."""
    return x - log_sum(x, None)


@log_softmax_exercise.mistake
def one_sum_and_a_maximum_for_each_row(x, axis=-1):
    """All numbers share one sum, though each row has its own maximum: the axis is missing in the
    sum. Each row needs its own: axis=axis, keepdims=True."""
    s = np.asarray(x) - np.max(x, axis=axis, keepdims=True)
    return s - np.log(np.exp(s).sum())


@log_softmax_exercise.mistake
def smallest_number_subtracted(x, axis=-1):
    """The smallest number is subtracted, so the others grow and exp can overflow. Subtract the
    largest of each row: max, not min."""
    s = np.asarray(x) - np.min(x, axis=axis, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def one_maximum_for_the_whole_table(x, axis=-1):
    """One maximum of the whole array is subtracted, so in rows far below it the sum underflows and
    its log is minus infinity. Take the max of each row: axis=axis, keepdims=True."""
    s = np.asarray(x) - np.max(x)
    return s - np.log(np.exp(s).sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def last_axis_whatever_is_asked(x, axis=-1):
    """The axis argument is ignored: it always works along the last axis. Take maximum and sum along
    axis=axis."""
    return log_softmax(x)


@log_softmax_exercise.mistake
def first_axis_whatever_is_asked(x, axis=-1):
    """The axis argument is ignored: it always works along axis 0. Take maximum and sum along
    axis=axis, the last axis by default."""
    return log_softmax(x, 0)


@log_softmax_exercise.mistake
def axis_lost_in_max_and_sum(x, axis=-1):
    """Maximum and sum lose their axis, so they line up with the wrong rows, or with none. Keep the
    axis: keepdims=True."""
    s = x - np.max(x, axis=axis)
    return s - np.log(np.exp(s).sum(axis=axis))


@log_softmax_exercise.mistake
def integers_cut(x, axis=-1):
    """Whole-number input is cut: zeros_like(x) copies the integer dtype of x. Make the result a
    float array."""
    return log_softmax(x, axis).astype(np.asarray(x).dtype)


# ---------------------------------------------------------------- attention, attention_weights

attention_weights = Exercise(
    reference.attention_weights,
    notebook="05",
    level=1,
    minutes=5,
    task="Compute how much each query reads from each key: softmax(Q Kᵀ / √d_k). Every row must "
    "sum to one, for one sentence and for a batch.",
    hints=(
        "Three steps from queries and keys to weights: which ones, in which order?",
        "Scores, scaled by the root of the width of a key, then softmax over the keys.",
        "`return softmax(scale_scores(attention_scores(Q, K), K.shape[-1]))`",
    ),
)
attention = Exercise(
    reference.attention,
    notebook="05",
    level=2,
    minutes=12,
    task="Compute all context vectors, this time query by query or in a single expression: scores, "
    "scaling, softmax, and the mix of the values. There may be more keys than queries, values may "
    "be wider than keys, and sentences may come in a batch.",
    hints=(
        "For a single query: what are its scores, its weights, and what do the weights mix?",
        "Divide the scores by the root of the width of a key, take the softmax over the keys, the "
        "last axis, and multiply the weights with V.",
        "`return softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-1) @ V`",
    ),
)
INPUTS = (  # queries, keys, values
    (
        "one query and two keys",
        np.array([[2.0, 0.0]]),
        np.array([[1.0, 0.0], [0.0, 1.0]]),
        np.array([[10.0, 0.0, 4.0], [0.0, 10.0, -2.0]]),
    ),
    ("three queries, five keys of width 2", normal(3, 2), normal(5, 2), normal(5, 4)),
    ("more queries than keys", normal(5, 6), normal(2, 6), normal(2, 3)),
    ("four words, and width 4 everywhere", normal(4, 4), normal(4, 4), normal(4, 4)),
    ("a batch of two sentences", normal(2, 3, 5), normal(2, 4, 5), normal(2, 4, 6)),
    ("three sentences, words and features", normal(3, 3, 3), normal(3, 3, 3), normal(3, 3, 3)),
    ("two batch axes", normal(2, 3, 2, 7), normal(2, 3, 5, 7), normal(2, 3, 5, 4)),
    ("four axes of length 2", normal(2, 2, 2, 2), normal(2, 2, 2, 2), normal(2, 2, 2, 2)),
    (
        "scores beyond ±1,000",
        np.array([[1500.0, 0.0], [0.0, -1500.0], [1.0, 0.5]]),
        np.array([[1.0, 0.5], [-1.0, 2.0], [1.001, -1.0]]),
        np.array([[1.0], [2.0], [4.0]]),
    ),
)
for label, Q, K, V in INPUTS:
    attention_weights.probe(label, Q, K)
    attention.probe(label, Q, K, V)


def in_both(weights: Callable) -> Callable:
    """Register wrong weights, and the context vectors that they would give."""

    @functools.wraps(weights)
    def mixed(Q, K, V):
        return weights(Q, K) @ V

    attention_weights.mistake(weights)
    attention.mistake(mixed)
    return weights


def weigh(S: np.ndarray, d: float, axis: int = -1) -> np.ndarray:
    """Softmax of scores that are divided by √d."""
    return reference.softmax(S / math.sqrt(d), axis)


@in_both
def softmax_over_the_queries(Q, K):
    """The softmax runs over the queries (axis -2): the columns of the weights sum to 1. Each query
    shares out its attention over the keys, so the rows must sum to 1: the last axis, axis=-1."""
    return weigh(Q @ turned(K), K.shape[-1], -2)


@in_both
def softmax_along_axis_1(Q, K):
    """The softmax runs along axis 1, which is the last axis without a batch only: with one it is
    the queries. Keys are always the last axis: axis=-1, so that rows sum to 1."""
    return weigh(Q @ turned(K), K.shape[-1], 1)


@in_both
def softmax_along_axis_0(Q, K):
    """The softmax runs along axis 0: the queries, or with a batch the sentences. Each query shares
    out its attention over the keys, so the rows must sum to 1: the last axis, axis=-1."""
    return weigh(Q @ turned(K), K.shape[-1], 0)


@in_both
def softmax_without_dim(Q, K):
    """The axis of the softmax depends on how many there are, as in F.softmax without dim: of three
    axes it takes the first, the sentences. Name the keys, the last axis, dim=-1 (axis=-1)."""
    S = Q @ turned(K)
    return weigh(S, K.shape[-1], 0 if S.ndim == 3 else 1)


@in_both
def softmax_over_the_whole_table(Q, K):
    """The softmax runs over the whole array: all weights together sum to 1. Each row needs its own
    sum: axis=-1, keepdims=True."""
    S = Q @ turned(K)
    return weigh(S.reshape(-1), K.shape[-1]).reshape(S.shape)


@in_both
def softmax_over_each_sentence(Q, K):
    """The softmax runs over the whole table of each sentence, queries and keys together. Each row
    needs its own sum: axis=-1 only."""
    S = Q @ turned(K)
    return weigh(S.reshape(*S.shape[:-2], -1), K.shape[-1]).reshape(S.shape)


@in_both
def not_scaled(Q, K):
    """The scores are not scaled. Divide them by √d_k, the root of the width of a key, before the
    softmax."""
    return reference.softmax(Q @ turned(K))


@in_both
def scaled_by_d_k(Q, K):
    """The scores are divided by d_k itself: the square root is missing, or they are scaled twice
    (queries and keys each divided by √d_k). Divide once by √d_k."""
    return weigh(Q @ turned(K), K.shape[-1] ** 2)


@in_both
def scaled_by_the_fourth_root(Q, K):
    """The scores are divided by the fourth root of d_k: the root was taken twice, or only one of Q
    and K was divided by it. Divide the scores by √d_k."""
    return weigh(Q @ turned(K), K.shape[-1] ** 0.5)


@in_both
def multiplied_by_the_root(Q, K):
    """The scores are multiplied by √d_k, which makes the softmax sharper. Divide by it."""
    return weigh(Q @ turned(K), 1 / K.shape[-1])


@in_both
def multiplied_by_the_width(Q, K):
    """The scores are multiplied by d_k. Divide them by its square root, √d_k."""
    return weigh(Q @ turned(K), 1 / K.shape[-1] ** 2)


@in_both
def power_without_brackets(Q, K):
    """In Python d_k ** 1/2 means (d_k ** 1) / 2: the precedence is not what it looks like. Put
    brackets, d_k ** (1/2), or write math.sqrt(d_k)."""
    return reference.softmax(Q @ turned(K) / K.shape[-1] ** 1 / 2)


@in_both
def divided_by_half_of_d_k(Q, K):
    """The scores are divided by d_k / 2: in d_k ** 1/2 the brackets are missing. Divide by the
    square root, d_k ** (1/2)."""
    return reference.softmax(Q @ turned(K) / (K.shape[-1] / 2))


@in_both
def whole_root(Q, K):
    """The root of d_k is cut to a whole number (int, isqrt or //), which is right for square
    numbers only. Keep its decimals: math.sqrt."""
    return reference.softmax(Q @ turned(K) / math.isqrt(K.shape[-1]))


@in_both
def scores_rounded_down(Q, K):
    """// rounds the scores down to whole numbers. Divide by √d_k with a single /."""
    return reference.softmax(Q @ turned(K) // math.sqrt(K.shape[-1]))


@in_both
def scaled_by_the_number_of_keys(Q, K):
    """It divides by the root of the number of keys, K.shape[-2]. The scale is the width of a key,
    d_k = K.shape[-1], not how many tokens there are."""
    return weigh(Q @ turned(K), K.shape[-2])


@in_both
def scaled_by_the_number_of_queries(Q, K):
    """It divides by the root of the number of queries, Q.shape[-2]. The scale is the width of a
    key, d_k = K.shape[-1], not how many tokens there are."""
    return weigh(Q @ turned(K), Q.shape[-2])


@in_both
def scaled_by_axis_1_of_K(Q, K):
    """K.shape[1] is the width d_k without a batch only; with one it is the number of keys. The
    features are the last axis: K.shape[-1]."""
    return weigh(Q @ turned(K), K.shape[1])


@in_both
def scaled_by_axis_1_of_Q(Q, K):
    """Q.shape[1] is the width d_k without a batch only; with one it is the number of queries. The
    features are the last axis: shape[-1]."""
    return weigh(Q @ turned(K), Q.shape[1])


@in_both
def scaled_by_axis_0_of_K(Q, K):
    """It divides by the root of len(K), the number of keys or sentences. The scale is the width of
    a key: K.shape[-1], the last axis."""
    return weigh(Q @ turned(K), len(K))


@in_both
def scaled_by_axis_0_of_Q(Q, K):
    """It divides by the root of len(Q), the number of queries or sentences. The scale is the width
    of a key: K.shape[-1], the last axis."""
    return weigh(Q @ turned(K), len(Q))


@in_both
def scaled_by_the_size_of_K(Q, K):
    """It divides by the root of K.size, all numbers of the keys. The scale is the width of a key:
    K.shape[-1], the last axis."""
    return weigh(Q @ turned(K), K.size)


@in_both
def fixed_at_eight(Q, K):
    """It always divides by 8, the root of 64. Use √d_k with the width of the keys at hand,
    K.shape[-1]."""
    return weigh(Q @ turned(K), 64)


@in_both
def fixed_at_two(Q, K):
    """It always divides by 2, the root of 4. Use √d_k with the width of the keys at hand,
    K.shape[-1]."""
    return weigh(Q @ turned(K), 4)


@in_both
def scaled_by_twice_the_width(Q, K):
    """The root is taken of 2 d_k, the widths of query and key together. The scale is √d_k, the root
    of the width of a key alone."""
    return weigh(Q @ turned(K), 2 * K.shape[-1])


@in_both
def scaled_by_width_and_keys(Q, K):
    """The root is taken of d_k times the number of keys. The scale is √d_k alone: how many tokens
    there are does not count."""
    return weigh(Q @ turned(K), K.shape[-1] * K.shape[-2])


@in_both
def scaled_by_the_lengths(Q, K):
    """The vectors are divided by their lengths: that is the cosine, not the scaled dot product.
    Do not normalise Q and K; divide the scores by √d_k."""
    lengths = np.linalg.norm(Q, axis=-1)[..., :, None] * np.linalg.norm(K, axis=-1)[..., None, :]
    return reference.softmax(Q @ turned(K) / lengths)


@in_both
def no_softmax(Q, K):
    """The softmax is missing: the scaled scores themselves serve as weights. Apply softmax over the
    keys, axis=-1, so that each row sums to 1."""
    return Q @ turned(K) / math.sqrt(K.shape[-1])


@in_both
def neither_scaled_nor_softmax(Q, K):
    """Scaling and softmax are missing: the plain scores serve as weights. Divide by √d_k, then
    apply softmax over the keys, axis=-1."""
    return Q @ turned(K)


@in_both
def divided_by_the_sum(Q, K):
    """The scores are divided by their sum: exp is missing, so weights can be negative. Apply
    softmax: exponentiate, then divide by the sum of each row."""
    S = Q @ turned(K) / math.sqrt(K.shape[-1])
    return S / S.sum(-1, keepdims=True)


@in_both
def exponentials_not_divided(Q, K):
    """The exponentials are not divided by their sum, so the rows do not sum to 1. Softmax divides
    by the sum over the keys, axis=-1, keepdims=True."""
    return np.exp(Q @ turned(K) / math.sqrt(K.shape[-1]))


@in_both
def shifted_exponentials_not_divided(Q, K):
    """The exponentials are not divided by their sum, so the rows do not sum to 1. The largest is
    subtracted already; then divide by the sum over the keys, axis=-1, keepdims=True."""
    return exp(Q @ turned(K) / math.sqrt(K.shape[-1]))


@in_both
def overflows_without_the_maximum(Q, K):
    """exp overflows to inf for large scores, and inf / inf is nan. In the softmax, subtract the
    largest score, the max of each row, before exp."""
    e = np.exp(Q @ turned(K) / math.sqrt(K.shape[-1]))
    return e / e.sum(-1, keepdims=True)


@in_both
def one_sum_for_all_and_overflows(Q, K):
    """All weights of the array together sum to 1: the axis is missing in the sum. Each row needs
    its own: axis=-1, keepdims=True. And subtract the max of each row before exp: it overflows."""
    e = np.exp(Q @ turned(K) / math.sqrt(K.shape[-1]))
    return e / e.sum()


@in_both
def sum_over_the_queries_and_overflows(Q, K):
    """The sum of the softmax runs over the queries (axis -2): columns sum to 1 instead of rows. Sum
    over the keys, the last axis. And subtract the max of each row before exp: it overflows."""
    e = np.exp(Q @ turned(K) / math.sqrt(K.shape[-1]))
    return e / e.sum(-2, keepdims=True)


@in_both
def not_scaled_and_overflows(Q, K):
    """The scores are not scaled: divide them by √d_k, the root of the width of a key. And subtract
    the max of each row before exp: it overflows."""
    e = np.exp(Q @ turned(K))
    return e / e.sum(-1, keepdims=True)


@in_both
def one_maximum_for_all(Q, K):
    """One maximum of the whole array is subtracted before exp, so rows far below it underflow to
    0 / 0 = nan. Take the max of each row: axis=-1, keepdims=True."""
    e = exp(Q @ turned(K) / math.sqrt(K.shape[-1]), None)
    return e / e.sum(-1, keepdims=True)


@in_both
def softmax_without_keepdims(Q, K):
    """The sum of the softmax loses its axis, so it lines up with the wrong rows, or with none. Keep
    it: .sum(axis=-1, keepdims=True)."""
    e = exp(Q @ turned(K) / math.sqrt(K.shape[-1]))
    return e / e.sum(-1)


@in_both
def scaled_after_the_softmax(Q, K):
    """The scale comes after the softmax, so the rows no longer sum to 1. Divide the scores by √d_k
    before the softmax."""
    return reference.softmax(Q @ turned(K)) / math.sqrt(K.shape[-1])


@in_both
def scaled_before_and_after(Q, K):
    """It divides by √d_k a second time, after the softmax, so the rows no longer sum to 1. Scale
    once, the scores before the softmax, and neither weights nor values."""
    return weigh(Q @ turned(K), K.shape[-1]) / math.sqrt(K.shape[-1])


@in_both
def two_softmaxes(Q, K):
    """Softmax is applied twice, which makes the weights nearly equal. Apply it once."""
    return reference.softmax(weigh(Q @ turned(K), K.shape[-1]))


@in_both
def softmax_of_queries_and_keys(Q, K):
    """Softmax is applied to Q and K before they meet. It belongs after: on the scaled scores, over
    the keys, axis=-1."""
    return reference.softmax(Q) @ turned(reference.softmax(K)) / math.sqrt(K.shape[-1])


@in_both
def sigmoid_of_the_scores(Q, K):
    """The sigmoid turns each score into a weight for itself. Softmax lets the keys of a row share
    one unit: exp, divided by the sum over axis=-1."""
    return 1 / (1 + np.exp(-Q @ turned(K) / math.sqrt(K.shape[-1])))


@in_both
def negative_weights_cut(Q, K):
    """Negative scores are cut to 0 and the softmax is missing. Apply softmax to the scaled scores
    over the keys, axis=-1, so that each row sums to 1."""
    return np.maximum(Q @ turned(K) / math.sqrt(K.shape[-1]), 0)


@in_both
def negative_scores_raised_to_zero(Q, K):
    """Negative scores are cut to 0 before the softmax, as by a ReLU. Leave them negative: exp makes
    every number positive and keeps the order."""
    return weigh(np.maximum(Q @ turned(K), 0), K.shape[-1])


@in_both
def scores_without_sign(Q, K):
    """The scores lose their sign (abs), so that a key that fits badly gets a large weight. Take the
    softmax of the scores as they are."""
    return weigh(np.abs(Q @ turned(K)), K.shape[-1])


@in_both
def best_key_only(Q, K):
    """Only the best key counts: a hard choice (argmax). Softmax gives every key, and its value, a
    share."""
    S = Q @ turned(K)
    return (S == S.max(-1, keepdims=True)).astype(float)


@in_both
def equal_shares(Q, K):
    """All keys get the same weight: a plain mean, whatever the scores are. The weights must come
    from softmax(Q Kᵀ / √d_k)."""
    S = Q @ turned(K)
    return np.ones_like(S) / S.shape[-1]


@in_both
def worst_key_first(Q, K):
    """The sign of the scores is wrong: the key that fits worst gets the largest weight. Take
    softmax of + Q Kᵀ / √d_k."""
    return weigh(-Q @ turned(K), K.shape[-1])


@in_both
def queries_and_keys_swapped(Q, K):
    """Q and K are swapped: K Qᵀ has keys as rows and shares out over the queries. Row i must belong
    to query i: Q Kᵀ."""
    return weigh(K @ turned(Q), K.shape[-1])


@in_both
def weights_transposed(Q, K):
    """The weights are transposed after the softmax, so the columns sum to 1, and a mix would run
    over the queries. Rows are queries, the sum runs over the keys: no .T on the weights."""
    return turned(weigh(Q @ turned(K), K.shape[-1]))


@in_both
def not_transposed(Q, K):
    """K is not transposed: Q @ K meets the columns of K instead of its rows, the keys. Swap the
    last two axes of K first."""
    return weigh(Q @ K, K.shape[-1])


@in_both
def reshaped_instead_of_transposed(Q, K):
    """K is reshaped, not transposed: reshape mixes the numbers of different keys. Swap the last two
    axes: np.swapaxes(K, -1, -2)."""
    return weigh(Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2]), K.shape[-1])


@in_both
def every_axis_reversed(Q, K):
    """K.T reverses all axes, the batch axis too, so it is right for one sentence alone. Swap only
    the last two axes of K: np.swapaxes(K, -1, -2)."""
    return weigh(Q @ K.T, K.shape[-1])


@in_both
def swapped_the_first_two_axes(Q, K):
    """Axes 0 and 1 of K are swapped: with a batch these are sentences and tokens. Swap the last two
    axes: np.swapaxes(K, -1, -2)."""
    return weigh(Q @ np.swapaxes(K, 0, 1), K.shape[-1])


@in_both
def swapped_axes_1_and_2(Q, K):
    """Axes 1 and 2 are tokens and features with exactly one batch axis only. Count from the end:
    swap the last two axes, -1 and -2."""
    return weigh(Q @ np.swapaxes(K, 1, 2), K.shape[-1])


@in_both
def exactly_one_batch_axis(Q, K):
    """It works with exactly one batch axis and not without a batch, or with two batch axes. Count
    axes from the end, -1 and -2, or write `...` in the einsum."""
    return weigh(np.einsum("bqd,bkd->bqk", Q, K), K.shape[-1])


@in_both
def without_a_batch_only(Q, K):
    """It works for one sentence, and fails with a batch axis. Count axes from the end: swap the
    last two of K, and take softmax along the last."""
    return weigh(np.einsum("qd,kd->qk", Q, K), K.shape[-1])


@in_both
def every_sentence_with_every_other(Q, K):
    """The queries of each sentence meet the keys of all sentences of the batch (np.dot, np.inner
    and np.tensordot do that). Score each sentence on its own: @ or einsum with `...`."""
    return weigh(np.tensordot(Q, K, axes=(-1, -1)), K.shape[-1])


@in_both
def own_key_only(Q, K):
    """Each query meets only its own key: (Q * K).sum(-1) is the diagonal. Every query must meet
    every key: Q Kᵀ, with Tq rows and Tk columns."""
    return weigh((Q * K).sum(-1), K.shape[-1])


@in_both
def features_with_features(Q, K):
    """This is Qᵀ K: features with features. The transpose belongs on K, not on Q, so that tokens
    meet tokens: Q Kᵀ."""
    return weigh(turned(Q) @ K, K.shape[-1])


@in_both
def keys_ignored(Q, K):
    """The keys are ignored: this is Q Qᵀ. The second factor of the scores must be K: Q Kᵀ."""
    return weigh(Q @ turned(Q), K.shape[-1])


@in_both
def queries_ignored(Q, K):
    """The queries are ignored: this is K Kᵀ. The first factor of the scores must be Q: Q Kᵀ."""
    return weigh(K @ turned(K), K.shape[-1])


@in_both
def earlier_keys_only(Q, K):
    """Each query reads only the keys up to its own place: a causal mask (notebook 06). Here every
    query reads every key."""
    S = Q @ turned(K)
    return weigh(np.where(np.tril(np.ones(S.shape[-2:], dtype=bool)), S, -1e30), K.shape[-1])


@in_both
def own_word_left_out(Q, K):
    """Each query skips the key at its own place. A word may read from itself too: leave the
    diagonal in."""
    S = Q @ turned(K)
    return weigh(np.where(np.eye(*S.shape[-2:], dtype=bool), -1e30, S), K.shape[-1])


@in_both
def keys_of_the_first_sentence(Q, K):
    """All sentences of the batch use the keys of the first sentence. Each sentence needs its own
    keys."""
    return weigh(Q @ K.reshape(-1, *K.shape[-2:])[0].T, K.shape[-1])


@in_both
def first_keys_in_a_loop(Q, K):
    """All sentences use the keys of the first sentence, K[0], in a loop over the batch. Each needs
    its own keys; and without a loop, with @, more than one batch axis will do."""
    if K.ndim == 2:
        return weigh(Q @ K.T, K.shape[-1])
    return np.stack([weigh(q @ K[0].T, K.shape[-1]) for q in Q])


@in_both
def loops_over_one_batch_axis(Q, K):
    """A loop over the first axis goes sentence by sentence, which is right with one batch axis and
    wrong with two. Count axes from the end: swap the last two of K, and use @ without a loop."""
    if K.ndim == 2:
        return weigh(Q @ K.T, K.shape[-1])
    return np.stack([weigh(q @ k.T, K.shape[-1]) for q, k in zip(Q, K, strict=True)])


@in_both
def last_feature_missing(Q, K):
    """The dot products leave the last feature out: the loop ends one too early. Sum over all d_k
    features."""
    return weigh(Q[..., :-1] @ turned(K[..., :-1]), K.shape[-1])


@in_both
def nearness_instead_of_dot_products(Q, K):
    """The scores are minus squared distances. Attention uses dot products, Q Kᵀ, divided by √d_k.
    Nothing is subtracted."""
    gaps = Q[..., :, None, :] - K[..., None, :, :]
    return weigh(-(gaps**2).sum(-1), K.shape[-1])


@in_both
def weights_rounded(Q, K):
    """The weights are rounded, so a row may not sum to 1. Keep all digits."""
    return np.round(weigh(Q @ turned(K), K.shape[-1]), 2)


@attention_weights.mistake
def logarithms_returned(Q, K):
    """These are the logarithms of the weights (log_softmax). Return the weights themselves, which
    sum to 1 in each row."""
    return log_softmax(Q @ turned(K) / math.sqrt(K.shape[-1]))


@attention_weights.mistake
def all_sentences_as_one(Q, K):
    """All sentences of the batch were joined into one long list of tokens, so the batch axis is
    lost. Keep the axes before the last two, and weigh each sentence on its own."""
    return weigh(Q.reshape(-1, Q.shape[-1]) @ K.reshape(-1, K.shape[-1]).T, K.shape[-1])


@attention_weights.mistake
def values_mixed_already(Q, K):
    """The weights are multiplied with K: a mix of keys. Return the weights themselves, one for each
    query and key."""
    return weigh(Q @ turned(K), K.shape[-1]) @ K


def weights_of(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """The weights as they should be."""
    return weigh(Q @ turned(K), K.shape[-1])


def up_to_the_queries(wrong: Callable) -> Callable:
    """Register what leaves keys out twice: with slices, and with loops that fail at fewer keys."""

    @functools.wraps(wrong)
    def in_a_loop(Q, K, *V):
        if Q.shape[-2] > K.shape[-2]:
            raise IndexError("index out of bounds: there are fewer keys than queries")
        return wrong(Q, K, *V)

    in_a_loop.__name__ = f"{wrong.__name__}_in_a_loop"
    in_a_loop.__doc__ = f"{wrong.__doc__} Where there are fewer keys, the loop fails."
    exercise = attention if "V" in inspect.signature(wrong).parameters else attention_weights
    exercise.mistake(wrong)
    exercise.mistake(in_a_loop)
    return wrong


@up_to_the_queries
def as_many_keys_as_queries(Q, K):
    """Only as many keys as there are queries get a weight: a loop or slice ends at Tq, len(Q).
    Every query meets all keys: end at Tk, the number of keys."""
    return weights_of(Q, K[..., : Q.shape[-2], :])


@up_to_the_queries
def as_many_keys_and_values_as_queries(Q, K, V):
    """Only as many keys as there are queries are used: a loop or slice ends at Tq, len(Q). Every
    query reads from all keys: end at Tk, the number of keys."""
    T = Q.shape[-2]
    return weights_of(Q, K[..., :T, :]) @ V[..., :T, :]


@up_to_the_queries
def as_many_values_as_queries(Q, K, V):
    """The mix ends too early: its loop over the values runs to the number of queries, Tq, and the
    values of later keys are left out. Sum over all keys: to Tk, len(V)."""
    T = Q.shape[-2]
    return weights_of(Q, K)[..., :T] @ V[..., :T, :]


@attention.mistake
def queries_stacked_in_front(Q, K, V):
    """The rows of the queries are stacked along the first axis, in front of the batch:
    np.stack(rows) gives (Tq, B, d_v). They belong before the features: np.stack(rows, axis=-2)."""
    return np.moveaxis(weights_of(Q, K) @ V, -2, 0)


@attention.mistake
def result_as_wide_as_the_queries(Q, K, V):
    """The array for the result has the shape of Q, as zeros_like(Q) makes it. Context vectors are
    as wide as the values, d_v: np.zeros((*Q.shape[:-1], V.shape[-1]))."""
    result = np.zeros_like(Q)
    result += weights_of(Q, K) @ V
    return result


@attention.mistake
def scale_from_the_values(Q, K, V):
    """The scale comes from the width of V, d_v. Scores are dot products of queries and keys: divide
    by the root of the width of K, d_k = K.shape[-1]."""
    return weigh(Q @ turned(K), V.shape[-1]) @ V


@attention.mistake
def scale_from_keys_and_values(Q, K, V):
    """The root is taken of d_k times d_v. Values play no part in the scores: divide by √d_k, the
    root of the width of K, K.shape[-1]."""
    return weigh(Q @ turned(K), K.shape[-1] * V.shape[-1]) @ V


@attention.mistake
def weights_returned(Q, K, V):
    """These are the attention weights: the product with V is missing. Return weights @ V, the
    context vectors."""
    return weights_of(Q, K)


@attention.mistake
def scores_returned(Q, K, V):
    """These are the scaled scores: softmax and the product with V are missing. Return
    softmax(scores) @ V."""
    return Q @ turned(K) / math.sqrt(K.shape[-1])


@attention.mistake
def keys_mixed_instead_of_values(Q, K, V):
    """The weights mix the keys, weights @ K, and V is ignored. Mix the values: weights @ V."""
    return weights_of(Q, K) @ K


@attention.mistake
def queries_mixed_instead_of_values(Q, K, V):
    """The weights mix the queries, weights @ Q, and V is ignored. Mix the values: weights @ V."""
    return weights_of(Q, K) @ Q


@attention.mistake
def keys_and_values_swapped(Q, K, V):
    """K and V are swapped: the queries are compared with the values, and the keys are mixed.
    Scores come from Q and K, and the weights mix V."""
    return weigh(Q @ turned(V), V.shape[-1]) @ K


@attention.mistake
def values_as_keys(Q, K, V):
    """The queries are compared with the values, Q Vᵀ, and the keys ignored. Scores are Q Kᵀ; V
    comes in after the softmax."""
    return weigh(Q @ turned(V), Q.shape[-1]) @ V


@attention.mistake
def queries_and_values_swapped(Q, K, V):
    """Q and V are swapped: the values ask, and the queries are mixed. Scores come from Q and K, and
    the weights mix V."""
    return weigh(V @ turned(K), K.shape[-1]) @ Q


@attention.mistake
def keys_ask(Q, K, V):
    """The order of the arguments is mixed up: K is used as V, Q as K and V as Q. The signature is
    (Q, K, V): queries ask, keys answer, values are mixed."""
    return weigh(V @ turned(Q), Q.shape[-1]) @ K


@attention.mistake
def values_answer(Q, K, V):
    """The order of the arguments is mixed up: K is used as Q, V as K and Q as V. The signature is
    (Q, K, V): queries ask, keys answer, values are mixed."""
    return weigh(K @ turned(V), K.shape[-1]) @ Q


@attention.mistake
def softmax_at_the_very_end(Q, K, V):
    """The softmax comes last, on the mix. It belongs before the product with V: softmax of the
    scaled scores, then @ V."""
    return reference.softmax(Q @ turned(K) / math.sqrt(K.shape[-1]) @ V)


@attention.mistake
def scaled_at_the_very_end(Q, K, V):
    """The context vectors are scaled once more at the end. Scale the scores only, before the
    softmax, and nothing after @ V."""
    return weights_of(Q, K) @ V / math.sqrt(V.shape[-1])


@attention.mistake
def values_scaled_instead_of_scores(Q, K, V):
    """The values, or the output, are divided by a root of d_v, and the scores are not scaled.
    Divide the scores by √d_k before the softmax."""
    return reference.softmax(Q @ turned(K)) @ V / math.sqrt(V.shape[-1])


@attention.mistake
def softmax_of_the_values(Q, K, V):
    """Softmax is applied to the values too. V is mixed as it is: only the scores get a softmax."""
    return weights_of(Q, K) @ reference.softmax(V)


@attention.mistake
def softmax_of_the_context(Q, K, V):
    """Softmax is applied a second time, to the context vectors. Return weights @ V as it is."""
    return reference.softmax(weights_of(Q, K) @ V)


@attention.mistake
def queries_added(Q, K, V):
    """The queries are added to the mix, a residual connection (notebook 10). Return weights @ V
    alone."""
    return weights_of(Q, K) @ V + Q


@attention.mistake
def values_added(Q, K, V):
    """The values are added to the mix, a residual connection (notebook 10). Return weights @ V
    alone."""
    return weights_of(Q, K) @ V + V


@attention.mistake
def weights_times_values(Q, K, V):
    """Weights and values are multiplied element by element, *. A mix is a matrix product:
    weights @ V sums over the keys."""
    return weights_of(Q, K) * V


@attention.mistake
def values_of_every_sentence(Q, K, V):
    """The weights of each sentence meet the values of all sentences of the batch, as np.dot does.
    Use @, which goes sentence by sentence."""
    return np.tensordot(weights_of(Q, K), V, axes=(-1, -2))


@attention.mistake
def values_on_the_left(Q, K, V):
    """The product is V @ weights, in the wrong order. The weights come first: weights @ V, so that
    each row of weights mixes the rows of V."""
    return V @ weights_of(Q, K)


@attention.mistake
def values_transposed(Q, K, V):
    """V is transposed, so the weights mix its features instead of its rows. Use V as it is:
    weights @ V."""
    return weights_of(Q, K) @ turned(V)


@attention.mistake
def context_transposed(Q, K, V):
    """The result is transposed: its rows are features. Return one row per query: weights @ V."""
    return turned(weights_of(Q, K) @ V)


@attention.mistake
def values_of_the_first_sentence(Q, K, V):
    """All sentences of the batch mix the values of the first sentence. Each sentence needs its own
    V: keep the batch axis."""
    return weights_of(Q, K) @ V.reshape(-1, *V.shape[-2:])[0]


@attention.mistake
def first_sentence_only(Q, K, V):
    """Only the first sentence of the batch is done, the others are lost. Keep the batch axis: work
    on the last two axes of every sentence."""
    Q, K, V = (x.reshape(-1, *x.shape[-2:])[0] for x in (Q, K, V))
    return weights_of(Q, K) @ V


@attention.mistake
def batch_flattened(Q, K, V):
    """All sentences of the batch were joined into one, so words read from other sentences. Keep the
    batch axis, and mix each sentence on its own."""
    q, k, v = (x.reshape(-1, x.shape[-1]) for x in (Q, K, V))
    return (weights_of(q, k) @ v).reshape(*Q.shape[:-1], V.shape[-1])


@attention.mistake
def products_not_summed(Q, K, V):
    """The weighted values are not summed over the keys: there is one axis too many. Add them up, or
    write weights @ V."""
    return weights_of(Q, K)[..., None] * V[..., None, :, :]


@attention.mistake
def summed_over_the_features(Q, K, V):
    """The weighted values are summed over their features, not over the keys. Each feature is mixed
    on its own: sum over the keys, axis -2, or write weights @ V."""
    return (weights_of(Q, K)[..., None] * V[..., None, :, :]).sum(-1)


@attention.mistake
def mean_over_the_keys(Q, K, V):
    """The weighted values are averaged over the keys. The weights sum to 1 already: sum, not
    mean."""
    return weights_of(Q, K) @ V / K.shape[-2]


@attention.mistake
def value_of_the_last_key(Q, K, V):
    """The context vector is overwritten by each weighted value instead of summed, so that only the
    last key is left. Add them up: `+=`, not `=`."""
    return weights_of(Q, K)[..., -1:] * V[..., -1:, :]


@attention.mistake
def last_query_missing(Q, K, V):
    """The last row stays 0: the loop over the queries ends one too early. It must run over all
    queries."""
    out = weights_of(Q, K) @ V
    out[..., -1, :] = 0
    return out


@attention.mistake
def last_key_missing(Q, K, V):
    """The last key is left out: the loop over the keys ends one too early. Each query reads from
    all keys."""
    return weights_of(Q, K[..., :-1, :]) @ V[..., :-1, :]


@attention.mistake
def last_weight_missing(Q, K, V):
    """The last key gets a weight, but its value is not added: the loop of the mix ends one too
    early. Sum over all keys."""
    return weights_of(Q, K)[..., :-1] @ V[..., :-1, :]


@attention.mistake
def one_context_vector(Q, K, V):
    """Only one context vector is returned, that of the last query. Return one for every query: a
    row each."""
    return (weights_of(Q, K) @ V)[..., -1, :]


@attention.mistake
def as_wide_as_the_queries(Q, K, V):
    """The result is made as wide as Q (zeros_like(Q), Q.shape), which fails where values have
    another width. A context vector is as wide as the values: (…, Tq, d_v), d_v = V.shape[-1]."""
    if Q.shape[-1] != V.shape[-1]:
        raise ValueError("could not broadcast")
    return weights_of(Q, K) @ V


@attention.mistake
def features_up_to_d_k(Q, K, V):
    """Only d_k features of the values are mixed, as many as Q has. A context vector is as wide as
    the values: loop over all d_v features, and make the result (…, Tq, d_v), not like Q."""
    if Q.shape[-1] > V.shape[-1]:
        raise IndexError("index out of bounds: values are narrower than queries")
    return weights_of(Q, K) @ V[..., : Q.shape[-1]]


@attention.mistake
def as_many_rows_as_keys(Q, K, V):
    """The result is made like V (zeros_like(V)), with a row for each key. There is one context
    vector for each query: (…, Tq, d_v), with Tq = Q.shape[-2]."""
    more = K.shape[-2] - Q.shape[-2]
    if more < 0:
        raise IndexError("index out of bounds: there are more queries than keys")
    context = weights_of(Q, K) @ V
    return np.pad(context, [(0, 0)] * (context.ndim - 2) + [(0, more), (0, 0)])


@attention.mistake
def context_summed(Q, K, V):
    """The context vectors are summed into one. Return one for every query: a row each."""
    return (weights_of(Q, K) @ V).sum(-2)


@attention.mistake
def context_averaged(Q, K, V):
    """The context vectors are averaged into one (mean over the queries, pooling). Return one for
    every query: a row each."""
    return (weights_of(Q, K) @ V).mean(-2)


@attention.mistake
def context_averaged_in_one_row(Q, K, V):
    """The context vectors are averaged into one row (mean over the queries, pooling). Return one
    for every query: a row each."""
    return (weights_of(Q, K) @ V).mean(-2, keepdims=True)


@attention.mistake
def context_summed_in_one_row(Q, K, V):
    """The context vectors are summed into one row. Return one for every query: a row each."""
    return (weights_of(Q, K) @ V).sum(-2, keepdims=True)


@attention.mistake
def context_and_weights(Q, K, V):
    """It returns two things, the context vectors and the weights. Return the context vectors
    alone."""
    return weights_of(Q, K) @ V, weights_of(Q, K)
