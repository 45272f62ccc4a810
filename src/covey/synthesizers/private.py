"""Differentially private synthetic data: `PrivateSynthesizer`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from covey.engine.bodies import Body, Cube
from covey.engine.budget import DOMAINS, RELATIONS, Budget, PrivacyStatement, check_delta, make_budget
from covey.engine.certificate import Certificate, Distances
from covey.engine.codes.counts import canonical, is_sparse, require_exact
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.driver import SIZE, SIZE_SENSITIVITY, SIZE_SHARE, count_units, fit, planned_shares
from covey.engine.entropy import SEEDED_MARK, Streams
from covey.engine.fit.devices import find_device
from covey.engine.fractions import exact
from covey.engine.gate import WHOLE, Gate
from covey.engine.made_up import check_queries
from covey.engine.measurement import Measurements
from covey.engine.model import CERTIFICATE_SHARE, Fitted
from covey.engine.models.bits import RegainBits, declared_coding
from covey.engine.models.laws import PaperLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.models.persons.method import RegainPersons
from covey.engine.models.persons.plan import few_persons
from covey.engine.models.predict import (
    flag_words,
    least_noise,
    mostly_noise,
    predicted_error,
    predicted_misplaced,
    refuse_too_large,
    remedies,
)
from covey.engine.models.tables.important import Important
from covey.engine.models.tables.method import RegainTables
from covey.engine.models.tables.prior import Prior
from covey.engine.numbers.grid import MOST_BINS, Attribute, Category
from covey.engine.query import Query
from covey.engine.relations.search import SHARE_OF_RELATIONS, find_relations, worth_looking
from covey.engine.unit import REPLACE, Neighbours
from covey.engine.units.local import ArrayRows
from covey.engine.units.rows import Counted, Mapped, Rows
from covey.errors import CoveyWarning, NotFittedError, ParameterError, whole_number
from covey.ledger import Composition
from covey.paper.private import PaperParameters, check_options, paper_parameters, private_centres
from covey.paper.reals import RegainBody, plan_reals
from covey.paper.records import body_grid, boolean_records, code_records, real_records, trimmed
from covey.release.answers.release import Release
from covey.release.drawing import MakePersons, MakeRows
from covey.release.verify import bundle_digest, checked_prior, described_by, read_prior, tables_of
from covey.synthesizers.base import NOT_FITTED, Synthesizer, check_domain
from covey.synthesizers.further import check_declared, made_up_units
from covey.synthesizers.learning import (
    SHARE,
    Learned,
    assumed,
    check_learning,
    expected_codec,
    learn,
    with_known_domains,
)
from covey.synthesizers.used_relations import columns_of, with_relations
from covey.tables.codec import Codec
from covey.tables.description import Description
from covey.tables.models import persons_model, table_model
from covey.tables.reading import Form, Prepared, Reader, read_bits, read_codes, read_reals
from covey.tables.schema import Schema
from covey.version import __version__

Limits = Sequence[tuple[Sequence[int], int]]
PAPER = ("kappa", "t", "alpha", "b", "split", "constants")  # what the paper's method alone takes
# What is about rows of one table or array alone, and what it is where nothing is said.
OF_ROWS: dict[str, Any] = {
    **dict.fromkeys(("domain", "person", "body")),
    "method": "regain",
    "ordinal": (),
    "at_most": (),
    "rows_per_person": 1,
    "device": "cpu",
}


class PrivateSynthesizer(Synthesizer):
    """Make differentially private synthetic tables: `fit` spends the budget, `sample` draws rows at no further cost.

    Args:
        epsilon: the privacy budget ε > 0.
        delta: 0 for pure ε-DP; positive and below 1/n for (ε, δ)-DP, which is more accurate. 1e-9 is a common choice.
        method: "regain", accurate at ordinary sizes, or "paper", Algorithm 4 with the theorem's constants.
        schema: the public `Schema` of a table with names, categories, numbers and dates; `fit` then takes a frame or a file.
            Fields to be learned get limits and categories with noise, for a tenth of the budget of each `fit`. For persons
            with events give their `Description`; `fit` then takes both tables by name, and protects a person with all events.
        domain: numbers of categories, for integer-coded categorical records; None for records of 0 and 1.
        ordinal: the indices of ordered attributes of the domain (numbers, dates).
        at_most: limits [(columns, L), …]: a record has at most L ones in these 0/1 columns. They are public promises.
            Records that break one are trimmed by a fixed rule before they are measured, and synthetic rows keep it.
        triples: how many triples of columns, or fours and fives of yes/no ones, to choose with noise at most (domain or schema).
        prior: an earlier private bundle of the same schema, such as last year's. It is public information, and is used where
            this year's noisy tables agree with it (of persons with events, for tables of one column).
        person: the column that identifies the person (with a schema). All rows of a person are then protected together:
            they share one weight, n counts persons, and neither the column nor the number of rows is released. Rows
            without a person are left out.
        rows_per_person: how many rows one person may have, if no column identifies persons. The noise grows with it, and the
            guarantee covers replacing a person by one with equally many rows.
        neighbours: "replace-one": the number of rows, or persons, is public; "add-or-remove-one": it is measured with noise.
        certificate_share: the part of the budget that buys the accuracy certificate; 0 for none.
        composition: how your ledger adds up releases. With few columns of few categories pure ε has less noise, so δ is then
            left unspent. "gaussian" prevents this: a ledger that counts μ² would charge pure noise far more.
        body: the convex set K of real-valued records; records outside are moved to its nearest point, and rows lie in it.
            In a product of simplices integers of 8 or 16 bits are one-hot categories, and come back as such.
        device: where tables of more than 1,000 columns are fitted: "cpu", or "cuda" with the extra covey[gpu]. Only noisy
            measurements go to the graphics card, never records.
        seed: makes a run reproducible for tests. A seeded run is not private and says so.
        paper: what method "paper" takes: kappa, κ; t, the dimension of its subspace; alpha, the mesh of its lattice; b, its
            damping; split, how it shares ε among directions, weights and points; constants, "paper" or "improved" for our own
            proofs. None takes the theorem's choice.
    """

    _learns = True
    _of_paper = PAPER
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
        composition: Composition | None = None,
        body: Body | None = None,
        device: str = "cpu",
        seed: int | None = None,
        **paper: Any,
    ) -> None:
        options = dict(locals())
        if not set(paper).issubset(PAPER):
            raise TypeError(f"PrivateSynthesizer takes no argument {min(set(paper) - set(PAPER))!r}")
        whole = schema if isinstance(schema, Description) else None
        several = whole is not None and whole.schema is None  # tables of persons and events
        if several:
            wrong = sorted(name for name, plain in OF_ROWS.items() if options[name] != plain)
            wrong += [name for name, value in paper.items() if value is not None]
            if wrong:
                raise ParameterError(f"{', '.join(wrong)}: a package of persons and events takes no such parameter.")
        own: Any = schema if whole is None else whole.schema
        self._declared = own = _synthesized(own, person)
        super().__init__(body, seed, own)
        # What is public of the tables.
        self.described = None if own is None else Description.of(own)
        if whole is not None and several:
            self.described = whole.each(lambda part: with_known_domains(part.schema))
        find_device(device)  # refused here, before any table is opened
        self.device = device
        learns = self.described is not None and self.described.learns
        self._learning = Reader(self.described, person=person) if self.described is not None and learns else None
        self.person, self._by_person = person, person is not None or several
        self._budget = make_budget(
            epsilon,
            delta,
            rows_per_person,
            labels=self._learning is not None,
            persons=self._by_person,
            neighbours=neighbours,
        )
        self._promised = self._budget  # what was asked for; of it the budget may leave δ unspent
        self._kinds: tuple[Attribute, ...] = ()  # of columns of which pairs are all that is asked
        self.epsilon: Fraction = self._budget.epsilon
        self.delta: Fraction = self._budget.delta
        if method not in ("regain", "paper"):
            raise ParameterError(f"method must be 'regain' or 'paper', got {method!r}.")
        self.method, self.composition = method, composition
        self.domain = check_domain(domain, ordinal)
        self._prior = prior
        unknown = own is None or own.finds_relations
        if prior is not None and (learns or (unknown and not several)):
            raise ParameterError("a prior needs schema=…, with the same limits and categories as its bundle.")
        self._triples = whole_number(triples, "triples", 0, "It counts triples of columns.")
        if self._triples and domain is None and schema is None:
            raise ParameterError("triples are chosen among columns with categories: give domain=… or schema=….")
        if self.domain is not None and at_most:
            raise ParameterError("at_most is for 0/1 columns and cannot be combined with domain.")
        self._limits = check_limits(at_most)
        self._share = exact(certificate_share, "certificate_share")
        if not 0 <= self._share < 1:
            raise ParameterError(f"certificate_share must lie in [0, 1), got {certificate_share}.")
        self._options = {"shares" if k == "split" else k: value for k, value in paper.items() if value is not None}
        # What cannot be is refused here, before any table is opened.
        self._of_persons: RegainPersons | None = None
        if self.described is not None:
            if domain is not None or len(ordinal) or len(at_most):
                raise ParameterError("domain, ordinal and at_most come from the schema. Leave them out.")
            self._take(self.described)
        # Tables are read as they were declared at first: a fit may learn domains and relations, and read them again.
        self._first_reader = self._learning or self._reader
        self._check_method()
        self._persons: MakePersons | None = None
        self.parameters: PaperParameters | None = None
        self.privacy: PrivacyStatement | None = None
        self._fitted: Fitted | None = None

    def _choose_law(self, n: int | None = None) -> None:
        """Spend nothing of δ where pure laws have less noise on the columns, as far as these, and later n, are known."""
        looked = self._declared is not None and self._declared.finds_relations  # by noise of the law that all has then
        plain = not (self._by_person or self._learning or looked or self._limits or self._triples or self._prior)
        plain = plain and self.body is None and self._promised.rows_per_person == 1
        free = plain and self.composition != "gaussian"
        self._budget = least_noise(self._kinds, self._promised, n) if free else self._promised

    def _persons_method(self, described: Description) -> RegainPersons:
        """The method for persons with events, with the persons of an earlier bundle where one is given."""
        method = persons_model(described.focus(triples=self._triples or None), self._share)
        if self._prior is None:
            return method
        place = checked_prior(self._prior, described, self.seeded)
        files = {part.name: path for part, path in tables_of(place, described_by(place))}
        linked, _ = Reader(described.plain()).open(files)
        return replace(method, prior=Prior.of_persons(linked, bundle_digest(place)))

    def _take(self, described: Description) -> None:
        """Use a description: one that is complete, or one whose domains are to be learned first."""
        described.require_confirmed()
        described.require_one_branch()
        self.described, self.schema = described, described.schema
        if described.learns:
            for part in described.tables:
                check_learning(part.schema, self.delta)
        elif described.schema is None:
            self._reader, self._of_persons = Reader(described, "numbers"), self._persons_method(described)
        else:
            self._take_table(described, described.schema)

    def _take_table(self, described: Description, schema: Schema) -> None:
        self._codec = codec = described.codecs[0]
        flags = codec.flags
        self.domain = None if flags else check_domain(codec.domain_sizes, np.flatnonzero(codec.ordered).tolist())
        self._limits = check_limits(codec.limits if flags else ())
        plain = not (schema.found or codec.important or codec.target or schema.triples_wanted)
        kinds = (Category(2),) * len(codec.names) if flags else codec.kinds
        self._kinds = kinds if plain else ()
        self._choose_law()
        if self._learning is None and not schema.found:
            refuse_too_large(codec.kinds, 1, self._budget)  # whatever its rows, before any data is opened
        method = table_model(codec, self._share, self._budget.pure)
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
            if self.delta or self.domain or self._limits or self.schema is not None or secret:
                raise ParameterError(
                    "method 'paper' takes no delta, schema, domain, at_most or neighbours: it is pure ε-DP on K for a "
                    "replaced row."
                )
            check_options(self.body, self._options)
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
        """Measure the table with noise and fit a model. This is the step that spends ε. X is not changed."""
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
            return RegainBody(self._share, self.body, self._grid, self._form.dtype.kind in "biu")
        width = p if p is not None or self._codec is None else len(self._codec.names)
        declared = declared_coding(width, self._limits) if self._limits and width is not None else None
        steps = 1 if self.person is None else WEIGHT_STEPS
        return RegainBits(self._share, declared, find_device(self.device), width, self._limits, steps)

    def _fit_regain(self, X: Any) -> None:
        gates, size, domains = list[Gate](), None, None
        if self._first_reader is None:
            rows, self._form = self._read_array(X)
            own = self.domain
            flags = (Category(2),) * rows.p
            self._kinds = flags if own is None else tuple(map(Category, own.sizes, own.ordered))
        else:
            X = self._first_reader.prepared(X)
            rows = X.rows
        self.check(rows.n)
        if self._first_reader is None:
            self._check_further(rows.p)
        streams, budget = self._next_streams(), self._budget
        if budget.size_is_secret:
            gates.append(Gate(budget.part(SIZE_SHARE), {SIZE: WHOLE}, streams))
            size, budget = count_units(rows, gates[-1]), budget.part(1 - SIZE_SHARE)

        def counted(own: Rows) -> Rows:
            return own if size is None else Counted.of(own, size)

        relations = self._declared is not None and self._declared.finds_relations
        if self._learning is not None:
            gates.append(Gate(budget.part(SHARE), {DOMAINS: WHOLE}, streams, rows.steps))
            domains = learn(counted(rows), self._learning.description, gates[-1])
            self._warn(domains.advice)
            self._take(domains.description)
            X = X.read_again(self._table_reader())
            budget = replace(budget.part(1 - SHARE), selection=Fraction(0))
        if relations:
            part = budget.with_amount(self._budget.amount * SHARE_OF_RELATIONS)
            gate = self._find_relations(counted(X.rows), X.reader, part, streams)
            if gate is not None:
                X = X.read_again(self._table_reader())
                gates.append(gate)
                budget = budget.with_amount(budget.amount - part.amount)
        if isinstance(X, Prepared):
            rows, self._restore = X.rows, X.restore
        n, p = counted(rows).n, rows.p
        self.check(n, noisy=True)
        self._warn(self._advice(n, (2,) * p if self.domain is None else self.domain.sizes))
        if self._limits:
            if max(max(columns) for columns, _ in self._limits) >= p:
                raise ParameterError(f"at_most names a column beyond the last one, {p - 1}.")
            kept = tuple((tuple(columns), most) for columns, most in self._limits)
            rows = Mapped(rows, partial(trimmed, limits=kept))
        rows, method = counted(rows), self._regain(p)
        shares = planned_shares(method, n, p, budget, self.further)
        gates.append(Gate(budget, shares, streams, rows.steps))
        fitted = fit(method, rows, gates[-1], streams.postprocessing, self.further)
        if self.described is not None and isinstance(fitted.law, PersonsLaw):
            self._persons = MakePersons(self.described, fitted.law)
        self._finish(fitted, gates, fitted.measurements.n if fitted.measurements is not None else n, domains)

    def _find_relations(self, rows: Rows, reader: Reader, part: Budget, streams: Streams) -> Gate | None:
        """Find relations of a table, anew for each one, and take the schema that has them; None where none were looked for.

        Those between flags alone are pairs, which are measured anyway.
        """
        codec = reader.description.codecs[0]
        if codec.flags or not worth_looking(part, rows.n, len(codec.names)):
            self._take(reader.description)
            return None
        gate = Gate(part, {RELATIONS: WHOLE}, streams, rows.steps)
        columns, public = columns_of(codec), streams.postprocessing("what chance does")
        self._take(Description.of(with_relations(codec, find_relations(rows, columns, gate, public))))
        return gate

    def _read_array(self, X: Any) -> tuple[Any, Form]:
        """Rows for `regain`: of category codes, of real numbers in the body, or of bits."""
        if self.domain is not None:
            codes, form = read_codes(X, self.domain)
            return ArrayRows(codes), form
        if self.body is not None:
            matrix, form = read_reals(X, self.body)
            return code_records(matrix, self.body, self._grid), form
        bits, form = read_bits(X, sparse=not self.further)
        return boolean_records(bits).rows, form

    def _fit_paper(self, X: Any) -> None:
        if self.body is None:
            X, form = read_bits(X)
            records = boolean_records(X)
        else:
            X, form = read_reals(X, self.body)
            records = real_records(X, self.body)
        self._form, n = form, records.rows.n
        self.check(n)
        body = self.body or Cube(X.shape[1])
        par = paper_parameters(n, body, self._budget.per_row, **self._options)
        # Noise on a coordinate of a damped mean, in units where the coordinate of a Boolean record is 0 or 1.
        sd = par.means_noise * float(np.sqrt(2 * par.p))
        if sd > 0.5:
            self._warn(
                f"with n = {n}, p = {par.p} and these parameters the paper's noise on a block mean has standard "
                f"deviation {sd:.2g} for columns between 0 and 1. The result will be mostly noise. Use method='regain', or more "
                "rows, a larger epsilon or fewer columns."
            )
        gate = Gate(self._budget, par.shares, self._next_streams())
        self.parameters = par
        cloud, _ = private_centres(records, body, par, gate)
        law = PaperLaw(cloud, self.body, form.dtype.kind in "biu", codes=False)
        self._finish(Fitted(law), [gate], n)

    def _finish(self, fitted: Fitted, gates: list[Gate], n: int, domains: Learned | None = None) -> None:
        self._law, self._fitted = fitted.law, fitted
        known = None if self._prior is None else (self._of_persons or self._by_table).prior
        mechanism = "regain" if self._of_persons is None else "regain for persons with events"
        if self.delta and self._budget.pure:
            mechanism += ", with pure noise, which is smaller here than Gaussian noise for the δ that was allowed"
        self.privacy = PrivacyStatement(
            self._budget,
            tuple(charge for gate in gates for charge in gate.spent),
            n,
            mechanism if self.parameters is None else self.parameters.mechanism,
            self.seeded,
            unused=tuple(charge for gate in gates for charge in gate.unused),
            learned=domains.learned if domains else (),
            left_out=domains.left_out if domains else (),
            guessed=domains is not None and domains.guessed,
            assumed=() if self._learning is None else assumed(self._learning.description),
            prior=None if known is None else known.digest,
            noise=tuple(dict.fromkeys(line.law for gate in gates for line in gate.book)),
        )

    @property
    def rho(self) -> Fraction | None:
        """ρ = μ²/2 of Gaussian differential privacy, which a ledger composes; None where the noise is not Gaussian."""
        return self._budget.gaussian_rho

    def check(self, n: int, noisy: bool = False) -> int:
        """Refuse what the public size of the table makes impossible. A caller with a ledger asks before it charges.

        From then on `rho` is what a table of this size will spend. A secret size may become as much more as is returned.
        """
        self._choose_law(n)
        if not noisy:
            self._check_further()
        # Noise on a secret number is beyond twenty deviations once in 10^12 times. That of a public one is 0.
        n += 0 if noisy else int(20 * SIZE_SENSITIVITY.deviation(self._budget.part(SIZE_SHARE)))
        if not self._budget.size_is_secret:
            check_delta(self.delta, n)
        numbers = self._codec is not None and not self._codec.flags and self._codec.fine
        widest = (max(self.domain.sizes) if self.domain else 1) + (MOST_BINS if numbers else 0)
        require_exact(n, widest, WEIGHT_STEPS if self._by_person else 1)
        # What is learned comes after the charge, when nothing may be refused any more: a guess at it was checked before.
        if self.schema is not None and (self._learning is None or self.schema.learns):
            refuse_too_large(expected_codec(self.schema).kinds, n, self._budget)
        return n

    def _check_further(self, p: int | None = None) -> None:
        """Refuse further queries before anything is spent; p is the number of columns of an array, once it is known."""
        if self.further and (self.method == "paper" or self.body is not None):
            raise ParameterError("further queries are about columns with categories or numbers of a schema or domain.")
        if self.further:
            check_declared(self._declared, self._learning is not None)
            made_up = made_up_units(self.described, self.domain, p)
            check_queries(self.further, made_up, self._budget)

    def _advice(self, n: int, sizes: Sequence[int]) -> str:
        """What a caller is told, from public numbers alone, before a fit that will mostly give noise."""
        budget = self._budget
        if self._of_persons is not None:
            return few_persons(n, budget)
        if self.schema is None and self.body is None:
            refuse_too_large([Category(size) for size in sizes], n, budget)
        about = f"with n = {n}, {len(sizes)} columns and epsilon = {float(budget.epsilon):g}"
        if self.body is None and mostly_noise(predicted_error(sizes, n, budget)):
            words = flag_words(n, len(sizes), budget) if self.domain is None else ""
            return (
                f"{about} about {100 * predicted_misplaced(sizes, n, budget):.2g}% of the rows would have to move in an average "
                f"two-column table. The result will be mostly noise. {f'{words.capitalize()}. ' if words else ''}"
                f"{remedies(sizes, n, budget, offered=self.delta > 0).capitalize()}."
            )
        if self.body is not None and plan_reals(n, len(sizes), budget).mechanism in ("means", "margins"):
            return (
                f"{about} products of two columns would be noise. Columns are measured one by one, and are independent in the "
                f"synthetic rows. More {budget.counted}, a larger epsilon, a positive delta or fewer columns help."
            )
        return ""

    def _warn(self, advice: str) -> None:
        if advice:
            warnings.warn(advice, CoveyWarning, stacklevel=4)  # where `fit` was called

    # What is there once a table was fitted.

    @property
    def n(self) -> int:
        """Rows of the fitted table, or its persons, which are public."""
        if self.privacy is None:
            raise NotFittedError(NOT_FITTED)
        return self.privacy.n

    @property
    def certificate(self) -> Certificate | None:
        """The private accuracy certificate, if one was bought."""
        return None if self._fitted is None else self._fitted.certificate

    @property
    def measurements(self) -> Measurements | None:
        """The noisy numbers that were measured, as far as they are kept."""
        return None if self._fitted is None else self._fitted.measurements

    def _maker(self) -> MakeRows | MakePersons:
        return self._persons or super()._maker()

    def release(self, m: int | None = None) -> Any:
        """Draw m rows, or persons, as a `Release`: it answers questions, and `write_bundle` writes it to a folder.

        By default m is the public number of rows or persons, or the noisy one if that number is secret.
        """
        if self.body is not None:
            raise ParameterError(
                "rows of a convex body have no column names, so there is no bundle of them. Use sample(m) and privacy. For a "
                "bundle declare the columns in a schema with a rule body."
            )
        if self.described is None or self.privacy is None or self._fitted is None:
            raise ParameterError(
                "a release needs a schema and a fitted table: PrivateSynthesizer(…, schema=schema).fit(table)."
            )
        drawn = self.draw(self.privacy.n if m is None else m)
        return Release(drawn, self.described, self._fitted, self.privacy, __version__)

    def certify(self, Z: Any) -> Distances:
        """95% bounds on the error of a synthetic table, by degree: the certificate plus the table's distance from the model.

        Give it synthetic rows, or another public table in their spelling, never real rows: the distance is exact, without noise.
        """
        if self.certificate is None or self._persons is not None:
            raise NotFittedError(
                "there is no certificate: fit one table with method='regain' and certificate_share > 0."
            )
        if self._codec is not None:
            Z = Codec(self._codec.schema.plain()).encode(Z, self._table_reader().coding)[0]
        Z = canonical(Z) if is_sparse(Z) else np.asarray(Z)
        return self.certificate.for_table(self._law.distances(Z))

    def __repr__(self) -> str:
        state = "not fitted" if self.privacy is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self.privacy is None else ""
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        return f"PrivateSynthesizer(epsilon={float(self.epsilon):g}{delta}, method={self.method!r}: {state}{mark})"


def _synthesized(schema: Any, person: str | None) -> Any:
    """The schema of what is synthesized: without the column of persons."""
    own = with_known_domains(schema) if isinstance(schema, Schema) else schema
    if person is None:
        return own
    if not isinstance(own, Schema):
        raise ParameterError("person names a column of a table, so it needs schema=….")
    return own.without(person)


def check_limits(limits: Limits) -> list[tuple[list[int], int]]:
    """Declared limits as lists of columns, each column in one set at most, or a refusal; those that allow all say nothing."""
    try:
        read = [([whole_number(c, "at_most column", 0) for c in cols], most) for cols, most in limits]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"at_most must list pairs (columns, limit): {error}") from None
    seen: set[int] = set()
    for columns, most in read:
        whole_number(most, "at_most limit", 0)
        if not columns or len(set(columns)) < len(columns) or seen & set(columns):
            raise ParameterError("at_most: each set needs columns, and each column belongs to one set at most.")
        seen |= set(columns)
    return [(columns, most) for columns, most in read if most < len(columns)]
