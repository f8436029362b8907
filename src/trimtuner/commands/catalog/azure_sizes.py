"""What Azure's VM sizes are made of, for the families whose documented names tell it.

A size such as ``Standard_D4ds_v4`` is family D, 4 vCPUs, additive features d (a local disk) and s (premium storage),
version 4. Memory follows from the family, but for a few sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """vCPUs, memory and GPUs of one size."""

    vcpus: int
    memory_gib: float
    gpus: int = 0
    gpu: str = ""


_NAME = re.compile(r"Standard_(?P<family>[DEF])(?P<vcpus>\d+)(?P<features>a?d?s?)_v(?P<version>[2-5])")
_VCPUS = {
    "D": (2, 4, 8, 16, 32, 48, 64, 96),
    "E": (2, 4, 8, 16, 20, 32, 48, 64, 96),
    "F": (2, 4, 8, 16, 32, 48, 64, 72),
}
_MEMORY_OF_EACH_GIB = {"D": 4.0, "E": 8.0, "F": 2.0}
_VERSIONS = {"D": "345", "E": "345", "F": "2"}
# The largest of family E have less than 8 GiB for each vCPU.
_LESS_MEMORY_GIB = {"E64_v3": 432.0, "E64_v4": 504.0, "E96a_v4": 672.0, "E96_v5": 672.0, "E96a_v5": 672.0}

GPU_SIZES: Mapping[str, Size] = {
    "Standard_NC4as_T4_v3": Size(4, 28.0, 1, "T4"),
    "Standard_NC8as_T4_v3": Size(8, 56.0, 1, "T4"),
    "Standard_NC16as_T4_v3": Size(16, 110.0, 1, "T4"),
    "Standard_NC64as_T4_v3": Size(64, 440.0, 4, "T4"),
    "Standard_NC6s_v3": Size(6, 112.0, 1, "V100"),
    "Standard_NC12s_v3": Size(12, 224.0, 2, "V100"),
    "Standard_NC24s_v3": Size(24, 448.0, 4, "V100"),
    "Standard_NC24rs_v3": Size(24, 448.0, 4, "V100"),
    "Standard_ND40rs_v2": Size(40, 672.0, 8, "V100"),
    "Standard_NC24ads_A100_v4": Size(24, 220.0, 1, "A100"),
    "Standard_NC48ads_A100_v4": Size(48, 440.0, 2, "A100"),
    "Standard_NC96ads_A100_v4": Size(96, 880.0, 4, "A100"),
    "Standard_ND96asr_v4": Size(96, 900.0, 8, "A100"),
    "Standard_ND96amsr_A100_v4": Size(96, 1900.0, 8, "A100"),
    "Standard_NC40ads_H100_v5": Size(40, 320.0, 1, "H100"),
    "Standard_NC80adis_H100_v5": Size(80, 640.0, 2, "H100"),
    "Standard_ND96isr_H100_v5": Size(96, 1900.0, 8, "H100"),
}


def size_named(name: str) -> Size | None:
    """What the size is; nothing where its name does not tell."""
    if name in GPU_SIZES:
        return GPU_SIZES[name]
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    family, vcpus, version = match["family"], int(match["vcpus"]), match["version"]
    if vcpus not in _VCPUS[family] or version not in _VERSIONS[family]:
        return None
    maker = "a" if "a" in match["features"] else ""
    memory_gib = _LESS_MEMORY_GIB.get(f"{family}{vcpus}{maker}_v{version}", _MEMORY_OF_EACH_GIB[family] * vcpus)
    return Size(vcpus, memory_gib)
