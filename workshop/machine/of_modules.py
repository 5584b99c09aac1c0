"""PyTorch's modules taken apart into operations: one function a kind of module of our layers.

`describe(model)` is the program of a whole model; the browser or `program.run` computes it.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from helpers import layers, models
from helpers.rotary import Rope
from workshop.arguments import as_array
from workshop.machine import program as ops
from workshop.machine.program import Program

READERS = layers.DecoderLayer | models.Decoder  # of a memory


def describe(model: nn.Module, x: Any = None, memory: Any = None, *,
             causal: bool = False) -> Program:  # fmt: skip
    """The program of a model, or of a part and the vectors (T, d) that it is to work on.

    `memory`, (S, d), and `causal` are those of the part's forward. A text has no padding. Raises
    TypeError for a module that is not known, ValueError for vectors that are missing or do not fit.
    """
    p = Program()
    try:
        _write(p, model, x, memory, causal)
    except AttributeError as error:
        known = "helpers.layers, helpers.models and helpers.pretrained"
        kind = type(model).__name__
        raise TypeError(f"model is a {kind}, but must be one of {known}") from error
    return p


def _write(p: Program, model: nn.Module, x: Any, memory: Any, causal: bool) -> None:
    if is_part(model):
        _part_alone(p, model, x, memory, causal)
    elif hasattr(model, "decoder"):
        _encoder_decoder(p, model)
    elif hasattr(model, "segments"):
        _sentence_encoder(p, model)
    elif isinstance(model, models.DecoderOnly):
        _decoder_only(p, model)
    else:
        raise AttributeError("parts that are known")


def is_part(model: nn.Module) -> bool:
    """Whether a module works on vectors and not on tokens: an attention, a layer, or several."""
    return _attends(model) or isinstance(model, layers.ResidualLayer | models.LayerStack)


def _attends(module: nn.Module) -> bool:
    own = ("W_down",) if hasattr(module, "latent") else ("W_k", "W_v")
    return all(hasattr(module, name) for name in ("num_heads", "W_q", *own, "W_o"))


# ---------------------------------------------------------------- layers


def attention(p: Program, at: str, module: layers.MultiHeadAttention, x: str,
              memory: str | None = None, causal: bool = False) -> str:  # fmt: skip
    """MultiHeadAttention, or LatentAttention, as operations."""
    parts = {name: part for name, part in module.named_children() if _normalises(part)}
    maps = {name: part for name, part in parts.items() if name.startswith("W_")}
    learned = {name: _weight(W) for name, W in maps.items()}
    learned |= {f"b{name[1:]}": _array(W.bias) for name, W in maps.items()}
    norms = {name: part for name, part in parts.items() if name.startswith("norm_")}
    learned |= {name: _array(norm.weight) for name, norm in norms.items()}
    scale = getattr(module, "scale", None)  # 1/√d unless the module says otherwise
    if hasattr(module, "check_places"):
        module.check_places(memory is None, causal)
    how = {"scale": scale, "causal": causal, "since": _since(module, [*norms.values()])}
    if hasattr(module, "latent"):
        return ops.latent_attention(p, at, x, learned, module.num_heads, **how)
    return ops.attention(p, at, x, learned, module.num_heads, memory=memory, **how)


def _since(module: layers.MultiHeadAttention, norms: list[nn.RMSNorm]) -> ops.Since:
    """Those of its options that a module has."""
    known = ("num_kv_heads", "window", "keep_first")
    said = {key: getattr(module, key) for key in known if hasattr(module, key)}
    latent = getattr(module, "latent", None)
    turned = latent.d_turned if latent else module.d_head
    said |= {"turning": _turning(getattr(module, "rope", None), turned)}
    said |= {"eps": _eps(norms[0])} if norms else {}
    return ops.Since(**said, sinks=_array(getattr(module, "sinks", None)))


def _turning(rope: float | Rope | None, d: int) -> dict[str, Any] | None:
    """How fast pairs turn: by base^(−2i/d), each slower by its own factor; all grow alike."""
    if not isinstance(rope, Rope):
        return rope and {"base": rope}
    slower = (rope.speeds(d) / Rope(rope.base).speeds(d)).tolist()
    stretched = {"slower": slower, "louder": rope.louder}
    return {"base": rope.base} | (stretched if rope.louder != 1 or set(slower) != {1} else {})


def feed_forward(p: Program, at: str, module: nn.Module, x: str) -> str:
    """FeedForward, or a MixtureOfExperts, as operations."""
    if not hasattr(module, "router"):
        return ops.feed_forward(p, at, x, _learned(module), _activation(module))
    experts = [_learned(expert) for expert in module.experts]
    kind = _activation(module.experts[0])
    return ops.mixture(p, at, x, _weight(module.router), experts, module.top_k, kind)


def _learned(module: layers.FeedForward) -> dict[str, Any]:
    """The weights of a feed-forward network."""
    maps = {"1": module.W1, "2": module.W2, "_gate": getattr(module, "W_gate", None)}
    maps = {name: linear for name, linear in maps.items() if linear is not None}
    learned = {f"W{name}": _weight(linear) for name, linear in maps.items()}
    return learned | {f"b{name}": _array(linear.bias) for name, linear in maps.items()}


def _activation(module: layers.FeedForward) -> str:
    """Which kind of operation bends the hidden numbers."""
    kinds = {nn.ReLU: "relu", nn.GELU: "gelu", nn.SiLU: "silu"}
    tanh = getattr(module.activation, "approximate", "none") == "tanh"
    return kinds[type(module.activation)] + "_tanh" * tanh


def norm(p: Program, name: str, module: nn.Module, x: str) -> str:
    """LayerNorm or RMSNorm as an operation; nn.Identity is none."""
    if not _normalises(module):
        return x
    if isinstance(module, nn.RMSNorm):
        return ops.rms_rows(p, name, x, _array(module.weight), _eps(module))
    return ops.normed_rows(p, name, x, (_array(module.weight), _array(module.bias)), module.eps)


def _normalises(module: nn.Module | None) -> bool:
    return module is not None and not isinstance(module, nn.Identity)


def _eps(module: nn.RMSNorm) -> float:
    """What RMSNorm adds below the root: unless said the smallest step of its numbers."""
    return torch.finfo(module.weight.dtype).eps if module.eps is None else module.eps


def encoder_layer(p: Program, at: str, module: layers.EncoderLayer, x: str,
                  causal: bool = False) -> str:  # fmt: skip
    """EncoderLayer as operations."""
    parts = [
        lambda h: attention(p, f"{at}/attention", module.attention, h, causal=causal),
        lambda h: feed_forward(p, f"{at}/feed-forward", module.feed_forward, h),
    ]
    return _residual(p, at, module, x, parts[: 1 if module.feed_forward is None else 2])


def decoder_layer(p: Program, at: str, module: layers.DecoderLayer, y: str, memory: str) -> str:
    """DecoderLayer as operations."""
    parts = [
        lambda h: attention(p, f"{at}/self-attention", module.self_attention, h, causal=True),
        lambda h: attention(p, f"{at}/cross-attention", module.cross_attention, h, memory),
        lambda h: feed_forward(p, f"{at}/feed-forward", module.feed_forward, h),
    ]
    return _residual(p, at, module, y, parts)


def _residual(p: Program, at: str, module: layers.ResidualLayer, x: str, parts: list) -> str:
    for i, part in enumerate(parts, 1):

        def normed(name: str, h: str, i: int = i) -> str:
            return norm(p, name, getattr(module, f"norm{i}"), h)

        x = ops.add_and_norm(p, at, x, part, normed, i, module.pre_norm)
    return x


def encoder(p: Program, at: str, module: nn.Module, x: str, causal: bool = False) -> str:
    """An encoder, or the layers of a language model, one after the other; or one layer alone."""
    for i, layer in enumerate(getattr(module, "layers", [module])):
        x = encoder_layer(p, f"{at}layer {i + 1}", layer, x, causal)
    return norm(p, f"{at}norm", getattr(module, "norm", nn.Identity()), x)


def decoder(p: Program, at: str, module: nn.Module, y: str, memory: str) -> str:
    """A decoder, or one decoder layer alone."""
    for i, layer in enumerate(getattr(module, "layers", [module])):
        y = decoder_layer(p, f"{at}layer {i + 1}", layer, y, memory)
    return norm(p, f"{at}norm", getattr(module, "norm", nn.Identity()), y)


# ---------------------------------------------------------------- models


def _encoder_decoder(p: Program, model: nn.Module) -> None:
    """A Transformer, or whatever has its parts: tokens, positions, encoder, decoder, output."""
    tables = [getattr(model, name, None) or model.tokens for name in ("src_tokens", "tgt_tokens")]
    x = _embedded(p, "encoder/", tables[0], "text")
    memory = encoder(p, "encoder/", model.encoder, x)
    y = _embedded(p, "decoder/", tables[1], "written")
    y = decoder(p, "decoder/", model.decoder, y, memory)
    _prediction(p, "decoder/", model.output, y)


def _embedded(p: Program, at: str, table: nn.Embedding, rows: str) -> str:
    x = ops.embedding(p, _array(table.weight), rows=rows, at=at,
                      factor=math.sqrt(table.embedding_dim))  # fmt: skip
    return ops.with_positions(p, x, True, at)


def _decoder_only(p: Program, model: models.DecoderOnly) -> None:
    x = ops.embedding(p, _array(model.tokens.weight))
    if model.positions is not None:  # else its layers turn by place
        x = _with_places(p, x, model)
    x = encoder(p, "", model, x, causal=True)
    _prediction(p, "", model.output, x)


def _sentence_encoder(p: Program, model: nn.Module) -> None:
    x = ops.embedding(p, _array(model.tokens.weight))
    segment = p.add("segment", "same", weights={"row": _array(model.segments.weight)[:1]},
                    rows="text", title="segment", note="which sentence")  # fmt: skip
    x = p.add("x + segment", "add", x, segment, title="x + segment")
    x = _with_places(p, x, model)
    x = encoder(p, "", model.encoder, norm(p, "norm", model.norm, x))
    mean = p.add("mean", "mean", x, rows="", title="mean", note="of all words")
    p.add("sentence", "unit", mean, title="sentence vector", note="of length 1", colour="context")


def _with_places(p: Program, x: str, model: nn.Module) -> str:
    return ops.with_positions(p, x, _array(model.positions.weight))


def _prediction(p: Program, at: str, output: nn.Linear, x: str) -> None:
    ops.prediction(p, x, _weight(output), at=at, b=_array(output.bias))


def width(part: nn.Module) -> int:
    """The d of the vectors (T, d) that a part works on."""
    reads = ("W_k", "W_down")  # of an attention, what is given a word vector
    W = next(m for name, m in part.named_modules() if name.split(".")[-1] in reads)
    return W.weight.shape[1]


def _part_alone(p: Program, part: nn.Module, x: Any, memory: Any, causal: bool) -> None:
    given = _given(p, "x", x, part, title="x", note="word vector", rows="text")
    alone = _attends(part)
    source = None
    if isinstance(part, READERS) or (alone and memory is not None):
        source = _given(p, "memory", memory, part, title="memory", rows="memory")
    if alone:
        attention(p, "attention", part, given, source, causal)
    elif source:
        decoder(p, "", part, given, source)
    else:
        encoder(p, "", part, given, causal)


def _given(p: Program, name: str, vectors: Any, part: nn.Module, **shown: str) -> str:
    what = f"a {type(part).__name__} alone works on vectors (T, d)"
    if vectors is None:
        raise ValueError(f"{name} is missing: {what}")
    vectors = as_array(name, vectors)
    if vectors.ndim != 2 or vectors.shape[1] != width(part):
        raise ValueError(f"{name} has shape {vectors.shape}, but {what} with d = {width(part)}")
    return p.add(name, "given", weights={"x": vectors}, **shown)


def _weight(linear: nn.Linear) -> np.ndarray:
    """(d_in, d_out), as in x @ W."""
    return _array(linear.weight).T


def _array(tensor: Tensor | None) -> np.ndarray | None:
    return None if tensor is None else as_array("model", tensor)  # also of bfloat16
