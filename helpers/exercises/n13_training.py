"""Notebook 13: pairs to learn from, one mask for both reasons, a softer loss, training, measuring.

The references of `train` and `evaluate` stand here, each in the way that its task asks for; PyTorch
is loaded when a probe runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.exercises.exercise import Exercise, Untested

if TYPE_CHECKING:
    from torch import Tensor, nn

rng = np.random.default_rng(13)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def tokens(size: int, *shape: int) -> np.ndarray:
    """Ids of a vocabulary of this size."""
    return rng.integers(size, size=shape)


# ---------------------------------------------------------------- lm_pairs


def lm_pairs(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split texts into what is read and what comes next: (…, T) → (…, T-1), (…, T-1)."""
    return ids[..., :-1], ids[..., 1:]


pairs = Exercise(
    lm_pairs,
    notebook="13",
    level=1,
    minutes=5,
    task="Make inputs and targets for a language model from texts: the target of each token is the "
    "token after it. It works for one text and for any batch of them.",
    hints=(
        "What comes after the last token? And which token is no target, because nothing is before "
        "it?",
        "The inputs are all tokens but the last, the targets all but the first, along the last "
        "axis.",
        "`return ids[..., :-1], ids[..., 1:]`",
    ),
)
pairs.probe("one text of four words", np.array([5, 3, 8, 2]))
pairs.probe("two sentences", np.array([[5, 3, 8, 2, 9], [4, 7, 1, 6, 0]]))
pairs.probe("a text of two words", np.array([6, 3]))
pairs.probe("as many sentences as words", np.array([[3, 1, 4], [1, 5, 9], [2, 6, 8]]))
pairs.probe("words twice in a row, and padding", np.array([[6, 6, 0, 0, 0], [5, 5, 5, 1, 0]]))
pairs.probe("batches of batches", tokens(30, 3, 2, 6))
pairs.probe("sentences of two words", np.array([[7, 4], [8, 1], [2, 3]]))


@pairs.mistake
def inputs_and_targets_swapped(ids):
    """Inputs and targets are swapped: the target is the previous token, the one before the input,
    so the model would learn to write backwards. Return ids[..., :-1] first, then ids[..., 1:], the
    token after."""
    return ids[..., 1:], ids[..., :-1]


@pairs.mistake
def two_tokens_ahead(ids):
    """The targets are shifted twice, two tokens ahead, and the last one is repeated. Shift by one:
    the target is the very next token, ids[..., 1:]."""
    return ids[..., :-1], np.concatenate([ids[..., 2:], ids[..., -1:]], axis=-1)


@pairs.mistake
def two_ahead_and_shorter(ids):
    """The targets are shifted by two tokens, the word after next. Shift by one: inputs
    ids[..., :-1], targets ids[..., 1:], both of length T - 1."""
    return ids[..., :-2], ids[..., 2:]


@pairs.mistake
def targets_two_ahead(ids):
    """The targets start two tokens ahead and are one too short. Shift by one: ids[..., 1:], not
    ids[..., 2:]."""
    return ids[..., :-1], ids[..., 2:]


@pairs.mistake
def along_the_first_axis(ids):
    """It slices the first axis: right for one text, but of a batch it drops a sentence, and the
    target is the next sentence. Slice the last axis, the tokens: ids[..., :-1], ids[..., 1:]."""
    return ids[:-1], ids[1:]


@pairs.mistake
def along_the_second_axis(ids):
    """It slices axis 1, so that one text without a batch fails, and with more axes in front it is
    not the tokens that are shifted. Slice the last axis: ids[..., :-1], with three dots."""
    return ids[:, :-1], ids[:, 1:]


@pairs.mistake
def targets_not_shifted(ids):
    """Inputs and targets are the same tokens: nothing is shifted, so the model would learn to copy.
    The targets begin one token later: ids[..., 1:]."""
    return ids[..., :-1], ids[..., :-1]


@pairs.mistake
def both_without_the_first(ids):
    """Both are the texts without their first token: the inputs hold the answer. The inputs are all
    but the last token, ids[..., :-1]."""
    return ids[..., 1:], ids[..., 1:]


@pairs.mistake
def nothing_removed(ids):
    """Both are the whole texts: nothing is shifted or cut off. Leave out the last token of the
    inputs, ids[..., :-1], and the first of the targets, ids[..., 1:]."""
    return ids, ids


@pairs.mistake
def inputs_too_long(ids):
    """The inputs keep the last token, which has no target: they are one longer than the targets.
    Leave it out: ids[..., :-1]."""
    return ids, ids[..., 1:]


@pairs.mistake
def targets_too_long(ids):
    """The targets keep the first token, so they are one longer and not shifted. Leave it out:
    ids[..., 1:]."""
    return ids[..., :-1], ids


def rolled(ids: np.ndarray, axis: int | None = -1) -> np.ndarray:
    return np.roll(ids, -1, axis=axis)


@pairs.mistake
def wraps_round(ids):
    """np.roll gives the last token the first one as its target: the end of a text would predict its
    beginning. Leave the last token out, both have length T - 1: ids[..., :-1], ids[..., 1:]."""
    return ids, rolled(ids)


@pairs.mistake
def wraps_round_without_an_axis(ids):
    """np.roll without an axis carries the first token of a sentence into the one before it in the
    batch. Slice the last axis: ids[..., :-1], ids[..., 1:]."""
    return ids, rolled(ids, None)


@pairs.mistake
def wraps_the_wrong_way(ids):
    """np.roll moved the tokens to the right, the wrong direction: the target is the token before.
    It must be the one after: ids[..., 1:], without the wrapped one."""
    return ids, np.roll(ids, 1, axis=-1)


@pairs.mistake
def cut_after_rolling_right(ids):
    """The targets are shifted to the right, the wrong direction: each is the token before its
    input. The target is the token after: ids[..., 1:]."""
    return ids[..., :-1], np.roll(ids, 1, axis=-1)[..., :-1]


def filled_up(fill: int, word: str) -> None:
    """Add the mistake of keeping T tokens with this id behind the targets."""

    def function(ids):
        return ids, np.concatenate([ids[..., 1:], np.full_like(ids[..., :1], fill)], axis=-1)

    function.__name__ = f"filled_up_with_{word}"
    function.__doc__ = f"""The targets are filled up with {fill} to the length T, a token that
    nobody wrote. The last token has no target: leave it out of the inputs, ids[..., :-1], so that
    both have length T - 1."""
    pairs.mistake(function)


filled_up(0, "zero")
filled_up(-1, "minus_one")
filled_up(-100, "minus_hundred")


@pairs.mistake
def last_target_repeated(ids):
    """The last token is repeated at the end of the targets to keep the length T. It has no token
    after it: leave it out of the inputs, ids[..., :-1]; both have length T - 1."""
    return ids, np.concatenate([ids[..., 1:], ids[..., -1:]], axis=-1)


@pairs.mistake
def shifted_right_with_zero(ids):
    """The inputs are the tokens behind a 0, as a decoder reads them (shift right), and the targets
    all tokens. Here nothing is put in front: ids[..., :-1] and ids[..., 1:]."""
    return np.concatenate([np.zeros_like(ids[..., :1]), ids[..., :-1]], axis=-1), ids


@pairs.mistake
def only_the_last_is_a_target(ids):
    """Only the last token is a target. Every token but the first is one: ids[..., 1:], as many
    targets as inputs."""
    return ids[..., :-1], ids[..., -1]


@pairs.mistake
def only_the_last_with_its_axis(ids):
    """Only the last token is a target, ids[..., -1:]. Every token but the first is one:
    ids[..., 1:], as many targets as inputs."""
    return ids[..., :-1], ids[..., -1:]


@pairs.mistake
def every_other_token(ids):
    """Every other token is an input and those between are targets (a step of 2). Each token but the
    last is an input: ids[..., :-1] and ids[..., 1:]."""
    return ids[..., ::2], ids[..., 1::2]


@pairs.mistake
def halves(ids):
    """The first half of each text is the input, the second half the target. The target of each
    token is the next one: ids[..., :-1], ids[..., 1:]."""
    half = ids.shape[-1] // 2
    return ids[..., :half], ids[..., half:]


@pairs.mistake
def ids_plus_one(ids):
    """The targets are the ids plus 1: another word of the vocabulary, not the next word of the
    text. Move the position by one, not the id: ids[..., 1:]."""
    return ids[..., :-1], ids[..., :-1] + 1


@pairs.mistake
def targets_reversed(ids):
    """The targets stand in reversed order. Keep the order of the text: ids[..., 1:], not
    [..., :0:-1]."""
    return ids[..., :-1], ids[..., :0:-1]


@pairs.mistake
def flattened_first(ids):
    """The batch is flattened into one text: its axes are lost, and the last word of a sentence
    predicts the first of the next. Keep the axes in front, and slice the last: ids[..., :-1]."""
    return ids.reshape(-1)[:-1], ids.reshape(-1)[1:]


@pairs.mistake
def first_sentence_alone(ids):
    """Only the first sentence of the batch comes back. Slice the last axis of all of them:
    ids[..., :-1], ids[..., 1:]."""
    ids = ids[0] if ids.ndim > 1 else ids
    return ids[..., :-1], ids[..., 1:]


@pairs.mistake
def two_cut_off(ids):
    """Two tokens are cut off instead of one. Leave out the last of the inputs, ids[..., :-1], and
    the first of the targets, ids[..., 1:]."""
    return ids[..., :-2], ids[..., 1:-1]


@pairs.mistake
def targets_as_floats(ids):
    """The targets became floats. Ids stay whole numbers: leave out astype(float), use slices."""
    return ids[..., :-1], ids[..., 1:].astype(float)


@pairs.mistake
def both_as_floats(ids):
    """The ids became floats, as np.zeros or np.empty make them. Ids stay whole numbers: slices keep
    the dtype."""
    return ids[..., :-1].astype(float), ids[..., 1:].astype(float)


@pairs.mistake
def one_pair_per_token(ids):
    """It returns pairs, one (input, target) for each token. Return two arrays: all inputs, then all
    targets, ids[..., :-1], ids[..., 1:]."""
    return list(zip(ids[..., :-1].reshape(-1), ids[..., 1:].reshape(-1), strict=True))


@pairs.mistake
def stacked_into_one(ids):
    """Inputs and targets are stacked into one array. Return two arrays, a tuple: ids[..., :-1],
    ids[..., 1:]."""
    return np.stack([ids[..., :-1], ids[..., 1:]])


@pairs.mistake
def inputs_alone(ids):
    """Only the inputs come back: the targets are missing. Return both: ids[..., :-1],
    ids[..., 1:]."""
    return ids[..., :-1]


@pairs.mistake
def targets_alone(ids):
    """Only the targets come back: the inputs are missing. Return both: ids[..., :-1],
    ids[..., 1:]."""
    return ids[..., 1:]


@pairs.mistake
def prefixes(ids):
    """It returns a list of growing beginnings and their next tokens. All of them are learned at
    once, since each token sees only those before it: return the arrays ids[..., :-1] and
    ids[..., 1:]."""
    steps = range(1, ids.shape[-1])
    return [ids[..., :t] for t in steps], [ids[..., t] for t in steps]


# ---------------------------------------------------------------- combined_mask


def combined_mask(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """Allow each query the real tokens up to itself: (B, T) ids → (B, 1, T, T) bool.

    A padded query keeps the real tokens before it; the axis of length 1 is for the heads.
    """
    place = np.arange(ids.shape[1])
    is_past = place <= place[:, None]  # (T, T), a row for each query
    is_real = ids != pad_id  # (B, T)
    return is_past & is_real[:, None, None, :]


mask = Exercise(
    combined_mask,
    notebook="13",
    level=2,
    minutes=8,
    task="Build the mask of a decoder that reads padded sentences, this time from positions, "
    "np.arange(T), and without np.tril. A query may read a key that is not later than itself and "
    "not padding; the mask has an axis of length 1 for the heads.",
    hints=(
        "Of which token does a row tell what it may read? Which tokens does the word padding hide, "
        "those that ask or those that are read?",
        "Compare a row of positions with a column of them for the past, and the ids with pad_id "
        "for the keys; give both the axes (B, 1, T, T), and join them with &.",
        "`place = np.arange(ids.shape[1])`, then `return (place <= place[:, None]) & (ids != "
        "pad_id)[:, None, None, :]`",
    ),
)
mask.probe("a sentence of two words and padding", np.array([[5, 7, 0]]), 0)
mask.probe("two sentences of different lengths", np.array([[5, 7, 4, 9], [3, 6, 1, 1]]), 1)
mask.probe("padding in front", np.array([[2, 2, 5, 7, 6], [2, 9, 4, 8, 3], [5, 4, 2, 2, 2]]), 2)
mask.probe("no padding, and a real word 0", np.array([[0, 3, 0, 5], [4, 0, 1, 0]]), 9)
mask.probe("as many sentences as words", np.array([[4, 9, 9], [4, 5, 9], [4, 5, 6]]), 9)
mask.probe("padding between words", np.array([[3, 8, 4, 8, 5], [8, 3, 8, 8, 4]]), 8)
mask.probe("a single word", np.array([[3], [4]]), 0)
mask.probe("ids on both sides of pad_id", np.array([[1, 9, 5, 5], [5, 2, 8, 5], [9, 5, 1, 2]]), 5)


def past(T: int, offset: int = 0) -> np.ndarray:
    """(T, T): query i sees keys 0 … i + offset."""
    return np.tril(np.ones((T, T), dtype=bool), offset)


def real_keys(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """(B, 1, 1, T)."""
    return (ids != pad_id)[:, None, None, :]


def real_queries(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """(B, 1, T, 1)."""
    return (ids != pad_id)[:, None, :, None]


def square(ids: np.ndarray) -> np.ndarray:
    """All allowed, (B, 1, T, T)."""
    return np.ones((len(ids), 1, ids.shape[1], ids.shape[1]), dtype=bool)


@mask.mistake
def either_instead_of_both(ids, pad_id):
    """The two masks are joined with "or": a key counts as soon as either allows it, so that almost
    nothing is hidden (~(is_padding & is_future) is the same). Both must allow it: use "and", &."""
    return past(ids.shape[1]) | real_keys(ids, pad_id)


@mask.mistake
def exclusive_or(ids, pad_id):
    """The two masks are joined with exclusive or (^, !=): a key counts where just one allows it.
    Both must allow it: use "and", &."""
    return past(ids.shape[1]) ^ real_keys(ids, pad_id)


@mask.mistake
def padded_queries_too(ids, pad_id):
    """The rows of padded queries are hidden as well, so that those rows are empty, and softmax
    gives nan. Padding hides keys only, the columns: (ids != pad_id)[:, None, None, :]."""
    return past(ids.shape[1]) & real_keys(ids, pad_id) & real_queries(ids, pad_id)


@mask.mistake
def queries_instead_of_keys(ids, pad_id):
    """Padding hides the queries, the rows, instead of the keys, the columns: padded keys are still
    read, and the rows of padding are empty. The keys are the last axis:
    (ids != pad_id)[:, None, None, :]."""
    return past(ids.shape[1]) & real_queries(ids, pad_id)


@mask.mistake
def all_inverted(ids, pad_id):
    """The mask is inverted: it is True where a key is hidden. Here True means that attention is
    allowed (nn.MultiheadAttention has it the other way round): use ~, or the other comparisons."""
    return ~(past(ids.shape[1]) & real_keys(ids, pad_id))


@mask.mistake
def padding_inverted(ids, pad_id):
    """The padding part is inverted: only padded keys are allowed. Real tokens are those where
    ids != pad_id, not ==."""
    return past(ids.shape[1]) & ~real_keys(ids, pad_id)


@mask.mistake
def future_allowed(ids, pad_id):
    """The causal part points the wrong way: it allows the future (triu, upper triangle) and hides
    the past. A query sees keys up to itself, key ≤ query: the lower triangle, tril."""
    return past(ids.shape[1]).T & real_keys(ids, pad_id)


@mask.mistake
def only_the_future(ids, pad_id):
    """The causal part is inverted: it allows the future and hides the past (triu with k=1, or ~ too
    much). A query sees itself and earlier keys: key ≤ query, tril."""
    return ~past(ids.shape[1]) & real_keys(ids, pad_id)


@mask.mistake
def both_inverted(ids, pad_id):
    """Both parts are inverted before they are joined: only padded keys of the future are allowed.
    True means allowed: key ≤ query, and ids != pad_id."""
    return ~past(ids.shape[1]) & ~real_keys(ids, pad_id)


@mask.mistake
def hides_itself(ids, pad_id):
    """A query does not see itself: the diagonal is missing (< instead of <=, tril with k=-1), and
    the first row is empty. Query i sees keys 0 … i, itself included."""
    return past(ids.shape[1], -1) & real_keys(ids, pad_id)


@mask.mistake
def sees_one_ahead(ids, pad_id):
    """A query sees one key of the future, the very next token (tril with k=1, off by one). It sees
    keys 0 … i, up to itself: k=0."""
    return past(ids.shape[1], 1) & real_keys(ids, pad_id)


@mask.mistake
def causal_alone(ids, pad_id):
    """Padding is not hidden: only the causal part is there, and pad_id is ignored. Also hide the
    padded keys: & (ids != pad_id)[:, None, None, :]."""
    return past(ids.shape[1]) & square(ids)


@mask.mistake
def causal_of_one_sentence(ids, pad_id):
    """It is the causal mask alone, (T, T), without padding and batch: ids and pad_id are ignored.
    Join it with the padding of each sentence: & (ids != pad_id)[:, None, None, :]."""
    return past(ids.shape[1])


@mask.mistake
def padding_alone(ids, pad_id):
    """The future is not hidden: only the padding part is there, the causal one is missing. Also
    allow only keys up to the query: & the causal mask, key ≤ query."""
    return real_keys(ids, pad_id) & square(ids)


@mask.mistake
def padding_not_stretched(ids, pad_id):
    """It is the padding mask alone, (B, 1, 1, T), one row instead of one for each query: the causal
    part is missing, so the future is open. Join it with the causal mask (T, T): (B, 1, T, T)."""
    return real_keys(ids, pad_id)


@mask.mistake
def padding_of_notebook_06(ids, pad_id):
    """It is the padding mask alone, (B, 1, T), without the causal part and the axis for the heads.
    Insert that axis and join it with the causal mask: (B, 1, T, T)."""
    return real_keys(ids, pad_id)[:, 0]


@mask.mistake
def no_axis_for_the_heads(ids, pad_id):
    """The shape is (B, T, T): the axis for the heads is missing, so that the batch would be taken
    for the heads. Insert an axis of length 1: (B, 1, T, T), mask[:, None]."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id))[:, 0]


@mask.mistake
def heads_in_front(ids, pad_id):
    """The axis for the heads stands in front of the batch, (1, B, T, T): the padding has one new
    axis too few, [:, None]. The axis comes after the batch, (B, 1, T, T): [:, None, None, :]."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id))[:, 0][None]


@mask.mistake
def heads_at_the_end(ids, pad_id):
    """The axis for the heads stands at the end, (B, T, T, 1). It comes after the batch:
    (B, 1, T, T)."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id))[:, 0][..., None]


@mask.mistake
def a_row_for_each_head(ids, pad_id):
    """The axis of the heads has length T. It has length 1, so that it broadcasts to any number of
    heads: (B, 1, T, T)."""
    made = past(ids.shape[1]) & real_keys(ids, pad_id)
    return np.repeat(made, ids.shape[1], axis=1)


@mask.mistake
def queries_and_keys_transposed(ids, pad_id):
    """Queries and keys are swapped: the mask is transposed. Rows (axis -2) are the queries, columns
    (the last axis) the keys."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id)).swapaxes(-1, -2)


@mask.mistake
def padding_broadcast_over_the_batch(ids, pad_id):
    """The padding (B, T) is joined without new axes: it broadcasts along the wrong axes, as if the
    sentences were queries. Give it the axes (B, 1, 1, T): [:, None, None, :]."""
    made = past(ids.shape[1]) & (ids != pad_id)
    return np.broadcast_to(made, (len(ids), 1, *made.shape)).copy()


@mask.mistake
def first_sentence_for_all(ids, pad_id):
    """The padding of the first sentence is used for the whole batch. Each sentence has its own:
    ids, not ids[0]."""
    return past(ids.shape[1]) & real_keys(ids[:1], pad_id) & square(ids)


@mask.mistake
def one_sentence_for_all(ids, pad_id):
    """A key is hidden for the whole batch as soon as one sentence has padding there (all over
    axis 0). Each sentence has its own mask: keep the batch axis."""
    return past(ids.shape[1]) & (ids != pad_id).all(axis=0) & square(ids)


@mask.mistake
def first_sentence_comes_back(ids, pad_id):
    """Only the mask of the first sentence comes back: the batch is lost. Keep it: (B, 1, T, T)."""
    return past(ids.shape[1]) & real_keys(ids[:1], pad_id)


def padding_is(token: int, word: str) -> None:
    """Add the mistake of a fixed padding id."""

    def function(ids, pad_id):
        return past(ids.shape[1]) & real_keys(ids, token)

    function.__name__ = f"padding_is_{word}"
    function.__doc__ = f"""Padding is taken to be the id {token}, hard-coded: pad_id is ignored, and
    {token} may be a real word. Compare with pad_id: ids != pad_id."""
    mask.mistake(function)


padding_is(0, "zero")
padding_is(1, "one")


@mask.mistake
def nonzero_ids(ids, pad_id):
    """Ids above pad_id count as real, the smaller ones as padding (> instead of !=). Any id but
    pad_id is a real word: ids != pad_id."""
    return past(ids.shape[1]) & (ids > pad_id)[:, None, None, :]


@mask.mistake
def smaller_ids(ids, pad_id):
    """Ids below pad_id count as real, the larger ones as padding (< instead of !=). Any id but
    pad_id is a real word: ids != pad_id."""
    return past(ids.shape[1]) & (ids < pad_id)[:, None, None, :]


@mask.mistake
def padding_only_at_the_end(ids, pad_id):
    """It counts the real tokens and takes the first so many keys as real (a length): wrong where
    padding is in front or between. Compare each id: ids != pad_id."""
    lengths = (ids != pad_id).sum(axis=1)
    real = np.arange(ids.shape[1]) < lengths[:, None]
    return past(ids.shape[1]) & real[:, None, None, :]


@mask.mistake
def everything_after_the_first_padding(ids, pad_id):
    """Everything behind the first padding is hidden, real words too, where padding is in front or
    between. Compare each id: ids != pad_id."""
    real = np.logical_and.accumulate(ids != pad_id, axis=1)
    return past(ids.shape[1]) & real[:, None, None, :]


@mask.mistake
def own_key_always(ids, pad_id):
    """Every query sees itself, even where it is padding: the diagonal is opened. Padding is hidden
    as a key everywhere: & after all else, no eye."""
    T = ids.shape[1]
    return (past(T) & real_keys(ids, pad_id)) | np.eye(T, dtype=bool)


@mask.mistake
def padded_queries_see_all(ids, pad_id):
    """Padded queries see every key. They are left alone: they see the real keys up to themselves,
    as other queries do."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id)) | ~real_queries(ids, pad_id)


@mask.mistake
def empty_rows_opened(ids, pad_id):
    """A query without an allowed key sees all keys. Leave its row empty: the masked softmax gives
    it weights of zero."""
    made = past(ids.shape[1]) & real_keys(ids, pad_id)
    return made | ~made.any(axis=-1, keepdims=True)


@mask.mistake
def empty_rows_see_the_first(ids, pad_id):
    """The first key is always allowed, padding or not (column 0 is opened). Padding is hidden
    everywhere; an empty row stays empty."""
    made = (past(ids.shape[1]) & real_keys(ids, pad_id)).copy()
    made[..., 0] = True
    return made


@mask.mistake
def as_numbers(ids, pad_id):
    """The mask holds numbers, 1 and 0, not True and False (a product or astype). Join truth values
    with &, or end with astype(bool)."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id)).astype(float)


@mask.mistake
def as_whole_numbers(ids, pad_id):
    """The mask holds whole numbers, 1 and 0, not True and False (a product, astype(int)). Join
    truth values with &, or end with astype(bool)."""
    return (past(ids.shape[1]) & real_keys(ids, pad_id)).astype(int)


@mask.mistake
def minus_infinity(ids, pad_id):
    """It is an additive mask, 0 and -inf, to be added to the scores. Return truth values, True
    where attention is allowed."""
    return np.where(past(ids.shape[1]) & real_keys(ids, pad_id), 0, -np.inf)


@mask.mistake
def minus_a_billion(ids, pad_id):
    """It is an additive mask, 0 and -1e9, to be added to the scores. Return truth values, True
    where attention is allowed."""
    return np.where(past(ids.shape[1]) & real_keys(ids, pad_id), 0, -1e9)


@mask.mistake
def itself_and_the_one_before(ids, pad_id):
    """A query sees only itself and the token before (a window). It sees all keys up to itself, from
    the first on."""
    T = ids.shape[1]
    return past(T) & ~past(T, -2) & real_keys(ids, pad_id)


@mask.mistake
def itself_alone(ids, pad_id):
    """A query sees only itself, the diagonal (== instead of <=, eye). It sees all keys up to
    itself: key ≤ query."""
    return np.eye(ids.shape[1], dtype=bool) & real_keys(ids, pad_id)


@mask.mistake
def nothing_hidden(ids, pad_id):
    """Everything is allowed: neither the future nor padding is hidden. Join the causal mask and
    ids != pad_id with &."""
    return square(ids)


@mask.mistake
def batch_flattened(ids, pad_id):
    """The padding is reshaped so that sentences and words are mixed (reshape, .T) instead of given
    new axes. Use [:, None, None, :], which keeps each sentence together."""
    keys = (ids != pad_id).T.reshape(len(ids), 1, 1, -1)
    return past(ids.shape[1]) & keys


# ---------------------------------------------------------------- smoothed_loss


def smoothed_loss(
    logits: np.ndarray, targets: np.ndarray, pad_id: int, smoothing: float = 0.1
) -> float:
    """Cross-entropy with label smoothing: (B, T, V), (B, T) → float, padding left out.

    The target gets 1 - smoothing, and `smoothing` is shared evenly by all V tokens. In nats.
    Szegedy et al. (2016); paper, section 5.4.
    """
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))  # (B, T, V)
    of_target = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]  # (B, T)
    loss = -(1 - smoothing) * of_target - smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


smoothed = Exercise(
    smoothed_loss,
    notebook="13",
    level=2,
    minutes=10,
    task="Write the loss with label smoothing: the target counts 1 - smoothing, and the rest is "
    "shared evenly by all V tokens, the target among them. Average over the tokens that are not "
    "padding.",
    hints=(
        "With smoothing 0.1 and V = 5, which share of the answer should each of the five tokens "
        "get?",
        "Compute log p of all tokens. The loss of a place is 1 - smoothing times -log p of the "
        "target, plus smoothing times the mean of -log p over the vocabulary.",
        "`loss = -(1 - smoothing) * log_p_of_target - smoothing * log_p.mean(axis=-1)`, then "
        "`return float(loss[targets != pad_id].mean())`",
    ),
)
two_words = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1]]])  # (1, 2, 4)
with_padding = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]]])
smoothed.probe("two words", two_words, np.array([[0, 2]]), 3, 0.1)
smoothed.probe("no smoothing", two_words, np.array([[0, 2]]), 3, 0.0)
smoothed.probe("two words and padding", with_padding, np.array([[0, 2, 3]]), 3, 0.2)
smoothed.probe(
    "sentences of different lengths", normal(2, 4, 7), np.array([[0, 6, 3, 2], [5, 2, 2, 2]]), 2
)
smoothed.probe("padding in front", normal(2, 3, 6), np.array([[5, 0, 4], [5, 5, 1]]), 5, 0.3)
smoothed.probe(
    "as many sentences and tokens as words",
    2 * normal(3, 3, 3),
    np.array([[1, 2, 0], [0, 2, 1], [2, 0, 0]]),
    2,
    0.25,
)
smoothed.probe("everything smoothed", normal(2, 3, 5), np.array([[1, 0, 4], [2, 2, 0]]), 3, 1.0)
smoothed.probe(
    "logits of ±1,000",
    np.array([[[1000.0, 999.0, -1000.0], [-1000.0, -999.0, -1001.0]]]),
    np.array([[1, 0]]),
    2,
    0.1,
)


def log_probs(logits: np.ndarray, axis: int = -1) -> np.ndarray:
    """Stable logarithms of softmax."""
    z = logits - logits.max(axis=axis, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))


def at_targets(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The entry of each target: (B, T, V) → (B, T)."""
    return np.take_along_axis(scores, targets[..., None], -1)[..., 0]


def softened(logits: np.ndarray, targets: np.ndarray, smoothing: float) -> np.ndarray:
    """The loss of each place, padding too: (B, T)."""
    log_p = log_probs(logits)
    return -(1 - smoothing) * at_targets(log_p, targets) - smoothing * log_p.mean(axis=-1)


@smoothed.mistake
def smoothing_ignored(logits, targets, pad_id, smoothing=0.1):
    """smoothing is ignored: this is the plain cross-entropy. Give the target 1 - smoothing, and
    share smoothing evenly by all V tokens."""
    return float(softened(logits, targets, 0)[targets != pad_id].mean())


@smoothed.mistake
def always_a_tenth(logits, targets, pad_id, smoothing=0.1):
    """smoothing is fixed at 0.1, whatever is passed in. Use the argument smoothing."""
    return float(softened(logits, targets, 0.1)[targets != pad_id].mean())


@smoothed.mistake
def shared_by_the_others(logits, targets, pad_id, smoothing=0.1):
    """smoothing is shared by the other tokens only, smoothing / (V - 1) each, without the target.
    Here all V tokens share it, the target too: smoothing / V each, the mean over the
    vocabulary."""
    log_p = log_probs(logits)
    mine, V = at_targets(log_p, targets), logits.shape[-1]
    loss = -(1 - smoothing) * mine - smoothing * (log_p.sum(axis=-1) - mine) / (V - 1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def without_the_targets_share(logits, targets, pad_id, smoothing=0.1):
    """The target gets only 1 - smoothing, without its own share of the rest: the shares sum to less
    than 1. All V tokens get smoothing / V, the target too."""
    log_p = log_probs(logits)
    mine, V = at_targets(log_p, targets), logits.shape[-1]
    loss = -(1 - smoothing) * mine - smoothing * (log_p.sum(axis=-1) - mine) / V
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def target_keeps_all(logits, targets, pad_id, smoothing=0.1):
    """The target still counts 1: the factor 1 - smoothing is missing, so the shares sum to more
    than 1. Multiply -log p of the target by 1 - smoothing."""
    log_p = log_probs(logits)
    loss = -at_targets(log_p, targets) - smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def shares_swapped(logits, targets, pad_id, smoothing=0.1):
    """The two shares are swapped: the target counts smoothing, and all tokens share 1 - smoothing.
    It is the other way round: 1 - smoothing for the target."""
    return float(softened(logits, targets, 1 - smoothing)[targets != pad_id].mean())


@smoothed.mistake
def sum_over_the_vocabulary(logits, targets, pad_id, smoothing=0.1):
    """Every token gets all of smoothing: the sum over the vocabulary is not divided by V. Each gets
    smoothing / V: use the mean over the last axis."""
    log_p = log_probs(logits)
    loss = -(1 - smoothing) * at_targets(log_p, targets) - smoothing * log_p.sum(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smooth_part_plus(logits, targets, pad_id, smoothing=0.1):
    """The smooth part has the wrong sign: the mean of log p is added, not subtracted. Both parts
    are -log p: a minus in front of each."""
    log_p = log_probs(logits)
    loss = -(1 - smoothing) * at_targets(log_p, targets) + smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_loss_negative(logits, targets, pad_id, smoothing=0.1):
    """The loss is negative: the minus sign is missing. Average -log p, for both parts."""
    return -float(softened(logits, targets, smoothing)[targets != pad_id].mean())


@smoothed.mistake
def smoothed_padding_counts(logits, targets, pad_id, smoothing=0.1):
    """Padding is part of the average: pad_id is ignored. Keep the places where
    targets != pad_id."""
    return float(softened(logits, targets, smoothing).mean())


@smoothed.mistake
def smoothed_padding_in_the_smooth_part(logits, targets, pad_id, smoothing=0.1):
    """The smooth part is averaged over padding too; only the part of the targets leaves it out.
    Leave padding out of both: loss[targets != pad_id]."""
    log_p = log_probs(logits)
    sharp = at_targets(log_p, targets)[targets != pad_id].mean()
    return float(-(1 - smoothing) * sharp - smoothing * log_p.mean())


@smoothed.mistake
def smoothed_divides_by_all(logits, targets, pad_id, smoothing=0.1):
    """The loss of padding is set to 0 but still counted in the average. Divide by the number of
    real tokens, not of all."""
    return float((softened(logits, targets, smoothing) * (targets != pad_id)).mean())


@smoothed.mistake
def smoothed_sum(logits, targets, pad_id, smoothing=0.1):
    """The losses are summed. Take the mean over the real tokens."""
    return float(softened(logits, targets, smoothing)[targets != pad_id].sum())


@smoothed.mistake
def smoothed_padding_is_zero(logits, targets, pad_id, smoothing=0.1):
    """The tokens with id 0 are left out: pad_id is ignored, and 0 may be a real word. Compare with
    pad_id."""
    return float(softened(logits, targets, smoothing)[targets != 0].mean())


@smoothed.mistake
def smoothed_keeps_padding(logits, targets, pad_id, smoothing=0.1):
    """The mask is inverted: only padding counts. Keep targets != pad_id, not ==."""
    return float(softened(logits, targets, smoothing)[targets == pad_id].mean())


@smoothed.mistake
def padding_gets_no_share(logits, targets, pad_id, smoothing=0.1):
    """The token pad_id gets no share of smoothing: it is left out of the vocabulary. Here all V
    tokens share it evenly; padding concerns places, where the target is pad_id."""
    log_p = log_probs(logits)
    rest = np.delete(log_p, pad_id, axis=-1).mean(axis=-1)
    loss = -(1 - smoothing) * at_targets(log_p, targets) - smoothing * rest
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def raw_logits_in_the_smooth_part(logits, targets, pad_id, smoothing=0.1):
    """The smooth part averages the logits themselves: the softmax is missing there. Average log p:
    logits minus the log of the sum of their exponentials."""
    log_p = log_probs(logits)
    loss = -(1 - smoothing) * at_targets(log_p, targets) - smoothing * logits.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_without_softmax(logits, targets, pad_id, smoothing=0.1):
    """The softmax is missing: the logits are taken for log p. Subtract the log of the sum of their
    exponentials."""
    loss = -(1 - smoothing) * at_targets(logits, targets) - smoothing * logits.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smooths_the_probabilities(logits, targets, pad_id, smoothing=0.1):
    """The prediction is smoothed, (1 - smoothing) · p + smoothing / V inside the log. Smooth the
    target instead: a mean of -log p with the shares as weights."""
    p = (1 - smoothing) * np.exp(log_probs(logits)) + smoothing / logits.shape[-1]
    with np.errstate(divide="ignore"):
        loss = -np.log(at_targets(p, targets))
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_over_the_tokens(logits, targets, pad_id, smoothing=0.1):
    """The softmax runs over the tokens of the sentence, axis=1. The vocabulary is the last axis,
    axis=-1."""
    log_p = log_probs(logits, axis=1)
    loss = -(1 - smoothing) * at_targets(log_p, targets) - smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_overflow(logits, targets, pad_id, smoothing=0.1):
    """exp overflows for large logits, and the loss becomes nan or infinite. Subtract the largest
    logit along the last axis first."""
    e = np.exp(logits)
    log_p = np.log(e / e.sum(axis=-1, keepdims=True))
    loss = -(1 - smoothing) * at_targets(log_p, targets) - smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_in_bits(logits, targets, pad_id, smoothing=0.1):
    """The logarithm has base 2 (np.log2): the loss is in bits. Use np.log, the natural one."""
    return float(softened(logits, targets, smoothing)[targets != pad_id].mean() / np.log(2))


@smoothed.mistake
def smoothed_per_sentence(logits, targets, pad_id, smoothing=0.1):
    """Each sentence is averaged first, then the sentences: words of short ones count more. Average
    once, over all real tokens: loss[targets != pad_id].mean()."""
    real, loss = targets != pad_id, softened(logits, targets, smoothing)
    return float(np.mean([row[kept].mean() for row, kept in zip(loss, real, strict=True)]))


@smoothed.mistake
def smoothed_losses(logits, targets, pad_id, smoothing=0.1):
    """It returns the loss of each token. Take their mean, one number."""
    return softened(logits, targets, smoothing)[targets != pad_id]


@smoothed.mistake
def smoothed_perplexity(logits, targets, pad_id, smoothing=0.1):
    """It returns exp of the loss, the perplexity. Return the mean itself."""
    return float(np.exp(softened(logits, targets, smoothing)[targets != pad_id].mean()))


# ---------------------------------------------------------------- small models to train


@cache
def models() -> SimpleNamespace:
    """The classes of the little models."""
    import torch
    from torch import nn

    class Scores(nn.Module):
        """Two parameters, the logits of two words, whatever is read; `slope` makes them steep."""

        def __init__(self, a: float, b: float, slope: float) -> None:
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.tensor(float(value))) for value in (a, b))
            self.slope = slope

        def forward(self, x: Tensor) -> Tensor:
            return self.slope * torch.stack([self.a, self.b]).repeat(*x.shape, 1)

    class SameDropout(nn.Dropout):
        """Dropout that always drops the same: every other feature."""

        def forward(self, x: Tensor) -> Tensor:
            if not self.training or not self.p:
                return x
            kept = torch.arange(x.shape[-1]) % 2 == 0
            return x * kept / (1 - self.p)

    class Seen(nn.Module):
        """Counts in a buffer what it has seen in train mode, as nn.BatchNorm gathers means."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.count += self.training
            return x

    class Network(nn.Module):
        """Two layers, with dropout in a part, and half of the result in train mode."""

        def __init__(self, vocab_size: int, width: int, p: float) -> None:
            super().__init__()
            self.p = p
            self.table = nn.Embedding(vocab_size, width)
            inner = nn.Sequential(nn.Tanh(), SameDropout(p), Seen())
            self.body = nn.Sequential(nn.Linear(width, 6), inner, nn.Linear(6, vocab_size))

        def forward(self, x: Tensor) -> Tensor:
            y = self.body(self.table(x))
            return y * (1 - self.p) if self.training else y

    return SimpleNamespace(Scores=Scores, Network=Network)


def drawn(model: nn.Module, seed: int) -> nn.Module:
    """The model with weights of this seed."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(generator=generator)
    return model


def two_numbers(a: float = 0.0, b: float = 0.0, slope: float = 1.0) -> nn.Module:
    """A model for the pencil: the logits of its two words are a and b everywhere."""
    return models().Scores(a, b, slope)


def bigrams(vocab_size: int, seed: int = 1) -> nn.Module:
    """A table: one row of logits for each token that is read."""
    from torch import nn

    return drawn(nn.Embedding(vocab_size, vocab_size), seed)


def network(vocab_size: int = 7, p: float = 0.0, seed: int = 2) -> nn.Module:
    """Embedding, two linear layers, dropout."""
    return drawn(models().Network(vocab_size, 5, p), seed)


def batch(x: list[list[int]], y: list[list[int]]) -> tuple[Tensor, Tensor]:
    """A pair of tensors of ids."""
    import torch

    return torch.tensor(x), torch.tensor(y)


def batches_of(vocab_size: int, *shapes: tuple[int, int]) -> list[tuple[Tensor, Tensor]]:
    """Pairs of random ids (B, T), the same at each call."""
    random = np.random.default_rng(vocab_size + 10 * len(shapes))
    drawn_ids = [random.integers(vocab_size, size=(2, *shape)) for shape in shapes]
    return [batch(x.tolist(), y.tolist()) for x, y in drawn_ids]


def called(fn: Callable, *args: Any) -> Any:
    """What the answer itself returns: it gets the model, not a copy, and leaves no mode behind."""
    import torch

    with torch.enable_grad():
        return getattr(fn, "function", fn)(*args)


def weights(model: nn.Module) -> list[np.ndarray]:
    """The values of all parameters."""
    return [p.detach().numpy().copy() for p in model.parameters()]


def everywhere(model: nn.Module, training: bool) -> bool:
    """Whether the model and all its parts are in train mode, or all in eval mode."""
    return all(part.training == training for part in model.modules())


def watched(model: nn.Module) -> list[tuple[tuple[int, ...], bool, bool]]:
    """Fills with the shape of x, train mode in all parts, eval mode in all parts, at each call."""
    seen: list[tuple[tuple[int, ...], bool, bool]] = []

    def note(model: nn.Module, inputs: tuple) -> None:
        shape = tuple(getattr(inputs[0], "shape", ()))
        seen.append((shape, everywhere(model, True), everywhere(model, False)))

    model.register_forward_pre_hook(note)
    return seen


# ---------------------------------------------------------------- train


def train(model: nn.Module, batches: list, lr: float) -> list[float]:
    """Take a step of gradient descent with momentum 0.9 for each batch (x, y); the losses before.

    model(x) gives logits (B, T, V), y holds the targets (B, T); the loss is their mean
    cross-entropy in nats. By hand, without an optimizer of PyTorch. Sutskever et al. (2013).
    """
    import torch
    from torch.nn.functional import cross_entropy

    parameters, losses = list(model.parameters()), []
    velocities = [torch.zeros_like(p) for p in parameters]
    model.train()
    for x, y in batches:
        loss = cross_entropy(model(x).flatten(0, 1), y.flatten())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p, v in zip(parameters, velocities, strict=True):
                v.mul_(0.9).add_(p.grad)
                p.sub_(lr * v)
        losses.append(loss.item())
    return losses


def load_optimizers() -> None:
    """Load what PyTorch loads with its first optimizer; it takes seconds."""
    import torch

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


training = Exercise(
    train,
    notebook="13",
    level=3,
    minutes=20,
    task="Train a model, this time without torch.optim: keep a velocity for each parameter, and "
    "for each batch let v = 0.9 v + gradient, then p = p - lr v, in place. Put the model in train "
    "mode, and return the losses as floats.",
    hints=(
        "What must be gone before backward adds the gradients of this batch? And what must "
        "stay from batch to batch?",
        "Before the loop: model.train(), a list of the parameters, a zero tensor for each. In it: "
        "the mean cross-entropy of logits (B·T, V) and targets (B·T); zero_grad, backward; then, "
        "under torch.no_grad(), new velocities and steps.",
        "`for p, v in zip(parameters, velocities): v.mul_(0.9).add_(p.grad); p.sub_(lr * v)`",
    ),
    backends=("torch",),
    seconds=3.0,
    trains=True,
    prepare=load_optimizers,
)


@training.experiment("what the model is asked")
def what_is_asked(fn: Callable) -> dict:
    model = network(p=0.5).eval()
    seen, shapes = watched(model), [(2, 3), (1, 4), (3, 2)]
    called(fn, model, batches_of(7, *shapes), 0.1)
    asked = [shape for shape, _, _ in seen]
    return {
        "model(x) is called for every batch": set(shapes) <= set(asked),
        "the batches come in the given order": [s for s in shapes if s in asked]
        == list(dict.fromkeys(asked)),
        "each batch comes once": asked == shapes,
        "the model and all its parts are in train mode": all(mode for _, mode, _ in seen),
    }


@training.experiment("one step with lr=1 from logits a = b = 0, for targets 0 0 0 1")
def one_step(fn: Callable) -> dict:
    model = two_numbers()
    losses = called(fn, model, [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]])], 1.0)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("a second step, with momentum, for six targets 1")
def two_steps(fn: Callable) -> dict:
    model = two_numbers()
    steps = [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]]), batch([[0, 1], [1, 1], [0, 0]], [[1, 1]] * 3)]
    losses = called(fn, model, steps, 1.0)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("five batches of different sizes")
def a_table(fn: Callable) -> dict:
    model = bigrams(5)
    losses = called(fn, model, batches_of(5, (2, 3), (1, 4), (3, 2), (2, 6), (4, 1)), 0.3)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("a network of two layers")
def two_layers(fn: Callable) -> dict:
    model = network()
    losses = called(fn, model, batches_of(7, (2, 3), (3, 5), (2, 2), (1, 6)), 0.2)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("small and large steps")
def learning_rates(fn: Callable) -> dict:
    found = {}
    for lr in (0.01, 2.0):
        model = bigrams(4)
        found[f"losses for lr={lr}"] = called(fn, model, batches_of(4, *[(2, 3)] * 3), lr)
        found[f"weights for lr={lr}"] = weights(model)
    return found


@training.experiment("steep losses")
def steep(fn: Callable) -> dict:
    model = two_numbers(0.5, -0.5, slope=40.0)
    batches = [batch([[0, 0, 0]], [[1, 1, 0]]), batch([[0, 0]], [[1, 0]])]
    losses = called(fn, model, batches, 0.1)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("a model in eval mode, with dropout")
def from_eval_mode(fn: Callable) -> dict:
    model = network(p=0.5).eval()
    losses = called(fn, model, batches_of(7, (2, 3), (1, 4)), 0.1)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("the mode afterwards")
def mode_afterwards(fn: Callable) -> dict:
    model = network(p=0.5)
    called(fn, model, batches_of(7, (2, 3), (1, 4)), 0.1)
    return {"a model that was in train mode is in train mode": everywhere(model, True)}


@training.experiment("gradients left from before")
def stale_gradients(fn: Callable) -> dict:
    import torch

    model = bigrams(5)
    model.weight.grad = torch.ones(5, 5)
    losses = called(fn, model, batches_of(5, (2, 3), (3, 2)), 0.1)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("as many tokens as words in the vocabulary")
def square_logits(fn: Callable) -> dict:
    model = bigrams(3)
    losses = called(fn, model, batches_of(3, (2, 3), (3, 3), (1, 3)), 0.3)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("two models, one after the other")
def two_models(fn: Callable) -> dict:
    found = {}
    for name in ("first", "second"):
        model, batches = bigrams(4), batches_of(4, (2, 3), (2, 2))
        copies = [(x.clone(), y.clone()) for x, y in batches]
        found[f"losses of the {name}"] = called(fn, model, batches, 0.5)
        found[f"weights of the {name}"] = weights(model)
        found[f"batches of the {name} unchanged"] = all_equal(copies, batches)
    return found


def all_equal(a: list, b: list) -> bool:
    """Whether two lists of batches hold the same."""
    import torch

    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(torch.equal(x, z) for p in pairs for x, z in zip(*p))  # noqa: B905


@training.experiment("why nothing is learned")
def why_nothing_is_learned(fn: Callable) -> Any:
    """Tells apart what has the same effect: nothing for an answer whose weights do change."""
    model, computed = two_numbers(), []
    model.a.register_hook(lambda gradient: computed.append(1))
    called(fn, model, [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]])], 1.0)
    if model.a.item() != 0:
        return Untested()
    left = model.a.grad is not None and model.a.grad.item() != 0
    return {"the gradient is computed (backward)": bool(computed), "the gradient is left": left}


@training.experiment("what PyTorch says where it stops")
def where_it_stops(fn: Callable) -> Any:
    """Tells errors apart by their text: nothing for an answer that returns."""
    return error_of(fn, two_numbers(), [batch([[1, 0, 0], [0, 1, 1]], [[0, 0, 1], [1, 0, 0]])], 1.0)


def error_of(fn: Callable, *args: Any) -> Any:
    """The error that an answer raises, Untested without one."""
    try:
        called(fn, *args)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:70]}
    return Untested()


# A learner's loop, of which each mistake replaces a part.


class Descent:
    """torch.optim.SGD in few lines, as mistakes train by the hundred: half the time."""

    def __init__(self, parameters: Any, lr: float, momentum: float = 0.9, **changes: Any) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.changes = changes  # weight_decay, dampening, nesterov, maximize
        self.velocities: dict[int, Tensor] = {}

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        for i, p in enumerate(self.parameters):
            if p.grad is not None:
                p.data.sub_(self.lr * self.direction(i, p.data, p.grad))

    def direction(self, i: int, p: Tensor, gradient: Tensor) -> Tensor:
        g = -gradient if self.changes.get("maximize") else gradient
        g = g + self.changes.get("weight_decay", 0) * p
        new = (1 - self.changes.get("dampening", 0)) * g  # the first gradient is taken whole
        v = self.momentum * self.velocities[i] + new if i in self.velocities else g.clone()
        self.velocities[i] = v
        return g + self.momentum * v if self.changes.get("nesterov") else v


def sgd(parameters: Any, lr: float, **changes: Any) -> Descent:
    """The optimizer that is asked for, with changes."""
    return Descent(parameters, lr, **changes)


def mean_loss(logits: Tensor, y: Tensor, **changes: Any) -> Tensor:
    """Mean cross-entropy over all tokens, with changes."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.flatten(0, 1), y.flatten(), **changes)


def loop(
    model: nn.Module,
    batches: list,
    lr: float,
    make: Callable = sgd,
    loss_of: Callable = mean_loss,
    mode: Callable | None = None,
    clear: Callable | None = None,
    learn: Callable | None = None,
    told: Callable = float,
    ask: Callable | None = None,
) -> list:
    """Train; each argument is a part of the loop that a mistake replaces.

    `make` the optimizer, `mode` before the loop, `clear` the gradients, `ask` the model for logits,
    `loss_of` them, `learn` from the loss, `told` is what is noted of it.
    """
    optimizer = make(model.parameters(), lr)
    (mode or type(model).train)(model)
    losses = []
    for i, (x, y) in enumerate(batches):
        (clear or zero)(optimizer, i)
        loss = loss_of((ask or type(model).__call__)(model, x), y)
        (learn or backward_and_step)(loss, optimizer, i)
        losses.append(told(loss))
    return losses


def zero(optimizer: Any, i: int) -> None:
    optimizer.zero_grad()


def nothing(*args: Any) -> None:
    """Left out."""


def backward_and_step(loss: Tensor, optimizer: Any, i: int) -> None:
    loss.backward()
    optimizer.step()


def variant(name: str, message: str, **parts: Callable) -> None:
    """Add a mistake of `train` that replaces parts of the loop."""

    def function(model, batches, lr):
        return loop(model, batches, lr, **parts)

    function.__name__, function.__doc__ = name, message
    training.mistake(function)


@training.mistake
def gradients_never_cleared(model, batches, lr):
    """zero_grad is missing: the gradients of all earlier batches, and those left from before, add
    up (accumulate). Clear them in every step, before backward: optimizer.zero_grad()."""
    return loop(model, batches, lr, clear=nothing)


@training.mistake
def gradients_cleared_once(model, batches, lr):
    """zero_grad is called once, before the loop only: the gradients of earlier batches add up
    (accumulate). It belongs inside the loop, once per batch, before backward."""
    model.zero_grad()
    return loop(model, batches, lr, clear=nothing)


@training.mistake
def gradients_cleared_after_the_step(model, batches, lr):
    """The gradients are cleared only after the step, so that those left from before the call count
    in the first batch. Call zero_grad before backward, in every step."""

    def learn(loss, optimizer, i):
        backward_and_step(loss, optimizer, i)
        optimizer.zero_grad()

    return loop(model, batches, lr, clear=nothing, learn=learn)


@training.mistake
def cleared_between_backward_and_step(model, batches, lr):
    """zero_grad stands between backward and step: it wipes out the gradients that step needs, and
    the weights never change. Order: zero_grad, backward, step."""

    def learn(loss, optimizer, i):
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def never_steps(model, batches, lr):
    """The weights never change: optimizer.step() is missing (or has no brackets, or comes before
    there are gradients); by hand, p = p - lr * v only renames, and a generator of parameters that
    is used up gives none. Step after backward, in place: p.sub_(lr * v)."""
    return loop(model, batches, lr, learn=lambda loss, optimizer, i: loss.backward())


@training.mistake
def backward_missing(model, batches, lr):
    """loss.backward() is missing: no gradient is computed, so step has nothing to do, and the
    weights never change. Order: zero_grad, backward, step."""
    return loop(model, batches, lr, learn=lambda loss, optimizer, i: optimizer.step())


@training.mistake
def step_before_backward(model, batches, lr):
    """step comes before backward, so it uses the gradients of the previous batch, one batch late
    (and in a network backward then fails: modified by an inplace operation). First backward, then
    step."""

    def learn(loss, optimizer, i):
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()

    return loop(model, batches, lr, clear=nothing, learn=learn)


@training.mistake
def step_before_backward_adding_up(model, batches, lr):
    """step comes before backward, and zero_grad is missing: it uses the gradients of all previous
    batches. Order: zero_grad, backward, step."""

    def learn(loss, optimizer, i):
        optimizer.step()
        loss.backward()

    return loop(model, batches, lr, clear=nothing, learn=learn)


@training.mistake
def steps_after_the_loop(model, batches, lr):
    """There is one step only, after the loop, with the gradients of all batches added up. Step for
    each batch: zero_grad, backward and step belong inside the loop."""
    optimizer = sgd(model.parameters(), lr)
    losses = loop(model, batches, lr, clear=lambda o, i: i or o.zero_grad(), learn=only_backward)
    optimizer.step()
    return losses


def only_backward(loss: Tensor, optimizer: Any, i: int) -> None:
    loss.backward()


@training.mistake
def steps_with_the_last_gradient(model, batches, lr):
    """There is one step only, after the loop (indentation), with the gradient of the last batch.
    Step for each batch, inside the loop."""
    losses = loop(model, batches, lr, learn=only_backward)
    sgd(model.parameters(), lr).step()
    return losses


@training.mistake
def one_step_for_the_mean(model, batches, lr):
    """The losses of all batches are averaged (or summed) first, with one step at the end. Take a
    step for each batch: backward and step inside the loop."""
    optimizer = sgd(model.parameters(), lr)

    def learn(loss, _, i):
        (loss / len(batches)).backward()

    losses = loop(model, batches, lr, clear=lambda o, i: i or o.zero_grad(), learn=learn)
    optimizer.step()
    return losses


@training.mistake
def steps_twice(model, batches, lr):
    """There are two steps for each batch: optimizer.step() is called twice. Once per batch."""

    def learn(loss, optimizer, i):
        backward_and_step(loss, optimizer, i)
        optimizer.step()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def backward_twice(model, batches, lr):
    """backward is called twice for each batch, so that the gradient counts double. Once per batch,
    after zero_grad."""

    def learn(loss, optimizer, i):
        loss.backward(retain_graph=True)
        backward_and_step(loss, optimizer, i)

    return loop(model, batches, lr, learn=learn)


@training.mistake
def backward_through_the_running_total(model, batches, lr):
    """backward runs on a running total of the losses, so that earlier batches count again (with
    retain_graph; in a network it fails: modified by an inplace operation). Call backward on the
    loss of this batch alone; keep loss.item() in the list."""
    total = []

    def learn(loss, optimizer, i):
        total.append(loss)
        sum(total).backward(retain_graph=True)
        optimizer.step()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def backward_through_freed_graphs(model, batches, lr):
    """backward runs on a running total of the losses, which holds the graphs of earlier batches:
    "Trying to backward through the graph a second time". Call it on the loss of this batch, and
    keep loss.item()."""
    total = []

    def learn(loss, optimizer, i):
        total.append(loss)
        sum(total).backward()
        optimizer.step()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def learns_only_from_the_first_batch(model, batches, lr):
    """Only the first batch is used: the return stands inside the loop (indentation), or there is a
    break. Go through all batches, then return the losses."""
    return loop(model, batches[:1], lr)


@training.mistake
def learns_only_from_the_last_batch(model, batches, lr):
    """Only the last batch is used: the steps stand after the loop (indentation). Learn from every
    batch, inside the loop."""
    return loop(model, batches[-1:], lr)


@training.mistake
def skips_the_last_batch(model, batches, lr):
    """The last batch is left out (off by one). Use all batches: for x, y in batches."""
    return loop(model, batches[:-1], lr)


@training.mistake
def skips_the_first_batch(model, batches, lr):
    """The first batch is left out (off by one). Use all batches: for x, y in batches."""
    return loop(model, batches[1:], lr)


@training.mistake
def backwards_through_the_batches(model, batches, lr):
    """The batches come in reversed order. Keep the order in which they are given: for x, y in
    batches."""
    return loop(model, batches[::-1], lr)


def epochs(number: int) -> None:
    """Add the mistakes of several epochs: all losses, those of the last one, their means."""

    def function(model, batches, lr):
        return loop(model, [*batches] * number, lr)

    def last(model, batches, lr):
        return function(model, batches, lr)[-len(batches) :]

    def means(model, batches, lr):
        losses = np.reshape(function(model, batches, lr), (number, -1))
        return losses.mean(axis=1).tolist()

    for made, name in (function, ""), (last, "_last_losses"), (means, "_mean_losses"):
        made.__name__ = f"epochs_{number}{name}"
        made.__doc__ = f"""It goes through the batches {number} times, as epochs. Once is asked for:
        one step for each batch, one pass."""
        training.mistake(made)


for number in (2, 3, 5, 10):
    epochs(number)


def again_and_again(number: int) -> None:
    """Add the mistake of several steps on each batch, the last loss noted."""

    def function(model, batches, lr):
        losses = loop(model, [pair for pair in batches for _ in range(number)], lr)
        return losses[number - 1 :: number]

    function.__name__ = f"{number}_steps_for_each_batch"
    function.__doc__ = f"""It learns {number} times from each batch, an inner loop. Once is asked
    for: one step per batch."""
    training.mistake(function)


for number in (2, 3, 5, 10):
    again_and_again(number)


@training.mistake
def inputs_and_targets_of_the_batch_swapped(model, batches, lr):
    """x and y are swapped: the model reads the targets and must predict the inputs. A batch is
    (x, y): model(x) against y."""
    return loop(model, [(y, x) for x, y in batches], lr)


@training.mistake
def compares_with_the_input(model, batches, lr):
    """The loss compares with the input x, not with the targets y: the model learns to copy.
    Cross-entropy of model(x) against y."""
    return loop(model, [(x, x) for x, _ in batches], lr)


@training.mistake
def shifts_again(model, batches, lr):
    """The targets are shifted once more, logits[:, :-1] against y[:, 1:]: x and y are already one
    token apart. Compare each place of model(x) with the same place of y."""

    def loss_of(logits, y):
        return mean_loss(logits[:, :-1], y[:, 1:])

    return loop(model, batches, lr, loss_of=loss_of)


@training.mistake
def cuts_x_and_y(model, batches, lr):
    """The batch is shifted once more, x[:, :-1] against y[:, 1:]: x and y are already one token
    apart. Compare model(x) with y, as they are."""
    return loop(model, [(x[:, :-1], y[:, 1:]) for x, y in batches], lr)


@training.mistake
def targets_from_x(model, batches, lr):
    """The targets are made from x, x[:, 1:], and y is never used. A batch holds both: compare
    model(x) with y."""
    return loop(model, [(x[:, :-1], x[:, 1:]) for x, _ in batches], lr)


@training.mistake
def targets_from_y(model, batches, lr):
    """The model reads y, y[:, :-1], and must predict the rest of it: x is never used. Compare
    model(x) with y."""
    return loop(model, [(y[:, :-1], y[:, 1:]) for _, y in batches], lr)


@training.mistake
def drops_the_last_target(model, batches, lr):
    """The last token of each sentence is left out, logits[:, :-1] and y[:, :-1]. The loss is the
    mean over all tokens."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z[:, :-1], y[:, :-1]))


@training.mistake
def trains_on_the_last_token(model, batches, lr):
    """Only the last token of each sentence counts, logits[:, -1]. The loss is the mean over all
    tokens, B · T of them."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z[:, -1:], y[:, -1:]))


@training.mistake
def trains_on_the_first_token(model, batches, lr):
    """Only the first token of each sentence counts, logits[:, 0]. The loss is the mean over all
    tokens, B · T of them."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z[:, :1], y[:, :1]))


@training.mistake
def trains_on_the_first_sentence(model, batches, lr):
    """Only the first sentence of each batch counts, [0]. The loss is the mean over all tokens of
    all sentences."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z[:1], y[:1]))


@training.mistake
def sum_of_the_loss(model, batches, lr):
    """The losses of the tokens are summed (reduction="sum", loss.sum()): large batches take larger
    steps. Use the mean over all tokens."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, reduction="sum"))


@training.mistake
def sum_over_each_sentence(model, batches, lr):
    """The loss is summed over the tokens of a sentence and averaged over sentences only. Use the
    mean over all B · T tokens."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, reduction="sum") / len(y))


@training.mistake
def sum_over_the_sentences(model, batches, lr):
    """The loss is summed over the sentences of the batch and averaged over places only. Use the
    mean over all B · T tokens."""
    return loop(
        model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, reduction="sum") / y.shape[1]
    )


@training.mistake
def divided_by_the_batches(model, batches, lr):
    """The loss is divided by the number of batches, as for accumulated gradients. Each batch takes
    its own step with its mean loss."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y) / len(batches))


@training.mistake
def mean_over_the_sentences_again(model, batches, lr):
    """The mean loss is divided by the number of sentences once more (len(y), y.shape[0]). It is a
    mean over all tokens already: leave the division out."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y) / len(y))


@training.mistake
def mean_over_the_tokens_again(model, batches, lr):
    """The mean loss is divided by the number of tokens once more (y.numel()). It is a mean already:
    leave the division out."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y) / y.numel())


@training.mistake
def targets_not_flattened(model, batches, lr):
    """The logits are flattened to (B·T, V), but the targets are still (B, T). Flatten both:
    y.flatten(), or y.reshape(-1)."""
    return loop(model, batches, lr, loss_of=lambda z, y: plain_cross_entropy(z.flatten(0, 1), y))


@training.mistake
def softmax_before_cross_entropy(model, batches, lr):
    """softmax is applied before cross_entropy, which contains one already: twice in all. Hand the
    raw logits to F.cross_entropy."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z.softmax(-1), y))


@training.mistake
def nll_of_the_logits(model, batches, lr):
    """The softmax is missing: nll_loss gets raw logits, but needs log-probabilities. Use
    F.cross_entropy, or log_softmax before nll_loss."""
    return loop(model, batches, lr, loss_of=nll)


def nll(logits: Tensor, y: Tensor) -> Tensor:
    """Minus the entry of each target, on average."""
    return -logits.gather(-1, y[..., None]).mean()


@training.mistake
def nll_of_the_probabilities(model, batches, lr):
    """The log is missing: the loss is -p of the target, as nll_loss gives it for probabilities.
    Average -log p: F.cross_entropy on the logits, or log_softmax before nll_loss."""
    return loop(model, batches, lr, loss_of=lambda z, y: nll(z.softmax(-1), y))


@training.mistake
def squared_error(model, batches, lr):
    """The loss is a squared error (MSE) between logits and one-hot targets. Use the mean
    cross-entropy."""
    return loop(model, batches, lr, loss_of=mean_squared_error)


def mean_squared_error(logits: Tensor, y: Tensor) -> Tensor:
    from torch.nn.functional import mse_loss, one_hot

    return mse_loss(logits, one_hot(y, logits.shape[-1]).to(logits))


@training.mistake
def squared_error_of_probabilities(model, batches, lr):
    """The loss is a squared error (MSE) between probabilities and one-hot targets. Use the mean
    cross-entropy."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_squared_error(z.softmax(-1), y))


@training.mistake
def binary_cross_entropy(model, batches, lr):
    """The loss is a binary cross-entropy with one-hot targets, a sigmoid for each word. One word of
    V is right: F.cross_entropy, with one softmax over the vocabulary."""

    def loss_of(logits, y):
        from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

        return binary_cross_entropy_with_logits(logits, one_hot(y, logits.shape[-1]).to(logits))

    return loop(model, batches, lr, loss_of=loss_of)


@training.mistake
def label_smoothing(model, batches, lr):
    """The loss has label smoothing of 0.1. The plain mean cross-entropy is asked for: leave
    label_smoothing out."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, label_smoothing=0.1))


@training.mistake
def ignores_the_id_zero(model, batches, lr):
    """The targets with id 0 are left out (ignore_index=0) as if they were padding. There is no
    padding here: every token counts, 0 too."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, ignore_index=0))


@training.mistake
def ignores_the_id_one(model, batches, lr):
    """The targets with id 1 are left out (ignore_index=1) as if they were padding. There is no
    padding here: every token counts."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z, y, ignore_index=1))


@training.mistake
def vocabulary_not_second(model, batches, lr):
    """cross_entropy gets (B, T, V) logits and takes axis 1, the tokens, for the vocabulary: it
    fails unless T = V. Flatten both, logits (B·T, V) and y (B·T), or transpose(1, 2) the logits."""
    return loop(model, batches, lr, loss_of=plain_cross_entropy)


def plain_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits, y)


@training.mistake
def vocabulary_reshaped(model, batches, lr):
    """The logits are reshaped to (B, V, T) instead of transposed, so that numbers of different
    tokens and words are mixed. Swap the axes: logits.transpose(1, 2), or flatten to (B·T, V)."""

    def loss_of(logits, y):
        B, T, V = logits.shape
        return plain_cross_entropy(logits.reshape(B, V, T), y)

    return loop(model, batches, lr, loss_of=loss_of)


@training.mistake
def vocabulary_first_reshaped(model, batches, lr):
    """The logits are reshaped to (V, B·T) and transposed, so that numbers of different words are
    mixed. Keep the vocabulary last: logits.reshape(-1, V), or flatten(0, 1)."""

    def loss_of(logits, y):
        return plain_cross_entropy(logits.reshape(logits.shape[-1], -1).T, y.flatten())

    return loop(model, batches, lr, loss_of=loss_of)


@training.mistake
def logits_transposed(model, batches, lr):
    """The axes of the logits are swapped, batch and tokens, before they are flattened, but not
    those of y: the rows no longer belong together. Flatten both in the same order."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z.transpose(0, 1), y))


@training.mistake
def logits_transposed_then_flattened(model, batches, lr):
    """The logits are transposed, (B, V, T), and then flattened to rows of V: numbers of different
    words are mixed. Either transpose(1, 2) and y as it is, or reshape(-1, V) and no transpose."""

    def loss_of(logits, y):
        rows = logits.transpose(1, 2).reshape(-1, logits.shape[-1])
        return plain_cross_entropy(rows, y.flatten())

    return loop(model, batches, lr, loss_of=loss_of)


@training.mistake
def flattens_too_much(model, batches, lr):
    """The logits are flattened completely, the vocabulary too. Keep the last axis V:
    logits.reshape(-1, V), or flatten(0, 1)."""
    return loop(
        model, batches, lr, loss_of=lambda z, y: plain_cross_entropy(z.flatten(), y.flatten())
    )


@training.mistake
def climbs(model, batches, lr):
    """It climbs instead of descending: the loss grows (p + lr · v, a minus sign in front of the
    loss for backward, maximize). Subtract: p = p - lr · v."""
    return loop(model, batches, lr, make=lambda p, lr: sgd(p, lr, maximize=True))


@training.mistake
def minus_the_loss(model, batches, lr):
    """The loss has a minus sign too much: it is log p, and minimising it makes the targets less
    likely. Minimise the mean cross-entropy as it is, -log p."""
    return loop(model, batches, lr, loss_of=lambda z, y: -mean_loss(z, y))


@training.mistake
def the_momentum_is_lost(model, batches, lr):
    """The momentum is missing or lost: momentum=0.9 is left out, or a new optimizer (or velocity)
    is made for each batch and forgets it. Create it once, before the loop, with momentum=0.9."""
    return loop(model, batches, lr, make=lambda p, lr: sgd(p, lr, momentum=0))


def other_momentum(value: float) -> None:
    """Add the mistake of this momentum."""
    variant(
        f"momentum_{value:g}".replace(".", "_"),
        f"The momentum is {value:g}, not 0.9: v = 0.9 v + gradient, momentum=0.9.",
        make=lambda p, lr: sgd(p, lr, momentum=value),
    )


for value in (0.1, 0.5, 0.8, 0.95, 0.99, 1.0):
    other_momentum(value)


@training.mistake
def rate_and_momentum_swapped(model, batches, lr):
    """Learning rate and momentum are swapped: SGD(parameters, 0.9, lr) learns with the rate 0.9 and
    the momentum lr. Name them: lr=lr, momentum=0.9."""
    return loop(model, batches, lr, make=lambda p, lr: sgd(p, 0.9, momentum=lr))


@training.mistake
def nesterov(model, batches, lr):
    """This is Nesterov's momentum (nesterov=True, a step along gradient + 0.9 v). The plain one is
    asked for: v = 0.9 v + gradient, then p = p - lr v."""
    return loop(model, batches, lr, make=lambda p, lr: sgd(p, lr, nesterov=True))


def dampened(value: float) -> None:
    """Add the mistake of damped gradients."""
    variant(
        f"dampening_{value:g}".replace(".", "_"),
        f"The gradients are damped (dampening={value:g}) before they join the velocity. The "
        "plain momentum is asked for: v = 0.9 v + gradient.",
        make=lambda p, lr: sgd(p, lr, dampening=value),
    )


dampened(0.1)
dampened(0.9)


def decayed(value: float) -> None:
    """Add the mistake of weight decay."""
    variant(
        f"weight_decay_{value:g}".replace(".", "_").replace("-", "_"),
        f"The weights decay towards 0 (weight_decay={value:g}, an L2 term). Leave that out.",
        make=lambda p, lr: sgd(p, lr, weight_decay=value),
    )


for value in (0.1, 0.01, 0.001, 1e-4):
    decayed(value)


def other_optimizer(name: str, what: str, **changes: Any) -> None:
    """Add the mistake of another optimizer of PyTorch."""

    def make(parameters, lr):
        import torch

        return getattr(torch.optim, name)(parameters, lr=lr, **changes)

    variant(
        what,
        f"The optimizer is {name}, not SGD. Gradient descent with momentum 0.9 is asked for: "
        "torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9), or v = 0.9 v + gradient.",
        make=make,
    )


other_optimizer("Adam", "adam")
other_optimizer("AdamW", "adam_w")
other_optimizer("Adam", "adam_of_the_paper", betas=(0.9, 0.98), eps=1e-9)
other_optimizer("RMSprop", "rms_prop")
other_optimizer("RMSprop", "rms_prop_with_momentum", momentum=0.9)
other_optimizer("Adagrad", "adagrad")
other_optimizer("NAdam", "n_adam")
other_optimizer("Adamax", "adamax")


def fixed_rate(value: float) -> None:
    """Add the mistake of a learning rate that does not come from lr."""
    variant(
        f"rate_{value:g}".replace(".", "_"),
        f"The learning rate is {value:g}, whatever is passed in: lr is ignored, or missing in the "
        "step. Hand it on: lr=lr, or p = p - lr v by hand.",
        make=lambda p, lr: sgd(p, value),
    )


for value in (1.0, 0.1, 0.01, 0.001):
    fixed_rate(value)


def scaled_rate(name: str, message: str, factor: Callable) -> None:
    """Add the mistake of a learning rate times factor(number of the batch, y, all batches)."""

    def function(model, batches, lr):
        optimizer = sgd(model.parameters(), lr)
        batches = list(batches)

        def learn(loss, _, i):
            optimizer.lr = lr * factor(i, batches[i][1], batches)
            optimizer.zero_grad()
            backward_and_step(loss, optimizer, i)

        return loop(model, batches, lr, learn=learn)

    function.__name__, function.__doc__ = name, message
    training.mistake(function)


FALLING = "The learning rate falls from batch to batch ({}). It stays lr: leave the schedule out."
scaled_rate("falls_as_one_over_n", FALLING.format("lr / n"), lambda i, y, all_: 1 / (i + 1))
scaled_rate("falls_as_a_root", FALLING.format("lr / √n"), lambda i, y, all_: (i + 1) ** -0.5)
scaled_rate("falls_linearly", FALLING.format("linear decay"), lambda i, y, b: 1 - i / len(b))
for share in (0.1, 0.5, 0.9, 0.95, 0.99):
    scaled_rate(
        f"falls_by_{share:g}".replace(".", "_"),
        FALLING.format(f"each time {share:g} of it, a scheduler"),
        lambda i, y, all_, share=share: share**i,
    )
scaled_rate(
    "falls_as_a_cosine",
    FALLING.format("cosine decay"),
    lambda i, y, b: (1 + np.cos(np.pi * i / len(b))) / 2,
)
scaled_rate(
    "grows_from_a_third",
    "The learning rate grows from lr / 3 to lr (LinearLR, a warm-up). It stays lr: leave the "
    "schedule out.",
    lambda i, y, b: 1 / 3 + 2 / 3 * min(i, 5) / 5,
)
scaled_rate(
    "grows_linearly",
    "The learning rate grows from batch to batch (warm-up). It stays lr: leave the schedule out.",
    lambda i, y, all_: (i + 1) / len(all_),
)
scaled_rate(
    "rate_divided_by_sentences",
    "The learning rate is divided by the number of sentences in the batch. The loss is a mean "
    "already: lr stays as it is.",
    lambda i, y, all_: 1 / len(y),
)
scaled_rate(
    "rate_divided_by_tokens",
    "The learning rate is divided by the number of tokens in the batch. The loss is a mean "
    "already: lr stays as it is.",
    lambda i, y, all_: 1 / y.numel(),
)
scaled_rate(
    "rate_times_sentences",
    "The step is multiplied by the number of sentences in the batch. The loss is a mean: lr stays "
    "as it is.",
    lambda i, y, all_: len(y),
)


def clips(limit: float, by: str) -> None:
    """Add the mistake of clipped gradients."""

    def function(model, batches, lr):
        def learn(loss, optimizer, i):
            from torch.nn.utils import clip_grad_norm_, clip_grad_value_

            loss.backward()
            clip = clip_grad_norm_ if by == "norm" else clip_grad_value_
            clip(model.parameters(), limit)
            optimizer.step()

        return loop(model, batches, lr, learn=learn)

    function.__name__ = f"clips_the_{by}_at_{limit:g}".replace(".", "_")
    function.__doc__ = f"""The gradients are clipped (clip_grad_{by}_, {limit:g}). Leave clipping
    out: the step is along the gradient as it is."""
    training.mistake(function)


for limit in (0.1, 0.25, 0.5, 1.0, 5.0, 10.0):
    clips(limit, "norm")
for limit in (0.1, 0.5, 1.0, 5.0):
    clips(limit, "value")


def by_hand(name: str, message: str, update: Callable) -> None:
    """Add a mistake in the step by hand: update(p, v, lr) changes p and v in place."""

    def function(model, batches, lr):
        import torch

        parameters = list(model.parameters())
        velocities = [torch.zeros_like(p) for p in parameters]

        def learn(loss, optimizer, i):
            loss.backward()
            with torch.no_grad():
                for p, v in zip(parameters, velocities, strict=True):
                    update(p, v, lr)

        return loop(model, batches, lr, learn=learn)

    function.__name__, function.__doc__ = name, message
    training.mistake(function)


def moving_average(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).add_(0.1 * p.grad)
    p.sub_(lr * v)


def gradient_shrinks(p: Tensor, v: Tensor, lr: float) -> None:
    v.add_(0.9 * p.grad)
    p.sub_(lr * v)


def both_shrink(p: Tensor, v: Tensor, lr: float) -> None:
    v.add_(p.grad).mul_(0.9)
    p.sub_(lr * v)


def shares_swapped_in_the_step(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.1).add_(0.9 * p.grad)
    p.sub_(lr * v)


def old_velocity(p: Tensor, v: Tensor, lr: float) -> None:
    p.sub_(lr * v)
    v.mul_(0.9).add_(p.grad)


def rate_twice(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).add_(lr * p.grad)
    p.sub_(lr * v)


def velocity_and_gradient(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).add_(p.grad)
    p.sub_(lr * (v + p.grad))


def gradient_subtracted(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).sub_(p.grad)
    p.add_(lr * p.grad + lr * v)


def rate_on_the_velocity(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(1 - lr).add_(p.grad)
    p.sub_(lr * v)


def velocity_minus_gradient(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).sub_(p.grad)
    p.sub_(lr * v)


def signs(p: Tensor, v: Tensor, lr: float) -> None:
    v.mul_(0.9).add_(p.grad.sign())
    p.sub_(lr * v)


by_hand(
    "moving_average",
    "The velocity is a moving average, 0.9 v + 0.1 gradient, so the steps are ten times too small "
    "at first. Add the whole gradient: v = 0.9 v + gradient.",
    moving_average,
)
by_hand(
    "momentum_on_the_gradient",
    "The factor 0.9 stands at the gradient, not at the velocity: v = v + 0.9 gradient never slows "
    "down. The momentum shrinks the old velocity: v = 0.9 v + gradient.",
    gradient_shrinks,
)
by_hand(
    "momentum_on_both",
    "The factor 0.9 shrinks the new gradient too, 0.9 (v + gradient). Only the old velocity: "
    "v = 0.9 v + gradient.",
    both_shrink,
)
by_hand(
    "shares_of_the_velocity_swapped",
    "The velocity is 0.1 v + 0.9 gradient: the shares are swapped. v = 0.9 v + gradient.",
    shares_swapped_in_the_step,
)
by_hand(
    "steps_with_the_old_velocity",
    "The step is taken before the velocity is updated, one batch late: wrong order. First "
    "v = 0.9 v + gradient, then p = p - lr v.",
    old_velocity,
)
by_hand(
    "rate_twice",
    "lr counts twice, in the velocity and in the step. Once: v = 0.9 v + gradient, then "
    "p = p - lr v.",
    rate_twice,
)
by_hand(
    "gradient_counted_twice",
    "The gradient counts twice in the step, in the velocity and beside it. p = p - lr v alone.",
    velocity_and_gradient,
)
by_hand(
    "first_step_left_out",
    "The signs of the velocity and the gradient do not go together: the gradient of the batch "
    "itself cancels out. v = 0.9 v + gradient, then p = p - lr v.",
    gradient_subtracted,
)
by_hand(
    "rate_as_momentum",
    "The old velocity is multiplied by 1 - lr, not by the momentum: v = 0.9 v + gradient.",
    rate_on_the_velocity,
)
by_hand(
    "signs_alone",
    "Only the signs of the gradients count. Add the gradients themselves: v = 0.9 v + gradient.",
    signs,
)


@training.mistake
def one_velocity_for_all(model, batches, lr):
    """All parameters share one velocity. Each needs its own, of its own shape: a zero tensor for
    each, [torch.zeros_like(p) for p in parameters]."""
    import torch

    shared = [0.0]

    def learn(loss, optimizer, i):
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                shared[0] = 0.9 * shared[0] + p.grad
                p.sub_(lr * shared[0])

    return loop(model, batches, lr, learn=learn)


@training.mistake
def step_without_no_grad(model, batches, lr):
    """The step by hand is recorded by autograd, which raises "a leaf Variable that requires grad is
    being used in an in-place operation". Take it under torch.no_grad()."""
    import torch

    velocities = [torch.zeros_like(p) for p in model.parameters()]

    def learn(loss, optimizer, i):
        loss.backward()
        for p, v in zip(model.parameters(), velocities, strict=True):
            v.mul_(0.9).add_(p.grad)
            p -= lr * v

    return loop(model, batches, lr, learn=learn)


def only_some(name: str, message: str, pick: Callable) -> None:
    """Add the mistake of training only some of the parameters."""

    def make(parameters, lr):
        parameters = list(parameters)
        return sgd([p for i, p in enumerate(parameters) if pick(i, p, parameters)], lr)

    variant(name, message, make=make)


only_some(
    "last_parameter_alone",
    "Only the last parameter is trained (the step stands after the inner loop, or the optimizer "
    "gets one of them). Step for all: model.parameters().",
    lambda i, p, all_: i == len(all_) - 1,
)
only_some(
    "first_parameter_alone",
    "Only the first parameter is trained (a return or break in the inner loop, or the optimizer "
    "gets one of them). Step for all: model.parameters().",
    lambda i, p, all_: i == 0,
)
only_some(
    "matrices_alone",
    "Only matrices are trained, biases and single numbers are left out. Step for all: "
    "model.parameters().",
    lambda i, p, all_: p.ndim > 1 or (len(all_) == 2 and i == 0),
)


@training.mistake
def steps_only_once(model, batches, lr):
    """Only the first batch changes the weights; the other losses are noted without a step (a
    generator such as model.parameters() is used up after one loop). Make a list of it first:
    list(model.parameters())."""

    def learn(loss, optimizer, i):
        loss.backward()
        if i == 0:
            optimizer.step()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def trains_a_copy(model, batches, lr):
    """It trains a copy (copy.deepcopy): the model itself stays as it was. Change the parameters of
    model in place."""
    import copy

    return loop(copy.deepcopy(model), batches, lr)


@training.mistake
def puts_the_weights_back(model, batches, lr):
    """The model has its old weights again at the end: each batch starts from them, or a saved state
    is loaded. Keep what was learned."""
    import copy

    state = copy.deepcopy(model.state_dict())
    losses = loop(model, batches, lr)
    model.load_state_dict(state)
    return losses


variant(
    "not_in_train_mode",
    "The model stays in the mode it is in while it learns: after an evaluation, in eval mode, "
    "dropout is off. Call model.train() first, before the loop.",
    mode=nothing,
)
variant(
    "in_eval_mode",
    "The model is in eval mode while it trains: dropout is off. Call model.train(), not "
    "model.eval().",
    mode=lambda model: model.eval(),
)


@training.mistake
def train_mode_of_the_top_only(model, batches, lr):
    """Only the model itself is in train mode (model.training = True); its parts, with the dropout,
    are not. Call model.train(), which sets all of them."""

    def mode(model):
        model.training = True

    return loop(model, batches, lr, mode=mode)


@training.mistake
def ends_in_eval_mode(model, batches, lr):
    """The model is in eval mode at the end. Training leaves it in train mode: leave model.eval()
    out."""
    losses = loop(model, batches, lr)
    model.eval()
    return losses


@training.mistake
def no_gradient(model, batches, lr):
    """The forward pass runs under torch.no_grad() (or its result is detached, .data, argmax): there
    is nothing to go back through, "element 0 of tensors does not require grad". Only the step by
    hand belongs under no_grad, not model(x)."""

    def ask(model, x):
        return model(x).detach()

    return loop(model, batches, lr, ask=ask)


@training.mistake
def backward_on_a_number(model, batches, lr):
    """loss.item() turns the loss into a float too early: a number has no backward. Call
    loss.backward() on the tensor, and item() only for the list."""

    def learn(loss, optimizer, i):
        loss.item().backward()

    return loop(model, batches, lr, learn=learn)


@training.mistake
def losses_after_the_step(model, batches, lr):
    """The losses are measured after the step, with a second forward pass. Note the loss of the
    batch before its step: that of the first forward pass."""
    optimizer, losses = sgd(model.parameters(), lr), []
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        mean_loss(model(x), y).backward()
        optimizer.step()
        losses.append(mean_loss(model(x), y).item())
    return losses


def as_tensor(loss: Tensor) -> Tensor:
    return loss


variant(
    "losses_as_tensors",
    "The losses are tensors, not floats: each keeps its whole graph in memory, or must be "
    "converted later. Append loss.item().",
    told=as_tensor,
)


def noted(name: str, message: str, result: Callable) -> None:
    """Add the mistake of another result, made of losses and batches; the training is right."""

    def function(model, batches, lr):
        losses = loop(model, batches, lr)
        return result(losses, batches, model)

    function.__name__, function.__doc__ = name, message
    training.mistake(function)


noted(
    "last_loss_alone",
    "It returns the last loss alone. Return the list of all losses, one per batch: "
    "losses.append(loss.item()) in the loop.",
    lambda losses, batches, model: losses[-1],
)
noted(
    "list_of_the_last_loss",
    "The list holds the last loss alone: it is made anew for each batch, or append stands after "
    "the loop. Note the loss of every batch, inside the loop.",
    lambda losses, batches, model: losses[-1:],
)
noted(
    "first_loss_alone",
    "It returns the first loss alone. Return the list of all losses, one per batch.",
    lambda losses, batches, model: losses[0],
)
noted(
    "mean_of_the_losses",
    "It returns the mean of the losses, one number. Return the list, one loss per batch.",
    lambda losses, batches, model: sum(losses) / len(losses),
)
noted(
    "sum_of_the_losses",
    "It returns the sum of the losses, one number. Return the list, one loss per batch.",
    lambda losses, batches, model: sum(losses),
)
noted(
    "running_totals",
    "The list holds running totals: each entry is the sum of the losses so far. Note the loss of "
    "each batch by itself.",
    lambda losses, batches, model: np.cumsum(losses).tolist(),
)
noted(
    "running_means",
    "The list holds running means: each entry is the average of the losses so far. Note the loss "
    "of each batch by itself.",
    lambda losses, batches, model: (np.cumsum(losses) / np.arange(1, len(losses) + 1)).tolist(),
)
noted(
    "losses_reversed",
    "The losses stand in reversed order (insert(0, …)). Append them in the order of the batches.",
    lambda losses, batches, model: losses[::-1],
)
noted(
    "losses_times_tokens",
    "The losses noted are sums, mean loss times the number of tokens. Note the mean, loss.item().",
    lambda losses, batches, model: [
        loss * y.numel() for loss, (_, y) in zip(losses, batches, strict=True)
    ],
)
noted(
    "losses_times_sentences",
    "The losses noted are multiplied by the number of sentences, y.shape[0]. Note the mean, "
    "loss.item().",
    lambda losses, batches, model: [
        loss * len(y) for loss, (_, y) in zip(losses, batches, strict=True)
    ],
)
noted(
    "losses_over_batches",
    "The losses noted are divided by the number of batches. Note the mean of each batch, "
    "loss.item().",
    lambda losses, batches, model: [loss / len(losses) for loss in losses],
)
noted(
    "losses_over_tokens",
    "The losses noted are divided by the number of tokens, though they are means already. Note "
    "loss.item().",
    lambda losses, batches, model: [
        loss / y.numel() for loss, (_, y) in zip(losses, batches, strict=True)
    ],
)
noted(
    "perplexities",
    "The list holds perplexities, exp of the losses. Note the losses themselves, loss.item().",
    lambda losses, batches, model: np.exp(losses).tolist(),
)
noted(
    "losses_in_bits",
    "The losses noted are in bits (log2). Note them in nats, as F.cross_entropy gives them.",
    lambda losses, batches, model: (np.array(losses) / np.log(2)).tolist(),
)
noted(
    "rounded_losses",
    "The losses are rounded. Note them as they are, loss.item().",
    lambda losses, batches, model: [round(loss, 2) for loss in losses],
)
noted(
    "losses_as_whole_numbers",
    "int cuts the losses to whole numbers. Use float(loss) or loss.item().",
    lambda losses, batches, model: [int(loss) for loss in losses],
)
noted(
    "losses_as_an_array",
    "It returns an array of losses. Return a list of floats, one per batch.",
    lambda losses, batches, model: np.array(losses),
)
noted(
    "losses_as_one_tensor",
    "It returns one tensor of losses. Return a list of floats, one per batch: loss.item().",
    lambda losses, batches, model: next(model.parameters()).new_tensor(losses),
)
noted(
    "the_model_alone",
    "It returns the model. The model is changed in place: return the list of losses, one per "
    "batch.",
    lambda losses, batches, model: model,
)
noted(
    "model_and_losses",
    "It returns the model too, a tuple. The model is changed in place: return the list of losses "
    "alone.",
    lambda losses, batches, model: (model, losses),
)
noted(
    "losses_and_model",
    "It returns the losses and the model, a tuple. The model is changed in place: return the list "
    "of losses alone.",
    lambda losses, batches, model: (losses, model),
)
noted(
    "numbered_losses",
    "The list holds pairs, the number of the batch and its loss. Note the losses alone.",
    lambda losses, batches, model: list(enumerate(losses)),
)


# ---------------------------------------------------------------- evaluate


def evaluate(model: nn.Module, batches: list) -> float:
    """Measure a model: its mean cross-entropy per token over all batches, in nats.

    Each batch's mean counts as often as the batch has tokens. Dropout is off, no gradient is
    computed, and the model is back in the mode it was in.
    """
    import torch
    from torch.nn.functional import cross_entropy

    was_training, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for x, y in batches:
            mean = cross_entropy(model(x).flatten(0, 1), y.flatten())
            total += mean.item() * y.numel()
            count += y.numel()
    model.train(was_training)
    return total / count


evaluation = Exercise(
    evaluate,
    notebook="13",
    level=2,
    minutes=12,
    task="Measure a model on batches of different sizes, this time from the mean loss of each "
    "batch, without reduction='sum': a batch counts as often as it has tokens. Dropout is off, no "
    "gradient is left, and afterwards the model is in the mode it was in.",
    hints=(
        "A batch with one token and a batch with a hundred: should their means count the same? And "
        "who tells the model afterwards in which mode it was?",
        "Remember model.training; model.eval(); under torch.no_grad() add mean · y.numel() to a "
        "total and y.numel() to a count; model.train(what you remembered).",
        "`total += nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() * "
        "y.numel()`",
    ),
    backends=("torch",),
    seconds=3.0,
    trains=True,
)


@evaluation.experiment("what the model is asked")
def what_evaluate_asks(fn: Callable) -> dict:
    model = network(p=0.5)
    seen, shapes = watched(model), [(2, 3), (1, 4), (3, 2)]
    called(fn, model, batches_of(7, *shapes))
    asked = [shape for shape, _, _ in seen]
    return {
        "model(x) is called for every batch": set(shapes) <= set(asked),
        "the model and all its parts are in eval mode": all(mode for _, _, mode in seen),
    }


@evaluation.experiment("p = 3/4 and 1/4 everywhere, a batch with target 0, one with 1 1 1")
def one_and_three(fn: Callable) -> dict:
    model = two_numbers(float(np.log(3)), 0.0)  # p = 3/4 and 1/4
    loss = called(fn, model, [batch([[0]], [[0]]), batch([[0, 1, 1]], [[1, 1, 1]])])
    return {"loss per token": loss}


@evaluation.experiment("four batches of different sizes")
def sizes(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(5), batches_of(5, (2, 3), (1, 4), (3, 2), (4, 6)))}


@evaluation.experiment("a network in train mode, with dropout")
def with_dropout(fn: Callable) -> dict:
    return {"loss": called(fn, network(p=0.5), batches_of(7, (2, 3), (3, 5), (1, 2)))}


@evaluation.experiment("a network in eval mode")
def already_in_eval_mode(fn: Callable) -> dict:
    return {"loss": called(fn, network(p=0.5).eval(), batches_of(7, (2, 3), (3, 5), (1, 2)))}


@evaluation.experiment("the mode afterwards")
def modes_afterwards(fn: Callable) -> dict:
    found = {}
    for mode, training_mode in (("train", True), ("eval", False)):
        model = network(p=0.5).train(training_mode)
        called(fn, model, batches_of(7, (2, 3), (1, 4)))
        found[f"a model in {mode} mode is in {mode} mode again"] = model.training == training_mode
        found[f"and so are all its parts, in {mode} mode"] = everywhere(model, training_mode)
    return found


@evaluation.experiment("what is left behind")
def left_behind(fn: Callable) -> dict:
    import torch

    model, batches = network(p=0.5), batches_of(7, (2, 3), (1, 4))
    before, copies = weights(model), [(x.clone(), y.clone()) for x, y in batches]
    with torch.enable_grad():
        getattr(fn, "function", fn)(model, batches)
        enabled = torch.is_grad_enabled()
    now = weights(model)
    return {
        "the weights are unchanged": all(map(np.array_equal, before, now)),
        "no gradient is left": all(p.grad is None for p in model.parameters()),
        "all parameters may still learn": all(p.requires_grad for p in model.parameters()),
        "gradients are switched on again": enabled,
        "nothing is gathered as in train mode (buffers)": not any(map(torch.any, model.buffers())),
        "the dropout keeps its p": all(part.p == 0.5 for part in dropouts(model)),
        "the batches are unchanged": all_equal(copies, batches),
    }


def dropouts(model: nn.Module) -> list[nn.Module]:
    """The parts that are nn.Dropout."""
    from torch import nn

    return [part for part in model.modules() if isinstance(part, nn.Dropout)]


@evaluation.experiment("as many tokens as words in the vocabulary")
def square_logits_measured(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(3), batches_of(3, (2, 3), (3, 3), (1, 3)))}


@evaluation.experiment("one batch of one sentence")
def one_sentence(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(6), batches_of(6, (1, 5)))}


@evaluation.experiment("a second model, and the same again")
def again(fn: Callable) -> dict:
    batches = batches_of(4, (2, 3), (5, 2))
    return {
        "loss of another model": called(fn, bigrams(4, seed=5), batches),
        "loss of the first": called(fn, bigrams(4, seed=6), batches),
        "loss of the first again": called(fn, bigrams(4, seed=6), batches),
    }


@evaluation.experiment("what PyTorch says where it stops")
def where_measuring_stops(fn: Callable) -> Any:
    """Tells errors apart by their text: nothing for an answer that returns."""
    return error_of(fn, two_numbers(), [batch([[1, 0, 0], [0, 1, 1]], [[0, 0, 1], [1, 0, 0]])])


def measured(
    model: nn.Module,
    batches: list,
    loss_of: Callable = mean_loss,
    before: Callable | None = None,
    after: Callable | None = None,
    joined: Callable | None = None,
    each: Callable | None = None,
) -> Any:
    """Evaluate; each argument is a part that a mistake replaces.

    `before` and `after` the loop for the mode, `each` does something with every loss, `joined`
    makes the result of the losses and the targets of all batches.
    """
    import torch

    was_training = model.training
    (before or type(model).eval)(model)
    losses = []
    for x, y in batches:
        with torch.set_grad_enabled(each is not None):
            loss = loss_of(model(x), y)
        if each:
            each(loss)
        losses.append(loss.item())
    (after or type(model).train)(model, was_training)
    targets = [y for _, y in batches]
    return (joined or per_token)(losses, targets)


def per_token(losses: list[float], targets: list[Tensor]) -> float:
    """The mean over all tokens."""
    counts = [y.numel() for y in targets]
    return sum(loss * n for loss, n in zip(losses, counts, strict=True)) / sum(counts)


def sums(losses: list[float], targets: list[Tensor]) -> list[float]:
    """The sum over the tokens of each batch."""
    return [loss * y.numel() for loss, y in zip(losses, targets, strict=True)]


def misjudges(name: str, message: str, **parts: Callable) -> None:
    """Add a mistake of `evaluate` that replaces parts."""

    def function(model, batches):
        return measured(model, batches, **parts)

    function.__name__, function.__doc__ = name, message
    evaluation.mistake(function)


@evaluation.mistake
def mean_of_batch_means(model, batches):
    """It averages the means of the batches, so that tokens of small batches count more. Average per
    token: weight each mean by its number of tokens, y.numel(), and divide by all tokens."""
    return measured(model, batches, joined=lambda losses, targets: sum(losses) / len(losses))


misjudges(
    "dropout_stays_on",
    "Dropout is active while it measures, because the model is in train mode (model.eval() is "
    "missing, or eval has no brackets). Call model.eval() first.",
    before=nothing,
)
misjudges(
    "train_instead_of_eval",
    "The model is put into train mode, with dropout on. Measure in eval mode: model.eval() first.",
    before=lambda model: model.train(),
)


@evaluation.mistake
def eval_after_the_loop(model, batches):
    """model.eval() comes after the loop: dropout is on while it measures, and the model is left in
    eval mode. Call it before the loop, and afterwards go back to the mode before."""
    return measured(model, batches, before=nothing, after=lambda model, was: model.eval())


misjudges(
    "stays_in_eval_mode",
    "The model is left in eval mode: dropout would be off for the rest of the training. Put it "
    "back into the mode it was in: was = model.training before model.eval(), model.train(was) at "
    "the end.",
    after=nothing,
)
misjudges(
    "always_back_to_train_mode",
    "The model always ends in train mode, even if it was in eval mode before. Remember the mode, "
    "was = model.training, and restore that one: model.train(was).",
    after=lambda model, was: model.train(),
)
misjudges(
    "mode_inverted_afterwards",
    "The model ends in the other mode than before: the restored mode is inverted. Restore what was "
    "remembered: model.train(was).",
    after=lambda model, was: model.train(not was),
)


@evaluation.mistake
def dropout_on_and_left_in_train_mode(model, batches):
    """The model is in train mode while it measures, dropout on, and stays there. Remember the mode,
    call model.eval() first, and restore it afterwards: model.train(was)."""
    return measured(model, batches, before=lambda model: model.train(), after=nothing)


@evaluation.mistake
def dropout_on_then_train_mode(model, batches):
    """Dropout is active while it measures (model.eval() is missing), and the model always ends in
    train mode. Remember the mode, model.eval(), and restore it: model.train(was)."""
    return measured(model, batches, before=nothing, after=lambda model, was: model.train())


def top_only(model: nn.Module, mode: bool) -> None:
    model.training = mode


misjudges(
    "eval_mode_of_the_top_only",
    "Only the model itself is in eval mode (model.training = False); its parts, with the dropout, "
    "are not. Call model.eval(), which sets all of them.",
    before=lambda model: top_only(model, False),
)
misjudges(
    "restored_at_the_top_only",
    "Only the model itself gets its mode back (model.training = was); its parts, with the dropout, "
    "stay in eval mode. Call model.train(was), which sets all of them.",
    after=top_only,
)


def parts_only(model: nn.Module, mode: bool) -> None:
    for part in dropouts(model):
        part.train(mode)


@evaluation.mistake
def dropout_layers_alone(model, batches):
    """Only dropout is switched off (eval of the nn.Dropout layers, or p = 0); the model and its
    other parts, which may also behave differently, stay in train mode. Call model.eval(), which
    sets all of them."""
    return measured(model, batches, before=lambda model: parts_only(model, False), after=parts_only)


def children_only(model: nn.Module, mode: bool) -> None:
    for child in model.children():
        child.train(mode)


@evaluation.mistake
def children_alone(model, batches):
    """Only the parts of the model are put into eval mode, not the model itself. Call model.eval(),
    which sets all of them."""
    return measured(
        model, batches, before=lambda model: children_only(model, False), after=children_only
    )


misjudges(
    "first_batch_alone",
    "Only the first batch is measured: the return stands inside the loop (indentation), or there "
    "is a break. Return after the loop.",
    joined=lambda losses, targets: losses[0],
)
misjudges(
    "last_batch_alone",
    "Only the last batch counts: the total is overwritten (= instead of +=) or set to 0 inside the "
    "loop. Add up over all batches: total += …",
    joined=lambda losses, targets: losses[-1],
)
misjudges(
    "last_sum_over_all",
    "The total holds only the last batch (= instead of +=, or set to 0 in the loop), but is "
    "divided by all tokens. Add up: total += …",
    joined=lambda losses, targets: sums(losses, targets)[-1] / sum(y.numel() for y in targets),
)
misjudges(
    "first_sum_over_all",
    "The total holds only the first batch, but is divided by all tokens. Add up: total += …",
    joined=lambda losses, targets: sums(losses, targets)[0] / sum(y.numel() for y in targets),
)
misjudges(
    "divides_by_the_last_batch",
    "The total of all batches is divided by the tokens of the last batch alone: the count is "
    "overwritten (= instead of +=). Add up both: count += y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / targets[-1].numel(),
)
misjudges(
    "divides_by_the_first_batch",
    "The total of all batches is divided by the tokens of the first batch alone. Count the tokens "
    "of all batches: count += y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / targets[0].numel(),
)


@evaluation.mistake
def skips_the_last(model, batches):
    """The last batch is left out (off by one), perhaps because it is smaller. Use all batches:
    for x, y in batches."""
    return measured(model, batches[:-1] or batches)


@evaluation.mistake
def skips_the_first(model, batches):
    """The first batch is left out (off by one). Use all batches: for x, y in batches."""
    return measured(model, batches[1:] or batches)


misjudges(
    "sum_of_all_tokens",
    "It returns the sum of the losses of all tokens (reduction='sum') without dividing. Divide by "
    "the number of tokens: the mean per token.",
    joined=lambda losses, targets: sum(sums(losses, targets)),
)
misjudges(
    "sum_of_batch_means",
    "It returns the sum of the batches' means: the division is missing, and larger batches must "
    "count more. Weight each mean by y.numel(), and divide by all tokens.",
    joined=lambda losses, targets: sum(losses),
)
misjudges(
    "means_over_all_tokens",
    "The batches' means are added without their weights and divided by the number of tokens. "
    "Multiply each mean by its tokens, y.numel(), or use reduction='sum'.",
    joined=lambda losses, targets: sum(losses) / sum(y.numel() for y in targets),
)
misjudges(
    "sums_over_batches",
    "The sum over all tokens is divided by the number of batches, len(batches). Divide by the "
    "number of tokens, the sum of y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / len(losses),
)
misjudges(
    "sums_over_sentences",
    "The sum over all tokens is divided by the number of sentences (len(y), y.shape[0]). Divide by "
    "the number of tokens, y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / sum(map(len, targets)),
)
misjudges(
    "sums_over_places",
    "The sum over all tokens is divided by the lengths y.shape[1] alone, without the sentences. "
    "Divide by the number of tokens, y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / sum(y.shape[1] for y in targets),
)


def weighted(count: Callable) -> Callable:
    """A mean of batch means with these weights."""

    def joined(losses, targets):
        counts = [count(y) for y in targets]
        return sum(loss * n for loss, n in zip(losses, counts, strict=True)) / sum(counts)

    return joined


misjudges(
    "weighted_by_sentences",
    "Each batch counts by its number of sentences (len(y), x.shape[0], x.size(0)), so that words "
    "of short sentences count more. Weight by tokens: y.numel().",
    joined=weighted(len),
)
misjudges(
    "weighted_by_lengths",
    "Each batch counts by the length of its sentences, y.shape[1]. Weight by the number of its "
    "tokens, y.numel(), sentences times length.",
    joined=weighted(lambda y: y.shape[1]),
)
misjudges(
    "tokens_times_weighted_by_sentences",
    "Each mean is multiplied by the number of sentences, but the total divided by the number of "
    "tokens. Use y.numel() for both.",
    joined=lambda losses, targets: (
        sum(loss * len(y) for loss, y in zip(losses, targets, strict=True))
        / sum(y.numel() for y in targets)
    ),
)
misjudges(
    "mean_of_sentence_sums",
    "Each batch gives its sum per sentence, and the batches are averaged. Average per token: add "
    "up all sums and divide by all tokens, y.numel().",
    joined=lambda losses, targets: float(
        np.mean([s / len(y) for s, y in zip(sums(losses, targets), targets, strict=True)])
    ),
)


@evaluation.mistake
def divides_by_the_logits(model, batches):
    """The sum is divided by the number of logits, B · T · V. Divide by the number of tokens,
    B · T: y.numel(), not logits.numel()."""
    sizes = []

    def loss_of(logits, y):
        sizes.append(logits.numel())
        return mean_loss(logits, y, reduction="sum")

    return measured(
        model, batches, loss_of=loss_of, joined=lambda losses, _: sum(losses) / sum(sizes)
    )


misjudges(
    "running_average",
    "Each batch is averaged with what came before, (total + loss) / 2, so that the last ones count "
    "most. Add up sums and counts, and divide once, after the loop.",
    joined=lambda losses, targets: half_and_half(losses),
)
misjudges(
    "divides_in_the_loop",
    "The total is divided inside the loop, again for each batch. Divide once, after the loop.",
    joined=lambda losses, targets: divided_again(losses, targets),
)


def half_and_half(losses: list[float]) -> float:
    total = losses[0]
    for loss in losses[1:]:
        total = (total + loss) / 2
    return total


def divided_again(losses: list[float], targets: list[Tensor]) -> float:
    total, count = 0.0, 0
    for loss, y in zip(sums(losses, targets), targets, strict=True):
        count += y.numel()
        total = (total + loss) / count
    return total


misjudges(
    "perplexity_of_all",
    "It returns the perplexity, exp of the mean loss. Return the mean cross-entropy itself, "
    "without exp.",
    joined=lambda losses, targets: float(np.exp(per_token(losses, targets))),
)
misjudges(
    "loss_in_bits",
    "The loss is in bits (log2). Return nats, as F.cross_entropy gives them.",
    joined=lambda losses, targets: per_token(losses, targets) / float(np.log(2)),
)
misjudges(
    "minus_the_mean",
    "The sign is wrong: it returns the mean log-probability. The cross-entropy is minus that.",
    joined=lambda losses, targets: -per_token(losses, targets),
)
misjudges(
    "loss_of_each_batch",
    "It returns a list with the loss of each batch. Return one number, the mean over all tokens.",
    joined=lambda losses, targets: losses,
)
misjudges(
    "total_and_count",
    "It returns two numbers, the total and the number of tokens. Return their quotient.",
    joined=lambda losses, targets: (sum(sums(losses, targets)), sum(y.numel() for y in targets)),
)
misjudges(
    "as_a_tensor",
    "It returns a tensor, not a float (and without no_grad it keeps the whole graph). Return "
    "total / count of numbers: loss.item().",
    joined=lambda losses, targets: targets[0].new_tensor(per_token(losses, targets) * 1000),
)
misjudges(
    "rounded",
    "The loss is rounded. Return it as it is.",
    joined=lambda losses, targets: round(per_token(losses, targets), 2),
)
misjudges(
    "as_a_whole_number",
    "The loss is cut to a whole number (int, //). Divide with / and return the float.",
    joined=lambda losses, targets: int(per_token(losses, targets)),
)
misjudges(
    "smallest_batch_loss",
    "It returns the smallest of the batches' losses. Return the mean over all tokens.",
    joined=lambda losses, targets: min(losses),
)
misjudges(
    "largest_batch_loss",
    "It returns the largest of the batches' losses. Return the mean over all tokens.",
    joined=lambda losses, targets: max(losses),
)
misjudges(
    "median_batch_loss",
    "It returns the median of the batches' losses. Return the mean over all tokens.",
    joined=lambda losses, targets: float(np.median(losses)),
)


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """The share of tokens whose largest logit is the target's."""
    return (logits.argmax(-1) == y).float().mean()


misjudges(
    "accuracy_instead",
    "It returns the accuracy, the share of right predictions (argmax). Return the mean "
    "cross-entropy, -log p of the targets.",
    loss_of=accuracy,
)
misjudges(
    "error_rate_instead",
    "It returns the share of wrong predictions (argmax). Return the mean cross-entropy, -log p of "
    "the targets.",
    loss_of=lambda logits, y: 1 - accuracy(logits, y),
)
misjudges(
    "softmax_first",
    "softmax is applied before cross_entropy, which contains one already: twice in all. Hand the "
    "raw logits to F.cross_entropy.",
    loss_of=lambda logits, y: mean_loss(logits.softmax(-1), y),
)
misjudges(
    "raw_nll",
    "The softmax is missing: nll_loss gets raw logits, but needs log-probabilities. Use "
    "F.cross_entropy, or log_softmax before nll_loss.",
    loss_of=nll,
)
misjudges(
    "nll_without_log",
    "The log is missing: the loss is -p of the target. Average -log p: F.cross_entropy on the "
    "logits.",
    loss_of=lambda logits, y: nll(logits.softmax(-1), y),
)
misjudges(
    "probability_of_the_targets",
    "It averages the probability of the targets. Average -log p: F.cross_entropy on the logits.",
    loss_of=lambda logits, y: -nll(logits.softmax(-1), y),
)
misjudges(
    "squared_error_measured",
    "It measures a squared error (MSE) against one-hot targets. Measure the mean cross-entropy.",
    loss_of=mean_squared_error,
)
misjudges(
    "smoothed_labels",
    "The loss has label smoothing of 0.1. Measure the plain cross-entropy: leave label_smoothing "
    "out.",
    loss_of=lambda logits, y: mean_loss(logits, y, label_smoothing=0.1),
)
misjudges(
    "id_zero_ignored",
    "The targets with id 0 are left out (ignore_index=0) as if they were padding, but counted. "
    "There is no padding here: every token counts, 0 too.",
    loss_of=lambda logits, y: mean_loss(logits, y, ignore_index=0),
)
misjudges(
    "id_zero_ignored_and_not_counted",
    "The targets with id 0 are left out (ignore_index=0) as if they were padding. There is no "
    "padding here: every token counts, 0 too.",
    loss_of=lambda logits, y: mean_loss(logits, y, ignore_index=0, reduction="sum"),
    joined=lambda losses, targets: sum(losses) / max(sum(int((y != 0).sum()) for y in targets), 1),
)
misjudges(
    "sum_of_the_words_but_zero",
    "The targets with id 0 are left out of the sum (ignore_index=0) as if they were padding, but "
    "counted. There is no padding here: every token counts, 0 too.",
    loss_of=lambda logits, y: mean_loss(logits, y, ignore_index=0, reduction="sum"),
    joined=lambda losses, targets: sum(losses) / sum(y.numel() for y in targets),
)
misjudges(
    "sums_times_tokens",
    "The sum of each batch is multiplied by its number of tokens once more. Multiply means, or add "
    "up sums (reduction='sum') as they are.",
    joined=lambda losses, targets: (
        sum(s * y.numel() for s, y in zip(sums(losses, targets), targets, strict=True))
        / sum(y.numel() for y in targets)
    ),
)
misjudges(
    "divides_by_the_batches_too",
    "The mean per token is divided by the number of batches once more. Divide once, by the number "
    "of tokens.",
    joined=lambda losses, targets: per_token(losses, targets) / len(losses),
)
misjudges(
    "all_batches_as_large_as_the_last",
    "The total is divided by the size of the last batch times the number of batches. The sizes "
    "differ: count the tokens of each batch, count += y.numel().",
    joined=lambda losses, targets: (
        sum(sums(losses, targets)) / (targets[-1].numel() * len(targets))
    ),
)
misjudges(
    "all_batches_as_large_as_the_first",
    "The total is divided by the size of the first batch times the number of batches. The sizes "
    "differ: count the tokens of each batch, count += y.numel().",
    joined=lambda losses, targets: sum(sums(losses, targets)) / (targets[0].numel() * len(targets)),
)
misjudges(
    "y_not_flattened",
    "The logits are flattened to (B·T, V), but the targets are still (B, T). Flatten both: "
    "y.flatten(), or y.reshape(-1).",
    loss_of=lambda logits, y: plain_cross_entropy(logits.flatten(0, 1), y),
)
misjudges(
    "without_the_last_token",
    "The last token of each sentence is left out, logits[:, :-1] and y[:, :-1]. Average over all "
    "tokens.",
    loss_of=lambda logits, y: mean_loss(logits[:, :-1], y[:, :-1]),
)
misjudges(
    "last_token_of_each",
    "Only the last token of each sentence counts, logits[:, -1]. Average over all tokens.",
    loss_of=lambda logits, y: mean_loss(logits[:, -1:], y[:, -1:]),
)
misjudges(
    "first_sentence_of_each",
    "Only the first sentence of each batch counts, [0]. Average over all tokens of all sentences.",
    loss_of=lambda logits, y: mean_loss(logits[:1], y[:1]),
)
misjudges(
    "shifted_once_more",
    "The targets are shifted once more, logits[:, :-1] against y[:, 1:]: x and y are already one "
    "token apart. Compare each place of model(x) with the same place of y.",
    loss_of=lambda logits, y: mean_loss(logits[:, :-1], y[:, 1:]),
)
misjudges(
    "axis_of_the_vocabulary",
    "cross_entropy gets (B, T, V) logits and takes axis 1, the tokens, for the vocabulary: it "
    "fails unless T = V. Flatten both, logits (B·T, V) and y (B·T), or transpose(1, 2) the logits.",
    loss_of=plain_cross_entropy,
)
misjudges(
    "axes_reshaped",
    "The logits are reshaped to (B, V, T) instead of transposed, so that numbers of different "
    "tokens and words are mixed. Swap the axes: logits.transpose(1, 2), or flatten to (B·T, V).",
    loss_of=lambda z, y: plain_cross_entropy(z.reshape(len(z), z.shape[-1], -1), y),
)
misjudges(
    "axes_swapped",
    "The axes of the logits are swapped, batch and tokens, before they are flattened, but not "
    "those of y: the rows no longer belong together. Flatten both in the same order.",
    loss_of=lambda z, y: mean_loss(z.transpose(0, 1), y),
)
misjudges(
    "all_axes_flattened",
    "The logits are flattened completely, the vocabulary too. Keep the last axis V: "
    "logits.reshape(-1, V), or flatten(0, 1).",
    loss_of=lambda z, y: plain_cross_entropy(z.flatten(), y.flatten()),
)


@evaluation.mistake
def targets_of_x(model, batches):
    """The targets are made from x, x[:, 1:], and y is never used. A batch holds both: compare
    model(x) with y."""
    return measured(model, [(x[:, :-1], x[:, 1:]) for x, _ in batches])


@evaluation.mistake
def batch_cut(model, batches):
    """The batch is shifted once more, x[:, :-1] against y[:, 1:]: x and y are already one token
    apart. Compare model(x) with y, as they are."""
    return measured(model, [(x[:, :-1], y[:, 1:]) for x, y in batches])


@evaluation.mistake
def restored_in_the_loop(model, batches):
    """The mode is restored inside the loop (indentation), after the first batch: for the others
    dropout is on again. Restore it after the loop: model.train(was)."""
    was = model.training
    first = measured(model, batches[:1], joined=sums)
    rest = measured(model, batches[1:], before=nothing, after=nothing, joined=sums)
    model.train(was)
    return sum(first + rest) / sum(y.numel() for _, y in batches)


@evaluation.mistake
def returns_in_the_loop_in_eval_mode(model, batches):
    """Only the first batch is measured: the return stands inside the loop (indentation), so that
    the model is also left in eval mode. Return after the loop and after model.train(was)."""
    return measured(model, batches[:1], after=nothing)


def both(mode: str, mean: str) -> None:
    """Add two mistakes that come together: one with the mode, one with the mean."""
    known = {mistake.id: mistake for mistake in evaluation.mistakes}
    parts = {
        "dropout-stays-on": {"before": nothing},
        "stays-in-eval-mode": {"after": nothing},
        "always-back-to-train-mode": {"after": lambda model, was: model.train()},
        "mean-of-batch-means": {"joined": lambda losses, targets: sum(losses) / len(losses)},
        "sums-over-batches": {
            "joined": lambda losses, targets: sum(sums(losses, targets)) / len(losses)
        },
        "sums-over-sentences": {
            "joined": lambda losses, targets: sum(sums(losses, targets)) / sum(map(len, targets))
        },
    }
    misjudges(
        f"{mode}_and_{mean}".replace("-", "_"),
        f"{known[mode].message} Besides: {known[mean].message}",
        **parts[mode],
        **parts[mean],
    )


for mode in ("dropout-stays-on", "stays-in-eval-mode", "always-back-to-train-mode"):
    for mean in ("mean-of-batch-means", "sums-over-batches", "sums-over-sentences"):
        both(mode, mean)


@evaluation.mistake
def batch_swapped(model, batches):
    """x and y are swapped: the model reads the targets and is measured on the inputs. A batch is
    (x, y): model(x) against y."""
    return measured(model, [(y, x) for x, y in batches])


@evaluation.mistake
def measured_on_the_input(model, batches):
    """The loss compares with the input x, not with the targets y. Cross-entropy of model(x) against
    y."""
    return measured(model, [(x, x) for x, _ in batches])


misjudges(
    "gradients_left",
    "Gradients are left in the parameters: backward() is called. Measuring needs none: leave "
    "backward out, and use torch.no_grad().",
    each=lambda loss: loss.backward(),
)


@evaluation.mistake
def learns_while_it_measures(model, batches):
    """The model learns while it is measured: there are backward and optimizer.step(), so that the
    weights change. Leave them out, and use torch.no_grad()."""
    import torch

    def each(loss):
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.1 * p.grad)

    return measured(model, batches, each=each)


@evaluation.mistake
def parameters_left_frozen(model, batches):
    """requires_grad is switched off and stays off: the model could not learn any more. Use
    torch.no_grad() around the loop, which ends by itself."""
    model.requires_grad_(False)
    return measured(model, batches)


@evaluation.mistake
def gradients_left_switched_off(model, batches):
    """torch.set_grad_enabled(False) stays in force after the call: nothing could learn any more.
    Use it as a context: with torch.no_grad():"""
    import torch

    loss = measured(model, batches)
    torch.set_grad_enabled(False)
    return loss


@evaluation.mistake
def dropout_lost(model, batches):
    """Dropout is switched off for good: p = 0 stays in the layers. Call model.eval() first and
    model.train(was) afterwards."""
    for part in dropouts(model):
        part.p = 0.0
    return measured(model, batches, before=nothing, after=nothing)
