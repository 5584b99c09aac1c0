"""Notebook 12: the decoder layer, plain, as a module, for batches; writing, cache, sampler."""

import numpy as np

from helpers import blocks, decoding
from workshop.exercises.exercise import Probe, drawn, exercise, numbers
from workshop.exercises.n08 import mask_of
from workshop.exercises.n11 import layer

P = layer(6, 2, 7, "self") | {"cross": layer(6, 3, 1)["attn"], "norm3": (numbers(6),) * 2}

plain_decoder_layer = exercise(
    """
    def plain_decoder_layer(y, memory, part):
        mask = causal_mask(len(y))
        y = part.norm1(y + part.self_attention(y, mask))
        y = part.norm2(y + part.cross_attention(y, memory))
        return part.norm3(y + part.feed_forward(y))
    """,
    hints="""Which three parts add something to y, in which order, and which of them takes a mask?
    Three times y = norm(y + what the part makes of y); the mask is causal_mask(len(y)).""",
    slips="""
    without-mask: (y, mask) → (y)
        The mask is missing: each written word also reads those after it, which it must predict.
    nothing-added: (y + part → (part
        What a part gives replaces y. Add it to y, three times, and then take the norm.
    without-norms: part.norm1 → ∅ ⊕ part.norm2 → ∅ ⊕ part.norm3 → ∅
        The norms are missing: one after each of the three additions.
    one-norm-for-all: norm2 → norm1 ⊕ norm3 → norm1
        norm1 serves all three additions. Each has a norm of its own: norm1, norm2, norm3.
    memory-first: 1(y + part.self_attention(y, mask)) → _ ⊕ \\
            2(y + part.cross_attention(y, memory)) → 1(y + part.self_attention(y, mask)) ⊕ \\
            norm_ → norm2(y + part.cross_attention(y, memory))
        The memory is read first. What is written comes before it, with norm1.
    roles-exchanged: (y, memory)) → (memory, y))
        In the cross-attention the memory asks. The written words ask: y comes first.
    memory-left-out: cross_attention(y, memory) → self_attention(y)
        The memory is never read: the second part is cross_attention(y, memory).
    last-part-missing: return part.norm3(y + part.feed_forward(y)) → return y
        feed_forward and norm3 are missing: they come last.
    every-part-reads-the-first-y: mask = → x, mask = y, ⊕ cross_attention(y → cross_attention(x ⊕ \\
            feed_forward(y → feed_forward(x
        All parts read the y that came in. Each reads what the part before it has left.
    sums-from-the-first-y: mask = → x, mask = y, ⊕ norm2(y → norm2(x ⊕ norm3(y → norm3(x
        All three add to the y that came in. Each adds to what the part before it has left.
    """,
    backends=("numpy",),
    story=True,
)  # fmt: skip


def parted(label, T, S):  # a sentence of T words that reads S, and parts with numbers inside
    def run(fn):
        from helpers.translator import parts_of

        y, memory, p = drawn((numbers(T, 6), numbers(S, 6), P), label)
        return fn(y, memory, parts_of(p))

    plain_decoder_layer.experiment(label)(run)


parted("two words that read three", 2, 3)
parted("five words that read four", 5, 4)
parted("as many words written as read", 4, 4)

ONE, ANOTHER = mask_of(2, 1, 4).then(lambda x: x | (np.arange(4) == 0)), mask_of(2, 1, 3)
DecoderLayer = exercise(
    """
    class DecoderLayer(nn.Module):
        def __init__(self, d_model, num_heads, d_ff):
            super().__init__()
            self.self_attention = MultiHeadAttention(d_model, d_model, num_heads)
            self.cross_attention = MultiHeadAttention(d_model, d_model, num_heads)
            self.feed_forward = FeedForward(d_model, d_ff)
            self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

        def forward(self, y, memory, mask=None, memory_mask=None):
            y = self.norm1(y + self.self_attention(y, mask, causal=True))
            y = self.norm2(y + self.cross_attention(y, memory_mask, memory))
            return self.norm3(y + self.feed_forward(y))
    """,
    hints="""Which of the two attentions gets causal=True, and which gets memory?
    Three times y = norm(y + what the part makes of y), each with a norm of its own.""",
    slips="""
    masks-ignored: (y, mask → (y, None ⊕ (y, memory_mask → (y, None
        The two masks have no effect: hand mask to the first attention, memory_mask to the second.
    without-mask: , causal=True → ∅
        The causal mask is missing: each word also sees the later ones, which it must predict.
    no-residuals: (y + self → (self
        The three residuals are missing: add to what each part gives what it has read.
    second-residual-missing: norm2(y + → norm2(
        The residual around the cross-attention is missing: add its own input, what norm1 gave.
    roles-exchanged: (y, memory_mask, memory) → (memory, memory_mask, y)
        In the cross-attention memory asks and the words answer. The words ask: they come first.
    sums-from-the-input: norm1(y → norm1((x := y) ⊕ norm2(y → norm2(x ⊕ norm3(y → norm3(x
        All three sums add the layer's input. Each must add what its own part has read.
    norm1-for-all: norm2(y → norm1(y ⊕ norm3(y → norm1(y
        norm1 serves all three parts, norm2 and norm3 none. Each part has a norm of its own.
    pre-norm: self.norm1(y → (y ⊕ self.norm2(y → (y ⊕ self.norm3(y → (y ⊕ \\
            (y, mask, → (self.norm1(y), mask, ⊕ \\
            (y, memory_mask, → (self.norm2(y), memory_mask, ⊕ d(y → d(self.norm3(y)
        It normalises before each part, which is pre-norm. Here each sum is normalised.
    """,
    backends=("torch",),
)
DecoderLayer.module("two words, read three", (4, 2, 7), numbers(1, 2, 4), numbers(1, 3, 4))
DecoderLayer.module("a batch of five", (6, 3, 4), numbers(5, 4, 6), numbers(5, 7, 6))
DecoderLayer.module("masks for both", (4, 2, 7), numbers(2, 4, 4), numbers(2, 3, 4), ONE, ANOTHER)

decoder_layer = exercise(
    blocks.decoder_layer,
    hints="""Which of the two attentions needs a mask, and which needs memory?
    Three times add_and_norm: of what came before, what the sublayer makes of it, and a norm.""",
    probes=[("two words that read three", numbers(1, 2, 6), numbers(1, 3, 6), P),
            ("a batch of five", numbers(5, 4, 6), numbers(5, 7, 6), P),
            ("as many words written as read", numbers(2, 5, 6), numbers(2, 5, 6), P)],
    slips="""
    without-mask: mask=mask, → ∅
        The causal mask is missing: each word also sees the later ones, which it must predict.
    mask-of-the-batch: y.shape[-2] → len(y)
        The mask is as large as the batch. It needs a row for each word: the length of axis 1.
    same-weights-for-both: p["cross"] → p["self"]
        Both attentions use the weights of the self-attention. The second has its own, p["cross"].
    cross-reads-the-decoder: memory=memory, → ∅
        The second attention never looks at memory: its keys and values come from the decoder.
    mask-turned: (y.shape[-2]) → (y.shape[-2]).T
        The mask is turned over: words read the future. Rows are queries: keep the lower triangle.
    memory-first: y, mask=mask, **p["self"] → y, memory=memory, **p["_"] ⊕ y, memory=memory, \\
            **p["cross"] → y, mask=mask, **p["self"] ⊕ p["_"] → p["cross"]
        Memory is read first. The words read each other before that, then memory.
    triangle-on-cross-attention-too: =memory → =memory, mask=np.tri(y.shape[1], memory.shape[1]) > 0
        A causal mask hides part of memory. The source is complete before the first word.
    without-second-residual: cross"]) → cross"]) - y
        The residual around the cross-attention is missing: what it read replaces the words.
    no-residuals: self"]) → self"]) - y ⊕ cross"]) → cross"]) - y ⊕ ffn"]) → ffn"]) - y
        The three residuals are missing: add to what each sublayer gives what it has read.
    second-residual-from-the-input: mask = → x, mask = y, ⊕ cross"]) → cross"]) + x - y
        The residual around the cross-attention adds the layer's input. Add what entered it.
    last-norm-missing: return add_and_norm(y, → return y + ( ⊕ , *p["norm3"]) → )
        The last sum, after the feed-forward network, is not normalised: norm3 is missing.
    norm1-for-all: norm2 → norm1 ⊕ norm3 → norm1
        norm1 serves all three sublayers. Each has a gain and bias of its own: norm2, then norm3.
    norm2-and-norm3-exchanged: norm2 → norm_ ⊕ norm3 → norm2 ⊕ norm_ → norm3
        norm2 and norm3 are exchanged. norm2 comes after the cross-attention, norm3 at the end.
    without-cross-attention: norm1"]) → norm1"]); a = y ⊕ (y, feed_forward(y → (a, feed_forward(a
        The cross-attention is missing, as in GPT: memory is never used.
    without-feed-forward: return → return y;
        The feed-forward network and its Add & Norm are missing: they come last.
    """,
)  # fmt: skip

greedy_decode = exercise(
    """
    def greedy_decode(step, start_id, end_id, max_len):
        ids = [start_id]
        for _ in range(max_len):
            ids.append(int(np.argmax(step(ids)[-1])))
            if ids[-1] == end_id:
                break
        return ids[1:]
    """,
    course=decoding.greedy_decode,
    hints="""How often may the loop run at most, and what must step see each time?
    max_len times append the argmax of the last row of step(ids); break once it is end_id.""",
    slips="""
    counts-the-start: range(max_len) → range(max_len - 1)
        It stops one word too early: max_len counts the new words, without the start token.
    one-word-too-many: range(max_len) → range(max_len + 1)
        It may write one word too many: max_len counts all that are appended.
    ignores-max-len: range(max_len) → range(60)
        max_len is ignored. A model may never say that it is done: stop after max_len words too.
    ignores-the-end: ids[-1] == end_id → False
        It goes on after end_id, by which the decoder says that the answer is complete.
    leaves-out-the-end: break → return ids[1:-1]
        The end token is missing in the result: append each word first, then ask if it is end_id.
    every-start-removed: return ids[1:] → return [i for i in ids if i != start_id]
        Each start_id is removed, also one that the model wrote. Leave out the first alone.
    feeds-the-newest-word: step(ids) → step(ids[-1:])
        step sees only the newest word, and it remembers none: hand it the whole sequence so far.
    logit-for-id: np.argmax(step(ids)[-1]) → max(step(ids)[-1])
        The largest logit itself is appended. Asked for is its place, the word's id: argmax.
    start-forgotten: step(ids) → step(ids[1:] or ids)
        After the first word step no longer sees start_id. Hand it all ids, the start too.
    input-never-grows: step(ids) → step(ids[:1])
        step sees only the start token, again and again. Append each word, and hand over all.
    loudest-of-all-rows: np.argmax(step(ids)[-1]) → np.argmax(step(ids).max(axis=0))
        The largest logit of all rows is taken. Only the last row tells what comes next.
    reads-the-first-row: step(ids)[-1] → step(ids)[0]
        It reads the first row, which predicts the word after the start. Read the last.
    """,
)


def step(words, ids):  # gives the words in turn to who hands it all so far; other rows are louder
    seen, V = np.ravel(ids).tolist(), max(words) + 2
    logits = np.arange(V) / 10 + 9 * np.eye(V)[[(i + row + 3) % V for row, i in enumerate(seen)]]
    right = seen == words[: len(seen)] or len(seen) >= len(words)
    wanted = words[min(len(seen), len(words) - 1)] if right else (sum(seen) + 1) % V
    logits[-1] = -5 - 50 * (np.arange(V) - wanted) ** 2  # so sure that a draw gives it
    return logits


for label, *words, end, most in (
    ("three words, then the end", 1, 3, 2, 5, 0, 1, 5, 8), ("the end at once", 0, 7, 3, 1, 7, 5),
    ("a limit before the end", 7, 3, 0, 4, 8, 8, 2, 10, 10, 4), ("one word", 2, 4, 6, 9, 9, 1),
    ("an answer of ten words", 3, 5, 1, 8, 5, 5, 0, 7, 2, 3, 9, 4, 9, 12),
    ("the end as last word allowed", 3, 5, 2, 8, 1, 8, 3), ("an end_id of 0", 5, 4, 6, 0, 2, 0, 6),
):  # fmt: skip
    args = (lambda ids, words=words: step(words, ids)), words[0], end, most
    greedy_decode.probes.append(Probe(label, lambda fn, x=args: list(fn(*x)), args))
CALL = (lambda ids: np.array([[99 * (len(ids) > 8), 50, 50.3, 50.1, 50.2]] * len(ids)), 1, 0, 9)
greedy_decode.probes.append(Probe("words that are almost as likely", lambda fn: {
    "two calls write the same words": list(fn(*CALL)) == list(fn(*CALL))}))  # fmt: skip

HEAD = [numbers(4, 3)] * 3
attend_cached = exercise(
    """
    def attend_cached(x, W_q, W_k, W_v, kept=None):
        K, V = x @ W_k, x @ W_v
        if kept is not None:
            K, V = np.concatenate([kept[0], K]), np.concatenate([kept[1], V])
        scores = x @ W_q @ K.T / np.sqrt(K.shape[-1])
        mask = causal_mask(len(K))[-len(x):]
        return masked_softmax(scores, mask) @ V, (K, V)
    """,
    hints="""Which of query, key and value does a word need only once, and which are read later?
    New keys and values go under the kept ones; the mask is the last n rows of causal_mask.""",
    probes=[
        ("one word", numbers(1, 4), *HEAD), ("three words", numbers(3, 4), *HEAD),
        ("one new word after two", numbers(1, 4), *HEAD, (numbers(2, 3), numbers(2, 3))),
        ("two new words after three", numbers(2, 4), *HEAD, (numbers(3, 3), numbers(3, 3))),
        ("narrow values", numbers(2, 4), *HEAD[:2], numbers(4, 2), (numbers(3, 3), numbers(3, 2))),
    ],
    slips="""
    new-words-read-ahead: causal_mask(len(K))[-len(x):] → np.ones((len(x), len(K))) > 0
        With several new words, each reads the later ones too. Each may read those up to itself.
    mask-begins-at-the-first-word: [-len(x):] → [:len(x)]
        The mask's rows are those of the first words. The new words come last: take the last n rows.
    only-the-new-kept: , (K, V) → , (x @ W_k, x @ W_v)
        Only the new keys and values come back, so the next call has forgotten all before.
    newest-first: kept[0], K → K, kept[0] ⊕ kept[1], V → V, kept[1]
        The new keys and values stand above the kept ones. They belong under them, as in the text.
    not-scaled: / np.sqrt(K.shape[-1]) → ∅
        The scores are not divided by √d_k. A head with a cache scales as any other.
    scaled-by-the-number-of-keys: K.shape[-1] → len(K)
        The scores are divided by the root of the number of keys. Take a key's width: √d_k.
    scaled-by-d-model: K.shape[-1] → x.shape[-1]
        The scores are divided by the root of the width of x. Take a key's width: √d_k.
    later-words-read-ahead: causal_mask(len(K))[-len(x):] → \\
            causal_mask(len(x)) if kept is None else np.ones((len(x), len(K))) > 0
        Once something is kept, new words read later ones too. Each may read those up to itself.
    context-alone: , (K, V) → ∅
        Only the context comes back. The next call needs the keys and values too: (K, V).
    """,
)  # fmt: skip

MENU = np.log([0.15, 0.5, 0.03, 0.25, 0.07])  # logits whose softmax is these numbers
next_token_probs = exercise(
    """
    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        p = softmax(logits / temperature)
        order = np.argsort(-p)
        if top_k is not None:
            p[order[top_k:]] = 0
            p = p / p.sum()
        if top_p is not None:
            before = np.cumsum(p[order]) - p[order]
            p[order[before >= top_p]] = 0
        return p / p.sum()
    """,
    course=decoding.next_token_probs,
    hints="""Which tokens does each knob cut, and what must the rest sum to, after each cut?
    order = np.argsort(-p); cut order[top_k:]; then cut where the likelier ones reach top_p.""",
    probes=[
        ("logits as they are", MENU), ("temperature 0.5", MENU, 0.5), ("top-k 2", MENU, 1.0, 2),
        ("top-p 0.8", MENU, 1.0, None, 0.8), ("hot, then top-p 0.6", MENU, 3.0, None, 0.6),
        ("a top-p the first token reaches", MENU, 1.0, None, 0.3), ("top-k 1", MENU + 2, 1.0, 1),
        ("a top-p below two single tokens", MENU, 1.0, None, 0.2), ("top-k 5", MENU, 1.0, 5),
        ("top-k 3, top-p 0.8", MENU, 1.0, 3, 0.8), ("top-k 5, top-p 0.6", MENU, 1.0, 5, 0.6),
        ("top-k 2, top-p 0.85", MENU, 1.0, 2, 0.85),
        ("logits far apart", [-1e3, 1e3, 0.0, 999.0]), ("all three", 2 * numbers(30), 1.5, 9, 0.85),
    ],
    slips="""
    temperature-without-effect: / temperature → ∅
        The temperature has no effect. It must divide the logits, before the softmax.
    temperature-multiplies: / temperature → * temperature
        The temperature multiplies the logits. It must divide them: above 1 it evens out.
    softmax-twice: softmax(logits → softmax(softmax(logits)
        softmax is applied twice, which evens everything out. Apply it once, to the logits.
    one-token-too-many: [top_k:] → [top_k + 1:]
        Top-k keeps one token too many, k + 1 of them.
    cut-logits-to-zero: k:]] = 0⏎        p = p / p.sum() → k:]] = 0⏎        \\
            p = softmax(logits / temperature * (p > 0))⏎        order = np.argsort(-p)
        Top-k sets the cut logits to 0, but exp(0) is 1. Only minus infinity, -inf, gives 0.
    top-p-before-top-k: k:]] = 0⏎        p = p / p.sum() → k:]] = 0
        Top-p counts the probabilities of before top-k. Bring the k likeliest to a sum of 1 first.
    only-one-of-both: top_p is not None → top_p is not None and top_k is None
        With top_k, top_p has no effect. Both may be given: cut by top-k first, then by top-p.
    crossing-token-left-out-but-one: before >= top_p → (before + p[order] > top_p) & (before > 0)
        Top-p leaves out the token that crosses top_p. It belongs to those that reach it together.
    top-p-as-threshold-but-the-first: before >= top_p → (p[order] < top_p) & (before > 0)
        Top-p is a threshold for each token alone. Add up the likeliest until they reach it.
    top-p-as-threshold: before >= top_p → p[order] < top_p
        Top-p is a threshold for each token alone. Add up the likeliest until they reach it.
    never-rescales: ⏎        p = p / p.sum() → ∅ ⊕ return p / p.sum() → return p
        What is left after a cut no longer sums to 1: divide it by its sum.
    all-sorted: return p → return -np.sort(-p)
        The result is sorted, so a place is no longer a token's id. Put each back in its place.
    """,
)  # fmt: skip
