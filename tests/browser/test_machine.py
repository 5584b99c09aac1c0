"""The machine by mouse, keys and typing: what it computes, and that Python hears it."""

import itertools
import re

import numpy as np
import pytest

from browser.harness import board, drawn, frames, press, words
from helpers.examples import APPLE, APPLE_WORDS
from helpers.latent import Latent
from helpers.layers import DecoderLayer
from helpers.models import DecoderOnly, Transformer
from workshop import Machine
from workshop.machine import machine

SETUP = """
import numpy as np, torch
from workshop import Machine
from helpers.models import DecoderOnly, Transformer
from helpers.examples import APPLE, APPLE_WORDS as words
arrays = {name: array for name, array in APPLE.items() if name != "names"}
sentence = "the shop sells apple and banana"
torch.manual_seed(3)
both = ["<start>", "noir", "le", "chat", "<end>"]
two = Transformer(7, 5, 8, 2, 16, 1, max_len=12).eval()
large = DecoderOnly(7, 16, 8, 2, 16, 1).eval()
""".strip()
CELLS = [
    SETUP,
    'm = Machine(arrays, sentence, words, asker="apple", at="attention/head"); m',
    "t = Machine(two, sentence, (words, both)); t",
    """import workshop.machine.machine as module
module.IN_BROWSER = 10
k = Machine(large, sentence, words, at="layer 1/attention/head 2")
module.IN_BROWSER = 2_000_000
k""",
]


def hand(root) -> str:
    return root.locator(".hand").inner_text()


def choose(notebook, name: str, cell: list) -> None:
    notebook.value(f"setattr({name}, 'cell', {cell})")
    frames(notebook.page, 3)


def test_a_number_says_where_it_comes_from_back_to_the_word(notebook, saved):
    root = notebook.widget(1)
    choose(notebook, "m", ["attention/head/scores", 3, 5])
    assert "score of “banana” for “apple”" in hand(root)
    assert "2.0 × 2.0 + 2.0 × 0.0 = 4.0" in hand(root)
    root.get_by_role("button", name="q apple, 1").first.click()
    frames(root.page)
    assert notebook.value("m.cell") == ["attention/head/q", 3, 0]
    assert "query of “apple”" in hand(root)
    root.get_by_role("button", name="x apple, 1").first.click()
    frames(root.page)
    assert "word vector of “apple”" in hand(root)
    root.get_by_role("button", name="one-hot apple").first.click()
    frames(root.page)
    assert notebook.value("[m.at, m.cell]") == ["one-hot", ["one-hot", 3, 3]]
    assert "is “apple” the word “apple”? yes" in hand(root)
    notebook.value("[setattr(m, 'at', 'attention/head'), setattr(m, 'cell', [])]")


def test_another_sentence_is_computed_and_an_unknown_word_is_not(notebook, saved):
    root = notebook.widget(1)
    field = root.get_by_role("textbox", name="sentence")
    field.fill("the shop sells apple and laptop")
    frames(root.page)
    choose(notebook, "m", ["attention/head/context", 3, 0])
    assert "= 0.90" in hand(root)
    context = notebook.value("m.values['attention/head/context'][3].tolist()")
    np.testing.assert_allclose(context, [0.9, 2.6], atol=5e-3)
    field.fill("the shop sells apple and melons")
    root.page.wait_for_timeout(800)  # it waits until somebody has typed
    assert "“melons” is not among the words" in root.locator(".problem").inner_text()
    assert notebook.value("m.text") == "the shop sells apple and laptop"
    field.fill("the shop sells apple and banana")
    frames(root.page)
    assert root.locator(".problem").inner_text() == ""
    choose(notebook, "m", [])


def test_a_number_is_changed_by_keys_and_mouse_and_put_back(notebook, saved):
    root = notebook.widget(1)
    choose(notebook, "m", [])
    press(board(root), "ArrowRight")
    for _ in range(40):  # to the first number of a word: the second row of places
        if notebook.value("m.cell"):
            break
        press(board(root), "ArrowDown")
    name, i, j = notebook.value("m.cell")
    before = notebook.value(f"m.values['{name}'][{i}, {j}].item()")
    press(board(root), "+", "+")
    root.page.wait_for_timeout(300)  # Python hears of it when the keys rest
    (change,) = notebook.value("m.changes")
    assert change["at"] == name and change["value"] > before
    assert "before:" in hand(root) and root.locator(".marks").is_visible()
    press(board(root), "Backspace")
    assert notebook.value("m.changes") == [] and not root.locator(".marks").is_visible()
    field = root.get_by_role("spinbutton", name="set this number")
    field.select_text()
    root.page.keyboard.type("7.5")
    root.page.keyboard.press("Enter")
    frames(root.page)
    assert notebook.value("m.changes")[0]["value"] == 7.5
    root.get_by_role("button", name="put all back").click()
    frames(root.page)
    assert notebook.value("m.changes") == []


@pytest.mark.parametrize(
    "at, switch, place",
    [
        ("decoder/layer 1", "cross head 2", "decoder/layer 1/cross-attention/head 2/context"),
        ("", "decoder positions", "decoder/positions"),
    ],
)
def test_a_switch_in_the_picture_and_by_code_are_one(notebook, saved, at, switch, place):
    root = notebook.widget(2)
    notebook.value(f"setattr(t, 'at', {at!r})")
    frames(root.page, 3)
    before = notebook.value("t.output")
    root.get_by_role("checkbox", name=switch).uncheck()
    frames(root.page)
    assert notebook.value("t.changes") == [{"at": place, "off": True}]
    after = notebook.value("t.output")
    assert after != before
    for change, on in (("put_back()", True), (f"intervene({place!r}, off=True)", False)):
        notebook.value(f"t.{change}")
        frames(root.page, 3)
        assert root.get_by_role("checkbox", name=switch).is_checked() == on
    assert notebook.value("t.output") == pytest.approx(after)
    root.get_by_role("button", name="put all back").click()
    notebook.value("setattr(t, 'at', '')")


def test_it_opens_by_enter_and_leaves_by_escape(notebook, saved):
    root = notebook.widget(2)
    press(board(root), "ArrowRight", "Enter")
    opened = notebook.value("t.at")
    assert opened and root.locator("[aria-current]").count() == 1
    press(board(root), *["Escape"] * 4)
    assert notebook.value("t.at") == ""


def test_it_writes_and_shows_what_it_keeps(notebook, saved):
    root = notebook.widget(2)
    expected = next(iter(notebook.value("t.output")))
    root.get_by_role("button", name="write a word").click()
    frames(root.page, 3)
    assert expected != "<end>" and notebook.value("t.written") == f"<start> {expected}"
    assert root.locator(".cache td.new").count() >= 1
    assert "it reads" in root.locator(".cache").inner_text()
    root.get_by_role("button", name="play").click()
    root.page.wait_for_timeout(1700)
    root.get_by_role("button", name="pause").or_(root.get_by_role("button", name="play")).click()
    notebook.value("setattr(t, 'written', '<start>')")


def test_at_its_end_it_writes_no_more_and_another_text_begins_anew(notebook, saved):
    root = notebook.widget(2)
    notebook.value("t.intervene('decoder/logits/W', row=0, column=4, value=1e4)")
    notebook.value("t.intervene('decoder/layer 1/norm 3/shift', row=0, column=0, value=1e4)")
    frames(root.page, 3)
    assert root.get_by_role("button", name="it has ended").is_disabled()
    root.get_by_role("button", name="put all back").click()
    frames(root.page, 3)
    root.get_by_role("button", name="write a word").click()
    root.get_by_role("textbox", name="sentence").fill("sells apple")
    frames(root.page, 3)
    assert notebook.value("[t.written, t.text]") == ["<start>", "sells apple"]
    notebook.value("setattr(t, 'text', sentence)")


def test_what_is_off_reads_nothing_and_shares_nothing(notebook, saved):
    root = notebook.widget(2)
    for h in (1, 2):
        notebook.value(f"t.intervene('decoder/layer 1/cross-attention/head {h}', off=True)")
    frames(root.page, 3)
    assert "mean of 0 heads" in root.locator(".cache").inner_text()
    notebook.value("t.put_back()")
    frames(root.page, 3)
    assert "mean of 2 heads" in root.locator(".cache").inner_text()


def test_a_large_model_is_computed_by_the_kernel(notebook, saved):
    root = notebook.widget(3)
    assert notebook.value("[k._remote, len(k.learned)]") == [True, 0]
    choose(notebook, "k", ["layer 1/attention/head 2/q", 2, 1])
    assert "query of “sells”" in hand(root) and "=" in hand(root)
    root.get_by_role("textbox", name="sentence").fill("the laptop")
    notebook.value("k.text")
    frames(root.page, 5)
    assert notebook.value("k.text") == "the laptop"
    assert "after “laptop”" in root.locator(".guesses").inner_text()
    root.get_by_role("textbox", name="sentence").fill("the nothing")
    notebook.value("k.text")
    root.page.wait_for_timeout(800)
    assert "nothing" in root.locator(".problem").inner_text()
    root.get_by_role("textbox", name="sentence").fill("the shop sells apple and banana")
    notebook.value("k.text")


def test_it_lives_wherever_it_was_saved(anywhere, request):
    apple, translator, large = anywhere
    for root in (apple, translator):
        field = root.get_by_role("textbox", name="sentence")
        field.fill("shop sells laptop")
        frames(root.page)
        assert root.locator(".problem").inner_text() == ""
    assert "after “<start>”" in translator.locator(".guesses").inner_text()
    live = request.node.callspec.params["anywhere"] == "live"
    assert_frozen(large, not live)
    if live:  # all that was asked is answered before the next notebook is opened
        request.getfixturevalue("notebook").value("k.cell")


def assert_frozen(root, frozen: bool) -> None:
    """Of a model of the kernel's: without it nothing pretends, and what needs none is alive."""
    said = root.get_by_text("Saved state: run the cell to change it.", exact=True)
    if frozen:
        said.first.wait_for()
    field = root.get_by_role("textbox", name="sentence")
    others = [root.get_by_role("button", name="write a word"), root.get_by_role("checkbox").first]
    others += [root.get_by_role("slider"), root.get_by_role("button", name="the whole model")]
    assert {one.is_disabled() for one in [field, *others]} == {frozen}
    press(board(root), "ArrowRight", "ArrowDown")
    for _ in range(20):  # to a score, whose computation needs no kernel
        press(board(root), "ArrowRight")
        if "score of" in hand(root):
            break
    assert "score of" in hand(root) and " = " in hand(root)
    shown = "canvas => canvas.toDataURL()"
    before = board(root).evaluate(shown), hand(root)
    if frozen:
        press(board(root), "+", "Escape")
        assert not root.locator(".marks").is_visible() and hand(root) == before[1]
        assert not root.get_by_role("spinbutton").count()
    board(root).click(position={"x": 20, "y": 60})
    frames(root.page, 3)
    assert board(root).evaluate(shown) != before[0]  # another word asks


def test_an_asker_of_the_other_text_is_the_newest_word_here(read_of):
    """Three words are read, and the third asks; of the two that are written it is the second."""
    at = {"written": "and laptop", "asker": 2, "at": "decoder/layer 1/self-attention/head 1"}
    page = read_of(Machine(BOTH, "shop sells apple", APPLE_WORDS, **at))
    assert "q: what “laptop” looks for" in words(page)


def test_what_the_kernel_computes_is_drawn_to_its_printed_digits(read_of, monkeypatch):
    """More numbers than are saved exactly elsewhere; one of them changed, and nothing else."""
    monkeypatch.setattr(machine, "IN_BROWSER", 10)
    model = DecoderOnly(7, 10, 512, 2, 16, 1)
    change = {"at": "layer 1/add 1", "row": 0, "column": 0, "value": 9.5}
    at = {"at": "layer 1/add 1", "changes": [change]}
    shown = Machine(model, " ".join([*APPLE_WORDS, *APPLE_WORDS[:3]]), APPLE_WORDS, **at)
    page, expected = read_of(shown), shown.values["layer 1/add 1"][:, :8]
    numbers = [text for text in words(page) if re.fullmatch(r"−?\d+\.\d\d", text)]
    assert numbers[-expected.size :] == [f"{x:z.2f}".replace("-", "−") for x in expected.flat]
    assert shown.kept["before"].keys() >= {"layer 1/add 1"}


@pytest.mark.parametrize("count, step, said", [(7, "one-hot", "one-hot"), (600, "ids", "number")])
def test_the_row_of_a_word_is_chosen_by_its_word(page_of, count, step, said):
    """Neither mouse, keys nor a field change it: the title of the picture says what does."""
    vocab = [f"w{i}" for i in range(count)]
    cell = {"at": step, "cell": [step, 1, 0]}
    page = page_of(Machine(DecoderOnly(len(vocab), 8, 8, 2, 16, 1), "w1 w2 w3", vocab, **cell))
    canvas = board(page)
    box = canvas.bounding_box()
    x, y = box["x"] + 70, box["y"] + 100
    page.mouse.move(x, y)
    assert "type another word" in canvas.get_attribute("title")
    page.mouse.down()
    page.mouse.move(x, y - 40)
    page.mouse.up()
    press(canvas, "+")
    assert said in hand(page) and "type another word" in hand(page)
    assert not page.get_by_role("spinbutton").count() and not page.locator(".marks").is_visible()


def test_padding_is_no_word(page_of):
    page = page_of(Machine(BOTH, "shop sells", ["<pad>", *APPLE_WORDS[1:]], written="apple"))
    page.get_by_role("textbox", name="sentence").fill("shop <pad>")
    page.wait_for_timeout(800)  # it waits until somebody has typed
    assert "“<pad>” only fills up" in page.locator(".problem").inner_text()
    assert "after “apple”" in page.locator(".guesses").inner_text()


def tile(page, title: str, nth: int = 0) -> tuple[float, float]:
    """The middle of a tile's upper edge."""
    x, y = [(x, y) for text, x, y, *_ in drawn(page) if text == title][nth]
    return x, y - 9


def test_a_memory_is_opened_and_leads_to_its_reader(read_of):
    """Weights may be of bfloat16, in which many models are handed on."""
    vectors = {"x": np.ones((3, 8)), "memory": np.eye(4, 8)}
    page = read_of(Machine(DecoderLayer(8, 2, 16).bfloat16(), "a b c".split(), **vectors))
    (x, y), (reader, low) = tile(page, "memory"), tile(page, "cross-attention")
    assert [reader, low + 88] in drawn(page, "lineTo")
    board(page).click(position={"x": x, "y": y + 40})
    assert "1.0" in words(page) and page.locator(".crumbs strong").inner_text() == "memory"


@pytest.mark.parametrize("width", [1000, 620])
def test_a_map_says_what_is_made_of_what(read_of, width):
    """Each add has the arc of its residual where lines wrap too; logits are last."""
    page = read_of(Machine(BOTH, "shop sells", APPLE_WORDS, written="apple"))
    page.set_viewport_size({"width": width, "height": 3000})
    page.add_style_tag(content=".step .board { max-height: none !important; }")
    frames(page, 5)
    assert len(drawn(page, "bezierCurveTo")) == 2 + 2 * 2 + 2 * 3
    readers = [tile(page, "cross-attention", nth) for nth in (0, 1)]
    assert all([x, y + 88] in drawn(page, "lineTo") for x, y in readers)
    assert max(y for _, _, y, *_ in drawn(page)) - tile(page, "logits")[1] < 100


def test_heads_stand_side_by_side_and_each_opens(read_of):
    at = {"written": "and", "at": "encoder/layer 1/attention"}
    page = read_of(Machine(BOTH, "shop sells", APPLE_WORDS, **at))
    (x, y), (right, same) = tile(page, "head 1"), tile(page, "head 2")
    assert same == y and right > x
    board(page).click(position={"x": right, "y": y + 40})
    assert "weight × v" in words(page) and page.locator(".crumbs strong").inner_text() == "head 2"


def axes(page) -> list[tuple[list[str], list[str]]]:
    """Of each matrix of a stage the names of the rows and columns that are seen."""
    parts, cell = [], re.compile(r"−?\d+\.\d+|−∞")
    for before, text in itertools.pairwise(words(page)):
        if re.fullmatch(r"(\S+: )?\d+ × \d+(, .*)?", text):
            parts = [*(part[: -1 if part[-1:] == [before] else None] for part in parts), []]
        elif parts and text not in "‹›⌄⌃×+=→":
            parts[-1].append(text)
    found = []
    for part in parts:
        first = next(i for i, text in enumerate(part) if cell.fullmatch(text))
        rows = [text for text in part[first:] if not cell.fullmatch(text)]
        if rows:
            found.append(([part[first - 1], *rows], part[: first - 1]))
        else:  # they are those of the matrix to its left, if it has more than one
            one = len(part) - first == len(part[: first - 1])
            found.append((part[first - 1 : first], part[: first - 1]) if one else
                         (found[-1][0], part[:first]))  # fmt: skip
    return found


WIDE = DecoderOnly(7, 30, 24, 2, 40, 1)


@pytest.mark.parametrize(
    "at, sides",
    [
        ("layer 1/feed-forward/out", ["ik", "kj", "1j", "ij"]),
        ("layer 1/attention/head 2/scores", ["ik", "jk", "ij"]),
        ("layer 1/attention/head 2/context", ["ik", "kj", "ij"]),
        ("layer 1/add 1", ["ij", "ij", "ij"]),
    ],
)
def test_what_is_seen_of_a_product_fits_its_factors(read_of, at, sides):
    """Rows and columns that belong together are moved together."""
    page = read_of(Machine(WIDE, " ".join((APPLE_WORDS * 5)[:30]), APPLE_WORDS, at=at))
    for sign in ["", "›", "⌄", "›"]:
        if sign:
            x, y = next((x, y) for text, x, y, *_ in drawn(page) if text == sign)
            board(page).click(position={"x": x, "y": y})
        seen: dict[str, list[str]] = {}
        for names, letters in zip(axes(page), sides, strict=True):
            for letter, some in zip(letters, names, strict=True):
                known = seen.setdefault(letter, some)
                assert len(some) > (letter != "1") and some[: len(known)] == known[: len(some)]


def test_a_finger_drags_a_number_and_scrolls_beside_it(page_of):
    page = page_of(Machine(APPLE, "the shop sells apple", APPLE_WORDS, at="x"))
    page.set_viewport_size({"width": 700, "height": 300})
    touch = page.context.new_cdp_session(page)
    touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def swipe(x: float) -> tuple[float, bool]:
        """How far the board goes up with the finger, and whether a number changed."""
        page.wait_for_timeout(600)  # what was swiped goes on for a while
        page.evaluate("scrollTo(0, 0)")
        board(page).evaluate("canvas => canvas.scrollIntoView({ block: 'center' })")
        start = board(page).bounding_box()
        for i, kind in enumerate(["touchStart", *["touchMove"] * 8, "touchEnd"]):
            point = {"x": start["x"] + x, "y": start["y"] + 130 - 10 * i}
            points = [] if kind == "touchEnd" else [point]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        frames(page, 5)
        end = board(page).bounding_box()
        return start["y"] - end["y"], page.locator(".marks").is_visible()

    beside, dragged = swipe(4), swipe(500)  # a gap, and a number of the table
    assert beside[0] > 20 and not beside[1]
    assert dragged == (0, True)


@pytest.mark.parametrize("width, at", [(1000, ""), (400, "layer 1/attention/head 2")])
def test_the_focus_stays_in_sight(read_of, width, at):
    page = read_of(Machine(WIDE, " ".join(APPLE_WORDS), APPLE_WORDS, at=at))
    page.set_viewport_size({"width": width, "height": 420})
    for keys in (["ArrowDown"] * 9, ["ArrowRight"] * 12, ["ArrowUp"] * 9, ["ArrowLeft"] * 12):
        press(board(page), *keys)
        x, y, w, h, _ = drawn(page, "roundRect")[-1]  # the frame is drawn last
        box, pane = board(page).bounding_box(), page.locator(".board").bounding_box()
        scale = board(page).evaluate("canvas => canvas.getContext('2d').getTransform().a")
        scale /= page.evaluate("devicePixelRatio")
        left, top = box["x"] + x * scale, box["y"] + y * scale
        assert pane["x"] - 2 <= left and left + w * scale <= pane["x"] + pane["width"] + 2
        assert max(54, pane["y"]) - 2 <= top and top + h * scale <= 422  # the page has a head


def switches(page) -> list[str]:
    """What the part that is open can be without."""
    return page.locator(".machine label.toggle").all_inner_texts()


NORMS = DecoderOnly(7, 16, 8, 2, 16, 2, pre_norm=True)
BOTH = Transformer(7, 7, 8, 2, 16, 2)
TODAY = DecoderOnly(7, 16, 8, 2, 16, 1, num_kv_heads=1, rope=100.0, window=2, qk_norm=True,
                    pre_norm=True, rms_norm=True, gated=True, activation="silu")  # fmt: skip
LAYER = ["head 1", "head 2", "residual 1", "norm 1", "feed-forward", "residual 2", "norm 2"]


@pytest.mark.parametrize(
    "model, at, names",
    [
        (APPLE, "", ["÷ √d", "attention"]),
        (NORMS, "", ["positions", "norm"]),
        (NORMS, "positions", ["positions", "norm"]),
        (NORMS, "norm", ["positions", "norm"]),
        (NORMS, "layer 2", LAYER),
        (BOTH, "", ["encoder positions", "decoder positions"]),
        (BOTH, "encoder", ["positions"]),
        (BOTH, "decoder/positions", ["positions"]),
        (BOTH, "encoder/layer 2/norm 1", LAYER),
        (TODAY, "", ["norm"]),
        (TODAY, "layer 1", [*LAYER, "q normed", "k normed"]),
        (TODAY, "layer 1/attention/head 2", ["q turned", "k turned", "÷ √d", "mask", "head 2"]),
    ],
)
def test_every_page_has_its_switches(page_of, model, at, names):
    """The whole model those that no layer has; a step those of where it stands."""
    page = page_of(Machine(model, "shop sells", APPLE_WORDS, written="apple", at=at))
    assert sorted(switches(page)) == sorted(names)


@pytest.mark.parametrize(
    "at", ["", "x", "attention/head", "attention/head/q", "attention/head/scores"]
)
def test_features_with_names_are_drawn_everywhere(read_of, at):
    """The page reports no error, and every part that is open is drawn."""
    where = {"at": at} if at else {}
    assert len(words(read_of(Machine(APPLE, "the shop sells apple", APPLE_WORDS, **where)))) > 8


def test_a_head_names_its_own_features_and_columns(read_of):
    model = APPLE | {"num_heads": 2}
    said = words(read_of(Machine(model, "shop sells apple", APPLE_WORDS, at="attention/head 2")))
    assert "“apple” in this sentence: device" in said
    assert {"scores", "scaled", "weights"} <= set(said)


def test_a_head_of_today_compares_what_is_turned(page_of):
    """What is told of a number leads back from the turned key to the key and what was normed."""
    at = "layer 1/attention/head 2"
    told = {"k turned": "key, turned by its place, of “sells”", "k": "key of “sells”"}
    for step, noun in told.items():
        cell = {"at": at, "cell": [f"{at}/{step}", 1, 0]}
        said = hand(page_of(Machine(TODAY, "shop sells", APPLE_WORDS, **cell)))
        assert noun in said and ("cos(1.0)" in said) == (step == "k turned")
        assert "k normed sells" in said or step == "k turned"


HEAD = "layer 1/attention/head 2"
OF_TODAY = {"rope": 10.0, "pre_norm": True}
SINKS = DecoderOnly(7, 16, 8, 2, 16, 1, sinks=True, window=2, keep_first=1, **OF_TODAY)
LATENT = DecoderOnly(7, 16, 8, 2, 16, 1, latent=Latent(3, 2), **OF_TODAY)


@pytest.mark.parametrize(
    "model, cell, drawn, told",
    [
        (SINKS, ["weights", 3, 4], "gives nothing", "weight of the sink for “apple”"),
        (SINKS, ["sink", 3, 4], "newest 2 seen", "score of the sink: learned"),
        (SINKS, ["masked", 3, 1], "sink", "“shop” is not among the 2 newest or the 1 first"),
        (LATENT, ["both", 3, 1], "+ by place", "by what they mean and by their places"),
        (LATENT, ["by place", 3, 1], "both", "score of “shop” for “apple”, by their places"),
    ],
)
def test_sinks_and_small_vectors_are_drawn_and_told(read_of, model, cell, drawn, told):
    cell = [f"{HEAD}/{cell[0]}", *cell[1:]]
    page = read_of(Machine(model, "the shop sells apple", APPLE_WORDS, at=HEAD, cell=cell))
    assert drawn in words(page) and told in hand(page)


def test_keys_and_values_of_a_small_vector_are_made_of_it_which_is_kept(read_of):
    home = "layer 1/attention/q, k, v"
    at = {"at": f"{home}/k", "cell": [f"{home}/k", 1, 0]}
    page = read_of(Machine(LATENT, "the shop sells apple", APPLE_WORDS, **at))
    assert "k = c W_up_k" in hand(page) and "c normed shop, 3" in hand(page)
    assert {"c normed", "W_up_k"} <= set(words(page))
    page.locator("summary", has_text="what is kept").click()
    frames(page, 5)
    assert page.locator(".cache td i").count() == 4  # of each word one thing


def test_a_window_keeps_the_newest_words_alone(page_of):
    page = page_of(Machine(TODAY, "the shop sells apple", APPLE_WORDS))
    page.locator("summary", has_text="what is kept").click()
    cells = page.locator(".cache tr").nth(1).locator("td")
    frames(page, 5)  # it is drawn when it opens
    assert [cells.nth(i).locator("i").count() for i in range(4)] == [0, 0, 2, 2]
