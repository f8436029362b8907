"""``python -m trimtuner``."""

from trimtuner.front.cli import main

main()
