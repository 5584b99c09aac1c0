"""A verdict as HTML and as text: its words, and its evidence in tables."""

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workshop import tables
from workshop.checks.compare import RTOL, Opaque, Raised, TimedOut, in_plain_words, same, shown
from workshop.checks.judge import Evidence
from workshop.tables import Shown, display  # noqa: F401 (whoever shows a verdict finds it here)

# Borders that stand out on white and on black; text keeps the colour of its page.
COLOURS = {"right": "#16885a", "not yet": "#c2640a", "not attempted": "#7b848e"}
MARKS = {"right": "✓", "not yet": "◐", "not attempted": "○"}
CELL = "padding:2px 8px;text-align:right;border:1px solid rgba(128,128,128,.35)"
TABLE = "border-collapse:collapse;margin:4px 0;font-variant-numeric:tabular-nums"
FOLD = "display:inline-block;vertical-align:top;margin:4px 20px 0 0"
ASIDE = "display:inline-block;vertical-align:top;margin:0 16px 0 0"
CAPTION = "text-align:left;caption-side:top;white-space:nowrap"
HIGH, WIDE, MANY = 8, 8, 80  # rows and columns of a table that is shown, and cells of all inputs
LONG = 88  # letters of a value in a line of text


@dataclass(frozen=True)
class Table:
    """Cells in rows with a caption; `heads` name the rows, `tints` from 0 to 1 colour cells."""

    caption: str
    cells: list[list[str]]
    heads: Sequence[str] = ()
    tints: Sequence[Sequence[float]] = ()


Part = str | list[Table]  # a line, with code between backticks; tables that stand side by side


def parts_of(evidence: Evidence, whole: bool = False) -> list[Part]:
    """What went in, then what must come out beside what came out."""
    return [
        f"The smallest case that shows it: {evidence.label}.",
        *inputs_of(evidence.inputs),
        *contrast(evidence.expected, evidence.obtained, whole),
    ]


# ---------------------------------------------------------------- values


def number(x: Any) -> str:
    """Write a number with 4 decimals, a large one with 4 digits, a whole one as it is."""
    large = isinstance(x, float | np.floating) and 1e6 <= abs(x) < math.inf
    return f"{x:.4g}" if large else tables.number(x)


def with_few_decimals(array: np.ndarray) -> Callable[[Any], str]:
    """How to write the numbers of an input: as few decimals as they need, at most 4."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return number
    enough = (d for d in range(4) if np.allclose(array, np.round(array, d), rtol=0, atol=1e-6))
    decimals = next(enough, 4)
    return lambda x: f"{np.round(x, decimals) + 0.0:.{decimals}f}"


def grid(array: np.ndarray, write: Callable[[Any], str] = number) -> list[list[str]]:
    """Write a vector or matrix as rows of cells."""
    return [[write(x) for x in row] for row in np.atleast_2d(array)]


def as_matrix(array: np.ndarray) -> np.ndarray:
    """A batch of one matrix as that matrix, anything else as it is."""
    single = array.ndim > 2 and set(array.shape[:-2]) == {1}
    return array.reshape(array.shape[-2:]) if single else array


def is_small(array: np.ndarray) -> bool:
    """Whether an array fits into a table: a vector, a matrix, or a batch of one matrix."""
    array = as_matrix(array)
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


def inputs_of(inputs: dict[str, Any]) -> list[Part]:
    """Small arrays as tables, everything else in one line."""
    made, said, left = [], [], MANY
    for name, value in inputs.items():
        if isinstance(value, np.ndarray) and is_small(value) and value.size <= left:
            left -= value.size
            shape, matrix = f" {value.shape}" if value.ndim > 2 else "", as_matrix(value)
            made.append(Table(name + shape, grid(matrix, with_few_decimals(matrix))))
        elif isinstance(value, bool | int | float | str | None):
            said.append(f"`{name} = {value!r}`")
        else:
            said.append(f"`{name}`: {summary(value)}")
    line = [("With " if made else "For ") + ", ".join(said) + "."] if said else []
    return [*([made] if made else []), *line]


# ---------------------------------------------------------------- expected and obtained


def contrast(expected: Any, obtained: Any, whole: bool = False) -> list[Part]:
    """What must come out beside what came out: only the part that differs."""
    if failed := failing(obtained):
        stated = isinstance(expected, dict) and any(" " in str(key) for key in expected)
        wanted = [] if stated else outcome("expected", expected)  # findings are no result
        return [*wanted, f"yours: {failed}"]
    if isinstance(expected, dict) and isinstance(obtained, dict):
        return contrast_of_dicts(expected, obtained, whole)
    if isinstance(expected, list) and isinstance(obtained, list):
        return contrast_of_lists(expected, obtained, whole)
    if isinstance(expected, np.ndarray) and isinstance(obtained, np.ndarray):
        return contrast_of_arrays(expected, obtained)
    return both(expected, obtained)


def failing(obtained: Any) -> str:
    """Say what came instead of a result, "" if one came."""
    if isinstance(obtained, Raised):
        return f"it stopped with `{obtained.kind}`: {in_plain_words(obtained.text)}".rstrip(": ")
    if isinstance(obtained, Opaque):
        return f"an object of type `{obtained.kind}`"
    late = isinstance(obtained, TimedOut)
    return "no answer in time" if late else "`None`" if obtained is None else ""


def outcome(caption: str, value: Any) -> list[Part]:
    """One result by itself; of a batch the first matrix."""
    if isinstance(value, np.ndarray):
        index = (0,) * max(0, value.ndim - 2)
        if value.size and is_small(value[index]):
            where = f", [{', '.join(map(str, index))}]" if index else ""
            return [[Table(f"{caption} {value.shape}{where}", grid(value[index]))]]
    if isinstance(value, str):
        return [f"{caption}: {value}"]
    return [f"{caption}: {number(value) if isinstance(value, int | float) else summary(value)}"]


def both(expected: Any, obtained: Any) -> list[Part]:
    """Two results that are no arrays of one shape and kind."""
    parts = [*outcome("expected", expected), *outcome("yours", obtained)]
    if all(isinstance(part, list) for part in parts):
        return [[table for part in parts for table in part]]
    return parts


def contrast_of_dicts(expected: dict, obtained: dict, whole: bool) -> list[Part]:
    """Statements that must hold and do not; else the first entry that differs."""
    shared = [key for key in expected if key in obtained]
    wrong = [key for key in shared if not same(expected[key], obtained[key], whole)]
    if expected.keys() != obtained.keys() and not wrong:
        return both(expected, obtained)
    failed = [key for key in wrong if expected[key] is True and obtained[key] is False]
    if failed:
        return [f"does not hold: {key}" for key in failed[:3]]
    key = wrong[0] if wrong else next(iter(expected))
    return [f"{key}:", *contrast(expected[key], obtained[key], whole)]


def contrast_of_lists(expected: list, obtained: list, whole: bool) -> list[Part]:
    """Several results: the first that differs; a list of words or numbers: both."""
    several = any(isinstance(x, np.ndarray | dict) for x in expected)
    if not several or len(expected) != len(obtained):
        return both(expected, obtained)
    pairs = enumerate(zip(expected, obtained, strict=True))
    i = next((i for i, pair in pairs if not same(*pair, whole)), 0)
    return [f"result {i + 1} of {len(expected)}:", *contrast(expected[i], obtained[i])]


def contrast_of_arrays(expected: np.ndarray, obtained: np.ndarray) -> list[Part]:
    """Tables of both and, for the same shape and kind, of the difference."""
    kinds = {expected.dtype.kind, obtained.dtype.kind}
    if expected.shape != obtained.shape or not expected.size or len(kinds - set("iuf")) == 2:
        return both(expected, obtained)
    gaps = difference_of(expected, obtained)
    if not gaps.any():  # only the kind of number differs
        return both(expected, obtained)
    place, axes = tuple(map(int, np.argwhere(gaps > 0)[0])), max(0, expected.ndim - 2)
    batch, inner = place[:axes], expected.shape[axes:]
    window = tuple(map(span, place[axes:], inner, (HIGH, WIDE)))
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
    return [f"Of shape {shape}: {'; '.join(said)}."] if said else []


def difference_of(expected: np.ndarray, obtained: np.ndarray) -> np.ndarray:
    """|expected − obtained|, 0 within the tolerance, infinite where one is not a number."""
    a, b = expected.astype(float), obtained.astype(float)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(a - b)
    gaps[np.isclose(a, b, rtol=RTOL, atol=1e-5, equal_nan=True)] = 0
    return np.where(np.isnan(gaps), np.inf, gaps)


def side_by_side(expected: np.ndarray, obtained: np.ndarray, gaps: np.ndarray) -> list[Table]:
    """Three tables, or three rows of one for a vector; the differences from 0 to 1 tinted."""
    texts = [grid(expected), grid(obtained), difference_cells(expected, obtained, gaps)]
    largest = np.max(gaps, where=np.isfinite(gaps), initial=0.0) or 1.0
    tints = np.clip(np.atleast_2d(gaps) / largest, 0, 1).tolist()
    names = ["expected", "yours", "difference"]
    if expected.ndim == 1:
        none = [0.0] * expected.size
        return [Table("", [text[0] for text in texts], names, [none, none, tints[0]])]
    return [Table(n, t, (), s) for n, t, s in zip(names, texts, [(), (), tints], strict=True)]


def difference_cells(expected: np.ndarray, obtained: np.ndarray, gaps: np.ndarray) -> list:
    """Yours minus expected, "≠" where that is no number, and 0 for what agrees."""
    gaps = np.atleast_2d(gaps)
    if expected.dtype.kind == "b":
        return np.where(gaps > 0, "≠", "=").tolist()
    with np.errstate(invalid="ignore"):
        minus = np.atleast_2d(obtained.astype(float) - expected.astype(float))
    return np.where(gaps == 0, "0", np.vectorize(signed, otypes=[object])(minus)).tolist()


def signed(x: float) -> str:
    """A difference with its sign, "< 0.0001" when 4 decimals don't show it."""
    if not math.isfinite(x):
        return "≠"
    return "< 0.0001" if abs(x) < 5e-5 else ("+" if x > 0 else "-") + number(abs(x))


# ---------------------------------------------------------------- words


def printable(text: str) -> str:
    """The text without control characters, which a learner's exception may hold."""
    return "".join(c if c.isprintable() or c == "\n" else "·" for c in text)


def prose(text: str) -> str:
    """Escape a text for HTML; what stands between backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(printable(text), quote=False))


def paragraph(text: str) -> str:
    """One line of text as HTML."""
    return f'<p style="margin:4px 0">{prose(text)}</p>'


def fold(summary: str, body: str) -> str:
    """What stays closed until the reader opens it; several stand in one row."""
    return f'<details style="{FOLD}"><summary>{prose(summary)}</summary>{body}</details>'


def code(source: str) -> str:
    """A piece of a program as HTML."""
    body = html.escape(printable(source.strip("\n")), quote=False)
    return f'<pre style="margin:4px 0;white-space:pre-wrap">{body}</pre>'


def aside(body: str) -> str:
    """A bar of the colour of *not yet* beside what belongs together."""
    edge = f"border-left:4px solid {COLOURS['not yet']};padding:2px 0 2px 12px;margin:4px 0"
    return f'<div style="{edge};max-width:60em">{body}</div>'


def card(status: str, title: str, body: str) -> str:
    """A verdict: mark and word of its status, then the rest."""
    edge = f"border-left:4px solid {COLOURS[status]};padding:2px 0 2px 12px;margin:4px 0"
    head = f'<p style="margin:0"><b>{MARKS[status]} {status}</b> · {prose(title)}</p>'
    return f'<div style="{edge};max-width:60em">{head}{body}</div>'


def said(markup: str, text: str) -> Shown:
    """What is shown: HTML, and the same as a text without backticks."""
    return Shown(markup, printable(text.replace("`", "")))


# ---------------------------------------------------------------- tables


def shown_parts(parts: Sequence[Part]) -> tuple[str, str]:
    """Parts of the evidence as HTML and as text."""
    markup, lines = "", []
    for part in parts:
        several = isinstance(part, list)
        markup += f"<div>{''.join(map(table_html, part))}</div>" if several else paragraph(part)
        lines += map(table_text, part) if several else [part.replace("`", "")]
    return markup, printable("\n".join(lines))


def table_html(table: Table) -> str:
    """A table with its caption above; the tint of a cell is mixed into the page's own colour."""
    title = html.escape(table.caption)
    caption = f'<caption style="{CAPTION}">{title}</caption>' if title else ""
    rows = "".join(row_html(table, i) for i in range(len(table.cells)))
    inner = f"{caption}<tbody>{rows}</tbody>"
    return f'<div style="{ASIDE}"><table style="{TABLE}">{inner}</table></div>'


def row_html(table: Table, i: int) -> str:
    """One row, with its head if the table has heads."""
    style = f"{CELL};text-align:left;font-weight:normal"
    heads = [html.escape(table.heads[i])] if table.heads else []
    row = [f'<th scope="row" style="{style}">{name}</th>' for name in heads]
    tints = table.tints[i] if table.tints else [0.0] * len(table.cells[i])
    for cell, share in zip(table.cells[i], tints, strict=True):
        row.append(f'<td style="{CELL}{tint(share)}">{html.escape(cell)}</td>')
    return f'<tr style="background:none">{"".join(row)}</tr>'


def tint(share: float) -> str:
    """A background that leaves text readable on light and on dark pages."""
    return f";background:rgba(214,94,0,{0.1 + 0.35 * share:.2f})" if share > 0 else ""


def table_text(table: Table) -> str:
    """A table in columns of equal width."""
    heads = list(table.heads) or [""] * len(table.cells)
    width = max((len(cell) for row in table.cells for cell in row), default=0)
    edge = max(map(len, heads))
    lines = [
        f"  {head:<{edge}}" + "".join(f"  {cell:>{width}}" for cell in row)
        for head, row in zip(heads, table.cells, strict=True)
    ]
    return "\n".join(([f"{table.caption}:"] if table.caption else []) + lines)


def overview(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words with a title, as HTML; its cells break after commas only."""
    left = CELL.replace("right", "left")
    head = "".join(f'<th scope="col" style="{left}">{prose(name)}</th>' for name in heads)
    body = ""
    for row in rows:
        unbroken = [prose(text).replace(" ", "\u00a0").replace(",\u00a0", ", ") for text in row]
        cells = "".join(f'<td style="{left}">{text}</td>' for text in unbroken)
        body += f'<tr style="background:none">{cells}</tr>'
    table = f'<table style="{TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<p style="margin:4px 0"><b>{prose(title)}</b></p>{table}'
