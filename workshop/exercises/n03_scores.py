"""Notebook 03: from queries and keys to scores."""

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers


def turned(x: np.ndarray) -> np.ndarray:
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def unit(x: np.ndarray) -> np.ndarray:
    """Divide each vector by its length."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def distances(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Squared distance of each query from each key, by subtraction."""
    return ((Q[..., :, None, :] - K[..., None, :, :]) ** 2).sum(-1)


def probe_pairs(exercise: Exercise) -> None:
    """Try an exercise on queries and keys of several shapes."""
    key_rows = np.array([[3.0, 1.0], [0.0, 4.0], [-2.0, -1.0]])
    exercise.probe("one query and two keys", np.array([[1.0, 2.0]]), np.array([[3, 1], [0.5, 4]]))
    exercise.probe("two queries and three keys", np.array([[1.0, 2.0], [-1.0, 0.5]]), key_rows)
    exercise.probe("more queries than keys", numbers(5, 3), numbers(2, 3))
    exercise.probe("as many words as features", numbers(4, 4), numbers(4, 4))
    exercise.probe("as many queries as keys", numbers(3, 5), numbers(3, 5))
    exercise.probe("a batch of two sentences", numbers(2, 3, 5), numbers(2, 4, 5))
    exercise.probe("three sentences, words and features", numbers(3, 3, 3), numbers(3, 3, 3))
    exercise.probe("two batch axes", numbers(2, 3, 2, 4), numbers(2, 3, 5, 4))
    exercise.probe("four axes, all of length 2", numbers(2, 2, 2, 2), numbers(2, 2, 2, 2))
    exercise.probe("vectors of very different lengths", 100 * numbers(3, 6), 0.1 * numbers(4, 6))


# ---------------------------------------------------------------- attention_scores

attention_scores = Exercise(
    reference.attention_scores,
    notebook="03",
    level=1,
    minutes=8,
    task="Dot every query with every key. It must work for one sentence, and for a batch: "
    "sentences stacked along one or more axes in front, each scored on its own. There may be more "
    "keys than queries.",
    hints=(
        "Entry i, j is one dot product: of which row of Q with which row of K?",
        "Q and K both have the features last, and `@` wants them first on its right: swap two axes "
        "of K, the last two, so that a batch stays where it is.",
        "`return Q @ np.swapaxes(K, -1, -2)`",
    ),
)
probe_pairs(attention_scores)

attention_scores.answer("""
    def attention_scores(Q, K):
        return Q @ np.swapaxes(K, -1, -2)
""")
attention_scores.answer("""
    def attention_scores(Q, K):
        return np.einsum("...qd,...kd->...qk", Q, K)
""")
attention_scores.answer("""
    def attention_scores(Q, K):
        scores = np.zeros((*Q.shape[:-1], K.shape[-2]))
        for i in range(Q.shape[-2]):
            for j in range(K.shape[-2]):
                products = Q[..., i, :] * K[..., j, :]
                scores[..., i, j] = products.sum(axis=-1)
        return scores
""")
attention_scores.answer("""
    def attention_scores(Q, K):
        if Q.ndim > 2:
            return np.stack([attention_scores(q, k) for q, k in zip(Q, K)])
        return np.array([[np.dot(q, k) for k in K] for q in Q])
""")
attention_scores.answer("""
    import torch

    def attention_scores(Q, K):
        return torch.matmul(Q, K.transpose(-2, -1))
""")
attention_scores.why(
    "softmax | np.sqrt | np.linalg.norm | scores / d | -scores | abs(scores)",
    "A score is the plain dot product: lengths and signs count, scale and softmax are later steps.",
)
attention_scores.why(
    "np.swapaxes(K, -1, -2) | K.transpose(-2, -1) | K.mT | K.T | swapaxes",
    "Tokens meet tokens, feature by feature: K is transposed, its last two axes and no others.",
)
attention_scores.why(
    '"...qd,...kd->...qk"',
    "The letter both share, the features, is summed; q, k remain, and ... keeps sentences apart.",
)
attention_scores.why(
    "range(K.shape[-2]) | K.shape[-2] | [np.dot(q, k) for k in K] | (*Q.shape[:-1], K.shape[-2])"
    " | K[..., j, :] | j <= i",
    "Every query meets every key, earlier or later: there are as many columns as keys.",
)
attention_scores.why(
    "Q.shape[-2] | range(Q.shape[-2]) | Q[..., i, :] | scores[..., i, j] | Q.shape[:-1] | K @ Q",
    "There is a row for each query: row i, column j tells what query i finds in key j.",
)
attention_scores.why(
    "products.sum(axis=-1) | sum | mean | sum(-1) | Q[..., i, :] * K[..., j, :] | np.dot(q, k)",
    "A score is a dot product: features multiplied one by one, and summed over all of them.",
)
attention_scores.why(
    "[attention_scores(q, k) for q, k in zip(Q, K)] | zip(Q, K) | Q.ndim > 2",
    "The queries of a sentence meet the keys of the same sentence only.",
)


@attention_scores.mistake
def transposed_every_axis(Q, K):
    """K.T reverses all axes, those of the batch too, so it is right for a single sentence alone.
    Tokens and features change places, the last two axes, and no others."""
    return Q @ K.T


@attention_scores.mistake
def cosine_similarity(Q, K):
    """The vectors are divided by their lengths: this is the cosine similarity. Attention takes the
    plain dot product, in which a longer query or key scores higher."""
    return unit(Q) @ turned(unit(K))


@attention_scores.mistake
def every_sentence_with_every_other(Q, K):
    """The queries of each sentence meet the keys of all sentences of the batch, as np.dot and
    np.tensordot pair them. Each sentence is scored on its own: the batch axes stay side by side."""
    return np.tensordot(Q, K, axes=(-1, -1))


@attention_scores.mistake
def queries_and_keys_swapped(Q, K):
    """The table is transposed: its rows are keys, as in K Qᵀ. Row i belongs to query i and column j
    to key j, so that each query has its scores in a row."""
    return K @ turned(Q)


@attention_scores.mistake
def already_scaled(Q, K):
    """The scores are already divided by √d. Scaling is a step of its own, in notebook 04; a score
    is the plain dot product."""
    return Q @ turned(K) / np.sqrt(Q.shape[-1])


@attention_scores.mistake
def reshaped_instead_of_transposed(Q, K):
    """K is reshaped, not transposed: reshape keeps the reading order, so the numbers of different
    keys are mixed. Rows must become columns: the last two axes change places."""
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])


@attention_scores.mistake
def exactly_one_batch_axis(Q, K):
    """It works with exactly one batch axis, not for a single sentence, nor with two axes in front.
    Count axes from the end, or let `...` stand for whatever is in front in an einsum."""
    return np.einsum("bqd,bkd->bqk", Q, K)


@attention_scores.mistake
def own_key_only(Q, K):
    """Each query meets only its own key, the one at the same place: this is the diagonal of the
    table. Every query must meet every key, in Tq rows and Tk columns."""
    return (Q * K).sum(-1)


@attention_scores.mistake
def negative_distance(Q, K):
    """This is minus the distance between query and key. A score is their dot product: features are
    multiplied and summed, nothing is subtracted, so a far key may score high."""
    return -np.sqrt(distances(Q, K))


@attention_scores.mistake
def earlier_keys_only(Q, K):
    """Each query meets only the keys up to its own place, the others stay 0, as under a causal
    mask. Masks come in notebook 06: here every query meets every key."""
    return np.tril(Q @ turned(K))


@attention_scores.mistake
def as_many_keys_as_queries(Q, K):
    """Rows and columns are both counted by the number of queries. There may be more or fewer keys
    than queries: the rows go over all queries (Tq), the columns over all keys (Tk)."""
    if Q.shape[-2] > K.shape[-2]:
        raise IndexError("index out of bounds: there are fewer keys than queries")
    return (Q @ turned(K))[..., : Q.shape[-2]]


# ---------------------------------------------------------------- best_key


def best_key(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Find the key with the largest score for each query: (…, Tq, d), (…, Tk, d) → (…, Tq) int.

    It takes one key and nothing of the others, a lookup; attention takes a share of each.
    """
    return np.argmax(Q @ np.swapaxes(K, -1, -2), axis=-1)


best_key_exercise = Exercise(
    best_key,
    notebook="03",
    level=1,
    minutes=5,
    task="If a word could listen to only one other, to whom would it listen? For each query, find "
    "the key with the largest score, and return its place: one whole number per query, counted "
    "from 0. It must work for one sentence and for a batch.",
    hints=(
        "Which axis of the scores belongs to the keys, and which function gives the place of the "
        "largest number along an axis?",
        "Compute the scores with one row per query. np.argmax along the last axis gives the place "
        "of the largest score of each row.",
        "`return attention_scores(Q, K).argmax(axis=-1)`",
    ),
)
probe_pairs(best_key_exercise)
best_key_exercise.probe(
    "all keys point away",
    np.array([[-1.0, -2.0]]),
    np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 0.2]]),
)
best_key_exercise.probe("two batch axes, more words", numbers(2, 2, 6, 3), numbers(2, 2, 7, 3))

best_key_exercise.answer("""
    def best_key(Q, K):
        scores = attention_scores(Q, K)
        return scores.argmax(axis=-1)
""")
best_key_exercise.answer("""
    def best_key(Q, K):
        scores = Q @ np.swapaxes(K, -1, -2)
        return np.argmax(scores, axis=-1)
""")
best_key_exercise.answer("""
    def best_key(Q, K):
        scores = np.einsum("...qd,...kd->...qk", Q, K)
        best = np.zeros(scores.shape[:-1], dtype=int)
        for where in np.ndindex(best.shape):
            best[where] = np.argmax(scores[where])
        return best
""")
best_key_exercise.answer("""
    def best_key(Q, K):
        order = np.argsort(Q @ np.swapaxes(K, -1, -2), axis=-1)
        return order[..., -1]
""")
best_key_exercise.answer("""
    import torch

    def best_key(Q, K):
        return torch.argmax(Q @ K.transpose(-2, -1), dim=-1)
""")
best_key_exercise.why(
    "attention_scores(Q, K) | Q @ np.swapaxes(K, -1, -2) | Q @ K.transpose(-2, -1) | np.abs | norm",
    "The plain dot product decides, lengths and signs included: rows are queries, columns keys.",
)
best_key_exercise.why(
    "axis=-1 | dim=-1 | axis=1",
    "The keys are the last axis of the scores, with or without a batch: each row chooses one.",
)
best_key_exercise.why(
    "argmax | scores.argmax(axis=-1) | np.argmax | torch.argmax | order[..., -1] | argmin | + 1",
    "The best key has the largest score, and what is asked for is its place, counted from 0.",
)
best_key_exercise.why(
    "np.swapaxes(K, -1, -2) | K.transpose(-2, -1) | K.mT | K.T",
    "Tokens and features of K change places; a batch axis stays in front.",
)
best_key_exercise.why(
    "dtype=int | keepdims=True", "One whole number for each query, with which its key is looked up."
)


@best_key_exercise.mistake
def best_query_of_each_key(Q, K):
    """This is the best query of each key. Roles are reversed: each query, a row of the scores,
    chooses among the keys, the columns."""
    return (Q @ turned(K)).argmax(-2)


@best_key_exercise.mistake
def best_cosine(Q, K):
    """The keys are compared by direction alone (cosine): their lengths were divided out. The plain
    dot product decides, in which a longer key scores higher."""
    return (Q @ turned(unit(K))).argmax(-1)


@best_key_exercise.mistake
def nearest_key(Q, K):
    """This is the nearest key, by distance. The best key has the largest dot product: a long key
    far away may score higher than one close by."""
    return distances(Q, K).argmin(-1)


# ---------------------------------------------------------------- squared_distances


def squared_distances(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Squared distance of each query from each key: (…, Tq, d), (…, Tk, d) → (…, Tq, Tk).

    From dot products alone, |q − k|² = q·q − 2 q·k + k·k (the law of cosines), so that no array
    with three axes of tokens and features is needed.
    """
    queries = (Q * Q).sum(axis=-1)[..., :, None]  # a column: one number per query
    keys = (K * K).sum(axis=-1)[..., None, :]  # a row: one number per key
    return queries - 2 * Q @ np.swapaxes(K, -1, -2) + keys


squared_distances_exercise = Exercise(
    squared_distances,
    notebook="03",
    level=2,
    minutes=10,
    task="How far from each query does each key end? With dot products you get all squared "
    "distances at once: |q − k|² = q·q − 2 q·k + k·k. The q·q belong to the rows of the table, the "
    "k·k to its columns.",
    hints=(
        "Which two of the three terms have one number per vector, and which has one per pair?",
        "Square and sum over the features for q·q and k·k. Make the first a column with "
        "[..., :, None] and the second a row with [..., None, :], so that both broadcast.",
        "`return (Q * Q).sum(-1)[..., :, None] - 2 * attention_scores(Q, K) + (K * "
        "K).sum(-1)[..., None, :]`",
    ),
)
probe_pairs(squared_distances_exercise)

squared_distances_exercise.answer("""
    def squared_distances(Q, K):
        queries = (Q * Q).sum(axis=-1)[..., :, None]
        keys = (K * K).sum(axis=-1)[..., None, :]
        return queries - 2 * attention_scores(Q, K) + keys
""")
squared_distances_exercise.answer("""
    def squared_distances(Q, K):
        queries = np.sum(Q**2, axis=-1, keepdims=True)
        keys = np.swapaxes(np.sum(K**2, axis=-1, keepdims=True), -1, -2)
        return queries + keys - 2 * Q @ np.swapaxes(K, -1, -2)
""")
squared_distances_exercise.answer("""
    def squared_distances(Q, K):
        out = np.zeros((*Q.shape[:-1], K.shape[-2]))
        for i in range(Q.shape[-2]):
            for j in range(K.shape[-2]):
                q, k = Q[..., i, :], K[..., j, :]
                out[..., i, j] = (q * q).sum(-1) - 2 * (q * k).sum(-1) + (k * k).sum(-1)
        return out
""")
squared_distances_exercise.answer("""
    def squared_distances(Q, K):
        return (
            (Q * Q).sum(-1)[..., :, None]
            - 2 * attention_scores(Q, K)
            + (K * K).sum(-1)[..., None, :]
        )
""")
squared_distances_exercise.answer("""
    import torch

    def squared_distances(Q, K):
        queries = (Q**2).sum(dim=-1).unsqueeze(-1)
        keys = (K**2).sum(dim=-1).unsqueeze(-2)
        return queries - 2 * torch.matmul(Q, K.transpose(-2, -1)) + keys
""")
squared_distances_exercise.why(
    "2 * attention_scores(Q, K) | - 2 * attention_scores(Q, K) | 2 * Q @ np.swapaxes(K, -1, -2)"
    " | 2 * (q * k).sum(-1) | 2 * torch.matmul(Q, K.transpose(-2, -1))",
    "The square holds q·k twice, with a minus: the more alike two vectors, the nearer they are.",
)
squared_distances_exercise.why(
    "queries | (Q * Q).sum(-1)[..., :, None] | (q * q).sum(-1) | (Q**2).sum(dim=-1).unsqueeze(-1)"
    " | np.sum(Q**2, axis=-1, keepdims=True)",
    "Queries are the rows of the table: q·q stands as a column, one number beside each row.",
)
squared_distances_exercise.why(
    "keys | (K * K).sum(-1)[..., None, :] | (k * k).sum(-1) | (K**2).sum(dim=-1).unsqueeze(-2)"
    " | np.swapaxes(np.sum(K**2, axis=-1, keepdims=True), -1, -2)",
    "Keys are the columns of the table: k·k lies as a row, one number above each column.",
)
squared_distances_exercise.why(
    "np.sqrt | np.linalg.norm(Q) | Q.sum() | K.sum()",
    "A vector's dot product with itself is its squared length: each feature times itself, no root.",
)
squared_distances_exercise.why(
    "axis=-1 | dim=-1",
    "Each vector has its own squared length: the sum runs over its features, the last axis.",
)
squared_distances_exercise.why(
    "np.swapaxes(K, -1, -2) | K.transpose(-2, -1) | K.mT | K.T",
    "Tokens and features of K change places, so that each query meets each key; a batch stays.",
)


@squared_distances_exercise.mistake
def no_axis_added(Q, K):
    """The squared lengths have one axis less than the table, so they line up with the wrong axis.
    Those of the queries must stand as a column, those of the keys lie as a row."""
    return (Q * Q).sum(-1) - 2 * Q @ turned(K) + (K * K).sum(-1)


@squared_distances_exercise.mistake
def single_sentences_only(Q, K):
    """It works for a single sentence and fails for a batch: the new axes are counted from the
    front. Count from the end: the last axis of q·q is new, and the last but one of k·k."""
    queries, keys = (Q * Q).sum(-1)[:, None], (K * K).sum(-1)[None, :]
    return queries - 2 * Q @ turned(K) + keys


@squared_distances_exercise.mistake
def features_not_squared(Q, K):
    """The features are summed as they are. A vector's dot product with itself multiplies each
    feature by itself, so its sum is the squared length, never below zero."""
    return Q.sum(-1)[..., :, None] - 2 * Q @ turned(K) + K.sum(-1)[..., None, :]


@squared_distances_exercise.mistake
def one_length_for_all(Q, K):
    """All squares are summed into one number. Each vector has a squared length of its own: sum
    over its features only, the last axis."""
    return (Q * Q).sum() - 2 * Q @ turned(K) + (K * K).sum()


@squared_distances_exercise.mistake
def formula_for_unit_vectors(Q, K):
    """This holds for vectors of length 1 only, where q·q and k·k are both 1. Put the squared
    lengths in their places."""
    return 2 - 2 * Q @ turned(K)


@squared_distances_exercise.mistake
def lengths_not_squared(Q, K):
    """The lengths are not squared: a norm is the root of q·q. The formula needs q·q and k·k
    themselves, the squared lengths."""
    rows = np.linalg.norm(Q, axis=-1)[..., :, None]
    return rows - 2 * Q @ turned(K) + np.linalg.norm(K, axis=-1)[..., None, :]
