"""NextToken in Python: words, picture, saved logits, its answers, and what it refuses."""

import base64
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.decoding import greedy_decode, next_token_probs
from helpers.text import bigram_probs
from helpers.widgets.next_token import NextToken

VOCAB = ["I", "you", "love", "oranges", "grapes"]
TABLE = bigram_probs(["I love oranges", "I love grapes", "you love oranges"], VOCAB)
RNG = np.random.default_rng(2)
LOGITS = 2 * RNG.normal(size=(6, 6))
WORDS = ["<start>", "you", "win", "or", "die", "<end>"]


def after(tokens):
    """The model of notebook 00: a row of the table."""
    return TABLE[VOCAB.index(tokens[-1])]


def by_ids(ids):
    """The step of notebook 12: a row of logits per id."""
    return LOGITS[ids]


def saved(shown) -> dict[str, np.ndarray]:
    return {k: np.frombuffer(packed["bytes"], "<f4") for k, packed in shown.arrays.items()}


def ask(shown, tokens):
    """What Python answers the browser: (status on the way, status after, logits or None)."""
    statuses, sent = [], []
    shown.observe(lambda change: statuses.append(change["new"]), "status")
    shown.send = lambda content, buffers: sent.append((content, buffers))
    name = json.dumps(tokens, separators=(",", ":"))
    shown._answer(shown, {"exact": name}, [])
    shown.unobserve_all("status")
    if sent:
        assert [content for content, _ in sent] == [{"exact": name}]
    logits = np.frombuffer(sent[0][1][0], "<f4") if sent else None
    return statuses[0], shown.status, logits


def test_words_say_what_follows_and_the_greedy_path():
    shown = NextToken(after, VOCAB, ["you"], probabilities=True)
    assert repr(shown) == (
        'NextToken: 5 tokens; after "you": "love" 1.00; the likeliest each time: "love oranges"'
    )
    shown = NextToken(after, VOCAB, ["I", "love"], probabilities=True, temperature=0.5)
    assert '"oranges" 0.80, "grapes" 0.20' in repr(shown)


def test_the_bundle_has_a_view_a_picture_and_its_words():
    for prompt in (["love"], ["grapes"]):
        shown = NextToken(after, VOCAB, prompt, probabilities=True)
        data, metadata = shown._repr_mimebundle_()
        assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == shown.model_id
        assert data["text/plain"] == metadata["image/png"]["alt"] == repr(shown)
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        assert picture.width >= metadata["image/png"]["width"] > 200


def test_a_picture_of_many_tokens_sums_up_the_rest():
    shown = NextToken(lambda tokens: np.zeros(300), [f"t{i}" for i in range(300)], end="t299")
    assert '"t0" 0.00' in repr(shown) and "after no token" in repr(shown)
    assert shown.picture().width < 900


def test_zeros_become_minus_infinity_and_nothing_may_follow():
    shown = NextToken(after, VOCAB, ["love"], probabilities=True)
    logits = saved(shown)["[]"]
    assert np.allclose(np.exp(logits), TABLE[2])
    assert np.isneginf(logits[[0, 1, 2]]).all()
    nothing = NextToken(after, VOCAB, ["grapes"], probabilities=True)
    assert np.isneginf(saved(nothing)["[]"]).all() and not nothing.probs.any()
    assert repr(nothing) == 'NextToken: 5 tokens; after "grapes": nothing'


def test_the_greedy_path_is_saved_up_to_the_end():
    shown = NextToken(by_ids, WORDS, ["<start>"], ids=True, max_tokens=50)
    path = greedy_decode(by_ids, 0, 5, 50)
    if path[-1] != 5:
        path = path[:50]
    kept = saved(shown)
    for n in range(len(path)):
        name = json.dumps([WORDS[i] for i in path[:n]], separators=(",", ":"))
        assert np.allclose(kept.pop(name), LOGITS[[0, *path][n]])
    assert not kept


def test_saved_logits_are_few():
    calls = []

    def step(tokens):
        calls.append(tokens)
        return np.arange(4096.0)

    shown = NextToken(step, [str(i) for i in range(4096)], max_tokens=20)
    assert len(shown.arrays) == 4 == len(calls)
    assert sum(len(packed["bytes"]) for packed in shown.arrays.values()) == 65_536
    short = NextToken(by_ids, WORDS, ["<start>"], ids=True, end="", max_tokens=3)
    assert len(short.arrays) == 3


@pytest.mark.parametrize("shape", [(6,), (1, 6), (4, 6), (1, 4, 6)])
def test_the_last_row_counts(shape):
    result = RNG.normal(size=shape)
    for given in (result, torch.tensor(result, requires_grad=True), result.tolist()):
        shown = NextToken(lambda tokens, given=given: given, WORDS)
        assert np.allclose(saved(shown)["[]"], result.reshape(-1, 6)[-1])


def test_a_vocabulary_may_map_tokens_to_ids():
    ids = {word: i for i, word in reversed(list(enumerate(WORDS)))}
    assert NextToken(by_ids, ids, ["<start>"], ids=True).vocabulary == WORDS


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(6, 6)
        self.dropout = torch.nn.Dropout(0.9)

    def forward(self, ids):
        assert ids.ndim == 2
        return self.dropout(self.table(ids))


def test_a_module_runs_in_eval_mode_and_keeps_its_own():
    torch.manual_seed(0)
    model = Model()
    shown = NextToken(model, WORDS, ["<start>", "you"])
    assert np.allclose(saved(shown)["[]"], model.table.weight[1].detach())
    assert model.training
    model.eval()
    assert np.allclose(ask(shown, ["or", "die"])[2], model.table.weight[4].detach())
    assert not model.training


def test_python_answers_for_exactly_these_tokens():
    shown = NextToken(by_ids, WORDS, ["<start>"], ids=True)
    before, later, logits = ask(shown, ["die", "or"])
    assert before == {'["die","or"]': "The model computes …"}
    assert later == {} and np.allclose(logits, LOGITS[3])


def test_a_failure_becomes_one_line_of_words():
    shown = NextToken(after, VOCAB, ["love"], probabilities=True)
    _, status, logits = ask(shown, ["pears"])
    assert status == {'["pears"]': "The model failed. ValueError: 'pears' is not in list"}
    assert logits is None

    def late(tokens):
        if len(tokens) > 1:
            raise RuntimeError("two\nlines" + 1000 * "!")
        return LOGITS[0]

    shown = NextToken(late, WORDS, ["you"])
    text = ask(shown, ["win"])[1]['["win"]']
    assert text.startswith("The model failed. RuntimeError: two⏎lines!") and len(text) < 350
    assert list(shown.arrays) == ["[]"]


def test_other_messages_are_left_alone():
    shown = NextToken(by_ids, WORDS, ["<start>"], ids=True)
    sent = []
    shown.send = lambda content, buffers: sent.append(content)
    shown._answer(shown, {"exact": "[]"}, [])
    assert sent == [{"exact": "[]"}]
    for message in (None, 3, {}, {"other": 1}):
        shown._answer(shown, message, [])
    assert len(sent) == 1
    shown._answer(shown, {"exact": "no JSON"}, [])
    assert "The model failed" in shown.status["no JSON"]


def test_probs_are_those_of_the_helpers():
    shown = NextToken(by_ids, WORDS, ["<start>"], ids=True)
    assert np.allclose(shown.probs, next_token_probs(LOGITS[0]))
    shown.tokens = ["win"]
    shown.temperature, shown.top_k, shown.top_p = 2.5, 4, 0.7
    assert np.allclose(shown.probs, next_token_probs(LOGITS[2], 2.5, 4, 0.7))
    shown = NextToken(after, VOCAB, ["love"], probabilities=True, top_k=1)
    assert shown.probs.tolist() == [0, 0, 0, 1, 0]


def test_seeds_are_scattered():
    states = [NextToken(by_ids, WORDS, ["you"], ids=True, seed=s).state for s in range(20)]
    assert len({state >> 27 for state in states}) > 8
    assert states[0] == NextToken(by_ids, WORDS, ["you"], ids=True).state


def test_an_end_that_is_no_token_does_not_matter():
    assert NextToken(after, VOCAB, ["I"], probabilities=True).end == ""
    assert NextToken(by_ids, WORDS, ["you"], ids=True).end == "<end>"


@pytest.mark.parametrize(
    "knob", [{"temperature": 0}, {"temperature": -1.0}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.1}]
)
def test_knobs_out_of_range(knob):
    ((name, value),) = knob.items()
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        NextToken(by_ids, WORDS, ["you"], ids=True, **knob)
    shown = NextToken(by_ids, WORDS, ["you"], ids=True)
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        setattr(shown, name, value)


BAD = {
    "shape": (lambda t: np.zeros(5), {}, r"step gave shape \(5,\), but must give \(6,\)"),
    "batch": (lambda t: np.zeros((2, 1, 6)), {}, r"shape \(2, 1, 6\)"),
    "empty": (lambda t: np.zeros((0, 6)), {}, r"shape \(0, 6\)"),
    "none": (lambda t: None, {}, r"shape \(\)"),
    "nan": (lambda t: np.full(6, np.nan), {}, "nan at"),
    "infinite": (lambda t: np.full(6, np.inf), {}, "inf at"),
    "crash": (lambda t: t[-1], {"prompt": []}, r"after the prompt \[\]: IndexError"),
    "share": (lambda t: np.full(6, 1 / 6), {}, "say so by probabilities=True"),
    "sum": (lambda t: np.full(6, 1 / 5), {"probabilities": True}, "sum 1.2000"),
    "negative": (lambda t: LOGITS[0], {"probabilities": True}, "probabilities are at least 0"),
    "unknown": (by_ids, {"prompt": ["lose"], "ids": True}, "'lose' is not among the 6"),
    "limit": (by_ids, {"max_tokens": 0}, "max_tokens is 0"),
    "twice": (by_ids, {"vocabulary": ["a", "b", "a"]}, "'a' twice"),
    "no token": (by_ids, {"vocabulary": []}, "0 tokens, but must have 1 to 4,096"),
    "many": (by_ids, {"vocabulary": [str(i) for i in range(4097)]}, "4,097 tokens"),
    "gap": (by_ids, {"vocabulary": {"a": 0, "b": 2}}, "ids that are not 0 … 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_a_reason(name):
    step, options, message = BAD[name]
    arguments = {"vocabulary": WORDS, "prompt": ["you"], "step": step} | options
    with pytest.raises(ValueError, match=message):
        NextToken(**arguments)


def test_a_string_is_no_list_of_tokens():
    with pytest.raises(TypeError, match="prompt is 'you win', but must be a list"):
        NextToken(by_ids, WORDS, "you win", ids=True)
    with pytest.raises(TypeError, match="vocabulary is 'abc', but must be a list"):
        NextToken(by_ids, "abc")
    with pytest.raises(TypeError, match="step is ndarray"):
        NextToken(TABLE, VOCAB, ["love"])
