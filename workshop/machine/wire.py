"""What travels to the machine's page: a program, and what is seen where the kernel computes."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from workshop.machine.program import Operation, Program, Values, source_of

Cell = Sequence[Any]  # a path, a row and a column; or nothing


def shown(p: Program, at: str) -> list[str]:
    """The matrices of an open part: a step and its inputs, a head's steps, or a map's tiles."""
    if at in p.operations:
        return _with_inputs(p, p.operations[at])
    if f"{at}/scores" in p.operations:
        inside = [o for name, o in p.operations.items() if name.startswith(f"{at}/")]
        wholes = {o.inputs[0] for o in inside if o.kind == "split"}  # of all heads: much, not seen
        names = dict.fromkeys(name for o in inside for name in _with_inputs(p, o))
        names |= dict.fromkeys(source_of(p, f"{at}/{letter}") for letter in "qk")
        return [name for name in names if name not in wholes]
    heads = {tile: [o.name for o in some if o.kind == "softmax"]
             for tile, some in _tiles(p, at).items()}  # fmt: skip
    return [name for tile, some in _tiles(p, at).items() for name in heads[tile] or [some[-1].name]]


TOWERS = ("encoder", "decoder")
SIDE_BY_SIDE = re.compile(r"(head|expert) \d+")
MANY = 6  # of what stands side by side in a picture


def _tiles(p: Program, at: str) -> dict[str, list[Operation]]:
    """Paths two steps below a part, on the side of their tower, and the operations in each."""
    tiles: dict[str, list[Operation]] = {}
    for name, o in p.operations.items():
        if at and not name.startswith(f"{at}/"):
            continue
        start = len(at) + 1 if at else 0
        path = name[start:].split("/")
        tower = not at and path[0] in TOWERS
        deep = 1 if SIDE_BY_SIDE.fullmatch(path[0]) else 3 if tower or path[1:2] == ["head"] else 2
        tiles.setdefault(name[:start] + "/".join(path[:deep]), []).append(o)
    return tiles


def map_of(p: Program, at: str) -> dict[str, dict[str, Any]]:
    """A map's tiles by their titles, in the rows of the page, as `drawings.flow` takes them.

    Heads, and experts, stand side by side; a memory is read by the steps that attend to it.
    """
    above, ends = set[str](), dict[str, str]()
    found: dict[str, dict[str, Any]] = {"groups": {}, "breaks": {}, "read": {}}
    for name, row in _rows(p, at).items():
        own = [{o.name for o in some} for some in row.values()]
        made = [{i for o in some for i in o.inputs} for some in row.values()]
        apart = {i for i, before in enumerate([above, *own[:-1]]) if not made[i] & before}
        titles = [_title(p, tile) for tile in row]
        if len(titles) > MANY and len(apart - {0}) == len(titles) - 1:
            titles = [*titles[: MANY - 2], "…", titles[-1]]
        found["groups"][name], found["breaks"][name] = titles, apart & {*range(len(titles))}
        for title, some in zip(titles, row.values(), strict=False):
            if memory := ends.get(_memory(p, some)):
                found["read"].setdefault(memory, []).append(f"{name}/{title}")
        above = set().union(*own)
        ends |= dict.fromkeys(own[-1], name)
    return found


def _memory(p: Program, some: Sequence[Operation]) -> str:
    """Of which vectors of another text a tile's keys are made, if of any."""
    pairs = [o.inputs for o in some if o.kind == "scores"]
    return next((source_of(p, k) for q, k in pairs
                 if p.operations[q].rows != p.operations[k].rows), "")  # fmt: skip


def _title(p: Program, tile: str) -> str:
    return p.operations[tile].title if tile in p.operations else tile.rpartition("/")[2]


def _rows(p: Program, at: str) -> dict[str, dict[str, list[Operation]]]:
    """The tiles of a map in rows, a part's own steps by what they are; none is called twice."""

    def home_of(tile: str) -> str:
        home, _, own = tile[len(at) + 1 if at else 0 :].rpartition("/")
        beside = not home and SIDE_BY_SIDE.fullmatch(own)
        return f"{own.split()[0]}s" if beside else home.removesuffix("/head")  # one has no box

    found: dict[str, dict[str, list[Operation]]] = {}
    tiles = _tiles(p, at)
    for home, some in groupby(tiles, home_of):
        row = {tile: tiles[tile] for tile in some}
        name = _own(home, row) if home in ("", *TOWERS) else home.replace("/", " ")
        count = sum(other.rstrip(" 0123456789") == name for other in found)
        found[f"{name} {count + 1}" if count else name] = row
    return found


def _own(tower: str, row: Mapping[str, list[Operation]]) -> str:
    """What a part's own steps are called."""
    kinds = {some[0].kind for some in row.values()}
    if "softmax" in kinds:
        return "prediction"
    if "embed" in kinds or "given" in kinds:
        return f"{tower} words".strip()
    return "add & norm" if "add" in kinds else "steps"


def made_of(p: Program, cell: Cell) -> list[str]:
    """The matrices that a number is made of, itself included."""
    return _with_inputs(p, p.operations[cell[0]]) if cell and cell[0] in p.operations else []


def _with_inputs(p: Program, op: Operation) -> list[str]:
    """A step, its inputs, and where one of them is a part of something, the inputs of that."""
    parts = [o for o in (op, *(p.operations[name] for name in op.inputs)) if o.kind == "split"]
    beyond = [name for part in parts for name in p.operations[part.inputs[0]].inputs]
    return [op.name, *op.inputs, *beyond]


def needed(p: Program, cell: Cell, values: Values, ids: Mapping[str, list[int]]) -> list[dict]:
    """Of each weight the row or column that a number is made with, ready to travel."""
    if not cell or cell[0] not in p.operations or cell[1] >= len(values[cell[0]]):
        return []
    op, (_, i, j) = p.operations[cell[0]], cell
    if op.kind == "split":
        op, j = p.operations[op.inputs[0]], op.options["start"] + j
    row = ids[op.rows][i] if op.kind == "embed" else i if op.kind == "places" else 0
    parts = {name: ("row", row) for name in op.weights}
    if op.kind == "linear":
        parts[op.weights[0]] = ("column", j)
    return [_part(name, p.weights[name], *part) for name, part in parts.items()]


def _part(name: str, w: np.ndarray, side: str, k: int) -> dict[str, Any]:
    numbers = (w[k] if side == "row" else w[:, k]).astype("<f4")
    return {"name": name, side: k, "bytes": numbers.tobytes()}


def exactly(array: np.ndarray) -> dict[str, Any]:
    """An array ready to travel as `widgets.base.pack` does it, whatever its size as float32."""
    return {"shape": list(array.shape), "step": 0, "bytes": array.astype("<f4").tobytes()}


def packed(p: Program, *, away: bool = False) -> dict[str, Any]:
    """A program as JSON: operations that refer to others by number, and where each weight lies.

    Weights that stay `away`, with the kernel, lie nowhere; all others as `joined` lines them up.
    """
    index = {name: i for i, name in enumerate(p.operations)}
    rows = [[o.name, o.kind, [index[i] for i in o.inputs], o.weights, dict(o.options), o.title,
             o.note, o.colour, o.rows, o.columns] for o in p.operations.values()]  # fmt: skip
    places, start = {}, 0
    for name, w in p.weights.items():
        places[name] = [None if away else start, *w.shape]
        start += w.size
    return {"operations": rows, "weights": places, "vocab": p.vocab, "names": p.features(),
            "step": p.step, "knobs": p.knobs}  # fmt: skip


def joined(weights: Values) -> bytes:
    """All weights behind one another, as float32."""
    return b"".join(w.astype("<f4").tobytes() for w in weights.values())
