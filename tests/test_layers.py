"""helpers.layers against torch.nn after copying weights, and on its own promises."""

import copy
import pickle
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import normal, scrambled
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    unwatched,
)
from helpers.masks import causal_mask
from helpers.models import Decoder, DecoderOnly, Encoder, Transformer

FEW = settings(max_examples=15, deadline=None)
SIZES = st.integers(1, 4)
SEEDS = st.integers(0, 2**16)
Runs = tuple[Callable[..., Tensor], Callable[..., Tensor]]
BOTH_NORMS = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])


def padding(B: int, T: int, seed: int) -> Tensor:
    """(B, T) bool: each sentence has a length of its own, at least 1."""
    lengths = torch.randint(1, T + 1, (B, 1), generator=torch.Generator().manual_seed(seed))
    return torch.arange(T) < lengths


# ---------------------------------------------------------------- PyTorch's own layers


def renamed(theirs: nn.Module, what: str) -> dict[str, Tensor]:
    """The "data" or "grad" of PyTorch's parameters under our names; in_proj becomes three."""
    cross = any("multihead_attn" in name for name, _ in theirs.named_parameters())
    names = {"multihead_attn": "cross_attention", "out_proj": "W_o", "linear": "feed_forward.W",
             "self_attn": "self_attention" if cross else "attention"}  # fmt: skip
    found = {}
    for name, parameter in theirs.named_parameters():
        for old, new in names.items():
            name = name.replace(old, new)
        parts = getattr(parameter, what).chunk(3 if "in_proj" in name else 1)
        for letter, part in zip("qkv", parts, strict=False):
            found[name.replace("in_proj_", f"W_{letter}.")] = part
    return found


def backward(output: Tensor) -> None:
    """A loss in which every output has a weight of its own."""
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).sin()
    (output.flatten() * weights).sum().backward()


def compare(ours: nn.Module, theirs: nn.Module, inputs: Sequence[Tensor], run: Runs) -> None:
    """Same weights in, same outputs, same gradients of inputs and parameters out."""
    parameters, copies = dict(ours.named_parameters()), renamed(theirs, "data")
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
    results[1] += [renamed(theirs, "grad")[name] for name in parameters]
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-8)


@FEW
@given(B=SIZES, T=SIZES, S=SIZES, groups=st.integers(1, 3), shared=st.integers(1, 2), d_in=SIZES,
       d_out=SIZES, d_head=SIZES, bias=st.booleans(), seed=SEEDS)  # fmt: skip
def test_any_widths_are_torchs_scaled_dot_product(
    B, T, S, groups, shared, d_in, d_out, d_head, bias, seed
):
    """The three widths have nothing to do with each other; heads may share keys; rows be empty."""
    how = {"d_head": d_head, "num_kv_heads": groups, "bias": bias}
    ours = scrambled(MultiHeadAttention(d_in, d_out, groups * shared, **how), seed)
    x, memory = normal(B, T, d_in, seed=seed), normal(B, S, d_in, seed=seed + 1)
    mask = normal(B, groups * shared, T, S, seed=seed) > 0
    Q, K, V = (
        torch.stack(linear(z).split(d_head, dim=-1), dim=1)  # head h: its own slice of features
        for linear, z in ((ours.W_q, x), (ours.W_k, memory), (ours.W_v, memory))
    )
    K, V = (z.repeat_interleave(shared, dim=1) for z in (K, V))
    has_key = mask.any(-1, keepdim=True)
    context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | ~has_key) * has_key
    expected = ours.W_o(torch.cat(context.unbind(1), dim=-1))
    torch.testing.assert_close(ours(x, mask, memory), expected)
    torch.testing.assert_close(ours.weights @ V, context)
    assert all((linear.bias is not None) == bias for linear in (ours.W_q, ours.W_k, ours.W_v))


def torch_stack(kind, n, D, H, d_ff, activation, pre_norm, eps) -> nn.Module:
    """A whole nn.TransformerEncoder or -Decoder; pre-norm, it normalises at its end."""
    options = {"dropout": 0.0, "layer_norm_eps": eps, "norm_first": pre_norm, "batch_first": True}
    if activation == "gelu_tanh":
        activation = lambda x: F.gelu(x, approximate="tanh")  # noqa: E731
    layer = getattr(nn, f"Transformer{kind}Layer")(D, H, d_ff, activation=activation, **options)
    norm = nn.LayerNorm(D, eps) if pre_norm else None
    more = {"enable_nested_tensor": False} if kind == "Encoder" else {}
    return getattr(nn, f"Transformer{kind}")(layer, n, norm=norm, **more).double()


def runs(kind: str, T: int, real: Tensor, memory_real: Tensor) -> Runs:
    """How ours and torch's are called: causal, and with padding in both sentences."""
    if kind == "Encoder":
        return (
            lambda stack, x: stack(x, causal_mask(T) & real[:, None]),
            lambda stack, x: stack(x, ~causal_mask(T), src_key_padding_mask=~real),
        )
    padded = {"tgt_key_padding_mask": ~real, "memory_key_padding_mask": ~memory_real}
    return (
        lambda stack, y, memory: stack(y, memory, real[:, None], memory_real[:, None]),
        lambda stack, y, memory: stack(y, memory, tgt_mask=~causal_mask(T), **padded),
    )


@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
@BOTH_NORMS
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
@FEW
@given(n=st.integers(1, 3), B=SIZES, T=SIZES, S=SIZES, H=SIZES, d_head=SIZES, d_ff=SIZES,
       eps=st.sampled_from([1e-2, 1e-5, 1e-12]), seed=SEEDS)  # fmt: skip
def test_stacks_of_layers_are_torchs(
    n, B, T, S, H, d_head, d_ff, eps, seed, activation, pre_norm, kind
):
    options = {"activation": activation, "pre_norm": pre_norm, "eps": eps}
    D, stack = H * d_head, Encoder if kind == "Encoder" else Decoder
    ours = scrambled(stack(D, H, d_ff, n, **options), seed)
    inputs = (normal(B, T, D, seed=seed), normal(B, S, D, seed=seed + 1))[: 1 + (stack is Decoder)]
    run = runs(kind, T, padding(B, T, seed), padding(B, S, seed + 1))
    compare(ours, torch_stack(kind, n, D, H, d_ff, **options), inputs, run)


# ---------------------------------------------------------------- masks and weights


def mask_forms(B: int, H: int, T: int, S: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Every accepted form of a mask, beside what it means: (B, H, T, S)."""
    shapes = [(T, S), (1, S), (B, T, S), (1, T, S), (B, 1, S), (B, T, 1)]
    shapes += [(B, 1, T, S), (B, H, T, S), (1, H, T, S), (B, 1, 1, S), (B, H, 1, S)]
    masks = [normal(*shape, seed=seed + i) > -0.3 for i, shape in enumerate(shapes)]
    return [(m, (m[:, None] if m.ndim == 3 else m).expand(B, H, T, S)) for m in masks]


@FEW
@given(B=SIZES, H=SIZES, T=SIZES, S=SIZES, seed=SEEDS)
def test_masks_of_every_form_broadcast(B, H, T, S, seed):
    """Also where B, H and T are equal: three axes are always sentences, queries, keys."""
    attention = scrambled(MultiHeadAttention(5, 6, H, d_head=3, num_kv_heads=1), seed)
    x, memory = normal(B, T, 5), normal(B, S, 5, seed=1)
    for mask, full in mask_forms(B, H, T, S, seed):
        kept = mask.clone()
        torch.testing.assert_close(attention(x, mask, memory), attention(x, full, memory))
        assert torch.equal(attention.weights > 0, full)
        assert torch.equal(mask, kept)


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_query_without_keys_gets_zeros_and_finite_gradients(size):
    attention = scrambled(MultiHeadAttention(5, 6, 2))
    x = (size * normal(2, 4, 5)).requires_grad_()
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, 1] = False  # one query of the first sentence
    mask[1] = False  # the whole second sentence
    with torch.autograd.set_detect_anomaly(True):
        out = attention(x, mask)
        backward(out)
    assert not attention.weights[0, :, 1].any() and not attention.weights[1].any()
    empty = torch.stack([out[0, 1], *out[1]])
    torch.testing.assert_close(empty, attention.W_o.bias.expand(5, 6))  # the context is zero
    assert all(p.grad.isfinite().all() for p in (x, *attention.parameters()))
    assert not x.grad[1].any()  # nothing was read, nothing to change
    assert x.grad[0].any()


def test_weights_are_those_of_the_forward_whatever_changes_later():
    """One map for each head, before dropout, without gradients, and never saved."""
    attention = scrambled(MultiHeadAttention(6, 6, 2, dropout=0.5))
    assert attention.weights is None
    x, mask = normal(2, 4, 6), causal_mask(4)
    attention(x, mask)
    expected = copy.deepcopy(attention).weights  # a copy takes along what it has seen
    x.zero_()
    mask.fill_(True)
    scrambled(attention, seed=1)
    torch.testing.assert_close(attention.weights, expected, rtol=0, atol=0)
    torch.testing.assert_close(expected.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))
    assert torch.equal(expected > 0, causal_mask(4).expand(2, 2, 4, 4))
    assert not expected.requires_grad and "weights" not in "".join(attention.state_dict())


def test_unwatched_keeps_nothing():
    model, x = scrambled(EncoderLayer(6, 2, 8)), normal(2, 4, 6)
    out = model(x)
    with unwatched(model):
        assert model.attention.weights is None  # what was kept is let go
        with pytest.raises(ZeroDivisionError), unwatched(model.attention):
            _ = 1 / 0
        torch.testing.assert_close(model(x), out, rtol=0, atol=0)
        assert model.attention.weights is None
    model(x)
    assert model.attention.weights is not None


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize(("kind", "sizes"), [
    (MultiHeadAttention, (6, 6, 2)), (PositionalEncoding, (6, 9)), (FeedForward, (6, 8)),
    (EncoderLayer, (6, 2, 8)), (DecoderLayer, (6, 2, 8)), (Encoder, (6, 2, 8, 2)),
    (Decoder, (6, 2, 8, 2)),
])  # fmt: skip
def test_dropout_acts_in_training_only(kind, sizes):
    torch.manual_seed(0)
    dropping, plain = kind(*sizes, dropout=0.4), kind(*sizes)
    plain.load_state_dict(dropping.state_dict())
    inputs = [normal(2, T, 6).float() for T in (4, 3)][: 1 + (kind in (DecoderLayer, Decoder))]
    assert not torch.allclose(dropping(*inputs), dropping(*inputs))
    torch.testing.assert_close(dropping.eval()(*inputs), plain(*inputs))


@BOTH_NORMS
@pytest.mark.parametrize(("kind", "norms"), [(EncoderLayer, 2), (DecoderLayer, 3)])
def test_dropout_sits_before_the_residual(kind, norms, pre_norm):
    """If it drops everything, the residual path is all that is left."""
    layer, x = scrambled(kind(6, 2, 8, pre_norm=pre_norm)), normal(2, 4, 6)
    layer.dropout.p, expected = 1.0, x
    for i in range(0 if pre_norm else norms):
        expected = layer.get_submodule(f"norm{i + 1}")(expected)
    memory = [normal(2, 3, 6)] if kind is DecoderLayer else []
    torch.testing.assert_close(layer(x, *memory), expected)


def test_dropout_acts_on_the_weights():
    """One-hot values show the dropped weights themselves: each is 0, or larger by 1 / (1 - p)."""
    T = 40
    attention = scrambled(MultiHeadAttention(T, T, 1, bias=False, dropout=0.25))
    nn.init.eye_(attention.W_v.weight)
    nn.init.eye_(attention.W_o.weight)
    torch.manual_seed(0)
    dropped = attention(torch.eye(T, dtype=torch.float64)[None])[0]  # (T, T)
    assert abs((dropped == 0).double().mean() - 0.25) < 0.05
    expected = torch.where(dropped == 0, 0.0, attention.weights[0, 0] / 0.75)
    torch.testing.assert_close(dropped, expected)


def test_models_draw_each_layer_anew():
    for stack in (Encoder(6, 2, 8, 2), Decoder(6, 2, 8, 2), DecoderOnly(9, 5, 6, 2, 8, 2)):
        first, second = stack.layers
        assert not torch.equal(first.feed_forward.W1.weight, second.feed_forward.W1.weight)


def translator(**options) -> Transformer:
    return scrambled(Transformer(11, 13, 8, 2, 12, 2, **options)).eval()


def language_model(**options) -> DecoderOnly:
    return scrambled(DecoderOnly(11, 9, 6, 3, 8, 2, **options)).eval()


SRC = torch.tensor([[4, 9, 2, 7, 0, 0], [3, 1, 8, 5, 10, 6]])
TGT = torch.tensor([[1, 12, 3, 0, 0], [1, 7, 4, 9, 2]])


@BOTH_NORMS
@pytest.mark.parametrize("place", range(1, 5))
def test_later_tokens_never_leak(place, pre_norm):
    """Change a token: all before it stays, and the other sentence; from it on, all moves."""
    translate, continue_ = translator(pre_norm=pre_norm), language_model(pre_norm=pre_norm)
    for model, text in ((lambda tgt: translate(SRC, tgt), TGT), (continue_, SRC)):
        changed = text.clone()
        changed[1, place] = 6
        before, after = model(text), model(changed)
        assert torch.equal(before[:, :place], after[:, :place])
        assert torch.equal(before[0], after[0])
        assert (before[1, place:] - after[1, place:]).abs().amax(-1).min() > 1e-3


@BOTH_NORMS
@pytest.mark.parametrize("pad_id", [0, 6])
def test_padding_changes_nothing_in_translation(pad_id, pre_norm):
    """A sentence gives the same logits alone as padded in a batch; ids may be int32."""
    model = translator(pre_norm=pre_norm, pad_id=pad_id)
    swapped = {0: pad_id, pad_id: 0}
    src, tgt = (torch.tensor([[swapped.get(i, i) for i in row] for row in ids.tolist()]).int()
                for ids in (SRC, TGT))  # fmt: skip
    both = model(src, tgt)
    torch.testing.assert_close(both[:1, :3], model(src[:1, :4], tgt[:1, :3]))
    torch.testing.assert_close(both[1:], model(src[1:], tgt[1:]))


def test_padding_changes_nothing_in_the_language_model():
    """Not before the sentence: it is not read. After it, nothing is read at all."""
    model = language_model(pad_id=0)
    assert model(torch.tensor([[0, 0, 4, 9]])).isfinite().all()
    weights = model.layers[0].attention.weights[0]  # (H, T, T)
    assert not weights[:, :, :2].any() and not weights[:, :2].any()
    torch.testing.assert_close(weights[:, 2:].sum(-1), torch.ones(3, 2, dtype=torch.float64))


def test_tied_weights_stay_one_parameter():
    free, tied = language_model(), language_model(tie_weights=True)
    assert len([*free.parameters()]) == len([*tied.parameters()]) + 1
    tied.load_state_dict(free.state_dict() | {"tokens.weight": free.output.weight})
    for model in (tied, copy.deepcopy(tied), pickle.loads(pickle.dumps(tied))):
        assert model.output.weight is model.tokens.weight
    before = tied.tokens.weight.detach().clone()
    backward(tied(SRC))
    torch.optim.SGD(tied.parameters(), lr=0.1).step()
    assert (tied.output.weight - before).abs().amax(-1).all()
