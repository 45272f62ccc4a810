"""What is known beforehand: rides with every kind of rule, derived columns and an earlier release, and faults that drop them.

The table keeps every rule; each neighbour breaks some of them. Whether a record breaks a rule, or the records disagree with an
earlier release, must show nowhere but in noisy counts.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import covey.release.bundle
import covey.synthesizers.private
from audits.odometer import Ride, cheap_fits
from audits.planting import Fault, replaced
from covey.engine.codes.zeros import NO_BOXES, held_in
from covey.engine.models.tables.table_counts import code_kernel
from covey.release.bundle import write_bundle
from covey.synthesizers import PrivateSynthesizer
from covey.tables.codec import Codec
from covey.tables.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "fields": [
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
            {"name": "married", "type": "boolean", "constraints": {"required": True}},
            {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B", "C"], "required": True}},
            {"name": "least", "type": "integer", "constraints": {"minimum": 0, "maximum": 60, "required": True}},
            {"name": "most", "type": "integer", "constraints": {"minimum": 0, "maximum": 60, "required": True}},
            {"name": "food", "type": "integer", "constraints": {"minimum": 0, "maximum": 20, "required": True}},
            {"name": "rent", "type": "integer", "constraints": {"minimum": 0, "maximum": 20, "required": True}},
            {"name": "cough", "type": "boolean", "constraints": {"required": True}},
            {"name": "fever", "type": "boolean", "constraints": {"required": True}},
            {"name": "rash", "type": "boolean", "constraints": {"required": True}},
            *(
                {"name": f"eyes_{own}", "type": "boolean", "constraints": {"required": True}}
                for own in ("blue", "brown", "grey")
            ),
            {"name": "adult", "type": "boolean", "covey": {"derived": {"expression": "age >= 18"}}},
        ],
        "covey": {
            "rules": [
                {"forbid": {"age": {"maximum": 15}, "married": True}},
                {"requires": {"if": {"ward": "C"}, "then": {"age": {"maximum": 17}}}},
                {"less_equal": {"left": "least", "right": "most"}},
                {"linear": {"coefficients": {"age": 1, "least": 1}, "maximum": 140}},
                {"body": {"fields": ["food", "rent"], "sum": {"maximum": 30}}},
                {"at_most": {"fields": ["cough", "fever", "rash"], "limit": 2}},
                {"one_of": {"fields": ["eyes_blue", "eyes_brown", "eyes_grey"]}},
            ]
        },
    }
)
EARLIER = 400  # rows of the earlier release
KINDS = ("forbid", "requires", "less_equal", "linear", "body", "at_most", "one_of")
EYES = (True, False, False)
PLAIN = (40, True, "A", 10, 20, 5, 5, False, False, True, *EYES)
BREAKING = {
    "a married child": (10, True, "A", 10, 20, 5, 5, False, False, True, *EYES),
    "an adult in the children's ward": (40, True, "C", 10, 20, 5, 5, False, False, True, *EYES),
    "out of order": (40, True, "A", 60, 0, 5, 5, False, False, True, *EYES),
    "beyond both sums": (99, True, "B", 55, 60, 20, 20, False, False, True, *EYES),
    "too many flags": (40, False, "B", 10, 20, 0, 20, True, True, True, *EYES),
    "eyes of two colours": (40, True, "A", 10, 20, 5, 5, False, False, True, False, True, True),
    "eyes of none": (40, True, "A", 10, 20, 5, 5, False, False, True, False, False, False),
}
# Two records that break every rule between them: enough where a ride is not about rules.
TOGETHER = {
    "a child": (10, True, "A", 60, 0, 20, 20, True, True, True, False, True, True),
    "an adult": (99, True, "C", 55, 0, 5, 5, False, False, True, False, False, False),
}


def table(seed, first, n=900, breaking=False):
    """Records that keep every rule, or of which many break each."""
    g = np.random.default_rng(seed)
    ward = g.choice(list("ABC"), n, p=[0.5, 0.3, 0.2])
    age = np.where(ward == "C", g.integers(0, 18, n), g.integers(10, 90, n))
    least = g.integers(0, 45, n)
    food = g.integers(0, 16, n)
    flags = g.random((n, 3)) < 0.4
    if breaking:
        ward, age, food = g.choice(list("ABC"), n), g.integers(0, 100, n), g.integers(0, 21, n)
        most, rent, married = g.integers(0, 61, n), g.integers(0, 21, n), g.random(n) < 0.5
    else:
        flags[flags.all(axis=1), 0] = False
        most, rent = np.minimum(least + g.integers(0, 20, n), 60), g.integers(0, 15, n)
        married = (age > 15) & (g.random(n) < 0.6)
    eyes = g.random((n, 3)) < 0.5 if breaking else np.eye(3, dtype=bool)[g.choice(3, n, p=[0.2, 0.5, 0.3])]
    rows = list(zip(age, married, ward, least, most, food, rent, *flags.T, *eyes.T, strict=True))
    rows[0] = first
    names = [field.name for field in SCHEMA.fields[:-1]]
    return {name: list(map(_cell, column)) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _cell(value):
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


@cache
def earlier():
    """A bundle that was released before, of people much like those of the table."""
    folder = Path(mkdtemp(prefix="covey-audit-")) / "before"
    with cheap_fits(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = PrivateSynthesizer(20.0, schema=SCHEMA, seed=5).fit(table(2, PLAIN))
        return write_bundle(synth.release(EARLIER), folder)


def knowing_ride(name, *arguments, prior=False):
    """A ride with all rules; with a prior the stranger's people are others than those of the earlier release."""

    def make(seed):
        return PrivateSynthesizer(*arguments, schema=SCHEMA, seed=seed, prior=earlier() if prior else None)

    neighbours = {name: table(0, first) for name, first in (TOGETHER if prior else BREAKING).items()}
    shows = {f"rule {kind}": 1 for kind in KINDS} | {"field derived": 1} | ({"prior": EARLIER} if prior else {})
    stranger = table(7, BREAKING["a married child"], breaking=True)
    return Ride(name, make, table(0, PLAIN), neighbours, stranger, shows, files=name == "rules")


def rides():
    """Rules under both guarantees, and with an earlier release."""
    return [
        knowing_ride("rules", 6.0),
        knowing_ride("rules, (ε, δ)", 3.0, 1e-6),
        knowing_ride("prior", 6.0, prior=True),
        knowing_ride("prior, (ε, δ)", 3.0, 1e-6, prior=True),
    ]


# Faults.


def prior_dropped():
    """The earlier release is given up where it disagrees with the exact counts of a column."""

    def doubting(real):
        def fit(model, rows, *rest):
            exact = rows.reduce(code_kernel(model.attributes))._sealed.integers()[1]
            apart = np.abs(exact / exact.sum() - model.prior.shares(1, len(exact))).max() if model.prior else 0
            return real(replace(model, prior=None) if apart > 0.05 else model, rows, *rest)

        return fit

    return replaced((covey.synthesizers.private, "fit", doubting))


def rules_dropped():
    """Rules that a record breaks are taken for mistakes of whoever wrote them, and the fit forgets them."""

    def doubting(real):
        def fit(model, rows, *rest):
            broken = within(model.boxes, np.concatenate(list(rows.batches())))
            return real(replace(model, boxes=NO_BOXES) if broken else model, rows, *rest)

        return fit

    return replaced((covey.synthesizers.private, "fit", doubting))


def within(boxes, codes):
    """Whether a record lies where none should."""
    inside = [np.logical_and.reduce([held_in(codes[:, j], side) for j, side in box.items()]) for box in boxes.boxes]
    return bool(np.any(inside))


def rule_across_dropped():
    """A rule across the tables is dropped where an event breaks it."""

    def doubting(real):
        def fit(model, rows, *rest):
            linked = rows._linked
            broken = within(model.across, np.hstack([linked.persons[linked.owner], linked.events]))
            return real(replace(model, across=NO_BOXES) if broken else model, rows, *rest)

        return fit

    return replaced((covey.synthesizers.private, "fit", doubting))


def broken_rules_told():
    """A warning says how many records break a rule."""

    def telling(real):
        def encode_part(self, table, coding="bins"):
            if self.schema.rules:
                count = sum(real(self, table, "cells")[1].broken.values())
                warnings.warn(f"{count} records break a rule.", UserWarning, stacklevel=2)
            return real(self, table, coding)

        return encode_part

    return replaced((Codec, "encode_part", telling))


def count_written():
    """The README of a bundle says how many records have the largest value of a column."""
    seen = []

    def fitting(real):
        def fit(self, table):
            seen.clear()
            return real(self, table)

        return fit

    def counting(real):
        def encode_part(self, table, coding="bins"):
            cells, log = real(self, table, coding)
            seen.append(int(np.count_nonzero(cells[:, 0] == cells[:, 0].max())))
            return cells, log

        return encode_part

    def writing(real):
        return lambda *given: real(*given) + f"\n{seen[0]} records are the oldest.\n"

    return replaced(
        (covey.PrivateSynthesizer, "fit", fitting),
        (Codec, "encode_part", counting),
        (covey.release.bundle, "private_words", writing),
    )


def faults():
    """All of them."""
    return [
        Fault("prior dropped where exact counts disagree", "odometer: prior", prior_dropped()),
        Fault("prior dropped where exact counts disagree, (ε, δ)", "odometer: prior, (ε, δ)", prior_dropped()),
        Fault("rules dropped where a record breaks them", "odometer: rules", rules_dropped()),
        Fault("rules dropped where a record breaks them, (ε, δ)", "odometer: rules, (ε, δ)", rules_dropped()),
        Fault(
            "a rule across tables dropped where an event breaks it",
            "odometer: linked, rule across",
            rule_across_dropped(),
        ),
        Fault("records that break a rule counted in a warning", "odometer: rules", broken_rules_told()),
        Fault("an exact count written in a README", "odometer: rules", count_written()),
    ]
