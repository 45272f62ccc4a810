"""Planted faults of accounting: uncharged looks at exact values, factors that are forgotten, charges that are spent twice.

Each opens what the gate seals, or bends what the gate is told, as a hurried author might. The odometer must notice, or the checks
of fresh and separate randomness.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

import covey.engine.models.tables.measure_tables as measure_tables
import covey.engine.models.tables.table_counts as table_counts
import covey.engine.noise.integers
import covey.engine.noise.matrix
import covey.synthesizers.private
from audits import bodies, commands, events, knowledge, persons
from audits.planting import Fault, replaced, told
from covey.engine.budget import Budget
from covey.engine.codes.counts import Coding, moments
from covey.engine.codes.distance import moment_distances
from covey.engine.entropy import Streams
from covey.engine.gate import WHOLE, Gate
from covey.engine.models.persons.plan import PersonsPlan
from covey.engine.models.tables.discretize import Discretizer
from covey.engine.noise import sensitivity
from covey.engine.points import WeightedPoints
from covey.engine.sensitivity import Sensitivity

# Choices that look at exact values.


def better_cloud():
    """Two clouds, and the one that is nearer to the records is kept."""

    def choosing(real):
        def fit(model, rows, *rest):
            found = real(model, rows, *rest)
            own = found.law.cloud
            both = [own, WeightedPoints(own.weights, 1 - own.points)]
            exact = [rows.reduce(moments).map(moment_distances, cloud)._sealed[1] for cloud in both]
            return replace(found, law=replace(found.law, cloud=both[int(np.argmin(exact))]))

        return fit

    return replaced((covey.synthesizers.private, "fit", choosing))


def exact_radius():
    """The radius is read off the histogram of norms before it got its noise."""

    def peeking(real):
        def measure_it(self, purpose, exact, shape, sensitivity, share=WHOLE):
            found = real(self, purpose, exact, shape, sensitivity, share)
            return replace(found, values=exact._sealed) if purpose == "coding" and 2 * share < 1 else found

        return measure_it

    return replaced((Gate, "measure", peeking))


def exact_look():
    """Whether pairs are measured is decided by how far they are from independent, without noise."""

    def peeking(real):
        def measure_it(self, purpose, exact, *rest):
            found = real(self, purpose, exact, *rest)
            return replace(found, values=exact._sealed) if purpose == "look" else found

        return measure_it

    return replaced((Gate, "measure", peeking))


def columns_for_nothing():
    """One draw for one-way tables and pairs has the noise that pairs alone need."""
    return replaced((sensitivity, "pair_table_sensitivity", lambda real: lambda sizes, weights=None: real(sizes)))


def look_at_one_pair():
    """The look's noise is that of one pair of columns: the mean of all was to be measured, and their sum is."""
    return told(
        "look",
        lambda sensitivity: replace(
            sensitivity, l1=sensitivity.l1 / Fraction(21), l2_squared=sensitivity.l2_squared / Fraction(21**2)
        ),
    )


def sums_taken_for_public():
    """K-norm noise on tables of events, whose sums tell how many there are."""

    def public(real):
        return property(lambda self: replace(real.func(self), one_cell_per_unit=True))

    return replaced((PersonsPlan, "numbers", public))


def exact_merging():
    """Categories are merged on their exact counts."""
    seen = []

    def remembering(real):
        def measure_it(self, purpose, exact, *rest):
            if purpose == "histograms":
                seen.append(exact._sealed.astype(np.float64))
            return real(self, purpose, exact, *rest)

        return measure_it

    def peeking(real):
        def discretize(self, one_way, *rest):
            last = seen[-len(one_way.histograms) :]
            exact = [replace(m, values=counts) for m, counts in zip(one_way.histograms, last, strict=True)]
            return real(self, replace(one_way, histograms=exact), *rest)

        return discretize

    return replaced((Gate, "measure", remembering), (Discretizer, "discretize", peeking))


def exact_counts_kept():
    """The counts that travel beside a release are those of the records, not those that got noise."""

    def peeking(real):
        def fit(model, rows, *rest):
            found = real(model, rows, *rest)
            exact = rows.reduce(table_counts.code_kernel(model.attributes))._sealed
            one, *others = found.measurements.found
            told = replace(one, values=np.concatenate(exact.integers()).astype(np.float64))
            return replace(found, measurements=replace(found.measurements, found=(told, *others)))

        return fit

    return replaced((covey.synthesizers.private, "fit", peeking))


# Sensitivities and factors.


def one_score():
    return told("scores", lambda _: Sensitivity(l1=2, l2_squared=2))


def added_or_removed():
    return told("histograms", lambda _: Sensitivity(l1=1, l2_squared=1))


def certificate_for_one_row():
    """The certificate's noise covers one row of a person."""

    def forgetting(real):
        def pay(self, purpose, *rest):
            promised = self.budget
            if purpose == "certificate":
                self.budget = replace(promised, rows_per_person=1)
            try:
                return real(self, purpose, *rest)
            finally:
                self.budget = promised

        return pay

    return replaced((Gate, "_pay", forgetting))


def two_noised_like_one():
    """The certificate's two numbers get the Gaussian noise of one."""
    return told("certificate", lambda sensitivity: replace(sensitivity, l2_squared=sensitivity.l2_squared / 2))


def cube_halved():
    """The cube's noise for the certificate is half as wide."""

    def halved(real):
        def cube(self, purpose, exact, sensitivity, dimension):
            half = (
                replace(sensitivity, linf=Fraction(sensitivity.linf) / 2) if purpose == "certificate" else sensitivity
            )
            return real(self, purpose, exact, half, dimension)

        return cube

    return replaced((Gate, "cube", halved))


def rows_not_squared():
    return replaced((Budget, "per_row", lambda _: property(lambda self: self.amount / self.rows_per_person)))


def half_trace():
    def half(real):
        return lambda domain: replace(real(domain), trace=real(domain).trace / 2)

    return replaced((measure_tables, "pair_sensitivity", half))


def half_trace_of_signs():
    def half(real):
        def matrix(self, purpose, sensitivity, weights, share, signs):
            sensitivity = replace(sensitivity, trace=sensitivity.trace / 2) if signs else sensitivity
            return real(self, purpose, sensitivity, weights, share, signs)

        return matrix

    return replaced((Gate, "matrix", half))


def short_signs():
    """Rows of signs are brought to length one or so, as for a correlation matrix, and not to the length drawn for them."""
    return replaced((covey.engine.noise.matrix, "common_degrees", lambda _: lambda p: p))


def uncentred():
    def plain(_):
        def centred_counts(counts, domain):
            c = domain.counts[domain.block_of]
            return c[:, None] * c * counts

        return centred_counts

    return replaced((measure_tables, "centred_counts", plain))


def cut_too_little():
    def generous(real):
        def encode(self, batch):
            return np.trunc(real(self, batch) * (1.3 if self.clips else 1))

        return encode

    return replaced((Coding, "encode", generous))


def coding_spent_twice():
    """Centre and radius each spend the whole charge of the coding."""

    def whole(real):
        def measure_it(self, purpose, exact, shape, sensitivity, share=WHOLE):
            return real(self, purpose, exact, shape, sensitivity, WHOLE if purpose == "coding" else share)

        return measure_it

    return replaced((Gate, "measure", whole))


# Randomness.


def noise_cached():
    """Noise is kept by its shape, "to save time"."""
    kept = {}

    def cached(real):
        return lambda self, variance, size: kept.setdefault((variance, size), real(self, variance, size))

    return replaced((covey.engine.noise.integers.CoveyNoise, "gaussian", cached))


def rows_from_noise():
    def mixed(real):
        return lambda self, purpose: self.noise("moments") if purpose == "rows" else real(self, purpose)

    return replaced((Streams, "postprocessing", mixed))


def same_noise_twice():
    """Under (ε, δ) every fit draws the same noise."""

    def fixed(real):
        def generator(self, purpose):
            return real(self, purpose) if self.budget.pure else Streams.from_seed(0).noise(purpose)

        return generator

    return replaced((Gate, "_generator", fixed))


def leaks():
    """All of them."""
    return [
        Fault("the better of two clouds", "odometer: matrix, row sums", better_cloud()),
        Fault("radius from exact norms", "odometer: ball, cut", exact_radius()),
        Fault("merging on exact counts", "odometer: categories, (ε, δ)", exact_merging()),
        Fault("exact counts kept beside the release", "odometer: categories, (ε, δ)", exact_counts_kept()),
        Fault("six scores noised like one", "odometer: matrix, six scores", one_score()),
        Fault("three scores noised like one", "odometer: ball, three scores", one_score()),
        Fault("certificate for one row a person", "odometer: persons, means", certificate_for_one_row()),
        Fault("two numbers noised like one", "odometer: persons, means, (ε, δ)", two_noised_like_one()),
        Fault("the certificate's cube halved", "odometer: persons, means", cube_halved()),
        Fault("coding charge spent twice", "odometer: ball, cut", coding_spent_twice()),
        Fault("pairs measured where they are truly tied", "odometer: categories, look", exact_look()),
        Fault("one draw noised for pairs alone", "odometer: categories, one draw", columns_for_nothing()),
        Fault("a look at one pair", "odometer: categories, look", look_at_one_pair()),
        Fault("sums taken for public", "odometer: linked, pure", sums_taken_for_public()),
        Fault("trace halved for categories", "odometer: categories, matrix", half_trace()),
        Fault("trace halved for signs", "odometer: matrix, row sums", half_trace_of_signs()),
        Fault("noise of signs too short", "moments, matrix noise", short_signs()),
        Fault("k instead of k²", "odometer: persons, (ε, δ)", rows_not_squared()),
        Fault("one-way noise as for add or remove", "odometer: categories, (ε, δ)", added_or_removed()),
        Fault("cells left uncentred", "odometer: categories, (ε, δ)", uncentred()),
        Fault("cutting too little", "odometer: ball, cut", cut_too_little()),
        Fault("noise cached by shape", "fresh", noise_cached()),
        Fault("the same noise for two fits", "fresh", same_noise_twice()),
        Fault("rows drawn from a noise stream", "streams", rows_from_noise()),
        *persons.faults(),
        *events.faults(),
        *bodies.faults(),
        *knowledge.faults(),
        *commands.faults(),
    ]
