"""Matrices of any size as tinted cells, for the pictures of widgets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from workshop.colours import ink_on, size, tint
from workshop.drawings.sheet import INKS
from workshop.figures import INK, number, plain
from workshop.widgets.base import visible


def draw_tints(ax: Axes, array: np.ndarray, thing: str, title: str, rows: Sequence[str],
               columns: Sequence[str], *, panels: float, largest: float) -> None:  # fmt: skip
    """Draw a matrix in a thing's colour, with its numbers where so many panels leave room.

    `largest` is the number that gets the strongest tint. NaN is blank.
    """
    tints = ListedColormap([tint(thing, k, 255) for k in range(256)])
    ax.imshow(size(thing, array), cmap=tints, vmin=0, vmax=largest or 1, aspect="auto")
    ax.set_title(*plain([title]), color=INKS[thing])
    ax.spines[:].set_visible(False)
    _draw_labels(ax, rows, columns)
    if array.shape[1] * panels <= 36 and array.size <= 128:
        _draw_lines(ax, *array.shape)
        _draw_numbers(ax, array, thing, largest)


def _draw_labels(ax: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Every label where there is room, else some of them."""
    for axis, labels in ((ax.yaxis, rows), (ax.xaxis, columns)):
        some = range(0, len(labels), -(-len(labels) // 24) or 1)
        axis.set_ticks(some, plain(visible(labels[i], 16) for i in some), fontsize=8)
    ax.tick_params(length=0)
    ax.tick_params(axis="x", rotation=40 * (max(map(len, columns)) > 2))


def _draw_lines(ax: Axes, rows: int, columns: int) -> None:
    """A line around each cell: a tint of 0 is white, as a page may be."""
    style: dict[str, Any] = {"colors": INK, "linewidths": 0.6}
    ax.hlines(np.arange(rows + 1) - 0.5, -0.5, columns - 0.5, **style)
    ax.vlines(np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, **style)


def _draw_numbers(ax: Axes, array: np.ndarray, thing: str, largest: float) -> None:
    decimals = 0 if np.array_equal(array, array.round()) else 2
    style = {"ha": "center", "va": "center", "fontsize": 8}
    for (i, j), value in np.ndenumerate(array):
        if np.isfinite(value):
            ink = ink_on(tint(thing, value, largest))
            ax.text(j, i, number(value, decimals), color=ink, **style)
