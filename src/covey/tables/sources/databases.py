"""Tables and queries of PostgreSQL and SQLite, in batches, through ADBC.

A source holds one connection with one read-only transaction, so that every reading sees the same snapshot, however many others
write meanwhile. Cells come as the text that a CSV export would hold, except where the field's type lets a number, a flag or a
time travel as it is without another meaning: a table and its export give the same codes.

What the server says about a failed connection may quote parts of the URL, so it is never repeated.
"""

from __future__ import annotations

import os
import re
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from covey.errors import InputError, ParameterError, optional
from covey.libraries import pa, pl
from covey.tables.columns import Table, bounded, match, part_rows
from covey.tables.rules import Domain

BATCH_BYTES = 1 << 23  # of a batch of PostgreSQL, about: it holds several batches in memory
SQLITE_ROWS = 1 << 15  # as many of it

SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_LOGIN, _PASSWORD = re.compile(r"(:/+).*@", re.DOTALL), re.compile(r"(password=)[^&\s]+", re.IGNORECASE)
_NAME_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'

# PostgreSQL's types that may come as they are, and for which types of fields (None: there is no schema yet).
_WHOLE = ("integer", "number", "boolean", "string", None)
_TIMES = ("date", "datetime", None)
_NATIVE: dict[str, tuple[str | None, ...]] = {
    "int2": _WHOLE,
    "int4": _WHOLE,
    "int8": _WHOLE,
    "float8": ("integer", "number", None),
    "bool": ("boolean", None),
    "timestamp": _TIMES,
    "timestamptz": _TIMES,
}

# Text as an export in UTF-8 and UTC has it. Without the last two, LIMIT could pick other rows in each reading.
_SETTINGS = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
}

_REASONS = (
    ("password authentication failed", "it refuses the user or the password"),
    ("no password supplied", "it wants a password; set PGPASSWORD or write it to ~/.pgpass"),
    ("pg_hba.conf", "it does not admit this user from here"),
    ("does not exist", "it has no such database or user"),
    ("connection refused", "nothing answers at that address"),
    ("translate host name", "its host name is unknown"),
    ("no such file", "nothing answers at that address"),
    ("timeout", "it does not answer in time"),
    ("starting up", "it is just starting up"),
    ("too many", "it has no connection left"),
    ("ssl", "no encrypted connection could be made"),
    ("invalid", "the URL is not well formed; special characters in it are written %XX"),
)


@dataclass(frozen=True)
class Database:
    """A table, or the rows of a query, in PostgreSQL or SQLite; `prepare` and `fit` take it as they take a frame.

    Args:
        url: `postgresql://user@host:port/database`, `sqlite:///file.db` (four slashes for an absolute path), or the path of
            an SQLite file. A password is better kept in PGPASSWORD or ~/.pgpass than in the URL; it is never shown.
        table: the table or view, `name` or `schema.name`; parts that contain a dot are put in double quotes.
        query: one SELECT instead. The guarantee is about its rows: each should depend on one person's data alone, as it
            does without joins, groups and windows across persons. It must give the same rows whenever it is asked.
    """

    url: str = field(repr=False)
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.url, str | Path):
            raise ParameterError(f"url must be text, got {type(self.url).__name__}.")
        object.__setattr__(self, "url", str(self.url))
        scheme = _URL.match(self.url)
        if scheme and (
            scheme[1] not in ("postgresql", "postgres", "sqlite") or not self.url[scheme.end() :].startswith("/")
        ):
            raise ParameterError(f"covey reads postgresql://… and sqlite:///…, not {scheme[1] + ':'!r}.")
        if (self.table is None) == (self.query is None):
            raise ParameterError("a database needs table or query (--table NAME or --query SQL): give one of them.")
        if "\0" in self.url + (self.table or "") + (self.query or ""):
            raise ParameterError("a URL, table or query has no NUL bytes.")
        if self.path is not None and self.path.name == "":
            raise ParameterError("sqlite:///… names a file, for example sqlite:///visits.db.")
        _ = self.relation

    @property
    def origin(self) -> str:
        """Postgresql or sqlite."""
        return "postgresql" if self.url.startswith("postgres") and _URL.match(self.url) else "sqlite"

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database."""
        if self.origin != "sqlite":
            return None
        if not _URL.match(self.url):
            return Path(self.url)
        return Path(self.url.removeprefix("sqlite://").removeprefix("/"))

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        if self.query is not None:
            return f"({self.query.rstrip().rstrip(';')}\n) AS t"  # a comment at the end ends with its line
        if not re.fullmatch(rf"{_NAME_PART}(\.{_NAME_PART})*", self.table or ""):
            raise ParameterError(f"table must be a name or schema.name, got {self.table!r}.")
        parts = (found[0] for found in re.finditer(_NAME_PART, self.table or ""))
        return ".".join(part if part.startswith('"') else quoted(part) for part in parts)

    def __repr__(self) -> str:
        what = f"table={self.table!r}" if self.table is not None else f"query={self.query!r}"
        return f"Database({self.origin}, {redacted(what)})"


def is_database(source: Any) -> bool:
    """Whether a text or path names a database rather than a file with one table."""
    named = isinstance(source, str | Path)
    return named and (_URL.match(str(source)) is not None or Path(source).suffix.lower() in SQLITE_SUFFIXES)


def quoted(name: str) -> str:
    """An identifier exactly as it is, whatever it contains."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def redacted(text: str) -> str:
    """Text without the user and password of any URL in it."""
    return _PASSWORD.sub(r"\1…", _LOGIN.sub(r"\1…@", text))


class DatabaseTable:
    """The needed columns of a table or query, as record batches."""

    def __init__(self, database: Database, schema: Domain | None) -> None:
        self.origin = database.origin
        self._database = database
        self._connection = self._connect()
        weakref.finalize(self, _close, self._connection)
        with self._guard():
            columns = self._look()
        if not columns:
            raise InputError("the table has no columns.")
        self._places, self.ignored, twice = match([name for name, _ in columns], schema)
        if twice:
            raise InputError(f"two columns would be called {twice[0].rpartition('_')[0]!r}. Rename one: … AS name.")
        types = {} if schema is None else {f.name: f.type for f in schema.fields}
        chosen = [(*columns[j], types.get(name)) for name, j in self._places.items()] or [(*columns[0], None)]
        written = ", ".join(self._written(*column) for column in chosen)
        # Names are quoted; a query is the steward's own, and runs read-only.
        self._sql = f"SELECT {written} FROM {database.relation}"  # nosec B608

    def parts(self) -> Iterator[Any]:
        """Record batches of bounded length; the query runs again, in the same snapshot."""
        with self._guard(), closing(self._connection.cursor()) as cursor:
            size = {"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)}
            if self.origin == "sqlite":
                size = {"adbc.sqlite.query.batch_rows": str(SQLITE_ROWS)}
            cursor.adbc_statement.set_options(**size)
            cursor.execute(self._sql)
            with cursor.fetch_record_batch() as batches:
                for batch in batches:
                    rows = part_rows(batch.num_columns)
                    for start in range(0, len(batch), rows):
                        yield batch.slice(start, rows)

    def table(self, part: Any) -> Table:
        """The needed columns of a batch."""
        with self._guard():
            columns = {name: _column(part.column(at)) for at, name in enumerate(self._places)}
        return bounded(Table(columns, len(part), self.origin, ignored=self.ignored))

    def _connect(self) -> Any:
        """A connection inside a read-only transaction that keeps its snapshot."""
        if self._database.path is not None:
            dbapi = optional("adbc_driver_sqlite.dbapi", "database")
            address, begin = f"file:{quote(os.path.abspath(self._database.path))}?mode=ro", "BEGIN"
        else:
            dbapi = optional("adbc_driver_postgresql.dbapi", "database")
            address, begin = self._database.url, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        try:
            connection = dbapi.connect(address, autocommit=True)
        except (dbapi.Error, OSError, ValueError) as error:
            raise InputError(self._unreachable(str(error))) from None
        try:
            with self._guard():
                self._say(connection, begin)
                if self.origin == "postgresql":
                    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
                    self._say(connection, f"SELECT {settings}")
        except BaseException:
            _close(connection)
            raise
        return connection

    @staticmethod
    def _say(connection: Any, sql: str) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(sql)

    def _look(self) -> list[tuple[str, str]]:
        """Names and types of the columns, without reading a row."""
        sql = f"SELECT * FROM {self._database.relation}"  # nosec B608 # as above
        with closing(self._connection.cursor()) as cursor:
            if self.origin == "postgresql":
                fields = cursor.adbc_execute_schema(sql)
                return [(f.name, (f.metadata or {}).get(b"POSTGRESQL:type", b"").decode()) for f in fields]
            # SQLite would run the first of several statements and drop the others without a word.
            ends = [at + 1 for at, letter in enumerate(sql) if letter == ";"]
            if any(sqlite3.complete_statement(sql[:end]) for end in ends):
                raise InputError("the query holds more than one statement. Give one SELECT.")
            cursor.execute(f"{sql} LIMIT 0")
            with cursor.fetch_record_batch() as batches:
                names = list(batches.schema.names)
        # SQLite calls the second of two columns a of a query "a:1", and sees no capitals.
        bare = [re.sub(r":\d+$", "", name).lower() for name in names]
        if self._database.query is not None and len(set(bare)) < len(bare):
            raise InputError("the query gives two columns of the same name. Rename one: … AS other.")
        return [(name, "") for name in names]

    def _written(self, name: str, stored: str, wanted: str | None) -> str:
        """A column in the SELECT list."""
        column = quoted(name)
        if self.origin == "sqlite":
            # Each cell has its own type. ADBC wants one per column and takes it from the first rows, so all come as text.
            plain = f"CASE typeof({column}) WHEN 'real' THEN quote({column}) ELSE CAST({column} AS TEXT) END"
            return f"coalesce({plain}, '')"
        if stored not in _NATIVE or wanted not in _NATIVE[stored]:
            return f"{column}::text"
        if _NATIVE[stored] is _TIMES:  # what ISO 8601 cannot say, as infinity, is missing in every source
            bounds = "'0001-01-01' AND '9999-12-31 23:59:59.999999'"
            return f"CASE WHEN {column} BETWEEN {bounds} THEN {column} END"
        return column

    def _unreachable(self, said: str) -> str:
        if self.origin == "sqlite":
            return f"{self._database.path} cannot be opened as an SQLite database."
        reason = next((words for mark, words in _REASONS if mark in said.lower()), "the connection failed")
        return f"the PostgreSQL server cannot be read: {reason}. Check the URL."

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """What the database refuses is an InputError of one line."""
        broken = optional("adbc_driver_manager", "database").Error, OSError, ValueError, NotImplementedError
        try:
            yield
        except InputError:
            raise
        except broken as error:
            what = "the query" if self._database.table is None else f"the table {self._database.table}"
            raise InputError(redacted(f"{what} cannot be read: {_reason(str(error))}.")) from None


def _column(values: Any) -> pl.Series:
    if not pa.types.is_string(values.type):
        return pl.Series(values)
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:  # SQLite does not promise UTF-8
        cells = values.cast("binary").to_pylist()
        words = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
        values = pa.array(words, pa.string())
    series = pl.Series(values)
    return series.set(series.str.len_bytes() == 0, None)  # as in CSV


def _reason(said: str) -> str:
    """The heart of a driver's message."""
    found = re.search(r"(?:ERROR|FATAL):\s*(.+)", said) or re.search(r"([^\]\n]+)(?:\n|$)", said)
    return found[1].strip().rstrip(".") if found else "the database broke off"


def _close(connection: Any) -> None:
    try:
        connection.close()
    except Exception:  # it is lost already, and nothing was written
        return
