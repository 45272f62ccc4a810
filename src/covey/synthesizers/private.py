"""Differentially private synthetic data: `PrivateSynthesizer`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

from covey.core.fit.devices import find_device
from covey.core.numbers.cells import MOST_BINS
from covey.core.numbers.grid import Category
from covey.core.paper.bodies import Body, Cube
from covey.core.tables.counts import require_exact
from covey.core.tables.events import WEIGHT_STEPS
from covey.engines.local import ArrayRows
from covey.engines.rows import Counted, Mapped, Rows
from covey.entropy import Streams
from covey.errors import CoveyWarning, ParameterError, whole_number
from covey.measure.query import Query
from covey.methods.laws import PaperLaw
from covey.methods.learning import (
    SHARE,
    Learned,
    assumed,
    check_learning,
    expected_attributes,
    learn,
    with_known_domains,
)
from covey.methods.model import SIZE, SIZE_SHARE, Fitted, count_units, fit, planned
from covey.methods.paper import Algorithm4, check_options
from covey.methods.persons.law import PersonsLaw
from covey.methods.persons.method import RegainPersons
from covey.methods.records import Limit, body_grid, boolean_records, code_records, real_records
from covey.methods.regain.bits import RegainBits
from covey.methods.regain.important import Important
from covey.methods.regain.plan import CERTIFICATE_SHARE, declared_coding
from covey.methods.regain.predict import refuse_too_large
from covey.methods.regain.reals import RegainBody
from covey.methods.regain.tables import Prior, RegainTables
from covey.methods.relations.search import SHARE_OF_RELATIONS, find_relations, worth_looking
from covey.methods.relations.used import columns_of, with_relations
from covey.privacy.budget import DOMAINS, RELATIONS, Budget, PrivacyStatement, check_delta, exact, make_budget
from covey.privacy.gate import WHOLE, Gate, Measured
from covey.privacy.unit import REPLACE, Neighbours
from covey.reading import Prepared, Reader, TableForm
from covey.records import (
    Form,
    Limits,
    check_domain,
    check_limits,
    read_bits,
    read_codes,
    read_reals,
)
from covey.release.prior import checked_prior, read_prior
from covey.release.verify import bundle_digest, tables_of
from covey.synthesizers.advice import (
    warn_of_few_persons,
    warn_of_noisy_shares,
    warn_of_numbers,
    warn_of_the_papers_noise,
)
from covey.synthesizers.base import synthesized
from covey.synthesizers.fitted import _Private
from covey.table.description import Description
from covey.table.provisional import Provisional
from covey.table.schema import Schema
from covey.tree import MakePersons, method_of

# What is about rows of one table or array alone, and what it is where nothing is said.
OF_ROWS: dict[str, Any] = {
    **dict.fromkeys(("domain", "person", "body", "kappa", "t", "alpha", "b", "split", "constants")),
    "method": "regain",
    "ordinal": (),
    "at_most": (),
    "triples": 0,
    "rows_per_person": 1,
    "device": "cpu",
}


class PrivateSynthesizer(_Private):
    """Differentially private synthetic data: for one replaced row, n being public, or one row added or removed, n being secret.

    Args:
        epsilon: the privacy budget ε > 0.
        delta: 0 for pure ε-DP; positive and below 1/n for (ε, δ)-DP, which is more accurate.
        method: "regain", accurate at ordinary sizes, or "paper", Algorithm 4 with the theorem's constants.
        schema: the public schema of a table with names, categories, numbers and dates; fit then takes a frame or a file. Fields
            that are to be learned get limits and categories with noise, each time a table is fitted, for a tenth of the budget.
            Or the `Description` of persons with events: fit then takes both tables by name, neighbours differ in one person
            with all their events, and n counts persons.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        ordinal: which attributes of the domain are ordered (numbers, dates), by index.
        at_most: declared limits [(columns, L), …]: a record sets at most L of these 0/1 columns. They are public promises:
            records that break one are trimmed by a fixed rule before they are measured, and the output keeps them.
        triples: how many triples of columns are chosen with noise and measured at most, with domain or schema.
        prior: a private bundle that was released before under the same schema, such as last year's: public information, which
            is used where this year's noisy tables agree with it; of persons with events for tables of one column.
        person: the column that identifies the person (with a schema). Several rows of a person then count as one
            person: they share one weight, n counts persons, and neither the column nor the number of rows leaves. Rows that
            name nobody are left out.
        rows_per_person: how many rows one person may have, where no column says whose they are; the noise grows as group
            privacy demands, and the promise covers replacing a person by one with equally many rows.
        neighbours: "replace-one", or "add-or-remove-one": then the number of rows, or of persons, is secret and measured.
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
    further: tuple[Query, ...] = ()  # queries that are measured and certified besides what the method asks

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        *,
        method: Literal["regain", "paper"] = "regain",
        schema: Schema | Description | None = None,
        domain: Sequence[int] | None = None,
        ordinal: Sequence[int] = (),
        at_most: Limits = (),
        triples: int = 0,
        prior: str | Path | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        neighbours: Neighbours = REPLACE,
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
        options = dict(locals())
        self._tree: Reader | None = None
        if isinstance(schema, Description) and schema.schema is None:
            wrong = sorted(name for name, plain in OF_ROWS.items() if options[name] != plain)
            if wrong:
                raise ParameterError(f"{', '.join(wrong)}: a package of persons and events takes no such parameter.")
            schema.require_confirmed()
            self._tree = Reader(schema, "numbers")
        own: Any = schema.schema if isinstance(schema, Description) else schema
        own = synthesized(with_known_domains(own) if isinstance(own, Schema) else own, person)
        self._declared = own
        super().__init__(body, seed, own)
        self.described = schema if isinstance(schema, Description) else None if own is None else Description.of(own)
        find_device(device)  # refused here, before any table is opened
        self.device = device
        self._learning = Reader(Description.of(own)) if own is not None and own.learns else None
        self.person = person
        learning = self._learning is not None
        self._budget = make_budget(
            epsilon,
            delta,
            rows_per_person,
            noise=noise,
            labels=learning,
            persons=self._by_person,
            neighbours=neighbours,
        )
        self.epsilon: Fraction = self._budget.epsilon
        self.delta: Fraction = self._budget.delta
        if method not in ("regain", "paper"):
            raise ParameterError(f"method must be 'regain' or 'paper', got {method!r}.")
        if noise not in ("covey", "opendp"):
            raise ParameterError(f"noise must be 'covey' or 'opendp', got {noise!r}.")
        if noise == "opendp" and seed is not None:
            raise ParameterError("noise='opendp' takes no seed: OpenDP draws from the operating system.")
        self.method = method
        self.noise = noise
        self.domain = check_domain(domain, ordinal)
        self._prior = prior
        if prior is not None and self._tree is None and (own is None or own.learns or own.finds_relations):
            raise ParameterError("a prior needs schema=…, with the same limits and categories as its bundle.")
        self._triples = whole_number(triples, "triples", 0, "It counts triples of columns.")
        if self._triples and domain is None and own is None:
            raise ParameterError("triples are chosen among columns with categories: give domain=… or schema=….")
        # A limit that allows all of its columns says nothing.
        limits = check_limits(at_most)
        if self.domain is not None and limits:
            raise ParameterError("at_most is for 0/1 columns and cannot be combined with domain.")
        self._limits = [(columns, most) for columns, most in limits if most < len(columns)]
        self._share = exact(certificate_share, "certificate_share")
        if not 0 <= self._share < 1:
            raise ParameterError(f"certificate_share must lie in [0, 1), got {certificate_share}.")
        given = {"kappa": kappa, "t": t, "alpha": alpha, "b": b, "shares": split, "constants": constants}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        # What cannot be is refused here, before any table is opened.
        self._of_persons = None if self._tree is None else self._persons_method(self._tree.description)
        if own is not None:
            if domain is not None or len(ordinal) or len(at_most):
                raise ParameterError("domain, ordinal and at_most come from the schema. Leave them out.")
            self._take(own)
        self._first_reader = self._reader  # of the schema as it was declared: a fit may add relations to it
        self._check_method()
        self._forget()

    def _persons_method(self, described: Description) -> RegainPersons:
        """The method for persons with events, with the persons of an earlier bundle where one is given."""
        method = method_of(described, self._share)
        if self._prior is None:
            return method
        place, own = checked_prior(self._prior, described, self.seeded), described.plain()
        found = Reader(own).open({part.name: path for part, path in tables_of(place, own)})
        return replace(method, prior=Prior.of_persons(found.linked, bundle_digest(place)))

    def _take(self, schema: Schema) -> None:
        """Use a schema: one that is complete, or one whose domains are to be learned first."""
        schema.require_confirmed()
        self.schema = schema
        if schema.learns:
            check_learning(schema, self.delta)
            return
        described = Description.of(schema)
        self._codec = codec = described.codecs[0]
        flags = codec.flags
        self.domain = None if flags else check_domain(codec.domain_sizes, codec.ordinal)
        limits = check_limits(codec.limits if flags else ())
        self._limits = [(columns, most) for columns, most in limits if most < len(columns)]
        if self._learning is None and not schema.found:
            refuse_too_large(codec.kinds, 1, self._budget)  # whatever its rows, before any data is opened
        method = RegainTables.of(codec, self._share, self._budget.pure)
        if self._triples:
            method = replace(method, important=replace(method.important, triples=self._triples))
        if (method.important or self._prior is not None) and flags and self._learning is None:
            raise ParameterError(
                "a table of yes/no columns without missing values takes no important, target, triples or prior."
            )
        known = None if self._prior is None else read_prior(self._prior, codec, self.seeded)
        self._by_table = replace(method, prior=known)
        reader = Reader(described, codec.coding)
        self._reader = replace(reader, first_pass=self._regain().first_pass, person=self.person)

    def _check_method(self) -> None:
        """Wrong combinations and wrong parameters of the paper's method are refused before any table is opened."""
        if self.method == "paper":
            secret = self._budget.size_is_secret
            if self.delta or self.domain or self._limits or self.noise != "covey" or self.schema is not None or secret:
                raise ParameterError(
                    "method 'paper' takes no delta, schema, domain, at_most, noise or neighbours: it is pure ε-DP on K for a "
                    "replaced row."
                )
            check_options(self.body, **self._options)
        elif self._options:
            given = ", ".join(self._options).replace("shares", "split")
            raise ParameterError(f"{given}: only method='paper' takes this.")
        elif self.body is not None:
            if self.domain or self._limits or self.schema is not None:
                raise ParameterError(
                    "body is for rows of real numbers and cannot be combined with schema, domain or at_most."
                )
            self._grid = body_grid(self.body)

    def fit(self, X: Any) -> Self:
        """Measure the table privately: this is the step that spends ε. X is not changed."""
        if self.method == "paper":
            self._fit_paper(X)
        else:
            self._fit_regain(X)
        return self

    def _regain(self, p: int | None = None) -> Any:
        """The method for bits, categories, numbers or persons; p is the number of columns, where it is known."""
        if self._of_persons is not None:
            return self._of_persons
        if self._codec is not None and not self._codec.flags:
            return self._by_table
        if self.domain is not None:
            attributes = tuple(map(Category, self.domain.sizes, self.domain.ordered))
            return RegainTables(self._share, attributes, important=Important(triples=self._triples))
        if self.body is not None:
            rounded = isinstance(self._form, Form) and self._form.dtype.kind in "biu"
            return RegainBody(self._share, self.body, self._grid, rounded)
        width = p if p is not None or self._codec is None else len(self._codec.names)
        limited = self._limits and width is not None
        declared = declared_coding(width, self._limits) if limited and width is not None else None
        steps = 1 if self.person is None else WEIGHT_STEPS
        return RegainBits(self._share, declared, find_device(self.device), width, self._limits, steps)

    def _fit_regain(self, X: Any) -> None:
        budget, gates, domains = self._budget, list[Gate](), None
        relations = self._declared is not None and self._declared.finds_relations
        size, first = None, self._learning or (self._first_reader if relations else None)
        if first is None:
            rows, self._form = self._read(X)
        else:  # something is found in the table before it is read as it will be measured
            X = first.prepared(X)
            rows = X.rows
        streams = self._next_streams()
        if budget.size_is_secret:
            gates.append(Gate(budget.part(SIZE_SHARE), {SIZE: WHOLE}, streams, self.noise))
            size, budget = count_units(rows, gates[-1]), budget.part(1 - SIZE_SHARE)
            rows = Counted.of(rows, size)
        if self._learning is not None:
            gates.append(Gate(budget.part(SHARE), {DOMAINS: WHOLE}, streams, self.noise))
            self.check(rows.n)
            domains = learn(rows, Provisional(self._learning.description.unit.schema), gates[-1])
            if domains.advice:
                warnings.warn(domains.advice, CoveyWarning, stacklevel=4)
            self._take(domains.schema)
            X = X.read_again(self._table_reader())
            rows, self._form = self._read(X)
            rows = rows if size is None else Counted.of(rows, size)
            budget = replace(budget.part(1 - SHARE), selection=Fraction(0))
        if relations:
            part = budget.with_amount(self._budget.amount * SHARE_OF_RELATIONS)
            X, gate = self._find(X, part, streams, size)
            if gate is not None:
                gates.append(gate)
                budget = budget.with_amount(budget.amount - part.amount)
            rows, self._form = self._read(X)
            rows = rows if size is None else Counted.of(rows, size)
        n, p = rows.n, rows.p
        self._advise(n, (2,) * p if self.domain is None else self.domain.sizes)
        if self._limits:
            if max(max(columns) for columns, _ in self._limits) >= p:
                raise ParameterError(f"at_most names a column beyond the last one, {p - 1}.")
            kept = Limit(tuple((tuple(columns), most) for columns, most in self._limits))
            rows = Mapped(rows, kept) if size is None else Counted.of(Mapped(rows.rows, kept), size)
        method = self._regain(p)
        shares = planned(method, n, p, budget, self.further)
        gates.append(Gate(budget, shares, streams, self.noise, rows.steps))
        fitted = fit(method, rows, gates[-1], streams.postprocessing, self.further)
        if self._tree is not None and isinstance(fitted.law, PersonsLaw):
            self._persons = MakePersons(self._tree.description, fitted.law)
        self._finish(fitted, gates, fitted.measurements.n if fitted.measurements is not None else n, domains)

    def _find(self, X: Any, part: Budget, streams: Streams, size: Measured | None) -> tuple[Prepared, Gate | None]:
        """Find relations of a table, anew for each one, and read it again under the schema that has them.

        Those between flags alone are pairs, which are measured anyway.
        """
        reader = self._first_reader if self._learning is None else self._table_reader()
        assert reader is not None  # nosec B101 # for the type checker
        prepared, codec = reader.prepared(X), reader.description.codecs[0]
        rows: Rows = prepared.rows if size is None else Counted.of(prepared.rows, size)
        self.check(rows.n)
        if codec.flags or not worth_looking(part, rows.n, len(codec.names)):
            self._take(codec.schema)
            return prepared, None
        gate = Gate(part, {RELATIONS: WHOLE}, streams, self.noise, rows.steps)
        columns, public = columns_of(codec), streams.postprocessing("what chance does")
        self._take(with_relations(codec, find_relations(rows, columns, gate, public)))
        return prepared.read_again(self._table_reader()), gate

    def _read(self, X: Any) -> tuple[Any, Form | TableForm]:
        """Rows for `regain`: of tables with a schema, of category codes, or of bits."""
        if self._tree is not None:
            return self._tree.read(X)
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
        law = PaperLaw(method.fit(records, par, gate), self.body, self._form.dtype.kind in "biu", codes=False)
        self._finish(Fitted(law), [gate], n)

    def _finish(self, fitted: Fitted, gates: list[Gate], n: int, domains: Learned | None = None) -> None:
        self._law, self._fitted = fitted.law, fitted
        known = None if self._prior is None else (self._of_persons or self._by_table).prior
        mechanism = "regain" if self._tree is None else "regain for persons with events"
        mechanism = mechanism if self.parameters is None else self.parameters.mechanism
        self.privacy = PrivacyStatement(
            self._budget,
            tuple(charge for gate in gates for charge in gate.spent),
            n,
            mechanism,
            self.seeded,
            unused=tuple(charge for gate in gates for charge in gate.unused),
            learned=domains.learned if domains else (),
            left_out=domains.left_out if domains else (),
            guessed=domains is not None and domains.guessed,
            assumed=() if self._learning is None else assumed(self._learning.description.unit.schema),
            prior=None if known is None else known.digest,
            noise=tuple(dict.fromkeys(line.law for gate in gates for line in gate.book)),
        )

    @property
    def rho(self) -> Fraction | None:
        """ρ = μ²/2 of Gaussian differential privacy, which a ledger composes; None where the noise is not Gaussian."""
        return self._budget.gaussian_rho

    def check(self, n: int) -> None:
        """Refuse what the public size of the table makes impossible. A caller with a ledger asks before it charges."""
        if not self._budget.size_is_secret:
            check_delta(self.delta, n)
        numbers = self._codec is not None and not self._codec.flags and self._codec.fine
        widest = (max(self.domain.sizes) if self.domain else 1) + (MOST_BINS if numbers else 0)
        require_exact(n, widest, WEIGHT_STEPS if self._by_person else 1)
        # What is learned comes after the charge, when nothing may be refused any more: a guess at it was checked before.
        if self.schema is not None and (self._learning is None or self.schema.learns):
            refuse_too_large(expected_attributes(self.schema), n, self._budget)

    @property
    def _by_person(self) -> bool:
        """Whether persons are counted, each with all their rows."""
        return self.person is not None or self._tree is not None

    def _advise(self, n: int, sizes: Sequence[int]) -> None:
        """Checks and advice that need the public size of the table."""
        self.check(n)
        if self._tree is not None:
            warn_of_few_persons(n, self._budget)
            return
        if self.schema is None and self.body is None:
            refuse_too_large([Category(size) for size in sizes], n, self._budget)
        if self.body is None:
            warn_of_noisy_shares(n, sizes, self._budget)
        else:
            warn_of_numbers(n, len(sizes), self._budget)

    def prepare(self, table: Any, encoding: str = "utf-8") -> Any:
        """Read and encode a table under the schema, or tables by name. May fail on them; spends nothing; the answer is private.

        A single table is read in parts, so it may be larger than memory. It is read again where it is too large to be kept.
        """
        if self._tree is not None:
            return self._tree.prepare(table)
        if self._learning is None and self._first_reader is not None:
            return self._first_reader.prepare(table, encoding)
        return super().prepare(table, encoding)
