"""The helpers reproduce every number that the source documents print and a right computation gives.

Each function below is named after nothing but its case: `CASES["002-09-context_vec_2"]` computes
what tests/data/printed_numbers.json says is printed there.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from helpers.attention import (
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    masked_softmax,
    merge_heads,
    multi_head_attention,
    project_qkv,
    scale_scores,
    softmax,
    split_heads,
)
from helpers.blocks import add_positions, feed_forward, layer_norm, sinusoidal_positions
from helpers.layers import MultiHeadAttention
from helpers.text import bigram_probs, build_vocab, encode, one_hot, tokenize

DATA = json.loads((Path(__file__).parent / "data" / "printed_numbers.json").read_text("utf-8"))
PRINTED, INPUTS = DATA["cases"], DATA["inputs"]
CASES = {}


def case(*names):
    """Register the function that computes one printed number, or the same one printed twice."""

    def register(function):
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


def printed(name):
    return np.array(PRINTED[name]["expected"], dtype=float)


def wrong(name):
    """A number printed wrongly, from which the source went on with right arithmetic."""
    return np.array(INPUTS[f"{name} as printed"])


# ---------------------------------------------------------------- today: Today is Sunday

Q, K, V = (printed(f"000-04-{name}") for name in "QKV")
X_TODAY = one_hot(encode(["Today", "is", "Sunday"], {"Today": 0, "is": 1, "Sunday": 2}), 4)


def today_projection(i):
    """The words are one-hot, so only the first three rows of each 4×4 weight matter."""
    weights = [np.vstack([rows, np.full((1, 4), 9.0)]) for rows in (Q, K, V)]
    return project_qkv(X_TODAY, *weights)[i]


def two_heads():
    """The printed heads side by side, times the printed output projection."""
    heads = np.stack([attention(Q, K, V), INPUTS["000-09-multihead"]["head_2"]])  # (2, 3, 4)
    return merge_heads(heads[None])[0] @ np.array(INPUTS["000-09-multihead"]["W_0"])


CASES["000-03-X"] = lambda: X_TODAY
CASES["000-04-Q"] = lambda: today_projection(0)
CASES["000-04-K"] = lambda: today_projection(1)
CASES["000-04-V"] = lambda: today_projection(2)
CASES["000-05-scores"] = lambda: attention_scores(Q, K)
CASES["000-06-scaled"] = lambda: scale_scores(printed("000-05-scores"), 4)
CASES["000-07-softmax"] = lambda: attention_weights(Q, K)
CASES["000-08-head1"] = lambda: attention(Q, K, V)
CASES["000-09-multihead"] = two_heads
CASES["000-10-residual"] = lambda: X_TODAY + two_heads()
CASES["000-15-positional-formula"] = lambda: sinusoidal_positions(3, 4)


# ---------------------------------------------------------------- bigrams and windows

FRUIT = ["I love oranges", "I love grapes", "you love oranges"]


@case("001-02-I-love")
def i_love():
    """The count behind the probability: 'I' is followed twice, both times by 'love'."""
    vocab = build_vocab(FRUIT)
    first_words = sum(sentence.split()[0] == "I" for sentence in FRUIT)
    return bigram_probs(FRUIT, vocab)[vocab["I"], vocab["love"]] * first_words


# ---------------------------------------------------------------- journey, without weights

X = np.array(INPUTS["002-01-attn_scores_2"]["inputs"])
OMEGA = attention_scores(X, X)
CASES["002-03-weights-by-sum"] = lambda: OMEGA[1] / OMEGA[1].sum()
CASES["002-12-attn_weights"] = lambda: softmax(OMEGA)
CASES["002-14-all_context_vecs"] = lambda: softmax(OMEGA) @ X
case("002-01-attn_scores_2")(lambda: OMEGA[1])
case("002-05-softmax_naive")(lambda: softmax(OMEGA[1]))
case("002-08-sum-softmax")(lambda: softmax(OMEGA[1]).sum())
case("002-09-context_vec_2")(lambda: softmax(OMEGA[1]) @ X)
case("002-11-attn_scores-matmul")(lambda: OMEGA)


# ---------------------------------------------------------------- journey, with seeds


def uniform_weights():
    """Three 3×2 matrices of torch.rand, seed 123, in the order query, key, value."""
    torch.manual_seed(123)
    return [torch.rand(3, 2).double().numpy() for _ in range(3)]


def linear_weights(seed, d_out=2, heads=1):
    """The weights of nn.Linear layers drawn in the order query, key, value, head by head."""
    torch.manual_seed(seed)
    layers = [nn.Linear(3, d_out, bias=False) for _ in range(3 * heads)]
    drawn = [layer.weight.detach().T.double().numpy() for layer in layers]
    return [drawn[3 * h : 3 * h + 3] for h in range(heads)]


def rand_head():
    return project_qkv(X, *uniform_weights())


def linear_head(seed):
    return project_qkv(X, *linear_weights(seed)[0])


CASES["002-15-query_2"] = lambda: rand_head()[0][1]
CASES["002-18-attn_scores_2"] = lambda: attention_scores(*rand_head()[:2])[1]
CASES["002-19-attn_weights_2"] = lambda: attention_weights(*rand_head()[:2])[1]
CASES["002-20-context_vec_2"] = lambda: attention(*rand_head())[1]
CASES["002-21-SelfAttention_v1"] = lambda: attention(*rand_head())
CASES["002-25-attn_weights"] = lambda: attention_weights(*linear_head(789)[:2])
CASES["002-24-exercise-3.1-original"] = lambda: [attention(*linear_head(123))] * 2
case("002-22-SelfAttention_v2")(lambda: attention(*linear_head(789)))


# ---------------------------------------------------------------- masks and dropout


def raw_scores():
    return attention_scores(*linear_head(789)[:2])


@case("002-28-masked_simple_norm")
def zero_and_renormalise():
    weights = softmax(scale_scores(raw_scores(), 2)) * causal_mask(6)
    return weights / weights.sum(axis=-1, keepdims=True)


@case("002-31-attn_weights-masked")
def minus_infinity():
    return masked_softmax(scale_scores(raw_scores(), 2), causal_mask(6))


@case("002-33-dropout-weights")
def dropped_weights():
    weights = torch.from_numpy(minus_infinity()).float()
    torch.manual_seed(123)
    return nn.functional.dropout(weights, 0.5)


@case("002-32-dropout-ones")
def dropped_ones():
    torch.manual_seed(123)
    return nn.functional.dropout(torch.ones(6, 6), 0.5)


CASES["002-27-masked_simple"] = lambda: attention_weights(*linear_head(789)[:2]) * causal_mask(6)
CASES["002-30-masked"] = lambda: np.where(causal_mask(6), raw_scores(), -np.inf)


# ---------------------------------------------------------------- several heads


def causal_heads(heads, d_out):
    """Causal single heads side by side, on a batch of the sentence twice."""
    mask = causal_mask(6)
    out = []
    for weights in linear_weights(123, d_out, heads):
        q, k, v = project_qkv(X, *weights)
        out.append(masked_softmax(scale_scores(attention_scores(q, k), d_out), mask) @ v)
    return np.stack([np.concatenate(out, axis=-1)] * 2)


@case("002-43-MultiHeadAttention")
def two_narrow_heads():
    """Width 2 in two heads of width 1; only the output projection has a bias."""
    W_q, W_k, W_v = linear_weights(123)[0]
    W_o = nn.Linear(2, 2)  # drawn right after the three, from the same stream
    weight, bias = W_o.weight.detach().double().numpy().T, W_o.bias.detach().double().numpy()
    batch = np.stack([X, X])
    return multi_head_attention(batch, W_q, W_k, W_v, weight, 2, mask=causal_mask(6)) + bias


@case("002-41-batched-matmul")
def batched_product():
    a = np.array(INPUTS["002-41-batched-matmul"]["a"])  # (1, 2, 3, 4)
    np.testing.assert_array_equal(split_heads(merge_heads(a), 2), a)
    return attention_scores(a, a)


@case("002-45-exercise-3.3-parameters")
def gpt2_layer():
    """GPT-2 small's attention: no bias on the projections in, one on the projection out."""
    layer = MultiHeadAttention(768, 768, 12, bias=False)
    return sum(p.numel() for p in layer.parameters()) + 768


CASES["002-36-CausalAttention"] = lambda: causal_heads(1, 2)
CASES["002-37-MultiHeadAttentionWrapper"] = lambda: causal_heads(2, 2)


# ---------------------------------------------------------------- thrones

GAME = INPUTS["004-01-vocab-size"]
WORDS = [[word for word in tokenize(line) if word[0].isalnum()] for line in GAME]
E, P_PRINTED = (np.array(matrix).T for matrix in INPUTS["004-06-E+P"].values())
W_Q, W_K, W_O, W_1 = (
    np.array(INPUTS[name][key])
    for name, key in (
        ("004-07-Q", "W_Q"),
        ("004-08-K", "W_K"),
        ("004-17-W_O", "W_O"),
        ("004-23-X.W", "W"),
    )
)


@case("004-15-head")
def head():
    """Printed weights times what is printed as 'value' there, a copy of the queries."""
    return printed("004-14-softmax") @ printed("004-07-Q")


@case("004-24-abs(X.W)")
def first_linear():
    return np.abs(np.array(INPUTS["004-23-X.W"]["X"]) @ W_1)


@case("004-26-ReLU")
def relu():
    """The printed sums, through a feed-forward layer whose two linear maps change nothing."""
    zero, one = np.zeros(6), np.eye(6)
    return feed_forward(printed("004-25-+bias"), one, zero, one, zero)


@case("004-21-normalised")
def normalised():
    mean, deviation = wrong("004-19-mean"), printed("004-20-std")
    return (printed("004-18-residual") - mean[:, None]) / (deviation[:, None] + 0.0001)


CASES["004-01-vocab-size"] = lambda: len(build_vocab([" ".join(line) for line in WORDS]))
CASES["004-03-PE-when"] = lambda: sinusoidal_positions(1, 6)[0]
CASES["004-05-PE-7-words"] = lambda: add_positions(np.zeros((7, 6)))
CASES["004-06-E+P"] = lambda: E + P_PRINTED
CASES["004-07-Q"] = lambda: project_qkv(printed("004-06-E+P"), W_Q, W_K, W_K)[0]
CASES["004-08-K"] = lambda: project_qkv(printed("004-06-E+P"), W_Q, W_K, W_K)[1]
CASES["004-10-QK^T"] = lambda: attention_scores(printed("004-07-Q"), printed("004-08-K"))
CASES["004-11-scaled"] = lambda: scale_scores(printed("004-10-QK^T").round(2), 6)
CASES["004-14-softmax"] = lambda: softmax(printed("004-11-scaled").round(2))
CASES["004-17-W_O"] = lambda: printed("004-15-head").round(2) @ W_O
CASES["004-18-residual"] = lambda: printed("004-17-W_O") + printed("004-06-E+P")
CASES["004-25-+bias"] = lambda: wrong("004-23-X.W") + np.array(INPUTS["004-25-+bias"]["b"])
CASES["004-28-residual-2"] = lambda: printed("004-26-ReLU") + printed("004-21-normalised")
CASES["004-29-mean-2"] = lambda: printed("004-28-residual-2").mean(axis=1)
CASES["004-31-normalised-2"] = lambda: (
    (printed("004-28-residual-2") - printed("004-29-mean-2")[:, None])
    / (wrong("004-30-std-2")[:, None] + 0.0001)
)


@case("004-20-std")
def deviations():
    """Read off LayerNorm: it divides by the deviation, so the ratio of spreads is the deviation."""
    x = printed("004-18-residual")
    normal = layer_norm(x, np.ones(6), np.zeros(6), eps=0)
    return np.ptp(x, axis=1) / np.ptp(normal, axis=1)


# ---------------------------------------------------------------- the tests


def close_to(value, name):
    """As many decimals as printed: the difference is at most half of the last one."""
    entry = PRINTED[name]
    expected = np.array(entry["expected"], dtype=object)
    expected = np.where(expected == "-inf", -np.inf, expected).astype(float)
    half = entry.get("tolerance", 0.5 * 10.0 ** -(entry["decimals"] or 6))
    value = np.asarray(value, dtype=float)
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=0, atol=half * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize("name", PRINTED)
def test_printed_number_is_reproduced(name):
    if name in ("002-32-dropout-ones", "002-33-dropout-weights") and sys.platform != "linux":
        pytest.skip("PyTorch's random masks differ between operating systems")
    close_to(CASES[name](), name)
