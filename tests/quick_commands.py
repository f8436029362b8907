"""``trimtuner`` without its second of imports: a process that has done them forks for every command.

The command is a real one: a process of its own, with the arguments, folder, environment and files of the shell that
calls it, that ends as it would. Only its imports were done before. The program ``trimtuner`` that the shell finds is
``quick_client.py``, which hands these over, passes signals on and waits. ``python-prepared`` runs a script so, and a
process that such a command starts by ``multiprocessing``.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.spawn import set_executable
from pathlib import Path
from runpy import run_path

SCRIPTS = "python-prepared"  # the program that runs a script
_FILES_AT_MOST, _ASIDE = 32, 200
_PREPARED = (
    "trimtuner.cli",
    "trimtuner.jobs.validation",
    "trimtuner.study.explaining",
    "trimtuner.commands.report",
    "trimtuner.commands.running",
    "trimtuner.commands.dashboard.app",
    "trimtuner.commands.transfer",
    "trimtuner.engines.local.engine",
    "uvicorn",
    "scipy.optimize",
    "scipy.spatial.distance",
    "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.postgresql.psycopg",
    "encodings.ascii",
    "encodings.utf_8_sig",
)


@contextmanager
def quick_commands(server_program: Path = Path(__file__)) -> Iterator[Path]:
    """A folder for the PATH, with a ``trimtuner`` that begins at once, and the socket by which it is asked for."""
    with tempfile.TemporaryDirectory(prefix="quick-") as name:
        folder = Path(name)
        socket_path = folder / "socket"
        _write_program(folder / "trimtuner", f'"{socket_path}" trimtuner')
        _write_program(folder / SCRIPTS, f'"{socket_path}"')
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        server = subprocess.Popen(
            [sys.executable, str(server_program), str(socket_path)],
            env=environment,
            stdin=subprocess.PIPE,  # its end is the server's
            stdout=subprocess.PIPE,
        )
        with server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield folder
            assert server.stdin is not None
            server.stdin.close()


def _write_program(path: Path, first_words: str) -> None:
    client = Path(__file__).with_name("quick_client.py")
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{client}" {first_words} "$@"\n')
    path.chmod(0o755)


def serve(path: str) -> None:
    """Wait for commands; returns in a process of its own for each, which is all set up to run it."""
    for name in _PREPARED:
        with suppress(ModuleNotFoundError):  # an extra
            import_module(name)
    _try_out()
    gc.collect()
    gc.freeze()  # or every command would copy all of this when it first looks for garbage
    gc.set_threshold(20_000, 20, 20)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            _let_go_of_ended()
            if listener not in ready:
                os._exit(0)
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    _become(connection)
    set_executable(str(Path(path).with_name(SCRIPTS)))


def _try_out() -> None:
    """A first command: there is more that the library of the command line imports when it is first used."""
    from trimtuner.cli import app_of
    from trimtuner.errors import TrimTunerError

    with suppress(TrimTunerError):
        app_of("validate")(["validate", "no-such-job.yaml"])


def _let_go_of_ended() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(connection: socket.socket) -> None:
    """Be the command that is asked for, in a child, and wait for it to tell how it ended."""
    header, files, _, _ = socket.recv_fds(connection, 8, _FILES_AT_MOST)
    request = json.loads(_received(connection, int.from_bytes(header, "big")))
    child = os.fork()
    if child != 0:
        connection.sendall(child.to_bytes(8, "big"))
        _, status = os.waitpid(child, 0)
        with suppress(BrokenPipeError):  # who asked for it was killed meanwhile
            connection.sendall((os.waitstatus_to_exitcode(status) % 256).to_bytes(8, "big"))
        os._exit(0)
    connection.close()
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ASIDE) for file in files]  # where none is in another's place
    for file in files:
        os.close(file)
    for number, file in zip(request["files"], aside, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = request["words"]


def _received(connection: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        parts += connection.recv(size - len(parts))
    return parts


if __name__ == "__main__":
    serve(sys.argv[1])
    if sys.argv[0] == "trimtuner":
        from trimtuner.cli import main

        main()
    elif sys.argv[0] == "-c":
        code = sys.argv.pop(1)
        exec(code)  # noqa: S102
    else:
        run_path(sys.argv[0], run_name="__main__")
