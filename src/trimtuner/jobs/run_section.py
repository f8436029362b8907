"""How a trial runs: command, folder, variables, limits, where its metrics come from."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from trimtuner.engines.protocol import EXIT, LOST, OUT_OF_MEMORY, SIGNAL, TIMEOUT, UNAVAILABLE
from trimtuner.errors import InputError
from trimtuner.jobs.commands import Word
from trimtuner.jobs.fields import SECTIONS, Field, shortened
from trimtuner.jobs.job import DEFAULT_TIMEOUT_SECONDS, Memory, Run
from trimtuner.jobs.quantities import duration, memory
from trimtuner.jobs.space_section import RUN_PLACEHOLDERS, Offer
from trimtuner.jobs.tree import ListNode, ScalarNode
from trimtuner.problem.cloud import Cloud
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import PREEMPTED

DEFAULT_RETRIES: Mapping[str, int] = {PREEMPTED: 2}  # the one failure that is nobody's fault
RETRIED_KINDS = (PREEMPTED, EXIT, SIGNAL, OUT_OF_MEMORY, TIMEOUT, LOST, UNAVAILABLE)

MOST_RETRIES = 20
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
SECRET_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")  # in capitals, so that few secrets pass for a name
OUR_PREFIX = "TRIMTUNER_"
_COMMAND = "a list of words such as [python, train.py, '--lr={learning_rate}']"


def read_run(field: Field, folder: Path, offer: Offer) -> Run | None:
    """The section ``run``; nothing where it has no command, which is noted."""
    section = field.section(SECTIONS["run"], "a mapping with at least a command")
    secrets = section.read("secrets", _secrets, ())
    command = section.required("command", lambda one: _command(one, offer, secrets), f"command: {_COMMAND}")
    run_in = section.read("working_directory", lambda one: folder / one.text("the path of a folder"), folder)
    environment = section.read("environment", lambda one: _environment(one, secrets), {})
    timeout = section.read("timeout", duration, DEFAULT_TIMEOUT_SECONDS)
    limit = section.read("memory", lambda one: _memory(one, offer), None)
    retries = section.read("retries", _retries, DEFAULT_RETRIES)
    metrics_file = section.read("metrics", _metrics_file, None)
    if command is None:
        return None
    facts = _machine_facts(offer.space.cloud) if offer.space and offer.space.cloud else {}
    return Run(command, run_in, environment, secrets, timeout, limit, retries, metrics_file, facts, offer.conditional)


def _command(field: Field, offer: Offer, secrets: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(field.node, ScalarNode) and isinstance(field.node.value, str):
        raise field.fault(f"a command is a list, no shell reads it; write {_as_list(field.node.value)}")
    items = field.items(_COMMAND)
    if not items:
        raise field.fault(f"it is empty; write {_COMMAND}")
    words: list[str] = []
    for item in items:
        with field.faults.collecting(item.line):
            text = item.as_written('a word; put words with braces in quotes, such as "{learning_rate}"')
            with item.blamed():
                _check_word(Word.parse(text), offer, secrets)
            words.append(text)
    if words and (not words[0].strip() or Word.parse(words[0]).names):
        raise items[0].fault("the first word is the program to run; it is never empty and takes no placeholder")
    return tuple(words)


def _check_word(word: Word, offer: Offer, secrets: tuple[str, ...]) -> None:
    for name in sorted(word.names & set(secrets)):
        raise InputError(f"{name} is a secret: the job finds it in its environment, never in its command")
    if offer.names is not None:
        word.require_names((*offer.names, *RUN_PLACEHOLDERS))


def _as_list(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return json.dumps(words, ensure_ascii=False)


def _secrets(field: Field) -> tuple[str, ...]:
    """Names only; what is written instead is not repeated, since it may be the secret itself."""
    if not isinstance(field.node, ListNode):
        raise field.fault("it takes a list of names of environment variables, such as [WANDB_API_KEY], never values")
    names: list[str] = []
    for item in field.items("a list"):
        text = item.node.value if isinstance(item.node, ScalarNode) else None
        if not isinstance(text, str) or not SECRET_NAME.fullmatch(text):
            raise item.fault(
                "not the name of an environment variable in capitals, such as WANDB_API_KEY (what stands here is not "
                "shown, in case it is a secret); values never stand in a job file, set them in the environment"
            )
        names.append(text)
    return tuple(dict.fromkeys(names))


def _environment(field: Field, secrets: tuple[str, ...]) -> dict[str, str]:
    section = field.named_fields("a mapping of variables such as {OMP_NUM_THREADS: 1}")
    found: dict[str, str] = {}
    for name, one in section:
        with field.faults.collecting(section.line(name)):
            _check_variable(name, secrets)
            found[name] = one.as_written("a text or a number (for an empty one write '')")
    return found


def _check_variable(name: str, secrets: tuple[str, ...]) -> None:
    if not VARIABLE_NAME.fullmatch(name):
        raise InputError(f"{shortened(name)} is no name for an environment variable")
    if name.startswith(OUR_PREFIX):
        raise InputError(f"{name} begins with {OUR_PREFIX}, which is how trials are found again; choose another name")
    if name in secrets:
        raise InputError(f"{name} is among the secrets; leave it out here, so that its value stands in no file")


def _memory(field: Field, offer: Offer) -> Memory:
    if not isinstance(field.node, ScalarNode) or field.node.value != "vm":
        return memory(field)
    if offer.space is not None and offer.space.cloud is None:
        raise field.fault("'vm' is the memory of the VM type, and there is no 'cloud:'; write an amount such as 4GiB")
    return "vm"


def _retries(field: Field) -> dict[str, int]:
    section = field.section(RETRIED_KINDS, "a mapping from a kind of failure to a count, such as {preempted: 2}")
    counts = {
        kind: section.read(kind, lambda one: one.whole_number("a count", 0, MOST_RETRIES), 0) for kind in section.keys
    }
    return {**DEFAULT_RETRIES, **counts}


def _metrics_file(field: Field) -> str | None:
    if isinstance(field.node, ScalarNode) and field.node.value == "stdout":
        return None
    wanted = "stdout or a mapping such as {file: metrics.jsonl}"
    return field.section(("file",), wanted).required("file", _relative_path, "file: metrics.jsonl")


def _relative_path(field: Field) -> str:
    text = field.text("the path of a file")
    with field.blamed():
        Word.parse(text).require_names(("trial",))
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or not path.name:
        raise field.fault("it must be the path of a file inside the working directory")
    return text


def _machine_facts(cloud: Cloud) -> dict[str, Mapping[str, Value]]:
    """What a placeholder may say of a VM type; the market too, where it is not a choice."""
    market: dict[str, Value] = {"market": cloud.markets[0]} if len(cloud.markets) == 1 else {}
    return {
        name: {"vcpus": vm.vcpus, "memory_gib": vm.memory_gib, "gpus": vm.gpus, **market}
        for name, vm in cloud.vms.items()
    }
