"""Ports on which the nodes of a trial meet: as many in a row as there are nodes.

On one machine they are held: who has locked the bytes of a file that have their numbers has the ports, for as long as
any process lives that inherited the lock. Other programs know nothing of it, so that nobody may listen there either.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trimtuner.engines.protocol import Launch
from trimtuner.engines.supervising.files import NodeRecord
from trimtuner.engines.supervising.nodes import at_port
from trimtuner.files import make_private_folder

LOOPBACK = "127.0.0.1"

_FIRST, _LAST = 20_000, 30_000  # below those that systems give to whoever asks for any


class HeldPorts(NamedTuple):
    """The first of the ports, and the lock that holds them all; whoever inherits it has them."""

    first: int
    descriptors: tuple[int, ...]


def port_of(launch: Launch) -> int:
    """The first of the ports of an attempt, from all machines the same; others likely have others."""
    name, count = f"{launch.study} {launch.trial} {launch.attempt}", launch.node_count
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return _FIRST + number % max((_LAST - _FIRST) // count, 1) * count


@contextmanager
def held_ports(wanted: int, count: int) -> Iterator[HeldPorts]:
    """So many from that one on, or the next that no other attempt of the user has here and on which nobody listens.

    Let go afterwards, but by whoever has inherited the lock meanwhile.
    """
    around = [*range(wanted, _LAST, count), *range(_FIRST, wanted, count)]
    descriptor = os.open(_lock_file(), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        first = next((port for port in around if _took(descriptor, port, count)), wanted)
        yield HeldPorts(first, (descriptor,))
    finally:
        os.close(descriptor)


@contextmanager
def ports_here(launch: Launch) -> Iterator[HeldPorts]:
    """Those of an attempt all of whose nodes are on this machine; a command on the head alone needs none."""
    if launch.nodes == "head":
        yield HeldPorts(port_of(launch), ())
        return
    with held_ports(port_of(launch), launch.node_count) as ports:
        yield ports


@contextmanager
def meeting_here(nodes: list[NodeRecord]) -> Iterator[tuple[list[NodeRecord], Sequence[int]]]:
    """The nodes, where all are on this machine at ports that no other attempt has, and what holds these."""
    if nodes[0]["values"].get("world_size") != str(len(nodes)):  # of a cluster, where others know the port by now
        yield nodes, ()
        return
    with held_ports(int(nodes[0]["values"]["master_port"]), len(nodes)) as ports:
        yield at_port(nodes, ports.first), ports.descriptors


def _took(descriptor: int, port: int, count: int) -> bool:
    """Take them, where no other attempt has them and nobody listens there; whether they are ours now."""
    if not _try_range(descriptor, fcntl.F_WRLCK, port, count):
        return False
    if all(map(_is_free, range(port, port + count))):
        return True
    _try_range(descriptor, fcntl.F_UNLCK, port, count)
    return False


def _try_range(descriptor: int, kind: int, first: int, count: int) -> bool:
    """Lock so many bytes of the open file, or let them go; unlike other locks of ranges, this one is inherited."""
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, first, count, 0)  # struct flock, of fcntl(2)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)
    except BlockingIOError:
        return False
    return True


def _lock_file() -> Path:
    """The same for all processes of the user, wherever they keep their temporary files."""
    folder = Path(f"/tmp/trimtuner-ports-{os.getuid():d}")  # noqa: S108  (for this user alone)
    make_private_folder(folder)
    return folder / "ports.lock"


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what others left a minute ago may be used again
        try:
            one.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
