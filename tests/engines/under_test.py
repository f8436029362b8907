"""The engines that the conformance suite is run on, and how to make each one: also in another process.

An engine with a place of its own (a cluster, a cloud) has a module of its own, which is imported only when it is used.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet

from trimtuner.engines.local.engine import LocalEngine
from trimtuner.engines.protocol import EXIT, SIGNAL, End, Engine, Launch, Report
from trimtuner.engines.replay.engine import ReplayEngine
from trimtuner.engines.replay.script import Script

SECRET = bytes(range(32))  # of the study


@dataclass(frozen=True)
class UnderTest:
    """An engine: ``module:function`` makes it from the argument, which is JSON."""

    maker: str
    argument: str = "null"
    kept: tuple[Path, ...] = ()  # where it keeps files, besides the folder of the study
    clock_seconds: float = 0.0  # how far the time that it tells may be too long: a provider's clock is coarse

    def make(self) -> Engine:
        return make(self.maker, self.argument)


def make(maker: str, argument: str) -> Engine:
    module, _, function = maker.partition(":")
    engine: Engine = getattr(import_module(module), function)(json.loads(argument))
    return engine


Preparation: TypeAlias = Callable[[pytest.FixtureRequest, Path], UnderTest]


def local(_request: pytest.FixtureRequest, _path: Path) -> UnderTest:
    return UnderTest("under_test:make_local")


def make_local(_argument: None) -> LocalEngine:
    return LocalEngine(SECRET)


def ray(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    if find_spec("ray") is None:
        pytest.skip("ray is not installed; install trimtuner[ray]")
    prepared: UnderTest = import_module("ray_under_test").ray_engine(request, path)
    return prepared


def replay(_request: pytest.FixtureRequest, path: Path) -> UnderTest:
    return UnderTest("under_test:make_replay", json.dumps(str(path)))


def make_replay(path: str) -> ReplayEngine:
    return ReplayEngine(Path(path), SECRET, script_of)


def script_of(launch: Launch) -> Script:
    """What ``jobs/job.py`` does with these words, played."""
    deed, *words = launch.command[launch.command.index(sys.executable) + 3 :]
    return _DEEDS[deed](*words)


def _report(count: str, pause: str = "0") -> Script:
    length = 0.1 + int(count) * float(pause)
    steps = range(1, int(count) + 1)
    reports = (Report({"accuracy": n / 10, "fraction": n / int(count)}, 0.1 + (n - 1) * float(pause)) for n in steps)
    return Script(tuple(reports), End(None, "exit code 0", length))


def _leave(code: str) -> Script:
    return Script((), End(EXIT if int(code) else None, f"exit code {code}", 0.1))


def _die_by(number: str) -> Script:
    return Script((), End(SIGNAL, f"killed by signal {number}", 0.1))


def _rest() -> Script:
    return Script((), End(None, "", math.inf))


def _report_and_rest() -> Script:
    return Script((Report({"accuracy": 0.1}, 0.1),), End(None, "", math.inf))


_DEEDS: dict[str, Callable[..., Script]] = {
    "report": _report,
    "leave": _leave,
    "die_by": _die_by,
    "rest": _rest,
    "end_gently": _rest,
    "report_and_rest": _report_and_rest,
}


def aws(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    pytest.importorskip("asyncssh", reason="asyncssh is not installed; install trimtuner[aws]")
    found: UnderTest = import_module("aws_under_test").aws(request, path)
    return found


def slurm(request: pytest.FixtureRequest, path: Path) -> UnderTest:
    found: UnderTest = import_module("slurm_under_test").slurm(request, path)
    return found


RUNNING_COMMANDS: dict[str, Preparation] = {"local": local, "ray": ray, "aws": aws, "slurm": slurm}
ALL: dict[str, Preparation] = {**RUNNING_COMMANDS, "replay": replay}

# Their place is started once for each process that runs tests: all of them in one, then.
_IN_ONE_PROCESS = ("ray", "aws", "slurm")


def parameters(engines: Iterable[str], *more: pytest.MarkDecorator) -> list[ParameterSet]:
    """Their names, for a fixture; those that need a place of their own with these marks besides."""
    marks = {name: [pytest.mark.xdist_group(name), *more] for name in _IN_ONE_PROCESS}
    marks["slurm"].append(pytest.mark.slow)  # seconds for each job; what is Slurm's own is in ``test_slurm``
    return [pytest.param(name, marks=marks.get(name, [])) for name in engines]
