import json
import os
import pickle
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Thread

import pytest

import covey
from covey.errors import LedgerError, ParameterError, UnknownDatasetError
from covey.ledger import Amount, Ledger, default_ledger_path
from covey.ledger import file as module
from covey.ledger.file import LedgerFile
from tests.commands import run

KILLS = 15  # 200 and more were run by hand with the same outcome: COVEY_KILLS=200 pytest tests/ledger/test_ledger.py
PROCESSES, ATTEMPTS, AFFORDABLE = 4, 40, 60
CENT = Fraction(1, 100)

# A worker starts in a blink when the package's __init__, which imports scipy, is stepped around. It also proves that the
# ledger needs the standard library alone.
PRELUDE = f"""
import os, sys, types
covey = types.ModuleType("covey")
covey.__path__ = [{str(Path(covey.__file__).parent)!r}]
sys.modules["covey"] = covey
from fractions import Fraction
from covey.errors import LedgerError
from covey.ledger import Ledger
from covey.engine.gaussian import rho_within
from covey.ledger.file import LedgerFile
assert "numpy" not in sys.modules
ledger = Ledger(sys.argv[1])
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", PRELUDE + script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def ledger(tmp_path):
    fresh = Ledger(tmp_path / "50% of #1?mode=ro & é" / "ledger.sqlite")  # odd characters make a path like any other
    fresh.open_dataset("patients", Fraction(1))
    return fresh


@pytest.fixture
def used(ledger):
    """Open, charge, charge, release, open, charge: six events."""
    receipt = ledger.charge("patients", CENT, Fraction(0), "first")
    ledger.charge("patients", 2 * CENT, Fraction(1, 10**9), "second")
    ledger.mark_released(receipt, "ab" * 32)
    ledger.open_dataset("staff", Fraction(3))
    ledger.charge("staff", Fraction(1), Fraction(0), "third")
    return ledger


def spent(ledger, name="patients"):
    return next(status.spent for status in ledger.datasets() if status.name == name)


def edit(ledger, *statements):
    connection = sqlite3.connect(ledger.path)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.commit()
    connection.close()


def rehash(ledger):
    """Rewrite every hash as covey would: what a forger who knows the format can do."""
    connection = sqlite3.connect(ledger.path)
    last = "0" * 64
    for sequence, body in connection.execute("SELECT sequence, body FROM events ORDER BY sequence").fetchall():
        last = sha256((last + body).encode()).hexdigest()
        connection.execute("UPDATE events SET hash = ? WHERE sequence = ?", (last, sequence))
    count = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    connection.commit()
    connection.close()
    return count, last


def refused_everywhere(ledger, match):
    """Every door is shut, with exit code 4 and the same reason."""
    doors = [
        ledger.verify,
        ledger.datasets,
        lambda: ledger.history("patients"),
        lambda: ledger.check("patients", CENT, Fraction(0)),
        lambda: ledger.charge("patients", CENT, Fraction(0), "never"),
        lambda: ledger.open_dataset("other", Fraction(1)),
    ]
    for door in doors:
        with pytest.raises(LedgerError, match=match) as refusal:
            door()
        assert refusal.value.exit_code == 4


def refuses(ledger, match, name, epsilon, delta, *rest, error=LedgerError):
    """A check and a charge refuse it in the same words; these."""
    doors = (ledger.check, lambda *cost: ledger.charge(*cost[:3], "p", *cost[3:]))
    said = []
    for door in doors:
        with pytest.raises(error, match=match) as refusal:
            door(name, epsilon, delta, *rest)
        said.append(str(refusal.value))
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (Amount(1_500_000_000, 0), "ε = 1.5, δ = 0"),
        (Amount(10**9, 10**12), "ε = 1, δ = 1e-6"),
        (Amount(1, 1), "ε = 1e-9, δ = 1e-18"),
        (Amount(120, 123 * 10**9), "ε = 1.2e-7, δ = 1.23e-7"),
        (Amount(20 * 10**9, 5 * 10**16), "ε = 20, δ = 0.05"),
        (Amount(10**5, 99 * 10**12), "ε = 0.0001, δ = 9.9e-5"),
    ],
)
def test_amounts_are_shown_exactly(amount, words):
    assert str(amount) == words


WRONG = {  # an argument by its name, what is wrong about it, and the words of the refusal; all others are right
    "epsilon": [
        (0.1, "must be a Fraction"),
        (True, "must be a Fraction"),
        (Fraction(0), "must be positive"),
        (Fraction(-1, 3), "must be positive and at most 1000000000, got -1/3"),
        (Fraction(10**9 + 1), "must be .* at most 1000000000, got 1000000001"),
        (Fraction(10**5000), "must be below 1e300 .* got a number of thousands of digits"),
    ],
    "delta": [
        (Fraction(-1, 10), "must be .* below 1, got -1/10"),
        (Fraction(1), "must be 0"),
        (1e-9, "must be a Fraction"),
    ],
    "rows_per_person": [(wrong, "must be a whole number") for wrong in (0, -1, True, 1.5, "2")],
    "rho": [(wrong, "must be a positive Fraction") for wrong in (0, -1, 0.5, True, "1", Fraction(10**10))],
}


@pytest.mark.parametrize(("name", "value", "words"), [(name, *case) for name in WRONG for case in WRONG[name]])
def test_impossible_costs_are_wrong_parameters(ledger, name, value, words):
    cost = {"name": "patients", "epsilon": CENT, "delta": Fraction(1, 10**9)} | {name: value}
    for door in (ledger.check, lambda **cost: ledger.charge(purpose="p", **cost)):
        with pytest.raises(ParameterError, match=f"^{name} {words}"):
            door(**cost)
    if name in ("epsilon", "delta"):  # a cap likewise
        with pytest.raises(ParameterError, match=f"^{name}_budget {words}"):
            ledger.open_dataset("x", *({"epsilon": CENT, "delta": Fraction(0)} | {name: value}).values())
    assert spent(ledger) == Amount()


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ((Fraction(1, 10**10),), r"^epsilon_budget must be at least 1e-9, got 1/10000000000\.$"),
        ((Fraction(3), CENT, "first"), '^composition must be "sum" or "gaussian"'),
        ((Fraction(3), CENT, None, "both"), "^neighbours must be"),
    ],
)
def test_impossible_caps_are_wrong_parameters(ledger, cap, words):
    with pytest.raises(ParameterError, match=words):
        ledger.open_dataset("x", *cap)
    ledger.open_dataset("large", Fraction(10**9), Fraction(10**18 - 1, 10**18))
    assert ledger.datasets()[1].budget == Amount(10**18, 10**18 - 1)


def test_a_pure_charge_has_no_rho(ledger):
    refuses(
        ledger, "leave rho out of a pure charge", "patients", CENT, Fraction(0), 1, Fraction(1), error=ParameterError
    )


def test_an_unknown_dataset_is_refused_with_its_name(ledger, tmp_path):
    for where in (ledger, Ledger(tmp_path / "nowhere" / "ledger.sqlite")):
        words = "has no dataset 'cancer 2024'"
        refuses(where, words, "cancer 2024", CENT, Fraction(0), error=UnknownDatasetError)
        with pytest.raises(UnknownDatasetError) as refusal:
            where.check("cancer 2024", CENT, Fraction(0))
        assert refusal.value.exit_code == 4
        assert (refusal.value.name, refusal.value.ledger) == ("cancer 2024", str(where.path))
        with pytest.raises(UnknownDatasetError, match="has no dataset 'visits'"):
            where.history("visits")


def test_a_mistyped_dataset_is_shown_the_names_before_the_advice(ledger):
    for name in ("visits", "m"):
        ledger.open_dataset(name, Fraction(1))
    advice = "For a table about other people open a new one, with a budget of your choice. "
    warning = "A new name for the same people would evade the cap."
    for name, words in [
        ("Visits", "Did you mean 'visits'? It has: patients, visits, m. "),
        ("vists", "Did you mean 'visits'? It has: patients, visits, m. "),
        ("zoo", "It has: patients, visits, m. "),
    ]:
        with pytest.raises(UnknownDatasetError) as refusal:
            ledger.check(name, CENT, Fraction(0))
        begin = f"The ledger {ledger.path} has no dataset {name!r}. {words}"
        assert str(refusal.value) == f"{begin}{advice}{warning}"
        assert refusal.value.advising("Ask the steward. ") == f"{begin}Ask the steward. {warning}"
        assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_a_ledger_lists_some_names_and_counts_the_rest(ledger, tmp_path):
    with pytest.raises(LedgerError, match=r"has no dataset 'zoo'\. It has none yet\. For"):
        Ledger(tmp_path / "empty.sqlite").check("zoo", CENT, Fraction(0))
    for j in range(21):
        ledger.open_dataset(f"wave {j}", Fraction(1))
    with pytest.raises(LedgerError, match=r"It has: patients, wave 0, .*, wave 18, 2 more\. For"):
        ledger.check("zoo", CENT, Fraction(0))


def test_nothing_is_created_before_a_dataset_is_opened(tmp_path):
    ledger = Ledger(tmp_path / "a" / "b" / "ledger.sqlite")
    assert ledger.datasets() == []
    ledger.verify()
    with pytest.raises(LedgerError):
        ledger.charge("patients", CENT, Fraction(0), "p")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_only_the_owner_can_read_the_ledger(used):
    assert stat.S_IMODE(used.path.parent.stat().st_mode) == 0o700
    assert {path.name for path in used.path.parent.iterdir()} == {"ledger.sqlite", "ledger.sqlite.mark"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in used.path.parent.iterdir()} == {0o600}


NAMES = [
    "it's",
    'a "b"',
    "'; DROP TABLE events; --",
    "../../etc/passwd",
    "C:\\x",
    "Größe 患者 🙂",
    "%s{0}",
    "?mode=ro",
]


@pytest.mark.parametrize("name", [*NAMES, "n" * 200])
def test_any_printable_name_is_only_a_name(ledger, name):
    ledger.open_dataset(name, Fraction(1))
    ledger.charge(name, CENT, Fraction(0), name)
    assert [status.name for status in ledger.datasets()] == ["patients", name]
    assert [event.purpose for event in ledger.history(name)] == [None, name]
    ledger.verify()
    assert {path.name for path in ledger.path.parent.iterdir()} == {"ledger.sqlite", "ledger.sqlite.mark"}


ALIKE = [
    ("Café", "Cafe\u0301"),
    ("people", " people "),
    ("two words", "two\u00a0words"),
    ("two words", "two  \u2009words"),
]


@pytest.mark.parametrize(("name", "other"), ALIKE)
def test_names_that_look_alike_are_one_dataset(ledger, name, other):
    """Under a second name the same people would have a second cap."""
    ledger.open_dataset(other, Fraction(1))
    ledger.open_dataset(name, Fraction(1))
    ledger.charge(name, Fraction(1, 2), Fraction(0), "once")
    ledger.check(other, Fraction(1, 2), Fraction(0))
    ledger.charge(other, Fraction(1, 2), Fraction(0), "twice")
    with pytest.raises(LedgerError, match="does not cover"):
        ledger.charge(name, CENT, Fraction(0), "thrice")
    assert [status.name for status in ledger.datasets()] == ["patients", name]
    assert len(ledger.history(other)) == 3
    assert ledger.dataset(other) == ledger.dataset(name) == ledger.datasets()[1]


@pytest.mark.parametrize(
    "letter", ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u3164", "\u2800", "\ufe0f", "\u034f"]
)
def test_a_name_holds_nothing_that_nobody_sees(ledger, letter):
    with pytest.raises(ParameterError, match="text of 1 to 200 characters"):
        ledger.open_dataset("   ", Fraction(1))
    for ask in (
        lambda: ledger.open_dataset(f"patients{letter}", Fraction(1)),
        lambda: ledger.check(f"patients{letter}", CENT, Fraction(0)),
        lambda: ledger.charge(f"patients{letter}", CENT, Fraction(0), "x"),
        lambda: ledger.history(f"pati{letter}ents"),
    ):
        with pytest.raises(ParameterError, match="characters that nobody sees"):
            ask()


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\tb", "\x00", "\x1b[31m", "\x85", "a\u2028b", "a\u2029b", "\ud800", "n" * 201, None, 7]
)
def test_names_that_would_break_a_line_or_a_terminal_are_refused(ledger, tmp_path, name):
    for door in (
        lambda: ledger.open_dataset(name, Fraction(1)),
        lambda: ledger.check(name, CENT, Fraction(0)),
        lambda: ledger.charge(name, CENT, Fraction(0), "p"),
        lambda: ledger.history(name),
    ):
        with pytest.raises(ParameterError, match="name must"):
            door()
    with pytest.raises(ParameterError, match="purpose must"):
        ledger.charge("patients", CENT, Fraction(0), name)
    with pytest.raises(ParameterError, match=r"^bundle_digest must"):
        ledger.mark_released(ledger.charge("patients", CENT, Fraction(0), "p"), "")
    with pytest.raises(LedgerError, match=r"no charge with this receipt \(event 2\)"):
        Ledger(tmp_path / "elsewhere.sqlite").mark_released(ledger.history("patients")[1], "digest")


def test_events_have_their_times(used):
    times = [datetime.fromisoformat(event.time) for event in used.history("patients")]
    assert all(t.utcoffset() == timedelta(0) and abs(datetime.now(UTC) - t) < timedelta(hours=1) for t in times)
    assert [event.sequence for event in used.history("staff")] == [5, 6]


def test_the_default_path_follows_the_environment(monkeypatch, tmp_path):
    for variable in ("COVEY_LEDGER", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, variable, value, path in (  # what was set before stays
        ("linux", "HOME", tmp_path, ".local/share/covey/ledger.sqlite"),
        ("darwin", "HOME", tmp_path, "Library/Application Support/covey/ledger.sqlite"),
        ("win32", "HOME", tmp_path, "AppData/Local/covey/ledger.sqlite"),
        ("win32", "LOCALAPPDATA", tmp_path / "local", "local/covey/ledger.sqlite"),
        ("win32", "XDG_DATA_HOME", "relative", "local/covey/ledger.sqlite"),
        ("win32", "XDG_DATA_HOME", tmp_path / "xdg", "xdg/covey/ledger.sqlite"),
        ("win32", "COVEY_LEDGER", "~/mine.sqlite", "mine.sqlite"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv(variable, str(value))
        assert default_ledger_path() == tmp_path / path


def test_without_a_home_the_steward_is_asked_for_a_path(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for variable in ("COVEY_LEDGER", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(LedgerError, match=r"^No home folder is known\. Set COVEY_LEDGER to the path of the ledger\.$"):
        default_ledger_path()


LESS = "UPDATE events SET body = replace(body, '\"nano_epsilon\":20000000', '\"nano_epsilon\":1')"
DELETE = "DELETE FROM events WHERE sequence = 3"
SWAP = [
    "UPDATE events SET sequence = -2 WHERE sequence = 2",
    "UPDATE events SET sequence = 2 WHERE sequence = 3",
    "UPDATE events SET sequence = 3 WHERE sequence = -2",
]


@pytest.mark.parametrize(
    ("statements", "match"),
    [
        ([LESS], "hash of event 3"),
        (["UPDATE events SET body = replace(body, ':1000000000,', ':9000000000,')"], "event 1"),
        (["UPDATE events SET hash = upper(hash) WHERE sequence = 4"], "hash of event 4"),
        (["DELETE FROM events WHERE sequence = 6"], "older than its mark"),
        ([DELETE], "event 3 is missing"),
        (["DELETE FROM events WHERE sequence = 1"], "event 1 is missing"),
        ([DELETE, "UPDATE events SET sequence = sequence - 1 WHERE sequence > 3"], "hash of event 3"),
        (["DELETE FROM events"], "older than its mark"),
        (["INSERT INTO events SELECT 7, body, hash FROM events WHERE sequence = 6"], "hash of event 7"),
        (["INSERT INTO events SELECT 0, body, hash FROM events WHERE sequence = 1"], "event 1 is missing"),
        (SWAP, "hash of event 2"),
        (["UPDATE events SET body = CAST(body AS BLOB) WHERE sequence = 2"], "hash of event 2"),
        (["UPDATE events SET body = CAST(x'ff80' AS TEXT) WHERE sequence = 2"], "damaged"),
        (["UPDATE events SET body = CAST(x'eda080' AS TEXT) WHERE sequence = 2"], "damaged"),  # a lone surrogate
        (["UPDATE events SET hash = x'00' WHERE sequence = 2"], "hash of event 2"),
        (
            ["CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events WHERE sequence = new.sequence; END"],
            "by hand: its tables are not those that covey made. Nothing was charged",
        ),
        (["DROP TABLE events"], "tables"),
        (["PRAGMA user_version = 1"], "another version"),
        (["PRAGMA application_id = 0"], "another program"),
        (["PRAGMA journal_mode = WAL"], "by hand: its journal mode is not DELETE"),
    ],
)
def test_tampering_is_caught_by_every_method(used, statements, match):
    used.verify()
    edit(used, *statements)
    refused_everywhere(used, match)


def forge(ledger, sequence, body):
    edit(ledger, ("INSERT OR REPLACE INTO events VALUES (?, ?, '')", (sequence, body)))
    count, last = rehash(ledger)
    ledger.mark_path.write_text(json.dumps({"count": count, "hash": last}))


BASE = {"dataset": "patients", "kind": "charge", "time": "t", "purpose": "p", "atto_delta": 0, "nano_epsilon": 1}
BASE |= {"rows_per_person": 1, "composition": "sum", "neighbours": "replace-one"}
OPEN = {"dataset": "new", "kind": "open", "time": "t", "atto_delta": 0, "nano_epsilon": 1, "composition": "first"}
OPEN |= {"neighbours": "replace-one"}


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (BASE | {"nano_epsilon": 10**10}, "past its cap"),
        (BASE | {"atto_delta": 10**13}, "past its cap"),
        (BASE | {"nano_epsilon": -1}, "not one that covey writes"),
        (BASE | {"nano_epsilon": True}, "not one that covey writes"),
        (BASE | {"nano_epsilon": 0.5}, "not one that covey writes"),
        (BASE | {"rows_per_person": 0}, "in another unit"),
        (BASE | {"rows_per_person": "2"}, "not one that covey writes"),
        (BASE | {"purpose": 1}, "not one that covey writes"),
        (BASE | {"nano_epsilon": "all"}, "not one that covey writes"),
        (BASE | {"refund": 1}, "not one that covey writes"),
        (BASE | {"kind": "refund"}, "not one that covey writes"),
        (BASE | {"kind": ["open"]}, "not one that covey writes"),
        (BASE | {"dataset": "nobody"}, "the dataset 'nobody' had not been opened"),
        (BASE | {"composition": "gaussian"}, "counts 'patients' in another way"),
        (BASE | {"composition": "first"}, "not one that covey writes"),
        (BASE | {"neighbours": "nobody"}, "not one that covey writes"),
        (BASE | {"quecto_rho": 1}, "not one that covey writes"),  # Gaussian noise has a δ
        (OPEN | {"composition": "gaussian"}, "not one that covey writes"),  # a cap of δ = 0 has no μ
        (OPEN | {"composition": "other"}, "not one that covey writes"),
        (OPEN | {"dataset": "patients"}, "the dataset 'patients' was already open"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 2, "digest": "d"}, "second time"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 6, "digest": "d"}, "does not exist"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 0, "digest": "d"}, "does not exist"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 1, "digest": "d"}, "does not exist"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 7, "digest": "d"}, "does not exist"),
        ({"dataset": "patients", "kind": "release", "time": "t", "charge": 99, "digest": "d"}, "does not exist"),
        ([], "not one that covey writes"),
        ("[" * 100_000, "not one that covey writes"),
        ('{"kind":' + "9" * 5000 + "}", "not one that covey writes"),
        (json.dumps(BASE, sort_keys=True), "not one that covey writes"),
    ],
)
def test_events_that_break_the_rules_are_caught_even_with_fresh_hashes(used, body, match):
    forge(used, 7, body if isinstance(body, str) else json.dumps(body, sort_keys=True, separators=(",", ":")))
    refused_everywhere(used, match)


def test_a_well_formed_forgery_of_ledger_and_mark_is_the_documented_limit(used):
    forge(used, 7, json.dumps(BASE, sort_keys=True, separators=(",", ":")))
    used.verify()


def test_a_chain_rewritten_without_its_mark_is_caught(used):
    edit(used, LESS)
    rehash(used)
    refused_everywhere(used, "not the one that its mark describes")


def test_an_older_copy_of_the_ledger_is_recognised(ledger):
    ledger.charge("patients", CENT, Fraction(0), "first")
    older, newest = ledger.path.read_bytes(), None
    ledger.charge("patients", CENT, Fraction(0), "second")
    newest = ledger.path.read_bytes()
    ledger.path.write_bytes(older)
    refused_everywhere(
        ledger,
        "older than its mark: it holds 2 events, its mark .* says 3.*Put the newest copy back. If it is lost, count what is "
        r"missing as spent: start a new ledger \(COVEY_LEDGER\) with caps lowered by everything released so far.$",
    )
    ledger.path.write_bytes(newest)
    ledger.charge("patients", CENT, Fraction(0), "third")
    assert spent(ledger) == Amount(3 * 10**7)


@pytest.mark.parametrize("vanish", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_deleted_ledger_does_not_start_afresh(ledger, vanish):
    vanish(ledger.path)
    refused_everywhere(ledger, "older than its mark: it holds 0 events")


def test_a_missing_old_or_damaged_mark_is_noticed(used):
    mark = json.loads(used.mark_path.read_text())
    assert mark["count"] == 6
    used.mark_path.unlink()
    refused_everywhere(used, "mark of the ledger .* is missing or old")
    for count in (1, 4):
        used.mark_path.write_text(json.dumps({"count": count, "hash": used_hash(used, count)}))
        refused_everywhere(
            used, f"mark of the ledger .* is missing or old: it holds 6 events, its mark .* says {count}"
        )
    used.mark_path.write_text(json.dumps({"count": 5, "hash": used_hash(used, 5)}))
    used.verify()  # a process that dies between ledger and mark leaves it so
    for damage in (b"", b"\xff", b"[]", b"7", b'{"count":6}', b'{"count":"6","hash":""}', b'{"count":-1,"hash":""}'):
        used.mark_path.write_bytes(damage)
        refused_everywhere(used, "mark .* is damaged")
    used.mark_path.write_text(json.dumps(mark))
    used.verify()


def used_hash(ledger, sequence):
    connection = sqlite3.connect(ledger.path)
    (value,) = connection.execute("SELECT hash FROM events WHERE sequence = ?", (sequence,)).fetchone()
    connection.close()
    return value


def test_a_file_with_damaged_pages_is_found_by_verify(used, monkeypatch):
    """An index entry that is not there: events read well, and only SQLite's own check can tell."""
    connect = LedgerFile._connect

    class Doubtful:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *rest):
            if "integrity_check" in statement.lower():
                return [("wrong # of entries in index",)]
            return self.connection.execute(statement, *rest)

        def close(self):
            self.connection.close()

    monkeypatch.setattr(LedgerFile, "_connect", lambda self: Doubtful(connect(self)))
    used.datasets()
    with pytest.raises(LedgerError, match=r"changed by hand: wrong # of entries in index. Nothing was charged"):
        used.verify()


def test_a_file_that_disappears_while_a_dataset_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(LedgerFile, "_create", lambda self: None)
    with pytest.raises(LedgerError, match=r"^The ledger's file disappeared while it was being opened\. Try again\.$"):
        Ledger(tmp_path / "ledger.sqlite").open_dataset("patients", Fraction(1))


def test_every_connection_is_careful_and_creates_no_file(ledger, tmp_path):
    with pytest.raises(sqlite3.OperationalError):
        LedgerFile(tmp_path / "ledger.sqlite")._connect()
    assert list(tmp_path.iterdir()) == [ledger.path.parent]
    connection = ledger._connect()
    settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "cell_size_check")}
    assert settings == {"synchronous": 3, "cell_size_check": 1}  # 3 is EXTRA
    assert connection.execute("PRAGMA busy_timeout").fetchone()[0] == 5000
    assert connection.isolation_level is None  # no transaction that Python begins on its own
    connection.close()


def test_a_file_that_another_process_creates_meanwhile_is_used(tmp_path, monkeypatch):
    ledger, look = Ledger(tmp_path / "deep" / "er" / "ledger.sqlite"), LedgerFile._missing

    def late(self):
        answer = look(self)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch(mode=0o600)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "_missing", late)
        ledger._create()
    ledger.open_dataset("patients", Fraction(1))
    assert len(ledger.datasets()) == 1
    deep = Ledger(tmp_path / "a" / "b" / "c" / "ledger.sqlite")
    deep.open_dataset("patients", Fraction(1))
    assert len(deep.datasets()) == 1


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be flushed elsewhere")
def test_the_mark_and_its_folder_reach_the_disk(ledger, monkeypatch):
    flushed, real = [], os.fsync

    def watched(descriptor):
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}") if sys.platform == "linux" else descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    ledger.charge("patients", CENT, Fraction(0), "p")
    assert len(flushed) == 2  # SQLite flushes its own files
    if sys.platform == "linux":
        assert flushed == [f"{ledger.mark_path}.new", str(ledger.path.parent)]
    assert ledger.mark_path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("content", [b"xy", b"not a database\n" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path, content):
    other = Ledger(tmp_path / "bookmarks.sqlite")
    edit(other, "CREATE TABLE bookmarks (url)")
    before = other.path.read_bytes()
    refused_everywhere(other, "another program")
    assert other.path.read_bytes() == before
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.path.write_bytes(content)
    refused_everywhere(
        ledger,
        "is damaged or was changed by hand: it is not an SQLite file. Nothing was charged. Put back the newest intact copy "
        "together with its mark, and do not release until then.$",
    )
    assert ledger.path.read_bytes() == content


def test_damaged_bytes_never_raise_anything_but_a_ledger_error(used):
    whole, stream = used.path.read_bytes(), random.Random(1)
    truth = used.datasets()
    caught = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(stream.choice([1, 8, 64])):
            damaged[stream.randrange(len(damaged))] = stream.randrange(256)
        used.path.write_bytes(damaged if stream.random() < 0.8 else damaged[: stream.randrange(1, len(damaged))])
        try:
            assert used.datasets() == truth  # bytes that no event uses may change
        except LedgerError:
            caught += 1
    assert caught > 50


def test_a_lock_is_waited_for_and_then_reported(ledger, monkeypatch):
    assert module.LOCK_TIMEOUT_S == 5
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 0.1)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    refused_everywhere(
        ledger,
        "is locked by another process, for more than 0.1 seconds. "
        "Nothing was charged; wait until that process ends and try again.$",
    )
    holder.close()
    ledger.charge("patients", CENT, Fraction(0), "free again")


def test_a_reader_that_will_not_leave_blocks_a_charge_without_a_trace(ledger, monkeypatch):
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 0.1)
    reader = sqlite3.connect(ledger.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM events").fetchall()
    with pytest.raises(LedgerError, match="locked"):
        ledger.charge("patients", CENT, Fraction(0), "blocked")
    reader.close()
    assert spent(ledger) == Amount()
    ledger.verify()


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_read_only_ledger_can_be_read_and_not_charged(ledger, which):
    place, mode = (ledger.path, 0o400) if which == "file" else (ledger.path.parent, 0o500)
    place.chmod(mode)
    try:
        refuses(ledger, r"read-only.*chmod", "patients", CENT, Fraction(0))
        ledger.verify()
        assert spent(ledger) == Amount()
    finally:
        place.chmod(0o700)


def test_what_sqlite_says_is_put_into_words(ledger):
    for name, match in [
        ("SQLITE_READONLY_DBMOVED", "cannot be read or written"),
        ("SQLITE_FULL", "cannot be read or written .*make room"),
        ("SQLITE_IOERR_FSYNC", "cannot be read or written"),
        ("SQLITE_CANTOPEN", "cannot be read or written"),
        ("SQLITE_BUSY_SNAPSHOT", "locked"),
        ("SQLITE_CORRUPT_VTAB", "by hand: words. Nothing"),
        ("SQLITE_NOTADB", "it is not an SQLite file"),
        ("SQLITE_BUSY", "for more than 5 seconds. Nothing was charged; wait until that process ends and try again.$"),
    ]:
        error = sqlite3.OperationalError("words")
        error.sqlite_errorcode = getattr(sqlite3, name)
        with pytest.raises(LedgerError, match=match), ledger._errors_explained():
            raise error


def test_folders_and_files_in_the_wrong_place_are_refused(tmp_path):
    (tmp_path / "ledger.sqlite").mkdir()
    refused_everywhere(Ledger(tmp_path / "ledger.sqlite"), "is a folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path / "file" / "ledger.sqlite").open_dataset("patients", Fraction(1))


def test_a_full_disk_after_the_commit_leaves_the_charge_and_says_so(ledger, monkeypatch):
    def full(self, count, last):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "_write_mark", full)
        with pytest.raises(LedgerError, match="Event 2 is in the ledger and stays"):
            ledger.charge("patients", CENT, Fraction(0), "first")
        assert spent(ledger) == Amount(10**7)
        # The mark is one behind now. It must catch up first, so a second charge is refused before it is written.
        with pytest.raises(LedgerError, match="cannot be used"):
            ledger.charge("patients", CENT, Fraction(0), "second")
        assert spent(ledger) == Amount(10**7)
    written, write = [], LedgerFile._write_mark

    def watched(self, count, last):
        written.append((count, last))
        write(self, count, last)

    monkeypatch.setattr(LedgerFile, "_write_mark", watched)
    ledger.charge("patients", CENT, Fraction(0), "third")
    assert written == [(2, used_hash(ledger, 2)), (3, used_hash(ledger, 3))]
    assert json.loads(ledger.mark_path.read_text())["count"] == 3
    ledger.verify()


def test_the_lock_is_held_until_the_mark_is_written(ledger, monkeypatch):
    write, seen = LedgerFile._write_mark, []

    def watched(self, count, last):
        other = sqlite3.connect(self.path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM events")
        other.close()
        seen.append(count)
        write(self, count, last)

    monkeypatch.setattr(LedgerFile, "_write_mark", watched)
    ledger.charge("patients", CENT, Fraction(0), "first")
    ledger.charge("patients", CENT, Fraction(0), "second")
    assert seen == [2, 3]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize(
    ("moment", "charged"),
    [("LedgerFile._commit = die", 0), ("LedgerFile._write_mark = die", 1), ("os.replace = die", 1)],
)
def test_death_around_the_commit_leaves_a_whole_charge_or_none(ledger, moment, charged):
    script = "def die(*arguments): os.kill(os.getpid(), 9)\n" + moment
    script += "\nledger.charge('patients', Fraction(1, 100), Fraction(0), 'p')"
    with start(script, ledger.path) as process:
        assert process.wait(600) == -signal.SIGKILL
    ledger.verify()
    assert spent(ledger) == Amount(10**7 * charged)
    ledger.charge("patients", CENT, Fraction(0), "after")
    assert json.loads(ledger.mark_path.read_text())["count"] == charged + 2
    ledger.verify()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_kills_at_random_moments_never_leave_less_spent_than_released(tmp_path):
    kills = int(os.environ.get("COVEY_KILLS", KILLS))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("patients", Fraction(1000))
    script = """
released = os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
print("ready", flush=True)
while True:
    receipt = ledger.charge("patients", Fraction(1, 100), Fraction(0), "killed")
    os.write(released, b"%d\\n" % receipt.sequence)
    os.fsync(released)
"""
    published, stream, journals, behind = tmp_path / "released", random.Random(), 0, 0
    for kill in range(1, kills + 1):
        with start(script, ledger.path, published) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(stream.uniform(0, 0.05))
            process.kill()
            assert process.wait(600) == -signal.SIGKILL
        journals += os.path.exists(f"{ledger.path}-journal")
        ledger.verify()
        charged = {event.sequence for event in ledger.history("patients") if event.kind == "charge"}
        behind += json.loads(ledger.mark_path.read_text())["count"] < len(charged) + 1
        released = [int(line) for line in published.read_text().split()] if published.exists() else []
        assert set(released) <= charged
        assert len(set(released)) == len(released)
        assert spent(ledger) == Amount(10**7 * len(charged))
        assert len(charged) - len(released) <= kill  # one at most is lost by a death
    print(
        f"{kills} kills: {len(charged)} charged, {len(released)} released, {journals} journals, {behind} marks behind"
    )
    ledger.charge("patients", CENT, Fraction(0), "still usable")
    ledger.verify()


def test_a_crowd_of_processes_spends_exactly_the_budget(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    price = Fraction(1, 3000)  # 333334 nano-ε: 60 fit, and not one more; at its exact price the 61st would
    ledger.open_dataset("patients", Fraction(333_334 * AFFORDABLE + 333_333, 10**9))
    script = """
sys.stdin.readline()
paid = 0
for attempt in range(int(sys.argv[2])):
    while True:
        try:
            ledger.charge("patients", Fraction(1, 3000), Fraction(0), "crowd")
            paid += 1
        except LedgerError as error:
            if "locked" in str(error):
                continue
            assert "does not cover" in str(error), error
        break
print(paid)
"""
    crowd = [start(script, ledger.path, ATTEMPTS) for _ in range(PROCESSES)]
    for process in crowd:
        process.stdin.write("go\n")
        process.stdin.flush()
    paid = [int(process.communicate(timeout=600)[0]) for process in crowd]
    assert [process.returncode for process in crowd] == [0] * PROCESSES
    assert sum(paid) == AFFORDABLE
    (status,) = ledger.datasets()
    assert status.charges == AFFORDABLE
    assert status.spent == Amount(AFFORDABLE * Amount.rounded_up(price, Fraction(0)).nano_epsilon)
    assert status.spent.within(status.budget)
    ledger.verify()


def test_threads_that_open_and_charge_together_agree(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    receipts, errors = [], []

    def work():
        try:
            ledger.open_dataset("patients", Fraction(1))
            receipts.extend(ledger.charge("patients", CENT, Fraction(0), "thread") for _ in range(5))
            ledger.datasets()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(receipt.sequence for receipt in receipts) == list(range(2, 42))
    ledger.verify()


@pytest.mark.parametrize("url", ["postgresql://desk/ledger", "postgresql:/desk/ledger", "https://host/x", "s3://b/k"])
def test_a_url_is_no_path_of_a_ledger(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", url)
    with pytest.raises(LedgerError, match="is a URL"):
        Ledger(url)
    result = run("ledger", "open", "people", "--budget", "1")
    assert (result.exit_code, list(tmp_path.iterdir())) == (4, [])
