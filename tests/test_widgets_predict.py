"""predict() in Python: which answers fit, words and picture without the answer."""

import numpy as np
import pytest
import torch

from workshop.figures import bars
from workshop.widgets.predict import predict


@pytest.mark.parametrize(
    ("choices", "answer", "right"),
    [
        ([1 / 3, 1 / 2, 2 / 3], 0.66664, 2),
        ([0.3333, 0.5, 0.6667], np.float32(2) / 3, 2),
        ([3, 9, 27], torch.tensor([27]), 2),
        (["rows", "columns", "both"], np.str_("both"), 2),
        ([True, False, "it depends"], np.bool_(False), 1),
        (["2", 1, True, 2.0], 1.0, 1),
    ],
)
def test_a_computed_answer_finds_its_choice(choices, answer, right):
    shown = predict("Which?", choices, answer=answer)
    assert (shown.right, shown.chosen, shown.verdict) == (right, "", "")
    verdicts = []
    for choice in shown.choices:
        shown.chosen = choice
        verdicts.append(shown.verdict)
    assert verdicts.pop(right) == "Right." and set(verdicts) == {"Not this one. Try again."}


@pytest.mark.parametrize(
    ("choices", "answer", "message"),
    [
        ([1 / 3, 1 / 2, 2 / 3], 0.6666, "answer is 0.6666.*exactly one.*it equals none of them"),
        ([1, 2, 3], "1", "answer is '1'.*equals none"),
        ([1, 2, 3], True, "answer is True.*equals none"),
        ([0.50001, 0.50004, 1], 0.5, "answer is 0.5.*equals 2 of"),
        ([1, 2, 3, 4, 5], 1, "three or four"),
        ([1, 2.0, "2.0000"], 1, "look alike"),
        ([1, 2, " "], 1, "none may be empty"),
        ([1, 2, np.nan], 1, r"choices\[2\] is nan, but must be a fin"),
    ],
)
def test_what_asks_nothing_is_refused_with_a_reason(choices, answer, message):
    with pytest.raises(ValueError, match=message):
        predict("Which?", choices, answer=answer)


TWO, ONE = [0.42407, -1.5], [0.42407]  # what is asked for
TYPED = [
    ("0.42 -1.5", TWO, ""), ("  .424,  −1.50 ", TWO, ""), ("0,42; -1,503", TWO, ""),
    ("0.43 -1.5", TWO, "Number 1 is too large."), ("0.42 -1.494", TWO, "Number 2 is too large."),
    ("0.4 -2", TWO, "Number 1 is too small. Number 2 is too small."),
    ("0.42", TWO, "You typed 1 number; the question asks for 2."),
    (",", TWO, "You typed 0 numbers; the question asks for 2."),
    ("0.42 <b>x</b>", TWO, "“<b>x</b>” is no number; write one as 0.42."),
    ("0.4407", ONE, "It is too large."), ("-.42", ONE, "It is too small."), ("+0.42", ONE, ""),
    ("3.", ONE, "It is too large."), ("1e0", ONE, "“1e0” is no number; write one as 0.42."),
    ("0.1 0.2", ONE, "You typed 2 numbers; the question asks for 1."),
]  # fmt: skip


@pytest.mark.parametrize("text, answer, wrong", TYPED)
def test_a_typed_answer_is_right_to_two_decimals_or_told_what_is_off(text, answer, wrong):
    shown = predict("Which?", answer=np.array(answer)[0 if len(answer) == 1 else slice(None)])
    assert shown.verdict == ""
    shown.chosen = text
    assert shown.verdict == (f"Not this one. {wrong}" if wrong else "Right.")


def test_what_cannot_be_typed_or_is_no_picture_is_named():
    for answer, error, message in (([[1.0]], ValueError, r"shape \(1, 1\), but without choices"),
                                   ("a", TypeError, "answer must be an array of numbers"),
                                   (np.nan, ValueError, "answer .* has nan")):  # fmt: skip
        with pytest.raises(error, match=message):
            predict("Which?", answer=answer)
    with pytest.raises(TypeError, match="drawn has 'x', but must be a picture or a list of them"):
        predict("Which?", answer=1, drawn=["x"])


def test_words_and_picture_do_not_tell_the_answer():
    made = [predict("How much\n   is it?", [1, 0.5, "$y$"], answer=a, reason="SECRET")
            for a in (1, 0.5, "$y$")]  # fmt: skip
    assert {repr(shown) for shown in made} == {
        "Question: How much is it? Choices: A) 1 B) 0.5000 C) $y$"
    }
    assert len({shown.picture().png for shown in made}) == 1
    drawn = [bars({"t": [n]}, ["x"], alt="SECRET") for n in (1, 2)]
    asked = [predict("How much?", answer=n, drawn=picture) for n, picture in enumerate(drawn)]
    assert {repr(shown) for shown in asked} == {"Question: How much? Type a number:"}
    assert len({shown.picture().png for shown in asked}) == 1
