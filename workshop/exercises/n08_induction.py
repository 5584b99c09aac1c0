"""Notebook 08: does a head continue what the text has said before?"""

import numpy as np

from helpers.operations import softmax
from workshop.exercises.exercise import Draw, Exercise, numbers


def induction_score(weights: np.ndarray, ids: np.ndarray) -> float:
    """How much a head reads what came next the last time: (T, T) weights, (T,) ids → 0 … 1.

    Over all places whose token stood before, the mean weight that the place gives to the token
    right after its last earlier occurrence, which may be the place itself; 0.0 where no token
    stands twice. Raises ValueError for shapes that do not fit. After Olsson et al. (2022).
    """
    weights, ids = np.asarray(weights), np.asarray(ids)
    if ids.ndim != 1 or weights.shape != (len(ids), len(ids)):
        raise ValueError(f"weights {weights.shape} and ids {ids.shape} must be (T, T) and (T,)")
    found, last = [], {}
    for i, token in enumerate(ids.tolist()):
        if token in last:
            found.append(weights[i, last[token] + 1])
        last[token] = i
    return float(np.mean(found)) if found else 0.0


induction = Exercise(
    induction_score,
    notebook="08",
    level=2,
    minutes=10,
    task="A number between 0 and 1 that finds such heads in any model. Take each place whose "
    "token occurred earlier, and find its latest earlier place: how much weight does it give to "
    "the token right after that? Return the mean over these places, and 0.0 where no token stands "
    "twice.",
    hints=(
        "In the ids 7 3 5 7, which place holds a token that stood before, and which weight of its "
        "row counts?",
        "For place i, look through the ids before it for the same token; if the last one stands at "
        "j, then weights[i, j + 1] counts. Gather these numbers, and take their mean.",
        "`found.append(weights[i, before[-1] + 1])`, and at the end `return float(np.mean(found)) "
        "if found else 0.0`",
    ),
)


def shares(T: int) -> Draw:
    """(T, T) weights: each row sums to one, without a mask."""
    return numbers(T, T).then(lambda x: softmax(2 * x))


quarters = np.array([[4, 0, 0, 0], [1, 3, 0, 0], [1, 1, 2, 0], [0, 2, 1, 1]]) / 4
induction.probe("one token twice", quarters, np.array([7, 3, 5, 7]))
induction.probe("two tokens twice", shares(5), np.array([0, 1, 2, 0, 1]))
induction.probe("a token three times", shares(5), np.array([5, 2, 5, 3, 5]))
induction.probe("no token twice", shares(4), np.array([3, 0, 2, 1]))
induction.probe("twice in a row", shares(4), np.array([4, 1, 1, 2]))
induction.probe("one token only", shares(4), np.array([6, 6, 6, 6]))
induction.probe("ids of a large vocabulary", shares(6), np.array([907, 12, 907, 50256, 12, 3]))
induction.probe("a single token", np.ones((1, 1)), np.array([2]))
induction.probe("forty tokens", shares(40), np.arange(40) * 7 % 11 % 6)
induction.answer("""
    def induction_score(weights, ids):
        found = []
        for i in range(len(ids)):
            before = np.flatnonzero(ids[:i] == ids[i])  # where this token stood earlier
            if len(before) > 0:
                found.append(weights[i, before[-1] + 1])
        return float(np.mean(found)) if found else 0.0
""")
induction.answer("""
    def induction_score(weights, ids):
        total, count, last = 0.0, 0, {}
        for i, token in enumerate(ids.tolist()):
            if token in last:
                total += float(weights[i, last[token] + 1])
                count += 1
            last[token] = i
        return total / max(count, 1)
""")
induction.answer("""
    def induction_score(weights, ids):
        found = []
        for i in range(len(ids)):
            for j in range(i - 1, -1, -1):
                if ids[j] == ids[i]:
                    found.append(float(weights[i, j + 1]))
                    break
        if len(found) == 0:
            return 0.0
        return sum(found) / len(found)
""")
induction.answer("""
    def induction_score(weights, ids):
        same = np.tril(ids[:, None] == ids[None, :], k=-1)
        rows = np.flatnonzero(same.any(axis=1))
        if len(rows) == 0:
            return 0.0
        last = len(ids) - 1 - same[rows, ::-1].argmax(axis=1)
        return float(weights[rows, last + 1].mean())
""")
induction.answer("""
    import torch

    def induction_score(weights, ids):
        found = []
        for i in range(1, len(ids)):
            before = torch.nonzero(ids[:i] == ids[i]).flatten()
            if len(before) > 0:
                found.append(weights[i, before[-1] + 1].item())
        return sum(found) / len(found) if found else 0.0
""")
induction.why(
    "before[-1] + 1 | last[token] + 1 | j + 1 | last + 1",
    "What counts is the token that came next, one place after the earlier occurrence.",
)
induction.why(
    "before[-1] | last[token] = i | range(i - 1, -1, -1) | break | "
    "len(ids) - 1 - same[rows, ::-1].argmax(axis=1)",
    "If a token stood before several times, the last of them counts: what came next then.",
)
induction.why(
    "ids[:i] == ids[i] | np.flatnonzero(ids[:i] == ids[i]) | ids[j] == ids[i] | token in last | "
    "np.tril(ids[:, None] == ids[None, :], k=-1) | k=-1 | "
    "torch.nonzero(ids[:i] == ids[i]).flatten() | ids[:i]",
    "Only places before this one are searched for the same token: not the place itself.",
)
induction.why(
    "weights[i, before[-1] + 1] | weights[i, last[token] + 1] | weights[i, j + 1] | "
    "weights[rows, last + 1]",
    "Rows are the words that ask, columns those that are read: place i asks.",
)
induction.why(
    "len(before) > 0 | rows | same.any(axis=1) | if found else 0.0 | found | len(rows) == 0 | "
    "len(found) == 0 | max(count, 1) | 0.0",
    "Places whose token is new have nothing to continue and do not count; if all are new, it is 0.",
)
induction.why(
    "np.mean(found) | float(np.mean(found)) | sum(found) / len(found) | total / max(count, 1) | "
    "weights[rows, last + 1].mean() | count += 1 | len(found)",
    "The mean over those places alone, so that a perfect head gets 1 in a text of any length.",
)
induction.why(
    "range(len(ids)) | enumerate(ids.tolist()) | range(1, len(ids))",
    "Each place of the text is tried, up to the last.",
)


def gathered(weights: np.ndarray, ids: np.ndarray, which: int = -1, shift: int = 1) -> list[float]:
    """The weights that count, or by mistake others: of another occurrence, or beside it."""
    found = []
    for i in range(len(ids)):
        before = np.flatnonzero(ids[:i] == ids[i])
        if len(before):
            found.append(float(weights[i, before[which] + shift]))
    return found


def mean(found: list[float]) -> float:
    return float(np.mean(found)) if found else 0.0


@induction.mistake
def reads_the_same_token(weights, ids):
    """This is the weight on the earlier occurrence itself, which a head for the same word gives.
    What counts is the token that came right after it: one column further, j + 1."""
    return mean(gathered(weights, ids, shift=0))


@induction.mistake
def reads_the_token_before(weights, ids):
    """This is the weight on the token before the earlier occurrence. What counts is the one that
    came right after it, j + 1."""
    return mean(gathered(weights, ids, shift=-1))


@induction.mistake
def first_occurrence(weights, ids):
    """Where a token stood before several times, the first of them is taken. Take the last: what
    came next the last time."""
    return mean(gathered(weights, ids, which=0))


@induction.mistake
def rows_and_columns_exchanged(weights, ids):
    """Rows and columns are exchanged: this is how much the earlier token reads the later one. Row i
    belongs to the place that asks: weights[i, j + 1]."""
    return mean(gathered(weights.T, ids))


@induction.mistake
def every_place_counts(weights, ids):
    """The sum is divided by the number of all places. Those whose token is new have nothing to
    continue: divide by the number of places whose token stood before."""
    return sum(gathered(weights, ids)) / len(ids)


@induction.mistake
def sum_of_the_weights(weights, ids):
    """This is the sum of the weights that count, which grows with the text. Divide it by their
    number, so that a perfect head gets 1."""
    return float(sum(gathered(weights, ids)))


@induction.mistake
def nan_where_no_token_stands_twice(weights, ids):
    """Where no token stands twice, the result is NaN, the mean of nothing. There it must be 0.0."""
    return mean(gathered(weights, ids)) if len(set(ids.tolist())) < len(ids) else float("nan")


@induction.mistake
def all_occurrences(weights, ids):
    """All earlier occurrences of a token count here. Only the last of them does: one number for
    each place whose token stood before."""
    found = [
        float(weights[i, j + 1]) for i in range(len(ids)) for j in range(i) if ids[j] == ids[i]
    ]
    return mean(found)


@induction.mistake
def only_the_last_place(weights, ids):
    """Only the last place of the text is looked at. Every place whose token stood before counts,
    and the result is their mean."""
    before = np.flatnonzero(ids[:-1] == ids[-1])
    return float(weights[-1, before[-1] + 1]) if len(before) else 0.0
