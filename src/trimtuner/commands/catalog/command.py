"""``trimtuner catalog``: only light imports here; what a command needs is imported when it runs."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from trimtuner.errors import InputError

app = typer.Typer(
    name="catalog",
    help="Machines and their prices: list those built in, or fetch today's into a CSV for a job file.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _catalog() -> None:
    pass


@app.command(name="list")
def list_(
    provider: Annotated[str | None, typer.Option(help="aws, azure or gcp. [default: all]")] = None,
    region: Annotated[
        str | None, typer.Option(help="Such as eu-west-1, or a pattern: 'eu-*'. [default: one of each provider's]")
    ] = None,
    vm_type: Annotated[str | None, typer.Option("--type", help="A pattern such as 'g5.*'.")] = None,
    min_vcpus: Annotated[int | None, typer.Option(help="At least so many vCPUs.")] = None,
    max_vcpus: Annotated[int | None, typer.Option(help="At most so many vCPUs.")] = None,
    min_memory: Annotated[float | None, typer.Option(help="At least so much memory, in GiB.")] = None,
    gpu: Annotated[str | None, typer.Option(help="With this GPU, such as A10G.")] = None,
    gpus: Annotated[int | None, typer.Option(help="At least so many GPUs.")] = None,
    max_price: Annotated[float | None, typer.Option(help="At most so many USD per hour, on demand.")] = None,
    sort: Annotated[str, typer.Option(help="By price, type, vcpus or memory.")] = "price",
    file: Annotated[Path | None, typer.Option(help="A CSV of your own instead of what is built in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A catalog that a job file can name.")] = False,
) -> None:
    """List machines and their prices; warnings go to standard error."""
    from trimtuner.commands.catalog import listing
    from trimtuner.problem.price_ages import age_warnings

    if as_json and as_csv:
        raise InputError("--json or --csv, not both")
    wish = listing.Wish(provider, region, vm_type, min_vcpus, max_vcpus, min_memory, gpu, gpus, max_price)
    found = listing.built_in_lines(wish) if file is None else listing.lines_of_file(file, wish)
    found = listing.sorted_lines(found, sort)
    warnings = list(age_warnings((one.quote for one in found), datetime.date.today()))
    if as_json:
        print(json.dumps({"types": listing.as_rows(found), "warnings": warnings}, indent=2))
        return
    print(listing.as_csv(found) if as_csv else listing.as_text(found), end="" if as_csv else "\n")
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


@app.command()
def update(
    output: Annotated[Path, typer.Option(help="The CSV to write; name it in the job file: 'catalog: prices.csv'.")],
    provider: Annotated[str | None, typer.Argument(help="aws, azure or gcp.", metavar="PROVIDER")] = None,
    region: Annotated[
        str | None, typer.Option(help="Whose prices. [default: us-east-1 of aws, eastus of azure, us-central1 of gcp]")
    ] = None,
    vm_type: Annotated[str | None, typer.Option("--type", help="Only types like this, such as 'g5.*'.")] = None,
    from_csv: Annotated[
        Path | None, typer.Option(help="Take a CSV of your own instead: check it, order its columns and date it.")
    ] = None,
    key_variable: Annotated[
        str, typer.Option(help="The environment variable that holds the API key for gcp.")
    ] = "GOOGLE_API_KEY",
    address: Annotated[
        str | None, typer.Option(help="Of the price list of azure or gcp, where you reach it by another way.")
    ] = None,
) -> None:
    """Write today's prices to a CSV, dated and with their source.

    aws needs boto3 (pip install 'trimtuner[aws]') and credentials, gcp an API key, azure neither. Nothing is written
    unless all went well.
    """
    from trimtuner.commands.catalog import fetching, updating
    from trimtuner.commands.catalog.listing import as_csv
    from trimtuner.files import replace_whole

    if (provider is None) == (from_csv is None):
        raise InputError("name a provider (aws, azure or gcp), or give --from-csv FILE; not both")
    if from_csv is not None and (region is not None or address is not None):
        raise InputError("--region and --address are for a provider's prices; a CSV of your own has its own region")
    updating.check_output(output)
    today = datetime.date.today().isoformat()
    if from_csv is not None:
        found = updating.dated(from_csv, today)
    else:
        found = updating.fetched(fetching.PriceRequest(provider or "", region, today, key_variable, address))
    found = updating.like(found, vm_type)
    replace_whole(output, as_csv(found))
    print(f"wrote {output}: {len(found)} types; name it in the job file: cloud: {{catalog: {output.name}, …}}")
