"""What training shows: a bar and a curve while it runs, and the dots of the table of ablations."""

import numpy as np
import pytest
import torch

from helpers.training import Recipe, corpus, examples, fit, translator, vocabularies
from workshop import live_loss, training_charts

pytestmark = pytest.mark.slow


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("notebook", [True, False])
@pytest.mark.parametrize(
    ("at_seventh", "steps", "said"),
    [
        (lambda: None, 12, "12 of 12 steps."),
        (interrupt, 6, "Interrupted after 6 of 12 steps; what was learned is kept."),
    ],
)
def test_the_bar_goes_and_one_line_and_in_notebooks_the_whole_curve_stay(
    notebook, at_seventh, steps, said, monkeypatch, capsys
):
    drawn, shown, draw = [], [], training_charts.loss_curve
    for name, instead in {
        "workshop.training_charts._in_notebook": lambda: notebook,
        "workshop.training_charts.SECONDS": 0,
        "workshop.training_charts.loss_curve": lambda *a: drawn.append(len(a[0])) or draw(*a),
        "IPython.core.display_functions.display": lambda _, **options: shown.append(options),
    }.items():
        monkeypatch.setattr(name, instead)
    pairs = corpus(40, np.random.default_rng(0))
    vocabs, generator = vocabularies(pairs), torch.Generator().manual_seed(0)
    model, count = translator(*vocabs), iter(range(1, 13))
    model.output.register_forward_hook(lambda *_: at_seventh() if next(count) == 7 else None)
    recipe = Recipe(steps=12, batch_size=16, warm_up=3)
    assert len(fit(model, examples(pairs, *vocabs), generator, recipe, live_loss)) == steps
    out, err = capsys.readouterr()
    assert err == "" and "steps/s" in out and out.endswith(f"\r{said}\n")
    assert drawn == ([*range(steps + 1), steps] if notebook else [])
    assert [options.get("update", False) for options in shown] == [
        bool(i) for i in range(len(drawn))
    ]
    assert len({options["display_id"] for options in shown}) == notebook
    assert all(options["metadata"]["image/png"]["alt"] for options in shown)
