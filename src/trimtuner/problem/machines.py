"""Machines as numbers: by what they are, not by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtuner.arrays import Floats
from trimtuner.problem.vms import VM


def machine_columns(vms: Sequence[VM], counts: Sequence[int], is_spot: Sequence[bool]) -> Floats:
    """Machines by what they are: size, memory and price for each vCPU, GPUs, count, vCPUs in all, market."""
    vcpus = np.array([vm.vcpus for vm in vms], dtype=float)
    memory = np.array([vm.memory_gib for vm in vms])
    price = np.array([vm.price_per_hour for vm in vms])
    gpus = np.array([vm.gpus for vm in vms], dtype=float)
    count = np.array(counts, dtype=float)
    facts = [
        np.log(vcpus),
        np.log(memory / vcpus),
        np.log(price / vcpus),
        np.log1p(gpus),
        np.log(count),
        np.log(count * vcpus),
        np.array(is_spot, dtype=float),
    ]
    telling = [scaled_to_unit(fact) for fact in facts if np.ptp(fact) > 1e-9]
    if not telling:
        return np.zeros((len(vms), 1))
    return np.column_stack([fact for i, fact in enumerate(telling) if not _repeats(fact, telling[:i])])


def _repeats(fact: Floats, earlier: Sequence[Floats]) -> bool:
    return any(np.allclose(fact, other) for other in earlier)


def scaled_to_unit(numbers: Floats) -> Floats:
    """From the least to the most as 0 to 1; all 0 where there is no difference."""
    spread = np.ptp(numbers)
    return (numbers - numbers.min()) / spread if spread > 1e-9 else np.zeros_like(numbers)
