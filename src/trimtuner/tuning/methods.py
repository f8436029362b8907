"""Methods by name: ``nephele``, or with options ``nephele:horizon=1,trees=10``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args, get_type_hints

from trimtuner.errors import InputError, nearest
from trimtuner.tuning.recipe import Recipe


@dataclass(frozen=True)
class Method:
    """A named way to a recipe: a function of options, and what to tell who chooses."""

    name: str
    make: Callable[..., Recipe]
    optimises: str
    needs: str
    use: str

    @property
    def options(self) -> Mapping[str, object]:
        """Each option with its default."""
        return {name: option.default for name, option in inspect.signature(self.make).parameters.items()}

    def recipe(self, options: Mapping[str, object]) -> Recipe:
        """The recipe with these options; an error names the option that is wrong, and the right ones."""
        return self.make(**self.chosen(options))

    def chosen(self, options: Mapping[str, object]) -> dict[str, object]:
        """Every option with its value: as given, or its default."""
        hints = get_type_hints(self.make)
        values = {**self.options}
        for name, given in options.items():
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise InputError(
                    f"method {self.name!r} has no option {name!r}; its options are {known}{nearest(name, self.options)}"
                )
            values[name] = _converted(f"option {name} of method {self.name!r}", given, hints[name])
        return values


def split_text(text: str) -> tuple[str, dict[str, str]]:
    """The name and the options of a text such as ``name:key=value,key=value``."""
    name, _, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"method {text!r}: {part!r} is not of the form option=value, such as horizon=1")
        if key.strip() in options:
            raise InputError(f"method {text!r} gives {key.strip()} twice")
        options[key.strip()] = value.strip()
    return name.strip(), options


def _converted(where: str, value: object, hint: object) -> object:
    """The value as the option's type, from a text or as given."""
    choices = [choice for choice in get_args(hint) if isinstance(choice, str)]
    if choices:
        if value in choices:
            return value
        raise InputError(f"{where}: {value!r} is none of {', '.join(choices)}{nearest(str(value), choices)}")
    kinds = get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return None
    kind = kinds[0]
    if kind is bool:
        if value in (True, "true", "yes"):
            return True
        if value in (False, "false", "no"):
            return False
        raise InputError(f"{where}: {value!r} is neither true nor false")
    try:
        number = kind(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | kind):
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{where}: {value!r} is not {what}")
    return number
