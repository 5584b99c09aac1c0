"""Checkpoints on disk: whole or not there, checked when read, and never run as code.

A file is one line, `attention checkpoint <SHA-256 of the rest>`, then what `torch.save` writes.
"""

import hashlib
import io
import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

MAGIC = b"attention checkpoint "
KEPT = 2  # if the newest is damaged, there is one before it


class CheckpointError(Exception):
    """A file that is no checkpoint, or no longer the one that was written."""


def save(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write the state after `step` steps and remove all but the newest two; returns the path.

    The file appears under its name only when all of it is on the disk, so that a process killed
    at any moment leaves the checkpoints before it as they were.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    torch.save(state, content)
    path = folder / f"step-{step:08d}.pt"
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        digest = hashlib.sha256(content.getbuffer()).hexdigest()
        file.write(MAGIC + digest.encode() + b"\n")
        file.write(content.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    _sync(folder)
    for old in [*found(folder)[KEPT:], *folder.glob("step-*.partial")]:
        old.unlink()
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint: tensors, numbers, texts and containers of them, on the CPU.

    Raises CheckpointError that names the file if it is cut off, changed, no checkpoint, or holds
    objects that would run code.
    """
    first, _, content = Path(path).read_bytes().partition(b"\n")
    if not first.startswith(MAGIC):
        raise CheckpointError(f"{path} is not a checkpoint of this course")
    if hashlib.sha256(content).hexdigest().encode() != first.removeprefix(MAGIC):
        raise CheckpointError(f"{path} is damaged: it is cut off or was changed after it was saved")
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise CheckpointError(f"{path} holds more than tensors and numbers: not read") from error


def found(folder: Path) -> list[Path]:
    """The checkpoints of a folder, newest first."""
    return sorted(Path(folder).glob("step-*.pt"), reverse=True)


def newest(folder: Path) -> dict[str, Any] | None:
    """Read the newest checkpoint that is whole; None if the folder has none.

    A damaged one is passed over, and a line says so. Raises CheckpointError if all are damaged.
    """
    errors = []
    for path in found(folder):
        try:
            state = load(path)
        except CheckpointError as error:
            errors.append(error)
        else:
            for error in errors:
                print(f"{error}. Going on from {path.name}, the one before it.")
            return state
    if errors:
        raise CheckpointError(f"{errors[0]}, and no other is whole; remove {folder} to start anew")
    return None


def _sync(folder: Path) -> None:
    """Make the new name last, too; Windows has no such thing for folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
