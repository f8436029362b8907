"""Machines, the rule for valid pairs, and what an hour of them costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtuner as tt
from trimtuner.problem.catalog import built_in_catalog
from trimtuner.problem.cloud import Cluster

SMALL = tt.VM(vcpus=1, memory_gib=2, price_per_hour=0.023)
LARGE = tt.VM(vcpus=8, memory_gib=32, price_per_hour=0.3712)
# What the authors of TrimTuner paid, in USD per hour.
PAPER_PRICES = {"t2.small": 0.023, "t2.medium": 0.0464, "t2.xlarge": 0.1856, "t2.2xlarge": 0.3712}
PAPER_VCPUS = {"t2.small": 1, "t2.medium": 2, "t2.xlarge": 4, "t2.2xlarge": 8}


def paper_cloud(**changes):
    settings = {
        "catalog": "aws",
        "vm_types": list(PAPER_PRICES),
        "vm_count": range(1, 81),
        "rule": "vm_count * vcpus in (8, 16, 32, 48, 64, 80)",
        "helpers": ["t2.2xlarge"],
    }
    return tt.Cloud(**{**settings, **changes})


def test_the_rule_leaves_exactly_the_pairs_that_satisfy_it():
    expected = {
        (vm_type, count)
        for vm_type, vcpus in PAPER_VCPUS.items()
        for count in range(1, 81)
        if count * vcpus in (8, 16, 32, 48, 64, 80)
    }
    clusters = paper_cloud().clusters
    assert {(cluster.vm_type, cluster.vm_count) for cluster in clusters} == expected
    assert len(clusters) == 24


def test_without_a_rule_every_pair_is_offered():
    cloud = tt.Cloud({"small": SMALL, "large": LARGE}, vm_count=[1, 2, 4])
    assert len(cloud.clusters) == 6


@pytest.mark.parametrize(
    ("rule", "pairs"),
    [
        ("vm_type == 'small' or vm_count == 1", {("small", 1), ("small", 2), ("large", 1)}),
        ("memory_gib * vm_count > 40", {("large", 2)}),
        ("vm_count * price_per_hour <= 0.05", {("small", 1), ("small", 2)}),
        ("gpus == 0 and market == 'on_demand' and vm_count < 2", {("small", 1), ("large", 1)}),
    ],
)
def test_a_rule_may_name_every_fact_about_the_machines(rule, pairs):
    cloud = tt.Cloud({"small": SMALL, "large": LARGE}, vm_count=[1, 2], rule=rule)
    assert {(cluster.vm_type, cluster.vm_count) for cluster in cloud.clusters} == pairs


def test_the_price_is_that_of_all_workers_and_their_helpers():
    cloud = paper_cloud()
    assert cloud.price_per_hour(Cluster("t2.medium", 4, "on_demand")) == pytest.approx(4 * 0.0464 + 0.3712)


def test_helpers_of_one_type_are_each_paid_for():
    cloud = tt.Cloud({"small": SMALL, "large": LARGE}, helpers=["large", "large", "small"])
    assert cloud.price_per_hour(Cluster("small", 1, "on_demand")) == pytest.approx(0.023 + 2 * 0.3712 + 0.023)


def test_a_helper_may_be_one_more_of_the_type_that_the_workers_have():
    cloud = tt.Cloud({"small": SMALL, "large": LARGE}, vm_count=2, helpers=["vm_type", "small"])
    assert cloud.helpers_of("large") == ("large", "small")
    assert cloud.price_per_hour(Cluster("large", 2, "on_demand")) == pytest.approx(3 * 0.3712 + 0.023)
    assert cloud.price_per_hour(Cluster("small", 2, "on_demand")) == pytest.approx(4 * 0.023)
    assert cloud.rented_types == ("small", "large")


def test_a_helper_need_not_be_offered_as_a_worker():
    cloud = tt.Cloud(catalog="aws", vm_types=["t2.small"], helpers=["t2.2xlarge"])
    assert [cluster.vm_type for cluster in cloud.clusters] == ["t2.small"]
    assert cloud.price_per_hour(cloud.clusters[0]) == pytest.approx(0.023 + 0.3712)


def test_spot_workers_cost_the_spot_price_while_helpers_stay_on_demand():
    spot = tt.VM(vcpus=1, memory_gib=2, price_per_hour=1.0, spot_price_per_hour=0.25)
    cloud = tt.Cloud({"spot": spot}, vm_count=3, market=["on_demand", "spot"], helpers=["spot"])
    prices = {cluster.market: cloud.price_per_hour(cluster) for cluster in cloud.clusters}
    assert prices == pytest.approx({"on_demand": 3 * 1.0 + 1.0, "spot": 3 * 0.25 + 1.0})


def test_a_rule_sees_the_price_of_its_market():
    vm = tt.VM(vcpus=1, memory_gib=2, price_per_hour=1.0, spot_price_per_hour=0.25)
    cloud = tt.Cloud({"a": vm}, market=["on_demand", "spot"], rule="price_per_hour < 0.5")
    assert [cluster.market for cluster in cloud.clusters] == ["spot"]


def test_the_market_is_part_of_a_configuration_only_where_there_is_a_choice():
    vm = tt.VM(vcpus=1, memory_gib=2, price_per_hour=1.0, spot_price_per_hour=0.25)
    one, both = tt.Cloud({"a": vm}, market="spot"), tt.Cloud({"a": vm}, market=["on_demand", "spot"])
    assert one.parameter_values(one.clusters[0]) == {"vm_type": "a", "vm_count": 1}
    assert [both.parameter_values(cluster)["market"] for cluster in both.clusters] == ["on_demand", "spot"]
    assert one.price_per_hour(one.clusters[0]) == 0.25


def test_a_cluster_on_spot_is_interrupted_as_often_as_all_its_workers_together_and_helpers_never_are():
    vm = tt.VM(1, 2, 1.0, spot_price_per_hour=0.25, spot_interruptions_per_hour=0.05)
    cloud = tt.Cloud({"a": vm}, vm_count=4, market=["on_demand", "spot"], helpers=["a", "a"])
    rates = {cluster.market: cloud.interruptions_per_hour(cluster) for cluster in cloud.clusters}
    assert rates == {"on_demand": 0.0, "spot": pytest.approx(4 * 0.05)}


def test_what_spot_is_like_is_filled_in_where_machines_do_not_say_it():
    own = tt.VM(1, 2, 1.0, spot_price_per_hour=0.5, spot_interruptions_per_hour=0.2)
    priced = tt.VM(1, 2, 1.0, spot_price_per_hour=0.5)
    spot = tt.Spot(discount=0.75, interruptions_per_hour=0.1)
    vms = tt.Cloud({"own": own, "priced": priced, "small": SMALL}, market="spot", spot=spot).vms
    assert vms["own"] == own
    assert (vms["priced"].spot_price_per_hour, vms["priced"].spot_interruptions_per_hour) == (0.5, 0.1)
    assert vms["small"].spot_price_per_hour == pytest.approx(0.023 * 0.25)
    assert vms["small"].spot_interruptions_per_hour == 0.1


def test_the_built_in_catalog_has_a_spot_market_once_somebody_says_what_it_is_like():
    cloud = tt.Cloud(catalog="aws", vm_types=["t2.small"], market=["on_demand", "spot"], spot=tt.Spot(discount=0.6))
    assert [cloud.price_per_hour(one) for one in cloud.clusters] == pytest.approx([0.023, 0.023 * 0.4])


def test_a_pool_knows_of_interruptions_only_where_there_are_any():
    vm = {"spot_price_per_hour": 0.25}
    parameters = {"x": tt.Choice([1, 2])}
    for rate, known in ((0.0, False), (0.3, True)):
        cloud = tt.Cloud({"a": tt.VM(1, 2, 1.0, spot_interruptions_per_hour=rate, **vm)}, market=["on_demand", "spot"])
        pool = tt.Space(parameters, cloud=cloud).pool()
        assert (pool.interruptions_per_hour is not None) == known
        if known:
            expected = [0.3 if pool.configuration(i)["market"] == "spot" else 0.0 for i in range(len(pool))]
            assert pool.interruptions_per_hour.tolist() == expected
            assert pool.without_interruptions().interruptions_per_hour is None


def test_a_pool_that_stands_for_a_space_knows_of_interruptions_too():
    vm = tt.VM(1, 2, 1.0, spot_price_per_hour=0.25, spot_interruptions_per_hour=0.3)
    cloud = tt.Cloud({"a": vm}, vm_count=[1, 3], market=["on_demand", "spot"])
    pool = tt.Space({"x": tt.Float(0.0, 1.0)}, cloud=cloud).pool()
    for position in range(len(pool)):
        one = pool.configuration(position)
        expected = 0.3 * one["vm_count"] if one["market"] == "spot" else 0.0
        assert pool.interruptions_per_hour[position] == pytest.approx(expected)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)), min_size=1),
    st.sets(st.integers(1, 50), min_size=1, max_size=4),
    st.lists(st.sampled_from("ab"), max_size=3),
)
def test_every_price_is_count_times_worker_plus_helpers_for_any_cloud(prices, counts, helpers):
    vms = {
        name: tt.VM(vcpus=1, memory_gib=1, price_per_hour=price, spot_price_per_hour=spot)
        for name, (price, spot) in prices.items()
    }
    rented = [name for name in helpers if name in vms]
    cloud = tt.Cloud(vms, vm_count=counts, market=["on_demand", "spot"], helpers=rented)
    assert len(set(cloud.clusters)) == len(cloud.clusters) == 2 * len(vms) * len(counts)
    for cluster in cloud.clusters:
        worker = prices[cluster.vm_type][0 if cluster.market == "on_demand" else 1]
        expected = cluster.vm_count * worker + sum(prices[name][0] for name in rented)
        assert cloud.price_per_hour(cluster) == pytest.approx(expected)


def test_the_catalog_has_the_papers_machines_at_the_papers_prices():
    catalog = built_in_catalog()
    assert {name: catalog[name].price_per_hour for name in PAPER_PRICES} == PAPER_PRICES
    assert {name: catalog[name].vcpus for name in PAPER_VCPUS} == PAPER_VCPUS


def test_machines_of_ones_own_may_stand_beside_those_of_the_catalog_and_win():
    own = {"mine": SMALL, "t2.small": tt.VM(vcpus=1, memory_gib=2, price_per_hour=9.0)}
    cloud = tt.Cloud(own, catalog="builtin", vm_types=["mine", "t2.small", "t2.medium"])
    prices = {cluster.vm_type: cloud.price_per_hour(cluster) for cluster in cloud.clusters}
    assert prices == {"mine": 0.023, "t2.small": 9.0, "t2.medium": 0.0464}


def test_numpy_counts_become_plain_numbers():
    cloud = tt.Cloud({"small": SMALL}, vm_count=np.arange(1, 4))
    assert [type(cluster.vm_count) for cluster in cloud.clusters] == [int, int, int]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tt.Cloud(), "needs VM types"),
        (lambda: tt.Cloud({}), "at least one VM type"),
        (lambda: tt.Cloud(["small"]), "a dict of name to tt.VM"),
        (lambda: tt.Cloud({"small": {"vcpus": 1}}), "write tt.VM"),
        (
            lambda: tt.Cloud({"small": SMALL}, vm_types=["smal"]),
            r"'smal', which is no known VM type; did you mean 'small'\?",
        ),
        (lambda: tt.Cloud({"small": SMALL}, vm_types="small"), r"write a list: vm_types=\['small'\]"),
        (lambda: tt.Cloud({"small": SMALL}, vm_types=3), "a list of VM types"),
        (lambda: tt.Cloud({"small": SMALL}, vm_types=[["small"]]), "no known VM type"),
        (lambda: tt.Cloud({"small": SMALL}, vm_types=[]), "at least one VM type"),
        (lambda: tt.Cloud({"small": SMALL}, vm_types=["small", "small"]), "vm_types has 'small' twice"),
        (lambda: tt.Cloud({"small": SMALL}, helpers=["large"]), "helpers names 'large', which is no known VM type"),
        (lambda: tt.Cloud({"small": SMALL}, helpers="small"), "write a list"),
        (lambda: tt.Cloud({"small": SMALL}, helpers=None), "a list of VM types"),
        (
            lambda: tt.Cloud(catalog="gpc", vm_types=["a"]),
            r"catalog='gpc' is not known; 'aws', 'azure', 'gcp' are built in, .* did you mean 'gcp'\?",
        ),
        (lambda: tt.Cloud(catalog=3, vm_types=["a"]), "catalog=3 must be the name of a catalog"),
        (lambda: tt.Cloud(catalog="absent.csv"), "there is no file 'absent.csv'"),
        (lambda: tt.Cloud(catalog="gcp", vm_types=["t2.small"]), "'t2.small', which is no known VM type"),
        (lambda: tt.Cloud(catalog="aws", region="us-est-1", vm_types=["a"]), "no region 'us-est-1'; .*us-east-1"),
        (lambda: tt.Cloud({"small": SMALL}, region="us-east-1"), "region='us-east-1' needs a catalog"),
        (lambda: tt.Cloud({"small": SMALL}, market="spot", spot=0.65), r"spot=0.65 must be tt.Spot\(discount"),
        (lambda: tt.Cloud({"small": SMALL}, market="spot", spot=tt.Spot()), "no spot_price_per_hour.*tt.Spot"),
        (lambda: tt.Spot(discount=1.0), "discount=1.0 must be from 0 to below 1; 0.65 is 65 % off"),
        (lambda: tt.Spot(discount=-0.1), "discount=-0.1 must be"),
        (lambda: tt.Spot(discount=True), "discount=True must be"),
        (lambda: tt.Spot(interruptions_per_hour=-1), "interruptions_per_hour=-1 must be a number from 0"),
        (
            lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=1, spot_interruptions_per_hour=math.inf),
            "spot_interruptions_per_hour=inf must be a number from 0",
        ),
        (lambda: tt.Cloud(catalog="aws"), r"needs vm_types=\[...\]"),
        (lambda: tt.Cloud(catalog="aws", vm_types=["t2.smal"]), r"did you mean 't2.small'\?"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=[]), "vm_count is empty"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=0), "vm_count has 0; counts are whole numbers from 1"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=[1, -2]), "vm_count has -2"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=[1.5]), "vm_count has 1.5"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=2.5), "vm_count has 2.5"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=[True]), "vm_count has True"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count="12"), "vm_count has '1'"),
        (lambda: tt.Cloud({"small": SMALL}, vm_count=[1, 2, 1]), "vm_count has 1 twice"),
        (lambda: tt.Cloud({"small": SMALL}, market="sport"), r"neither 'on_demand' nor 'spot'; did you mean 'spot'\?"),
        (lambda: tt.Cloud({"small": SMALL}, market=[]), "market is empty"),
        (lambda: tt.Cloud({"small": SMALL}, market=3), "market=3 must be"),
        (lambda: tt.Cloud({"small": SMALL}, market=["on_demand", "on_demand"]), "market has 'on_demand' twice"),
        (lambda: tt.Cloud({"small": SMALL}, market="spot"), "'small' has no spot_price_per_hour"),
        (lambda: tt.Cloud({"small": SMALL}, market=["on_demand", "spot"]), "'small' has no spot_price_per_hour"),
        (lambda: tt.Cloud({"small": SMALL}, rule="vm_count == 7"), "'vm_count == 7' is true for no pair.*loosen it"),
        (lambda: tt.Cloud({"small": SMALL}, rule="vm_count * vcpu == 1"), r"names 'vcpu'.*did you mean 'vcpus'\?"),
        (lambda: tt.Cloud({"small": SMALL}, rule="vm_count"), "compare it with something"),
        (lambda: tt.Cloud({"small": SMALL}, rule="print(1)"), "uses Call"),
        (lambda: tt.Cloud({"small": SMALL}, rule=3), "a condition is a text"),
        (lambda: tt.VM(vcpus=0, memory_gib=2, price_per_hour=1), "vcpus=0 must be a number above 0"),
        (lambda: tt.VM(vcpus=1, memory_gib=-2, price_per_hour=1), "memory_gib=-2 must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=-1), "price_per_hour=-1 must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=math.nan), "price_per_hour=nan must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=math.inf), "price_per_hour=inf must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour="1"), "price_per_hour='1' must be"),
        (lambda: tt.VM(vcpus=True, memory_gib=2, price_per_hour=1), "vcpus=True must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=1, gpus=-1), "gpus=-1 must be"),
        (lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=1, gpus="one"), "gpus='one' must be"),
        (
            lambda: tt.VM(vcpus=1, memory_gib=2, price_per_hour=1, spot_price_per_hour=0),
            "spot_price_per_hour=0 must be",
        ),
    ],
)
def test_machines_that_make_no_sense_are_refused(make, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        make()


def test_asking_a_machine_without_a_spot_price_for_it_is_an_input_error():
    with pytest.raises(tt.InputError, match="no spot price"):
        SMALL.price_on("spot")


FREE = {
    "node": tt.VM(vcpus=4, memory_gib=16, price_per_hour=0),
    "large": tt.VM(vcpus=8, memory_gib=32, price_per_hour=0),
}


def test_machines_for_free_have_no_price_and_are_still_told_apart():
    space = tt.Space({"x": tt.Choice([1, 2])}, cloud=tt.Cloud(FREE, vm_count=[1, 2], helpers=["node"]))
    config = {"x": 1, "vm_type": "large", "vm_count": 2}
    assert not space.has_prices
    assert space.price_per_hour(config) is None
    assert space.cloud.machines_in(config) == 3
    assert space.pool().prices_per_hour is None
    assert len({tuple(row) for row in space.pool().rows.tolist()}) == 8


def test_free_machines_beside_others_are_refused():
    with pytest.raises(tt.InputError, match="'node' is for free"):
        tt.Cloud({"node": FREE["node"], "rented": tt.VM(vcpus=4, memory_gib=16, price_per_hour=1.0)})
