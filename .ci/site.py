"""Turn the saved notebooks into pages that need no server, no network and no kernel.

    python .ci/site.py    write site/index.html and one site/NN_name.html per notebook

Each page is one file. Formulas are MathML, pictures lie inside, and site/host.js beside this
file brings the widgets to life from their saved state.
"""

import base64
import hashlib
import html
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import latex2mathml.converter
import mistune
import nbformat
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
PARTS = Path(__file__).with_suffix("")  # the folder with the pages' style and script
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"

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
    if not path or ":" in path:
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
        self.ids, self.rooms = Counter(), {}

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
        """A link that works on the site."""
        return super().link(text, link(url), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture of the project lies in the page; for one elsewhere stand its words."""
        if ":" in url:
            return html.escape(text)
        return picture(base64.b64encode((ROOT / url).read_bytes()).decode(), text)

    def table(self, text: str) -> str:
        """A table that scrolls where it is too wide."""
        return f'<div class="wide"><table>\n{text}</table></div>\n'

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
    text = output.get("text", data.get("text/plain", "")).rstrip("\n")
    return shown or data.get("text/html") or f'<pre class="printed">{html.escape(text)}</pre>'


def cell_html(cell, page: Page, models: dict) -> str:
    """One cell with its outputs."""
    if cell.cell_type != "code":
        return f'<div class="text">\n{page.read(cell.source)}</div>'
    code = highlight(cell.source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True))
    source = f'<pre class="code"><code>{code.rstrip()}</code></pre>'
    outputs = "\n".join(output_html(output, models) for output in cell.outputs)
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        source = f"<details><summary>The code</summary>\n{source}\n</details>"
    return "\n".join([f'<div class="cell" data-cell="{cell.id}">', source, outputs, "</div>"])


# ---------------------------------------------------------------- pages


def frame(title: str, about: str, body: str, models: dict) -> str:
    """A whole page. Its policy forbids the network, and every script that is not its own."""
    style, host = ((PARTS / name).read_text(encoding="utf-8") for name in ("page.css", "host.js"))
    digest = base64.b64encode(hashlib.sha256(host.encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}' blob:"
    )
    state = json.dumps(models, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{html.escape(about)}">
<title>{html.escape(title)}</title>
<style>
{style}</style>
</head>
<body>
{body}
<script type="application/json" id="widgets">{state}</script>
<script type="module">{host}</script>
</body>
</html>
"""


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


def ways(path: Path) -> str:
    """Links to the notebook before, to all, and to the next one."""
    paths = sorted({*lessons(path.parent), path})
    here = paths.index(path)
    titles = {p: html.escape(introduction(read(p))[0]) for p in paths[max(here - 1, 0) : here + 2]}
    links = [f'<a href="{p.stem}.html">← {titles[p]}</a>' for p in paths[:here][-1:]]
    links += ['<a href="index.html">All notebooks</a>']
    links += [f'<a href="{p.stem}.html">{titles[p]} →</a>' for p in paths[here + 1 :][:1]]
    return "\n".join(links)


def notebook_page(path: Path) -> str:
    """The page of one saved notebook."""
    notebook = read(path)
    saved = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    models = {name: model for name, model in saved.items() if "_esm" in model["state"]}
    page, (title, promise, *_) = Page(), introduction(notebook)
    cells = "\n".join(cell_html(cell, page, models) for cell in notebook.cells)
    rooms = "\n".join(f'<li><a href="#{name}">{text}</a></li>' for name, text in page.rooms.items())
    body = f"""<header class="ways">
{ways(path)}
</header>
<nav class="rooms" aria-label="Rooms"><ul>
{rooms}
</ul></nav>
<main>
{cells}
</main>
<footer class="ways">
{ways(path)}
</footer>"""
    return frame(title, promise, body, models)


def entry(path: Path, page: Page) -> str:
    """One notebook in the list: title, promise, minutes."""
    title, promise, *rest = introduction(read(path))
    minutes = re.search(r"\*\*Reading time\*\*: (\d+ minutes)", "\n".join(rest))
    time = f'<p class="quiet">{minutes[1]}</p>' if minutes else ""
    name = html.escape(title)
    return f'<li><a href="{path.stem}.html">{name}</a>\n{page.read(promise)}{time}</li>'


def index_page(folder: Path = NOTEBOOKS) -> str:
    """The README, with a list of the notebooks and their promises instead of its table."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"^## The notebooks\n.*?(?=^## )", "", readme, flags=re.MULTILINE | re.DOTALL)
    first, rest = re.split(r"^(?=## )", readme, maxsplit=1, flags=re.MULTILINE)
    title, about = (part.strip() for part in first.split("\n\n")[:2])
    page = Page()
    top, rest = page.read(first), page.read(rest)
    entries = "\n".join(entry(path, page) for path in lessons(folder))
    body = f"""<main class="text">
{top}
<h2 id="the-notebooks">The notebooks</h2>
<ol class="course">
{entries}
</ol>
{rest}
</main>"""
    return frame(title.removeprefix("# "), " ".join(about.split()), body, {})


def build(folder: Path = NOTEBOOKS, site: Path = ROOT / "site") -> None:
    """Write all pages, and remove those of notebooks that are gone."""
    pages = {f"{path.stem}.html": notebook_page(path) for path in lessons(folder)}
    pages["index.html"] = index_page(folder)
    site.mkdir(exist_ok=True)
    for old in {path.name for path in site.glob("*.html")} - set(pages):
        (site / old).unlink()
    for name, text in pages.items():
        (site / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{site / 'index.html'} and {len(pages) - 1} notebooks")


if __name__ == "__main__":
    build()
