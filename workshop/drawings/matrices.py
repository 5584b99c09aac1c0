"""Matrices: alone, multiplied, picked from, masked, with holes, cut into heads."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from helpers.attention import causal_mask, split_heads
from workshop import arguments as given
from workshop.colours import colour_of, things_of
from workshop.drawings.cells import Grid, each, fitted, grid, rows_in_words
from workshop.drawings.page import CELL, MARGIN, WIDTH, WORD, Box, shortened, wide
from workshop.drawings.sheet import INKS, Drawing, Sheet
from workshop.figures import Picture


def matrix(array: Any, name: str = "x", *, rows: Any = None, columns: Any = None, title: str = "",
           lit: Any = None) -> Drawing:  # fmt: skip
    """Draw a matrix (rows, columns) as `name`: x, q, k, v, scores, weights or context.

    `lit` is the place (row, column) of a number, or a whole row. Raises ValueError when labels do
    not fit.
    """
    decimals = 0 if np.asarray(array).dtype.kind in "iu" else None  # counts have none
    array = given.array_of("array", array, "rows", "columns", masked=True)
    name, T, S = colour_of("name", name), *array.shape
    rows = () if rows is None else given.labels_of("rows", rows, T)
    columns = () if columns is None else given.labels_of("columns", columns, S)
    (drawn,) = fitted(lambda m: [grid(array, name, decimals=decimals, most=m)], WIDTH - 130)
    sheet, title = Sheet(), given.as_text("title", title)
    beside = max(WORD, WIDTH - 2 * MARGIN - 20 - drawn.width)
    sheet.matrix(0, 0, drawn, title=title, rows=rows, columns=columns, beside=beside)
    if lit is not None:
        row, column = _number_at((lit, 0) if np.ndim(lit) == 0 else lit, drawn)
        box = drawn.box(0, 0, row) if np.ndim(lit) == 0 else drawn.box(0, 0, row, column)
        sheet.frame(box, INKS["q"])
    return sheet.picture(f"Matrix {title or name}: {rows_in_words(drawn, rows)}.")


def _number_at(place: Any, drawn: Grid) -> tuple[int, int]:
    """The row and column of a number that is drawn."""
    if np.shape(place) != (2,):
        raise ValueError(f"lit is {given.said(place)}, but must be (row, column)")
    columns = len(drawn.cells) - (drawn.texts[0][-1] == "…")
    row = given.as_whole("lit's row", place[0], 0, len(drawn.texts) - 1)
    return row, given.as_whole("lit's column", place[1], 0, columns - 1)


def product(X: Any, W: Any, names: Sequence[str] = ("X", "W_q", "Q"), *, rows: Any = None,
            lit: Any = None) -> Drawing:  # fmt: skip
    """Draw X (rows, inner) @ W (inner, columns) = the result (rows, columns).

    `names` are those of the three: Q, Kᵀ, W_v, scores and such have their colours. `lit` is the
    place (row, column) of one number: its row, its column and its sum are shown. Raises ValueError
    for other shapes.
    """
    X = given.array_of("X", X, "rows", "columns")
    W, names = given.array_of("W", W, X.shape[1], "columns"), given.labels_of("names", names, 3)
    rows = () if rows is None else given.labels_of("rows", rows, len(X))
    arrays = list(zip((X, W, X @ W), things_of(names), strict=True))
    grids = fitted(lambda most: [grid(a, name, most=most) for a, name in arrays], WIDTH - 210)
    place, sheet = lit if lit is None else _number_at(lit, grids[2]), Sheet()
    boxes = side_by_side(sheet, grids, names, "@=", rows=rows, lits=_crossing(place, grids))
    spoken = f"{' @ '.join(names[:2])} = {names[2]}: {rows_in_words(grids[2], rows)}."
    if place:
        terms = _terms(grids, place)
        below = max(box.bottom[1] for box in boxes) + 26
        sheet.text((boxes[0].x + boxes[2].right[0]) / 2, below, terms)
        spoken += f" Lit: {terms}."
    return sheet.picture(spoken)


def _crossing(place: tuple[int, int] | None, grids: Sequence[Grid]) -> list[Any]:
    """Which numbers of a product are lit: a row, a column, and where they cross."""
    if place is None:
        return [True] * 3
    row = np.arange(len(grids[0].values))[:, None] == place[0]
    column = np.arange(len(grids[1].cells)) == place[1]
    return [row, column, row & column]


def _terms(grids: Sequence[Grid], place: tuple[int, int]) -> str:
    """The sum of one number of a product, as its parts are written; "≈" where these are rounded."""
    X, W, result = (drawn.texts for drawn in grids)
    found = result[place[0]][place[1]]
    parts = [f"{x} × {w[place[1]]}" for x, w in zip(X[place[0]], W, strict=False) if x != "…"]
    lines = [" + ".join(parts[:n] + ["…"] * (n < len(W))) for n in range(len(parts), 0, -1)]
    row, column = _read(X[place[0]]), _read([line[place[1]] for line in W])
    exact = abs(sum(map(float.__mul__, row, column)) - _read([found])[0]) < 0.006
    lines = [f"{line} {'=' if exact else '≈'} {found}" for line in lines]
    return next((line for line in lines if wide(line) <= WIDTH - 2 * MARGIN), lines[-1])


def _read(texts: Sequence[str]) -> list[float]:
    """Written numbers as a reader takes them, without a "…"."""
    return [float(text.replace("−", "-")) for text in texts if text != "…"]


def side_by_side(sheet: Sheet, grids: Sequence[Grid], titles: Sequence[str], signs: str, *,
            rows: Sequence[str] = (), columns: Sequence[str] = (), y: float = 0, apart: float = 46,
            lits: Sequence[Any] = (True, True, True)) -> list[Box]:  # fmt: skip
    """Draw matrices side by side around the height y, with signs between them."""
    x, boxes = 0.0, []
    slot = min(drawn.cells[0] for drawn in grids)  # all columns' names are turned, or none
    for drawn, title, lit in zip(grids, titles, lits, strict=False):
        top, names = y - CELL * len(drawn.values) / 2, () if boxes else rows
        around = max(wide(title, bold=True) - drawn.width, 0) / 2
        look = {"title": title, "rows": names, "columns": columns, "lit": lit, "slot": slot}
        box = sheet.matrix(x + around, top, drawn, **look)
        boxes.append(box)
        x = box.right[0] + around + apart
    for sign, before, after in zip(signs, boxes, boxes[1:], strict=False):
        if sign == "→":
            sheet.arrow((before.right[0] + 8, y), (after.x - 8, y), width=2)
        else:
            sheet.text((before.right[0] + after.x) / 2, y, sign, size=18)
    return boxes


def split_qkv(token: str, x: Any, W_q: Any, W_k: Any, W_v: Any) -> Drawing:
    """Draw a word's vector x (D,) splitting into its query, key and value, by W (D, d) each.

    Raises ValueError for other shapes.
    """
    x, word = given.array_of("x", x, "features"), shortened(given.as_text("token", token))
    weights = {"q": W_q, "k": W_k, "v": W_v}
    weights = {name: given.array_of(f"W_{name}", W, len(x), "d") for name, W in weights.items()}
    rows = {"x": x[None]} | {name: x[None] @ W for name, W in weights.items()}
    beside = wide(word, bold=True) + max(map(_span, weights.values())) + 280
    room = WIDTH - 2 * MARGIN - beside
    most = next((n for n in range(given.ROOM, 2, -1) if _rows_span(rows, n) <= room), 2)
    grids = {name: grid(row, name, most=most) for name, row in rows.items()}
    sheet = Sheet()
    start = sheet.matrix(0, -CELL / 2, grids["x"], title="x", rows=[word], bold=0)
    apart = CELL * len(x) + 40 if len(x) <= _OPEN else 84
    for i, (name, W) in zip((-1, 0, 1), weights.items(), strict=True):
        _branch(sheet, start, i, i * apart, W, grids[name])
    spoken = [f"{name} ({_SAYS[name]}) {rows_in_words(grids[name])}" for name in weights]
    return sheet.picture(f"{word}, x {rows_in_words(grids['x'])}, becomes {'; '.join(spoken)}.")


_SAYS = {"q": "what it asks", "k": "what it offers", "v": "what it gives"}
_OPEN = 5  # rows of learned weights; more are a closed box


def _span(W: np.ndarray) -> float:
    """How wide learned weights are drawn."""
    return grid(W, "x", most=4).width if len(W) <= _OPEN else 130


def _rows_span(rows: Mapping[str, np.ndarray], most: int) -> float:
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
        box = Box(left, y - 26, _span(W), 52)
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
    words = given.tokens_of("words", words)
    table = given.array_of("table", table, len(words), "features")
    at = given.place_of("chosen", chosen, words)
    one_hot = (np.arange(len(words)) == at)[:, None]
    hot = grid(one_hot.astype(float), "x", decimals=0)
    (drawn,) = fitted(lambda most: [grid(table, "x", most=most)], (WIDTH - 330) / 2)
    sheet, left = Sheet(), hot.width + 66
    sheet.matrix(0, 0, hot, title="one-hot", rows=words, bold=at, lit=one_hot)
    sheet.matrix(left, 0, drawn, title="table", lit=one_hot)
    for i in range(len(words)):
        sheet.text((hot.width + left) / 2, (i + 0.5) * CELL, "×", size=16)
    row, found, end = drawn.box(left, 0, at), drawn.part(slice(at, at + 1)), left + drawn.width + 84
    sheet.arrow(row.right, (end, row.right[1]), colour=INKS["x"], width=5)
    sheet.matrix(end, row.y, found, title=f"“{shortened(words[at])}”")
    spoken = f"the 1 of the one-hot vector stands at {shortened(words[at])}: it picks the row"
    return sheet.picture(f"{spoken} {rows_in_words(found)}.")


def mask_over(tokens: Any, scores: Any, allowed: Any = None) -> Drawing:
    """Draw scores (T, T), and what a mask (T, T) leaves of them: −∞ where it is not True.

    Without a mask it is the causal one. Raises ValueError for other shapes.
    """
    words = given.tokens_of("tokens", tokens)
    T = len(words)
    scores = given.array_of("scores", scores, T, T)
    allowed = causal_mask(T) if allowed is None else given.as_array("allowed", allowed, "b")
    given.array_of("allowed", allowed, T, T)
    masked = np.where(allowed, scores, -np.inf)
    grids, titles = [grid(scores, "scores"), grid(masked, "scores")], ["scores", "masked"]
    if sum(drawn.width for drawn in grids) > WIDTH - 170:  # both do not fit
        grids, titles = grids[1:], titles[1:]
    sheet = Sheet()
    side_by_side(sheet, grids, titles, "→", rows=words, columns=words)
    kept = [f"{shortened(words[i])} sees {each(words, grids[-1].texts[i])}" for i in range(T)]
    return sheet.picture(f"Scores under a mask: {'; '.join(kept)}.")


def holes(tokens: Any, weights: Any, dropped: Any) -> Drawing:
    """Draw weights (T, S) before dropout and after it: × where one was lost, the rest grown.

    Raises ValueError for other shapes.
    """
    words = given.tokens_of("tokens", tokens)
    weights = given.array_of("weights", weights, len(words), "keys")
    dropped = given.array_of("dropped", dropped, *weights.shape)
    gone, says = _lost(weights, dropped)
    largest = float(max(np.abs(weights).max(), np.abs(dropped).max()))
    grids = fitted(lambda most: [grid(a, "weights", largest=largest, decimals=2, most=most)
                                 for a in (weights, dropped)], WIDTH - 170)  # fmt: skip
    grids = grids[0], crossed(grids[1], gone)
    sheet, columns = Sheet(), words if weights.shape[1] == len(words) else ()
    titles, lits = ("weights", "after dropout"), (True, ~gone[:, : len(grids[1].cells)])
    boxes = side_by_side(sheet, grids, titles, "→", rows=words, columns=columns, lits=lits)
    sheet.text((boxes[0].x + boxes[1].right[0]) / 2, boxes[0].bottom[1] + 20, says)
    return sheet.picture(f"Dropout: {says}. {rows_in_words(grids[1], words)}.")


def crossed(drawn: Grid, gone: np.ndarray) -> Grid:
    """A matrix with a × in place of each number that is gone."""
    texts = [["×" if lost else text for lost, text in zip(row, line, strict=False)]
             for row, line in zip(gone, drawn.texts, strict=True)]  # fmt: skip
    return drawn._replace(texts=texts)


def maps(panels: Sequence[tuple[str, np.ndarray]], name: str, rows: Sequence[str],
         columns: Sequence[str], largest: float, alt: str) -> Picture:  # fmt: skip
    """Draw matrices (queries, keys) with their titles side by side, on one scale; NaN is a ×.

    Of more than twelve rows or columns, or where the page is too narrow, only tints are drawn.
    """
    sheet, n, few = Sheet(), len(panels), max(len(rows), len(columns)) <= given.ROOM
    some = rows[:: math.ceil(len(rows) / 32)]  # no more are written
    room = WIDTH - 2 * MARGIN - 10 - max(wide(shortened(word)) for word in some)
    grids = [crossed(grid(array, name, largest=largest, decimals=2), np.isnan(array))
             for _, array in panels if few]  # fmt: skip
    apart = min((room - n * max(drawn.width for drawn in grids)) / n, 46) if few else 0
    if apart >= 8:
        titles, names = [title for title, _ in panels], {"rows": rows, "columns": columns}
        side_by_side(sheet, grids, titles, "", apart=apart, lits=[True] * n, **names)
    else:
        _tinted(sheet, panels, name, rows, columns, largest, room / n - 24)
    sheet.text(0, max(y for _, y in sheet.corners) + 16, "rows: queries, columns: keys", at="left")
    drawing = sheet.picture(alt)
    return drawing if few else Picture(drawing.figure, alt)  # of so many cells, done sooner


def _tinted(sheet: Sheet, panels: Sequence[tuple[str, np.ndarray]], name: str, rows: Sequence[str],
            columns: Sequence[str], largest: float, room: float) -> None:  # fmt: skip
    """Draw matrices as tints alone, each in so many pixels from left to right."""
    size = min(CELL, room / len(columns)), min(CELL, 576 / len(rows))
    for i, (title, array) in enumerate(panels):
        box = Box(i * (room + 24), 0, size[0] * len(columns), size[1] * len(rows))
        sheet.tints(box, array, name, largest)
        sheet.labels(box, size, title, INKS[name], () if i else rows, columns)


def _lost(weights: np.ndarray, dropped: np.ndarray) -> tuple[np.ndarray, str]:
    """Where the holes are, and in words how many, and how the rest grows."""
    gone, kept = (dropped == 0) & (weights != 0), (dropped != 0) & (weights != 0)
    grown = np.unique((dropped[kept] / weights[kept]).round(2))
    says = f"{gone.sum()} of {np.count_nonzero(weights)} dropped"
    return gone, says + (f", the rest × {grown[0]:.2f}" if len(grown) == 1 else "")


def cut_into_heads(tokens: Any, X: Any, heads: int, name: str = "q") -> Drawing:
    """Draw features (T, D) cut into heads, each of D / heads neighbours.

    Raises ValueError when the heads do not divide D, or D is more than 12.
    """
    words, name = given.tokens_of("tokens", tokens), colour_of("name", name)
    X = given.array_of("X", X, len(words), "features")
    if X.shape[1] > given.ROOM:
        raise ValueError(f"X has {X.shape[1]} features, but a drawing has room for {given.ROOM}")
    size = split_heads(X[None], given.as_whole("heads", heads, 1, given.ROOM)).shape[-1]
    whole, sheet = grid(X, name), Sheet()
    cell = max(whole.cells[0], (wide("head", bold=True) + 6) / size)  # room for the name above
    whole = whole._replace(cells=[cell] * len(whole.cells))
    apart = min(46, (WIDTH - 130 - whole.width) / max(heads - 1, 1))
    above = sheet.matrix((heads - 1) * apart / 2, 0, whole, rows=words)
    for h in range(heads):
        part, x = whole.part(columns=slice(h * size, (h + 1) * size)), h * size * whole.cells[0]
        from_x, to_x = above.x + x, x + h * apart
        _head(sheet, part, f"head {h + 1}", from_x, Box(to_x, above.height, part.width))
        sheet.matrix(to_x, above.height + 2 * CELL, part, rows=() if h else words)
    spoken = f"{X.shape[1]} features cut into {heads} heads of {size} features each"
    return sheet.picture(f"{spoken}. {rows_in_words(whole, words)}.")


def _head(sheet: Sheet, part: Grid, name: str, x: float, below: Box) -> None:
    """Draw the name of a head over its features from x on, and an arrow to where it goes.

    Where the name is too wide, it has two lines.
    """
    colour = INKS[part.name]
    middle, path = x + part.width / 2, [(x + 3, -7), (x + 3, -13), (x + part.width - 3, -13),
                                         (x + part.width - 3, -7)]  # fmt: skip
    sheet.arrow(*path, colour=colour, head=False)
    lines = [name] if wide(name, bold=True) + 6 <= part.width else name.split()[::-1]
    for i, line in enumerate(lines):
        sheet.text(middle, -26 - 16 * i, line, colour, bold=True)
    end = below.top[0], below.y + 2 * CELL
    sheet.arrow((middle, below.y), end, colour=colour, width=2)
