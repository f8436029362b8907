"""The report: all jobs against each tool and the best; some with figures over seeds and plots; the choices made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kept import PLOTS, write_page
from benchmarks.papers.curves import Axis, median, percentile, share_of_best, steps
from benchmarks.papers.markdown import number, picture, table
from benchmarks.papers.plots import Curve, Panel, draw_panels
from benchmarks.peers.entrants import ENTRANTS
from benchmarks.peers.groups import Group
from benchmarks.peers.ratios import each_tool, harder_forms, ratios, totals
from benchmarks.peers.search import BUDGET_UNITS, RULES
from benchmarks.peers.store import Finished
from benchmarks.variants import PLAIN, VARIANTS
from trimtuner.study.replay import LEVELS

FILE = "peers.md"
WORSE = 90.0  # the percentile over seeds that is shown beside the median
QUARTILES = (25.0, 50.0, 75.0)
PLACES = 200

Place = tuple[str, str]  # table, variant


@dataclass(frozen=True)
class Finds:
    """The searches that a report stands on."""

    everywhere: Sequence[Finished]  # of the seeds that all tools but the slow ones have on every job
    with_slow: Sequence[Finished]  # of those that the slow ones, too, have on every job
    closely: Sequence[Finished]  # on jobs that are looked at one by one
    harder: Sequence[Finished] = ()  # on jobs in harder forms


def write_report(finds: Finds, folder: Path) -> Path:
    """Write what is finished: all jobs against each tool and against the best, then some of them; the path."""
    jobs = _plain(grouped(finds.everywhere))
    paragraphs = [
        *_head(finds.everywhere or finds.closely),
        *each_tool(jobs),
        *ratios(jobs),
        *summary(jobs),
        *_slow_section(finds.with_slow),
        *_harder_section(finds.harder),
    ]
    for name, rows in _plain(grouped(finds.closely)).items():
        paragraphs += _section(name, rows, folder / PLOTS)
    paragraphs += _choices([*finds.closely, *finds.with_slow])
    return write_page(folder, FILE, paragraphs)


def _slow_section(finished: Sequence[Finished]) -> list[str]:
    """The same against all tools, on the seeds that all of them have."""
    slow = " and ".join(one.title for one in ENTRANTS if one.is_slow)
    if not finished:
        return [f"{slow} are not here: a search of theirs takes longer than those of all others together."]
    plain = _plain(grouped(finished))
    return [
        f"## With {slow}",
        "A search of theirs takes longer than those of all others together, so that they have fewer: "
        f"{_count(finished)} of all tools, on which alone this section stands. Each of theirs ends once its "
        "recommendation is proven to be within 1 % of the best, below which it cannot fall again. With so few, the "
        "best of all others was lucky even more often.",
        *(text.replace("## ", "### ", 1) for text in (*each_tool(plain), *totals(plain))),
        *(text.replace("## ", "### ", 1) for text in summary(plain)),
    ]


def _harder_section(finished: Sequence[Finished]) -> list[str]:
    groups = grouped(finished)
    forms = {
        form: {name: rows for (name, variant), rows in groups.items() if variant == form}
        for form in dict.fromkeys(variant for _, variant in groups)
    }
    if not forms:
        return []
    return [
        "## Harder forms of the jobs that ship",
        f"{_count(finished)}. *Tight*: a limit that a quarter of the configurations keep. *Half*: a random half of the "
        "configurations, another for each seed. *Noise*: accuracies of another day, judged without the noise, where "
        "it was measured. *Three fractions* of the data instead of four to six. Our money by that of each to 95 / 99 % "
        "(geometric mean over jobs of the ratio of means), and how many searches never get to 99 %.",
        *harder_forms(forms),
    ]


def _plain(groups: Mapping[Place, Sequence[Group]]) -> dict[str, Sequence[Group]]:
    return {name: rows for (name, variant), rows in groups.items() if variant == PLAIN}


def _count(finished: Sequence[Finished]) -> str:
    seeds = {one.search.seed for one in finished}
    span = f"seeds {min(seeds)} to {max(seeds)}" if seeds else "no seed yet"
    return f"{len(finished)} searches, {span}"


def grouped(finished: Sequence[Finished]) -> dict[Place, list[Group]]:
    """Tables by name, the plain form of each first; peers in the order of the entrants."""
    places = {(one.search.table, one.search.variant) for one in finished}
    found: dict[Place, list[Group]] = {}
    for place in sorted(places, key=lambda one: (VARIANTS.index(one[1]), one[0])):
        here = [one for one in finished if (one.search.table, one.search.variant) == place]
        rows = [Group(one, [run for run in here if run.search.peer == one.name]) for one in ENTRANTS]
        found[place] = [row for row in rows if row.searches]
    return found


def _head(finished: Sequence[Finished]) -> list[str]:
    return [
        "# The tools one would pick instead",
        f"Written by `make peers` ({_count(finished)}). Money is in units of the mean price of a "
        "full-data run. What counts is the money spent when the recommendation reached 90, 95 or "
        "99 % of the best feasible accuracy *for good*, to the end of the search; a search that does not get there "
        f"counts as {BUDGET_UNITS:g} in the mean, and as never in median and 90th percentile. Quality is Accuracy_C "
        "(accuracy, scaled by limit / value where a limit is broken) as a share of the best feasible accuracy.",
        RULES,
        "Choices for the peers (below) were made on `cnn`, `rnn` and `digits` with seeds below 40, in their favour, "
        "by trying a few forms of each and keeping the best overall. "
        "The default of trimtuner was chosen on `cnn`, `rnn`, `digits`, `flights`, `linear`, public jobs and made-up "
        "ones, with seeds below 1800 and 7000 to 7004. `kernel`, `epochs`, `forest` and five jobs of trees took no "
        "part, but that what decision 57 mends was seen on a twin of `rpart1485`; they were looked at with every "
        "report. What stands in the way: [floors](floors.md).",
    ]


def summary(plain: Mapping[str, Sequence[Group]]) -> list[str]:
    """A row for each job, a column for each tool."""
    here = [one for one in ENTRANTS if any(row.entrant is one for rows in plain.values() for row in rows)]
    if not here:
        return []
    lines = [
        [name, *(_short(next((row for row in rows if row.entrant is one), None)) for one in here)]
        for name, rows in plain.items()
    ]
    return [
        "## Mean money to 90 / 95 / 99 %",
        table(["", *(one.title for one in here)], lines),
        "In brackets: how many searches got to 99 %, if not all.",
    ]


def _short(row: Group | None) -> str:
    if row is None:
        return ""
    means = " / ".join(number(row.mean(level), 2) for level in LEVELS)
    count = row.count(LEVELS[-1])
    return means if count == len(row.searches) else f"{means} ({count} of {len(row.searches)})"


def _section(name: str, rows: Sequence[Group], plots: Path) -> list[str]:
    file = f"peers-{name}.png"
    _draw(plots / file, name, rows)
    header = ["", "seeds"]
    for level in LEVELS:
        header += [f"{level:.0%}: mean (settled)", "median / p90"]
    lines = [[row.entrant.title, str(len(row.searches)), *_figures(row, rows), *_seconds(row)] for row in rows]
    return [
        f"## {name}",
        table([*header, "CPU s per ask", "per search"], lines),
        picture(
            f"{PLOTS}/{file}", f"Quality of the recommendation against money spent, one line for each tool, {name}"
        ),
    ]


def _figures(row: Group, rows: Sequence[Group]) -> list[str]:
    cells = []
    for level in LEVELS:
        mean = number(row.mean(level))
        if row.mean(level) == min(other.mean(level) for other in rows):
            mean = f"**{mean}**"
        values = row.settled(level)
        cells += [f"{mean} ({row.count(level)})", f"{number(median(values))} / {number(percentile(values, WORSE))}"]
    return cells


def _seconds(row: Group) -> list[str]:
    return [number(row.ask_seconds, 2), number(row.search_seconds, 2)]


def _draw(path: Path, title: str, rows: Sequence[Group]) -> None:
    first = min(trace.spent[0] for row in rows for trace in row.traces)
    places = np.geomspace(first, BUDGET_UNITS, PLACES)
    curves = []
    for row in rows:
        found = steps(row.traces, Axis.COST, share_of_best, before=0.0, places=places)
        low, middle, high = (found.percentile(share) for share in QUARTILES)
        curves.append(Curve(row.entrant.name, places, middle, low, high))
    money = "money spent (mean full-data runs)"
    draw_panels(
        path,
        [
            Panel(title, money, "quality: median, quartiles", curves, is_log_x=True, y_limits=(0.0, 1.02)),
            Panel(
                f"{title}: the last tenth", money, "quality", curves, is_log_x=True, y_limits=(0.9, 1.003), level=0.99
            ),
        ],
    )


def _choices(finished: Sequence[Finished]) -> list[str]:
    taking_part = {one.search.peer for one in finished}
    entrants = [one for one in ENTRANTS if one.name in taking_part]
    versions = [
        [one.name, "; ".join(sorted({run.search.version for run in finished if run.search.peer == one.name}))]
        for one in entrants
    ]
    modules = {one.module: one for one in entrants}.values()
    return [
        "## Choices made for each",
        *(entrant.choices() for entrant in modules),
        "## Versions",
        table(["", "version"], versions),
    ]
