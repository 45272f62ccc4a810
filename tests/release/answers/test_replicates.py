"""Intervals for any function, by running the mechanism again on tables of the centres."""

import contextlib
import dataclasses
import re
import threading

import numpy as np
import polars as pl
import pytest

import covey
from audits.odometer import cheap_fits
from covey.engine import progress as progress
from covey.engine.entropy import Streams
from covey.engine.progress import Progress, silent
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers import replicates
from covey.release.answers.replicates import Mechanism
from covey.tables.schema import Field, Schema
from tests.engine.test_progress import Terminal
from tests.release.answers.test_persons import PACKAGE, persons
from tests.release.answers.test_release import FLAGS, flags

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")


def released(schema, columns, *budget, m=None):
    synth = covey.PrivateSynthesizer(*budget, schema=schema, seed=2, certificate_share=0).fit(columns)
    return synth.release(m or len(next(iter(columns.values()))))


@pytest.fixture(scope="module")
def release():
    X = flags(2000)
    with cheap_fits():
        return released(FLAGS, {name: X[:, j] for j, name in enumerate("abcdef")}, 1.0)


def share_of_a(frame):
    return frame["a"].mean()


def test_replicates_err_as_much_as_the_noise_says(release):
    """The spread of a share over replicates is that of its noise and of sampling; noise of half the size would show."""
    with cheap_fits():
        found = release.replicates(20, seed=5)
    assert all(r.table.shape == r.rows.shape == (2000, 6) for r in found)
    truth = float(release.row_law.cloud.weights @ release.row_law.cloud.points[:, 0])
    errors = [share_of_a(r.rows) - truth for r in found]
    said = release.share({"a": True}).se
    assert 0.65 < np.sqrt(np.mean(np.square(errors))) / said < 1.45
    assert len({r.rows["a"].sum() for r in found}) > 5  # each has noise of its own


def test_an_interval_for_a_function_says_that_it_is_approximate(release):
    with cheap_fits():
        found = release.interval(share_of_a, 6, seed=1)
        same = release.interval(share_of_a, 6, seed=1)
        table = release.interval(lambda f: float(f["a"].mean()), 6, about="table", seed=1)
    assert repr(found) == repr(same)
    assert found.question == "share_of_a"
    assert found.method == "approximate: 6 replicates; where three columns matter at once it may be too short"
    assert found.value == pytest.approx(share_of_a(release.rows()))
    assert found.low < found.value < found.high
    assert (table.question, table.about) == ("function", "table")


def test_what_the_folder_does_not_hold_cannot_be_run_again(release):
    """A prior, or triples that the caller asked for: replicates without them would be others than the release."""
    with pytest.raises(CannotAnswerError, match="cannot be run again"):
        dataclasses.replace(release, fitted=dataclasses.replace(release.fitted, measurements=None)).replicates(1)
    more = (*release.privacy.charges[:-1], dataclasses.replace(release.privacy.charges[-1], purpose="triples"))
    for change in ({"prior": "ab" * 32}, {"charges": more}):
        other = dataclasses.replace(release, privacy=dataclasses.replace(release.privacy, **change))
        with pytest.raises(CannotAnswerError, match="with a prior, or with triples or queries"):
            other.replicates(4)
    assert Mechanism(release).known


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_releases_that_learned_looked_for_relations_or_hide_their_size_are_run_again(neighbours):
    """They were refused for a prior, or triples, that they never had."""
    g, n = np.random.default_rng(1), 600
    a = g.integers(0, 40, n)
    follows = a + (g.random(n) < 0.05)
    frame = pl.DataFrame({"a": a, "follows": follows, "ward": g.choice(["x", "y", "z"], n)})
    schema = Schema.draft(frame).to_learn()
    with cheap_fits():
        synth = covey.PrivateSynthesizer(50.0, 1e-6, schema=schema, neighbours=neighbours, seed=3).fit(frame)
        release = synth.release(n)
        assert {"domains", "relations"} < {charge.purpose for charge in release.privacy.charges}
        assert release.schema.found
        answer = release.interval(lambda frame: float(frame["follows"].mean()), 4, seed=1)
        sizes = {len(own.table) for own in release.replicates(2, seed=1)}
    assert answer.low < follows.mean() < answer.high
    assert sizes == {release.privacy.n}
    spent = sum(
        charge.amount for charge in release.privacy.charges if charge.purpose in ("histograms", "pairs", "ranks")
    )
    assert Mechanism(release).budget.amount == spent


def test_the_mechanism_that_is_run_again_is_the_one_that_ran(release):
    mechanism = Mechanism(release)
    spent = sum(c.amount for c in release.privacy.charges)
    assert mechanism.budget.amount == spent
    with cheap_fits():
        _, again = mechanism.refit(Streams.from_seed(1))
    found, other = ([(m.query.degree, m.law, m.sd) for m in own.measurements.found] for own in (release, again))
    assert found == other


def test_numbers_and_categories_are_run_again_too():
    others = Field("ward", "string", enum=("x", "y", "z")), Field("ill", "boolean", required=True)
    schema = Schema((Field("age", "integer", 0, 99), *others))
    g = np.random.default_rng(3)
    columns = {"age": g.integers(0, 99, 600), "ward": g.choice(["x", "y", "z"], 600), "ill": g.random(600) < 0.3}
    with cheap_fits():
        for own in (schema, Schema((dataclasses.replace(schema["age"], bins=10), *schema.fields[1:]))):
            release = released(own, columns, 2.0, m=300)
            (one,) = release.replicates(1, seed=1)
            assert one.table.columns == ["age", "ward", "ill"]
            assert (len(one.table), len(one.rows)) == (600, 300)
            assert one.rows["age"].dtype == pl.Int64


def test_what_is_no_number_or_too_few_is_refused(release):
    with pytest.raises(ParameterError, match="one number"):
        release.interval(lambda frame: frame, 4)
    with pytest.raises(CannotAnswerError, match="no finite value"):
        release.interval(lambda frame: float("nan"), 4)
    with pytest.raises(ParameterError, match="4 or more"):
        release.interval(share_of_a, 2)


def test_functions_are_given_frames_of_the_library_that_is_wanted(release):
    kinds, answers = [], set()

    def share(frame):
        kinds.append(type(frame).__module__.split(".")[0])
        return frame["a"].to_numpy().mean()

    with cheap_fits():
        for name in ("polars", "pandas", "arrow"):
            found = release.interval(share, 4, library=name, seed=1)
            answers.add((found.low, found.value, found.high))
        assert type(release.replicates(1, library="pandas", seed=1)[0].rows).__module__.startswith("pandas")
    assert kinds == ["polars"] * 6 + ["pandas"] * 6 + ["pyarrow"] * 6
    assert len(answers) == 1


def test_an_interval_shows_how_far_it_has_come_before_its_first_replicate_is_done(release, monkeypatch):
    """Four fits at a time gave the first sign of life when one of them was finished."""
    stream = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(replicates, "TICK", 0.01)
    seen = threading.Event()

    def slow(streams):
        with silent(), Progress((("fitting", 1.0),)) as bar:
            bar.next()
            bar.tick(0.5)
            seen.wait(0.2)
        return 1

    assert Mechanism(release).runs(2, Streams.from_seed(1), slow) == [1, 1]
    shown = {int(found) for found in re.findall(r"(\d+)%  replicates", stream.getvalue())}
    assert shown & set(range(1, 100))
    with monkeypatch.context() as patch:  # the same where replicates tell only that they are done
        patch.setattr(replicates, "listening", lambda heard: contextlib.nullcontext())
        stream.truncate(0)
        Mechanism(release).runs(2, Streams.from_seed(1), slow)
    assert {int(found) for found in re.findall(r"(\d+)%  replicates", stream.getvalue())} <= {0}


def test_persons_of_replicates_are_as_independent_as_people_are():
    """Those that a law draws are balanced: their shares hardly vary, and an interval from them would be too short."""
    people = persons()
    first = 400
    kept = people.owner < first
    owner, (day, ward, cost) = people.owner[kept], people.events[kept].T
    sex = pl.DataFrame({"id": np.arange(first), "sex": np.array(["f", "m"])[people.persons[:first, 0]]})
    events = pl.DataFrame({"who": owner, "day": day, "ward": np.array(["a", "b", "c"])[ward], "cost": cost})
    with cheap_fits():
        synth = covey.PrivateSynthesizer(4.0, 1e-5, schema=PACKAGE, seed=1).fit({"patients": sex, "visits": events})
        release = synth.release(first)
        mechanism = Mechanism(release)
        drawn = [mechanism.table(400, Streams.from_seed(k)) for k in range(60)]
        public = [Streams.from_seed(k).postprocessing("table") for k in range(60)]
        balanced = [release.persons.drawn(400, own, own) for own in public]
        sds = [np.std([own.persons[:, 0].mean() for own in many]) for many in (drawn, balanced)]
        expected = np.sqrt(np.mean([own.persons[:, 0].var() for own in drawn]) / 400)
        assert 0.75 < sds[0] / expected < 1.35
        assert sds[1] < 0.5 * expected
        found = release.interval(lambda own: own["visits"].height / own["patients"].height, 4, seed=1)
        assert 0.05 < found.se < 0.5  # sampling 400 persons alone has 0.11
