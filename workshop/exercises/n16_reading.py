"""Notebook 16: what a head copies, and what the residual stream says on the way."""

import numpy as np

from workshop.exercises.exercise import Draw, Exercise, numbers

# ---------------------------------------------------------------- copying_score


def copying_score(E: np.ndarray, W_v: np.ndarray, W_o: np.ndarray, U: np.ndarray) -> float:
    """How many tokens a head raises above all others when it reads them: 0 … 1.

    E (V, D) what the head reads of each token, W_v (D, d), W_o (d, D), U (D, V): the share of rows
    of E W_v W_o U whose largest number is that of the token itself. Raises ValueError for shapes
    that do not fit. The OV circuit of Elhage et al. (2021).
    """
    if E.shape[0] != U.shape[1]:
        raise ValueError(
            f"E has {E.shape[0]} rows, but must have one for each column of U {U.shape}"
        )
    logits = E @ W_v @ W_o @ U  # (V, V)
    return float((logits.argmax(axis=1) == np.arange(len(E))).mean())


copying = Exercise(
    copying_score,
    notebook="16",
    level=2,
    minutes=10,
    task="A head reads one token alone, with all of its attention. What it adds to the logits is "
    "one row of E W_v W_o U. Give the share of tokens whose own logit is the largest of their row: "
    "1.0 for a head that copies whatever it reads.",
    hints=(
        "The product of the four has one row for each token that is read, and one column for each "
        "token that could come next. Which entry of row i belongs to the token itself?",
        "argmax along each row says which token is raised most. Compare it with 0, 1, 2, …, and "
        "take the mean of what is True.",
        "`logits = E @ W_v @ W_o @ U`, then `return (logits.argmax(axis=1) == "
        "np.arange(len(E))).mean()`",
    ),
)
copying.answer("""
    def copying_score(E, W_v, W_o, U):
        logits = E @ W_v @ W_o @ U  # (V, V): read, raised
        return (logits.argmax(axis=1) == np.arange(len(E))).mean()
""")
copying.answer("""
    def copying_score(E, W_v, W_o, U):
        logits = (E @ W_v) @ (W_o @ U)
        own = np.diag(logits)
        return float(np.mean(own == logits.max(axis=-1)))
""")
copying.answer("""
    def copying_score(E, W_v, W_o, U):
        hits = 0
        for i in range(len(E)):
            raised = E[i] @ W_v @ W_o @ U
            if np.argmax(raised) == i:
                hits += 1
        return hits / len(E)
""")
copying.answer("""
    import torch

    def copying_score(E, W_v, W_o, U):
        logits = E @ W_v @ W_o @ U
        hits = logits.argmax(dim=-1) == torch.arange(len(logits))
        return hits.double().mean()
""")
copying.why(
    "E @ W_v @ W_o @ U | (E @ W_v) @ (W_o @ U) | E[i] @ W_v @ W_o @ U",
    "What is read becomes a value, what the head writes, and then logits.",
)
copying.why(
    "logits.argmax(axis=1) | np.argmax(raised) | logits.max(axis=-1) | axis=1 | axis=-1 | dim=-1 | "
    "logits.argmax(dim=-1)",
    "Of each token that is read, one row: which token does the head raise most?",
)
copying.why(
    "np.arange(len(E)) | == i | np.diag(logits) | torch.arange(len(logits))",
    "It is a copy if the token that is raised most is the one that was read.",
)
copying.why(
    ".mean() | np.mean(own == logits.max(axis=-1)) | hits / len(E) | hits.double().mean()",
    "The share of tokens that are copied, between 0 and 1.",
)


def rows(*shape: int) -> Draw:
    return 0.7 * numbers(*shape)


TABLE = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]])
copying.probe("three tokens, all copied", TABLE, np.eye(2), np.eye(2), TABLE.T)
copying.probe("three tokens, one copied", TABLE, np.diag([1.0, -1.0]), np.eye(2), TABLE.T)
copying.probe("none copied", TABLE, np.eye(2), -np.eye(2), TABLE.T)
copying.probe("random numbers", rows(7, 5), rows(5, 3), rows(3, 5), rows(5, 7))
copying.probe("twelve tokens", rows(12, 6), rows(6, 4), rows(4, 6), rows(6, 12))
TURNED = numbers(9, 9).then(lambda x: np.linalg.qr(x)[0])
copying.probe("nine tokens at right angles", TURNED, rows(9, 4), rows(4, 9), rows(9, 9))
copying.probe("most tokens copied", np.eye(5), np.eye(5), np.eye(5), np.eye(5) + np.eye(5, k=2) * 2)


@copying.mistake
def columns_in_place_of_rows(E, W_v, W_o, U):
    """The largest of each column is looked for: who raises this token most? Ask of each token that
    is read, a row, which token it raises most."""
    logits = E @ W_v @ W_o @ U
    return (logits.argmax(axis=0) == np.arange(len(E))).mean()


@copying.mistake
def smallest_of_the_row(E, W_v, W_o, U):
    """The smallest of each row is taken. A head copies where the token's own logit is the
    largest."""
    logits = E @ W_v @ W_o @ U
    return (logits.argmin(axis=1) == np.arange(len(E))).mean()


@copying.mistake
def raised_at_all(E, W_v, W_o, U):
    """A token counts as soon as its own logit is above 0. Others may be raised more: it must be the
    largest of its row."""
    return (np.diag(E @ W_v @ W_o @ U) > 0).mean()


@copying.mistake
def counted_and_not_shared(E, W_v, W_o, U):
    """This is the number of tokens that are copied. Divide it by the number of tokens, so that it
    lies between 0 and 1."""
    return copying_score(E, W_v, W_o, U) * len(E)


@copying.mistake
def attention_left_out(E, W_v, W_o, U):
    """Table and output alone are multiplied. The head stands between them: E W_v W_o U."""
    return ((E @ U).argmax(axis=1) == np.arange(len(E))).mean()


# ---------------------------------------------------------------- logit_lens


def logit_lens(stream: np.ndarray, gain: np.ndarray, shift: np.ndarray, W_U: np.ndarray,
               eps: float = 1e-5) -> np.ndarray:  # fmt: skip
    """Read logits off a residual stream: (L + 1, T, D) → (L + 1, T, V), by the last norm and W_U.

    LayerNorm of each row with gain (D,) and shift (D,), then W_U (D, V). Raises ValueError for
    shapes that do not fit. nostalgebraist (2020).
    """
    if stream.shape[-1] != len(W_U):
        raise ValueError(f"stream has shape {stream.shape}, but must have width {len(W_U)}")
    mean = stream.mean(axis=-1, keepdims=True)
    variance = ((stream - mean) ** 2).mean(axis=-1, keepdims=True)
    return ((stream - mean) / np.sqrt(variance + eps) * gain + shift) @ W_U


lens = Exercise(
    logit_lens,
    notebook="16",
    level=2,
    minutes=10,
    task="Read the residual stream as if no layer came after it: normalise each vector as the last "
    "LayerNorm does (mean, variance, `eps`, then `gain` and `shift`), and multiply by the output "
    "matrix W_U. All depths and tokens at once.",
    hints=(
        "Which two steps lie between the residual stream after the last layer and the logits?",
        "Mean and variance run over the last axis, the features, and keep it. The normalised "
        "vector times gain plus shift is what W_U reads.",
        "`mean = stream.mean(axis=-1, keepdims=True)`, `variance = stream.var(axis=-1, "
        "keepdims=True)`, then `return ((stream - mean) / np.sqrt(variance + eps) * gain + shift) "
        "@ W_U`",
    ),
)
lens.answer("""
    def logit_lens(stream, gain, shift, W_U, eps=1e-5):
        mean = stream.mean(axis=-1, keepdims=True)
        variance = stream.var(axis=-1, keepdims=True)
        return ((stream - mean) / np.sqrt(variance + eps) * gain + shift) @ W_U
""")
lens.answer("""
    def logit_lens(stream, gain, shift, W_U, eps=1e-5):
        centred = stream - stream.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        normal = centred / (variance + eps) ** 0.5
        return (gain * normal + shift) @ W_U
""")
lens.answer("""
    from helpers.blocks import layer_norm

    def logit_lens(stream, gain, shift, W_U, eps=1e-5):
        return layer_norm(stream, gain, shift, eps) @ W_U
""")
lens.answer("""
    import torch
    import torch.nn.functional as F

    def logit_lens(stream, gain, shift, W_U, eps=1e-5):
        return F.layer_norm(stream, stream.shape[-1:], gain, shift, eps) @ W_U
""")
lens.why(
    "stream.mean(axis=-1, keepdims=True) | stream - mean | axis=-1 | keepdims=True | "
    "stream - stream.mean(axis=-1, keepdims=True)",
    "Each vector is centred by its own mean, over its features.",
)
lens.why(
    "np.sqrt(variance + eps) | (variance + eps) ** 0.5 | variance + eps | eps | "
    "stream.var(axis=-1, keepdims=True) | (centred**2).mean(axis=-1, keepdims=True)",
    "Divide by the standard deviation, with eps under the root as in LayerNorm.",
)
lens.why(
    "* gain + shift | gain * normal + shift | gain | shift | "
    "layer_norm(stream, gain, shift, eps) | "
    "F.layer_norm(stream, stream.shape[-1:], gain, shift, eps)",
    "The last norm has learned a gain and a shift for each feature.",
)
lens.why("@ W_U | W_U", "The output matrix turns a vector into one logit for each token.")
lens.probe(
    "one vector of two features",
    np.array([[[1.0, 3.0]]]),
    np.ones(2),
    np.zeros(2),
    np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
)
lens.probe("three depths", rows(3, 4, 6), rows(6) + 1, rows(6), rows(6, 5))
lens.probe("a large stream", 40 * rows(2, 3, 8) + 5, rows(8) + 1, rows(8), rows(8, 9))
lens.probe("as many tokens as features", rows(2, 5, 5), rows(5) + 1, rows(5), rows(5, 5))
lens.probe("a small vector and a large eps", 0.1 * rows(2, 3, 4), rows(4) + 1, rows(4),
           rows(4, 6), eps=0.5)  # fmt: skip


def normal(x: np.ndarray, eps: float, axis: int | None = -1) -> np.ndarray:
    mean, variance = x.mean(axis=axis, keepdims=True), x.var(axis=axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


@lens.mistake
def no_norm(stream, gain, shift, W_U, eps=1e-5):
    """The output matrix reads the raw stream. It has only ever seen normalised vectors: apply the
    last LayerNorm first."""
    return stream @ W_U


@lens.mistake
def no_gain_and_shift(stream, gain, shift, W_U, eps=1e-5):
    """The vectors are normalised, but gain and shift are missing. The last norm learned them:
    multiply by gain and add shift."""
    return normal(stream, eps) @ W_U


@lens.mistake
def no_shift(stream, gain, shift, W_U, eps=1e-5):
    """The shift is missing: add it after the gain, before W_U."""
    return (normal(stream, eps) * gain) @ W_U


@lens.mistake
def all_tokens_together(stream, gain, shift, W_U, eps=1e-5):
    """One mean and one variance serve all vectors. Each vector has its own: axis=-1 with
    keepdims=True."""
    return (normal(stream, eps, None) * gain + shift) @ W_U


@lens.mistake
def over_the_tokens(stream, gain, shift, W_U, eps=1e-5):
    """Mean and variance run over the tokens. A norm works on each vector alone, over its features:
    axis=-1."""
    return (normal(stream, eps, -2) * gain + shift) @ W_U


@lens.mistake
def eps_left_out(stream, gain, shift, W_U, eps=1e-5):
    """eps is left out. It stands under the root, beside the variance: sqrt(variance + eps)."""
    return (normal(stream, 0.0) * gain + shift) @ W_U


@lens.mistake
def variance_with_n_minus_one(stream, gain, shift, W_U, eps=1e-5):
    """The variance divides by D - 1, as torch.var does unless told otherwise. LayerNorm divides by
    D."""
    mean, variance = stream.mean(-1, keepdims=True), stream.var(-1, keepdims=True, ddof=1)
    return ((stream - mean) / np.sqrt(variance + eps) * gain + shift) @ W_U


@lens.mistake
def variance_in_place_of_its_root(stream, gain, shift, W_U, eps=1e-5):
    """It divides by the variance. Divide by its root, the standard deviation: sqrt(variance +
    eps)."""
    mean, variance = stream.mean(-1, keepdims=True), stream.var(-1, keepdims=True)
    return ((stream - mean) / (variance + eps) * gain + shift) @ W_U
