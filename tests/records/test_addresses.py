"""Where a record is: what a person may write, and that a password in it is shown nowhere."""

from pathlib import Path

import pytest

from trimtuner.errors import InputError
from trimtuner.records.addresses import Address, place_of

SECRET = "hunter2"  # noqa: S105


@pytest.mark.parametrize("name", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_driver_need_not_be_named(name):
    address = Address.parse(f"{name}://me@host:5433/studies")
    assert str(address) == "postgresql://me@host:5433/studies"
    assert address.url.drivername == "postgresql+psycopg"
    assert not address.has_secret


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@host/studies",
        f"postgresql://me@host/studies?password={SECRET}",
        f"postgresql://me@host/studies?sslpassword={SECRET}",
    ],
)
def test_a_password_is_kept_and_never_shown(text):
    address = Address.parse(text)
    assert address.has_secret
    assert list(address.secrets.values()) == [SECRET]
    for shown in (str(address), repr(address), f"{address}", str(address.url), repr(address.url), ascii(address)):
        assert SECRET not in shown
    assert str(address) == "postgresql://me@host/studies"


def test_what_is_escaped_in_a_password_is_meant_as_written():
    assert Address.parse("postgresql://me:a%40b%3Ac%2Fd%25@host/studies").secrets == {"password": "a@b:c/d%"}


def test_a_socket_is_part_of_where():
    assert "run" in str(Address.parse("postgresql://me@/studies?host=/run/postgresql&sslmode=disable"))


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:pass@{SECRET}@host/studies",
        f"postgresql://m/e:{SECRET}@host/studies",
        f"postgresql://me:{SECRET}",
        f"mysql://me:{SECRET}@host/studies",
        f"postgresql+psycopg2://me:{SECRET}@host/studies",
        f"://{SECRET}",
    ],
)
def test_what_is_no_address_of_ours_is_refused_and_not_repeated(text):
    with pytest.raises(InputError, match="postgresql://user@host/database") as caught:
        Address.parse(text)
    assert SECRET not in str(caught.value)


def test_a_path_or_its_url_is_a_file():
    assert place_of("a.db") == place_of(Path("a.db")) == Path("a.db").absolute()
    assert place_of("sqlite:////tmp/a.db") == Path("/tmp/a.db")  # noqa: S108  (not made)
    assert place_of(Address.parse("postgres://host/a")) == place_of("postgresql://host/a")
