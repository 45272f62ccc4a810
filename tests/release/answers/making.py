"""Releases without a fit, for tests: exact tables of given codes plus noise of a given size, and the codes as centres."""

from fractions import Fraction
from functools import cache

import numpy as np

from covey.engine.budget import PrivacyStatement, make_budget
from covey.engine.codes.counts import Coding
from covey.engine.codes.domain import Domain, merge_pairs
from covey.engine.measurement import Measurement, Measurements
from covey.engine.model import Fitted
from covey.engine.models.laws import BitLaw, CodeLaw
from covey.engine.noise.law import GAUSSIAN
from covey.engine.noise.pairlaw import PairLaw
from covey.engine.points import WeightedPoints
from covey.engine.query import Every, Factor, Query
from covey.release.answers.estimates import Rows as RowsOfUnits
from covey.release.answers.release import Release
from covey.tables.codec import Codec
from covey.tables.description import Description

TINY = Fraction(1, 10**12)  # noise that changes nothing


class Rows:
    """No rows are needed."""

    m = 0

    def __iter__(self):
        return iter(())


def one_hot(codes, sizes):
    return np.hstack([np.eye(size)[codes[:, a]] for a, size in enumerate(sizes)])


def categories(schema, codes, sd=0.0, generator=None, maps=None, family=GAUSSIAN):
    """A release of categories whose counts have noise of deviation sd, one-way and on centred pair tables."""
    codec = Codec(schema)
    sizes, n = codec.domain_sizes, len(codes)
    domain = Domain(sizes, codec.ordered)
    maps = maps or [np.arange(size) for size in sizes]
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), domain.ordered)
    hot = one_hot(codes, sizes)
    counts = hot.sum(axis=0)
    scale = Fraction(sd**2) if family is GAUSSIAN else Fraction(sd / 2**0.5)
    law = PairLaw(family, merged, scale or TINY)
    whole = merge_pairs((hot.T @ hot).astype(int), maps, merged.sizes).astype(float)
    pairs = merged.off_blocks(merged.centre(merged.off_blocks(whole)))
    if sd:
        gaussian = family is GAUSSIAN
        draw = generator.normal if gaussian else generator.laplace
        counts = counts + draw(0, sd if gaussian else sd / 2**0.5, len(counts))
        pairs = pairs + law.simulate(generator)
    plain = {a: Factor.plain(size) for a, size in enumerate(sizes)}
    bins = {a: Factor(plain[a].edges, to) for a, to in enumerate(maps)}
    one = Measurement(Query(Every(len(sizes), 1), plain), counts, np.full(len(counts), max(sd, 1e-9)), family, n)
    two = Measurement(Query(Every(len(sizes), 2), bins, "centred"), pairs, law.sd, family, n)
    return released(schema, n, hot, Measurements(n, (one, two)), codes, domain)


def bits(schema, X, sd=0.0, generator=None, centre=0.5):
    """A release of bits whose coded means and products have noise of deviation sd."""
    n, p = X.shape
    coding = Coding(np.full(p, round(1024 * centre)), p * 2**20, clips=False)
    u = X - coding.middle
    mean, pair = u.mean(axis=0), u.T @ u / n
    if sd:
        noise = np.triu(generator.normal(0, sd, (p, p)), 1)
        mean, pair = mean + generator.normal(0, sd, p), pair + noise + noise.T
    np.fill_diagonal(pair, 0)
    sd = max(sd, 1e-12)
    one, two = (Query.products(degree, coding.middle) for degree in (1, 2))
    measured = Measurement(one, mean, sd, GAUSSIAN), Measurement(two, pair, sd, GAUSSIAN)
    return released(schema, n, X.astype(float), Measurements(n, measured), X)


@cache
def weighted(points, shape):
    """Different rows and their weights; many releases of a test share them."""
    rows, counts = np.unique(np.frombuffer(points).reshape(shape), axis=0, return_counts=True)
    return WeightedPoints(counts / counts.sum(), rows)


def released(schema, n, points, measured, drawn=None, domain=None):
    """A release with these centres; `drawn` are rows of codes to use in place of rows drawn from them."""
    privacy = PrivacyStatement(make_budget(1.0), (), n, "regain", False)
    cloud = weighted(np.ascontiguousarray(points).tobytes(), points.shape)
    law = BitLaw(cloud) if domain is None else CodeLaw(cloud, domain)
    release = Release(Rows(), Description.of(schema), Fitted(law, measured), privacy, "0")
    if drawn is not None:
        release.__dict__["drawn"] = RowsOfUnits(np.asarray(drawn))
    return release
