"""Notebook 15: a softmax that never sees its whole row, and a change that is kept apart."""

import numpy as np

from helpers import attention as reference
from workshop.exercises.exercise import Exercise, numbers

# ---------------------------------------------------------------- online_softmax

online = Exercise(
    reference.online_softmax,
    notebook="15",
    level=3,
    minutes=15,
    task="Softmax along the last axis, reading `tile` numbers at a time, the last tile may be "
    "shorter. Keep two numbers of each row: the largest so far, and the sum of exp(x − largest) "
    "so far. A tile may bring a larger number: then shrink the sum to it before you add. At the "
    "end, the two turn every x into its share.",
    hints=(
        "The sum so far was made with the old largest. By which factor is each of its terms too "
        "large when the largest grows?",
        "exp(x − new) = exp(x − old) · exp(old − new): so multiply the sum by exp(old − new), then "
        "add the new tile's. Begin with largest = −∞ and sum 0.",
        "`total = total * np.exp(largest - higher) + np.exp(part - higher).sum(axis=-1, "
        "keepdims=True)` for each tile, then `largest = higher`; at the end `return np.exp(x - "
        "largest) / total`",
    ),
)
online.probe("six scores, tiles of two", np.array([1.0, 3.0, 2.0, 5.0, 4.0, 0.0]), 2)
online.probe("one tile holds all", np.array([1.0, 3.0, 2.0]), 3)
online.probe("a tile wider than the row", np.array([1.0, 3.0, 2.0]), 8)
online.probe("tiles of one", np.array([0.0, 2.0, 1.0, 4.0]), 1)
online.probe("the last tile is shorter", np.array([2.0, 1.0, 0.0, 3.0, -1.0]), 2)
online.probe("falling scores", np.array([5.0, 4.0, 2.0, 1.0, -2.0]), 2)
online.probe("two rows", np.array([[1.0, 3.0, 2.0, 5.0], [4.0, -1.0, 0.0, 2.0]]), 2)
online.probe("a batch of two sentences", 3 * numbers(2, 3, 7), 3)
online.probe("huge scores", np.array([[1000.0, 0.0, 998.0, -1000.0, 999.0]]), 2)
online.probe("a loud row and a quiet one", np.array([[0.0, 900.0, 1000.0], [1.0, 2.0, 0.5]]), 2)
online.probe("a huge score comes last", np.array([[0.0, 1.0, 3.0, 999.0, 1000.0]]), 2)
online.probe("a huge score comes first", np.array([[1000.0, 999.0, 2.0, -1000.0]]), 2)
online.probe("scores far below zero", np.array([[-1000.0, -1003.0, -999.0]]), 2)
online.probe("whole numbers", np.array([3, 1, 2, 6, 4]), 2)
online.answer("""
    def online_softmax(x, tile):
        largest, total = -np.inf, 0.0
        for start in range(0, x.shape[-1], tile):
            part = x[..., start : start + tile]
            higher = np.maximum(largest, part.max(axis=-1, keepdims=True))
            new = np.exp(part - higher).sum(axis=-1, keepdims=True)
            total = total * np.exp(largest - higher) + new
            largest = higher
        return np.exp(x - largest) / total
""")
online.answer("""
    def online_softmax(x, tile):
        largest = x[..., :1]
        total = np.zeros(largest.shape)
        start = 0
        while start < x.shape[-1]:
            part = x[..., start : start + tile]
            higher = np.maximum(largest, part.max(axis=-1)[..., None])
            total = total / np.exp(higher - largest)
            total = total + np.exp(part - higher).sum(axis=-1)[..., None]
            largest = higher
            start = start + tile
        return np.exp(x - largest) / total
""")
online.answer("""
    def online_softmax(x, tile):
        out = np.zeros(x.shape)
        for row in np.ndindex(x.shape[:-1]):
            largest, total = -np.inf, 0.0
            for start in range(0, x.shape[-1], tile):
                part = x[row][start : start + tile]
                if part.max() > largest:
                    total = total * np.exp(largest - part.max())
                    largest = part.max()
                total = total + np.exp(part - largest).sum()
            out[row] = np.exp(x[row] - largest) / total
        return out
""")
online.answer("""
    import torch

    def online_softmax(x, tile):
        x = torch.as_tensor(x).to(torch.promote_types(x.dtype, torch.float32))
        largest = torch.full_like(x[..., :1], -torch.inf)
        total = torch.zeros_like(largest)
        for part in x.split(tile, dim=-1):
            higher = torch.maximum(largest, part.amax(dim=-1, keepdim=True))
            new = (part - higher).exp().sum(dim=-1, keepdim=True)
            total = total * (largest - higher).exp() + new
            largest = higher
        return (x - largest).exp() / total
""")
online.why(
    "np.exp(largest - higher) | largest - higher | total * np.exp(largest - higher) | "
    "total / np.exp(higher - largest) | (largest - higher).exp() | "
    "np.exp(largest - part.max()) | largest - part.max() | higher - largest",
    "The sum so far was made with the old largest: exp(old − new) brings it to the new one.",
)
online.why(
    "np.maximum(largest, part.max(axis=-1, keepdims=True)) | part.max(axis=-1, keepdims=True) | "
    "np.maximum(largest, part.max(axis=-1)[..., None]) | part.max(axis=-1)[..., None] | "
    "part.max() > largest | part.max() | higher | largest | largest = higher | "
    "torch.maximum(largest, part.amax(dim=-1, keepdim=True))",
    "The largest so far is that of this tile or of one before it, whichever is larger.",
)
online.why(
    "np.exp(part - higher) | part - higher | np.exp(part - higher).sum(axis=-1, keepdims=True) | "
    "np.exp(part - largest).sum() | part - largest | (part - higher).exp() | new",
    "The new tile's terms are made with the largest so far, as those of the sum are now.",
)
online.why(
    "range(0, x.shape[-1], tile) | start + tile | x[..., start : start + tile] | part | "
    "start = start + tile | start < x.shape[-1] | x.split(tile, dim=-1) | "
    "x[row][start : start + tile]",
    "Tile after tile to the end of the row; a slice that reaches beyond the end is just shorter.",
)
online.why(
    "-np.inf | 0.0 | np.zeros(largest.shape) | x[..., :1] | np.ndindex(x.shape[:-1])",
    "Before the first tile nothing has been summed, and any number is larger than −∞.",
)
online.why(
    "axis=-1 | keepdims=True | [..., None] | dim=-1 | keepdim=True",
    "Each row has a largest and a sum of its own, and they keep their axis to fit their row.",
)
online.why(
    "np.exp(x - largest) / total | np.exp(x - largest) | x - largest | total | "
    "(x - largest).exp() / total",
    "Only at the end are largest and sum known for the whole row: then each x gets its share.",
)


def tiles(x: np.ndarray, tile: int) -> list[np.ndarray]:
    return [x[..., start : start + tile] for start in range(0, x.shape[-1], tile)]


def exps(part: np.ndarray, largest: np.ndarray) -> np.ndarray:
    return np.exp(part - largest).sum(axis=-1, keepdims=True)


def most(part: np.ndarray) -> np.ndarray:
    return part.max(axis=-1, keepdims=True)


@online.mistake
def sum_never_shrunk(x, tile):
    """When a tile brings a larger number, the sum so far stays as it was: it was made with the old
    largest. Multiply it by exp(old − new) before you add."""
    largest, total = -np.inf, 0.0
    for part in tiles(x, tile):
        largest = np.maximum(largest, most(part))
        total = total + exps(part, largest)
    return np.exp(x - largest) / total


@online.mistake
def each_tile_by_itself(x, tile):
    """Each tile sums to 1 by itself. The whole row must: keep one largest and one sum across the
    tiles, and divide at the end."""
    return np.concatenate([np.exp(p - most(p)) / exps(p, most(p)) for p in tiles(x, tile)], axis=-1)


@online.mistake
def shrunk_the_wrong_way(x, tile):
    """The sum is multiplied by exp(new − old), which makes it larger. The new largest is larger, so
    each old term must shrink: exp(old − new)."""
    largest, total = most(x[..., :1]), 0.0
    for part in tiles(x, tile):
        higher = np.maximum(largest, most(part))
        total = total * np.exp(higher - largest) + exps(part, higher)
        largest = higher
    return np.exp(x - largest) / total


@online.mistake
def largest_of_the_last_tile(x, tile):
    """The largest is that of the newest tile, even where an earlier one was larger. Keep the larger
    of the two: np.maximum(largest, that of the tile)."""
    largest, total = most(x[..., :1]), 0.0
    for part in tiles(x, tile):
        total = total * np.exp(largest - most(part)) + exps(part, most(part))
        largest = most(part)
    return np.exp(x - largest) / total


@online.mistake
def last_tile_dropped(x, tile):
    """The last, shorter tile is not read, so its numbers are missing in the sum. Go on to the end
    of the row: a slice beyond the end is just shorter."""
    largest, total = -np.inf, 0.0
    for part in tiles(x, tile)[: max(x.shape[-1] // tile, 1)]:
        higher = np.maximum(largest, most(part))
        total = total * np.exp(largest - higher) + exps(part, higher)
        largest = higher
    return np.exp(x - largest) / total


@online.mistake
def largest_never_renewed(x, tile):
    """The sum is shrunk to the new largest, but the largest itself stays the old one, for the next
    tile and for the end. After each tile: largest = higher."""
    largest, total = most(x[..., :1]), 0.0
    for part in tiles(x, tile):
        higher = np.maximum(largest, most(part))
        total = total * np.exp(largest - higher) + exps(part, higher)
    return np.exp(x - largest) / total


@online.mistake
def no_largest(x, tile):
    """No largest is subtracted, so exp of a large score is infinite, and the shares are NaN. Keep
    the largest so far and subtract it."""
    total = sum(exps(part, 0) for part in tiles(x, tile))
    return np.exp(x) / total


@online.mistake
def only_the_sum(x, tile):
    """This is the sum of the row, and not its shares. At the end each x gets its part of it:
    exp(x − largest) / sum."""
    return exps(x, most(x))


# ---------------------------------------------------------------- merge_adapter


def merge_adapter(W: np.ndarray, A: np.ndarray, B: np.ndarray, alpha: float) -> np.ndarray:
    """The one matrix that does what W and its adapter do: (d_in, d_out), (d_in, r), (r, d_out).

    W + (alpha / r) · A B. Raises ValueError for shapes that do not fit. Hu et al. (2021),
    section 4.1.
    """
    if A.shape[:1] + B.shape[1:] != W.shape or A.shape[1:] != B.shape[:1]:
        raise ValueError(
            f"A {A.shape} and B {B.shape} must be (d_in, r) and (r, d_out) for W {W.shape}"
        )
    return W + alpha / A.shape[1] * (A @ B)


merging = Exercise(
    merge_adapter,
    notebook="15",
    level=1,
    minutes=5,
    task="With its adapter, a matrix W gives x W + (alpha / r) · x A B, where r is the rank, the "
    "number of columns of A. Return the one matrix that gives the same from x alone. W itself must "
    "stay as it is.",
    hints=(
        "Take x out of the sum: what stands behind it?",
        "x W + c · x A B = x (W + c · A B), with c = alpha / r; r is A.shape[1].",
        "`return W + alpha / A.shape[1] * (A @ B)`",
    ),
)
merging.probe(
    "rank one",
    np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
    np.array([[1.0], [2.0]]),
    np.array([[3.0, 0.0, -1.0]]),
    1.0,
)
merging.probe("alpha 4", numbers(3, 5), numbers(3, 1), numbers(1, 5), 4.0)
merging.probe("rank two", numbers(3, 5), numbers(3, 2), numbers(2, 5), 2.0)
merging.probe("rank two, alpha 8", numbers(4, 6), numbers(4, 2), numbers(2, 6), 8.0)
merging.probe("rank three, square", numbers(5, 5), numbers(5, 3), numbers(3, 5), 6.0)
merging.probe("rank two, alpha 3", numbers(4, 3), numbers(4, 2), numbers(2, 3), 3.0)
merging.probe("a new adapter: B is zero", numbers(4, 3), numbers(4, 2), 0 * numbers(2, 3), 2.0)


@merging.experiment("W is left as it was")
def unchanged(fn):
    W = np.arange(6.0).reshape(2, 3)
    before = W.copy()
    fn(W, np.array([[1.0], [2.0]]), np.array([[3.0, 0.0, -1.0]]), 1.0)
    return {"W holds its old numbers after the call": np.array_equal(W, before)}


merging.answer("""
    def merge_adapter(W, A, B, alpha):
        rank = A.shape[1]
        return W + alpha / rank * (A @ B)
""")
merging.answer("""
    def merge_adapter(W, A, B, alpha):
        change = np.zeros(W.shape)
        for r in range(len(B)):
            change += np.outer(A[:, r], B[r])
        return W + change * alpha / len(B)
""")
merging.answer("""
    def merge_adapter(W, A, B, alpha):
        merged = W.copy()
        merged += np.einsum("ir,ro->io", A, B) * (alpha / B.shape[0])
        return merged
""")
merging.answer("""
    import torch

    def merge_adapter(W, A, B, alpha):
        return torch.addmm(W, A, B, alpha=alpha / A.shape[1])
""")
merging.why(
    'A @ B | np.outer(A[:, r], B[r]) | np.einsum("ir,ro->io", A, B) | A | B | change | '
    "range(len(B)) | torch.addmm(W, A, B, alpha=alpha / A.shape[1])",
    "x goes through A, then through B: together they are the one matrix A B, as large as W.",
)
merging.why(
    "alpha / rank | alpha / A.shape[1] | rank | A.shape[1] | alpha / B.shape[0] | B.shape[0] | "
    "change * alpha / len(B) | len(B) | alpha",
    "alpha / r scales the change: with another rank, the same alpha means as large a step.",
)
merging.why(
    "W + alpha / rank * (A @ B) | W + change * alpha / len(B) | W | W.copy() | merged",
    "The change is added to W, in a new matrix: W may serve other adapters.",
)


@merging.mistake
def alpha_alone(W, A, B, alpha):
    """The change is multiplied by alpha alone. It is alpha / r, with the rank r = A.shape[1], so
    that a higher rank does not make a larger change."""
    return W + alpha * (A @ B)


@merging.mistake
def alpha_left_out(W, A, B, alpha):
    """The change is added as it is. It is multiplied by alpha / r first, with the rank r =
    A.shape[1]."""
    return W + A @ B


@merging.mistake
def divided_by_the_width(W, A, B, alpha):
    """alpha is divided by the number of rows of A. The rank is the number of its columns:
    A.shape[1]."""
    return W + alpha / A.shape[0] * (A @ B)


@merging.mistake
def the_change_alone(W, A, B, alpha):
    """This is the change alone, without W. The merged matrix does what both do together: add W."""
    return alpha / A.shape[1] * (A @ B)


@merging.mistake
def writes_into_w(W, A, B, alpha):
    """The sum is written into W, the matrix that was given: a second call would add the change
    again. Make a new matrix."""
    W += alpha / A.shape[1] * (A @ B)
    return W


@merging.mistake
def subtracted(W, A, B, alpha):
    """The change is subtracted. It is added to W: x W + (alpha / r) · x A B."""
    return W - alpha / A.shape[1] * (A @ B)
