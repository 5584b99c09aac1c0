"""Why this word: parts that add up, cuts, the way back; by hooks and by the program alike."""

import numpy as np
import pytest
import torch
from small_models import CASES, PRE, drawn

from helpers.inside import contributions, sweep
from helpers.models import DecoderOnly, Transformer
from workshop.machine.program import run
from workshop.machine.why import EVERY, Why
from workshop.machine.why import contributions as of_program

SPEAKERS = ["gpt", "tied, post-norm", "one head, no bias", "transformer", "pre-norm transformer",
            "notebook 12", "llama", "qwen", "mixtral", "attention only"]  # fmt: skip
MODELS = {name: CASES[name] for name in SPEAKERS} | {
    "deep": lambda: drawn(31, DecoderOnly(11, 9, 8, 2, 12, 4, **PRE), 11),
    "deep, post-norm": lambda: drawn(32, DecoderOnly(11, 9, 8, 4, 12, 3, activation="silu"), 11),
    "deep transformer": lambda: drawn(33, Transformer(9, 11, 8, 2, 12, 3), 9, 11),
    "deep pre-norm transformer": lambda: drawn(34, Transformer(9, 9, 8, 4, 12, 2, **PRE), 9, 9),
    "rms": lambda: drawn(35, DecoderOnly(11, 9, 8, 2, 12, 2, pre_norm=True, rms_norm=True), 11),
    "post rms": lambda: drawn(36, DecoderOnly(11, 9, 8, 2, 12, 2, rms_norm=True), 11),
    "gated": lambda: drawn(37, DecoderOnly(11, 9, 8, 2, 12, 2, gated=True, **PRE), 11),
    "experts": lambda: drawn(38, DecoderOnly(11, 9, 8, 2, 6, 2, num_experts=4, **PRE), 11),
    "rope": lambda: drawn(39, DecoderOnly(11, 9, 8, 2, 12, 2, rope=50.0), 11),
    "groups": lambda: drawn(40, DecoderOnly(11, 9, 8, 4, 12, 2, num_kv_heads=2), 11),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    return MODELS[request.param]()


def sentences(case, seed: int, count: int = 5) -> list[dict[str, list[int]]]:
    """Other texts of three to five words that a model can read."""
    rng, p = np.random.default_rng(seed), case.program()
    sizes = {o.rows: len(p.weights[o.weights[0]]) for o in p.operations.values()
             if o.kind == "embed"}  # fmt: skip
    return [{of: rng.integers(1, size, rng.integers(3, 6)).tolist() for of, size in sizes.items()}
            for _ in range(count)]  # fmt: skip


@pytest.mark.parametrize("rival", [None, 5])
def test_contributions_add_up_and_are_those_of_hooks(case, rival):
    """20 random models × 5 sentences: to the logit, or to the lead, within 1e-4."""
    for texts in sentences(case, seed=1):
        asked = Why(case.program(), texts, 2, rival)
        logits = asked.values[asked.logits][-1]
        adds = {part.at: part.adds for part in asked.parts}
        np.testing.assert_allclose(sum(adds.values()), logits[2] - (logits[5] if rival else 0),
                                   atol=1e-4)  # fmt: skip
        theirs = contributions(case.model, texts, 2, rival)
        assert [*theirs.values()] == sorted(theirs.values(), key=abs, reverse=True)
        assert set(adds) == set(theirs) and (EVERY in adds) == (rival is None)
        for at, x in adds.items():
            assert theirs[at] == pytest.approx(x, abs=1e-4), at
        assert not any(at.startswith("encoder/") for at in adds)


def test_a_model_without_words_is_asked_for_a_direction():
    """BERT's vectors: the same parts, of tables that are read without calling them."""
    case = CASES["sentences"]()
    p, texts = case.program(), case.texts()
    name = p.operations["mean"].inputs[0]
    values, direction = run(p, texts), np.random.default_rng(0).normal(size=6)
    g = np.zeros(values[name].shape)
    g[1] = direction
    adds = {part.at: part.adds for part in of_program(p, values, name, g)}
    theirs = contributions(case.model, texts, torch.from_numpy(direction), row=1)
    assert theirs == pytest.approx(adds) and {"x", "positions", "segment"} <= set(adds)
    assert sum(adds.values()) == pytest.approx(values[name][1] @ direction)


@pytest.mark.parametrize("mean", [True, False])
def test_every_cut_is_that_of_hooks(case, mean):
    texts, *others = sentences(case, seed=2, count=4)
    others = others if mean else []
    asked = Why(case.program(), texts, 2, 5, others=others)
    theirs = sweep(case.model, texts, 2, 5, others=others)
    assert theirs.pop("") == pytest.approx(asked.now[:2], abs=1e-4)
    newest = [at for at in theirs if at not in asked.sweep]
    assert all(theirs[at] == pytest.approx(asked.now[:2], abs=1e-4) for at in newest)
    for at, said in asked.sweep.items():
        assert theirs[at] == pytest.approx(said[:2], abs=1e-4), at
    assert max(abs(asked.lost(said)) for said in asked.sweep.values()) > 1e-3
