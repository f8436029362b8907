"""The comparison with other tools: what of it runs without their packages."""

import json
import re

import numpy as np
import pytest

from benchmarks.kept import Kept, unit_of
from benchmarks.papers.searches import Trace
from benchmarks.peers.__main__ import HARDER, complete, has_form, main
from benchmarks.peers.control import SCREENED, RandomSmall
from benchmarks.peers.entrants import ENTRANTS, entrant_named
from benchmarks.peers.groups import Group
from benchmarks.peers.job import Job, Names, Numbers, Outcome
from benchmarks.peers.peer import Record
from benchmarks.peers.ratios import each_tool, harder_forms, ratios, standing
from benchmarks.peers.report import Finds, write_report
from benchmarks.peers.search import BUDGET_UNITS, MOST_REPEATS, search
from benchmarks.peers.store import Finished, Search, read_finished, run_one
from benchmarks.variants import make_variant
from trimtuner.engines.table import Table
from trimtuner.study.replay import replay

DESCRIPTION = {
    "configuration": {"lr": "lr", "kind": "kind", "same": "same"},
    "fraction": {"column": "s"},
    "metrics": {"accuracy": "acc", "time": "sec"},
    "price_per_hour": {"column": "usd"},
    "problem": {"maximize": "accuracy", "constraints": ["cost <= 1.5"]},
    "failed": "failed",
}
FULL_COST = {("0.001", "a"): 1.0, ("0.01", "a"): 1.0, ("1", "a"): 2.0, ("1", "b"): 1.0}
ACCURACY = {("0.001", "a"): 0.5, ("0.01", "a"): 0.8, ("1", "a"): 0.9, ("1", "b"): 0.7}


@pytest.fixture(scope="module")
def table():
    """Four configurations (a hole at 0.01 and 0.001 with b), two fractions, cost in proportion to the data."""
    rows = [
        {"lr": lr, "kind": kind, "same": "7", "s": str(s), "acc": str(accuracy * s**0.1), "failed": "",
         "sec": str(3600 * FULL_COST[lr, kind] * s), "usd": "1"}
        for (lr, kind), accuracy in ACCURACY.items()
        for s in (0.1, 1.0)
    ]  # fmt: skip
    return Table.read("four", rows, DESCRIPTION)


@pytest.fixture
def job(table):
    return Job(table)


class Scripted:
    """Asks for what it is given, over and over at the end."""

    def __init__(self, proposals):
        self._proposals = iter(proposals)
        self._last = None
        self.told, self.learnt = [], []

    def __call__(self, job, record, seed):  # noqa: ARG002
        self._record = record
        return self

    def ask(self):
        self._last = next(self._proposals, self._last)
        return self._last

    def tell(self, outcome):
        self.told.append((outcome.position, outcome.fraction))

    def learn(self, outcome):
        self.learnt.append((outcome.position, outcome.fraction))

    def recommend(self):
        return self._record.best_at_any_fraction()


def outcome(job, position, fraction):
    return job.measure((position, fraction))


def test_parameters_have_types_and_constants_are_none(job):
    rate, kind = job.parameters
    assert isinstance(rate, Numbers)
    assert rate.places == pytest.approx((0.0, 1 / 3, 1.0))
    assert kind == Names("kind", ("a", "b"))


def test_a_wish_goes_to_the_nearest_configuration_of_the_same_name(job):
    assert job.nearest({"lr": 0.3, "kind": "a"}) == 1
    assert job.nearest({"lr": 0.0, "kind": "b"}) == 3
    for position in range(job.count):
        assert job.nearest(job.wish_for(position)) == position


def test_fractions_are_near_in_logs(job):
    assert job.nearest_fraction(1 / 3) == 1.0
    assert job.nearest_fraction(0.3) == 0.1


def test_accuracy_c_scales_by_the_limit_and_a_failure_is_worth_nothing(job):
    assert job.accuracy_c(outcome(job, 2, 1.0)) == pytest.approx(0.9 * 1.5 / 2.0)
    assert job.accuracy_c(outcome(job, 0, 1.0)) == pytest.approx(0.5)
    assert job.accuracy_c(Outcome(0, 1.0, None, {"time": 1.0, "cost": 1.0}, 1.0)) == 0.0


def test_a_cost_on_a_share_of_the_data_is_scaled_up(job):
    seen = outcome(job, 2, 0.1)
    assert job.is_feasible(seen)
    assert not job.is_feasible(job.extrapolated(seen))
    assert job.is_feasible(job.extrapolated(seen, exponent=0.1))


def test_a_measured_feasible_one_is_recommended_before_a_hopeful_one(job):
    record = Record(job)
    assert record.best_at_any_fraction() is None
    record.add(outcome(job, 2, 1.0))  # over the limit
    record.add(outcome(job, 1, 0.1))
    assert record.best_at_full_data() == 2
    assert record.best_at_any_fraction() == 1
    record.add(outcome(job, 3, 1.0))
    assert record.best_at_full_data() == record.best_at_any_fraction() == 3


def test_growth_of_cost_is_learnt_from_pairs(job):
    record = Record(job)
    assert record.cost_exponent() == 1.0
    record.add(Outcome(0, 0.1, 0.5, {}, 1.0))
    record.add(Outcome(0, 1.0, 0.5, {}, 100.0))
    assert record.cost_exponent() == pytest.approx(2.0)


def test_a_repeat_costs_nothing_and_too_many_end_in_something_new(table):
    peer = Scripted([(0, 0.1), (0, 0.1), (1, 1.0)])
    run = search(make_variant("plain", table, 0), peer, seed=0)
    assert [moment.fraction for moment in run.moments] == [0.1, 1.0, 1.0, 1.0, 1.0]
    assert run.moments[0].spent == pytest.approx(0.1)
    assert run.moments[-1].spent == pytest.approx(0.1 + 1.0 + 1.0 + 1.2 * 1.5 + 1.0)  # 2 USD are well over 1.5
    assert sorted(position for position, _ in peer.learnt) == [0, 2, 3]
    assert peer.told.count((1, 1.0)) == 1 + 4 * MOST_REPEATS
    assert run.moments[-1].quality == 1.0


def test_a_search_ends_with_the_trial_that_passes_the_budget(table, monkeypatch):
    monkeypatch.setattr("benchmarks.peers.search.BUDGET_UNITS", 1.0)
    variant = make_variant("plain", table, 0)
    run = search(variant, Scripted([(0, 1.0), (1, 1.0), (3, 1.0)]), seed=0)
    assert unit_of(table) == 1.25
    assert [moment.spent for moment in run.moments] == [1.0, 2.0]


def test_the_control_screens_then_verifies():
    variant = make_variant("plain", Table.find("digits"), 0)
    run = search(variant, RandomSmall, seed=1, trials=SCREENED + 3)
    fractions = [moment.fraction for moment in run.moments]
    assert set(fractions[:SCREENED]) == {variant.measured.space.fractions[0]}
    assert set(fractions[SCREENED:]) == {1.0}
    again = search(variant, RandomSmall, seed=1, trials=SCREENED + 3)
    assert [moment.config for moment in again.moments] == [moment.config for moment in run.moments]


def made_up(peer, seed, qualities, table="made-up"):
    places = range(1, len(qualities) + 1)
    trace = Trace(
        spent=tuple(float(place) for place in places),
        seconds=tuple(float(place) for place in places),
        ask_seconds=(0.1,) * len(qualities),
        quality=tuple(qualities),
        feasible=(True,) * len(qualities),
        fraction=(1.0,) * len(qualities),
    )
    return Finished(Search(table, "plain", peer, seed, 100, "digest", f"{peer} 1.0"), trace)


def test_settling_is_for_good_and_never_counts_as_the_budget():
    group = Group(
        entrant_named("dehb"),
        [made_up("dehb", 0, [0.5, 0.99, 0.8, 0.96, 0.99]), made_up("dehb", 1, [0.92, 0.93])],
    )
    assert group.settled(0.90) == [4.0, 1.0]
    assert group.mean(0.90) == 2.5
    assert group.count(0.95) == 1
    assert group.mean(0.99) == (5.0 + BUDGET_UNITS) / 2


def test_a_report_comes_from_the_file_alone(tmp_path):
    kept = Kept(tmp_path / "peers.jsonl")
    stale = made_up("optuna-tpe", 0, [0.1])
    other_seed = made_up("smac-mf", 20, [0.99])
    for one in (stale, made_up("optuna-tpe", 0, [0.5, 0.991]), made_up("trimtuner", 0, [0.995]), other_seed):
        kept.add(one.search, one.trace.as_plain())
    with (tmp_path / "peers.jsonl").open("a") as file:
        file.write('{"key": {"table"')
    arguments = ["--report-only", "--first-seed", "0", "--cache", str(tmp_path / "peers.jsonl"), "--out", str(tmp_path)]
    main(arguments)
    text = (tmp_path / "peers.md").read_text(encoding="utf-8")
    rows = {row.split("|")[1].strip(): row for row in text.splitlines() if row.startswith("| ") and " (1) " in row}
    assert "**1** (1)" in rows["trimtuner (default)"]
    assert "| 2 (1) |" in rows["Optuna TPE with constraints at full data"]
    assert "five random trials first" in " ".join(text.split())
    assert "SMAC3" not in text
    plot = tmp_path / re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)[0]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_of_two_lines_for_one_search_the_later_counts_whatever_its_version(tmp_path):
    path = tmp_path / "peers.jsonl"
    lines = []
    for version, quality in (("1", 0.2), ("2", 0.3)):
        one = made_up("dehb", 0, [quality])
        lines.append(json.dumps({"key": {**one.search.identity(), "version": version}, "result": one.trace.as_plain()}))
    path.write_text("\n".join(lines))
    assert [one.trace.quality for one in read_finished(path)] == [(0.3,)]


def test_an_empty_report_is_no_error(tmp_path):
    assert write_report(Finds([], [], []), tmp_path).exists()


def test_public_jobs_are_held_against_the_best_and_not_looked_at_one_by_one(tmp_path):
    kept = Kept(tmp_path / "peers.jsonl")
    for peer in (one.name for one in ENTRANTS if not one.is_slow):
        for table in ("cnn", "rpart24"):
            kept.add(Search(table, "plain", peer, 0, 100, "", ""), made_up(peer, 0, [0.5, 0.99]).trace.as_plain())
    main(["--report-only", "--first-seed", "0", "--cache", str(tmp_path / "peers.jsonl"), "--out", str(tmp_path)])
    text = (tmp_path / "peers.md").read_text()
    assert "14 searches" in text
    assert "| rpart24 | decision trees on public tasks" in text
    assert "## cnn" in text
    assert "## rpart24" not in text


def test_every_entrant_says_what_was_chosen_for_it():
    for entrant in ENTRANTS:
        assert f"`{entrant.name}`" in entrant.choices()


def test_our_version_changes_with_our_code():
    assert re.fullmatch(r"trimtuner \S+ \([0-9a-f]{8}\)", entrant_named("trimtuner").version())


def test_a_search_is_kept_with_money_in_units_no_trial_charged_for_more_than_a_fifth_over_the_limit():
    columns = run_one(Search("digits", "plain", "eic", 3, 4, "digest", "version"))
    table = Table.find("digits")  # cost <= 3e-6
    run = replay(table, "eic", 3, 4, snapshots=False)
    paid = np.diff([0.0, *(one.spent for one in run.moments)])
    assert paid.max() > 3.6e-6
    assert columns["spent"] == pytest.approx(np.cumsum(np.minimum(paid, 3.6e-6)) / unit_of(table), rel=1e-4)
    assert columns["quality"] == pytest.approx([one.quality for one in run.moments], rel=1e-4)


def test_the_best_of_all_others_is_chosen_on_each_job_and_behind_is_bold():
    """Ours needs 3 where the best other needs 2 (1.5, behind), and 1 where it needs 2: geometric mean √0.75."""
    jobs = {
        "cnn": [_settling("trimtuner", 3.0), _settling("eic", 4.0), _settling("dehb", 2.0)],
        "rpart1053": [_settling("trimtuner", 1.0), _settling("eic", 2.0), _settling("dehb", 5.0)],
    }
    text = "\n".join([*each_tool(jobs), *ratios(jobs)])
    assert "| eic | 0.61 | 0.61 | 0.75 | 0.75 | 0.50 | 0.50 |" in text  # √(3/4 · 1/2)
    assert "| cnn | the papers' jobs | 3 | 2 (dehb) | **1.5** | 3 | 2 (dehb) | **1.5** |" in text
    assert "1 | 2 (eic) | 0.50 | 1 | 2 (eic) | 0.50 |" in text
    assert "| all | 99% | 2 | 0.87 | 1.5 (cnn) | 1 | 0.87 | 1 |" in text
    assert "| kept aside | 95% | 1 | 0.50 | 0.50 (rpart1053) | 0 | 0.50 | 0 |" in text


def test_harder_forms_say_our_money_by_that_of_each_and_who_never_gets_there():
    """Ours needs 2 in the mean; the other 4 and, never there, the whole budget of 20: 12."""
    others = _settling("eic", 4.0, float("inf"))
    table = harder_forms({"tight": {"cnn": [_settling("trimtuner", 1.0, 3.0), others]}})[0]
    assert "| form | jobs | trimtuner | eic |" in table
    assert "| tight | cnn | (0 of 2 never) | 0.17 / 0.17 (1 of 2 never) |" in table


def test_noise_is_added_where_it_was_measured_and_public_jobs_have_no_harder_forms():
    assert [form for form in HARDER if has_form("cnn", form)] == list(HARDER)
    assert [form for form in HARDER if not has_form("digits", form)] == ["noise"]
    assert not any(has_form("rpart24", form) for form in HARDER)


def test_who_is_chosen_elsewhere_was_best_with_the_other_seeds():
    """One other needs 1, 5 and 5, the second 4 each time: with the first seed left out 4 is chosen, else 1 or 5."""
    lucky, steady = _settling("eic", 1.0, 5.0, 5.0), _settling("dehb", 4.0, 4.0, 4.0)
    found = standing("cnn", [_settling("trimtuner", 2.0, 2.0, 2.0), lucky, steady], 0.95)
    assert found.best.entrant.name == "eic"  # 11 / 3 in the mean
    assert found.ratio == pytest.approx(2.0 / (11.0 / 3.0))
    assert found.elsewhere == pytest.approx((4.0 + 5.0 + 5.0) / 3.0)
    assert found.fair_ratio == pytest.approx(6.0 / 14.0)


def test_no_peer_pays_more_than_a_stopped_run_costs_and_each_is_told_what_it_came_to(job):
    """2 USD where 1.5 are allowed: 1.8 are paid."""
    dear = next(one for number in range(4) if (one := job.measure((number, 1.0))).cost == 2.0)
    assert (dear.accuracy, dear.metrics["cost"]) == (0.9, 2.0)
    assert job.charge(dear) == pytest.approx(1.8)
    assert job.charge(job.measure((dear.position, 0.1))) == pytest.approx(0.2)


def _settling(peer, *money):
    """A search for each sum of money, that is at its best for good after so much."""
    found = [Finished(Search("any", "plain", peer, seed, 100, "", ""), _trace(one)) for seed, one in enumerate(money)]
    return Group(entrant_named(peer), found)


def _trace(money):
    return Trace(
        spent=(money, money + 1.0),
        seconds=(1.0, 2.0),
        ask_seconds=(0.0, 0.0),
        quality=(1.0, 1.0),
        feasible=(True, True),
        fraction=(1.0, 1.0),
    )


def test_job_by_job_only_seeds_count_that_every_tool_has_on_every_job():
    def made(table, peer, seed):
        return Finished(Search(table, "plain", peer, seed, 100, "", ""), _settling(peer, 1.0).traces[0])

    both = [made(table, peer, 0) for table in ("cnn", "rnn") for peer in ("trimtuner", "eic")]
    lacking = [made("cnn", "trimtuner", 1), made("cnn", "eic", 1), made("rnn", "trimtuner", 1)]
    assert complete([*both, *lacking, made("cnn", "optuna-gp", 0)], ["trimtuner", "eic"]) == both


def test_the_report_names_who_is_not_in_it(tmp_path):
    finished = [_settling(peer, 1.0).searches[0] for peer in ("trimtuner", "eic")]
    text = write_report(Finds(finished, [], []), tmp_path).read_text()
    assert "BoTorch multi-fidelity entropy search and Optuna GP with constraints at full data are not here" in text
    assert "| any | others | 1 | 1 (eic) | 1 |" in text


def test_slow_tools_have_a_section_on_the_seeds_that_they_have(tmp_path):
    """Ours needs 1 and 3 in two searches, the slow one 2 in the first, which it has alone."""
    quick = _settling("trimtuner", 1.0, 3.0).searches
    with_slow = [quick[0], _settling("optuna-gp", 2.0).searches[0]]
    section = write_report(Finds(quick, with_slow, []), tmp_path).read_text().partition("## With BoTorch")[2]
    assert "2 searches, seeds 0 to 0" in section
    assert "| optuna-gp | 0.50 | 0.50 |" in section


def test_a_search_until_it_is_settled_ends_when_the_best_is_measured_within_the_limits(table):
    """The second is the best: recommended from a tenth of the data on, and proven by the third trial."""
    proposals = [(1, 0.1), (2, 1.0), (1, 1.0), (0, 1.0), (3, 1.0)]
    whole, ended = (
        search(make_variant("plain", table, 0), Scripted(proposals), 0, until_settled=until).moments
        for until in (False, True)
    )
    assert [one.quality for one in whole] == pytest.approx([1.0] * 5)
    assert [(one.spent, one.config) for one in ended] == [(one.spent, one.config) for one in whole[:3]]
