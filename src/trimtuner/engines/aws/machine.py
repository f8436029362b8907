"""A line to a rented machine: SSH, with a machine that proves to be ours and a key that we have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import asyncssh

T = TypeVar("T")

_READ_BYTES = 256 * 1024
_KEEPALIVE_SECONDS = 5.0
_MOST_WORDS = 1000


class LineLost(Exception):  # noqa: N818  (named by what the caller learns)
    """The machine cannot be reached, or no longer; it may be well."""


class CommandFailed(Exception):  # noqa: N818
    """The machine did as told, and it failed; the text is the end of what it said."""


@dataclass(frozen=True)
class Login:
    """As whom we log in to machines, with which key, and how long that may take."""

    user: str
    key: asyncssh.SSHKey = field(repr=False)
    config: Path | None  # of OpenSSH; no other is read
    within: float  # seconds


class Line:
    """A connection to one machine."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection

    async def run(self, command: str, data: bytes = b"", within: float = 60.0) -> str:
        """What the command prints, given the data as its input."""
        try:
            if data:
                done = await self._connection.run(command, input=data, encoding=None, timeout=within)
            else:  # asyncssh would leave the input open, and who reads it would wait for ever
                done = await self._connection.run(command, stdin=asyncssh.DEVNULL, encoding=None, timeout=within)
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise LineLost(_words(error)) from None
        if done.exit_status is None or done.exit_signal:
            raise LineLost("it broke off while a command ran")
        if done.exit_status != 0:
            said = " ".join(_text(done.stderr).split())
            raise CommandFailed(f"{said or 'no words'} (exit code {done.exit_status})")
        return _text(done.stdout)

    async def lines(self, command: str, data: bytes, silence: float) -> AsyncGenerator[bytes, None]:
        """What the command prints, given the data as its input; lost when nothing comes for so long."""
        try:
            async with self._connection.create_process(command, encoding=None) as process:
                process.stdin.write(data)
                process.stdin.write_eof()
                held: list[bytes] = []  # of a line that may be long: joined once
                while data := await _within(silence, process.stdout.read(_READ_BYTES)):
                    *whole, rest = data.split(b"\n")
                    for line in whole:
                        yield b"".join([*held, line])
                        held = []
                    held.append(rest)
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise LineLost(_words(error)) from None


@asynccontextmanager
async def connected(address: str, login: Login, host_key: str) -> AsyncIterator[Line]:
    """A line to the machine at the address, if it shows this host key and none other."""
    trusted = [asyncssh.import_public_key(host_key)]
    try:
        connection = await _within(
            login.within,
            asyncssh.connect(
                address,
                username=login.user,
                client_keys=[login.key],
                known_hosts=(trusted, [], []),
                agent_path=None,
                config=None if login.config is None else [str(login.config)],
                keepalive_interval=_KEEPALIVE_SECONDS,
            ),
        )
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise LineLost(_words(error)) from None
    try:
        yield Line(connection)
    finally:
        connection.abort()  # nothing is said that is not yet answered; waiting for a dead machine would take long


async def _within(seconds: float, work: Awaitable[T]) -> T:
    # Not asyncio.wait_for: in Python 3.11 it may forget that it was to be broken off.
    async with asyncio.timeout(seconds):
        return await work


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:_MOST_WORDS] or type(error).__name__


def _text(data: bytes | str | None) -> str:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else (data or "")
    return text.strip()[-_MOST_WORDS:]
