"""Are two observations the same, and if not, what is the difference in words."""

import re
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from workshop.exercises.exercise import About, Untested

MISFITS = {"ValueError", "RuntimeError", "IndexError", "AxisError"}  # shapes, NumPy's and PyTorch's
UNFINISHED = {
    "generator": " Is it `yield` instead of `return`?",
    "coroutine": " Begin it with `def` alone, without `async`.",
    "ellipsis": " A `...` is still in it.",
    "builtin_function_or_method": " Are brackets missing: x.copy() instead of x.copy?",
}
RTOL, ATOL = 1e-4, 1e-5  # for float32 inputs; answers may order their sums differently


@dataclass(frozen=True)
class Raised:
    """The function raised an exception: its kind, its text, the learner's line."""

    kind: str
    text: str = ""
    line: str = ""


@dataclass(frozen=True)
class Opaque:
    """The function returned something that is no number, text, array or collection of them."""

    kind: str


@dataclass(frozen=True)
class TimedOut:
    """The function used up its time, or `waited` too long for something that did not come."""

    waited: bool = False


# ---------------------------------------------------------------- equality


def same(a: Any, b: Any, whole: bool = False) -> bool:
    """Whether two observations agree: kind, shape and values, nothing broadcast or cast.

    With `whole`, whole numbers and floats count as one kind.
    """
    if isinstance(a, Untested) or isinstance(b, Untested):
        return True
    if isinstance(a, Raised) and isinstance(b, Raised):
        return a.kind == b.kind or {a.kind, b.kind} <= MISFITS
    if isinstance(a, About) and isinstance(b, About):
        return bool(np.isclose(a.value, b.value, 0, max(a.within, b.within), equal_nan=True))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        alike = a.shape == b.shape and kind_of(a, whole) == kind_of(b, whole)
        return alike and not unlike(a, b).any()
    if _is_number(a) and _is_number(b):
        return not unlike(a, b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and not differing(a, b, whole)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and not differing(a, b, whole)
    return type(a) is type(b) and bool(a == b)


def unlike(a: Any, b: Any) -> np.ndarray:
    """Where the numbers of two arrays of one shape differ."""
    return ~np.isclose(np.asarray(a, float), np.asarray(b, float), RTOL, ATOL, equal_nan=True)


def differing(a: Any, b: Any, whole: bool = False) -> list:
    """The keys that two dictionaries share, or the places in two lists, where they differ."""
    shared = [key for key in a if key in b] if isinstance(a, dict) else range(len(a))
    return [key for key in shared if not same(a[key], b[key], whole)]


def kind_of(array: np.ndarray, whole: bool = False) -> str:
    """Name what an array holds: "True/False", "whole numbers", "floats" …"""
    if array.dtype == np.float16:
        return "half-precision floats"
    kinds = {"b": "True/False", "i": "whole numbers", "u": "whole numbers", "f": "floats"}
    kind = kinds.get(array.dtype.kind, str(array.dtype))
    return "floats" if whole and kind == "whole numbers" else kind


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


# ---------------------------------------------------------------- differences in words

KEPT = " The numbers are right: only an axis of length 1 is missing."
PLAIN = [  # what Python, NumPy and PyTorch say, and what it means
    (r"^matmul: .*\(size (\d+) is different from (\d+)\)",
     r"A @ B needs as many rows in B as A has columns, but B has \1 and A \2"),
    (r"^operands could not be broadcast together with shapes (\(.*\)) (\([\d,]*\))",
     r"shapes \1 and \2 do not fit: counted from the right, two lengths must be equal, or one 1"),
    (r"^The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
     r"lengths \1 and \2 do not fit: counted from the right, two must be equal, or one 1"),
    (r"^The truth value of an array",
     r"an array is neither true nor false: take one of its numbers, or ask if it `is None`"),
    (r"^cannot reshape array of size (\d+) into shape (\(.*\))",
     r"a reshape keeps every number, but \1 of them do not fill the shape \2"),
    (r"^index (-?\d+) is out of bounds for axis (\d+) with size (\d+)",
     r"there is no index \1 in axis \2: it has length \3, counted from 0"),
    (r"^mat1 and mat2 .*x(\d+) and (\d+)x",
     r"it gets \1 features, but takes \2: nn.Linear(d_in, d_out), or a weight (d_out, d_in)"),
    (r"^non-broadcastable output operand with shape (\(.*\)) doesn't .* shape (\(.*\))",
     r"`+=`, `&=` keep the shape of what stands on the left, \1, but the result is \2"),
    (r"^a leaf Variable", "a parameter changes in place only under `with torch.no_grad():`"),
    (r"values to unpack", "more or fewer names than values: a shape has one number for each axis"),
    (r"'Tensor' and 'tuple'", "one is a tuple: nn.MultiheadAttention returns two things, ours one"),
    (r"^(\w+) has shape \(\)", r"\1 is no matrix. Is it out of a dictionary? ** hands that over"),
    (r"xpected .*dtype", "tensors of different kinds of numbers: make yours with dtype=x.dtype"),
    (r"for \^:", "`^` is no power in Python: write `**`"),
    (r"^Can't call numpy", "a function of NumPy got a tensor that learns: use one of PyTorch's"),
    (r"^Cannot interpret '\d+'", "a shape is one argument, in brackets: np.ones((2, 3))"),
    (r"^only (0-dim|length-1)", "a function of `math` takes one number, NumPy's take whole arrays"),
    (r"einstein sum|einsum\(\)", "the einsum names another number of axes than there are"),
    (r"^Expected target size", "cross_entropy wants the classes in axis 1: flatten the others"),
    (r"^list is not a Module", "nn.Sequential takes its layers one by one: a star before the list"),
    (r'required "forward"', "a ModuleList only keeps layers: call each, or use nn.Sequential"),
]  # fmt: skip


def difference(expected: Any, obtained: Any, whole: bool = False) -> str:
    """Say in a sentence how an observation differs from what was expected."""
    if isinstance(obtained, Raised):
        line = f", in the line `{obtained.line}`" if obtained.line else ""
        endless = " It calls itself without end." if obtained.kind == "RecursionError" else ""
        text = f": {in_plain_words(obtained.text)}" if obtained.text else ""
        return f"It raises {obtained.kind}{text}{line}.{endless}"
    if isinstance(obtained, TimedOut):
        endless = "the time limit ended it. Look for a loop that never ends."
        return f"It does not return: {'it waits for something.' if obtained.waited else endless}"
    if obtained is None:
        return "It returns None: it reaches no `return`, or one whose value is None."
    if isinstance(expected, dict) and isinstance(obtained, dict):
        return _difference_of_dicts(expected, obtained, whole)
    if isinstance(expected, np.ndarray) and isinstance(obtained, np.ndarray):
        return _difference_of_arrays(expected, obtained, whole)
    if isinstance(expected, np.ndarray) and isinstance(obtained, list):
        return _difference_of_several(expected, obtained)
    if isinstance(expected, list) and any(isinstance(x, np.ndarray | list) for x in expected):
        return _difference_of_results(expected, obtained, whole)
    numbers = _is_number(expected) and _is_number(obtained)
    if type_name(expected) != type_name(obtained) and not numbers:
        why = UNFINISHED.get(obtained.kind, "") if isinstance(obtained, Opaque) else ""
        return f"It returns {type_name(obtained)}, but must return {type_name(expected)}.{why}"
    return f"It gives {shown(obtained)}, but must give {shown(expected)}."


def in_plain_words(text: str) -> str:
    """NumPy's words for what does not fit, in those of the course."""
    for pattern, plain in PLAIN:
        if found := re.search(pattern, text):
            return found.expand(plain)
    return text.rstrip(".")


def type_name(x: Any) -> str:
    """Name a value's type with its article, as a learner would say it."""
    if isinstance(x, Opaque):
        return f"an object of type {x.kind}"
    names = {dict: "a dictionary", list: "a list", str: "a text", bool: "True or False"}
    names |= {type(None): "None", int: "a whole number", float: "a number", np.ndarray: "an array"}
    return names.get(type(x), type(x).__name__)


def shown(x: Any) -> str:
    """Write a small value; numbers with 4 decimals."""
    if isinstance(x, About):
        return f"{x.value:.4f} (± {x.within:g})"
    if isinstance(x, float):
        return f"{x:.4f}"
    if isinstance(x, np.ndarray):
        return np.array2string(x, precision=4, suppress_small=True, threshold=60, max_line_width=88)
    if isinstance(x, Opaque):
        return type_name(x)
    text = f"[{', '.join(map(shown, x))}]" if isinstance(x, list) else repr(x)
    return text if len(text) <= 300 else text[:299] + "…"


def _difference_of_dicts(expected: dict, obtained: dict, whole: bool) -> str:
    """The first entry that differs; a statement that must hold is quoted."""
    wrong = differing(expected, obtained, whole)
    missing = [key for key in expected if key not in obtained]
    surplus = [key for key in obtained if key not in expected]
    if missing and not wrong:
        if f"{surplus[0] if surplus else None}.weight" == missing[0]:
            return f"{surplus[0]} must be an nn.Linear, whose matrix is called {missing[0]}."
        there = f", {surplus[0]!r} does not belong there" if surplus else ""
        return f"{missing[0]!r} is missing{there}."
    if not wrong:
        return f"{surplus[0]!r} does not belong there."
    key = wrong[0]
    if expected[key] is True and obtained[key] is False:
        return f"What must hold, and does not: {key}."
    if isinstance(expected[key], np.ndarray | list | dict):
        return f"{key}: {difference(expected[key], obtained[key], whole)}"
    return f"{key}: {shown(obtained[key])}, but must be {shown(expected[key])}."


def _difference_of_several(expected: np.ndarray, obtained: list) -> str:
    """A list or tuple where one array was asked for: perhaps it holds the right one."""
    if not obtained or not all(isinstance(x, np.ndarray) for x in obtained):
        return "It returns a list, but must return an array: np.array(…) makes one."
    right = [i for i, x in enumerate(obtained) if same(x, expected)]
    also = f" Number {right[0] + 1} of them is right: return it alone." if right else ""
    arrays = "an array in a list" if len(obtained) == 1 else f"{len(obtained)} arrays"
    return f"It returns {arrays}, but must return one array.{also}"


def _difference_of_results(expected: list, obtained: Any, whole: bool) -> str:
    if not isinstance(obtained, list):
        return f"It returns one thing, {type_name(obtained)}, but must return {len(expected)}."
    if len(expected) != len(obtained):
        many = "1 thing" if len(obtained) == 1 else f"{len(obtained)} things"
        return f"It returns {many}, but must return {len(expected)}."
    i = differing(expected, obtained, whole)[0]
    which = f"Result {i + 1} of {len(expected)}: " if len(expected) > 1 else ""
    return which + difference(expected[i], obtained[i], whole)


def _difference_of_arrays(expected: np.ndarray, obtained: np.ndarray, whole: bool) -> str:
    if expected.shape != obtained.shape:
        return _difference_of_shapes(expected, obtained)
    if kind_of(expected, whole) != kind_of(obtained, whole):
        return f"It holds {kind_of(obtained)}, but must hold {kind_of(expected)}."
    if expected.dtype.kind == "b":
        return _difference_of_masks(expected, obtained)
    wrong = unlike(obtained, expected)
    count = "All" if wrong.all() else f"{wrong.sum()} of {wrong.size}"
    related = _relation(expected, obtained)
    told = [text for text in (_not_finite(obtained), related, _sums(expected, obtained)) if text]
    enough = related or (told and wrong.all())
    return " ".join(told if enough else [*told, f"{count} numbers differ."])


def _difference_of_shapes(expected: np.ndarray, obtained: np.ndarray) -> str:
    """Name the axis that is missing, too long, or in the wrong place."""
    want, got = expected.shape, obtained.shape
    text = f"Its shape is {got}, but must be {want}."
    if len(got) != len(want):
        squeezed = len(got) < len(want) and same(obtained.squeeze(), expected.squeeze())
        more = "too many" if len(got) > len(want) else "too few"
        return f"{text} It has {more} axes: {len(got)} instead of {len(want)}.{KEPT * squeezed}"
    for axes in permutations(range(obtained.ndim)):
        if same(obtained.transpose(axes), expected):
            return f"{text} The numbers are right, only transposed: axes stand in the wrong order."
    wrong = [i for i, (a, b) in enumerate(zip(got, want, strict=True)) if a != b]
    lengths = ", ".join(f"axis {i} has length {got[i]} instead of {want[i]}" for i in wrong)
    return f"{text} That is, {lengths}."


def _difference_of_masks(expected: np.ndarray, obtained: np.ndarray) -> str:
    if same(~obtained, expected) and expected.any() and not expected.all():
        return "True and False are the other way round: the mask is inverted."
    counts = (obtained & ~expected).sum(), (expected & ~obtained).sum()
    told = [f"{n} {'entry is' if n == 1 else 'entries are'} {got} that must be {not got}"
            for n, got in zip(counts, (True, False), strict=True) if n]  # fmt: skip
    return f"{' and '.join(told)}."


def _not_finite(obtained: np.ndarray) -> str:
    if np.isnan(obtained).any():
        return "It holds nan, as 0 / 0, ∞ − ∞ and 0 · ∞ give it."
    return "It holds infinity, as 1 / 0 or a large exp gives." if np.isinf(obtained).any() else ""


def _relation(expected: np.ndarray, obtained: np.ndarray) -> str:
    """A simple way in which all numbers differ, where it is no chance: the order, a factor."""
    filled = np.abs(expected) > 1e-3
    if not np.isfinite(obtained).all() or filled.sum() < 2 or expected.dtype.kind != "f":
        return ""
    several = len(np.unique(expected)) > 5
    if several and same(np.sort(obtained, None), np.sort(expected, None)):
        return "The right numbers stand in the wrong places."
    factor = np.median(obtained[filled] / expected[filled])
    if not same(expected * factor, obtained.astype(float)):
        return ""
    times = f"{factor:.4f} times what it should be" if abs(factor) > 1e-6 else 0
    return f"Every number is {times}."


def _sums(expected: np.ndarray, obtained: np.ndarray) -> str:
    """Weights and probabilities: whether rows sum to 1, and what does instead."""
    if expected.dtype.kind != "f" or (expected < -ATOL).any() or not np.isfinite(obtained).all():
        return ""
    axes, others = _axes_of_shares(expected), _axes_of_shares(obtained)
    if not axes or axes[0] in others:
        return ""
    if others:
        return f"It sums to 1 along axis {others[0]} instead of axis {axes[0]}."
    sums = obtained.sum(axes[0], keepdims=True)
    off = sums[~np.isclose(sums, 1, atol=1e-4)][0]
    return f"It must sum to 1 along axis {axes[0]}, but a sum is {off:.4f}."


def _axes_of_shares(x: np.ndarray) -> list[int]:
    """The axes, of more than one entry, along which everything sums to 1."""
    long = (axis for axis, n in enumerate(x.shape) if n > 1)
    return [axis for axis in long if np.allclose(x.sum(axis), 1, atol=1e-4)]
