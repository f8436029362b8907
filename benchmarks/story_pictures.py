"""The pictures of docs/how-it-works.md: one search on the shipped table ``digits``, told from its measurements.

``python -m benchmarks.story_pictures`` searches anew (some ten seconds of one processor) and writes
docs/pictures/story-*.png. It is the search of docs/method.md; the same code draws the same pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.method_pictures import (
    BLUE,
    GREEN,
    GREY,
    NINETY,
    PICTURES,
    RED,
    SEED,
    TABLE,
    TRIALS,
    Step,
    _figure,
    _known_after,
    _legend,
    _share_axis,
    _word,
    search,
)
from benchmarks.papers.plots import COLOURS, _save, require_matplotlib
from trimtuner.decisions.belief import Belief, Places
from trimtuner.engines.table import Table
from trimtuner.problem.expressions import Value
from trimtuner.problem.problem import Constraint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TURN = 16  # the trial, counted from 0, whose answer changed the recommendation in the second picture
MICRO = 1e6  # trainings this small cost millionths of a dollar
SHADES = {1 / 16: "#C6DBEF", 1 / 8: "#9ECAE1", 1 / 4: "#6BAED6", 1 / 2: "#3182BD", 1.0: "#08306B"}

# Named as the page names them; all of them on one core.
SHOWN: Mapping[str, tuple[int, float, int]] = {
    "A: 128 units, rate 0.1, batch 128": (128, 0.1, 128),
    "B: 32 units, rate 0.03, batch 32": (32, 0.03, 32),
    "C: 32 units, rate 0.5, batch 512": (32, 0.5, 512),
    "D: 256 units, rate 0.01, batch 128": (256, 0.01, 128),
    "E: 32 units, rate 0.001, batch 32": (32, 0.001, 32),
}
LOOKS = {"A": (BLUE, "o"), "B": (GREEN, "^"), "C": (RED, "s"), "D": (COLOURS[6], "D"), "E": (GREY, "v")}


def draw_curves(path: Path, table: Table) -> None:
    """The accuracy of a few configurations against the share of the data: the cheap end, and the one that counts."""
    figure, (place,) = _figure(1, 1, (8.2, 4.9))
    shares = list(table.space.fractions)
    for label, values in SHOWN.items():
        colour, marker = LOOKS[label[0]]
        accuracies = [table.cell(_configuration(values), share).metrics["accuracy"] for share in shares]
        place.plot(shares, accuracies, color=colour, marker=marker, linewidth=2.0, markersize=7, label=label)
    place.axvspan(shares[0] / 1.25, shares[0] * 1.42, color="#EEEEEE", zorder=0)
    place.axvspan(1 / 1.42, 1.25, color="#FFF3D6", zorder=0)
    place.text(shares[0] * 1.06, 0.985, "cheap", ha="center", va="center")
    place.text(0.94, 0.40, "what counts,\nand is dear", ha="center", va="center")
    _share_axis(place.xaxis, shares)
    place.set(ylabel="accuracy", ylim=(0.0, 1.03), xlim=(shares[0] / 1.25, 1.25))
    place.set_title("Five configurations, measured on five shares of the data")
    _legend(figure, place, 2)
    _save(figure, path)


def draw_guess(path: Path, table: Table, steps: Sequence[Step]) -> None:
    """What the model held of one configuration before and after one trial of it."""
    label = "B"
    configuration = _configuration(next(values for name, values in SHOWN.items() if name[0] == label))
    figure, places = _figure(1, 2, (9.2, 4.5), sharey=True)
    titles = {
        TURN: f"after {TURN} trials, none of them of B",
        TURN + 1: "one trial later: B was run on 1/4 of the data",
    }
    for place, (known, title) in zip(places, titles.items(), strict=True):
        _draw_band(place, _known_after(steps, known), table, configuration)
        place.set_title(title)
        _share_axis(place.xaxis, table.space.fractions)
    places[0].set(ylabel="accuracy of configuration B", ylim=(0.0, 1.02))
    places[0].plot([], [], "o", color=RED, markeredgecolor="black", markersize=9, label="measured")
    _legend(figure, places[0], 4)
    _save(figure, path)


def _draw_band(place: Axes, belief: Belief, table: Table, configuration: Mapping[str, Value]) -> None:
    position = belief.pool.position(dict(configuration))
    shares = np.geomspace(table.space.fractions[0], 1.0, 41)
    mean, variance = belief.predict("accuracy", Places(belief.pool, np.full(len(shares), position), shares))
    transform = belief.quantity_of("accuracy").transform
    low, high = (transform.inverse(mean + sign * NINETY * np.sqrt(variance)) for sign in (-1.0, 1.0))
    place.fill_between(shares, low, high, color=GREEN, alpha=0.25, linewidth=0, label="the band: 9 cases of 10")
    place.plot(shares, transform.inverse(mean), color=GREEN, linewidth=2.2, label="the guess")
    truth = [table.cell(configuration, share).metrics["accuracy"] for share in table.space.fractions]
    place.plot(
        table.space.fractions,
        truth,
        "o",
        color="white",
        markeredgecolor="black",
        markersize=6,
        label="truth, which the model cannot see",
    )
    for measurement in belief.measurements:
        if belief.pool.position(dict(measurement.configuration)) == position:
            accuracy = measurement.metrics["accuracy"]
            place.plot([measurement.fraction], [accuracy], "o", color=RED, markeredgecolor="black", markersize=9)
    place.annotate(
        f"all data:\n{low[-1]:.2f} to {high[-1]:.2f}",
        (1.0, float(low[-1])),
        xytext=(-10, -40),
        textcoords="offset points",
        ha="right",
        va="top",
        arrowprops={"arrowstyle": "-", "color": "black", "linewidth": 0.8},
    )


def draw_money(path: Path, steps: Sequence[Step]) -> None:
    """What each trial cost, and how good the recommendation was after it."""
    figure, (cost, quality) = _figure(2, 1, (9.2, 6.2), sharex=True)
    numbers = np.arange(1, len(steps) + 1)
    for share, shade in SHADES.items():
        there = [number for number, step in zip(numbers, steps, strict=True) if step.moment.fraction == share]
        cost.bar(
            there,
            [steps[number - 1].cost for number in there],
            color=shade,
            edgecolor="black",
            linewidth=0.6,
            label=f"on {_word(share)} of the data",
        )
    cost.set(ylabel="cost (1 = a mean full run)")
    cost.set_title(f"What each trial cost: {steps[-1].after:.1f} full runs in all, {_first_part(steps)}")
    cost.legend(loc="upper left", framealpha=0.9, fontsize=9.5)
    values = [step.moment.quality for step in steps]
    quality.step(numbers, values, where="post", color="black", linewidth=2.0)
    changed = [i for i in range(len(steps)) if i == 0 or steps[i].moment.config != steps[i - 1].moment.config]
    quality.plot(
        [numbers[i] for i in changed],
        [values[i] for i in changed],
        "v",
        color=COLOURS[6],
        markeredgecolor="black",
        markersize=9,
        label="the recommendation changes",
    )
    quality.set(ylabel="true quality", ylim=(0.0, 1.08), xlabel="trial", xlim=(0.2, len(steps) + 0.8))
    quality.set_title("How good the recommendation really was, as a share of the best there is")
    quality.legend(loc="lower right", framealpha=0.9)
    _save(figure, path)


def _first_part(steps: Sequence[Step]) -> str:
    cheap = [step for step in steps if step.moment.fraction < 1.0]
    return f"{sum(step.cost for step in cheap):.1f} of it for the {len(cheap)} trials on less than all data"


def draw_limit(path: Path, table: Table, known: Belief, recommended: Mapping[str, Value]) -> None:
    """Every configuration on all of the data, the limit on cost, and what the search had tested there."""
    figure, (place,) = _figure(1, 1, (8.2, 5.2))
    limit = Constraint.parse(table.constraints[0]).limit
    cells = {_key(one): table.cell(one, 1.0).metrics for one in table.configurations}
    tested = {_key(measurement.configuration) for measurement in known.measurements if measurement.fraction == 1.0}
    allowed = [key for key, metrics in cells.items() if metrics["cost"] <= limit]
    groups = {
        "never run on all of the data": ([key for key in cells if key not in tested], "white", 34.0),
        "run on all of the data by this search": ([key for key in cells if key in tested], BLUE, 52.0),
    }
    for label, (keys, colour, size) in groups.items():
        points = np.array([[MICRO * cells[key]["cost"], cells[key]["accuracy"]] for key in keys])
        place.scatter(*points.T, s=size, color=colour, edgecolors="black", linewidths=0.7, label=label, zorder=3)
    chosen = cells[_key(recommended)]
    place.plot(
        [MICRO * chosen["cost"]],
        [chosen["accuracy"]],
        "D",
        color=RED,
        markeredgecolor="black",
        markersize=11,
        zorder=4,
        label="recommended at the end",
    )
    place.axvspan(MICRO * limit, 200.0, color="#F3DCDC", zorder=0)
    place.axvline(MICRO * limit, color=RED, linestyle="--", linewidth=1.6, label=f"the limit: {MICRO * limit:g} µUSD")
    place.set(xscale="log", xlabel="cost of a run on all of the data, in millionths of a dollar", ylabel="accuracy")
    place.set_xticks([1, 2, 3, 5, 10, 20, 50], ["1", "2", "3", "5", "10", "20", "50"])
    costs = [MICRO * metrics["cost"] for metrics in cells.values()]
    place.set_xlim(min(costs) / 1.2, max(costs) * 1.2)
    place.set_title(f"{len(cells)} configurations, {len(allowed)} within the limit, {len(tested)} ever run in full")
    _legend(figure, place, 2)
    _save(figure, path)


def _configuration(values: tuple[int, float, int]) -> dict[str, Value]:
    units, rate, batch = values
    return {"vm_type": "cpu-1", "hidden_units": units, "learning_rate": rate, "batch_size": batch}


def _key(configuration: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(dict(configuration).items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder of the pictures")
    folder: Path = parser.parse_args().out
    require_matplotlib()
    table = Table.find(TABLE)
    *steps, after = search(table, TRIALS + 1, SEED)  # the one after tells what was known at the end
    assert after.seen is not None
    draw_curves(folder / "story-curves.png", table)
    draw_guess(folder / "story-guess.png", table, steps)
    draw_money(folder / "story-money.png", steps)
    draw_limit(folder / "story-limit.png", table, after.seen.belief, steps[-1].moment.config)
    for picture in sorted(folder.glob("story-*.png")):
        print(picture)


if __name__ == "__main__":
    main()
