"""NextToken in the browser: as `next_token_probs` and `greedy_decode`, with Python and without."""

import time

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, press, slide_by_keys, slider
from helpers.decoding import next_token_probs
from helpers.widgets.next_token import _scatter

SETUP = """
import time
import numpy as np
from helpers.widgets.next_token import NextToken
rng = np.random.default_rng(40)
words = "a journey of thousand miles begins with one single step".split()
words += "on the road to where you win or die <end>".split()
LOGITS = rng.normal(size=(20, 20)) * 2
LOGITS[:, 3] = LOGITS[:, 2]  # equal ones: of comes before thousand
LOGITS[19, 0] = 99
"""
CELLS = [
    """model = NextToken(lambda ids: LOGITS[ids], words, ["a"], ids=True, seed=5)
model""",
    """def moody(tokens):
    if tokens[-1] == "die":
        raise RuntimeError("no more\\nwords")
    if tokens[-1] == "win":
        time.sleep(1.6)
    return LOGITS[words.index(tokens[-1])]

failing = NextToken(moody, words, ["a"], max_tokens=3)
failing""",
    """table = np.zeros((3, 3))
table[0] = 0.1, 0.3, 0.6
table[1] = 0, 0.5, 0.5
bigrams = NextToken(lambda t: table["xyz".index(t[-1])], list("xyz"), "x".split(),
                    probabilities=True)
bigrams""",
    """sampled = NextToken(lambda ids: LOGITS[ids], words, ["a"], ids=True, seed=5)
sampled""",
]
exec(SETUP, room := {})
WORDS, LOGITS = room["words"], room["LOGITS"]
NEEDED = "Run this cell: the model needs Python."


@pytest.fixture(scope="module")
def notebook(lab):
    return lab.run(SETUP, *CELLS)


@pytest.fixture(scope="module")
def saved(notebook):
    """The notebook as JupyterLab saved it before anything was touched."""
    return notebook.save()


def candidates(root):
    return root.get_by_role("group", name="candidates")


def names(root) -> list[str]:
    return candidates(root).locator("button span:first-child").all_inner_texts()


def written(root) -> list[str]:
    return root.locator("ins").all_inner_texts()


def click(root, name: str) -> None:
    root.get_by_role("button", name=name, exact=True).click()
    frames(root.page)


def writes(root, *tokens: str) -> None:
    """Wait until these tokens stand there, and what follows them is shown."""
    root.page.wait_for_function(
        """([root, tokens]) =>
          String([...root.querySelectorAll("ins")].map((e) => e.textContent)) === String(tokens)
          && !root.querySelector("output").textContent.startsWith("The model computes")""",
        arg=[root.element_handle(), list(tokens)],
    )


def says(root, text: str) -> None:
    root.locator("output").filter(has_text=text).wait_for(timeout=5000)


def hears(notebook, expression: str, value) -> None:
    """Wait until Python has heard of it: several changes in a row travel together."""
    end = time.monotonic() + 5
    while (now := notebook.value(expression)) != value and time.monotonic() < end:
        notebook.page.wait_for_timeout(50)
    assert now == value


def greedy(start: str) -> list[str]:
    path = [start]
    while path[-1] != "<end>" and len(path) <= 20:
        path.append(WORDS[int(np.argmax(LOGITS[WORDS.index(path[-1])]))])
    return path[1:]


def shows(root, word: str, **knobs) -> None:
    """The bars show the probabilities after a word: twelve, and the sum of the others."""
    logits = LOGITS[WORDS.index(word)]
    order = np.argsort(-logits, kind="stable")
    p = next_token_probs(logits, **knobs)[order]
    assert names(root) == [WORDS[i] for i in order[:12]]
    assert numbers(candidates(root)) == pytest.approx([*p[:12], p[12:].sum()], abs=1e-5)


def samples_as_numpy_does(root) -> None:
    """All knobs by keys and by mouse; what was cut says so."""
    click(root, "restart")
    shows(root, "a")
    slide_by_keys(slider(root, "temperature"), 0.3)
    shows(root, "a", temperature=10**0.3)
    slide_by_keys(slider(root, "top-k"), 6)
    shows(root, "a", temperature=10**0.3, top_k=6)
    slide_by_keys(slider(root, "top-p"), 0.8)
    shows(root, "a", temperature=10**0.3, top_k=6, top_p=0.8)
    assert "cut" in candidates(root).locator("button").nth(6).inner_text()
    t = 10 ** drag(slider(root, "temperature"), 0.7)
    shows(root, "a", temperature=t, top_k=6, top_p=0.8)
    press(slider(root, "top-p"), "End")
    press(slider(root, "top-k"), "End")
    slide_by_keys(slider(root, "temperature"), 0)
    shows(root, "a")


def writes_the_greedy_path(root) -> None:
    path = greedy("a")
    click(root, "restart")
    click(root, "likeliest")
    writes(root, path[0])
    shows(root, path[0])
    click(root, "likeliest until “<end>”")
    writes(root, *path)
    says(root, "“<end>” ends the text." if path[-1] == "<end>" else "The limit here is 20 tokens")
    assert not candidates(root).is_visible()
    click(root, "undo")
    writes(root, *path[:-1])
    shows(root, path[-2])
    click(root, "restart")
    writes(root)


def needs_python(root) -> None:
    """Off the greedy path the widget says what it needs, and finds back."""
    click(root, "restart")
    candidates(root).locator("button").nth(1).click()
    says(root, NEEDED)
    assert not candidates(root).is_visible()
    click(root, "undo")
    shows(root, "a")


def test_live(notebook, saved):
    samples_as_numpy_does(notebook.widget(1))
    writes_the_greedy_path(notebook.widget(1))


def test_bars_by_mouse_and_keys_reach_python(notebook):
    root = notebook.widget(1)
    click(root, "restart")
    second, third = names(root)[1:3]
    candidates(root).locator("button").nth(1).click()
    writes(root, second)
    shows(root, second)
    hears(notebook, "model.tokens", [second])
    click(root, "undo")
    press(candidates(root).locator("button").nth(2), "Enter")
    writes(root, third)
    assert root.locator(".next button:focus").count() == 1
    slide_by_keys(slider(root, "top-k"), 2)
    hears(notebook, "[model.tokens, model.top_k]", [[third], 2])
    expected = next_token_probs(LOGITS[WORDS.index(third)], top_k=2)
    assert notebook.value("model.probs.tolist()") == pytest.approx(expected, abs=1e-6)
    press(slider(root, "top-k"), "End")
    hears(notebook, "model.top_k", None)


def test_python_writes(notebook):
    root = notebook.widget(1)
    notebook.value("setattr(model, 'tokens', ['win', 'or']) or setattr(model, 'temperature', 2)")
    writes(root, "win", "or")
    shows(root, "or", temperature=2)
    assert slider(root, "temperature").get_attribute("aria-valuetext") == "2.00"
    notebook.value("setattr(model, 'tokens', []) or setattr(model, 'temperature', 1)")
    writes(root)


def test_sampling_follows_the_seed(notebook):
    """Draw by the same generator in Python: linear congruential, from the scattered seed."""
    root = notebook.widget(4)
    state, words = _scatter(5), ["a"]
    for _ in range(6):
        if words[-1] == "<end>":
            break
        state = (state * 1664525 + 1013904223) % 2**32
        p = next_token_probs(LOGITS[WORDS.index(words[-1])])
        order = np.argsort(-p, kind="stable")
        words.append(WORDS[order[np.searchsorted(p[order].cumsum(), state / 2**32, "right")]])
        click(root, "sample")
        writes(root, *words[1:])
    assert len(set(words)) > 3


def test_a_run_stops_when_a_button_is_pressed(notebook):
    root = notebook.widget(1)
    click(root, "restart")
    click(root, "likeliest until “<end>”")
    root.locator("ins").nth(1).wait_for()
    click(root, "undo")
    there = written(root)
    root.page.wait_for_timeout(600)
    assert written(root) == there == greedy("a")[: len(there)]


def test_an_exception_is_said_in_words(notebook):
    root = notebook.widget(2)
    press_word(root, "die")
    says(root, "The model failed. RuntimeError: no more⏎words")
    assert not candidates(root).is_visible()
    assert root.get_by_role("button", name="undo").evaluate("b => b === document.activeElement")
    click(root, "undo")
    shows(root, "a")


def press_word(root, word: str) -> None:
    """Append a word that is among the bars, by keyboard."""
    press(candidates(root).locator("button").filter(has_text=word), "Enter")


def test_a_slow_model_is_not_taken_for_a_missing_one(notebook):
    root = notebook.widget(2)
    press_word(root, "win")
    root.page.wait_for_timeout(1300)
    assert root.locator("output").inner_text() == "The model computes …"
    assert written(root) == ["win"]
    writes(root, "win")
    shows(root, "win")


def test_probabilities_and_words_that_nothing_follows(notebook):
    root = notebook.widget(3)
    assert numbers(candidates(root)) == pytest.approx([0.6, 0.3, 0.1], abs=1e-6)
    slide_by_keys(slider(root, "top-p"), 0.6)
    assert numbers(candidates(root)) == pytest.approx([1, 0, 0], abs=1e-6)
    click(root, "y cut")
    writes(root, "y")
    assert names(root) == ["y", "z"]  # equal: as in the vocabulary
    click(root, "sample to the end")
    says(root, "Nothing can follow: every probability is 0.")
    press(root.get_by_role("button", name="likeliest", exact=True), "Enter")
    assert written(root)[-1] == "z"


def test_saved_and_not_run_again(lab, saved):
    root = lab.open(saved).widget(1)
    samples_as_numpy_does(root)
    writes_the_greedy_path(root)
    needs_python(root)


def test_offline(page_of, saved):
    root = page_of(saved).locator(".step").first
    samples_as_numpy_does(root)
    writes_the_greedy_path(root)
    needs_python(root)
