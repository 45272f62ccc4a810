"""A case on its whole way: draft, confirm, check, plan, release, verify, report, questions, more rows, evaluation.

What is promised: a release that was accepted is finished, a refusal comes before the charge and in words, nothing ends in a
traceback, and every row keeps its schema. What is not so is a find.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner, Result

from covey.desk.cli import main
from covey.engine.fit.devices import descend
from covey.engine.unit import ADD_REMOVE, REPLACE
from covey.errors import CannotAnswerError, CoveyWarning
from covey.ledger import Ledger
from covey.release import bundle, page, pictures
from covey.release.answers.load import load
from covey.release.report import rows_bounds
from covey.workflow import evaluate
from fuzz.arrays import fit_arrays
from fuzz.cases import Case, Chance
from fuzz.oracle import cell, faults, keeps, read_rows, value_of
from fuzz.orders import ANY_NAME, draw_case
from fuzz.questions import ask_all, condition

BESIDE_RELATIONS = ("expected", "learn", "neighbours", "person")
REFUSED = (2, 3, 4)  # exit codes of a refusal: parameters, table, ledger


class Find(Exception):
    """A promise that was broken, in words."""


@dataclass
class Journey:
    """A case, the folder that it lives in, and what was met on the way."""

    case: Case
    folder: Path
    outcome: str = ""
    reason: str = ""
    reached: set[str] = field(default_factory=set)
    answered: Counter[str] = field(default_factory=Counter)

    @property
    def chance(self) -> Chance:
        """What the steps after a release draw."""
        return Chance(-1 - self.case.seed)

    def run(self, *words: Any, code: int | tuple[int, ...] | None = None) -> Result:
        """A command; a traceback is a find, and so is a code that was not to be."""
        done = CliRunner().invoke(main, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise Find(f"covey {' '.join(map(str, words))}: traceback") from done.exception
        wanted = (0, *REFUSED) if code is None else code if isinstance(code, tuple) else (code,)
        if done.exit_code not in wanted or not done.output.strip():
            raise Find(f"covey {' '.join(map(str, words))} ended with {done.exit_code}: {done.output}")
        return done


def travel(seed: int, folder: Path) -> Journey:
    """The journey of a seed; a Find if a promise is broken."""
    case = draw_case(seed)
    journey = Journey(case, folder)
    for name, content in case.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    seen: list[str] = []
    with strict(seed, seen):
        try:
            _walk(journey)
            journey.reached |= fit_arrays(seed)  # which take no schema
        except Find as find:
            raise Find("\n".join([str(find), *seen])) from find.__cause__
        except Exception as error:
            raise Find(f"traceback: {error!r}") from error
    if seen:
        raise Find("what was caught on the way:\n" + "\n".join(seen))
    return journey


@contextmanager
def strict(seed: int, seen: list[str]) -> Iterator[None]:
    """Noise from the seed, warnings as errors, short fits, and a list of failures that covey would hide from its user."""

    def told(error: Exception) -> Any:
        if not isinstance(error, CannotAnswerError):
            seen.append("".join(traceback.format_exception(error)))
        return known(error)

    def noted(*given: Any) -> None:
        try:
            add(*given)
        except Exception as error:
            seen.append("".join(traceback.format_exception(error)))
            raise

    known, add = page.reason, bundle.add_words
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CoveyWarning)
        places: list[tuple[Any, str, Any]] = [
            (page, "reason", told),
            (pictures, "reason", told),
            (bundle, "add_words", noted),
            (bundle, "_bounded", lambda release, seen: replace(release, own=rows_bounds(release, seen))),
        ]
        for place, name, other in places:
            stack.enter_context(patch.object(place, name, other))
        stack.enter_context(patch("secrets.token_bytes", random.Random(seed).randbytes))
        stack.enter_context(patch("covey.release.conditional.PATIENCE", 3))
        stack.enter_context(patch("covey.release.conditional.FEWEST", 200))
        if seed % 50:  # the others are fitted to the end
            for home in ("factors", "targets"):
                stack.enter_context(patch(f"covey.engine.fit.{home}.descend", _few))
            stack.enter_context(patch("covey.engine.models.tables.method.fit_steps", lambda *_: 20))
            stack.enter_context(patch("covey.engine.fit.factors.DRAWS", 1))
            stack.enter_context(patch("covey.release.answers.bands.DRAWS", 20))
            stack.enter_context(patch("covey.release.answers.release.DRAWN", 1000))
            stack.enter_context(patch("covey.engine.draw.balanced.LOOKUPS", 10**5))
            stack.enter_context(patch("covey.engine.fit.events.STEPS", 10))
            stack.enter_context(patch("covey.engine.fit.events.STARTS", 2))
            stack.enter_context(patch("covey.engine.models.persons.method.COMPARED", (300, 300)))
        yield


def _few(device: Any, goal: Any, start: Any, steps: int) -> Any:
    return descend(device, goal, start, min(steps, 5))


def _walk(journey: Journey) -> None:
    case, folder = journey.case, journey.folder
    first = folder / next(iter(case.files))
    if case.kind == "drafted" or journey.chance.once_in(3):
        _draft(journey)
    schema = ["--schema", folder / "schema.json"] if (folder / "schema.json").exists() else []
    ledger = folder / "ledger.sqlite"
    way: Any = "gaussian" if "option gaussian ledger" in case.named else None
    # A book for replaced rows takes added or removed ones too, at twice their price.
    secret = case.seed >= ANY_NAME and case.seed % 2 and "option neighbours" in case.named
    promise: Any = ADD_REMOVE if secret else REPLACE
    Ledger(ledger).open_dataset("d", Fraction(1000), Fraction(1, 10**5), way, promise)
    charge = ["--dataset", "d", "--ledger", ledger]
    words, told = list(case.words), []
    prior = {"option prior", "linked prior"} & case.named
    if prior:
        Ledger(ledger).open_dataset("before", Fraction(1000))
        plain = ["--epsilon", "1", "--accept-misfits", "1", "--dataset", "before", "--ledger", ledger]
        person = ["--person", case.link] if case.kind == "person" else []
        if journey.run("release", first, *schema, *plain, *person, "--out", folder / "prior").exit_code == 0:
            words += ["--prior", folder / "prior"]
    if schema or case.linked:
        told = [journey.run("check", first, *schema, *(["--person", case.link] if case.kind == "person" else []))]
        told += [_plan(journey)]
    out = folder / "bundle"
    done = journey.run("release", first, *schema, *words, *charge, "--out", out)
    charges = [event.kind for event in Ledger(ledger).history("d")]
    if done.exit_code:
        journey.outcome, journey.reason = "refused", done.output
        if charges != ["open"] or out.exists():
            raise Find(f"refused after the charge ({charges}): {done.output}")
        return
    journey.outcome = "released"
    if charges != ["open", "charge", "release"]:
        raise Find(f"the ledger holds {charges} after a release")
    for before in told:
        if before.exit_code:
            raise Find(f"released, though a step before refused: {before.output}")
    journey.reached |= case.named - (set() if "--prior" in words else prior)
    _follow(journey, out, first)


def _draft(journey: Journey) -> None:
    """Draft a description; where the case has none, it is the one that is confirmed and used."""
    case, folder = journey.case, journey.folder
    made = folder / "draft.json"
    if case.kind == "package":
        words: list[Any] = [folder / "people.csv", folder / "events.csv", "--person", f"{case.link}={case.key}"]
    elif case.kind == "alone":
        words = [folder / "events.csv", "--person", case.link]
    else:
        words = [folder / "table.csv"]
    if journey.run("init", *words, "-o", made).exit_code:
        return
    left = json.loads(journey.run("confirm", made, "--all", "--json", code=0).output)["unconfirmed"]
    if left:
        again = json.loads(journey.run("confirm", made, "--json", "--", *left, code=0).output)
        if again["unconfirmed"]:
            raise Find(f"a draft cannot be confirmed: {again}")
    if case.kind == "drafted":
        made.rename(folder / "schema.json")
    else:
        journey.run("check", *([made] if case.linked else [words[0], "--schema", made]))


def _plan(journey: Journey) -> Result:
    case, folder = journey.case, journey.folder
    schema = folder / ("package.json" if case.linked else "schema.json")
    given = dict(zip(case.words, [*case.words[1:], ""], strict=True))
    words = ["--epsilon", given["--epsilon"], "--delta", given["--delta"]]
    words += ["--neighbours", given["--neighbours"]] if "--neighbours" in given else []
    if case.linked or case.kind == "person":
        return journey.run("plan", schema, "--persons", "40", *words)
    for option in ("--important", "--target", "--triples", "--rows-per-person"):
        words += [option, given[option]] if option in given else []
    return journey.run("plan", schema, "--rows", "40", *words)


def _follow(journey: Journey, out: Path, first: Path) -> None:
    """All that is done with a bundle."""
    case, folder, chance = journey.case, journey.folder, journey.chance
    found = json.loads(journey.run("verify", out, "--json", code=0).output)
    if not found["finished"]:
        raise Find("the report was not made")
    given = dict(zip(case.words, [*case.words[1:], ""], strict=True))
    wanted = int(given["--rows"]) if "--rows" in given else found["privacy"]["n"]
    if found.get("persons", found["rows"]) != wanted:
        raise Find(f"{wanted} rows were ordered, and {found} came")
    _check_rows(journey, out)
    journey.reached |= _relations(case, out)
    if chance.once_in(3):
        journey.run("cite", out, code=0)
        journey.run("tables", out, "-o", folder / "tables", code=0)
        journey.reached.add("step tables")
    release = load(out)
    schema = [json.loads((out / "schema.json").read_text())] if not case.linked else _schemas(out)
    keys = (case.link, case.key) if case.linked else ()
    fields = [entry for one in schema for entry in one["fields"] if entry["name"] not in keys]
    if fields:
        journey.answered, wrong = ask_all(release, chance, fields, case.linked)
        if wrong:
            raise Find("\n".join(wrong[:5]))
    _ = repr(release), release._repr_html_(), release.rows()
    if chance.once_in(2):
        _sample(journey, out, fields)
    if chance.once_in(4):
        (out / "SHA256SUMS.report").unlink()
        (out / "report.html").unlink()
        journey.run("resume", out, code=0)
        if not json.loads(journey.run("verify", out, "--json", code=0).output)["finished"]:
            raise Find("resume did not finish the bundle")
        journey.reached.add("step resume")
    if chance.once_in(2):
        _evaluate(journey, out, first)
    if not case.linked and (folder / "schema.json").exists() and chance.once_in(4):
        _anonymize(journey, first)


def _relations(case: Case, out: Path) -> set[str]:
    """Whether relations were found, and beside what."""
    schema = {} if case.linked else json.loads((out / "schema.json").read_text())
    if not isinstance(schema.get("covey", {}).get("relations"), list):
        return set()
    beside = {what for what in BESIDE_RELATIONS if {f"field {what}", f"option {what}", f"kind {what}"} & case.named}
    return {"found relations", *(f"found relations beside {what}" for what in beside)}


def _evaluate(journey: Journey, out: Path, first: Path) -> None:
    """Compare with the true table; predictions, which take long, once in a while."""
    case = journey.case
    person = case.link if case.kind == "person" else None
    if case.linked or journey.chance.once_in(20):
        words = ["--person", person] if person else []
        journey.run("evaluate", first, out, *words, "-o", journey.folder / "figures.json", code=0)
    else:
        done = evaluate(first, out, person=person, predicting=False)
        json.dumps(done.figures)
        _ = done.page()
    journey.reached.add("step evaluate")


def _schemas(out: Path) -> list[dict[str, Any]]:
    """The schemas of a bundle of linked tables."""
    return [part["schema"] for part in json.loads((out / "datapackage.json").read_text())["resources"]]


def _check_rows(journey: Journey, out: Path) -> None:
    """Rows keep every limit, type and rule."""
    case = journey.case
    if not case.linked:
        schema = json.loads((out / "schema.json").read_text())
        wrong = faults(read_rows(_table(out, "synthetic")), schema)
        if case.kind in ("table", "person") and case.document is not None:
            wrong += faults(read_rows(_table(out, "synthetic")), case.document)
    else:
        wrong = _linked_faults(case, {name: read_rows(_table(out, name)) for name in _names(case)}, out)
    if wrong:
        raise Find("\n".join(wrong[:5]))


def _names(case: Case) -> tuple[str, str]:
    return ("persons", "events") if case.kind == "alone" else ("people", "events")


def _table(out: Path, name: str) -> Path:
    path = out / f"{name}.parquet"
    return path if path.exists() else out / f"{name}.csv"


def _linked_faults(case: Case, tables: dict[str, list[dict[str, str]]], bundle: Path) -> list[str]:
    """What two linked tables break of their package; limits and categories that were learned are those of the bundle."""
    assert case.document is not None
    wrong: list[str] = []
    learned = dict(zip(_names(case), _schemas(bundle), strict=True))
    schemas = {
        name: own | {"fields": learned[name]["fields"]} if '"learn"' in json.dumps(own) else own
        for name, own in case.schemas().items()
    }
    persons, events = (tables[name] for name in _names(case))
    own = case.document["resources"][-1]["covey"]
    if case.kind == "package":
        wrong += faults(persons, schemas["people"], [case.key])
    wrong += faults(events, schemas["events"], [case.link]) if events else []
    ids = [cell(row, case.key) for row in persons]
    if ids != [str(k + 1) for k in range(len(ids))]:
        wrong.append("persons are not numbered 1, 2, 3, …")
    by_person: dict[str, list[dict[str, str]]] = {who: [] for who in ids}
    for row in events:
        by_person[cell(row, case.link)].append(row)
    if max(map(len, by_person.values())) > own["at_most"]:
        wrong.append("a person has more than at_most events")
    if case.kind == "alone" and not min(map(len, by_person.values())):
        wrong.append("a person has no event")
    wrong += _order_faults(schemas["events"], own, by_person)
    for rule in case.document.get("covey", {}).get("rules", []):
        wrong += _across_faults(case, rule, schemas, persons, by_person)
    return wrong


def _order_faults(schema: dict[str, Any], own: dict[str, Any], by_person: dict[str, list[dict[str, str]]]) -> list[str]:
    if "order" not in own:
        return []
    entry = next(f for f in schema["fields"] if f["name"] == own["order"])
    for rows in by_person.values():
        cells = [cell(row, own["order"]) for row in rows]
        values = [value_of(entry, text) for text in cells]
        if own.get("numbered") and values != list(range(1, len(values) + 1)):
            return [f"events are numbered {cells}"]
        numbers = [value for value in values if not isinstance(value, tuple)]
        if numbers != sorted(numbers):
            return [f"events of a person are in the order {cells}"]
    return []


def _across_faults(
    case: Case,
    rule: dict[str, Any],
    schemas: dict[str, Any],
    persons: list[dict[str, str]],
    by_person: dict[str, list[dict[str, str]]],
) -> list[str]:
    known = {f"{name}.{f['name']}": f for name, one in schemas.items() for f in one["fields"]}
    [(word, body)] = rule.items()
    named = list(body) if word == "forbid" else [*body["if"], *body["then"]]
    for person in persons:
        for event in by_person[cell(person, case.key)]:
            sides = {"people": person, "events": event}
            row = {}
            for name in named:
                side, _, own = name.partition(".")
                row[name] = value_of(known[name], cell(sides[side], own))
            if not keeps(rule, row, known):
                return [f"{rule} is broken by {person} with {event}"]
    return []


def _sample(journey: Journey, out: Path, fields: list[dict[str, Any]]) -> None:
    """More rows, with a condition and without."""
    case, folder, chance = journey.case, journey.folder, journey.chance
    if case.linked:
        journey.run("sample", out, "--rows", 9, "--seed", 1, "-o", folder / "more", code=0)
        wrong = _linked_faults(case, {name: read_rows(_table(folder / "more", name)) for name in _names(case)}, out)
    else:
        journey.run("sample", out, "--rows", 9, "--seed", 1, "-o", folder / "more.csv", code=0)
        schema = json.loads((out / "schema.json").read_text())
        wrong = faults(read_rows(folder / "more.csv"), schema)
        where = shlex.split(condition(chance, chance.choice(fields)))[0]
        given = ["--rows", 9, "--where", where, "--seed", 2, "-o", folder / "some.parquet"]
        if journey.run("sample", out, *given).exit_code == 0:
            wrong += faults(read_rows(folder / "some.parquet"), schema)
            journey.reached.add("step sample where")
    if wrong:
        raise Find("drawn again: " + "\n".join(wrong[:5]))


def _anonymize(journey: Journey, first: Path) -> None:
    folder = journey.folder
    method = journey.chance.choice(["tree", "paper", "mdav", "best"])
    words = ["--schema", folder / "schema.json", "--group-size", "5", "--method", method, "--seed", "1"]
    out = folder / "anonymous"
    if journey.run("anonymize", first, *words, "--out", out).exit_code == 0:
        if not json.loads(journey.run("verify", out, "--json", code=0).output)["finished"]:
            raise Find("the report of an anonymous bundle was not made")
        wrong = faults(read_rows(_table(out, "synthetic")), json.loads((out / "schema.json").read_text()))
        if wrong:
            raise Find("anonymous: " + "\n".join(wrong[:5]))
        journey.reached.add("step anonymize")


def clean(folder: Path) -> None:
    """Empty a folder for the next journey."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
