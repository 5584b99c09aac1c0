"""helpers.training: grammar, batches, the contract of `train` and `evaluate`, fit, translations."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers.decoding import cross_entropy
from helpers.training import (
    Pair,
    combined_mask,
    corpus,
    evaluate,
    exact_match,
    examples,
    fit,
    grammar,
    lm_pairs,
    mean_loss,
    split,
    train,
    translate,
    translation_loss,
    translator,
    vocabularies,
)
from helpers.training.ablations import course_corpus, read_table


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def both() -> tuple[list[Pair], list[Pair]]:
    """The sentences of notebook 13."""
    return course_corpus()


def test_the_corpus_is_large_and_no_sentence_comes_twice(both):
    training, held_out = both
    english = {pair.english for pair in training + held_out}
    assert len(english) == len(training) + len(held_out) == 13_000
    assert len(training) > 10_000 and len(held_out) > 1_000


def test_held_out_combinations_are_never_in_training(both):
    training, held_out = both
    known = frozenset().union(*(pair.combinations for pair in training))
    assert all(pair.combinations - known for pair in held_out)
    unseen = frozenset().union(*(pair.combinations for pair in held_out)) - known
    assert Counter(noun for noun, _ in unseen) == {noun.english: 1 for noun in grammar.NOUNS}


FRENCH = """
    le la les un une ce cette ces mon ma mes deux est sont
    voit voient aime aiment trouve trouvent veut veulent peint peignent suit suivent
    regarde regardent cherche cherchent
    chat chats chien chiens lapin lapins tigre tigres canard canards souris vache vaches
    chèvre chèvres poule poules grenouille grenouilles livre livres bateau bateaux chapeau
    chapeaux jardin jardins château châteaux maison maisons voiture voitures fleur fleurs table
    tables porte portes
    petit petite petits petites grand grande grands grandes joli jolie jolis jolies
    vieux vieille vieilles nouveau nouvelle nouveaux nouvelles beau belle beaux belles
    noir noire noirs noires blanc blanche blancs blanches rouge rouges vert verte verts vertes
    bleu bleue bleus bleues gris grise grises rond ronde ronds rondes étrange étranges"""


def test_every_french_form_is_right_and_used(both):
    said = {word for pair in both[0] for word in pair.french.split()}
    assert said == set(FRENCH.split())


BY_HAND = """
    these white castles are old = ces châteaux blancs sont vieux
    an old mouse is green = une vieille souris est verte
    my green rabbit sees two beautiful hats = mon lapin vert voit deux beaux chapeaux
    two new strange cows follow two hens = deux nouvelles vaches étranges suivent deux poules
    two white mice watch this old red tiger = deux souris blanches regardent ce vieux tigre rouge
    my new grey dog paints the beautiful boats = mon nouveau chien gris peint les beaux bateaux
    a big hen is red = une grande poule est rouge
    the strange goats paint this house = les chèvres étranges peignent cette maison"""


@pytest.mark.parametrize("line", BY_HAND.strip().splitlines())
def test_sentences_that_were_translated_by_hand(both, line):
    english, french = line.strip().split(" = ")
    assert {pair.english: pair.french for pair in both[0] + both[1]}[english] == french


def test_pairs_and_masks_of_arrays_and_tensors():
    ids = np.array([[5, 6, 7], [5, 0, 0]])
    expected = [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]], [[[1, 0, 0], [1, 0, 0], [1, 0, 0]]]]
    for given in (ids, torch.from_numpy(ids)):
        mask, (inputs, targets) = combined_mask(given, pad_id=0), lm_pairs(given)
        assert type(mask) is type(inputs) is type(given) and mask.shape == (2, 1, 3, 3)
        np.testing.assert_array_equal(np.asarray(mask), np.array(expected, dtype=bool))
        assert inputs.tolist() == [[5, 6], [5, 0]] and targets.tolist() == [[6, 7], [0, 0]]


def test_examples_shift_the_targets_and_pad(both):
    pairs = [min(both[0], key=lambda p: len(p.english)), max(both[0], key=lambda p: len(p.english))]
    english, french = vocabularies(both[0])
    assert list(english)[:3] == list(french)[:3] == ["<pad>", "<start>", "<end>"]
    data = examples(pairs, english, french)
    names = {i: word for word, i in french.items()}
    for pair, inputs, targets in zip(pairs, data.inputs, data.targets, strict=True):
        padding = ["<pad>"] * (len(targets) - len(pair.french.split()) - 1)
        assert [names[int(i)] for i in targets] == [*pair.french.split(), "<end>", *padding]
        assert [names[int(i)] for i in inputs] == ["<start>", *pair.french.split(), *padding]
    short = data.pick(torch.tensor([0]), pad_id=0)
    assert short.targets.shape == (1, len(pairs[0].french.split()) + 1)
    assert torch.equal(short.source[0], data.source[0, : len(pairs[0].english.split())])


class Bigram(nn.Module):
    """The smallest language model, with dropout so that the modes differ."""

    def __init__(self, vocab_size: int = 5) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)
        self.dropout = nn.Dropout(0.5)
        self.modes: list[bool] = []

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.modes.append(self.training)
        return self.dropout(self.table(ids))


def some_batches(sizes: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    ids = [torch.randint(5, (B, 4), generator=generator(B)) for B in sizes]
    return [lm_pairs(batch) for batch in ids]


def test_train_takes_the_steps_of_sgd_with_momentum():
    torch.manual_seed(0)
    model = Bigram()
    model.dropout.p = 0.0
    table, speed, expected = model.table.weight.detach().clone(), 0.0, []
    batches = some_batches([3, 2, 4])
    for x, y in batches:
        leaf = table.clone().requires_grad_()
        loss = F.cross_entropy(leaf[x].reshape(-1, 5), y.reshape(-1))
        loss.backward()
        speed = 0.9 * speed + leaf.grad
        table = table - 0.1 * speed
        expected.append(loss.item())
    assert train(model.eval(), batches, lr=0.1) == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(model.table.weight.data, table)
    assert model.modes == [True, True, True]


def test_evaluate_weighs_tokens_alike_and_leaves_no_trace():
    torch.manual_seed(0)
    model = Bigram().train()
    batches = some_batches([1, 6])
    logits = np.concatenate([model.table(x).detach().numpy() for x, _ in batches])
    targets = np.concatenate([y.numpy() for _, y in batches])
    assert evaluate(model, batches) == pytest.approx(cross_entropy(logits, targets, -1), rel=1e-6)
    assert model.training and model.dropout.training and model.modes == [False, False]
    assert model.table.weight.grad is None
    model.dropout.eval()
    evaluate(model.train(False), batches)
    assert not model.training


@pytest.fixture(scope="module")
def trained(both):
    """The translator of notebook 13, trained as there, with its vocabularies."""
    vocabs = vocabularies(both[0])
    torch.manual_seed(0)
    model = translator(*vocabs)
    history = fit(model, examples(both[0], *vocabs), generator(0), shown=False)
    return model, vocabs, history


@pytest.mark.slow
def test_translates_sentences_that_it_never_saw(both, trained):
    """And the first line of the ablation table is that of this training."""
    model, vocabs, history = trained
    match = exact_match(model, both[1], *vocabs)
    assert match >= 0.99 and len(history.losses) == 400 and not history.interrupted
    stored = next(r for r in read_table() if (r.name, r.seed) == ("full model", 0))
    assert match == pytest.approx(stored.exact_match, abs=0.005)
    assert mean_loss(model, both[1], *vocabs) == pytest.approx(stored.loss, abs=0.005)


@pytest.mark.slow
def test_batches_and_padding_do_not_change_a_translation(both, trained, monkeypatch):
    model, vocabs, _ = trained
    sentences = [pair.english for pair in both[1][:40]]
    together = translate(model, sentences, *vocabs)
    assert together == [translate(model, [sentence], *vocabs)[0] for sentence in sentences]
    assert together == translate(model, sentences, *vocabs, cached=False)
    monkeypatch.setattr("helpers.training.translating.TOGETHER", 7)
    assert together == translate(model, sentences, *vocabs)
    loss = mean_loss(model, both[1][:40], *vocabs)
    data = examples(both[1][:40], *vocabs)
    with torch.no_grad():
        assert loss == pytest.approx(translation_loss(model, data).item(), rel=1e-5)
        logits = model(data.source, data.inputs).numpy()
    assert loss == pytest.approx(cross_entropy(logits, data.targets.numpy(), 0), rel=1e-5)


def test_label_smoothing_shares_out_some_of_the_target(both):
    vocabs = vocabularies(both[0])
    model, data = translator(*vocabs), examples(both[0][:5], *vocabs)
    logp = model(data.source, data.inputs).log_softmax(dim=-1)
    right = logp.gather(-1, data.targets[..., None])[..., 0]
    per_token = -0.9 * right - 0.1 * logp.mean(dim=-1)
    torch.testing.assert_close(
        translation_loss(model, data, 0.1), per_token[data.targets != 0].mean()
    )


def test_fit_depends_on_its_generator_alone(small):
    """Not on what else drew random numbers, nor does it disturb them; the mode stays."""
    model, data = small
    losses = []
    for seed, mode in ((5, True), (5, False), (6, False)):
        copied = copy.deepcopy(model).train(mode)
        torch.manual_seed(seed + mode)
        before = torch.get_rng_state()
        losses.append(fit(copied, data, generator(seed), **QUICK).losses)
        assert torch.equal(before, torch.get_rng_state()) and copied.training is mode
    assert losses[0] == losses[1] != losses[2]


QUICK = {"steps": 12, "batch_size": 16, "warm_up": 3, "shown": False}


@pytest.fixture
def small(both):
    """A translator with dropout, and forty pairs."""
    vocabs = vocabularies(both[0])
    torch.manual_seed(3)
    return translator(*vocabs, dropout=0.2), examples(both[0][:40], *vocabs)


def test_each_epoch_reads_every_pair_once(small):
    model, data = small
    read = []
    hook = model.register_forward_pre_hook(lambda _, args: read.extend(args[1].tolist()))
    fit(model, data, generator(), **QUICK | {"steps": 5, "batch_size": 8})
    hook.remove()
    sentences = sorted(str([i for i in row if i]) for row in read)
    assert sentences == sorted(str([i for i in row if i]) for row in data.inputs.tolist())
    assert [str(row) for row in read] != [str(row) for row in data.inputs.tolist()]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps is 0, but must be at least 1"),
        ({"batch_size": 41}, "batch_size is 41, but data has 40 pairs"),
        ({"warm_up": 13}, "warm_up is 13, but must be at most steps = 12"),
        ({"every": 0}, "every is 0"),
        ({"peak": float("nan")}, "peak is nan, but must be positive"),
        ({"label_smoothing": 1.0}, r"label_smoothing is 1.0, but must be in \[0, 1\)"),
    ],
)
def test_settings_out_of_range_are_named(small, settings, message):
    with pytest.raises(ValueError, match=message):
        fit(*small, generator(), **QUICK | settings)


def test_bad_input_is_named(both):
    english, french = vocabularies(both[0])
    untrained = translator(english, french)
    purple = both[0][0]._replace(english="a purple cat")
    cases = [
        (lambda: corpus(0, np.random.default_rng(0)), "size is 0, but must be from 1"),
        (lambda: split(both[0], np.random.default_rng(0), 8), "per_noun is 8, but .* 1 to 7"),
        (lambda: lm_pairs(np.array([[3], [4]])), r"ids has shape \(2, 1\), but must be \(…, T\)"),
        (lambda: combined_mask(np.array([3, 4]), 0), r"ids has shape \(2,\), but must be \(B, T\)"),
        (lambda: train(Bigram(), [], 0), "lr is 0, but must be positive"),
        (lambda: evaluate(Bigram(), []), "batches is empty"),
        (lambda: examples([], english, french), "sentences is empty"),
        (lambda: translate(untrained, [], english, french), "no sentence"),
        (lambda: exact_match(untrained, [purple], english, french), "'purple'"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_the_bar_goes_and_one_line_stays(small, capsys):
    fit(*small, generator(), **QUICK | {"shown": True})
    out, err = capsys.readouterr()
    assert err == "" and out.endswith("\r12 of 12 steps.\n") and "steps/s" in out
    fit(*small, generator(), **QUICK)
    assert capsys.readouterr().out == ""
