"""``trimtuner dashboard``: start the server, and say where it is."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from trimtuner.errors import InputError
from trimtuner.jobs.studies import JobStudy

if TYPE_CHECKING:
    from trimtuner.commands.dashboard.app import Dashboard

DEFAULT_PORT = 8080
_SQLITE = b"SQLite format 3\0"  # how every such file begins
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 3.0  # with answers under way, once it is asked to end


@dataclass(frozen=True)
class Listening:
    """Where the page is to be had, and by whom: under which further names, and without a token by this machine only."""

    host: str
    port: int | None
    token: str | None
    further_names: Sequence[str] = ()
    may_change: bool = False  # whether the page has buttons that stop a study and forget its failures


def new_token() -> str:
    """A new token, which nobody guesses."""
    return secrets.token_urlsafe(24)


def serve(given: Sequence[str], at: Listening) -> None:
    """Serve until interrupted; an address that others can reach demands a token."""
    try:
        import uvicorn

        from trimtuner.commands.dashboard.access import own_hosts, written
        from trimtuner.commands.dashboard.app import Dashboard
        from trimtuner.commands.dashboard.recorded import RecordWatched
    except ModuleNotFoundError as error:
        raise InputError(f"the dashboard needs {error.name!r}; pip install 'trimtuner[dashboard]'") from None
    records = [RecordWatched(one) for one in given if is_record(one)]
    jobs = [JobStudy.at(path) for path in job_files([Path(one) for one in given if not is_record(one)])]
    if at.token is not None and len(at.token) < 16:
        raise InputError("a token of less than 16 characters is guessed; leave it out, and one is made")
    with _bound(at.host, at.port) as listening:
        address, port = listening.getsockname()[:2]
        is_open = not ip_address(address).is_loopback
        if is_open and at.token is None:
            raise InputError(f"others can reach {at.host}: leave out --no-token, or leave out --host")
        dashboard = Dashboard(jobs, at.token, own_hosts(at.host, address, port, at.further_names), records)
        login = "" if at.token is None else f"login?token={quote(at.token, safe='')}"
        link = f"http://{_shown_host(written(at.host), address)}:{port}/{login}"
        count = len(jobs) + sum(len(record.studies()) for record in records)
        print(f"{'1 study' if count == 1 else f'{count} studies'} at {link}", flush=True)
        if is_open:
            print("anybody who has this address with its token can read these studies; it is not encrypted", flush=True)
        elif at.token is None:
            print("without a token, all users and programs of this machine can read these studies", flush=True)
        app = dashboard.app_that_may_change() if at.may_change else dashboard.app()
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        server = uvicorn.Server(config)
        dashboard.is_ending = lambda: server.should_exit
        for act in (dashboard.read_ahead, partial(_leave_when_asked, dashboard)):
            threading.Thread(target=act, daemon=True).start()
        # The server passes the signal on when it has ended; the worker is to be ended after it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        finally:
            dashboard.close()


def _leave_when_asked(dashboard: Dashboard) -> None:
    """Whoever reads a long record, or fits its model, cannot be told to end: asked to, the server leaves without it."""
    while not dashboard.is_ending():
        time.sleep(_LOOK_SECONDS)
    time.sleep(_PATIENCE_SECONDS)
    dashboard.close()
    os._exit(0)  # it only reads, and a change that is not written whole is not made


def is_record(given: str) -> bool:
    """Whether it is the address of a database, or a file that is one: all of its studies are listed."""
    if "://" in given:
        return True
    try:
        with Path(given).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def job_files(paths: Sequence[Path]) -> list[Path]:
    """Job files as they are, and those in folders."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*.y*ml") if one.suffix in (".yaml", ".yml") and _is_job(one))
            if not inside:
                raise InputError(f"there is no job file in the folder {str(path)!r}")
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _is_job(path: Path) -> bool:
    """Whether a file in a folder looks like one of ours; others are not our business."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    keys = {line.split(":", 1)[0] for line in text.splitlines() if line[:1].isalpha() and ":" in line}
    return {"name", "goal", "run"} <= keys


def _bound(host: str, port: int | None) -> socket.socket:
    """The given port, or else the usual one, or else a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (DEFAULT_PORT, 0) if port is None else (port,):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host.strip("[]"), wanted))
            listening.listen()  # whoever reads the address may use it at once
        except OSError as error:
            listening.close()
            if port is not None or wanted == 0:
                raise InputError(f"cannot listen on {host}:{wanted}: {error.strerror}; give another --port") from None
            continue
        return listening
    raise AssertionError("unreachable")


def _shown_host(host: str, address: str) -> str:
    if address == "127.0.0.1":
        return "localhost"
    return socket.gethostname() if ip_address(address).is_unspecified else host
