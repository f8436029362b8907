"""Stands in for the machines of EC2: for every instance that moto shows, a real SSH server at its own loopback address.

Commands run as real processes, each machine in a folder of its own, with a ``shutdown`` that ends only that machine.
When an instance is terminated, by whomever, everything that ran on its machine is killed before anybody is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from trimtuner.engines.supervising import fence, processes
from waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from moto.ec2.models.instances import Instance

ACCOUNT = "123456789012"
OUR_PYTHON = Path(os.path.realpath("/proc/self/exe"))
_TICK_SECONDS = 0.05
_READ_BYTES = 64 * 1024

_SHUTDOWN = """#!/bin/sh
# shutdown -P +N
echo "$2" > "$HOME/.shutdown.new" && mv "$HOME/.shutdown.new" "$HOME/.shutdown"
"""
_SUDO = '#!/bin/sh\n[ "$1" = -n ] || exit 1\nshift\nexec "$@"\n'
_ID = "#!/bin/sh\necho 1000\n"


class MachineRoom:
    """The machines of one region."""

    def __init__(self, path: Path, region: str, port: int) -> None:
        self.port, self.python = port, OUR_PYTHON
        self.host_key = ""  # not empty: machines show one of their own
        self.minute_seconds = 60.0  # what shutdown timers take for one
        self.boot_seconds = 0.0
        self.is_silent = self.is_refusing = False
        self.refusals = 0
        self._path, self._region = path, region
        self._machines: dict[str, Machine] = {}
        self._lock = threading.RLock()
        self.changing = threading.Lock()  # held while an instance is not yet all that it will be: nobody is told of it
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(200))  # a few for every command that runs
        self._is_open = True
        self._thread = threading.Thread(target=self._loop.run_forever, name="machine-room", daemon=True)
        self._thread.start()
        self._ticker = threading.Thread(target=self._tick, name="machine-room-clock", daemon=True)
        self._ticker.start()

    def sync(self) -> None:
        """Boot what runs by now, and power off what does not."""
        with self._lock:
            for one in self.instances():
                machine = self._machines.get(one.id)
                if one.state == "running" and machine is None:
                    self._machines[one.id] = machine = Machine(self, one, self._path / one.id)
                    self.call(machine.boot())
                elif one.state != "running" and machine is not None and machine.is_on:
                    self.call(machine.power_off())

    def instances(self) -> list[Instance]:
        from moto.ec2.models import ec2_backends  # a second, which whoever only collects need not wait for

        return list(ec2_backends[ACCOUNT][self._region].all_instances())

    def end(self, instance: Instance, code: str) -> None:
        """As AWS, or the machine itself, ends an instance."""
        from moto.ec2.models.instances import StateReason

        with self.changing:
            instance.terminate()
            instance.state_reason = StateReason(code, code)
        self.sync()

    def machine(self, instance: str) -> Machine:
        return self._machines[instance]

    def drop_lines(self) -> None:
        """Break every SSH connection."""

        async def drop() -> None:
            for machine in self._machines.values():
                machine.drop_lines()

        self.call(drop())

    def call(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def close(self) -> None:
        self._is_open = False
        self._ticker.join()
        for machine in self._machines.values():
            self.call(machine.power_off())
        self.call(self._loop.shutdown_default_executor())
        self.call(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_all(self) -> None:
        """What was being accepted or begun as the machines went off: a socket left open would trouble a later test."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        while any(machine.has_lines for machine in self._machines.values()):
            for machine in self._machines.values():
                machine.drop_lines()
            await asyncio.sleep(0.005)  # a line that was dropped is closed in the next round of the loop
        await asyncio.sleep(0)

    def _tick(self) -> None:
        while self._is_open:
            time.sleep(_TICK_SECONDS)
            with self._lock:
                machines = [one for one in self._machines.values() if one.is_on]
            for machine in machines:
                if machine.is_due():
                    self.end(machine.instance, "Client.InstanceInitiatedShutdown")


class Machine:
    """One of them."""

    def __init__(self, room: MachineRoom, instance: Instance, home: Path) -> None:
        self.instance, self.home, self.is_on = instance, home, True
        self.commands: list[str] = []
        self._room, self._server = room, None
        self._booting: asyncio.Task[None] | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._tools = home.with_name(f"{home.name}.bin")
        for folder in (home, self._tools):
            folder.mkdir(parents=True)
        python = f'#!/bin/sh\nexec "{room.python}" "$@"\n'
        for name, text in {"shutdown": _SHUTDOWN, "sudo": _SUDO, "id": _ID, "python3": python}.items():
            (self._tools / name).write_text(text)
            (self._tools / name).chmod(0o755)

    @property
    def user_data(self) -> dict:
        from moto.core.types import Base64EncodedString

        data = self.instance.user_data
        text = (data if isinstance(data, Base64EncodedString) else Base64EncodedString(data)).decode()
        return json.loads(text.partition("\n")[2])

    async def boot(self) -> None:
        for words in self.user_data["runcmd"]:
            subprocess.run(words, env=self.environment(), cwd=self.home, check=True)
        if self._room.boot_seconds:
            self._booting = asyncio.get_running_loop().create_task(self._listen_late())
        else:
            await self._listen()

    async def _listen_late(self) -> None:
        await asyncio.sleep(self._room.boot_seconds)
        await self._listen()

    async def _listen(self) -> None:
        told = self.user_data
        host_key = asyncssh.import_private_key(told["ssh_keys"]["ed25519_private"])
        if self._room.host_key:
            host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._server = await asyncssh.listen(
            self.instance.private_ip,
            self._room.port,
            server_host_keys=[host_key],
            authorized_client_keys=asyncssh.import_authorized_keys("\n".join(told["ssh_authorized_keys"])),
            server_factory=lambda: _Doorkeeper(self._room, self._connections),
            process_factory=self._serve,
            encoding=None,
        )

    async def power_off(self) -> None:
        self.is_on = False
        if self._booting is not None:
            self._booting.cancel()
        if self._server is not None:
            self._server.close()
        self.drop_lines()
        while rest := self.processes():
            for one in rest:
                processes.send(one, signal.SIGKILL)
            await asyncio.sleep(0.005)
        for attempt in self.home.glob(".trimtuner/*/*/attempt"):
            while fence.kill(str(attempt)):  # a machine that is off has no control groups
                await asyncio.sleep(0.005)

    @property
    def has_lines(self) -> bool:
        return bool(self._connections)

    def drop_lines(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    def processes(self) -> list[processes.Process]:
        """What runs on the machine: told by its home, which every environment names."""
        mark = f"HOME={self.home}\0".encode()
        found = [one for one in processes.all_processes() if one.is_alive and mark in _environment(one.pid)]
        more = processes.living_descendants(one.pid for one in found)
        return list({one.pid: one for one in (*found, *more)}.values())

    def is_due(self) -> bool:
        timer = self.home / ".shutdown"
        with contextlib.suppress(FileNotFoundError):
            minutes = int(timer.read_text().strip().lstrip("+"))
            return time.time() > timer.stat().st_mtime + minutes * self._room.minute_seconds
        return False

    def environment(self) -> dict[str, str]:
        path = f"{self._tools}:{os.environ['PATH']}"
        return {"HOME": str(self.home), "PATH": path, "USER": "ec2-user", "LANG": "C.UTF-8"}

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run one command; a lost connection closes its pipes, and does not kill it."""
        self.commands.append(process.command or "")
        child = subprocess.Popen(
            ["/bin/sh", "-c", process.command or ""],
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
            env=self.environment(),
            cwd=self.home,
            start_new_session=True,
            bufsize=0,
        )
        in_thread = asyncio.get_running_loop().run_in_executor
        outputs = [
            in_thread(None, self._pump, stream, channel, asyncio.get_running_loop())
            for stream, channel in ((child.stdout, process.stdout), (child.stderr, process.stderr))
        ]
        feeding = asyncio.get_running_loop().create_task(self._feed(process.stdin, child.stdin))
        await asyncio.gather(*outputs)
        code = await in_thread(None, child.wait)
        feeding.cancel()
        with contextlib.suppress(OSError, asyncssh.Error):
            process.exit(code if code >= 0 else 128 - code)

    async def _feed(self, channel, pipe) -> None:  # type: ignore[no-untyped-def]
        in_thread = asyncio.get_running_loop().run_in_executor
        with contextlib.suppress(OSError, asyncssh.Error), pipe:
            while data := await channel.read(_READ_BYTES):
                await in_thread(None, _write_all, pipe, data)

    def _pump(self, stream, channel, loop) -> None:  # type: ignore[no-untyped-def]
        with stream:
            while data := os.read(stream.fileno(), _READ_BYTES):
                while self._room.is_silent and self.is_on:
                    time.sleep(_TICK_SECONDS)
                if channel.is_closing():
                    return
                loop.call_soon_threadsafe(_say, channel, data)


class _Doorkeeper(asyncssh.SSHServer):
    def __init__(self, room: MachineRoom, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._room, self._connections = room, connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._mine = conn
        self._connections.add(conn)
        if self._room.is_refusing:
            self._room.refusals += 1
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self._mine)


def _say(channel, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with contextlib.suppress(OSError, asyncssh.Error):
        channel.write(data)


def _write_all(pipe, data: bytes) -> None:  # type: ignore[no-untyped-def]
    while data:
        data = data[pipe.write(data) :]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:
        return b""
