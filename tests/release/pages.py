"""What a browser would see of a page, and whether it is well made."""

import re
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "col", "br", "rect", "line", "circle", "wbr"}


class Page(HTMLParser):
    """Elements in order, with the text of each; complains of unbalanced tags."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "inside": [e["tag"] for e in self.open]}
        self.elements.append(element)
        if self.open:
            self.open[-1].setdefault("children", []).append(element)
        self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID, tag
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [e for e in self.elements if e["tag"] == tag]

    @property
    def text(self):
        return self.all("body")[0]["text"]


def check_page(markup):
    """Self-contained, inert and accessible, as far as the markup tells."""
    page = Page(markup)
    assert len(markup.encode()) < 1_500_000
    # Nothing runs, nothing is loaded.
    assert not page.all("script") + page.all("link") + page.all("img") + page.all("iframe") + page.all("object")
    assert not page.all("form") + page.all("base") + page.all("image") + page.all("use") + page.all("foreignobject")
    for element in page.elements:
        for name, value in element["attrs"].items():
            assert not name.startswith("on"), name
            assert name not in ("src", "srcset", "xlink:href", "action", "formaction"), name
            assert name != "style" or re.fullmatch(
                r"((max-|min-)?width|flex-grow):[\d.]+(px|%)?(;min-width:\d+px)?|left:[\d.]+%;width:[\d.]+%", value
            )
        assert element["attrs"].get("href", "#").startswith("#")
    css = page.all("style")[0]["text"]
    assert not re.search(r"url\(|@import|https?:|expression\(", css)
    policy = next(e["attrs"]["content"] for e in page.all("meta") if e["attrs"].get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    # Landmarks, headings, names.
    assert page.all("html")[0]["attrs"]["lang"] == "en"
    assert page.all("title")[0]["text"]
    for landmark in ("header", "main", "nav", "footer", "h1"):
        assert len(page.all(landmark)) == 1, landmark
    levels = [int(e["tag"][1]) for e in page.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    ids = [e["attrs"]["id"] for e in page.elements if "id" in e["attrs"]]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        if element["attrs"].get("href"):
            assert element["attrs"]["href"][1:] in ids
        if "aria-labelledby" in element["attrs"]:
            assert element["attrs"]["aria-labelledby"] in ids
    # Every picture has a name, a description and its numbers in a table.
    for drawing in page.all("svg"):
        assert drawing["attrs"]["role"] in ("img", "group")  # a group holds links, which an image hides from readers
        assert [child["tag"] for child in drawing["children"][:2]] == ["title", "desc"]
        assert all(child["text"].strip() for child in drawing["children"][:2])
        assert "figure" in drawing["inside"]
    for figure in page.all("figure"):
        below = [e for e in page.elements if e["tag"] in ("table", "p") and "figure" in e["inside"]]
        assert below
        assert figure["children"][0]["tag"] == "figcaption"
    for table in page.all("table"):
        assert table["children"][0]["tag"] == "caption"
        assert table["children"][0]["text"].strip()
    assert all("scope" in th["attrs"] for th in page.all("th"))
    return page


def table_named(page, caption):
    """The cells of a table, row by row."""
    found = next(t for t in page.all("table") if t["children"][0]["text"] == caption)
    body = next(child for child in found["children"] if child["tag"] == "tbody")
    return [[cell["text"] for cell in row["children"]] for row in body["children"]]
