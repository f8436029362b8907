"""Making a rented machine ready: its shutdown timer, our archive, the working directory, the user's setup."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtuner.engines.aws.fleet import Over
from trimtuner.engines.aws.machine import CommandFailed, Line
from trimtuner.engines.aws.machine_side import ATTEMPT
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.protocol import EXIT, UNAVAILABLE
from trimtuner.engines.supervising.archive import Archive, archive_of
from trimtuner.engines.supervising.packing import Parcel

_HOME = "$HOME/.trimtuner"
_COPY_SECONDS = 3600.0  # the machine must be ready long before, but a slow line is not a lost one


def archive() -> Archive:
    """What is sent to every machine, built from the sources here."""
    return archive_of("trimtuner.engines.aws.machine_side")


@dataclass(frozen=True)
class Equipment:
    """What a machine needs before the command can begin."""

    parcel: Parcel
    setup: Sequence[str]
    environment: dict[str, str]
    key: bytes = field(repr=False)  # of the attempt
    checkpoint: bytes | None = field(default=None, repr=False)  # the parcel that an earlier attempt left, if one did


async def arm_timer(line: Line, minutes: int) -> None:
    """Set the timer that ends the machine when everybody has forgotten it."""
    command = f"shutdown -P +{minutes:d}"
    try:
        await line.run(f'if [ "$(id -u)" = 0 ]; then {command}; else sudo -n {command}; fi')
    except CommandFailed as failure:
        raise Over(UNAVAILABLE, f"the machine's shutdown timer could not be set: {failure}") from None


async def age_of_begun(line: Line, name: AttemptName, key: bytes) -> float | None:
    """Put our archive on the machine; since how many seconds the command runs there, or None if it has not begun."""
    archived, data = archive()
    draft = f'"{_HOME}/{archived}.$$"'
    send = f'umask 077; mkdir -p "{_HOME}" && cat > {draft} && mv {draft} "{_HOME}/{archived}"'
    # Looking for the folder is left to the shell: usually it is not there, and starting Python takes a while.
    look = f'if [ -d "{_HOME}/{name.study}/{name.short}/{ATTEMPT}" ]; then echo there; fi'
    if not await _do(line, f"{send} && {look}", data):
        return None
    word, _, age = (await _do(line, _words(name, "stage"), key)).partition(" ")
    return float(age) if word == "begun" else None


async def equip(line: Line, name: AttemptName, equipment: Equipment) -> None:
    """Copy the working directory and run the setup, unless that was done before."""
    await _do(line, _words(name, "unpack"), equipment.parcel.data, _COPY_SECONDS)
    if equipment.checkpoint is not None:
        await _do(line, _words(name, "restore"), equipment.checkpoint, _COPY_SECONDS)
    if equipment.setup:
        told = json.dumps(
            {"words": list(equipment.setup), "environment": equipment.environment, "key": equipment.key.hex()}
        )
        answer = await _do(line, _words(name, "setup"), told.encode(), _COPY_SECONDS)
        first, _, said = answer.partition("\n")
        code = json.loads(first)["code"]
        if code != 0:
            raise Over(EXIT, f"the setup ended with exit code {code}: {said.strip().rpartition(chr(10))[2]}")


async def begin(line: Line, name: AttemptName, record: object, added: dict[str, str], key: bytes) -> float:
    """Begin the command, unless that was done before; since how many seconds it runs."""
    told = json.dumps({"record": record, "added": added, "key": key.hex()}).encode()
    return float((await _do(line, _words(name, "start"), told)).partition(" ")[2])


def follow_words(name: AttemptName, reports_from: int) -> str:
    """The command that tells what is new, given the key of the attempt."""
    return _words(name, "follow", str(reports_from))


def keep_words(name: AttemptName, known: str, most_bytes: int) -> str:
    """The command that tells what was kept for a retry, up to so much, unless it is the parcel of this digest."""
    return _words(name, "keep", known, str(most_bytes))


def _words(name: AttemptName, verb: str, *rest: str) -> str:
    place = f"~/.trimtuner/{name.study}/{name.short}"
    # Isolated: nothing in the machine's environment can take the place of a module.
    return f'python3 -I -S "{_HOME}/{archive().name}" {verb} {shlex.join([place, *rest])}'


async def _do(line: Line, command: str, data: bytes = b"", within: float = 60.0) -> str:
    try:
        return await line.run(command, data, within)
    except CommandFailed as failure:
        raise Over(UNAVAILABLE, f"the machine could not be made ready: {failure}") from None
