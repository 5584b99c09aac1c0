"""A learner's own notebook on the next day, in JupyterLab as it comes, with no setting changed."""

import json
import shutil

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from browser.gallery import GALLERY, SETUP, TOKENS
from browser.harness import ROOT, STATE, WIDGET, frames, press

pytestmark = pytest.mark.long

SOFTMAX = "from helpers.widgets import SoftmaxLab, predict\nSoftmaxLab([2, 1], ['a', 'b'])"
QUESTION = "predict('Which?', [1, 2, 3], answer=2)"
OTHERS = """import ipywidgets
from helpers.widgets import SoftmaxLab
low, high = ipywidgets.IntSlider(3), ipywidgets.IntSlider(4)
linked = ipywidgets.jslink((low, "value"), (high, "value"))
ipywidgets.VBox([low, high, SoftmaxLab([2, 1], ['a', 'b'])])"""
RUN_FIRST = """async () => {
  const { commands } = window.jupyterapp;
  window.panel.content.activeCellIndex = 0;
  window.panel.content.deselectAll();
  await commands.execute("notebook:run-cell");
}"""
RESTART = "() => window.panel.sessionContext.restartKernel()"
SETTING = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"
# What a slow machine may do: the connection of the kernel is renewed before the file was read, and
# ipywidgets believes that nothing more will come (its issue 3823). Here it happens every time.
LATE = f"""async () => {{
  const manager = await window.panel.content.rendermime.createRenderer("{WIDGET}")._manager.promise;
  const managers = Object.getPrototypeOf(manager);
  const {{ restoreWidgets }} = managers;
  managers.restoreWidgets = async function (...all) {{
    Object.assign(managers, {{ restoreWidgets }});
    this._restoredStatus = true;
    await new Promise((resolve) => setTimeout(resolve, 5000));
    return restoreWidgets.apply(this, all);
  }};
}}"""
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


def stripped(notebook):
    """The notebook without the state of its widgets, trusted as it was."""
    bare = nbformat.from_dict(json.loads(json.dumps(notebook)))
    del bare.metadata["widgets"]
    NotebookNotary().sign(bare)
    return bare


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
    """Every kind of widget, run and saved."""
    opened = lab.run(f"{TOKENS}\n{SETUP}", *GALLERY.values())
    opened.save()
    return opened


def test_what_was_run_and_saved_lives_on_the_next_day(lab, gallery):
    """The kernel is shut down and the notebook closed in between."""
    again = lab.show(gallery.path)
    again.rendered()
    all_alive(again, len(GALLERY))


def test_where_the_state_is_missing_the_picture_stands(lab, gallery):
    notebook = nbformat.read(gallery.path, as_version=4)
    lab.show(lab.write(stripped(notebook)))
    lab.page.wait_for_timeout(3000)  # ipywidgets looks for each widget for two seconds
    outputs = lab.page.locator(".jp-Notebook .jp-OutputArea-output")
    places = [output.evaluate(PICTURE) for output in outputs.all()]
    told = [output.metadata["image/png"] for output in views(notebook)]
    assert [place["words"] for place in places] == [picture["alt"] for picture in told]
    assert all(place["width"] >= 300 and place["text"] == "" for place in places)


def test_widgets_that_are_read_late_come_to_life(lab, gallery):
    lab.show(gallery.path)
    lab.page.evaluate(LATE)
    again = lab.show(gallery.path)
    again.page.wait_for_timeout(3500)
    assert again.page.locator(".step").count() == 0
    again.rendered()
    all_alive(again, len(GALLERY))


def test_of_two_days_both_live(lab):
    """On day two only the first cell runs, and that three times; nothing piles up in the file."""
    first = lab.run(SOFTMAX, QUESTION, "SoftmaxLab([1, 2, 3], ['a', 'b', 'c'])").save()
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
    assert set(shown) <= set(state(third.save()))


def test_a_restart_before_the_save_loses_nothing(lab):
    opened = lab.run(SOFTMAX, QUESTION)
    opened.page.evaluate(RESTART)
    opened.save()
    again = lab.show(opened.path)
    again.rendered()
    all_alive(again, 2)
    # JupyterLab gives up what it had asked the old kernel's subshells, and says so.
    lab.errors[:] = [error for error in lab.errors if "create_subshell_request" not in error]


def test_widgets_of_others_are_kept_too(lab):
    """A box of theirs with one of ours in it, and a link that no output shows."""
    opened = lab.run(OTHERS)
    saved = opened.save()
    names = {model["model_name"] for model in state(saved).values()}
    assert {"VBoxModel", "IntSliderModel", "LinkModel", "AnyModel"} <= names
    again = lab.show(opened.path)
    again.rendered()
    all_alive(again, 1)
    assert again.page.locator(".jp-Notebook .widget-slider").count() == 2


def test_the_setting_of_jupyterlab_does_no_harm(lab):
    """With it JupyterLab itself saves on day two only what runs then."""
    first = lab.run(SOFTMAX, QUESTION).save()
    execute = "name => window.jupyterapp.commands.execute(name)"
    lab.page.evaluate(execute, SETTING)
    try:
        saved = lab.open(first).save()
        assert set(state(saved)) == set(state(first))
    finally:
        lab.page.evaluate(execute, SETTING)


def test_a_lesson_of_the_course_goes_on_the_next_day(lab):
    """Opened without trust it shows pictures; run and saved by the learner it is trusted."""
    path = shutil.copy(ROOT / "notebooks/05_softmax.ipynb", lab.server.files / "lesson.ipynb")
    fresh = nbformat.read(path, as_version=4)
    notary = NotebookNotary()
    notary.unsign(fresh)
    opened = lab.show(path)
    count = len(views(fresh))
    assert count >= 4 and opened.page.locator(".step").count() == 0
    opened.run()
    saved = opened.save()
    assert not set(state(saved)) & set(state(fresh)) and programs(saved) == count
    assert notary.check_signature(saved)
    again = lab.show(path)
    again.rendered()
    all_alive(again, count)
