"""The parts of a verdict, each as HTML and as text."""

import html
import re
from collections.abc import Sequence

from helpers.checks.evidence import Beside, Part, Table, Words
from helpers.shown import Shown, display

# Borders that stand out on white and on black; text keeps the colour of its page.
COLOURS = {"right": "#16885a", "not yet": "#c2640a", "not attempted": "#7b848e"}
MARKS = {"right": "✓", "not yet": "◐", "not attempted": "○"}
CELL = "padding:2px 8px;text-align:right;border:1px solid rgba(128,128,128,.35)"
TABLE = "border-collapse:collapse;margin:4px 0;font-variant-numeric:tabular-nums"
FOLD = "display:inline-block;vertical-align:top;margin:4px 20px 0 0"
ASIDE = "display:inline-block;vertical-align:top;margin:0 16px 0 0"


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


def card(status: str, title: str, body: str) -> str:
    """A verdict: mark and word of its status, then the rest."""
    edge = f"border-left:4px solid {COLOURS[status]};padding:2px 0 2px 12px;margin:4px 0"
    head = f'<p style="margin:0"><b>{MARKS[status]} {status}</b> · {prose(title)}</p>'
    return f'<div style="{edge};max-width:60em">{head}{body}</div>'


# ---------------------------------------------------------------- tables


def markup_of(part: Part) -> str:
    """A part of the evidence as HTML."""
    if isinstance(part, Words):
        return paragraph(part.text)
    return "<div>" + "".join(table_html(table) for table in part.tables) + "</div>"


def table_html(table: Table) -> str:
    """A table with its caption above; the tint of a cell is mixed into the page's own colour."""
    title = html.escape(table.caption)
    caption = (
        f'<caption style="text-align:left;caption-side:top;white-space:nowrap">{title}</caption>'
    )
    rows = "".join(row_html(table, i) for i in range(len(table.cells)))
    inner = f"{caption if table.caption else ''}<tbody>{rows}</tbody>"
    return f'<div style="{ASIDE}"><table style="{TABLE}">{inner}</table></div>'


def row_html(table: Table, i: int) -> str:
    """One row, with its head if the table has heads."""
    head = ""
    if table.heads:
        name = html.escape(table.heads[i])
        head = f'<th scope="row" style="{CELL};text-align:left;font-weight:normal">{name}</th>'
    tints = table.tints[i] if table.tints else [0.0] * len(table.cells[i])
    pairs = zip(table.cells[i], tints, strict=True)
    cells = "".join(f'<td style="{CELL}{tint(t)}">{html.escape(c)}</td>' for c, t in pairs)
    return f'<tr style="background:none">{head}{cells}</tr>'


def tint(share: float) -> str:
    """A background that leaves text readable on light and on dark pages."""
    return f";background:rgba(214,94,0,{0.1 + 0.35 * share:.2f})" if share > 0 else ""


def unbroken(text: str) -> str:
    """Words as HTML that break after commas only."""
    return prose(text).replace(" ", "\u00a0").replace(",\u00a0", ", ")


def overview(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words with a title, as HTML."""
    left = CELL.replace("right", "left")
    head = "".join(f'<th scope="col" style="{left}">{prose(name)}</th>' for name in heads)
    lines = [
        "".join(f'<td style="{left}">{unbroken(text)}</td>' for text in row).join(
            ('<tr style="background:none">', "</tr>")
        )
        for row in rows
    ]
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return (
        f'<p style="margin:4px 0"><b>{prose(title)}</b></p><table style="{TABLE}">{table}</table>'
    )


def text_of(part: Part) -> str:
    """A part of the evidence as text."""
    if isinstance(part, Words):
        return part.text.replace("`", "")
    return "\n".join(table_text(table) for table in part.tables)


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


def shown_parts(parts: Sequence[Part]) -> tuple[str, str]:
    """Parts of the evidence as HTML and as text."""
    texts = [text_of(part) for part in parts]
    return "".join(map(markup_of, parts)), printable("\n".join(texts))


__all__ = ["Beside", "Shown", "Table", "Words", "card", "code", "display", "fold", "paragraph",
           "printable", "prose", "shown_parts"]  # fmt: skip
