"""Exercises, and checks that say which mistake was made."""

from helpers.checks.judge import Verdict, grade
from helpers.checks.learner import check, hint, progress, solution

__all__ = ["Verdict", "check", "grade", "hint", "progress", "solution"]
