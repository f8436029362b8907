"""What ``trimtuner doctor`` tells of supervising on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from trimtuner.engines.checks import Check, fine, warning


def check_fence() -> Iterator[Check]:
    """What holds the processes of a trial on this machine, in case their supervisor is killed."""
    if sys.platform != "linux":
        return
    from trimtuner.engines.supervising import fence  # which needs Linux to be imported

    kind = fence.kind_here()
    if kind == fence.TAGS_ONLY:
        lost = "a child that leaves its session and environment survives a killed supervisor"
        advice = "run under 'systemd-run --user --scope -p Delegate=yes', or where cgroup v2 can be written to"
        yield warning("fence", f"trials are fenced by {kind}: {lost}", advice)
    else:
        kept = "what they start ends with them, also when their supervisor is killed"
        yield fine("fence", f"trials are fenced by a {kind}: {kept}")
