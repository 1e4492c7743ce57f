"""Verifying the chain, and reading it verified and decoded; beside hashing alone and msgspec alone."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from benchmarks.harness import Bench, Row, Spread, alternate, seconds
from benchmarks.workload import write_notes
from pmagent.events.evidence import log_in
from pmagent.events.line import TAIL_BYTES, decode_chunk
from pmagent.events.reader import runs


def run(bench: Bench) -> list[Row]:
    """Three lengths of log."""
    rows: list[Row] = []
    for size in bench.sizes:
        folder = bench.folder / f"notes-{size}"
        write_notes(folder, size)
        rows += _measure(bench, folder, size)
    return rows


def _measure(bench: Bench, folder: Path, size: int) -> list[Row]:
    read_chunks = chunks(folder, min(size, 100_000))
    count = sum(chunk.count(b"\n") for chunk in read_chunks)
    bodies = [line[:-TAIL_BYTES] for chunk in read_chunks for line in chunk.split(b"\n")[:-1]]
    measures = alternate(
        bench.runs,
        lambda: size / seconds(lambda: _verified(folder)),
        lambda: count / seconds(lambda: _hashed(bodies)),
        lambda: size / seconds(lambda: _read(folder, size)),
        lambda: count / seconds(lambda: [decode_chunk(chunk) for chunk in read_chunks]),
    )
    verify, hashing, read, decoding = (Spread.of(figures) for figures in measures)
    last = size == bench.sizes[-1]
    line = sum(map(len, read_chunks)) / count
    return [
        Row(
            what=f"verify, chain only, {size:,} events", figure=verify, unit="events/s",
            beside="SHA-256 of the same bytes, in memory", limit=hashing, ratio=verify.median / hashing.median,
            target=">= 600,000/s" if last else "", reached=verify.median >= 600_000 if last else None,
            note=f"{line:.0f} bytes a line",
        ),
        Row(
            what=f"read, verified and decoded, {size:,} events", figure=read, unit="events/s",
            beside="msgspec alone, in memory", limit=decoding, ratio=read.median / decoding.median,
            target=">= 400,000/s" if last else "", reached=read.median >= 400_000 if last else None,
        ),
    ]


def chunks(folder: Path, events: int) -> list[bytes]:
    """The lines of the first ``events`` events, and some more, as they are read."""
    reader = log_in(folder).reader()
    found: list[bytes] = []
    position = 1
    while position <= events and (chunk := reader.read(position)):
        found.append(chunk)
        position += chunk.count(b"\n")
    reader.close()
    return found


def _verified(folder: Path) -> None:
    found = log_in(folder).verify()
    assert found.ok, found


def _hashed(bodies: list[bytes]) -> bytes:
    previous = bytes(32)
    for body in bodies:
        previous = sha256(previous + body).digest()
    return previous


def _read(folder: Path, size: int) -> None:
    reader = log_in(folder).reader()
    found = sum(len(run) for run in runs(reader))
    reader.close()
    assert found == size, f"{found} events instead of {size}"
