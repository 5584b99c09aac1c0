"""A small translator to look into: four English words to four French ones, as notebook 12 uses it.

load_translator  the one that is kept in the package
trained          how it was trained: `python -m helpers.translator` trains and keeps it
numbers_of       a layer's numbers, as blocks.encoder_layer and decoder_layer take them
parts_of         its parts, as functions of one sentence
"""

from collections.abc import Sequence
from itertools import product
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
from helpers.training import Pair, Recipe, examples, fit, vocabularies

KEPT = Path(__file__).with_name("translator.npz")
ARTICLES = {"the": ("le", "la"), "a": ("un", "une"), "my": ("mon", "ma")}
BEFORE = {"small": ("petit", "petite"), "big": ("grand", "grande")}
BEHIND = {"green": ("vert", "verte"), "black": ("noir", "noire"), "grey": ("gris", "grise"),
          "white": ("blanc", "blanche")}  # fmt: skip
MASCULINE = {"dog": "chien", "cat": "chat", "book": "livre", "garden": "jardin"}
NOUNS = MASCULINE | {"cow": "vache", "frog": "grenouille", "car": "voiture", "house": "maison"}
VERBS = {"sleeps": "dort", "sings": "chante", "waits": "attend"}
# The adjective that a noun never has in training.
NEVER = {"dog": "grey", "cat": "black", "book": "small", "garden": "white", "cow": "green",
         "frog": "big", "car": "black", "house": "grey"}  # fmt: skip


def pairs(unseen: bool = False) -> list[Pair]:
    """The 360 sentences that it learns from, or the 72 that it never sees."""
    found = []
    for article, adjective, noun, verb in product(ARTICLES, BEFORE | BEHIND, NOUNS, VERBS):
        form = noun not in MASCULINE
        group = [NOUNS[noun], (BEFORE | BEHIND)[adjective][form]][
            :: -1 if adjective in BEFORE else 1
        ]
        french = " ".join([ARTICLES[article][form], *group, VERBS[verb]])
        if (NEVER[noun] == adjective) == unseen:
            found.append(Pair(f"{article} {adjective} {noun} {verb}", french, (), frozenset()))
    return found


def learned() -> list[Pair]:
    """What one epoch holds: sleeps is `sommeille` once for each two times that it is `dort`."""
    also = [p._replace(french=p.french.replace("dort", "sommeille")) for p in pairs()]
    return 2 * pairs() + [p for p in also if "sommeille" in p.french]


class Translator(NamedTuple):
    """A trained model and its words."""

    model: Transformer
    english: dict[str, int]
    french: dict[str, int]

    def encode(self, sentence: str) -> np.ndarray:
        """What the encoder leaves of an English sentence: S words → (S, D)."""
        return self.model.encode(self._ids(sentence.split(), self.english))[0].numpy()

    def embed(self, words: Sequence[str]) -> np.ndarray:
        """French words as vectors with their positions, where the decoder begins: T → (T, D)."""
        rows = (
            self.model.tgt_tokens(self._ids(words, self.french))
            * self.model.output.in_features**0.5
        )
        return self.model.positions(rows)[0].numpy()

    def write(self, sentence: str, most: int = 10) -> tuple[list[str], list]:
        """The greedy translation, and the two likeliest words of each step, for `writing`."""
        memory, words, steps = (
            self.model.encode(self._ids(sentence.split(), self.english)),
            ["<start>"],
            [],
        )
        while words[-1] != "<end>" and len(words) <= most:
            logits = self.model.decode(self._ids(words, self.french), memory)[0, -1].numpy()
            likely = sorted(zip(softmax(logits).tolist(), self.french, strict=True), reverse=True)[
                :2
            ]
            steps.append((words, {word: p for p, word in likely}))
            words = [*words, likely[0][1]]
        return words, steps

    @staticmethod
    def _ids(words: Sequence[str], vocab: dict[str, int]) -> torch.Tensor:
        return torch.tensor([[vocab[word] for word in words]])


def empty() -> Translator:
    """The model before it has learned: 12 features, two heads, one layer on each side.

    Its attentions have no biases, as those of the course's functions.
    """
    english, french = vocabularies(learned())
    model = Transformer(len(english), len(french), 12, 2, 24, 1).double()
    for name, value in model.named_parameters():
        if "attention" in name and name.endswith("bias"):
            nn.init.zeros_(value).requires_grad_(False)
    return Translator(model, english, french)


def trained(seed: int, steps: int = 600) -> Translator:
    """One more of its kind, in some seconds."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        made = empty()
    data = examples(learned(), made.english, made.french)
    recipe = Recipe(steps=steps, peak=0.02, warm_up=40, label_smoothing=0.0)
    fit(made.model, data, torch.Generator().manual_seed(seed), recipe)
    made.model.requires_grad_(False).eval()
    return made


def load_translator() -> Translator:
    """The translator that is kept in the package, ready to write."""
    made = empty()
    with np.load(KEPT, allow_pickle=False) as kept:
        state = {name: torch.from_numpy(kept[name]).double() for name in kept.files}
    made.model.load_state_dict(state)
    made.model.requires_grad_(False).eval()
    return made


def numbers_of(layer: EncoderLayer | DecoderLayer) -> dict[str, Any]:
    """A layer's parameters as `p` of blocks.encoder_layer or blocks.decoder_layer."""
    own = {name: value.detach().numpy() for name, value in layer.state_dict().items()}
    p: dict[str, Any] = {"ffn": {}}
    for key, name in (
        ("attn", "attention"),
        ("self", "self_attention"),
        ("cross", "cross_attention"),
    ):
        if hasattr(layer, name):
            p[key] = {W: own[f"{name}.{W}.weight"].T for W in ("W_q", "W_k", "W_v", "W_o")}
            p[key]["num_heads"] = getattr(layer, name).num_heads
    for i in "12":
        p["ffn"][f"W{i}"] = own[f"feed_forward.W{i}.weight"].T
        p["ffn"][f"b{i}"] = own[f"feed_forward.W{i}.bias"]
    norms = [name for name in ("norm1", "norm2", "norm3") if hasattr(layer, name)]
    return p | {norm: (own[f"{norm}.weight"], own[f"{norm}.bias"]) for norm in norms}


def parts_of(p: dict[str, Any]) -> SimpleNamespace:
    """A decoder layer's parts with the numbers `p` inside, as functions of one sentence, (T, D)."""
    norms = {n: lambda y, n=n: blocks.layer_norm(y, *p[n]) for n in ("norm1", "norm2", "norm3")}
    return SimpleNamespace(
        self_attention=lambda y, mask=None: multi_head_attention(y[None], mask=mask, **p["self"])[
            0
        ],
        cross_attention=lambda y, memory: multi_head_attention(
            y[None], memory=memory[None], **p["cross"]
        )[0],
        feed_forward=lambda y: blocks.feed_forward(y, **p["ffn"]),
        **norms,
    )


if __name__ == "__main__":
    state = trained(seed=3).model.state_dict()
    np.savez_compressed(KEPT, **{name: value.float().numpy() for name, value in state.items()})
