"""Play Colab: one .ipynb alone in an empty folder, and an environment with its own NumPy and torch.

The setup cell must install the helpers from the repository and leave everything else as it was,
ipywidgets too, of which Colab ships version 7. The repository is a commit of the present tree;
git is told to read it instead of the address.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest
from browser.gallery import GALLERY, SETUP, TOKENS

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ["torch", "matplotlib", "anywidget<0.10", "ipywidgets<8", "ipykernel", "nbclient", "pip",
           "tqdm"]  # fmt: skip
LESSONS = ["00_predict_the_next_word", "08_multi_head"]
REPORT = """\
import importlib.metadata, json, pathlib
import helpers
installed = importlib.metadata.distribution("attention-step-by-step")
widgets = pathlib.Path(helpers.__file__).resolve().parent / "widgets"
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


def clean_environment(**more) -> dict[str, str]:
    """This process's environment without what points at this project: its paths, a git hook's."""
    ours = ("GIT_", "PYTHONPATH", "VIRTUAL_ENV", "JUPYTER_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)} | more


def call(*command, **options) -> str:
    """Run a command; what it printed. A failure shows what it wrote to stderr."""
    options = {"env": clean_environment(), "encoding": "utf-8"} | options
    done = subprocess.run(list(map(str, command)), capture_output=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


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
    return clean_environment(
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
    parts = [p.name for p in (ROOT / "helpers/widgets").iterdir() if p.suffix in (".js", ".css")]
    assert report["parts"] == sorted(parts)
