"""Notebook 06: weights that keep to a mask.

Three exercises turn scores and a mask into weights. The mistakes that people make in all of them
stand once, under "mistakes with any mask", as functions (S, mask).
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers


def rows(*texts: str) -> np.ndarray:
    """A mask drawn in text, 1 where attention is allowed: rows("100", "110")."""
    return np.array([[letter == "1" for letter in text] for text in texts])


# ---------------------------------------------------------------- masked_softmax

masked_softmax = Exercise(
    reference.masked_softmax,
    notebook="06",
    level=2,
    minutes=10,
    task="Turn scores into weights over the allowed keys. Hidden keys get exactly 0, and each row "
    "still sums to 1.",
    hints=(
        "Which score has the exponential 0?",
        "Write −∞ over the hidden scores, in a new array, and take softmax after that.",
        "`return softmax(np.where(mask, S, -np.inf))`",
    ),
)
masked_softmax.answer("""
    def masked_softmax(S, mask):
        scores = np.where(mask, S, -np.inf)
        return softmax(scores)
""")
masked_softmax.answer("""
    def masked_softmax(S, mask):
        low = S + np.where(mask, 0.0, -1e9)
        e = np.exp(low - low.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
""")
masked_softmax.answer("""
    def masked_softmax(S, mask):
        scores = S.copy()
        scores[~np.broadcast_to(mask, S.shape)] = -np.inf
        return softmax(scores, axis=-1)
""")
masked_softmax.answer("""
    import torch

    def masked_softmax(S, mask):
        scores = S.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)
""")
masked_softmax.probe("three scores, one hidden", np.array([[1.0, 2.0, 0.0]]), rows("101"))
masked_softmax.probe(
    "a causal mask", np.array([[0.5, 1, 2], [1, 0, -1], [0.2, 0.4, 3]]), rows("100", "110", "111")
)
masked_softmax.probe("more keys than queries", 2 * numbers(2, 4), rows("0001", "1011"))
masked_softmax.probe("nothing hidden", 2 * numbers(2, 3), rows("111", "111"))
masked_softmax.probe("one causal mask for a batch", 2 * numbers(2, 4, 4), np.tri(4, dtype=bool))
masked_softmax.probe(
    "a mask for each sentence",
    2 * numbers(2, 3, 4),
    np.stack([rows("1000", "1101", "0111"), rows("0011", "0100", "1110")]),
)
masked_softmax.probe(
    "a mask (3, 1, 4)",
    2 * numbers(3, 3, 4),
    rows("1100", "0111", "1010")[:, None],
)
masked_softmax.probe(
    "sentences, heads, queries and keys",
    2 * numbers(2, 3, 2, 4),
    np.stack([rows("1000", "1101"), rows("0011", "0110")])[:, None],
)
masked_softmax.probe(
    "scores of ±1,000",
    np.array([[1000.0, 999, -1000], [-1000, -1001, -999]]),
    rows("101", "110"),
)
masked_softmax.probe("rows far apart", np.array([[0.0, 1, 2], [900, 902, 901]]), rows("110", "101"))
masked_softmax.probe("a large hidden score", np.array([[1.0, 2, 600]]), rows("110"))


# ---------------------------------------------------------------- safe_masked_softmax

safe_masked_softmax = Exercise(
    reference.safe_masked_softmax,
    notebook="06",
    level=3,
    minutes=15,
    task="The softmax that survives an empty row: a query that may read nothing gets zeros instead "
    "of NaN. Every other query gets what `masked_softmax` gives it, and no hidden score, however "
    "large, may spoil a row.",
    hints=(
        "What is the sum of an empty row, and what must it be divided by to stay zero? And over "
        "which scores is the largest taken, the one that keeps exp in range?",
        "Lower the hidden scores first, subtract each row's largest, take exp, and multiply by the "
        "mask. Divide by the row's sum, or by 1 where that sum is 0.",
        "`low = np.where(mask, S, -1e30)`, `e = np.exp(low - low.max(axis=-1, keepdims=True)) "
        "* mask`, `total = e.sum(axis=-1, keepdims=True)`, `return e / np.where(total == 0, 1, "
        "total)`",
    ),
)
safe_masked_softmax.answer("""
    def safe_masked_softmax(S, mask):
        low = np.where(mask, S, -1e30)
        e = np.exp(low - low.max(axis=-1, keepdims=True)) * mask
        total = e.sum(axis=-1, keepdims=True)
        return e / np.where(total == 0, 1, total)
""")
safe_masked_softmax.answer("""
    def safe_masked_softmax(S, mask):
        empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
        weights = softmax(np.where(mask | empty, S, -np.inf))
        return np.where(empty, 0, weights)
""")
safe_masked_softmax.answer("""
    def safe_masked_softmax(S, mask):
        S = np.where(mask, S, -1e9)
        e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
        return e / (e.sum(axis=-1, keepdims=True) + 1e-9)
""")
safe_masked_softmax.answer("""
    def safe_masked_softmax(S, mask):
        mask = np.broadcast_to(mask, S.shape)
        weights = np.zeros_like(S)
        for i in np.ndindex(S.shape[:-1]):
            if mask[i].any():
                weights[i][mask[i]] = softmax(S[i][mask[i]])
        return weights
""")
safe_masked_softmax.answer("""
    import torch

    def safe_masked_softmax(S, mask):
        scores = S.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return torch.nan_to_num(weights)
""")
safe_masked_softmax.probe(
    "a query that may read nothing",
    np.array([[1.0, 2.0, 0.0], [3.0, 0.5, 1.0]]),
    rows("101", "000"),
)
safe_masked_softmax.probe(
    "nothing hidden", np.array([[1.0, 2, 0], [3, 0.5, 1]]), rows("111", "111")
)
safe_masked_softmax.probe(
    "everything hidden", np.array([[1.0, 2, 0], [3, 0.5, 1]]), rows(*2 * ["000"])
)
safe_masked_softmax.probe("more keys than queries", 2 * numbers(2, 4), rows("0001", "1010"))
safe_masked_softmax.probe(
    "causal, and padding on the left",
    2 * numbers(2, 4, 4),
    np.tri(4, dtype=bool) & rows("0111", "0011")[:, None],
)
safe_masked_softmax.probe(
    "one causal mask for a batch", 2 * numbers(2, 4, 4), np.tri(4, dtype=bool)
)
safe_masked_softmax.probe(
    "a mask (3, 1, 4)",
    2 * numbers(3, 3, 4),
    rows("1100", "0000", "1010")[:, None],
)
safe_masked_softmax.probe(
    "sentences, heads, queries and keys",
    2 * numbers(2, 3, 2, 4),
    np.stack([rows("1000", "0000"), rows("0011", "0110")])[:, None],
)
safe_masked_softmax.probe(
    "scores of ±1,000",
    np.array([[1000.0, 999, -1000], [-1000, -1001, -999], [1000, 0, 5]]),
    rows("101", "110", "000"),
)
safe_masked_softmax.probe(
    "rows far apart", np.array([[0.0, 1, 2], [900, 902, 901]]), rows("110", "101")
)
safe_masked_softmax.probe("a hidden score of 10,000", np.array([[1.0, 2, 1e4]]), rows("110"))


@safe_masked_softmax.experiment("a query with a single key")
def single_key(fn):
    weight = fn(np.array([[1.0, 2.0, 3.0]]), rows("010"))[0, 1]
    return {"its weight is 1, within 0.00003": bool(abs(weight - 1) < 3e-5)}


# ---------------------------------------------------------------- padded_weights

padded_weights = Exercise(
    reference.padded_weights,
    notebook="06",
    level=2,
    minutes=10,
    task="Weights for a batch of padded sentences: every query shares out one whole over the real "
    "words of its own sentence, and padding gets nothing. `is_real` has a row of True and False "
    "for each sentence; padding may stand on either side.",
    hints=(
        "What is is_real[b], and does it belong to the rows or the columns of S[b]?",
        "For each sentence hide the columns that are padding, for all of its queries alike, then "
        "stack the results.",
        "`return np.stack([masked_softmax(s, real[None, :]) for s, real in zip(S, is_real)])`",
    ),
)
padded_weights.answer("""
    def padded_weights(S, is_real):
        weights = []
        for s, real in zip(S, is_real):
            weights.append(masked_softmax(s, real[None, :]))
        return np.stack(weights)
""")
padded_weights.answer("""
    def padded_weights(S, is_real):
        scores = np.where(is_real[:, None, :], S, -np.inf)
        return softmax(scores, axis=-1)
""")
padded_weights.answer("""
    def padded_weights(S, is_real):
        weights = np.zeros_like(S)
        for b in range(len(S)):
            scores = S[b].copy()
            scores[:, ~is_real[b]] = -np.inf
            weights[b] = softmax(scores)
        return weights
""")
padded_weights.answer("""
    def padded_weights(S, is_real):
        return masked_softmax(S, is_real[:, None, :])
""")
padded_weights.answer("""
    import torch

    def padded_weights(S, is_real):
        scores = S.masked_fill(~is_real.unsqueeze(1), -torch.inf)
        return torch.softmax(scores, dim=-1)
""")
padded_weights.why(
    "is_real[:, None, :] | real[None, :] | is_real.unsqueeze(1) | scores[:, ~is_real[b]]",
    "Only keys are hidden, and padded queries keep their rows: the mask is (B, 1, Tk), the axis of "
    "the queries in the middle.",
)
padded_weights.why(
    "is_real | zip(S, is_real) | is_real[b] | ~is_real[b]",
    "Each sentence has its own padding, on either side: its own row of is_real says where, key by "
    "key.",
)
padded_weights.why(
    "S[b].copy() | S.copy()", "The caller still needs its scores: write the −∞ into a copy."
)
padded_weights.probe(
    "one sentence, one padded word", np.array([[[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]]), rows("110")
)
padded_weights.probe("padding on the right", 2 * numbers(2, 4, 4), rows("1100", "1110"))
padded_weights.probe("padding on the left", 2 * numbers(2, 4, 4), rows("0011", "0111"))
padded_weights.probe("no padding", 2 * numbers(2, 3, 3), rows("111", "111"))
padded_weights.probe("more keys than queries", 2 * numbers(2, 3, 5), rows("11100", "01111"))
padded_weights.probe("one query", 2 * numbers(3, 1, 4), rows("1100", "0111", "0010"))
padded_weights.probe(
    "as many sentences as queries", 2 * numbers(3, 3, 4), rows("1100", "0111", "1000")
)
padded_weights.probe(
    "three sentences of three words", 2 * numbers(3, 3, 3), rows("100", "011", "110")
)
padded_weights.probe(
    "scores of ±1,000",
    np.array([[[1000.0, 999, -1000], [-1000, -1001, -999]]]),
    rows("110"),
)
padded_weights.probe(
    "sentences far apart",
    np.array([[[0.0, 1, 2], [2, 0, 1]], [[900, 902, 901], [901, 900, 903]]]),
    rows("110", "011"),
)
# Not 700 and more: there, masking after the softmax, which is right otherwise, gives 0 / 0.
padded_weights.probe("a large padded score", np.array([[[1.0, 2, 600]]]), rows("110"))


# ---------------------------------------------------------------- whys with any mask

for exercise in (masked_softmax, safe_masked_softmax, padded_weights):
    exercise.why(
        "-np.inf | -torch.inf | -1e30 | -1000000000.0",
        "A hidden key must get exactly 0, and only exp(−∞) is 0: a score of 0 counts 1, and a "
        "somewhat lower one still counts.",
    )
    exercise.why(
        "mask | ~mask | is_real | ~is_real.unsqueeze(1)",
        'Rows of a mask are queries, columns keys, and True means "may attend": what is hidden is '
        "where it is False.",
    )
for exercise in (masked_softmax, padded_weights):
    exercise.why(
        "axis=-1 | dim=-1",
        "Each query shares out its weight over the keys, the last axis: rows sum to 1, not "
        "columns.",
    )
    exercise.why(
        "np.where(mask, S, -np.inf) | S.masked_fill(~mask, -torch.inf)"
        " | np.where(is_real[:, None, :], S, -np.inf) | masked_softmax(S, is_real[:, None, :]) | "
        "softmax(scores) | softmax(scores, axis=-1) | torch.softmax(scores, dim=-1)",
        "Hidden scores are replaced before the softmax, in a new array to which the mask spreads "
        "(broadcasts): the allowed keys share out 1.",
    )
for exercise in (masked_softmax, safe_masked_softmax):
    exercise.why(
        "scores.max(axis=-1, keepdims=True) | low.max(axis=-1, keepdims=True) | "
        "np.exp(scores - scores.max(axis=-1, keepdims=True)) | "
        "np.exp(low - low.max(axis=-1, keepdims=True)) | "
        "low - low.max(axis=-1, keepdims=True)",
        "The largest allowed score of each row is subtracted, so that no exp overflows and no row "
        "vanishes.",
    )
    exercise.why(
        "e.sum(axis=-1, keepdims=True) | weights.sum(axis=-1, keepdims=True) | "
        "weights / weights.sum(axis=-1, keepdims=True) | e / e.sum(axis=-1, keepdims=True)",
        "What is left in a row after masking is divided by its own sum: so the row sums to 1.",
    )
masked_softmax.why("S.copy()", "The caller still needs its scores: write the −∞ into a copy.")
masked_softmax.why(
    "np.broadcast_to(mask, S.shape)",
    "One mask may serve a whole batch: as an index it must first be spread to the shape of S.",
)
safe_masked_softmax.why(
    "axis=-1 | dim=-1",
    "Keys are the last axis: whether a row is empty, its maximum and its sum run over the keys of "
    "one query.",
)
safe_masked_softmax.why(
    "np.where(total == 0, 1, total) | torch.nan_to_num(weights) | np.where(empty, 0, weights) | "
    "total == 0",
    "The sum of an empty row is 0, and 0 / 0 is NaN: only such a row is divided by 1 and stays "
    "zero.",
)
safe_masked_softmax.why(
    "1e-09 | e.sum(axis=-1, keepdims=True) + 1e-09",
    "What is added to the sum saves an empty row, but takes from all others: it must be too tiny "
    "to see.",
)
safe_masked_softmax.why(
    "mask.any(axis=-1, keepdims=True) | mask[i].any() | empty | "
    "~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)",
    "A row is empty when none of its own keys is allowed: each query of each sentence is tested by "
    "itself.",
)

# ---------------------------------------------------------------- mistakes with any mask


def with_any_mask(function: Callable) -> Callable:
    """Add a mistake (S, mask) to the exercises on weights under a mask."""
    masked_softmax.mistake(function)
    padded_weights.mistake(wraps(function)(lambda S, real: function(S, real[:, None, :])))
    return function


def softmax_of(S: np.ndarray, mask: np.ndarray, hidden: float = -np.inf) -> np.ndarray:
    """Softmax with a number in place of the hidden scores."""
    return reference.softmax(np.where(mask, S, hidden))


@safe_masked_softmax.mistake
@with_any_mask
def zeroed_after_softmax(S, mask):
    """The hidden weights are set to 0 after the softmax: the rows no longer sum to 1. Mask before
    the softmax, so that the allowed keys share out everything, or divide by the new sum."""
    return reference.softmax(S) * mask


@with_any_mask
def hidden_score_is_zero(S, mask):
    """Hidden scores are set to 0 (or multiplied by the mask), but exp(0) is 1: they keep a share,
    even a large one where the others are negative. Only exp(−∞), with -np.inf, is 0."""
    return softmax_of(S, mask, 0.0)


@safe_masked_softmax.mistake
@with_any_mask
def written_into_the_scores(S, mask):
    """The hidden scores are overwritten in the S that was passed in: the caller's scores are
    changed in place. Work on a copy, or let np.where make a new array."""
    S[~np.broadcast_to(mask, S.shape)] = -np.inf
    return reference.safe_masked_softmax(S, mask)


@masked_softmax.mistake
def true_added(S, mask):
    """Hidden scores end up only 1 below the others, as when True and False are added as 1 and 0.
    That weakens them, but nothing is blocked: −∞ must take their place."""
    return reference.softmax(S + mask)


@masked_softmax.mistake
def hidden_maximum_and_a_small_number(S, mask):
    """The maximum is taken over all scores, hidden ones included: beside a large hidden score the
    allowed ones underflow, and with eps in the sum their row is zeros. Mask first, then max."""
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    return e / (e.sum(axis=-1, keepdims=True) + 1e-9)


# ---------------------------------------------------------------- mistakes with empty rows


@safe_masked_softmax.mistake
def nan_in_empty_rows(S, mask):
    """A query without any allowed key gives 0 / 0, which is NaN, and NaN spreads to everything that
    reads it. An empty row must be zeros: treat it separately, or divide it by 1."""
    return softmax_of(S, mask)


@safe_masked_softmax.mistake
def even_share_in_empty_rows(S, mask):
    """A finite number such as -1e9 makes all scores of an empty row equal, and softmax shares out
    the weight evenly (uniform) among forbidden keys. Such a row must become zeros."""
    return softmax_of(S, mask, -1e30)


@safe_masked_softmax.mistake
def all_zero_if_one_is_empty(S, mask):
    """One empty row turns the whole result to zeros. Only the row of the query without any allowed
    key is zero: test each row by itself, and keep the weights of all other rows."""
    return softmax_of(S, mask) if mask.any(axis=-1).all() else np.zeros(S.shape)


@safe_masked_softmax.mistake
def maximum_before_the_mask(S, mask):
    """The maximum is taken over all scores, hidden ones included: beside a large hidden score the
    allowed ones underflow, and their row becomes zeros. Mask the scores before taking the max."""
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@safe_masked_softmax.mistake
def no_maximum(S, mask):
    """exp overflows for scores near 1,000, and underflows near -1,000. Subtract the largest allowed
    score of each row, its max, before exp; that changes nothing else."""
    e = np.exp(S) * mask
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@safe_masked_softmax.mistake
def only_if_all_are_empty(S, mask):
    """It tests whether the whole mask is empty, so a single empty row still gives NaN. Each query
    has its own keys: look for rows without any allowed key, one by one."""
    return softmax_of(S, mask) if mask.any() else np.zeros(S.shape)


@safe_masked_softmax.mistake
def empty_row_sees_itself(S, mask):
    """A query without any allowed key reads itself: its diagonal was opened to avoid NaN. Nothing
    allowed means nothing read: its row must be all zeros."""
    empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
    return np.where(empty, np.eye(*S.shape[-2:]), reference.safe_masked_softmax(S, mask))


@safe_masked_softmax.mistake
def empty_row_sees_first_key(S, mask):
    """A query without any allowed key gives all its weight to the first key, which was opened to
    avoid NaN. Nothing allowed means nothing read: its row must be all zeros."""
    empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
    first = np.arange(S.shape[-1]) == 0
    return np.where(empty, first, reference.safe_masked_softmax(S, mask))


@safe_masked_softmax.mistake
def one_added_to_the_sum(S, mask):
    """1 is added to the sum below the fraction bar (softmax plus one): empty rows are zeros, but
    all other rows sum to less than 1. Treat only the empty row separately."""
    largest = np.maximum(np.where(mask, S, -np.inf).max(axis=-1, keepdims=True), 0)
    e = np.exp(np.where(mask, S, -np.inf) - largest)
    return e / (np.exp(-largest) + e.sum(axis=-1, keepdims=True))


# ---------------------------------------------------------------- mistakes with padding only


@padded_weights.mistake
def padding_on_the_right_assumed(S, is_real):
    """The real tokens are counted and that many kept from the left, as if they came first. With
    padding on the left this hides the words: is_real tells for each position."""
    lengths = is_real.sum(axis=1)
    return softmax_of(S, (np.arange(S.shape[-1]) < lengths[:, None])[:, None, :])


@padded_weights.mistake
def mask_of_the_first_sentence(S, is_real):
    """The padding of the first sentence is used for the whole batch, is_real[0]. Sentences differ
    in length, and each has its own row: keep the batch axis."""
    return softmax_of(S, is_real[0])


@padded_weights.mistake
def mask_ignored(S, is_real):
    """The mask is_real is not used: padded keys get weight as if they were words. Hide their scores
    before the softmax, for every query of the sentence."""
    return reference.softmax(S)
