"""What was seen of each claim, by the claim's name: what the figures alone do not say."""

from __future__ import annotations

from collections.abc import Mapping

ABOUT_SHARES = "TODO"

SEEN: Mapping[str, str] = {}
