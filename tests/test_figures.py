"""Printed tables and pictures: what a reader sees and what a screen reader says."""

import base64

import matplotlib
import numpy as np
import pytest
import torch

from helpers import figures


def printed(capsys, *args, **kwargs):
    figures.show(*args, **kwargs)
    return capsys.readouterr().out


def test_show_labels_rounds_and_has_no_negative_zero(capsys):
    out = printed(capsys, np.array([[-0.00001, 1.5], [22.25, -3.0]]), ["a", "row"], ["x", "long"])
    assert out.splitlines() == [
        "           x     long",
        "a     0.0000   1.5000",
        "row  22.2500  -3.0000",
    ]


def test_show_takes_tensors_numbers_and_batches(capsys):
    assert printed(capsys, torch.tensor([1.0, 2.0], requires_grad=True)) == "  1.0000  2.0000\n"
    assert printed(capsys, 3.14159, title="pi", decimals=2) == "pi\n  3.14\n\n"
    assert printed(capsys, np.eye(2, dtype=int)[None]).splitlines()[0] == "[0]"
    assert printed(capsys, np.array([True, False])) == "   True  False\n"


def test_pictures_carry_their_words(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append((data, options))
    )
    words = ["a", "b", "<c>"]
    picture = figures.heatmap(np.arange(9.0).reshape(3, 3), words, words, "scores")
    picture._ipython_display_()
    (image, options), (text, _) = shown
    assert image["image/png"].startswith(b"\x89PNG")
    assert image["text/plain"] == options["metadata"]["image/png"]["alt"] == repr(picture)
    assert "scores: largest <c> → <c> 8.00" in picture.alt
    assert "largest &lt;c&gt; → &lt;c&gt; 8.00" in text["text/html"]
    assert "<c>" not in text["text/html"]


def test_tokens_are_no_formulas_and_need_no_glyph(recwarn, monkeypatch):
    words = ["$x$", r"$\frac$", r"\$5", "a\tb", "👩\u200d👧"]
    for title in words:
        figures.heatmap(np.eye(5), words, words, title)
        figures.bars({title: range(5)}, words)
        figures.curves([1, 2], {title: [1, 2], "y": [2, 1]}, xlabel="x", ylabel="y", alt="two")
    assert not [str(warning.message) for warning in recwarn]
    drawn = figures.bars({"p": [1]}, ["$x$"]).png
    monkeypatch.setattr(figures, "plain", list)
    assert drawn != figures.bars({"p": [1]}, ["$x$"]).png
    monkeypatch.setitem(matplotlib.rcParams, "text.parse_math", False)
    assert drawn == figures.bars({"p": [1]}, ["$x$"]).png


def test_a_last_bit_does_not_change_what_is_printed():
    assert figures.number(1.495, 2) == figures.number(1.4949999999999999, 2)
    assert figures.number(0.1 + 0.2 - 0.3) == "0.0000"
    assert figures.number(-1e-12) == "0.0000"
    assert figures.number(np.float32("nan")) == "nan"


def test_pictures_are_the_same_bytes_each_time():
    first, second = (figures.bars({"p": [0.5, 0.25]}, ["a", "b"]).png for _ in range(2))
    assert base64.b64encode(first) == base64.b64encode(second)


@pytest.mark.slow
def test_every_stage_has_its_map():
    maps = {stage: figures.stage_map(stage).alt for stage in figures.STAGES}
    assert len(set(maps.values())) == len(maps)
    assert "Lit is stage 05: softmax" in maps["softmax"]
    assert "Lit is stage 13: all of the encoder, all of the decoder." in maps["training"]
