"""Notebook 12: the decoder, its input, its layer and its logits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import blocks, decoding
from helpers.attention import attention, causal_mask, multi_head_attention
from helpers.attention import softmax as weights_of
from helpers.blocks import add_and_norm, feed_forward, layer_norm
from workshop.exercises.exercise import Draw, Exercise, Untested, drawn, numbers


def tenths(*shape: int) -> Draw:
    """Numbers with one decimal, to follow with a pencil."""
    return numbers(*shape).then(lambda x: np.round(10 * x.astype(float)) / 10)


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
shift_right.answer("""
    def shift_right(targets, start_id):
        first = np.full((len(targets), 1), start_id)
        return np.concatenate([first, targets[:, :-1]], axis=1)
""")
shift_right.answer("""
    def shift_right(targets, start_id):
        out = targets.copy()
        out[:, 1:] = targets[:, :-1]
        out[:, 0] = start_id
        return out
""")
shift_right.answer("""
    def shift_right(targets, start_id):
        out = np.roll(targets, 1, axis=1)
        out[:, 0] = start_id
        return out
""")
shift_right.answer("""
    def shift_right(targets, start_id):
        out = np.zeros_like(targets)
        for b in range(targets.shape[0]):
            out[b, 0] = start_id
            for t in range(1, targets.shape[1]):
                out[b, t] = targets[b, t - 1]
        return out
""")
shift_right.answer("""
    import torch

    def shift_right(targets, start_id):
        first = torch.full_like(targets[:, :1], start_id)
        return torch.cat([first, targets[:, :-1]], dim=1)
""")

shift_right.why(
    "np.full((len(targets), 1), start_id) | out[:, 0] = start_id | out[b, 0] = start_id | "
    "start_id | first | torch.full_like(targets[:, :1], start_id)",
    "Every sentence begins with start_id: nothing has been written when the first word is "
    "predicted.",
)
shift_right.why(
    "targets[:, :-1] | targets[b, t - 1] | targets[:, t - 1]",
    "Place t reads target t - 1, the word before it; the last target is left out, nothing follows "
    "it.",
)
shift_right.why(
    "axis=1 | dim=1",
    "Axis 1 holds the words of a sentence; axis 0 would shift the sentences of the batch.",
)
shift_right.why(
    "targets.copy() | np.zeros_like(targets) | np.roll(targets, 1, axis=1)",
    "The targets stay as they are, for the loss compares with them: write into a new array, of "
    "whole numbers.",
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
def overwrites_the_first(targets, start_id):
    """start_id overwrites the first token, and nothing is shifted: from the second place on the
    decoder reads the very word that it must predict. Move all tokens one place to the right."""
    return np.concatenate([column(targets, start_id), targets[:, 1:]], axis=1)


@shift_right.mistake
def changes_targets_in_place(targets, start_id):
    """It changes targets itself, in place, so that the loss will compare with shifted targets too.
    Write into a new array, or into a copy."""
    targets[:, 1:] = targets[:, :-1].copy()
    targets[:, 0] = start_id
    return targets


@shift_right.mistake
def shifts_the_batch(targets, start_id):
    """It shifts the sentences of the batch, along axis 0: each sentence stands where the next one
    was. Shift the tokens within each sentence, along axis 1."""
    return np.concatenate([np.full_like(targets[:1], start_id), targets[:-1]], axis=0)


@shift_right.mistake
def wraps_around(targets, start_id):
    """The last token comes round to the front, as np.roll brings it, and start_id is missing: the
    decoder would read the end of the answer first. The first column is start_id."""
    return np.roll(targets, 1, axis=1)


@shift_right.mistake
def gives_floats(targets, start_id):
    """The ids became floats, as np.zeros, np.ones or np.empty make them. Ids are whole numbers,
    with which an embedding table is indexed: keep the dtype of targets."""
    return decoding.shift_right(targets, start_id).astype(float)


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
cross_attention.answer("""
    def cross_attention(dec, memory, W_q, W_k, W_v):
        Q = dec @ W_q
        K = memory @ W_k
        V = memory @ W_v
        return attention(Q, K, V)
""")
cross_attention.answer("""
    def cross_attention(dec, memory, W_q, W_k, W_v):
        Q, K, V = dec @ W_q, memory @ W_k, memory @ W_v
        scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
        weights = softmax(scores, axis=-1)
        return weights @ V
""")
cross_attention.answer("""
    def cross_attention(dec, memory, W_q, W_k, W_v):
        Q, K, V = dec @ W_q, memory @ W_k, memory @ W_v
        scores = np.einsum("...td,...sd->...ts", Q, K) / W_k.shape[-1] ** 0.5
        scores = scores - scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return np.einsum("...ts,...sd->...td", weights, V)
""")
cross_attention.answer("""
    import torch

    def cross_attention(dec, memory, W_q, W_k, W_v):
        Q, K, V = dec @ W_q, memory @ W_k, memory @ W_v
        scores = Q @ K.transpose(-2, -1) / K.size(-1) ** 0.5
        return torch.softmax(scores, dim=-1) @ V
""")

cross_attention.why(
    "np.sqrt(K.shape[-1]) | W_k.shape[-1] ** 0.5 | K.size(-1) ** 0.5 | q.shape[-1] | Q.shape[-1] "
    "| W_q.shape[-1]",
    "Scores are scaled: a sum of d_k products spreads like √d_k, the root of the keys' width, so "
    "divide by it.",
)
cross_attention.why(
    "memory @ W_k | memory @ W_v | memory",
    "The encoder is read: keys and values both come from memory, each with a projection of its "
    "own, W_k and W_v.",
)
cross_attention.why(
    "dec @ W_q",
    "The decoder asks: queries come from dec, one for each row of the result. Keys and values "
    "come from memory.",
)
cross_attention.why(
    "softmax(scores, axis=-1) | axis=-1 | dim=-1 | softmax(dim=-1)",
    "Each query shares out its attention over the words of memory, the last axis: its weights "
    "sum to 1.",
)
cross_attention.why(
    "np.swapaxes(K, -1, -2) | K.transpose(-2, -1)",
    "Only the last two axes of the keys are swapped; the axes in front are the batch.",
)
cross_attention.why(
    "scores - scores.max(axis=-1, keepdims=True)",
    "The largest score of each row is subtracted first: it changes no weight, and exp cannot "
    "overflow.",
)
cross_attention.why(
    "weights @ V",
    "The result is an average of the values, weighted by attention, one row per query, and "
    "nothing else.",
)

same_width = tuple(tenths(3, 3) for _ in range(3))  # W_q, W_k, W_v (D, D)
narrow = (numbers(6, 5), numbers(6, 5), numbers(6, 3))  # d_k = 5 and d_v = 3 for D = 6


@cross_attention.experiment("who reads whom")
def who_reads_whom(fn: Callable) -> dict | Untested:
    sizes = ((2, 3), (4, 3), (3, 4), (3, 4), (3, 3))
    dec, memory, *weights = drawn([tenths(*size) for size in sizes], "who reads whom")
    out = fn(dec, memory, *weights)
    if not isinstance(out, np.ndarray) or out.ndim != 2 or out.shape[1] != dec.shape[1]:
        return Untested()  # the next probe tells
    if len(out) != len(dec):
        return {"the result has one row per word of dec": False}
    other_word, other_source = dec.copy(), memory.copy()
    other_word[1] += 1
    other_source[2] += 1
    noticed = [fn(other_word, memory, *weights) - out, fn(dec, other_source, *weights) - out]
    by_word, by_source = (abs(change).max(axis=-1) > 1e-9 for change in noticed)
    return {
        "the result has one row per word of dec": True,
        "each word asks with its own query": bool(by_word[1]),
        "a word of dec does not notice another word of dec": not by_word[0],
        "every word of dec notices a change in memory": bool(by_source.all()),
    }


cross_attention.probe("two words that read four", tenths(2, 3), tenths(4, 3), *same_width)
cross_attention.probe("keys and values of different widths", numbers(3, 6), numbers(4, 6), *narrow)
cross_attention.probe("more words written than read", numbers(5, 6), numbers(2, 6), *narrow)
cross_attention.probe("as many words written as read", numbers(4, 6), numbers(4, 6), *narrow)
cross_attention.probe("a batch of two", numbers(2, 3, 6), numbers(2, 4, 6), *narrow)
cross_attention.probe("as many sentences as words", tenths(4, 4, 3), tenths(4, 4, 3), *same_width)
cross_attention.probe("scores of ±1,000", 30 * tenths(2, 3, 3), 30 * tenths(2, 5, 3), *same_width)


def scores_of(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Scaled scores."""
    return Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])


@cross_attention.mistake
def sides_swapped(dec, memory, W_q, W_k, W_v):
    """The two sides are swapped: queries come from memory, keys and values from dec. The decoder
    asks (queries from dec), the encoder is read (keys and values from memory)."""
    return attention(memory @ W_q, dec @ W_k, dec @ W_v)


@cross_attention.mistake
def forgets_to_scale(dec, memory, W_q, W_k, W_v):
    """The scores are not scaled. A score is a sum of d_k products, and spreads the more the wider
    keys are: divide by √d_k before the softmax, so that it stays soft."""
    return weights_of(scores_of(dec @ W_q, memory @ W_k) * np.sqrt(W_k.shape[1])) @ (memory @ W_v)


@cross_attention.mistake
def masks_the_source(dec, memory, W_q, W_k, W_v):
    """A causal mask hides part of memory. The source is complete before the first word is written,
    so each word may read all of it: cross-attention needs no causal mask."""
    S = scores_of(dec @ W_q, memory @ W_k)
    allowed = np.tril(np.ones(S.shape[-2:], dtype=bool))
    return weights_of(np.where(allowed, S, -np.inf)) @ (memory @ W_v)


# ---------------------------------------------------------------- decoder_layer

decoder_layer = Exercise(
    blocks.decoder_layer,
    notebook="12",
    level=3,
    minutes=15,
    task="Build the decoder layer out of parts that you have: the words written so far read each "
    "other, up to themselves; then they read the memory, all of it; then each word goes through "
    "the feed-forward network. Add & Norm follows each of the three.",
    hints=(
        "Which of the two attentions needs a mask, and which needs `memory`?",
        "Three times add_and_norm(y, what the sub-layer makes of y, *p[norm]): self-attention "
        "under causal_mask(T), cross-attention with memory=memory, feed_forward.",
        "`mask = causal_mask(y.shape[1])`, `y = add_and_norm(y, multi_head_attention(y, "
        'mask=mask, **p["self"]), *p["norm1"])`, and in the same way twice more',
    ),
)
decoder_layer.answer("""
    def decoder_layer(y, memory, p):
        mask = causal_mask(y.shape[1])
        a = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
        c = add_and_norm(a, multi_head_attention(a, memory=memory, **p["cross"]), *p["norm2"])
        return add_and_norm(c, feed_forward(c, **p["ffn"]), *p["norm3"])
""")
decoder_layer.answer("""
    def decoder_layer(y, memory, p):
        rows = []
        for t in range(1, y.shape[1] + 1):
            read = multi_head_attention(y[:, :t], **p["self"])
            rows.append(read[:, -1:])
        y = add_and_norm(y, np.concatenate(rows, axis=1), *p["norm1"])
        y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
        return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])
""")
decoder_layer.answer("""
    def decoder_layer(y, memory, p):
        T = y.shape[1]
        mask = np.tril(np.ones((T, T), dtype=bool))
        out = multi_head_attention(y, mask=mask, **p["self"])
        y = add_and_norm(y, out, *p["norm1"])
        out = multi_head_attention(y, memory=memory, **p["cross"])
        y = add_and_norm(y, out, *p["norm2"])
        out = feed_forward(y, **p["ffn"])
        return add_and_norm(y, out, *p["norm3"])
""")
decoder_layer.answer("""
    def decoder_layer(y, memory, p):
        rows = []
        for t in range(y.shape[1]):
            last = y[:, t : t + 1]
            read = multi_head_attention(last, memory=y[:, : t + 1], **p["self"])
            h = add_and_norm(last, read, *p["norm1"])
            h = add_and_norm(h, multi_head_attention(h, memory=memory, **p["cross"]), *p["norm2"])
            rows.append(add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm3"]))
        return np.concatenate(rows, axis=1)
""")

decoder_layer.why(
    "np.tril(np.ones((T, T), dtype=bool), k=0)",
    "The diagonal belongs to the causal mask: each word may see itself and the words before it.",
)
decoder_layer.why(
    "mask=mask | causal_mask | np.tril | mask | y[:, :t]",
    "The causal mask belongs to self-attention alone: a word sees itself and those before it, "
    "never the future; memory is read whole.",
)
decoder_layer.why(
    'memory=memory | multi_head_attention(y, memory=memory, **p["cross"])',
    "Cross-attention reads the encoder: keys and values come from memory, all of it, unchanged, "
    "with no causal mask.",
)
decoder_layer.why(
    'p["cross"] | p["self"]',
    "The two attentions have weights of their own: self for the written words, cross for memory.",
)
decoder_layer.why(
    'p["norm1"] | p["norm2"] | p["norm3"]',
    "Each of the three Add & Norm has a gain and a bias of its own: norm1, norm2, norm3, in this "
    "order.",
)
decoder_layer.why(
    'add_and_norm(y, out, *p["norm2"]) | add_and_norm',
    "After each step Add & Norm: the residual connection adds the step's input, then its own norm "
    "normalises the sum: norm1, norm2, norm3.",
)
decoder_layer.why(
    "y.shape[1] | len(y[0]) | range(1, y.shape[1] + 1)",
    "Axis 1 of y holds the written words, as many as the mask needs; axis 0 holds the sentences "
    "of the batch.",
)
decoder_layer.why(
    "read[:, -1:]",
    "Of the attention over y[:, :t] only the last row counts: it belongs to word t, the newest.",
)
decoder_layer.why(
    'a | c | h | multi_head_attention(a, memory=memory, **p["cross"])',
    "Each step reads (its queries), and its residual adds, what the Add & Norm before it gave, "
    "not the layer's input.",
)


def parameters(D: int, heads: tuple[int, int], d_ff: int, draw: Callable) -> dict[str, Any]:
    """What a decoder layer has learned; `heads` of the self- and of the cross-attention."""
    p: dict[str, Any] = {}
    for name, num_heads in zip(("self", "cross"), heads, strict=True):
        p[name] = {W: 0.5 * draw(D, D) for W in ("W_q", "W_k", "W_v", "W_o")}
        p[name]["num_heads"] = num_heads
    p["ffn"] = {"W1": draw(D, d_ff), "b1": draw(d_ff), "W2": draw(d_ff, D), "b2": draw(D)}
    for name in ("norm1", "norm2", "norm3"):
        p[name] = (draw(D).then(abs) + 0.5, draw(D))
    return p


small = parameters(4, (2, 2), 6, tenths)
wide = parameters(12, (3, 2), 20, numbers)
reading = parameters(4, (1, 1), 5, tenths)
still = small | {"self": small["self"] | {"W_o": np.zeros((4, 4))}}  # self-attention adds nothing
nearly_flat = tenths(1, 3, 4).then(lambda x: 1 + x / 1000)


@decoder_layer.experiment("who reads whom")
def who_notices(fn: Callable) -> dict | Untested:
    y, memory, p = drawn((tenths(1, 4, 4), tenths(1, 3, 4), reading), "who reads whom")
    out = fn(y, memory, p)
    if not isinstance(out, np.ndarray):  # the next probe tells
        return Untested()
    if out.shape != y.shape:
        return {"the result has the shape of y, one row per written word": False}
    later, source = y.copy(), memory.copy()
    later[:, 2] += [1, 0, 0, 0]
    source[:, 1] += [1, 0, 0, 0]
    noticed = [fn(later, memory, p) - out, fn(y, source, p) - out]
    by_word, by_source = (abs(change[0]).max(axis=-1) > 1e-9 for change in noticed)
    return {
        "the result has the shape of y, one row per written word": True,
        "the first two words do not notice a change of the third": not by_word[:2].any(),
        "the third and the fourth word notice a change of the third": bool(by_word[2:].all()),
        "every word notices a change in memory": bool(by_source.all()),
    }


decoder_layer.probe("two words that read three", tenths(1, 2, 4), tenths(1, 3, 4), small)
decoder_layer.probe("a batch of two", numbers(2, 4, 12), numbers(2, 7, 12), wide)
decoder_layer.probe("as many words written as read", numbers(2, 5, 12), numbers(2, 5, 12), wide)
decoder_layer.probe("as many sentences as words", numbers(3, 3, 12), numbers(3, 4, 12), wide)
decoder_layer.probe("as many sentences as heads", tenths(2, 3, 4), tenths(2, 3, 4), small)
decoder_layer.probe("a single word", numbers(2, 1, 12), numbers(2, 3, 12), wide)
decoder_layer.probe("more words than the source has", tenths(1, 6, 4), tenths(1, 2, 4), small)
decoder_layer.probe("large inputs", 30 * tenths(2, 3, 4), 900 * tenths(2, 5, 4), small)
decoder_layer.probe("nearly equal features", nearly_flat, tenths(1, 2, 4), still)


def self_read(y: np.ndarray, memory: np.ndarray, p: dict) -> np.ndarray:
    """Masked self-attention."""
    return multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"])


def cross_read(y: np.ndarray, memory: np.ndarray, p: dict) -> np.ndarray:
    """Cross-attention."""
    return multi_head_attention(y, memory=memory, **p["cross"])


def transform(y: np.ndarray, memory: np.ndarray, p: dict) -> np.ndarray:
    """Feed-forward."""
    return feed_forward(y, **p["ffn"])


def layer_of(y, memory, p, steps=(self_read, cross_read, transform), norms=(1, 2, 3)):
    """A decoder layer whose steps or norms may be replaced."""
    for step, i in zip(steps, norms, strict=True):
        y = add_and_norm(y, step(y, memory, p), *p[f"norm{i}"])
    return y


@decoder_layer.mistake
def same_weights_for_both(y, memory, p):
    """Both attentions use the same weights, those of the self-attention. Reading the source is
    another task than reading what was written, so the cross-attention has learned its own:
    p["cross"]."""

    def shared(y, memory, p):
        return multi_head_attention(y, memory=memory, **p["self"])

    return layer_of(y, memory, p, (self_read, shared, transform))


@decoder_layer.mistake
def without_mask(y, memory, p):
    """In the self-attention each word also sees the later ones, the future that it must predict:
    the causal mask is missing. A word may read itself and the words before it."""

    def unmasked(y, memory, p):
        return multi_head_attention(y, **p["self"])

    return layer_of(y, memory, p, (unmasked, cross_read, transform))


@decoder_layer.mistake
def cross_reads_the_decoder(y, memory, p):
    """The second attention never looks at memory: it takes keys and values from the decoder, which
    is self-attention once more. In cross-attention they come from the encoder's memory."""

    def again(y, memory, p):
        return multi_head_attention(y, **p["cross"])

    return layer_of(y, memory, p, (self_read, again, transform))


@decoder_layer.mistake
def without_second_residual(y, memory, p):
    """The residual connection around the cross-attention is missing: what it read replaces the
    words. Add what entered it, the result of the first Add & Norm, before norm2."""
    y = layer_of(y, memory, p, (self_read,), (1,))
    y = layer_norm(cross_read(y, memory, p), *p["norm2"])
    return layer_of(y, memory, p, (transform,), (3,))


@decoder_layer.mistake
def pre_norm_order(y, memory, p):
    """It normalises before each step, which is pre-norm. The paper's layer is post-norm: add the
    step's result to its input first, then normalise the sum."""
    for step, i in ((self_read, 1), (cross_read, 2), (transform, 3)):
        y = y + step(layer_norm(y, *p[f"norm{i}"]), memory, p)
    return y


@decoder_layer.mistake
def queries_from_the_input(y, memory, p):
    """The cross-attention asks with the layer's input, so its queries know nothing of what the
    self-attention read. Queries come from the result of the first Add & Norm."""
    a = add_and_norm(y, self_read(y, memory, p), *p["norm1"])
    c = add_and_norm(a, cross_read(y, memory, p), *p["norm2"])
    return add_and_norm(c, transform(c, memory, p), *p["norm3"])


@decoder_layer.mistake
def triangle_on_cross_attention_too(y, memory, p):
    """A causal mask hides part of the source from the cross-attention. The source is complete
    before the first word is written: no causal mask there, only in the self-attention."""

    def masked(y, memory, p):
        mask = np.tril(np.ones((y.shape[1], memory.shape[1]), dtype=bool))
        return multi_head_attention(y, mask=mask, memory=memory, **p["cross"])

    return layer_of(y, memory, p, (self_read, masked, transform))


@decoder_layer.mistake
def cross_attention_first(y, memory, p):
    """Cross-attention comes before self-attention: the order is swapped. First y reads itself,
    masked, with norm1; what it found asks memory, with norm2."""
    return layer_of(y, memory, p, (cross_read, self_read, transform), (2, 1, 3))


@decoder_layer.mistake
def cross_attention_first_with_its_norms(y, memory, p):
    """Cross-attention comes before self-attention: the order of the two is swapped, while the norms
    stay. First y reads itself, masked; what it found then asks memory."""
    return layer_of(y, memory, p, (cross_read, self_read, transform))


@decoder_layer.mistake
def without_cross_attention(y, memory, p):
    """The cross-attention is missing, as in GPT: memory is never used, so the source is not read.
    Between self-attention and feed-forward y reads from memory, with its own Add & Norm."""
    return layer_of(y, memory, p, (self_read, transform), (1, 3))


@decoder_layer.mistake
def without_feed_forward(y, memory, p):
    """The feed-forward step and its Add & Norm, norm3, are missing: they come last, after the
    cross-attention, and work on what each word has read."""
    return layer_of(y, memory, p, (self_read, cross_read), (1, 2))


@decoder_layer.mistake
def all_residuals_from_the_input(y, memory, p):
    """All three residual connections add the layer's input. Each adds what entered its own step:
    the second the result of the first Add & Norm, the third that of the second."""
    a = add_and_norm(y, self_read(y, memory, p), *p["norm1"])
    c = add_and_norm(y, cross_read(a, memory, p), *p["norm2"])
    return add_and_norm(y, transform(c, memory, p), *p["norm3"])
