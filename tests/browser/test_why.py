"""Why this word, in a real browser: numbers equal to Python's, the picture, and its speed."""

import base64
import json

import numpy as np
import pytest
import torch
from small_models import CASES
from torch import nn

from browser.harness import frames, pixels
from helpers.models import Transformer
from workshop.machine.machine import Machine
from workshop.machine.why import Why, as_long
from workshop.machine.wire import joined, packed
from workshop.widgets.base import module

NAMES = "Object.assign(globalThis, { Engine, Why, asLong, inFrames });"
ASK = """async ([program, learned, texts, word, rival, changes]) => {
  const bytes = Uint8Array.from(atob(learned), (sign) => sign.charCodeAt(0));
  const engine = new Engine(program, new Float32Array(bytes.buffer));
  const why = new Why(engine, texts, word, rival, changes);
  const all = (generator) => inFrames(generator, () => true);
  const sweep = [...(await all(why.sweeping()))];
  const notes = [...(await all(why.noting()))];
  return { parts: why.parts, sweep, notes, steps: await all(why.stepping()) };
}"""
SPEAKERS = ["gpt", "tied, post-norm", "transformer", "pre-norm transformer", "notebook 12", "llama",
            "mixtral", "attention only", "sinks", "latent"]  # fmt: skip


@pytest.fixture(scope="module")
def engine(browser):
    """A page with the engine and its questions; nothing in it may complain."""
    shown, faults = browser.new_page(), []
    shown.on("pageerror", lambda error: faults.append(str(error)))
    shown.add_script_tag(content=f"{module('machine/why.js')}\n{NAMES}", type="module")
    shown.wait_for_function("!!globalThis.Why")
    yield shown
    shown.close()
    assert not faults


def texts_of(case, seed: int, count: int) -> list[dict[str, list[int]]]:
    rng, p = np.random.default_rng(seed), case.program()
    tables = {o.rows: len(p.weights[o.weights[0]]) for o in p.operations.values()
              if o.kind == "embed"}  # fmt: skip
    return [{of: rng.integers(1, size, 5).tolist() for of, size in tables.items()}
            for _ in range(count)]  # fmt: skip


@pytest.mark.parametrize("rival", [None, 5])
@pytest.mark.parametrize("name", SPEAKERS)
def test_it_finds_what_python_finds(engine, name, rival):
    """Parts, cuts, steps and notes, also of a model in which something was changed."""
    case = CASES[name]()
    p, (texts, *others) = case.program(), texts_of(case, 3, 4)
    p.weights = {at: w.astype("<f4").astype(float) for at, w in p.weights.items()}
    for changes in ([], [{"at": next(at for at in p.operations if "head" in at and
                                     at.endswith("context")), "off": True}]):  # fmt: skip
        ours = Why(p, texts, 2, rival, others=others, changes=changes)
        description = packed(p) | {"others": others}
        learned = base64.b64encode(joined(p.weights)).decode()
        found = engine.evaluate(ASK, [description, learned, texts, 2, rival, changes])
        parts = {part.at: part.adds for part in ours.parts}
        assert dict(found["parts"]) == pytest.approx(parts, abs=1e-4)
        told = {at: [*said.values()] for at, said in found["sweep"]}
        assert told == {at: pytest.approx(said, abs=1e-4) for at, said in ours.sweep.items()}
        assert {at: tuple(note) for at, note in found["notes"]} == ours.notes
        steps = [
            (step["kind"], step["at"], *step["asker"], *step["word"]) for step in found["steps"]
        ]
        assert steps == [(s.kind, s.at, *s.asker, *s.word) for s in ours.steps]
        for step, own in zip(found["steps"], ours.steps, strict=True):
            assert [*step["after"].values()] == pytest.approx(own.after, abs=1e-4)
            assert json.dumps(step["heads"]) == str(own.heads)


def test_texts_by_lot_are_as_long_as_the_text_also_where_that_is_longer_than_they_were(engine):
    lot = [{"text": [0, *range(start, start + 11)]} for start in (1, 21, 41)]
    for count in (3, 15):
        texts = {"text": [7] * count}
        ours = as_long(lot, texts)
        assert [len(one["text"]) for one in ours] == [count] * 3
        assert engine.evaluate("([lot, texts]) => asLong(lot, texts)", [lot, texts]) == ours
    assert ours[2]["text"] == [0, *range(41, 52), 1, 2, 3]  # it goes on with the next


# ---------------------------------------------------------------- the picture

ENGLISH = "the cow dog green sees my frog".split()
FRENCH = ["<start>", "vache", "chien", "verte", "vert", "<end>"]


def drawn_machine(written: str = "<start> vache", **where) -> Machine:
    """A translator of a layer whose random weights are so large that there is a way back."""
    torch.manual_seed(16)
    model = Transformer(7, 6, 8, 2, 16, 1, max_len=12).eval()
    for parameter in (p for p in model.parameters() if p.ndim > 1):
        nn.init.normal_(parameter, std=0.5)
    return Machine(model, "my green cow", (ENGLISH, FRENCH), written=written, **where)


OF_A_KERNEL = f"""
import torch
from helpers.models import DecoderOnly
from workshop.machine import machine
torch.manual_seed(16)
model = DecoderOnly(7, 16, 8, 2, 16, 1).eval()
for parameter in (p for p in model.parameters() if p.ndim > 1):
    torch.nn.init.normal_(parameter, std=0.5)
machine.IN_BROWSER = 10
m = machine.Machine(model, "my green cow", {ENGLISH})
m
"""


def guess(page, n: int):
    return page.locator(".asks button").nth(n)


def answer(page) -> list[str]:
    page.locator(".why li button").first.wait_for()
    frames(page, 5)
    return page.locator(".why li").all_inner_texts()


def test_a_click_asks_and_a_second_asks_for_both(page_of):
    shown = drawn_machine()
    page = page_of(shown)
    word, rival = (list(shown.output)[n] for n in (0, 1))
    guess(page, 0).click()
    assert answer(page) == shown.why(word).sentences
    guess(page, 1).click()
    frames(page, 5)
    both = shown.why(word, rather_than=rival)
    assert answer(page) == both.sentences
    assert f"and not “{rival}”" in page.locator(".why strong").first.inner_text()
    lines = page.locator(".why tr").all_inner_texts()
    assert f"lead over “{rival}”" in "".join(lines)
    guess(page, 1).click()
    guess(page, 0).click()
    frames(page, 5)
    assert not page.locator(".why").first.is_visible()


def test_the_answer_does_not_hang_on_what_was_written_at_first(page_of):
    """What takes the place of a hidden word is as long as the text is now, also in Python."""
    early = drawn_machine("<start>")
    page = page_of(early)
    page.get_by_role("button", name="write a word").click()
    early.written = page.get_by_role("textbox").nth(1).input_value()
    late = drawn_machine(early.written)
    words = list(late.output)
    n = next(n for n, word in enumerate(words) if late.why(word).why.steps)
    assert str(early.why(words[n])) == str(late.why(words[n])) and early.written != "<start>"
    guess(page, n).click()
    assert answer(page) == late.why(words[n]).sentences


def test_what_is_listed_adds_up_and_opens(page_of):
    page = page_of(drawn_machine())
    guess(page, 0).click()
    frames(page, 5)
    adds = page.locator(".why tr td:nth-child(2)").all_inner_texts()
    *parts, total = [float(text.replace("−", "-")) for text in adds if text]
    assert sum(parts) == pytest.approx(total, abs=0.006) and parts[0] == max(parts, key=abs)
    page.get_by_role("button", name="decoder layer 1 feed-forward").first.click()
    frames(page, 3)
    assert "feed-forward" in page.locator(".crumbs [aria-current]").inner_text()


def test_a_sentence_opens_its_place(page_of):
    shown = drawn_machine(asked=[])
    page = page_of(shown)
    guess(page, 0).click()
    answer(page)
    page.locator(".why li button").first.click()
    frames(page, 3)
    opened = page.locator(".crumbs").inner_text().replace("\n", " ")
    assert shown.why(next(iter(shown.output))).why.steps[0].at.split("/")[-1] in opened


def without(page, part: str) -> str:
    """What the table says of the word if a part is gone."""
    return page.locator(".why tr", has_text=part).first.locator("td").nth(3).inner_text()


def veil(page) -> int:
    """How many pixels of the map are as the veil tints them: more where more is lost."""
    image = pixels(page.locator("canvas[tabindex='0']"))[..., :3].astype(int)
    return int((image[..., 0] - image[..., 2] > 24).sum())


def test_one_press_says_what_is_missed_and_tints_the_map(page_of):
    shown = drawn_machine()
    page = page_of(shown)
    guess(page, 0).click()
    answer(page)
    before = veil(page)
    page.get_by_role("button", name="what if each part were gone?").click()
    page.get_by_text("words that are missed").wait_for()
    frames(page, 5)
    assert veil(page) > before + 1000
    third = page.locator(".why tr").nth(3).bounding_box()
    assert 0 < third["y"] < page.viewport_size["height"] - third["height"]
    left = shown.why(next(iter(shown.output))).without["decoder/layer 1/feed-forward"]
    assert without(page, "decoder layer 1 feed-forward") == f"{left.probability:.2f}"
    assert without(page, "decoder x") == "stays"
    assert "through the cross-attention" in page.locator(".why table").first.inner_text()


@pytest.mark.parametrize("width", [400, 620])
def test_all_of_its_answer_is_seen_on_a_narrow_page(page_of, width):
    """Also what it means if a part is gone, and a minus."""
    page = page_of(drawn_machine(asked=[FRENCH[3], FRENCH[4], "gone"]))
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_text("words that are missed").wait_for()
    frames(page, 5)
    told = page.locator(".why")
    assert told.evaluate_all("all => all.every((e) => e.scrollWidth <= e.clientWidth)")
    assert "a minus means that the other's is the larger" in told.first.inner_text()


def test_words_at_every_height_end_with_the_prediction(page_of):
    shown = drawn_machine()
    page = page_of(shown)
    guess(page, 0).click()
    page.locator("summary", has_text="if it ended here").click()
    page.locator(".why details table tr").nth(1).wait_for()
    lines = page.locator(".why details table").first.locator("tr").all_inner_texts()
    word, p = next(iter(shown.output.items()))
    assert lines[0].split() == ["<start>", "vache"] and lines[-1].split()[-2:] == [word, f"{p:.2f}"]
    assert lines[1].startswith("decoder x")


def test_a_word_of_another_sentence_is_put_in(page_of):
    shown = drawn_machine()
    page = page_of(shown)
    guess(page, 0).click()
    page.locator("summary", has_text="beside another").click()
    page.get_by_label("the other sentence").fill("my green dog")
    frames(page, 3)
    page.get_by_role("button", name="put “dog” in for “cow”").click()
    frames(page, 5)
    assert "vector of “cow”" in page.locator(".marks").inner_text()
    other = drawn_machine()
    other.text = "my green dog"
    words = page.locator(".guess strong").all_inner_texts()
    assert float(words[0]) == pytest.approx(max(other.output.values()), abs=5e-5)


def test_without_a_kernel_nothing_pretends(page_of, monkeypatch):
    monkeypatch.setattr("workshop.machine.machine.IN_BROWSER", 10)
    shown = drawn_machine()
    page = page_of(shown)
    guess(page, 0).click()
    frames(page, 5)
    assert "Python is asked" in page.locator(".why").first.inner_text()
    asked = drawn_machine(asked=[next(iter(shown.output)), "", "gone"])
    assert answer(page_of(asked)) == asked.why(asked.asked[0]).sentences
    assert len(asked.kept["why"]["sweep"]) == len(asked.why(asked.asked[0]).without)


def test_a_kernel_answers_for_a_model_of_its_own(lab):
    notebook = lab.run(OF_A_KERNEL)
    root = notebook.widget(0)
    guess(root, 0).click()
    told = answer(root)
    word = next(iter(notebook.value("m.output")))
    assert notebook.value("[m._remote, len(m.learned), m.asked]") == [True, 0, [word]]
    assert told == notebook.value("m.why(m.asked[0]).sentences")
    root.get_by_role("button", name="what if each part were gone?").click()
    root.get_by_text("words that are missed").wait_for()
    left = notebook.value('m.why(m.asked[0]).without["layer 1/feed-forward"]')
    assert without(root, "layer 1 feed-forward") == f"{left[0]:.2f}"


def test_axe_finds_nothing(page_of, axe):
    page = page_of(drawn_machine(asked=[FRENCH[3], FRENCH[4], "gone"]))
    page.get_by_text("words that are missed").wait_for()
    frames(page, 5)
    assert not axe(page.locator(".step"))


def test_a_sum_has_its_formula_in_letters_in_the_colours_of_its_parts(page_of):
    at = "decoder/layer 1/cross-attention/head 1"
    page = page_of(drawn_machine(at=at, cell=[f"{at}/scores", 1, 2]))
    letters = page.locator(".letters")
    assert letters.inner_text() == "score = q · k"
    colours = letters.locator("strong").evaluate_all("all => all.map(one => one.style.color)")
    assert colours == ["var(--scores)", "var(--q)", "var(--k)"]
