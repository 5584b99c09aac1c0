"""Notebook 14: names in a published file, a vector for a sentence, heads scored, word pieces."""

from helpers.attention import softmax
from workshop.exercises.exercise import Untested, exercise, numbers

our_name = exercise(
    """
    from helpers.examples import PLACES

    def our_name(name):
        part, _, kind = name.rpartition(".")
        home = ""
        if part.startswith("encoder.layer."):
            _, _, n, part = part.split(".", 3)
            home = f"encoder.layers.{n}."
        return f"{home}{PLACES[part]}.{kind}" if part in PLACES else None
    """,
    hints="""Which three things does encoder.layer.3.output.dense.bias say? Which of them stays?
    rpartition(".") cuts off the kind; in a layer split(".", 3) gives the number, then the part.""",
    backends=("numpy",), probes=[
        ("a query matrix", "encoder.layer.3.attention.self.query.weight"),
        ("a bias", "encoder.layer.0.attention.self.query.bias"),
        ("the attention's output", "encoder.layer.1.attention.output.dense.weight"),
        ("a layer with two figures", "encoder.layer.11.attention.output.LayerNorm.weight"),
        ("a table", "embeddings.word_embeddings.weight"), ("the pooler", "pooler.dense.bias"),
        ("the first norm", "embeddings.LayerNorm.bias"), ("a count", "embeddings.position_ids"),
        ("a name that only ends right", "bert.embeddings.LayerNorm.bias"),
    ],
    story=True,
    slips="""
    layer-kept: f"encoder.layers → f"encoder.layer
        The list of layers keeps its name, encoder.layer. With us it is encoder.layers, with an s.
    encoder-left-out: f"encoder. → f"
        The name begins with layers. Our layers lie inside the encoder: encoder.layers.
    one-figure: {n} → {n[0]}
        The layer's number is read as a single figure, so 11 becomes 1. Split at the dots.
    kind-left-out: .{kind} → ∅
        The last word is missing, so weight and bias get one name. Put it behind our part.
    always-weight: {kind} → weight
        Each name ends in weight, that of a bias too. The last word stays as it is.
    layers-alone: part in PLACES → home and part in PLACES
        Only parts of layers are renamed. PLACES has the tables and the norm outside them too.
    names-without-a-place-kept: else None → else name
        What has no place in our model keeps its name. It must get None.
    ends-right: PLACES[part] → part.removesuffix(end) + PLACES[end] ⊕ part in PLACES → \\
            (end := next((p for p in PLACES if part.endswith(p)), ""))
        A name that only ends right is taken too, with anything in front. Look up the whole part.
    in-a-layer: 3) → 3); part = next((p for p in PLACES if part.endswith(p)), part)
        In a layer, a part that only ends right is taken too. Look up the whole part.
    output-mixed-up: PLACES[part] → part.removesuffix(end) + PLACES[end] ⊕ part in PLACES → \\
            (end := next((p for p in reversed(PLACES) if part.endswith(p)), ""))
        attention.output.dense is taken for output.dense, as it ends alike. Look up the whole part.
    """,
)  # fmt: skip


@our_name.experiment("MobileBERT's encoder.layer.3.ffn.0.intermediate.dense.weight")
def _(fn):
    try:
        return fn("encoder.layer.3.ffn.0.intermediate.dense.weight")
    except KeyError:  # it was looked up, and that file is none of ours
        return Untested()


def marks(rows):
    """A table of True and False, written as 1 and 0."""
    return [[mark == "1" for mark in row] for row in rows.split()]


mean_pool = exercise(
    """
    def mean_pool(hidden, is_real):
        total = (hidden * is_real[..., None]).sum(axis=1)
        count = is_real.sum(axis=1)
        return total / np.maximum(count, 1)[:, None]
    """,
    hints="""Of three real tokens and two of padding: what is added up, and by what is it divided?
    Sum hidden times is_real[..., None] over axis=1; divide by is_real.sum(axis=1), at least 1.""",
    probes=[
        ("two words and one padding", [[[1.0, 2.0], [3.0, 6.0], [8.0, 1.0]]], marks("110")),
        ("a real token of zeros", [[[4.0, 2.0], [0.0, 0.0], [7.0, 7.0]]], marks("110")),
        ("padding on the left", numbers(2, 5, 3), marks("11111 00111")),
        ("as many sentences, tokens and features", numbers(3, 3, 3), marks("110 101 011")),
        ("a sentence of padding alone", numbers(3, 4, 3), marks("0000 1100 1111")),
    ],
    slips="""
    padding-not-left-out: is_real → np.ones_like(is_real)
        is_real is not used: padding is in the mean. Sum and count the real tokens alone.
    divided-by-the-padded-length: count = is_real.sum(axis=1) → count = (is_real | True).sum(axis=1)
        The sum leaves padding out, but is divided by all T tokens. Count the real ones alone.
    not-divided: / np.maximum(count, 1)[:, None] → ∅
        This is the sum, so long sentences get long vectors. Divide by their number of real tokens.
    all-sentences-in-one: total / np.maximum(count, 1)[:, None] → hidden[is_real].mean(axis=0)
        All sentences of the batch become one vector. Take a mean for each sentence.
    first-tokens: total = → is_real = np.sort(is_real)[:, ::-1]⏎    total =
        As many tokens as are real are taken from the front. Padding may stand on either side.
    zeros-become-nan: np.maximum(count, 1) → count
        0 / 0 is nan in a sentence without real tokens. Divide by at least 1.
    """,
)

head_scores = exercise(
    """
    def head_scores(weights, wanted):
        share = (weights * wanted).sum(axis=-1)
        asking = wanted.any(axis=-1).sum()
        return share.sum(axis=-1) / max(asking, 1)
    """,
    hints="""For a head that looks at the token before: how many queries have a wanted key?
    Sum weights * wanted over keys, then queries; divide by those with wanted.any(axis=-1).""",
    probes=[("two heads", [[[[1.0, 0.0], [0.8, 0.2]], [[0.3, 0.7], [0.4, 0.6]]]], marks("00 10")),
            ("the same word", numbers(3, 2, 4, 4).then(softmax), marks("0101 1001 0000 1100")),
            ("one query asks", numbers(2, 3, 4, 4).then(softmax), marks("0110 0000 0000 0000")),
            ("as many heads as tokens", numbers(3, 3, 3, 3).then(softmax), marks("011 000 100")),
            ("a query without weight there", [[[[1.0, 0.0], [0.5, 0.5]]]], marks("01 10")),
            ("no query asks", numbers(2, 3, 2, 2).then(softmax), marks("00 00"))],
    slips="""
    averaged-over-all-queries: max(asking, 1) → len(wanted)
        The mean runs over all T queries. Average over those that have a wanted key.
    averaged-over-wanted-pairs: wanted.any(axis=-1).sum() → wanted.sum()
        It divides by the number of wanted pairs. Divide by the queries that have any.
    strongest-key: weights * wanted → wanted * (weights == weights.max(axis=-1, keepdims=True))
        It counts how often the strongest key is wanted. Add up the weights of the wanted keys.
    nan-for-none: max(asking, 1) → asking
        Where no query has a wanted key, 0 / 0 is nan. The score is 0 then.
    """,
)  # fmt: skip

VOCAB = {piece: i for i, piece in enumerate("""[UNK] play ##s un ##play ##ed the ##a ##ab ##able ##y
    ##l a b playing ##ing né ##ö ##e re ##re ed Big ##C ##at xy xyz ##zw""".split())}  # fmt: skip
WORDS = "play plays unplayed playing unplayable b bal sy bthe unqed playsz qed rerere BigCat"

word_pieces = exercise(
    """
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
    """,
    hints="""For "unhappy", with "un", "##happy" and "##hap" at hand: which do you try first?
    Try word[start:end] for end from len(word) down, with "##" if start > 0; go on from there.""",
    probes=[*((f'the word "{word}"', word, VOCAB) for word in WORDS.split()),
            ("the longest piece, though it leads nowhere", "xyzw", VOCAB)],
    slips="""
    no-marks: ("##" if start else "") + → ∅
        Later pieces have no "##". Every piece but the first is looked up and written with it.
    looked-up-without-mark: piece in vocab → word[start:end] in vocab
        Later pieces get "##" only after they are looked up. The vocabulary has them with the mark.
    marks-not-written: append(piece) → append(word[start:end])
        Later pieces are returned without "##". Keep the mark: such a piece begins no word.
    shortest-first: range(len(word), start, -1) → range(start + 1, len(word) + 1)
        The shortest piece is tried first. Try the longest first, down to one letter.
    last-letter-alone: range(len(word), → range(max(len(word) - 1, start + 1),
        The whole rest is never tried: the first end is len(word), just behind the last letter.
    unknown-letter-by-letter: return ["[UNK]"] → pieces.append("[UNK]")⏎            start += 1
        A letter at which nothing fits becomes [UNK], and it goes on. Then the whole word is [UNK].
    known-pieces-kept: return ["[UNK]"] → return [*pieces, "[UNK]"]
        The pieces before an unknown rest are kept. Then the whole word is ["[UNK]"], no more.
    """,
)  # fmt: skip
