"""The process that stays with one attempt: starts the command, writes down what it says, and ends all of it for sure.

Started as ``python -m trimtuner.engines.supervising.supervisor FOLDER LOCK [LIFELINE]``, with the key of the attempt as
its input: what it writes down is sealed with it, and the command, which may write into the folder too, never sees it.
It knows nothing of whoever started it and needs nobody: the time limit holds when the driver is long dead. Where it is
given a lifeline, the reading end of a pipe, it ends the command when nobody holds the other end any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, cast

from trimtuner.engines.supervising import fence, files, processes
from trimtuner.engines.supervising.files import BegunRecord, EndRecord, Folder, LaunchRecord, NodeRecord
from trimtuner.engines.supervising.metrics import Reports, metrics_of_file, metrics_of_output
from trimtuner.engines.supervising.nodes import command_of, environment_of
from trimtuner.engines.supervising.output import MetricsFile, OutputLog, Redactor
from trimtuner.engines.supervising.stream import Stream

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL; part of the time that is charged
_TICK_SECONDS = 0.2
_PATIENCE_WITH_DISK_SECONDS = 3600.0  # to make room on a full one
_READ_BYTES = 64 * 1024
_MOST_READS_AT_END = 256  # a pipe holds less, unless somebody outside of the tree writes into it
_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h
_ENDED_UNCOLLECTED = os.WEXITED | os.WNOHANG | os.WNOWAIT
_CODE_OF_KILLED = 128 + signal.SIGKILL  # how a shell passes on that its command was killed

# The words of engines.protocol, which is not imported here for its weight.
_EXIT, _SIGNAL, _OUT_OF_MEMORY, _TIMEOUT, _LOST, _STOPPED = "exit", "signal", "oom", "timeout", "lost", "stopped"


def main(path: Path, lock: int, lifeline: int | None = None) -> None:
    """Become a process of nobody's, say so, and supervise the command."""
    if os.fork():
        os._exit(0)  # nobody then has to collect the supervisor when it ends
    _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # the command, which is of the same user, cannot read the key in our memory
    folder = Folder(path, os.read(0, files.KEY_BYTES))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the command become ours, so none is out of sight
    launch = cast("LaunchRecord", folder.get(files.LAUNCH))
    started = time.monotonic()
    begun = _begun(started)
    folder.beat(0.0)
    folder.put(files.BEGUN, {**begun})
    is_ours = folder.get(files.BEGUN) == begun and folder.get(files.END) is None
    supervisor = _Supervisor(folder, launch, started, lifeline) if is_ours else None
    os.close(lock)
    _leave_starter(path)
    if supervisor is None:  # who moves the lock away lets two start: the first to say so has begun, the other leaves
        return
    kind, detail = supervisor.run()
    end = EndRecord(kind=kind, detail=detail, seconds=time.monotonic() - started)
    _write_patiently(supervisor.write_held_reports)
    folder.make()  # where it was removed: the end is told all the same
    _write_patiently(lambda: folder.put(files.END, {**end}))


class _Ending(NamedTuple):
    """That we end the command, why, and when patience is over."""

    kind: str
    detail: str
    kill_at: float


class _Command(NamedTuple):
    """The command, as it was started for a node."""

    node: NodeRecord
    process: subprocess.Popen[bytes]


class _Supervisor:
    """One command, from its start to the confirmed end of everything that it started.

    Where the machine stands in for several nodes, it is started once for each. The first one leads: all end with it.
    """

    def __init__(self, folder: Folder, launch: LaunchRecord, started: float, lifeline: int | None) -> None:
        self._folder, self._launch, self._started, self._lifeline = folder, launch, started, lifeline
        self._identity = os.stat(folder.path)
        self._logs = [OutputLog(folder.path / files.LOG)]
        self._commands: list[_Command] = []
        self._reports = Reports(folder, Redactor(self._secrets()).redacted)
        name = launch["metrics_file"] if self._reports_here() else None
        self._metrics_file = MetricsFile(Path(launch["working_directory"], name)) if name else None
        self._file_stream = self._new_stream(metrics_of_file, lambda _: None)
        self._streams: dict[int, Stream] = {}
        self._poll = select.poll()
        self._wake = _new_pipe()
        self._was_told_to_end = self._was_let_go = False
        self._ending: _Ending | None = None
        self._fenced = fence.FencedAttempt(launch["study"], launch["trial"], launch["attempt"], str(folder.path))
        self._next_beat = self._next_memory_check = started
        self._memory_kills = processes.kernel_memory_kills()
        self._listen_to_signals()

    def run(self) -> tuple[str | None, str]:
        """Run the command; the kind of its failure, if any, and words for it."""
        held = fence.make(self._fenced)
        try:
            self._start_commands(held)
            while not self._has_led_to_end():
                self._wait()
                self._read_metrics_file()
                self._beat()
                self._enforce_limits()
        finally:
            self._kill_tree(held)  # whatever went wrong here, nothing goes on unsupervised
        self._read_rest()
        return self._how_it_ended(held)

    def write_held_reports(self) -> None:
        """What was said and could not be written yet."""
        self._reports.write_held()

    def _start_commands(self, held: fence.Fence) -> None:
        """All of the nodes, the leading one first: in a namespace it is the one with which all others end."""
        for node in self._launch["nodes"]:
            try:
                self._commands.append(_Command(node, self._start_command(node, held)))
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                if not self._commands or not self._has_led_to_end():  # a namespace that has ended takes nobody in
                    detail = f"the command could not be started: {error}"
                    self._ending = _Ending(_EXIT, self._of_node(node, detail), time.monotonic())
                return

    def _start_command(self, node: NodeRecord, held: fence.Fence) -> subprocess.Popen[bytes]:
        # Two pipes, since a progress bar on stderr without an end of line must not hide a metric on stdout.
        log = self._new_log(node)
        pipes = [self._new_output(node, log), self._new_output(node, log)]
        supervisor, enter = os.getpid(), held.join if self._commands else held.enter

        def prepare() -> None:
            _prepare_command(supervisor, node["cores"])
            enter()

        try:
            return subprocess.Popen(  # noqa: S603  (running the user's command is the task; no shell reads it)
                command_of(self._launch, node),
                cwd=self._launch["working_directory"],
                env={**os.environ, **environment_of(self._launch, node)},
                stdin=subprocess.DEVNULL,
                stdout=pipes[0],
                stderr=pipes[1],
                start_new_session=True,
                preexec_fn=prepare,
            )
        finally:
            for descriptor in pipes:
                os.close(descriptor)

    def _new_log(self, node: NodeRecord) -> OutputLog:
        """That of the leading node is the log of the attempt; each other one has a folder for its own."""
        if self._commands:
            folder = self._folder.of_node(node["rank"])
            folder.make()
            self._logs.append(OutputLog(folder.path / files.LOG))
        return self._logs[-1]

    def _reports_here(self) -> bool:
        """Whether one of the nodes is the head, which alone reports."""
        return any(node["rank"] == 0 for node in self._launch["nodes"])

    def _new_output(self, node: NodeRecord, log: OutputLog) -> int:
        reading, writing = _new_pipe()
        os.set_blocking(writing, True)
        is_reporting = node["rank"] == 0 and self._metrics_file is None
        pick_metrics = metrics_of_output if is_reporting else lambda _: None
        self._streams[reading] = self._new_stream(pick_metrics, log.write)
        self._poll.register(reading, select.POLLIN)
        return writing

    def _new_stream(self, pick: Callable[[bytes], bytes | None], log: Callable[[bytes], None]) -> Stream:
        return Stream(self._secrets(), pick, log, lambda texts: self._reports.add(texts, self._seconds()))

    def _secrets(self) -> list[str]:
        return [os.environ.get(name, "") for name in self._launch["secrets"]]

    def _listen_to_signals(self) -> None:
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        self._poll.register(self._wake[0], select.POLLIN)
        if self._lifeline is not None:
            os.set_blocking(self._lifeline, False)
            self._poll.register(self._lifeline, select.POLLIN)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake up
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._note_told())

    def _note_told(self) -> None:
        self._was_told_to_end = True

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _wait(self) -> None:
        """Take in what the command says, or let a little time pass."""
        for descriptor, _ in self._poll.poll(_TICK_SECONDS * 1000):
            data = _read_available(descriptor)
            if descriptor in self._streams and data is not None:
                self._streams[descriptor].feed(data)
            if data == b"":  # the end of an output, or of the lifeline
                self._was_let_go = self._was_let_go or descriptor == self._lifeline
                self._poll.unregister(descriptor)

    def _read_metrics_file(self) -> bytes:
        data = self._metrics_file.read() if self._metrics_file else b""
        if data:
            self._file_stream.feed(data)
        return data

    def _read_rest(self) -> None:
        """What the dead have left in pipes and file."""
        for descriptor, stream in self._streams.items():
            for _ in range(_MOST_READS_AT_END):
                data = _read_available(descriptor)
                if not data:
                    break
                stream.feed(data)
            stream.finish()
        for _ in range(_MOST_READS_AT_END):
            if not self._read_metrics_file():
                break
        self._file_stream.finish()
        for log in self._logs:
            log.close()

    def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            with contextlib.suppress(OSError):  # it matters only if we vanish, and must not be why
                self._folder.beat(self._seconds())
            self._next_beat = time.monotonic() + files.BEAT_SECONDS

    def _has_led_to_end(self) -> bool:
        """Whether the leading command has ended, or none could be started.

        It is seen, and not collected: until then nobody else is given its number, or its group's.
        """
        if len(self._commands) < len(self._launch["nodes"]) and self._ending is not None:
            return True
        return os.waitid(os.P_PID, self._commands[0].process.pid, _ENDED_UNCOLLECTED) is not None

    def _enforce_limits(self) -> None:
        self._collect_the_dead()
        if self._ending is None:
            self._ending = self._reason_to_end()
            if self._ending is not None:
                self._ask_to_end()
        if self._ending is not None and time.monotonic() >= self._ending.kill_at:
            processes.kill(processes.living_descendants([os.getpid()]))

    def _collect_the_dead(self) -> None:
        """Those that were left to us may go, and other nodes, whose codes are kept; but not the leading command."""
        lead, *others = (one.process for one in self._commands)
        while (ended := os.waitid(os.P_ALL, 0, _ENDED_UNCOLLECTED)) and ended.si_pid != lead.pid:
            if all(ended.si_pid != one.pid for one in others):
                os.waitpid(ended.si_pid, 0)
            for one in others:
                one.poll()

    def _ask_to_end(self) -> None:
        for _, command in self._commands:
            if command.returncode is None:
                with contextlib.suppress(PermissionError, ProcessLookupError):  # it changed its user, or just ended
                    os.killpg(command.pid, signal.SIGTERM)

    def _reason_to_end(self) -> _Ending | None:
        now = time.monotonic()
        if self._folder.is_asked_to_stop():
            return _Ending(_STOPPED, "ended on request", now + GRACE_SECONDS)
        if self._was_told_to_end:
            return _Ending(
                _LOST, "a signal told its supervisor to end, as when a machine shuts down", now + GRACE_SECONDS
            )
        if self._was_let_go:
            return _Ending(_LOST, "whoever started it is gone", now + GRACE_SECONDS)
        if not self._is_folder_there():
            return _Ending(_LOST, "its folder was removed, and what it had reported with it", now)
        if self._seconds() >= self._launch["limit"]:
            return _Ending(_TIMEOUT, f"ended after its limit of {self._launch['limit']:g} s", now + GRACE_SECONDS)
        failed = self._failed_node()
        if failed is not None:
            return _Ending(*failed, now + GRACE_SECONDS)
        if self._is_over_memory():
            # No grace: by the time it is over, the machine may have none left.
            return _Ending(_OUT_OF_MEMORY, f"killed above its limit of {self._launch['memory_bytes']} bytes", now)
        return None

    def _is_folder_there(self) -> bool:
        try:
            return os.path.samestat(self._identity, os.lstat(self._folder.path))
        except OSError:
            return False

    def _is_over_memory(self) -> bool:
        """Whether the whole tree holds more than it may.

        Watched rather than set as RLIMIT_AS: that counts addresses, of which CUDA and torch reserve far more than they
        use, and it counts for each process alone.
        """
        limit, begin, count = self._launch["memory_bytes"], time.monotonic(), len(self._commands)
        if limit is None or begin < self._next_memory_check:
            return False
        is_over = processes.hold_more_than(count * limit, processes.living_descendants([os.getpid()]))
        if count > 1:
            is_over = is_over or any(processes.hold_more_than(limit, _family(one.process)) for one in self._commands)
        # Watching takes at most a fiftieth of a core, however many processes the machine has.
        self._next_memory_check = begin + max(_TICK_SECONDS, 50 * (time.monotonic() - begin))
        return is_over

    def _failed_node(self) -> tuple[str, str] | None:
        """Kind and detail, where another node than the leading one has failed; one that ended well is not missed."""
        for node, command in self._commands[1:]:
            if command.returncode:
                kind, detail = self._failure_of(command.returncode)
                return kind, self._of_node(node, detail)
        return None

    def _kill_tree(self, held: fence.Fence) -> None:
        """Kill until nothing is left, however long that takes: an end that is not confirmed is none."""
        while (
            (tree := processes.living_descendants([os.getpid()]))
            or held.kill()
            or not _has_no_child_left(self._commands)
        ):
            processes.kill(tree)
            self._beat()
            time.sleep(0.01)

    def _how_it_ended(self, held: fence.Fence) -> tuple[str | None, str]:
        if self._ending is not None:
            return self._ending.kind, self._ending.detail
        code = held.code_of_command(self._commands[0].process.returncode)
        return self._failure_of(code) if code else (None, "exit code 0")

    def _failure_of(self, code: int) -> tuple[str, str]:
        if code in (-signal.SIGKILL, _CODE_OF_KILLED) and processes.kernel_memory_kills() > self._memory_kills:
            return _OUT_OF_MEMORY, "killed by the kernel, which was short of memory"
        if code < 0:
            return _SIGNAL, f"killed by signal {-code} ({signal.strsignal(-code)})"
        return _EXIT, f"exit code {code}"

    def _of_node(self, node: NodeRecord, detail: str) -> str:
        return f"node {node['rank']}: {detail}" if len(self._launch["nodes"]) > 1 else detail


def _write_patiently(write: Callable[[], None]) -> None:
    """A training that was paid for is not lost because the disk is full when it ends."""
    deadline = time.monotonic() + _PATIENCE_WITH_DISK_SECONDS
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or time.monotonic() >= deadline:
                raise
        time.sleep(_TICK_SECONDS)


def _begun(started: float) -> BegunRecord:
    myself, numbering = processes.read_process(os.getpid()), processes.numbering()
    if myself is None or numbering is None:
        raise RuntimeError("/proc does not show this process; the local engine needs it mounted")
    return BegunRecord(numbering=numbering, pid=myself.pid, started_ticks=myself.started_ticks, monotonic=started)


def _leave_starter(folder: Path) -> None:
    """Tell the starter, who reads our output to its end, that the attempt has begun."""
    with contextlib.suppress(BrokenPipeError):  # the starter was killed meanwhile; the attempt has begun all the same
        os.write(1, b"begun")
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder / files.SUPERVISOR_ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(errors, 2)


def _prepare_command(supervisor: int, cores: list[int]) -> None:
    """Runs in the new process, just before it becomes the command."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if processes.parent_seen_from_proc() != supervisor:  # it died before we asked to die with it
        os._exit(1)
    if cores:
        os.sched_setaffinity(0, cores)
    _libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # or what follows would be refused; the key goes with the memory, at exec
    # When the machine itself runs short of memory, the kernel should choose the job, not its supervisor or the driver.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("800")


def _family(command: subprocess.Popen[bytes]) -> list[processes.Process]:
    myself = processes.read_process(command.pid)
    return [*([] if myself is None else [myself]), *processes.living_descendants([command.pid])]


def _has_no_child_left(commands: Iterable[_Command]) -> bool:
    """Whether nothing descends from us: orphans become our children, and one that forks and leaves escapes a look."""
    if any(command.process.poll() is None for command in commands):
        return False
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _new_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    return reading, writing


def _read_available(descriptor: int) -> bytes | None:
    """What is there now: nothing at the end of the stream, None when nothing has come yet."""
    try:
        return os.read(descriptor, _READ_BYTES)
    except BlockingIOError:
        return None


_libc = ctypes.CDLL(None)

if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
