"""Notebook 05: one row of weights, any axis, the whole head, its logarithm, its module."""

from helpers import attention as course
from workshop.exercises.exercise import exercise, numbers

softmax_row = exercise(
    """
    def softmax_row(scores):
        grown = np.exp(scores)
        return grown / grown.sum()
    """,
    hints="""Which two steps make every number positive, and all of them together one whole?
    np.exp(scores) for the whole row at once; then divide by its sum.""",
    probes=[("three scores", [1.0, 2.0, 3.0]), ("negative scores", [-1.0, 0.5, -3.0]),
            ("whole numbers", [0, 1, 3]), ("six scores by chance", numbers(6))],
    slips="""
    divided-by-the-scores: grown / grown.sum() → grown / scores.sum()
        The exponentials are divided by the sum of the scores. Divide them by their own sum.
    no-exp: np.exp(scores) → scores
        The scores themselves are divided, so a negative one weighs less than 0. Raise e to each.
    running-total: grown.sum() → np.cumsum(grown)
        Each exponential is divided by the sum so far. Divide all by the sum of the whole row.
    no-sum: grown / grown.sum() → grown
        The exponentials are not divided by their sum, so together they do not make 1.
    largest: grown.sum() → grown.max()
        The exponentials are divided by the largest, so that one becomes 1. Divide by their sum.
    minus: np.exp(scores) → np.exp(-scores)
        The sign is turned, so the lowest score gets the largest weight.
    sigmoid: grown / grown.sum() → grown / (1 + grown)
        This is the sigmoid, of each score alone. Divide each exponential by the sum of all.
    exp-of-the-share: grown / grown.sum() → np.exp(scores / scores.sum())
        The division comes before exp. First raise e to each score, then divide by the sum of these.
    """,
    story=True,
)  # fmt: skip

TABLES = [
    ("three scores", [1.0, 2.0, 3.0]),
    ("two rows of three scores", [[1.0, 2.0, 3.0], [1.0, 0.0, -1.0]]),
    ("whole numbers", [[1, 2, 3], [3, 1, 0]]),
    ("the columns, axis=0", numbers(3, 4), 0),
    ("a batch of two", numbers(2, 3, 4)),
    ("the middle axis of a batch", numbers(2, 3, 4), 1),
    ("axis=0 of a cube", numbers(3, 3, 3), 0),
    ("scores around ±1,000", [[1000.0, 1001.0, 1002.0], [-1000.0, -1001.0, -1002.0]]),
    ("rows from -1,000 to 1,000", [[1000.0, -1000.0, -1000.0], [-1000.0, 999.0, 1000.0]]),
    ("scores around 600", [[600.0, 601.0, 599.0], [1.0, -600.0, 0.0]]),
    ("one score far below", [[0.0, 1.0, -1000.0], [-1000.0, 1.0, 0.0]]),
    ("rows far apart", [[0.0, 1.0], [900.0, 901.0]]),
]

SelfAttention = exercise(
    """
    class SelfAttention(nn.Module):
        def __init__(self, d_in, d_out):
            super().__init__()
            self.W_q = nn.Linear(d_in, d_out, bias=False)
            self.W_k = nn.Linear(d_in, d_out, bias=False)
            self.W_v = nn.Linear(d_in, d_out, bias=False)

        def forward(self, x):
            Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)
            scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
            return torch.softmax(scores, dim=-1) @ V
    """,
    hints="""What is made once, and kept, and what is done anew for each x?
    The three maps in __init__; in forward Q, K, V, the scores divided by √d_out, softmax, @ V.""",
    slips="""
    with-bias: , bias=False → ∅
        The maps have a bias, so there are more parameters than asked for: bias=False.
    not-scaled: / K.shape[-1] ** 0.5 → ∅
        The scores are not divided by √d_out, the root of a key's width.
    scaled-by-the-input: K.shape[-1] ** 0.5 → x.shape[-1] ** 0.5
        The scale comes from the width of x. A score sums as many products as a key has features.
    divided-by-the-width: K.shape[-1] ** 0.5 → K.shape[-1]
        The scores are divided by d_out itself: its root is missing.
    no-softmax: torch.softmax(scores, dim=-1) → scores
        The softmax is missing: a row of weights sums to anything.
    softmax-over-the-queries: dim=-1 → dim=-2
        The softmax runs over the queries. Each query shares out its attention over the keys.
    softmax-over-axis-1: dim=-1 → dim=1
        The softmax runs along axis 1: for a batch these are the queries. The keys are the last.
    one-sentence-only: K.transpose(-2, -1) → K.T
        K.T turns all axes around. For a batch swap the last two alone: K.transpose(-2, -1).
    keys-in-place-of-values: dim=-1) @ V → dim=-1) @ K
        The weights mix the keys. What is read are the values.
    query-map-twice: self.W_k(x) → self.W_q(x)
        The keys are made with W_q, and W_k is never used: each role has its own map.
    weights-too: return torch.softmax(scores, dim=-1) @ V → \\
            return torch.softmax(scores, dim=-1) @ V, torch.softmax(scores, dim=-1)
        It returns two things, context and weights. Asked for are the context vectors alone.
    """,
    backends=("torch",),
)
SelfAttention.module("its parameters, and one sentence", (3, 2), numbers(4, 3))
SelfAttention.module("more features out than in", (3, 5), numbers(6, 3))
SelfAttention.module("a batch of two", (4, 3), numbers(2, 5, 4))
SelfAttention.module("as many sentences as words and features", (3, 3), numbers(3, 3, 3))

softmax = exercise(
    """
    def softmax(x, axis=-1):
        grown = np.exp(x - x.max(axis=axis, keepdims=True))
        return grown / grown.sum(axis=axis, keepdims=True)
    """,
    course=course.softmax,
    hints="""What does np.exp(1000) give, and what changes if all scores get smaller by a number?
    Subtract the largest along the axis, take exp, divide by the sum along it; keepdims=True.""",
    probes=TABLES,
    slips="""
    overflows: x - x.max(axis=axis, keepdims=True) → x
        exp overflows to inf for large scores, and inf / inf is nan. Subtract each row's max first.
    one-maximum-for-everything: x.max(axis=axis, keepdims=True) → x.max()
        One maximum serves all: rows far below become 0 / 0. Take the max of each row, along axis.
    one-sum-for-everything: grown.sum(axis=axis, keepdims=True) → grown.sum()
        All entries of the array together sum to 1. Each row needs its own sum: sum along axis.
    everything-as-one-row: (axis=axis, keepdims=True) → ()
        The whole array is taken for one row. Each row has its own maximum and sum, along axis.
    always-the-last-axis: axis=axis → axis=-1
        The axis argument is ignored. The caller chooses the axis of maximum and sum.
    no-keepdims: , keepdims=True → ∅
        Maximum and sum lose their axis, and meet other rows than their own: keepdims=True.
    no-keepdims-in-the-sum: grown.sum(axis=axis, keepdims=True) → grown.sum(axis=axis)
        The sum loses its axis, and divides other rows than its own: keepdims=True keeps it.
    cut-to-whole-numbers: grown / grown.sum(axis=axis, keepdims=True) → \\
            (grown / grown.sum(axis=axis, keepdims=True)).astype(x.dtype)
        Whole-number input is cut: an array made like x, as by zeros_like, stores 0.7 as 0.
    clipped: x - x.max(axis=axis, keepdims=True) → np.clip(x, -500, 500)
        Large numbers are clipped, so different scores become equal. Subtract the row's max instead.
    quotient-inside-exp: grown / grown.sum(axis=axis, keepdims=True) → \\
            np.exp(x / np.exp(x).sum(axis=axis, keepdims=True))
        The division stands inside the exponential. First exp, then divide by the sum of these.
    sigmoid: grown / grown.sum(axis=axis, keepdims=True) → 1 / (1 + np.exp(-x))
        This is the sigmoid, of each number alone. Divide each exponential by the sum of its row.
    log-softmax: grown / grown.sum(axis=axis, keepdims=True) → \\
            x - x.max(axis=axis, keepdims=True) - np.log(grown.sum(axis=axis, keepdims=True))
        These are the logarithms of the weights. Asked for are the weights: exp, divided by the sum.
    """,
)

attention = exercise(
    """
    def attention(Q, K, V):
        scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
        weights = softmax(scores, axis=-1)
        return weights @ V
    """,
    course=course.attention,
    hints="""For a single query: what are its scores, its weights, and what do the weights mix?
    Divide the scores by the root of a key's width, softmax over the keys, times V.""",
    probes=[("one query and two keys", [[2.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]],
             [[10.0, 0.0, 4.0], [0.0, 10.0, -2.0]]),
            ("three queries, five keys", numbers(3, 2), numbers(5, 2), numbers(5, 4)),
            ("more queries than keys", numbers(5, 6), numbers(2, 6), numbers(2, 3)),
            ("four words, width 4 everywhere", numbers(4, 4), numbers(4, 4), numbers(4, 4)),
            ("a batch of two sentences", numbers(2, 3, 5), numbers(2, 4, 5), numbers(2, 4, 6)),
            ("three sentences, words and features", numbers(3, 3, 3), numbers(3, 3, 3),
             numbers(3, 3, 3)),
            ("two batch axes", numbers(2, 3, 2, 7), numbers(2, 3, 5, 7), numbers(2, 3, 5, 4))],
    slips="""
    not-scaled: / np.sqrt(K.shape[-1]) → ∅
        The scores are not scaled, so the softmax gets too sharp. Divide by √d_k before it.
    divided-by-the-width: np.sqrt(K.shape[-1]) → K.shape[-1]
        The scores are divided by d_k itself: the root is missing, or they are scaled twice.
    multiplied-by-the-root: / np.sqrt → * np.sqrt
        The scores are multiplied by √d_k. Divide by it: wide keys must not make a softmax sharp.
    number-of-keys: K.shape[-1] → K.shape[-2]
        The root of the number of keys is taken. A score sums d_k products, the width of a key.
    width-of-values: K.shape[-1] → V.shape[-1]
        The scale comes from the width of V. A score sums d_k products, d_k the width of K.
    no-softmax: softmax(scores, axis=-1) → scores
        The softmax is missing, so a row sums to anything. Softmax over the keys makes shares.
    softmax-over-the-queries: axis=-1 → axis=-2
        The softmax runs over the queries. Each shares out its attention over the keys: axis=-1.
    softmax-along-axis-0: axis=-1 → axis=0
        The softmax runs along axis 0, queries or the batch. Each query shares over keys: axis=-1.
    axis-0-as-width: K.shape[-1] → Q.shape[0]
        The length of axis 0 is taken: queries, or a batch. The scale is the width of a key, d_k.
    softmax-over-everything: softmax(scores, axis=-1) → np.exp(scores) / np.exp(scores).sum()
        All weights of all queries together sum to 1. Each query shares out its own whole.
    scaled-after-softmax: softmax(scores, axis=-1) → \\
            softmax(Q @ np.swapaxes(K, -1, -2)) / np.sqrt(K.shape[-1])
        The scale comes after the softmax, so no row sums to 1 any more. Scale the scores.
    keys-in-place-of-values: weights @ V → weights @ K
        The weights mix the keys, and V is ignored. Keys decide how much is read: of the values.
    queries-and-keys-exchanged: Q @ np.swapaxes(K, -1, -2) → K @ np.swapaxes(Q, -1, -2)
        Keys ask and queries answer: a row belongs to a key. Rows are queries: Q @ Kᵀ.
    as-wide-as-the-queries: weights @ V → np.add(np.zeros_like(Q), weights @ V)
        The result is made as wide as Q. It is as wide as the values: weights @ V.
    weights-too: weights @ V → (weights @ V, weights)
        It returns two things, context and weights. Asked for are the context vectors alone.
    weights-alone: weights @ V → weights
        It returns the weights. Asked for is what they mix: the values.
    flat-transpose: np.swapaxes(K, -1, -2) → K.T
        K is transposed with all its axes, the batch too, as K.T does it. Swap the last two alone.
    """,
)  # fmt: skip

log_softmax = exercise(
    """
    def log_softmax(x, axis=-1):
        s = x - x.max(axis=axis, keepdims=True)
        return s - np.log(np.exp(s).sum(axis=axis, keepdims=True))
    """,
    ways=["""
    def log_softmax(x, axis=-1):
        m = x.max(axis=axis, keepdims=True)
        return x - (m + np.log(np.exp(x - m).sum(axis=axis, keepdims=True)))
    """],
    hints="""What is log(exp(a) / b), written without an exp?
    It is a - log(b): a is x less the largest of its row, b the sum of the exp of that.""",
    probes=TABLES,
    slips="""
    log-of-zero: s - np.log(np.exp(s).sum(axis=axis, keepdims=True)) → \\
            np.log(np.exp(s) / np.exp(s).sum(axis=axis, keepdims=True))
        A weight too small for a float is 0, and its log −∞. log(exp(a) / b) is a − log(b).
    log-of-an-overflow: s - np.log(np.exp(s).sum(axis=axis, keepdims=True)) → \\
            np.log(np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True))
        exp overflows, and the log of inf / inf is nan. Subtract the max of each row first.
    overflows: x - x.max(axis=axis, keepdims=True) → x
        exp overflows, or vanishes far below zero. Subtract the max of each row first.
    small-number-added: s - np.log(np.exp(s).sum(axis=axis, keepdims=True)) → \\
            np.log(np.exp(s) / np.exp(s).sum(axis=axis, keepdims=True) + 1e-9)
        A small number is added, so all tiny weights get one logarithm. Write a − log(b) instead.
    tiny-number-added: s - np.log(np.exp(s).sum(axis=axis, keepdims=True)) → \\
            np.log(np.exp(s) / np.exp(s).sum(axis=axis, keepdims=True) + 1e-12)
        A tiny number is added before the log, so that all small weights get the same logarithm.
    maximum-lost: return s - np.log → return x - np.log
        The largest number was subtracted inside exp, and not outside the log: it must count once.
    always-the-last-axis: axis=axis → axis=-1
        The axis argument is ignored. The caller chooses along which axis the weights sum to 1.
    one-maximum-for-everything: x.max(axis=axis, keepdims=True) → x.max()
        One maximum serves all, so rows far below it vanish: log of 0. Take the max along axis.
    """,
)  # fmt: skip
