"""The command line. Only light imports here and in the verbs: what one needs is imported when it runs."""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from trimtuner import __version__
from trimtuner.commands import verbs
from trimtuner.commands.catalog.command import app as catalog_app
from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, EXIT_UNREAD, VERBS
from trimtuner.errors import TrimTunerError, words_of


def app_of(word: str = "") -> typer.Typer:
    """The whole command line; for the name of a verb that verb alone, since to make the others takes time."""
    app = typer.Typer(
        name="trimtuner",
        help="Find the best configuration for a training job, mostly on small shares of its data.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        callback=_root,
    )
    files = {file.name.rstrip("_"): f"{verbs.__name__}.{file.name}" for file in pkgutil.iter_modules(verbs.__path__)}
    wanted = [files[word]] if word in files else files.values()
    for module in wanted:
        import_module(module)  # it enters itself
    entered = [VERBS[module] for module in wanted if module in VERBS]
    for _, verb in sorted(entered, key=lambda one: one[0]):
        app.command(name=verb.__name__.rstrip("_"))(verb)
    if len(app.registered_commands) != 1:
        app.add_typer(catalog_app)
    return app


def main() -> None:
    """Run the command line; an error of ours, or of the system, is one line on standard error and exit code 2."""
    try:
        try:
            app_of(sys.argv[1] if len(sys.argv) > 1 else "")()
        finally:
            sys.stdout.flush()  # here, where what goes wrong can still be said
    except TrimTunerError as error:
        # Faults of a job file begin with file and line, as editors and people expect.
        _leave(EXIT_BAD_INPUT, f"{error}\n" if hasattr(error, "lines") else f"trimtuner: {error}\n")
    except BrokenPipeError:
        _leave(EXIT_UNREAD)  # whoever reads our output has seen enough, as "head" has
    except OSError as error:
        _leave(EXIT_BAD_INPUT, f"trimtuner: {words_of(error)}\n")


def _leave(code: int, words: str = "") -> NoReturn:
    """Say it and end. What cannot be written stays unwritten: Python would try again at its end, and complain."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, words)):
        try:
            stream.write(text)
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(code) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"trimtuner {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
