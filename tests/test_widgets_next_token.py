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
from workshop.widgets.next_token import NextToken

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


@pytest.mark.parametrize("prompt", [["you"], ["grapes"], ["I", "love"]])
def test_it_has_a_view_a_picture_and_its_words(prompt):
    shown = NextToken(after, VOCAB, prompt, probabilities=True, temperature=0.5)
    data, metadata = shown._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == shown.model_id
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(shown)
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert picture.width >= metadata["image/png"]["width"] > 200
    assert repr(shown).startswith(f'NextToken: 5 tokens; after "{" ".join(prompt)}": ')
    wanted = {"you": '"love" 1.00; the likeliest each time: "love oranges"', "grapes": "nothing",
              "love": '"oranges" 0.80, "grapes" 0.20'}  # fmt: skip
    assert wanted[prompt[-1]] in repr(shown)


def test_zeros_become_minus_infinity():
    logits = saved(NextToken(after, VOCAB, ["love"], probabilities=True))["[]"]
    assert np.allclose(np.exp(logits), TABLE[2]) and np.isneginf(logits[:3]).all()
    nothing = NextToken(after, VOCAB, ["grapes"], probabilities=True)
    assert np.isneginf(saved(nothing)["[]"]).all() and not nothing.probs.any()


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


@pytest.mark.parametrize("shape", [(6,), (1, 6), (4, 6), (1, 4, 6)])
def test_the_last_row_counts(shape):
    result = RNG.normal(size=shape)
    for given in (result, torch.tensor(result, requires_grad=True), result.tolist()):
        shown = NextToken(lambda tokens, given=given: given, WORDS)
        assert np.allclose(saved(shown)["[]"], result.reshape(-1, 6)[-1])


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


def test_python_answers_for_exactly_these_tokens_and_a_failure_is_one_line_of_words():
    ids = {word: i for i, word in reversed(list(enumerate(WORDS)))}  # in any order
    before, after_it, logits = ask(NextToken(by_ids, ids, ["<start>"], ids=True), ["die", "or"])
    assert before == {'["die","or"]': "The model computes …"}
    assert after_it == {} and np.allclose(logits, LOGITS[3])

    def late(tokens):
        if len(tokens) > 1:
            raise RuntimeError("two\nlines" + 1000 * "!")
        return LOGITS[0]

    shown = NextToken(late, WORDS, ["you"])
    _, status, logits = ask(shown, ["win"])
    text = status['["win"]']
    assert text.startswith("The model failed. RuntimeError: two⏎lines!") and len(text) < 350
    assert logits is None and list(shown.arrays) == ["[]"]
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


BAD = [
    (lambda t: np.zeros(5), {}, r"step gave shape \(5,\), but must give \(6,\)"),
    (lambda t: np.zeros((2, 1, 6)), {}, r"shape \(2, 1, 6\)"),
    (lambda t: None, {}, r"shape \(\)"),
    (lambda t: np.full(6, np.nan), {}, "nan at"),
    (lambda t: t[-1], {"prompt": []}, r"after the prompt \[\]: IndexError"),
    (lambda t: np.full(6, 1 / 6), {}, "say so by probabilities=True"),
    (lambda t: np.full(6, 1 / 5), {"probabilities": True}, "sum 1.2000"),
    (lambda t: LOGITS[0], {"probabilities": True}, "probabilities are at least 0"),
    (by_ids, {"prompt": ["lose"], "ids": True}, "'lose' is not among the 6"),
    (by_ids, {"vocabulary": ["a", "b", "a"]}, "'a' twice"),
    (by_ids, {"vocabulary": [str(i) for i in range(4097)]}, "4,097 tokens"),
    (by_ids, {"vocabulary": {"a": 0, "b": 2}}, "ids that are not 0 … 1"),
]


@pytest.mark.parametrize(("step", "options", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input_is_refused_with_a_reason(step, options, message):
    with pytest.raises(ValueError, match=message):
        NextToken(**{"vocabulary": WORDS, "prompt": ["you"], "step": step} | options)
