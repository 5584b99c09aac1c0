"""Notebook 16: texts that repeat a block, and where a head looks that has noticed it."""

import numpy as np

from workshop.exercises.exercise import Exercise

# ---------------------------------------------------------------- repeat_blocks


def repeat_blocks(blocks: np.ndarray, lengths: np.ndarray, T: int) -> np.ndarray:
    """Repeat each row's first tokens until T are full: (B, longest), (B,) → (B, T).

    Row b holds its first lengths[b] tokens, again and again, the last time maybe cut. Raises
    ValueError for lengths that are not from 1 to longest. The data of Olsson et al. (2022).
    """
    if lengths.shape != blocks.shape[:1] or lengths.min() < 1 or lengths.max() > blocks.shape[1]:
        raise ValueError(
            f"lengths is {lengths}, but must be {len(blocks)} numbers from 1 to {blocks.shape[1]}"
        )
    place = np.arange(T) % lengths[:, None]  # (B, T)
    return np.take_along_axis(blocks, place, axis=1)


repeating = Exercise(
    repeat_blocks,
    notebook="16",
    level=2,
    minutes=8,
    task="Row b of the result begins with the first `lengths[b]` tokens of row b of `blocks`, and "
    "repeats them until it is T tokens long; the last time may be cut. The block 5 9 2 of length "
    "2, with T = 5, becomes 5 9 5 9 5.",
    hints=(
        "In the example, which place of the block stands at the places 0, 1, 2, 3, 4 of the text?",
        "The place t of a text is the place t % length of its block. np.arange(T) % "
        "lengths[:, None] gives these for all rows, (B, T).",
        "`place = np.arange(T) % lengths[:, None]`, then `return np.take_along_axis(blocks, place, "
        "axis=1)`",
    ),
)
repeating.answer("""
    def repeat_blocks(blocks, lengths, T):
        place = np.arange(T) % lengths[:, None]  # (B, T): which token of its block
        return np.take_along_axis(blocks, place, axis=1)
""")
repeating.answer("""
    def repeat_blocks(blocks, lengths, T):
        rows = np.arange(len(blocks))[:, None]
        return blocks[rows, np.arange(T) % lengths[:, None]]
""")
repeating.answer("""
    def repeat_blocks(blocks, lengths, T):
        texts = []
        for block, length in zip(blocks, lengths):
            texts.append([block[t % length] for t in range(T)])
        return np.array(texts)
""")
repeating.answer("""
    def repeat_blocks(blocks, lengths, T):
        texts = np.zeros((len(blocks), T), dtype=int)
        for b in range(len(blocks)):
            for t in range(T):
                texts[b, t] = blocks[b, t % lengths[b]]
        return texts
""")
repeating.answer("""
    def repeat_blocks(blocks, lengths, T):
        return np.stack([np.resize(block[:length], T) for block, length in zip(blocks, lengths)])
""")
repeating.answer("""
    import torch

    def repeat_blocks(blocks, lengths, T):
        place = torch.arange(T) % lengths[:, None]
        return torch.gather(blocks, 1, place)
""")
repeating.why(
    "np.arange(T) % lengths[:, None] | t % length | t % lengths[b] | % lengths[:, None] | "
    "torch.arange(T) % lengths[:, None]",
    "After the last token of its block a text begins with the first again: the rest of the "
    "division by the block's length says where it is.",
)
repeating.why(
    "lengths[:, None] | lengths[b] | length | block[:length]",
    "Each row has a length of its own.",
)
repeating.why(
    "np.take_along_axis(blocks, place, axis=1) | blocks[rows, np.arange(T) % lengths[:, None]] | "
    "blocks[b, t % lengths[b]] | block[t % length] | rows | np.arange(len(blocks))[:, None] | "
    "torch.gather(blocks, 1, place) | axis=1",
    "Each row takes tokens of its own block.",
)
repeating.why(
    "np.arange(T) | range(T) | np.resize(block[:length], T) | np.zeros((len(blocks), T), dtype=int)"
    " | torch.arange(T)",
    "All texts have T tokens, however long their blocks are.",
)
BLOCKS = np.array([[5, 9, 2, 7], [4, 1, 8, 3], [6, 0, 2, 1]])
repeating.probe("one block of two tokens", np.array([[5, 9, 2]]), np.array([2]), 5)
repeating.probe("three blocks of different lengths", BLOCKS, np.array([2, 3, 4]), 10)
repeating.probe("a block of one token", BLOCKS, np.array([1, 4, 2]), 6)
repeating.probe("texts shorter than the longest block", BLOCKS, np.array([4, 3, 2]), 3)
repeating.probe("as many tokens as the longest block", BLOCKS, np.array([3, 4, 1]), 4)
repeating.probe("forty tokens", np.arange(60).reshape(4, 15) % 37, np.array([15, 8, 11, 3]), 40)


@repeating.mistake
def one_length_for_all(blocks, lengths, T):
    """All rows repeat with the length of the first. Each row has its own: lengths[:, None] beside
    the T places."""
    return repeat_blocks(blocks, np.full_like(lengths, lengths[0]), T)


@repeating.mistake
def whole_block_repeated(blocks, lengths, T):
    """Whole rows of blocks are repeated. Of row b, only the first lengths[b] tokens belong to its
    block."""
    return repeat_blocks(blocks, np.full_like(lengths, blocks.shape[1]), T)


@repeating.mistake
def last_token_repeated(blocks, lengths, T):
    """When its block is over, a text repeats the last token. It must begin again with the first:
    take the place t % length."""
    place = np.minimum(np.arange(T), lengths[:, None] - 1)
    return np.take_along_axis(blocks, place, axis=1)


@repeating.mistake
def one_too_long(blocks, lengths, T):
    """The blocks are one token too long: length 2 means the places 0 and 1, so the rest of the
    division is by length, not by length + 1."""
    return repeat_blocks(blocks, np.minimum(lengths + 1, blocks.shape[1]), T)


@repeating.mistake
def forth_and_back(blocks, lengths, T):
    """The second time, the block runs backwards. It must begin again with its first token: take the
    place t % length."""
    t, n = np.arange(T), lengths[:, None]
    place = np.where((t // n) % 2 == 0, t % n, n - 1 - t % n)
    return np.take_along_axis(blocks, place, axis=1)


# ---------------------------------------------------------------- induction_pattern


def induction_pattern(ids: np.ndarray) -> np.ndarray:
    """Which keys tell what followed the last times: (T,) ids → (T, T) bool.

    True at [q, k] where the token before key k is the query's own token, at an earlier place; k may
    be the query itself. Raises ValueError unless ids is (T,). Olsson et al. (2022).
    """
    if ids.ndim != 1:
        raise ValueError(f"ids has shape {ids.shape}, but must be (T,)")
    same = np.tril(ids[:, None] == ids, k=-1)  # (T, T): this token, earlier
    wanted = np.zeros_like(same)
    wanted[:, 1:] = same[:, :-1]  # one place after it
    return wanted


pattern = Exercise(
    induction_pattern,
    notebook="16",
    level=2,
    minutes=10,
    task="Say where a head should look that continues what it has seen: `wanted[q, k]` is True "
    "where the token before key k is the same as token q, and stands earlier than q. All earlier "
    "times count. In the text 7 3 7, query 2 wants key 1; the others want none.",
    hints=(
        "In 7 3 5 7 3, which earlier place has the token of query 4, and which key comes right "
        "after that place?",
        "ids[:, None] == ids is True where two places hold the same token. Keep what is earlier "
        "than the query (below the diagonal), then move all of it one column to the right.",
        "`same = np.tril(ids[:, None] == ids, k=-1)`, then `wanted = np.zeros_like(same)`, "
        "`wanted[:, 1:] = same[:, :-1]` and `return wanted`",
    ),
)
pattern.answer("""
    def induction_pattern(ids):
        same = np.tril(ids[:, None] == ids, k=-1)  # (T, T): the query's token, earlier
        wanted = np.zeros_like(same)
        wanted[:, 1:] = same[:, :-1]  # one place after it
        return wanted
""")
pattern.answer("""
    def induction_pattern(ids):
        T = len(ids)
        wanted = np.zeros((T, T), dtype=bool)
        for q in range(T):
            for k in range(1, q + 1):
                wanted[q, k] = bool(ids[k - 1] == ids[q])
        return wanted
""")
pattern.answer("""
    def induction_pattern(ids):
        T = len(ids)
        place = np.arange(T)
        before = np.roll(ids, 1)
        return (ids[:, None] == before) & (place <= place[:, None]) & (place > 0)
""")
pattern.answer("""
    def induction_pattern(ids):
        T = len(ids)
        wanted = np.zeros((T, T), dtype=bool)
        for q in range(T):
            for j in range(q):
                if ids[j] == ids[q]:
                    wanted[q, j + 1] = True
        return wanted
""")
pattern.answer("""
    import torch

    def induction_pattern(ids):
        same = (ids[:, None] == ids[None, :]).tril(-1)
        wanted = torch.zeros_like(same)
        wanted[:, 1:] = same[:, :-1]
        return wanted
""")
pattern.why(
    "ids[:, None] == ids | ids[k - 1] == ids[q] | ids[j] == ids[q] | ids[:, None] == before | "
    "ids[:, None] == ids[None, :] | before | np.roll(ids, 1)",
    "A query looks for places with the same token as its own: rows are queries.",
)
pattern.why(
    "k=-1 | np.tril(ids[:, None] == ids, k=-1) | range(1, q + 1) | range(q) | .tril(-1) | "
    "place <= place[:, None]",
    "Only earlier places count: not the query itself, and none after it.",
)
pattern.why(
    "wanted[:, 1:] = same[:, :-1] | same[:, :-1] | wanted[:, 1:] | ids[k - 1] | wanted[q, j + 1] | "
    "j + 1 | np.roll(ids, 1) | 1",
    "What is wanted stands one place after the earlier occurrence.",
)
pattern.why(
    "np.zeros_like(same) | np.zeros((T, T), dtype=bool) | torch.zeros_like(same) | place > 0",
    "All else is False; no token stands before the first, so its column stays False.",
)
pattern.probe("one token twice", np.array([7, 3, 7]))
pattern.probe("a block of three, twice", np.array([7, 3, 5, 7, 3, 5]))
pattern.probe("one token three times", np.array([4, 2, 4, 1, 4]))
pattern.probe("no token twice", np.array([3, 0, 2, 1]))
pattern.probe("twice in a row", np.array([4, 1, 1, 2]))
pattern.probe("one token only", np.array([6, 6, 6]))
pattern.probe("the last token like the first", np.array([5, 1, 2, 5]))
pattern.probe("a single token", np.array([2]))
pattern.probe("forty tokens", np.arange(40) * 7 % 11 % 6)


def shifted(same: np.ndarray) -> np.ndarray:
    """One column to the right."""
    wanted = np.zeros_like(same)
    wanted[:, 1:] = same[:, :-1]
    return wanted


@pattern.mistake
def the_same_token(ids):
    """This marks the earlier occurrence itself. What is wanted is the token right after it: one
    column to the right."""
    return np.tril(ids[:, None] == ids, k=-1)


@pattern.mistake
def the_token_before(ids):
    """This marks the token before the earlier occurrence. What is wanted is the one right after it:
    move to the right, not to the left."""
    same = np.tril(ids[:, None] == ids, k=-1)
    wanted = np.zeros_like(same)
    wanted[:, :-1] = same[:, 1:]
    return wanted


@pattern.mistake
def itself_counts(ids):
    """A query's own place counts as an occurrence, so each wants the token after itself, which it
    cannot see. Keep earlier places only: np.tril with k=-1."""
    return shifted(np.tril(ids[:, None] == ids))


@pattern.mistake
def later_ones_too(ids):
    """Later occurrences count as well, and those no query can see. Keep what is below the diagonal
    before you move it."""
    return shifted((ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool))


@pattern.mistake
def the_last_time_only(ids):
    """Only the last earlier occurrence counts here. In this exercise each of them does: a head that
    reads any of them knows what followed."""
    same = np.tril(ids[:, None] == ids, k=-1)
    last = np.zeros_like(same)
    for q in range(len(ids)):
        if same[q].any():
            last[q, np.flatnonzero(same[q])[-1]] = True
    return shifted(last)


@pattern.mistake
def the_first_time_only(ids):
    """Only the first occurrence counts here. Each earlier one does: compare the query with all
    earlier places."""
    same = np.tril(ids[:, None] == ids, k=-1)
    first = np.zeros_like(same)
    for q in range(len(ids)):
        if same[q].any():
            first[q, np.flatnonzero(same[q])[0]] = True
    return shifted(first)


@pattern.mistake
def rows_and_columns(ids):
    """Queries and keys are exchanged. Rows are the queries: wanted[q, k] says whether query q wants
    key k."""
    return induction_pattern(ids).T.copy()
