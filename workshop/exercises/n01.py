"""Notebook 01: from words to ids, from ids to one-hot rows, to embeddings, to counts."""

from helpers import text as course
from workshop.exercises.exercise import Probe, exercise, numbers

IDS = [("three of five words", [2, 0, 3], 5), ("one comes three times", [1, 3, 1, 1, 2], 5),
       ("a batch of two", [[2, 0, 2, 1], [3, 3, 3, 1]], 5), ("four of four words", [1, 3, 3, 0], 4),
       ("as many sentences as tokens", [[1, 4, 1], [0, 2, 3], [4, 4, 0]], 6),
       ("two axes in front", [[[0, 5, 0]], [[1, 4, 5]]], 7), ("a single word", [2], 3)]  # fmt: skip

embed = exercise(
    course.embed,
    hints="""Rows of a table times a place, added up: which operation does that for all tokens?
    The product of both sums over the words. (Or index the table with the places of the 1.)""",
    probes=[(label, course.one_hot(ids, V), numbers(V, 4).then(lambda x: x.round(1)))
            for label, ids, V in IDS],
    slips="""
    table-transposed: table → table.T
        The table is transposed. It has a row for each word already, (V, D): take it as it is.
    argmax-along-the-tokens: onehot @ table → table[onehot.argmax(axis=-2)]
        The search for the 1 runs along the tokens. Take the last axis, the words: axis=-1.
    one-argmax-for-everything: onehot @ table → table[onehot.argmax()]
        One argmax of the whole array gives one place. Each row has its own 1: axis=-1.
    features-added-up: onehot @ table → (onehot[..., None] * table).sum(axis=-1)
        The features are added up: (…, T, V). Add over the words, the axis of the one-hot rows.
    zeros-and-ones-as-ids: onehot @ table → table[onehot.astype(int)]
        The zeros and ones are taken for ids. The id is the place of the 1 in its row.
    nonzero-of-two-axes: onehot @ table → table[np.nonzero(onehot)[1]]
        Axis 1 is the words for one sentence only; in a batch it is the tokens. Take the last axis.
    laid-in-one-row: onehot @ table → table[np.nonzero(onehot)[-1]]
        np.where and np.nonzero list the ones of all sentences in one row. Keep the axes in front.
    columns: onehot @ table → np.moveaxis(table[:, onehot.argmax(axis=-1)], 0, -1)
        These are columns of the table. A word is a row: table[ids].
    each-word-once: onehot @ table → table[onehot.any(axis=-2)]
        Each word comes once, in the order of the table. Each token needs its row, in its place.
    tokens-added-up: onehot @ table → (onehot @ table).sum(axis=-2)
        The embeddings of a sentence are added up. Each token keeps a row of its own, (…, T, D).
    """,
    story=True,
)  # fmt: skip


build_vocab = exercise(
    """
    def build_vocab(sentences):
        vocab = {}
        for sentence in sentences:
            for token in sentence.split():
                if token not in vocab:
                    vocab[token] = len(vocab)
        return vocab
    """,
    course=course.build_vocab,
    hints="""How do you get each token of all sentences once, and no token twice?
    Go through all tokens; one that the dictionary lacks gets the number of those it holds.""",
    slips="""
    last-position: return vocab → return {w: i for i, w in enumerate(" ".join(sentences).split())}
        A word that comes again takes a new number and leaves a gap: number the different ones.
    new-number-for-the-known: if token not in vocab:⏎ → if True:⏎
        A word that comes again gets a new number. One that is known keeps its own.
    gaps: return vocab → all = " ".join(sentences).split(); return {w: all.index(w) for w in all}
        Words that come again are counted on too, so ids have gaps: number the different ones.
    ids-from-one: len(vocab) → len(vocab) + 1
        The ids start at 1. An id is a row of a table, and rows count from 0.
    ids-to-tokens: return vocab → return {i: token for token, i in vocab.items()}
        It maps ids to tokens: key and value are swapped. The tokens must be the keys.
    counts: return vocab → return Counter(" ".join(sentences).split())
        These are counts, how often each token comes. An id is a number of its own for each token.
    counts-less-one: if token not in vocab:⏎ → if True:⏎ ⊕ len(vocab) → vocab.get(token, -1) + 1
        The number grows with its own token, so it is a count. Give each token one of its own.
    restart: token in sentence.split() → k, token in enumerate(sentence.split()) ⊕ len(vocab) → k
        Numbers begin again in each sentence, so two words share one: number on over all of them.
    no-order: sentence.split() → sorted({*sentence.split()})
        Ids go neither by appearance nor by the alphabet: by frequency perhaps, or as in a set.
    characters: sentence.split() → sentence
        The tokens are single characters: to Python a text is a row of letters. Split it into words.
    first-sentence-only: in sentences → in sentences[:1]
        Only the first sentence is read. Is the `return` inside the loop?
    """,
)


def facts(fn, sentences):
    """The tokens, the ids, and whether many ids are in one of the two orders allowed."""
    vocab, first = fn(sentences), list(dict.fromkeys(" ".join(sentences).split()))
    if not isinstance(vocab, dict):
        return vocab
    fine = len(first) < 9 or sorted(vocab, key=vocab.get) in (first, sorted(first))
    return {"tokens": str(sorted(vocab, key=str)), "ids": str(sorted(vocab.values(), key=str)),
            "in order of appearance, or sorted": fine}  # fmt: skip


for label, *s in [("one sentence", "we drink tea"), ("a word again at once", "no no no tea or no"),
    ("two sentences that share words", "we drink tea", "you drink tea daily"),
    ("capitals, marks, white space", "Tea, please.", " tea  please", "More\tTea, please.\nA"),
    ("many tokens", "the quick fox met the old dog", "zeal and a fox jumps", "a dog is old",
     "the cat met a day that is old and a fox")]:  # fmt: skip
    build_vocab.probes.append(Probe(label, lambda fn, s=s: facts(fn, s), (s,)))


one_hot = exercise(
    """
    def one_hot(ids, vocab_size):
        places = np.arange(vocab_size)
        return (np.asarray(ids)[..., None] == places).astype(float)
    """,
    course=course.one_hot,
    ways=["def one_hot(ids, vocab_size):\n    return np.eye(vocab_size)[ids]"],
    hints="""Which axis is new, how long is it, and in which of its places stands the 1 of an id?
    Compare ids[..., None] with all places, np.arange(vocab_size): each id equals one of them.""",
    probes=IDS,
    slips="""
    width-from-the-largest-id: np.eye(vocab_size) → np.eye(ids.max() + 1)
        The width comes from the largest id here. It must be vocab_size, whatever the sentence.
    ones-in-every-row: [ids] → [ids] * 0 + np.isin(np.arange(vocab_size), ids)
        All rows hold the ones of all tokens: whole columns were set, or all rows are the same list.
    batch-axes-flattened: [ids] → [ids.reshape(-1)]
        For a batch the leading axes are flattened: (B·T, V) instead of (B, T, V).
    one-row-for-each-step: [ids] → [ids].max(axis=tuple(range(1, ids.ndim)))
        In a batch each sentence became one row with several ones. Each token needs its own row.
    one-place-too-far-to-the-left: [ids] → [ids - 1]
        The 1 stands one place too far left. Ids count from 0: id 0 belongs to column 0.
    ids-from-one: np.eye(vocab_size)[ids] → 1.0 * (ids[..., None] == np.arange(1, vocab_size + 1))
        The 1 stands one place too far left, and id 0 has none. Ids count from 0, as columns do.
    id-zero-left-out: [ids] → [ids] * (ids > 0)[..., None]
        The rows of id 0 are all zero. Id 0 is a word like the others: its 1 stands in column 0.
    renumbered: np.eye(vocab_size)[ids] → np.eye(len({*ids.flat}))[np.unique(ids).searchsorted(ids)]
        The ids are renumbered. Column j must mean word j in every sentence.
    """,
    whole_numbers=True,
)

bag_of_words = exercise(
    """
    def bag_of_words(ids, vocab_size):
        rows = one_hot(ids, vocab_size)
        return rows.sum(axis=-2).astype(int)
    """,
    hints="""What do you get when you add up all one-hot rows of a sentence?
    Make the one-hot rows, (…, T, V), and sum over the tokens: the last axis but one.""",
    probes=IDS,
    slips="""
    batch-in-one-row: rows.sum(axis=-2) → rows.sum(axis=tuple(range(rows.ndim - 1)))
        The whole batch is counted together. Each sentence needs its own row of counts.
    width-from-the-largest-id: one_hot(ids, vocab_size) → one_hot(ids, ids.max() + 1)
        The row ends at the largest id here. It has a place for every word: vocab_size of them.
    counted-from-one: one_hot(ids, vocab_size) → one_hot(ids, vocab_size + 1)[..., 1:]
        The counts stand one place too far left, without id 0. Ids count from 0, as places do.
    repeated-word-counted-once: rows.sum( → rows.max(
        A word that comes several times counts once; `counts[ids] += 1` does that too. Add them all.
    """,
    whole_numbers=True,
)
