"""A small translator to look into: four English words to four French ones, for notebook 12."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from helpers import blocks
from helpers.attention import multi_head_attention, softmax
from helpers.layers import DecoderLayer, EncoderLayer
from helpers.models import Transformer

KEPT = Path(__file__).with_name("translator.npz")


class Translator(NamedTuple):
    """A trained model and its words."""

    model: Transformer
    english: dict[str, int]
    french: dict[str, int]

    def encode(self, sentence: str) -> np.ndarray:
        """What the encoder leaves of an English sentence: S words → (S, D)."""
        return self.model.encode(_ids(sentence.split(), self.english))[0].numpy()

    def embed(self, words: Sequence[str]) -> np.ndarray:
        """French words as vectors with their positions, where the decoder begins: T → (T, D)."""
        model = self.model
        rows = model.tgt_tokens(_ids(words, self.french)) * model.output.in_features**0.5
        return model.positions(rows)[0].numpy()

    def write(self, sentence: str, most: int = 10) -> tuple[list[str], list]:
        """The greedy translation, and the two likeliest words of each step, for `writing`."""
        memory = self.model.encode(_ids(sentence.split(), self.english))
        words, steps = ["<start>"], []
        while words[-1] != "<end>" and len(words) <= most:
            logits = self.model.decode(_ids(words, self.french), memory)[0, -1].numpy()
            likely = sorted(zip(softmax(logits).tolist(), self.french, strict=True), reverse=True)
            steps.append((words, {word: p for p, word in likely[:2]}))
            words = [*words, likely[0][1]]
        return words, steps


def _ids(words: Sequence[str], vocab: Mapping[str, int]) -> torch.Tensor:
    return torch.tensor([[vocab[word] for word in words]])


def empty_translator(english: dict[str, int], french: dict[str, int]) -> Translator:
    """The model before it has learned: 12 features, two heads, one layer on each side.

    Its attentions have no biases, as those of the course's functions.
    """
    model = Transformer(len(english), len(french), 12, 2, 24, 1).double()
    for name, value in model.named_parameters():
        if "attention" in name and name.endswith("bias"):
            nn.init.zeros_(value).requires_grad_(False)
    return Translator(model, english, french)


def load_translator() -> Translator:
    """The one that is kept in the package, ready to write; `make translator` trains it anew."""
    with np.load(KEPT, allow_pickle=False) as kept:
        arrays = dict(kept)
    words = [arrays.pop(side).tolist() for side in ("english", "french")]
    made = empty_translator(*({word: i for i, word in enumerate(side)} for side in words))
    state = {name: torch.from_numpy(array).double() for name, array in arrays.items()}
    made.model.load_state_dict(state)
    made.model.requires_grad_(False).eval()
    return made


def numbers_of(layer: EncoderLayer | DecoderLayer) -> dict[str, Any]:
    """A layer's parameters as `p` of blocks.encoder_layer or blocks.decoder_layer."""
    own = {name: value.detach().numpy() for name, value in layer.state_dict().items()}
    p: dict[str, Any] = {"ffn": {}}
    attentions = {"attn": "attention", "self": "self_attention", "cross": "cross_attention"}
    for key, name in attentions.items():
        if hasattr(layer, name):
            p[key] = {W: own[f"{name}.{W}.weight"].T for W in ("W_q", "W_k", "W_v", "W_o")}
            p[key]["num_heads"] = getattr(layer, name).num_heads
    for i in "12":
        p["ffn"][f"W{i}"] = own[f"feed_forward.W{i}.weight"].T
        p["ffn"][f"b{i}"] = own[f"feed_forward.W{i}.bias"]
    norms = [name for name in ("norm1", "norm2", "norm3") if hasattr(layer, name)]
    return p | {norm: (own[f"{norm}.weight"], own[f"{norm}.bias"]) for norm in norms}


def parts_of(p: Mapping[str, Any]) -> SimpleNamespace:
    """A decoder layer's parts with the numbers `p` inside, as functions of one sentence, (T, D)."""
    norms = {n: lambda y, n=n: blocks.layer_norm(y, *p[n]) for n in ("norm1", "norm2", "norm3")}

    def attend(key: str, y: np.ndarray, **read: Any) -> np.ndarray:
        return multi_head_attention(y[None], **read, **p[key])[0]

    return SimpleNamespace(
        self_attention=lambda y, mask=None: attend("self", y, mask=mask),
        cross_attention=lambda y, memory: attend("cross", y, memory=memory[None]),
        feed_forward=lambda y: blocks.feed_forward(y, **p["ffn"]),
        **norms,
    )
