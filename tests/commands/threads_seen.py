"""Run with a job file that was run, and a door: how many threads linear algebra had wherever a model was at work.

A script, for a process of its own without variables that say how many threads there are; the page's worker reads it,
too, before it begins.
"""

from __future__ import annotations

import sys
import time
from functools import wraps
from pathlib import Path

from threadpoolctl import ThreadpoolController

from trimtuner.commands.dashboard.renderer import Renderer, Shown
from trimtuner.commands.report import write_report
from trimtuner.decisions.stopping import AfterTrials
from trimtuner.jobs.studies import JobStudy
from trimtuner.models.forest import Forest
from trimtuner.models.gaussian_process import GaussianProcess, ProcessPosterior
from trimtuner.models.trees import BaggedTrees, TreesPosterior
from trimtuner.study import explaining, telling
from trimtuner.tuning import tuner
from trimtuner.views.blocks import EFFORTS, READING

SEEN = Path("threads.txt")
LIBRARIES = ThreadpoolController().select(user_api="blas").lib_controllers
seen: set[int] = set()


def threads() -> int:
    return max(library.num_threads for library in LIBRARIES)


def spy_on(kind: type, name: str) -> None:
    method = getattr(kind, name)

    @wraps(method)
    def spied(*given: object) -> object:
        if threads() not in seen:
            seen.add(threads())
            with SEEN.open("a") as file:
                file.write(f"{threads()}\n")
        return method(*given)

    setattr(kind, name, spied)


for kind, names in {
    GaussianProcess: ("fit", "fit_on", "fit_likeliest"),
    ProcessPosterior: ("predict", "covariance"),
    BaggedTrees: ("fit",),
    TreesPosterior: ("predict", "covariance"),
    Forest: ("predict",),
}.items():
    for name in names:
        spy_on(kind, name)


def report(of: JobStudy) -> None:
    write_report(of, Path("out.html"), None, None)


def pages(of: JobStudy) -> None:
    shown, renderer = Shown(of.job.name, of.job.path, of), Renderer()
    try:
        while set(shown.rendered) != set(EFFORTS):
            renderer.refresh(shown)
            time.sleep(0.05)
    finally:
        renderer.close()
    assert {one.state for effort, one in shown.rendered.items() if effort not in READING} == {
        str(shown.watched.record.version())
    }


def texts(of: JobStudy) -> None:
    seen = of.state()
    telling.status_text(seen)
    telling.savings_text(seen)
    explaining.explain_text(seen, None)
    explaining.explain_text(seen, max(outcome.trial.number for outcome in seen.history.outcomes))


def notebook(of: JobStudy) -> None:
    study, _ = of.open_to_read()
    study.plot("curves")
    study._repr_html_()


def study(of: JobStudy) -> None:
    study, _ = of.open_to_read()
    study.recommend()
    study.front()
    tuner.ask(study.problem, study.recipe.but(stop=AfterTrials(99)), study.history, study.seed)


def here(of: JobStudy) -> None:
    for door in (report, texts, notebook, study):
        door(of)


DOORS = {"here": here, "page": pages}

if __name__ == "__main__":
    before = threads()
    DOORS[sys.argv[2]](JobStudy.at(Path(sys.argv[1])))
    inside = sorted(set(map(int, SEEN.read_text().split())))
    print(f"before {before} inside {inside} after {threads()}")
