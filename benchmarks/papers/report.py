"""The report: claims first, then every table and figure, in one Markdown file with plots beside it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers.claims import RULES, Claim, Verdict, claims_table
from benchmarks.papers.claims_asks import claims_on_asks
from benchmarks.papers.claims_fabulinus import claims_of_fabulinus
from benchmarks.papers.claims_nephele import claims_of_nephele
from benchmarks.papers.claims_settings import claims_on_settings
from benchmarks.papers.claims_trimtuner import claims_of_trimtuner, claims_to_the_letter
from benchmarks.papers.facts import Cells
from benchmarks.papers.jobs import load
from benchmarks.papers.results import Results
from benchmarks.papers.section_fabulinus import write_fabulinus
from benchmarks.papers.section_filters import write_filters
from benchmarks.papers.section_nephele import write_nephele
from benchmarks.papers.section_tables import Measurements, write_tables
from benchmarks.papers.section_trimtuner import letter_table, write_trimtuner
from trimtuner import __version__

FILE = "paper.md"
PLOTS = "plots"
FEWEST_SEEDS = 10  # fewer are for trying the command out


def write_report(results: Results, folder: Path) -> Path:
    """Write the report of what is finished; its path."""
    measurements = [(job, Cells.of(load(job))) for job in results.plan.jobs]
    plots = folder / PLOTS
    paragraphs = [
        *_head(results, measurements),
        *write_trimtuner(results, measurements, plots),
        *write_filters(results, measurements, plots),
        *write_nephele(results, measurements, plots),
        *write_fabulinus(results, measurements, plots),
        *write_tables(measurements, plots),
    ]
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    return path


def claims_of(results: Results, measurements: Measurements) -> list[Claim]:
    """Every claim of the papers, judged by what is finished."""
    return [
        *claims_of_trimtuner(results, measurements),
        *claims_on_asks(results, measurements),
        *claims_on_settings(results),
        *claims_of_nephele(results, measurements),
        *claims_of_fabulinus(results, measurements),
    ]


def _head(results: Results, measurements: Measurements) -> list[str]:
    claims = claims_of(results, measurements)
    return [
        "# What the papers print, and what we measure",
        f"Written by `make papers`, version {__version__}, from {_finished(results)}. Theirs: TrimTuner "
        "(MASCOTS 2020) and the thesis on Nephele and Fabulinus. Ours: our implementations of the methods, replayed "
        "on the tables that the authors published.",
        *_warning(results),
        _about_multilayer(results),
        "## Claims",
        _count(claims),
        RULES,
        claims_table(claims),
        *_to_the_letter(results, measurements),
    ]


def _to_the_letter(results: Results, measurements: Measurements) -> list[str]:
    claims = [claim for claim in claims_to_the_letter(results, measurements) if claim.findings]
    if not claims:
        return []
    return [
        "### The same of TrimTuner to the letter",
        "`trimtuner-dt:literal=true` and `trimtuner-gp:literal=true` are Eq. 5 as it is printed; our "
        "`trimtuner-dt` and `trimtuner-gp` depart from it where [methods](../methods.md) says. The claims that "
        "rest on TrimTuner itself, judged anew:",
        claims_table(claims),
        *letter_table(results, measurements),
    ]


def _finished(results: Results) -> str:
    done, wanted = results.done()
    if done == wanted:
        return f"{done} searches"
    return f"{done} of {wanted} searches (the others are not finished: each line says how many seeds it has)"


def _about_multilayer(results: Results) -> str:
    if any(job.name == "multilayer" for job in results.plan.jobs):
        return "The multilayer table was given with `--multilayer`; the other two are `cnn` and `rnn`."
    return (
        "The papers' third job (a multilayer perceptron) is missing: its table was not available here, so Table 6.5, "
        "Figs. 6.3, 6.6, 6.12 and 7.3 and the multilayer panels of others are not made. Who has it passes "
        "`--multilayer PATH`."
    )


def _count(claims: list[Claim]) -> str:
    verdicts = [finding.verdict for claim in claims for finding in claim.findings if finding.verdict is not None]
    parts = [f"{count} {verdict.strip('*')}" for verdict in Verdict if (count := verdicts.count(verdict))]
    return f"{len(claims)} claims, {len(verdicts)} verdicts (one for each job): {', '.join(parts)}."


def _warning(results: Results) -> list[str]:
    if results.plan.most_seeds >= FEWEST_SEEDS:
        return []
    return [
        f"**This is the quick form: at most {results.plan.most_seeds} seeds. Its verdicts and intervals mean little.**"
    ]
