"""Try one exercise: what `check` and `hint()` say to each of its learners' answers.

    make exercise NAME=softmax

Reads tests/learners/<name>.txt; beside the words stands what the file says is to be found.
"""

import sys

from learners import answers, load

from workshop.checks import grade
from workshop.exercises import find


def main(name: str) -> int:
    """Print a verdict an answer; the status is 1 where right and wrong are taken for each other."""
    known, failed = find(name), 0
    for i, source in enumerate(known.answers):
        verdict = grade(load(source, name), name)
        failed += verdict.status != "right"
        print(f"answer {i + 1}: {verdict.status}. {verdict.message}")
    for answer in (answer for answer in answers() if answer.exercise == name):
        verdict = grade(load(answer.source, name), name)
        failed += (verdict.status == "right") != answer.right
        found = verdict.mistake or ("repair" if verdict.repair else "")
        print(f"\nline {answer.line}, {answer.summary} [{answer.expected}]")
        print(f"  {verdict.status} [{found}] {verdict.message}")
        repair = verdict.repair
        while repair:
            print(f"  hint, line {repair.line}: {repair.before!r} → {repair.after!r}")
            repair = repair.also
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
