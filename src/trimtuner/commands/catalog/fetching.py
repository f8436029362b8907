"""JSON from a provider's price list over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import TypeAlias

from trimtuner.errors import InputError, TrimTunerError

JsonObject: TypeAlias = "dict[str, object]"

_TIMEOUT_SECONDS = 60.0
_LARGEST_ANSWER = 64 * 2**20  # bytes
_LONGEST_SHOWN = 200


class PricesUnreachable(TrimTunerError):  # noqa: N818  (named by what the caller learns)
    """The provider did not answer, or not with prices; try again, or write a CSV of your own."""


def fetch_json(address: str, headers: Mapping[str, str] | None = None) -> JsonObject:
    """The object at the address; headers may hold a key and are told to nobody else."""
    host = _host(address)
    request = urllib.request.Request(address, headers={"Accept": "application/json", **(headers or {})})  # noqa: S310
    try:
        with _opener().open(request, timeout=_TIMEOUT_SECONDS) as answer:
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


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects)


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
