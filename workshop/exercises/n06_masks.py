"""Notebook 06: which keys may be read."""

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise

# ---------------------------------------------------------------- causal_mask

causal_mask = Exercise(
    reference.causal_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="Let query i read the keys 0 … i and nothing later. True means: may attend.",
    hints=(
        "Which half of the matrix lies in the past, if rows are queries and columns are keys?",
        "Keep the lower triangle with the diagonal, as True and False instead of 1 and 0.",
        "`return np.tril(np.ones((T, T), dtype=bool))`",
    ),
)
causal_mask.answer("""
    def causal_mask(T):
        everything = np.ones((T, T), dtype=bool)
        return np.tril(everything)
""")
causal_mask.answer("""
    def causal_mask(T):
        i = np.arange(T)[:, None]
        j = np.arange(T)[None, :]
        return j <= i
""")
causal_mask.answer("""
    def causal_mask(T):
        mask = np.zeros((T, T), dtype=bool)
        for i in range(T):
            for j in range(i + 1):
                mask[i, j] = True
        return mask
""")
causal_mask.answer("""
    def causal_mask(T):
        return ~np.triu(np.ones((T, T), dtype=bool), k=1)
""")
causal_mask.answer("""
    import torch

    def causal_mask(T):
        return torch.tril(torch.ones(T, T, dtype=torch.bool))
""")
causal_mask.why(
    "np.tril(everything) | np.tril(np.ones((T, T), dtype=bool)) | np.tril | torch.tril | "
    "torch.tril(torch.ones(T, T, dtype=torch.bool))",
    "Rows are queries and columns are keys: what came before the query lies below the diagonal, "
    "the future above.",
)
causal_mask.why(
    "j <= i | range(i + 1) | i + 1",
    "Query i reads all keys before it and itself: key j is allowed from 0 up to i, the diagonal "
    "included.",
)
causal_mask.why(
    "k=1 | diagonal=1",
    "Each query reads itself: the diagonal belongs to the past, and the future begins one step "
    "after it.",
)
causal_mask.why(
    "~np.triu(np.ones((T, T), dtype=bool), k=1)",
    "True means: may attend. What must be hidden, the future, is False.",
)
causal_mask.why(
    "dtype=bool | dtype=torch.bool",
    "A mask answers yes or no for each pair: True and False, not numbers to calculate with.",
)
causal_mask.why(
    "(T, T) | np.ones((T, T), dtype=bool) | np.zeros((T, T), dtype=bool)",
    "One row for each query, one column for each key: (T, T), whatever the length T is.",
)
causal_mask.probe("three words", 3)
causal_mask.probe("one word", 1)
causal_mask.probe("two words", 2)
causal_mask.probe("six words", 6)
causal_mask.probe("three hundred words", 300)


@causal_mask.mistake
def upper_triangle(T):
    """You kept the upper triangle (np.triu): each query sees itself and the future. Rows are
    queries, so the past of a query lies in the lower triangle: key j ≤ query i."""
    return np.triu(np.ones((T, T), dtype=bool))


@causal_mask.mistake
def diagonal_missing(T):
    """The diagonal is missing: no query may read itself, and the first row is empty, which makes
    its weights NaN later. Include the diagonal: key j ≤ query i, not j < i."""
    return np.tril(np.ones((T, T), dtype=bool), k=-1)


@causal_mask.mistake
def inverted(T):
    """The mask is inverted: your True marks the future that must be hidden, as in
    nn.MultiheadAttention. Here True means "may attend", the opposite."""
    return np.triu(np.ones((T, T), dtype=bool), k=1)


@causal_mask.mistake
def to_be_added(T):
    """This is an additive mask, numbers 0 and −∞ that are added to the scores. Here a mask is
    boolean: True where attention is allowed and False in the future."""
    return np.where(np.tril(np.ones((T, T), dtype=bool)), 0.0, -np.inf)


@causal_mask.mistake
def one_key_too_many(T):
    """Each query also sees the next key, one step into the future: off by one. A model that learns
    to predict that word could copy it. The last allowed key is the query itself."""
    return np.tril(np.ones((T, T), dtype=bool), k=1)


# ---------------------------------------------------------------- padding_mask

padding_mask = Exercise(
    reference.padding_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="From a batch of ids, make the mask that lets every query read real tokens only. The "
    "padding may have any id and stand on either side.",
    hints=(
        "Which comparison is True for every token that is not padding?",
        "Compare each id with pad_id, then add an axis of length 1 for the queries.",
        "`return (ids != pad_id)[:, None, :]`",
    ),
)
padding_mask.answer("""
    def padding_mask(ids, pad_id):
        is_real = ids != pad_id
        return is_real[:, None, :]
""")
padding_mask.answer("""
    def padding_mask(ids, pad_id):
        B, T = ids.shape
        return np.not_equal(ids, pad_id).reshape(B, 1, T)
""")
padding_mask.answer("""
    def padding_mask(ids, pad_id):
        is_padding = np.expand_dims(ids == pad_id, axis=1)
        return ~is_padding
""")
padding_mask.answer("""
    def padding_mask(ids, pad_id):
        B, T = ids.shape
        mask = np.zeros((B, 1, T), dtype=bool)
        for b in range(B):
            for t in range(T):
                mask[b, 0, t] = ids[b, t] != pad_id
        return mask
""")
padding_mask.answer("""
    import torch

    def padding_mask(ids, pad_id):
        return (ids != pad_id).unsqueeze(1)
""")
padding_mask.why(
    "ids != pad_id | np.not_equal(ids, pad_id) | ids[b, t] != pad_id | ~is_padding",
    "True marks a real token, which may be read: every id that differs from pad_id, wherever it "
    "stands.",
)
padding_mask.why(
    "pad_id",
    "Which id is padding is the caller's choice: it need not be 0, nor the smallest or the last.",
)
padding_mask.why(
    "is_real[:, None, :] | (ids != pad_id)[:, None, :] | reshape(B, 1, T) | (B, 1, T) | "
    "np.expand_dims(ids == pad_id, axis=1) | axis=1 | (ids != pad_id).unsqueeze(1)",
    "Padding is hidden as a key, for all queries alike: one axis of length 1 for the queries, in "
    "the middle, (B, 1, T).",
)
padding_mask.why("dtype=bool", "A mask says yes or no: True and False, not numbers.")
padding_mask.probe("one sentence", np.array([[5, 3, 0, 0]]), 0)
padding_mask.probe("two sentences", np.array([[4, 2, 7], [3, 0, 0]]), 0)
padding_mask.probe("padding 1, a word 0", np.array([[0, 5, 1], [2, 0, 3]]), 1)
padding_mask.probe("padding on the left", np.array([[9, 9, 9, 4], [9, 2, 0, 3], [9, 9, 0, 12]]), 9)
padding_mask.probe("ids above and below pad_id", np.array([[7, 2, 3, 3], [1, 0, 5, 3]]), 3)
padding_mask.probe("no padding", np.array([[4, 2, 7, 0], [3, 1, 6, 2]]), 8)
padding_mask.probe("padding with id -1", np.array([[4, 0, -1], [3, 1, 2]]), -1)
padding_mask.probe("as many sentences as tokens", np.array([[2, 0, 0], [3, 4, 0], [0, 0, 5]]), 0)


@padding_mask.mistake
def padding_marked(ids, pad_id):
    """The mask is inverted: your True marks the padding, as key_padding_mask does in PyTorch. Here
    True has to mark real tokens, which may be read."""
    return (ids == pad_id)[:, None, :]


@padding_mask.mistake
def axis_at_the_end(ids, pad_id):
    """The new axis stands last, (B, T, 1), so padded queries (rows) would be hidden instead of
    padded keys (columns). Put it in the middle: (B, 1, T)."""
    return (ids != pad_id)[:, :, None]


@padding_mask.mistake
def right_padding_assumed(ids, pad_id):
    """The real tokens are counted and that many allowed from the left, as if they came first. With
    padding on the left the wrong ones are hidden: test each id at its own position."""
    lengths = (ids != pad_id).sum(axis=1)
    return (np.arange(ids.shape[1]) < lengths[:, None])[:, None, :]


@padding_mask.mistake
def queries_hidden_too(ids, pad_id):
    """Padded queries are hidden as well as padded keys, (B, T, T): their rows would be empty. Only
    the keys are masked, for every query alike: the shape is (B, 1, T)."""
    real = ids != pad_id
    return real[:, None, :] & real[:, :, None]


# ---------------------------------------------------------------- window_mask


def window_mask(T: int, width: int) -> np.ndarray:
    """Let query i see the last `width` keys up to itself: (T, T) bool.

    Child et al. (2019), *Generating Long Sequences with Sparse Transformers*; used in Mistral 7B.
    """
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i - j < width)


windows = Exercise(
    window_mask,
    notebook="06",
    level=2,
    minutes=10,
    task="A causal mask with a short memory, for texts so long that nobody can read all of the "
    "past: query i reads itself and the keys before it, `width` keys in all. Near the start, where "
    "there are fewer, it reads those.",
    hints=(
        "Query 5 with width 3 reads the keys 3, 4 and 5. How far is each from the query?",
        "The distance i − j of query and key must be at least 0 and less than width.",
        "`i, j = np.arange(T)[:, None], np.arange(T)`, `return (j <= i) & (i - j < width)`",
    ),
)
windows.answer("""
    def window_mask(T, width):
        i = np.arange(T)[:, None]
        j = np.arange(T)
        return (j <= i) & (i - j < width)
""")
windows.answer("""
    def window_mask(T, width):
        past = np.tril(np.ones((T, T), dtype=bool))
        too_far = np.tril(np.ones((T, T), dtype=bool), k=-width)
        return past & ~too_far
""")
windows.answer("""
    def window_mask(T, width):
        mask = np.zeros((T, T), dtype=bool)
        for i in range(T):
            for j in range(max(0, i - width + 1), i + 1):
                mask[i, j] = True
        return mask
""")
windows.answer("""
    def window_mask(T, width):
        mask = np.zeros((T, T), dtype=bool)
        for i in range(T):
            mask[i, max(0, i - width + 1) : i + 1] = True
        return mask
""")
windows.answer("""
    import torch

    def window_mask(T, width):
        i = torch.arange(T)[:, None]
        j = torch.arange(T)
        return (j <= i) & (j > i - width)
""")
windows.why(
    "i - j < width | j > i - width | i - width + 1 | k=-width | ~too_far",
    "The query counts as one of its width keys, so distances go from 0 to width − 1.",
)
windows.why(
    "j <= i | i + 1 | np.tril | np.tril(np.ones((T, T), dtype=bool))",
    "Keys after the query are hidden and the query itself is not: the last key it reads is i.",
)
windows.why(
    "(j <= i) & (i - j < width) | past & ~too_far",
    "Both limits count for each pair: not in the future, and not too far back. & joins them entry "
    "by entry.",
)
windows.why(
    "max(0, i - width + 1)",
    "Near the start there are fewer keys than width: count from key 0, as a negative start counts "
    "from the end.",
)
windows.why(
    "np.arange(T)[:, None] | torch.arange(T)[:, None]",
    "Rows are queries i and columns keys j: the distance is counted back from the query.",
)
windows.why(
    "dtype=bool | (T, T)",
    "A mask says yes or no, True or False, for each pair: T rows of queries and T columns of keys.",
)
windows.probe("four words, two keys each", 4, 2)
windows.probe("width 1: only itself", 3, 1)
windows.probe("as wide as the sentence", 4, 4)
windows.probe("wider than the sentence", 3, 5)
windows.probe("seven words, three keys each", 7, 3)
windows.probe("one word", 1, 2)
windows.probe("130 words, 70 keys each", 130, 70)


@windows.mistake
def negative_start(T, width):
    """The first rows are empty: i − width + 1 is negative there, and a slice counts that from the
    end. Where there are fewer keys, the window starts at key 0."""
    mask = np.zeros((T, T), dtype=bool)
    for i in range(T):
        mask[i, i - width + 1 : i + 1] = True
    return mask


@windows.mistake
def blocks(T, width):
    """The sentence is cut into blocks of width words, and each query sees its own block only. The
    window moves along with the query: the last width keys, counted from it."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i // width == j // width)


@windows.mistake
def width_ignored(T, width):
    """This is the whole causal mask: the width is not used. Keys too far back are hidden as well,
    those whose distance from the query is width or more."""
    return np.tri(T, dtype=bool)


@windows.mistake
def early_rows_missing(T, width):
    """The first width − 1 rows are empty, because they have fewer keys than width. Such a query
    reads those that there are, down to key 0."""
    mask = window_mask(T, width)
    mask[: width - 1] = False
    return mask


# ---------------------------------------------------------------- length_mask


def length_mask(lengths: np.ndarray, T: int) -> np.ndarray:
    """Allow the first lengths[b] keys of sentence b: (B,) whole numbers → (B, 1, T) bool.

    As `sequence_mask` in TensorFlow, with an axis for the queries.
    """
    return (np.arange(T) < np.asarray(lengths)[:, None])[:, None, :]


by_length = Exercise(
    length_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="A program often knows how long its sentences are and has no ids at hand. Make the "
    "padding mask from the lengths. Here all padding stands on the right, and `T` is the padded "
    "length.",
    hints=(
        "In a sentence of 3 words, which of the positions 0 … T − 1 are real?",
        "Compare the row of positions with the column of lengths, then add the axis of queries.",
        "`return (np.arange(T) < lengths[:, None])[:, None, :]`",
    ),
)
by_length.answer("""
    def length_mask(lengths, T):
        is_real = np.arange(T) < lengths[:, None]
        return is_real[:, None, :]
""")
by_length.answer("""
    def length_mask(lengths, T):
        mask = np.zeros((len(lengths), 1, T), dtype=bool)
        for b, n in enumerate(lengths):
            mask[b, 0, :n] = True
        return mask
""")
by_length.answer("""
    def length_mask(lengths, T):
        rows = [[t < n for t in range(T)] for n in lengths]
        return np.array(rows, dtype=bool)[:, None, :]
""")
by_length.answer("""
    import torch

    def length_mask(lengths, T):
        return torch.arange(T) < lengths.view(-1, 1, 1)
""")
by_length.why(
    "np.arange(T) < lengths[:, None] | t < n | :n | mask[b, 0, :n]",
    "Positions count from 0: in a sentence of 3 words 0, 1 and 2 are real, those below its length.",
)
by_length.why(
    "lengths[:, None] | is_real[:, None, :] | np.array(rows, dtype=bool)[:, None, :] | "
    "(len(lengths), 1, T) | lengths.view(-1, 1, 1) | enumerate(lengths)",
    "Each sentence has its own length, and one row for all its queries, the axis in the middle: "
    "(B, 1, T).",
)
by_length.why(
    "np.arange(T) | range(T)",
    "T is the padded length, which all sentences share; the longest of them may be shorter.",
)
by_length.why("dtype=bool", "A mask says yes or no: True and False, not numbers.")
by_length.probe("a sentence of two words", np.array([2]), 3)
by_length.probe("two sentences", np.array([3, 1]), 4)
by_length.probe("a full sentence", np.array([2, 5, 4]), 5)
by_length.probe("a sentence without words", np.array([0, 2, 1, 3]), 3)
by_length.probe("padded further than the longest", np.array([1, 3]), 6)
by_length.probe("as many sentences as positions", np.array([3, 1, 2]), 3)
by_length.probe("130 positions", np.array([127, 1]), 130)


@by_length.mistake
def T_ignored(lengths, T):
    """The mask is as wide as the longest sentence, and T is not used. A batch may be padded
    further than that, and the mask must fit its scores: T positions."""
    return length_mask(lengths, int(lengths.max()))


@by_length.mistake
def lengths_inverted(lengths, T):
    """The mask is inverted: True marks the padding. Here True means "may attend", so it has to mark
    the words, the positions below the length."""
    return ~length_mask(lengths, T)


@by_length.mistake
def square_for_each_sentence(lengths, T):
    """The mask is repeated for each query, (B, T, T). One row for all queries of a sentence is
    enough, (B, 1, T): where it meets the scores, broadcasting spreads it over them."""
    return np.repeat(length_mask(lengths, T), T, axis=1)
