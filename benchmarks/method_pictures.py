"""The pictures of docs/method.md: what the default method believes and does, on a shipped table and on made-up jobs.

``python -m benchmarks.method_pictures`` searches anew (about a minute of one processor) and writes
docs/pictures/method-*.png. The same code draws the same pictures.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.hard_jobs import make_job
from benchmarks.papers.plots import COLOURS, _plain_ticks, _save, require_matplotlib
from trimtuner.arrays import Floats, Positions
from trimtuner.decisions.acquisition import ShareAtTargets
from trimtuner.decisions.belief import CAUTION, Belief, Places
from trimtuner.decisions.entropy import ValueOfRecommendation
from trimtuner.decisions.filters import ClimbAsEarned, ScoreOf
from trimtuner.decisions.outlook import Outlook
from trimtuner.engines.table import Table
from trimtuner.models.gaussian_process import ProcessPosterior
from trimtuner.models.kernels import FractionKernel, FractionWalk, Kernel, Matern52, Sum, log_basis
from trimtuner.models.posterior import Logit
from trimtuner.problem.expressions import Value
from trimtuner.study.replay import ReplayMoment, ReplayRun, replay
from trimtuner.tuning.recipes import TRIMTUNER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
TABLE, SEED, TRIALS = "digits", 0, 40
EARLY, LATE = 8, 39  # trials known when the bands are drawn
TRUST_JOBS, TRUST_SEEDS = ("easy", "contrary"), (0, 1, 2)
BLUE, RED, GREEN, GREY = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[7]
NINETY = 1.6449  # deviations to either side: an interval that holds the value in 90 % of cases
DOTS_PER_INCH = 110
WORDS = {1.0: "all"}
DRAWN, VALUE, INSURANCE = "first three, at random", "most value for its price", "insurance"
HOPE = "no value in sight: the best hope"
KINDS = {DRAWN: (GREY, "s"), VALUE: (BLUE, "o"), INSURANCE: (RED, "D"), HOPE: (GREEN, "^")}


@dataclass(frozen=True)
class Seen:
    """What the method knew when it chose a trial."""

    belief: Belief
    cap: float  # USD that the trial may cost, in nine cases of ten
    is_insured: bool  # whether the insurance chooses
    is_promising: bool  # whether any trial is expected to better the recommendation


@dataclass(frozen=True)
class Watched:
    """The default's filter, remembering what passes through it."""

    climb: ClimbAsEarned
    insured: ShareAtTargets
    seen: list[Seen] = field(default_factory=list)

    def keep(self, outlook: Outlook, score_of: ScoreOf, generator: np.random.Generator) -> Positions:
        cost, spent = outlook.effort_at_most(CAUTION), outlook.belief.spent
        cap = max(self.climb.share * spent, self.climb.times_cheapest * float(cost.min()))
        kept = self.climb.keep(outlook, score_of, generator)
        is_promising = bool(ValueOfRecommendation().score(outlook.at(kept)).max() > 0.0)
        self.seen.append(Seen(outlook.belief, cap, self.insured._is_due(outlook), is_promising))
        return kept


@dataclass(frozen=True)
class Step:
    """One trial of a search; money in units of the mean price of a full run."""

    before: float  # spent before it
    cost: float
    moment: ReplayMoment
    seen: Seen | None  # None for the first trials, which no model chooses
    cap: float

    @property
    def after(self) -> float:
        return self.before + self.cost

    @property
    def chosen_by(self) -> str:
        if self.seen is None:
            return DRAWN
        if self.seen.is_insured and self.moment.fraction == 1.0:
            return INSURANCE
        return VALUE if self.seen.is_promising else HOPE


def search(table: Table, trials: int, seed: int) -> list[Step]:
    """The default on the table, with what it knew at each trial."""
    assert isinstance(TRIMTUNER.filter, ClimbAsEarned)
    assert isinstance(TRIMTUNER.acquisition, ShareAtTargets)
    watched = Watched(TRIMTUNER.filter, TRIMTUNER.acquisition)
    run: ReplayRun = replay(table, TRIMTUNER.but(filter=watched), seed, trials)
    costs = table.full_run_costs()
    unit = sum(costs) / len(costs)
    first = len(run.moments) - len(watched.seen)
    steps, before = [], 0.0
    for number, moment in enumerate(run.moments):
        seen = watched.seen[number - first] if number >= first else None
        cap = math.nan if seen is None else seen.cap / unit
        steps.append(Step(before / unit, (moment.spent - before) / unit, moment, seen, cap))
        before = moment.spent
    return steps


def draw_walk(path: Path) -> None:
    """One configuration's learning curve before and after a measurement on little data, with little and much walk."""
    figure, (left, right) = _figure(1, 2, (9.2, 4.3), sharey=True)
    for place, walk, title in (
        (left, 0.2, "Much trust: the walk is small (0.2)"),
        (right, 1.0, "Little trust: the walk is large (1.0)"),
    ):
        _draw_one_measurement(place, walk)
        place.set_title(title)
    left.set_ylabel("accuracy")
    _legend(figure, left, 4)
    _save(figure, path)


def _draw_one_measurement(place: Axes, walk: float) -> None:
    # The trend of the job counts as learnt, and the configuration as one that its neighbours speak for.
    kernel = Matern52() * (FractionKernel(log_basis, slope=0.3) + FractionWalk(walk))
    theta = np.append(kernel.prior(1).mean, math.log(0.03))  # the sizes as given, and little noise
    shares = np.geomspace(1 / 64, 1.0, 61)
    rows = np.column_stack([np.zeros(len(shares)), shares])
    logit = Logit()
    centre, spread, growth = 2.0, logit.scale, TRIMTUNER.quality_growth * np.log(shares)
    assert spread is not None
    measured, share = 0.80, 1 / 64
    surprise = (float(logit.forward(np.array(measured))) - growth[0] - centre) / spread
    after = ProcessPosterior(kernel, theta, rows[:1], np.array([surprise]), centre, spread)
    covariance = spread**2 * kernel.matrix(theta[:-1], rows, rows)
    middle, reach = centre + growth, NINETY * np.sqrt(np.diagonal(covariance))
    place.fill_between(
        shares,
        logit.inverse(middle - reach),
        logit.inverse(middle + reach),
        color="#DADADA",
        linewidth=0,
        label="before: 90 % of curves",
    )
    draw = np.random.default_rng(4)
    factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(shares)))
    for curve in middle + (factor @ draw.normal(size=(len(shares), 6))).T:
        place.plot(shares, logit.inverse(curve), color=GREY, linewidth=0.9)
    mean, variance = after.predict(rows)
    low, high = (logit.inverse(mean + growth + sign * NINETY * np.sqrt(variance)) for sign in (-1.0, 1.0))
    place.fill_between(shares, low, high, color=BLUE, alpha=0.35, linewidth=0, label="after one measurement")
    place.plot(shares, logit.inverse(mean + growth), color=BLUE, linewidth=2.2)
    place.plot([share], [measured], "o", color=RED, markersize=9, markeredgecolor="black", label="the measurement")
    ends = float(low[-1]), float(high[-1])
    middle_end = float(logit.inverse(mean + growth)[-1])
    place.errorbar(
        [1.09],
        [middle_end],
        yerr=[[middle_end - ends[0]], [ends[1] - middle_end]],
        color="black",
        capsize=5,
        linewidth=1.8,
        label="full data, 90 %",
    )
    place.annotate(
        f"all data:\n{ends[0]:.2f} to {ends[1]:.2f}",
        (1.0, ends[0]),
        xytext=(-12, -14),
        textcoords="offset points",
        ha="right",
        va="top",
        bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
    )
    _share_axis(place.xaxis, (1 / 64, 1 / 16, 1 / 4, 1.0))
    place.set(ylim=(0.0, 1.0), xlim=(1 / 75, 1.25))


def draw_search(path: Path, steps: Sequence[Step]) -> None:
    """Where the money goes, and how good the recommendation is."""
    figure, (trials, quality) = _figure(2, 1, (9.2, 6.6), sharex=True)
    for label, (colour, marker) in KINDS.items():
        chosen = [step for step in steps if step.chosen_by == label]
        if not chosen:
            continue
        trials.scatter(
            [step.after for step in chosen],
            [step.moment.fraction for step in chosen],
            s=[25.0 + 900.0 * step.cost for step in chosen],
            color=colour,
            marker=marker,
            alpha=0.6,
            edgecolors="black",
            linewidths=0.7,
            label=label,
        )
    shares = sorted({step.moment.fraction for step in steps})
    _share_axis(trials.yaxis, shares)
    trials.set_ylim(shares[0] / 1.6, 1.9)
    trials.set_title(f"Each trial: the larger the mark, the dearer ({TABLE}, {len(steps)} trials, seed {SEED})")
    # Below the axes: trials may lie anywhere within them.
    legend = trials.legend(
        loc="upper center",
        bbox_to_anchor=(0.48, -0.03),
        ncols=len(KINDS),
        frameon=False,
        fontsize=9.5,
        handletextpad=0.2,
        columnspacing=1.1,
    )
    for handle in legend.legend_handles:
        handle.set_sizes([60.0])

    spent = [step.after for step in steps]
    values = [step.moment.quality for step in steps]
    quality.step(spent, values, where="post", color="black", linewidth=2.0, label="what is recommended")
    changed = [i for i in range(len(steps)) if i == 0 or steps[i].moment.config != steps[i - 1].moment.config]
    quality.plot(
        [spent[i] for i in changed],
        [values[i] for i in changed],
        "v",
        color=COLOURS[6],
        markeredgecolor="black",
        markersize=9,
        label="it changes",
    )
    quality.set(ylim=(0.0, 1.08), ylabel="true quality")
    quality.set_title("The recommendation after each trial, as a share of the best there is")
    quality.legend(loc="lower right", framealpha=0.9)
    quality.set_xscale("log")
    quality.set_xlim(spent[0] / 1.12, spent[-1] * 1.12)
    _plain_ticks(quality.xaxis)
    quality.set_xlabel("money spent (1 = mean price of one run on all data)")
    _save(figure, path)


def draw_bands(path: Path, table: Table, steps: Sequence[Step]) -> None:
    """What is believed of three configurations, early and late."""
    beliefs = {count: _known_after(steps, count) for count in (EARLY, LATE)}
    shown = {
        f"recommended after {EARLY} trials": steps[EARLY - 1].moment.config,
        f"recommended after {LATE} trials": steps[LATE - 1].moment.config,
        "never tested": _untested_middling(table, beliefs[LATE]),
    }
    figure, places = _figure(1, 2, (9.2, 4.8), sharey=True)
    for place, (count, belief) in zip(places, beliefs.items(), strict=True):
        for (label, configuration), colour, marker in zip(
            shown.items(), (RED, BLUE, GREEN), ("s", "o", "^"), strict=True
        ):
            _draw_band(place, belief, table, configuration, label, colour, marker)
        place.set_title(f"after {count} trials")
        _share_axis(place.xaxis, table.space.fractions)
    places[0].set(ylabel="accuracy", ylim=(0.0, 1.02))
    places[0].plot([], [], "o", color="white", markeredgecolor="black", label="truth, not measured yet")
    places[0].plot([], [], "o", color="black", label="measured")
    _legend(figure, places[0], 3)
    _save(figure, path)


def _draw_band(
    place: Axes,
    belief: Belief,
    table: Table,
    configuration: Mapping[str, Value],
    label: str,
    colour: str,
    marker: str,
) -> None:
    position = belief.pool.position(dict(configuration))
    shares = np.geomspace(table.space.fractions[0], 1.0, 41)
    mean, variance = belief.predict("accuracy", Places(belief.pool, np.full(len(shares), position), shares))
    transform = belief.quantity_of("accuracy").transform
    low, high = (transform.inverse(mean + sign * NINETY * np.sqrt(variance)) for sign in (-1.0, 1.0))
    place.fill_between(shares, low, high, color=colour, alpha=0.22, linewidth=0)
    place.plot(shares, transform.inverse(mean), color=colour, linewidth=2.0, label=label)
    measured = {m.fraction for m in belief.measurements if belief.pool.position(dict(m.configuration)) == position}
    for share in table.space.fractions:
        truth = table.cell(configuration, share).metrics["accuracy"]
        place.plot(
            [share],
            [truth],
            marker,
            color=colour if share in measured else "white",
            markeredgecolor="black" if share in measured else colour,
            markersize=8 if share in measured else 6,
            zorder=5 if share in measured else 4,
        )


def draw_trust(path: Path, searches: Mapping[tuple[str, int], tuple[Table, Sequence[Step]]]) -> None:
    """How far the smallest share is believed to speak for all data, as trials come in."""
    figure, (place,) = _figure(1, 1, (8.2, 4.6))
    styles = {"easy": (BLUE, "-", "o"), "contrary": (RED, "-", "s")}
    for (job, number), (table, steps) in searches.items():
        colour, dash, marker = styles[job]
        known = [(i, step.seen.belief) for i, step in enumerate(steps) if step.seen is not None]
        is_first = number == TRUST_SEEDS[0]
        place.plot(
            [count for count, _ in known],
            [correlation_with_full_data(belief) for _, belief in known],
            color=colour,
            linestyle=dash,
            linewidth=1.8,
            marker=marker,
            markevery=[i for i, (count, _) in enumerate(known) if count in (10, 20, 40)],
            markersize=7,
            label=f"{job} job, as learnt" if is_first else None,
        )
        if is_first:
            truth = _true_correlation(table)
            place.axhline(truth, color=colour, linestyle=(0, (5, 3)), linewidth=1.4)
            place.annotate(
                f"{job} job, in truth",
                (1.0, truth),
                xycoords=("axes fraction", "data"),
                xytext=(-6, 5),
                textcoords="offset points",
                ha="right",
                color=colour,
            )
    place.axhline(0.0, color="black", linewidth=0.8)
    place.set(
        title="Does the smallest share (1/64) speak for all data?",
        xlabel="trials known",
        ylabel="correlation with full data",
        ylim=(-0.6, 1.05),
    )
    _legend(figure, place, 2)
    _save(figure, path)


def correlation_with_full_data(belief: Belief) -> float:
    """Between the smallest share and all data, of what sets one configuration apart from the trend of the job."""
    posterior = belief.quantity_of(belief.problem.goal.metric).posterior
    shares = (belief.problem.space.fractions[0], 1.0)
    rows = np.vstack([np.append(belief.pool.rows[0], share) for share in shares])
    total = np.zeros((2, 2))
    for weight, member in zip(posterior.weights, posterior.members, strict=True):
        assert isinstance(member, ProcessPosterior)
        kernel, theta = _without_trend(member.kernel, member.theta[:-1], rows)
        total += weight * kernel.matrix(theta, rows, rows)
    return float(total[0, 1] / math.sqrt(total[0, 0] * total[1, 1]))


def _without_trend(kernel: Kernel, theta: Floats, rows: Floats) -> tuple[Kernel, Floats]:
    """The first term of every kernel of the default is the trend of the job, which is the same for everyone."""
    assert isinstance(kernel, Sum)
    of_left = len(kernel.left.prior(rows.shape[1] - 1).mean)
    if isinstance(kernel.left, FractionKernel):
        return kernel.right, theta[of_left:]
    left, theta_left = _without_trend(kernel.left, theta[:of_left], rows)
    return left + kernel.right, np.concatenate([theta_left, theta[of_left:]])


def _true_correlation(table: Table) -> float:
    logit = Logit()
    odds = [
        logit.forward(np.array([table.cell(c, share).metrics["accuracy"] for c in table.configurations]))
        for share in (table.space.fractions[0], 1.0)
    ]
    return float(np.corrcoef(odds)[0, 1])


def draw_climb(path: Path, steps: Sequence[Step]) -> None:
    """No trial may jump far ahead of what was spent."""
    figure, (place,) = _figure(1, 1, (8.2, 4.8))
    chosen = [step for step in steps if step.seen is not None]
    place.plot(
        [step.before for step in chosen],
        [step.cap for step in chosen],
        color=RED,
        linewidth=2.0,
        label="the cap",
    )
    shares = sorted({step.moment.fraction for step in steps})
    import matplotlib as mpl

    shades = mpl.colormaps["viridis_r"](np.linspace(0.05, 0.95, len(shares)))
    for share, shade, marker in zip(shares, shades, ("o", "s", "^", "v", "D"), strict=False):
        there = [step for step in steps[1:] if step.moment.fraction == share]  # nothing was spent before the first
        place.scatter(
            [step.before for step in there],
            [step.cost for step in there],
            s=62.0,
            color=shade,
            marker=marker,
            edgecolors="black",
            linewidths=0.7,
            label=f"a trial on {_word(share)} of the data",
            zorder=3,
        )
    place.set(xscale="log", yscale="log")
    place.set_xlim(steps[1].before / 1.12, chosen[-1].before * 1.15)
    _plain_ticks(place.xaxis)
    place.set_yticks([0.01, 0.1, 1.0], ["0.01", "0.1", "1"])
    place.set(
        title=f"What each trial cost ({TABLE}, {len(steps)} trials, seed {SEED})",
        xlabel="money spent before the trial (1 = mean price of one run on all data)",
        ylabel="cost of the trial (same unit)",
    )
    place.legend(loc="upper left", framealpha=0.9, fontsize=9.5)
    _save(figure, path)


def _known_after(steps: Sequence[Step], count: int) -> Belief:
    seen = steps[count].seen
    assert seen is not None, f"trial {count} was not chosen by a model"
    return seen.belief


def _untested_middling(table: Table, belief: Belief) -> Mapping[str, Value]:
    """Of the configurations never tested, the one in the middle by accuracy on full data."""
    tested = {belief.pool.position(dict(m.configuration)) for m in belief.measurements}
    left = [c for c in table.configurations if belief.pool.position(dict(c)) not in tested]
    return sorted(left, key=lambda c: table.cell(c, 1.0).metrics["accuracy"])[len(left) // 2]


def _word(share: float) -> str:
    return WORDS.get(share, f"1/{1 / share:g}")


def _share_axis(axis: Axis, shares: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(list(shares), [_word(share) for share in shares])
    axis.set_minor_locator(NullLocator())
    axis.set_label_text("share of the data")


def _figure(
    rows: int, columns: int, inches: tuple[float, float], *, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    mpl.rcParams.update({"font.size": 11.0, "axes.titlesize": 11.5, "legend.fontsize": 10.0})
    figure = NewFigure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    places = list(figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).ravel())
    for place in places:
        place.grid(alpha=0.25, linewidth=0.6)
        place.set_axisbelow(True)
    return figure, places


def _legend(figure: Figure, place: Axes, columns: int) -> None:
    figure.legend(*place.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder of the pictures")
    folder: Path = parser.parse_args().out
    require_matplotlib()
    draw_walk(folder / "method-walk.png")
    table = Table.find(TABLE)
    steps = search(table, TRIALS, SEED)
    draw_search(folder / "method-search.png", steps)
    draw_bands(folder / "method-bands.png", table, steps)
    draw_climb(folder / "method-climb.png", steps)
    jobs = {(job, number): make_job(job, number) for job in TRUST_JOBS for number in TRUST_SEEDS}
    searched = {key: (job, search(job, TRIALS + 1, SEED)) for key, job in jobs.items()}
    draw_trust(folder / "method-trust.png", searched)
    for picture in sorted(folder.glob("method-*.png")):
        print(picture)


if __name__ == "__main__":
    main()
