"""The tables of the TrimTuner paper as they are shipped, from the files that its authors published.

Run from the repository's root: ``python benchmarks/tables/shrink_papers.py FOLDER``, where FOLDER holds their cnn.csv
and rnn.csv (``tests/files`` of https://github.com/pedrogbmendes/TrimTuner). Rows keep order, and numbers their value.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

SHIPPED = Path("src/trimtuner/tables")
CONFIGURATION = ("vm_flavor", "n_workers", "learning_rate", "batch_size", "synchronism", "training_set_size")
MEASURED = ("acc", "standard deviation accuarcy", "training_time")  # as the files spell it


def shrink(source: Path, target: Path) -> None:
    """The columns that are used, with as few digits as tell the same number."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*CONFIGURATION, *MEASURED])
        for row in rows:
            writer.writerow([*(row[name] for name in CONFIGURATION), *(repr(float(row[name])) for name in MEASURED)])


if __name__ == "__main__":
    for name in ("cnn.csv", "rnn.csv"):
        shrink(Path(sys.argv[1]) / name, SHIPPED / name)
