"""Rows that break a rule, found and altered, on cells.

Sums of numbers are kept by geometry (`rules.region`): all rows are moved at once. Each other repair is a fixed random rule on
single rows; rules may undo each other's work, so they take turns, and what is still broken after a number of rounds is replaced
by a valid row. All of this sees released values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from covey.core.arrays import Array, Integers
from covey.errors import ParameterError
from covey.table.attributes import Attribute, Grid, attributes
from covey.table.domain import Cells, Domain, Mask, Rule
from covey.table.rules.distance import distances
from covey.table.rules.region import Region, regions

_ROUNDS = 12  # of repairs; rows that rules still throw back and forth are replaced


class RuleBook:
    """The attributes of a schema, and the rules that its rows obey."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.mended = 0  # synthetic rows that were altered so far, because they broke a rule
        for field in domain.fields:
            field.require_complete()
        self.rules = (*domain.rules, *distances(domain))
        self.attributes = attributes(domain)
        self.regions = regions(self.rules, self.attributes)
        encoded = domain.encoded
        if not encoded:
            raise ParameterError(
                "every field of the schema is constant: there is nothing to encode. Declare categories."
            )
        self.names: tuple[str, ...] = tuple(f.name for f in encoded)
        self.domain_sizes: tuple[int, ...] = tuple(f.categories for f in encoded)
        if self.rules:
            _ = self._witness  # rules that contradict each other are refused before any data is read

    def cells(self, codes: Array, generator: np.random.Generator) -> Cells:
        """Cells of category codes, uniform inside their bins."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.names) or codes.dtype.kind not in "iub":
            raise ParameterError(
                f"codes must be whole numbers with {len(self.names)} columns, got shape {codes.shape}."
            )
        if (codes < 0).any() or (codes >= np.array(self.domain_sizes)).any():
            raise ParameterError("codes must lie in the domain of this codec's schema.")
        codes = codes.astype(np.int64)
        cells = {name: self.attributes[name].draw(codes[:, j], generator) for j, name in enumerate(self.names)}
        for name, attribute in self.attributes.items():
            if name not in cells:
                cells[name] = self.single(attribute, len(codes))
        return cells

    @staticmethod
    def single(attribute: Attribute, rows: int) -> Integers:
        """Cells of an attribute with one category."""
        return np.full(rows, attribute.axis.low if isinstance(attribute, Grid) else 0)

    def obey(self, cells: Cells, generator: np.random.Generator) -> Cells:
        """The cells with the rows altered that break a rule."""
        if not self.rules:
            return cells
        cells = {name: column.copy() for name, column in cells.items()}
        self.mended += int(np.count_nonzero(np.logical_or.reduce([self.broken(rule, cells) for rule in self.rules])))
        for region in self.regions:
            region.settle(cells, np.arange(len(next(iter(cells.values())))))
        bad = self._take_turns(cells, generator)
        if bad.any():
            good, broken = np.flatnonzero(~bad), np.flatnonzero(bad)
            donors = generator.choice(good, len(broken)) if len(good) else None
            for name in {
                name for rule in self.rules for name in rule.fields
            }:  # others may be bound elsewhere, and stay
                cells[name][broken] = self._witness[name] if donors is None else cells[name][donors]
        return cells

    def _take_turns(self, cells: Cells, generator: np.random.Generator) -> Mask:
        """Repair in place; which rows are still broken."""
        rows = len(next(iter(cells.values())))
        open_rows = np.arange(rows)
        for _ in range(_ROUNDS):
            part = {name: column[open_rows] for name, column in cells.items()}
            touched = np.zeros(len(open_rows), dtype=bool)
            for rule in self.rules:
                broken = self.broken(rule, part)
                if broken.any():
                    self._mend(rule, part, np.flatnonzero(broken), generator)
                    touched |= broken
            for name, column in part.items():
                cells[name][open_rows[touched]] = column[touched]
            open_rows = open_rows[touched]
            if not len(open_rows):
                break
        bad = np.zeros(rows, dtype=bool)
        for rule in self.rules:
            bad |= self.broken(rule, cells)
        return bad

    @cached_property
    def _witness(self) -> dict[str, int]:
        """One valid row, found from the public schema alone: from the columns that rules name, whatever the others are."""
        generator = np.random.Generator(np.random.PCG64(0))
        named = {name for rule in self.rules for name in rule.fields}
        cells = {name: self.single(self.attributes[name], 1000) for name in named}
        for name, size in zip(self.names, self.domain_sizes, strict=True):
            if name in named:
                cells[name] = self.attributes[name].draw(generator.integers(0, size, 1000), generator)
        valid = np.flatnonzero(~self._take_turns(cells, generator))
        if not len(valid):
            raise ParameterError(
                "no row was found that obeys all rules of the schema: they contradict each other, or are too strict. Loosen one."
            )
        row = {name: int(column[valid[0]]) for name, column in cells.items()}
        first = np.zeros(1, dtype=np.int64)
        return {n: row[n] if n in row else int(a.draw(first, generator)[0]) for n, a in self.attributes.items()}

    def _region(self, rule: Rule) -> Region | None:
        """The polytope that keeps a rule, if one does."""
        return next((region for region in self.regions if any(rule is kept for kept in region.rules)), None)

    def broken(self, rule: Rule, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break a rule."""
        region = self._region(rule)
        return rule.broken(self.attributes, cells) if region is None else region.broken(rule, cells)

    def _mend(self, rule: Rule, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        region = self._region(rule)
        if region is None:
            rule.mend(self.attributes, cells, rows, generator)
        else:
            region.settle(cells, rows, turns=0)
