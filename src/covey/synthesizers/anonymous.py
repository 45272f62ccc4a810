"""Anonymous synthetic data by microaggregation: `AnonymousSynthesizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np

from covey.engine.arrays import Array, Integers, blas_threads, processors, require_memory
from covey.engine.bodies import Body, Cube, ProductOfSimplices
from covey.engine.entropy import SEEDED_MARK
from covey.engine.models.laws import PaperLaw, balanced
from covey.engine.points import one_hot
from covey.engine.units.local import StreamRows
from covey.engine.units.rows import Rows
from covey.errors import ArgumentError, ParameterError, whole_number
from covey.paper.anonymous import METHODS, MixedCoding, MixedLaw, group_centres
from covey.paper.records import Records, boolean_records, plain_records, require_extended
from covey.release.contents import AnonymousRelease
from covey.synthesizers.base import Synthesizer, check_domain
from covey.tables.description import Description
from covey.tables.reading import Form, Reader, read_bits, read_codes, read_reals
from covey.tables.schema import Schema
from covey.version import __version__


class AnonymousSynthesizer(Synthesizer):
    """Anonymous synthetic data by microaggregation: every centre is the mean of at least `group_size` records.

    This is r-anonymity, NOT differential privacy: a group whose members agree on a column discloses it.

    Args:
        group_size: r, the least number of rows behind every centre; at least 2. It counts rows, not persons: where a person
            has up to k rows, r rows may be as few as r/k persons.
        method: "tree", the spectral tree; "paper", Algorithm 1; "mdav", the field's standard, for comparison; "best", the
            better of tree and paper.
        schema: the public schema of a table with names; fit then takes a frame or a file. Numbers and dates are averaged as
            they are, over at least r rows that have them, and rounded up or down to the field's precision.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        body: the convex set K that real-valued records lie in; None for records of 0 and 1.
        seed: makes the sampling reproducible, and is marked on the result.
    """

    def __init__(
        self,
        group_size: int,
        *,
        method: Literal["tree", "paper", "mdav", "best"] = "tree",
        schema: Schema | None = None,
        domain: Sequence[int] | None = None,
        body: Body | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(body, seed, schema)
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
        if sum(given is not None for given in (schema, domain, body)) > 1:
            raise ParameterError("give a schema, a domain or a body, only one of them.")
        self.domain = check_domain(domain, ())
        self._mixed: MixedCoding | None = None
        if self._codec is not None:
            if self._codec.has_numbers:
                self._mixed = MixedCoding(self._codec)
                self.body = Cube(self._mixed.domain.total + len(self._mixed.at))
            else:
                self.body = ProductOfSimplices(self._codec.domain_sizes)
            self._reader = Reader(Description.of(self._codec.schema), "cells" if self._codec.has_numbers else "bins")
        elif self.domain is not None:
            self.body = ProductOfSimplices(self.domain.sizes)
        if body is not None:
            require_extended(body)
        self.group_size = whole_number(group_size, "group_size", 2, "A group of one is a record.")
        self.method = method
        self.n: int | None = None
        self.covariance_loss: float | None = None
        self._agreeing: dict[str, int] | None = None

    def fit(self, X: Any, *, weights: Array | None = None, gram: Array | None = None) -> Self:
        """Group the records and average each group. X is not changed.

        Args:
            X: the records.
            weights: a positive number for each record, such as a survey's weight. Groups still count rows; no record may have
                more than half of its group's weight.
            gram: the inner products of all records, such as a kernel's values (Remark 1.5): records that are alike by it are
                grouped, and averaged column by column.
        """
        mixed = None
        if (weights is not None or gram is not None) and self._mixed is not None:
            raise ParameterError("weights and gram need an array, or a schema without numbers and dates.")
        if self._codec is not None:
            found = self._table_reader().prepared(X)
            X, self._restore = self._collected(found.rows, sum(self._codec.domain_sizes)), found.restore
            mixed = None if self._mixed is None else self._mixed.encode(X)
            X = one_hot(X, self._codec.domain_sizes) if mixed is None else mixed.records
            records, rounded = self._records(X)[0], mixed is None
        elif self.domain is not None:
            codes, self._form = read_codes(X, self.domain)
            records, rounded = self._records(one_hot(codes, self.domain.sizes))[0], True
        else:
            records, form = self._records(X)
            self._form, rounded = form, form.dtype.kind in "biu"
        if self.group_size > records.rows.n:
            said = f" must not exceed the number of rows, {records.rows.n}, got {self.group_size}."
            raise ArgumentError("", "group_size", said)
        with blas_threads(processors()):
            body = self.body or Cube(records.rows.p)
            result = group_centres(records, body, self.group_size, self.method, weights, gram)
        smallest = int(np.bincount(result.groups).min())
        if smallest < self.group_size:
            raise AssertionError(f"a group of {smallest} rows was formed; please report this.")
        as_codes = self._codec is not None or self.domain is not None
        self._law = (PaperLaw if self.method == "paper" else balanced)(result.cloud, self.body, rounded, as_codes)
        if self._mixed is not None and mixed is not None:
            centres = self._mixed.centres(result.cloud, mixed, result.groups, self.group_size)
            self._agreeing = self._mixed.agreeing(mixed, result.groups)
            self._law = MixedLaw(centres, self._mixed)
        self.n, self.covariance_loss = records.rows.n, result.covariance_loss
        return self

    def _records(self, X: Any) -> tuple[Records, Form]:
        """Records of bits, or of real numbers in the body."""
        if self.body is None:
            bits, form = read_bits(X)
            return boolean_records(bits), form
        reals, form = read_reals(X, self.body)
        return plain_records(reals, self.body), form

    def _collected(self, rows: Rows, width: int) -> Integers:
        """All records: grouping looks at every one of them again and again, so they must fit the memory."""
        if not isinstance(rows, StreamRows):
            raise ParameterError(
                "anonymous groups need all records in the memory of this machine. Collect the frame first, if it is small."
            )
        require_memory(24 * rows.n * width, f"grouping {rows.n} records", "Use `covey release`, or fewer rows.")
        return np.asarray(rows.records(), dtype=np.int64)

    def homogeneity(self) -> dict[Any, int]:
        """For each column (or field of the schema) how many groups agree on it entirely. Confidential: for the steward."""
        points = self.centres.points
        if self._agreeing is not None:
            return dict(self._agreeing)
        if not isinstance(self.body, ProductOfSimplices):
            return {i: int(np.sum((column == 0) | (column == 1))) for i, column in enumerate(points.T)}
        names: Sequence[Any] = self._codec.names if self._codec is not None else range(len(self.body.sizes))
        return {
            name: int(np.sum(points[:, at].max(axis=1) > 1 - 1e-5))
            for name, at in zip(names, self.body.blocks(), strict=True)
        }

    def release(self, m: int) -> AnonymousRelease:
        """Draw m rows and put everything that may leave together, for `covey.release.bundle.write_bundle`."""
        if self.schema is None or self.n is None or self.covariance_loss is None:
            raise ParameterError("a release needs a schema and a fitted table.")
        self.schema.require_confirmed()  # it goes out with the rows
        return AnonymousRelease(
            parts=self.draw(m),
            schema=self.schema,
            group_size=self.group_size,
            n=self.n,
            groups=self.groups,
            covariance_loss=self.covariance_loss,
            method=self.method,
            seeded=self.seeded,
            version=__version__,
        )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.centres)

    def __repr__(self) -> str:
        mark = f", {SEEDED_MARK}" if self.seeded else ""
        state = "not fitted" if self._law is None else f"{self.groups} groups, not differentially private"
        return f"AnonymousSynthesizer(group_size={self.group_size}, method={self.method!r}: {state}{mark})"
