"""Notebook 09: a row for each place, added to the word, as a module too; vectors that turn."""

import numpy as np

from helpers import blocks as course
from workshop.exercises.exercise import exercise, numbers

WAVES = """
    halves: np.stack → np.concatenate
        All sines stand before all cosines (two halves). Interleave them: even sines, odd cosines.
    multiplied-by-power: / 10000 ** → * 10000 **
        It multiplies by 10000^(2i/D). Divide: later pairs turn slower. Is a minus missing?
    exponent-halved: np.arange(0, D, 2) / D → np.arange(D // 2) / D
        The exponent is i/D, so the speeds fall only half as fast. The formula has 2i/D.
    exponent-doubled: np.arange(0, D, 2) / D → 2 * np.arange(0, D, 2) / D
        The 2 of the exponent stands there twice: 0, 2, 4 … are the 2i of the formula already.
    only-sines: np.cos(angle) → np.sin(angle)
        Both features of a pair are sines. The odd ones are cosines of the same angle.
    cosines-first: np.sin(angle), np.cos(angle) → np.cos(angle), np.sin(angle)
        Sine and cosine are exchanged. The even features, 0, 2, 4 …, are sines, the odd cosines.
"""

sinusoidal_positions = exercise(
    """
    def sinusoidal_positions(T, D):
        speed = 1 / 10000 ** (np.arange(0, D, 2) / D)
        angle = np.outer(np.arange(T), speed)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)
    """,
    ways=["""
    def sinusoidal_positions(T, D):
        angle = np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)
    """],
    course=course.sinusoidal_positions,
    story=True,
    hints="""There are D/2 hands; 2i counts 0, 2, 4 … How do you make all angles at once, (T, D/2)?
    np.outer(np.arange(T), 1 / 10000 ** (np.arange(0, D, 2) / D)); stack sine, cosine; reshape.""",
    probes=[("three positions, four features", 3, 4), ("five positions, six features", 5, 6),
            ("one position", 1, 8), ("two features, one pair", 4, 2), ("five pairs", 7, 10),
            ("as many positions as features", 8, 8), ("more features than positions", 3, 14),
            ("forty positions", 40, 16), ("300 positions, one pair", 300, 2)],
    slips=WAVES + """
    exponent-of-each-feature: np.arange(0, D, 2) → np.arange(D) ⊕ .reshape(T, D) → \\
            [:, np.arange(D), np.arange(D) % 2]
        Each feature j has a speed of its own, j/D. Both of a pair share one, with the even 2i.
    minus-cosine: np.cos(angle) → -np.cos(angle)
        The cosines have the wrong sign: a cosine is a sine a quarter turn, π/2, ahead.
    one-speed: / D) → // D)
        All pairs turn at one speed, for the exponent is always 0. Does // stand in place of /?
    length-in-exponent: / D) → / T)
        The exponent is divided by T, the number of positions. Divide 2i by the width D.
    log10: 10000 ** → np.exp(np.log10(10000)) **
        exp undoes the natural logarithm: np.log, not np.log10.
    positions-from-one: np.arange(T) → np.arange(1, T + 1)
        The positions count from 1. They count from 0: its sines are 0, its cosines 1.
    turned: (T, D) → (T, D).T
        The table is turned over, (D, T): positions are rows, and features columns, (T, D).
    cut-to-whole-numbers: (T, D) → (T, D).astype(int)
        The table is one of whole numbers, so all waves are cut to 0, 1 or −1. Make it of floats.
    """,
)  # fmt: skip

PositionalEncoding = exercise(
    """
    class PositionalEncoding(nn.Module):
        def __init__(self, d_model, max_len=1024, dropout=0.0):
            super().__init__()
            table = torch.tensor(sinusoidal_positions(max_len, d_model)).float()
            self.register_buffer("table", table, persistent=False)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x):
            return self.dropout(x + self.table[: x.shape[-2]])
    """,
    backends=("torch",),
    hints="""What is made once, and kept, and which part of it does a sentence of T words need?
    A table of max_len rows as a buffer, in __init__; in forward add self.table[: x.shape[-2]].""",
    slips="""
    trained: self.register_buffer("table", table, persistent=False) → \\
            self.table = nn.Parameter(table)
        The table is a parameter, which training would change. The hands stay: register_buffer.
    place-of-the-sentence: : x.shape[-2] → : len(x), None
        In a batch each word gets the place of its sentence. The words are the last axis but one.
    places-from-one: : x.shape[-2] → 1 : x.shape[-2] + 1
        The places count from 1. They count from 0: the first row is 0, 1, 0, 1, and so on.
    dropout-missing: self.dropout(x + → (x +
        Nothing is dropped while the module is trained: dropout belongs to the sum.
    dropout-on-the-places: self.dropout(x + self.table[: x.shape[-2]]) → \\
            x + self.dropout(self.table[: x.shape[-2]])
        Dropout acts on the places alone. It belongs to the sum of word and place.
    added-in-place: return → x += self.table[: x.shape[-2]]; return self.dropout(x); return
        x itself is changed, by a += on it. Make a new tensor: x + the rows.
    """,
)  # fmt: skip
PositionalEncoding.module("one sentence", (6,), numbers(4, 6))
PositionalEncoding.module("two sentences", (8,), numbers(2, 5, 8))
PositionalEncoding.module("as many sentences as words", (4, 12), numbers(4, 4, 4))
PositionalEncoding.module("dropout", (4,), numbers(2, 5, 4), rate=0.3)

add_positions = exercise(
    """
    def add_positions(x):
        return x + sinusoidal_positions(*x.shape[-2:])
    """,
    course=course.add_positions,
    hints="""Which two axes of x hold the tokens and the features, however many come before?
    x.shape[-2:] gives T and D, counted from the end; a table (T, D) adds to all of a batch.""",
    probes=[("a sentence of three words", np.eye(4)[:3]), ("two sentences", numbers(2, 3, 4)),
            ("five tokens", numbers(5, 6)), ("one sentence as a batch", numbers(1, 5, 6)),
            ("as many sentences as tokens", numbers(4, 4, 6)), ("as features", numbers(6, 4, 6)),
            ("as many tokens as features", numbers(2, 6, 6)),
            ("a batch of batches", numbers(2, 3, 4, 10)), ("forty tokens", numbers(40, 16))],
    slips="""
    run-on: sinusoidal_positions(*x.shape[-2:]) → \\
            sinusoidal_positions(x.size // x.shape[-1], x.shape[-1]).reshape(x.shape)
        Places are counted on from sentence to sentence. Each sentence begins at place 0.
    halves: sinusoidal_positions(*x.shape[-2:]) → sinusoidal_positions(*x.shape[-2:]).reshape( \\
            -1, x.shape[-1] // 2, 2).swapaxes(1, 2).reshape(x.shape[-2:])
        All sines stand first, then all cosines. In the table sine and cosine take turns.
    concatenated: x + sinusoidal_positions(*x.shape[-2:]) → \\
            np.concatenate([x, sinusoidal_positions(*x.shape[-2:]) + 0 * x], axis=-1)
        The positions stand next to the words (concatenated). Add them: the width stays D.
    counters-added: sinusoidal_positions(*x.shape[-2:]) → np.arange(x.shape[-2])[:, None]
        The bare numbers 0, 1, 2 … are added, and soon drown the words. Add the table of waves.
    multiplied: x + → x *
        Words and positions are multiplied: where a sine is 0, the word is erased. Add them.
    one-sentence-only: *x.shape[-2:] → *x.shape[:2]
        It works only for one sentence, (T, D). In a batch T and D come last: x.shape[-2:].
    needs-a-batch: return → B, T, D = x.shape; return
        It needs three axes. Take T and D from the end, whatever comes before: x.shape[-2:].
    exchanged: *x.shape[-2:]) → x.shape[-1], x.shape[-2] + x.shape[-2] % 2).T[: x.shape[-2]]
        T and D are exchanged, and the table is turned back. Its rows must be positions: (T, D).
    same-row: sinusoidal_positions(*x.shape[-2:]) → sinusoidal_positions(*x.shape[-2:])[0]
        Every token gets the row of position 0. Row t of the table belongs to token t.
    starts-at-one: *x.shape[-2:]) → x.shape[-2] + 1, x.shape[-1])[1:]
        The table starts at position 1. The first token stands at position 0.
    added-in-place: return → x[...] = x + sinusoidal_positions(*x.shape[-2:]); return x; return
        x itself is changed, and a second call adds the positions again. Make a new array.
    """,
)  # fmt: skip

rotate = exercise(
    """
    def rotate(x, base=10000.0):
        T, d = x.shape[-2:]
        angle = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d)
        a, b = x[..., 0::2], x[..., 1::2]
        first = a * np.cos(angle) - b * np.sin(angle)
        second = a * np.sin(angle) + b * np.cos(angle)
        return np.stack([first, second], axis=-1).reshape(x.shape)
    """,
    hints="""Which two arrays, half as wide as x, hold the first and second features of all pairs?
    a, b = x[..., 0::2], x[..., 1::2], and the table's angles; stack both, reshape to x.shape.""",
    probes=[("the point (3, 1) at four places", [[3.0, 1.0]] * 4), ("one word", numbers(1, 6)),
            ("whole numbers", [[3, 1], [1, 2]]), ("two words, two pairs", numbers(2, 4)),
            ("five words, three pairs", numbers(5, 6)),
            ("two sentences of three words", numbers(2, 3, 4)),
            ("as many words as features", numbers(6, 6)), ("four of four", numbers(4, 4, 6)),
            ("two sentences, three heads", numbers(2, 3, 5, 8)),
            ("another base", numbers(5, 6), 100.0), ("forty words", numbers(40, 16))],
    slips="""
    turned-backwards: = np.arange(T) → = -np.arange(T)
        Every pair turns the wrong way round: it must be a cos − b sin, and a sin + b cos.
    plus-for-minus: - b → + b
        The first number has a plus: it must be a cos − b sin.
    pairs-across-the-halves: np.stack → np.concatenate ⊕ x[..., 0::2], x[..., 1::2] → \\
            x[..., : d // 2], x[..., d // 2 :]
        Feature j is paired with j + d/2, as in some libraries. Here a pair is two neighbours.
    left-in-two-halves: np.stack → np.concatenate
        All first numbers stand before all second ones. Stack on a new last axis, then reshape.
    second-from-the-turned-first: second = a → second = first
        The second number is made of the first one that is turned already. Keep the old a.
    half-the-exponent: np.arange(0, d, 2) / d → np.arange(d // 2) / d
        The exponent is i/d, so the speeds fall only half as fast. The formula has 2i/d.
    base-not-used: / base ** → / 10000 **
        The base is not used: 10000 stands in the formula, whatever the caller asks for.
    places-from-one: np.arange(T) → np.arange(1, T + 1)
        The places count from 1, so the first word turns too. They count from 0.
    waves-added: np.stack([first, second], axis=-1).reshape(x.shape) → \\
            x + np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, d)
        The waves are added to x, as add_positions does. Here each pair of x itself is turned.
    cut-to-whole-numbers: (x.shape) → (x.shape).astype(x.dtype)
        Whole numbers come back whole: an array made like x, as by empty_like, cuts what it stores.
    """,
)  # fmt: skip

positions_at = exercise(
    """
    def positions_at(positions, D):
        angle = positions[..., None] / 10000 ** (np.arange(0, D, 2) / D)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, D)
    """,
    hints="""In sinusoidal_positions, which expression stands for the positions? Put yours there.
    positions[..., None] makes angles (…, T, D/2); stack, then reshape to (*positions.shape, D).""",
    probes=[("positions 0, 1, 2", [0, 1, 2], 4), ("a piece that starts at 5", [5, 6, 7, 8], 6),
            ("in disorder, one of them twice", [7, 0, 3, 3, 1], 6),
            ("two sentences, one padded left", [[0, 1, 2, 3], [0, 0, 0, 1]], 6),
            ("as many sentences as tokens", [[2, 0, 9], [4, 5, 6], [1, 1, 3]], 4),
            ("a batch of batches", np.arange(24).reshape(2, 3, 4)[..., ::-1] * 7 % 23, 10),
            ("one position", [37], 8), ("far on in a long text", [[150, 6000], [8, 20_000]], 2),
            ("as many positions as features", [3, 0, 12, 7], 4)],
    slips=WAVES + """
    positions-not-used: angle = → positions = 0 * positions + range(positions.shape[-1]); angle =
        The positions themselves are not used: it counts 0, 1, 2 … anew.
    counted-from-the-first: positions[..., None] → (positions - positions[..., :1])[..., None]
        Each sentence is counted from its first position. A piece that starts at 5 keeps its 5.
    flattened: *positions.shape, D → -1, D
        The batch is flattened to one long row. All axes of the positions stay: (…, T, D).
    """,
)  # fmt: skip
