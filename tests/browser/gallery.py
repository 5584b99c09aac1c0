"""Every widget as a reader meets it: name → the expression that makes it.

TOKENS and SETUP come before it; a test may set other tokens.
"""

TOKENS = 'tokens = "your journey starts with one step".split()'
SETUP = """
import numpy as np
from helpers.attention import softmax
from helpers.layers import MultiHeadAttention
from helpers.models import DecoderOnly
from workshop import AttentionHeatmap, DropoutLab, Machine, feed_forward_step, matrix, predict
from workshop import next_word_step, norm_step, positions_step, softmax_step
rng = np.random.default_rng(0)
T = len(tokens)
scores = rng.normal(size=(2, 3, T, T)) * 2
weights = softmax(scores)
X = rng.normal(size=(T, 4))
plain = [f"word{i}" for i in range(T)]
""".strip()

GALLERY = {
    "heatmap": "AttentionHeatmap(weights[0, 0], tokens)",
    "heatmap of scores": (
        "AttentionHeatmap(scores=scores, tokens=tokens, d_k=4, view='all layers', causal=True)"
    ),
    "heatmap across": "AttentionHeatmap(weights[0, :, :2], tokens[:2], key_tokens=tokens)",
    "dropout": "DropoutLab(weights[0, 0], tokens)",
    "machine": "Machine(DecoderOnly(T, 16, 8, 2, 8, 1), plain[1], plain)",
    "machine of a layer": (
        "Machine(MultiHeadAttention(4, 4, 2), tokens, x=X, at='attention/head 2')"
    ),
    "machine with sinks": (
        "Machine(MultiHeadAttention(4, 4, 2, sinks=True), tokens, x=X, at='attention/head 1')"
    ),
    "softmax": "Machine(softmax_step(scores[0, 0, 0], d_k=4), tokens)",
    "add & norm": "Machine(norm_step(X, np.tanh), tokens)",
    "feed-forward": "Machine(feed_forward_step(X, X.T, X[:, 0], X, X[0]), tokens)",
    "next word": "Machine(next_word_step(weights[0, 0]), plain[0], plain, at='next')",
    "positions": "Machine(positions_step(6), range(20))",
    "numbers to type": (
        "predict('How much is each?', answer=[0.5, 1/3], reason='See the picture.', "
        "drawn=matrix([[0.5, 1/3]], 'weights'))"
    ),
    "question": (
        "predict(f'Which token stands before {tokens[1]}?', tokens[:4], answer=tokens[0], "
        "reason=f'After it stands {tokens[1]}.')"
    ),
}
