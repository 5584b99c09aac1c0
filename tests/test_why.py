"""Why this word: parts that add up, cuts, the way back; by hooks and by the program alike."""

import numpy as np
import pytest
import torch
from small_models import CASES, PRE, drawn

from helpers.inside import contributions, sweep
from helpers.models import DecoderOnly, Transformer
from workshop.machine.machine import Machine
from workshop.machine.program import run
from workshop.machine.told import MINUS
from workshop.machine.why import EVERY, Why
from workshop.machine.why import contributions as of_program

SPEAKERS = ["gpt", "tied, post-norm", "one head, no bias", "transformer", "pre-norm transformer",
            "notebook 12", "llama", "qwen", "mixtral", "attention only", "sinks",
            "latent"]  # fmt: skip
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


# ---------------------------------------------------------------- the machine's answer

WORDS = "the cow dog green sees my frog".split()
FRENCH = ["<start>", "vache", "chien", "verte", "vert", "<end>"]


@pytest.fixture(scope="module")
def asked():
    """A translator whose random weights are so large that there is a way back."""
    torch.manual_seed(12)
    model = Transformer(7, 6, 8, 2, 16, 1, max_len=12).eval()
    for parameter in (p for p in model.parameters() if p.ndim > 1):
        torch.nn.init.normal_(parameter, std=0.5)
    return Machine(model, "my green cow", (WORDS, FRENCH), written="<start> vache")


def test_every_step_has_the_figures_of_a_run_and_loses_a_tenth(asked):
    """A link is cut for its asker alone; each figure is that of the model with these changes."""
    for rival in (None, "<end>"):
        why = asked.why("verte", rather_than=rival).why
        assert [step.kind for step in why.steps] == ["read", "had read", "as key"]
        first = why.steps[0]
        a = next(a for a in why.attentions if first.at.startswith(a.at))
        heads = [first.at] if first.heads == 1 else a.heads
        asked.changes = why.unlinked(a, first.asker[1], first.word[1], heads)
        logits = asked.values[why.logits][-1]
        assert why.said(asked.values) == pytest.approx(first.after)
        assert first.after.likeliest == logits.argmax()
        asked.put_back()
        assert all(why.lost(step.after) >= 0.1 for step in why.steps if step.kind != "together")


def test_the_answer_is_a_table_and_sentences(asked):
    answer = asked.why("verte", rather_than="<end>")
    logits = dict(zip(FRENCH, asked.values["decoder/logits"][-1], strict=True))
    lead = logits["verte"] - logits["<end>"]
    assert sum(answer.contributions.values()) == pytest.approx(lead)
    said = answer.without["decoder/layer 1/feed-forward"]
    asked.intervene("decoder/layer 1/feed-forward", off=True)
    assert asked.output["verte"] != pytest.approx(said.probability)  # the mean is no zero
    asked.put_back()
    text = repr(answer)
    assert f"add up to the lead, {lead:.2f}" in text and "had read “" in text
    assert "decoder/layer 1/cross-attention/word 1 “my”" in text
    assert len(answer.sentences) == 3
    told = [asked.why("verte", rival) for rival in ("<start>", "vert", "<end>", "chien")]
    minus = [MINUS in answer.way_back for answer in told]
    leads = [[step.after.lead for step in answer.why.steps] for answer in told]
    assert minus == [min(some, default=0) < 0 for some in leads] and {*minus} == {True, False}


@pytest.mark.parametrize(("ask", "said"), [
    (lambda m: m.why("nope"), "word is 'nope', but must be one that the model can say"),
    (lambda m: m.why("verte", rather_than="cow"), "rather_than is 'cow', but must be"),
    (lambda m: setattr(m, "asked", ["nope"]), "asked is 'nope', but must be"),
    (lambda m: setattr(m, "asked", ["vert", "", "x"]), "must be a word and its rival"),
    (lambda m: contributions(CASES["gpt"]().model, [1, 2], 99), "word is 99, but must be an id"),
])  # fmt: skip
def test_what_cannot_be_asked_is_named(asked, ask, said):
    with pytest.raises(ValueError, match=said):
        ask(asked)
