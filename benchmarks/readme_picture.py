"""The picture of the README, drawn from the table in docs/results/peers.md: python -m benchmarks.readme_picture"""

from __future__ import annotations

import re
import statistics
from itertools import takewhile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.peers.ratios import NETS, PAPERS, family

DOCS = Path(__file__).parent.parent / "docs"
TOOLS = {
    "trimtuner (default)": "trimtuner",
    "EI_c with a GP at full data (ours)": "constrained EI",
    "Optuna TPE with constraints at full data": "Optuna TPE",
    "BoTorch constrained logEI at full data": "BoTorch constrained EI",
    "SMAC3 multi-fidelity (given Accuracy_C)": "SMAC3 multi-fidelity",
    "DEHB (given Accuracy_C)": "DEHB",
}
KINDS = {
    "the papers' jobs": "#d55e00",
    "jobs that ship": "#0b5fa5",
    "neural nets": "#009e73",
    "decision trees": "#777777",
}
APART = 0.13  # of the lines of one tool


def mean_money() -> dict[str, dict[str, float]]:
    """For each tool and job: mean money to 95 %, in mean full-data runs."""
    lines = (DOCS / "results" / "peers.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("## Mean money"))
    head, _, *rows = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    found: dict[str, dict[str, float]] = {tool.strip(): {} for tool in head.split("|")[2:-1]}
    for row in rows:
        job, *cells = [cell.strip() for cell in row.split("|")[1:-1]]
        for of_tool, cell in zip(found.values(), cells, strict=True):
            of_tool[job] = float(re.sub(r"\(.*\)", "", cell).split("/")[1])
    return found


def kind_of(job: str) -> str:
    """What the picture calls a job's family."""
    known = {PAPERS: "the papers' jobs", NETS: "neural nets"}
    return known.get(family(job), "decision trees" if job.startswith("rpart") else "jobs that ship")


def main() -> None:
    money = mean_money()
    plt.rcParams.update({"font.size": 11, "svg.hashsalt": "trimtuner"})
    figure, axis = plt.subplots(figsize=(8.6, 3.6), layout="constrained")
    for line, (kind, colour) in enumerate(KINDS.items()):
        jobs = [job for job in money["trimtuner (default)"] if kind_of(job) == kind]
        for row, tool in enumerate(TOOLS):
            heights = [row + (line - 1.5) * APART] * len(jobs)
            label = kind if row == 0 else None
            axis.plot([money[tool][job] for job in jobs], heights, "o", color=colour, ms=5, alpha=0.75, label=label)
    for row, tool in enumerate(TOOLS):
        middle = statistics.geometric_mean(money[tool].values())
        axis.plot([middle] * 2, [row - 0.36, row + 0.36], color="black", linewidth=2.2)
        axis.annotate(f"{middle:.1f}", (middle, row - 0.36), ha="center", va="bottom", fontsize=9)
    axis.axvline(1.0, color="#333333", linewidth=1.2, linestyle="--")
    axis.set_yticks(range(len(TOOLS)), list(TOOLS.values()))
    axis.get_yticklabels()[0].set_fontweight("bold")
    axis.set_ylim(len(TOOLS) - 0.45, -0.75)
    axis.set_xscale("log")
    axis.set_xticks([0.1, 0.3, 1, 3, 10, 20], ["0.1", "0.3", "one full\ntraining run", "3", "10", "never"])
    axis.minorticks_off()
    axis.set_xlim(0.09, 24)
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("Money until the answer is within 5 % of the best, for good, on 29 jobs", loc="left", fontsize=11.5)
    axis.legend(title="a dot a job; | geometric mean", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(DOCS / "pictures" / "money.png", dpi=110)


if __name__ == "__main__":
    main()
