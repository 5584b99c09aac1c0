"""Exercises that train a model: where their answers run, that they end, and what is right."""

import copy
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import training
from workshop import mine
from workshop.checks import grade, sandbox
from workshop.checks.judge import RIGHT, WRONG
from workshop.exercises import exercises, find
from workshop.exercises.n13_batches import combined_mask, lm_pairs, smoothed_loss
from workshop.exercises.n13_measuring import evaluate
from workshop.exercises.n13_training import train

pytestmark = pytest.mark.slow

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere without a fork")
HELPERS = {name: getattr(training, name) for name in ("lm_pairs", "combined_mask", "train")}
HELPERS["evaluate"] = training.evaluate


# ---------------------------------------------------------------- the references


@pytest.mark.parametrize("name", HELPERS)
def test_the_helper_passes_its_own_check(name):
    verdict = grade(HELPERS[name], name)
    assert verdict.status == RIGHT, verdict.message


def network(seed):
    """A model with dropout, norm and a vocabulary of 11."""
    torch.manual_seed(seed)
    parts = nn.Embedding(11, 8), nn.Dropout(0.3), nn.Linear(8, 8), nn.LayerNorm(8)
    return nn.Sequential(*parts, nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 11))


def batches(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [tuple(torch.randint(11, (2, *shape), generator=generator)) for shape in shapes]


@pytest.mark.parametrize("seed", range(3))
def test_training_by_hand_is_that_of_the_helpers(seed):
    results = []
    for function in (train, training.train):
        model = network(seed).eval()
        torch.manual_seed(seed)  # the same dropout
        losses = function(model, batches(seed, (2, 3), (4, 5), (1, 7), (3, 2)), 0.1)
        results.append([losses, *(p.detach() for p in model.parameters())])
    for a, b in zip(*results, strict=True):
        assert np.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_measuring_from_means_is_that_of_the_helpers(seed):
    model, data = network(seed), batches(seed, (2, 3), (4, 5), (1, 7), (3, 2))
    assert np.isclose(evaluate(model, data), training.evaluate(model, data), atol=1e-6)
    assert model.training and all(part.training for part in model.modules())


@pytest.mark.parametrize("shape", [(1, 2), (3, 5), (4, 4)])
def test_pairs_and_masks_are_those_of_the_helpers(shape):
    ids = np.random.default_rng(0).integers(3, size=shape)
    assert np.array_equal(lm_pairs(ids), training.lm_pairs(ids))
    for pad_id in (0, 2, 7):
        ours, theirs = (f(ids, pad_id) for f in (combined_mask, training.combined_mask))
        assert np.array_equal(ours, theirs) and ours.dtype == theirs.dtype


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4, 1.0])
def test_the_softer_loss_is_that_of_torch(smoothing):
    numbers = np.random.default_rng(1)
    logits, targets = 3 * numbers.normal(size=(3, 5, 7)), numbers.integers(7, size=(3, 5))
    theirs = F.cross_entropy(
        torch.from_numpy(logits).flatten(0, 1),
        torch.from_numpy(targets).flatten(),
        ignore_index=4,
        label_smoothing=smoothing,
    )
    assert np.isclose(smoothed_loss(logits, targets, 4, smoothing), theirs.item())


# ---------------------------------------------------------------- in a fork, or not


@pytest.fixture(params=["cuda", "accelerator"])
def with_a_gpu(request, monkeypatch):
    """PyTorch says that there is a device; a fork for what trains would be a failure."""
    if request.param == "accelerator" and not hasattr(torch, "accelerator"):
        pytest.skip("PyTorch before 2.6")
    monkeypatch.setattr(getattr(torch, request.param), "is_available", lambda: True)
    lines = sandbox.lines_of

    def lines_of(work, seconds, forks):
        assert not forks, "autograd raises in a fork where there is a GPU"
        return lines(work, seconds, forks)

    monkeypatch.setattr(sandbox, "lines_of", lines_of)


def test_what_trains_runs_in_no_fork_where_there_is_a_gpu(with_a_gpu):
    trained = [known.name for known in exercises().values() if known.trains]
    assert sorted(trained) == ["evaluate", "train"]
    for name in trained:
        known = find(name)
        assert not sandbox.can_fork(known)
        assert grade(known.reference, name).status == RIGHT
        verdict = grade(known.mistakes[0].function, name)
        assert (verdict.status, verdict.mistake) == (WRONG, known.mistakes[0].id)


@linux
def test_the_others_run_in_a_fork_everywhere(with_a_gpu):
    assert sandbox.can_fork(find("softmax")) and sandbox.can_fork(find("make_stack"))


@linux
def test_without_a_gpu_all_run_in_a_fork(monkeypatch):
    monkeypatch.setattr(sandbox, "has_accelerator", lambda: False)
    assert all(map(sandbox.can_fork, exercises().values()))


def test_nobody_is_asked_for_a_gpu_before_torch_is_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert not sandbox.has_accelerator()


def disturbs(model, batches, lr):
    torch.manual_seed(5), random.seed(5), np.random.seed(5)  # noqa: NPY002
    torch.set_grad_enabled(False)
    return [torch.rand(1).item()]


def test_the_notebook_keeps_its_random_numbers_and_gradients_in_a_thread(with_a_gpu):
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert grade(disturbs, "train").status == WRONG
    assert torch.equal(before[0], torch.get_rng_state()) and torch.is_grad_enabled()
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


BUSY = """
import torch
from workshop.checks import grade
from workshop.exercises import find

torch.set_num_threads(2)
layer, x = torch.nn.Linear(700, 700), torch.randn(900, 700)
for _ in range(3):  # the notebook trains, with threads of its own
    layer(x).square().mean().backward()
known = find("train")
print(grade(known.reference, "train").status, grade(known.mistakes[0].function, "train").mistake)
layer(x).square().mean().backward()
"""


def test_after_the_notebook_has_trained():
    run = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["right", find("train").mistakes[0].id], run.stderr


# ---------------------------------------------------------------- answers that do not end


def never_ends(model, batches, lr):
    while True:
        pass


def trains_for_ever(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    while True:
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
            optimizer.step()


def swallows_everything(model, batches, lr):
    while True:
        try:
            model(batches[0][0])
        except BaseException:
            pass


def leaves(model, batches, lr):
    sys.exit(3)


def takes_all(model, batches, lr):
    return [torch.zeros(2**40)]


HOSTILE = {
    never_ends: "does not return", trains_for_ever: "does not return",
    swallows_everything: "does not return", leaves: "SystemExit", takes_all: "RuntimeError",
}  # fmt: skip


def within_five_seconds(answer, words):
    known = find("train")
    known.prepare(), grade(known.reference, "train")  # what is loaded once is no part of it
    threads, start = threading.active_count(), os.times()
    verdict = grade(answer, "train")
    assert sum(os.times()[:4]) - sum(start[:4]) < 5  # of computing: others may be at work here
    assert os.times().elapsed - start.elapsed < 60
    assert verdict.status == WRONG and words in verdict.message, verdict.message
    assert threading.active_count() <= threads


@linux
@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: answer.__name__)
def test_hostile_training_ends_within_5_seconds(answer):
    within_five_seconds(answer, HOSTILE[answer])


@pytest.mark.parametrize("answer", [never_ends, trains_for_ever, leaves])
def test_hostile_training_ends_beside_a_gpu_too(answer, monkeypatch):
    monkeypatch.setattr(sandbox, "has_accelerator", lambda: True)
    within_five_seconds(answer, HOSTILE[answer])


# ---------------------------------------------------------------- unusual right answers


def dictionary_of_velocities(model, batches, lr):
    model.train()
    velocity, losses = {}, []
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        for p in model.parameters():
            p.grad = None
        loss.backward()
        for p in model.parameters():
            velocity[p] = 0.9 * velocity.get(p, 0) + p.grad
            p.data -= lr * velocity[p]
        losses.append(float(loss))
    return losses


def gradients_as_values(model, batches, lr):
    parameters, losses = list(model.train().parameters()), []
    velocities = [torch.zeros_like(p) for p in parameters]
    for x, y in batches:
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocities, gradients, strict=True):
                v *= 0.9
                v += g
                p -= lr * v
        losses.append(loss.item())
    return losses


def closure_and_old_mode(model, batches, lr):
    was, losses = model.training, []
    optimizer = torch.optim.SGD(model.train().parameters(), lr, 0.9, foreach=True)
    for i in range(len(batches)):

        def again(i=i):
            optimizer.zero_grad(set_to_none=False)
            log_p = torch.log_softmax(model(batches[i][0]).double(), -1)
            loss = -log_p.gather(-1, batches[i][1][..., None]).mean()
            loss.backward()
            return loss

        losses.append(optimizer.step(again).item())
    model.train(was)
    return losses


@pytest.mark.parametrize(
    "answer", [dictionary_of_velocities, gradients_as_values, closure_and_old_mode]
)
def test_other_ways_to_train_are_right(answer):
    verdict = grade(answer, "train")
    assert verdict.status == RIGHT, verdict.message


@torch.no_grad()
def all_losses_in_one(model, batches):
    was = model.training
    try:
        pairs = [(model.eval()(x).transpose(1, 2), y) for x, y in batches]
    finally:
        model.train(was)
    return (
        torch.cat([F.cross_entropy(z, y, reduction="none").flatten() for z, y in pairs])
        .mean()
        .item()
    )


def in_numpy(model, batches):
    was, losses = model.training, []
    model.eval()
    for x, y in batches:
        z = model(x).detach().numpy().astype(float)
        log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
        losses.extend(-np.take_along_axis(log_p, y.numpy()[..., None], -1).ravel())
    model.train(was)
    return float(np.mean(losses))


def on_a_copy(model, batches):
    still = copy.deepcopy(model).eval()
    count = sum(y.numel() for _, y in batches)
    with torch.inference_mode():
        parts = [F.cross_entropy(still(x).mT, y, reduction="sum") for x, y in batches]
    return float(sum(parts)) / count


@pytest.mark.parametrize("answer", [all_losses_in_one, in_numpy, on_a_copy])
def test_other_ways_to_measure_are_right(answer):
    verdict = grade(answer, "evaluate")
    assert verdict.status == RIGHT, verdict.message


# ---------------------------------------------------------------- what is said


def shuffled(model, batches, lr):
    return train(model, random.Random(3).sample(batches, len(batches)), lr)


def plain_descent_in_eval_mode(model, batches, lr):
    losses = []
    for x, y in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    "answer, words",
    [
        (shuffled, ["the batches come in the given order"]),
        (plain_descent_in_eval_mode, ["in train mode"]),
    ],
)
def test_what_has_no_name_is_said_in_words(answer, words):
    verdict = grade(answer, "train")
    assert verdict.status == WRONG and verdict.mistake is None
    assert all(word in verdict.message for word in words), verdict.message


def test_probes_that_only_tell_mistakes_apart_are_not_boasted_of():
    message = grade(train, "train").message + grade(shuffled, "train").message
    assert "one step from equal logits" in message
    assert "why nothing is learned" not in message and "what PyTorch says" not in message


def test_training_is_no_part_of_the_transformer():
    assert not {"train", "evaluate"} & {n for names in mine._by_notebook().values() for n in names}
    assert mine.train is train
