"""Notebook 06: which keys may be read, weights that keep to it, the causal head as a module."""

import numpy as np

from helpers import attention as course
from workshop.exercises import n05
from workshop.exercises.exercise import exercise, numbers


def rows(text: str) -> np.ndarray:
    """A mask drawn in text, 1 where reading is allowed: rows("100 110")."""
    return np.array([[letter == "1" for letter in row] for row in text.split()])


ANY = [
    ("more keys than queries", 2 * numbers(2, 4), rows("0001 1011")),
    ("one causal mask for a batch", 2 * numbers(2, 4, 4), np.tri(4, dtype=bool)),
    ("sentences, heads, queries and keys", 2 * numbers(2, 3, 2, 4),
     rows("1000 1101 0011 0110").reshape(2, 1, 2, 4)),
    ("scores of ±1,000", [[1000.0, 999, -1000], [-1000, -1001, -999]], rows("101 110")),
    ("rows far apart", [[0.0, 1, 2], [900, 902, 901]], rows("110 101")),
]  # fmt: skip

# Slips with any mask, in softmax(np.where(mask, S, -np.inf)).
WITH_A_MASK = """
    zeroed-after-softmax: softmax(np.where(mask, S, -np.inf)) → np.where(mask, softmax(S), 0)
        Hidden weights become 0 after the softmax, so rows no longer sum to 1. Hide scores first.
    hidden-score-is-zero: -np.inf → 0
        Hidden scores become 0, but exp(0) is 1: they keep a share. Only exp(−∞) is 0.
    true-added: np.where(mask, S, -np.inf) → S + mask
        Hidden scores end up only 1 lower. That weakens them, but nothing is blocked: −∞ does that.
    inverted-mask: np.where(mask, → np.where(~mask,
        The mask is read the wrong way round: True means that the key may be read.
    written-into-the-scores: return → S[np.broadcast_to(~mask, S.shape)] = -np.inf⏎    return
        The −∞ is written into the S of the caller. Write it into a copy, or into a new array.
    softmax-over-the-queries: -np.inf) → -np.inf), axis=-2
        The softmax runs over the queries. Each query shares out 1 over the keys, the last axis.
    mask-ignored: np.where(mask, S, -np.inf) → S
        The mask is not used: every key gets weight. Put −∞ in place of the hidden scores.
    zero-times-infinity: np.where(mask, S, -np.inf) → S + (1 - mask) * -np.inf
        Everything is nan. Is −∞ multiplied by 0? That is nan: let np.where choose S or −∞.
    boolean-index: np.where(mask, S, -np.inf) → S[np.broadcast_to(mask, S.shape)]
        A boolean index lays all the readable scores in one row. Keep the table: np.where.
    no-maximum: return → e = np.exp(S) * mask⏎    return e / e.sum(-1, keepdims=True)⏎    return
        exp overflows for scores near 1,000. Subtract the max of each row first, as softmax does.
"""

causal_mask = exercise(
    course.causal_mask,
    story=True,
    hints="""Which half of the table lies in the past, if rows are queries and columns are keys?
    The lower triangle with the diagonal, of True: np.tril(np.ones((T, T), dtype=bool)).""",
    probes=[("three words", 3), ("one word", 1), ("two words", 2), ("300 words", 300)],
    slips="""
    upper-triangle: np.tril → np.triu
        This is the upper triangle, itself and the future. The past is the lower one: np.tril.
    inverted: np.tril → ~np.tril
        The mask is inverted: True marks the future. It must mark what may be read.
    diagonal-missing: dtype=bool) → dtype=bool), k=-1
        The diagonal is missing: no query reads itself, and the first row is empty.
    one-key-too-many: dtype=bool) → dtype=bool), k=1
        Each query also reads the next key, one step into the future. The last is the query itself.
    first-word-reads-nothing: dtype=bool)) → dtype=bool)) & (np.arange(T) > 0)[:, None]
        The first word reads nothing. It reads itself: does a loop begin with 1?
    itself-and-one-before: np.tril(np.ones((T, T), dtype=bool)) → np.triu(np.tri(T, dtype=bool), -1)
        A word reads itself and only the one before it. It reads all the words before.
    numbers: , dtype=bool → ∅
        These are ones and zeros. A mask says yes or no: True and False, dtype=bool.
    to-be-added: np.tril(np.ones((T, T), dtype=bool)) → np.triu(np.full((T, T), -np.inf), 1)
        This is 0 and −∞, to be added to scores. Here a mask says yes or no: True and False.
    nothing-hidden: np.tril → ∅
        Everything is True, the future too: keep the lower triangle. Or is one list in all rows?
    """,
)

masked_softmax = exercise(
    "def masked_softmax(S, mask):\n    return softmax(np.where(mask, S, -np.inf))",
    course=course.masked_softmax,
    story=True,
    hints="""Which score has the exponential 0?
    Write −∞ over the hidden scores, in a new array: np.where(mask, S, -np.inf). Then softmax.""",
    probes=[("three scores, one hidden", [[1.0, 2.0, 0.0]], rows("101")),
            ("a causal mask", [[0.5, 1, 2], [1, 0, -1], [0.2, 0.4, 3]], rows("100 110 111")),
            *ANY, ("a large hidden score", [[1.0, 2, 600]], rows("110"))],
    slips=WITH_A_MASK + """
    everything-as-one-row: return softmax( → e = np.exp( ⊕ -np.inf)) → \\
            -np.inf) - S[np.broadcast_to(mask, S.shape)].max()); return e / e.sum()
        All weights of all queries together sum to 1. Each query shares out 1 of its own.
    """,
)  # fmt: skip
exact = masked_softmax.experiment("five keys, one of them hidden")
exact(lambda fn: {"its weight is exactly 0": fn(np.arange(5.0)[None], rows("11101"))[0, 3] == 0})

SHARED = n05.SelfAttention.told.replace(" → dim=1\n", " → dim=0\n")
SHARED = SHARED.replace("axis 1: for a batch these are the queries", "axis 0, the sentences")

CausalAttention = exercise(
    """
    class CausalAttention(nn.Module):
        def __init__(self, d_in, d_out, context_length):
            super().__init__()
            self.W_q = nn.Linear(d_in, d_out, bias=False)
            self.W_k = nn.Linear(d_in, d_out, bias=False)
            self.W_v = nn.Linear(d_in, d_out, bias=False)
            self.register_buffer("mask", torch.ones(context_length, context_length).tril().bool())

        def forward(self, x):
            T = x.shape[1]
            Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)
            scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
            scores = scores.masked_fill(~self.mask[:T, :T], -torch.inf)
            return torch.softmax(scores, dim=-1) @ V
    """,
    hints="""What is made once, for the longest sentence, and what of it does a shorter one need?
    A mask (context_length, context_length), once; in forward masked_fill with its [:T, :T].""",
    slips=SHARED + """
    not-causal: scores.masked_fill(~self.mask[:T, :T], -torch.inf) → scores
        Nothing is hidden: every word reads ahead. Keep what masked_fill returns, with −∞.
    mask-not-cut: [:T, :T] → ∅
        The mask is as large as context_length, also for a shorter sentence: cut it to [:T, :T].
    inverted: ~self.mask → self.mask
        The mask is inverted: masked_fill writes −∞ where it is True, so the past is hidden.
    zero-times-infinity: scores.masked_fill(~self.mask[:T, :T], → scores + (~self.mask[:T, :T] *
        Everything is nan. Is −∞ multiplied by 0? That is nan: let masked_fill write −∞.
    upper-triangle: .tril() → .triu()
        The mask keeps the upper triangle, the future. Rows are queries: keep the lower one.
    diagonal-missing: .tril() → .tril(-1)
        No word reads itself, and the first has nothing to read: NaN. Keep the diagonal.
    queries-and-keys-exchanged: Q @ K.transpose(-2, -1) → K @ Q.transpose(-2, -1)
        Keys ask and queries answer: rows must be queries, Q @ Kᵀ.
    one-key-too-many: .tril() → .tril(1)
        Each word also reads the next one. The last that it reads is itself.
    mask-too-late: scores = scores → return scores.softmax(-1) * self.mask[:T, :T] @ V; scores
        The mask comes after the softmax, so a row sums to less than 1. Put −∞ there before it.
    hidden-score-is-zero: -torch.inf → 0.0
        Hidden scores become 0, but exp(0) is 1: later words keep a share. Only −∞ hides them.
    """,
    backends=("torch",),
)  # fmt: skip
CausalAttention.module("its parameters, and one sentence", (3, 2, 4), numbers(1, 4, 3))
CausalAttention.module("three sentences, shorter than they may be", (3, 3, 6), numbers(3, 3, 3))

padded_weights = exercise(
    """
    def padded_weights(S, is_real):
        mask = is_real[:, None, :]
        return softmax(np.where(mask, S, -np.inf))
    """,
    course=course.padded_weights,
    hints="""Does is_real[b] belong to the rows of S[b], its queries, or to the columns, its keys?
    mask = is_real[:, None, :] is alike for all queries; softmax of np.where(mask, S, -np.inf).""",
    probes=[("one sentence, one padded word", [[[1.0, 2, 0], [0, 1, 2], [3, 0, 1]]], rows("110")),
            ("padding on the left", 2 * numbers(2, 4, 4), rows("0011 0111")),
            ("more keys than queries", 2 * numbers(2, 3, 5), rows("11100 01111")),
            ("three sentences of three words", 2 * numbers(3, 3, 3), rows("100 011 110")),
            ("scores of ±1,000", [[[1000.0, 999, -1000], [-1000, -1001, -999]]], rows("110")),
            ("a large padded score", [[[1.0, 2, 600]]], rows("110")),  # at 750, weights vanish
            ("all scores below −10³⁰", [[[-2e31, -1e31, -3e31]]], rows("110"))],
    slips=WITH_A_MASK.replace("-np.inf), axis=-2", "-1e9), axis=-2") + """
    no-axis-for-the-queries: is_real[:, None, :] → is_real
        The axis for the queries is missing, so sentences meet queries: (B, Tk) must be (B, 1, Tk).
    queries-hidden: None, :] → :, None] ⊕ return → return safe_masked_softmax(S, mask);
        The padded queries are hidden, the rows. Hide the padded keys, the columns, for all queries.
    mask-of-the-first-sentence: is_real[:, None, :] → is_real[0]
        The padding of the first sentence hides keys of all. Each sentence has its own row.
    words-first: is_real[:, None, :] → np.arange(S.shape[-1]) < is_real.sum(-1)[:, None, None]
        The real words are counted, as if they came first. Padding may stand on the left too.
    """,
)  # fmt: skip


length_mask = exercise(
    "def length_mask(lengths, T):\n    return (np.arange(T) < lengths[:, None])[:, None, :]",
    hints="""In a sentence of 3 words, which of the positions 0 … T − 1 are real?
    np.arange(T), compared with lengths[:, None]; then [:, None, :] for the axis of the queries.""",
    probes=[("a sentence of two words", [2], 3), ("a full and an empty one", [2, 5, 0], 5),
            ("as many sentences as positions", [3, 1, 2], 3), ("130 positions", [127, 1], 130)],
    slips="""
    no-axis-for-the-queries: [:, None, :] → ∅
        The axis for the queries is missing, in the middle: (B, 1, T).
    one-place-too-many: < lengths → <= lengths
        One place too many: positions count from 0, so the real ones lie below the length.
    inverted: < lengths → >= lengths
        The mask is inverted, True marks the padding. True must mark the words.
    full-sentence-hidden: np.arange(T) < lengths[:, None] → np.arange(T) < lengths[:, None] % T
        A full sentence is hidden altogether: counted from the end, [-0:] is everything.
    T-ignored: np.arange(T) → np.arange(lengths.max())
        It is as wide as the longest sentence. A batch may be padded further: T positions.
    padding-on-the-left: < lengths[:, None] → >= T - lengths[:, None]
        The words stand on the right here. All padding is there: the words come first.
    """,
)  # fmt: skip

safe_masked_softmax = exercise(
    """
    def safe_masked_softmax(S, mask):
        low = np.where(mask, S, -1e30)
        e = np.exp(low - low.max(axis=-1, keepdims=True)) * mask
        total = e.sum(axis=-1, keepdims=True)
        return e / np.where(total == 0, 1, total)
    """,
    course=course.safe_masked_softmax,
    hints="""What is the sum of an empty row, and what must it be divided by to stay zero?
    Very low where hidden, less the row's largest, exp, times mask; divide by 1 for a sum of 0.""",
    probes=[
        ("two queries", [[1.0, 2.0, 3.0], [3.0, 0.5, 1.0]], rows("010 101")),
        ("a query that may read nothing", [[1.0, 2.0, 0.0], [3.0, 0.5, 1.0]], rows("101 000")),
        ("causal, padded on the left", numbers(2, 4, 4), np.tri(4) > rows("1000 1100")[:, None]),
        *ANY, ("a hidden score of 10,000", [[1.0, 2, 1e4]], rows("110")),
    ],
    slips="""
    nan-in-empty-rows: np.where(total == 0, 1, total) → total
        A query without keys to read gives 0 / 0, NaN, which no == finds. Make its row zeros.
    even-share-in-empty-rows: * mask → ∅
        An empty row shares out evenly among hidden keys, all equally low. It must become zeros.
    zeroed-after-softmax: np.where(mask, S, -1e30) → S ⊕ * mask → ∅ ⊕ return e → return mask * e
        Hidden weights become 0 after the softmax, so rows no longer sum to 1. Hide scores first.
    keys-nobody-reads: * mask → ∅ ⊕ return e → return mask.any(axis=-2, keepdims=True) * e
        It asks which keys nobody reads, any(axis=-2). Ask which queries read nothing: any(axis=-1).
    written-into-the-scores: low = → S[np.broadcast_to(~mask, S.shape)] = -1e30⏎    low =
        The hidden scores are overwritten in the S of the caller. Work on a copy.
    mask-not-spread: return → e[~mask.any(-1)] = 0⏎    return
        As an index the mask must first be spread: np.broadcast_to(mask, S.shape).
    maximum-before-the-mask: low - low.max → S - S.max
        The max counts hidden scores: beside a large one the others vanish. Hide them before it.
    no-maximum: low - low.max(axis=-1, keepdims=True) → S
        exp overflows for scores near 1,000. Subtract the max of each row first, without the hidden.
    visible-epsilon: np.where(total == 0, 1, total) → (total + 0.1)
        A number is added to each sum: all other rows sum to less than 1. Only empty rows need it.
    """,
)  # fmt: skip

window_mask = exercise(
    """
    def window_mask(T, width):
        i, j = np.arange(T)[:, None], np.arange(T)
        return (j <= i) & (i - j < width)
    """,
    hints="""Query 5 with width 3 reads the keys 3, 4 and 5. How far is each of them from the query?
    With i, j = np.arange(T)[:, None], np.arange(T): i − j is at least 0 and less than width.""",
    probes=[("four words, two keys each", 4, 2), ("only itself", 3, 1), ("a wide window", 3, 5),
            ("seven words, three keys each", 7, 3), ("130 words, 70 keys each", 130, 70)],
    slips="""
    one-key-too-many: < width → <= width
        One key too many: the query counts as one of its `width` keys, so i − j stays below width.
    both-directions: (j <= i) & (i - j < width) → np.abs(i - j) < width
        The window reaches as far into the future as into the past. Later keys are hidden.
    future-open: (j <= i) & (i - j < width) → i - j < width
        Keys too far back are hidden, but all later ones are not: the last key to read is i itself.
    the-keys-before: j <= i → j < i ⊕ < width → <= width
        The window ends before the query. It reads itself too, as the last of its `width` keys.
    negative-start: i - j < width → j >= np.maximum(i - width + 1 + T * (i < width - 1), 0)
        Near the start i − width + 1 is negative: slices count it from the end. Begin at 0 there.
    filled-up: return → i = np.maximum(i, width - 1)⏎    return
        Near the start the window is filled up with later keys. There it holds fewer than `width`.
    in-blocks: i - j < width → i // width == j // width
        The words are cut into blocks of `width`. A window moves along: query i reads up to i.
    rows-and-columns-exchanged: i, j = → j, i =
        Rows and columns are exchanged, so queries read later keys. Rows are queries, i.
    """,
)  # fmt: skip
