"""GPUs of this machine as things to be leased: who holds the lock of one has it, for as long as that process lives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trimtuner.engines.protocol import Launch
from trimtuner.engines.supervising.files import try_lock
from trimtuner.files import make_private_folder

VISIBLE = "CUDA_VISIBLE_DEVICES"

_DEVICE = re.compile(r"nvidia\d+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9-]")


class Lease(NamedTuple):
    """Devices, and the locks that hold them; whoever inherits these has the devices."""

    devices: tuple[str, ...]
    descriptors: tuple[int, ...]

    def share_of(self, rank: int, nodes: int) -> str:
        """What one of so many nodes is to see, in the words of CUDA."""
        each = max(len(self.devices) // nodes, 1)
        first = rank * each
        return ",".join(self.devices[(first + step) % len(self.devices)] for step in range(each))


def gpus_of(launch: Launch) -> int:
    """How many GPUs an attempt is to have on the machine that stands in for all of its own."""
    if launch.machines is None:
        return 0
    return launch.machines.gpus * (launch.machines.count if launch.nodes == "head" else launch.node_count)


def devices_here() -> tuple[str, ...]:
    """The GPUs that this process may use, by the names that CUDA knows them by."""
    told = os.environ.get(VISIBLE)
    if told is not None:
        return tuple(name.strip() for name in told.split(",") if name.strip() not in ("", "-1"))
    try:
        found = [name for name in os.listdir("/dev") if _DEVICE.fullmatch(name)]
    except OSError:
        return ()
    return tuple(str(number) for number in range(len(found)))


@contextmanager
def leased(count: int) -> Iterator[Lease | None]:
    """So many devices, or all where there are fewer; None where too few are free now.

    Let go afterwards, but by whoever has inherited the locks meanwhile.
    """
    devices = devices_here()
    wanted = min(count, len(devices))
    taken: dict[str, int] = {}
    try:
        for device in devices if wanted else ():
            descriptor = os.open(_lock_of(device), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            if len(taken) < wanted and try_lock(descriptor):
                taken[device] = descriptor
            else:
                os.close(descriptor)
        yield Lease(tuple(taken), tuple(taken.values())) if len(taken) == wanted else None
    finally:
        for descriptor in taken.values():
            os.close(descriptor)


def _lock_of(device: str) -> Path:
    """The same for all processes of the user, wherever they keep their temporary files."""
    folder = Path(f"/tmp/trimtuner-gpus-{os.getuid():d}")  # noqa: S108  (for this user alone)
    make_private_folder(folder)
    return folder / f"{_NOT_IN_NAMES.sub('_', device)}.lock"
