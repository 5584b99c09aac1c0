"""PyTorch's modules taken apart into operations: one function a kind of module of our layers.

`describe(model)` is the program of a whole model; the browser or `helpers.operations.run` computes
it, and `helpers.interventions` changes the modules themselves in the same places.
"""

import math
from typing import Any

import numpy as np
from torch import Tensor, nn

from helpers import layers, models
from helpers import operations as ops
from helpers.operations import Program

LETTERS = "qkvo"


def describe(model: nn.Module, x: Any = None, memory: Any = None) -> Program:
    """The program of a model, or of a single layer and the vectors (T, d) that it is to work on.

    Raises TypeError for a module that is not known, ValueError where vectors are missing.
    """
    p = Program()
    if isinstance(model, layers.MultiHeadAttention | layers.ResidualLayer | models.LayerStack):
        _part_alone(p, model, x, memory)
    elif hasattr(model, "encoder") and hasattr(model, "decoder"):
        _encoder_decoder(p, model)
    elif isinstance(model, models.DecoderOnly):
        _decoder_only(p, model)
    elif hasattr(model, "segments"):
        _sentence_encoder(p, model)
    else:
        known = "helpers.layers, helpers.models and helpers.pretrained"
        raise TypeError(f"model is a {type(model).__name__}, but must be one of {known}")
    names = {id(module): name for name, module in model.named_modules()}
    p.origins = {at: (names[id(module)], *what) for at, (module, *what) in p.origins.items()}
    return p


# ---------------------------------------------------------------- layers


def attention(p: Program, at: str, module: layers.MultiHeadAttention, x: str,
              memory: str | None = None, causal: bool = False) -> str:  # fmt: skip
    """MultiHeadAttention as operations."""
    learned = {f"W_{k}": _weight(getattr(module, f"W_{k}")) for k in LETTERS}
    learned |= {f"b_{k}": _array(getattr(module, f"W_{k}").bias) for k in LETTERS}
    p.origins[at] = (module, "attention")
    return ops.attention(p, at, x, learned, module.num_heads, memory=memory, scale=module.scale,
                         causal=causal)  # fmt: skip


def feed_forward(p: Program, at: str, module: layers.FeedForward, x: str) -> str:
    """FeedForward as operations."""
    learned = {"W1": _weight(module.W1), "b1": _array(module.W1.bias)}
    learned |= {"W2": _weight(module.W2), "b2": _array(module.W2.bias)}
    kind = {nn.ReLU: "relu", nn.GELU: "gelu"}[type(module.activation)]
    kind += "_tanh" * (getattr(module.activation, "approximate", "none") == "tanh")
    p.origins[at] = (module, "feed-forward")
    return ops.feed_forward(p, at, x, learned, kind)


def norm(p: Program, name: str, module: nn.Module, x: str) -> str:
    """LayerNorm as an operation; nn.Identity is none."""
    if isinstance(module, nn.Identity):
        return x
    p.origins[name] = (module, "norm")
    return ops.layer_norm(p, name, x, (_array(module.weight), _array(module.bias)), module.eps)


def encoder_layer(p: Program, at: str, module: layers.EncoderLayer, x: str,
                  causal: bool = False) -> str:  # fmt: skip
    """EncoderLayer as operations."""
    parts = [
        lambda h: attention(p, f"{at}/attention", module.attention, h, causal=causal),
        lambda h: feed_forward(p, f"{at}/feed-forward", module.feed_forward, h),
    ]
    return _residual(p, at, module, x, parts)


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
        p.origins[f"{at}/add {i}"] = (module, "add", i)
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
    x = _embedded(p, "encoder/", tables[0], model.positions, "text")
    memory = encoder(p, "encoder/", model.encoder, x)
    y = _embedded(p, "decoder/", tables[1], model.positions, "written")
    y = decoder(p, "decoder/", model.decoder, y, memory)
    output = model.output
    ops.prediction(p, y, _weight(output), at="decoder/", b=_array(output.bias))


def _embedded(p: Program, at: str, table: nn.Embedding, positions: nn.Module, rows: str) -> str:
    x = ops.embedding(p, _array(table.weight), rows=rows, at=at,
                      factor=math.sqrt(table.embedding_dim))  # fmt: skip
    p.origins[f"{at}positions"] = (positions, "waves")
    return ops.with_positions(p, x, True, at)


def _decoder_only(p: Program, model: models.DecoderOnly) -> None:
    x = ops.embedding(p, _array(model.tokens.weight))
    p.origins["positions"] = (model.positions, "places")
    x = ops.with_positions(p, x, _array(model.positions.weight))
    for i, layer in enumerate(model.layers):
        x = encoder_layer(p, f"layer {i + 1}", layer, x, causal=True)
    x = norm(p, "norm", model.norm, x)
    ops.prediction(p, x, _weight(model.output), b=_array(model.output.bias))


def _sentence_encoder(p: Program, model: nn.Module) -> None:
    x = ops.embedding(p, _array(model.tokens.weight))
    segment = p.add("segment", "same", weights={"row": _array(model.segments.weight)[:1]},
                    rows="text", title="segment", note="which sentence")  # fmt: skip
    x = p.add("x + segment", "add", x, segment, title="x + segment")
    p.origins["positions"] = (model.positions, "places")
    x = ops.with_positions(p, x, _array(model.positions.weight))
    x = encoder(p, "", model.encoder, norm(p, "norm", model.norm, x))
    mean = p.add("mean", "mean", x, rows="", title="mean", note="of all words")
    p.add("sentence", "unit", mean, title="sentence vector", note="of length 1", colour="context")


def _part_alone(p: Program, module: nn.Module, x: Any, memory: Any) -> None:
    if x is None:
        raise ValueError(f"x is missing: a {type(module).__name__} alone works on vectors (T, d)")
    given = p.add("x", "given", weights={"x": x}, rows="text", title="x", note="word vector")
    if isinstance(module, layers.DecoderLayer | models.Decoder):
        if memory is None:
            raise ValueError(f"memory is missing: a {type(module).__name__} reads (S, d) vectors")
        source = p.add("memory", "given", weights={"x": memory}, rows="memory", title="memory")
        decoder(p, "", module, given, source)
    elif isinstance(module, layers.MultiHeadAttention):
        attention(p, "attention", module, given)
    else:
        encoder(p, "", module, given)


def _weight(linear: nn.Linear) -> np.ndarray:
    """(d_in, d_out), as in x @ W."""
    return _array(linear.weight).T


def _array(tensor: Tensor | None) -> np.ndarray | None:
    return None if tensor is None else tensor.detach().cpu().numpy()
