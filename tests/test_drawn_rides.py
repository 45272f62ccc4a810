"""Options of rides are drawn from everything that a synthesizer and an order take: none is forgotten, and faults are noticed."""

import inspect
from contextlib import suppress
from dataclasses import fields
from unittest.mock import patch

import pytest

import covey.engine.exact
from audits import accounts, drawn, neighbours, options
from audits.options import Chance
from audits.planting import told
from covey.errors import CoveyError
from covey.synthesizers.private import PAPER, PrivateSynthesizer
from covey.tables.dialects import Dialect
from covey.tables.fields import Field
from covey.tables.schema import KINDS, Schema
from covey.workflow import PrivateOrder

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]

MOST_DRAWS, FEW_DRAWS = 300, "c"  # of the latter, eighty reach everything
SIGNATURE = set(inspect.signature(PrivateSynthesizer).parameters) - {"paper"}
TAKEN = {
    "synthesizer": (SIGNATURE | set(PAPER), options.SYNTHESIZER, options.NOT_OF_SYNTHESIZER),
    "order": ({own.name for own in fields(PrivateOrder)}, options.ORDER, options.NOT_OF_ORDER),
    "schema": ({own.name for own in fields(Schema)}, options.SCHEMA, options.NOT_OF_SCHEMA),
    "field": ({own.name for own in fields(Field)}, options.FIELD, options.NOT_OF_FIELD),
    "dialect": ({own.name for own in fields(Dialect)}, options.DIALECT, options.NOT_OF_DIALECT),
    "rule": (set(KINDS), options.RULES, {}),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_every_option_has_a_generator_or_says_why_not(kind):
    taken, generators, left_out = TAKEN[kind]
    assert taken == set(generators) | set(left_out)
    assert not set(generators) & set(left_out)


@pytest.mark.parametrize(
    ("make", "generators"),
    [(drawn.synthesizer_ride, options.SYNTHESIZER), (drawn.order_ride, options.ORDER)],
    ids=["synthesizer", "order"],
)
def test_draws_that_are_accepted_reach_every_option(make, generators):
    left = set(generators)
    for number in range(MOST_DRAWS):
        with suppress(CoveyError):
            left -= set(make("a ride", Chance(f"{FEW_DRAWS} {number}"))[1])
        if not left:
            return
    assert not left


def halved(sensitivity):
    """A sensitivity whose laws get half of the noise, or less."""
    bounds = {name: getattr(sensitivity, name) for name in ("l1", "l2_squared", "linf", "table")}
    halves = {name: bound / 2 for name, bound in bounds.items() if bound is not None}
    return type(sensitivity)(**halves, summed=sensitivity.summed, added=sensitivity.added and halved(sensitivity.added))


NOTICED = {
    "histograms with half their noise": (told("histograms", halved), "synthesizer"),
    "the exact number of rows": (neighbours.exact_size_told(), "synthesizer"),
    "neighbours that a charge leaves out": (accounts.neighbours_left_out(), "order"),
    "a charge for one row": (accounts.charge_for_one_row(), "order"),
}


@pytest.mark.parametrize("name", NOTICED)
def test_what_nobody_has_thought_of_is_noticed_by_one_of_the_quick_rides(name):
    plant, words = NOTICED[name]
    rides = [check for check in drawn.checks() if check.name.startswith(f"drawn {words}")]
    with plant(), patch.object(covey.engine.exact, "_check"):
        assert any(next(iter(check.run(0)), "") for check in rides)
