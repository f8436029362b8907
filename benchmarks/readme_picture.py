"""The picture of the README, drawn from the table in docs/results/peers.md: python -m benchmarks.readme_picture"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent.parent / "docs"
TOOLS = {
    "trimtuner (default)": "trimtuner",
    "SMAC3 multi-fidelity (given Accuracy_C)": "SMAC3 multi-fidelity",
    "DEHB (given Accuracy_C)": "DEHB",
    "BoTorch constrained logEI at full data": "BoTorch constrained EI",
    "Optuna TPE with constraints at full data": "Optuna TPE",
    "Optuna GP with constraints at full data": "Optuna GP",
}
JOBS = {"cnn": "CNN", "rnn": "LSTM", "kernel": "kernel", "forest": "forest", "epochs": "epochs"}
MARKS = "osD^v"
COLOURS = ("#0b5fa5", "#d55e00", "#009e73", "#b4569b", "#555555")


def mean_money() -> dict[str, dict[str, tuple[float, float]]]:
    """For each tool and job: mean money to 95 and to 99 %, in mean full-data runs."""
    lines = (DOCS / "results" / "peers.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("## Mean money"))
    head, _, *rows = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    jobs = [cell.strip() for cell in head.split("|")[2:-1]]
    found = {}
    for row in rows:
        tool, *cells = [cell.strip() for cell in row.split("|")[1:-1]]
        figures = [re.sub(r"\(.*\)", "", cell).split("/") for cell in cells]
        found[tool] = {job: (float(one[1]), float(one[2])) for job, one in zip(jobs, figures, strict=True)}
    return found


def main() -> None:
    money = mean_money()
    plt.rcParams.update({"font.size": 11, "svg.hashsalt": "trimtuner"})
    figure, axis = plt.subplots(figsize=(8.6, 3.3), layout="constrained")
    for (job, shown), mark, colour in zip(JOBS.items(), MARKS, COLOURS, strict=True):
        values = [money[tool][job][0] for tool in TOOLS]
        axis.plot(values, range(len(TOOLS)), mark, color=colour, markersize=8.5, alpha=0.9, label=shown)
    axis.axvline(1.0, color="#333333", linewidth=1.2, linestyle="--")
    axis.set_yticks(range(len(TOOLS)), list(TOOLS.values()))
    axis.get_yticklabels()[0].set_fontweight("bold")
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xticks([0.3, 1, 3, 10], ["0.3", "one full\ntraining run", "3", "10"])
    axis.minorticks_off()
    axis.set_xlim(0.25, 16)
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("Money until the answer is within 5 % of the best, for good", loc="left", fontsize=11.5)
    axis.legend(title="job", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(DOCS / "pictures" / "money.png", dpi=110)


if __name__ == "__main__":
    main()
