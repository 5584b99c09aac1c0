"""Bad input: an error that names the argument, what it was, and what was needed."""

import numpy as np
import pytest

from helpers import attention as at
from helpers import blocks, decoding, text
from workshop import figures, tables

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
W, W_LOW = rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
ONES, ZEROS = np.ones(4), np.zeros(4)
SCORES = rng.normal(size=(2, 3, 5))
LOGITS = rng.normal(size=6)

CASES = [
    (lambda: text.build_vocab([]), "sentences is empty"),
    (lambda: text.build_vocab(["a b", " "]), r"sentences\[1\] is empty"),
    (lambda: text.build_vocab("a b"), "sentences is a str"),
    (lambda: text.tokenize(["a"]), "sentence is a list"),
    (lambda: text.encode("a b", {"a": 0}), "tokens is a str"),
    (lambda: text.encode(["a", "ghost"], {"a": 0}), "token 'ghost'.*vocabulary"),
    (lambda: text.decode([0, 7], {"a": 0}), "id 7 is not in"),
    (lambda: text.bigram_probs(["a b"], ["a"]), "token 'b'"),
    (lambda: text.bigram_probs(["a"], ["a"], -1), "smoothing is -1"),
    (lambda: text.one_hot(np.array([0, 4]), 4), r"ids holds 4.*0 … 3"),
    (lambda: text.one_hot(np.array([-1]), 4), "ids holds -1"),
    (lambda: text.one_hot(np.array([1.0]), 4), "dtype float64.*integers"),
    (lambda: text.embed(np.eye(5), W), r"table has shape \(4, 4\).*V = 5"),
    (lambda: at.project_qkv(X, W, W_LOW, W), r"W_k has shape \(3, 4\).*D = 4 as in X"),
    (lambda: at.attention_scores(X, X[..., :2]), r"K has shape \(2, 3, 2\).*d = 4 as in Q"),
    (lambda: at.attention(X, X, X[:, :2]), r"V has shape \(2, 2, 4\)"),
    (lambda: at.scale_scores(SCORES, 0), "d_k is 0"),
    (lambda: at.causal_mask(0), "T is 0"),
    (lambda: at.masked_softmax(SCORES, at.causal_mask(3)), r"mask has shape \(3, 3\).*\(2, 3, 5"),
    (lambda: at.safe_masked_softmax(SCORES, np.ones(5)), "mask has dtype float64.*bool"),
    (lambda: at.masked_softmax(SCORES, np.zeros(5, bool)), r"no key for query \(0, 0\)"),
    (lambda: at.padding_mask(np.array([1, 2]), 0), r"ids has shape \(2,\).*\(B, T\)"),
    (lambda: at.padded_weights(SCORES, np.ones((2, 3), bool)), r"is_real has shape \(2, 3\)"),
    (lambda: at.dropout(X, 1.0, True, rng), "p is 1.0"),
    (lambda: at.dropout(X, -0.1, True, rng), "p is -0.1"),
    (lambda: at.split_heads(X, 3), r"num_heads is 3.*divisor of the width 4"),
    (lambda: at.split_heads(X[0], 2), r"x has shape \(3, 4\).*\(B, T, D\)"),
    (lambda: at.merge_heads(X), r"x has shape \(2, 3, 4\).*\(B, H, T"),
    (lambda: at.multi_head_attention(X, W, W, W, W_LOW, 2), r"W_o has shape \(3, 4\)"),
    (lambda: at.multi_head_attention(X, W, W, W, W, 2, memory=X[..., :3]),
     r"memory has shape \(2, 3, 3\).*D = 4"),
    (lambda: blocks.sinusoidal_positions(3, 5), "D is 5.*even"),
    (lambda: blocks.sinusoidal_positions(0, 4), "T is 0"),
    (lambda: blocks.add_positions(ONES), r"x has shape \(4,\)"),
    (lambda: blocks.layer_norm(X, ONES[:3], ZEROS), r"gamma has shape \(3,\).*D = 4 as in x"),
    (lambda: blocks.layer_norm(X, ONES, np.zeros((3, 4))), r"beta has shape \(3, 4\)"),
    (lambda: blocks.add_and_norm(X, X[:1], ONES, ZEROS), r"sublayer_out has shape \(1, 3"),
    (lambda: blocks.pre_norm(X, lambda z: z[..., :2], ONES, ZEROS), "what sublayer returns has"),
    (lambda: blocks.feed_forward(X, W, ONES[:3], W, ZEROS),
     r"b1 has .*\(d_ff,\) with d_ff = 4 as in W1"),
    (lambda: blocks.feed_forward(X, W, ONES, W_LOW, ZEROS),
     r"W2 has shape \(3, 4\).*d_ff = 4 as in W1"),
    (lambda: blocks.cross_attention(X, X, W, W_LOW, W),
     r"W_k has shape \(3, 4\).*D = 4 as in dec"),
    (lambda: decoding.shift_right(np.array([1, 2]), 0), r"targets has shape \(2,\)"),
    (lambda: decoding.next_token_logits(X, W_LOW), r"W_vocab has shape \(3, 4\)"),
    (lambda: decoding.next_token_probs(LOGITS * np.nan), "logits must be finite"),
    (lambda: decoding.next_token_probs(X[0]), r"logits has shape \(3, 4\)"),
    (lambda: decoding.next_token_probs(LOGITS, temperature=0), "temperature is 0"),
    (lambda: decoding.next_token_probs(LOGITS, top_k=0), "top_k is 0"),
    (lambda: decoding.next_token_probs(LOGITS, top_p=0.0), "top_p is 0.0"),
    (lambda: decoding.next_token_probs(LOGITS, top_p=1.1), "top_p is 1.1"),
    (lambda: decoding.sample_token(np.array([0.5, 0.2]), rng), "the sum of probs is 0.7000"),
    (lambda: decoding.greedy_decode(None, 0, 1, -1), "max_len is -1"),
    (lambda: decoding.cross_entropy(X, np.zeros((2, 4), int), 9), "targets has shape"),
    (lambda: decoding.cross_entropy(X, np.zeros((2, 3), int), 0), "nothing but pad_id 0"),
    (lambda: decoding.cross_entropy(X, np.full((2, 3), 4), 0), "0 … 3, but holds 4"),
    (lambda: tables.show(W, rows=["a"]), "rows has 1 labels.*needs 4"),
    (lambda: figures.heatmap(W, "abcd", "abc"), r"array has shape \(4, 4\).*\(4, 3\)"),
    (lambda: figures.Picture(figures.canvas()[0], " "), "alt is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
