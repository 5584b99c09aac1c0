"""The residual stream of one word: what each sublayer reads from it and adds to it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from workshop.arguments import as_names, as_switch, as_text, said
from workshop.drawings.arrays import array_of
from workshop.drawings.sheet import (
    CELL,
    INKS,
    MARGIN,
    WIDTH,
    Box,
    Drawing,
    Grid,
    Sheet,
    fitted,
    grid,
    shortened,
    wide,
)

_MOST = 6  # sublayers, and features of a vector
_SIDE, _LANE = 12, 64  # pixels of water beside the cells, and from there to a sublayer
_ADDED, _NEXT = 46, 90  # pixels from a vector down to what is added to it, and to their sum


def river(token: str, x: Any, added: Mapping[str, Any], *, replaced: bool = False) -> Drawing:
    """Draw a word's vector x (d,) as a river, and each sublayer's output (d,) added to it in order.

    `added` are up to six sublayers by their names. With `replaced` there is no river: each output
    takes the vector's place. Raises ValueError for other shapes and numbers of sublayers.
    """
    x, label = array_of("x", x, "features"), shortened(as_text("token", token), 180)
    outputs, replaced = _outputs(added, len(x)), as_switch("replaced", replaced)
    states = outputs if replaced else x + np.cumsum(outputs, axis=0)
    rows, names = np.vstack([x, states, outputs]), [shortened(name, 180) for name in added]
    (drawn,) = fitted(lambda most: [grid(rows, "x", most=min(most, _MOST))],
                      (WIDTH - 2 * MARGIN - _LANE) / 2 - _SIDE)  # fmt: skip
    way = _Stream(drawn, names)
    way.water(label, replaced)
    for i in range(len(names) + 1):
        way.state(i)
    for i, name in enumerate(names):
        way.branch(i, name, replaced)
    return way.sheet.picture(_in_words(label, drawn, names, replaced))


def _outputs(added: Any, d: int) -> np.ndarray:
    """What all sublayers add: (sublayers, d)."""
    if not isinstance(added, Mapping):
        raise TypeError(f"added is {said(added)}, but must be names with an array each")
    if not 0 < len(added) <= _MOST:
        raise ValueError(f"added has {len(added)} sublayers, but must have from 1 to {_MOST}")
    as_names("added", added)
    return np.stack([array_of(f"added[{name!r}]", row, d) for name, row in added.items()])


class _Stream:
    """The river in the making: its rows of numbers, and where they stand."""

    def __init__(self, drawn: Grid, names: list[str]):
        self.sheet, self.drawn, self.count = Sheet(), drawn, len(names)
        self.box = max(drawn.width, *[wide(name, bold=True) + 20 for name in names])
        self.lane = drawn.width + _SIDE + _LANE + self.box / 2  # the middle of all sublayers

    def state(self, i: int) -> Box:
        """Draw the vector on the river after so many sublayers."""
        return self.sheet.cells(0, i * _NEXT, self.drawn.part(slice(i, i + 1)))[0]

    def output(self, i: int) -> Box:
        """Draw the numbers that come from a sublayer."""
        row = self.drawn.part(slice(self.count + 1 + i, self.count + 2 + i))
        x, y = self.lane - row.width / 2, i * _NEXT + _ADDED
        return self.sheet.cells(x, y, row._replace(name="context"))[0]

    def water(self, label: str, replaced: bool) -> None:
        """Draw the word, and the river below it to its end; or its pieces."""
        wet, middle = max(wide(label, bold=True) + 24, 36), self.drawn.width / 2
        self.sheet.label(Box(middle - wet / 2, -60, wet, 30), label, "x")
        end = self.count * _NEXT + CELL + 10
        starts = [-30.0, *[i * _NEXT - 10.0 for i in range(1, self.count + 1) if replaced]]
        ends = [i * _NEXT + CELL + 10.0 for i in range(len(starts) - 1)]
        left, right = -_SIDE, self.drawn.width + _SIDE
        for start, stop in zip(starts, [*ends, end], strict=True):
            tip = [(middle, stop + 20)] if stop == end else []
            corners = [(left, start), (right, start), (right, stop), *tip, (left, stop)]
            self.sheet.area(corners, INKS["x"], share=0.3)

    def branch(self, i: int, name: str, replaced: bool) -> None:
        """Draw the way out of the river, through a sublayer, and back with its numbers."""
        y, middle, colour = i * _NEXT, self.drawn.width / 2, INKS["context"]
        box, output = Box(self.lane - self.box / 2, y, self.box), self.output(i)
        self.sheet.label(box, name, "x", share=0.18)
        self.sheet.arrow((self.drawn.width, box.left[1]), box.left, colour=INKS["x"], width=2.2)
        self.sheet.arrow(box.bottom, output.top, colour=colour, width=2.2)
        back = output.left[1]
        if replaced:
            below = middle, y + _NEXT
            self.sheet.arrow(output.left, (middle, back), below, colour=colour, width=2.2)
        else:
            plus = self.sheet.ring(middle, back, 11, colour, ground="#ffffff")
            self.sheet.text(middle, back, "+", "#000000", bold=True, size=18)
            self.sheet.arrow(output.left, plus.right, colour=colour, width=2.2)


def _in_words(label: str, drawn: Grid, names: list[str], replaced: bool) -> str:
    """The numbers of a river in words."""
    n, told = len(names), [f"{label} {', '.join(drawn.texts[0])}"]
    for name, state, output in zip(names, drawn.texts[1:], drawn.texts[n + 1 :], strict=False):
        new, sum_ = ", ".join(output), ", ".join(state)
        told.append(f"{name} puts {new} in its place" if replaced else
                    f"{name} adds {new}, which makes {sum_}")  # fmt: skip
    kind = "A vector replaced by each sublayer" if replaced else "A river of one word's vector"
    return f"{kind}: {'; '.join(told)}."
