"""The live pages of `make site` in the browser, from a server that sets no headers."""

import inspect
import json
import re
import time
import zipfile

import pytest
from learners import answers as recorded

from browser.axe import AXE, TAGS
from browser.conftest import Served
from browser.test_site import STICKS_OUT
from workshop.exercises import exercises

NOTEBOOKS = [f"{i:02}" for i in range(12)]
# What each cell says: its text, but not that of widgets, which draw themselves.
SHOWN = """() => Object.fromEntries([...document.querySelectorAll(".cell")].map((cell) => {
  for (const fold of cell.querySelectorAll("details")) fold.open = true;
  const boxes = cell.querySelectorAll(".outputs > :is(pre, .made), .outputs > img");
  return [cell.dataset.cell, [...boxes].map((box) => (box.alt ?? box.textContent).trim()).join()];
}))"""
STATES = """() => Object.fromEntries([...document.querySelectorAll(".cell")].map((cell) =>
  [cell.dataset.cell, [cell.dataset.live, !cell.closest(".deeper")]]))"""

WRONG = "def softmax_row(scores):\n    return np.exp(scores)"
RIGHT = "def softmax_row(scores):\n    e = np.exp(scores)\n    return e / e.sum()"
ENDLESS = "def softmax_row(scores):\n    while True:\n        scores = scores + 1"
HUNGRY = "def softmax_row(scores):\n    return [np.empty(10**8) for _ in range(100)]"


class Reader:
    """A reader of the site, with a browser that has never been there."""

    def __init__(self, browser, address, made, width=1400):
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.address, self.made, self.faults, self.hosts = address, made, [], set()
        self.context.on("console", self.hear)
        self.context.on("weberror", lambda e: self.faults.append(str(e.error)))
        self.context.on("request", lambda r: self.hosts.add(r.url.split("/")[2]))

    def hear(self, message):
        if message.type == "error" and "net::ERR" not in message.text:  # offline it says so
            self.faults.append(message.text)

    def open(self, name):
        page = self.context.new_page()
        page.goto(self.address + next(self.made.glob(f"{name}*.html")).name)
        page.get_by_role("button", name="Run all").wait_for()
        return page


@pytest.fixture
def reader(browser, address, made):
    """One reader; nothing may complain, and no other host is asked."""
    one = Reader(browser, address, made)
    yield one
    one.context.close()
    assert not one.faults
    assert one.hosts <= {address.split("/")[2], ""}


@pytest.fixture(scope="module")
def known(browser, address, made):
    """A reader who has run a page before: their pages are isolated, and all has come."""
    one = Reader(browser, address, made)
    page = one.open("05")
    press(page, "Run cell 2")
    page.close()
    yield one
    one.context.close()


def idle(page, seconds=60):
    """Wait until no cell runs."""
    page.get_by_role("button", name="Stop", exact=True).wait_for(
        state="hidden", timeout=1000 * seconds
    )


def press(page, name, seconds=60):
    """Press a button, and wait until all has run."""
    page.get_by_role("button", name=name, exact=True).first.click()
    idle(page, seconds)


def number(page, cell):
    return page.locator(f"#cell-{cell}").get_attribute("data-number")


def write(page, cell, source):
    page.get_by_role("textbox", name=f"Cell {number(page, cell)}", exact=True).fill(source)


def verdict(page, source, name="softmax_row"):
    """Write an answer, check it, and read what the check says."""
    write(page, f"your-turn-{name.replace('softmax_', '')}-written", source)
    return checked(page, name)


def checked(page, name="softmax_row"):
    cell = f"your-turn-{name.replace('softmax_', '')}-checked"
    press(page, f"Run cell {number(page, cell)}")
    return page.locator(f"#cell-{cell}>.outputs").inner_text()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_runs_and_shows_what_is_saved_or_says_that_it_needs_pytorch(known, name):
    page = known.open(name)
    saved = page.evaluate(SHOWN)
    press(page, "Run all", 120)
    shown, states = page.evaluate(SHOWN), page.evaluate(STATES)
    assert {state for state, _ in states.values()} <= {"done", "needs PyTorch"}
    assert [cell for cell in saved if shown[cell] != saved[cell]] == []
    lacking = {
        cell for cell, (state, in_story) in states.items() if state == "needs PyTorch" and in_story
    }
    assert lacking <= {"pytorch-agrees"} or name > "06"
    assert page.get_by_text("This cell needs PyTorch").count() == sum(
        state == "needs PyTorch" for state, _ in states.values()
    )
    page.close()


def test_an_answer_is_checked_helped_and_kept_for_the_next_day_without_a_network(reader, known):
    """Wrong, endless, too large, then right; and the day after, offline and in another page."""
    page = reader.open("05")
    assert "not attempted" in checked(page)
    assert "not divided by their sum" in verdict(page, WRONG)
    assert "time limit ended it" in verdict(page, ENDLESS)
    assert "MemoryError" in verdict(page, HUNGRY)
    helped = page.locator("#cell-your-turn-row-checked .outputs")
    for button in ("Hint", "Solution"):
        press(page, button)
    assert "softmax_row" in helped.nth(1).inner_text()
    assert "/ " in helped.nth(2).inner_text() and "return" in helped.nth(2).inner_text()
    assert "right" in verdict(page, RIGHT) and "in this browser" in checked(page)
    page.close()
    reader.context.set_offline(True)
    page = reader.open("05")
    assert page.locator("#cell-your-turn-row-written .code").text_content() == RIGHT
    assert "right" in checked(page)
    other = reader.open("05")
    write(other, "so-far-computed", "from workshop import mine\nprint(mine.softmax_row.__module__)")
    press(other, f"Run cell {number(other, 'so-far-computed')}")
    assert (
        other.locator("#cell-so-far-computed>.outputs").inner_text().strip()
        == "my_transformer.softmax_row"
    )


# Milliseconds from the click to the end, by the page's own clock.
STOPPED = """async () => {
  const began = performance.now();
  halt.click();
  while (busy) await new Promise((go) => setTimeout(go, 10));
  return performance.now() - began;
}"""
STUBBORN = """
try:
    while True: pass
except KeyboardInterrupt:
    while True: pass"""


def test_a_cell_is_stopped_and_names_stay(reader, known):
    """On a first visit Python ends with it; later it is interrupted at once."""
    for one, isolated in ((reader, False), (known, True)):
        page = one.open("05")
        press(page, f"Run cell {number(page, 'so-far-computed')}")
        write(page, "steps-1-2", "while True: pass")
        write(page, "step-3-mixed", "print(words[3])")
        page.get_by_role("button", name=f"Run cell {number(page, 'steps-1-2')}").click()
        page.locator("#cell-steps-1-2[data-live=runs]").wait_for()
        time.sleep(0.5)
        took = page.evaluate(STOPPED)
        assert page.evaluate("crossOriginIsolated") == isolated
        assert took < 500, took
        said = page.locator("#cell-steps-1-2>.outputs").inner_text()
        assert ("KeyboardInterrupt" in said) == isolated
        write(page, "steps-1-2", "pass")
        press(page, f"Run cell {number(page, 'step-3-mixed')}")
        assert page.locator("#cell-step-3-mixed>.outputs").inner_text().strip() == "apple"
        page.get_by_role("button", name="Start again").click()
        assert page.locator("[data-live=done]").count() == 0
        for cell in ("steps-1-2", "step-3-mixed"):
            page.get_by_role("button", name=f"changed in cell {number(page, cell)}").click()
        page.close()


def test_a_cell_that_catches_the_first_stop_gets_another(known):
    page = known.open("05")
    write(page, "steps-1-2", STUBBORN)
    page.get_by_role("button", name=f"Run cell {number(page, 'steps-1-2')}").click()
    page.locator("#cell-steps-1-2[data-live=runs]").wait_for()
    time.sleep(0.5)
    page.evaluate(STOPPED)
    assert "KeyboardInterrupt" in page.locator("#cell-steps-1-2>.outputs").inner_text()
    page.locator("#cell-steps-1-2").get_by_role("button", name="Take back").click()
    page.close()


def test_what_is_pressed_while_python_starts_runs_once_or_not_at_all(reader):
    """Stop drops what waits, and a cell that waits is not asked for twice."""
    page = reader.open("05")
    page.get_by_role("button", name="Run all").click()
    page.locator(".bench progress").wait_for()
    assert re.search(r"Python comes, once: 1\d MB", page.locator(".bench").inner_text())
    page.get_by_role("button", name="Stop", exact=True).click()
    assert page.locator("[data-live=waits]").count() == 0
    write(page, "so-far-computed", "count = 0")
    write(page, "steps-1-2", "count += 1\nprint(count)")
    for _ in range(3):
        page.get_by_role("button", name=f"Run cell {number(page, 'steps-1-2')}").click()
    idle(page)
    assert page.locator("#cell-steps-1-2>.outputs").inner_text().strip() == "1"


def test_what_is_changed_stays_and_can_be_taken_back(reader):
    page = reader.open("05")
    own = page.locator("#cell-step-3-mixed .code").text_content()
    write(page, "step-3-mixed", "1 / 0")
    page.close()
    page = reader.open("05")
    press(page, f"Run cell {number(page, 'step-3-mixed')}")
    said = page.locator("#cell-step-3-mixed>.outputs")
    assert said.inner_text().splitlines()[-1] == "ZeroDivisionError: division by zero"
    page.get_by_role("button", name="Take back what you changed").click()
    press(page, f"Run cell {number(page, 'step-3-mixed')}")
    assert "2.595" in said.inner_text()
    page.reload()
    assert page.locator("#cell-step-3-mixed .code").text_content() == own
    assert page.locator("[data-changed]").count() == 0


def test_answers_are_saved_as_one_file_that_mine_reads_and_taken_back(
    reader, browser, address, made, tmp_path, monkeypatch
):
    page = reader.open("05")
    assert "right" in verdict(page, RIGHT)
    with page.expect_download() as saved:
        press(page, "Save answers")
    saved.value.save_as(tmp_path / "my_transformer.zip")
    assert zipfile.ZipFile(tmp_path / "my_transformer.zip").namelist() == [
        "my_transformer/softmax_row.py"
    ]
    other = Reader(browser, address, made)
    page = other.open("05")
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Take answers back").click()
    chosen.value.set_files(tmp_path / "my_transformer.zip")
    page.get_by_text("Answers taken back: 1.").wait_for()
    write(page, "so-far-computed", "from workshop import progress\nprogress()")
    press(page, f"Run cell {number(page, 'so-far-computed')}")
    assert "softmax_row" in page.locator("#cell-so-far-computed>.outputs").inner_text()
    other.context.close()


def test_nothing_is_loaded_before_it_is_asked_for(browser, address, made):
    """But the program of the cells and the one that keeps pages: 20 kB at most."""
    one = Reader(browser, address, made)
    Served.sent.clear()
    one.open("05").wait_for_timeout(500)
    assert sum(size for path, size in Served.sent if "05_softmax" not in path) < 20_000
    one.context.close()


def test_an_old_page_goes_on_while_the_site_is_made_anew(reader, made):
    """It has what it was made with; loaded anew it is the new one, with the same answers."""
    page = reader.open("06")
    press(page, f"Run cell {number(page, 'so-far-computed')}")
    (old,) = (made / "live").iterdir()
    new = old.with_name("0123456789ab")
    text = {path: path.read_text("utf-8") for path in (made / "sw.js", *made.glob("06*.html"))}
    try:
        old.rename(new)
        for path, was in text.items():
            path.write_text(was.replace(old.name, new.name), "utf-8")
        write(page, "so-far-computed", "print(6 * 7)")
        press(page, f"Run cell {number(page, 'so-far-computed')}")
        assert page.locator("#cell-so-far-computed>.outputs").inner_text().strip() == "42"
        page.reload()
        page.get_by_role("button", name="Run all").wait_for()
        assert page.evaluate("home.href").endswith(f"{new.name}/")
        press(page, f"Run cell {number(page, 'so-far-computed')}")
        assert page.locator("#cell-so-far-computed>.outputs").inner_text().strip() == "42"
    finally:
        new.rename(old)
        for path, was in text.items():
            path.write_text(was, "utf-8")


WRONG_TURNS = {
    "no WebAssembly": "delete globalThis.WebAssembly",
    "a blocked worker": "globalThis.Worker = class { constructor() { throw new Error('no') } }",
    "no memory": "WebAssembly.Memory = 0; globalThis.Worker = class { postMessage() {"
    " setTimeout(() => this.onmessage({ data: { kind: 'broken', text: 'out of memory' } })) }"
    " terminate() {} }",
}


@pytest.mark.parametrize("script", WRONG_TURNS.values(), ids=list(WRONG_TURNS))
def test_a_wrong_turn_says_where_else_to_go(reader, script):
    reader.context.add_init_script(script)
    page = reader.open("05")
    press(page, "Run all")
    said = page.locator(".bench [role=status]")
    assert said.inner_text().startswith("Python stopped: ")
    assert [a.inner_text() for a in said.locator("a").all()] == [
        "Open the notebook in Colab",
        "start it on your own machine",
    ]


def test_nothing_is_in_the_way_on_a_narrow_screen_and_by_axe(known, axe_source):
    page = known.open("05")
    press(page, "Run all")
    for width in (390, 620, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(STICKS_OUT) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(axe_source + "; null")
        faults = page.evaluate(AXE, [page.locator("html").element_handle(), TAGS])
        assert not faults, "\n".join(faults)
    page.close()


def test_all_goes_by_keyboard_alone(known):
    """Tab comes to a cell; Escape and Tab leave its editor; Shift and Enter run it."""
    page = known.open("05")
    cell = f"Cell {number(page, 'so-far-computed')}"
    focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == cell:
            break
    page.locator("#cell-so-far-computed .cm-editor").wait_for()
    assert page.evaluate(focused) == cell
    page.keyboard.press("Control+a")
    page.keyboard.type('print("by keys")')
    page.keyboard.press("Shift+Enter")
    idle(page)
    assert page.locator("#cell-so-far-computed>.outputs").inner_text().strip() == "by keys"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == cell.replace("Cell", "Run cell")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "APPLE" in page.get_by_role("textbox", name=cell, exact=True).inner_text()
    page.close()


HOSTILE = """</script><!--<script>'"&<img src=x onerror="alert(1)">"""


def test_hostile_tokens_stay_text(reader):
    page = reader.open("05")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    code = f"from workshop import AttentionHeatmap\nword = {HOSTILE!r}\nprint(word)\n"
    write(page, "so-far-computed", code + "AttentionHeatmap(np.eye(2), [word, word])")
    press(page, f"Run cell {number(page, 'so-far-computed')}")
    shown = page.locator("#cell-so-far-computed>.outputs")
    shown.locator("figure .step").wait_for()
    assert HOSTILE in shown.inner_text()
    assert shown.locator("[onerror], script").count() == 0 and not asked


def test_a_widget_of_a_cell_hears_and_is_heard(known):
    """What a reader touches reaches Python, and what Python sets reaches the page."""
    page = known.open("05")
    code = "from workshop import DropoutLab\nlab = DropoutLab([[0.5, 0.5]])\nlab"
    write(page, "so-far-computed", code)
    press(page, f"Run cell {number(page, 'so-far-computed')}")
    slider = page.locator("#cell-so-far-computed>.outputs").get_by_role("slider").first
    slider.fill("0.3")
    write(page, "steps-1-2", "print(lab.p)\nlab.p = 0.7")
    press(page, f"Run cell {number(page, 'steps-1-2')}")
    assert page.locator("#cell-steps-1-2>.outputs").inner_text().strip() == "0.3"
    assert slider.input_value() == "0.7"
    page.evaluate(
        "worker.postMessage({ do: 'set', model: [...models.keys()].at(-1), told: { p: 7 } })"
    )
    write(page, "steps-1-2", "print(lab.p)")
    press(page, f"Run cell {number(page, 'steps-1-2')}")  # what it refuses ends nothing
    assert page.locator("#cell-steps-1-2>.outputs").inner_text().strip() == "0.7"
    page.close()


def test_a_page_in_a_folder_is_to_read(browser, made):
    page, faults = browser.new_page(), []
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.goto(next(made.glob("05*.html")).as_uri())
    assert page.get_by_role("button", name="Run all").count() == 0 and not faults
    page.close()


# Answers for tensors, by methods that arrays lack: here they raise, on the desktop they are tried
# on tensors too.
FOR_TENSORS = {"attention_scores", "merge_heads", "share_heads", "split_heads"}
PYTORCH = re.compile(
    r"torch|\bF\.|\bnn\.|tensor|unsqueeze|masked_fill|chunk|\bdim=|keepdim=|\.size\("
)


def graded(answers):
    """What the check says to each of [[exercise, source], …]: here, and in the page."""
    import linecache
    import random

    from workshop.checks import grade
    from workshop.exercises import exercises
    from workshop.exercises.exercise import at_hand

    known = [e for e in exercises().values() if e.backends[0] == "numpy"]
    names = {e.name: e.reference for e in known if "torch" not in e.solution}
    names |= at_hand(torch=False) | {"random": random}
    found = []
    for i, (name, source) in enumerate(answers):
        scope = dict(names)
        linecache.cache[f"<{i}>"] = (len(source), None, source.splitlines(True), f"<{i}>")
        exec(compile(source, f"<{i}>", "exec"), scope)
        verdict = grade(scope[name], name)
        found.append([verdict.status, verdict.mistake, verdict.message])
    return found


def test_verdicts_are_those_of_the_desktop(known):
    """On all recorded answers of 00 to 11 that need no PyTorch, but those for tensors."""
    here = {e.name for e in exercises().values() if e.notebook <= "11" and e.backends[0] == "numpy"}
    told = [a for a in recorded() if a.exercise in here and not PYTORCH.search(a.source)]
    asked = [[a.exercise, a.source] for a in told]
    page = known.open("05")
    code = f"import json\n{inspect.getsource(graded)}\n"
    code += f"print(json.dumps(graded(json.loads({json.dumps(json.dumps(asked))}))))"
    write(page, "so-far-computed", code)
    press(page, f"Run cell {number(page, 'so-far-computed')}", 900)
    said = page.locator("#cell-so-far-computed>.outputs").inner_text()
    here = json.loads(said.strip().splitlines()[-1])  # warnings may stand above
    page.close()
    others = [a for a, x, y in zip(told, graded(asked), here, strict=True) if x != y]
    assert len(told) > 800 and len(others) < 10
    assert {a.exercise for a in others} <= FOR_TENSORS
