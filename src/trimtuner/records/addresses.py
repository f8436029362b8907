"""Where a record is kept: a file, or a PostgreSQL database by its address, whose password is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from trimtuner.errors import InputError

EXAMPLE = "postgresql://user@host/database"

_DRIVER = "postgresql+psycopg"
DATABASES = ("postgresql", "postgres", _DRIVER)
_SECRET = ("password", "sslpassword")  # options of the address that nobody may read
_SHOWN = ("host", "port")  # options of the address that say where


@dataclass(frozen=True)
class Address:
    """A database on a PostgreSQL server. As a text it has no password."""

    url: URL = field(repr=False)  # without what is secret
    secrets: Mapping[str, str] = field(repr=False, hash=False)  # by libpq's names

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that a person wrote; an error repeats nothing of it, because a password may be in it."""
        url = _url_of(text)
        if url.drivername not in DATABASES:
            raise InputError(f"studies are kept in a file or in PostgreSQL ({EXAMPLE}), not in {url.drivername!r}")
        if "@" in f"{url.host}{url.database}":
            raise InputError(
                f"the address of the database has an @ too many; write it as {EXAMPLE}, and in a password @ as %40, "
                ": as %3A and / as %2F"
            )
        given = {"password": url.password, **{name: url.query.get(name) for name in _SECRET if name in url.query}}
        secrets = {name: str(value) for name, value in given.items() if value}
        return cls(url.difference_update_query(_SECRET)._replace(drivername=_DRIVER, password=None), secrets)

    def __str__(self) -> str:
        shown = {name: value for name, value in self.url.query.items() if name in _SHOWN}
        return self.url.set(drivername="postgresql", query=shown).render_as_string()

    @property
    def has_secret(self) -> bool:
        """Whether a password is written in it."""
        return bool(self.secrets)


Place: TypeAlias = str | Path | Address


def place_of(place: Place) -> Path | Address:
    """What a person gave: the path of a SQLite file, or the address of a server."""
    if isinstance(place, Address):
        return place
    if not isinstance(place, str | Path):
        raise InputError(f"storage={place!r} is neither a file nor the address of a database")
    if isinstance(place, Path) or "://" not in place:
        return _checked_path(str(place))
    url = _url_of(place)
    return _checked_path(url.database or "") if url.get_backend_name() == "sqlite" else Address.parse(place)


def _url_of(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(f"storage= is no address of a database; write it as {EXAMPLE}") from None


def _checked_path(text: str) -> Path:
    if not text or "\0" in text or text == ":memory:":
        raise InputError(f"{text!r} is no name of a file; for a study in memory, leave storage=None")
    return Path(text).absolute()
