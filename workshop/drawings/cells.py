"""Matrices as drawings write them: each number in its cell, as many columns as have room."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workshop.arguments import ROOM, number
from workshop.colours import size
from workshop.drawings.page import CELL, Box, shortened, wide


class Grid(NamedTuple):
    """A matrix as it is drawn: (rows, columns) of numbers, written, in the colour of a thing."""

    values: np.ndarray  # NaN has no tint
    texts: list[list[str]]
    name: str  # of workshop.colours
    largest: float  # gets the strongest tint
    cells: list[float]  # how wide each column is

    @property
    def width(self) -> float:
        """Pixels from the left edge to the right one."""
        return sum(self.cells)

    def box(self, x: float, y: float, i: int, j: int | None = None, pitch: float = CELL) -> Box:
        """Where a row stands, or the cell of a column in it, if the matrix begins at x, y."""
        if j is None:
            return Box(x, y + i * pitch, self.width)
        return Box(x + sum(self.cells[:j]), y + i * pitch, self.cells[j])

    def part(self, rows: slice = slice(None), columns: slice = slice(None)) -> "Grid":
        """Some of its rows and columns, written and tinted as in the whole."""
        return self._replace(values=self.values[rows, columns], cells=self.cells[columns],
                             texts=[row[columns] for row in self.texts[rows]])  # fmt: skip


def grid(array: np.ndarray, name: str, *, largest: float | None = None,
         decimals: int | None = None, most: int = ROOM) -> Grid:  # fmt: skip
    """Make a matrix ready to be drawn, of a wider one the first columns and a "…"."""
    finite = array[np.isfinite(array)]
    if decimals is None:
        decimals = 1 if np.allclose(finite, finite.round(1), rtol=0, atol=1e-6) else 2
    largest = float(size(name, finite).max(initial=0)) if largest is None else largest
    texts = [cut([written(value, decimals) for value in row], most) for row in array]
    values = np.array([cut(list(row), most, np.nan) for row in array])
    cell = max(30, round(max(wide(text) for row in texts for text in row) + 8))
    cells = [20 if text == "…" else cell for text in texts[0]]
    return Grid(np.where(np.isfinite(values), values, np.nan), texts, name, largest, cells)


def fitted(make: Callable[[int], Sequence[Grid]], room: float) -> Sequence[Grid]:
    """Grids made with as many columns each as fit into so many pixels side by side."""
    for most in range(ROOM, 1, -1):
        grids = make(most)
        if sum(drawn.width for drawn in grids) <= room:
            return grids
    return grids


def written(value: float, decimals: int) -> str:
    """A number as short as it can be said, −∞ for a masked score, nothing for NaN."""
    if np.isnan(value) or value == -np.inf:
        return "−∞" if value < 0 else ""
    large = abs(value) >= 10_000
    text = f"{value:.0e}".replace("e+0", "e").replace("e+", "e") if large else ""
    return (text or number(value, decimals if abs(value) < 100 else 0)).replace("-", "−")


def cut(entries: list, most: int, gap: Any = "…") -> list:
    """All entries, or the first ones and a gap."""
    return entries if len(entries) <= most else [*entries[: most - 1], gap]


def each(words: Iterable[str], texts: Iterable[str]) -> str:
    """Numbers in words: "the 0.0, shop 1.0"."""
    return ", ".join(f"{shortened(word)} {text}" for word, text in zip(words, texts, strict=False))


def rows_in_words(drawn: Grid, rows: Sequence[str] = ()) -> str:
    """A matrix in words, row by row."""
    lines = [", ".join(texts) for texts in drawn.texts]
    named = [f"{shortened(row)} {line}" for row, line in zip(rows, lines, strict=False)]
    return "; ".join(named or lines)


def in_brackets(point: np.ndarray) -> str:
    """A vector in words: "(2.0, 1.0)"."""
    return f"({', '.join(grid(point[None], 'x').texts[0])})"
