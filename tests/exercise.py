"""Try one exercise: what a check says to each of its learners' answers.

    make exercise NAME=softmax

Reads tests/learners/<name>.txt; beside the words stands what the file says is to be found.
"""

import sys
import time

from learners import answers, load

from workshop.checks import grade
from workshop.exercises import find


def main(name: str) -> int:
    """Print a verdict an answer; the status is 1 where one is not what the file expects."""
    known, theirs = find(name), [answer for answer in answers() if answer.exercise == name]
    wrong = [s for s in (known.solution, *known.ways) if not tried(s, name, "solution")[0]]
    if not theirs:
        print(f"\nno answers in tests/learners/{name}.txt", end="")
    for answer in theirs:
        about = f"line {answer.line}, {answer.summary} [{answer.expected}]"
        right, found = tried(answer.source, name, about)
        wrong += [answer] * (right != answer.right or answer.expected not in ("", found))
    return int(bool(wrong))


def tried(text: str, name: str, about: str) -> tuple[bool, str]:
    """Print the verdict on an answer; whether it is right, and the slip or repair found in it."""
    began, verdict = time.process_time(), grade(load(text, name), name)
    found = verdict.mistake or ("repair" if verdict.repair else "")
    print(f"\n{about}\n  {verdict.status} [{found}] {verdict.message}", end="")
    print(f" ({time.process_time() - began:.1f} s)")
    if repair := verdict.repair:
        print(f"  line {repair.line}: {repair.before!r} → {repair.after!r}")
    return verdict.status == "right", found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
