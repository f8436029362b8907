"""How a trial runs: command, folder, variables, limits, where its metrics come from."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from trimtuner.engines.protocol import CHECKPOINT, OF_NODES, REPEAT, later
from trimtuner.errors import InputError
from trimtuner.jobs.commands import Word
from trimtuner.jobs.space_section import RUN_PLACEHOLDERS, Offer
from trimtuner.keys import kinds
from trimtuner.keys.declared import key, optional, required, section
from trimtuner.keys.fields import Field, ListNode, ScalarNode, shortened
from trimtuner.keys.kinds import Kind
from trimtuner.keys.quantities import DURATION, MEMORY
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.values import written

Memory: TypeAlias = int | Literal["vm"]  # bytes, or that of the VM type

_DEFAULT_TIMEOUT_SECONDS = 3600.0  # what is reserved for a trial must end somewhere, also when nobody says where
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")  # in capitals, so that few secrets pass for a name
_OUR_PREFIX = "TRIMTUNER_"
_NODES: tuple[Literal["head", "all"], ...] = ("head", "all")
_COUNT = kinds.whole_number("a count", 0, 20)
_COMMAND = "a list of words such as [python, train.py, '--lr={learning_rate}']"


# The command


_WORDS = kinds.list_of(
    kinds.word(
        'a word; put words with braces in quotes, such as "{learning_rate}"',
        {**kinds.ANY_SCALAR, "pattern": kinds.braces("[A-Za-z_][A-Za-z0-9_]*")},
    ),
    _COMMAND,
    empty=f"it is empty; write {_COMMAND}",
)


def _command(found: Field) -> tuple[str, ...]:
    if isinstance(found.value, str):
        raise found.fault(f"a command is a list, no shell reads it; write {_as_list(found.value)}")
    return _WORDS.read(found)


def _as_list(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return json.dumps(words, ensure_ascii=False)


# Variables and secrets


def _secrets(found: Field) -> tuple[str, ...]:
    """Names only; what is written instead is not repeated, since it may be the secret itself."""
    if not isinstance(found.node, ListNode):
        raise found.fault("it takes a list of names of environment variables, such as [WANDB_API_KEY], never values")
    return tuple(dict.fromkeys(_SECRETS.read(found)))


def _secret(item: Field) -> str:
    name = item.value
    if not isinstance(name, str) or not _SECRET_NAME.fullmatch(name):
        raise item.fault(
            "not the name of an environment variable in capitals, such as WANDB_API_KEY (what stands here is not "
            "shown, in case it is a secret); values never stand in a job file, set them in the environment"
        )
    return name


_SECRETS = kinds.list_of(Kind(_secret, kinds.like(_SECRET_NAME)), "a list")


def _check_variable(name: str) -> None:
    if not _VARIABLE_NAME.fullmatch(name):
        raise InputError(f"{shortened(name)} is no name for an environment variable")
    if name.startswith(_OUR_PREFIX):
        raise InputError(f"{name} begins with {_OUR_PREFIX}, which is how trials are found again; choose another name")


_ENVIRONMENT = kinds.mapping_of(
    kinds.word("a text or a number (for an empty one write '')"),
    "a mapping of variables such as {OMP_NUM_THREADS: 1}",
    _check_variable,
    {**kinds.like(_VARIABLE_NAME), "not": {"pattern": f"^{_OUR_PREFIX}"}},
)


@dataclass(frozen=True)
class Retries:
    """How often a failed trial is tried again, by the kind of failure as engines name it."""

    preempted: int = key(_COUNT, "Its machines were taken away, as happens on spot.", default=2)  # nobody's fault
    exit: int = key(_COUNT, "The command ended with a code other than 0.", default=0)
    signal: int = key(_COUNT, "Something killed the command.", default=0)
    oom: int = key(_COUNT, "It ran out of memory.", default=0)
    timeout: int = key(_COUNT, "It was ended at its time-out.", default=0)
    lost: int = key(_COUNT, "It vanished, and nobody saw its end.", default=0)
    unavailable: int = key(_COUNT, "No such machines were to be had in time.", default=0)


_RETRIES = kinds.made(
    section(Retries, "a mapping from a kind of failure to a count, such as {preempted: 2}"),
    lambda found: {kind: int(count) for kind, count in dataclasses.asdict(found).items() if count},
)


# Where metrics come from


def _inside(path: str) -> None:
    Word.parse(path).require_names(("trial",))
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts or not parts.name:
        raise InputError("it must be the path of a file inside the working directory")


@dataclass(frozen=True)
class MetricsKeys:
    """A file that the command reports to, as it is written."""

    file: str = required(
        kinds.text(
            "the path of a file",
            {
                "type": "string",
                "pattern": kinds.braces("trial"),
                "not": {"pattern": r"^/|(?:^|/)\.\.(?:/|$)|^(?:\./*)*$"},
            },
            _inside,
        ),
        "A file of JSON lines that the command writes, inside the working directory. With several trials side by side "
        "its name needs `{trial}`.",
        write="file: metrics.jsonl",
        examples=["metrics-{trial}.jsonl"],
    )


_METRICS_FILE = kinds.made(
    section(MetricsKeys, "stdout or a mapping such as {file: metrics.jsonl}"), lambda found: found.file
)


@dataclass(frozen=True)
class TrialCommand:
    """How one trial is run."""

    command: tuple[str, ...] = required(  # as written, with its placeholders
        Kind(_command, _WORDS.schema),
        "The program and its words, as a list; no shell reads it. Braces hold what was chosen: any parameter, "
        "`{fraction}`, `{trial}`, `{snapshots}`, and with a cloud `{vm_type}`, `{vm_count}`, `{market}`, `{vcpus}`, "
        "`{memory_gib}` and `{gpus}`; `{repeat}` counts the runs of a trial from 1, `{checkpoint}` is a folder that a "
        "retry gets back, and with `nodes: all` there are `{node_rank}`, `{node_role}`, `{world_size}`, "
        "`{master_address}` and `{master_port}`. Write `{{` and `}}` for braces themselves.",
        write=f"command: {_COMMAND}",
        examples=[["python", "train.py", "--lr={learning_rate}", "--fraction={fraction}"]],
    )
    nodes: Literal["head", "all"] = key(
        kinds.one_of(_NODES),
        "On which machines of a trial the command starts: on the `head`, which is the first worker, or on `all`, "
        "helpers too. Then the trial ends when the process on the head does, and fails when one of them fails.",
        default="head",
    )
    working_directory: Path = key(
        Kind(lambda field: field.folder / field.text("the path of a folder"), kinds.TEXT, str),
        "The folder in which the command runs, from the folder of the job file.",
        default=Path(),
        examples=["jobs"],
    )
    environment: Mapping[str, str] = key(
        _ENVIRONMENT,
        "Variables that are set for the command. Secrets do not belong here.",
        default={},
        examples=[{"OMP_NUM_THREADS": 1}],
    )
    secrets: tuple[str, ...] = key(  # names of variables of our environment, handed on and written nowhere
        Kind(_secrets, _SECRETS.schema),
        "Names, in capitals, of variables of your own environment that are handed to the command. Their values are "
        "written nowhere.",
        default=(),
        examples=[["WANDB_API_KEY"]],
    )
    timeout: float = key(  # seconds
        DURATION,
        "When a trial is ended; with its unit, at most a year. Time-out times price is reserved while it runs.",
        default=_DEFAULT_TIMEOUT_SECONDS,
        examples=["30min", "90s"],
    )
    stop_at_limits: bool = key(
        kinds.BOOLEAN,
        "Whether a trial is stopped once it has cost or taken a fifth more than a limit on cost or time allows a run "
        "on all of the data. It counts as over the limit, and its accuracy stays unknown. With `repeats` above 1 none "
        "is stopped: the mean keeps a limit, or breaks it.",
        default=True,
        examples=[False],
    )
    memory: Memory | None = optional(
        kinds.word_or("vm", "vm", MEMORY),
        "The memory that a trial may use (`MB`, `GB`, `MiB`, `GiB` and so on), or `vm` for that of its VM type. "
        "Without it there is no limit.",
        examples=["4GiB", "vm"],
    )
    retries: Mapping[str, int] = key(  # for each kind of failure, where it is not 0
        _RETRIES,
        "How often a failed trial is tried again, for each kind of failure. Every attempt is charged.",
        default={"preempted": Retries.preempted},
        examples=[{"preempted": 5, "oom": 1}],
    )
    repeats: int = key(
        kinds.whole_number("a count of runs", 1, 100),
        "How many runs a trial is the mean of. Their spread is recorded and taken for the noise of a measurement; all "
        "of them are charged. A run that fails fails the trial.",
        default=1,
        examples=[3],
    )
    metrics_file: str | None = key(  # in the working directory; may hold {trial}; None: ``::metric`` lines
        kinds.word_or("stdout", None, _METRICS_FILE),
        "Where the command reports: `stdout`, or a file.",
        name="metrics",
        default=None,
    )
    machine_facts: Mapping[str, Mapping[str, Value]] = dataclasses.field(default_factory=dict)  # of each VM type
    conditional: frozenset[str] = frozenset()  # parameters that have no value in some configurations

    def command_for(
        self, config: Mapping[str, Value], fraction: float, trial: int, snapshots: Sequence[float] = ()
    ) -> tuple[str, ...]:
        """The words to run. A word with a placeholder that has no value (an inactive parameter) is left out."""
        values = {**self.machine_facts.get(str(config.get("vm_type")), {}), **config}
        texts = {name: later(name) for name in (*OF_NODES, CHECKPOINT, REPEAT)}
        texts |= {name: written(value) for name, value in values.items()}  # a parameter may have the name of another
        texts |= {"fraction": written(fraction), "trial": written(trial)}
        if snapshots:
            texts["snapshots"] = ",".join(written(share) for share in snapshots)
        words = (Word.parse(word).filled(texts) for word in self.command)
        return tuple(word for word in words if word is not None)

    def metrics_file_for(self, trial: int) -> str | None:
        """Where this trial writes its metrics, if not to its output."""
        return None if self.metrics_file is None else Word.parse(self.metrics_file).filled({"trial": written(trial)})


RUN = section(TrialCommand, "a mapping with at least a command")


# What only the other sections tell


def completed(run: TrialCommand, folder: Path, offer: Offer) -> TrialCommand:
    """The same in its folder, with what placeholders may say of the machines."""
    cloud = None if offer.space is None else offer.space.cloud
    facts = {} if cloud is None else _machine_facts(cloud)
    place = folder / run.working_directory
    return dataclasses.replace(run, working_directory=place, machine_facts=facts, conditional=offer.conditional)


def check_run(found: Field, run: TrialCommand | None, offer: Offer) -> None:
    """Note placeholders that name nothing, secrets in the open, and the memory of a VM type where there is none."""
    secrets = () if run is None else run.secrets
    if "command" in found and isinstance(found.field("command").node, ListNode):
        with found.faults.collecting(found.line_of("command")):
            of_nodes = OF_NODES if run is None or run.nodes == "all" else ()
            _check_words(found.field("command").items(_COMMAND), offer, secrets, (*of_nodes, CHECKPOINT, REPEAT))
    for name in () if run is None else sorted(run.environment.keys() & set(secrets)):
        line = found.field("environment").line_of(name)
        found.faults.add(line, f"{name} is among the secrets; leave it out here, so that its value stands in no file")
    if run is not None and run.memory == "vm" and offer.space is not None and offer.space.cloud is None:
        told = "'vm' is the memory of the VM type, and there is no 'cloud:'; write an amount such as 4GiB"
        found.field("memory").note(told)


def _check_words(items: Sequence[Field], offer: Offer, secrets: Sequence[str], later_known: Sequence[str]) -> None:
    for position, item in enumerate(items):
        if not isinstance(item.node, ScalarNode):
            continue
        with item.faults.collecting(item.line), item.blamed():
            word = Word.parse(item.node.text)
            for name in sorted(word.names & set(secrets)):
                raise InputError(f"{name} is a secret: the job finds it in its environment, never in its command")
            if offer.names is not None:
                known = {*offer.names, *RUN_PLACEHOLDERS, *later_known}
                for name in sorted(word.names & set(OF_NODES) - known):
                    raise InputError(f"{{{name}}} is of a command that starts on every machine; write 'nodes: all'")
                word.require_names(known)
            if position == 0 and (word.names or not item.node.text.strip()):
                raise InputError("the first word is the program to run; it is never empty and takes no placeholder")


def _machine_facts(cloud: Cloud) -> dict[str, Mapping[str, Value]]:
    """What a placeholder may say of a VM type; the market too, where it is not a choice."""
    market: dict[str, Value] = {"market": cloud.markets[0]} if len(cloud.markets) == 1 else {}
    return {
        name: {"vcpus": vm.vcpus, "memory_gib": vm.memory_gib, "gpus": vm.gpus, **market}
        for name, vm in cloud.vms.items()
    }
