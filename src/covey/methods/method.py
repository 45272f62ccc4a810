"""What a private method is: which sums it needs first, how it would share a budget, and a fit through a gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from covey.core.arrays import Array
from covey.core.fit.spectrum import Spectrum
from covey.core.paper.blocks import WeightedPoints
from covey.engines.rows import Rows
from covey.measure.measurement import Measurements
from covey.methods.draws import NumberCells
from covey.privacy.budget import Budget
from covey.privacy.certificate import Certificate
from covey.privacy.gate import Gate

Public = Callable[[str], np.random.Generator]  # makes streams for post-processing, one per purpose


@dataclass(frozen=True)
class Fitted:
    """Everything that leaves a fit: centres, certificate, noisy spectrum, the measurements kept. All of it is private."""

    cloud: WeightedPoints
    certificate: Certificate | None = None
    spectrum: Spectrum | None = None
    measurements: Measurements | None = None
    numbers: NumberCells | None = None


class Method(Protocol):
    """A way from rows to centres."""

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Kernels that `fit` asks for whatever the data is: an engine adds them up while it reads the table first."""

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned part of the budget for each purpose, from public numbers."""

    def fit(self, rows: Rows, gate: Gate, public: Public) -> Fitted:
        """Measure through the gate, then fit."""


def with_certificate(shares: Mapping[str, Fraction], certificate: Fraction) -> dict[str, Fraction]:
    """A plan's shares of what the certificate leaves, and the certificate's own."""
    return {name: share * (1 - certificate) for name, share in shares.items()} | {"certificate": certificate}
