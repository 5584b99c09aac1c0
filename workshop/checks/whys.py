"""Say where a change of an answer stands, in the learner's own line, and why it is needed."""

import ast
import copy
import difflib
import itertools
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from workshop.checks.syntax import MODULES
from workshop.exercises.exercise import Exercise, Why

OPERANDS = {
    ast.Div: ("the dividend", "the divisor"), ast.FloorDiv: ("the dividend", "the divisor"),
    ast.Pow: ("the base", "the exponent"), ast.Mult: ("the first factor", "the second factor"),
    ast.MatMult: ("the left factor of @", "the right factor of @"),
    ast.Sub: ("what is subtracted from", "what is subtracted"),
    ast.Add: ("the first summand", "the second summand"),
}  # fmt: skip
KINDS = {
    "order": "the order", "brackets": "the brackets", "comparison": "the comparison",
    "operator": "the operator", "sign": "the sign", "lines": "the order of the lines",
    "indent": "what stands inside the block", "exchange": "two parts stand exchanged",
    "overwritten": "what is overwritten", "range": "the range",
    "assignment": "the assignment", "return": "what is returned",
}  # fmt: skip
COPY = "An argument belongs to whoever calls the function: change a copy, not the thing itself."
ENOUGH = 0.4  # of a why's weight, for it to be meant


@dataclass(frozen=True)
class Repair:
    """One change that makes an answer pass every test.

    `line` counts as the cell does, `before` and `after` are code, "" for no line;
    `place` says in words which part it is, `why` what it is for ("" where nothing fits). `also` is
    the second change where one was not enough.
    """

    line: int
    before: str
    after: str
    place: str
    why: str
    also: "Repair | None" = None


@dataclass(frozen=True)
class Change:
    """A change in terms of the answer's source: lines count from its `def`."""

    kind: str
    line: int
    before: str
    after: str
    old: str  # the smallest part that differs, before and after
    new: str
    place: str
    unused: str = ""  # an argument that the answer never reads, and the changed one does
    also: "Change | None" = None

    def fields(self) -> dict:
        return asdict(self)

    @classmethod
    def of(cls, fields: dict) -> "Change":
        also = fields.pop("also")
        return cls(**fields, also=cls.of(also) if also else None)

    def told(self, first_line: int, known: Exercise) -> Repair:
        """The repair that a learner reads; `first_line` is where the answer begins in its cell."""
        also = self.also and self.also.told(first_line, known)
        line, why = first_line + self.line - 1, why_of(self, known)
        place = f"{self.place} ({found})" if (found := nature(self)) else self.place
        return Repair(line, self.before, self.after, place, why, also)


Above = tuple[tuple[ast.AST, str], ...]  # the nodes around one, and in which field it stands

# ---------------------------------------------------------------- what differs


def change_of(kind: str, old: ast.FunctionDef, new: ast.FunctionDef, source: str) -> Change | None:
    """What differs between an answer and the changed one, None for nothing."""
    before, after = list(headers(old)), list(headers(new))
    texts = [t for _, t in before], [t for _, t in after]
    steps = difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes()
    spans = [s[1:] for s in steps if s[0] != "equal"]
    if not spans:
        return None
    i, j, k, m = spans[0][0], spans[-1][1], spans[0][2], spans[-1][3]
    if (j - i, m - k) == (1, 1) and before[i][1].strip() != after[k][1].strip():
        unused = min(argument_reads(new) - argument_reads(old), default="")
        return part_of(kind, before[i][0], after[k][0], source, new, unused)
    node = before[min(i, len(before) - 1)][0]
    was, made = both_versions(before[i:j], texts[1][k:m], source)
    place = KINDS.get(kind, whole(was, made, i == len(before)))
    return Change(kind, node.lineno, was, made, was, made, place)


def both_versions(gone: list, new: list[str], source: str) -> tuple[str, str]:
    """Whole lines as the learner wrote them, and as they are then; what moved keeps its margin."""
    own = source.splitlines()
    lines = sorted({line for node, _ in gone for line in lines_of(node)})
    was = textwrap.dedent("\n".join(own[n - 1] for n in lines))
    made = "\n".join(new)
    if was.strip() == textwrap.dedent(made).strip():
        return "\n".join(own[n - 1][4:] for n in lines), made
    return was, textwrap.dedent(made) if gone else made


def part_of(
    kind: str, a: ast.stmt, b: ast.stmt, source: str, new: ast.FunctionDef, unused: str
) -> Change:
    """What differs inside a statement: its smallest part, in the line where that stands."""
    was, made = both_versions([(a, "")], [next(_headers(b, ""))[1]], source)
    x, y, above = smallest(a, b)
    line = getattr(x, "lineno", a.lineno)
    if (spliced := splice(x, y, source, new)) is not None:
        was, made = source.splitlines()[line - 1].strip(), spliced[line - 1].strip()
    old_part, new_part = (enclosed(node, above) for node in (x, y))
    return Change(kind, line, was, made, old_part, new_part, role(kind, x, y, above), unused)


def enclosed(node: ast.AST, above: Above) -> str:
    """The code of a node; of a bare number with the argument or the function it goes into."""
    bare = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(bare, ast.Constant | ast.Name) or not above:
        return code(node)
    keyword = next((n for n, _ in above[:2] if isinstance(n, ast.keyword)), None)
    if keyword is not None:
        return f"{keyword.arg}={code(node)}"
    call = next((n for n, field in above[:2] if isinstance(n, ast.Call) and field == "args"), None)
    if call is not None:
        return f"{code(call.func)}({code(node)})"
    part = next((n for n, _ in above[:3] if isinstance(n, ast.Subscript)), None)
    if part is not None:
        return f"{code(part.value)}[{code(node)}]"
    around, field = above[0]
    if not isinstance(around, ast.BinOp):
        return code(node)
    around = copy.copy(around)
    setattr(around, field, node)
    return code(around)


def argument_reads(function: ast.FunctionDef) -> set[str]:
    """The parameters that are read."""
    names = {arg.arg for arg in function.args.args}
    return {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)} & names


def whole(was: str, made: str, at_the_end: bool) -> str:
    """What is the matter with whole lines."""
    if not was:
        return f"a step is missing {'after' if at_the_end else 'before'} it"
    return "these lines" if "\n" in was else "this line" if made else "it is too much"


def lines_of(node: ast.stmt) -> range:
    """The lines of a statement: of a loop or an `if` the first."""
    return range(node.lineno, (node.lineno if hasattr(node, "body") else node.end_lineno) + 1)


def headers(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement with its own text, indented: of a loop or an `if` the first line only."""
    for statement in function.body:
        yield from _headers(statement, "")


def _headers(node: ast.stmt, indent: str) -> Iterator[tuple[ast.stmt, str]]:
    inner = [s for name in ("body", "orelse") for s in getattr(node, name, [])]
    whole = ast.unparse(node)
    yield node, indent + (whole.partition("\n")[0] if inner else whole)
    for statement in inner:
        yield from _headers(statement, indent + "    ")


def smallest(a: ast.AST, b: ast.AST, above: Above = ()) -> tuple[ast.AST, ast.AST, Above]:
    """The smallest pair of nodes that holds all that differs, with what stands around it."""
    if type(a) is not type(b):
        return a, b, above
    different = [(f, x, y) for f, x, y in fields_of(a, b) if _dump(x) != _dump(y)]
    if len(different) == 1 and all(isinstance(x, ast.expr | ast.keyword) for x in different[0][1:]):
        field, x, y = different[0]
        return smallest(x, y, ((a, field), *above))
    return a, b, above


def fields_of(a: ast.AST, b: ast.AST) -> Iterator[tuple[str, object, object]]:
    """The fields of two nodes side by side, lists of one length entry by entry."""
    for field in a._fields:
        x, y = getattr(a, field, None), getattr(b, field, None)
        if field in ("body", "orelse") and isinstance(a, ast.stmt):
            continue
        if isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
            yield from ((field, *pair) for pair in zip(x, y, strict=True))
        else:
            yield field, x, y


def _dump(x: object) -> str:
    if isinstance(x, list):
        return repr([_dump(y) for y in x])
    return ast.dump(x) if isinstance(x, ast.AST) else repr(x)


def code(node: object) -> str:
    """The text of a node, also of an operator or a keyword."""
    return ast.unparse(node) if isinstance(node, ast.AST) else str(node)


def splice(a: ast.AST, b: ast.AST, source: str, new: ast.FunctionDef) -> list[str] | None:
    """The learner's source with one part replaced and the rest as it was written."""
    if not hasattr(a, "end_lineno") or a.lineno != a.end_lineno:
        return None
    for text in (code(b), f"({code(b)})"):
        lines = source.splitlines()
        row = lines[a.lineno - 1].encode()
        lines[a.lineno - 1] = (
            row[: a.col_offset] + text.encode() + row[a.end_col_offset :]
        ).decode()
        try:
            made = ast.parse("\n".join(lines)).body[0]
        except SyntaxError:
            continue
        if [t for _, t in headers(made)][-len(list(headers(new))) :] == [
            t for _, t in headers(new)
        ]:
            return lines
    return None


# ---------------------------------------------------------------- where, in words


def role(kind: str, a: ast.AST, b: ast.AST, above: Above) -> str:
    """What part of the line it is that differs."""
    keyword = next((x for x in (a, *(n for n, _ in above[:1])) if isinstance(x, ast.keyword)), None)
    if keyword is not None:
        return f"the argument `{keyword.arg}`"
    if isinstance(a, ast.Call) and isinstance(b, ast.Call) and kind == "argument":
        own, new = {code(k) for k in a.keywords}, {code(k) for k in b.keywords}
        more = [k.arg for k in (*b.keywords, *a.keywords) if code(k) in own ^ new]
        return f"the argument `{more[0]}`" if more else f"the arguments of `{short(a.func)}`"
    if kind == "order" and isinstance(a, ast.Call):
        return f"the order in `{short(a)}`"
    return KINDS.get(kind) or standing(a, above)


def standing(a: ast.AST, above: Above) -> str:
    """A part by what it is to the operation around it; for the x of x.shape[-1] the whole."""
    while above and (_is_chain(*above[0]) or isinstance(above[0][0], ast.UnaryOp)):
        (a, _), *rest = above
        above = tuple(rest)
    around, field = above[0] if above else (None, "")
    if isinstance(around, ast.keyword):
        return f"the argument `{around.arg}`"
    if isinstance(around, ast.BinOp) and type(around.op) in OPERANDS:
        return OPERANDS[type(around.op)][field == "right"]
    if isinstance(around, ast.Call) and field in ("args", "func"):
        return (
            f"the function `{short(a)}`"
            if field == "func"
            else f"what goes into `{short(around.func)}`"
        )
    if isinstance(around, ast.Subscript) and field == "slice":
        return f"the index of `{short(around.value)}`"
    return f"`{short(a)}`"


def _is_chain(node: ast.AST, field: str) -> bool:
    return field == "value" and isinstance(node, ast.Attribute | ast.Subscript)


def short(node: ast.AST) -> str:
    """The code of a node, cut where it is long."""
    text = code(node)
    return text if len(text) <= 30 else text[:27] + "…"


# ---------------------------------------------------------------- why


def words(text: str) -> Counter:
    """The words and signs of a piece of code, and neighbours that belong together."""
    found = re.findall(r"[A-Za-z_]\w*|\d+\.?\d*(?:e-?\d+)?|\*\*|//|[-+*/@~<>=!|&%]=?", text)
    found = [f"{float(w):g}" if w[0].isdigit() else w for w in found]
    pairs = [" ".join(pair) for pair in itertools.pairwise(found)]
    return Counter(found) + Counter(pairs)


def why_of(change: Change, known: Exercise) -> str:
    """The why of the expression that a change touches or puts in, "" where none fits."""
    if change.kind == "copy":
        return COPY
    spelt = [(why, words(s)) for why in known.whys for s in why.code]
    common = Counter(w for why in known.whys for w in {w for s in why.code for w in words(s)})
    old, new = words(change.old), words(change.new)
    before, after = words(change.before), words(change.after)
    touched = (new - old) + (old - new)

    def weight(found: Counter) -> float:
        return sum(1 / common[w] if common[w] else 0 for w in found)

    def fits(why: Why, own: Counter) -> float:
        total = weight(own) or math.inf
        parts = ((touched, 1.0), (new, 0.5), (old, 0.4), ((after - before) + (before - after), 0.3),
                 (after, 0.15), (before, 0.1))  # fmt: skip
        return sum(share * weight(own & bag) for bag, share in parts) / total + put_in(change, why)

    named = {w for w in touched | new | old if (w[0].isalpha() or w[0] == "_") and w not in MODULES}
    meant = [(fits(why, own), why) for why, own in spelt if named & own.keys()]
    best = max(meant, key=lambda found: found[0], default=None)
    return best[1].text if best and best[0] >= ENOUGH else ""


def put_in(change: Change, why: Why) -> float:
    """What it is worth that an expression stands in one version alone, letter by letter."""
    sides = [re.sub(r"\s", "", side) for side in (change.before, change.after)]
    spelt = [re.sub(r"\s", "", code) for code in why.code if len(code) > 3]
    return 0.5 * any((code in sides[0]) != (code in sides[1]) for code in spelt)


OTHER_WAY = [{"==", "!="}, {"<", ">="}, {">", "<="}, {"<", ">"}, {"<=", ">="}]
STRICT = [{"<", "<="}, {">", ">="}]


def nature(change: Change) -> str:
    """What sort of slip a change mends, where it is one of those that everybody makes."""
    came, went = words(change.new) - words(change.old), words(change.old) - words(change.new)
    signs = {w for w in came | went if not w[0].isalnum() and " " not in w}
    if signs in OTHER_WAY or "~" in signs or "not" in came | went:
        return "the condition is inverted, the other way round"
    if signs in STRICT:
        return "it counts one too many or one too few"
    if change.kind in ("constant", "number", "range") and _one_off(change):
        return "it is off by one"
    if change.kind == "order" and re.match(r"\S*where\(| if ", change.old):
        return "the two choices are the wrong way round"
    if change.kind == "part" and (told := _twice(change, went)):
        return told
    return f"`{change.unused}` is never used" if change.unused else ""


def _twice(change: Change, went: Counter) -> str:
    """Say which factor or function goes that stands there once more."""
    factor = re.search(r"([*/@]) ?([A-Za-z_]\w*)$", change.old)
    if factor and factor[0] not in change.new:
        if re.search(rf"{re.escape(factor[1])} ?{factor[2]}\b", change.after):
            return f"`{factor[0]}` stands there twice"
    twice = {w for w in went if f"{w}(" in change.new}
    return f"`{min(twice)}` is applied twice" if twice else ""


def _one_off(change: Change) -> bool:
    """Whether a number grew or shrank by one, or 1 is added or subtracted."""
    try:
        return abs(float(change.new) - float(change.old)) == 1
    except ValueError:
        return change.new in (f"{change.old} + 1", f"{change.old} - 1") or change.kind == "range"
