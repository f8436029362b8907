"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray.study_actors import NAMESPACE

_PATIENCE_WITH_HEAD = "RAY_gcs_server_port_wait_time_s"  # how often Ray tries, about once a second
_CONNECTING = threading.Lock()


def connect(address: str) -> None:
    """Connect this process to a cluster, unless it is; a process has one connection."""
    with _CONNECTING, _kept_signal_handler():
        if ray.is_initialized():
            _check_connection(address)
            return
        os.environ.setdefault(_PATIENCE_WITH_HEAD, "10")
        try:
            with _silence():
                ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        except (RayError, ConnectionError, RuntimeError, ValueError) as error:
            raise EngineTrouble(f"the Ray cluster {address!r} cannot be joined: {_reason(error)}") from None


@contextmanager
def _silence() -> Iterator[None]:
    """Ray's C++ part writes every failed try to connect on the terminal; what matters is in the error."""
    terminal, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(nothing)


@contextmanager
def _kept_signal_handler() -> Iterator[None]:
    """Ray sets a handler of its own for SIGTERM; ours is put back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _check_connection(address: str) -> None:
    connected = ray.get_runtime_context().gcs_address
    if address not in ("auto", connected):
        raise EngineTrouble(f"this process has joined the Ray cluster {connected!r} and cannot join {address!r} too")


def _reason(error: BaseException) -> str:
    """What is at the bottom of it; Ray wraps errors, with tracebacks as text."""
    text = str(error.__cause__ or error).strip()
    if "AuthToken" in text or "uthentication token" in text:
        return "it asks for a token, and ours is missing or wrong (see RAY_AUTH_TOKEN_PATH in Ray's documentation)"
    return text.rpartition("\n")[2][:300] or type(error).__name__
