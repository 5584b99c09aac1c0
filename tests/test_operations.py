"""Programs compute what PyTorch's modules and NumPy's functions compute, and say what is wrong."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from small_models import CASES, Case, compared, drawn
from torch import nn

from helpers import attention, blocks
from helpers.layers import MultiHeadAttention, ResidualLayer
from helpers.models import DecoderOnly
from workshop import (
    Machine,
    feed_forward_step,
    next_word_step,
    norm_step,
    positions_step,
    softmax_step,
)
from workshop.machine.formulas import OFF, softmax
from workshop.machine.of_arrays import of_arrays
from workshop.machine.of_modules import describe
from workshop.machine.program import Program, run

EYE = np.eye(3)
IDS = [2, 0, 5, 2]
WATCHED = (ResidualLayer, nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.ReLU, nn.GELU, nn.SiLU)
OF_MODULES = ("linear", "norm", "rms", "relu", "gelu", "gelu_tanh", "silu")


def seen(case: Case) -> list[np.ndarray]:
    """What hooks see of the modules' outputs: (2, T, …), of norms in heads (2, H, T, …)."""
    found: list[np.ndarray] = []
    hooks = [of.register_forward_hook(lambda *said: found.append(said[-1].numpy()))
             for of in case.model.modules() if isinstance(of, WATCHED)]  # fmt: skip
    case()
    for hook in hooks:
        hook.remove()
    return [part for part in found if part.ndim > 2]  # of an expert some tokens' alone


def alike(value: np.ndarray, part: np.ndarray) -> bool:
    """Whether they are the same, of the newest words at least, of heads beside one another."""
    part = part if part.ndim == 2 else np.concatenate(part, axis=1)
    part = part[-len(value) :]
    return part.shape == value.shape and np.allclose(part, value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_a_program_computes_what_its_modules_compute(name):
    """Every module's output of both items of a batch, and the weights of every head."""
    case = CASES[name]()
    ours, parts = case(), seen(CASES[name]())
    assert parts
    for i in range(2):
        program = case.program(i)
        values = run(program, case.texts(i))
        assert alike(values[compared(program)], ours[i])
        for part in parts:
            assert any(alike(value, part[i]) for value in values.values())
        for op in program.operations.values():
            if op.kind in OF_MODULES and "/expert " not in op.name:
                assert any(alike(values[op.name], part[i]) for part in parts), op.name
        heads = [head for part in case.model.modules() if isinstance(part, MultiHeadAttention)
                 for head in part.weights[i].numpy()]  # fmt: skip
        told = [values[op.name] for op in program.operations.values()
                if op.kind == "softmax" and op.columns != "vocab"]  # fmt: skip
        assert len(told) == len(heads) > 0
        for own, theirs in zip(heads, told, strict=True):
            np.testing.assert_allclose(theirs[:, : own.shape[1]], own, atol=1e-6)
            np.testing.assert_allclose(theirs.sum(axis=1), 1)  # with a sink, if there is one


def test_of_many_words_neither_one_hot_rows_nor_all_logits_are_computed():
    case = drawn(3, DecoderOnly(5000, 6, 4, 2, 6, 1), 5000)
    values = run(case.program(), case.texts())
    np.testing.assert_allclose(values["logits"], case()[0][-1:], atol=1e-6)
    assert "ids" in values and "one-hot" not in values


def test_what_the_temperature_divides():
    """The logits of the next word, no weights of attention."""
    case = CASES["gpt"]()
    hot, plain = (run(case.program(), case.texts(), temperature=t) for t in (2.0, 1.0))
    np.testing.assert_allclose(hot["next"], softmax(plain["logits"] / 2))
    assert all((hot[name] == plain[name]).all() for name in plain if name != "next")


def test_a_diverged_model_is_computed_with_its_nan_and_infinities():
    case = CASES["gpt"]()
    case.model.layers[0].norm1.weight.data[:2] = torch.tensor([torch.nan, torch.inf])
    values = run(case.program(), case.texts())
    assert np.isnan(values["logits"]).any() and np.isfinite(values["x"]).all()


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def one_attention(width: int = 4, values: int = 4, **more) -> dict:
    return {"table": draw(6, 3), "W_q": draw(3, width), "W_k": draw(3, width, seed=1),
            "W_v": draw(3, values, seed=2)} | more  # fmt: skip


def layer(heads: int = 2, seed: int = 0, **more) -> dict:
    d = 4
    attn = {f"W_{k}": draw(d, d, seed=seed + i) for i, k in enumerate("qkvo")}
    ffn = {"W1": draw(d, 7, seed=seed), "b1": draw(7, seed=seed), "W2": draw(7, d, seed=seed),
           "b2": draw(d, seed=seed)}  # fmt: skip
    norms = {"norm1": (draw(d, seed=seed), draw(d, seed=seed + 1)), "norm2": (1.5, 0.5)}
    return {"attn": {**attn, "num_heads": heads}, "ffn": ffn, **norms} | more


@pytest.mark.parametrize(("num_heads", "causal"), [(1, False), (2, False), (2, True)])
def test_heads_are_those_of_the_notebooks(num_heads, causal):
    model = one_attention(num_heads=num_heads, W_o=draw(4, 5), causal=causal, output=draw(5, 6),
                          positions=draw(9, 3))  # fmt: skip
    values = run(of_arrays(model), {"text": IDS})
    x = model["table"][IDS] + model["positions"][:4]
    learned = [model[key] for key in ("W_q", "W_k", "W_v", "W_o")]
    mask = attention.causal_mask(4) if causal else None
    theirs = attention.multi_head_attention(x[None], *learned, num_heads, mask=mask)[0]
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


def test_softmax_of_a_row_that_is_masked_whole_is_zeros():
    x = draw(5, 6)
    scores = np.where(x > 0, x, -np.inf)
    scores[2] = -np.inf
    theirs = attention.safe_masked_softmax(x, scores > -np.inf)
    np.testing.assert_allclose(softmax(scores), theirs)


def changed(*changes: dict, **model: np.ndarray) -> tuple[dict, dict]:
    """The values of one attention before and after changes."""
    program = of_arrays(one_attention(**model))
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


def test_a_number_set_by_hand_stands_and_what_follows_is_computed_from_it():
    row = {"at": "attention/head/weights", "row": 1, "values": [0.0, 0.0, 1.0, 0.0]}
    number = {"at": "x", "row": 3, "column": 0, "value": 9.0}
    before, after = changed(row, number)
    assert after["x"][3, 0] == 9 and (after["x"][:3] == before["x"][:3]).all()
    np.testing.assert_allclose(after["attention/head/context"][1], after["attention/head/v"][2])
    np.testing.assert_array_equal(before["attention/head/v"][2], after["attention/head/v"][2])


def test_a_changed_word_vector_is_changed_wherever_the_word_stands_and_the_model_keeps_its_own():
    table = draw(6, 3)
    change = {"at": "x/table", "row": 2, "column": 1, "value": 7.0}
    before, after = changed(change, table=table)
    np.testing.assert_array_equal(after["x"][[0, 3], 1], 7.0)
    np.testing.assert_array_equal(after["x"][[1, 2]], before["x"][[1, 2]])
    np.testing.assert_array_equal(table, draw(6, 3))


def test_of_several_changes_of_a_number_the_last_counts_also_where_it_is_switched_off():
    one, two = ({"at": "attention/head/context", "row": 0, "column": 0, "value": v} for v in (1, 2))
    _, after = changed(one, two, {"at": "attention/head/context", "off": True})
    assert after["attention/head/context"][0, 0] == 2
    assert not after["attention/head/context"][1:].any()


def test_a_change_that_a_text_has_no_place_for_rests():
    before, after = changed(
        {"at": "x", "row": 4, "column": 0, "value": 1.0},
        {"at": "x", "row": 0, "column": 3, "value": 1.0},
        {"at": "attention/head/scores", "row": 0, "values": [1.0] * 5})  # fmt: skip
    assert all((after[name] == before[name]).all() for name in before)


def encoders(layers: object) -> dict:
    return {"table": draw(6, 4), "encoder": layers}


def alone(name: str, *vectors: np.ndarray | None) -> Program:
    return describe(CASES[name]().model, *vectors)


def turned(**change) -> None:
    Machine(positions_step(4), ["a"]).intervene("positions", **{"option": "d"} | change)


def step(make: Callable) -> Program:
    return make()


FIRST = r"encoder\[0\]\["
REFUSED = {
    of_arrays: [
        ({}, "model has no table"),
        ([1], r"model is \[1\] \(list\), but must be a dictionary"),
        ({"table": draw(6, 3), "W_q": draw(3, 4)}, "model has no W_k, but needs W_q, W_k"),
        (one_attention(W_Q=draw(3, 4)), "model has 'W_Q', but what is known is table"),
        (one_attention(table=draw(6)), r"table has shape \(6,\), but must be"),
        (one_attention(table=draw(6, 3) * np.nan), r"table .* has nan at \(0, 0\)"),
        (one_attention(table="words"), "table must be an array of numbers"),
        (one_attention(W_k=draw(3, 2)), r"W_k has shape \(3, 2\).* q = 4"),
        (one_attention(W_v=draw(2, 4)), r"W_v has shape \(2, 4\).* d = 3"),
        (one_attention(W_o=draw(3, 3)), r"W_o has shape \(3, 3\).* v = 4"),
        (one_attention(num_heads=3), "num_heads is 3, but must divide the width of W_q, 4"),
        (one_attention(values=3, num_heads=2), "must divide the width of W_v, 3"),
        (one_attention(num_heads=0), "num_heads is 0, but must be a whole number"),
        (one_attention(causal="yes"), "causal is 'yes', but must be True or False"),
        (one_attention(positions=True), "table has width d = 3, but it must be even"),
        (one_attention(positions=draw(4, 2)), r"positions has shape \(4, 2\).* d = 3"),
        (one_attention(output=draw(3, 6)), r"output has shape \(3, 6\).* d = 4"),
        (encoders(3), "encoder is 3"),
        (encoders({"attn": {}}), r"encoder\[0\] has no norm1"),
        ({"table": draw(6, 2), "encoder": layer()},
         FIRST + r"'attn'\] W_q has shape \(4, 4\), but must be \(d, q\) with d = 2"),
        (encoders([layer(), layer(heads=3)]), r"encoder\[1\]\['attn'\] num_heads is 3"),
        (encoders(layer(norm2=(draw(4), draw(3)))), FIRST + r"'norm2'\] shift has shape \(3,\)"),
        (encoders(layer(norm1=(draw(4),))), FIRST + r"'norm1'\] is .* but must be \(gain, shift\)"),
        (encoders(layer(ffn=layer()["ffn"] | {"W1": draw(3, 7)})), FIRST + r"'ffn'\] W1 has.*3, 7"),
    ],
    alone: [
        ("encoder layer", None, "x is missing: a EncoderLayer alone works on vectors"),
        ("encoder layer", np.zeros((2, 5)), r"x has shape \(2, 5\), but .* with d = 6"),
        ("attention", np.zeros(6), r"x has shape \(6,\)"),
        ("decoder layer", np.zeros((2, 6)), "memory is missing: a DecoderLayer"),
        ("decoder", np.zeros((2, 6)), np.zeros((2, 3)), r"memory has shape \(2, 3\)"),
    ],
    describe: [
        (nn.Linear(2, 2), "model is a Linear, but must be one of"),
        (nn.Transformer(4, 2, 1, 1, 4, batch_first=True), "model is a Transformer, but must be"),
        ("gpt", "model is a str, but must be one of"),
    ],
    step: [
        (lambda: softmax_step(EYE), r"scores has shape \(3, 3\), but must be"),
        (lambda: softmax_step([1, np.nan]), "scores .*nan"),
        (lambda: softmax_step([1, 2], 2.5), "d_k is 2.5, but must be a whole number"),
        (lambda: norm_step(EYE, EYE[:2]), r"sublayer has shape \(2, 3\), but must have that of x"),
        (lambda: feed_forward_step(EYE, EYE[:2], EYE[0], EYE, EYE[0]),
         r"W1 has shape \(2, 3\), but must be \(d, f\) with d = 3"),
        (lambda: feed_forward_step(EYE, EYE, EYE[0], EYE, EYE[0, :2]), r"b2 has shape \(2,\)"),
        (lambda: next_word_step(-EYE), "table has shape .*numbers from -1"),
        (lambda: next_word_step(EYE[:2]), r"table has shape \(2, 3\).*must be \(V, V\)"),
        (lambda: positions_step(7), "d_model is 7, but must be even"),
        (lambda: turned(value=5), "must be even"),
        (lambda: turned(value=0), "d is 0,"),
        (lambda: turned(option="by"), "option is 'by', but there is d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "case"), [(call, case) for call, cases in REFUSED.items() for case in cases]
)
def test_what_is_wrong_is_refused_by_name(call, case):
    *given, message = case
    with pytest.raises((ValueError, TypeError), match=message):
        call(*given)


# ---------------------------------------------------------------- single steps


def test_single_steps_compute_what_the_formulas_say():
    """In NumPy and in PyTorch, without what is changed and with it."""
    rng = np.random.default_rng(0)
    x, y = (torch.tensor(rng.normal(size=(4, 3))) for _ in range(2))
    p = torch.softmax(x[0] / 8 / 0.7, 0)
    found = run(softmax_step(x[0]), {}, [{"at": "scaled", "option": "by", "value": 8.0}], 0.7)
    np.testing.assert_allclose(found["weights"][0], p)
    np.testing.assert_allclose(found["entropy"], torch.special.entr(p).sum())
    np.testing.assert_allclose(found["mean"], (p * (1 - p)).mean())
    found, summed = run(norm_step(x, torch.tanh), {}), x + torch.tanh(x)
    np.testing.assert_allclose(found["norm"], nn.functional.layer_norm(summed, (3,)))
    np.testing.assert_allclose(found["deviation before"], summed.std(1, correction=0)[:, None])
    np.testing.assert_allclose(found["mean after"], 0, atol=1e-12)
    b1, b2 = torch.arange(4) - 1.5, torch.ones(3).double()
    found = run(feed_forward_step(x, y.T, b1, y, b2), {})
    np.testing.assert_allclose(found["written"], torch.relu(x @ y.T + b1) @ y + b2)
    found = run(positions_step(6), {"text": [0] * 9})
    P = blocks.sinusoidal_positions(9, 6)
    np.testing.assert_allclose(found["dot"], P @ P.T)
    counts = [[0, 1, 3], [0, 0, 0], [2, 2, 0]]
    found = run(next_word_step(counts), {"text": [0, 1]}, (), 0.5)["next"]
    np.testing.assert_allclose(found, [[0, 0.1, 0.9], [0, 0, 0]])  # 1² and 3², of 10
