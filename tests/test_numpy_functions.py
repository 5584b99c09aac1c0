"""Every NumPy function against its PyTorch counterpart, over shapes, batches, masks and sizes."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import scrambled
from torch import Tensor, nn

from helpers import attention as at
from helpers import blocks, decoding, text
from helpers.layers import DecoderLayer, EncoderLayer
from workshop.exercises import find

SIZE = st.integers(1, 5)
SEEDS = st.integers(0, 2**32 - 1)
V = 7  # words


def t(array) -> Tensor:
    return torch.tensor(np.asarray(array))


def same(ours, theirs: Tensor) -> None:
    """Also in shape and precision."""
    atol, rtol = (2e-5, 2e-5) if theirs.dtype == torch.float32 else (1e-10, 1e-9)
    torch.testing.assert_close(t(ours), theirs.detach(), atol=atol, rtol=rtol)


def frozen(array: np.ndarray) -> np.ndarray:
    """Who writes into an argument fails."""
    array.flags.writeable = False
    return array


@st.composite
def arrays(draw, dtype: type) -> SimpleNamespace:
    """Arrays that fit each other: every size, batch and mask; a query may be left without keys."""
    B, T, S, H, d, d_v = (draw(SIZE) for _ in range(6))
    sizes = [0.1, 1.0, 30.0] if dtype is np.float64 else [0.1, 1.0]
    size, rng = draw(st.sampled_from(sizes)), np.random.default_rng(draw(SEEDS))

    def normal(*shape: int, size: float = 1.0) -> np.ndarray:
        return frozen((size * rng.normal(size=shape)).astype(dtype))

    D, batch = H * d, (B, H)[: draw(st.integers(0, 2))]
    shape, first = (*batch, T, S), np.arange(S) == 0
    mask = rng.random(shape[draw(st.integers(0, len(batch))) :]) < draw(st.floats(0.1, 0.9))
    ids = rng.integers(0, V, (B, T))
    targets = np.where(ids == ids[0, 0], 0, ids)  # at least one is not V − 1, the padding
    return SimpleNamespace(
        Q=normal(*batch, T, d, size=size), K=normal(*batch, S, d, size=size),
        V=normal(*batch, S, d_v), scores=normal(*shape, size=size**2), mask=frozen(mask),
        full=frozen(mask | first), sentences=frozen(rng.random((B, T, S)) < 0.6) | first,
        real=frozen(rng.random((B, S)) < 0.7), ids=frozen(ids), targets=frozen(targets), T=T, H=H,
        D=D, axis=draw(st.integers(-len(shape), len(shape) - 1)),
        x=normal(B, T, D), memory=normal(B, S, D), W=[normal(D, D) for _ in range(4)],
        W_v=normal(D, d_v), gain=normal(D), shift=normal(D), eps=draw(st.sampled_from([1e-5, 0.1])),
        W1=normal(D, 6), b1=normal(6), W2=normal(6, D), table=normal(V, d),
        logits=normal(B, T, V, size=size**2),
    )  # fmt: skip


def softmax(scores: np.ndarray, mask: np.ndarray) -> Tensor:
    """That of PyTorch, with −∞ for what is hidden, and zeros where nothing is left."""
    return t(scores).masked_fill(~t(mask), -torch.inf).softmax(-1).nan_to_num(0.0)


def torchs_heads(n: SimpleNamespace) -> Tensor:
    """nn.MultiheadAttention with the same weights, whose mask says what is hidden."""
    theirs = nn.MultiheadAttention(n.D, n.H, bias=False, batch_first=True)
    theirs.in_proj_weight.data = t(np.concatenate(n.W[:3], axis=1).T)
    theirs.out_proj.weight.data = t(n.W[3].T)
    memory, hidden = t(n.memory), ~t(n.sentences).repeat_interleave(n.H, dim=0)
    return theirs(t(n.x), memory, memory, attn_mask=hidden)[0]


def layer_norm(n: SimpleNamespace, x: Tensor) -> Tensor:
    return F.layer_norm(x, (n.D,), t(n.gain), t(n.shift), n.eps)


def layers(
    n: SimpleNamespace, kind: type, numpys: Callable, *inputs: np.ndarray, **attentions: str
) -> tuple[np.ndarray, Tensor]:
    """With helpers.layers, which are compared with torch.nn: their weights as blocks take them."""
    layer = scrambled(kind(n.D, n.H, 7, bias=False)).to(t(n.x).dtype)
    w = {name: value.numpy().T for name, value in layer.state_dict().items()}
    p = {ours: {W: w[f"{theirs}.{W}.weight"] for W in ("W_q", "W_k", "W_v", "W_o")}
         | {"num_heads": n.H} for ours, theirs in attentions.items()}  # fmt: skip
    p |= {norm: (w[f"{norm}.weight"], w[f"{norm}.bias"]) for norm in ("norm1", "norm2", "norm3")
          if f"{norm}.bias" in w}  # fmt: skip
    W1, W2 = w["feed_forward.W1.weight"], w["feed_forward.W2.weight"]
    p["ffn"] = {"W1": W1, "b1": 0 * W1[0], "W2": W2, "b2": 0 * W2[0]}
    return numpys(*inputs, p), layer(*map(t, inputs))


def heads_of(n: SimpleNamespace) -> Tensor:
    """Head h: its own slice of features."""
    return torch.stack(t(n.x).chunk(n.H, dim=-1), dim=1)


TORCHS = {
    "one_hot": lambda n: (text.one_hot(n.ids, V), F.one_hot(t(n.ids), V).float()),
    "embed": lambda n: (text.embed(text.one_hot(n.ids, V), n.table),
                        F.embedding(t(n.ids), t(n.table))),
    "project_qkv": lambda n: (np.concatenate(at.project_qkv(n.x, *n.W[:2], n.W_v), axis=-1),
                              t(n.x) @ t(np.concatenate([*n.W[:2], n.W_v], axis=1))),
    "attention_scores": lambda n: (at.attention_scores(n.Q, n.K), t(n.Q) @ t(n.K).mT),
    "softmax": lambda n: (at.softmax(n.scores, n.axis), t(n.scores).softmax(n.axis)),
    "softmax of integers": lambda n: (at.softmax(n.ids), t(n.ids).double().softmax(-1)),
    "attention_weights": lambda n: (at.attention_weights(n.Q, n.K),
                                    (t(n.Q) @ t(n.K).mT / n.Q.shape[-1] ** 0.5).softmax(-1)),
    "attention": lambda n: (at.attention(n.Q, n.K, n.V),
                            F.scaled_dot_product_attention(t(n.Q), t(n.K), t(n.V))),
    "causal_mask": lambda n: (at.causal_mask(n.T), torch.ones(n.T, n.T).tril().bool()),
    "masked_softmax": lambda n: (at.masked_softmax(n.scores, n.full), softmax(n.scores, n.full)),
    "safe_masked_softmax": lambda n: (at.safe_masked_softmax(n.scores, n.mask),
                                      softmax(n.scores, n.mask)),
    "padding_mask": lambda n: (at.padding_mask(n.ids, 2), t(n.ids)[:, None] != 2),
    "padded_weights": lambda n: (at.padded_weights(n.x @ np.swapaxes(n.memory, 1, 2), n.real),
                                 softmax(t(n.x) @ t(n.memory).mT, n.real[:, None])),
    "split_heads": lambda n: (at.split_heads(n.x, n.H), heads_of(n)),
    "merge_heads": lambda n: (at.merge_heads(heads_of(n).numpy()), t(n.x)),
    "multi_head_attention": lambda n: (at.multi_head_attention(
        n.x, *n.W, n.H, mask=n.sentences, memory=n.memory), torchs_heads(n)),
    "layer_norm": lambda n: (blocks.layer_norm(n.x, n.gain, n.shift, n.eps), layer_norm(n, t(n.x))),
    "add_and_norm": lambda n: (blocks.add_and_norm(n.x, n.x**2, n.gain, n.shift, n.eps),
                               layer_norm(n, t(n.x + n.x**2))),
    "pre_norm": lambda n: (blocks.pre_norm(n.x, np.tanh, n.gain, n.shift, n.eps),
                           t(n.x) + layer_norm(n, t(n.x)).tanh()),
    "feed_forward": lambda n: (
        blocks.feed_forward(n.x, n.W1, n.b1, n.W2, n.shift),
        F.linear(F.linear(t(n.x), t(n.W1.T), t(n.b1)).relu(), t(n.W2.T), t(n.shift))),
    "encoder_layer": lambda n: layers(n, EncoderLayer, blocks.encoder_layer, n.x, attn="attention"),
    "decoder_layer": lambda n: layers(n, DecoderLayer, blocks.decoder_layer, n.x, n.memory,
                                      self="self_attention", cross="cross_attention"),
    "cross_attention": lambda n: (
        blocks.cross_attention(n.x, n.memory, *n.W[:2], n.W_v),
        F.scaled_dot_product_attention(t(n.x @ n.W[0]), t(n.memory @ n.W[1]), t(n.memory @ n.W_v))),
    "next_token_logits": lambda n: (decoding.next_token_logits(n.x, n.W1), t(n.x)[:, -1] @ t(n.W1)),
    "cross_entropy": lambda n: (
        decoding.cross_entropy(n.logits, n.targets, pad_id=V - 1),
        F.cross_entropy(t(n.logits).double().mT, t(n.targets), ignore_index=V - 1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", TORCHS)
@settings(max_examples=40)
@given(st.data())
def test_a_function_is_torchs(name, dtype, data):
    same(*TORCHS[name](data.draw(arrays(dtype))))


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(shape=st.lists(st.integers(1, 7), max_size=2), n=st.integers(1, 40), tile=st.integers(1, 45),
       size=st.sampled_from([0.01, 1.0, 300.0]), seed=SEEDS)  # fmt: skip
def test_softmax_tile_by_tile_is_softmax(shape, n, tile, size, seed):
    rng = np.random.default_rng(seed)
    x = size * rng.normal(size=(*shape, n))
    hidden = rng.random(x.shape) < 0.3
    hidden[..., rng.integers(n)] = False
    for scores in (x, np.where(hidden, -np.inf, x), x.astype(np.float32)):
        np.testing.assert_allclose(at.online_softmax(scores, tile), at.softmax(scores), atol=1e-6)
    integers = np.round(x).astype(int)
    ours = at.online_softmax(integers, tile)
    np.testing.assert_allclose(ours, at.softmax(integers), atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(st.integers(1, 3), max_size=2), T=st.integers(1, 9), S=st.integers(1, 20),
       tile=st.integers(1, 22), size=st.sampled_from([1, 99]), seed=SEEDS)  # fmt: skip
def test_attention_tile_by_tile_is_attention(shape, T, S, tile, size, seed):
    rng = np.random.default_rng(seed)
    Q, K, V = (size * rng.normal(size=(*shape, n, d)) for n, d in ((T, 4), (S, 4), (S, 3)))
    ours = at.tiled_attention(Q, K, V, tile)
    np.testing.assert_allclose(ours, at.attention(Q, K, V), atol=1e-6 * size)


@given(T=st.integers(1, 40), g=st.sampled_from([1.0, 0.9, 0.3]), seed=SEEDS)
def test_attention_by_a_state_is_attention_by_a_table(T, g, seed):
    """Without softmax, both orders of the product agree, and each word sees none after it."""
    rng, t = np.random.default_rng(seed), np.arange(T)
    (Q, K), V = np.exp(rng.normal(size=(2, T, 4))), rng.normal(size=(T, 3))
    weights = Q @ K.T * np.where(t[:, None] >= t, g ** abs(t[:, None] - t), 0)
    context = weights @ V / weights.sum(axis=-1, keepdims=True)
    ours = find("linear_attention").reference(Q, K, V, g)
    np.testing.assert_allclose(ours, context, atol=1e-6)


@given(SIZE, SIZE)
def test_positions_are_the_formula(T, half):
    D = 2 * half
    angle = [[pos / 10000 ** (2 * i / D) for i in range(half)] for pos in range(T)]
    table = [[wave(a) for a in row for wave in (math.sin, math.cos)] for row in angle]
    same(blocks.sinusoidal_positions(T, D), torch.tensor(table, dtype=torch.float64))
    x = frozen(np.random.default_rng(T).normal(size=(2, T, D)).astype(np.float32))
    same(blocks.add_positions(x), t(x) + torch.tensor(table))


@given(SEEDS, st.floats(0.0, 0.95))
def test_dropout_drops_its_share_and_rescales_the_rest(seed, p):
    x = frozen(np.random.default_rng(seed).normal(size=(30, 40)).astype(np.float32) + 9)
    ours = at.dropout(x, p, True, np.random.default_rng(seed))
    kept = ours != 0
    same(ours[kept], t(x[kept] / (1 - p)))
    assert abs(kept.mean() - (1 - p)) < 0.08
    assert at.dropout(x, p, False, np.random.default_rng(0)) is x


@given(SEEDS, st.floats(0.2, 5), st.none() | st.integers(1, 9), st.none() | st.floats(0.05, 1))
def test_next_token_probs(seed, temperature, top_k, top_p):
    logits = frozen(3 * np.random.default_rng(seed).normal(size=V))
    probs = decoding.next_token_probs(logits, temperature, top_k, top_p)
    full = torch.softmax(t(logits) / temperature, -1).numpy()
    kept = probs > 0
    np.testing.assert_allclose(probs, full * kept / full[kept].sum(), atol=1e-10)
    assert kept.sum() <= min(top_k or V, V) and kept[full.argmax()]
    if top_p is not None and top_k is None:
        nucleus = np.sort(full)[::-1].cumsum()
        assert kept.sum() == min(V, 1 + (nucleus < top_p - 1e-12).sum())
    if top_p is None:
        assert kept.sum() == min(top_k or V, V)


def test_sample_token_follows_the_probabilities():
    rng, probs = np.random.default_rng(0), np.array([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount([decoding.sample_token(probs, rng) for _ in range(20_000)], minlength=4)
    np.testing.assert_allclose(counts / 20_000, probs, atol=0.015)
    assert counts[1] == 0
