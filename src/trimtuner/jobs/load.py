"""A job file becomes a job, or an error that names every fault by its line."""

from __future__ import annotations

import os
from pathlib import Path

from trimtuner.jobs.commands import Word
from trimtuner.jobs.job import Job, JobKeys, problem_of
from trimtuner.jobs.run_section import check_run, completed
from trimtuner.jobs.space_section import Offer, offer_of
from trimtuner.jobs.tree import tree_of
from trimtuner.keys.declared import keys_of, read_keys
from trimtuner.keys.faults import Fault, Faults, JobFileError, one_printable_line
from trimtuner.keys.fields import ROOT, Field, MappingNode, Node

LARGEST_FILE = 2**20  # bytes
_SWEEP = {"method", "metric", "parameters"}  # of W&B's sweeps
_RECORD = b"SQLite format 3\0"  # how a record begins


def load_job(path: Path) -> Job:
    """The job that the file describes; a ``JobFileError`` tells all that is wrong with it."""
    content = _content(path)
    faults = Faults(path, _homes())
    with faults.collecting(1):
        job = _job(_decoded(content), faults, path)
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


def _job(text: str, faults: Faults, path: Path) -> Job | None:
    node = tree_of(text, faults)
    if node is None:
        raise Fault(1, "the job file is empty; 'trimtuner init' writes one to start from")
    known = tuple(keys_of(JobKeys))
    _refuse_sweep(node)
    root = Field(node, ROOT, node.line, faults).section(known, "a mapping of keys such as 'name: mnist'")
    found = read_keys(root, JobKeys)
    offer = Offer()
    with faults.collecting(root.line):
        offer = offer_of(root, found.data, found.parameters, found.cloud, found.configs)
    if "run" in root:
        check_run(root.field("run"), found.run, offer)
    if found.name is None or found.goal is None or found.run is None or offer.space is None:
        return None
    folder = faults.path.parent
    job = Job(
        name=found.name,
        path=path,
        space=offer.space,
        configs=offer.configs,
        goal=found.goal,
        constraints=found.constraints,
        budget=found.budget,
        run=completed(found.run, folder, offer),
        engine=found.engine,
        search=found.search,
        storage=found.storage or folder / f"{found.name}.db",
    )
    _check_together(root, job)
    return job


def _refuse_sweep(node: Node) -> None:
    """Say at once that a file is somebody else's, instead of one fault for each of its keys."""
    keys = set(node.entries) if isinstance(node, MappingNode) else set()
    if "goal" not in keys and keys >= _SWEEP:
        raise Fault(
            node.line,
            "this is a sweep of W&B; 'trimtuner init job.yaml' writes a job file to start from, which takes its "
            "'parameters' with 'values', 'value', 'min' and 'max' as they are (for 'distribution: log_uniform_values' "
            "write 'scale: log'); 'metric' becomes 'goal: {maximize: accuracy}', 'program' becomes 'run: {command: "
            "[python, train.py, ...]}', and 'run_cap' becomes 'budget: {trials: 60}'",
        )


def _homes() -> dict[str, tuple[str, ...]]:
    """The sections with their keys, to say of a misplaced one where it belongs."""
    sections = {name: one.schema.get("properties") for name, one in keys_of(JobKeys).items()}
    inner = {name: tuple(keys) for name, keys in sections.items() if isinstance(keys, dict)}
    return {ROOT: tuple(keys_of(JobKeys)), **inner}


def _check_together(root: Field, job: Job) -> None:
    """What only several sections together can get wrong."""
    with root.faults.collecting(root.line_of("constraints")):
        problem = problem_of(job)
        if problem.names_cost and not job.space.has_prices:
            key = "budget" if job.budget.money is not None else "constraints" if "constraints" in root else "goal"
            raise Fault(
                root.line_of(key),
                f"{key}: it speaks of money, and no machine has a price; write 'cloud:', or prices in 'configs:'",
            )
    _check_metrics_file(root, job)


def _check_metrics_file(root: Field, job: Job) -> None:
    run, engine = job.run, job.engine
    if run.metrics_file is None or engine.parallel == 1 or Word.parse(run.metrics_file).names:
        return
    root.faults.add(
        root.line_of("run"),
        f"run.metrics: {engine.parallel} trials side by side would write the same file; name it by the trial, "
        'such as {file: "metrics-{trial}.jsonl"}, and hand {trial} to the command',
    )
