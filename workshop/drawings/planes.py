"""Vectors of two features as points and arrows in a plane."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from workshop.arguments import as_switch, as_text, said
from workshop.colours import OF
from workshop.drawings.arrays import array_of, each, in_brackets, labels_of, place_of, tokens_of
from workshop.drawings.matrices import side_by_side
from workshop.drawings.sheet import (
    INKS,
    WIDTH,
    Box,
    Drawing,
    Point,
    Sheet,
    fitted,
    grid,
    shortened,
    wide,
)

SIDE = np.array([420, 380])  # at most, in pixels: turned on its side, a plane keeps its scale


def plane(tokens: Any, V: Any, contexts: Any = None, asker: Any = None, *,
          names: Sequence[str] = ("feature 1", "feature 2"), arrows: bool = False,
          caption: str | None = None) -> Drawing:  # fmt: skip
    """Draw values (T, 2) as points, all that lies between them, and the contexts (T, 2) in there.

    An arrow shows the asker's way from its value to its context; `names` are those of the two
    features, and a `caption` of your own may stand below. Without contexts the points stand alone,
    be they of what they may; with `arrows`, each at the end of one from zero. Raises ValueError for
    other shapes.
    """
    words = tokens_of("tokens", tokens)
    V, arrows = array_of("V", V, len(words), 2), as_switch("arrows", arrows)
    if contexts is None:
        return _points(words, V, asker, names, caption or "", arrows)
    contexts = array_of("contexts", contexts, len(words), 2)
    shown = range(len(words)) if asker is None else [place_of("asker", asker, words)]
    sheet = Sheet()
    field = _Plane(sheet, np.vstack([V, contexts]), labels_of("names", names, 2, False))
    sheet.area([field.at(corner) for corner in _hull(V)], INKS["v"])
    for i, context in enumerate(contexts):
        sheet.dot(*field.at(context), INKS["context"], lit=i in shown)
        sheet.dot(*field.at(V[i]), INKS["v"])
    if asker is not None:
        field.way(V[shown[0]], contexts[shown[0]])
    field.names(list(zip(V, words, strict=True)), INKS["v"])
    field.below(
        "green: what the words give; grey: what they become" if caption is None else caption
    )
    field.names([(contexts[i], f"{words[i]} in context") for i in shown], INKS["context"])
    moves = (f"{in_brackets(v)} → {in_brackets(c)}" for v, c in zip(V, contexts, strict=True))
    return sheet.picture(f"Values as points, the contexts between them: {each(words, moves)}.")


def _points(words: Sequence[str], points: np.ndarray, asker: Any, names: Sequence[str],
            caption: str, arrows: bool) -> Drawing:  # fmt: skip
    """Draw points (T, 2) with their words beside them, and maybe the way to each from zero."""
    if asker is not None:
        raise ValueError(f"asker is {said(asker)}, but without contexts none has a way to show")
    sheet = Sheet()
    zero = np.zeros((1, 2))
    shown = np.vstack([points, zero]) if arrows else points
    field = _Plane(sheet, shown, labels_of("names", names, 2, False))
    for point in points:
        if arrows:
            field.way(zero[0], point)
        else:
            sheet.dot(*field.at(point), INKS["x"])
    field.names(list(zip(points, words, strict=True)), INKS["x"])
    field.below(caption)
    kind = "Arrows from zero to" if arrows else "Points:"
    return sheet.picture(f"{kind} {each(words, map(in_brackets, points))}.")


def moved(token: str, word: Any, context: Any, *,
          names: Sequence[str] = ("feature 1", "feature 2")) -> Drawing:  # fmt: skip
    """Draw a context (d,) as an arrow added to a word (d,): in numbers, and in a plane if d is 2.

    Raises ValueError for other shapes.
    """
    word, label = array_of("word", word, "features"), shortened(as_text("token", token))
    context, sheet = array_of("context", context, len(word)), Sheet()
    rows, titles = (word, context, word + context), (label, "context", f"{label}, moved")
    grids = fitted(lambda most: [grid(row[None], name, most=most) for row, name in zip(
        rows, ("x", "context", "context"), strict=True)], WIDTH - 120)  # fmt: skip
    side_by_side(sheet, grids, titles, "+=", y=90)
    if len(word) == 2:
        points = {"": word * 0, label: word, titles[2]: word + context}
        _arrows_added(
            _Plane(sheet, np.array([*points.values()]), labels_of("names", names, 2, False)), points
        )
    vectors = [in_brackets(row) for row in rows]
    return sheet.picture(f"{label} {vectors[0]} + context {vectors[1]} = {vectors[2]}.")


def _arrows_added(field: "_Plane", points: Mapping[str, np.ndarray]) -> None:
    """Draw the way from nothing to a word, and on by its context; the last two points' names."""
    nothing, word, end = map(field.at, points.values())
    field.sheet.arrow(nothing, word, colour=INKS["x"], width=2.2)
    field.sheet.arrow(nothing, end, colour=INKS["x"], dashed=True)
    _black_or_white(field.sheet, word, end)
    field.names([(point, name) for name, point in points.items()][1:], INKS["context"])


def _black_or_white(sheet: Sheet, start: Point, end: Point) -> None:
    """Draw a context's arrow black with a white edge: on a dark page the edge is what is seen."""
    sheet.arrow(start, end, colour="#ffffff", width=7)
    way = np.subtract(end, start)
    inner = end - way * min(2.5 / (np.hypot(*way) or 1.0), 0.2)  # the edge is around its tip, too
    sheet.arrow(start, (float(inner[0]), float(inner[1])), colour=OF["context"], width=3.5)


class _Plane:
    """Two features as a plane: where points stand in it, and what is written beside them."""

    def __init__(self, sheet: Sheet, points: np.ndarray, names: Sequence[str]):
        self.sheet = sheet
        low, high = points.min(axis=0), points.max(axis=0)
        self.centre, size = (low + high) / 2, ((high - low).max() or 1.0) / 20
        size = np.maximum((high - low) / 2, 4 * size) + size  # with a little air around
        self.low, self.high = self.centre - size, self.centre + size
        self.scale = (SIDE / 2 / size).min()
        self.taken = [Box(x - 6, y - 6, 12, 12) for x, y in map(self.at, points)]
        for axis in (0, 1):
            self._ticks(axis)
        (right, top), bottom = self.at(self.high), self.at(self.low)[1]
        sheet.text(right / 2, bottom + 36, shortened(names[0], 300))
        sheet.text(0, top - 18, shortened(names[1], 300), at="left")

    def at(self, point: Any) -> Point:
        """Where a point stands on the sheet."""
        x, y = (np.asarray(point) - self.low) * self.scale
        return float(x), float(-y)

    def way(self, start: np.ndarray, end: np.ndarray) -> None:
        """Draw an arrow from where a word was to its context."""
        self.sheet.arrow(self.at(start), self.at(end), colour=INKS["context"], width=2.2)

    def below(self, words: str) -> None:
        """Write a line, if any, under the plane and the name of its first feature."""
        if as_text("caption", words):
            line = shortened(words, WIDTH - 200)
            self.sheet.text(self.at(self.high)[0] / 2, self.at(self.low)[1] + 58, line)

    def _ticks(self, axis: int) -> None:
        low, high = self.low[axis], self.high[axis]
        many = MaxNLocator(max(1, int((high - low) * self.scale / 56)), steps=[1, 2, 5, 10])
        for tick in many.tick_values(low, high):
            if low <= tick <= high:
                ends = np.stack([self.low, self.high])
                ends[:, axis] = tick
                start, end = map(self.at, ends)
                width = 1.6 if abs(tick) < 1e-9 else 0.7
                self.sheet.arrow(start, end, head=False, lit=False, width=width)
                spot = (start[0] - 8, start[1]) if axis else (start[0], start[1] + 14)
                at = "right" if axis else "center"
                self.taken.append(self.sheet.text(*spot, f"{tick:g}", at=at))

    def names(self, named: list[tuple[np.ndarray, str]], colour: str) -> None:
        """Write names beside points, several of one point in one line, where there is room."""
        together: dict[Point, list[str]] = {}
        for point, word in named:
            together.setdefault(self.at(point), []).append(shortened(word, 180))
        for place, words in together.items():
            line = shortened(", ".join(dict.fromkeys(words)), 260)
            for spot in self._free(place, wide(line, True))[:1]:
                x, y, long, high = self.sheet.text(*spot, line, colour, bold=True)
                self.taken.append(Box(x - 8, y, long + 16, high))  # no two read as one line

    def _free(self, place: Point, long: float) -> list[Point]:
        """Middles for a text beside a point where nothing stands yet, outer ones first."""
        near = [(9 + long / 2, 0), (0, -16), (0, 17), (-9 - long / 2, 0)]
        near += [(x * (6 + long / 2), y) for x in (1, -1) for y in (-14, 15)]
        spots = [(place[0] + x, place[1] + y) for x, y in near]
        middle = self.at(self.centre)
        spots.sort(key=lambda spot: -np.hypot(spot[0] - middle[0], spot[1] - middle[1]))
        return [(x, y) for x, y in spots
                if not any(map(Box(x - long / 2, y - 9, long, 18).meets, self.taken))]  # fmt: skip


def _hull(points: np.ndarray) -> list[Point]:
    """The corners of what lies between points (T, 2), by Andrew's monotone chain (1979)."""
    ordered = sorted(set(map(tuple, points.tolist())))
    return [*_chain(ordered), *_chain(ordered[::-1])] or ordered


def _chain(ordered: list[Point]) -> list[Point]:
    kept: list[Point] = []
    for point in ordered:
        while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return kept[:-1]


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
