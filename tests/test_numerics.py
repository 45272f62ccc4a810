"""What docs/threat-model.md promises about arithmetic, sentence by sentence."""

import ast
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import covey
from audits.checks import measured_runs
from audits.gates import a_budget, paper_gate
from audits.instruments import spy_on_noise
from covey.engine import gate as gate_module
from covey.engine.arrays import is_bits
from covey.engine.bodies import Ball, Cube
from covey.engine.codes.counts import MAX_ROWS, integer_squares, joined, moments, require_exact
from covey.engine.codes.domain import Domain
from covey.engine.entropy import Streams
from covey.engine.models.tables.plan_tables import pair_law
from covey.engine.noise.directions import DIRECTION_BITS
from covey.engine.units import local
from covey.errors import ParameterError
from covey.paper import private as paper
from covey.paper.records import boolean_records, real_records

SOURCE = Path(covey.__file__).parent


def test_only_these_functions_read_records_or_say_what_is_computed_of_them():
    """A function that comes to do so must be added here, after its sensitivity was proved and its audit written."""
    readers, describe = set(), set()
    for path in [path for path in SOURCE.rglob("*.py") if path.parent.name != "units"]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                reads = isinstance(node, ast.Attribute) and node.attr in ("reduce", "whole", "batches", "records")
                if reads and "rows" in ast.unparse(node.value):
                    readers.add(f"{path.stem}.{function.name}")
                if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                    "Statistic",
                    "Statistic.sum",
                    "Statistic.tables",
                ):
                    describe.add(f"{path.stem}.{function.name}")
    assert readers == {
        "driver._sum",  # what models ask for
        "learning.learn",  # limits and labels: docs/proofs/learned.md
        "search.__init__",  # relations between columns: docs/proofs/relations.md
        "private.private_centres",
        "private.private_subspace",
        "private.anonymous_centres",
        "anonymous.group_centres",
        "anonymous._collected",
    }
    assert describe == {
        "bits.column_sums",  # bits: docs/proofs/sensitivity.md, docs/proofs/neighbours.md
        "bits.measure_parities",
        "bits.measure_ball",
        "bits.measure_coding",
        "bits.measure_sizes",
        "bits.measure_scores",
        "laws.bit_sums",
        "table_counts.of",  # categories and numbers: docs/proofs/sensitivity.md, docs/proofs/trees.md
        "table_counts.ranges",
        "table_counts.__init__",
        "table_counts.pairs",
        "triples.find_triples",  # docs/proofs/choice.md
        "reals.measure_scales",  # real records in a body: docs/proofs/bodies.md
        "reals.measure_radius",
        "reals.measure_moments",
        "method.measure_counts",  # persons with events: docs/proofs/persons.md
        "method.codes",
        "method.ranges",
        "method.measure_tables",
        "table_counts.largest_distance",  # the certificate: docs/proofs/certificate.md
        "laws.comparison",
        "law.comparison",
        "driver._variation",
        "driver._with_variations",
        "driver._measure_further",  # further queries
        "statistic.map",
        "statistic.largest_of",
    }


@pytest.mark.parametrize("name", [run[0] for run in measured_runs(0)])
def test_statistics_are_the_same_integers_in_any_batch_and_any_order(name, monkeypatch):
    """What noise is added to does not depend on how the rows are cut into batches, nor on their order."""
    _, X, _, run, free = next(found for found in measured_runs(0) if found[0] == name)
    seen = []
    for order, entries in ((slice(None), 1 << 23), (slice(None), 1), (slice(None, None, -1), 7)):
        monkeypatch.setattr(local, "BATCH_ENTRIES", entries)
        monkeypatch.setattr(local, "LEAST_BATCH_ROWS", 1)
        with spy_on_noise() as met, pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *a, **k: None)
            run(X[order], Streams.from_seed(3))
        seen.append([statistic for statistic, _, _ in met[:free]])
    for other in seen[1:]:
        for a, b in zip(seen[0], other, strict=True):
            assert a.dtype == np.int64
            assert np.array_equal(a, b)


def test_squares_of_fixed_point_rows_are_exact_where_float64_sums_are_not():
    generator = np.random.default_rng(0)
    X = generator.integers(-(2**20), 2**20, (20_000, 3)).astype(np.float64)
    X[:, 1] = np.where(generator.random(len(X)) < 0.9, 2**20, X[:, 1])
    exact = [[sum(int(a) * int(b) for a, b in zip(X[:, i], X[:, j], strict=True)) for j in range(3)] for i in range(3)]
    for cuts in ([0, 20_000], [0, 1, 7777, 20_000]):
        parts = [integer_squares(X[a:b]) for a, b in pairwise(cuts)]
        total = sum(parts[1:], parts[0])
        high, mixed, low = (part.astype(np.int64).astype(object) for part in total.values)
        whole = 2**20 * high + 2**10 * mixed + low
        assert (whole == np.array(exact, dtype=object)).all()
        assert (joined(total) == joined(integer_squares(X))).all()
    assert exact[1][1] > 2**53
    assert int(moments(X).second[1, 1]) != exact[1][1]  # why it takes three parts


def test_squares_of_bits_take_the_short_way():
    X = np.random.default_rng(1).integers(0, 2, (100, 4), dtype=np.uint8)
    assert is_bits(X)
    assert (joined(integer_squares(X)) == X.astype(int).T @ X).all()


def test_sums_stay_exact_up_to_the_bound_and_longer_tables_are_refused():
    from covey.engine.codes.counts import UNIT
    from covey.paper.records import REAL_BITS

    assert 2 * UNIT**2 * MAX_ROWS <= 2**53  # coded moments, and twice that in their change of variables
    assert 2**REAL_BITS * MAX_ROWS <= 2**53  # block sums of fixed-point records
    require_exact(MAX_ROWS, 2**13)
    for n, categories in ((MAX_ROWS + 1, 1), (MAX_ROWS, 2**14)):
        with pytest.raises(ParameterError, match="rows"):
            require_exact(n, categories)
    for method in ("regain", "paper"):
        with pytest.raises(ParameterError, match="are more than"):
            covey.PrivateSynthesizer(1.0, method=method).check(MAX_ROWS + 1)
    with pytest.raises(ParameterError, match="Declare fewer categories"):
        covey.PrivateSynthesizer(1.0, domain=[2, 2**14]).check(MAX_ROWS)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize(("q", "c"), [(2, 2), (60, 3), (300, 2), (600, 3), (3, 400)])
@pytest.mark.parametrize("amount", [Fraction(1), Fraction(1, 10**6), Fraction(1, 10**12), Fraction(1, 10**24)])
def test_pairs_are_measured_only_with_noise_that_its_sampler_can_resolve(q, c, amount, pure):
    law = pair_law(Domain((c,) * q, (False,) * q), a_budget(amount, pure))
    assert law.family == "none" or law.drawable
    if amount == 1:
        assert law.family != "none"


def test_where_no_pair_noise_can_be_drawn_columns_come_out_independent():
    X = np.zeros((20, 600), dtype=np.int64)
    with pytest.warns(covey.errors.CoveyWarning):
        synth = covey.PrivateSynthesizer(1e-12, domain=[3] * 600, certificate_share=0, seed=1).fit(X)
    assert len(synth.centres) == 1
    assert np.isfinite(synth.centres.points).all()


@pytest.mark.parametrize("real", [True, False])
def test_only_quantised_directions_are_used_and_released(real, monkeypatch):
    """A change of PVEC's answer far below the grid changes nothing; a whole step does."""
    generator = np.random.default_rng(4)
    body = Ball(3) if real else Cube(3)
    X = generator.standard_normal((40, 3)) if real else generator.integers(0, 2, (40, 3), dtype=np.uint8)
    records = real_records(X, body) if real else boolean_records(X)
    par = paper.paper_parameters(40, body, Fraction(5), t=2, alpha=0.5, b=2.0)
    drawn = gate_module.private_directions(np.eye(3), 2, np.random.default_rng(5))
    on_grid = np.rint(drawn * 2**DIRECTION_BITS) / 2**DIRECTION_BITS

    def released(shift):
        monkeypatch.setattr(gate_module, "private_directions", lambda A, t, g: on_grid + shift)
        return paper.private_centres(records, body, par, paper_gate(par, Streams.from_seed(6)))

    (cloud, plain), (again, near), (_, far) = (released(shift) for shift in (0.0, 2.0**-20, 2.0**-DIRECTION_BITS))
    assert np.array_equal(plain, on_grid)
    assert np.array_equal(plain, near)
    assert np.array_equal(cloud.points, again.points)
    assert np.array_equal(cloud.weights, again.weights)
    assert not np.array_equal(plain, far)
