"""A forest of trees, grown in one vectorised pass over all of them, by one of two rules for where a node is split.

At the few dozen measurements of a study that is several times faster than a library whose cost is per tree, and the
core needs no scikit-learn (docs/decisions/0001-own-trees.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtuner.arrays import Booleans, Floats, Positions

Keys: TypeAlias = NDArray[np.uint64]

_COLUMN_STRIDE, _LEFT, _RIGHT = np.uint64(0xD1342543DE82EF95), np.uint64(0xA5A5A5A5), np.uint64(0x5A5A5A5A5A)


@dataclass(frozen=True)
class Forest:
    """All nodes of all trees in flat arrays; ``feature`` is -1 at a leaf, and roots are nodes 0 … T-1."""

    feature: Positions
    threshold: Floats
    left: Positions
    right: Positions
    value: Floats
    count: int

    def predict(self, rows: Floats) -> Floats:
        """Each tree's value at each row, one line a tree."""
        columns = np.ascontiguousarray(rows.T)
        feature, threshold = self._plain
        left, right = self.left.tolist(), self.right.tolist()
        result = np.empty((self.count, len(rows)))
        everything = np.arange(len(rows))
        for tree in range(self.count):
            open_nodes = [(tree, everything)]
            line = result[tree]
            while open_nodes:
                node, here = open_nodes.pop()
                column = feature[node]
                if column < 0:
                    line[here] = self.value[node]
                    continue
                goes_left = columns[column].take(here) <= threshold[node]
                open_nodes.append((left[node], here[goes_left]))
                open_nodes.append((right[node], here[~goes_left]))
        return result

    @cached_property
    def _plain(self) -> tuple[list[int], list[float]]:
        return self.feature.tolist(), self.threshold.tolist()


class Splits(NamedTuple):
    """What a rule offers the open nodes: one line a node, one column a column of the rows."""

    threshold: Floats
    gain: Floats  # fall of the squared error; minus infinity where there is no such split
    lots: Floats  # by which equals are told apart


class SplitRule(Protocol):
    """Which splits of a node are looked at."""

    def offer(self, entries: _Entries, starts: Positions, keys: Keys) -> Splits:
        """Splits of nodes whose entries start there, with a key each for what is random."""


def grow(rows: Floats, residuals: Floats, weights: Floats, keys: Keys, rule: SplitRule) -> Forest:
    """Grow every tree at once, level by level, each split the best of those that the rule offers.

    What is random is a hash of the tree's key and the node's place, so that one more measurement leaves most of a tree
    as it was: the belief changes because of evidence, not because a refit drew other splits.
    """
    count = len(weights)
    tree, sample = np.nonzero(weights)
    entries = _Entries(
        node=tree.copy(), values=rows[sample], target=residuals[tree, sample], weight=weights[tree, sample]
    )
    levels: list[_Level] = []
    first_free = count
    open_nodes = np.arange(count)
    while len(open_nodes):
        level, entries, first_free = _grow_level(open_nodes, keys, entries, first_free, rule)
        levels.append(level)
        open_nodes, keys = level.children, level.child_keys
    feature, threshold, left, right, value = (
        np.concatenate([getattr(level, name) for level in levels])
        for name in ("feature", "threshold", "left", "right", "value")
    )
    return Forest(feature, threshold, left, right, value, count)


@dataclass(frozen=True)
class _Entries:
    """The samples still in open nodes, sorted by node."""

    node: Positions
    values: Floats
    target: Floats
    weight: Floats

    def where(self, keep: Positions) -> _Entries:
        return _Entries(self.node[keep], self.values[keep], self.target[keep], self.weight[keep])


@dataclass(frozen=True)
class _Level:
    feature: Positions
    threshold: Floats
    left: Positions
    right: Positions
    value: Floats
    children: Positions
    child_keys: Keys


@dataclass(frozen=True)
class OneThreshold:
    """One random threshold a column, as extremely randomised trees have it (Geurts, Ernst and Wehenkel, 2006)."""

    def offer(self, entries: _Entries, starts: Positions, keys: Keys) -> Splits:
        """A threshold anywhere between the least and the greatest value of each column."""
        segment = _segments(entries, starts)
        low, high = np.minimum.reduceat(entries.values, starts), np.maximum.reduceat(entries.values, starts)
        # Strictly inside [low, high), so that both sides keep an entry.
        draws = _draws(keys, low.shape[1])
        thresholds = low + _unit(draws) * (high - low)
        goes_left = entries.values <= thresholds[segment]
        total_weight = np.add.reduceat(entries.weight, starts)
        total = np.add.reduceat(entries.weight * entries.target, starts)
        left_weight = np.add.reduceat(entries.weight[:, None] * goes_left, starts)
        left_total = np.add.reduceat((entries.weight * entries.target)[:, None] * goes_left, starts)
        gain = _gain(left_weight, left_total, total_weight[:, None], total[:, None])
        return Splits(thresholds, np.where(high > low, gain, -np.inf), _unit(_scramble(draws)))


@dataclass(frozen=True)
class SomeColumns:
    """The best threshold of ⌊log₂ d⌋ + 1 random columns of d: Weka's random tree, with its defaults.

    ``weka.classifiers.trees.RandomTree`` (Hall and others, 2009; thesis 6.2): thresholds halfway between two values, no
    pruning, one sample is enough for a leaf; while the columns drawn part nothing, it draws another.
    """

    def offer(self, entries: _Entries, starts: Positions, keys: Keys) -> Splits:
        """The best threshold of each column that was drawn."""
        count = entries.values.shape[1]
        best = [_best_halfway(entries, starts, column) for column in range(count)]
        threshold, gain = (np.column_stack(parts) for parts in zip(*best, strict=True))
        lots = _unit(_draws(keys, count))
        turn = np.argsort(np.argsort(lots, axis=1), axis=1)
        first_of_use = np.where(gain > 0.0, turn, count).min(axis=1, keepdims=True)
        is_drawn = turn < np.maximum(int(np.log2(count)) + 1, first_of_use + 1)
        return Splits(threshold, np.where(is_drawn & (gain > 0.0), gain, -np.inf), lots)


def _best_halfway(entries: _Entries, starts: Positions, column: int) -> tuple[Floats, Floats]:
    """Each node's best threshold in one column, halfway between two values, and its gain."""
    order = np.lexsort((entries.values[:, column], entries.node))
    segment, values = _segments(entries, starts), entries.values[order, column]
    weight, target = entries.weight[order], entries.target[order]
    left_weight, left_total = _running(weight, starts, segment), _running(weight * target, starts, segment)
    ends = np.append(starts[1:], len(values)) - 1
    gain = _gain(left_weight, left_total, left_weight[ends][segment], left_total[ends][segment])
    parts_two = np.append((segment[1:] == segment[:-1]) & (values[1:] > values[:-1]), [False])
    gain = np.where(parts_two, gain, -np.inf)
    highest = np.maximum.reduceat(gain, starts)
    places = np.where(gain == highest[segment], np.arange(len(gain)), len(gain))
    chosen = np.minimum.reduceat(places, starts)
    low, high = values[chosen], values[np.minimum(chosen + 1, len(values) - 1)]
    halfway = 0.5 * (low + high)
    return np.where(halfway < high, halfway, low), highest  # between two neighbouring numbers there is no third


def _running(values: Floats, starts: Positions, segment: Positions) -> Floats:
    """The sum up to each entry, within its node."""
    total = np.cumsum(values)
    return np.asarray(total - (total - values)[starts][segment])


def _gain(left_weight: Floats, left_total: Floats, weight: Floats, total: Floats) -> Floats:
    """How much the squared error falls by a split; minus infinity where a side would be empty."""
    with np.errstate(divide="ignore", invalid="ignore"):
        surplus = left_total - left_weight * (total / weight)
        gain = surplus**2 * (1.0 / left_weight + 1.0 / (weight - left_weight))
    return np.where((left_weight > 0) & (left_weight < weight), gain, -np.inf)


def _segments(entries: _Entries, starts: Positions) -> Positions:
    """The number of each entry's node among the open ones, which are numbered consecutively."""
    return np.asarray(entries.node - entries.node[starts[0]])


def _draws(keys: Keys, count: int) -> Keys:
    columns: Keys = np.arange(1, count + 1, dtype=np.uint64)
    return _scramble(keys[:, None] + columns * _COLUMN_STRIDE)


def _grow_level(
    nodes: Positions, keys: Keys, entries: _Entries, first_free: int, rule: SplitRule
) -> tuple[_Level, _Entries, int]:
    # Open nodes are numbered consecutively and every one has entries, so segments can be found by counting.
    starts = np.searchsorted(entries.node, nodes)
    segment = _segments(entries, starts)
    total_weight = np.add.reduceat(entries.weight, starts)
    total = np.add.reduceat(entries.weight * entries.target, starts)
    thresholds, gain, lots = rule.offer(entries, starts, keys)
    best = _best_columns(gain, lots)
    every = np.arange(len(nodes))
    is_split = np.isfinite(gain[every, best]) & _differs(entries.target, starts)
    children = first_free + np.arange(2 * int(is_split.sum()))
    left, right = nodes.copy(), nodes.copy()
    left[is_split], right[is_split] = children[0::2], children[1::2]
    child_keys = np.column_stack([_scramble(keys[is_split] ^ _LEFT), _scramble(keys[is_split] ^ _RIGHT)]).reshape(-1)
    level = _Level(
        feature=np.where(is_split, best, -1),
        threshold=thresholds[every, best],
        left=left,
        right=right,
        value=total / total_weight,
        children=children,
        child_keys=child_keys,
    )
    side = entries.values[np.arange(len(segment)), best[segment]] <= level.threshold[segment]
    moved = np.where(side, left[segment], right[segment])
    still_open = np.nonzero(is_split[segment])[0]
    kept = _Entries(moved, entries.values, entries.target, entries.weight).where(still_open)
    return level, kept.where(np.argsort(kept.node, kind="stable")), first_free + len(children)


def _best_columns(gain: Floats, lots: Floats) -> Positions:
    """Each node's column of highest gain, drawn among equals: every column that parts two samples gains the same.

    Always the first of them would give it most of the splits, and make the order of the parameters matter.
    """
    is_best = gain >= (1.0 - 1e-9) * gain.max(axis=1, keepdims=True)
    return np.asarray(np.where(is_best, lots, -1.0).argmax(axis=1))


def _differs(targets: Floats, starts: Positions) -> Booleans:
    return np.asarray(np.maximum.reduceat(targets, starts) > np.minimum.reduceat(targets, starts))


def _scramble(keys: Keys) -> Keys:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014): well-mixed 64 bits from any key."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _unit(keys: Keys) -> Floats:
    """Keys as numbers in [0, 1)."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53)
