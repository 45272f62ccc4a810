"""What is told of the time that a release still takes: honest where the machine is slow, and never standing still."""

from pathlib import Path

import pytest

from covey.methods.regain.predict import predict
from covey.web.jobs import Job, anonymous_seconds
from covey.web.pages.shared import duration_words
from covey.workflow import STAGES

EXPECTED = {"checking": 2.0, "reading": 1.0, "charging": 0.0, "measuring": 10.0, "writing": 7.0}


def job(started=0.0, stage="", share=0.0):
    return Job({"epsilon": "1"}, Path(), expected=EXPECTED, started=started, stage=stage, share=share)


def test_what_is_left_follows_the_machine_and_not_the_wish():
    """Half of the measuring is done after 32 s where 8 were expected: the other 12 will take 48. A plain countdown says none."""
    half = job(100.0, "measuring", 0.5)
    assert half.done == pytest.approx(0.4)
    assert half.left(132.0) == pytest.approx(48.0)
    assert half.left(104.0) == pytest.approx(6.0)


def test_every_stage_moves_the_bar_and_writing_has_an_end():
    shares = [job(0.0, stage, share).done for stage in EXPECTED for share in (0.0, 0.9)]
    assert shares == sorted(shares)
    assert job(0.0, "writing").done < job(0.0, "writing", 0.5).done < 1
    assert job().left(0.0) == 20.0  # before anything is known, what was expected
    assert job(0.0, "checking").left(1.0) == 19.0
    assert job(0.0, "checking").left(6.0) == 54.0  # three times slower than expected: so will the rest be


def test_a_plan_counts_start_and_writing_too():
    """Of a table of 20,000 rows with eight numbers and eight categories the fit is less than half of the time."""
    plan = predict([20] * 8 + [3, 8, 16, 40, 2, 2, 2, 2], 20_000, 1, 0)
    assert plan.seconds == pytest.approx(sum(plan.stages.values()))
    assert plan.stages["measuring"] < plan.seconds / 2
    assert tuple(plan.stages) == STAGES  # none of them sends the bar back
    assert plan.as_dict()["seconds_by_stage"]["writing"] > 1
    assert sum(anonymous_seconds(10**6).values()) > 5


def test_durations_are_said_no_finer_than_they_are_known():
    assert [duration_words(s) for s in (1, 13, 70, 200, 7200)] == [
        "a few seconds",
        "about 15 seconds",
        "about a minute",
        "about 3 minutes",
        "about 2.0 hours",
    ]
