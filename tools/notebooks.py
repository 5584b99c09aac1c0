"""Execute the notebooks and keep them in one canonical form.

python tools/notebooks.py [05 ...]  those whose file names begin so (`05`, `05_softmax`), else all
"""

import itertools
import json
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
LAYOUT = "IPY_MODEL_"  # before the id of a model where another model's state refers to it
COALESCE = CoalesceStreamsPreprocessor()  # how streams were cut depends on timing
FOLDED_CODE = {"cellView": "form", "jupyter": {"source_hidden": True}}  # Colab; JupyterLab
RANDOM = r"(?=.*[0-9])[0-9a-f]{8,}(-[0-9a-f]{4,})*$"  # the id that an editor gives a new cell
CHOSEN = re.compile(rf"(?!{RANDOM})[a-z][a-z0-9]*(-[a-z0-9]+)*")  # and those that an author gave


def derived_id(cell) -> str:
    """The first words of the first heading, or of the source: `## By hand: two` → `by-hand-two`."""
    heading = re.search(r"^#+ (.+)$", cell.source, re.MULTILINE)
    text = re.sub(r"^[^a-z]+", "", (heading[1] if heading else cell.source).lower())
    return "-".join(re.findall(r"[a-z0-9]+", text)[:6])[:60].rstrip("-") or "cell"


def unique(wanted: str, taken: set[str]) -> str:
    """The wanted id, with a number behind it if another cell has it: `plot`, `plot-2`."""
    name, numbers = wanted, itertools.count(2)
    while name in taken:
        name = f"{wanted}-{next(numbers)}"
    taken.add(name)
    return name


def name_cells(cells) -> None:
    """Give every cell a readable id of its own; the chosen ones stay."""
    taken, seen = {cell.id for cell in cells if CHOSEN.fullmatch(cell.get("id", ""))}, set()
    for cell in cells:
        if cell.get("id") not in taken - seen:
            cell["id"] = unique(derived_id(cell), taken)
        seen.add(cell.id)


def saved_models(notebook) -> dict:
    """The state of the notebook's widgets, {model id: model}."""
    return notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def is_gap(state: dict, path: list[str]) -> bool:
    """Whether the state has the place of a buffer, empty; an update leaves old buffers behind."""
    *parents, last = path
    for key in parents:
        state = state.get(key) if isinstance(state, dict) else None
    return isinstance(state, dict) and state.get(last) is None


def any_version(values: dict) -> dict:
    """A later anywidget, too, may show what this one saved."""
    return {key: "*" if key.endswith("_module_version") else value for key, value in values.items()}


def clean_widget(model: dict, layout: str) -> dict:
    """A widget's model of any version, with its layout's new id and without old buffers."""
    state = any_version(model["state"]) | {"layout": LAYOUT + layout}
    made = any_version(model) | {"state": state}
    buffers = [buffer for buffer in made.pop("buffers", []) if is_gap(state, buffer["path"])]
    buffers.sort(key=lambda buffer: json.dumps(buffer["path"]))
    return made | ({"buffers": buffers} if buffers else {})


def clean_widgets(notebook) -> dict:
    """Name every widget after the cell that shows it first; the metadata of those, {} without any.

    A view whose widget was not saved goes: beside it stands a picture.
    """
    models, names, state, taken = saved_models(notebook), {}, {}, set()
    for cell in notebook.cells:
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            if (old := data.get(VIEW, {}).get("model_id")) not in models:
                data.pop(VIEW, None)
                continue
            if old not in names:
                name = names[old] = unique(f"widget-{cell.id}", taken)
                layout = models[models[old]["state"]["layout"].removeprefix(LAYOUT)]
                state[name] = clean_widget(models[old], f"{name}-layout")
                full = {k: value for k, value in layout["state"].items() if value is not None}
                state[f"{name}-layout"] = layout | {"state": full}
            data[VIEW]["model_id"] = names[old]
    saved = {STATE: {"state": state, "version_major": 2, "version_minor": 0}}
    return {"widgets": saved} if state else {}


def clean_output(output, count: int) -> None:
    """Keep of an output's metadata only a picture's words and width; number it like its cell."""
    if "metadata" in output:
        told = output.metadata.get("image/png", {})
        kept = {name: told[name] for name in ("alt", "width") if name in told}
        output["metadata"] = {"image/png": kept} if kept else {}
    if "execution_count" in output:
        output["execution_count"] = count
    if png := output.get("data", {}).get("image/png"):
        output["data"]["image/png"] = png.strip()


def clean_cell(cell) -> None:
    """Strip what changes from run to run; tags stay, and what `deeper` closes, `drawn` hides."""
    tags = sorted(cell.metadata.get("tags", []))
    told = {"tags": tags} if tags else {}
    if "deeper" in tags and cell.cell_type == "markdown":
        told |= {"jp-MarkdownHeadingCollapsed": True, "id": cell.id}  # JupyterLab; Colab's name
    if "drawn" in tags and cell.cell_type == "code":
        told |= FOLDED_CODE
    cell["metadata"] = nbformat.from_dict(told)
    cell["source"] = "\n".join(line.rstrip() for line in cell.source.splitlines()).strip("\n")


def canonical(notebook) -> str:
    """The notebook's one canonical text. Everything volatile is gone from it."""
    notebook = nbformat.from_dict(notebook)
    name_cells(notebook.cells)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        clean_cell(cell)
    for count, cell in enumerate(code, start=1):
        cell["execution_count"] = count
        COALESCE.preprocess_cell(cell, {}, count)
        for output in cell.outputs:
            clean_output(output, count)
    closed = [cell.id for cell in notebook.cells if "id" in cell.metadata]
    colab = {"colab": {"collapsed_sections": closed}} if closed else {}
    metadata = METADATA | colab | clean_widgets(notebook)
    notebook.update(metadata=metadata, nbformat=4, nbformat_minor=5)
    return nbformat.writes(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def keep_uncompared(before, notebook) -> None:
    """A cell that is not compared (a timing) keeps its saved output while its code is the same."""
    saved = {cell.id: cell for cell in before.cells}
    for cell in notebook.cells:
        old = saved.get(cell.id, {})
        tagged = "nbval-ignore-output" in cell.metadata.get("tags", [])
        if tagged and old.get("source") == cell.source and old.get("outputs"):
            cell["outputs"] = old.outputs
    models = saved_models(before) | saved_models(notebook)  # of the kept outputs too
    notebook.metadata["widgets"] = {STATE: {"state": models}}


def run(path: Path) -> str | None:
    """Execute and write one notebook; a cell that fails is named, and leaves the file as it was."""
    before = nbformat.read(path, as_version=4)
    notebook = nbformat.reads(canonical(before), as_version=4)
    options = {"timeout": 600, "record_timing": False, "extra_arguments": ["--log-level=ERROR"]}
    here = {"metadata": {"path": str(NOTEBOOKS)}}
    try:
        NotebookClient(notebook, kernel_name="python3", resources=here, **options).execute()
    except CellExecutionError as error:
        kinds = {
            cell.id: [o.output_type for o in cell.get("outputs", [])] for cell in notebook.cells
        }
        bad = next(name for name, found in kinds.items() if "error" in found)
        return f"{path.name}: cell {bad}: {error.ename}: {error.evalue}"
    keep_uncompared(before, notebook)
    path.write_text(canonical(notebook), encoding="utf-8", newline="\n")
    print(f"{path.name}: done")


def main() -> str | None:
    """Do it for every notebook named; the failure as one line, if there is one."""
    os.environ["OMP_NUM_THREADS"] = "1"  # sums in the same order on every machine
    os.environ["MY_TRANSFORMER"] = "off"  # a learner's answers neither read nor kept
    os.environ["PYTHONPATH"] = str(NOTEBOOKS.parent)  # the helpers of this tree
    for name in sys.argv[1:] or [""]:
        if not (paths := sorted(NOTEBOOKS.glob(f"{Path(name).stem}*.ipynb"))):
            return f"no notebook begins with {name!r}"
        if failed := next(filter(None, map(run, paths)), None):
            return failed


if __name__ == "__main__":
    sys.exit(main())
