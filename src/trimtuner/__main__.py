"""``python -m trimtuner``."""

from trimtuner.cli import main

main()
