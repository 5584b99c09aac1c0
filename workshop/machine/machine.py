"""The machine: any model of the course, whole, every number of it, alive."""

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import traitlets

from workshop import arguments as given
from workshop.arguments import said
from workshop.figures import Picture
from workshop.machine.formulas import OFF
from workshop.machine.of_arrays import names_of, of_arrays
from workshop.machine.picture import Still, asking
from workshop.machine.program import Program, Values, check_option, predicts, run
from workshop.machine.told import Answer
from workshop.machine.why import Why, as_long, by_lot
from workshop.machine.wire import exactly, joined, made_of, needed, packed, shown
from workshop.widgets.base import Widget, pack, program, visible
from workshop.widgets.traits import Entries, Number, Text, Whole

IN_BROWSER = 2_000_000  # parameters; what has more is computed by the kernel
ROOM = 128  # words, where the model itself sets no limit
PAD, START = "<pad>", "<start>"  # what fills up texts, and is never read; what begins an answer
LIKELIEST = 5  # next words that are shown


class Machine(Widget):
    """A model to open: its map, its layers, its heads, its numbers, each with its computation.

    `model` is a dictionary of arrays (see `workshop.machine.of_arrays`), a module of
    `helpers.layers`, `helpers.models` or `helpers.pretrained`, or one with the same parts. It reads
    `text` and goes on from what is `written`, words between spaces; `vocab` lists the words or maps
    them to ids (two for two languages), or a `tokenizer` cuts a text. A layer alone works on
    vectors `x`, one for each token of a list `text`, maybe `causal`, a decoder's on a `memory` too.
    A single step of `workshop.machine.steps` is a `model` too: `text` says what its rows are.
    `names` are those of features, by the last name of a step: {"x": ["food", …], "add 1": …}.
    `others` are sentences, or pairs (text, written), whose mean stands for what `why` cuts; unless
    given they are drawn from the vocabulary. With `by_kernel` the weights stay with the kernel, as
    those of a large model or with a tokenizer always do, so that a notebook saves none of them.

    `at` is the part that is open, a path such as "layer 1/attention/head 2", `asker` the word whose
    query is followed (by default the newest), `cell` the number that is asked, `changes` what was
    changed, `asked` the word that is asked for (and its rival), `output` the likeliest next words
    with their probability.

    Raises ValueError for words that the vocabulary lacks, other sizes, or weights that are NaN or
    infinite, TypeError for a model that is not known.
    """

    _esm = program("machine/page.js", "Machine")
    description = traitlets.Bytes().tag(sync=True)
    learned = traitlets.Bytes().tag(sync=True)
    kept = traitlets.Dict().tag(sync=True)
    text = Text().tag(sync=True)
    written = Text().tag(sync=True)
    at = Text().tag(sync=True)
    asker = Whole(None, allow_none=True).tag(sync=True)
    cell = Entries().tag(sync=True)
    changes = Entries().tag(sync=True)
    asked = Entries().tag(sync=True)
    temperature = Number(1.0, min=given.SMALLEST).tag(sync=True)
    output = traitlets.Dict().tag(sync=True)

    def __init__(self, model: Any, text: str | Sequence[str], vocab: Any = None, *,
                 written: str = "", tokenizer: Any = None, x: Any = None, memory: Any = None,
                 causal: bool = False, asker: int | str | None = None, names: Any = None,
                 others: Sequence[Any] = (), by_kernel: bool = False, **where: Any):  # fmt: skip
        self._program = p = _program_of(model, x, memory, causal)
        p.names |= names_of({} if names is None else names)
        self._tokenizer = _tokenizer_of(model, vocab, tokenizer)
        self._runs: dict[str, Values] = {}
        _check_weights(p)
        read = {of for o in p.operations.values() if not o.inputs for of in (o.rows, o.columns)}
        self._sides = [of for of in ("text", "written") if of in read]
        size = sum(w.size for w in p.weights.values())
        away = given.as_switch("by_kernel", by_kernel)
        self._remote = away or self._tokenizer is not None or size > IN_BROWSER
        self._fixed = not any(o.kind in ("embed", "ids") for o in p.operations.values())
        self._rows = _rows(p)
        p.vocab = {} if self._fixed or self._tokenizer else _vocabs(p, self._sides, vocab)
        self._numbers = {of: {w: i for i, w in enumerate(v)} for of, v in p.vocab.items()}
        self._room = _room(p, model)
        if "written" in self._sides and not given.as_text("written", written):
            written = START if START in p.vocab.get("written", ()) else ""
        self._start = given.as_text("written", written).split(" ")[0]
        listed = self._fixed and not isinstance(text, str)
        self._tokens = given.as_labels("text", text) if listed else None
        text = given.as_text("text", " ".join(self._tokens) if self._tokens else text)
        if isinstance(asker, str):
            side = asking(p, given.as_text("at", where.get("at", "")), self._sides)
            asker = _place_of(asker, self._read(side, written if side == "written" else text)[0])
        self._others = others if self._remote else self._texts_of(others, text, written)
        self._by_lot = not others
        described = json.dumps(self._described(), ensure_ascii=False).encode()
        super().__init__("", {}, text=text, written=written, asker=asker, **where,
                         description=zlib.compress(described, 9),
                         learned=b"" if self._remote else joined(p.weights))  # fmt: skip
        self._tell()
        self.words = self._in_words()

    # ---------------------------------------------------------------- what it computes

    @property
    def values(self) -> Values:
        """Every matrix of the model as it is now, by its path: (rows, columns)."""
        return self._run(self.changes, self.temperature)

    @property
    def before(self) -> Values:
        """The same without what was changed."""
        return self._run([], 1.0)

    @property
    def tokens(self) -> dict[str, list[str]]:
        """The words, or pieces of words, of each text."""
        return {of: self._read(of, getattr(self, of))[0] for of in self._sides}

    def _run(self, changes: Sequence[Mapping], temperature: float) -> Values:
        """The values, of which the last few are remembered."""
        key = json.dumps([self.text, self.written, changes, temperature])
        if key not in self._runs:
            self._runs = dict(list(self._runs.items())[-1:])
            self._runs[key] = run(self._program, self._ids(), changes, temperature)
        return self._runs[key]

    def _ids(self) -> dict[str, list[int]]:
        return self._ids_of(*(getattr(self, of) for of in self._sides))

    def _read(self, of: str, text: str) -> tuple[list[str], list[int]]:
        """A text's tokens and ids. Raises ValueError for none, too many, or an unknown word."""
        if self._tokenizer is not None:
            cut = self._tokenizer.encode(text)
            tokens, ids = cut.tokens, cut.ids
        else:
            tokens = self._tokens or text.split()
            ids = [self._id(of, word) for word in tokens]
        rows = self._rows
        if not 0 < len(ids) <= (rows or self._room) or len(ids) < rows:
            need = f"{rows}, one for each row or column" if rows else f"1 to {self._room}"
            raise ValueError(f"{of} has {len(ids)} words, but needs {need}")
        return tokens, ids

    def _id(self, of: str, word: str) -> int:
        known = self._numbers.get(of)
        if known and word == PAD:
            raise ValueError(f"{of} has {PAD!r}, which fills up shorter texts of a batch: no word")
        if known is not None and word not in known:
            raise ValueError(f"{of} has {visible(word)!r}, which is not in the vocabulary")
        return known[word] if known else 0

    def _next(self) -> list[list[Any]]:
        """The likeliest next words: [word, probability, what it was before]."""
        name = self._program.output
        if not predicts(self._program.operations[name]) or self._fixed:
            return []
        now, was = self.values[name][-1], self.before[name][-1]
        best = [*np.argsort(-now, kind="stable")[:LIKELIEST], was.argmax()]
        word = partial(self._named, self._sides[-1])
        return [[word(i), float(now[i]), float(was[i])] for i in dict.fromkeys(best)]

    def _named(self, of: str, i: int) -> str:
        if self._tokenizer is not None:
            return self._tokenizer.decode([int(i)])
        return self._program.vocab[of][i]

    # ---------------------------------------------------------------- what is changed

    def intervene(self, at: str, **change: Any) -> None:
        """Change what a click or a drag changes: `off=True`, or a number, or a row of attention.

        `at` is the path of an operation, a weight, a head or a feed-forward. With `row` and
        `column` (from 0) stands `value`, with `row` alone all its `values`, with an `option` of an
        operation its `value`. Raises ValueError for a place or a number that does not exist.
        """
        one = self._checked({"at": at, **change})
        same = {key: one[key] for key in ("at", "off", "option", "row", "column") if key in one}
        rest = [c for c in self.changes if {k: c[k] for k in same if k in c} != same]
        self.changes = [*rest, one]

    def why(self, word: str, rather_than: str | None = None) -> Answer:
        """Why the model says a word next, and not another: its parts, their loss, the way back.

        Raises ValueError for a word that it cannot say, and for a model that predicts none.
        """
        word = self._said_id("word", word)
        rival = None if rather_than is None else self._said_id("rather_than", rather_than)
        texts = self.text, self.written
        others = self._texts_of(self._others, *texts) if self._remote else self._others
        others = as_long(others, self._ids()) if self._by_lot else others
        asked = Why(self._program, self._ids(), word, rival, others=others, changes=self.changes)
        return Answer(asked, self._named)

    def _said_id(self, name: str, word: str) -> int:
        if self._tokenizer is not None:
            return self._tokenizer.encode(given.as_text(name, word)).ids[0]
        known = self._numbers.get(self._sides[-1], {})
        if given.as_text(name, word) not in known:
            raise ValueError(f"{name} is {visible(word)!r}, but must be one that the model can say")
        return known[word]

    def _texts_of(self, others: Sequence[Any], *texts: str) -> list[dict[str, list[int]]]:
        """The ids of other sentences; unless given, of words drawn by lot. None of a part alone."""
        if not others:
            return [] if self._fixed else by_lot(self._program, self._ids_of(*texts))
        listed = given.as_list("others", others)
        pairs = [(one,) if isinstance(one, str) else given.as_list("others", one) for one in listed]
        if wrong := [pair for pair in pairs if len(pair) != len(self._sides)]:
            raise ValueError(f"others has {said(wrong[0])}, but needs {' and '.join(self._sides)}")
        try:
            return [self._ids_of(*(given.as_text("others", one) for one in pair)) for pair in pairs]
        except ValueError as error:
            raise ValueError(f"others cannot be read: {error}") from None

    def _ids_of(self, *texts: str) -> dict[str, list[int]]:
        return {of: self._read(of, text)[1] for of, text in zip(self._sides, texts, strict=False)}

    def put_back(self, at: str | None = None) -> None:
        """Undo what was changed at a path, or everything."""
        self.changes = [] if at is None else [c for c in self.changes if c["at"] != self._place(at)]

    def _place(self, at: str) -> str:
        """The full path of what is meant, of a head or a feed-forward what it gives."""
        known = self._program.operations.keys() | self._program.weights
        for name in (at, f"{at}/context", f"{at}/out"):
            if name in known:
                return name
        raise ValueError(f"at is {at!r}, but the model has no such part")

    def _checked(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """A change as it is kept. Raises ValueError or TypeError for one that cannot be made."""
        p, name = self._program, self._place(given.as_text("at", change.get("at")))
        if "option" in change:
            value = check_option(p.operations.get(name), change)
            return {"at": name, "option": change["option"], "value": value}
        if change.get("off"):
            if name in p.weights or p.operations[name].kind not in OFF:
                raise ValueError(f"at is {name!r}, which cannot be switched off")
            return {"at": name, "off": True}
        if name in p.operations and p.operations[name].kind in ("one-hot", "ids"):
            raise ValueError(f"at is {name!r}, but its rows are chosen by words: set another text")
        rows, columns = (p.weights.get(name) if name in p.weights else self.before[name]).shape
        made = {"at": name, "row": given.as_whole("row", change.get("row"), 0, rows - 1)}
        if "values" not in change:
            column = given.as_whole("column", change.get("column"), 0, columns - 1)
            return made | {"column": column, "value": given.as_number("value", change.get("value"))}
        values = [given.as_number("values", x) for x in given.as_list("values", change["values"])]
        if len(values) != columns:
            raise ValueError(f"values has {len(values)} numbers, but {name} needs {columns}")
        return made | {"values": values}

    @traitlets.validate("changes")
    def _possible(self, proposal: Mapping[str, Any]) -> list[dict[str, Any]]:
        changes = given.as_list("changes", proposal["value"])
        for change in changes:
            if not isinstance(change, Mapping):
                raise TypeError(f"changes has {said(change)}, but must hold dictionaries")
        try:
            return [self._checked(change) for change in changes]
        except (ValueError, TypeError) as error:
            raise type(error)(f"changes has one in which {error}") from None

    @traitlets.validate("text", "written")
    def _readable(self, proposal: Mapping[str, Any]) -> str:
        of, text = proposal["trait"].name, proposal["value"]
        if of in self._sides and not self._remote:
            self._read(of, text)
        return text

    @traitlets.validate("at")
    def _existing(self, proposal: Mapping[str, Any]) -> str:
        at, names = proposal["value"], self._program.operations
        if at and at not in names and not any(name.startswith(f"{at}/") for name in names):
            raise ValueError(f"at is {at!r}, but the model has no such part")
        return at

    @traitlets.validate("cell")
    def _number(self, proposal: Mapping[str, Any]) -> list[Any]:
        cell, p = given.as_list("cell", proposal["value"]), self._program
        if not cell:
            return []
        if len(cell) != 3 or not (cell[0] in p.operations or cell[0] in p.weights):
            raise ValueError(f"cell is {said(cell)}, but must be a path, a row and a column")
        return [cell[0], *(given.as_whole(f"cell[{i}]", cell[i], 0, given.MOST) for i in (1, 2))]

    # ---------------------------------------------------------------- what the browser is told

    @traitlets.validate("asked")
    def _sayable(self, proposal: Mapping[str, Any]) -> list[str]:
        asked = given.as_labels("asked", proposal["value"])
        word, rival, *more = [*asked, "", ""]
        for one in (word, rival) if self._program.vocab else ():
            if one:
                self._said_id("asked", one)
        if [*filter(None, more)] not in ([], ["gone"]):
            word = said(proposal["value"])
            raise ValueError(f"asked is {word}, but must be a word and its rival")
        return proposal["value"]

    @traitlets.observe("text", "written", "changes", "temperature", "at", "asker", "cell", "asked")
    def _tell(self, _: Any = None) -> None:
        """Compute again; where the kernel does it, hand over what is seen."""
        try:
            following = self._next()
        except ValueError as error:  # a word that was typed, and only the kernel could know
            self.kept = self.kept | {"problem": str(error)}
            return
        self.output = {word: now for word, now, _ in following}
        if self._remote:
            self.kept = self._seen() | {"next": following, "problem": ""}

    def _seen(self) -> dict[str, Any]:
        """Matrices of the part that is open, and all that the chosen number is made of."""
        p, now, before = self._program, self.values, self.before
        names, numbers = shown(p, self.at), made_of(p, self.cell)
        if self.at in p.operations or f"{self.at}/scores" in p.operations:
            numbers = [*numbers, *names]  # a map has pictures alone, of which steps are enough
        names = dict.fromkeys([*names, *numbers, p.output])
        moved = [name for name in names if not np.array_equal(now[name], before[name])]
        ways = {name: exactly if name in numbers else pack for name in names}
        return {
            "at": self.at, "cell": self.cell, "tokens": self.tokens, "ids": self._ids(),
            "values": {name: ways[name](now[name]) for name in names},
            "before": {name: ways[name](before[name]) for name in moved},
            "weights": needed(p, self.cell, now, self._ids()), "why": self._told_why(),
        }  # fmt: skip

    def _told_why(self) -> dict[str, Any] | None:
        """What the page is told of the word that is asked for."""
        if not self.asked:
            return None
        word, rival, gone, *_ = [*self.asked, "", ""]
        return self.why(word, rival or None).packed(bool(gone))

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """The page asks whether there is a kernel that computes for it."""
        if message == {"alive": True}:
            self.send(message)

    def _described(self) -> dict[str, Any]:
        """What the page must know of the model, besides its weights."""
        return packed(self._program, away=self._remote) | {
            "sides": self._sides, "room": self._room, "start": self._start, "fixed": self._fixed,
            "remote": self._remote, "others": [] if self._remote else self._others,
            "by_lot": self._by_lot,
            "tokens": {"text": self._tokens} if self._tokens else {},
        }  # fmt: skip

    # ---------------------------------------------------------------- where nothing runs

    def picture(self) -> Picture:
        """The drawing of the part that is open, small, since only where nothing runs it is seen."""
        at = self._program, self.at, self.asker
        drawing = Still(*at, self.values, self.tokens, changed=bool(self.changes)).drawing()
        self.words = f"{self._in_words()} {drawing.alt}"
        drawing.png, drawing.alt = drawing.small(), self.words
        return drawing

    def _in_words(self) -> str:
        p = self._program
        texts = ", ".join(f"“{visible(getattr(self, of), 80)}”" for of in self._sides)
        what = "A step, " + ", ".join(dict.fromkeys(o.title for o in p.operations.values()))
        if not p.step:
            what = f"A model opened at {self.at or 'its map'}"
        parts = [f"{what}, on {texts}: {len(p.operations)} steps"]
        if following := self._next():
            parts.append(f"the likeliest next word is {visible(following[0][0])}")
        return "; ".join(parts) + "."


def _program_of(model: Any, x: Any, memory: Any, causal: bool) -> Program:
    alone = not isinstance(model, Mapping | Program)
    if alone:
        from workshop.machine import of_modules as anatomy  # only models of PyTorch need PyTorch

        alone = anatomy.is_part(model)
    vectors = {"x": x, "memory": memory, "causal": given.as_switch("causal", causal) or None}
    for name, value in vectors.items():
        if value is not None and not alone:
            raise ValueError(f"{name} is {said(value)}, but only a part alone works on vectors")
    if isinstance(model, Program):
        return model
    if isinstance(model, Mapping):
        return of_arrays(model)
    return anatomy.describe(model, x, memory, causal=causal)


def _tokenizer_of(model: Any, vocab: Any, tokenizer: Any) -> Any:
    """The tokenizer that is given, or the model's own where there is no vocabulary."""
    if tokenizer is None:
        return getattr(model, "tokenizer", None) if vocab is None else None
    if not (hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode")):
        raise TypeError(f"tokenizer is {said(tokenizer)}, but must encode a text and decode ids")
    return tokenizer


def _place_of(asker: str, words: Sequence[str]) -> int:
    """Where the word that asks stands. Raises ValueError unless it is one of those that can."""
    if asker not in words:
        some = ", ".join(visible(word) for word in words[:LIKELIEST])
        raise ValueError(f"asker is {said(asker)}, but must be one of those that ask: {some}")
    return [*words].index(asker)


def _check_weights(p: Program) -> None:
    for name, w in p.weights.items():
        if not np.isfinite(w).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(w))[0])
            raise ValueError(f"model has {w[place]} in {name} at {place}, but needs finite numbers")


def _vocabs(p: Program, sides: Sequence[str], vocab: Any) -> dict[str, list[str]]:
    """The words of each text. Raises ValueError unless there is one for each row of its table."""
    several = vocab if isinstance(vocab, tuple) else (vocab,) * len(sides)
    if len(several) != len(sides):
        raise ValueError(f"vocab has {len(several)} vocabularies, but the model needs {len(sides)}")
    words = {of: given.as_vocabulary("vocab", v) for of, v in zip(sides, several, strict=True)}
    for of, table in p.tables("embed").items():
        if len(words[of]) != len(table):
            need = f"the table has {len(table)} rows"
            raise ValueError(f"vocab has {len(words[of])} words, but {need}")
    return words


def _rows(p: Program) -> int:
    """How many words a step or a layer alone works on; 0 where any number will do."""
    for o in p.operations.values():
        if o.kind == "given" and "text" in (o.rows, o.columns):
            return p.weights[o.weights[0]].shape[0 if o.rows == "text" else 1]
    return 0


def _room(p: Program, model: Any) -> int:
    """The most words that a model has places for."""
    tables = [len(table) for table in p.tables("places").values()]
    waves = getattr(getattr(model, "positions", None), "table", None)
    turned = getattr(model, "context_length", None)  # of a model that has no table
    return min([ROOM, *tables, *([] if waves is None else [len(waves)]), turned or ROOM])
