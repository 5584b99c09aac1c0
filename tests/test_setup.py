"""The course on machines unlike ours: folders, homes, locales, old packages, threads."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UV = [sys.executable, "-m", "uv"]
OURS = ("PYTHONPATH", "PYTHONUTF8", "VIRTUAL_ENV", "JUPYTER_", "LC_", "LANG", "OMP_")


def environment(**more: str) -> dict[str, str]:
    """This process's, without what the Makefile and these tests set."""
    return {name: os.environ[name] for name in os.environ if not name.startswith(OURS)} | more


def call(*command: object, **options) -> str:
    """Run a command; what it printed. A failure shows what it wrote to stderr."""
    options = {"env": environment(), "encoding": "utf-8"} | options
    done = subprocess.run(list(map(str, command)), capture_output=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def empty_environment(folder: Path) -> Path:
    """The Python of a new environment with nothing in it."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make(recipe: str, **variables: str) -> str:
    """What a recipe prints that stands behind those of the Makefile."""
    makefile = f"include Makefile\nrecipe: ; @{recipe}\n"
    command = ["make", "--no-print-directory", "-f", "-", "recipe"]
    return call(*command, input=makefile, cwd=ROOT, env=environment(**variables)).strip()


# ---------------------------------------------------------------- folders and locales


@pytest.mark.slow
def test_an_environment_that_cannot_import_the_course_is_not_installed(
    ci, tmp_path, monkeypatch, capsys
):
    """The one sentence names the reason; `make` then keeps no .venv/installed."""
    install = ci("install")
    assert install.starts()
    monkeypatch.setattr(install.sys, "executable", str(empty_environment(tmp_path)))
    assert not install.starts()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Python cannot import the course: ModuleNotFoundError: No module named 'helpers'" in said
    monkeypatch.setattr(install.subprocess, "check_call", lambda *_: 0)
    monkeypatch.setattr(install, "uv_install", lambda *_, **__: True)
    assert install.main() == 1


@pytest.mark.long
@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE.ISO-8859-1", "C.UTF-8"])
def test_the_course_starts_from_a_folder_of_any_letters(tmp_path, locale):
    """A .pth with the folder's name would stop every Python 3.11 and 3.12 outside of UTF-8."""
    folder = tmp_path / "Zoë 学"
    shutil.copytree(ROOT / "helpers", folder / "helpers")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    python = empty_environment(folder / ".venv")
    call(*UV, "pip", "install", "--python", python, "--no-deps", "editables", "-e", folder)
    code = "import helpers; print(ascii(helpers.__file__))"
    said = call(python, "-c", code, cwd=tmp_path, env=environment(LC_ALL=locale))
    assert ast.literal_eval(said) == str(folder / "helpers" / "__init__.py")


# ---------------------------------------------------------------- a home that cannot be written

NO_HOME = os.devnull + "/home"
on_unix = pytest.mark.skipif(os.name == "nt", reason="Windows has no HOME")


@on_unix
def test_without_a_home_all_files_stay_in_the_environment(tmp_path):
    """Those of Jupyter, IPython, matplotlib and uv: they all look into HOME."""
    ours = str(ROOT / ".venv" / "home")
    for home, used in ((NO_HOME, ours), ("", ours), (str(tmp_path), str(tmp_path))):
        assert make('echo "$$HOME"', HOME=home) == used


@on_unix
@pytest.mark.long
def test_without_a_home_a_notebook_prints_what_it_should():
    """Nothing on stderr either, which matplotlib would write."""
    recipe = "$(BIN)/python -m pytest -q --nbval --nbval-current-env notebooks/02_*.ipynb"
    assert " passed" in make(recipe, HOME=NO_HOME)


# ---------------------------------------------------------------- an old Python

OLD = """\
#!/bin/sh
test "$1" = -c && exec {python} -c "import sys; sys.version_info = (3, 9); $2"
echo "too late: $*"
"""


@on_unix
def test_an_old_python_is_named_before_anything_is_installed(tmp_path):
    old = tmp_path / "old"
    old.write_text(OLD.format(python=sys.executable), encoding="utf-8")
    old.chmod(0o700)
    ready = tmp_path / "installed"
    command = ["make", "--no-print-directory", f"READY={ready}", f"PYTHON={old}", str(ready)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and not done.stdout and not ready.exists()
    assert done.stderr.startswith(
        "The course needs Python 3.11 or newer: name one by make lab PYTHON="
    )


# ---------------------------------------------------------------- the oldest packages

DISPLAY = """\
import numpy as np
from helpers import widgets

data, _ = widgets.AttentionHeatmap(np.eye(2), ["a", "b"])._repr_mimebundle_()
print(*sorted(data))
"""


@pytest.mark.long
def test_the_oldest_widgets_that_are_allowed_show_a_picture_and_live(tmp_path):
    """The lower bounds of pyproject.toml for anywidget and ipywidgets, taken at their word."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = [line.replace(">=", "==") for line in project["dependencies"] if "widget" in line]
    assert len(oldest) == 2
    python = empty_environment(tmp_path / "venv")
    rest = ["matplotlib", "numpy", "pillow"]
    call(*UV, "pip", "install", "--python", python, *oldest, *rest)
    said = call(python, "-c", DISPLAY, env=environment(PYTHONPATH=str(ROOT)))
    assert said.split() == ["application/vnd.jupyter.widget-view+json", "image/png", "text/plain"]
