"""A forest of extremely randomised trees, grown in one vectorised pass over all of them.

At the few dozen measurements of a study that is several times faster than a library whose cost is per tree, and the
core needs no scikit-learn (docs/decisions/0001-own-trees.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

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


def grow(rows: Floats, residuals: Floats, weights: Floats, keys: Keys) -> Forest:
    """Grow every tree at once, level by level, each split the best of one random threshold a column.

    A threshold is a hash of the tree's key and the node's place, so that one more measurement leaves most of a tree
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
        level, entries, first_free = _grow_level(open_nodes, keys, entries, first_free)
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


def _grow_level(nodes: Positions, keys: Keys, entries: _Entries, first_free: int) -> tuple[_Level, _Entries, int]:
    # Open nodes are numbered consecutively and every one has entries, so segments can be found by counting.
    starts = np.searchsorted(entries.node, nodes)
    segment = entries.node - nodes[0]
    total_weight = np.add.reduceat(entries.weight, starts)
    total = np.add.reduceat(entries.weight * entries.target, starts)
    low, high = np.minimum.reduceat(entries.values, starts), np.maximum.reduceat(entries.values, starts)
    # Strictly inside [low, high), so that both sides keep an entry.
    columns: Keys = np.arange(1, low.shape[1] + 1, dtype=np.uint64)
    draws = _scramble(keys[:, None] + columns * _COLUMN_STRIDE)
    thresholds = low + _unit(draws) * (high - low)
    goes_left = entries.values <= thresholds[segment]
    left_weight = np.add.reduceat(entries.weight[:, None] * goes_left, starts)
    left_total = np.add.reduceat((entries.weight * entries.target)[:, None] * goes_left, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        surplus = left_total - left_weight * (total / total_weight)[:, None]
        gain = surplus**2 * (1.0 / left_weight + 1.0 / (total_weight[:, None] - left_weight))
    gain = np.where((high > low) & (left_weight > 0) & (left_weight < total_weight[:, None]), gain, -np.inf)
    best = _best_columns(gain, _unit(_scramble(draws)))
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
    side = goes_left[np.arange(len(segment)), best[segment]]
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
