"""What Ray reads from the environment, most of it when it is first imported; so this comes before that."""

from __future__ import annotations

import os

TOKEN_FILE, TOKEN, AUTHENTICATION = "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody asked us to tell a third party
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else it prints advice about worker processes on the user's terminal
    # When the head is lost, Ray would end our process after a minute; a driver bears with trouble for longer.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "1200",
}
# Ray takes a loopback address for a mistake and listens on every interface, except where clusters are switched off,
# which is how it keeps the firewalls of other systems quiet. Then all of its daemons listen on 127.0.0.1 alone.
_ON_LOOPBACK_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def prepare_to_join() -> None:
    """For a cluster of somebody else's: its token and the rest are as the user has set them."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def prepare_to_start() -> None:
    """For a cluster of our own."""
    prepare_to_join()
    os.environ.update(_ON_LOOPBACK_ALONE)
    os.environ[AUTHENTICATION] = "token"
    os.environ.pop(TOKEN, None)  # it would go before the token of our cluster, which is in a file
