"""The engine that hands trials in to Slurm.

All that is known of an attempt is in the name and comment of its job and in its folder on the shared file system, which
is written by its supervisor on the node: any driver on any login node can take over from any other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from trimtuner.engines.protocol import STOPPED, UNAVAILABLE, AttemptState, End, EngineTrouble, Found, Launch
from trimtuner.engines.slurm import queue
from trimtuner.engines.slurm.conclusion import end_of, end_without_job
from trimtuner.engines.slurm.node_side import FAILED_NODE, ORDER
from trimtuner.engines.slurm.queue import COMPLETING, PENDING, JobTag, NoSuchNodes, Queue, SlurmJob
from trimtuner.engines.slurm.settings import SlurmSettings
from trimtuner.engines.slurm.submission import OUTPUT, environment_of, order_of, script_of, words_of
from trimtuner.engines.supervising import files
from trimtuner.engines.supervising.archive import archive_of
from trimtuner.engines.supervising.environment import check_launch, check_secrets
from trimtuner.engines.supervising.files import EndRecord, attempt_name
from trimtuner.engines.supervising.mirror import Mirror, Mirrors
from trimtuner.files import make_private_folder

_SUBMITTED = "submitted.json"  # sbatch has said its number, and when
_CONCLUDED = "concluded.json"  # how it ended, when Slurm and the supervisor have both had their say
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class SlurmPace:
    """Seconds. The usual ones ask the controller of a busy cluster for little."""

    look: float = 10.0  # between two questions for what is in the queue, of all attempts together
    hurry: float = 1.0  # the same, when something is known to have happened
    settle: float = 20.0  # after which what a node has written on the shared file system is seen everywhere
    in_vain: float = 60.0  # that a job stays in the queue though it would never run; an administrator may mend that
    gentle: float = 8.0  # that a stop leaves to the supervisor, before the job is cancelled
    stopped_within: float = 120.0


@dataclass
class _Seen:
    """What this process remembers of an attempt."""

    beat: float = 0.0
    beat_since: float = 0.0
    over_since: float | None = None  # since when Slurm is known to have nothing more of it


class SlurmEngine:
    """Runs every attempt as a job of its own, whose nodes are given back when its end is told."""

    def __init__(self, folder: Path, secret: bytes, settings: SlurmSettings, pace: SlurmPace | None = None) -> None:
        self._folder, self._settings, self._pace = folder.resolve(), settings, pace or SlurmPace()
        self._mirrors, self._queue = Mirrors(secret), Queue()
        self._seen: dict[str, _Seen] = {}

    def start(self, launch: Launch) -> str:
        """Hand the attempt in, unless it was handed in already, or may have been and somebody removed its files."""
        check_launch(launch)
        if launch.begun_below is not None:
            launch = replace(launch, folder=launch.begun_below)
        path = launch.folder.resolve() / attempt_name(launch.trial, launch.attempt)
        mirror = self._mirrors.at(path)
        is_lost = launch.may_have_run and not mirror.is_untouched()
        if not _is_handed_in(mirror):
            mirror.make()
            try:
                with files.start_lock(path) as lock:
                    self._hand_in(launch, mirror, lock, is_lost)
            except TimeoutError as error:
                raise EngineTrouble(str(error)) from None
        self._seen.setdefault(str(path), _Seen())
        return str(path)

    def take_over(self, launch: Launch, handle: str) -> str:
        """By its folder, which is on the shared file system, under that path or another."""
        path = launch.folder.resolve() / attempt_name(launch.trial, launch.attempt)
        is_there = self._mirrors.at(path).noted(ORDER) is not None and not Path(handle).is_dir()
        found = str(path) if is_there else handle
        self._seen.setdefault(found, _Seen())
        return found

    def poll(self, handle: str) -> AttemptState:
        """How it goes; an EngineTrouble while Slurm does not answer."""
        mirror = self._mirrors.at(Path(handle))
        concluded = _concluded(mirror)
        if concluded is None:
            written = mirror.end()
            jobs = self._jobs(handle, self._pace.look if written is None else self._pace.hurry)
            waiting = None if mirror.has_begun else _waiting(jobs)
            if waiting is not None and self._waits_too_long(mirror, waiting):
                return self.poll(handle)
            if waiting is not None:
                return replace(mirror.state(), waiting=self._words_of(mirror, waiting))
            concluded = self._conclude(handle, mirror, jobs, written)
        return replace(mirror.state(), end=concluded)  # read after its end, reports are complete

    def stop(self, handle: str) -> None:
        """End it, and return when its job is over."""
        mirror = self._mirrors.at(Path(handle))
        if _concluded(mirror) is not None:
            return
        mirror.ask_to_stop()
        now = time.monotonic()
        gentle, deadline = now + self._pace.gentle, now + self._pace.stopped_within
        while self._poll_anew(handle).end is None:
            jobs = [job for job in self._jobs(handle, self._pace.hurry) if not job.is_final]
            for job in jobs:
                if job.state == PENDING or time.monotonic() >= gentle:
                    queue.cancel(job.number)
                    self._queue.forget(handle)
            if time.monotonic() >= deadline:
                words = ", ".join(f"job {job.number} is {job.state}" for job in jobs) or "its node does not answer"
                raise EngineTrouble(f"the end of {handle!r} is not confirmed ({words}); stop it again")
            time.sleep(_LOOK_SECONDS)

    def find(self, study: str | None = None) -> list[Found]:
        """What of ours Slurm knows."""
        found: dict[str, Found] = {}
        for job in queue.all_jobs():
            tag = job.tag
            is_running = not job.is_final or (tag.folder in found and found[tag.folder].is_running)
            found[tag.folder] = Found(tag.study, tag.trial, tag.attempt, tag.folder, is_running)
        return [one for one in found.values() if study in (None, one.study)]

    def forget(self, handle: str) -> None:
        """Only what was seen of it; its folder stays, for whoever wants to read the log."""
        self._seen.pop(handle, None)
        self._queue.forget(handle)
        self._mirrors.forget(Path(handle))

    # Handing in

    def _hand_in(self, launch: Launch, mirror: Mirror, lock: int, is_lost: bool) -> None:
        """Once: whoever was at it before may have died before it could say so, but Slurm knows."""
        if _is_handed_in(mirror):
            return
        handle = str(mirror.folder)
        if mirror.noted(ORDER) is not None or launch.may_have_run:
            self._queue.forget(handle)
            jobs = self._jobs(handle, 0.0)
            if jobs or is_lost:
                _note_submitted(mirror, jobs[0].number if jobs else "")
                return
        check_secrets(launch)
        words = words_of(launch, self._settings, mirror.folder)
        mirror.note(ORDER, {**order_of(launch, mirror.folder)})
        script = script_of(self._archive(), self._settings, mirror.folder)
        try:
            number = queue.submit(words, script, environment_of(launch, mirror.key), lock)
        except NoSuchNodes as refusal:
            _note_submitted(mirror, "")
            mirror.note(_CONCLUDED, {**EndRecord(kind=UNAVAILABLE, detail=f"sbatch: {refusal}", seconds=0.0)})
            return
        _note_submitted(mirror, number)
        self._queue.forget(handle)

    def _archive(self) -> Path:
        """What the nodes run, on the shared file system."""
        name, data = archive_of("trimtuner.engines.slurm.node_side")
        path = self._folder / name
        if not path.exists():
            make_private_folder(self._folder)
            draft = path.with_name(f"{name}.{os.urandom(8).hex()}")
            draft.write_bytes(data)
            draft.replace(path)
        return path

    # Watching

    def _jobs(self, handle: str, not_older_than: float) -> list[SlurmJob]:
        return self._queue.jobs(_tag(handle), map(_tag, self._seen), not_older_than)

    def _poll_anew(self, handle: str) -> AttemptState:
        self._jobs(handle, self._pace.hurry)
        return self.poll(handle)

    def _conclude(self, handle: str, mirror: Mirror, jobs: list[SlurmJob], written: End | None) -> End | None:
        """How it ended, if it has for sure."""
        if not self._is_confirmed(self._seen.setdefault(handle, _Seen()), mirror, jobs, written):
            return None
        if not mirror.has_begun and not _is_kept_from_beginning(mirror):
            return None
        found = jobs or queue.in_accounting(_tag(handle))
        written = _end_of_nodes(mirror)
        if found:
            longest = max(found, key=lambda job: job.seconds)
            end = end_of(longest, written, mirror.has_begun, mirror.last_beat, _last_line(mirror.folder / OUTPUT))
        else:
            end = end_without_job(written, mirror.has_begun, mirror.last_beat)
        return self._keep(mirror, end)

    def _is_confirmed(self, seen: _Seen, mirror: Mirror, jobs: list[SlurmJob], written: End | None) -> bool:
        """Whether its job is over, and so is whoever writes in its folder."""
        if _is_over(jobs) and (written is not None or not mirror.has_begun):
            return True
        if written is None and not _is_over(jobs):
            seen.over_since = None
            return False
        return _are_completing(jobs) and self._is_settled(seen, mirror)

    def _is_settled(self, seen: _Seen, mirror: Mirror) -> bool:
        """Whether nothing came from the node for long enough; who still works there is told to end."""
        now, beat = time.monotonic(), mirror.last_beat
        if seen.over_since is None:
            seen.over_since = now
        if beat != seen.beat:
            if now - seen.over_since > files.BEAT_SECONDS and mirror.end() is None:
                mirror.ask_to_stop()  # a node that the controller has lost may be well, and goes on
            seen.beat, seen.beat_since = beat, now
        return now - max(seen.over_since, seen.beat_since) >= self._pace.settle

    def _keep(self, mirror: Mirror, end: End) -> End:
        """Write down how it ended; the first to do so decides."""
        if mirror.is_asked_to_stop() and end.kind == STOPPED:
            end = replace(end, detail="ended on request")
        mirror.note(_CONCLUDED, {**EndRecord(kind=end.kind, detail=end.detail, seconds=end.seconds)})
        return _concluded(mirror) or end

    def _words_of(self, mirror: Mirror, job: SlurmJob) -> str:
        """What it waits for; nothing where it has just been handed in, and may be about to begin."""
        return "" if _waited(mirror) < self._pace.hurry else f"in the queue ({job.reason})"

    def _waits_too_long(self, mirror: Mirror, job: SlurmJob) -> bool:
        """Whether it was taken out of the queue, and is told as ended; one that begins at that instant runs."""
        is_in_vain, limit = job.reason in queue.IN_VAIN, self._settings.queue_limit
        limit = self._pace.in_vain if is_in_vain else limit
        if limit is None or _waited(mirror) < limit:
            return False
        queue.cancel_pending(job.number)
        self._queue.forget(str(mirror.folder))
        jobs = self._jobs(str(mirror.folder), 0.0)
        if mirror.has_begun or not _is_over(jobs):
            return False
        waited = f"it waited {limit:g} s in the queue"
        detail = f"{waited}, and would never run ({job.reason})" if is_in_vain else f"{waited} ({job.reason})"
        mirror.note(_CONCLUDED, {**EndRecord(kind=UNAVAILABLE, detail=detail, seconds=0.0)})
        return True


def _tag(handle: str) -> JobTag:
    return JobTag.of_folder(Path(handle))


def _is_handed_in(mirror: Mirror) -> bool:
    return mirror.noted(_SUBMITTED) is not None or mirror.has_begun or mirror.end() is not None


def _note_submitted(mirror: Mirror, number: str) -> None:
    mirror.note(_SUBMITTED, {"job": number, "at": time.time()})


def _waited(mirror: Mirror) -> float:
    """Seconds since it was handed in, as whoever did has noted."""
    submitted = mirror.noted(_SUBMITTED)
    return 0.0 if submitted is None else time.time() - float(str(submitted["at"]))


def _concluded(mirror: Mirror) -> End | None:
    record = cast("EndRecord | None", mirror.noted(_CONCLUDED))
    return None if record is None else End(record["kind"], record["detail"], record["seconds"])


def _end_of_nodes(mirror: Mirror) -> End | None:
    """How the supervisors ended it: that of the head, or that of the node for which the head was ended."""
    end, failed = mirror.end(), cast("EndRecord | None", mirror.noted(FAILED_NODE))
    if failed is None or end is None:
        return end
    return replace(end, kind=failed["kind"], detail=failed["detail"])


def _waiting(jobs: Iterable[SlurmJob]) -> SlurmJob | None:
    """The job that waits in the queue, where none has begun."""
    listed = list(jobs)
    return next((job for job in listed if job.state == PENDING), None) if not any(map(_has_run, listed)) else None


def _has_run(job: SlurmJob) -> bool:
    return job.state != PENDING and not job.is_final


def _is_over(jobs: Iterable[SlurmJob]) -> bool:
    return all(job.is_final for job in jobs)


def _are_completing(jobs: Iterable[SlurmJob]) -> bool:
    return all(job.is_final or job.state == COMPLETING for job in jobs)


def _is_kept_from_beginning(mirror: Mirror) -> bool:
    """Whether a job that turns up after all would find that it is no longer wanted; not while one is about to begin."""
    mirror.make()
    try:
        with files.start_lock(mirror.folder, patience_seconds=0.0):
            if not mirror.has_begun:
                mirror.ask_to_stop()
            return not mirror.has_begun
    except TimeoutError:
        return False


def _last_line(path: Path) -> str:
    text = (files.read_regular(path, 64 * 1024) or b"").decode("utf-8", "replace")
    return " ".join(text.strip().rpartition("\n")[2].split())[:300]
