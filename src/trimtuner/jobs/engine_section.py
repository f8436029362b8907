"""Where trials run: this machine, a Ray cluster, rented machines, or a table that plays them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from trimtuner.engines.aws.settings import AwsSettings
from trimtuner.engines.local.settings import LocalSettings
from trimtuner.engines.protocol import Settings
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.replay.settings import ReplaySettings
from trimtuner.jobs.fields import SECTIONS, Field, Section, one_of
from trimtuner.jobs.job import EngineChoice, EngineType
from trimtuner.jobs.quantities import duration

ENGINE_KEYS: dict[EngineType, tuple[str, ...]] = {
    "local": (),
    "ray": ("address", "copy", "wait"),
    "aws": (
        *("region", "image", "user", "key_name", "key_file", "security_groups", "subnet", "instance_profile"),
        *("disk_gib", "connect_to", "ssh_config", "setup", "exclude", "wait", "ready_within", "look_in"),
    ),
    "replay": ("table", "pace"),
}

_TYPES = tuple(ENGINE_KEYS)
MOST_PARALLEL = 1000
MOST_DISK_GIB = 65536
FASTEST = 1e9
# What AWS calls its things: letters, digits and a few signs. A text that is none of these is a mistake, or worse.
AWS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=,.@_-]{0,127}")
RAY_ADDRESS = re.compile(r"auto|(ray://)?[A-Za-z0-9.\[\]:-]{1,255}")


def read_engine(field: Field, folder: Path) -> EngineChoice:
    """The section ``engine``."""
    section = field.section(SECTIONS["engine"], "a mapping such as {type: local, parallel: 2}")
    kind: EngineType = section.read("type", lambda one: one_of(one, _TYPES), "local")
    parallel = section.read("parallel", lambda one: one.whole_number("a number of trials", 1, MOST_PARALLEL), 1)
    _refuse_keys_of_others(section, kind)
    return EngineChoice(kind, parallel, _READERS[kind](section, folder))


def _refuse_keys_of_others(section: Section, kind: EngineType) -> None:
    for key in section.keys:
        homes = [name for name, keys in ENGINE_KEYS.items() if key in keys]
        if homes and kind not in homes:
            section.faults.add(section.line(key), f"engine.{key}: it is for type {' or '.join(homes)}, this is {kind}")


def _local(_section: Section, _folder: Path) -> Settings:
    return LocalSettings()


def _ray(section: Section, _folder: Path) -> Settings:
    usual = RaySettings()
    return RaySettings(
        address=section.read("address", _address, None),
        copy=section.read("copy", lambda one: one.boolean(), None),
        wait=section.read("wait", duration, usual.wait),
    )


def _aws(section: Section, folder: Path) -> Settings:
    usual = AwsSettings()
    settings = AwsSettings(
        region=section.read("region", _aws_name, None),
        image=section.read("image", _aws_name, None),
        user=section.read("user", _aws_name, usual.user),
        key_name=section.read("key_name", lambda one: one.text("the name of a key pair"), None),
        key_file=section.read("key_file", lambda one: _path(one, folder), None),
        security_groups=section.read("security_groups", _aws_names, ()),
        subnet=section.read("subnet", _aws_name, None),
        instance_profile=section.read("instance_profile", _aws_name, None),
        disk_gib=section.read("disk_gib", lambda one: one.whole_number("a size in GiB", 1, MOST_DISK_GIB), None),
        connect_to=section.read("connect_to", lambda one: one_of(one, ("public", "private")), usual.connect_to),
        ssh_config=section.read("ssh_config", lambda one: _path(one, folder), None),
        setup=section.read("setup", _words, ()),
        exclude=section.read("exclude", _patterns, ()),
        wait=section.read("wait", duration, usual.wait),
        ready_within=section.read("ready_within", duration, usual.ready_within),
        look_in=section.read("look_in", _regions, ()),
    )
    if settings.key_name is not None and settings.key_file is None:
        section.faults.add(section.line("key_name"), "engine.key_name: it needs 'key_file', its private key")
    return settings


def _replay(section: Section, folder: Path) -> Settings:
    table = section.required("table", lambda one: _table(one, folder), "table: digits (see 'trimtuner tables')")
    pace = section.read("pace", lambda one: one.number("how many times faster", above=0, most=FASTEST), 1000.0)
    return ReplaySettings(table or "", float(pace))


_READERS: dict[EngineType, Callable[[Section, Path], Settings]] = {
    "local": _local,
    "ray": _ray,
    "aws": _aws,
    "replay": _replay,
}


def _address(field: Field) -> str:
    text = field.text("the address of a Ray cluster, such as auto or 10.0.0.7:6379")
    if not RAY_ADDRESS.fullmatch(text):
        raise field.wrong("the address of a Ray cluster, such as auto or 10.0.0.7:6379")
    return text


def _aws_name(field: Field) -> str:
    text = field.text("a name as AWS gives it")
    if not AWS_NAME.fullmatch(text):
        raise field.wrong("a name as AWS gives it, such as eu-west-1, ami-0abc1234 or sg-0abc1234")
    return text


def _aws_names(field: Field) -> tuple[str, ...]:
    return tuple(_aws_name(item) for item in field.one_or_more("a list such as [sg-0abc1234]"))


def _regions(field: Field) -> tuple[str, ...]:
    return tuple(_aws_name(item) for item in field.one_or_more("a list of regions such as [eu-west-1]"))


def _path(field: Field, folder: Path) -> Path:
    return folder / Path(field.text("the path of a file")).expanduser()


def _table(field: Field, folder: Path) -> str:
    text = field.text("the name of a table, or the path of its CSV")
    return str(folder / text) if text.lower().endswith(".csv") else text


def _words(field: Field) -> tuple[str, ...]:
    return tuple(item.as_written("a word") for item in field.items("a list of words such as [pip, install, torch]"))


def _patterns(field: Field) -> tuple[str, ...]:
    return tuple(item.text("a pattern such as '*.ckpt'") for item in field.one_or_more("a list such as ['*.ckpt']"))
