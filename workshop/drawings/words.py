"""Words and steps as boxes with arrows between them: who asks whom, a model, a text that grows."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workshop import arguments as given
from workshop.colours import OF, colour_of, mixed
from workshop.drawings.cells import each, grid, written
from workshop.drawings.page import CELL, MARGIN, WIDTH, Box, Point, shortened, wide
from workshop.drawings.sheet import INKS, Drawing, Sheet
from workshop.figures import INK

_BELOW = 150  # pixels from the words down to those that ask them
_STEPS, _WORDS, _NEXT = 6, 10, 4  # of a text that grows at most, the last of them at each step
_LINE, _APART, _NODE = 22, 30, 30  # pixels: a next word, between two steps, a node's height
_WORD, _BAR, _NUMBER, _ARROW = 84, 84, 56, 36  # pixels from the left to the right of a node


def arrows_of_scores(tokens: Any, scores: Any, asker: Any = None, *,
                     name: str = "scores") -> Drawing:  # fmt: skip
    """Draw words as nodes, and scores (T, T) or one asker's (T,) as arrows of that width.

    With an asker two rows, (2, T), are those of two heads, also where T is 2. `name` is "scores" or
    "weights". An arrow is thin and dashed for a score below 0, and missing for −∞ and for a weight
    of 0; where all ask, a score of 0 has none either.
    Raises ValueError for other shapes.
    """
    words, name = given.tokens_of("tokens", tokens), colour_of("name", name)
    if asker is not None and np.shape(scores) == (2, len(words)):
        return _two_heads(words, given.place_of("asker", asker, words), scores, name)
    askers, rows = _asked("scores", words, scores, asker, len(words))
    return _arrows(words, words, askers, rows, name, below=askers, alone=asker is not None)


def _two_heads(words: list[str], at: int, scores: Any, name: str) -> Drawing:
    """Draw the words once for each head, one below the other: who asks, and what it reads."""
    rows = given.array_of("scores", scores, 2, len(words), masked=name == "scores")
    drawn = grid(rows, name, decimals=2 if name == "weights" else None)
    sheet, slot = Sheet(), min((WIDTH - 2 * MARGIN - 70) / len(words), 104)
    widths = np.where((rows == 0) & (name == "weights"), -np.inf, rows)
    largest = 1.0 if name == "weights" else drawn.largest or 1.0
    for h in range(2):
        y = h * (_BELOW + 100)
        above = _nodes(sheet, 0, y, slot, words, "k", 0.18)
        _nodes(sheet, at * slot, y + _BELOW, slot, [words[at]], "q", 0.45)
        asker = above[0]._replace(x=at * slot + 5, y=y + _BELOW)
        _fan(sheet, asker, above, widths[h] / largest * 9, name)
        one = drawn.part(slice(h, h + 1))._replace(cells=[slot] * len(words))
        sheet.cells(0, y - CELL - 10, one)
        sheet.text(-12, y + 15, f"head {h + 1}", at="right", bold=True)
    told = "; ".join(f"head {h + 1}: {each(words, texts)}" for h, texts in enumerate(drawn.texts))
    return sheet.picture(f"Arrows as wide as {name}. {shortened(words[at])} asks: {told}.")


def arrows_between(tokens: Any, source: Any, weights: Any, asker: Any = None) -> Drawing:
    """Draw words below, those of another text above, and weights (T, S) as arrows of that width.

    With an asker, only its weights, which may be (S,), are drawn, with their numbers; a weight of 0
    has no arrow. Raises ValueError for other shapes.
    """
    words, others = given.tokens_of("tokens", tokens), given.tokens_of("source", source)
    askers, rows = _asked("weights", words, weights, asker, len(others))
    below = range(len(words))
    return _arrows(words, others, askers, rows, "weights", below=below, alone=asker is not None)


def _asked(name: str, words: Sequence[str], scores: Any, asker: Any,
           S: int) -> tuple[Sequence[int], np.ndarray]:  # fmt: skip
    """Who asks, and the scores of each: (askers, S)."""
    T, masked = len(words), name == "scores"
    if asker is None:
        return range(T), given.array_of(name, scores, T, S, masked=masked)
    at = given.place_of("asker", asker, words)
    if np.ndim(scores) == 1:
        return [at], given.array_of(name, scores, S, masked=masked)[None]
    return [at], given.array_of(name, scores, T, S, masked=masked)[[at]]


def _arrows(words: list[str], others: list[str], askers: Sequence[int], rows: np.ndarray, name: str,
            *, below: Sequence[int], alone: bool) -> Drawing:  # fmt: skip
    """Draw the others above, the words of some places below, and what the askers ask."""
    drawn = grid(rows, name, decimals=2 if name == "weights" else None)
    sheet, most = Sheet(), max(len(words), len(others))
    slot = min((WIDTH - 2 * MARGIN) / most, 104)  # pixels from a node to the next
    left = (len(words) - len(others)) / 2 * slot  # of the others, which stand over the middle
    above = _nodes(sheet, left, 0, slot, others, "k", 0.18)
    for i in below:
        _nodes(sheet, i * slot, _BELOW, slot, [words[i]], "q", 0.45 * (i in askers))
    largest = 1.0 if name == "weights" else drawn.largest or 1.0
    hidden = (rows == 0) & (name == "weights" or not alone)
    for i, row in zip(askers, np.where(hidden, -np.inf, rows) / largest, strict=True):
        asker = above[0]._replace(x=i * slot + 5, y=_BELOW)
        _fan(sheet, asker, above, row * (9 if alone else 4), name)
    if alone:
        sheet.cells(left, -CELL - 10, drawn._replace(cells=[slot] * len(others)))
    asks = (f"{shortened(words[i])} asks: {each(others, texts)}"
            for i, texts in zip(askers, drawn.texts, strict=True))  # fmt: skip
    return sheet.picture(f"Arrows as wide as {name}. {'; '.join(asks)}.")


def _nodes(sheet: Sheet, x: float, y: float, slot: float, words: Sequence[str], name: str,
           share: float) -> list[Box]:  # fmt: skip
    """Draw words as boxes side by side, on so much of a thing's colour."""
    boxes = [Box(x + j * slot + 5, y, slot - 10, 30) for j in range(len(words))]
    for word, box in zip(words, boxes, strict=True):
        sheet.label(box, word, name, share=share)
    return boxes


def _fan(sheet: Sheet, asker: Box, nodes: Sequence[Box], widths: np.ndarray, name: str) -> None:
    """Draw an asker's arrows up to the words."""
    for node, width in zip(nodes, widths, strict=True):
        if np.isfinite(width):
            style = {"width": 0.6 + max(width, 0), "dashed": width < 0, "lit": width != 0}
            sheet.arrow(asker.top, node.bottom, colour=INKS[name], **style)


def flow(groups: Mapping[str, Sequence[str]], lit: Any = (), *, linked: bool = True,
         breaks: Mapping[str, Collection[int]] | None = None,
         read: Mapping[str, Sequence[str]] | None = None) -> Drawing:  # fmt: skip
    """Draw a model's steps as boxes, a row of boxes a group, with some steps lit.

    `lit` are steps, or "group/step" for that of one group. With `linked` arrows lead from the end
    of each group to the start of the next. `breaks` are places of steps, by their group, that are
    not made of what stands before them; `read` are steps, "group/step", that read the end of a
    group besides. Raises ValueError for a lit step that no group has.
    """
    rows, linked, sheet = _groups(groups), given.as_switch("linked", linked), Sheet()
    known = [step for steps in rows.values() for step in steps]
    known += [f"{name}/{step}" for name, steps in rows.items() for step in steps]
    full, page = given.chosen_of("lit", lit, known), _Flow(sheet, breaks or {}, read or {}, linked)
    for name, steps in rows.items():
        page.row(name, steps, {step for step in steps if {step, f"{name}/{step}"} & full})
    for name, steps in (read or {}).items():
        page.reads(name, steps)
    told = [f"{name}: {page.whole(name, steps)}" for name, steps in rows.items()]
    told += [f"{name} is read by {', '.join(steps)}" for name, steps in (read or {}).items()]
    if full:
        told.append(f"lit: {page.whole('', sorted(full))}")
    return sheet.picture("; ".join(told) + ".")


def _groups(groups: Any) -> dict[str, list[str]]:
    """The steps of each group."""
    if not isinstance(groups, Mapping) or not groups:
        need = "must be names with a list of steps each"
        raise TypeError(f"groups is {given.said(groups)}, but {need}")
    given.as_names("groups", groups)
    return {name: given.as_names(f"groups[{name!r}]", steps) for name, steps in groups.items()}


class _Flow:
    """The rows of a flow in the making: where its boxes are, and those that the next row reads."""

    def __init__(self, sheet: Sheet, breaks: Mapping[str, Collection[int]],
                 read: Mapping[str, Sequence[str]], linked: bool):  # fmt: skip
        self.sheet, self.breaks, self.read, self.linked = sheet, breaks, read, linked
        self.y, self.right, self.ends, self.boxes = 0.0, 0.0, [], {}

    def whole(self, name: str, steps: Sequence[str]) -> str:
        """Steps in words, with as many letters as a line has: these need no room in a box."""
        apart = self.breaks.get(name, ())
        signs = ["", *(", " if i in apart else " → " for i in range(1, len(steps)))]
        return "".join(sign + shortened(step, np.inf)
                       for sign, step in zip(signs, steps, strict=True))  # fmt: skip

    def row(self, name: str, steps: Sequence[str], lit: set[str]) -> None:
        """Draw a group below the others: its name, its steps, and the arrows to them."""
        apart, boxes = self.breaks.get(name, ()), self._boxes(steps)
        lines = [name] if shortened(name, 110) == name else name.split(" ", 1)
        for i, words in enumerate(lines):
            y = boxes[0].y + 17 + 16 * (i - (len(lines) - 1) / 2)
            self.sheet.text(-16, y, shortened(words, 110), at="right")
        for step, box in zip(steps, boxes, strict=True):
            share = 0.5 * (step in lit)
            self.sheet.label(box, shortened(step, 180), "q" if share else "x", share)
        for i, (start, end) in enumerate(itertools.pairwise(boxes), 1):
            if i not in apart:
                self._arrow(start, end)
        side = len({*apart} - {0}) == len(boxes) - 1  # all of them stand side by side
        for end in boxes if side else boxes[:1]:
            for start in self.ends if self.linked and 0 not in apart else ():
                self._arrow(start, end)
        self.ends = boxes if side else boxes[-1:]
        self.ends = self.ends[: -1 if name in self.read else None]
        self.boxes |= {f"{name}/{s}": box for s, box in zip(steps, boxes, strict=True)}
        self.boxes[name] = boxes[-1]

    def _boxes(self, steps: Sequence[str]) -> list[Box]:
        """The boxes of steps, in as many lines as they need."""
        x, boxes = 0.0, []
        for step in steps:
            size = wide(shortened(step, 180), True) + 26
            if x and x + size > WIDTH - 150:
                x, self.y = 0.0, self.y + 74
            boxes.append(Box(x, self.y, size, 34))
            self.right = max(self.right, x + size + 14)
            x += size + 30
        self.y += 74
        return boxes

    def _arrow(self, start: Box, end: Box) -> None:
        """Draw an arrow to the next box, or to one in another line."""
        if start.y == end.y:
            return self.sheet.arrow(start.right, end.left)
        turn = end.y - 20
        self.sheet.arrow(start.bottom, (start.bottom[0], turn), (end.top[0], turn), end.top)

    def reads(self, name: str, steps: Sequence[str]) -> None:
        """Draw lines from the end of a group around all others to steps that read it."""
        right, start = self.right, self.boxes[name]
        for end in (self.boxes[step] for step in steps):
            below = end.bottom[1] + 10
            path = [(right, start.right[1]), (right, below), (end.bottom[0], below)]
            self.sheet.arrow(start.right, *path, end.bottom, colour=INKS["k"])


class _Step(NamedTuple):
    """What is written so far, how many of its words are old, and what may follow."""

    words: list[str]
    old: int
    likely: dict[str, float]
    chosen: str


def writing(steps: Sequence[tuple[Any, Mapping[str, float]]]) -> Drawing:
    """Draw a text as it is written: up to six steps of (words so far, {next word: probability}).

    A step shows its four likeliest next words; the one that the next step begins with is marked,
    of the last step the likeliest. Raises ValueError when a step does not go on from the one
    before or has no probability for its word, and for more than ten words.
    """
    rows = _steps_of(steps)
    page = _Page(rows)
    for i in range(len(rows)):
        page.row(i)
    likely = (each(step.likely, [written(p, 2) for p in step.likely.values()]) for step in rows)
    told = [f"{' '.join(map(shortened, step.words))} → {numbers}: {shortened(step.chosen)}"
            for step, numbers in zip(rows, likely, strict=True)]  # fmt: skip
    return page.sheet.picture(f"Written word by word: {'; '.join(told)}.")


def _steps_of(steps: Any) -> list[_Step]:
    """Steps with what each of them chose."""
    if isinstance(steps, str | Mapping) or not isinstance(steps, Sequence):
        need = "must be a list of (words, probabilities)"
        raise TypeError(f"steps is {given.said(steps)}, but {need}")
    if not 0 < len(steps) <= _STEPS:
        raise ValueError(f"steps has {len(steps)} entries, but must have from 1 to {_STEPS}")
    texts, ways = zip(*(_pair(f"steps[{i}]", step) for i, step in enumerate(steps)), strict=True)
    old, rows = len(texts[0]) - 1, []
    for i, (words, likely) in enumerate(zip(texts, ways, strict=True)):
        after = [_added(i, words, text) for text in texts[i + 1 : i + 2]]
        chosen = after[0] if after else max(likely, key=lambda word: likely[word])
        rows.append(_Step(words, old, _likeliest(i, likely, chosen), chosen))
        old = len(words)
    return rows


def _pair(name: str, step: Any) -> tuple[list[str], dict[str, float]]:
    """The words of a step, and the probabilities of the next."""
    if isinstance(step, str) or not isinstance(step, Sequence) or len(step) != 2:
        raise TypeError(f"{name} is {given.said(step)}, but must be (words, probabilities)")
    if not isinstance(step[1], Mapping) or not step[1]:
        need = "needs words with a probability each"
        raise TypeError(f"{name} has {given.said(step[1])}, but {need}")
    given.as_names(name, step[1])
    likely = {w: given.as_number(f"{name}[1][{w!r}]", p, 0, 1) for w, p in step[1].items()}
    return given.tokens_of(f"{name}[0]", step[0], _WORDS), likely


def _added(i: int, words: list[str], after: list[str]) -> str:
    """The first word that the step after adds."""
    if after[: len(words)] != words or len(after) == len(words):
        need = f"must begin with the words of steps[{i}] and add one"
        raise ValueError(f"steps[{i + 1}] has {given.said(' '.join(after))}, but {need}")
    return after[len(words)]


def _likeliest(i: int, likely: dict[str, float], chosen: str) -> dict[str, float]:
    """The likeliest words and the chosen one, by their probability."""
    if chosen not in likely:
        what = f"{given.said(chosen)}, which is written next"
        raise ValueError(f"steps[{i}] has no probability for {what}")
    by = sorted(likely, key=lambda word: -likely[word])
    kept = [*[word for word in by if word != chosen][: _NEXT - 1], chosen]
    return {word: likely[word] for word in by if word in kept}


class _Page:
    """The rows of a text that grows in the making."""

    def __init__(self, rows: list[_Step]):
        self.sheet, self.rows, self.y = Sheet(), rows, 0.0
        self.left = self._places(rows[-1].words)
        words = [shortened(word, _WORD) for step in rows for word in step.likely]
        self.bars = self.left[-1] + _ARROW + max(wide(word, bold=True) for word in words) + 18
        self.start: Point | None = None  # of the line from the word that was chosen last

    def _places(self, words: list[str]) -> list[float]:
        """Where each word begins, and where the last ends."""
        room = WIDTH - 2 * MARGIN - _ARROW - _WORD - 18 - _BAR - _NUMBER
        long = [max(wide(shortened(word, 110), bold=True) + 16, 36) for word in words]
        most = next(m for m in range(130, 0, -1) if sum(min(w, m) + 5 for w in long) <= room)
        return [0.0, *np.cumsum(np.minimum(long, most) + 5)]

    def row(self, i: int) -> None:
        """Draw a step below the others."""
        step = self.rows[i]
        high = max(_LINE * len(step.likely), _NODE)
        middle = self.y + high / 2
        for j, word in enumerate(step.words):
            box = Box(self.left[j], middle - _NODE / 2, self.left[j + 1] - self.left[j] - 5, _NODE)
            new = j >= step.old
            self.sheet.label(box, word, "x", share=0.5 if new else 0.18)
            if self.start and j == step.old:
                self._lead(self.start, box.top)
        self._likely(step, middle, box.right)
        self.y += high + _APART

    def _lead(self, start: Point, end: Point) -> None:
        """Draw a line from the word that was chosen to where it is written."""
        right, above = self.bars + _BAR + _NUMBER, self.y - _APART / 2
        path = [start, (right, start[1]), (right, above), (end[0], above), end]
        self.sheet.arrow(*path, colour=INK, width=1.4)

    def _likely(self, step: _Step, middle: float, end: Point) -> None:
        """Draw the next words and their probabilities, and an arrow to them."""
        y, x = middle - _LINE * len(step.likely) / 2, self.left[-1] + _ARROW - 5
        self.sheet.arrow(end, (x, middle))
        self.sheet.arrow((x + 3, y + 2), (x + 3, 2 * middle - y - 2), head=False)
        for word, p in step.likely.items():
            self._bar(y + _LINE / 2, word, p, word == step.chosen)
            y += _LINE

    def _bar(self, y: float, word: str, p: float, chosen: bool) -> None:
        """Draw one next word and its probability."""
        style = {"colour": INK, "bold": chosen}
        self.sheet.text(self.bars - 7, y, shortened(word, _WORD), at="right", **style)
        bar = Box(self.bars, y - 7, max(p * _BAR, 1), 14)
        self.sheet.cell(bar, "", mixed(OF["x"], 1 if chosen else 0.25))
        number = self.sheet.text(bar.right[0] + 6, y, written(p, 2), at="left", **style)
        if chosen:
            self.start = number.x + number.width + 5, y
