"""What the tests of engines run as commands: one deed per word. Only light imports, since it is started often."""

import json
import os
import signal
import sys
import time

NOTES = os.environ.get("NOTES", "notes")


def note(text: str) -> None:
    """For the test to see, in the working directory or elsewhere; whole lines, whoever writes at the same time."""
    descriptor = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def rest() -> None:
    note(f"pid {os.getpid()}")
    time.sleep(300)


def report(count: str, pause: str = "0") -> None:
    for step in range(1, int(count) + 1):
        print("::metric " + json.dumps({"accuracy": step / 10, "fraction": step / int(count)}), flush=True)
        time.sleep(float(pause))


def report_when_told(count: str) -> None:
    """A report for every line that the test notes."""
    for step in range(1, int(count) + 1):
        await_notes(step)
        print("::metric " + json.dumps({"accuracy": step / 10}), flush=True)


def report_and_rest() -> None:
    report("1")
    rest()


def leave(code: str) -> None:
    note("run")
    sys.exit(int(code))


def stop_watchers(*verbs: str) -> None:
    """Those of our own attempt that have one of these words and its folder among theirs are stopped; we do not end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = os.environ["TRIMTUNER_FOLDER"].encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        if folder in words and any(verb.encode() in words for verb in verbs):
            os.kill(int(name), signal.SIGSTOP)
    note(f"pid {os.getpid()}")
    time.sleep(600)


def die_by(number: str) -> None:
    os.kill(os.getpid(), int(number))
    time.sleep(300)


def refuse_to_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rest()


def end_gently() -> None:
    signal.signal(signal.SIGTERM, lambda *_: (note("farewell"), print("farewell", flush=True), sys.exit(0)))
    rest()


def eat(mebibytes: str) -> None:
    eaten = []
    for _ in range(int(mebibytes)):
        eaten.append(b"x" * 2**20)
    note("full")
    time.sleep(300)


def share(mebibytes: str, children: str) -> None:
    """Children that read what their parent holds, and hold nothing of their own."""
    held = b"x" * (int(mebibytes) * 2**20)
    for _ in range(int(children)):
        if os.fork() == 0:
            held.count(b"y")
            time.sleep(0.7)
            os._exit(0)
    for _ in range(int(children)):
        os.wait()


def found_family(then: str) -> None:
    """A child, a child with its own session, and a daemon whose parents are gone; none of them ends when asked."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        rest()
    if os.fork() == 0:
        os.setsid()
        rest()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            rest()
        os._exit(0)
    rest() if then == "rest" else await_notes(3)


def escape(mark: str, then: str) -> None:
    """A grandchild with a session and an environment of its own, whose parents are gone; known by its words alone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", [mark, "300"], {})  # noqa: S606
        os._exit(0)
    os.wait()
    while [mark.encode(), b"300", b""] not in command_lines():
        time.sleep(0.005)
    rest() if then == "rest" else leave("0")


def hop() -> None:
    """A process that is another one every millisecond: whoever looks for it finds that it has just left."""
    if os.fork() == 0:
        os.setsid()
        for step in range(3000):
            note(f"hop {step}")
            time.sleep(0.001)
            if os.fork():
                os._exit(0)
        os._exit(0)
    await_notes(20)


def command_lines() -> list[list[bytes]]:
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                lines.append(file.read().split(b"\0"))
        except OSError:
            pass
    return lines


def leave_orphan() -> None:
    """A grandchild that nobody of the family collects when it ends."""
    if os.fork() == 0:
        if os.fork() == 0:
            note(f"pid {os.getpid()}")
            os._exit(0)
        os._exit(0)
    os.wait()
    await_notes(1)
    rest()


def await_notes(count: int) -> None:
    while not os.path.exists(NOTES) or count_notes() < count:
        time.sleep(0.005)


def count_notes() -> int:
    with open(NOTES) as file:
        return len(file.readlines())


def print_environment() -> None:
    note(json.dumps({**os.environ}))
    print(dict(os.environ))
    print("::metric", os.environ.get("WANDB_API_KEY"))
    sys.stderr.write(os.environ.get("WANDB_API_KEY", ""))
    escaped = "".join(f"\\u{ord(character):04x}" for character in os.environ.get("WANDB_API_KEY", ""))
    print(f'\n::metric {{"of-{escaped}": 1}}')


def print_environment_and_rest() -> None:
    print_environment()
    rest()


def shout(mebibytes: str) -> None:
    print("first words")
    for _ in range(int(mebibytes) * 1024):
        print("x" * 1023)
    print("last words")


def be_hostile() -> None:
    out = sys.stdout.buffer
    for line in (
        bytes(range(256)),
        b"::metric " + b"x" * 200_000,
        b"y" * 200_000,
        b'::metric {"accuracy": NaN}',
        b'::metric {"accuracy": Infinity}',
        b'::metric {"accuracy": 1e999}',
        b'::metric {"accuracy": true}',
        b'::metric {"accuracy": {"nested": 1}}',
        b'::metric {"accuracy": "../../etc/passwd"}',
        b"::metric " + b"[" * 60_000,
        b"::metric \xff\xfe\x1b[31m",
        b"::metric",
        b"::metric __import__('os').abort()",
        b'text before ::metric {"accuracy": 0.1}',
    ):
        out.write(line + b"\n")
    sys.stderr.write("progress without an end of line")
    sys.stderr.flush()
    out.write(b'::metric {"accuracy": 0.5}\n')
    out.flush()


def never_end_the_line() -> None:
    while True:
        sys.stdout.buffer.write(b"\xf0" * 2**16)


def write_metrics_file() -> None:
    with open("metrics.jsonl", "a") as file:
        for step in (1, 2):
            print(json.dumps({"accuracy": step / 10}), file=file, flush=True)
            time.sleep(0.05)
        file.write('{"accuracy": 0.3}')


def by_rank(*deeds: str) -> None:
    """On each node a deed of its own; the last also on those that have none."""
    deed, *words = deeds[min(int(os.environ["RANK"]), len(deeds) - 1)].split()
    globals()[deed](*words)


def print_and_rest(text: str) -> None:
    print(f'{text}\n::metric {{"accuracy": 0.9}}\n{os.environ.get("WANDB_API_KEY", "")}', flush=True)
    rest()


def tell_node(*placeholders: str) -> None:
    """Who it is, by the environment and by placeholders."""
    names = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TF_CONFIG")
    told = {name: os.environ.get(name) for name in (*names, *(name for name in os.environ if "TRIMTUNER" in name))}
    note(json.dumps({**told, "placeholders": placeholders}))


def meet(*placeholders: str) -> None:
    """The head is called by all others, and reports how many they were."""
    import socket

    tell_node(*placeholders)
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    count = int(os.environ["WORLD_SIZE"])
    if os.environ["RANK"] == "0":
        with socket.create_server(place) as server:
            called = {server.accept()[0].recv(1) for _ in range(count - 1)}
        print("::metric " + json.dumps({"accuracy": len(called)}), flush=True)
        return
    while True:
        try:
            with socket.create_connection(place) as line:
                line.sendall(os.environ["RANK"].encode())
            return
        except ConnectionRefusedError:
            time.sleep(0.01)


def keep_much(folder: str, mebibytes: str) -> None:
    """Keep so much in the folder that survives, and little when told; what does not pack smaller."""
    file = os.path.join(folder, "much")
    if os.path.exists(file):
        note(f"much was there: {os.path.getsize(file)}")
        time.sleep(300)
    with open(f"{file}.new", "wb") as kept:
        kept.write(os.urandom(int(mebibytes) << 20))
    os.replace(f"{file}.new", file)
    await_notes(1)
    os.rename(file, os.path.join(os.path.dirname(folder), "elsewhere"))
    with open(os.path.join(folder, "little"), "w") as kept:
        kept.write("little")
    time.sleep(300)


def note_devices() -> None:
    """What GPUs this node sees; the head waits for the others, with which all would end."""
    note(f"{os.environ['TRIMTUNER_RANK']} {os.environ['CUDA_VISIBLE_DEVICES']}")
    if os.environ["TRIMTUNER_RANK"] == "0":
        await_notes(int(os.environ["WORLD_SIZE"]))


def keep_link(folder: str) -> None:
    os.symlink("/etc", os.path.join(folder, "away"))
    time.sleep(300)


def go_on(folder: str) -> None:
    """Report how often it was begun, as the folder that survives tells; only a third time is it through."""
    file = os.path.join(folder, "begun")
    count = 1
    if os.path.exists(file):
        with open(file) as kept:
            count = int(kept.read()) + 1
    with open(f"{file}.new", "w") as kept:
        kept.write(str(count))
    os.replace(f"{file}.new", file)
    note(f"begun {count} {os.environ['TRIMTUNER_CHECKPOINT'] == folder}")
    print("::metric " + json.dumps({"accuracy": count}), flush=True)
    if count < 3:
        time.sleep(300)


def note_cores() -> None:
    note(f"cores {os.environ['RANK']} {','.join(map(str, sorted(os.sched_getaffinity(0))))}")
    time.sleep(300)


def leave_after(count: str, code: str) -> None:
    """End when so many have noted something."""
    await_notes(int(count))
    sys.exit(int(code))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
