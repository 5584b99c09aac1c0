"""Bad input: an error that names the argument, what it was, and what was needed."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import animals, blocks, decoding, examples, text, writer
from helpers import attention as at
from helpers.adapters import LowRank, adapted
from helpers.cache import KeyValueCache
from helpers.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MixtureOfExperts,
    MultiHeadAttention,
    PositionalEncoding,
    make_stack,
)
from helpers.masks import causal_mask
from helpers.models import DecoderOnly, Encoder, Transformer
from workshop import figures, tables

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
W, W_LOW = rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
ONES, ZEROS = np.ones(4), np.zeros(4)
SCORES, LOGITS = rng.normal(size=(2, 3, 5)), rng.normal(size=6)
zeros = torch.zeros
TEXT = zeros(1, 3, 8)

IN_NUMPY = [
    (lambda: examples.sentence("the red apple"), "text has 'red', but must be made of the, shop"),
    (lambda: animals.seeds("d_ff 7"), "way is 'd_ff 7', but must be one of as in the story, d_ff"),
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
    (lambda: text.one_hot(np.array([1.0]), 4), "dtype float64.*integers"),
    (lambda: text.embed(np.eye(5), W), r"table has shape \(4, 4\).*V = 5"),
    (lambda: at.project_qkv(X, W, W_LOW, W), r"W_k has shape \(3, 4\).*D = 4 as in X"),
    (lambda: at.attention_scores(X, X[..., :2]), r"K has shape \(2, 3, 2\).*d = 4 as in Q"),
    (lambda: at.attention(X, X, X[:, :2]), r"V has shape \(2, 2, 4\)"),
    (lambda: at.scale_scores(SCORES, 0), "d_k is 0"),
    (lambda: at.online_softmax(SCORES, 0), "tile is 0, but must be positive"),
    (lambda: at.tiled_attention(X, X[..., :2], X, 2), r"K has shape \(2, 3, 2\).*d = 4 as in Q"),
    (lambda: at.causal_mask(0), "T is 0"),
    (lambda: at.masked_softmax(SCORES, at.causal_mask(3)), r"mask has shape \(3, 3\).*\(2, 3, 5"),
    (lambda: at.safe_masked_softmax(SCORES, np.ones(5)), "mask has dtype float64.*bool"),
    (lambda: at.masked_softmax(SCORES, np.zeros(5, bool)), r"no key for query \(0, 0\)"),
    (lambda: at.padding_mask(np.array([1, 2]), 0), r"ids has shape \(2,\).*\(B, T\)"),
    (lambda: at.padded_weights(SCORES, np.ones((2, 3), bool)), r"is_real has shape \(2, 3\)"),
    (lambda: at.split_heads(X, 3), r"num_heads is 3.*divisor of the width 4"),
    (lambda: at.split_heads(X[0], 2), r"x has shape \(3, 4\).*\(B, T, D\)"),
    (lambda: at.merge_heads(X), r"x has shape \(2, 3, 4\).*\(B, H, T"),
    (lambda: at.multi_head_attention(X, W, W, W, W_LOW, 2), r"W_o has shape \(3, 4\)"),
    (lambda: at.multi_head_attention(X, W, W, W, W, 2, memory=SCORES), r"memory has .*5\).*D = 4"),
    (lambda: blocks.sinusoidal_positions(3, 5), "D is 5.*even"),
    (lambda: blocks.sinusoidal_positions(0, 4), "T is 0"),
    (lambda: blocks.add_positions(ONES), r"x has shape \(4,\)"),
    (lambda: blocks.layer_norm(X, ONES[:3], ZEROS), r"gamma has shape \(3,\).*D = 4 as in x"),
    (lambda: blocks.layer_norm(X, ONES, np.zeros((3, 4))), r"beta has shape \(3, 4\)"),
    (lambda: blocks.add_and_norm(X, X[:1], ONES, ZEROS), r"sublayer_out has shape \(1, 3"),
    (lambda: blocks.pre_norm(X, lambda z: z[..., :2], ONES, ZEROS), "what sublayer returns has"),
    (lambda: blocks.feed_forward(X, W, ONES[:3], W, ONES), r"b1 has .*\(d_ff,\) with d_ff = 4 as"),
    (lambda: blocks.feed_forward(X, W, ONES, W_LOW, ONES), r"W2 has shape \(3, 4\).* 4 as in W1"),
    (lambda: blocks.cross_attention(X, X, W, W_LOW, W), r"W_k has shape \(3, 4\).*D = 4 as in dec"),
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
    (lambda: writer.Pieces.learned("a b a b", 5), "count is 5, but must be at least 96"),
    (lambda: writer.Pieces.learned("a", 97), "no pair"),
    (lambda: writer.Pieces([]).encode("naïve"), "'ï'"),
    (lambda: writer.Pieces([]).decode([3, 96]), "ids has 96"),
    (lambda: tables.show(W, rows=["a"]), "rows has 1 labels.*needs 4"),
    (lambda: figures.Picture(figures.canvas()[0], " "), "alt is empty"),
]  # fmt: skip


def heads(x: Tensor, *more: Tensor, **named: Tensor) -> Tensor:
    """Two heads for 5 features."""
    return MultiHeadAttention(5, 6, 2)(x, *more, **named)


def read(*rows: list[int], pad_id: int | None = None) -> Tensor:
    """A model of 9 words that reads 5."""
    return DecoderOnly(9, 5, 6, 2, 8, 1, pad_id=pad_id)(torch.tensor(rows))


def say(src: list[int], tgt: list[int], words: tuple[int, int] = (9, 9), **options) -> Tensor:
    model = Transformer(*words, 6, 2, 8, 1, **options)
    return model(torch.tensor([src]), torch.tensor([tgt]))


IN_PYTORCH = [
    (lambda: MultiHeadAttention(6, 10, 4), "num_heads is 4, but must be a divisor of d_out = 10"),
    (lambda: MultiHeadAttention(6, 6, 0), "num_heads is 0, but must be positive"),
    (lambda: MultiHeadAttention(6, 6, 2, d_head=0), "d_head is 0"),
    (lambda: Encoder(6, 2, 8, 0), "num_layers is 0"),
    (lambda: DecoderOnly(9, 0, 6, 2, 8, 1), "context_length is 0"),
    (lambda: make_stack(nn.Linear(2, 2), 0), "n is 0"),
    (lambda: causal_mask(0), "T is 0"),
    (lambda: PositionalEncoding(7), "d_model is 7, but must be even"),
    (lambda: FeedForward(6, 8, activation="swish"), r"'swish', but must be one of \['relu', '"),
    (lambda: read([1], pad_id=9), "pad_id is 9.*0 to 8"),
    (lambda: heads(zeros(4, 5)), r"x has shape \(4, 5\), but must be \(B, T, 5\)"),
    (lambda: heads(zeros(2, 4, 5), memory=zeros(2, 3, 6)), r"memory has shape \(2, 3, 6\)"),
    (lambda: heads(zeros(2, 4, 5), memory=zeros(1, 3, 5)), r"\(1, 3, 5\).*x \(2, 4, 5\)"),
    (lambda: EncoderLayer(6, 2, 8, pre_norm=True)(zeros(2, 4, 5)), r"x has shape \(2, 4, 5\)"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(4, 6), zeros(2, 4, 6)), r"y has shape \(4, 6\)"),
    (lambda: DecoderLayer(6, 2, 8)(zeros(2, 4, 6), zeros(2, 4, 5)), r"memory has shape \(2, 4, 5"),
    (lambda: FeedForward(6, 8)(zeros(2, 5)), r"x has shape \(2, 5\), but must be \(…, 6\)"),
    (lambda: PositionalEncoding(6)(zeros(2, 4, 5)), r"x has shape \(2, 4, 5\).*\(…, T, 6\)"),
    (lambda: PositionalEncoding(6, max_len=3)(zeros(2, 4, 6)), r"\(2, 4, 6\).*max_len = 3"),
    (lambda: heads(zeros(3, 4, 5), zeros(4, 5) > 0),
     r"mask has shape \(4, 5\), but must be \(4, 4\), \(3, 4, 4\) or \(3, 1 or 2, 4, 4\)"),
    (lambda: say([1, 9, 2], [1, 2, 3], (9, 12)), "src holds the id 9, but ids must be from 0 to 8"),
    (lambda: say([1, 9, 2], [1, 20, 3], (12, 9)), "tgt holds the id 20"),
    (lambda: read([1, -1, 2]), "ids holds the id -1, but ids must be from 0 to 8"),
    (lambda: read(1, 2), r"ids has shape \(2,\), but must be \(B, T\) with T from 1 to 5"),
    (lambda: say([1, 2], [1, 2, 3, 4], max_len=3), r"tgt has shape \(1, 4\).*T from 1 to 3"),
    (lambda: heads(zeros(2, 4, 5), zeros(4, 4)), "mask has dtype torch.float32, but must be"),
    (lambda: heads(zeros(2, 4, 5), np.ones((4, 4), dtype=bool)), "mask has type ndarray"),
    (lambda: read([1.0, 2.0]), "ids has dtype torch.float32, but must be a tensor"),
    (lambda: DecoderOnly(9, 5, 6, 2, 8, 1)([[1, 2]]), "ids has type list"),
    (lambda: make_stack(F.relu, 2), "layer is a function"),
    (lambda: MultiHeadAttention(8, 8, 4, num_kv_heads=3), "num_kv_heads is 3.*num_heads = 4"),
    (lambda: MultiHeadAttention(8, 8, 4, num_kv_heads=0), "num_kv_heads is 0"),
    (lambda: MultiHeadAttention(6, 6, 2, rope=1e4), "d_head is 3, but must be even"),
    (lambda: MultiHeadAttention(8, 8, 2, rope=-1.0), "rope is -1.0, but must be positive"),
    (lambda: MultiHeadAttention(8, 8, 2, window=0), "window is 0, but must be positive"),
    (lambda: MultiHeadAttention(8, 8, 2, window=2)(TEXT), "window is 2, but needs causal=True"),
    (lambda: MultiHeadAttention(8, 8, 2, rope=1e4)(TEXT, memory=TEXT + 1), "memory is given, but"),
    (lambda: MixtureOfExperts(8, 8, 4, 5), "top_k is 5, but must be from 1 to num_experts = 4"),
    (lambda: MixtureOfExperts(8, 8, 0, 1), "num_experts is 0"),
    (lambda: MixtureOfExperts(8, 8, 4, 1)(zeros(1, 3, 5)), r"x has shape \(1, 3, 5\)"),
    (lambda: LowRank(nn.Linear(3, 4), 0), "rank is 0, but must be positive"),
    (lambda: LowRank(nn.ReLU(), 2), "linear is a ReLU, but must be a torch.nn.Linear"),
    (lambda: adapted(EncoderLayer(8, 2, 8), ["W_q", "W_z"]), "names holds 'W_z'"),
    (lambda: heads(zeros(1, 2, 5), cache=KeyValueCache()), r"cache keeps no gr.*torch\.no_grad"),
]  # fmt: skip


def unread(*_) -> None:
    raise AssertionError("the model read before its input was checked")


def write(prompts=((1, 2),), max_new_tokens: int = 2, **options) -> list[list[int]]:
    """A model of 9 words and 5 places."""
    model = DecoderOnly(9, 5, 6, 2, 8, 1)
    model.layers.register_forward_pre_hook(unread)
    return decoding.generate(model, prompts, max_new_tokens, **options)


def answer(src: list[list[int]], prompts: list[list[int]], max_new_tokens: int = 2) -> list:
    model = Transformer(6, 6, 6, 2, 8, 1, max_len=5)
    return decoding.generate(model.answering(torch.tensor(src)), prompts, max_new_tokens)


WRITING = [
    (lambda: write([]), "prompts is empty"),
    (lambda: write([[1], []]), r"prompts\[1\] is empty"),
    (lambda: write(["the cat"]), r"prompts\[0\] is a str, but must be a list of ids"),
    (lambda: write([[1.5]]), "float.*integer"),
    (lambda: write([[1], [9]]), "prompts holds the id 9, .* from 0 to 8"),
    (lambda: write(max_new_tokens=-1), "max_new_tokens is -1"),
    (lambda: write([[1], [1] * 4], 3), "max_new_tokens is 3.*6 tokens.*prompt of 4.*holds 5"),
    (lambda: write(temperature=0.5), "rng is None"),
    (lambda: write(rng=3), "rng is a int, but must be a numpy.random.Generator"),
    (lambda: write(rng=rng, temperature=0.0), "temperature is 0.0"),
    (lambda: answer([[3, 4], [5, 0]], [[1]]), "prompts has 1 rows, but src has 2 sentences"),
    (lambda: answer([[3, 4]], [[1]], 6), "max_new_tokens is 6"),
    (lambda: answer([[3, 7]], [[1]]), "src holds the id 7"),
]  # fmt: skip
DROPPING = [
    lambda p: at.dropout(X, p, True, rng),
    lambda p: MultiHeadAttention(6, 6, 2, dropout=p),
    lambda p: PositionalEncoding(6, dropout=p),
    lambda p: FeedForward(6, 8, dropout=p),
    lambda p: EncoderLayer(6, 2, 8, dropout=p),
    lambda p: DecoderOnly(9, 5, 6, 2, None, 1, dropout=p),
]
CASES = [*IN_NUMPY, *IN_PYTORCH, *WRITING]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("p", [-0.1, 1, math.nan])
@pytest.mark.parametrize("call", DROPPING)
def test_a_rate_is_at_least_0_and_less_than_1(call, p):
    with pytest.raises(ValueError, match=f"(dropout|p) is {p}, but must be at least 0 and less"):
        call(p)
