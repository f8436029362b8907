"""The connection of this process to a Ray cluster, and to the actors of studies there: found, made, and asked."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import ray
from ray.exceptions import ActorDiedError, GetTimeoutError, RayError
from ray.util import list_named_actors

from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray.orders import ACCEPTED, LACKS_PARCEL, AttemptOrder, Handle, Key, Position, Told
from trimtuner.engines.ray.study_actor import StudyActor
from trimtuner.engines.supervising.packing import Parcel

NAMESPACE = "trimtuner"
_PREFIX = "keeper-"  # as versions before called them: what those started is found again
_PATIENCE_WITH_NEWS_SECONDS = 5.0  # whoever looks after many trials must not wait long
_PATIENCE_SECONDS = 20.0  # with an actor that is there
_PATIENCE_WITH_NEW_SECONDS = 60.0  # Ray starts a process for it
_PATIENCE_AT_EXIT_SECONDS = 2.0
_PATIENCE_WITH_HEAD_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_TRIES_TO_CONNECT = "RAY_gcs_server_port_wait_time_s"  # how often Ray tries, about once a second
_CONNECTING = threading.Lock()
# Of the head node there is one, and it offers this.
_ON_THE_HEAD = {"node:__internal_head__": 0.001}


def connect(address: str) -> None:
    """Connect this process to a cluster, unless it is; a process has one connection."""
    with _CONNECTING, _kept_signal_handler():
        if ray.is_initialized():
            joined = ray.get_runtime_context().gcs_address
            if address in ("auto", joined):
                return
            raise EngineTrouble(f"this process has joined the Ray cluster {joined!r} and cannot join {address!r} too")
        os.environ.setdefault(_TRIES_TO_CONNECT, "10")
        try:
            with _silence():
                ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        except (RayError, ConnectionError, RuntimeError, ValueError) as error:
            raise EngineTrouble(f"the Ray cluster {address!r} cannot be joined: {_reason(error)}") from None


class ActorGone(RuntimeError):  # noqa: N818  (named by what the caller learns)
    """There is no actor for the study: it left, or it died with all that it held."""


class StudyActors:
    """The actors of the cluster that this process is connected to."""

    def __init__(self, users: str | None) -> None:
        """``users``: see StudyActor."""
        self._users = users
        self._handles: dict[str, Handle] = {}
        atexit.register(self._dismiss)

    def studies(self) -> list[str]:
        """Those that have an actor."""
        check_head()
        try:
            named = list_named_actors(all_namespaces=True)
        except RayError as error:
            raise EngineTrouble(f"the Ray cluster does not answer: {_first_line(error)}") from None
        names = [one["name"] for one in named if one["namespace"] == NAMESPACE]
        return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))

    def ask(self, study: str, method: str, *arguments: object) -> object:
        """An actor's answer; ActorGone where there is none, EngineTrouble where it does not come."""
        return self._answer(study, self._found(study), _PATIENCE_SECONDS, method, *arguments)

    def news(self, study: str, wanted: list[tuple[Key, Position]]) -> list[Told | None]:
        """What is new of each attempt; None where the actor does not know it."""
        found = self._answer(study, self._found(study), _PATIENCE_WITH_NEWS_SECONDS, "news", wanted)
        return cast("list[Told | None]", found)

    def known(self, study: str) -> list[tuple[Key, bool]]:
        """The attempts that an actor holds, and whether each is under way; none where it has just left."""
        try:
            return cast("list[tuple[Key, bool]]", self.ask(study, "known"))
        except ActorGone:
            return []

    def order(self, study: str, order: AttemptOrder, parcel: Parcel | None) -> None:
        """Give an order to the study's actor, which is made if need be, and the parcel if it lacks that."""
        deadline = time.monotonic() + _PATIENCE_WITH_NEW_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = self._ask_made(study, "start", order)
                if answer == ACCEPTED:
                    return
                if answer == LACKS_PARCEL and parcel is not None:
                    self._ask_made(study, "take_parcel", *parcel)
                    continue
            except ActorGone:  # it left, or died, just now
                pass
            self._handles.pop(study, None)
            time.sleep(_PAUSE_SECONDS)
        raise EngineTrouble(f"no actor of study {study!r} could be made on the Ray cluster; look at its state")

    def _dismiss(self) -> None:
        """Let those that we have asked leave, if they hold nothing."""
        if ray.is_initialized() and self._handles:
            asked: list[ray.ObjectRef[None]] = [handle.leave.remote() for handle in self._handles.values()]
            ray.wait(asked, num_returns=len(asked), timeout=_PATIENCE_AT_EXIT_SECONDS)

    def _found(self, study: str) -> Handle:
        if study not in self._handles:
            check_head()
            try:
                self._handles[study] = ray.get_actor(f"{_PREFIX}{study}", namespace=NAMESPACE)
            except ValueError:
                raise ActorGone(study) from None
            except RayError as error:
                raise EngineTrouble(f"the Ray cluster does not answer: {_first_line(error)}") from None
        return self._handles[study]

    def _made(self, study: str) -> Handle:
        if study not in self._handles:
            check_head()
            actor = ray.remote(StudyActor).options(
                name=f"{_PREFIX}{study}",
                namespace=NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=0,
                resources=_ON_THE_HEAD,
                max_restarts=0,
                max_task_retries=0,
            )
            self._handles[study] = cast("Handle", actor.remote(study, self._users))
        return self._handles[study]

    def _ask_made(self, study: str, method: str, *arguments: object) -> object:
        return self._answer(study, self._made(study), _PATIENCE_WITH_NEW_SECONDS, method, *arguments)

    def _answer(self, study: str, actor: Handle, patience: float, method: str, *arguments: object) -> object:
        try:
            return ray.get(getattr(actor, method).remote(*arguments), timeout=patience)
        except ActorDiedError:
            self._handles.pop(study, None)
            raise ActorGone(study) from None
        except GetTimeoutError:
            raise EngineTrouble(
                f"the actor of study {study!r} has not answered within {patience:g} s; is the Ray cluster up?"
            ) from None
        except RayError as error:
            raise EngineTrouble(f"the actor of study {study!r} cannot be asked: {_first_line(error)}") from None


def check_head() -> None:
    """An EngineTrouble when the cluster's head is gone: to ask it, Ray would wait for many minutes, deaf to signals."""
    address = ray.get_runtime_context().gcs_address
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_WITH_HEAD_SECONDS).close()
    except OSError as error:
        raise EngineTrouble(f"the head of the Ray cluster, {address}, cannot be reached: {error}") from None


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


def _reason(error: BaseException) -> str:
    """What is at the bottom of it; Ray wraps errors, with tracebacks as text."""
    text = str(error.__cause__ or error).strip()
    if "AuthToken" in text or "uthentication token" in text:
        return "it asks for a token, and ours is missing or wrong (see RAY_AUTH_TOKEN_PATH in Ray's documentation)"
    return text.rpartition("\n")[2][:300] or type(error).__name__


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
