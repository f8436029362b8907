"""What a rented machine is asked to do, one word a time: ``python3 machine.pyz VERB PLACE ...``.

The place of an attempt holds ``work``, the copied working directory, ``attempt``, what its supervisor writes, and maybe
``checkpoint``, what the command keeps for a retry. Every verb may be said again after a lost line: what is done stays
done. Secrets come by standard input and go to the environment of the command alone. Standard library only, and Python
3.9. Each verb imports what it needs, since an archive is compiled anew whenever it is run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtuner.engines.supervising.files import Folder

WORK, ATTEMPT, CHECKPOINT = "work", "attempt", "checkpoint"
TOO_LARGE, LEADS_OUT = "too large", "leads out"  # why a folder is not kept
_SETUP, _SETUP_LOG, _SETUP_LOCK = "setup.json", "setup.txt", "setup.lock"
_MOST_WORDS = 2000  # characters of a failed setup's output


def main() -> None:
    """Do what the arguments say."""
    verb, place, *rest = sys.argv[1:]
    _VERBS[verb](Path(place).expanduser(), *rest)


def stage(place: Path) -> None:
    """Say how far the attempt is here; of one that has begun, since how many seconds."""
    from trimtuner.engines.supervising.starting import has_begun

    folder = _attempt(place, sys.stdin.buffer.read())
    print(*(["begun", _age(folder)] if has_begun(folder) else ["new"]))


def unpack(place: Path) -> None:
    """Make the working directory from the parcel on standard input."""
    from trimtuner.engines.supervising.packing import unpack as unpack_parcel

    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    unpack_parcel(sys.stdin.buffer.read(), place / WORK)


def restore(place: Path) -> None:
    """Make the folder that survives from the parcel on standard input."""
    from trimtuner.engines.supervising.packing import unpack as unpack_parcel

    unpack_parcel(sys.stdin.buffer.read(), place / CHECKPOINT)


def keep(place: Path, known: str, most_bytes: str) -> None:
    """Print the folder that survives as a parcel, in one line, unless it is the one that is known; or why it cannot."""
    import base64

    from trimtuner.engines.supervising.packing import TooLarge, pack_whole
    from trimtuner.errors import InputError

    if not (place / CHECKPOINT).is_dir():
        return
    try:
        parcel = pack_whole(place / CHECKPOINT, int(most_bytes))
    except InputError as error:
        print(json.dumps({"refused": TOO_LARGE if isinstance(error, TooLarge) else LEADS_OUT}))
        return
    if parcel.digest != known:
        print(json.dumps({"digest": parcel.digest, "data": base64.b64encode(parcel.data).decode()}))


def setup(place: Path) -> None:
    """Run the command on standard input once in the working directory; print its exit code and last words."""
    import fcntl

    from trimtuner.engines.supervising.files import Folder

    told = json.loads(sys.stdin.buffer.read())
    folder = Folder(place, bytes.fromhex(told["key"]))
    with open(place / _SETUP_LOCK, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one that a lost line left behind may still be at it
        if folder.get(_SETUP) is None:
            folder.put(_SETUP, {"code": _run_setup(place, told["words"], told["environment"])})
    print(json.dumps(folder.get(_SETUP)))
    print((place / _SETUP_LOG).read_text(encoding="utf-8", errors="replace")[-_MOST_WORDS:])


def start(place: Path) -> None:
    """Begin the command of the launch on standard input, unless it was begun; say since how many seconds."""
    from trimtuner.engines.supervising import files, processes
    from trimtuner.engines.supervising.starting import CannotBegin, begin, has_begun

    told = json.loads(sys.stdin.buffer.read())
    folder = _attempt(place, bytes.fromhex(told["key"]))
    folder.make()
    with files.start_lock(folder.path) as lock:
        if not has_begun(folder):
            record = told["record"]
            record["working_directory"] = str(place / WORK)
            if record["checkpoint"] is not None:
                (place / CHECKPOINT).mkdir(mode=0o700, exist_ok=True)
                record["checkpoint"] = str(place / CHECKPOINT)
            try:
                begin(record, folder, lock, {**told["added"], processes.FOLDER: str(folder.path)})
            except CannotBegin as reason:
                sys.exit(str(reason))
    print("begun", _age(folder))


def follow(place: Path, reports_from: str) -> None:
    """Print what is new, a line each time, until the end."""
    from trimtuner.engines.supervising.mirror import follow as news_of

    for news in news_of(_attempt(place, sys.stdin.buffer.read()), int(reports_from)):
        sys.stdout.buffer.write(news.as_line())
        sys.stdout.buffer.flush()


def supervise(folder: Path, *descriptors: str) -> None:
    """Be the supervisor of an attempt."""
    from trimtuner.engines.supervising import supervisor

    supervisor.main(folder, *map(int, descriptors))


_VERBS: dict[str, Callable[..., None]] = {
    "stage": stage,
    "unpack": unpack,
    "restore": restore,
    "keep": keep,
    "setup": setup,
    "start": start,
    "follow": follow,
    "supervise": supervise,
}


def _attempt(place: Path, key: bytes) -> Folder:
    from trimtuner.engines.supervising.files import Folder

    return Folder(place / ATTEMPT, key)


def _age(folder: Folder) -> float:
    from trimtuner.engines.supervising import files

    begun = folder.get(files.BEGUN)
    return 0.0 if begun is None else time.monotonic() - float(str(begun["monotonic"]))


def _run_setup(place: Path, words: list[str], environment: dict[str, str]) -> int:
    import subprocess

    from trimtuner.engines.supervising.starting import handed_on

    with open(os.open(place / _SETUP_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        try:
            return subprocess.run(  # noqa: S603  (the user's own command, and no shell)
                words,
                cwd=place / WORK,
                env={**handed_on(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        except OSError as error:
            log.write(str(error).encode())
            return 127
