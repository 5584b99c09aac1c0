"""What shows values."""

from tab.outputs import display

__all__ = ["display"]
