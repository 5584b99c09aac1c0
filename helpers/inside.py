"""Tools for looking inside a model: heads scored, switched off, patched; a lens; why this word.

    with switched_off(model, head=(1, 2)):                            # layer 1, head 2
        logits = model(ids)
    with patched(model, "layer 1/add 1", source=other, rows=[3]):     # as if it had read `other`
        logits = model(ids)
    contributions(model, ids, word=3, rather_than=7)                  # what adds up to the lead
    sweep(model, ids, word=3, others=texts)                           # what each is missed

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

from helpers.layers import (
    FeedForward,
    MixtureOfExperts,
    MultiHeadAttention,
    PositionalEncoding,
    ResidualLayer,
    Stack,
    in_mode,
)
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
        for h, path in enumerate(_heads(_path(model, name), attention)):
            place = attention, slice(h * attention.d_head, (h + 1) * attention.d_head)
            found[path] = found[n, h + 1] = place
    names = [name for name in found if isinstance(name, str)]
    if head not in (names if hasattr(model, "decoder") else found):
        raise ValueError(f"head is {head!r}, but must be one of {', '.join(names)}")
    return found[head]


def _path(model: nn.Module, name: str) -> str:
    """A module's name as the machine's path: "layers.0.norm1" is "layer 1/norm 1"."""
    name = name if hasattr(model, "decoder") else name.removeprefix("encoder.")
    if isinstance(getattr(model, "decoder", None), ResidualLayer):  # one layer, as in notebook 12
        name = re.sub(r"^(en|de)coder", r"\g<0>.layers.0", name)
    name = re.sub(r"(layer|expert)s\.(\d+)", lambda of: f"{of[1]} {int(of[2]) + 1}", name)
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
    with in_mode(model, training=False), _changed(model, at, lambda x: seen.append(x) or x):
        model(*_texts(model, source))
    return seen[-1][0]


def _texts(model: nn.Module, source: Any) -> list[Tensor]:
    """The ids of a text, or of both of a translator, as the model takes them: (1, T) each."""
    texts = [*source.values()] if isinstance(source, Mapping) else [source]
    device = next(model.parameters()).device
    return [torch.as_tensor(ids, device=device).reshape(1, -1) for ids in texts]


# ---------------------------------------------------------------- why this word

Wanted = int | Tensor  # a word's id; or a direction (d,), of a model that gives vectors
Parts = list[tuple[str, Tensor, Tensor]]  # a part's name, its vectors, and where it is added


def contributions(model: nn.Module, source: Any, word: Wanted, rather_than: int | None = None, *,
                  row: int = -1) -> dict[str, float]:  # fmt: skip
    """What each part of the stream adds to a word's logit, or to its lead over another's.

    `source` are ids as those of `patched`, `row` the place that predicts. The norms' divisors, the
    attention weights and all slopes stay as they are: then the stream is a sum, and one covector
    goes back through it. Largest first; they add up to the logit, in which "every word" is what all
    words get alike, or to the lead. An encoder acts through the heads that read it. Raises
    ValueError for a word that the model does not have. Elhage et al. (2021).
    """
    parts: Parts = []
    with torch.enable_grad(), in_mode(model, training=False), ExitStack() as hooks:
        _take_apart(model, parts, hooks)
        logits = model(*_texts(model, source))[0, row]
    wanted = _wanted(logits, word, rather_than)
    points = [point for _, _, point in parts]
    covectors = torch.autograd.grad(logits @ wanted, points, allow_unused=True)
    adds: dict[str, float] = {}
    for (name, vectors, _), g in zip(parts, covectors, strict=True):
        if g is not None:  # what an encoder adds is not added here
            adds[name] = adds.get(name, 0.0) + (vectors * g).sum().item()
    if isinstance(word, int) and rather_than is None:
        adds["every word"] = logits.mean().item()
    return dict(sorted(filter(lambda part: part[1], adds.items()), key=lambda part: -abs(part[1])))


def _wanted(logits: Tensor, word: Wanted, rather_than: int | None) -> Tensor:
    """The direction that is asked: a word's lead over another, or over the mean of all."""
    if isinstance(word, Tensor):
        return word.to(logits)
    for name, i in (("word", word), ("rather_than", rather_than)):
        if i is not None and not 0 <= i < len(logits):
            raise ValueError(f"{name} is {i}, but must be an id from 0 to {len(logits) - 1}")
    wanted = torch.zeros_like(logits).detach() - (1 / len(logits) if rather_than is None else 0)
    wanted[word] += 1
    if rather_than is not None:
        wanted[rather_than] -= 1
    return wanted


def _take_apart(model: nn.Module, parts: Parts, hooks: ExitStack) -> None:
    """From here on, all that is added to a stream is noted, and no gradient goes past it."""
    side = "decoder/" if hasattr(model, "decoder") else ""
    for name, part in model.named_modules():
        path = _path(model, name)
        if isinstance(part, MultiHeadAttention):
            _note(parts, hooks, part.W_o, lambda x, out, at=path, of=part: _of_heads(at, of, x))
        elif isinstance(part, FeedForward):
            _note(parts, hooks, part.W2, lambda x, out, at=path, of=part: _of_words(at, of, out))
        elif isinstance(part, MixtureOfExperts):
            _note(parts, hooks, part.router, lambda x, out: {})
        elif isinstance(part, nn.Embedding):
            own = side + ("positions" if name == "positions" else "x")
            _note(parts, hooks, part, lambda x, out, own=own: {own: out})
        elif isinstance(part, PositionalEncoding):
            _note(parts, hooks, part, lambda x, out: {f"{side}positions": out - x}, through=True)
        elif isinstance(part, nn.LayerNorm | nn.RMSNorm):
            hooks.callback(part.register_forward_hook(_frozen).remove)
            _note(parts, hooks, part, _constant(f"{path}/shift", part), through=True)
        elif name == "output":
            _note(parts, hooks, part, _constant(f"{side}logits/b", part), through=True)
        elif name == "encoder" and hasattr(model, "segments"):
            before = model.norm.register_forward_pre_hook(_tables(parts, model))
            hooks.callback(before.remove)


def _note(parts: Parts, hooks: ExitStack, part: nn.Module, split: Callable,
          through: bool = False) -> None:  # fmt: skip
    """Note what a module adds to a stream: all that it gives, or a part, and the rest goes on."""

    def hook(_: nn.Module, args: tuple, out: Tensor) -> Tensor:
        found = split(args[0], out)
        return (out if through else out.detach()) + _point(parts, found) - _sum(found)

    hooks.callback(part.register_forward_hook(hook).remove)


def _point(parts: Parts, found: Mapping[str, Tensor]) -> Tensor:
    """The sum of some vectors, as a place that a covector comes back to."""
    point = _sum(found).requires_grad_()
    parts += [(name, x.detach(), point) for name, x in found.items()]
    return point


def _sum(found: Mapping[str, Tensor]) -> Tensor:
    return sum((x.detach() for x in found.values()), torch.zeros(()))


def _constant(name: str, part: nn.Module) -> Callable:
    b = getattr(part, "bias", None)
    return lambda x, out: {} if b is None else {name: b}


def _of_heads(path: str, attention: MultiHeadAttention, joined: Tensor) -> dict[str, Tensor]:
    """What each head adds to the stream, (1, T, D), and the bias."""
    W, d = attention.W_o.weight, attention.d_head
    each = zip(_heads(path, attention), joined.split(d, -1), W.split(d, 1), strict=True)
    found = {name: x @ own.T for name, x, own in each}
    return found | _constant(f"{path}/out/b", attention.W_o)(None, None)


def _heads(path: str, attention: MultiHeadAttention) -> list[str]:
    many = attention.num_heads > 1  # an only head has no number
    return [f"{path}/head{f' {h + 1}' if many else ''}" for h in range(attention.num_heads)]


def _of_words(path: str, part: FeedForward, out: Tensor) -> dict[str, Tensor]:
    bias = _constant(f"{path}/out/b", part.W2)(None, None)
    return {path.split("/expert ")[0]: out - _sum(bias)} | bias  # experts are one part


def _tables(parts: Parts, model: nn.Module) -> Callable:
    """Of BERT, which reads its tables without calling them."""

    def hook(_: nn.Module, args: tuple) -> Tensor:
        segment, places = model.segments.weight[0], model.positions.weight[: args[0].shape[1]]
        found = {"x": args[0] - segment - places, "segment": segment, "positions": places}
        return _point(parts, found)

    return hook


def _frozen(norm: nn.Module, args: tuple, out: Tensor) -> Tensor:
    """What a norm gives, its divisor a constant."""
    x = args[0]
    x = x - x.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else x
    eps = torch.finfo(x.dtype).eps if norm.eps is None else norm.eps
    scaled = norm.weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    return scaled if getattr(norm, "bias", None) is None else scaled + norm.bias


class Said(NamedTuple):
    """What a model says of a word: its probability, and its lead, in logits."""

    probability: float
    lead: float


Cut = list[
    tuple[nn.Module, bool, Callable[[Tensor], Tensor]]
]  # of what a module is given, or gives


@torch.no_grad()
def sweep(model: nn.Module, source: Any, word: int, rather_than: int | None = None, *,
          others: Sequence[Any] = (), row: int = -1) -> dict[str, Said]:  # fmt: skip
    """What a model says of a word without each part in turn: a head, a feed-forward, a reading.

    Without "layer 1/attention/word 3" no other word reads the third one there. What is gone gives
    its mean over all words of `others`, texts as `source` is one; zero without them. The lead is
    that over another word, or over the mean of all logits. "" is what it says with all its parts.
    Wang et al. (2022), section 3.1.
    """
    with in_mode(model, training=False):
        seen, runs = _seen(model, source), [_seen(model, other) for other in others]
        means = {part: torch.cat([run[part] for run in runs] or [0 * x]).mean(dim=0)
                 for part, x in seen.items()}  # fmt: skip
        return {name: _said(model, source, cut, row, word, rather_than)
                for name, cut in _cuts(model, seen, means)}  # fmt: skip


def _said(model: nn.Module, source: Any, cut: Cut, row: int, word: int,
          rather_than: int | None) -> Said:  # fmt: skip
    with ExitStack() as hooks:
        for part, given, change in cut:
            if given:
                hook = part.register_forward_pre_hook(lambda _, args, f=change: f(args[0]))
            else:
                hook = part.register_forward_hook(lambda _, args, out, f=change: f(out))
            hooks.callback(hook.remove)
        logits = model(*_texts(model, source))[0, row]
    lead = logits @ _wanted(logits, word, rather_than)
    return Said(logits.softmax(dim=-1)[word].item(), lead.item())


Seen = dict[nn.Module, Tensor]  # of W_o what it is given, else what a module gives: (T, d)


def _seen(model: nn.Module, source: Any) -> Seen:
    """What a model's attentions and feed-forwards compute for a text."""
    seen: Seen = {}

    def keep(part: nn.Module, args: tuple, out: Tensor) -> None:
        seen[part] = (args[0] if part in inner else out)[0]

    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    inner = {part.W_o for part in attentions}
    added = {getattr(part, "feed_forward", None) for part in model.modules()} - {None}
    with ExitStack() as hooks:
        for part in inner | added | {W for one in attentions for W in (one.W_k, one.W_v)}:
            hooks.callback(part.register_forward_hook(keep).remove)
        model(*_texts(model, source))
    return seen


def _cuts(model: nn.Module, seen: Seen, means: Seen) -> Iterator[tuple[str, Cut]]:
    """Each part's name, and what is changed to be without it."""
    yield "", []
    for name, part in model.named_modules():
        path = _path(model, name)
        if part in seen and not isinstance(part, nn.Linear):
            yield path, [(part, False, _set(slice(None), means[part]))]
        if isinstance(part, MultiHeadAttention):
            for h, head in enumerate(_heads(path, part)):
                own = slice(h * part.d_head, (h + 1) * part.d_head)
                gone = _set(slice(None), means[part.W_o][own], own)
                yield head, [(part.W_o, True, gone)]
            for j in range(len(seen[part.W_k])):
                cut = [(W, False, _set(j, means[W])) for W in (part.W_k, part.W_v)]
                if not path.endswith("cross-attention"):  # a word still reads itself
                    cut.append((part.W_o, True, _set(j, seen[part.W_o][j])))
                yield f"{path}/word {j + 1}", cut


def _set(rows: Any, values: Tensor, columns: slice = slice(None)) -> Callable:
    def change(x: Tensor) -> Tensor:
        x = x.clone()  # (1, T, d)
        x[:, rows, columns] = values
        return x

    return change
