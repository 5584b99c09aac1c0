"""Tools for looking inside a model: heads scored, heads switched off, activations patched, a lens.

    with switched_off(model, head=(1, 2)):                            # layer 1, head 2
        logits = model(ids)
    with patched(model, "layer 1/add 1", source=other, rows=[3]):     # as if it had read `other`
        logits = model(ids)

Layers and heads count from 1, and steps are called as the machine calls them. All of it is done by
PyTorch's own hooks on the model's modules, and undone at the end of the `with`.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from helpers.layers import MultiHeadAttention, ResidualLayer, Stack, in_mode
from helpers.masks import causal_mask
from helpers.models import DecoderOnly

Head = tuple[int, int] | str  # layer and head; or a path, "decoder/layer 1/cross-attention/head 2"
KINDS = ("one back", "first", "same token", "after the same")


@contextmanager
def switched_off(model: nn.Module, head: Head | list[Head]) -> Iterator[None]:
    """Within this, one head, or each of a list of heads, adds nothing: its context is zero.

    Raises ValueError for a head that the model does not have.
    """
    with ExitStack() as hooks:
        for one in head if isinstance(head, list) else [head]:
            attention, own = _head(model, one)

            def without(_: nn.Module, args: tuple, own: slice = own) -> Tensor:
                joined = args[0].clone()  # (B, T, H · d_head): the contexts side by side
                joined[..., own] = 0
                return joined

            hooks.callback(attention.W_o.register_forward_pre_hook(without).remove)
        yield


@contextmanager
def patched(model: nn.Module, at: str, *, source: Any = None, values: Any = None,
            rows: Sequence[int] | None = None) -> Iterator[None]:  # fmt: skip
    """Within this, a step has, in some rows or in all, the values that it has for another text.

    `source` are the ids of that text, (T,) or (1, T), or of both of a translator, {"text": …,
    "written": …}; or `values` (T, d) are given. Steps are "x + positions", the sums around a
    layer's parts, "layer 1/add 1", and what a part gives, such as "layer 1/attention" or "norm".
    Raises ValueError for a step that the model does not have, for rows that its values do not have,
    and unless one of the two is given. Meng et al. (2022); Wang et al. (2022).
    """
    if (source is None) == (values is None):
        raise ValueError("source or values must be given, and not both")
    values = _values(model, at, source) if values is None else torch.as_tensor(np.asarray(values))
    rows = [*range(len(values))] if rows is None else [*rows]
    if outside := [row for row in rows if not 0 <= row < len(values)]:
        raise ValueError(f"rows has {outside[0]}, but must be from 0 to {len(values) - 1}")

    def put(x: Tensor) -> Tensor:
        if max(rows, default=0) >= x.shape[-2]:
            raise ValueError(f"rows has {max(rows)}, but {x.shape[-2]} tokens are read: no cache")
        x = x.clone()  # (B, T, d)
        x[:, rows] = values[rows].to(x)
        return x

    with _changed(model, at, put):
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


def _head(model: nn.Module, head: Head) -> tuple[MultiHeadAttention, slice]:
    """The attention of a head, and which of its joined features are the head's."""
    found = {}
    attentions = [part for part in model.named_modules() if isinstance(part[1], MultiHeadAttention)]
    for n, (name, attention) in enumerate(attentions, 1):
        for h in range(attention.num_heads):
            number = f" {h + 1}" if attention.num_heads > 1 else ""  # an only head has none
            place = attention, slice(h * attention.d_head, (h + 1) * attention.d_head)
            found[f"{_path(model, name)}/head{number}"] = found[n, h + 1] = place
    names = [name for name in found if isinstance(name, str)]
    if head not in (names if hasattr(model, "decoder") else found):
        raise ValueError(f"head is {head!r}, but must be one of {', '.join(names)}")
    return found[head]


def _path(model: nn.Module, name: str) -> str:
    """A module's name as the machine's path: "layers.0.norm1" is "layer 1/norm 1"."""
    name = name if hasattr(model, "decoder") else name.removeprefix("encoder.")
    name = re.sub(r"layers\.(\d+)", lambda found: f"layer {int(found[1]) + 1}", name)
    return re.sub(r"norm(\d)", r"norm \1", name).replace(".", "/").replace("_", "-")


class _Step(NamedTuple):
    """Where a step is seen: what a module gives in its n-th call of several, or is given (0)."""

    module: nn.Module
    call: int = 1
    calls: int = 1  # in one forward


def _steps(model: nn.Module) -> dict[str, _Step]:
    """The steps of a model that hooks see, by their paths."""
    found = {}
    for name, part in model.named_modules():
        path = _path(model, name)
        found[path] = _Step(part)
        if isinstance(part, Stack):
            begin = path.removesuffix("layers")
            fed = model.norm if hasattr(model, "segments") else part[0]  # a norm comes first there
            found[f"{begin}x + positions"] = _Step(fed, call=0)
        elif isinstance(part, ResidualLayer):
            calls = sum(hasattr(child, "normalized_shape") for child in part.children())
            for k in range(1, calls + 1):
                found[f"{path}/add {k}"] = _Step(part.stream, k, calls)
    return found


@contextmanager
def _changed(model: nn.Module, at: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Within this, a step's matrix is what `change` makes of it."""
    steps, count = _steps(model), itertools.count()
    if at not in steps:
        sums = next(name for name in steps if name.endswith("/add 1"))
        raise ValueError(f"at is {at!r}, but must be a step such as {sums!r}")
    module, call, calls = steps[at]
    if call == 0:
        hook = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    else:
        hook = module.register_forward_hook(
            lambda _, args, out: change(out) if next(count) % calls == call - 1 else out
        )
    try:
        yield
    finally:
        hook.remove()


@torch.no_grad()
def _values(model: nn.Module, at: str, source: Any) -> Tensor:
    """The matrix of a step while the model reads another text: (T, d)."""
    seen: list[Tensor] = []
    texts = [*source.values()] if isinstance(source, Mapping) else [source]
    device = next(model.parameters()).device
    with in_mode(model, training=False), _changed(model, at, lambda x: seen.append(x) or x):
        model(*(torch.as_tensor(ids, device=device).reshape(1, -1) for ids in texts))
    return seen[-1][0]
