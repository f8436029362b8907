"""``trimtuner catalog list``, CSVs of one's own, and warnings about old prices."""

import csv
import datetime
import io
import json
import sys

import pytest

from trimtuner import cli
from trimtuner.commands.catalog.azure import size_named
from trimtuner.commands.catalog.gcp import MACHINE_TYPES
from trimtuner.commands.catalog.listing import Wish, as_text, built_in_lines
from trimtuner.jobs.load import load_job
from trimtuner.jobs.validation import validate_text, validation
from trimtuner.problem.catalog import DEFAULT_REGIONS, built_in_listings, listings_of_file
from trimtuner.problem.price_ages import age_warnings, months_between
from trimtuner.problem.vms import Quote

HEADER = "vm_type,vcpus,memory_gib,price_per_hour"
TODAY = datetime.date(2026, 11, 16)


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process: its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["trimtuner", "catalog", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return run


# --- listing


def test_without_a_region_each_provider_is_listed_in_its_default_one():
    lines = built_in_lines(Wish())
    places = {(line.quote.provider, line.quote.region) for line in lines}
    assert places == {("aws", "us-east-1"), ("azure", "eastus"), ("gcp", "us-central1")}


@pytest.mark.parametrize(
    ("wish", "holds"),
    [
        (Wish(provider="gcp"), lambda one: one.quote.provider == "gcp"),
        (Wish(region="eu-*"), lambda one: one.quote.region in ("eu-west-1", "eu-central-1")),
        (Wish(vm_type="G5.*"), lambda one: one.vm_type.startswith("g5.")),
        (Wish(min_vcpus=8, max_vcpus=16), lambda one: 8 <= one.vm.vcpus <= 16),
        (Wish(min_memory_gib=100.0), lambda one: one.vm.memory_gib >= 100),
        (Wish(gpu="a10g"), lambda one: one.gpu == "A10G"),
        (Wish(min_gpus=4), lambda one: one.vm.gpus >= 4),
        (Wish(max_price=0.05), lambda one: one.vm.price_per_hour <= 0.05),
    ],
)
def test_a_filter_keeps_exactly_the_lines_that_satisfy_it(wish, holds):
    places = [("aws", "us-east-1"), ("azure", "eastus"), ("gcp", "us-central1")]
    every = [one for provider in ("aws", "azure", "gcp") for one in built_in_listings(provider)]
    in_place = [one for one in every if wish.region or (one.quote.provider, one.quote.region) in places]
    assert built_in_lines(wish) == [one for one in in_place if holds(one)]


def test_the_list_is_by_price_unless_asked_otherwise(command):
    _, out, _ = command("list", "--json")
    prices = [one["price_per_hour"] for one in json.loads(out)["types"]]
    assert prices == sorted(prices)
    _, out, _ = command("list", "--json", "--sort", "memory")
    sizes = [one["memory_gib"] for one in json.loads(out)["types"]]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(("provider", "date"), [("aws", "2025-03-02"), ("azure", "2020-08-30")])
def test_the_table_fits_a_narrow_terminal_and_says_where_its_prices_are_from(command, provider, date):
    code, out, err = command("list", "--region", "*", "--provider", provider)
    assert code == 0
    *table, count = out.splitlines()
    assert max(map(len, table)) <= 80
    assert table[0].split() == ["provider", "region", "type", "vCPUs", "GiB", "GPUs", "USD/h"]
    assert len({line.rindex(".") for line in table[1:] if "." in line}) == 1  # prices are aligned
    assert count.startswith(f"{len(table) - 1} types, from apache-libcloud 3.9.1 ({date})")
    assert f"warning: prices of {provider} in {DEFAULT_REGIONS[provider]} are of {date}" in err


def test_spot_prices_have_a_column_where_any_is_known(command):
    _, out, _ = command("list", "--gpu", "L4", "--provider", "gcp")
    head, first, *_ = out.splitlines()
    assert head.split()[-2:] == ["USD/h", "spot"]
    assert first.split()[-2:] == ["0.7068", "0.2818"]  # g2-standard-4, as Google lists it for us-central1


def test_a_spot_price_is_shown_where_there_is_one(tmp_path, command):
    (tmp_path / "own.csv").write_text(
        f"{HEADER},spot_price_per_hour,spot_interruptions_per_hour\na,2,4,0.5,0.125,0.05\nb,2,4,0.6,,\n"
    )
    _, out, err = command("list", "--file", tmp_path / "own.csv")
    assert out.splitlines() == [
        "type  vCPUs  GiB   USD/h    spot  interruptions/h",
        "a         2    4  0.5000  0.1250           0.0500",
        "b         2    4  0.6000",
        "2 types",
    ]
    assert err == ""


def test_what_is_listed_as_csv_is_a_catalog_again(tmp_path, command):
    _, out, _ = command("list", "--provider", "aws", "--region", "eu-west-1", "--csv")
    (tmp_path / "again.csv").write_text(out)
    again = sorted(listings_of_file(tmp_path / "again.csv"), key=lambda one: one.vm_type)
    first = sorted(built_in_lines(Wish("aws", "eu-west-1")), key=lambda one: one.vm_type)
    assert again == first
    assert [one.quote for one in again] == [one.quote for one in first]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["list", "--provider", "awz"], "'awz' is none of aws, azure, gcp; did you mean 'aws'?"),
        (["list", "--region", "mars-1"], "no region is like 'mars-1'; there are ap-northeast-1"),
        (["list", "--gpu", "H900"], "none of 575 lines is like that"),
        (["list", "--sort", "prize"], "--sort 'prize' is none of price, type, vcpus, memory; did you mean 'price'?"),
        (["list", "--json", "--csv"], "--json or --csv, not both"),
        (["list", "--file", "absent.csv"], "there is no file 'absent.csv'"),
        (["update", "--output", "x.csv"], "name a provider (aws, azure or gcp), or give --from-csv FILE"),
        (["update", "ibm", "--output", "x.csv"], "'ibm' is none of aws, azure, gcp"),
        (["update", "aws", "--from-csv", "a.csv", "--output", "x.csv"], "not both"),
        (["update", "--from-csv", "a.csv", "--region", "r", "--output", "x.csv"], "has its own region"),
        (["update", "--from-csv", "absent.csv", "--output", "x.csv"], "there is no file 'absent.csv'"),
        (["update", "azure", "--output", "nowhere/x.csv"], "there is no folder nowhere to write x.csv to"),
        (["update", "azure", "--output", "prices.txt"], "must end with .csv"),
        (["update", "aws", "--address", "http://127.0.0.1:1", "--output", "x.csv"], "--address is not for aws"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path, monkeypatch, command, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("trimtuner: ")
    assert complaint in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- a CSV of one's own


def test_a_csv_of_ones_own_comes_out_checked_ordered_and_dated(tmp_path, command):
    (tmp_path / "mine.csv").write_text(
        "price_per_hour,vm_type,note,memory_gib,vcpus,date\n0.50,a,old,4.0,2,2024-02-29\n1e0,b,,8,4,\n"
    )
    code, out, _ = command("update", "--from-csv", tmp_path / "mine.csv", "--output", tmp_path / "prices.csv")
    assert code == 0
    assert "2 types; name it in the job file: cloud: {catalog: prices.csv, …}" in out
    first, second = csv.DictReader(io.StringIO((tmp_path / "prices.csv").read_text()))
    assert (first["vm_type"], first["price_per_hour"], first["date"]) == ("a", "0.5", "2024-02-29")
    assert (second["vm_type"], second["price_per_hour"]) == ("b", "1")
    assert second["date"] == datetime.date.today().isoformat()
    assert second["source"] == "mine.csv"
    assert "note" not in first


def test_no_spreadsheet_runs_a_catalog_and_it_is_read_as_it_was(tmp_path, command):
    (tmp_path / "=mine.csv").write_text(f"{HEADER},gpu,region\na,2,4,1,=cmd|x,@here\n")
    for source, output in (("=mine.csv", "prices.csv"), ("prices.csv", "again.csv")):
        assert command("update", "--from-csv", tmp_path / source, "--output", tmp_path / output)[0] == 0
        (row,) = csv.DictReader(io.StringIO((tmp_path / output).read_text()))
        assert (row["gpu"], row["region"], row["source"]) == ("'=cmd|x", "'@here", "'=mine.csv")


def test_a_csv_with_a_fault_leaves_the_old_catalog_as_it_was(tmp_path, command):
    (tmp_path / "mine.csv").write_text(f"{HEADER}\na,2,4,free\n")
    (tmp_path / "prices.csv").write_text("what was there")
    code, _, err = command("update", "--from-csv", tmp_path / "mine.csv", "--output", tmp_path / "prices.csv")
    assert code == 2
    assert "mine.csv:2.price_per_hour: 'free' is not a price" in err
    assert (tmp_path / "prices.csv").read_text() == "what was there"


# --- how old prices are


@pytest.mark.parametrize(
    ("earlier", "later", "months"),
    [
        ("2026-05-16", "2026-11-16", 6),
        ("2026-05-17", "2026-11-16", 5),
        ("2025-03-02", "2026-11-16", 20),
        ("2026-11-16", "2026-11-16", 0),
        ("2024-02-29", "2025-02-28", 11),
    ],
)
def test_months_are_whole_ones(earlier, later, months):
    assert months_between(datetime.date.fromisoformat(earlier), datetime.date.fromisoformat(later)) == months


def test_prices_are_old_from_half_a_year_on_and_the_oldest_of_a_region_counts():
    quotes = [Quote("aws", "us-east-1", "2026-11-01"), Quote("aws", "us-east-1", "2025-03-02"), None, Quote()]
    young = [Quote("gcp", "us-central1", "2026-05-17"), Quote("me", "", "2026-06-01")]
    assert list(age_warnings([*quotes, *young], TODAY)) == [
        "prices of aws in us-east-1 are of 2025-03-02, 20 months old; refresh them with: "
        "trimtuner catalog update aws --region us-east-1 --output prices.csv"
    ]


def test_old_prices_of_ones_own_are_told_too():
    assert list(age_warnings([Quote("", "", "2026-05-16")], TODAY)) == [
        "prices are of 2026-05-16, 6 months old; look them up again and write the new date into the CSV"
    ]


JOB = """\
name: aged
goal: {maximize: accuracy}
budget: {money: 10 USD}
parameters: {rate: {values: [0.1, 0.2]}}
cloud: {CLOUD}
run: {command: [sh, -c, "true", "{rate}"]}
"""


def job_with(folder, cloud):
    (folder / "aged.yaml").write_text(JOB.replace("{CLOUD}", cloud))
    return load_job(folder / "aged.yaml")


def test_validate_warns_of_old_prices_and_calls_the_job_valid(tmp_path):
    job = job_with(tmp_path, "{catalog: aws, region: eu-west-1, vm_type: [m6i.large]}")
    found = validation(job, {})
    assert found["is_valid"]
    (warning,) = found["warnings"]
    assert warning.startswith("prices of aws in eu-west-1 are of 2025-03-02, ")
    assert f"warning: {warning}" in validate_text(job, {})


@pytest.mark.parametrize(
    "cloud",
    [
        "{vms: {mine: {vcpus: 1, memory_gib: 2, price_per_hour: 1}}}",
        # A price written in the job file replaces the old one.
        "{catalog: aws, vm_type: [t2.small], vms: {t2.small: {vcpus: 1, memory_gib: 2, price_per_hour: 0.03}}}",
        "{catalog: new.csv}",
        "{catalog: undated.csv}",
    ],
)
def test_validate_says_nothing_of_prices_that_are_young_or_the_users_own(tmp_path, cloud):
    (tmp_path / "new.csv").write_text(f"{HEADER},date\na,2,4,0.5,{datetime.date.today().isoformat()}\n")
    (tmp_path / "undated.csv").write_text(f"{HEADER}\na,2,4,0.5\n")
    assert validation(job_with(tmp_path, cloud), {})["warnings"] == []


# --- what names of machines tell


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_gib", "gpus"),
    [
        ("Standard_D4s_v3", 4, 16, 0),
        ("Standard_D96as_v4", 96, 384, 0),
        ("Standard_E64s_v3", 64, 432, 0),
        ("Standard_E64_v4", 64, 504, 0),
        ("Standard_E64as_v4", 64, 512, 0),
        ("Standard_E96ds_v5", 96, 672, 0),
        ("Standard_F72s_v2", 72, 144, 0),
        ("Standard_NC64as_T4_v3", 64, 440, 4),
    ],
)
def test_an_azure_size_is_told_by_its_name(name, vcpus, memory_gib, gpus):
    size = size_named(name)
    assert (size.vcpus, size.memory_gib, size.gpus) == (vcpus, memory_gib, gpus)


@pytest.mark.parametrize("name", ["Standard_D3_v2", "Standard_B2ms", "Standard_D4ls_v5", "Standard_E4-2s_v4", "D4"])
def test_an_azure_size_whose_name_does_not_tell_is_nothing(name):
    assert size_named(name) is None


def test_google_machine_types_have_the_memory_of_their_series():
    facts = {name: (m.vcpus, m.memory_gib, m.gpus) for name, m in MACHINE_TYPES.items()}
    assert facts["n1-standard-1"] == (1, 3.75, 0)
    assert facts["n1-highmem-96"] == (96, 624.0, 0)
    assert facts["n2d-standard-224"] == (224, 896.0, 0)
    assert facts["a2-highgpu-8g"] == (96, 680.0, 8)
    assert facts["g2-standard-24"] == (24, 96.0, 2)


def test_a_table_of_one_line_is_a_table():
    (line, *_) = built_in_listings("gcp")
    assert as_text([line]).splitlines()[1].split()[:3] == ["gcp", line.quote.region, line.vm_type]
