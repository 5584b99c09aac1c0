"""From text to vectors: tokens, vocabulary, ids, bigrams, one-hot rows, embeddings."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from helpers.shapes import need, shaped


def tokenize(sentence: str, lower: bool = True) -> list[str]:
    """Split a sentence into words and punctuation marks.

    `won't` stays one token; with `lower=False` capitals are kept.
    Raises TypeError for anything but a string.
    """
    if not isinstance(sentence, str):
        raise TypeError(f"sentence is a {type(sentence).__name__}, but must be a str")
    words = re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", sentence)
    return [word.lower() for word in words] if lower else words


def build_vocab(sentences: Sequence[str]) -> dict[str, int]:
    """Number the distinct tokens of the sentences 0 … V-1, in order of first appearance.

    Tokens are what white space separates.
    Raises ValueError for an empty list or a sentence without a token.
    """
    distinct = dict.fromkeys(token for tokens in _split(sentences) for token in tokens)
    return {token: i for i, token in enumerate(distinct)}


def encode(tokens: Iterable[str], vocab: Mapping[str, int]) -> np.ndarray:
    """Look up the id of each token: T tokens → (T,) int64.

    Raises ValueError that names a token outside the vocabulary.
    """
    if isinstance(tokens, str):
        raise TypeError("tokens is a str, but must be a list of tokens: split the sentence first")
    tokens = list(tokens)
    if unknown := [token for token in tokens if token not in vocab]:
        raise ValueError(f"token {unknown[0]!r} is not among the {len(vocab)} of the vocabulary")
    return np.array([vocab[token] for token in tokens], dtype=np.int64)


def decode(ids: Iterable[int], vocab: Mapping[str, int]) -> list[str]:
    """Turn ids back into tokens, the inverse of `encode`.

    Raises ValueError that names an id outside the vocabulary.
    """
    token_of = {id_: token for token, id_ in vocab.items()}
    ids = [int(id_) for id_ in ids]
    if unknown := [id_ for id_ in ids if id_ not in token_of]:
        raise ValueError(f"id {unknown[0]} is not in the vocabulary of {len(vocab)} tokens")
    return [token_of[id_] for id_ in ids]


def bigram_probs(
    sentences: Sequence[str], vocab: Mapping[str, int] | Sequence[str], smoothing: float = 0.0
) -> np.ndarray:
    """Estimate P(next word | word) by counting: (V, V), one row per previous word.

    `smoothing` is added to every count; without it, a word that nothing follows has a row of
    zeros. `vocab` maps words to ids or lists the words in the order of their ids.
    Raises ValueError for an empty list, an unknown word or a negative smoothing.
    """
    need(smoothing >= 0, "smoothing", smoothing, "at least 0")
    ids = vocab if isinstance(vocab, Mapping) else {word: i for i, word in enumerate(vocab)}
    counts = np.full((len(ids), len(ids)), float(smoothing))
    for tokens in _split(sentences):
        row = encode(tokens, ids)
        np.add.at(counts, (row[:-1], row[1:]), 1)
    total = counts.sum(axis=1, keepdims=True)
    return counts / np.where(total == 0, 1, total)


def one_hot(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Write each id as a row with a single 1: (…, T) int → (…, T, V) float32.

    Raises TypeError for ids that are not integers, ValueError for one outside 0 … V-1.
    """
    ids = np.asarray(ids)
    _check_ids(ids, vocab_size)
    return (ids[..., None] == np.arange(vocab_size)).astype(np.float32)


@shaped(onehot="… V", table="V D")
def embed(onehot: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Pick the rows of an embedding table by one-hot rows: (…, T, V), (V, D) → (…, T, D).

    Raises ValueError when the table has not one row per word.
    """
    return onehot @ table


def _split(sentences: Sequence[str]) -> list[list[str]]:
    if isinstance(sentences, str):
        raise TypeError("sentences is a str, but must be a list of sentences")
    rows = [sentence.split() for sentence in sentences]
    if not rows:
        raise ValueError("sentences is empty, but must hold at least one sentence")
    if not all(rows):
        raise ValueError(f"sentences[{rows.index([])}] is empty, but must hold at least one token")
    return rows


def _check_ids(ids: np.ndarray, vocab_size: int) -> None:
    if not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"ids has dtype {ids.dtype}, but must hold integers")
    bad = ids[(ids < 0) | (ids >= vocab_size)]
    if bad.size:
        raise ValueError(f"ids holds {bad[0]}, but must lie in 0 … {vocab_size - 1}")
