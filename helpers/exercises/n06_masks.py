"""Notebook 06: which keys may be read, and weights that keep to it.

Three exercises turn scores and a mask into weights, so most of their mistakes are the same: those
stand once, under "mistakes with any mask", as functions (S, mask, to_weights).
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from helpers import attention as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(6)


def normal(*shape: int) -> np.ndarray:
    """Float64 numbers to try a function on."""
    return 2 * rng.normal(size=shape)


def rows(*texts: str) -> np.ndarray:
    """A mask drawn in text, 1 where attention is allowed: rows("100", "110")."""
    return np.array([[letter == "1" for letter in text] for text in texts])


# ---------------------------------------------------------------- causal_mask

causal_mask = Exercise(
    reference.causal_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="Let query i read the keys 0 … i and nothing later. True means: may attend.",
    hints=(
        "Which half of the matrix lies in the past, if rows are queries and columns are keys?",
        "Keep the lower triangle with the diagonal, as True and False instead of 1 and 0.",
        "`return np.tril(np.ones((T, T), dtype=bool))`",
    ),
)
causal_mask.probe("three words", 3)
causal_mask.probe("one word", 1)
causal_mask.probe("two words", 2)
causal_mask.probe("six words", 6)


@causal_mask.mistake
def upper_triangle(T):
    """You kept the upper triangle (np.triu): each query sees itself and the future. Rows are
    queries, so the past is the lower triangle: np.tril, key j ≤ query i."""
    return np.triu(np.ones((T, T), dtype=bool))


@causal_mask.mistake
def diagonal_missing(T):
    """The diagonal is missing: no query may read itself, and the first row is empty. Include the
    diagonal (k=0, j ≤ i instead of j < i)."""
    return np.tril(np.ones((T, T), dtype=bool), k=-1)


@causal_mask.mistake
def inverted(T):
    """The mask is inverted: your True marks the future that must be hidden. Here True means "may
    attend", the opposite; turn it round with ~."""
    return np.triu(np.ones((T, T), dtype=bool), k=1)


@causal_mask.mistake
def one_key_too_many(T):
    """Each query also sees the next key, one step into the future: off by one. The last allowed
    key is the query itself, k=0 in np.tril, j ≤ i."""
    return np.tril(np.ones((T, T), dtype=bool), k=1)


@causal_mask.mistake
def two_keys_too_few(T):
    """Each query loses itself and the key before it: the diagonal is shifted too far. Key j is
    allowed for j ≤ i, k=0 in np.tril."""
    return np.tril(np.ones((T, T), dtype=bool), k=-2)


@causal_mask.mistake
def nothing_hidden(T):
    """Everything is True: nothing is hidden, so each query sees the future. Keep the lower triangle
    (np.tril)."""
    return np.ones((T, T), dtype=bool)


@causal_mask.mistake
def everything_hidden(T):
    """Everything is False: no query may read anything. Write True where key j ≤ query i."""
    return np.zeros((T, T), dtype=bool)


@causal_mask.mistake
def only_itself(T):
    """Only the diagonal is True: each query sees itself, and not the keys before it. Keep the
    whole lower triangle, all j ≤ i."""
    return np.eye(T, dtype=bool)


@causal_mask.mistake
def all_but_itself(T):
    """Each query sees everything but itself, the future too. Allow the keys j ≤ i: the lower
    triangle with its diagonal."""
    return ~np.eye(T, dtype=bool)


@causal_mask.mistake
def only_one_before(T):
    """Each query sees only itself and the key before it. It may read the whole past, all keys
    0 … i."""
    return np.tril(np.ones((T, T), dtype=bool)) & np.triu(np.ones((T, T), dtype=bool), k=-1)


@causal_mask.mistake
def only_the_key_before(T):
    """Each query sees only the key before it, the diagonal k=-1 of np.eye. It may read itself and
    the whole past, all keys 0 … i: the lower triangle, np.tril."""
    return np.eye(T, k=-1, dtype=bool)


@causal_mask.mistake
def only_the_last_query(T):
    """It is one row, (T,): the mask of the last query alone. Every query needs a row of its own,
    (T, T): compare np.arange(T) with np.arange(T)[:, None]."""
    return np.ones(T, dtype=bool)


@causal_mask.mistake
def flipped(T):
    """The triangle leans the other way: the order of the rows (or columns) is reversed. The first
    query sees one key, the last query all of them."""
    return np.tril(np.ones((T, T), dtype=bool))[::-1]


@causal_mask.mistake
def flipped_columns(T):
    """The columns are reversed: the first query sees the last key instead of the first. Column j
    is key j, allowed for j ≤ i."""
    return np.tril(np.ones((T, T), dtype=bool))[:, ::-1]


@causal_mask.mistake
def last_row_missing(T):
    """The last row is empty: the loop over queries ends one too early. range(T) counts 0 … T − 1;
    range(T - 1) leaves out the last query."""
    mask = np.tril(np.ones((T, T), dtype=bool))
    mask[-1] = False
    return mask


@causal_mask.mistake
def first_row_missing(T):
    """The first row is empty: the loop starts at 1 instead of 0, or the first query is left out.
    It sees itself, key 0."""
    mask = np.tril(np.ones((T, T), dtype=bool))
    mask[0] = False
    return mask


@causal_mask.mistake
def last_key_missing(T):
    """The last column is empty: nobody may read the last key, not even the last query. Columns are
    the keys 0 … T − 1; query i reads itself too."""
    mask = np.tril(np.ones((T, T), dtype=bool))
    mask[:, -1] = False
    return mask


@causal_mask.mistake
def numbers(T):
    """These are the numbers 0 and 1, not True and False. The mask must be boolean: dtype=bool."""
    return np.tril(np.ones((T, T)))


@causal_mask.mistake
def whole_numbers(T):
    """These are the whole numbers 0 and 1 (int), not True and False. The mask must be boolean:
    dtype=bool."""
    return np.tril(np.ones((T, T), dtype=int))


@causal_mask.mistake
def to_be_added(T):
    """This is the mask that older code adds to the scores: 0 and −∞. Here it must be boolean,
    True where attention is allowed and False in the future."""
    return np.where(np.tril(np.ones((T, T), dtype=bool)), 0.0, -np.inf)


def _numbers_above(name: str, k: int, dtype: type) -> Callable:
    """The upper triangle as numbers."""

    def wrong(T):
        return np.triu(np.ones((T, T), dtype=dtype), k)

    wrong.__name__ = name
    wrong.__doc__ = """These are numbers, with 1 in the future. The mask must be boolean
    (dtype=bool), and the other way round (inverted): True where attention is allowed, the lower
    triangle."""
    return wrong


causal_mask.mistake(_numbers_above("ones_above", 1, float))
causal_mask.mistake(_numbers_above("whole_ones_above", 1, int))
causal_mask.mistake(_numbers_above("ones_from_the_diagonal", 0, float))
causal_mask.mistake(_numbers_above("whole_ones_from_the_diagonal", 0, int))


@causal_mask.mistake
def too_many_axes(T):
    """The mask has an extra axis in front, (1, T, T). One matrix (T, T) is needed: it broadcasts
    over a batch by itself."""
    return np.tril(np.ones((1, T, T), dtype=bool))


@causal_mask.mistake
def one_too_large(T):
    """The mask has one row and one column too many: T + 1. Queries and keys are 0 … T − 1, so its
    shape is (T, T)."""
    return np.tril(np.ones((T + 1, T + 1), dtype=bool))


# ---------------------------------------------------------------- masked_softmax

masked_softmax = Exercise(
    reference.masked_softmax,
    notebook="06",
    level=2,
    minutes=10,
    task="Turn scores into weights over the allowed keys. Hidden keys get exactly 0, and each row "
    "still sums to 1.",
    hints=(
        "Which score has the exponential 0?",
        "Write −∞ over the hidden scores, in a new array, and take softmax after that.",
        "`return softmax(np.where(mask, S, -np.inf))`",
    ),
)
masked_softmax.probe("three scores, one hidden", np.array([[1.0, 2.0, 0.0]]), rows("101"))
masked_softmax.probe(
    "a causal mask", np.array([[0.5, 1, 2], [1, 0, -1], [0.2, 0.4, 3]]), rows("100", "110", "111")
)
masked_softmax.probe("more keys than queries", normal(2, 4), rows("0110", "1011"))
masked_softmax.probe("nothing hidden", normal(2, 3), rows("111", "111"))
masked_softmax.probe("one causal mask for a batch", normal(2, 4, 4), np.tri(4, dtype=bool))
masked_softmax.probe(
    "a mask for each sentence of a batch",
    normal(2, 3, 4),
    np.stack([rows("1000", "1101", "0111"), rows("0011", "0100", "1110")]),
)
masked_softmax.probe(
    "as many sentences as queries, a mask (3, 1, 4)",
    normal(3, 3, 4),
    rows("1100", "0111", "1010")[:, None],
)
masked_softmax.probe(
    "scores of ±1,000",
    np.array([[1000.0, 999, -1000], [-1000, -1001, -999]]),
    rows("101", "110"),
)
masked_softmax.probe("rows far apart", np.array([[0.0, 1, 2], [900, 902, 901]]), rows("110", "101"))
masked_softmax.probe("a hidden score far above the others", np.array([[1.0, 2, 600]]), rows("110"))


# ---------------------------------------------------------------- safe_masked_softmax

safe_masked_softmax = Exercise(
    reference.safe_masked_softmax,
    notebook="06",
    level=3,
    minutes=15,
    task="The softmax that survives an empty row, this time without any −∞: take the exponentials "
    "of the allowed scores only, then divide. A query that may read nothing gets zeros, and no "
    "hidden score may spoil a row.",
    hints=(
        "What is the sum of an empty row, and what must it be divided by to stay zero? And over "
        "which scores is the largest taken, the one that keeps exp in range?",
        "Lower the hidden scores first, subtract each row's largest, take exp, and multiply by the "
        "mask. Divide by the row's sum, or by 1 where that sum is 0.",
        "`low = np.where(mask, S, -1e30)`, `e = np.exp(low - low.max(axis=-1, keepdims=True)) "
        "* mask`, `total = e.sum(axis=-1, keepdims=True)`, `return e / np.where(total == 0, 1, "
        "total)`",
    ),
)
safe_masked_softmax.probe(
    "a query that may read nothing",
    np.array([[1.0, 2.0, 0.0], [3.0, 0.5, 1.0]]),
    rows("101", "000"),
)
safe_masked_softmax.probe(
    "nothing hidden", np.array([[1.0, 2, 0], [3, 0.5, 1]]), rows("111", "111")
)
safe_masked_softmax.probe(
    "everything hidden", np.array([[1.0, 2, 0], [3, 0.5, 1]]), rows(*2 * ["000"])
)
safe_masked_softmax.probe("more keys than queries", normal(2, 4), rows("0110", "1010"))
safe_masked_softmax.probe(
    "a causal mask, and padding on the left",
    normal(2, 4, 4),
    np.tri(4, dtype=bool) & rows("0111", "0011")[:, None],
)
safe_masked_softmax.probe("one causal mask for a batch", normal(2, 4, 4), np.tri(4, dtype=bool))
safe_masked_softmax.probe(
    "as many sentences as queries, a mask (3, 1, 4)",
    normal(3, 3, 4),
    rows("1100", "0000", "1010")[:, None],
)
safe_masked_softmax.probe(
    "scores of ±1,000",
    np.array([[1000.0, 999, -1000], [-1000, -1001, -999], [1000, 0, 5]]),
    rows("101", "110", "000"),
)
safe_masked_softmax.probe(
    "rows far apart", np.array([[0.0, 1, 2], [900, 902, 901]]), rows("110", "101")
)
safe_masked_softmax.probe("a hidden score of 10,000", np.array([[1.0, 2, 1e4]]), rows("110"))


@safe_masked_softmax.experiment("a query with a single key")
def single_key(fn):
    weight = fn(np.array([[1.0, 2.0, 3.0]]), rows("010"))[0, 1]
    return {"its weight is 1, within 0.00003": bool(abs(weight - 1) < 3e-5)}


# ---------------------------------------------------------------- padded_weights

padded_weights = Exercise(
    reference.padded_weights,
    notebook="06",
    level=2,
    minutes=10,
    task="Weights that ignore padded keys, this time one sentence after the other, in a loop. "
    "Padding may stand on the right or on the left.",
    hints=(
        "What is is_real[b], and does it belong to the rows or the columns of S[b]?",
        "For each sentence hide the columns that are padding, for all of its queries alike, then "
        "stack the results.",
        "`return np.stack([masked_softmax(s, real[None, :]) for s, real in zip(S, is_real)])`",
    ),
)
padded_weights.probe(
    "one sentence with a padded word", np.array([[[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]]), rows("110")
)
padded_weights.probe("padding on the right", normal(2, 4, 4), rows("1100", "1110"))
padded_weights.probe("padding on the left", normal(2, 4, 4), rows("0011", "0111"))
padded_weights.probe("no padding", normal(2, 3, 3), rows("111", "111"))
padded_weights.probe("more keys than queries", normal(2, 3, 5), rows("11100", "01111"))
padded_weights.probe("one query", normal(3, 1, 4), rows("1100", "0111", "0010"))
padded_weights.probe("as many sentences as queries", normal(3, 3, 4), rows("1100", "0111", "1000"))
padded_weights.probe("three sentences of three words", normal(3, 3, 3), rows("100", "011", "110"))
padded_weights.probe(
    "scores of ±1,000",
    np.array([[[1000.0, 999, -1000], [-1000, -1001, -999]]]),
    rows("110"),
)
padded_weights.probe(
    "sentences far apart",
    np.array([[[0.0, 1, 2], [2, 0, 1]], [[900, 902, 901], [901, 900, 903]]]),
    rows("110", "011"),
)
# Not 700 and more: there, masking after the softmax, which is right otherwise, gives 0 / 0.
padded_weights.probe(
    "a padded score far above the others", np.array([[[1.0, 2, 600]]]), rows("110")
)


# ---------------------------------------------------------------- mistakes with any mask


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Softmax; a row of nothing but −∞ gives NaN."""
    return reference.softmax(x, axis)


def or_zeros(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Softmax; a row of nothing but −∞ gives zeros."""
    return np.where(np.isneginf(x).all(axis=axis, keepdims=True), 0, softmax(x, axis))


def hide(S: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Write −∞ over the scores that the mask hides."""
    return np.where(mask, S, -np.inf)


def shared(*without: Exercise) -> Callable:
    """Add a mistake (S, mask, to_weights) to the three exercises, but for those `without`."""

    def add(function: Callable) -> Callable:
        if masked_softmax not in without:
            masked_softmax.mistake(_adapted(function, softmax))
        if safe_masked_softmax not in without:
            safe_masked_softmax.mistake(_adapted(function, or_zeros))
        if padded_weights not in without:
            padded_weights.mistake(_for_padding(function))
        return function

    return add


def _adapted(function: Callable, to_weights: Callable) -> Callable:
    return wraps(function)(lambda S, mask: function(S, mask, to_weights))


def _for_padding(function: Callable) -> Callable:
    adapted = wraps(function)(lambda S, is_real: function(S, is_real[:, None, :], softmax))
    adapted.__doc__ = (
        function.__doc__.replace("hidden", "padded")
        .replace("Hidden", "Padded")
        .replace('"may attend"', '"a real token"')
        .replace("the mask", "the mask is_real")
    )
    return adapted


@shared()
def zeroed_after_softmax(S, mask, to_weights):
    """The hidden weights are set to 0 after the softmax, or missing above the fraction bar: the
    rows no longer sum to 1. Mask before the softmax, -np.inf instead of the hidden scores."""
    return softmax(S) * mask


@shared()
def minus_infinity_after_softmax(S, mask, to_weights):
    """The −∞ is written after the softmax, into the weights. Mask the scores before the softmax:
    then the hidden weights are 0 and the rows sum to 1."""
    return hide(softmax(S), mask)


@shared()
def mask_ignored(S, mask, to_weights):
    """The mask is not used: hidden keys get weight as if nothing were hidden. Replace their
    scores by -np.inf before the softmax."""
    return softmax(S)


@shared()
def inverted_mask(S, mask, to_weights):
    """The mask is read the wrong way round: it hides what is allowed and allows what is hidden.
    True means "may attend": -np.inf belongs where it is False (invert it with ~)."""
    return to_weights(hide(S, ~mask))


@shared()
def inverted_mask_added(S, mask, to_weights):
    """The mask is inverted: the large negative number goes where it is True. True means
    "may attend", the opposite: lower the scores where it is False."""
    return softmax(S + np.where(mask, -1e9, 0.0))


@shared()
def inverted_mask_filled(S, mask, to_weights):
    """The mask is inverted: scores become a large negative number where it is True. True means
    "may attend", the opposite: lower the scores where it is False, np.where(mask, S, -np.inf)."""
    return softmax(np.where(mask, -1e9, S))


@shared()
def inverted_and_zeroed(S, mask, to_weights):
    """The mask is inverted, and applied after the softmax. True means "may attend": put −∞ where
    it is False, into the scores, before the softmax."""
    return softmax(S) * ~mask


@shared()
def true_added(S, mask, to_weights):
    """Hidden scores end up only 1 below the others, by adding the True/False mask as 1 and 0, or
    -1 where it is False. That weakens them, but nothing is blocked: use np.where and -np.inf."""
    return softmax(S + mask)


@shared()
def false_added(S, mask, to_weights):
    """You add the inverted mask (~mask) to the scores as 1 and 0: hidden scores rise by 1, and
    nothing is blocked. They must become −∞ (np.where)."""
    return softmax(S + ~mask)


def _adds(number: float) -> Callable:
    """Hidden scores become lower by a number that is too small."""

    def wrong(S, mask, to_weights):
        return softmax(S + np.where(mask, 0.0, -number))

    wrong.__name__ = f"adds_minus_{number}"
    wrong.__doc__ = f"""Adding -{number} (or the like) to the hidden scores only weakens them: not
    enough, they keep some weight, a large score even most of it. They have to become −∞ (-np.inf),
    so that exp gives 0."""
    return wrong


for _number in (2, 3, 5, 10, 100):
    shared()(_adds(_number))


@shared()
def hidden_score_is_zero(S, mask, to_weights):
    """Hidden scores are set to 0 (multiplied by the mask), but exp(0) is 1: they keep a share, and
    are even raised where the others are negative. The score must be -np.inf, not 0."""
    return softmax(np.where(mask, S, 0.0))


@shared()
def hidden_score_is_one(S, mask, to_weights):
    """Hidden scores are set to 1, so hidden keys keep a share of the weight. The score must be
    -np.inf, so that exp gives 0."""
    return softmax(np.where(mask, S, 1.0))


def _fills(number: float) -> Callable:
    """Hidden scores become a number that is not low enough."""

    def wrong(S, mask, to_weights):
        return softmax(np.where(mask, S, -float(number)))

    wrong.__name__ = f"hidden_score_is_minus_{number}"
    wrong.__doc__ = f"""Hidden scores are set to -{number} (or the like), which is not low enough:
    they keep a share, or all of it where the allowed scores are lower still. The score must be −∞
    (-np.inf), so that exp gives 0."""
    return wrong


for _number in (1, 2, 3, 5, 10, 100):
    shared()(_fills(_number))


@shared()
def hidden_score_is_the_smallest(S, mask, to_weights):
    """Hidden scores are set to the smallest score of all, which still gives them a share. The
    score must be −∞ (-np.inf), so that exp gives 0."""
    return softmax(np.where(mask, S, S.min()))


@shared()
def minus_is_missing(S, mask, to_weights):
    """Hidden scores become very large instead of very small, so the hidden keys get all the
    weight: the minus sign is missing. Use -1e9 or -np.inf (−∞)."""
    return softmax(np.where(mask, S, 1e9))


@shared()
def plus_infinity(S, mask, to_weights):
    """Hidden scores become +∞, and ∞ − ∞ and ∞ / ∞ are NaN: the minus sign is missing. Use −∞
    (-np.inf), whose exponential is 0."""
    return softmax(np.where(mask, S, np.inf))


@shared()
def zero_times_infinity(S, mask, to_weights):
    """The mask is multiplied by −∞ and added: 0 · ∞ is not a number (NaN), which spoils the
    allowed scores. Choose with np.where(mask, S, -np.inf) instead of multiplying."""
    return to_weights(S + np.where(mask, np.nan, -np.inf))


@shared(masked_softmax, padded_weights)
def true_times_infinity(S, mask, to_weights):
    """The mask is multiplied by −∞ and added: 0 · ∞ is not a number (NaN), and it is inverted
    too. Choose with np.where(mask, S, -np.inf) instead."""
    return softmax(S + np.where(mask, -np.inf, np.nan))


@shared()
def scores_times_infinity(S, mask, to_weights):
    """Hidden scores are multiplied by −∞: a negative score becomes +∞, and 0 · ∞ is NaN. Replace
    the hidden scores by −∞ (np.where), do not multiply them."""
    return to_weights(S * np.where(mask, 1.0, -np.inf))


@shared()
def scores_times_large(S, mask, to_weights):
    """Hidden scores are multiplied by a large negative number such as -1e9: a negative score
    becomes very large that way. Replace the hidden scores by −∞, do not multiply them."""
    return softmax(S * np.where(mask, 1.0, -1e9))


@shared()
def zero_scores_hidden_too(S, mask, to_weights):
    """Every score of 0 is taken for hidden, also an allowed one that happens to be 0. Hide by the
    mask itself, np.where(mask, S, -np.inf), not where S * mask is 0."""
    return to_weights(hide(S, mask & (S != 0)))


@shared(padded_weights)
def transposed_mask(S, mask, to_weights):
    """The mask is transposed: queries and keys are swapped. Its rows are queries and its columns
    are keys, like those of S; leave out the .T (swapaxes)."""
    return to_weights(hide(S, np.swapaxes(np.broadcast_to(mask, S.shape), -1, -2)))


@shared(padded_weights)
def causal_instead(S, mask, to_weights):
    """It hides the future, whatever the mask says: the argument mask is ignored. Use the mask that
    is passed in; another query may need another one."""
    return to_weights(hide(S, np.tri(*S.shape[-2:], dtype=bool)))


@shared()
def causal_as_well(S, mask, to_weights):
    """It hides the future as well as what the mask hides. Use the mask alone: if the future must
    be hidden, the mask already says so."""
    return to_weights(hide(S, mask & np.tri(*S.shape[-2:], dtype=bool)))


@shared()
def mask_of_the_first_sentence(S, mask, to_weights):
    """The mask of the first sentence is used for the whole batch (mask[0]). Each sentence has its
    own: keep the batch axis."""
    return to_weights(hide(S, mask[0] if mask.ndim == 3 else mask))


@shared(padded_weights)
def mask_of_the_first_query(S, mask, to_weights):
    """The mask of the first query is used for all queries. Each row of the mask belongs to its own
    query: use the whole mask."""
    return to_weights(hide(S, mask[..., :1, :]))


@shared(padded_weights)
def first_row_of_the_mask(S, mask, to_weights):
    """Only mask[0] is used: the first query of a mask (Tq, Tk), the first sentence of a batch. Use
    the whole mask; np.where broadcasts it."""
    return to_weights(hide(S, mask[0]))


@shared()
def hidden_keys_left_out(S, mask, to_weights):
    """The hidden keys are left out (S[mask]), so the shape changes. Keep the shape: −∞ in place of
    the hidden scores gives them weight 0."""
    return softmax(S[mask])


@shared(safe_masked_softmax)
def axis_of_queries_missing(S, mask, to_weights):
    """The mask has lost its axis of queries, so the batch axis lines up with the queries:
    sentence b hides keys of query b in every sentence. Keep the shape (B, 1, Tk): [:, None, :]."""
    return to_weights(hide(S, mask[:, 0] if mask.ndim == 3 and mask.shape[1] == 1 else mask))


@shared()
def over_the_queries(S, mask, to_weights):
    """The softmax runs over the queries (axis -2, the columns): columns sum to 1 instead of rows.
    Each query shares out its weight over the keys, the last axis: axis=-1."""
    return to_weights(hide(S, mask), axis=-2)


@shared(padded_weights)
def over_axis_1(S, mask, to_weights):
    """The softmax runs along axis 1: in a batch those are the queries, not the keys. The keys are
    always the last axis: axis=-1."""
    return to_weights(hide(S, mask), axis=1)


@shared()
def over_the_first_axis(S, mask, to_weights):
    """The softmax runs along axis 0, in a batch over the sentences. Weights sum to 1 over the
    keys, the last axis: axis=-1."""
    return to_weights(hide(S, mask), axis=0)


@shared(padded_weights)
def softmax_without_dim(S, mask, to_weights):
    """The axis of the softmax depends on how many there are, as in F.softmax without dim: of three
    axes it takes the first, the sentences. Name the keys, the last axis, dim=-1 (axis=-1)."""
    return to_weights(hide(S, mask), axis=0 if S.ndim == 3 else 1)


@shared()
def one_sum_for_everything(S, mask, to_weights):
    """All entries together sum to 1. Each row (query) needs its own sum: axis=-1, keepdims=True."""
    masked = hide(S, mask)
    return np.exp(masked - masked.max()) / np.exp(masked - masked.max()).sum()


@shared()
def one_maximum_for_everything(S, mask, to_weights):
    """The largest score of the whole array is subtracted: in rows far below it, all exponentials
    underflow to 0. Subtract the largest of each row: max(axis=-1, keepdims=True)."""
    masked = hide(S, mask)
    return to_weights(np.log(np.exp(masked - masked.max())))


@shared(safe_masked_softmax)
def overflows(S, mask, to_weights):
    """exp overflows for scores near 1,000, and ∞ / ∞ is NaN. Subtract the largest allowed score of
    each row before exp: it changes nothing else."""
    e = np.exp(hide(S, mask))
    return e / e.sum(axis=-1, keepdims=True)


@shared(safe_masked_softmax)
def overflows_before_the_mask(S, mask, to_weights):
    """exp overflows for scores near 1,000 and underflows near -1,000, which gives NaN. Subtract the
    largest allowed score of each row before exp: it changes nothing else."""
    e = np.exp(S) * mask
    return e / e.sum(axis=-1, keepdims=True)


@shared(safe_masked_softmax)
def hidden_maximum_and_a_small_number(S, mask, to_weights):
    """The maximum is taken over all scores, hidden ones included: a large hidden score makes the
    allowed ones underflow, and beside a small number (eps) in the sum the row becomes zeros. Mask
    the scores before taking the max."""
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    return e / (e.sum(axis=-1, keepdims=True) + 1e-9)


@shared()
def softmax_missing(S, mask, to_weights):
    """These are masked scores, not weights: the softmax is missing. Return the softmax of them."""
    return hide(S, mask)


@shared()
def division_missing(S, mask, to_weights):
    """These are exponentials that were not divided by their sum: the rows do not sum to 1. Divide
    by e.sum(axis=-1, keepdims=True)."""
    masked = hide(S, mask)
    largest = masked.max(axis=-1, keepdims=True)
    return np.exp(masked - np.where(np.isneginf(largest), 0, largest))


@shared()
def raw_exponentials(S, mask, to_weights):
    """These are exponentials that were not divided by their sum: the rows do not sum to 1. Use
    softmax, which also keeps exp(1000) from overflowing."""
    return np.exp(hide(S, mask))


@shared()
def softmax_twice(S, mask, to_weights):
    """Softmax is taken twice: the second one gives the hidden keys a share again (exp(0) is 1).
    Take it once, after masking the scores."""
    return softmax(to_weights(hide(S, mask)))


@shared()
def softmax_before_and_after(S, mask, to_weights):
    """Softmax is taken twice, before and after the masking. Mask the scores S themselves, then
    take softmax once."""
    return to_weights(hide(softmax(S), mask))


@shared()
def scaled_again(S, mask, to_weights):
    """The scores are divided by the root of the number of keys. They come scaled already (notebook
    04): mask and softmax only."""
    return to_weights(hide(S, mask) / np.sqrt(S.shape[-1]))


@shared()
def even_shares(S, mask, to_weights):
    """All allowed keys get the same weight: the scores are not used, only the mask. Take the
    softmax of the scores of the allowed keys."""
    return to_weights(hide(np.zeros_like(S), mask))


@shared()
def most_likely_only(S, mask, to_weights):
    """The largest allowed score gets the whole weight (argmax). Softmax gives every allowed key a
    share: exp of the score, divided by the sum of the row."""
    masked = hide(S, mask)
    return np.where(mask & (masked == masked.max(axis=-1, keepdims=True)), 1.0, 0.0)


@shared()
def renormalised_by_one_sum(S, mask, to_weights):
    """After masking, all weights are divided by one sum, that of the whole array. Each row needs
    its own: divide by w.sum(axis=-1, keepdims=True)."""
    left = softmax(S) * mask
    return left / left.sum()


@shared()
def renormalised_over_the_queries(S, mask, to_weights):
    """After masking, the weights are divided by the sums of the columns (axis=-2, the queries).
    Rows must sum to 1, over the keys: axis=-1, keepdims=True."""
    left = softmax(S) * mask
    return left / left.sum(axis=-2, keepdims=True)


@shared()
def keepdims_missing(S, mask, to_weights):
    """The sums of the rows have lost their axis, so dividing lines them up with the keys. Keep it:
    sum(axis=-1, keepdims=True)."""
    left = softmax(S) * mask
    return left / left.sum(axis=-1)


@shared()
def divided_by_the_count(S, mask, to_weights):
    """The weights are divided by the number of allowed keys, so the rows do not sum to 1. Divide by
    the sum of the row's allowed exponentials; softmax after masking does that."""
    return softmax(S) * mask / np.maximum(np.broadcast_to(mask, S.shape).sum(-1, keepdims=True), 1)


def _spoiled_by(epsilon: float) -> Callable:
    """Add `epsilon` to every sum, which saves an empty row and spoils the others."""

    def wrong(S, mask, to_weights):
        low = np.where(mask, S, -1e30)
        e = np.exp(low - low.max(axis=-1, keepdims=True)) * mask
        return e / (e.sum(axis=-1, keepdims=True) + epsilon)

    wrong.__name__ = f"epsilon_of_{epsilon:g}".replace(".", "_").replace("-", "_")
    wrong.__doc__ = f"""Adding {epsilon:g} to the sum helps only an empty row, and spoils all other
    rows: they no longer sum to 1. Treat the empty row separately, or use a tiny epsilon such as
    1e-9."""
    return wrong


for _epsilon in (1.0, 0.1, 0.01, 0.001):
    shared()(_spoiled_by(_epsilon))


@shared()
def one_added_to_the_sum(S, mask, to_weights):
    """1 is added to the sum below the fraction bar (softmax plus one), so the rows sum to less
    than 1. Divide by the sum of the row's allowed exponentials alone."""
    masked = hide(S, mask)
    largest = np.maximum(masked.max(axis=-1, keepdims=True), 0)
    e = np.exp(masked - largest)
    return e / (np.exp(-largest) + e.sum(axis=-1, keepdims=True))


def _one_added_unstably(e: np.ndarray) -> np.ndarray:
    return e / (1 + e.sum(axis=-1, keepdims=True))


@shared()
def one_added_and_no_maximum(S, mask, to_weights):
    """1 is added to the sum below the fraction bar, so the rows sum to less than 1; and exp
    overflows for scores near 1,000. Subtract the row's largest allowed score before exp, and divide
    by the sum alone."""
    return _one_added_unstably(np.exp(hide(S, mask)))


@shared()
def one_added_and_no_maximum_before_the_mask(S, mask, to_weights):
    """1 is added to the sum below the fraction bar, so the rows sum to less than 1; and exp
    overflows, also for hidden scores. Mask first, subtract the row's largest score before exp, and
    divide by the sum alone."""
    return _one_added_unstably(np.exp(S) * mask)


@shared()
def logarithms(S, mask, to_weights):
    """These are the logarithms of the weights (log-softmax). Return the weights themselves, from
    0 to 1."""
    return np.log(to_weights(hide(S, mask)))


@shared()
def written_into_the_scores(S, mask, to_weights):
    """The −∞ is written into the score matrix S that was passed in: the caller's S is changed in
    place. Work on a copy, or make a new array with np.where."""
    S[~np.broadcast_to(mask, S.shape)] = -np.inf
    return to_weights(S)


@shared(padded_weights)
def indexed_without_broadcasting(S, mask, to_weights):
    """The mask is used as an index, as in scores[~mask] = …, which needs a mask of the same shape:
    one causal mask (T, T) does not fit a batch. np.where(mask, S, -np.inf) broadcasts it."""
    scores = S.copy()
    scores[~mask] = -np.inf
    return to_weights(scores)


@shared(padded_weights)
def written_without_broadcasting(S, mask, to_weights):
    """S[~mask] = … writes into the S that was passed in (in place), and needs a mask of the same
    shape as S. np.where(mask, S, -np.inf) makes a new array and broadcasts the mask."""
    S[~mask] = -np.inf
    return to_weights(S)


# ---------------------------------------------------------------- mistakes with empty rows

FINITE = (mask_ignored, true_added, false_added, hidden_score_is_zero, hidden_score_is_one)
FINITE += (inverted_mask_added, inverted_mask_filled)
FINITE += (softmax_twice, minus_is_missing, scores_times_large)
INFINITE = (inverted_mask, transposed_mask, causal_as_well)
INFINITE += (mask_of_the_first_sentence, over_the_queries, over_axis_1, scaled_again, even_shares)


@safe_masked_softmax.mistake
def nan_in_empty_rows(S, mask):
    """A query without any allowed key gives 0 / 0, which is NaN. Its row must be zeros: treat the
    empty row separately, or divide by 1 where the sum is 0."""
    return softmax(hide(S, mask))


@safe_masked_softmax.mistake
def even_share_in_empty_rows(S, mask):
    """A finite number such as -1e9 makes all scores of an empty row equal, and softmax shares out
    the weight evenly (uniform) among forbidden keys. Such a row must be zeros: multiply by the
    mask, or treat it separately."""
    return softmax(np.where(mask, S, -1e30))


@safe_masked_softmax.mistake
def empty_row_sees_everything(S, mask):
    """A query without any allowed key sees everything. Opening its row avoids NaN, but after the
    softmax zeros must be written over it."""
    return softmax(hide(S, mask | ~mask.any(axis=-1, keepdims=True)))


@safe_masked_softmax.mistake
def empty_row_sees_first_key(S, mask):
    """A query without any allowed key gives all its weight to the first key. Its row must be all
    zeros: nothing allowed, nothing read."""
    empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
    return np.where(empty, np.arange(S.shape[-1]) == 0, or_zeros(hide(S, mask)))


@safe_masked_softmax.mistake
def empty_row_sees_itself(S, mask):
    """A query without any allowed key reads itself (the diagonal is opened). Its row must be all
    zeros: nothing allowed, nothing read."""
    empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
    return np.where(empty, np.eye(*S.shape[-2:]), or_zeros(hide(S, mask)))


@safe_masked_softmax.mistake
def empty_row_of_ones(S, mask):
    """A query without any allowed key gets ones. Its row must be zeros; replace NaN by 0."""
    return np.nan_to_num(softmax(hide(S, mask)), nan=1.0)


@safe_masked_softmax.mistake
def empty_row_of_minus_infinity(S, mask):
    """A query without any allowed key gets weights of −∞. These are weights, no longer scores: the
    row must be zeros."""
    return np.where(mask.any(axis=-1, keepdims=True), softmax(hide(S, mask)), -np.inf)


@safe_masked_softmax.mistake
def empty_rows_left_out(S, mask):
    """The rows of queries without any allowed key are left out, which changes the shape. Keep every
    row, and fill the empty ones with zeros."""
    return softmax(hide(S, mask))[np.broadcast_to(mask, S.shape).any(axis=-1)]


@safe_masked_softmax.mistake
def empty_row_raises(S, mask):
    """It raises an error when a query has no allowed key. That must not stop it: such a row gets
    zeros, all others their weights."""
    if not mask.any(axis=-1).all():
        raise ValueError("a query without any allowed key")
    return softmax(hide(S, mask))


@safe_masked_softmax.mistake
def only_if_all_are_empty(S, mask):
    """It tests whether the whole mask is empty, so a single empty row still gives NaN. Test each
    row: mask.any(axis=-1, keepdims=True)."""
    return softmax(hide(S, mask)) if mask.any() else np.zeros(S.shape)


@safe_masked_softmax.mistake
def only_if_all_are_empty_and_even_shares(S, mask):
    """It tests whether the whole mask is empty, so a single empty row keeps an even share (uniform)
    of forbidden keys. Test each row: mask.any(axis=-1, keepdims=True)."""
    return softmax(np.where(mask, S, -1e30)) * mask.any()


@safe_masked_softmax.mistake
def all_zero_if_one_is_empty(S, mask):
    """One empty row turns the whole result to zeros. Only the row of the query without any allowed
    key is zero: test each row separately, mask.any(axis=-1, keepdims=True)."""
    return softmax(hide(S, mask)) if mask.any(axis=-1).all() else np.zeros(S.shape)


@safe_masked_softmax.mistake
def sentence_zero_if_one_is_empty(S, mask):
    """One empty row turns all rows of its sentence to zeros. Only the row of the query without any
    allowed key is zero: test each row separately, mask.any(axis=-1, keepdims=True)."""
    some_empty = ~np.broadcast_to(mask, S.shape).any(axis=-1, keepdims=True)
    return np.where(some_empty.any(axis=-2, keepdims=True), 0, softmax(hide(S, mask)))


@safe_masked_softmax.mistake
def zero_if_one_key_is_hidden(S, mask):
    """A row is set to zeros as soon as one of its keys is hidden (all instead of any). It is empty
    only if no key is allowed: ~mask.any(axis=-1, keepdims=True)."""
    return np.where(mask.all(axis=-1, keepdims=True), softmax(hide(S, mask)), 0)


@safe_masked_softmax.mistake
def empty_columns_instead(S, mask):
    """It looks for keys that nobody may read (empty columns, axis=-2) instead of queries that may
    read nothing (empty rows), so the NaN stays. Look along the keys: mask.any(axis=-1)."""
    anyone = np.broadcast_to(mask, S.shape).any(axis=-2, keepdims=True)
    return np.where(anyone, softmax(hide(S, mask)), 0)


@safe_masked_softmax.mistake
def empty_columns_and_even_shares(S, mask):
    """It looks for keys that nobody may read (empty columns, axis=-2) instead of queries that may
    read nothing (empty rows), which keep an even share (uniform). Look along the keys:
    mask.any(axis=-1, keepdims=True)."""
    anyone = np.broadcast_to(mask, S.shape).any(axis=-2, keepdims=True)
    return softmax(np.where(mask, S, -1e30)) * anyone


@safe_masked_softmax.mistake
def maximum_before_the_mask(S, mask):
    """The maximum is taken over all scores, hidden ones included: a large hidden score makes the
    allowed ones underflow, and the row becomes zeros. Mask the scores before taking the max."""
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@safe_masked_softmax.mistake
def nan_beside_a_large_hidden_score(S, mask):
    """The mask comes after the softmax: an empty row, and one beside a very large hidden score,
    give 0 / 0, which is NaN. Mask the scores before taking the maximum, and treat the empty row
    separately."""
    left = softmax(S) * mask
    return left / left.sum(axis=-1, keepdims=True)


@safe_masked_softmax.mistake
def no_maximum(S, mask):
    """exp overflows for scores near 1,000, and underflows near -1,000. Subtract the largest allowed
    score of each row before exp: it changes nothing else."""
    e = np.exp(S) * mask
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@safe_masked_softmax.mistake
def no_maximum_and_nan_zeroed(S, mask):
    """exp overflows for scores near 1,000 and underflows near -1,000, and writing 0 over every NaN
    hides that. Subtract the largest allowed score of each row before exp."""
    e = np.exp(S) * mask
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


@safe_masked_softmax.mistake
def no_maximum_of_the_allowed(S, mask):
    """exp overflows for scores near 1,000, and underflows near -1,000. Subtract the largest allowed
    score of each row before exp; it changes nothing else."""
    return or_zeros(np.log(np.exp(hide(S, mask))))


@safe_masked_softmax.mistake
def no_maximum_after_the_mask(S, mask):
    """exp overflows for large scores near 1,000 (∞ / ∞ is NaN) and underflows near -1,000. Subtract
    the largest allowed score of each row before exp; it changes nothing else."""
    e = np.exp(hide(S, mask))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@safe_masked_softmax.mistake
def no_maximum_after_the_mask_and_nan_zeroed(S, mask):
    """exp overflows for large scores near 1,000 and underflows near -1,000, and writing 0 over
    every NaN hides that. Subtract the largest allowed score of each row before exp."""
    e = np.exp(hide(S, mask))
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


@safe_masked_softmax.mistake
def no_maximum_and_nan_in_empty_rows(S, mask):
    """Two things give NaN: an empty row is 0 / 0, and exp overflows for scores near 1,000. Subtract
    the largest allowed score of each row before exp, and divide an empty row by 1."""
    e = np.exp(hide(S, mask))
    return e / e.sum(axis=-1, keepdims=True)


@safe_masked_softmax.mistake
def nothing_against_nan(S, mask):
    """Two things give NaN: an empty row is 0 / 0, and exp overflows for large scores, hidden ones
    too. Mask first, subtract each row's largest score before exp, and divide an empty row by 1."""
    e = np.exp(S) * mask
    return e / e.sum(axis=-1, keepdims=True)


safe_masked_softmax.mistake(_adapted(_spoiled_by(0.0001), or_zeros))


# the mistakes with any mask again, in functions that treat the empty row otherwise


def _again(function: Callable, to_weights: Callable, zero_rows: bool) -> Callable:
    def wrong(S, mask):
        weights = function(S, mask, to_weights)
        empty = zero_rows & ~mask.any(axis=-1, keepdims=True)
        return np.where(empty, 0, weights)

    wrong.__doc__ = function.__doc__
    wrong.__name__ = f"{function.__name__}_{'zero' if zero_rows else 'nan'}"
    return wrong


for _wrong in FINITE:
    safe_masked_softmax.mistake(_again(_wrong, softmax, zero_rows=True))
for _wrong in INFINITE:
    safe_masked_softmax.mistake(_again(_wrong, softmax, zero_rows=False))


# ---------------------------------------------------------------- mistakes with padding only


@padded_weights.mistake
def queries_and_keys(S, is_real):
    """Padded queries are masked as well as padded keys: their rows have no key left and become
    NaN. Mask only the keys, is_real[:, None, :]."""
    return softmax(hide(S, is_real[:, None, :] & is_real[:, :, None]))


@padded_weights.mistake
def queries_zeroed(S, is_real):
    """The rows of padded queries are set to zeros as well. Mask only the keys,
    is_real[:, None, :]: every query, padded or not, gets weights that sum to 1."""
    return softmax(hide(S, is_real[:, None, :])) * is_real[:, :, None]


@padded_weights.mistake
def queries_instead(S, is_real):
    """The mask hides padded queries (rows) instead of padded keys (columns): their rows are NaN,
    and real words still read padding. The new axis goes in the middle: is_real[:, None, :]."""
    return softmax(hide(S, is_real[:, :, None]))


@padded_weights.mistake
def queries_zeroed_instead(S, is_real):
    """The rows of padded queries are set to zeros, and nothing hides the padded keys. Mask the
    keys (columns) of the scores before the softmax: is_real[:, None, :]."""
    return softmax(S) * is_real[:, :, None]


@padded_weights.mistake
def queries_in_the_mask(S, is_real):
    """The mask also hides padded queries (rows), or only those: their rows keep no key, and with
    fewer queries than keys it does not fit the scores. Mask the keys, is_real[:, None, :]."""
    return reference.masked_softmax(S, is_real[:, None, :] & is_real[:, :, None])


@padded_weights.mistake
def queries_in_the_safe_mask(S, is_real):
    """The mask also hides padded queries (rows), which become zeros, and with fewer queries than
    keys it does not fit the scores. Mask only the keys, is_real[:, None, :]."""
    return reference.safe_masked_softmax(S, is_real[:, None, :] & is_real[:, :, None])


@padded_weights.mistake
def queries_alone_in_the_safe_mask(S, is_real):
    """The mask hides padded queries (rows) instead of padded keys (columns), and with fewer queries
    than keys it does not fit the scores. The new axis goes in the middle: is_real[:, None, :]."""
    return reference.safe_masked_softmax(S, is_real[:, :, None])


@padded_weights.mistake
def no_axis_for_the_queries(S, is_real):
    """is_real, (B, Tk), is used as it is: without an axis for the queries it does not fit the
    scores, or the batch axis lines up with the queries. Make it (B, 1, Tk): is_real[:, None, :]."""
    return reference.masked_softmax(S, is_real)


@padded_weights.mistake
def causal_as_well_and_zeros(S, is_real):
    """It hides the future as well as the padding, and queries with nothing left get zeros. Use
    is_real alone: every real key may be read, later ones too."""
    return or_zeros(hide(S, is_real[:, None, :] & np.tri(*S.shape[-2:], dtype=bool)))


@padded_weights.mistake
def even_rows_for_padded_queries(S, is_real):
    """Padded queries are masked as well as padded keys; with a finite number their rows become an
    even share. Mask only the keys, is_real[:, None, :]."""
    return softmax(np.where(is_real[:, None, :] & is_real[:, :, None], S, -1e9))


@padded_weights.mistake
def even_rows_for_padded_queries_alone(S, is_real):
    """The mask hides padded queries (rows), which get an even share, instead of padded keys
    (columns), and with fewer queries than keys it does not fit the scores. The new axis goes in
    the middle: is_real[:, None, :]."""
    return softmax(np.where(is_real[:, :, None], S, -1e9))


@padded_weights.mistake
def padding_on_the_right_assumed(S, is_real):
    """You count the real tokens and assume that they come first. With padding on the left this
    hides the wrong keys: use is_real at each position."""
    lengths = is_real.sum(axis=1)
    return softmax(hide(S, (np.arange(S.shape[-1]) < lengths[:, None])[:, None, :]))


@padded_weights.mistake
def cut_at_the_first_padding(S, is_real):
    """Everything from the first padding on is hidden. With padding on the left that is the whole
    sentence: use is_real at each position."""
    return softmax(hide(S, np.logical_and.accumulate(is_real, axis=1)[:, None, :]))


@padded_weights.mistake
def last_real_key_hidden(S, is_real):
    """The last real key is hidden as well: one too many. Hide the keys where is_real is False, no
    others."""
    real = is_real & np.roll(is_real, -1, axis=1)
    return softmax(hide(S, real[:, None, :]))


@padded_weights.mistake
def keys_padded_anywhere(S, is_real):
    """A key is hidden in all sentences as soon as it is padding in one. Each sentence has its own
    row of is_real: keep the batch axis."""
    return softmax(hide(S, is_real.all(axis=0)))


@padded_weights.mistake
def keys_real_anywhere(S, is_real):
    """A key is hidden only if it is padding in all sentences. Each sentence has its own row of
    is_real: keep the batch axis."""
    return softmax(hide(S, is_real.any(axis=0)))


@padded_weights.mistake
def padded_keys_left_out(S, is_real):
    """The padded keys are left out, s[:, real], so rows become shorter and don't stack. Keep the
    shape: −∞ in place of the padded scores gives them weight 0."""
    return np.stack([softmax(s[:, real]) for s, real in zip(S, is_real, strict=True)])


@padded_weights.mistake
def only_the_first_sentence(S, is_real):
    """Only the first sentence is returned: the loop returns inside, or S[0] is used. Return the
    weights of the whole batch, (B, Tq, Tk)."""
    return softmax(hide(S[0], is_real[0]))


# ---------------------------------------------------------------- padding_mask

padding_mask = Exercise(
    reference.padding_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="From a batch of ids, make the mask that lets every query read real tokens only. The "
    "padding may have any id and stand on either side.",
    hints=(
        "Which comparison is True for every token that is not padding?",
        "Compare each id with pad_id, then add an axis of length 1 for the queries.",
        "`return (ids != pad_id)[:, None, :]`",
    ),
)
padding_mask.probe("one sentence", np.array([[5, 3, 0, 0]]), 0)
padding_mask.probe("two sentences", np.array([[4, 2, 7], [3, 0, 0]]), 0)
padding_mask.probe("padding with id 1, and a word with id 0", np.array([[0, 5, 1], [2, 0, 3]]), 1)
padding_mask.probe("padding on the left", np.array([[9, 9, 9, 4], [9, 2, 0, 3], [9, 9, 0, 12]]), 9)
padding_mask.probe(
    "words with ids above and below pad_id", np.array([[7, 2, 3, 3], [1, 0, 5, 3]]), 3
)
padding_mask.probe("no padding", np.array([[4, 2, 7, 0], [3, 1, 6, 2]]), 8)
padding_mask.probe("padding with id -1", np.array([[4, 0, -1], [3, 1, 2]]), -1)
padding_mask.probe("as many sentences as tokens", np.array([[2, 0, 0], [3, 4, 0], [0, 0, 5]]), 0)


@padding_mask.mistake
def padding_marked(ids, pad_id):
    """The mask is inverted: your True marks the padding (==). True has to mark real tokens, the
    opposite: !=."""
    return (ids == pad_id)[:, None, :]


@padding_mask.mistake
def padding_marked_and_axis_missing(ids, pad_id):
    """The mask is inverted, True has to mark real tokens (!=), and it lacks the axis for the
    queries: (B, 1, T), with [:, None, :]."""
    return ids == pad_id


@padding_mask.mistake
def padding_marked_and_axis_at_the_end(ids, pad_id):
    """The mask is inverted, True has to mark real tokens (!=), and the new axis stands last: put it
    in the middle, [:, None, :], (B, 1, T)."""
    return (ids == pad_id)[:, :, None]


@padding_mask.mistake
def query_axis_missing(ids, pad_id):
    """The mask is (B, T) and needs an axis for the queries: (B, 1, T), with [:, None, :]. Without
    it the batch axis meets the queries when the mask is broadcast."""
    return ids != pad_id


@padding_mask.mistake
def axis_at_the_end(ids, pad_id):
    """The new axis stands last, (B, T, 1), so padded queries (rows) would be hidden instead of
    padded keys (columns). Put it in the middle: [:, None, :], (B, 1, T)."""
    return (ids != pad_id)[:, :, None]


@padding_mask.mistake
def axis_in_front(ids, pad_id):
    """The new axis stands first, (1, B, T), so sentences would be taken for queries. Put it in the
    middle, between batch and keys: [:, None, :], (B, 1, T)."""
    return (ids != pad_id)[None]


@padding_mask.mistake
def two_new_axes(ids, pad_id):
    """The mask has one axis too many, (B, 1, 1, T). One new axis is needed, for the queries:
    (B, 1, T), with [:, None, :]."""
    return (ids != pad_id)[:, None, None, :]


@padding_mask.mistake
def repeated_for_each_query(ids, pad_id):
    """The mask is repeated for each query, (B, T, T). One row is enough, (B, 1, T):
    broadcasting spreads it over all queries."""
    return np.repeat((ids != pad_id)[:, None, :], ids.shape[1], axis=1)


@padding_mask.mistake
def queries_hidden_too(ids, pad_id):
    """Padded queries are hidden as well as padded keys, (B, T, T): their rows would be empty. Only
    the keys are masked: the shape is (B, 1, T)."""
    real = ids != pad_id
    return real[:, None, :] & real[:, :, None]


@padding_mask.mistake
def future_hidden_too(ids, pad_id):
    """The future is hidden as well, (B, T, T). This mask is about padding only, (B, 1, T); the
    causal mask is joined to it with & later."""
    return (ids != pad_id)[:, None, :] & np.tri(ids.shape[1], dtype=bool)


@padding_mask.mistake
def transposed_ids(ids, pad_id):
    """The axes of batch and tokens are swapped (transposed). Sentences stay on the first axis and
    keys on the last: (B, 1, T)."""
    return (ids != pad_id).T[:, None, :]


@padding_mask.mistake
def pad_id_ignored(ids, pad_id):
    """The padding is taken to have id 0, whatever pad_id says: then a real word with id 0 is hidden
    and the padding is not. Compare with the argument pad_id."""
    return (ids != 0)[:, None, :]


@padding_mask.mistake
def positive_ids(ids, pad_id):
    """Every id above 0 is taken for a real token, whatever pad_id says. Compare each id with the
    argument pad_id: !=."""
    return (ids > 0)[:, None, :]


@padding_mask.mistake
def last_id_of_each_row(ids, pad_id):
    """The last id of each sentence is taken for the padding, and the argument pad_id is ignored.
    Compare each id with pad_id."""
    return (ids != ids[:, -1:])[:, None, :]


@padding_mask.mistake
def largest_id_is_padding(ids, pad_id):
    """The largest id is taken for the padding, and the argument pad_id is ignored. Compare each id
    with pad_id."""
    return (ids != ids.max())[:, None, :]


@padding_mask.mistake
def smallest_id_is_padding(ids, pad_id):
    """The smallest id is taken for the padding, and the argument pad_id is ignored. Compare each id
    with pad_id."""
    return (ids != ids.min())[:, None, :]


@padding_mask.mistake
def up_to_the_first_padding_found(ids, pad_id):
    """The first padding is looked for (argmax), and everything from it on is hidden: wrong for
    padding on the left, and for a sentence without any. Test each id at its own position."""
    first = (ids == pad_id).argmax(axis=1)
    return (np.arange(ids.shape[1]) < first[:, None])[:, None, :]


@padding_mask.mistake
def objects_compared(ids, pad_id):
    """`is not` asks whether two objects are the same, and gives a single True. Compare each id with
    pad_id: ids != pad_id."""
    return True


@padding_mask.mistake
def greater_than_pad_id(ids, pad_id):
    """Only ids greater than pad_id count as real (>). A word may also have a smaller id: compare
    with !=."""
    return (ids > pad_id)[:, None, :]


@padding_mask.mistake
def greater_or_equal(ids, pad_id):
    """Ids from pad_id on count as real (>=), the padding included. Compare with !=."""
    return (ids >= pad_id)[:, None, :]


@padding_mask.mistake
def less_than_pad_id(ids, pad_id):
    """Only ids less than pad_id count as real (<). A word may also have a greater id: compare with
    !=."""
    return (ids < pad_id)[:, None, :]


@padding_mask.mistake
def less_or_equal(ids, pad_id):
    """Ids up to pad_id count as real (<=), the padding included. Compare with !=."""
    return (ids <= pad_id)[:, None, :]


@padding_mask.mistake
def right_padding_assumed(ids, pad_id):
    """The real tokens are counted and that many allowed from the left, as if they came first. With
    padding on the left the wrong ones are hidden: test each id at its own position."""
    lengths = (ids != pad_id).sum(axis=1)
    return (np.arange(ids.shape[1]) < lengths[:, None])[:, None, :]


@padding_mask.mistake
def left_padding_assumed(ids, pad_id):
    """The real tokens are counted and that many allowed from the right, as if the padding came
    first. With padding on the right the wrong ones are hidden: test each id at its position."""
    lengths = (ids != pad_id).sum(axis=1)
    return (np.arange(ids.shape[1])[::-1] < lengths[:, None])[:, None, :]


@padding_mask.mistake
def stops_at_the_first_padding(ids, pad_id):
    """Everything from the first padding on is hidden. With padding on the left that hides the
    whole sentence: test each id at its own position."""
    return np.logical_and.accumulate(ids != pad_id, axis=1)[:, None, :]


@padding_mask.mistake
def first_padding_allowed(ids, pad_id):
    """The first padding behind the words is allowed as well: one too many, off by one. Real are
    only the ids that differ from pad_id."""
    real = ids != pad_id
    return (real | np.pad(real, ((0, 0), (1, 0)))[:, :-1])[:, None, :]


@padding_mask.mistake
def last_word_hidden(ids, pad_id):
    """The last real token before the padding is hidden as well: one too few, off by one. Hide only
    the ids that are equal to pad_id."""
    real = ids != pad_id
    return (real & np.pad(real, ((0, 0), (0, 1)), constant_values=True)[:, 1:])[:, None, :]


@padding_mask.mistake
def ids_kept(ids, pad_id):
    """It holds the ids themselves, with 0 for the padding, not True and False. The mask must be
    boolean: the comparison ids != pad_id alone."""
    return np.where(ids != pad_id, ids, 0)[:, None, :]


@padding_mask.mistake
def positions_compared(ids, pad_id):
    """The position of a token is compared with pad_id, not its id. Compare the ids themselves:
    ids != pad_id."""
    return np.broadcast_to(np.arange(ids.shape[1]) != pad_id, ids.shape)[:, None, :]


@padding_mask.mistake
def first_sentence_for_all(ids, pad_id):
    """The mask of the first sentence is used for all of them. Each sentence of the batch has its
    own: compare all of ids, not ids[0]."""
    return np.broadcast_to(ids[0] != pad_id, ids.shape)[:, None, :]


@padding_mask.mistake
def first_sentence_only(ids, pad_id):
    """Only the first sentence has a mask, (1, 1, T). Each sentence of the batch needs its own:
    compare all of ids, not ids[0]."""
    return (ids[:1] != pad_id)[:, None, :]


@padding_mask.mistake
def real_in_all_sentences(ids, pad_id):
    """A position counts as real only if it is real in all sentences. Each sentence of the batch has
    its own mask: keep the batch axis."""
    return np.broadcast_to((ids != pad_id).all(axis=0), ids.shape)[:, None, :]


@padding_mask.mistake
def sentences_with_padding(ids, pad_id):
    """The test is made once for a whole sentence: (B, 1, 1). Each token needs its own True or
    False: (B, 1, T)."""
    return (ids != pad_id).all(axis=1)[:, None, None]


@padding_mask.mistake
def numbers_for_real(ids, pad_id):
    """These are the numbers 0 and 1 (floats), not True and False. The mask must be boolean, as the
    comparison gives it."""
    return (ids != pad_id)[:, None, :].astype(float)


@padding_mask.mistake
def whole_numbers_for_real(ids, pad_id):
    """These are the whole numbers 0 and 1 (int), not True and False. The mask must be boolean, as
    the comparison gives it."""
    return (ids != pad_id)[:, None, :].astype(int)


@padding_mask.mistake
def added_to_scores(ids, pad_id):
    """This is a mask to be added to the scores: 0 and −∞. Here it must be boolean, True for a real
    token and False for padding."""
    return np.where(ids != pad_id, 0.0, -np.inf)[:, None, :]


@padding_mask.mistake
def added_to_scores_finite(ids, pad_id):
    """This is a mask to be added to the scores: 0 and -1e9. Here it must be boolean, True for a
    real token and False for padding."""
    return np.where(ids != pad_id, 0.0, -1e9)[:, None, :]


@padding_mask.mistake
def everything_real(ids, pad_id):
    """Everything is True: padding is not hidden at all. Compare each id with pad_id: ids != pad_id
    (`is not` compares objects, not numbers)."""
    return np.ones((len(ids), 1, ids.shape[1]), dtype=bool)


# ---------------------------------------------------------------- window_mask


def window_mask(T: int, width: int) -> np.ndarray:
    """Let query i see the last `width` keys up to itself: (T, T) bool.

    Child et al. (2019), *Generating Long Sequences with Sparse Transformers*; used in Mistral 7B.
    """
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i - j < width)


windows = Exercise(
    window_mask,
    notebook="06",
    level=2,
    minutes=10,
    task="A causal mask with a short memory: query i reads itself and the keys before it, `width` "
    "keys in all. Near the start, where there are fewer, it reads those.",
    hints=(
        "Query 5 with width 3 reads the keys 3, 4 and 5. How far is each from the query?",
        "The distance i − j of query and key must be at least 0 and less than width.",
        "`i, j = np.arange(T)[:, None], np.arange(T)`, `return (j <= i) & (i - j < width)`",
    ),
)
windows.probe("four words, two keys each", 4, 2)
windows.probe("width 1: only itself", 3, 1)
windows.probe("as wide as the sentence", 4, 4)
windows.probe("wider than the sentence", 3, 5)
windows.probe("seven words, three keys each", 7, 3)
windows.probe("one word", 1, 2)


@windows.mistake
def window_too_wide(T, width):
    """Each query sees width + 1 keys, itself and width before it: off by one. The query counts
    too: i - j < width instead of <=."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i - j <= width)


@windows.mistake
def window_too_narrow(T, width):
    """Each query sees width − 1 keys: off by one. The distances 0 … width − 1 are allowed,
    i - j < width."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i - j < width - 1)


@windows.mistake
def itself_missing(T, width):
    """Each query sees the width keys before it, but not itself. Include the diagonal: j <= i, and
    i - j < width."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j < i) & (i - j <= width)


@windows.mistake
def itself_missing_and_narrow(T, width):
    """The query itself, the diagonal, is left out: j < i. It may always read itself: j <= i."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j < i) & (i - j < width)


@windows.mistake
def window_on_both_sides(T, width):
    """The window also reaches into the future, as far as into the past. Keys after the query are
    hidden: j <= i, without abs."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return np.abs(i - j) < width


@windows.mistake
def future_open(T, width):
    """The future is open: only the lower limit is tested. Keys after the query are hidden as well:
    j <= i."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return i - j < width


@windows.mistake
def window_into_the_future(T, width):
    """The window lies in the future: itself and the keys after it. Rows are queries i, columns keys
    j, and the past is j <= i: i and j are swapped (transposed)."""
    return window_mask(T, width).T


@windows.mistake
def width_ignored(T, width):
    """This is the whole causal mask: the width is not used. Hide the keys too far back as well:
    i - j < width."""
    return np.tri(T, dtype=bool)


@windows.mistake
def first_keys(T, width):
    """Each query sees the first width keys of the sentence, not the last ones before it. Count from
    the query: i - j < width instead of j < width."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (j < width)


@windows.mistake
def far_keys(T, width):
    """It keeps the keys that are too far back, and hides the near ones: the comparison is the wrong
    way round. Allowed is i - j < width."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i - j >= width)


@windows.mistake
def window_inverted(T, width):
    """The mask is inverted: True marks what is hidden. Here True means "may attend"."""
    return ~window_mask(T, width)


@windows.mistake
def blocks(T, width):
    """The sentence is cut into blocks of width words, and each query sees its own block only. The
    window moves along with the query: i - j < width."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (j <= i) & (i // width == j // width)


@windows.mistake
def negative_start(T, width):
    """The first rows are empty: i − width + 1 is negative there, and a slice counts that from
    the end. Start at max(0, i - width + 1)."""
    mask = np.zeros((T, T), dtype=bool)
    for i in range(T):
        mask[i, i - width + 1 : i + 1] = True
    return mask


@windows.mistake
def early_rows_missing(T, width):
    """The first width − 1 rows are empty, because they have fewer keys than width. Such a query
    reads those that there are, down to key 0."""
    mask = window_mask(T, width)
    mask[: width - 1] = False
    return mask


@windows.mistake
def wraps_around(T, width):
    """The window wraps around: the first queries read the end of the sentence, which is the future.
    Keys after the query are hidden: j <= i."""
    i, j = np.arange(T)[:, None], np.arange(T)
    return (i - j) % T < width


@windows.mistake
def window_of_numbers(T, width):
    """These are numbers, not True and False. The mask must be boolean: dtype=bool."""
    return window_mask(T, width).astype(float)


@windows.mistake
def window_of_whole_numbers(T, width):
    """These are whole numbers (int), not True and False. The mask must be boolean: dtype=bool."""
    return window_mask(T, width).astype(int)


# ---------------------------------------------------------------- length_mask


def length_mask(lengths: np.ndarray, T: int) -> np.ndarray:
    """Allow the first lengths[b] keys of sentence b: (B,) whole numbers → (B, 1, T) bool.

    As `sequence_mask` in TensorFlow, with an axis for the queries.
    """
    return (np.arange(T) < np.asarray(lengths)[:, None])[:, None, :]


by_length = Exercise(
    length_mask,
    notebook="06",
    level=1,
    minutes=5,
    task="Make the padding mask from the lengths of the sentences, without any ids. Here all "
    "padding stands on the right, and T is the padded length.",
    hints=(
        "In a sentence of 3 words, which of the positions 0 … T − 1 are real?",
        "Compare the row of positions with the column of lengths, then add the axis of queries.",
        "`return (np.arange(T) < lengths[:, None])[:, None, :]`",
    ),
)
by_length.probe("a sentence of two words", np.array([2]), 3)
by_length.probe("two sentences", np.array([3, 1]), 4)
by_length.probe("a full sentence", np.array([2, 5, 4]), 5)
by_length.probe("a sentence without words", np.array([0, 2, 1, 3]), 3)
by_length.probe("padded further than the longest", np.array([1, 3]), 6)
by_length.probe("as many sentences as positions", np.array([3, 1, 2]), 3)


@by_length.mistake
def one_position_too_many(lengths, T):
    """One position too many is real (<= instead of <): off by one. A sentence of 3 words has the
    positions 0, 1 and 2."""
    return (np.arange(T) <= lengths[:, None])[:, None, :]


@by_length.mistake
def one_position_too_few(lengths, T):
    """The last real word is hidden: off by one. Positions count from 0, so those below the length
    are real."""
    return (np.arange(T) < lengths[:, None] - 1)[:, None, :]


@by_length.mistake
def lengths_inverted(lengths, T):
    """The mask is inverted: True marks the padding. True has to mark real words, the
    positions below the length."""
    return ~length_mask(lengths, T)


@by_length.mistake
def beyond_the_length(lengths, T):
    """True marks positions beyond the length (> instead of <): the comparison is the wrong way
    round. Real are the positions below the length."""
    return (np.arange(T) > lengths[:, None])[:, None, :]


@by_length.mistake
def length_only(lengths, T):
    """True marks a single position (==). Real are all positions below the length: <."""
    return (np.arange(T) == lengths[:, None])[:, None, :]


@by_length.mistake
def all_but_one(lengths, T):
    """Only the position equal to the length is hidden (!=). Hidden are that and all after it: real
    are the positions below the length, <."""
    return (np.arange(T) != lengths[:, None])[:, None, :]


@by_length.mistake
def no_query_axis(lengths, T):
    """The mask is (B, T) and needs an axis for the queries: (B, 1, T), with [:, None, :]."""
    return length_mask(lengths, T)[:, 0]


@by_length.mistake
def query_axis_last(lengths, T):
    """The new axis stands last, (B, T, 1), so queries would be hidden instead of keys. Put it in
    the middle: (B, 1, T)."""
    return length_mask(lengths, T).transpose(0, 2, 1)


@by_length.mistake
def query_axis_first(lengths, T):
    """The new axis stands first, (1, B, T), so sentences would be taken for queries. Put it in the
    middle: (B, 1, T)."""
    return length_mask(lengths, T).transpose(1, 0, 2)


@by_length.mistake
def square_for_each_sentence(lengths, T):
    """The mask is repeated for each query, (B, T, T). One row is enough, (B, 1, T): broadcasting
    spreads it."""
    return np.repeat(length_mask(lengths, T), T, axis=1)


@by_length.mistake
def padding_in_front(lengths, T):
    """The words are put on the right and the padding on the left. Here padding stands on the right:
    the first positions are real."""
    return length_mask(lengths, T)[..., ::-1]


@by_length.mistake
def T_ignored(lengths, T):
    """The mask is as wide as the longest sentence, and T is not used. The batch may be padded
    further: T positions."""
    return length_mask(lengths, int(lengths.max()))


@by_length.mistake
def first_length_for_all(lengths, T):
    """The length of the first sentence is used for all. Each sentence has its own: lengths[:, None]
    against the positions."""
    return length_mask(np.full_like(lengths, lengths[0]), T)


@by_length.mistake
def floats_for_lengths(lengths, T):
    """These are the numbers 0 and 1, not True and False. The mask must be boolean, as the
    comparison gives it."""
    return length_mask(lengths, T).astype(float)


@by_length.mistake
def whole_numbers_for_lengths(lengths, T):
    """These are the whole numbers 0 and 1 (int), not True and False. The mask must be boolean, as
    the comparison gives it."""
    return length_mask(lengths, T).astype(int)
