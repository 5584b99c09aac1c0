"""Notebook 13: what batches are made of, pairs and masks, and a softer loss."""

import numpy as np

from workshop.exercises.exercise import Draw, Exercise, numbers


def tokens(size: int, *shape: int) -> Draw:
    """Ids of a vocabulary of this size."""
    return numbers(*shape).then(lambda x: (1000 * x).astype(int) % size)


# ---------------------------------------------------------------- lm_pairs


def lm_pairs(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split texts into what is read and what comes next: (…, T) → (…, T-1), (…, T-1)."""
    return ids[..., :-1], ids[..., 1:]


pairs = Exercise(
    lm_pairs,
    notebook="13",
    level=1,
    minutes=5,
    task="Make inputs and targets for a language model from texts: the target of each token is the "
    "token after it. It works for one text and for any batch of them.",
    hints=(
        "What comes after the last token? And which token is no target, because nothing is before "
        "it?",
        "The inputs are all tokens but the last, the targets all but the first, along the last "
        "axis.",
        "`return ids[..., :-1], ids[..., 1:]`",
    ),
)
pairs.answer("""
    def lm_pairs(ids):
        inputs = ids[..., :-1]
        targets = ids[..., 1:]
        return inputs, targets
""")
pairs.answer("""
    def lm_pairs(ids):
        T = ids.shape[-1]
        x = ids[..., : T - 1]
        y = ids[..., 1:T]
        return x, y
""")
pairs.answer("""
    def lm_pairs(ids):
        return np.delete(ids, -1, axis=-1), np.delete(ids, 0, axis=-1)
""")
pairs.answer("""
    def lm_pairs(ids):
        n = ids.size(-1) - 1
        return ids.narrow(-1, 0, n), ids.narrow(-1, 1, n)
""")
pairs.why(
    "ids[..., :-1] | ids[..., : T - 1] | np.delete(ids, -1, axis=-1)",
    "The inputs leave out the last token: no token comes after it, so it has no target.",
)
pairs.why(
    "ids[..., 1:] | ids[..., 1:T] | np.delete(ids, 0, axis=-1)",
    "The targets are shifted by one: each token is the target of the token just before it, "
    "so the first token is none.",
)
pairs.why(
    "...",
    "Three dots stand for all axes in front, so that one text and any batch of sentences are cut "
    "along their tokens, the last axis.",
)
pairs.why(
    "np.delete(ids, 0, axis=-1)",
    "Tokens lie along the last axis; the axes in front hold the sentences of a batch.",
)
pairs.why(
    "return inputs, targets | return x, y",
    "The inputs come first, then the targets: swapped, a model would learn to write backwards.",
)
pairs.probe("one text of four words", np.array([5, 3, 8, 2]))
pairs.probe("two sentences", np.array([[5, 3, 8, 2, 9], [4, 7, 1, 6, 0]]))
pairs.probe("a text of two words", np.array([6, 3]))
pairs.probe("as many sentences as words", np.array([[3, 1, 4], [1, 5, 9], [2, 6, 8]]))
pairs.probe("words twice, and padding", np.array([[6, 6, 0, 0, 0], [5, 5, 5, 1, 0]]))
pairs.probe("batches of batches", tokens(30, 3, 2, 6))
pairs.probe("sentences of two words", np.array([[7, 4], [8, 1], [2, 3]]))
pairs.probe("a batch of one sentence", np.array([[2, 7, 1, 8]]))


@pairs.mistake
def inputs_and_targets_swapped(ids):
    """Inputs and targets are swapped: the target is the previous token, the one before the input,
    so the model would learn to write backwards. The target is the token after."""
    return ids[..., 1:], ids[..., :-1]


@pairs.mistake
def along_the_first_axis(ids):
    """It cuts along the first axis: right for one text, but of a batch it drops a sentence, and the
    target is the next sentence. Shift along the tokens, the last axis."""
    return ids[:-1], ids[1:]


@pairs.mistake
def targets_not_shifted(ids):
    """Inputs and targets are the same tokens: nothing is shifted, so the model would learn to copy.
    The targets begin one token later than the inputs."""
    return ids[..., :-1], ids[..., :-1]


@pairs.mistake
def along_the_second_axis(ids):
    """It cuts axis 1, which are the tokens only in a batch of two axes: one text alone fails, and
    with more axes in front something else is shifted. The tokens are always the last axis."""
    return ids[:, :-1], ids[:, 1:]


@pairs.mistake
def two_tokens_ahead(ids):
    """The targets are two tokens ahead, shifted twice, and the last one is repeated. Shift by one:
    the target is the very next token, and both results are one shorter than the text."""
    return ids[..., :-1], np.concatenate([ids[..., 2:], ids[..., -1:]], axis=-1)


# ---------------------------------------------------------------- combined_mask


def combined_mask(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """Allow each query the real tokens up to itself: (B, T) ids → (B, 1, T, T) bool.

    A padded query keeps the real tokens before it; the axis of length 1 is for the heads.
    """
    place = np.arange(ids.shape[1])
    is_past = place <= place[:, None]  # (T, T), a row for each query
    is_real = ids != pad_id  # (B, T)
    return is_past & is_real[:, None, None, :]


mask = Exercise(
    combined_mask,
    notebook="13",
    level=2,
    minutes=8,
    task="Build the mask of a decoder that reads a batch of padded sentences: a query may read a "
    "key that is not later than itself and not padding. The mask has an axis of length 1 for the "
    "heads.",
    hints=(
        "Of which token does a row tell what it may read? Which tokens does the word padding hide, "
        "those that ask or those that are read?",
        "Compare a row of positions with a column of them for the past, and the ids with pad_id "
        "for the keys; give both the axes (B, 1, T, T), and join them with &.",
        "`place = np.arange(ids.shape[1])`, then `return (place <= place[:, None]) & (ids != "
        "pad_id)[:, None, None, :]`",
    ),
)
mask.answer("""
    def combined_mask(ids, pad_id):
        place = np.arange(ids.shape[1])
        is_past = place <= place[:, None]  # (T, T), a row for each query
        is_real = ids != pad_id  # (B, T)
        return is_past & is_real[:, None, None, :]
""")
mask.answer("""
    def combined_mask(ids, pad_id):
        B, T = ids.shape
        causal = np.tril(np.ones((T, T), dtype=bool))
        real = (ids != pad_id)[:, None, None, :]
        return causal & real
""")
mask.answer("""
    def combined_mask(ids, pad_id):
        place = np.arange(ids.shape[1])
        is_future = place[None, :] > place[:, None]
        is_padding = (ids == pad_id)[:, None, None, :]
        return ~(is_future | is_padding)
""")
mask.answer("""
    def combined_mask(ids, pad_id):
        B, T = ids.shape
        mask = np.zeros((B, 1, T, T), dtype=bool)
        for b in range(B):
            for q in range(T):
                for k in range(T):
                    mask[b, 0, q, k] = k <= q and ids[b, k] != pad_id
        return mask
""")
mask.answer("""
    import torch

    def combined_mask(ids, pad_id):
        place = torch.arange(ids.shape[1])
        causal = place[None, :] <= place[:, None]
        real = ids != pad_id
        return causal[None, None] & real[:, None, None, :]
""")
mask.why(
    "place <= place[:, None] | np.tril(np.ones((T, T), dtype=bool)) | k <= q | k=0 | k=-1 | "
    "place[None, :] > place[:, None] | place[None, :] <= place[:, None] | causal_mask(T) | "
    "[:, None] >= [None, :] | [None, :] <= [:, None]",
    "A query sees itself and the keys before it: key ≤ query, the diagonal included.",
)
mask.why(
    "ids != pad_id | ids == pad_id | ids[b, k] != pad_id | ids.ne(pad_id)",
    "Padding is the id pad_id and no other: 0 may be a real word.",
)
mask.why(
    "is_real[:, None, None, :] | (ids != pad_id)[:, None, None, :] | real[:, None, None, :] | "
    "(ids == pad_id)[:, None, None, :] | mask[b, 0, q, k]",
    "Padding hides keys, the last axis; the two axes of length 1 before it stand for the heads and "
    "for all queries.",
)
mask.why(
    "is_past & is_real[:, None, None, :] | causal & real | [:, None, None, :] & causal | "
    "causal[None, None] & real[:, None, None, :] | k <= q and ids[b, k] != pad_id",
    "Both must allow a key, and not just either: it is not later, and it is a real word.",
)
mask.why(
    "dtype=bool", "A mask holds True and False: True where a query may read, no numbers or weights."
)
mask.why(
    "place[:, None] | place[None, :]",
    "Queries go down the rows, keys along the columns: a column of positions meets a row of them.",
)
mask.why(
    "np.arange(ids.shape[1]) | ids.shape[1] | B, T = ids.shape",
    "Positions count the T tokens of a sentence, axis 1, not the sentences: the mask is (T, T).",
)
mask.probe("two words and padding", np.array([[5, 7, 0]]), 0)
mask.probe("sentences of different lengths", np.array([[5, 7, 4, 9], [3, 6, 1, 1]]), 1)
mask.probe("padding in front", np.array([[2, 2, 5, 7, 6], [2, 9, 4, 8, 3], [5, 4, 2, 2, 2]]), 2)
mask.probe("no padding, a real word 0", np.array([[0, 3, 0, 5], [4, 0, 1, 0]]), 9)
mask.probe("as many sentences as words", np.array([[4, 9, 9], [4, 5, 9], [4, 5, 6]]), 9)
mask.probe("padding between words", np.array([[3, 8, 4, 8, 5], [8, 3, 8, 8, 4]]), 8)
mask.probe("a single word", np.array([[3], [4]]), 0)
mask.probe("ids on both sides of pad_id", np.array([[1, 9, 5, 5], [5, 2, 8, 5], [9, 5, 1, 2]]), 5)
mask.probe("a long sentence", tokens(6, 2, 120), 3)


def past(ids: np.ndarray) -> np.ndarray:
    """(T, T): query i sees keys 0 … i."""
    return np.tri(ids.shape[1], dtype=bool)


def real_keys(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """(B, 1, 1, T)."""
    return (ids != pad_id)[:, None, None, :]


def square(ids: np.ndarray) -> np.ndarray:
    """All allowed, (B, 1, T, T)."""
    return np.ones((len(ids), 1, ids.shape[1], ids.shape[1]), dtype=bool)


@mask.mistake
def padded_queries_too(ids, pad_id):
    """The rows of padded queries are hidden as well: those rows are empty, and a softmax over
    nothing gives nan. Padding hides keys only, the columns; a padded query is nobody's loss."""
    keys = real_keys(ids, pad_id)
    return past(ids) & keys & keys.swapaxes(-1, -2)


@mask.mistake
def either_instead_of_both(ids, pad_id):
    """The two masks are joined with "or": a key counts as soon as either allows it, so that almost
    nothing is hidden. Both must allow it: join what is allowed with "and"."""
    return past(ids) | real_keys(ids, pad_id)


@mask.mistake
def no_axis_for_the_heads(ids, pad_id):
    """The shape is (B, T, T): the axis for the heads is missing, so that the sentences of a batch
    would be taken for heads. Put an axis of length 1 behind that of the batch."""
    return (past(ids) & real_keys(ids, pad_id))[:, 0]


@mask.mistake
def as_numbers(ids, pad_id):
    """The mask holds numbers, 1 and 0, not True and False: masks were multiplied or made of floats.
    What is allowed is a truth value; join such values with "and"."""
    return (past(ids) & real_keys(ids, pad_id)).astype(float)


# ---------------------------------------------------------------- smoothed_loss


def smoothed_loss(
    logits: np.ndarray, targets: np.ndarray, pad_id: int, smoothing: float = 0.1
) -> float:
    """Cross-entropy with label smoothing: (B, T, V), (B, T) → float, padding left out.

    The target gets 1 - smoothing, and `smoothing` is shared evenly by all V tokens. In nats.
    Szegedy et al. (2016); paper, section 5.4.
    """
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))  # (B, T, V)
    of_target = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]  # (B, T)
    loss = -(1 - smoothing) * of_target - smoothing * log_p.mean(axis=-1)
    return float(loss[targets != pad_id].mean())


smoothed = Exercise(
    smoothed_loss,
    notebook="13",
    level=2,
    minutes=10,
    task="Write the loss with label smoothing: the target counts 1 - smoothing, and the rest is "
    "shared evenly by all V tokens, the target among them. Average over the tokens that are not "
    "padding.",
    hints=(
        "With smoothing 0.1 and V = 5, which share of the answer should each of the five tokens "
        "get?",
        "Compute log p of all tokens. The loss of a place is 1 - smoothing times -log p of the "
        "target, plus smoothing times the mean of -log p over the vocabulary.",
        "`loss = -(1 - smoothing) * log_p_of_target - smoothing * log_p.mean(axis=-1)`, then "
        "`return float(loss[targets != pad_id].mean())`",
    ),
)
smoothed.answer("""
    def smoothed_loss(logits, targets, pad_id, smoothing=0.1):
        z = logits - logits.max(axis=-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        log_p_of_target = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
        loss = -(1 - smoothing) * log_p_of_target - smoothing * log_p.mean(axis=-1)
        return float(loss[targets != pad_id].mean())
""")
smoothed.answer("""
    def smoothed_loss(logits, targets, pad_id, smoothing=0.1):
        V = logits.shape[-1]
        z = logits - np.max(logits, axis=-1, keepdims=True)
        log_p = z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))
        q = (1 - smoothing) * np.eye(V)[targets] + smoothing / V
        loss = -np.sum(q * log_p, axis=-1)
        real = targets != pad_id
        return float(np.sum(loss * real) / np.sum(real))
""")
smoothed.answer("""
    def smoothed_loss(logits, targets, pad_id, smoothing=0.1):
        total, count = 0.0, 0
        for b in range(targets.shape[0]):
            for t in range(targets.shape[1]):
                if targets[b, t] != pad_id:
                    z = logits[b, t] - logits[b, t].max()
                    log_p = z - np.log(np.exp(z).sum())
                    total += -(1 - smoothing) * log_p[targets[b, t]] - smoothing * log_p.mean()
                    count += 1
        return float(total / count)
""")
smoothed.answer("""
    import torch

    def smoothed_loss(logits, targets, pad_id, smoothing=0.1):
        log_p = torch.log_softmax(logits, dim=-1)
        plain = -log_p.gather(-1, targets[..., None])[..., 0]
        loss = (1 - smoothing) * plain - smoothing * log_p.mean(dim=-1)
        return loss[targets != pad_id].mean().item()
""")
smoothed.why(
    "1 - smoothing | - smoothing | -log_p_of_target | -np.sum(q * log_p, axis=-1)",
    "Both parts count -log p: 1 - smoothing of the target's, so that the shares sum to 1, and "
    "smoothing of the mean.",
)
smoothed.why(
    "log_p.mean(axis=-1) | smoothing / V | log_p.mean() | log_p.mean(dim=-1)",
    "All V tokens share smoothing evenly, the target among them: the mean of log p over the "
    "vocabulary.",
)
smoothed.why(
    "logits.max(axis=-1, keepdims=True) | np.max(logits, axis=-1, keepdims=True) | "
    "logits[b, t].max() | torch.log_softmax(logits, dim=-1)",
    "Large logits overflow in exp; less the largest of their own row, none is above 0.",
)
smoothed.why(
    "np.log(np.exp(z).sum(axis=-1, keepdims=True)) | np.log(np.exp(z).sum()) | "
    "np.log(np.sum(np.exp(z), axis=-1, keepdims=True))",
    "The log of the sum over the vocabulary makes logits into log-probabilities, in nats.",
)
smoothed.why(
    "targets != pad_id | targets[b, t] != pad_id | loss[targets != pad_id] | "
    "np.sum(loss * real) / np.sum(real) | np.sum(real)",
    "Padding asks for no word: it counts neither in the sum of losses nor in their number.",
)
smoothed.why(
    "np.take_along_axis(log_p, targets[..., None], axis=-1) | log_p[targets[b, t]] | "
    "log_p.gather(-1, targets[..., None]) | np.eye(V)[targets]",
    "Each place asks for log p of its own target word.",
)
smoothed.why(
    "loss[targets != pad_id].mean() | total / count",
    "One mean over all real tokens: each token counts the same, in short and long sentences.",
)
smoothed.why(
    "axis=-1 | dim=-1",
    "The vocabulary is the last axis: the softmax and the mean of the shares run over its V words.",
)
two_words = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1]]])  # (1, 2, 4)
with_padding = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]]])
smoothed.probe("two words", two_words, np.array([[0, 2]]), 3, 0.1)
smoothed.probe("no smoothing", two_words, np.array([[0, 2]]), 3, 0.0)
smoothed.probe("two words and padding", with_padding, np.array([[0, 2, 3]]), 3, 0.2)
smoothed.probe(
    "sentences of different lengths", numbers(2, 4, 7), np.array([[0, 6, 3, 2], [5, 2, 2, 2]]), 2
)
smoothed.probe("padding in front", numbers(2, 3, 6), np.array([[5, 0, 4], [5, 5, 1]]), 5, 0.3)
smoothed.probe(
    "as many sentences as words",
    2 * numbers(3, 3, 3),
    np.array([[1, 2, 0], [0, 2, 1], [2, 0, 0]]),
    2,
    0.25,
)
smoothed.probe("everything smoothed", numbers(2, 3, 5), np.array([[1, 0, 4], [2, 2, 0]]), 3, 1.0)
smoothed.probe("padding is word 0", numbers(3, 4, 6), tokens(6, 3, 4), 0, 0.2)
smoothed.probe(
    "logits of ±2,000",
    np.array([[[2000.0, 1999.0, -2000.0]], [[-2000.0, -1999.0, -2001.0]]]),
    np.array([[1], [0]]),
    2,
    0.1,
)


def log_probs(logits: np.ndarray) -> np.ndarray:
    """Stable logarithms of softmax."""
    z = logits - logits.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def at_targets(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The entry of each target: (B, T, V) → (B, T)."""
    return np.take_along_axis(scores, targets[..., None], -1)[..., 0]


def softened(log_p: np.ndarray, targets: np.ndarray, smoothing: float) -> np.ndarray:
    """The loss of each place, padding too: (B, T)."""
    return -(1 - smoothing) * at_targets(log_p, targets) - smoothing * log_p.mean(axis=-1)


def losses(logits: np.ndarray, targets: np.ndarray, smoothing: float) -> np.ndarray:
    """The same of logits."""
    return softened(log_probs(logits), targets, smoothing)


@smoothed.mistake
def shared_by_the_others(logits, targets, pad_id, smoothing=0.1):
    """smoothing is shared by the other tokens only, V - 1 of them, without the target. Here all V
    tokens share it, the target too: the mean over the whole vocabulary."""
    log_p = log_probs(logits)
    mine, V = at_targets(log_p, targets), logits.shape[-1]
    loss = -(1 - smoothing) * mine - smoothing * (log_p.sum(axis=-1) - mine) / (V - 1)
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_overflow(logits, targets, pad_id, smoothing=0.1):
    """exp overflows for large logits, or its result rounds to 0 before the log: the loss is nan or
    infinite. Subtract the largest logit of each place first; probabilities stay the same."""
    e = np.exp(logits)
    log_p = np.log(e / e.sum(axis=-1, keepdims=True))
    return float(softened(log_p, targets, smoothing)[targets != pad_id].mean())


@smoothed.mistake
def log_of_rounded_probabilities(logits, targets, pad_id, smoothing=0.1):
    """The log is taken of a finished softmax: a very small probability has been rounded to 0, and
    its log is minus infinity. Subtract the log of the sum from the logits: they stay finite."""
    with np.errstate(divide="ignore"):
        log_p = np.log(np.exp(log_probs(logits)))
    return float(softened(log_p, targets, smoothing)[targets != pad_id].mean())


@smoothed.mistake
def smoothed_padding_in_the_smooth_part(logits, targets, pad_id, smoothing=0.1):
    """The smooth part is averaged over padding too; only the part of the targets leaves it out.
    Put both parts of a place together first, then leave out padding."""
    log_p = log_probs(logits)
    sharp = at_targets(log_p, targets)[targets != pad_id].mean()
    return float(-(1 - smoothing) * sharp - smoothing * log_p.mean())


@smoothed.mistake
def smooths_the_probabilities(logits, targets, pad_id, smoothing=0.1):
    """The prediction is smoothed, inside the log. Label smoothing softens the target, what the
    model should say: a sum of -log p of all tokens, weighted with their shares."""
    p = (1 - smoothing) * np.exp(log_probs(logits)) + smoothing / logits.shape[-1]
    with np.errstate(divide="ignore"):
        loss = -np.log(at_targets(p, targets))
    return float(loss[targets != pad_id].mean())


@smoothed.mistake
def smoothed_without_softmax(logits, targets, pad_id, smoothing=0.1):
    """The softmax is missing: the logits are taken for log-probabilities. The log of the sum of
    their exponentials, over the vocabulary, must be subtracted first."""
    return float(softened(logits, targets, smoothing)[targets != pad_id].mean())


@smoothed.mistake
def smoothed_per_sentence(logits, targets, pad_id, smoothing=0.1):
    """Each sentence is averaged first, then the sentences: words of short ones count more. Average
    once, over all real tokens of the batch."""
    rows = zip(losses(logits, targets, smoothing), targets != pad_id, strict=True)
    return float(np.mean([row[real].mean() for row, real in rows]))
