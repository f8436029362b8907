"""The house is as it says: what is added touches one place, and what is named is named once."""

from __future__ import annotations

import ast
import graphlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import trimtuner as tt
from trimtuner.commands.methods import text_of_methods
from trimtuner.jobs.engines import ENGINES
from trimtuner.tuning.recipes import METHODS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trimtuner"
MOST_CROSSED, MOST_CROSSED_WITH_RECORD = 20, 28  # files that one must know to follow an ask

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
        if module != PACKAGE / "jobs" / "engines.py"
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

from trimtuner.jobs import engines as known
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


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package, by its path."""
    for module in sorted(PACKAGE.rglob("*.py")):
        yield str(module.relative_to(PACKAGE)), ast.parse(module.read_text())


def test_a_class_name_means_one_thing():
    names = Counter(node.name for _, tree in modules() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_what_is_public_says_what_one_gets():
    """A docstring of a few words repeats the name."""
    short = [
        f"{path}: {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
        if 0 < len((ast.get_docstring(node) or "").split()) <= 4
    ]
    assert short == []


def folders_imported(tree: ast.Module) -> Iterator[str]:
    """The folders of the package that a module imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trimtuner."):
            place = PACKAGE.joinpath(*(node.module or "").split(".")[1:])
            yield str((place if place.is_dir() else place.parent).relative_to(PACKAGE))


def test_no_two_folders_import_each_other_not_even_round_a_corner():
    graph: dict[str, set[str]] = {}
    for path, tree in modules():
        folder = str(Path(path).parent)
        if folder != ".":  # the package itself has what all may use
            graph.setdefault(folder, set()).update(set(folders_imported(tree)) - {folder, "."})
    graphlib.TopologicalSorter(graph).prepare()  # an error names a cycle


def files_crossed_by_one_ask(storage: Path | None) -> set[str]:
    """Which files of the package run code between a user's ``ask`` and its answer, once there is a model."""
    space = tt.Space({"x": tt.Choice([1, 2, 3, 4, 5, 6]), "y": tt.Choice([1, 2, 3])}, fractions=[0.1, 1.0])
    study = tt.Study(space, maximize="accuracy", constraints=["time <= 100"], storage=storage)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, accuracy=0.5 + 0.05 * trial.config["x"] * trial.fraction, time=10.0 * trial.config["y"])
    crossed: set[str] = set()

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            crossed.add(str(file.relative_to(PACKAGE)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        study.ask()
    finally:
        sys.setprofile(before)
    return crossed


@pytest.mark.parametrize(("stored", "at_most"), [(False, MOST_CROSSED), (True, MOST_CROSSED_WITH_RECORD)])
def test_who_reads_what_an_ask_does_crosses_few_files(tmp_path, stored, at_most):
    crossed = files_crossed_by_one_ask(tmp_path / "a.db" if stored else None)
    assert "tuning/tuner.py" in crossed
    assert len(crossed) <= at_most, sorted(crossed)


A_NEW_VERB = """
import sys
from trimtuner.commands import verbs

verbs.__path__.append(sys.argv[1])
from trimtuner.cli import app_of

app_of("greet")(["greet", "--name", "you"])
"""
ITS_FILE = """
from trimtuner.commands.verbs.shared import verb


@verb(99)
def greet(name: str = "") -> None:
    \"\"\"Say hello to somebody by name.\"\"\"
    print(f"hello {name}")
"""


def test_a_new_command_is_its_file(tmp_path):
    (tmp_path / "greet.py").write_text(ITS_FILE)
    done = subprocess.run(
        [sys.executable, "-c", A_NEW_VERB, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "hello you\n"


def test_a_new_method_is_its_recipe_and_a_line_in_the_table(monkeypatch):
    one = METHODS["random"]
    monkeypatch.setitem(METHODS, "guess", replace(one, name="guess", use="to guess"))
    assert "guess" in text_of_methods()
    study = tt.Study(tt.Space({"x": tt.Choice([1, 2])}), maximize="accuracy", method="guess")
    assert study.ask().config["x"] in (1, 2)
