"""Why this word: what each part adds to its logit, what it costs to lose one, and the way back.

The norms' divisors, the attention weights and all else that bends stay as in this run; then the
stream is a sum, and one covector g goes back through it from the logit: a part's contribution is
part · g. A contribution is no cause. What is lost without a part is found by running the model
without it: its output, or a word's keys and values, are those of the mean over other sentences.
Elhage et al. (2021); Wang et al. (2022).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from workshop.machine.formulas import OFF, softmax
from workshop.machine.program import Operation, Program, Values, by_name, is_off, run

BENT = ("relu", "gelu", "gelu_tanh", "silu", "times")  # what a feed-forward's last map is given
EVERY = "every word"  # what all words get alike: it changes no probability
Texts = Mapping[str, Sequence[int]]
Changes = list[dict[str, Any]]
Place = tuple[str, int]  # a text and a place in it


class Part(NamedTuple):
    """A part of the stream, and what it adds."""

    at: str
    adds: float


# ---------------------------------------------------------------- contributions


def contributions(p: Program, values: Values, name: str, g: np.ndarray,
                  changes: Sequence[Mapping] = ()) -> list[Part]:  # fmt: skip
    """The parts of Σ g · matrix of an operation, largest first; g is (T, columns)."""
    off = {at for at, some in by_name(changes).items() if is_off(some)}
    parts: list[Part] = []
    waiting = [(name, g)]
    while waiting:
        at, g = waiting.pop()
        op = p.operations[at]
        found, below = _left(op, g) if at in off else _apart(p, values, op, g)
        parts += found
        waiting += below
    return sorted((part for part in parts if part.adds), key=lambda part: -abs(part.adds))


Below = list[tuple[str, np.ndarray]]  # operations, and their covectors


def _left(op: Operation, g: np.ndarray) -> tuple[list[Part], Below]:
    """Where an operation is switched off: what is left of it is its first input, or the other."""
    if OFF[op.kind] is OFF["mix"]:
        return [], []
    return [], [(op.inputs[OFF[op.kind] is OFF["add"]], g)]


def _apart(p: Program, values: Values, op: Operation, g: np.ndarray) -> tuple[list[Part], Below]:
    """An operation's own parts, and the covectors of what it is made of."""
    T = len(values[op.inputs[0]]) if op.inputs else 0
    if op.kind == "add":
        return [], [(name, g) for name in op.inputs]
    if op.kind in ("norm", "rms"):
        return _through_norm(p, values[op.inputs[0]], op, g)
    if op.kind == "linear" and p.operations[op.inputs[0]].kind not in BENT:
        bias = _bias(p, op.name, g)
        return bias, [(op.inputs[0], g @ p.weights[op.weights[0]].T)]
    if op.kind == "join":
        return [], [*zip(op.inputs, np.split(g, len(op.inputs), axis=1), strict=True)]
    if op.kind == "last":
        return [], [(op.inputs[0], np.pad(g, ((T - 1, 0), (0, 0))))]
    if op.kind == "mean":
        return [], [(op.inputs[0], np.repeat(g / T, T, axis=0))]
    return _ends(p, values, op, g), []


def _ends(p: Program, values: Values, op: Operation, g: np.ndarray) -> list[Part]:
    """What the way back stops at: a head, a feed-forward with its biases, a word, its place."""
    adds = float((values[op.name] * g).sum())
    if op.kind not in ("mix", "linear", "blend"):
        return [Part(op.name, adds)]
    biases = _bias(p, op.name, g)
    if op.kind == "blend":
        shares = values[op.inputs[0]]  # (T, experts)
        biases = [bias for i, name in enumerate(op.inputs[1:])
                  for bias in _bias(p, name, shares[:, [i]] * g)]  # fmt: skip
    return [Part(_home(op.name), adds - sum(bias.adds for bias in biases)), *biases]


def _home(name: str) -> str:
    return name.rpartition("/")[0]


def _bias(p: Program, name: str, g: np.ndarray) -> list[Part]:
    bias = p.weights.get(f"{name}/b")
    return [] if bias is None else [Part(f"{name}/b", float((bias * g).sum()))]


def _through_norm(p: Program, x: np.ndarray, op: Operation,
                  g: np.ndarray) -> tuple[list[Part], Below]:  # fmt: skip
    """gain (x − mean x) / s + shift, s as it is, back to (gain g − mean(gain g)) / s."""
    gain, shift = (p.weights.get(f"{op.name}/{key}") for key in ("gain", "shift"))
    added = [] if shift is None else [Part(f"{op.name}/shift", float((shift * g).sum()))]
    g = g if gain is None else gain * g
    if op.kind == "norm":
        x, g = (m - m.mean(axis=1, keepdims=True) for m in (x, g))
    size = np.sqrt((x**2).mean(axis=1, keepdims=True) + op.options["eps"])
    return added, [(op.inputs[0], g / size)]


# ---------------------------------------------------------------- what is lost without a part


class Attention(NamedTuple):
    """An attention: its heads, the steps that make keys and values, who asks and who is read."""

    at: str
    heads: tuple[str, ...]
    keys: tuple[str, ...]  # two where a part of each key turns
    values: str
    asks: str  # of the texts
    reads: str


class Said(NamedTuple):
    """What a run says of the word: its probability, its lead in logits, the likeliest word."""

    probability: float
    lead: float
    likeliest: int


class Step(NamedTuple):
    """A step of the way back: which word was read by whom, and what is said without that."""

    kind: str  # "read", "had read", "as key", "together"
    at: str  # an attention, or its only head that matters
    asker: Place
    word: Place
    after: Said
    heads: int = 1  # that read it


DRAWN = 12  # words of a text by lot, unless there are more


def by_lot(p: Program, texts: Texts, count: int = 12) -> list[dict[str, list[int]]]:
    """Long texts of words drawn by lot; what is written keeps its first word, the start."""
    rng = np.random.default_rng(0)
    tables = p.tables("embed")
    kept = {of: [*ids[:1]] if of == "written" else [] for of, ids in texts.items()}
    return [{of: kept[of] + rng.integers(len(tables[of]), size=max(DRAWN, len(ids))).tolist()
             for of, ids in texts.items()} for _ in range(count)]  # fmt: skip


def as_long(others: Sequence[Texts], texts: Texts) -> list[dict[str, list[int]]]:
    """As much of each text by lot as there is now of these; a longer one goes on with the next."""

    def ids(n: int, of: str) -> list[int]:
        rest = [i for one in [*others[n + 1 :], *others[:n]] for i in one[of][1:]]
        return [*others[n][of], *rest][: len(texts[of])]

    return [{of: ids(n, of) for of in texts} for n in range(len(others))]


STAND_IN, CARRIER = "stand-in", "carrier"
LEAST = 0.1  # what must be lost for a step to be told
MOST = 24  # links that are tried at one step


class Why:
    """Why a model says a word here, and not another: `word` and `rival` are ids.

    `others` are texts whose mean takes the place of what is cut; without them it is zeros. What was
    changed by hand, `changes`, stays changed. Raises ValueError for a model without a prediction.
    """

    def __init__(self, p: Program, texts: Texts, word: int, rival: int | None = None, *,
                 others: Sequence[Texts] = (), changes: Sequence[Mapping] = ()):  # fmt: skip
        self.p, self.texts, self.word, self.rival = p, texts, word, rival
        self.changes, self.others = list(changes), others
        scored = [o.name for o in p.operations.values() if o.columns == "vocab" and o.inputs]
        if not scored or p.operations[scored[0]].kind != "linear":
            raise ValueError("model has no prediction, and so no word to ask for")
        self.logits = scored[0]
        self.values = run(p, texts, self.changes)
        self.now = self.said(self.values)
        self.side = [*texts][-1]  # whose newest word is followed by the word
        self.asker = len(texts[self.side]) - 1

    # ------------------------------------------------------------ parts

    @cached_property
    def parts(self) -> list[Part]:
        """What adds up to the word's logit, or to its lead over its rival."""
        logits = self.values[self.logits]
        g, all_alike = np.zeros(logits.shape), []
        if self.rival is None:
            g[-1], all_alike = -1 / g.shape[1], [Part(EVERY, float(logits[-1].mean()))]
        else:
            g[-1, self.rival] = -1
        g[-1, self.word] += 1
        found = contributions(self.p, self.values, self.logits, g, self.changes)
        return found + all_alike

    @cached_property
    def attentions(self) -> list[Attention]:
        """All attentions, from below."""
        heads: dict[str, list[str]] = {}
        for op in self.p.operations.values():
            if op.kind == "mix":
                head = _home(op.name)
                heads.setdefault(_home(head), []).append(head)
        return [self._attention(at, some) for at, some in heads.items()]

    def _attention(self, at: str, heads: list[str]) -> Attention:
        ops = self.p.operations
        weights, v = ops[f"{heads[0]}/context"].inputs
        keys = [o.inputs[1] for name, o in ops.items()
                if o.kind == "scores" and _home(name) == heads[0]]  # fmt: skip
        *k, v = (self._whole(name) for name in (*keys, v))
        return Attention(at, tuple(heads), tuple(k), v, ops[weights].rows, ops[v].rows)

    def _whole(self, name: str) -> str:
        op = self.p.operations[name]
        return name if op.kind == "linear" else self._whole(op.inputs[0])

    @cached_property
    def outputs(self) -> dict[str, str]:
        """Every head and feed-forward, by its path: the operation that gives what it found."""
        ops = self.p.operations
        bent = {name for name, o in ops.items() if o.kind == "linear" and "/expert " not in name
                and ops[o.inputs[0]].kind in BENT}  # fmt: skip
        return {_home(name): name for name, o in ops.items()
                if o.kind in ("mix", "blend") or name in bent}  # fmt: skip

    # ------------------------------------------------------------ cuts

    @cached_property
    def means(self) -> Values:
        """What stands for what is cut: the mean row, over all words of the other sentences."""
        names = [*self.outputs.values(), *(n for a in self.attentions for n in _read(a))]
        runs = [run(self.p, texts, self.changes) for texts in self.others]
        return {name: np.concatenate([r[name] for r in runs]).mean(axis=0) if runs
                else np.zeros(self.values[name].shape[1]) for name in names}  # fmt: skip

    def said(self, values: Values) -> Said:
        """What a run says of the word."""
        logits = values[self.logits][-1]
        rival = logits.mean() if self.rival is None else logits[self.rival]
        p, lead = softmax(logits)[self.word], logits[self.word] - rival
        return Said(float(p), float(lead), int(logits.argmax()))

    def run(self, cut: Changes) -> Values:
        """The model without something."""
        return run(self.p, self.texts, [*self.changes, *cut], known=self.values)

    def without(self, cut: Changes) -> Said:
        """What is said without something."""
        return self.said(self.run(cut))

    def lost(self, after: Said) -> float:
        """The share of the lead that is lost, if there is a rival, else of the probability."""
        i = 0 if self.rival is None else 1
        return (self.now[i] - after[i]) / max(abs(self.now[i]), 1e-12)

    def gone(self, at: str) -> Changes:
        """A head or a feed-forward is not there: it gives the mean."""
        return self._rows(self.outputs[at], self.means)

    def _rows(self, name: str, of: Values) -> Changes:
        rows = np.broadcast_to(of[name], self.values[name].shape)
        return [{"at": name, "row": i, "values": row} for i, row in enumerate(rows)]

    def unread(self, a: Attention, j: int) -> Changes:
        """No other word reads word j, by no head of an attention."""
        own = [_row(f"{head}/context", j, self.values) for head in a.heads if a.asks == a.reads]
        return [*self._forgotten(a, j), *own]

    def _forgotten(self, a: Attention, j: int) -> Changes:
        return [{"at": name, "row": j, "values": self.means[name]} for name in _read(a)]

    def unlinked(self, a: Attention, asker: int, j: int, heads: Sequence[str] = ()) -> Changes:
        """One word, the asker, reads word j no more."""
        return self._for(a, asker, self._forgotten(a, j), heads)

    def _for(self, a: Attention, asker: int, cut: Changes, heads: Sequence[str] = ()) -> Changes:
        """What a cut changes in what one word reads, and nothing else of it."""
        values = self.run(cut)
        return [_row(f"{head}/context", asker, values) for head in heads or a.heads]

    def cuts(self) -> Iterator[tuple[str, Changes]]:
        """All that the sweep switches off, in turn: its path, and how."""
        for at in self.outputs:
            yield at, self.gone(at)
        for a in self.attentions:
            for j in range(len(self.texts[a.reads])):
                if not (a.asks == a.reads == self.side and j == self.asker):
                    yield f"{a.at}/word {j + 1}", self.unread(a, j)

    @cached_property
    def sweep(self) -> dict[str, Said]:
        """What is said without each head, each feed-forward, each word's reading."""
        return {at: self.without(cut) for at, cut in self.cuts()}

    # ------------------------------------------------------------ where contributions mislead

    @cached_property
    def notes(self) -> dict[str, tuple[str, list[str]]]:
        """Of parts that are not what their contribution says: which, and their proven partners."""
        adds = {part.at: part.adds for part in self.parts if part.at != EVERY}
        lead, found = sum(adds.values()), {}
        for at in self.outputs:
            share, lost = adds.get(at, 0.0) / abs(lead), self.lost(self.sweep[at])
            if share >= 0.15 and lost < 0.05:
                found[at] = STAND_IN, self._partner(at)
            elif abs(share) < 0.05 and lost >= LEAST:
                found[at] = CARRIER, self._carried(at)
        return found

    def _partner(self, at: str) -> list[str]:
        """The part without which this one is missed: it costs 20 points then."""
        costs = {}
        for other in [other for other in self.outputs if other != at]:
            both = self.without([*self.gone(at), *self.gone(other)])
            costs[other] = self.lost(both) - self.lost(self.sweep[other])
        best = max(costs, key=costs.__getitem__, default=at)
        return [best] if costs.get(best, 0) >= 0.2 else []

    def _carried(self, at: str) -> list[str]:
        """Up to three later parts that pass on what this one found: put back, they mend half."""
        later = [*self.outputs][[*self.outputs].index(at) + 1 :]
        cut, all_lost = self.gone(at), self.lost(self.sweep[at])

        def left(some: Sequence[str]) -> float:
            back = [c for one in some for c in self._rows(self.outputs[one], self.values)]
            return self.lost(self.without([*cut, *back]))

        best = sorted(later, key=lambda one: left([one]))[:3]
        counts = [n for n in range(1, len(best) + 1) if left(best[:n]) <= all_lost / 2]
        return best[: counts[0]] if counts else []

    # ------------------------------------------------------------ the way back

    @cached_property
    def steps(self) -> list[Step]:
        """Which word was read, what that had read, and so on: at most five, each with its test."""
        found: list[Step] = []
        upper, asker, above = self.logits, (self.side, self.asker), None
        while len(found) < 5 and (best := self._best(upper, asker)):
            (a, j), after = best
            found += self._told(a, asker, j, after, above)
            above, upper, asker = (a, asker[1], j), a.keys[0], (a.reads, j)
        return found[:5]

    def _best(self, upper: str, asker: Place) -> tuple[tuple[Attention, int], Said] | None:
        """Of the links below a step the one that is missed most, if that is a tenth."""
        tried = {link: self.without(self.unlinked(link[0], asker[1], link[1]))
                 for link in self._links(upper, *asker)}  # fmt: skip
        best = max(tried, key=lambda link: self.lost(tried[link]), default=None)
        return None if best is None or self.lost(tried[best]) < LEAST else (best, tried[best])

    def _links(self, upper: str, side: str, asker: int) -> list[tuple[Attention, int]]:
        """The words that one could have read below a step: the heaviest, of all heads together."""
        below, found = self._below(upper), {}
        for a in self.attentions:
            if a.asks == side and f"{a.heads[0]}/context" in below:
                weights = sum(self.values[f"{head}/weights"][asker] for head in a.heads)
                found |= {(a, j): weights[j] for j in range(len(self.texts[a.reads]))
                          if weights[j] > 0 and (a.reads, j) != (side, asker)}  # fmt: skip
        return sorted(found, key=lambda link: -found[link])[:MOST]

    def _below(self, name: str) -> set[str]:
        """All that an operation is made of."""
        found = {name}
        for op in reversed(self.p.operations.values()):
            found |= {*op.inputs} if op.name in found else set()
        return found

    def _told(self, a: Attention, asker: Place, j: int, after: Said,
              above: tuple[Attention, int, int] | None) -> list[Step]:  # fmt: skip
        """A link as a step: by which head, or by all; and whether it shows where to look."""
        alone = {head: self.without(self.unlinked(a, asker[1], j, [head])) for head in a.heads}
        worst = max(alone, key=lambda head: self.lost(alone[head]))
        one = self.lost(alone[worst]) >= 0.8 * self.lost(after)
        at, heads = (worst, 1) if one else (a.at, len(a.heads))
        kind, word = "read" if above is None else "had read", (a.reads, j)
        steps = [Step(kind, at, asker, word, alone[worst] if one else after, heads)]
        if self.lost(alone[worst]) < LEAST:
            steps.append(Step("together", worst, asker, word, alone[worst], heads))
        if above is not None:
            keyed = self._keyed(above, self.unlinked(a, asker[1], j))
            if self.lost(keyed) >= LEAST:
                steps.append(Step("as key", above[0].at, asker, word, keyed))
        return steps

    def _keyed(self, above: tuple[Attention, int, int], cut: Changes) -> Said:
        """What is said if a cut changes nothing but the key of a word for the one that read it."""
        a, asker, j = above
        values = self.run(cut)
        return self.without(self._for(a, asker, [_row(name, j, values) for name in a.keys]))


def _read(a: Attention) -> tuple[str, ...]:
    """The steps that a word's keys and values stand in."""
    return *a.keys, a.values


def _row(name: str, i: int, values: Values) -> dict[str, Any]:
    """A row is what it is in a run."""
    return {"at": name, "row": i, "values": values[name][i]}
