"""What was measured, kept in a file of SQLite: append-only, for several writers at once.

A record says which workload was measured on which target, the trace, the times or why there are
none, when, and by which versions. It is written in one transaction and with the log written ahead,
so that a process killed at any moment loses what it was measuring and nothing else. A record is
known by a hash of all that it says; adding one a second time changes nothing, which is what makes
merging and importing safe to repeat.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType

from tilewright.core.errors import TuneError

FORMAT = 1
# Seconds that a writer waits for others.
PATIENCE = 60.0
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
  versions TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_task ON records (workload, target);
"""
_COLUMNS = "workload, target, trace, times, failure, measured_at, versions"


@dataclass(frozen=True)
class Record:
    """One measurement; times in seconds, `measured_at` in seconds since 1970."""

    workload: str
    target: str
    trace: str
    times: tuple[float, ...]
    failure: str
    measured_at: float
    versions: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        """The same for records that say the same, on every machine."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def as_json(self) -> str:
        """One line."""
        return json.dumps({**asdict(self), "versions": dict(self.versions)}, sort_keys=True)


class Records:
    """The records in one file; a context manager, as it keeps the file open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            self._db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            self._prepare()

    def _prepare(self) -> None:
        """Make the tables; several processes may come here at once with a new file."""
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, FORMAT):
            raise TuneError(
                "records.version",
                f"{self.path} has format {version}, this tilewright reads {FORMAT}",
                help="use the version of tilewright that wrote it",
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

    def add(self, records: Iterable[Record]) -> int:
        """Write records, all or none of them; how many were new."""
        rows = [(record.id, *_row(record)) for record in records]
        with self._explained():
            before = self._db.total_changes
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    f"INSERT OR IGNORE INTO records (id, {_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", rows
                )
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # after some errors SQLite has rolled back itself
                    self._db.execute("ROLLBACK")
                raise
            return self._db.total_changes - before

    def of(self, workload: str, target: str) -> list[Record]:
        """All records of a task in the order in which they were written: where to resume from."""
        return self._select("WHERE workload = ? AND target = ?", workload, target)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._select(""))

    def __len__(self) -> int:
        with self._explained():
            (count,) = self._db.execute("SELECT COUNT(*) FROM records").fetchone()
        return int(count)

    def merge(self, other: Records) -> int:
        """Take over what another file has and this one has not; how many that were."""
        return self.add(other)

    def export_lines(self, write: Callable[[str], object]) -> int:
        """Write every record as a line of JSON; how many there are."""
        lines = [record.as_json() for record in self]
        write("".join(f"{line}\n" for line in lines))
        return len(lines)

    def import_lines(self, lines: Iterable[str], source: str = "") -> int:
        """Add records from lines of JSON, all or none; how many were new."""
        return self.add(
            [_parsed(line, n, source) for n, line in enumerate(lines, 1) if line.strip()]
        )

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


def _row(record: Record) -> tuple[str | float, ...]:
    return (
        record.workload,
        record.target,
        record.trace,
        json.dumps(record.times),
        record.failure,
        record.measured_at,
        json.dumps(dict(record.versions), sort_keys=True),
    )


def _record(row: tuple[str, str, str, str, str, float, str]) -> Record:
    workload, target, trace, times, failure, when, versions = row
    return Record(
        workload,
        target,
        trace,
        tuple(json.loads(times)),
        failure,
        when,
        _pairs(json.loads(versions)),
    )


def _parsed(line: str, number: int, source: str) -> Record:
    try:
        data = json.loads(line)
        texts = [data[name] for name in ("workload", "target", "trace", "failure")]
        if {*data} != {f.name for f in fields(Record)} or not all(
            isinstance(t, str) for t in texts
        ):
            raise ValueError("not the fields of a record")
        return Record(
            data["workload"],
            data["target"],
            data["trace"],
            tuple(float(time) for time in data["times"]),
            data["failure"],
            float(data["measured_at"]),
            _pairs(data["versions"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TuneError(
            "records.line",
            f"line {number}{f' of {source}' if source else ''} is no record: {error}",
            help="give lines that were exported from records",
        ) from error


def _pairs(versions: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(text)) for name, text in versions.items()))
