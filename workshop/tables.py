"""What is shown, as HTML for eyes and as text for tests, terminals and screen readers."""

import html
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from workshop.arguments import as_array, as_labels, as_text, as_whole, labels_of, number
from workshop.colours import OF, colour_of, size


class Shown:
    """HTML and the same in plain text; notebooks show the one, everything else the other."""

    def __init__(self, markup: str, text: str):
        self.html, self.text = markup, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


def display(shown: Shown) -> None:
    """Show at once, also in the middle of a cell; without IPython print."""
    interactive = sys.modules.get("IPython")
    if interactive is not None and interactive.get_ipython() is not None:
        from IPython.display import display as show_in_the_cell

        show_in_the_cell(shown)
    else:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a console may lack signs
        print(shown.text.encode(encoding, "replace").decode(encoding))


def show(array: Any, rows: Sequence[Any] | None = None, columns: Sequence[Any] | None = None,
         title: str | None = None, decimals: int = 4, colour: str = "x",
         colours: Sequence[str] | None = None) -> None:  # fmt: skip
    """Show a number, vector or matrix (or a batch of them) with labelled rows and columns.

    Floats get `decimals` decimals and never a negative zero; PyTorch tensors are welcome.
    A notebook shows a table, anything else its text. A cell is tinted by the size of its number,
    in the colour of what is shown: "x", "q", "k", "v", "scores", "weights" or "context"; `colours`
    are one for each row of a matrix, which is then tinted by its own largest number.
    Raises ValueError when there is not one label per row or column, or no such colour.
    """
    array = as_array("array", array, "biufUO")
    decimals = as_whole("decimals", decimals, 0, 9)
    title = None if title is None else as_text("title", title)
    if array.dtype.kind in "UO":
        as_labels("array", list(array.flat))  # nothing but words and numbers
    texts, markups = [], []
    grounds = _grounds(array, colour) if colours is None else _by_row(array, colours)
    both = _matrices(array, title), _matrices(grounds, title)
    for (name, matrix), (_, ground) in zip(*both, strict=True):
        if matrix is None:
            texts.append(name)
            markups.append(_tag("div", name, "padding:2px .5em"))
        else:
            grid = _labelled(matrix, rows, columns, decimals)
            texts.append(f"{name}\n{table_text(*grid)}\n" if name else table_text(*grid))
            markups.append(table_html(*grid, name, np.atleast_2d(ground)))
    # A blank first line: of an output that is folded, JupyterLab shows that line as it is written.
    display(Shown(" \n" + "".join(markups), "\n".join(texts)))


def _matrices(array: np.ndarray, title: str | None) -> Iterator[tuple[str | None, Any]]:
    """The matrices of a batch with their titles, and before them its own title with None."""
    if array.ndim <= 2:
        yield title, array
        return
    if title:
        yield title, None
    for i, item in enumerate(array):
        yield from _matrices(item, f"[{i}]" if array.ndim == 3 else f"[{i}, …]")


def _labelled(
    array: np.ndarray, rows: Sequence[Any] | None, columns: Sequence[Any] | None, decimals: int
) -> tuple[list[list[str]], list[str], list[str]]:
    """The numbers of a table as they are written, its row names and its headings, maybe none."""
    grid = np.atleast_2d(array)
    names = [] if rows is None else labels_of("rows", rows, len(grid))
    head = [] if columns is None else labels_of("columns", columns, grid.shape[1])
    return [[number(value, decimals) for value in row] for row in grid], names, head


def table_text(cells: list[list[str]], names: Sequence[str], head: Sequence[str]) -> str:
    """The table in columns of equal width."""
    width = max(len(text) for line in [*cells, head or [""]] for text in line) + 2
    margin = max(map(len, names), default=0)
    lines = [("", head), *zip(names or [""] * len(cells), cells, strict=True)]
    return "\n".join(
        (name.ljust(margin) + "".join(text.rjust(width) for text in line)).rstrip()
        for name, line in lines[0 if head else 1 :]
    )


MOST_OPAQUE = 0.45  # of a colour in the largest number's cell: black and white ink stay readable
_TINTS = OF | {"context": "#808080"}  # black would show on no dark page


def _shares(array: np.ndarray, colour: str) -> np.ndarray:
    """How large each number is beside the largest, 0 to 1; 0 for words, ids and counts."""
    counts = array.dtype.kind in "iu" and np.abs(array).max() > 1
    if array.dtype.kind in "UO" or array.size < 2 or counts:
        return np.zeros(array.shape)
    numbers = np.nan_to_num(array.astype(float), posinf=0.0, neginf=0.0)
    sizes = size(colour, numbers)
    return sizes / (sizes.max() or 1.0)


def _grounds(array: np.ndarray, colour: str) -> np.ndarray:
    """The style of each cell: its colour, so thin that the page's ground, light or dark, shows."""
    shares = _shares(array, colour_of("colour", colour))
    opacities = np.rint(255 * MOST_OPAQUE * shares).astype(int)
    styles = [f"background:{_TINTS[colour]}{n:02x}" if n else "" for n in opacities.flat]
    return np.array(styles, dtype=object).reshape(array.shape)


def _by_row(array: np.ndarray, colours: Sequence[str]) -> np.ndarray:
    """The style of each cell of a matrix whose rows are different things."""
    if array.ndim != 2:
        raise ValueError(f"colours are of a matrix's rows, but array has shape {array.shape}")
    names = labels_of("colours", colours, len(array))
    colours = [colour_of("colours", name) for name in names]
    return np.stack([_grounds(row, colour) for row, colour in zip(array, colours, strict=True)])


# A sanitizer may drop styles (GitHub): then a plain table stays. Nothing in it depends on classes.
# Cells inherit from the table, as on most platforms, or have JupyterLab's padding and alignment,
# so that each says no more than its tint: the tables of a notebook may hold a thousand.
_BOX = "overflow-x:auto;margin:4px 0 12px"
_TABLE = (
    "border-collapse:collapse;margin:0;font-variant-numeric:tabular-nums;text-align:right;"
    "white-space:nowrap;--jp-rendermime-table-row-background:none"  # no stripes below the tints
)
_CAPTION = "text-align:left;white-space:nowrap;width:0;padding:2px .5em"
_LINE = "white-space:nowrap"  # JupyterLab breaks words at spaces, and -inf after its sign
_NAME = f"text-align:left;{_LINE}"
_DIGITS = frozenset("-.0123456789")


def table_html(cells: list[list[str]], names: Sequence[str], head: Sequence[str], title: str | None,
               styles: Iterable[Iterable[str]]) -> str:  # fmt: skip
    """The table as HTML; where the page is narrow, it scrolls in a box of its own."""
    caption = _tag("caption", title, _CAPTION) if title else ""
    corner = "<td></td>" if names else ""
    headings = "".join(_tag("th", text, _LINE, "col") for text in head)
    top = f'<thead style="border-bottom:1px solid"><tr>{corner}{headings}</tr></thead>'
    body = ""
    for i, (line, looks) in enumerate(zip(cells, styles, strict=True)):
        name = _tag("th", names[i], _NAME, "row") if names else ""
        body += f"<tr>{name}{''.join(map(_cell, line, looks))}</tr>"
    table = f"{caption}{top if head else ''}<tbody>{body}</tbody>"
    return f'<div style="{_BOX}"><table cellpadding="4" style="{_TABLE}">{table}</table></div>'


def _cell(text: str, style: str) -> str:
    return _tag("td", text, style or ("" if _DIGITS.issuperset(text) else _LINE))


def _tag(name: str, text: str, style: str = "", scope: str = "") -> str:
    of = f' scope="{scope}"' if scope else ""
    look = f' style="{style}"' if style else ""
    return f"<{name}{of}{look}>{html.escape(text)}</{name}>"


def overview(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words with a title, as HTML; its cells break after commas only."""
    style = "padding:2px 8px;text-align:left;border:1px solid rgba(128,128,128,.35)"
    head = "".join(_tag("th", name, style, "col") for name in heads)
    body = ""
    for row in rows:
        unbroken = [text.replace(" ", "\u00a0").replace(",\u00a0", ", ") for text in row]
        cells = "".join(_tag("td", text, style) for text in unbroken)
        body += f'<tr style="background:none">{cells}</tr>'
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    look = "border-collapse:collapse;margin:4px 0"
    return f'{_tag("b", title)}<table style="{look}">{table}</table>'
