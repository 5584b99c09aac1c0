"""Checkpoints: training goes on exactly, whatever happened to the process or to the files."""

import copy
import hashlib
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.layers import MultiHeadAttention
from helpers.training import CheckpointError, corpus, examples, fit, translator, vocabularies
from helpers.training.ablations import parts
from helpers.training.checkpoints import found, load, newest, save

pytestmark = pytest.mark.slow
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


def test_another_model_or_other_data_do_not_take_over_the_folder(start, tmp_path):
    cut_off_at(8, start, tmp_path)
    model, data = start
    with pytest.raises(ValueError, match=r"steps is 30, but .* were made with 24"):
        fit(copy.deepcopy(model), data, generator(), folder=tmp_path, **SETTINGS | {"steps": 30})
    fewer = data.pick(torch.arange(39), 0)
    with pytest.raises(ValueError, match=r"data is .*, but the checkpoints in"):
        fit(copy.deepcopy(model), fewer, generator(), folder=tmp_path, **SETTINGS)
    fewer_heads = copy.deepcopy(model)  # the parameters have the same shapes
    for attention in parts(fewer_heads, MultiHeadAttention):
        attention.num_heads, attention.d_head = 2, 32
    with pytest.raises(ValueError, match=r"model is .*, but the checkpoints in"):
        fit(fewer_heads, data, generator(), folder=tmp_path, **SETTINGS)


def one_bit_changed(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda c: c[: len(c) // 2], lambda c: c[:-1], lambda c: b"", lambda c: c + b"\0",
     lambda c: b"PK\x03\x04 not ours", one_bit_changed],
    ids=["cut off", "a byte too short", "empty", "a byte too long", "something else", "one bit"],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(
    start, uninterrupted, tmp_path, capsys, damage
):
    cut_off_at(13, start, tmp_path)
    newest_one = found(tmp_path)[0]
    newest_one.write_bytes(damage(newest_one.read_bytes()))
    with pytest.raises(CheckpointError, match=r"step-00000010\.pt is (damaged|not a checkpoint)"):
        load(found(tmp_path)[0])
    goes_on(start, tmp_path, uninterrupted)
    assert re.search(
        r"step-00000010\.pt is .* Going on from step-00000005\.pt", capsys.readouterr().out
    )


def test_if_all_are_damaged_nothing_starts_anew_by_itself(start, tmp_path):
    assert newest(tmp_path) is None and newest(tmp_path / "not there") is None
    cut_off_at(13, start, tmp_path)
    for path in found(tmp_path):
        path.write_bytes(path.read_bytes()[:-1])
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
