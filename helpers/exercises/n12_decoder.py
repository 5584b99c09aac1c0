"""Notebook 12: the decoder, its input and its predictions, the loss, and writing word by word."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from helpers import blocks, decoding
from helpers.attention import attention, causal_mask, merge_heads, multi_head_attention, split_heads
from helpers.attention import softmax as weights_of
from helpers.blocks import add_and_norm, feed_forward, layer_norm
from helpers.exercises import n08_heads as heads
from helpers.exercises import n10_norms as norms
from helpers.exercises.exercise import About, Exercise, Probe, Untested

rng = np.random.default_rng(12)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def tenths(*shape: int) -> np.ndarray:
    """Numbers with one decimal, to follow with a pencil."""
    return rng.integers(-20, 21, size=shape) / 10


# ---------------------------------------------------------------- shift_right

shift_right = Exercise(
    decoding.shift_right,
    notebook="12",
    level=1,
    minutes=5,
    task="Make the decoder's input from the targets: start_id, then the targets without their last "
    "token. Every sentence of the batch is shifted alone, and the targets stay as they are.",
    hints=(
        "Which word does the decoder read when it must predict the first target?",
        "Put a column of start_id in front of all columns but the last.",
        "`first = np.full((len(targets), 1), start_id)`, then `return np.concatenate([first, "
        "targets[:, :-1]], axis=1)`",
    ),
)
shift_right.probe("one sentence of three words", np.array([[5, 6, 7]]), 1)
shift_right.probe("two sentences", np.array([[5, 6, 7, 8], [4, 3, 9, 2]]), 1)
shift_right.probe("sentences that end in padding", np.array([[7, 2, 0, 0], [5, 6, 2, 0]]), 8)
shift_right.probe("a start_id of 0", np.array([[3, 1, 4], [1, 5, 9]]), 0)
shift_right.probe("as many sentences as words", np.array([[3, 1, 4], [1, 5, 9], [2, 6, 8]]), 7)
shift_right.probe("targets of a single word", np.array([[3], [4]]), 1)
shift_right.probe("a word twice in a row", np.array([[6, 6, 2, 1], [6, 5, 5, 1], [3, 2, 2, 1]]), 4)


def column(targets: np.ndarray, token: int) -> np.ndarray:
    """The same token for every sentence: (B, 1)."""
    return np.full((len(targets), 1), token, dtype=targets.dtype)


@shift_right.mistake
def shifts_left(targets, start_id):
    """It shifts to the left, the wrong direction: position t holds target t + 1, the answer itself.
    Shift right: start_id first, then the targets without their last, targets[:, :-1]."""
    return np.concatenate([targets[:, 1:], column(targets, start_id)], axis=1)


@shift_right.mistake
def shifts_left_with_start_in_front(targets, start_id):
    """The tokens moved to the left, the wrong direction, and the first two targets are lost or at
    the end. Shift right: start_id, then all targets but the last, targets[:, :-1]."""
    out = np.roll(targets, -1, axis=1)
    out[:, 0] = start_id
    return out


@shift_right.mistake
def overwrites_the_first(targets, start_id):
    """The first token is replaced (overwritten) by start_id instead of shifting: from the second
    on, each place still sees its own target. Move all one to the right and drop the last token,
    targets[:, :-1], not the first."""
    return np.concatenate([column(targets, start_id), targets[:, 1:]], axis=1)


@shift_right.mistake
def overwrites_the_last(targets, start_id):
    """start_id replaces the last token, and nothing is shifted. It belongs in front, before the
    targets without their last."""
    return np.concatenate([targets[:, :-1], column(targets, start_id)], axis=1)


@shift_right.mistake
def start_at_the_end(targets, start_id):
    """start_id is appended at the end, behind the last target. It belongs in front, at the
    beginning, and the last target falls off: the length stays T."""
    return np.concatenate([targets, column(targets, start_id)], axis=1)


@shift_right.mistake
def changes_targets_in_place(targets, start_id):
    """It changes targets itself, in place, so that the loss will compare with shifted targets.
    Build a new array, or start from targets.copy()."""
    targets[:, 1:] = targets[:, :-1].copy()
    targets[:, 0] = start_id
    return targets


@shift_right.mistake
def shifts_the_batch(targets, start_id):
    """It shifts the sentences of the batch, along axis 0. Shift the tokens within each sentence:
    the last axis, axis=1."""
    return np.concatenate([np.full_like(targets[:1], start_id), targets[:-1]], axis=0)


@shift_right.mistake
def keeps_the_last(targets, start_id):
    """The result is one token too long, T + 1: the last target is still there. Leave it out,
    targets[:, :-1], because nothing follows it."""
    return np.concatenate([column(targets, start_id), targets], axis=1)


@shift_right.mistake
def drops_without_start(targets, start_id):
    """The last token is left out, but start_id is missing: the result is one token too short. Put
    a column of start_id in front."""
    return targets[:, :-1]


@shift_right.mistake
def wraps_around(targets, start_id):
    """np.roll brings the last token back in front, and start_id is not used: the decoder would
    read the end of the answer first. Overwrite the first column with start_id."""
    return np.roll(targets, 1, axis=1)


@shift_right.mistake
def rolls_everything(targets, start_id):
    """np.roll without axis=1 carries the last token of one sentence into the next one of the batch,
    and start_id is missing. Each sentence begins with start_id."""
    return np.roll(targets, 1)


@shift_right.mistake
def start_for_the_first_sentence_only(targets, start_id):
    """Only the first sentence of the batch begins with start_id. Every row needs it:
    out[:, 0] = start_id, not out[0, 0]."""
    out = np.roll(targets, 1)
    out[0, 0] = start_id
    return out


@shift_right.mistake
def start_in_the_first_row_only(targets, start_id):
    """Only the first row of the batch begins with start_id; in the others the last token came round
    to the front (np.roll). Every row needs it: out[:, 0] = start_id, not out[0, 0]."""
    out = np.roll(targets, 1, axis=1)
    out[0, 0] = start_id
    return out


@shift_right.mistake
def start_is_zero(targets, start_id):
    """The first token is always 0: start_id is ignored. Fill the first column with start_id, not
    with zeros."""
    return decoding.shift_right(targets, 0)


@shift_right.mistake
def start_is_one(targets, start_id):
    """The first token is always 1: start_id is ignored. Fill the first column with start_id, not
    with ones."""
    return decoding.shift_right(targets, 1)


@shift_right.mistake
def shifts_by_two(targets, start_id):
    """It shifts by two places instead of one: start_id stands twice, and a target is lost too
    many. Shift once."""
    return decoding.shift_right(decoding.shift_right(targets, start_id), start_id)


@shift_right.mistake
def smears_the_start(targets, start_id):
    """Every token became start_id: a loop from left to right copies what it has just overwritten.
    Read from targets, and write into a new array: out[:, t] = targets[:, t - 1]."""
    return np.full_like(targets, start_id)


@shift_right.mistake
def smears_the_first_target(targets, start_id):
    """Every token after start_id is the first target: a loop from left to right copies what it has
    just overwritten. Read from targets, and write into a new array: targets[:, t - 1]."""
    out = np.repeat(targets[:, :1], targets.shape[1], axis=1)
    out[:, 0] = start_id
    return out


@shift_right.mistake
def first_sentence_for_all(targets, start_id):
    """Every row of the batch became the first sentence. Shift each row of its own: targets[:, :-1],
    not targets[0, :-1]."""
    return np.broadcast_to(decoding.shift_right(targets[:1], start_id), targets.shape).copy()


@shift_right.mistake
def gives_floats(targets, start_id):
    """The ids became floats, as np.zeros, np.ones or np.empty make them. Ids stay whole numbers:
    give dtype=targets.dtype, or use np.full_like."""
    return decoding.shift_right(targets, start_id).astype(float)


@shift_right.mistake
def reverses(targets, start_id):
    """The targets stand in reversed order. Shifting keeps their order: start_id, then the targets
    without their last."""
    return decoding.shift_right(targets[:, ::-1], start_id)


@shift_right.mistake
def returns_the_targets(targets, start_id):
    """It returns the targets unchanged, so that each place sees its own target. Put start_id in
    front and drop the last token: shift right by one."""
    return targets


@shift_right.mistake
def first_sentence_only(targets, start_id):
    """Only one sentence comes back: the batch is lost. Shift every row, targets[:, :-1]."""
    return decoding.shift_right(targets, start_id)[0]


# ---------------------------------------------------------------- cross_attention

cross_attention = Exercise(
    blocks.cross_attention,
    notebook="12",
    level=2,
    minutes=8,
    task="Let the words of the decoder read from the memory of the encoder, in one head. Queries "
    "come from dec, keys and values from memory.",
    hints=(
        "Who asks, and who is read? The output has one row per word that asks.",
        "Project dec to queries, memory to keys and to values, then use attention.",
        "`return attention(dec @ W_q, memory @ W_k, memory @ W_v)`",
    ),
)
same_width = tuple(tenths(3, 3) for _ in range(3))  # W_q, W_k, W_v (D, D)
narrow = (normal(6, 5), normal(6, 5), normal(6, 3))  # d_k = 5 and d_v = 3 for D = 6


@cross_attention.experiment("who reads whom")
def who_reads_whom(fn):
    dec, memory = tenths_of(2, 3), tenths_of(4, 3)
    weights = tenths_of(3, 4) / 4, tenths_of(3, 4) / 3, tenths_of(3, 3) / 2
    out = fn(dec, memory, *weights)
    if not isinstance(out, np.ndarray) or out.ndim != 2 or out.shape[1] != dec.shape[1]:
        return Untested()  # the next probe tells
    if len(out) != len(dec):
        return {"the result has one row per word of dec": False}
    other_word, other_source = dec.copy(), memory.copy()
    other_word[1] += 1
    other_source[2] += 1
    noticed = [fn(other_word, memory, *weights) - out, fn(dec, other_source, *weights) - out]
    by_word, by_source = (abs(change).max(axis=-1) > 1e-6 for change in noticed)
    return {
        "the result has one row per word of dec": True,
        "each word asks with its own query": bool(by_word[1]),
        "a word of dec does not notice another word of dec": not by_word[0],
        "every word of dec notices a change in memory": bool(by_source.all()),
    }


def tenths_of(*shape: int) -> np.ndarray:
    """Numbers with one decimal that are the same at each call."""
    return np.random.default_rng(sum(shape)).integers(-20, 21, size=shape) / 10


cross_attention.probe("two words that read four", tenths(2, 3), tenths(4, 3), *same_width)
cross_attention.probe("keys and values of different widths", normal(3, 6), normal(4, 6), *narrow)
cross_attention.probe("more words written than read", normal(5, 6), normal(2, 6), *narrow)
cross_attention.probe("as many words written as read", normal(4, 6), normal(4, 6), *narrow)
cross_attention.probe("a batch of two", normal(2, 3, 6), normal(2, 4, 6), *narrow)
cross_attention.probe("as many sentences as words", tenths(4, 4, 3), tenths(4, 4, 3), *same_width)
cross_attention.probe("scores of ±1,000", 30 * tenths(2, 3, 3), 30 * tenths(2, 5, 3), *same_width)


def scores_of(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Scaled scores."""
    return Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])


@cross_attention.mistake
def ignores_memory(dec, memory, W_q, W_k, W_v):
    """memory is never used: keys and values are not from the encoder, but from the decoder, which
    is self-attention. Take them from memory: memory @ W_k, memory @ W_v."""
    return attention(dec @ W_q, dec @ W_k, dec @ W_v)


@cross_attention.mistake
def ignores_dec(dec, memory, W_q, W_k, W_v):
    """dec is never used: the queries come from memory too, which is self-attention of the encoder.
    The decoder asks: queries from dec, dec @ W_q."""
    return attention(memory @ W_q, memory @ W_k, memory @ W_v)


@cross_attention.mistake
def sides_swapped(dec, memory, W_q, W_k, W_v):
    """The two sides are swapped: queries come from memory, keys and values from dec. The decoder
    asks (queries from dec), the encoder answers (keys and values from memory)."""
    return attention(memory @ W_q, dec @ W_k, dec @ W_v)


@cross_attention.mistake
def values_from_the_decoder(dec, memory, W_q, W_k, W_v):
    """Only the keys come from memory; the values come from the decoder. Keys and values both come
    from the encoder: memory @ W_v, not dec @ W_v."""
    return plainly(dec @ W_q, memory @ W_k, dec @ W_v)


@cross_attention.mistake
def keys_from_the_decoder(dec, memory, W_q, W_k, W_v):
    """Only the values come from memory; the keys come from the decoder. Keys and values both come
    from the encoder: memory @ W_k, not dec @ W_k."""
    return plainly(dec @ W_q, dec @ W_k, memory @ W_v)


@cross_attention.mistake
def queries_and_keys_from_memory(dec, memory, W_q, W_k, W_v):
    """Queries and keys come from the encoder, values from the decoder: the roles are mixed up.
    Queries come from dec, keys and values from memory."""
    return plainly(memory @ W_q, memory @ W_k, dec @ W_v)


@cross_attention.mistake
def queries_and_keys_swapped(dec, memory, W_q, W_k, W_v):
    """Keys come from dec and queries from memory: the roles of query and key are swapped, only the
    values are right. Queries come from dec, keys from memory."""
    return plainly(memory @ W_q, dec @ W_k, memory @ W_v)


def plainly(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Attention that lets NumPy complain about lengths."""
    return weights_of(scores_of(Q, K)) @ V


@cross_attention.mistake
def joins_both_sides(dec, memory, W_q, W_k, W_v):
    """Keys and values come from dec and memory concatenated. In cross-attention they come from
    memory only; the words of dec are read by the self-attention before."""
    both = np.concatenate([dec, memory], axis=-2)
    return attention(dec @ W_q, both @ W_k, both @ W_v)


@cross_attention.mistake
def forgets_to_scale(dec, memory, W_q, W_k, W_v):
    """The scores are not scaled. Divide them by √d_k, the width of the keys, before the softmax."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * np.sqrt(W_k.shape[1])) @ (memory @ W_v)


@cross_attention.mistake
def divides_by_d_k(dec, memory, W_q, W_k, W_v):
    """The scores are divided by d_k itself. Divide by its square root, √d_k."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k) / np.sqrt(W_k.shape[1])) @ (memory @ W_v)


@cross_attention.mistake
def scales_by_the_wrong_width(dec, memory, W_q, W_k, W_v):
    """The scores are divided by the root of the model's width, √d_model = √D. Divide by √d_k, the
    width of the queries and keys, W_k.shape[-1]."""
    factor = np.sqrt(W_k.shape[1] / W_k.shape[0])
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * factor) @ (memory @ W_v)


@cross_attention.mistake
def scales_by_the_width_of_values(dec, memory, W_q, W_k, W_v):
    """The scores are divided by √d_v, the width of the values. Divide by √d_k, the width of the
    keys, W_k.shape[-1]."""
    factor = np.sqrt(W_k.shape[1] / W_v.shape[1])
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * factor) @ (memory @ W_v)


@cross_attention.mistake
def scales_by_the_length(dec, memory, W_q, W_k, W_v):
    """The scores are divided by the root of the number of tokens in memory. Divide by √d_k, the
    width of the keys: the last axis, not the second to last."""
    factor = np.sqrt(W_k.shape[1] / memory.shape[-2])
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * factor) @ (memory @ W_v)


@cross_attention.mistake
def multiplies_by_the_root(dec, memory, W_q, W_k, W_v):
    """The scores are multiplied by √d_k. Divide them by it, before the softmax."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * W_k.shape[1]) @ (memory @ W_v)


@cross_attention.mistake
def scales_after_the_softmax(dec, memory, W_q, W_k, W_v):
    """The weights are divided by √d_k after the softmax, so that they do not sum to 1. Divide the
    scores, before the softmax."""
    root = np.sqrt(W_k.shape[1])
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * root) / root @ (memory @ W_v)


@cross_attention.mistake
def swaps_query_and_key_weights(dec, memory, W_q, W_k, W_v):
    """W_q and W_k are swapped: dec is projected by W_k, memory by W_q. Queries are dec @ W_q, keys
    memory @ W_k."""
    return attention(dec @ W_k, memory @ W_q, memory @ W_v)


@cross_attention.mistake
def swaps_key_and_value_weights(dec, memory, W_q, W_k, W_v):
    """W_k and W_v are swapped: keys are memory @ W_k, values are memory @ W_v."""
    return attention(dec @ W_q, memory @ W_v, memory @ W_k)


@cross_attention.mistake
def keys_are_the_values(dec, memory, W_q, W_k, W_v):
    """W_v is not used: the keys serve as values too. Values have a projection of their own,
    memory @ W_v."""
    return attention(dec @ W_q, memory @ W_k, memory @ W_k)


@cross_attention.mistake
def values_without_projection(dec, memory, W_q, W_k, W_v):
    """The values are memory itself: the projection W_v is missing. Average memory @ W_v."""
    return attention(dec @ W_q, memory @ W_k, memory)


@cross_attention.mistake
def queries_without_projection(dec, memory, W_q, W_k, W_v):
    """The queries are dec itself: the projection W_q is missing. Ask with dec @ W_q."""
    return attention(dec, memory @ W_k, memory @ W_v)


@cross_attention.mistake
def keys_without_projection(dec, memory, W_q, W_k, W_v):
    """The keys are memory itself: the projection W_k is missing. Use memory @ W_k."""
    return attention(dec @ W_q, memory, memory @ W_v)


@cross_attention.mistake
def transposes_the_weights(dec, memory, W_q, W_k, W_v):
    """The weight matrices are transposed, as in nn.Linear. Here weights multiply from the right
    without .T: dec @ W_q, memory @ W_k, memory @ W_v."""
    return attention(dec @ W_q.T, memory @ W_k.T, memory @ W_v.T)


@cross_attention.mistake
def adds_a_residual(dec, memory, W_q, W_k, W_v):
    """dec is added to the result. The residual belongs to Add & Norm, outside cross_attention:
    return the context alone."""
    return dec + attention(dec @ W_q, memory @ W_k, memory @ W_v)


@cross_attention.mistake
def returns_the_weights(dec, memory, W_q, W_k, W_v):
    """It returns the attention weights, (T, S). The last step is missing: multiply them by the
    values, weights @ (memory @ W_v)."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k))


@cross_attention.mistake
def returns_context_and_weights(dec, memory, W_q, W_k, W_v):
    """It returns two things, a tuple: the context and the attention weights. Return the context
    alone, weights @ (memory @ W_v)."""
    weights = weights_of(scores_of(dec @ W_q, memory @ W_k))
    return weights @ (memory @ W_v), weights


@cross_attention.mistake
def forgets_the_softmax(dec, memory, W_q, W_k, W_v):
    """The softmax is missing: raw scores multiply the values. Turn each row of scores into weights
    that sum to 1 first."""
    return scores_of(dec @ W_q, memory @ W_k) @ (memory @ W_v)


@cross_attention.mistake
def divides_without_exp(dec, memory, W_q, W_k, W_v):
    """The scores are divided by their sum, without exp. Use softmax: exp first, then divide each
    row by its sum."""
    S = scores_of(dec @ W_q, memory @ W_k)
    return S / S.sum(axis=-1, keepdims=True) @ (memory @ W_v)


@cross_attention.mistake
def transposes_the_batch_too(dec, memory, W_q, W_k, W_v):
    """.T turns all axes round, the batch too. Transpose only the last two of the keys:
    np.swapaxes(K, -1, -2), or K.mT."""
    S = (dec @ W_q) @ (memory @ W_k).T / np.sqrt(W_k.shape[1])
    return weights_of(S) @ (memory @ W_v)


@cross_attention.mistake
def softmax_over_the_queries(dec, memory, W_q, W_k, W_v):
    """The softmax runs over the queries, axis=-2: columns sum to 1 instead of rows. Use the last
    axis, axis=-1, the keys of memory."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k), axis=-2) @ (memory @ W_v)


@cross_attention.mistake
def masks_the_source(dec, memory, W_q, W_k, W_v):
    """A causal mask hides part of memory. The source is complete, so every word of it may be read:
    cross-attention needs no causal mask."""
    S = scores_of(dec @ W_q, memory @ W_k)
    allowed = np.tril(np.ones(S.shape[-2:], dtype=bool))
    return weights_of(np.where(allowed, S, -np.inf)) @ (memory @ W_v)


@cross_attention.mistake
def averages_memory(dec, memory, W_q, W_k, W_v):
    """Every word of dec reads the same average of memory: the queries have no effect. Weigh the
    values by softmax(Q Kᵀ / √d_k), a row for each query."""
    mean = (memory @ W_v).mean(axis=-2, keepdims=True)
    return np.repeat(mean, dec.shape[-2], axis=-2)


@cross_attention.mistake
def reads_the_last_word_only(dec, memory, W_q, W_k, W_v):
    """Only the last word of memory is read, as an RNN's one vector would be. All rows of memory
    give keys and values: memory, not memory[..., -1:, :]."""
    return attention(dec @ W_q, memory[..., -1:, :] @ W_k, memory[..., -1:, :] @ W_v)


@cross_attention.mistake
def picks_one_word(dec, memory, W_q, W_k, W_v):
    """Each word takes the value of its best key alone (argmax). Attention averages all values with
    softmax weights."""
    S = scores_of(dec @ W_q, memory @ W_k)
    return (S == S.max(axis=-1, keepdims=True)) @ (memory @ W_v)


@cross_attention.mistake
def overflows_in_cross_attention(dec, memory, W_q, W_k, W_v):
    """exp overflows for large scores, and infinity / infinity is nan. Subtract the largest score
    of each row before exp, as the stable softmax does."""
    e = np.exp(scores_of(dec @ W_q, memory @ W_k))
    return e / e.sum(axis=-1, keepdims=True) @ (memory @ W_v)


@cross_attention.mistake
def reads_the_first_source_sentence(dec, memory, W_q, W_k, W_v):
    """Every sentence of the batch reads the first memory, memory[0]. Each must read its own: keep
    the batch axis, and transpose only the last two, np.swapaxes(K, -1, -2)."""
    memory = memory[:1] if memory.ndim == 3 else memory
    return attention(dec @ W_q, memory @ W_k, memory @ W_v)


# ---------------------------------------------------------------- decoder_layer

decoder_layer = Exercise(
    blocks.decoder_layer,
    notebook="12",
    level=3,
    minutes=15,
    task="Build the decoder layer without a mask: for each place, let the self-attention see only "
    "the words up to it, y[:, :t]. Cross-attention and feed-forward follow as before, each of the "
    "three with Add & Norm.",
    hints=(
        "What does the causal mask leave of y for the third word, and which row of the result "
        "belongs to it?",
        "For t = 1 … T give y[:, :t] to the self-attention and keep the last row, [:, -1:]; "
        "concatenate the rows along axis=1. The rest is as in the notebook.",
        '`read = [multi_head_attention(y[:, :t], **p["self"])[:, -1:] for t in range(1, '
        "y.shape[1] + 1)]`, then `y = add_and_norm(y, np.concatenate(read, axis=1), "
        '*p["norm1"])`',
    ),
)


def parameters(D: int, heads: tuple[int, int], d_ff: int, draw: Callable) -> dict[str, Any]:
    """What a decoder layer has learned; `heads` of the self- and of the cross-attention."""
    p: dict[str, Any] = {}
    for name, num_heads in zip(("self", "cross"), heads, strict=True):
        p[name] = {W: draw(D, D) / 2 for W in ("W_q", "W_k", "W_v", "W_o")}
        p[name]["num_heads"] = num_heads
    p["ffn"] = {"W1": draw(D, d_ff), "b1": draw(d_ff), "W2": draw(d_ff, D), "b2": draw(D)}
    for name in ("norm1", "norm2", "norm3"):
        p[name] = (abs(draw(D)) + 0.5, draw(D))
    return p


small_layer = parameters(4, (2, 2), 6, tenths)
wide_layer = parameters(12, (3, 2), 20, normal)
reading_layer = parameters(4, (1, 1), 5, tenths)
still_layer = small_layer | {"self": small_layer["self"] | {"W_o": np.zeros((4, 4))}}  # adds 0


norms.without_chance(decoder_layer, tenths_of(2, 5, 4), tenths_of(2, 3, 4), small_layer)


@decoder_layer.experiment("who reads whom")
def who_notices(fn):
    y, memory = tenths_of(1, 4, 4), tenths_of(1, 3, 4)
    out = fn(y, memory, reading_layer)
    if not isinstance(out, np.ndarray):  # the next probe tells
        return Untested()
    if out.shape != y.shape:
        return {"the result has the shape of y, one row per written word": False}
    later, source = y.copy(), memory.copy()
    later[:, 2] += [1, 0, 0, 0]
    source[:, 1] += [1, 0, 0, 0]
    noticed = [fn(later, memory, reading_layer) - out, fn(y, source, reading_layer) - out]
    by_word, by_source = (abs(change[0]).max(axis=-1) > 1e-6 for change in noticed)
    return {
        "the result has the shape of y, one row per written word": True,
        "the first two words do not notice a change of the third": not by_word[:2].any(),
        "the third and the fourth word notice a change of the third": bool(by_word[2:].all()),
        "every word notices a change in memory": bool(by_source.all()),
    }


decoder_layer.probe("two words that read three", tenths(1, 2, 4), tenths(1, 3, 4), small_layer)
decoder_layer.probe("a batch of two", normal(2, 4, 12), normal(2, 7, 12), wide_layer)
decoder_layer.probe("as many words written as read", normal(2, 5, 12), normal(2, 5, 12), wide_layer)
decoder_layer.probe("as many sentences as words", normal(3, 3, 12), normal(3, 4, 12), wide_layer)
decoder_layer.probe("a single word", normal(2, 1, 12), normal(2, 3, 12), wide_layer)
decoder_layer.probe("more words than the source has", tenths(1, 6, 4), tenths(1, 2, 4), small_layer)
decoder_layer.probe("large inputs", 30 * tenths(2, 3, 4), 900 * tenths(2, 5, 4), small_layer)
decoder_layer.probe(
    "nearly equal features", 1 + tenths(1, 3, 4) / 1000, tenths(1, 2, 4), still_layer
)


def self_read(y, memory, p):
    """Masked self-attention."""
    return multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"])


def cross_read(y, memory, p):
    """Cross-attention."""
    return multi_head_attention(y, memory=memory, **p["cross"])


def transform(y, memory, p):
    """Feed-forward."""
    return feed_forward(y, **p["ffn"])


def layer_of(
    y, memory, p, steps=(self_read, cross_read, transform), norms=(1, 2, 3), join=add_and_norm
):
    """A decoder layer whose steps, norms or way to join them may be replaced."""
    for step, i in zip(steps, norms, strict=True):
        y = join(y, step(y, memory, p), *p[f"norm{i}"])
    return y


def skip_residual(x, out, gamma, beta):
    """Norm without Add."""
    return layer_norm(out, gamma, beta)


def skip_norm(x, out, gamma, beta):
    """Add without Norm."""
    return x + out


def layer_with_joins(y, memory, p, *joins):
    """A decoder layer with another way to join each step's result."""
    for step, i, join in zip((self_read, cross_read, transform), "123", joins, strict=True):
        y = join(y, step(y, memory, p), *p[f"norm{i}"])
    return y


@decoder_layer.mistake
def without_cross_attention(y, memory, p):
    """The cross-attention is missing: memory is never used, so the source is not read. Between
    self-attention and feed-forward, y reads from the encoder's memory, with its own Add & Norm."""
    return layer_of(y, memory, p, (self_read, transform), (1, 3))


@decoder_layer.mistake
def norm_without_cross_attention(y, memory, p):
    """The cross-attention is missing, only its norm is there: memory is never used, so the source
    is not read. Before norm2, add what y reads from memory: multi_head_attention with memory."""
    return layer_of(y, memory, p, (self_read, lambda y, memory, p: 0 * y, transform))


@decoder_layer.mistake
def without_cross_attention_and_its_norm(y, memory, p):
    """The cross-attention is missing: memory is never used, so the source is not read; and norm2
    stands where norm3 belongs. Self-attention, cross-attention, feed-forward: norm1, 2, 3."""
    return layer_of(y, memory, p, (self_read, transform), (1, 2))


@decoder_layer.mistake
def cross_reads_the_decoder(y, memory, p):
    """The second attention never looks at memory: its keys and values come from the decoder, not
    from the encoder. Give it the source: memory=memory."""

    def again(y, memory, p):
        return multi_head_attention(y, **p["cross"])

    return layer_of(y, memory, p, (self_read, again, transform))


@decoder_layer.mistake
def cross_reads_the_decoder_masked(y, memory, p):
    """The second attention is masked self-attention again: memory is never used. Its keys and
    values come from the encoder: memory=memory, and no causal mask."""

    def again(y, memory, p):
        return multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["cross"])

    return layer_of(y, memory, p, (self_read, again, transform))


@decoder_layer.mistake
def cross_within_the_encoder(y, memory, p):
    """The second attention takes queries, keys and values from memory: self-attention of the
    encoder. The queries come from the decoder: multi_head_attention(y, memory=memory, …)."""
    return layer_of(
        y, memory, p, (self_read, lambda y, m, p: multi_head_attention(m, **p["cross"]), transform)
    )


@decoder_layer.mistake
def cross_sides_swapped(y, memory, p):
    """In the cross-attention y and memory are swapped: the encoder asks and the decoder is read.
    Queries come from y, keys and values from memory."""

    def other_way(y, memory, p):
        return multi_head_attention(memory, memory=y, **p["cross"])

    return layer_of(y, memory, p, (self_read, other_way, transform))


@decoder_layer.mistake
def without_mask(y, memory, p):
    """The causal mask is missing: in the self-attention each word sees the later ones, the future.
    Pass mask=causal_mask(T), or only the words up to it."""

    def unmasked(y, memory, p):
        return multi_head_attention(y, **p["self"])

    return layer_of(y, memory, p, (unmasked, cross_read, transform))


def masked_by(make_mask: Callable[[int], np.ndarray]) -> Callable:
    """Self-attention with another mask."""

    def step(y, memory, p):
        return multi_head_attention(y, mask=make_mask(y.shape[1]), **p["self"])

    return step


@decoder_layer.mistake
def mask_inverted(y, memory, p):
    """The mask is inverted: each word sees only the later ones. True means allowed here: a word
    sees itself and the words before it."""
    return layer_of(y, memory, p, (masked_by(lambda T: ~causal_mask(T)), cross_read, transform))


@decoder_layer.mistake
def mask_looks_ahead(y, memory, p):
    """The mask is the wrong triangle (np.triu, or transposed): each word sees itself and the later
    ones, the future. Use the lower triangle, np.tril: itself and the words before it."""
    return layer_of(y, memory, p, (masked_by(lambda T: causal_mask(T).T), cross_read, transform))


@decoder_layer.mistake
def mask_hides_the_word_itself(y, memory, p):
    """The mask hides each word from itself: it sees only the words before it, and the first sees
    nothing. The diagonal belongs to the causal mask: np.tril(…, k=0), keys 0 … i."""
    strict = masked_by(lambda T: np.tril(np.ones((T, T), dtype=bool), -1))
    return layer_of(y, memory, p, (strict, cross_read, transform))


@decoder_layer.mistake
def mask_of_the_batch(y, memory, p):
    """The causal mask has the length of the batch, len(y) or y.shape[0]; for one sentence it hides
    nothing. It needs the number of words, axis 1: causal_mask(y.shape[1])."""
    allowed = masked_by(lambda T: causal_mask(len(y)))
    return layer_of(y, memory, p, (allowed, cross_read, transform))


@decoder_layer.mistake
def mask_of_the_source(y, memory, p):
    """The causal mask has the length of memory, S. Written words look at written words: it needs
    their number, axis 1 of y, causal_mask(y.shape[1])."""
    allowed = masked_by(lambda T: causal_mask(memory.shape[1]))
    return layer_of(y, memory, p, (allowed, cross_read, transform))


@decoder_layer.mistake
def mask_one_word_too_many(y, memory, p):
    """The mask lets each word see the next one, which it must predict: it is off by one. Query i
    sees keys 0 … i: the diagonal is the last, np.tril(…, k=0)."""
    lax = masked_by(lambda T: np.tril(np.ones((T, T), dtype=bool), 1))
    return layer_of(y, memory, p, (lax, cross_read, transform))


@decoder_layer.mistake
def mask_on_cross_attention_too(y, memory, p):
    """The causal mask also stands on the cross-attention. The source is complete: no causal mask
    there, only on the self-attention."""

    def masked(y, memory, p):
        mask = causal_mask(y.shape[1])
        return multi_head_attention(y, mask=mask, memory=memory, **p["cross"])

    return layer_of(y, memory, p, (self_read, masked, transform))


@decoder_layer.mistake
def triangle_on_cross_attention_too(y, memory, p):
    """A causal mask (T, S) hides part of the source from the cross-attention. The source is
    complete: no causal mask there, only on the self-attention."""

    def masked(y, memory, p):
        mask = np.tril(np.ones((y.shape[1], memory.shape[1]), dtype=bool))
        return multi_head_attention(y, mask=mask, memory=memory, **p["cross"])

    return layer_of(y, memory, p, (self_read, masked, transform))


@decoder_layer.mistake
def mask_on_the_wrong_attention(y, memory, p):
    """The causal mask stands on the cross-attention and is missing on the self-attention: the
    written words see the future. Mask the self-attention; the source may be read whole."""

    def unmasked(y, memory, p):
        return multi_head_attention(y, **p["self"])

    def masked(y, memory, p):
        mask = causal_mask(y.shape[1])
        return multi_head_attention(y, mask=mask, memory=memory, **p["cross"])

    return layer_of(y, memory, p, (unmasked, masked, transform))


@decoder_layer.mistake
def without_mask_and_memory(y, memory, p):
    """Both attentions are plain self-attention, as in an encoder: the causal mask is missing, and
    memory is never used. Mask the first, and give the second memory=memory."""

    def first(y, memory, p):
        return multi_head_attention(y, **p["self"])

    def second(y, memory, p):
        return multi_head_attention(y, **p["cross"])

    return layer_of(y, memory, p, (first, second, transform))


@decoder_layer.mistake
def keeps_the_first_row(y, memory, p):
    """Of the attention over the words up to a place, the first row is kept: every place gets the
    first word's. Keep the last row, [:, -1:], which belongs to the newest word."""

    def first_row(y, memory, p):
        rows = [multi_head_attention(y[:, : t + 1], **p["self"])[:, :1] for t in range(y.shape[1])]
        return np.concatenate(rows, axis=1)

    return layer_of(y, memory, p, (first_row, cross_read, transform))


@decoder_layer.mistake
def reads_both_sides(y, memory, p):
    """The cross-attention reads memory and y concatenated. Its keys and values come from memory
    only; the written words are read by the self-attention."""

    def both(y, memory, p):
        joined = np.concatenate([memory, y], axis=1)
        return multi_head_attention(y, memory=joined, **p["cross"])

    return layer_of(y, memory, p, (self_read, both, transform))


@decoder_layer.mistake
def self_attention_reads_memory(y, memory, p):
    """The first attention reads memory too. It is self-attention: queries, keys and values come
    from y, masked; only the second, the cross-attention, gets memory."""

    def reads(y, memory, p):
        return multi_head_attention(y, memory=memory, **p["self"])

    return layer_of(y, memory, p, (reads, cross_read, transform))


@decoder_layer.mistake
def without_self_attention(y, memory, p):
    """The masked self-attention is missing, or its result is never used: no word sees the words
    written before it. It is the first of three steps, with norm1."""
    return layer_of(y, memory, p, (cross_read, transform), (2, 3))


@decoder_layer.mistake
def without_feed_forward(y, memory, p):
    """The feed-forward step and its Add & Norm (norm3) are missing: they come last, after the
    cross-attention."""
    return layer_of(y, memory, p, (self_read, cross_read), (1, 2))


@decoder_layer.mistake
def cross_attention_first(y, memory, p):
    """Cross-attention comes before self-attention: the order is swapped. First y reads itself,
    masked, with norm1; then memory, with norm2."""
    return layer_of(y, memory, p, (cross_read, self_read, transform), (2, 1, 3))


@decoder_layer.mistake
def cross_attention_first_with_its_norms(y, memory, p):
    """Cross-attention comes before self-attention: the order of the two is swapped, while the norms
    stay. First y reads itself, masked; then memory."""
    return layer_of(y, memory, p, (cross_read, self_read, transform))


@decoder_layer.mistake
def feed_forward_before_cross(y, memory, p):
    """Feed-forward comes before cross-attention: the order is wrong. Self-attention,
    cross-attention, then feed-forward last."""
    return layer_of(y, memory, p, (self_read, transform, cross_read), (1, 3, 2))


@decoder_layer.mistake
def feed_forward_before_cross_with_norms(y, memory, p):
    """Feed-forward comes before cross-attention, with norm2: the order is wrong. Self-attention,
    cross-attention, then feed-forward last, with norm1, norm2, norm3."""
    return layer_of(y, memory, p, (self_read, transform, cross_read))


@decoder_layer.mistake
def feed_forward_twice(y, memory, p):
    """A feed-forward step stands after each attention. A decoder layer has one, at the end."""

    def both(y, memory, p):
        return transform(y + cross_read(y, memory, p), memory, p)

    y = layer_of(y, memory, p, (self_read, transform), (1, 3))
    return layer_of(y, memory, p, (cross_read, transform), (2, 3))


@decoder_layer.mistake
def same_weights_for_both(y, memory, p):
    """Both attentions use the same weights, p["self"]. The cross-attention has its own:
    p["cross"]."""

    def shared(y, memory, p):
        return multi_head_attention(y, memory=memory, **p["self"])

    return layer_of(y, memory, p, (self_read, shared, transform))


@decoder_layer.mistake
def cross_weights_for_both(y, memory, p):
    """Both attentions use the same weights, p["cross"]. The self-attention has its own:
    p["self"]."""

    def shared(y, memory, p):
        return multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["cross"])

    return layer_of(y, memory, p, (shared, cross_read, transform))


@decoder_layer.mistake
def weights_swapped(y, memory, p):
    """The weights of the two attentions are swapped: p["self"] belongs to the masked
    self-attention, p["cross"] to the cross-attention."""
    return blocks.decoder_layer(y, memory, {**p, "self": p["cross"], "cross": p["self"]})


@decoder_layer.mistake
def heads_of_self_for_both(y, memory, p):
    """The cross-attention is cut into the number of heads of the self-attention. It has its own
    num_heads, in p["cross"]."""
    cross = {**p["cross"], "num_heads": p["self"]["num_heads"]}
    return blocks.decoder_layer(y, memory, {**p, "cross": cross})


@decoder_layer.mistake
def single_heads(y, memory, p):
    """num_heads is ignored: both attentions run with one head. Each has its num_heads, in
    p["self"] and p["cross"]."""
    one = {name: {**p[name], "num_heads": 1} for name in ("self", "cross")}
    return blocks.decoder_layer(y, memory, p | one)


def without_output_matrix(x, memory, W_q, W_k, W_v, W_o, num_heads, mask):
    """The context of all heads, not yet mixed by W_o."""
    split = [split_heads(z, num_heads) for z in (x @ W_q, memory @ W_k, memory @ W_v)]
    S = scores_of(*split[:2])
    return merge_heads(weights_of(np.where(mask, S, -np.inf)) @ split[2])


@decoder_layer.mistake
def without_W_o(y, memory, p):
    """The joined heads are not multiplied by W_o, in neither attention. Each attention ends with
    its output matrix, @ W_o."""

    def self_step(y, memory, p):
        return without_output_matrix(y, y, **p["self"], mask=causal_mask(y.shape[1]))

    def cross_step(y, memory, p):
        return without_output_matrix(y, memory, **p["cross"], mask=np.bool_(True))

    return layer_of(y, memory, p, (self_step, cross_step, transform))


@decoder_layer.mistake
def without_all_residuals(y, memory, p):
    """The residuals are missing: each step's result replaces its input. Add the input before the
    norm: add_and_norm(y, out, …) is LayerNorm(y + out)."""
    return layer_of(y, memory, p, join=skip_residual)


@decoder_layer.mistake
def without_first_residual(y, memory, p):
    """The residual around the self-attention is missing. Add its input y before norm1."""
    return layer_with_joins(y, memory, p, skip_residual, add_and_norm, add_and_norm)


@decoder_layer.mistake
def without_second_residual(y, memory, p):
    """The residual around the cross-attention is missing. Add what entered it before norm2."""
    return layer_with_joins(y, memory, p, add_and_norm, skip_residual, add_and_norm)


@decoder_layer.mistake
def without_third_residual(y, memory, p):
    """The residual around the feed-forward step is missing. Add what entered it before norm3."""
    return layer_with_joins(y, memory, p, add_and_norm, add_and_norm, skip_residual)


@decoder_layer.mistake
def without_all_norms(y, memory, p):
    """The norms are missing: the steps are only added. After each of the three, normalise:
    LayerNorm(y + out), with norm1, norm2, norm3."""
    return layer_of(y, memory, p, join=skip_norm)


@decoder_layer.mistake
def without_first_norm(y, memory, p):
    """norm1, the norm after the self-attention, is missing. Each of the three steps is followed by
    Add & Norm."""
    return layer_with_joins(y, memory, p, skip_norm, add_and_norm, add_and_norm)


@decoder_layer.mistake
def without_second_norm(y, memory, p):
    """norm2, the norm after the cross-attention, is missing. Each of the three steps is followed by
    Add & Norm."""
    return layer_with_joins(y, memory, p, add_and_norm, skip_norm, add_and_norm)


@decoder_layer.mistake
def without_third_norm(y, memory, p):
    """norm3, the last norm after the feed-forward step, is missing. Each of the three steps is
    followed by Add & Norm."""
    return layer_with_joins(y, memory, p, add_and_norm, add_and_norm, skip_norm)


@decoder_layer.mistake
def norm_at_the_end_only(y, memory, p):
    """Only the last norm is there: norm1 and norm2 are missing. Each of the three steps is followed
    by Add & Norm."""
    return layer_with_joins(y, memory, p, skip_norm, skip_norm, add_and_norm)


@decoder_layer.mistake
def without_add_and_norm(y, memory, p):
    """Add & Norm is missing everywhere: neither residual nor norm. Each of the three steps is
    followed by LayerNorm(y + out)."""
    return layer_of(y, memory, p, join=lambda x, out, gamma, beta: out)


@decoder_layer.mistake
def without_second_add_and_norm(y, memory, p):
    """After the cross-attention Add & Norm is missing: no residual and no norm2. Each of the three
    steps is followed by LayerNorm(y + out)."""
    return layer_with_joins(y, memory, p, add_and_norm, lambda x, out, *norm: out, add_and_norm)


@decoder_layer.mistake
def without_third_add_and_norm(y, memory, p):
    """After the feed-forward step Add & Norm is missing: no residual and no norm3. Each of the
    three steps is followed by LayerNorm(y + out)."""
    return layer_with_joins(y, memory, p, add_and_norm, add_and_norm, lambda x, out, *norm: out)


@decoder_layer.mistake
def without_first_add_and_norm(y, memory, p):
    """After the self-attention Add & Norm is missing: no residual and no norm1. Each of the three
    steps is followed by LayerNorm(y + out)."""
    return layer_with_joins(y, memory, p, lambda x, out, *norm: out, add_and_norm, add_and_norm)


@decoder_layer.mistake
def pre_norm_order(y, memory, p):
    """It normalises before each step (pre-norm): y + step(LayerNorm(y)). Here the norm comes after
    the residual (post-norm): LayerNorm(y + step(y))."""
    for step, i in ((self_read, 1), (cross_read, 2), (transform, 3)):
        y = y + step(layer_norm(y, *p[f"norm{i}"]), memory, p)
    return y


@decoder_layer.mistake
def norm_before_add(y, memory, p):
    """Each norm is applied to the step's result before the residual is added. Add first, then
    normalise the sum: LayerNorm(y + out)."""
    return layer_of(y, memory, p, join=lambda x, out, *norm: x + layer_norm(out, *norm))


@decoder_layer.mistake
def last_step_pre_norm(y, memory, p):
    """norm3 is applied before the feed-forward step too. Each norm stands once, after the residual:
    LayerNorm(y + feed_forward(y))."""

    def normed(y, memory, p):
        return transform(layer_norm(y, *p["norm3"]), memory, p)

    return layer_of(y, memory, p, (self_read, cross_read, normed))


@decoder_layer.mistake
def gains_ignored(y, memory, p):
    """gamma and beta of the norms are ignored. Hand them over:
    add_and_norm(y, out, *p["norm1"])."""
    return layer_of(y, memory, p, join=lambda x, out, *norm: layer_norm(x + out, 1.0, 0.0))


@decoder_layer.mistake
def gains_swapped(y, memory, p):
    """gamma and beta of the norms are swapped. Each pair is (gamma, beta), in this order."""
    return layer_of(
        y, memory, p, join=lambda x, out, gamma, beta: add_and_norm(x, out, beta, gamma)
    )


@decoder_layer.mistake
def first_norm_everywhere(y, memory, p):
    """norm1 is used three times. Each Add & Norm has its own gamma and beta: norm1 after the
    self-attention, norm2 after the cross-attention, norm3 after feed-forward."""
    return layer_of(y, memory, p, norms=(1, 1, 1))


@decoder_layer.mistake
def first_norm_twice(y, memory, p):
    """norm1 is used again after the cross-attention. norm2 belongs there: each Add & Norm has its
    own gamma and beta."""
    return layer_of(y, memory, p, norms=(1, 1, 3))


@decoder_layer.mistake
def second_norm_twice(y, memory, p):
    """norm2 is used again after the feed-forward step. norm3 belongs there: each Add & Norm has its
    own gamma and beta."""
    return layer_of(y, memory, p, norms=(1, 2, 2))


@decoder_layer.mistake
def last_norms_swapped(y, memory, p):
    """norm2 and norm3 are swapped: norm2 follows the cross-attention, norm3 the feed-forward."""
    return layer_of(y, memory, p, norms=(1, 3, 2))


@decoder_layer.mistake
def first_norms_swapped(y, memory, p):
    """norm1 and norm2 are swapped: norm1 follows the self-attention, norm2 the cross-attention."""
    return layer_of(y, memory, p, norms=(2, 1, 3))


@decoder_layer.mistake
def queries_before_add_and_norm(y, memory, p):
    """The cross-attention takes its queries from the bare self-attention output. Queries come from
    the result of the first Add & Norm."""
    a = self_read(y, memory, p)
    y = add_and_norm(y, a, *p["norm1"])
    y = add_and_norm(y, cross_read(a, memory, p), *p["norm2"])
    return add_and_norm(y, transform(y, memory, p), *p["norm3"])


@decoder_layer.mistake
def queries_from_the_input(y, memory, p):
    """The cross-attention takes its queries from the layer's input y. Queries come from the result
    of the masked self-attention, after the first Add & Norm."""
    a = add_and_norm(y, self_read(y, memory, p), *p["norm1"])
    c = add_and_norm(a, cross_read(y, memory, p), *p["norm2"])
    return add_and_norm(c, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def second_residual_from_the_input(y, memory, p):
    """The residual around the cross-attention adds the layer's input y. It adds what entered the
    cross-attention, the result of the first Add & Norm."""
    a = add_and_norm(y, self_read(y, memory, p), *p["norm1"])
    c = add_and_norm(y, cross_read(a, memory, p), *p["norm2"])
    return add_and_norm(c, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def third_residual_from_the_input(y, memory, p):
    """The residual around the feed-forward step adds the layer's input y. It adds what entered the
    feed-forward step, the result of the second Add & Norm."""
    c = layer_of(y, memory, p, (self_read, cross_read), (1, 2))
    return add_and_norm(y, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def all_residuals_from_the_input(y, memory, p):
    """All three residuals add the layer's input y. Each adds what entered its own step: the second
    the result of the first Add & Norm, the third that of the second."""
    a = add_and_norm(y, self_read(y, memory, p), *p["norm1"])
    c = add_and_norm(y, cross_read(a, memory, p), *p["norm2"])
    return add_and_norm(y, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def third_residual_from_self_attention(y, memory, p):
    """The residual around the feed-forward step adds the result of the first Add & Norm. It adds
    what entered the feed-forward step, the result of the second."""
    a = layer_of(y, memory, p, (self_read,), (1,))
    c = layer_of(a, memory, p, (cross_read,), (2,))
    return add_and_norm(a, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def feed_forward_of_self_attention(y, memory, p):
    """The feed-forward step reads the self-attention's result. It reads what the cross-attention
    gave, after the second Add & Norm."""
    a = layer_of(y, memory, p, (self_read,), (1,))
    c = layer_of(a, memory, p, (cross_read,), (2,))
    return add_and_norm(c, transform(a, memory, p), *p["norm3"])


@decoder_layer.mistake
def second_residual_is_memory(y, memory, p):
    """The residual around the cross-attention adds memory. It adds what entered as queries, the
    result of the first Add & Norm; memory gives keys and values only."""
    a = layer_of(y, memory, p, (self_read,), (1,))
    c = layer_norm(memory + cross_read(a, memory, p), *p["norm2"])
    return layer_of(c, memory, p, (transform,), (3,))


@decoder_layer.mistake
def attentions_side_by_side(y, memory, p):
    """Both attentions read the layer's input, and their results are added. They follow each other:
    the cross-attention asks with the result of the first Add & Norm."""
    c = layer_norm(y + self_read(y, memory, p) + cross_read(y, memory, p), *p["norm2"])
    return layer_of(c, memory, p, (transform,), (3,))


@decoder_layer.mistake
def memory_normalised(y, memory, p):
    """memory is normalised before it is read. It is the encoder's finished output: use it as it
    is, and normalise y + out only."""
    return blocks.decoder_layer(y, layer_norm(memory, *p["norm2"]), p)


@decoder_layer.mistake
def without_relu(y, memory, p):
    """The ReLU between the two linear maps of the feed-forward step is missing:
    max(0, y W1 + b1) W2 + b2."""

    def linear(y, memory, p):
        f = p["ffn"]
        return (y @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"]

    return layer_of(y, memory, p, (self_read, cross_read, linear))


@decoder_layer.mistake
def one_residual_too_many(y, memory, p):
    """The layer's input is added once more at the end. The residuals are inside the three
    Add & Norm: return the result of the last one."""
    return y + blocks.decoder_layer(y, memory, p)


@decoder_layer.mistake
def first_source_sentence_for_all(y, memory, p):
    """Every sentence of the batch reads the first memory. Each must read its own: keep the batch
    axis of memory."""
    return blocks.decoder_layer(y, np.broadcast_to(memory[:1], memory.shape), p)


@decoder_layer.mistake
def last_source_word_only(y, memory, p):
    """Only the last word of memory is read. The cross-attention reads all words of the source:
    memory, not memory[:, -1:]."""
    return blocks.decoder_layer(y, memory[:, -1:], p)


def attention_inside(known: Callable, both: bool = True) -> None:
    """Add a mistake of multi_head_attention to the layer, in both attentions or in the masked."""

    def function(y, memory, p):
        def first(y, memory, p):
            return known(y, **p["self"], mask=causal_mask(y.shape[1]))

        def second(y, memory, p):
            return known(y, **p["cross"], memory=memory)

        return layer_of(y, memory, p, (first, second if both else cross_read, transform))

    function.__name__, function.__doc__ = known.__name__, known.__doc__
    decoder_layer.mistake(function)


for mistaken in (
    heads.not_scaled,
    heads.scaled_by_d_model,
    heads.scaled_without_root,
    heads.softmax_overflows,
    heads.split_and_merge_by_reshape_only,
    heads.merge_by_reshape_only,
):
    attention_inside(mistaken)
for mistaken in (
    heads.mask_added,
    heads.masked_after_the_softmax,
    heads.masked_after_the_softmax_and_renormalised,
    heads.masked_scores_zero,
):
    attention_inside(mistaken, both=False)


@decoder_layer.mistake
def last_word_only(y, memory, p):
    """Only the last word's row comes back. The layer returns a row for every written word,
    (B, T, D)."""
    return blocks.decoder_layer(y, memory, p)[:, -1:]


# ---------------------------------------------------------------- next_token_logits

next_token_logits = Exercise(
    decoding.next_token_logits,
    notebook="12",
    level=1,
    minutes=4,
    task="Score every word of the vocabulary as the next one, from the last position alone. It "
    "must work for one sentence (T, D) and for a batch (B, T, D).",
    hints=(
        "Which axis holds the positions, counted from the end, with a batch and without?",
        "h[..., -1, :] is the last position in both cases; W_vocab turns features into scores.",
        "`return h[..., -1, :] @ W_vocab`",
    ),
)
next_token_logits.probe("two positions of one sentence", tenths(2, 3), tenths(3, 4))
next_token_logits.probe("a batch of two", normal(2, 3, 5), normal(5, 7))
next_token_logits.probe("as many sentences as positions", normal(3, 3, 4), normal(4, 6))
next_token_logits.probe("as many words as features", normal(2, 4, 5), normal(5, 5))
next_token_logits.probe("a single position", normal(2, 1, 4), normal(4, 6))
next_token_logits.probe("as many positions as features", normal(4, 4), normal(4, 6))
next_token_logits.probe("a batch of one sentence", normal(1, 3, 4), normal(4, 6))


@next_token_logits.mistake
def last_of_the_batch(h, W_vocab):
    """h[-1] takes the last sentence of a batch, not the last position of each sentence. The
    positions are the second to last axis: h[..., -1, :]."""
    return h[-1] @ W_vocab


@next_token_logits.mistake
def all_positions(h, W_vocab):
    """It scores all positions. The next word needs only the last one: h[..., -1, :] before the
    product, or the last row after it."""
    return h @ W_vocab


@next_token_logits.mistake
def first_position(h, W_vocab):
    """It scores the first position. The next word follows the last one, index -1 instead of 0:
    h[..., -1, :]."""
    return h[..., 0, :] @ W_vocab


@next_token_logits.mistake
def last_but_one(h, W_vocab):
    """It scores the second to last position, off by one. The last is h[..., -1, :]."""
    return h[..., -2, :] @ W_vocab


@next_token_logits.mistake
def needs_a_batch(h, W_vocab):
    """h[:, -1] fits a batch only: of one sentence (T, D) it takes the last feature instead of the
    last position. With ... it works for both: h[..., -1, :]."""
    return h[:, -1] @ W_vocab


@next_token_logits.mistake
def needs_a_batch_after_the_product(h, W_vocab):
    """[:, -1] fits a batch only: of one sentence (T, D) it takes the last word of the vocabulary
    instead of the last position. With ... it works for both: [..., -1, :]."""
    return (h @ W_vocab)[:, -1]


@next_token_logits.mistake
def last_word_of_the_vocabulary(h, W_vocab):
    """[..., -1] takes the score of the vocabulary's last word at each position. The last position
    is [..., -1, :]: the second to last axis."""
    return (h @ W_vocab)[..., -1]


@next_token_logits.mistake
def last_feature(h, W_vocab):
    """h[..., -1] takes the last feature of each position. The last position is h[..., -1, :]: the
    second to last axis."""
    return h[..., -1] @ W_vocab


@next_token_logits.mistake
def keeps_the_axis(h, W_vocab):
    """The axis of the positions is still there, with length 1. Take it away: h[..., -1, :] instead
    of h[..., -1:, :]."""
    return h[..., -1:, :] @ W_vocab


@next_token_logits.mistake
def squeezes_the_batch(h, W_vocab):
    """squeeze takes away every axis of length 1, the batch of one sentence too: (V,) instead of
    (1, V). Pick the last position with an index, h[..., -1, :], which removes its axis alone."""
    return np.squeeze(h[..., -1:, :] @ W_vocab)


@next_token_logits.mistake
def softmaxed(h, W_vocab):
    """These are probabilities, softmax of the logits. Logits are the raw scores, before the
    softmax: leave it out."""
    return weights_of(h[..., -1, :] @ W_vocab)


@next_token_logits.mistake
def log_softmaxed(h, W_vocab):
    """These are logarithms of probabilities. Logits are the raw scores, before any softmax or log:
    leave it out."""
    z = h[..., -1, :] @ W_vocab
    return (
        z
        - np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - z.max(-1, keepdims=True)
    )


@next_token_logits.mistake
def averages_positions(h, W_vocab):
    """It averages all positions (mean). Take the last position alone, h[..., -1, :]: it has read
    all before it."""
    return h.mean(axis=-2) @ W_vocab


@next_token_logits.mistake
def sums_positions(h, W_vocab):
    """It sums all positions. Take the last position alone, h[..., -1, :]: it has read all before
    it."""
    return h.sum(axis=-2) @ W_vocab


@next_token_logits.mistake
def largest_over_positions(h, W_vocab):
    """It takes the largest value over all positions (max). Take the last position alone,
    h[..., -1, :]."""
    return h.max(axis=-2) @ W_vocab


@next_token_logits.mistake
def largest_logit_over_positions(h, W_vocab):
    """It takes each word's largest logit over all positions (max). Only the last position counts,
    h[..., -1, :]."""
    return (h @ W_vocab).max(axis=-2)


@next_token_logits.mistake
def transposes_W_vocab(h, W_vocab):
    """W_vocab is transposed. It is (D, V) already, and multiplies from the right without .T:
    h[..., -1, :] @ W_vocab."""
    return h[..., -1, :] @ W_vocab.T


@next_token_logits.mistake
def returns_the_word(h, W_vocab):
    """It returns the id of the likeliest word (argmax). Return all V logits, and leave the choice
    to the caller."""
    return np.argmax(h[..., -1, :] @ W_vocab, axis=-1)


@next_token_logits.mistake
def returns_the_position(h, W_vocab):
    """It returns the last position's vector itself: the product with W_vocab is missing, which
    gives one score per word of the vocabulary."""
    return h[..., -1, :]


@next_token_logits.mistake
def first_sentence(h, W_vocab):
    """It scores one sentence of the batch, h[0]. Keep the batch axis: h[..., -1, :]."""
    return h[0, -1] @ W_vocab if h.ndim == 3 else h[-1] @ W_vocab


@next_token_logits.mistake
def last_sentence(h, W_vocab):
    """It scores the last sentence of the batch alone. Keep the batch axis: h[..., -1, :]."""
    return h[-1, -1] @ W_vocab if h.ndim == 3 else h[-1] @ W_vocab


@next_token_logits.mistake
def scales_the_logits(h, W_vocab):
    """The logits are divided by √D. That belongs to attention scores; here the product h @ W_vocab
    stays as it is, without scaling."""
    return h[..., -1, :] @ W_vocab / np.sqrt(h.shape[-1])


@next_token_logits.mistake
def flattens(h, W_vocab):
    """It flattens all positions into one vector, which W_vocab does not fit. Each position has its
    own logits: take the last one, h[..., -1, :]."""
    return h.reshape(*h.shape[:-2], -1) @ W_vocab


@next_token_logits.mistake
def relu_on_logits(h, W_vocab):
    """Negative logits became 0 (ReLU). Logits may be negative: return the product as it is."""
    return np.maximum(0, h[..., -1, :] @ W_vocab)


@next_token_logits.mistake
def sigmoid_on_logits(h, W_vocab):
    """A sigmoid squeezes each logit into 0 … 1. Return the raw product, before any softmax or
    sigmoid."""
    return 1 / (1 + np.exp(-(h[..., -1, :] @ W_vocab)))


@next_token_logits.mistake
def normalises_the_position(h, W_vocab):
    """The last position is normalised to length 1 before the product. Use it as it is:
    h[..., -1, :] @ W_vocab."""
    last = h[..., -1, :]
    return last / np.linalg.norm(last, axis=-1, keepdims=True) @ W_vocab


# ---------------------------------------------------------------- next_token_probs

next_token_probs = Exercise(
    decoding.next_token_probs,
    notebook="12",
    level=3,
    minutes=15,
    task="Turn logits into probabilities with temperature, top-k and top-p, and this time cut "
    "logits: set what is cut to -np.inf before a last softmax. Top-p still counts the "
    "probabilities that temperature and top-k leave.",
    hints=(
        "What does softmax make of -np.inf, and what of the other numbers?",
        "Sort by logit, the largest first. Behind place k all become -inf. Then softmax again, and "
        "cut each token before which the likelier ones have already reached top_p.",
        "`z[order[top_k:]] = -np.inf`, then for top_p: `before = np.cumsum(p[order]) - "
        "p[order]`, `z[order[before >= top_p]] = -np.inf`, at last `return softmax(z)`",
    ),
)
menu = np.log([0.15, 0.5, 0.03, 0.25, 0.07])  # logits whose softmax is these numbers
many = normal(30) * 2
next_token_probs.probe("logits as they are", menu)
next_token_probs.probe("temperature 0.5", menu, temperature=0.5)
next_token_probs.probe("temperature 2", menu - 3, temperature=2.0)
next_token_probs.probe("top-k 2", menu, top_k=2)
next_token_probs.probe("top-p 0.8", menu, top_p=0.8)
next_token_probs.probe("a top-p that the first token reaches", menu, top_p=0.3)
next_token_probs.probe("a top-p that two tokens reach alone", menu, top_p=0.2)
next_token_probs.probe("top-k 1", menu + 2, top_k=1)
next_token_probs.probe("top-k of the whole vocabulary", menu, top_k=5)
next_token_probs.probe("top-k 3, then top-p 0.7", menu, top_k=3, top_p=0.7)
next_token_probs.probe("top-k 2, then top-p 0.85", menu, top_k=2, top_p=0.85)
next_token_probs.probe("temperature 3, then top-p 0.6", menu, temperature=3.0, top_p=0.6)
next_token_probs.probe("all three at once", many, temperature=1.5, top_k=9, top_p=0.85)


@next_token_probs.experiment("four equal logits, top-p 0.5 and 1")
def exactly_reached(fn):
    def kept(limit: float) -> int:  # powers of two: every sum of them is exact
        probs = fn(np.zeros(4), top_p=limit)
        return int((probs > 0).sum()) if isinstance(probs, np.ndarray) else 0

    return {
        "two tokens reach 0.5, and no third is kept": kept(0.5) == 2,
        "a top-p of 1 keeps all four": kept(1.0) == 4,
    }


next_token_probs.probe("logits that differ by 1,000", np.array([-1000.0, 1000.0, 0.0, 999.0]))
next_token_probs.probe("logits below 0, top-k 2", np.array([-5.0, -3.0, -4.0, -9.0]), 0.7, top_k=2)


def no_cut(probs: np.ndarray, limit: float) -> np.ndarray:
    """Keep all."""
    return probs


def rescaled(probs: np.ndarray) -> np.ndarray:
    """Divide by the sum."""
    return probs / probs.sum()


def cut_k(probs: np.ndarray, k: int) -> np.ndarray:
    """Zero for all but the k likeliest; not rescaled."""
    order = np.argsort(-probs, kind="stable")
    return keep_only(probs, order[:k])


def cut_p(probs: np.ndarray, limit: float) -> np.ndarray:
    """Zero for what comes after `limit` is reached; not rescaled."""
    order = np.argsort(-probs, kind="stable")
    return keep_only(probs, order[np.cumsum(probs[order]) - probs[order] < limit])


def keep_only(probs: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Zero for all other ids."""
    kept = np.zeros_like(probs)
    kept[ids] = probs[ids]
    return kept


def chosen(
    logits, temperature, top_k, top_p, by_k=cut_k, by_p=cut_p, scaled=rescaled, whole=weights_of
):
    """next_token_probs, with one of its steps replaced and no check of the arguments."""
    probs = whole(np.asarray(logits) / temperature)
    if top_k is not None:
        probs = scaled(by_k(probs, top_k))
    if top_p is not None:
        probs = scaled(by_p(probs, top_p))
    return probs


@next_token_probs.mistake
def temperature_without_effect(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature has no effect: it is ignored, or divides the probabilities after the softmax,
    which changes nothing once they are normalised. Divide the logits by it, before the softmax."""
    return chosen(logits, 1.0, top_k, top_p)


@next_token_probs.mistake
def temperature_divides_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature divides the probabilities, so that they do not sum to 1. Divide the logits,
    before the softmax: softmax(logits / temperature)."""
    probs = chosen(logits, 1.0, top_k, top_p)
    return probs if top_k or top_p else probs / temperature


@next_token_probs.mistake
def temperature_multiplies(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are multiplied by the temperature: it works the wrong way round (inverted). Divide
    them: softmax(logits / temperature)."""
    return chosen(logits, 1 / temperature, top_k, top_p)


@next_token_probs.mistake
def temperature_twice(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature divides the logits twice. Divide once, before the softmax."""
    return chosen(logits, temperature**2, top_k, top_p)


@next_token_probs.mistake
def temperature_under_a_root(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are divided by the root of the temperature. Divide them by the temperature
    itself."""
    return chosen(logits, temperature**0.5, top_k, top_p)


@next_token_probs.mistake
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature comes last, after the cuts: top-p counts probabilities of the raw logits. The
    order is temperature first, then top-k, then top-p."""
    probs = chosen(logits, 1.0, top_k, top_p)
    with np.errstate(divide="ignore"):
        return weights_of(np.log(probs) / temperature)


@next_token_probs.mistake
def temperature_truncates(logits, temperature=1.0, top_k=None, top_p=None):
    """Logits are cut to whole numbers by // or int. Divide with /, which keeps the decimals."""
    return chosen(np.asarray(logits) // temperature, 1.0, top_k, top_p)


@next_token_probs.mistake
def softmax_of_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """The softmax is applied twice, the second time to probabilities divided by the temperature,
    so that all become nearly uniform. Apply it once, to logits / temperature."""
    return chosen(weights_of(np.asarray(logits)), temperature, top_k, top_p)


@next_token_probs.mistake
def softmax_once_more(logits, temperature=1.0, top_k=None, top_p=None):
    """A second softmax is applied to the final probabilities, so that all become nearly uniform,
    and what was cut comes back. Divide by the sum instead: probs / probs.sum()."""
    return weights_of(chosen(logits, temperature, top_k, top_p))


@next_token_probs.mistake
def softmax_instead_of_rescaling(logits, temperature=1.0, top_k=None, top_p=None):
    """After a cut, a softmax of probabilities rescales them: zeros come back, and all become nearly
    uniform. Divide by the sum, or cut logits with -inf before the softmax."""
    return chosen(logits, temperature, top_k, top_p, scaled=weights_of)


@next_token_probs.mistake
def softmax_of_what_is_left(logits, temperature=1.0, top_k=None, top_p=None):
    """A second softmax is applied to the probabilities that are left, so that those become nearly
    uniform. Divide by their sum instead, or cut logits with -inf before the one softmax."""
    left = chosen(logits, temperature, top_k, top_p)
    probs = weights_of(np.asarray(logits) / temperature)
    return rescaled(np.where(left > 0, np.exp(probs), 0))


@next_token_probs.mistake
def normalises_without_exp(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are divided by their sum, without exp: negative numbers and wrong ratios come out.
    Use softmax: exp, then divide by the sum."""
    return chosen(logits, temperature, top_k, top_p, whole=rescaled)


@next_token_probs.mistake
def overflows_in_exp(logits, temperature=1.0, top_k=None, top_p=None):
    """exp overflows for large logits, and infinity / infinity is nan. Subtract the largest logit
    first, as the stable softmax does."""
    return chosen(logits, temperature, top_k, top_p, whole=lambda z: rescaled(np.exp(z)))


@next_token_probs.mistake
def sigmoid_of_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """A sigmoid of each logit stands in place of the softmax, so that without a cut the sum is not
    1. Tokens compete: use softmax."""
    return chosen(logits, temperature, top_k, top_p, whole=lambda z: 1 / (1 + np.exp(-z)))


@next_token_probs.mistake
def one_token_too_many(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k keeps one too many: k + 1 tokens instead of k, off by one. Keep order[:top_k], or all
    above and including the k-th largest, index top_k - 1 from the top."""
    return chosen(logits, temperature, top_k, top_p, by_k=lambda p, k: cut_k(p, k + 1))


@next_token_probs.mistake
def one_token_too_few(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k keeps one too few: k - 1 tokens instead of k, off by one. The k-th likeliest stays: cut
    what is smaller than it (<), not what is equal (<=)."""
    return chosen(logits, temperature, top_k, top_p, by_k=lambda p, k: cut_k(p, k - 1))


@next_token_probs.mistake
def top_k_smallest(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k keeps the least likely tokens: argsort sorts upwards (ascending), the smallest first.
    Take the other end, np.argsort(-probs)[:top_k]."""

    def smallest(probs, k):
        return keep_only(probs, np.argsort(probs, kind="stable")[:k])

    return chosen(logits, temperature, top_k, top_p, by_k=smallest)


@next_token_probs.mistake
def top_k_cuts_the_best(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k is inverted: it cuts the k likeliest tokens and keeps the others. Keep the k likeliest,
    and set the others to 0."""

    def rest(probs, k):
        return probs - cut_k(probs, k)

    return chosen(logits, temperature, top_k, top_p, by_k=rest)


@next_token_probs.mistake
def top_k_cuts_k_tokens(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k cuts the k least likely tokens, in place of keeping k. All but the k likeliest become
    0: np.argsort(probs)[:-top_k], with a minus."""

    def without_smallest(probs, k):
        return keep_only(probs, np.argsort(probs, kind="stable")[k:])

    return chosen(logits, temperature, top_k, top_p, by_k=without_smallest)


@next_token_probs.mistake
def top_k_by_place(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k keeps the first k tokens of the vocabulary, whatever their probability. Keep the k
    likeliest: sort first (argsort)."""

    def first(probs, k):
        return keep_only(probs, np.arange(k))

    return chosen(logits, temperature, top_k, top_p, by_k=first)


@next_token_probs.mistake
def top_k_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k is ignored. Keep the k likeliest tokens, set the others to 0 (their logits to -inf),
    and rescale."""
    return chosen(logits, temperature, None, top_p)


@next_token_probs.mistake
def top_k_shrinks_the_vocabulary(logits, temperature=1.0, top_k=None, top_p=None):
    """With top_k only k numbers come back, sorted. Keep all V places, so that a place is a token's
    id, and give 0 to what is cut."""
    probs = chosen(logits, temperature, None, None)
    if top_k is not None:
        probs = rescaled(-np.sort(-probs)[:top_k])
    return probs if top_p is None else rescaled(cut_p(probs, top_p))


def cut_logits(z: np.ndarray, kept: np.ndarray, value: float) -> np.ndarray:
    """Another value for the logits that are cut."""
    return weights_of(np.where(kept, z, value))


@next_token_probs.mistake
def cut_logits_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k sets the cut logits to 0, or nearly 0. A logit of 0 is not probability 0, for
    exp(0) = 1: set them to -inf, minus infinity."""
    z = np.asarray(logits) / temperature
    probs = weights_of(z)
    if top_k is not None:
        probs = cut_logits(z, cut_k(probs, top_k) > 0, 0.0)
    return probs if top_p is None else rescaled(cut_p(probs, top_p))


@next_token_probs.mistake
def all_cut_logits_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k and top-p set the cut logits to 0. A logit of 0 is not probability 0, for exp(0) = 1:
    set them to -inf, minus infinity, before the softmax."""
    z = np.asarray(logits) / temperature
    if top_k is not None:
        z = np.where(cut_k(weights_of(z), top_k) > 0, z, 0.0)
    if top_p is not None:
        z = np.where(cut_p(weights_of(z), top_p) > 0, z, 0.0)
    return weights_of(z)


@next_token_probs.mistake
def top_p_logits_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p sets the cut logits to 0, or nearly 0. A logit of 0 is not probability 0, for
    exp(0) = 1: set them to -inf, minus infinity."""
    z = np.asarray(logits) / temperature
    if top_k is not None:
        z = np.where(cut_k(weights_of(z), top_k) > 0, z, -np.inf)
    kept = cut_p(weights_of(z), 2.0 if top_p is None else top_p) > 0
    return cut_logits(z, kept | (z == -np.inf), 0.0)


@next_token_probs.mistake
def never_rescales(logits, temperature=1.0, top_k=None, top_p=None):
    """After a cut the probabilities no longer sum to 1: they are not renormalised. Divide them by
    their sum, after top-k and after top-p."""
    return chosen(logits, temperature, top_k, top_p, scaled=lambda probs: probs)


@next_token_probs.mistake
def top_k_not_rescaled(logits, temperature=1.0, top_k=None, top_p=None):
    """After top-k the probabilities no longer sum to 1: they are not renormalised. Divide them by
    their sum, probs / probs.sum(), before top-p counts them."""
    probs = weights_of(np.asarray(logits) / temperature)
    probs = probs if top_k is None else cut_k(probs, top_k)
    return probs if top_p is None else rescaled(cut_p(probs, top_p))


@next_token_probs.mistake
def top_p_not_rescaled(logits, temperature=1.0, top_k=None, top_p=None):
    """After top-p the probabilities no longer sum to 1: they are not renormalised. Divide them by
    their sum, probs / probs.sum()."""
    probs = chosen(logits, temperature, top_k, None)
    return probs if top_p is None else cut_p(probs, top_p)


@next_token_probs.mistake
def top_p_before_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p comes before top-k (the order is swapped), or counts probabilities that are not yet
    renormalised after top-k. Cut to the k likeliest and divide by their sum, then count."""
    probs = chosen(logits, temperature, None, top_p)
    return probs if top_k is None else rescaled(cut_k(probs, top_k))


@next_token_probs.mistake
def only_one_of_both_k(logits, temperature=1.0, top_k=None, top_p=None):
    """When both are given, top_p is ignored: elif, or an early return, skips it. Top-k and top-p
    follow each other: use if twice."""
    return chosen(logits, temperature, top_k, top_p if top_k is None else None)


@next_token_probs.mistake
def only_one_of_both_p(logits, temperature=1.0, top_k=None, top_p=None):
    """When both are given, top_k is ignored: elif, or an early return, skips it. Top-k and top-p
    follow each other: use if twice."""
    return chosen(logits, temperature, top_k if top_p is None else None, top_p)


@next_token_probs.mistake
def top_p_complement(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p compares with 1 - top_p, the complement. The tokens that are kept must together reach
    top_p."""
    return chosen(logits, temperature, top_k, top_p, by_p=lambda p, limit: cut_p(p, 1 - limit))


@next_token_probs.mistake
def crossing_token_left_out(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p leaves out the token that crosses top_p: the kept ones do not reach it, and nothing may
    be left. That token belongs to the set, one more: compare the sum before it, cumsum - p."""

    def below(probs, limit):
        order = np.argsort(-probs, kind="stable")
        return keep_only(probs, order[np.cumsum(probs[order]) <= limit])

    return chosen(logits, temperature, top_k, top_p, by_p=below)


@next_token_probs.mistake
def crossing_token_left_out_but_one(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p leaves out the token that crosses top_p, unless it is the first: one too few, so that
    the kept ones do not reach top_p. That token belongs to the set: compare cumsum - p."""

    def below(probs, limit):
        order = np.argsort(-probs, kind="stable")
        kept = np.cumsum(probs[order]) <= limit
        kept[0] = True
        return keep_only(probs, order[kept])

    return chosen(logits, temperature, top_k, top_p, by_p=below)


@next_token_probs.mistake
def top_p_one_too_many(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p keeps one token too many, off by one: it should end with the token that reaches top_p,
    not with the next one."""

    def one_more(probs, limit):
        order = np.argsort(-probs, kind="stable")
        n = (np.cumsum(probs[order]) - probs[order] < limit).sum()
        return keep_only(probs, order[: n + 1])

    return chosen(logits, temperature, top_k, top_p, by_p=one_more)


@next_token_probs.mistake
def top_p_must_be_exceeded(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p goes on where the sum is exactly top_p: one token too many. To reach it is enough:
    keep while the sum before a token is below, cumsum - p < top_p, not <=."""

    def exceeded(probs, limit):
        order = np.argsort(-probs, kind="stable")
        return keep_only(probs, order[np.cumsum(probs[order]) - probs[order] <= limit])

    return chosen(logits, temperature, top_k, top_p, by_p=exceeded)


@next_token_probs.mistake
def argmax_finds_none(logits, temperature=1.0, top_k=None, top_p=None):
    """With a top_p of 1 only the first token is kept: argmax of cumsum > top_p is 0 where that
    holds nowhere. Keep each token before which the sum is below top_p, cumsum - p < top_p."""

    def up_to(probs, limit):
        order = np.argsort(-probs, kind="stable")
        return keep_only(probs, order[: np.argmax(np.cumsum(probs[order]) > limit) + 1])

    return chosen(logits, temperature, top_k, top_p, by_p=up_to)


@next_token_probs.mistake
def top_p_as_threshold(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p compares each single probability with top_p, as a threshold. Add them up, the likeliest
    first (cumsum), until the sum reaches top_p."""
    return chosen(
        logits, temperature, top_k, top_p, by_p=lambda p, limit: np.where(p >= limit, p, 0)
    )


@next_token_probs.mistake
def top_p_as_threshold_but_one(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p keeps each token whose own probability reaches top_p, as a threshold, and the likeliest
    in any case. Add them up, the likeliest first (cumsum), until the sum reaches top_p."""

    def alone(probs, limit):
        return np.where((probs >= limit) | (probs == probs.max()), probs, 0)

    return chosen(logits, temperature, top_k, top_p, by_p=alone)


@next_token_probs.mistake
def top_p_as_threshold_but_the_first(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p keeps each token whose own probability reaches top_p, as a threshold, and the first of
    the likeliest. Add them up, the likeliest first (cumsum), until the sum reaches top_p."""

    def alone(probs, limit):
        return np.where((probs >= limit) | (np.arange(len(probs)) == probs.argmax()), probs, 0)

    return chosen(logits, temperature, top_k, top_p, by_p=alone)


@next_token_probs.mistake
def top_p_cuts_the_likely(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p keeps each token whose own probability is below top_p, so that the likeliest may go.
    Sort, add up from the likeliest (cumsum), and keep until the sum reaches top_p."""
    return chosen(
        logits, temperature, top_k, top_p, by_p=lambda p, limit: np.where(p <= limit, p, 0)
    )


@next_token_probs.mistake
def top_p_relative(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p keeps what is at least top_p times the largest probability (min-p). Add the
    probabilities up, the likeliest first (cumsum), until the sum reaches top_p."""

    def relative(probs, limit):
        return np.where(probs >= limit * probs.max(), probs, 0)

    return chosen(logits, temperature, top_k, top_p, by_p=relative)


@next_token_probs.mistake
def top_p_from_the_least_likely(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p adds up from the least likely token: argsort sorts upwards (ascending). Begin with the
    likeliest, in descending order: np.argsort(-probs)."""

    def upwards(probs, limit):
        order = np.argsort(probs, kind="stable")
        return keep_only(probs, order[np.cumsum(probs[order]) - probs[order] < limit])

    return chosen(logits, temperature, top_k, top_p, by_p=upwards)


@next_token_probs.mistake
def top_p_unsorted(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p adds up in the order of the vocabulary, not sorted. Begin with the likeliest token:
    order = np.argsort(-probs), then cumsum of probs[order]."""

    def unsorted(probs, limit):
        return keep_only(probs, np.flatnonzero(np.cumsum(probs) - probs < limit))

    return chosen(logits, temperature, top_k, top_p, by_p=unsorted)


@next_token_probs.mistake
def top_p_mask_not_put_back(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p finds what to cut in sorted order, but cuts in the order of the vocabulary: the wrong
    tokens go. Lead the mask back to the ids: probs[order[cut]] = 0."""

    def misplaced(probs, limit):
        order = np.argsort(-probs, kind="stable")
        kept = np.cumsum(probs[order]) - probs[order] < limit
        return keep_only(probs, np.flatnonzero(kept))

    return chosen(logits, temperature, top_k, top_p, by_p=misplaced)


@next_token_probs.mistake
def top_p_result_sorted(logits, temperature=1.0, top_k=None, top_p=None):
    """With top_p the probabilities come back sorted: a place is no longer a token's id. Write them
    to the places where they came from: kept[order] = …"""
    return chosen(
        logits, temperature, top_k, top_p, by_p=lambda p, limit: -np.sort(-cut_p(p, limit))
    )


@next_token_probs.mistake
def all_sorted(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities come back sorted, the largest first: a place is no longer a token's id.
    Write them back to the places where they came from: probs[order] = …"""
    return -np.sort(-chosen(logits, temperature, top_k, top_p))


@next_token_probs.mistake
def shares_of_before_the_cut(logits, temperature=1.0, top_k=None, top_p=None):
    """The right tokens are kept, but with the probabilities of before the cut, which no longer sum
    to 1: they are not renormalised at the end. Divide what is left by its sum."""
    kept = chosen(logits, temperature, top_k, top_p) > 0
    return np.where(kept, chosen(logits, temperature, None, None), 0)


@next_token_probs.mistake
def top_p_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p is ignored. Keep the likeliest tokens until their probabilities together reach top_p,
    and give 0 to the others."""
    return chosen(logits, temperature, top_k, None)


@next_token_probs.mistake
def top_p_of_the_whole(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p is taken of the largest probability's share only: the first token alone is kept. Keep
    as many of the likeliest as together reach top_p."""
    return chosen(logits, temperature, top_k, top_p, by_p=lambda p, limit: cut_k(p, 1))


@next_token_probs.mistake
def both_cuts_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k and top_p are ignored: nothing is cut. After the temperature keep the k likeliest, then
    as many as reach top_p."""
    return chosen(logits, temperature, None, None)


@next_token_probs.mistake
def returns_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """The softmax is missing: logits come back, not probabilities. Return softmax of the logits
    that are left, the cut ones at -inf."""
    kept = chosen(logits, temperature, top_k, top_p) > 0
    return np.where(kept | (not (top_k or top_p)), np.asarray(logits) / temperature, -np.inf)


@next_token_probs.mistake
def returns_log_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """These are logarithms of probabilities (log-softmax). Return the probabilities themselves,
    softmax, which sum to 1."""
    with np.errstate(divide="ignore"):
        return np.log(chosen(logits, temperature, top_k, top_p))


@next_token_probs.mistake
def returns_the_likeliest(logits, temperature=1.0, top_k=None, top_p=None):
    """It returns one id (argmax). Return a probability for each of the V tokens, and leave the
    choice to sample_token."""
    return int(np.argmax(logits))


@next_token_probs.mistake
def all_on_the_likeliest(logits, temperature=1.0, top_k=None, top_p=None):
    """All the probability goes to the likeliest token, as greedy decoding would. Softmax gives each
    token its share."""
    return (np.arange(len(logits)) == np.argmax(logits)).astype(float)


# ---------------------------------------------------------------- sample_token

sample_token = Exercise(
    decoding.sample_token,
    notebook="12",
    level=1,
    minutes=5,
    task="Draw one id, each as often as its probability says. The draw must come from rng, so that "
    "a seed gives the same id again.",
    hints=(
        "Which method of rng chooses among numbers with given probabilities?",
        "rng.choice(V, p=probs) draws one of 0 … V - 1; int makes it a plain number.",
        "`return int(rng.choice(len(probs), p=probs))`",
    ),
    seconds=4.0,
)
FOUR, SKEWED = np.array([0.1, 0.3, 0.6, 0.0]), np.array([0.0, 0.85, 0.1, 0.05])


class Running(np.random.Generator):
    """A generator that moves on from one call of an answer to the next, as in a notebook."""

    def __deepcopy__(self, memo: dict) -> "Running":
        return self


def draws(fn: Callable, probs: np.ndarray, n: int, seed: int) -> list:
    """Many draws in a row."""
    running = Running(np.random.PCG64(seed))
    return [fn(probs, running) for _ in range(n)]


def shares(fn: Callable, probs: np.ndarray, seed: int) -> dict[str, Any]:
    """How often each id comes."""
    ids = draws(fn, probs, 300, seed)
    share = {i: sum(same_id(x, i) for x in ids) / len(ids) for i in range(len(probs))}
    found: dict[str, Any] = {f"share of token {i}": About(share[i], 0.12) for i in share}
    return found | {"each token with a probability above 0 comes": _all_come(share, probs)}


def _all_come(share: dict[int, float], probs: np.ndarray) -> bool:
    return all(share[i] > 0 for i in share if probs[i] > 0)


def same_id(x: Any, i: int) -> bool:
    """Whether a draw is the number i; arrays are none."""
    return isinstance(x, int | float) and x == i


@sample_token.experiment("the same seed twice")
def same_seed_twice(fn):
    probs = np.full(20, 0.045)
    probs[4] = 0.145
    first, again = ([fn(probs, np.random.default_rng(i)) for i in range(12)] for _ in range(2))
    return {
        "the same seed gives the same id again": bool(np.array_equal(first, again)),
        "the likeliest token does not always come": not all(same_id(x, 4) for x in first),
        "other seeds give other ids": len({str(x) for x in first}) > 1,
    }


@sample_token.experiment("300 draws from 0.1, 0.3, 0.6 and 0")
def many_draws(fn):
    return shares(fn, FOUR, seed=1)


@sample_token.experiment("300 draws from 0, 0.85, 0.1 and 0.05")
def many_skewed_draws(fn):
    return shares(fn, SKEWED, seed=2)


@sample_token.experiment("tokens of probability 0")
def impossible_tokens(fn):
    ids = draws(fn, np.array([0, 0.5, 0, 0.5, 0]), 60, seed=3)
    return {"only tokens with a probability above 0 come": all(_among(ids, 1, 3))}


@sample_token.experiment("a certain token, in single precision")
def certain_token(fn):
    ids = draws(fn, np.array([0, 0, 0, 0, 1], dtype=np.float32), 40, seed=4)
    return {"a token of probability 1 always comes": all(_among(ids, 4))}


def _among(ids: list, *possible: int) -> list[bool]:
    return [any(same_id(x, i) for i in possible) for x in ids]


sample_token.probe("a vocabulary of one token", np.array([1.0]), np.random.default_rng(1))


@sample_token.mistake
def ignores_the_probabilities(probs, rng):
    """All tokens come equally often (uniform): the probabilities are not passed on. Give them to
    choice: rng.choice(len(probs), p=probs)."""
    return int(rng.choice(len(probs)))


@sample_token.mistake
def draws_globally(probs, rng):
    """It draws from a global generator (np.random, random, torch without generator) instead of the
    rng passed in, so that a seed has no effect and nothing is reproducible. Use rng.choice."""
    return int(np.random.default_rng().choice(len(probs), p=probs / probs.sum()))


@sample_token.mistake
def ignores_rng_and_probabilities(probs, rng):
    """It draws from a global generator, not from the rng passed in, and all tokens come equally
    often. Give the probabilities to the rng: rng.choice(len(probs), p=probs)."""
    return int(np.random.default_rng().integers(len(probs)))


def always_the_same(u: float) -> None:
    """Add the mistake of a seed whose random number between 0 and 1 is u."""

    def fixed_seed(probs, rng):
        """Every draw gives the same id: a generator with a fixed seed is made inside, and rng is
        ignored. Draw from the rng passed in: it moves on with each draw."""
        return int(np.searchsorted(np.cumsum(probs), u, side="right"))

    fixed_seed.__name__ = f"fixed_seed_{round(100 * u)}"
    sample_token.mistake(fixed_seed)


for u in (0.05, 0.3, 0.6, 0.9, 0.97):
    always_the_same(u)


@sample_token.mistake
def takes_the_likeliest(probs, rng):
    """It always takes the likeliest token (argmax, greedy): nothing is drawn. Sample by the
    probabilities: rng.choice(len(probs), p=probs)."""
    return int(np.argmax(probs))


@sample_token.mistake
def gives_the_probability(probs, rng):
    """It returns the probability of the drawn token, not its id. Draw from the ids 0 … V - 1:
    rng.choice(len(probs), p=probs)."""
    return float(rng.choice(probs, p=probs))


@sample_token.mistake
def chooses_among_probabilities(probs, rng):
    """rng.choice(probs) returns one of the probabilities, all equally often. Draw an id instead:
    rng.choice(len(probs), p=probs)."""
    return float(rng.choice(probs))


@sample_token.mistake
def gives_an_array(probs, rng):
    """It returns an array with one id, as size=1 makes it, not the id itself. Leave size out, or
    take the first entry, and make it an int."""
    return rng.choice(len(probs), size=1, p=probs / probs.sum())


@sample_token.mistake
def gives_a_list(probs, rng):
    """It returns a list with one id, not the id itself. Take the first entry, [0]."""
    return [int(rng.choice(len(probs), p=probs / probs.sum()))]


@sample_token.mistake
def gives_the_probability_too(probs, rng):
    """It returns two things, a tuple: the id and its probability. Return the id alone."""
    token = int(rng.choice(len(probs), p=probs / probs.sum()))
    return token, float(probs[token])


@sample_token.mistake
def gives_a_one_hot_vector(probs, rng):
    """It returns a one-hot vector of counts, as multinomial makes it, not the id. Return the
    position of the 1: argmax, or use rng.choice."""
    return rng.multinomial(1, probs / probs.sum())


@sample_token.mistake
def counts_from_one(probs, rng):
    """The ids are one too high, off by one: they count from 1. Ids begin at 0, and end at V - 1."""
    return int(rng.choice(len(probs), p=probs / probs.sum())) + 1


@sample_token.mistake
def one_too_low(probs, rng):
    """The ids are one too low, off by one. The drawn id is the first whose cumulative sum exceeds
    the random number: np.searchsorted(np.cumsum(probs), u), without - 1."""
    return int(rng.choice(len(probs), p=probs / probs.sum())) - 1


@sample_token.mistake
def never_draws_the_last(probs, rng):
    """The last token never comes: the loop ends one too early, and the last but one gets its share.
    Ids go from 0 to V - 1, range(len(probs))."""
    sums = np.cumsum(probs[:-1])
    return min(int(np.searchsorted(sums, rng.random(), side="right")), len(probs) - 2)


@sample_token.mistake
def draws_without_the_last(probs, rng):
    """The last token never comes: the ids end one too early, at V - 2. Draw among all V of them,
    rng.choice(len(probs), p=probs), not len(probs) - 1."""
    return int(rng.choice(len(probs) - 1, p=probs[:-1] / probs[:-1].sum()))


@sample_token.mistake
def searches_without_cumsum(probs, rng):
    """The random number is compared with the probabilities themselves. Add them up first, cumsum:
    the first cumulative sum above the random number gives the id."""
    return int(np.argmax(probs > rng.random()))


@sample_token.mistake
def searches_in_probabilities(probs, rng):
    """The random number is searched in the probabilities themselves. Add them up first, cumsum:
    np.searchsorted(np.cumsum(probs), u)."""
    return int(np.searchsorted(probs, rng.random()))


@sample_token.mistake
def throws_a_coin_for_each(probs, rng):
    """Each token gets a new random number, so that later ones come too seldom. Draw one number u,
    and compare it with the cumulative sums."""
    for i, p in enumerate(probs):
        if rng.random() < p:
            return i
    return len(probs) - 1


@sample_token.mistake
def throws_a_coin_for_each_sum(probs, rng):
    """The cumulative sums are compared with a new random number each time, so that early tokens
    come too often. Draw one number u, before the loop."""
    for i, p in enumerate(np.cumsum(probs)):
        if rng.random() < p:
            return i
    return len(probs) - 1


@sample_token.mistake
def multiplies_by_noise(probs, rng):
    """The largest of probabilities times random numbers does not come by its probability: likely
    tokens come too often. Use rng.choice(len(probs), p=probs)."""
    return int(np.argmax(probs * rng.random(len(probs))))


@sample_token.mistake
def adds_noise(probs, rng):
    """The largest of probabilities plus uniform random numbers does not come by its probability,
    and tokens of probability 0 come too. Use rng.choice(len(probs), p=probs)."""
    return int(np.argmax(probs + rng.random(len(probs))))


@sample_token.mistake
def softmax_again(probs, rng):
    """A softmax is applied to the probabilities once more (or Gumbel noise is added to them without
    the log): they become nearly equal, and those of 0 come too. They sum to 1 already: p=probs."""
    return int(rng.choice(len(probs), p=weights_of(probs)))


@sample_token.mistake
def draws_the_unlikely(probs, rng):
    """Unlikely tokens come often, likely ones seldom: the probabilities are inverted (1 - p). Use
    p=probs."""
    return int(rng.choice(len(probs), p=(1 - probs) / (1 - probs).sum()))


@sample_token.mistake
def draws_a_rank(probs, rng):
    """The probabilities are sorted, and the place in that order is returned. Give back the id:
    order[place], or draw without sorting."""
    return int(rng.choice(len(probs), p=-np.sort(-probs) / probs.sum()))


@sample_token.mistake
def reverses_the_ids(probs, rng):
    """The probabilities are read in reversed order: the first token comes as often as the last
    should. Keep their order: p=probs."""
    return len(probs) - 1 - int(rng.choice(len(probs), p=probs / probs.sum()))


@sample_token.mistake
def keeps_the_two_likeliest(probs, rng):
    """Unlikely tokens never come: something is cut before the draw. Each comes as often as its
    probability says: rng.choice(len(probs), p=probs)."""
    kept = cut_k(probs, 2)
    return int(rng.choice(len(probs), p=kept / kept.sum()))


@sample_token.mistake
def equal_among_the_possible(probs, rng):
    """All tokens with a probability above 0 come equally often (uniform). Give the probabilities to
    choice as weights: rng.choice(len(probs), p=probs)."""
    return int(rng.choice(np.flatnonzero(probs)))


@sample_token.mistake
def a_throw_for_each_token(probs, rng):
    """Each token is drawn or not by a random number of its own, and the last one drawn wins, so it
    comes too often. Draw once: one random number against the cumulative sum, or rng.choice."""
    drawn = np.flatnonzero(rng.random(len(probs)) < probs)
    return int(drawn[-1]) if len(drawn) else 0


# ---------------------------------------------------------------- greedy_decode

greedy_decode = Exercise(
    decoding.greedy_decode,
    notebook="12",
    level=2,
    minutes=10,
    task="Write an answer word by word, this time with for and no while. It ends with end_id, "
    "or after max_len words.",
    hints=(
        "How often may the loop run at most, and what must step see each time?",
        "Start from [start_id]; max_len times, append the argmax of the last row of logits, and "
        "leave the loop once it is end_id. Return all but the start.",
        "max_len times `ids.append(int(np.argmax(step(ids)[-1])))`, then "
        "`if ids[-1] == end_id: break`, and after the loop `return ids[1:]`",
    ),
)


class Step:
    """A decoder of few words: `choose` says which word follows the ids so far.

    Only the last row of its logits tells; the rows before it point elsewhere, and more loudly.
    """

    def __init__(self, name: str, V: int, choose: Callable[[list[int]], int], low: float = 0.0):
        self.name, self.V, self.choose, self.low = name, V, choose, low

    def __call__(self, ids: Any) -> np.ndarray:
        seen = [int(i) for i in np.ravel(ids)]
        logits = self.low - 1 - np.arange(self.V) / 10 * np.ones((len(seen), 1))
        for row, i in enumerate(seen[:-1]):
            logits[row, (i + row + 3) % self.V] = self.low + 6 + row * 3 % 4 / 2
        wanted = self.choose(seen) if len(seen) <= 40 else self.V - 1
        logits[-1, (wanted + 1) % self.V] = self.low + 4.5  # the second best
        logits[-1, wanted] = self.low + 5
        return logits

    def __repr__(self) -> str:
        return self.name


def chain(*ids: int) -> Callable[[list[int]], int]:
    """Each id is followed by the next one."""
    return lambda seen: dict(pairwise(ids)).get(seen[-1], ids[-1])


def by_number(*words: int) -> Callable[[list[int]], int]:
    """The n-th word, whatever was written."""
    return lambda seen: words[min(len(seen), len(words)) - 1]


def by_history(V: int, length: int) -> Callable[[list[int]], int]:
    """A word that depends on all before and their order; the last id ends it after `length`."""

    def choose(seen: list[int]) -> int:
        total = sum((place + 2) * (i + 1) for place, i in enumerate(seen))
        return V - 1 if len(seen) >= length else total % (V - 1)

    return choose


def decode_probe(label: str, step: Step, start_id: int, end_id: int, max_len: int) -> None:
    """Compare the ids; a list, a tuple or an array of them are all the same."""

    def run(fn: Callable) -> Any:
        ids = fn(step, start_id, end_id, max_len)
        if isinstance(ids, np.ndarray) and ids.ndim == 1:
            return ids.tolist()
        return ids

    greedy_decode.probes.append(Probe(label, run, (step, start_id, end_id, max_len)))


@greedy_decode.experiment("the same call again")
def the_same_call_twice(fn):
    step = Step("all nearly alike", 30, by_history(30, 9))

    def nearly_alike(ids: Any) -> np.ndarray:
        return step(ids) / 100

    try:
        first, again = (np.ravel(fn(nearly_alike, 4, 29, 8)).tolist() for _ in range(2))
    except Exception:  # the next probe tells
        return Untested()
    return {
        "both calls give the same ids: the likeliest each time, argmax, none drawn at random": first
        == again
    }


decode_probe(
    "three words, then the end", Step("1 → 3 → 2 → 5", 6, chain(1, 3, 2, 5, 0, 4, 1)), 1, 5, 8
)
decode_probe(
    "words that depend on all before", Step("by all before", 11, by_history(11, 6)), 4, 10, 20
)
decode_probe("a limit before the end", Step("by all before", 11, by_history(11, 20)), 7, 10, 4)
decode_probe("the end at once", Step("7 at once", 8, by_number(7, 3, 1)), 0, 7, 5)
decode_probe("the end as the last word allowed", Step("5, 2, 8", 9, by_number(5, 2, 8, 1)), 3, 8, 3)
decode_probe("an end_id of 0", Step("4, 6, 0", 7, by_number(4, 6, 0, 2, 3)), 5, 0, 6)
decode_probe("a max_len of 1", Step("by all before", 11, by_history(11, 20)), 2, 10, 1)
decode_probe("the start word once more", Step("3, 1, 2, 4", 5, by_number(3, 1, 2, 4)), 1, 4, 9)
decode_probe("logits below 0", Step("2, 6, 1, 7", 8, by_number(2, 6, 1, 7), -1000.0), 3, 7, 9)
decode_probe("the same word twice", Step("2, 2, 5, 5, 0", 7, by_number(2, 2, 5, 5, 0)), 3, 0, 9)


def written(
    step: Callable,
    start_id: int,
    end_id: int,
    max_len: int,
    given: Callable[[list[int]], list[int]] = list,
    pick: Callable[[np.ndarray], int] = lambda logits: int(np.argmax(logits[-1])),
) -> list[int]:
    """Greedy decoding with another input for step, or another way to choose."""
    ids = [start_id]
    while len(ids) <= max_len:
        ids.append(pick(step(given(ids))))
        if ids[-1] == end_id:
            break
    return ids[1:]


@greedy_decode.mistake
def input_never_grows(step, start_id, end_id, max_len):
    """step always sees only the start token: the input never grows. Append each new word to ids,
    and feed all of them."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[:1])


@greedy_decode.mistake
def feeds_the_newest_word(step, start_id, end_id, max_len):
    """step sees only the newest word, the last token. A transformer keeps no state: pass the whole
    sequence so far, step(ids), not step(ids[-1:])."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[-1:])


@greedy_decode.mistake
def feeds_without_start(step, start_id, end_id, max_len):
    """From the second step on, start_id is missing from the input of step. Keep it in front of all
    words: step([start_id] + words), and leave it out of the result only."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[1:] or ids)


@greedy_decode.mistake
def feeds_all_but_the_newest(step, start_id, end_id, max_len):
    """The newest word is missing from the input of step: it lags one behind. Append each word
    before step is called again."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[:-1] or ids)


@greedy_decode.mistake
def feeds_reversed(step, start_id, end_id, max_len):
    """step sees the words in reversed order: new words are put in front. Append them at the end."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[::-1])


@greedy_decode.mistake
def feeds_two_words(step, start_id, end_id, max_len):
    """step sees the start and the newest word only. Pass the whole sequence so far, step(ids): all
    words between count too."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[:1] + ids[1:][-1:])


@greedy_decode.mistake
def leaves_out_the_end(step, start_id, end_id, max_len):
    """The end token is missing in the result. It belongs to the answer: append end_id first, then
    stop."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids[:-1] if ids[-1:] == [end_id] else ids


@greedy_decode.mistake
def counts_the_start(step, start_id, end_id, max_len):
    """It stops one word too early: the start token is counted. max_len is the number of generated
    ids: len(ids) - 1, or range(max_len)."""
    return decoding.greedy_decode(step, start_id, end_id, max_len - 1)


@greedy_decode.mistake
def one_word_too_many(step, start_id, end_id, max_len):
    """It generates one word too many, max_len + 1, off by one. max_len is the most that may be
    generated: use < instead of <=, or range(max_len)."""
    return decoding.greedy_decode(step, start_id, end_id, max_len + 1)


@greedy_decode.mistake
def returns_the_start_too(step, start_id, end_id, max_len):
    """start_id is part of the result. It was given, not generated: leave the first out,
    return ids[1:]."""
    return [start_id, *decoding.greedy_decode(step, start_id, end_id, max_len)]


@greedy_decode.mistake
def returns_the_start_and_counts_it(step, start_id, end_id, max_len):
    """start_id is part of the result, and counted in max_len: one word too few is generated. Return
    ids[1:], with max_len generated words."""
    return [start_id, *decoding.greedy_decode(step, start_id, end_id, max_len - 1)]


@greedy_decode.mistake
def returns_start_without_end(step, start_id, end_id, max_len):
    """start_id is part of the result, and end_id is missing. It is the other way round: return
    ids[1:], with end_id if it came."""
    return [start_id, *leaves_out_the_end(step, start_id, end_id, max_len)]


@greedy_decode.mistake
def ignores_the_end(step, start_id, end_id, max_len):
    """It does not stop at end_id, and goes on until max_len. After each word: if it is end_id,
    break."""
    return written(step, start_id, -1, max_len)


@greedy_decode.mistake
def ignores_max_len(step, start_id, end_id, max_len):
    """max_len is ignored: it goes on until end_id comes, if it ever does. Stop after max_len
    words too."""
    return written(step, start_id, end_id, 60)


@greedy_decode.mistake
def one_word_after_the_end(step, start_id, end_id, max_len):
    """It generates one word more after end_id: the test comes too late, a step after. Test the word
    that was appended last, before step is called again."""
    ids = [start_id]
    while len(ids) <= max_len and end_id not in ids[1:-1]:
        ids.append(int(np.argmax(step(ids)[-1])))
    return ids[1:]


@greedy_decode.mistake
def fills_with_the_end(step, start_id, end_id, max_len):
    """The result is filled up to max_len with end_id. Stop at the first end_id: the result may be
    shorter than max_len."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids + [end_id] * (max_len - len(ids))


@greedy_decode.mistake
def forces_the_end(step, start_id, end_id, max_len):
    """end_id is appended even when it never came. It is in the result only if it was generated
    before max_len ran out."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids if ids[-1:] == [end_id] else [*ids, end_id]


@greedy_decode.mistake
def end_twice(step, start_id, end_id, max_len):
    """end_id stands twice at the end: it is appended once more after the loop. It is in the result
    already, when it came."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return [*ids, end_id] if ids[-1:] == [end_id] else ids


@greedy_decode.mistake
def stops_at_the_start(step, start_id, end_id, max_len):
    """It stops at start_id instead of end_id: the two are swapped. Compare the new word with
    end_id."""
    return written(step, start_id, start_id, max_len)


@greedy_decode.mistake
def stops_at_start_or_end(step, start_id, end_id, max_len):
    """It also stops when start_id is generated. Only end_id ends the answer: a word may come
    twice."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids[: ids.index(start_id) + 1] if start_id in ids else ids


@greedy_decode.mistake
def stops_at_repetition(step, start_id, end_id, max_len):
    """It stops when a word comes twice in a row. Repetition is allowed: stop at end_id or max_len
    only."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    for n in range(1, len(ids)):
        if ids[n] == ids[n - 1]:
            return ids[: n + 1]
    return ids


@greedy_decode.mistake
def removes_repeated_words(step, start_id, end_id, max_len):
    """Words that came before are left out of the result. Repetition is allowed: keep every word
    in the order generated."""
    return list(dict.fromkeys(decoding.greedy_decode(step, start_id, end_id, max_len)))


@greedy_decode.mistake
def end_is_zero(step, start_id, end_id, max_len):
    """It stops at id 0: end_id is ignored, or taken for false (if end_id). Compare the new word
    with end_id."""
    return written(step, start_id, 0, max_len)


@greedy_decode.mistake
def reads_the_first_row(step, start_id, end_id, max_len):
    """It chooses from the first row of the logits. The next word comes from the last position:
    step(ids)[-1], not [0]."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z[0])))


@greedy_decode.mistake
def reads_the_row_before(step, start_id, end_id, max_len):
    """It chooses from the second to last row of the logits, off by one. The next word comes from
    the last position: step(ids)[-1]."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z[-2:][0])))


@greedy_decode.mistake
def argmax_over_all_rows(step, start_id, end_id, max_len):
    """argmax runs over all rows of the logits, flattened. Take the last row first:
    np.argmax(step(ids)[-1])."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z)))


@greedy_decode.mistake
def argmax_over_all_rows_by_remainder(step, start_id, end_id, max_len):
    """argmax runs over all rows of the logits, flattened, and the remainder % V gives the column of
    another position. Take the last row first: np.argmax(step(ids)[-1])."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z)) % z.shape[-1])


@greedy_decode.mistake
def averages_the_rows(step, start_id, end_id, max_len):
    """It averages or adds the rows of the logits over all positions. Take the last row alone:
    step(ids)[-1]."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z.mean(axis=0))))


@greedy_decode.mistake
def takes_the_best_of_any_row(step, start_id, end_id, max_len):
    """It takes the word with the largest logit in any row (max over positions). Only the last
    position counts: step(ids)[-1]."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z.max(axis=0))))


@greedy_decode.mistake
def takes_the_least_likely(step, start_id, end_id, max_len):
    """It takes the smallest logit, the least likely word: argsort sorts upwards. Take the largest:
    np.argmax."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmin(z[-1])))


@greedy_decode.mistake
def takes_the_second_best(step, start_id, end_id, max_len):
    """It takes the second largest logit. Greedy takes the largest: np.argmax, or the last of
    argsort, [-1]."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argsort(z[-1])[-2]))


@greedy_decode.mistake
def largest_by_size(step, start_id, end_id, max_len):
    """It takes the logit that is farthest from 0 (abs). Logits may be negative: the largest counts,
    np.argmax without abs."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(abs(z[-1]))))


@greedy_decode.mistake
def samples_the_word(step, start_id, end_id, max_len):
    """It draws the next word at random, by its probability. Greedy always takes the likeliest:
    np.argmax of the last row."""
    random = np.random.default_rng()

    def draw(z: np.ndarray) -> int:
        return int(random.choice(z.shape[1], p=weights_of(z[-1])))

    return written(step, start_id, end_id, max_len, pick=draw)


@greedy_decode.mistake
def returns_the_last_word(step, start_id, end_id, max_len):
    """Only the last id comes back. Return the list of all generated ids, ids[1:]."""
    return decoding.greedy_decode(step, start_id, end_id, max_len)[-1]


@greedy_decode.mistake
def stops_after_the_first(step, start_id, end_id, max_len):
    """It stops after the first word: the return stands inside the loop. Return after the loop, all
    generated ids."""
    return decoding.greedy_decode(step, start_id, end_id, 1)


@greedy_decode.mistake
def loses_the_first_word(step, start_id, end_id, max_len):
    """The first generated word is missing in the result. Leave out only start_id: ids[1:]."""
    return decoding.greedy_decode(step, start_id, end_id, max_len)[1:]


@greedy_decode.mistake
def loses_the_last_word(step, start_id, end_id, max_len):
    """The last generated word is always missing, the end token too, even when max_len ended the
    loop. Return all generated ids, with end_id if it came: ids[1:]."""
    return decoding.greedy_decode(step, start_id, end_id, max_len)[:-1]


@greedy_decode.mistake
def returns_all_rows(step, start_id, end_id, max_len):
    """It appends, or replaces all by, the best word of every row. One step adds one word, from the
    last row: step(ids)[-1]."""
    ids = [start_id]
    while len(ids) <= max_len and (len(ids) == 1 or ids[-1] != end_id):
        ids = [start_id, *(int(i) for i in np.argmax(step(ids), axis=-1))]
    return ids[1:]


@greedy_decode.mistake
def uses_another_axis(step, start_id, end_id, max_len):
    """argmax runs over the positions, axis 0. The words of the vocabulary are the last axis:
    np.argmax(step(ids)[-1])."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z[:, -1])))


# ---------------------------------------------------------------- cross_entropy

cross_entropy = Exercise(
    decoding.cross_entropy,
    notebook="12",
    level=2,
    minutes=10,
    task="Average -log p(target) over the tokens that are not padding, without computing any "
    "probability: -log p = log Σ exp(z) - z[target]. Subtract the largest logit first, so that "
    "neither large logits nor tiny probabilities break it.",
    hints=(
        "What is left of log(exp(z[target]) / Σ exp(z)) when you write the fraction as a "
        "difference?",
        "z = logits minus their largest along the last axis; log Σ exp(z) minus the logit of the "
        "target; then the mean where targets != pad_id.",
        "`z = logits - logits.max(axis=-1, keepdims=True)`, `loss = np.log(np.exp(z).sum(-1)) "
        "- np.take_along_axis(z, targets[..., None], -1)[..., 0]`, then `return "
        "float(loss[targets != pad_id].mean())`",
    ),
)
two_words = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1]]])  # (1, 2, 4)
with_padding = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]]])
far_rows = tenths(2, 3, 5) + np.array([[[1000], [0], [-500]], [[0], [900], [0]]])
cross_entropy.probe("two words", two_words, np.array([[0, 2]]), 3)
cross_entropy.probe("equal logits", np.zeros((2, 3, 5)), np.array([[1, 0, 4], [2, 2, 0]]), 3)
cross_entropy.probe("two words and padding", with_padding, np.array([[0, 2, 3]]), 3)
cross_entropy.probe(
    "sentences of different lengths", normal(2, 4, 7), np.array([[0, 6, 3, 2], [5, 2, 2, 2]]), 2
)
cross_entropy.probe("padding in front", normal(2, 3, 6), np.array([[5, 0, 4], [5, 5, 1]]), 5)
cross_entropy.probe("a pad_id of 0", normal(2, 4, 5), np.array([[4, 1, 2, 0], [3, 0, 0, 0]]), 0)
cross_entropy.probe(
    "as many sentences as words",
    2 * normal(3, 3, 4),
    np.array([[1, 2, 3], [0, 2, 1], [2, 3, 3]]),
    3,
)
cross_entropy.probe(
    "as many tokens in the vocabulary as words",
    normal(2, 3, 3),
    np.array([[0, 1, 0], [1, 0, 2]]),
    2,
)
cross_entropy.probe("rows far apart", far_rows, np.array([[1, 4, 0], [2, 3, 0]]), 0)
cross_entropy.probe(
    "logits of ±1,000",
    np.array([[[1000.0, 999.0, -1000.0], [-1000.0, -999.0, -1001.0]]]),
    np.array([[1, 0]]),
    2,
)
cross_entropy.probe("no padding", 3 * normal(3, 2, 6), np.array([[1, 2], [3, 3], [2, 1]]), 5)


@cross_entropy.experiment("a target that looked impossible")
def impossible_target(fn):
    loss = fn(np.array([[[100, 0, -100]]], dtype=np.float32), np.array([[2]]), 1)
    loss = loss if isinstance(loss, float | int) else np.nan
    return {
        "the loss is finite": bool(np.isfinite(loss)),
        "its size is the difference of the logits, 200": not abs(abs(loss) - 200) > 1e-3,
    }


def log_probs(logits: np.ndarray) -> np.ndarray:
    """Stable logarithms of softmax, in double precision."""
    z = np.asarray(logits, dtype=np.float64)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def token_losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """-log p of each target, padding too: (B, T)."""
    return -of_targets(log_probs(logits), targets)


def of_targets(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The entry of each target: (B, T, V) → (B, T)."""
    return np.take_along_axis(scores, targets[..., None], -1)[..., 0]


@cross_entropy.mistake
def counts_padding(logits, targets, pad_id):
    """Padding is part of the average: pad_id is ignored. Leave out the positions where the target
    is pad_id: loss[targets != pad_id]."""
    return float(token_losses(logits, targets).mean())


@cross_entropy.mistake
def divides_by_all(logits, targets, pad_id):
    """The loss of padding is set to 0 but still counted in the average. Divide by the number of
    real tokens, not by the number of all, B · T."""
    return float((token_losses(logits, targets) * (targets != pad_id)).mean())


@cross_entropy.mistake
def zeroes_the_logits(logits, targets, pad_id):
    """The logits of padded positions are set to 0. Zeroed logits are not ignored: each adds log V.
    Leave those positions out of the loss."""
    z = logits * (targets != pad_id)[..., None]
    return float(token_losses(z, targets).mean())


@cross_entropy.mistake
def keeps_only_padding(logits, targets, pad_id):
    """The mask is inverted: only padding is counted, and the real tokens are left out. Keep
    targets != pad_id, not ==."""
    return float(token_losses(logits, targets)[targets == pad_id].mean())


@cross_entropy.mistake
def padding_is_zero(logits, targets, pad_id):
    """The tokens with id 0 are left out: pad_id is ignored. Here 0 may be a real word: compare with
    pad_id, not with 0."""
    return float(token_losses(logits, targets)[targets != 0].mean())


@cross_entropy.mistake
def cuts_the_token_pad_id(logits, targets, pad_id):
    """The logit of the padding token is taken out of the vocabulary. Padding concerns positions:
    leave out those where the target is pad_id, and keep all V logits of the others."""
    z = np.array(logits, dtype=np.float64)
    z[..., pad_id] = -np.inf
    return float(token_losses(z, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def drops_whole_sentences(logits, targets, pad_id):
    """A sentence with any padding is left out whole. Leave out only the padded positions:
    loss[targets != pad_id]."""
    kept = (targets != pad_id).all(axis=1)
    return float(token_losses(logits, targets)[kept].mean())


@cross_entropy.mistake
def drops_whole_columns(logits, targets, pad_id):
    """A position is left out for all sentences as soon as one has padding there. Leave out single
    positions: loss[targets != pad_id]."""
    kept = (targets != pad_id).all(axis=0)
    return float(token_losses(logits, targets)[:, kept].mean())


@cross_entropy.mistake
def stops_at_padding(logits, targets, pad_id):
    """It stops at the first padding of a sentence, so that words behind padding in front are lost.
    Skip each padded position (continue), without leaving the loop (break)."""
    real = np.logical_and.accumulate(targets != pad_id, axis=1)
    return float(token_losses(logits, targets)[real].sum() / real.sum())


@cross_entropy.mistake
def minus_missing(logits, targets, pad_id):
    """The loss is negative: the minus sign in front of the log is missing. Average -log p."""
    return -decoding.cross_entropy(logits, targets, pad_id)


def smooths(share: float) -> None:
    """Add the mistake of label smoothing with this share."""

    def function(logits, targets, pad_id):
        loss = token_losses(logits, targets)
        loss = (1 - share) * loss - share * log_probs(logits).mean(axis=-1)
        return float(loss[targets != pad_id].mean())

    function.__name__ = f"label_smoothing_{round(100 * share)}"
    function.__doc__ = f"""The targets are smoothed (label_smoothing={share:g}, as in the paper's
        training): a part of each target goes to all other tokens. Average -log p of the target
        alone."""
    cross_entropy.mistake(function)


for share in (0.05, 0.1, 0.2):
    smooths(share)


@cross_entropy.mistake
def sums_up(logits, targets, pad_id):
    """It sums over the tokens. Take the mean: divide by the number of real tokens."""
    return float(token_losses(logits, targets)[targets != pad_id].sum())


@cross_entropy.mistake
def divides_by_the_batch(logits, targets, pad_id):
    """The sum is divided by the number of sentences, the batch. Divide by the number of real
    tokens."""
    return float(token_losses(logits, targets)[targets != pad_id].sum() / len(targets))


@cross_entropy.mistake
def divides_by_the_length(logits, targets, pad_id):
    """The sum is divided by the length T. Divide by the number of real tokens in the whole
    batch."""
    return float(token_losses(logits, targets)[targets != pad_id].sum() / targets.shape[1])


@cross_entropy.mistake
def divides_by_the_vocabulary(logits, targets, pad_id):
    """It averages over the vocabulary too, so that the sum is also divided by V. Divide by the
    number of real tokens only."""
    return decoding.cross_entropy(logits, targets, pad_id) / logits.shape[-1]


@cross_entropy.mistake
def averages_by_sentence(logits, targets, pad_id):
    """It averages each sentence first, then the sentences, so that tokens of short ones count more.
    Every real token counts the same: one mean over all of them."""
    real = targets != pad_id
    losses = token_losses(logits, targets) * real
    return float((losses.sum(axis=1) / real.sum(axis=1)).mean())


@cross_entropy.mistake
def averages_by_position(logits, targets, pad_id):
    """It averages each position over the batch first, then the positions. Every real token counts
    the same: one mean over all of them."""
    real = targets != pad_id
    losses = (token_losses(logits, targets) * real).sum(axis=0)[real.any(axis=0)]
    return float((losses / real.sum(axis=0)[real.any(axis=0)]).mean())


@cross_entropy.mistake
def gives_each_token(logits, targets, pad_id):
    """It returns a loss for each token. Return their mean over the real tokens, one number."""
    return token_losses(logits, targets)


@cross_entropy.mistake
def gives_flat_losses(logits, targets, pad_id):
    """It returns a loss for each token of the batch, in one row, with 0 for padding: the mean is
    missing (reduction="none"). Return one number, the mean over the real tokens."""
    return np.where(targets == pad_id, 0, token_losses(logits, targets)).ravel()


@cross_entropy.mistake
def gives_losses_without_padding(logits, targets, pad_id):
    """It returns a loss for each token, (B, T), with 0 for padding: the mean is missing. Return one
    number, the mean over the real tokens."""
    return np.where(targets == pad_id, 0, token_losses(logits, targets))


@cross_entropy.mistake
def gives_each_real_token(logits, targets, pad_id):
    """It returns a loss for each real token: the mean is missing. Return one number, .mean()."""
    return token_losses(logits, targets)[targets != pad_id]


@cross_entropy.mistake
def gives_each_sentence(logits, targets, pad_id):
    """It returns a loss for each sentence. Return one number, the mean over all real tokens of the
    batch."""
    real = targets != pad_id
    return (token_losses(logits, targets) * real).sum(axis=1) / real.sum(axis=1)


@cross_entropy.mistake
def reshapes_the_class_axis(logits, targets, pad_id):
    """reshape does not move axes: it mixes the scores of different words. To bring the vocabulary
    to the place where PyTorch wants it, (B, V, T), transpose (permute) instead, or flatten to
    (B · T, V)."""
    B, T, V = logits.shape
    return decoding.cross_entropy(logits.reshape(B, V, T).swapaxes(1, 2), targets, pad_id)


@cross_entropy.mistake
def transposes_before_flattening(logits, targets, pad_id):
    """The axes are transposed to (B, V, T) and then flattened to rows of V: the scores of different
    words are mixed. Flatten (B, T, V) as it is: reshape(-1, V), without transpose or permute."""
    mixed = np.swapaxes(logits, 1, 2).reshape(logits.shape)
    return decoding.cross_entropy(mixed, targets, pad_id)


@cross_entropy.mistake
def flattens_in_another_order(logits, targets, pad_id):
    """Logits and targets are flattened in different orders: a target meets another token's logits.
    Flatten both alike, without a transpose: reshape(-1, V) and reshape(-1)."""
    B, T, V = logits.shape
    mixed = logits.swapaxes(0, 1).reshape(B, T, V)
    return decoding.cross_entropy(mixed, targets, pad_id)


@cross_entropy.mistake
def softmax_over_the_positions(logits, targets, pad_id):
    """The softmax runs over the positions, axis=1. It belongs to the words of the vocabulary, the
    last axis, axis=-1."""
    log_p = np.swapaxes(log_probs(np.swapaxes(logits, 1, 2)), 1, 2)
    return float(-of_targets(log_p, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def softmax_over_the_batch(logits, targets, pad_id):
    """The softmax runs over the batch, axis=0. It belongs to the words of the vocabulary, the last
    axis, axis=-1."""
    log_p = np.moveaxis(log_probs(np.moveaxis(logits, 0, -1)), -1, 0)
    return float(-of_targets(log_p, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def softmax_over_everything(logits, targets, pad_id):
    """One softmax runs over all logits together. Each position has its own: sum along the last
    axis, axis=-1, with keepdims=True."""
    log_p = log_probs(logits.reshape(1, -1)).reshape(logits.shape)
    return float(-of_targets(log_p, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def softmax_twice(logits, targets, pad_id):
    """The softmax is applied twice: F.cross_entropy and log-softmax want logits, not probabilities.
    Apply it once."""
    return decoding.cross_entropy(weights_of(logits), targets, pad_id)


@cross_entropy.mistake
def softmax_left_out(logits, targets, pad_id):
    """The softmax is missing: the target's raw logit is taken for log p. Add the logarithm of the
    sum: -log p = log Σ exp(z) - z[target]."""
    return float(-of_targets(logits, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def log_of_logits(logits, targets, pad_id):
    """It takes the log of logits, which may be negative: nan. Turn them into probabilities first
    (softmax), or use log Σ exp(z) - z[target]."""
    return float(-np.log(of_targets(logits, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def log_left_out(logits, targets, pad_id):
    """The log is missing: it averages -p, or only p. The loss of a token is -log p(target)."""
    return float(-np.exp(-token_losses(logits, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def positive_probability(logits, targets, pad_id):
    """It averages the probabilities of the targets: the log is missing. The loss of a token is
    -log p(target)."""
    return float(np.exp(-token_losses(logits, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def one_minus_p(logits, targets, pad_id):
    """It averages 1 - p. The loss of a token is -log p(target), which grows without limit."""
    return float((1 - np.exp(-token_losses(logits, targets)))[targets != pad_id].mean())


@cross_entropy.mistake
def log_of_the_mean(logits, targets, pad_id):
    """It takes the log of the mean probability. Take the log of each first, then the mean: -log p
    is averaged, not p."""
    return float(-np.log(np.exp(-token_losses(logits, targets))[targets != pad_id].mean()))


@cross_entropy.mistake
def log_to_base_two(logits, targets, pad_id):
    """The loss is in bits, log2. Use the natural logarithm, np.log."""
    return decoding.cross_entropy(logits, targets, pad_id) / np.log(2)


@cross_entropy.mistake
def log_to_base_ten(logits, targets, pad_id):
    """The logarithm has base 10, log10. Use the natural logarithm, np.log."""
    return decoding.cross_entropy(logits, targets, pad_id) / np.log(10)


@cross_entropy.mistake
def perplexity_instead(logits, targets, pad_id):
    """It returns exp of the loss, the perplexity. Return the mean of -log p itself, without exp."""
    return float(np.exp(decoding.cross_entropy(logits, targets, pad_id)))


@cross_entropy.mistake
def perplexity_in_single_precision(logits, targets, pad_id):
    """It returns exp of the loss, the perplexity, which overflows for unlikely targets. Return the
    mean of -log p itself, without exp."""
    return float(np.exp(np.float32(decoding.cross_entropy(logits, targets, pad_id))))


@cross_entropy.mistake
def overflows_in_the_loss(logits, targets, pad_id):
    """exp overflows for large logits, and infinity / infinity is nan. Subtract the largest logit
    along the last axis first."""
    e = np.exp(logits)
    log_p = np.log(e / e.sum(axis=-1, keepdims=True))
    return float(-of_targets(log_p, targets)[targets != pad_id].mean())


@cross_entropy.mistake
def log_sum_exp_overflows(logits, targets, pad_id):
    """exp overflows for large logits: log Σ exp(z) is infinite. Subtract the largest logit along
    the last axis first: it changes nothing else."""
    losses = np.log(np.exp(logits).sum(axis=-1)) - of_targets(logits, targets)
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def one_maximum_for_all(logits, targets, pad_id):
    """The largest logit of all is subtracted: rows far below it become log 0. Subtract the largest
    of each position: max(axis=-1, keepdims=True)."""
    z = logits - logits.max()
    losses = np.log(np.exp(z).sum(axis=-1)) - of_targets(z, targets)
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def forgets_to_add_the_maximum(logits, targets, pad_id):
    """The largest logit is subtracted inside the sum, but not from the target's logit. Subtract it
    from both, or add it again outside: log Σ exp(z - m) + m - z[target]."""
    log_sum = np.log(np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1))
    return float((log_sum - of_targets(logits, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def log_of_zero(logits, targets, pad_id):
    """A tiny probability is rounded to 0, and log 0 is infinite. Take the log before any division:
    -log p = log Σ exp(z) - z[target], the largest logit subtracted."""
    p = weights_of(logits)
    return float(-np.log(of_targets(p, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def caps_the_loss(logits, targets, pad_id):
    """A small number such as 1e-9 in the log (or clip) caps the loss of unlikely targets. Leave it
    out: -log p = log Σ exp(z) - z[target] needs no log of a tiny probability."""
    p = weights_of(np.asarray(logits, dtype=np.float64))
    return float(-np.log(of_targets(p, targets) + 1e-9)[targets != pad_id].mean())


@cross_entropy.mistake
def shifts_again(logits, targets, pad_id):
    """Logits and targets are shifted by one against each other, logits[:, :-1] with targets[:, 1:].
    They belong together place by place: the shift was made before (shift_right)."""
    return decoding.cross_entropy(logits[:, :-1], targets[:, 1:], pad_id)


@cross_entropy.mistake
def shifts_back(logits, targets, pad_id):
    """Logits and targets are shifted by one against each other, logits[:, 1:] with targets[:, :-1].
    They belong together place by place: compare without a shift."""
    return decoding.cross_entropy(logits[:, 1:], targets[:, :-1], pad_id)


@cross_entropy.mistake
def last_position_only(logits, targets, pad_id):
    """Only the last position of each sentence is counted. In training every position predicts:
    average over all real tokens."""
    return decoding.cross_entropy(logits[:, -1:], targets[:, -1:], pad_id)


@cross_entropy.mistake
def first_sentence_of_the_loss(logits, targets, pad_id):
    """Only the first sentence of the batch is counted. Average over the real tokens of all."""
    return decoding.cross_entropy(logits[:1], targets[:1], pad_id)


@cross_entropy.mistake
def prefers_its_own_guess(logits, targets, pad_id):
    """It takes the probability of the likeliest word, max, instead of the target's. Pick the entry
    of the target: np.take_along_axis(…, targets[..., None], -1)."""
    losses = -log_probs(logits).max(axis=-1)
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def counts_errors(logits, targets, pad_id):
    """It counts how often the likeliest word (argmax) is wrong. The loss is the mean of -log p of
    the target, which also says how wrong."""
    return float((logits.argmax(axis=-1) != targets)[targets != pad_id].mean())


@cross_entropy.mistake
def measures_accuracy(logits, targets, pad_id):
    """It counts how often the likeliest word (argmax) is right: the accuracy. The loss is the mean
    of -log p of the target."""
    return float((logits.argmax(axis=-1) == targets)[targets != pad_id].mean())


@cross_entropy.mistake
def squares_the_error(logits, targets, pad_id):
    """It averages squared differences from the one-hot target. Cross-entropy is the mean of
    -log p(target)."""
    error = weights_of(logits) - np.eye(logits.shape[-1])[targets]
    return float((error**2).sum(axis=-1)[targets != pad_id].mean())


@cross_entropy.mistake
def binary_for_each_word(logits, targets, pad_id):
    """It adds -log(1 - p) of all other words, as a binary cross-entropy. Only the target counts:
    -log p(target)."""
    p, hot = weights_of(logits), np.eye(logits.shape[-1])[targets]
    losses = -(hot * np.log(p) + (1 - hot) * np.log(1 - p)).sum(axis=-1)
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def sigmoid_of_each_word(logits, targets, pad_id):
    """A sigmoid stands in place of the softmax: the words do not compete. Use softmax over the
    vocabulary, axis=-1."""
    losses = np.log1p(np.exp(-of_targets(logits, targets)))
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def entropy_of_the_prediction(logits, targets, pad_id):
    """It computes the entropy of the prediction, -Σ p log p, and never looks at the targets. Take
    -log p of each target."""
    log_p = log_probs(logits)
    return float(-(np.exp(log_p) * log_p).sum(axis=-1)[targets != pad_id].mean())


@cross_entropy.mistake
def picks_every_pair(logits, targets, pad_id):
    """Indexing with targets alone pairs every position with every target. Each position has its own
    target: np.take_along_axis, or [np.arange(N), targets]."""
    real = targets != pad_id
    return float(-log_probs(logits)[real][:, targets[real]].mean())


@cross_entropy.mistake
def target_off_by_one(logits, targets, pad_id):
    """It takes the entry before the target, off by one, as if ids began at 1. Ids begin at 0: the
    target's own column, log_p[target]."""
    return float(token_losses(logits, targets - 1)[targets != pad_id].mean())


@cross_entropy.mistake
def averages_all_log_probabilities(logits, targets, pad_id):
    """It averages -log p over the whole vocabulary, and the targets are not used. Take only the
    entry of each target."""
    return float(-log_probs(logits)[targets != pad_id].mean())
