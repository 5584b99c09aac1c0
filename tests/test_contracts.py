"""What helpers/contracts.md names exists, where it says and with the signature that it says."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "helpers" / "contracts.md"
ROW = re.compile(r"^\| [\d, ]+ \| `([\w.]+)` \| `(\w+)\((.*)\)` \| .+ \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text("utf-8"))


def told(function):
    """A signature as the page writes it; of options, which stand behind a star, the names alone."""
    parts, options = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not options:
            options = parts.append("*") is None
        bare = parameter.replace(annotation=inspect.Parameter.empty)
        parts.append(parameter.name if options and "*" not in str(bare) else str(bare))
    return ", ".join(parts)


def test_every_row_of_the_table_is_read():
    lines = PAGE.read_text("utf-8").splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - 1  # without its head


@pytest.mark.parametrize(("room", "name", "signature"), ROWS, ids=lambda part: part)
def test_a_contract_is_about_what_is_there(room, name, signature):
    function = getattr(importlib.import_module(room), name)
    assert told(function) == signature
    assert inspect.getdoc(function)
