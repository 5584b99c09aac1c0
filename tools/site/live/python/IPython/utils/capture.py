"""What keeps outputs instead."""

from tab.outputs import capture_output

__all__ = ["capture_output"]
