"""The ``trimtuner`` of tests: hands a command to a process with the imports done (quick_commands.py)."""

import json
import os
import signal
import socket
import sys


def main(path: str, words: list[str]) -> int:
    """The exit code of the command."""
    request = json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        process = int.from_bytes(connection.recv(8), "big")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: os.kill(process, received))
        return int.from_bytes(connection.recv(8), "big")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
