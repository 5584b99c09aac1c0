"""Programs compute what PyTorch's modules and NumPy's functions compute, and say what is wrong."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import torch
from small_models import CASES, compared, drawn
from torch import nn

from helpers import attention, blocks
from helpers.layers import MultiHeadAttention
from helpers.models import DecoderOnly, Transformer
from workshop.machine.of_arrays import of_arrays
from workshop.machine.of_modules import describe
from workshop.machine.program import FORMULAS, OFF, Program, norm, run, softmax

OPTIONS = {"pre_norm": (False, True), "activation": ("relu", "gelu", "gelu_tanh"),
           "bias": (True, False), "num_heads": (1, 2), "d_head": (None, 3)}  # fmt: skip


def heads_of(module: nn.Module) -> list[np.ndarray]:
    """The attention weights of each head that the last forward left, in the order of the layers."""
    return [head for part in module.modules() if isinstance(part, MultiHeadAttention)
            for head in part.weights[0].numpy()]  # fmt: skip


def weights_of(program: Program, values: dict) -> list[np.ndarray]:
    """Those of the program, in the same order."""
    return [values[name] for name, op in program.operations.items()
            if op.kind == "softmax" and op.columns != "vocab"]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_program_computes_what_its_modules_compute(name):
    """The output of both items of a batch, and the weights of every head."""
    case = CASES[name]()
    ours = case()
    for i in range(2):
        program = case.program(i)
        values = run(program, case.texts(i))
        np.testing.assert_allclose(values[compared(program)], ours[i], atol=1e-6)
        if i == 0:
            heads = heads_of(case.model)
            assert heads
            for ours_, theirs in zip(heads, weights_of(program, values), strict=True):
                np.testing.assert_allclose(theirs, ours_, atol=1e-6)


@pytest.mark.parametrize("kind", ["language model", "translator"])
def test_models_with_all_options(kind):
    """In float32, as they are made; each option with each other."""
    for seed, chosen in enumerate(product(*OPTIONS.values())):
        options = dict(zip(OPTIONS, chosen, strict=True))
        heads = options.pop("num_heads")
        if kind == "translator":
            case = drawn(seed, Transformer(7, 9, 4, heads, 6, 1, **options).float(), 7, 9)
        else:
            tie = {"tie_weights": bool(seed % 2)}
            case = drawn(seed, DecoderOnly(9, 6, 4, heads, 6, 1, **tie, **options).float(), 9)
        case.model.float()
        program = case.program()
        values = run(program, case.texts())
        np.testing.assert_allclose(values[compared(program)], case()[0], atol=1e-5)
        for ours, theirs in zip(heads_of(case.model), weights_of(program, values), strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_no_two_operations_have_one_name(monkeypatch):
    """A second would take the place of the first without a word."""
    added = []
    monkeypatch.setattr(Program, "add", lambda p, name, *a, plain=Program.add, **k:
                        (added.append(name), plain(p, name, *a, **k))[1])  # fmt: skip
    for make in CASES.values():
        added.clear()
        program = make().program()
        assert len(added) == len(set(added)) == len(program.operations)
        assert not program.weights.keys() & program.operations.keys()
        assert all(program.operations[i].name == i for i in added)


def test_each_origin_is_a_module_and_each_operation_of_modules_has_one():
    for make in CASES.values():
        case = make()
        program = case.program()
        parts = dict(case.model.named_modules())
        assert set(program.origins.values()) <= parts.keys()
        for op in program.operations.values():
            if op.kind in ("linear", "norm", "rms", "relu", "gelu", "gelu_tanh", "silu"):
                assert op.name in program.origins, op.name


def test_many_words_have_no_one_hot_rows():
    program = CASES["one head, no bias"]().program()
    assert program.operations["ids"].kind == "ids" and "one-hot" not in program.operations


def test_of_many_words_the_last_row_alone_is_predicted():
    case = drawn(3, DecoderOnly(5000, 6, 4, 2, 6, 1), 5000)
    values = run(case.program(), case.texts())
    np.testing.assert_allclose(values["logits"], case()[0][-1:], atol=1e-6)


def test_what_the_temperature_divides():
    """The logits of the next word, no weights of attention."""
    case = CASES["gpt"]()
    hot, plain = (run(case.program(), case.texts(), temperature=t) for t in (2.0, 1.0))
    np.testing.assert_allclose(hot["next"], softmax(plain["logits"] / 2))
    assert all((hot[name] == plain[name]).all() for name in plain if name != "next")
    with pytest.raises(ValueError, match="temperature is 0, but must be positive"):
        run(case.program(), case.texts(), temperature=0)


# ---------------------------------------------------------------- hand-made models


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def one_attention(width: int = 4, values: int = 4, **more) -> dict:
    return {"table": draw(6, 3), "W_q": draw(3, width), "W_k": draw(3, width, seed=1),
            "W_v": draw(3, values, seed=2), **more}  # fmt: skip


def layer(d: int = 4, heads: int = 2, seed: int = 0) -> dict:
    attn = {f"W_{k}": draw(d, d, seed=seed + i) for i, k in enumerate("qkvo")}
    ffn = {"W1": draw(d, 7, seed=seed), "b1": draw(7, seed=seed), "W2": draw(7, d, seed=seed),
           "b2": draw(d, seed=seed)}  # fmt: skip
    return {"attn": {**attn, "num_heads": heads}, "ffn": ffn,
            "norm1": (draw(d, seed=seed), draw(d, seed=seed + 1)), "norm2": (1.5, 0.5)}  # fmt: skip


IDS = [2, 0, 5, 2]


def test_an_attention_is_that_of_the_notebooks():
    model = one_attention(values=2, positions=draw(9, 3))
    values = run(of_arrays(model), {"text": IDS})
    x = model["table"][IDS] + model["positions"][:4]
    q, k, v = (x @ model[f"W_{letter}"] for letter in "qkv")
    np.testing.assert_allclose(values["attention/head/context"], attention.attention(q, k, v))
    np.testing.assert_allclose(values["attention/head/weights"], attention.attention_weights(q, k))


@pytest.mark.parametrize("causal", [False, True])
def test_heads_are_those_of_the_notebooks(causal):
    model = one_attention(num_heads=2, W_o=draw(4, 5), causal=causal, output=draw(5, 6))
    values = run(of_arrays(model), {"text": IDS})
    learned = {key: model[key] for key in ("W_q", "W_k", "W_v", "W_o")}
    mask = attention.causal_mask(4) if causal else None
    theirs = attention.multi_head_attention(model["table"][IDS][None], **learned, num_heads=2,
                                            mask=mask)[0]  # fmt: skip
    np.testing.assert_allclose(values["attention/out"], theirs)
    np.testing.assert_allclose(values["logits"], theirs @ model["output"])
    np.testing.assert_allclose(values["next"], attention.softmax(theirs @ model["output"]))


@pytest.mark.parametrize("number", [1, 2])
def test_encoder_layers_are_those_of_the_notebooks(number):
    """With waves for positions; a single layer needs no list."""
    layers = [layer(seed=10 * i) for i in range(number)]
    model = {"table": draw(6, 4), "positions": True,
             "encoder": layers if number > 1 else layers[0]}  # fmt: skip
    program = of_arrays(model)
    x = blocks.add_positions(model["table"][IDS])[None]
    for p in layers:
        x = blocks.encoder_layer(x, p)
    np.testing.assert_allclose(run(program, {"text": IDS})[program.output], x[0])


def test_the_formulas_are_those_of_the_notebooks():
    """Also of rows that are masked whole, and of PyTorch's activations."""
    x = 3 * draw(5, 6)
    scores = np.where(x > 0, x, -np.inf)
    scores[2] = -np.inf
    theirs = attention.safe_masked_softmax(x, scores > -np.inf)
    np.testing.assert_allclose(softmax(scores), theirs)
    gain, shift = draw(6), draw(6, seed=1)
    np.testing.assert_allclose(norm(x, gain[None], shift[None], eps=1e-5),
                               blocks.layer_norm(x, gain, shift))  # fmt: skip
    for kind, how in (("gelu", "none"), ("gelu_tanh", "tanh")):
        theirs = nn.functional.gelu(torch.from_numpy(x), approximate=how)
        np.testing.assert_allclose(FORMULAS[kind]((), x), theirs, atol=1e-12)


@pytest.mark.parametrize(("model", "error", "message"), [
    ({}, ValueError, "model has no table"),
    ([1], TypeError, r"model is \[1\] \(list\), but must be a dictionary"),
    ({"table": draw(6, 3), "W_q": draw(3, 4)}, ValueError, "model has no W_k, but needs W_q, W_k"),
    ({"table": draw(6, 3), "num_heads": 2}, ValueError, "model has no W_q"),
    (one_attention(W_Q=draw(3, 4)), ValueError, "model has 'W_Q', but what is known is table"),
    (one_attention() | {"table": draw(6)}, ValueError, r"table has shape \(6,\), but must be"),
    (one_attention() | {"table": draw(6, 3) * np.nan}, ValueError, r"table .* has nan at \(0, 0\)"),
    (one_attention() | {"table": "words"}, TypeError, "table must be an array of numbers"),
    (one_attention() | {"W_k": draw(3, 2)}, ValueError, r"W_k has shape \(3, 2\).* q = 4"),
    (one_attention() | {"W_v": draw(2, 4)}, ValueError, r"W_v has shape \(2, 4\).* d = 3"),
    (one_attention() | {"W_v": None}, ValueError, "model has no W_v"),
    (one_attention(W_o=draw(3, 3)), ValueError, r"W_o has shape \(3, 3\).* v = 4"),
    (one_attention(num_heads=3), ValueError, "num_heads is 3, but must divide the width of W_q, 4"),
    (one_attention(values=3, num_heads=2), ValueError, "must divide the width of W_v, 3"),
    (one_attention(num_heads=0), ValueError, "num_heads is 0, but must be a whole number"),
    (one_attention(causal="yes"), TypeError, "causal is 'yes', but must be True or False"),
    (one_attention(positions=True), ValueError, "table has width d = 3, but it must be even"),
    (one_attention(positions=draw(4, 2)), ValueError, r"positions has shape \(4, 2\).* d = 3"),
    (one_attention(output=draw(3, 6)), ValueError, r"output has shape \(3, 6\).* d = 4"),
    (one_attention(output=draw(4, 5)), ValueError, r"output has shape \(4, 5\).* V = 6"),
    ({"table": draw(6, 4), "encoder": 3}, TypeError, "encoder is 3"),
    ({"table": draw(6, 4), "encoder": {"attn": {}}}, ValueError, r"encoder\[0\] has no norm1"),
    ({"table": draw(6, 2), "encoder": layer()}, ValueError,
     r"encoder\[0\]\['attn'\] W_q has shape \(4, 4\), but must be \(d, q\) with d = 2"),
    ({"table": draw(6, 4), "encoder": [layer(), layer(heads=3)]}, ValueError,
     r"encoder\[1\]\['attn'\] num_heads is 3"),
    ({"table": draw(6, 4), "encoder": layer() | {"norm2": (draw(4), draw(3))}}, ValueError,
     r"encoder\[0\]\['norm2'\] shift has shape \(3,\)"),
    ({"table": draw(6, 4), "encoder": layer() | {"norm1": (draw(4),)}}, ValueError,
     r"encoder\[0\]\['norm1'\] is .* but must be \(gain, shift\)"),
    ({"table": draw(6, 4), "encoder": layer() | {"ffn": layer(3)["ffn"]}}, ValueError,
     r"encoder\[0\]\['ffn'\] W1 has shape \(3, 7\)"),
])  # fmt: skip
def test_a_bad_hand_made_model_is_refused_by_name(model, error, message):
    with pytest.raises(error, match=message):
        of_arrays(model)


@pytest.mark.parametrize(("texts", "message"), [
    ({}, r"texts\['text'\] is missing or empty"),
    ({"text": []}, r"texts\['text'\] is missing or empty"),
    ({"text": [1, 6]}, r"texts\['text'\] holds the id 6, but ids must be from 0 to 5"),
    ({"text": [-1]}, r"texts\['text'\] holds the id -1"),
    ({"text": [1] * 6}, r"texts\['text'\] has 6 ids, but there are positions for 5"),
])  # fmt: skip
def test_a_bad_text_is_refused_by_name(texts, message):
    program = of_arrays(one_attention(positions=draw(5, 3)))
    with pytest.raises(ValueError, match=message):
        run(program, texts)


# ---------------------------------------------------------------- changes


def changed(model: dict, *changes: dict) -> tuple[dict, dict]:
    """The values before and after changes."""
    program = of_arrays(model)
    return run(program, {"text": IDS}), run(program, {"text": IDS}, changes)


def test_what_is_left_of_each_kind_that_is_switched_off():
    """What came in; nothing; or of an addition what the sub-layer found."""
    kept = {"scale": 0, "mask": 0, "norm": 0, "relu": 0, "gelu": 0, "gelu_tanh": 0, "add": 1,
            "mix": None, "places": None, "waves": None, "linear": None, "rms": 0, "silu": 0,
            "rotate": 0, "times": 1, "blend": None}  # fmt: skip
    met = set()
    for case in (CASES[name]() for name in ("gpt", "transformer", "notebook 12", "mixtral")):
        program, texts = case.program(), case.texts()
        plain = run(program, texts)
        for op in (op for op in program.operations.values() if op.kind in OFF):
            left = run(program, texts, [{"at": op.name, "off": True}])[op.name]
            which = kept[op.kind]
            expected = 0 * plain[op.name] if which is None else plain[op.inputs[which]]
            np.testing.assert_array_equal(left, expected, err_msg=op.name)
            met.add(op.kind)
    assert met == set(kept) == set(OFF)


def test_a_mask_that_is_off_lets_the_first_word_read_the_last():
    off = {"at": "attention/head/masked", "off": True}
    before, after = changed(one_attention(causal=True), off)
    assert before["attention/head/weights"][0, 3] == 0 < after["attention/head/weights"][0, 3]


def test_a_number_set_by_hand_stands_and_what_follows_is_computed_from_it():
    row = {"at": "attention/head/weights", "row": 1, "values": [0.0, 0.0, 1.0, 0.0]}
    number = {"at": "x", "row": 3, "column": 0, "value": 9.0}
    before, after = changed(one_attention(), row, number)
    assert after["x"][3, 0] == 9 and (after["x"][:3] == before["x"][:3]).all()
    np.testing.assert_allclose(after["attention/head/context"][1], after["attention/head/v"][2])
    np.testing.assert_array_equal(before["attention/head/v"][2], after["attention/head/v"][2])


def test_a_changed_word_vector_is_changed_wherever_the_word_stands_and_the_model_keeps_its_own():
    model = one_attention()
    table = model["table"].copy()
    before, after = changed(model, {"at": "x/table", "row": 2, "column": 1, "value": 7.0})
    np.testing.assert_array_equal(after["x"][[0, 3], 1], 7.0)
    np.testing.assert_array_equal(after["x"][[1, 2]], before["x"][[1, 2]])
    np.testing.assert_array_equal(model["table"], table)


def test_of_several_changes_of_a_number_the_last_counts_also_where_it_is_switched_off():
    one, two = ({"at": "attention/head/context", "row": 0, "column": 0, "value": v} for v in (1, 2))
    _, after = changed(one_attention(), one, two, {"at": "attention/head/context", "off": True})
    assert after["attention/head/context"][0, 0] == 2
    assert not after["attention/head/context"][1:].any()


def test_a_change_that_a_text_has_no_place_for_rests():
    before, after = changed(
        one_attention(), {"at": "x", "row": 4, "column": 0, "value": 1.0},
        {"at": "x", "row": 0, "column": 3, "value": 1.0},
        {"at": "attention/head/scores", "row": 0, "values": [1.0] * 5})  # fmt: skip
    assert all((after[name] == before[name]).all() for name in before)


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"at": "y", "off": True}, ValueError, r"changes\[0\] is at 'y', but the model has nothing"),
    ({"off": True}, ValueError, r"changes\[0\] is at None"),
    ({"at": ["x"], "off": True}, ValueError, r"changes\[0\] is at \['x'\] \(list\)"),
    ({"at": "x", "off": True}, ValueError, r"changes\[0\] switches off 'x', but only these"),
    ({"at": "x/table", "off": True}, ValueError, r"changes\[0\] switches off 'x/table'"),
    ({"at": "x"}, TypeError, r"changes\[0\]\['row'\] is None"),
    ({"at": "x", "row": -1, "values": [1]}, ValueError, r"changes\[0\]\['row'\] is -1"),
    ({"at": "x", "row": 0, "value": 1}, TypeError, r"changes\[0\]\['column'\] is None"),
    ({"at": "x", "row": 0, "column": 0.5, "value": 1}, ValueError, r"\['column'\] is 0.5"),
    ({"at": "x", "row": 0, "column": 0}, TypeError, r"\['value'\] must be an array of numbers"),
    ({"at": "x", "row": 0, "column": 0, "value": [1]}, ValueError, r"\['value'\] has shape \(1,\)"),
    ({"at": "x", "row": 0, "values": 1}, ValueError, r"\['values'\] has shape \(\)"),
    ({"at": "x", "row": 0, "values": ["a"]}, TypeError, r"\['values'\] must be an array of numb"),
    ({"at": "x/table", "row": 6, "column": 0, "value": 1}, ValueError, r"which 'x/table' \(6, 3\)"),
])  # fmt: skip
def test_a_bad_change_is_refused_by_name(change, error, message):
    with pytest.raises(error, match=message):
        changed(one_attention(), change)


# ---------------------------------------------------------------- modules


@pytest.mark.parametrize(("name", "vectors", "message"), [
    ("encoder layer", (None,), "x is missing: a EncoderLayer alone works on vectors"),
    ("encoder layer", (np.zeros((2, 5)),), r"x has shape \(2, 5\), but .* with d = 6"),
    ("attention", (np.zeros(6),), r"x has shape \(6,\)"),
    ("decoder layer", (np.zeros((2, 6)),), "memory is missing: a DecoderLayer"),
    ("decoder", (np.zeros((2, 6)), np.zeros((2, 3))), r"memory has shape \(2, 3\)"),
])  # fmt: skip
def test_a_part_needs_the_vectors_that_it_works_on(name, vectors, message):
    with pytest.raises(ValueError, match=message):
        describe(CASES[name]().model, *vectors)


def test_what_is_no_model_of_ours_is_refused():
    for model in (nn.Linear(2, 2), nn.Transformer(4, 2, 1, 1, 4, batch_first=True), "gpt", None):
        what = f"model is a {type(model).__name__}, but must be one of"
        with pytest.raises(TypeError, match=what):
            describe(model)


def test_a_diverged_model_is_computed_with_its_nan_and_infinities():
    case = CASES["gpt"]()
    case.model.layers[0].norm1.weight.data[:2] = torch.tensor([torch.nan, torch.inf])
    values = run(case.program(), case.texts())
    assert np.isnan(values["logits"]).any() and np.isfinite(values["x"]).all()


def test_the_programs_of_arrays_need_no_pytorch():
    code = "import sys, workshop.machine.of_arrays; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
