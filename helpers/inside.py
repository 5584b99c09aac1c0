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
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
            attention, own = _head(model, one)  # features of the contexts, side by side
            hooks.enter_context(_changed({(attention.W_o, True): _set(0, columns=own)}))
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
        return _set(values[rows].to(x), rows)(x)

    with _changed(_at(model, at, put)):
        yield


class HeadScores(NamedTuple):
    """What share of attention each head spends on the keys of a kind, and what chance would."""

    heads: list[tuple[int, int]]  # layer and head, from 1
    kinds: tuple[str, ...]
    shares: np.ndarray  # (heads, kinds)
    alike: np.ndarray  # (heads, kinds): if each looked alike at all that its layer lets it see
    chance: np.ndarray  # (kinds,): the mean of that over the heads


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
    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    wanted = _kinds(ids.cpu().numpy())
    heads, shares, alike = [], [], []
    for n, attention in enumerate(attentions, 1):
        even = _even(model, attention, ids.shape[1])
        for h, weights in enumerate(attention.weights.cpu().numpy().swapaxes(0, 1), 1):
            heads.append((n, h))
            shares.append([_share(weights, keys) for keys in wanted])  # weights (B, T, T)
            alike.append([_share(even, keys) for keys in wanted])
    return HeadScores(heads, KINDS, np.array(shares), np.array(alike), np.mean(alike, axis=0))


def logit_lens(model: DecoderOnly, ids: Tensor) -> Tensor:
    """What a model would say if it stopped early: (B, T) ids → (layers + 1, B, T, V) logits.

    The residual stream before the first layer and after each, through the last norm and the output.
    nostalgebraist (2020).
    """
    stream: list[Tensor] = []
    spots = [(model.layers[0], True), *((layer, False) for layer in model.layers)]
    with _changed(dict.fromkeys(spots, _noted(stream))):
        model(ids)
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


def _even(model: nn.Module, attention: MultiHeadAttention, T: int) -> np.ndarray:
    """The weights of a head that looks alike at all keys it may see: (T, T)."""
    seen = torch.ones(T, T)
    if isinstance(model, DecoderOnly):
        seen = causal_mask(T, window=attention.window, keep_first=attention.keep_first)
    return F.normalize(seen.double(), p=1, dim=-1).numpy()


def _share(weights: np.ndarray, wanted: np.ndarray) -> float:
    """The mean share of attention on wanted keys, over the queries that have any; 0 if none has."""
    any_ = wanted.any(axis=-1)
    return float((weights * wanted).sum(axis=-1)[any_].mean()) if any_.any() else 0.0


def _head(model: nn.Module, head: Head) -> tuple[MultiHeadAttention, slice]:
    """The attention of a head, and which of its joined features are the head's."""
    found = {}
    attentions = [part for part in model.named_modules() if isinstance(part[1], MultiHeadAttention)]
    for n, (name, attention) in enumerate(attentions, 1):
        for h, (head_name, own) in enumerate(_heads(attention).items(), 1):
            found[f"{_path(model, name)}/{head_name}"] = found[n, h] = attention, own
    names = [name for name in found if isinstance(name, str)]
    if head not in (names if hasattr(model, "decoder") else found):
        raise ValueError(f"head is {head!r}, but must be one of {', '.join(names)}")
    return found[head]


def _heads(attention: MultiHeadAttention) -> dict[str, slice]:
    """The names of its heads, an only one without a number, and the joined features of each."""
    H, d = attention.num_heads, attention.d_head
    return {"head" if H == 1 else f"head {h + 1}": slice(h * d, (h + 1) * d) for h in range(H)}


def _path(model: nn.Module, name: str) -> str:
    """A module's name as the machine's path: "layers.0.norm1" is "layer 1/norm 1"."""
    name = name if hasattr(model, "decoder") else name.removeprefix("encoder.")
    if isinstance(getattr(model, "decoder", None), ResidualLayer):  # one layer, as in notebook 12
        name = re.sub(r"^(en|de)coder", r"\g<0>.layers.0", name)
    name = re.sub(r"(layer|expert)s\.(\d+)", lambda of: f"{of[1]} {int(of[2]) + 1}", name)
    return re.sub(r"norm(\d)", r"norm \1", name).replace(".", "/").replace("_", "-")


Change = Callable[[Tensor], Tensor]
Spot = tuple[nn.Module, bool]  # what a module is given (True), or what it gives


def _steps(model: nn.Module) -> dict[str, tuple[Spot, int, int]]:
    """The steps that hooks see, by their paths: where, in which call (from 0) of how many."""
    found = {}
    for name, part in model.named_modules():
        path = _path(model, name)
        found[path] = (part, False), 0, 1
        if isinstance(part, Stack):
            fed = model.norm if hasattr(model, "segments") else part[0]  # a norm comes first there
            found[path.removesuffix("layers") + "x + positions"] = (fed, True), 0, 1
        elif isinstance(part, ResidualLayer):
            calls = sum(hasattr(child, "normalized_shape") for child in part.children())
            for k in range(calls):
                found[f"{path}/add {k + 1}"] = (part.stream, False), k, calls
    return found


@contextmanager
def _changed(changes: Mapping[Spot, Change]) -> Iterator[None]:
    """Within this, what modules are given, or give, is what the changes make of it."""
    with ExitStack() as hooks:
        for (part, given), change in changes.items():
            if given:
                hook = part.register_forward_pre_hook(lambda _, x, f=change: (f(x[0]), *x[1:]))
            else:
                hook = part.register_forward_hook(lambda _, x, out, f=change: f(out))
            hooks.callback(hook.remove)
        yield


def _at(model: nn.Module, at: str, change: Change) -> dict[Spot, Change]:
    """A change of a step's matrix, as one of what a module is given or gives."""
    steps, count = _steps(model), itertools.count()
    if at not in steps:
        sums = next(name for name in steps if name.endswith("/add 1"))
        raise ValueError(f"at is {at!r}, but must be a step such as {sums!r}")
    spot, call, calls = steps[at]
    return {spot: lambda x: change(x) if next(count) % calls == call else x}


def _set(values: Any, rows: Any = slice(None), columns: slice = slice(None)) -> Change:
    """Rows and columns of a matrix, or all of them, are these values."""

    def change(x: Tensor) -> Tensor:
        x = x.clone()  # (B, T, d)
        x[:, rows, columns] = values
        return x

    return change


def _noted(seen: list[Tensor]) -> Change:
    """What comes is noted, and goes on as it is."""
    return lambda x: seen.append(x) or x


@torch.no_grad()
def _values(model: nn.Module, at: str, source: Any) -> Tensor:
    """The matrix of a step while the model reads another text: (T, d)."""
    seen: list[Tensor] = []
    with in_mode(model, training=False), _changed(_at(model, at, _noted(seen))):
        model(*_texts(model, source))
    return seen[-1][0]


def _texts(model: nn.Module, source: Any) -> list[Tensor]:
    """The ids of a text, or of both of a translator, as the model takes them: (1, T) each."""
    texts = [*source.values()] if isinstance(source, Mapping) else [source]
    device = next(model.parameters()).device
    return [torch.as_tensor(ids, device=device).reshape(1, -1) for ids in texts]


# ---------------------------------------------------------------- why this word

Parts = list[tuple[str, Tensor, Tensor]]  # a part's name, its vectors, and where it is added


def contributions(model: nn.Module, source: Any, word: int | Tensor,
                  rather_than: int | None = None, row: int = -1) -> dict[str, float]:  # fmt: skip
    """What each part of the stream adds to a word's logit, or to its lead over another's.

    `source` are ids as those of `patched`, `row` the place that predicts. The norms' divisors, the
    attention weights and all slopes stay as they are: then the stream is a sum, and one covector
    goes back through it. Largest first; they add up to the logit, in which "every word" is what all
    words get alike, or to the lead. An encoder acts through the heads that read it. A model that
    gives vectors is asked for a direction (d,). Raises ValueError for a word that the model does
    not have. Elhage et al. (2021).
    """
    parts: Parts = []
    with torch.enable_grad(), in_mode(model, training=False), ExitStack() as hooks:
        _take_apart(model, parts, hooks)
        logits = model(*_texts(model, source))[0, row]
        asked = logits @ _wanted(logits, word, rather_than)
        covectors = torch.autograd.grad(asked, [at for _, _, at in parts], allow_unused=True)
    adds: dict[str, float] = {}
    for (name, vectors, _), g in zip(parts, covectors, strict=True):
        if g is not None:  # what an encoder adds is not added here
            adds[name] = adds.get(name, 0.0) + (vectors * g).sum().item()
    if isinstance(word, int) and rather_than is None:
        adds["every word"] = logits.mean().item()
    return dict(sorted(filter(lambda part: part[1], adds.items()), key=lambda part: -abs(part[1])))


def _wanted(logits: Tensor, word: int | Tensor, rather_than: int | None) -> Tensor:
    """The direction that is asked: a word's lead over another, or over the mean of all."""
    if isinstance(word, Tensor):
        return word.to(logits)
    for name, i in (("word", word), ("rather_than", rather_than)):
        if i is not None and not 0 <= i < len(logits):
            raise ValueError(f"{name} is {i}, but must be an id from 0 to {len(logits) - 1}")
    one, other = (0 if i is None else F.one_hot(torch.tensor(i), len(logits)).to(logits)
                  for i in (word, rather_than))  # fmt: skip
    return one - (1 / len(logits) if rather_than is None else other)


def _take_apart(model: nn.Module, parts: Parts, hooks: ExitStack) -> None:
    """From here on, all that is added to a stream is noted, and no gradient goes past it."""
    side = "decoder/" if hasattr(model, "decoder") else ""
    for weight in model.parameters():
        hooks.callback(weight.requires_grad_, weight.requires_grad)
        weight.requires_grad_()
    parts += _constants(model, side)
    for name, part in model.named_modules():
        for own, split, b in (SPLIT[kind] for kind in SPLIT if isinstance(part, kind)):
            added, path = getattr(part, own, part), _path(model, name)
            hook = _noting(parts, partial(split, side, path, part))
            hooks.callback(added.register_forward_hook(hook).remove)
            if b and (bias := getattr(added, "bias", None)) is not None:
                parts.append((f"{path}/{b}", bias, bias))


def _constants(model: nn.Module, side: str) -> Parts:
    """The output's bias, or BERT's tables, which are read without calling them."""
    names = {"segment": "segments.weight", "positions": "positions.weight"}
    names = names if hasattr(model, "segments") else {f"{side}logits/b": "output.bias"}
    known = dict(model.named_parameters())
    return [(name, known[w], known[w]) for name, w in names.items() if w in known]


def _noting(parts: Parts, split: Callable) -> Callable:
    def hook(_: nn.Module, args: tuple, out: Tensor) -> Tensor:
        goes_on, found = split(args[0], out)  # as it came; and what is added here, by name
        point = sum((x.detach() for x in found.values()), torch.zeros(())).requires_grad_()
        parts.extend((name, x.detach(), point) for name, x in found.items())
        return point if goes_on is None else goes_on + point

    return hook


def _heads_add(_: str, path: str, part: MultiHeadAttention, joined: Tensor, out: Tensor) -> tuple:
    return part.W_o.bias, {f"{path}/{head}": joined[..., own] @ part.W_o.weight[:, own].T
                           for head, own in _heads(part).items()}  # fmt: skip


def _rows_add(side: str, path: str, table: nn.Module, x: Tensor, out: Tensor) -> tuple:
    name = side + ("positions" if path == "positions" else "x")
    waves = isinstance(table, PositionalEncoding)  # which are added to what comes
    return (x, {name: out - x}) if waves else (None, {name: out})


def _frozen(_: str, path: str, norm: nn.Module, x: Tensor, out: Tensor) -> tuple:
    """What a norm gives, its divisor a constant."""
    x = x - x.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else x
    eps = torch.finfo(x.dtype).eps if norm.eps is None else norm.eps
    y = norm.weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    return (y if getattr(norm, "bias", None) is None else y + norm.bias), {}


SPLIT: dict[type, tuple[str, Callable, str]] = {  # what of it, how; and what its bias is
    MultiHeadAttention: ("W_o", _heads_add, "out/b"),
    FeedForward: ("W2", lambda side, path, part, x, out: (  # experts are one part
        part.W2.bias, {path.split("/expert ")[0]: x @ part.W2.weight.T}), "out/b"),
    MixtureOfExperts: ("router", lambda side, path, part, x, out: (out.detach(), {}), ""),
    PositionalEncoding: ("", _rows_add, ""),
    nn.Embedding: ("", _rows_add, ""),
    nn.LayerNorm: ("", _frozen, "shift"),
    nn.RMSNorm: ("", _frozen, ""),
}  # fmt: skip


class Said(NamedTuple):
    """What a model says of a word: its probability, and its lead, in logits."""

    probability: float
    lead: float


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

        def mean(*spot: Any) -> Tensor:
            return torch.cat([run[spot] for run in runs] or [0 * seen[spot]]).mean(dim=0)

        said = {}
        for name, cut in _cuts(model, seen, mean):
            with _changed(cut):
                logits = model(*_texts(model, source))[0, row]
            lead = (logits @ _wanted(logits, word, rather_than)).item()
            said[name] = Said(logits.softmax(dim=-1)[word].item(), lead)
        return said


def _seen(model: nn.Module, source: Any) -> dict[Spot, Tensor]:
    """What a model's maps and feed-forwards are given and give for a text: (T, d) each."""
    kinds = nn.Linear, FeedForward, MixtureOfExperts
    parts = [part for part in model.modules() if isinstance(part, kinds)]
    seen: dict[Spot, list[Tensor]] = {(part, at): [] for part in parts for at in (True, False)}
    with _changed({spot: _noted(found) for spot, found in seen.items()}):
        model(*_texts(model, source))
    return {spot: found[-1][0] for spot, found in seen.items() if found}


Cuts = Iterator[tuple[str, dict[Spot, Change]]]


def _cuts(model: nn.Module, seen: dict[Spot, Tensor], mean: Callable) -> Cuts:
    """Each part's name, and what is changed to be without it."""
    yield "", {}
    for name, part in model.named_modules():
        path = _path(model, name)
        if path.endswith("/feed-forward") and (part, False) in seen:
            yield path, {(part, False): _set(mean(part, False))}
        elif isinstance(part, MultiHeadAttention):
            yield from _attention_cuts(path, part, seen, mean)


def _attention_cuts(path: str, part: MultiHeadAttention, seen: dict, mean: Callable) -> Cuts:
    for head, own in _heads(part).items():
        yield f"{path}/{head}", {(part.W_o, True): _set(mean(part.W_o, True)[own], columns=own)}
    latent = ("W_up_k", "W_turned", "W_up_v")  # make keys and values of one small vector
    maps = [getattr(part, W) for W in (latent if hasattr(part, "W_down") else ("W_k", "W_v"))]
    for j in range(len(seen[maps[0], False])):
        cut = {(W, False): _set(mean(W, False), j) for W in maps}
        if not path.endswith("cross-attention"):  # a word still reads itself
            cut[part.W_o, True] = _set(seen[part.W_o, True][j], j)
        yield f"{path}/word {j + 1}", cut
