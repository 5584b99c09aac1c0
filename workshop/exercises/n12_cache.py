"""Notebook 12: attention that keeps the keys and values of what it has read."""

import numpy as np

from helpers.attention import causal_mask, masked_softmax
from helpers.given import check_axes
from workshop.exercises.exercise import Draw, Exercise, numbers

Kept = tuple[np.ndarray, np.ndarray]


def attend_cached(
    x: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray, kept: Kept | None = None
) -> tuple[np.ndarray, Kept]:
    """Let new words read those whose keys and values are kept, and each other up to themselves.

    x (n, D), kept (t, d_k) and (t, d_v) → (n, d_v), and the keys and values of all t + n words.
    Raises ValueError for shapes that do not fit. Shazeer (2019), section 2.4.
    """
    check_axes("x", x, "n", "D")
    _check_heights(x, W_q=W_q, W_k=W_k, W_v=W_v)
    K, V = x @ W_k, x @ W_v
    if kept is not None:
        _check_kept(kept, K, V)
        K, V = np.concatenate([kept[0], K]), np.concatenate([kept[1], V])
    scores = x @ W_q @ K.T / np.sqrt(K.shape[1])  # (n, t + n)
    weights = masked_softmax(scores, causal_mask(len(K))[-len(x) :])
    return weights @ V, (K, V)


def _check_heights(x: np.ndarray, **matrices: np.ndarray) -> None:
    for name, W in matrices.items():
        if np.ndim(W) != 2 or W.shape[0] != x.shape[1]:
            raise ValueError(
                f"{name} has shape {np.shape(W)}, but must be ({x.shape[1]}, …) for x {x.shape}"
            )
    if matrices["W_q"].shape != matrices["W_k"].shape:
        raise ValueError(
            f"W_q has shape {matrices['W_q'].shape}, but must be as W_k {matrices['W_k'].shape}"
        )


def _check_kept(kept: Kept, K: np.ndarray, V: np.ndarray) -> None:
    wide = [(np.ndim(old), np.shape(old)[-1:]) for old in kept]
    if wide != [(2, K.shape[1:]), (2, V.shape[1:])] or len(kept[0]) != len(kept[1]):
        raise ValueError(
            f"kept has shapes {', '.join(str(np.shape(old)) for old in kept)}, "
            f"but must be (t, {K.shape[1]}) and (t, {V.shape[1]})"
        )


cached = Exercise(
    attend_cached,
    notebook="12",
    level=3,
    minutes=15,
    task="One causal head that reads only what is new. `x` holds the new words, usually one; "
    "`kept` is None, or the keys and the values of all words before. Each new word attends to all "
    "kept ones and, among the new, to those up to itself. Return the context of the new words, and "
    "beside it the keys and the values of all words, for the next call.",
    hints=(
        "Which of the three, query, key and value, does a word need only once, and which of them "
        "will later words read?",
        "Make keys and values of the new words, put them under the kept ones, and let the queries "
        "of the new words ask all of them. The mask is the last n rows of the causal mask of all.",
        "`K, V = x @ W_k, x @ W_v`, then if kept is not None `K, V = np.concatenate([kept[0], K]), "
        "np.concatenate([kept[1], V])`, the mask is `mask = causal_mask(len(K))[-len(x):]`, and "
        "`weights = masked_softmax(x @ W_q @ K.T / np.sqrt(K.shape[-1]), mask)`, at last "
        "`return weights @ V, (K, V)`",
    ),
)
cached.answer("""
    def attend_cached(x, W_q, W_k, W_v, kept=None):
        K, V = x @ W_k, x @ W_v
        if kept is not None:
            K, V = np.concatenate([kept[0], K]), np.concatenate([kept[1], V])
        scores = x @ W_q @ K.T / np.sqrt(K.shape[-1])
        mask = causal_mask(len(K))[-len(x):]
        return masked_softmax(scores, mask) @ V, (K, V)
""")
cached.answer("""
    def attend_cached(x, W_q, W_k, W_v, kept=None):
        Q = x @ W_q
        K = x @ W_k
        V = x @ W_v
        if kept is not None:
            old_K, old_V = kept
            K = np.vstack([old_K, K])
            V = np.vstack([old_V, V])
        before = len(K) - len(x)
        scores = Q @ K.T / np.sqrt(Q.shape[1])
        allowed = np.arange(len(K)) <= before + np.arange(len(x))[:, None]
        scores = np.where(allowed, scores, -np.inf)
        return softmax(scores) @ V, (K, V)
""")
cached.answer("""
    def attend_cached(x, W_q, W_k, W_v, kept=None):
        K = x @ W_k if kept is None else np.concatenate([kept[0], x @ W_k])
        V = x @ W_v if kept is None else np.concatenate([kept[1], x @ W_v])
        context = []
        for i in range(len(x)):
            end = len(K) - len(x) + i + 1
            context.append(attention(x[i : i + 1] @ W_q, K[:end], V[:end])[0])
        return np.array(context), (K, V)
""")
cached.answer("""
    import torch

    def attend_cached(x, W_q, W_k, W_v, kept=None):
        K, V = x @ W_k, x @ W_v
        if kept is not None:
            K, V = torch.cat([kept[0], K]), torch.cat([kept[1], V])
        n, t = len(x), len(K)
        scores = (x @ W_q) @ K.T / K.shape[1] ** 0.5
        later = torch.ones(n, t, dtype=torch.bool).triu(t - n + 1)
        scores = scores.masked_fill(later, -torch.inf)
        return torch.softmax(scores, dim=-1) @ V, (K, V)
""")

cached.why(
    "x @ W_k | x @ W_v | x @ W_k, x @ W_v",
    "Keys and values are computed for the new words only; those of the words before are kept.",
)
cached.why(
    "np.concatenate([kept[0], K]) | np.concatenate([kept[1], V]) | np.concatenate([kept[0], K]), "
    "np.concatenate([kept[1], V]) | np.concatenate([kept[0], x @ W_k]) | "
    "np.concatenate([kept[1], x @ W_v]) | np.vstack([old_K, K]) | np.vstack([old_V, V]) | "
    "torch.cat([kept[0], K]) | torch.cat([kept[1], V])",
    "The new keys and values go under the kept ones, which stand first: the order of the text.",
)
cached.why(
    "kept is not None | kept is None",
    "The first call has nothing kept: kept is None then, and the new words are all there is.",
)
cached.why(
    "x @ W_q | x @ W_q @ K.T | Q @ K.T | (x @ W_q) @ K.T | x[i : i + 1] @ W_q",
    "Only the new words ask, so there are n rows of scores; they ask all the keys, kept and new.",
)
cached.why(
    "np.sqrt(K.shape[-1]) | np.sqrt(Q.shape[1]) | K.shape[1] ** 0.5 | "
    "x @ W_q @ K.T / np.sqrt(K.shape[-1]) | Q @ K.T / np.sqrt(Q.shape[1])",
    "Scores are divided by the square root of d_k, the width of a key, as in any head: not by the "
    "number of keys.",
)
cached.why(
    "causal_mask(len(K))[-len(x):] | before + np.arange(len(x))[:, None] | t - n + 1 | len(K) - "
    "len(x) + i + 1 | len(K) - len(x)",
    "The new words are the last n rows of the whole causal mask: each reads all kept words, and "
    "the new ones up to itself.",
)
cached.why(
    "np.where(allowed, scores, -np.inf) | scores.masked_fill(later, -torch.inf) | -np.inf | "
    "-torch.inf | masked_softmax(scores, mask)",
    "What a new word may not read gets the score −∞ before softmax, and so the weight 0.",
)
cached.why(
    "(K, V)",
    "What comes back must hold all keys and values, kept and new: the next call begins with them.",
)


def head(*matrices: Draw, after: int = 0, d: int = 3) -> tuple[Draw, ...]:
    """Matrices of a head, and what it has kept of so many words before."""
    return (*matrices, (numbers(after, d), numbers(after, d))) if after else matrices


square = [numbers(3, 3)] * 3
cached.probe("one word, nothing kept", numbers(1, 3), *head(*square))
cached.probe("one new word after two", numbers(1, 3), *head(*square, after=2))
cached.probe("three new words, nothing kept", numbers(3, 3), *head(*square))
cached.probe("two new words after three", numbers(2, 3), *head(*square, after=3))
cached.probe("as many new as kept", numbers(2, 3), *head(*square, after=2))
cached.probe("one new word after seven", numbers(1, 3), *head(*square, after=7))
cached.probe("large scores", 30 * numbers(3, 3), *head(*square, after=4))


@cached.experiment("keys of four features, values of two")
def narrow(attend):
    """Two new words after three, in a head whose queries, keys and values differ in width."""
    rng = np.random.default_rng(4)
    x, W_q, W_k = rng.normal(size=(2, 5)), rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    W_v, kept = rng.normal(size=(5, 2)), (rng.normal(size=(3, 4)), rng.normal(size=(3, 2)))
    return attend(x, W_q, W_k, W_v, kept)


@cached.experiment("five words, one by one")
def word_by_word(attend):
    """The contexts of five words read one after the other, and how many keys are kept each time."""
    rng = np.random.default_rng(12)
    words, W = rng.normal(size=(5, 4)), rng.normal(size=(3, 4, 2))
    kept, contexts, lengths = None, [], []
    for i in range(5):
        context, kept = attend(words[i : i + 1], *W, kept)
        contexts.append(context[0])
        lengths.append(len(kept[0]))
    return {"contexts": np.array(contexts), "keys kept": lengths}


def attended(x, W_q, W_k, W_v, kept, mask=None, width=None, order=1):
    """attend_cached with one of its steps replaced and no check of the arguments."""
    K, V = x @ W_k, x @ W_v
    if kept is not None:
        K, V = (np.concatenate([kept[i], new][::order]) for i, new in enumerate((K, V)))
    mask = causal_mask(len(K))[-len(x) :] if mask is None else mask(len(x), len(K))
    scores = x @ W_q @ K.T / np.sqrt(K.shape[1] if width is None else width(K, V, x))
    return masked_softmax(scores, mask) @ V, (K, V)


@cached.mistake
def new_words_read_ahead(x, W_q, W_k, W_v, kept=None):
    """With several new words, each reads the later ones too. Among the new, a word may read those
    up to itself: the rows of the mask are the last n of the causal mask of all words."""
    return attended(x, W_q, W_k, W_v, kept, mask=lambda n, t: np.ones((n, t), dtype=bool))


@cached.mistake
def mask_begins_at_the_first_word(x, W_q, W_k, W_v, kept=None):
    """The mask counts the new words as if they stood at the beginning, and hides most kept keys
    from them. All words before come first: take the last n rows of the whole causal mask."""
    return attended(x, W_q, W_k, W_v, kept, mask=lambda n, t: np.tri(n, t, dtype=bool))


@cached.mistake
def itself_left_out(x, W_q, W_k, W_v, kept=None):
    """A new word does not read its own key: its key and value join the kept ones only afterwards.
    It attends to itself as well, so put them there first."""
    context, kept_after = attended(x, W_q, W_k, W_v, kept)
    if kept is None:
        return context, kept_after

    def before(n, t):
        return np.tri(n, t, k=t - n - 1, dtype=bool)

    return attended(x, W_q, W_k, W_v, kept, mask=before)


@cached.mistake
def kept_not_read(x, W_q, W_k, W_v, kept=None):
    """The kept keys and values are handed on but not read: the new words attend only to each other.
    Put the new keys and values under the kept ones before the scores."""
    return attended(x, W_q, W_k, W_v, None)[0], attended(x, W_q, W_k, W_v, kept)[1]


@cached.mistake
def only_the_new_kept(x, W_q, W_k, W_v, kept=None):
    """What comes back holds the keys and values of the new words alone, so the next call has
    forgotten all before. Return those of all words, kept and new."""
    return attended(x, W_q, W_k, W_v, kept)[0], (x @ W_k, x @ W_v)


@cached.mistake
def newest_first(x, W_q, W_k, W_v, kept=None):
    """The new keys and values stand above the kept ones. They belong under them, in the order of
    the text, or the mask hides the wrong words."""
    return attended(x, W_q, W_k, W_v, kept, order=-1)


@cached.mistake
def not_scaled(x, W_q, W_k, W_v, kept=None):
    """The scores are not divided by √d_k. A head with a cache scales as any other: the result must
    be the same as without the cache."""
    return attended(x, W_q, W_k, W_v, kept, width=lambda K, V, x: 1)


@cached.mistake
def scaled_by_the_number_of_keys(x, W_q, W_k, W_v, kept=None):
    """The scores are divided by the square root of the number of keys, len(K), which grows with
    each word. Divide by √d_k, the width of a key: the last axis."""
    return attended(x, W_q, W_k, W_v, kept, width=lambda K, V, x: len(K))


@cached.mistake
def values_and_keys_swapped(x, W_q, W_k, W_v, kept=None):
    """The values come back first and the keys second. The next call takes them in the order
    (K, V)."""
    context, (K, V) = attended(x, W_q, W_k, W_v, kept)
    return context, (V, K)


@cached.mistake
def context_alone(x, W_q, W_k, W_v, kept=None):
    """Only the context comes back. Whoever calls needs the keys and values too: return the context
    and (K, V)."""
    return attended(x, W_q, W_k, W_v, kept)[0]
