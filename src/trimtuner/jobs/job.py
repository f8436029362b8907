"""A job: everything that a job file says, checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trimtuner.jobs.cloud_section import CLOUD
from trimtuner.jobs.engine_section import ENGINE, EngineChoice
from trimtuner.jobs.engines import ENGINES
from trimtuner.jobs.names import STUDY_NAME, check_name
from trimtuner.jobs.problem_section import BUDGET, CONSTRAINTS, GOAL, Budget
from trimtuner.jobs.run_section import RUN, TrialCommand
from trimtuner.jobs.search_section import SEARCH, Search
from trimtuner.jobs.space_section import CONFIGS, DATA, PARAMETERS, Data, Listed
from trimtuner.keys.declared import key, optional
from trimtuner.keys.fields import Field
from trimtuner.keys.kinds import Kind, either, like, text
from trimtuner.problem.axes import Configuration
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.parameters import Parameter
from trimtuner.problem.problem import COST, Constraint, Goal, Problem
from trimtuner.problem.space import Space
from trimtuner.problem.vms import VM
from trimtuner.records import Address
from trimtuner.records.addresses import DATABASES

GIB = 2**30
_LONGEST_NAME, _LONGEST_PATH = 240, 4000  # bytes; Linux has 255 and 4096, and beside a record stand longer names


def _storage(field: Field) -> Path | Address:
    found = field.text("the path of the study's record, or the address of a PostgreSQL database")
    if "://" in found:
        with field.blamed():
            return Address.parse(found)
    storage = field.folder / found
    if not found or storage == field.faults.path or storage.name in ("", ".", ".."):
        raise field.fault("it must be the path of a file of its own, such as mnist.db")
    if len(os.fsencode(storage)) > _LONGEST_PATH or any(len(os.fsencode(one)) > _LONGEST_NAME for one in storage.parts):
        raise field.fault(f"a path of more than {_LONGEST_PATH} bytes, or {_LONGEST_NAME} in one name; shorten it")
    return storage


@dataclass(frozen=True)
class JobKeys:
    """A job file section by section, as it is written; None is what is not there, or faulty."""

    name: str | None = optional(
        text("the name of the study", like(STUDY_NAME), check_name),
        "The name of the study: 1 to 64 letters, digits and `.` `_` `-`, the first a letter or digit.",
        write="name: mnist",
        examples=["mnist-cnn"],
    )
    goal: Goal | None = optional(
        GOAL,
        "What you want. `cost` (USD) and `time` (seconds) are measured by trimtuner; every other metric is what your "
        "command reports. Two metrics ask for the trade-off between them: the best of one for every value of the "
        "other.",
        write="goal: {maximize: accuracy}",
        examples=[
            {"maximize": "accuracy"},
            {"minimize": COST},
            {"maximize": "accuracy", "minimize": COST},
            {"minimize": ["loss", COST]},
        ],
    )
    constraints: tuple[Constraint, ...] = key(
        CONSTRAINTS,
        "What must hold for the recommendation, each a text `metric <= limit` or `metric >= limit`. They are meant for "
        "a training on all of the data; with `minimize: cost` or `minimize: time`, on the recommended share of it. "
        "`cost` takes `USD` or `cents`, `time` takes `ms`, `s`, `min`, `h` or `d`, any other metric a plain number; "
        "shares such as accuracy are from 0 to 1.",
        default=(),
        examples=[["cost <= 0.10 USD", "time <= 20min", "latency_ms <= 40"]],
    )
    budget: Budget = key(
        BUDGET,
        "What the whole search may use. Without it the search goes on until everything is tested or you stop it.",
        default=Budget(),
        examples=[{"money": "25 USD", "time": "12h", "trials": 200}],
    )
    data: Data = key(
        DATA,
        "How much of the data trials may train on.",
        default=Data(),
        examples=[{"fractions": ["1/60", "1/10", "1/4", 1], "snapshots": True}],
    )
    parameters: Mapping[str, Parameter] | None = optional(
        PARAMETERS,
        "What your training script may be told, by names of your own: letters, digits and underscores. Each is a list "
        "of `values`, a range from `min` to `max`, or one `value`. Your command finds the choice in `{name}`.",
        examples=[
            {
                "learning_rate": {"values": [0.001, 0.0001], "scale": "log"},
                "batch_size": {"min": 16, "max": 512, "scale": "log2", "type": "int"},
                "optimizer": {"values": ["sgd", "adam"]},
                "momentum": {"min": 0.0, "max": 0.99, "when": "optimizer == 'sgd'"},
            }
        ],
    )
    cloud: Cloud | None = optional(
        CLOUD,
        "The machines to choose from: `vm_type`, `vm_count` and, where there is a choice, `market` become parameters. "
        "They come from a catalog, from `vms`, or from both.",
        examples=[
            {
                "catalog": "aws",
                "region": "eu-west-1",
                "vm_type": ["m5.large", "m5.xlarge"],
                "vm_count": {"min": 1, "max": 16, "rule": "vm_count * vcpus <= 32"},
                "market": ["on_demand", "spot"],
                "spot": {"discount": 0.65, "interruptions_per_hour": 0.05},
            },
            {"vms": {"cpu-2": {"vcpus": 2, "memory_gib": 4, "price_per_hour": 0.0464}}},
        ],
    )
    configs: tuple[Listed, ...] | None = optional(
        CONFIGS,
        "Instead of `parameters` and `cloud`: every configuration written out, as a mapping of names of your own to "
        "values. All of them have a price, or none.",
        examples=[
            [
                {"rate": 0.1, "machine": "small", "price_per_hour": 0.05},
                {"rate": 0.1, "machine": "large", "price_per_hour": 0.1},
            ]
        ],
    )
    run: TrialCommand | None = optional(
        RUN,
        'How one trial is run. It reports by printing a line such as `::metric {"accuracy": 0.91}`; everything else it '
        "prints goes to its log. Time and cost are measured.",
        write="run: {command: [python, train.py]}",
        examples=[
            {
                "command": ["python", "train.py", "--lr={learning_rate}", "--fraction={fraction}"],
                "timeout": "30min",
                "secrets": ["WANDB_API_KEY"],
            }
        ],
    )
    engine: EngineChoice = key(
        ENGINE,
        "Where trials run. Besides `type` and `parallel`, each type has keys of its own.",
        default=EngineChoice(),
        examples=[{"type": name, **one.example} for name, one in ENGINES.items()],
    )
    search: Search = key(
        SEARCH,
        "Who decides what to test. The same seed makes the same choices.",
        default=Search(),
        examples=[{"method": "trimtuner", "seed": 0}],
    )
    storage: Path | Address | None = optional(
        Kind(
            _storage,
            {
                "type": "string",
                "minLength": 1,
                "anyOf": [{"pattern": rf"^{either(map(re.escape, DATABASES))}://"}, {"not": {"pattern": "://"}}],
            },
        ),
        "Where the record is kept: the path of a SQLite file from the folder of the job file, or the address of a "
        "PostgreSQL database. Without it, `NAME.db` beside the job file.",
        examples=["records/mnist.db", "postgresql://user@host/database"],
    )


@dataclass(frozen=True)
class Job:
    """A job file, read and checked."""

    name: str
    path: Path
    space: Space
    configs: tuple[Configuration, ...] | None  # where the job lists them one by one
    goal: Goal
    constraints: tuple[Constraint, ...]
    budget: Budget
    run: TrialCommand
    engine: EngineChoice
    search: Search
    storage: Path | Address

    def vm_of(self, config: Mapping[str, Value]) -> VM | None:
        """The VM type that the configuration names, where the job says what it is."""
        cloud = self.space.cloud
        return None if cloud is None else cloud.vms.get(str(config.get("vm_type")))

    def memory_bytes_for(self, config: Mapping[str, Value]) -> int | None:
        """The memory that a trial may use: as written, or that of one VM of its type."""
        if self.run.memory != "vm":
            return self.run.memory
        vm = self.vm_of(config)
        return None if vm is None else int(vm.memory_gib * GIB)


def problem_of(job: Job) -> Problem:
    """The problem that the job states; its budget is the money."""
    return Problem.of(
        job.space,
        maximize=job.goal.maximized,
        minimize=job.goal.minimized,
        constraints=[constraint.text for constraint in job.constraints],
        budget=job.budget.money,
    )


def limited_problem_of(job: Job) -> Problem:
    """The same, with when a trial is ended, and so what it costs at worst."""
    ended_within = job.engine.settings.ended_within_seconds
    # Limits are meant of the mean of several runs, which one that takes long does not break by itself.
    stops = job.run.stop_at_limits and job.run.repeats == 1
    return replace(
        problem_of(job),
        trial_limit=job.run.timeout + ended_within,
        ended_within=ended_within if stops else None,
    )
