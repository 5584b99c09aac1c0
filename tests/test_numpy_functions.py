"""Every NumPy function against its PyTorch counterpart, over shapes, batches, masks and sizes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from helpers import attention as at
from helpers import blocks, decoding, text
from helpers.layers import DecoderLayer, EncoderLayer

SIZE = st.integers(1, 6)
SEEDS = st.integers(0, 2**32 - 1)
LARGE = st.floats(-1000, 1000, allow_nan=False, width=32)
PRECISION = {np.float64: 1e-10, np.float32: 2e-5}


def same(ours, theirs, atol=1e-10):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, atol=atol, rtol=max(atol, 1e-9))


def t(array):
    return torch.from_numpy(np.asarray(array))


@st.composite
def qkv(draw):
    """Queries, keys, values of every batch shape, with Tq ≠ Tk and d_k ≠ d_v allowed."""
    batch = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    tq, tk, d_k, d_v = (draw(SIZE) for _ in range(4))
    rng = np.random.default_rng(draw(SEEDS))
    size = draw(st.sampled_from([0.1, 1.0, 30.0]))
    shapes = (*batch, tq, d_k), (*batch, tk, d_k), (*batch, tk, d_v)
    return tuple(size * rng.normal(size=shape) for shape in shapes)


@st.composite
def scores_and_mask(draw, empty_rows=False):
    """Scores up to ±1,000 and a mask for them; every row has an allowed key unless asked."""
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=4, max_side=5))
    rng = np.random.default_rng(draw(SEEDS))
    scores = draw(st.sampled_from([1.0, 1000.0])) * rng.uniform(-1, 1, size=shape)
    mask = rng.random(shape[draw(st.integers(0, len(shape) - 2)) :]) < draw(st.floats(0.1, 0.9))
    if not empty_rows:
        mask[..., 0] |= ~mask.any(axis=-1)
    return scores, mask


@given(hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.integers(0, 6)))
def test_one_hot_and_embed(ids):
    onehot = text.one_hot(ids, 7)
    same(onehot, F.one_hot(t(ids), 7).float())
    assert onehot.dtype == np.float32
    table = np.random.default_rng(ids.size).normal(size=(7, 4))
    same(text.embed(onehot, table), F.embedding(t(ids), t(table)))


def test_tokenize_keeps_words_whole_and_marks_apart():
    sentence = "The true enemy won't wait, you say?"
    assert text.tokenize(sentence) == "the true enemy won't wait , you say ?".split()
    assert text.tokenize(sentence, lower=False)[0] == "The"
    assert text.tokenize("") == []


def test_vocabulary_encode_decode():
    vocab = text.build_vocab(["you win or you die", "you win"])
    assert vocab == {"you": 0, "win": 1, "or": 2, "die": 3}
    ids = text.encode("die or win".split(), vocab)
    assert ids.dtype == np.int64 and ids.tolist() == [3, 2, 1]
    assert text.decode(ids, vocab) == ["die", "or", "win"]


def test_bigrams_count_pairs_within_sentences():
    fruit = ["I love oranges", "I love grapes", "you love oranges"]
    words = ["I", "you", "love", "oranges", "grapes"]
    probs = text.bigram_probs(fruit, words)
    expected = np.zeros((5, 5))
    expected[0, 2] = expected[1, 2] = 1
    expected[2, 3:] = 2 / 3, 1 / 3
    same(probs, expected)
    smooth = text.bigram_probs(fruit, {word: i for i, word in enumerate(words)}, smoothing=0.5)
    same(smooth.sum(axis=1), np.ones(5))
    same(smooth[2], np.array([0.5, 0.5, 0.5, 2.5, 1.5]) / 5.5)


@given(qkv())
def test_attention(arrays):
    Q, K, V = arrays
    d_k = K.shape[-1]
    same(at.attention_scores(Q, K), t(Q) @ t(K).transpose(-1, -2), atol=1e-9)
    weights = at.attention_weights(Q, K)
    same(weights, torch.softmax(t(Q) @ t(K).transpose(-1, -2) / math.sqrt(d_k), -1))
    same(weights.sum(axis=-1), np.ones(weights.shape[:-1]))
    same(at.attention(Q, K, V), F.scaled_dot_product_attention(*map(t, arrays)), atol=1e-9)


@given(SEEDS, SIZE, SIZE, SIZE, SIZE)
def test_project_qkv_is_three_linear_maps(seed, tokens, d, d_k, d_v):
    rng = np.random.default_rng(seed)
    X, W_q, W_k, W_v = (rng.normal(size=s) for s in ((2, tokens, d), (d, d_k), (d, d_k), (d, d_v)))
    for ours, W in zip(at.project_qkv(X, W_q, W_k, W_v), (W_q, W_k, W_v), strict=True):
        same(ours, F.linear(t(X), t(W.T)))


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=4, max_side=5), elements=LARGE), st.data())
def test_softmax(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    ours = at.softmax(x, axis=axis)
    assert ours.dtype == x.dtype
    same(ours, torch.softmax(t(x), axis), atol=2e-6)
    same(ours.sum(axis=axis), np.ones(ours.sum(axis=axis).shape), atol=1e-5)


@given(scores_and_mask())
def test_masked_softmax(pair):
    scores, mask = pair
    theirs = torch.softmax(t(scores).masked_fill(~t(mask), -torch.inf), -1)
    same(at.masked_softmax(scores, mask), theirs)
    same(at.safe_masked_softmax(scores, mask), theirs)


@given(scores_and_mask(empty_rows=True))
def test_safe_masked_softmax_gives_zeros_to_an_empty_row(pair):
    scores, mask = pair
    theirs = torch.softmax(t(scores).masked_fill(~t(mask), -torch.inf), -1).nan_to_num(0.0)
    same(at.safe_masked_softmax(scores, mask), theirs)


@given(SEEDS, SIZE, SIZE, SIZE)
def test_masks(seed, B, T, Tq):
    rng = np.random.default_rng(seed)
    assert at.causal_mask(T).tolist() == torch.ones(T, T).tril().bool().tolist()
    ids = rng.integers(0, 3, size=(B, T))
    mask = at.padding_mask(ids, pad_id=2)
    assert mask.shape == (B, 1, T) and mask[:, 0].tolist() == (ids != 2).tolist()
    scores = rng.normal(size=(B, Tq, T))
    same(at.padded_weights(scores, ids != 2), at.safe_masked_softmax(scores, mask))


@given(SEEDS, st.floats(0.0, 0.95))
def test_dropout_drops_its_share_and_rescales_the_rest(seed, p):
    x = np.random.default_rng(seed).normal(size=(30, 40)) + 9
    ours = at.dropout(x, p, True, np.random.default_rng(seed))
    kept = ours != 0
    same(ours[kept], x[kept] / (1 - p))
    assert abs(kept.mean() - (1 - p)) < 0.08
    assert at.dropout(x, p, False, np.random.default_rng(0)) is x


@given(SEEDS, SIZE, SIZE, SIZE, SIZE)
def test_split_and_merge_heads(seed, B, T, H, d_head):
    x = np.random.default_rng(seed).normal(size=(B, T, H * d_head))
    split = at.split_heads(x, H)
    assert split.shape == (B, H, T, d_head)
    for h in range(H):
        same(split[:, h], x[:, :, h * d_head : (h + 1) * d_head])
    same(at.merge_heads(split), x)


@st.composite
def heads_case(draw):
    B, T, S, H, d_head = (draw(st.integers(1, 4)) for _ in range(5))
    D = H * d_head
    rng = np.random.default_rng(draw(SEEDS))
    x, memory = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D))
    weights = [rng.normal(size=(D, D)) / math.sqrt(D) for _ in range(4)]
    mask = rng.random(draw(st.sampled_from([(T, S), (B, T, S)]))) < 0.6
    mask[..., 0] = True
    return x, memory, weights, H, mask


@given(heads_case(), st.booleans())
def test_multi_head_attention(case, masked):
    x, memory, weights, H, mask = case
    theirs = torch.nn.MultiheadAttention(x.shape[-1], H, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(t(np.concatenate(weights[:3], axis=1).T))
        theirs.out_proj.weight.copy_(t(weights[3].T))
    hidden = np.broadcast_to(mask, (len(x), *mask.shape[-2:])).repeat(H, axis=0)  # per head
    y, _ = theirs(t(x), t(memory), t(memory), attn_mask=t(~hidden) if masked else None)
    ours = at.multi_head_attention(x, *weights, H, mask=mask if masked else None, memory=memory)
    same(ours, y, atol=1e-9)


@given(SIZE, st.integers(1, 5))
def test_positions_are_the_formula(T, half):
    D = 2 * half
    table = blocks.sinusoidal_positions(T, D)
    for pos in range(T):
        for i in range(half):
            angle = pos / 10000 ** (2 * i / D)
            same(table[pos, 2 * i : 2 * i + 2], np.array([math.sin(angle), math.cos(angle)]))
    x = np.random.default_rng(T).normal(size=(2, T, D)).astype(np.float32)
    assert blocks.add_positions(x).dtype == np.float32
    same(blocks.add_positions(x), x + table, atol=1e-6)


@pytest.mark.parametrize("dtype", PRECISION)
@given(st.data())
def test_layer_norm(dtype, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=6))
    rng = np.random.default_rng(data.draw(SEEDS))
    x, gamma, beta = (rng.normal(size=s).astype(dtype) for s in (shape, shape[-1:], shape[-1:]))
    eps = data.draw(st.sampled_from([1e-5, 1e-12, 0.1]))
    ours = blocks.layer_norm(x, gamma, beta, eps)
    assert ours.dtype == dtype
    same(ours, F.layer_norm(t(x), shape[-1:], t(gamma), t(beta), eps), atol=10 * PRECISION[dtype])
    out = rng.normal(size=shape).astype(dtype)
    same(blocks.add_and_norm(x, out, gamma, beta), blocks.layer_norm(x + out, gamma, beta))
    same(
        blocks.pre_norm(x, lambda z: 2 * z, gamma, beta), x + 2 * blocks.layer_norm(x, gamma, beta)
    )


def parameters_of(layer, **attentions):
    """Those of a layer of ours in PyTorch, for the NumPy functions; every norm is scrambled."""

    def array(tensor):
        return tensor.detach().numpy().T

    names = ("W_q", "W_k", "W_v", "W_o")
    p = {n: {W: array(a.get_submodule(W).weight) for W in names} | {"num_heads": a.num_heads}
         for n, a in attentions.items()}  # fmt: skip
    for name, module in layer.named_children():
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.normal_(module.weight)
            p[name] = array(module.weight), array(torch.nn.init.normal_(module.bias))
    W1, W2 = (array(W.weight) for W in (layer.feed_forward.W1, layer.feed_forward.W2))
    return p | {"ffn": {"W1": W1, "b1": np.zeros(W1.shape[1]), "W2": W2, "b2": np.zeros(len(W2.T))}}


def test_layers():
    """Against helpers.layers, which are compared with torch.nn."""
    rng = np.random.default_rng(0)
    y, memory = rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 5, 6))
    real = np.arange(4) < np.array([[4], [1], [3]])
    encoder = EncoderLayer(6, 3, 7, bias=False).double()
    p = parameters_of(encoder, attn=encoder.attention)
    same(blocks.encoder_layer(y, p), encoder(t(y)))
    same(blocks.encoder_layer(y, p, mask=real[:, None, :]), encoder(t(y), t(real)[:, None]))
    decoder = DecoderLayer(6, 2, 7, bias=False).double()
    attentions = {"self": decoder.self_attention, "cross": decoder.cross_attention}
    same(blocks.decoder_layer(y, memory, parameters_of(decoder, **attentions)),
         decoder(t(y), t(memory)))  # fmt: skip


def test_shift_right_and_last_position():
    targets = np.array([[5, 6, 7], [8, 9, 1]])
    assert decoding.shift_right(targets, 2).tolist() == [[2, 5, 6], [2, 8, 9]]
    rng = np.random.default_rng(0)
    h, W = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))
    same(decoding.next_token_logits(h, W), (h @ W)[:, -1])
    same(decoding.next_token_logits(h[0], W), (h[0] @ W)[-1])


@given(SEEDS, st.floats(0.2, 5), st.none() | st.integers(1, 9), st.none() | st.floats(0.05, 1))
def test_next_token_probs(seed, temperature, top_k, top_p):
    logits = 3 * np.random.default_rng(seed).normal(size=7)
    probs = decoding.next_token_probs(logits, temperature, top_k, top_p)
    full = torch.softmax(t(logits) / temperature, -1).numpy()
    kept = probs > 0
    same(probs, full * kept / full[kept].sum())
    assert kept.sum() <= min(top_k or 7, 7) and kept[full.argmax()]
    if top_p is not None and top_k is None:
        nucleus = np.sort(full)[::-1].cumsum()
        assert kept.sum() == min(7, 1 + (nucleus < top_p - 1e-12).sum())
    if top_p is None:
        assert kept.sum() == min(top_k or 7, 7)


@given(SEEDS, SIZE, SIZE, st.integers(2, 6))
def test_cross_entropy(seed, B, T, V):
    rng = np.random.default_rng(seed)
    logits = rng.choice([1.0, 1000.0]) * rng.normal(size=(B, T, V))
    targets = rng.integers(0, V, size=(B, T))
    targets[0, 0] = 0  # at least one that is not padding
    theirs = F.cross_entropy(t(logits).flatten(0, 1), t(targets).flatten(), ignore_index=V - 1)
    same(decoding.cross_entropy(logits, targets, pad_id=V - 1), theirs.item(), atol=1e-9)


def test_sample_token_follows_the_probabilities():
    rng, probs = np.random.default_rng(0), np.array([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount([decoding.sample_token(probs, rng) for _ in range(20_000)], minlength=4)
    np.testing.assert_allclose(counts / 20_000, probs, atol=0.015)
    assert counts[1] == 0


def test_greedy_decode_stops_at_the_end_or_the_limit():
    def step(ids):  # the next id is one more than the last
        return np.eye(9)[np.array(ids) + 1]

    assert decoding.greedy_decode(step, start_id=2, end_id=5, max_len=10) == [3, 4, 5]
    assert decoding.greedy_decode(step, start_id=2, end_id=5, max_len=2) == [3, 4]
    assert decoding.greedy_decode(step, start_id=5, end_id=5, max_len=1) == [6]
    assert decoding.greedy_decode(step, start_id=2, end_id=5, max_len=0) == []


def test_inputs_are_never_changed():
    rng = np.random.default_rng(0)
    x, S = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 3))
    before = x.copy(), S.copy()
    at.softmax(x), at.safe_masked_softmax(S, at.causal_mask(3)), at.dropout(x, 0.5, True, rng)
    at.split_heads(x, 2), blocks.add_positions(x), blocks.layer_norm(x, np.ones(4), np.ones(4))
    decoding.next_token_probs(x[0, 0], top_k=2, top_p=0.5)
    same(x, before[0])
    same(S, before[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_have_the_precision_of_the_inputs(dtype):
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(2, 3, 4)).astype(dtype), rng.normal(size=(4, 4)).astype(dtype)
    results = [
        at.attention(x, x, x),
        at.scale_scores(x, 3),
        at.safe_masked_softmax(x, np.array([True, False, True, True])),
        at.dropout(x, 0.3, True, rng),
        at.multi_head_attention(x, W, W, W, W, 2, mask=at.causal_mask(3)),
        blocks.add_positions(x),
        blocks.feed_forward(x, W, W[0], W, W[0]),
        decoding.next_token_logits(x, W),
        decoding.next_token_probs(x[0, 0], 0.7, 3, 0.9),
    ]
    assert {result.dtype for result in results} == {np.dtype(dtype)}
