"""What cells show, on its way to the page: one message a piece, as the worker posts it."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

VIEW = "application/vnd.jupyter.widget-view+json"
MOST = 1_000_000  # letters that one cell may print: a page is no place for more


class Page:
    """Where messages go. The worker sets `send`; a `captured` list keeps what would be shown."""

    send: Callable[[str], None] = print
    captured: list[SimpleNamespace] | None = None
    widgets: ClassVar[dict[str, Any]] = {}  # by the names of their models


def post(kind: str, **told: Any) -> None:
    """Tell the page something, as JSON."""
    Page.send(json.dumps({"kind": kind, **told}))


def display(*values: Any, raw: bool = False, metadata: dict | None = None, **_: Any) -> None:
    """Show values as IPython does; `raw` ones are given by their media types."""
    for value in values:
        if not raw and (own := getattr(value, "_ipython_display_", None)):
            own()
            continue
        data, told = (value, metadata or {}) if raw else bundle(value)
        data = {kind: as_text(content) for kind, content in data.items()}
        if Page.captured is not None:
            Page.captured.append(SimpleNamespace(data=data, metadata=told))
            continue
        model = data.get(VIEW, {}).get("model_id")
        state = Page.widgets[model].tab_state() if model else None
        post("display", data=data, metadata=told, model=model, state=state)


def bundle(value: Any) -> tuple[dict, dict]:
    """The data and the metadata of a value, by the methods that IPython looks for."""
    if show := getattr(value, "_repr_mimebundle_", None):
        made = show()
        return made if isinstance(made, tuple) else (made, {})
    if show := getattr(value, "_repr_html_", None):
        return {"text/html": show(), "text/plain": repr(value)}, {}
    return {"text/plain": repr(value)}, {}


def as_text(content: Any) -> Any:
    """Bytes in base 64, everything else as it is."""
    return base64.b64encode(content).decode() if isinstance(content, bytes) else content


@contextmanager
def capture_output(stdout: bool = True, stderr: bool = True, display: bool = True) -> Iterator:
    """Keep what a block displays, as `IPython.utils.capture` does."""
    before, Page.captured = Page.captured, []
    try:
        yield SimpleNamespace(outputs=Page.captured)
    finally:
        Page.captured = before


class Stream(io.TextIOBase):
    """What a cell prints, up to MOST letters."""

    def __init__(self) -> None:
        self.left = MOST

    def write(self, text: str) -> int:
        if self.left > 0:
            end = "" if len(text) <= self.left else "\n… and more, which is not shown."
            post("stream", text=text[: self.left] + end)
        self.left -= len(text)
        return len(text)
