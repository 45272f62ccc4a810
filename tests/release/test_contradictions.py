"""Relations of true rows that synthetic rows break: each family is found, its share is right, and strangers have none."""

import numpy as np
import pytest

from covey.release.contradictions import contradictions
from covey.release.evaluation import contradiction_section
from covey.release.page import lines
from covey.table.codec import Codec
from covey.table.schema import Field, Schema

N = 3000
SCHEMA = Schema(
    (
        Field("score", "integer", 1, 10),
        Field("copy", "integer", 1, 10),
        Field("text", "string", enum=("low", "high")),
        Field("came", "integer", 0, 400),
        Field("left", "integer", 0, 500),
        Field("stay", "integer", 0, 100),
        Field("paid", "integer", 0, 100),
        Field("method", "string", enum=("card", "cash", "none")),
    )
)


def true_rows(seed=0):
    """Cells by column: a copy, a function, an order, a sum, two that are missing together, and an implication."""
    g = np.random.default_rng(seed)
    score, came, stay = g.integers(1, 11, N), g.integers(0, 300, N), g.integers(0, 100, N)
    text = np.where(score <= 5, "low", "high")
    unpaid = g.random(N) < 0.4
    paid = np.where(unpaid, "", g.integers(1, 100, N).astype(str))
    method = np.where(unpaid, "none", g.choice(["card", "cash"], N))
    columns = (score, score, text, came, came + stay, stay, paid, method)
    return {field.name: column.astype(str) for field, column in zip(SCHEMA.fields, columns, strict=True)}


def compared(true, drawn):
    codec = Codec(SCHEMA)
    return contradictions(codec, tuple(codec.encode(rows, "cells")[0] for rows in (true, drawn)))


def found_in(figures):
    return {one["relation"]: one for one in figures["worst"]}


def test_rows_of_the_same_kind_contradict_nothing():
    figures = compared(true_rows(0), true_rows(1))
    assert figures["score"] == 0
    assert set(found_in(figures)) >= {
        "score = copy",
        "score determines text",
        "came ≤ left",
        "left = came + stay",
        "paid is missing → method is none",
    }
    assert lines("contradictions.txt", found=figures)[1:] == []


def test_broken_relations_are_counted_among_the_rows_that_they_speak_of():
    """A third of the copies, a fifth of the texts, half of the payments: the shares are those, the worst first."""
    drawn = true_rows(1)
    at = np.arange(N)
    drawn["copy"] = np.where(at % 3 == 0, (drawn["score"].astype(int) % 10 + 1).astype(str), drawn["copy"])
    drawn["text"] = np.where(at % 5 == 0, np.where(drawn["text"] == "low", "high", "low"), drawn["text"])
    drawn["method"] = np.where(at % 2 == 0, "card", drawn["method"])
    figures = compared(true_rows(0), drawn)
    found = found_in(figures)
    assert found["score = copy"]["synthetic"] == pytest.approx(1 / 3, abs=0.001)
    assert found["score determines text"]["synthetic"] == pytest.approx(1 / 5, abs=0.001)
    assert found["paid is missing → method is none"]["synthetic"] == pytest.approx(1 / 2, abs=0.05)
    assert all(one["true"] == 0 for one in found.values())
    assert next(iter(found)) == "paid is missing → method is none"
    assert figures["score"] == pytest.approx(np.mean([found[name]["synthetic"] for name in found]), abs=1e-9)
    example = found["score = copy"]["example"]
    assert set(example) == {"score", "copy"}
    assert example["score"] != example["copy"]
    [(_, title, html)] = contradiction_section(figures)
    assert title == "Contradictions"
    assert "score = copy" in html
    words = lines("contradictions.txt", found=figures)
    broken = f"{100 * figures['worst'][0]['synthetic']:.1f}% of the synthetic rows, 0.0% of the real ones"
    assert words[1] == f"  paid is missing → method is none: broken by {broken}"


def test_columns_that_know_nothing_of_each_other_have_no_relations():
    g = np.random.default_rng(3)
    strangers = {name: g.permutation(column) for name, column in true_rows().items()}
    figures = compared(strangers, true_rows(1))
    assert (figures["relations"], figures["score"]) == (0, 0.0)
    assert lines("contradictions.txt", found=figures) == []
    assert contradiction_section(figures) == []


def test_relations_that_two_in_a_hundred_rows_break_are_none():
    rows = true_rows()
    rows["copy"] = np.where(np.arange(N) % 50 == 0, (rows["score"].astype(int) % 10 + 1).astype(str), rows["copy"])
    assert "score = copy" not in found_in(compared(rows, rows))


def test_a_number_determines_a_category_by_intervals():
    """Values that no true row has lie between those that some have."""
    true, drawn = true_rows(0), true_rows(1)
    for rows in (true, drawn):
        rows["text"] = np.where(rows["came"].astype(int) < 150, "low", "high")
    true["came"] = (true["came"].astype(int) // 2 * 2).astype(str)
    figures = found_in(compared(true, drawn))
    assert figures["came determines text"]["synthetic"] == 0
    drawn["text"] = drawn["text"][::-1]
    assert found_in(compared(true, drawn))["came determines text"]["synthetic"] == pytest.approx(0.5, abs=0.05)
