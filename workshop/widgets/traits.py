"""What a widget keeps in step with the browser, checked by name also when it is set later."""

from collections.abc import Sequence
from typing import Any

import traitlets

from workshop.arguments import (
    LARGEST,
    MOST,
    as_labels,
    as_list,
    as_number,
    as_switch,
    as_text,
    as_whole,
)


class Number(traitlets.Float):
    """A number that float32 can hold, from `min` to `max`."""

    def __init__(self, default: float = 0.0, min: float = -LARGEST, max: float = LARGEST, **more):
        super().__init__(default, min=min, max=max, **more)

    def validate(self, widget: Any, value: Any) -> float:
        return as_number(self.name, value, self.min, self.max)


class Whole(traitlets.Int):
    """A whole number from `min` to `max`."""

    def __init__(self, default: int = 0, min: int = 0, max: int = MOST, **more: Any):
        super().__init__(default, min=min, max=max, **more)

    def validate(self, widget: Any, value: Any) -> int:
        return as_whole(self.name, value, self.min, self.max)


class Switch(traitlets.Bool):
    """True or False."""

    def validate(self, widget: Any, value: Any) -> bool:
        return as_switch(self.name, value)


class Text(traitlets.Unicode):
    """A string that a file can hold."""

    def validate(self, widget: Any, value: Any) -> str:
        return as_text(self.name, value)


class Choice(Text):
    """One of several strings, by default the first."""

    def __init__(self, options: Sequence[str]):
        super().__init__(options[0])
        self.options = options

    def validate(self, widget: Any, value: Any) -> str:
        if as_text(self.name, value) not in self.options:
            raise ValueError(f"{self.name} is {value!r}, but must be one of {self.options}")
        return value


class Entries(traitlets.List):
    """A list of anything."""

    def set(self, widget: Any, value: Any) -> None:
        super(traitlets.List, self).set(widget, value)  # List would make ["abc"] of "abc"

    def validate(self, widget: Any, value: Any) -> list[Any]:
        return as_list(self.name, value)


class Labels(Entries):
    """A list of strings; the first ones that it is given say how many it needs, if not any."""

    def __init__(self, any_number: bool = False):
        super().__init__()
        self.any_number = any_number

    def validate(self, widget: Any, value: Any) -> list[str]:
        labels, old = as_labels(self.name, value), widget._trait_values.get(self.name)
        if old and len(labels) != len(old) and not self.any_number:
            raise ValueError(f"{self.name} has {len(labels)} entries, but needs {len(old)}")
        return labels


class Pair(traitlets.TraitType):
    """Two whole numbers."""

    def __init__(self, kind: type = tuple):
        super().__init__(kind((0, 0)))
        self.kind = kind

    def validate(self, widget: Any, value: Any) -> Any:
        pair = as_list(self.name, value)
        if len(pair) != 2:
            raise ValueError(f"{self.name} has {len(pair)} entries, but must be a pair")
        return self.kind(as_whole(f"{self.name}[{i}]", x, -MOST, MOST) for i, x in enumerate(pair))
