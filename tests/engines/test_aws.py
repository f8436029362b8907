"""The AWS engine against a cloud that fails: what is rented is used, ended and charged, whatever goes wrong.

After every test no machine of its study is left, and no process of ours: counted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest
from keeping import is_kept

pytest.importorskip("asyncssh", reason="asyncssh is not installed; install trimtuner[aws]")
pytest.importorskip("moto", reason="moto is not installed; install trimtuner[dev]")

from aws_under_test import QUICK, REGION, settings
from machine_room import OUR_PYTHON
from mock_cloud import MockCloud, tags_of
from under_test import SECRET

from trimtuner.engines import protocol
from trimtuner.engines.aws.engine import AwsEngine
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.protocol import CHECKPOINT, AttemptState, EngineTrouble, Launch, Machines, later
from trimtuner.engines.supervising import files, processes
from waiting import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the machines are processes of this one, as Linux shows them"),
    pytest.mark.xdist_group("aws"),
]

JOBS = Path(__file__).parent / "jobs"


@dataclass
class Bench:
    """A study on the cloud."""

    cloud: MockCloud
    path: Path
    study: str
    settings: AwsSettings
    engines: list[AwsEngine] = field(default_factory=list)

    def engine(self, folder: str = "studies", pace: Pace = QUICK, **changes: object) -> AwsEngine:
        made = AwsEngine(self.path / folder, SECRET, replace(self.settings, **changes), pace)
        self.engines.append(made)
        return made

    def launch(self, *words: str, trial: int = 1, limit: float = 60.0, machines: Machines | None = None) -> Launch:
        command = (sys.executable, "-S", str(JOBS / "job.py"), *words)
        environment = {"NOTES": str(self.path / "notes")}
        place, work = self.path / "studies" / self.study, self.path / "work"
        return Launch(
            self.study,
            trial,
            1,
            command,
            place,
            work,
            environment,
            (),
            limit,
            machines=machines or Machines("m5.large"),
        )

    def note(self, text: str) -> None:
        with (self.path / "notes").open("a") as file:
            file.write(f"{text}\n")

    def notes(self) -> list[str]:
        file = self.path / "notes"
        return file.read_text().splitlines() if file.exists() else []

    def instances(self):  # type: ignore[no-untyped-def]
        return self.cloud.instances(self.study)

    def running(self):  # type: ignore[no-untyped-def]
        return [one for one in self.instances() if one.state == "running"]

    def requests(self, action: str) -> list[dict[str, list[str]]]:
        return [fields for name, fields in self.cloud.requests if name == action]

    def looks(self) -> int:
        """How often EC2 was asked for the machines of the study."""
        return sum([self.study] in fields.values() for fields in self.requests("DescribeInstances"))


def end_of(engine: AwsEngine, handle: str) -> AttemptState:
    """Its last state; trouble on the way is borne, as a driver bears it."""
    seen: list[AttemptState | str] = []
    wait_until(lambda: seen.append(state_or_trouble(engine, handle)) or getattr(seen[-1], "end", None))
    return seen[-1]


def trouble_of(engine: AwsEngine, handle: str) -> str:
    """What is in the way, as soon as something is."""
    seen: list[AttemptState | str] = []
    wait_until(lambda: seen.append(state_or_trouble(engine, handle)) or isinstance(seen[-1], str))
    return seen[-1]


def state_or_trouble(engine: AwsEngine, handle: str) -> AttemptState | str:
    try:
        return engine.poll(handle)
    except EngineTrouble as trouble:
        return str(trouble)


def kind_and_detail(state: AttemptState) -> tuple[str | None, str]:
    assert state.end is not None
    return state.end.kind, state.end.detail


@pytest.fixture
def bench(cloud: MockCloud, tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "work").mkdir()
    study = f"aws-{os.getpid()}-{tmp_path.name}"
    one = Bench(cloud, tmp_path, study, settings(cloud.subnet, cloud.ssh_config))
    yield one
    cloud.mend()
    sweeper = AwsEngine(tmp_path / "sweeper", SECRET, one.settings, QUICK)
    left = sweeper.find(study)
    for found in left:
        sweeper.stop(found.handle)
    assert [found.handle for found in left] == []
    assert set(cloud.states(study)) <= {"terminated"}
    assert [one for one in processes.tagged_processes() if one.study == study] == []


# What is rented


def test_a_cluster_has_its_tags_its_addresses_and_the_working_directory_on_every_machine(bench: Bench) -> None:
    (bench.path / "work" / "data.txt").write_text("to be learnt from")
    (bench.path / "work" / "large.ckpt").write_text("left out")
    engine = bench.engine(exclude=("*.ckpt",))
    machines = Machines("m5.large", count=2, helpers=("t3.micro", "t3.micro", "t3.small"))
    handle = engine.start(bench.launch("print_environment", machines=machines))
    wait_until(lambda: len(bench.notes()) == 1)
    told = json.loads(bench.notes()[0])
    instances = bench.instances()
    addresses = [one.private_ip for one in instances]
    assert end_of(engine, handle).end.kind is None
    assert [one.instance_type for one in instances] == ["m5.large"] * 2 + ["t3.micro"] * 2 + ["t3.small"]
    assert told["TRIMTUNER_HEAD"] == addresses[0]
    assert told["TRIMTUNER_WORKERS"] == ",".join(addresses[:2])
    assert told["TRIMTUNER_HELPERS"] == ",".join(addresses[2:])
    for one in instances:
        tags = tags_of(one)
        assert (tags["trimtuner:study"], tags["trimtuner:trial"], tags["trimtuner:attempt"]) == (bench.study, "1", "1")
        work = bench.cloud.room.machine(one.id).home / ".trimtuner" / bench.study / "1-1" / "work"
        assert [path.name for path in work.iterdir()] == ["data.txt"]
    assert len(bench.notes()) == 1  # only the head ran the command


def test_every_launch_can_be_repeated_ends_itself_and_is_tagged_down_to_its_disks(bench: Bench) -> None:
    engine = bench.engine()
    machines = Machines("m5.large", market="spot", price_per_hour=0.0425)
    end_of(engine, engine.start(bench.launch("leave", "0", machines=machines)))
    (request,) = bench.requests("RunInstances")
    assert request["InstanceInitiatedShutdownBehavior"] == ["terminate"]
    assert request["MetadataOptions.HttpTokens"] == ["required"]
    assert len(request["ClientToken"][0]) == 64
    assert request["InstanceMarketOptions.SpotOptions.MaxPrice"] == ["0.042500"]
    assert (request["MinCount"], request["MaxCount"]) == (["1"], ["1"])
    kinds = {value[0] for name, value in request.items() if name.endswith(".ResourceType")}
    assert kinds == {"instance", "volume", "network-interface", "spot-instances-request"}
    (instance,) = bench.instances()
    minutes = int(bench.cloud.room.machine(instance.id).user_data["runcmd"][0][2])
    assert 60 / 60 <= minutes <= (60 + bench.settings.ended_within_seconds) / 60


def test_the_setup_runs_once_on_every_machine_before_the_command(bench: Bench) -> None:
    words = (sys.executable, "-c", "import os; open('made', 'a').write('x'); print(os.environ['NOTES'])")
    engine = bench.engine(setup=words)
    handle = engine.start(bench.launch("leave", "0", machines=Machines("m5.large", count=2)))
    assert end_of(engine, handle).end.kind is None
    for one in bench.instances():
        work = bench.cloud.room.machine(one.id).home / ".trimtuner" / bench.study / "1-1" / "work"
        assert (work / "made").read_text() == "x"


def test_a_setup_that_fails_is_told_with_its_last_words_and_charged(bench: Bench) -> None:
    engine = bench.engine(setup=(sys.executable, "-c", "print('no such wheel'); raise SystemExit(4)"))
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert kind_and_detail(state) == (protocol.EXIT, "the setup ended with exit code 4: no such wheel")
    assert state.end is not None
    assert state.end.seconds > 0
    assert bench.notes() == []


def test_a_working_directory_that_cannot_be_sent_is_trouble_before_anything_is_rented(bench: Bench) -> None:
    (bench.path / "work" / "out").symlink_to("/etc")
    engine = bench.engine()
    handle = engine.start(bench.launch("leave", "0"))
    assert "leads out of the folder" in trouble_of(engine, handle)
    assert bench.instances() == []
    engine.stop(handle)


def test_the_machine_needs_only_an_old_python(bench: Bench) -> None:
    """The oldest at hand; test_aws_parts.py has that the archive is written in the words of the oldest that will do."""
    folders = (Path("/usr/bin"), *Path.home().glob(".pyenv/versions/*/bin"))
    at_hand = (folder / f"python3.{minor}" for minor in (9, 10) for folder in folders)
    bench.cloud.room.python = next((place for place in at_hand if place.exists()), OUR_PYTHON)
    engine = bench.engine()
    state = end_of(engine, engine.start(bench.launch("report", "3", "0.05")))
    assert kind_and_detail(state) == (None, "exit code 0")
    assert len(state.reports) == 3


# What is refused


def test_without_capacity_or_quota_it_is_asked_again_until_there_is(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", times=2, status=500)
    bench.cloud.refuse("RunInstances", "VcpuLimitExceeded")
    engine = bench.engine()
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert kind_and_detail(state) == (None, "exit code 0")
    tokens = [request["ClientToken"][0] for request in bench.requests("RunInstances")]
    assert len(set(tokens)) == len(tokens) == 4
    assert bench.notes() == ["run"]


def test_when_there_is_never_any_it_is_unavailable_and_costs_nothing(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", times=1000, status=500)
    engine = bench.engine(wait=0.5, billed_at_least=60.0)
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert state.end is not None
    assert state.end.kind == protocol.UNAVAILABLE
    assert "InsufficientInstanceCapacity: as the test wishes" in state.end.detail
    assert state.end.seconds == 0.0
    assert bench.instances() == []


def test_what_waits_for_machines_is_found_and_can_be_stopped_by_another_driver(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", times=1000, status=500)
    handle = bench.engine(wait=60.0).start(bench.launch("leave", "0"))
    other = bench.engine(wait=60.0)
    assert [(one.handle, one.is_running) for one in other.find(bench.study)] == [(handle, False)]
    other.stop(handle)
    state = other.poll(handle)
    assert state.end is not None
    assert (state.end.kind, state.end.seconds) == (protocol.STOPPED, 0.0)
    assert bench.instances() == []


def test_a_cluster_of_which_a_part_is_refused_is_given_back_and_charged_for_its_time(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", times=1000, has=("InstanceType", "t3.micro"))
    engine = bench.engine(wait=0.5, billed_at_least=7.0)
    machines = Machines("m5.large", count=2, helpers=("t3.micro",))
    state = end_of(engine, engine.start(bench.launch("leave", "0", machines=machines)))
    assert state.end is not None
    assert state.end.kind == protocol.UNAVAILABLE
    rounds = {tags_of(one)["trimtuner:round"] for one in bench.instances()}
    assert set(bench.cloud.states(bench.study)) == {"terminated"}
    assert state.end.seconds >= 7.0 * len(rounds) > 0
    assert bench.notes() == []


def test_a_cluster_refused_in_part_is_rented_whole_the_next_time(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", has=("InstanceType", "t3.micro"))
    engine = bench.engine()
    machines = Machines("m5.large", count=2, helpers=("t3.micro",))
    state = end_of(engine, engine.start(bench.launch("leave", "0", machines=machines)))
    assert kind_and_detail(state) == (None, "exit code 0")
    assert Counter(tags_of(one)["trimtuner:round"] for one in bench.instances()) == {"0": 2, "1": 3}
    assert bench.notes() == ["run"]


def test_what_is_wrong_on_our_side_is_told_at_once_and_goes_on_when_put_right(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "UnauthorizedOperation", times=1000)
    engine = bench.engine()
    handle = engine.start(bench.launch("leave", "0"))
    told = trouble_of(engine, handle)
    assert "UnauthorizedOperation" in told
    assert "trimtuner doctor" in told
    bench.cloud.mend()
    assert kind_and_detail(end_of(engine, handle)) == (None, "exit code 0")


def test_expired_credentials_are_told_and_renewed_ones_found_without_losing_a_report(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("report", "10", "0.2"))
    wait_until(lambda: len(engine.poll(handle).reports) >= 1)
    bench.cloud.refuse_signer("mock", "RequestExpired")
    assert "RequestExpired" in trouble_of(engine, handle)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "renewed")
    state = end_of(engine, handle)
    assert state.end is not None
    assert state.end.kind is None
    assert [report.metrics["accuracy"] for report in state.reports] == [step / 10 for step in range(1, 11)]


def test_a_launch_whose_answer_is_lost_is_found_by_its_tags(bench: Bench) -> None:
    bench.cloud.lose_answer("RunInstances")
    engine = bench.engine()
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert kind_and_detail(state) == (None, "exit code 0")
    assert bench.cloud.calls["RunInstances"] == len(bench.instances()) == 1
    assert bench.notes() == ["run"]


def test_a_launch_that_is_not_shown_at_once_is_repeated_under_the_same_token_and_runs_once(bench: Bench) -> None:
    """moto knows no tokens, and so rents twice: the surplus is ended."""
    bench.cloud.lose_answer("RunInstances")
    bench.cloud.hide_instances(times=2)
    engine = bench.engine()
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert kind_and_detail(state) == (None, "exit code 0")
    first, second = bench.requests("RunInstances")
    assert first == second  # to the letter, or EC2 would take it for a mistake
    assert bench.notes() == ["run"]


# What breaks on the way


def test_a_line_that_is_cut_before_and_after_every_report_loses_none(bench: Bench) -> None:
    """Before, so that some are made while there is no line; after, so that every line has carried something new."""
    engine = bench.engine()
    handle = engine.start(bench.launch("report_when_told", "6"))
    for step in range(1, 7):
        bench.note("go on")
        bench.cloud.room.drop_lines()
        wait_until(lambda step=step: len(engine.poll(handle).reports) == step)
        bench.cloud.room.drop_lines()
    state = end_of(engine, handle)
    assert kind_and_detail(state) == (None, "exit code 0")
    assert [report.metrics["accuracy"] for report in state.reports] == [step / 10 for step in range(1, 7)]
    assert len(bench.instances()) == 1


@pytest.mark.slow
def test_a_machine_that_lets_nobody_in_for_a_while_is_waited_for(bench: Bench) -> None:
    engine, room = bench.engine(), bench.cloud.room
    handle = engine.start(bench.launch("report_when_told", "2"))
    bench.note("go on")
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    room.is_refusing = True
    room.drop_lines()
    bench.note("go on")
    before = room.refusals
    wait_until(lambda: room.refusals >= before + 3)
    assert engine.poll(handle).end is None
    assert len(engine.poll(handle).reports) == 1
    room.is_refusing = False
    assert len(end_of(engine, handle).reports) == 2


@pytest.mark.slow
def test_a_line_on_which_nothing_comes_is_taken_for_lost(bench: Bench) -> None:
    engine = bench.engine(pace=replace(QUICK, silence=2.5))
    handle = engine.start(bench.launch("report_when_told", "2"))
    bench.note("go on")
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    bench.cloud.room.is_silent = True
    bench.note("go on")
    before = Counter(_verbs(bench))["follow"]
    wait_until(lambda: Counter(_verbs(bench))["follow"] > before)
    bench.cloud.room.is_silent = False
    assert len(end_of(engine, handle).reports) == 2


def _verbs(bench: Bench) -> list[str]:
    (instance,) = bench.instances()
    commands = bench.cloud.room.machine(instance.id).commands
    return [command.split(".pyz")[1].split()[1] for command in commands if '.pyz" ' in command and "-S" in command]


def test_machines_that_take_a_while_to_boot_are_waited_for(bench: Bench) -> None:
    bench.cloud.room.boot_seconds = 1.0
    engine = bench.engine()
    assert kind_and_detail(end_of(engine, engine.start(bench.launch("leave", "0")))) == (None, "exit code 0")


def test_a_machine_that_never_answers_is_given_back_and_charged(bench: Bench) -> None:
    bench.cloud.room.boot_seconds = 1000.0
    engine = bench.engine(ready_within=1.0)
    state = end_of(engine, engine.start(bench.launch("leave", "0")))
    assert state.end is not None
    assert state.end.kind == protocol.UNAVAILABLE
    assert "was not ready within 1 s" in state.end.detail
    assert state.end.seconds >= 1.0


def test_a_setup_that_hangs_is_ended_when_the_machine_should_be_ready(bench: Bench) -> None:
    setup = ("sh", "-c", "echo begun >> $NOTES; sleep 300")
    for trial, seconds in enumerate((2.0, 10.0, 60.0)):  # a busy machine takes longer to come to the setup
        engine = bench.engine(pace=replace(QUICK, connect=0.5 * seconds), setup=setup, ready_within=seconds)
        state = end_of(engine, engine.start(bench.launch("leave", "0", trial=trial)))
        if bench.notes():
            break
    assert kind_and_detail(state) == (protocol.UNAVAILABLE, f"boot, copy and setup took longer than {seconds:g} s")
    assert bench.notes() == ["begun"]


def test_a_machine_without_python_is_told_as_one_that_could_not_be_made_ready(bench: Bench) -> None:
    bench.cloud.room.python = Path("/no/such/python3")
    engine = bench.engine()
    kind, detail = kind_and_detail(end_of(engine, engine.start(bench.launch("leave", "0"))))
    assert kind == protocol.UNAVAILABLE
    assert "/no/such/python3" in detail


def test_a_machine_that_shows_another_host_key_is_never_logged_in_to(bench: Bench) -> None:
    bench.cloud.room.host_key = "another"
    for trial, seconds in enumerate((1.5, 10.0, 60.0)):  # a busy machine takes longer to show one
        engine = bench.engine(ready_within=seconds)
        kind, detail = kind_and_detail(end_of(engine, engine.start(bench.launch("leave", "0", trial=trial))))
        assert kind == protocol.UNAVAILABLE
        if "ost key" in detail:
            break
    assert "ost key" in detail
    assert [bench.cloud.room.machine(one.id).commands for one in bench.instances()] == [[]] * (trial + 1)


def test_a_spot_machine_that_is_taken_back_preempts_the_trial_and_keeps_its_reports(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("report_and_rest", machines=Machines("m5.large", market="spot")))
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    bench.cloud.room.end(bench.running()[0], "Server.SpotInstanceTermination")
    state = end_of(engine, handle)
    assert state.end is not None
    assert state.end.kind == protocol.PREEMPTED
    assert len(state.reports) == 1


def copied(launch: Launch) -> dict[str, int]:
    """What is in the copy of what a command keeps, with its size."""
    parcel = launch.folder / f"{launch.trial}-checkpoint.tar.gz"
    if not parcel.exists():
        return {}
    with tarfile.open(parcel) as archive:
        return {member.name: member.size for member in archive}


def test_a_checkpoint_above_its_limit_is_not_copied_and_that_is_said(bench: Bench) -> None:
    engine = bench.engine(checkpoint_limit=2**20)
    launch = bench.launch("keep_much", later(CHECKPOINT), "2")
    handle = engine.start(launch)
    wait_until(lambda: getattr(state_or_trouble(engine, handle), "notes", ()))
    (note,) = engine.poll(handle).notes
    assert "holds more than 1MiB (engine.checkpoint_limit)" in note
    kept = copied(launch)  # maybe of the instant when it had only begun to grow
    assert "much" not in kept
    assert sum(kept.values()) <= 2**20
    bench.note("make room")  # what is small enough later is copied then
    wait_until(lambda: "little" in copied(launch))
    engine.stop(handle)
    assert engine.poll(handle).notes == (note,)


def test_a_checkpoint_with_a_link_out_of_it_is_not_copied_and_that_is_said(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("keep_link", later(CHECKPOINT)))
    wait_until(lambda: getattr(state_or_trouble(engine, handle), "notes", ()))
    assert "link out of it" in engine.poll(handle).notes[0]
    engine.stop(handle)


@pytest.mark.slow
def test_a_large_checkpoint_is_copied_whole(bench: Bench) -> None:
    """Of bytes that do not pack smaller: the parcel is larger than what it holds."""
    engine = bench.engine(checkpoint_limit=101 * 2**20)
    launch = bench.launch("keep_much", later(CHECKPOINT), "100")
    handle = engine.start(launch)
    wait_until(lambda: copied(launch).get("much") == 100 * 2**20)
    engine.stop(handle)
    handle = engine.start(replace(launch, attempt=2))
    wait_until(lambda: "much was there: 104857600" in bench.notes())
    engine.stop(handle)
    assert engine.poll(handle).notes == ()


@pytest.mark.slow
def test_a_retry_on_all_machines_goes_on_with_what_the_head_of_the_lost_ones_kept(bench: Bench) -> None:
    engine = bench.engine()
    words = ("by_rank", f"go_on {later(CHECKPOINT)}", "rest")
    launch = replace(bench.launch(*words, machines=Machines("m5.large", count=2, market="spot")), nodes="all")
    for attempt in (1, 2):
        handle = engine.start(replace(launch, attempt=attempt))
        wait_until(lambda attempt=attempt: is_kept(launch, attempt))
        bench.cloud.room.end(bench.running()[-1], "Server.SpotInstanceTermination")  # any of them
        end = end_of(engine, handle).end
        assert end is not None
        assert end.kind == protocol.PREEMPTED
    end = end_of(engine, engine.start(replace(launch, attempt=3))).end
    assert end is not None
    assert end.kind is None, end
    begun = [note for note in bench.notes() if note.startswith("begun")]
    assert begun == [f"begun {count} True" for count in (1, 2, 3)]
    assert not bench.running()


def test_a_machine_that_shuts_down_tells_of_it_and_the_reason_is_asked_of_aws(bench: Bench) -> None:
    """The supervisor hears first that the machine ends, and cannot know why."""
    engine = bench.engine(pace=replace(QUICK, appear=100.0))
    handle = engine.start(bench.launch("report_and_rest", machines=Machines("m5.large", market="spot")))
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    (instance,) = bench.running()
    begun = next(bench.cloud.room.machine(instance.id).home.rglob("begun.json"))
    told = files.Folder(begun.parent, files.folder_at(Path("1-1"), SECRET).key).get(files.BEGUN)
    assert told is not None
    os.kill(int(str(told["pid"])), signal.SIGTERM)
    wait_until(begun.with_name("end.json").exists)
    looks = bench.looks()
    wait_until(lambda: bench.looks() >= looks + 3)
    assert engine.poll(handle).end is None
    bench.cloud.room.end(instance, "Server.SpotInstanceTermination")
    assert kind_and_detail(end_of(engine, handle))[0] == protocol.PREEMPTED


@pytest.mark.slow
def test_a_machine_that_is_not_shown_for_a_moment_is_not_given_up(bench: Bench) -> None:
    engine = bench.engine(pace=replace(QUICK, appear=100.0))
    handle = engine.start(bench.launch("report_when_told", "2"))
    bench.note("go on")
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    bench.cloud.hide_instances(times=5)
    wait_until(lambda: bench.cloud.faults[-1].times == 0)
    bench.note("go on")
    state = end_of(engine, handle)
    assert kind_and_detail(state) == (None, "exit code 0")
    assert len(state.reports) == 2


@pytest.mark.slow
def test_machines_that_aws_has_long_forgotten_are_charged_as_long_as_they_can_have_run(bench: Bench) -> None:
    with driver(bench, bench.launch("rest")) as process:
        wait_until(lambda: (bench.path / "studies" / bench.study / "1-1" / "ready.json").exists())
        process.kill()
    (instance,) = bench.instances()
    bench.cloud.room.end(instance, "Client.InstanceInitiatedShutdown")
    folder = files.folder_at(bench.path / "studies" / bench.study / "1-1", SECRET)
    note = "rented-0-workers.json"
    told = folder.get(note)
    assert told is not None
    (folder.path / note).unlink()
    folder.put(note, {**told, "launched": float(str(told["launched"])) - 86400.0})
    bench.cloud.hide_instances(times=1000)
    engine = bench.engine()
    state = end_of(engine, f"{REGION}/{bench.study}/1-1")
    assert state.end is not None
    assert state.end.kind == protocol.LOST
    assert state.end.seconds == 60.0 + bench.settings.ended_within_seconds
    bench.cloud.mend()


@pytest.mark.slow
def test_when_one_worker_is_taken_back_the_others_are_given_back(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("report_and_rest", machines=Machines("m5.large", count=3, market="spot")))
    wait_until(lambda: len(engine.poll(handle).reports) == 1)
    bench.cloud.room.end(bench.running()[2], "Server.SpotInstanceTermination")
    assert kind_and_detail(end_of(engine, handle))[0] == protocol.PREEMPTED
    assert bench.cloud.states(bench.study) == ["terminated"] * 3


def test_a_machine_that_somebody_else_terminates_is_lost(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("rest"))
    wait_until(lambda: len(bench.notes()) == 1)
    bench.cloud.client().terminate_instances(InstanceIds=[bench.running()[0].id])
    kind, detail = kind_and_detail(end_of(engine, handle))
    assert kind == protocol.LOST
    assert "not by us" in detail


# How it ends


@pytest.mark.slow
def test_a_termination_that_does_not_take_is_asked_for_again_and_charged_until_it_does(bench: Bench) -> None:
    bench.cloud.ignore_terminations(times=5)
    engine = bench.engine(pace=replace(QUICK, look=0.3))
    begin = time.time()
    handle = engine.start(bench.launch("leave", "0"))
    wait_until(lambda: bench.notes() == ["run"])
    ran = time.time()
    state = end_of(engine, handle)
    assert kind_and_detail(state) == (None, "exit code 0")
    assert bench.cloud.calls["TerminateInstances"] == 6
    assert state.end is not None
    assert state.end.seconds >= ran - begin + 5 * 0.3 - 1.0


def test_a_started_minute_is_charged(bench: Bench) -> None:
    engine = bench.engine(billed_at_least=60.0)
    end = end_of(engine, engine.start(bench.launch("leave", "0"))).end
    assert end is not None
    assert end.seconds == 60.0


def test_reports_are_dated_from_the_launch_where_the_charge_begins(bench: Bench) -> None:
    bench.cloud.room.boot_seconds = 1.5
    engine = bench.engine()
    state = end_of(engine, engine.start(bench.launch("report", "1")))
    assert state.end is not None
    assert 1.5 <= state.reports[0].seconds <= state.end.seconds


def test_a_stop_from_another_machine_is_told_as_one(bench: Bench) -> None:
    """Another folder is another machine: it knows nothing but the tags."""
    engine, elsewhere = bench.engine(), bench.engine("elsewhere")
    handle = engine.start(bench.launch("rest"))
    wait_until(lambda: len(bench.notes()) == 1)
    elsewhere.stop(handle)
    assert bench.running() == []
    assert kind_and_detail(end_of(engine, handle)) == (protocol.STOPPED, "ended on request")


def test_a_stop_of_what_nobody_here_knows_and_nobody_sees_is_not_confirmed(bench: Bench) -> None:
    with pytest.raises(EngineTrouble, match="no machine of it is to be seen"):
        bench.engine().stop(f"{REGION}/{bench.study}/9-1")


@pytest.mark.parametrize("delay", [0.0, 0.15, *(pytest.param(late, marks=pytest.mark.slow) for late in (0.05, 0.4))])
def test_a_stop_while_machines_are_rented_leaves_none(bench: Bench, delay: float) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("rest", machines=Machines("m5.large", helpers=("t3.micro",))))
    time.sleep(delay)
    engine.stop(handle)
    assert bench.running() == []
    assert kind_and_detail(engine.poll(handle))[0] == protocol.STOPPED


def test_a_stop_while_there_are_no_machines_to_be_had_costs_nothing(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", times=1000)
    engine = bench.engine(wait=60.0)
    handle = engine.start(bench.launch("rest"))
    wait_until(lambda: bench.cloud.calls["RunInstances"] >= 2)
    engine.stop(handle)
    end = engine.poll(handle).end
    assert end is not None
    assert (end.kind, end.seconds) == (protocol.STOPPED, 0.0)


def test_a_stop_without_credentials_says_that_it_is_not_confirmed_and_works_later(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("rest"))
    wait_until(lambda: len(bench.notes()) == 1)
    bench.cloud.refuse("*", "ExpiredToken", times=100000)
    with pytest.raises(EngineTrouble, match="not confirmed"):
        engine.stop(handle)
    bench.cloud.mend()
    engine.stop(handle)
    assert bench.running() == []


def test_what_is_left_of_an_ended_attempt_is_ended_by_a_stop(bench: Bench) -> None:
    engine = bench.engine()
    handle = engine.start(bench.launch("leave", "0"))
    end_of(engine, handle)
    tags = [{"Key": key, "Value": value} for key, value in tags_of(bench.instances()[0]).items()]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    user_data = bench.instances()[0].user_data.decode()
    bench.cloud.client().run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        SubnetId=bench.cloud.subnet,
        TagSpecifications=specification,
        UserData=user_data,
    )
    (found,) = engine.find(bench.study)
    assert found.is_running
    engine.stop(found.handle)
    assert bench.running() == []


@pytest.mark.slow
def test_what_the_record_does_not_know_is_reaped_in_every_region(bench: Bench) -> None:
    engine = bench.engine()
    kept = engine.start(bench.launch("rest", trial=1))
    engine.start(bench.launch("rest", trial=2))
    wait_until(lambda: len(bench.notes()) == 2)
    ended = protocol.reap(bench.engine("elsewhere"), bench.study, [(1, 1)])
    assert [one.trial for one in ended] == [2]
    assert len(bench.running()) == 1
    engine.stop(kept)


def test_a_region_that_may_not_be_looked_into_is_named(bench: Bench) -> None:
    bench.cloud.refuse("DescribeInstances", "UnauthorizedOperation", times=1)
    with pytest.raises(EngineTrouble, match=f"region {REGION} cannot be looked into.*look_in"):
        bench.engine().find(bench.study)


def test_without_a_list_all_regions_of_the_account_are_looked_into(bench: Bench) -> None:
    bench.cloud.show_regions(REGION, "us-east-1", "us-west-2")
    assert bench.engine(look_in=()).find(bench.study) == []
    assert bench.cloud.calls["DescribeRegions"] == 1
    assert bench.looks() == 3


# Whoever drives


@pytest.mark.slow
def test_many_attempts_share_each_look(bench: Bench) -> None:
    engine = bench.engine(pace=replace(QUICK, look=0.5))
    begin = time.monotonic()
    handles = [engine.start(bench.launch("rest", trial=trial)) for trial in range(6)]
    wait_until(lambda: len(bench.notes()) == 6)
    assert bench.looks() <= (time.monotonic() - begin) / 0.5 + 2
    for handle in handles:
        engine.stop(handle)


def driver(bench: Bench, launch: Launch) -> subprocess.Popen[str]:
    given = {**asdict(launch), "folder": str(launch.folder), "working_directory": str(launch.working_directory)}
    argument = {
        "folder": str(bench.path / "studies"),
        "subnet": bench.cloud.subnet,
        "ssh_config": str(bench.cloud.ssh_config),
    }
    words = [
        sys.executable,
        str(JOBS / "driver.py"),
        "aws_under_test:make_aws",
        json.dumps(argument),
        json.dumps(given),
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)


def check_killed_driver(bench: Bench, trial: int, delay: float) -> None:
    machines = Machines("m5.large", helpers=("t3.micro",))
    launch = bench.launch("leave", "0", trial=trial, machines=machines)
    before = len(bench.notes())
    with driver(bench, launch) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
    engine = bench.engine()
    state = end_of(engine, engine.start(launch))
    assert kind_and_detail(state) == (None, "exit code 0"), delay
    assert len(bench.notes()) == before + 1
    ours = [one for one in bench.instances() if tags_of(one)["trimtuner:trial"] == str(trial)]
    assert [one.state for one in ours] == ["terminated"] * 2


def test_a_driver_killed_at_any_instant_leaves_an_attempt_that_runs_once_on_one_cluster(bench: Bench) -> None:
    chance = random.Random(3)  # noqa: S311
    for trial in range(2):
        check_killed_driver(bench, trial, chance.uniform(0.0, 2.5))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_driver_killed_at_any_instant_leaves_an_attempt_that_runs_once_on_one_cluster_long(bench: Bench) -> None:
    chance = random.Random(4)  # noqa: S311
    for trial in range(100):
        check_killed_driver(bench, trial, chance.uniform(0.0, 2.5))


def test_a_machine_that_everybody_forgot_ends_itself(bench: Bench) -> None:
    with driver(bench, bench.launch("rest")) as process:
        wait_until(lambda: len(bench.notes()) == 1)
        process.kill()
    assert len(bench.running()) == 1
    bench.cloud.room.minute_seconds = 0.05
    wait_until(lambda: bench.running() == [])
    engine = bench.engine()
    kind, detail = kind_and_detail(end_of(engine, f"{REGION}/{bench.study}/1-1"))
    assert kind == protocol.LOST
    assert "shut itself down" in detail


def test_an_attempt_can_be_stopped_although_the_process_that_looks_after_it_hangs(bench: Bench) -> None:
    launch = bench.launch("rest")
    with driver(bench, launch) as process:
        wait_until(lambda: len(bench.notes()) == 1)
        process.send_signal(signal.SIGSTOP)
        engine = bench.engine()
        handle = engine.start(launch)
        engine.stop(handle)
        assert bench.running() == []
        process.kill()
    assert kind_and_detail(engine.poll(handle))[0] == protocol.STOPPED


def test_a_driver_with_a_fresh_disk_takes_over_and_has_every_report(bench: Bench) -> None:
    """It needs the study's secret to log in; nothing else of the machine that is gone."""
    launch = bench.launch("report", "30", "0.1")
    reports = bench.path / "studies" / bench.study / "1-1" / "reports.jsonl"
    with driver(bench, launch) as process:
        wait_until(reports.exists)
        process.kill()
    (bench.path / "fresh").mkdir()
    (bench.path / "studies" / "machines.key").rename(bench.path / "fresh" / "machines.key")
    engine = bench.engine("fresh")
    state = end_of(engine, engine.take_over(launch, f"{REGION}/{bench.study}/1-1"))
    assert kind_and_detail(state) == (None, "exit code 0")
    assert [report.metrics["accuracy"] for report in state.reports] == [step / 10 for step in range(1, 31)]
    assert bench.cloud.calls["RunInstances"] == 1


@pytest.mark.slow
def test_what_another_machine_launched_in_a_second_round_is_taken_over_as_it_is(bench: Bench) -> None:
    bench.cloud.refuse("RunInstances", "InsufficientInstanceCapacity", has=("InstanceType", "t3.micro"))
    launch = bench.launch("report", "20", "0.1", machines=Machines("m5.large", helpers=("t3.micro",)))
    with driver(bench, launch) as process:
        wait_until((bench.path / "studies" / bench.study / "1-1" / "reports.jsonl").exists)
        process.kill()
    (bench.path / "fresh").mkdir()
    (bench.path / "studies" / "machines.key").rename(bench.path / "fresh" / "machines.key")
    engine = bench.engine("fresh", billed_at_least=60.0)
    state = end_of(engine, engine.take_over(launch, f"{REGION}/{bench.study}/1-1"))
    assert kind_and_detail(state) == (None, "exit code 0")
    assert len(state.reports) == 20
    assert state.end is not None
    assert state.end.seconds == 120.0  # a minute for each round


def test_what_another_machine_started_and_nobody_sees_is_lost_and_not_started_again(bench: Bench) -> None:
    engine = bench.engine()
    launch = bench.launch("leave", "0")
    state = end_of(engine, engine.take_over(launch, f"{REGION}/{bench.study}/1-1"))
    assert kind_and_detail(state)[0] == protocol.LOST
    assert bench.cloud.calls["RunInstances"] == 0


# What nobody may see


def test_the_secret_of_the_study_is_its_owners_alone_and_no_key_is_written_elsewhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "f3c1-token-of-the-user")
    engine = bench.engine()
    handle = engine.start(replace(bench.launch("print_environment"), secrets=("WANDB_API_KEY",)))
    state = end_of(engine, handle)
    secret = bench.path / "studies" / "machines.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    files = [path for path in (bench.path / "studies").rglob("*") if path.is_file() and path != secret]
    assert len(files) > 5
    (instance,) = bench.instances()
    machine = bench.cloud.room.machine(instance.id)
    seen = [path.read_bytes() for path in (*files, *machine.home.rglob("*")) if path.is_file()]
    seen += [command.encode() for command in machine.commands] + [repr(state).encode()]
    for text in seen:
        assert b"PRIVATE KEY" not in text
        assert b"f3c1-token-of-the-user" not in text
    sent = json.dumps([fields for _, fields in bench.cloud.requests])
    assert "f3c1-token-of-the-user" not in sent
