"""Notebook 03: from queries and keys to scores."""

import functools
from collections.abc import Callable

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def turned(x: np.ndarray) -> np.ndarray:
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def unit(x: np.ndarray) -> np.ndarray:
    """Divide each vector by its length."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def distances(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Squared distance of each query from each key, by subtraction."""
    return ((Q[..., :, None, :] - K[..., None, :, :]) ** 2).sum(-1)


PAIRS = (
    ("one query and two keys", np.array([[1.0, 2.0]]), np.array([[3.0, 1.0], [0.5, 4.0]])),
    (
        "two queries and three keys",
        np.array([[1.0, 2.0], [-1.0, 0.5]]),
        np.array([[3.0, 1.0], [0.0, 4.0], [-2.0, -1.0]]),
    ),
    ("more queries than keys", normal(5, 3), normal(2, 3)),
    ("as many words as features", normal(4, 4), normal(4, 4)),
    ("a batch of two sentences", normal(2, 3, 5), normal(2, 4, 5)),
    ("three sentences of three words with three features", normal(3, 3, 3), normal(3, 3, 3)),
    ("two batch axes", normal(2, 3, 2, 4), normal(2, 3, 5, 4)),
    ("four axes, all of length 2", normal(2, 2, 2, 2), normal(2, 2, 2, 2)),
    ("vectors of very different lengths", 100 * normal(3, 6), 0.1 * normal(4, 6)),
)


# ---------------------------------------------------------------- attention_scores

attention_scores = Exercise(
    reference.attention_scores,
    notebook="03",
    level=1,
    minutes=8,
    task="Dot every query with every key, this time without `@`: by loops, or with `np.einsum`. "
    "It must work for one sentence and for a batch, and there may be more keys than queries.",
    hints=(
        "Entry i, j is one dot product: of which row of Q with which row of K?",
        "Both rows have the features last. Multiply them feature by feature and add up; the "
        "axes before the last two belong to the batch, which an einsum calls `...`.",
        '`return np.einsum("...qd,...kd->...qk", Q, K)`',
    ),
)
for label, Q, K in PAIRS:
    attention_scores.probe(label, Q, K)


def loop(wrong: Callable) -> Callable:
    """Register a slip in a loop twice: for any number of batch axes, and for loops without any."""

    @functools.wraps(wrong)
    def without_a_batch(Q, K):
        if Q.ndim > 2:
            raise IndexError("loops over two axes only")
        return wrong(Q, K)

    without_a_batch.__name__ = f"{wrong.__name__}_and_no_batch"
    without_a_batch.__doc__ = f"{wrong.__doc__} And the loops fail for a batch: use `...`."
    attention_scores.mistake(wrong)
    attention_scores.mistake(without_a_batch)
    return wrong


@attention_scores.mistake
def transposed_every_axis(Q, K):
    """K.T reverses all axes, the batch axis too, so it is right for one sentence alone. Swap only
    the last two axes of K: np.swapaxes(K, -1, -2)."""
    return Q @ K.T


@attention_scores.mistake
def np_dot_with_all_axes_reversed(Q, K):
    """K.T reverses all axes, and np.dot pairs every sentence of a batch with every other. Swap
    only the last two axes, np.swapaxes(K, -1, -2), and use @, which goes sentence by sentence."""
    return np.dot(Q, K.T)


@attention_scores.mistake
def every_sentence_with_every_other(Q, K):
    """The queries of each sentence meet the keys of all sentences of the batch (np.dot, np.inner
    and np.tensordot do that). Score each sentence on its own: @ or einsum with `...`."""
    return np.tensordot(Q, K, axes=(-1, -1))


@attention_scores.mistake
def batch_flattened(Q, K):
    """All sentences of the batch were joined into one long list of tokens, so the batch axis is
    lost. Keep the axes before the last two, and score each sentence on its own."""
    return Q.reshape(-1, Q.shape[-1]) @ K.reshape(-1, K.shape[-1]).T


@attention_scores.mistake
def sentences_added_up(Q, K):
    """The scores of all sentences of the batch are added up: the batch axis is missing from the
    result. Keep it: "...qd,...kd->...qk"."""
    S = Q @ turned(K)
    return S.sum(axis=tuple(range(S.ndim - 2)))


@attention_scores.mistake
def keys_of_the_first_sentence(Q, K):
    """All sentences of the batch are scored with the keys of the first sentence, K[0]. Each
    sentence needs its own keys."""
    return Q @ K.reshape(-1, *K.shape[-2:])[0].T


@attention_scores.mistake
def first_sentence_only(Q, K):
    """Only the first sentence of the batch is scored, the others are lost. Keep the batch axis:
    the function must work on the last two axes of every sentence."""
    return Q.reshape(-1, *Q.shape[-2:])[0] @ K.reshape(-1, *K.shape[-2:])[0].T


@attention_scores.mistake
def exactly_one_batch_axis(Q, K):
    """It works with exactly one batch axis and not for a single sentence without a batch, or with
    two batch axes. Count the axes from the end, -1 and -2, or write `...` in the einsum."""
    return np.einsum("bqd,bkd->bqk", Q, K)


@attention_scores.mistake
def axes_counted_from_the_front(Q, K):
    """Axes 1 and 2 are tokens and features with one batch axis only. Count from the end, so that
    it works with and without a batch: swap the last two axes, -1 and -2."""
    return Q @ np.swapaxes(K, 1, 2)


@attention_scores.mistake
def without_a_batch_only(Q, K):
    """It works for one sentence, and fails with a batch axis: the axes are counted as if there
    were only two. Swap the last two axes, -1 and -2, and leave those before alone."""
    return np.einsum("qd,kd->qk", Q, K)


@attention_scores.mistake
def loops_over_the_first_axis(Q, K):
    """A loop over Q takes its first axis: with a batch these are sentences, not tokens. Loop over
    the tokens of each sentence, or write `...` in an einsum, so that the batch axis stays."""
    return np.array([[q @ k for k in K] for q in Q])


@attention_scores.mistake
def swapped_the_first_two_axes(Q, K):
    """Axes 0 and 1 of K are swapped: with a batch these are sentences and tokens. Swap the last
    two axes, tokens and features: np.swapaxes(K, -1, -2)."""
    return Q @ np.swapaxes(K, 0, 1)


@attention_scores.mistake
def swapped_first_and_last_axis(Q, K):
    """The first and the last axis of K are swapped: with a batch these are sentences and
    features. Swap the last two axes, tokens and features: np.swapaxes(K, -1, -2)."""
    return Q @ np.swapaxes(K, 0, -1)


@attention_scores.mistake
def queries_and_keys_swapped(Q, K):
    """This is K @ Q.T, the transposed table: its rows are keys. Q and K are swapped; row i must
    belong to query i and column j to key j: Q Kᵀ."""
    return K @ turned(Q)


@attention_scores.mistake
def features_with_features(Q, K):
    """This is Qᵀ K: features with features, d by d. The transpose belongs on K, not on Q, so that
    tokens meet tokens: Q Kᵀ."""
    return turned(Q) @ K


@attention_scores.mistake
def features_of_keys_with_features(Q, K):
    """This is Kᵀ Q: features with features, d by d, in the wrong order. Tokens must meet tokens,
    the queries first, and K transposed: Q Kᵀ."""
    return turned(K) @ Q


@attention_scores.mistake
def not_transposed(Q, K):
    """K is not transposed: Q @ K meets columns of K, single features, instead of its rows, the
    keys. Swap the last two axes of K (transpose it) before the product."""
    return Q @ K


@attention_scores.mistake
def reshaped_instead_of_transposed(Q, K):
    """K is reshaped to the right shape, not transposed: reshape keeps the reading order, so the
    numbers of different keys are mixed. Swap the last two axes: np.swapaxes(K, -1, -2)."""
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])


@attention_scores.mistake
def not_added_up(Q, K):
    """Queries and keys are multiplied element by element, and the products are not summed. A
    score is a dot product of two tokens: every query with every key, summed over the features."""
    return Q * K


@attention_scores.mistake
def own_key_only(Q, K):
    """Each query meets only its own key, the one at the same place: (Q * K).sum(-1) is the
    diagonal. Every query must meet every key: a table with Tq rows and Tk columns."""
    return (Q * K).sum(-1)


@attention_scores.mistake
def products_of_each_feature(Q, K):
    """The products of the features are not summed: there is one axis too many. Add them up over
    the last axis, the features: .sum(-1)."""
    return Q[..., :, None, :] * K[..., None, :, :]


@attention_scores.mistake
def summed_over_the_keys(Q, K):
    """The sum runs over the wrong axis, the keys. A score sums its products over the features,
    the last axis of both Q and K; the keys stay, as the columns."""
    return (Q[..., :, None, :] * K[..., None, :, :]).sum(-2)


@attention_scores.mistake
def summed_over_the_queries(Q, K):
    """The sum runs over the wrong axis, the queries. A score sums its products over the features,
    the last axis of both Q and K; the queries stay, as the rows."""
    return (Q[..., :, None, :] * K[..., None, :, :]).sum(-3)


@attention_scores.mistake
def features_summed_before_the_product(Q, K):
    """The features of Q and of K are summed separately and the sums multiplied. Multiply feature
    by feature first and sum after: one letter d for both, "...qd,...kd->...qk"."""
    return Q.sum(-1)[..., :, None] * K.sum(-1)[..., None, :]


@attention_scores.mistake
def mean_of_the_products(Q, K):
    """The products are averaged: it divides by the number of features d. A dot product is their
    sum, not their mean, and scaling is the next step."""
    return Q @ turned(K) / Q.shape[-1]


@attention_scores.mistake
def already_scaled(Q, K):
    """The scores are already divided by √d. Scaling is a step of its own (notebook 04): return
    the plain dot products."""
    return Q @ turned(K) / np.sqrt(Q.shape[-1])


@attention_scores.mistake
def multiplied_by_the_root(Q, K):
    """The scores are multiplied by √d. Return the plain dot products; the scale is a step of its
    own (notebook 04), and it divides."""
    return Q @ turned(K) * np.sqrt(Q.shape[-1])


@attention_scores.mistake
def cosine_similarity(Q, K):
    """The vectors are divided by their lengths: that is the cosine similarity. Attention does not
    normalise: take the plain dot product, in which length counts."""
    return unit(Q) @ turned(unit(K))


@attention_scores.mistake
def keys_normalised(Q, K):
    """The keys are divided by their lengths. Do not normalise K: a score is the plain dot
    product, and a longer key scores higher."""
    return Q @ turned(unit(K))


@attention_scores.mistake
def queries_normalised(Q, K):
    """The queries are divided by their lengths. Do not normalise Q: a score is the plain dot
    product, in which the length of the query counts."""
    return unit(Q) @ turned(K)


@attention_scores.mistake
def already_weights(Q, K):
    """These are weights: a softmax was applied, and each row sums to one. Return the scores, the
    plain dot products, before any softmax."""
    return reference.softmax(Q @ turned(K))


@attention_scores.mistake
def already_scaled_weights(Q, K):
    """These are attention weights: scaled by √d and after a softmax. Return the scores, the plain
    dot products, without scaling and softmax."""
    return reference.attention_weights(Q, K)


@attention_scores.mistake
def queries_with_queries(Q, K):
    """The keys are ignored: this is Q Qᵀ, queries with queries. The second factor must be K: Q Kᵀ,
    which has one column per key."""
    return Q @ turned(Q)


@attention_scores.mistake
def keys_with_keys(Q, K):
    """The queries are ignored: this is K Kᵀ, keys with keys. The first factor must be Q: Q Kᵀ,
    which has one row per query."""
    return K @ turned(K)


@attention_scores.mistake
def squared_distance(Q, K):
    """This is the squared distance between query and key. A score is their dot product: multiply
    the features and add up, nothing is subtracted."""
    return distances(Q, K)


@attention_scores.mistake
def negative_squared_distance(Q, K):
    """This is minus the squared distance between query and key: nearness. A score is their dot
    product: multiply the features and add up, nothing is subtracted."""
    return -distances(Q, K)


@attention_scores.mistake
def distance(Q, K):
    """This is the distance between query and key (the norm of their difference). A score is their
    dot product: multiply the features and add up."""
    return np.sqrt(distances(Q, K))


@attention_scores.mistake
def negative_distance(Q, K):
    """This is minus the distance between query and key. A score is their dot product: multiply
    the features and add up, nothing is subtracted."""
    return -np.sqrt(distances(Q, K))


@attention_scores.mistake
def added_instead_of_multiplied(Q, K):
    """The features of query and key are added to each other. A dot product multiplies them
    feature by feature, and sums the products."""
    return (Q[..., :, None, :] + K[..., None, :, :]).sum(-1)


@attention_scores.mistake
def only_positive_scores(Q, K):
    """Negative scores are cut to 0. A key that points away from the query scores below zero:
    keep the sign, without max(0, …)."""
    return np.maximum(Q @ turned(K), 0)


@attention_scores.mistake
def without_the_sign(Q, K):
    """The sign is lost: the absolute value is taken. A key that points away from the query must
    score below zero."""
    return np.abs(Q @ turned(K))


@attention_scores.mistake
def squared_scores(Q, K):
    """The dot products are squared. A score is the dot product itself, with its sign."""
    return (Q @ turned(K)) ** 2


@attention_scores.mistake
def sign_reversed(Q, K):
    """Every sign is wrong: a minus too much. A key that points the same way as the query must
    score high."""
    return -(Q @ turned(K))


@loop
def own_word_left_out(Q, K):
    """Each query skips the key at its own place: the diagonal is 0. A word may read from itself
    too: no `if i != j`."""
    S = Q @ turned(K)
    return S * ~np.eye(*S.shape[-2:], dtype=bool)


@loop
def earlier_keys_only(Q, K):
    """Each query meets only the keys up to its own place, the others stay 0: a causal mask, or an
    inner loop that ends at i. Every query must meet every key: j runs over all of K."""
    return np.tril(Q @ turned(K))


@loop
def later_keys_only(Q, K):
    """Each query meets only the keys from its own place on, the others stay 0. Every query must
    meet every key: j runs over all of K, from 0."""
    return np.triu(Q @ turned(K))


@loop
def mirrored(Q, K):
    """One half of the table is copied to the other, as if the scores of i, j and j, i were the
    same. They differ: Q[i]·K[j] is not Q[j]·K[i]. Compute both."""
    S = Q @ turned(K)
    return np.triu(S) + turned(np.triu(S, 1))


@loop
def as_many_keys_as_queries(Q, K):
    """Both loops run over the number of queries, len(Q). The inner one must run over the keys,
    len(K): Tq and Tk differ when there are more or fewer keys than queries."""
    if Q.shape[-2] > K.shape[-2]:
        raise IndexError("index out of bounds: there are fewer keys than queries")
    return (Q @ turned(K))[..., : Q.shape[-2]]


@loop
def as_many_queries_as_keys(Q, K):
    """Both loops run over the number of keys, len(K). The outer one must run over the queries,
    len(Q): Tq and Tk differ when there are more or fewer queries than keys."""
    if K.shape[-2] > Q.shape[-2]:
        raise IndexError("index out of bounds: there are fewer queries than keys")
    return (Q @ turned(K))[..., : K.shape[-2], :]


@loop
def square_corner_filled(Q, K):
    """Only as many columns are filled as there are queries, or rows as there are keys; the rest
    stays 0. One loop must run over the queries, len(Q), the other over the keys, len(K)."""
    S, n = Q @ turned(K), min(Q.shape[-2], K.shape[-2])
    corner = np.zeros_like(S)
    corner[..., :n, :n] = S[..., :n, :n]
    return corner


@loop
def last_key_missing(Q, K):
    """The last column stays 0: the loop over the keys ends one too early. It must run over all
    keys: range(Tk), without - 1."""
    S = Q @ turned(K)
    S[..., -1] = 0
    return S


@loop
def last_query_missing(Q, K):
    """The last row stays 0: the loop over the queries ends one too early. It must run over all
    queries: range(Tq), without - 1."""
    S = Q @ turned(K)
    S[..., -1, :] = 0
    return S


@loop
def last_feature_missing(Q, K):
    """The sum leaves the last feature out: the loop ends one too early. Sum the products over all
    d features: range(d), without - 1."""
    return Q[..., :-1] @ turned(K[..., :-1])


@loop
def first_feature_missing(Q, K):
    """The sum leaves the first feature out: the loop starts at 1. Python counts from 0: sum the
    products over all d features."""
    return Q[..., 1:] @ turned(K[..., 1:])


@loop
def last_product_only(Q, K):
    """The score is overwritten by each product instead of summed, so that only the last feature
    is left. Add them up: `+=`, not `=`."""
    return Q[..., -1:] @ turned(K[..., -1:])


@loop
def first_product_only(Q, K):
    """Only the first feature is multiplied: the loop returns or stops after its first step. Sum
    the products over all features."""
    return Q[..., :1] @ turned(K[..., :1])


@loop
def sum_not_started_anew(Q, K):
    """The running sum is not set back to 0 before each new pair, so every score includes all
    scores before it. Begin each dot product with total = 0, inside both loops."""
    S = Q @ turned(K)
    return S.reshape(*S.shape[:-2], -1).cumsum(-1).reshape(S.shape)


@loop
def sum_started_anew_per_query(Q, K):
    """The running sum is set back to 0 only once per query, so a score includes those of the keys
    before it in the row. Begin each dot product with total = 0, inside the loop over the keys."""
    return (Q @ turned(K)).cumsum(-1)


@attention_scores.mistake
def integer_scores(Q, K):
    """The scores are cut to whole numbers: the result has an integer type. Make it a float array:
    np.zeros without dtype=int, and no astype(int)."""
    return (Q @ turned(K)).astype(int)


@attention_scores.mistake
def rounded(Q, K):
    """The scores are rounded. Return the dot products with all their digits, without round."""
    return np.round(Q @ turned(K), 2)


@attention_scores.mistake
def best_score_only(Q, K):
    """Only the largest score of each query is returned. Return the whole table: every query with
    every key."""
    return (Q @ turned(K)).max(-1)


@attention_scores.mistake
def one_total_per_query(Q, K):
    """The scores of each query are summed over its keys. Return the whole table, one score for
    every query and key."""
    return (Q @ turned(K)).sum(-1)


@attention_scores.mistake
def one_list(Q, K):
    """The scores stand in one flat list, without rows and columns. Give them the shape (Tq, Tk):
    one row per query, one column per key."""
    S = Q @ turned(K)
    return S.reshape(*S.shape[:-2], -1)


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
    task="For each query, find the key with the largest score, and return its place: one whole "
    "number per query, counted from 0. It must work for one sentence and for a batch.",
    hints=(
        "Which axis of the scores belongs to the keys, and which function gives the place of the "
        "largest number along an axis?",
        "Compute the scores with one row per query. np.argmax along the last axis gives the place "
        "of the largest score of each row.",
        "`return attention_scores(Q, K).argmax(axis=-1)`",
    ),
)
for label, Q, K in PAIRS:
    best_key_exercise.probe(label, Q, K)
best_key_exercise.probe(
    "a query that all keys point away from",
    np.array([[-1.0, -2.0]]),
    np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 0.2]]),
)
best_key_exercise.probe(
    "two batch axes, six words, seven keys", normal(2, 2, 6, 3), normal(2, 2, 7, 3)
)


@best_key_exercise.mistake
def best_query_of_each_key(Q, K):
    """This is the best query of each key: argmax runs over the queries, or Q and K are swapped.
    Each query, a row of Q Kᵀ, chooses among the keys, the columns: axis=-1."""
    return (Q @ turned(K)).argmax(-2)


@best_key_exercise.mistake
def lowest_score(Q, K):
    """This is the key with the smallest score (argmin). The best key has the largest: argmax."""
    return (Q @ turned(K)).argmin(-1)


@best_key_exercise.mistake
def score_instead_of_its_place(Q, K):
    """This is the largest score itself (max). Return the place of the key, a whole number:
    argmax."""
    return (Q @ turned(K)).max(-1)


@best_key_exercise.mistake
def place_in_the_whole_table(Q, K):
    """This is one place in the whole table: argmax without an axis. Each query needs a key of its
    own: axis=-1."""
    return (Q @ turned(K)).argmax()


@best_key_exercise.mistake
def axis_1_is_not_the_last(Q, K):
    """axis=1 is the last axis only without a batch. The keys are always the last axis of the
    scores: axis=-1."""
    return (Q @ turned(K)).argmax(1)


@best_key_exercise.mistake
def axis_0(Q, K):
    """argmax runs along axis 0, the queries, or the sentences of a batch. The keys are the last
    axis of the scores: axis=-1."""
    return (Q @ turned(K)).argmax(0)


@best_key_exercise.mistake
def best_cosine(Q, K):
    """The keys are compared by direction alone (cosine): their lengths were divided out. Take the
    plain dot product, in which a longer key scores higher."""
    return (Q @ turned(unit(K))).argmax(-1)


@best_key_exercise.mistake
def nearest_key(Q, K):
    """This is the nearest key, by distance. Take the key with the largest dot product: a far one
    may score higher."""
    return distances(Q, K).argmin(-1)


@best_key_exercise.mistake
def longest_key(Q, K):
    """This is the longest key, the same for every query. The query decides: take the largest dot
    product of Q and K."""
    return np.linalg.norm(K, axis=-1, keepdims=True).argmax(-2) + np.zeros(Q.shape[:-1], dtype=int)


@best_key_exercise.mistake
def largest_without_sign(Q, K):
    """The sign of the scores is lost (abs): a key that points far away from the query counts as
    the best. Compare the scores with their signs."""
    return np.abs(Q @ turned(K)).argmax(-1)


@best_key_exercise.mistake
def counted_from_one(Q, K):
    """Places are counted from 1. Python counts from 0: the first key is 0."""
    return (Q @ turned(K)).argmax(-1) + 1


@best_key_exercise.mistake
def never_the_own_key(Q, K):
    """The key at the query's own place is left out. A word may choose itself too."""
    S = Q @ turned(K)
    return np.where(np.eye(*S.shape[-2:], dtype=bool), -np.inf, S).argmax(-1)


@best_key_exercise.mistake
def all_places_in_order(Q, K):
    """These are the places of all keys in the order of their scores (argsort). Return only that
    of the largest score: one number per query."""
    return (Q @ turned(K)).argsort(-1)


@best_key_exercise.mistake
def key_instead_of_its_place(Q, K):
    """This is the key itself, a vector. Return its place, a whole number for each query."""
    best = (Q @ turned(K)).argmax(-1)
    return np.take_along_axis(K, best[..., None], axis=-2)


@best_key_exercise.mistake
def marked_with_one(Q, K):
    """The best key is marked in a table (one-hot). Return its place, one whole number per
    query."""
    S = Q @ turned(K)
    return (S == S.max(-1, keepdims=True)).astype(int)


@best_key_exercise.mistake
def place_as_float(Q, K):
    """The places are floats. A place is a whole number, that one can index with: keep the integer
    type which argmax gives."""
    return (Q @ turned(K)).argmax(-1).astype(float)


@best_key_exercise.mistake
def every_axis_of_K_reversed(Q, K):
    """K.T reverses all axes, the batch axis too, so it is right for one sentence alone. Swap only
    the last two axes of K: np.swapaxes(K, -1, -2)."""
    return (Q @ K.T).argmax(-1)


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
    task="Compute the squared distance of every query from every key out of dot products alone, "
    "|q − k|² = q·q − 2 q·k + k·k, without subtracting any vectors. "
    "The q·q belong to the rows of the table, the k·k to its columns.",
    hints=(
        "Which two of the three terms have one number per vector, and which has one per pair?",
        "Square and sum over the features for q·q and k·k. Make the first a column with "
        "[..., :, None] and the second a row with [..., None, :], so that both broadcast.",
        "`return (Q * Q).sum(-1)[..., :, None] - 2 * attention_scores(Q, K) + (K * "
        "K).sum(-1)[..., None, :]`",
    ),
)
for label, Q, K in PAIRS:
    squared_distances_exercise.probe(label, Q, K)


def three_terms(Q, K, a=1.0, b=-2.0, c=1.0):
    """a q·q + b q·k + c k·k."""
    queries, keys = (Q * Q).sum(-1)[..., :, None], (K * K).sum(-1)[..., None, :]
    return a * queries + b * Q @ turned(K) + c * keys


@squared_distances_exercise.mistake
def one_dot_product_instead_of_two(Q, K):
    """The factor 2 is missing before q·k: |q − k|² = q·q − 2 q·k + k·k."""
    return three_terms(Q, K, b=-1)


@squared_distances_exercise.mistake
def plus_twice_the_dot_product(Q, K):
    """The sign before 2 q·k is wrong: with + it is |q + k|². The distance has a minus:
    q·q − 2 q·k + k·k."""
    return three_terms(Q, K, b=2)


@squared_distances_exercise.mistake
def dot_products_missing(Q, K):
    """The term − 2 q·k is missing: q·q + k·k is the squared distance of vectors at right angles
    only."""
    return three_terms(Q, K, b=0)


@squared_distances_exercise.mistake
def queries_missing(Q, K):
    """The term q·q is missing: the squared length of each query must be added to its row."""
    return three_terms(Q, K, a=0)


@squared_distances_exercise.mistake
def keys_missing(Q, K):
    """The term k·k is missing: the squared length of each key must be added to its column."""
    return three_terms(Q, K, c=0)


@squared_distances_exercise.mistake
def keys_subtracted(Q, K):
    """The sign of k·k is wrong: it must be added, + k·k, as both squared lengths are."""
    return three_terms(Q, K, c=-1)


@squared_distances_exercise.mistake
def every_sign_reversed(Q, K):
    """Every sign is wrong: this is minus the squared distance. A squared distance is never below
    zero."""
    return -three_terms(Q, K)


@squared_distances_exercise.mistake
def formula_for_unit_vectors(Q, K):
    """2 − 2 q·k holds for vectors of length 1 only. Use the squared lengths q·q and k·k instead
    of 1."""
    return 2 - 2 * Q @ turned(K)


@squared_distances_exercise.mistake
def lengths_not_squared(Q, K):
    """The lengths are not squared: np.linalg.norm takes the root of q·q. Use q·q and k·k, the
    squared lengths."""
    rows = np.linalg.norm(Q, axis=-1)[..., :, None]
    return rows - 2 * Q @ turned(K) + np.linalg.norm(K, axis=-1)[..., None, :]


@squared_distances_exercise.mistake
def features_not_squared(Q, K):
    """The features are summed without being squared. q·q is the sum of the squared features."""
    return Q.sum(-1)[..., :, None] - 2 * Q @ turned(K) + K.sum(-1)[..., None, :]


@squared_distances_exercise.mistake
def root_taken(Q, K):
    """This is the distance: the root was taken. Return the squared distance, without the root."""
    return np.sqrt(np.maximum(three_terms(Q, K), 0))


@squared_distances_exercise.mistake
def rows_and_columns_exchanged(Q, K):
    """q·q and k·k are exchanged: the squared lengths of the queries belong to the rows
    ([..., :, None]), those of the keys to the columns ([..., None, :])."""
    queries, keys = (Q * Q).sum(-1)[..., None, :], (K * K).sum(-1)[..., :, None]
    return queries - 2 * Q @ turned(K) + keys


@squared_distances_exercise.mistake
def queries_along_the_columns(Q, K):
    """The q·q are added along the columns: an axis is missing. Make them a column, one number per
    row: [..., :, None] or keepdims=True."""
    return (Q * Q).sum(-1)[..., None, :] - 2 * Q @ turned(K) + (K * K).sum(-1)[..., None, :]


@squared_distances_exercise.mistake
def no_axis_added(Q, K):
    """The q·q and k·k have one axis less than the scores, so with a batch they line up with the
    wrong axes. Add an axis: [..., :, None] for the queries, [..., None, :] for the keys."""
    return (Q * Q).sum(-1) - 2 * Q @ turned(K) + (K * K).sum(-1)


@squared_distances_exercise.mistake
def no_axis_added_to_the_keys(Q, K):
    """The k·k have one axis less than the scores, so with a batch they line up with the wrong axes.
    Add an axis for the queries: [..., None, :]."""
    return (Q * Q).sum(-1)[..., :, None] - 2 * Q @ turned(K) + (K * K).sum(-1)


@squared_distances_exercise.mistake
def keys_along_the_rows(Q, K):
    """The k·k are added along the rows: they belong to the columns of the table. Make them a row:
    [..., None, :]."""
    return (Q * Q).sum(-1)[..., :, None] - 2 * Q @ turned(K) + (K * K).sum(-1)[..., :, None]


@squared_distances_exercise.mistake
def one_length_for_all(Q, K):
    """All squares are summed into one number: the axis is missing. Each vector has its own
    squared length: sum over the features, axis=-1."""
    return (Q * Q).sum() - 2 * Q @ turned(K) + (K * K).sum()


@squared_distances_exercise.mistake
def squares_summed_over_the_tokens(Q, K):
    """The squares are summed over the tokens, axis -2. Each vector has its own squared length:
    sum over the features, axis=-1."""
    queries, keys = (Q * Q).sum(-2)[..., :, None], (K * K).sum(-2)[..., None, :]
    return queries - 2 * Q @ turned(K) + keys


@squared_distances_exercise.mistake
def sum_of_absolute_differences(Q, K):
    """The differences are not squared: this is the sum of their absolute values. Square them
    first, or use the three dot products."""
    return np.abs(Q[..., :, None, :] - K[..., None, :, :]).sum(-1)


@squared_distances_exercise.mistake
def mean_of_the_squares(Q, K):
    """The squared differences are averaged over the features. The squared distance is their sum,
    not their mean."""
    return three_terms(Q, K) / Q.shape[-1]


@squared_distances_exercise.mistake
def dot_products_only(Q, K):
    """These are the scores, the dot products alone. The squared distance is q·q − 2 q·k + k·k."""
    return Q @ turned(K)


@squared_distances_exercise.mistake
def one_row_per_key(Q, K):
    """The table is transposed: its rows are keys, Q and K are swapped. Row i must belong to query
    i, column j to key j."""
    return three_terms(K, Q)


@squared_distances_exercise.mistake
def axes_of_K_all_reversed(Q, K):
    """K.T reverses all axes, the batch axis too, so it is right for one sentence alone. Swap only
    the last two axes of K: np.swapaxes(K, -1, -2)."""
    return (Q * Q).sum(-1)[..., :, None] - 2 * Q @ K.T + (K * K).sum(-1)[..., None, :]
