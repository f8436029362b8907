"""Why machines are gone: what AWS says of it, in the kinds that the study knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.ec2 import Instance
from trimtuner.engines.protocol import LOST, PREEMPTED, STOPPED, TIMEOUT, UNAVAILABLE

_TAKEN = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")
_REQUEST_TAKEN = ("instance-terminated-by-price", "instance-terminated-no-capacity", "marked-for-termination")
_BY_ITSELF = "Client.InstanceInitiatedShutdown"
_NEVER_RAN = ("Server.InsufficientInstanceCapacity", "Client.VolumeLimitExceeded", "Client.InternalError")


class UnpricedEnd(NamedTuple):
    """How an attempt ended, before the money is counted."""

    kind: str | None
    detail: str


class Over(Exception):  # noqa: N818  (an ending, not a fault)
    """The attempt is over; only its machines are to be cleared away."""

    def __init__(self, kind: str | None, detail: str) -> None:
        super().__init__(detail)
        self.end = UnpricedEnd(kind, detail)


def why_gone(machines: Sequence[Instance], spot_codes: Mapping[str, str], now: float, lifetime: float) -> Over:
    """Why the attempt cannot go on, from those of its machines that are gone."""
    gone = [one for one in machines if not one.is_alive]
    if any(naming.STOP in one.tags for one in machines):
        return Over(STOPPED, "ended on request")
    for one in gone:
        code = spot_codes.get(one.spot_request or "", "")
        if one.reason in _TAKEN or code in _REQUEST_TAKEN:
            return Over(PREEMPTED, f"the spot machine {one.id} was taken back ({one.reason or code})")
    for one in gone:
        if one.reason in _NEVER_RAN:
            return Over(UNAVAILABLE, f"the machine {one.id} never ran ({one.reason})")
        if one.reason == _BY_ITSELF and (one.ended or now) >= one.launched + lifetime - 60.0:
            return Over(TIMEOUT, f"the machine {one.id} ended itself after {lifetime:.0f} s, as it was told to")
    if not gone:
        return Over(LOST, "its machines are gone, and no longer to be seen")
    one = gone[0]
    how = "shut itself down" if one.reason == _BY_ITSELF else "was terminated, and not by us"
    return Over(LOST, f"the machine {one.id} {how} ({one.reason or 'no reason given'})")
