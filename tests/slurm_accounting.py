"""Accounting for a Slurm cluster of the tests' own: slurmdbd and MariaDB on the loopback of this machine."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from contextlib import AbstractContextManager

from slurm_cluster import PLACES, SlurmCluster, free_ports, running_cluster
from waiting import wait_until

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "sacct", "sacctmgr")
NOT_HERE = "there is no accounting here: it takes slurmdbd and mariadb-server of Debian"

_CONTROLLER = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounting}
AccountingStoragePass={folder}/munge/socket
AccountingStoreFlags=job_comment
"""
_ACCOUNTING = """\
AuthType=auth/munge
AuthInfo={folder}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={accounting}
SlurmUser={user}
LogFile={folder}/log/slurmdbd
PidFile={folder}/slurmdbd.daemon
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
_GRANTS = "CREATE USER slurm@'%' IDENTIFIED BY 'slurm'; GRANT ALL ON slurm.* TO slurm@'%';"


def is_installed() -> bool:
    """Whether all of its programs are here."""
    return all(shutil.which(name, path=PLACES) for name in PROGRAMS)


def cluster_with_accounting() -> AbstractContextManager[SlurmCluster]:
    """A new cluster whose jobs are kept in a database."""
    return running_cluster(_begin_accounting)


def _begin_accounting(cluster: SlurmCluster) -> None:
    database, accounting = free_ports(2)
    folder = cluster.folder
    values = {"accounting": accounting, "database": database, "folder": folder, "user": getpass.getuser()}
    lines = cluster.configuration.read_text().splitlines()
    others = [line for line in lines if not line.startswith("AccountingStorageType")]
    cluster.configuration.write_text("\n".join(others) + "\n" + _CONTROLLER.format(**values))
    (folder / "slurmdbd.conf").touch(mode=0o600)
    (folder / "slurmdbd.conf").write_text(_ACCOUNTING.format(**values))
    _start_database(cluster, database)
    cluster.start_daemon("slurmdbd", ["slurmdbd", "-D"])
    wait_until(lambda: _is_known(cluster))


def _is_known(cluster: SlurmCluster) -> bool:
    """Whether the database knows the cluster, which it is told of."""
    cluster.ask("sacctmgr", "--immediate", "add", "cluster", "test")
    return cluster.ask("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster").split() == ["test"]


def _start_database(cluster: SlurmCluster, port: int) -> None:
    place = cluster.folder / "database"
    own = [f"--user={getpass.getuser()}", f"--datadir={place}", f"--socket={cluster.folder}/database.socket"]
    install = [
        "mariadb-install-db",
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        *own,
    ]
    subprocess.run(install, check=True, capture_output=True)
    cluster.start_daemon("mariadbd", ["mariadbd", "--no-defaults", *own, "--bind-address=127.0.0.1", f"--port={port}"])
    asking = ["mariadb", "--no-defaults", "--user=root", f"--socket={cluster.folder}/database.socket", "--execute"]
    wait_until(lambda: cluster.ask(*asking, "SELECT 1"))
    cluster.ask(*asking, _GRANTS)
