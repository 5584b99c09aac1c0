"""axe-core finds no fault in any widget, in JupyterLab's light and dark theme."""

import pytest

from browser.gallery import GALLERY, SETUP, TOKENS
from browser.harness import press


@pytest.fixture(scope="module")
def notebook(lab):
    """All widgets in one high window: grids with a cell pinned, the question answered wrongly."""
    opened = lab.run(f"{TOKENS}\n{SETUP}", *GALLERY.values())
    for canvas in opened.page.locator(".step canvas[tabindex='0']").all():
        press(canvas, "ArrowRight", "Enter")
    opened.page.get_by_role("radio").nth(1).check()
    opened.page.get_by_role("button", name="Check").click()
    lab.page.set_viewport_size({"width": 1000, "height": 3000})
    yield opened
    lab.page.set_viewport_size({"width": 1000, "height": 1000})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_violation(lab, notebook, axe, theme):
    lab.theme(theme)
    found = {name: axe(notebook.widget(1 + i)) for i, name in enumerate(GALLERY)}
    faults = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not faults, "\n".join(faults)


def test_axe_would_find_something(notebook, axe):
    root = notebook.widget(1)
    root.evaluate("""root => {
      const faulty = root.appendChild(document.createElement("p"));
      faulty.append(document.createElement("input"), "grey");
      Object.assign(faulty.style, { color: "#999", background: "#bbb" });
    }""")
    found = {fault.split(":")[0] for fault in axe(root)}
    root.evaluate("root => root.lastChild.remove()")
    assert found == {"label", "color-contrast"}
