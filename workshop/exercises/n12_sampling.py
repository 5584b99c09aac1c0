"""Notebook 12: from vectors to a word: logits, probabilities, one draw."""

from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import decoding
from helpers.attention import softmax as weights_of
from workshop.exercises.exercise import About, Exercise, numbers

# ---------------------------------------------------------------- next_token_logits

next_token_logits = Exercise(
    decoding.next_token_logits,
    notebook="12",
    level=1,
    minutes=4,
    task="Score every word of the vocabulary as the next one, from the last position alone. It "
    "must work for one sentence (T, D) and for a batch (B, T, D).",
    hints=(
        "Which axis holds the positions, counted from the end, with a batch and without?",
        "h[..., -1, :] is the last position in both cases; W_vocab turns features into scores.",
        "`return h[..., -1, :] @ W_vocab`",
    ),
)
next_token_logits.answer("""
    def next_token_logits(h, W_vocab):
        last = h[..., -1, :]
        return last @ W_vocab
""")
next_token_logits.answer("""
    def next_token_logits(h, W_vocab):
        logits = h @ W_vocab
        return logits[..., -1, :]
""")
next_token_logits.answer("""
    def next_token_logits(h, W_vocab):
        if h.ndim == 2:
            return h[-1] @ W_vocab
        return h[:, -1] @ W_vocab
""")
next_token_logits.answer("""
    def next_token_logits(h, W_vocab):
        every = np.einsum("...d,dv->...v", h, W_vocab)
        return np.take(every, -1, axis=-2)
""")

next_token_logits.why(
    "h[..., -1, :] | logits[..., -1, :] | h[:, -1] | h[-1] | axis=-2",
    "Only the last position, not the first, has read all words. Positions are the second to last "
    "axis, with a batch or without.",
)
next_token_logits.why(
    "last @ W_vocab | h @ W_vocab",
    "W_vocab (D, V) turns a position into one raw score per word: a logit, before any softmax or "
    "choice.",
)

next_token_logits.probe("two positions of one sentence", numbers(2, 3), numbers(3, 4))
next_token_logits.probe("a batch of two", numbers(2, 3, 5), numbers(5, 7))
next_token_logits.probe("as many sentences as positions", numbers(3, 3, 4), numbers(4, 6))
next_token_logits.probe("as many words as features", numbers(2, 4, 5), numbers(5, 5))
next_token_logits.probe("a single position", numbers(2, 1, 4), numbers(4, 6))
next_token_logits.probe("as many positions as features", numbers(4, 4), numbers(4, 6))
next_token_logits.probe("a batch of one sentence", numbers(1, 3, 4), numbers(4, 6))


@next_token_logits.mistake
def softmaxed(h, W_vocab):
    """These are probabilities, the softmax of the logits. Logits are the raw scores before any
    softmax; temperature, sampling and the loss work on those."""
    return weights_of(h[..., -1, :] @ W_vocab)


@next_token_logits.mistake
def averages_positions(h, W_vocab):
    """It averages all positions. Attention has already gathered what came before in the last
    position: score that one alone."""
    return h.mean(axis=-2) @ W_vocab


@next_token_logits.mistake
def returns_the_word(h, W_vocab):
    """It returns the id of the likeliest word. Return a logit for each of the V words, and leave
    the choice to whoever decodes."""
    return np.argmax(h[..., -1, :] @ W_vocab, axis=-1)


# ---------------------------------------------------------------- next_token_probs

next_token_probs = Exercise(
    decoding.next_token_probs,
    notebook="12",
    level=3,
    minutes=15,
    task="Turn logits into the probabilities to draw from, with three knobs in this order: "
    "temperature divides the logits; top-k keeps the k likeliest tokens; top-p keeps the fewest "
    "likeliest that together reach top_p, counted after top-k is back to a sum of 1. What is cut "
    "gets 0, the rest sums to 1.",
    hints=(
        "What does softmax make of -np.inf, and what of the other numbers?",
        "Sort by logit, the largest first. Behind place k all become -inf. Then softmax again, and "
        "cut each token before which the likelier ones have already reached top_p.",
        "`z[order[top_k:]] = -np.inf`, then for top_p: `before = np.cumsum(p[order]) - "
        "p[order]`, `z[order[before >= top_p]] = -np.inf`, at last `return softmax(z)`",
    ),
)
next_token_probs.answer("""
    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        z = np.array(logits) / temperature
        order = np.argsort(-z)
        if top_k is not None:
            z[order[top_k:]] = -np.inf
        if top_p is not None:
            p = softmax(z)
            before = np.cumsum(p[order]) - p[order]
            z[order[before >= top_p]] = -np.inf
        return softmax(z)
""")
next_token_probs.answer("""
    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        p = softmax(logits / temperature)
        order = np.argsort(-p)
        if top_k is not None:
            p[order[top_k:]] = 0
            p = p / p.sum()
        if top_p is not None:
            before = np.cumsum(p[order]) - p[order]
            p[order[before >= top_p]] = 0
            p = p / p.sum()
        return p
""")
next_token_probs.answer("""
    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        probs = softmax(logits / temperature)
        ids = np.argsort(probs)[::-1]
        if top_k is not None:
            ids = ids[:top_k]
        if top_p is not None:
            total = np.cumsum(probs[ids]) / probs[ids].sum()
            ids = ids[: np.searchsorted(total, top_p) + 1]
        kept = np.zeros_like(probs)
        kept[ids] = probs[ids]
        return kept / kept.sum()
""")
next_token_probs.answer("""
    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        z = logits / temperature
        e = np.exp(z - z.max())
        probs = e / e.sum()
        ranked = np.argsort(-probs)[:top_k]
        kept, total = np.zeros_like(probs), 0.0
        for i in ranked:
            if top_p is not None and total >= top_p * probs[ranked].sum():
                break
            kept[i] = probs[i]
            total += probs[i]
        return kept / kept.sum()
""")
next_token_probs.answer("""
    import torch

    def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
        z = logits / temperature
        if top_k is not None:
            z = z.masked_fill(z < torch.topk(z, top_k).values[-1], -torch.inf)
        if top_p is not None:
            ordered, ids = torch.sort(z, descending=True)
            p = torch.softmax(ordered, dim=-1)
            remove = torch.cumsum(p, dim=-1) - p >= top_p
            z[ids[remove]] = -torch.inf
        return torch.softmax(z, dim=-1)
""")

next_token_probs.why(
    "logits.copy() | np.array(logits)",
    "The caller's logits must stay as they are: to divide or cut them in place changes the "
    "argument; work on a copy.",
)
next_token_probs.why(
    "np.array(logits) / temperature | logits / temperature | temperature",
    "The temperature divides the logits, before the softmax: above 1 it evens out the "
    "probabilities, below 1 it sharpens them.",
)
next_token_probs.why(
    "softmax(z) | softmax | z - z.max() | e / e.sum()",
    "Softmax once, on the logits: applied twice it evens everything out. It subtracts the "
    "largest logit, so that exp cannot overflow.",
)
next_token_probs.why(
    "-np.inf | -torch.inf",
    "Softmax makes probability 0 only of a logit of -inf, minus infinity; a logit of 0 has "
    "exp(0) = 1.",
)
next_token_probs.why(
    "np.argsort(-z) | np.argsort(-p) | np.argsort(probs)[::-1] | descending=True",
    "Both cuts keep the likeliest tokens: argsort sorts ascending, the smallest first, so turn "
    "the order round.",
)
next_token_probs.why(
    "order[top_k:] | ids[:top_k] | top_k | z < torch.topk(z, top_k).values[-1] | z < threshold",
    "Top-k keeps exactly the k likeliest tokens, not one more, and comes before top-p, which "
    "works on what is left.",
)
next_token_probs.why(
    "np.cumsum(p[order]) - p[order] | np.searchsorted(total, top_p) + 1 | (total < top_p).sum() "
    "+ 1 | before >= top_p | top_p",
    "Top-p adds up the likeliest tokens until they reach top_p, the smallest set: not one too "
    "many, nor one too few.",
)
next_token_probs.why(
    "p / p.sum() | kept / kept.sum() | np.cumsum(probs[ids]) / probs[ids].sum()",
    "After a cut the rest no longer sums to 1: divide by its sum, before top-p counts and at the "
    "end.",
)
next_token_probs.why(
    "kept[ids] = probs[ids] | ids[remove] | order[before >= top_p]",
    "A place in the sorted order is no token id: what is found there must lead back to the ids.",
)

menu = np.log([0.15, 0.5, 0.03, 0.25, 0.07])  # logits whose softmax is these numbers
next_token_probs.probe("logits as they are", menu)
next_token_probs.probe("temperature 0.5", menu, temperature=0.5)
next_token_probs.probe("temperature 2", menu - 3, temperature=2.0)
next_token_probs.probe("top-k 2", menu, top_k=2)
next_token_probs.probe("top-p 0.8", menu, top_p=0.8)
next_token_probs.probe("a top-p the first token reaches", menu, top_p=0.3)
next_token_probs.probe("a top-p below two single tokens", menu, top_p=0.2)
next_token_probs.probe("top-k 1", menu + 2, top_k=1)
next_token_probs.probe("top-k of the whole vocabulary", menu, top_k=5)
next_token_probs.probe("top-k 3, then top-p 0.8", menu, top_k=3, top_p=0.8)
next_token_probs.probe("top-k 2, then top-p 0.85", menu, top_k=2, top_p=0.85)
next_token_probs.probe("temperature 3, then top-p 0.6", menu, temperature=3.0, top_p=0.6)
next_token_probs.probe("all three at once", 2 * numbers(30), temperature=1.5, top_k=9, top_p=0.85)
next_token_probs.probe("a top-p of 1", np.zeros(4), top_p=1.0)
next_token_probs.probe("logits that differ by 1,000", np.array([-1000.0, 1000.0, 0.0, 999.0]))
next_token_probs.probe("logits near -1,000, top-k 2", menu - 1000, 0.7, top_k=2)


def rescaled(probs: np.ndarray) -> np.ndarray:
    """Divide by the sum."""
    return probs / probs.sum()


def keep_only(probs: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Zero for all other ids."""
    kept = np.zeros_like(probs)
    kept[ids] = probs[ids]
    return kept


def cut_k(probs: np.ndarray, k: int) -> np.ndarray:
    """Zero for all but the k likeliest; not rescaled."""
    return keep_only(probs, np.argsort(-probs, kind="stable")[:k])


def cut_p(probs: np.ndarray, limit: float) -> np.ndarray:
    """Zero for what comes after `limit` is reached; not rescaled."""
    order = np.argsort(-probs, kind="stable")
    return keep_only(probs, order[np.cumsum(probs[order]) - probs[order] < limit])


def chosen(logits, temperature, top_k, top_p, by_p=cut_p, scaled=rescaled):
    """next_token_probs, with one of its steps replaced and no check of the arguments."""
    probs = weights_of(np.asarray(logits) / temperature)
    if top_k is not None:
        probs = scaled(cut_k(probs, top_k))
    if top_p is not None:
        probs = scaled(by_p(probs, top_p))
    return probs


@next_token_probs.mistake
def top_p_before_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p counts the probabilities of before top-k, or comes before it. The order is top-k first:
    bring the k likeliest back to a sum of 1, then let top-p count those."""
    probs = chosen(logits, temperature, None, top_p)
    return probs if top_k is None else rescaled(cut_k(probs, top_k))


@next_token_probs.mistake
def temperature_without_effect(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature has no effect: it is ignored, or divides the probabilities after the softmax,
    where the sum takes it out again. It must divide the logits, before the softmax."""
    return chosen(logits, 1.0, top_k, top_p)


@next_token_probs.mistake
def crossing_token_left_out_but_one(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p leaves out the token that crosses top_p, one too few, so that the kept ones do not
    reach it. That token belongs to the smallest set: cut what comes after it."""

    def below(probs, limit):
        order = np.argsort(-probs, kind="stable")
        kept = np.cumsum(probs[order]) <= limit
        kept[0] = True
        return keep_only(probs, order[kept])

    return chosen(logits, temperature, top_k, top_p, by_p=below)


@next_token_probs.mistake
def shares_of_before_the_cut(logits, temperature=1.0, top_k=None, top_p=None):
    """The right tokens are kept, but with their probabilities of before the cut, which no longer
    sum to 1. What is left must be renormalised: divided by its own sum."""
    kept = chosen(logits, temperature, top_k, top_p) > 0
    return np.where(kept, chosen(logits, temperature, None, None), 0)


@next_token_probs.mistake
def never_rescales(logits, temperature=1.0, top_k=None, top_p=None):
    """After a cut the probabilities no longer sum to 1: they are not renormalised. Divide what is
    left by its sum, after top-k and after top-p."""
    return chosen(logits, temperature, top_k, top_p, scaled=lambda probs: probs)


@next_token_probs.mistake
def only_one_of_both_k(logits, temperature=1.0, top_k=None, top_p=None):
    """When both are given, only top-k is applied and top_p is ignored, as elif or an early return
    does. The two follow each other: top-k first, then top-p."""
    return chosen(logits, temperature, top_k, top_p if top_k is None else None)


@next_token_probs.mistake
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature comes last, after the cuts, so that top-p counts the probabilities of the raw
    logits. The order is temperature first, then top-k, then top-p."""
    probs = chosen(logits, 1.0, top_k, top_p)
    with np.errstate(divide="ignore"):
        return weights_of(np.log(probs) / temperature)


@next_token_probs.mistake
def all_sorted(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities come back sorted, the largest first, so that a place is no longer a token's
    id. Write each of them back to the place it came from."""
    return -np.sort(-chosen(logits, temperature, top_k, top_p))


@next_token_probs.mistake
def top_p_as_threshold_but_the_first(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-p is a threshold for each single probability, and the likeliest is always kept. It must
    be a running sum: add up the likeliest tokens until they together reach top_p."""

    def alone(probs, limit):
        return np.where((probs >= limit) | (np.arange(len(probs)) == probs.argmax()), probs, 0)

    return chosen(logits, temperature, top_k, top_p, by_p=alone)


@next_token_probs.mistake
def overflows_in_exp(logits, temperature=1.0, top_k=None, top_p=None):
    """exp overflows for large logits, and infinity / infinity is nan. Subtract the largest logit
    first, as the stable softmax does: it changes no probability."""
    unstable = rescaled(np.exp(np.asarray(logits) / temperature))
    stable = np.isfinite(unstable).all()
    return chosen(logits, temperature, top_k, top_p) if stable else unstable


@next_token_probs.mistake
def cut_logits_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k sets the cut logits to 0. A logit of 0 is not a probability of 0, for exp(0) = 1: only
    minus infinity, -inf, gives that."""
    z = np.asarray(logits) / temperature
    if top_k is not None:
        z = np.where(cut_k(weights_of(z), top_k) > 0, z, 0.0)
    probs = weights_of(z)
    return probs if top_p is None else rescaled(cut_p(probs, top_p))


@next_token_probs.mistake
def all_cut_logits_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """Top-k and top-p set the cut logits to 0. A logit of 0 is not a probability of 0, for exp(0) =
    1: only minus infinity, -inf, gives that."""
    z = np.asarray(logits) / temperature
    if top_k is not None:
        z = np.where(cut_k(weights_of(z), top_k) > 0, z, 0.0)
    if top_p is not None:
        z = np.where(cut_p(weights_of(z), top_p) > 0, z, 0.0)
    return weights_of(z)


# ---------------------------------------------------------------- sample_token

sample_token = Exercise(
    decoding.sample_token,
    notebook="12",
    level=1,
    minutes=5,
    task="Draw one id, each as often as its probability says. The draw must come from rng, so that "
    "a seed gives the same id again.",
    hints=(
        "Which method of rng chooses among numbers with given probabilities?",
        "rng.choice(V, p=probs) draws one of 0 … V - 1; int makes it a plain number.",
        "`return int(rng.choice(len(probs), p=probs))`",
    ),
    seconds=4.0,
)
sample_token.answer("""
    def sample_token(probs, rng):
        token = rng.choice(len(probs), p=probs)
        return int(token)
""")
sample_token.answer("""
    def sample_token(probs, rng):
        sums = np.cumsum(probs)
        u = rng.random() * sums[-1]
        return int(np.searchsorted(sums, u, side="right"))
""")
sample_token.answer("""
    def sample_token(probs, rng):
        u = rng.random() * probs.sum()
        total = 0.0
        for i in range(len(probs)):
            total += probs[i]
            if u < total:
                return i
""")
sample_token.answer("""
    import torch

    def sample_token(probs, rng):
        return torch.multinomial(probs, 1, generator=rng).item()
""")

sample_token.why(
    "rng.random() | rng.choice | generator=rng | rng",
    "Draw from the rng that is passed in, not a global one or one with a fixed seed: then a text "
    "can be made again.",
)
sample_token.why(
    "range(len(probs)) | len(probs) | rng.choice(len(probs), p=probs) | int(token) | int(i) | - 1",
    "What is drawn is an id, 0 … V - 1, the last one too: not a probability, a rank, or two "
    "things.",
)
sample_token.why(
    "p=probs | probs",
    "The draw is weighted by probs as they are, not sorted, not through a softmax again: each "
    "token comes as often as it says.",
)
sample_token.why(
    'np.cumsum(probs) | u < total | np.searchsorted(sums, u, side="right") | total += probs[i]',
    "One random number meets the cumulative sums: each token owns a piece as wide as its "
    "probability.",
)

FOUR, SKEWED = np.array([0.1, 0.3, 0.6, 0.0]), np.array([0.0, 0.85, 0.1, 0.05])


class Running(np.random.Generator):
    """A generator that moves on from one call of an answer to the next, as in a notebook."""

    def __deepcopy__(self, memo: dict) -> "Running":
        return self


def draws(fn: Callable, probs: np.ndarray, n: int, seed: int) -> list:
    """Many draws in a row."""
    running = Running(np.random.PCG64(seed))
    return [fn(probs, running) for _ in range(n)]


def shares(fn: Callable, probs: np.ndarray, seed: int) -> dict[str, Any]:
    """How often each id comes."""
    ids = draws(fn, probs, 300, seed)
    share = {i: sum(is_id(x, i) for x in ids) / len(ids) for i in range(len(probs))}
    found: dict[str, Any] = {f"share of token {i}": About(share[i], 0.12) for i in share}
    all_come = all(share[i] > 0 for i in share if probs[i] > 0)
    return found | {"each token with a probability above 0 comes": all_come}


def is_id(x: Any, *possible: int) -> bool:
    """Whether a draw is one of these numbers; arrays are none."""
    return isinstance(x, int | float) and x in possible


@sample_token.experiment("the same seed twice")
def same_seed_twice(fn: Callable) -> dict:
    probs = np.full(20, 0.045)
    probs[4] = 0.145
    first, again = ([fn(probs, np.random.default_rng(i)) for i in range(12)] for _ in range(2))
    return {
        "the same seed gives the same id again": bool(np.array_equal(first, again)),
        "the likeliest token does not always come": not all(is_id(x, 4) for x in first),
        "other seeds give other ids": len({str(x) for x in first}) > 1,
    }


@sample_token.experiment("draws from 0.1, 0.3, 0.6, 0")
def many_draws(fn: Callable) -> dict:
    return shares(fn, FOUR, seed=1)


@sample_token.experiment("draws from 0, 0.85, 0.1, 0.05")
def many_skewed_draws(fn: Callable) -> dict:
    return shares(fn, SKEWED, seed=2)


@sample_token.experiment("tokens of probability 0")
def impossible_tokens(fn: Callable) -> dict:
    ids = draws(fn, np.array([0, 0.5, 0, 0.5, 0]), 60, seed=3)
    return {"only tokens with a probability above 0 come": all(is_id(x, 1, 3) for x in ids)}


@sample_token.experiment("a certain token, in single precision")
def certain_token(fn: Callable) -> dict:
    ids = draws(fn, np.array([0, 0, 0, 0, 1], dtype=np.float32), 40, seed=4)
    return {"a token of probability 1 always comes": all(is_id(x, 4) for x in ids)}


sample_token.probe("a vocabulary of one token", np.array([1.0]), np.random.default_rng(1))


@sample_token.mistake
def draws_globally(probs, rng):
    """It draws from a generator of its own or a global one (np.random, random, torch), not from the
    rng passed in: a seed has no effect, and no text can be made again."""
    return int(np.random.default_rng().choice(len(probs), p=probs / probs.sum()))


@sample_token.mistake
def softmax_again(probs, rng):
    """The probabilities go through a softmax once more, or Gumbel noise is added to them without
    the log: they become nearly equal, and those of 0 come too. They sum to 1 already."""
    return int(rng.choice(len(probs), p=weights_of(probs)))


@sample_token.mistake
def takes_the_likeliest(probs, rng):
    """It always takes the likeliest token, as greedy decoding does: nothing is drawn. Sample
    instead, so that each token comes as often as its probability says."""
    return int(np.argmax(probs))


@sample_token.mistake
def gives_the_probability(probs, rng):
    """It returns the probability of the drawn token, not its id. Draw from the ids, 0 … V - 1, and
    use the probabilities as weights."""
    return float(rng.choice(probs, p=probs))
