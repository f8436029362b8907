"""Studies made of every two choices that can meet, each through every surface: where two things meet, they break.

``pytest "tests/journeys/test_every_journey.py::test_a_journey[0-17]"`` repeats one; a failure prints what was chosen.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from journeys.choices import CHOICES, Journey, covering, is_allowed, pairs_in
from postgres_server import PASSWORD
from written_jobs import quick_program

pytest.register_assert_rewrite("journeys.walking")
from journeys.walking import EveryForm, Turn, walk  # noqa: E402

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the local engine is for Linux")

FEW, ALL = 14, 160  # rows in every run of the tests, and more than there are of one seed
SEEDS = (0, 1, 2)  # of the soak


@cache
def rows(seed: int) -> list[Journey]:
    return list(covering(seed))


def walked(
    journey: Journey,
    folder: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    asked: Turn | EveryForm = EveryForm(),  # noqa: B008  (it never changes)
) -> None:
    print(journey)
    storages: list[str | None] = [None, None]
    if journey["store"] == "postgres":
        server = request.getfixturevalue("postgres_server")
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        storages = [server.address(server.new_database(), password=None) for _ in storages]
    walk(folder, journey, *storages, Path(quick_program()), asked)


@pytest.mark.parametrize("number", range(FEW))
def test_a_short_journey(number, tmp_path, request, monkeypatch):
    walked(next(islice(covering(SEEDS[0]), number, None)), tmp_path, request, monkeypatch, Turn(number))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "number"), [(seed, number) for seed in SEEDS for number in range(ALL)])
def test_a_journey(seed, number, tmp_path, request, monkeypatch):
    if number >= len(rows(seed)):
        pytest.skip(f"the array of seed {seed} has {len(rows(seed))} rows")
    walked(rows(seed)[number], tmp_path, request, monkeypatch)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")  # a cluster of its own each: two at once would be too much
@pytest.mark.parametrize("number", range(FEW))
def test_a_journey_on_ray(number, tmp_path, request, monkeypatch):
    pytest.importorskip("ray")
    here = (row for row in covering(SEEDS[0]) if row["engine"] == "local")
    walked({**next(islice(here, number, None)), "engine": "ray"}, tmp_path, request, monkeypatch)


def test_the_rows_of_every_run_hold_every_choice():
    short = list(islice(covering(SEEDS[0]), FEW))
    assert all(is_allowed(row) for row in short)
    assert {(name, value) for row in short for name, value in row.items()} == {
        (name, value) for name, values in CHOICES.items() for value in values
    }


@pytest.mark.slow
def test_every_two_choices_that_can_meet_do_meet():
    for seed in SEEDS:
        assert len(rows(seed)) <= ALL
        met = set().union(*map(pairs_in, rows(seed)))
        others = set().union(*map(pairs_in, rows(seed + 100)))
        assert met == others  # whatever the order in which they were met
