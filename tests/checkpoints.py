"""How tests write checkpoints and damage them."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def random_weights(model):
    """Far from the start values, where every bias is 0 and every norm is 1."""
    torch.manual_seed(5)
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.3)
    return model.eval()


class rewritten:
    """`with rewritten(folder) as tensors:` lets the tensors of a checkpoint be changed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.safetensors"

    def __enter__(self) -> dict[str, torch.Tensor]:
        self.tensors = {name: tensor.clone() for name, tensor in load_file(self.path).items()}
        return self.tensors

    def __exit__(self, *failure) -> None:
        save_file(self.tensors, self.path)


def change_config(folder: Path, **changes) -> None:
    """Change keys of config.json; ... takes one out."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


# What no loader takes: a tensor as it was → as it is then, None for none.
DAMAGES = {
    "missing": lambda tensor: None,
    "transposed": lambda tensor: tensor.T.contiguous() if tensor.ndim == 2 else tensor[None],
    "whole numbers": lambda tensor: tensor.long(),
    "not a number": lambda tensor: torch.where(tensor == tensor.max(), torch.nan, tensor),
}


class Bomb:
    """A pickle that creates a file as soon as it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def index_of(folder: Path) -> dict[str, str]:
    return json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]


def write_index(folder: Path, weight_map) -> None:
    text = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)
