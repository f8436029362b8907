"""A recommendation for every price: the front as a user takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import overload

from trimtuner.decisions.belief import Belief
from trimtuner.decisions.pareto import CONFIDENCE, EVEN_CHANCES, Outline, axes_of, outline, price_of_step
from trimtuner.errors import InputError, NoAnswer
from trimtuner.problem.problem import parse_quantity
from trimtuner.tuning.recipe import Recipe
from trimtuner.tuning.recommendation import Recommendation, recommendation_from

KEPT = "predicted figures are the unfavourable ends of their 90 % intervals"


@dataclass(frozen=True)
class Front(Sequence[Recommendation]):
    """Recommendations from the cheapest to the best: each is better than all that are cheaper.

    ``prices`` and ``qualities`` are the figures that they are compared by: what was measured, and of what is predicted
    the unfavourable end of its 90 % interval.
    """

    price_metric: str
    quality_metric: str
    points: tuple[Recommendation, ...]
    prices: tuple[float, ...]
    qualities: tuple[float, ...]
    knee_position: int

    @overload
    def __getitem__(self, position: int) -> Recommendation: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Recommendation]: ...
    def __getitem__(self, position: int | slice) -> Recommendation | Sequence[Recommendation]:
        return self.points[position]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Recommendation]:
        return iter(self.points)

    @property
    def knee(self) -> Recommendation:
        """Up to here a little more money buys much; beyond, much more buys little."""
        return self.points[self.knee_position]

    def within(self, limit: float | str) -> Recommendation:
        """The best whose price is at most this: a number, or a text with a unit such as ``20min``."""
        most = self._limit(limit)
        affordable = [point for point, price in zip(self.points, self.prices, strict=True) if price <= most]
        if not affordable:
            raise NoAnswer(
                f"nothing is known that very likely keeps to {self.price_metric} <= {most:.4g}; the cheapest on the "
                f"front is at {self.prices[0]:.4g}; raise the limit, or measure more"
            )
        return affordable[-1]

    def _limit(self, limit: float | str) -> float:
        if isinstance(limit, str):
            return parse_quantity(self.price_metric, limit, where=f"the limit {limit!r}")
        if isinstance(limit, bool) or not isinstance(limit, int | float) or limit != limit:
            raise InputError(f"within({limit!r}): it takes the most that a run may cost, a number")
        return float(limit)

    def _lines(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{price:.4g}",
                f"{quality:.4g}",
                "measured" if point.is_measured else "predicted",
                "knee" if place == self.knee_position else "",
                " ".join(f"{name}={value}" for name, value in point.config.items()),
            )
            for place, (point, price, quality) in enumerate(zip(self.points, self.prices, self.qualities, strict=True))
        ]

    def __str__(self) -> str:
        heads = (self.price_metric, self.quality_metric, "", "", "configuration")
        return "\n".join("  ".join(cell.ljust(10) for cell in line).rstrip() for line in (heads, *self._lines()))

    def _repr_html_(self) -> str:
        """The front as a table, for a notebook."""
        heads = (self.price_metric, self.quality_metric, "", "", "configuration")
        head = "".join(f"<th>{escape(one)}</th>" for one in heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in self._lines())
        return f"<table><caption>{KEPT}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def outline_named(recipe: Recipe, belief: Belief) -> Outline | None:
    """The targets that the method would recommend for one price or another; nothing where nothing is traded."""
    axes = axes_of(belief)
    return None if axes is None else outline(belief, axes, recipe.incumbent.may_name(belief), CONFIDENCE)


def outline_sought(recipe: Recipe, belief: Belief) -> Outline | None:
    """Where a search for a front looks; nothing for one goal, and as long as nothing is likely to be feasible."""
    axes = axes_of(belief)
    if belief.problem.goal.against is None or axes is None:
        return None
    found = outline(belief, axes, recipe.incumbent.may_name(belief), EVEN_CHANCES)
    return found if len(found) else None


def price_sought(recipe: Recipe, belief: Belief, number: int) -> float | None:
    """The price at which the trial of that number looks for the best; nothing where it looks at none."""
    found = outline_sought(recipe, belief)
    return None if found is None else price_of_step(found, number)


def front_of(recipe: Recipe, belief: Belief) -> Front:
    """What the method recommends for every price."""
    found = outline_named(recipe, belief)
    if found is None:
        raise NoAnswer("there is only one number to each configuration: nothing to trade")
    if not len(found):
        raise NoAnswer("nothing known is likely to meet every limit, so there is no front yet; measure more")
    return Front(
        price_metric=found.axes.price,
        quality_metric=found.axes.quality,
        points=tuple(recommendation_from(belief, target) for target in found.targets.tolist()),
        prices=tuple(found.prices.tolist()),
        qualities=tuple(found.qualities.tolist()),
        knee_position=found.knee,
    )
