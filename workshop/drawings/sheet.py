"""The sheet that drawings are put on: tinted cells, words, arrows with a width, frames.

A sheet counts in CSS pixels, y downwards, and is at most WIDTH wide: shown 540 pixels wide, as a
narrow page does, its letters are still 9 high. What is lit is drawn full, the rest pale: without
a ground, in the ink of light and dark pages.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
from PIL import Image

from workshop.colours import OF, ink_on, mixed, tint
from workshop.drawings.cells import Grid, cut
from workshop.drawings.page import CELL, LETTER, MARGIN, WORD, Box, Point, shortened, wide
from workshop.figures import INK, Picture, compressed, pixels

HIGH = 150  # pixels for a column's name that is turned
LARGE = 60_000  # bytes of a picture; beyond, it is drawn less fine
PALE = 0.4  # how opaque lines are that are not lit

# Lines and words outside of cells: each colour with so much white or black in it that it has 4.3:1
# on white and on #111111 alike (no ink has more on both).
_TO_MIDDLE = {"x": (0.95, "#ffffff"), "q": (0.84, "#000000"), "k": (0.9, "#ffffff"),
              "v": (0.92, "#000000"), "scores": (0.85, "#ffffff"), "weights": (0.95, "#ffffff"),
              "context": (0.58, "#ffffff")}  # fmt: skip
INKS = {name: mixed(OF[name], *middle) for name, middle in _TO_MIDDLE.items()}
MASKED = tint("context", 1, 1)  # the ground of −∞


class Drawing(Picture):
    """A picture of few colours, each of which stays exactly what it is."""

    def __init__(self, figure: Figure, alt: str):
        self.alt = alt
        self.width = round(figure.get_figwidth() * 96)
        self.figure = figure

    @cached_property
    def png(self) -> bytes:
        """PNG bytes at one and a half times the size; if that becomes large, at its size.

        Of mixed colours, at the edges of letters, 64 are enough: that saves a quarter of the bytes.
        """
        png = _drawn(self.figure, 144, 64, of_its_own=300)
        return png if len(png) <= LARGE else _drawn(self.figure, 96, 64)

    def small(self) -> bytes:
        """PNG bytes for where few will look: a pixel a pixel, all grounds and few mixed colours."""
        return _drawn(self.figure, 96, 8, of_its_own=300)


def _drawn(figure: Figure, dpi: int, shades: int, of_its_own: int | None = None) -> bytes:
    """PNG bytes of the most common colours of a figure; what has another gets the nearest.

    Those that fill `of_its_own` pixels or more come on top of so many shades.
    """
    seen = pixels(figure, dpi)
    packed = seen.view(np.uint32).ravel()
    starts = np.flatnonzero(np.diff(packed, prepend=~packed[:1]))  # of runs, to sort fewer
    lengths = np.diff(starts, append=packed.size)
    colours, where = np.unique(packed[starts], return_inverse=True)
    counts = np.bincount(where, lengths)
    shades += (counts >= of_its_own).sum() if of_its_own else 0
    common = np.argsort(-counts, kind="stable")[: min(shades, 256)]
    palette, nearest = _nearest(colours.view(np.uint8).reshape(-1, 4), common)
    image = Image.fromarray(np.repeat(nearest[where], lengths).reshape(seen.shape[:2]))
    image.putpalette(palette.tobytes(), "RGBA")
    return compressed(image, optimize=True)


def _nearest(colours: np.ndarray, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of many colours (n, 4) as a palette, and for each colour its place there."""
    every, kept = colours.astype(np.float32), colours[common].astype(np.float32)
    far = np.square(kept).sum(axis=1) - 2 * every @ kept.T  # a² − 2ab + b², without b²
    return colours[common], far.argmin(axis=1).astype(np.uint8)


class Sheet:
    """What a drawing is put on; it takes its size from what stands on it."""

    def __init__(self) -> None:
        self.figure = Figure(facecolor="none")
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.axis("off")
        self.corners: list[Point] = []

    def text(self, x: float, y: float, words: str, colour: str = INK, *, at: str = "center",
             bold: bool = False, size: float = LETTER, turned: bool = False) -> Box:  # fmt: skip
        """Write words around the height y, from x ("left"), to x ("right") or around it."""
        long = wide(words, bold, size)
        start = x - long * {"left": 0, "center": 0.5, "right": 1}[at]
        area = Box(start, y - size * 0.7, long, size * 1.4)
        if turned:
            area = Box(x - size * 0.7, y - long / 2, size * 1.4, long)
        spot = (x + 0.36 * size, y + long / 2) if turned else (start, y + 0.36 * size)
        self._covers(area)
        self.ax.add_artist(Text(*spot, words, color=colour, fontsize=size * 0.75,
                                va="baseline", rotation=90 * turned, rotation_mode="anchor",
                                weight="bold" if bold else "normal", parse_math=False))  # fmt: skip
        return area

    def cell(self, box: Box, words: str, ground: str | None) -> None:
        """Draw one cell on its ground, or pale without one."""
        edge = {"edgecolor": INK, "linewidth": 0.6, "alpha": None if ground else PALE}
        self._shape(Rectangle(box[:2], *box[2:], facecolor=ground or "none", **edge), box)
        self.text(*box.middle, words, ink_on(ground) if ground else INK)

    def cells(self, x: float, y: float, drawn: Grid, *, pitch: float = CELL,
              lit: Any = True) -> list[Box]:  # fmt: skip
        """Draw a matrix from its upper left corner, a row every `pitch`; the boxes of its rows.

        `lit` says of all, of each row (rows, 1) or of each number whether it is drawn full.
        """
        lit = np.broadcast_to(lit, drawn.values.shape)
        for (i, j), value in np.ndenumerate(drawn.values):
            words = drawn.texts[i][j]
            ground = MASKED if words == "−∞" else tint(drawn.name, value, drawn.largest)
            self.cell(drawn.box(x, y, i, j, pitch), words, ground if lit[i, j] else None)
        return [drawn.box(x, y, i, pitch=pitch) for i in range(len(drawn.values))]

    def matrix(self, x: float, y: float, drawn: Grid, *, title: str = "", rows: Sequence[str] = (),
               columns: Sequence[str] = (), bold: int | None = None, lit: Any = True,
               beside: float = WORD, slot: float | None = None) -> Box:  # fmt: skip
        """Draw a matrix with its title, its rows' and its columns' names around it.

        `beside` are the pixels that a row's name may take, `slot` those of a column's that is not
        turned, by default those of its cells.
        """
        boxes = self.cells(x, y, drawn, lit=lit)
        for i, (word, box) in enumerate(zip(rows, boxes, strict=False)):
            self.text(x - 10, box.left[1], shortened(word, beside), at="right", bold=i == bold)
        named = [drawn.box(x, y, 0, j) for j in range(len(drawn.cells))]
        high = self.over(named, cut(list(columns), len(drawn.cells)), slot)
        above = y - 16 - (high and high + 4)
        if title:
            self.text(x + drawn.width / 2, above, title, INKS[drawn.name], bold=True)
        return Box(x, y, drawn.width, CELL * len(boxes))

    def tints(self, box: Box, array: np.ndarray, name: str, largest: float) -> None:
        """Draw a matrix of any size as tints alone."""
        colours = ListedColormap([tint(name, k, 255) for k in range(256)])
        place = box.x, box.x + box.width, box.y + box.height, box.y
        look = {"vmin": 0, "vmax": largest or 1, "aspect": "auto", "extent": place}
        shown = np.where(array > 0, array, 0) if name == "scores" else array
        self.ax.imshow(shown, colours, **look)
        self.frame(box)

    def labels(self, box: Box, size: Point, title: str, colour: str, rows: Sequence[str],
               columns: Sequence[str]) -> None:  # fmt: skip
        """Write a title and as many labels around a matrix as its cells of a size leave room."""
        many, more = (math.ceil((LETTER + 4) / one) for one in size)
        for i, word in enumerate(rows[::more]):
            y = box.y + (i * more + 0.5) * size[1]
            self.text(box.x - 10, y, shortened(word), at="right")
        named = [Box(box.x + j * size[0], box.y, size[0]) for j in range(0, len(columns), many)]
        high = self.over(named, columns[::many], many * size[0])
        self.text(box.top[0], box.y - 20 - high, title, colour, bold=True)

    def over(self, boxes: Sequence[Box], words: Sequence[str], slot: float | None = None) -> float:
        """Write words over boxes, all turned if one is wider than a slot; how high they are.

        A slot is as wide as the first box if nothing else is said.
        """
        words = [shortened(word, HIGH) for word in words]
        room = max(map(wide, words), default=0)
        turned = room > (boxes[0].width if slot is None else slot) - 4
        for word, box in zip(words, boxes, strict=False):
            high = box.y - 7 - (wide(word) if turned else LETTER) / 2
            self.text(box.top[0], high, word, turned=turned)
        return room and (room if turned else LETTER)

    def label(self, box: Box, words: str, name: str, share: float = 0.3) -> None:
        """Draw a round box with words on so much of a thing's colour; of 0 it has no ground."""
        ground = mixed(OF[name], share)
        style = {"boxstyle": "round,pad=0,rounding_size=6", "edgecolor": INKS[name]}
        shape = FancyBboxPatch(box[:2], *box[2:], facecolor=ground if share else "none", **style)
        self._shape(shape, box)
        words = shortened(words, max(box.width, box.height) - 8)
        ink = ink_on(ground) if share else INK
        self.text(*box.middle, words, ink, bold=share > 0, turned=box.height > box.width)

    def frame(self, box: Box, colour: str = INK) -> None:
        """Draw a bold frame around cells."""
        style = {"edgecolor": colour, "linewidth": 1.8, "zorder": 2}
        self._shape(Rectangle(box[:2], *box[2:], facecolor="none", **style), box)

    def arrow(self, *points: Point, colour: str = INK, width: float = 1.2, lit: bool = True,
              head: bool = True, dashed: bool = False) -> None:  # fmt: skip
        """Draw a line through points, round at its corners; its head's tip is the last point."""
        before, end = np.array(points[-2:], float)
        far = np.hypot(*(end - before)) or 1.0
        ahead = (end - before) / far
        base = end - ahead * min(5 + 1.1 * width, 0.7 * far) * head
        line = {"edgecolor": colour, "linestyle": "--" if dashed else "-", "fill": False}
        style = {"alpha": None if lit else PALE, "zorder": 0.9}
        path = _round([*points[:-1], tuple(base)])
        self._shape(PathPatch(path, linewidth=0.75 * width, **line, **style))
        if head:
            side = ahead[::-1] * (-1, 1) * (2.6 + 0.8 * width)
            corners = [end, base + side, base - side]
            self._shape(Polygon(corners, facecolor=colour, linewidth=0, **style))
        for point in points:
            self._covers(Box(*point, 0, 0))

    def circle(self, x: float, y: float, radius: float, colour: str = INK, *,
               ground: str = "none", width: float = 1.2, lit: bool = True) -> Box:  # fmt: skip
        """Draw a circle around a point; the square around it."""
        box = Box(x - radius, y - radius, 2 * radius, 2 * radius)
        style = {"facecolor": ground, "edgecolor": colour, "alpha": None if lit else PALE}
        self._shape(Circle((x, y), radius, linewidth=width, **style), box)
        return box

    def dot(self, x: float, y: float, colour: str, radius: float = 4, lit: bool = True) -> None:
        """Draw a point."""
        self.circle(x, y, radius, colour, ground=colour, width=0.9, lit=lit)

    def area(self, corners: Sequence[Point], colour: str, *, share: float = 0.14) -> None:
        """Draw a plane of a thin colour, with a line around it."""
        self._shape(Polygon(corners, facecolor=colour, alpha=share, linewidth=0, zorder=0.5))
        self.arrow(*corners, corners[0], colour=colour, head=False, lit=False)

    def picture(self, alt: str) -> Drawing:
        """Cut the sheet to what stands on it."""
        low, high = np.min(self.corners, axis=0) - MARGIN, np.max(self.corners, axis=0) + MARGIN
        size = np.ceil(high - low)
        self.figure.set_size_inches(size / 96)
        self.ax.set(xlim=(low[0], low[0] + size[0]), ylim=(low[1] + size[1], low[1]))
        return Drawing(self.figure, alt)

    def _shape(self, shape: Any, box: Box | None = None) -> None:
        self.ax.add_artist(shape)
        if box:
            self._covers(box)

    def _covers(self, box: Box) -> None:
        self.corners += [(box.x, box.y), (box.x + box.width, box.y + box.height)]


def _round(points: Sequence[Point], radius: float = 8) -> Path:
    """A path through points that turns its corners in a curve."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b, c = np.array([before, corner, after], float)
        near = [b + (p - b) * min(radius / (np.hypot(*(p - b)) or 1), 0.5) for p in (a, c)]
        vertices += [near[0], b, near[1]]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])
