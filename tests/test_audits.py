"""The quick part of the audits: sound code raises no alarm, the audits have power, and every planted fault is caught."""

import numpy as np
import pytest

from audits.statistics import _bound
from audits.suite import alarm, all_checks, all_faults, cases, planted

pytestmark = pytest.mark.usefixtures("few_steps")

QUICK = [name for name, case in cases().items() if case.fast]


@pytest.mark.parametrize("name", QUICK)
def test_no_mechanism_gives_away_more_than_it_claims_and_the_audit_sees_most_of_that(name):
    case = cases()[name]
    assert 0.8 * case.floor * case.claim <= case.measure(case.fast, seed=0) <= case.claim


@pytest.mark.parametrize("name", all_checks())
def test_what_needs_no_statistics(name):
    assert alarm(name, seed=0) == ""


@pytest.mark.parametrize("name", all_faults())
def test_planted_faults_are_caught(name):
    fault = all_faults()[name]
    assert planted(fault, seed=0)


def test_the_registry_is_whole():
    """Fifteen faults and more; each names an alarm that exists and can be raised with few samples."""
    assert len(all_faults()) >= 15
    for fault in all_faults().values():
        assert fault.caught_by in all_checks() or cases()[fault.caught_by].fast
    for case in cases().values():
        for samples in {case.full, case.fast} - {0}:
            half = np.array([samples // 2])
            told_apart = _bound(half, half[0], 0 * half, half[0], case.delta)
            assert told_apart > case.claim, f"{case.name} cannot raise the alarm with {samples} samples"
