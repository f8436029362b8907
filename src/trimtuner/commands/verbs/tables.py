"""The verb ``tables`` of the command line."""

from __future__ import annotations

import json

from trimtuner.commands.verbs.shared import AsJson, verb


@verb(19)
def tables(as_json: AsJson = False) -> None:
    """List the tables of measurements that replay can find by name."""
    from trimtuner.commands.replay import describe_tables

    found = describe_tables()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for table in found:
        print(
            f"{table['name']:<10} {table['configurations']:>5} configurations x {table['fractions']}   {table['title']}"
        )
