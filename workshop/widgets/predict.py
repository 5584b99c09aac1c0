"""A question, and the answer to choose or to type, which is computed."""

import base64
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from workshop.arguments import ROOM, as_array, as_floats, as_list, as_number, as_text, said, scalar
from workshop.figures import Picture, canvas, number
from workshop.widgets.base import Widget, program, visible
from workshop.widgets.traits import Entries, Labels, Text, Whole

LETTERS = "ABCD"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")  # predict.js has the same


class Predict(Widget):
    """A question, its choices, if any, and what the reader checked; made by `predict`."""

    _esm = program("widgets/predict.js", "Predict")
    question = Text().tag(sync=True)
    choices = Labels().tag(sync=True)
    right = Whole(max=len(LETTERS) - 1).tag(sync=True)
    reason = Text().tag(sync=True)
    answer = Entries().tag(sync=True)  # the numbers to type, where there are no choices
    asks = Text().tag(sync=True)
    drawn = Entries().tag(sync=True)  # pictures, shown after an answer
    chosen = Text().tag(sync=True)

    @property
    def verdict(self) -> str:
        """What the reader is told of `chosen`; nothing before an answer was checked."""
        if not self.chosen:
            return ""
        wrong = "" if self.chosen in self.choices[self.right : self.right + 1] else "Try again."
        wrong = wrong if self.choices else fault(self.chosen, self.answer)
        return f"Not this one. {wrong}" if wrong else "Right."

    def picture(self) -> Picture:
        """Draw the question and its choices, and not the answer."""
        lines = textwrap.wrap(self.question, 78)
        for letter, choice in zip(LETTERS, self.choices, strict=False):
            lines += textwrap.wrap(f"{letter})  {choice}", 76, subsequent_indent=" " * 6)
        lines += [self.asks] * (not self.choices)
        figure, ax = canvas(7.2, 0.24 * len(lines) + 0.25)
        ax.axis("off")
        text = {"va": "top", "linespacing": 1.5, "parse_math": False}
        ax.text(0, 1, "\n".join(lines), transform=ax.transAxes, **text)
        return Picture(figure, self.words, dpi=96)  # its words are text too


def predict(question: str, choices: Sequence[Any] | None = None, *, answer: Any, reason: str = "",
            drawn: Any = ()) -> Predict:  # fmt: skip
    """Ask before the reveal: three or four choices, the right one found by a computed `answer`.

    Choices are short strings, numbers or bools. `answer` must equal exactly one of them: strings
    and bools as they are, numbers to within half a unit of the fourth decimal. Without choices,
    `answer` is a number or a row of up to twelve, which the reader types: each is right to within
    half a unit of the second decimal. `reason` and `drawn`, a picture or a list of them, are shown
    with the right answer, and after a wrong one to those who ask. `chosen` is what the reader
    checked last. All is plain text: neither `$…$` nor Markdown is rendered.

    Raises ValueError when `answer` equals none of the choices or several, and when a text is empty,
    TypeError for what is no picture.
    """
    if choices is None:
        right, plain, answer = 0, [], _numbers(answer)
    else:
        right, plain = _found(choices, answer)
        answer = []
    question, *texts = _texts(question, plain)
    asks = f"Type {f'{len(answer)} numbers, spaces between:' if len(answer) > 1 else 'a number:'}"
    traits = {"question": question, "choices": texts, "right": right, "reason": reason}
    traits |= {"answer": answer, "asks": asks if answer else "", "drawn": _pictures(drawn)}
    letters = [f"{letter}) {text}" for letter, text in zip(LETTERS, texts, strict=False)]
    told = f"Choices: {' '.join(letters)}" if texts else asks
    return Predict(f"Question: {question} {told}", {}, **traits)


def _found(choices: Sequence[Any], answer: Any) -> tuple[int, list[str | bool | float]]:
    """The place of the right one among the choices, and all of them."""
    choices = as_list("choices", choices)
    if not 3 <= len(choices) <= 4:
        raise ValueError(f"choices is {said(choices)}, but must be a list of three or four")
    plain = [_plain(f"choices[{i}]", choice) for i, choice in enumerate(choices)]
    answer = _plain("answer", answer)
    fitting = [i for i, choice in enumerate(plain) if _same(choice, answer)]
    if len(fitting) != 1:
        raise ValueError(
            f"answer is {answer!r}, but must equal exactly one of the choices {plain}; "
            f"it equals {len(fitting) or 'none'} of them"
        )
    return fitting[0], plain


def _numbers(answer: Any) -> list[float]:
    """A number, or a row of them, to be typed."""
    array = as_floats("answer", as_array("answer", answer, "iuf"))
    if array.ndim > 1 or array.size > ROOM:
        need = f"without choices it must be a number or a row of at most {ROOM}"
        raise ValueError(f"answer has shape {array.shape}, but {need}")
    return np.atleast_1d(array).tolist()


def _pictures(drawn: Any) -> list[dict[str, Any]]:
    """Pictures as the browser shows them."""
    made = [drawn] if isinstance(drawn, Picture) else as_list("drawn", drawn)
    if strange := [picture for picture in made if not isinstance(picture, Picture)]:
        raise TypeError(f"drawn has {said(strange[0])}, but must be a picture or a list of them")
    return [{"png": base64.b64encode(picture.png).decode(), "alt": picture.alt,
             "width": picture.width} for picture in made]  # fmt: skip


def fault(text: str, answer: Sequence[float]) -> str:
    """What is wrong with typed numbers, in whole sentences; nothing where each is right."""
    words = re.split(r"[\s;]+|,(?!\S)", text.replace("−", "-"))
    typed = [word.replace(",", ".", 1) for word in words if word]
    for word in typed:
        if not NUMBER.fullmatch(word):
            return f"“{visible(word)}” is no number; write one as 0.42."
    n, asked = len(typed), len(answer)
    if n != asked:
        return f"You typed {n} number{'s' * (n != 1)}; the question asks for {asked}."
    more = [float(word) - right for word, right in zip(typed, answer, strict=True)]
    return " ".join(
        f"{f'Number {i}' if asked > 1 else 'It'} is too {'large' if far > 0 else 'small'}."
        for i, far in enumerate(more, 1) if abs(far) >= 0.005 + 1e-9)  # fmt: skip


def _plain(name: str, value: Any) -> str | bool | int | float:
    """A NumPy or PyTorch scalar as Python's; TypeError for what is no scalar."""
    value = scalar(value)
    if isinstance(value, str):
        return as_text(name, value)
    if not isinstance(value, bool | int | float):
        raise TypeError(f"{name} is {said(value)}, but must be a string, a number or a bool")
    if not isinstance(value, bool):
        as_number(name, value)  # one that is finite
    return value


def _same(choice: str | bool | float, answer: str | bool | float) -> bool:
    """Whether both are strings, bools or numbers, and equal; numbers within 0.00005."""
    for kind in (str, bool):
        if isinstance(choice, kind) or isinstance(answer, kind):
            return isinstance(choice, kind) and isinstance(answer, kind) and choice == answer
    return bool(np.isclose(choice, answer, rtol=0, atol=0.5e-4))


def _texts(question: str, choices: Sequence[str | bool | float]) -> list[str]:
    """The question and the choices as they are shown, each in one line."""
    question = as_text("question", question)
    question, *texts = [visible(number(x), 1000) for x in (" ".join(question.split()), *choices)]
    if not question or not all(text.strip() for text in texts) or len(set(texts)) < len(texts):
        raise ValueError(
            f"question is {question!r} and choices are {texts}, but none may be empty, "
            "and no two choices may look alike"
        )
    return [question, *texts]
