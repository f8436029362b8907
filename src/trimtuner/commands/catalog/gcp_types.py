"""What Google's machine types are made of: vCPUs, memory and GPUs, as its documentation lists them by name.

Google sells vCPUs, memory and GPUs by the hour, and a machine type costs what its parts do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MachineType:
    """A predefined machine type."""

    name: str
    vcpus: int
    memory_gib: float
    gpus: int = 0
    gpu: str = ""
    charged_vcpus: float = 0.0  # those of a shared-core type are charged in part; 0: all of them

    @property
    def family(self) -> str:
        """Such as n2: its parts have prices of their own."""
        return self.name.split("-")[0]

    def price_per_hour(self, vcpu: float, gib: float, gpu: float = 0.0) -> float:
        """USD, from the price of each part."""
        return (self.charged_vcpus or self.vcpus) * vcpu + self.memory_gib * gib + self.gpus * gpu


_TO_32 = (2, 4, 8, 16, 32)
_TO_96 = (2, 4, 8, 16, 32, 48, 64, 80, 96)

# Series, memory in GiB for each vCPU, and the counts of vCPUs that there are.
_SERIES: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("e2-standard", 4.0, _TO_32),
    ("e2-highmem", 8.0, (2, 4, 8, 16)),
    ("e2-highcpu", 1.0, _TO_32),
    ("n1-standard", 3.75, (1, 2, 4, 8, 16, 32, 64, 96)),
    ("n1-highmem", 6.5, (2, 4, 8, 16, 32, 64, 96)),
    ("n1-highcpu", 0.9, (2, 4, 8, 16, 32, 64, 96)),
    ("n2-standard", 4.0, (*_TO_96, 128)),
    ("n2-highmem", 8.0, _TO_96),
    ("n2-highcpu", 1.0, _TO_96),
    ("n2d-standard", 4.0, (*_TO_96, 128, 224)),
    ("n2d-highmem", 8.0, _TO_96),
    ("n2d-highcpu", 1.0, (*_TO_96, 128, 224)),
    ("c2-standard", 4.0, (4, 8, 16, 30, 60)),
    ("c3-standard", 4.0, (4, 8, 22, 44, 88, 176)),
    ("c3-highmem", 8.0, (4, 8, 22, 44, 88, 176)),
    ("c3-highcpu", 2.0, (4, 8, 22, 44, 88, 176)),
)
_SINGLE = (
    MachineType("e2-micro", 2, 1.0, charged_vcpus=0.25),
    MachineType("e2-small", 2, 2.0, charged_vcpus=0.5),
    MachineType("e2-medium", 2, 4.0, charged_vcpus=1.0),
    *(MachineType(f"a2-highgpu-{gpus}g", 12 * gpus, 85.0 * gpus, gpus, "A100") for gpus in (1, 2, 4, 8)),
    MachineType("a2-megagpu-16g", 96, 1360.0, 16, "A100"),
    *(
        MachineType(f"g2-standard-{vcpus}", vcpus, 4.0 * vcpus, gpus, "L4")
        for vcpus, gpus in ((4, 1), (8, 1), (12, 1), (16, 1), (24, 2), (32, 1), (48, 4), (96, 8))
    ),
)


def _all() -> Iterator[MachineType]:
    yield from _SINGLE
    for series, memory_of_each, counts in _SERIES:
        for vcpus in counts:
            yield MachineType(f"{series}-{vcpus}", vcpus, memory_of_each * vcpus)


MACHINE_TYPES: Mapping[str, MachineType] = {machine.name: machine for machine in sorted(_all(), key=lambda m: m.name)}
