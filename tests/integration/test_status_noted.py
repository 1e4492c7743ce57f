"""The status that an orderly end notes: the same as the log's own, and none when anything is off."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.core.snapshot import decode_snapshot, encode_snapshot
from pmagent.events.event import Tail
from pmagent.events.log import LogClock
from pmagent.service import noted
from pmagent.service.noted import NotedStatus, noted_status
from pmagent.service.operations import call, offline_status
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import Registry

PERMIT = {"action": "feature_work", "subject": "x", "holder": "tester"}


@pytest.fixture
def lived(workspace: Path) -> Path:
    call(workspace, "oa.snapshot")
    call(workspace, "oa.permit", PERMIT)
    return workspace


def test_the_noted_status_is_that_of_the_log(lived: Path) -> None:
    found = noted_status(lived)
    assert found == offline_status(lived)
    assert found is not None
    assert found["permits"] == 1


def test_a_permit_that_has_expired_since_is_not_counted(lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(LogClock):
        def now(self) -> str:
            return "2999-01-01T00:00:00.000000Z"

    monkeypatch.setattr(noted, "LogClock", Later)
    found = noted_status(lived)
    assert found is not None
    assert found["permits"] == 0


def test_a_configuration_that_changed_since_is_seen(lived: Path) -> None:
    (lived / ".pmagent" / "config.toml").write_text('[guards]\nunit = ["python3", "-c", "0"]\n', encoding="utf-8")
    found = noted_status(lived)
    assert found is not None
    assert found["unaccepted"] is not None
    assert found["unaccepted"] == offline_status(lived)["unaccepted"]


def _snapshot(workspace: Path, change: Callable[[bytes], bytes]) -> None:
    """The snapshot changed, and registered as the one that counts."""
    layout = Layout(workspace)
    content = change(layout.snapshot.read_bytes())
    layout.snapshot.write_bytes(content)
    known = Registry().log_of(workspace)
    assert known is not None
    Registry().note(workspace, msgspec.structs.replace(known, snapshot=sha256(content).hexdigest()))


def _with(**changes: object) -> Callable[[bytes], bytes]:
    def change(raw: bytes) -> bytes:
        snapshot = decode_snapshot(raw)
        assert snapshot is not None
        return encode_snapshot(msgspec.structs.replace(snapshot, **changes))

    return change


def _of_other_code_named(code: str) -> Callable[[bytes], bytes]:
    def change(raw: bytes) -> bytes:
        snapshot = decode_snapshot(raw)
        assert snapshot is not None
        status = msgspec.json.decode(snapshot.status, type=NotedStatus)
        return _with(status=msgspec.json.encode(msgspec.structs.replace(status, code=code)))(raw)

    return change


CHANGES = {
    "none noted": _with(status=b""), "another log": _with(log_id="0" * 32), "an earlier end": _with(tail=Tail(1)),
    "of other code": _of_other_code_named("other"), "damaged": lambda raw: raw[:-20],
}  # fmt: skip


def test_a_snapshot_that_does_not_fit_is_not_believed(lived: Path) -> None:
    good = Layout(lived).snapshot.read_bytes()
    for name, change in CHANGES.items():
        _snapshot(lived, lambda _: good)
        assert noted_status(lived) is not None
        _snapshot(lived, change)
        assert noted_status(lived) is None, name


def test_nothing_is_believed_of_code_that_cannot_be_identified(lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted, "code_stamp", lambda: "")
    _snapshot(lived, _of_other_code_named(""))
    assert noted_status(lived) is None


def test_a_snapshot_that_the_registry_does_not_name_is_not_believed(lived: Path) -> None:
    layout = Layout(lived)
    layout.snapshot.write_bytes(_with(extra={})(layout.snapshot.read_bytes()))
    assert noted_status(lived) is None
