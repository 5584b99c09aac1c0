"""Train the translator without one stage after the other, and store the table.

python .ci/ablations.py             nine models × three seeds: about five minutes on one core
python .ci/ablations.py NAME ...    print these lines only, and store nothing
"""

import argparse
import csv
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # sums in the same order on every machine

from helpers.training.ablations import (  # noqa: E402
    ABLATIONS,
    SEEDS,
    TABLE,
    Result,
    ablation,
    course_corpus,
)

COMMENT = "# made by `make ablations`: the translator of notebook 13 with one stage left out\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 'one head'")
    names = parser.parse_args().names
    training, held_out = course_corpus()
    results = []
    for name in names or ABLATIONS:
        for seed in SEEDS:
            results.append(ablation(name, seed, training, held_out))
            print("{:20} {}  {:7.2%}  {:.4f}".format(*results[-1]), flush=True)
    if not names:
        write(ROOT / "helpers" / "training" / TABLE, results)


def write(path: Path, results: list[Result]) -> None:
    """Store results as CSV, rounded to what a reader compares."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(COMMENT)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(Result._fields)
        for name, seed, match, loss in results:
            rows.writerow([name, seed, f"{match:.4f}", f"{loss:.4f}"])


if __name__ == "__main__":
    main()
