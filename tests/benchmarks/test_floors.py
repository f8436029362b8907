"""The floors: a model of time that knows, and what searches come to that recommend what they have tested."""

import numpy as np
import pytest

from benchmarks import floors
from trimtuner.decisions.belief import Places
from trimtuner.engines.table import Table


def test_known_times_are_those_of_the_table():
    measured = Table.find("linear")
    pool = measured.space.pool()
    places = Places.product(pool, measured.space.fractions).at(np.array([0, 77, 150, 500]))
    known = floors.KnownTimes.of(measured).predict(places.rows)
    cells = [
        measured.cell(pool.configuration(int(position)), float(fraction))
        for position, fraction in zip(places.positions, places.fractions, strict=True)
    ]
    np.testing.assert_allclose(np.exp(known.mean), [cell.metrics["time"] for cell in cells])
    assert (known.variance < 1e-9).all()


def test_a_search_that_knows_the_time_says_how_good_it_was_and_how_good_it_could_have_been(monkeypatch):
    monkeypatch.setattr(floors, "TRIALS", 8)
    found = floors.run_search(floors.Search("linear", floors.TIME_KNOWN, 1))
    assert len(found["spent"]) == len(found["recommended"]) == len(found["tested"])
    assert found["spent"] == sorted(found["spent"])
    assert found["tested"] == sorted(found["tested"])
    assert len(found["spent"]) == 8


FOUND = {"spent": [1.0, 2.0, 3.0, 25.0], "recommended": [0.99, 0.5, 0.96, 0.96], "tested": [0.99, 0.99, 0.99, 1.0]}


@pytest.mark.parametrize(
    ("column", "level", "expected"),
    [("recommended", 0.95, 3.0), ("recommended", 0.99, 20.0), ("tested", 0.99, 1.0), ("tested", 1.0, 20.0)],
)
def test_money_counts_until_it_is_good_for_good(column, level, expected):
    assert floors.settled(FOUND, column, level) == expected


def test_the_report_holds_what_would_be_saved_against_what_it_is():
    half = FOUND | {"recommended": [0.0, 0.0, 0.99, 0.99], "spent": [0.5, 1.0, 1.5, 9.0]}
    searches = [
        (floors.Search("linear", floors.AS_IT_IS, 7), FOUND),
        (floors.Search("linear", floors.TIME_KNOWN, 7), half),
    ]
    page = "\n".join(floors.report(searches, range(7, 8)))
    assert "| all | 1 | 95% | 3.0 | 1 (x 0.33) | 1.5 (x 0.50) |" in page
    assert "| all | 1 | 99% | 20 | 1 (x 0.050) | 1.5 (x 0.075) |" in page
