"""Ports on which the nodes of a trial meet: as many in a row as there are nodes."""

from __future__ import annotations

import hashlib
import socket

from trimtuner.engines.protocol import Launch

LOOPBACK = "127.0.0.1"

_FIRST, _LAST = 20_000, 30_000  # below those that systems give to whoever asks for any


def port_of(launch: Launch) -> int:
    """The first of the ports of an attempt, from all machines the same; others likely have others."""
    name, count = f"{launch.study} {launch.trial} {launch.attempt}", launch.node_count
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return _FIRST + number % max((_LAST - _FIRST) // count, 1) * count


def free_port_of(launch: Launch) -> int:
    """The same, or the next on which nobody listens here, as far as can be seen now."""
    count, wanted = launch.node_count, port_of(launch)
    around = [*range(wanted, _LAST, count), *range(_FIRST, wanted, count)]
    return next((port for port in around if all(map(_is_free, range(port, port + count)))), wanted)


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what others left a minute ago may be used again
        try:
            one.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
