"""Bad input: an error that names the argument, what it was, and what was needed."""

import numpy as np
import pytest

from helpers import attention as at
from helpers import blocks, decoding, figures, text

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
W, W_LOW = rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
ONES, ZEROS = np.ones(4), np.zeros(4)
SCORES = rng.normal(size=(2, 3, 5))
LOGITS = rng.normal(size=6)

CASES = {
    "empty list": (lambda: text.build_vocab([]), "sentences is empty"),
    "empty sentence": (lambda: text.build_vocab(["a b", " "]), r"sentences\[1\] is empty"),
    "one string": (lambda: text.build_vocab("a b"), "sentences is a str"),
    "not a sentence": (lambda: text.tokenize(["a"]), "sentence is a list"),
    "tokens as one string": (lambda: text.encode("a b", {"a": 0}), "tokens is a str"),
    "unknown word": (lambda: text.encode(["a", "ghost"], {"a": 0}), "token 'ghost'.*vocabulary"),
    "unknown id": (lambda: text.decode([0, 7], {"a": 0}), "id 7 is not in"),
    "unknown in bigrams": (lambda: text.bigram_probs(["a b"], ["a"]), "token 'b'"),
    "negative smoothing": (lambda: text.bigram_probs(["a"], ["a"], -1), "smoothing is -1"),
    "id too large": (lambda: text.one_hot(np.array([0, 4]), 4), r"ids holds 4.*0 … 3"),
    "id negative": (lambda: text.one_hot(np.array([-1]), 4), "ids holds -1"),
    "id not whole": (lambda: text.one_hot(np.array([1.0]), 4), "dtype float64.*integers"),
    "table height": (lambda: text.embed(np.eye(5), W), r"table has shape \(4, 4\).*V = 5"),
    "W_k height": (lambda: at.project_qkv(X, W, W_LOW, W), r"W_k has shape \(3, 4\).*d_in = 4"),
    "Q and K": (
        lambda: at.attention_scores(X, X[..., :2]),
        r"Q has shape \(2, 3, 4\) and K \(2, 3, 2",
    ),
    "K and V": (lambda: at.attention(X, X, X[:, :2]), r"V has shape \(2, 2, 4\)"),
    "d_k": (lambda: at.scale_scores(SCORES, 0), "d_k is 0"),
    "no tokens": (lambda: at.causal_mask(0), "T is 0"),
    "mask shape": (
        lambda: at.masked_softmax(SCORES, at.causal_mask(3)),
        r"mask has shape \(3, 3\).*\(2, 3, 5",
    ),
    "mask of ones": (
        lambda: at.safe_masked_softmax(SCORES, np.ones(5)),
        "mask has dtype float64.*bool",
    ),
    "empty row": (
        lambda: at.masked_softmax(SCORES, np.zeros(5, bool)),
        r"no key for query \(0, 0\)",
    ),
    "one sentence": (
        lambda: at.padding_mask(np.array([1, 2]), 0),
        r"ids has shape \(2,\).*\(B, T\)",
    ),
    "is_real": (
        lambda: at.padded_weights(SCORES, np.ones((2, 3), bool)),
        r"is_real has shape \(2, 3\)",
    ),
    "p of one": (lambda: at.dropout(X, 1.0, True, rng), "p is 1.0"),
    "p below zero": (lambda: at.dropout(X, -0.1, True, rng), "p is -0.1"),
    "heads": (lambda: at.split_heads(X, 3), r"num_heads is 3.*divide the width 4"),
    "no batch": (lambda: at.split_heads(X[0], 2), r"x has shape \(3, 4\).*\(B, T, D\)"),
    "merge": (lambda: at.merge_heads(X), r"x has shape \(2, 3, 4\).*\(B, H, T"),
    "W_o": (lambda: at.multi_head_attention(X, W, W, W, W_LOW, 2), r"W_o has shape \(3, 4\)"),
    "memory": (lambda: at.multi_head_attention(X, W, W, W, W, 2, memory=X[..., :3]), "W_k.*memory"),
    "odd width": (lambda: blocks.sinusoidal_positions(3, 5), "D is 5.*even"),
    "no positions": (lambda: blocks.sinusoidal_positions(0, 4), "T is 0"),
    "one axis": (lambda: blocks.add_positions(ONES), r"x has shape \(4,\)"),
    "gamma": (lambda: blocks.layer_norm(X, ONES[:3], ZEROS), r"gamma has shape \(3,\).*\(4,\)"),
    "beta": (lambda: blocks.layer_norm(X, ONES, np.zeros((3, 4))), r"beta has shape \(3, 4\)"),
    "residual": (
        lambda: blocks.add_and_norm(X, X[:1], ONES, ZEROS),
        r"sublayer_out has shape \(1, 3",
    ),
    "pre-norm": (
        lambda: blocks.pre_norm(X, lambda z: z[..., :2], ONES, ZEROS),
        "sublayer returned",
    ),
    "b1": (lambda: blocks.feed_forward(X, W, ONES[:3], W, ZEROS), r"b1 has shape \(3,\).*\(4,\)"),
    "W2": (
        lambda: blocks.feed_forward(X, W, ONES, W_LOW, ZEROS),
        r"W2 has shape \(3, 4\).*\(4, 4\)",
    ),
    "cross W_k": (
        lambda: blocks.cross_attention(X, X, W, W_LOW, W),
        r"W_k has shape \(3, 4\).*memory",
    ),
    "targets": (lambda: decoding.shift_right(np.array([1, 2]), 0), r"targets has shape \(2,\)"),
    "W_vocab": (lambda: decoding.next_token_logits(X, W_LOW), r"W_vocab has shape \(3, 4\)"),
    "NaN": (lambda: decoding.next_token_probs(LOGITS * np.nan), "logits must be finite"),
    "batch of logits": (lambda: decoding.next_token_probs(X[0]), r"logits has shape \(3, 4\)"),
    "temperature": (lambda: decoding.next_token_probs(LOGITS, temperature=0), "temperature is 0"),
    "top_k": (lambda: decoding.next_token_probs(LOGITS, top_k=0), "top_k is 0"),
    "top_p zero": (lambda: decoding.next_token_probs(LOGITS, top_p=0.0), "top_p is 0.0"),
    "top_p above": (lambda: decoding.next_token_probs(LOGITS, top_p=1.1), "top_p is 1.1"),
    "not probabilities": (lambda: decoding.sample_token(np.array([0.5, 0.2]), rng), "sum 0.7000"),
    "max_len": (lambda: decoding.greedy_decode(None, 0, 1, -1), "max_len is -1"),
    "loss shapes": (
        lambda: decoding.cross_entropy(X, np.zeros((2, 4), int), 9),
        "targets has shape",
    ),
    "all padding": (
        lambda: decoding.cross_entropy(X, np.zeros((2, 3), int), 0),
        "nothing but pad_id 0",
    ),
    "target outside": (
        lambda: decoding.cross_entropy(X, np.full((2, 3), 4), 0),
        "0 … 3, but holds 4",
    ),
    "row labels": (lambda: figures.show(W, rows=["a"]), "rows has 1 labels.*needs 4"),
    "heatmap labels": (
        lambda: figures.heatmap(W, "abcd", "abc"),
        r"array has shape \(4, 4\).*\(4, 3\)",
    ),
    "stage": (lambda: figures.stage_map("magic"), "stage is 'magic'.*softmax"),
    "no alt text": (lambda: figures.Picture(figures.canvas()[0], " "), "alt is empty"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name):
    call, message = CASES[name]
    with pytest.raises((ValueError, TypeError), match=message):
        call()
