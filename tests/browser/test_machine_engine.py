"""The machine's arithmetic in a real browser: its numbers, its sums, its changes, its speed.

Numbers are held against PyTorch (hooks on the modules) and `helpers.operations.run`; every sum that
is written out is read and evaluated here, by another reader than the page's own.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from helpers import attention, blocks, layers, models, operations
from helpers.anatomy import describe
from helpers.operations import Program, Values, of_arrays
from helpers.pretrained.encoder import SentenceEncoder
from helpers.widgets.base import module
from helpers.widgets.machine import _packed

CLOSE = {"atol": 1e-4, "rtol": 0, "equal_nan": True}
NAMES = "Object.assign(globalThis, { Engine, RUN, explain, needs });"
LOAD = """([program, learned]) => {
  const bytes = Uint8Array.from(atob(learned), (sign) => sign.charCodeAt(0));
  globalThis.engine = new Engine(program, new Float32Array(bytes.buffer));
}"""
RUN = """(args) => {
  globalThis.values = engine.run(...args);
  return Object.entries(values).map(([name, { data, rows, columns }]) => {
    const bytes = new Uint8Array(Float64Array.from(data).buffer);
    const signs = Array.from(bytes, (byte) => String.fromCharCode(byte));
    return [name, rows, columns, btoa(signs.join(""))];
  });
}"""
EXPLAIN = """(places) => places.map(([name, i, j]) => {
  const at = ({ name, row, column }) => values[name].data[row * values[name].columns + column];
  const { words, formula, shown, sources } = explain(engine, values, name, i, j);
  return { name, i, j, words, formula, shown, x: at({ name, row: i, column: j }),
    kind: engine.by[name]?.kind, from: sources.map(at), of: sources.map((place) => place.name) };
})"""
TIMES = """([texts, changes, unkept]) => Array.from({ length: 30 }, () => {
  if (unkept) engine.plain = null;
  const start = performance.now();
  engine.run(texts, changes);
  return performance.now() - start;
})"""


class Page:
    """A page in which a program runs."""

    def __init__(self, page):
        self.page = page
        page.add_script_tag(content=f"{module('sums.js')}\n{NAMES}", type="module")
        page.wait_for_function("!!globalThis.Engine")

    def load(self, program: Program) -> None:
        packed, learned = _packed(program)
        self.page.evaluate(LOAD, [packed, base64.b64encode(learned).decode()])

    def run(self, texts: dict, changes: list | None = None, temperature: float = 1.0) -> Values:
        """Every matrix, weights among them; later questions are about this run."""
        texts = {rows: [int(i) for i in ids] for rows, ids in texts.items()}
        found = self.page.evaluate(RUN, [texts, changes or [], temperature])
        return {name: np.frombuffer(base64.b64decode(data)).reshape(rows, columns)
                for name, rows, columns, data in found}  # fmt: skip

    def explain(self, places: list) -> list[dict]:
        """What is said of each number (name, row, column) of the last run."""
        return self.page.evaluate(EXPLAIN, places)


@pytest.fixture(scope="module")
def page(browser):
    """A page with engine and sums; nothing in it may complain."""
    shown, faults = browser.new_page(), []
    shown.on("pageerror", lambda error: faults.append(str(error)))
    shown.on("console", lambda said: faults.append(said.text))
    yield Page(shown)
    shown.close()
    assert not faults


# ---------------------------------------------------------------- random models

Texts = dict[str, list[int]]


@dataclass
class Case:
    """A program, ids for its texts, and what PyTorch, or our NumPy functions, compute of them."""

    program: Program
    texts: Texts
    expected: Values


PARTS = ("MultiHeadAttention", "EncoderLayer", "DecoderLayer", "Encoder", "Decoder")


def options(rng: np.random.Generator) -> dict[str, Any]:
    """Sizes and options of layers: widths are few, so that all is quick."""
    heads = int(rng.integers(1, 5))
    return {
        "d_model": heads * int(rng.choice([2, 4])), "num_heads": heads,
        "d_ff": int(rng.integers(3, 13)), "pre_norm": bool(rng.integers(2)),
        "activation": str(rng.choice([*layers.ACTIVATIONS])), "bias": bool(rng.integers(2)),
        "d_head": int(rng.integers(2, 5)) if rng.integers(2) else None,
    }  # fmt: skip


def vectors(rng: np.random.Generator, d: int) -> torch.Tensor:
    return torch.tensor(rng.normal(size=(1, rng.integers(1, 8), d)), dtype=torch.float32)


def ids(rng: np.random.Generator, vocab: int) -> list[int]:
    return rng.integers(1, vocab, size=rng.integers(1, 8)).tolist()  # 0 is padding


def part(rng: np.random.Generator, kind: str) -> tuple[torch.nn.Module, Callable]:
    """One attention, layer or stack alone, and inputs: x, maybe with memory."""
    how = options(rng)
    d, heads = how["d_model"], how["num_heads"]
    if kind == "MultiHeadAttention":
        some = {key: how[key] for key in ("d_head", "bias")}
        return layers.MultiHeadAttention(d, d, heads, **some), lambda: (vectors(rng, d),)
    both = kind.startswith("Decoder")
    stack = {"num_layers": 2} if kind in ("Encoder", "Decoder") else {}
    made = getattr(models if stack else layers, kind)(**how, **stack)
    return made, lambda: tuple(vectors(rng, d) for _ in range(1 + both))


def language_model(rng: np.random.Generator) -> tuple[torch.nn.Module, Callable]:
    """Decoder alone, once with many words; tied or not."""
    vocab = int(rng.choice([9, 600, 5000]))
    made = models.DecoderOnly(vocab, 8, **options(rng), num_layers=int(rng.integers(1, 3)),
                              tie_weights=bool(rng.integers(2)))  # fmt: skip
    return made, lambda: {"text": ids(rng, vocab)}


def translator(rng: np.random.Generator) -> tuple[torch.nn.Module, Callable]:
    made = models.Transformer(9, 11, **options(rng), num_layers=int(rng.integers(1, 3)))
    return made, lambda: {"text": ids(rng, 9), "written": ids(rng, 11)}


def sentence_encoder(rng: np.random.Generator) -> tuple[torch.nn.Module, Callable]:
    how = {key: x for key, x in options(rng).items() if key in ("d_model", "num_heads", "d_ff")}
    made = SentenceEncoder(20, 8, 2, **how, num_layers=2, tokenizer=Mock())
    return made, lambda: {"text": ids(rng, 20)}


def cases(seed: int, sentences: int) -> Iterator[Case]:
    """A random model, all its parameters too, with some sentences."""
    rng = np.random.default_rng(seed)
    kinds = (language_model, translator, sentence_encoder)
    made, sentence = kinds[seed % 4 - 1](rng) if seed % 4 else part(rng, PARTS[seed // 4 % 5])
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in made.eval().parameters():
            parameter.normal_(0.1, 0.6)
    program = None
    for _ in range(sentences):
        given = sentence()
        alone = isinstance(given, tuple)
        if alone or program is None:
            program = describe(made, *(x[0] for x in given)) if alone else describe(made)
        texts = dict.fromkeys(("text", "memory"), ()) if alone else given
        inputs = given if alone else [torch.tensor([part]) for part in given.values()]
        yield Case(program, texts, seen(program, made, inputs))


def watched(program: Program, made: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The operations whose matrix is the output of a module, each with that module."""
    parts = dict(made.named_modules())
    for at, (name, what, *number) in program.origins.items():
        of = parts[name]
        if what == "attention":
            whole = "head" if of.num_heads == 1 else "all heads"
            yield from ((f"{at}/{whole}/{letter}", getattr(of, f"W_{letter}")) for letter in "qkv")
            yield f"{at}/out", of
        elif what == "feed-forward":
            bent = next(name for name in program.operations if re.match(f"{at}/.*elu", name))
            yield from ((f"{at}/hidden", of.W1), (bent, of.activation), (f"{at}/out", of))
        elif what == "norm":
            yield at, of
        elif what == "add" and number == [2 + isinstance(of, layers.DecoderLayer)]:
            yield at if of.pre_norm else at.replace("add", "norm"), of  # a layer's own output


def seen(program: Program, made: torch.nn.Module, inputs: Any) -> Values:
    """What PyTorch computes: modules' outputs by hooks, heads' weights, the model's output."""
    found: Values = {}

    def keep(name: str) -> Callable:
        return lambda *said: found.__setitem__(name, said[-1][0].numpy().copy())

    hooks = [of.register_forward_hook(keep(name)) for name, of in watched(program, made)]
    with torch.no_grad():
        output = made(*inputs)[0]
    for hook in hooks:
        hook.remove()
    for at, (name, what, *_) in program.origins.items():
        if what == "attention":
            of = dict(made.named_modules())[name]
            one = (f"{at}/head/weights",) if of.num_heads == 1 else (
                f"{at}/head {h + 1}/weights" for h in range(of.num_heads))  # fmt: skip
            found |= zip(one, of.weights[0].numpy(), strict=True)
    return found | ends(program, made, output)


def ends(program: Program, made: torch.nn.Module, output: torch.Tensor) -> Values:
    """The model's output, by the names of the last operations."""
    if isinstance(made, SentenceEncoder):
        mean = output.mean(dim=0, keepdim=True)
        return {"mean": mean.numpy(), "sentence": torch.nn.functional.normalize(mean).numpy()}
    if not program.output.endswith("next"):
        return {program.output: output.numpy()}
    logits = program.operations[program.output].inputs[0]
    output = output[-1:] if not program.operations[logits].rows else output
    return {logits: output.numpy(), program.output: output.softmax(-1).numpy()}


def by_hand(rng: np.random.Generator, T: int = 6) -> Case:
    """A model of arrays: attention, two encoder layers and an output, as notebooks write it."""
    heads, d, V = int(rng.integers(1, 4)), 12, 7
    drawn = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    square = lambda *names: {name: drawn(d, d) for name in names}  # noqa: E731
    qkvo = ("W_q", "W_k", "W_v", "W_o")
    layer = [{"attn": square(*qkvo) | {"num_heads": heads}, "norm1": drawn(2, d),
              "ffn": {"W1": drawn(d, 5), "b1": drawn(5), "W2": drawn(5, d), "b2": drawn(d)},
              "norm2": drawn(2, d)} for _ in range(2)]  # fmt: skip
    model = square(*qkvo) | {"table": drawn(V, d), "output": drawn(d, V), "num_heads": heads}
    model |= {"positions": True if heads % 2 else drawn(9, d), "causal": True, "encoder": layer}
    text = rng.integers(V, size=T)
    x = model["table"][text][None]
    x = blocks.add_positions(x) if heads % 2 else x + model["positions"][:T]
    mask = attention.causal_mask(T)
    x = attention.multi_head_attention(x, *(model[W] for W in qkvo), heads, mask)
    for each in layer:
        x = blocks.encoder_layer(x, each)
    logits = (x @ model["output"])[0]
    expected = {"logits": logits, "next": attention.softmax(logits)}
    return Case(of_arrays(model | {"encoder": layer}), {"text": text.tolist()}, expected)


# ---------------------------------------------------------------- every number


def same(found: Values, expected: Values) -> None:
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, **CLOSE, err_msg=name)


@pytest.mark.parametrize("seed", range(20))
def test_every_number_is_that_of_pytorch(page, seed):
    """20 models × 5 sentences: what hooks see in PyTorch, and all else as NumPy computes it."""
    loaded = None
    for case in cases(seed, 5):
        if case.program is not loaded:
            page.load(loaded := case.program)
        found = page.run(case.texts)
        assert len(case.expected) >= 3
        same(found, case.expected)
        same(found, operations.run(case.program, case.texts))


@pytest.mark.parametrize("seed", range(4))
def test_a_model_of_arrays_is_computed_as_in_numpy(page, seed):
    case = by_hand(np.random.default_rng(seed))
    page.load(case.program)
    found = page.run(case.texts)
    same(found, case.expected)
    same(found, operations.run(case.program, case.texts))
