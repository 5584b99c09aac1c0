"""Vectors: as points and arrows in a plane, as hands of clocks, and one that sublayers add to."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from workshop import arguments as given
from workshop.colours import OF, colour_of
from workshop.drawings.cells import Grid, each, fitted, grid, in_brackets
from workshop.drawings.matrices import side_by_side
from workshop.drawings.page import CELL, MARGIN, WIDTH, Box, Point, shortened, wide
from workshop.drawings.sheet import INKS, Drawing, Sheet

SIDE = np.array([420, 380])  # of a plane at most, in pixels: turned on its side, it keeps its scale
_HALF, _BETWEEN = np.array([330, 310]), 80  # of each of two side by side, and from one to the next
_PAIRS = 4  # of a clock's hands
_RADIUS, _LINE = 27, 19  # pixels of a dial, and of a line of numbers
_ROW = 2 * _RADIUS + 2 * _LINE + 24  # pixels from a row of dials to the next
_NAMES = 56  # pixels at the left, for the names of the rows
_ZERO = {"sin, cos": (0, 1), "x, y": (1, 0)}  # where a hand points at angle 0
_MOST = 6  # sublayers, and features of a vector beside them
_SIDE, _LANE = 12, 64  # pixels of water beside the cells, and from there to a sublayer
_ADDED, _NEXT = 46, 90  # pixels from a vector down to what is added to it, and to their sum


def plane(tokens: Any, V: Any, context: Any = None, asker: Any = None, *, beside: Any = None,
          names: Sequence[str] = ("feature 1", "feature 2"), arrows: bool = False,
          caption: str | None = None) -> Drawing:  # fmt: skip
    """Draw values (T, 2) as points, all that lies between them, and the contexts (T, 2) in there.

    An arrow shows the asker's way from its value to its context, which may be given alone, (2,).
    `beside` is a second sentence with the same asker, (tokens, V, context), drawn at the right on
    the same scale. `names` are those of the two features, and a `caption` of your own may stand
    below. Without a context the points stand alone, be they of what they may; with `arrows`, each
    at the end of one from zero. Raises ValueError for other shapes.
    """
    if context is None:
        if beside is not None:
            raise ValueError("beside is a second sentence, but the first has no context")
        return _points(tokens, V, asker, names, caption or "", arrows)
    given.as_switch("arrows", arrows)
    mixes = [_mix("", (tokens, V, context), asker)]
    mixes += [] if beside is None else [_mix("beside: ", beside, asker)]
    sheet = Sheet()
    fields = _fields(sheet, mixes, given.labels_of("names", names, 2))
    for field, mix in zip(fields, mixes, strict=True):
        field.mix(mix)
        if beside is not None:
            field.below(f"“{' '.join(map(shortened, mix.words))}”", SIDE[0])
    x = (fields[0].at(fields[0].centre)[0] + fields[-1].at(fields[-1].centre)[0]) / 2
    caption = mixes[0].caption if caption is None else caption
    fields[0].below(caption, WIDTH - 200, x, 22 * (len(fields) - 1))
    told = "; beside it: ".join(each(mix.words, mix.moves) for mix in mixes)
    return sheet.picture(f"Values as points, the contexts between them: {told}.")


class _Mix(NamedTuple):
    """A sentence: values (T, 2) of its words, and what some of them become, by their place."""

    words: list[str]
    V: np.ndarray
    contexts: dict[int, np.ndarray]
    at: int | None  # who asks

    @property
    def caption(self) -> str:
        """What the colours are."""
        alone = self.at is not None and len(self.contexts) < len(self.words)
        become = f"what {self.words[self.at]} becomes" if alone else "what they become"
        return f"green: what the words give; grey: {become}"

    @property
    def moves(self) -> list[str]:
        """From where each word goes to where, in words."""
        ends = {i: f" → {in_brackets(context)}" for i, context in self.contexts.items()}
        return [in_brackets(v) + ends.get(i, "") for i, v in enumerate(self.V)]


def _mix(name: str, sentence: Any, asker: Any) -> _Mix:
    """A sentence of (tokens, V, context), checked; one context alone is the asker's."""
    if isinstance(sentence, str) or not isinstance(sentence, Sequence) or len(sentence) != 3:
        raise TypeError(f"{name}{given.said(sentence)}, but must be (tokens, V, context)")
    tokens, V, context = sentence
    words = given.tokens_of(f"{name}tokens", tokens)
    V = given.array_of(f"{name}V", V, len(words), 2)
    at = None if asker is None else given.place_of(f"{name}asker", asker, words)
    if at is not None and np.ndim(context) == 1:
        return _Mix(words, V, {at: given.array_of(f"{name}context", context, 2)}, at)
    every = given.array_of(f"{name}context", context, len(words), 2)
    return _Mix(words, V, dict(enumerate(every)), at)


def _fields(sheet: Sheet, mixes: Sequence[_Mix], names: Sequence[str]) -> list["_Plane"]:
    """A plane for each sentence, side by side on one scale; no name covers another's."""
    points = [np.array([*mix.V, *mix.contexts.values()]) for mix in mixes]
    side, every = SIDE if len(mixes) == 1 else _HALF, np.vstack(points)
    fields = [_Plane(sheet, every, names, i * (side[0] + _BETWEEN), side, own)
              for i, own in enumerate(points)]  # fmt: skip
    taken = [box for field in fields for box in field.taken]
    long = fields[-1].at(fields[-1].high)[0]
    over = (WIDTH - 2 * MARGIN - long) / 2
    for field in fields:
        field.taken, field.reach = taken, (-over, long + over)
    return fields


def _points(words: Sequence[str], points: np.ndarray, asker: Any, names: Sequence[str],
            caption: str, arrows: bool) -> Drawing:  # fmt: skip
    """Draw points (T, 2) with their words beside them, and maybe the way to each from zero."""
    if asker is not None:
        need = "without contexts none has a way to show"
        raise ValueError(f"asker is {given.said(asker)}, but {need}")
    words = given.tokens_of("tokens", words)
    points, arrows = given.array_of("V", points, len(words), 2), given.as_switch("arrows", arrows)
    sheet, zero = Sheet(), np.zeros((int(arrows), 2))
    field = _Plane(sheet, np.vstack([points, zero]), given.labels_of("names", names, 2))
    for point in points:
        if arrows:
            field.way(zero[0], point)
        else:
            sheet.dot(*field.at(point), INKS["x"])
    field.names(list(zip(points, words, strict=True)), INKS["x"])
    field.below(caption, WIDTH - 200)
    kind = "Arrows from zero to" if arrows else "Points:"
    return sheet.picture(f"{kind} {each(words, map(in_brackets, points))}.")


def moved(token: str, word: Any, context: Any, *,
          names: Sequence[str] = ("feature 1", "feature 2")) -> Drawing:  # fmt: skip
    """Draw a context (d,) as an arrow added to a word (d,): in numbers, and in a plane if d is 2.

    Raises ValueError for other shapes.
    """
    word, label = given.array_of("word", word, "features"), shortened(given.as_text("token", token))
    context, sheet = given.array_of("context", context, len(word)), Sheet()
    rows, titles = (word, context, word + context), (label, "context", f"{label}, moved")
    grids = fitted(lambda most: [grid(row[None], name, most=most) for row, name in zip(
        rows, ("x", "context", "context"), strict=True)], WIDTH - 120)  # fmt: skip
    side_by_side(sheet, grids, titles, "+=", y=90)
    if len(word) == 2:
        points = {"": word * 0, label: word, titles[2]: word + context}
        names = given.labels_of("names", names, 2)
        _arrows_added(_Plane(sheet, np.array([*points.values()]), names), points)
    vectors = [in_brackets(row) for row in rows]
    return sheet.picture(f"{label} {vectors[0]} + context {vectors[1]} = {vectors[2]}.")


def _arrows_added(field: "_Plane", points: Mapping[str, np.ndarray]) -> None:
    """Draw the way from nothing to a word, and on by its context; the last two points' names."""
    nothing, word, end = map(field.at, points.values())
    field.sheet.arrow(nothing, word, colour=INKS["x"], width=2.2)
    field.sheet.arrow(nothing, end, colour=INKS["x"], dashed=True)
    field.sheet.arrow(word, end, colour="#ffffff", width=7)  # an edge, seen on a dark page
    way = np.subtract(end, word)
    inner = end - way * min(2.5 / (np.hypot(*way) or 1.0), 0.2)  # the edge is around its tip, too
    field.sheet.arrow(word, tuple(inner.tolist()), colour=OF["context"], width=3.5)
    field.names([(point, name) for name, point in points.items()][1:], INKS["context"])


class _Plane:
    """Two features as a plane: where points stand in it, and what is written beside them."""

    def __init__(self, sheet: Sheet, points: np.ndarray, names: Sequence[str], left: float = 0,
                 side: np.ndarray = SIDE, own: np.ndarray | None = None):  # fmt: skip
        self.sheet, self.left, self.reach = sheet, left, (-np.inf, np.inf)
        low, high = points.min(axis=0), points.max(axis=0)
        self.centre, size = (low + high) / 2, ((high - low).max() or 1.0) / 20
        size = np.maximum((high - low) / 2, 4 * size) + size  # with a little air around
        self.low, self.high = self.centre - size, self.centre + size
        self.scale = (side / 2 / size).min()
        places = map(self.at, points if own is None else own)
        self.taken = [Box(x - 6, y - 6, 12, 12) for x, y in places]
        for axis in (0, 1):
            self._ticks(axis)
        (_, top), (middle, _) = self.at(self.high), self.at(self.centre)
        sheet.text(middle, self.at(self.low)[1] + 36, shortened(names[0], 300))
        sheet.text(left, top - 18, shortened(names[1], 300), at="left")

    def at(self, point: Any) -> Point:
        """Where a point stands on the sheet."""
        x, y = (np.asarray(point) - self.low) * self.scale
        return float(x) + self.left, float(-y)

    def way(self, start: np.ndarray, end: np.ndarray) -> None:
        """Draw an arrow from where a word was to its context."""
        self.sheet.arrow(self.at(start), self.at(end), colour=INKS["context"], width=2.2)

    def mix(self, mix: _Mix) -> None:
        """Draw values, all that lies between them, contexts in there, and the asker's way."""
        self.sheet.area([self.at(corner) for corner in _hull(mix.V)], INKS["v"])
        for i, v in enumerate(mix.V):
            if i in mix.contexts:
                at = self.at(mix.contexts[i])
                self.sheet.dot(*at, INKS["context"], lit=mix.at in (None, i))
            self.sheet.dot(*self.at(v), INKS["v"])
        shown = [*mix.contexts] if mix.at is None else [mix.at]
        if mix.at is not None:
            self.way(mix.V[mix.at], mix.contexts[mix.at])
        self.names(list(zip(mix.V, mix.words, strict=True)), INKS["v"])
        become = [(mix.contexts[i], f"{mix.words[i]} in context") for i in shown]
        self.names(become, INKS["context"])

    def below(self, words: str, room: float, x: float | None = None, further: float = 0) -> None:
        """Write a line, if any, under the plane and the name of its first feature."""
        if given.as_text("caption", words):
            x, y = self.at(self.centre)[0] if x is None else x, self.at(self.low)[1] + 58
            self.sheet.text(x, y + further, shortened(words, room))

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
        spots += [(place[0] + x, place[1] + y) for y in (-30, 31) for x in (long / 2 + 6, 0)]
        low, high = self.reach[0] + long / 2, self.reach[1] - long / 2
        taken = (Box(x - long / 2, y - 9, long, 18).meets for x, y in spots)
        return [spot for spot, meets in zip(spots, taken, strict=True)
                if low <= spot[0] <= high and not any(map(meets, self.taken))]  # fmt: skip


def _hull(points: np.ndarray) -> list[Point]:
    """The corners of what lies between points (T, 2), by Andrew's monotone chain (1979)."""
    ordered, corners = sorted(set(map(tuple, points.tolist()))), []
    for way in (ordered, ordered[::-1]):
        kept: list[Point] = []
        for point in way:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
                kept.pop()
            kept.append(point)
        corners += kept[:-1]
    return corners or ordered


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def clock_hands(tokens: Any, X: Any, *, before: Any = None, name: str = "x",
                order: Literal["sin, cos", "x, y"] = "sin, cos") -> Drawing:  # fmt: skip
    """Draw features 2i and 2i + 1 of X (T, d) as a hand: the first to the right, the second up.

    A tick marks angle 0. Of "sin, cos" a hand stands up there and turns clockwise as the angle
    grows; of "x, y" it points right and turns the other way. Of many pairs the first four are
    drawn, `before` (T, d) as thin hands; a dial is as large as the longest hand, 1 at least.
    Raises ValueError for an odd d, and for other shapes, orders and names.
    """
    words, name = given.tokens_of("tokens", tokens), colour_of("name", name)
    X = given.array_of("X", X, len(words), "features")
    order = given.one_of("order", order, _ZERO, "; ")
    if X.shape[1] % 2:
        raise ValueError(f"X has {X.shape[1]} features, but must have an even number: two a hand")
    times = [X] if before is None else [given.array_of("before", before, *X.shape), X]
    hands = np.stack([Y.reshape(len(words), -1, 2)[:, :_PAIRS] for Y in times], axis=2)
    dials = _Dials(words, hands, name, order)
    dials.draw()
    return dials.sheet.picture(dials.in_words())


class _Dials:
    """Rows of dials in the making: `hands` (T, pairs, times, 2), the last time is now."""

    def __init__(self, words: list[str], hands: np.ndarray, name: str, order: str):
        self.sheet, self.words, self.order = Sheet(), words, order
        self.slot = min((WIDTH - 2 * MARGIN - _NAMES) / len(words), 84)
        self.ways = hands * _RADIUS / max(1, np.hypot(*hands.T).max()) * (1, -1)  # in pixels
        self.colour = INKS[name]
        texts = [text for (text,) in grid(hands.reshape(-1, 1), name).texts]
        self.texts = np.reshape(texts, hands.shape)

    def draw(self) -> None:
        """Draw the tokens, and below each its dials."""
        T = len(self.words)
        self.sheet.over([Box(t * self.slot, -_RADIUS, self.slot) for t in range(T)], self.words)
        for i in range(self.ways.shape[1]):
            for line, words in enumerate((f"pair {i}", *self.order.split(", "))):
                self.sheet.text(-4, _line(i, line), words, at="right", bold=not line)
            for t in range(T):
                self.dial((t + 0.5) * self.slot, i * _ROW, self.ways[t, i])
                for line, text in enumerate(self.texts[t, i, -1], 1):
                    self.sheet.text((t + 0.5) * self.slot, _line(i, line), text)

    def dial(self, x: float, y: float, ways: np.ndarray) -> None:
        """Draw a dial around a point with its hands, the last of them thick."""
        centre, zero = np.array([x, y]), np.array(_ZERO[self.order]) * (1, -1)
        self.sheet.circle(x, y, _RADIUS)
        tick = centre + np.outer((_RADIUS - 6, _RADIUS), zero)
        self.sheet.arrow(*map(tuple, tick), head=False, width=2)
        for end in centre + ways[:-1]:
            self.sheet.arrow((x, y), tuple(end), width=1.4)
        self.sheet.arrow((x, y), tuple(centre + ways[-1]), colour=self.colour, width=3)
        self.sheet.dot(x, y, self.colour, radius=2.5)

    def in_words(self) -> str:
        """The numbers of all hands in words."""
        told = []
        for i in range(self.ways.shape[1]):
            hands = (" → ".join(f"({a}, {b})" for a, b in times) for times in self.texts[:, i])
            told.append(f"pair {i}: {each(self.words, hands)}")
        return f"Hands of clocks ({self.order}): {'; '.join(told)}."


def _line(row: int, line: int) -> float:
    """The height of a line of writing below the middle of a row's dials, or of the dials."""
    return row * _ROW + (line and _RADIUS + 3 + (line - 0.5) * _LINE)


def river(token: str, x: Any, added: Mapping[str, Any], *, replaced: bool = False) -> Drawing:
    """Draw a word's vector x (d,) as a river, and each sublayer's output (d,) added to it in order.

    `added` are up to six sublayers by their names. With `replaced` there is no river: each output
    takes the vector's place. Raises ValueError for other shapes and numbers of sublayers.
    """
    x, label = given.array_of("x", x, "features"), shortened(given.as_text("token", token), 180)
    outputs, replaced = _outputs(added, len(x)), given.as_switch("replaced", replaced)
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
        raise TypeError(f"added is {given.said(added)}, but must be names with an array each")
    if not 0 < len(added) <= _MOST:
        raise ValueError(f"added has {len(added)} sublayers, but must have from 1 to {_MOST}")
    given.as_names("added", added)
    return np.stack([given.array_of(f"added[{name!r}]", row, d) for name, row in added.items()])


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
            plus = self.sheet.circle(middle, back, 11, colour, ground="#ffffff")
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
