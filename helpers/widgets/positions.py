"""Positions as sines and cosines: the table, two of its rows, and what their dot product says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.blocks import sinusoidal_positions
from helpers.figures import Picture, canvas, number
from helpers.widgets.base import Widget, module

WIDEST, LONGEST = 128, 512  # features and positions


class PositionExplorer(Widget):
    """The table of positions to touch: two of its rows, and their dot product by distance.

    The reader moves one position or both, by slider or click, and changes `d_model`. `selected`
    holds the two positions, counted from 0; `table` and `dot` are what is shown now.

    Raises ValueError unless d_model is even and at most 128, length from 2 to 512, and both
    positions in the table.
    """

    _esm = module("positions.js")
    d_model = traitlets.Int(6).tag(sync=True)
    length = traitlets.Int(50).tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self, d_model: int = 6, length: int = 50, *, selected: Sequence[int] | None = None
    ):
        d_model, length = _check_width(d_model), _check_length(length)
        selected = (min(2, length - 2), min(5, length - 1)) if selected is None else selected
        selected = _check_pair(selected, length)
        traits = {"d_model": d_model, "length": length, "selected": selected}
        super().__init__(_words(**traits), {}, **traits)

    @property
    def table(self) -> np.ndarray:
        """All position vectors: (length, d_model)."""
        return sinusoidal_positions(self.length, self.d_model)

    @property
    def dot(self) -> float:
        """The dot product of the two selected rows."""
        return _dot(self.d_model, self.selected)

    @traitlets.validate("d_model")
    def _check_new_width(self, proposal: dict) -> int:
        return _check_width(proposal["value"])

    @traitlets.validate("selected")
    def _check_new_pair(self, proposal: dict) -> list[int]:
        return _check_pair(proposal["value"], self.length)

    @traitlets.observe("d_model", "selected")
    def _describe(self, _: Any) -> None:
        self.words = _words(self.d_model, self.length, self.selected)

    def picture(self) -> Picture:
        """Draw the table and the dot product by distance, with the selected pair marked."""
        figure, (left, right) = canvas(7.6, 3.2, columns=2)
        image = left.imshow(self.table, cmap="cividis", aspect="auto", vmin=-1, vmax=1)
        figure.colorbar(image, ax=left)
        left.set(title="position vectors", xlabel="feature", ylabel="position")
        a, b = self.selected
        right.plot(self.table @ self.table[0], marker="")
        right.plot([abs(a - b)], [self.dot], linestyle="", marker="o", markersize=7)
        right.set(title=f"dot product; marked: {a} and {b}", xlabel="distance")
        return Picture(figure, self.words)


def _dot(d_model: int, pair: Sequence[int]) -> float:
    first, second = sinusoidal_positions(max(pair) + 1, d_model)[list(pair)]
    return float(first @ second)


def _words(d_model: int, length: int, selected: Sequence[int]) -> str:
    a, b = selected
    return (
        f"PositionExplorer: {length} positions × {d_model} features; dot product of positions "
        f"{a} and {b}: {number(_dot(d_model, selected))}, as of any two {abs(a - b)} apart"
    )


def _check_whole(name: str, value: Any, low: int, high: int, need: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}, but must be a whole number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}, but must be {need} from {low} to {high}")
    return int(value)


def _check_length(value: Any) -> int:
    return _check_whole("length", value, 2, LONGEST, "a number of positions")


def _check_width(value: Any) -> int:
    value = _check_whole("d_model", value, 2, WIDEST, "an even number")
    if value % 2:
        raise ValueError(f"d_model is {value}, but must be even: each sine has its cosine")
    return value


def _check_pair(pair: Any, length: int) -> list[int]:
    if len(pair) != 2:
        raise ValueError(f"selected has {len(pair)} positions, but must have two")
    return [_check_whole("selected", pos, 0, length - 1, "two positions") for pos in pair]
