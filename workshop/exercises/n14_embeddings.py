"""Notebook 14: one vector for each sentence, and how alike two vectors are."""

import numpy as np

from workshop.exercises.exercise import Draw, Exercise, drawn, numbers

# ---------------------------------------------------------------- mean_pool


def mean_pool(hidden: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """One vector for each sentence, the mean of its real tokens: (B, T, D), (B, T) bool → (B, D).

    Padding counts neither in the sum nor in the number of tokens, wherever it stands. A sentence
    without a real token gets zeros. Raises ValueError for a mask of another shape or type.
    Reimers and Gurevych (2019), Sentence-BERT.
    """
    if is_real.shape != hidden.shape[:2] or is_real.dtype != bool:
        given = f"{is_real.dtype} {is_real.shape}"
        raise ValueError(f"is_real is {given}, but must be bool {hidden.shape[:2]}")
    total = np.where(is_real[..., None], hidden, 0).sum(axis=1)  # (B, D)
    count = is_real.sum(axis=1)  # (B,)
    return total / np.maximum(count, 1)[:, None]


pooling = Exercise(
    mean_pool,
    notebook="14",
    level=2,
    minutes=10,
    task="Make one vector of each sentence: the mean of its real tokens, where `is_real` is True. "
    "Padding may stand on either side and counts nowhere; a sentence without a real token gets "
    "zeros.",
    hints=(
        "A sentence has three real tokens and two of padding. What must be added up, and by what "
        "must it be divided?",
        "Set the vectors of padding to 0 with is_real[..., None], which has the shape (B, T, 1), "
        "and sum over the tokens, axis=1. Divide by the number of real tokens, and by 1 where "
        "there is none.",
        "`total = (hidden * is_real[..., None]).sum(axis=1)`, `count = is_real.sum(axis=1)`, "
        "then `return total / np.maximum(count, 1)[:, None]`",
    ),
)
pooling.answer("""
    def mean_pool(hidden, is_real):
        total = (hidden * is_real[..., None]).sum(axis=1)  # (B, D)
        count = is_real.sum(axis=1)  # (B,)
        return total / np.maximum(count, 1)[:, None]
""")
pooling.answer("""
    def mean_pool(hidden, is_real):
        mask = is_real[:, :, None]
        total = np.sum(np.where(mask, hidden, 0), axis=1)
        count = np.sum(mask, axis=1)
        count = np.where(count == 0, 1, count)
        return total / count
""")
pooling.answer("""
    def mean_pool(hidden, is_real):
        B, T, D = hidden.shape
        pooled = np.zeros((B, D))
        for b in range(B):
            real = hidden[b][is_real[b]]
            if len(real) > 0:
                pooled[b] = real.mean(axis=0)
        return pooled
""")
pooling.answer("""
    def mean_pool(hidden, is_real):
        weights = is_real.astype(float)
        total = np.einsum("btd,bt->bd", hidden, weights)
        return total / np.maximum(weights.sum(axis=1, keepdims=True), 1)
""")
pooling.answer("""
    def mean_pool(hidden, is_real):
        total = hidden.masked_fill(~is_real.unsqueeze(-1), 0).sum(dim=1)
        return total / is_real.sum(dim=1, keepdim=True).clamp(min=1)
""")
pooling.why(
    "is_real[..., None] | is_real[:, :, None] | is_real.unsqueeze(-1) | hidden * is_real[..., None]"
    " | np.where(mask, hidden, 0)",
    "The mask, (B, T, 1), keeps the vectors of real tokens, where it is True; those of padding "
    "become 0 and add nothing.",
)
pooling.why(
    "total / count | is_real.sum(axis=1) | np.sum(mask, axis=1) | is_real.sum(dim=1, keepdim=True)"
    " | np.maximum(count, 1) | np.where(count == 0, 1, count) | .clamp(min=1) | len(real) > 0 | "
    "np.maximum(weights.sum(axis=1, keepdims=True), 1)",
    "Each sentence is divided by its own number of real tokens, not by T, and at least by 1: 0 / 0 "
    "would be nan.",
)
pooling.why(
    "sum(axis=1) | sum(dim=1) | real.mean(axis=0)",
    "Tokens lie along axis 1: sum over them, and keep the sentences and the features apart.",
)
pooling.why(
    "np.maximum(count, 1)[:, None] | count[:, None] | sum(axis=1, keepdims=True) | "
    "sum(dim=1, keepdim=True)",
    "One count for each sentence: with an axis of length 1 it divides all features of its own row.",
)
PENCIL = np.array([[[1.0, 2.0], [3.0, 6.0], [8.0, 1.0]]])
CUBE = np.array([[True, True, False], [True, False, True], [False, True, True]])


def lengths(T: int, *real: int, left: bool = False) -> np.ndarray:
    """Which tokens are real in sentences of these lengths: (B, T), padding behind or before."""
    made = np.arange(T) < np.array(real)[:, None]
    return made[:, ::-1].copy() if left else made


def padded(is_real: np.ndarray, D: int) -> Draw:
    """Vectors of tokens around 1, with numbers of ±100 where there is padding."""
    hidden = numbers(*is_real.shape, D) + 1
    return hidden.then(lambda x: np.where(is_real[..., None], x, 100 * np.sign(x)))


pooling.probe("two words and one padding", PENCIL, np.array([[True, True, False]]))
pooling.probe("one sentence without padding", PENCIL, np.array([[True, True, True]]))
pooling.probe("a batch of two sentences", padded(lengths(4, 4, 2), 3), lengths(4, 4, 2))
pooling.probe(
    "padding on the left", padded(lengths(5, 5, 3, left=True), 3), lengths(5, 5, 3, left=True)
)
pooling.probe("as many sentences, tokens and features", padded(CUBE, 3), CUBE)
HOLES = np.array([[True, False, True, True], [False, True, False, True]])
pooling.probe("padding between words", padded(HOLES, 6), HOLES)
pooling.probe("three sentences of one word each", numbers(3, 1, 4), np.ones((3, 1), bool))
pooling.probe(
    "a real token of zeros",
    np.array([[[4.0, 2.0], [0.0, 0.0], [7.0, 7.0], [0.0, 0.0]]]),
    np.array([[True, True, False, False]]),
)
pooling.probe("five sentences", padded(lengths(7, 3, 7, 1, 5, 2), 4), lengths(7, 3, 7, 1, 5, 2))
pooling.probe("a sentence of padding alone", padded(lengths(3, 0, 2, 3), 3), lengths(3, 0, 2, 3))


def counted(is_real: np.ndarray) -> np.ndarray:
    """The number of real tokens of each sentence, at least 1: (B, 1)."""
    return np.maximum(is_real.sum(axis=1, keepdims=True), 1)


def real_sum(hidden: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """The sum over the real tokens, (B, D)."""
    return np.where(is_real[..., None], hidden, 0).sum(axis=1)


@pooling.mistake
def padding_not_left_out(hidden, is_real):
    """is_real is not used: the mean runs over all T tokens, padding too. Sum only the real tokens
    of each sentence, and divide by their number."""
    return hidden.mean(axis=1)


@pooling.mistake
def not_divided(hidden, is_real):
    """The sum is returned, not the mean, so that long sentences get long vectors. Divide by the
    number of real tokens of each sentence."""
    return real_sum(hidden, is_real)


@pooling.mistake
def mask_inverted(hidden, is_real):
    """The mask is inverted: the padding is averaged, and the real tokens are left out. True in
    is_real marks a token that counts."""
    return real_sum(hidden, ~is_real) / counted(~is_real)


@pooling.mistake
def all_sentences_in_one(hidden, is_real):
    """All sentences of the batch become one vector, (D,), as where the mask picks their real tokens
    into one list. Keep them apart: a mean for each sentence."""
    return hidden[is_real].mean(axis=0)


@pooling.mistake
def first_tokens(hidden, is_real):
    """It takes as many tokens from the front as are real, as if padding always stood behind.
    Padding may stand on either side: the mask says where."""
    front = np.arange(is_real.shape[1]) < is_real.sum(axis=1, keepdims=True)
    return real_sum(hidden, front) / counted(is_real)


@pooling.mistake
def first_token_alone(hidden, is_real):
    """It returns the vector of the first token, [CLS], which some models are trained to use. This
    one is read by the mean over all real tokens."""
    return hidden[:, 0]


# ---------------------------------------------------------------- cosine_similarity


def unit(x: np.ndarray) -> np.ndarray:
    """Each row divided by its length; a row of zeros stays."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length == 0, 1, length)


def cosine_similarity(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The cosine of each row of A with each row of B: (M, D), (N, D) → (M, N).

    A row of zeros has no direction: its cosine is 0 with everything. Raises ValueError where the
    widths differ. Salton, Wong and Yang (1975).
    """
    if A.shape[-1] != B.shape[-1]:
        raise ValueError(f"A is {A.shape[-1]} wide and B {B.shape[-1]}, but they must be the same")
    return unit(A) @ unit(B).T


cosine = Exercise(
    cosine_similarity,
    notebook="14",
    level=1,
    minutes=10,
    task="Compare each row of A with each row of B by the cosine of the angle between them, all "
    "pairs at once. A row of zeros has no direction: its cosine is 0 with everything.",
    hints=(
        "What does the dot product of two vectors of length 1 tell you?",
        "Divide each row by its length, np.linalg.norm(A, axis=1, keepdims=True), and by 1 where "
        "that is 0. Then all dot products are one product of matrices.",
        "`a, b = (np.linalg.norm(M, axis=1, keepdims=True) for M in (A, B))`, then `return (A "
        "/ np.where(a == 0, 1, a)) @ (B / np.where(b == 0, 1, b)).T`",
    ),
)
cosine.answer("""
    def cosine_similarity(A, B):
        a = np.linalg.norm(A, axis=1, keepdims=True)  # (M, 1)
        b = np.linalg.norm(B, axis=1, keepdims=True)  # (N, 1)
        return (A / np.where(a == 0, 1, a)) @ (B / np.where(b == 0, 1, b)).T
""")
cosine.answer("""
    def cosine_similarity(A, B):
        a = np.sqrt((A**2).sum(axis=1))
        b = np.sqrt((B**2).sum(axis=1))
        lengths = a[:, None] * b[None, :]
        dots = A @ B.T
        return dots / np.where(lengths == 0, 1, lengths)
""")
cosine.answer("""
    def cosine_similarity(A, B):
        result = np.zeros((len(A), len(B)))
        for i in range(len(A)):
            for j in range(len(B)):
                length = np.linalg.norm(A[i]) * np.linalg.norm(B[j])
                if length > 0:
                    result[i, j] = A[i] @ B[j] / length
        return result
""")
cosine.answer("""
    def cosine_similarity(A, B):
        dots = np.einsum("md,nd->mn", A, B)
        lengths = np.outer(np.linalg.norm(A, axis=-1), np.linalg.norm(B, axis=-1))
        return dots / np.maximum(lengths, 1e-12)
""")
cosine.answer("""
    import torch

    def cosine_similarity(A, B):
        a = torch.linalg.norm(A, dim=1, keepdim=True)
        b = torch.linalg.norm(B, dim=1, keepdim=True)
        return (A / a.clamp(min=1e-12)) @ (B / b.clamp(min=1e-12)).T
""")
cosine.why(
    "A / np.where(a == 0, 1, a) | B / np.where(b == 0, 1, b) | a[:, None] * b[None, :] | "
    "dots / np.where(lengths == 0, 1, lengths) | A[i] @ B[j] / length | "
    "np.outer(np.linalg.norm(A, axis=-1), np.linalg.norm(B, axis=-1)) | "
    "np.linalg.norm(A[i]) * np.linalg.norm(B[j])",
    "Long vectors have large dot products: divided by both lengths, only the direction counts.",
)
cosine.why(
    "np.linalg.norm(A, axis=1, keepdims=True) | np.linalg.norm(B, axis=1, keepdims=True) | "
    "np.linalg.norm | np.sqrt((A**2).sum(axis=1)) | np.sqrt((B**2).sum(axis=1)) | "
    "np.sqrt | torch.linalg.norm",
    "A length, or norm, is the square root of the sum of squares, each of its own row.",
)
cosine.why(
    "axis=1 | axis=-1 | dim=1",
    "Each row has a length of its own: sum over its features, the last axis, not over all rows or "
    "numbers.",
)
cosine.why(
    "np.where(a == 0, 1, a) | np.where(b == 0, 1, b) | np.where(lengths == 0, 1, lengths) | "
    "length > 0 | 1e-12 | np.maximum(lengths, 1e-12) | a.clamp(min=1e-12) | b.clamp(min=1e-12)",
    "A row of zeros has length 0, and 0 / 0 is nan; divided by 1 its cosine is 0.",
)
cosine.why(
    "keepdims=True | keepdim=True | a[:, None] | b[None, :]",
    "A column of lengths divides each row by its own; lengths in a row would meet the features.",
)
cosine.why(
    'A @ B.T | .T | np.einsum("md,nd->mn", A, B) | A[i] @ B[j] | @',
    "All pairs at once: rows of A times B transposed are the dot products of all rows, (M, N), A "
    "first.",
)
cosine.probe("one pair", np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]]))
cosine.probe(
    "two rows and three rows",
    np.array([[3.0, 4.0], [2.0, 0.0]]),
    np.array([[1.0, 0.0], [0.0, 5.0], [-6.0, -8.0]]),
)
cosine.probe("four rows and two rows", numbers(4, 3) + 0.5, 3 * numbers(2, 3))
cosine.probe("as many rows as features", 2 * numbers(3, 3), numbers(3, 3) + 1)
cosine.probe("long and short vectors", 1000 * numbers(3, 5), 0.01 * numbers(4, 5))
cosine.probe("very short vectors", 0.001 * numbers(2, 4), 0.001 * numbers(3, 4))
twice = drawn(numbers(4, 6), "the same rows twice")
cosine.probe("the same rows twice", twice, twice.copy())
cosine.probe("384 features", numbers(5, 384) + 0.3, numbers(6, 384) + (-0.3))
cosine.probe(
    "a row of zeros",
    np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]),
    np.array([[0.0, 0.0, 0.0], [2.0, 1.0, -2.0], [0.0, 3.0, 4.0]]),
)
cosine.probe(
    "rows and a feature of zeros",
    np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, -3.0, 0.0]]),
    np.array([[2.0, 1.0, 0.0], [4.0, 3.0, 0.0], [0.0, 0.0, 0.0]]),
)


def norm(x: np.ndarray) -> np.ndarray:
    """The length of each row, (N, 1)."""
    return np.linalg.norm(x, axis=-1, keepdims=True)


def over(x: np.ndarray, length: np.ndarray) -> np.ndarray:
    """A quotient with 1 for a divisor of 0."""
    return x / np.where(length == 0, 1, length)


@cosine.mistake
def zeros_become_nan(A, B):
    """A row of zeros has length 0, and 0 / 0 is nan. It has no direction: divide by 1 there, and
    its cosine is 0 with everything."""
    return (A / norm(A)) @ (B / norm(B)).T


@cosine.mistake
def pair_by_pair(A, B):
    """Row i of A meets only row i of B, so one number for each pair comes out, (M,), or the shapes
    do not fit. Needed are all pairs, (M, N)."""
    return (A * B).sum(axis=-1) / (norm(A) * norm(B))[:, 0]


@cosine.mistake
def root_forgotten(A, B):
    """It divides by the squared lengths: the square root is missing, or it divides twice. A length
    is the square root of the sum of squares; divide by it once."""
    return over(A, norm(A) ** 2) @ over(B, norm(B) ** 2).T


@cosine.mistake
def distance(A, B):
    """It returns 1 - cosine, the cosine distance, which is 0 for the same direction. The similarity
    is the cosine itself, 1 there."""
    return 1 - cosine_similarity(A, B)
