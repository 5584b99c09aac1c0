"""HTML as a browser would read it: whether it is whole, and what stands in it."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input", "mspace"}


class Markup(HTMLParser):
    """A page or a piece of one: its tags with attributes, its prose, its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.open, self.words, self.prose, self.raw = [], [], "", "", {}
        self.text = text
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"line {self.getpos()[0]}"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw.setdefault(self.open[-1], []).append(data)
            return
        self.words += data
        self.prose += "" if {"pre", "code"} & set(self.open) else data

    def all(self, tag: str) -> list[dict]:
        """The attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    def ids(self) -> list[str]:
        """All ids, in order."""
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]
