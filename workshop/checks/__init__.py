"""Exercises, and checks that say which mistake was made."""

from workshop.checks.judge import Verdict, grade
from workshop.checks.learner import check, hint, progress, solution

__all__ = ["Verdict", "check", "grade", "hint", "progress", "solution"]
