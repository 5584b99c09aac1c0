"""Turn the saved notebooks into pages that need no server, no network and no kernel.

    python tools/site.py  write site/index.html, one site/NN_name.html per notebook, site/search.js

nbconvert puts a notebook into site/page.html, beside this file: sections lie in sections, and each
code cell tells its number, its kind and its source. Formulas are MathML, pictures lie inside, and
host.js brings the widgets to life. search.js is minisearch with what all pages say. Where
tools/live.py has put Python into site/live, the pages run their cells.
"""

import base64
import hashlib
import html
import json
import re
from collections import Counter
from itertools import chain, count, pairwise
from pathlib import Path

import latex2mathml.converter
import nbformat
from ipywidgets.embed import dependency_state
from nbconvert.exporters import TemplateExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from helpers.examples import APPLE, APPLE_WORDS
from workshop import Machine

ROOT = Path(__file__).resolve().parents[1]
PARTS = Path(__file__).with_suffix("")  # the folder with the pages' template, style and programs
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
EXPORTER = TemplateExporter(template_file=str(PARTS / "page.html"))

SPACES = {  # thin ones around the name of a function, unless a bracket follows
    r"(\\(?:sin|cos|log|ln)) ?(?=\w|\\(?!left|!))": r"\1\\,",
    r"(\w) (?=\\(?:sin|cos))": r"\1\\,",
}
REPAIRS = {  # what browsers do not set as TeX does
    r"&#x0*(?!26|3[CE])(\w+);": lambda found: chr(int(found[1], 16)),
    r"<mo>([A-Za-z]{2,})</mo>": r"<mi>\1</mi>",  # a name is no sign: it has no space around it
    r"<mi>([·×])</mi>": r"<mo>\1</mo>",
    r"<mo>∞</mo>": "<mi>∞</mi>",
    r"<mo[^>]*>([|/])</mo>": r'<mo lspace="0" rspace="0">\1</mo>',
}


def repaired(text: str, repairs: dict) -> str:
    """A text in which every pattern is replaced."""
    for pattern, new in repairs.items():
        text = re.sub(pattern, new, text)
    return text


def mathml(tex: str, display: str = "inline") -> str:
    """Turn a TeX formula into MathML, which browsers show without a program."""
    made = latex2mathml.converter.convert(repaired(tex.strip(), SPACES), display=display)
    if unknown := re.search(r"\\\w+", made):
        raise ValueError(f"formula {tex!r}: {unknown[0]} is not known")
    return repaired(made, REPAIRS).replace(">", f' alttext="{html.escape(tex.strip())}">', 1)


def link(target: str) -> str:
    """Where a link of a notebook or of the README leads on the site."""
    path, mark, anchor = target.partition("#")
    if ":" in path:
        return target
    if path and not path.endswith((".ipynb", "README.md")):
        project = re.search(r'Repository = "(.*)"', (ROOT / "pyproject.toml").read_text("utf-8"))
        return f"{project[1]}/blob/main/{target}"
    page = Path(path).name.replace("README.md", "index.html").replace(".ipynb", ".html")
    return f"{page}{mark}{anchor.lower()}"


class Renderer(IPythonRenderer):
    """Markdown as on these pages: MathML, links of the site, words for pictures, wide tables."""

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return f'<span class="formula">{mathml(body, "block")}</span>'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        made = super().link(text, link(url), title)
        return made.replace('href="https://colab.', 'class="button" href="https://colab.')

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return html.escape(text)

    def table(self, text: str) -> str:
        text = re.sub(r"<th[^>]*></th>", "<td></td>", text)
        return f'<div class="wide"><table>\n{text}</table></div>\n'


def markdown(text: str) -> str:
    """Markdown as HTML."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(text)


HEADING = re.compile(r"```.*?```|^(#+) ([^\n]+)", re.MULTILINE | re.DOTALL)
KINDS = {  # of a code cell: the first whose pattern is found in it
    "setup": r'^if "google\.colab" in ',
    "check": r"^(\w+) = check\(\1\)$",
    "exercise": r"\.\.\.\Z",
    "question": r"^predict\(",
}


def kind(cell) -> str:
    """What a code cell is for: one of KINDS, else hidden (an answer) or lesson."""
    found = (name for name, of in KINDS.items() if re.search(of, cell.source, re.MULTILINE))
    return next(found, "hidden" if "jupyter" in cell.metadata else "lesson")


def coded(cell) -> list:
    """A code cell, with its kind and its source in colours."""
    code = highlight(cell.source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True))
    caption = re.match("# @title (.+)", cell.source)
    folded = (caption[1] if caption else "The code") if "jupyter" in cell.metadata else ""
    told = {"kind": kind(cell), "html": code.rstrip("\n"), "folded": folded}
    return [new_code_cell(cell.source, id=cell.id, outputs=cell.outputs, metadata=told)]


def pieces(cell) -> list:
    """A Markdown cell cut before its headings; each piece with its heading, and as HTML."""
    heads = {found.start(): found for found in HEADING.finditer(cell.source) if found[1]}
    made = []
    for start, end in pairwise([*sorted({0, *heads}), len(cell.source)]):
        level, title = heads[start].groups() if start in heads else ("", "")
        text = cell.source[start:end].removeprefix(f"{level} {title}").strip()
        # The id of a room is the one that GitHub gives a heading; a formula counts for nothing.
        room = re.sub(r"\$.*?\$|[^\w\- ]", "", title.lower()).replace(" ", "-")
        heading = markdown(title).strip().removeprefix("<p>").removesuffix("</p>")
        told = {"level": len(level), "room": room, "heading": heading, "html": markdown(text)}
        told["closed"] = "jp-MarkdownHeadingCollapsed" in cell.metadata and not made
        name = f"{cell.id}-{len(made)}" if made else cell.id
        made.append(new_markdown_cell(text, id=name, metadata=told))
    return made


def cut(notebook):
    """The notebook as the template asks for it: a heading opens a section and closes others.

    A section that the notebook closes lies in <details> too.
    """
    parts = [(coded if c.cell_type == "code" else pieces)(c) for c in notebook.cells]
    cells, ends, ids, numbers = [*chain(*parts)], {}, Counter(), count(1)
    for cell in cells:
        if cell.cell_type == "code":
            cell.execution_count = next(numbers)
        elif level := cell.metadata.level:
            inner = [ends.pop(other) for other in [*ends][::-1] if other >= level]
            cell.metadata.closes = "".join(inner)
            ends[level] = "\n</details>" * cell.metadata.closed + "\n</section>"
            ids[cell.metadata.room] += 1
            if (again := ids[cell.metadata.room]) > 1:
                cell.metadata.room += f"-{again - 1}"
    return new_notebook(cells=cells, metadata={"closes": "".join([*ends.values()][::-1])})


WELCOME = """One attention head, alive, with every number in sight: write *laptop* in place of
*banana* and watch what becomes of *apple*; then click a number to see where it comes from, or drag
it and see what follows."""


def introduction(notebook) -> tuple[str, str]:
    """The title of a notebook, and its promise."""
    title, promise, *_ = notebook.cells[0].source.split("\n\n")
    return title.removeprefix("# "), promise


def apple(**chosen) -> Machine:
    """The machine open at a head, on *apple*."""
    words = "the shop sells apple and banana"
    return Machine(APPLE, words, APPLE_WORDS, at="attention/head", asker="apple", **chosen)


def alive(**widgets):
    """A notebook of widgets, each under its name and without a source."""
    cells, state = [], {}
    for name, widget in widgets.items():
        state[name] = dependency_state([widget], drop_defaults=False)[widget.model_id]
        del state[name]["state"]["layout"]  # a name that is another one in every run
        data, told = widget._repr_mimebundle_()
        shown = new_output("display_data", data | {VIEW: {"model_id": name}}, metadata=told)
        cells.append(new_code_cell(id=name, outputs=[shown]))
    return new_notebook(cells=cells, metadata={"widgets": {STATE: {"state": state}}})


def welcome():
    """The machine to touch, then the README without its pictures of it and their first lines."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"[^\n]+\n\n!\[[^\]]*\]\(\.github/[^)]*\)\n\n", "", text)
    text = re.sub(r"\*\*\[Read and run it[^\n]+\n[^\n]+\n\n", "", text)  # here it is
    title, rest = text.split("\n", maxsplit=1)
    notebook = alive(apple=apple())
    notebook.cells.insert(0, new_markdown_cell(f"{title}\n\n{WELCOME}", id="welcome"))
    notebook.cells.append(new_markdown_cell(rest, id="readme"))
    return notebook


def course(folder: Path) -> dict:
    """What becomes a page, in order: {file: notebook}; the first is the README."""
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    return {"index.html": welcome()} | {f"{p.stem}.html": nbformat.read(p, 4) for p in lessons}


def part(name: str) -> str:
    """A file of the folder beside this one."""
    return (PARTS / name).read_text(encoding="utf-8")


def digest(program: str) -> str:
    """By which the page knows a script that it may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()}'"


def page(notebooks: dict, here: str, live: str = "") -> str:
    """The page of one of the notebooks; it lists them all. `live`: where its cells' Python lies."""
    notebook, scripts = notebooks[here], map(part, ("contents.js", "find.js", "host.js"))
    saved = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    models = {name: model for name, model in saved.items() if "_esm" in model["state"]}
    state = json.dumps(models, ensure_ascii=False).replace("<", "\\u003c")
    titles = {name: introduction(other)[0] for name, other in notebooks.items()}
    told = {"here": here, "titles": titles, "about": introduction(notebook)[1], "view": VIEW}
    style = part("page.css") + (part("live/live.css") if live else "")
    told |= {"models": models, "state": state, "style": style, "live": live}
    told |= {"programs": {digest(text): text for text in scripts}}
    return EXPORTER.from_notebook_node(cut(notebook), told)[0]


UNNAMED = r"import |from |%|if .google|assert |print\(|torch\.manual_seed|\w+ = check\(|\W*$"
PLAIN = {  # from HTML to the text of its lines
    r"<details>.*?</details>": "",  # folded until somebody has tried
    r'<math[^>]* alttext="(.*?)".*?</math>': lambda found: in_line(found[1]),
    r"</(?:p|li|h\d|tr|pre)>": "\n",
    r"<[^>]+>": "",
}


def in_line(tex: str) -> str:
    """A formula as one writes it in a line: √d_k."""
    told = tex.replace(r"\sqrt", "√").replace("}{", "/")
    return re.sub(r"\\(?:left|right|operatorname|mathrm|text|frac|[,;!])|[\\{}]", "", told)


def sentences(markup: str) -> list[str]:
    """What stands in a piece of a page, one sentence or line each."""
    lines = html.unescape(repaired(" ".join(markup.split()), PLAIN)).splitlines()
    found = [told for line in lines for told in re.split(r"(?<=[.!?]) (?=[^\Wa-z])", line.strip())]
    return [told for told in found if told]


def statements(cell) -> list[str]:
    """The lines of a cell that name something; none of a stub, nor of what is folded."""
    if cell.metadata.kind in ("exercise", "question", "hidden"):
        return []
    lines = [line.partition("# fmt:")[0].strip() for line in cell.source.splitlines()]
    return [line for line in lines if not re.match(UNNAMED, line)]


def told(notebook) -> list:
    """What it says, section by section: [id, heading, [[place, is code, lines], …]]."""
    rooms = []
    for cell in cut(notebook).cells:
        is_code = cell.cell_type == "code"
        if cell.metadata.get("level"):
            rooms.append([cell.metadata.room, " ".join(sentences(cell.metadata.heading)), []])
        if lines := statements(cell) if is_code else sentences(cell.metadata.html):
            rooms[-1][2].append([f"cell-{cell.id}", int(is_code), "\n".join(lines)])
    return rooms


def search(notebooks: dict) -> str:
    """The file search.js: minisearch, and of every page its file, its title, and what it says."""
    pages = [[name, introduction(book)[0], told(book)] for name, book in notebooks.items()]
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    return f"{part('minisearch.js')}\nwindow.course = {text};\n"


def build(folder: Path = ROOT / "notebooks", site: Path = ROOT / "site") -> None:
    """Write all pages and what the search knows; remove the pages of notebooks that are gone."""
    notebooks = course(folder)
    live = "".join(f"live/{path.name}/" for path in site.glob("live/*"))  # one, or none
    made = {name: page(notebooks, name, live) for name in notebooks}
    made["search.js"] = search(notebooks)
    site.mkdir(exist_ok=True)
    for old in {path.name for path in site.glob("*.html")} - set(made):
        (site / old).unlink()
    for name, text in made.items():
        (site / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{site / 'index.html'} and {len(notebooks) - 1} notebooks")


if __name__ == "__main__":
    build()
