"""The examples that train on several machines, really run: here, where processes stand in for machines."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from zlib import crc32

import pytest

from trimtuner.engines.local.engine import LocalEngine
from trimtuner.engines.protocol import AttemptState, Launch
from trimtuner.jobs.load import load_job
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.history import Trial
from waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
SECRET = bytes(range(32))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local engine needs Linux")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(SECRET, [tmp_path])
    yield engine
    for found in engine.find():
        if found.handle.startswith(str(tmp_path)):
            engine.stop(found.handle)


def launch_of(tmp_path: Path, example: str, **config: object) -> Launch:
    """A trial of the example, as ``trimtuner run`` would start it, with this Python."""
    place = tmp_path / example
    if not place.exists():
        shutil.copytree(EXAMPLES / example, place)
    study = JobStudy.at(place / "job.yaml")
    # Ports follow from the name of the study: of two that run at once, each has its own.
    launch = study.launch(f"{example}{crc32(str(tmp_path).encode()):x}", Trial(0, config, 1 / 16), 1)
    program = {"python3": (sys.executable,), "torchrun": (sys.executable, "-m", "torch.distributed.run")}
    return replace(launch, command=(*program[launch.command[0]], *launch.command[1:]))


def ended(engine: LocalEngine, launch: Launch) -> AttemptState:
    handle = engine.start(launch)
    wait_until(lambda: engine.poll(handle).end is not None)
    return engine.poll(handle)


def train_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("distributed_train", EXAMPLES / "distributed" / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_job_file_of_the_examples_is_right(path: Path) -> None:
    assert load_job(path).name


@pytest.mark.parametrize(
    ("mode", "workers"), [("sync", 2), ("async", 2), pytest.param("sync", 4, marks=pytest.mark.slow)]
)
def test_workers_a_parameter_server_and_a_book_keeper_train_together(
    engine: LocalEngine, tmp_path: Path, mode: str, workers: int
) -> None:
    config = {"vm_type": "cpu-1", "vm_count": workers, "learning_rate": 0.1, "batch_size": 16, "mode": mode}
    launch = launch_of(tmp_path, "distributed", **config)
    state = ended(engine, replace(launch, command=(*launch.command, "--look=0.1")))
    assert state.end is not None
    assert state.end.kind is None, state.end
    (report,) = state.reports
    assert report.metrics["accuracy"] > 0.5  # one in ten by chance
    book = (launch.folder / "0-1" / f"node-{workers + 1}" / "log.txt").read_text().splitlines()
    batches = int(book[-1].split()[0])
    assert batches >= train_module().batches_to_see(0.9, round(1297 / 16), 16)
    assert batches % workers == 0 or mode == "async"  # all workers move together
    assert f"{report.metrics['accuracy']:.3f}" == book[-1].rsplit(maxsplit=1)[1]


def test_batches_are_enough_to_see_nine_tenths_of_the_data_and_no_more() -> None:
    batches_to_see = train_module().batches_to_see
    for pictures, batch in ((1297, 16), (60000, 256), (81, 4)):
        count = batches_to_see(0.9, pictures, batch)
        seen = [1 - ((pictures - 1) / pictures) ** (number * batch) for number in (count - 1, count)]
        assert seen[0] < 0.9 <= seen[1]


@pytest.mark.slow
def test_torchrun_starts_a_process_on_each_of_two_machines(engine: LocalEngine, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    launch = launch_of(tmp_path, "torchrun", vm_type="cpu-1", vm_count=2, units=32, rate=0.1, batch=8)
    state = ended(engine, launch)
    assert state.end is not None
    assert state.end.kind is None, (state.end, (launch.folder / "0-1" / "log.txt").read_text())
    (report,) = state.reports
    assert report.metrics["accuracy"] > 0.5
