"""Notebook 08: multi-head attention, and heads of keys that several heads of queries share."""

import inspect
from collections.abc import Callable

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Draw, Exercise, Untested, drawn, numbers
from workshop.exercises.n08_heads import no_transpose_back, reshape_only

# ---------------------------------------------------------------- multi_head_attention

multi_head_attention = Exercise(
    reference.multi_head_attention,
    notebook="08",
    level=3,
    minutes=15,
    task="Several heads at once: project, let each head attend with its own slice of the columns "
    "and the root of its own width, join what the heads return, multiply by W_o. A mask, (T, Tk) "
    "or (B, T, Tk), holds for every head alike; with memory, keys and values come from there.",
    hints=(
        "Head h owns the slice of columns from h * d to (h + 1) * d of W_q, W_k and W_v. How wide "
        "is d, and by which root must its scores be divided?",
        "In the loop: Q = x @ W_q[:, own], K and V from source in the same way; scores divided by "
        "√d; mask; softmax; weights @ V. After the loop concatenate along the last axis, then "
        "multiply by W_o. A mask (T, Tk) or (B, T, Tk) fits scores (B, T, Tk) as it is; without "
        "one, let all of it be True.",
        "`heads.append(safe_masked_softmax(scores, mask) @ V)`, and at the end `return "
        "np.concatenate(heads, axis=-1) @ W_o`",
    ),
)


def takes_memory(fn: Callable) -> bool:
    """Whether an answer has the parameter `memory`: self-attention alone is right as well."""
    parameters = inspect.signature(getattr(fn, "function", fn)).parameters.values()
    return any(p.name == "memory" or p.kind is p.VAR_KEYWORD for p in parameters)


def probe_memory(label: str, *args: object, **kwargs: object) -> None:
    """A probe for those answers that take `memory`."""
    args, kwargs = drawn((args, kwargs), label)

    @multi_head_attention.experiment(label)
    def read_from_memory(fn):
        return fn(*args, **kwargs) if takes_memory(fn) else Untested()


def weights_for(D: int) -> list[Draw]:
    """W_q, W_k, W_v, W_o, each (D, D), not symmetric."""
    return [2 * D**-0.5 * numbers(D, D) for _ in range(4)]


def some_mask(*shape: int) -> Draw:
    """A mask with True and False in every row, from the first key on, in every sentence its own.

    Neither its opposite nor its transpose leaves a query without any key, so that it does not
    matter how a wrong answer treats one.
    """

    def mask(x: np.ndarray) -> np.ndarray:
        allowed, query = x > 0, np.arange(shape[-2])
        allowed[..., query, query % shape[-1]] = True
        allowed[..., query, (query + 1) % shape[-1]] = False
        return allowed

    return numbers(*shape).then(mask)


def whole(*shape: int) -> Draw:
    """Small whole numbers, as floats."""
    return (3 * numbers(*shape)).then(lambda x: np.round(x.astype(float)).clip(-9, 9))


signs = [numbers(4, 4).then(lambda x: np.sign(x.astype(float))) for _ in range(4)]
small = np.array([[[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, -1.0], [2.0, 1.0, 0.0, 0.0]]])
four = [whole(8, 8) for _ in range(4)]
multi_head_attention.probe("three tokens, two heads", small, *signs, 2)
multi_head_attention.probe("a batch of two sentences", numbers(2, 5, 12), *weights_for(12), 4)
multi_head_attention.probe("two wide heads", numbers(3, 4, 10), *weights_for(10), 2)
multi_head_attention.probe("one head", numbers(2, 5, 6), *weights_for(6), 1)
multi_head_attention.probe(
    "a mask, tokens by tokens", numbers(2, 5, 12), *weights_for(12), 4, mask=some_mask(5, 5)
)
multi_head_attention.probe(
    "a mask for each sentence", numbers(2, 5, 12), *weights_for(12), 4, mask=some_mask(2, 5, 5)
)
multi_head_attention.probe(
    "as many sentences as heads, masked",
    *(numbers(3, 4, 6), *weights_for(6), 3),
    mask=some_mask(3, 4, 4),
)
multi_head_attention.probe(
    "as many tokens as heads, masked",
    *(numbers(2, 4, 12), *weights_for(12), 4),
    mask=some_mask(4, 4),
)
multi_head_attention.probe(
    "three of everything, their masks",
    *(numbers(3, 3, 15), *weights_for(15), 3),
    mask=some_mask(3, 3, 3),
)
multi_head_attention.probe("huge scores", 30 * whole(2, 5, 8), *four, 2)
multi_head_attention.probe("huge masked scores", 30 * whole(2, 5, 8), *four, 2, some_mask(5, 5))
probe_memory(
    "a memory longer than the sentence",
    *(numbers(2, 3, 12), *weights_for(12), 4),
    memory=numbers(2, 5, 12),
)
probe_memory(
    "a memory with a mask",
    *(numbers(2, 4, 6), *weights_for(6), 3),
    mask=some_mask(4, 5),
    memory=numbers(2, 5, 6),
)
probe_memory(
    "memory, a mask for each sentence",
    *(numbers(3, 5, 6), *weights_for(6), 3),
    mask=some_mask(3, 5, 4),
    memory=numbers(3, 4, 6),
)
probe_memory(
    "a memory as long as x",
    *(numbers(2, 4, 6), *weights_for(6), 3),
    memory=numbers(2, 4, 6),
)


@multi_head_attention.experiment("heads wider than D / H")
def wide_heads(fn: Callable) -> object:
    """Where weights widen x, d_k is not D / H. An answer that raises, or leaves the columns beyond
    D out, is for square weights only: it is not judged by others."""
    wide = (numbers(2, 3, 6), *(numbers(6, 12) for _ in range(3)), numbers(12, 6), 2)
    x, W_q, *others = drawn(wide, "wide heads")
    wider = np.repeat(np.float32([1, 2]), 6)
    try:
        result = fn(x, W_q, *others)
        square_only = np.array_equal(result, fn(x, W_q * wider, *others))
    except Exception:
        return Untested()
    return Untested() if square_only else result


multi_head_attention.answer("""
    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        d = W_q.shape[1] // num_heads
        heads = []
        for h in range(num_heads):
            own = slice(h * d, (h + 1) * d)
            Q, K, V = x @ W_q[:, own], source @ W_k[:, own], source @ W_v[:, own]
            scores = Q @ K.swapaxes(-1, -2) / np.sqrt(d)  # (B, T, Tk)
            if mask is None:
                mask = np.ones(scores.shape[-2:], dtype=bool)
            heads.append(safe_masked_softmax(scores, mask) @ V)
        return np.concatenate(heads, axis=-1) @ W_o
""")
multi_head_attention.answer("""
    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        Q = split_heads(x @ W_q, num_heads)
        K, V = split_heads(source @ W_k, num_heads), split_heads(source @ W_v, num_heads)
        scores = Q @ K.transpose(0, 1, 3, 2) / np.sqrt(K.shape[-1])
        if mask is not None:
            if mask.ndim == 3:
                mask = mask[:, None]
            scores = np.where(mask, scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return merge_heads(weights @ V) @ W_o
""")
multi_head_attention.answer("""
    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        B, T, S = len(x), x.shape[1], source.shape[1]
        Q = (x @ W_q).reshape(B, T, num_heads, -1).transpose(0, 2, 1, 3)
        K = (source @ W_k).reshape(B, S, num_heads, -1).transpose(0, 2, 1, 3)
        V = (source @ W_v).reshape(B, S, num_heads, -1).transpose(0, 2, 1, 3)
        scores = Q @ K.swapaxes(-1, -2) / K.shape[-1] ** 0.5
        if mask is None:
            mask = np.ones((T, S), dtype=bool)
        weights = safe_masked_softmax(scores, mask if mask.ndim == 2 else mask[:, None])
        context = (weights @ V).transpose(0, 2, 1, 3).reshape(B, T, -1)
        return context @ W_o
""")
multi_head_attention.answer("""
    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        Q = (x @ W_q).reshape(*x.shape[:2], num_heads, -1)
        K = (source @ W_k).reshape(*source.shape[:2], num_heads, -1)
        V = (source @ W_v).reshape(*source.shape[:2], num_heads, -1)
        scores = np.einsum("bthd,bshd->bhts", Q, K) / np.sqrt(Q.shape[-1])
        if mask is not None:
            mask = mask[:, None] if mask.ndim == 3 else mask
            scores = np.where(mask, scores, -1e9)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        context = np.einsum("bhts,bshd->bthd", weights, V)
        return context.reshape(*x.shape[:2], -1) @ W_o
""")
multi_head_attention.answer("""
    import torch

    def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
        source = x if memory is None else memory
        Q, K, V = x @ W_q, source @ W_k, source @ W_v
        Q, K, V = (z.unflatten(-1, (num_heads, -1)).transpose(1, 2) for z in (Q, K, V))
        scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
        if mask is not None:
            mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return (weights @ V).transpose(1, 2).flatten(2) @ W_o
""")
multi_head_attention.why(
    "np.sqrt(d) | np.sqrt(K.shape[-1]) | K.shape[-1] ** 0.5 | W_q.shape[1] // num_heads | "
    "np.sqrt(Q.shape[-1]) | K.shape[-1] | d",
    "d_k is the width of one head: a sum of d_k products spreads like √d_k, and the division "
    "undoes that.",
)
multi_head_attention.why(
    "W_q[:, own] | W_k[:, own] | W_v[:, own] | own | slice(h * d, (h + 1) * d) | (h + 1) * d",
    "Head h owns a contiguous slice of the columns, as wide as a head, in each of the three "
    "matrices.",
)
multi_head_attention.why(
    "x @ W_q | source @ W_k | source @ W_v | x @ W_q[:, own] | source @ W_k[:, own] | "
    "source @ W_v[:, own] | source | memory | x if memory is None else memory",
    "Queries, keys and values have a matrix each; queries come from x, keys and values both from "
    "the memory, where there is one.",
)
multi_head_attention.why(
    "np.where(mask, scores, -np.inf) | safe_masked_softmax(scores, mask) | ~mask | "
    "scores.masked_fill(~mask, float('-inf')) | mask | -np.inf | scores.where(mask, -1e9)",
    "True means: may attend. What is forbidden gets −∞ before the softmax, so that the allowed "
    "keys share all the weight.",
)
multi_head_attention.why(
    "mask[:, None] | mask.unsqueeze(1) | mask if mask.ndim == 2 else mask[:, None]",
    "A mask for each sentence needs an axis of length 1 for the heads, right after the batch.",
)
multi_head_attention.why(
    "axis=-1 | dim=-1 | torch.softmax(scores, dim=-1) | axis=3",
    "The last axis: each query shares out its weight over the keys, and heads lie side by side "
    "along the features.",
)
multi_head_attention.why(
    "transpose(0, 2, 1, 3) | transpose(1, 2) | split_heads(x @ W_q, num_heads) | "
    "merge_heads(weights @ V) | merge_heads",
    "Heads stand before the tokens while they attend, and next to their features when they merge.",
)
multi_head_attention.why(
    "np.concatenate(heads, axis=-1) @ W_o | merge_heads(weights @ V) @ W_o | context @ W_o | W_o",
    "The heads lie side by side, each with its own features; W_o alone mixes what they found.",
)
multi_head_attention.why(
    "x + merge_heads(weights @ V) @ W_o | x +",
    "Nothing is added to x here: the residual path lies around this function, in Add & Norm.",
)
multi_head_attention.why(
    "weights @ V | V | safe_masked_softmax(scores, mask) @ V | K.swapaxes(-1, -2) | "
    "K.transpose(0, 1, 3, 2) | K.transpose(-2, -1) | Q @ K.swapaxes(-1, -2)",
    "Scores have a row for each query and a column for each key; each row of weights then averages "
    "the values.",
)


# The mistakes below are multi-head attention with one part exchanged.


def scaled_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    return Q @ K.swapaxes(-1, -2) / K.shape[-1] ** 0.5


def plain_softmax(S: np.ndarray) -> np.ndarray:
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forbid(S: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    if mask is None:
        return S
    return np.where(mask[:, None] if mask.ndim == 3 else mask, S, -1e30)


def masked_weights(S: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return plain_softmax(forbid(S, mask))


def attend(
    *args,
    split=reference.split_heads,
    scores=scaled_scores,
    weigh=masked_weights,
    merge=reference.merge_heads,
    finish=np.matmul,
):
    """Multi-head attention of exchangeable parts; each hands its result to the next."""
    x, W_q, W_k, W_v, W_o, num_heads, mask, memory = (*args, None, None)[:8]
    if W_q.shape[0] != W_q.shape[1]:  # answers differ in what they take for D: see `wide_heads`
        raise ValueError("W_q is not square")
    source = x if memory is None else memory
    Q, K, V = (split(z, num_heads) for z in (x @ W_q, source @ W_k, source @ W_v))
    context = weigh(scores(Q, K), mask) @ V  # (B, H, T, d_head)
    return finish(merge(context), W_o)


def exchanged(**parts: Callable) -> Callable:
    """Add a mistake of multi-head attention: some parts of `attend` are others."""

    def add(named: Callable) -> Callable:
        def wrong(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
            return attend(x, W_q, W_k, W_v, W_o, num_heads, mask, memory, **parts)

        return multi_head_attention.mistake(wrong, told_by=named)

    return add


@exchanged(scores=lambda Q, K: scaled_scores(Q, K) / Q.shape[1] ** 0.5)
def scaled_by_d_model():
    """The scores are divided by the root of the full width, d_model. Each head multiplies vectors
    of width d_k = d_model / num_heads only: divide by √d_k."""


@exchanged(finish=lambda joined, W_o: joined)
def no_output_projection():
    """The output projection is missing: the heads lie side by side, but nothing mixes what they
    found. Multiply the joined heads by W_o, as the last step."""


def late_mask(S, mask):
    allowed = np.ones(S.shape) if mask is None else forbid(S * 0 + 1, mask) > 0
    return plain_softmax(S) * allowed


@exchanged(weigh=late_mask)
def masked_after_the_softmax():
    """The mask comes after the softmax: what is forbidden has taken its share already, and the
    weights of a row no longer sum to 1. Mask the scores, before the softmax, with −∞."""


@multi_head_attention.mistake
def memory_ignored(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """memory is not used: keys and values still come from x. In cross-attention the queries come
    from x, and both keys and values from the memory."""
    return attend(x, W_q, W_k, W_v, W_o, num_heads, mask)


@exchanged(scores=lambda Q, K: Q @ K.swapaxes(-1, -2))
def not_scaled():
    """The scores are not scaled: the wider a head, the larger they get, and the softmax all
    but picks a single key. Divide them by √d_k, the root of the width of a head."""


@multi_head_attention.mistake
def all_weights_transposed(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    """All four matrices are used transposed. They multiply from the right as they are, and a head
    owns columns, not rows; only nn.Linear stores its weight the other way round."""
    return attend(x, W_q.T, W_k.T, W_v.T, W_o.T, num_heads, mask, memory)


@exchanged(weigh=lambda S, mask: plain_softmax(S if mask is None else np.where(mask, S, -1e30)))
def mask_without_axis_for_heads():
    """A mask for each sentence, (B, T, Tk), lacks an axis for the heads: its sentences are taken
    for heads. Give it one of length 1 right after the batch, (B, 1, T, Tk)."""


def first_head_masked(S, mask):
    return np.concatenate([masked_weights(S[:, :1], mask), plain_softmax(S[:, 1:])], axis=1)


@exchanged(merge=no_transpose_back)
def merge_by_reshape_only():
    """The heads are merged by a reshape alone, which mixes tokens and heads. Let heads and tokens
    change places back first, (B, T, H, d_head), so that each token gathers its own heads."""


@exchanged(weigh=lambda S, mask: plain_softmax(S))
def mask_ignored():
    """The mask has no effect. Before the softmax, set the scores to −∞ where it is False: these
    keys then get no weight, in every head."""


@exchanged(weigh=first_head_masked)
def mask_only_for_the_first_head():
    """Only the first head is masked, and the others still see what is forbidden. The mask is the
    same for every head."""


@exchanged(split=reshape_only, merge=no_transpose_back)
def split_and_merge_by_reshape_only():
    """Split and merge by reshape alone: the shapes fit, but tokens and heads are mixed. Cut the
    features first, (B, T, H, d_head), let tokens and heads change places, and back before the
    merge."""


@exchanged(split=lambda z, _: z[:, None])
def no_heads():
    """This is one wide head: num_heads has no effect. Cut queries, keys and values into num_heads
    slices, each with scores and a softmax of its own."""


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
sharing.probe("two heads, each for two", np.arange(1.0, 9).reshape(1, 2, 2, 2), 2)
sharing.probe("three heads, each for two", numbers(2, 3, 4, 5), 2)
sharing.probe("two heads, each for three", numbers(3, 2, 4, 5), 3)
sharing.probe("four heads, each for two", numbers(2, 4, 3, 5), 2)
sharing.probe("one head for all", numbers(2, 1, 3, 4), 4)
sharing.probe("a head for each, groups=1", numbers(2, 3, 4, 5), 1)
sharing.probe("three of everything", numbers(3, 3, 3, 3), 3)
sharing.answer("""
    def share_heads(x, groups):
        # with groups = 2, heads A, B become A, A, B, B
        return np.repeat(x, groups, axis=1)
""")
sharing.answer("""
    def share_heads(x, groups):
        heads = []
        for h in range(x.shape[1]):
            for copy in range(groups):
                heads.append(x[:, h])
        return np.stack(heads, axis=1)
""")
sharing.answer("""
    def share_heads(x, groups):
        B, H, T, d = x.shape
        copies = np.stack([x] * groups, axis=2)  # (B, H, groups, T, d)
        return copies.reshape(B, H * groups, T, d)
""")
sharing.answer("""
    def share_heads(x, groups):
        B, H, T, d = x.shape
        owner = np.arange(H * groups) // groups  # 0, 0, 1, 1 …
        return x[:, owner]
""")
sharing.answer("""
    import torch

    def share_heads(x, groups):
        return torch.repeat_interleave(x, groups, dim=1)
""")
sharing.why(
    "axis=1 | dim=1",
    "Axis 1 counts the heads; sentences, tokens and features are not repeated.",
)
sharing.why(
    "np.repeat(x, groups, axis=1) | np.repeat | torch.repeat_interleave(x, groups, dim=1) | "
    "np.arange(H * groups) // groups | x[:, h]",
    "Queries in a row share one head, so its copies stand in a row: A A B B, not A B A B.",
)
sharing.why(
    "groups | range(groups) | [x] * groups",
    "Each head stands there `groups` times, once for each head of queries that shares it.",
)
sharing.why(
    "axis=2 | np.stack([x] * groups, axis=2) | copies.reshape(B, H * groups, T, d)",
    "Copies next to their head, (B, H, groups, T, d): then joining both axes keeps A A B B.",
)
sharing.why(
    "np.stack(heads, axis=1) | range(x.shape[1]) | H * groups",
    "Every head of keys is shared, and the copies line up on the axis of the heads.",
)


@sharing.mistake
def all_heads_in_turn(x, groups):
    """The heads stand in the order A B A B, as tiling or concatenating makes it. Heads of queries
    in a row share one, so the copies of each stand in a row: A A B B."""
    return np.tile(x, (1, groups, 1, 1))


@sharing.mistake
def groups_heads_in_all(x, groups):
    """groups is taken for the number of heads in all. It tells how many heads of queries share each
    one, so H_kv * groups heads come out."""
    return np.repeat(x, max(groups // x.shape[1], 1), axis=1)


@sharing.mistake
def heads_cut_into_groups(x, groups):
    """Heads are averaged in groups, so that fewer come out. Here the heads of keys are the few, and
    more must come out: each is repeated `groups` times."""
    B, H, T, d = x.shape
    return x.reshape(B, H // groups, groups, T, d).mean(axis=2)
