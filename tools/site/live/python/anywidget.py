"""As much of anywidget as the course's widgets use: synchronised traits, without a kernel."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import traitlets
from tab.outputs import VIEW, Page, as_text, post


class AnyWidget(traitlets.HasTraits):
    """A widget whose traits tagged `sync` are the same here and in the page."""

    _esm = ""

    def __init__(self, **values: Any) -> None:
        self.tab_id, self.tab_heard, self.tab_told = uuid.uuid4().hex, [], None
        super().__init__(**values)
        Page.widgets[self.tab_id] = self
        self.observe(self._tab_tell, [*self.traits(sync=True)])

    def tab_state(self) -> dict:
        """What the page needs to draw it."""
        state = {name: getattr(self, name) for name in self.traits(sync=True)}
        return packed(state | {"_esm": self._esm})

    def tab_receive(self, values: dict) -> None:
        """Take what the page has set; what its checks make of it goes back."""
        for name, value in values.items():
            self.tab_told = (name, value)
            try:
                setattr(self, name, value)
            finally:
                self.tab_told = None

    def tab_hear(self, message: Any) -> None:
        """A message of the page."""
        for heard in self.tab_heard:
            heard(self, message, [])

    def on_msg(self, heard: Callable) -> None:
        self.tab_heard.append(heard)

    def send(self, content: Any, buffers: Sequence[bytes] = ()) -> None:
        told = [as_text(bytes(each)) for each in buffers]
        post("message", model=self.tab_id, content=content, buffers=told)

    def _tab_tell(self, change: Any) -> None:
        if self.tab_told != (change.name, change.new):
            post("state", model=self.tab_id, **packed({change.name: change.new}))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        return {VIEW: {"model_id": self.tab_id}}, {}


def packed(state: dict) -> dict:
    """A state as saved notebooks have it: bytes apart, in base 64, each with its path."""
    buffers = []

    def walk(x: Any, path: list) -> Any:
        if isinstance(x, bytes | memoryview):
            buffers.append({"encoding": "base64", "path": path, "data": as_text(bytes(x))})
            return None
        if isinstance(x, dict):
            return {key: walk(value, [*path, key]) for key, value in x.items()}
        if isinstance(x, list | tuple):
            return [walk(value, [*path, i]) for i, value in enumerate(x)]
        return x

    return {"state": walk(state, []), "buffers": buffers}
