"""``python -m trimtuner``."""

from trimtuner.commands.cli import main

main()
