"""The verb ``methods`` of the command line."""

from __future__ import annotations

import json

from trimtuner.commands.verbs.shared import AsJson, verb


@verb(20)
def methods(as_json: AsJson = False) -> None:
    """List the methods: what each optimises, what it needs, when to use it, and its options."""
    from trimtuner.commands.methods import describe_methods, text_of_methods

    print(json.dumps(describe_methods(), indent=2) if as_json else text_of_methods())
