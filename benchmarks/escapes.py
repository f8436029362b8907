"""Which processes outlive their trial, by what fences it: ``python -m benchmarks.escapes``.

Every way to hide is tried with every fence and every end of a trial, with real processes: an escape is what lives when
the engine has told the end. Then the price: seconds of a trial that does nothing. What the machine or the user does
not allow is said. docs/decisions/0026-what-fences-a-trial.md has the table.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from trimtuner.engines.local.engine import LocalEngine
from trimtuner.engines.protocol import Launch
from trimtuner.engines.supervising import fence, files, processes, starting

FENCES = {
    fence.TAGS_ONLY: "()",
    fence.CONTROL_GROUP: "(fence.make_control_group,)",
    fence.PID_NAMESPACE: "(fence.make_pid_namespace,)",
}
ENDS = ("supervisor killed", "normal end", "time-out")
TIMED, LIMIT_SECONDS, SOON_SECONDS, PATIENCE_SECONDS = 40, 1.0, 5.0, 60.0

# Lines of Python for the command: what they start is called by the mark, and goes on for a minute.
HELPERS = """
import ctypes, os, signal, sys, time
mark, then = sys.argv[1:]
prctl = ctypes.CDLL(None).prctl
def stay(environment=os.environ):
    os.execve("/bin/sleep", [mark, "60"], environment)
def twice(deed):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            deed()
        os._exit(0)
    os.wait()
def move():
    lines = open("/proc/self/mountinfo").readlines()
    mount = next(line.split()[4] for line in lines if " - cgroup2 " in line)
    open(mount + "/cgroup.procs", "w").write("0")
    stay({})
def hop():
    code = "for (1..5000) { open(my $beat, '>', $ARGV[0]) or exit; select(undef, undef, undef, 0.002); fork and exit }"
    os.execve("/usr/bin/perl", [mark, "-e", code, os.path.abspath("beat")], {})
def below_subreaper():
    prctl(36, 1, 0, 0, 0)
    os.setsid()
    twice(lambda: stay({}))
    os.execve("/bin/sleep", ["sleep", "60"], {})
def unshare():
    words = ["--pid", "--fork", "bash", "-c", f"exec -c -a {mark} /bin/sleep 60"]
    os.execve("/usr/bin/unshare", ["unshare", *words], {})
def alone(deed):
    if os.fork() == 0:
        deed()
"""
WAYS = {
    "a child": "alone(stay)",
    "`nohup`": "alone(lambda: (signal.signal(1, signal.SIG_IGN), signal.signal(15, signal.SIG_IGN), stay()))",
    "`setsid`": "alone(lambda: (os.setsid(), stay()))",
    "`env -i`": "alone(lambda: stay({}))",
    "`daemon()`: double fork, `setsid`": "twice(stay)",
    "double fork, `env -i setsid`": "twice(lambda: stay({}))",
    "the same below a subreaper of its own": "alone(below_subreaper)",
    "`env -i setsid`, forks and leaves every 2 ms": "twice(hop)",
    "double fork, `env -i setsid unshare --pid --fork`": "twice(unshare)",
    "the command itself: `PR_SET_PDEATHSIG` cleared, `env -i`": "prctl(1, 0, 0, 0, 0); stay({})",
    "double fork, `env -i setsid`, into another cgroup (as root)": "twice(move)",
    "started by a daemon that was asked": "open(os.environ['ASKED'], 'w').write(mark)",
}
COMMAND_ITSELF, HOPPING = "prctl(1", "hop"
LIVES = "**lives**"
WAIT = """
def is_here():
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{name}/cmdline", "rb").read().startswith(mark.encode() + b"\\0"):
                return True
        except OSError:
            pass
deadline = time.monotonic() + 10
while "ASKED" not in os.environ and not (is_here() or os.path.exists("beat")) and time.monotonic() < deadline:
    time.sleep(0.005)
time.sleep(0.2)
open("there", "w").close()
if then == "rest":
    time.sleep(60)
"""

SECRET = bytes(32)  # of no study


def main() -> None:
    """The table, then the price."""
    fences = {kind: ways for kind, ways in FENCES.items() if kind == fence.TAGS_ONLY or is_allowed(kind, ways)}
    columns = [(kind, end) for kind in fences for end in ENDS]
    print("| what is left behind | " + " | ".join(f"{kind}: {end}" for kind, end in columns) + " |")
    print("|---|" + "---|" * len(columns))
    told: dict[tuple[str, str], list[str]] = {column: [] for column in columns}
    for name, way in WAYS.items():
        for kind, end in columns:
            is_void = way.startswith(COMMAND_ITSELF) and end == "normal end"  # it is what would have to end
            cells = [] if is_void else [tried(fences[kind], way, end) for _ in range(5 if HOPPING in way else 1)]
            told[kind, end].append(max(cells, key=lambda cell: (cell == LIVES, cell), default=""))  # the worst
        print(f"| {name} | " + " | ".join(cells[-1] for cells in told.values()) + " |", flush=True)
    tries = [[cell for cell in cells if cell] for cells in told.values()]
    counts = (f"{len(cells) - cells.count(LIVES)} of {len(cells)}" for cells in tries)
    print("| dead | " + " | ".join(counts) + " |")
    print_price(fences)


def is_allowed(kind: str, ways: str) -> bool:
    program = f"from trimtuner.engines.supervising import fence; fence.WAYS = {ways}; print(fence._try_out())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if done.stdout.strip() == kind:
        return True
    print(f"{kind}: not allowed here")
    return False


def tried(ways: str, way: str, end: str) -> str:
    """What is true of what the way leaves behind when the end is told."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        fenced_by(ways),
        asked_daemon(Path(name) / "asked") as asked,
    ):
        place, mark = Path(name), f"escape-{os.urandom(6).hex()}"
        words = (
            sys.executable,
            "-S",
            "-c",
            f"{HELPERS}{way}\n{WAIT}",
            mark,
            "leave" if end == "normal end" else "rest",
        )
        environment = {"ASKED": str(asked)} if "ASKED" in way else {}
        limit = LIMIT_SECONDS if end == "time-out" else 60.0
        launch = Launch("escapes", 1, 1, words, place / "study", place, environment, (), limit)
        engine = LocalEngine(SECRET)
        handle = engine.start(launch)
        is_ready = way.startswith(COMMAND_ITSELF)
        wait_for(lambda: (is_ready or (place / "there").exists()) and (HOPPING in way or living(mark)), engine, handle)
        if end == "supervisor killed":
            begun = files.folder_at(Path(handle), SECRET).get(files.BEGUN) or {}
            os.kill(int(str(begun["pid"])), signal.SIGKILL)
        begin = time.monotonic()
        wait_for(lambda: engine.poll(handle).end is not None, engine, handle)
        seconds = time.monotonic() - begin
        is_escaped = is_beating(place / "beat") if HOPPING in way else bool(living(mark))
        while living(mark):  # ours, by a name that nobody else has
            for process in living(mark):
                processes.send(process, signal.SIGKILL)
        return LIVES if is_escaped else "dead" if seconds < SOON_SECONDS else f"gone after {seconds:.0f} s"


def wait_for(is_true: Callable[[], object], engine: LocalEngine, handle: str) -> None:
    """Until it is true, or the attempt has ended before."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true() and engine.poll(handle).end is None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{handle} does not come to its end")
        time.sleep(0.005)


def is_beating(beat: Path) -> bool:
    """Whether that lives which writes the file: one that changes its number all the time can hardly be looked at."""
    beat.unlink(missing_ok=True)
    time.sleep(1.0)
    return beat.exists()


def living(mark: str) -> list[processes.Process]:
    return [one for one in processes.all_processes() if one.is_alive and first_word(one.pid) == mark.encode()]


def first_word(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return b""


@contextmanager
def fenced_by(ways: str) -> Iterator[None]:
    program = (
        "import sys; from pathlib import Path; from trimtuner.engines.supervising import fence, supervisor; "
        f"fence.WAYS = {ways}; supervisor.main(Path(sys.argv[1]), *map(int, sys.argv[2:]))"
    )
    with mock.patch.object(starting, "_program", return_value=[sys.executable, "-P", "-c", program]):
        yield


@contextmanager
def asked_daemon(asked: Path) -> Iterator[Path]:
    """Somebody outside of the trial who starts what a job asks for, as Docker, cron and systemd do."""
    os.mkfifo(asked)
    program = "import os, sys\nmark = open(sys.argv[1]).read()\nos.execve('/bin/sleep', [mark, '60'], {})"
    with subprocess.Popen([sys.executable, "-S", "-c", program, str(asked)], env={}, start_new_session=True) as daemon:
        try:
            yield asked
        finally:
            daemon.kill()


def print_price(fences: dict[str, str]) -> None:
    seconds: dict[str, list[float]] = {kind: [] for kind in fences}
    for _ in range(TIMED):
        for kind, ways in fences.items():
            seconds[kind].append(seconds_of_nothing(ways))
    print(
        "\n| fence | milliseconds of a trial that does nothing, median | quarter | three quarters |\n|---|---|---|---|"
    )
    for kind, found in seconds.items():
        low, middle, high = (1000 * one for one in statistics.quantiles(found, n=4))
        print(f"| {kind} | {middle:.0f} | {low:.0f} | {high:.0f} |")


def seconds_of_nothing(ways: str) -> float:
    with tempfile.TemporaryDirectory() as name, fenced_by(ways):
        engine, place = LocalEngine(SECRET), Path(name)
        begin = time.perf_counter()
        handle = engine.start(Launch("escapes", 1, 1, ("/bin/true",), place / "study", place, {}, (), 60.0))
        while engine.poll(handle).end is None:
            time.sleep(0.001)
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
