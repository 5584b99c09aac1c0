"""What all tests share: the project's root, its tools, and repeatable Hypothesis runs."""

import importlib.util
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and torch are loaded
os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # else np.eye(30_000) writes to 7 GB, for 20 seconds
os.environ["MY_TRANSFORMER"] = "off"  # nobody's answers are read or kept, in notebooks' kernels too
# To check addresses, jsonschema compiles a grammar for two seconds wherever nbformat is loaded.
sys.modules.setdefault("rfc3987_syntax", None)

settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items) -> None:
    """Begin with the files that take longest, and of the notebooks with the one of most cells."""
    marks = defaultdict(set)
    for item in items:
        marks[item.path] |= {mark.name for mark in item.iter_markers()}
    cells = Counter(item.path for item in items if item.path.suffix == ".ipynb")
    items.sort(
        key=lambda item: (
            "long" not in marks[item.path],
            "slow" not in marks[item.path],
            -cells[item.path],
        )
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the project."""
    return ROOT


def load_script(name: str):
    """Import `tools/NAME.py`, which is no package."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def ci():
    """The tools by name: `ci("links").repository()`."""
    return load_script
