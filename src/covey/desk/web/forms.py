"""Forms into values: what a steward typed becomes a field, a rule or an order, or a refusal in words.

An order is written out again as a command line and as a Python script, which make the same release without the app.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from covey.desk.web.security import Form, templates
from covey.engine.budget import check_delta, check_epsilon
from covey.engine.fractions import written
from covey.engine.unit import ADD_REMOVE, REPLACE
from covey.errors import ParameterError
from covey.ledger import dataset_name
from covey.markup import shorten
from covey.release.contents import About
from covey.tables.schema import ORDERED_TYPES, TYPES, Field, Rule, Schema
from covey.tables.schema import read_rule as rule_in_file
from covey.workflow import AnonymousOrder, PrivateOrder, said

CONDITIONS = 3  # rows of the form for combinations that cannot occur

Order = PrivateOrder | AnonymousOrder
# What is ordered until something else is chosen. Where the table, its schema and the bundle lie is filled in at the end.
PRIVATE = PrivateOrder(Path(), None, Path(), Fraction(1))
ANONYMOUS = AnonymousOrder(Path(), None, Path(), group_size=20)
# How exports call the files beside them; a package names its tables itself.
OUT, SCHEMA, PACKAGE = Path("release"), Path("schema.json"), Path("package.json")


def shown(value: Any) -> str:
    """A public value as a form shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # 60000.0 is nobody's limit
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def typed(type_: str, text: str) -> Any:
    """A text in the type of its field where that is possible; the field itself refuses the rest."""
    text = text.strip()
    if not text:
        return None
    if type_ == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    with suppress(ValueError):
        return int(text) if type_ == "integer" else float(text) if type_ == "number" else text
    return text


def lines(text: str) -> list[str]:
    """One entry a line, blank ones left out."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_field(form: Form, before: Field, type_: str = "") -> Field:
    """The unconfirmed field of a form, of the type that it names unless one is given; what it does not show stays."""
    type_ = type_ or form.get("type", before.type)
    if type_ not in TYPES:
        raise ParameterError(f"there is no type {type_!r}.")
    if not before.measured and type_ == before.type:
        return replace(before, confirmed=False)
    if type_ != before.type:  # bounds and categories of another type mean nothing
        return Field(before.name, type_, confirmed=False, warning=before.warning, notes=before.notes)
    blank = replace(before, minimum=None, maximum=None, bins=None, decimals=None, enum=None, other=None)
    fresh = replace(blank, required=not form.has("missing"), confirmed=False)
    if type_ == "string":
        enum = lines(form.get("enum"))
        kept = before.enum if before.enum is not None and "\n".join(before.enum).split("\n") == enum else tuple(enum)
        return replace(fresh, enum=kept, other=form.get("other") or None)
    if type_ in ORDERED_TYPES:
        bins: Any = typed("integer", form.get("bins"))
        if isinstance(before.bins, tuple) and bins is None:
            bins = before.bins
        decimals = typed("integer", form.get("decimals")) if type_ == "number" else None
        special = tuple(lines(form.get("special"))) if form.has("special") else before.special
        low, high = typed(type_, form.get("minimum")), typed(type_, form.get("maximum"))
        return replace(fresh, minimum=low, maximum=high, bins=bins, decimals=decimals, special=special)
    return fresh


def read_rule(form: Form, schema: Schema) -> Rule:
    """One rule, read as it would stand in a file."""
    kind, body = form.get("kind"), dict[str, Any]()
    if kind == "at_most":
        body = {"fields": form.all("fields"), "limit": whole(form.get("limit"), "the limit")}
        if form.get("count") == "exactly":
            if (limit := body.pop("limit")) != 1:
                raise ParameterError(f"exactly {limit} is no rule that covey knows: write 1, or choose at most.")
            kind = "one_of"
    elif kind == "less_equal":
        body = {"left": form.get("left"), "right": form.get("right")}
    elif kind == "linear":
        terms = [line.partition("×" if "×" in line else "*") for line in lines(form.get("terms"))]
        factors = _once((name.strip(), float(_number(factor, "a coefficient"))) for factor, _, name in terms)
        bound = float(_number(form.get("maximum"), "the bound"))
        body = {"coefficients": factors, "maximum": bound}
        if form.get("bound") == "exactly":
            kind, body = "body", {"fields": list(factors), "linear": [{**body, "minimum": bound}]}
    elif kind == "forbid":
        body = _conditions(form, schema, range(CONDITIONS))
    elif kind == "requires":
        body = {part: _conditions(form, schema, (f"_{part}",)) for part in ("if", "then")}
    else:
        raise ParameterError("choose a rule.")
    return rule_in_file({kind: body}, {field.name: field for field in schema.fields})


def _conditions(form: Form, schema: Schema, places: Iterable[object]) -> dict[str, Any]:
    named = [(name, form.get(f"values{i}")) for i in places if (name := form.get(f"field{i}"))]
    return _once((name, _condition(schema[name], text)) for name, text in named)


def _once(parts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What a rule says of columns, each of which it names once."""
    listed = list(parts)
    if len(dict(listed)) < len(listed):
        raise ParameterError("a rule names each column once: put all its values, or both ends of a range, in one line.")
    return dict(listed)


def _condition(field: Field, text: str) -> Any:
    """Values separated by semicolons, or a range of an ordered field: 3 to 7, up to 15, from 65."""
    if not text:
        raise ParameterError(f"say which values of {field.name!r} the combination is about.")
    ends = re.fullmatch(r"up to (?P<maximum>.+)|from (?P<minimum>.+)", text)
    ends = ends or re.fullmatch(r"(?P<minimum>.+) to (?P<maximum>.+)", text)
    if ends and field.type in ORDERED_TYPES:
        return {end: typed(field.type, value) for end, value in ends.groupdict().items() if value}
    words = {"missing": None, **{word: word for word in field.special}}
    parts = [part.strip() for part in text.split(";")]
    return [words[part] if part in words else typed(field.type, part) for part in parts]


def read_order(form: Form, before: Order) -> Order:
    """What was chosen at the privacy step."""
    mode = form.get("mode", "anonymous" if isinstance(before, AnonymousOrder) else "private")
    if mode not in ("private", "anonymous"):
        raise ParameterError("choose differential privacy or anonymous groups.")
    wanted, parquet = form.get("rows"), form.get("format") == "parquet"
    rows = whole(wanted, "the number of synthetic rows") if wanted else None
    if mode == "anonymous":
        size = whole(form.get("group_size", "20"), "the group size")
        if size < 2:
            raise ParameterError("the group size must be at least 2: a group of one is a record.")
        return replace(ANONYMOUS, group_size=size, sensitive=tuple(form.all("sensitive")), rows=rows, parquet=parquet)
    said: Any = (shorten(form.get(name), 300) for name in ("title", "owner", "purpose"))
    pure = form.get("guarantee", "pure") == "pure"
    return replace(
        PRIVATE,
        epsilon=check_epsilon(_number(form.get("epsilon"), "epsilon")),
        delta=Fraction(0) if pure else check_delta(_number(form.get("delta"), "delta")),
        dataset=dataset_name(form.get("dataset")) if form.get("dataset") else None,
        rows=rows,
        person=form.get("person") or None,
        rows_per_person=whole(form.get("rows_per_person", "1"), "the number of rows per person"),
        neighbours=ADD_REMOVE if form.get("neighbours") == ADD_REMOVE else REPLACE,
        confirm_large_epsilon=form.has("confirm_large_epsilon"),
        important=tuple((name,) for name in form.all("important")),
        target=form.get("target") or None,
        parquet=parquet,
        about=About(*said),
    )


def read_budget(form: Form) -> tuple[str, Fraction, Fraction, Any]:
    """The name and the caps of a dataset, and how it is counted."""
    name = form.get("name")
    if not name:
        raise ParameterError("give the dataset a name.")
    name = dataset_name(name)
    caps = _number(form.get("budget"), "the budget"), _number(form.get("delta_budget", "1e-6"), "the δ budget")
    return name, *caps, form.get("composition") or None


def _number(text: str, name: str) -> Fraction:
    return written(text, name, " Use a point for decimals.")


def whole(text: str, name: str) -> int:
    """A whole number that somebody typed."""
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"{name} must be a whole number, got {text!r}.") from None


def number(value: Fraction) -> str:
    """A number as a person writes it; floats print the shortest text that reads back as the same."""
    return repr(float(value)).removesuffix(".0").replace("e-0", "e-")


def left(value: Fraction) -> str:
    """A budget that is left, rounded down to four places: never more than there is."""
    places = 10**4
    return number(Fraction(floor(value * places), places) if value * places >= 1 else value)


def command_line(order: Order) -> str:
    """The command that does what an order says, in a folder with the table and its schema."""
    table = str(order.table)
    table = f"./{table}" if table.startswith("-") else table  # no option
    words = ["covey", "release" if isinstance(order, PrivateOrder) else "anonymize", table]
    for name, value in said(order).items():
        if name not in ("table", "out"):
            words += _options("--" + name.replace("_", "-"), value)
    return shlex.join([*words, "--out", str(order.out)])


def _options(option: str, value: Any) -> list[str]:
    if value is None or value is True:
        return [option] if value else []
    if isinstance(value, About):
        told = value.to_dict()
        return [word for name, text in told.items() for word in (f"--{name}", text)]
    if isinstance(value, tuple):  # columns, and groups of them
        return [word for one in value for word in (option, one if isinstance(one, str) else ",".join(one))]
    return [option, number(value) if isinstance(value, Fraction) else str(value)]


def script(order: Order) -> str:
    """The same as a script: checked, charged and written in the same order."""
    told = {name: _literal(value) for name, value in said(order).items()}
    verb = "release" if isinstance(order, PrivateOrder) else "anonymize"
    return templates.get_template("release.py.txt").render(order=order, told=told, verb=verb) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, About):
        return f"About({value.title!r}, {value.owner!r}, {value.purpose!r})"
    if isinstance(value, Path):
        return f"Path({str(value)!r})"
    return number(value) if isinstance(value, Fraction) else repr(value)
