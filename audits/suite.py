"""The registry: every case, check and fault under one roof, and what counts as an alarm."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import covey.privacy.pure
from audits import checks, faults, learned, mechanisms, methods
from audits.case import Case


@cache
def cases():
    """Cases by name, single mechanisms first."""
    return {case.name: case for case in [*mechanisms.cases(), *methods.cases()]}


@cache
def all_checks():
    """Checks by name."""
    return {check.name: check for check in [*checks.checks(), *learned.checks()]}


@cache
def all_faults():
    """Faults by name."""
    return {fault.name: fault for fault in [*faults.faults(), *learned.faults()]}


def alarm(name, seed, full=False):
    """What a case or check complains about, in words; empty for sound code."""
    if name in all_checks():
        return "; ".join(all_checks()[name].run(seed))
    case: Case = cases()[name]
    bound = case.measure(case.full if full else case.fast, seed)
    return f"ε is at least {bound:.2f}, {case.claim:g} was claimed" if bound > case.claim else ""


def planted(fault, seed):
    """The first alarm that a planted fault raises; empty if it passes unnoticed."""
    # Most faults are planted as closures. What catches them is to be the check that they name, not the look at their code.
    with fault.plant(), patch.object(covey.privacy.pure, "_check"):
        check = all_checks().get(fault.caught_by)
        return next(iter(check.run(seed)), "") if check else alarm(fault.caught_by, seed)
