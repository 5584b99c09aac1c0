"""One word's way through an attention head, all of it in one picture."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from helpers.attention import attention_scores, causal_mask, safe_masked_softmax, scale_scores
from workshop import arguments as given
from workshop.drawings.cells import Grid, grid
from workshop.drawings.page import CELL, MARGIN, WIDTH, Box, Point, shortened, wide
from workshop.drawings.sheet import INKS, Drawing, Sheet
from workshop.figures import INK


class Step(NamedTuple):
    """A column of the head's picture, or a row below: how it is called, and who opens its box."""

    title: str
    note: str
    name: str  # of workshop.colours
    opens: str  # a notebook


STEPS = {
    "x": Step("word vector", "x", "x", "01"),
    "k": Step("key", "what it offers", "k", "02"),
    "q": Step("query", "what it asks", "q", "02"),
    "scores": Step("score", "q · k", "scores", "03"),
    "scaled": Step("scaled", "÷ √d", "scores", "04"),
    "masked": Step("masked", "by the mask", "scores", "06"),
    "weights": Step("weight", "softmax", "weights", "05"),
    "v": Step("value", "what it gives", "v", "02"),
    "adds": Step("weight × value", "what it adds", "v", "05"),
    "context": Step("context", "Σ", "context", "05"),
}
_BELOW = ("q", "context")
_GAP = 28, 52  # pixels between two columns, at least and at most
# Decimals of weights, of what they add, and of its sum: the first that add up as they are written.
_DECIMALS = (2, 2, 2), (3, 3, 3), (3, 2, 2), (4, 3, 3), (4, 3, 2), (3, 2, 1)


def head(tokens: Any, X: Any, Q: Any, K: Any, V: Any, asker: Any, *, weights: Any = None,
         causal: bool = False, lit: str | Iterable[str] | None = None,
         closed: Iterable[str] = (), num_heads: int = 1, head: int = 1) -> Drawing:  # fmt: skip
    """Draw one word's way through attention: its query, all keys, scores, weights, what is added.

    X (T, D), Q and K (T, d), V (T, d_v); the asker is a token or its place. `weights` (T,) are
    drawn instead of those computed, `lit` are steps drawn full, the others pale; `closed` are steps
    drawn as boxes without numbers. Of several heads, each with d / num_heads and d_v / num_heads
    neighbouring features, `head` is drawn, counted from 1. Numbers have as many decimals as it
    takes to add up as they are written; where four do not, the sign of the sum is "Σ ≈".
    Raises ValueError for other shapes, words and steps, and when the heads divide no width.
    """
    words = given.tokens_of("tokens", tokens)
    at = given.place_of("asker", asker, words)
    num_heads = given.as_whole("num_heads", num_heads, 1, given.MOST)
    head = given.as_whole("head", head, 1, num_heads)
    cut = len(words), num_heads, head
    Q, K, V = _of_head("Q", Q, *cut), _of_head("K", K, *cut), _of_head("V", V, *cut)
    arrays = _attend(len(words), at, X, Q, K, V, weights, given.as_switch("causal", causal))
    full = given.chosen_of("lit", lit or arrays, arrays)
    way = _Way(words, at, arrays, full, given.chosen_of("closed", closed, arrays))
    way.notes = {"scaled": f"÷ √{Q.shape[1]}"} | ({} if weights is None else {"weights": "changed"})
    way.where = f" in head {head}" if num_heads > 1 else ""
    for draw in (way.columns, way.query, way.links, way.sum):
        draw()
    told = f" Lit: {', '.join(step for step in arrays if step in full)}." if lit else ""
    return way.sheet.picture(way.in_words() + told)


def _of_head(name: str, array: Any, T: int, num_heads: int, head: int) -> np.ndarray:
    """Those features (T, d / num_heads) that a head has, counted from 1."""
    array = given.array_of(name, array, T, "features")
    if array.shape[1] % num_heads:
        need = f"must divide the {array.shape[1]} features of {name}"
        raise ValueError(f"num_heads is {num_heads}, but {need}")
    return np.split(array, num_heads, axis=1)[head - 1]


def _attend(T: int, at: int, X: Any, Q: Any, K: Any, V: Any, weights: Any,
            causal: bool) -> dict[str, np.ndarray]:  # fmt: skip
    """The numbers of each step for one asker: (T, …), those of the query and the context (1, …)."""
    X, K = given.array_of("X", X, T, "features"), given.array_of("K", K, T, Q.shape[1])
    steps = {"x": X, "k": K, "q": Q[[at]], "scores": attention_scores(Q, K)[at]}
    last = steps["scaled"] = scale_scores(steps["scores"], Q.shape[1])
    allowed = causal_mask(T)[at] if causal else np.ones(T, bool)
    if causal:
        steps["masked"] = np.where(allowed, last, -np.inf)
    computed = safe_masked_softmax(last, allowed)
    steps["weights"] = computed if weights is None else given.array_of("weights", weights, T)
    steps |= {"v": V, "adds": steps["weights"][:, None] * V}
    steps["context"] = steps["adds"].sum(axis=0, keepdims=True)
    return {step: array if array.ndim == 2 else array[:, None] for step, array in steps.items()}


def _decimals(arrays: Mapping[str, np.ndarray]) -> tuple[int, int, int] | None:
    """As few decimals as let the weights times values, and their sum, come out as written."""
    w, v, adds, context = (arrays[step] for step in ("weights", "v", "adds", "context"))
    for m, n, k in _DECIMALS:
        product = np.abs(w.round(m) * v.round(2) - adds.round(n)) <= 0.5 * 10.0**-n + 1e-9
        apart = np.abs(adds.round(n).sum(axis=0) - context.round(k))
        if product.all() and (apart <= 0.5 * 10.0**-k * (k < n) + 1e-9).all():
            return m, n, k
    return None


def _fitting(arrays: dict[str, np.ndarray], room: float,
             decimals: tuple[int, int, int]) -> dict[str, Grid]:  # fmt: skip
    """The numbers of all steps as written, of each as many features as fit side by side."""
    below = {"k": "q", "adds": "context"}  # written in cells of one width
    tall = {step: np.vstack([arrays[step], arrays[below[step]]]) if step in below else arrays[step]
            for step in arrays if step not in below.values()}  # fmt: skip
    for most in range(given.ROOM, 1, -1):
        grids = {step: _grid(step, tall, arrays, most, decimals) for step in tall}
        if _content(grids) <= room - _GAP[0] * (len(tall) - 1):
            break
    for step, under in below.items():
        both, top = grids[step], float(np.abs(arrays[under]).max())
        last = both.part(slice(-1, None))
        grids[step] = both.part(slice(-1))
        grids[under] = last._replace(name=STEPS[under].name, largest=top)
    sums = grid(arrays["context"], "context", decimals=decimals[2], most=most).texts
    grids["context"] = grids["context"]._replace(texts=sums)
    return grids


def _content(grids: Mapping[str, Grid]) -> float:
    """How wide all columns are with their names, which may reach into the least of gaps."""
    return sum(max(drawn.width, _named(step) - _GAP[0] + 8) for step, drawn in grids.items())


def _named(step: str) -> float:
    """How wide a step's name is."""
    return max(wide(STEPS[step].title, bold=True), wide(STEPS[step].note))


def _grid(step: str, tall: Mapping[str, Any], arrays: Mapping[str, Any], most: int,
          written: tuple[int, int, int]) -> Grid:  # fmt: skip
    decimals = {"weights": written[0], "adds": written[1]}.get(step)
    scale = np.abs(arrays["v" if step == "adds" else step])
    largest = float(scale[np.isfinite(scale)].max(initial=0))
    return grid(tall[step], STEPS[step].name, largest=largest, decimals=decimals, most=most)


class _Way:
    """The head's picture in the making: what is to be drawn, and where its rows stand."""

    def __init__(self, words: list[str], at: int, arrays: dict[str, np.ndarray], lit: set[str],
                 closed: set[str]):  # fmt: skip
        self.sheet, self.words, self.at = Sheet(), [shortened(word) for word in words], at
        self.lit, self.closed, self.notes, self.where = lit, closed, {}, ""
        beside = max(wide(word, bold=True) for word in self.words) + 10
        room = WIDTH - 2 * MARGIN - beside - 16  # the line of the sum
        decimals = _decimals(arrays)
        self.sign = "Σ" if decimals else "Σ ≈"
        self.grids = _fitting(arrays, room, decimals or _DECIMALS[0])
        self.pitch = 44 if len(words) <= 8 else 35
        self.gap, self.boxes = 0.0, {}
        self._place(room)

    def _place(self, room: float) -> None:
        """Find where the rows of each step stand, as far apart as there is room."""
        columns = [step for step in self.grids if step not in _BELOW]
        content = _content({step: self.grids[step] for step in columns})
        self.gap = min((room - content) / (len(columns) - 1), _GAP[1])
        x = 0.0
        for step, after in zip(columns, [*columns[1:], columns[-1]], strict=True):
            here, there = self.grids[step].width, self.grids[after].width
            rows = range(44, 44 + self.pitch * len(self.words), self.pitch)
            self.boxes[step] = [Box(x, y, here) for y in rows]
            names = (_named(step) + _named(after)) / 2 + 8
            x += max(here + self.gap, (here - there) / 2 + names)
        for step, above in (("q", "k"), ("context", "adds")):
            last = self.boxes[above][-1]
            self.boxes[step] = [last._replace(y=last.y + CELL + 26)]

    def ink(self, step: str) -> str:
        """The colour of a step's words and arrows."""
        return INKS[STEPS[step].name] if step in self.lit else INK

    def columns(self) -> None:
        """Draw the tokens, and each step with its name above."""
        for i, (word, box) in enumerate(zip(self.words, self.boxes["x"], strict=True)):
            self.sheet.text(box.x - 10, box.left[1], word, at="right", bold=i == self.at)
        for step, rows in self.boxes.items():
            title, note, *_ = STEPS[step]
            if step not in _BELOW:
                x, lit = rows[0].top[0], step in self.lit
                self.sheet.text(x, 6, title, self.ink(step), bold=lit)
                self.sheet.text(x, 27, self.notes.get(step, note))
            self._step(step, rows)

    def _step(self, step: str, rows: list[Box]) -> None:
        first, (_, _, name, opens) = rows[0], STEPS[step]
        if step in self.closed:
            box = first._replace(height=rows[-1].y + CELL - first.y)
            words = f"notebook {opens} opens this"
            self.sheet.label(box, words if len(rows) > 4 else f"→ {opens}", name)
        else:
            lit = step in self.lit
            self.sheet.cells(first.x, first.y, self.grids[step], pitch=self.pitch, lit=lit)

    def query(self) -> None:
        """Draw how the asker's vector becomes a query, and the query meets every key."""
        lit, asker, (q,) = "q" in self.lit, self.boxes["x"][self.at], self.boxes["q"]
        x, y = asker.right[0] + 0.36 * self.gap, asker.right[1] + 8
        style = {"colour": self.ink("q"), "lit": lit, "width": 2.2}
        self.sheet.arrow((asker.right[0], y), (x, y), (x, q.left[1]), q.left, **style)
        words = f"query: what “{self.words[self.at]}” asks{self.where}"
        self.sheet.text(q.bottom[0], q.bottom[1] + 14, words, self.ink("q"), bold=lit)
        if lit:
            self.sheet.frame(asker, INKS["q"])
        x, top, lit = self.meets, self.boxes["k"][0].left[1], "scores" in self.lit
        style = {"colour": INKS["q"] if lit else INK, "lit": lit, "width": 1.6}
        self.sheet.arrow(q.right, (x, q.right[1]), (x, top), head=False, **style)

    @property
    def meets(self) -> float:
        """Where, from left to right, the query meets the keys."""
        return self.boxes["k"][0].right[0] + 0.52 * self.gap

    def links(self) -> None:
        """Draw the arrows of each row, from the word's vector to its share."""
        chain = [step for step in ("scores", "scaled", "masked", "weights") if step in self.grids]
        for i, weight in enumerate(self.grids["weights"].values[:, 0]):
            row = {step: boxes[min(i, len(boxes) - 1)] for step, boxes in self.boxes.items()}
            self._link(row["x"].right, row["k"].left, "k", INKS["x"])
            self._meeting(row["k"].right, row["scores"].left)
            for before, step in itertools.pairwise(chain):
                self._link(row[before].right, row[step].left, step, INKS["scores"])
            lit, between = "adds" in self.lit, (row["weights"].right[0] + row["v"].x) / 2
            colour = INKS["weights"] if lit else INK
            self.sheet.text(between, row["v"].left[1], "×", colour, size=16)
            style = {"colour": colour, "width": 0.8 + 8 * min(abs(weight), 1.0)}
            self.sheet.arrow(row["v"].right, row["adds"].left, lit=lit and weight != 0, **style)

    def _meeting(self, k: Point, score: Point) -> None:
        lit, x = "scores" in self.lit, self.meets
        self._link(k, (x - 6, k[1]), "scores", INKS["k"])
        self.sheet.circle(x, k[1], 5.5, self.ink("scores"), width=0.9, lit=lit)
        self.sheet.dot(x, k[1], self.ink("scores"), 1.7, lit)
        self._link((x + 6, k[1]), score, "scores", INKS["scores"])

    def _link(self, start: Point, end: Point, step: str, colour: str) -> None:
        lit = step in self.lit
        self.sheet.arrow(start, end, colour=colour if lit else INK, lit=lit)

    def sum(self) -> None:
        """Draw how all that is added becomes one row, the context."""
        lit, (box,), adds = "context" in self.lit, self.boxes["context"], self.boxes["adds"]
        style = {"colour": INKS["context"], "lit": lit, "width": 1.6}
        x = box.right[0] + 15
        for one in adds[1:]:
            self.sheet.arrow(one.right, (x, one.right[1]), head=False, **style)
        top = adds[0].right
        self.sheet.arrow(top, (x, top[1]), (x, box.right[1]), box.right, **style)
        self.sheet.text(x - 5, box.y - 12, self.sign, at="right", size=17, bold=lit)
        words = f"context: “{self.words[self.at]}” in this sentence"
        self.sheet.text(x, box.bottom[1] + 14, words, at="right", bold=lit)

    def in_words(self) -> str:
        """The numbers of the picture in words."""
        parts = [f"One attention head: {self.words[self.at]} asks{self.where}"]
        for step in ("q", "scores", "scaled", "masked", "weights", "context"):
            called = STEPS[step].title
            if step in self.closed:
                parts.append(f"{called} closed: notebook {STEPS[step].opens} opens it")
            elif step in self.grids:
                texts = self.grids[step].texts
                said_for = zip(self.words, texts, strict=True) if step not in _BELOW else ()
                spoken = [f"{word} {text}" for word, (text,) in said_for] or texts[0]
                parts.append(f"{called} {', '.join(spoken)}")
        return "; ".join(parts) + "."
