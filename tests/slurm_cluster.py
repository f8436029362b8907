"""A Slurm cluster of the tests' own: three nodes on the loopback of this machine, gone when the tests are."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trimtuner.engines.supervising import processes
from waiting import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
NOT_HERE = "there is no Slurm here: it takes slurmctld, slurmd, slurm-client and munge of Debian"
NODES = ("n1", "n2", "n3")
_UNPRIVILEGED, _PORTS = 1024, 65536

_NODE = "NODE_OF_TEST"  # inherited by what runs the steps of jobs there, and not by the jobs

_PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
# A daemon ends with the pipe to its shell, and so with the tests, however they end.
_UNTIL_LET_GO = '"$@" & daemon=$!; echo $daemon; read -r signal; kill -s "${signal:-KILL}" $daemon; wait $daemon'
# Without control groups, which are not to be had in every container, and with more CPUs than there need be.
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.daemon
SlurmdPidFile={folder}/%n.daemon
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
GresTypes=gpu
ReturnToService=2
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=2
SlurmdTimeout=5
SlurmctldTimeout=5
MessageTimeout=5
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=16 RealMemory=4000 Feature=small Gres=gpu:4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=16 RealMemory=4000 Feature=small,large
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={n3} CPUs=16 RealMemory=4000 Feature=small
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9
"""
# Slurm counts them by what it is told is their file, and never opens it.
_DEVICES = "".join(f"NodeName=n1 Name=gpu File=/dev/{name}\n" for name in ("full", "null", "random", "zero"))


def is_installed() -> bool:
    """Whether all of Slurm's programs are here."""
    return all(shutil.which(name, path=_PLACES) for name in PROGRAMS)


class SlurmCluster:
    """A controller and three nodes, each of which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
        for name in ("state", "log", "munge", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        (folder / "munge").chmod(0o711)
        key = folder / "munge" / "key-file"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        values = {
            name: str(port) for name, port in zip(("controller", *NODES), _free_ports(1 + len(NODES)), strict=True)
        }
        values |= {"host": socket.gethostname().partition(".")[0], "user": getpass.getuser(), "folder": str(folder)}
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(_CONFIGURATION.format(**values))
        (folder / "gres.conf").write_text(_DEVICES)

    @property
    def environment(self) -> dict[str, str]:
        """What Slurm's commands find the cluster by."""
        return {"SLURM_CONF": str(self.configuration)}

    def start(self, name: str) -> None:
        """Start a daemon: munged, slurmctld, or that of a node by the node's name."""
        munge = self.folder / "munge"
        files = [f"--{kind}={munge}/{kind}" for kind in ("key-file", "socket", "pid-file", "log-file", "seed-file")]
        words = {
            "munged": ["munged", "--foreground", "--force", *files],
            "slurmctld": ["slurmctld", "-D"],
            **{node: ["slurmd", "-D", "-N", node] for node in NODES},
        }[name]
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            process = subprocess.Popen(
                ["sh", "-c", _UNTIL_LET_GO, "sh", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment, "PATH": _PLACES, _NODE: f"{self.folder}/{name}"},
            )
        assert process.stdout is not None
        self._daemons[name] = process, int(process.stdout.readline())

    def pid(self, name: str) -> int:
        """Of a daemon."""
        return self._daemons[name][1]

    def kill(self, name: str) -> None:
        """End a daemon at once, as in a crash; what it started goes on."""
        process, _ = self._daemons.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def crash(self, node: str) -> None:
        """End a node's daemon and all that it runs, as when a machine is lost."""
        self.kill(node)
        steps = [
            pid for pid in _processes_named("slurmstepd: [") if f"{_NODE}={self.folder}/{node}" in _environment_of(pid)
        ]
        processes.kill([*processes.living_descendants(steps), *filter(None, map(processes.read_process, steps))])

    def ask(self, *words: str) -> str:
        """What one of Slurm's commands prints."""
        environment = {**os.environ, **self.environment, "PATH": _PLACES}
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def wait_until_idle(self) -> None:
        """All nodes answer, and have nothing to do."""
        wait_until(lambda: self.ask("sinfo", "-h", "-N", "-p", "main", "-o", "%T").split() == ["idle"] * len(NODES))

    def wait_until_saved(self) -> None:
        """What the controller knows is on its disk: it writes seconds later, and a crash until then forgets a start."""
        asked = time.time()
        self.ask("scancel", self.ask("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true").strip())
        wait_until(lambda: (self.folder / "state" / "job_state").stat().st_mtime > asked)

    def mend_all(self) -> None:
        """Start again whatever was ended."""
        for name in ("slurmctld", *NODES):
            if name not in self._daemons:
                self.start(name)

    def mend(self) -> None:
        """The same, and wait until all of it has nothing to do, also what the controller had set aside."""
        self.mend_all()
        if "drain" in self.ask("sinfo", "-h", "-N", "-o", "%T"):
            self.ask("scontrol", "update", f"NodeName={','.join(NODES)}", "State=RESUME")
        self.wait_until_idle()

    def end(self) -> None:
        """With all that runs there."""
        self.ask("scancel", "--me")
        deadline = time.monotonic() + 10
        while self.ask("squeue", "-h") and time.monotonic() < deadline:
            time.sleep(0.1)
        for name in list(self._daemons):
            self.kill(name)


@contextmanager
def running_cluster() -> Iterator[SlurmCluster]:
    """A new cluster, ended and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a short name, which sockets need
    folder.chmod(0o755)
    cluster = SlurmCluster(folder)
    try:
        cluster.start("munged")
        wait_until((folder / "munge" / "socket").exists)
        cluster.start("slurmctld")
        for node in NODES:
            cluster.start(node)
        cluster.wait_until_idle()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


def _processes_named(beginning: str) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "cmdline").read_bytes().startswith(beginning.encode()):
                found.append(int(place.name))
    return found


def _environment_of(pid: int) -> str:
    with suppress(OSError):
        return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
    return ""


def _free_ports(count: int) -> list[int]:
    """Of those that the kernel gives to nobody who does not name one: none is taken while its daemon is down."""
    given_out_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: set[int] = set()
    while len(found) < count:
        port = secrets.choice(range(_UNPRIVILEGED, given_out_from) or range(_UNPRIVILEGED, _PORTS))
        with suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)
