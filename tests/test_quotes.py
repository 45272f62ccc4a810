"""Numbers in prose are those of the CSV files they come from, and a number without a source is noticed."""

import re

import pytest

from benchmarks import claims
from benchmarks.quotes import GIVEN, NUMBER, ROOT, WATCHED, Quote, quotes, rows


@pytest.mark.parametrize("quote", quotes(), ids=lambda quote: quote.words[:40])
def test_what_prose_quotes_was_measured(quote):
    assert quote.pattern().search((ROOT / quote.file).read_text()), f"{quote.file} does not say “{quote.words}”"
    assert not quote.wrong()


@pytest.mark.parametrize("name", WATCHED)
def test_no_number_with_a_point_stands_in_prose_without_its_source(name):
    prose = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", (ROOT / name).read_text(), flags=re.DOTALL)
    for quote in quotes():
        if quote.file == name:
            plain = re.sub(r"`[^`\n]*`|\]\([^)]*\)", " ", quote.words)
            prose = Quote(name, plain, ()).pattern().sub(" ", prose)
    known = GIVEN.get(name, set()) | set(NUMBER.findall(claims.page()))
    assert {n for n in NUMBER.findall(prose) if "." in n} - known == set()


def test_the_page_of_claims_is_that_of_the_csv_files():
    assert (ROOT / "docs/benchmarks/claims.md").read_text() == claims.page(), "run: python -m benchmarks.claims"


def test_a_worse_measurement_becomes_the_counter_example(monkeypatch):
    bad = {"table": "new", "n": "9", "p": "9", "setting": claims.AT, "delta2": "0.9"}
    assert "| nips, " in claims.pairs()
    monkeypatch.setattr(claims, "rows", lambda name: [*rows(name), bad])
    assert "| new, 9 × 9: 90.0 points |" in claims.pairs()


def test_a_wrong_digit_is_found():
    assert not Quote("x", "off by .0018, 23 times, about half", (0.00178, 23.1, 0.46)).wrong()
    assert Quote("x", "off by .0018", (0.00186,)).wrong()
    assert Quote("x", "23 times", (1.6,)).wrong()
    assert Quote("x", "about half", (0.75,)).wrong()
    assert Quote("x", "1.59 times", (10.59,)).wrong()
    assert Quote("x", "23 times", ()).wrong()
