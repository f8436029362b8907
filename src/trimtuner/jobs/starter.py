"""A first job file, with a comment on every section."""

from __future__ import annotations

import re
from pathlib import Path

from trimtuner.files import FOR_ALL, write_new
from trimtuner.jobs.names import check_name

SCHEMA_FILE = "trimtuner.schema.json"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def init_text(name: str) -> str:
    """A job file to start from, for a study of that name."""
    return _TEXT.replace("@NAME@", check_name(name))


def write_init(path: Path) -> None:
    """Write a first job file, named after the file; never over one that is there."""
    write_new(path, init_text(_study_name(path)), FOR_ALL)


def write_init_with_schema(path: Path) -> Path:
    """The same, with the schema beside it and named in its first lines, as editors want it; where the schema is."""
    beside = path.parent / SCHEMA_FILE
    from trimtuner.jobs.schema import write_schema  # heavy, and rarely asked for

    write_schema(beside)  # first: a job file must not name a schema that could not be written
    write_new(path, _EDITOR_LINES + init_text(_study_name(path)), FOR_ALL)
    return beside


def _study_name(path: Path) -> str:
    return _NOT_IN_NAMES.sub("-", path.stem).lstrip("._-")[:64] or "study"


# The first is for what uses the YAML language server, such as VS Code; the second for JetBrains.
_EDITOR_LINES = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# $schema: ./{SCHEMA_FILE}
"""

_TEXT = """\
# A job for trimtuner (YAML 1.2). 'trimtuner validate' tells what it would do and cost at worst,
# 'trimtuner run' starts the search, or goes on with it. Completion while you type: 'trimtuner schema --help'.

name: "@NAME@"                           # letters, digits and . _ -

# What you want. The metric is what your command reports; 'cost' (USD) and 'time' are measured for you.
goal: {maximize: accuracy}               # or {minimize: cost} with a constraint on accuracy

# What must hold when the job trains on all of its data. Units: USD, cents; s, min, h, d.
constraints: ["cost <= 0.10 USD", "time <= 20min"]

# What the whole search may use. Money is a hard cap: a trial starts only if its worst case still fits.
budget: {money: 1 USD, time: 12h, trials: 60}

# Shares of the data that trials may train on. With snapshots: true, one run reports the smaller shares on its way.
data: {fractions: [1/16, 1/8, 1/4, 1/2, 1], snapshots: false}

# What may be chosen: {values: [...]}, {min: ..., max: ..., type: int or float}, or {value: ...} for a constant.
# scale: linear, log or log2. when: a condition on parameters above, such as "optimizer == 'sgd'".
parameters:
  hidden_units: {values: [32, 64, 128, 256, 512], scale: log}
  learning_rate: {values: [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 0.5], scale: log}
  batch_size: {values: [32, 128, 512], scale: log}

# The machines. 'vms' describes your own; or take known ones: 'catalog: builtin' (or prices.csv), 'vm_type: [t2.small]'.
# vm_count: a number, a list, or {min: 1, max: 8, rule: "vm_count * vcpus <= 16"}. market: [on_demand, spot].
cloud:
  vms:
    cpu-1: {vcpus: 1, memory_gib: 2, price_per_hour: 0.0232}       # USD
    cpu-2: {vcpus: 2, memory_gib: 4, price_per_hour: 0.0464}

# One trial. The command is a list of words; no shell reads it. Braces hold what was chosen, and also
# {fraction}, {trial}, {snapshots}, {vm_type}, {vm_count}, {market}, {vcpus}, {memory_gib}, {gpus}.
# It reports by printing a line such as   ::metric {"accuracy": 0.91}
run:
  command:
    - python
    - train.py
    - "--hidden-units={hidden_units}"
    - "--learning-rate={learning_rate}"
    - "--batch-size={batch_size}"
    - "--threads={vcpus}"
    - "--fraction={fraction}"
  timeout: 30min                         # a trial is ended then; timeout x price is reserved for it (default: 1h)
  # memory: 4GiB                         # or 'vm', that of the VM type
  # environment: {OMP_NUM_THREADS: 1}
  # secrets: [WANDB_API_KEY]             # names only, taken from your environment
  # retries: {preempted: 2, exit: 0}     # kinds: preempted, exit, signal, oom, timeout, lost, unavailable

# Where: local is this machine, so many trials side by side. Or {type: ray, address: auto} for a Ray cluster,
# {type: aws, region: eu-west-1} to rent the machines of each trial, {type: replay, table: digits} for a rehearsal.
engine: {type: local, parallel: 1}

# Who decides: see 'trimtuner methods'. The same seed makes the same choices.
search: {method: trimtuner, seed: 0}
"""
