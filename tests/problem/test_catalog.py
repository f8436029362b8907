"""The shipped prices, and CSVs of one's own."""

import datetime
import subprocess
import sys
from importlib import resources

import pytest

import trimtuner as tt
from trimtuner.problem.catalog import (
    DEFAULT_REGIONS,
    built_in_catalog,
    built_in_listings,
    in_region,
    listings_of_file,
    provider_named,
    read_listings,
    vms_of,
)

EVERY = [(provider, listing) for provider in DEFAULT_REGIONS for listing in built_in_listings(provider)]
# What a study before there were regions may hold; each is the provider's documented on-demand price.
FORMER = {
    "t2.nano": 0.0058,
    "t2.micro": 0.0116,
    "t2.small": 0.023,
    "t2.medium": 0.0464,
    "t2.large": 0.0928,
    "t2.xlarge": 0.1856,
    "t2.2xlarge": 0.3712,
    "m5.large": 0.096,
    "m5.xlarge": 0.192,
    "m5.2xlarge": 0.384,
    "m5.4xlarge": 0.768,
    "m5.8xlarge": 1.536,
    "m5.12xlarge": 2.304,
    "m5.16xlarge": 3.072,
    "m5.24xlarge": 4.608,
    "c5.large": 0.085,
    "c5.xlarge": 0.17,
    "c5.2xlarge": 0.34,
    "c5.4xlarge": 0.68,
    "c5.9xlarge": 1.53,
    "c5.12xlarge": 2.04,
    "c5.18xlarge": 3.06,
    "c5.24xlarge": 4.08,
    "g4dn.xlarge": 0.526,
    "g4dn.2xlarge": 0.752,
    "g4dn.12xlarge": 3.912,
    "g4dn.16xlarge": 4.352,
    "g5.xlarge": 1.006,
    "g5.2xlarge": 1.212,
    "g5.16xlarge": 4.096,
}
LIBCLOUD = "apache-libcloud 3.9.1"
SOURCES = {
    "aws": {LIBCLOUD},
    "azure": {LIBCLOUD, "karpenter-provider-azure"},
    "gcp": {LIBCLOUD, "karpenter-provider-gcp"},
}
HEADER = "vm_type,vcpus,memory_gib,price_per_hour"


def test_prices_that_studies_may_hold_are_what_they_were():
    catalog = built_in_catalog()
    assert {name: catalog[name].price_per_hour for name in FORMER} == FORMER


def test_every_provider_has_its_default_region_and_some_on_other_continents():
    for provider, region in DEFAULT_REGIONS.items():
        regions = {listing.quote.region for listing in built_in_listings(provider)}
        assert region in regions
        assert 3 <= len(regions) <= 6
        assert built_in_catalog(provider) == built_in_catalog(provider, region)


def test_every_line_says_whose_price_it_is_from_when_and_where_it_was_found():
    for provider, listing in EVERY:
        assert listing.quote.provider == provider
        assert datetime.date.fromisoformat(listing.quote.date) < datetime.date(2026, 6, 1)
        assert listing.quote.source in SOURCES[provider]


def test_no_machine_is_there_twice_in_a_region():
    names = [(provider, listing.quote.region, listing.vm_type) for provider, listing in EVERY]
    assert len(set(names)) == len(names)


def test_a_gpu_has_a_name_and_nothing_else_has_one():
    assert all(bool(listing.gpu) == (listing.vm.gpus > 0) for _, listing in EVERY)


def test_no_price_is_out_of_proportion():
    """A vCPU with its memory costs 0.1 to 12 cents an hour with every provider, a GPU machine 0.3 to 15 USD a GPU."""
    for provider, listing in EVERY:
        vm, name = listing.vm, (provider, listing.vm_type)
        if vm.gpus:
            assert 0.3 < vm.price_per_hour / vm.gpus < 15.0, name
        else:
            assert 0.001 < vm.price_per_hour / vm.vcpus < 0.12, name
        assert 0.2 <= vm.memory_gib / vm.vcpus < 25, name  # most: Azure's NV36adms, 880 GiB for 36


def test_within_a_family_a_larger_machine_is_never_cheaper():
    families = {}
    for provider, listing in EVERY:
        if not listing.vm.gpus and provider == "aws":
            family = (listing.quote.region, listing.vm_type.split(".")[0])
            families.setdefault(family, []).append((listing.vm.memory_gib, listing.vm.price_per_hour))
    assert len(families) > 60
    for family, sizes in families.items():
        prices = [price for _, price in sorted(sizes)]
        assert prices == sorted(prices), family


@pytest.mark.parametrize(
    ("provider", "region", "name", "vcpus", "memory_gib", "gpus", "price"),
    [
        ("aws", "eu-west-1", "t2.small", 1, 2, 0, 0.025),
        ("aws", "us-east-1", "g5.12xlarge", 48, 192, 4, 5.672),  # the price file has a zero here
        ("aws", "us-west-2", "p4d.24xlarge", 96, 1152, 8, 32.7726),
        ("gcp", "us-central1", "n1-standard-4", 4, 15, 0, 4 * 0.031611 + 15 * 0.004237),
        ("gcp", "us-central1", "e2-medium", 2, 4, 0, 1 * 0.02181159 + 4 * 0.00292353),
        ("gcp", "europe-west1", "n2-highmem-8", 8, 64, 0, 8 * 0.034773 + 64 * 0.004661),
        ("azure", "eastus", "Standard_D4s_v3", 4, 16, 0, 0.192),
        ("azure", "westeurope", "Standard_E64s_v3", 64, 432, 0, 4.376),
        ("azure", "eastus", "Standard_NC6s_v3", 6, 112, 1, 3.06),
        ("azure", "eastus", "Standard_ND96isr_H100_v5", 96, 1900, 8, 98.32),
        ("azure", "westus2", "Standard_NC24ads_A100_v4", 24, 220, 1, 3.673),
        ("gcp", "us-central1", "c3-standard-4", 4, 16, 0, 4 * 0.03465 + 16 * 0.003938),
        ("gcp", "us-central1", "g2-standard-48", 48, 192, 4, 4.001665),
        ("gcp", "us-central1", "a2-highgpu-8g", 96, 680, 8, 29.38708),
        ("gcp", "us-central1", "a3-highgpu-8g", 208, 1872, 8, 88.49),
    ],
)
def test_well_known_machines_cost_what_the_price_file_says(provider, region, name, vcpus, memory_gib, gpus, price):
    vm = built_in_catalog(provider, region)[name]
    assert (vm.vcpus, vm.memory_gib, vm.gpus) == (vcpus, memory_gib, gpus)
    assert vm.price_per_hour == pytest.approx(price, rel=1e-4)


def test_the_shipped_files_are_small_and_say_where_they_come_from():
    folder = resources.files("trimtuner.problem").joinpath("prices")
    files = {file.name: len(file.read_bytes()) for file in folder.iterdir()}
    assert set(files) == {"README.md", "aws.csv", "azure.csv", "gcp.csv"}
    assert sum(files.values()) < 250_000
    notice = folder.joinpath("README.md").read_text(encoding="utf-8")
    for needed in ("Apache Libcloud", "Apache License 2.0", "2025-03-02", "2020-08-30", "2023-12-18", "2026-03-28"):
        assert needed in notice


def test_importing_the_catalog_reads_no_prices():
    script = (
        "import trimtuner as tt; tt.Cloud; tt.VM; from trimtuner.problem import catalog;"
        "print(catalog.built_in_listings.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_builtin_is_another_word_for_aws():
    assert [provider_named(word) for word in ("builtin", "aws", "gcp", "azure", "prices.csv")] == [
        *("aws", "aws", "gcp", "azure"),
        None,
    ]
    assert (
        tt.Cloud(catalog="builtin", vm_types=["m6i.large"]).vms == tt.Cloud(catalog="aws", vm_types=["m6i.large"]).vms
    )


def test_another_region_has_other_prices():
    here, there = (
        tt.Cloud(catalog="aws", region=region, vm_types=["c5.large"]) for region in ("us-east-1", "ap-northeast-1")
    )
    assert here.price_per_hour(here.clusters[0]) == 0.085
    assert there.price_per_hour(there.clusters[0]) == 0.107


def test_a_csv_of_ones_own_needs_four_columns_and_may_have_all_others(tmp_path):
    (tmp_path / "plain.csv").write_text(f"{HEADER}\na,2,4,0.5\n\n")
    (vm,) = vms_of(listings_of_file(tmp_path / "plain.csv")).values()
    assert vm == tt.VM(2, 4.0, 0.5)
    (tmp_path / "full.csv").write_text(
        f"provider,region,date,gpu,gpus,spot_price_per_hour,spot_interruptions_per_hour,note,{HEADER}\n"
        "me,cellar,2026-01-31,T4,1,0.2,0.05,anything,b,2,4,0.5\n"
    )
    (listing,) = listings_of_file(tmp_path / "full.csv")
    assert listing.vm == tt.VM(2, 4.0, 0.5, 1, 0.2, 0.05)
    assert (listing.gpu, listing.quote.provider, listing.quote.region) == ("T4", "me", "cellar")
    assert listing.quote.date == "2026-01-31"


def test_a_csv_may_be_named_where_machines_are_wanted(tmp_path, monkeypatch):
    (tmp_path / "own.csv").write_text(f"region,{HEADER}\nhere,a,2,4,0.5\nthere,a,2,4,0.7\nthere,b,4,8,1.4\n")
    monkeypatch.chdir(tmp_path)
    cloud = tt.Cloud(catalog="own.csv", region="there")
    assert {name: vm.price_per_hour for name, vm in cloud.vms.items()} == {"a": 0.7, "b": 1.4}
    with pytest.raises(tt.InputError, match=r"own.csv:3: 'a' is there already; .* or name a region"):
        tt.Cloud(catalog="own.csv")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{HEADER},vcpus\na,1,1,1,1\n", "p:1: the column 'vcpus' is there twice"),
        (f"{HEADER}\na,1.5,1,1\n", "p:2.vcpus: 1.5 is not a whole number from 1 to 10000"),
        (f"{HEADER}\na,1,nan,1\n", "p:2.memory_gib: 'nan' is not an amount of memory"),
        (f"{HEADER}\na,1,1,1e999\n", "p:2.price_per_hour: 1e999 is not a price"),
        (f"{HEADER}\na,1,1,1_0\n", "p:2.price_per_hour: '1_0' is not a price"),
        (f"{HEADER}\na,1,1,-1\n", "p:2.price_per_hour: -1 is not a price"),
        (f"{HEADER},gpus\na,1,1,1,-1\n", "p:2.gpus: -1 is not a whole number from 0"),
        (f"{HEADER},date\na,1,1,1,31.1.26\n", "p:2.date: '31.1.26' is not a date such as 2026-01-31"),
        (f"{HEADER},spot_interruptions_per_hour\na,1,1,1,-1\n", "p:2.spot_interruptions_per_hour: -1 is not a number"),
        (f"{HEADER},gpu\na,1,1,1,\x1b[31m\n", r"p:2.gpu: '\\x1b\[31m' is not a short text"),
    ],
)
def test_what_is_wrong_with_a_csv_is_told_by_line_and_column(text, complaint):
    with pytest.raises(tt.InputError, match=complaint):
        read_listings("p", text)


def test_a_region_that_is_not_there_or_cannot_be_is_told():
    without = read_listings("p", f"{HEADER}\na,1,1,1\n")
    with pytest.raises(tt.InputError, match="p has no column 'region'; leave the region out"):
        in_region(without, "here", "p")
    assert in_region(without, None, "p") == without


def test_families_of_today_have_their_documented_prices():
    """On demand in us-east-1, as AWS lists them."""
    documented = {"t4g.medium": 0.0336, "m6a.large": 0.0864, "m7a.large": 0.11592, "m8g.large": 0.08976}
    documented |= {"c8g.large": 0.07976, "r7i.large": 0.1323, "r8g.large": 0.11782, "gr6.4xlarge": 1.5392}
    catalog = built_in_catalog()
    assert {name: catalog[name].price_per_hour for name in documented} == documented


def test_google_has_spot_prices_below_those_on_demand_where_it_has_any():
    spot = [listing for _, listing in EVERY if listing.vm.spot_price_per_hour is not None]
    assert {(one.quote.provider, one.quote.region) for one in spot} == {("gcp", DEFAULT_REGIONS["gcp"])}
    assert len(spot) == len([one for one in built_in_listings("gcp") if one.quote.region == DEFAULT_REGIONS["gcp"]])
    for one in spot:
        assert 0.1 < one.vm.spot_price_per_hour / one.vm.price_per_hour < 0.6, one.vm_type  # Google: 40 to 91 % less


def test_a_gpu_type_of_twice_the_gpus_costs_twice_as_much():
    for family, sizes in (
        ("a2-highgpu-{}g", (1, 2, 4, 8)),
        ("a2-ultragpu-{}g", (1, 2, 4, 8)),
        ("a3-highgpu-{}g", (1, 8)),
    ):
        catalog = built_in_catalog("gcp")
        each = {catalog[family.format(count)].price_per_hour / count for count in sizes}
        assert max(each) == pytest.approx(min(each), rel=1e-5)
    azure = built_in_catalog("azure")
    each = {azure[f"Standard_NC{24 * count}ads_A100_v4"].price_per_hour / count for count in (1, 2, 4)}
    assert max(each) == pytest.approx(min(each), rel=1e-5)
