"""Drawings made from arrays: their numbers, their words, and whether they can be read."""

import gc
import io
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, PathPatch, Polygon, Rectangle
from PIL import Image
from test_figures import GROUNDS, contrast

from workshop import drawings, figures
from workshop.colours import OF
from workshop.drawings import sheet

pytestmark = pytest.mark.slow

TABLE = {"the": [0, 0, 0], "shop": [0, 1, 3], "sells": [1, 0, 2], "apple": [2, 2, 0],
         "and": [0, 0, 0], "banana": [4, 0, 1], "laptop": [0, 4, 1]}  # fmt: skip
WORDS = "the shop sells apple and banana".split()
X = np.array([TABLE[word] for word in WORDS])
W_Q, W_K = np.array([[1, 0], [0, 1], [0, 0]]), np.array([[0.5, 0], [0, 0.5], [0, 0]])
Q, K, V = X @ W_Q, X @ W_K, X @ W_Q
S = Q @ K.T
A = np.exp(S / np.sqrt(2)) / np.exp(S / np.sqrt(2)).sum(axis=1, keepdims=True)
APPLE = WORDS, X, Q, K, V, "apple"
TWELVE = [f"word{i}" for i in range(12)]
ADDED = {"attention": [0.6, -1.1, 0.2], "feed-forward": [-0.5, 0.1, 1.0]}
SOURCE = "le magasin vend des pommes".split()
CROSS = np.array([[0.9, 0.1, 0, 0, 0], [0, 0.8, 0.1, 0.1, 0], [0, 0.05, 0.9, 0.05, 0],
                  [0, 0, 0, 0.25, 0.75], [0.2] * 5, [0.2] * 5])  # fmt: skip
GROWS = [("<start>", {"the": 0.6, "a": 0.2, "one": 0.1, "two": 0.06, "no": 0.04}),
         ("<start> the", {"shop": 0.5, "apple": 0.47, "the": 0}),
         ("<start> the apple", {"<end>": 0.98, "falls": 0.02})]  # fmt: skip
PLACES = np.array([[0, 1, 0, 1], [0.84, 0.54, 0.1, 1], [0.91, -0.42, 0.2, 0.98]])
NOISE = np.random.default_rng(5).normal(size=(12, 8))


def pictures(words=WORDS):
    """What can be drawn of six words: name → picture."""
    kept = np.arange(36).reshape(6, 6) % 3 > 0
    return {
        "head": drawings.head(words, X, Q, K, V, 3),
        "head, one step lit": drawings.head(words, X, Q, K, V, 3, lit="weights"),
        "head, closed": drawings.head(words, X, Q, K, V, 3, closed=["q", "scaled", "weights"]),
        "head, causal": drawings.head(words, X, Q, K, V, 3, causal=True),
        "matrix": drawings.matrix(A, "weights", rows=words, columns=words, title="A", lit=(3, 5)),
        "product": drawings.product(X, W_Q, rows=words, lit=(3, 1)),
        "split": drawings.split_qkv(words[3], X[3], W_Q, W_K, W_Q),
        "row": drawings.pick_row(words, X, 3),
        "arrows": drawings.arrows_of_scores(words, S - 1, 3),
        "all arrows": drawings.arrows_of_scores(words, A, name="weights"),
        "plane": drawings.plane(words, V, A @ V, 3, names=("food", "device")),
        "moved": drawings.moved(words[3], V[3], (A @ V)[3], names=("food", "device")),
        "mask": drawings.mask_over(words, S),
        "narrow heads": drawings.cut_into_heads(words, NOISE[:6], 8),
        "heads": drawings.cut_into_heads(words, np.hstack([Q, K, V, Q]), 2),
        "holes": drawings.holes(words, A, A * kept / (2 / 3)),
        "flow": drawings.flow({"reads": ["x", *words], "writes": words}, words[3]),
        "clocks": drawings.clock_hands(words[:3], PLACES),
        "turned": drawings.clock_hands(
            words, NOISE[:6], [3, 0], before=X @ NOISE[:3], order="x, y"
        ),
        "between": drawings.arrows_between(words, words[:2], CROSS[:, 1:3], words[1]),
        "all between": drawings.arrows_between(words, SOURCE, CROSS),
        "writing": drawings.writing(
            [(words[: i + 1], dict.fromkeys([*words[::-1], "?"], 0.1)) for i in range(6)]
        ),
        "river": drawings.river(words[3], X[3], ADDED),
        "replaced": drawings.river(words[3], X[3], dict(zip(words, X, strict=True)), replaced=True),
    }


def large():
    """The largest that are drawn whole, with numbers of six characters."""
    twelve = NOISE @ NOISE.T
    weights = np.abs(NOISE)[:, :6]
    return {
        "large head": drawings.head(TWELVE, NOISE, NOISE, NOISE, NOISE, 4),
        "large matrix": drawings.matrix(twelve, rows=TWELVE, columns=TWELVE),
        "large product": drawings.product(NOISE, NOISE[:8], rows=TWELVE, lit=(11, 0)),
        "large split": drawings.split_qkv("apple", NOISE[0], *[NOISE[:8]] * 3),
        "large row": drawings.pick_row(TWELVE, NOISE, 7),
        "large arrows": drawings.arrows_of_scores(TWELVE, twelve, 2),
        "plane of arrows": drawings.plane(
            ["a", "b", "c"], [[0.2, 1], [1, -0.4], [-1, 0.1]], arrows=True
        ),
        "large plane": drawings.plane(TWELVE, NOISE[:, :2], NOISE[:, 2:4] / 4),
        "large mask": drawings.mask_over(TWELVE, twelve),
        "large heads": drawings.cut_into_heads(TWELVE, twelve, 4, "v"),
        "large holes": drawings.holes(TWELVE, weights, weights * (weights > 0.5)),
        "large clocks": drawings.clock_hands(TWELVE, -20 * abs(NOISE), before=NOISE, name="k"),
        "large between": drawings.arrows_between(TWELVE, TWELVE, abs(twelve) / 9),
        "large writing": drawings.writing(
            [(TWELVE[:i], dict.fromkeys(TWELVE, 1)) for i in range(5, 11)]
        ),
        "large river": drawings.river(
            "word" * 9,
            99 * NOISE[0, :6],
            {f"cross-attention {i}": 99 * NOISE[i, :6] for i in range(6)},
        ),
        "large flow": drawings.flow({"reads": TWELVE, "writes": TWELVE}, "word3"),
    }


HOSTILE = ["$x$ _y_ ^2", "<script>alert(1)</script>", "مرحبا بالعالم", "👩\u200d👧", "a\nb\tc\x00",
           "W" * 5000]  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """Every picture with the figure that it was drawn from: name → (picture, figure)."""
    gc.disable()  # so many parts that stay: looking for some to free takes as long as making them
    made = pictures() | large()
    made |= {f"{name}, hostile": picture for name, picture in pictures(HOSTILE).items()}
    for picture in made.values():
        assert picture.png  # drawn as it is shown
    gc.freeze()
    gc.enable()
    yield {name: (picture, picture.figure) for name, picture in made.items()}
    gc.unfreeze()


def texts(figure):
    return [text for text in figure.axes[0].texts if text.get_text()]


def boxes(figure):
    """Where the texts of a figure lie: (texts, 4) of left, low, right and high."""
    return np.array([text.get_window_extent().extents for text in texts(figure)]).reshape(-1, 4)


@pytest.fixture(scope="module")
def placed(drawn):
    """The texts of every picture with where they lie: measuring them takes long."""
    return {name: boxes(figure) for name, (_, figure) in drawn.items()}


def numbers(figure):
    """How often each number is written."""
    said = [text.get_text().replace("−", "-") for text in texts(figure)]
    return Counter(text for text in said if text.replace(".", "").lstrip("-").isdigit())


def expected(*arrays):
    """Numbers as they must be written: (array, decimals) …"""
    return Counter(f"{n:.{decimals}f}" for array, decimals in arrays for n in np.ravel(array))


def test_a_head_shows_the_numbers_of_its_arrays(drawn):
    w = A[3]
    first = (X, 1), (K, 1), (Q[3], 1), (S[3], 1), (S[3] / np.sqrt(2), 2), (w, 2)
    last = (V, 1), (w[:, None] * V, 2), (w @ V, 2)
    assert numbers(drawn["head"][1]) == expected(*first, *last)
    assert numbers(drawn["head, one step lit"][1]) == expected(*first, *last)
    shown = expected(*first[:2], first[3], *last)
    assert numbers(drawn["head, closed"][1]) == shown


def test_each_row_reads_from_the_word_to_its_share(drawn):
    said = [(*text.get_position(), text.get_text()) for text in texts(drawn["head"][1])]
    for i, word in enumerate(WORDS):
        (height,) = [y for _, y, words in said if words == word]
        row = [words for _, y, words in sorted(said) if abs(y - height) < 2]
        numbers_1 = [f"{n:.1f}" for n in (*X[i], *K[i], S[3, i])]
        w = [f"{n:.2f}" for n in (S[3, i] / np.sqrt(2), A[3, i])]
        v = [f"{n:.1f}" for n in V[i]] + [f"{n:.2f}" for n in A[3, i] * V[i]]
        assert row == [word, *numbers_1, *w, "×", *v]


def test_a_causal_head_hides_what_comes_later(drawn):
    picture, figure = drawn["head, causal"]
    w = np.exp(S[3, :4] / np.sqrt(2))
    w = np.append(w / w.sum(), [0, 0])
    scaled = S[3] / np.sqrt(2)
    first = (X, 1), (K, 1), (Q[3], 1), (S[3], 1), (scaled, 2), (scaled[:4], 2), (w, 2)
    assert numbers(figure) == expected(*first, (V, 1), (w[:, None] * V, 2), (w @ V, 2))
    assert [text.get_text() for text in texts(figure)].count("−∞") == 2
    assert "masked the 0.00, shop 0.71, sells 0.71, apple 2.83, and −∞, banana −∞" in picture.alt


def test_the_words_of_a_head_say_its_numbers(drawn):
    alt = drawn["head"][0].alt
    assert "apple asks; query 2.0, 2.0" in alt
    assert "score the 0.0, shop 1.0, sells 1.0, apple 4.0, and 0.0, banana 4.0" in alt
    assert "weight the 0.03, shop 0.05, sells 0.05, apple 0.42, and 0.03, banana 0.42" in alt
    assert alt.endswith("sum 2.60, 0.90.")
    assert drawn["head, one step lit"][0].alt.endswith("Lit: weights.")
    closed = drawn["head, closed"][0].alt
    assert "weight closed: notebook 05 opens it" in closed and "0.42" not in closed


def test_the_query_is_the_askers_and_the_keys_are_all():
    """Where queries and keys differ, unlike those of apple, whose scores are symmetric."""
    Q, K, V = NOISE[:6, :3], NOISE[6:, :3], NOISE[:6, 3:5]
    alt = drawings.head(WORDS, X, Q, K, V, 1).alt.replace("−", "-")
    scores = K @ Q[1]
    weights = np.exp(scores / np.sqrt(3)) / np.exp(scores / np.sqrt(3)).sum()
    for name, array in (("score", scores), ("weight", weights)):
        said = (f"{word} {n:.2f}" for word, n in zip(WORDS, array, strict=True))
        assert f"{name} {', '.join(said)}" in alt
    assert alt.endswith("sum {:.2f}, {:.2f}.".format(*weights @ V))


def test_given_weights_and_unscaled_scores_are_drawn():
    by_hand = drawings.head(*APPLE, weights=[0, 0, 0, 0.5, 0, 0.5])
    assert by_hand.alt.endswith("banana 0.50; sum 3.00, 1.00.")
    plain = drawings.head(*APPLE, scaled=False)
    w = np.exp(S[3]) / np.exp(S[3]).sum()
    assert "scaled" not in plain.alt and f"banana {w[5]:.2f}" in plain.alt


def test_the_other_drawings_show_the_numbers_of_their_arrays(drawn):
    number_of = {name: numbers(figure) for name, (_, figure) in drawn.items()}
    assert number_of["matrix"] == expected((A, 2))
    assert number_of["product"] == expected((X, 1), (W_Q, 1), (Q, 1))
    assert number_of["split"] == expected((X[3], 1), (W_Q, 1), (W_K, 1), (W_Q, 1), (Q[3], 1),
                                          (K[3], 1), (V[3], 1))  # fmt: skip
    assert number_of["row"] == expected((np.arange(6) == 3, 0), (X, 1), (X[3], 1))
    assert number_of["arrows"] == expected((S[3] - 1, 1))
    assert number_of["mask"] == expected((S, 1), (S[np.tri(6, dtype=bool)], 1))
    both = np.hstack([Q, K, V, Q])
    assert number_of["heads"] == expected((both, 1), (both, 1))
    kept = np.arange(36).reshape(6, 6) % 3 > 0
    assert number_of["holes"] == expected((A, 2), ((A / (2 / 3))[kept], 2))
    crosses = [text.get_text() for text in texts(drawn["holes"][1])].count("×")
    assert crosses == (~kept).sum()
    moved = expected((V[3], 1), ((A @ V)[3], 2), (V[3] + (A @ V)[3], 2))
    assert not moved - number_of["moved"]  # beside those of the axes
    assert number_of["between"] == expected((CROSS[1, 1:3], 2))
    written = drawings.writing(GROWS).figure
    assert numbers(written) == expected(([0.6, 0.2, 0.1, 0.06, 0.5, 0.47, 0, 0.98, 0.02], 2))
    assert number_of["clocks"] == expected((PLACES, 2))
    assert number_of["turned"] == expected((NOISE[:6, [0, 1, 6, 7]], 2))
    a, b = ADDED.values()
    assert number_of["river"] == expected((X[3], 1), (a, 1), (X[3] + a, 1), (b, 1),
                                          (X[3] + a + b, 1))  # fmt: skip
    assert number_of["replaced"] == expected((X[3], 1), (X, 1), (X, 1))


def test_the_other_drawings_say_their_numbers(drawn):
    said = {name: picture.alt for name, (picture, _) in drawn.items()}
    assert "apple 0.03, 0.05, 0.05, 0.42, 0.03, 0.42" in said["matrix"]
    assert "Lit: 2.0 × 0.0 + 2.0 × 1.0 + 0.0 × 0.0 = 2.0." in said["product"]
    rounded = drawings.product(A[[3]], V, ("weights", "V", "context"), lit=(0, 0)).alt
    assert rounded.endswith("0.42 × 4.0 ≈ 2.60.")  # what is written sums to 2.57
    assert "q (what it asks) 2.0, 2.0; k (what it offers) 1.0, 1.0" in said["split"]
    assert said["row"].endswith("stands at apple: it picks the row 2.0, 2.0, 0.0.")
    assert "apple asks: the −1.0, shop 0.0" in said["arrows"]
    assert "apple asks: the 0.03, shop 0.05" in said["all arrows"]
    assert "apple (2.0, 2.0) → (2.60, 0.90)" in said["plane"]
    assert "apple (2.0, 2.0) + context (2.60, 0.90) = (4.60, 2.90)" in said["moved"]
    assert "apple sees the 0.0, shop 1.0, sells 1.0, apple 4.0, and −∞, banana −∞" in said["mask"]
    assert "8 features cut into 2 heads of 4 features each" in said["heads"]
    assert "12 of 36 dropped, the rest × 1.50" in said["holes"]
    assert said["flow"].endswith("lit: apple.")
    assert said["between"].endswith("shop asks: the 0.80, shop 0.10.")
    assert "apple asks: le 0.00, magasin 0.00, vend 0.00, des 0.25, po" in said["all between"]
    assert drawings.writing(GROWS).alt == (
        "Written word by word: <start> → the 0.60, a 0.20, one 0.10, two 0.06: the; "
        "<start> the → shop 0.50, apple 0.47, the 0.00: apple; "
        "<start> the apple → <end> 0.98, falls 0.02: <end>."
    )
    assert said["clocks"].endswith(
        "(sin, cos): pair 0: the (0.00, 1.00), shop (0.84, 0.54), sells (0.91, −0.42); "
        "pair 1: the (0.00, 1.00), shop (0.10, 1.00), sells (0.20, 0.98)."
    )
    old, new = ("({:.2f}, {:.2f})".format(*Y[3, 6:]) for Y in (X @ NOISE[:3], NOISE))
    assert f"apple {old} → {new}".replace("-", "−") in said["turned"].split("pair 0")[0]
    assert said["river"].endswith(
        "word's vector: apple 2.0, 2.0, 0.0; attention adds 0.6, −1.1, 0.2, which makes "
        "2.6, 0.9, 0.2; feed-forward adds −0.5, 0.1, 1.0, which makes 2.1, 1.0, 1.2."
    )
    assert "apple 2.0, 2.0, 0.0; the puts 0.0, 0.0, 0.0 in its place; shop p" in said["replaced"]


def test_groups_are_joined_unless_they_stand_apart():
    groups = {"encoder": ["x", "attention"], "decoder": ["x", "masked attention"]}
    count = [len(lines(drawings.flow(groups, linked=linked).figure, sheet.INK))
             for linked in (True, False)]  # fmt: skip
    assert count == [3, 2]
    assert drawings.flow(groups, linked=False).alt == drawings.flow(groups).alt


def test_a_step_is_lit_in_all_groups_or_in_one():
    """What is lit is bold, and the words say which."""
    groups = {"encoder": ["x", "attention", "a step that is longer than its box"], "decoder": ["x"]}
    for lit, bold in (("x", 2), ("decoder/x", 1), (["x", "decoder/x", "attention"], 3)):
        picture = drawings.flow(groups, lit)
        assert [text.get_weight() for text in texts(picture.figure)].count("bold") == bold
        said = " → ".join(sorted([lit] if isinstance(lit, str) else lit))
        assert picture.alt == ("encoder: x → attention → a step that is longer than its box; "
                               f"decoder: x; lit: {said}.")  # fmt: skip


def inks(picture):
    """The colour of each text of a drawing."""
    return {text.get_text(): text.get_color() for text in texts(picture.figure)}


def test_a_product_has_the_colours_of_its_things():
    colour = inks(drawings.product(Q, K.T, ("Q", "Kᵀ", "scores")))
    for name, thing in (("Q", "q"), ("Kᵀ", "k"), ("scores", "scores")):
        assert colour[name] == sheet.INKS[thing]
    colour = inks(drawings.product(X, W_Q, ("X", "W_v", "V")))
    for name, thing in (("X", "x"), ("W_v", "v"), ("V", "v")):
        assert colour[name] == sheet.INKS[thing]


def test_names_of_columns_are_told_apart():
    names = ["not going", "token embeddings", "token positions"]
    assert set(names) <= set(inks(drawings.matrix(np.eye(3), columns=names)))


def test_names_of_columns_are_turned_in_all_matrices_side_by_side_or_in_none():
    """The masked scores have fewer letters, and narrower cells, than the scores."""
    wider = np.where(np.tri(3), 1.0, -12.25)
    for words, turned in (("a b c", 0), ("abcde abcde abcde", 6)):
        figure = drawings.mask_over(words, wider).figure
        assert sum(text.get_rotation() == 90 for text in texts(figure)) == turned


@pytest.mark.parametrize("page", GROUNDS.values(), ids=GROUNDS)
def test_a_context_is_no_grey_arrow_beside_a_words(page, drawn):
    """On each page its black or its white edge stands out more than any grey."""
    figure = drawn["moved"][1]
    (edge,), (core,) = lines(figure, "#ffffff"), lines(figure, OF["context"])
    assert edge.get_linewidth() > core.get_linewidth()
    assert max(contrast(line.get_edgecolor()[:3], page) for line in (edge, core)) > 15


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 12])
def test_every_head_has_its_name_however_narrow_it_is(heads):
    figure = drawings.cut_into_heads(WORDS, np.ones((6, 12)), heads).figure
    FigureCanvasAgg(figure)
    said = " ".join(text.get_text() for text in texts(figure)).split()
    assert said.count("head") == heads and {str(h + 1) for h in range(heads)} <= set(said)
    assert not clashes(figure, boxes(figure))


def test_a_caption_says_what_is_drawn_in_a_plane(drawn):
    """Of words and contexts by default, of points alone nothing but what it is told."""
    own = "green: what the words give; grey: what they become"
    assert own in inks(drawn["plane"][0])
    told = inks(drawings.plane(WORDS, V, A @ V, caption="two heads"))
    assert "two heads" in told and own not in told
    points = drawings.plane(["a", "b"], [[0, 1], [2, -0.5]], caption="two places")
    assert {"a", "b", "two places"} <= set(inks(points))
    assert points.alt == "Points: a (0.0, 1.0), b (2.0, −0.5)."
    plain = inks(drawings.plane(["a", "b"], [[0, 1], [2, -0.5]]))
    assert own not in plain and "two places" not in plain


def test_counts_are_drawn_whole():
    texts = inks(drawings.matrix(np.array([[2, 0], [1, 3]])))
    assert {"2", "0", "1", "3"} <= set(texts) and not {"2.0", "0.0"} & set(texts)
    assert {"2.0", "0.5"} <= set(inks(drawings.matrix([[2.0, 0.5]])))


def test_features_that_do_not_fit_are_left_out_and_said_to_be(drawn):
    picture, figure = drawn["large head"]
    assert sum(text.get_text() == "…" for text in texts(figure)) == 12 * 4 + 2
    assert f"query {NOISE[4, 0]:.2f}, …".replace("-", "−") in picture.alt


def test_a_river_has_a_plus_for_each_sublayer_and_no_more_features_than_six(drawn):
    plus = {name: [text.get_text() for text in texts(figure)].count("+")
            for name, (_, figure) in drawn.items()}  # fmt: skip
    assert (plus["river"], plus["replaced"], plus["large river"]) == (2, 0, 6)
    assert "…" not in inks(drawn["large river"][0])
    wide = drawings.river("apple", NOISE[0, :7], {"attention": NOISE[1, :7]})
    assert [text.get_text() for text in texts(wide.figure)].count("…") == 3
    assert f"{NOISE[0, 4]:.2f}, …; attention".replace("-", "−") in wide.alt
    assert drawings.river("a", [1], {"b": [-2.25]}).alt.endswith("b adds −2.25, which makes −1.25.")


@pytest.mark.parametrize("order, zero", {"sin, cos": (0, 1), "x, y": (1, 0)}.items())
def test_a_hand_points_at_its_two_numbers_and_a_tick_at_angle_0(order, zero):
    hands = np.array([[0, 1], [3, 0], [0, -2], [0, 0]])  # up, right, down, none
    patches = drawings.clock_hands("a b c d", hands, order=order, name="q").figure.axes[0].patches
    rings = [dot for dot in patches if isinstance(dot, Circle) and dot.radius > 9]
    heads = [head for head in patches if isinstance(head, Polygon)]
    ticks = [line for line in patches if isinstance(line, PathPatch)][::2]
    for ring, hand, head, tick in zip(rings, hands, heads, ticks, strict=True):
        seen = (head.get_xy()[0] - ring.center) * (1, -1) / ring.radius  # upwards
        np.testing.assert_allclose(seen, hand / 3, atol=1e-9)
        seen = (tick.get_path().vertices[-1] - ring.center) * (1, -1) / ring.radius
        np.testing.assert_allclose(seen, zero, atol=1e-9)


def test_of_many_pairs_the_first_four_are_drawn():
    said = drawings.clock_hands(TWELVE, np.ones((12, 10))).alt
    assert "pair 3" in said and "pair 4" not in said
    assert "pair 4: a (1.0, 1.0)." in drawings.clock_hands("a", np.ones((1, 10)), [4]).alt


def lines(figure, colour):
    """The shafts of all arrows of one colour, in the order in which they were drawn."""
    paths = [path for path in figure.axes[0].patches if isinstance(path, PathPatch)]
    return [path for path in paths if to_rgba(path.get_edgecolor())[:3] == to_rgba(colour)[:3]]


def test_arrows_are_as_wide_as_the_weights(drawn):
    pink = sheet.INKS["weights"]
    widths = [line.get_linewidth() / 0.75 for line in lines(drawn["head"][1], pink)]
    np.testing.assert_allclose(widths, 0.8 + 8 * A[3])
    widths = [line.get_linewidth() / 0.75 for line in lines(drawn["all arrows"][1], pink)]
    np.testing.assert_allclose(widths, 0.6 + 4 * A.ravel())
    below_zero = lines(drawn["arrows"][1], sheet.INKS["scores"])
    assert [line.get_linestyle() == "--" for line in below_zero] == (S[3] < 1).tolist()


def test_arrows_point_at_cells_and_boxes(drawn):
    """The tip of each arrow of the head lies on an edge: of a row of cells, or of a meeting."""
    for name in ("head", "head, causal", "large head"):
        shapes = drawn[name][1].axes[0].patches
        edges = {x for cell in shapes if isinstance(cell, Rectangle)
                 for x in (cell.get_x(), cell.get_x() + cell.get_width())}  # fmt: skip
        edges |= {dot.center[0] - 6 for dot in shapes if isinstance(dot, Circle)}
        tips = [shape.get_xy()[0, 0] for shape in shapes if isinstance(shape, Polygon)]
        assert len(tips) > 30
        assert all(min(abs(tip - edge) for edge in edges) < 0.01 for tip in tips), name


def test_what_is_not_wanted_has_a_thin_arrow_or_none():
    """Below 0 it is thin, and so is its tint; a weight of 0 and −∞ have no arrow."""
    below = drawings.arrows_of_scores(WORDS, [4, -8, 0, 2, 1, -np.inf], "apple")
    widths = [line.get_linewidth() for line in lines(below.figure, sheet.INKS["scores"])]
    assert len(widths) == 5 and max(widths) > 8 * sorted(widths)[1]
    hidden = drawings.arrows_of_scores(WORDS, [0.5, 0, 0, 0.5, 0, 0], "apple", name="weights")
    assert len(lines(hidden.figure, sheet.INKS["weights"])) == 2


def test_words_of_two_texts_are_joined_by_arrows_as_wide_as_the_weights(drawn):
    pink = sheet.INKS["weights"]
    widths = [line.get_linewidth() / 0.75 for line in lines(drawn["all between"][1], pink)]
    np.testing.assert_allclose(widths, 0.6 + 4 * CROSS[CROSS > 0])
    one = drawings.arrows_between(WORDS, SOURCE, CROSS[3], "apple")
    widths = [line.get_linewidth() / 0.75 for line in lines(one.figure, pink)]
    np.testing.assert_allclose(widths, 0.6 + 9 * CROSS[3, 3:])
    assert one.png == drawings.arrows_between(WORDS, SOURCE, CROSS, 3).png


def test_a_line_leads_each_chosen_word_to_where_it_is_written():
    figure = drawings.writing(GROWS).figure
    ends = [line.get_path().vertices[[0, -1]] for line in lines(figure, sheet.INKS["weights"])]
    placed = {(text.get_text(), text.get_weight()): text.get_position() for text in texts(figure)}
    (start, end), (later, last) = ends  # the last of the words is not yet written
    assert abs(start[1] - placed["0.60", "bold"][1]) < 9 and start[0] > placed["0.60", "bold"][0]
    assert abs(later[1] - placed["0.47", "bold"][1]) < 9
    assert start[1] < end[1] < later[1] < last[1]
    assert abs(last[0] - placed["apple", "bold"][0]) < 40


def test_a_chosen_word_is_shown_however_unlikely_it_is():
    likely = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.06, "e": 0.04}
    said = drawings.writing([("so", likely), (["so", "e", "f"], {"g": 1.0})]).alt
    assert "so → a 0.40, b 0.30, c 0.20, e 0.04: e; so e f → g 1.00: g." in said


def test_a_word_of_one_letter_stands_upright():
    short = [drawings.writing([("i", {"l": 1})]), drawings.river("i", [1], {"l": [2]})]
    assert not any(text.get_rotation() for p in short for text in texts(p.figure))


def test_bars_are_as_long_as_the_probabilities():
    patches = drawings.writing(GROWS).figure.axes[0].patches
    long = [bar.get_width() for bar in patches if isinstance(bar, Rectangle)]
    shares = np.array([0.6, 0.2, 0.1, 0.06, 0.5, 0.47, 0, 0.98, 0.02])
    np.testing.assert_allclose(long, np.maximum(shares / 0.6 * long[0], 1))


def test_only_the_lit_step_is_drawn_full(drawn):
    shapes = drawn["head, one step lit"][1].axes[0].patches
    full = [cell for cell in shapes if isinstance(cell, Rectangle) and cell.get_facecolor()[3]]
    assert len(full) == 6 and len({cell.get_x() for cell in full}) == 1
    from_left = sorted({cell.get_x() for cell in shapes if isinstance(cell, Rectangle)})
    assert from_left.index(full[0].get_x()) == 3 + 2 + 2  # after x, k, scores and scaled


def over(colour, ground):
    """What is seen of a colour with some alpha on a ground."""
    return [
        colour[3] * c + (1 - colour[3]) * g for c, g in zip(colour[:3], ground[:3], strict=True)
    ]


@pytest.fixture(scope="module")
def read(drawn, placed):
    """Every text with what was laid under it, from below: (picture, words, colour, grounds)."""
    found = []
    for name, (_, figure) in drawn.items():
        patches = sorted(figure.axes[0].patches, key=lambda patch: patch.zorder)
        laid = [patch for patch in patches if patch.get_facecolor()[3]]
        low, high = np.array([p.get_window_extent().get_points() for p in laid]).swapaxes(0, 1)
        for text, box in zip(texts(figure), placed[name], strict=True):
            at = box.reshape(2, 2).mean(axis=0)
            near = np.flatnonzero(((low <= at) & (at <= high)).all(axis=1))
            below = [laid[i].get_facecolor() for i in near if laid[i].contains_point(at)]
            found.append((name, text.get_text(), text.get_color(), below))
    return found


@pytest.mark.parametrize("page", GROUNDS.values(), ids=GROUNDS)
def test_every_text_is_read_on_light_and_on_dark_pages(read, page):
    for name, words, colour, below in read:
        ground = to_rgba(page)
        for laid in below:
            ground = over(laid, ground)
        ratio = contrast(colour, ground[:3])
        assert ratio >= (3.3 if "plane" in name else 4.3), (name, words, ratio)


@pytest.mark.parametrize("page", GROUNDS.values(), ids=GROUNDS)
@pytest.mark.parametrize("name", sheet.INKS)
def test_lines_and_titles_stand_out_on_light_and_on_dark_pages(name, page):
    assert contrast(sheet.INKS[name], page) >= 4.3


def test_letters_are_large_enough_on_a_narrow_page(drawn):
    """9 CSS pixels and more where a picture is shown 540 pixels wide."""
    for name, (picture, figure) in drawn.items():
        smallest = min(text.get_fontsize() for text in texts(figure)) / 0.75
        assert smallest * min(1, 540 / picture.width) >= 9, (name, picture.width)


def clashes(figure, lie):
    """Pairs of texts that cover each other, and texts that reach out of the picture."""
    said = [text.get_text() for text in texts(figure)]
    low, high = lie[:, :2] + 1.5, lie[:, 2:] - 1.5
    over = ((low[:, None] < high) & (low < high[:, None])).all(axis=-1)
    pairs = [(said[i], said[j]) for i, j in np.argwhere(np.tril(over, -1))]
    out = (low < figure.bbox.min).any(axis=1) | (high > figure.bbox.max).any(axis=1)
    return pairs + [said[i] for i in np.flatnonzero(out)]


def test_no_text_covers_another_or_leaves_the_picture(drawn, placed):
    for name, (_, figure) in drawn.items():
        assert not clashes(figure, placed[name]), name


def test_numbers_stay_in_their_cells(drawn, placed):
    for name, (_, figure) in drawn.items():
        lie, said = placed[name], [text.get_text() for text in texts(figure)]
        middle = (lie[:, :2] + lie[:, 2:]) / 2
        for cell in (p for p in figure.axes[0].patches if isinstance(p, Rectangle)):
            area = cell.get_window_extent()
            for i in np.flatnonzero(((area.min <= middle) & (middle <= area.max)).all(axis=1)):
                assert area.x0 <= lie[i, 0] and lie[i, 2] <= area.x1, (name, said[i])


@pytest.mark.parametrize("seed", range(8))
def test_arrays_of_any_shape_fit_on_the_page(seed):
    rng = np.random.default_rng(seed)
    T, D, d, d_v = rng.integers(1, 13), *rng.integers(1, 10, 3)
    scale = 10.0 ** rng.integers(-2, 9)
    X, Q, K, V = (scale * rng.normal(size=(T, width)) for width in (D, d, d, d_v))
    words = ["".join(rng.choice(list("abcWmö "), 12)) for _ in range(T)]
    made = [
        drawings.head(words, X, Q, K, V, 0, causal=bool(seed % 2)),
        drawings.product(X, scale * rng.normal(size=(D, d)), rows=words, lit=(0, 0)),
        drawings.split_qkv(words[0], X[0], *scale * rng.normal(size=(3, D, d))),
        drawings.pick_row(words, X, 0),
        drawings.moved(words[0], X[0], X[-1]),
        drawings.clock_hands(words, np.hstack([X, X]), name="q"),
        drawings.river(words[0], X[0], dict.fromkeys(words[:6], X[-1]), replaced=bool(seed % 2)),
    ]
    for picture in made:
        picture.figure.set_dpi(144)  # as it is saved
        FigureCanvasAgg(picture.figure)  # measures letters
        assert picture.width <= 840, picture.alt
        assert not clashes(picture.figure, boxes(picture.figure)), picture.alt


def test_pictures_have_no_ground_and_are_small(drawn):
    for name, (picture, _) in drawn.items():
        assert isinstance(picture, figures.Picture)
        image = Image.open(io.BytesIO(picture.png)).convert("RGBA")
        corners = [image.getpixel((x, y))[3] for x in (0, image.width - 1) for y in (0, 1)]
        assert max(corners) == 0 and len(picture.png) <= 60_000, (name, len(picture.png))


def test_a_notebook_shows_the_picture_with_its_words(drawn, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append((data, options))
    )
    picture = drawn["head"][0]
    picture._ipython_display_()
    (image, options), (words, _) = shown
    assert image["image/png"] == picture.png
    assert options["metadata"]["image/png"] == {"alt": picture.alt, "width": picture.width}
    assert "sum 2.60, 0.90" in words["text/html"]


def test_colours_stay_what_they_are(drawn):
    """Of a picture with few colours none is changed: each cell has exactly its tint."""
    picture, figure = drawn["head"]
    seen = {colour for _, colour in Image.open(io.BytesIO(picture.png)).convert("RGBA").getcolors()}
    cells = [
        patch.get_facecolor() for patch in figure.axes[0].patches if isinstance(patch, Rectangle)
    ]
    assert {tuple(round(255 * c) for c in cell) for cell in cells if cell[3]} <= seen


def test_hostile_words_are_text(drawn, recwarn):
    drawings.head(HOSTILE, X, Q, K, V, 1)
    assert not [str(warning.message) for warning in recwarn]
    picture, figure = drawn["head, hostile"]
    said = [text.get_text() for text in texts(figure)]
    assert "$x$ _y_ ^2" in said and "a⏎b·c·" in said
    assert any(text.startswith("<scr") and text.endswith("…") for text in said)
    assert not any(text.get_parse_math() for text in texts(figure))
    assert len(picture.alt) < 1500 and "\n" not in picture.alt


def test_the_same_arrays_make_the_same_picture(drawn):
    assert drawings.head(*APPLE).png == drawn["head"][0].png
    assert drawings.head(*APPLE[:-1], "banana").png != drawn["head"][0].png


def with_nan(array):
    return np.where(np.arange(array.size).reshape(array.shape) == 1, np.nan, array)


BAD = {
    "tokens has 13 words": lambda: drawings.head(["a"] * 13, X, Q, K, V, 0),
    "X has shape (5, 3), but must be (6, features)": lambda: drawings.head(
        WORDS, X[:5], Q, K, V, 0
    ),
    "K has shape (6, 3), but must be (6, 2)": lambda: drawings.head(WORDS, X, Q, X, V, 0),
    "V (6, 2) has nan at (0, 1)": lambda: drawings.head(WORDS, X, Q, K, with_nan(V), 0),
    "asker is 'pear', but must be one of the, shop": lambda: drawings.head(*APPLE[:-1], "pear"),
    "asker is 6, but must be a whole number": lambda: drawings.head(*APPLE[:-1], 6),
    "weights has shape (5,), but must be (6,)": lambda: drawings.head(*APPLE, weights=[0.2] * 5),
    "lit is 'mask', but must be one of x, k": lambda: drawings.head(*APPLE, lit="mask"),
    "lit is 'masked'": lambda: drawings.head(*APPLE, lit="masked"),
    "closed is 'softmax'": lambda: drawings.head(*APPLE, closed=["softmax"]),
    "array (6, 2) has nan": lambda: drawings.matrix(with_nan(V)),
    "name is 'z', but must be one of x, q": lambda: drawings.matrix(V, "z"),
    "rows has 2 labels, but needs 6": lambda: drawings.matrix(V, rows=["a", "b"]),
    "array has 13 rows": lambda: drawings.matrix(np.ones((13, 1))),
    "W has shape (2, 3), but must be (3, columns)": lambda: drawings.product(X, W_Q.T),
    "lit's column is 2": lambda: drawings.product(X, W_Q, lit=(0, 2)),
    "lit is 3, but must be (row, column)": lambda: drawings.product(X, W_Q, lit=3),
    "W_k has shape (2, 2)": lambda: drawings.split_qkv("apple", X[3], W_Q, W_K[:2], W_Q),
    "chosen is 'pear'": lambda: drawings.pick_row(WORDS, X, "pear"),
    "scores has shape (6, 2), but must be (6, 6)": lambda: drawings.arrows_of_scores(WORDS, Q),
    "contexts has shape (6, 3)": lambda: drawings.plane(WORDS, V, X),
    "context has shape (3,), but must be (2,)": lambda: drawings.moved("apple", V[3], X[3]),
    "asker is 0, but without contexts none": lambda: drawings.plane(WORDS, V, asker=0),
    "allowed has shape (6, 5)": lambda: drawings.mask_over(WORDS, S, np.ones((6, 5), bool)),
    "dropped has shape (6, 5)": lambda: drawings.holes(WORDS, A, A[:, :5]),
    "num_heads": lambda: drawings.cut_into_heads(WORDS, np.hstack([X, V]), 2),
    "X has 13 features": lambda: drawings.cut_into_heads(WORDS, np.ones((6, 13)), 1),
    "weights has shape (6, 5), but must be (6, 6)": lambda: drawings.arrows_between(
        WORDS, WORDS, CROSS
    ),
    "weights has shape (6,), but must be (5,)": lambda: drawings.arrows_between(
        WORDS, SOURCE, X[:, 0], 0
    ),
    "source has 13 words": lambda: drawings.arrows_between("a", ["b"] * 13, np.ones((1, 13))),
    "steps has 7 entries": lambda: drawings.writing([("a", {"b": 1})] * 7),
    "steps has 0 entries": lambda: drawings.writing([]),
    "steps[0][0] has 11 words": lambda: drawings.writing([(["a"] * 11, {"b": 1})]),
    "steps[0][1]['b'] is 1.5, but must be from 0": lambda: drawings.writing([("a", {"b": 1.5})]),
    "steps[1] has 'c b', but must begin with": lambda: drawings.writing(
        [("a", {"b": 1}), ("c b", {"d": 1})]
    ),
    "steps[0] has no probability for 'c'": lambda: drawings.writing(
        [("a", {"b": 1}), ("a c", {"d": 1})]
    ),
    "X has 3 features, but must have an even": lambda: drawings.clock_hands(WORDS, X),
    "X has shape (6, 2), but must be (2, features)": lambda: drawings.clock_hands("a b", V),
    "before has shape (6, 3), but must be (6, 2)": lambda: drawings.clock_hands(WORDS, V, before=X),
    "pairs is 1, but must be a whole number": lambda: drawings.clock_hands(WORDS, V, [1]),
    "pairs has 5 entries": lambda: drawings.clock_hands(TWELVE, NOISE, [0] * 5),
    "pairs has 0 entries": lambda: drawings.clock_hands(TWELVE, NOISE, []),
    "order is 'cos, sin', but must be one of": lambda: drawings.clock_hands(
        WORDS, V, order="cos, sin"
    ),
    "added has 7 sublayers": lambda: drawings.river("a", X[3], dict.fromkeys("abcdefg", X[3])),
    "added has 0 sublayers": lambda: drawings.river("a", X[3], {}),
    "added['b'] has shape (2,), but must be (3,)": lambda: drawings.river("a", X[3], {"b": V[3]}),
    "x has shape (6, 3), but must be (features,)": lambda: drawings.river("a", X, ADDED),
    "lit is 'sum', but must be one of a, b": lambda: drawings.flow({"reads": ["a", "b"]}, "sum"),
    "lit is 'reads/c', but must be one of a,": lambda: drawings.flow({"reads": ["a"]}, "reads/c"),
}


@pytest.mark.parametrize("message", BAD)
def test_what_does_not_fit_is_named(message):
    with pytest.raises(ValueError) as error:
        BAD[message]()
    assert message in str(error.value)


WRONG = {
    "steps is 'the', but must be a list": lambda: drawings.writing("the"),
    "steps[0] is ['a'] (list), but must be (w": lambda: drawings.writing([["a"]]),
    "steps[0] has [0.1] (list), but needs wor": lambda: drawings.writing([("a", [0.1])]),
    "added is [1, 2] (list), but must be names": lambda: drawings.river("a", X[3], [1, 2]),
    "replaced is 1, but must be True or False": lambda: drawings.river(
        "a", X[3], ADDED, replaced=1
    ),
    "token is 3, but must be a string": lambda: drawings.river(3, X[3], ADDED),
    "linked is 0, but must be True or False": lambda: drawings.flow({"a": ["b"]}, linked=0),
    "groups is [1] (list), but must be names": lambda: drawings.flow([1]),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_of_another_kind_is_named(message):
    with pytest.raises(TypeError) as error:
        WRONG[message]()
    assert message in str(error.value)


def test_drawings_do_not_load_torch():
    code = "import sys, workshop.drawings; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
