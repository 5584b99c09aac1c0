"""What a widget keeps in step with the browser, checked by name also when it is set later."""

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from workshop import arguments as given
from workshop.arguments import LARGEST, MOST


class Checked(traitlets.TraitType):
    """A value as `check(name, value, *limits)` leaves it, a function such as `as_number`."""

    def __init__(self, check: Callable[..., Any], default: Any, *limits: Any, **more: Any):
        super().__init__(default, **more)
        self.check, self.limits = check, limits

    def validate(self, widget: Any, value: Any) -> Any:
        return self.check(self.name, value, *self.limits)


def Number(default: Any = 0.0, min: float = -LARGEST, max: float = LARGEST, **more: Any) -> Checked:
    """A number that float32 can hold, from `min` to `max`."""
    return Checked(given.as_number, default, min, max, **more)


def Whole(default: Any = 0, min: int = 0, max: int = MOST, **more: Any) -> Checked:
    """A whole number from `min` to `max`."""
    return Checked(given.as_whole, default, min, max, **more)


def Switch(default: bool = False) -> Checked:
    """True or False."""
    return Checked(given.as_switch, default)


def Text() -> Checked:
    """A string that a file can hold."""
    return Checked(given.as_text, "")


def Choice(options: Sequence[str]) -> Checked:
    """One of several strings, by default the first."""
    return Checked(given.one_of, options[0], options)


def Entries() -> Checked:
    """A list of anything."""
    return Checked(given.as_list, [])


class Labels(Checked):
    """A list of strings; the first ones that it is given say how many it needs."""

    def __init__(self):
        super().__init__(given.as_labels, [])

    def validate(self, widget: Any, value: Any) -> list[str]:
        labels, old = super().validate(widget, value), widget._trait_values.get(self.name)
        if old and len(labels) != len(old):
            raise ValueError(f"{self.name} has {len(labels)} entries, but needs {len(old)}")
        return labels
