"""The command: python -m workshop.classroom FOLDER [--out FILE] [--seconds 120] [--memory 4096]."""

import argparse
import csv
import io
import os
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, fields
from pathlib import Path

from workshop.checks.keep import replace as write
from workshop.classroom import PARTIAL, Limits, grade_folder
from workshop.classroom.verdicts import STATUSES, Row


def as_csv(rows: list[Row]) -> str:
    """The rows as a spreadsheet reads them, which must take no text for a formula."""
    text, cells = io.StringIO(), [[f.name for f in fields(Row)], *map(astuple, rows)]
    csv.writer(text).writerows([re.sub("^(?=[=+@-])", "'", cell) for cell in row] for row in cells)
    return "\ufeff" + text.getvalue().encode("utf-8", "replace").decode()


def summary(rows: list[Row]) -> str:
    """How often each exercise was right, wrong …, the most frequent mistakes, and remarks."""
    lines = [f"{'':30}" + "".join(f"{status:>15}" for status in STATUSES)]
    for name in dict.fromkeys(row.exercise for row in rows):
        counts = Counter(row.status for row in rows if row.exercise == name)
        lines += [f"{name or '(no notebook)':30}" + "".join(f"{counts[s]:15}" for s in STATUSES)]
    mistakes = Counter((r.exercise, r.mistake, r.message) for r in rows if r.mistake)
    lines += ["", "The most frequent mistakes:"] if mistakes else []
    lines += [f"{n:4} × {what[0]}, {what[1]}: {what[2]}" for what, n in mistakes.most_common(3)]
    marked = sum(bool(row.remark) for row in rows)
    return "\n".join([*lines, "", f"Rows with a remark, to be looked at: {marked}."])


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Grade a folder of learners' notebooks.")
    parser.add_argument("folder", type=Path, help="is searched with all folders in it")
    parser.add_argument("--out", type=Path, default=None, help="default: FOLDER/grades.csv")
    parser.add_argument("--seconds", type=float, default=120.0, help="of computing for each (120)")
    parser.add_argument("--memory", type=int, default=4096, help="MB for each notebook (4096)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--workers", type=int, default=cores, help="at a time (one for each core)")
    return parser.parse_args()


def main() -> int:
    """Grade, write the CSV file, print a summary."""
    options = arguments()
    out = options.out or options.folder / "grades.csv"
    partial, limits = out.with_name(PARTIAL), Limits(options.seconds, options.memory * 2**20)
    if not any(options.folder.rglob("*.ipynb")):
        print(f"{options.folder} is no folder with notebooks (.ipynb) in it.")
        return 1
    try:
        with ThreadPoolExecutor(options.workers) as executor:
            rows = grade_folder(options.folder, executor, limits, partial)
    except KeyboardInterrupt:
        print(f"\nStopped. What is done is in {partial}: the same command goes on from there.")
        return 130
    write(out, as_csv(rows))
    partial.unlink(missing_ok=True)
    print(f"\n{summary(rows)}\n")
    print(f"{len({row.learner for row in rows})} notebooks, {len(rows)} rows: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
