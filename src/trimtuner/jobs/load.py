"""A job file becomes a job, or an error that names every fault by its line."""

from __future__ import annotations

import os
from pathlib import Path

from trimtuner.jobs.commands import Word
from trimtuner.jobs.engine_section import read_engine
from trimtuner.jobs.faults import Fault, Faults, JobFileError, one_printable_line
from trimtuner.jobs.fields import ROOT, SECTIONS, Field, Section
from trimtuner.jobs.job import Budget, EngineChoice, Job, Run, Search, problem_of
from trimtuner.jobs.names import check_name
from trimtuner.jobs.problem_section import read_budget, read_constraints, read_goal
from trimtuner.jobs.run_section import read_run
from trimtuner.jobs.search_section import read_search
from trimtuner.jobs.space_section import Offer, read_offer
from trimtuner.jobs.tree import tree_of
from trimtuner.records import Address

LARGEST_FILE = 2**20  # bytes
_RECORD = b"SQLite format 3\0"  # how a record begins


def load_job(path: Path) -> Job:
    """The job that the file describes; a ``JobFileError`` tells all that is wrong with it."""
    content = _content(path)
    faults = Faults()
    with faults.collecting(1):
        job = _job(_decoded(content), path, faults)
        if job is not None and not faults:
            return job
    raise faults.error(path)


def _content(path: Path) -> bytes:
    name = one_printable_line(str(path))
    if not os.path.exists(path):  # unlike Path.exists, also for a name that is too long
        raise JobFileError(f"{name}: there is no such file; 'trimtuner init' writes one to start from")
    if not path.is_file():
        raise JobFileError(f"{name}: not a file; give the path of a job file")
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise JobFileError(f"{name}: cannot be read ({error.strerror})") from None


def _decoded(content: bytes) -> str:
    if content.startswith(_RECORD):
        raise Fault(1, "this is the record of a study, not a job file; give the job file that the study was run with")
    if len(content) > LARGEST_FILE:
        raise Fault(1, f"larger than {LARGEST_FILE // 2**20} MiB; a job file is a page or two")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Fault(line, "not UTF-8 text; save the file as UTF-8") from None


def _job(text: str, path: Path, faults: Faults) -> Job | None:
    node = tree_of(text, faults)
    if node is None:
        raise Fault(1, "the job file is empty; 'trimtuner init' writes one to start from")
    root = Field(node, ROOT, node.line, faults).section(SECTIONS[ROOT], "a mapping of keys such as 'name: mnist'")
    folder = path.absolute().parent
    name = root.required("name", _name, "name: mnist")
    goal = root.required("goal", read_goal, "goal: {maximize: accuracy}")
    constraints = root.read("constraints", read_constraints, ())
    budget = root.read("budget", read_budget, Budget())
    offer = Offer()
    with faults.collecting(root.own_line):
        offer = read_offer(root, folder)
    run = root.required("run", lambda field: read_run(field, folder, offer), "run: {command: [python, train.py]}")
    engine = root.read("engine", lambda field: read_engine(field, folder), EngineChoice())
    search = root.read("search", read_search, Search())
    storage = root.read("storage", lambda field: _storage(field, path), folder / f"{name}.db")
    if name is None or goal is None or run is None or offer.space is None:
        return None
    job = Job(name, path, offer.space, offer.configs, goal, constraints, budget, run, engine, search, storage)
    _check_together(root, job)
    return job


def _name(field: Field) -> str:
    with field.blamed():
        return check_name(field.text("the name of the study"))


def _storage(field: Field, path: Path) -> Path | Address:
    text = field.text("the path of the study's record, or the address of a PostgreSQL database")
    if "://" in text:
        with field.blamed():
            return Address.parse(text)
    storage = path.absolute().parent / text
    if not text or storage == path.absolute() or storage.name in ("", ".", ".."):
        raise field.fault("it must be the path of a file of its own, such as mnist.db")
    return storage


def _check_together(root: Section, job: Job) -> None:
    """What only several sections together can get wrong."""
    with root.faults.collecting(root.line("constraints")):
        problem = problem_of(job)
        if problem.names_cost and not job.space.has_prices:
            key = "budget" if job.budget.money is not None else "constraints" if "constraints" in root else "goal"
            raise Fault(
                root.line(key),
                f"{key}: it speaks of money, and no machine has a price; write 'cloud:', or prices in 'configs:'",
            )
    _check_metrics_file(root, job.run, job.engine)


def _check_metrics_file(root: Section, run: Run, engine: EngineChoice) -> None:
    if run.metrics_file is None or engine.parallel == 1 or Word.parse(run.metrics_file).names:
        return
    root.faults.add(
        root.line("run"),
        f"run.metrics: {engine.parallel} trials side by side would write the same file; name it by the trial, "
        'such as {file: "metrics-{trial}.jsonl"}, and hand {trial} to the command',
    )
