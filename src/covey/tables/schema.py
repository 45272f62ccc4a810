"""The public description of a table: a Frictionless Table Schema, with covey's own words under a "covey" key.

    {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "covey": {"bins": 24}}, …],
     "missingValues": [""],
     "covey": {"rules": [{"forbid": {"age": {"maximum": 15}, "married": true}}, …]}}

Per field, "covey" may hold bins (a count, or edges), other (the label of unknown categories, or true), default,
decimals, constant, ordered, learn, after (the field that a number never lies below) and confirmed; for the table, draft and
rules. The schema is the public domain: whatever follows from it may be released, so a schema drafted from data says so until
each field is confirmed.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import field as entry
from dataclasses import fields as parts_of
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import isfinite
from pathlib import Path
from typing import Any

from covey.errors import ParameterError, counted, nearest, whole_number
from covey.tables import document
from covey.tables.column_drafts import Note
from covey.tables.dialects import Dialect, Spelling
from covey.tables.drafting import draft
from covey.tables.fields import GUARDED, ORDERED_TYPES, TYPES, Constant, Field, Value
from covey.tables.links import Link, find_links
from covey.tables.number_rules import BodyRule, LessEqual, Linear
from covey.tables.repair import RuleBook, problems
from covey.tables.rules import AtMost, Condition, Domain, Forbid, Rule, Sum

LEARN, NONE = "learn", "none"
OF_SOURCE = ("dialect", "encoding", "fields")  # what a bundle says of how the table was written that it was made from

# The parts of a schema are found beside it.
__all__ = ["ORDERED_TYPES", "TYPES", "Constant", "Field", "Relation", "Schema", "Value"]
__all__ += ["AtMost", "BodyRule", "Condition", "Forbid", "LessEqual", "Linear", "Rule", "Sum"]

TRIPLES = 5  # looked for with a target, where nothing else is said: a handful, each of which makes the others noisier
FEWEST_TOGETHER = 3  # columns that exclude each other and become one category unasked: of two, noise hardly changes
TOGETHER = 3  # in a table of yes/no columns alone, which has a method of its own, one of so many must (decision 0026)
LISTED = 20  # columns that a schema shows of itself: what fits a screen
NAMED = 5  # unconfirmed fields that a message lists: it lists them twice
MOST_LOOKS = 10_000  # relations that a search counts: some hundreds at most
DRAFT_MARK = "draft: describes private data"


@dataclass(frozen=True)
class Relation:
    """A relation in words, how the schema uses it, and the noisy share of rows that break it, with its deviation.

    It was kept because few rows seemed to break it, of so many that were looked at: with 95% confidence for all of them at once
    the true share is off by the margin at most.
    """

    words: str
    use: str  # "rule", "derived" or "expected"
    columns: tuple[str, ...]
    broken: float
    sd: float
    margin: float
    looks: int

    def __post_init__(self) -> None:
        for word in ("broken", "sd", "margin"):
            object.__setattr__(self, word, round(getattr(self, word), 6))  # as files write it

    def __str__(self) -> str:
        low, high = max(self.broken - self.margin, 0), min(max(self.broken, 0) + self.margin, 1)
        return f"{self.words}: {low:.1%} to {high:.1%} of rows differ"


OF_RELATION = tuple(part.name for part in parts_of(Relation))


def read_relations(given: Any) -> str | tuple[Relation, ...]:
    """What stands under "relations": a wish, or what was found."""
    if given in (LEARN, NONE, None):
        return str(given or "")
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(x, Mapping) for x in given):
        raise ParameterError(f'relations of a schema must be "learn" or "none", got {given!r}.')
    for one in given:
        document.refuse_unknown(one, OF_RELATION, "a relation")
    try:
        return tuple(_relation(one) for one in given)
    except (KeyError, TypeError, ValueError):
        listed = ", ".join(OF_RELATION)
        raise ParameterError(f"a relation needs {listed}, as a release wrote them.") from None


def _relation(one: Mapping[str, Any]) -> Relation:
    broken, sd, margin = (float(one[word]) for word in ("broken", "sd", "margin"))
    if (
        not all(map(isfinite, (broken, sd, margin)))
        or not 1 <= one["looks"] <= MOST_LOOKS
        or type(one["looks"]) is not int
    ):
        raise ValueError("numbers that no release wrote")
    return Relation(str(one["words"]), str(one["use"]), tuple(one["columns"]), broken, sd, margin, one["looks"])


@dataclass(frozen=True)
class Schema(Domain):
    """The public description of a table: its columns (`fields`), how missing cells are written, and rules for its rows."""

    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)
    important: tuple[tuple[str, ...], ...] = ()  # columns, and pairs of columns, that get more of a budget
    target: str | None = None  # the column that others are to predict: pairs and triples with it get more
    triples: int | None = None  # so many triples of columns are measured at most; TRIPLES with a target, else none
    relations: str | tuple[Relation, ...] = ""  # "learn" or "none", where it is said; or those that a release found

    def __post_init__(self) -> None:
        if not self.fields:
            raise ParameterError("the schema has no fields. List the table's columns under fields.")
        seen: set[str] = set()
        for field in self.fields:
            if field.name in seen:
                raise field.wrong("is declared twice", "Give each column one entry and a name of its own.")
            if field.name.startswith(GUARDED) and f"'{field.name}" in self.names:
                raise field.wrong("has a namesake with an apostrophe", "CSV could not tell them apart: rename one.")
            seen.add(field.name)
            hidden = set(field.labels) & set(self.missing_values)
            if hidden:
                raise field.wrong(f"lists {min(hidden)!r}, which missingValues declares missing", "Remove it from one.")
        for rule in self.rules:
            self._check_rule(rule)
        self._check_together()
        self._check_expected()
        for name in [name for group in as_groups(self.important) for name in group] + [self.target]:
            if name is not None and not self[name].measured:
                raise self[name].wrong("matters most, but is not measured", "Name a column that it is derived from.")
        if self.triples is not None:
            whole_number(self.triples, "triples", 0, "It counts triples of columns.")
        _ = self.derived  # circles are refused
        for field in self.fields:
            if isinstance(field.levels, str) and getattr(self[field.levels].derived, "bases", None) != (field.name,):
                what = f"has levels by {field.levels!r}, which is not derived from it alone"
                raise field.wrong(what, "Name such a field, or a number of letters.")
        if all(field.confirmed or field.follows is None for field in self.fields):
            _ = self.links  # circles and bounds that cannot hold are refused

    def __repr__(self) -> str:
        """Columns and their types, one line each."""
        lines = [f"  {field.name}: {field.type}" for field in self.fields[:LISTED]]
        more = [f"  … and {counted(len(self.fields) - LISTED, 'more column')}"] if len(self.fields) > LISTED else []
        return "\n".join([f"Schema of {counted(len(self.fields), 'column')}", *lines, *more])

    def _check_rule(self, rule: Rule) -> None:
        fields = [self[name] for name in rule.fields]
        if len(set(rule.fields)) < len(fields) or not fields:
            raise ParameterError(f"rule {rule} must name at least one field, and each once.")
        for field in fields:
            if field.learn and field.type != "boolean":  # a rule could turn out impossible once the budget is spent
                raise field.wrong("is to be learned and stands in a rule", "Declare it, or drop the rule.")
            if not field.measured:
                what = "constant" if field.derived is None else "derived from others"
                raise field.wrong(f"is {what} and stands in rule {rule}", "Leave it out of the rule.")
        wanted = rule.check({field.name: field for field in fields})
        for field in fields:
            if field.type not in wanted:
                raise field.wrong(f"has type {field.type} in rule {rule}", f"It needs type {' or '.join(wanted)}.")

    @cached_property
    def _expecting(self) -> set[str]:
        """Columns that are expected to follow from others, and those that they follow from."""
        return {name for f in self.fields if f.expected is not None for name in (f.name, *f.expected.bases)}

    def _check_expected(self) -> None:
        """Refuse a column that is expected to follow from what no record says."""
        for field in self.fields:
            for base in () if field.expected is None else field.expected.bases:
                if not self[base].measured:
                    what = f"is expected to follow from {base!r}, which is not measured"
                    raise field.wrong(what, "Name measured columns.")

    def _check_together(self) -> None:
        """Refuse columns of one category of which more is said than one category can keep."""
        counts = Counter(name for rule in self.rules if isinstance(rule, AtMost) for name in rule.flags)
        for name in self.home:
            if counts[name] > 1 or name in self._expecting:
                what = "another rule one_of or at_most" if counts[name] > 1 else '"expected"'
                raise self[name].wrong(f"stands in a one_of rule and in {what}", "Leave it out of one.")

    def grouped(self) -> Schema:
        """The schema in which yes/no columns that its rules let exclude each other are one category, which needs less noise.

        So say at_most with limit 1, and forbid of every two among several; of columns that are never missing.
        """
        counts = Counter(name for rule in self.rules if isinstance(rule, AtMost) for name in rule.flags)
        free = [f.name for f in self.fields if f.type == "boolean" and f.required and f.measured]
        free = [name for name in free if name not in self._expecting and counts[name] <= 1]
        pairs = {frozenset(rule.fields): rule for rule in self.rules if isinstance(rule, Forbid) and _excluding(rule)}
        sets = [list(rule.flags) for rule in self.rules if isinstance(rule, AtMost) and _excluding(rule)]
        sets = [names for names in sets if set(names) <= set(free)]
        for name in (name for name in free if not counts[name]):
            near = [own for own in sets if all(frozenset((name, other)) in pairs for other in own)]
            near[0].append(name) if near else sets.append([name])
        sets = [names for names in sets if len(names) >= FEWEST_TOGETHER]
        flags = all(f.type == "boolean" and f.required for f in self.encoded)
        if not sets or (flags and not self.together and TOGETHER * sum(map(len, sets)) < len(self.encoded)):
            return self
        homes = [set(names) for names in sets]
        kept = tuple(r for r in self.rules if not (_excluding(r) and any(own.issuperset(r.fields) for own in homes)))
        return replace(self, rules=(*kept, *(AtMost.one_of(names, none=True) for names in sets)))

    def only(self, names: Sequence[str]) -> Schema:
        """The schema with these fields alone, in its own order; with no names all of them."""
        chosen = {self[name].name for name in names}
        return replace(self, fields=tuple(field for field in self.fields if field.name in chosen or not chosen))

    def without(self, person: str) -> Schema:
        """The schema without the column that identifies the person, which is never synthesized."""
        if not isinstance(person, str) or not person.strip():
            raise ParameterError(f"person must name the column that identifies the person, got {person!r}.")
        if person not in self.names:
            return self
        if any(person in rule.fields for rule in self.rules):
            raise ParameterError(f"a rule uses {person!r}, which identifies the person. Remove the rule.")
        if len(self.fields) == 1:
            raise ParameterError(f"the schema has no column besides {person!r}, which identifies the person.")
        return self.only([name for name in self.names if name != person])

    def beside(self, person: str | None) -> Schema:
        """What readers need to know to bring these columns and the one of persons, of which nothing is declared."""
        return self if person is None else replace(self, fields=(*self.fields, Field(person, "string", learn=True)))

    def focus(self, *groups: str | Sequence[str], target: str | None = None, triples: int | None = None) -> Schema:
        """The schema with these columns, and pairs of columns, as the important ones: they get more of a release's budget.

        With a target, what predicts that column gets more: pairs with it, and the strongest triples with it, which are chosen
        privately. `triples` says how many triples are chosen at most. What is not given stays as it is.
        """
        important = as_groups(groups) or self.important
        count = self.triples if triples is None else triples
        return replace(self, important=important, target=self.target if target is None else target, triples=count)

    @property
    def triples_wanted(self) -> int:
        """How many triples are looked for."""
        return self.triples if self.triples is not None else 0 if self.target is None else TRIPLES

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise ParameterError(f"the schema has no field {name!r}. {nearest(name, self.names, 'fields')}")

    @property
    def learns(self) -> tuple[Field, ...]:
        """The fields whose limits or categories are to be learned with noise."""
        return tuple(field for field in self.fields if field.learn)

    @property
    def finds_relations(self) -> bool:
        """Whether a private release looks for relations between columns: where it is said, and where domains are learned."""
        return self.relations == LEARN or (not self.relations and bool(self.learns))

    @property
    def found(self) -> tuple[Relation, ...]:
        """The relations that a release found."""
        return () if isinstance(self.relations, str) else self.relations

    @cached_property
    def links(self) -> dict[str, Link]:
        """Which numbers are coded by their distance from which others."""
        return find_links({field.name: field for field in self.fields}, self.rules)

    @cached_property
    def derived(self) -> tuple[Field, ...]:
        """The fields that are computed from others, each after those that it needs."""
        bases = {field.name: field.derived.bases for field in self.fields if field.derived is not None}
        for own, names in bases.items():
            for name in names:
                if self[name].learn:
                    raise self[own].wrong(f"is derived from {name!r}, which is to be learned", "Declare that field.")
        try:
            return tuple(self[name] for name in TopologicalSorter(bases).static_order() if name in bases)
        except CycleError as error:
            name = error.args[1][0]
            raise self[name].wrong("is derived from itself, through other fields", "Break the circle.") from None

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file: YAML if its name ends in .yaml or .yml, else JSON."""
        return cls.from_dict(document.read_document(path), Path(path).parent)

    def save(self, path: str | Path) -> None:
        """Write the schema as JSON."""
        document.write_document(path, self.to_dict(Path(path).parent))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """Read a schema from the contents of its file; `folder` has the lists that fields name, without it none is read."""
        if not isinstance(data, Mapping) or not isinstance(data.get("fields"), Sequence):
            raise ParameterError('a schema is an object with a list "fields".')
        for word in document.spelt_like(data, ("primaryKey", "uniqueKeys", "foreignKeys")):
            if data[word]:
                raise ParameterError(f"the schema has {word}, which synthetic rows cannot guarantee. Leave it out.")
        document.refuse_misplaced(data, document.OF_SCHEMA, "the schema")
        own = document.section(data, "covey", None)
        document.only(own, document.OWN_OF_SCHEMA, "covey of the schema")
        draft = bool(own.get("draft", False))
        missing = data.get("missingValues", [""])
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise ParameterError(f"missingValues must be a list of texts, got {missing!r}. Put numbers in quotes.")
        fields = tuple(Field.from_dict(f, confirmed=not draft, folder=folder) for f in data["fields"])
        rules = own.get("rules", [])
        if not isinstance(rules, list):
            raise ParameterError(f"rules must be a list, got {rules!r}.")
        by_name = {field.name: field for field in fields}
        important = own.get("important", [])
        if not isinstance(important, list):
            raise ParameterError(f"important must be a list of columns and pairs of columns, got {important!r}.")
        notes = {k: v for k, v in data.items() if k not in ("fields", "missingValues", "covey", "dialect", "encoding")}
        checked = tuple(read_rule(rule, by_name) for rule in rules)
        return cls(
            *(fields, tuple(missing), checked, Dialect.from_dict(data), notes, as_groups(important)),
            target=own.get("target"),
            triples=own.get("triples"),
            relations=read_relations(own["relations"]) if "relations" in own else "",
        )

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The contents of the schema's file; in the folder of a list that was read from a file, with the name of that."""
        own: dict[str, Any] = {"draft": DRAFT_MARK} if self.drafted else {}
        if self.rules:
            own["rules"] = [rule.to_dict() for rule in self.rules]
        own |= focus_to_dict(self.important, self.target)
        own |= {} if self.triples is None else {"triples": self.triples}
        if self.relations:
            listed = isinstance(self.relations, str)
            own["relations"] = (
                self.relations if listed else [{**asdict(one), "columns": list(one.columns)} for one in self.found]
            )
        out: dict[str, Any] = {**self.notes, "fields": [field.to_dict(self.drafted, folder) for field in self.fields]}
        out["missingValues"] = list(self.missing_values)
        out |= self.dialect.to_dict()
        return {**out, "covey": own} if own else out

    def read_as(self, dialect: Dialect) -> Schema:
        """The schema for a table that is written so: what the dialect says overrules what the schema says."""
        fields = tuple(spelled_as(field, dialect) for field in self.fields)
        missing = self.missing_values if dialect.missing is None else dialect.missing
        return replace(self, fields=fields, missing_values=missing, dialect=dialect.of_file.over(self.dialect))

    def written_as(self, known: Schema) -> Schema:
        """The schema for a table that is written as another schema says, as far as that says anything unusual."""
        spellings = {field.name: field.spelling for field in known.fields if not field.spelling.is_plain}
        fields = tuple(replace(field, spelling=spellings.get(field.name, field.spelling)) for field in self.fields)
        return replace(
            self, fields=fields, missing_values=known.missing_values, dialect=known.dialect.over(self.dialect)
        )

    @property
    def source(self) -> dict[str, Any]:
        """How its table is written, as far as that is unusual and may be in a bundle: the layout, and the spelling of fields."""
        spelled = {field.name: words for field in self.fields if (words := field.spelling.to_field())}
        return self.dialect.shared.to_dict() | ({"fields": spelled} if spelled else {})

    def of_source(self, source: Mapping[str, Any]) -> Schema:
        """The schema for a table that is written so."""
        document.refuse_unknown(source, OF_SOURCE, "source")
        spelled = document.section(source, "fields", None)
        for name in spelled:
            _ = self[name]  # refuses a name that is no field's
        fields = [
            replace(field, spelling=Spelling.from_field({**spelled[field.name], "type": field.type}, field.name))
            if field.name in spelled
            else field
            for field in self.fields
        ]
        return replace(self, fields=tuple(fields), dialect=Dialect.from_dict(source))

    def plain(self) -> Schema:
        """The schema of the tables that covey writes: commas, decimal points, ISO dates, UTF-8."""
        fields = tuple(replace(field, spelling=Spelling()) for field in self.fields)
        return replace(self, fields=fields, dialect=Dialect())

    def confirm(self, names: Iterable[str] | None = None) -> Schema:
        """A schema with these fields confirmed as public. Without names: all fields that carry no warning.

        A field with a warning must be named. The mark of a draft goes when the last field is confirmed.
        """
        if isinstance(names, str):
            names = [names]
        unwarned = {field.name for field in self.fields if field.warning is None}
        chosen = unwarned if names is None else {self[name].name for name in names}
        return replace(self, fields=tuple(replace(f, confirmed=f.confirmed or f.name in chosen) for f in self.fields))

    @property
    def drafted(self) -> bool:
        """Whether a field is not confirmed."""
        return not all(field.confirmed for field in self.fields)

    @property
    def warnings(self) -> dict[str, str]:
        """What to look at, by field, before it is confirmed."""
        return {field.name: field.warning for field in self.fields if field.warning is not None and not field.confirmed}

    def to_learn(self, names: Iterable[str] | None = None, dialect: Dialect | None = None) -> Schema:
        """A schema in which limits and categories of these fields will be learned with noise. Without names: all unconfirmed.

        Names, types, decimals and spellings stay, and are public: cells are read as the fields say, unless the dialect says
        otherwise. Limits and categories that a draft took from cells are not used, and columns that were drafted as empty are
        left out.
        """
        chosen = {f.name for f in self.fields if not f.confirmed} if names is None else {self[n].name for n in names}
        said = dialect or Dialect()
        fields = tuple(
            spelled_as(field.to_learn(), said) if field.name in chosen else field
            for field in self.fields
            if field.name not in chosen or names is not None or field.constant != Constant(None)
        )
        return replace(self, fields=fields)

    def require_confirmed(self) -> None:
        """Refuse a private release while the schema may describe private data."""
        require_confirmed({field.name: field for field in self.fields}, "schema")

    @classmethod
    def draft(cls, table: Any, dialect: Dialect | None = None) -> Schema:
        """Draft a schema from a frame or file. It describes private data: correct it, then `confirm` it, or call `to_learn`."""
        return cls.draft_with_notes(table, dialect)[0]

    @classmethod
    def draft_with_notes(cls, table: Any, dialect: Dialect | None = None) -> tuple[Schema, tuple[Note, ...]]:
        """A draft, and for each column what was chosen, why, and what to look at. Private."""
        found = draft(table, dialect)
        return cls(found.fields, found.missing_values, dialect=found.dialect), found.notes

    def validate(self, table: Any) -> list[str]:
        """What a table breaks of this schema, in words; an empty list if nothing."""
        return problems(RuleBook(self), table)


def _excluding(rule: Rule) -> bool:
    """Whether a rule says of columns that at most one is true, and no more."""
    if isinstance(rule, AtMost):
        return rule.limit == 1 and not rule.one
    return isinstance(rule, Forbid) and [c.values for _, c in rule.conditions] == [(True,)] * 2 and not rule.unless


def as_groups(listed: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Columns and pairs of columns that matter most, as they are listed."""
    groups = tuple((g,) if isinstance(g, str) else tuple(g) for g in listed)
    for group in groups:
        if not 1 <= len(set(group)) == len(group) <= 2:
            raise ParameterError(f"important names columns and pairs of two columns, got {list(group)}.")
    return groups


def focus_to_dict(important: Iterable[tuple[str, ...]], target: str | None) -> dict[str, Any]:
    """What matters most, as a file lists it."""
    found = {"important": [g[0] if len(g) == 1 else list(g) for g in important] or None, "target": target}
    return {word: value for word, value in found.items() if value is not None}


def require_confirmed(fields: Mapping[str, Field], what: str) -> None:
    """Refuse a private release while a description of these fields may speak of private data."""
    left = [name for name, field in fields.items() if not field.confirmed]
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        named = f"{shlex.join(left[:NAMED])}{' …' if more else ''}"
        raise ParameterError(
            f"the {what} is not confirmed as public for {', '.join(map(repr, left[:NAMED]))}{more}. Check that their limits and "
            f"categories are public knowledge. Then confirm them by name, in Python with {what}.confirm([…]), or with: "
            f"covey confirm {what.upper()} {named}"
        )


def spelled_as(field: Field, dialect: Dialect) -> Field:
    """A field whose cells are spelled as a dialect says, as far as it does."""
    before = field.spelling
    if field.type in ("integer", "number"):
        # A mark that the field had gives way where the other one is said to be the same.
        decimal = dialect.decimal or ("." if before.decimal == dialect.thousands else before.decimal)
        thousands = "" if before.thousands == decimal else before.thousands
        marks = Spelling(decimal, thousands if dialect.thousands is None else dialect.thousands)
        return replace(field, spelling=marks)
    if field.type in ("date", "datetime", "time") and dialect.date_format is not None:
        return replace(field, spelling=Spelling(date_format=dialect.date_format))
    return field


# Each reads what stands under its word; KeyError, TypeError, AttributeError and ValueError where that is incomplete.
KINDS: dict[str, Callable[[Any, Mapping[str, Field]], Rule]] = {
    "at_most": AtMost.read,
    "one_of": AtMost.read_one_of,
    "less_equal": LessEqual.read,
    "linear": Linear.read,
    "body": BodyRule.read,
    "forbid": Forbid.read,
    "requires": Forbid.read_requires,
}
_WORDS = f"{', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}"


def read_rule(rule: Any, fields: Mapping[str, Field]) -> Rule:
    """A rule as it stands in a file."""
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise ParameterError(f"a rule is an object with one key, {_WORDS}, got {rule!r}.")
    [(word, body)] = rule.items()
    if word not in KINDS:
        raise ParameterError(f"there is no rule {word!r}. Use {_WORDS}.")
    try:
        return KINDS[word](body, fields)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"rule {rule!r} is incomplete or has a wrong type: {error!r}.") from None
