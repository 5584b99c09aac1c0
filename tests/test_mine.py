"""`mine`: the learner's functions where they are, the course's elsewhere."""

import re
import warnings

import numpy as np
import pytest

from helpers import attention, blocks
from workshop import mine
from workshop.checks import keep, learner
from workshop.exercises import exercises

DOUBLE = "def softmax(x, axis=-1):\n    return 'mine'\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where answers are kept."""
    monkeypatch.setenv("MY_TRANSFORMER", str(tmp_path / "my_transformer.py"))
    monkeypatch.setattr(learner.Memory, "right", set())
    return tmp_path / "my_transformer.py"


def test_without_a_file_everything_is_of_the_course(path):
    for name, known in exercises().items():
        if known.backends != ("torch",):
            assert getattr(mine, name) is known.reference
    assert mine.make_stack.__module__ == "helpers.layers"


def test_own_functions_come_first(path):
    path.write_text(DOUBLE, "utf-8")
    assert mine.softmax(1) == "mine"
    assert mine.layer_norm is blocks.layer_norm
    from workshop.mine import attention_scores, softmax

    assert softmax is mine.softmax and attention_scores is attention.attention_scores


def test_a_changed_file_is_read_anew(path):
    path.write_text(DOUBLE, "utf-8")
    assert mine.softmax(1) == "mine"
    path.write_text(DOUBLE.replace("mine", "newer"), "utf-8")
    assert mine.softmax(1) == "newer"
    path.unlink()
    assert mine.softmax is attention.softmax


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ndef softmax(:\n", "my_transformer.py cannot be read, line 2: "),
        ("x = 1\n\n1 / 0\n", "my_transformer.py, line 3, stops: ZeroDivisionError"),
        ("def f():\n    return y\n\nf()\n", "my_transformer.py, line 2, stops: NameError"),
        ("raise SystemExit", "my_transformer.py, line 1, stops: SystemExit"),
    ],
)
def test_a_broken_file_is_a_warning_that_names_the_line(path, text, reason):
    path.write_text(text, "utf-8")
    with pytest.warns(UserWarning, match="course's own functions are used") as said:
        assert mine.softmax is attention.softmax
    assert str(said[0].message).startswith(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mine.softmax is attention.softmax  # said once
    path.write_text(DOUBLE, "utf-8")
    assert mine.softmax(1) == "mine"


def test_unknown_name_is_told_in_words(path):
    with pytest.raises(
        AttributeError, match=r"neither my_transformer.py nor the course .*'sofmax'"
    ):
        _ = mine.sofmax
    assert not hasattr(mine, "_repr_html_")
    assert "softmax" in dir(mine) and "parts" in dir(mine)


def test_parts_shows_which_are_own(path, monkeypatch):
    shown = []
    monkeypatch.setattr(mine.page, "display", shown.append)
    mine.parts()
    told = r"0 of (\d+) parts are yours\.\n01 · One-hot vectors: yours –;"
    total = int(re.match(told, shown[0].text)[1])
    assert total >= 30
    path.write_text(f"from helpers.attention import attention\n{DOUBLE}", "utf-8")
    mine.parts()
    assert shown[1].text.startswith(f"1 of {total} parts are yours.")
    assert "05 · Softmax: yours softmax; the course's attention_weights, attention" in shown[1].text


def test_a_file_of_an_earlier_version_is_read_and_mended(path):
    old = "from workshop.checks.observe import on_tensors\n\n\n"
    old += "@on_tensors\ndef softmax(x, axis=-1):\n    return x.softmax(axis)\n"
    path.write_text(old, "utf-8")
    scores = np.array([[1.0, 2.0], [3.0, 3.0]])
    np.testing.assert_allclose(mine.softmax(scores), attention.softmax(scores))
    assert keep.render(keep.read(path)) == old.replace("checks.observe", "checks.sandbox")
