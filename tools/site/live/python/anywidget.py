"""As much of anywidget as the course's widgets use: synchronised traits, without a kernel."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import traitlets
from tab.outputs import VIEW, WIDGETS, post


class AnyWidget(traitlets.HasTraits):
    """A widget whose traits tagged `sync` are the same here and in the page."""

    _esm = ""

    def __init__(self, **values: Any) -> None:
        self.tab_id, self.tab_heard, self.tab_told = uuid.uuid4().hex, [], {}
        super().__init__(**values)
        WIDGETS[self.tab_id] = self
        self.observe(self._tab_tell, [*self.traits(sync=True)])

    def tab_state(self) -> dict:
        """What the page needs to draw it."""
        return {name: getattr(self, name) for name in self.traits(sync=True)} | {"_esm": self._esm}

    def tab_set(self, values: dict) -> None:
        """Take what the page has set; what its checks make of it goes back."""
        for name, value in values.items():
            self.tab_told[name] = value
            setattr(self, name, value)

    def tab_hear(self, message: Any) -> None:
        """A message of the page."""
        for heard in self.tab_heard:
            heard(self, message, [])

    def on_msg(self, heard: Callable) -> None:
        self.tab_heard.append(heard)

    def send(self, content: Any, buffers: Sequence[bytes] = ()) -> None:
        post("message", model=self.tab_id, content=content, buffers=[*buffers])

    def _tab_tell(self, change: Any) -> None:
        if self.tab_told.pop(change.name, self) != change.new:
            post("state", model=self.tab_id, state={change.name: change.new})

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        return {VIEW: {"model_id": self.tab_id}}, {}
