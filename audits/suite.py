"""The registry: every case, check and fault under one roof, and what counts as an alarm."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from unittest.mock import patch

import covey.engine.exact
from audits import accounts, checks, drawn, faults, learned, mechanisms, methods, relations
from audits.case import Case
from audits.checks import Check
from audits.filters import filter_kept
from audits.odometer import ride
from audits.rides import rides, with_evidence
from audits.trees import number_rides


@cache
def cases():
    """Cases by name, single mechanisms first."""
    return {case.name: case for case in [*mechanisms.cases(), *methods.cases()]}


@cache
def all_rides():
    """Configurations for the odometer by name."""
    return with_evidence([*rides(), *number_rides(), *learned.learned_rides(), *relations.relation_rides()])


@cache
def all_checks():
    """Checks by name; those of the odometer compare whole bundles where the ride asks for it."""
    promise = "no charge spends more than its amount, and nothing leaves unpaid"
    driven = [Check(f"odometer: {name}", promise, partial(ride, one)) for name, one in all_rides().items()]
    return {
        check.name: check
        for check in [*checks.checks(), *accounts.checks(), *learned.checks(), *drawn.checks(), *driven]
    }


@cache
def long_checks():
    """Other caps of the ledger, rides of hundreds of drawn options, and the odometer once more with every file of every bundle.

    Minutes, for `make audit`.
    """
    promise = "every file of a bundle is the same for neighbours, byte for byte"
    driven = {f"files: {name}": replace(one, files=True) for name, one in all_rides().items() if not one.files}
    caps = Check("filter: other caps", all_checks()["filter"].promise, partial(filter_kept, other_caps=True))
    more = {check.name: check for check in drawn.checks(long=True)}
    return {caps.name: caps} | more | {name: Check(name, promise, partial(ride, one)) for name, one in driven.items()}


@cache
def all_faults():
    """Faults by name."""
    return {
        fault.name: fault for fault in [*faults.faults(), *accounts.faults(), *learned.faults(), *relations.faults()]
    }


def alarm(name, seed, full=False):
    """What a case or check complains about, in words; empty for sound code."""
    if check := all_checks().get(name) or long_checks().get(name):
        return "; ".join(check.run(seed))
    case: Case = cases()[name]
    bound = case.measure(case.full if full else case.fast, seed)
    return f"ε is at least {bound:.2f}, {case.claim:g} was claimed" if bound > case.claim else ""


def measured(case, seed):
    """The lower bound of a case, given as its name and a number of samples."""
    name, samples = case
    return cases()[name].measure(samples, seed)


def planted(name, seed):
    """The first alarm that a planted fault raises; empty if it passes unnoticed."""
    fault = all_faults()[name]
    # Most faults are planted as closures. What catches them is to be the check that they name, not the look at their code.
    unseen = nullcontext() if fault.caught_by == "kernels" else patch.object(covey.engine.exact, "_check")
    with fault.plant(), unseen:
        check = all_checks().get(fault.caught_by)
        return next(iter(check.run(seed)), "") if check else alarm(fault.caught_by, seed)
