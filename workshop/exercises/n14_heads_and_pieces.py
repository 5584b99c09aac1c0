"""Notebook 14: a score for any kind of head, and the pieces of a word."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from workshop.exercises.exercise import Draw, Exercise, numbers

# ---------------------------------------------------------------- head_scores


def head_scores(weights: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How much each head attends as `wanted` says: (L, H, T, T), (T, T) bool → (L, H).

    Of the queries that have a wanted key (True in their row), the mean share of attention that
    goes to their wanted keys, 0 to 1; 0 for all heads if no query has one. Raises ValueError for
    a mask of another shape or type. Clark et al. (2019), What does BERT look at?
    """
    if wanted.shape != weights.shape[-2:] or wanted.dtype != bool:
        given = f"{wanted.dtype} {wanted.shape}"
        raise ValueError(f"wanted is {given}, but must be bool {weights.shape[-2:]}")
    share = (weights * wanted).sum(axis=-1)  # (L, H, T), 0 for a query without a wanted key
    asking = wanted.any(axis=-1).sum()
    return share.sum(axis=-1) / max(asking, 1)


scoring = Exercise(
    head_scores,
    notebook="14",
    level=2,
    minutes=15,
    task="One function for every kind of head: `wanted[q, k]` is True where a head of that kind "
    "would look from query q. Give for each head the share of attention that a query spends on "
    "its wanted keys, averaged over the queries that have any; 0 if none has.",
    hints=(
        "For a head that looks at the token before: which entries of `wanted` are True, and how "
        "many queries have one?",
        "weights * wanted keeps the wanted weights. Sum over the keys gives one share for each "
        "query. Then take the mean over the queries with wanted.any(axis=-1) only.",
        "`share = (weights * wanted).sum(axis=-1)`, then `return share.sum(axis=-1) / "
        "max(wanted.any(axis=-1).sum(), 1)`",
    ),
)
scoring.answer("""
    def head_scores(weights, wanted):
        share = (weights * wanted).sum(axis=-1)  # (L, H, T)
        asking = wanted.any(axis=-1).sum()
        return share.sum(axis=-1) / max(asking, 1)
""")
scoring.answer("""
    def head_scores(weights, wanted):
        rows = wanted.any(axis=1)
        if not rows.any():
            return np.zeros(weights.shape[:2])
        share = np.where(wanted, weights, 0).sum(axis=-1)
        return share[:, :, rows].mean(axis=-1)
""")
scoring.answer("""
    def head_scores(weights, wanted):
        total = np.einsum("lhqk,qk->lh", weights, wanted.astype(float))
        count = np.sum(np.any(wanted, axis=-1))
        return total / np.maximum(count, 1)
""")
scoring.answer("""
    def head_scores(weights, wanted):
        L, H, T, _ = weights.shape
        total, count = np.zeros((L, H)), 0
        for q in range(T):
            if wanted[q].any():
                total += weights[:, :, q, wanted[q]].sum(axis=-1)
                count += 1
        return total / max(count, 1)
""")
scoring.answer("""
    def head_scores(weights, wanted):
        share = weights.masked_fill(~wanted, 0).sum(dim=-1)
        return share.sum(dim=-1) / wanted.any(dim=-1).sum().clamp(min=1)
""")
scoring.why(
    "(weights * wanted).sum(axis=-1) | weights * wanted | np.where(wanted, weights, 0) | "
    "weights[:, :, q, wanted[q]] | weights[:, :, q, wanted[q]].sum(axis=-1)",
    "A query's share is the sum of its weights on all keys that are wanted, True in its row.",
)
scoring.why(
    "wanted.any(axis=-1) | wanted.any(axis=1) | wanted[q].any() | np.any(wanted, axis=-1) | "
    "wanted.any(dim=-1)",
    "Only queries that have a wanted key count: a query without one cannot attend to it.",
)
scoring.why(
    "wanted.any(axis=-1).sum() | asking | count | share[:, :, rows].mean(axis=-1) | .mean(axis=-1)",
    "The mean over queries divides by the number of queries that have a wanted key, not by T or by "
    "pairs.",
)
scoring.why(
    "max(asking, 1) | np.maximum(count, 1) | max(count, 1) | .clamp(min=1) | not rows.any() | "
    "np.zeros(weights.shape[:2]) | np.zeros((L, H))",
    "Where no query has a wanted key, 0 / 0 would be nan; the score of every head, (L, H), is 0.",
)
scoring.why(
    "axis=-1 | dim=-1 | share.sum(axis=-1)",
    "The last axis of the weights are the keys, the one before the queries; layers and heads stay, "
    "(L, H).",
)
SMALL = np.array(
    [
        [
            [[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.1, 0.6, 0.3]],
            [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.1, 0.4, 0.5]],
        ]
    ]
)


def heads(*shape: int) -> Draw:
    """Attention weights, whose rows sum to 1."""
    e = (2 * numbers(*shape, shape[-1])).then(np.exp)
    return e.then(lambda x: x / x.sum(axis=-1, keepdims=True))


def same_word(*ids: int) -> np.ndarray:
    """Where the same word stands elsewhere in the sentence."""
    row = np.array(ids)
    return (row[:, None] == row) & ~np.eye(len(ids), dtype=bool)


def column(T: int, *keys: int) -> np.ndarray:
    """These keys wanted by every query."""
    return np.zeros((T, T), bool) | np.isin(np.arange(T), keys)


def only(T: int, q: int, *keys: int) -> np.ndarray:
    """These keys wanted by one query alone."""
    made = np.zeros((T, T), bool)
    made[q, list(keys)] = True
    return made


scoring.probe("two heads, the token before", SMALL, np.eye(3, k=-1, dtype=bool))
scoring.probe("two heads, the last token", SMALL, column(3, 2))
scoring.probe("two layers, the token before", heads(2, 3, 5), np.eye(5, 5, -1) > 0)
scoring.probe("the token after", heads(3, 2, 4), np.eye(4, 4, 1) > 0)
scoring.probe("the query itself", heads(2, 4, 3), np.eye(3, dtype=bool))
scoring.probe("two separators", heads(2, 3, 6), column(6, 0, 5))
scoring.probe("the same word elsewhere", heads(3, 2, 7), same_word(4, 1, 4, 9, 1, 4, 5))
scoring.probe("one query alone has wanted keys", heads(2, 3, 5), only(5, 0, 1, 2, 4))
scoring.probe(
    "as many layers, heads and tokens",
    heads(3, 3, 3),
    np.array([[False, True, True], [False, False, False], [True, False, False]]),
)
scoring.probe("as many layers as tokens", heads(4, 2, 4), same_word(7, 7, 0, 7))
scoring.probe("all keys", heads(1, 3, 4), np.ones((4, 4), bool))
scoring.probe("no query has a wanted key", heads(2, 3, 4), np.zeros((4, 4), bool))


def share_of(weights: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """What each query gives to its wanted keys, (L, H, T)."""
    return (weights * wanted).sum(axis=-1)


def asking(wanted: np.ndarray) -> int:
    """How many queries have a wanted key, at least 1."""
    return max(wanted.any(axis=-1).sum(), 1)


@scoring.mistake
def averaged_over_all_queries(weights, wanted):
    """The mean runs over all T queries, also those without a wanted key: the first token has none
    before it. Average over the queries that have one."""
    return share_of(weights, wanted).mean(axis=-1)


@scoring.mistake
def averaged_over_everything(weights, wanted):
    """The mean runs over all T · T pairs, zeros too. Sum over the keys, and divide by the number of
    queries that have a wanted key."""
    return (weights * wanted).mean(axis=(-2, -1))


@scoring.mistake
def one_query_less(weights, wanted):
    """It always divides by T - 1, which is right for the token before alone. Another kind of head
    has other queries: count those that have a wanted key."""
    return share_of(weights, wanted).sum(axis=-1) / (weights.shape[-1] - 1)


# ---------------------------------------------------------------- word_pieces


def word_pieces(word: str, vocab: Mapping[str, int]) -> list[str]:
    """Split a word into the longest pieces of the vocabulary, from left to right.

    A piece that does not begin the word carries "##" in front. If at some place no piece fits, the
    whole word is ["[UNK]"]. Raises ValueError for an empty word. WordPiece: Schuster and Nakajima
    (2012), Wu et al. (2016); longest match first as in BERT, Devlin et al. (2019).
    """
    if not word:
        raise ValueError("word is empty, but must have a letter")
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start > 0 else ""
        fitting = [
            end for end in range(start + 1, len(word) + 1) if mark + word[start:end] in vocab
        ]
        if not fitting:
            return ["[UNK]"]
        pieces.append(mark + word[start : fitting[-1]])
        start = fitting[-1]
    return pieces


splitting = Exercise(
    word_pieces,
    notebook="14",
    level=3,
    minutes=15,
    task="Split a word as MiniLM's tokenizer does: from the left, always the longest piece in the "
    'vocabulary, with "##" in front of each piece but the first. If at some place nothing fits, '
    'the whole word is ["[UNK]"].',
    hints=(
        'For "unhappy", with "un", "##happy" and "##hap" in the vocabulary: which do you try '
        "first, and what is left afterwards?",
        "Keep the place `start` where the next piece begins. Try the ends from len(word) down to "
        'start + 1, and look up word[start:end], with "##" in front if start > 0. Take the first '
        "that is in the vocabulary and go on at its end.",
        "for each end of `range(len(word), start, -1)`: "
        '`piece = ("##" if start else "") + word[start:end]`, and with the first piece in vocab: '
        '`pieces.append(piece); start = end`. If there was none: `return ["[UNK]"]`',
    ),
)


splitting.answer("""
    def word_pieces(word, vocab):
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocab:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return ["[UNK]"]
        return pieces
""")
splitting.answer("""
    def word_pieces(word, vocab):
        pieces, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start:
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in vocab:
                    break
                end -= 1
            if end == start:
                return ["[UNK]"]
            pieces.append(piece)
            start = end
        return pieces
""")
splitting.answer("""
    def word_pieces(word, vocab):
        pieces, rest = [], word
        while rest:
            mark = "##" if pieces else ""
            n = len(rest)
            while n > 0 and mark + rest[:n] not in vocab:
                n -= 1
            if n == 0:
                return ["[UNK]"]
            pieces.append(mark + rest[:n])
            rest = rest[n:]
        return pieces
""")
splitting.answer("""
    def word_pieces(word, vocab):
        def split(rest, mark):
            if not rest:
                return []
            for n in range(len(rest), 0, -1):
                if mark + rest[:n] in vocab:
                    others = split(rest[n:], "##")
                    return None if others is None else [mark + rest[:n]] + others
            return None

        return split(word, "") or ["[UNK]"]
""")
splitting.why(
    "range(len(word), start, -1) | end = len(word) | range(len(rest), 0, -1) | end -= 1 | n -= 1 | "
    "n = len(rest)",
    "Greedy means the longest piece first: begin with the whole rest and leave off a letter at a "
    "time, down to one letter.",
)
splitting.why(
    '"##" if start else "" | "##" if pieces else "" | "##" + word[start:end] | start == 0 | '
    'mark | "##"',
    'A piece inside the word stands with "##" in the vocabulary, the first without: mark it before '
    "the look-up, and keep the mark.",
)
splitting.why(
    'return ["[UNK]"] | ["[UNK]"] | end == start | n == 0 | split(word, "") or ["[UNK]"]',
    'Where nothing fits, the whole word becomes one unknown token, the list ["[UNK]"]: no half of '
    "it is kept.",
)
splitting.why(
    "start = end | rest = rest[n:] | rest[n:]",
    "The next piece begins where this one ends in the word; the mark is no part of the word.",
)
splitting.why(
    "piece in vocab | mark + rest[:n] in vocab | mark + rest[:n] not in vocab",
    "A piece counts only if the vocabulary holds it as it is, mark and capitals included.",
)
splitting.why(
    "break | while start < len(word) | start < len(word) | while rest",
    "Stop at the first piece that fits, then go on behind it until no letter is left.",
)
splitting.why(
    "pieces.append(piece) | pieces.append(mark + rest[:n]) | return pieces",
    "The result is the list of pieces, in the order in which they stand in the word.",
)


def numbered(*words: str) -> dict[str, int]:
    """A vocabulary of these pieces."""
    return {piece: i for i, piece in enumerate(("[UNK]", *words))}


ENGLISH = numbered(
    "play", "##s", "##ing", "un", "a", "##able", "##a", "##play", "##ed", "the", "##ab", "re",
    "##le", "##re", "ed", "##ingly", "playing", "##d", "b", "##c", "##l", "##y",
)  # fmt: skip
NAMES = numbered("New", "new", "##ton", "##Ton", "##t", "##on", "n", "##e", "##é", "##o", "##ö")
FEW = numbered("play", "##s", "un", "##play", "##ed")
MORE = numbered("ab", "abc", "##cde", "##d", "##e")
for label, whole, vocabulary in (
    ("a word of the vocabulary", "play", FEW),
    ("two pieces", "plays", FEW),
    ("three pieces", "unplayed", FEW),
    ("a long word, there whole", "playing", ENGLISH),
    ("a short piece fits as well", "unplayable", ENGLISH),
    ("five pieces", "replayably", ENGLISH),
    ("pieces of one letter", "bal", ENGLISH),
    ("a word of one letter", "b", ENGLISH),
    ("letters that only continue words", "cd", ENGLISH),
    ("a known beginning, an unknown rest", "playful", ENGLISH),
    ("a rest known only as beginning", "bthe", ENGLISH),
    ("an unknown letter inside", "unqed", ENGLISH),
    ("an unknown first letter", "qed", ENGLISH),
    ("an unknown last letter", "playsz", ENGLISH),
    ("a word with nothing known", "qzq", ENGLISH),
    ("the same letters three times", "rerere", ENGLISH),
    ("a longest piece that leads nowhere", "abcd", numbered("ab", "abc", "##cd")),
    ("a longest piece, more pieces", "abcde", MORE),
    ("a long piece in the middle", "abcde", numbered("a", "##bcd", "ab", "##e", "##cd")),
    ("a long piece at the end", "abcd", numbered("a", "##bcd", "ab", "##cd")),
    ("capital letters", "NewTon", NAMES),
    ("letters with accents", "néö", NAMES),
):
    splitting.probe(label, whole, vocabulary)


def marked(piece: str, start: int) -> str:
    """A piece as it stands in the vocabulary, for the place where it begins."""
    return "##" + piece if start else piece


def bare(piece: str, start: int) -> str:
    """A piece without a mark."""
    return piece


def longest_first(start: int, T: int) -> range:
    """The ends of a piece that begins at start, in the order they are tried."""
    return range(T, start, -1)


def unknown(pieces: list[str], word: str, start: int) -> list[str]:
    """What comes out where nothing fits."""
    return ["[UNK]"]


def greedy(
    word: str,
    vocab: Mapping[str, int],
    look: Callable = marked,
    write: Callable = marked,
    ends: Callable = longest_first,
    lost: Callable = unknown,
) -> list[str]:
    """The loop of `word_pieces`, with parts that a mistake replaces."""
    pieces, start = [], 0
    while start < len(word):
        found = [e for e in ends(start, len(word)) if look(word[start:e], start) in vocab]
        if not found:
            return lost(pieces, word, start)
        pieces.append(write(word[start : found[0]], start))
        start = found[0]
    return pieces


def all_splits(word: str, vocab: Mapping[str, int], start: int = 0) -> Iterator[list[str]]:
    """All ways to make a word of pieces, those with a longer first piece before."""
    if start == len(word):
        yield []
    for end in longest_first(start, len(word)):
        if marked(word[start:end], start) in vocab:
            for rest in all_splits(word, vocab, end):
                yield [marked(word[start:end], start), *rest]


@splitting.mistake
def no_marks(word, vocab):
    """Later pieces are looked up and written without "##", as if each began a word. Every piece but
    the first stands with "##" in the vocabulary and in the result."""
    return greedy(word, vocab, look=bare, write=bare)


@splitting.mistake
def looked_up_without_mark(word, vocab):
    """Later pieces get "##" only after they were looked up without it. The vocabulary holds them
    with "##": put it in front before the look-up."""
    return greedy(word, vocab, look=bare)


@splitting.mistake
def marks_not_written(word, vocab):
    """Later pieces are looked up with "##", but returned without it. Keep the mark: it tells a
    piece inside a word from one that begins a word."""
    return greedy(word, vocab, write=bare)


@splitting.mistake
def grown_letter_by_letter(word, vocab):
    """A piece grows letter by letter while it is in the vocabulary, so it ends at the first gap:
    "pl" is missing, "play" is there. Try the longest first, down to one letter."""

    def ends(start, T):
        known = [marked(word[start:e], start) in vocab for e in range(start + 1, T + 1)]
        first_gap = [*known, False].index(False)
        return range(start + first_gap, start, -1)

    return greedy(word, vocab, ends=ends)


@splitting.mistake
def unknown_letter_by_letter(word, vocab):
    """A letter at which nothing fits becomes [UNK], and the splitting goes on behind it. The whole
    word is ["[UNK]"] then: return at once."""
    pieces, start = [], 0
    while start < len(word):
        ends = longest_first(start, len(word))
        end = next((e for e in ends if marked(word[start:e], start) in vocab), 0)
        pieces.append(marked(word[start:end], start) if end else "[UNK]")
        start = end or start + 1
    return pieces


@splitting.mistake
def another_split_tried(word, vocab):
    """Where the longest piece leads nowhere, a shorter one is tried (backtracking). WordPiece is
    greedy and never goes back: such a word is unknown, ["[UNK]"]."""
    return next(all_splits(word, vocab), ["[UNK]"])


@splitting.mistake
def mark_counted_as_letters(word, vocab):
    """start moves on by the length of the piece with its "##", so two letters are skipped. The mark
    is no part of the word: go on where the piece ends in it."""
    pieces, start = [], 0
    while start < len(word):
        ends = longest_first(start, len(word))
        end = next((e for e in ends if marked(word[start:e], start) in vocab), 0)
        if not end:
            return ["[UNK]"]
        pieces.append(marked(word[start:end], start))
        start += len(pieces[-1])
    return pieces


@splitting.mistake
def unknown_letters_skipped(word, vocab):
    """Letters at which nothing fits are skipped, so that they are lost. The whole word is then one
    unknown token, ["[UNK]"]: return at once."""
    return [piece for piece in unknown_letter_by_letter(word, vocab) if piece != "[UNK]"]


@splitting.mistake
def no_marks_and_known_pieces_kept(word, vocab):
    """The rest is split like a word of its own: without "##", and [UNK] for it alone. Later pieces
    carry "##"; if a part fits nothing, the whole word is ["[UNK]"]."""
    lost = lambda pieces, word, start: [*pieces, "[UNK]"]  # noqa: E731
    return greedy(word, vocab, look=bare, write=bare, lost=lost)
