"""Notebook 15: a plainer norm, a few experts, slower pairs, a change that is merged."""

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

slowed_speeds = exercise(
    """
    def slowed_speeds(speeds, factor, trained, least=1.0, most=4.0):
        turns = trained * speeds / (2 * np.pi)
        kept = np.clip((turns - least) / (most - least), 0, 1)
        return kept * speeds + (1 - kept) * speeds / factor
    """,
    hints="""How many turns does each pair make in training: a speed times its places, over 2π?
    kept = (turns − least) / (most − least), cut to 0 … 1; kept · speed + (1 − kept) · slow.""",
    probes=[("4, 2 and half a turn", [3.1416, 1.5708, 0.3927], 2.0, 8),
            ("many turns, and few", [1.0, 0.1, 0.01], 8.0, 128),
            ("eight pairs", [1.0, 0.56, 0.32, 0.18, 0.1, 0.056, 0.032, 0.018], 8.0, 32),
            ("as long as in training", [1.0, 0.3, 0.1], 1.0, 40),
            ("least=2, most=10", [1.0, 0.7, 0.5, 0.3, 0.2, 0.1], 4.0, 64, 2.0, 10.0)],
    slips="""
    all-slowed: kept = np.clip((turns - least) / (most - least), 0, 1) → kept = 0
        All pairs are slowed by the whole factor: plain interpolation. Fast pairs keep their speed.
    radians-for-turns:  / (2 * np.pi) → ∅
        The radians made in training are taken for turns. One turn is 2π radians: divide by 2π.
    one-pi: 2 * np.pi → np.pi
        Turns are counted as half turns. One turn is 2π radians.
    fast-pairs-slowed: kept * speeds + (1 - kept) * speeds / factor → \\
            kept * speeds / factor + (1 - kept) * speeds
        The fast pairs are slowed and the slow ones kept. It is the other way round.
    sharp-edge-at-least: np.clip((turns - least) / (most - least), 0, 1) → (turns > least) * 1.0
        Each pair is kept or slowed, with an edge at `least`. Between `least` and `most`, mix.
    sharp-edge-at-most: np.clip((turns - least) / (most - least), 0, 1) → (turns >= most) * 1.0
        Each pair is kept or slowed, with an edge at `most`. Between `least` and `most`, mix.
    not-cut: np.clip((turns - least) / (most - least), 0, 1) → (turns - least) / (most - least)
        The share kept leaves 0 … 1 beyond the two ends. Cut it there: np.clip(…, 0, 1).
    not-cut-above: np.clip((turns - least) / (most - least), 0, 1) → \\
            np.maximum((turns - least) / (most - least), 0)
        The share kept grows beyond 1, so fast pairs turn faster than in training. Cut it at 1.
    half-and-half: np.clip((turns - least) / (most - least), 0, 1) → \\
            (turns > least) / 2 + (turns >= most) / 2
        Between the ends, all pairs get the same mix. The more turns, the more of its speed is kept.
    share-from-zero: (turns - least) / (most - least) → turns / most
        The share kept grows from no turns on. It begins at `least`: take that off above and below.
    factor-mixed: kept * speeds + (1 - kept) * speeds / factor → \\
            speeds / (kept + (1 - kept) * factor)
        The factors are mixed, and speeds divided by that. Mix the two speeds themselves.
    turns-of-the-long-text: trained * speeds → factor * trained * speeds
        Turns are counted in the longer text. What matters is how many each pair made in training.
    faster: speeds / factor → speeds * factor
        The slow pairs get faster by the factor. A longer text needs slower ones: divide by it.
    """,
)  # fmt: skip

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
