"""A text that grows: at each step the likeliest next words, and the one that is written."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workshop.arguments import as_names, as_number, said
from workshop.colours import OF, mixed
from workshop.drawings.arrays import tokens_of
from workshop.drawings.sheet import (
    INKS,
    MARGIN,
    WIDTH,
    Box,
    Drawing,
    Point,
    Sheet,
    shortened,
    wide,
    written,
)
from workshop.figures import INK

_STEPS, _WORDS, _NEXT = 6, 10, 4  # at most, the last of them at each step
_LINE, _APART, _NODE = 22, 30, 30  # pixels: a next word, between two steps, a node's height
_WORD, _BAR, _NUMBER, _ARROW = 84, 84, 56, 36  # pixels from the left to the right of a node


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
    told = [f"{' '.join(map(shortened, step.words))} → {_each(step)}" for step in rows]
    return page.sheet.picture(f"Written word by word: {'; '.join(told)}.")


def _each(step: _Step) -> str:
    likely = [f"{shortened(word)} {written(p, 2)}" for word, p in step.likely.items()]
    return f"{', '.join(likely)}: {shortened(step.chosen)}"


def _steps_of(steps: Any) -> list[_Step]:
    """Steps with what each of them chose."""
    if isinstance(steps, str | Mapping) or not isinstance(steps, Sequence):
        raise TypeError(f"steps is {said(steps)}, but must be a list of (words, probabilities)")
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
        raise TypeError(f"{name} is {said(step)}, but must be (words, probabilities)")
    if not isinstance(step[1], Mapping) or not step[1]:
        raise TypeError(f"{name} has {said(step[1])}, but needs words with a probability each")
    as_names(name, step[1])
    likely = {word: as_number(f"{name}[1][{word!r}]", p, 0, 1) for word, p in step[1].items()}
    return tokens_of(f"{name}[0]", step[0], _WORDS), likely


def _added(i: int, words: list[str], after: list[str]) -> str:
    """The first word that the step after adds."""
    if after[: len(words)] != words or len(after) == len(words):
        need = f"must begin with the words of steps[{i}] and add one"
        raise ValueError(f"steps[{i + 1}] has {said(' '.join(after))}, but {need}")
    return after[len(words)]


def _likeliest(i: int, likely: dict[str, float], chosen: str) -> dict[str, float]:
    """The likeliest words and the chosen one, by their probability."""
    if chosen not in likely:
        raise ValueError(f"steps[{i}] has no probability for {said(chosen)}, which is written next")
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
        places = [0.0]
        for width in long:
            places.append(places[-1] + min(width, most) + 5)
        return places

    def row(self, i: int) -> None:
        """Draw a step below the others."""
        step = self.rows[i]
        high = max(_LINE * len(step.likely), _NODE)
        middle = self.y + high / 2
        for j, word in enumerate(step.words):
            box = Box(self.left[j], middle - _NODE / 2, self.left[j + 1] - self.left[j] - 5, _NODE)
            new = j >= step.old
            self.sheet.label(box, word, "weights" if new else "x", share=0.3 if new else 0.18)
            if self.start and j == step.old:
                self._lead(self.start, box.top)
        self._likely(step, middle, box.right)
        self.y += high + _APART

    def _lead(self, start: Point, end: Point) -> None:
        """Draw a line from the word that was chosen to where it is written."""
        right, above = self.bars + _BAR + _NUMBER, self.y - _APART / 2
        path = [start, (right, start[1]), (right, above), (end[0], above), end]
        self.sheet.arrow(*path, colour=INKS["weights"], width=1.4)

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
        style = {"colour": INKS["weights"] if chosen else INK, "bold": chosen}
        self.sheet.text(self.bars - 7, y, shortened(word, _WORD), at="right", **style)
        bar = Box(self.bars, y - 7, max(p * _BAR, 1), 14)
        self.sheet.cell(bar, "", mixed(OF["weights"], 1 if chosen else 0.25))
        number = self.sheet.text(bar.right[0] + 6, y, written(p, 2), at="left", **style)
        if chosen:
            self.start = number.x + number.width + 5, y
