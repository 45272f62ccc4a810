"""Gates for audits and tests: over any amount, with any source of integer noise, and whole fits as a synthesizer runs them."""

from __future__ import annotations

from fractions import Fraction

from covey.engine.budget import Budget
from covey.engine.driver import fit, run
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.models.bits import RegainBits
from covey.engine.models.tables.method import RegainTables
from covey.engine.numbers.grid import Category
from covey.paper.private import private_centres

CERTIFICATE = Fraction(1, 10)


def opened(exact):
    """What is sealed: for tests and audits alone."""
    return exact._sealed


def a_budget(amount=1, pure=True, rows_per_person=1):
    """A budget that may spend exactly so much, in ε or ρ."""
    return Budget(Fraction(1), Fraction(0 if pure else Fraction(1, 10**9)), rows_per_person, Fraction(amount))


class SourcedGate(Gate):
    """A gate whose Laplace and Gaussian noise comes from a given source."""

    source = None

    def _noise(self, purpose):
        return self.source if self.source is not None else super()._noise(purpose)


def a_gate(*purposes, amount=1, pure=True, streams=None, source=None, rows_per_person=1):
    """A gate that gives each purpose the whole of an amount of its own."""
    budget = a_budget(Fraction(amount) * len(purposes), pure, rows_per_person)
    shares = dict.fromkeys(purposes, Fraction(1, len(purposes)))
    gate = SourcedGate(budget, shares, streams or Streams.from_seed(0))
    gate.source = source
    return gate


def fitted(rows, method, budget, streams, make_gate=Gate):
    """What leaves a fit of `regain`, and its gate."""
    gate = make_gate(budget, method.shares(rows.n, rows.p, budget), streams)
    return fit(method, rows, gate, streams.postprocessing), gate


def asked(part, rows, gate, *arguments):
    """What a part of a model comes to on rows."""
    return run(lambda setting: part(setting, *arguments), rows, gate)


def fit_bits(rows, budget, streams, share=CERTIFICATE, declared=None, make_gate=Gate):
    """`regain` on rows of bits."""
    return fitted(rows, RegainBits(share, declared), budget, streams, make_gate)[0]


def fit_categories(rows, domain, budget, streams, share=CERTIFICATE, make_gate=Gate):
    """`regain` on rows of category codes."""
    attributes = tuple(map(Category, domain.sizes, domain.ordered))
    return fitted(rows, RegainTables(share, attributes), budget, streams, make_gate)[0]


def paper_gate(par, streams, make_gate=Gate, rows_per_person=1):
    """The gate of Algorithm 4 for given parameters, whose ε is that of a row."""
    budget = a_budget(par.epsilon * rows_per_person, True, rows_per_person)
    return make_gate(budget, par.shares, streams)


def fit_paper(records, body, par, streams, make_gate=Gate):
    """Algorithm 4 on records in a body."""
    return private_centres(records, body, par, paper_gate(par, streams, make_gate))[0]
