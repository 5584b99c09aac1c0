"""The still picture of a machine, for where nothing runs: the part that is open, drawn."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from workshop.arguments import ROOM as MOST_ROWS
from workshop.drawings import flow, head, matrix
from workshop.drawings.sheet import Drawing
from workshop.machine.program import Operation, Program, Values, source_of
from workshop.machine.wire import map_of


def asking(p: Program, at: str, sides: Sequence[str]) -> str:
    """Whose words ask in a part: those of its first head."""
    heads = [o for o in p.operations.values() if o.kind == "scores"]
    return next((o.rows for o in heads if o.name.startswith(at)), sides[0])


class Still(NamedTuple):
    """What is drawn: the part of a program at a path, with its numbers, as they are now."""

    program: Program
    at: str
    asker: int | None  # the word that asks; the newest unless given
    values: Values
    tokens: Mapping[str, Sequence[str]]
    changed: bool  # by hand

    def drawing(self) -> Drawing:
        """A head as one word's way through it, a step as its matrix, all else as its parts."""
        p, at = self.program, self.at
        if p.step and not at:
            return self._step(p.operations[p.step])
        if f"{at}/scores" in p.operations:
            return self._head()
        return self._matrix(at) if at in p.operations else flow(**map_of(p, at))

    def _head(self) -> Drawing:
        """One word's way; its weights alone where a drawing of that way would not be true."""
        p, at, now = self.program, self.at, self.values
        masked = p.operations.get(f"{at}/masked")
        asked = (*p.operations[f"{at}/scores"].inputs, p.operations[f"{at}/context"].inputs[1])
        q, k, v = (p.operations[name] for name in asked)
        more = {f"{at}/sink", f"{at}/both"} & {*p.operations} or (masked and masked.options)
        if self.changed or more or q.rows != k.rows or len(now[q.name]) > MOST_ROWS:
            return self._matrix(f"{at}/weights")
        source = source_of(p, k.name)
        return head(self.tokens[q.rows], now[source], now[q.name], now[k.name], now[v.name],
                    self._place(), causal=masked is not None)  # fmt: skip

    def _place(self) -> int:
        newest = len(self.tokens[asking(self.program, self.at, [*self.tokens])]) - 1
        return newest if self.asker is None else min(self.asker, newest)

    def _step(self, op: Operation) -> Drawing:
        """What comes out of it, beside what was before if small."""
        now, text = self.values, self.tokens["text"]
        if op.kind == "softmax":
            chain = ["scores", "scaled", "weights"]
            stacked = np.vstack([now[name] for name in chain])
            return matrix(stacked, "scores", rows=chain, columns=text)
        if op.kind == "norm":
            both = np.hstack([now["add"], now["norm"]])
            return matrix(both, op.colour, rows=text, title="x + sublayer(x), and normed")
        return self._matrix(op.name)

    def _matrix(self, name: str) -> Drawing:
        op, array, tokens = self.program.operations[name], self.values[name], self.tokens
        named = self.program.features()
        vocab = self.program.vocab
        words = vocab.get(op.rows) or next(iter(vocab.values()), None)
        known = {"features": named.get(name, named.get(name.split("/")[-1])), "vocab": words}
        both = [(known | tokens).get(of) or () for of in (op.rows, op.columns)]
        if op.columns in tokens and len(both[1]) == array.shape[1] - 1:
            both[1] = [*both[1], "sink"]
        rows, columns = (of if len(of) == n else range(1, n + 1)
                         for of, n in zip(both, array.shape, strict=True))  # fmt: skip
        if len(rows) > MOST_ROWS:
            array, rows = array[:MOST_ROWS], rows[:MOST_ROWS]
        return matrix(array, op.colour, rows=rows, columns=columns, title=op.title)
