"""Why this word, in a real browser: numbers equal to Python's, the picture, and its speed."""

import base64
import json

import numpy as np
import pytest
from small_models import CASES

from workshop.machine.why import Why
from workshop.machine.wire import joined, packed
from workshop.widgets.base import module

NAMES = "Object.assign(globalThis, { Engine, Why, inFrames });"
ASK = """async ([program, learned, texts, word, rival, changes]) => {
  const bytes = Uint8Array.from(atob(learned), (sign) => sign.charCodeAt(0));
  const engine = new Engine(program, new Float32Array(bytes.buffer));
  const why = new Why(engine, texts, word, rival, changes);
  const all = (generator) => inFrames(generator, () => true);
  const sweep = [...(await all(why.sweeping()))];
  const notes = [...(await all(why.noting()))];
  return { parts: why.parts, sweep, notes, steps: await all(why.stepping()) };
}"""
SPEAKERS = ["gpt", "tied, post-norm", "transformer", "pre-norm transformer", "notebook 12", "llama",
            "mixtral", "attention only"]  # fmt: skip


@pytest.fixture(scope="module")
def page(browser):
    """A page with the engine and its questions; nothing in it may complain."""
    shown, faults = browser.new_page(), []
    shown.on("pageerror", lambda error: faults.append(str(error)))
    shown.add_script_tag(content=f"{module('machine/why.js')}\n{NAMES}", type="module")
    shown.wait_for_function("!!globalThis.Why")
    yield shown
    shown.close()
    assert not faults


def texts_of(case, seed: int, count: int) -> list[dict[str, list[int]]]:
    rng, p = np.random.default_rng(seed), case.program()
    tables = {o.rows: len(p.weights[o.weights[0]]) for o in p.operations.values()
              if o.kind == "embed"}  # fmt: skip
    return [{of: rng.integers(1, size, 5).tolist() for of, size in tables.items()}
            for _ in range(count)]  # fmt: skip


@pytest.mark.parametrize("rival", [None, 5])
@pytest.mark.parametrize("name", SPEAKERS)
def test_it_finds_what_python_finds(page, name, rival):
    """Parts, cuts, steps and notes, also of a model in which something was changed."""
    case = CASES[name]()
    p, (texts, *others) = case.program(), texts_of(case, 3, 4)
    p.weights = {at: w.astype("<f4").astype(float) for at, w in p.weights.items()}
    for changes in ([], [{"at": next(at for at in p.operations if "head" in at and
                                     at.endswith("context")), "off": True}]):  # fmt: skip
        ours = Why(p, texts, 2, rival, others=others, changes=changes)
        description = packed(p) | {"others": others}
        learned = base64.b64encode(joined(p.weights)).decode()
        found = page.evaluate(ASK, [description, learned, texts, 2, rival, changes])
        parts = {part.at: part.adds for part in ours.parts}
        assert dict(found["parts"]) == pytest.approx(parts, abs=1e-4)
        told = {at: [*said.values()] for at, said in found["sweep"]}
        assert told == {at: pytest.approx(said, abs=1e-4) for at, said in ours.sweep.items()}
        assert {at: tuple(note) for at, note in found["notes"]} == ours.notes
        steps = [
            (step["kind"], step["at"], *step["asker"], *step["word"]) for step in found["steps"]
        ]
        assert steps == [(s.kind, s.at, *s.asker, *s.word) for s in ours.steps]
        for step, own in zip(found["steps"], ours.steps, strict=True):
            assert [*step["after"].values()] == pytest.approx(own.after, abs=1e-4)
            assert json.dumps(step["heads"]) == str(own.heads)
