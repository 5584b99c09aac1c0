"""The machine's arithmetic in a real browser: its numbers, its sums, its changes.

Numbers are held against `program.run`, which test_operations holds against PyTorch; every sum
that is written out is read and evaluated here, by another reader than the page's own.
"""

import base64
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from small_models import CASES, single_steps

from helpers import models
from helpers.latent import Latent
from workshop.machine.formulas import FORMULAS, OFF
from workshop.machine.of_modules import describe
from workshop.machine.program import Program, Values, run
from workshop.machine.wire import joined, made_of, needed, packed
from workshop.widgets.base import module

CLOSE = {"atol": 1e-4, "rtol": 0, "equal_nan": True}
NAMES = "Object.assign(globalThis, { Engine, RUN, explain });"
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
  const from = formula.includes("together") ? [] : sources.map(at);
  const x = at({ name, row: i, column: j });
  return { name, i, j, words, formula, shown, x, from, kind: engine.by[name]?.kind };
})"""


class Page:
    """A page in which a program runs."""

    def __init__(self, page):
        self.page = page
        page.add_script_tag(content=f"{module('machine/sums.js')}\n{NAMES}", type="module")
        page.wait_for_function("!!globalThis.Engine")

    def load(self, program: Program) -> None:
        description, learned = packed(program), joined(program.weights)
        self.page.evaluate(LOAD, [description, base64.b64encode(learned).decode()])

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


# ---------------------------------------------------------------- every number


class Case(NamedTuple):
    """A program, and ids for its texts."""

    program: Program
    texts: dict[str, list[int]]


def small(name: str, i: int = 0) -> Case:
    """A small random model; what it reads."""
    case = CASES[name]()
    return Case(case.program(i), case.texts(i))


def sentences(program: Program, texts: dict) -> Iterator[dict]:
    """What is read, and four texts of any words and lengths."""
    yield texts
    rng = np.random.default_rng(0)
    tables = {op.rows: op.weights[0] for op in program.operations.values() if op.kind == "embed"}
    for _ in range(4):
        yield {of: rng.integers(1, len(program.weights[table]), rng.integers(1, 8)).tolist()
               for of, table in tables.items()}  # fmt: skip


def same(found: Values, expected: Values) -> None:
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, **CLOSE, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_that_of_the_program(page, name):
    """Two inputs of each model, five sentences where it reads words."""
    for case in (small(name), small(name, 1)):
        page.load(case.program)
        for texts in sentences(*case):
            same(page.run(texts), run(case.program, texts))


def test_no_kind_of_operation_is_left_out():
    programs = [case().program() for case in CASES.values()]
    programs += [program for program, *_ in single_steps().values()]
    assert {op.kind for p in programs for op in p.operations.values()} == {*FORMULAS}


# ---------------------------------------------------------------- every sum

F = np.float64
KNOWN = {"F": F, "E": F(math.e), "pi": F(math.pi), "inf": F(math.inf), "sqrt": np.sqrt, "max": max,
         "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "ln": np.log,
         "Phi": lambda x: (1 + math.erf(x / math.sqrt(2))) / 2}  # fmt: skip
AS_PYTHON = [
    (r"\d+ more, together |, all others 0 × …", ""),  # words between the numbers
    (r"e\^", "E^"), (r"√(\d+)", r"√(\1)"),
    (r"(\d+(?:\.\d+)?(?:e−?\d+)?)", r"F('\1')"),
    ("−", "-"), ("×", "*"), ("÷", "/"), (r"\^", "**"), ("√", "sqrt"), ("π", "pi"), ("Φ", "Phi"),
    ("∞", "inf"),
]  # fmt: skip


def evaluated(text: str) -> float:
    """What a printed term is, by the rules of mathematics, which are Python's."""
    for sign, python in AS_PYTHON:
        text = re.sub(sign, python, text)
    assert set(re.findall(r"[A-Za-z]\w*", text)) <= {*KNOWN, *re.findall(r"e-?\d+", text)}, text
    with np.errstate(all="ignore"):
        return float(eval(text, {"__builtins__": {}}, KNOWN))


def agrees(x: float, printed: str) -> bool:
    """Whether x, rounded to the digits of a printed number (at least two decimals), is it."""
    number = evaluated(printed)
    if not math.isfinite(number) or not math.isfinite(x):
        return x == number
    decimals = len(re.search(r"(?:\.(\d+))?(?:e|$)", printed)[1] or "")
    power = re.search(r"e(−?\d+)", printed)
    unit = 10.0 ** (int(power[1].replace("−", "-")) - decimals if power else -max(2, decimals))
    return abs(x - number) <= unit / 2 + min(2e-7 * max(1, abs(x)), 0.002 * unit)


def chains(formula: str) -> Iterator[list[str]]:
    """Each "a = b = c" of a formula as its parts, the mean and the spread of a norm first."""
    for line in formula.split("; "):
        yield re.sub(r"^\w+: ", "", line).split(" = ")


def claims(formula: str, kind: str) -> Iterator[tuple[str, str]]:
    """What else is claimed: (part, number), of a softmax's two sums, a GELU's Φ, a wave's angle."""
    first, *rest = next(chains(formula))
    if kind == "softmax" and len(rest) == 2:
        ends = [m.start() for m in re.finditer(r" ÷ \(", first)]
        cut = next(i for i in ends if first[:i].count("(") == first[:i].count(")"))
        yield from zip((first[:cut], first[cut + 3 :]), rest[0].split(" ÷ "), strict=True)
    if kind == "gelu" and rest:
        yield first[first.index("Φ") :], rest[0].split(" × ")[1]
    if kind == "waves" and rest:
        yield tuple(re.search(r"\w+\((.*)\)", text)[1] for text in (first, rest[0]))


TERMS = ("add", "linear", "scores", "mix", "times", "blend")


def wrong(told: dict) -> str:
    """What is wrong with the computation of a number, as it is told; "" if nothing."""
    formula, kind = told["formula"], told["kind"]
    *parts, end = list(chains(formula))[-1]
    if not agrees(told["x"], told["shown"]) or end != told["shown"]:
        return f"{told['x']} is shown as {end}, {told['shown']}"
    bad = [f"{part} = {last}" for *before, last in chains(formula) for part in before
           if not agrees(evaluated(part), last)]  # fmt: skip
    bad += [f"{part} = {x}" for part, x in claims(formula, kind) if not agrees(evaluated(part), x)]
    if parts and kind in TERMS and "together" not in formula:
        printed = [x.strip("()") for x in re.split(r" [+×] ", parts[0])]
        bad += [f"{x} for {printed}" for x, text in zip(told["from"], printed, strict=True)
                if not agrees(x, text)]  # fmt: skip
    return "; ".join(bad)


def every_place(values: Values, names: Any) -> list:
    return [[name, i, j] for name in names for i, j in np.ndindex(values[name].shape)]


def check_sums(page: Page, places: list) -> list[dict]:
    """Read what is written of each number; return it."""
    told = page.explain(places)
    faults = [(one["name"], one["i"], one["j"], fault) for one in told if (fault := wrong(one))]
    assert not faults, f"{len(faults)} of {len(told)}: {faults[:5]}"
    return told


@pytest.mark.parametrize("name", CASES)
def test_every_sum_of_a_small_model_gives_the_number_shown(page, name):
    one = small(name)
    page.load(one.program)
    values = page.run(one.texts)
    told = check_sums(page, every_place(values, [n for n, x in values.items() if x.size < 500]))
    check_sums(page, drawn(np.random.default_rng(0), values, 200))
    summed = {*TERMS, "norm", "softmax", "rms", "rotate", "silu", "route"}
    kinds = {op.kind for op in one.program.operations.values()} & summed
    without = {x["kind"] for x in told if " = " in x["formula"]}
    assert kinds <= without


STEPS = single_steps()


@pytest.mark.parametrize("name", STEPS)
def test_every_number_of_a_single_step_is_numpy_s_and_written_out(page, name):
    """As it is, and with its knobs turned and a temperature."""
    program, texts, changes = STEPS[name]
    page.load(program)
    for changed, temperature in ([], 1.0), (changes, 0.5):
        values = page.run(texts, changed, temperature)
        same(values, run(program, texts, changed, temperature))
        check_sums(page, every_place(values, program.operations))


@pytest.mark.parametrize("scale", [1e-4, 30.0, 1e6])
def test_sums_hold_for_weights_of_any_size(page, scale):
    case = small("notebook 12")
    for array in case.program.weights.values():
        array *= scale
    page.load(case.program)
    check_sums(page, drawn(np.random.default_rng(0), page.run(case.texts), 1500))


def larger() -> list[Case]:
    """A translator and a language model as notebooks train them, one of today; what they read."""
    torch.manual_seed(0)
    some = {"d_model": 64, "d_ff": 256}
    translates = models.Transformer(60, 60, **some, num_heads=4, num_layers=2)
    writes = models.DecoderOnly(60, 64, **some, num_heads=8, num_layers=4, pre_norm=True,
                                activation="gelu", rope=50.0, latent=Latent(12, 4))  # fmt: skip
    today = models.DecoderOnly(60, 64, **some, num_heads=8, num_kv_heads=2, num_layers=4,
                               pre_norm=True, rms_norm=True, rope=10000.0, window=16, qk_norm=True,
                               keep_first=2, sinks=True, gated=True, activation="silu",
                               bias=False)  # fmt: skip
    read = [*range(1, 60), 3, 1, 4, 1, 5]
    texts = [{"text": read[:12], "written": read[20:32]}, {"text": read}, {"text": read}]
    return [
        Case(describe(made), text)
        for made, text in zip((translates, writes, today), texts, strict=True)
    ]


def drawn(rng: np.random.Generator, values: Values, count: int) -> list:
    """Random numbers of all stages and weights alike."""
    names = rng.choice([*values], size=count).tolist()
    return [[name, *(int(rng.integers(side)) for side in values[name].shape)] for name in names]


def touched(program: Program, values: Values) -> list[dict]:
    """Something switched off of each kind, and a number set by hand of each sort."""
    ops = program.operations.values()
    off = {op.kind: op.name for op in ops if op.kind in OFF}  # the last of its kind
    score = next(op.name for op in ops if op.kind == "scores")
    weights = [op.name for op in ops if op.kind == "softmax" and op.columns != "vocab"][-1]
    row = np.linspace(1, 2, values[weights].shape[1])
    start = next(op.name for op in ops if op.kind in ("embed", "given"))
    matrix = next(op.weights[0] for op in ops if op.kind == "linear")
    return [{"at": name, "off": True} for name in off.values()] + [
        {"at": score, "row": len(values[score]) - 1, "column": 0, "value": 2.5},
        {"at": start, "row": 0, "column": 1, "value": -1.25},
        {"at": matrix, "row": 1, "column": 0, "value": 0.75},
        {"at": weights, "row": 0, "values": (row / row.sum()).tolist()},
    ]


@pytest.mark.parametrize("case", larger(), ids=["translator", "writer", "of today"])
@pytest.mark.parametrize("changed", [False, True], ids=["as it is", "changed"])
def test_sums_of_larger_models_give_the_numbers_shown(page, case, changed):
    page.load(case.program)
    rng = np.random.default_rng(5)
    values = page.run(case.texts)
    if changed:
        changes = touched(case.program, values)
        values = page.run(case.texts, changes, 0.7)
        same(values, run(case.program, case.texts, changes, 0.7))
    check_sums(page, drawn(rng, values, 1200))


# ---------------------------------------------------------------- what is changed


def switched(case: Case) -> Iterator[tuple[list[dict], float]]:
    """Every change of one thing, and all of them with a temperature."""
    values = run(case.program, case.texts)
    some = touched(case.program, values)
    yield from (([{"at": op.name, "off": True}], 1.0)
                for op in case.program.operations.values() if op.kind in OFF)  # fmt: skip
    yield from (([change], 1.0) for change in some if "off" not in change)
    twice = [change | {"value": 9.0} for change in some if "value" in change]
    yield from [(twice + some, 1.0), ([], 0.5), (some, 2.0)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a vector of zeros has no length of 1
@pytest.mark.parametrize("name", CASES)
def test_a_change_does_what_it_does_in_numpy(page, name):
    """Each operation switched off; inputs, weights and scores set; several; the temperature."""
    case = small(name)
    page.load(case.program)
    before = page.run(case.texts)
    for changes, temperature in switched(case):
        wanted = run(case.program, case.texts, changes, temperature)
        same(page.run(case.texts, changes, temperature), wanted)
    same(page.run(case.texts), before)  # nothing was left behind


@pytest.mark.parametrize("name", ["gpt", "notebook 12", "decoder", "llama", "qwen", "mixtral"])
def test_sums_tell_what_was_changed(page, name):
    """After every change all sums hold; what was set or switched off says so."""
    case = small(name)
    page.load(case.program)
    for changes, temperature in switched(case):
        values = page.run(case.texts, changes, temperature)
        places = drawn(np.random.default_rng(0), values, 60)
        check_sums(page, places)
        for change in changes[-1:]:
            told = check_sums(page, every_place(values, [change["at"]]))
            said = "switched off" if change.get("off") else "set by hand"
            found = {(one["i"], one["j"]) for one in told if said in one["words"]}
            rows, columns = np.indices(values[change["at"]].shape)
            here = rows == change.get("row", rows)
            here &= columns == change.get("column", columns)
            assert found == set(zip(*np.nonzero(here), strict=True))


def test_nothing_is_claimed_where_there_is_no_number(page):
    """NaN and infinite weights: "no number", and no sum; what is finite keeps its sum."""
    for strange in (math.nan, math.inf, -math.inf):
        case = small("notebook 12")
        case.program.weights["encoder/layer 1/attention/q, k, v/q/W_q"][1, 2] = strange
        page.load(case.program)
        values = page.run(case.texts)
        with np.errstate(invalid="ignore"):
            same(values, run(case.program, case.texts))
        names = [name for name in values if "encoder/layer 1" in name]
        told = page.explain(every_place(values, names))
        lost = [one for one in told if math.isnan(one["x"])]
        assert len(lost) > 20 and all(one["formula"] == one["shown"] for one in lost)
        assert all("no number" in one["words"] for one in lost)
        assert not [one for one in told if not math.isnan(one["x"]) and wrong(one)]


def test_what_is_hidden_or_has_no_key_is_told(page):
    case = small("gpt")
    page.load(case.program)
    (head, *_) = [op.name for op in case.program.operations.values() if op.kind == "mask"]
    page.run(case.texts, [{"at": head, "row": 1, "values": [-1e999] * 4}])
    told = check_sums(page, [[head, 0, 2], [head.replace("masked", "weights"), 1, 0]])
    assert "comes later" in told[0]["words"] and told[0]["formula"] == "−∞"
    assert told[1]["formula"] == "0.0"


# ---------------------------------------------------------------- weights that stay with the kernel

KERNEL = """([places, stages, parts]) => {
  const { program } = engine;
  const away = ([name, [, ...shape]]) => [name, [null, ...shape]];
  const weights = Object.fromEntries(Object.entries(program.weights).map(away));
  const far = new Engine({ ...program, weights }, new Float32Array());
  const told = (from, here) => places.map((place) => explain(from, here, ...place));
  const sent = { [RUN]: values[RUN] };
  for (const name of stages)
    sent[name] = { ...values[name], data: Float32Array.from(values[name].data) };
  const before = told(far, sent);
  for (const [part, numbers] of parts) far.learn(part, numbers);
  const x = ([name, i, j]) => sent[name].data[i * sent[name].columns + j];
  return [before, told(far, sent), told(engine, { ...values, ...sent }), places.map(x)];
}"""


def sent_by_the_kernel(case, values, places) -> tuple[list, list]:
    """The stages and parts of weights that `wire` has the kernel send for some numbers."""
    p = case.program
    stages = {name: None for place in places for name in made_of(p, place)}
    parts = [part for place in places for part in needed(p, place, values, case.texts)]
    numbers = [np.frombuffer(part.pop("bytes"), "<f4").tolist() for part in parts]
    return list(stages), list(zip(parts, numbers, strict=True))


@pytest.mark.parametrize("case", larger(), ids=["translator", "writer", "of today"])
def test_sums_need_no_more_of_a_kernel_than_it_sends(page, case):
    """With what the kernel sends, in float32, the sums are as with all; without weights, none."""
    page.load(case.program)
    values = page.run(case.texts)
    of_steps = {name: x for name, x in values.items() if name in case.program.operations}
    places = drawn(np.random.default_rng(1), of_steps, 300)
    given = [places, *sent_by_the_kernel(case, of_steps, places)]
    before, after, wanted, numbers = page.page.evaluate(KERNEL, given)
    assert after == wanted
    for (name, *_), bare, told, x in zip(places, before, after, numbers, strict=True):
        learned = ("linear", "embed", "norm", "rms", "split")  # written out with weights
        assert bare["formula"] == told["formula"] or case.program.operations[name].kind in learned
        assert "=" not in bare["formula"] or bare == told
        assert "≈" in told["formula"] or not wrong(told | {"x": x, "kind": "", "from": []})
