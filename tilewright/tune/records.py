"""Records of measurements in an SQLite file: append-only, for several writers at once.

A record says which workload was measured on which target, the trace, the times or why there are
none, when, and by which versions. A record with a `baseline` is a paired comparison: both ran
interleaved, and `baseline_times` are those of the baseline. It is written in one transaction with
write-ahead logging, so that a process killed at any moment loses only what it was measuring. A
record is identified by a hash of its content; adding one a second time changes nothing, so merging
and importing are idempotent.

Records name workloads by hashes; the texts are in the file as well, each once.

Exported, records and texts are lines of JSON. Every line carries the number of the format, as lines
of several files may be put together; one without a number may be of any format, and is refused.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.core.errors import TuneError

# Traces of format 2 use names of primitives and annotations that there are no more.
FORMAT = 3
# Seconds that a writer waits for the lock of another.
LOCK_TIMEOUT = 60.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  trace TEXT NOT NULL,
  times TEXT NOT NULL,
  failure TEXT NOT NULL,
  measured_at REAL NOT NULL,
  versions TEXT NOT NULL,
  conditions TEXT NOT NULL,
  baseline TEXT NOT NULL,
  baseline_times TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_task ON records (workload, target);
CREATE INDEX IF NOT EXISTS comparisons ON records (target) WHERE baseline != '';
CREATE TABLE IF NOT EXISTS workloads (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
"""
# Files that were made before there were sessions in them get the table when they are written.
_SESSIONS = """
CREATE TABLE IF NOT EXISTS sessions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  model TEXT NOT NULL,
  dims TEXT NOT NULL,
  sizes TEXT NOT NULL
)
"""
_COLUMNS = (
    "workload, target, trace, times, failure, measured_at, versions, conditions, "
    "baseline, baseline_times"
)
_INSERT = f"INSERT OR IGNORE INTO records (id, {_COLUMNS}) VALUES ({','.join('?' * 11)})"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Record:
    """One measurement; times in seconds, `measured_at` in seconds since 1970.

    `conditions` are what else the times depend on, such as the number of threads: times under
    others are not comparable.
    """

    workload: str
    target: str
    trace: str
    times: tuple[float, ...]
    failure: str
    measured_at: float
    versions: Pairs
    conditions: Pairs = ()
    baseline: str = ""
    baseline_times: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """The same for records that say the same, on every machine."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def as_json(self) -> str:
        """One line."""
        pairs = {"versions": dict(self.versions), "conditions": dict(self.conditions)}
        return _line({**asdict(self), **pairs})


@dataclass(frozen=True)
class TunedSizes:
    """What a session tuned: a model compiled for `dims`, measured where others have `sizes`."""

    model: str
    dims: Mapping[str, int]
    sizes: Mapping[str, int]


class Records:
    """The records in one file; a context manager, as it keeps the file open.

    The file is made if there is none, unless it is only to be read.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        if read_only and not path.is_file():
            raise TuneError(
                "records.missing", f"there is no file {path}", help="`tilewright tune` makes one"
            )
        with self._explained():
            self._db = self._connected()
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _connected(self) -> sqlite3.Connection:
        """The file opened; a reader whose folder cannot be written reads it as it is."""
        address = self.path.absolute().as_uri()
        if not self._read_only:
            return _opened(address)
        db = _opened(f"{address}?mode=ro")
        try:
            db.execute("PRAGMA user_version")
        except sqlite3.OperationalError:
            db.close()
            return _opened(f"{address}?immutable=1")
        return db

    def _write_ahead(self) -> None:
        """Switch to write-ahead logging; for this SQLite itself does not wait for a lock."""
        start = time.monotonic()
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() - start > LOCK_TIMEOUT:
                    raise
                time.sleep(0.01)

    def _prepare(self) -> None:
        """Make the tables; several processes may come here at once with a new file."""
        if not self._read_only:
            self._write_ahead()
            self._db.execute("PRAGMA synchronous = FULL")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0 and self._read_only:
            raise TuneError(
                "records.missing",
                f"{self.path} has no records",
                help="`tilewright tune` makes them",
            )
        if version not in (0, FORMAT):
            raise TuneError(
                "records.version",
                f"{self.path} has format {version}, this tilewright reads {FORMAT}",
                help="use the version of tilewright that wrote it, or measure again in a new file",
            )
        if version == 0:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;"
            )

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def add(self, records: Iterable[Record], workloads: Mapping[str, str] | None = None) -> int:
        """Write records and texts of workloads, all or none; how many records were new."""
        rows = [(record.id, *_row(record)) for record in records]
        texts = list((workloads or {}).items())
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR IGNORE INTO workloads VALUES (?,?)", texts)
                before = self._db.total_changes
                self._db.executemany(_INSERT, rows)
                new = self._db.total_changes - before
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # after some errors SQLite has rolled back itself
                    self._db.execute("ROLLBACK")
                raise
            return new

    def add_session(self, session: TunedSizes) -> None:
        """Note which model was tuned, and for which sizes."""
        row = (session.model, json.dumps(dict(session.dims)), json.dumps(dict(session.sizes)))
        with self._explained():
            self._db.execute(_SESSIONS)
            self._db.execute("INSERT INTO sessions (model, dims, sizes) VALUES (?,?,?)", row)

    def last_session(self, model: str) -> TunedSizes | None:
        """The sizes that a model of this name was last tuned for, if it was."""
        query = "SELECT dims, sizes FROM sessions WHERE model = ? ORDER BY number DESC LIMIT 1"
        with self._explained():
            there = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sessions'")
            found = self._db.execute(query, (model,)).fetchone() if there.fetchone() else None
        return None if found is None else TunedSizes(model, *map(json.loads, found))

    def of(self, workload: str, target: str) -> list[Record]:
        """All records of a task in the order in which they were written: where to resume from."""
        return self._select("WHERE workload = ? AND target = ?", workload, target)

    def comparisons(self, target: str | None = None) -> list[Record]:
        """The records that have a baseline, of one target or of all."""
        if target is None:
            return self._select("WHERE baseline != ''")
        return self._select("WHERE baseline != '' AND target = ?", target)

    def workloads(self) -> dict[str, str]:
        """The texts of workloads by their hashes."""
        with self._explained():
            return dict(self._db.execute("SELECT hash, text FROM workloads ORDER BY hash"))

    def __iter__(self) -> Iterator[Record]:
        return iter(self._select(""))

    def __len__(self) -> int:
        with self._explained():
            (count,) = self._db.execute("SELECT COUNT(*) FROM records").fetchone()
        return int(count)

    def merge(self, other: Records) -> int:
        """Take over what another file has and this one has not; how many that were."""
        return self.add(other, other.workloads())

    def export_lines(self, write: Callable[[str], object]) -> int:
        """Write the texts of workloads, then every record, as lines of JSON; how many records."""
        texts = [_line({"workload": key, "text": t}) for key, t in self.workloads().items()]
        lines = [record.as_json() for record in self]
        write("".join(f"{line}\n" for line in (*texts, *lines)))
        return len(lines)

    def import_lines(self, lines: Iterable[str], source: str = "") -> int:
        """Add records from lines of JSON, all or none; how many were new."""
        found = [_parsed(line, n, source) for n, line in enumerate(lines, 1) if line.strip()]
        records = [one for one in found if isinstance(one, Record)]
        return self.add(records, dict(one for one in found if not isinstance(one, Record)))

    def _select(self, where: str, *values: str) -> list[Record]:
        with self._explained():
            query = f"SELECT {_COLUMNS} FROM records {where} ORDER BY number"
            return [_record(row) for row in self._db.execute(query, values)]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise TuneError(
                "records.file",
                f"cannot use {self.path} for records: {error}",
                help="see that it is a file of records, may be written, and its disk is not full",
            ) from error


def _opened(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, timeout=LOCK_TIMEOUT, isolation_level=None, uri=True)


def _row(record: Record) -> tuple[str | float, ...]:
    return (
        record.workload,
        record.target,
        record.trace,
        json.dumps(record.times),
        record.failure,
        record.measured_at,
        json.dumps(dict(record.versions), sort_keys=True),
        json.dumps(dict(record.conditions), sort_keys=True),
        record.baseline,
        json.dumps(record.baseline_times),
    )


def _record(row: tuple[Any, ...]) -> Record:
    workload, target, trace, times, failure, when, versions, conditions, *compared = row
    baseline, baseline_times = compared
    return Record(
        workload,
        target,
        trace,
        tuple(json.loads(times)),
        failure,
        when,
        _pairs(json.loads(versions)),
        _pairs(json.loads(conditions)),
        baseline,
        tuple(json.loads(baseline_times)),
    )


_TEXTS = ("workload", "target", "trace", "failure", "baseline")


def _line(data: dict[str, Any]) -> str:
    return json.dumps({"format": FORMAT, **data}, sort_keys=True)


def _parsed(line: str, number: int, source: str) -> Record | tuple[str, str]:
    """A record, or the hash and the text of a workload."""
    where = f"line {number}{f' of {source}' if source else ''}"
    try:
        data = json.loads(line)
        if "workload" in data:
            _check_format(data.pop("format", None), where)
        if {*data} == {"workload", "text"}:
            return str(data["workload"]), str(data["text"])
        if {*data} != {f.name for f in fields(Record)}:
            raise ValueError("not the fields of a record")
        if not all(isinstance(data[name], str) for name in _TEXTS):
            raise ValueError("numbers where there should be text")
        return Record(
            data["workload"],
            data["target"],
            data["trace"],
            tuple(float(time) for time in data["times"]),
            data["failure"],
            float(data["measured_at"]),
            _pairs(data["versions"]),
            _pairs(data["conditions"]),
            data["baseline"],
            tuple(float(time) for time in data["baseline_times"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TuneError(
            "records.line",
            f"{where} is no record: {error}",
            help="give lines that were exported from records",
        ) from error


def _check_format(version: object, where: str) -> None:
    if version != FORMAT:
        found = "no format number" if version is None else f"format {version}"
        raise TuneError(
            "records.version",
            f"{where} has {found}, this tilewright reads {FORMAT}",
            help="import it with the version of tilewright that exported it, or measure again",
        )


def _pairs(pairs: dict[str, str]) -> Pairs:
    return tuple(sorted((str(name), str(text)) for name, text in pairs.items()))
