"""The house is as it says: what is added touches one place, and what is named is named once."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from trimtuner.engines.known import ENGINES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trimtuner"

# Where a word is the name of an engine and of something else, and the other is meant.
_PROVIDERS = "a cloud provider, whose catalog of prices has the name of the engine that rents there"
NOT_THE_ENGINE = {
    "commands/catalog/aws.py": _PROVIDERS,
    "commands/catalog/updating.py": _PROVIDERS,
    "commands/launch/kubernetes.py": _PROVIDERS,
    "commands/launch/plan.py": _PROVIDERS,
    "commands/launch/sagemaker.py": _PROVIDERS,
    "jobs/cloud_section.py": _PROVIDERS,
    "jobs/job.py": _PROVIDERS,
    "problem/catalog.py": _PROVIDERS,
}


def texts_of(module: Path) -> set[str]:
    """Every text in a module that stands alone."""
    return {node.value for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)}


def test_only_its_folder_and_the_table_of_engines_name_the_type_of_an_engine():
    naming = {
        str(module.relative_to(PACKAGE)): texts_of(module) & set(ENGINES)
        for module in PACKAGE.rglob("*.py")
        if module != PACKAGE / "engines" / "known.py"
    }
    elsewhere = {
        name: {word for word in words if not name.startswith(f"engines/{word}/")} for name, words in naming.items()
    }
    assert {name for name, words in elsewhere.items() if words} == set(NOT_THE_ENGINE)
    assert all(elsewhere[name] == {"aws"} for name in NOT_THE_ENGINE)


# A fifth engine: a class that declares its keys, and a line in the table.
A_NEW_ENGINE = """
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from trimtuner.engines import known
from trimtuner.engines.checks import fine
from trimtuner.keys.declared import key
from trimtuner.keys.kinds import text


@dataclass(frozen=True)
class QueueSettings:
    partition: str = key(text("the name of a partition"), "Whose turn it is.", default="batch", examples=["night"])

    def checks(self, work):
        yield fine("queue", f"{self.partition} takes {work.parallel} at once")


known.ENGINES["queue"] = known.KnownEngine("a queue", QueueSettings, {"partition": "night"})

from tools.reference_pages import job_file_page
from trimtuner.commands.doctor import examine
from trimtuner.jobs.load import load_job
from trimtuner.jobs.schema import job_schema

job = load_job(Path(sys.argv[1]))
print(json.dumps({
    "settings": repr(job.engine.settings),
    "schema": job_schema()["properties"]["engine"]["properties"]["partition"],
    "page": job_file_page(),
    "checks": [check.text for check in examine(job) if check.name == "queue"],
}))
"""
A_JOB_ON_IT = """\
name: x
goal: {maximize: accuracy}
parameters: {rate: {values: [1, 2]}}
run: {command: [train, "{rate}"]}
engine: {type: queue, parallel: 3, partition: night}
"""


def test_a_new_engine_is_read_described_and_checked_from_its_class_and_its_line_in_the_table(tmp_path):
    (tmp_path / "job.yaml").write_text(A_JOB_ON_IT)
    done = subprocess.run(
        [sys.executable, "-c", A_NEW_ENGINE, str(tmp_path / "job.yaml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told["settings"] == "QueueSettings(partition='night')"
    assert told["schema"]["description"] == "Whose turn it is."
    assert told["schema"]["default"] == "batch"
    assert "#engine-queue-partition " in told["page"]
    assert "Whose turn it is. Default: `batch`. Such as `night`." in told["page"]
    assert told["checks"] == ["night takes 3 at once"]
