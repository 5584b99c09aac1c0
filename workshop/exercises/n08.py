"""Notebook 08: cut into heads, attend in each, join them; shared heads, a head made by hand."""

import inspect

import numpy as np

from helpers import attention as course
from workshop.exercises.exercise import Draw, Untested, drawn, exercise, numbers

CODED = np.arange(1.0, 49).reshape(2, 3, 8)
MAPS = [0.6 * numbers(12, 12)] * 4  # W_q, W_k, W_v, W_o

split_heads = exercise(
    course.split_heads,
    story=True,
    hints="""Which features belong to head 0 and which to head 1, of 8 features and 2 heads?
    Reshape to (B, T, num_heads, D // num_heads), then let tokens and heads change places.""",
    probes=[("three tokens, two heads", CODED[:1], 2), ("a batch of two sentences", CODED, 2),
            ("as many tokens as heads", numbers(2, 3, 6), 3), ("one head", CODED, 1),
            ("as many sentences as heads", numbers(3, 4, 15), 3),
            ("heads of one feature", numbers(2, 3, 5), 5), ("all four", numbers(4, 4, 16), 4)],
    slips="""
    interleaved: num_heads, D // num_heads → -1, num_heads ⊕ (0, 2, 1, 3) → (0, 3, 1, 2)
        Each head gets every H-th feature (interleaved). It owns a contiguous slice of the features.
    heads-before-the-batch: (0, 2, 1, 3) → (2, 0, 1, 3)
        The heads come first, in front of the batch. The batch stays axis 0, the heads are axis 1.
    width-for-number: (B, T, num_heads, D // num_heads) → (B, T, D // num_heads, num_heads)
        num_heads is taken for the width of a head. It is their number; each is D / H wide.
    tokens-last: (0, 2, 1, 3) → (0, 2, 3, 1)
        The last two axes are swapped, tokens and features: it must be (B, H, T, D / H).
    reshape-only: (B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3) → (B, num_heads, T, -1)
        A reshape alone mixes tokens and heads. Cut the features first, then exchange axes 1 and 2.
    not-transposed: .transpose(0, 2, 1, 3) → ∅
        The heads still stand behind the tokens, (B, T, H, D / H). Let the two axes change places.
    all-features-in-every-head: num_heads, D // num_heads → 1, D ⊕ ).t → ).repeat(num_heads, 2).t
        Every head holds all D features. Each must get a slice of its own, D / num_heads wide.
    a-list: x.reshape( → list(x.reshape( ⊕ (0, 2, 1, 3) → (2, 0, 1, 3))
        It returns a list, an array for each head. np.stack makes one array of them, with axis=1.
    slices-overlap: x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3) → \\
            np.stack([x[..., h : h + D // num_heads] for h in range(num_heads)], axis=1)
        The slice of head h begins at feature h, so slices overlap. It begins at h * (D / H).
    """,
)  # fmt: skip


def mask_of(*shape: int) -> Draw:
    """A mask with True and False in every row."""
    return numbers(*shape).then(lambda x: x >= np.median(x, axis=-1, keepdims=True))


ATTENDING = """
    scaled-by-d-model: K.shape[-1] → (K.shape[-1] * K.shape[1])
        The scores are divided by the root of the full width. Divide by that of one head, √d_k.
    not-scaled: K.shape[-1] → 1
        The scores are not scaled. Divide them by √d_k, the root of the width of a head.
    scaled-by-the-heads: K.shape[-1] → num_heads
        The scores are divided by the root of the number of heads. Divide by that of one's width.
    mask-ignored: mask = mask[:, None] → mask = mask | True; mask = mask[:, None]
        The mask has no effect. Set the scores to −∞ where it is False, before the softmax.
    mask-inverted: mask = mask[:, None] → mask = ~mask; mask = mask[:, None]
        The mask is taken the other way round. True means: may read.
    mask-without-axis-for-heads: mask[:, None] if mask.ndim == 3 else mask → mask
        A mask for each sentence, (B, T, Tk), lacks an axis for the heads: mask[:, None] adds it.
    axis-for-heads-in-every-mask: mask[:, None] if mask.ndim == 3 else mask → mask[:, None]
        A mask (T, Tk) fits all sentences and heads as it is; only (B, T, Tk) needs mask[:, None].
"""

merge_heads = exercise(
    course.merge_heads,
    story=True,
    hints="""x[:, h] is what head h holds, (B, T, d). In which direction do the heads join?
    Let heads and tokens change places, then reshape heads and features into one axis, H * d.""",
    probes=[("two sentences", course.split_heads(CODED, 2)), ("one head", CODED[:, None]),
            ("four heads", numbers(2, 4, 5, 3)), ("as many tokens as heads", numbers(2, 3, 3, 2)),
            ("as many sentences as heads", numbers(3, 3, 4, 5)), ("all four", numbers(4, 4, 4, 4))],
    slips="""
    no-transpose-back: .transpose(0, 2, 1, 3) → ∅
        A reshape alone mixes tokens and heads. Let the two change places first, (B, T, H, d).
    features-interleaved: (0, 2, 1, 3) → (0, 2, 3, 1)
        The features of the heads alternate (interleaved). Each head fills a contiguous block.
    heads-not-flattened: .reshape(B, T, H * d_head) → ∅
        The heads still have an axis of their own. Join the last two axes, to one of width H * d.
    mean-of-heads: x.transpose(0, 2, 1, 3).reshape(B, T, H * d_head) → x.mean(axis=1)
        The heads are averaged. Lay them side by side along the features; each keeps its own.
    sum-of-heads: x.transpose(0, 2, 1, 3).reshape(B, T, H * d_head) → x.sum(axis=1)
        The heads are added up. Lay them side by side along the features; each keeps its own.
    only-the-first-head: x.transpose(0, 2, 1, 3).reshape(B, T, H * d_head) → x[:, 0]
        Only the first head comes back. All of them belong in the result, side by side.
    tokens-joined: transpose(0, 2, 1, 3).reshape(B, T, H * d_head) → reshape(B, H, -1)
        Tokens and features are joined. Join heads and features: first exchange axes 1 and 2.
    first-sentence-alone: .transpose(0, 2, 1, 3).reshape(B, T → [0].transpose(1, 0, 2).reshape(T
        Only the first sentence comes back. Axis 0 is the batch: keep all of them.
    sentences-joined: (0, 2, 1, 3).reshape(B, T, H → (1, 2, 0, 3).reshape(H, T, B
        The sentences stand side by side, and not the heads. Axis 0 is the batch; the heads are 1.
    """,
)  # fmt: skip

MultiHeadAttention = exercise(
    """
    class MultiHeadAttention(nn.Module):
        def __init__(self, d_in, d_out, num_heads, dropout=0.0):
            super().__init__()
            self.num_heads = num_heads
            self.W_q, self.W_k, self.W_v = (nn.Linear(d_in, d_out) for _ in range(3))
            self.W_o = nn.Linear(d_out, d_out)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x, mask=None):
            Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)
            Q, K, V = (z.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for z in (Q, K, V))
            scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
            if mask is not None:
                mask = mask[:, None] if mask.ndim == 3 else mask
                scores = scores.masked_fill(~mask, -torch.inf)
            weights = self.dropout(torch.softmax(scores, dim=-1))
            return self.W_o((weights @ V).transpose(1, 2).flatten(2))
    """,
    backends=("torch",),
    hints="""Which lines of your multi_head_attention make something once, and belong into __init__?
    Four nn.Linear, nn.Dropout; unflatten, transpose(1, 2) cut, transpose, flatten(2) join.""",
    slips=ATTENDING + """
    one-head: (self.num_heads, -1) → (1, -1)
        num_heads has no effect: this is one wide head. Cut queries, keys and values into heads.
    reshape-only: unflatten(-1, ( → view((len(x), ⊕ -1)).transpose(1, 2) for → x.shape[1], -1)) for
        A reshape alone mixes tokens and heads. Cut the features first, then exchange axes 1 and 2.
    merged-by-reshape: .transpose(1, 2).flatten(2)) → .reshape(*x.shape[:2], -1))
        The heads are merged by a reshape alone, which mixes tokens and heads: transpose back first.
    interleaved: (self.num_heads, -1)).transpose(1, 2) → (-1, self.num_heads)).permute(0, 3, 1, 2)
        Each head gets every H-th feature (interleaved). It owns a contiguous slice of the features.
    masked-after-the-softmax: scores.masked_fill(~mask, -torch.inf) → scores ⊕ \\
            dim=-1)) → dim=-1)) * (1 if mask is None else mask)
        The mask comes after the softmax, so a row no longer sums to 1. Mask the scores, before it.
    softmax-over-the-queries: dim=-1)) → dim=-2))
        The softmax runs over the queries. Each shares out its weight over the keys, the last axis.
    softmax-over-the-queries-of-low: dim=-1)) → dim=-2)) ⊕ -torch.inf → -1e30
        The softmax runs over the queries. Each shares out its weight over the keys, the last axis.
    dropout-at-the-end: self.dropout(torch → (torch ⊕ W_o((w → dropout(self.W_o((w ⊕ (2)) → (2)))
        Dropout acts on the result. It belongs to the weights, right after the softmax.
    masked-with-zero: -torch.inf → 0
        Hidden scores are set to 0, and exp(0) = 1 still gets weight. Set them to −∞.
    no-bias: d_out) for → d_out, bias=False) for
        W_q, W_k and W_v have no bias. The task asks for one in all four maps.
    always-dropping: self.dropout(torch → F.dropout(torch ⊕ dim=-1)) → dim=-1), self.dropout.p)
        Weights are dropped in eval mode too. nn.Dropout knows when the module is trained.
    """,
)  # fmt: skip
MultiHeadAttention.module("its parameters, and one sentence", (3, 4, 2), numbers(1, 5, 3))
MultiHeadAttention.module("a mask", (3, 4, 2), numbers(2, 5, 3), mask_of(5, 5))
MultiHeadAttention.module("a mask for each sentence", (4, 6, 3), numbers(2, 4, 4), mask_of(2, 4, 4))
MultiHeadAttention.module("three of all", (4, 6, 3), numbers(3, 3, 4), mask_of(3, 3, 3))
MultiHeadAttention.module("dropout", (3, 4, 2), numbers(2, 5, 3), rate=0.3)

multi_head_attention = exercise(
    """
    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, source @ W_k, source @ W_v))
        scores = scale_scores(attention_scores(Q, K), K.shape[-1])
        if mask is not None:
            mask = mask[:, None] if mask.ndim == 3 else mask
        weights = safe_masked_softmax(scores, np.ones_like(scores, bool) if mask is None else mask)
        return merge_heads(weights @ V) @ W_o
    """,
    course=course.multi_head_attention,
    hints="""How wide is one head, and which axis does a mask for each sentence then lack?
    Split x @ W_q and so on; mask[:, None] for the heads; merge_heads(weights @ V), then @ W_o.""",
    probes=[("three tokens, two heads", numbers(1, 3, 4), *[numbers(4, 4)] * 4, 2),
            ("a batch of two sentences", numbers(2, 5, 12), *MAPS, 4),
            ("a mask, tokens by tokens", numbers(2, 5, 12), *MAPS, 4, mask_of(5, 5)),
            ("a mask for each sentence", numbers(2, 5, 12), *MAPS, 4, mask_of(2, 5, 5)),
            ("three of all", numbers(3, 3, 12), *MAPS, 3, mask_of(3, 3, 3)),
            ("huge scores", 40 * numbers(2, 5, 12), *MAPS, 4, mask_of(5, 5))],
    slips=ATTENDING + """
    no-output-projection: ) @ W_o → )
        The output projection is missing: multiply the joined heads by W_o, as the last step.
    output-transposed: ) @ W_o → ) @ W_o.T
        W_o is used transposed. It multiplies from the right as it is: the joined heads @ W_o.
    residual: return merge → return x + merge
        x is added to the result. That residual lies around this function, in Add & Norm (10).
    no-heads: (z, num_heads) → (z, 1)
        num_heads has no effect: this is one wide head. Cut queries, keys and values into heads.
    width-for-number: (z, num_heads) → (z, z.shape[-1] // num_heads)
        num_heads is taken for the width of a head. It is their number; each is D / H wide.
    masked-after-the-softmax: safe_masked_softmax(scores, → softmax(scores) * (
        The mask comes after the softmax, so a row no longer sums to 1. Mask the scores, before it.
    mask-multiplied: safe_masked_softmax(scores, → softmax(scores * ( ⊕ else mask) → else mask))
        The mask multiplies scores: a hidden one becomes 0, and exp(0) is 1. Only −∞ hides it.
    softmax-over-the-queries: safe_masked_softmax(scores, → softmax(np.where( ⊕ else mask) → \\
            else mask, scores, -1e9), axis=-2)
        The softmax runs over the queries. Each shares out its weight over the keys, the last axis.
    values-from-x: source @ W_v → x @ W_v
        Values come from x even where there is a memory. Then keys and values both come from it.
    memory-ignored: x if memory is None else memory → x
        memory is not used. Where there is one, keys and values both come from it.
    interleaved: split_heads(z, num_heads) → \\
            z.reshape(*z.shape[:2], -1, num_heads).transpose(0, 3, 1, 2)
        Each head gets every H-th feature. It owns a slice of features that stand side by side.
    cut-by-reshape: split_heads(z, num_heads) → z.reshape(len(z), num_heads, z.shape[1], -1)
        Heads are cut by a reshape alone, which mixes tokens and heads: use split_heads.
    merged-by-reshape: merge_heads(weights @ V) → (weights @ V).reshape(x.shape)
        Heads are merged by a reshape alone, which mixes tokens and heads: use merge_heads.
    """,
)  # fmt: skip


@multi_head_attention.experiment("a memory as long as the sentence")
def read_from_memory(fn, length=3):
    *args, memory = drawn((numbers(2, 3, 12), *MAPS, 4, None, numbers(2, length, 12)), "memory")
    takes = any(s in str(inspect.signature(fn.function)) for s in ("memory", "**"))
    return fn(*args, memory=memory) if takes else Untested()  # self-attention alone is right too


multi_head_attention.experiment("a longer memory")(lambda fn: read_from_memory(fn, length=5))

previous_word_head = exercise(
    """
    def previous_word_head(num_words, num_places):
        W_q, W_k = np.zeros((2, num_words + num_places, num_places))
        W_q[num_words:] = 100 * np.eye(num_places, k=-1)
        W_k[num_words:] = np.eye(num_places)
        return W_q, W_k
    """,
    whole_numbers=True,
    hints="""Which rows of W_q and W_k meet the places, and what must query i share with key i - 1?
    Zeros for the words. Below them np.eye in W_k, and in W_q 100 * np.eye(num_places, k=-1).""",
    slips="""
    next-word: k=-1 → k=1
        No word stands out as it must. Does query i fit key i + 1, or are W_q and W_k exchanged?
    itself: , k=-1 → ∅
        Each word reads itself. The query of place i must fit the key of place i - 1.
    all-before: np.eye(num_places, k=-1) → np.tri(num_places, k=-1)
        Each word reads all before it alike. The query of place i must fit the key of i - 1 alone.
    too-small: 100 * → ∅
        Each word reads the one before it most, but with less than 0.9: make W_q or W_k larger.
    words-have-a-say: [num_words:] → [:num_words] ⊕ np.eye(num_places → np.eye(num_words, num_places
        Which word it is changes what is read. Leave the first num_words rows zero: places follow.
    """,
)


@previous_word_head.experiment("sentences of 2 to 20 words, some more than once")
def whom_they_read(fn):
    shapes, words_alike = "W_q and W_k are two arrays (num_words + num_places, d_k)", True
    found, least = {shapes: True}, []
    for words, places, ids in ((4, 4, [2, 0, 3, 2]), (9, 3, [8, 3]), (3, 23, [1, 2, 1, 0] * 5)):
        T, made = len(ids), fn(words, places)
        if made is None or [np.shape(W)[:1] for W in made] != [(words + places,)] * 2:
            return None if made is None else {shapes: False}
        Q, K = (W[[ids, [0] * T]] + W[words : words + T] for W in made)
        scores = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[-1])
        weights = course.masked_softmax(scores, course.causal_mask(T))[:, 1:]
        found["no weight is nan, as ∞ · 0 is"] = bool(np.isfinite(weights).all())
        read, other = weights.argmax(axis=-1)
        words_alike &= np.array_equal(read, other)
        found[f"the places that words 1 to {T - 1} of {T} read most"] = read
        last = np.flatnonzero(np.isclose(weights[0, -1], weights[0, -1].max()))
        found[f"what the last of {T} reads most"] = f"place {', '.join(map(str, last))}"
        least += [*weights.max(axis=-1).flat]
    if not words_alike:
        return {"whichever words stand there, the places that they read are the same": False}
    return found | {"each gives at least 0.9 of its weight there": min(least) >= 0.9}


induction_score = exercise(
    """
    def induction_score(weights, ids):
        found = []
        for i in range(len(ids)):
            before = np.flatnonzero(ids[:i] == ids[i])
            if len(before) > 0:
                found.append(weights[i, before[-1] + 1])
        return float(np.mean(found)) if found else 0.0
    """,
    hints="""In the ids 7 3 5 7, which token stood before, and which weight of its row counts?
    Find its last earlier place j; weights[i, j + 1] counts. Gather these, and take their mean.""",
    probes=[("one token twice", numbers(4, 4).then(course.softmax), [7, 3, 5, 7]),
            ("a head that finds it", [[1.0, 0, 0], [0, 1, 0], [0.1, 0.7, 0.2]], [7, 3, 7]),
            ("two tokens twice", numbers(5, 5).then(course.softmax), [0, 1, 2, 0, 1]),
            ("a token three times", numbers(5, 5).then(course.softmax), [5, 2, 5, 50256, 5]),
            ("no token twice", numbers(4, 4).then(course.softmax), [3, 0, 2, 1]),
            ("twice in a row", numbers(4, 4).then(course.softmax), [4, 1, 1, 2])],
    slips="""
    reads-the-same-token: before[-1] + 1 → before[-1]
        This is the weight on the earlier occurrence itself. The token right after it counts, j + 1.
    first-occurrence: before[-1] → before[0]
        Where a token stood before several times, the first is taken. Take the last.
    all-occurrences: append → extend ⊕ before[-1] + 1 → before + 1
        All earlier occurrences of a token count here. Only the last of them does.
    rows-and-columns-exchanged: weights[i, before[-1] + 1] → weights[before[-1] + 1, i]
        Rows and columns are exchanged. Row i belongs to the place that asks: weights[i, j + 1].
    place-zero-counts-as-none: == ids[i]) → == ids[i])⏎        before = before[before > 0]
        An earlier token at place 0 counts as none. 0 is a place, too: look at your loop, or `if`.
    share-of-the-strongest: append(weights[i, before[-1] + 1]) → \\
            append(weights[i].argmax() == before[-1] + 1)
        It counts how often the largest weight lies there. Asked for is the weight itself.
    every-place-counts: float(np.mean(found)) → sum(found) / len(ids)
        It divides by the number of all places. Only those whose token stood before count.
    sum-of-the-weights: np.mean → np.sum
        This is the sum of the weights that count. Take their mean: a perfect head gets 1.
    nan-where-no-token-stands-twice: np.mean(found)) if found else 0.0 → np.mean(found))
        Where no token stands twice, the mean of nothing is NaN. There it must be 0.0.
    """,
)  # fmt: skip

share_heads = exercise(
    """
    def share_heads(x, groups):
        return np.repeat(x, groups, axis=1)
    """,
    hints="""With heads A and B and groups = 2, is the new order A A B B or A B A B?
    np.repeat repeats each item in a row, np.tile the whole. The heads are axis 1.""",
    probes=[("two heads, each for two", CODED[None, ..., :2], 2), ("groups=1", CODED[None], 1),
            ("each of two for three", numbers(3, 2, 4, 5), 3),
            ("one head for all", numbers(2, 1, 3, 4), 4), ("each for six", numbers(2, 2, 3, 5), 6)],
    slips="""
    all-heads-in-turn: np.repeat(x, groups, axis=1) → np.tile(x, (1, groups, 1, 1))
        The heads stand in the order A B A B. Heads of queries in a row share one: A A B B.
    tokens-repeated: axis=1 → axis=2
        The tokens are repeated, axis 2. Repeat the heads, axis 1.
    first-sentence-alone: (x, groups → (x[:1], groups
        Only the first sentence comes back. Axis 0 is the batch: keep all of it.
    new-axis-left: np.repeat(x, groups, axis=1) → np.repeat(x[:, :, None], groups, axis=2)
        The copies have an axis of their own. Join it with that of the heads: (B, H * groups, T, d).
    """,
)  # fmt: skip
