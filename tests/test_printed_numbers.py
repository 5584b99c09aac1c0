"""The helpers reproduce every number that the sources print and a right computation gives.

`CASES["002-09-context_vec_2"]` computes what tests/data/printed_numbers.json says is printed there.
"""

import json
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


def printed(name):
    return np.array(PRINTED[name]["expected"], dtype=float)


# today: Today is Sunday
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


def i_love():
    """The count behind the probability: 'I' is followed twice, both times by 'love'."""
    fruit = ["I love oranges", "I love grapes", "you love oranges"]
    vocab = build_vocab(fruit)
    return bigram_probs(fruit, vocab)[vocab["I"], vocab["love"]] * 2


# journey: without weights, then with those of the seeds
X = np.array(INPUTS["002-01-attn_scores_2"]["inputs"])
OMEGA = attention_scores(X, X)


def rand_head():
    """Queries, keys, values by three 3×2 matrices of torch.rand, seed 123."""
    torch.manual_seed(123)
    return project_qkv(X, *[torch.rand(3, 2).double().numpy() for _ in range(3)])


def linear_weights(seed, d_out=2, heads=1):
    """The weights of nn.Linear layers drawn in the order query, key, value, head by head."""
    torch.manual_seed(seed)
    layers = [nn.Linear(3, d_out, bias=False) for _ in range(3 * heads)]
    drawn = [layer.weight.detach().T.double().numpy() for layer in layers]
    return [drawn[3 * h : 3 * h + 3] for h in range(heads)]


def linear_head(seed):
    return project_qkv(X, *linear_weights(seed)[0])


def scaled():
    return scale_scores(attention_scores(*linear_head(789)[:2]), 2)


def causal_heads(heads, d_out):
    """Causal single heads side by side, on a batch of the sentence twice."""
    out = []
    for weights in linear_weights(123, d_out, heads):
        q, k, v = project_qkv(X, *weights)
        scores = scale_scores(attention_scores(q, k), d_out)
        out.append(masked_softmax(scores, causal_mask(6)) @ v)
    return np.stack([np.concatenate(out, axis=-1)] * 2)


def two_narrow_heads():
    """Width 2 in two heads of width 1; only the output projection has a bias."""
    W_q, W_k, W_v = linear_weights(123)[0]
    W_o = nn.Linear(2, 2).double()  # drawn right after the three, from the same stream
    weight, bias = W_o.weight.detach().numpy().T, W_o.bias.detach().numpy()
    batch = np.stack([X, X])
    return multi_head_attention(batch, W_q, W_k, W_v, weight, 2, mask=causal_mask(6)) + bias


def batched_product():
    a = np.array(INPUTS["002-41-batched-matmul"]["a"])  # (1, 2, 3, 4)
    np.testing.assert_array_equal(split_heads(merge_heads(a), 2), a)
    return attention_scores(a, a)


def gpt2_layer():
    """GPT-2 small's attention: no bias on the projections in, one on the projection out."""
    layer = MultiHeadAttention(768, 768, 12, bias=False)
    return sum(p.numel() for p in layer.parameters()) + 768


# thrones: When you play the game of thrones
GAME = [[word for word in tokenize(line) if word[0].isalnum()]
        for line in INPUTS["004-01-vocab-size"]]  # fmt: skip
W_Q, W_K = np.array(INPUTS["004-07-Q"]["W_Q"]), np.array(INPUTS["004-08-K"]["W_K"])


def relu():
    """The printed sums, through a feed-forward layer whose two linear maps change nothing."""
    zero, one = np.zeros(6), np.eye(6)
    return feed_forward(printed("004-25-+bias"), one, zero, one, zero)


def deviations():
    """Read off LayerNorm: it divides by the deviation, so the ratio of spreads is the deviation."""
    x = printed("004-18-residual")
    normal = layer_norm(x, np.ones(6), np.zeros(6), eps=0)
    return np.ptp(x, axis=1) / np.ptp(normal, axis=1)


CASES = {
    "000-03-X": lambda: X_TODAY,
    "000-04-Q": lambda: today_projection(0),
    "000-04-K": lambda: today_projection(1),
    "000-04-V": lambda: today_projection(2),
    "000-05-scores": lambda: attention_scores(Q, K),
    "000-06-scaled": lambda: scale_scores(printed("000-05-scores"), 4),
    "000-07-softmax": lambda: attention_weights(Q, K),
    "000-08-head1": lambda: attention(Q, K, V),
    "000-09-multihead": two_heads,
    "000-10-residual": lambda: X_TODAY + two_heads(),
    "000-15-positional-formula": lambda: sinusoidal_positions(3, 4),
    "001-02-I-love": i_love,
    "002-01-attn_scores_2": lambda: OMEGA[1],
    "002-05-softmax_naive": lambda: softmax(OMEGA[1]),
    "002-09-context_vec_2": lambda: softmax(OMEGA[1]) @ X,
    "002-11-attn_scores-matmul": lambda: OMEGA,
    "002-12-attn_weights": lambda: softmax(OMEGA),
    "002-14-all_context_vecs": lambda: softmax(OMEGA) @ X,
    "002-15-query_2": lambda: rand_head()[0][1],
    "002-18-attn_scores_2": lambda: attention_scores(*rand_head()[:2])[1],
    "002-19-attn_weights_2": lambda: attention_weights(*rand_head()[:2])[1],
    "002-20-context_vec_2": lambda: attention(*rand_head())[1],
    "002-21-SelfAttention_v1": lambda: attention(*rand_head()),
    "002-22-SelfAttention_v2": lambda: attention(*linear_head(789)),
    "002-24-exercise-3.1-original": lambda: [attention(*linear_head(123))] * 2,
    "002-25-attn_weights": lambda: attention_weights(*linear_head(789)[:2]),
    "002-27-masked_simple": lambda: softmax(scaled()) * causal_mask(6),
    "002-31-attn_weights-masked": lambda: masked_softmax(scaled(), causal_mask(6)),
    "002-36-CausalAttention": lambda: causal_heads(1, 2),
    "002-37-MultiHeadAttentionWrapper": lambda: causal_heads(2, 2),
    "002-41-batched-matmul": batched_product,
    "002-43-MultiHeadAttention": two_narrow_heads,
    "002-45-exercise-3.3-parameters": gpt2_layer,
    "004-01-vocab-size": lambda: len(build_vocab([" ".join(line) for line in GAME])),
    "004-03-PE-when": lambda: sinusoidal_positions(1, 6)[0],
    "004-05-PE-7-words": lambda: add_positions(np.zeros((7, 6))),
    "004-07-Q": lambda: project_qkv(printed("004-06-E+P"), W_Q, W_K, W_K)[0],
    "004-08-K": lambda: project_qkv(printed("004-06-E+P"), W_Q, W_K, W_K)[1],
    "004-10-QK^T": lambda: attention_scores(printed("004-07-Q"), printed("004-08-K")),
    "004-11-scaled": lambda: scale_scores(printed("004-10-QK^T").round(2), 6),
    "004-14-softmax": lambda: softmax(printed("004-11-scaled").round(2)),
    "004-20-std": deviations,
    "004-26-ReLU": relu,
}


@pytest.mark.parametrize("name", CASES)
def test_printed_number_is_reproduced(name):
    """As many decimals as printed: the difference is at most half of the last one."""
    entry, value = PRINTED[name], np.asarray(CASES[name](), dtype=float)
    half = entry.get("tolerance", 0.5 * 10.0 ** -(entry["decimals"] or 6))
    assert value.shape == printed(name).shape
    np.testing.assert_allclose(value, printed(name), rtol=0, atol=half * (1 + 1e-9) + 1e-9)
