"""The files of a checkpoint, each checked as it is read."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import safetensors.torch
from tokenizers import Tokenizer
from torch import Tensor

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Load the tokenizer of a checkpoint: `.encode(text).ids` are ids, `.decode(ids)` is text.

    Raises FileNotFoundError or ValueError for a tokenizer.json that is missing or damaged.
    """
    path = Path(folder) / TOKENIZER
    content = path.read_bytes()
    try:
        return Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"{path} is damaged or no tokenizer: {error}") from error


def fitting_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    tokenizer = load_tokenizer(folder)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= largest < vocab_size:
        needed = f"fit vocab_size = {vocab_size} of {CONFIG}"
        raise ValueError(f"{folder / TOKENIZER} has ids up to {largest}, but must {needed}")
    return tokenizer


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also for a number of 5000 figures
        raise ValueError(f"{path} is damaged, it is no JSON in UTF-8: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, but must hold an object")
    return content


def check_digests(folder: Path, digests: dict[str, str]) -> None:
    for name, needed in digests.items():
        with open(folder / name, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != needed:
            why = f"its SHA-256 is {found}, but must be {needed}"
            raise ValueError(f"{folder / name} is not the published file, or was changed: {why}")


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """All tensors of a checkpoint by their names there, and the file that lists them."""
    path = find_weights(folder)
    return path, _read_shards(path) if path.name == INDEX else _read_tensors(path)


def find_weights(folder: Path) -> Path:
    for name in (WEIGHTS, INDEX):
        if (folder / name).is_file():
            return folder / name
    pickled = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    also = f"; {pickled[0]} is a pickle, which can run code: it is not opened" if pickled else ""
    raise FileNotFoundError(f"{folder} holds no {WEIGHTS}{also}")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one file; safetensors checks that they fill it without a gap."""
    with open(path, "rb") as file:
        start = file.read(10)
    if start.startswith(b"PK") or (start[:1] == b"\x80" and start[8:9] != b"{"):
        raise ValueError(f"{path} is a pickle, which can run code: it is not opened")
    try:
        return safetensors.torch.load_file(path)
    except Exception as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def _read_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of several files, each where the index says."""
    shard_of = read_json(index).get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of:
        raise ValueError(f"{index}: weight_map is missing or empty")
    for name in shard_of.values():  # a file beside the index, and no other place
        if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*\.safetensors", name):
            raise ValueError(f"{index}: weight_map names {name!r}, but must name safetensors files")
    tensors: dict[str, Tensor] = {}
    for shard in sorted({*shard_of.values()}):
        found = _read_tensors(index.parent / shard)
        listed = {name for name, where in shard_of.items() if where == shard}
        if wrong := sorted(found.keys() ^ listed):
            raise ValueError(f"{index} and {shard} do not agree about the tensor {wrong[0]}")
        tensors |= found
    return tensors
