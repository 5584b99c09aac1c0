"""From the decoder's vectors to words: logits, probabilities, sampling, and the loss, in NumPy."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from helpers.attention import softmax
from helpers.shapes import need, shaped


@shaped(h="… T D", W_vocab="D V")
def next_token_logits(h: np.ndarray, W_vocab: np.ndarray) -> np.ndarray:
    """Score every word of the vocabulary from the last position: (…, T, D), (D, V) → (…, V).

    Raises ValueError when W_vocab is not as high as h is wide. Paper, section 3.4.
    """
    return h[..., -1, :] @ W_vocab


@shaped(logits="V")
def next_token_probs(
    logits: np.ndarray,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> np.ndarray:
    """Turn logits into probabilities: temperature, then top-k, then top-p. (V,) → (V,).

    Top-p keeps the smallest set of most likely tokens whose probability reaches top_p. What is
    cut gets 0, the rest sums to 1. Raises ValueError for logits that are not finite,
    temperature ≤ 0, top_k < 1 or top_p outside (0, 1]. Holtzman et al. (2020).
    """
    _check_sampling(logits, temperature, top_k, top_p)
    probs = softmax(np.asarray(logits) / temperature)
    order = np.argsort(-probs, kind="stable")  # most likely first
    if top_k is not None:
        probs = _keep(probs, order[:top_k])
    if top_p is not None:
        before = np.cumsum(probs[order]) - probs[order]  # what the likelier tokens have already
        probs = _keep(probs, order[before < top_p])
    return probs


@shaped(probs="V")
def sample_token(probs: np.ndarray, rng: np.random.Generator) -> int:
    """Draw one id according to its probability: (V,) → int.

    Raises ValueError for probabilities that are negative or do not sum to 1.
    """
    probs = np.asarray(probs, dtype=np.float64)
    sums = (probs >= 0).all() and np.isclose(probs.sum(), 1, atol=1e-4)
    need(sums, "the sum of probs", f"{probs.sum():.4f}", "1, and no number below 0")
    return int(rng.choice(len(probs), p=probs / probs.sum()))


def greedy_decode(
    step: Callable[[list[int]], np.ndarray], start_id: int, end_id: int, max_len: int
) -> list[int]:
    """Append the most likely token again and again, until end_id or max_len of them.

    `step` maps the ids so far to logits (len(ids), V). Returns the generated ids, without
    start_id, with end_id if it came. Raises ValueError for a max_len below 0.
    """
    need(max_len >= 0, "max_len", max_len, "at least 0")
    ids = [start_id]
    while len(ids) <= max_len and (len(ids) == 1 or ids[-1] != end_id):
        ids.append(int(np.argmax(step(list(ids))[-1])))
    return ids[1:]


@shaped(targets="B T")
def shift_right(targets: np.ndarray, start_id: int) -> np.ndarray:
    """Make the decoder's input: start_id, then the targets without their last. (B, T) → (B, T).

    Raises ValueError for targets that are not a batch of rows. Paper, section 3.1.
    """
    first = np.full((targets.shape[0], 1), start_id, dtype=targets.dtype)
    return np.concatenate([first, targets[:, :-1]], axis=1)


@shaped(logits="… V")
def cross_entropy(logits: np.ndarray, targets: np.ndarray, pad_id: int) -> float:
    """Average -log p(target) over the tokens that are not padding: (B, T, V), (B, T) → float.

    In nats. Raises ValueError when the shapes do not fit, a target is outside the vocabulary, or
    all is padding.
    """
    logits, targets = np.asarray(logits), np.asarray(targets)
    real = targets != pad_id
    _check_targets(logits, targets, real, pad_id)
    picked, logits = targets[real], logits[real].astype(np.float64)  # (N,), (N, V)
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(logits).sum(axis=-1))
    return float((log_sum - logits[np.arange(len(picked)), picked]).mean())


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    *,
    end_id: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None = None,
    cached: bool = True,
) -> list[list[int]]:
    """Continue each prompt until end_id or max_new_tokens; returns the new ids, end_id included.

    `model` is a `helpers.models.DecoderOnly`, or `translator.answering(src)` with the start token
    as each prompt; its `continuation` gives a `helpers.cache.Continuation`. The likeliest token is
    taken, or, with an rng, one drawn as `next_token_probs` says, row by row. Prompts may differ in
    length. With `cached`, each token is read once; without, all again for each new one, with the
    same result. Raises ValueError for an empty prompt, more tokens than the context holds, or a
    temperature, top_k or top_p without rng.
    """
    choose = _choice(temperature, top_k, top_p, rng)
    ids = _check_prompts(prompts, max_new_tokens)
    written: list[list[int]] = [[] for _ in ids]
    newest: dict[int, int] = {}
    with model.continuation(ids, max_new_tokens, cached) as step:
        for _ in range(max_new_tokens):
            rows = list(newest) or range(len(ids))
            newest = {row: choose(z) for row, z in zip(rows, step(newest), strict=True)}
            for row, i in newest.items():
                written[row].append(i)
            newest = {row: i for row, i in newest.items() if i != end_id}
            if not newest:
                break
    return written


def _keep(probs: np.ndarray, ids: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(probs)
    kept[ids] = probs[ids]
    return kept / kept.sum()


def _choice(
    temperature: float, top_k: int | None, top_p: float | None, rng: np.random.Generator | None
) -> Callable[[np.ndarray], int]:
    """The likeliest token of logits (V,), or one that rng draws."""
    if rng is None:
        if temperature != 1.0 or top_k is not None or top_p is not None:
            raise ValueError("rng is None, but temperature, top_k and top_p need one to draw with")
        return lambda logits: int(np.argmax(logits))
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng is a {type(rng).__name__}, but must be a numpy.random.Generator")
    _check_sampling(np.zeros(1), temperature, top_k, top_p)
    return lambda logits: sample_token(next_token_probs(logits, temperature, top_k, top_p), rng)


def _check_prompts(prompts: Sequence[Sequence[int]], max_new_tokens: int) -> list[list[int]]:
    """The prompts as lists of Python integers."""
    need(max_new_tokens >= 0, "max_new_tokens", max_new_tokens, "at least 0")
    if len(prompts) == 0:
        raise ValueError("prompts is empty, but must hold at least one")
    for row, prompt in enumerate(prompts):
        if isinstance(prompt, str) or not hasattr(prompt, "__len__"):
            kind = type(prompt).__name__
            raise TypeError(f"prompts[{row}] is a {kind}, but must be a list of ids")
        if len(prompt) == 0:
            raise ValueError(f"prompts[{row}] is empty, but must hold at least one id")
    return [[operator.index(i) for i in prompt] for prompt in prompts]


def _check_sampling(
    logits: np.ndarray, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    if not np.isfinite(logits).all():
        raise ValueError("logits must be finite numbers, but hold NaN or infinity")
    need(temperature > 0, "temperature", temperature, "greater than 0")
    need(top_k is None or top_k >= 1, "top_k", top_k, "at least 1")
    need(top_p is None or 0 < top_p <= 1, "top_p", top_p, "greater than 0 and at most 1")


def _check_targets(logits: np.ndarray, targets: np.ndarray, real: np.ndarray, pad_id: int) -> None:
    if logits.shape[:-1] != targets.shape:
        raise ValueError(f"targets has shape {targets.shape}, but must fit logits {logits.shape}")
    if not real.any():
        raise ValueError(f"targets holds nothing but pad_id {pad_id}, but needs a real token")
    low, high = targets[real].min(), targets[real].max()
    if low < 0 or high >= logits.shape[-1]:
        raise ValueError(f"targets must lie in 0 … {logits.shape[-1] - 1}, but holds {high}")
