"""The schema of how a trial runs."""

from __future__ import annotations

from trimtuner.engines.protocol import EXIT, LOST, OUT_OF_MEMORY, SIGNAL, TIMEOUT, UNAVAILABLE
from trimtuner.jobs.job import DEFAULT_TIMEOUT_SECONDS
from trimtuner.jobs.run_section import (
    DEFAULT_RETRIES,
    MOST_RETRIES,
    OUR_PREFIX,
    RETRIED_KINDS,
    SECRET_NAME,
    VARIABLE_NAME,
)
from trimtuner.jobs.schema_kinds import (
    DURATION,
    MEMORY,
    SCALAR,
    TEXT,
    WORD,
    Schema,
    braces,
    key,
    list_of,
    mapping,
    mapping_of_own,
    one_of,
    text_like,
    whole_number,
)
from trimtuner.jobs.validation import duration_text
from trimtuner.problem.history import PREEMPTED

_KINDS = {
    PREEMPTED: "Its machines were taken away, as happens on spot.",
    EXIT: "The command ended with a code other than 0.",
    SIGNAL: "Something killed the command.",
    OUT_OF_MEMORY: "It ran out of memory.",
    TIMEOUT: "It was ended at its time-out.",
    LOST: "It vanished, and nobody saw its end.",
    UNAVAILABLE: "No such machines were to be had in time.",
}

METRICS: Schema = {
    "anyOf": [
        one_of(["stdout"]),
        mapping(
            {
                "file": key(
                    "A file of JSON lines that the command writes, inside the working directory. With several trials "
                    "side by side its name needs `{trial}`.",
                    {
                        "type": "string",
                        "pattern": braces("trial"),
                        "not": {"pattern": r"^/|(?:^|/)\.\.(?:/|$)|^(?:\./*)*$"},
                    },
                    examples=["metrics-{trial}.jsonl"],
                )
            },
            required=["file"],
        ),
    ]
}

RUN = key(
    'How one trial is run. It reports by printing a line such as `::metric {"accuracy": 0.91}`; everything else it '
    "prints goes to its log. Time and cost are measured.",
    mapping(
        {
            "command": key(
                "The program and its words, as a list; no shell reads it. Braces hold what was chosen: any parameter, "
                "`{fraction}`, `{trial}`, `{snapshots}`, and with a cloud `{vm_type}`, `{vm_count}`, `{market}`, "
                "`{vcpus}`, `{memory_gib}` and `{gpus}`. Write `{{` and `}}` for braces themselves.",
                list_of(WORD, least=1),
                examples=[["python", "train.py", "--lr={learning_rate}", "--fraction={fraction}"]],
            ),
            "working_directory": key(
                "The folder in which the command runs, from the folder of the job file.",
                TEXT,
                default=".",
                examples=["jobs"],
            ),
            "environment": key(
                "Variables that are set for the command. Secrets do not belong here.",
                mapping_of_own({**text_like(VARIABLE_NAME), "not": {"pattern": f"^{OUR_PREFIX}"}}, SCALAR),
                default={},
                examples=[{"OMP_NUM_THREADS": 1}],
            ),
            "secrets": key(
                "Names, in capitals, of variables of your own environment that are handed to the command. Their values "
                "are written nowhere.",
                list_of(text_like(SECRET_NAME)),
                default=[],
                examples=[["WANDB_API_KEY"]],
            ),
            "timeout": key(
                "When a trial is ended; with its unit, at most a year. Time-out times price is reserved while it runs.",
                DURATION,
                default=duration_text(DEFAULT_TIMEOUT_SECONDS),
                examples=["30min", "90s"],
            ),
            "memory": key(
                "The memory that a trial may use (`MB`, `GB`, `MiB`, `GiB` and so on), or `vm` for that of its VM "
                "type. Without it there is no limit.",
                MEMORY,
                examples=["4GiB", "vm"],
            ),
            "retries": key(
                "How often a failed trial is tried again, for each kind of failure. Every attempt is charged.",
                mapping(
                    {
                        kind: key(_KINDS[kind], whole_number(0, MOST_RETRIES), DEFAULT_RETRIES.get(kind, 0))
                        for kind in RETRIED_KINDS
                    }
                ),
                examples=[{"preempted": 5, "oom": 1}],
            ),
            "metrics": key("Where the command reports: `stdout`, or a file.", METRICS, default="stdout"),
        },
        required=["command"],
    ),
    examples=[
        {
            "command": ["python", "train.py", "--lr={learning_rate}", "--fraction={fraction}"],
            "timeout": "30min",
            "secrets": ["WANDB_API_KEY"],
        }
    ],
)
