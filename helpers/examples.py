"""The smallest example: seven words and one attention head, checked without a pencil."""

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
