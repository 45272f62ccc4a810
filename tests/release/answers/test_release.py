"""Answers: right where there is no noise, honest where there is, and refused where they could not be."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import covey
from covey.engine.measurement import Measurement, Measurements
from covey.engine.noise.law import CUBE, GAUSSIAN, LAPLACE
from covey.engine.query import Query
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.answer import Answer, AnswerTable
from covey.release.answers.regression import fit_logistic
from covey.tables.schema import Field, Schema
from covey.workflow.preparing import propose
from tests.entries import schema_of
from tests.release.answers.making import bits, categories, released

FLAGS = Schema(tuple(Field(name, "boolean", required=True) for name in "abcdef"))
TABLE = schema_of(
    Field("ward", "string", enum=("surgery", "medicine", "geriatrics"), required=True),
    Field("age", "integer", 0, 9, bins=10),
    Field("sex", "string", enum=("f", "m"), required=True),
    Field("old", "boolean", required=True),
)
EXACT = {"about": "table"}


def flags(n=4000, seed=0):
    g = np.random.default_rng(seed)
    latent = g.random((n, 1))
    return (g.random((n, 6)) < 0.2 + 0.5 * latent * np.linspace(0.2, 1, 6)).astype(np.int64)


def codes(n=4000, seed=1):
    """Ward, age with missing cells (10), sex, old; all but sex go together."""
    g = np.random.default_rng(seed)
    age = g.integers(0, 10, n)
    ward = (age + g.integers(0, 9, n)) // 6
    old = g.random(n) < age / 12
    age = np.where(g.random(n) < 0.1, 10, age)
    return np.stack([ward, age, g.integers(0, 2, n), old], axis=1).astype(np.int64)


def least_squares(y, *xs, weights=1.0):
    X, root = np.column_stack([np.ones(len(y)), *xs]), np.sqrt(np.broadcast_to(weights, len(y)))
    return list(np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0])


def test_answers_about_flags_are_those_of_the_table_when_there_is_no_noise():
    X = flags()
    a, b, c, *_ = X.T
    for centre in (0.5, 0.25):
        release = bits(FLAGS, X, centre=centre)
        assert release.share({"a": True}, **EXACT).value == pytest.approx(a.mean())
        assert release.share({"a": True, "b": False}, **EXACT).value == pytest.approx((a * (1 - b)).mean())
        assert release.share({"a": True}, given={"b": False}, **EXACT).value == pytest.approx(a[b == 0].mean())
        assert release.mean("a", where={"b": True}, **EXACT).value == pytest.approx(a[b == 1].mean())
        assert release.correlation("a", "b", **EXACT).value == pytest.approx(np.corrcoef(a, b)[0, 1])
        found = release.regress("a ~ b + c", **EXACT)
        assert [x.value for x in found] == pytest.approx(least_squares(a, b, c))
        assert found.labels == ("(constant)", "b", "c")
        by = release.mean("a", by="c", **EXACT)
        assert (by["false"].value, by["true"].value) == pytest.approx((a[c == 0].mean(), a[c == 1].mean()))


def test_answers_about_categories_are_those_of_the_table_when_there_is_no_noise():
    X = codes()
    ward, age, sex, old = X.T
    there = age < 10
    release = categories(TABLE, X)
    both = (age >= 4) & (age <= 7) & (sex == 0)
    assert release.share({"ward": ["surgery", "medicine"]}, **EXACT).value == pytest.approx((ward < 2).mean())
    assert release.share({"age": (4, 7), "sex": "f"}, **EXACT).value == pytest.approx(both.mean())
    assert release.share({"age": None}, **EXACT).value == pytest.approx((~there).mean())
    assert release.mean("age", **EXACT).value == pytest.approx(age[there].mean())
    inside = there & (ward == 1)
    assert release.mean("age", by="ward", **EXACT)["medicine"].value == pytest.approx(age[inside].mean())
    assert release.correlation("age", "old", **EXACT).value == pytest.approx(np.corrcoef(age[there], old[there])[0, 1])
    assert release.quantile("age", 0.5, **EXACT).value == np.quantile(age[there], 0.5, method="inverted_cdf")
    found = release.regress("old ~ ward + sex", **EXACT)
    common = np.argmax(np.bincount(ward))
    dummies = [ward == k for k in range(3) if k != common]
    right = least_squares(old, *dummies, sex == np.argmin(np.bincount(sex)))
    assert [x.value for x in found] == pytest.approx(right)


def logistic(y, *xs, weights=1.0):
    X, beta = np.column_stack([np.ones(len(y)), *xs]), np.zeros(len(xs) + 1)
    for _ in range(30):
        q = 1 / (1 + np.exp(-X @ beta))
        curve = np.broadcast_to(weights * q * (1 - q), len(y))
        beta = beta + np.linalg.solve(X.T @ (X * curve[:, None]), X.T @ (weights * (y - q)))
    return beta


def test_a_logistic_regression_moves_from_the_centres_to_the_measured_moments():
    """The centres say that nothing depends on anything; the measurements say more. One step goes most of the way."""
    X = flags(20_000)
    right = logistic(X[:, 5], X[:, 4], X[:, 3])
    release = bits(FLAGS, X)
    assert [a.value for a in release.regress("f ~ e + d", "logistic")] == pytest.approx(list(right), abs=0.08)
    flat = released(FLAGS, len(X), np.tile(X.mean(axis=0), (50, 1)), release.measurements)
    moved = np.array([a.value for a in flat.regress("f ~ e + d", "logistic")])
    assert np.abs(moved - right)[1:].max() < 0.25 * np.abs(right[1:]).max()
    assert np.abs(right[1:]).min() > 0.2  # a program that forgets the step answers about 0


QUESTIONS = {
    "share": lambda r: [r.share({"age": (5, 9)}, **EXACT)],
    "pair": lambda r: [r.share({"ward": "medicine", "age": (3, 6)}, **EXACT)],
    "given": lambda r: [r.share({"old": True}, given={"ward": "surgery"}, **EXACT)],
    "mean": lambda r: [r.mean("age", where={"ward": "medicine"}, **EXACT)],
    "correlation": lambda r: [r.correlation("age", "old", **EXACT)],
    "regression": lambda r: list(r.regress("old ~ ward + sex", **EXACT)),
}


@pytest.mark.parametrize("family", [GAUSSIAN, LAPLACE])
def test_intervals_hold_the_truth_as_often_as_they_say(family):
    """80 releases with known noise: coverage of .95 within chance; intervals half as long are found out."""
    X, g = codes(), np.random.default_rng(4)
    exact = {name: [a.value for a in ask(categories(TABLE, X))] for name, ask in QUESTIONS.items()}
    hits, short = {name: [] for name in QUESTIONS}, {name: [] for name in QUESTIONS}
    for _ in range(80):
        release = categories(TABLE, X, 25.0, g, family=family)
        for name, ask in QUESTIONS.items():
            for a, truth in zip(ask(release), exact[name], strict=True):
                hits[name].append(a.low <= truth <= a.high)
                short[name].append(abs(a.value - truth) <= (a.high - a.low) / 4)
    for name in QUESTIONS:
        assert 0.89 <= np.mean(hits[name]) <= 0.992, name
        assert np.mean(short[name]) < 0.85, name


def test_flags_hold_the_truth_too_around_any_centre():
    X, g = flags(), np.random.default_rng(5)
    asks = (lambda r: r.share({"a": True, "b": False}, **EXACT), lambda r: r.correlation("a", "e", **EXACT))
    for centre in (0.5, 0.2):
        truths = [ask(bits(FLAGS, X, centre=centre)).value for ask in asks]
        z = []
        for _ in range(100):
            release = bits(FLAGS, X, 0.01, g, centre)
            found = [ask(release) for ask in asks]
            z += [(own.value - truth) / own.se for own, truth in zip(found, truths, strict=True)]
        assert 0.85 < np.std(z) < 1.15  # noise that is a fifth larger than said would show
        assert abs(np.mean(z)) < 0.25


def test_the_population_is_less_certain_than_the_table():
    """Fresh tables of a population: sampling error enters, and intervals about the table would be too short."""
    g, pool = np.random.default_rng(6), flags(60_000, seed=9)
    truth = (pool[:, 4] * pool[:, 5]).mean()
    hits, short = [], []
    for _ in range(150):
        release = bits(FLAGS, pool[g.integers(0, len(pool), 3000)], 0.004, g)
        answers = [release.share({"e": True, "f": True}, about=about) for about in ("population", "table")]
        hits.append(answers[0].low <= truth <= answers[0].high)
        short.append(answers[1].low <= truth <= answers[1].high)
    assert 0.90 <= np.mean(hits) <= 0.99
    assert np.mean(short) < 0.85


def test_a_range_that_cuts_bins_of_pairs_gets_the_bounds_that_are_certain():
    """Whatever lies inside the bins, the interval holds it; a program that splits bins evenly would miss."""
    n, g = 3000, np.random.default_rng(7)
    age = g.integers(0, 10, n)
    ward = np.where(age >= 8, 0, 1 + (age < 5))  # inside the bin of 5 to 9 the wards are apart
    X = np.stack([ward, age, np.zeros(n, int), np.zeros(n, int)], axis=1)
    maps = [np.arange(3), np.array([0] * 5 + [1] * 5 + [2]), np.arange(2), np.arange(2)]
    release = categories(TABLE, X, maps=maps)
    found = release.share({"ward": "surgery", "age": (8, None)}, **EXACT)
    truth = ((ward == 0) & (age >= 8)).mean()
    assert found.low - 1e-9 <= truth <= found.high + 1e-9
    assert abs(found.value - truth) > 0.02
    assert "measured in bins" in found.method
    whole = release.share({"ward": "surgery", "age": (5, None)}, **EXACT)
    assert whole.value == pytest.approx(((ward == 0) & (age >= 5)).mean(), abs=1e-6)
    assert whole.high - whole.low < 1e-6


def test_rows_without_an_outcome_are_left_out_of_a_regression():
    """The young have no outcome. Of one column's terms all is measured; of two the regression is refused, not bent."""
    g, n = np.random.default_rng(4), 6000
    old, ward = g.integers(0, 2, n), g.integers(0, 3, n)
    age = np.where((old == 0) & (g.random(n) < 0.7), 10, np.clip(4 * old + 2 * (ward == 1) + g.integers(0, 4, n), 0, 9))
    X = np.stack([ward, age, g.integers(0, 2, n), old], axis=1)
    there, release = age < 10, categories(TABLE, X)
    found = [a.value for a in release.regress("age ~ old", **EXACT)]
    assert found == pytest.approx(least_squares(age[there], old[there]), abs=1e-6)
    common = np.argmax(np.bincount(ward))
    dummies = [(ward == k)[there] for k in range(3) if k != common]
    found = [a.value for a in release.regress("age ~ ward", **EXACT)]
    assert found == pytest.approx(least_squares(age[there], *dummies), abs=1e-6)
    filled = np.where(there, age, age[there].mean())  # what a program does that takes all rows to be alike
    assert abs(least_squares(filled, old)[1] / there.mean() - least_squares(age[there], old[there])[1]) > 0.3
    with pytest.raises(CannotAnswerError, match="rows without 'age' differ from the others in 'old'"):
        release.regress("age ~ old + sex")


def test_a_category_can_be_an_outcome():
    X = codes()
    release = categories(TABLE, X)
    right = least_squares(X[:, 0] == 1, X[:, 3])
    assert [a.value for a in release.regress("ward=medicine ~ old", **EXACT)] == pytest.approx(right)
    odds = release.logistic("ward=medicine ~ old", **EXACT)
    assert [a.value for a in odds] == pytest.approx(list(logistic(X[:, 0] == 1, X[:, 3])), abs=0.02)
    with pytest.raises(ParameterError, match="Write one of its categories: ward="):
        release.regress("ward ~ old", "logistic")


def test_a_number_in_coarse_bins_gets_by_group_the_bounds_that_are_certain():
    """Inside the upper bin one ward has the largest ages: the interval holds them; one around the bin's mean would not."""
    n, g = 3000, np.random.default_rng(8)
    age = g.integers(0, 10, n)
    ward = np.where(age >= 8, 0, 1 + (age < 5))
    X = np.stack([ward, age, g.integers(0, 2, n), age > 5], axis=1)
    maps = [np.arange(3), np.array([0] * 5 + [1] * 5 + [2]), np.arange(2), np.arange(2)]
    release = categories(TABLE, X, maps=maps)
    for label, k in (("surgery", 0), ("medicine", 1)):
        found, truth = release.mean("age", by="ward", **EXACT)[label], age[ward == k].mean()
        assert found.low - 1e-6 <= truth <= found.high + 1e-6
        assert abs(found.value - truth) > 0.3
        assert found.high - found.low < 5
        assert "only bounds are known" in found.method
    noisy = categories(TABLE, X, 10.0, np.random.default_rng(3), maps=maps)
    wide = noisy.mean("age", where={"ward": "surgery"}, **EXACT)
    assert wide.low <= age[ward == 0].mean() <= wide.high
    with pytest.raises(CannotAnswerError, match="keep"):
        release.regress("age ~ ward")


def test_a_correlation_of_numbers_of_which_bins_keep_little_is_bounded():
    """It was refused. Bounds hold whatever the two share inside their bins, even where all that they share lies there."""
    g = np.random.default_rng(8)
    age = g.integers(0, 10, 3000)
    pays = np.where(age < 5, 9 - age, age - 5) + g.integers(
        0, 2, 3000
    )  # falls inside one bin and rises inside the other
    schema = Schema(tuple(Field(name, "integer", 0, 10, bins=11, required=True) for name in ("age", "pays")))
    X = np.stack([age, pays], axis=1)
    for maps in ([np.arange(11) // 6, np.arange(11)], [np.arange(11) // 6, np.arange(11) // 6]):
        found, truth = categories(schema, X, maps=maps).correlation("age", "pays", **EXACT), np.corrcoef(X.T)[0, 1]
        assert found.low <= truth <= found.high
        assert "wider because values were measured in bins" in found.method
    hidden = categories(schema, np.stack([age, 9 - age % 5], axis=1), maps=maps).correlation("age", "pays", **EXACT)
    assert hidden.low <= np.corrcoef(age, 9 - age % 5)[0, 1] <= hidden.high


def test_what_cannot_be_answered_honestly_is_refused():
    X, coarse = codes(), [np.arange(3), np.array([0] * 6 + [1] * 5), np.arange(2), np.arange(2)]
    release = categories(TABLE, X, 20.0, np.random.default_rng(1), maps=coarse)
    noisy = categories(TABLE, X, 900.0, np.random.default_rng(1))
    no_men = categories(TABLE, X * [1, 1, 0, 1], 5.0, np.random.default_rng(2))
    means = Measurement(Query.products(1, np.zeros(6)), np.full(6, 0.3), 0.01, CUBE)
    alone, bare = (released(FLAGS, 100, np.full((1, 6), 0.3), own) for own in (Measurements(100, (means,)), None))
    assert alone.share({"a": True}).value == pytest.approx(0.3)
    same = flags()
    same[:, 5] = same[:, 4]
    for words, ask in {
        r"'age' .* keep \d+% of its variance": lambda: release.regress("age ~ old"),
        "3 columns at once": lambda: release.share({"age": (0, 5), "ward": "surgery", "sex": "f"}),
        "does not support a regression|stands out|does not vary": lambda: noisy.regress("old ~ ward + sex"),
        "lost in the noise": lambda: no_men.share({"old": True}, given={"sex": "m"}),
        "pairs of columns were not measured": lambda: alone.share({"a": True, "b": True}),
        "nearly decide the outcome": lambda: bits(FLAGS, same).regress("f ~ e", "logistic"),
        "keeps no measurements": lambda: bare.share({"a": True}),
    }.items():
        with pytest.raises(CannotAnswerError, match=words):
            ask()


def test_cut_rows_leave_single_columns_only():
    """The first means are those of whole rows: they answer, with their own noise; pairs are refused."""
    found = bits(FLAGS, flags()).measurements.found
    cut = [dataclasses.replace(m, query=dataclasses.replace(m.query, cut=True)) for m in found]
    whole = Measurement(Query.products(1, np.zeros(6)), np.full(6, 0.25), 0.02, GAUSSIAN)
    release = released(FLAGS, 4000, flags().astype(float), Measurements(4000, (whole, *cut)))
    found = release.share({"a": True}, **EXACT)
    assert (found.value, found.se) == pytest.approx((0.25, 0.02))
    with pytest.raises(CannotAnswerError, match="shortened long rows"):
        release.correlation("a", "b")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda r: r.share({"wrad": "surgery"}), "Did you mean 'ward'"),
        (lambda r: r.share({"ward": "surgry"}), "Did you mean 'surgery'"),
        (lambda r: r.share({"age": (20, None)}), "its values lie between 0 and 9"),
        (lambda r: r.share({"age": "old"}), "and 'old' is none"),
        (lambda r: r.share({"ward": (1, 2)}), "a range of them is not defined"),
        (lambda r: r.share({"ward": None}), "never missing"),
        (lambda r: r.share({"ward": "surgery"}, given={"ward": "medicine"}), "no row meets both"),
        (lambda r: r.share({}), "conditions are given as"),
        (lambda r: r.mean("ward"), "have no mean"),
        (lambda r: r.quantile("age", 1.5), "between 0 and 1"),
        (lambda r: r.correlation("age", "age"), "two different columns"),
        (lambda r: r.regress("old + ward"), "looks like"),
        (lambda r: r.regress("old ~"), "a column is missing"),
        (lambda r: r.regress("ward ~ age"), "one of them as its outcome: ward=… ~ …"),
        (lambda r: r.regress("old ~ ward * sex"), "interactions and functions were not measured"),
        (lambda r: r.regress("old ~ ward + ward"), "once"),
        (lambda r: r.regress("age ~ ward", "logistic"), "needs a yes.no column"),
        (lambda r: r.regress("old ~ ward", "probit"), "'linear' or 'logistic'"),
        (lambda r: r.share({"sex": "f"}, confidence=95), "between 0 and 1"),
        (lambda r: r.share({"sex": "f"}, about="world"), "'population' or 'table'"),
        (lambda r: r.sample(0), "whole number"),
        (lambda r: r.sample(3, library="excel"), "polars, pandas, arrow"),
        (lambda r: r.mean("age").frame("excel"), "library must be one of polars, pandas, arrow"),
        (lambda r: r.quantile("age", [0.1, 0.5]), "q must be one number between 0 and 1"),
        (lambda r: r.sample(5, where="age>2000"), "conditions are given as"),
        (lambda r: r.mean("age", where="age>2000"), "conditions are given as .*, got 'age>2000'"),
        (lambda r: r.mean("age", confidence="high"), "confidence must lie between 0 and 1, got 'high'"),
        (lambda r: r.logistic(7), "a formula looks like"),
        (lambda r: r.interval("age"), "function must take a frame"),
    ],
)
def test_wrong_questions_say_what_is_wrong(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask(categories(TABLE, codes(500)))


@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_of_any_length_are_refused_in_a_line(digits):
    release, number = categories(TABLE, codes(500)), 10**digits
    for ask in (
        lambda: release.share({"age": (number, None)}),
        lambda: release.share({"age": [number]}),
        lambda: release.mean("age", confidence=number),
        lambda: release.quantile("age", number),
        lambda: release.sample(number),
        lambda: release.sample(5, where={"age": (None, number)}),
        lambda: release.ask(f"mean age where age>1e{digits}999"),
        lambda: release.ask(f"top {'9' * digits} ward"),
        lambda: release.ask("top ² ward"),
    ):
        with pytest.raises(ParameterError) as refusal:
            ask()
        assert len(str(refusal.value)) < 300 + digits * ("top" in str(refusal.value))


def test_answers_print_as_a_line_and_draw_themselves():
    release = categories(TABLE, codes(), 25.0, np.random.default_rng(3))
    one = release.share({"ward": "surgery"})
    assert isinstance(one, Answer)
    assert repr(one).startswith("share ward=surgery = 0.")
    assert "95% interval" in repr(one)
    assert "\n" not in repr(one)
    assert one.low < one.value < one.high
    assert "<svg" in one._repr_html_()
    several = release.mean("age", by="ward")
    assert isinstance(several, AnswerTable)
    for library in ("polars", "pandas", "arrow"):
        assert several.frame(library).shape == (3, 9)
        assert one.frame(library).shape == (1, 9)
    assert several.frame().columns == ["ward", "value", "low", "high", "se", "confidence", "about", "method", "note"]
    assert several._repr_html_().count("<svg") == 3
    assert repr(several).splitlines()[1].split()[:4] == ["ward", "value", "low", "high"]
    wide = release.share({"ward": "surgery"}, confidence=0.999)
    assert wide.high - wide.low > one.high - one.low


def test_terms_that_do_not_vary_or_are_not_there_are_refused_without_a_warning():
    """A flag that nobody has gets a negative variance by noise; a group may have no row with the outcome at all."""
    X = flags()
    X[:, 1] = 0
    noisy = [bits(FLAGS, X, sd=0.01, generator=np.random.default_rng(seed)) for seed in range(4)]
    assert min(release.share({"b": True}, **EXACT).low for release in noisy) == 0
    for release in noisy:
        with pytest.raises(CannotAnswerError, match=r"does not (vary beyond its noise|support)"):
            release.regress("a ~ b")
    table = codes()
    table[:, 1] = np.where(table[:, 2] == 1, 10, table[:, 1])  # no man has an age
    with pytest.raises(CannotAnswerError, match="nothing to regress on"):
        categories(TABLE, table, 0.5, np.random.default_rng(0)).regress("age ~ sex")


def test_a_logistic_regression_whose_terms_are_all_alike_is_refused_in_words():
    with pytest.raises(CannotAnswerError, match="nearly decide the outcome"):
        fit_logistic(np.column_stack([np.arange(200) % 2, np.ones(200)]))


def test_columns_that_exclude_each_other_are_proposed_measured_as_one_and_answered_each():
    """A tenth of the 4,000 rows has none of three colours; half of those with grey eyes are tall, and no others."""
    eyes = np.repeat([0, 1, 2, 3], [2000, 1000, 600, 400])
    table = {f"eyes_{word}": (eyes == k).astype(int) for k, word in enumerate(("blue", "brown", "grey"))}
    frame = pl.DataFrame(table | {"tall": ((eyes == 2) & (np.arange(4000) % 2 == 0)).astype(int)})
    drafted = Schema.draft(frame).confirm(frame.columns)
    proposal = next(own for own in propose(frame, drafted) if own.rules and own.rules[0].word == "one_of")
    assert proposal.words == "At most 1 of eyes_blue, eyes_brown, eyes_grey is true"
    schema = proposal.added_to(drafted)
    assert not any(set(own.columns) <= set(table) for own in propose(frame, schema))  # it is said by now
    release = covey.PrivateSynthesizer(20, schema=schema, seed=1).fit(frame).release(4000)
    rows = release.rows()
    assert rows.columns == frame.columns
    assert schema.validate(rows) == []
    for question, value in {
        "share eyes_brown=1": 0.25,
        "share eyes_blue=0 eyes_brown=0": 0.25,
        "share eyes=none": 0.1,
        "mean tall where eyes_grey=1": 0.5,
        "share eyes_grey=1 given tall=1": 1.0,
        "correlation eyes_blue eyes_brown": -1 / np.sqrt(3),
    }.items():
        found = release.ask(question, about="table")
        assert found.low - 0.01 <= value <= found.high + 0.01
        assert found.high - found.low < 0.1
    assert [one.value > 0.15 for one in release.mean("tall", by="eyes_grey").answers] == [False, True]
    drawn = release.sample(50, {"eyes_blue": 0, "eyes_brown": 0})
    assert (drawn["eyes_blue"] + drawn["eyes_brown"]).sum() == 0
    for wrong in (
        lambda: release.share({"eyes_blue": 1, "eyes_grey": 1}),
        lambda: release.regress("tall ~ eyes + eyes_blue"),
    ):
        with pytest.raises((ParameterError, CannotAnswerError)):
            wrong()
