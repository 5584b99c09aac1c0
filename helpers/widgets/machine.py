"""The machine: any model of the course, whole, every number of it, alive."""

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from helpers import operations
from helpers.figures import Picture
from helpers.operations import Program, Values
from helpers.widgets.base import Widget, program, style
from helpers.widgets.traits import Number, Text, Whole

IN_BROWSER = 2_000_000  # parameters; what has more is computed by the kernel


class Machine(Widget):
    """A model to open: its map, its layers, its heads, its numbers, each with its computation.

    `model` is a dictionary of arrays (see `helpers.operations.of_arrays`), a module of
    `helpers.layers`, `helpers.models` or `helpers.pretrained`, or one with the same parts. `vocab`
    lists its words (or maps them to ids; a pair of both for an encoder–decoder).
    """

    _esm = program("machine.js")
    _css = style("Machine")
    program = traitlets.Dict().tag(sync=True)
    learned = traitlets.Bytes().tag(sync=True)
    text = Text().tag(sync=True)
    written = Text().tag(sync=True)
    at = Text().tag(sync=True)
    asker = Whole().tag(sync=True)
    cell = traitlets.List().tag(sync=True)
    changes = traitlets.List().tag(sync=True)
    temperature = Number(1.0, min=0.01, max=100).tag(sync=True)
    output = traitlets.Dict().tag(sync=True)

    def __init__(self, model: Any, text: str, vocab: Any, *, written: str = "", **shown: Any):
        self._program = p = _program_of(model)
        texts = [
            of for of in ("text", "written") if any(o.rows == of for o in p.operations.values())
        ]
        vocabs = vocab if isinstance(vocab, tuple) else (vocab,) * len(texts)
        p.vocab = {of: _words(v) for of, v in zip(texts, vocabs, strict=True)}
        shown |= {"text": text, "written": written}
        packed, learned = _packed(p)
        super().__init__("", {}, program=packed, learned=learned, **shown)
        self.words = self._describe()

    @property
    def values(self) -> Values:
        """Every matrix of the model as it is now, computed in NumPy: {name: (rows, columns)}."""
        ids = {of: [words.index(w) for w in getattr(self, of).split()]
               for of, words in self._program.vocab.items()}  # fmt: skip
        return operations.run(self._program, ids, self.changes, self.temperature)

    def picture(self) -> Picture:
        """The drawing of the stage that is open."""
        from helpers.figures import heatmap

        name = self.at if self.at in self._program.operations else self._program.output
        array = self.values[name]
        return heatmap(array, range(len(array)), range(array.shape[1]), alt=self.words)

    def _describe(self) -> str:
        return f"Machine: {len(self._program.operations)} operations on “{self.text}”"


def _program_of(model: Any) -> Program:
    if isinstance(model, Mapping):
        return operations.of_arrays(model)
    from helpers import anatomy  # only models of PyTorch need PyTorch

    return anatomy.describe(model)


def _words(vocab: Mapping[str, int] | Sequence[str]) -> list[str]:
    return sorted(vocab, key=vocab.get) if isinstance(vocab, Mapping) else list(vocab)


def _packed(p: Program) -> tuple[dict[str, Any], bytes]:
    """The program as JSON, and all weights behind one another as float32."""
    index = {name: i for i, name in enumerate(p.operations)}
    rows = [[o.name, o.kind, [index[i] for i in o.inputs], o.weights, dict(o.options), o.title,
             o.note, o.colour, o.rows, o.columns] for o in p.operations.values()]  # fmt: skip
    places, offset = {}, 0
    for name, w in p.weights.items():
        places[name] = [offset, *w.shape]
        offset += w.size
    learned = b"".join(w.astype("<f4").tobytes() for w in p.weights.values())
    return {"operations": rows, "weights": places, "vocab": p.vocab, "names": p.names}, learned
