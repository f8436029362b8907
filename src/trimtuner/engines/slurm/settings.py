"""The Slurm engine, as a job file asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines.checks import Check, Workload
from trimtuner.engines.protocol import ENDED_WITHIN_SECONDS, Engine
from trimtuner.errors import InputError
from trimtuner.keys.declared import key, optional
from trimtuner.keys.kinds import like, list_of, mapping_of, text, text_like
from trimtuner.keys.quantities import DURATION
from trimtuner.problem.catalog import VM_NAME, check_vm_name

READY_WITHIN_SECONDS = 60.0  # of its start, the command of a job runs: the node's Python is started
_ENDED_BY_SLURM_SECONDS = 120.0  # its limits count whole minutes, and it looks for those that passed every half one
_NAME = text_like(re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:@-]{0,127}"), "a name as sinfo or sacctmgr shows it")
# One word each, so that what is an option and what its value is never in doubt.
_OPTION = re.compile(r"--([a-z][a-z-]*)(=.*)?")
_OURS = frozenset(
    [
        "array",
        "batch",
        "chdir",
        "clusters",
        "comment",
        "export",
        "export-file",
        "ignore-pbs",
        "input",
        "job-name",
        "get-user-env",
        "help",
        "no-requeue",
        "nodes",
        "ntasks-per-node",
        "open-mode",
        "output",
        "error",
        "parsable",
        "quiet",
        "requeue",
        "test-only",
        "time",
        "time-min",
        "usage",
        "version",
        "wait",
        "wrap",
    ]
)


def _check_option(option: str) -> None:
    match = _OPTION.fullmatch(option)
    if match is None:
        raise InputError(f"{option!r} is no option of sbatch in one word, such as --qos=long or --exclusive")
    if match[1] in _OURS:
        raise InputError(f"--{match[1]} is set by trimtuner itself, which must know what it says")


_OPTIONS = list_of(
    text("an option of sbatch such as --qos=long", like(_OPTION), _check_option),
    "a list of options of sbatch such as [--qos=long, --exclusive]",
)


@dataclass(frozen=True)
class SlurmSettings:
    """Trials as jobs of a Slurm cluster. A VM type is a feature of its nodes, unless ``vm_types`` says otherwise."""

    partition: str | None = optional(
        _NAME, "The partition that jobs are handed in to. Without it, the cluster's default.", examples=["main"]
    )
    account: str | None = optional(
        _NAME, "The account that jobs are charged to. Without it, your default.", examples=["physics"]
    )
    options: tuple[str, ...] = key(
        _OPTIONS,
        "More options of `sbatch` for every job, each one word with its value behind `=`.",
        default=(),
        examples=[["--qos=long", "--exclusive"]],
    )
    vm_types: Mapping[str, tuple[str, ...]] = key(
        mapping_of(
            _OPTIONS,
            "a mapping from VM types to options of sbatch such as {a100: [--partition=gpu, --constraint=a100]}",
            check_vm_name,
            like(VM_NAME),
        ),
        "How nodes of a VM type are asked for: options of `sbatch`. A type that is not named here is a feature: "
        "`--constraint=TYPE`.",
        default={},
        examples=[{"a100": ["--partition=gpu", "--constraint=a100"]}],
    )
    python: str = key(
        text_like(re.compile(r"[A-Za-z0-9_./+-]{1,255}"), "a program or its path, such as /usr/bin/python3"),
        "The Python of the nodes, 3.9 or newer, that looks after the command; it needs no packages.",
        default="python3",
        examples=["/usr/bin/python3"],
    )
    queue_limit: float | None = optional(  # seconds
        DURATION,
        "How long a trial may wait in the queue before it is taken out and ends as `unavailable`; with its unit. "
        "Without it, as long as the queue takes.",
        examples=["2d"],
    )

    def words_of(self, vm_type: str) -> tuple[str, ...]:
        """How nodes of a VM type are asked for."""
        return self.vm_types.get(vm_type, (f"--constraint={vm_type}",))

    @property
    def ended_within_seconds(self) -> float:
        """From the start of a job to that of its command, the supervisor's grace, and what Slurm's own limit takes."""
        return READY_WITHIN_SECONDS + ENDED_WITHIN_SECONDS + _ENDED_BY_SLURM_SECONDS

    def engine(self, folder: Path, secret: bytes) -> Engine:
        """The engine; Slurm is asked when it is first needed."""
        from trimtuner.engines.slurm.engine import SlurmEngine

        return SlurmEngine(folder, secret, self)

    def checks(self, work: Workload) -> Iterator[Check]:
        """Whether Slurm answers, takes such jobs, and has the nodes that the job names."""
        from trimtuner.engines.slurm.checks import checks_of

        return checks_of(work, self)
