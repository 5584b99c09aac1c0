"""A learner's own notebook on the next day, in JupyterLab as it comes, with no setting changed."""

import shutil

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from browser.gallery import GALLERY, SETUP, TOKENS
from browser.harness import ROOT, STATE, WIDGET, frames, press

SIGN = "view => getComputedStyle(view, '::before').content"  # of what has lost its kernel
PICTURE = """place => {
  const image = place.querySelector("img");
  return { words: image?.alt, width: image?.naturalWidth, text: place.innerText.trim() };
}"""


def state(notebook) -> dict:
    return notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def programs(notebook) -> int:
    """How many widgets of ours a file holds."""
    return sum("_esm" in model["state"] for model in state(notebook).values())


def views(notebook) -> list[dict]:
    """The outputs that show a widget."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [output for output in outputs if WIDGET in output.get("data", {})]


def looks(root):
    """What a reader sees of a widget: its words, what is checked, where its sliders stand."""
    inputs = root.locator("input").evaluate_all("all => all.map(i => [i.checked, i.value])")
    return root.inner_text(), inputs


def touch(root) -> None:
    """Use the first thing that can be used, by a key; the widget must answer."""
    frames(root.page)
    before = looks(root)
    usable = "input:enabled:visible, canvas[tabindex='0']:visible, button:visible"
    handle = root.locator(usable).first
    press(handle, "ArrowRight")
    if looks(root) == before:
        press(handle, "Space")
    assert looks(root) != before, before


def all_alive(opened, count: int) -> None:
    roots = opened.page.locator(".jp-Notebook .jp-OutputArea-output .step").all()
    assert len(roots) == count
    for root in roots:
        touch(root)
        assert root.locator("..").evaluate(SIGN) == "none"
    assert opened.page.get_by_text("Error displaying").count() == 0


@pytest.fixture(scope="module")
def gallery(lab):
    """Every kind of widget, and a box of ipywidgets with one in it, run and saved."""
    box = "import ipywidgets\nipywidgets.VBox([ipywidgets.IntSlider(3), DropoutLab([[1, 1]])])"
    opened = lab.run(f"{TOKENS}\n{SETUP}", *GALLERY.values(), box)
    opened.save()
    return opened


def test_what_was_run_and_saved_lives_on_the_next_day(lab, gallery):
    """Also if the kernel was restarted before the save; it is shut down in between."""
    gallery.page.evaluate("() => window.panel.sessionContext.restartKernel()")
    gallery.save()
    again = lab.show(gallery.path)
    again.rendered()
    all_alive(again, len(GALLERY) + 1)
    # JupyterLab gives up what it had asked the old kernel's subshells, and says so.
    lab.errors[:] = [error for error in lab.errors if "create_subshell_request" not in error]


def test_where_the_state_is_missing_the_picture_stands(lab, gallery):
    notebook = nbformat.read(gallery.path, as_version=4)
    del notebook.metadata["widgets"]
    NotebookNotary().sign(notebook)  # trusted as it was
    lab.show(lab.write(notebook))
    lab.page.wait_for_timeout(3000)  # ipywidgets looks for each widget for two seconds
    outputs = lab.page.locator(".jp-Notebook .jp-OutputArea-output")
    *places, _ = [output.evaluate(PICTURE) for output in outputs.all()]  # no picture of the box
    told = [output.metadata["image/png"] for output in views(notebook)[:-1]]
    assert [place["words"] for place in places] == [picture["alt"] for picture in told]
    assert all(place["width"] >= 300 and place["text"] == "" for place in places)


DRAWN_TWICE = """async () => {
  const { outputArea } = window.panel.content.widgets[0];
  const inside = (widget) => [widget, ...[...(widget.children?.() ?? [])].flatMap(inside)];
  const place = inside(outputArea).find((one) => one.renderModel && one.widgets?.length);
  const [model] = outputArea.model.toJSON();
  await Promise.all([place.renderModel(model), place.renderModel(model)]);
  return [place.widgets.length, place.node.querySelectorAll(".step").length, place.isVisible];
}"""


def test_two_drawings_at_once_leave_one_widget(lab):
    """As when the file has been read while its output is being drawn."""
    opened = lab.run("from workshop import DropoutLab\nDropoutLab([[1, 1]])")
    assert opened.page.evaluate(DRAWN_TWICE) == [1, 1, True]
    touch(opened.widget(0))
    opened.page.evaluate("() => window.panel.content.widgets[0].outputArea.model.clear()")


RUN_FIRST = """async () => {
  window.panel.content.activeCellIndex = 0;
  window.panel.content.deselectAll();
  await window.jupyterapp.commands.execute("notebook:run-cell");
}"""


def test_of_two_days_both_live(lab):
    """On day two only the first cell runs, and that three times; nothing piles up in the file."""
    cells = [f"from workshop import DropoutLab\nDropoutLab([[{i}, 1]])" for i in range(3)]
    first = lab.run(*cells).save()
    second = lab.open(first)
    for _ in range(3):
        second.page.evaluate(RUN_FIRST)
    second.rendered()
    saved = second.save()
    shown = [output.data[WIDGET].model_id for output in views(saved)]
    assert shown[0] not in state(first) and set(shown[1:]) <= set(state(first))
    assert programs(saved) == 3
    third = lab.show(second.path)
    third.rendered()
    all_alive(third, 3)


def test_a_lesson_of_the_course_goes_on_the_next_day(lab):
    """Opened without trust it shows pictures; run and saved by the learner it is trusted."""
    lesson = ROOT / "notebooks/02_queries_keys_values.ipynb"
    path = shutil.copy(lesson, lab.server.files / "lesson.ipynb")
    fresh = nbformat.read(path, as_version=4)
    notary = NotebookNotary()
    notary.unsign(fresh)
    opened = lab.show(path)
    count = len(views(fresh))
    assert count >= 2 and opened.page.locator(".step").count() == 0
    opened.run()
    saved = opened.save()
    assert not set(state(saved)) & set(state(fresh)) and programs(saved) == count
    assert notary.check_signature(saved)
    again = lab.show(path)
    again.rendered()
    all_alive(again, count)
