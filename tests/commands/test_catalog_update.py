"""Prices fetched from providers: fakes on this machine that answer as the providers document it."""

import datetime
import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.stub import Stubber
from moto.server import ThreadedMotoServer

from trimtuner import cli
from trimtuner.commands.catalog.aws import _spot_prices
from trimtuner.problem.catalog import listings_of_file

KEY = "a-key-that-nobody-may-see"


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process: its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["trimtuner", "catalog", "update", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return run


@contextmanager
def server(answer):
    """A web server on this machine: ``answer`` gets the request and gives (status, body); yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            length = int(self.headers.get("Content-Length") or 0)
            status, body = answer(self, self.rfile.read(length))
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in getattr(self, "extra", {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815  (the names are those of the standard library)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


# --- azure


def meter(size, price, sku=None, product="Virtual Machines Dsv5 Series", **changes):
    return {
        "armSkuName": size,
        "skuName": sku or size,
        "productName": product,
        "retailPrice": price,
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        **changes,
    }


AZURE = [
    [
        meter("Standard_D4s_v5", 0.192),
        meter("Standard_D4s_v5", 0.376, product="Virtual Machines Dsv5 Series Windows"),
        meter("Standard_D4s_v5", 0.05, sku="D4s v5 Spot"),
        meter("Standard_D4s_v5", 0.04, sku="D4s v5 Low Priority"),
    ],
    [
        meter("Standard_NC24ads_A100_v4", 3.673),
        meter("Standard_E8s_v5", 0.504, unitOfMeasure="1 Month"),
        meter("Standard_E16s_v5", 0.0),
        meter("Standard_Unheard_v9", 1.0),
    ],
]


def azure_answer(address_of_next):
    def answer(request, _):
        query = parse_qs(urlsplit(request.path).query)
        if "page" in query:
            return 200, {"Items": AZURE[1], "NextPageLink": None}
        assert query["currencyCode"] == ["USD"]
        assert "armRegionName eq 'westeurope'" in query["$filter"][0]
        assert "serviceName eq 'Virtual Machines'" in query["$filter"][0]
        return 200, {"Items": AZURE[0], "NextPageLink": address_of_next(request)}

    return answer


def test_azure_prices_are_those_of_linux_on_demand_and_spot_over_all_pages(tmp_path, command):
    with server(azure_answer(lambda request: f"http://{request.headers['Host']}/next?page=2")) as address:
        output = tmp_path / "prices.csv"
        code, _, err = command("azure", "--region", "westeurope", "--output", output, "--address", address)
    assert (code, err) == (0, "")
    found = {one.vm_type: one for one in listings_of_file(output)}
    assert set(found) == {"Standard_D4s_v5", "Standard_NC24ads_A100_v4"}
    small, large = found["Standard_D4s_v5"], found["Standard_NC24ads_A100_v4"]
    assert (small.vm.price_per_hour, small.vm.spot_price_per_hour) == (0.192, 0.05)
    assert (small.vm.vcpus, small.vm.memory_gib) == (4, 16.0)
    assert (large.vm.price_per_hour, large.vm.spot_price_per_hour, large.vm.gpus, large.gpu) == (3.673, None, 1, "A100")
    assert (small.quote.provider, small.quote.region) == ("azure", "westeurope")
    assert small.quote.date
    assert small.quote.source == "azure retail prices"


def test_a_next_page_on_another_host_is_not_followed(tmp_path, command):
    with server(azure_answer(lambda _: "http://192.0.2.1/elsewhere?page=2")) as address:
        output = tmp_path / "prices.csv"
        code, _, err = command("azure", "--region", "westeurope", "--output", output, "--address", address)
    assert code == 2
    assert "another host" in err
    assert list(tmp_path.iterdir()) == []


def moved(request, _):
    request.extra = {"Location": "http://192.0.2.1/"}
    return 302, b""


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda *_: (503, b"later"), "answered 503"),
        (moved, "answered 302"),
        (lambda *_: (200, b"<html>"), "did not answer with JSON"),
        (lambda *_: (200, [1]), "did not answer with a price list"),
        (lambda *_: (200, {"Items": 3}), "did not answer with a list of prices"),
        (lambda *_: (200, {"Items": []}), "azure has no machines in 'eastus'"),
    ],
)
def test_an_answer_that_is_no_price_list_is_told_and_nothing_is_written(tmp_path, command, answer, complaint):
    with server(answer) as address:
        code, out, err = command("azure", "--output", tmp_path / "prices.csv", "--address", address)
    assert (code, out) == (2, "")
    assert complaint in err
    assert "--from-csv" in err
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_cannot_be_reached_is_told(tmp_path, command):
    with server(lambda *_: (200, {})) as address:
        pass  # its port is free again
    code, _, err = command("azure", "--output", tmp_path / "prices.csv", "--address", address)
    assert code == 2
    assert "cannot be reached" in err
    assert command("azure", "--output", tmp_path / "p.csv", "--address", "file:///etc/passwd")[0] == 2


# --- google


def sku(description, usd, usage="OnDemand", regions=("us-central1",)):
    units, nanos = int(usd), round((usd - int(usd)) * 1e9)
    return {
        "description": description,
        "category": {"usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": {"tieredRates": [{"unitPrice": {"units": str(units), "nanos": nanos}}]}}],
    }


GOOGLE = [
    sku("N2 Instance Core running in Americas", 0.03),
    sku("N2 Instance Ram running in Americas", 0.004),
    sku("Spot Preemptible N2 Instance Core running in Americas", 0.01, "Preemptible"),
    sku("Spot Preemptible N2 Instance Ram running in Americas", 0.001, "Preemptible"),
    sku("N2 Custom Instance Core running in Americas", 9.0),
    sku("N2 Instance Core running in Frankfurt", 9.0, regions=("europe-west3",)),
    sku("G2 Instance Core running in Americas", 0.025),
    sku("G2 Instance Ram running in Americas", 0.003),
    sku("Nvidia L4 GPU running in Americas", 0.56),
    sku("Compute optimized Core running in Americas", 0.034),  # its memory has no price: no c2 then
    sku("Commitment v1: N2 Cpu in Americas for 1 Year", 0.02, "Commit1Yr"),
]


def google_answer(request, _):
    if request.headers["X-Goog-Api-Key"] != KEY:
        return 403, {"error": {"message": "no"}}
    assert KEY not in request.path
    token = parse_qs(urlsplit(request.path).query).get("pageToken", ["0"])[0]
    here, following = GOOGLE[int(token) : int(token) + 4], int(token) + 4
    return 200, {"skus": here, "nextPageToken": str(following) if following < len(GOOGLE) else ""}


def test_google_machine_types_cost_what_their_parts_do(tmp_path, command, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    output = tmp_path / "prices.csv"
    with server(google_answer) as address:
        code, out, err = command("gcp", "--output", output, "--key-variable", "MY_KEY", "--address", address)
    assert (code, err) == (0, "")
    found = {one.vm_type: one for one in listings_of_file(output)}
    assert {name.split("-")[0] for name in found} == {"n2", "g2"}
    n2, g2 = found["n2-standard-4"], found["g2-standard-24"]
    assert n2.vm.price_per_hour == pytest.approx(4 * 0.03 + 16 * 0.004)
    assert n2.vm.spot_price_per_hour == pytest.approx(4 * 0.01 + 16 * 0.001)
    assert g2.vm.price_per_hour == pytest.approx(24 * 0.025 + 96 * 0.003 + 2 * 0.56)
    assert g2.vm.spot_price_per_hour is None
    assert (g2.vm.gpus, g2.gpu) == (2, "L4")
    assert KEY not in out + output.read_text()


def test_a_key_that_is_missing_or_refused_is_told_and_never_shown(tmp_path, command, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    arguments = ["gcp", "--output", tmp_path / "prices.csv", "--key-variable", "MY_KEY"]
    code, _, err = command(*arguments)
    assert code == 2
    assert "MY_KEY is not set" in err
    assert "--from-csv" in err
    monkeypatch.setenv("MY_KEY", "wrong-one")
    with server(google_answer) as address:
        code, _, err = command(*arguments, "--address", address)
    assert code == 2
    assert "answered 403" in err
    monkeypatch.setenv("MY_KEY", "two\nlines")
    assert "no API key" in command(*arguments)[2]
    assert "wrong-one" not in err


def test_a_region_that_google_does_not_know_is_told(tmp_path, command, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    with server(google_answer) as address:
        code, _, err = command("gcp", "--region", "mars", "--output", tmp_path / "p.csv", "--address", address)
    assert code == 2
    assert "google has no machines in 'mars'" in err


# --- aws


def product(name, usd, unit="Hrs"):
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": name}},
            "terms": {"OnDemand": {"x.y": {"priceDimensions": {"x.y.z": dimension}}}},
        }
    )


AWS = [
    product("m5.large", "0.1000000000"),
    product("g4dn.xlarge", "0.5260000000"),
    product("c5.large", "0.0000000000"),
    product("t2.small", "9.0", unit="Quantity"),
    product("no.such", "1.0"),
]


def price_list(request, body):
    asked = json.loads(body)
    assert request.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
    filters = {one["Field"]: one["Value"] for one in asked["Filters"]}
    assert filters == {
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "regionCode": "eu-west-1",
    }
    first = int(asked.get("NextToken") or 0)
    following = {"NextToken": str(first + 2)} if first + 2 < len(AWS) else {}
    return 200, {"FormatVersion": "aws_v1", "PriceList": AWS[first : first + 2], **following}


@pytest.fixture
def aws(monkeypatch):
    """Credentials that are none, and no service of the world within reach."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    return monkeypatch


def test_aws_prices_come_with_facts_and_spot_prices(tmp_path, command, aws):
    machines = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    machines.start()
    try:
        with server(price_list) as address:
            host, port = machines.get_host_and_port()
            aws.setenv("AWS_ENDPOINT_URL_PRICING", address)
            aws.setenv("AWS_ENDPOINT_URL_EC2", f"http://{host}:{port}")
            output = tmp_path / "prices.csv"
            code, _, err = command("aws", "--region", "eu-west-1", "--output", output)
    finally:
        machines.stop()
    assert (code, err) == (0, "")
    found = {one.vm_type: one for one in listings_of_file(output)}
    assert set(found) == {"m5.large", "g4dn.xlarge"}
    m5, g4dn = found["m5.large"], found["g4dn.xlarge"]
    assert (m5.vm.vcpus, m5.vm.memory_gib, m5.vm.gpus, m5.vm.price_per_hour) == (2, 8.0, 0, 0.1)
    assert (g4dn.vm.vcpus, g4dn.vm.memory_gib, g4dn.vm.gpus, g4dn.gpu) == (4, 16.0, 1, "T4")
    assert (g4dn.quote.provider, g4dn.quote.region) == ("aws", "eu-west-1")


@pytest.mark.usefixtures("aws")
def test_the_spot_price_is_the_median_over_zones_of_the_last_one():
    class OneClient:
        def client(self, *_, **__):
            return client

    client = boto3.client("ec2", region_name="eu-west-1")
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    history = [
        ("a", at, "0.10"),
        ("a", at + datetime.timedelta(hours=1), "0.30"),
        ("b", at, "0.20"),
        ("c", at, "0.90"),
    ]
    answer = {
        "SpotPriceHistory": [
            {"InstanceType": "m5.large", "AvailabilityZone": zone, "Timestamp": when, "SpotPrice": price}
            for zone, when, price in history
        ]
    }
    with Stubber(client) as stub:
        stub.add_response("describe_spot_price_history", answer)
        assert _spot_prices(OneClient(), "eu-west-1") == {"m5.large": 0.30}


def test_aws_that_refuses_or_cannot_be_reached_is_told(tmp_path, command, aws):
    code, _, err = command("aws", "--output", tmp_path / "prices.csv")
    assert code == 2
    assert "aws cannot be asked: Could not connect" in err
    with server(lambda *_: (400, {"__type": "AccessDeniedException", "message": "not for you"})) as address:
        aws.setenv("AWS_ENDPOINT_URL_PRICING", address)
        code, _, err = command("aws", "--output", tmp_path / "prices.csv")
    assert code == 2
    assert "aws refuses: not for you" in err
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")
    code, _, err = command("aws", "--output", tmp_path / "prices.csv")
    assert code == 2
    assert "Unable to locate credentials" in err
    assert list(tmp_path.iterdir()) == []


def test_without_boto3_it_is_told_how_to_get_it(tmp_path, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    code, _, err = command("aws", "--output", tmp_path / "prices.csv")
    assert code == 2
    assert "pip install 'trimtuner[aws]'" in err
