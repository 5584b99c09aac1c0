"""Checkpoints: training goes on exactly, whatever happened to the process or to the files.

Twenty kills instead of three: KILLS=20 python -m pytest tests/test_training_checkpoints.py -k kill
"""

import copy
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.layers import MultiHeadAttention
from helpers.training import CheckpointError, corpus, examples, fit, translator, vocabularies
from helpers.training.ablations import parts
from helpers.training.checkpoints import found, load, newest, save

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "3"))
SETTINGS = {"steps": 24, "batch_size": 16, "warm_up": 5, "every": 5, "shown": False}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def start():
    """A translator with dropout, and forty pairs: an epoch is two batches."""
    pairs = corpus(40, np.random.default_rng(1))
    vocabs = vocabularies(pairs)
    torch.manual_seed(2)
    return translator(*vocabs, dropout=0.2), examples(pairs, *vocabs)


@pytest.fixture(scope="module")
def uninterrupted(start):
    """The losses without a break, and the model at the end."""
    model = copy.deepcopy(start[0])
    return fit(model, start[1], generator(), **SETTINGS).losses, model


class PowerCutError(Exception):
    """Stands for whatever ends a training without warning."""


def at_step(model, step: int, act) -> None:
    """Let something happen in the middle of a step, counted from 1."""
    count = iter(range(1, 10**6))
    model.output.register_forward_hook(lambda *_: act() if next(count) == step else None)


def cut_off_at(step: int, start, folder: Path) -> None:
    """Train until the power is cut in the middle of a step."""

    def cut():
        raise PowerCutError

    model = copy.deepcopy(start[0])
    at_step(model, step, cut)
    with pytest.raises(PowerCutError):
        fit(model, start[1], generator(), folder=folder, **SETTINGS)


def goes_on(start, folder: Path, uninterrupted) -> None:
    """Another beginning, another random state: the same losses and parameters to the last bit."""
    torch.manual_seed(99)
    model = copy.deepcopy(start[0])
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    history = fit(model, start[1], generator(77), folder=folder, **SETTINGS)
    assert history == (uninterrupted[0], False)
    assert same(model, uninterrupted[1])


def same(model: torch.nn.Module, other: torch.nn.Module) -> bool:
    """Whether all parameters are equal to the last bit."""
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(torch.equal(ours, theirs) for ours, theirs in pairs)


# ---------------------------------------------------------------- going on


@pytest.mark.parametrize("step", [6, 13, 16, 24])
def test_a_broken_training_goes_on_bit_for_bit(start, uninterrupted, tmp_path, step):
    cut_off_at(step, start, tmp_path)
    steps = [5 * i for i in range(1, (step - 1) // 5 + 1)][-2:]
    assert [path.name for path in found(tmp_path)] == [f"step-{n:08d}.pt" for n in steps[::-1]]
    goes_on(start, tmp_path, uninterrupted)


def test_checkpoints_change_nothing(start, uninterrupted, tmp_path):
    """And a training that has ended is only read."""
    model = copy.deepcopy(start[0])
    losses = fit(model, start[1], generator(), folder=tmp_path, **SETTINGS | {"every": 1}).losses
    assert losses == uninterrupted[0] and same(model, uninterrupted[1])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    goes_on(start, tmp_path, uninterrupted)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(path.name for path in before) == ["step-00000023.pt", "step-00000024.pt"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"steps": 30}, "steps is 30, but .* were made with 24"),
        ({"batch_size": 8}, "batch_size is 8, but .* 16"),
        ({"peak": 0.5}, "peak is 0.5"),
        ({"warm_up": 6}, "warm_up is 6"),
        ({"label_smoothing": 0.0}, "label_smoothing is 0.0, but .* 0.1"),
    ],
)
def test_another_training_does_not_take_over_the_folder(start, tmp_path, change, name):
    cut_off_at(8, start, tmp_path)
    model = copy.deepcopy(start[0])
    with pytest.raises(ValueError, match=name):
        fit(model, start[1], generator(), folder=tmp_path, **SETTINGS | change)
    assert same(model, start[0])


def test_another_model_or_other_data_do_not_take_over_the_folder(start, tmp_path):
    cut_off_at(8, start, tmp_path)
    model, data = start
    fewer = data.pick(torch.arange(39), 0)
    with pytest.raises(ValueError, match=r"data is .*, but the checkpoints in"):
        fit(copy.deepcopy(model), fewer, generator(), folder=tmp_path, **SETTINGS)
    fewer_heads = copy.deepcopy(model)  # the parameters have the same shapes
    for attention in parts(fewer_heads, MultiHeadAttention):
        attention.num_heads, attention.d_head = 2, 32
    with pytest.raises(ValueError, match=r"model is .*, but the checkpoints in"):
        fit(fewer_heads, data, generator(), folder=tmp_path, **SETTINGS)


# ---------------------------------------------------------------- damage


def damage_at(path: Path, how: str) -> None:
    """Cut a file off, empty it, change one bit of it, or put something else in its place."""
    content = path.read_bytes()
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    path.write_bytes(
        {
            "cut off": content[: len(content) // 2],
            "cut off at its last byte": content[:-1],
            "empty": b"",
            "one bit": bytes(changed),
            "something else": b"PK\x03\x04 not ours",
            "longer": content + b"\0",
        }[how]
    )


DAMAGES = pytest.mark.parametrize(
    "how",
    ["cut off", "cut off at its last byte", "empty", "one bit", "something else", "longer"],
)


@DAMAGES
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(
    start, uninterrupted, tmp_path, capsys, how
):
    cut_off_at(13, start, tmp_path)
    damage_at(found(tmp_path)[0], how)
    with pytest.raises(CheckpointError, match=r"step-00000010\.pt is (damaged|not a checkpoint)"):
        load(found(tmp_path)[0])
    goes_on(start, tmp_path, uninterrupted)
    assert re.search(
        r"step-00000010\.pt is .* Going on from step-00000005\.pt", capsys.readouterr().out
    )


def test_if_all_are_damaged_nothing_starts_anew_by_itself(start, tmp_path):
    cut_off_at(13, start, tmp_path)
    for path in found(tmp_path):
        damage_at(path, "cut off")
    with pytest.raises(CheckpointError, match=r"step-00000010\.pt is damaged.*no other is whole"):
        fit(copy.deepcopy(start[0]), start[1], generator(), folder=tmp_path, **SETTINGS)


def test_checkpoints_never_run_code(tmp_path, capsys):
    """A pickle with a right checksum, too, is refused without being run."""

    class Bomb:
        def __reduce__(self):
            return print, ("code was run",)

    path = save(tmp_path, 1, {"bomb": Bomb()})
    content = path.read_bytes().partition(b"\n")
    assert hashlib.sha256(content[2]).hexdigest().encode() in content[0]
    with pytest.raises(CheckpointError, match=r"step-00000001\.pt holds more than tensors"):
        load(path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_what_goes_wrong_while_saving_leaves_the_former_ones(tmp_path, monkeypatch, function):
    def full(*_):
        raise OSError("no space left on device")

    for step in (1, 2):
        save(tmp_path, step, {"step": step})
    with monkeypatch.context() as patch:
        patch.setattr(os, function, full)
        with pytest.raises(OSError, match="no space"):
            save(tmp_path, 3, {"step": 3})
    assert [load(path)["step"] for path in found(tmp_path)] == [2, 1]
    save(tmp_path, 4, {"step": 4})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-00000002.pt", "step-00000004.pt"]  # nothing half-written stays


def test_a_folder_without_checkpoints_gives_none(tmp_path):
    assert newest(tmp_path) is None and newest(tmp_path / "not there") is None


# ---------------------------------------------------------------- interrupting


def test_interrupting_keeps_what_was_learned(start, uninterrupted, tmp_path, capsys):
    """The step is finished, a checkpoint is written, and the training can go on."""
    model, handler = copy.deepcopy(start[0]), signal.getsignal(signal.SIGINT)
    at_step(model, 7, lambda: signal.raise_signal(signal.SIGINT))
    history = fit(model, start[1], generator(), folder=tmp_path, **SETTINGS)
    assert history.interrupted and history.losses == uninterrupted[0][:7]
    assert capsys.readouterr().out == (
        "Interrupted after 7 of 24 steps; what was learned is kept.\n"
    )
    assert signal.getsignal(signal.SIGINT) is handler and found(tmp_path)[0].stem[-1] == "7"
    saved = copy.deepcopy(start[0])
    saved.load_state_dict(load(found(tmp_path)[0])["model"])
    assert same(model, saved)
    goes_on(start, tmp_path, uninterrupted)


def test_a_second_interrupt_does_not_wait_for_the_step(start, uninterrupted):
    model = copy.deepcopy(start[0]).eval()

    def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    at_step(model, 7, twice)
    history = fit(model, start[1], generator(), **SETTINGS)
    assert history.interrupted and history.losses == uninterrupted[0][:6] and not model.training


def test_in_another_thread_training_works_too(start, uninterrupted):
    """There no signal arrives; a KeyboardInterrupt from elsewhere ends it all the same."""
    results = []

    def interrupt():
        raise KeyboardInterrupt

    def work():
        model = copy.deepcopy(start[0])
        results.append(fit(model, start[1], generator(), **SETTINGS))
        at_step(model, 3, interrupt)
        results.append(fit(model, start[1], generator(), **SETTINGS))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results[0] == (uninterrupted[0], False)
    assert results[1].interrupted and len(results[1].losses) == 2


# ---------------------------------------------------------------- killing

STEPS = 40 + 40 * KILLS  # more than can be done between the kills
PARENT = f"""
import os, sys, torch, numpy as np
from helpers.models import Transformer
from helpers.training import corpus, examples, fit, vocabularies

pairs = corpus(40, np.random.default_rng(1))
vocabs = vocabularies(pairs)
data = examples(pairs, *vocabs)

def training(folder, run):
    torch.manual_seed(run)
    model = Transformer(*map(len, vocabs), 16, 2, 32, 1, dropout=0.1, max_len=16)
    return fit(model, data, torch.Generator().manual_seed(run), steps={STEPS}, batch_size=16,
               warm_up=10, folder=folder or None, every=1, shown=False)

torch.optim.Adam([torch.nn.Parameter(torch.ones(1))])  # the first one loads much of PyTorch
for line in sys.stdin:  # one process for each training, with PyTorch loaded already
    folder, run = line.rstrip().split("|")
    process = os.fork()
    if process == 0:
        losses = training(folder, int(run)).losses
        print(" ".join(loss.hex() for loss in losses), flush=True)
        os._exit(0)
    print(process, flush=True)
    print(os.waitpid(process, 0)[1], flush=True)
"""


@pytest.fixture
def parent():
    """A process that starts a training for each line `folder|run`, and says its number first."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", PARENT], env=environment, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_killed_at_random_moments_no_checkpoint_is_lost(parent, tmp_path):
    """With a checkpoint after every step, so that many kills fall into the writing of one.

    The first training begins with seed 0; those after it begin with others, which must not matter.
    """
    moment, done = random.Random(5), 0
    for run in range(KILLS):
        print(f"{tmp_path}|{run}", file=parent.stdin)
        process = int(parent.stdout.readline())
        latest = time.monotonic() + 60
        while len(found(tmp_path)) < 2 and time.monotonic() < latest:  # the first time
            time.sleep(0.01)
        time.sleep(moment.uniform(0.0, 0.15))
        os.kill(process, signal.SIGKILL)
        assert parent.stdout.readline() == f"{int(signal.SIGKILL)}\n", "ended early: more STEPS"
        whole = [len(load(path)["losses"]) for path in found(tmp_path)]
        assert whole == sorted(whole, reverse=True) and whole[0] >= done and len(whole) >= 2
        done = whole[0]
    answers = []
    for line in (f"{tmp_path}|{KILLS}", "|0"):  # to the end; and the same in one go
        print(line, file=parent.stdin)
        parent.stdout.readline()
        answers.append(parent.stdout.readline().split())
        assert parent.stdout.readline() == "0\n"
    assert answers[0] == answers[1] and len(answers[0]) == STEPS
