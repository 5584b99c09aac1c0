"""Notebook 08: cut the features into heads, attend in each, and lay the heads side by side."""

import inspect
from collections.abc import Callable

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise, Untested

rng = np.random.default_rng(8)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def coded(B: int, T: int, H: int, d: int) -> np.ndarray:
    """(B, T, H·d) numbers that tell where they come from: 1213 is sentence 1, token 2, head 1,
    feature 3."""
    b, t, h, f = np.ogrid[1 : B + 1, 1 : T + 1, 1 : H + 1, 1 : d + 1]
    return (1000.0 * b + 100 * t + 10 * h + f).reshape(B, T, H * d)


# ---------------------------------------------------------------- split_heads

split_heads = Exercise(
    reference.split_heads,
    notebook="08",
    level=2,
    minutes=5,
    task="Cut the features of each token into heads, this time without reshape: "
    "cut a slice of the features for each head, and stack the slices on a new axis.",
    hints=(
        "Which features belong to head 0, and which to head 1, when there are 8 features and "
        "2 heads?",
        "With d_head = D // num_heads, head h owns the features h * d_head to (h + 1) * d_head. "
        "np.split cuts all slices at once; the axis of the heads comes after that of the batch.",
        "`return np.stack(np.split(x, num_heads, axis=-1), axis=1)`",
    ),
)
split_heads.probe("one sentence of three tokens, two heads", coded(1, 3, 2, 4), 2)
split_heads.probe("a batch of two sentences", coded(2, 3, 2, 4), 2)
split_heads.probe("more heads than features in a head", normal(2, 5, 12), 4)
split_heads.probe("as many tokens as heads", normal(2, 3, 6), 3)
split_heads.probe("as many sentences as heads", normal(3, 4, 15), 3)
split_heads.probe("as many heads as features in a head", normal(2, 4, 9), 3)
split_heads.probe("four of everything", normal(4, 4, 16), 4)
split_heads.probe("one head", normal(2, 3, 5), 1)
split_heads.probe("heads of one feature", normal(2, 3, 5), 5)


def cut(x: np.ndarray, num_heads: int) -> np.ndarray:
    """The first step of split_heads, without the second: (B, T, D) → (B, T, H, D/H)."""
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads)


@split_heads.mistake
def reshape_only(x, num_heads):
    """One reshape to (B, H, T, d_head) gives the right shape but mixes tokens and heads: no number
    moves, so head 0 holds several heads' features of the first tokens. First reshape to
    (B, T, H, d_head), then transpose the axes of tokens and heads: transpose(0, 2, 1, 3)."""
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


@split_heads.mistake
def not_transposed(x, num_heads):
    """The result is (B, T, H, d_head): the transpose is missing. After the reshape swap the axes of
    tokens and heads, transpose(0, 2, 1, 3), so that the heads come before the tokens."""
    return cut(x, num_heads)


@split_heads.mistake
def interleaved(x, num_heads):
    """Each head gets every H-th feature (interleaved). A head owns a contiguous slice: the last
    axis splits in the order (H, d_head), not (d_head, H)."""
    B, T, D = x.shape
    return x.reshape(B, T, D // num_heads, num_heads).transpose(0, 3, 1, 2)


@split_heads.mistake
def interleaved_and_not_transposed(x, num_heads):
    """The last axis is split as (d_head, H), so that the features interleave, and the heads stay
    last. Split it in the order (H, d_head), contiguous slices, then transpose to
    (B, H, T, d_head)."""
    B, T, D = x.shape
    return x.reshape(B, T, D // num_heads, num_heads)


@split_heads.mistake
def heads_before_the_batch(x, num_heads):
    """The heads come first, in front of the batch: (H, B, T, d_head). The batch stays the first
    axis and the heads the second: (B, H, T, d_head), so stack with axis=1."""
    return cut(x, num_heads).transpose(2, 0, 1, 3)


@split_heads.mistake
def tokens_last(x, num_heads):
    """The last two axes are swapped: (B, H, d_head, T) instead of (B, H, T, d_head). The features
    of a head stay the last axis."""
    return cut(x, num_heads).transpose(0, 2, 3, 1)


@split_heads.mistake
def features_before_tokens_and_heads(x, num_heads):
    """The features of a head come before the heads or the tokens: (B, d_head, H, T). The order of
    axes must be (B, H, T, d_head), by transpose(0, 2, 1, 3)."""
    return cut(x, num_heads).transpose(0, 3, 2, 1)


@split_heads.mistake
def features_before_tokens(x, num_heads):
    """The order of axes is (B, d_head, T, H), and must be (B, H, T, d_head): swap the axes of
    tokens and heads, 1 and 2, not 1 and 3."""
    return cut(x, num_heads).transpose(0, 3, 1, 2)


@split_heads.mistake
def last_two_swapped(x, num_heads):
    """The axes of heads and features are swapped, (B, T, d_head, H): the last two. Swap tokens and
    heads instead, axes 1 and 2: (B, H, T, d_head)."""
    return cut(x, num_heads).transpose(0, 1, 3, 2)


@split_heads.mistake
def batch_and_tokens_swapped(x, num_heads):
    """The axes of batch and tokens are swapped: (T, B, H, d_head). Leave the batch first and swap
    tokens and heads, axes 1 and 2."""
    return cut(x, num_heads).transpose(1, 0, 2, 3)


@split_heads.mistake
def batch_third(x, num_heads):
    """The order of axes is (T, H, B, d_head), or the batch is no longer first. Keep the batch as
    the first axis: (B, H, T, d_head), transpose(0, 2, 1, 3)."""
    return cut(x, num_heads).transpose(1, 2, 0, 3)


@split_heads.mistake
def batch_and_heads_swapped(x, num_heads):
    """The axes of batch and heads are swapped: (H, T, B, d_head). Swap tokens and heads, axes 1
    and 2, and leave the batch first."""
    return cut(x, num_heads).transpose(2, 1, 0, 3)


@split_heads.mistake
def all_axes_reversed(x, num_heads):
    """.T reverses all axes, the batch too: (d_head, H, T, B). Swap only tokens and heads:
    transpose(0, 2, 1, 3) or swapaxes(1, 2)."""
    return cut(x, num_heads).T


@split_heads.mistake
def transposed_before_the_reshape(x, num_heads):
    """The transpose comes before the reshape, which then mixes tokens and features. The order is:
    first reshape to (B, T, H, d_head), then transpose tokens and heads."""
    B, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, num_heads, T, D // num_heads)


@split_heads.mistake
def number_taken_for_width(x, num_heads):
    """num_heads is used as the width of a head. It is the number of heads; the width d_head is
    D // num_heads: swap the two in the reshape, (B, T, num_heads, d_head)."""
    return reference.split_heads(x, x.shape[-1] // num_heads)


@split_heads.mistake
def heads_reversed(x, num_heads):
    """The heads stand in reversed order. Head 0 owns the first slice of the features, head h the
    slice from h * d_head to (h + 1) * d_head."""
    return reference.split_heads(x, num_heads)[:, ::-1]


@split_heads.mistake
def same_slice_for_all(x, num_heads):
    """Every head holds the same slice of the features, the first. Head h owns its own slice, from
    h * d_head to (h + 1) * d_head."""
    return np.repeat(reference.split_heads(x, num_heads)[:, :1], num_heads, axis=1)


@split_heads.mistake
def overlapping_slices(x, num_heads):
    """The slices of the heads overlap: head h starts at feature h. It must start at h * d_head,
    so that no feature is in two heads."""
    d = x.shape[-1] // num_heads
    return np.stack([x[..., h : h + d] for h in range(num_heads)], axis=1)


@split_heads.mistake
def all_features_in_every_head(x, num_heads):
    """Every head holds a copy of all D features. The features are split among the heads: each gets
    a slice of width d_head = D // num_heads."""
    return np.repeat(x[:, None], num_heads, axis=1)


@split_heads.mistake
def only_one_head(x, num_heads):
    """Only the first head is returned (or the loop returns too early). All num_heads heads belong
    in the result, on an axis of their own."""
    return reference.split_heads(x, num_heads)[:, :1]


@split_heads.mistake
def first_head_without_its_axis(x, num_heads):
    """Only the first head is returned, without the axis of the heads. All num_heads heads belong
    in the result: (B, H, T, d_head)."""
    return reference.split_heads(x, num_heads)[:, 0]


@split_heads.mistake
def heads_merged_with_the_batch(x, num_heads):
    """Batch and heads are merged into one axis: (B * H, T, d_head). Keep four axes:
    (B, H, T, d_head)."""
    B, T, D = x.shape
    return reference.split_heads(x, num_heads).reshape(B * num_heads, T, D // num_heads)


@split_heads.mistake
def list_of_heads(x, num_heads):
    """It returns a list of heads instead of one array. Stack them along a new axis, axis=1, after
    the batch: (B, H, T, d_head)."""
    return np.split(x, num_heads, axis=-1)


@split_heads.mistake
def only_the_first_sentence(x, num_heads):
    """Only the first sentence of the batch is split. Keep the batch: all B sentences belong in the
    result, (B, H, T, d_head)."""
    return reference.split_heads(x, num_heads)[:1]


@split_heads.mistake
def batch_lost(x, num_heads):
    """The batch axis is lost: only the first sentence is split, to (H, T, d_head). All B sentences
    belong in the result, (B, H, T, d_head)."""
    return reference.split_heads(x, num_heads)[0]


@split_heads.mistake
def tokens_dealt_out(x, num_heads):
    """The tokens are dealt out to the heads, not the features: the wrong axis is split. Every head
    sees all tokens, and a slice of the last axis, the features."""
    B, T, D = x.shape
    return x.reshape(B, num_heads, T // num_heads, D)


@split_heads.mistake
def last_head_missing(x, num_heads):
    """The last head is missing: the loop stops one too early. Use range(num_heads)."""
    return np.stack(np.split(x, num_heads, axis=-1)[:-1], axis=1)


@split_heads.mistake
def slices_too_short(x, num_heads):
    """The slices are one feature too short. The end of a slice is not included: head h goes from
    h * d_head to (h + 1) * d_head, without - 1."""
    return reference.split_heads(x, num_heads)[..., :-1]


@split_heads.mistake
def slices_start_at_multiples_of_num_heads(x, num_heads):
    """The slices start at h * num_heads. Head h starts at h * d_head, the width of a head, not the
    number of heads."""
    d = x.shape[-1] // num_heads
    starts = [h * num_heads for h in range(num_heads)]
    return np.stack([x[..., start : start + d] for start in starts], axis=1)


@split_heads.mistake
def heads_below_one_another(x, num_heads):
    """The heads are concatenated along the tokens, one below the other: (B, H * T, d_head). Give
    them an axis of their own: np.stack(..., axis=1) instead of np.concatenate."""
    return np.concatenate(np.split(x, num_heads, axis=-1), axis=1)


@split_heads.mistake
def heads_below_the_batch(x, num_heads):
    """The heads are concatenated along the batch: (H * B, T, d_head). Give them an axis of their
    own, after the batch: np.stack(..., axis=1) instead of np.concatenate."""
    return np.concatenate(np.split(x, num_heads, axis=-1), axis=0)


@split_heads.mistake
def heads_and_batch_by_reshape_only(x, num_heads):
    """One reshape to (B * H, T, d_head) mixes tokens and heads and merges heads with the batch.
    Reshape to (B, T, H, d_head), then transpose: four axes, (B, H, T, d_head)."""
    B, T, D = x.shape
    return x.reshape(B * num_heads, T, D // num_heads)


@split_heads.mistake
def heads_first_by_reshape_only(x, num_heads):
    """One reshape to (H, B, T, d_head) mixes sentences, tokens and heads, and the heads come before
    the batch. Reshape to (B, T, H, d_head), then transpose(0, 2, 1, 3)."""
    B, T, D = x.shape
    return x.reshape(num_heads, B, T, D // num_heads)


@split_heads.mistake
def heads_first_then_swapped(x, num_heads):
    """The reshape to (H, B, T, d_head) mixes sentences, tokens and heads; swapping the first two
    axes afterwards does not undo that. Reshape to (B, T, H, d_head), then transpose(0, 2, 1, 3)."""
    B, T, D = x.shape
    return x.reshape(num_heads, B, T, D // num_heads).swapaxes(0, 1)


@split_heads.mistake
def axes_of_length_one_lost(x, num_heads):
    """squeeze takes away every axis of length 1: the batch when there is one sentence, the heads
    when there is one head. Leave squeeze out: (B, H, T, d_head) has four axes always."""
    return reference.split_heads(x, num_heads).squeeze()


# ---------------------------------------------------------------- merge_heads

merge_heads = Exercise(
    reference.merge_heads,
    notebook="08",
    level=1,
    minutes=5,
    task="Lay the heads side by side again, this time without transpose: "
    "concatenate what each head holds along the features.",
    hints=(
        "x[:, h] is what head h holds, (B, T, d_head). In which direction do they join?",
        "Each head keeps its features, one head after the other: concatenate along the last axis.",
        "`return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)`",
    ),
)
merge_heads.probe("two heads of one sentence", reference.split_heads(coded(1, 3, 2, 4), 2))
merge_heads.probe("a batch of two sentences", reference.split_heads(coded(2, 3, 2, 4), 2))
merge_heads.probe("more heads than features in a head", normal(2, 4, 5, 3))
merge_heads.probe("as many tokens as heads", normal(2, 3, 3, 2))
merge_heads.probe("as many sentences as heads", normal(3, 3, 4, 5))
merge_heads.probe("as many heads as features in a head", normal(2, 3, 4, 3))
merge_heads.probe("four of everything", normal(4, 4, 4, 4))
merge_heads.probe("one head", normal(2, 1, 3, 5))


def laid_out(x: np.ndarray, *axes: int) -> np.ndarray:
    """Heads (B, H, T, d) with their axes in another order, then flattened to (B, T, H·d)."""
    B, H, T, d = x.shape
    return x.transpose(axes).reshape(B, T, H * d)


@merge_heads.mistake
def no_transpose_back(x):
    """The transpose is missing: reshape alone mixes tokens and heads. First transpose the axes of
    heads and tokens back, to (B, T, H, d_head), then reshape to (B, T, H * d_head)."""
    return laid_out(x, 0, 1, 2, 3)


@merge_heads.mistake
def features_interleaved(x):
    """The features of the heads alternate (interleaved), as the order is (d_head, H) before the
    reshape. Each head fills a contiguous block: transpose to (B, T, H, d_head),
    transpose(0, 2, 1, 3)."""
    return laid_out(x, 0, 2, 3, 1)


@merge_heads.mistake
def last_two_transposed(x):
    """The last two axes, tokens and features of a head, are swapped before the reshape. Swap the
    axes of heads and tokens instead, 1 and 2: (B, T, H, d_head)."""
    return laid_out(x, 0, 1, 3, 2)


@merge_heads.mistake
def features_before_heads_and_tokens(x):
    """Before the reshape the axes are (B, d_head, H, T): the wrong order. Tokens come right after
    the batch: transpose(0, 2, 1, 3) gives (B, T, H, d_head)."""
    return laid_out(x, 0, 3, 1, 2)


@merge_heads.mistake
def heads_and_features_swapped(x):
    """Before the reshape the axes are (B, d_head, T, H): heads and features of a head are swapped.
    Swap the axes of heads and tokens, 1 and 2: (B, T, H, d_head)."""
    return laid_out(x, 0, 3, 2, 1)


@merge_heads.mistake
def tokens_before_the_batch(x):
    """The tokens come before the batch in the transpose, and the reshape mixes the sentences. The
    batch stays first: transpose(0, 2, 1, 3), then reshape."""
    return laid_out(x, 2, 0, 1, 3)


@merge_heads.mistake
def batch_and_tokens_exchanged(x):
    """The result is (T, B, H * d_head): the axes of batch and tokens are swapped. The batch stays
    first: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(2, 0, 1, 3).reshape(T, B, H * d)


@merge_heads.mistake
def all_reversed_by_T(x):
    """.T reverses all axes, the batch too, before the reshape. Swap only heads and tokens:
    transpose(0, 2, 1, 3) or swapaxes(1, 2)."""
    B, H, T, d = x.shape
    return x.T.reshape(B, T, H * d)


@merge_heads.mistake
def sum_of_heads(x):
    """The heads are added (a sum over axis 1). Concatenate them instead, side by side along the
    features, so that each head keeps its own."""
    return x.sum(axis=1)


@merge_heads.mistake
def mean_of_heads(x):
    """The heads are averaged (a mean over axis 1). Concatenate them instead, side by side along
    the features, so that each head keeps its own."""
    return x.mean(axis=1)


@merge_heads.mistake
def largest_of_heads(x):
    """Only the largest number (max) of the heads is kept. Concatenate the heads instead, side by
    side along the features, so that each keeps its own."""
    return x.max(axis=1)


@merge_heads.mistake
def product_of_heads(x):
    """The heads are multiplied with each other. Concatenate them instead, side by side along the
    features, so that each keeps its own."""
    return x.prod(axis=1)


@merge_heads.mistake
def only_the_first_head(x):
    """Only the first head is returned. All heads belong in the result: concatenate them side by
    side along the features, (B, T, H * d_head)."""
    return x[:, 0]


@merge_heads.mistake
def only_the_last_head(x):
    """Only the last head is returned: is it overwritten in the loop? All heads belong in the
    result: concatenate them side by side along the features, (B, T, H * d_head)."""
    return x[:, -1]


@merge_heads.mistake
def first_head_repeated(x):
    """The first head is repeated in place of the others. Each head fills its own block of the
    features: head h is x[:, h]."""
    return np.concatenate([x[:, 0]] * x.shape[1], axis=-1)


@merge_heads.mistake
def order_of_heads_reversed(x):
    """The heads stand in reversed order. Head 0 comes first, and head h fills the features from
    h * d_head on."""
    return reference.merge_heads(x[:, ::-1])


@merge_heads.mistake
def heads_below_each_other(x):
    """The heads are concatenated along the tokens, one below the other: (B, H * T, d_head). Lay
    them side by side, along the last axis, the features: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.reshape(B, H * T, d)


@merge_heads.mistake
def tokens_below_each_other(x):
    """Tokens and heads are merged into one axis: (B, T * H, d_head). Merge heads and features
    instead, the last two axes after the transpose: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T * H, d)


@merge_heads.mistake
def heads_not_flattened(x):
    """The reshape is missing: the result is (B, T, H, d_head), heads still on an axis of their
    own. Flatten the last two axes to H * d_head."""
    return x.transpose(0, 2, 1, 3)


@merge_heads.mistake
def tokens_flattened_too(x):
    """Tokens and features are flattened together: (B, T * H * d_head). Each token keeps its own
    row: flatten only the last two axes, heads and features, to (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T * H * d)


@merge_heads.mistake
def tokens_flattened_with_features(x):
    """The last two axes, tokens and features, are flattened: (B, H, T * d_head), which leaves the
    heads apart. Flatten heads and features: transpose to (B, T, H, d_head), then reshape."""
    return x.reshape(*x.shape[:2], -1)


@merge_heads.mistake
def batch_flattened_too(x):
    """Batch and tokens are merged into one axis: (B * T, H * d_head). Keep the batch as an axis of
    its own: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B * T, H * d)


@merge_heads.mistake
def features_before_the_tokens(x):
    """The result is (B, H * d_head, T), transposed: features before tokens. The features are the
    last axis: (B, T, H * d_head)."""
    return reference.merge_heads(x).swapaxes(1, 2)


@merge_heads.mistake
def first_sentence_only(x):
    """Only the first sentence of the batch is merged, and the batch axis is lost. All B sentences
    belong in the result: (B, T, H * d_head)."""
    return reference.merge_heads(x)[0]


@merge_heads.mistake
def first_head_missing(x):
    """The first head is missing: the loop starts at 1. Heads are counted from 0:
    range(x.shape[1])."""
    return np.concatenate([x[:, h] for h in range(1, x.shape[1])], axis=-1)


@merge_heads.mistake
def last_head_not_merged(x):
    """The last head is missing: the loop stops one too early. Use range(x.shape[1])."""
    return np.concatenate([x[:, h] for h in range(x.shape[1] - 1)], axis=-1)


@merge_heads.mistake
def heads_on_the_batch(x):
    """The heads are concatenated along the batch, axis=0. Lay them side by side, along the last
    axis, the features, axis=-1: (B, T, H * d_head)."""
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=0)


@merge_heads.mistake
def sentences_side_by_side(x):
    """The sentences of the batch are concatenated, not the heads: a loop over x takes axis 0. The
    heads are axis 1: x[:, h]."""
    return np.concatenate(x, axis=-1)


@merge_heads.mistake
def batch_and_heads_mixed(x):
    """The axes of batch and heads are swapped before the reshape, which mixes the sentences. Swap
    heads and tokens, axes 1 and 2: transpose(0, 2, 1, 3)."""
    return laid_out(x, 1, 0, 2, 3)


@merge_heads.mistake
def reshaped_to_tokens_first(x):
    """The reshape names the axes in the wrong order, (T, B, H * d_head). The batch stays first:
    (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(T, B, H * d)


@merge_heads.mistake
def reshaped_to_features_first(x):
    """The reshape names the axes in the wrong order, (B, H * d_head, T). The features are the last
    axis: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, H * d, T)


@merge_heads.mistake
def list_not_merged(x):
    """It returns a list of heads. Concatenate them to one array, along the last axis."""
    return [x[:, h] for h in range(x.shape[1])]


@merge_heads.mistake
def merged_and_divided(x):
    """The joined heads are divided by their number. Nothing is averaged: each head keeps its
    features as they are."""
    return reference.merge_heads(x) / x.shape[1]


@merge_heads.mistake
def axis_of_length_one_lost(x):
    """squeeze takes away the batch when it holds one sentence, an axis of length 1. Leave squeeze
    out: (B, T, H * d_head) has three axes always."""
    return reference.merge_heads(x).squeeze()


# ---------------------------------------------------------------- multi_head_attention

multi_head_attention = Exercise(
    reference.multi_head_attention,
    notebook="08",
    level=3,
    minutes=15,
    task="Write multi-head attention again, head by head: a loop in which each head takes its "
    "own columns of W_q, W_k and W_v. Join what they return, and multiply by W_o.",
    hints=(
        "Head h owns the slice of columns from h * d to (h + 1) * d of W_q, W_k and W_v. How wide "
        "is d, and by which root must its scores be divided?",
        "In the loop: Q = x @ W_q[:, own], K and V from source in the same way; scores divided by "
        "√d; mask; softmax; weights @ V. After the loop concatenate along the last axis, then "
        "multiply by W_o. A mask (T, Tk) or (B, T, Tk) fits scores (B, T, Tk) as it is.",
        "`heads.append(safe_masked_softmax(scores, mask) @ V)`, and at the end `return "
        "np.concatenate(heads, axis=-1) @ W_o`",
    ),
)


def takes_memory(fn: Callable) -> bool:
    """Whether an answer has the parameter `memory`: self-attention alone is right as well."""
    parameters = inspect.signature(getattr(fn, "function", fn)).parameters.values()
    return any(p.name == "memory" or p.kind is p.VAR_KEYWORD for p in parameters)


def probe_memory(label: str, *args: np.ndarray, **kwargs: np.ndarray) -> None:
    """A probe for those answers that take `memory`."""

    @multi_head_attention.experiment(label)
    def read_from_memory(fn):
        return fn(*args, **kwargs) if takes_memory(fn) else Untested()


def weights_for(D: int) -> list[np.ndarray]:
    """W_q, W_k, W_v, W_o, each (D, D), not symmetric."""
    return [normal(D, D) / np.float32(D**0.5) * 2 for _ in range(4)]


def some_mask(*shape: int) -> np.ndarray:
    """A mask with True and False in every row, from the first key on, in every sentence its own.

    Neither its opposite nor its transpose leaves a query without any key, so that it does not
    matter how a wrong answer treats one.
    """
    mask = rng.random(shape) > 0.5
    query = np.arange(shape[-2])
    mask[..., query, query % shape[-1]] = True
    mask[..., query, (query + 1) % shape[-1]] = False
    return mask


small = np.array([[[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, -1.0], [2.0, 1.0, 0.0, 0.0]]])
small_weights = [rng.integers(-1, 2, size=(4, 4)).astype(float) for _ in range(4)]
multi_head_attention.probe("one sentence of three tokens, two heads", small, *small_weights, 2)
multi_head_attention.probe("a batch of two sentences", normal(2, 5, 12), *weights_for(12), 4)
multi_head_attention.probe("two wide heads", normal(3, 4, 10), *weights_for(10), 2)
multi_head_attention.probe("one head", normal(2, 5, 6), *weights_for(6), 1)
multi_head_attention.probe(
    "a mask of tokens by tokens", normal(2, 5, 12), *weights_for(12), 4, mask=some_mask(5, 5)
)
multi_head_attention.probe(
    "a mask for each sentence", normal(2, 5, 12), *weights_for(12), 4, mask=some_mask(2, 5, 5)
)
multi_head_attention.probe(
    "as many sentences as heads, a mask for each sentence",
    *(normal(3, 4, 6), *weights_for(6), 3),
    mask=some_mask(3, 4, 4),
)
multi_head_attention.probe(
    "as many tokens as heads, one mask", normal(2, 4, 12), *weights_for(12), 4, mask=some_mask(4, 4)
)
multi_head_attention.probe(
    "as many sentences, tokens and heads, a mask for each sentence",
    *(normal(3, 3, 15), *weights_for(15), 3),
    mask=some_mask(3, 3, 3),
)
large = rng.integers(-9, 10, size=(2, 5, 8)) * 30.0
whole = [rng.integers(-3, 4, size=(8, 8)).astype(float) for _ in range(4)]
multi_head_attention.probe("huge scores", large, *whole, 2)
multi_head_attention.probe("huge masked scores", large, *whole, 2, mask=some_mask(5, 5))
probe_memory(
    "keys and values from memory, longer than the sentence",
    *(normal(2, 3, 12), *weights_for(12), 4),
    memory=normal(2, 5, 12),
)
probe_memory(
    "memory of the same length, with a mask",
    *(normal(2, 4, 6), *weights_for(6), 3),
    mask=some_mask(4, 4),
    memory=normal(2, 4, 6),
)
probe_memory(
    "memory with a mask for each sentence",
    *(normal(3, 5, 6), *weights_for(6), 3),
    mask=some_mask(3, 5, 4),
    memory=normal(3, 4, 6),
)


# The mistakes below are multi-head attention with one part exchanged.


def scaled_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    return Q @ K.swapaxes(-1, -2) / K.shape[-1] ** 0.5


def plain_softmax(S: np.ndarray, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    e = np.exp(S - S.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def for_all_heads(mask: np.ndarray) -> np.ndarray:
    return mask[:, None] if mask.ndim == 3 else mask


def forbid(S: np.ndarray, mask: np.ndarray | None, fill: float = -np.inf) -> np.ndarray:
    return S if mask is None else np.where(for_all_heads(mask), S, fill)


def masked_weights(S: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return plain_softmax(forbid(S, mask, -1e30))


def project(x: np.ndarray, source: np.ndarray, W_q, W_k, W_v) -> tuple:
    return x @ W_q, source @ W_k, source @ W_v


def attend(
    x,
    W_q,
    W_k,
    W_v,
    W_o,
    num_heads,
    mask=None,
    memory=None,
    *,
    project=project,
    split=reference.split_heads,
    scores=scaled_scores,
    weigh=masked_weights,
    mix=np.matmul,
    merge=reference.merge_heads,
    finish=np.matmul,
):
    """Multi-head attention of exchangeable parts; each hands its result to the next."""
    projected = project(x, x if memory is None else memory, W_q, W_k, W_v)
    Q, K, V = (split(z, num_heads) for z in projected)
    context = mix(weigh(scores(Q, K), mask), V)  # (B, H, T, d_head)
    return finish(merge(context), W_o)


# ---- the projections


@multi_head_attention.mistake
def weights_transposed(*args, **kwargs):
    """W_q, W_k and W_v are used transposed. They multiply from the right as they are, x @ W_q: head
    h owns their columns, not their rows. (Only nn.Linear stores its weight transposed.)"""
    return attend(
        *args,
        **kwargs,
        project=lambda x, s, W_q, W_k, W_v: (x @ W_q.T, s @ W_k.T, s @ W_v.T),
    )


@multi_head_attention.mistake
def all_weights_transposed(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """All weights are used transposed, W_o too. They multiply from the right as they are, x @ W_q
    and joined @ W_o. (Only nn.Linear stores its weight transposed.)"""
    return attend(x, W_q.T, W_k.T, W_v.T, W_o.T, num_heads, mask, memory)


@multi_head_attention.mistake
def W_q_transposed(x, W_q, *args, **kwargs):
    """W_q is used transposed. It multiplies from the right as it is: Q = x @ W_q."""
    return attend(x, W_q.T, *args, **kwargs)


@multi_head_attention.mistake
def W_k_transposed(x, W_q, W_k, *args, **kwargs):
    """W_k is used transposed. Transpose the keys in the scores, Q Kᵀ, but not their weights:
    K = x @ W_k."""
    return attend(x, W_q, W_k.T, *args, **kwargs)


@multi_head_attention.mistake
def W_v_transposed(x, W_q, W_k, W_v, *args, **kwargs):
    """W_v is used transposed. It multiplies from the right as it is: V = x @ W_v."""
    return attend(x, W_q, W_k, W_v.T, *args, **kwargs)


@multi_head_attention.mistake
def keys_with_W_q(x, W_q, W_k, *args, **kwargs):
    """The keys are made with W_q, so that queries and keys share one matrix. K needs its own:
    K = x @ W_k."""
    return attend(x, W_q, W_q, *args, **kwargs)


@multi_head_attention.mistake
def queries_with_W_k(x, W_q, W_k, *args, **kwargs):
    """The queries are made with W_k, so that queries and keys share one matrix. Q needs its own:
    Q = x @ W_q."""
    return attend(x, W_k, W_k, *args, **kwargs)


@multi_head_attention.mistake
def values_with_W_k(x, W_q, W_k, W_v, *args, **kwargs):
    """The values are made with W_k, or the weights average the keys. V needs its own matrix,
    V = x @ W_v, and the weights multiply V: weights @ V."""
    return attend(x, W_q, W_k, W_k, *args, **kwargs)


@multi_head_attention.mistake
def values_with_W_q(x, W_q, W_k, W_v, *args, **kwargs):
    """The values are made with W_q. V needs its own matrix: V = x @ W_v."""
    return attend(x, W_q, W_k, W_q, *args, **kwargs)


@multi_head_attention.mistake
def W_q_for_all(x, W_q, W_k, W_v, *args, **kwargs):
    """Queries, keys and values are all made with W_q. Each has its own matrix: W_q for Q, W_k for
    K, W_v for V."""
    return attend(x, W_q, W_q, W_q, *args, **kwargs)


@multi_head_attention.mistake
def W_q_and_W_k_swapped(x, W_q, W_k, *args, **kwargs):
    """Queries and keys are swapped: W_q makes the queries Q and W_k the keys K, and scores are
    Q Kᵀ, one row for each query."""
    return attend(x, W_k, W_q, *args, **kwargs)


@multi_head_attention.mistake
def W_k_and_W_v_swapped(x, W_q, W_k, W_v, *args, **kwargs):
    """Keys and values are swapped: W_k makes the keys K, which meet the queries in the scores, and
    W_v the values V, which the weights average."""
    return attend(x, W_q, W_v, W_k, *args, **kwargs)


@multi_head_attention.mistake
def W_q_and_W_v_swapped(x, W_q, W_k, W_v, *args, **kwargs):
    """Queries and values are swapped: W_q makes the queries Q, W_v the values V. Check the order of
    the arguments."""
    return attend(x, W_v, W_k, W_q, *args, **kwargs)


@multi_head_attention.mistake
def not_projected(*args, **kwargs):
    """x is split into heads without any projection: W_q, W_k and W_v are never used. First
    x @ W_q, x @ W_k, x @ W_v, then split."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x, s, s))


@multi_head_attention.mistake
def values_not_projected(*args, **kwargs):
    """The values are x itself: W_v is missing. V = x @ W_v, as Q and K have their own matrices."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x @ W_q, s @ W_k, s))


@multi_head_attention.mistake
def keys_not_projected(*args, **kwargs):
    """The keys are x itself: W_k is missing. K = x @ W_k."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x @ W_q, s, s @ W_v))


@multi_head_attention.mistake
def queries_not_projected(*args, **kwargs):
    """The queries are x itself: W_q is missing. Q = x @ W_q."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x, s @ W_k, s @ W_v))


@multi_head_attention.mistake
def values_from_keys(*args, **kwargs):
    """The values are projected from the keys, one product after the other: (x @ W_k) @ W_v. All
    three projections start from x: V = x @ W_v."""
    return attend(
        *args,
        **kwargs,
        project=lambda x, s, W_q, W_k, W_v: (x @ W_q, s @ W_k, s @ W_k @ W_v),
    )


@multi_head_attention.mistake
def each_head_sees_a_slice_of_x(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """x is split before the projection, so that each head sees only its own slice of the features
    of x. Every head reads all features: project first, x @ W_q, then split into heads."""
    d = x.shape[-1] // num_heads
    block = np.kron(np.eye(num_heads), np.ones((d, d)))  # 1 where slice and head are the same
    return attend(x, W_q * block, W_k * block, W_v * block, W_o, num_heads, mask, memory)


@multi_head_attention.mistake
def same_columns_for_all_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """All places hold the first head: every head uses the same columns of W_q, W_k and W_v, or the
    first is joined again and again. Head h owns its own slice of columns, from h * d_head to
    (h + 1) * d_head."""
    d = x.shape[-1] // num_heads
    W_q, W_k, W_v = (np.tile(W[:, :d], num_heads) for W in (W_q, W_k, W_v))
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory)


@multi_head_attention.mistake
def weights_reshaped(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """The weights are reshaped to (H, D, d_head), which mixes their rows. Head h owns columns:
    take W_q[:, h * d_head:(h + 1) * d_head], or reshape to (D, H, d_head) and transpose."""
    D, H = x.shape[-1], num_heads
    mixed = (W.reshape(H, D, D // H).transpose(1, 0, 2).reshape(D, D) for W in (W_q, W_k, W_v))
    return attend(x, *mixed, W_o, num_heads, mask, memory)


# ---- split and merge


@multi_head_attention.mistake
def split_by_reshape_only(*args, **kwargs):
    """To split, reshape alone is used, without transpose: it mixes tokens and heads. First reshape
    to (B, T, H, d_head), then transpose(0, 2, 1, 3) to (B, H, T, d_head)."""
    return attend(*args, **kwargs, split=reshape_only)


@multi_head_attention.mistake
def split_and_merge_by_reshape_only(*args, **kwargs):
    """Both split and merge use reshape alone, without transpose, which mixes tokens and heads. To
    split: reshape to (B, T, H, d_head), then transpose tokens and heads. To merge: transpose back,
    then reshape."""
    return attend(*args, **kwargs, split=reshape_only, merge=no_transpose_back)


@multi_head_attention.mistake
def split_not_transposed(*args, **kwargs):
    """The transpose after the split is missing, so each token attends to its own heads and no
    token reads another. Transpose (B, T, H, d_head) to (B, H, T, d_head) before the scores, and
    back before the merge."""
    flat = lambda x: x.reshape(*x.shape[:2], -1)  # noqa: E731
    return attend(*args, **kwargs, split=cut, merge=flat)


@multi_head_attention.mistake
def split_not_transposed_mask_as_it_is(*args, **kwargs):
    """The transpose after the split is missing: scores (B, T, H, H) compare the heads of one token,
    and the mask of tokens does not fit them. Transpose (B, T, H, d_head) to (B, H, T, d_head)
    before the scores, so that tokens attend to tokens."""
    bare = lambda S, mask: plain_softmax(S if mask is None else np.where(mask, S, -1e30))  # noqa: E731
    return split_not_transposed(*args, **kwargs, weigh=bare)


@multi_head_attention.mistake
def split_not_transposed_without_mask(*args, **kwargs):
    """The transpose after the split is missing, so the heads of one token attend to each other, and
    the mask is not used. Transpose (B, T, H, d_head) to (B, H, T, d_head) before the scores, so
    that tokens attend to tokens."""
    return split_not_transposed(*args, **kwargs, weigh=lambda S, mask: plain_softmax(S))


@multi_head_attention.mistake
def split_interleaved(*args, **kwargs):
    """Each head gets every H-th feature (interleaved), and owns no contiguous slice. Reshape the
    last axis in the order (H, d_head), not (d_head, H)."""
    return attend(*args, **kwargs, split=interleaved)


@multi_head_attention.mistake
def split_and_merge_interleaved(*args, **kwargs):
    """Split and merge interleave the features: each head gets every H-th feature. Heads own
    contiguous slices: the last axis splits in the order (H, d_head), not (d_head, H)."""
    return attend(*args, **kwargs, split=interleaved, merge=features_interleaved)


@multi_head_attention.mistake
def width_taken_for_number(*args, **kwargs):
    """num_heads is used as the width of a head. It is the number of heads, and d_head is
    D // num_heads: swap the two in the reshape."""
    return attend(*args, **kwargs, split=number_taken_for_width)


@multi_head_attention.mistake
def width_taken_for_number_except_in_the_scale(*args, **kwargs):
    """Number and width of the heads are swapped in the reshape: (B, T, d_head, H) instead of
    (B, T, H, d_head), so that there are d_head heads of width num_heads."""
    scores = lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[1] ** 0.5  # noqa: E731
    return attend(*args, **kwargs, split=number_taken_for_width, scores=scores)


@multi_head_attention.mistake
def overlapping_columns(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """The slices of the heads overlap: head h starts at column h. It must start at h * d_head, so
    that no column is in two heads."""
    d = x.shape[-1] // num_heads
    own = np.concatenate([np.arange(h, h + d) for h in range(num_heads)])
    return attend(x, W_q[:, own], W_k[:, own], W_v[:, own], W_o, num_heads, mask, memory)


@multi_head_attention.mistake
def heads_not_side_by_side(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """It fails as soon as there is more than one head: the heads are not laid side by side before
    W_o (summed, averaged, overwritten in the loop, or joined along another axis). Concatenate all
    of them along the last axis, the features: (B, T, H * d_head) fits the rows of W_o."""
    if num_heads > 1:
        raise ValueError("matmul: mismatch in the core dimension")
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory)


@multi_head_attention.mistake
def merge_by_reshape_only(*args, **kwargs):
    """The heads are merged by reshape alone, without transpose: it mixes tokens and heads. Before
    the reshape transpose back to (B, T, H, d_head)."""
    return attend(*args, **kwargs, merge=no_transpose_back)


@multi_head_attention.mistake
def merge_interleaved(*args, **kwargs):
    """The merge interleaves the features of the heads. Each head fills a contiguous block:
    transpose to (B, T, H, d_head), then reshape."""
    return attend(*args, **kwargs, merge=features_interleaved)


@multi_head_attention.mistake
def merge_with_last_two_swapped(*args, **kwargs):
    """Before the merge the last two axes are swapped, instead of heads and tokens, axes 1 and 2.
    transpose(0, 2, 1, 3) gives (B, T, H, d_head), then reshape."""
    return attend(*args, **kwargs, merge=last_two_transposed)


@multi_head_attention.mistake
def merge_in_reversed_order(*args, **kwargs):
    """The heads are joined in reversed order. Head 0 comes first, so that it meets the first rows
    of W_o."""
    return attend(*args, **kwargs, merge=order_of_heads_reversed)


@multi_head_attention.mistake
def last_head_in_all_places(*args, **kwargs):
    """All places of the merge hold the last head: is a variable of the loop overwritten?
    Concatenate every head once, in order."""
    return attend(*args, **kwargs, merge=lambda c: first_head_repeated(c[:, ::-1]))


@multi_head_attention.mistake
def heads_averaged(*args, **kwargs):
    """The heads are averaged. Concatenate them along the last axis, the features, so that each
    keeps its own block, and only then multiply by W_o."""

    def average(c):
        return first_head_repeated(np.repeat(c.mean(axis=1, keepdims=True), c.shape[1], axis=1))

    return attend(*args, **kwargs, merge=average)


@multi_head_attention.mistake
def heads_summed(*args, **kwargs):
    """The heads are added. Concatenate them along the last axis, the features, so that each keeps
    its own block, and only then multiply by W_o."""

    def total(c):
        return first_head_repeated(np.repeat(c.sum(axis=1, keepdims=True), c.shape[1], axis=1))

    return attend(*args, **kwargs, merge=total)


@multi_head_attention.mistake
def no_heads(*args, **kwargs):
    """num_heads is ignored: this is one wide head with all features. Split Q, K and V into
    num_heads heads, each with a softmax of its own."""
    return attend(*args, **kwargs, split=lambda x, _: x[:, None])


@multi_head_attention.mistake
def no_heads_but_their_scale(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """All heads share the same weights: the features are never split, num_heads changes only the
    scale, or the scores of the heads are added. Split Q, K and V into num_heads heads, each with
    scores and a softmax of its own."""
    split = lambda z, _: z[:, None]  # noqa: E731
    wide = lambda Q, K: scaled_scores(Q, K) * num_heads**0.5  # noqa: E731
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory, split=split, scores=wide)


@multi_head_attention.mistake
def weights_averaged_over_heads(*args, **kwargs):
    """The weights are averaged over the heads before they meet the values. Each head uses its own
    weights: weights @ V, head by head."""

    def shared(S, mask):
        weights = masked_weights(S, mask)
        return weights * 0 + weights.mean(axis=1, keepdims=True)

    return attend(*args, **kwargs, weigh=shared)


# ---- scores and scale


@multi_head_attention.mistake
def not_scaled(*args, **kwargs):
    """The scale is missing: divide the scores by √d_k, the root of the width of a head, before the
    softmax."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2))


@multi_head_attention.mistake
def scaled_by_d_model(*args, **kwargs):
    """The scores are divided by √D, the root of the full width d_model. Divide by √d_k, the root of
    the width of one head, D / num_heads."""
    return attend(*args, **kwargs, scores=lambda Q, K: scaled_scores(Q, K) / Q.shape[1] ** 0.5)


@multi_head_attention.mistake
def scaled_by_number_of_heads(*args, **kwargs):
    """The scores are divided by the root of the number of heads (shape[1] after the split). Divide
    by √d_k, the root of the width of a head, shape[-1]."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[1] ** 0.5)


@multi_head_attention.mistake
def scaled_by_number_of_queries(*args, **kwargs):
    """The scores are divided by the root of the number of tokens (shape[-2] or shape[2]). Divide by
    √d_k, the root of the width of a head, shape[-1]."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[2] ** 0.5)


@multi_head_attention.mistake
def scaled_by_number_of_keys(*args, **kwargs):
    """The scores are divided by the root of the number of keys, the length of a row of scores.
    Divide by √d_k, the root of the width of a head: K.shape[-1]."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / K.shape[2] ** 0.5)


@multi_head_attention.mistake
def scaled_without_root(*args, **kwargs):
    """The scores are divided by d_k itself, or twice by its root. Divide once by √d_k: the square
    root of the width of a head."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / K.shape[-1])


@multi_head_attention.mistake
def divided_by_d_model(*args, **kwargs):
    """The scores are divided by D, the full width, without a square root. Divide by √d_k, the root
    of the width of one head."""
    return attend(
        *args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / (Q.shape[1] * K.shape[-1])
    )


@multi_head_attention.mistake
def divided_by_number_of_heads(*args, **kwargs):
    """The scores are divided by the number of heads. Divide by √d_k, the root of the width of one
    head."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) / Q.shape[1])


@multi_head_attention.mistake
def multiplied_by_root(*args, **kwargs):
    """The scores are multiplied by √d_k. Divide by it, the root of the width of a head."""
    return attend(*args, **kwargs, scores=lambda Q, K: Q @ K.swapaxes(-1, -2) * K.shape[-1] ** 0.5)


@multi_head_attention.mistake
def scaled_after_the_softmax(*args, **kwargs):
    """The weights are divided by √d_k after the softmax, and no longer sum to 1. Scale the scores,
    before the softmax."""

    def weigh(S, mask, d):
        return masked_weights(S * d**0.5, mask) / d**0.5

    d = args[1].shape[-1] // args[5]
    return attend(*args, **kwargs, weigh=lambda S, mask: weigh(S, mask, d))


@multi_head_attention.mistake
def keys_ask_queries(*args, **kwargs):
    """The scores are K Qᵀ, rows for keys instead of queries. Q and K are swapped: scores = Q Kᵀ,
    one row for each query, one column for each key."""
    return attend(*args, **kwargs, scores=lambda Q, K: scaled_scores(K, Q))


@multi_head_attention.mistake
def cosines_for_scores(*args, **kwargs):
    """Queries and keys are normalised to length 1 first, so the scores are cosines. Use the dot
    products as they are, divided by √d_k."""

    def cosine(Q, K):
        unit = (z / np.linalg.norm(z, axis=-1, keepdims=True) for z in (Q, K))
        return np.matmul(*(z if i == 0 else z.swapaxes(-1, -2) for i, z in enumerate(unit)))

    return attend(*args, **kwargs, scores=cosine)


# ---- softmax


def without_softmax(name: str, fill: float) -> None:
    """Register the softmax left out; `fill` stands where the mask forbids."""

    def bare(*args, **kwargs):
        return attend(*args, **kwargs, weigh=lambda S, mask: forbid(S, mask, fill))

    bare.__name__ = name
    bare.__doc__ = f"""The softmax is missing: the scores themselves, {fill:g} where the mask is
        False, multiply the values. Turn each row of scores into weights first, softmax over the
        keys, axis=-1."""
    multi_head_attention.mistake(bare)


without_softmax("no_softmax", 0)
without_softmax("no_softmax_after_minus_infinity", -np.inf)
without_softmax("no_softmax_after_a_large_number", -1e9)


@multi_head_attention.mistake
def softmax_overflows(*args, **kwargs):
    """exp overflows for large scores: infinity / infinity is nan. Subtract the largest score (max)
    of each row before exp, or use the stable softmax of notebook 05."""

    def unstable(S, mask):
        e = np.exp(forbid(S, mask))
        return e / e.sum(axis=-1, keepdims=True)

    return attend(*args, **kwargs, weigh=unstable)


OVER = {
    "heads": """The softmax runs over axis=1, which is the axis of the heads after the split: the
        heads compete with each other. It must run over the keys, the last axis, axis=-1.""",
    "batch": """The softmax runs over axis=0, the sentences of the batch. It must run over the keys,
        the last axis, axis=-1, so that each row sums to 1.""",
    "queries": """The softmax runs over the queries (axis=2 or axis=-2): the columns sum to 1. It
        must run over the keys, the last axis, axis=-1, so that each row sums to 1.""",
    "queries_and_keys": """The softmax divides by the sum over all queries and keys of a head at
        once. Each query has a sum of its own: softmax over the keys, the last axis, axis=-1.""",
    "everything": """The softmax divides by one sum over everything. Each query has a sum of its
        own: softmax over the keys, the last axis, axis=-1.""",
}
AXES = {"heads": 1, "batch": 0, "queries": -2, "queries_and_keys": (-2, -1), "everything": None}


def softmax_over(name: str, fill: float = -1e9, more: str = "") -> None:
    """Register a softmax over a wrong axis; `fill` stands where the mask forbids."""

    def over(*args, **kwargs):
        weigh = lambda S, mask: plain_softmax(forbid(S, mask, fill), AXES[name])  # noqa: E731
        return attend(*args, **kwargs, weigh=weigh)

    over.__name__ = f"softmax_over_{name}" + "_with_nan" * bool(more)
    over.__doc__ = OVER[name] + more
    multi_head_attention.mistake(over)


def sum_over(name: str) -> None:
    """Register a softmax with the right maximum whose sum is over a wrong axis."""

    def over(*args, **kwargs):
        def weigh(S, mask):
            S = forbid(S, mask, -1e9)
            e = np.exp(S - S.max(axis=-1, keepdims=True))
            return e / e.sum(axis=AXES[name], keepdims=True)

        return attend(*args, **kwargs, weigh=weigh)

    over.__name__ = f"sum_over_{name}"
    over.__doc__ = f"{OVER[name]} (The maximum is over the keys already, the sum is not.)"
    multi_head_attention.mistake(over)


for name in OVER:
    softmax_over(name)
for name in ("heads", "batch"):  # along these axes a mask may forbid everything
    softmax_over(name, -np.inf, " Where the mask leaves nothing along that axis, it gives nan.")
for name in ("heads", "queries", "everything"):
    sum_over(name)


# ---- the mask


@multi_head_attention.mistake
def mask_ignored(*args, **kwargs):
    """The mask has no effect: it is never applied. Before the softmax set the scores to -inf where
    the mask is False."""
    return attend(*args, **kwargs, weigh=lambda S, mask: plain_softmax(S))


@multi_head_attention.mistake
def mask_inverted(*args, **kwargs):
    """The mask is inverted: it blocks what is allowed. True means that the query may attend to the
    key; set the scores to -inf where it is False."""
    flip = lambda S, mask: masked_weights(S, None if mask is None else ~mask)  # noqa: E731
    return attend(*args, **kwargs, weigh=flip)


@multi_head_attention.mistake
def mask_transposed(*args, **kwargs):
    """The mask is transposed: its rows are queries and its columns keys, as in the scores. Do not
    swap them."""
    turned = lambda S, mask: masked_weights(  # noqa: E731
        S, None if mask is None else mask.swapaxes(-1, -2)
    )
    return attend(*args, **kwargs, weigh=turned)


@multi_head_attention.mistake
def masked_after_the_softmax(*args, **kwargs):
    """The mask is applied after the softmax, so the weights of a row no longer sum to 1. Apply it
    before the softmax, to the scores: -inf where it is False."""

    def late(S, mask):
        return plain_softmax(S) * (1 if mask is None else for_all_heads(mask))

    return attend(*args, **kwargs, weigh=late)


@multi_head_attention.mistake
def masked_after_the_softmax_and_renormalised(*args, **kwargs):
    """The mask is applied after the softmax, and the rest divided by its sum: next to one huge
    masked score that rest is 0, and 0 / 0 is nan. Apply the mask before the softmax, to the
    scores: -inf where it is False."""

    def late(S, mask):
        weights = plain_softmax(S) * (1 if mask is None else for_all_heads(mask))
        return weights / weights.sum(axis=-1, keepdims=True)

    return attend(*args, **kwargs, weigh=late)


@multi_head_attention.mistake
def mask_added(*args, **kwargs):
    """The mask is added to the scores as a number, 1 for True and 0 for False (or 0 and -1). That
    only lowers what is forbidden by one; nothing is blocked. Set the scores to -inf where the mask
    is False, with np.where."""

    def added(S, mask):
        return plain_softmax(S if mask is None else S + for_all_heads(mask))

    return attend(*args, **kwargs, weigh=added)


@multi_head_attention.mistake
def masked_scores_zero(*args, **kwargs):
    """Masked scores become 0, or nearly 0 (the scores are multiplied by the mask, or filled with
    1e-9 instead of -1e9), and exp(0) is 1: they still get weight. Set them to -inf instead, with
    np.where."""
    return attend(*args, **kwargs, weigh=lambda S, mask: plain_softmax(forbid(S, mask, 0)))


def weaken(name: str, what: str, weigh: Callable) -> None:
    """Register a mask whose number is too small."""

    def weak(*args, **kwargs):
        return attend(*args, **kwargs, weigh=weigh)

    weak.__name__ = name
    weak.__doc__ = (
        f"{what} That only lowers their weight and is not enough next to large scores. Set them "
        "to -inf where the mask is False, with np.where, before the softmax."
    )
    multi_head_attention.mistake(weak)


for number in (1, 10, 100, 10_000):
    weaken(
        f"masked_scores_minus_{number}",
        f"Masked scores become -{number}.",
        lambda S, mask, n=number: plain_softmax(forbid(S, mask, -n)),
    )
for number in (10, 100):
    weaken(
        f"minus_{number}_added_to_masked_scores",
        f"The mask adds -{number} or the like to the scores that it forbids.",
        lambda S, mask, n=number: plain_softmax(S + forbid(0 * S, mask, -n)),
    )


@multi_head_attention.mistake
def mask_without_axis_for_heads(*args, **kwargs):
    """A mask for each sentence, (B, T, Tk), lacks an axis for the heads: sentences are taken for
    heads. Give it one, mask[:, None], so that it broadcasts to (B, H, T, Tk)."""

    def unexpanded(S, mask):
        return plain_softmax(S if mask is None else np.where(mask, S, -1e30))

    return attend(*args, **kwargs, weigh=unexpanded)


@multi_head_attention.mistake
def axis_for_heads_in_every_mask(*args, **kwargs):
    """mask[:, None] is right for a mask of each sentence, (B, T, Tk), but not for one of two axes,
    (T, Tk): that broadcasts as it is. Add the axis of the heads only if mask.ndim is 3."""

    def expanded(S, mask):
        return plain_softmax(S if mask is None else np.where(mask[:, None], S, -1e30))

    return attend(*args, **kwargs, weigh=expanded)


@multi_head_attention.mistake
def axis_for_heads_in_the_wrong_place(*args, **kwargs):
    """The mask of each sentence gets its axis for the heads in the wrong place, mask[:, :, None]
    (or unsqueeze(2)). It comes right after the batch: mask[:, None], (B, 1, T, Tk)."""

    def misplaced(S, mask):
        if mask is not None and mask.ndim == 3:
            mask = mask[:, :, None]
        return plain_softmax(S if mask is None else np.where(mask, S, -1e30))

    return attend(*args, **kwargs, weigh=misplaced)


@multi_head_attention.mistake
def masks_of_sentences_transposed(*args, **kwargs):
    """A mask for each sentence is transposed on the way: its last two axes are queries and keys, as
    in the scores. Do not swap them; add only an axis for the heads, mask[:, None]."""

    def turned(S, mask):
        deep = mask is not None and mask.ndim == 3
        return masked_weights(S, mask.swapaxes(-1, -2) if deep else mask)

    return attend(*args, **kwargs, weigh=turned)


@multi_head_attention.mistake
def mask_of_the_first_sentence(*args, **kwargs):
    """The mask of the first sentence is used for the whole batch. Each sentence has its own:
    mask[:, None], (B, 1, T, Tk)."""

    def first(S, mask):
        return masked_weights(S, mask[0] if mask is not None and mask.ndim == 3 else mask)

    return attend(*args, **kwargs, weigh=first)


@multi_head_attention.mistake
def mask_only_for_the_first_head(*args, **kwargs):
    """The mask is applied to the first head only. It is the same for every head."""

    def first(S, mask):
        weights = plain_softmax(S)
        weights[:, :1] = masked_weights(S[:, :1], mask)
        return weights

    return attend(*args, **kwargs, weigh=first)


@multi_head_attention.mistake
def masks_of_sentences_ignored(*args, **kwargs):
    """A mask for each sentence, of three axes, has no effect: only one of two axes is applied.
    Give it an axis for the heads, mask[:, None], and apply it as well."""

    def flat_only(S, mask):
        return masked_weights(S, mask if mask is not None and mask.ndim == 2 else None)

    return attend(*args, **kwargs, weigh=flat_only)


@multi_head_attention.mistake
def masks_of_two_axes_ignored(*args, **kwargs):
    """A mask of two axes, (T, Tk), has no effect: only one for each sentence is applied. It
    broadcasts to the scores as it is."""

    def deep_only(S, mask):
        return masked_weights(S, mask if mask is not None and mask.ndim == 3 else None)

    return attend(*args, **kwargs, weigh=deep_only)


@multi_head_attention.mistake
def masks_tiled_instead_of_repeated(*args, **kwargs):
    """Sentences and heads share one axis, B * H, but the masks stand in another order: tiled,
    sentence 0, 1, 0, 1, where the scores go 0, 0, 1, 1. Repeat each sentence's mask for its heads
    (np.repeat), or give it an axis: mask[:, None]."""

    def tiled(S, mask):
        if mask is None or mask.ndim == 2:
            return masked_weights(S, mask)
        mask = np.tile(mask, (S.shape[1], 1, 1)).reshape(S.shape)
        return plain_softmax(np.where(mask, S, -1e30))

    return attend(*args, **kwargs, weigh=tiled)


@multi_head_attention.mistake
def always_causal(*args, **kwargs):
    """A causal mask is applied whether one is given or not. The mask is an argument: without it,
    mask=None, every token sees all others."""

    def causal(S, mask):
        lower = np.tril(np.ones(S.shape[-2:], dtype=bool))
        return masked_weights(S, lower if mask is None else lower & mask)

    return attend(*args, **kwargs, weigh=causal)


@multi_head_attention.mistake
def causal_without_mask(*args, **kwargs):
    """Where no mask is given, a causal one is applied. Without a mask, mask=None, every token sees
    all others."""

    def causal(S, mask):
        return masked_weights(S, np.tril(np.ones(S.shape[-2:], bool)) if mask is None else mask)

    return attend(*args, **kwargs, weigh=causal)


@multi_head_attention.mistake
def causal_instead_of_mask(*args, **kwargs):
    """Where a mask is given, a causal one is applied instead. Use the mask itself: any key may be
    forbidden, not only those that come later."""

    def causal(S, mask):
        return masked_weights(S, None if mask is None else np.tril(np.ones(S.shape[-2:], bool)))

    return attend(*args, **kwargs, weigh=causal)


# ---- values and output


@multi_head_attention.mistake
def mixed_by_transposed_weights(*args, **kwargs):
    """The weights are transposed before they multiply the values. Each row of the weights belongs
    to one query: weights @ V."""
    return attend(*args, **kwargs, mix=lambda weights, V: weights.swapaxes(-1, -2) @ V)


@multi_head_attention.mistake
def queries_averaged(*args, **kwargs):
    """The weights average the queries instead of the values: weights @ V, with V = x @ W_v."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x @ W_q, s @ W_k, x @ W_q))


@multi_head_attention.mistake
def no_output_projection(*args, **kwargs):
    """The output projection W_o is missing: after the heads are concatenated, multiply by it,
    joined @ W_o."""
    return attend(*args, **kwargs, finish=lambda joined, W_o: joined)


@multi_head_attention.mistake
def output_projection_transposed(*args, **kwargs):
    """W_o is used transposed (.T). It multiplies from the right as it is: joined @ W_o."""
    return attend(*args, **kwargs, finish=lambda joined, W_o: joined @ W_o.T)


@multi_head_attention.mistake
def output_projection_twice(*args, **kwargs):
    """W_o is applied twice. One product with the joined heads is enough: joined @ W_o."""
    return attend(*args, **kwargs, finish=lambda joined, W_o: joined @ W_o @ W_o)


@multi_head_attention.mistake
def first_rows_of_W_o_for_all_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """Every head meets the first rows of W_o. Head h has its own block of rows, from h * d_head to
    (h + 1) * d_head: concatenate the heads, then multiply by W_o once."""
    d = x.shape[-1] // num_heads
    W_o = np.tile(W_o[:d], (num_heads, 1))
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory)


@multi_head_attention.mistake
def divided_by_heads_at_the_end(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """The result is divided by the number of heads, an average of what they write. What the heads
    write through W_o adds up: concatenate, then joined @ W_o."""
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory) / num_heads


@multi_head_attention.mistake
def head_without_W_o_block(*args, **kwargs):
    """Only the first head reaches the result: the others are lost before W_o. Concatenate all
    heads along the last axis, then multiply by W_o."""
    return attend(
        *args, **kwargs, mix=lambda w, V: w @ V * (np.arange(V.shape[1]) == 0)[:, None, None]
    )


@multi_head_attention.mistake
def only_last_head_written(*args, **kwargs):
    """Only the last head reaches the result: does the loop overwrite the others? Concatenate all
    heads along the last axis, then multiply by W_o."""
    last = lambda V: (np.arange(V.shape[1]) == V.shape[1] - 1)[:, None, None]  # noqa: E731
    return attend(*args, **kwargs, mix=lambda w, V: w @ V * last(V))


@multi_head_attention.mistake
def output_projection_of_the_values(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """W_o is applied to the values, before the heads mix them: it would mix features of different
    heads too early. Multiply by W_o last, after the heads are concatenated."""
    return attend(
        *(x, W_q, W_k, W_v @ W_o, W_o, num_heads, mask, memory), finish=lambda joined, _: joined
    )


@multi_head_attention.mistake
def residual_inside(x, *args, **kwargs):
    """The result contains x itself: the residual connection is added in here. It comes later, in
    add & norm; return only joined @ W_o."""
    return x + attend(x, *args, **kwargs)


@multi_head_attention.mistake
def residual_before_the_output(x, *args, **kwargs):
    """x is added to the joined heads before W_o (a residual connection). Nothing is added in here:
    return joined @ W_o."""
    return attend(x, *args, **kwargs, finish=lambda joined, W_o: (joined + x) @ W_o)


@multi_head_attention.mistake
def normalised_at_the_end(*args, **kwargs):
    """The result is normalised to mean 0 and spread 1. That belongs to add & norm, later: return
    joined @ W_o as it is."""

    def normalised(joined, W_o):
        y = joined @ W_o
        return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)

    return attend(*args, **kwargs, finish=normalised)


@multi_head_attention.mistake
def residual_and_norm_inside(x, *args, **kwargs):
    """Residual and normalisation are done in here, LayerNorm(x + result). Both belong to add &
    norm, later: return joined @ W_o as it is."""
    y = x + attend(x, *args, **kwargs)
    return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)


@multi_head_attention.mistake
def relu_at_the_end(*args, **kwargs):
    """Negative numbers of the result become 0 (a ReLU). That belongs to the feed-forward part:
    return joined @ W_o as it is."""
    return np.maximum(attend(*args, **kwargs), 0)


@multi_head_attention.mistake
def softmax_at_the_end(*args, **kwargs):
    """The result goes through one more softmax. It belongs to the scores only: return joined @ W_o
    as it is."""
    return plain_softmax(attend(*args, **kwargs))


@multi_head_attention.mistake
def weights_returned(*args, **kwargs):
    """It returns the attention weights of the heads instead of the output. Multiply them by V,
    merge the heads, multiply by W_o and return that."""
    return attend(*args, **kwargs, mix=lambda w, V: w, merge=lambda w: w, finish=lambda w, W_o: w)


@multi_head_attention.mistake
def first_sentence_for_all(x, *args, **kwargs):
    """Every sentence of the batch gets the result of the first. Keep the batch axis: each sentence
    attends to its own tokens."""
    return np.repeat(attend(x, *args, **kwargs)[:1], len(x), axis=0)


@multi_head_attention.mistake
def output_and_weights(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """It returns a tuple, the output and the weights. Return the output alone: joined @ W_o."""
    kept = []
    keep = lambda S, mask: kept.append(masked_weights(S, mask)) or kept[0]  # noqa: E731
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory, weigh=keep), *kept


@multi_head_attention.mistake
def only_one_sentence_returned(*args, **kwargs):
    """Only the first sentence is returned: the batch axis is lost. Return all of them,
    (B, T, D)."""
    return attend(*args, **kwargs)[0]


# ---- memory


@multi_head_attention.mistake
def memory_ignored(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """memory is not used: keys and values still come from x. Where memory is given,
    K = memory @ W_k and V = memory @ W_v."""
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask)


@multi_head_attention.mistake
def everything_from_memory(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """With memory the queries come from it too. Only keys and values come from memory; the queries
    are Q = x @ W_q."""
    return attend(x if memory is None else memory, W_q, W_k, W_v, W_o, num_heads, mask)


@multi_head_attention.mistake
def only_keys_from_memory(*args, **kwargs):
    """Only the keys come from memory, and the values still from x. Both do: V = memory @ W_v."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x @ W_q, s @ W_k, x @ W_v))


@multi_head_attention.mistake
def only_values_from_memory(*args, **kwargs):
    """Only the values come from memory, and the keys still from x. Both do: K = memory @ W_k."""
    return attend(*args, **kwargs, project=lambda x, s, W_q, W_k, W_v: (x @ W_q, x @ W_k, s @ W_v))


@multi_head_attention.mistake
def x_and_memory_swapped(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """x and memory are swapped: the queries come from x, and keys and values from memory."""
    if memory is None:
        return attend(x, W_q, W_k, W_v, W_o, num_heads, mask)
    return attend(memory, W_q, W_k, W_v, W_o, num_heads, mask, x)


@multi_head_attention.mistake
def x_and_memory_joined(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """With memory, keys and values come from x and memory one after the other. They come from
    memory alone."""
    both = None if memory is None else np.concatenate([x, memory], axis=1)
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, both)


@multi_head_attention.mistake
def mask_and_memory_ignored(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """Neither mask nor memory is used. Set the scores to -inf where the mask is False, before the
    softmax, and take keys and values from memory where it is given."""
    return attend(x, W_q, W_k, W_v, W_o, num_heads)


@multi_head_attention.mistake
def mask_dropped_with_memory(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """With memory the mask is not applied. It holds for the keys of memory as well, (T, Tk)."""
    mask = mask if memory is None else None
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory)


# ---------------------------------------------------------------- share_heads


def share_heads(x: np.ndarray, groups: int) -> np.ndarray:
    """Let `groups` heads of queries in a row share one head of keys or values.

    (B, H_kv, T, d) → (B, H_kv · groups, T, d): each head is repeated `groups` times in a row.
    Raises ValueError unless groups is positive. Ainslie et al. (2023), grouped-query attention.
    """
    if not groups > 0:
        raise ValueError(f"groups is {groups}, but must be positive: how many heads share one")
    return np.repeat(x, groups, axis=1)


sharing = Exercise(
    share_heads,
    notebook="08",
    level=2,
    minutes=5,
    task="Many models make fewer heads of keys and values than of queries, and several heads of "
    "queries in a row share one (grouped-query attention). Repeat each head of keys `groups` "
    "times in a row, so that every head of queries finds its own.",
    hints=(
        "With heads A and B and groups = 2, is the new order A A B B or A B A B?",
        "np.repeat repeats each item in a row, np.tile the whole. The heads are axis 1.",
        "`return np.repeat(x, groups, axis=1)`",
    ),
)
sharing.probe("two heads of one sentence, each for two", np.arange(1.0, 9).reshape(1, 2, 2, 2), 2)
sharing.probe("three heads, each for two", normal(2, 3, 4, 5), 2)
sharing.probe("two heads, each for three", normal(3, 2, 4, 5), 3)
sharing.probe("four heads, each for two", normal(2, 4, 3, 5), 2)
sharing.probe("one head for all", normal(2, 1, 3, 4), 4)
sharing.probe("a head for each, groups=1", normal(2, 3, 4, 5), 1)
sharing.probe("as many sentences, heads, tokens and features", normal(3, 3, 3, 3), 3)


@sharing.mistake
def all_heads_in_turn(x, groups):
    """The heads stand in the order A B A B (np.tile or np.concatenate). Heads in a row share one:
    A A B B, each repeated before the next, np.repeat(x, groups, axis=1)."""
    return np.tile(x, (1, groups, 1, 1))


@sharing.mistake
def not_repeated(x, groups):
    """Nothing is repeated: groups is ignored. Each head must stand there groups times in a row,
    H_kv * groups heads in all."""
    return x


@sharing.mistake
def batch_repeated(x, groups):
    """The sentences of the batch are repeated, axis=0, instead of the heads, axis=1."""
    return np.repeat(x, groups, axis=0)


@sharing.mistake
def tokens_repeated(x, groups):
    """The tokens are repeated, axis=2, instead of the heads, axis=1."""
    return np.repeat(x, groups, axis=2)


@sharing.mistake
def features_repeated(x, groups):
    """The features are repeated, the last axis, instead of the heads, axis=1."""
    return np.repeat(x, groups, axis=-1)


@sharing.mistake
def features_tiled(x, groups):
    """np.tile(x, groups) repeats along the last axis, the features. The heads are axis=1, each
    repeated in a row: np.repeat(x, groups, axis=1)."""
    return np.tile(x, groups)


@sharing.mistake
def everything_flattened(x, groups):
    """np.repeat without an axis flattens everything to one row. Name the axis of the heads:
    axis=1."""
    return np.repeat(x, groups)


@sharing.mistake
def groups_on_an_axis_of_their_own(x, groups):
    """The copies stand on an axis of their own: (B, H_kv, groups, T, d). Merge it with the heads,
    by reshape, to (B, H_kv * groups, T, d)."""
    return np.repeat(x[:, :, None], groups, axis=2)


@sharing.mistake
def reshaped_in_the_wrong_order(x, groups):
    """The new axis comes before the heads, so that the reshape gives A B A B. Put it after the
    heads, x[:, :, None], so that copies of one head stand in a row: A A B B."""
    B, H, T, d = x.shape
    copies = np.repeat(x[:, None], groups, axis=1)  # (B, groups, H, T, d)
    return copies.transpose(0, 1, 3, 2, 4).reshape(B, H * groups, T, d)


@sharing.mistake
def one_copy_too_many(x, groups):
    """Each head stands there groups + 1 times, once too often: the original counts as one of the
    groups copies."""
    return np.repeat(x, groups + 1, axis=1)


@sharing.mistake
def groups_heads_in_all(x, groups):
    """groups is taken for the number of heads in all. It is how many times each head is repeated:
    H_kv * groups heads in all."""
    return np.repeat(x, max(groups // x.shape[1], 1), axis=1)


@sharing.mistake
def only_the_first_head_repeated(x, groups):
    """Only the first head is repeated. Every one of the H_kv heads is, groups times in a row."""
    return np.repeat(x[:, :1], groups * x.shape[1], axis=1)


@sharing.mistake
def copies_scaled(x, groups):
    """The copies are divided by groups. They are shared as they are, nothing is averaged."""
    return np.repeat(x, groups, axis=1) / groups


@sharing.mistake
def heads_cut_into_groups(x, groups):
    """Heads are averaged in groups, so that fewer come out. More must come out: each of the H_kv
    heads is repeated groups times."""
    B, H, T, d = x.shape
    return x.reshape(B, H // groups, groups, T, d).mean(axis=2)
