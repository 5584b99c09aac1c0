"""Drawings made from arrays: their numbers, their words, and whether they can be read."""

import gc
import io
from collections import Counter
from functools import cache

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, PathPatch, Polygon, Rectangle
from PIL import Image
from test_figures import GROUNDS, contrast

from helpers.examples import sentence
from workshop import drawings
from workshop.colours import OF
from workshop.drawings.matrices import maps
from workshop.drawings.sheet import INK, INKS

pytestmark = pytest.mark.slow

WORDS = "the shop sells apple and banana".split()
X = np.array([[0, 0, 0], [0, 1, 3], [1, 0, 2], [2, 2, 0], [0, 0, 0], [4, 0, 1]])
W_Q, W_K = np.eye(3)[:, :2], np.eye(3)[:, ::2] / 2  # so that S is not S.T
Q, K, V = X @ W_Q, X @ W_K, X @ W_Q
S = Q @ K.T
A, CAUSAL = (np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
             for s in (S / 2**0.5, np.where(np.tri(6), S / 2**0.5, -np.inf)))  # fmt: skip
C = A @ V
SECOND = Q[3, 1] * K[:, 1]  # the second head's scores, divided by √1
A_2 = np.exp(SECOND) / np.exp(SECOND).sum()
TWELVE = [f"word{i}" for i in range(12)]
ADDED = {"attention": np.array([0.6, -1.1, 0.2]), "feed-forward": np.array([-0.5, 0.1, 1.0])}
AFTER = X[3] + np.cumsum([*ADDED.values()], axis=0)
SOURCE = "le magasin vend des pommes".split()
CROSS = np.array([[0.9, 0.1, 0, 0, 0], [0, 0.8, 0.1, 0.1, 0], [0, 0.05, 0.9, 0.05, 0],
                  [0, 0, 0, 0.25, 0.75], [0.2] * 5, [0.2] * 5])  # fmt: skip
GROWS = [("<start>", {"the": 0.6, "a": 0.2, "one": 0.1, "two": 0.06, "no": 0.04}),
         ("<start> the", {"shop": 0.5, "apple": 0.47, "the": 0}),
         ("<start> the apple", {"<end>": 0.98, "falls": 0.02})]  # fmt: skip
LIKELY = np.array([0.6, 0.2, 0.1, 0.06, 0.5, 0.47, 0, 0.98, 0.02])  # those that are drawn
PLACES = np.array([[0, 1, 0, 1], [0.84, 0.54, 0.1, 1], [0.91, -0.42, 0.2, 0.98]])
NOISE = np.random.default_rng(5).normal(size=(12, 8))
KEPT = np.arange(36).reshape(6, 6) % 3 > 0
GROUPS = {"encoder": ["x", "attention", "a step that is longer than its box"], "decoder": ["x"]}
HOSTILE = ["$x$ _y_ ^2", "<script>alert(1)</script>", "مرحبا بالعالم", "👩\u200d👧", "a\nb\tc\x00",
           "W" * 5000]  # fmt: skip


def each(row, decimals=2):
    return ", ".join(f"{word} {n:.{decimals}f}" for word, n in zip(WORDS, row, strict=True))


def head(words=WORDS, asker=3, **how):
    return drawings.head(words, X, Q, K, V, asker, **how)


def cases(words):
    """What can be drawn of six words, the numbers in it (array, decimals) and words that say so."""
    first = (X, 1), (K, 1), (Q[3], 1), (S[3], 1), (S[3] / np.sqrt(2), 2)
    last = (V, 1), (A[3], 2), (A[3][:, None] * V, 2), (C[3], 2)
    w = CAUSAL[3]
    causal = (V, 1), (w, 2), (w[:, None] * V, 2), (w @ V, 2)
    both, old = np.hstack([Q, K, V, Q]), X @ NOISE[:3]
    four = [(words[: i + 1], dict.fromkeys([*words[::-1], "?"], 0.1)) for i in range(6)]
    names = {"rows": words, "columns": words}
    turned = {"before": old, "order": "x, y"}
    return {
        "head": (head(words), [*first, *last], f"score {each(S[3], 1)}; scaled"),
        "head, one step lit": (head(words, lit="weights"), [*first, *last], "Lit: weights."),
        "head, closed": (head(words, closed=["q", "scaled", "weights"]),
                         [*first[:2], first[3], last[0], *last[2:]], "notebook 05 opens it"),
        "head, causal": (head(words, causal=True), [*first, (S[3, :4] / np.sqrt(2), 2), *causal],
                         "masked the 0.00, shop 2.12, sells 2.12, apple 1.41, and −∞, banana −∞"),
        "head, by hand": (head(words, weights=[0, 0, 0, 0.5, 0, 0.5]), None, "context 3.00, 1.00."),
        "head 2": (head(words, num_heads=2, head=2), [(X, 1), (K[:, 1:], 1), (Q[3, 1], 1),
                   (SECOND, 1), (SECOND, 1), (V[:, 1:], 1), (A_2, 2), (A_2 * V[:, 1], 2),
                   (A_2 @ V[:, 1], 2)], "apple asks in head 2; query 2.0; score the 0.0, shop 3.0"),
        "matrix": (drawings.matrix(A, "weights", title="A", lit=(3, 5), **names), [(A, 2)],
                   "Matrix A: the 0.17, 0.17, 0.17, 0.17, 0.17, 0.17; shop"),
        "product": (drawings.product(X, W_Q, rows=words, lit=(3, 1)), [(X, 1), (W_Q, 1), (Q, 1)],
                    "Lit: 2.0 × 0.0 + 2.0 × 1.0 + 0.0 × 0.0 = 2.0."),
        "split": (drawings.split_qkv(words[3], X[3], W_Q, W_K, W_Q),
                  [(X[3], 1), (W_Q, 1), (W_K, 1), (W_Q, 1), (Q[3], 1), (K[3], 1), (V[3], 1)],
                  "q (what it asks) 2.0, 2.0; k (what it offers) 1.0, 0.0"),
        "row": (drawings.pick_row(words, X, 3), [(np.arange(6) == 3, 0), (X, 1), (X[3], 1)],
                "stands at apple: it picks the row 2.0, 2.0, 0.0."),
        "arrows": (drawings.arrows_of_scores(words, S - 1, 3), [(S[3] - 1, 1)],
                   f"apple asks: {each(S[3] - 1, 1)}"),
        "all arrows": (drawings.arrows_of_scores(words, A, name="weights"), [],
                       f"apple asks: {each(A[3])}"),
        "arrows of two heads": (drawings.arrows_of_scores(words, A[2:4], 3, name="weights"),
                                [(A[2], 2), (A[3], 2)], f"head 2: {each(A[3])}"),
        "matrix, a row lit": (drawings.matrix(A, "weights", lit=3), [(A, 2)], "Matrix weights: "),
        "plane": (drawings.plane(words, V, C, 3, names=("food", "device")), None,
                  "apple (2.0, 2.0) → ({:.2f}, {:.2f})".format(*C[3])),
        "two planes": (drawings.plane(words, V, C[3], 3, beside=(words, V, C)),
                       None, "({:.2f}, {:.2f}), and (0.0, 0.0), banana".format(*C[3])),
        "captioned plane": (drawings.plane(words, V, C, caption="two heads"), None, "Values as "),
        "points": (drawings.plane("a b", [[0, 1], [2, -0.5]], caption="two places"), None,
                   "Points: a (0.0, 1.0), b (2.0, −0.5)."),
        "moved": (drawings.moved(words[3], V[3], C[3], names=("food", "device")), None,
                  "context ({:.2f}, {:.2f}) = ({:.2f}, {:.2f})".format(*C[3], *V[3] + C[3])),
        "mask": (drawings.mask_over(words, S), [(S, 1), (S[np.tri(6, dtype=bool)], 1)],
                 "apple sees the 0.0, shop 3.0, sells 3.0, apple 2.0, and −∞, banana −∞"),
        "narrow heads": (drawings.cut_into_heads(words, NOISE[:6], 8),
                         [(NOISE[:6], 2)] * 2 + [(np.arange(1, 9), 0)], "8 heads of 1 feature"),
        "heads": (drawings.cut_into_heads(words, both, 2), [(both, 1)] * 2,
                  "8 features cut into 2 heads of 4 features each"),
        "holes": (drawings.holes(words, A, A * KEPT / (2 / 3)), [(A, 2), ((A * 1.5)[KEPT], 2)],
                  "12 of 36 dropped, the rest × 1.50"),
        "maps": (maps([("a", A), ("b", np.where(KEPT, A, np.nan))], "weights", words, words, 1,
                      "two heads"), [(A, 2), (A[KEPT], 2)], "two heads"),
        "flow": (drawings.flow({"reads": ["x", *words], "writes": words}, words[3]), [],
                 "banana; lit: apple."),
        "clocks": (drawings.clock_hands(words[:3], PLACES), [(PLACES, 2)],
                   "(sin, cos): pair 0: the (0.00, 1.00), shop (0.84, 0.54), sells (0.91, −0.42); "
                   "pair 1: the (0.00, 1.00), shop (0.10, 1.00), sells (0.20, 0.98)."),
        "turned": (drawings.clock_hands(words, NOISE[:6], **turned), [(NOISE[:6], 2)],
                   "apple ({:.2f}, {:.2f}) → ({:.2f}, {:.2f})".format(*old[3, :2], *NOISE[3, :2])),
        "between": (drawings.arrows_between(words, words[:2], CROSS[:, 1:3], words[1]),
                    [(CROSS[1, 1:3], 2)], "shop asks: the 0.80, shop 0.10."),
        "all between": (drawings.arrows_between(words, SOURCE, CROSS), [],
                        "apple asks: le 0.00, magasin 0.00, vend 0.00, des 0.25, pommes 0.75"),
        "writing": (drawings.writing(four), [(np.full(24, 0.1), 2)], "the → "),
        "river": (drawings.river(words[3], X[3], ADDED), [(X[3], 1), (AFTER, 1), (
                  [*ADDED.values()], 1)], "apple 2.0, 2.0, 0.0; attention adds 0.6, −1.1, 0.2, "
                  "which makes 2.6, 0.9, 0.2; feed-forward adds −0.5, 0.1, 1.0, which"),
        "replaced": (drawings.river(words[3], X[3], dict(zip(words, X, strict=True)),
                     replaced=True), [(X[3], 1), (X, 1), (X, 1)], "the puts 0.0, 0.0, 0.0 in its"),
    }  # fmt: skip


@cache
def told():
    """The cases of six plain words, each drawn once."""
    return cases(WORDS)


def large():
    """The largest that are drawn whole, with numbers of six characters."""
    twelve, weights = NOISE @ NOISE.T, np.abs(NOISE)[:, :6]
    rivers = {f"cross-attention {i}": 99 * NOISE[i, :6] for i in range(6)}
    ends = [[0.2, 1], [1, -0.4], [-1, 0.1]]
    return {
        "large head": drawings.head(TWELVE, NOISE, NOISE, NOISE, NOISE, 4),
        "large matrix": drawings.matrix(twelve, rows=TWELVE, columns=TWELVE),
        "large arrows": drawings.arrows_of_scores(TWELVE, twelve, 2),
        "plane of arrows": drawings.plane("a b c", ends, arrows=True),
        "large plane": drawings.plane(TWELVE, NOISE[:, :2], NOISE[:, 2:4] / 4),
        "large mask": drawings.mask_over(TWELVE, twelve),
        "large heads": drawings.cut_into_heads(TWELVE, twelve, 4, "v"),
        "large holes": drawings.holes(TWELVE, weights, weights * (weights > 0.5)),
        "large clocks": drawings.clock_hands(TWELVE, -20 * abs(NOISE), before=NOISE, name="k"),
        "large between": drawings.arrows_between(TWELVE, TWELVE, abs(twelve) / 9),
        "large writing": drawings.writing([(TWELVE[:i], dict.fromkeys(TWELVE, 1))
                                           for i in range(5, 11)]),
        "large river": drawings.river("word" * 9, 99 * NOISE[0, :6], rivers),
        "large flow": drawings.flow({"reads": TWELVE, "writes": TWELVE}, "word3"),
        "many maps": maps([(f"head {i}", twelve) for i in range(4)], "scores", TWELVE, TWELVE, 9,
                          "four heads"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """Every picture by its name."""
    gc.disable()  # so many parts that stay: looking for some to free takes as long as making them
    made = {name: picture for name, (picture, _, _) in told().items()} | large()
    made |= {f"{name}, hostile": picture for name, (picture, _, _) in cases(HOSTILE).items()}
    for picture in made.values():
        assert picture.png  # drawn as it is shown
    gc.freeze()
    gc.enable()
    yield made
    gc.unfreeze()


def texts(picture):
    return [text for text in picture.figure.axes[0].texts if text.get_text()]


def inks(picture):
    """The colour of each text of a drawing."""
    return {text.get_text(): text.get_color() for text in texts(picture)}


def shapes(picture, kind):
    return [shape for shape in picture.figure.axes[0].patches if isinstance(shape, kind)]


def lines(picture, colour):
    """The shafts of all arrows of one colour, in the order in which they were drawn."""
    paths, wanted = shapes(picture, PathPatch), to_rgba(colour)[:3]
    return [path for path in paths if to_rgba(path.get_edgecolor())[:3] == wanted]


def widths(picture, colour):
    return [line.get_linewidth() / 0.75 for line in lines(picture, colour)]


@cache
def boxes(picture):
    """Where the texts of a drawing lie: (texts, 4) of left, low, right and high."""
    return np.array([t.get_window_extent().extents for t in texts(picture)]).reshape(-1, 4)


def numbers(picture):
    """How often each number is written."""
    said = [text.get_text().replace("−", "-") for text in texts(picture)]
    return Counter(text for text in said if text.replace(".", "").lstrip("-").isdigit())


def expected(*arrays):
    """Numbers as they must be written: (array, decimals) …"""
    return Counter(f"{n:.{decimals}f}" for array, decimals in arrays for n in np.ravel(array))


def test_drawings_show_and_say_the_numbers_of_their_arrays(drawn):
    assert head().png == drawn["head"].png  # each time
    for name, (picture, arrays, said) in told().items():
        assert said.replace("−", "-") in picture.alt.replace("−", "-"), name
        assert arrays is None or numbers(picture) == expected(*arrays), name
    moved = expected((V[3], 1), (C[3], 2), (V[3] + C[3], 2))
    assert not moved - numbers(drawn["moved"])  # beside those of the axes
    seen = {name: Counter(text.get_text() for text in texts(p)) for name, p in drawn.items()}
    assert seen["holes"]["×"] == seen["maps"]["×"] == 12 and seen["head, causal"]["−∞"] == 2
    assert seen["large head"]["…"] == 12 * 4 + 2 and seen["large river"]["…"] == 0
    assert [seen[name]["+"] for name in ("river", "replaced", "large river")] == [2, 0, 6]
    assert f"{A[3, 5]:.2f}" not in drawn["head, closed"].alt
    own = "green: what the words give; grey: what they become"
    captions = [
        [own in seen[name], "two places" in seen[name]]
        for name in ("plane", "points", "captioned plane")
    ]
    assert captions == [[True, False], [False, True], [False, False]]
    assert {"head", *"12345678"} <= set(" ".join(seen["narrow heads"]).split())  # in two lines
    assert "head 4" in seen["large heads"]


def row_of(picture, word):
    """What stands beside a word, from left to right."""
    said = sorted((*text.get_position(), text.get_text()) for text in texts(picture))
    (height,) = [y for _, y, words in said if words == word]
    return [words for _, y, words in said if abs(y - height) < 2]


def test_each_row_reads_from_the_word_to_its_share(drawn):
    for i, word in enumerate(WORDS):
        w = [f"{n:.2f}" for n in (S[3, i] / np.sqrt(2), A[3, i])]
        v = [f"{n:.1f}" for n in V[i]] + [f"{n:.2f}" for n in A[3, i] * V[i]]
        x = [f"{n:.1f}" for n in (*X[i], *K[i], S[3, i])]
        assert row_of(drawn["head"], word) == [word, *x, *w, "×", *v]


ASKS = [(text.split(), asker, heads) for heads in (1, 2) for text, asker in (
    ("the shop sells apple and banana", "apple"), ("the shop sells apple and laptop", "apple"),
    ("apple and laptop", "apple"), ("the shop sells banana and apple", "sells"))]  # fmt: skip


@pytest.mark.parametrize("words, asker, heads", ASKS)
def test_what_is_written_adds_up(words, asker, heads):
    """Weight × value, and their sum, to half a unit of the digits in which they stand."""
    _, *arrays = sentence(" ".join(words))
    picture = drawings.head(words, *arrays, asker, num_heads=heads, head=heads)
    sums, context = 0, picture.alt.partition("; context ")[2].rstrip(".").split(", ")
    for word in words:
        weight, _, *rest = row_of(picture, word)[-2 - 4 // heads :]
        value, added = np.split(np.array(rest, float), 2)
        assert np.abs(float(weight) * value - added).max() <= half_a_unit(rest[-1])
        sums += added
    assert np.abs(sums - np.array(context, float)).max() <= half_a_unit(context[0])


def half_a_unit(text):
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9


def test_numbers_are_short_and_what_does_not_fit_is_left_out():
    assert [*inks(drawings.matrix(np.array([[2, 0]]))), *inks(drawings.matrix([[2.0, 0.5]]))] == [
        "2", "0", "2.0", "0.5"]  # fmt: skip
    rounded = drawings.product([[0.333, 0.333]], [[4], [4]], lit=(0, 0)).alt
    assert rounded.endswith("0.33 × 4.0 + 0.33 × 4.0 ≈ 2.66.")  # what is written sums to 2.64
    wide = drawings.river("apple", NOISE[0, :7], {"attention": NOISE[1, :7]}).alt
    assert f"{NOISE[0, 4]:.2f}, …; attention" in wide.replace("−", "-")
    hands = drawings.clock_hands(TWELVE, np.ones((12, 10))).alt
    assert "pair 3" in hands and "pair 4" not in hands


def test_steps_side_by_side_and_what_is_read_besides():
    """Two inputs lead to two heads, these to their end; what is read leads to its reader alone."""
    groups = {"words": ["x", "y"], "heads": ["1", "2"], "end": ["joined"]}
    apart = {"words": {0, 1}, "heads": {1}}
    whole, memory = (drawings.flow(groups, breaks=apart, read=read)
                     for read in (None, {"words": ["heads/2"]}))  # fmt: skip
    assert [len(lines(way, INK)) for way in (whole, memory)] == [6, 4]
    assert whole.alt == "words: x, y; heads: 1, 2; end: joined."
    assert memory.alt == "words: x, y; heads: 1, 2; end: joined; words is read by heads/2."


def test_steps_are_joined_and_lit_in_all_groups_or_in_one():
    """What is lit is bold, and the words say which."""
    joined = [len(lines(drawings.flow(GROUPS, linked=on), INK)) for on in (True, False)]
    assert joined == [3, 2]
    for lit, bold in (("x", 2), ("decoder/x", 1), (["attention", "decoder/x", "x"], 3)):
        picture = drawings.flow(GROUPS, lit)
        assert [text.get_weight() for text in texts(picture)].count("bold") == bold
        said = lit if isinstance(lit, str) else " → ".join(lit)
        assert picture.alt.endswith(f"a step that is longer than its box; decoder: x; lit: {said}.")


PRODUCTS = ["Q Kᵀ scores q k scores", "X W_v V x v v", "hidden W2 out x context context"]


@pytest.mark.parametrize("names", PRODUCTS)
def test_a_product_has_the_colours_of_its_things(names):
    *names, x, w, result = names.split()
    colours = inks(drawings.product(np.eye(3), np.eye(3), names))
    assert [colours[name] for name in names] == [INKS[thing] for thing in (x, w, result)]


def test_names_of_columns_are_told_apart():
    names = ["not going", "token embeddings", "token positions"]
    assert set(names) <= set(inks(drawings.matrix(np.eye(3), columns=names)))


@pytest.mark.parametrize("order, zero", {"sin, cos": (0, 1), "x, y": (1, 0)}.items())
def test_a_hand_points_at_its_two_numbers_and_a_tick_at_angle_0(order, zero):
    hands = np.array([[0, 1], [3, 0], [0, -2], [0, 0]])  # up, right, down, none
    clocks = drawings.clock_hands("a b c d", hands, order=order, name="q")
    rings = [dot for dot in shapes(clocks, Circle) if dot.radius > 9]
    ticks = [line.get_path().vertices[-1] for line in shapes(clocks, PathPatch)[::2]]
    tips = [head.get_xy()[0] for head in shapes(clocks, Polygon)]
    for ends, wanted in ((tips, hands / 3), (ticks, [zero] * 4)):
        ways = [end - ring.center for end, ring in zip(ends, rings, strict=True)]  # downwards
        np.testing.assert_allclose(ways * np.array([1, -1]) / rings[0].radius, wanted, atol=1e-9)


def test_arrows_are_as_wide_as_the_weights(drawn):
    """Below 0 one is thin and dashed; a weight of 0 and −∞ have none; two rows are two heads."""
    pink, violet = INKS["weights"], INKS["scores"]
    one = drawings.arrows_between(WORDS, SOURCE, CROSS[3], "apple")
    few = drawings.arrows_of_scores(WORDS, [0.5, 0, 0, 0.5, 0, 0], "apple", name="weights")
    two = drawings.arrows_of_scores("a b", [[0.5, 0.5], [1, 0]], "b", name="weights")
    assert two.alt.endswith("b asks: head 1: a 0.50, b 0.50; head 2: a 1.00, b 0.00.")
    for picture, wanted in ((drawn["head"], 0.8 + 8 * A[3]), (one, 0.6 + 9 * CROSS[3, 3:]),
                            (drawn["all arrows"], 0.6 + 4 * A.ravel()), (few, [5.1, 5.1]),
                            (drawn["all between"], 0.6 + 4 * CROSS[CROSS > 0]),
                            (two, [5.1, 5.1, 9.6])):  # fmt: skip
        np.testing.assert_allclose(widths(picture, pink), wanted)
    dashed = [line.get_linestyle() == "--" for line in lines(drawn["arrows"], violet)]
    assert dashed == (S[3] < 1).tolist()
    below = widths(drawings.arrows_of_scores(WORDS, [4, -8, 0, 2, 1, -np.inf], "apple"), violet)
    assert below == pytest.approx([9.6, 0.6, 0.6, 5.1, 2.85])


def test_two_sentences_stand_side_by_side_on_one_scale():
    words, V2 = ["the", "apple", "laptop"], np.array([[0, 0], [2, 2], [0, 4]])
    both = drawings.plane(WORDS, V, C[3], "apple", beside=(words, V2, V2.mean(axis=0)))
    said = Counter(text.get_text() for text in texts(both))
    assert said["apple"] == said["apple in context"] == said["feature 1"] == 2
    assert {"the, and", "the", "“the apple laptop”"} <= set(said)
    assert said["green: what the words give; grey: what apple becomes"] == 1
    dots = [dot.center for dot in shapes(both, Circle)]  # word by word, a context before its value
    np.testing.assert_allclose(*[np.subtract(dots[i], dots[j]) for i, j in ((0, 4), (7, 9))])


def test_a_text_grows_by_the_words_that_were_chosen():
    """A line leads each from its bar, as long as its probability, to where it is written."""
    picture = drawings.writing(GROWS)
    assert numbers(picture) == expected((LIKELY, 2)) and picture.alt == (
        "Written word by word: <start> → the 0.60, a 0.20, one 0.10, two 0.06: the; "
        "<start> the → shop 0.50, apple 0.47, the 0.00: apple; "
        "<start> the apple → <end> 0.98, falls 0.02: <end>."
    )
    (start, end), (later, last) = (  # the last of the words is not yet written
        line.get_path().vertices[[0, -1]] for line in shapes(picture, PathPatch)
        if line.get_linewidth() == pytest.approx(1.4 * 0.75))  # fmt: skip
    at = {(text.get_text(), text.get_weight()): text.get_position() for text in texts(picture)}
    assert abs(start[1] - at["0.60", "bold"][1]) < 9 and start[0] > at["0.60", "bold"][0]
    assert abs(later[1] - at["0.47", "bold"][1]) < 9
    assert start[1] < end[1] < later[1] < last[1] and abs(last[0] - at["apple", "bold"][0]) < 40
    long = [bar.get_width() for bar in shapes(picture, Rectangle)]
    np.testing.assert_allclose(long, np.maximum(LIKELY / 0.6 * long[0], 1))
    likely = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.06, "e": 0.04}  # the chosen one is shown
    said = drawings.writing([("so", likely), (["so", "e", "f"], {"g": 1.0})]).alt
    assert "so → a 0.40, b 0.30, c 0.20, e 0.04: e; so e f → g 1.00: g." in said


def test_only_the_lit_step_is_drawn_full(drawn):
    cells = shapes(drawn["head, one step lit"], Rectangle)
    full = [cell.get_x() for cell in cells if cell.get_facecolor()[3]]
    after = sorted({cell.get_x() for cell in cells})[3 + 2 + 2]  # x, k, scores and scaled
    assert full == [after] * 6


def seen_through(picture, page):
    """Of each text of a picture on a page what is seen under it, of all that was laid there."""
    patches = sorted(picture.figure.axes[0].patches, key=lambda patch: patch.zorder)
    laid = [patch for patch in patches if patch.get_facecolor()[3]]
    low, high = np.array([p.get_window_extent().get_points() for p in laid]).swapaxes(0, 1)
    for at in boxes(picture).reshape(-1, 2, 2).mean(axis=1):
        seen = to_rgba(page)[:3]
        for i in np.flatnonzero(((low <= at) & (at <= high)).all(axis=1)):
            if laid[i].contains_point(at):
                *colour, alpha = laid[i].get_facecolor()
                seen = [alpha * c + (1 - alpha) * p for c, p in zip(colour, seen, strict=True)]
        yield seen


@pytest.mark.parametrize("page", GROUNDS.values(), ids=GROUNDS)
def test_all_is_read_on_light_and_on_dark_pages(drawn, page):
    for name, picture in drawn.items():
        if name == "many maps":
            continue  # tints without words
        for text, ground in zip(texts(picture), seen_through(picture, page), strict=True):
            ratio = contrast(text.get_color(), ground)
            assert ratio >= (3.3 if "plane" in name else 4.3), (name, text.get_text(), ratio)
    assert min(contrast(ink, page) for ink in INKS.values()) >= 4.3
    (edge,), (core,) = (lines(drawn["moved"], colour) for colour in ("#ffffff", OF["context"]))
    assert edge.get_linewidth() > core.get_linewidth()  # a context is no grey arrow
    assert max(contrast(line.get_edgecolor()[:3], page) for line in (edge, core)) > 15


def clashes(picture):
    """Pairs of texts that cover each other, and texts that reach out of the picture."""
    said, page, lie = [t.get_text() for t in texts(picture)], picture.figure.bbox, boxes(picture)
    low, high = lie[:, :2] + 1.5, lie[:, 2:] - 1.5
    over = ((low[:, None] < high) & (low < high[:, None])).all(axis=-1)
    out = (low < page.min).any(axis=1) | (high > page.max).any(axis=1)
    pairs = [(said[i], said[j]) for i, j in np.argwhere(np.tril(over, -1))]
    return pairs + [said[i] for i in np.flatnonzero(out)]


def test_no_text_is_small_covers_another_or_leaves_its_cell_or_the_picture(drawn):
    """Letters have 9 CSS pixels and more where a picture is shown 540 pixels wide."""
    for name, picture in drawn.items():
        smallest = min(text.get_fontsize() for text in texts(picture)) / 0.75
        assert smallest * min(1, 540 / picture.width) >= 9, (name, picture.width)
        assert not clashes(picture), name
        low, high = boxes(picture)[:, :2], boxes(picture)[:, 2:]
        for cell in shapes(picture, Rectangle):
            area, middle = cell.get_window_extent(), (low + high) / 2
            for i in np.flatnonzero(((area.min <= middle) & (middle <= area.max)).all(axis=1)):
                assert area.x0 <= low[i, 0] and high[i, 0] <= area.x1, (name, texts(picture)[i])


@pytest.mark.parametrize("seed", range(8))
def test_arrays_of_any_shape_fit_on_the_page(seed):
    rng = np.random.default_rng(seed)
    T, D, d, d_v = rng.integers(1, 13), *rng.integers(1, 10, 3)
    scale, odd = 10.0 ** rng.integers(-2, 9), bool(seed % 2)
    X, Q, K, V = (scale * rng.normal(size=(T, width)) for width in (D, d, d, d_v))
    words = ["".join(rng.choice(list("abcWmö "), 12)) for _ in range(T)]
    for picture in (
        drawings.head(words, X, Q, K, V, 0, causal=odd),
        drawings.product(X, scale * rng.normal(size=(D, d)), rows=words, lit=(0, 0)),
        drawings.split_qkv(words[0], X[0], *scale * rng.normal(size=(3, D, d))),
        drawings.pick_row(words, X, 0),
        drawings.moved(words[0], X[0], X[-1]),
        drawings.clock_hands(words, np.hstack([X, X]), name="q"),
        drawings.river(words[0], X[0], dict.fromkeys(words[:6], X[-1]), replaced=odd),
        maps([("a", Q), ("b", K)], "scores", words, words[:1] * d, scale, "two"),
    ):
        picture.figure.set_dpi(144)  # as it is saved
        FigureCanvasAgg(picture.figure)  # measures letters
        assert picture.width <= 840 and not clashes(picture), picture.alt


def test_pictures_are_small_and_in_the_colours_of_their_cells(drawn):
    assert all(len(picture.png) <= 60_000 for picture in drawn.values())
    seen = Image.open(io.BytesIO(drawn["head"].png)).convert("RGBA").getcolors()
    cells = {cell.get_facecolor() for cell in shapes(drawn["head"], Rectangle)}
    cells = {tuple(round(255 * c) for c in cell) for cell in cells if cell[3]}
    assert cells <= {colour for _, colour in seen}  # each exactly its tint


def test_hostile_words_are_text(drawn, recwarn):
    said = list(inks(head(HOSTILE, 1)))
    assert not [str(warning.message) for warning in recwarn]
    assert "$x$ _y_ ^2" in said and "a⏎b·c·" in said
    assert any(text.startswith("<scr") and text.endswith("…") for text in said)
    for name, picture in drawn.items():
        assert not any(text.get_parse_math() for text in texts(picture)), name
        assert len(picture.alt) < 3000 and picture.alt.isprintable(), name
