"""Positions as sines and cosines: the table, two of its rows, and what their dot product says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.blocks import sinusoidal_positions
from workshop.figures import Picture, canvas, number
from workshop.widgets.base import Widget, program
from workshop.widgets.traits import Pair, Whole

WIDEST, LONGEST = 128, 512  # features and positions


class PositionExplorer(Widget):
    """The table of positions to touch: two of its rows, and their dot product by distance.

    The reader moves one position or both, by slider or click, and changes `d_model`. `selected`
    holds the two positions, counted from 0; `table` and `dot` are what is shown now.

    Raises ValueError unless d_model is even and at most 128, length from 2 to 512, and both
    positions in the table.
    """

    _esm = program("widgets/positions.js", "PositionExplorer")
    d_model = Whole(6, min=2, max=WIDEST).tag(sync=True)
    length = Whole(50, min=2, max=LONGEST).tag(sync=True)
    selected = Pair(list).tag(sync=True)

    def __init__(
        self, d_model: int = 6, length: int = 50, *, selected: Sequence[int] | None = None
    ):
        length = self.check(length=length)["length"]
        selected = (min(2, length - 2), min(5, length - 1)) if selected is None else selected
        traits = self.check(d_model=d_model, length=length, selected=selected)
        _check_even(traits["d_model"])
        _check_inside(traits["selected"], length)
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
        return _check_even(proposal["value"])

    @traitlets.validate("selected")
    def _check_new_pair(self, proposal: dict) -> list[int]:
        return _check_inside(proposal["value"], self.length)

    @traitlets.validate("length")
    def _check_new_length(self, proposal: dict) -> int:
        _check_inside(self.selected, proposal["value"])
        return proposal["value"]

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


def _check_even(d_model: int) -> int:
    if d_model % 2:
        raise ValueError(f"d_model is {d_model}, but must be even: each sine has its cosine")
    return d_model


def _check_inside(pair: list[int], length: int) -> list[int]:
    if not 0 <= min(pair) <= max(pair) < length:
        need = f"two positions from 0 to {length - 1}"
        raise ValueError(f"selected is {pair}, but must be {need}")
    return pair
