"""The smallest example, one head that a pencil checks, and what one trained head reads."""

from pathlib import Path

import numpy as np

# How much each word has to do with food, with devices and with trade.
_MEANING = {
    "the": [0, 0, 0],
    "shop": [0, 1, 3],
    "sells": [1, 0, 2],
    "apple": [2, 2, 0],
    "and": [0, 0, 0],
    "banana": [4, 0, 1],
    "laptop": [0, 4, 1],
}
_FOOD_AND_DEVICE = np.eye(3, 2)  # trade is not asked for

APPLE_WORDS = list(_MEANING)
APPLE = {
    "table": np.array(list(_MEANING.values()), dtype=float),  # (7, 3)
    "W_q": _FOOD_AND_DEVICE,  # (3, 2)
    "W_k": _FOOD_AND_DEVICE / 2,
    "W_v": _FOOD_AND_DEVICE,
    "names": {"x": ["food", "device", "trade"]}
    | {step: ["food", "device"] for step in ("q", "k", "v", "context")},
}


def sentence(text: str) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Words of APPLE -> the words, X (T, 3), and Q, K, V (T, 2) of them.

    Raises ValueError for a word that APPLE does not know, and for a text without words.
    """
    words = text.split()
    unknown = [word for word in words if word not in _MEANING]
    if unknown or not words:
        what = f"has {unknown[0]!r}" if unknown else f"is {text!r}"
        raise ValueError(f"text {what}, but must be made of {', '.join(APPLE_WORDS)}")
    X = APPLE["table"][[APPLE_WORDS.index(word) for word in words]]
    return words, X, *(X @ APPLE[W] for W in ("W_q", "W_k", "W_v"))


# What the library that MiniLM was published for, transformers, computes of a sentence, CAT: the
# vector of "it" after the last layer (384,), the mean of all, 1 long, (384,), and one head (9, 9).
with np.load(Path(__file__).with_name("makers.npz")) as _kept:
    MAKERS = {name: _kept[name] for name in ("it", "sentence", "weights")}

# What two heads of MiniLM read in it, row by row; notebook 14 computes the first again.
CAT = {
    "text": "The cat sat because it was tired",
    "tokens": ["[CLS]", "the", "cat", "sat", "because", "it", "was", "tired", "[SEP]"],
    "layer": 3,  # counted from 0, and so is the head
    "head": 1,
    "weights": MAKERS["weights"].astype(float).round(4),  # (9, 9)
}
CAT["places"] = {"it → cat": (CAT["layer"], CAT["head"]), "the word before": (0, 2)}
_BEFORE = np.array([
    [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.0000, 0.9999, 0.0001, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.0000, 0.0001, 0.9998, 0.0001, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.0000, 0.0000, 0.0000, 0.9999, 0.0001, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.0000, 0.0000, 0.0000, 0.0000, 1.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.9999, 0.0001, 0.0000, 0.0000],
    [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 1.0000, 0.0000, 0.0000],
    [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.9997, 0.0002],
])  # fmt: skip
CAT["heads"] = {"it → cat": CAT["weights"], "the word before": _BEFORE}

# How MiniLM's makers call the parts of their model, and how we call ours: what load_bert goes by,
# and what notebook 14 shows. The last eight stand in each layer.
PLACES = {
    "embeddings.word_embeddings": "tokens",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "attention.self.query": "attention.W_q",
    "attention.self.key": "attention.W_k",
    "attention.self.value": "attention.W_v",
    "attention.output.dense": "attention.W_o",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "feed_forward.W1",
    "output.dense": "feed_forward.W2",
    "output.LayerNorm": "norm2",
}
