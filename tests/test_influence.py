"""What a result depends on, said where no known mistake explains an answer."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers import attention, blocks
from workshop.checks import influence
from workshop.checks.judge import grade
from workshop.checks.sandbox import observe
from workshop.exercises import exercises


def no_projections(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    return x @ W_o


def mixes_sentences(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    return np.cumsum(x, axis=0) @ W_v @ W_o


def sees_the_future(y, memory, p):
    return y[:, ::-1].cumsum(axis=1)[:, ::-1] + memory.mean()


def norm_alone(x, p, mask=None):
    return blocks.layer_norm(x, *p["norm1"])


@pytest.mark.parametrize(
    "function, name, sentence",
    [
        (no_projections, "multi_head_attention", "The result does not depend on W_q."),
        (
            mixes_sentences,
            "multi_head_attention",
            "the result for sentence 1 must not change, but does.",
        ),
        (
            sees_the_future,
            "decoder_layer",
            "When the last token of y changes, the result for token 0 must not change, but does.",
        ),
        (norm_alone, "encoder_layer", "The result does not depend on W_k."),
    ],
)
def test_what_an_answer_depends_on_is_said(function, name, sentence):
    verdict = grade(function, name)
    assert verdict.mistake is None and sentence in verdict.message


def drops_always(Q, K):
    weights = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)
    return nn.functional.dropout(weights, 0.1)


def new_weights(X, W_q, W_k, W_v):
    return tuple(nn.Linear(*W.shape, dtype=X.dtype)(X) for W in (W_q, W_k, W_v))


@pytest.mark.parametrize(
    "function, name", [(drops_always, "attention_weights"), (new_weights, "project_qkv")]
)
def test_a_result_that_changes_from_call_to_call_is_told(function, name):
    verdict = grade(function, name)
    assert verdict.mistake is None and influence.CHANCE in verdict.message


def one_of_three(X, W_q, W_k, W_v):
    return np.sin(X @ W_q)


def test_one_array_in_place_of_three_of_different_widths_is_judged():
    assert grade(one_of_three, "project_qkv").status == "wrong"


def test_each_token_must_read_the_others():
    found = influence.effects(lambda Q, K, V: V, {"Q": np.eye(3), "K": np.eye(3), "V": np.eye(3)})
    assert found["last of V"].tolist() == [False, False, True] and not found["all of Q"]
    named = dict.fromkeys("QKV", np.eye(3))
    assert influence.effects(attention.attention, named)["last of V"].all()


@pytest.mark.parametrize("name", exercises())
def test_the_reference_depends_on_what_it_must(name, monkeypatch):
    monkeypatch.setattr(influence, "observe_apart", lambda *call: list(observe(*call)))
    known = exercises()[name]
    if "numpy" in known.backends:
        for probe in known.probes:
            if probe.args:
                assert influence.findings(known.reference, known, probe, "numpy") == []
