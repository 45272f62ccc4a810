"""The mean of a number that was measured by its distance from what other columns say, or is computed from them.

Such a number is a formula plus its distance. A formula is split into terms that are added up: functions of one column, whose
means are known from one-way tables (with a condition, from pairs), and products of functions of two columns, whose means are
known from pairs. What rounding, limits and missing cells leave open widens the interval (docs/proofs/intervals.md).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from covey.engine.arrays import Array, Floats
from covey.engine.relations.formulas import DAY
from covey.errors import CannotAnswerError
from covey.release.answers.answer import Answer, Wanted, answers
from covey.release.answers.columns import NOTICED, Columns, Conditions, said, together
from covey.release.answers.estimates import LOST, TINY, Estimate, Feature, LostInNoiseError, Moments, delta, keeps
from covey.release.charts import percent
from covey.tables.derived_fields import Derived, leading_number
from covey.tables.fields import Field

if TYPE_CHECKING:
    from covey.release.answers.release import Release

LOOKED_AT = 257  # values of a unit at which a formula is computed: the ends, and evenly between them
LEVELS = np.linspace(0.0, 1.0, 101)  # at which a limit is shared out among terms
SECONDS = {"date": DAY}  # of a step; other times count in seconds


@dataclass(frozen=True)
class Part:
    """A function of one column: its least and its largest value in each unit, 0 where there is none, and where it is there."""

    attribute: int
    low: Floats
    high: Floats
    there: Floats

    @property
    def middle(self) -> Floats:
        """The middle of its values, by unit."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> Floats:
        """Half of what its values span, by unit."""
        return (self.high - self.low) / 2

    def times(self, factor: float) -> Part:
        """So many times the function."""
        ends = factor * self.low, factor * self.high
        return replace(self, low=np.minimum(*ends), high=np.maximum(*ends))


Term = tuple[Part, ...]  # whose product is meant


@dataclass(frozen=True)
class Sum:
    """What a number is the sum of. It is there where `valid` is 1, by attribute; `loose` is how far rounding may move it."""

    constant: float
    terms: tuple[Term, ...]
    valid: Mapping[int, Floats]
    loose: float = 0.0
    limits: tuple[float, float] | None = None  # to which the formula is moved before the distance is added
    formula: int = 0  # how many of the terms are of the formula; the others are distances


def sum_of(columns: Columns, name: str) -> Sum | None:
    """What a number follows from; None where it was measured by itself."""
    field = columns.declared(name)
    if field is None or field.type not in ("integer", "number"):
        return None
    if field.derived is not None:
        return _computed(columns, field)
    distance = columns.distance(name)
    if distance is None:
        return None
    starts, ends = distance.edges[:-1], distance.edges[1:] - 1
    valid = (starts > distance.apart).astype(np.float64)  # the code before distances is of an end without a base
    zero = distance.apart + 1 - distance.low
    low, high = (valid * (codes - zero) / distance.scale for codes in (starts, ends))
    own, place = Part(distance.place, low, high, valid), distance.place
    if isinstance(distance.base, str):
        under = _column(columns, distance.base, 1.0)
    else:
        limits = field.axis.low / distance.scale, field.axis.high / distance.scale
        under = _formula(columns, distance.base, field.axis.decimals, limits)
    return replace(under, terms=(*under.terms, (own,)), valid={place: valid}, formula=len(under.terms))


def _computed(columns: Columns, field: Field) -> Sum:
    """A column that is computed from others, in every row that has them."""
    assert field.derived is not None  # nosec B101 # for the type checker
    if not field.derived.expression:
        raise CannotAnswerError(f"{field.name!r} is looked up in a list: ask about {', '.join(field.derived.bases)}.")
    found = _formula(columns, field.derived, 0 if field.type == "integer" else field.decimals, None)
    valid: dict[int, Floats] = {}
    for part in (part for term in found.terms for part in term):
        valid[part.attribute] = valid.get(part.attribute, np.ones(len(part.there))) * part.there
    return replace(found, valid={a: mask for a, mask in valid.items() if not mask.all()}, formula=len(found.terms))


def _column(columns: Columns, name: str, factor: float) -> Sum:
    """A column itself, so many times; one that follows others is what it is the sum of."""
    deeper = sum_of(columns, name)
    if deeper is None:
        return Sum(0.0, ((_part(columns, Derived((name,), expression=repr(name))).times(factor),),), {})
    terms = tuple((term[0].times(factor), *term[1:]) for term in deeper.terms)
    if deeper.limits is not None and len(deeper.terms[: deeper.formula]) > 1:
        raise CannotAnswerError(
            f"{name!r} is itself cut to its limits: in Python release.interval(function) answers approximately."
        )
    return Sum(factor * deeper.constant, terms, {}, abs(factor) * deeper.loose)


def _formula(columns: Columns, derived: Derived, decimals: int | None, limits: tuple[float, float] | None) -> Sum:
    """The terms of an expression; rounded, and moved to limits, at once where it is a function of one column."""
    parts = [(factor, node) for factor, node in _split(ast.parse(derived.expression, mode="eval").body, 1.0)]
    named = [_bases(node) for _, node in parts]
    if len(derived.bases) == 1 and _plain(columns, derived.bases[0]):
        return Sum(0.0, ((_part(columns, derived, decimals, limits),),), {})
    constant, terms, loose = 0.0, list[Term](), 0.0
    for (factor, node), bases in zip(parts, named, strict=True):
        if not bases:
            constant += factor * float(
                Derived(("x",), expression=f"({ast.unparse(node)}) + 0 * x").evaluate({"x": np.zeros(())})
            )
        elif isinstance(node, ast.Name | ast.Constant):
            more = _column(columns, bases[0], factor)
            constant, loose, terms = constant + more.constant, loose + more.loose, [*terms, *more.terms]
        else:
            first, *rest = (_part(columns, Derived(_bases(one), expression=ast.unparse(one))) for one in _factors(node))
            terms.append((first.times(factor), *rest))
    exact = decimals is not None and _whole(constant, decimals) and all(_on_grid(term, decimals) for term in terms)
    loose += 0.0 if exact or decimals is None else 0.5 * 10.0**-decimals
    return Sum(constant, tuple(terms), {}, loose, limits)


def _on_grid(term: Term, decimals: int) -> bool:
    """Whether rounding moves nothing."""
    return len(term) == 1 and all(_whole(end, decimals) for end in (term[0].low, term[0].high))


def _whole(values: Floats | float, decimals: int) -> bool:
    """Whether all of them have so many decimals at most."""
    steps = np.asarray(values) * 10.0**decimals
    return bool(np.allclose(steps, np.rint(steps), rtol=0, atol=1e-6))


def _split(node: ast.expr, factor: float) -> Iterator[tuple[float, ast.expr]]:
    """What an expression adds up, each with the number it is multiplied by."""
    if isinstance(node, ast.UnaryOp):
        yield from _split(node.operand, -factor)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _split(node.left, factor)
        yield from _split(node.right, factor if isinstance(node.op, ast.Add) else -factor)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "days":
        first, last = (ast.parse(f"floor(({ast.unparse(part)}) / {DAY})", mode="eval").body for part in node.args)
        yield from ((factor, last), (-factor, first))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and _number(node.right):
        by = _number(node.right)
        yield from _split(node.left, factor * by if isinstance(node.op, ast.Mult) else factor / by)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _number(node.left):
        yield from _split(node.right, factor * _number(node.left))
    else:
        yield factor, node


def _number(node: ast.expr) -> float:
    """A constant other than 0; 0 for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return 0.0


def _bases(node: ast.expr) -> tuple[str, ...]:
    """The columns that a node names; functions are named too, by a call."""
    called = {id(own.func) for own in ast.walk(node) if isinstance(own, ast.Call)}
    names = [own.id for own in ast.walk(node) if isinstance(own, ast.Name) and id(own) not in called]
    texts = [own.value for own in ast.walk(node) if isinstance(own, ast.Constant) and isinstance(own.value, str)]
    return tuple(dict.fromkeys([*names, *texts]))


def _factors(node: ast.expr) -> list[ast.expr]:
    """The functions of one column each whose product a node is."""
    if len(_bases(node)) == 1:
        return [node]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        right = node.right if isinstance(node.op, ast.Mult) else ast.BinOp(ast.Constant(1), ast.Div(), node.right)
        sides = {*_bases(node.left)}, {*_bases(node.right)}
        if all(len(side) == 1 for side in sides) and sides[0] != sides[1]:
            return [node.left, right]
    raise CannotAnswerError(
        f"{ast.unparse(node)} mixes {len(_bases(node))} columns, of which pairs were measured in bins: no honest interval can be "
        "given. In Python release.interval(function) gives an approximate one."
    )


def _plain(columns: Columns, name: str) -> bool:
    """Whether a column was measured by itself."""
    field = columns.declared(name)
    return field is not None and field.derived is None and columns.distance(name) is None


def _part(
    columns: Columns, derived: Derived, decimals: int | None = None, limits: tuple[float, float] | None = None
) -> Part:
    """A function of one column that was measured by itself, by its units; rounded and moved to limits if these are given."""
    (name,) = derived.bases
    values = values_of(columns, name)
    found: Floats = np.broadcast_to(derived.evaluate({name: values}), values.shape)
    there = np.asarray(np.isfinite(found).all(axis=1))
    found = np.asarray(np.where(there[:, None], found, 0.0))
    if decimals is not None:
        found = np.asarray(np.rint(found * 10.0**decimals) / 10.0**decimals)
    if limits is not None:
        found = np.clip(found, *limits) * there[:, None]
    return Part(columns.place(name), found.min(axis=1), found.max(axis=1), there.astype(np.float64))


def values_of(columns: Columns, name: str) -> Floats:
    """Values of the units of a column, a row each, as expressions count them: dates in seconds; NaN where there is none."""
    scale = columns.scale(name)
    if scale is None:
        labels = [leading_number(label) for label in columns.field(name).labels]
        return np.array([*labels, *[np.nan] * (columns.size(name) - len(labels))])[:, None]
    out = np.full((columns.size(name), LOOKED_AT), np.nan)
    step = SECONDS.get(scale.grid.field.type, 10.0**-scale.grid.axis.decimals)
    inside = np.rint(np.linspace(scale.starts, scale.ends, LOOKED_AT, axis=1))
    out[scale.bins] = inside * step
    return out


# Estimates.


def mean(
    release: Release, name: str, asked: tuple[Sum, Mapping[int, Floats]], where: Conditions, wish: Wanted
) -> Answer:
    """The mean of such a number, over rows that have it and are in a group, which is of one column."""
    whole, group = asked
    if wish.per == "event":
        raise CannotAnswerError(
            f"{name!r} follows from other columns: ask per person, where every person counts equally."
        )
    estimate = _estimate(release, name, whole, group, wish)
    question = f"mean {name}" + (f" where {said(where)}" if where else "")
    method = estimate.words() + "; by the columns that it follows from"
    parts = [part for term in whole.terms for part in term]
    note = together(_moved(release, name), release.columns.notes_of(where))
    field, within = release.columns.declared(name), (-np.inf, np.inf)
    if field is not None and field.minimum is not None and field.maximum is not None:
        within = float(str(field.minimum)), float(str(field.maximum))
    found = answers(estimate, [question], wish.confidence, wish.about, method, within, note)[0]
    return release.of_persons(found, [part.attribute for part in parts], wish.per)


def _moved(release: Release, name: str) -> list[str]:
    """A word where many distances lie at their limits: what was beyond was moved to these."""
    field = release.columns.declared(name)
    distance = None if field is None or field.derived is not None else release.columns.distance(name)
    if distance is None or not isinstance(distance.base, str):
        return []
    share = release.evidence.one_way(distance.place)
    ends = [
        k for k in (int(np.searchsorted(distance.edges, distance.apart + 1)), len(share) - 1) if share[k] >= NOTICED
    ]
    if not ends:
        return []
    lie = percent(float(share[ends].sum()))
    return [
        f"distances of {name!r} from {distance.base!r} beyond their limits, if any, were moved to these, where {lie} lie"
    ]


def _estimate(release: Release, name: str, whole: Sum, group: Mapping[int, Floats], wish: Wanted) -> Estimate:
    if len(group) > 1 or (group and any(len({*group, *(part.attribute for part in term)}) > 2 for term in whole.terms)):
        raise CannotAnswerError(
            f"{name!r} follows from other columns: with a condition these are three columns at once, and two were measured. "
            "In Python release.interval(function) gives an approximate interval."
        )
    whole, tails = _without_tails(release, whole)
    moments, places, base, left = _moments(release, whole, group)
    found = delta(moments, lambda mean, second: _product(mean, second, base), None)
    share, least = float(found.value[0]), LOST * float(np.sqrt(found.variance[0]))
    if share <= least:
        raise LostInNoiseError(
            f"the {release.privacy.budget.counted} meant are too few: about {max(share, 0.0):.2%} of all, and below "
            f"{least:.2%} they are lost in the noise."
        )

    def quotient(mean: Array, second: Array) -> Array:
        total = reduce(np.add, [_product(mean, second, place) for place in places])
        return np.asarray(whole.constant + total / _product(mean, second, base))

    estimate = delta(moments, quotient, release.sampled(wish.about))
    if not group and all(len(own) == len(term) for term, own in zip(whole.terms, places, strict=True)):
        # As of other numbers, the law of the rows is right in tails that are empty but for noise.
        single = [float(release.shares[term[0].attribute] @ term[0].middle) for term in whole.terms if len(term) == 1]
        pairs = [float(moments.second[own]) for own in places if len(own) == 2]
        there = np.prod([float(release.shares[a] @ mask) for a, mask in whole.valid.items()])
        estimate = estimate.around(whole.constant + sum(single + pairs) / max(float(there), TINY), wish.confidence)
    below, above = (tails + own for own in _open(release, whole, group, left, share))
    for term, own in zip(whole.terms, places, strict=True):
        alone = moments if len(term) == 1 else release.moments(tuple(moments.features[i] for i in own))
        if len(term) == 2 and not keeps(alone, 0):  # bins keep too little for a judgement of what they hide
            least, most = alone.product_between(0, 1)
            product = float(moments.second[own])
            below, above = below + max(0.0, product - least) / share, above + max(0.0, most - product) / share
    return replace(estimate, below=estimate.below + below, above=estimate.above + above)


def _without_tails(release: Release, whole: Sum) -> tuple[Sum, float]:
    """Products in which values where the law of the rows has none are moved to those it has; and what that may hide.

    In a pair table the noise of an empty tail, times its values, would drown all else.
    """
    terms, hidden = list[Term](), 0.0
    for term in whole.terms:
        if len(term) == 1:
            terms.append(term)
            continue
        cut = []
        for part, other in (term, term[::-1]):
            held = release.shares[part.attribute] > TINY
            ends = part.middle[held & (part.there > 0)]
            inside = np.clip(part.middle, ends.min(initial=0.0), ends.max(initial=0.0)) * part.there
            beyond = np.abs(part.middle - inside)
            law = release.shares[other.attribute]
            noise = float(np.sqrt(release.evidence.noise({(part.attribute,): beyond[None]}).variance[0]))
            moved = max(0.0, float(beyond @ release.evidence.one_way(part.attribute))) + 2 * noise
            hidden += moved * float(law @ np.abs(other.middle))
            cut.append(replace(part, low=inside - part.half * held, high=inside + part.half * held))
        terms.append(tuple(cut))
    return replace(whole, terms=tuple(terms)), hidden


Places = tuple[int, ...]  # of features whose product is meant


def _product(mean: Array, second: Array, places: Places) -> Array:
    if not places:
        return np.ones(())
    return np.asarray(mean[places[0]] if len(places) == 1 else second[places])


def _moments(
    release: Release, whole: Sum, group: Mapping[int, Floats]
) -> tuple[Moments, list[Places], Places, list[Mapping[int, Floats]]]:
    """Features, those of each term, those of the rows that are meant, and the conditions that did not fit beside a term."""
    meant = {a: group.get(a, 1.0) * whole.valid.get(a, 1.0) for a in {**group, **whole.valid}}
    if len(meant) > 2:
        raise CannotAnswerError("this is about more than two columns at once, and one and two at a time were measured.")
    features: list[Feature] = []

    def place(feature: Feature) -> int:
        features.append(feature)
        return len(features) - 1

    masks = {a: np.asarray(mask, dtype=np.float64) for a, mask in meant.items()}
    base = tuple(place(Feature(a, mask, condition=True)) for a, mask in masks.items())
    conditions = dict(zip(masks, base, strict=True))
    places, left = list[Places](), list[Mapping[int, Floats]]()
    for term in whole.terms:
        mine = [part.attribute for part in term]
        others = [
            a for a in sorted(masks, key=lambda a: a not in group) if a not in mine and matters(release, a, masks[a])
        ]
        taken = others[: 2 - len(term)]
        numbers = [place(_number_feature(part, masks, release, [masks[a] for a in taken], taken)) for part in term]
        places.append((*numbers, *(conditions[a] for a in taken)))
        left.append({a: masks[a] for a in others if a not in taken})
    return release.moments(tuple(features)), places, base, left


def matters(release: Release, attribute: int, mask: Floats) -> bool:
    """Whether some rows seem to fail a condition: where all meet it, no pair is needed."""
    evidence = release.evidence
    outside = float((1 - mask) @ evidence.one_way(attribute))
    return outside > LOST * float(np.sqrt(evidence.noise({(attribute,): (1 - mask)[None]}).variance[0])) + TINY


def _number_feature(
    part: Part, masks: Mapping[int, Floats], release: Release, conditions: Sequence[Floats], others: Sequence[int]
) -> Feature:
    """A function of a column among rows that meet a condition on the same one; bounded where bins keep too little of it."""
    number = Feature(part.attribute, part.middle * masks.get(part.attribute, 1.0))
    if not conditions:
        return number
    beside = [Feature(a, mask, condition=True) for a, mask in zip(others, conditions, strict=True)]
    both = release.moments((number, *beside))
    return replace(number, bounded=not keeps(both, 0) and all(both.constant(i) for i in range(1, len(both.features))))


def _open(
    release: Release, whole: Sum, group: Mapping[int, Floats], left: Sequence[Mapping[int, Floats]], share: float
) -> tuple[float, float]:
    """How far below and above the estimate the mean may lie: by units, rounding, limits, and rows without a value."""
    below = above = whole.loose
    for term, conditions in zip(whole.terms, left, strict=True):
        for part in term:
            sizes = [np.abs(other.middle) + other.half for other in term if other is not part]
            others = [other.attribute for other in term if other is not part]
            wide = _mean_of_rows(release, {part.attribute: part.half, **dict(zip(others, sizes, strict=True))}, group)
            below, above = below + wide, above + wide
        for a, mask in conditions.items():
            outside = float((1 - mask) @ np.maximum(release.evidence.one_way(a), 0.0))
            lost = min(outside, share) / share
            centre = _mean_of_rows(release, {part.attribute: part.middle for part in term}, group)
            least, most = (_extreme(release, term, sign) for sign in (-1, 1))
            below, above = below + lost * max(0.0, most - centre), above + lost * max(0.0, centre - least)
    if whole.limits is not None and whole.formula:
        below += _beyond(release, whole, 1, whole.limits[1]) / share
        above += _beyond(release, whole, -1, -whole.limits[0]) / share
    return below, above


def _mean_of_rows(release: Release, scores: Mapping[int, Floats], group: Mapping[int, Floats]) -> float:
    """The mean product of scores over rows of the centres, those of a group."""
    rows = release.drawn
    weights = (
        np.prod([rows.scored(a, mask) for a, mask in group.items()], axis=0) if group else np.ones(len(rows.codes))
    )
    product = np.prod([rows.scored(a, own) for a, own in scores.items()], axis=0)
    return float(weights @ product) / max(float(np.sum(weights)), 1.0)


def _extreme(release: Release, term: Term, sign: int) -> float:
    """The least or the largest value of a product that rows of the centres may have."""
    ends = []
    for part in term:
        there = (release.shares[part.attribute] > TINY) & (part.there > 0)
        ends.append((float(part.low[there].min(initial=0.0)), float(part.high[there].max(initial=0.0))))
    values = [a * b for a in ends[0] for b in (ends[1] if len(ends) == 2 else (1.0,))]
    return max(values) if sign > 0 else min(values)


def _beyond(release: Release, whole: Sum, sign: int, limit: float) -> float:
    """At most so much of the formula's mean lies beyond a limit: (Σ A − limit)⁺ ≤ Σ (A − a)⁺ for any a that add up to it."""
    laws = [_law(release, term, sign) for term in whole.terms[: whole.formula]]
    room, best = limit - sign * whole.constant, np.inf
    for level in LEVELS:
        at = [float(values[int(level * (len(values) - 1))]) for values in laws]
        spare = (room - sum(at)) / len(at)
        over = sum(float(np.maximum(values - a - spare, 0.0).mean()) for values, a in zip(laws, at, strict=True))
        best = min(best, over)
    return float(best)


def _law(release: Release, term: Term, sign: int) -> Floats:
    """The largest values of a term, or of its negative, that rows of the centres may have, in order."""
    rows = release.drawn
    ends = [(rows.scored(part.attribute, part.low), rows.scored(part.attribute, part.high)) for part in term]
    corners = [a * b for a in ends[0] for b in (ends[1] if len(ends) == 2 else (np.ones(()),))]
    return np.sort(np.max([sign * corner for corner in corners], axis=0))
