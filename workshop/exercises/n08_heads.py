"""Notebook 08: cut the features into heads, and lay the heads side by side again."""

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers


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
    minutes=10,
    task="Cut the features of each token into heads of equal width, in their order, for a whole "
    "batch: head h gets the h-th slice of the features. The heads become an axis of their own, "
    "right after the batch, so that each holds a whole sentence.",
    hints=(
        "Which features belong to head 0, and which to head 1, when there are 8 features and "
        "2 heads?",
        "With d_head = D // num_heads, head h owns the features h * d_head to (h + 1) * d_head. "
        "np.split cuts all slices at once; the axis of the heads comes after that of the batch.",
        "`return np.stack(np.split(x, num_heads, axis=-1), axis=1)`",
    ),
)
split_heads.probe("three tokens, two heads", coded(1, 3, 2, 4), 2)
split_heads.probe("a batch of two sentences", coded(2, 3, 2, 4), 2)
split_heads.probe("more heads than features each", numbers(2, 5, 12), 4)
split_heads.probe("as many tokens as heads", numbers(2, 3, 6), 3)
split_heads.probe("as many sentences as heads", numbers(3, 4, 15), 3)
split_heads.probe("three heads of three features", numbers(2, 4, 9), 3)
split_heads.probe("four of everything", numbers(4, 4, 16), 4)
split_heads.probe("one head", numbers(2, 3, 5), 1)
split_heads.probe("heads of one feature", numbers(2, 3, 5), 5)
split_heads.probe("one token alone", numbers(1, 1, 6), 2)
split_heads.answer("""
    def split_heads(x, num_heads):
        slices = np.split(x, num_heads, axis=-1)  # one (B, T, d_head) for each head
        return np.stack(slices, axis=1)
""")
split_heads.answer("""
    def split_heads(x, num_heads):
        d_head = x.shape[-1] // num_heads
        heads = []
        for h in range(num_heads):
            heads.append(x[:, :, h * d_head : (h + 1) * d_head])
        return np.stack(heads, axis=1)
""")
split_heads.answer("""
    def split_heads(x, num_heads):
        B, T, D = x.shape
        d_head = D // num_heads
        x = x.reshape(B, T, num_heads, d_head)
        return x.transpose(0, 2, 1, 3)
""")
split_heads.answer("""
    def split_heads(x, num_heads):
        B, T, D = x.shape
        d_head = D // num_heads
        out = np.zeros((B, num_heads, T, d_head))
        for h in range(num_heads):
            out[:, h] = x[..., h * d_head : (h + 1) * d_head]
        return out
""")
split_heads.answer("""
    def split_heads(x, num_heads):
        B, T, D = x.shape
        x = x.view(B, T, num_heads, D // num_heads)
        return x.transpose(1, 2)
""")
split_heads.why(
    "axis=1 | out[:, h]",
    "The heads come right after the batch, (B, H, T, d_head): then each head is a sentence alone.",
)
split_heads.why(
    "axis=-1 | x[..., h * d_head : (h + 1) * d_head] | x[:, :, h * d_head : (h + 1) * d_head]",
    "The features, the last axis, are cut; each head keeps all tokens and sentences.",
)
split_heads.why(
    "h * d_head | (h + 1) * d_head | h * d_head : (h + 1) * d_head",
    "Head h owns a contiguous slice as wide as a head; slices neither overlap nor leave gaps.",
)
split_heads.why(
    "D // num_heads | x.shape[-1] // num_heads | d_head",
    "The D features are shared out: num_heads heads of width D / num_heads each.",
)
split_heads.why(
    "x.reshape(B, T, num_heads, d_head) | x.view(B, T, num_heads, D // num_heads)",
    "A reshape cuts the last axis in order: heads first, then the features within a head.",
)
split_heads.why(
    "x.transpose(0, 2, 1, 3) | x.transpose(1, 2) | x.swapaxes(1, 2)",
    "After the cut heads and tokens change places, so that attention compares tokens, not heads.",
)
split_heads.why(
    "range(num_heads) | np.stack(heads, axis=1) | np.stack(slices, axis=1) | heads | "
    "np.split(x, num_heads, axis=-1)",
    "All heads belong in the result, on an axis of their own, in their order.",
)


def cut(x: np.ndarray, num_heads: int) -> np.ndarray:
    """The first step of split_heads, without the second: (B, T, D) → (B, T, H, D/H)."""
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads)


@split_heads.mistake
def interleaved(x, num_heads):
    """Each head gets every H-th feature (interleaved). A head owns a contiguous slice: cut the last
    axis into heads first, and into the features of a head second, (H, d_head)."""
    B, T, D = x.shape
    return x.reshape(B, T, D // num_heads, num_heads).transpose(0, 3, 1, 2)


@split_heads.mistake
def heads_before_the_batch(x, num_heads):
    """The heads come first, in front of the batch: (H, B, T, d_head). The batch stays the first
    axis and the heads become the second, (B, H, T, d_head)."""
    return cut(x, num_heads).transpose(2, 0, 1, 3)


@split_heads.mistake
def tokens_last(x, num_heads):
    """The last two axes are swapped: (B, H, d_head, T) instead of (B, H, T, d_head). Each token
    keeps its features together, on the last axis."""
    return cut(x, num_heads).transpose(0, 2, 3, 1)


@split_heads.mistake
def reshape_only(x, num_heads):
    """The shape is right, but tokens and heads are mixed: a reshape alone to (B, H, T, d_head)
    moves no number. Cut the features first, (B, T, H, d_head), then let tokens and heads change
    places."""
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


@split_heads.mistake
def number_taken_for_width(x, num_heads):
    """num_heads is used as the width of a head, so there are D / num_heads heads. It is the number
    of heads; each is D / num_heads features wide."""
    return reference.split_heads(x, x.shape[-1] // num_heads)


@split_heads.mistake
def not_transposed(x, num_heads):
    """The result is (B, T, H, d_head): the heads still stand behind the tokens. Let the two axes
    change places, so that each head holds a whole sentence, (B, H, T, d_head)."""
    return cut(x, num_heads)


@split_heads.mistake
def heads_merged_with_the_batch(x, num_heads):
    """Batch and heads share one axis, (B * H, T, d_head). They stay apart here, as four axes:
    (B, H, T, d_head)."""
    B, T, D = x.shape
    return reference.split_heads(x, num_heads).reshape(B * num_heads, T, D // num_heads)


@split_heads.mistake
def only_the_first_sentence(x, num_heads):
    """Only the first sentence of the batch is split, as an index into the batch does. All sentences
    belong in the result, (B, H, T, d_head)."""
    return reference.split_heads(x, num_heads)[:1]


@split_heads.mistake
def all_features_in_every_head(x, num_heads):
    """Every head holds a copy of all D features. The features are shared out among the heads: each
    gets a slice of its own, D / num_heads wide."""
    return np.repeat(x[:, None], num_heads, axis=1)


# ---------------------------------------------------------------- merge_heads

merge_heads = Exercise(
    reference.merge_heads,
    notebook="08",
    level=1,
    minutes=5,
    task="Lay the heads side by side again, the inverse of split_heads: each token gathers what "
    "its heads hold, one head after the other.",
    hints=(
        "x[:, h] is what head h holds, (B, T, d_head). In which direction do they join?",
        "Each head keeps its features, one head after the other: concatenate along the last axis.",
        "`return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)`",
    ),
)
merge_heads.probe("two heads of one sentence", reference.split_heads(coded(1, 3, 2, 4), 2))
merge_heads.probe("a batch of two sentences", reference.split_heads(coded(2, 3, 2, 4), 2))
merge_heads.probe("more heads than features each", numbers(2, 4, 5, 3))
merge_heads.probe("as many tokens as heads", numbers(2, 3, 3, 2))
merge_heads.probe("as many sentences as heads", numbers(3, 3, 4, 5))
merge_heads.probe("three heads of three features", numbers(2, 3, 4, 3))
merge_heads.probe("four of everything", numbers(4, 4, 4, 4))
merge_heads.probe("one head", numbers(2, 1, 3, 5))
merge_heads.probe("one token alone", numbers(1, 2, 1, 3))
merge_heads.answer("""
    def merge_heads(x):
        heads = [x[:, h] for h in range(x.shape[1])]  # (B, T, d_head) each
        return np.concatenate(heads, axis=-1)
""")
merge_heads.answer("""
    def merge_heads(x):
        B, H, T, d_head = x.shape
        x = x.transpose(0, 2, 1, 3)
        return x.reshape(B, T, H * d_head)
""")
merge_heads.answer("""
    def merge_heads(x):
        B, H, T, d_head = x.shape
        out = np.zeros((B, T, H * d_head))
        for h in range(H):
            out[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
        return out
""")
merge_heads.answer("""
    import torch

    def merge_heads(x):
        B, H, T, d_head = x.shape
        x = torch.transpose(x, 1, 2).contiguous()
        return x.view(B, T, H * d_head)
""")
merge_heads.answer("""
    import torch

    def merge_heads(x):
        H = x.shape[1]
        heads = [x[:, h] for h in range(H)]
        return torch.cat(heads, dim=-1)
""")
merge_heads.why(
    "axis=-1 | dim=-1 | np.concatenate(heads, axis=-1) | torch.cat(heads, dim=-1)",
    "The heads lie side by side along the features, so that each keeps its own, unmixed.",
)
merge_heads.why(
    "x[:, h] | x.shape[1] | range(H) | range(x.shape[1])",
    "Axis 1 counts the heads, in order: each of them, the first to the last, is laid down once.",
)
merge_heads.why(
    "x.transpose(0, 2, 1, 3) | torch.transpose(x, 1, 2) | np.swapaxes(x, 1, -2) | x.swapaxes(1, 2)",
    "A reshape moves no number: heads must stand next to their features, (B, T, H, d_head), "
    "before these two become one.",
)
merge_heads.why(
    "x.reshape(B, T, H * d_head) | x.view(B, T, H * d_head) | H * d_head | x.reshape(B, T, -1)",
    "Heads and their features become one axis; batch and tokens stay as they are, (B, T, D).",
)
merge_heads.why(
    "h * d_head : (h + 1) * d_head | (h + 1) * d_head | h * d_head",
    "Head h fills a contiguous block of d_head features, right after the head before it.",
)


def laid_out(x: np.ndarray, *axes: int) -> np.ndarray:
    """Heads (B, H, T, d) with their axes in another order, then flattened to (B, T, H·d)."""
    B, H, T, d = x.shape
    return x.transpose(axes).reshape(B, T, H * d)


@merge_heads.mistake
def mean_of_heads(x):
    """The heads are averaged, so what one of them found is blurred by the others. Lay them side by
    side along the features; each keeps its own."""
    return x.mean(axis=1)


@merge_heads.mistake
def features_interleaved(x):
    """The features of the heads alternate (interleaved). Each head fills a contiguous block: before
    the two axes become one they must stand in the order heads, features."""
    return laid_out(x, 0, 2, 3, 1)


@merge_heads.mistake
def no_transpose_back(x):
    """The shape is right, but tokens and heads are mixed: a reshape alone moves no number. Let
    heads and tokens change places first, (B, T, H, d_head), then join heads and features."""
    return laid_out(x, 0, 1, 2, 3)


@merge_heads.mistake
def sum_of_heads(x):
    """The heads are added up, and what each found cannot be told apart any more. Lay them side by
    side along the features; each keeps its own."""
    return x.sum(axis=1)


@merge_heads.mistake
def heads_below_each_other(x):
    """The heads stand one below the other, along the tokens: (B, H * T, d_head). Lay them side by
    side, along the last axis, the features: (B, T, H * d_head)."""
    B, H, T, d = x.shape
    return x.reshape(B, H * T, d)


@merge_heads.mistake
def heads_not_flattened(x):
    """The result is (B, T, H, d_head): the heads still have an axis of their own. Join the last two
    axes, heads and features, to one of width H * d_head."""
    return x.transpose(0, 2, 1, 3)


@merge_heads.mistake
def only_the_first_head(x):
    """Only the first head comes back. All of them belong in the result, side by side along the
    features: (B, T, H * d_head)."""
    return x[:, 0]


@merge_heads.mistake
def order_of_heads_reversed(x):
    """The heads stand in reversed order. Head 0 fills the first features, so that it meets the
    first rows of W_o, which were learned for it."""
    return reference.merge_heads(x[:, ::-1])
