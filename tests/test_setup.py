"""The course on machines unlike ours: folders, homes, locales, old packages, and Colab.

There a notebook stands alone in an empty folder, in an environment with its own NumPy and torch.
The setup cell must install the helpers from the repository and leave everything else as it was,
ipywidgets too, of which Colab ships version 7. The repository is a commit of the present tree;
git is told to read it instead of the address.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest
from browser.gallery import GALLERY, SETUP, TOKENS

ROOT = Path(__file__).resolve().parents[1]
UV = [sys.executable, "-m", "uv"]
OURS = ("GIT_", "PYTHONPATH", "PYTHONUTF8", "VIRTUAL_ENV", "JUPYTER_", "LC_", "LANG", "OMP_")


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


DISPLAY = """\
import numpy as np
from workshop import widgets

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


SHIPPED = ["torch", "matplotlib", "anywidget<0.10", "ipywidgets<8", "ipykernel", "nbclient", "pip",
           "tqdm"]  # fmt: skip
LESSONS = ["00_predict_the_next_word", "08_multi_head"]
REPORT = """\
import importlib.metadata, json, pathlib
import helpers, workshop
installed = importlib.metadata.distribution("attention-step-by-step")
widgets = pathlib.Path(workshop.__file__).resolve().parent / "widgets"
print(json.dumps({
    "helpers": str(pathlib.Path(helpers.__file__).resolve()),
    "parts": sorted(path.name for path in widgets.iterdir() if path.suffix in (".js", ".css")),
    "source": json.loads(installed.read_text("direct_url.json")),
}))
"""


STAND_IN = """\
import pathlib, sysconfig
package = pathlib.Path(sysconfig.get_path("purelib")) / "google" / "colab"
package.mkdir(parents=True)
(package / "__init__.py").touch()
output = "class _widgets: _installed_url = None\\nenable_custom_widget_manager = dict\\n"
(package / "output.py").write_text(output)
"""


def git(folder: Path, *arguments) -> str:
    """Run git in a folder, as nobody in particular."""
    nobody = {"user.name": "nobody", "user.email": "nobody@example.org"}
    settings = nobody | {"core.autocrlf": "false", "safe.directory": "*"}
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return call("git", *options, *arguments, cwd=folder)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """A git repository of the present tree, changes that are not committed included."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("repository")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowFilter", "true")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "the present tree")
    return folder


@pytest.fixture(scope="module")
def python(ci, tmp_path_factory) -> Path:
    """The Python of a fresh environment: this torch, and a NumPy one release older."""
    folder = tmp_path_factory.mktemp("colab") / "venv"
    uv = [sys.executable, "-m", "uv"]
    call(*uv, "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    assert ci("install").install_torch(f"torch=={version('torch')}", python)
    numpy = f"numpy<{version('numpy')}"
    call(*uv, "pip", "install", "--quiet", "--python", python, numpy, *SHIPPED)
    return python


@pytest.fixture(scope="module")
def colab(python, repository, ci, tmp_path_factory) -> dict[str, str]:
    """Colab's kernel, which loads google.colab before the first cell; git reads our repository."""
    folder = tmp_path_factory.mktemp("home")
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-colab.py").write_text("import google.colab.output\n")
    call(python, "-c", STAND_IN)
    return environment(
        IPYTHONDIR=str(folder / "ipython"),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{repository.as_uri()}.insteadOf",
        GIT_CONFIG_VALUE_0=f"https://github.com/{ci('links').repository()}",
    )


def versions(python: Path) -> dict[str, str]:
    """Every distribution of the environment, besides the course itself."""
    lines = call(python, "-m", "pip", "list", "--format", "json")
    listed = {item["name"]: item["version"] for item in json.loads(lines)}
    listed.pop("attention-step-by-step", None)
    return listed


def execute_alone(name: str, folder: Path, python: Path, environment) -> list:
    """Run a lesson alone in a folder, then every widget and the report; the cells."""
    path = folder / f"{name}.ipynb"
    notebook = nbformat.read(ROOT / "notebooks" / path.name, as_version=4)
    widgets = "\n".join([TOKENS, SETUP, f"shown = [{', '.join(GALLERY.values())}]"])
    notebook.cells += map(nbformat.v4.new_code_cell, [widgets, REPORT])
    nbformat.write(notebook, path)
    execute = [python.with_name("jupyter-execute"), "--inplace", path]
    call(*execute, cwd=folder, env=environment)
    return nbformat.read(path, as_version=4).cells


@pytest.mark.long
@pytest.mark.parametrize("name", LESSONS)
def test_notebook_alone_installs_the_helpers_and_nothing_else(
    name, tmp_path, python, colab, repository
):
    before = versions(python)
    cells = execute_alone(name, tmp_path, python, colab)
    report = json.loads(cells[-1].outputs[-1].text)
    assert Path(report["helpers"]).is_relative_to(python.parents[1].resolve())
    assert report["source"]["url"] == colab["GIT_CONFIG_VALUE_0"]
    commit = git(repository, "rev-parse", "HEAD").strip()
    assert report["source"]["vcs_info"]["commit_id"] == commit
    assert versions(python) == before
    assert before["numpy"] != version("numpy") and before["ipywidgets"].startswith("7.")
    parts = [p.name for p in (ROOT / "workshop/widgets").iterdir() if p.suffix in (".js", ".css")]
    assert report["parts"] == sorted(parts)
