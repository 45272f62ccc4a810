"""A kernel of one's own gets the noise of the sensitivity that is said with it, and made-up units are counted to check it."""

import csv
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import covey
from audits.odometer import cheap_fits
from covey.engine.codes.counts import Counts
from covey.engine.query import CellCounts, Factor, Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.units.local import ArrayRows
from covey.errors import CannotAnswerError, InputError, InternalError, ParameterError
from covey.release.answers.tables import write_tables
from covey.release.bundle import write_bundle
from covey.tables.schema import Field, Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
SIZES, ROWS = (3, 4, 3), 500
SETS, FACTORS = ((0, 1),), {0: Factor.plain(3), 1: Factor.plain(4)}
X = np.stack([np.random.default_rng(0).integers(0, size, ROWS) for size in SIZES], axis=1)
HISTOGRAM = Sensitivity.histograms(1)
REPLACED = Sensitivity(l1=2, l2_squared=2)


@dataclass(frozen=True)
class Times:
    """Kernel: cells of the first two columns, so many times."""

    factor: int

    def __call__(self, batch):
        return Counts((self.factor * np.bincount(batch[:, 0] * 4 + batch[:, 1], minlength=12),))


@dataclass(frozen=True)
class RareOneTimes:
    """Kernel: the same for a row in the last cell alone; others count once."""

    factor: int

    def __call__(self, batch):
        counts = np.bincount(batch[:, 0] * 4 + batch[:, 1], minlength=12)
        return Counts((counts * np.append(np.ones(11, np.int64), self.factor),))


@dataclass(frozen=True)
class Ranked:
    """Kernel: rows by whether their first code is the largest of the batch: what a row adds depends on others."""

    def __call__(self, batch):
        return Counts(
            (np.bincount(12 * (batch[:, 0] == batch[:, 0].max()) - (batch[:, 0] == batch[:, 0].max()), minlength=12),)
        )


@dataclass(frozen=True)
class Halves:
    """Kernel: half a row in each of two cells."""

    def __call__(self, batch):
        return Counts((np.bincount(batch[:, 0], minlength=12) / 2,))


@dataclass(frozen=True)
class Narrow:
    """Kernel: another number of cells than the query has."""

    def __call__(self, batch):
        return Counts((np.bincount(batch[:, 0], minlength=3),))


def own(kernel: Any, sensitivity: Sensitivity | None, sets=SETS, factors=FACTORS, **options: Any) -> Query:
    """A query with a kernel of its own, and with a sensitivity of its own if there is one."""
    names: dict[str, Any] = {"kernel": lambda self: kernel}
    if sensitivity is not None:
        names["sensitivity"] = lambda self: sensitivity
    return type("Own", (Query,), names)(sets, factors, **options)


def thousand(scale: int = 1000) -> Sensitivity:
    """Of counts times so much."""
    added = Sensitivity(l1=scale, l2_squared=scale**2)
    return Sensitivity(l1=2 * scale, l2_squared=2 * scale**2, added=added)


def fitted(query: Query, delta: float = 0.0, **options: Any) -> Any:
    synth = covey.PrivateSynthesizer(1.0, delta, domain=list(SIZES), seed=1, **options)
    synth.further = (query,)
    with cheap_fits():
        return synth.fit(X)


def refused(query: Query, match: str, error: type[Exception] = ParameterError, **options: Any) -> None:
    """Refused, and no row was counted."""
    counted = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ArrayRows, "reduce", lambda *_: counted.append(1))
        patched.setattr(ArrayRows, "whole", lambda *_: counted.append(1))
        with pytest.raises(error, match=match):
            fitted(query, **options)
    assert counted == []


def test_a_kernel_that_does_not_say_its_sensitivity_is_refused_before_anything_is_counted():
    refused(own(Times(1), None), "Own has a kernel of its own and does not say its sensitivity")

    class Said(Query):
        def sensitivity(self):
            return HISTOGRAM

    class WithAnotherKernel(Said):  # what was said was about another kernel
        def kernel(self):
            return Times(1000)

    refused(WithAnotherKernel(SETS, FACTORS), "WithAnotherKernel has a kernel of its own and does not say its")
    patched = Said(SETS, FACTORS)
    object.__setattr__(patched, "kernel", lambda: Times(1000))
    del Said.sensitivity
    refused(patched, "Said has a kernel of its own")


@pytest.mark.parametrize(
    ("kernel", "sensitivity", "match"),
    [
        (Times(1000), HISTOGRAM, "says l1=1 for a row that is added, and the tables of made-up rows move by 1000"),
        (Times(1000), REPLACED, "says l1=2 for a row that is replaced, and the tables of made-up rows move by 2000"),
        (Times(2), REPLACED, "made-up rows move by 4"),
        (Times(1000), thousand(999), "made-up rows move by 1000"),
        (RareOneTimes(1000), REPLACED, "made-up rows move by 1001"),  # one unit of many: hidden in any sum over them
        (Times(1), Sensitivity(l1=2, l2_squared=1), "says l2_squared=1"),
        (
            Times(1),
            Sensitivity(l1=2, l2_squared=2, added=Sensitivity(l1=Fraction(1, 2), l2_squared=1)),
            "row that is added",
        ),
        (Times(1), Sensitivity(l1=2), "lacks l1=… or l2_squared=…"),
        (Times(1), Sensitivity(l2_squared=2), "lacks l1=… or l2_squared=…"),
        (Times(1), Sensitivity(l1=2, l2_squared=2, summed=False), "the Sensitivity of a sum over rows"),
        (Times(1), 2, "the Sensitivity of a sum over rows"),
        (Ranked(), thousand(), "looks at each row by itself"),
        (Halves(), HISTOGRAM, "12 whole numbers"),
        (Narrow(), HISTOGRAM, "12 whole numbers"),
        (Times(0), HISTOGRAM, "or in none: give total=False"),
    ],
)
def test_what_made_up_units_can_show_to_be_false_is_refused_before_anything_is_counted(kernel, sensitivity, match):
    refused(own(kernel, sensitivity), match)


def test_where_the_number_of_rows_is_secret_the_move_of_an_added_row_is_asked_for_and_checked():
    options = {"neighbours": "add-or-remove-one"}
    refused(own(Times(1), Sensitivity(l1=2, l2_squared=2)), "does not say how far an added row moves", **options)
    false = Sensitivity(l1=2, l2_squared=2, added=Sensitivity(l1=1, l2_squared=Fraction(1, 2)))
    refused(own(Times(1), false), "for a row that is added", **options)


def test_a_query_about_columns_or_codes_that_are_not_there_is_refused_before_anything_is_counted():
    refused(Query([(0, 3)], {0: FACTORS[0], 3: Factor.plain(3)}), "names column 3, and the last one is 2")
    refused(Query([(0, 2)], FACTORS), "in its factors how column 2")
    refused(Query([(0, 1)], {0: Factor.plain(4), 1: FACTORS[1]}), "column 0 with 4 codes, and it has 3")
    refused("age", "got a str")


def test_further_queries_of_a_schema_that_is_not_complete_are_refused_before_anything_is_spent():
    whole, learned = Field("a", "integer", 0, 9), Field("b", "integer", learn=True)
    for declared in (Schema((whole, learned), relations="none"), Schema((whole,), relations="learn")):
        synth = covey.PrivateSynthesizer(1.0, 1e-9, schema=declared, seed=1)
        synth.further = (Query([(0,)], {0: Factor.plain(11)}),)
        with pytest.raises(ParameterError, match="further queries name"):
            synth.check(1000)
    synth = covey.PrivateSynthesizer(1.0, method="paper", seed=1)
    synth.further = (Query([(0,)], {0: Factor.plain(2)}),)
    with pytest.raises(ParameterError, match="further queries are about columns with categories"):
        synth.fit(np.eye(3))


def test_a_kernel_that_could_tell_what_it_sees_is_refused_before_anything_is_counted():
    """Otherwise the refusal would come in the middle of a fit, when something is spent."""

    @dataclass(frozen=True)
    class Telling:
        def __call__(self, batch):
            print(len(batch))
            return Counts((np.bincount(batch[:, 0] * 4 + batch[:, 1], minlength=12),))

    refused(own(Telling(), HISTOGRAM), "names print", error=InternalError)


@pytest.mark.parametrize(
    ("delta", "options"),
    [(0.0, {}), (1e-6, {}), (0.0, {"neighbours": "add-or-remove-one"})],
    ids=["pure", "Gaussian", "added"],
)
def test_the_noise_is_that_of_the_sensitivity_which_was_said(delta, options):
    """A thousand times the counts, with the sensitivity of that, have a thousand times the noise, and the promise holds."""
    synth = fitted(own(Times(1000), thousand()), delta, **options)
    measured = synth.measurements.found[-1]
    (charge,) = [charge for charge in synth.privacy.charges if charge.purpose == "further queries"]
    assert float(measured.sd) == pytest.approx(thousand().deviation(synth.privacy.budget.with_amount(charge.amount)))
    assert float(measured.sd) > 1000 * np.sqrt(2) * (5 if options else 10)
    true = Times(1000)(X).values[0]
    assert (np.abs(measured.values - true) < 8 * float(measured.sd)).all()
    assert not np.array_equal(measured.values, true)


def test_several_queries_share_one_draw_for_all_that_a_row_moves():
    synth = covey.PrivateSynthesizer(1.0, domain=list(SIZES), seed=1)
    synth.further = (Query(SETS, FACTORS), own(Times(3), thousand(3)))
    with cheap_fits():
        synth.fit(X)
    one, other = synth.measurements.found[-2:]
    assert one.sd == other.sd
    assert float(one.sd) == pytest.approx(np.sqrt(2) * (2 + 6) * 10, rel=1e-3)  # a tenth of ε = 1 for 2 + 6 in ℓ1


def test_the_certificate_counts_tables_that_a_row_moves_further_in_parts_of_that():
    """The same law, the same rows: the distance of a thousand times the counts is that of the counts, in thousandths."""
    plain, large = (fitted(query, 1e-6) for query in (own(Times(1), HISTOGRAM), own(Times(1000), thousand())))
    assert large.certificate.misplaced.bound == pytest.approx(plain.certificate.misplaced.bound, rel=0.05)


def test_counts_that_are_no_shares_of_rows_answer_no_question_and_are_written_as_they_were_measured(tmp_path):
    schema = Schema(
        tuple(
            Field(name, "string", enum=tuple("abcd"[:size]), required=True)
            for name, size in zip("xyz", SIZES, strict=True)
        )
    )
    table = {name: np.array(list("abcd"))[X[:, j]] for j, name in enumerate("xyz")}
    synth = covey.PrivateSynthesizer(5.0, schema=schema, seed=1)
    sets, factors = ((0, 1, 2),), {**FACTORS, 2: Factor(np.arange(4), np.zeros(3, np.int64))}
    synth.further = (own(Times(1000), thousand(), sets, factors),)
    with cheap_fits():
        synth.fit(table)
    release = covey.load(write_bundle(synth.release(100), tmp_path / "bundle"))
    with pytest.raises(CannotAnswerError, match="3 columns at once"):
        release.share({"x": "a", "y": "a", "z": "a"}, about="table")
    write_tables(release, tmp_path / "tables")
    assert not (tmp_path / "tables" / "triples.csv").exists()
    with (tmp_path / "tables" / "own-1.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    measured = synth.measurements.found[-1]
    assert [float(line["count"]) for line in lines] == pytest.approx(measured.values, rel=1e-4)
    assert float(lines[0]["sd"]) == pytest.approx(float(measured.sd), rel=1e-4)
    assert lines[0]["category_a"] == "a"


def test_covey_s_own_kernels_keep_what_is_said_of_them():
    """As if somebody had copied them: rows, and persons with events of every kind."""
    from covey.engine.budget import make_budget
    from covey.engine.made_up import MadeUpPersons, MadeUpRows, check_queries
    from covey.engine.query import PersonTables

    budget = make_budget(1.0, 0.0, 1)
    columns = tuple(FACTORS), tuple(FACTORS.values())
    check_queries([own(CellCounts(*columns, SETS), HISTOGRAM)], MadeUpRows(SIZES), budget)
    factors = {0: Factor.plain(3), 1: Factor.plain(4), 2: Factor.plain(3), 3: Factor.plain(6)}
    persons = MadeUpPersons((3,), (4, 3), 5)
    for of, sets in {
        "person": ((0,), (0, 3)),
        "across": ((0, 1),),
        "event": ((1, 2),),
        "step": ((1, 2),),
        "two": ((1, 1),),
    }.items():
        kernel = PersonTables(tuple(factors), tuple(factors.values()), sets, of)
        check_queries([own(kernel, Sensitivity.histograms(len(sets)), sets, factors, of=of)], persons, budget)
        low = Sensitivity(l1=Fraction(19, 10), l2_squared=2)
        with pytest.raises(ParameterError, match="made-up rows move by"):
            check_queries([own(kernel, low, sets, factors, of=of)], persons, budget)


def test_further_queries_of_a_sparse_array_are_refused_before_anything_is_counted():
    """Kernels count dense codes: the sum would fail in the middle of a fit."""
    synth = covey.PrivateSynthesizer(1.0, seed=1)
    synth.further = (Query([(0, 1, 2)], {a: Factor.plain(2) for a in range(3)}),)
    with pytest.raises(InputError, match=r"Give X\.toarray\(\) instead"):
        synth.fit(csr_array(np.eye(5, dtype=np.uint8)))
