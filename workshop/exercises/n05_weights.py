"""Notebook 05: from scores to weights, and from weights to the context."""

import functools
import math
from collections.abc import Callable

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers


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
    task="Turn numbers into weights that sum to one along any axis, the last by default. An array "
    "of integers is allowed, and numbers of ±1,000 must not overflow: remember what adding 5 did.",
    hints=(
        "What does np.exp(1000) give, and what changes when you subtract the same number from all "
        "scores of a row?",
        "Subtract the largest number along the axis, take exp, divide by the sum along the axis. "
        "keepdims=True keeps the axis, so that the division lines up.",
        "`e = np.exp(x - x.max(axis=axis, keepdims=True))`, then `return e / e.sum(axis=axis, "
        "keepdims=True)`",
    ),
)
softmax.answer("""
    def softmax(x, axis=-1):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)
""")
softmax.answer("""
    def softmax(x, axis=-1):
        x = np.asarray(x, dtype=float)
        shifted = x - np.max(x, axis=axis, keepdims=True)
        weights = np.exp(shifted)
        total = np.sum(weights, axis=axis, keepdims=True)
        return weights / total
""")
softmax.answer("""
    def softmax(x, axis=-1):
        rows = np.moveaxis(x, axis, -1)
        out = np.zeros(rows.shape)
        for i in np.ndindex(rows.shape[:-1]):
            e = np.exp(rows[i] - rows[i].max())
            out[i] = e / e.sum()
        return np.moveaxis(out, -1, axis)
""")
softmax.answer("""
    import torch

    def softmax(x, axis=-1):
        x = x.double()
        e = torch.exp(x - x.max(dim=axis, keepdim=True).values)
        return e / e.sum(dim=axis, keepdim=True)
""")
softmax.why(
    "x - x.max(axis=axis, keepdims=True) | x - np.max(x, axis=axis, keepdims=True) | "
    "x.max(axis=axis, keepdims=True) | np.max(x, axis=axis, keepdims=True) | "
    "rows[i] - rows[i].max() | x.max(dim=axis, keepdim=True).values",
    "With the largest number of its own row subtracted, no exp overflows, no row vanishes, and the "
    "weights stay the same.",
)
softmax.why(
    "np.exp(x - x.max(axis=axis, keepdims=True)) | np.exp(shifted) | np.exp(rows[i] - "
    "rows[i].max()) | torch.exp(x - x.max(dim=axis, keepdim=True).values) | np.exp(x)",
    "exp makes every number positive and keeps the order; the weights are shares of these "
    "exponentials.",
)
softmax.why(
    "e.sum(axis=axis, keepdims=True) | np.sum(weights, axis=axis, keepdims=True) | "
    "e / e.sum(axis=axis, keepdims=True) | weights / total | e / e.sum() | e.sum() | "
    "e.sum(dim=axis, keepdim=True) | e / e.sum(dim=axis, keepdim=True)",
    "Each exponential is divided by the sum of its own row, the same exponentials above and below "
    "the line: so the row sums to 1.",
)
softmax.why(
    "axis=axis | dim=axis",
    "Maximum and sum run along the same axis, the one the caller chose: along it the weights sum "
    "to 1.",
)
softmax.why(
    "keepdims=True | keepdim=True",
    "Maximum and sum keep their axis, with length 1, so that each row meets its own.",
)
softmax.why(
    "np.asarray(x, dtype=float) | np.zeros(rows.shape) | x.double()",
    "Weights have decimals: whole numbers may come in, but what holds the weights must hold "
    "floats.",
)
softmax.why(
    "np.moveaxis(x, axis, -1) | np.moveaxis(out, -1, axis)",
    "The axis of the weights goes to the end for the loop, and back to its place afterwards.",
)
TABLES = (
    ("three scores", np.array([1.0, 2.0, 3.0]), {}),
    ("two rows of three scores", np.array([[1.0, 2.0, 3.0], [1.0, 0.0, -1.0]]), {}),
    ("whole numbers", np.array([[1, 2, 3], [3, 1, 0]]), {}),
    ("the columns, axis=0", numbers(3, 4), {"axis": 0}),
    ("a square", numbers(4, 4), {}),
    ("a batch of two", numbers(2, 3, 4), {}),
    ("the middle axis of a batch", numbers(2, 3, 4), {"axis": 1}),
    ("axis=-2 of a batch", numbers(2, 4, 3), {"axis": -2}),
    ("axis=0 of a cube", numbers(3, 3, 3), {"axis": 0}),
    ("sentences, heads, queries and keys", numbers(2, 2, 2, 2), {}),
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


@softmax.mistake
def one_maximum_for_everything(x, axis=-1):
    """One maximum of the whole array is subtracted, so rows far below it underflow: their
    exponentials are all 0, and 0 / 0 is nan. Each row needs its own max, along axis."""
    e = exp(x, axis=None)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def overflows(x, axis=-1):
    """exp overflows to inf for large scores, and inf / inf is nan. Softmax stays the same when the
    largest score of a row, its max, is subtracted before exp: then nothing overflows."""
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def cut_to_whole_numbers(x, axis=-1):
    """Whole-number input is cut: a result made like x, as zeros_like does it, has its integer dtype
    and stores 0.7 as 0. The weights need an array of floats."""
    return reference.softmax(x, axis).astype(np.asarray(x).dtype)


@softmax.mistake
def always_the_last_axis(x, axis=-1):
    """The axis argument is ignored: it always works along the last axis, and axis=0 changes
    nothing. The caller chooses along which axis the weights sum to 1, for maximum and sum."""
    return reference.softmax(x)


@softmax.mistake
def one_sum_for_everything(x, axis=-1):
    """All entries of the whole array together sum to 1: the axis is missing in the sum. Each row is
    a choice of its own and needs its own sum, along axis."""
    e = exp(x, axis)
    return e / e.sum()


@softmax.mistake
def clipped(x, axis=-1):
    """Large numbers are clipped before exp, so different scores become equal and lose their order.
    Subtract the largest of each row, the max, instead: differences stay, nothing overflows."""
    e = np.exp(np.clip(x, -500, 500))
    return e / e.sum(axis=axis, keepdims=True)


@softmax.mistake
def everything_as_one_row(x, axis=-1):
    """The whole array is one row here: one maximum, and all entries together sum to 1. Each row is
    a choice of its own: take maximum and sum along axis, kept as an axis of length 1."""
    e = exp(x, None)
    return e / e.sum()


@softmax.mistake
def quotient_inside_exp(x, axis=-1):
    """The division stands inside the exponential: the bracket closes too late, or the steps are
    exchanged. First exp, of x less its largest number, then divide by the sum of these."""
    x = np.asarray(x)
    return np.exp(x / np.exp(x).sum(axis=axis, keepdims=True))


@softmax.mistake
def sigmoid(x, axis=-1):
    """This is the sigmoid, 1 / (1 + exp(-x)), of each number alone. In a softmax the numbers of a
    row compete: exponentials, divided by the sum of the row, so they sum to 1."""
    return 1 / (1 + np.exp(-np.asarray(x, dtype=float)))


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
    task="The loss, a surprise, needs the logarithm of a weight. Where the weight is too small for "
    "the computer, such as exp(-1000), it has become 0, and the logarithm of 0 is lost. But the "
    "logarithm you want is an ordinary number. Return the logarithms of the softmax weights along "
    "an axis, for such rows too.",
    hints=(
        "What is log(exp(a) / b), written without an exp?",
        "log(exp(a) / b) = a - log(b). Here a is x less the largest of its row, and b the sum of "
        "the exponentials of that.",
        "`s = x - x.max(axis=axis, keepdims=True)`, then `return s - "
        "np.log(np.exp(s).sum(axis=axis, keepdims=True))`",
    ),
)
log_softmax_exercise.answer("""
    def log_softmax(x, axis=-1):
        s = x - x.max(axis=axis, keepdims=True)
        total = np.exp(s).sum(axis=axis, keepdims=True)
        return s - np.log(total)
""")
log_softmax_exercise.answer("""
    def log_softmax(x, axis=-1):
        m = np.max(x, axis=axis, keepdims=True)
        log_sum = m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True))
        return x - log_sum
""")
log_softmax_exercise.answer("""
    def log_softmax(x, axis=-1):
        rows = np.moveaxis(x, axis, -1)
        out = np.zeros(rows.shape)
        for i in np.ndindex(rows.shape[:-1]):
            s = rows[i] - rows[i].max()
            out[i] = s - np.log(np.exp(s).sum())
        return np.moveaxis(out, -1, axis)
""")
log_softmax_exercise.answer("""
    import torch

    def log_softmax(x, axis=-1):
        x = x.double()
        return x - torch.logsumexp(x, dim=axis, keepdim=True)
""")
log_softmax_exercise.why(
    "x - x.max(axis=axis, keepdims=True) | x.max(axis=axis, keepdims=True) | "
    "np.max(x, axis=axis, keepdims=True) | x - m | rows[i] - rows[i].max()",
    "The largest of its own row is subtracted before exp, so that the sum is neither inf nor 0.",
)
log_softmax_exercise.why(
    "s - np.log(total) | x - log_sum | s - np.log(np.exp(s).sum()) | "
    "shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))",
    "The log of a quotient is a difference, log a − log b; above the line log and exp cancel, so "
    "nothing becomes 0.",
)
log_softmax_exercise.why(
    "np.log(total) | np.log(np.exp(s).sum(axis=axis, keepdims=True)) | np.log(np.exp(s).sum()) | "
    "np.log(np.exp(shifted).sum(axis=axis, keepdims=True)) | "
    "np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True))",
    "The sum of the exponentials stands below the line: its natural logarithm is subtracted, not "
    "the sum itself.",
)
log_softmax_exercise.why(
    "m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) | m",
    "What was subtracted inside exp is added again outside the log: the maximum counts once.",
)
log_softmax_exercise.why(
    "np.exp(s).sum(axis=axis, keepdims=True) | np.exp(shifted).sum(axis=axis, keepdims=True) | "
    "np.exp(s) | np.exp(shifted) | np.exp(x - m) | np.exp(s).sum()",
    "All exponentials of a row are summed, not averaged: each row has its own sum.",
)
log_softmax_exercise.why(
    "axis=axis | dim=axis",
    "Maximum and sum run along the same axis, the one the caller chose: along it the weights sum "
    "to 1.",
)
log_softmax_exercise.why(
    "keepdims=True | keepdim=True",
    "Maximum and sum keep their axis, with length 1, so that each row meets its own.",
)
for label, x, axis in TABLES:
    log_softmax_exercise.probe(label, x, **axis)


@log_softmax_exercise.mistake
def log_of_zero(x, axis=-1):
    """The log is taken of finished weights: one too small for a float is 0 by then, and its log
    minus infinity. log(exp(a) / b) is a − log(b), without exp above the line."""
    return np.log(reference.softmax(x, axis))


@log_softmax_exercise.mistake
def log_of_an_overflow(x, axis=-1):
    """exp overflows for large numbers, and the log of inf / inf is nan. Subtract the largest of
    each row, the max, before exp, and write log(exp(a) / b) as a − log(b)."""
    e = np.exp(x)
    return np.log(e / e.sum(axis=axis, keepdims=True))


@log_softmax_exercise.mistake
def small_number_added(x, axis=-1):
    """A small number such as 1e-9 is added before the log, so every tiny weight gets the same
    logarithm. Those logarithms are ordinary numbers: log(exp(a) / b) is a − log(b)."""
    return np.log(reference.softmax(x, axis) + 1e-9)


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
attention_weights.answer("""
    def attention_weights(Q, K):
        scores = attention_scores(Q, K)
        scaled = scale_scores(scores, K.shape[-1])
        return softmax(scaled)
""")
attention_weights.answer("""
    def attention_weights(Q, K):
        S = Q @ np.swapaxes(K, -1, -2)
        S = S / np.sqrt(K.shape[-1])
        return softmax(S, axis=-1)
""")
attention_weights.answer("""
    def attention_weights(Q, K):
        d_k = Q.shape[-1]
        S = np.einsum("...qd,...kd->...qk", Q, K) / np.sqrt(d_k)
        e = np.exp(S - S.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
""")
attention_weights.answer("""
    import torch

    def attention_weights(Q, K):
        scores = Q @ K.transpose(-2, -1) / K.size(-1) ** 0.5
        return torch.softmax(scores, dim=-1)
""")

attention = Exercise(
    reference.attention,
    notebook="05",
    level=2,
    minutes=12,
    task="Complete the head: from queries, keys and values to all context vectors. There may be "
    "more keys than queries, values may be wider than keys, and sentences may come in a batch. "
    "attention_scores, scale_scores and your softmax are at hand.",
    hints=(
        "For a single query: what are its scores, its weights, and what do the weights mix?",
        "Divide the scores by the root of the width of a key, take the softmax over the keys, the "
        "last axis, and multiply the weights with V.",
        "`return softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-1) @ V`",
    ),
)
attention.answer("""
    def attention(Q, K, V):
        return softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-1) @ V
""")
attention.answer("""
    def attention(Q, K, V):
        context = np.zeros((*Q.shape[:-1], V.shape[-1]))
        for i in range(Q.shape[-2]):
            q = Q[..., i, None, :]
            scores = (q * K).sum(axis=-1) / np.sqrt(K.shape[-1])
            weights = softmax(scores)
            context[..., i, :] = (weights[..., None] * V).sum(axis=-2)
        return context
""")
attention.answer("""
    def attention(Q, K, V):
        scores = scale_scores(attention_scores(Q, K), K.shape[-1])
        weights = softmax(scores)
        context = np.zeros((*Q.shape[:-1], V.shape[-1]))
        for i in range(Q.shape[-2]):
            for j in range(K.shape[-2]):
                context[..., i, :] += weights[..., i, j, None] * V[..., j, :]
        return context
""")
attention.answer("""
    def attention(Q, K, V):
        weights = attention_weights(Q, K)
        return np.einsum("...qk,...kd->...qd", weights, V)
""")
attention.answer("""
    import torch

    def attention(Q, K, V):
        scores = Q @ K.transpose(-2, -1) / K.size(-1) ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights @ V
""")
for exercise in (attention_weights, attention):
    exercise.why(
        "np.sqrt(K.shape[-1]) | np.sqrt(d_k) | K.size(-1) ** 0.5 | math.sqrt(K.shape[-1]) | "
        "scale_scores(scores, K.shape[-1]) | S / np.sqrt(K.shape[-1])",
        "A score sums d_k products and spreads like √d_k: scores are scaled once by that root, "
        "before the softmax.",
    )
    exercise.why(
        "K.shape[-1] | K.size(-1) | Q.shape[-1] | d_k",
        "d_k is the width of queries and keys, their last axis; tokens and the width of values "
        "play no part.",
    )
    exercise.why(
        "np.swapaxes(K, -1, -2) | K.transpose(-2, -1) | K.mT | attention_scores(Q, K) | "
        "Q @ np.swapaxes(K, -1, -2) | Q @ K.transpose(-2, -1) | (q * K).sum(axis=-1) | "
        "np.einsum('...qd,...kd->...qk', Q, K)",
        "Each query meets each key of its own sentence: rows are queries, columns keys, and only "
        "the last two axes of K are swapped.",
    )
    exercise.why(
        "axis=-1 | dim=-1",
        "Each query shares out its attention over the keys, the last axis: rows sum to 1, not "
        "columns.",
    )
    exercise.why(
        "softmax(S, axis=-1) | softmax(scaled) | torch.softmax(scores, dim=-1) | softmax(scores) | "
        "softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-1) | "
        "attention_weights(Q, K)",
        "One softmax, of the scores and not of the result, makes weights: positive, and 1 in sum "
        "for each query.",
    )
attention_weights.why(
    "np.exp(S - S.max(axis=-1, keepdims=True)) | S.max(axis=-1, keepdims=True)",
    "exp makes the weights positive; less the largest of its row, no score overflows.",
)
attention_weights.why(
    "e.sum(axis=-1, keepdims=True) | e / e.sum(axis=-1, keepdims=True)",
    "Divided by the sum of its own row, not by its largest, the weights of a query sum to 1.",
)
attention.why(
    "softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-1) @ V | weights @ V | V | "
    "attention_weights(Q, K) @ V | (weights[..., None] * V).sum(axis=-2) | "
    "np.einsum('...qk,...kd->...qd', weights, V) | V[..., j, :]",
    "Queries and keys only decide the weights; what they mix, summed over the keys, is the values "
    "as they are.",
)
attention.why(
    "K.shape[-2] | range(K.shape[-2])",
    "Every query reads from every key: there may be more keys than queries, or fewer.",
)
attention.why(
    "V.shape[-1] | np.zeros((*Q.shape[:-1], V.shape[-1]))",
    "A context vector is as wide as the values, d_v, with one row for each query.",
)
INPUTS = (  # queries, keys, values
    (
        "one query and two keys",
        np.array([[2.0, 0.0]]),
        np.array([[1.0, 0.0], [0.0, 1.0]]),
        np.array([[10.0, 0.0, 4.0], [0.0, 10.0, -2.0]]),
    ),
    ("three queries, five keys", numbers(3, 2), numbers(5, 2), numbers(5, 4)),
    ("more queries than keys", numbers(5, 6), numbers(2, 6), numbers(2, 3)),
    ("four words, width 4 everywhere", numbers(4, 4), numbers(4, 4), numbers(4, 4)),
    ("a batch of two sentences", numbers(2, 3, 5), numbers(2, 4, 5), numbers(2, 4, 6)),
    ("three sentences, words and features", *[numbers(3, 3, 3)] * 3),
    ("two batch axes", numbers(2, 3, 2, 7), numbers(2, 3, 5, 7), numbers(2, 3, 5, 4)),
    ("four axes of length 2", *[numbers(2, 2, 2, 2)] * 3),
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


@attention.mistake
def scale_from_the_values(Q, K, V):
    """The scale comes from the width of V, d_v. A score is a sum of d_k products of queries and
    keys, so its spread is √d_k: the root of the width of K. Values come in after the softmax."""
    return weigh(Q @ turned(K), V.shape[-1]) @ V


@attention.mistake
def context_and_weights(Q, K, V):
    """It returns two things, the context vectors and the weights, as some libraries do. Asked for
    are the context vectors alone, one for each query."""
    w = weigh(Q @ turned(K), K.shape[-1])
    return w @ V, w


@in_both
def no_softmax(Q, K):
    """The softmax is missing: the scaled scores serve as weights, so some are negative and a row
    sums to anything. Softmax over the keys makes them shares that sum to 1."""
    return Q @ turned(K) / math.sqrt(K.shape[-1])


@in_both
def softmax_over_the_queries(Q, K):
    """The softmax runs over the queries (axis -2): columns sum to 1 instead of rows. Each query
    shares out its attention over the keys, the last axis, so its row must sum to 1."""
    return weigh(Q @ turned(K), K.shape[-1], -2)


@in_both
def not_scaled(Q, K):
    """The scores are not scaled. They spread like √d_k, the root of the width of a key, and make
    the softmax too sharp: divide by √d_k before the softmax."""
    return reference.softmax(Q @ turned(K))


@in_both
def scaled_after_the_softmax(Q, K):
    """The scale comes after the softmax, so the weights of a row no longer sum to 1. Scaling is
    for the scores: divide them by √d_k before the softmax, and nothing afterwards."""
    return reference.softmax(Q @ turned(K)) / math.sqrt(K.shape[-1])


@attention_weights.mistake
def scaled_by_d_k(Q, K):
    """The scores are divided by d_k itself: the square root is missing, or they are scaled twice,
    as when queries and keys are each divided by √d_k. Divide the scores once by √d_k."""
    return reference.softmax(Q @ turned(K) / K.shape[-1])


@in_both
def earlier_keys_only(Q, K):
    """Each query reads only the keys up to its own place, the past: a causal mask, which belongs to
    models that write (notebook 06). Here every query reads every key, later ones too."""
    S = Q @ turned(K)
    return weigh(np.where(np.tril(np.ones(S.shape[-2:], dtype=bool)), S, -1e30), K.shape[-1])


@attention_weights.mistake
def overflows_without_the_maximum(Q, K):
    """exp overflows to inf for large scores, and inf / inf is nan. Subtract the largest score of
    each row, its max, before exp, as a stable softmax does."""
    e = np.exp(Q @ turned(K) / math.sqrt(K.shape[-1]))
    return e / e.sum(-1, keepdims=True)


@attention.mistake
def keys_mixed_instead_of_values(Q, K, V):
    """The weights mix the keys, and V is ignored. Keys only decide how much each query reads; what
    is read, the content to be mixed, are the values V."""
    return weigh(Q @ turned(K), K.shape[-1]) @ K


@attention.mistake
def best_key_only(Q, K, V):
    """Only the value of the best key counts: a hard choice (argmax). Attention is soft: softmax
    gives every key a share, and the context is the mix of all values."""
    S = Q @ turned(K)
    return (S == S.max(-1, keepdims=True)).astype(float) @ V


@attention.mistake
def features_up_to_d_k(Q, K, V):
    """Only d_k features of the values are mixed, as in a result made like Q (zeros_like). A context
    vector is as wide as the values: all d_v features, d_v being the last axis of V."""
    if Q.shape[-1] > V.shape[-1]:
        raise IndexError("index out of bounds: values are narrower than queries")
    return weigh(Q @ turned(K), K.shape[-1]) @ V[..., : Q.shape[-1]]


def added(x: np.ndarray, context: np.ndarray) -> np.ndarray:
    """A residual connection, where the shapes allow it."""
    return context + x if x.shape == context.shape else context


@attention.mistake
def queries_added(Q, K, V):
    """The queries are added to the mix: a residual connection, which a whole layer has (notebook
    10). Attention alone returns the mix of the values, whatever its width."""
    return added(Q, weigh(Q @ turned(K), K.shape[-1]) @ V)


@attention.mistake
def values_added(Q, K, V):
    """The values are added to the mix: a residual connection, which a whole layer has (notebook
    10). Attention alone returns the mix, in which each value has its weight already."""
    return added(V, weigh(Q @ turned(K), K.shape[-1]) @ V)


@attention_weights.mistake
def scaled_by_the_number_of_keys(Q, K):
    """It divides by the root of the number of keys, K.shape[-2]. The scale is the width d_k of a
    key, its features, however many tokens there are: each score sums d_k products."""
    return weigh(Q @ turned(K), K.shape[-2])


@attention_weights.mistake
def two_softmaxes(Q, K):
    """Softmax is applied twice. The first makes shares between 0 and 1; a second one finds them all
    alike and makes the weights nearly equal. Apply it once, to the scaled scores."""
    return reference.softmax(weigh(Q @ turned(K), K.shape[-1]))
