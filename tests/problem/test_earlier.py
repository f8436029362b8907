"""Earlier studies in a new space: what can be placed is placed where it belongs, and the rest says nothing."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.errors import InputError
from trimtuner.problem.axes import Stranger
from trimtuner.problem.earlier import MEASUREMENTS_AT_MOST, Earlier
from trimtuner.problem.history import Measurement

VMS = {
    "small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.02),
    "large": tt.VM(vcpus=8, memory_gib=64, price_per_hour=0.3),
}
SPACE = tt.Space(
    {
        "rate": tt.Float(1e-4, 1e-1, scale="log"),
        "batch": tt.Choice([16, 64, 256], scale="log2"),
        "mode": tt.Choice(["a", "b", "c"]),
        "depth": tt.Int(1, 9),
        "momentum": tt.Choice([0.1, 0.5], when="mode == 'a'"),
    },
    cloud=tt.Cloud(VMS, vm_count=[1, 2, 4]),
    fractions=[0.1, 1.0],
)
LISTED = tt.Space({"batch": tt.Choice([16, 64, 256], scale="log2"), "mode": tt.Choice(["a", "b", "c"])})


def measured(fraction=1.0, **config):
    return Measurement(config, fraction, {"accuracy": 0.5, "time": 10.0})


def earlier(*measurements, space=None):
    return Earlier.of("before", measurements, space)


@pytest.mark.parametrize("space", [SPACE, LISTED], ids=["pool", "listed"])
def test_configurations_of_the_same_space_have_the_rows_of_its_pool(space):
    pool = space.pool()
    strangers = [Stranger(pool.configuration(i), space.machine(pool.configuration(i))) for i in range(len(pool))]
    np.testing.assert_allclose(space.rows_of_strangers(strangers), pool.rows)


@settings(deadline=None)
@given(value=st.floats(1e-3, 1e6))
def test_a_number_that_is_not_listed_lies_on_the_scale_of_those_that_are(value):
    row = LISTED.rows_of_strangers([Stranger({"batch": value, "mode": "a"}, None)])[0]
    assert row[0] == pytest.approx(np.log2(value / 16) / 4)


def test_what_no_scale_has_is_left_out():
    space = tt.Space({"batch": tt.Choice([16, 256], scale="log2")})
    old = earlier(measured(batch=64), measured(batch="many"), measured(batch=0), measured(batch=True), measured(b=1))
    assert old.rows_in(space).placed.tolist() == [0]


def test_a_name_that_the_new_space_does_not_know_is_left_out():
    found = earlier(measured(batch=16, mode="a"), measured(batch=16, mode="z")).rows_in(LISTED)
    assert found.placed.tolist() == [0]


def test_the_earlier_study_says_nothing_about_parameters_that_only_the_new_one_has():
    found = earlier(measured(batch=16), measured(batch=256)).rows_in(LISTED)
    np.testing.assert_allclose(found.rows, [[0.0, 1.0], [1.0, 1.0]])  # the batch and the fraction, nothing of the mode
    assert found.columns.tolist() == [True, False, False, False, True]


def test_parameters_that_only_the_earlier_study_had_are_ignored():
    found = earlier(measured(batch=16, mode="a", warmup=3)).rows_in(LISTED)
    assert found.columns.all()


def test_an_inactive_parameter_is_inactive_in_both():
    config = {"rate": 1e-2, "batch": 16, "mode": "b", "depth": 3, "vm_type": "small", "vm_count": 1}
    pool = SPACE.pool(keep=[config])
    rows = SPACE.rows_of_strangers([Stranger(config, None)])
    np.testing.assert_allclose(rows[0], pool.rows[pool.position(config)])


def test_machines_are_placed_by_what_they_are_not_by_their_names():
    other = tt.Space(
        {"mode": tt.Choice(["a", "b", "c"])},
        cloud=tt.Cloud({"renamed": VMS["large"], "between": tt.VM(vcpus=4, memory_gib=16, price_per_hour=0.1)}),
    )
    here = tt.Space({"mode": tt.Choice(["a", "b", "c"])}, cloud=tt.Cloud(VMS))
    configs = [{"vm_type": name, "vm_count": 1, "mode": "a"} for name in ("renamed", "between")]
    rows = here.rows_of_strangers([Stranger(config, other.machine(config)) for config in configs])
    pool = here.pool()
    large = pool.rows[pool.position({"vm_type": "large", "vm_count": 1, "mode": "a"})]
    np.testing.assert_allclose(rows[0], large)
    assert rows[1, 0] == pytest.approx(np.log(4) / np.log(8))  # vCPUs, between 1 and 8


def test_last_months_price_of_a_machine_that_is_still_offered_does_not_move_it():
    dearer = tt.Space({"x": tt.Choice([1, 2])}, cloud=tt.Cloud({n: _at_twice_the_price(vm) for n, vm in VMS.items()}))
    here = tt.Space({"x": tt.Choice([1, 2])}, cloud=tt.Cloud(VMS))
    config = {"vm_type": "large", "vm_count": 1, "x": 1}
    pool = here.pool()
    rows = here.rows_of_strangers([Stranger(config, dearer.machine(config))])
    np.testing.assert_allclose(rows[0], pool.rows[pool.position(config)])


def _at_twice_the_price(vm):
    return tt.VM(vm.vcpus, vm.memory_gib, 2 * vm.price_per_hour)


def test_nothing_in_common_is_an_error_that_names_both_sides():
    with pytest.raises(InputError, match=r"'before'.*chose other.*batch, mode"):
        earlier(measured(other=1)).rows_in(LISTED)


def test_a_study_without_measurements_is_refused():
    with pytest.raises(InputError, match="measured nothing yet"):
        earlier()


def test_of_very_many_measurements_those_on_the_most_data_are_kept_in_their_order():
    many = [measured(0.1 if number % 2 else 1.0, batch=number) for number in range(2 * MEASUREMENTS_AT_MOST + 10)]
    kept = earlier(*many).measurements
    assert [one.configuration["batch"] for one in kept] == list(range(0, 2 * MEASUREMENTS_AT_MOST, 2))


def test_plain_values_give_back_the_same_study():
    config = {"rate": 1e-2, "batch": 16, "mode": "a", "depth": 3, "momentum": 0.5, "vm_type": "large", "vm_count": 2}
    before = earlier(measured(0.1, **config), measured(**config), space=SPACE)
    after = Earlier.from_plain(json.loads(json.dumps(before.plain)))
    assert (after.name, after.measurements, after.machines) == (before.name, before.measurements, before.machines)
