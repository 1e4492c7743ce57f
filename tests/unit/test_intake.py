"""The way in: redaction, encoding, the blob store for large facts (docs/design.md §2.6, §2.7)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pmagent.actors.core.intake import Intake
from pmagent.contracts.daemon import DaemonStopped
from pmagent.contracts.kernel import KernelObserved, SurfaceReading
from pmagent.contracts.payload import Unknown, encode, typed
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog
from pmagent.events.event import DATA_BYTES_MAX, LINE_BYTES_MAX, Event, StoredEvent, Tail
from pmagent.events.line import decode_line, seal
from pmagent.events.redact import MASK, Redactor
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import BLOB_PREFIX

SECRET = "correct-horse-battery"
NOW = "2026-11-21T20:00:00.000000Z"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


@pytest.fixture
def intake(blobs: BlobStore) -> Intake:
    return Intake(Redactor([SECRET]), blobs)


def reading(content: object) -> KernelObserved:
    """An observation whose one surface has this content."""
    path = "share/oa/CONTEXT.json"
    surface = SurfaceReading(name="oa_context", path=path, required=False, status="ok", content=content)
    return KernelObserved(surfaces=[surface], existing=[])


def stored(intake: Intake, payload: msgspec.Struct) -> StoredEvent:
    """The event as it would stand in the log."""
    event = Sequencer(Tail()).admit(intake.fact(payload, "id-1", "test"), NOW)
    (line,), _ = seal([event], 1, Tail())
    assert len(line) <= LINE_BYTES_MAX
    return decode_line(line[:-1])


def test_secrets_are_masked_in_every_string_before_encoding(intake: Intake) -> None:
    content = {"a": [f"token={SECRET}", {"deep": {SECRET: SECRET}}], "quoted": f'"{SECRET}"\n'}
    line = stored(intake, reading(content))
    assert SECRET.encode() not in bytes(line.data)
    assert MASK.encode() in bytes(line.data)


def test_ids_and_correlations_are_masked_too(intake: Intake) -> None:
    draft = intake.fact(DaemonStopped(reason="done"), f"id-{SECRET}", "test", f"run-{SECRET}")
    assert SECRET not in draft.id + draft.correlation


def test_a_fact_above_the_limit_goes_to_a_blob_and_comes_back_the_same(intake: Intake, blobs: BlobStore) -> None:
    payload = reading({"text": "x" * (2 * DATA_BYTES_MAX), "secret": SECRET})
    line = stored(intake, payload)
    assert bytes(line.data).startswith(BLOB_PREFIX)
    assert typed(line, blobs).data.surfaces[0].content == {"text": "x" * (2 * DATA_BYTES_MAX), "secret": MASK}


def test_exactly_what_a_line_holds_stays_in_it_and_one_byte_more_does_not(intake: Intake) -> None:
    spare = DATA_BYTES_MAX - len(encode(reading("")))
    assert not bytes(stored(intake, reading("x" * spare)).data).startswith(BLOB_PREFIX)
    assert bytes(stored(intake, reading("x" * (spare + 1))).data).startswith(BLOB_PREFIX)


def test_a_blob_that_is_missing_or_damaged_is_an_error_not_an_empty_payload(
    intake: Intake, blobs: BlobStore, tmp_path: Path
) -> None:
    line = stored(intake, reading("y" * (2 * DATA_BYTES_MAX)))
    (blob,) = (path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    content = blob.read_bytes()
    blob.chmod(0o600)
    blob.write_bytes(content[:-2] + b"z" + content[-1:])
    with pytest.raises(CorruptLog) as damaged:
        typed(line, blobs)
    blob.unlink()
    with pytest.raises(CorruptLog) as missing:
        typed(line, blobs)
    assert damaged.value.position == missing.value.position == line.position
    assert blob.name in damaged.value.message
    assert blob.name in missing.value.message
    with pytest.raises(CorruptLog):
        typed(line)


def test_actors_see_what_the_log_will_hold(intake: Intake) -> None:
    """A tuple is a list, mappings are in the order of their keys, as when the log is read back."""
    draft = intake.fact(reading({"b": (1, 2), "a": 1}), "id-1", "test")
    content = draft.data.surfaces[0].content
    assert content == {"a": 1, "b": [1, 2]}
    assert list(content) == ["a", "b"]
    assert encode(draft.data) == draft.raw


def test_a_payload_without_the_shape_of_its_type_is_refused(intake: Intake) -> None:
    with pytest.raises(msgspec.ValidationError):
        intake.fact(msgspec.structs.replace(DaemonStopped(reason="done"), reason=3), "id-1", "test")


def test_an_unknown_type_is_carried_as_it_is(blobs: BlobStore) -> None:
    raw = b'{"a":  1}'
    event = Event(1, NOW, "x", "fact", "somebody", "future.thing_happened", "", 0, None, raw)
    (line,), _ = seal([event], 1, Tail())
    seen = typed(decode_line(line[:-1]), blobs)
    assert isinstance(seen.data, Unknown)
    assert seen.data.type == "future.thing_happened"
    assert encode(seen.data) == seen.raw == raw
