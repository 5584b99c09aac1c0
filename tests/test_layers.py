"""helpers.layers against torch.nn after copying weights, against NumPy, and on its own promises."""

import copy
import math
import pickle
from collections.abc import Callable
from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import blocks
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

FEW = settings(max_examples=15, deadline=None)
SIZES = st.integers(1, 4)
SEEDS = st.integers(0, 2**16)
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)]
)
EVERY_ACTIVATION = pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
BOTH_KINDS = pytest.mark.parametrize("kind", ["encoder", "decoder"])
BOTH_NORMS = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])

Mapping = dict[str, Tensor]


def scramble(module: nn.Module, seed: int = 0) -> nn.Module:
    """Give every parameter, biases and gains too, values of its own."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.copy_(0.4 * noise + (0.8 if parameter.ndim == 1 else 0))
    return module


values, gradient = attrgetter("data"), attrgetter("grad")


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


def backward(output: Tensor) -> None:
    """A loss in which every output has a weight of its own."""
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).sin()
    (output.flatten() * weights).sum().backward()


def compare(
    ours: nn.Module,
    theirs: nn.Module,
    names: Callable[..., Mapping],
    inputs: tuple[Tensor, ...],
    run: tuple[Callable[..., Tensor], Callable[..., Tensor]],
    tolerance: float = 1e-8,
) -> None:
    """Same weights in, same outputs, same gradients of inputs and parameters out."""
    parameters, copies = dict(ours.named_parameters()), names(theirs, values)
    assert parameters.keys() == copies.keys()
    for name, parameter in parameters.items():
        copies[name].copy_(parameter.data)
    results = []
    for module, call in zip((ours, theirs), run, strict=True):
        leaves = [x.clone().requires_grad_() for x in inputs]
        output = call(module, *leaves)
        backward(output)
        results.append([output, *(leaf.grad for leaf in leaves)])
    results[0] += [parameter.grad for parameter in parameters.values()]
    results[1] += [names(theirs, gradient)[name] for name in parameters]
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def draw_padding(B: int, T: int, seed: int) -> Tensor:
    """(B, T) bool: each sentence has a length of its own, at least 1."""
    lengths = torch.randint(1, T + 1, (B, 1), generator=torch.Generator().manual_seed(seed))
    return torch.arange(T) < lengths


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


@FEW
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


@pytest.mark.parametrize("T", [1, 2, 7])
def test_the_causal_mask_and_its_flag_are_scaled_dot_products(T):
    Q, K, V = draw(3, 2, T, 5), draw(3, 2, T, 5, seed=1), draw(3, 2, T, 6, seed=2)
    ours = F.scaled_dot_product_attention(Q, K, V, attn_mask=causal_mask(T))
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(Q, K, V, is_causal=True))
    attention = scramble(MultiHeadAttention(6, 6, 2)).double()
    expected, weights = attention(draw(2, T, 6), causal_mask(T)), attention.weights
    torch.testing.assert_close(attention(draw(2, T, 6), causal=True), expected)
    torch.testing.assert_close(attention.weights, weights)
    with pytest.raises(TypeError, match="mask has type str"):
        attention(draw(2, T, 6), "causal")


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
        assert model.attention.weights is None
    model(x)
    assert model.attention.weights.shape == (2, 2, 4, 4)


def torch_layer(kind: str, D: int, H: int, d_ff: int, **options) -> nn.Module:
    name, named = options["activation"], {"gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}
    return (nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer)(
        D, H, d_ff, dropout=0.0, activation=named.get(name, name), layer_norm_eps=options["eps"],
        norm_first=options["pre_norm"], batch_first=True, dtype=torch.float64,
    )  # fmt: skip


def torch_stack(kind: str, n: int, D: int, H: int, d_ff: int, **options) -> nn.Module:
    """A whole nn.TransformerEncoder or -Decoder; pre-norm, it normalises at its end."""
    norm = nn.LayerNorm(D, options["eps"], dtype=torch.float64) if options["pre_norm"] else None
    layer = torch_layer(kind, D, H, d_ff, **options)
    if kind == "encoder":
        return nn.TransformerEncoder(layer, n, norm=norm, enable_nested_tensor=False)
    return nn.TransformerDecoder(layer, n, norm=norm)


def runs(kind: str, T: int, real: Tensor, memory_real: Tensor) -> tuple[Callable, Callable]:
    """How ours and torch's are called: causal, and with padding in both sentences."""
    if kind == "encoder":
        return (
            lambda layer, x: layer(x, causal_mask(T) & real[:, None]),
            lambda layer, x: layer(x, ~causal_mask(T), src_key_padding_mask=~real),
        )
    padded = {"tgt_key_padding_mask": ~real, "memory_key_padding_mask": ~memory_real}
    return (
        lambda layer, y, memory: layer(y, memory, real[:, None], memory_real[:, None]),
        lambda layer, y, memory: layer(y, memory, tgt_mask=~causal_mask(T), **padded),
    )


@BOTH_KINDS
@BOTH_NORMS
@EVERY_ACTIVATION
@FEW
@given(B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_head=SIZES, d_ff=SIZES, seed=SEEDS)
def test_layer_is_torchs(B, T, S, H, d_head, d_ff, seed, activation, pre_norm, kind):
    options = {"activation": activation, "pre_norm": pre_norm, "eps": 1e-2}
    D, layer = H * d_head, EncoderLayer if kind == "encoder" else DecoderLayer
    ours = scramble(layer(D, H, d_ff, **options), seed).double()
    names = of_encoder_layer if kind == "encoder" else of_decoder_layer
    inputs = (draw(B, T, D, seed=seed), draw(B, S, D, seed=seed + 1))[: 1 + (kind == "decoder")]
    run = runs(kind, T, draw_padding(B, T, seed), draw_padding(B, S, seed + 1))
    compare(ours, torch_layer(kind, D, H, d_ff, **options), names, inputs, run)


@BOTH_KINDS
@BOTH_NORMS
@pytest.mark.parametrize("eps", [1e-5, 1e-12])
def test_stack_is_torchs(kind, pre_norm, eps):
    B, T, S, D, H, d_ff, n = 2, 5, 4, 6, 3, 7, 3
    options = {"activation": "gelu", "pre_norm": pre_norm, "eps": eps}
    ours = scramble((Encoder if kind == "encoder" else Decoder)(D, H, d_ff, n, **options)).double()
    names = of_stack(of_encoder_layer if kind == "encoder" else of_decoder_layer)
    inputs = (draw(B, T, D), draw(B, S, D, seed=1))[: 1 + (kind == "decoder")]
    run = runs(kind, T, draw_padding(B, T, 1), draw_padding(B, S, 2))
    compare(ours, torch_stack(kind, n, D, H, d_ff, **options), names, inputs, run)


@pytest.mark.parametrize(("T", "D"), [(1, 2), (7, 10), (100, 6)])
def test_positions_are_numpys(T, D):
    x = draw(3, T, D)
    positions = PositionalEncoding(D, max_len=100)
    np.testing.assert_allclose(positions(x), blocks.add_positions(x.numpy()), atol=1e-6)
    torch.testing.assert_close(positions(x[0]), positions(x)[0])
    assert positions(x.float()).dtype == torch.float32
    assert not list(positions.parameters()) and not positions.state_dict()


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
    decoder = scramble(DecoderLayer(6, 2, 8, pre_norm=pre_norm))
    for layer, inputs, norms in ((encoder, (x,), 2), (decoder, (x, memory), 3)):
        found, expected = record(layer, factor=0.0), x
        for i in range(0 if pre_norm else norms):
            expected = layer.get_submodule(f"norm{i + 1}")(expected)
        torch.testing.assert_close(layer(*inputs), expected)
        assert found["dropout"].shapes == [(2, 4, 6)] * norms


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


def test_make_stack_copies_values_not_parameters():
    layer = scramble(EncoderLayer(6, 2, 8, dropout=0.1)).eval()
    x, mask = draw(2, 3, 6, dtype=torch.float32), causal_mask(3)
    layer(x)  # a layer that was used can be stacked
    stack = make_stack(layer, 3)
    expected = stack[2](stack[1](stack[0](x, mask), mask), mask)
    torch.testing.assert_close(stack(x, mask), expected)
    per_layer = len([*layer.parameters()])
    assert len([*stack.parameters()]) == len(stack.state_dict()) == 3 * per_layer
    assert len({p.data_ptr() for p in (*layer.parameters(), *stack.parameters())}) == 4 * per_layer
    for each in stack:
        for name, parameter in layer.named_parameters():
            assert torch.equal(each.get_parameter(name), parameter)
    backward(stack(x))
    assert isinstance(stack, Stack) and all(p.grad.any() for p in stack.parameters())


def test_models_draw_each_layer_anew():
    for stack in (Encoder(6, 2, 8, 2), Decoder(6, 2, 8, 2), DecoderOnly(9, 5, 6, 2, 8, 2)):
        first, second = stack.layers
        assert not torch.equal(first.feed_forward.W1.weight, second.feed_forward.W1.weight)


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
    src = torch.tensor([[4, 9, 6], [0, 1, 8]], dtype=torch.int32)  # welcome too
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


@BOTH_NORMS
def test_decoder_only_is_torchs_encoder_under_a_causal_mask(pre_norm):
    model = language_model(pre_norm=pre_norm, activation="gelu_tanh").double()
    options = {"activation": "gelu_tanh", "pre_norm": pre_norm, "eps": 1e-5}
    theirs = torch_stack("encoder", 2, 6, 3, 8, **options)
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


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def ones(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


def heads(x: Tensor, *more: Tensor, **named: Tensor) -> Tensor:
    """Two heads for 5 features."""
    return MultiHeadAttention(5, 6, 2)(x, *more, **named)


def write(*rows: list[int], pad_id: int | None = None) -> Tensor:
    """A model of 9 words that reads 5."""
    return DecoderOnly(9, 5, 6, 2, 8, 1, pad_id=pad_id)(torch.tensor(rows))


def say(src: list[int], tgt: list[int], words: tuple[int, int] = (9, 9), **options) -> Tensor:
    model = Transformer(*words, 6, 2, 8, 1, **options)
    return model(torch.tensor([src]), torch.tensor([tgt]))


BAD_INPUT = [
    (lambda: MultiHeadAttention(6, 10, 4),
     "num_heads is 4, but must be a divisor of d_out = 10"),
    (lambda: MultiHeadAttention(6, 6, 0), "num_heads is 0, but must be positive"),
    (lambda: MultiHeadAttention(6, 6, 2, d_head=0), "d_head is 0"),
    (lambda: Encoder(6, 2, 8, 0), "num_layers is 0"),
    (lambda: DecoderOnly(9, 0, 6, 2, 8, 1), "context_length is 0"),
    (lambda: make_stack(nn.Linear(2, 2), 0), "n is 0"),
    (lambda: causal_mask(0), "T is 0"),
    (lambda: PositionalEncoding(7), "d_model is 7, but must be even"),
    (lambda: FeedForward(6, 8, activation="swish"),
     r"activation is 'swish', but must be one of \['relu', 'gelu', 'gelu_tanh', 'silu'\]"),
    (lambda: write([1], pad_id=9), "pad_id is 9.*0 to 8"),
    (lambda: heads(zeros(4, 5)), r"x has shape \(4, 5\), but must be \(B, T, 5\)"),
    (lambda: heads(zeros(2, 4, 5), memory=zeros(2, 3, 6)), r"memory has shape \(2, 3, 6\)"),
    (lambda: heads(zeros(2, 4, 5), memory=zeros(1, 3, 5)),
     r"memory has shape \(1, 3, 5\).*x \(2, 4, 5\)"),
    (lambda: EncoderLayer(6, 2, 8, pre_norm=True)(zeros(2, 4, 5)), r"x has shape \(2, 4, 5\)"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(4, 6), zeros(2, 4, 6)), r"y has shape \(4, 6\)"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(2, 4, 6), zeros(2, 4, 5)), r"memory has shape \(2, 4, 5"),
    (lambda: FeedForward(6, 8)(zeros(2, 5)), r"x has shape \(2, 5\), but must be \(…, 6\)"),
    (lambda: PositionalEncoding(6)(zeros(2, 4, 5)), r"x has shape \(2, 4, 5\).*\(…, T, 6\)"),
    (lambda: PositionalEncoding(6, max_len=3)(zeros(2, 4, 6)), r"\(2, 4, 6\).*max_len = 3"),
    (lambda: heads(zeros(3, 4, 5), ones(4, 5)),
     r"mask has shape \(4, 5\), but must be \(4, 4\), \(3, 4, 4\) or \(3, 1 or 2, 4, 4\)"),
    (lambda: heads(zeros(3, 4, 5), ones(3, 4)), r"mask has shape \(3, 4\)"),
    (lambda: heads(zeros(3, 4, 5), ones(2, 4, 4)), r"mask has shape \(2, 4, 4\)"),
    (lambda: Decoder(6, 2, 8, 1)(zeros(3, 4, 6), zeros(3, 5, 6), ones(3, 1, 5)),
     r"mask has shape \(3, 1, 5\)"),
    (lambda: say([1, 9, 2], [1, 2, 3], (9, 12)), "src holds the id 9, but ids must be from 0 to 8"),
    (lambda: say([1, 9, 2], [1, 20, 3], (12, 9)), "tgt holds the id 20"),
    (lambda: write([1, -1, 2]), "ids holds the id -1, but ids must be from 0 to 8"),
    (lambda: write(1, 2), r"ids has shape \(2,\), but must be \(B, T\) with T from 1 to 5"),
    (lambda: write([1] * 6, [1] * 6), r"ids has shape \(2, 6\).*T from 1 to 5"),
    (lambda: say([1, 2], [1, 2, 3, 4], max_len=3), r"tgt has shape \(1, 4\).*T from 1 to 3"),
    (lambda: MultiHeadAttention(6, 6, 2)(zeros(2, 4, 6), zeros(4, 4)),
     "mask has dtype torch.float32, but must be a bool tensor"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(2, 4, 6), zeros(2, 4, 6), memory_mask=zeros(4, 4).long()),
     "mask has dtype torch.int64"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(2, 4, 6), zeros(2, 4, 6), np.ones((4, 4), dtype=bool)),
     "mask has type ndarray"),
    (lambda: write([1.0, 2.0]), "ids has dtype torch.float32, but must be a tensor"),
    (lambda: DecoderOnly(9, 5, 6, 2, 8, 1)([[1, 2]]), "ids has type list"),
    (lambda: make_stack(F.relu, 2), "layer is a function"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD_INPUT, ids=[message for _, message in BAD_INPUT])
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("p", [-0.1, 1, 1.0, 1.5, math.nan])
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [(MultiHeadAttention, (6, 6, 2)), (PositionalEncoding, (6,)), (FeedForward, (6, 8)),
     (EncoderLayer, (6, 2, 8)), (DecoderLayer, (6, 2, 8)), (Encoder, (6, 2, 8, 1)),
     (Decoder, (6, 2, 8, 1)), (Transformer, (9, 9, 6, 2, 8, 1)), (DecoderOnly, (9, 5, 6, 2, 8, 1))],
)  # fmt: skip
def test_dropout_outside_its_range(kind, sizes, p):
    with pytest.raises(ValueError, match=f"dropout is {p}, but must be at least 0 and less"):
        kind(*sizes, dropout=p)
