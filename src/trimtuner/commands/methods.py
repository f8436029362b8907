"""The table of methods, as ``trimtuner methods`` prints it."""

from __future__ import annotations

from trimtuner.study.telling import table_text
from trimtuner.tuning.recipes import METHODS


def describe_methods() -> list[dict[str, object]]:
    """Every method, in plain values."""
    return [
        {"name": m.name, "optimises": m.optimises, "needs": m.needs, "use": m.use, "options": dict(m.options)}
        for m in METHODS.values()
    ]


def text_of_methods() -> str:
    """One line a method, for a person."""
    rows = [[method.name, method.optimises, method.needs, method.use] for method in METHODS.values()]
    lines = [table_text(["method", "optimises", "needs", "use it for"], rows)]
    lines += ["", "Options, as in nephele:horizon=1 (defaults shown):"]
    for method in METHODS.values():
        options = ", ".join(f"{name}={_written(default)}" for name, default in method.options.items())
        lines += [f"  {method.name:<14}{options}"] if options else []
    return "\n".join(lines)


def _written(value: object) -> str:
    """As it is typed on the command line."""
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
