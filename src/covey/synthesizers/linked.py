"""Persons with events under one guarantee for the person: what `PrivateSynthesizer` is for a `Package`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, Self

from covey.answers.linked import LinkedAnswers
from covey.core.tables.counts import require_exact
from covey.core.tables.linked import WEIGHT_STEPS
from covey.entropy import SEEDED_MARK
from covey.errors import CoveyWarning, NotFittedError, ParameterError, whole_number
from covey.linking import LinkedDrawn, PackageReader, PreparedPackage
from covey.methods.persons.certify import LinkedCertificate
from covey.methods.persons.method import LinkedFitted, RegainPersons
from covey.methods.persons.plan import LinkedPlan, few_persons
from covey.methods.regain.plan import CERTIFICATE_SHARE
from covey.privacy.budget import PrivacyStatement, check_delta, exact, make_budget
from covey.privacy.gate import Gate
from covey.synthesizers.parameters import Parameterized
from covey.table.frames import FrameForm
from covey.table.package import Package
from covey.table.zeros import across_zeros, structural_zeros
from covey.version import __version__

CALLER = 3  # frames up: advice is shown where `fit` was called


class LinkedSynthesizer(Parameterized):
    """Differentially private persons with events: neighbours differ in one person, with all their events.

    Args:
        epsilon: the privacy budget ε > 0 of a person.
        delta: 0 for pure ε-DP; positive and below 1/n for (ε, δ)-DP, which is much more accurate here.
        schema: the public package: a schema for each of the two tables, keys, the order and the largest number of events.
        certificate_share: the part of the budget that buys the accuracy certificate; 0 for none.
        noise: "covey" for covey's exact samplers, "opendp" for OpenDP's (extra covey[opendp]).
        seed: makes a run reproducible for tests. A seeded run is not private and says so.
    """

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        *,
        schema: Package,
        certificate_share: float | Fraction = CERTIFICATE_SHARE,
        noise: Literal["covey", "opendp"] = "covey",
        seed: int | None = None,
    ) -> None:
        if not isinstance(schema, Package):
            raise ParameterError(
                f"schema must be a covey.Package, got {schema!r}. Load one with covey.Package.load(path)."
            )
        schema.require_confirmed()
        self._budget = make_budget(epsilon, delta, noise=noise, persons=True)
        if noise not in ("covey", "opendp"):
            raise ParameterError(f"noise must be 'covey' or 'opendp', got {noise!r}.")
        if noise == "opendp" and seed is not None:
            raise ParameterError("noise='opendp' takes no seed: OpenDP draws from the operating system.")
        self.epsilon, self.delta, self.schema, self.noise = self._budget.epsilon, self._budget.delta, schema, noise
        share = exact(certificate_share, "certificate_share")
        if not 0 <= share < 1:
            raise ParameterError(f"certificate_share must lie in [0, 1), got {certificate_share}.")
        self._seed_with(seed)
        self._reader = PackageReader(schema)
        persons, events = self._reader.fine
        ordered = schema.order is not None
        plan = LinkedPlan(*self._reader.attributes, schema.at_most, ordered, schema.timing, schema.alone)
        zeros = structural_zeros(persons), structural_zeros(events)
        self._method = RegainPersons(share, plan, zeros, across_zeros(schema, persons, events))
        self._fitted: LinkedFitted | None = None
        self._forms: tuple[FrameForm, FrameForm] = (FrameForm("columns"), FrameForm("columns"))
        self.privacy: PrivacyStatement | None = None

    @classmethod
    def instead_of(cls, arguments: Sequence[Any], options: Mapping[str, Any]) -> Self:
        """What was asked of a `PrivateSynthesizer` with a package; what a package does not take is refused."""
        known = set(inspect.signature(cls.__init__).parameters)
        wrong = sorted(name for name in options if name not in known)
        if wrong:
            raise ParameterError(f"{', '.join(wrong)}: a package of persons and events takes no such parameter.")
        return cls(*arguments, **options)

    @property
    def rho(self) -> Fraction | None:
        """ρ = μ²/2 of Gaussian differential privacy, which a ledger composes; None where the noise is not Gaussian."""
        return self._budget.gaussian_rho

    def prepare(self, tables: Any) -> PreparedPackage:
        """Read, encode and link the two tables. May fail on them; spends nothing; what it returns is private."""
        return self._reader.prepare(tables)

    def check(self, n: int) -> None:
        """Refuse what the public number of persons makes impossible. A caller with a ledger asks before it charges."""
        check_delta(self.delta, n)
        require_exact(n, 1, WEIGHT_STEPS)

    def fit(self, tables: Any) -> Self:
        """Measure persons and events privately: this is the step that spends ε. Give {"persons": …, "events": …} by name."""
        prepared = tables if isinstance(tables, PreparedPackage) else self.prepare(tables)
        if prepared.package != self.schema:
            raise ParameterError("these tables were prepared under another package. Prepare them with this one.")
        n = prepared.n
        self.check(n)
        if few_persons(n, self._budget):
            warnings.warn(few_persons(n, self._budget), CoveyWarning, stacklevel=CALLER - 1)
        streams = self._next_streams()
        gate = Gate(self._budget, self._method.shares(n, self._budget), streams, self.noise, prepared.rows.steps)
        self._fitted = self._method.fit(prepared.rows, gate, streams.postprocessing)
        self._forms = prepared.forms
        self.privacy = PrivacyStatement(
            self._budget, gate.spent, n, "regain for persons with events", self.seeded, unused=gate.unused
        )
        return self

    @property
    def fitted(self) -> LinkedFitted:
        """Everything that left the fit."""
        if self._fitted is None:
            raise NotFittedError("this synthesizer has seen no tables yet: call fit({…}) first.")
        return self._fitted

    @property
    def certificate(self) -> LinkedCertificate | None:
        """The private accuracy certificate, once there is one."""
        return None if self._fitted is None else self._fitted.certificate

    @property
    def n(self) -> int:
        """Persons of the fitted tables, which are public."""
        if self.privacy is None:
            raise NotFittedError("this synthesizer has seen no tables yet: call fit({…}) first.")
        return self.privacy.n

    def draw(self, m: int) -> LinkedDrawn:
        """m synthetic persons with their events, drawn part by part when they are asked for."""
        m = whole_number(m, "m", 1, "It counts the synthetic persons.")
        return LinkedDrawn(m, self.fitted, self._reader, self._next_streams())

    def sample(self, m: int) -> dict[str, Any]:
        """Draw m synthetic persons with their events: both tables by name, as frames of the kind that was fitted.

        Persons are numbered from 1. Costs no privacy, however often it is called.
        """
        return self._reader.restore(list(self.draw(m)), self._forms)

    def release(self, m: int) -> LinkedAnswers:
        """Draw m persons and put everything that may leave together, for `write_bundle`."""
        if self.privacy is None:
            raise NotFittedError("this synthesizer has seen no tables yet: call fit({…}) first.")
        return LinkedAnswers(self.draw(m), self.schema, self.fitted, self.privacy, __version__)

    def __repr__(self) -> str:
        state = "not fitted" if self._fitted is None else str(self.privacy)
        mark = f", {SEEDED_MARK}" if self.seeded and self._fitted is None else ""
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        names = " and ".join(part.name for part in self.schema.resources)
        return f"LinkedSynthesizer(epsilon={float(self.epsilon):g}{delta}, {names}: {state}{mark})"
