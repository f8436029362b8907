"""A PostgreSQL server of the tests' own: on the loopback and on a socket, with passwords, gone when they are."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from waiting import PATIENCE_SECONDS

NOT_HERE = "there is no PostgreSQL server here: neither initdb and postgres on the PATH nor /usr/lib/postgresql/*/bin"
USER, PASSWORD = "tuner", "s3cret@:/%pass"  # with what an address must escape

_ADMINISTRATOR = "postgres"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # the tests may be quick: no power fails under them
    "full_page_writes": "off",
    "synchronous_commit": "off",  # as a careless administrator may have it; writers ask for more themselves
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "120",
}
# The server ends with the pipe to its shell, and so with the tests, however they end.
_UNTIL_LET_GO = '"$@" & server=$!; read -r signal; kill -s "${signal:-QUIT}" $server; wait $server'


def find_binaries() -> Path | None:
    """The folder of the newest server that is installed."""
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path and shutil.which("initdb") else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: float(one.parent.name), reverse=True)
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


class PostgresServer:
    """A server in a folder, that can be stopped and started again."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self._folder = binaries, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self.port = _free_port()

    def address(self, database: str, user: str = USER, password: str | None = PASSWORD) -> str:
        """On the loopback."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def socket_address(self, database: str) -> str:
        """On the socket."""
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@/{database}?host={self._folder}&port={self.port}"

    def new_database(self) -> str:
        """The name of a fresh database that belongs to the user."""
        self._count += 1
        name = f"studies_{self._count}"
        self.execute(f"CREATE DATABASE {name} OWNER {USER}")
        return name

    def execute(self, statement: str, database: str = _ADMINISTRATOR) -> list[tuple[object, ...]]:
        """As the administrator."""
        import psycopg

        with psycopg.connect(self.address(database, _ADMINISTRATOR), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def initialise(self) -> None:
        """Its files, an administrator and a user."""
        secret = self._folder / "secret"
        secret.write_text(PASSWORD)
        options = ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--no-locale", "--encoding=UTF8"]
        done = subprocess.run(
            [self._binaries / "initdb", "-D", self._folder / "data", "-U", _ADMINISTRATOR, *options],
            capture_output=True,
            text=True,
            **self._as_ordinary_user(),
        )
        assert done.returncode == 0, done.stderr
        self.start()
        self.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        """Returns when it answers."""
        settings = {**_SETTINGS, "unix_socket_directories": str(self._folder), "port": str(self.port)}
        words = [self._binaries / "postgres", "-D", self._folder / "data"]
        words += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_LET_GO, "sh", *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as_ordinary_user(),
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, self.log()  # noqa: PT018
            time.sleep(0.05)

    def stop(self, signal: str = "INT") -> None:
        """INT ends connections and then itself in good order, QUIT at once as in a crash."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(f"{signal}\n".encode())
            self._process.stdin.close()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def log(self) -> str:
        """What the server said."""
        return (self._folder / "log").read_text(errors="replace")

    def _answers(self) -> bool:
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _as_ordinary_user(self) -> dict[str, object]:
        """PostgreSQL refuses to run as root."""
        options: dict[str, object] = {"cwd": self._folder}
        if os.geteuid() == 0:
            user = _ordinary_user()
            options.update(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        return options


@contextmanager
def running_server(binaries: Path) -> Iterator[PostgresServer]:
    """A new server, ended and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # a short name, which sockets need, that others may enter
    if os.geteuid() == 0:
        os.chown(folder, _ordinary_user().pw_uid, _ordinary_user().pw_gid)
    server = PostgresServer(binaries, folder)
    try:
        server.initialise()
        yield server
    finally:
        server.stop("QUIT")
        shutil.rmtree(folder, ignore_errors=True)


def _ordinary_user() -> pwd.struct_passwd:
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
