"""Centres of persons and of events, with a chain between events: fitted to noisy person-averaged tables.

A person centre is a product of laws of the person's attributes and of the number of events (in bins), with a law π of kinds of
events. A kind of event is a product of laws of an event's attributes. A person of a centre has kinds that follow a chain: with
probability s the next kind depends on the present one (a row of R), else it is drawn from π afresh. All tables are smooth
functions of these, and the fit is a posterior mode: squared distances to the noisy tables in units of their noise, and a normal
prior on how far logits spread. Chosen tables of three attributes of a person are a term more, for a fit that goes on from one
without them. Post-processing: it sees noisy tables and public numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import Zeros
from covey.engine.fit.centres import LEAST, Triples, table_of, tilted, triple_pull
from covey.engine.points import WeightedPoints

CENTRES, KINDS = 200, 40  # of persons and of events: more gave nothing on the hospital of docs/benchmarks/persons.md
STEPS = 500  # of the fit, where n·ε is about 20,000 persons: further ones follow the noise
STARTS = 4  # fits from other random starts, pooled: an average over where the tables leave the answer open
OBEY = 0.5  # of the steps, after which centres give up what cannot occur: they have found their places by then
NEVER = -60.0  # a logit so low that its probability is below 10^-20
RATE = 0.08  # of Adam's first step; it falls along a cosine
# Strengths of the prior by block: an eighth of the prototype's or less, since goals are drawn to independence beforehand.
PRIOR = {"a": 1.0, "p": 0.06, "t": 0.015, "r": 0.005}
# Logit that the chain's probability is drawn to, and how strongly: left free it goes to 1.
STICKY, STICKY_PRIOR = -0.5, 30.0
# Ties: the most that is kept, how much nearer a table must come for one, in units of its noise, and terms of a series.
CLOSEST, CHANCE, TERMS = 0.98, 2.0, 40

Parameters = dict[str, Floats]
Tables = dict[str, Floats]


@dataclass(frozen=True)
class EventGoal:
    """What a fit aims at: shares of persons, table by table in block matrices, and how much each entry counts.

    Tables are noisy, by kind: "one" (a row: persons' one-way shares, then events'), and the kinds of `averaged_table`.
    """

    persons: Domain  # bins of attributes; the last one is the number of events, whose first bin is 0 and second 1
    events: Domain
    target: Mapping[str, Floats]
    weight: Mapping[str, Floats]  # 1/variance of the entries, 0 where nothing was measured
    lags: tuple[float, float]  # shares of pairs of events, of persons with two or more, one and two places apart
    masks: tuple[Floats | None, Floats | None] = (None, None)  # added to logits of centres and kinds: what cannot occur
    growth: float = 1.0  # times as many kinds of events, and steps: what so many persons can tell apart
    triples: Triples | None = None  # tables of three attributes of a person, with goals
    triple_weight: float = 0.0  # 1/variance of their entries

    @property
    def kinds(self) -> int:
        """How many kinds of events a fit tells apart."""
        return max(1, round(KINDS * self.growth))

    @property
    def steps(self) -> int:
        """How many steps it takes."""
        return max(1, round(STEPS * self.growth))


@dataclass(frozen=True)
class EventModel:
    """Person centres of equal weight, kinds of events, and the chain: all that sequences are drawn from."""

    persons: Floats  # centres × bins of attributes and number of events
    kinds: Floats  # centres × kinds: the law of a fresh kind
    events: Floats  # kinds × bins of an event's attributes
    chain: Floats  # kinds × kinds
    sticky: float  # probability that the chain decides

    @property
    def first(self) -> Floats:
        """The law of a person's first kind, by centre: the one that the chain keeps."""
        return kept_law(self.kinds, self.chain, self.sticky)[0]


def fit_events(
    goal: EventGoal,
    public: np.random.Generator,
    tick: Callable[[float], None] = lambda _: None,
    zeros: tuple[Zeros | None, Zeros | None] = (None, None),
    before: Sequence[EventModel] = (),
) -> list[EventModel]:
    """A model from each of several starts; a table is drawn from all of them in equal parts.

    `zeros` are combinations of bins that no person, and no event, may have. With tables of triples each fit goes on from a model
    of those `before`, with half of the steps, after its persons were leaned to these tables; what cannot occur stays so.
    """
    found = []
    for k in range(STARTS):
        if before and goal.triples is not None:
            own = before[k]
            cloud = WeightedPoints(np.full(len(own.persons), 1 / len(own.persons)), own.persons)
            leaning = tilted(cloud, len(own.persons), goal.triples, goal.persons, public).points
            obeyed = obeying(goal, own, zeros)
            found.append(_descended(obeyed, parameters(replace(own, persons=leaning)), goal.steps // 2))
        else:
            found.append(_descended(goal, start(goal, public), goal.steps, zeros))
        tick((k + 1) / STARTS)
    return found


def parameters(own: EventModel) -> Parameters:
    """Parameters that mean a model: logits, apart into their mean over centres, or kinds, and what is beyond it."""
    a, p, t, r = (np.log(np.maximum(law, LEAST)) for law in (own.persons, own.kinds, own.events, own.chain))
    base = {"ba": a.mean(axis=0), "bp": p.mean(axis=0), "bx": t.mean(axis=0)}
    apart = {"a": a - base["ba"], "p": p - base["bp"], "t": t - base["bx"], "r": r - r.mean(axis=1, keepdims=True)}
    return {**apart, "s": np.array([np.log(own.sticky / (1 - own.sticky))]), **base}


def _descended(
    goal: EventGoal, x: Parameters, steps: int, zeros: tuple[Zeros | None, Zeros | None] = (None, None)
) -> EventModel:
    """Adam with a rate that falls along a cosine. After OBEY of the steps centres give up what cannot occur."""
    mean = {k: np.zeros_like(v) for k, v in x.items()}
    square = {k: np.zeros_like(v) for k, v in x.items()}
    for step in range(1, steps + 1):
        if step == int(OBEY * steps) and any(zeros):
            goal = obeying(goal, model(goal, x), zeros)
        _, slope = objective(goal, x)
        rate = RATE * (0.5 * (1 + np.cos(np.pi * step / steps)) + 0.02)
        for k, g in slope.items():
            mean[k] += 0.1 * (g - mean[k])
            square[k] += 0.01 * (g * g - square[k])
            x[k] = x[k] - rate * mean[k] / (1 - 0.9**step) / (np.sqrt(square[k] / (1 - 0.99**step)) + 1e-9)
    return model(goal, x)


def obeying(goal: EventGoal, own: EventModel, zeros: tuple[Zeros | None, Zeros | None]) -> EventGoal:
    """The goal with masks: what each centre and each kind of a model may keep."""
    masks = []
    for laws, forbidden in zip((own.persons, own.events), zeros, strict=True):
        keep = forbidden.allowed(laws) if forbidden else None
        masks.append(None if keep is None else np.where(keep, 0.0, NEVER))
    return replace(goal, masks=(masks[0], masks[1]))


def start(goal: EventGoal, public: np.random.Generator) -> Parameters:
    """A random start around the one-way tables."""
    one = goal.target["one"][0]
    d = goal.persons.total
    base = np.log(np.maximum(np.concatenate([_by_block(one[:d], goal.persons), _by_block(one[d:], goal.events)]), 1e-3))
    normal, kinds = public.standard_normal, goal.kinds
    return {
        "a": 0.5 * normal((CENTRES, d)),
        "p": 0.8 * normal((CENTRES, kinds)),
        "t": 0.8 * normal((kinds, goal.events.total)),
        "r": 0.5 * normal((kinds, kinds)) + 2 * np.eye(kinds),
        "s": np.array([STICKY]),
        "ba": base[:d].copy(),
        "bx": base[d:].copy(),
        "bp": np.zeros(kinds),
    }


def model(goal: EventGoal, x: Parameters) -> EventModel:
    """What parameters mean."""
    persons, events = (0.0 if mask is None else mask for mask in goal.masks)
    return EventModel(
        softmax(x["ba"] + x["a"] + persons, goal.persons),
        special.softmax(x["bp"] + x["p"], axis=1),
        softmax(x["bx"] + x["t"] + events, goal.events),
        special.softmax(x["r"], axis=1),
        float(1 / (1 + np.exp(-x["s"][0]))),
    )


def objective(goal: EventGoal, x: Parameters) -> tuple[float, Parameters]:
    """Minus the log posterior, and its gradient."""
    own = model(goal, x)
    pass_ = _Pass(goal, own)
    got = pass_.tables()
    loss, slopes = 0.0, {}
    for kind, target in goal.target.items():
        gap = got[kind] - target
        slopes[kind] = goal.weight[kind] * gap
        loss += float((slopes[kind] * gap).sum()) / 2
    back = pass_.back(slopes)
    if goal.triples is not None:
        even, three = np.full(CENTRES, 1 / CENTRES), goal.triples
        back["persons"] += triple_pull(three, goal.persons, goal.triple_weight)(own.persons, even) / CENTRES
        shares = three.shares(own.persons, goal.persons)
        gaps = (table_of(even, shares, name) - table for name, table in zip(three.names, three.goals, strict=True))
        loss += goal.triple_weight * float(sum((gap**2).sum() for gap in gaps)) / 2
    found: Parameters = {
        "a": _unsoft(own.persons, back["persons"], goal.persons),
        "p": _unsoft(own.kinds, back["kinds"]),
        "t": _unsoft(own.events, back["events"], goal.events),
        "r": _unsoft(own.chain, back["chain"]),
        "s": back["sticky"] * own.sticky * (1 - own.sticky),
    }
    found |= {"ba": found["a"].sum(axis=0), "bp": found["p"].sum(axis=0), "bx": found["t"].sum(axis=0)}
    for k, strength in PRIOR.items():
        scale = 2 * strength / (CENTRES if k in "ap" else 1)
        loss += scale * float((x[k] ** 2).sum()) / 2
        found[k] = found[k] + scale * x[k]
    away = x["s"] - STICKY
    found["s"] = found["s"] + STICKY_PRIOR * away
    return loss + STICKY_PRIOR * float((away**2).sum()) / 2, found


@dataclass(frozen=True)
class Tie:
    """How an attribute of a person's events goes on beyond what their kinds say, and inside its bins."""

    again: float  # probability that an event draws at the level of the one before, in its own kind's law
    lasting: bool  # or, where events have no order, at a level of its person
    rho: float  # correlation of normal ranks with the next event's, by which values of a bin are exchanged
    free: int  # so many first bins have no place in the order: special values
    bins: Integers  # category or cell → bin

    def __post_init__(self) -> None:
        if not (
            0 <= self.again <= 1 and 0 <= self.rho < 1 and 0 <= self.bins.min() <= self.bins.max() < len(self.bins)
        ):
            raise ValueError("a tie of events has a probability, a correlation or bins that cannot be")


def ties(goal: EventGoal, models: Sequence[EventModel], maps: Sequence[Integers], free: list[int]) -> dict[int, Tie]:
    """Ties of attributes of events, from what was measured of two events and what models leave of it; `free` as in a tie.

    A level is kept with the probability that comes nearest to the table, if that is nearer by more than chance. Whatever it is,
    each event has the law of its kind. Two events at one level, of kinds k and l, share min(F_k(b), F_l(c)) up to b and c.
    """
    kind, passes = "step" if "step" in goal.target else "two", [_Pass(goal, own) for own in models]
    found, again, joints = dict[int, Tie](), np.linspace(0.0, CLOSEST, 50), list[Floats]()
    for one in passes:
        one.tables()
        joints.append(one.J if kind == "step" else one.D)
    for j, to in enumerate(maps):
        block, size = goal.events.block(j), goal.events.sizes[j]
        if kind not in goal.target or not goal.weight[kind][block, block].any():
            continue
        alone, same = np.zeros((2, size, size))
        for own, joint in zip(models, joints, strict=True):
            laws = own.events[:, block]
            below = np.cumsum(laws, axis=1)
            both = np.tensordot(joint, np.minimum(below[:, None, :, None], below[None, :, None, :]), 2)
            alone += laws.T @ joint @ laws / len(models)
            same += np.diff(np.diff(both, axis=0, prepend=0.0), axis=1, prepend=0.0) / len(models)
        share = (again if kind == "step" else again**2)[:, None, None]
        gap = alone + share * (same - alone) - goal.target[kind][block, block]
        off = (goal.weight[kind][block, block] * gap**2).sum(axis=(1, 2)) + CHANCE * (again > 0)
        inside = kind == "step" and goal.events.ordered[j] and free[j] + 1 < size < len(to)
        rho = rank_correlation(goal, slice(block.start + free[j], block.stop)) if inside else 0.0
        found[j] = Tie(float(again[np.argmin(off)]), kind == "two", rho, free[j], to)
    return found


def rank_correlation(goal: EventGoal, block: slice) -> float:
    """The correlation of two normal numbers whose table, cut into bins of an attribute's shares, is nearest to that of its steps.

    In Hermite's polynomials the table is Σ ρᵐ·h_m·h_mᵀ (Mehler).
    """
    share = np.maximum(goal.target["one"][0, goal.persons.total :][block], LEAST)
    share, table = share / share.sum(), goal.target["step"][block, block]
    x = special.ndtri(np.clip(np.cumsum(share)[:-1], LEAST, 1 - LEAST))
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    before, now, terms = np.zeros_like(x), np.ones_like(x), [share]
    for m in range(1, TERMS):  # polynomials are divided by √m!, and ∫ He_m φ up to x is −He_{m−1}(x)·φ(x)
        terms.append(np.diff(np.pad(-now * density / np.sqrt(m), 1)))
        before, now = now, (x * now - np.sqrt(m - 1) * before) / np.sqrt(m)
    h, rho = np.array(terms), np.linspace(0.0, CLOSEST, 50)
    gap = float(table.sum()) * np.einsum("rm,mb,mc->rbc", rho[:, None] ** np.arange(TERMS), h, h) - table
    return float(rho[np.argmin((goal.weight["step"][block, block] * gap**2).sum(axis=(1, 2)))])


class _Pass:
    """One evaluation of a model's tables, and the way back from slopes of tables to slopes of the model's parts."""

    def __init__(self, goal: EventGoal, own: EventModel) -> None:
        self.goal, self.own = goal, own
        self.c = len(own.persons)
        self.zero = int(goal.persons.starts[-2])  # the coordinate of "no events"; "one event" comes next

    def tables(self) -> Tables:
        """All tables."""
        own, c, zero = self.own, self.c, self.zero
        P, pi, Th, R, s = own.persons, own.kinds, own.events, own.chain, own.sticky
        self.m, self.visits = kept_law(pi, R, s)
        self.Q = self.m @ Th
        self.u = 1 - P[:, zero, None]  # has events
        self.v = self.u - P[:, zero + 1, None]  # has two or more
        self.PA = P.copy()
        self.PA[:, :zero] *= self.u
        self.PA[:, zero] = 0
        self.w = (self.u * self.m).mean(axis=0)
        self.vm = self.v * self.m
        self.mp, self.vs = self.vm.T @ pi / c, self.vm.sum(axis=0) / c
        self.R2 = R @ R
        one, two = self.goal.lags
        self.J = (1 - s) * self.mp + s * self.vs[:, None] * R
        self.J2 = (1 - s) * (self.mp + s * self.mp @ R) + s * s * self.vs[:, None] * self.R2
        D = one * self.J + two * self.J2 + (1 - one - two) * self.vm.T @ self.m / c
        self.D = (D + D.T) / 2
        return {
            "one": np.concatenate([P.mean(axis=0), (self.u * self.Q).mean(axis=0)])[None],
            "person": P.T @ P / c,
            "across": self.PA.T @ self.Q / c,
            "event": Th.T @ (self.w[:, None] * Th),
            "step": Th.T @ self.J @ Th,
            "two": Th.T @ self.D @ Th,
        }

    def back(self, g: Mapping[str, Floats]) -> dict[str, Floats]:
        """Slopes of the model's parts, from slopes of the tables that were measured."""
        own, c, zero = self.own, self.c, self.zero
        P, Th, d = own.persons, own.events, self.goal.persons.total
        gx = g["one"][0, d:] / c
        gP = np.repeat(g["one"][:, :d] / c, c, axis=0)
        gu, gQ = self.Q @ gx, self.u * gx
        if "person" in g:
            gP += P @ (g["person"] + g["person"].T) / c
        if "across" in g:
            gPA = self.Q @ g["across"].T / c
            gQ = gQ + self.PA @ g["across"] / c
            gP[:, :zero] += gPA[:, :zero] * self.u
            gP[:, zero + 1 :] += gPA[:, zero + 1 :]
            gu = gu + (gPA[:, :zero] * P[:, :zero]).sum(axis=1)
        gm, gTh = gQ @ Th.T, self.m.T @ gQ
        if "event" in g:
            gTh += self.w[:, None] * (Th @ (g["event"] + g["event"].T))
            gw = ((Th @ g["event"]) * Th).sum(axis=1) / c
            gm += self.u * gw
            gu = gu + self.m @ gw
        chain = self._back_chain(g, gTh)
        gm += chain["m"] + self.v * chain["vm"]
        gv = (chain["vm"] * self.m).sum(axis=1)
        gP[:, zero + 1] -= gv
        gP[:, zero] -= gu + gv
        gpi, gR, gs = self._back_kept(gm)
        return {
            "persons": gP,
            "kinds": gpi + chain["pi"],
            "events": gTh,
            "chain": gR + chain["R"],
            "sticky": np.array([gs + chain["s"]]),
        }

    def _back_chain(self, g: Mapping[str, Floats], gTh: Floats) -> dict[str, Floats]:
        """Through the tables of two events; adds to the slope of the kinds in place."""
        own, c = self.own, self.c
        Th, R, s = own.events, own.chain, own.sticky
        gJ, gD = np.zeros_like(R), np.zeros_like(R)
        if "step" in g:
            gTh += self.J @ Th @ g["step"].T + self.J.T @ Th @ g["step"]
            gJ = Th @ g["step"] @ Th.T
        if "two" in g:
            gTh += self.D @ Th @ g["two"].T + self.D.T @ Th @ g["two"]
            gD = Th @ g["two"] @ Th.T
            gD = (gD + gD.T) / 2
        one, two = self.goal.lags
        gJ, gJ2, far = gJ + one * gD, two * gD, (1 - one - two) * gD
        mp, vs, R2 = self.mp, self.vs[:, None], self.R2
        gmp = (1 - s) * (gJ + gJ2 + s * gJ2 @ R.T)
        gR2 = s * s * vs * gJ2
        gR = s * vs * gJ + (1 - s) * s * mp.T @ gJ2 + gR2 @ R.T + R.T @ gR2
        gs = (gJ * (vs * R - mp)).sum() + (gJ2 * (2 * s * vs * R2 - mp + (1 - 2 * s) * mp @ R)).sum()
        gvs = (s * R * gJ + s * s * R2 * gJ2).sum(axis=1)
        gvm = (self.m @ far.T + own.kinds @ gmp.T + gvs) / c
        return {"vm": gvm, "m": self.vm @ far / c, "pi": self.vm @ gmp / c, "R": gR, "s": np.asarray(gs)}

    def _back_kept(self, gm: Floats) -> tuple[Floats, Floats, Floats]:
        """Through the kept law m = (1 − s)·πV with V = (1 − sR)⁻¹, whose slope in sR is V·V."""
        pi, R, s, V = self.own.kinds, self.own.chain, self.own.sticky, self.visits
        gpi = (1 - s) * gm @ V.T
        gsR = V.T @ (pi.T @ gpi)
        gs = (R * gsR).sum() - (gm * self.m).sum() / (1 - s)
        return gpi, s * gsR, np.asarray(gs)


def kept_law(pi: Floats, R: Floats, s: float) -> tuple[Floats, Floats]:
    """The law of kinds that a chain with restarts keeps, (1 − s)·Σ s^i π R^i; and Σ s^i R^i, how often each is visited."""
    visits = np.asarray(np.linalg.inv(np.eye(len(R)) - s * R), dtype=np.float64)
    return np.asarray((1 - s) * pi @ visits), visits


def softmax(x: Floats, domain: Domain) -> Floats:
    """A law for every attribute of a domain, row by row."""
    s, b = domain.starts[:-1], domain.block_of
    e = np.exp(x - np.maximum.reduceat(x, s, axis=1)[:, b])
    return np.asarray(e / np.add.reduceat(e, s, axis=1)[:, b])


def _unsoft(law: Floats, g: Floats, domain: Domain | None = None) -> Floats:
    """From the slope of laws to that of their logits."""
    if domain is None:
        return np.asarray(law * (g - (g * law).sum(axis=1, keepdims=True)))
    return np.asarray(law * (g - np.add.reduceat(g * law, domain.starts[:-1], axis=1)[:, domain.block_of]))


def _by_block(shares: Floats, domain: Domain) -> Floats:
    """Shares that sum to one for every attribute."""
    positive = np.maximum(shares, 0)
    return np.asarray(positive / np.maximum(np.add.reduceat(positive, domain.starts[:-1]), 1e-9)[domain.block_of])
