"""Spaces: which configurations there are, and how they become rows of numbers and back."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.problem import space as space_module

VMS = {
    "t2.small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.023),
    "t2.medium": tt.VM(vcpus=2, memory_gib=4, price_per_hour=0.0464),
    "t2.xlarge": tt.VM(vcpus=4, memory_gib=16, price_per_hour=0.1856),
    "t2.2xlarge": tt.VM(vcpus=8, memory_gib=32, price_per_hour=0.3712),
}
FRACTIONS = [1 / 60, 1 / 10, 1 / 4, 1 / 2, 1]


def design_page_space():
    """The example of DESIGN.md, word for word."""
    return tt.Space(
        {
            "learning_rate": tt.Choice([1e-3, 1e-4, 1e-5], scale="log"),
            "batch_size": tt.Choice([16, 256], scale="log"),
            "mode": tt.Choice(["sync", "async"]),
        },
        cloud=tt.Cloud(
            VMS,
            vm_count=range(1, 81),
            rule="vm_count * vcpus in (8, 16, 32, 48, 64, 80)",
            helpers=["t2.2xlarge"],
        ),
        fractions=FRACTIONS,
    )


def continuous_space():
    """Too many configurations to enumerate, with conditions on names, on machines and in a chain."""
    parameters = {
        "optimizer": tt.Choice(["adam", "sgd", "lion"]),
        "learning_rate": tt.Float(1e-5, 1e-1, scale="log"),
        "momentum": tt.Float(0.0, 0.99, when="optimizer == 'sgd'"),
        "nesterov": tt.Choice([True, False], when="momentum > 0.5"),
        "shards": tt.Int(1, 500, when="vm_count > 1"),
        "batch_size": tt.Int(16, 512, scale="log2"),
    }
    return tt.Space(parameters, cloud=tt.Cloud(VMS, vm_count=[1, 2, 4]), fractions=[0.1, 1.0])


def configurations_of(pool):
    return [pool.configuration(position) for position in range(len(pool))]


def frozen(configuration):
    return tuple(sorted((name, type(value).__name__, value) for name, value in configuration.items()))


# --- finite products and coupled parameters ---------------------------------------------------------------------------


def test_the_space_of_the_design_page_has_288_configurations():
    space = design_page_space()
    assert space.size == len(space.pool()) == 288
    assert space.fractions == tuple(FRACTIONS)
    assert set(space.names) == {"vm_type", "vm_count", "learning_rate", "batch_size", "mode"}


def test_every_configuration_of_a_coupled_space_obeys_the_rule():
    for configuration in configurations_of(design_page_space().pool()):
        vcpus = VMS[configuration["vm_type"]].vcpus
        assert configuration["vm_count"] * vcpus in (8, 16, 32, 48, 64, 80)


def test_the_price_of_each_row_is_that_of_its_machines():
    space = design_page_space()
    pool = space.pool()
    for position, configuration in enumerate(configurations_of(pool)):
        expected = configuration["vm_count"] * VMS[configuration["vm_type"]].price_per_hour + 0.3712
        assert pool.prices_per_hour[position] == pytest.approx(expected)
        assert space.price_per_hour(configuration) == pytest.approx(expected)


def test_a_finite_product_holds_every_combination_once():
    space = tt.Space({"a": tt.Choice([1, 2, 3]), "b": tt.Choice(["x", "y"]), "c": tt.Int(5, 8)})
    expected = {frozen({"a": a, "b": b, "c": c}) for a, b, c in itertools.product([1, 2, 3], ["x", "y"], [5, 6, 7, 8])}
    listed = [frozen(configuration) for configuration in configurations_of(space.pool())]
    assert len(listed) == len(expected) == space.size
    assert set(listed) == expected


def test_numbers_stay_on_their_scale_in_the_rows():
    pool = tt.Space({"rate": tt.Choice([1e-4, 1e-3, 1e-2], scale="log")}).pool()
    assert pool.rows[:, 0] == pytest.approx([0.0, 0.5, 1.0])


def test_a_column_that_never_varies_is_left_out():
    alone = tt.Space({"a": tt.Choice([1, 2, 3])}).pool()
    with_constant = tt.Space({"a": tt.Choice([1, 2, 3]), "b": tt.Choice(["always"])}).pool()
    assert with_constant.rows.shape == alone.rows.shape


def test_a_space_of_one_configuration_has_a_row():
    pool = tt.Space({"a": tt.Choice([1])}).pool()
    assert len(pool) == 1
    assert pool.rows.shape == (1, 1)


def test_rows_for_the_models_end_with_the_fraction():
    pool = tt.Space({"a": tt.Choice([1, 2, 3])}).pool()
    rows = pool.rows_at(np.array([2, 0]), np.array([0.25, 1.0]))
    assert rows == pytest.approx(np.array([[1.0, 0.25], [0.0, 1.0]]))
    assert pool.rows_at(np.array([2, 0]), 0.5)[:, -1] == pytest.approx([0.5, 0.5])


def test_without_a_cloud_there_are_no_prices():
    space = tt.Space({"a": tt.Choice([1, 2])})
    assert not space.has_prices
    assert space.price_per_hour({"a": 1}) is None
    assert space.pool().prices_per_hour is None


def test_a_cloud_alone_is_a_space():
    space = tt.Space({}, cloud=tt.Cloud(VMS, vm_count=[1, 2]))
    assert len(space.pool()) == 8
    assert space.has_prices


def test_machines_differ_by_what_they_are_not_by_their_names():
    pool = tt.Space({}, cloud=tt.Cloud(VMS, vm_count=1)).pool()
    row = {configuration["vm_type"]: pool.rows[i] for i, configuration in enumerate(configurations_of(pool))}
    near = np.linalg.norm(row["t2.small"] - row["t2.medium"])
    far = np.linalg.norm(row["t2.small"] - row["t2.2xlarge"])
    assert near < far


# --- lists with holes -------------------------------------------------------------------------------------------------

HOLED = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 4, "b": "x"}]


def test_a_list_with_holes_offers_what_is_listed_and_nothing_else():
    space = tt.Space.from_configs(HOLED, price_per_hour=[0.1, 0.2, 0.4], fractions=[0.5, 1])
    assert configurations_of(space.pool()) == HOLED
    assert space.size == 3
    with pytest.raises(tt.InputError, match="not one of those listed"):
        space.check({"a": 1, "b": "y"})
    for configuration in HOLED:
        space.check(configuration)


def test_prices_of_a_list_belong_to_its_configurations_in_order():
    space = tt.Space.from_configs(HOLED, price_per_hour=[0.1, 0.2, 0.4])
    assert [space.price_per_hour(configuration) for configuration in HOLED] == [0.1, 0.2, 0.4]
    assert space.pool().prices_per_hour == pytest.approx([0.1, 0.2, 0.4])
    assert space.has_prices


def test_a_list_may_have_parameters_that_only_some_configurations_have():
    configurations = [{"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
    pool = tt.Space.from_configs(configurations).pool()
    assert configurations_of(pool) == configurations
    assert len(np.unique(pool.rows, axis=0)) == 3


def test_numbers_in_a_list_that_span_a_factor_of_eight_are_taken_in_logs():
    wide = tt.Space.from_configs([{"a": 1}, {"a": 10}, {"a": 100}]).pool()
    narrow = tt.Space.from_configs([{"a": 1}, {"a": 2}, {"a": 5}]).pool()
    assert wide.rows[:, 0] == pytest.approx([0.0, 0.5, 1.0])
    assert narrow.rows[:, 0] == pytest.approx([0.0, 0.25, 1.0])


def test_the_scale_of_a_listed_parameter_can_be_given():
    pool = tt.Space.from_configs(
        [{"a": 1}, {"a": 10}, {"a": 100}], parameters={"a": tt.Choice([1, 10, 100], scale="linear")}
    ).pool()
    assert pool.rows[:, 0] == pytest.approx([0.0, 9 / 99, 1.0])


def test_a_list_of_numpy_values_gives_plain_configurations():
    space = tt.Space.from_configs([{"a": np.int64(1), "b": np.str_("x")}, {"a": np.int64(2), "b": np.str_("y")}])
    for configuration in configurations_of(space.pool()):
        assert [type(value) for value in configuration.values()] == [int, str]


def test_a_list_longer_than_the_enumeration_limit_is_still_looked_at_in_full(monkeypatch):
    monkeypatch.setattr(space_module, "ENUMERATION_LIMIT", 10)
    configurations = [{"a": i, "b": i * i} for i in range(25)]
    space = tt.Space.from_configs(configurations, price_per_hour=[1.0] * 25)
    assert configurations_of(space.pool()) == configurations


def test_changing_what_was_listed_changes_nothing_in_the_space():
    configurations = [{"a": 1}, {"a": 2}]
    space = tt.Space.from_configs(configurations)
    configurations[0]["a"] = 99
    space.pool().configuration(1)["a"] = 77
    assert configurations_of(space.pool()) == [{"a": 1}, {"a": 2}]


# --- conditional parameters -------------------------------------------------------------------------------------------


def test_a_conditional_parameter_has_a_value_only_where_its_condition_holds():
    space = tt.Space(
        {"optimizer": tt.Choice(["adam", "sgd"]), "momentum": tt.Choice([0.0, 0.9], when="optimizer == 'sgd'")}
    )
    expected = [
        {"optimizer": "adam"},
        {"optimizer": "sgd", "momentum": 0.0},
        {"optimizer": "sgd", "momentum": 0.9},
    ]
    assert sorted(map(frozen, configurations_of(space.pool()))) == sorted(map(frozen, expected))


def test_a_condition_on_an_inactive_parameter_does_not_hold():
    space = tt.Space(
        {
            "a": tt.Choice([0, 1]),
            "b": tt.Choice([0, 1], when="a == 1"),
            "c": tt.Choice([0, 1], when="b == 1"),
            "d": tt.Choice([0, 1], when="not c == 1"),
        }
    )
    # a=0 | a=1,b=0 | a=1,b=1,c=0 with d 0 or 1 | a=1,b=1,c=1: "not c == 1" asks for a c that is there.
    expected = [
        {"a": 0},
        {"a": 1, "b": 0},
        {"a": 1, "b": 1, "c": 0, "d": 0},
        {"a": 1, "b": 1, "c": 0, "d": 1},
        {"a": 1, "b": 1, "c": 1},
    ]
    assert sorted(map(frozen, configurations_of(space.pool()))) == sorted(map(frozen, expected))


def test_a_condition_may_name_the_machines():
    space = tt.Space(
        {
            "threads": tt.Choice([1, 2], when="vm_type == 't2.2xlarge'"),
            "shards": tt.Choice([1, 2], when="vm_count > 1"),
        },
        cloud=tt.Cloud(VMS, vm_count=[1, 2]),
    )
    for configuration in configurations_of(space.pool()):
        assert ("threads" in configuration) == (configuration["vm_type"] == "t2.2xlarge")
        assert ("shards" in configuration) == (configuration["vm_count"] > 1)
    # 4 types x (1 + 2 for two machines), the largest type twice.
    assert len(space.pool()) == 3 * 3 + 2 * 3


@pytest.mark.parametrize("always", ["True", "1 < 2"])
def test_a_condition_that_always_holds_changes_nothing(always):
    assert len(tt.Space({"a": tt.Choice([1, 2]), "b": tt.Choice([1, 2], when=always)}).pool()) == 4
    assert len(tt.Space({"b": tt.Choice([1, 2], when=always)}).pool()) == 2


def test_check_says_which_value_is_missing_or_too_many():
    space = tt.Space({"a": tt.Choice([0, 1]), "b": tt.Float(0, 1, when="a == 1")})
    space.check({"a": 0})
    space.check({"a": 1, "b": 0.5})
    with pytest.raises(tt.InputError, match="no 'b'"):
        space.check({"a": 1})
    with pytest.raises(tt.InputError, match="'b' has a value though its condition 'a == 1' does not hold"):
        space.check({"a": 0, "b": 0.5})
    with pytest.raises(tt.InputError, match="no 'a'"):
        space.check({"b": 0.5})


@pytest.mark.parametrize(
    ("configuration", "complaint"),
    [
        ({"rat": 0.5}, r"'rat' is no parameter of this space; did you mean 'rate'\?"),
        ({"rate": 2.0, "batch": 100}, "rate=2.0 is outside"),
        ({"rate": "0.5", "batch": 100}, "rate='0.5' is outside"),
        ({"rate": True, "batch": 100}, "rate=True is outside"),
        ({"rate": 0.5, "batch": 100.0}, "batch=100.0 is outside"),
        ({"rate": 0.5, "batch": 0}, "batch=0 is outside"),
    ],
)
def test_check_refuses_a_value_outside_its_parameter(configuration, complaint):
    space = tt.Space({"rate": tt.Float(0, 1), "batch": tt.Int(1, 512)})
    with pytest.raises(tt.InputError, match=complaint):
        space.check(configuration)


def test_check_refuses_machines_the_rule_excludes():
    space = design_page_space()
    others = {"learning_rate": 1e-3, "batch_size": 16, "mode": "sync"}
    space.check({"vm_type": "t2.small", "vm_count": 8, **others})
    with pytest.raises(tt.InputError, match=r"does not offer 9 of 't2.small'"):
        space.check({"vm_type": "t2.small", "vm_count": 9, **others})
    with pytest.raises(tt.InputError, match="does not offer"):
        space.check(others)


# --- laws over random finite spaces -----------------------------------------------------------------------------------

values_of_a_choice = st.one_of(
    st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True),
    st.lists(st.text("abc ü'", max_size=3), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from([0, 1, True, False, "1"]), min_size=1, max_size=5, unique_by=lambda v: (v, type(v))),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=3, unique=True),
)


@st.composite
def finite_spaces(draw):
    """Parameters, each perhaps conditional on one above it; perhaps a cloud."""
    parameters, values = {}, {}
    for name in draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True)):
        listed = draw(values_of_a_choice)
        condition = None
        if values and draw(st.booleans()):
            above = draw(st.sampled_from(sorted(values)))
            condition = (above, draw(st.sampled_from(values[above])))
        when = None if condition is None else f"{condition[0]} == {condition[1]!r}"
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in listed)
        scale = draw(st.sampled_from(["linear", "log", "log2"])) if numeric and min(listed) > 0 else None
        parameters[name] = tt.Choice(listed, scale=scale, when=when)
        values[name] = listed
    cloud = tt.Cloud(VMS, vm_count=[1, 2, 8], rule="vm_count * vcpus <= 8") if draw(st.booleans()) else None
    return tt.Space(parameters, cloud=cloud)


def count_by_hand(space):
    """The number of configurations, by walking the parameters one configuration at a time."""
    partial = [{}] if space.cloud is None else [space.cloud.parameter_values(c) for c in space.cloud.clusters]
    for name, parameter in space.parameters.items():
        grown = []
        for chosen in partial:
            if parameter.when is None or parameter.when.holds(chosen):
                grown += [{**chosen, name: value} for value in parameter.values]
            else:
                grown.append(chosen)
        partial = grown
    return partial


@given(finite_spaces())
def test_every_configuration_of_a_finite_space_finds_its_own_position(space):
    pool = space.pool()
    assert [pool.position(configuration) for configuration in configurations_of(pool)] == list(range(len(pool)))


@given(finite_spaces())
def test_a_finite_space_holds_exactly_the_configurations_its_conditions_allow(space):
    by_hand = count_by_hand(space)
    assert len(by_hand) == len(space.pool()) <= space.size
    assert set(map(frozen, by_hand)) == set(map(frozen, configurations_of(space.pool())))


@given(finite_spaces())
def test_every_row_of_a_finite_space_is_within_the_unit_cube_and_every_configuration_is_accepted(space):
    pool = space.pool()
    assert pool.rows.shape[0] == len(pool)
    assert np.all((pool.rows >= 0.0) & (pool.rows <= 1.0))
    for configuration in configurations_of(pool):
        space.check(configuration)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "ü c"]), st.integers(0, 3) | st.sampled_from(["x", True, 0.5]), min_size=1
        ),
        min_size=1,
        max_size=12,
        unique_by=frozen,
    )
)
def test_every_configuration_of_a_list_finds_its_own_position(configurations):
    prices = [1.0 + i for i in range(len(configurations))]
    pool = tt.Space.from_configs(configurations, price_per_hour=prices).pool()
    assert [pool.position(configuration) for configuration in configurations] == list(range(len(configurations)))
    assert configurations_of(pool) == configurations
    assert np.all((pool.rows >= 0.0) & (pool.rows <= 1.0))


# --- spaces too large to enumerate ------------------------------------------------------------------------------------


def test_a_space_with_a_continuous_parameter_is_infinite_and_a_long_integer_is_counted():
    assert continuous_space().size == math.inf
    assert not continuous_space().is_enumerable
    assert tt.Space({"a": tt.Int(1, 100), "b": tt.Int(1, 200)}).size == 20_000
    assert tt.Space({"a": tt.Int(1, 100), "b": tt.Int(1, 200)}).is_enumerable
    assert not tt.Space({"a": tt.Int(1, 10**6)}).is_enumerable


def test_a_long_integer_that_can_be_enumerated_is():
    pool = tt.Space({"a": tt.Int(1, 100)}).pool()
    assert configurations_of(pool) == [{"a": i} for i in range(1, 101)]
    assert pool.rows[:, 0] == pytest.approx(np.linspace(0, 1, 100))


def test_the_pool_is_the_same_for_the_same_seed_and_another_for_another():
    space = continuous_space()
    first, again, other = space.pool(seed=3), continuous_space().pool(seed=3), space.pool(seed=4)
    assert configurations_of(first) == configurations_of(again)
    assert np.array_equal(first.rows, again.rows)
    assert configurations_of(first) != configurations_of(other)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.data())
def test_every_sampled_configuration_obeys_its_conditions_and_finds_its_own_position(seed, data):
    space = continuous_space()
    spread = space.pool(seed=seed)
    picked = data.draw(st.lists(st.integers(0, len(spread) - 1), min_size=1, max_size=3, unique=True))
    anchors = [spread.configuration(position) for position in picked]
    pool = space.pool(keep=anchors, near=anchors, seed=seed)
    for position, configuration in enumerate(configurations_of(pool)):
        space.check(configuration)
        assert pool.position(configuration) == position
        assert ("momentum" in configuration) == (configuration["optimizer"] == "sgd")
        assert ("nesterov" in configuration) == (configuration.get("momentum", 0.0) > 0.5)
        assert ("shards" in configuration) == (configuration["vm_count"] > 1)
    assert np.all((pool.rows >= 0.0) & (pool.rows <= 1.0))
    assert pool.prices_per_hour.shape == (len(pool),)


def test_a_pool_does_not_hang_on_which_pools_were_asked_for_before():
    """What all pools of a seed share is worked out once; whose it is must not be mistaken."""

    def fresh() -> tt.Space:
        return tt.Space({"rate": tt.Float(0.001, 1.0, scale="log"), "depth": tt.Int(1, 900)})

    asked = fresh()
    for seed in (1, 2, 1, 1):
        kept = [{"rate": 0.5, "depth": seed}]
        one, other = asked.pool(kept, kept, seed), fresh().pool(kept, kept, seed)
        np.testing.assert_array_equal(one.rows, other.rows)
        assert [one.configuration(i) for i in range(len(one))] == [other.configuration(i) for i in range(len(other))]
        assert [one.position(one.configuration(i)) for i in range(len(one))] == list(range(len(one)))


def test_the_pool_holds_all_that_is_to_be_kept_however_much_it_is():
    space = continuous_space()
    keep = configurations_of(space.pool(seed=1))[:200]
    pool = space.pool(keep=keep, seed=2)
    assert len({pool.position(configuration) for configuration in keep}) == 200
    assert len(pool) >= 1000


def test_the_pool_covers_every_quarter_of_every_axis():
    pool = tt.Space({name: tt.Float(0, 1) for name in "abc"}).pool()
    for column in pool.rows.T:
        shares = np.histogram(column, bins=4, range=(0, 1))[0] / len(pool)
        assert shares == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_the_pool_closes_in_on_what_is_good(seed):
    space = tt.Space({"a": tt.Float(0, 1), "b": tt.Float(1e-5, 1e-1, scale="log"), "c": tt.Float(-1, 1)})
    anchor = {"a": 0.3, "b": 1e-3, "c": 0.1}  # in the unit cube: 0.3, 0.5, 0.55
    pool = space.pool(keep=[anchor], near=[anchor], seed=seed)
    distance = np.abs(pool.rows - np.array([0.3, 0.5, 0.55])).max(axis=1)
    distance[pool.position(anchor)] = np.inf
    assert distance.min() < 0.02
    # 1024 even points put 1024 * 0.2³ = 8 of them within 0.1; the neighbours add dozens.
    assert (distance < 0.1).sum() > 24


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_of_a_listed_number_are_near_in_value_though_not_in_the_list(seed):
    listed = [256, 1, 64, 4, 16, 128, 2, 32, 8]
    space = tt.Space({"a": tt.Choice(listed, scale="log2"), "b": tt.Float(0, 1)})
    anchor = {"a": 16, "b": 0.123456}
    pool = space.pool(near=[anchor], seed=seed)
    unmoved = {one["a"] for one in configurations_of(pool) if one["b"] == anchor["b"]}
    assert unmoved >= {8, 32}


def test_neighbours_of_machines_are_machines_on_offer():
    space = tt.Space(
        {"rate": tt.Float(0, 1)}, cloud=tt.Cloud(VMS, vm_count=range(1, 9), rule="vm_count * vcpus in (4, 8, 16)")
    )
    anchor = space.pool().configuration(0)
    for configuration in configurations_of(space.pool(keep=[anchor], near=[anchor])):
        space.check(configuration)


def test_a_price_in_a_sampled_pool_is_that_of_the_machines():
    space = continuous_space()
    pool = space.pool(seed=5)
    for position in range(0, len(pool), 97):
        configuration = pool.configuration(position)
        expected = configuration["vm_count"] * VMS[configuration["vm_type"]].price_per_hour
        assert pool.prices_per_hour[position] == pytest.approx(expected)


# --- fractions --------------------------------------------------------------------------------------------------------


def test_fractions_are_sorted_and_one_number_is_enough():
    space = tt.Space({"a": tt.Choice([1, 2])}, fractions=[1, 0.5, 0.1])
    assert space.fractions == (0.1, 0.5, 1.0)
    assert tt.Space({"a": tt.Choice([1, 2])}, fractions=1).fractions == (1.0,)
    assert tt.Space({"a": tt.Choice([1, 2])}).fractions == (1.0,)


def test_a_fraction_rounded_on_its_way_is_recognised():
    space = design_page_space()
    assert space.nearest_fraction(0.0166667) == 1 / 60
    assert space.nearest_fraction(1) == 1.0
    with pytest.raises(tt.InputError, match=r"fraction 0\.3 is none of those offered"):
        space.nearest_fraction(0.3)


@pytest.mark.parametrize("wrong", [0, -0.1, 1.0001, 50, math.nan, math.inf, "0.5", None, True])
def test_a_fraction_outside_its_range_is_refused(wrong):
    with pytest.raises(tt.InputError, match=r"is outside \(0, 1\]; it is the share of the data to train on"):
        tt.Space({"a": tt.Choice([1, 2])}, fractions=[wrong, 1])


def test_a_space_can_be_had_with_and_without_snapshots():
    space = tt.Space({"a": tt.Choice([1, 2])}, fractions=[0.5, 1])
    assert not space.snapshots
    assert space.with_snapshots(True).snapshots
    assert not space.snapshots
    assert configurations_of(space.with_snapshots(True).pool()) == configurations_of(space.pool())


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tt.Space({}), "the space is empty"),
        (lambda: tt.Space(None), "a dict of name to"),
        (lambda: tt.Space([tt.Choice([1])]), "a dict of name to"),
        (lambda: tt.Space({"a": [1, 2]}), "the parameter 'a' is .*write tt.Choice"),
        (lambda: tt.Space({"a b": tt.Choice([1])}), "no name for a parameter"),
        (lambda: tt.Space({3: tt.Choice([1])}), "no name for a parameter"),
        (lambda: tt.Space({"a": tt.Choice([1])}, cloud="aws"), "must be a tt.Cloud"),
        (lambda: tt.Space({"vm_type": tt.Choice([1])}, cloud=tt.Cloud(VMS)), "also what the cloud chooses"),
        (lambda: tt.Space({"a": tt.Choice([1])}, fractions=[]), "fractions is empty"),
        (lambda: tt.Space({"a": tt.Choice([1])}, fractions=[0.5, 0.5]), "the same share twice"),
        (lambda: tt.Space({"a": tt.Choice([1]), "b": tt.Choice([1], when="c == 1")}), "'b'.*names 'c'"),
        (lambda: tt.Space({"b": tt.Choice([1], when="a == 1"), "a": tt.Choice([1])}), "parameters above it"),
        (lambda: tt.Space({"a": tt.Choice([1], when="a == 1")}), "names 'a'"),
        (lambda: tt.Space({"a": tt.Choice([1, 2]), "b": tt.Choice([1], when="a")}).pool(), "compare it"),
        (lambda: tt.Space.from_configs([]), "nothing to choose from"),
        (lambda: tt.Space.from_configs([{}]), "at least one parameter"),
        (lambda: tt.Space.from_configs(3), "a list of dicts"),
        (lambda: tt.Space.from_configs([3]), "configuration 0 is 3"),
        (lambda: tt.Space.from_configs([{"a": {1}}]), "a number, a text, true/false, None or a tuple"),
        (lambda: tt.Space.from_configs([{"a": math.nan}]), "must be finite"),
        (lambda: tt.Space.from_configs([{"a": [[1]]}]), "a number, a text, true/false, None or a tuple"),
        (lambda: tt.Space.from_configs([{"a": 1}, {"a": 2}, {"a": 1.0}]), "configurations 0 and 2 are the same"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=[1, 2]), "2 prices for 1 configurations"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=[0]), "above 0 USD per hour"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=[-1]), "above 0 USD per hour"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=[math.nan]), "above 0 USD per hour"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=["free"]), "not a number"),
        (lambda: tt.Space.from_configs([{"a": 1}], price_per_hour=3), "one price for each"),
        (lambda: tt.Space.from_configs([{"a": 1}], fractions=[2]), r"outside \(0, 1\]"),
        (lambda: tt.Space.from_configs([{"a": 1}], parameters={"b": tt.Choice([1])}), "which no configuration has"),
        (lambda: tt.Space.from_configs([{"a": 1}], parameters={"a": tt.Choice([2])}), "1 is not one of"),
        (lambda: tt.Space.from_configs([{"a": 1}], parameters={"a": tt.Int(1, 2)}), "takes a tt.Choice"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(make, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        make()


def test_one_and_true_make_two_configurations():
    space = tt.Space.from_configs([{"a": 1}, {"a": True}])
    assert [space.pool().position({"a": value}) for value in (1, True)] == [0, 1]
