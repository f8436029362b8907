"""The Ray engine where it meets the cluster: nodes, workers, actors and drivers killed for real, and counted."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed; install trimtuner[ray]")

import ray
from ray._private.node import Node
from ray.util import placement_group_table
from ray_under_test import SmallCluster

from trimtuner.engines import protocol
from trimtuner.engines.protocol import AttemptState, Engine, Launch, Machines, reap
from trimtuner.engines.ray.connection import NAMESPACE, StudyActors
from trimtuner.engines.ray.own import TAG
from trimtuner.engines.ray.surroundings import AUTHENTICATION, TOKEN_FILE
from trimtuner.engines.supervising import processes
from trimtuner.errors import InputError, TrimTunerError
from trimtuner.jobs.studies import JobStudy
from trimtuner.state import StudyState
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.xdist_group("ray")

JOBS = Path(__file__).parent / "jobs"
SECRET = "91ab-token-of-the-user"  # noqa: S105


@dataclass
class Place:
    """An engine on the shared cluster, and nodes that one test adds for itself."""

    cluster: SmallCluster
    path: Path
    study: str
    nodes: list[Node] = field(default_factory=list)
    handles: list[tuple[Engine, str]] = field(default_factory=list)

    def engine(self, **changed: object) -> Engine:
        return self.cluster.engine(self.path / "studies", **changed)

    def add_node(self, **offers: float) -> Node:
        self.nodes.append(self.cluster.add_node(**offers))
        return self.nodes[-1]

    def launch(self, *words: str, trial: int = 1, on: str = "small", **machines: object) -> Launch:
        (self.path / "work").mkdir(exist_ok=True)
        command = (sys.executable, "-S", str(JOBS / "job.py"), *words)
        environment = {"NOTES": str(self.path / f"notes-{trial}")}
        needed = Machines(on, **machines)
        place = self.path / "studies" / self.study
        return Launch(self.study, trial, 1, command, place, self.path / "work", environment, (), 60.0, machines=needed)

    def start(self, engine: Engine, launch: Launch) -> str:
        handle = engine.start(launch)
        self.handles.append((engine, handle))
        return handle

    def pids(self, trial: int = 1) -> list[int]:
        notes = self.path / f"notes-{trial}"
        lines = notes.read_text().splitlines() if notes.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith("pid ")]

    def tagged(self) -> list[processes.TaggedProcess]:
        return [one for one in processes.tagged_processes() if one.study == self.study]

    def close(self) -> None:
        for engine, handle in self.handles:
            engine.stop(handle)
            engine.forget(handle)
        for node in self.nodes:
            self.cluster.remove(node)
        self.cluster.bury_orphans()
        clear_leftovers(self.study)


def clear_leftovers(study: str) -> None:
    """A lost node takes its folders with it; here they are on the machine that plays all nodes."""
    for folder in (Path(tempfile.gettempdir()) / f"trimtuner-{os.getuid()}" / "attempts").glob(f"{study}-*"):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def place(ray_cluster: SmallCluster, tmp_path: Path) -> Iterator[Place]:
    made = Place(ray_cluster, tmp_path, f"s{os.urandom(4).hex()}")
    yield made
    made.close()


def end_of(engine: Engine, handle: str) -> AttemptState:
    wait_until(lambda: engine.poll(handle).end is not None)
    return engine.poll(handle)


def kill_raylet(cluster: SmallCluster, node: Node) -> None:
    raylet = node.all_processes["raylet"][0].process.pid
    cluster.orphans += [one for one in processes.living_descendants([raylet]) if is_agent(one.pid)]
    os.kill(raylet, signal.SIGKILL)


def is_agent(pid: int) -> bool:
    """Whether it is one of those that a raylet leaves behind for a while; a real node would take them with it."""
    return b"agent" in Path(f"/proc/{pid}/cmdline").read_bytes().lower()


def remove_node(cluster: SmallCluster, node: Node) -> None:
    cluster.remove(node)


@pytest.mark.parametrize("lose", [kill_raylet, pytest.param(remove_node, marks=pytest.mark.slow)])
def test_trials_on_a_lost_node_are_preempted_with_all_that_they_reported_and_leave_no_process(
    place: Place, lose: Callable[[SmallCluster, Node], None]
) -> None:
    doomed, engine = place.add_node(doomed=3), place.engine()
    handles = [place.start(engine, place.launch("report_and_rest", trial=trial, on="doomed")) for trial in (1, 2, 3)]
    wait_until(lambda: all(len(engine.poll(handle).reports) == 1 for handle in handles))
    wait_until(lambda: all(place.pids(trial) for trial in (1, 2, 3)))
    lose(place.cluster, doomed)
    states = [end_of(engine, handle) for handle in handles]
    assert [state.end.kind for state in states if state.end] == [protocol.PREEMPTED] * 3
    assert [state.reports[0].metrics["accuracy"] for state in states] == [0.1] * 3
    assert all(state.end and state.reports[0].seconds < state.end.seconds for state in states)
    wait_until(lambda: place.tagged() == [])


def test_a_worker_that_dies_on_a_living_node_costs_its_trial_alone_and_no_report(place: Place) -> None:
    engine = place.engine()
    first, second = (place.start(engine, place.launch("report_and_rest", trial=trial)) for trial in (1, 2))
    wait_until(lambda: all(len(engine.poll(handle).reports) == 1 for handle in (first, second)))
    holder = next(pid for pid in ray_workers() if place.study in lifeline_readers(pid))
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: any(engine.poll(handle).end is not None for handle in (first, second)))
    time.sleep(1.0)
    ended = [state.end for state in (engine.poll(first), engine.poll(second)) if state.end is not None]
    assert [end.kind for end in ended] == [protocol.LOST]
    assert "worker" in ended[0].detail.lower()
    assert len(place.tagged()) > 0  # the other one


def ray_workers() -> list[int]:
    found = []
    for one in processes.all_processes():
        name = Path(f"/proc/{one.pid}/cmdline")
        try:
            if one.is_alive and name.read_bytes().startswith(b"ray::trimtuner run"):
                found.append(one.pid)
        except OSError:
            continue
    return found


def lifeline_readers(pid: int) -> set[str]:
    """The studies whose supervisors hold the other end of a pipe of this process."""
    pipes = pipes_of(pid)
    return {one.study for one in processes.tagged_processes() if pipes & pipes_of(one.process.pid)}


def pipes_of(pid: int) -> set[str]:
    return {link for link in links_of(pid) if link.startswith("pipe:")}


def links_of(pid: int) -> set[str]:
    try:
        return {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return set()


def test_what_runs_on_several_machines_gets_each_one_for_itself_and_knows_their_addresses(place: Place) -> None:
    engine = place.engine()
    launch = place.launch("print_environment", count=2, helpers=("helper",))
    rest = place.start(engine, replace(launch, command=(*launch.command[:-1], "rest"), trial=2))
    wait_until(lambda: bool(place.pids()))
    groups = [one for one in placement_group_table().values() if one["state"] == "CREATED"]
    (nodes,) = (set(one["bundles_to_node_id"].values()) for one in groups if len(one["bundles"]) == 3)
    assert len(nodes) == 3
    engine.stop(rest)
    end_of(engine, place.start(engine, launch))
    seen = json.loads((place.path / "notes-1").read_text().splitlines()[-1])
    assert seen["TRIMTUNER_HEAD"] == "127.0.0.1"
    assert seen["TRIMTUNER_WORKERS"] == "127.0.0.1,127.0.0.1"
    assert seen["TRIMTUNER_HELPERS"] == "127.0.0.1"


@pytest.mark.slow
def test_a_trial_that_loses_any_of_its_machines_is_preempted(place: Place) -> None:
    nodes = [place.add_node(pair=1) for _ in range(2)]
    engine = place.engine()
    handle = place.start(engine, place.launch("report_and_rest", on="pair", count=2))
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    head = next(pid for pid in ray_workers() if place.study in lifeline_readers(pid))
    (other,) = (node for node in nodes if node.all_processes["raylet"][0].process.pid != parent_of(head))
    kill_raylet(place.cluster, other)
    end = end_of(engine, handle).end
    assert end is not None
    assert end.kind == protocol.PREEMPTED
    wait_until(lambda: place.tagged() == [])


@pytest.mark.slow
def test_a_lost_machine_ends_the_nodes_on_all_others(place: Place) -> None:
    doomed, _ = (place.add_node(pair=1) for _ in range(2))
    engine = place.engine()
    launch = replace(place.launch("by_rank", "report_and_rest", "rest", on="pair", count=2), nodes="all")
    handle = place.start(engine, launch)
    wait_until(lambda: len(place.pids()) == 2 and len(engine.poll(handle).reports) == 1)
    kill_raylet(place.cluster, doomed)  # that of the head, or of the other
    state = end_of(engine, handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED
    assert len(state.reports) == 1
    wait_until(lambda: place.tagged() == [])


@pytest.mark.slow
def test_all_nodes_of_a_trial_end_when_its_actor_is_killed(place: Place) -> None:
    engine = place.engine()
    launch = replace(place.launch("by_rank", "report_and_rest", "rest", count=2, helpers=("helper",)), nodes="all")
    handle = place.start(engine, launch)
    wait_until(lambda: len(place.pids()) == 3 and len(engine.poll(handle).reports) == 1)
    ray.kill(ray.get_actor(f"keeper-{place.study}", namespace=NAMESPACE))
    state = end_of(engine, handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED
    assert len(state.reports) == 1
    wait_until(lambda: place.tagged() == [])


def parent_of(pid: int) -> int:
    process = processes.read_process(pid)
    assert process is not None
    return process.parent


def test_machines_that_no_node_offers_are_unavailable_by_name_and_cost_nothing(place: Place) -> None:
    engine = place.engine(wait=0.5)
    handle = place.start(engine, place.launch("rest", on="m5.metal"))
    end = end_of(engine, handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.UNAVAILABLE, 0.0)
    assert "m5.metal" in end.detail
    assert "small on 2" in end.detail


def test_too_few_machines_of_a_kind_are_unavailable(place: Place) -> None:
    engine = place.engine(wait=0.5)
    end = end_of(engine, place.start(engine, place.launch("rest", count=3))).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.UNAVAILABLE, 0.0)
    assert "needs 3 x" in end.detail


def test_a_busy_cluster_is_waited_for_and_the_wait_is_not_charged(place: Place) -> None:
    engine = place.engine(wait=0.5)
    first = place.start(engine, place.launch("rest", on="large"))
    wait_until(lambda: bool(place.pids()))
    second = place.start(engine, place.launch("report", "1", trial=2, on="large"))
    time.sleep(1.0)  # longer than it would wait for machines that nobody offers
    assert engine.poll(second).end is None
    freed = time.monotonic()
    engine.stop(first)
    end = end_of(engine, second).end
    assert end is not None
    assert end.kind is None
    assert end.seconds <= time.monotonic() - freed


def test_what_waits_can_be_stopped_and_then_never_runs(place: Place) -> None:
    engine = place.engine()
    first = place.start(engine, place.launch("rest", on="large"))
    wait_until(lambda: bool(place.pids()))
    second = place.start(engine, place.launch("leave", "0", trial=2, on="large"))
    engine.stop(second)
    end = engine.poll(second).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.STOPPED, 0.0)
    engine.stop(first)
    time.sleep(1.0)
    assert not (place.path / "notes-2").exists()


def test_when_the_actor_is_killed_its_trials_end_and_what_they_told_is_fetched_from_the_nodes(place: Place) -> None:
    engine = place.engine()
    handle = place.start(engine, place.launch("report_and_rest"))
    wait_until(lambda: bool(place.pids()))
    ray.kill(ray.get_actor(f"keeper-{place.study}", namespace=NAMESPACE))
    state = end_of(engine, handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED
    assert len(state.reports) == 1
    assert state.end.seconds > 0
    wait_until(lambda: place.tagged() == [])  # its supervisor is about to leave
    again = end_of(engine, place.start(engine, place.launch("report", "2", trial=2)))
    assert again.end is not None
    assert again.end.kind is None


def test_a_secret_is_in_no_file_of_ray_or_of_the_nodes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    engine = place.engine()
    launch = replace(place.launch("print_environment"), secrets=("WANDB_API_KEY",))
    end_of(engine, place.start(engine, launch))
    assert SECRET in (place.path / "notes-1").read_text()
    roots = (place.cluster.folder, Path(tempfile.gettempdir()) / f"trimtuner-{os.getuid()}", place.path / "studies")
    searched: dict[Path, bytes] = {}
    for path in [path for root in roots for path in root.rglob("*") if path.is_file()]:
        with suppress(FileNotFoundError):  # another test's, which has ended by now
            searched[path] = path.read_bytes()
    assert len(searched) > 20
    assert [path for path, content in searched.items() if SECRET.encode() in content] == []


def test_what_the_record_does_not_know_is_reaped(place: Place) -> None:
    engine = place.engine()
    for trial in (1, 2):
        place.start(engine, place.launch("rest", trial=trial))
    wait_until(lambda: bool(place.pids(1) and place.pids(2)))
    ended = reap(place.engine(), place.study, [(1, 1)])
    assert [(one.trial, one.attempt) for one in ended] == [(2, 1)]
    wait_until(lambda: {one.trial for one in place.tagged()} == {1})  # its supervisor is about to leave


def test_the_working_directory_is_sent_anew_when_it_has_changed(place: Place) -> None:
    engine = place.engine()
    for trial, text in ((1, "first"), (2, "second"), (3, "second")):
        launch = place.launch(trial=trial)
        (launch.working_directory / "said").write_text(text)
        command = ("sh", "-c", 'echo "$(cat said)" "$(pwd)" > "$NOTES"')
        end_of(engine, place.start(engine, replace(launch, command=command)))
    seen = [(place.path / f"notes-{trial}").read_text().split() for trial in (1, 2, 3)]
    assert [text for text, _ in seen] == ["first", "second", "second"]
    folders = [folder for _, folder in seen]
    assert str(place.path / "work") not in folders
    assert folders[0] != folders[1] == folders[2]


def test_a_client_address_is_refused_with_advice(place: Place) -> None:
    with pytest.raises(InputError, match="run trimtuner on a node"):
        place.engine(address="ray://127.0.0.1:10001")


def under_other_circumstances(place: Place, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python in a process that joins the cluster by itself."""
    start = (
        "from pathlib import Path\nfrom trimtuner.engines.ray.settings import RaySettings\n"
        f"engine = RaySettings(address={place.cluster.address!r}).engine(Path({str(place.path)!r}), bytes(32))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@pytest.mark.slow
def test_who_does_not_have_the_token_is_refused(place: Place) -> None:
    (place.path / "wrong").write_text("0" * 64)
    looks = "print(engine.find())"
    allowed = under_other_circumstances(place, looks)
    assert (allowed.returncode, allowed.stderr) == (0, "")
    wrong = under_other_circumstances(place, looks, **{TOKEN_FILE: str(place.path / "wrong")})
    assert wrong.returncode == 1
    assert "it asks for a token, and ours is missing or wrong" in wrong.stderr
    without = under_other_circumstances(place, looks, **{AUTHENTICATION: "disabled"})
    assert without.returncode == 1
    assert "it asks for a token" in without.stderr


TRAIN = """
import json, os, sys, time
x, fraction = float(sys.argv[1]), float(sys.argv[2])
with open(os.environ["NOTES"], "a") as file:
    file.write(f"{os.environ['TRIMTUNER_TRIAL']}-{os.environ['TRIMTUNER_ATTEMPT']}\\n")
time.sleep(float(os.environ["NAP"]))
print("::metric " + json.dumps({"accuracy": (1 - (x - 0.6) ** 2) * fraction ** 0.1}), flush=True)
"""

JOB = """
name: quick
goal: {{maximize: accuracy}}
constraints: ["cost <= 1 USD"]
budget: {{money: 5 USD, trials: {trials}}}
data: {{fractions: [0.1, 0.5, 1]}}
parameters:
  x: {{values: {values}}}
cloud:
  vms:
    {vm}: {{vcpus: 1, memory_gib: 2, price_per_hour: 0.36}}
run:
  command: ["{python}", train.py, "{{x}}", "{{fraction}}"]
  timeout: 30s
  retries: {{preempted: 2}}
  environment: {{NAP: "{nap}", NOTES: "{notes}"}}
engine: {engine}
search: {{method: random, seed: 1}}
"""


@dataclass(frozen=True)
class Job:
    """A job file, run as a user would."""

    path: Path

    @classmethod
    def written(cls, folder: Path, engine: str, vm: str, trials: int = 6, nap: float = 0.5) -> Job:
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(TRAIN)
        notes, path = folder.parent / f"{folder.name}-ran", folder / "job.yaml"
        values, python = [n / trials for n in range(trials)], sys.executable
        text = JOB.format(engine=engine, vm=vm, trials=trials, nap=nap, notes=notes, python=python, values=values)
        path.write_text(text)
        return cls(path)

    def run(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "trimtuner", "run", str(self.path), "-q"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        return subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def finish(self) -> None:
        running = self.run()
        out, errors = running.communicate(timeout=PATIENCE_SECONDS)
        assert (running.returncode, errors) == (0, ""), out + errors

    def run_until_started(self, count: int) -> subprocess.Popen[str]:
        """Run it, until so many commands have."""
        running = self.run()
        wait_until(lambda: len(self.ran()) >= count or running.poll() is not None)
        assert running.poll() is None, running.communicate()
        return running

    def ran(self) -> list[str]:
        notes = self.path.parent.parent / f"{self.path.parent.name}-ran"
        return notes.read_text().splitlines() if notes.exists() else []

    def alive(self) -> set[tuple[int, int]]:
        """The attempts that run, on whatever node: all of them are on this machine."""
        try:
            study = self.look().record.id
        except TrimTunerError:  # it has not begun
            return set()
        return {(one.trial, one.attempt) for one in processes.tagged_processes() if one.study == study}

    def look(self) -> StudyState:
        return JobStudy.at(self.path).state()

    def assert_sound(self, trials: int) -> None:
        """Every trial was measured, no attempt ran twice, and every cent is in the ledger."""
        look = self.look()
        assert not look.history.pending
        assert len(look.history.outcomes) == trials
        assert [outcome.failed for outcome in look.history.outcomes] == [None] * trials
        assert set(Counter(self.ran()).values()) == {1}
        charged = sum(entry.nanos for entry in look.record.ledger() if entry.kind == "charge")
        assert round(look.record.spent * 1e9) == charged
        assert look.record.reserved == 0.0
        assert charged == sum(round(outcome.cost * 1e9) for outcome in look.history.outcomes)

    def assert_nothing_runs(self) -> None:
        folder = str(self.path.parent)
        study = self.look().record.id
        wait_until(lambda: not [one for one in processes.tagged_processes() if one.study == study])
        assert not [one for one in processes.tagged_processes() if one.folder.startswith(folder)]
        clear_leftovers(study)


def on_cluster(place: Place) -> str:
    return f'{{type: ray, address: "{place.cluster.address}", parallel: 2, wait: 60s}}'


@pytest.mark.slow
def test_each_node_of_a_trial_sees_the_gpus_that_ray_gave_it_there_and_no_other_trial_has_them(place: Place) -> None:
    """Ray counts them, and looks for none: that is all that it takes to say which a command may see."""
    for _ in range(2):
        place.nodes.append(place.cluster.add_node_with_gpus(4, accelerated=4))
    engine = place.engine()
    wide = replace(place.launch("note_devices", trial=1, on="accelerated", count=2, gpus=3), nodes="all")
    assert kind_of(end_of(engine, place.start(engine, wide))) is None
    seen = dict(line.split(maxsplit=1) for line in (place.path / "notes-1").read_text().splitlines())
    assert {rank: len(set(devices.split(","))) for rank, devices in seen.items()} == {"0": 3, "1": 3}
    handles = [place.start(engine, alone(place, trial)) for trial in range(2, 6)]  # four of two: all that there are
    wait_until(lambda: all((place.path / f"notes-{trial}").exists() for trial in range(2, 6)))
    told = [json.loads((place.path / f"notes-{trial}").read_text().splitlines()[0]) for trial in range(2, 6)]
    each = Counter(device for one in told for device in one["CUDA_VISIBLE_DEVICES"].split(","))
    assert each == dict.fromkeys("0123", 2)  # on each node every one is somebody's, and nobody else's
    for handle in handles:
        engine.stop(handle)


def alone(place: Place, trial: int) -> Launch:
    return place.launch("print_environment_and_rest", trial=trial, on="accelerated", gpus=2)


def kind_of(state: AttemptState) -> str | None:
    assert state.end is not None
    return state.end.kind


@pytest.mark.slow
def test_a_run_goes_on_on_another_node_when_one_is_killed_under_it(place: Place) -> None:
    nodes = [place.add_node(either=1) for _ in range(2)]
    job = Job.written(place.path / "job", on_cluster(place), "either", trials=4, nap=4.0)
    running = job.run_until_started(2)  # one on each node
    kill_raylet(place.cluster, nodes[0])
    out, errors = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, errors) == (0, ""), out + errors
    job.assert_sound(4)
    job.assert_nothing_runs()
    assert [name for name in job.ran() if name.endswith("-2")]
    assert all(study != job.look().record.id for study in StudyActors(None).studies())  # it left with the run


def test_a_killed_driver_is_resumed_and_no_trial_runs_twice(place: Place) -> None:
    job = Job.written(place.path / "job", on_cluster(place), "small", trials=4, nap=1.5)
    running = job.run_until_started(2)
    running.kill()
    running.communicate()
    job.finish()
    job.assert_sound(4)
    assert sorted(job.ran()) == [f"{trial}-1" for trial in range(4)]
    job.assert_nothing_runs()


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_drivers_and_nodes_killed_at_random_instants_lose_nothing(place: Place) -> None:
    """Until so many attempts were hit, however long that takes a busy machine."""
    kills, chance = Counter[str](), random.Random(0)  # noqa: S311
    while min(kills["attempts"], kills["drivers"]) < 8:
        kills["jobs"] += 1
        machine = f"vm{kills['jobs']}"
        kept = place.add_node(**{machine: 1})
        job = Job.written(place.path / machine, on_cluster(place), machine, trials=12, nap=2.0)
        for _ in range(4):
            kill_node_and_driver(place, job, place.add_node(**{machine: 1}), chance, kills)
        job.finish()
        job.assert_sound(12)
        kills["attempts"] += len(job.ran()) - 12
        job.assert_nothing_runs()
        place.cluster.remove(kept)
    print(f"{dict(kills)}: killed under live runs of 12 trials each, no loss")


def kill_node_and_driver(place: Place, job: Job, doomed: Node, chance: random.Random, kills: Counter[str]) -> None:
    """First the node, as soon as a trial runs there and on the other one; not where the run is through before."""
    running = job.run()
    wait_until(lambda: len(job.alive()) == 2 or running.poll() is not None)
    time.sleep(chance.uniform(0.0, 0.9))
    kills["nodes"] += running.poll() is None
    kill_raylet(place.cluster, doomed)
    time.sleep(chance.choice((0.0, chance.uniform(0.0, 3.0))))
    kills["drivers"] += running.poll() is None
    running.kill()
    running.communicate()
    place.cluster.remove(doomed)


def processes_of_own_clusters() -> dict[int, str]:
    found = {}
    for one in processes.all_processes():
        try:
            pairs = Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0") if one.is_alive else []
        except OSError:
            continue
        for pair in pairs:
            if pair.startswith(f"{TAG}=".encode()):
                found[one.pid] = pair.decode()
    return found


def listening_addresses(pids: set[int]) -> list[IPv4Address | IPv6Address]:
    """Where these processes listen, by the kernel's tables."""
    sockets = {link for pid in pids for link in links_of(pid) if link.startswith("socket:")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(address_of(fields[1].partition(":")[0]))
    return found


def address_of(digits: str) -> IPv4Address | IPv6Address:
    """The kernel writes words of four bytes, the lowest byte first."""
    words = (bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8))
    address = ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address


@pytest.mark.slow
def test_nodes_on_a_cluster_of_our_own_all_run(tmp_path: Path) -> None:
    job = Job.written(tmp_path / "job", "{type: ray, parallel: 2}", "small", trials=2, nap=0.5)
    text = job.path.read_text()
    job.path.write_text(text.replace("run:\n", "  vm_count: 2\nrun:\n  nodes: all\n"))
    job.finish()
    assert [outcome.failed for outcome in job.look().history.outcomes] == [None, None]
    assert Counter(job.ran()) == {"0-1": 2, "1-1": 2}
    job.assert_nothing_runs()


def test_a_cluster_of_our_own_listens_on_loopback_outlives_the_driver_and_goes_with_the_last_run(
    tmp_path: Path,
) -> None:
    before = set(processes_of_own_clusters())
    job = Job.written(tmp_path / "job", "{type: ray, parallel: 2}", "small", trials=3, nap=2.0)
    running = job.run_until_started(1)
    wait_until(lambda: len(listening_addresses(set(processes_of_own_clusters()) - before)) > 5)
    ours = set(processes_of_own_clusters()) - before
    assert {str(address) for address in listening_addresses(ours)} == {"127.0.0.1"}
    tags = {tag for pid, tag in processes_of_own_clusters().items() if pid in ours}
    tokens = [Path(tag.partition("=")[2]) / "token" for tag in tags]
    assert all(token.stat().st_mode & 0o777 == 0o600 for token in tokens if token.exists())
    running.kill()
    running.communicate()
    time.sleep(1.0)
    assert ours & set(processes_of_own_clusters())
    job.finish()
    job.assert_sound(3)
    assert sorted(job.ran()) == [f"{trial}-1" for trial in range(3)]
    job.assert_nothing_runs()
    wait_until(lambda: not ours & set(processes_of_own_clusters()))
    wait_until(lambda: not any(token.exists() for token in tokens))


@pytest.mark.slow
def test_a_cluster_of_our_own_that_is_lost_costs_its_trials_an_attempt_and_the_next_run_starts_another(
    tmp_path: Path,
) -> None:
    before = set(processes_of_own_clusters())
    job = Job.written(tmp_path / "job", "{type: ray, parallel: 2}", "small", trials=4, nap=2.0)
    running = job.run_until_started(1)
    for pid in set(processes_of_own_clusters()) - before:
        os.kill(pid, signal.SIGKILL)
    time.sleep(3.0)
    assert running.poll() is None  # in trouble, and bearing it
    running.kill()
    running.communicate()
    job.finish()
    job.assert_sound(4)
    assert "0-2" in job.ran()
    job.assert_nothing_runs()
    wait_until(lambda: set(processes_of_own_clusters()) <= before)


@pytest.mark.slow
def test_a_cluster_of_our_own_stands_in_for_all_machines_of_a_trial(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "distributed"
    shutil.copytree(example, tmp_path / "job")
    text = (example / "job.yaml").read_text().replace("trials: 30", "trials: 1").replace("[1, 2, 4]", "2")
    text = text.replace("type: local", "type: ray").replace("- python3", f"- {sys.executable}")
    (tmp_path / "job" / "job.yaml").write_text(text)
    words = [sys.executable, "-m", "trimtuner", "run", "--quiet", str(tmp_path / "job" / "job.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = sorted(tmp_path.glob("job/*.trials/*/0-1/node-*/log.txt"))
    assert [log.parent.name for log in logs] == ["node-1", "node-2", "node-3"]
    assert "batches of" in logs[-1].read_text()  # of the book-keeper
