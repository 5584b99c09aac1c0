"""What is said where no slip and no single change explains an answer."""

import pytest
from answers import written

from workshop.checks import clues
from workshop.checks.judge import grade
from workshop.checks.sandbox import observe
from workshop.exercises import exercises, find

MIXED = "np.tanh(K.mean(axis=-2, keepdims=True)"
LOOP = "out = np.zeros((len(x), len(bias))) ⏎ for i in range(len(x)): ⏎     "
SAID = [  # an answer, and what is said of it
    ("attention", f"return {MIXED} @ np.swapaxes(K, -1, -2)) @ V + 0", "`Q` is never used."),
    ("attention", "s = Q @ np.swapaxes(K, -1, -2) ⏎ return V.mean(axis=-2, keepdims=True) + 9",
     "`s` is computed, and never used."),
    ("linear", f"{LOOP}out[i] = weight @ x[i] + bias ⏎ return out",
     f"2 axes, wrong for 1 or 3: axes in front must stay.{clues.FROM_THE_END}"),
    ("project_qkv", "D = X.shape[-1] ⏎ x = X.reshape(-1, D) ⏎ return x @ W_q, x @ W_k, x @ W_v",
     "2 axes, wrong for 3 or 4: axes in front must stay. A batch"),
    ("patch_layer", "ids[:, place] = other[:, place] ⏎ return model(ids)",
     "does not: ids, and `other`, stay as they are."),
    ("project_qkv", "W = np.concatenate([W_q, W_k, W_v], axis=1) ⏎ "
     "return tuple(np.split(X @ W, 3, axis=-1))", clues.EQUAL),
    ("softmax", "return x + np.random.normal(size=x.shape)", clues.CHANCE),
    ("softmax_row", "KEPT.append(1) ⏎ return scores * len(KEPT)", clues.CHANCE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "said"), SAID)
def test_what_may_be_wrong_is_said(name, text, said):
    answer = written(name, text)
    answer.__globals__["KEPT"] = []
    verdict = grade(answer, name)
    assert (verdict.mistake, verdict.repair) == (None, None) and said in verdict.message


@pytest.mark.parametrize("name", exercises())
def test_nothing_is_said_of_a_solution(name, monkeypatch):
    monkeypatch.setattr(clues, "observe_apart", lambda *call: [*observe(*call)])
    known = find(name)
    assert clues.unused(known.tree, known) == []
    assert not clues.by_chance(known.reference, known, known.backends[0])
