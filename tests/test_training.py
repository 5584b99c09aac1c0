"""helpers.training: grammar, batches, fit by its recipe, translations.

What `train` and `evaluate` compute is held equal to the lesson's own in `test_lessons.py`.
"""

import copy
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from helpers import training
from helpers.decoding import cross_entropy
from helpers.training import Recipe, examples, fit, grammar, mean_loss, translate, translator
from helpers.training.ablations import course_corpus


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def both():
    """The sentences of notebook 13."""
    return course_corpus()


@pytest.fixture(scope="module")
def vocabs(both):
    return training.vocabularies(both[0])


@pytest.fixture
def small(both, vocabs):
    """A translator with dropout, and forty pairs."""
    torch.manual_seed(3)
    return translator(*vocabs, dropout=0.2), examples(both[0][:40], *vocabs)


def test_the_corpus_holds_combinations_out_and_no_sentence_comes_twice(both):
    assert len({pair.english for pair in both[0] + both[1]}) == sum(map(len, both)) == 13_000
    known, other = (frozenset().union(*(p.combinations for p in pairs)) for pairs in both)
    assert all(pair.combinations - known for pair in both[1]) and len(both[1]) > 1_000
    assert Counter(noun for noun, _ in other - known) == {n.english: 1 for n in grammar.NOUNS}


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


BY_HAND = """these white castles are old = ces châteaux blancs sont vieux
an old mouse is green = une vieille souris est verte
my green rabbit sees two beautiful hats = mon lapin vert voit deux beaux chapeaux
two new strange cows follow two hens = deux nouvelles vaches étranges suivent deux poules
two white mice watch this old red tiger = deux souris blanches regardent ce vieux tigre rouge
my new grey dog paints the beautiful boats = mon nouveau chien gris peint les beaux bateaux
a big hen is red = une grande poule est rouge
the strange goats paint this house = les chèvres étranges peignent cette maison"""


def test_the_french_is_right(both):
    """Every form that is used, and sentences that were translated by hand."""
    assert {word for pair in both[0] for word in pair.french.split()} == set(FRENCH.split())
    said = {f"{pair.english} = {pair.french}" for pair in both[0] + both[1]}
    assert said >= set(BY_HAND.splitlines())


def test_pairs_and_masks_of_tensors_are_those_of_arrays():
    ids = np.array([[5, 6, 7], [5, 0, 0]])
    for make in (training.lm_pairs, partial(training.combined_mask, pad_id=0)):
        for of_tensors, of_arrays in zip(make(torch.from_numpy(ids)), make(ids), strict=True):
            np.testing.assert_array_equal(of_tensors, of_arrays)


def test_examples_shift_the_targets_and_pad(both, vocabs):
    pairs = [min(both[0], key=lambda p: len(p.english)), max(both[0], key=lambda p: len(p.english))]
    english, french = vocabs
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


@pytest.fixture(scope="module")
def trained(both, vocabs):
    """The translator of notebook 13, trained as there, and its losses."""
    torch.manual_seed(0)
    model = translator(*vocabs)
    return model, fit(model, examples(both[0], *vocabs), generator())


@pytest.mark.slow
def test_translates_sentences_that_it_never_saw(both, vocabs, trained):
    model, losses = trained
    assert training.exact_match(model, both[1], *vocabs) >= 0.99 and len(losses) == 400


@pytest.mark.slow
def test_batches_and_padding_do_not_change_a_translation(both, vocabs, trained, monkeypatch):
    model, pairs = trained[0], both[1][:40]
    sentences = [pair.english for pair in pairs]
    together = translate(model, sentences, *vocabs)
    assert together == [translate(model, [sentence], *vocabs)[0] for sentence in sentences]
    assert together == translate(model, sentences, *vocabs, cached=False)
    monkeypatch.setattr("helpers.training.translating.TOGETHER", 7)
    assert together == translate(model, sentences, *vocabs)
    loss, data = mean_loss(model, pairs, *vocabs), examples(pairs, *vocabs)
    with torch.no_grad():
        assert loss == pytest.approx(training.translation_loss(model, data).item(), rel=1e-5)
        logits = model(data.source, data.inputs).numpy()
    assert loss == pytest.approx(cross_entropy(logits, data.targets.numpy(), 0), rel=1e-5)


QUICK = Recipe(steps=12, batch_size=16, warm_up=3)


def words(ids):
    """The ids of each row without its padding."""
    return [[i for i in row if i] for row in ids.tolist()]


def test_fit_depends_on_its_generator_alone(small):
    """Not on what else drew random numbers, nor does it disturb them; the mode stays.

    And each epoch reads every pair once, in a new order.
    """
    model, data = small
    losses, read = [], []
    for seed, mode in ((5, True), (5, False), (6, False)):
        copied = copy.deepcopy(model).train(mode)
        copied.register_forward_pre_hook(lambda _, args: read.extend(words(args[1])))
        torch.manual_seed(seed + mode)
        before = torch.get_rng_state()
        losses.append(fit(copied, data, generator(seed), QUICK._replace(batch_size=8)))
        assert torch.equal(before, torch.get_rng_state()) and copied.training is mode
    assert losses[0] == losses[1] != losses[2]
    every = words(data.inputs)
    first, second = read[:40], read[40:80]
    assert sorted(first) == sorted(second) == sorted(every) and first != second != every != first


@pytest.mark.parametrize(
    ("recipe", "optimizer", "settings"),
    [
        (Recipe(), torch.optim.Adam, {"betas": (0.9, 0.98)}),
        (Recipe(momentum=0.9, clip=0.5), torch.optim.SGD, {"momentum": 0.9}),
        (Recipe(pairs=7, weight_decay=9), torch.optim.AdamW,
         {"betas": (0.9, 0.98), "weight_decay": 9}),
    ],
)  # fmt: skip
def test_fit_takes_the_steps_of_its_recipe(both, vocabs, recipe, optimizer, settings):
    """All its pairs in each batch, so that their order does not matter."""
    model, data = translator(*vocabs).double(), examples(both[0][:12], *vocabs)
    other, batch, losses = copy.deepcopy(model), data.pick(slice(recipe.pairs), 0), []
    optimizer = optimizer(other.parameters(), **settings)
    for rate in (0.001, 0.002, 0.003, 0.002, 0.001):
        optimizer.param_groups[0]["lr"] = rate
        logp = other(batch.source, batch.inputs).log_softmax(dim=-1)
        right = logp.gather(-1, batch.targets[..., None])[..., 0]
        per_token = -0.9 * right - 0.1 * logp.mean(dim=-1)  # label smoothing
        losses.append(per_token[batch.targets != 0].mean())
        optimizer.zero_grad()
        losses[-1].backward()
        nn.utils.clip_grad_norm_(other.parameters(), recipe.clip)
        optimizer.step()
    recipe = recipe._replace(steps=5, warm_up=3, batch_size=len(batch.source))
    assert fit(model, data, generator(), recipe) == pytest.approx([x.item() for x in losses])


def test_how_the_learning_rate_of_a_recipe_falls():
    line, flat, cosine = (Recipe(schedule=name) for name in ("line", "flat", "cosine"))
    assert line.rate(50) == flat.rate(50) == cosine.rate(50) == pytest.approx(1.5e-3)
    assert line.rate(400) == pytest.approx(3e-3 / 301) and line.rate(401) == cosine.rate(401) == 0
    assert flat.rate(400) == flat.rate(100) == pytest.approx(3e-3)
    assert cosine.rate(175) > line.rate(175) and cosine.rate(350) < line.rate(350) < 1e-3


def test_bad_input_is_named(both, vocabs, small):
    model, rng = small[0], np.random.default_rng(0)
    purple = both[0][0]._replace(english="a purple cat")
    calls = [
        (lambda: training.corpus(0, rng), "size is 0, but must be from 1"),
        (lambda: training.split(both[0], rng, 8), "per_noun is 8, but .* 1 to 7"),
        (lambda: training.lm_pairs(np.array([[3], [4]])), r"ids has shape \(2, 1\), .* \(…, T\)"),
        (lambda: training.combined_mask(np.array([3]), 0), r"ids has shape \(1,\), .* \(B, T\)"),
        (lambda: training.train(nn.Embedding(5, 5), [], 0), "lr is 0, but must be positive"),
        (lambda: training.evaluate(nn.Embedding(5, 5), []), "batches is empty"),
        (lambda: examples([], *vocabs), "sentences is empty"),
        (lambda: translate(model, [], *vocabs), "no sentence"),
        (lambda: training.exact_match(model, [purple], *vocabs), "'purple'"),
    ]
    recipes = [
        ({"steps": 0}, "steps is 0, but must be at least 1"),
        ({"batch_size": 41}, "batch_size is 41, but must be from 1 to 40, the pairs of data"),
        ({"pairs": 15}, "batch_size is 16, but must be from 1 to 15"),
        ({"warm_up": 13}, "warm_up is 13, but must be from 1 to steps = 12"),
        ({"schedule": "log"}, "schedule is 'log', but must be line, cosine or flat"),
        ({"peak": float("nan")}, "peak is nan, but must be positive and finite"),
        ({"label_smoothing": 1.0}, r"label_smoothing is 1.0, but must be in \[0, 1\)"),
    ]
    for changes, message in recipes:
        calls.append((partial(fit, *small, generator(), QUICK._replace(**changes)), message))
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
