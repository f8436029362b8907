"""What the price lists of all providers share: whose prices, machines without a price, and JSON over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from trimtuner.errors import InputError, TrimTunerError
from trimtuner.problem.catalog import DEFAULT_REGIONS, Listing
from trimtuner.problem.vms import VM, Quote

JsonObject: TypeAlias = "dict[str, object]"

_TIMEOUT_SECONDS = 60.0
_LARGEST_ANSWER = 64 * 2**20  # bytes
_LONGEST_SHOWN = 200
_MOST_PAGES = 500


class PricesUnreachable(TrimTunerError):  # noqa: N818  (named by what the caller learns)
    """The provider did not answer, or not with prices; try again, or write a CSV of your own."""


@dataclass(frozen=True)
class PriceRequest:
    """Whose prices to fetch, and how to get at them."""

    provider: str
    region: str | None
    date: str  # of today, ISO 8601
    key_variable: str  # the environment variable that holds google's key
    address: str | None  # of the price list, where it is not the provider's own

    @property
    def place(self) -> str:
        """The region, or the provider's default."""
        return self.region or DEFAULT_REGIONS[self.provider]

    def quote(self, source: str) -> Quote:
        """Where the prices come from."""
        return Quote(self.provider, self.place, self.date, source)


@dataclass(frozen=True)
class MachineFacts:
    """What a type of machine is, whatever it costs."""

    vcpus: int
    memory_gib: float
    gpus: int = 0
    gpu: str = ""  # its name, such as A100

    def listing(self, name: str, price: float, spot: float | None, quote: Quote) -> Listing:
        """The type with its prices in USD per hour."""
        return Listing(name, VM(self.vcpus, self.memory_gib, price, self.gpus, spot, quote=quote), self.gpu)


def no_machines(provider: str, region: str) -> PricesUnreachable:
    """The error for a region without any price."""
    return PricesUnreachable(f"{provider} has no machines in {region!r}; is that how it spells the region?{hint()}")


def fetch_items(
    provider: str,
    address: str,
    key: str,
    next_page: Callable[[JsonObject], str | None],
    headers: Mapping[str, str] | None = None,
) -> Iterator[JsonObject]:
    """What all pages of a price list hold under the key; ``next_page`` is where an answer says that it goes on."""
    page: str | None = address
    for _ in range(_MOST_PAGES):
        if page is None:
            return
        answer = fetch_json(page, headers)
        items = answer.get(key, [])
        if not isinstance(items, list):
            raise PricesUnreachable(f"{provider} did not answer with a list of prices{hint()}")
        yield from (item for item in items if isinstance(item, dict))
        page = next_page(answer)
    raise PricesUnreachable(f"{provider} sent more than {_MOST_PAGES} pages of prices")


def fetch_json(address: str, headers: Mapping[str, str] | None = None) -> JsonObject:
    """The object at the address; headers may hold a key and are told to nobody else."""
    host = _host(address)
    request = urllib.request.Request(address, headers={"Accept": "application/json", **(headers or {})})  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_SECONDS) as answer:
            content = answer.read(_LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise PricesUnreachable(f"{host} answered {error.code} {error.reason}{hint()}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise PricesUnreachable(f"{host} cannot be reached ({reason}){hint()}") from None
    return _decoded(host, content)


def hint() -> str:
    """What is always possible instead."""
    return "; try again, or write a CSV of your own: trimtuner catalog update --from-csv FILE --output prices.csv"


def require_same_host(address: str, base: str) -> str:
    """The address of a next page, which must be on the host of the first."""
    if urllib.parse.urlsplit(address)[:2] != urllib.parse.urlsplit(base)[:2]:
        raise PricesUnreachable(f"{_host(base)} sends us to another host for the next page; that is not followed")
    return address


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A price list does not move; a key must not follow it elsewhere if it does."""

    def redirect_request(self, *_: object) -> None:
        return None


def _host(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"{address[:_LONGEST_SHOWN]!r} is no web address")
    return parts.netloc


def _decoded(host: str, content: bytes) -> JsonObject:
    if len(content) > _LARGEST_ANSWER:
        raise PricesUnreachable(f"{host} sent more than {_LARGEST_ANSWER // 2**20} MiB in one answer")
    try:
        found = json.loads(content)
    except ValueError:
        raise PricesUnreachable(f"{host} did not answer with JSON{hint()}") from None
    if not isinstance(found, dict):
        raise PricesUnreachable(f"{host} did not answer with a price list{hint()}")
    return found
