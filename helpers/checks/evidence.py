"""Turn the evidence of a verdict into words and tables, which `bundle` writes as HTML and text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from helpers.checks.compare import RTOL, Opaque, Raised, TimedOut, in_plain_words, same, shown
from helpers.checks.judge import Evidence
from helpers.exercises.exercise import About

HIGH, WIDE, MANY = 8, 8, 80  # rows and columns of a table that is shown, and cells of all inputs
LONG = 88  # letters of a value in a line of text


@dataclass(frozen=True)
class Words:
    """A line of text; what stands between backticks is code."""

    text: str


@dataclass(frozen=True)
class Table:
    """Cells in rows with a caption; `heads` name the rows, `tints` from 0 to 1 colour cells."""

    caption: str
    cells: list[list[str]]
    heads: Sequence[str] = ()
    tints: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Beside:
    """Tables that stand side by side where there is room."""

    tables: list[Table]


Part = Words | Beside


def parts_of(evidence: Evidence, whole: bool = False) -> list[Part]:
    """What went in, then what must come out beside what came out."""
    return [
        Words(f"The smallest case that shows it: {evidence.label}."),
        *inputs_of(evidence.inputs),
        *contrast(evidence.expected, evidence.obtained, whole),
    ]


# ---------------------------------------------------------------- numbers


def number(x: Any) -> str:
    """Write a number with 4 decimals, a whole one without, never a negative zero."""
    if isinstance(x, bool | np.bool_ | int | np.integer):
        return str(x)
    x = float(x)
    if not math.isfinite(x):
        return str(x)
    text = f"{x:.4f}" if abs(x) < 1e6 else f"{x:.4g}"
    return text.removeprefix("-") if float(text) == 0 else text


def short_numbers(array: np.ndarray) -> list[str]:
    """Write the numbers of an input with as few decimals as they need, at most 4."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return [number(x) for x in array.flat]
    enough = (d for d in range(5) if np.allclose(array, np.round(array, d), rtol=0, atol=1e-6))
    decimals = next(enough, 4)
    return [f"{x + 0.0:.{decimals}f}" for x in np.round(array, decimals).flat]


def grid(array: np.ndarray, short: bool = False) -> list[list[str]]:
    """Write a vector or matrix as rows of cells."""
    rows = np.atleast_2d(array)
    texts = short_numbers(rows) if short else [number(x) for x in rows.flat]
    width = rows.shape[1]
    return [texts[i : i + width] for i in range(0, len(texts), width)]


def is_small(array: np.ndarray) -> bool:
    """Whether an array fits into a table: a vector, a matrix, or a batch of one matrix."""
    if array.ndim > 2 and array.shape[:-2] == (1,) * (array.ndim - 2):
        array = array.reshape(array.shape[-2:])
    rows, columns = np.atleast_2d(array).shape[-2:]
    return 0 < array.ndim <= 2 and 0 < rows <= HIGH and 0 < columns <= WIDE


def summary(x: Any) -> str:
    """Say in a few words what a value is that is not shown in full."""
    if isinstance(x, np.ndarray):
        kinds = {"b": "True/False", "i": "whole numbers", "u": "whole numbers", "f": "floats"}
        return f"{kinds.get(x.dtype.kind, x.dtype)} of shape {x.shape}"
    if isinstance(x, np.random.Generator):
        return "a random generator"
    if isinstance(x, dict) and any(isinstance(v, dict | np.ndarray | tuple) for v in x.values()):
        return "a dictionary with " + ", ".join(map(str, x))
    if callable(x):
        name = getattr(x, "__name__", "")
        return f"the function `{name}`" if name.isidentifier() else "a function"
    if isinstance(x, list | tuple) and x and all(map(callable, x)):
        return "functions: " + ", ".join(f"`{getattr(f, '__name__', '…')}`" for f in x)
    if isinstance(x, list | tuple) and any(isinstance(v, np.ndarray) for v in x):
        return f"{len(x)} arrays"
    text = shown(x)
    return f"`{text}`" if len(text) <= LONG else f"`{text[: LONG - 1]}…`"


# ---------------------------------------------------------------- what went in


def inputs_of(inputs: dict[str, Any]) -> list[Part]:
    """Small arrays as tables, everything else in one line."""
    tables, said, left = [], [], MANY
    for name, value in inputs.items():
        if isinstance(value, np.ndarray) and is_small(value) and value.size <= left:
            left -= value.size
            shape = f" {value.shape}" if value.ndim > 2 else ""
            matrix = value.reshape(value.shape[-2:]) if value.ndim > 2 else value
            tables.append(Table(name + shape, grid(matrix, short=True)))
        elif isinstance(value, bool | int | float | str | None):
            said.append(f"`{name} = {value!r}`")
        else:
            said.append(f"`{name}`: {summary(value)}")
    line = [Words(("With " if tables else "For ") + ", ".join(said) + ".")] if said else []
    return ([Beside(tables)] if tables else []) + line


# ---------------------------------------------------------------- what came out


def contrast(expected: Any, obtained: Any, whole: bool = False) -> list[Part]:
    """What must come out beside what came out: only the part that differs."""
    if isinstance(obtained, Raised | TimedOut | Opaque) or obtained is None:
        stated = isinstance(expected, dict) and any(" " in str(key) for key in expected)
        wanted = [] if stated else outcome("expected", expected)  # findings are no result
        return [*wanted, Words(f"yours: {failing(obtained)}")]
    if isinstance(expected, dict) and isinstance(obtained, dict):
        return contrast_of_dicts(expected, obtained, whole)
    if isinstance(expected, list) and isinstance(obtained, list):
        return contrast_of_lists(expected, obtained, whole)
    if isinstance(expected, np.ndarray) and isinstance(obtained, np.ndarray):
        return contrast_of_arrays(expected, obtained)
    return both(expected, obtained)


def failing(obtained: Any) -> str:
    """Say what came instead of a result."""
    if isinstance(obtained, Raised):
        return f"it stopped with `{obtained.kind}`: {in_plain_words(obtained.text)}".rstrip(": ")
    if isinstance(obtained, TimedOut):
        return "no answer in time"
    return "`None`" if obtained is None else f"an object of type `{obtained.kind}`"


def outcome(caption: str, value: Any) -> list[Part]:
    """One result by itself."""
    if isinstance(value, np.ndarray):
        matrix, where = first_matrix(value, (0,) * max(0, value.ndim - 2))
        if is_small(matrix):
            title = f"{caption} {value.shape}" + (f", {where}" if where else "")
            return [Beside([Table(title, grid(matrix))])]
        return [Words(f"{caption}: {summary(value)}")]
    if isinstance(value, About | bool) or not isinstance(value, int | float):
        value = str(value) if isinstance(value, bool) else value
        return [Words(f"{caption}: {value if isinstance(value, str) else summary(value)}")]
    return [Words(f"{caption}: {number(value)}")]


def both(expected: Any, obtained: Any) -> list[Part]:
    """Two results that are no arrays of one shape and kind."""
    parts = [*outcome("expected", expected), *outcome("yours", obtained)]
    if all(isinstance(part, Beside) for part in parts):
        return [Beside([table for part in parts for table in part.tables])]
    return parts


def first_matrix(array: np.ndarray, index: tuple[int, ...]) -> tuple[np.ndarray, str]:
    """One matrix of a batch, and how the code names it."""
    return array[index], f"[{', '.join(map(str, index))}]" if index else ""


def contrast_of_dicts(expected: dict, obtained: dict, whole: bool) -> list[Part]:
    """Statements that must hold and do not; else the first entry that differs."""
    shared = [key for key in expected if key in obtained]
    wrong = [key for key in shared if not same(expected[key], obtained[key], whole)]
    if expected.keys() != obtained.keys() and not wrong:
        return both(expected, obtained)
    failed = [key for key in wrong if expected[key] is True and obtained[key] is False]
    if failed:
        return [Words(f"does not hold: {key}") for key in failed[:3]]
    key = wrong[0] if wrong else next(iter(expected))
    return [Words(f"{key}:"), *contrast(expected[key], obtained[key], whole)]


def contrast_of_lists(expected: list, obtained: list, whole: bool) -> list[Part]:
    """Several results: the first that differs; a list of words or numbers: both."""
    several = any(isinstance(x, np.ndarray | dict) for x in expected)
    if not several or len(expected) != len(obtained):
        return both(expected, obtained)
    pairs = enumerate(zip(expected, obtained, strict=True))
    i = next((i for i, pair in pairs if not same(*pair, whole)), 0)
    return [Words(f"result {i + 1} of {len(expected)}:"), *contrast(expected[i], obtained[i])]


def contrast_of_arrays(expected: np.ndarray, obtained: np.ndarray) -> list[Part]:
    """Tables of both and, for the same shape and kind, of the difference."""
    kinds = {expected.dtype.kind, obtained.dtype.kind}
    if expected.shape != obtained.shape or not expected.size or len(kinds - set("iuf")) == 2:
        return both(expected, obtained)
    gaps = difference_of(expected, obtained)
    wrong = np.argwhere(gaps > 0)
    place = tuple(map(int, wrong[0])) if len(wrong) else ()
    batch = place[: max(0, expected.ndim - 2)]
    window = tuple(
        span(i, n, limit)
        for i, n, limit in zip(
            place[len(batch) :], expected.shape[len(batch) :], (HIGH, WIDE), strict=False
        )
    )
    if not len(wrong):  # only the kind of number differs
        return both(expected, obtained)
    cut = [a[batch][window] for a in (expected, obtained, gaps)]
    return [*place_of(expected.shape, batch, window), side_by_side(*cut)]


def span(index: int, length: int, limit: int) -> slice:
    """A piece of an axis, not longer than the limit, that holds the index."""
    start = max(0, min(index - 1, length - limit))
    return slice(start, min(length, start + limit))


def place_of(shape: tuple, batch: tuple, window: tuple) -> list[Part]:
    """Say which matrix, rows and columns are shown, unless it is everything."""
    several = math.prod(shape[: len(batch)]) > 1
    said = [f"the first matrix that differs, `[{', '.join(map(str, batch))}]`"] if several else []
    names = ("rows", "columns") if len(window) == 2 else ("entries",)
    for name, piece, length in zip(names, window, shape[len(batch) :], strict=True):
        if piece.stop - piece.start < length:
            said.append(f"{name} {piece.start} to {piece.stop - 1} of {length}")
    return [Words(f"Of shape {shape}: {'; '.join(said)}.")] if said else []


def difference_of(expected: np.ndarray, obtained: np.ndarray) -> np.ndarray:
    """|expected − obtained|, 0 within the tolerance, infinite where one is not a number."""
    a, b = expected.astype(float), obtained.astype(float)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(a - b)
    gaps[np.isclose(a, b, rtol=RTOL, atol=1e-5, equal_nan=True)] = 0
    return np.where(np.isnan(gaps), np.inf, gaps)


def side_by_side(expected: np.ndarray, obtained: np.ndarray, gaps: np.ndarray) -> Beside:
    """Three tables, or three rows of one for a vector."""
    texts = [grid(expected), grid(obtained), difference_cells(expected, obtained, gaps)]
    tints = tints_of(np.atleast_2d(gaps))
    names = ["expected", "yours", "difference"]
    if expected.ndim == 1:
        none = [0.0] * expected.size
        rows = [text[0] for text in texts]
        return Beside([Table("", rows, names, [none, none, tints[0]])])
    shades = [(), (), tints]
    return Beside([Table(n, t, (), s) for n, t, s in zip(names, texts, shades, strict=True)])


def difference_cells(expected: np.ndarray, obtained: np.ndarray, gaps: np.ndarray) -> list:
    """Yours minus expected, "≠" where that is no number, and 0 for what agrees."""
    if expected.dtype.kind == "b":
        return [["≠" if gap else "=" for gap in row] for row in np.atleast_2d(gaps)]
    with np.errstate(invalid="ignore"):
        minus = np.atleast_2d(obtained.astype(float) - expected.astype(float))
    texts = np.vectorize(signed, otypes=[object])(minus)
    return np.where(np.atleast_2d(gaps) == 0, "0", texts).tolist()


def signed(x: float) -> str:
    """A difference with its sign, "< 0.0001" when 4 decimals don't show it."""
    if not math.isfinite(x):
        return "≠"
    if abs(x) < 5e-5:
        return "< 0.0001"
    return ("+" if x > 0 else "-") + number(abs(x))


def tints_of(gaps: np.ndarray) -> list[list[float]]:
    """From 0, no difference, to 1, the largest."""
    finite = gaps[np.isfinite(gaps)]
    largest = finite.max() if finite.size and finite.max() > 0 else 1.0
    return np.clip(gaps / largest, 0, 1).tolist()
