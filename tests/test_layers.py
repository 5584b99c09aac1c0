"""helpers.layers against torch.nn after copying weights, against NumPy, and on its own promises."""

import copy
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import attention as numpy_attention
from helpers import blocks, layers
from helpers.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    Stack,
    causal_mask,
    make_stack,
    unwatched,
)
from helpers.models import Decoder, DecoderOnly, Encoder, Transformer

MANY = settings(max_examples=40, deadline=None)
FEW = settings(max_examples=15, deadline=None)
SIZES = st.integers(1, 4)
SEEDS = st.integers(0, 2**16)
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)]
)
EVERY_KIND = pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
BOTH_NORMS = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])

Mapping = dict[str, Tensor]


# ------------------------------------------------------------- copying weights, comparing gradients
def scramble(module: nn.Module, seed: int = 0) -> nn.Module:
    """Give every parameter, biases and gains too, values of its own."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.copy_(0.4 * noise + (0.8 if parameter.ndim == 1 else 0))
    return module


def values(parameter: Tensor) -> Tensor:
    return parameter.data


def gradient(parameter: Tensor) -> Tensor:
    return parameter.grad


def prefixed(prefix: str, names: Mapping) -> Mapping:
    return {f"{prefix}.{name}": tensor for name, tensor in names.items()}


def of_linear(theirs: nn.Module, get: Callable[[Tensor], Tensor]) -> Mapping:
    return {name: get(parameter) for name, parameter in theirs.named_parameters()}


def of_attention(theirs: nn.MultiheadAttention, get: Callable[[Tensor], Tensor]) -> Mapping:
    """The parts of nn.MultiheadAttention under our names."""
    if theirs.in_proj_weight is not None:
        parts = get(theirs.in_proj_weight).chunk(3)
    else:
        parts = [get(theirs.get_parameter(f"{n}_proj_weight")) for n in "qkv"]
    names = {f"W_{n}.weight": part for n, part in zip("qkv", parts, strict=True)}
    if theirs.in_proj_bias is not None:
        biases = get(theirs.in_proj_bias).chunk(3)
        names |= {f"W_{n}.bias": part for n, part in zip("qkv", biases, strict=True)}
    return names | prefixed("W_o", of_linear(theirs.out_proj, get))


def of_encoder_layer(theirs: nn.Module, get: Callable[[Tensor], Tensor]) -> Mapping:
    names = prefixed("attention", of_attention(theirs.self_attn, get))
    names |= prefixed("feed_forward.W1", of_linear(theirs.linear1, get))
    names |= prefixed("feed_forward.W2", of_linear(theirs.linear2, get))
    for norm in ("norm1", "norm2"):
        names |= prefixed(norm, of_linear(theirs.get_submodule(norm), get))
    return names


def of_decoder_layer(theirs: nn.Module, get: Callable[[Tensor], Tensor]) -> Mapping:
    names = of_encoder_layer(theirs, get)
    names = {name.replace("attention.", "self_attention."): part for name, part in names.items()}
    names |= prefixed("cross_attention", of_attention(theirs.multihead_attn, get))
    return names | prefixed("norm3", of_linear(theirs.norm3, get))


def of_stack(part: Callable[..., Mapping]) -> Callable[..., Mapping]:
    """The names of a whole nn.TransformerEncoder or -Decoder, from those of a layer."""

    def names(theirs: nn.Module, get: Callable[[Tensor], Tensor]) -> Mapping:
        found = {} if theirs.norm is None else prefixed("norm", of_linear(theirs.norm, get))
        for i, layer in enumerate(theirs.layers):
            found |= prefixed(f"layers.{i}", part(layer, get))
        return found

    return names


def copy_weights(ours: nn.Module, theirs: Mapping) -> None:
    """Every parameter of ours has its place, and the other way round."""
    parameters = dict(ours.named_parameters())
    assert parameters.keys() == theirs.keys()
    for name, parameter in parameters.items():
        theirs[name].copy_(parameter.data)


def backward(output: Tensor) -> None:
    """A loss in which every output has a weight of its own."""
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).sin()
    (output.flatten() * weights).sum().backward()


def assert_same_gradients(ours: nn.Module, theirs: Mapping, tolerance: float) -> None:
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(
            parameter.grad,
            theirs[name],
            rtol=tolerance,
            atol=tolerance,
            msg=lambda text, name=name: f"gradient of {name}: {text}",
        )


def compare(
    ours: nn.Module,
    theirs: nn.Module,
    names: Callable[..., Mapping],
    inputs: tuple[Tensor, ...],
    run: tuple[Callable[..., Tensor], Callable[..., Tensor]],
    tolerance: float = 1e-10,
) -> None:
    """Same weights in, same outputs, same gradients of inputs and parameters out."""
    copy_weights(ours, names(theirs, values))
    results = []
    for module, call in zip((ours, theirs), run, strict=True):
        leaves = [x.clone().requires_grad_() for x in inputs]
        output = call(module, *leaves)
        backward(output)
        results.append((output, *(leaf.grad for leaf in leaves)))
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
    assert_same_gradients(ours, names(theirs, gradient), tolerance)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def draw_padding(B: int, T: int, seed: int) -> Tensor:
    """(B, T) bool: each sentence has a length of its own, at least 1."""
    lengths = torch.randint(1, T + 1, (B, 1), generator=torch.Generator().manual_seed(seed))
    return torch.arange(T) < lengths


# ----------------------------------------------------------------- MultiHeadAttention against torch
@PRECISIONS
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("B", "T", "H", "d_head"), [(3, 5, 2, 3), (2, 7, 3, 4), (1, 2, 4, 1)])
def test_self_attention_is_torchs(B, T, H, d_head, bias, dtype, tolerance):
    D = H * d_head
    ours = scramble(MultiHeadAttention(D, D, H, bias=bias)).to(dtype)
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=dtype)
    is_real, causal = draw_padding(B, T, seed=B), causal_mask(T)

    def run_ours(module, x):
        return module(x, causal & is_real[:, None, :])

    def run_theirs(module, x):
        out, weights = module(
            x, x, x, attn_mask=~causal, key_padding_mask=~is_real, average_attn_weights=False
        )
        torch.testing.assert_close(ours.weights, weights.detach(), rtol=tolerance, atol=tolerance)
        return out

    x = draw(B, T, D, seed=T, dtype=dtype)
    compare(ours, theirs, of_attention, (x,), (run_ours, run_theirs), tolerance)


@MANY
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_head=SIZES, seed=SEEDS)
def test_cross_attention_is_torchs(B, T, S, H, d_head, seed):
    D = H * d_head
    ours = scramble(MultiHeadAttention(D, D, H), seed).double()
    theirs = nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    is_real = draw_padding(B, S, seed)

    def run_ours(module, x, memory):
        return module(x, is_real[:, None, :], memory)

    def run_theirs(module, x, memory):
        return module(x, memory, memory, key_padding_mask=~is_real, need_weights=False)[0]

    inputs = (draw(B, T, D, seed=seed), draw(B, S, D, seed=seed + 1))
    compare(ours, theirs, of_attention, inputs, (run_ours, run_theirs))


@MANY
@given(B=SIZES, T=SIZES, H=SIZES, d_head=SIZES, cut=SIZES, seed=SEEDS)
def test_narrower_input_is_torchs_with_kdim(B, T, H, d_head, cut, seed):
    """nn.MultiheadAttention takes d_in ≠ d_out for keys and values; its queries get zeros added."""
    d_out = H * d_head
    d_in = max(1, d_out - cut)
    ours = scramble(MultiHeadAttention(d_in, d_out, H), seed).double()
    theirs = nn.MultiheadAttention(
        d_out, H, kdim=d_in, vdim=d_in, batch_first=True, dtype=torch.float64
    )

    def names(module, get):
        found = of_attention(module, get)
        return found | {"W_q.weight": found["W_q.weight"][:, :d_in]}

    def run_theirs(module, x):
        return module(F.pad(x, (0, d_out - d_in)), x, x, need_weights=False)[0]

    x = draw(B, T, d_in, seed=seed)
    compare(ours, theirs, names, (x,), (lambda module, x: module(x), run_theirs))


@MANY
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_in=SIZES, d_out=SIZES, d_head=SIZES, seed=SEEDS)
def test_any_widths_are_torchs_scaled_dot_product(B, T, S, H, d_in, d_out, d_head, seed):
    """d_in, d_out and d_head have nothing to do with each other; the mask may empty a row."""
    ours = scramble(MultiHeadAttention(d_in, d_out, H, d_head=d_head), seed).double()
    x, memory = draw(B, T, d_in, seed=seed), draw(B, S, d_in, seed=seed + 1)
    mask = draw(B, H, T, S, seed=seed + 2) > 0
    Q, K, V = (
        torch.stack(linear(z).split(d_head, dim=-1), dim=1)  # head h: its own slice of features
        for linear, z in ((ours.W_q, x), (ours.W_k, memory), (ours.W_v, memory))
    )
    has_key = mask.any(-1, keepdim=True)
    context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | ~has_key) * has_key
    expected = ours.W_o(torch.cat(context.unbind(1), dim=-1))
    torch.testing.assert_close(ours(x, mask, memory), expected)
    assert ours.weights.shape == (B, H, T, S)
    torch.testing.assert_close(ours.weights.sum(-1, keepdim=True), has_key.double())


def test_causal_mask_is_scaled_dot_products():
    Q, K, V = draw(3, 2, 4, 5), draw(3, 2, 4, 5, seed=1), draw(3, 2, 4, 6, seed=2)
    ours = F.scaled_dot_product_attention(Q, K, V, attn_mask=causal_mask(4))
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(Q, K, V, is_causal=True))
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]


# -------------------------------------------------------------------------------- masks and weights
def mask_forms(B: int, H: int, T: int, S: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Every accepted form of a mask, beside what it means: (B, H, T, S)."""
    shapes = [(T, S), (1, S), (B, T, S), (1, T, S), (B, 1, S), (B, T, 1)]
    shapes += [(B, 1, T, S), (B, H, T, S), (1, H, T, S), (B, 1, 1, S), (B, H, 1, S)]
    forms = []
    for i, shape in enumerate(shapes):
        mask = draw(*shape, seed=seed + i) > -0.3
        full = mask[:, None] if mask.ndim == 3 else mask
        forms.append((mask, full.expand(B, H, T, S)))
    return forms


@FEW
@given(B=SIZES, H=SIZES, T=SIZES, S=SIZES, seed=SEEDS)
def test_masks_of_every_form_broadcast(B, H, T, S, seed):
    """Also where B, H and T are equal: three axes are always sentences, queries, keys."""
    attention = scramble(MultiHeadAttention(5, 6, H, d_head=3), seed)
    x, memory = draw(B, T, 5, dtype=torch.float32), draw(B, S, 5, seed=1, dtype=torch.float32)
    for mask, full in mask_forms(B, H, T, S, seed):
        kept = mask.clone()
        short, long = attention(x, mask, memory), attention(x, full, memory)
        torch.testing.assert_close(short, long)
        assert torch.equal(attention.weights > 0, full)
        assert torch.equal(mask, kept)


def test_full_mask_changes_nothing():
    attention = scramble(MultiHeadAttention(6, 6, 2))
    x = draw(3, 4, 6, dtype=torch.float32)
    everything = torch.ones(4, 4, dtype=torch.bool)
    torch.testing.assert_close(attention(x), attention(x, everything), rtol=0, atol=0)


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_query_without_keys_gets_zeros_and_finite_gradients(size):
    attention = scramble(MultiHeadAttention(5, 6, 2))
    x = (size * draw(2, 4, 5, dtype=torch.float32)).requires_grad_()
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, 1] = False  # one query of the first sentence
    mask[1] = False  # the whole second sentence
    with torch.autograd.set_detect_anomaly(True):
        out = attention(x, mask)
        backward(out)
    assert torch.equal(attention.weights[0, :, 1], torch.zeros(2, 4))
    assert torch.equal(attention.weights[1], torch.zeros(2, 4, 4))
    empty = torch.stack([out[0, 1], *out[1]])
    torch.testing.assert_close(empty, attention.W_o.bias.expand(5, 6))  # the context is zero
    assert all(p.grad.isfinite().all() for p in (x, *attention.parameters()))
    assert torch.equal(x.grad[1], torch.zeros(4, 5))  # nothing was read, nothing to change
    assert x.grad[0].abs().sum() > 0


def test_masked_tokens_do_not_matter():
    """Neither to the output, nor in the gradient."""
    attention = scramble(MultiHeadAttention(6, 6, 3))
    x, memory = draw(2, 3, 6, dtype=torch.float32), draw(2, 5, 6, seed=1, dtype=torch.float32)
    mask = torch.tensor([[True, True, False, False, False], [True, True, True, True, False]])
    other = torch.where(mask[:, :, None], memory, 100.0).requires_grad_()
    out = attention(x, mask[:, None], other)
    torch.testing.assert_close(out, attention(x, mask[:, None], memory), rtol=0, atol=0)
    backward(out)
    assert torch.equal(other.grad.abs().sum(-1) > 0, mask)


def test_weights_are_kept_without_hooks():
    attention = scramble(MultiHeadAttention(5, 6, 2, dropout=0.5))
    assert attention.weights is None
    x, memory = draw(3, 4, 5, dtype=torch.float32), draw(3, 7, 5, seed=1, dtype=torch.float32)
    attention(x, memory=memory)
    assert attention.weights.shape == (3, 2, 4, 7)
    assert not attention.weights.requires_grad
    torch.testing.assert_close(attention.weights.sum(-1), torch.ones(3, 2, 4))  # before dropout
    assert (attention.weights[:, 0] - attention.weights[:, 1]).abs().max() > 0.01
    assert "weights" not in "".join(attention.state_dict())
    kept = attention.weights.clone()
    attention(x[:1])
    assert attention.weights.shape == (1, 2, 4, 4)
    assert kept.shape == (3, 2, 4, 7)


def test_weights_are_computed_when_they_are_read_and_once(monkeypatch):
    calls = []
    plain = layers._masked_softmax
    monkeypatch.setattr(layers, "_masked_softmax", lambda *z: calls.append(z) or plain(*z))
    attention = scramble(MultiHeadAttention(6, 6, 2))
    x, mask = draw(2, 4, 6, dtype=torch.float32), draw(2, 4, 4) > 0
    attention(x, mask)
    assert not calls
    assert attention.weights is attention.weights and len(calls) == 1
    assert isinstance(attention._seen, Tensor)  # Q and K are let go
    attention(x)
    assert attention.weights.all() and len(calls) == 2


def test_weights_are_those_of_the_forward_whatever_changes_later():
    attention = scramble(MultiHeadAttention(6, 6, 2))
    x, mask = draw(2, 4, 6, dtype=torch.float32), causal_mask(4)
    attention(x, mask)
    expected = copy.deepcopy(attention).weights  # a copy takes along what it has seen
    x.zero_()
    mask.fill_(True)
    scramble(attention, seed=1)
    torch.testing.assert_close(attention.weights, expected, rtol=0, atol=0)
    assert torch.equal(expected > 0, causal_mask(4).expand(2, 2, 4, 4))


def test_a_subclass_may_set_weights_itself():
    attention = MultiHeadAttention(6, 6, 2)
    attention.weights = torch.eye(3)
    assert torch.equal(attention.weights, torch.eye(3)) and not attention.state_dict().get(
        "weights"
    )


def test_unwatched_keeps_nothing():
    model = scramble(EncoderLayer(6, 2, 8))
    x = draw(2, 4, 6, dtype=torch.float32)
    out = model(x)
    assert model.attention.weights is not None
    with unwatched(model):
        assert model.attention.weights is None  # what was kept is let go
        torch.testing.assert_close(model(x), out, rtol=0, atol=0)
        with pytest.raises(ZeroDivisionError), unwatched(model.attention):
            _ = 1 / 0
        model(x)
        assert model.attention.weights is None and model.attention._seen is None
    model(x)
    assert model.attention.weights.shape == (2, 2, 4, 4)


@pytest.mark.parametrize("T", [1, 2, 7])
def test_the_word_causal_is_the_causal_mask(T):
    attention = scramble(MultiHeadAttention(6, 6, 2)).double()
    x = draw(2, T, 6)
    expected, weights = attention(x, causal_mask(T)), attention.weights
    torch.testing.assert_close(attention(x, causal=True), expected)
    torch.testing.assert_close(attention.weights, weights)
    with pytest.raises(TypeError, match="mask has type str"):
        attention(x, "casual")


def test_causal_mask_behind_a_past():
    assert torch.equal(causal_mask(2, past=3), causal_mask(5)[3:])


def test_scale_can_be_changed():
    """Without scaling, scores are √d_head times as large."""
    attention, plain = (scramble(MultiHeadAttention(6, 6, 2)).double() for _ in range(2))
    x = draw(2, 4, 6)
    attention.scale = 1.0
    plain.W_q.weight.data *= math.sqrt(3)
    plain.W_q.bias.data *= math.sqrt(3)
    torch.testing.assert_close(attention(x), plain(x))
    torch.testing.assert_close(attention.weights, plain.weights)


def test_positions_elsewhere():
    positions = PositionalEncoding(6, max_len=9)
    x, places = torch.zeros(2, 3, 6), torch.tensor([[4, 5, 6], [0, 0, 1]])
    torch.testing.assert_close(positions(x, places), positions(torch.zeros(9, 6))[places])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite(dtype):
    attention = scramble(MultiHeadAttention(6, 6, 2)).to(dtype)
    out = attention(draw(2, 4, 6, dtype=dtype), torch.zeros(4, 4, dtype=torch.bool))
    assert out.dtype == dtype and out.isfinite().all()


# ----------------------------------------------------------------------------- layers against torch
def torch_activation(name: str) -> str | Callable[[Tensor], Tensor]:
    return (lambda x: F.gelu(x, approximate="tanh")) if name == "gelu_tanh" else name


def torch_layer(kind: type[nn.Module], D: int, H: int, d_ff: int, **options) -> nn.Module:
    return kind(
        D,
        H,
        d_ff,
        dropout=0.0,
        activation=torch_activation(options["activation"]),
        layer_norm_eps=options["eps"],
        norm_first=options["pre_norm"],
        batch_first=True,
        dtype=torch.float64,
    )


@BOTH_NORMS
@EVERY_KIND
@FEW
@given(B=SIZES, T=SIZES, H=SIZES, d_head=SIZES, d_ff=SIZES, seed=SEEDS)
def test_encoder_layer_is_torchs(B, T, H, d_head, d_ff, seed, activation, pre_norm):
    options = {"activation": activation, "pre_norm": pre_norm, "eps": 1e-2}
    D = H * d_head
    ours = scramble(EncoderLayer(D, H, d_ff, **options), seed).double()
    theirs = torch_layer(nn.TransformerEncoderLayer, D, H, d_ff, **options)
    is_real, causal = draw_padding(B, T, seed), causal_mask(T)

    def run_ours(layer, x):
        return layer(x, causal & is_real[:, None])

    def run_theirs(layer, x):
        return layer(x, src_mask=~causal, src_key_padding_mask=~is_real)

    x = draw(B, T, D, seed=seed)
    compare(ours, theirs, of_encoder_layer, (x,), (run_ours, run_theirs), 1e-8)


@BOTH_NORMS
@EVERY_KIND
@FEW
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_head=SIZES, d_ff=SIZES, seed=SEEDS)
def test_decoder_layer_is_torchs(B, T, S, H, d_head, d_ff, seed, activation, pre_norm):
    options = {"activation": activation, "pre_norm": pre_norm, "eps": 1e-2}
    D = H * d_head
    ours = scramble(DecoderLayer(D, H, d_ff, **options), seed).double()
    theirs = torch_layer(nn.TransformerDecoderLayer, D, H, d_ff, **options)
    y_real, memory_real = draw_padding(B, T, seed), draw_padding(B, S, seed + 1)

    def run_ours(layer, y, memory):
        return layer(y, memory, y_real[:, None], memory_real[:, None])

    def run_theirs(layer, y, memory):
        return layer(
            y,
            memory,
            tgt_mask=~causal_mask(T),
            tgt_key_padding_mask=~y_real,
            memory_key_padding_mask=~memory_real,
        )

    inputs = (draw(B, T, D, seed=seed), draw(B, S, D, seed=seed + 1))
    compare(ours, theirs, of_decoder_layer, inputs, (run_ours, run_theirs), 1e-8)


@BOTH_NORMS
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_layers_are_torchs_in_single_precision(kind, pre_norm):
    """To 1e-5 in the precision that the notebooks use."""
    B, T, S, D, H, d_ff = 3, 5, 4, 12, 3, 20
    options = {"activation": "relu", "pre_norm": pre_norm, "eps": 1e-5}
    x, memory = draw(B, T, D, dtype=torch.float32), draw(B, S, D, seed=1, dtype=torch.float32)
    if kind == "encoder":
        ours, names, inputs = EncoderLayer(D, H, d_ff, **options), of_encoder_layer, (x,)
        theirs = torch_layer(nn.TransformerEncoderLayer, D, H, d_ff, **options)
        later = {}
    else:
        ours, names, inputs = DecoderLayer(D, H, d_ff, **options), of_decoder_layer, (x, memory)
        theirs = torch_layer(nn.TransformerDecoderLayer, D, H, d_ff, **options)
        later = {"tgt_mask": ~causal_mask(T)}
    run = (lambda layer, *x: layer(*x), lambda layer, *x: layer(*x, **later))
    compare(ours, theirs.float(), names, inputs, run, 1e-5)


@BOTH_NORMS
def test_encoder_is_torchs(pre_norm):
    B, T, D, H, d_ff, n = 2, 5, 6, 3, 7, 3
    options = {"activation": "gelu", "pre_norm": pre_norm, "eps": 1e-12}
    ours = scramble(Encoder(D, H, d_ff, n, **options)).double()
    theirs = nn.TransformerEncoder(
        torch_layer(nn.TransformerEncoderLayer, D, H, d_ff, **options),
        n,
        norm=nn.LayerNorm(D, eps=1e-12, dtype=torch.float64) if pre_norm else None,
        enable_nested_tensor=False,
    )
    is_real = draw_padding(B, T, seed=1)
    run = (
        lambda stack, x: stack(x, is_real[:, None]),
        lambda stack, x: stack(x, src_key_padding_mask=~is_real),
    )
    compare(ours, theirs, of_stack(of_encoder_layer), (draw(B, T, D),), run, 1e-8)


@BOTH_NORMS
def test_decoder_is_torchs(pre_norm):
    B, T, S, D, H, d_ff, n = 2, 5, 4, 6, 3, 7, 2
    options = {"activation": "relu", "pre_norm": pre_norm, "eps": 1e-5}
    ours = scramble(Decoder(D, H, d_ff, n, **options)).double()
    theirs = nn.TransformerDecoder(
        torch_layer(nn.TransformerDecoderLayer, D, H, d_ff, **options),
        n,
        norm=nn.LayerNorm(D, dtype=torch.float64) if pre_norm else None,
    )
    real = draw_padding(B, S, seed=1)
    run = (
        lambda stack, y, memory: stack(y, memory, memory_mask=real[:, None]),
        lambda stack, y, memory: stack(
            y, memory, tgt_mask=~causal_mask(T), memory_key_padding_mask=~real
        ),
    )
    inputs = (draw(B, T, D), draw(B, S, D, seed=1))
    compare(ours, theirs, of_stack(of_decoder_layer), inputs, run, 1e-8)


@BOTH_NORMS
def test_add_and_norm_is_layer_norm_around_the_sum(pre_norm):
    layer = scramble(EncoderLayer(6, 2, 8, pre_norm=pre_norm, eps=0.1))
    x, gain, bias = draw(2, 3, 6, dtype=torch.float32), layer.norm2.weight, layer.norm2.bias
    theirs = nn.LayerNorm(6, eps=0.1)
    theirs.load_state_dict({"weight": gain.data, "bias": bias.data})
    expected = x + torch.sin(theirs(x)) if pre_norm else theirs(x + torch.sin(x))
    torch.testing.assert_close(layer.add_and_norm(x, torch.sin, layer.norm2), expected)


@EVERY_KIND
def test_feed_forward_is_two_linear_maps(activation):
    ours = scramble(FeedForward(5, 7, activation=activation))
    x = draw(2, 3, 5, dtype=torch.float32)
    functions = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": torch_activation("gelu_tanh")}
    hidden = functions[activation](F.linear(x, ours.W1.weight, ours.W1.bias))
    torch.testing.assert_close(ours(x), F.linear(hidden, ours.W2.weight, ours.W2.bias))
    torch.testing.assert_close(ours(x[0, 1]), ours(x)[0, 1])  # each token alone
    assert len([*FeedForward(5, 7, bias=False).parameters()]) == 2


# ----------------------------------------------------------------------------- layers against NumPy
def as_numpy(linear: nn.Linear) -> np.ndarray:
    return linear.weight.detach().numpy().T


def numpy_parameters(attention: MultiHeadAttention) -> dict:
    names = ("W_q", "W_k", "W_v", "W_o")
    arrays = {name: as_numpy(attention.get_submodule(name)) for name in names}
    return arrays | {"num_heads": attention.num_heads}


def numpy_layer(layer: nn.Module, **attentions: MultiHeadAttention) -> dict:
    p = {name: numpy_parameters(module) for name, module in attentions.items()}
    W1, W2 = as_numpy(layer.feed_forward.W1), as_numpy(layer.feed_forward.W2)
    p["ffn"] = {"W1": W1, "b1": np.zeros(W1.shape[1]), "W2": W2, "b2": np.zeros(W2.shape[1])}
    for i in range(1, len(attentions) + 2):
        norm = layer.get_submodule(f"norm{i}")
        p[f"norm{i}"] = (norm.weight.detach().numpy(), norm.bias.detach().numpy())
    return p


@FEW
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_head=SIZES, seed=SEEDS)
def test_attention_is_numpys(B, T, S, H, d_head, seed):
    D = H * d_head
    ours = scramble(MultiHeadAttention(D, D, H, bias=False), seed).double()
    x, memory = draw(B, T, D, seed=seed), draw(B, S, D, seed=seed + 1)
    mask = draw(B, T, S, seed=seed + 2) > 0
    expected = numpy_attention.multi_head_attention(
        x.numpy(), **numpy_parameters(ours), mask=mask.numpy(), memory=memory.numpy()
    )
    np.testing.assert_allclose(ours(x, mask, memory).detach(), expected, atol=1e-10)


def test_layers_are_numpys():
    x, memory = draw(2, 4, 6), draw(2, 5, 6, seed=1)
    encoder = scramble(EncoderLayer(6, 3, 7, bias=False)).double()
    expected = blocks.encoder_layer(x.numpy(), numpy_layer(encoder, attn=encoder.attention))
    np.testing.assert_allclose(encoder(x).detach(), expected, atol=1e-10)

    decoder = scramble(DecoderLayer(6, 3, 7, bias=False)).double()
    attentions = {"self": decoder.self_attention, "cross": decoder.cross_attention}
    p = numpy_layer(decoder, **attentions)
    expected = blocks.decoder_layer(x.numpy(), memory.numpy(), p)
    np.testing.assert_allclose(decoder(x, memory).detach(), expected, atol=1e-10)


@pytest.mark.parametrize(("T", "D"), [(1, 2), (7, 10), (100, 6)])
def test_positions_are_numpys(T, D):
    x = draw(3, T, D)
    positions = PositionalEncoding(D, max_len=100)
    np.testing.assert_allclose(positions(x), blocks.add_positions(x.numpy()), atol=1e-6)
    torch.testing.assert_close(positions(x[0]), positions(x)[0])
    assert positions(x.float()).dtype == torch.float32
    assert not list(positions.parameters()) and not positions.state_dict()


def test_positions_by_hand():
    table = PositionalEncoding(4, max_len=3)(torch.zeros(3, 4))
    angles = [(pos, pos / 100) for pos in range(3)]  # 10000^(0/4) and 10000^(2/4)
    rows = [[math.sin(a), math.cos(a), math.sin(b), math.cos(b)] for a, b in angles]
    torch.testing.assert_close(table, torch.tensor(rows))


# ----------------------------------------------------------------------------- the course's numbers
INPUTS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)[None]


def one_head(seed: int) -> MultiHeadAttention:
    """A single head of width 2 with nothing after it: W_o passes its result on."""
    torch.manual_seed(seed)
    head = MultiHeadAttention(3, 2, 1, bias=False)
    nn.init.eye_(head.W_o.weight)
    return head


def assert_rounds_to(result: Tensor, expected: list[list[float]]) -> None:
    torch.testing.assert_close(result[0], torch.tensor(expected), rtol=0, atol=5.1e-5)


def test_single_head_of_the_source():
    head = one_head(789)
    expected = [[-0.0739, 0.0713], [-0.0748, 0.0703], [-0.0749, 0.0702]]
    assert_rounds_to(head(INPUTS)[:, :3], expected)
    first = [[0.1921, 0.1646, 0.1652, 0.1550, 0.1721, 0.1510]]
    assert_rounds_to(head.weights[:, 0, :1], first)
    head(INPUTS, causal_mask(6))
    assert_rounds_to(head.weights[:, 0, 1:2, :3], [[0.5517, 0.4483, 0.0]])


def test_causal_head_of_the_source():
    expected = [[-0.4519, 0.2216], [-0.5874, 0.0058], [-0.6300, -0.0632]]
    expected += [[-0.5675, -0.0843], [-0.5526, -0.0981], [-0.5299, -0.1081]]
    assert_rounds_to(one_head(123)(INPUTS, causal_mask(6)), expected)


def test_two_stacked_heads_of_the_source():
    """Two single heads side by side are one layer of two heads with d_head = 2."""
    torch.manual_seed(123)
    drawn = [nn.Linear(3, 2, bias=False).weight.data for _ in range(6)]  # q, k, v of each head
    both = MultiHeadAttention(3, 4, 2, bias=False)
    for i, linear in enumerate((both.W_q, both.W_k, both.W_v)):
        linear.weight.data = torch.cat([drawn[i], drawn[3 + i]])
    nn.init.eye_(both.W_o.weight)
    expected = [[-0.4519, 0.2216, 0.4772, 0.1063], [-0.5874, 0.0058, 0.5891, 0.3257]]
    expected += [[-0.6300, -0.0632, 0.6202, 0.3860], [-0.5675, -0.0843, 0.5478, 0.3589]]
    expected += [[-0.5526, -0.0981, 0.5321, 0.3428], [-0.5299, -0.1081, 0.5077, 0.3493]]
    assert_rounds_to(both(INPUTS, causal_mask(6)), expected)


def test_multi_head_attention_of_the_source():
    """Its queries, keys and values have no bias, but its last projection has: drawn last."""
    torch.manual_seed(123)
    attention = MultiHeadAttention(3, 2, 2, bias=False)
    bound = 1 / math.sqrt(2)
    attention.W_o.bias = nn.Parameter(torch.empty(2).uniform_(-bound, bound))
    expected = [[0.3190, 0.4858], [0.2943, 0.3897], [0.2856, 0.3593]]
    expected += [[0.2693, 0.3873], [0.2639, 0.3928], [0.2575, 0.4028]]
    assert_rounds_to(attention(INPUTS, causal_mask(6)), expected)


def test_parameters_of_a_gpt2_sized_layer():
    for num_heads in (1, 12):
        attention = MultiHeadAttention(768, 768, num_heads, bias=False)
        assert sum(p.numel() for p in attention.parameters()) + 768 == 2_360_064


# ------------------------------------------------------------------------------------------ dropout
def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    x, memory = draw(2, 4, 6, dtype=torch.float32), draw(2, 3, 6, seed=1, dtype=torch.float32)
    cases = [
        (MultiHeadAttention, (6, 6, 2), (x,)),
        (PositionalEncoding, (6, 9), (x,)),
        (FeedForward, (6, 8), (x,)),
        (EncoderLayer, (6, 2, 8), (x,)),
        (DecoderLayer, (6, 2, 8), (x, memory)),
        (Encoder, (6, 2, 8, 2), (x,)),
        (Decoder, (6, 2, 8, 2), (x, memory)),
    ]
    for kind, sizes, inputs in cases:
        dropping, plain = kind(*sizes, dropout=0.4), kind(*sizes)
        plain.load_state_dict(dropping.state_dict())
        assert not torch.allclose(dropping(*inputs), dropping(*inputs)), kind
        torch.testing.assert_close(dropping.eval()(*inputs), plain(*inputs))


class Recorder(nn.Module):
    """Stands in for a dropout: notes what it was given, and drops all of it or none."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.shapes: list[tuple[int, ...]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.shapes.append(tuple(x.shape))
        return x * self.factor


def record(module: nn.Module, factor: float = 1.0) -> dict[str, Recorder]:
    """A recorder for each dropout, but not for those of the weights, which PyTorch has fused."""
    names = [name for name, part in module.named_modules() if isinstance(part, nn.Dropout)
             and not name.endswith("attention.dropout")]  # fmt: skip
    recorders = {name: Recorder(factor) for name in names}
    for name, recorder in recorders.items():
        parent, _, child = name.rpartition(".")
        setattr(module.get_submodule(parent), child, recorder)
    return recorders


@BOTH_NORMS
def test_dropout_sits_before_the_residual(pre_norm):
    """If it drops everything, the residual path is all that is left."""
    x, memory = draw(2, 4, 6, dtype=torch.float32), draw(2, 3, 6, seed=1, dtype=torch.float32)
    encoder = scramble(EncoderLayer(6, 2, 8, pre_norm=pre_norm))
    found = record(encoder, factor=0.0)
    expected = x if pre_norm else encoder.norm2(encoder.norm1(x))
    torch.testing.assert_close(encoder(x), expected)
    assert found["dropout"].shapes == [(2, 4, 6)] * 2

    decoder = scramble(DecoderLayer(6, 2, 8, pre_norm=pre_norm))
    found = record(decoder, factor=0.0)
    expected = x if pre_norm else decoder.norm3(decoder.norm2(decoder.norm1(x)))
    torch.testing.assert_close(decoder(x, memory), expected)
    assert found["dropout"].shapes == [(2, 4, 6)] * 3


def test_dropout_acts_on_the_weights():
    """One-hot values show the dropped weights themselves: each is 0, or larger by 1 / (1 - p)."""
    T = 40
    attention = scramble(MultiHeadAttention(T, T, 1, bias=False, dropout=0.25))
    nn.init.eye_(attention.W_v.weight)
    nn.init.eye_(attention.W_o.weight)
    torch.manual_seed(0)
    dropped = attention(torch.eye(T)[None])[0]  # (T, T)
    assert abs((dropped == 0).float().mean() - 0.25) < 0.05
    expected = torch.where(dropped == 0, 0.0, attention.weights[0, 0] / 0.75)
    torch.testing.assert_close(dropped, expected)


def test_dropout_takes_positions_and_hidden_features_too():
    """If it drops everything, no position is left, and of the feed-forward only its last bias."""
    x = draw(2, 4, 6, dtype=torch.float32)
    positions, feed_forward = PositionalEncoding(6), scramble(FeedForward(6, 8))
    record(positions, factor=0.0)
    assert not positions(x).any()
    record(feed_forward, factor=0.0)
    torch.testing.assert_close(feed_forward(x), feed_forward.W2.bias.expand(2, 4, 6))


def test_dropout_of_whole_models():
    """On embeddings plus positions, and the same rate everywhere but inside the feed-forward."""
    translator = Transformer(9, 8, 6, 2, 7, 2, dropout=0.3)
    model = DecoderOnly(9, 5, 6, 2, 7, 2, dropout=0.3)
    for whole in (translator, model):
        parts = {n: p.p for n, p in whole.named_modules() if isinstance(p, nn.Dropout)}
        inside = {name for name in parts if "feed_forward" in name}
        assert {parts[name] for name in parts if name not in inside} == {0.3}
        assert {parts[name] for name in inside} == {0.0}
    src, tgt = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[5, 6, 7]])
    found = record(translator)
    translator(src, tgt)
    assert found["positions.dropout"].shapes == [(1, 4, 6), (1, 3, 6)]
    found = record(model)
    model(src)
    assert found["dropout"].shapes == [(1, 4, 6)]


# ------------------------------------------------------------------------------------------- stacks
def test_make_stack_copies_values_not_parameters():
    layer = scramble(EncoderLayer(6, 2, 8, dropout=0.1))
    layer(draw(2, 3, 6, dtype=torch.float32))  # a layer that was used can be stacked
    stack = make_stack(layer, 3)
    per_layer = len([*layer.parameters()])
    assert len(stack) == 3 and len([*stack.parameters()]) == 3 * per_layer
    assert len(stack.state_dict()) == 3 * per_layer
    assert len({p.data_ptr() for p in (*layer.parameters(), *stack.parameters())}) == 4 * per_layer
    for each in stack:
        for name, parameter in layer.named_parameters():
            assert torch.equal(each.get_parameter(name), parameter)
    with torch.no_grad():
        stack[1].feed_forward.W1.weight.zero_()
    assert layer.feed_forward.W1.weight.any() and stack[0].feed_forward.W1.weight.any()


def test_stack_applies_layers_in_turn():
    stack = scramble(make_stack(EncoderLayer(6, 2, 8), 3))
    x, mask = draw(2, 4, 6, dtype=torch.float32), causal_mask(4)
    expected = stack[2](stack[1](stack[0](x, mask), mask), mask)
    torch.testing.assert_close(stack(x, mask), expected)
    torch.testing.assert_close(make_stack(nn.Linear(6, 6), 1)(x).shape, x.shape)
    backward(stack(x))
    assert all(p.grad is not None and p.grad.any() for p in stack.parameters())
    assert isinstance(stack, Stack)


def test_models_draw_each_layer_anew():
    for stack in (Encoder(6, 2, 8, 2), Decoder(6, 2, 8, 2), DecoderOnly(9, 5, 6, 2, 8, 2)):
        first, second = stack.layers
        assert not torch.equal(first.feed_forward.W1.weight, second.feed_forward.W1.weight)


# ------------------------------------------------------------------------------------- whole models
def translator(**options) -> Transformer:
    return scramble(Transformer(11, 13, 8, 2, 12, 2, **options)).eval()


def language_model(**options) -> DecoderOnly:
    return scramble(DecoderOnly(11, 9, 6, 3, 8, 2, **options)).eval()


SRC = torch.tensor([[4, 9, 2, 7, 0, 0], [3, 1, 8, 5, 10, 6]])
TGT = torch.tensor([[1, 12, 3, 0, 0], [1, 7, 4, 9, 2]])


@BOTH_NORMS
@pytest.mark.parametrize("place", range(1, 5))
def test_later_tokens_never_leak(place, pre_norm):
    """Change a token: the logits before it stay, those from it on move."""
    translate, model = translator(pre_norm=pre_norm), language_model(pre_norm=pre_norm)
    changed = TGT.clone()
    changed[1, place] = 5
    before, after = translate(SRC, TGT), translate(SRC, changed)
    torch.testing.assert_close(before[:, :place], after[:, :place], rtol=0, atol=0)
    assert (before[1, place] - after[1, place]).abs().max() > 1e-3
    torch.testing.assert_close(before[0], after[0], rtol=0, atol=0)  # the other sentence

    changed = SRC.clone()
    changed[1, place] = 7
    before, after = model(SRC), model(changed)
    torch.testing.assert_close(before[:, :place], after[:, :place], rtol=0, atol=0)
    assert (before[1, place:] - after[1, place:]).abs().amax(-1).min() > 1e-3


@BOTH_NORMS
def test_padding_changes_nothing_in_translation(pre_norm):
    """A sentence gives the same logits alone as padded in a batch."""
    model = translator(pre_norm=pre_norm)
    both = model(SRC, TGT)
    assert both.shape == (2, 5, 13) and both.isfinite().all()
    alone = model(SRC[:1, :4], TGT[:1, :3])
    torch.testing.assert_close(both[:1, :3], alone, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(both[1:], model(SRC[1:], TGT[1:]), rtol=1e-5, atol=1e-5)
    cross = model.decoder.layers[0].cross_attention.weights  # (1, H, T, S) of the last call
    assert cross.shape == (1, 2, 5, 6)
    model(SRC, TGT)
    assert not model.decoder.layers[1].cross_attention.weights[0, :, :, 4:].any()
    assert not model.encoder.layers[1].attention.weights[0, :, :, 4:].any()


def test_padding_id_can_be_any():
    model = translator(pad_id=6)
    src = torch.tensor([[4, 9, 6], [0, 1, 8]])
    torch.testing.assert_close(
        model(src, TGT)[:1, :3], model(src[:1, :2], TGT[:1, :3]), rtol=1e-5, atol=1e-5
    )
    assert model.padding_mask(src).tolist() == [[[True, True, False]], [[True, True, True]]]


def test_padding_changes_nothing_in_the_language_model():
    for model in (language_model(), language_model(pad_id=0)):  # after the sentence: both do
        alone = model(SRC[:1, :4])
        torch.testing.assert_close(model(SRC)[:1, :4], alone, rtol=1e-5, atol=1e-5)
    before = torch.tensor([[0, 0, 4, 9]])  # before the sentence: padding is not read
    assert model(before).isfinite().all()
    weights = model.layers[0].attention.weights[0]  # (H, T, T)
    assert not weights[:, :, :2].any() and not weights[:, :2].any()
    torch.testing.assert_close(weights[:, 2:].sum(-1), torch.ones(3, 2))


def test_a_sentence_of_padding_only_gives_finite_gradients():
    model = translator()
    out = model(torch.zeros(2, 4, dtype=torch.int64), TGT)
    backward(out)
    assert out.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_transformer_from_its_parts():
    """Embeddings times √d_model plus positions, encoder, decoder, output: as in the figure."""
    model = translator()
    assert not torch.equal(model.src_tokens.weight[:5], model.tgt_tokens.weight[:5])
    memory = model.encode(SRC)
    torch.testing.assert_close(model.decode(TGT, memory, model.padding_mask(SRC)), model(SRC, TGT))
    table = torch.tensor(blocks.sinusoidal_positions(6, 8), dtype=torch.float32)
    x = F.embedding(SRC, model.src_tokens.weight) * math.sqrt(8) + table
    torch.testing.assert_close(memory, model.encoder(x, (SRC != 0)[:, None]))
    y = F.embedding(TGT, model.tgt_tokens.weight) * math.sqrt(8) + table[:5]
    y = model.decoder(y, memory, (TGT != 0)[:, None], (SRC != 0)[:, None])
    torch.testing.assert_close(y @ model.output.weight.T, model(SRC, TGT))


def test_embeddings_start_as_large_as_positions():
    torch.manual_seed(0)
    model = Transformer(500, 500, 64, 4, 8, 1)
    scaled = model.src_tokens.weight * math.sqrt(64)
    assert abs(scaled.std().item() - 1) < 0.02


@BOTH_NORMS
def test_decoder_only_is_torchs_encoder_under_a_causal_mask(pre_norm):
    model = language_model(pre_norm=pre_norm, activation="gelu_tanh").double()
    options = {"activation": "gelu_tanh", "pre_norm": pre_norm, "eps": 1e-5}
    theirs = nn.TransformerEncoder(
        torch_layer(nn.TransformerEncoderLayer, 6, 3, 8, **options),
        2,
        norm=nn.LayerNorm(6, dtype=torch.float64) if pre_norm else None,
        enable_nested_tensor=False,
    )
    for name, place in of_stack(of_encoder_layer)(theirs, values).items():
        place.copy_(model.get_parameter(name).data)
    x = model.tokens.weight[SRC] + model.positions.weight[:6]
    expected = theirs(x, mask=~causal_mask(6)) @ model.output.weight.T
    torch.testing.assert_close(model(SRC), expected)


def test_tied_weights_stay_one_parameter():
    free, tied = language_model(), language_model(tie_weights=True)
    assert len([*free.parameters()]) == len([*tied.parameters()]) + 1
    for model in (tied, copy.deepcopy(tied), pickle.loads(pickle.dumps(tied))):
        assert model.output.weight is model.tokens.weight
    tied.load_state_dict(free.state_dict() | {"tokens.weight": free.output.weight})
    assert tied.output.weight is tied.tokens.weight
    before = tied.tokens.weight.detach().clone()
    backward(tied(SRC))
    torch.optim.SGD(tied.parameters(), lr=0.1).step()
    assert (tied.output.weight - before).abs().amax(-1).all()


def test_order_of_words_matters():
    model = language_model()
    ids = torch.tensor([[3, 7, 5]])
    swapped = torch.tensor([[7, 3, 5]])
    assert (model(ids)[0, -1] - model(swapped)[0, -1]).abs().max() > 1e-3


def test_state_dict_round_trip(tmp_path):
    for build, inputs in (
        (lambda: Transformer(11, 13, 8, 2, 12, 2, pre_norm=True), (SRC, TGT)),
        (lambda: DecoderOnly(11, 9, 6, 3, 8, 2, tie_weights=True, pre_norm=True), (SRC,)),
    ):
        model, other = scramble(build()), build()
        model(*inputs)  # what `weights` remembers is not saved
        torch.save(model.state_dict(), tmp_path / "model.pt")
        other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
        torch.testing.assert_close(other(*inputs), model(*inputs), rtol=0, atol=0)
        names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        assert names == set(model.state_dict())


def learn(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor, steps: int) -> float:
    """Adam on one batch; the last loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(model(*inputs).flatten(0, 1), targets.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@BOTH_NORMS
def test_transformer_learns_to_reverse(pre_norm):
    torch.manual_seed(0)
    model = Transformer(9, 9, 16, 2, 32, 1, pre_norm=pre_norm)
    src = torch.tensor([[3, 5, 7, 4], [8, 3, 6, 0], [4, 6, 3, 5], [7, 8, 0, 0]])
    full = torch.tensor(
        [[1, 4, 7, 5, 3, 2], [1, 6, 3, 8, 2, 0], [1, 5, 3, 6, 4, 2], [1, 8, 7, 2, 0, 0]]
    )
    assert learn(model, (src, full[:, :-1]), full[:, 1:], steps=80) < 0.05
    real = full[:, 1:] != 0
    assert (model(src, full[:, :-1]).argmax(-1) == full[:, 1:])[real].all()


@BOTH_NORMS
def test_decoder_only_learns_a_sentence(pre_norm):
    torch.manual_seed(0)
    model = DecoderOnly(8, 7, 16, 2, 32, 2, pre_norm=pre_norm, activation="gelu", tie_weights=True)
    ids = torch.tensor([[1, 5, 3, 5, 4, 6, 2], [2, 3, 3, 1, 7, 7, 5]])
    assert learn(model, (ids[:, :-1],), ids[:, 1:], steps=80) < 0.05


# ---------------------------------------------------------------------------------------- bad input
def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def ones(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


def ids(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


BAD_INPUT = {
    "heads that do not divide": (
        lambda: MultiHeadAttention(6, 10, 4),
        "num_heads is 4, but must divide the width d_out = 10",
    ),
    "heads that do not divide, in a layer": (lambda: EncoderLayer(10, 3, 8), "num_heads is 3.*10"),
    "heads that do not divide, in a model": (
        lambda: Transformer(9, 9, 10, 3, 8, 1),
        "num_heads is 3.*10",
    ),
    "no heads": (lambda: MultiHeadAttention(6, 6, 0), "num_heads is 0, but must be positive"),
    "no width": (lambda: MultiHeadAttention(6, 6, 2, d_head=0), "d_head is 0"),
    "negative width": (lambda: FeedForward(6, -1), "d_ff is -1"),
    "no layers": (lambda: Encoder(6, 2, 8, 0), "num_layers is 0"),
    "no layers in a model": (lambda: DecoderOnly(9, 5, 6, 2, 8, 0), "num_layers is 0"),
    "no model width": (lambda: Transformer(9, 9, 0, 1, 8, 1), "d_model is 0"),
    "no context": (lambda: DecoderOnly(9, 0, 6, 2, 8, 1), "context_length is 0"),
    "no copies": (lambda: make_stack(nn.Linear(2, 2), 0), "n is 0"),
    "no tokens in a mask": (lambda: causal_mask(0), "T is 0"),
    "odd width of positions": (lambda: PositionalEncoding(7), "d_model is 7, but must be even"),
    "unknown activation": (
        lambda: FeedForward(6, 8, activation="swish"),
        r"activation is 'swish', but must be one of \['relu', 'gelu', 'gelu_tanh'\]",
    ),
    "padding outside": (lambda: DecoderOnly(9, 5, 6, 2, 8, 1, pad_id=9), "pad_id is 9.*0 to 8"),
    "padding outside one of two": (
        lambda: Transformer(20, 9, 6, 2, 8, 1, pad_id=10),
        "pad_id is 10.*0 to 8",
    ),
    "no batch": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(4, 5)),
        r"x has shape \(4, 5\), but must be \(B, T, 5\)",
    ),
    "wrong width": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(2, 4, 6)),
        r"x has shape \(2, 4, 6\), but must be \(B, T, 5\)",
    ),
    "wrong width of memory": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(2, 4, 5), memory=zeros(2, 3, 6)),
        r"memory has shape \(2, 3, 6\), but must be \(B, T, 5\)",
    ),
    "batches that differ": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(2, 4, 5), memory=zeros(1, 3, 5)),
        r"memory has shape \(1, 3, 5\).*x \(2, 4, 5\)",
    ),
    "wrong width, encoder layer": (
        lambda: EncoderLayer(6, 2, 8, pre_norm=True)(zeros(2, 4, 5)),
        r"x has shape \(2, 4, 5\), but must be \(B, T, 6\)",
    ),
    "wrong width, decoder layer": (
        lambda: DecoderLayer(6, 2, 8)(zeros(4, 6), zeros(2, 4, 6)),
        r"y has shape \(4, 6\), but must be \(B, T, 6\)",
    ),
    "wrong memory, decoder layer": (
        lambda: DecoderLayer(6, 2, 8)(zeros(2, 4, 6), zeros(2, 4, 5)),
        r"memory has shape \(2, 4, 5\)",
    ),
    "wrong width, feed-forward": (
        lambda: FeedForward(6, 8)(zeros(2, 5)),
        r"x has shape \(2, 5\), but must be \(…, 6\)",
    ),
    "wrong width, positions": (
        lambda: PositionalEncoding(6)(zeros(2, 4, 5)),
        r"x has shape \(2, 4, 5\), but must be \(…, T, 6\)",
    ),
    "too long for positions": (
        lambda: PositionalEncoding(6, max_len=3)(zeros(2, 4, 6)),
        r"x has shape \(2, 4, 6\).*max_len = 3",
    ),
    "mask of another length": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(3, 4, 5), ones(4, 5)),
        r"mask has shape \(4, 5\), but must be \(4, 4\), \(3, 4, 4\) or \(3, 1 or 2, 4, 4\)",
    ),
    "padding mask without its axis for queries": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(3, 4, 5), ones(3, 4)),
        r"mask has shape \(3, 4\)",
    ),
    "mask of one axis": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(3, 4, 5), ones(4)),
        r"mask has shape \(4,\)",
    ),
    "mask of five axes": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(3, 4, 5), ones(1, 1, 1, 4, 4)),
        r"mask has shape \(1, 1, 1, 4, 4\)",
    ),
    "mask per head on the batch axis": (
        lambda: MultiHeadAttention(5, 6, 2)(zeros(3, 4, 5), ones(2, 4, 4)),
        r"mask has shape \(2, 4, 4\)",
    ),
    "mask of another length, decoder": (
        lambda: Decoder(6, 2, 8, 1)(zeros(3, 4, 6), zeros(3, 5, 6), ones(3, 1, 5)),
        r"mask has shape \(3, 1, 5\)",
    ),
    "id too large": (
        lambda: Transformer(9, 12, 6, 2, 8, 1)(ids([1, 9, 2]), ids([1, 2, 3])),
        "src holds the id 9, but ids must be from 0 to 8",
    ),
    "id too large in the target": (
        lambda: Transformer(12, 9, 6, 2, 8, 1)(ids([1, 9, 2]), ids([1, 20, 3])),
        "tgt holds the id 20, but ids must be from 0 to 8",
    ),
    "negative id": (
        lambda: DecoderOnly(9, 5, 6, 2, 8, 1)(ids([1, -1, 2])),
        "ids holds the id -1, but ids must be from 0 to 8",
    ),
    "ids without a batch": (
        lambda: DecoderOnly(9, 5, 6, 2, 8, 1)(torch.tensor([1, 2])),
        r"ids has shape \(2,\), but must be \(B, T\) with T from 1 to 5",
    ),
    "no ids": (
        lambda: DecoderOnly(9, 5, 6, 2, 8, 1)(torch.zeros(2, 0, dtype=torch.int64)),
        r"ids has shape \(2, 0\)",
    ),
    "more than the context": (
        lambda: DecoderOnly(9, 5, 6, 2, 8, 1)(torch.ones(2, 6, dtype=torch.int64)),
        r"ids has shape \(2, 6\).*T from 1 to 5",
    ),
    "longer than max_len": (
        lambda: Transformer(9, 9, 6, 2, 8, 1, max_len=3)(ids([1, 2]), ids([1, 2, 3, 4])),
        r"tgt has shape \(1, 4\).*T from 1 to 3",
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_named(name):
    call, message = BAD_INPUT[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("p", [-0.1, 1, 1.0, 1.5, math.nan])
def test_dropout_outside_its_range(p):
    builders = (
        lambda: MultiHeadAttention(6, 6, 2, dropout=p),
        lambda: PositionalEncoding(6, dropout=p),
        lambda: FeedForward(6, 8, dropout=p),
        lambda: EncoderLayer(6, 2, 8, dropout=p),
        lambda: DecoderLayer(6, 2, 8, dropout=p),
        lambda: Encoder(6, 2, 8, 1, dropout=p),
        lambda: Decoder(6, 2, 8, 1, dropout=p),
        lambda: Transformer(9, 9, 6, 2, 8, 1, dropout=p),
        lambda: DecoderOnly(9, 5, 6, 2, 8, 1, dropout=p),
    )
    for build in builders:
        with pytest.raises(ValueError, match=f"dropout is {p}, but must be at least 0 and less"):
            build()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(4, 4), "mask has dtype torch.float32, but must be a bool tensor"),
        (torch.ones(4, 4, dtype=torch.int64), "mask has dtype torch.int64"),
        (np.ones((4, 4), dtype=bool), "mask has type ndarray"),
        ([[True]], "mask has type list"),
    ],
)
def test_masks_that_are_not_boolean(mask, message):
    x = zeros(2, 4, 6)
    with pytest.raises(TypeError, match=message):
        MultiHeadAttention(6, 6, 2)(x, mask)
    with pytest.raises(TypeError, match=message):
        DecoderLayer(6, 2, 8)(x, x, mask)
    with pytest.raises(TypeError, match=message):
        DecoderLayer(6, 2, 8)(x, x, memory_mask=mask)


def test_ids_that_are_not_integers():
    model = DecoderOnly(9, 5, 6, 2, 8, 1)
    with pytest.raises(TypeError, match=r"ids has dtype torch.float32, but must be a tensor"):
        model(torch.ones(2, 3))
    with pytest.raises(TypeError, match="ids has type list"):
        model([[1, 2]])
    assert model(torch.ones(2, 3, dtype=torch.int32)).shape == (2, 3, 9)
    with pytest.raises(TypeError, match="layer is a function"):
        make_stack(F.relu, 2)


def test_layers_say_what_they_are():
    assert "num_heads=2, d_head=5" in repr(MultiHeadAttention(6, 4, 2, d_head=5))
    assert "d_model=6, max_len=9" in repr(PositionalEncoding(6, 9))
