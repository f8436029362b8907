"""Places for engines that need one: started when a test first asks for it, and shared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from slurm_cluster import NOT_HERE, SlurmCluster, is_installed, running_cluster
from trimtuner.engines.ray.surroundings import prepare_to_start

if TYPE_CHECKING:
    from mock_cloud import MockCloud
    from ray_under_test import SmallCluster

prepare_to_start()  # before any test imports Ray, which then reads the environment


@pytest.fixture(scope="session")
def shared_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCloud]:
    """EC2 as moto plays it."""
    import botocore.session
    from mock_cloud import mock_cloud

    with pytest.MonkeyPatch.context() as patch, mock_cloud(tmp_path_factory.mktemp("cloud")) as cloud:
        # What boto3 knows of EC2 takes a fifth of a second to read: once, and not for every engine that a test makes.
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield cloud


@pytest.fixture
def cloud(shared_cloud: MockCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockCloud]:
    """The same, without what another test has spoilt; for this process and those that it starts."""
    from aws_under_test import ENVIRONMENT

    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": shared_cloud.address}.items():
        monkeypatch.setenv(name, value)
    shared_cloud.mend()
    yield shared_cloud
    shared_cloud.mend()


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[SmallCluster]:
    """Several Ray nodes on this machine."""
    from ray_under_test import small_cluster

    with small_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def shared_slurm() -> Iterator[SlurmCluster]:
    """Two Slurm nodes on this machine."""
    if not is_installed():
        pytest.skip(NOT_HERE)
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm_cluster(shared_slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    """The same, found by this process and those that it starts."""
    for name, value in shared_slurm.environment.items():
        monkeypatch.setenv(name, value)
    return shared_slurm
