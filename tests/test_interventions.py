"""A change in a program, and the same change in the modules by hooks, give the same numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from small_models import CASES, Case, compared
from torch import nn

from helpers.anatomy import describe
from helpers.decoding import generate
from helpers.interventions import intervened
from helpers.models import DecoderOnly, Transformer
from helpers.operations import OFF, run
from helpers.pretrained import SentenceEncoder, load_minilm
from workshop.widgets.machine import Machine

OUTSIDE = ("one-hot", "ids", "last", "mean", "unit", "given")  # no module computes them
HEAD_OFF = {"at": "layer 1/attention/head 2/context", "off": True}


def of_program(case: Case, changes: Sequence[dict], i: int = 0) -> np.ndarray:
    """What the program computes of one item of the batch, with the changes: (T, …)."""
    program = case.program(i)
    return run(program, case.texts(i), changes)[compared(program)]


def agreed(case: Case, *changes: dict) -> np.ndarray:
    """What modules and program both compute with the changes, of the first item: (T, …)."""
    with intervened(case.model, changes):
        ours = case()[0]
    np.testing.assert_allclose(ours, of_program(case, changes), atol=1e-6, err_msg=str(changes))
    return ours


def of_operations(case: Case) -> list[dict]:
    """Each operation that a module computes: a number or a row of it set, and switched off."""
    program, changes = case.program(), []
    values = run(program, case.texts())
    for i, op in enumerate(program.operations.values()):
        if op.kind not in OUTSIDE and not op.name.endswith("next"):
            row = np.linspace(0.1, 0.9, values[op.name].shape[1]).tolist()
            by_hand = {"values": row} if i % 2 else {"column": 0, "value": 2.0}
            changes += [{"at": op.name, "row": 1, **by_hand}]
            changes += [{"at": op.name, "off": True}] * (op.kind in OFF)
    return changes


def of_weights(case: Case) -> list[list[dict]]:
    """Of each weight all rows, set to waves."""
    waves = {
        name: np.sin(np.arange(W.size)).reshape(W.shape).tolist()
        for name, W in case.program().weights.items()
        if name not in ("x/x", "memory/x")
    }
    return [[{"at": name, "row": i, "values": row} for i, row in enumerate(rows)]
            for name, rows in waves.items()]  # fmt: skip


def of_all(case: Case) -> list[dict]:
    """Each operation and each row of each weight."""
    return [*of_operations(case), *(change for changes in of_weights(case) for change in changes)]


def unasked(case: Case, change: dict) -> bool:
    """Whether a change is in the row of a token that does not ask this expert."""
    at, _, inside = change["at"].partition("/expert ")
    if not inside or "row" not in change:
        return False
    shares = run(case.program(), case.texts())[f"{at}/chosen"]
    return shares[change["row"], int(inside.split("/")[0]) - 1] == 0


def state(model: nn.Module) -> list:
    """All that a module holds: its parameters themselves, its hooks, what hides its methods."""
    return [(part, sorted(vars(part)), {k: id(p) for k, p in part._parameters.items()},
             [len(held) for key, held in sorted(vars(part).items()) if key.endswith("_hooks")])
            for part in model.modules()]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_operation_switched_off_or_set_by_hand(name):
    """Each change is seen in the output, unless no token asks an expert; it is gone afterwards."""
    case = CASES[name]()
    plain, before = case(), state(case.model)
    for change in of_operations(case):
        seen = np.abs(agreed(case, change) - plain[0]).max() > 1e-5
        assert seen != unasked(case, change), change
    np.testing.assert_array_equal(case(), plain)
    assert state(case.model) == before


@pytest.mark.parametrize("name", CASES)
def test_each_weight_set_by_hand(name):
    """Only a bias of keys is never seen: it adds the same to all scores of a query."""
    case = CASES[name]()
    plain, before = case()[0], state(case.model)
    for changes in of_weights(case):
        seen = np.abs(agreed(case, *changes) - plain).max() > 1e-5
        assert seen or changes[0]["at"].endswith("/k/b"), changes[0]
    assert state(case.model) == before


@pytest.mark.parametrize("name", ["gpt", "transformer", "decoder layer", "sentences"])
def test_many_changes_at_once_in_every_item_of_a_batch(name):
    """Every seventh of operations and rows of weights; where two meet, the last one counts."""
    case = CASES[name]()
    for start in range(7):
        changes = of_all(case)[start::7]
        with intervened(case.model, changes):
            ours = case()
        for i in range(2):
            np.testing.assert_allclose(ours[i], of_program(case, changes, i), atol=1e-6)


def test_in_float32_it_is_within_1e_4():
    case = CASES["transformer"]()
    case.model.float()
    for change in of_operations(case)[::5]:
        with intervened(case.model, [change]):
            ours = case()[0]
        np.testing.assert_allclose(ours, of_program(case, [change]), atol=1e-4)


@pytest.mark.parametrize("name", ["gpt", "notebook 12", "encoder"])
def test_inner_changes_come_after_outer_ones(name):
    """As if they stood in one list; when the inner `with` ends, the outer changes are left."""
    case = CASES[name]()
    before = state(case.model)
    changes = of_operations(case)
    for outer, inner in zip(changes[::9], changes[4::9], strict=False):
        if outer["at"] == inner["at"]:
            continue
        with intervened(case.model, [outer]):
            with intervened(case.model, [inner]):
                both = case()[0]
            alone = case()[0]
        np.testing.assert_allclose(both, of_program(case, [outer, inner]), atol=1e-6)
        np.testing.assert_allclose(alone, of_program(case, [outer]), atol=1e-6)
    assert state(case.model) == before


def test_of_one_number_the_inner_change_counts_and_what_is_off_inside_is_off():
    case = CASES["gpt"]()
    first, second = ({"at": "layer 1/add 1", "row": 1, "column": 0, "value": x} for x in (1, 2))
    off = {"at": "layer 1/add 1", "off": True}
    with intervened(case.model, [first]), intervened(case.model, [second]):
        np.testing.assert_allclose(case()[0], of_program(case, [second]), atol=1e-6)
    with intervened(case.model, [first]), intervened(case.model, [off]):
        np.testing.assert_allclose(case()[0], of_program(case, [off]), atol=1e-6)


def test_a_part_is_changed_by_its_own_names_inside_the_whole():
    """The names of a layer alone, within changes of the model that it belongs to."""
    case = CASES["gpt"]()
    part = case.model.layers[1]
    with intervened(case.model, [{"at": "layer 2/attention/head 1/scaled", "off": True}]):
        with intervened(part, [{"at": "layer 1/attention/head 3/context", "off": True}]):
            ours = case()[0]
    changes = [{"at": "layer 2/attention/head 1/scaled", "off": True},
               {"at": "layer 2/attention/head 3/context", "off": True}]  # fmt: skip
    np.testing.assert_allclose(ours, of_program(case, changes), atol=1e-6)


def test_an_exception_inside_leaves_nothing_behind():
    case = CASES["gpt"]()
    before, plain = state(case.model), case()
    changes = of_all(case)
    with pytest.raises(ZeroDivisionError), intervened(case.model, changes):
        raise ZeroDivisionError
    assert state(case.model) == before
    np.testing.assert_array_equal(case(), plain)


def test_weights_of_attention_are_those_with_the_changes():
    case = CASES["gpt"]()
    row = {"at": "layer 1/attention/head 2/weights", "row": 3, "values": [0.1, 0.2, 0.3, 0.4]}
    with intervened(case.model, [row]):
        case()
        seen = case.model.layers[0].attention.weights[:, 1]  # (B, T, Tk)
    values = run(case.program(), case.texts(), [row])
    np.testing.assert_allclose(seen[0], values["layer 1/attention/head 2/weights"], atol=1e-9)
    np.testing.assert_allclose(seen[1, 3], row["values"])


def test_a_tied_table_is_changed_where_it_is_read_and_not_where_it_predicts():
    """As in the program, where the two are two; the model's own table stays untouched."""
    case = CASES["tied, post-norm"]()
    table = case.model.output.weight
    with intervened(case.model, [{"at": "logits/W", "row": 0, "column": 0, "value": 9.0}]):
        assert case.model.tokens.weight is table and case.model.output.weight is not table
    assert case.model.output.weight is case.model.tokens.weight is table


def test_padding_stays_unread():
    """A shorter sentence with padding behind it gives what it gives alone."""
    case = CASES["transformer"]()
    src, tgt = (torch.from_numpy(ids) for ids in case.inputs.values())
    padded = torch.cat([src, torch.zeros(2, 3, dtype=torch.int64)], dim=1)
    places = ["encoder/layer 1/attention/head 1/scaled", "encoder/positions",
              "decoder/layer 1/self-attention/head 1/masked",
              "decoder/layer 1/cross-attention/head 2/scaled"]  # fmt: skip
    changes = [{"at": at, "off": True} for at in places]
    with intervened(case.model, changes), torch.no_grad():
        np.testing.assert_allclose(case.model(padded, tgt), case.model(src, tgt), atol=1e-9)


def test_what_is_changed_in_a_picture_is_changed_in_the_model():
    """The machine's own changes, handed over as they are."""
    case = CASES["gpt"]()
    machine = Machine(case.model, "b c d e", list("abcdefghijk"))
    machine.intervene(head=(1, 2), off=True)
    machine.intervene("layer 2/attention/head 1/weights", row=2, values=[0.5, 0.0, 0.5, 0.0])
    with torch.no_grad(), intervened(case.model, machine.changes):
        logits = case.model(torch.tensor([[1, 2, 3, 4]]))[0]
    np.testing.assert_allclose(logits, machine.values["logits"], atol=1e-6)
    assert np.abs(machine.values["logits"] - machine.before["logits"]).max() > 1e-3


def test_in_training_dropout_stays():
    """Of what the encoder is given: it is looked up again, and as many numbers are dropped."""
    model, given = Transformer(9, 9, 32, 2, 8, 1, dropout=0.5), []
    with intervened(model, [{"at": "encoder/positions", "off": True}]):
        watch = model.encoder.register_forward_pre_hook(lambda _, args: given.append(args[0]))
        model(torch.arange(1, 9)[None], torch.arange(1, 9)[None])
        watch.remove()
    assert 0.3 < (given[0] == 0).double().mean() < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("change", [
    {"at": "layer 3/attention/head 5/context", "off": True},
    {"at": "layer 2/norm 1", "off": True},
    {"at": "layer 4/feed-forward/out", "off": True},
    {"at": "layer 1/add 2", "off": True},
    {"at": "layer 6/attention/head 12/weights", "row": 1, "values": [0.0] * 5 + [1.0] + [0.0] * 3},
], ids=lambda change: change["at"])  # fmt: skip
def test_minilm_as_it_is(minilm, change):
    ids = minilm.tokenize(["The cat sat on the mat."])[0]
    program = describe(minilm)
    theirs = run(program, {"text": ids[0].tolist()}, [change])[program.operations["mean"].inputs[0]]
    with torch.no_grad(), intervened(minilm, [change]):
        np.testing.assert_allclose(minilm(ids)[0], theirs, atol=1e-4)
    with torch.no_grad():
        assert np.abs(minilm(ids)[0].numpy() - theirs).max() > 0.01


@pytest.fixture(scope="module")
def minilm() -> SentenceEncoder:
    return load_minilm()


def test_gradients_flow_through_the_changes():
    case = CASES["gpt"]()
    with intervened(case.model, [HEAD_OFF, {**HEAD_OFF, "at": "layer 2/add 1"}]):
        case.model(torch.from_numpy(case.inputs["text"])).sum().backward()
    W_v = case.model.layers[0].attention.W_v.weight.grad  # (3 · 2, 6): that head's rows get none
    assert (W_v[2:4] == 0).all() and (W_v[:2] != 0).any() and (W_v[4:] != 0).any()


@pytest.mark.parametrize(("name", "at"), [
    *(("gpt", at) for at in ("layer 1/attention/head 2/context", "layer 1/norm 1", "positions",
                             "layer 2/add 1", "layer 2/attention/head 1/scaled")),
    ("llama", "layer 1/attention/head 3/context"), ("llama", "layer 2/feed-forward/gated"),
    ("qwen", "layer 1/attention/q, k, v/k normed"), ("mixtral", "layer 1/feed-forward/out"),
])  # fmt: skip
def test_a_cache_knows_what_is_switched_off(name, at):
    """Written token by token with a cache, or without: the same; another text than unchanged."""
    model = CASES[name]().model
    written = {}
    for changes in ([], [{"at": at, "off": True}]):
        with intervened(model, changes):
            with_cache, without = (_written(model, cached) for cached in (True, False))
        np.testing.assert_allclose(with_cache, without, atol=1e-9)
        written[len(changes)] = with_cache
    assert np.abs(written[0] - written[1]).max() > 1e-5


def _written(model: DecoderOnly, cached: bool) -> np.ndarray:
    with model.continuation([[1, 2, 3], [4]], 4, cached) as logits:
        return np.stack([logits({}), logits({0: 5, 1: 6}), logits({0: 7, 1: 8})])


def test_a_translators_cache_knows_what_is_switched_off():
    """The places of its two sides, which share one module, are not confused."""
    model = CASES["transformer"]().model
    src = torch.tensor([[1, 2, 3]])
    with intervened(model, [{"at": "encoder/positions", "off": True}]):
        texts = [generate(model.answering(src), [[1]], 5, cached=c) for c in (True, False)]
        again = model(src, torch.tensor([[1, 2]]))
    assert texts[0] == texts[1]
    program = describe(model)
    values = run(program, {"text": [1, 2, 3], "written": [1, 2]},
                 [{"at": "encoder/positions", "off": True}])  # fmt: skip
    np.testing.assert_allclose(again.detach()[0], values["decoder/logits"], atol=1e-6)


@pytest.mark.parametrize("change", [
    {"at": "layer 1/add 1", "row": 0, "column": 0, "value": 1.0},
    {"at": "layer 1/attention/head 1/masked", "off": True},
    {"at": "layer 1/attention/head 1/k turned", "off": True},
])  # fmt: skip
def test_rows_masks_and_turns_are_refused_with_a_cache(change):
    model = CASES["llama"]().model
    with pytest.raises(ValueError, match="without a cache"), intervened(model, [change]):
        _written(model, cached=True)
    with intervened(model, [change]):
        _written(model, cached=False)


@pytest.mark.parametrize(("name", "change", "message"), [
    ("gpt", {"at": "layer 9/norm 1", "off": True}, r"changes\[0\] is at 'layer 9/norm 1', but"),
    ("gpt", {"at": "next", "row": 0, "column": 0, "value": 1}, r"changes\[0\] is at 'next', which"),
    ("gpt", {"at": "one-hot", "row": 0, "column": 0, "value": 1}, "'one-hot', which no module"),
    ("sentences", {"at": "mean", "row": 0, "column": 0, "value": 1}, "'mean', which no module"),
    ("encoder layer", {"at": "x/x", "row": 0, "column": 0, "value": 1}, "'x/x', which no module"),
    ("gpt", {"at": "layer 1/attention/head 1/weights", "off": True}, "only these can be"),
    ("gpt", {"at": "logits/W", "row": 6, "column": 0, "value": 1}, "has no place for"),
    ("gpt", {"at": "norm/gain", "off": True}, "switches off 'norm/gain'"),
    ("gpt", {"at": "x", "row": -1, "column": 0, "value": 1}, r"changes\[0\]\['row'\] is -1"),
])  # fmt: skip
def test_what_cannot_be_done_says_so_and_changes_nothing(name, change, message):
    case = CASES[name]()
    before = state(case.model)
    with pytest.raises(ValueError, match=message), intervened(case.model, [change]):
        pass
    assert state(case.model) == before


def test_a_row_that_a_text_does_not_have_rests():
    """In the modules as in the program: the sentence is shorter than the one that was changed."""
    case = CASES["gpt"]()
    plain = case()[0]
    for change in ({"row": 6, "column": 0, "value": 3.0}, {"row": 0, "values": [1.0, 2.0]}):
        np.testing.assert_allclose(agreed(case, {"at": "layer 1/add 1", **change}), plain)


def test_other_modules_are_refused():
    with pytest.raises(TypeError, match="model is a Linear"), intervened(nn.Linear(2, 2), []):
        pass


def test_without_changes_nothing_is_touched():
    case = CASES["pre-norm transformer"]()
    before = state(case.model)
    with intervened(case.model, []):
        assert state(case.model) == before
