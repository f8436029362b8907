"""Random faults, by seed, under real runs of one job after the other; and whether all that is promised held.

    python tests/attacks/faults.py --faults 1000 --seed 1 [--postgres] [--folder FOLDER]

Drivers, supervisors and trials are killed, stopped and told to end; the record is locked, or its server stopped as in a
crash; the disk is full for a while; clocks jump by days; files of attempts are removed, or others take their names.
When and which is told by the seed, whom it hits by chance. The judge is ``checking``. A record that is itself removed
is not among the faults.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack import IN_A_FILE, KINDS, ON_A_SERVER, Attack, remove

from postgres_server import NOT_HERE, PostgresServer, find_binaries, running_server
from quick_commands import quick_commands

DISK_BYTES = 32 * 2**20
LAST_FAULTS = 25


@dataclass
class Fault:
    """One that was injected."""

    kind: str
    what: str  # empty: it hit nothing
    at: float = field(default_factory=time.monotonic)


def inject(
    folder: Path, faults: int, seed: int, money: int | None, server: PostgresServer | None
) -> tuple[list[Fault], list[str]]:
    """So many faults, in as many studies as it takes; what they were, and what did not hold."""
    kinds = {**KINDS, **(IN_A_FILE if server is None else ON_A_SERVER)}
    disk = folder / "disk"
    disk.mkdir()
    done: list[Fault] = []
    commands = Path(__file__).with_name("jumping_commands.py")
    with _small_disk(disk), quick_commands(commands) as quick:  # in this order: only who comes later sees the disk
        if not os.path.ismount(disk):
            kinds.pop("disk full for a while")
            print("no file system may be mounted here: the disk is never full")
        number = 0
        while len(done) < faults:
            number += 1
            own = folder / f"study-{number}"
            own.mkdir()
            attack = Attack(quick, own, disk, f"{seed}-{number}", money, server)
            try:
                complaints = _inject_into(attack, kinds, faults, done)
            finally:
                attack.end_all()
            if complaints:
                shutil.copytree(disk, own / "disk", symlinks=True, ignore=_no_pipes)
                return done, [f"study {number}: {one}" for one in complaints]
            print(f"study {number} held; {len(done)} faults so far", flush=True)
            _clear(disk)
            shutil.rmtree(own, ignore_errors=True)
    return done, []


def _inject_into(
    attack: Attack, kinds: dict[str, tuple[int, Callable[[Attack], str]]], faults: int, done: list[Fault]
) -> list[str]:
    names, weights = list(kinds), [weight for weight, _ in kinds.values()]
    while len(done) < faults and not attack.is_over:
        attack.look_after_runs()
        time.sleep(attack.chance.choice([0.0, 0.1, 0.3, 0.5]) * attack.chance.random())
        kind = attack.chance.choices(names, weights)[0]
        done.append(Fault(kind, _hit(attack, kinds[kind][1])))
        complaints = attack.judge() if len(done) % 20 == 0 else attack.complaints
        if complaints:
            return complaints
    return attack.finish()


def _hit(attack: Attack, fault: Callable[[Attack], str]) -> str:
    """Whom it hit, at once or a little later; nobody, where there is nobody for long."""
    for _ in range(attack.chance.choice([1, 20, 40])):
        what = fault(attack)
        if what:
            return what
        time.sleep(0.03)
        attack.look_after_runs()
    return ""


def table(faults: list[Fault]) -> str:
    """How many of each kind there were, and how many hit something."""
    injected, hit = Counter(one.kind for one in faults), Counter(one.kind for one in faults if one.what)
    rows = [f"| {kind} | {count} | {hit[kind]} |" for kind, count in sorted(injected.items())]
    return "\n".join(["| fault | injected | hit something |", "|---|--:|--:|", *rows, _sum_of(injected, hit)])


def _sum_of(injected: Counter[str], hit: Counter[str]) -> str:
    return f"| all | {injected.total()} | {hit.total()} |"


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_fifo() or name == "ballast"]


def _clear(disk: Path) -> None:
    for path in disk.iterdir():
        remove(path)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A small file system of our own in the folder, where one may be mounted; nobody else sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    is_private = libc.unshare(0x00020000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0  # CLONE_NEWNS
    size = f"size={DISK_BYTES}".encode()
    is_mounted = is_private and libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, size) == 0
    yield
    if is_mounted:
        libc.umount2(str(folder).encode(), 2)


def main() -> int:
    """0 if all held."""
    parser = argparse.ArgumentParser(description="Random faults under real runs, by seed.")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="an empty one, for the studies and what is left of one that failed")
    parser.add_argument("--money", type=int, help="the budget of each study in USD; else one of several")
    parser.add_argument("--postgres", action="store_true", help="with the record on a server of our own")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-")) if given.folder is None else given.folder.resolve()
    began = time.monotonic()
    with ExitStack() as stack:
        server = stack.enter_context(_server()) if given.postgres else None
        faults, complaints = inject(folder, given.faults, given.seed, given.money, server)
    print(f"{table(faults)}\nseed {given.seed}, {time.monotonic() - began:.0f} s")
    if not complaints:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    last = [f"  {one.at - began:.2f} s {one.kind}: {one.what or 'nobody'}" for one in faults[-LAST_FAULTS:]]
    print("the last faults:", *last, "did not hold:", *complaints, f"what is left is in {folder}", sep="\n")
    print(f"again: python tests/attacks/faults.py --faults {given.faults} --seed {given.seed}")
    return 1


@contextmanager
def _server() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit(NOT_HERE)
    with running_server(binaries) as server:
        yield server


if __name__ == "__main__":
    sys.exit(main())
