"""The machine in Python: what it computes, changes, hands to the browser, and refuses."""

import copy
import json
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from helpers.examples import APPLE, APPLE_WORDS
from helpers.layers import DecoderLayer, EncoderLayer, MultiHeadAttention
from helpers.models import DecoderOnly, Transformer
from workshop.machine import machine
from workshop.machine.machine import Machine

WORDS = APPLE_WORDS
ARRAYS = {name: array for name, array in APPLE.items() if name != "names"}
SENTENCE = "the shop sells apple and banana"
FRENCH = ["<pad>", "<start>", "<end>", "le", "chat", "noir"]


@pytest.fixture(scope="module")
def two():
    torch.manual_seed(3)
    return Transformer(7, 6, 8, 2, 16, 1, max_len=12).eval()


@pytest.fixture(scope="module")
def one():
    torch.manual_seed(4)
    return DecoderOnly(7, 16, 8, 2, 16, 2).eval()


class Letters:
    """A tokenizer of the kind that Hugging Face's is, for the letters a to g."""

    def encode(self, text):
        return SimpleNamespace(tokens=list(text), ids=[ord(c) - ord("a") for c in text])

    def decode(self, ids):
        return "".join(chr(ord("a") + i) for i in ids)


def test_apple_turns_to_fruit_beside_a_banana_and_to_a_device_beside_a_laptop():
    shown = Machine(ARRAYS, SENTENCE, WORDS, asker="apple", at="attention/head")
    assert shown.asker == 3
    np.testing.assert_allclose(shown.values["attention/head/context"][3], [2.6, 0.9], atol=5e-3)
    shown.text = "the shop sells apple and laptop"
    np.testing.assert_allclose(shown.values["attention/head/context"][3], [0.9, 2.6], atol=5e-3)


@pytest.mark.parametrize(
    ("at", "asker", "asks"),
    [
        ("decoder/layer 1/self-attention/head 1", 2, "le asks"),  # the third word of two
        ("decoder/layer 1/self-attention/head 1", "<start>", "<start> asks"),
        ("encoder/layer 1/attention/head 1", "sells", "sells asks"),
    ],
)
def test_the_asker_is_a_word_of_the_side_that_asks(two, at, asker, asks):
    given = {"written": "<start> le", "at": at}
    shown = Machine(two, "shop sells apple", (WORDS, FRENCH), asker=asker, **given)
    assert asks in shown.picture().alt
    with pytest.raises(ValueError, match="asker is 'chat', but must be one of those that ask: "):
        Machine(two, "shop sells apple", (WORDS, FRENCH), asker="chat", **given)


def test_output_is_what_the_model_expects_next(two):
    shown = Machine(two, "shop sells", (WORDS, FRENCH))
    assert shown.written == "<start>"
    with torch.no_grad():
        logits = two(torch.tensor([[1, 2]]), torch.tensor([[1]]))[0, -1]
    expected = logits.softmax(-1)
    best = expected.argsort(descending=True)[:5].tolist()
    assert shown.output == {FRENCH[i]: pytest.approx(expected[i].item()) for i in best}
    heard = []
    shown.observe(lambda change: heard.append(change.new), "output")
    shown.intervene("decoder/layer 1/feed-forward", off=True)
    assert len(heard) == 1 and heard[0] == shown.output
    shown.put_back()
    assert shown.output == {FRENCH[i]: pytest.approx(expected[i].item()) for i in best}


def test_a_head_is_switched_off_by_its_path(one):
    shown = Machine(one, SENTENCE, WORDS)
    shown.intervene("layer 2/attention/head 1/context", off=True)
    assert shown.changes == [{"at": "layer 2/attention/head 1/context", "off": True}]
    assert not shown.values["layer 2/attention/head 1/context"].any()
    shown.intervene("layer 2/attention/head 1", off=True)
    assert len(shown.changes) == 1
    shown.intervene("layer 1/attention/head 2/weights", row=2, values=[1, 0, 0, 0, 0, 0])
    assert shown.values["layer 1/attention/head 2/weights"][2].tolist() == [1, 0, 0, 0, 0, 0]
    shown.put_back("layer 2/attention/head 1")
    assert [change["at"] for change in shown.changes] == ["layer 1/attention/head 2/weights"]
    shown.put_back()
    assert shown.changes == []


def test_a_later_change_of_a_number_replaces_the_first():
    shown = Machine(ARRAYS, SENTENCE, WORDS)
    for value in (1, 5):
        shown.intervene("x/table", row=3, column=0, value=value)
    shown.intervene("x/table", row=3, column=1, value=7)
    assert shown.changes == [
        {"at": "x/table", "row": 3, "column": 0, "value": 5},
        {"at": "x/table", "row": 3, "column": 1, "value": 7},
    ]
    assert shown.values["x"][3].tolist() == [5, 7, 0]


def test_a_layer_alone_works_on_vectors():
    torch.manual_seed(0)
    x, memory = torch.randn(3, 8), torch.randn(4, 8)
    tokens = ["a b", "<b>", "c"]
    attention = Machine(MultiHeadAttention(8, 8, 2), tokens, x=x)
    assert attention.tokens == {"text": tokens}
    layer = EncoderLayer(8, 2, 16).eval()
    last = Machine(layer, "one two three", x=x)
    expected = layer(x[None])[0].detach()
    np.testing.assert_allclose(last.values[last._program.output], expected, atol=1e-5)
    decoder = Machine(DecoderLayer(8, 2, 16), tokens, x=x, memory=memory)
    assert decoder.values["memory"].shape == (4, 8)


def test_a_tokenizer_cuts_the_text_and_the_kernel_computes(one):
    shown = Machine(one, "abc", tokenizer=Letters(), at="layer 1/attention/head 2")
    assert shown.learned == b"" and shown.tokens == {"text": ["a", "b", "c"]}
    assert set(shown.output) <= set("abcdefg") and shown.kept["tokens"] == shown.tokens
    name = "layer 1/attention/head 2/q"
    assert name in shown.kept["values"] and not shown.kept["weights"]
    shown.cell = [name, 2, 1]
    part = shown.kept["weights"][0]
    assert part["name"] == "layer 1/attention/q, k, v/q/W_q"
    numbers = np.frombuffer(part["bytes"], "<f4")
    W = one.layers[0].attention.W_q.weight.detach().numpy().T
    assert part["column"] == 5
    np.testing.assert_allclose(numbers, W[:, 5])
    shown.text = "abcdefg" * 3
    assert "text has 21 words" in shown.kept["problem"]
    shown.text = "ab"
    assert shown.kept["problem"] == ""


def test_what_is_open_is_all_that_the_kernel_sends(one, monkeypatch):
    monkeypatch.setattr(machine, "IN_BROWSER", 10)
    shown = Machine(one, SENTENCE, WORDS)
    whole = set(shown.kept["values"])
    assert {"layer 1/attention/head 1/weights", "layer 2/feed-forward/out", "next"} <= whole
    assert "layer 1/attention/head 1/scores" not in whole
    shown.at = "layer 1/add 1"
    assert set(shown.kept["values"]) == {"layer 1/add 1", "x + positions", "next"} | {
        name for name in ("layer 1/attention/out",)
    }
    shown.intervene("layer 1/attention/head 1", off=True)
    assert "x + positions" not in shown.kept["before"] and "next" in shown.kept["before"]


def test_a_notebook_saves_no_weight_of_what_the_kernel_computes(one):
    here, away = (Machine(one, SENTENCE, WORDS, by_kernel=kept) for kept in (False, True))
    assert here.learned and not away.learned and away.output == here.output
    assert away.kept["values"] and not here.kept


def test_where_numbers_are_seen_the_kernel_sends_all_their_digits(one, monkeypatch):
    """A step, what it was before, a head; of a map the pictures may be rounded."""
    monkeypatch.setattr(machine, "IN_BROWSER", 10)
    monkeypatch.setattr("workshop.widgets.base.EXACT", 10)
    shown = Machine(one, SENTENCE, WORDS, changes=[{"at": "x", "row": 0, "column": 0, "value": 9}])
    for at, exact in {"": False, "layer 1/add 1": True, "layer 1/attention/head 1": True}.items():
        shown.at = at
        sent = [*shown.kept["values"].items(), *shown.kept["before"].items()]
        steps = {part["step"] for name, part in sent if name != "next"}
        assert (steps == {0}) == exact


@pytest.fixture(scope="module")
def today():
    torch.manual_seed(0)
    return DecoderOnly(7, 9, 8, 4, 6, 1, num_kv_heads=2, rope=100.0, qk_norm=True, pre_norm=True,
                       rms_norm=True, num_experts=3, activation="silu", gated=True)  # fmt: skip


def test_a_model_of_today_has_room_and_pictures_of_its_heads(today):
    """No table says for how many words; keys are drawn as they are compared."""
    shown = Machine(today, SENTENCE, WORDS, at="layer 1/attention/head 3")
    assert "weight" in shown.picture().alt
    shown.text = " ".join(["the"] * 9)
    with pytest.raises(ValueError, match="text has 10 words, but needs 1 to 9"):
        shown.text = " ".join(["the"] * 10)
    shown.intervene("layer 1/feed-forward", off=True)
    shown.intervene("layer 1/feed-forward/expert 2", off=True)
    assert [change["at"] for change in shown.changes] == [
        "layer 1/feed-forward/out", "layer 1/feed-forward/expert 2/out"]  # fmt: skip


def test_of_a_head_of_today_the_kernel_sends_all_that_is_seen(today, monkeypatch):
    monkeypatch.setattr(machine, "IN_BROWSER", 10)
    at = "layer 1/attention/head 3"
    sent = Machine(today, SENTENCE, WORDS, at=at).kept["values"]
    steps = ("k turned", "q turned", "k", "q", "v", "scores", "scaled", "masked", "weights")
    assert {"layer 1/norm 1", "next", *(f"{at}/{step}" for step in steps)} <= set(sent)


LAYERS = {
    "": "cross-attention → add → norm → feed-forward → add → norm; prediction: logits → next word; "
    "encoder layer 1 is read by decoder layer 1/cross-attention.",
    "encoder": "layer 1: attention → add → norm → feed-forward → add → norm.",
    "decoder/layer 1/cross-attention": "heads: head 1, head 2; steps: heads joined → · W_o.",
}


@pytest.mark.parametrize("at", LAYERS)
def test_words_and_picture_say_what_is_open_in_the_order_of_what_is_made_of_what(two, at):
    shown = Machine(two, "shop sells", (WORDS, FRENCH), at=at)
    data, metadata = shown._repr_mimebundle_()
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(shown)
    assert repr(shown).startswith(f"A model opened at {at or 'its map'}, on “shop sells”")
    assert repr(shown).endswith(LAYERS[at])


def test_of_many_heads_a_picture_shows_some():
    shown = Machine(MultiHeadAttention(24, 24, 12), ["a", "b"], x=np.ones((2, 24)), at="attention")
    assert "heads: head 1, head 2, head 3, head 4, …, head 12;" in shown.picture().alt


SINKS = DecoderOnly(7, 9, 8, 2, 8, 1, sinks=True)


@pytest.mark.parametrize(("model", "at", "columns"), [
    (APPLE, "one-hot", APPLE_WORDS),
    (SINKS, "layer 1/attention/head 2", ["the", "shop", "sink"]),
])  # fmt: skip
def test_columns_of_words_are_named_in_the_picture_too(model, at, columns):
    drawn = Machine(model, "the shop", APPLE_WORDS, at=at).picture()
    assert {*columns} <= {text.get_text() for text in drawn.figure.axes[0].texts}


def test_weights_of_bfloat16_are_taken_as_they_are(one):
    half = copy.deepcopy(one).bfloat16()
    shown, same = (Machine(model, SENTENCE, WORDS) for model in (half, copy.deepcopy(half).float()))
    assert shown.learned == same.learned and shown.output == same.output


def with_nan():
    model = DecoderOnly(7, 16, 8, 2, 16, 1)
    with torch.no_grad():
        model.layers[0].feed_forward.W1.weight[1, 2] = float("inf")
    return model


REFUSED = [
    ({"text": "the melon"}, "text has 'melon', which is not in the vocabulary"),
    ({"vocab": ["<pad>", *WORDS[1:]], "text": "<pad> shop"}, "text has '<pad>', which fills up"),
    ({"text": " "}, "text has 0 words, but needs 1 to"),
    ({"text": "the " * 200}, "text has 200 words, but needs 1 to 128"),
    ({"vocab": WORDS[:5]}, "vocab has 5 words, but the table has 7 rows"),
    ({"vocab": (WORDS, WORDS)}, "vocab has 2 vocabularies, but the model needs 1"),
    ({"vocab": None}, "vocab"),
    ({"model": ARRAYS | {"extra": 1}}, "model has 'extra'"),
    ({"model": nn.Linear(2, 2)}, "model is a Linear"),
    ({"model": with_nan()}, r"model has inf in layer 1/feed-forward/hidden/W1 at \(2, 1\)"),
    ({"model": ARRAYS | {"table": [[np.nan] * 3] * 7}}, "nan"),
    ({"at": "layer 9"}, "at is 'layer 9', but the model has no such part"),
    ({"cell": ["attention/head/q", 1]}, "cell is .*, but must be a path, a row and a column"),
    ({"cell": ["nothing", 0, 0]}, "cell is"),
    ({"temperature": 0}, "temperature is 0"),
    ({"changes": [{"at": "nothing", "off": True}]}, "changes has one in which at is 'nothing'"),
    ({"changes": [{"at": "x", "off": True}]}, "which cannot be switched off"),
    ({"changes": [{"at": "one-hot", "row": 0, "column": 0, "value": 1}]}, "chosen by words"),
    ({"changes": [{"at": "x", "row": 6, "column": 0, "value": 1}]}, "row is 6"),
    ({"changes": [{"at": "x", "row": 0, "column": 3, "value": 1}]}, "column is 3"),
    ({"changes": [{"at": "x", "row": 0, "column": 0, "value": np.nan}]}, "value is nan"),
    ({"changes": [{"at": "x", "row": 0, "values": [1]}]}, "values has 1 numbers, but x needs 3"),
    ({"changes": [3]}, "changes has 3, but must hold dictionaries"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_refused(given, said):
    needed = {"model": ARRAYS, "text": SENTENCE, "vocab": WORDS}
    with pytest.raises((ValueError, TypeError), match=said):
        Machine(**needed | given)


def test_refused_later_and_nothing_changes(two):
    shown = Machine(two, "shop sells", (WORDS, FRENCH))
    for name, value in {"text": "melon", "written": "<start> melon", "at": "x"}.items():
        before = getattr(shown, name)
        with pytest.raises(ValueError, match=name if name != "at" else "no such part"):
            setattr(shown, name, value)
        assert getattr(shown, name) == before
    with pytest.raises(ValueError, match="at is 'layer 1', but the model has no such part"):
        shown.intervene("layer 1", off=True)
    assert not shown.changes


def test_the_features_of_a_module_have_names_too():
    layer, words = EncoderLayer(4, 2, 8).eval(), ["the", "shop"]
    named = {"x": ["food", "device", "trade", "else"], "add 1": list("abcd")}
    shown = Machine(layer, words, x=np.ones((2, 4)), names=named)
    told = json.loads(zlib.decompress(shown.description))
    assert told["names"] == named and not Machine(layer, words, x=np.ones((2, 4)))._program.names
    both = Machine(ARRAYS | {"names": {"x": list("abc")}}, SENTENCE, WORDS, names={"q": ["c", "d"]})
    assert both._program.names == {"x": list("abc"), "q": ["c", "d"]}
    with pytest.raises(TypeError, match="names is 3, but must be lists"):
        Machine(layer, words, x=np.ones((2, 4)), names=3)


def test_each_head_has_the_names_of_its_own_features():
    """And a head's columns are called as they are everywhere."""
    shown = Machine(APPLE | {"num_heads": 2, "causal": True}, SENTENCE, WORDS)
    named = json.loads(zlib.decompress(shown.description))["names"]
    for h, name in ((1, "food"), (2, "device")):
        heads = [named[f"attention/head {h}/{step}"] for step in ("q", "k", "v", "context")]
        assert heads == [[name]] * 4
    assert named["attention/joined"] == named["q"] == ["food", "device"]
    steps = shown._program.operations
    called = {step: steps[f"attention/head 1/{step}"].title
              for step in ("scores", "scaled", "masked", "weights")}  # fmt: skip
    assert [*called] == [*called.values()]
    shared = DecoderOnly(5, 8, 8, 4, 8, 1, num_kv_heads=2).eval()  # of 4 heads, 2 numbers each
    own = Machine(
        shared, "a", list("abcde"), names={"context": list("abcdefgh"), "v": list("wxyz")}
    )
    named = json.loads(zlib.decompress(own.description))["names"]
    parts = [
        named[f"layer 1/attention/head {h}/{step}"] for h in (1, 4) for step in ("v", "context")
    ]
    assert parts == [["w", "x"], ["a", "b"], ["y", "z"], ["g", "h"]]
