"""What a mark on a picture tells, and what it stands for: the same configuration is the same mark on every picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from trimtuner.problem.expressions import Value
from trimtuner.views.drawing.svg import Attribute, element, title
from trimtuner.views.words import configuration


@dataclass(frozen=True)
class Mark:
    """Words for who points at it, a line each; the keys of its configuration and its trial, where it has them."""

    told: str = ""
    key: str | None = None
    trial: int | None = None

    def drawn(self, name: str, *children: str, **attributes: Attribute) -> str:
        """The element that is this mark."""
        told = [title(self.told)] if self.told else []
        return element(name, *told, *children, **attributes, data_c=self.key, data_t=_text(self.trial))


NOTHING = Mark()


def key_of(config: Mapping[str, Value]) -> str:
    """A short name for a configuration, the same wherever it is shown."""
    return f"{crc32(configuration(dict(sorted(config.items()))).encode()):x}"


def mark_of(config: Mapping[str, Value], *lines: str, trial: int | None = None) -> Mark:
    """The mark of a configuration: what is said of it, and then its values."""
    return Mark("\n".join((*lines, configuration(config))), key_of(config), trial)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
