"""Machines as numbers: by what they are, not by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.problem.vms import VM

_TELLING = 1e-9  # facts that differ by less do not differ


@dataclass(frozen=True)
class Machine:
    """So many VMs of one type, on spot or not."""

    vm: VM
    count: int
    is_spot: bool


@dataclass(frozen=True)
class MachineScale:
    """Which facts tell some machines apart, and between which ends: others can be placed on the same columns."""

    kept: tuple[int, ...]
    low: Floats
    spread: Floats

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> MachineScale:
        """From the least to the most of each fact as 0 to 1; without facts that are all the same, or say it again."""
        facts = _facts(machines)
        low, spread = facts.min(axis=0), np.ptp(facts, axis=0)
        unit = (facts - low) / np.where(spread > _TELLING, spread, 1.0)
        kept: list[int] = []
        for number in range(facts.shape[1]):
            repeats = any(np.allclose(unit[:, number], unit[:, other]) for other in kept)
            if spread[number] > _TELLING and not repeats:
                kept.append(number)
        return cls(tuple(kept), low[kept], spread[kept])

    def columns(self, machines: Sequence[Machine]) -> Floats:
        """The columns of any machines; a single one of zeros where nothing tells the first ones apart."""
        if not self.kept:
            return np.zeros((len(machines), 1))
        return np.asarray((_facts(machines)[:, self.kept] - self.low) / self.spread)


def _facts(machines: Sequence[Machine]) -> Floats:
    """What machines are: size, memory and price for each vCPU, GPUs, count, vCPUs in all, market."""
    told = [
        (one.vm.vcpus, one.vm.memory_gib, one.vm.price_per_hour or 1.0, one.vm.gpus, one.count, one.is_spot)
        for one in machines
    ]
    vcpus, memory, price, gpus, count, is_spot = np.array(list(zip(*told, strict=True)), dtype=float)
    logs = [np.log(one) for one in (vcpus, memory / vcpus, price / vcpus)]
    return np.column_stack([*logs, np.log1p(gpus), np.log(count), np.log(count * vcpus), is_spot])


def scaled_to_unit(numbers: Floats) -> Floats:
    """From the least to the most as 0 to 1; all 0 where there is no difference."""
    spread = np.ptp(numbers)
    return (numbers - numbers.min()) / spread if spread > _TELLING else np.zeros_like(numbers)
