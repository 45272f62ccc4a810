"""Names that columns of real files have, by what they may be taken for: words of libraries and languages, and each other."""

from __future__ import annotations

import keyword
import unicodedata

NAMES: dict[str, tuple[str, ...]] = {
    "polars": (
        *("count", "counts", "len", "index", "value", "values", "literal", "proportion", "column_0", "column_1"),
        *("*", "^.*$", "^a$", "row_nr", "name", "field_0", "a_right"),
    ),
    "pandas": ("size", "shape", "dtype", "columns", "level_0", "Unnamed: 0", "T", "loc", "0", "1.5"),
    "covey": (
        *(
            "row",
            "rows",
            "group",
            "person",
            "persons",
            "weight",
            "position",
            "gap",
            "seed",
            "other",
            "missing",
            "n",
            "c0",
        ),
        *("people.age", "events.day", "synthetic", "events", "share", "mean", "rate", "wait", "top", "per", "month"),
        *("constant", "derived", "total", "x", "true", "yes", "none"),
    ),
    "Python": (
        "None",
        "class",
        "lambda",
        "import",
        "def",
        "self",
        "__class__",
        "print",
        "min",
        "round",
        "year",
        "days",
    ),
    "SQL": ("select", "from", "table", "null", "user", "order", "NULL", '"; drop table t; --', "rowid", "date", "time"),
    "JavaScript": ("constructor", "__proto__", "toString", "</script>", "<b>bold</b>", "${x}", "{{x}}", "{x}", "%s"),
    "signs": (
        *(
            "a.b",
            "a/b",
            "a\\b",
            "a'b",
            'a"b',
            "a\nb",
            "a\tb",
            "`a`",
            "a|b",
            "a;b",
            "a~b",
            "#a",
            "?",
            ".",
            "..",
            "&amp;",
        ),
        *("'", "@a", "+1", "$", "a  b", "~"),
    ),
    "scripts": (
        *(
            "שלום",
            "العمر",
            "\u202eage",
            "年齢",
            "возраст",
            "αβγ",
            "😀",
            "e\u0301",
            "é",
            "\u200b",
            "ﬁ",
            "fi",
            "Ｎ",
            "ß",
            "ſ",
        ),
        *("\u212a", "k", "K", "İ", "ı"),
    ),
    "long": ("x" * 300, "a b " * 500 + "c", "ä" * 256),
    "alike": ("Age", "age", "AGE", "a b", "a_b", "a-b", "Ab", "aB", "straße", "strasse", "STRASSE"),
}
ALL = tuple(name for names in NAMES.values() for name in names)
EMPTY = ""  # no field may be called so, and files have such columns


def folded(name: str) -> str:
    """What names have in common that are equal but for case or Unicode form."""
    return unicodedata.normalize("NFKC", name).casefold()


def alike(name: str) -> list[str]:
    """Other names that are equal but for case or Unicode form."""
    return [other for other in dict.fromkeys(ALL) if other != name and folded(other) == folded(name)]


def written(name: str) -> str:
    """A name as formulas write it."""
    plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return name if plain else repr(name)
