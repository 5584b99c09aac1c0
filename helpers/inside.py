"""Tools for looking inside a model: heads scored, heads switched off, activations patched, a lens.

    with switched_off(model, head=(1, 2)):                            # layer 1, head 2
        logits = model(ids)
    with patched(model, "layer 1/add 1", source=other, rows=[3]):     # as if it had read `other`
        logits = model(ids)

Layers and heads count from 1, and steps have the names that `helpers.anatomy.describe` gives them:
`Machine` makes the very same changes, and both here are `helpers.interventions.intervened`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from helpers.anatomy import describe
from helpers.interventions import intervened
from helpers.layers import MultiHeadAttention
from helpers.masks import causal_mask
from helpers.models import DecoderOnly
from helpers.operations import Program, run

Head = tuple[int, int] | str  # layer and head; or a path, "decoder/layer 1/cross-attention/head 2"
KINDS = ("one back", "first", "same token", "after the same")


@contextmanager
def switched_off(model: nn.Module, head: Head | list[Head]) -> Iterator[None]:
    """Within this, one head, or each of a list of heads, adds nothing: its context is zero.

    Raises ValueError for a head that the model does not have.
    """
    heads = head if isinstance(head, list) else [head]
    known = describe(model).operations
    changes = [{"at": _context(known, one), "off": True} for one in heads]
    with intervened(model, changes):
        yield


@contextmanager
def patched(model: nn.Module, at: str, *, source: Any = None, values: Any = None,
            rows: Sequence[int] | None = None) -> Iterator[None]:  # fmt: skip
    """Within this, a step has, in some rows or in all, the values that it has for another text.

    `source` are the ids of that text, (T,) or (1, T), or of both of a translator, {"text": …,
    "written": …}; or `values` (T, d) are given. Raises ValueError for a step that the model does
    not have, for rows that its values do not have, and unless one of the two is given. Meng et al.
    (2022); Wang et al. (2022).
    """
    if (source is None) == (values is None):
        raise ValueError("source or values must be given, and not both")
    values = _step(model, at, source) if values is None else np.asarray(values, dtype=float)
    rows = range(len(values)) if rows is None else rows
    if outside := [row for row in rows if not 0 <= row < len(values)]:
        raise ValueError(f"rows has {outside[0]}, but must be from 0 to {len(values) - 1}")
    with intervened(model, [{"at": at, "row": r, "values": values[r].tolist()} for r in rows]):
        yield


class HeadScores(NamedTuple):
    """What share of attention each head spends on the keys of a kind, and what chance would."""

    heads: list[tuple[int, int]]  # layer and head, from 1
    kinds: tuple[str, ...]
    shares: np.ndarray  # (heads, kinds)
    chance: np.ndarray  # (kinds,): a head that looks at all it may see alike


def mechanism_scores(model: nn.Module, ids: Tensor) -> HeadScores:
    """Score every head of a model that reads one text, on ids (B, T) without padding.

    The kinds: the token one back, the first token, earlier tokens like the query's own, and those
    right after such a token. A query counts where some key is of the kind. Raises TypeError for a
    model with a memory. Olsson et al. (2022).
    """
    if hasattr(model, "decoder"):
        raise TypeError(f"model is a {type(model).__name__}, but must read one text only")
    with torch.no_grad():
        model(ids)
    maps = [m.weights.cpu().numpy() for m in model.modules() if isinstance(m, MultiHeadAttention)]
    wanted = _kinds(ids.cpu().numpy())
    seen = _visible(model, ids.shape[1])
    alike = np.broadcast_to(seen / seen.sum(-1, keepdims=True), maps[0][:, 0].shape)
    heads = [(n, h) for n, m in enumerate(maps, 1) for h in range(1, m.shape[1] + 1)]
    each = [m[:, h] for m in maps for h in range(m.shape[1])]  # (B, T, T) of each head
    shares = np.array([[_share(w, keys) for keys in wanted] for w in [*each, alike]])
    return HeadScores(heads, KINDS, shares[:-1], shares[-1])


def logit_lens(model: DecoderOnly, ids: Tensor) -> Tensor:
    """What a model would say if it stopped early: (B, T) ids → (layers + 1, B, T, V) logits.

    The residual stream before the first layer and after each, through the last norm and the output.
    nostalgebraist (2020).
    """
    stream: list[Tensor] = []
    hooks = [model.layers[0].register_forward_pre_hook(lambda _, args: stream.append(args[0]))]
    hooks += [layer.register_forward_hook(lambda _, args, out: stream.append(out))
              for layer in model.layers]  # fmt: skip
    try:
        model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return model.output(model.norm(torch.stack(stream)))


def _kinds(ids: np.ndarray) -> list[np.ndarray]:
    """Which keys a head of each of KINDS looks for: (B, T, T) bool each."""
    T = ids.shape[1]
    same = (ids[:, :, None] == ids[:, None]) & np.tri(T, k=-1, dtype=bool)
    after = np.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    first = np.arange(T) < np.minimum(np.arange(T), 1)[:, None]  # not by the first itself
    alone = [np.broadcast_to(kind, same.shape) for kind in (np.eye(T, k=-1, dtype=bool), first)]
    return [*alone, same, after]


def _visible(model: nn.Module, T: int) -> np.ndarray:
    """Which keys a query may see: (T, T) bool; in a language model those of its window."""
    if not isinstance(model, DecoderOnly):
        return np.ones((T, T), dtype=bool)
    return causal_mask(T, window=model.layers[0].attention.window).numpy()


def _share(weights: np.ndarray, wanted: np.ndarray) -> float:
    """The mean share of attention on wanted keys, over the queries that have any; 0 if none has."""
    any_ = wanted.any(axis=-1)
    return float((weights * wanted).sum(axis=-1)[any_].mean()) if any_.any() else 0.0


def _context(known: Mapping[str, Any], head: Head) -> str:
    """The name of a head's context; the only head of an attention has no number."""
    if isinstance(head, str):
        names = [f"{head}/context"]
    else:
        layer, h = head
        at = f"layer {layer}/attention/head"
        names = [f"{at} {h}/context", *[f"{at}/context"] * (h == 1)]
    found = [name for name in names if name in known]
    if not found:
        heads = [name.removesuffix("/context") for name in known if name.endswith("/context")]
        raise ValueError(f"head is {head!r}, but must be one of {', '.join(heads)}")
    return found[0]


def _step(model: nn.Module, at: str, source: Any) -> np.ndarray:
    """The matrix of a step while the model reads another text: (T, d)."""
    program: Program = describe(model)
    if at not in program.operations:
        raise ValueError(f"at is {at!r}, but must be a step such as {program.output!r}")
    texts = source if isinstance(source, Mapping) else {"text": source}
    return run(program, {of: np.asarray(ids).reshape(-1).tolist() for of, ids in texts.items()})[at]
