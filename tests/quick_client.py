"""The ``trimtuner`` of tests: hands a command to a process with the imports done (quick_commands.py)."""

import json
import os
import signal
import socket
import sys


def main(path: str, words: list[str]) -> int:
    """The exit code of the command."""
    files = open_files()
    asked = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ), "files": files}
    request = json.dumps(asked).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], files)
        connection.sendall(request)
        process = int.from_bytes(connection.recv(8), "big")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: os.kill(process, received))
        return int.from_bytes(connection.recv(8), "big")


def open_files() -> list[int]:
    """The numbers of all that it was handed."""
    numbers = sorted(map(int, os.listdir("/proc/self/fd")))
    return [number for number in numbers if os.path.exists(f"/proc/self/fd/{number}")]  # not that of the listing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
