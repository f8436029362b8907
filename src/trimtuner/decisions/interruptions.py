"""What it costs to be interrupted and to start again.

Λ   interruptions per hour (of any machine of the run)      T   hours that the run needs when it is left alone

Interruptions come as a Poisson process and nothing of an interrupted run is kept. With X the first interruption, the
expected machine time E of getting through is

    E = P(X > T) T + ∫ over x < T of Λ exp(-Λx) (x + E) dx,    which gives    E = (exp(ΛT) - 1) / Λ.

For ΛT small this is T (1 + ΛT / 2); for ΛT large it has no bound that anyone would pay.
"""

from __future__ import annotations

import numpy as np

from trimtuner.arrays import Floats

_MOST_LOG_INFLATION = 50.0  # 5e21 times as long is for ever, and still a number to reckon with


def log_inflation(interruptions_per_hour: Floats, log_seconds: Floats) -> Floats:
    """log(E / T): what interruptions add to the logarithm of the time, and so of the cost; 0 without any."""
    log_hours = np.clip(log_seconds - np.log(3600.0), -600.0, 600.0)
    expected = interruptions_per_hour * np.exp(log_hours)  # interruptions during an undisturbed run: ΛT
    some = np.where(expected > 0.0, expected, 1.0)
    inflation = some + np.log(-np.expm1(-some) / some)
    return np.where(expected > 0.0, np.minimum(inflation, _MOST_LOG_INFLATION), 0.0)
