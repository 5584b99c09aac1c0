"""`mine`: the learner's functions where they are, the course's elsewhere."""

from pathlib import Path

import pytest
from cells import CHECK, SOFTMAX, Notebook

from helpers import attention
from workshop import mine
from workshop.checks import keep
from workshop.exercises import exercises

OLD, DOUBLE = "../my_transformer", "def softmax(x, axis=-1):\n    return 'mine'\n"


@pytest.fixture(autouse=True)
def write(tmp_path, monkeypatch):
    """Writes a file of answers in a folder of its own."""
    monkeypatch.delenv("MY_TRANSFORMER")
    monkeypatch.chdir(tmp_path)
    Path("my_transformer").mkdir()
    return lambda text, name="softmax": Path(f"my_transformer/{name}.py").write_text(text, "utf-8")


def test_without_a_file_everything_is_of_the_course():
    for name, known in exercises().items():
        assert known.backends == ("torch",) or getattr(mine, name) is known.reference
    assert mine.make_stack.__module__ == "helpers.layers" and "parts" in dir(mine)
    with pytest.raises(AttributeError, match=r"neither my_transformer nor the course .*'sofmax'"):
        _ = mine.sofmax


def test_own_functions_come_first_and_a_changed_file_is_read_anew(write, monkeypatch):
    for name, said in ((OLD, "mine"), ("softmax", "newer"), ("softmax", "newest")):
        write(DOUBLE.replace("mine", said), name)
        assert mine.softmax(1) == said and keep.kept_names() == ({"softmax"}, "")
    shown = []
    monkeypatch.setattr(mine.page, "display", shown.append)
    mine.parts()
    assert "1 of" in shown[0].text and "Softmax: yours softmax; the" in shown[0].text
    Path("my_transformer").rename("aside")
    Path("my_transformer").write_text("no folder")
    assert mine.softmax(1) == "mine" and "my_transformer cannot be read: " in keep.kept_names()[1]


def test_a_broken_file_is_named_and_the_others_count(write):
    write("def attention(Q, K, V): return 1", "attention")
    broken = [("1\ndef f(:", "2: Syn"), ("\n1 / 0", "2: Zero"), ("raise SystemExit", "1: Syst")]
    for text, reason in [*broken, ("\0", "null")]:
        write(text)
        with pytest.warns(UserWarning, match="softmax.py cannot be read") as warned:
            assert mine.softmax is mine.softmax is attention.softmax  # and that is said once
        (names, told), [said] = keep.kept_names(), warned
        assert names == {"attention"} and reason in told and told[:30] in str(said.message)


def test_a_file_of_an_earlier_version_is_read(write):
    lines = """helpers.checks.sandbox import on_tensors\nhelpers.checks.observe import on_tensors
    helpers import mine\nworkshop.exercises.n05_weights import log_softmax
    helpers.checks.exercises.weights import attention\nworkshop.exercises.n03_scores import gone"""
    for line in lines.splitlines():
        write(f"from {line.strip()}\n{DOUBLE}", OLD)
        assert mine.softmax(1) == "mine" and keep.kept_names() == ({"softmax"}, "")


def test_answers_that_use_each_other_find_the_newest(write):
    write(f"from workshop.mine import attention, SelfAttention\n{DOUBLE}")
    write("from workshop.mine import softmax\nclass SelfAttention: of = softmax", "SelfAttention")
    write("from workshop.mine import softmax\ndef attention(Q): return softmax(Q)", "attention")
    assert mine.attention(1) == "mine" == mine.SelfAttention.of(1)
    write(DOUBLE.replace("mine", "newer"))
    assert mine.attention(1) == "newer" == mine.SelfAttention.of(1)


def test_an_answer_is_judged_on_the_functions_that_are_yours(monkeypatch):
    book = Notebook(monkeypatch).run(SOFTMAX).run(CHECK.format("softmax"))
    book.run("right = softmax\ndef softmax(x, d): return right(x / d**0.5)\ndef attention(Q, K, V):"
             "\n    return softmax(Q @ np.swapaxes(K, -1, -2), K.shape[-1]) @ V")  # fmt: skip
    said = book.run(CHECK.format("attention")).last.splitlines()[-1]
    assert "where it runs on your softmax, it is not right: " in said
