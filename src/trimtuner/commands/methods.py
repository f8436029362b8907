"""What ``trimtuner methods`` prints."""

from __future__ import annotations

from trimtuner.tuning.methods import Method
from trimtuner.tuning.recipes import METHODS


def describe_methods() -> list[dict[str, object]]:
    """Every method, in plain values."""
    return [
        {
            "name": method.name,
            "optimises": method.optimises,
            "needs": method.needs,
            "use": method.use,
            "options": dict(method.options),
        }
        for method in METHODS.values()
    ]


def text_of_methods() -> str:
    """One line a method, for a person."""
    columns = [[m.name, m.optimises, m.needs, m.use] for m in METHODS.values()]
    widths = [max(len(row[i]) for row in columns) + 2 for i in range(3)]
    heads = ["method", "optimises", "needs", "use it for"]
    lines = [_line(heads, widths), *(_line(row, widths) for row in columns)]
    lines += ["", "Options, as in nephele:horizon=1 (defaults shown):"]
    lines += [f"  {m.name:<14}{_options(m)}" for m in METHODS.values() if m.options]
    return "\n".join(lines)


def _line(row: list[str], widths: list[int]) -> str:
    return "".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip()


def _options(method: Method) -> str:
    return ", ".join(f"{name}={_written(default)}" for name, default in method.options.items())


def _written(value: object) -> str:
    """As it is typed on the command line."""
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
