"""Notebook 15: a plainer norm, a few experts, a softmax in tiles, a change that is merged."""

import sys

import numpy as np

from helpers import attention as course
from workshop.exercises.exercise import exercise, numbers

rms_norm = exercise(
    """
    def rms_norm(x, gamma, eps=1e-5):
        mean_square = (x**2).mean(axis=-1, keepdims=True)
        return gamma * x / np.sqrt(mean_square + eps)
    """,
    hints="""Notebook 10's LayerNorm, without two of its parts. Which?
    The mean of x**2 over the last axis, keepdims=True; add eps; gamma * x over the root of it.""",
    probes=[("one word", [6.0, 8.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]),
            ("two words", [[6.0, 8.0, 0.0, 0.0], [9.0, -1.0, 0.0, 3.0]], [1.0, 2.0, 0.5, 3.0]),
            ("the heads of a batch", 3 * numbers(2, 3, 4, 6) + 1, numbers(6)),
            ("eps=0.5", [[1.0, 2.0, 2.0, -1.0], [0.0, 0.0, 0.0, 0.0]], [1.0, 2.0, 0.5, 3.0], 0.5)],
    slips="""
    mean-subtracted: mean_square = → x = x - x.mean(axis=-1, keepdims=True)⏎    mean_square =
        The mean is subtracted first: that is LayerNorm. RMSNorm only changes a vector's length.
    root-is-missing: np.sqrt → ∅
        The vector is divided by its mean square, so a longer one comes out shorter. Take the root.
    divided-by-the-length: .mean( → .sum(
        The sum of the squares is taken, so numbers shrink as a vector gets wider. Take their mean.
    absolute-numbers: (x**2) → abs(x)
        This is the root of the mean of the absolute numbers. Take that of the squares: x**2.
    one-root-for-everything: axis=-1,  → ∅
        All words share one root, so a loud word makes the others quiet. Each has its own: axis=-1.
    square-of-the-mean: (x**2).mean(axis=-1, keepdims=True) → x.mean(axis=-1, keepdims=True) ** 2
        The mean is squared. Square each feature first, then take the mean of the squares.
    eps-outside-the-root: np.sqrt(mean_square + eps) → (np.sqrt(mean_square) + eps)
        eps is added after the root. It belongs below it, to the mean square.
    gamma-ignored: gamma * x → x
        gamma is not used. It is learned, one number for each feature, and multiplies the result.
    """,
    story=True,
)  # fmt: skip

route = exercise(
    """
    def route(logits, k):
        smallest = np.sort(logits, axis=-1)[:, -k, None]  # (T, 1): the last that is taken
        chosen = np.where(logits >= smallest, logits, -np.inf)
        return softmax(chosen)
    """,
    hints="""What would the softmax give to an expert whose logit is −∞?
    Find the k-th largest of each row with np.sort; −∞ where a logit is smaller; softmax.""",
    probes=[("one word, two of four experts", [[2.0, 0.0, 1.0, -1.0]], 2),
            ("one expert", [[1.0, 3.0, 2.0]], 1), ("all experts", [[1.0, 3.0, 2.0]], 3),
            ("the best are below zero", [[-5.0, -1.0, -3.0, -2.0]], 2),
            ("five words", numbers(5, 8), 3), ("as many words as experts", 2 * numbers(4, 4), 2),
            ("a loud word and a quiet one", [[999.0, 3.0, 998.0], [0.5, 1.0, -2.0]], 2)],
    slips="""
    not-shared-out-again: softmax(chosen) → np.where(logits >= smallest, softmax(logits), 0)
        The shares are cut after the softmax, and sum to less than 1. Divide them by their sum.
    softmax-over-zeros: -np.inf → 0
        What is cut becomes 0, and softmax gives it a share, for exp(0) is 1. Put −∞ there.
    the-smallest: -k, None → k - 1, None ⊕ >= → <=
        The experts with the smallest logits take the word. Take the k largest.
    equal-shares: softmax(chosen) → (logits >= smallest) / k
        The chosen experts get equal shares. Who fits better takes more: softmax of their logits.
    which-not-how-much: softmax(chosen) → (logits >= smallest) * 1.0
        This says who is chosen, 1 or 0. How much each takes is the softmax of the chosen logits.
    places-for-ranks: logits >= smallest → np.argsort(-logits, axis=-1) < k
        argsort tells which expert comes first, not the rank of each. Compare logits with the k-th.
    shares-of-raw-logits: -np.inf → 0 ⊕ softmax(chosen) → chosen / chosen.sum(-1, keepdims=True)
        The chosen logits are divided by their sum. Some may be below zero: take exp first.
    k-shares-alone: softmax(chosen) → softmax(-np.sort(-logits, axis=-1)[:, :k])
        Only the k shares come back. Each expert has a place, (T, E), and those not chosen get 0.
    one-expert-too-few: >= → >
        One expert too few takes each word: the k-th largest is chosen, too. Compare with ≥.
    """,
)  # fmt: skip

online_softmax = exercise(
    """
    def online_softmax(x, tile):
        largest, total = -np.inf, 0.0
        for start in range(0, x.shape[-1], tile):
            part = x[..., start : start + tile]
            higher = np.maximum(largest, part.max(axis=-1, keepdims=True))
            new = np.exp(part - higher).sum(axis=-1, keepdims=True)
            total = total * np.exp(largest - higher) + new
            largest = higher
        return np.exp(x - largest) / total
    """,
    course=course.online_softmax,
    hints="""A larger number comes: how many times too large is the sum, made with the old one?
    exp(x − new) = exp(x − old) · exp(old − new): multiply the sum by exp(old − new), then add.""",
    probes=[("six scores, tiles of two", [1.0, 3.0, 2.0, 5.0, 4.0, 0.0], 2),
            ("a wider tile", [1.0, 3.0, 2.0], 8), ("tiles of one", [0.0, 2.0, 1.0, 4.0], 1),
            ("a shorter last tile", [2.0, 1.0, 0.0, 3.0, -1.0], 2), ("integers", [3, 1, 6, 4], 2),
            ("huge scores", [[1000.0, 0.0, 998.0], [0.0, 3.0, 1000.0], [-999.0, -998.0, -9.0]], 2),
            ("far apart", [[3000.0, -3000.0, 0.0], [-1000.0, -1001.0, -999.0]], 2),
            ("a batch", 3 * numbers(2, 3, 7), 3)],
    slips="""
    plain-softmax: -np.inf, 0.0 → -np.inf, 0.0⏎    tile = x.shape[-1]
        This is the plain softmax: it adds up a whole row at once. Let the sum grow tile by tile.
    sum-never-shrunk: total * np.exp(largest - higher) → total
        When a larger number comes, the sum so far stays as it was. Multiply it by exp(old − new).
    everything-as-one-row: axis=-1, keepdims=True → ∅
        All rows share one largest and one sum. Each has its own: axis=-1, keepdims=True.
    new-terms-with-the-old-largest: -np.inf, → x[..., :1], ⊕ part - higher → part - largest
        The new tile's terms are made with the old largest. Take the new one for them.
    each-tile-by-itself: np.exp(x - largest) / total → \\
            np.concatenate([*map(softmax, np.split(x, range(tile, x.shape[-1], tile), -1))], -1)
        Each tile sums to 1 by itself. Keep one largest and one sum for the whole row.
    largest-of-the-last-tile: higher = np.maximum(largest, part → higher = (part
        The largest is that of the newest tile, even if an earlier one was larger. Keep the larger.
    largest-never-renewed: -np.inf, → x[..., :1], ⊕ largest = higher → pass
        The largest stays the first one, in spite of larger ones. Renew it after each tile.
    whole-tiles-alone: (0, x.shape[-1], → (0, x.shape[-1] // tile * tile,
        Only whole tiles are read, and of a wider one nothing. Go on to the end of the row.
    last-tile-dropped: (0, x.shape[-1], → (0, max(x.shape[-1] // tile, 1) * tile,
        The last, shorter tile is not read. Go on to the end: a slice beyond it is just shorter.
    one-largest-for-all-rows: part.max(axis=-1, keepdims=True) → part.max()
        All rows share one largest, so rows far below it vanish. Each row has its own: axis=-1.
    largest-from-zero: -np.inf, 0.0 → 0.0, 0.0
        The largest so far begins at 0, so rows far below it vanish. Begin with minus infinity.
    no-largest: np.maximum(largest, part.max(axis=-1, keepdims=True)) → 0.0
        No largest is subtracted, so exp of a large score is infinite. Subtract the largest so far.
    """,
)  # fmt: skip


@online_softmax.experiment("200 rows of twelve, tiles of three")
def how_it_adds(fn):
    """The last bits tell: two ways to add round differently in many of the rows."""
    x = np.float32(np.random.default_rng(15).normal(np.arange(12) / 20, 0.1, (200, 12)))
    largest = fn(x, 3).max(axis=-1)  # share of each row: 1 / its sum
    e = [np.exp(y - y.max(axis=-1, keepdims=True)) for y in (x, x.astype(float))]
    whole, tiled = [1 / y.sum(-1) for y in e], [1 / y.reshape(200, 4, 3).sum(-1).sum(-1) for y in e]
    if torch := sys.modules.get("torch"):
        y, z = torch.from_numpy(e[0]), torch.from_numpy(x - x.max(axis=-1, keepdims=True))
        whole += [1 / y.sum(-1), 1 / z.exp().sum(-1), z.softmax(-1).amax(-1)]
    alike = [max(np.mean(largest == np.asarray(y)) for y in ways) for ways in (whole, tiled)]
    return {"the sum grows tile by tile": alike[0] < 0.95, "the largest grows too": alike[1] < 0.95}


merge_adapter = exercise(
    """
    def merge_adapter(W, A, B, alpha):
        rank = A.shape[1]
        return W + alpha / rank * (A @ B)
    """,
    hints="""Take x out of the sum: what stands behind it?
    x W + c · x A B = x (W + c · A B), with c = alpha / r; r is A.shape[1].""",
    probes=[("rank one", [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], [[1.0], [2.0]], [[3.0, 0.0, 5.0]], 1),
            ("alpha 4", numbers(3, 5), numbers(3, 1), numbers(1, 5), 4.0),
            ("rank two, alpha 3", numbers(4, 3), numbers(4, 2), numbers(2, 3), 3.0),
            ("rank three, square", numbers(5, 5), numbers(5, 3), numbers(3, 5), 6.0)],
    slips="""
    alpha-alone:  / rank → ∅
        The change is multiplied by alpha alone. It is alpha / r, with the rank r = A.shape[1].
    alpha-left-out: alpha / rank * → ∅
        The change is added as it is. Multiply it by alpha / r first, with the rank r = A.shape[1].
    divided-by-the-width: A.shape[1] → A.shape[0]
        alpha is divided by the number of rows of A. The rank is that of its columns: A.shape[1].
    rank-over-alpha: alpha / rank → rank / alpha
        The rank is divided by alpha. It is the other way round: alpha / r.
    cut-to-a-whole-number: alpha / rank → alpha // rank
        The quotient alpha / r is cut to a whole number: // does that. Divide with /.
    last-part-alone: A @ B → np.outer(A[:, -1], B[-1])
        Only the last column of A meets its row of B: a loop that overwrites? A @ B adds up all.
    the-change-alone: W + → ∅
        This is the change alone. The merged matrix does what both do together: add W.
    writes-into-w: return W + alpha / rank * (A @ B) → W += alpha / rank * (A @ B)⏎    return W
        The sum is written into W, so a second call adds the change again. Make a new matrix.
    """,
)  # fmt: skip
