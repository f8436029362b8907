"""Values as JSON text and back, exactly: 1, 1.0, true and "1" stay four things, and floats keep every digit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeAlias, get_args

from trimtuner.errors import InputError
from trimtuner.problem.earlier import Earlier
from trimtuner.problem.expressions import Scalar, Value
from trimtuner.problem.history import Measurement, Origin, PlaceToTest, Trial
from trimtuner.problem.values import plain_value
from trimtuner.records.errors import RecordError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_ORIGINS: dict[str, Origin] = {origin: origin for origin in get_args(Origin)}


def encode(value: object, what: str) -> str:
    """JSON in ASCII, so that any text survives any database; names stay in their order."""
    with _refusing(what):
        return json.dumps(value, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> object:
    """The value that was encoded."""
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"the record holds a text that is no JSON: {text[:60]!r} ({error}); restore a copy"
        ) from error
    return value


def encode_definition(definition: Mapping[str, object]) -> str:
    """A definition as text that does not hang on the order of its keys."""
    if not isinstance(definition, Mapping):
        raise InputError(f"the definition of a study is a dict, not {definition!r}")
    with _refusing("the definition of a study"):
        return json.dumps(definition, allow_nan=False, sort_keys=True, separators=(",", ":"))


def decode_mapping(text: str) -> dict[str, Json]:
    """The dict that was encoded."""
    value = decode(text)
    if not isinstance(value, dict):
        raise RecordError(f"the record holds {text[:60]!r} where a JSON object was expected; restore a copy")
    return value


def decode_earlier(text: str) -> Earlier:
    """The earlier study that was written down."""
    try:
        return Earlier.from_plain(decode_mapping(text))
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise RecordError(f"what the study learns from is not written down as it should be ({error})") from error


def encode_configuration(configuration: Mapping[str, Value]) -> str:
    """The configuration as JSON text, its names in their order."""
    return encode(_plain(configuration), "the configuration")


def decode_configuration(text: str) -> dict[str, Value]:
    """The configuration that was encoded."""
    return _configuration(decode(text))


def configuration_key(configuration: Mapping[str, Value]) -> str:
    """What makes two configurations the same, as in ``Space.key``: 1 is 1.0, but neither is True; order is nothing.

    A digest, because a text of any length would not fit an index. It is in files: another one takes a migration.
    """
    whole = {name: _whole(value) for name, value in _plain(configuration).items()}
    with _refusing("the configuration"):
        text = json.dumps(whole, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plain_place(configuration: Mapping[str, Value], fraction: float) -> dict[str, object]:
    """A configuration at a fraction, in values that JSON knows."""
    return {"config": _plain(configuration), "fraction": float(fraction)}


def decode_place(text: str) -> PlaceToTest:
    """The configuration and the fraction that were written down."""
    written = decode_mapping(text)
    return _configuration(written.get("config")), float(str(written.get("fraction")))


def encode_recommended(recommended: tuple[Mapping[str, Value], float] | None) -> str | None:
    """A recommended configuration with its fraction as text."""
    return None if recommended is None else encode([_plain(recommended[0]), recommended[1]], "the recommendation")


def encode_measurements(measurements: Sequence[Measurement]) -> str:
    """Fractions and metrics as text; the configuration is the trial's."""
    rows = [
        [one.fraction, _plain(one.metrics), *([one.runs, _plain(one.spread)] if one.runs > 1 else [])]
        for one in measurements
    ]
    return encode(rows, "the measurements")


def decode_measurements(text: str, configuration: Mapping[str, Value]) -> tuple[Measurement, ...]:
    """The measurements that were encoded."""
    rows = decode(text)
    if not isinstance(rows, list):
        raise RecordError(f"the record holds {text[:60]!r} where measurements were expected; restore a copy")
    return tuple(Measurement(configuration, fraction, metrics, *repeated) for fraction, metrics, *repeated in rows)


def encode_trial(trial: Trial) -> dict[str, str | float | None]:
    """A trial in plain values; its number is for others to keep."""
    return {
        "config": encode_configuration(trial.config),
        "fraction": float(trial.fraction),
        "snapshots": encode(list(trial.snapshots), "the snapshots"),
        "origin": trial.origin,
        "recommended": encode_recommended(trial.recommended),
    }


def decode_trial(number: int, written: object) -> Trial:
    """The trial as it was asked; an error where something else is written there."""
    if not isinstance(written, Mapping):
        raise InputError(f"trial {number} is written down as {str(written)[:60]!r}, which is no trial of trimtuner")
    fraction, recommended = written.get("fraction"), written.get("recommended")
    if not isinstance(fraction, float | int):
        raise InputError(f"trial {number} is written down without a fraction that can be read")
    config, snapshots, origin = (str(written.get(name)) for name in ("config", "snapshots", "origin"))
    if origin not in _ORIGINS:
        raise RecordError(
            f"trial {number} has the origin {origin!r}, which this version does not know; update trimtuner"
        )
    fractions = decode(snapshots)
    advice = None if recommended is None else decode(str(recommended))
    if not isinstance(fractions, list) or not isinstance(advice, list | None):
        raise RecordError(f"trial {number} is not written down as it should be; restore a copy")
    said = None if advice is None else (_configuration(advice[0]), advice[1])
    return Trial(number, decode_configuration(config), float(fraction), tuple(fractions), _ORIGINS[origin], said)


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot be written down as JSON: {error}") from None


def _plain(values: Mapping[str, Value]) -> dict[str, Value]:
    for name in values:
        if not isinstance(name, str):
            raise InputError(f"the name {name!r} is no text")
    return {name: plain_value(value) for name, value in values.items()}


def _whole(value: Value) -> Value:
    return tuple(map(_whole_scalar, value)) if isinstance(value, tuple) else _whole_scalar(value)


def _whole_scalar(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _configuration(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise RecordError(f"the record holds {str(value)[:60]!r} where a configuration was expected; restore a copy")
    return {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not finite")
