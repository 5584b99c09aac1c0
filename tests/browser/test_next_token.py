"""NextToken in the browser: as `next_token_probs` and `greedy_decode`, with Python and without."""

import time

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, press, slide_by_keys, slider
from helpers.decoding import next_token_probs
from workshop.widgets.next_token import _scatter

SETUP = """
import time
import numpy as np
from workshop.widgets.next_token import NextToken
rng = np.random.default_rng(40)
words = "a journey of thousand miles begins with one single step".split()
words += "on the road to where you win or die <end>".split()
LOGITS = rng.normal(size=(20, 20)) * 2
LOGITS[:, 3] = LOGITS[:, 2]  # equal ones: of comes before thousand
LOGITS[19, 0] = 99
"""
CELLS = [
    SETUP,
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
    """sampled = NextToken(lambda ids: LOGITS[ids], words, ["a"], ids=True, seed=5)
sampled""",
]
exec(SETUP, room := {})
WORDS, LOGITS = room["words"], room["LOGITS"]


def candidates(root):
    return root.get_by_role("group", name="candidates")


def names(root) -> list[str]:
    return candidates(root).locator("button span:first-child").all_inner_texts()


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


def test_the_reader_and_python_share_what_is_written(notebook, saved):
    root = notebook.widget(1)
    second, third = names(root)[1:3]
    candidates(root).locator("button").nth(1).click()
    writes(root, second)
    shows(root, second)
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
    notebook.value("setattr(model, 'tokens', ['win', 'or']) or setattr(model, 'temperature', 2)")
    writes(root, "win", "or")
    shows(root, "or", temperature=2)
    notebook.value("setattr(model, 'tokens', []) or setattr(model, 'temperature', 1)")
    writes(root)


def test_sampling_follows_the_seed(notebook):
    """Draw by the same generator in Python: linear congruential, from the scattered seed."""
    root = notebook.widget(3)
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


def test_an_exception_is_said_in_words_and_a_slow_model_is_waited_for(notebook):
    root = notebook.widget(2)
    press(candidates(root).locator("button").filter(has_text="die"), "Enter")
    says(root, "The model failed. RuntimeError: no more⏎words")
    assert not candidates(root).is_visible()
    click(root, "undo")
    press(candidates(root).locator("button").filter(has_text="win"), "Enter")
    root.page.wait_for_timeout(1300)
    assert root.locator("output").inner_text() == "The model computes …"
    writes(root, "win")
    shows(root, "win")


def test_it_samples_as_numpy_does(anywhere):
    """All knobs by keys and by mouse; what was cut says so."""
    root = anywhere[0]
    click(root, "restart")
    shows(root, "a")
    slide_by_keys(slider(root, "top-k"), 6)
    slide_by_keys(slider(root, "top-p"), 0.8)
    t = 10 ** drag(slider(root, "temperature"), 0.7)
    shows(root, "a", temperature=t, top_k=6, top_p=0.8)
    assert "cut" in candidates(root).locator("button").nth(6).inner_text()
    press(slider(root, "top-p"), "End")
    press(slider(root, "top-k"), "End")
    slide_by_keys(slider(root, "temperature"), 0)
    shows(root, "a")


def test_it_writes_the_greedy_path_and_says_when_it_needs_python(anywhere, request):
    root, path = anywhere[0], greedy("a")
    click(root, "restart")
    click(root, "likeliest")
    writes(root, path[0])
    shows(root, path[0])
    click(root, "likeliest until “<end>”")
    writes(root, *path)
    says(root, "“<end>” ends the text." if path[-1] == "<end>" else "The limit here is 20 tokens")
    assert not candidates(root).is_visible()
    click(root, "restart")
    if "live" not in request.node.name:  # off the greedy path, without a kernel
        candidates(root).locator("button").nth(1).click()
        says(root, "Run this cell: the model needs Python.")
        click(root, "undo")
    shows(root, "a")
