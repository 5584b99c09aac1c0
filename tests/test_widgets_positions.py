"""PositionExplorer in Python: its table, words and picture, and what it refuses."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from helpers.blocks import sinusoidal_positions
from helpers.widgets import PositionExplorer


def test_words_say_the_sizes_and_the_dot_product():
    assert repr(PositionExplorer()) == (
        "PositionExplorer: 50 positions × 6 features; dot product of positions 2 and 5: 1.0003, "
        "as of any two 3 apart"
    )


def test_words_follow_what_is_selected():
    shown = PositionExplorer()
    shown.selected = [7, 7]
    assert "positions 7 and 7: 3.0000, as of any two 0 apart" in repr(shown)
    shown.d_model = 12
    assert "12 features" in repr(shown) and "6.0000" in repr(shown)


def test_table_and_dot_are_those_of_the_helpers():
    shown = PositionExplorer(8, 20, selected=(4, 9))
    table = sinusoidal_positions(20, 8)
    assert np.array_equal(shown.table, table)
    assert shown.dot == pytest.approx(table[4] @ table[9])
    shown.selected = [14, 19]
    assert shown.dot == pytest.approx(table[0] @ table[5])


def test_the_bundle_has_a_view_a_picture_and_its_words():
    shown = PositionExplorer(np.int64(32), 60)
    data, metadata = shown._repr_mimebundle_()
    view = data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == shown.model_id
    assert data["text/plain"] == metadata["image/png"]["alt"] == repr(shown)
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert picture.width >= metadata["image/png"]["width"] > 500


@pytest.mark.parametrize(("d_model", "length"), [(2, 2), (4, 3), (128, 512)])
def test_smallest_and_largest(d_model, length):
    shown = PositionExplorer(d_model, length)
    assert 0 <= min(shown.selected) <= max(shown.selected) < length
    assert shown.picture().png.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"d_model": 7}, ValueError, "d_model is 7, but must be even"),
        ({"d_model": 0}, ValueError, "d_model is 0, but must be a whole number from 2 to 128"),
        ({"d_model": 130}, ValueError, "from 2 to 128"),
        ({"d_model": 6.5}, ValueError, "d_model is 6.5, but must be a whole number"),
        ({"length": 1}, ValueError, "length is 1, but must be"),
        ({"length": 513}, ValueError, "from 2 to 512"),
        ({"length": True}, TypeError, "length is True"),
        ({"selected": [1]}, ValueError, "selected has 1 entries, but must be a pair"),
        (
            {"selected": [0, 50]},
            ValueError,
            r"selected is \[0, 50\], but must be two pos",
        ),
        ({"selected": [-1, 3]}, ValueError, r"selected is \[-1, 3\]"),
    ],
)
def test_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        PositionExplorer(**arguments)


def test_refuses_later_too():
    shown = PositionExplorer()
    for name, value in (("d_model", 9), ("selected", [0, 99])):
        with pytest.raises(ValueError, match=name):
            setattr(shown, name, value)
    assert shown.d_model == 6 and shown.selected == [2, 5]
