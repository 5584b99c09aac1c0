"""Turn the saved notebooks into pages that need no server, no network and no kernel.

    python tools/site.py  write site/index.html, one site/NN_name.html per notebook, site/search.js

Each page is one file. Formulas are MathML, pictures lie inside. The first opens with the machine
on *apple*. Of the folder site/ beside this file, host.js brings the widgets to life from their
saved state, contents.js marks where one reads, and find.js searches all pages by what search.js
tells of them.
"""

import base64
import hashlib
import html
import json
import re
import tomllib
import unicodedata
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import latex2mathml.converter
import mistune
import nbformat
from ipywidgets.embed import dependency_state
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from helpers.examples import APPLE, APPLE_WORDS
from workshop.widgets import Machine

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
PARTS = Path(__file__).with_suffix("")  # the folder with the pages' style and script
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
PROGRAMS = ("contents.js", "find.js", "host.js")
COLAB = "https://colab.research.google.com/"
# Notebooks speak to somebody who runs them; above its first task a page says how one does.
TASK = "**1 · "
TO_RUN = (
    '<p class="aside">A page runs no code. To write these functions and have them checked, '
    '<a href="{colab}">open the notebook in Colab</a>, or '
    '<a href="index.html#start">start it on your own machine</a>.</p>\n'
)

# ---------------------------------------------------------------- formulas

ROWS = ("math", "mrow", "mtd", "msqrt", "mstyle")
SIGNS = {"∞": "mi", "·": "mo", "×": "mo"}  # a letter has no space around it, a sign has
SCRIPTS = ("msub", "msup", "msubsup", "munder", "mover", "munderover")


def core(item):
    """What an item of a formula is: with an index or an exponent, that which carries it."""
    return core(item[0]) if item.tag in SCRIPTS else item


def is_name(item) -> bool:
    """Whether it is the name of a function: sin, max, softmax."""
    return item.tag in ("mi", "mo") and len(item.text or "") > 1 and not item.get("mathvariant")


def gap(neighbour, *, before: bool) -> str:
    """The space between a function's name and its neighbour: none at signs and brackets."""
    if neighbour is None:
        return "0"
    item = core(neighbour)
    closed = before and (item.text or " ") in ")]}|"
    fenced = item.tag == "mrow" and len(item) and item[0].get("fence")
    return "0" if fenced or (item.tag in ("mo", "mspace") and not closed) else "0.167em"


def space(row, block: bool) -> None:
    """Set the spaces of a row that browsers do not set as TeX does."""
    neighbours = [None, *row, None]
    for before, item, after in zip(neighbours, row, neighbours[2:], strict=False):
        what = core(item)
        if is_name(what):
            spaces = {"lspace": gap(before, before=True), "rspace": gap(after, before=False)}
            what.tag, what.attrib = "mo", spaces
            if block and what.text in ("max", "min") and item.tag == "msub":
                item.tag = "munder"
        elif what.tag == "mo" and what.text in ("|", "/"):
            what.attrib |= {"lspace": "0", "rspace": "0"}
        else:
            what.tag = SIGNS.get(what.text, what.tag)


def mathml(tex: str, block: bool = False) -> str:
    """Turn a TeX formula into MathML, which browsers show without a program."""
    made = latex2mathml.converter.convert(tex, display="block" if block else "inline")
    math = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", made))
    for item in list(math.iter()):
        if "\\" in (item.text or ""):
            raise ValueError(f"formula {tex!r}: {item.text} is not known")
        if item.tag in ROWS:
            space(item, block)
        if item.get("mathvariant") == "italic":
            item.set("style", "font-style: italic")
    math.set("alttext", tex)
    return ElementTree.tostring(math, encoding="unicode")


# ---------------------------------------------------------------- Markdown

FORMULA = re.compile(r"(```.*?```|`[^`]*`)|\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
KEPT = re.compile("\ue000([0-9]+)\ue001")  # where a formula stood


def repository() -> str:
    """The address of the repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"]


def link(target: str) -> str:
    """Where a link of a notebook or of the README leads on the site."""
    path, mark, anchor = target.partition("#")
    name = Path(path).name
    if not path:
        return f"#{anchor.lower()}"
    if ":" in path:
        return target
    if name == "README.md":
        return f"index.html{mark}{anchor}"
    if name.endswith(".ipynb"):
        return f"{name.removesuffix('.ipynb')}.html{mark}{anchor.lower()}"
    return f"{repository()}/blob/main/{path}"


def slug(title: str) -> str:
    """The id that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def picture(png: str, alt: str, width: int | None = None) -> str:
    """A picture that lies in the page itself."""
    size = f' width="{width}"' if width else ""
    return f'<img src="data:image/png;base64,{png}" alt="{html.escape(alt)}"{size}>'


class Page(mistune.HTMLRenderer):
    """Markdown as it stands on these pages; `rooms` are the `##` headings, {id: title}."""

    def __init__(self):
        super().__init__(escape=False)
        self.ids, self.rooms, self.colab = Counter(), {}, ""

    def heading(self, text: str, level: int, **attributes) -> str:
        """A heading with an id; a second one of the same words is numbered."""
        name = slug(html.unescape(KEPT.sub("", re.sub("<[^>]+>", "", text))))
        self.ids[name] += 1
        if self.ids[name] > 1:
            name += f"-{self.ids[name] - 1}"
        if level == 2:
            self.rooms[name] = text
        return f'<h{level} id="{name}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link that works on the site; the one to Colab is remembered, and a button."""
        if url.startswith(COLAB):
            self.colab = html.escape(url)
            return f'<a class="button" href="{self.colab}">{text}</a>'
        return super().link(text, link(url), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture of the project lies in the page; for one elsewhere stand its words."""
        if ":" in url:
            return html.escape(text)
        return picture(base64.b64encode((ROOT / url).read_bytes()).decode(), text)

    def table(self, text: str) -> str:
        """A table that scrolls where it is too wide."""
        return f'<div class="wide"><table>\n{text}</table></div>\n'

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        """A cell; an empty one in the head of a table heads nothing."""
        kind = "th" if head and text else "td"
        side = f' style="text-align:{align}"' if align else ""
        return f"  <{kind}{side}>{text}</{kind}>\n"

    def read(self, markdown: str) -> str:
        """Make HTML. Formulas are kept out of it: no sign of theirs means anything there."""
        formulas = []

        def keep(found: re.Match) -> str:
            code, block, inline = found.groups()
            if code:
                return code
            made = mathml((block or inline).strip(), block=bool(block))
            formulas.append(f'<span class="formula">{made}</span>' if block else made)
            return f"\ue000{len(formulas) - 1}\ue001"

        text = FORMULA.sub(keep, markdown)
        made = mistune.create_markdown(renderer=self, plugins=["table", "strikethrough"])(text)
        return KEPT.sub(lambda found: formulas[int(found[1])], made)


# ---------------------------------------------------------------- cells


def output_html(output, models: dict) -> str:
    """One output: a widget with its picture, a picture, HTML, or text."""
    data, told = output.get("data", {}), output.get("metadata", {}).get("image/png", {})
    shown = ""
    if "image/png" in data:
        shown = picture(data["image/png"].strip(), told.get("alt", ""), told.get("width"))
    if (model := data.get(VIEW, {}).get("model_id")) in models:
        return f'<figure data-model="{html.escape(model)}">{shown}</figure>'
    if shown or "text/html" in data:
        return shown or f'<div class="made">{data["text/html"]}</div>'
    text = output.get("text", data.get("text/plain", "")).rstrip("\n")
    return f'<pre class="printed">{html.escape(text)}</pre>'


def cell_html(cell, page: Page, models: dict) -> str:
    """One cell with its outputs."""
    if cell.cell_type != "code":
        note = TO_RUN.format(colab=page.colab) if cell.source.startswith(TASK) else ""
        return f'<div class="text" id="cell-{cell.id}">\n{note}{page.read(cell.source)}</div>'
    code = highlight(cell.source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True))
    source = f'<pre class="code"><code>{code.rstrip()}</code></pre>'
    outputs = "\n".join(output_html(output, models) for output in cell.outputs)
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        source = f"<details><summary>The code</summary>\n{source}\n</details>"
    place = f'<div class="cell" id="cell-{cell.id}" data-cell="{cell.id}">'
    return "\n".join([place, source, outputs, "</div>"])


# ---------------------------------------------------------------- what every page has


def read(path: Path):
    """A notebook as it was saved."""
    return nbformat.read(path, as_version=4)


def introduction(notebook) -> list[str]:
    """The title of a notebook, its promise, and what else its first cell says."""
    title, promise, *rest = notebook.cells[0].source.split("\n\n")
    return [title.removeprefix("# "), promise, *rest]


def lessons(folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebooks of the course."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def readme() -> list[str]:
    """The README in three: its title, what stands before the sections, and the sections.

    Its pictures of the machine, each with the line before it, are left out: here it is alive.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^## The notebooks\n.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^[^\n]+\n\n!\[[^\]]*\]\(\.github/[^)]*\)\n\n", "", text, flags=re.MULTILINE)
    title, rest = text.removeprefix("# ").split("\n", maxsplit=1)
    return [title, *re.split(r"^(?=## )", rest, maxsplit=1, flags=re.MULTILINE)]


def course(folder: Path = NOTEBOOKS) -> dict[str, str]:
    """All pages in their order, {file: title}."""
    titles = {f"{path.stem}.html": introduction(read(path))[0] for path in lessons(folder)}
    return {"index.html": readme()[0], **titles}


def contents(here: str, titles: dict[str, str], rooms: dict[str, str]) -> str:
    """The list of all pages, and of the rooms of this one."""
    inside = "".join(f'<li><a href="#{name}">{text}</a></li>\n' for name, text in rooms.items())
    items = [
        f'<li><a href="{name}">{html.escape(title)}</a></li>' for name, title in titles.items()
    ]
    place = list(titles).index(here)
    items[place] = items[place].replace('">', '" aria-current="page">', 1)
    items[place] = items[place].replace("</li>", f"\n<ol>\n{inside}</ol></li>")
    return "\n".join(items)


def policy(programs: list[str]) -> str:
    """What the page may load: nothing of the network, and no script but its own and search.js.

    Firefox does not take a file beside the page for 'self', so that is named, too.
    """
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in programs]
    scripts = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src 'self' file: blob: {scripts}"
    )


def part(name: str) -> str:
    """A file of the folder beside this one."""
    return (PARTS / name).read_text(encoding="utf-8")


def frame(
    here: str, titles: dict[str, str], about: str, page: Page, body: str, models: dict
) -> str:
    """A whole page."""
    programs = [part(name) for name in PROGRAMS]
    state = json.dumps(models, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(programs)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{html.escape(about)}">
<title>{html.escape(titles[here])}</title>
<style>
{part("page.css")}</style>
</head>
<body>
<a class="skip" href="#main">To the text</a>
<header>
<button type="button" popovertarget="contents">Contents</button>
{part("find.html")}</header>
<nav id="contents" popover aria-label="Contents">
<ol>
{contents(here, titles, page.rooms)}
</ol>
</nav>
{body}
<script type="application/json" id="widgets">{state}</script>
{"".join(f'<script type="module">{text}</script>' for text in programs)}
</body>
</html>
"""


# ---------------------------------------------------------------- pages


def ways(here: str, titles: dict[str, str]) -> str:
    """Links to the page before and to the next one."""
    pages = [(name, html.escape(title)) for name, title in titles.items()]
    place = list(titles).index(here)
    links = [f'<a href="{name}" rel="prev">← {title}</a>' for name, title in pages[:place][-1:]]
    links += [
        f'<a href="{name}" rel="next">{title} →</a>' for name, title in pages[place + 1 :][:1]
    ]
    return "\n".join(links)


def notebook_page(path: Path) -> str:
    """The page of one saved notebook."""
    notebook, here, titles = read(path), f"{path.stem}.html", course(path.parent)
    saved = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    models = {name: model for name, model in saved.items() if "_esm" in model["state"]}
    page = Page()
    cells = "\n".join(cell_html(cell, page, models) for cell in notebook.cells)
    body = f"""<main id="main">
{cells}
</main>
<footer class="ways">
{ways(here, titles)}
</footer>"""
    return frame(here, titles, introduction(notebook)[1], page, body, models)


def entry(path: Path, page: Page) -> str:
    """One notebook in the list: title, promise, minutes."""
    title, promise, *rest = introduction(read(path))
    minutes = re.search(r"\*\*Reading time\*\*: (\d+ minutes)", "\n".join(rest))
    time = f'<p class="quiet">{minutes[1]}</p>' if minutes else ""
    name = html.escape(title)
    return f'<li><a href="{path.stem}.html">{name}</a>\n{page.read(promise)}{time}</li>'


WELCOME = """One attention head, alive, with every number in sight: write *laptop* in place of
*banana* and watch what becomes of *apple*; then click a number to see where it comes from, or drag
it and see what follows."""
ORDER = """## The notebooks

Each page is a notebook as it ran, and its widgets work here. To run its code and do its exercises,
open it in Colab by the link at its top, or [start](#start) on your own machine. Begin with 00: each
notebook builds on those before.
"""


def apple(**chosen) -> Machine:
    """The machine open at a head, on *apple*."""
    words = "the shop sells apple and banana"
    return Machine(APPLE, words, APPLE_WORDS, at="attention/head", asker="apple", **chosen)


def alive(widgets: dict) -> tuple[str, dict]:
    """Widgets by their names as HTML, and their saved state."""
    shown, models = [], {}
    for name, widget in widgets.items():
        models[name] = dependency_state([widget], drop_defaults=False)[widget.model_id]
        del models[name]["state"]["layout"]  # a name that is another one in every run
        data, told = widget._repr_mimebundle_()
        data[VIEW] = {"model_id": name}
        shown.append(output_html({"data": data, "metadata": told}, models))
    return "\n".join(shown), models


def index_page(folder: Path = NOTEBOOKS) -> str:
    """The machine to touch, then the README, with a list of the notebooks instead of its table."""
    title, first, rest = readme()
    page, (machine, models) = Page(), alive({"apple": apple()})
    texts = (f"# {title}\n\n{WELCOME}", first, ORDER, rest)
    top, about_all, list_of_all, more = (page.read(text) for text in texts)
    entries = "\n".join(entry(path, page) for path in lessons(folder))
    body = f"""<main id="main" class="text">
{top}
{machine}
{about_all}
{list_of_all}
<ol class="course">
{entries}
</ol>
{more}
</main>"""
    about = " ".join(first.split("\n\n")[0].split())
    return frame("index.html", course(folder), about, page, body, models)


# ---------------------------------------------------------------- what the search knows

MATH = re.compile(r"<math.*?</math>", re.DOTALL)
HEADING = re.compile(r"<h\d.*?</h\d>", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w{2,}")
SEEDS = r"torch\.(?:manual_seed|set_num_threads)\("  # in every notebook, and about nothing
LEFT_OUT = re.compile(rf"import |from |%|if .google|assert |{SEEDS}|\w+ = check\(")
ANSWER = re.compile(r"<details>.*?</details>", re.DOTALL)  # folded until somebody has tried


def in_line(item) -> str:
    """A formula as one writes it in a line: √d_k, e^x."""
    parts = [in_line(inner) for inner in item] or [item.text or ""]
    if item.tag == "msubsup":
        return "{}_{}^{}".format(*parts)
    sign = {"msub": "_", "munder": "_", "msup": "^", "mover": "^", "mfrac": "/"}.get(item.tag, "")
    return ("√" if item.tag == "msqrt" else "") + sign.join(parts)


def sentences(markup: str) -> list[str]:
    """What stands in a piece of a page, one sentence or line each."""
    text = " ".join(markup.split())
    text = MATH.sub(lambda found: html.escape(in_line(ElementTree.fromstring(found[0]))), text)
    text = re.sub(r"<[^>]+>", "", re.sub(r"</(?:p|li|h\d|tr|pre)>", "\n", text))
    lines = [line.strip() for line in html.unescape(text).splitlines()]
    return [told for line in lines for told in re.split(r"(?<=[.!?]) (?=[^\Wa-z])", line) if told]


def statements(code: str) -> list[str]:
    """The lines of a cell that name something, but for imports, seeds, checks and asserts."""
    lines = [line.partition("# fmt:")[0].strip() for line in code.splitlines()]
    return [line for line in lines if NAME.search(line) and not LEFT_OUT.match(line)]


def told(path: Path) -> list:
    """What a notebook says and computes, room by room: [heading, [[place, is code, text], …]]."""
    first, *cells = read(path).cells
    page, (title, promise, *_) = Page(), first.source.split("\n\n")
    rooms = [
        [sentences(page.read(title))[0], [["main", 0, "\n".join(sentences(page.read(promise)))]]]
    ]
    for cell in cells:
        is_code = cell.cell_type == "code"
        heading, text = apart("" if is_code else page.read(ANSWER.sub("", cell.source)))
        if heading:
            rooms.append([heading, []])
        is_stub = is_code and cell.source.endswith("...")  # what is asked stands in the task
        lines = statements("" if is_stub else cell.source) if is_code else sentences(text)
        if lines and not cell.metadata.get("jupyter"):  # what is folded gives nothing away
            rooms[-1][1].append([f"cell-{cell.id}", int(is_code), "\n".join(lines)])
    return rooms


def apart(markup: str) -> tuple[str, str]:
    """The last heading in a piece of a page, and the piece without its headings."""
    *_, heading = ["", *HEADING.findall(markup)]
    return " ".join(sentences(heading)), HEADING.sub("", markup)


def told_by_readme() -> list:
    """What the first page says, in the same form."""
    (title, *texts), page = readme(), Page()
    pieces = re.split(r"(?=<h2 )", "".join(page.read(text) for text in texts))
    rooms = []
    for place, piece in zip(["main", *page.rooms], pieces, strict=True):
        heading, text = apart(piece)
        rooms.append([heading or title, [[place, 0, "\n".join(sentences(text))]]])
    return rooms


def index(folder: Path = NOTEBOOKS) -> str:
    """The file search.js: of every page its file, its title, and what it says."""
    rooms = [told_by_readme(), *(told(path) for path in lessons(folder))]
    pages = [[*page, found] for page, found in zip(course(folder).items(), rooms, strict=True)]
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    return f"window.course = {unicodedata.normalize('NFD', text)};\n"


def build(folder: Path = NOTEBOOKS, site: Path = ROOT / "site") -> None:
    """Write all pages and what the search knows; remove the pages of notebooks that are gone."""
    pages = {f"{path.stem}.html": notebook_page(path) for path in lessons(folder)}
    pages["index.html"] = index_page(folder)
    site.mkdir(exist_ok=True)
    for old in {path.name for path in site.glob("*.html")} - set(pages):
        (site / old).unlink()
    for name, text in {**pages, "search.js": index(folder)}.items():
        (site / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{site / 'index.html'} and {len(pages) - 1} notebooks")


if __name__ == "__main__":
    build()
