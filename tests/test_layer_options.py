"""What has changed since 2017, as options of the one layer: each equal to its formula."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers.adapters import LowRank, adapted, merged
from helpers.attention import attention, online_softmax, softmax, tiled_attention
from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.layers import (
    EncoderLayer,
    FeedForward,
    LayerOptions,
    MixtureOfExperts,
    MultiHeadAttention,
)
from helpers.masks import causal_mask
from helpers.models import DecoderOnly
from helpers.rotary import rotate
from workshop.exercises import find
from workshop.machine.of_modules import describe
from workshop.machine.program import run

LLAMA = {"pre_norm": True, "rms_norm": True, "rope": 10000.0, "gated": True, "activation": "silu",
         "bias": False}  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def scrambled(module: nn.Module, seed: int = 0) -> nn.Module:
    """In float64, with gains and biases too that are not 1 and 0."""
    rng = np.random.default_rng(seed)
    for parameter in module.double().parameters():
        parameter.data += 0.3 * torch.from_numpy(rng.normal(size=tuple(parameter.shape)))
    return module.eval()


# ---------------------------------------------------------------- rotary positions


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotate_is_that_of_notebook_09(base):
    x = drawn(2, 3, 7, 8)
    whole = rotate(x, base)
    np.testing.assert_allclose(whole, find("rotate").reference(x.numpy(), base), atol=1e-12)
    pieces = [rotate(x[:, :, :4], base), rotate(x[:, :, 4:], base, past=4)]
    torch.testing.assert_close(torch.cat(pieces, dim=2), whole)


def test_dot_products_of_turned_vectors_depend_on_their_distance_alone():
    q, k = drawn(1, 6), drawn(1, 6, seed=1)

    def dot(i: int, j: int) -> float:
        return float(rotate(q, 10000.0, i) @ rotate(k, 10000.0, j).T)

    assert dot(5, 2) == pytest.approx(dot(103, 100)) and abs(dot(5, 2) - dot(2, 5)) > 1e-3


def test_what_inference_computed_serves_training_too():
    attention = MultiHeadAttention(8, 8, 2, rope=77.0)
    with torch.inference_mode():
        attention(torch.randn(1, 5, 8))
    attention(torch.randn(1, 5, 8)).sum().backward()
    assert attention.W_q.weight.grad is not None


def test_attention_turns_queries_and_keys_after_their_norm():
    module, x = scrambled(MultiHeadAttention(6, 8, 2, rope=100.0, qk_norm=True)), drawn(1, 5, 6)
    Q, K, V = (getattr(module, f"W_{k}")(x)[0].unflatten(-1, (2, 4)).transpose(0, 1) for k in "qkv")
    Q, K = (rotate(norm(h), 100.0) for norm, h in ((module.norm_q, Q), (module.norm_k, K)))
    weights = (Q @ K.transpose(1, 2) / 2).masked_fill(~causal_mask(5), -torch.inf).softmax(-1)
    out = module(x, causal=True)
    torch.testing.assert_close(out[0], module.W_o((weights @ V).transpose(0, 1).flatten(1)))
    torch.testing.assert_close(module.weights[0], weights)


# ---------------------------------------------------------------- fewer keys, fewer places


def with_own_keys(shared: MultiHeadAttention, **options) -> MultiHeadAttention:
    """The same attention with the rows of W_k and W_v written once for each head of its group."""
    H, d_in = shared.num_heads, shared.W_q.in_features
    own = MultiHeadAttention(d_in, shared.W_o.out_features, H, d_head=shared.d_head,
                             rope=shared.rope, **options).double().eval()  # fmt: skip
    values = shared.state_dict()
    for name in ("W_k.weight", "W_v.weight", "W_k.bias", "W_v.bias"):
        heads = values[name].unflatten(0, (shared.num_kv_heads, -1))
        values[name] = heads.repeat_interleave(H // shared.num_kv_heads, dim=0).flatten(0, 1)
    own.load_state_dict(values)
    return own


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("rope", [None, 50.0])
def test_shared_key_heads_are_rows_written_twice(num_kv_heads, rope):
    shared = scrambled(MultiHeadAttention(8, 10, 6, d_head=4, num_kv_heads=num_kv_heads, rope=rope))
    own, x = with_own_keys(shared), drawn(3, 7, 8)
    assert shared.W_k.weight.shape == (4 * num_kv_heads, 8)
    real = torch.arange(7) < torch.tensor([[7], [4], [5]])
    per_head = torch.rand(3, 6, 7, 7, generator=torch.Generator().manual_seed(0)) < 0.7
    for mask in (None, real[:, None], per_head):
        for causal in (False, True):
            out = shared(x, mask, causal=causal)
            torch.testing.assert_close(out, own(x, mask, causal=causal))
            torch.testing.assert_close(shared.weights, own.weights)
    torch.testing.assert_close(shared(x[:, -1:]), own(x[:, -1:]))


@pytest.mark.parametrize("window", [1, 2, 5, 9])
@pytest.mark.parametrize("cuts", [[9], [1] * 9, [3, 1, 5], [4, 4, 1]])
def test_a_window_is_a_mask_of_the_newest_keys_whole_or_in_pieces(window, cuts):
    module, x = MultiHeadAttention(8, 8, 4, num_kv_heads=2, window=window).double(), drawn(2, 9, 8)
    wide = MultiHeadAttention(8, 8, 4, num_kv_heads=2).double()
    wide.load_state_dict(module.state_dict())
    real = torch.ones(2, 1, 9, dtype=torch.bool)
    real[1, :, 4] = False
    band = causal_mask(9, window=window)
    assert band.sum(dim=1).tolist() == [min(i + 1, window) for i in range(9)]
    torch.testing.assert_close(module(x, causal=True), wide(x, band))
    torch.testing.assert_close(module.weights, wide.weights)
    cache, outs = KeyValueCache(), []
    with torch.no_grad():
        for piece, end in zip(x.split(cuts, dim=1), np.cumsum(cuts), strict=True):
            outs.append(module(piece, real[:, :, :end], cache=cache, causal=True))
    torch.testing.assert_close(torch.cat(outs, dim=1), wide(x, band & real))
    assert cache.nbytes == 2 * 2 * 2 * min(9, window - 1) * 2 * 8


@pytest.mark.parametrize("num_kv_heads", [1, 2, 8])
@pytest.mark.parametrize("window", [None, 16])
def test_the_cache_takes_the_bytes_of_the_formula(num_kv_heads, window):
    """Keys and values · layers · texts · shared heads · tokens · features · 4 bytes."""
    model = DecoderOnly(9, 64, 32, 8, 40, 3, num_kv_heads=num_kv_heads, window=window, **LLAMA)
    tokens = 64 if window is None else window - 1
    formula = 2 * 3 * 5 * num_kv_heads * tokens * 4 * 4
    for room in (0, 64):
        cache, ids = KeyValueCache(room), torch.randint(9, (5, 64))
        with torch.no_grad():
            model(ids[:, :32], cache)
            for t in range(32, 64):
                model(ids[:, t : t + 1], cache)
        assert cache.nbytes == formula


# ---------------------------------------------------------------- feed-forward


def test_a_gate_multiplies_the_hidden_features():
    module, x = scrambled(FeedForward(5, 7, activation="silu", gated=True)), drawn(2, 3, 5)
    gate = module.W_gate(x)
    expected = module.W2(gate * torch.sigmoid(gate) * module.W1(x))
    torch.testing.assert_close(module(x), expected)


def mixture(num_experts: int, top_k: int) -> MixtureOfExperts:
    options = {"activation": "silu", "gated": True, "bias": False}
    return scrambled(MixtureOfExperts(5, 7, num_experts, top_k, **options))


def test_one_expert_is_the_dense_network():
    module, x = mixture(1, 1), drawn(2, 3, 5)
    torch.testing.assert_close(module(x), module.experts[0](x))


@pytest.mark.parametrize(("num_experts", "top_k"), [(4, 1), (4, 2), (8, 3), (3, 3)])
def test_each_token_is_mixed_of_its_largest_shares(num_experts, top_k):
    module, x = mixture(num_experts, top_k), drawn(2, 6, 5)
    out = module(x)
    for b, t in np.ndindex(2, 6):
        shares = module.router(x[b, t]).softmax(dim=-1)
        best = shares.argsort(descending=True)[:top_k]
        parts = [shares[i] / shares[best].sum() * module.experts[i](x[b, t]) for i in best]
        torch.testing.assert_close(out[b, t], torch.stack(parts).sum(dim=0))
        assert set(module.chosen[b, t].tolist()) == set(best.tolist())


def test_a_mixture_learns_and_asks_only_who_was_chosen():
    module, asked = mixture(4, 2), []
    for expert in module.experts:
        expert.register_forward_hook(lambda _, args, out: asked.append(len(args[0])))
    x = drawn(2, 6, 5).requires_grad_()
    module(x).square().sum().backward()
    assert sum(asked) == 2 * 6 * 2
    assert x.grad.abs().min() > 0 and module.router.weight.grad.abs().max() > 0


# ---------------------------------------------------------------- layers and models


def test_rms_norm_of_a_layer_is_the_formula():
    norm, x = scrambled(LayerOptions(rms_norm=True, eps=0.1).norm(6)), drawn(2, 3, 6)
    root = (x.square().mean(dim=-1, keepdim=True) + 0.1).sqrt()
    torch.testing.assert_close(norm(x), x / root * norm.weight)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_layer_without_d_ff_ends_after_its_attention(pre_norm):
    layer, x = scrambled(EncoderLayer(6, 2, None, pre_norm=pre_norm)), drawn(2, 5, 6)
    expected = layer.add_and_norm(x, lambda h: layer.attention(h, causal=True), layer.norm1)
    torch.testing.assert_close(layer(x, causal=True), expected)
    assert not any("feed_forward" in name or "norm2" in name for name in layer.state_dict())


def test_with_rope_a_model_has_no_table_of_positions():
    model = DecoderOnly(9, 12, 8, 2, 16, 2, num_experts=4, **LLAMA)
    assert model.positions is None and not any("position" in name for name in model.state_dict())
    assert isinstance(model.layers[1].feed_forward, MixtureOfExperts)
    with pytest.raises(ValueError, match=r"ids has shape \(1, 13\).*T from 1 to 12"):
        model(torch.zeros(1, 13, dtype=torch.long))


X = torch.randn(1, 3, 8)
BAD_INPUT = [
    (lambda: MultiHeadAttention(8, 8, 4, num_kv_heads=3),
     "num_kv_heads is 3, but must be a divisor of num_heads = 4"),
    (lambda: MultiHeadAttention(8, 8, 4, num_kv_heads=0), "num_kv_heads is 0"),
    (lambda: MultiHeadAttention(6, 6, 2, rope=1e4), "d_head is 3, but must be even"),
    (lambda: MultiHeadAttention(8, 8, 2, rope=-1.0), "rope is -1.0, but must be positive"),
    (lambda: MultiHeadAttention(8, 8, 2, window=0), "window is 0, but must be positive"),
    (lambda: MultiHeadAttention(8, 8, 2, window=2)(X), "window is 2, but needs causal=True"),
    (lambda: MultiHeadAttention(8, 8, 2, window=2)(X, torch.ones(3, 5, dtype=bool), causal=True),
     r"mask has shape \(3, 5\), but must be \(3, 3\)"),
    (lambda: MultiHeadAttention(8, 8, 2, rope=1e4)(X, memory=X + 1), "memory is given, but rope"),
    (lambda: MixtureOfExperts(8, 8, 4, 5), "top_k is 5, but must be from 1 to num_experts = 4"),
    (lambda: MixtureOfExperts(8, 8, 0, 1), "num_experts is 0"),
    (lambda: MixtureOfExperts(8, 8, 4, 1)(X[..., :5]), r"x has shape \(1, 3, 5\)"),
    (lambda: LowRank(nn.Linear(3, 4), 0), "rank is 0, but must be positive"),
    (lambda: LowRank(nn.ReLU(), 2), "linear is a ReLU, but must be a torch.nn.Linear"),
    (lambda: adapted(EncoderLayer(8, 2, 8), ["W_q", "W_z"]), "names holds 'W_z'"),
    (lambda: online_softmax(np.ones(3), 0), "tile is 0, but must be positive"),
    (lambda: tiled_attention(np.ones((3, 2)), np.ones((3, 4)), np.ones((3, 2)), 2), "shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD_INPUT, ids=[message for _, message in BAD_INPUT])
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


# ---------------------------------------------------------------- adapters


def test_adapters_change_nothing_at_first_and_train_alone():
    model = scrambled(DecoderOnly(9, 12, 8, 2, 16, 2, **LLAMA))
    ids = torch.randint(9, (2, 7))
    before, values = model(ids), {k: v.clone() for k, v in model.state_dict().items()}
    assert adapted(model, ["W_q", "W_v", "W_gate"], rank=2, alpha=6) is model
    torch.testing.assert_close(model(ids), before)
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learned and all(name.endswith((".A", ".B")) for name in learned)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        model(ids).square().mean().backward()
        optimizer.step()
    after, plain = model(ids), merged(model)
    assert (after - before).abs().max() > 1e-3
    torch.testing.assert_close(plain(ids), after)
    torch.testing.assert_close(model(ids), after)  # merging a copy leaves it adapted
    assert plain.state_dict().keys() == values.keys()
    same = [k for k, v in plain.state_dict().items() if torch.equal(v, values[k])]
    assert {k.split(".")[-2] for k in values.keys() - set(same)} == {"W_q", "W_v", "W_gate"}


def test_a_low_rank_map_is_one_matrix():
    module = LowRank(nn.Linear(5, 4).double(), 2, alpha=3)
    module.B.data = drawn(2, 4)
    module.A.data = module.A.data.double()
    x, update = drawn(6, 5), module.weight - module.linear.weight
    torch.testing.assert_close(module(x), x @ module.weight.T + module.bias)
    torch.testing.assert_close(update, 1.5 * (module.A @ module.B).T)
    assert torch.linalg.matrix_rank(update) == 2


def test_an_adapted_model_writes_and_is_drawn_as_the_merged_one():
    model = adapted(DecoderOnly(9, 12, 8, 2, 16, 2, **LLAMA), ["W_q", "W_v", "W_gate"], rank=2)
    model, ids = scrambled(model), [1, 2, 3, 4]
    assert generate(model, [ids], 6) == generate(merged(model), [ids], 6)
    logits = run(describe(model), {"text": ids})["logits"]
    np.testing.assert_allclose(logits, model(torch.tensor([ids]))[0].detach(), atol=1e-9)


# ---------------------------------------------------------------- tile by tile


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(shape=st.lists(st.integers(1, 7), max_size=2), n=st.integers(1, 40), tile=st.integers(1, 45),
       size=st.sampled_from([0.01, 1.0, 300.0]), seed=st.integers(0, 2**16))  # fmt: skip
def test_softmax_tile_by_tile_is_softmax(shape, n, tile, size, seed):
    rng = np.random.default_rng(seed)
    x = size * rng.normal(size=(*shape, n))
    hidden = rng.random(x.shape) < 0.3
    hidden[..., rng.integers(n)] = False
    for scores in (x, np.where(hidden, -np.inf, x), x.astype(np.float32)):
        np.testing.assert_allclose(online_softmax(scores, tile), softmax(scores), atol=1e-6)
    integers = np.round(x).astype(int)
    np.testing.assert_allclose(online_softmax(integers, tile), softmax(integers), atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(st.integers(1, 3), max_size=2), T=st.integers(1, 9),
       Tk=st.integers(1, 20), tile=st.integers(1, 22), size=st.sampled_from([1, 99]),
       seed=st.integers(0, 2**16))  # fmt: skip
def test_attention_tile_by_tile_is_attention(shape, T, Tk, tile, size, seed):
    rng = np.random.default_rng(seed)
    Q, K, V = (size * rng.normal(size=(*shape, n, d)) for n, d in ((T, 4), (Tk, 4), (Tk, 3)))
    np.testing.assert_allclose(tiled_attention(Q, K, V, tile), attention(Q, K, V), atol=1e-6 * size)
