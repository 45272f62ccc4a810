"""What a private synthesizer is once it has seen a table: a source of rows, releases and certificates."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from covey.answers.release import Release
from covey.core.fit.spectrum import Spectrum
from covey.core.tables.counts import canonical, is_sparse
from covey.drawing import Maker
from covey.entropy import SEEDED_MARK
from covey.errors import NotFittedError, ParameterError
from covey.measure.measurement import Measurements
from covey.methods.laws import CodeLaw
from covey.methods.model import Fitted
from covey.methods.paper import PaperParameters
from covey.privacy.budget import Budget, PrivacyStatement
from covey.privacy.certificate import Certificate, TableBounds
from covey.synthesizers.base import _Synthesizer
from covey.synthesizers.cards import private_card
from covey.table.description import Description
from covey.tree import MakePersons
from covey.version import __version__


class _Private(_Synthesizer):
    """Everything that leaves a fit, and what can be asked of it."""

    described: Description | None  # what is public of the tables
    epsilon: Fraction
    delta: Fraction
    method: str
    _budget: Budget

    def _forget(self) -> None:
        """Nothing is fitted."""
        self._persons: MakePersons | None = None
        self.parameters: PaperParameters | None = None
        self.privacy: PrivacyStatement | None = None
        self._fitted: Fitted | None = None

    @property
    def n(self) -> int:
        """Rows of the fitted table, or its persons, which are public."""
        if self.privacy is None:
            raise NotFittedError("this synthesizer is not fitted yet. Call fit(X) first.")
        return self.privacy.n

    @property
    def certificate(self) -> Certificate | None:
        """The private accuracy certificate, if one was bought."""
        return None if self._fitted is None else self._fitted.certificate

    @property
    def spectrum(self) -> Spectrum | None:
        """Eigenvalues of the noisy covariance, beside those of noise, where there are any."""
        return None if self._fitted is None else self._fitted.spectrum

    @property
    def measurements(self) -> Measurements | None:
        """The noisy numbers that were measured, as far as they are kept."""
        return None if self._fitted is None else self._fitted.measurements

    @property
    def numbers(self) -> CodeLaw | None:
        """The law of rows of categories and numbers; None where rows are flags, or nothing is fitted."""
        return self._law if isinstance(self._law, CodeLaw) else None

    def _maker(self) -> Maker:
        """What draws the rows of one table, or persons with their events."""
        return super()._maker() if self._persons is None else self._persons

    def release(self, m: int | None = None) -> Any:
        """Draw m rows, or persons, and put all that may leave together: it answers questions, and `write_bundle` takes it.

        Without m as many as the statement says there are: the public number, or the noisy one where it is secret.
        """
        m = self.privacy.n if m is None and self.privacy is not None else m or 0
        if self._persons is not None and self.privacy is not None and self._fitted is not None:
            return Release(self.draw(m), self._persons.described, self._fitted, self.privacy, __version__)
        if self.body is not None:
            raise ParameterError(
                "rows of a convex body have no column names, so there is no bundle of them. Use sample(m) and privacy. For a "
                "bundle declare the columns in a schema with a rule body."
            )
        if self.schema is None or self.privacy is None or self._fitted is None:
            raise ParameterError(
                "a release needs a schema and a fitted table: PrivateSynthesizer(…, schema=schema).fit(table)."
            )
        return Release(self.draw(m), Description.of(self.schema), self._fitted, self.privacy, __version__)

    def certify(self, Z: Any) -> TableBounds:
        """95% bounds, by degree, on the error of a synthetic table: certificate plus its exact distance from the centres.

        Give it rows that were drawn from these centres, or any other public table. The distance is exact: of true rows it would
        be an exact number about true data, which no noise protects.
        """
        if self.certificate is None or self._persons is not None:
            raise NotFittedError(
                "there is no certificate: fit one table with method='regain' and certificate_share > 0."
            )
        if self._codec is not None:
            Z = self._codec.encode(Z, self._table_reader().coding)[0]
        Z = canonical(Z) if is_sparse(Z) else np.asarray(Z)
        return self.certificate.for_table(self._law.distances(Z))

    def __repr__(self) -> str:
        state = "not fitted" if self.privacy is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self.privacy is None else ""
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        return f"PrivateSynthesizer(epsilon={float(self.epsilon):g}{delta}, method={self.method!r}: {state}{mark})"

    def _repr_html_(self) -> str:
        """For notebooks: parameters before fitting; guarantee, budget and certificate after it."""
        fitted = None if self.privacy is None else (self.privacy, self.certificate)
        return private_card(self.method, self._budget, self.seeded, self.described, fitted)
