"""Rides of the odometer whose options are drawn at random: the next option is attacked without anyone thinking of it.

Tables, descriptions, neighbours and all that a synthesizer and an order take follow from a number (`audits.options`). A few such
rides are among the quick checks, others for every seed; `make audit` has hundreds. What a synthesizer refuses is drawn again.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import io
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from unittest.mock import patch

import numpy as np

import covey.workflow
from audits import events, options
from audits.accounts import CAP, wrongly_charged
from audits.checks import Check
from audits.faces import files_in
from audits.odometer import Ride, cheap_fits, ride
from audits.options import NOTHING, NUMBERS, PERSON, Chance, Scene, drawn, grown
from covey.engine.entropy import Streams
from covey.engine.query import Factor, Query
from covey.engine.unit import ADD_REMOVE
from covey.errors import CoveyError, InternalError, LostReleaseError
from covey.ledger import Ledger
from covey.release.bundle import write_bundle
from covey.synthesizers import PrivateSynthesizer
from covey.tables.description import Description
from covey.tables.dialects import Dialect
from covey.tables.fields import Field
from covey.tables.rules import Rule
from covey.tables.schema import Schema, read_rule
from covey.workflow import PrivateOrder

KINDS = ("bits", "codes", "body", "table", "table", "table", "persons", "persons", "linked")
ORDERED_KINDS = ("table", "table", "persons", "drafted")
ATTEMPTS = 40  # that may be refused before a ride is found
QUICK_SYNTHESIZERS, QUICK_ORDERS = 8, 3  # rides among the quick checks
LONG_SYNTHESIZERS, LONG_ORDERS = 240, 60  # and in `make audit`

Rows = list[tuple[str, ...]]


# Descriptions.


def draw_field(chance: Chance, before: Sequence[Field]) -> Field:
    """A field that may hang on those before it."""
    kind = chance.choice(options.TYPES)
    values = drawn(options.FIELD, chance, kind, before)
    if values.get("learn") or "constant" in values or "derived" in values:
        values = {
            name: value for name, value in values.items() if name not in ("minimum", "maximum", "enum", "default")
        }
    needed = {name: values.pop(name) for name in ("name", "type", "minimum", "maximum", "enum") if name in values}
    for name in ("learn", "constant", "derived"):
        if name in values:
            needed[name] = values.pop(name)
    return Field(**grown(Field, needed, values, chance))


def draw_rules(chance: Chance, fields: Sequence[Field]) -> tuple[Rule, ...]:
    """Rules that these fields allow, one by one and together."""
    known, rules = {own.name: own for own in fields}, list[Rule]()
    for word in chance.sample(tuple(options.RULES), 3):
        body = options.RULES[word](chance, fields)
        if body is NOTHING:
            continue
        with contextlib.suppress(CoveyError):
            rule = read_rule({word: body}, known)
            Schema(tuple(fields), rules=(*rules, rule))
            rules.append(rule)
    return tuple(rules)


def draw_schema(chance: Chance) -> Schema:
    """Two to five fields, and what a schema may say of them."""
    fields = list[Field]()
    for _ in range(chance.randint(2, 5)):
        fields.append(draw_field(chance, fields))
    names = [own.name for own in fields if own.measured]
    values = drawn(options.SCHEMA, chance, names, draw_rules(chance, fields))
    return Schema(**grown(Schema, {"fields": tuple(fields)}, values, chance))


# Cells.


def some_cells(field: Field, n: int, g: np.random.Generator, cells: str) -> list[str]:
    """Cells of a field, most of them what it says, some missing, some no such thing."""
    if field.type in ("boolean", "string"):
        labels = [*(field.flags if field.type == "boolean" else field.enum or options.LABELS[:3])]
        labels += [] if cells == TIDY else ["none of these"]
        chances = 0.6 ** np.arange(len(labels))
        words = g.choice(labels[::-1] if cells == STRANGE else labels, n, p=chances / chances.sum())
    else:
        low, high = ends_of(field)
        places = (g.random(n) ** 2 * 40).astype(int) / 40  # few, so that some are frequent
        places = 1 - places if cells == STRANGE else places
        words = np.array([between(field.type, low, high, float(place)) for place in places])
    words = words.astype(object)
    words[g.random(n) < (0.3 if cells == STRANGE else 0.05)] = ""
    if field.special and cells != TIDY:
        words[g.random(n) < 0.1] = field.special[0]
    return [str(word) for word in words]


def ends_of(field: Field) -> tuple[str, str]:
    """The ends of an ordered field, or of what is to be learned, as cells."""
    highest = options.HIGHEST[field.type][-1]
    low, high = (field.minimum, field.maximum) if field.minimum is not None else (options.LOWEST[field.type], highest)
    return tuple(end.isoformat() if hasattr(end, "isoformat") else str(end) for end in (low, high))


def between(kind: str, low: str, high: str, place: float) -> str:
    """A cell at a place between two ends."""
    if kind in NUMBERS:
        value = float(low) + place * (float(high) - float(low))
        return str(round(value)) if kind == "integer" else f"{value:.2f}"
    day = "2000-01-01T" if kind == "time" else ""
    first, last = (np.datetime64(day + end, "D" if kind == "date" else "s") for end in (low, high))
    moment = str(first + np.timedelta64(round(place * (last - first).astype(int)), "D" if kind == "date" else "s"))
    return moment.partition("T")[2] if kind == "time" else moment


def extreme_rows(fields: Sequence[Field]) -> dict[str, tuple[str, ...]]:
    """Rows at both ends, of missing cells, beyond all limits, of words that nobody has, and of both ends in turn."""
    ends = [_two_ends(field) for field in fields]
    return {
        "the low ends": tuple(low for low, _ in ends),
        "the high ends": tuple(high for _, high in ends),
        "missing": tuple("" for _ in fields),
        "beyond": tuple("1e30" if field.type in NUMBERS else "9999-12-31" for field in fields),
        "unheard of": tuple(f"a {field.name} of its own" for field in fields),
        "both ends": tuple(pair[k % 2] for k, pair in enumerate(ends)),
    }


def _two_ends(field: Field) -> tuple[str, str]:
    if field.type == "boolean":
        return field.flags
    if field.type == "string":
        labels = field.enum or options.LABELS[:3]
        return labels[0], labels[-1]
    return ends_of(field)


# Units: a row, the rows of a person, or a person; and tables that differ in one.


@dataclass(frozen=True)
class Units:
    """A table without one unit, what that unit may be, what another one may be that comes to it, and rows of strangers.

    `as_table` makes a table of rows.
    """

    others: list
    unit: list
    variants: dict[str, list]
    newcomers: dict[str, list]
    strangers: list
    as_table: Callable[[list], object]

    def ride(self, name: str, make: Callable[[int], object], added: bool, files: bool = False) -> Ride:
        """Units are replaced, or added and removed."""
        table = self.as_table([*self.unit, *self.others])
        if added:
            neighbours = {"one removed": self.as_table(self.others)}
            more = {f"added, {key}": [*self.unit, *self.others, *rows] for key, rows in self.newcomers.items()}
            strangers = self.strangers[: 2 * len(self.strangers) // 3]
        else:
            neighbours = {}
            more = {key: [*rows, *self.others] for key, rows in self.variants.items()}
            strangers = self.strangers
        neighbours |= {key: self.as_table(rows) for key, rows in more.items()}
        return Ride(name, make, table, neighbours, self.as_table(strangers), files=files, drawn=True)


def array_units(X: np.ndarray, strangers: np.ndarray, ends: Sequence[np.ndarray], each: int, chance: Chance) -> Units:
    """Rows of numbers, several of which are replaced at once."""
    start, *others = (list(map(tuple, [end] * each)) for end in chance.sample(list(ends), len(ends)))

    def as_table(rows):
        return np.array(rows, dtype=X.dtype)

    variants = {f"end {k}": rows for k, rows in enumerate(others)}
    return Units(list(map(tuple, X[each:])), start, variants, variants, list(map(tuple, strangers)), as_table)


COMMON, STRANGE, TIDY = "common", "strange", "tidy"  # cells: such as there are, such as are rare elsewhere, no odd ones


def rows_of(fields: Sequence[Field], n: int, seed: int, cells: str = COMMON) -> Rows:
    """Rows of random cells."""
    g = np.random.default_rng(seed)
    return list(zip(*(some_cells(field, n, g, cells) for field in fields), strict=True))


def table_units(fields: Sequence[Field], n: int, each: int, chance: Chance, tidy: bool = False) -> Units:
    """Rows of text; of tidy ones a single row may be odd, and decides nothing where a table is drafted."""
    seeds = [chance.randrange(1 << 30) for _ in range(2)]
    others = rows_of(fields, n, seeds[0], TIDY if tidy else COMMON)
    strangers = rows_of(fields, n, seeds[1], TIDY if tidy else STRANGE)
    ends = extreme_rows(fields)
    start = ends.pop("the low ends") if tidy else ends.pop(chance.choice(list(ends)))
    variants = {key: [ends[key]] * each for key in chance.sample(list(ends), 3)}

    def as_table(rows):
        return dict(zip([field.name for field in fields], map(list, zip(*rows, strict=True)), strict=True))

    return Units(others[each:], [start] * each, variants, variants, strangers, as_table)


def person_units(fields: Sequence[Field], n: int, chance: Chance) -> Units:
    """Rows of text with a column of persons; a person has one row or many, alike or of two kinds."""
    ends = [row for _, row in chance.sample(list(extreme_rows(fields).items()), 4)]
    shapes = {"one row": [ends[1]], "many rows": [ends[2]] * 40, "of two kinds": [ends[1], ends[3]] * 5}
    own, newcomers = ({key: [(who, *row) for row in rows] for key, rows in shapes.items()} for who in ("mine", "new"))

    def persons(seed, cells):
        g = np.random.default_rng(seed)
        whose = g.permutation(np.repeat(np.arange(n), g.integers(1, 6 if cells == STRANGE else 4, n)))
        return [(f"p{who}", *row) for who, row in zip(whose, rows_of(fields, len(whose), seed, cells), strict=True)]

    others = persons(chance.randrange(1 << 30), COMMON)
    strangers = [*persons(chance.randrange(1 << 30), STRANGE), ("mine", *ends[0])]

    def as_table(rows):
        names = [PERSON, *(field.name for field in fields)]
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

    return Units(others, [("mine", *ends[0])], own, newcomers, strangers, as_table)


# Rides of synthesizers.


def array_scene(kind: str, chance: Chance) -> tuple[Scene, Callable[[int], Units]]:
    """Yes/no columns, category codes or real numbers in a body, and how units of so many rows are made of them."""
    g = np.random.default_rng(chance.randrange(1 << 30))
    n, p = chance.choice((40, 300, 1500)), chance.choice((2, 4, 7, 24) if kind == "bits" else (2, 3, 5))
    if kind == "bits":
        public, low, high = {}, np.zeros(p, dtype=np.uint8), np.ones(p, dtype=np.uint8)
        X, strangers = ((g.random((n, p)) < share).astype(np.uint8) for share in (0.2, 0.7))
    elif kind == "codes":
        sizes = [chance.choice((1, 2, 3, 9)) for _ in range(p - 1)] + [3]
        public, low, high = {"domain": sizes}, np.zeros(p, dtype=np.int64), np.array(sizes) - 1
        X, strangers = (g.integers(0, np.array(sizes), (n, p)) for _ in range(2))
        X[:, -1] = X[:, :2].sum(axis=1) % 3
    else:
        body = chance.choice(options.BODIES)(p)
        public, low, high = {"body": body}, np.full(p, -1e9), np.full(p, 1e9)
        X, strangers = body.project(g.random((n, p)) * 0.5), body.project(g.random((n, p)))
    half = np.where(np.arange(p) < p // 2, low, high)
    ends = [low, high, half, low + high - half]
    units = partial(array_units, X, strangers, ends, chance=chance)
    return Scene(kind, public, columns=p), units


def table_scene(kind: str, chance: Chance) -> tuple[Scene, Callable[[int], Units]]:
    """A table with a schema, of rows or of persons."""
    schema, n = draw_schema(chance), chance.choice((60, 300, 900))
    fields = [own for own in schema.fields if own.derived is None]
    names = tuple(own.name for own in fields if own.measured)
    scene = Scene(kind, {"schema": schema}, names, len(fields))
    scene.earlier = partial(earlier, schema, chance.randrange(1 << 30))
    if kind == "persons":
        return scene, lambda _: person_units(fields, n // 3, chance)
    return scene, partial(table_units, fields, n, chance=chance, tidy=kind == "drafted")


def linked_scene(chance: Chance) -> tuple[Scene, Callable[[bool], Ride]]:
    """Persons with events, and how a ride is made of them; the first person has all kinds of events."""
    words = {name: chance.once_in(2) for name in ("ordered", "number", "ruled")}
    timed = words["ordered"] and chance.once_in(2)
    described, last = events.package(**words, timed=timed), 500 if words["number"] else 2
    described = described.focus(
        *((("people.sex", "visits.ward"),) if chance.once_in(3) else ()),
        target="region" if chance.once_in(3) else None,
        triples=chance.choice((None, 1)),
    )
    ordered = words["ordered"]
    table, stranger = (events.town(60, seed=seed, number=words["number"]) for seed in (chance.randrange(99), 100))
    neighbours = events.person_neighbours(table, ordered, last)
    first, away = neighbours.pop("all different"), events.with_first(stranger, (1, 1), [(2, 1, 9)] * 3, ordered)

    def ride_of(name, make, added):
        if not added:
            return Ride(name, make, first, neighbours, away, drawn=True)
        gone = {"without": events.without(first, "p0"), "without another": events.without(first, "p7")}
        fewer = events.with_first(events.town(41, seed=100, number=words["number"]), (1, 1), [(2, 1, 9)] * 3, ordered)
        return Ride(name, make, first, gone, fewer, drawn=True)

    def before():
        place = workplace() / f"linked-{chance.randrange(1 << 30)}"
        return released(described, events.with_first(stranger, (1, 1), [(2, 1, 9)] * 3, ordered), 7, place)

    return Scene("linked", {"schema": described}, earlier=before), ride_of


def draw_options(chance: Chance, scene: Scene) -> dict[str, object]:
    """Options of a synthesizer that go together."""
    scene.said["method"] = options.SYNTHESIZER["method"](chance, scene)
    values = drawn(options.SYNTHESIZER, chance, scene) | {"method": scene.said["method"]}
    needed = {name: values.pop(name) for name in ("epsilon", *scene.public, "method", "person") if name in values}
    return grown(partial(PrivateSynthesizer, seed=0), needed, values, chance)


def draw_further(chance: Chance, subject: PrivateSynthesizer) -> tuple[Query, ...]:
    """Tables of some columns that are measured besides, where a method takes them."""
    if subject.domain is None or subject.described is not None or not chance.once_in(3):
        return ()
    sizes = dict(enumerate(subject.domain.sizes))
    pair = tuple(sorted(chance.some(tuple(sizes), 2, 2)))
    return (Query([pair, pair[:1]], {column: Factor.plain(sizes[column]) for column in pair}),)


def synthesizer_ride(name: str, chance: Chance) -> tuple[Ride, dict[str, object]]:
    """A ride whose options are drawn, and these."""
    kind = chance.choice(KINDS)
    if kind == "linked":
        scene, make_ride = linked_scene(chance)
    else:
        scene, units = (table_scene if kind in ("table", "persons") else array_scene)(kind, chance)
    said = draw_options(chance, scene)
    further = draw_further(chance, PrivateSynthesizer(**said, seed=0))

    def make(seed):
        synth = PrivateSynthesizer(**said, seed=seed)
        synth.further = further
        return synth

    added = said.get("neighbours") == ADD_REMOVE
    if kind == "linked":
        return make_ride(name, make, added), said
    return units(said.get("rows_per_person", 1)).ride(name, make, added), said


@cache
def workplace() -> Path:
    """A folder for releases that were made before; it goes when the process ends."""
    place = Path(mkdtemp(prefix="covey-audit-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def earlier(schema: Schema, seed: int, seeded: bool = True) -> Path:
    """A release that was made before of other rows under the same schema."""
    fields = [own for own in schema.fields if own.derived is None]
    table = table_units(fields, 200, 1, Chance(seed)).as_table(rows_of(fields, 200, seed))
    return released(schema, table, seed, workplace() / f"{seed}-{seeded}", seeded)


def released(description: Schema | Description, table: object, seed: int, place: Path, seeded: bool = True) -> Path:
    """A bundle of a table, where there is none yet."""
    if not place.exists():
        with cheap_fits(), warnings.catch_warnings(), fixed_key(seed):
            warnings.simplefilter("ignore")
            synth = PrivateSynthesizer(20, schema=description, seed=seed if seeded else None).fit(table)
            write_bundle(synth.release(100), place)
    return place


@contextlib.contextmanager
def fixed_key(seed: int) -> Iterator[None]:
    """The operating system's key is the same one every time: a release that is no seeded one can be made again."""
    key = Streams.from_seed(seed).key
    with patch.object(Streams, "from_system", lambda: Streams(key, seeded=False)):
        yield


# Rides of orders.


class Ordered:
    """A release as an order asks for it, in a folder of its own, charged to a ledger of its own."""

    def __init__(self, seed: int, order: dict[str, object], schema: Schema | None) -> None:
        self._seed, self._order, self._given = seed, order, schema
        self._made, self._left = list[PrivateSynthesizer](), dict[str, object]()

    def fit(self, table: dict[str, list[str]]) -> None:
        """Write the table down, release it, and keep all that came of it; a wrong charge is an error."""

        def making(real):
            def make(order, found):
                self._made.append(real(order, found))
                return self._made[-1]

            return make

        with in_a_folder(table, self._order, self._given) as order, fixed_key(self._seed):
            with patch.object(covey.workflow, "synthesizer", making(covey.workflow.synthesizer)):
                done = covey.workflow.release(order)
            ledger, budget = Ledger(order.ledger), self._made[-1].privacy.budget
            wrong = list(wrongly_charged(ledger, order.dataset, order, budget.rows_covered, budget.gaussian_rho))
            if budget.neighbours != order.neighbours:
                wrong.append(f"the release states {budget.neighbours}, and {order.neighbours} was asked for")
            if wrong:
                raise InternalError("; ".join(wrong))
            self._left = {"released": repr(replace(done, bundle=order.out)), **files_in(order.out)}

    @property
    def privacy(self):
        """The statement of the release."""
        return self._made[-1].privacy

    def leaving(self) -> dict[str, object]:
        """All that was returned and written, but for the confidential log."""
        return self._left


@contextlib.contextmanager
def in_a_folder(table: dict[str, list[str]], order: dict[str, object], schema: Schema | None) -> Iterator[PrivateOrder]:
    """The order, in a folder with its table, its schema and its ledger."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        dialect = order.get("dialect", Dialect())
        Path("table.csv").write_bytes(as_file(table, dialect))
        if schema is not None:
            schema.save("schema.json")
        Ledger("ledger.sqlite").open_dataset("people", *CAP)
        given = {"table": Path("table.csv"), "out": Path("out"), "dataset": "people", "ledger": Path("ledger.sqlite")}
        yield PrivateOrder(**given, **{"schema": None} | order, confirm_large_epsilon=True, accept_misfits=1)


def as_file(table: dict[str, list[str]], dialect: Dialect) -> bytes:
    """A table as a file has it that is written so."""
    columns = [[name, *(spelled(cell, dialect) for cell in cells)] for name, cells in table.items()]
    text = io.StringIO()
    text.write("a line before the header\n" * (dialect.skip_rows or 0))
    csv.writer(text, delimiter=dialect.separator or ",").writerows(zip(*columns, strict=True))
    return text.getvalue().encode(dialect.encoding or "utf-8")


def spelled(cell: str, dialect: Dialect) -> str:
    """A cell with the decimal mark and the form of dates that a dialect has."""
    if dialect.date_format is not None and re.fullmatch(r"\d{4}-\d\d-\d\d", cell):
        return datetime.fromisoformat(cell).strftime(dialect.date_format)
    if dialect.decimal is not None and re.fullmatch(r"-?\d+\.\d+", cell):
        return cell.replace(".", dialect.decimal)
    return cell


class Enough(Exception):
    """An order was accepted: it ends before its charge."""


def accepted(table: dict[str, list[str]], public: Schema | None, **order: object) -> None:
    """Take an order to its charge, or raise why it is refused."""

    def enough():
        raise Enough

    with contextlib.suppress(Enough), in_a_folder(table, order, public) as whole:
        covey.workflow.release(whole, before_charge=enough)


def order_ride(name: str, chance: Chance) -> tuple[Ride, dict[str, object]]:
    """A ride of a whole release whose order is drawn, and this."""
    kind = chance.choice(ORDERED_KINDS)
    scene, units = table_scene(kind, chance)
    schema = scene.public["schema"]
    if kind == "drafted":
        scene.public.clear()
        scene.said["rows_per_person"] = 1  # with more, the rows of one person may decide what a draft reads
        schema = None
    elif not schema.learns:
        scene.earlier = partial(earlier, schema, chance.randrange(1 << 30), seeded=False)
    values = drawn(options.ORDER, chance, scene)
    needed = {word: values.pop(word) for word in ("epsilon", "schema", "learn", "person") if word in values}
    plain = units(1)
    table = plain.as_table([*plain.unit, *plain.others])
    accepted(table, schema, **needed)
    order = grown(partial(accepted, table, schema), needed, values, chance)
    each = order.get("rows_per_person", 1)
    added = order.get("neighbours") == ADD_REMOVE
    found = (plain if each == 1 else units(each)).ride(name, lambda seed: Ordered(seed, order, schema), added)
    return replace(found, neighbours=dict(list(found.neighbours.items())[:2])), order


# Checks.


def drawn_ride(make: Callable[[str, Chance], tuple[Ride, dict]], number: int, seed: int) -> Iterator[str]:
    """What is wrong with the ride of a number and a seed; what is refused before its charge is drawn again."""
    for attempt in range(ATTEMPTS):
        chance = Chance(f"{number}, {seed}, {attempt}")
        try:
            said = {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                one, said = make(f"drawn ride {number} of seed {seed}", chance)
            found = list(ride(one, seed))
        except (InternalError, LostReleaseError) as error:
            found = [f"{type(error).__name__}: {error}"]
        except CoveyError:
            continue
        yield from (f"{words} ({said})" for words in found)
        return
    yield f"ride {number} of seed {seed}: {ATTEMPTS} draws were refused"


def checks(long: bool = False) -> list[Check]:
    """Rides of synthesizers and orders: a few, or the many others."""
    promise = "whatever options go together, no charge spends more than its amount, and nothing leaves unpaid"
    found = []
    for words, make, quick, most in (
        ("synthesizer", synthesizer_ride, QUICK_SYNTHESIZERS, LONG_SYNTHESIZERS),
        ("order", order_ride, QUICK_ORDERS, LONG_ORDERS),
    ):
        numbers = range(quick, most) if long else range(quick)
        found += [Check(f"drawn {words}: {k}", promise, partial(drawn_ride, make, k)) for k in numbers]
    return found
