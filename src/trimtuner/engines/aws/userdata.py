"""What a machine is told at its birth: whom to let in, how to be known, and when to end itself."""

from __future__ import annotations

import json

from trimtuner.engines.aws.keys import KeyPair


def user_data(host: KeyPair, authorized: str | None, minutes: int) -> str:
    """A cloud-config; JSON is YAML. The timer ends the machine even if nobody ever logs in."""
    told: dict[str, object] = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],  # no host key but ours
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "runcmd": [["shutdown", "-P", f"+{minutes:d}"]],
    }
    if authorized is not None:
        told["ssh_authorized_keys"] = [authorized]
    return "#cloud-config\n" + json.dumps(told, indent=1) + "\n"
