"""Why a claim does not hold here, or holds only in part: what the figures alone do not say, by the claim's name."""

from __future__ import annotations

from collections.abc import Mapping

WHY: Mapping[str, str] = {}
