"""A method is a short assembly of parts; the difference between two methods is the difference of two declarations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trimtuner.decisions.acquisition import Acquisition
from trimtuner.decisions.designs import Design
from trimtuner.decisions.filters import Filter
from trimtuner.decisions.incumbents import Incumbent
from trimtuner.models.posterior import Surrogate


@dataclass(frozen=True)
class Recipe:
    """The parts of a method."""

    surrogate: Surrogate
    design: Design
    filter: Filter
    acquisition: Acquisition
    incumbent: Incumbent
    takes_snapshots: bool = False  # also after the design, where the space offers them

    def but(
        self,
        *,
        surrogate: Surrogate | None = None,
        design: Design | None = None,
        filter: Filter | None = None,  # noqa: A002
        acquisition: Acquisition | None = None,
        incumbent: Incumbent | None = None,
        takes_snapshots: bool | None = None,
    ) -> Recipe:
        """The same method with some parts exchanged."""
        return replace(
            self,
            surrogate=surrogate or self.surrogate,
            design=design or self.design,
            filter=filter or self.filter,
            acquisition=acquisition or self.acquisition,
            incumbent=incumbent or self.incumbent,
            takes_snapshots=self.takes_snapshots if takes_snapshots is None else takes_snapshots,
        )
