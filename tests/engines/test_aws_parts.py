"""The parts of the AWS engine that need no cloud: names, clocks, reasons, keys, orders, the archive, the policy."""

from __future__ import annotations

import ast
import io
import json
import math
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("boto3", reason="boto3 is not installed; install trimtuner[aws]")
pytest.importorskip("asyncssh", reason="asyncssh is not installed; install trimtuner[aws]")

import asyncssh
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from trimtuner.engines import protocol
from trimtuner.engines.aws.ec2 import Clock, Instance
from trimtuner.engines.aws.equipping import archive
from trimtuner.engines.aws.fleet import why_gone
from trimtuner.engines.aws.keys import Keys
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.order import RentalOrder, user_data
from trimtuner.engines.aws.pace import Pace
from trimtuner.engines.aws.policy import policy
from trimtuner.engines.aws.refusals import Credentials, Passing, Refused, explain
from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.protocol import EngineTrouble, Machines
from trimtuner.engines.supervising.archive import archive_of
from trimtuner.errors import InputError

STUDIES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}", fullmatch=True)


@given(STUDIES, st.integers(0, 10**6), st.integers(1, 99))
def test_a_handle_names_the_same_attempt_on_any_machine(study: str, trial: int, attempt: int) -> None:
    name = AttemptName("eu-west-1", study, trial, attempt)
    assert AttemptName.of_handle(name.handle) == name


@pytest.mark.parametrize("handle", ["", "eu-west-1/s", "eu-west-1/../1-1", "/etc/passwd", "eu-west-1/a/b/1-1"])
def test_what_is_no_handle_is_refused(handle: str) -> None:
    with pytest.raises(InputError, match="names no attempt"):
        AttemptName.of_handle(handle)


def test_a_client_token_is_the_same_for_the_same_launch_and_no_other() -> None:
    name = AttemptName("eu-west-1", "s", 1, 1)
    tokens = {
        name.client_token("workers", 0),
        name.client_token("workers", 1),
        name.client_token("helpers-t3.micro", 0),
        replace(name, attempt=2).client_token("workers", 0),
    }
    assert len(tokens) == 4
    assert name.client_token("workers", 0) in tokens


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20))
def test_the_clock_is_never_behind_awss_and_comes_nearer_with_every_answer(asked: list[float]) -> None:
    ahead = 1_700_000_000.25  # of AWS's clock before our monotonic one
    clock, before = Clock(), math.inf
    for moment in asked:
        clock.heard(formatdate(math.floor(ahead + moment), usegmt=True), moment)
        late = clock.now() - (ahead + time.monotonic())
        assert -0.001 <= late <= min(before, 1.0) + 0.001
        before = late


def error(code: str, status: int = 400, message: str = "words") -> ClientError:
    found = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(found, "RunInstances")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InsufficientInstanceCapacity", 500, Refused),
        ("VcpuLimitExceeded", 400, Refused),
        ("MaxSpotInstanceCountExceeded", 400, Refused),
        ("InstanceLimitExceeded", 400, Refused),
        ("SpotMaxPriceTooLow", 400, Refused),
        ("RequestLimitExceeded", 503, Passing),
        ("InternalError", 500, Passing),
        ("IdempotentParameterMismatch", 400, Passing),
        ("InvalidInstanceID.NotFound", 400, Passing),
        ("ExpiredToken", 400, Credentials),
        ("RequestExpired", 400, Credentials),
        ("UnauthorizedOperation", 403, EngineTrouble),
        ("InvalidAMIID.NotFound", 400, EngineTrouble),
        ("InvalidKeyPair.NotFound", 400, EngineTrouble),
    ],
)
def test_what_aws_says_no_with_is_sorted_by_what_to_do(code: str, status: int, kind: type[Exception]) -> None:
    assert type(explain(error(code, status))) is kind
    assert code in str(explain(error(code, status)))


def test_a_network_that_fails_passes_and_missing_credentials_do_not() -> None:
    assert type(explain(EndpointConnectionError(endpoint_url="https://ec2"))) is Passing
    assert type(explain(NoCredentialsError())) is Credentials


def test_what_nobody_can_read_is_left_out_of_a_refusal() -> None:
    message = f"You are not authorized. Encoded authorization failure message: {'x' * 2000}"
    text = str(explain(error("UnauthorizedOperation", 403, message)))
    assert "You are not authorized" in text
    assert "xxx" not in text


MACHINE = Instance("i-1", "terminated", 1000.0, 0, None, None, "", None, None, {})


@pytest.mark.parametrize(
    ("machine", "kind"),
    [
        (replace(MACHINE, reason="Server.SpotInstanceTermination"), protocol.PREEMPTED),
        (replace(MACHINE, reason="Server.SpotInstanceShutdown"), protocol.PREEMPTED),
        (replace(MACHINE, spot_request="sir-1"), protocol.PREEMPTED),
        (replace(MACHINE, reason="Client.InstanceInitiatedShutdown", ended=1100.0), protocol.LOST),
        (replace(MACHINE, reason="Client.InstanceInitiatedShutdown", ended=1590.0), protocol.TIMEOUT),
        (replace(MACHINE, reason="Server.InsufficientInstanceCapacity"), protocol.UNAVAILABLE),
        (replace(MACHINE, reason="Client.UserInitiatedShutdown"), protocol.LOST),
        (replace(MACHINE, reason="Client.UserInitiatedShutdown", tags={"trimtuner:stop": "yes"}), protocol.STOPPED),
    ],
)
def test_why_a_machine_is_gone_is_told_from_what_aws_says_of_it(machine: Instance, kind: str) -> None:
    codes = {"sir-1": "instance-terminated-no-capacity"}
    assert why_gone([machine], codes, now=2000.0, lifetime=600.0).end.kind == kind


def test_machines_that_are_no_longer_to_be_seen_are_lost() -> None:
    assert why_gone([], {}, 0.0, 0.0).end.kind == protocol.LOST


def test_keys_follow_from_the_secret_and_differ_for_every_purpose(tmp_path: Path) -> None:
    keys, again, others = Keys(tmp_path), Keys(tmp_path), Keys(tmp_path / "other")
    assert keys.for_login("s") == again.for_login("s")
    publics = {one.public for one in (keys.for_login("s"), keys.for_login("t"), keys.of_host("a"), keys.of_host("b"))}
    assert len(publics) == 4
    assert others.for_login("s").public not in publics
    assert "PRIVATE" not in repr(keys.for_login("s"))
    pair = keys.for_login("s")
    assert pair.imported().export_public_key() == asyncssh.import_public_key(pair.public).export_public_key()


def test_openssh_reads_our_keys(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("OpenSSH is not installed")
    pair = Keys(tmp_path).of_host("h")
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(pair.private)
    done = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == pair.public.split()


def test_a_secret_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machines.key").write_bytes(b"short")
    with pytest.raises(InputError, match="remove it"):
        Keys(tmp_path)


def order(tmp_path: Path, settings: AwsSettings, limit: float = 3600.0) -> RentalOrder:
    machines = Machines("m5.large", 2, "spot", price_per_hour=0.5, helpers=("t3.micro",))
    keys = Keys(tmp_path)
    return RentalOrder(
        AttemptName("eu-west-1", "s", 1, 1), machines, settings, keys.of_host("h"), "ssh-ed25519 AAAA", limit
    )


@given(st.floats(0.1, 10**6), st.floats(0.0, 1.0))
def test_the_timer_fires_after_the_limit_of_the_command_and_within_what_is_reserved(limit: float, share: float) -> None:
    """Whenever it is set: at the launch, or as late as the machine may become ready."""
    settings = AwsSettings()
    one = RentalOrder(AttemptName("r", "s", 1, 1), Machines("m"), settings, None, None, limit)  # type: ignore[arg-type]
    age = share * settings.ready_within
    fires = age + 60.0 * one.minutes_left(age)
    assert fires <= limit + settings.ended_within_seconds
    assert fires >= age + limit + 60.0


def test_helpers_are_rented_on_demand_and_workers_at_no_more_than_was_reserved(tmp_path: Path) -> None:
    one = order(tmp_path, AwsSettings(security_groups=("sg-1",), instance_profile="trainer", disk_gib=200))
    workers, helpers = (one.request(group, 0, "ami-1", "/dev/xvda") for group in one.groups)
    assert workers["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == "0.500000"  # type: ignore[index]
    assert "InstanceMarketOptions" not in helpers
    assert workers["IamInstanceProfile"] == {"Name": "trainer"}
    assert workers["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] is True  # type: ignore[index]
    assert workers["ClientToken"] != helpers["ClientToken"]


def test_what_a_machine_is_told_is_a_cloud_config(tmp_path: Path) -> None:
    text = user_data(Keys(tmp_path).of_host("h"), "ssh-ed25519 AAAA", 90)
    first, _, rest = text.partition("\n")
    assert first == "#cloud-config"
    told = json.loads(rest)
    assert told["runcmd"] == [["shutdown", "-P", "+90"]]
    assert told["ssh_authorized_keys"] == ["ssh-ed25519 AAAA"]
    assert len(text) < 16 * 1024  # as EC2 takes it


@given(st.integers(1, 10**6))
def test_pauses_grow_and_are_bounded(failures: int) -> None:
    pace = Pace()
    assert pace.pause <= pace.pause_after(failures) <= pace.pause_after(failures + 1) <= pace.longest_pause


def test_the_archive_is_the_same_every_time_and_runs_without_the_package(tmp_path: Path) -> None:
    archive_of.cache_clear()
    first = archive()
    archive_of.cache_clear()
    assert archive() == first
    assert len(first.data) < 200_000
    names = zipfile.ZipFile(io.BytesIO(first.data)).namelist()
    assert "trimtuner/engines/supervising/supervisor.py" in names
    path = tmp_path / first.name
    path.write_bytes(first.data)
    words = [sys.executable, "-I", "-S", str(path), "stage", str(tmp_path / "nowhere")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "new\n"


def allowed(settings: AwsSettings, *, uses_spot: bool = False) -> set[str]:
    statements = policy(settings, uses_spot=uses_spot)["Statement"]
    assert isinstance(statements, list)
    actions = [one["Action"] if isinstance(one["Action"], list) else [one["Action"]] for one in statements]
    return {action for several in actions for action in several}


def test_the_archive_is_written_in_the_words_of_python_3_9() -> None:
    with zipfile.ZipFile(io.BytesIO(archive().data)) as file:
        sources = [name for name in file.namelist() if name.endswith(".py")]
        for name in sources:
            ast.parse(file.read(name), name, feature_version=(3, 9))
    assert len(sources) > 5


def test_the_policy_allows_what_the_settings_need_and_no_more() -> None:
    least = allowed(AwsSettings(image="ami-1", look_in=("eu-west-1",)))
    assert least == {"ec2:DescribeInstances", "ec2:RunInstances", "ec2:TerminateInstances", "ec2:CreateTags"}
    assert "ssm:GetParameter" in allowed(AwsSettings())
    assert "iam:PassRole" in allowed(AwsSettings(instance_profile="trainer"))
    assert "ec2:DescribeSpotInstanceRequests" in allowed(AwsSettings(), uses_spot=True)


def test_the_policy_ends_nothing_but_what_carries_our_tag() -> None:
    statements = policy(AwsSettings(), uses_spot=True)["Statement"]
    assert isinstance(statements, list)
    (ending,) = [one for one in statements if "ec2:TerminateInstances" in one["Action"]]
    assert ending["Condition"] == {"StringLike": {"aws:ResourceTag/trimtuner:study": "*"}}
