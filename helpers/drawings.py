"""Drawings of attention made from its arrays: each is one call and says its numbers in its alt.

Each is composed of the words of `helpers.sheet`. Where a matrix has more features than fit, the
last ones are left out with a "…"; more than twelve tokens are a ValueError.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from helpers.attention import (
    attention_scores,
    causal_mask,
    safe_masked_softmax,
    scale_scores,
    split_heads,
)
from helpers.colours import OF, tint
from helpers.figures import INK
from helpers.given import as_array, as_floats, as_names, as_switch, as_text, as_whole, said
from helpers.sheet import (
    CELL,
    INKS,
    MARGIN,
    MOST,
    WIDTH,
    Box,
    Drawing,
    Grid,
    Point,
    Sheet,
    fitted,
    grid,
    shortened,
    wide,
)

# ---------------------------------------------------------------- what a caller hands in


def _array(name: str, value: Any, *shape: int | str, masked: bool = False) -> np.ndarray:
    """Numbers of a shape; a word in it stands for any size."""
    array = as_floats(name, as_array(name, value), masked=masked)
    fits = array.ndim == len(shape) and all(
        need in (size, str(need)) for need, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        need = str(shape).replace("'", "")
        raise ValueError(f"{name} has shape {array.shape}, but must be {need}")
    return array


def _matrix(name: str, value: Any, masked: bool = False) -> np.ndarray:
    array = _array(name, value, "rows", "columns", masked=masked)
    if len(array) > MOST:
        raise ValueError(f"{name} has {len(array)} rows, but a drawing has room for {MOST}")
    return array


def _names(name: str, labels: Any, count: int) -> list[str]:
    labels = [] if labels is None else as_names(name, labels)
    if labels and len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} labels, but needs {count}")
    return labels


def _colour(name: str, colour: Any) -> str:
    if colour not in OF:
        raise ValueError(f"{name} is {said(colour)}, but must be one of {', '.join(OF)}")
    return colour


def _number_at(place: Any, drawn: Grid) -> tuple[int, int]:
    """The row and column of a number that is drawn."""
    shape = len(drawn.texts), len([text for text in drawn.texts[0] if text != "…"])
    if np.shape(place) != (2,):
        raise ValueError(f"lit is {said(place)}, but must be (row, column)")
    row, column = place
    return as_whole("lit's row", row, 0, shape[0] - 1), as_whole(
        "lit's column", column, 0, shape[1] - 1
    )


def _tokens(name: str, tokens: Any, most: int = MOST) -> list[str]:
    words = as_names(name, tokens.split() if isinstance(tokens, str) else tokens)
    if not 0 < len(words) <= most:
        raise ValueError(f"{name} has {len(words)} words, but must have from 1 to {most}")
    return words


def _place(name: str, chosen: Any, words: Sequence[str]) -> int:
    """Where a word stands, of several the first; or the place itself."""
    if not isinstance(chosen, str):
        return as_whole(name, chosen, 0, len(words) - 1)
    if chosen not in words:
        raise ValueError(f"{name} is {said(chosen)}, but must be one of {', '.join(words)}")
    return words.index(chosen)


def _each(words: Iterable[str], texts: Iterable[str]) -> str:
    """Numbers in words: "the 0.0, shop 1.0"."""
    return ", ".join(f"{shortened(word)} {text}" for word, text in zip(words, texts, strict=False))


def _rows_in_words(drawn: Grid, rows: Sequence[str] = ()) -> str:
    lines = [", ".join(texts) for texts in drawn.texts]
    named = [f"{shortened(row)} {line}" for row, line in zip(rows, lines, strict=False)]
    return "; ".join(named or lines)


def _pair(point: np.ndarray) -> str:
    return f"({', '.join(grid(point[None], 'x').texts[0])})"


# ---------------------------------------------------------------- one word's way through a head


class Step(NamedTuple):
    """A column of the head's picture, or a row below: how it is called, and who opens its box."""

    title: str
    note: str
    name: str  # of helpers.colours
    opens: str  # a notebook


STEPS = {
    "x": Step("x", "word vector", "x", "01"),
    "k": Step("k = x W_k", "what it offers", "k", "02"),
    "q": Step("q = x W_q", "query", "q", "02"),
    "scores": Step("q · k", "score", "scores", "03"),
    "scaled": Step("÷ √d", "scaled", "scores", "04"),
    "masked": Step("mask", "masked", "scores", "06"),
    "weights": Step("softmax", "weight", "weights", "05"),
    "v": Step("v = x W_v", "what it gives", "v", "02"),
    "shares": Step("weight × v", "its share", "v", "05"),
    "context": Step("Σ", "sum", "context", "05"),
}
_BELOW = ("q", "context")
_GAP = 28, 52  # pixels between two columns, at least and at most


def head(tokens: Any, X: Any, Q: Any, K: Any, V: Any, asker: Any, *, weights: Any = None,
         scaled: bool = True, causal: bool = False, lit: str | None = None,
         closed: Iterable[str] = ()) -> Drawing:  # fmt: skip
    """Draw one word's way through attention: its query, all keys, scores, weights, shares, sum.

    X (T, D), Q and K (T, d), V (T, d_v); the asker is a token or its place. `weights` (T,) are
    drawn instead of those computed, `lit` is the step drawn full, `closed` are steps drawn as boxes
    without numbers. Raises ValueError for other shapes, words and steps.
    """
    words = _tokens("tokens", tokens)
    at = _place("asker", asker, words)
    switches = as_switch("scaled", scaled), as_switch("causal", causal)
    arrays = _attend(len(words), at, X, Q, K, V, weights, *switches)
    full, shut = _chosen("lit", lit or arrays, arrays), _chosen("closed", closed, arrays)
    way = _Way(words, at, arrays, full, shut)
    for draw in (way.columns, way.query, way.links, way.sum):
        draw()
    return way.sheet.picture(way.in_words() + (f" Lit: {lit}." if lit else ""))


def _attend(T: int, at: int, X: Any, Q: Any, K: Any, V: Any, weights: Any, scaled: bool,
            causal: bool) -> dict[str, np.ndarray]:  # fmt: skip
    """The numbers of each step for one asker: (T, …), those of the query and the context (1, …)."""
    X, Q = _array("X", X, T, "features"), _array("Q", Q, T, "features")
    K, V = _array("K", K, T, Q.shape[1]), _array("V", V, T, "features")
    steps = {"x": X, "k": K, "q": Q[[at]], "scores": attention_scores(Q, K)[at]}
    last = steps["scores"]
    if scaled:
        last = steps["scaled"] = scale_scores(last, Q.shape[1])
    allowed = causal_mask(T)[at] if causal else np.ones(T, bool)
    if causal:
        steps["masked"] = np.where(allowed, last, -np.inf)
    computed = safe_masked_softmax(last, allowed)
    steps["weights"] = computed if weights is None else _array("weights", weights, T)
    steps |= {"v": V, "shares": steps["weights"][:, None] * V}
    steps["context"] = steps["shares"].sum(axis=0, keepdims=True)
    return {step: array if array.ndim == 2 else array[:, None] for step, array in steps.items()}


def _chosen(name: str, chosen: Any, steps: Iterable[str]) -> set[str]:
    chosen = as_names(name, [chosen] if isinstance(chosen, str) else chosen)
    for step in chosen:
        if step not in steps:
            raise ValueError(f"{name} is {said(step)}, but must be one of {', '.join(steps)}")
    return set(chosen)


def _fitting(arrays: dict[str, np.ndarray], room: float) -> dict[str, Grid]:
    """The numbers of all steps as written, of each as many features as fit side by side."""
    below = {"k": "q", "shares": "context"}  # written in cells of one width
    tall = {step: np.vstack([arrays[step], arrays[below[step]]]) if step in below else arrays[step]
            for step in arrays if step not in below.values()}  # fmt: skip
    columns = fitted(lambda most: [_grid(step, tall, arrays, most) for step in tall],
                     room - _GAP[0] * (len(tall) - 1))  # fmt: skip
    grids = dict(zip(tall, columns, strict=True))
    for step, under in below.items():
        both, top = grids[step], float(np.abs(arrays[under]).max())
        last = both.part(slice(-1, None))
        grids[step] = both.part(slice(-1))
        grids[under] = last._replace(name=STEPS[under].name, largest=top)
    return grids


def _grid(step: str, tall: Mapping[str, Any], arrays: Mapping[str, Any], most: int) -> Grid:
    decimals = 2 if step in ("weights", "shares") else None
    scale = np.abs(arrays["v" if step == "shares" else step])
    largest = float(scale[np.isfinite(scale)].max(initial=0))
    return grid(tall[step], STEPS[step].name, largest=largest, decimals=decimals, most=most)


class _Way:
    """The head's picture in the making: what is to be drawn, and where its rows stand."""

    def __init__(self, words: list[str], at: int, arrays: dict[str, np.ndarray], lit: set[str],
                 closed: set[str]):  # fmt: skip
        self.sheet, self.words, self.at = Sheet(), [shortened(word) for word in words], at
        self.lit, self.closed, self.d = lit, closed, arrays["k"].shape[1]
        self.pitch = 44 if len(words) <= 8 else 35
        beside = max(wide(word, bold=True) for word in self.words) + 10
        room = WIDTH - 2 * MARGIN - beside - 16  # the line of the sum
        self.grids = _fitting(arrays, room)
        columns = [step for step in arrays if step not in _BELOW]
        content = sum(self.grids[step].width for step in columns)
        self.gap = min((room - content) / (len(columns) - 1), _GAP[1])
        self.boxes: dict[str, list[Box]] = {}
        x = 0.0
        for step in columns:
            column = Box(x, 44, self.grids[step].width)
            self.boxes[step] = [column._replace(y=44 + i * self.pitch) for i in range(len(words))]
            x += column.width + self.gap
        for step, above in (("q", "k"), ("context", "shares")):
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
                title = title.replace("d", str(self.d)) if step == "scaled" else title
                self.sheet.text(x, 6, title, self.ink(step), bold=lit)
                self.sheet.text(x, 27, note)
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
        words = f"q = x W_q: what “{self.words[self.at]}” asks"
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
            lit, between = "shares" in self.lit, (row["weights"].right[0] + row["v"].x) / 2
            colour = INKS["weights"] if lit else INK
            self.sheet.text(between, row["v"].left[1], "×", colour, size=16)
            style = {"colour": colour, "width": 0.8 + 8 * min(abs(weight), 1.0)}
            self.sheet.arrow(row["v"].right, row["shares"].left, lit=lit and weight != 0, **style)

    def _meeting(self, k: Point, score: Point) -> None:
        lit, x = "scores" in self.lit, self.meets
        self._link(k, (x - 6, k[1]), "scores", INKS["k"])
        self.sheet.dot(x, k[1], self.ink("scores"), ring=True, lit=lit)
        self._link((x + 6, k[1]), score, "scores", INKS["scores"])

    def _link(self, start: Point, end: Point, step: str, colour: str) -> None:
        lit = step in self.lit
        self.sheet.arrow(start, end, colour=colour if lit else INK, lit=lit)

    def sum(self) -> None:
        """Draw how all shares become one row, the context."""
        lit, (box,), shares = "context" in self.lit, self.boxes["context"], self.boxes["shares"]
        style = {"colour": INKS["context"], "lit": lit, "width": 1.6}
        x = box.right[0] + 15
        for share in shares[1:]:
            self.sheet.arrow(share.right, (x, share.right[1]), head=False, **style)
        top = shares[0].right
        self.sheet.arrow(top, (x, top[1]), (x, box.right[1]), box.right, **style)
        self.sheet.text(x - 14, box.y - 12, "Σ", size=17, bold=lit)
        words = f"“{self.words[self.at]}” in this sentence"
        self.sheet.text(x, box.bottom[1] + 14, words, at="right", bold=lit)

    def in_words(self) -> str:
        """The numbers of the picture in words."""
        parts = [f"One attention head: {self.words[self.at]} asks"]
        for step in ("q", "scores", "scaled", "masked", "weights", "context"):
            if step in self.closed:
                parts.append(f"{STEPS[step].note} closed: notebook {STEPS[step].opens} opens it")
            elif step in self.grids:
                texts = self.grids[step].texts
                said_for = zip(self.words, texts, strict=True) if step not in _BELOW else ()
                spoken = [f"{word} {text}" for word, (text,) in said_for] or texts[0]
                parts.append(f"{STEPS[step].note} {', '.join(spoken)}")
        return "; ".join(parts) + "."


# ---------------------------------------------------------------- vectors and matrices


def matrix(array: Any, name: str = "x", *, rows: Any = None, columns: Any = None, title: str = "",
           lit: Any = None) -> Drawing:  # fmt: skip
    """Draw a matrix (rows, columns) as `name`: x, q, k, v, scores, weights or context.

    `lit` is the place (row, column) of a number. Raises ValueError when labels do not fit.
    """
    array, name = _matrix("array", array, masked=True), _colour("name", name)
    rows, columns = _names("rows", rows, len(array)), _names("columns", columns, array.shape[1])
    (drawn,) = fitted(lambda most: [grid(array, name, most=most)], WIDTH - 130)
    sheet, title = Sheet(), as_text("title", title)
    sheet.matrix(0, 0, drawn, title=title, rows=rows, columns=columns)
    if lit is not None:
        sheet.frame(drawn.box(0, 0, *_number_at(lit, drawn)), INKS["q"])
    return sheet.picture(f"Matrix {title or name}: {_rows_in_words(drawn, rows)}.")


def product(X: Any, W: Any, names: Sequence[str] = ("X", "W_q", "Q"), *, rows: Any = None,
            lit: Any = None) -> Drawing:  # fmt: skip
    """Draw X (rows, inner) @ W (inner, columns) = the result (rows, columns).

    `names` are those of the three, Q, K and V have their colours; `lit` is the place (row, column)
    of one number: its row, its column and its sum are shown. Raises ValueError for other shapes.
    """
    X = _matrix("X", X)
    W = _array("W", W, X.shape[1], "columns")
    rows, names = _names("rows", rows, len(X)), _names("names", names, 3)
    colours = ["x", *[names[2].lower() if names[2].lower() in OF else "context"] * 2]
    arrays = list(zip((X, W, X @ W), colours, strict=True))
    grids = fitted(lambda most: [grid(a, name, most=most) for a, name in arrays], WIDTH - 210)
    place, sheet = lit if lit is None else _number_at(lit, grids[2]), Sheet()
    boxes = _beside(sheet, grids, names, "@=", rows=rows, lits=_crossing(place, grids))
    spoken = f"{' @ '.join(names[:2])} = {names[2]}: {_rows_in_words(grids[2], rows)}."
    if place:
        terms = _terms(grids, place)
        centre = (boxes[0].x + boxes[2].right[0]) / 2
        below = max(box.bottom[1] for box in boxes) + 26
        sheet.text(centre, below, terms)
        spoken += f" Lit: {terms}."
    return sheet.picture(spoken)


def _crossing(place: tuple[int, int] | None, grids: Sequence[Grid]) -> list[Any]:
    """Which numbers of a product are lit: a row, a column, and where they cross."""
    if place is None:
        return [True] * 3
    row, column = np.arange(len(grids[0].values))[:, None] == place[0], None
    column = np.arange(len(grids[1].cells)) == place[1]
    return [row, column, row & column]


def _terms(grids: Sequence[Grid], place: tuple[int, int]) -> str:
    """The sum of one number of a product, as its parts are written."""
    X, W, result = (drawn.texts for drawn in grids)
    parts = [f"{x} × {w[place[1]]}" for x, w in zip(X[place[0]], W, strict=False) if x != "…"]
    more = [] if len(parts) <= 6 and len(parts) == len(W) else ["…"]
    return f"{' + '.join(parts[:6] + more)} = {result[place[0]][place[1]]}"


def _beside(sheet: Sheet, grids: Sequence[Grid], titles: Sequence[str], signs: str, *,
            rows: Sequence[str] = (), columns: Sequence[str] = (), y: float = 0,
            lits: Sequence[Any] = (True, True, True)) -> list[Box]:  # fmt: skip
    """Draw matrices side by side around the height y, with signs between them."""
    x, boxes = 0.0, []
    for drawn, title, lit in zip(grids, titles, lits, strict=False):
        top, names = y - CELL * len(drawn.values) / 2, () if boxes else rows
        boxes.append(sheet.matrix(x, top, drawn, title=title, rows=names, columns=columns, lit=lit))
        x += max(drawn.width, wide(title, bold=True)) + 46
    for sign, before, after in zip(signs, boxes, boxes[1:], strict=False):
        sheet.text((before.right[0] + after.x) / 2, y, sign, size=18)
    return boxes


def split_qkv(token: str, x: Any, W_q: Any, W_k: Any, W_v: Any) -> Drawing:
    """Draw a word's vector x (D,) splitting into its query, key and value, by W (D, d) each.

    Raises ValueError for other shapes.
    """
    x, word = _array("x", x, "features"), shortened(as_text("token", token))
    weights = {"q": W_q, "k": W_k, "v": W_v}
    weights = {name: _array(f"W_{name}", W, len(x), "d") for name, W in weights.items()}
    rows = {"x": x[None]} | {name: x[None] @ W for name, W in weights.items()}
    most = next(n for n in range(MOST, 1, -1) if _span(rows, n) <= WIDTH - 2 * MARGIN - 510)
    grids = {name: grid(row, name, most=most) for name, row in rows.items()}
    sheet = Sheet()
    start = sheet.matrix(0, -CELL / 2, grids["x"], title="x", rows=[word], bold=0)
    apart = CELL * len(x) + 40 if len(x) <= _OPEN else 84
    for i, (name, W) in zip((-1, 0, 1), weights.items(), strict=True):
        _branch(sheet, start, i, i * apart, W, grids[name])
    spoken = [f"{name} ({_SAYS[name]}) {_rows_in_words(grids[name])}" for name in weights]
    return sheet.picture(f"{word}, x {_rows_in_words(grids['x'])}, becomes {'; '.join(spoken)}.")


_SAYS = {"q": "what it asks", "k": "what it offers", "v": "what it gives"}
_OPEN = 5  # rows of learned weights; more are a closed box


def _span(rows: Mapping[str, np.ndarray], most: int) -> float:
    """How wide x and the widest of what it becomes are, with so many features each."""
    x, *others = (grid(row, "x", most=most).width for row in rows.values())
    return x + max(others)


def _branch(sheet: Sheet, start: Box, side: int, y: float, W: np.ndarray, result: Grid) -> None:
    """Draw the way from x through one W to its result around the height y."""
    name, left = result.name, start.right[0] + 84
    if len(W) <= _OPEN:
        drawn = grid(W, name, most=4)
        box = sheet.matrix(left, y - CELL * len(W) / 2, drawn, title=f"W_{name}")
    else:
        box = Box(left, y - 26, 130, 52)
        sheet.label(box, f"W_{name}  {len(W)} × {W.shape[1]}", name)
    style = {"colour": INKS[name], "width": 2}
    turn, end, out = left - 42, box.right[0] + 50, 8.0 * side
    sheet.arrow((start.right[0], out), (turn, out), (turn, y), (left, y), **style)
    sheet.arrow(box.right, (end, y), **style)
    sheet.cells(end, y - CELL / 2, result)
    words = f"{name}: {_SAYS[name]}"
    sheet.text(end + result.width + 12, y, words, INKS[name], at="left", bold=True)


def pick_row(words: Any, table: Any, chosen: Any) -> Drawing:
    """Draw a one-hot column (V,) picking a word's row of a table (V, features).

    Raises ValueError for other shapes, and for a word that the table does not have.
    """
    words = _tokens("words", words)
    table, at = _array("table", table, len(words), "features"), _place("chosen", chosen, words)
    one_hot = (np.arange(len(words)) == at)[:, None]
    hot = grid(one_hot.astype(float), "weights", decimals=0)
    (drawn,) = fitted(lambda most: [grid(table, "x", most=most)], (WIDTH - 330) / 2)
    sheet, left, y = Sheet(), hot.width + 66, at * CELL
    sheet.matrix(0, 0, hot, title="one-hot", rows=words, bold=at, lit=one_hot)
    box = sheet.matrix(left, 0, drawn, title="table", lit=one_hot)
    for i in range(len(words)):
        ink = INKS["weights"] if i == at else INK
        sheet.text((hot.width + left) / 2, (i + 0.5) * CELL, "×", ink, size=16)
    row, end = drawn.box(left, 0, at), box.right[0] + 84
    sheet.arrow(row.right, (end, row.right[1]), colour=INKS["weights"], width=5)
    found = drawn.part(slice(at, at + 1))
    sheet.matrix(end, y, found, title=f"“{shortened(words[at])}”")
    spoken = f"the 1 of the one-hot vector stands at {shortened(words[at])}"
    return sheet.picture(f"{spoken}: it picks the row {', '.join(found.texts[0])}.")


# ---------------------------------------------------------------- words that ask words


def arrows_of_scores(tokens: Any, scores: Any, asker: Any = None, *,
                     name: str = "scores") -> Drawing:  # fmt: skip
    """Draw words as nodes, and scores (T, T) or one asker's (T,) as arrows of that width.

    `name` is "scores" or "weights". An arrow is dashed for a score below 0, and missing for −∞.
    Raises ValueError for other shapes.
    """
    words, name = _tokens("tokens", tokens), _colour("name", name)
    T, at = len(words), None if asker is None else _place("asker", asker, words)
    one = np.ndim(scores) == 1 and at is not None
    scores = _array("scores", scores, *(T,) if one else (T, T), masked=True)
    askers = range(T) if at is None else [at]
    rows = scores[None] if one else scores[list(askers)]
    drawn = grid(rows, name, decimals=2 if name == "weights" else None)
    sheet, slot = Sheet(), min((WIDTH - 2 * MARGIN) / T, 104)
    nodes = [Box(j * slot + 5, 0, slot - 10, 30) for j in range(T)]
    for word, node in zip(words, nodes, strict=True):
        sheet.label(node, word, "k", share=0.18)
    largest = 1.0 if name == "weights" else drawn.largest or 1.0
    for i, row in zip(askers, rows, strict=True):
        _fan(sheet, nodes, i, words[i], row / largest, name)
    if at is not None:
        sheet.cells(0, -CELL - 10, drawn._replace(cells=[slot] * T))
    asks = [f"{shortened(words[i])} asks: {_each(words, texts)}"
            for i, texts in zip(askers, drawn.texts, strict=True)]  # fmt: skip
    return sheet.picture(f"Arrows as wide as {name}. {'; '.join(asks)}.")


def _fan(sheet: Sheet, nodes: Sequence[Box], at: int, word: str, shares: np.ndarray,
         name: str) -> None:  # fmt: skip
    """Draw the asker below, and its arrows up to the words."""
    asker = nodes[at]._replace(y=150)
    sheet.label(asker, word, "q", share=0.45)
    for node, share in zip(nodes, shares, strict=True):
        if np.isfinite(share):
            style = {"width": 0.6 + 9 * min(abs(share), 1.0), "dashed": share < 0}
            sheet.arrow(asker.top, node.bottom, colour=INKS[name], lit=share != 0, **style)


def mask_over(tokens: Any, scores: Any, allowed: Any = None) -> Drawing:
    """Draw scores (T, T), and what a mask (T, T) leaves of them: −∞ where it is not True.

    Without a mask it is the causal one. Raises ValueError for other shapes.
    """
    words = _tokens("tokens", tokens)
    T = len(words)
    scores = _array("scores", scores, T, T)
    allowed = causal_mask(T) if allowed is None else as_array("allowed", allowed, "b")
    _array("allowed", allowed, T, T)
    masked = np.where(allowed, scores, -np.inf)
    grids, titles = [grid(scores, "scores"), grid(masked, "scores")], ["scores", "masked"]
    if sum(drawn.width for drawn in grids) > WIDTH - 170:  # both do not fit
        grids, titles = grids[1:], titles[1:]
    sheet = Sheet()
    boxes = _beside(sheet, grids, titles, "→", rows=words, columns=words)
    for i, j in np.argwhere(~allowed):
        sheet.cell(grids[-1].box(boxes[-1].x, boxes[-1].y, i, j), "−∞", tint("context", 1, 1))
    kept = [f"{shortened(words[i])} sees {_each(words, grids[-1].texts[i])}" for i in range(T)]
    return sheet.picture(f"Scores under a mask: {'; '.join(kept)}.")


def holes(tokens: Any, weights: Any, dropped: Any) -> Drawing:
    """Draw weights (T, S) before dropout and after it: the holes, and how the rest grows.

    Raises ValueError for other shapes.
    """
    words, weights = _tokens("tokens", tokens), _matrix("weights", weights)
    weights = _array("weights", weights, len(words), "keys")
    dropped = _array("dropped", dropped, *weights.shape)
    gone = (dropped == 0) & (weights != 0)
    kept = (dropped != 0) & (weights != 0)
    largest = float(max(np.abs(weights).max(), np.abs(dropped).max()))
    grids = fitted(lambda most: [grid(a, "weights", largest=largest, decimals=2, most=most)
                                 for a in (weights, dropped)], WIDTH - 170)  # fmt: skip
    grown = np.unique((dropped[kept] / weights[kept]).round(2))
    says = f"{gone.sum()} of {gone.size} dropped"
    says += f", the rest × {grown[0]:.2f}" if len(grown) == 1 else ""
    sheet, columns = Sheet(), words if weights.shape[1] == len(words) else ()
    boxes = _beside(sheet, grids, ("weights", "after dropout"), "→", rows=words, columns=columns,
                    lits=(True, ~gone[:, : len(grids[1].cells)]))  # fmt: skip
    sheet.text((boxes[0].x + boxes[1].right[0]) / 2, boxes[0].bottom[1] + 20, says)
    return sheet.picture(f"Dropout: {says}. {_rows_in_words(grids[1], words)}.")


def cut_into_heads(tokens: Any, X: Any, heads: int, name: str = "q") -> Drawing:
    """Draw features (T, D) cut into heads, each of D / heads neighbours.

    Raises ValueError when the heads do not divide D, or D is more than 12.
    """
    words, name = _tokens("tokens", tokens), _colour("name", name)
    X = _array("X", X, len(words), "features")
    if X.shape[1] > MOST:
        raise ValueError(f"X has {X.shape[1]} features, but a drawing has room for {MOST}")
    size = split_heads(X[None], as_whole("heads", heads, 1, MOST)).shape[-1]
    whole, sheet, below = grid(X, name), Sheet(), CELL * (len(words) + 2)
    apart = min(46, (WIDTH - 130 - whole.width) / max(heads - 1, 1))
    shift = (heads - 1) * apart / 2
    sheet.matrix(shift, 0, whole, rows=words)
    for h in range(heads):
        part = whole.part(columns=slice(h * size, (h + 1) * size))
        x = h * part.width
        middle, y = sheet.brace(shift + x + 3, shift + x + part.width - 3, -13, INKS[name])
        sheet.text(middle, y - 13, f"head {h + 1}", INKS[name], bold=True)
        box = sheet.matrix(x + h * apart, below, part, rows=() if h else words)
        sheet.arrow((middle, CELL * len(words)), box.top, colour=INKS[name], width=2)
    spoken = f"{X.shape[1]} features cut into {heads} heads of {size} features each"
    return sheet.picture(f"{spoken}. {_rows_in_words(whole, words)}.")


# ---------------------------------------------------------------- in a plane


def plane(tokens: Any, V: Any, contexts: Any, asker: Any = None, *,
          names: Sequence[str] = ("feature 1", "feature 2")) -> Drawing:  # fmt: skip
    """Draw values (T, 2) as points, all that lies between them, and the contexts (T, 2) in there.

    An arrow shows the asker's way from its value to its context; `names` are those of the two
    features. Raises ValueError for other shapes.
    """
    words = _tokens("tokens", tokens)
    V, contexts = _array("V", V, len(words), 2), _array("contexts", contexts, len(words), 2)
    shown = range(len(words)) if asker is None else [_place("asker", asker, words)]
    sheet, points = Sheet(), np.vstack([V, contexts])
    field = _Plane(sheet, points, _names("names", names, 2))
    sheet.area([field.at(corner) for corner in _hull(V)], INKS["v"])
    for i, (v, c) in enumerate(zip(V, contexts, strict=True)):
        sheet.dot(*field.at(v), INKS["v"])
        sheet.dot(*field.at(c), INKS["context"], lit=i in shown)
    if asker is not None:
        ends = field.at(V[shown[0]]), field.at(contexts[shown[0]])
        sheet.arrow(*ends, colour=INKS["context"], width=2.2)
    field.names([(contexts[i], f"{words[i]} in context") for i in shown], INKS["context"])
    field.names(list(zip(V, words, strict=True)), INKS["v"])
    moves = [f"{shortened(word)} {_pair(v)} → {_pair(c)}"
             for word, v, c in zip(words, V, contexts, strict=True)]  # fmt: skip
    return sheet.picture(f"Values as points, each word's context between them: {'; '.join(moves)}.")


def moved(token: str, word: Any, context: Any, *,
          names: Sequence[str] = ("feature 1", "feature 2")) -> Drawing:  # fmt: skip
    """Draw a context (d,) as an arrow added to a word (d,): in numbers, and in a plane if d is 2.

    Raises ValueError for other shapes.
    """
    word, label = _array("word", word, "features"), shortened(as_text("token", token))
    context, sheet = _array("context", context, len(word)), Sheet()
    rows, titles = (word, context, word + context), (label, "context", f"{label}, moved")
    grids = fitted(lambda most: [grid(row[None], name, most=most) for row, name in zip(
        rows, ("x", "context", "context"), strict=True)], WIDTH - 120)  # fmt: skip
    _beside(sheet, grids, titles, "+=", y=100)
    if len(word) == 2:
        field = _Plane(sheet, np.array(rows), _names("names", names, 2))
        start, *ends = (field.at(point) for point in (np.zeros(2), word, word + context))
        sheet.arrow(start, ends[0], colour=INKS["x"], width=2.2)
        sheet.arrow(*ends, colour=INKS["context"], width=3.5)
        sheet.arrow(start, ends[1], colour=INKS["x"], dashed=True)
        field.names([(word, label), (word + context, titles[2])], INKS["context"])
    spoken = " + ".join(
        f"{title} {_pair(row)}" for title, row in zip(titles[:2], rows, strict=False)
    )
    return sheet.picture(f"{spoken} = {_pair(rows[2])}.")


class _Plane:
    """Two features as a plane: where points stand in it, and what is written beside them."""

    def __init__(self, sheet: Sheet, points: np.ndarray, names: Sequence[str]):
        self.sheet = sheet
        self.low, self.high = np.minimum(points.min(axis=0), 0), np.maximum(points.max(axis=0), 0)
        self.high = np.maximum(self.high, self.low + ((self.high - self.low).max() or 1) / 4)
        self.scale = (np.array([520, 320]) / (self.high - self.low)).min()
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

    def _ticks(self, axis: int) -> None:
        for tick in MaxNLocator(6).tick_values(self.low[axis], self.high[axis]):
            if self.low[axis] <= tick <= self.high[axis]:
                ends = np.stack([self.low, self.high])
                ends[:, axis] = tick
                start, end = map(self.at, ends)
                width = 0.7 if tick else 1.6
                self.sheet.arrow(start, end, head=False, lit=False, width=width)
                if axis:
                    self.sheet.text(start[0] - 8, start[1], f"{tick:g}", at="right")
                else:
                    self.sheet.text(start[0], start[1] + 14, f"{tick:g}")

    def names(self, named: list[tuple[np.ndarray, str]], colour: str) -> None:
        """Write names beside points, several of one point in one line."""
        together: dict[Point, list[str]] = {}
        for point, word in named:
            together.setdefault(self.at(point), []).append(shortened(word, 180))
        for place, words in together.items():
            words = shortened(", ".join(dict.fromkeys(words)), 260)
            spot = self._free(place, wide(words, True))
            self.taken.append(self.sheet.text(*spot, words, colour, bold=True))

    def _free(self, place: Point, long: float) -> Point:
        """The middle of a text beside a point, where nothing stands yet if there is a place."""
        near = [(9 + long / 2, 0), (0, -16), (0, 17), (-9 - long / 2, 0)]
        near += [(x * (6 + long / 2), y) for x in (1, -1) for y in (-14, 15)]
        spots = [(place[0] + x, place[1] + y) for x, y in near]
        areas = [Box(x - long / 2, y - 9, long, 18) for x, y in spots]
        free = [spot for spot, area in zip(spots, areas, strict=True)
                if not any(map(area.meets, self.taken))]  # fmt: skip
        return [*free, spots[0]][0]


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


# ---------------------------------------------------------------- the whole before its parts


def flow(groups: Mapping[str, Sequence[str]], lit: Any = ()) -> Drawing:
    """Draw a model's steps as boxes, a row of boxes a group, with some steps lit.

    Raises ValueError for a lit step that no group has.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise TypeError(f"groups is {said(groups)}, but must be names with a list of steps each")
    rows = {name: as_names(f"groups[{name!r}]", steps) for name, steps in groups.items()}
    names = as_names("groups", rows)
    full = _chosen("lit", lit, [step for steps in rows.values() for step in steps])
    sheet, y, last = Sheet(), 0.0, None
    for name, steps in zip(names, rows.values(), strict=True):
        sheet.text(-16, y + 17, shortened(name, 110), at="right")
        for line in _lines(steps):
            last = _flow_line(sheet, y, line, last, full)
            y += 74
    spoken = [f"{name}: {' → '.join(map(shortened, steps))}"
              for name, steps in zip(names, rows.values(), strict=True)]  # fmt: skip
    return sheet.picture("; ".join([*spoken, *[f"lit: {step}" for step in sorted(full)]]) + ".")


def _lines(steps: Sequence[str]) -> list[list[tuple[str, Box]]]:
    """Steps with their boxes, in as many lines as they need."""
    lines: list[list[tuple[str, Box]]] = [[]]
    x = 0.0
    for step in steps:
        size = wide(shortened(step, 180), True) + 26
        if x and x + size > WIDTH - 150:
            lines.append([])
            x = 0.0
        lines[-1].append((step, Box(x, 0, size, 34)))
        x += size + 30
    return lines


def _flow_line(sheet: Sheet, y: float, line: Sequence[tuple[str, Box]], last: Box | None,
               full: set[str]) -> Box | None:  # fmt: skip
    """Draw a line of steps at the height y, with arrows from each one's last; its last box."""
    for i, (step, place) in enumerate(line):
        box = place._replace(y=y)
        lit = step in full
        sheet.label(box, shortened(step, 180), "q" if lit else "x", share=0.5 * lit)
        if i:
            sheet.arrow(last.right, box.left)
        elif last:
            turn = y - 20
            sheet.arrow(last.bottom, (last.bottom[0], turn), (box.top[0], turn), box.top)
        last = box
    return last
