"""The pages of `make site` in the browser: all of them, from file://, without a network."""

import nbformat
import pytest

from browser.axe import AXE, TAGS
from browser.harness import DRAWN, frames, watch

# Everything that reaches over the page's edge and does not lie in a box that scrolls.
STICKS_OUT = """() => {
  const edge = document.documentElement.clientWidth;
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const boxed = (e) => e !== document.body
    && (getComputedStyle(e).overflowX !== "visible" || boxed(e.parentElement));
  const over = [...document.querySelectorAll("body *")].filter((e) => {
    const { left, right, width } = e.getBoundingClientRect();
    return width && (right > edge + 1 || left < -1) && !boxed(e.parentElement);
  });
  const named = (e) => `<${e.localName}> in ${e.closest("[data-cell]")?.id}: ${e.textContent}`;
  const { scrollWidth } = document.documentElement;
  return [...scrollWidth > edge ? [`the page is ${scrollWidth} wide`] : [],
    ...over.map((e) => named(e).slice(0, 120))];
}"""


@pytest.fixture(scope="module")
def folder(ci, tmp_path_factory):
    """The whole site, as `make site` writes it."""
    folder = tmp_path_factory.mktemp("site")
    ci("site").build(site=folder)
    return folder


@pytest.fixture
def visit(browser, folder):
    """`visit("05")`: a page as a visitor sees it; no page may complain or ask the network."""
    faults, contexts = [], []

    def open_page(name: str, width: int = 1400, **options):
        screen = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=screen, offline=True, **options))
        watch(contexts[-1], faults)
        page = contexts[-1].new_page()
        page.goto(next(folder.glob(f"{name}*.html")).as_uri())
        page.wait_for_function(DRAWN)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults


def said(page) -> str:
    """What the search says of its results."""
    return page.locator("header [role=status]").inner_text()


def search(page, query: str) -> list[str]:
    """Ask for something, from wherever one reads; what is found, place and line."""
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type(query)
    frames(page)
    page.wait_for_function("() => document.querySelector('[role=status]').textContent")
    return page.locator(".found li").all_inner_texts()


@pytest.mark.parametrize("width", [390, 620, 1400])
def test_nothing_sticks_out(visit, folder, width):
    for path in sorted(folder.glob("*.html")):
        page = visit(path.stem, width)
        assert page.evaluate(STICKS_OUT) == [], f"{path.name} at {width} px"
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("name", "width"), [("index", 1400), ("index", 620), ("05", 1400), ("12", 390)]
)
def test_no_violation(visit, axe_source, name, width, scheme):
    page = visit(name, width, color_scheme=scheme)
    assert search(page, "causal mask")
    page.evaluate(axe_source + "; null")
    faults = page.evaluate(AXE, [page.locator("html").element_handle(), TAGS])
    assert not faults, "\n".join(faults)


def test_first_page_answers_to_another_sentence_and_to_a_click(visit):
    """What apple gathers, food and device: 2.60 and 0.90 of banana, the reverse of laptop."""
    machine = visit("index").locator(".machine")
    size = machine.locator("canvas").bounding_box()
    below = {"x": size["width"] - 70, "y": size["height"] - 41}  # apple in this sentence: food
    machine.locator("canvas").click(position=below)
    frames(machine.page)  # what it says comes with the next frame
    assert machine.locator(".sum").inner_text().endswith("= 2.60")
    sentence = machine.get_by_label("sentence")
    sentence.fill("the shop sells apple and lap")
    machine.get_by_text("“lap” is not among the words").wait_for()
    sentence.press_sequentially("top")
    frames(machine.page)
    assert machine.get_by_role("status").inner_text() == ""
    assert machine.locator(".sum").inner_text().endswith("= 0.90")


def test_contents_mark_where_one_reads_and_lie_over_a_narrow_page(visit):
    """They come when they are asked for, and leave with a choice or with Escape."""
    page = visit("05")
    marked = (
        "() => [...document.querySelectorAll('#contents [aria-current]')].map((e) => e.textContent)"
    )
    assert page.evaluate(marked) == ["05 · Softmax"]
    page.evaluate("scrollTo(0, document.getElementById('see-it').offsetTop - 100)")
    page.wait_for_selector("#contents [aria-current=location]")
    assert page.evaluate(marked) == ["05 · Softmax", "See it"]
    page = visit("05", 390)
    contents, button = page.locator("#contents"), page.get_by_role("button", name="Contents")
    assert not contents.is_visible()
    button.click()
    assert contents.is_visible() and page.evaluate(STICKS_OUT) == []
    page.keyboard.press("Escape")
    assert not contents.is_visible()
    button.click()
    contents.get_by_role("link", name="See it").click()
    assert not contents.is_visible() and page.url.endswith("#see-it")
    button.click()
    contents.get_by_role("link", name="06 · Masking").click()
    page.wait_for_url("**/06_masking.html")


@pytest.fixture
def closed(browser, ci, tmp_path):
    """A page with the machine in a closed section, and another section below it."""
    site, new = ci("site"), nbformat.v4.new_markdown_cell
    notebook = site.alive(apple=site.apple())
    told = {"jp-MarkdownHeadingCollapsed": True}
    notebook.cells[:0] = [new("# T\n\nYou will.\n\n## Go deeper", id="t"),
                          new("### A\n\n2 minutes: a.", id="a", metadata=told)]  # fmt: skip
    notebook.cells += [new("### B\n\n3 minutes: b.", id="b", metadata=told), new("There.", id="c")]
    (tmp_path / "t.html").write_text(site.page({"t.html": notebook}, "t.html"), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "t.html").as_uri())
    yield page
    page.close()


OPENED = "[...document.querySelectorAll('.deeper')].map((e) => e.open)"


def test_a_closed_section_opens_by_its_heading_and_its_widget_lives(closed):
    assert closed.evaluate(OPENED) == [False, False]
    assert closed.locator("figure > img").count() == 1
    closed.get_by_text("2 minutes: a.").click()
    closed.locator("figure .machine canvas").wait_for()
    assert closed.evaluate(OPENED) == [True, False]
    assert closed.locator("figure canvas").bounding_box()["width"] > 300


@pytest.mark.parametrize("place", ["b", "cell-b", "cell-c"])
def test_a_link_that_points_inside_opens_a_closed_section(closed, place):
    closed.goto(closed.url + f"#{place}")
    assert closed.evaluate(OPENED) == [False, True]
    assert closed.locator(f"#{place}").is_visible()


def test_what_is_printed_is_open(closed):
    closed.pdf()
    assert closed.evaluate(OPENED) == [True, True]


FOUND = {
    "padding_mask": ("06 · Masking", "def padding_mask(ids, pad_id):"),
    "Luis Roque": ("Sources", "roque"),
    "divide by √d_k": ("04 · Scaling", "√d_k"),
    "pile values up": ("05 · Softmax › The question", "pile the values up"),
    "sofmax_naiv": ("05 · Softmax", "def softmax_naive(x):"),
}


def test_search_finds(visit):
    page = visit("index")
    for query, (title, line) in FOUND.items():
        first, *_ = [found for found in search(page, query) if title in found]
        assert line in first.replace("\u0301", "") or line in first.casefold(), query


def test_search_by_keyboard_alone(visit):
    page = visit("05")
    assert search(page, "zz/xy") == [] and said(page) == "Found nowhere: zz/xy"
    page.evaluate("scrollTo(0, 3000)")
    found = search(page, "causal_mask")
    assert len(found) > 5 and page.evaluate("scrollY") == 3000
    focused = "document.activeElement.innerText"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == found[1]
    page.keyboard.press("Escape")
    assert said(page) == "" and page.locator(".found li").count() == 0
    assert page.evaluate("document.activeElement === document.body")
    best = search(page, "causal_mask")[0]
    page.keyboard.press("Enter")
    page.wait_for_url("**/*.html#cell-*")
    assert page.locator(":target").inner_text().strip()
    assert page.title() == best.split(" › ")[0]


def test_a_page_alone_says_what_its_search_lacks(browser, folder, tmp_path):
    lonely = tmp_path / "05.html"
    lonely.write_bytes((folder / "05_softmax.html").read_bytes())
    page = browser.new_page()
    page.goto(lonely.as_uri())
    assert search(page, "softmax") == []
    assert said(page) == "The search needs search.js beside this page."
    page.close()
