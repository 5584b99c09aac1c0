"""Notebook 10: LayerNorm, Add & Norm, its module, and the river with the norm before."""

import numpy as np

from helpers import blocks as course
from workshop.exercises.exercise import drawn, exercise, numbers

WORD, OUT = [2.0, 4.0, 4.0, 10.0], [1.0, -2.0, 0.0, 5.0]  # WORD has mean 5, deviation 3
GAMMA, BETA, ONES, ZEROS = [1.0, 2.0, 0.5, 3.0], [0.0, 1.0, -1.0, 2.0], [1.0] * 4, [0.0] * 4
FLAT, FLATTER = [[3.0, 3.003, 3.001, 2.998]], [[1.0, 2.0, 2.0, 1.0]]
MIX = drawn(numbers(5, 5), "sublayers")
THREE = [lambda h: np.tanh(h @ MIX), lambda h: 2 * h[..., ::-1, :] @ MIX, lambda h: 3 * np.cos(h)]
FIVE = numbers(5), numbers(5)  # gamma and beta
ROWS = numbers(4, 5), numbers(4, 5)  # gammas and betas for three sublayers and the last norm

layer_norm = exercise(
    course.layer_norm,
    hints="""Which numbers belong to one word? And how many means does a sentence have?
    Mean and variance over axis=-1, with keepdims; then gamma * (x - mean) / root + beta.""",
    probes=[("one word", [WORD], ONES, ZEROS), ("with a gain and a bias", [WORD], GAMMA, BETA),
            ("two words", [WORD, OUT], GAMMA, BETA), ("three words", numbers(3, 5) + 1, *FIVE),
            ("a batch of two sentences", numbers(2, 3, 5) + 1, *FIVE),
            ("as many words as features", numbers(5, 5, 5) + 1, *FIVE),
            ("equal features", [[3.0] * 4], GAMMA, BETA), ("eps=0.5", FLATTER, GAMMA, BETA, 0.5),
            ("float32 features far from zero",  # lost where squares come before the mean
             numbers(1, 4).then(lambda x: 4096 + np.round(4 * x) / 4), numbers(4), numbers(4))],
    slips="""
    divides-by-variance: np.sqrt(variance + eps) → (variance + eps)
        It divides by the variance, which is a square. Divide by its root, the deviation.
    unbiased: variance = ((x → variance = x.shape[-1] / (x.shape[-1] - 1) * ((x
        The variance divides by d - 1 (unbiased, PyTorch's default). LayerNorm divides by d.
    eps-outside: np.sqrt(variance + eps) → (np.sqrt(variance) + eps)
        eps is added to the standard deviation. It belongs inside the root, to the variance.
    eps-ignored: + eps → + 1e-5
        The argument eps has no effect. Add the caller's own to the variance, not a fixed number.
    eps-missing: variance + eps → variance
        eps is missing: equal features have variance 0, and 0 / 0 is NaN. Add it inside the root.
    length: np.sqrt(variance + eps) → (np.sqrt(variance * x.shape[-1]) + eps)
        It divides by the length of x − mean, √d times the deviation. Divide by the deviation.
    mean-not-subtracted: gamma * (x - mean) → gamma * x
        The mean is not subtracted from x, so a word is not centred on 0.
    rms-norm: mean = x.mean(axis=-1, keepdims=True) → mean = 0
        This is RMSNorm: x is never centred. Subtract the mean, and square the distances from it.
    root-mean-square: ((x - mean) ** 2) → (x**2)
        The spread is measured around 0, a root mean square. Square the distances from the mean.
    over-everything: axis=-1 → axis=None
        One mean and one variance serve all words. Each word is normalised alone: axis=-1.
    a-sentence-for-a-word: axis=-1 → axis=tuple(range(1, x.ndim))
        In a batch a whole sentence is taken for a word. Any axes may lead: take the last, axis=-1.
    over-axis-0: axis=-1 → axis=0
        Mean and variance run over the first axis. Each word is normalised alone: axis=-1.
    beta-before-gamma: (x - mean) / → ((x - mean) / ⊕ eps) + beta → eps) + beta)
        beta is added before gamma multiplies, so the gain scales it too. First gamma, then beta.
    gamma-and-beta-swapped: gamma * → beta * ⊕ + beta → + gamma
        gamma and beta are exchanged: gamma multiplies what is normalised, beta is added.
    gamma-unused: gamma * → ∅
        gamma is not used. It is a learned gain, and multiplies what is normalised.
    beta-unused: + beta → ∅
        beta is not used. It is a learned bias, added at the end.
    """,
    story=True,
)  # fmt: skip


@layer_norm.experiment("a sentence of whole numbers")
def whole(fn):
    x, *learned = np.array([[2, 4, 4, 10]]), np.array(GAMMA), np.array(BETA)
    try:
        alike = np.allclose(fn.function(x, *learned), fn.function(1.0 * x, *learned))
    except Exception:  # PyTorch takes no mean of whole numbers
        alike = True
    return {"whole numbers give what the same floats give": alike}


add_and_norm = exercise(
    course.add_and_norm,
    hints="""Which comes first in the name?
    layer_norm of the sum x + sublayer_out, with gamma, beta and eps.""",
    probes=[("one word", [WORD], [OUT], ONES, ZEROS), ("eps=0.5", FLATTER, FLAT, GAMMA, BETA, 0.5),
            ("two words", [WORD, OUT], [OUT, [3.0, 0.0, 1.0, 9.0]], GAMMA, BETA),
            ("a batch of two sentences", 9 * numbers(2, 3, 5) + 1, numbers(2, 3, 5), *FIVE)],
    slips="""
    x-missing: x + sublayer_out → sublayer_out
        The residual is missing: only the sublayer's output is normalised. Add x to it first.
    sublayer-normalised-only: layer_norm(x + sublayer_out → x + layer_norm(sublayer_out
        The sublayer's output is normalised, then x is added. Add first, then normalise the sum.
    x-normalised-only: layer_norm(x + → sublayer_out + layer_norm(x ⊕ x sublayer_out → x
        Only x is normalised, then the output is added. Add first, then normalise the sum.
    x-added-after: layer_norm(x + → x + layer_norm(x +
        x is added once more after the norm. In post-norm the norm comes last.
    over-everything: layer_norm(x + sublayer_out, gamma, → (lambda z, g, b, e: g * (z - z.mean()) \\
            / np.sqrt(z.var() + e) + b)(x + sublayer_out, gamma,
        One mean and one variance serve all words. Each word is normalised alone: axis=-1.
    multiplied: x + sublayer_out → x * sublayer_out
        x and the sublayer's output are multiplied. A residual connection adds them.
    eps-ignored: , eps) → )
        eps has no effect. Hand it on to the norm.
    gamma-and-beta-swapped: gamma, beta → beta, gamma
        gamma and beta are exchanged: layer_norm takes the gain first, then the bias.
    """,
    story=True,
)  # fmt: skip

LayerNorm = exercise(
    """
    class LayerNorm(nn.Module):
        def __init__(self, d_model, eps=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d_model))
            self.bias = nn.Parameter(torch.zeros(d_model))
            self.eps = eps

        def forward(self, x):
            mean = x.mean(dim=-1, keepdim=True)
            variance = x.var(dim=-1, keepdim=True, correction=0)
            return self.weight * (x - mean) / torch.sqrt(variance + self.eps) + self.bias
    """,
    hints="""What is learned, and so must be an nn.Parameter? And by which number does x.var divide?
    nn.Parameter of torch.ones and of torch.zeros; in forward, x.var with correction=0.""",
    slips="""
    unbiased: , correction=0 → ∅
        x.var and x.std divide by d - 1 by default. LayerNorm divides by d: correction=0.
    eps-outside: torch.sqrt(variance + self.eps) → (torch.sqrt(variance) + self.eps)
        eps is added outside the root. It belongs inside, to the variance.
    eps-ignored: self.eps = eps → self.eps = 1e-5
        The argument eps has no effect. Keep it in self, and add it to the variance.
    over-everything: .mean(dim=-1, keepdim=True) → .mean() ⊕ .var(dim=-1, keepdim=True, → .var(
        One mean and one variance serve all words. Each word has its own: dim=-1, keepdim=True.
    rms-norm: (x - mean) → x ⊕ var(dim=-1, keepdim=True, correction=0) → square().mean(-1, True)
        This is RMSNorm: the mean is not taken away, neither from x nor in the variance.
    in-place: (x - mean) → x.sub_(mean)
        x is changed in place, for whoever handed it in too. Make a new tensor: x = x - mean.
    not-learned: nn.Parameter(torch → (torch
        weight and bias are plain tensors, which no training changes. Make each an nn.Parameter.
    """,
    backends=("torch",),
)
LayerNorm.module("its parameters, and one sentence", (5,), numbers(3, 5) + 1)
LayerNorm.module("a batch of two, eps=0.5", (4, 0.5), numbers(2, 3, 4) + 1)


@LayerNorm.experiment("before any training")
def untrained(fn):
    from unittest.mock import patch

    with patch("torch.nn.functional.layer_norm") as ready:
        model = fn.function(4)
        model(model.weight[None])
    found = {"weight": model.weight.tolist(), "bias": model.bias.tolist()}
    return found | {"it works without nn.LayerNorm and F.layer_norm": not ready.called}


pre_norm = exercise(
    course.pre_norm,
    hints="""Which of the two paths, through the sublayer or around it, sees the normalised x?
    The sublayer gets layer_norm(x, gamma, beta, eps); x itself is added to what it returns.""",
    probes=[("a sublayer that turns the sign", [WORD], np.negative, ONES, ZEROS),
            ("a sublayer that squares", [WORD, OUT], np.square, GAMMA, BETA),
            ("a sublayer where words meet", numbers(3, 5) + 1, THREE[1], *FIVE),
            ("a batch of two sentences", numbers(2, 3, 5) + 1, THREE[1], *FIVE),
            ("eps=0.5", FLATTER, np.square, GAMMA, BETA, 0.5)],
    slips="""
    norm-missing: layer_norm(x, gamma, beta, eps) → x
        The norm is missing: the sublayer reads x as it is. Normalise what it reads.
    sublayer-not-called: sublayer( → (
        The sublayer is never called. It is a function: hand it the normalised x.
    norm-after-the-sublayer: sublayer(layer_norm(x, → (layer_norm(sublayer(x),
        The norm comes after the sublayer, on what comes out. Pre-norm normalises what goes in.
    post-norm: layer_norm(x, gamma, beta, eps) → x ⊕ x + out → layer_norm(x + out, gamma, beta, eps)
        This is post-norm: the sum is normalised. In pre-norm the norm stands before the sublayer.
    residual-missing: x + out → out
        The residual is missing: only the sublayer's output comes back. Add x itself to it.
    residual-normalised: x + out → layer_norm(x, gamma, beta, eps) + out
        The normalised x is added, so the residual path is normalised too. Add x itself.
    output-normalised-too: x + out → x + layer_norm(out, gamma, beta, eps)
        The sublayer's output is normalised as well. Pre-norm adds it as it is.
    eps-ignored: , eps) → )
        eps has no effect. Hand it on to the norm.
    gamma-and-beta-ignored: x, gamma, beta → x, np.ones_like(gamma), np.zeros_like(beta)
        gamma and beta are not used. The norm needs its learned gain and bias.
    """,
)  # fmt: skip

pre_norm_stack = exercise(
    """
    def pre_norm_stack(x, sublayers, gammas, betas, eps=1e-5):
        for sublayer, gamma, beta in zip(sublayers, gammas, betas):
            x = pre_norm(x, sublayer, gamma, beta, eps)
        return layer_norm(x, gammas[-1], betas[-1], eps)
    """,
    hints="""What does the second sublayer read, and what is its result added to?
    In a loop x becomes pre_norm of x; after it comes layer_norm, with row -1.""",
    probes=[("one sublayer that squares", [WORD], [np.square], [ONES, GAMMA], [ZEROS, BETA]),
            ("two sublayers", [OUT], [np.square, np.abs], [GAMMA, ONES, OUT], [BETA, OUT, WORD]),
            ("no sublayer at all", [WORD], [], [GAMMA], [BETA]),
            ("three sublayers for a batch", numbers(2, 3, 5) + 1, THREE, *ROWS),
            ("as many sublayers as words", numbers(3, 5) + 1, THREE[::-1], *ROWS),
            ("eps=0.5", FLAT, [np.square], [ONES, GAMMA], [ZEROS, BETA], 0.5)],
    slips="""
    last-norm-missing: return layer_norm(x, gammas[-1], betas[-1], eps) → return x
        The last norm is missing: after the loop, normalise once more, with the last row.
    returns-in-the-loop: ⏎    return → ⏎        return
        The return stands in the loop, so only the first sublayer has its turn.
    post-norm-stack: pre_norm(x, sublayer, → layer_norm(x + sublayer(x),
        These are post-norm steps: they normalise the sum. Normalise what each sublayer reads.
    inner-norms-missing: pre_norm(x, sublayer, gamma, beta, eps) → x + sublayer(x)
        The sublayers read the river as it is. Each has a norm before it, with a row of its own.
    residuals-missing: pre_norm(x, sublayer, → sublayer(layer_norm(x, ⊕ beta, eps) → beta, eps))
        The residual is missing: each output replaces the river. Add it to the river.
    residuals-normalised: pre_norm(x, sublayer, → layer_norm(x, ⊕ \\
            beta, eps) → beta, eps)⏎        x = x + sublayer(x)
        The residual path is normalised: add each output to the river itself.
    side-by-side: for sub → first = x⏎    for sub ⊕ \\
            pre_norm(x, sublayer, → x + sublayer(layer_norm(first, ⊕ beta, eps) → beta, eps))
        Every sublayer reads the first input, side by side. Each reads what the last one has left.
    eps-ignored: , eps) → )
        eps has no effect. Hand it on to every norm, the last one too.
    first-row-for-all: sublayer, gamma, beta, eps → sublayer, gammas[0], betas[0], eps
        All sublayers share the first row of gammas and betas. Row i belongs to sublayer i.
    rows-one-too-far: gammas, betas) → gammas[1:], betas[1:]) ⊕ [-1] → [0]
        The sublayers begin with row 1, and the last norm takes row 0. Row i belongs to sublayer i.
    last-row-not-used: [-1] → [len(sublayers) - 1]
        The last norm takes the row of the last sublayer. Its own is the last row, -1.
    """,
)  # fmt: skip
