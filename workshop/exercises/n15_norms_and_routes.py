"""Notebook 15: vectors of one length, and words that are sent to a few experts."""

import numpy as np

from helpers.attention import softmax
from workshop.exercises.exercise import Exercise, numbers

# ---------------------------------------------------------------- rms_norm


def rms_norm(x: np.ndarray, gamma: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Bring each vector to mean square 1, then apply a gain: (…, d), (d,) → (…, d).

    Raises ValueError for another number of gains. Zhang and Sennrich (2019), equation 4.
    """
    if gamma.shape != x.shape[-1:]:
        raise ValueError(f"gamma has shape {gamma.shape}, but must be {x.shape[-1:]}, as x is wide")
    return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


norm = Exercise(
    rms_norm,
    notebook="15",
    level=1,
    minutes=5,
    task="Bring each vector to one length: divide it by the root of its mean square, then "
    "multiply by the gain gamma. eps is added to the mean square, below the root. It must work for "
    "one vector, a sentence, and the heads of a batch.",
    hints=(
        "Notebook 10's LayerNorm, without two of its parts. Which?",
        "The mean of x**2 over the last axis, with keepdims=True; add eps, take the root, divide, "
        "and multiply by gamma. No mean is subtracted.",
        "`return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)`",
    ),
)
WORD = np.array([6.0, 8.0, 0.0, 0.0])  # mean square 25
ONES, GAMMA = np.ones(4), np.array([1.0, 2.0, 0.5, 3.0])
norm.probe("one word, gamma 1", WORD, ONES)
norm.probe("with a gain", WORD[None], GAMMA)
norm.probe("two words", np.array([WORD, [9.0, -1.0, 0.0, 3.0]]), GAMMA)
norm.probe("a sentence of three words", 2 * numbers(3, 5) + 1, numbers(5))
norm.probe("as many words as features", 2 * numbers(4, 4) + 1, numbers(4))
norm.probe("the heads of a batch", 3 * numbers(2, 3, 4, 6) + 1, numbers(6))
norm.probe("a vector of zeros", np.zeros((1, 4)), GAMMA)
norm.probe("eps=0.5", np.array([[1.0, 2.0, 2.0, -1.0]]), GAMMA, 0.5)
norm.probe("very small numbers", WORD[None] / 1000, ONES)
norm.probe("large numbers", 1000 + WORD[None], GAMMA)
norm.answer("""
    def rms_norm(x, gamma, eps=1e-5):
        mean_square = (x**2).mean(axis=-1, keepdims=True)
        return gamma * x / np.sqrt(mean_square + eps)
""")
norm.answer("""
    def rms_norm(x, gamma, eps=1e-5):
        squares = (x * x).sum(axis=-1, keepdims=True) / x.shape[-1]
        return x * (squares + eps) ** -0.5 * gamma
""")
norm.answer("""
    def rms_norm(x, gamma, eps=1e-5):
        mean_square = np.einsum("...d,...d->...", x, x) / x.shape[-1]
        return x / np.sqrt(mean_square + eps)[..., None] * gamma
""")
norm.answer("""
    import torch.nn.functional as F

    def rms_norm(x, gamma, eps=1e-5):
        return F.rms_norm(x, x.shape[-1:], gamma, eps)
""")
norm.why(
    "(x**2).mean(axis=-1, keepdims=True) | x**2 | x * x | mean_square | squares | "
    '(x * x).sum(axis=-1, keepdims=True) / x.shape[-1] | np.einsum("...d,...d->...", x, x) | '
    "x.shape[-1]",
    "The mean of the squares, not of the numbers: it says how long a vector is for its width.",
)
norm.why(
    "axis=-1 | axis",
    "Each word by itself: the mean runs over its own features, the last axis.",
)
norm.why(
    "keepdims=True | [..., None]",
    "The mean keeps its axis, so that it divides its own word.",
)
norm.why(
    "np.sqrt(mean_square + eps) | np.sqrt | (squares + eps) ** -0.5 | -0.5",
    "The root brings squares back to the scale of the numbers: then the mean square becomes 1.",
)
norm.why(
    "mean_square + eps | squares + eps | eps",
    "eps is added to the mean square, below the root: a vector of zeros stays zeros.",
)
norm.why("gamma", "A learned gain for each feature, after the norm; there is no bias.")


def root(x: np.ndarray, eps: float, axis: int | None = -1) -> np.ndarray:
    """What a vector is divided by; by mistake that of more than its own numbers."""
    return np.sqrt((x**2).mean(axis=axis, keepdims=True) + eps)


@norm.mistake
def mean_subtracted(x, gamma, eps=1e-5):
    """The mean is subtracted first: that is LayerNorm. RMSNorm leaves the vector's direction as it
    is and only changes its length."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / root(centred, eps)


@norm.mistake
def root_is_missing(x, gamma, eps=1e-5):
    """The vector is divided by its mean square, without the root: a vector twice as long comes out
    half as long. Take the root of the mean square."""
    return gamma * x / root(x, eps) ** 2


@norm.mistake
def divided_by_the_length(x, gamma, eps=1e-5):
    """The sum of the squares is taken, not their mean: every vector gets length 1, and its numbers
    shrink as it gets wider. Take the mean of the squares."""
    return gamma * x / np.sqrt((x**2).sum(axis=-1, keepdims=True) + eps)


@norm.mistake
def one_root_for_everything(x, gamma, eps=1e-5):
    """All words share one root, so a loud word makes the others quiet. Each word has its own: the
    mean runs over axis=-1, with keepdims=True."""
    return gamma * x / root(x, eps, axis=None)


@norm.mistake
def over_the_words(x, gamma, eps=1e-5):
    """The mean runs over the words, so each feature is normed across the sentence. Take it over the
    features of each word: axis=-1."""
    return gamma * x / root(x, eps, axis=-2 if np.ndim(x) > 1 else -1)


@norm.mistake
def eps_outside_the_root(x, gamma, eps=1e-5):
    """eps is added after the root. It belongs below it: the root of (mean square + eps)."""
    return gamma * x / (np.sqrt((x**2).mean(axis=-1, keepdims=True)) + eps)


@norm.mistake
def gamma_ignored(x, gamma, eps=1e-5):
    """gamma is not used. It is learned, one number for each feature, and multiplies what has been
    normed."""
    return x / root(x, eps)


# ---------------------------------------------------------------- route


def route(logits: np.ndarray, k: int) -> np.ndarray:
    """How much of each word its k best experts take: (T, E) → (T, E), zero for the others.

    The k largest logits of a row become shares that sum to 1; those equal to the k-th are taken
    with it. Raises ValueError unless k is from 1 to E. Shazeer et al. (2017), equations 3 to 5;
    the shares as in Mixtral (Jiang et al., 2024).
    """
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"k is {k}, but must be from 1 to {logits.shape[-1]}, the experts")
    smallest = np.sort(logits, axis=-1)[:, -k, None]  # (T, 1): the last that is taken
    return softmax(np.where(logits >= smallest, logits, -np.inf))


routing = Exercise(
    route,
    notebook="15",
    level=2,
    minutes=10,
    task="Each row holds one word's logits for E experts. The k experts with the largest take the "
    "word: turn these k logits into positive shares that sum to 1, by softmax. All others get 0. "
    "(No two logits of a row are equal.)",
    hints=(
        "What would the softmax give to an expert whose logit is −∞?",
        "Find the k-th largest logit of each row (np.sort along the last axis); put −∞ where a "
        "logit is smaller, then take the softmax of each row.",
        "`smallest = np.sort(logits, axis=-1)[:, -k, None]`, then `return "
        "softmax(np.where(logits >= smallest, logits, -np.inf))`",
    ),
)
routing.probe("one word, two of four experts", np.array([[2.0, 0.0, 1.0, -1.0]]), 2)
routing.probe("one expert takes it", np.array([[1.0, 3.0, 2.0]]), 1)
routing.probe("all experts take it", np.array([[1.0, 3.0, 2.0]]), 3)
routing.probe("two words", np.array([[2.0, 0.0, 1.0, -1.0], [-3.0, 1.0, 0.5, 4.0]]), 2)
routing.probe("the best are below zero", np.array([[-5.0, -1.0, -3.0, -2.0]]), 2)
routing.probe("a sentence of five words", 2 * numbers(5, 8), 3)
routing.probe("as many words as experts", 2 * numbers(4, 4), 2)
routing.probe("huge logits", np.array([[1000.0, -1000.0, 998.0, 3.0]]), 2)
routing.probe("a loud word and a quiet one", np.array([[999.0, 3.0, 998.0], [0.5, 1.0, -2.0]]), 2)
routing.probe("a single expert", numbers(3, 1), 1)
routing.answer("""
    def route(logits, k):
        smallest = np.sort(logits, axis=-1)[:, -k, None]  # (T, 1): the last that is taken
        return softmax(np.where(logits >= smallest, logits, -np.inf))
""")
routing.answer("""
    def route(logits, k):
        shares = np.zeros(logits.shape)
        for t in range(len(logits)):
            best = np.argsort(logits[t])[-k:]
            e = np.exp(logits[t, best] - logits[t].max())
            shares[t, best] = e / e.sum()
        return shares
""")
routing.answer("""
    def route(logits, k):
        weights = softmax(logits)
        order = np.argsort(-weights, axis=-1)
        np.put_along_axis(weights, order[:, k:], 0, axis=-1)
        return weights / weights.sum(axis=-1, keepdims=True)
""")
routing.answer("""
    import torch

    def route(logits, k):
        largest, chosen = torch.topk(logits, k, dim=-1)
        shares = torch.zeros_like(logits)
        return shares.scatter(-1, chosen, largest.softmax(dim=-1))
""")
routing.why(
    "np.sort(logits, axis=-1)[:, -k, None] | smallest | np.argsort(logits[t])[-k:] | [-k:] | -k | "
    "logits >= smallest | best | order[:, k:] | np.argsort(-weights, axis=-1) | order | "
    "torch.topk(logits, k, dim=-1) | chosen",
    "The k largest logits of a word say which experts take it: sorted, they stand last.",
)
routing.why(
    "axis=-1 | dim=-1 | range(len(logits))",
    "Each word chooses for itself: along its own row.",
)
routing.why(
    "-np.inf | np.where(logits >= smallest, logits, -np.inf) | np.zeros(logits.shape) | "
    "torch.zeros_like(logits) | np.put_along_axis(weights, order[:, k:], 0, axis=-1)",
    "An expert that is not chosen gets exactly 0: it is never run, which is what saves the work.",
)
routing.why(
    "softmax(np.where(logits >= smallest, logits, -np.inf)) | e / e.sum() | "
    "weights / weights.sum(axis=-1, keepdims=True) | largest.softmax(dim=-1) | softmax",
    "The chosen experts share the whole word: what is left must sum to 1 again.",
)
routing.why(
    "np.exp(logits[t, best] - logits[t].max()) | logits[t].max()",
    "The largest logit is subtracted, as in every softmax, so that exp stays in range.",
)


def kept(logits: np.ndarray, k: int, best: bool = True) -> np.ndarray:
    """Which experts take a word, True or False; by mistake those with the smallest logits."""
    rank = np.argsort(np.argsort(-logits if best else logits, axis=-1), axis=-1)
    return rank < k


@routing.mistake
def not_shared_out_again(logits, k):
    """The shares of all experts are taken first and then cut, so a row sums to less than 1: part of
    the word is lost. Divide what is left by its sum."""
    return np.where(kept(logits, k), softmax(logits), 0)


@routing.mistake
def softmax_over_zeros(logits, k):
    """The logits that are cut become 0, and then the softmax gives each of them a share: exp(0) is
    1. Put −∞ there, so that they get nothing."""
    return softmax(np.where(kept(logits, k), logits, 0))


@routing.mistake
def the_smallest(logits, k):
    """The experts with the smallest logits take the word. A large logit means: this expert fits;
    take the last k of the sorted ones."""
    return softmax(np.where(kept(logits, k, best=False), logits, -np.inf))


@routing.mistake
def equal_shares(logits, k):
    """The chosen experts get equal shares. The one that fits better takes more: the softmax of
    their logits."""
    return kept(logits, k) / k


@routing.mistake
def which_not_how_much(logits, k):
    """This says which experts are chosen, 1 or 0, and not how much each of them takes. The shares
    of a word sum to 1: the softmax of the chosen logits."""
    return kept(logits, k).astype(float)


@routing.mistake
def logits_not_shares(logits, k):
    """The chosen logits are returned as they are. They may be below zero and sum to anything: take
    the softmax of them."""
    return np.where(kept(logits, k), logits, 0)


@routing.mistake
def the_words_compete(logits, k):
    """The experts choose among the words: each column keeps its k largest. Here each word chooses
    among the experts: sort along the last axis."""
    k = min(k, len(logits))
    return softmax(np.where(kept(logits.T, k).T, logits, -np.inf))


@routing.mistake
def one_expert_too_few(logits, k):
    """One expert too few takes each word: the k-th largest logit belongs to the chosen ones, too.
    Compare with ≥, or take the last k."""
    return softmax(np.where(kept(logits, max(k - 1, 1)), logits, -np.inf))


@routing.mistake
def shares_of_raw_logits(logits, k):
    """The chosen logits are divided by their sum. Some may be below zero, and shares must be
    positive: take exp of them first, the softmax."""
    chosen = np.where(kept(logits, k), logits, 0)
    return chosen / chosen.sum(axis=-1, keepdims=True)
