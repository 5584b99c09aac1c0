"""Each widget brings the styles that all share, and its own: together they are as one file."""

from pathlib import Path

import pytest

from browser.gallery import GALLERY, SETUP, TOKENS
from workshop.widgets import base

# In place of the widgets' styles, these; then what in these widgets does not look as it did first.
DIFFERENCES = """async ([texts, places]) => {
  document.querySelectorAll("style").forEach((old) =>
    /^(\\/\\* One look|\\.step)/.test(old.textContent) && old.remove());
  for (const textContent of texts)
    document.head.append(Object.assign(document.createElement("style"), { textContent }));
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  const roots = [...document.querySelectorAll(".step")];
  window.first ??= roots.map(looks);
  return places.flatMap((place) => looks(roots[place]).flatMap((look, i) => {
    const was = window.first[place][i];
    return look.filter((line, k) => line !== was[k]);
  }));
  function looks(root) {
    return [root, ...root.querySelectorAll("*")].map((element) => {
      const style = getComputedStyle(element);
      const line = (name) => `${element.tagName} ${element.className} ${name}: ${style[name]}`;
      return [...style].map(line);
    });
  }
}"""


@pytest.fixture
def shown(page_of):
    """All widgets, and the page that shows them."""
    names = {}
    exec(f"{TOKENS}\n{SETUP}", names)
    widgets = [eval(source, names) for source in GALLERY.values()]
    return widgets, page_of(*widgets)


def test_a_widget_looks_alone_and_in_any_order_as_with_the_whole_file(shown):
    """The part of all stands in every widget's styles, so it may come after another's own rules."""
    widgets, page = shown
    each = [base.style(type(widget).__name__) for widget in widgets]
    places = list(range(len(widgets)))
    whole = Path(base.__file__).with_name("style.css").read_text("utf-8")
    assert page.evaluate(DIFFERENCES, [[whole], places]) == []
    assert len(page.evaluate(DIFFERENCES, [[], places])) > 1000
    for i, own in enumerate(each):
        assert page.evaluate(DIFFERENCES, [[own], [i]]) == [], type(widgets[i])
    for styles in (each, each[::-1]):
        assert page.evaluate(DIFFERENCES, [styles, places]) == []
