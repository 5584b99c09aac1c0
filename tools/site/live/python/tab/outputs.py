"""What cells show, on its way to the page: one message a piece, as the worker posts it."""

import base64
import io
import json
from typing import Any

from js import tell

VIEW = "application/vnd.jupyter.widget-view+json"
WIDGETS: dict[str, Any] = {}  # by the names of their models
MOST = 1_000_000  # letters that one cell may print: a page is no place for more


def post(kind: str, **told: Any) -> None:
    """Tell the page something, as JSON; bytes arrive as bytes."""
    tell(json.dumps({"kind": kind, **told}, default=lambda x: {"base64": as_text(x)}))


def as_text(content: Any) -> Any:
    """Bytes in base 64, text as it is."""
    return base64.b64encode(content).decode() if isinstance(content, bytes) else content


def display(*values: Any, raw: bool = False, metadata: dict | None = None, **_: Any) -> None:
    """Show values as IPython does; `raw` ones are given by their media types."""
    for value in values:
        if not raw and (own := getattr(value, "_ipython_display_", None)):
            own()
            continue
        data, told = (value, metadata or {}) if raw else bundle(value)
        data = {kind: as_text(content) for kind, content in data.items()}
        model = data.get(VIEW, {}).get("model_id")
        state = WIDGETS[model].tab_state() if model else None
        post("display", data=data, metadata=told, model=model, state=state)


def bundle(value: Any) -> tuple[dict, dict]:
    """The data and the metadata of a value, by the methods that IPython looks for."""
    made = {"text/plain": repr(value)}
    if show := getattr(value, "_repr_mimebundle_", None):
        made = show()
    elif show := getattr(value, "_repr_html_", None):
        made["text/html"] = show()
    return made if isinstance(made, tuple) else (made, {})


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
