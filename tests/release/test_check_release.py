"""The checks of a release can fail, and read what the wheel itself says."""

from __future__ import annotations

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import trimtuner
from tools.check_release import AUDITS, Check, Release, checks_of, outcome_of
from tools.release.bounds import Asked, lowest_pins
from tools.release.environments import Failed, find_python, run
from tools.release.newcomer import Stumble, walk

ROOT = Path(__file__).parents[2]
METADATA = """\
Metadata-Version: 2.4
Name: trimtuner
Version: 1.2.3
Requires-Dist: numpy>=1.26
Requires-Dist: typer<2,>=0.17.4
Requires-Dist: boto3>=1.34; extra == 'aws'
Provides-Extra: aws
Provides-Extra: dev

Text
"""


@pytest.fixture
def wheel(tmp_path) -> Path:
    path = tmp_path / "trimtuner-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trimtuner-1.2.3.dist-info/METADATA", METADATA)
    return path


def test_what_a_wheel_asks_for_is_read_from_the_wheel(wheel):
    asked = Asked.by(wheel)
    assert asked.version == "1.2.3"
    assert [one.name for one in asked.needed] == ["numpy", "typer"]
    assert asked.extras == ("aws", "dev")
    assert lowest_pins(asked.needed) == ["numpy==1.26", "typer==0.17.4"]


def test_a_dependency_without_a_lower_bound_is_refused():
    with pytest.raises(ValueError, match="scipy<2 has no lower bound"):
        lowest_pins((Requirement("scipy<2"),))


def test_every_dependency_of_the_project_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert lowest_pins(tuple(map(Requirement, project["dependencies"])))
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    assert all(lowest_pins((Requirement(one),)) for one in extras if not one.startswith("trimtuner["))


def test_every_upper_bound_says_which_break_it_is_for():
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    bounded = [one for one in lines if re.match(r' +"[a-z][^"]*(<|==)[^"]*",', one)]
    assert len(bounded) == 2
    assert [one for one in bounded if "  # " not in one] == []


def test_the_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/trimtuner/__init__.py"
    assert f"## {trimtuner.__version__} (" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.usefixtures("wheel")
def test_a_release_is_one_wheel_and_one_sdist(tmp_path):
    with pytest.raises(SystemExit, match="make dist"):
        Release.in_folder(tmp_path)
    (tmp_path / "trimtuner-1.2.3.tar.gz").touch()
    names = [check.name for check in checks_of(Release.in_folder(tmp_path), AUDITS["online"])]
    assert names == ["wheel-3.11", "wheel-3.12", "wheel-3.13", "sdist", "extras", "audit", "lowest"]


def test_a_python_that_is_not_here_is_a_failure_and_no_silence():
    assert outcome_of(Check("x", "2.99", lambda _python, _folder: "seen")) == (False, "there is no Python 2.99 here")


def test_the_python_that_is_found_is_of_that_version():
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = find_python(version)
    assert found is not None
    assert run([found, "--version"]).startswith(f"Python {version}.")


def test_a_command_that_fails_says_what_it_printed():
    with pytest.raises(Failed, match=r"left with 3\nsaid so"):
        run([sys.executable, "-c", "import sys; print('said so'); sys.exit(3)"])


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("exit 1", "left with 1"),
        ("echo trimtuner 1; echo DeprecationWarning: old >&2", "DeprecationWarning"),
        ("echo trimtuner 1", "there is no job.yaml"),  # init writes nothing
    ],
)
def test_a_newcomer_stumbles_where_the_path_ends(tmp_path, program, says):
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "bin/trimtuner").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "bin/trimtuner").chmod(0o755)
    with pytest.raises(Stumble, match=says):
        walk(tmp_path / "bin", tmp_path / "work")
