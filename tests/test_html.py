"""Markup that names cannot break, and what notebooks show."""

import re
from fractions import Fraction
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from covey.engine.budget import Charge
from covey.engine.certificate import Certificate, OutOfPlace
from covey.markup import Html, breakable, card, meter, shorten, tag, text


class Reader(HTMLParser):
    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.tags, self.data, self.attributes = [], "", {}
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data):
        self.data += data


@given(st.text())
def test_any_text_comes_back_as_text_and_never_as_markup(words):
    seen = Reader(tag("p", words, title=words))
    expected = Reader(text(words)).data
    assert seen.tags == ["p"]
    assert seen.data == expected
    assert set(seen.attributes) == {"title"}
    assert Reader(breakable(words)).tags == ["wbr"] * words.count("_")
    printable = "".join(c for c in words if c.isprintable() or c == "\n")
    if printable == words:
        assert seen.data.replace("\r", "\n") == words
        assert seen.attributes["title"] == words


def test_only_html_passes_unescaped():
    assert text("<b>") == "&lt;b&gt;"
    assert text(Html("<b>")) == "<b>"
    assert text(["<", Html("<br/>"), None, 3]) == "&lt;<br/>3"
    assert tag("td", class_="n", aria_label="a", hidden=None) == '<td class="n" aria-label="a"></td>'
    assert text("\x00\ud800") == "\ufffd\ufffd"
    assert shorten("a\n b " + "c" * 80, 10) == "a b ccccc…"
    assert "width:100.0%" in meter(7)


HOSTILE = "<script>alert('x')</script>"


def test_a_certificate_shows_itself_in_notebooks():
    own = Certificate(
        {2: 0.1, 3: 0.2}, {2: 0.05, 3: 0.1}, Charge("c", Fraction(1)), True, misplaced=OutOfPlace(0.3, 0.2)
    )
    markup = own._repr_html_()
    seen = Reader(markup)
    assert set(seen.tags) <= {"div", "strong", "span", "table", "tbody", "tr", "th", "td"}
    assert set(seen.attributes) <= {"style", "scope", "aria-hidden"}
    assert len(markup) < 8000
    # Colours come from the page around the card, so that it can be read on dark and on light.
    assert "currentColor" in markup
    assert not re.search(r"#[0-9a-fA-F]{3}[;\"]|#[0-9a-fA-F]{6}", markup)
    assert own.sentence in seen.data
    assert all(f"{d}-way" in seen.data for d in own.bound)
    assert "<script" not in card(HOSTILE, HOSTILE, [(HOSTILE, HOSTILE)])
