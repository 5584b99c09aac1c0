"""Execute the notebooks, keep them in one canonical form, and turn them into text and back.

    python tools/notebooks.py run [NAME ...]      execute and write in canonical form
    python tools/notebooks.py text NAME           print as a script (cells begin with `# %% id`)
    python tools/notebooks.py save NAME FILE.py   write such a script back, executed
    python tools/notebooks.py check [NAME ...]    name the notebooks that are not canonical

NAME is the beginning of a file name: `05`, or `05_softmax`.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PERCENT = {
    "extension": ".py",
    "format_name": "percent",
    "comment_magics": False,  # `%pip` stays as it is, also inside an `if`
    "notebook_metadata_filter": "-all",
    "cell_metadata_filter": "title,tags,-all",
}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
MODEL = "IPY_MODEL_"  # before a model's id where another model's state refers to it
QUESTION = re.compile(r"^predict\(", re.MULTILINE)
FOLDED_CODE = {"cellView": "form", "jupyter": {"source_hidden": True}}  # Colab; JupyterLab
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RANDOM = re.compile(r"(?=.*[0-9])[0-9a-f]{8,}(-[0-9a-f]{4,})*")  # what editors give a new cell


class NotebookError(Exception):
    """A notebook that can't be found or whose cell fails."""


# ---------------------------------------------------------------- cell ids


def slug(text: str, words: int = 6) -> str:
    """The first words of a text, as an id: `## By hand: two rows` → `by-hand-two-rows`."""
    text = re.sub(r"^[^a-z]+", "", text.lower())
    name = "-".join(re.findall(r"[a-z0-9]+", text)[:words])
    return name[:60].rstrip("-") or "cell"


def given_id(cell) -> str:
    """The id its author chose: the cell's title, else its id if that is readable, else ''."""
    if title := cell.metadata.get("title"):
        return slug(title, words=20)
    old = cell.get("id", "")
    return old if SLUG.fullmatch(old) and not RANDOM.fullmatch(old) else ""


def derived_id(cell) -> str:
    """An id made of the first heading, or of the first words of the source."""
    heading = re.search(r"^#+ (.+)$", cell.source, re.MULTILINE)
    return slug(heading[1] if heading else cell.source)


def unique(wanted: str, taken: set[str]) -> str:
    """The wanted id, with a number behind it if another cell has it: `plot`, `plot-2`."""
    names = itertools.chain([wanted], (f"{wanted}-{n}" for n in itertools.count(2)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def name_cells(cells) -> None:
    """Give every cell a readable id of its own; the chosen ones come first."""
    taken = set()
    given = [given_id(cell) for cell in cells]
    chosen = [unique(name, taken) if name else "" for name in given]
    for cell, name in zip(cells, chosen, strict=True):
        cell["id"] = name or unique(derived_id(cell), taken)


# ---------------------------------------------------------------- saved widgets


def saved_models(notebook) -> dict:
    """The state of the notebook's widgets, {model id: model}."""
    return notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def views(cells) -> Iterator[tuple[str, dict]]:
    """Every output that shows a widget: its cell's id and its data."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                yield cell.id, output.data


def references(value, key: str = "") -> Iterator[tuple[str, str]]:
    """The ids of the models that a state refers to, each with the key that it stands under."""
    if isinstance(value, str) and value.startswith(MODEL):
        yield key, value.removeprefix(MODEL)
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from references(value[name], name)
    elif isinstance(value, list):
        for item in value:
            yield from references(item, key)


def renamed(value, names: dict[str, str]):
    """A copy of a state in which every reference has the model's new id."""
    if isinstance(value, str) and value.startswith(MODEL):
        model = value.removeprefix(MODEL)
        return MODEL + names.get(model, model)
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list) else value


def name_models(cells, models: dict) -> dict[str, str]:
    """{id: readable id} for the models that are shown, and for those which they refer to."""
    names, taken = {}, set()

    def name(model: str, wanted: str) -> None:
        if model in models and model not in names:
            names[model] = unique(wanted, taken)
            for key, other in references(models[model]["state"]):
                name(other, f"{names[model]}-{key}")

    for cell_id, data in views(cells):
        name(data[VIEW]["model_id"], f"widget-{cell_id}")
    return names


def is_gap(state, path: list) -> bool:
    """Whether the state has an empty place for a buffer; an update leaves old buffers behind."""
    *parents, last = path
    try:
        for key in parents:
            state = state[key]
        return (state.get(last) if isinstance(state, dict) else state[last]) is None
    except (KeyError, IndexError, TypeError):
        return False


def any_version(values: dict) -> dict:
    """A later anywidget, too, may show what this one saved."""
    return {key: "*" if key.endswith("_module_version") else value for key, value in values.items()}


def clean_model(model: dict, names: dict[str, str]) -> dict:
    """A model with its references renamed, without empty layout entries and old buffers."""
    state = renamed(model["state"], names)
    if model["model_name"] == "LayoutModel":
        state = {key: value for key, value in state.items() if value is not None}
    buffers = [buffer for buffer in model.get("buffers", []) if is_gap(state, buffer["path"])]
    kept = {key: value for key, value in model.items() if key != "buffers"}
    if model["model_module"] == "anywidget":
        kept, state = any_version(kept), any_version(state)
    buffers.sort(key=lambda buffer: json.dumps(buffer["path"]))
    return kept | {"state": state} | ({"buffers": buffers} if buffers else {})


def clean_widgets(notebook) -> dict:
    """Give every widget a readable id; the metadata of those that are shown, {} without any.

    A view whose widget was not saved goes: beside it stands a picture.
    """
    models = saved_models(notebook)
    names = name_models(notebook.cells, models)
    for _, data in views(notebook.cells):
        if (model := data[VIEW]["model_id"]) in names:
            data[VIEW]["model_id"] = names[model]
        else:
            del data[VIEW]
    state = {name: clean_model(models[model], names) for model, name in names.items()}
    saved = {"state": state, "version_major": 2, "version_minor": 0}
    return {"widgets": {STATE: saved}} if state else {}


# ---------------------------------------------------------------- canonical form


def last_state(text: str) -> str:
    """What is left to read of lines that were written over, as a progress bar's is."""
    return re.sub(r"^.*\r(?=.)", "", text.replace("\r\n", "\n"), flags=re.MULTILINE)


def merge_streams(outputs) -> list:
    """Join neighbouring pieces of the same stream: how they were cut depends on timing."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output.output_type == "stream" and output.name == last.get("name"):
            last["text"] += output.text
        else:
            merged.append(output)
    for output in merged:
        if output.output_type == "stream":
            output["text"] = last_state(output.text)
    return merged


def clean_output(output, count: int) -> None:
    """Keep of an output's metadata only a picture's words and width; number it like its cell."""
    if "metadata" in output:
        told = {k: v for k, v in output.metadata.items() if isinstance(v, dict) and "alt" in v}
        kept = {
            k: {name: v[name] for name in ("alt", "width") if name in v} for k, v in told.items()
        }
        output["metadata"] = nbformat.from_dict(kept)
    if "execution_count" in output:
        output["execution_count"] = count
    for kind, data in output.get("data", {}).items():
        if kind in ("image/png", "image/jpeg"):
            output["data"][kind] = data.strip()


def clean_cell(cell) -> None:
    """Strip what changes from run to run; only the tags stay in the metadata."""
    tags = sorted(cell.metadata.get("tags", []))
    cell["metadata"] = nbformat.from_dict({"tags": tags} if tags else {})
    cell["source"] = "\n".join(line.rstrip() for line in cell.source.splitlines()).strip("\n")


def fold_questions(code) -> None:
    """Fold the code of a question, which holds the reason, and that of the answer after it."""
    for cell, following in itertools.pairwise(code):
        if QUESTION.search(cell.source):
            cell.metadata.update(FOLDED_CODE)
            following.metadata.update(FOLDED_CODE)


def canonical(notebook) -> str:
    """The notebook's one canonical text. Everything volatile is gone from it."""
    notebook = nbformat.from_dict(notebook)
    name_cells(notebook.cells)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        clean_cell(cell)
    fold_questions(code)
    for count, cell in enumerate(code, start=1):
        cell["execution_count"] = count
        cell["outputs"] = merge_streams(cell.outputs)
        for output in cell.outputs:
            clean_output(output, count)
    metadata = METADATA | clean_widgets(notebook)
    notebook.update(metadata=metadata, nbformat=4, nbformat_minor=5)
    return nbformat.writes(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- files


def read(path: Path):
    """Read a notebook; older major versions are brought to nbformat 4."""
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


def write(path: Path, text: str) -> None:
    """Write with the same line ends and encoding on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


def find(names) -> list[Path]:
    """The notebooks whose file names begin with one of the names; all without names."""
    found = []
    for name in names or [""]:
        matches = sorted(NOTEBOOKS.glob(f"{Path(name).name.removesuffix('.ipynb')}*.ipynb"))
        if not matches:
            raise NotebookError(f"no notebook begins with {name!r}")
        found += [path for path in matches if path not in found]
    return found


def target(name: str) -> Path:
    """Where to save: the one notebook beginning with the name, or a new one of that name."""
    stem = Path(name).name.removesuffix(".ipynb")
    matches = sorted(NOTEBOOKS.glob(f"{stem}*.ipynb"))
    if len(matches) > 1:
        raise NotebookError(f"{name!r} fits several notebooks")
    if not matches and not re.fullmatch(r"\d\d_[a-z0-9_]+", stem):
        raise NotebookError(f"a new notebook needs a full name such as 05_softmax, not {name!r}")
    return matches[0] if matches else NOTEBOOKS / f"{stem}.ipynb"


# ---------------------------------------------------------------- ruff and the kernel


def ruff(path: Path, text: str, *command: str) -> str:
    """Pass a notebook's text through ruff, with the settings that hold at its path."""
    call = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(path), "-"]
    done = subprocess.run(call, input=text.encode(), stdout=subprocess.PIPE)
    if not done.stdout:
        raise NotebookError(f"{path.name}: ruff can't read it")
    return done.stdout.decode()


def tidy(path: Path, notebook):
    """The notebook with its code fixed and formatted."""
    text = ruff(path, canonical(notebook), "check", "--fix", "--exit-zero")
    return nbformat.reads(ruff(path, text, "format"), as_version=4)


def failure(path: Path, notebook, error: Exception) -> NotebookError:
    """Say in one line which cell failed and why."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                what = f"{output.ename}: {output.evalue}"
                return NotebookError(f"{path.name}: cell {cell.id}: {what}")
    return NotebookError(f"{path.name}: {type(error).__name__}: {error}")


def execute(path: Path, notebook):
    """Run all cells in a fresh kernel of this environment, in the notebooks' folder."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=600,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    try:
        return client.execute()
    except (CellControlSignal, DeadKernelError, RuntimeError) as error:
        raise failure(path, notebook, error) from None


def keep_uncompared(path: Path, notebook):
    """A cell that is not compared (a timing) keeps its saved output while its code is the same."""
    if not path.exists():
        return notebook
    before = read(path)
    saved = {cell.id: cell for cell in before.cells}
    for cell in notebook.cells:
        old = saved.get(cell.id, {})
        tagged = "nbval-ignore-output" in cell.metadata.get("tags", [])
        if tagged and old.get("source") == cell.source and old.get("outputs"):
            cell["outputs"] = old.outputs
    models = saved_models(before) | saved_models(notebook)  # of the kept outputs too
    notebook.metadata["widgets"] = {STATE: {"state": models}}
    return notebook


def build(path: Path, notebook) -> None:
    """Tidy, execute and write one notebook; a failing cell leaves the file as it was."""
    executed = execute(path, tidy(path, notebook))
    write(path, canonical(keep_uncompared(path, executed)))
    print(f"{path.name}: done")


# ---------------------------------------------------------------- commands


def run(args) -> None:
    """Execute notebooks and write them in canonical form."""
    for path in find(args.names):
        build(path, read(path))


def text(args) -> None:
    """Print one notebook as a script, with the cells' ids as titles."""
    notebook = read(find([args.name])[0])
    for cell in notebook.cells:
        cell.metadata["title"] = cell.id
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(jupytext.writes(notebook, fmt=PERCENT))


def save(args) -> None:
    """Write a script back as a notebook, executed and in canonical form."""
    script = args.file.read_text(encoding="utf-8")
    build(target(args.name), jupytext.reads(script, fmt=PERCENT))


def uncanonical(paths) -> list[str]:
    """The names of the notebooks that differ from their canonical form."""
    return [p.name for p in paths if p.read_bytes() != canonical(read(p)).encode()]


def check(args) -> None:
    """Name the notebooks that are not in canonical form."""
    if names := uncanonical(find(args.names)):
        raise NotebookError(f"not canonical, run `make notebooks`: {', '.join(names)}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(description="Execute notebooks and keep their canonical form.")
    commands = top.add_subparsers(required=True, metavar="command")
    for command in (run, text, save, check):
        sub = commands.add_parser(command.__name__, help=command.__doc__)
        sub.set_defaults(command=command)
        if command in (run, check):
            sub.add_argument("names", nargs="*", metavar="NAME", help="for example 05; default all")
        else:
            sub.add_argument("name", metavar="NAME", help="for example 05")
    commands.choices["save"].add_argument("file", type=Path, metavar="FILE.py")
    return top


def main() -> int:
    """Run the command; a failure is one line and exit status 1."""
    os.environ["OMP_NUM_THREADS"] = "1"  # sums in the same order on every machine
    os.environ["MY_TRANSFORMER"] = "off"  # a learner's answers neither read nor kept
    os.environ["PYTHONPATH"] = str(NOTEBOOKS.parent)  # the helpers of this tree
    args = parser().parse_args()
    try:
        args.command(args)
    except NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
