"""Hand-made models, dictionaries of arrays: checked by name, and written as a program."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workshop.arguments import (
    MOST,
    as_array,
    as_floats,
    as_labels,
    as_list,
    as_switch,
    as_whole,
    check_axes,
    said,
)
from workshop.machine import program as ops
from workshop.machine.program import Program

# The axes of each array; a letter is one size in the whole model.
ATTENTION = {"W_q": "dq", "W_k": "dq", "W_v": "dv", "W_o": "vo"}
FEED_FORWARD = {"W1": "df", "b1": "f", "W2": "fd", "b2": "d"}

Sizes = dict[str, int]  # of each letter


def of_arrays(arrays: Mapping[str, Any]) -> Program:
    """The program of a hand-made example: what it holds is what is computed.

    `table` (V, d), maybe `positions` ((T, d), or True for waves), then `W_q`, `W_k`, `W_v` of one
    attention with maybe `W_o`, `num_heads` and `causal`; or `encoder`, `helpers.blocks`'
    parameters of a layer (or a list of them); last maybe `output` (d, V). `names` are those of the
    features, by step: {"x": ["food", …], "q": …}. Raises ValueError for a key that is not known or
    missing, shapes that do not fit, and numbers that are not finite.
    """
    more = ["positions", *ATTENTION, "num_heads", "causal", "encoder", "output", "names"]
    _check_keys("model", arrays, ["table"], more)
    p, sizes = Program(names=names_of(arrays.get("names", {}))), Sizes()
    x = ops.embedding(p, fitting("table", arrays["table"], "Vd", sizes))
    x = ops.with_positions(p, x, _positions(arrays.get("positions"), sizes))
    if {*ATTENTION, "num_heads", "causal"} & {*arrays}:
        found = _attention("", arrays, sizes)
        causal = as_switch("causal", arrays.get("causal", False))
        sizes["d"] = sizes["o"] if "W_o" in found else sizes["v"]
        x = ops.attention(p, "attention", x, found, found["num_heads"], causal=causal)
    layers = arrays.get("encoder", [])
    layers = [layers] if isinstance(layers, Mapping) else as_list("encoder", layers)
    for i, layer in enumerate(layers):
        x = encoder_layer(p, f"layer {i + 1}", x, _layer(f"encoder[{i}]", layer, sizes))
    if "output" in arrays:
        ops.prediction(p, x, fitting("output", arrays["output"], "dV", sizes))
    return p


def encoder_layer(p: Program, at: str, x: str, layer: Mapping[str, Any]) -> str:
    """A layer with the parameters of `helpers.blocks.encoder_layer`. Paper, section 3.1."""
    norms = {f"{at}/norm {i}": layer[f"norm{i}"] for i in (1, 2)}

    def normed(name: str, h: str) -> str:
        return ops.normed_rows(p, name, h, norms[name])

    def attended(h: str) -> str:
        return ops.attention(p, f"{at}/attention", h, layer["attn"], layer["attn"]["num_heads"])

    def fed_forward(h: str) -> str:
        return ops.feed_forward(p, f"{at}/feed-forward", h, layer["ffn"])

    x = ops.add_and_norm(p, at, x, attended, normed, 1, pre=False)
    return ops.add_and_norm(p, at, x, fed_forward, normed, 2, pre=False)


def names_of(names: Any) -> dict[str, list[str]]:
    """Names of features, by the last name of their step."""
    if not isinstance(names, Mapping):
        raise TypeError(f"names is {said(names)}, but must be lists of features by their step")
    return {step: as_labels(f"names[{step!r}]", list_) for step, list_ in names.items()}


def _check_keys(name: str, given: Any, needed: Sequence[str], more: Sequence[str] = ()) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} is {said(given)}, but must be a dictionary of arrays")
    if strange := [key for key in given if key not in (*needed, *more)]:
        known = ", ".join((*needed, *more))
        raise ValueError(f"{name} has {said(strange[0])}, but what is known is {known}")
    if missing := [key for key in needed if given.get(key) is None]:
        raise ValueError(f"{name} has no {missing[0]}, but needs {', '.join(needed)}")


def fitting(name: str, value: Any, axes: str, sizes: Sizes) -> np.ndarray:
    """Numbers with these axes; a size that is not known yet is known from then on."""
    array = as_floats(name, as_array(name, value))
    check_axes(name, array, *axes)
    for axis, size in zip(axes, array.shape, strict=True):
        if sizes.setdefault(axis, size) != size:
            need = f"({', '.join(axes)}) with {axis} = {sizes[axis]}"
            raise ValueError(f"{name} has shape {array.shape}, but must be {need}")
    return array


def _positions(positions: Any, sizes: Sizes) -> Any:
    if positions is True and sizes["d"] % 2:
        need = "must be even for waves: each sine has its cosine"
        raise ValueError(f"table has width d = {sizes['d']}, but it {need}")
    if positions is None or isinstance(positions, bool):
        return positions
    return fitting("positions", positions, "Td", sizes)


def _attention(name: str, given: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """An attention's matrices and its number of heads."""
    held = {key: given[key] for key in ATTENTION if given.get(key) is not None}
    _check_keys(name or "model", held, ["W_q", "W_k", "W_v"], ["W_o"])
    found = {key: fitting(name + key, W, ATTENTION[key], sizes) for key, W in held.items()}
    heads = as_whole(f"{name}num_heads", given.get("num_heads", 1), 1, MOST)
    for axis in "qv":
        if sizes[axis] % heads:
            need = f"must divide the width of {name}W_{axis}, {sizes[axis]}"
            raise ValueError(f"{name}num_heads is {heads}, but {need}")
    return {**found, "num_heads": heads}


def _layer(name: str, layer: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """An encoder layer's parameters; what comes out of its attention is added to x."""
    _check_keys(name, layer, ["attn", "norm1", "ffn", "norm2"])
    attn, ffn = (f"{name}[{key!r}]" for key in ("attn", "ffn"))
    _check_keys(attn, layer["attn"], [*ATTENTION, "num_heads"])
    _check_keys(ffn, layer["ffn"], [*FEED_FORWARD])
    own = {"d": sizes["d"], "o": sizes["d"]}
    found = {"attn": _attention(f"{attn} ", layer["attn"], own)}
    found["ffn"] = {key: fitting(f"{ffn} {key}", layer["ffn"][key], axes, own)
                    for key, axes in FEED_FORWARD.items()}  # fmt: skip
    return found | {key: _norm(f"{name}[{key!r}]", layer[key], own) for key in ("norm1", "norm2")}


def _norm(name: str, learned: Any, sizes: Sizes) -> list[np.ndarray]:
    """Gain and shift, one for each feature; a single number is the same for all."""
    if len(learned) != 2:
        raise ValueError(f"{name} is {said(learned)}, but must be (gain, shift)")
    given = zip(("gain", "shift"), learned, strict=True)
    return [fitting(f"{name} {key}", np.full(sizes["d"], w) if np.ndim(w) == 0 else w, "d", sizes)
            for key, w in given]  # fmt: skip
