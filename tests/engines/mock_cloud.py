"""EC2 as moto plays it, on loopback, with a machine room behind it and faults in front of it.

moto ignores client tokens; so do we, and rely on tags as a driver does whose answer was lost.
"""

from __future__ import annotations

import io
import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs

import boto3
from aws_under_test import REGION
from machine_room import OUR_PYTHON, MachineRoom
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

SIGNER = "signed with"

Fields: TypeAlias = dict[str, list[str]]
Answer: TypeAlias = tuple[int, bytes]


@dataclass
class Fault:
    """What happens instead to the next so many calls of an action."""

    action: str  # or "*"
    answer: Callable[[Fields, Callable[[], Answer]], Answer]
    times: int
    has: tuple[str, str] | None = None  # a field and its value

    def fits(self, action: str, fields: Fields) -> bool:
        is_meant = self.action in (action, "*")
        return self.times > 0 and is_meant and (self.has is None or fields.get(self.has[0]) == [self.has[1]])


@dataclass
class MockCloud:
    """The cloud, for tests to look at and to spoil."""

    address: str
    room: MachineRoom
    subnet: str
    ssh_config: Path
    faults: list[Fault] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[tuple[str, Fields]] = field(default_factory=list)

    def client(self, service: str = "ec2", region: str = REGION):  # type: ignore[no-untyped-def]
        keys = {"aws_access_key_id": "mock", "aws_secret_access_key": "mock"}
        return boto3.session.Session().client(service, region_name=region, endpoint_url=self.address, **keys)

    def refuse(
        self, action: str, code: str, times: int = 1, *, status: int = 400, has: tuple[str, str] | None = None
    ) -> None:
        """Answer with an error, and do nothing."""
        self.faults.append(Fault(action, lambda _fields, _pass_on: _error(code, status), times, has))

    def lose_answer(self, action: str, times: int = 1) -> None:
        """Do it, and answer with an error."""

        def answer(_fields: Fields, pass_on: Callable[[], Answer]) -> Answer:
            pass_on()
            return _error("InternalError", 500)

        self.faults.append(Fault(action, answer, times))

    def ignore_terminations(self, times: int = 1) -> None:
        """Say that it is being done, and do nothing."""
        self.faults.append(Fault("TerminateInstances", lambda fields, _pass_on: _said_to_end(fields), times))

    def refuse_signer(self, key: str, code: str) -> None:
        """Refuse whatever is signed with this access key, for ever."""
        self.faults.append(Fault("*", lambda _fields, _pass_on: _error(code, 400), 10**9, (SIGNER, key)))

    def hide_instances(self, times: int = 1) -> None:
        """Show none, as EC2 may for a few seconds after a launch."""
        empty = b"<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
        self.faults.append(Fault("DescribeInstances", lambda _fields, _pass_on: (200, empty), times))

    def show_regions(self, *names: str) -> None:
        """An account with few regions; moto makes every one that it is asked for, which takes a second each."""
        items = "".join(f"<item><regionName>{name}</regionName></item>" for name in names)
        text = f"<DescribeRegionsResponse><regionInfo>{items}</regionInfo></DescribeRegionsResponse>".encode()
        self.faults.append(Fault("DescribeRegions", lambda _fields, _pass_on: (200, text), 1))

    def quota(self, vcpus: float) -> None:
        """What moto does not know: how many vCPUs the account may use at once."""
        text = json.dumps({"Quota": {"ServiceCode": "ec2", "Value": vcpus}}).encode()
        self.faults.append(Fault("GetServiceQuota", lambda _fields, _pass_on: (200, text), 1000))

    def mend(self) -> None:
        """As if nothing had been."""
        self.faults.clear()
        self.calls.clear()
        self.requests.clear()
        self.room.minute_seconds, self.room.boot_seconds = 60.0, 0.0
        self.room.python, self.room.host_key = OUR_PYTHON, ""
        self.room.is_silent = self.room.is_refusing = False

    def states(self, study: str) -> list[str]:
        """Of every instance of the study."""
        return [one.state for one in self.instances(study)]

    def instances(self, study: str):  # type: ignore[no-untyped-def]
        return [one for one in self.room.instances() if tags_of(one).get("trimtuner:study") == study]


def tags_of(instance) -> dict[str, str]:  # type: ignore[no-untyped-def]
    return {tag["key"]: tag["value"] for tag in instance.get_tags()}


@contextmanager
def mock_cloud(path: Path) -> Iterator[MockCloud]:
    """A cloud of one's own, with one subnet whose addresses are on loopback."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    logging.getLogger("asyncssh").setLevel(logging.ERROR)
    room = MachineRoom(path / "machines", REGION, _free_port())
    ssh_config = path / "ssh_config"
    ssh_config.write_text(f"Host *\n  Port {room.port}\n")
    gate = _Gate(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, gate, threaded=True)
    threading.Thread(target=server.serve_forever, name="moto", daemon=True).start()
    cloud = MockCloud(f"http://127.0.0.1:{server.server_port}", room, "", ssh_config)
    client = cloud.client()
    network = client.create_vpc(CidrBlock="127.16.0.0/16")["Vpc"]["VpcId"]
    cloud.subnet = client.create_subnet(VpcId=network, CidrBlock="127.16.0.0/16")["Subnet"]["SubnetId"]
    gate.cloud = cloud
    yield cloud
    server.shutdown()
    server.server_close()
    room.close()


class _Gate:
    """Stands before moto: spoils what a fault is meant for, and lets the machines follow what is done."""

    def __init__(self, application: DomainDispatcherApplication) -> None:
        self._application = application
        self.cloud: MockCloud | None = None
        self._lock = threading.Lock()

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        fields = parse_qs(body.decode("utf-8", "replace"))
        fields[SIGNER] = [environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]]
        action = fields.get("Action", [environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]])[0]
        fault = self._fault_for(action, fields)
        if fault is None:
            return self._passed_on(action, environ, start_response)
        status, text = fault.answer(fields, lambda: self._done(action, environ))
        start_response(f"{status} Spoiled", [("Content-Type", "text/xml"), ("Content-Length", str(len(text)))])
        return [text]

    def _fault_for(self, action: str, fields: Fields) -> Fault | None:
        if self.cloud is None:
            return None
        with self._lock:
            self.cloud.calls[action] += 1
            self.cloud.requests.append((action, fields))
            fault = next((one for one in self.cloud.faults if one.fits(action, fields)), None)
            if fault is not None:
                fault.times -= 1
            return fault

    def _passed_on(self, action: str, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if self.cloud is not None and action.startswith("Describe"):
            with self.cloud.room.changing:
                return list(self._application(environ, start_response))
        answer = list(self._application(environ, start_response))
        if self.cloud is not None and action in ("RunInstances", "TerminateInstances"):
            self.cloud.room.sync()
        return answer

    def _done(self, action: str, environ: dict) -> Answer:
        statuses: list[str] = []
        body = b"".join(self._passed_on(action, environ, lambda status, _headers, *_: statuses.append(status)))
        return int(statuses[0].split()[0]), body


def _error(code: str, status: int) -> Answer:
    words = f"<Error><Code>{code}</Code><Message>as the test wishes</Message></Error>"
    return status, f"<Response><Errors>{words}</Errors><RequestID>0</RequestID></Response>".encode()


def _said_to_end(fields: Fields) -> Answer:
    ids = [values[0] for name, values in fields.items() if name.startswith("InstanceId.")]
    state = "<currentState><code>32</code><name>shutting-down</name></currentState>"
    items = "".join(f"<item><instanceId>{one}</instanceId>{state}</item>" for one in ids)
    return (
        200,
        f"<TerminateInstancesResponse><instancesSet>{items}</instancesSet></TerminateInstancesResponse>".encode(),
    )


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
