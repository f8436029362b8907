"""What a mark on a picture tells, and what it stands for: the same configuration is the same mark on every picture."""

from __future__ import annotations

from dataclasses import dataclass

from trimtuner.views.drawing.svg import Attribute, element, title


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


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
