"""From sentence pairs to batches of ids: what the model reads, and what it has to say."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from helpers.attention import causal_mask
from helpers.decoding import shift_right
from helpers.text import build_vocab, encode
from helpers.training.grammar import Pair

PAD, START, END = "<pad>", "<start>", "<end>"  # ids 0, 1, 2 of every vocabulary


class Examples(NamedTuple):
    """Sentence pairs as ids, int64, filled up with pad_id: one row per pair.

    `source` (N, S) is English; `targets` (N, T) is French and ends with <end>; `inputs` (N, T) is
    what the decoder has read when it must say each target: <start>, then the targets before it.
    """

    source: Tensor
    inputs: Tensor
    targets: Tensor

    def pick(self, rows: Any, pad_id: int) -> "Examples":
        """Some of the pairs, without columns that are padding in all of them."""
        picked = (ids[rows] for ids in self)
        return Examples(*(ids[:, (ids != pad_id).any(dim=0)] for ids in picked))

    def to(self, device: torch.device | str) -> "Examples":
        """The same pairs on a device, the model's."""
        return Examples(*(ids.to(device) for ids in self))


def lm_pairs(ids: Any) -> tuple[Any, Any]:
    """Split sentences into inputs and targets, target t being input t + 1: (…, T) → (…, T−1) twice.

    Takes arrays and tensors. Raises ValueError for fewer than two tokens.
    """
    if np.ndim(ids) < 1 or np.shape(ids)[-1] < 2:
        raise ValueError(f"ids has shape {tuple(np.shape(ids))}, but must be (…, T) with T ≥ 2")
    return ids[..., :-1], ids[..., 1:]


def combined_mask(ids: Any, pad_id: int) -> Any:
    """Let each query see the real keys up to itself: (B, T) → (B, 1, T, T) bool, an axis for heads.

    Takes arrays and tensors. Padded queries see the real keys before them. Raises ValueError for
    ids that are not a batch of rows.
    """
    if np.ndim(ids) != 2 or 0 in np.shape(ids):
        raise ValueError(f"ids has shape {tuple(np.shape(ids))}, but must be (B, T)")
    causal = causal_mask(ids.shape[1])  # (T, T)
    if isinstance(ids, Tensor):
        causal = torch.from_numpy(causal).to(ids.device)
    return causal & (ids != pad_id)[:, None, None, :]


def vocabularies(pairs: Sequence[Pair]) -> tuple[dict[str, int], dict[str, int]]:
    """Number the English and the French words, after <pad>, <start> and <end>.

    Raises ValueError for an empty list.
    """
    special = [f"{PAD} {START} {END}"]
    english = build_vocab(special + [pair.english for pair in pairs])
    return english, build_vocab(special + [pair.french for pair in pairs])


def examples(
    pairs: Sequence[Pair], english: Mapping[str, int], french: Mapping[str, int]
) -> Examples:
    """Turn pairs into ids: N pairs → (N, S) source, (N, T) inputs, (N, T) targets.

    Raises ValueError for an empty list or a word outside its vocabulary.
    """
    targets = pad_ids([[*pair.french.split(), END] for pair in pairs], french)
    inputs = shift_right(targets, french[START])
    inputs[targets == french[PAD]] = french[PAD]  # nothing follows <end>
    source = pad_ids([pair.english.split() for pair in pairs], english)
    return Examples(*map(torch.from_numpy, (source, inputs, targets)))


def pad_ids(sentences: Sequence[Sequence[str]], vocab: Mapping[str, int]) -> np.ndarray:
    """Look up the ids of tokenized sentences and fill up the shorter ones: N of them → (N, T).

    Raises ValueError for an empty list or a token outside the vocabulary.
    """
    if not sentences:
        raise ValueError("sentences is empty, but must hold at least one")
    ids = np.full((len(sentences), max(map(len, sentences))), vocab[PAD], dtype=np.int64)
    for row, tokens in zip(ids, sentences, strict=True):
        row[: len(tokens)] = encode(tokens, vocab)
    return ids
