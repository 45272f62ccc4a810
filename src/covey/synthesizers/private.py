"""Differentially private synthetic data: `PrivateSynthesizer`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from covey.answers.release import Release
from covey.core.fit.devices import find_device
from covey.core.fit.spectrum import Spectrum
from covey.core.numbers.cells import MOST_BINS
from covey.core.numbers.grid import Category
from covey.core.paper.bodies import Body, Cube
from covey.core.tables.counts import require_exact
from covey.core.tables.sparse import canonical, is_sparse
from covey.engines.local import ArrayRows
from covey.engines.rows import Mapped, Rows
from covey.engines.weights import STEPS
from covey.entropy import SEEDED_MARK
from covey.errors import CoveyWarning, NotFittedError, ParameterError
from covey.measure.measurement import Measurements
from covey.methods.draws import Draw, DrawBody, DrawLikeThePaper, NumberCells, all_distances, draw_of
from covey.methods.learning import SHARE, Learned, check_learning, learn, with_known_domains
from covey.methods.method import Fitted, Method
from covey.methods.paper import Algorithm4, PaperParameters, check_options
from covey.methods.records import Limit, body_grid, boolean_records, code_records, real_records
from covey.methods.regain.numbers import RegainNumbers
from covey.methods.regain.pipeline import RegainBits, RegainCategories
from covey.methods.regain.plan import CERTIFICATE_SHARE, declared_coding, refuse_too_wide
from covey.methods.regain.reals import RegainBody
from covey.methods.regain.triples import Wish
from covey.privacy.budget import DOMAINS, PrivacyStatement, check_delta, exact, make_budget
from covey.privacy.certificate import Certificate, TableBounds
from covey.privacy.gate import WHOLE, Gate
from covey.records import (
    Form,
    LearningReader,
    Limits,
    Prepared,
    TableForm,
    TableReader,
    check_domain,
    check_limits,
    read_bits,
    read_codes,
    read_reals,
)
from covey.release.prior import read_prior
from covey.synthesizers.advice import warn_of_noisy_shares, warn_of_numbers, warn_of_the_papers_noise
from covey.synthesizers.base import _Synthesizer, synthesized
from covey.synthesizers.cards import private_card
from covey.table.codec import Codec
from covey.table.numbers import NumberCodec
from covey.table.provisional import Provisional
from covey.table.schema import Schema
from covey.version import __version__


class PrivateSynthesizer(_Synthesizer):
    """Differentially private synthetic data, for replace-one neighbours, the number of rows n being public.

    Args:
        epsilon: the privacy budget ε > 0.
        delta: 0 for pure ε-DP; positive and below 1/n for (ε, δ)-DP, which is more accurate.
        method: "regain", accurate at ordinary sizes, or "paper", Algorithm 4 with the theorem's constants.
        schema: the public schema of a table with names, categories, numbers and dates; fit then takes a frame or a file. Fields
            that are to be learned get limits and categories with noise, each time a table is fitted, for a tenth of the budget.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        ordinal: which attributes of the domain are ordered (numbers, dates), by index.
        at_most: declared limits [(columns, L), …]: a record sets at most L of these 0/1 columns. They are public promises:
            records that break one are trimmed by a fixed rule before they are measured, and the output keeps them.
        triples: how many triples of columns are chosen with noise and measured at most, with domain or schema.
        prior: a private bundle that was released before under the same schema, such as last year's: public information, which
            is used where this year's noisy tables agree with it.
        person: the column of the table that says whose a row is (with a schema). Several rows of a person then count as one
            person: they share one weight, n counts persons, and neither the column nor the number of rows leaves. Rows that
            name nobody are left out.
        rows_per_person: how many rows one person may have, where no column says whose they are; the noise grows as group
            privacy demands, and the promise covers replacing a person by one with equally many rows.
        neighbours: "replace-one", the only notion there is here.
        certificate_share: the part of the budget that buys the accuracy certificate; 0 for none.
        noise: "covey" for covey's exact samplers, "opendp" for OpenDP's (extra covey[opendp]).
        body: the convex set K of real-valued records; records outside are moved to its nearest point, and all rows lie in it.
        kappa: κ of method "paper"; for this and the five that follow, None takes the theorem's choice.
        t: the dimension of its subspace.
        alpha: the mesh of its lattice.
        b: its damping.
        split: how it shares ε among directions, weights and points.
        constants: "paper", or "improved" for our own proofs.
        device: where tables of more than 1,000 columns are fitted once they are measured: "cpu", or "cuda" with the extra
            covey[gpu]. Records never leave the processor.
        seed: makes a run reproducible for tests. A seeded run is not private and says so.
    """

    _learns = True

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        *,
        method: Literal["regain", "paper"] = "regain",
        schema: Schema | None = None,
        domain: Sequence[int] | None = None,
        ordinal: Sequence[int] = (),
        at_most: Limits = (),
        triples: int = 0,
        prior: str | Path | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        neighbours: Literal["replace-one"] = "replace-one",
        certificate_share: float | Fraction = CERTIFICATE_SHARE,
        noise: Literal["covey", "opendp"] = "covey",
        body: Body | None = None,
        kappa: float | None = None,
        t: int | None = None,
        alpha: float | None = None,
        b: float | None = None,
        split: tuple[Any, Any, Any] | None = None,
        constants: Literal["paper", "improved"] | None = None,
        device: str = "cpu",
        seed: int | None = None,
    ) -> None:
        schema = with_known_domains(schema) if isinstance(schema, Schema) else schema
        schema = synthesized(schema, person)
        super().__init__(body, seed, schema)
        find_device(device)  # refused here, before any table is opened
        self.device = device
        self._learning = LearningReader(Provisional(schema)) if schema is not None and schema.learns else None
        self.person = person
        learning = self._learning is not None
        self._budget = make_budget(
            epsilon, delta, rows_per_person, noise=noise, labels=learning, persons=person is not None
        )
        self.epsilon: Fraction = self._budget.epsilon
        self.delta: Fraction = self._budget.delta
        if method not in ("regain", "paper"):
            raise ParameterError(f"method must be 'regain' or 'paper', got {method!r}.")
        if neighbours != "replace-one":
            raise ParameterError(f"neighbours must be 'replace-one', got {neighbours!r}.")
        if noise not in ("covey", "opendp"):
            raise ParameterError(f"noise must be 'covey' or 'opendp', got {noise!r}.")
        if noise == "opendp" and seed is not None:
            raise ParameterError("noise='opendp' takes no seed: OpenDP draws from the operating system.")
        self.method = method
        self.noise = noise
        self.domain = check_domain(domain, ordinal)
        self._prior = prior
        if prior is not None and (schema is None or schema.learns):
            raise ParameterError("a prior is a bundle of the same schema: give schema=…, with limits and categories.")
        self._wish = Wish.of(triples, domain is not None or schema is not None)
        # A limit that allows all of its columns says nothing.
        limits = check_limits(at_most)
        if self.domain is not None and limits:
            raise ParameterError("at_most is about 0/1 columns: it does not go with domain.")
        self._limits = [(columns, most) for columns, most in limits if most < len(columns)]
        self._share = exact(certificate_share, "certificate_share")
        if not 0 <= self._share < 1:
            raise ParameterError(f"certificate_share must lie in [0, 1), got {certificate_share}.")
        given = {"kappa": kappa, "t": t, "alpha": alpha, "b": b, "shares": split, "constants": constants}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if schema is not None:
            if domain is not None or len(ordinal) or len(at_most):
                raise ParameterError("domain, ordinal and at_most come from the schema: leave them out.")
            self._take(schema)
        self._check_method()
        self.parameters: PaperParameters | None = None
        self.privacy: PrivacyStatement | None = None
        self.certificate: Certificate | None = None
        self.spectrum: Spectrum | None = None
        self.numbers: NumberCells | None = None
        self.measurements: Measurements | None = None

    def _take(self, schema: Schema) -> None:
        """Use a schema: one that is complete, or one whose domains are to be learned first."""
        schema.require_confirmed()
        self.schema = schema
        if schema.learns:
            check_learning(schema, self.delta)
            return
        self._codec = codec = Codec(schema)
        flags = all(size == 2 for size in codec.domain_sizes)
        # A flag of two categories is one column of bits.
        refuse_too_wide(len(codec.domain_sizes) if flags else codec.width, categories=not flags)
        self.domain = None if flags else check_domain(codec.domain_sizes, codec.ordinal)
        limits = check_limits(codec.limits if flags else ())
        self._limits = [(columns, most) for columns, most in limits if most < len(columns)]
        fine = NumberCodec(codec)
        method = RegainNumbers.of(fine, self._share, self._budget.pure)
        method = replace(method, wish=Wish(self._wish.count or method.wish.count, codec.target))
        if (method.important or method.wish or self._prior is not None) and flags and self._learning is None:
            raise ParameterError("a table of required flags has no important columns, target, triples or prior.")
        known = None if self._prior is None else read_prior(self._prior, fine, self.seeded)
        self._by_number = replace(method, prior=known)
        levels = any(field.levels is not None for field in schema.encoded)
        apart = fine.fine or method.boxes or method.important or levels or method.wish or known is not None
        self._numbers = fine if apart and not flags else None
        reader = TableReader(codec, "codes" if self._numbers is None else "numbers")
        self._reader = replace(reader, first_pass=self._regain().first_pass, person=self.person)

    def _check_method(self) -> None:
        """Wrong combinations and wrong parameters of the paper's method are refused before any table is opened."""
        if self.method == "paper":
            if self.delta or self.domain or self._limits or self.noise != "covey" or self.schema is not None:
                raise ParameterError(
                    "method 'paper' takes no delta, schema, domain, at_most or noise: it is pure ε-DP on K."
                )
            check_options(self.body, **self._options)
        elif self._options:
            given = ", ".join(self._options).replace("shares", "split")
            raise ParameterError(f"{given}: only method='paper' takes this.")
        elif self.body is not None:
            if self.domain or self._limits or self.schema is not None:
                raise ParameterError("body is about rows of real numbers: it goes without schema, domain and at_most.")
            self._grid = body_grid(self.body)

    def fit(self, X: Any) -> Self:
        """Measure the table privately: this is the step that spends ε. X is not changed."""
        if self.method == "paper":
            self._fit_paper(X)
        else:
            self._fit_regain(X)
        return self

    def _regain(self, p: int | None = None) -> Method:
        """The method for bits, categories or numbers; p is the number of columns, where it is known."""
        if self._numbers is not None:
            return self._by_number
        if self.domain is not None and self._wish:
            attributes = tuple(map(Category, self.domain.sizes, self.domain.ordered))
            return RegainNumbers(self._share, attributes, wish=self._wish)
        if self.domain is not None:
            return RegainCategories(self._share, self.domain)
        if self.body is not None:
            return RegainBody(self._share, self.body, self._grid)
        width = p if p is not None or self._codec is None else len(self._codec.names)
        limited = self._limits and width is not None
        declared = declared_coding(width, self._limits) if limited and width is not None else None
        steps = 1 if self.person is None else STEPS
        return RegainBits(self._share, declared, find_device(self.device), width, bool(self._limits), steps)

    def _fit_regain(self, X: Any) -> None:
        gates: list[Gate] = []
        budget, streams, domains = self._budget, None, None
        if self._learning is not None:
            streams = self._next_streams()
            gates.append(Gate(budget.part(SHARE), {DOMAINS: WHOLE}, streams, self.noise))
            X, domains = self._learn(X, self._learning, gates[0])
            budget = replace(budget.part(1 - SHARE), selection=Fraction(0))
        rows, self._form = self._read(X)
        n, p = rows.n, rows.p
        self._advise(n, (2,) * p if self.domain is None else self.domain.sizes)
        if self._limits:
            if max(max(columns) for columns, _ in self._limits) >= p:
                raise ParameterError(f"at_most names a column beyond the last one, {p - 1}.")
            rows = Mapped(rows, Limit(tuple((tuple(columns), most) for columns, most in self._limits)))
        method, streams = self._regain(p), streams or self._next_streams()
        gates.append(Gate(budget, method.shares(n, p, budget), streams, self.noise, rows.steps))
        fitted = method.fit(rows, gates[-1], streams.postprocessing)
        draw = draw_of(self.domain, self._limits, fitted.numbers)
        if self.body is not None:
            rounded = isinstance(self._form, Form) and self._form.dtype.kind in "biu"
            draw = DrawBody(self.body, self._grid, rounded)
        self._finish(fitted, draw, gates, n, domains)

    def _learn(self, X: Any, reader: LearningReader, gate: Gate) -> tuple[Prepared, Learned]:
        """Learn the domains of a table, anew for each one, and read it again under the schema that comes of it."""
        first = reader.read(X)
        self.check(first.n)
        found = learn(first.rows, reader.provisional, gate)
        if found.left_out:
            warnings.warn(found.advice, CoveyWarning, stacklevel=5)
        self._take(found.schema)
        return first.read_again(self._table_reader()), found

    def _read(self, X: Any) -> tuple[Rows, Form | TableForm]:
        """Rows for `regain`: of a table with a schema, of category codes, or of bits."""
        if self._codec is not None:
            return self._table_reader().read(X)
        if self.domain is not None:
            codes, form = read_codes(X, self.domain)
            return ArrayRows(codes), form
        if self.body is not None:
            matrix, form = read_reals(X, self.body)
            return code_records(matrix, self.body, self._grid), form
        bits, form = read_bits(X, sparse=True)
        return boolean_records(bits).rows, form

    def _fit_paper(self, X: Any) -> None:
        if self.body is None:
            X, self._form = read_bits(X)
            records = boolean_records(X)
        else:
            X, self._form = read_reals(X, self.body)
            records = real_records(X, self.body)
        body = self.body or Cube(X.shape[1])
        n = records.rows.n
        self.check(n)
        method = Algorithm4(body, self._options)
        par = method.parameters(n, self._budget)
        warn_of_the_papers_noise(par)
        gate = Gate(self._budget, par.shares, self._next_streams())
        self.parameters = par
        draw = DrawLikeThePaper(self.body, self._form.dtype.kind in "biu", codes=False)
        self._finish(method.fit(records, par, gate), draw, [gate], n)

    def _finish(self, fitted: Fitted, draw: Draw, gates: list[Gate], n: int, domains: Learned | None = None) -> None:
        self._centres, self._draw = fitted.cloud, draw
        self.certificate, self.spectrum, self.numbers = fitted.certificate, fitted.spectrum, fitted.numbers
        self.measurements = fitted.measurements
        mechanism = "regain" if self.parameters is None else self.parameters.mechanism
        self.privacy = PrivacyStatement(
            self._budget,
            tuple(charge for gate in gates for charge in gate.spent),
            n,
            mechanism,
            self.seeded,
            unused=tuple(charge for gate in gates for charge in gate.unused),
            learned=domains.learned if domains else (),
            left_out=domains.left_out if domains else (),
            prior=None if self._prior is None else self._by_number.prior_digest,
        )

    @property
    def rho(self) -> Fraction | None:
        """ρ = μ²/2 of Gaussian differential privacy, which a ledger composes; None where the noise is not Gaussian."""
        return self._budget.gaussian_rho

    def check(self, n: int) -> None:
        """Refuse what the public size of the table makes impossible. A caller with a ledger asks before it charges."""
        check_delta(self.delta, n)
        widest = (max(self.domain.sizes) if self.domain else 1) + (MOST_BINS if self._numbers is not None else 0)
        require_exact(n, widest, STEPS if self.person is not None else 1)

    def _advise(self, n: int, sizes: Sequence[int]) -> None:
        """Checks and advice that need the public size of the table."""
        self.check(n)
        if self.body is None:
            warn_of_noisy_shares(n, sizes, self._budget)
        else:
            warn_of_numbers(n, len(sizes), self._budget)

    @property
    def n(self) -> int:
        """Rows of the fitted table, or its persons, which are public."""
        if self.privacy is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        return self.privacy.n

    def release(self, m: int) -> Release:
        """Draw m rows and put everything that may leave together: it answers questions, and `write_bundle` takes it."""
        if self.body is not None:
            raise ParameterError(
                "rows of a body have no columns' names, so there is no bundle of them: take sample(m) and the statement "
                "privacy. For a release declare the columns in a schema, with a rule body that says where they lie."
            )
        if self.schema is None or self.privacy is None:
            raise ParameterError(
                "a release needs a schema and a fitted table: PrivateSynthesizer(…, schema=schema).fit(table)."
            )
        kept = (self.privacy, self.certificate, __version__, self.spectrum, self.measurements, self.numbers)
        return Release(self.draw(m), self.schema, self.centres, *kept)

    def certify(self, Z: Any) -> TableBounds:
        """95% bounds, by degree, on the error of a synthetic table: certificate plus its exact distance from the centres.

        Give it rows that were drawn from these centres, or any other public table. The distance is exact: of true rows it would
        be an exact number about true data, which no noise protects.
        """
        if self.certificate is None:
            raise NotFittedError("there is no certificate: fit with method='regain' and a positive certificate_share.")
        if self._codec is not None:
            Z = (self._codec if self._numbers is None else self._numbers).encode(Z)[0]
        Z = canonical(Z) if is_sparse(Z) else np.asarray(Z)
        return self.certificate.for_table(*all_distances(self._draw, Z, self.centres))

    def __repr__(self) -> str:
        state = "not fitted" if self._centres is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self._centres is None else ""
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        return f"PrivateSynthesizer(epsilon={float(self.epsilon):g}{delta}, method={self.method!r}: {state}{mark})"

    def _repr_html_(self) -> str:
        """For notebooks: parameters before fitting; guarantee, budget and certificate after it."""
        fitted = None if self.privacy is None else (self.privacy, self.certificate, len(self.centres))
        return private_card(self.method, self._budget, self.seeded, self.schema, fitted)
