"""A verdict as HTML and as text: its words, the line to change, expected and obtained."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import indent
from typing import Any

import numpy as np

from workshop import arguments
from workshop.checks import compare
from workshop.checks.compare import Opaque, Raised, TimedOut, differing, in_plain_words
from workshop.checks.judge import Evidence
from workshop.checks.repair import Repair, same_ends
from workshop.tables import Shown, display, overview, table_html, table_text  # noqa: F401 (for verdicts)

# Borders that stand out on white and on black; text keeps the colour of its page.
COLOURS = {"right": "#16885a", "not yet": "#c2640a", "not attempted": "#7b848e"}
MARKS = {"right": "✓", "not yet": "◐", "not attempted": "○"}
FRAME = f"outline:2px solid {COLOURS['not yet']};outline-offset:-2px"
FOLD = "display:inline-block;vertical-align:top;margin:4px 20px 0 0"
ASIDE = "display:inline-block;vertical-align:top;margin:0 16px 0 0"
MARKED = "color:inherit;border-radius:2px;background:"  # what goes, what comes
GONE, CAME = MARKED + "rgba(194,100,10,.28)", MARKED + "rgba(22,136,90,.28)"
LARGE, MANY = 8, 80  # rows or columns of a table that is shown, and cells of all inputs
OPEN = 24  # cells of inputs that stand open; more are folded
LONG = 88  # letters of a value in a line of text


@dataclass(frozen=True)
class Table:
    """Cells in rows with a caption; `heads` name the rows, `framed` is the place of one cell."""

    caption: str
    cells: list[list[str]]
    heads: Sequence[str] = ()
    framed: tuple[int, int] | None = None


Part = str | Table  # a line, with code between backticks; a table, beside those next to it


# ---------------------------------------------------------------- the line to change


def change(repair: Repair) -> tuple[str, str]:
    """The learner's line and what it becomes, what differs marked: HTML and text."""
    before = repair.before or "(a new line here)"
    after = before if repair.rivals else repair.after or "(nothing)"
    rows = [(f"line {repair.line}, yours:", before, GONE), ("changed:", after, CAME)]
    rows, span = rows[: 2 - repair.rivals], common(before, after)
    markup = "".join(paragraph(head) + code(text, span, style) for head, text, style in rows)
    return markup, "\n".join(f"{head}\n{indent(text, ' ' * 4)}" for head, text, _ in rows)


def common(a: str, b: str) -> tuple[int, int]:
    """How many letters two lines share at their beginning and at their end, in whole words."""
    x, y = (re.findall(r"\w+|\s+|[^\w\s]", line) for line in (a, b))
    begin, end = same_ends(x, y)
    return len("".join(x[:begin])), len("".join(x[len(x) - end :]))


def code(source: str, span: tuple[int, int] | None = None, style: str = "") -> str:
    """A piece of a program as HTML; what is between the beginning and the end of a span marked."""
    source = printable(source.strip("\n"))
    cut = (span[0], len(source) - span[1]) if span else (0, 0)
    pieces = (source[: cut[0]], source[cut[0] : cut[1]], source[cut[1] :])
    first, middle, last = (html.escape(piece, quote=False) for piece in pieces)
    marked = f'<mark style="{style}">{middle}</mark>' if middle else ""
    return f'<pre style="margin:4px 0;white-space:pre-wrap">{first}{marked}{last}</pre>'


# ---------------------------------------------------------------- values


def number(x: Any) -> str:
    """Write a number with 4 decimals, a large one with 4 digits, a whole one as it is."""
    large = isinstance(x, float | np.floating) and 1e6 <= abs(x) < math.inf
    return f"{x:.4g}" if large else arguments.number(x)


def grid(array: np.ndarray) -> list[list[str]]:
    """Write a vector or matrix as rows of cells, with as few decimals as its floats need."""
    array = np.atleast_2d(array)
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return [[number(x) for x in row] for row in array]
    enough = (d for d in range(4) if np.allclose(array, np.round(array, d), rtol=0, atol=1e-6))
    decimals = next(enough, 4)
    return [[f"{np.round(x, decimals) + 0.0:.{decimals}f}" for x in row] for row in array]


def is_small(array: np.ndarray) -> bool:
    """Whether an array fits into a table."""
    return 0 < array.ndim <= 2 and 0 < min(array.shape) and max(array.shape) <= LARGE


def summary(x: Any) -> str:
    """Say in a few words what a value is that is not shown in full."""
    if isinstance(x, np.ndarray):
        return f"{compare.kind_of(x)} of shape {x.shape}"
    if isinstance(x, np.random.Generator):
        return "a random generator"
    if isinstance(x, dict) and any(isinstance(v, dict | np.ndarray | tuple) for v in x.values()):
        return "a dictionary with " + ", ".join(map(str, x))
    if callable(x):
        name = getattr(x, "__name__", "")
        return f"the function `{name}`" if name.isidentifier() else "a function"
    if isinstance(x, list | tuple) and x and all(map(callable, x)):
        return ", ".join(map(summary, x))
    if isinstance(x, list | tuple) and any(isinstance(v, np.ndarray) for v in x):
        return "an array in a list" if len(x) == 1 else f"{len(x)} arrays"
    text = compare.shown(x)
    return f"`{text}`" if len(text) <= LONG else f"`{text[: LONG - 1]}…`"


def inputs_of(inputs: dict[str, Any]) -> list[Part]:
    """Small arrays as tables, everything else in one line."""
    made, said, left = [], [], MANY
    for name, value in inputs.items():
        matrix = value if isinstance(value, np.ndarray) else np.zeros(())
        if {*matrix.shape[:-2]} == {1}:  # a batch of one
            matrix = matrix.reshape(matrix.shape[-2:])
        if is_small(matrix) and matrix.size <= left:
            left -= matrix.size
            shape = f" {value.shape}" if value.ndim > 2 else ""
            made.append(Table(name + shape, grid(matrix)))
        elif isinstance(value, bool | int | float | str | None):
            said.append(f"`{name} = {value!r}`")
        else:
            said.append(f"`{name}`: {summary(value)}")
    line = [("With " if made else "For ") + ", ".join(said) + "."] if said else []
    return [*made, *line]


# ---------------------------------------------------------------- expected and obtained


def contrast(expected: Any, obtained: Any, whole: bool = False) -> list[Part]:
    """What must come out beside what came out: only the part that differs."""
    if failed := failing(obtained):
        stated = isinstance(expected, dict)  # findings are no result
        return [*([] if stated else [outcome("expected", expected)]), f"yours: {failed}"]
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


def outcome(caption: str, value: Any) -> Part:
    """One result by itself; of a batch the first matrix."""
    if isinstance(value, np.ndarray) and value.size:
        index = (0,) * (value.ndim - 2)
        if is_small(value[index]):
            where = f", [{', '.join(map(str, index))}]" if index else ""
            return Table(f"{caption} {value.shape}{where}", grid(value[index]))
    plain = isinstance(value, int | float | str)
    return f"{caption}: {number(value) if plain else summary(value)}"


def both(expected: Any, obtained: Any) -> list[Part]:
    """Two results that are no arrays of one shape and kind."""
    return [outcome("expected", expected), outcome("yours", obtained)]


def contrast_of_dicts(expected: dict, obtained: dict, whole: bool) -> list[Part]:
    """Statements that must hold and do not; else the first entry that differs."""
    wrong = differing(expected, obtained, whole)
    failed = [key for key in wrong or obtained if obtained[key] is False]
    if failed := [key for key in failed if expected.get(key, True) is True]:
        return [f"does not hold: {key}" for key in failed[:3]]
    if not wrong:
        return both(expected, obtained)
    return [f"{wrong[0]}:", *contrast(expected[wrong[0]], obtained[wrong[0]], whole)]


def contrast_of_lists(expected: list, obtained: list, whole: bool) -> list[Part]:
    """Several results: the first that differs; a list of words or numbers: both."""
    several = any(isinstance(x, np.ndarray) for x in expected)
    if not several or len(expected) != len(obtained):
        return both(expected, obtained)
    i = differing(expected, obtained, whole)[0]
    return [f"result {i + 1} of {len(expected)}:", *contrast(expected[i], obtained[i])]


def contrast_of_arrays(expected: np.ndarray, obtained: np.ndarray) -> list[Part]:
    """Both as tables, the first number that differs framed; of a large array a piece around it."""
    kinds = {expected.dtype.kind, obtained.dtype.kind}
    alike = expected.shape == obtained.shape and (len(kinds) == 1 or kinds <= set("iuf"))
    if not alike or not (wrong := compare.unlike(expected, obtained)).any():
        return both(expected, obtained)
    place, axes = tuple(map(int, np.argwhere(wrong)[0])), max(0, expected.ndim - 2)
    batch, inner = place[:axes], place[axes:]
    window = tuple(map(span, inner, expected.shape[axes:]))
    framed = (0, *(i - piece.start for i, piece in zip(inner, window, strict=True)))[-2:]
    rows = grid(np.vstack([np.atleast_2d(a[batch][window]) for a in (expected, obtained)]))
    where, half = place_of(expected.shape, batch, window), len(rows) // 2
    if expected.ndim == 1:
        return [*where, Table("", rows, ["expected", "yours"], (1, framed[1]))]
    yours = Table("yours", rows[half:], framed=framed)
    return [*where, Table("expected", rows[:half]), yours]


def span(index: int, length: int) -> slice:
    """A piece of an axis, as long as a table may be, that holds the index."""
    start = max(0, min(index - 1, length - LARGE))
    return slice(start, min(length, start + LARGE))


def place_of(shape: tuple, batch: tuple, window: tuple) -> list[Part]:
    """Say which matrix, rows and columns are shown, unless it is everything."""
    several = math.prod(shape[: len(batch)]) > 1
    said = [f"the first matrix that differs, `[{', '.join(map(str, batch))}]`"] if several else []
    names = ("rows", "columns") if len(window) == 2 else ("entries",)
    for name, piece, length in zip(names, window, shape[len(batch) :], strict=True):
        if piece.stop - piece.start < length:
            said.append(f"{name} {piece.start} to {piece.stop - 1} of {length}")
    return [f"Of shape {shape}: {'; '.join(said)}."] if said else []


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


def card(status: str, title: str, body: str) -> str:
    """A verdict: mark and word of its status, then the rest."""
    edge = f"border-left:4px solid {COLOURS[status]};padding:2px 0 2px 12px;margin:4px 0"
    head = f'<p style="margin:0"><b>{MARKS[status]} {status}</b> · {prose(title)}</p>'
    return f'<div style="{edge};max-width:60em">{head}{body}</div>'


def note(status: str, text: str, body: str = "") -> Shown:
    """A card with one sentence."""
    return said(card(status, text, body), f"{status}: {text}")


def said(markup: str, text: str) -> Shown:
    """What is shown: HTML, and the same as a text without backticks."""
    return Shown(markup, printable(text.replace("`", "")))


# ---------------------------------------------------------------- tables


def evidence_of(evidence: Evidence, message: str, whole: bool = False) -> tuple[str, str]:
    """The smallest case, what goes in, what must come out and what came: HTML and text.

    What the message says already is left out; many numbers that go in are folded.
    """
    label = f"The smallest case that shows it: {evidence.label}."
    told = f"{evidence.label.rstrip('.')}:".lower() in message.lower()
    inputs = inputs_of(evidence.inputs)
    obtained = evidence.obtained
    if isinstance(obtained, Raised) and in_plain_words(obtained.text) in message:
        obtained = Raised(obtained.kind)
    parts = contrast(evidence.expected, obtained, whole)
    parts = [p for p in parts if not isinstance(p, str) or told_of(p) not in message]
    if parts and isinstance(parts[-1], str) and parts[-1].endswith(":"):  # all below it is told
        parts.pop()
    size = sum(len(row) for p in inputs if isinstance(p, Table) for row in p.cells)
    head, given_in, result = map(shown_parts, ([] if told else [label], inputs, parts))
    markup = given_in[0]
    if size > OPEN:
        markup = f"<div>{fold('what goes in', markup)}</div>"
    return head[0] + markup + result[0], "\n".join(t for _, t in (head, given_in, result) if t)


def told_of(part: str) -> str:
    """What a line says behind its caption; a message that says it makes the line superfluous."""
    return part.partition(": ")[2] or "\0"


def shown_parts(parts: Sequence[Part]) -> tuple[str, str]:
    """Parts of the evidence as HTML and as text; tables that meet stand side by side."""
    markup, lines = "", []
    for is_line, group in groupby(parts, lambda part: isinstance(part, str)):
        seen = [(paragraph(p), p.replace("`", "")) if is_line else drawn(p) for p in group]
        inside = "".join(html for html, _ in seen)
        markup += inside if is_line else f"<div>{inside}</div>"
        lines += [text for _, text in seen]
    return markup, printable("\n".join(lines))


def drawn(table: Table) -> tuple[str, str]:
    """A table beside others as HTML, one cell framed, and as text, that cell in brackets."""
    cells, styles = [[*row] for row in table.cells], [[""] * len(row) for row in table.cells]
    if table.framed:
        i, j = table.framed
        cells[i][j], styles[i][j] = f"[{cells[i][j]}]", FRAME
    markup = table_html(table.cells, table.heads, (), table.caption, styles)
    caption = f"{table.caption}:\n" if table.caption else ""
    return f'<div style="{ASIDE}">{markup}</div>', caption + table_text(cells, table.heads, ())
