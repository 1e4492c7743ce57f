"""Readings: one observation of files that others write, whatever state they are in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.actors.kernel.reader import DEPTH_MAX, QUIET_S, WAIT_S, Look, RealFiles, parse, read_surfaces
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, NAMES, PATHS, REALITY, SSOT
from pmagent.contracts.kernel import SURFACE_BYTES_MAX, KernelObserved, SurfaceReading
from pmagent.contracts.payload import encode
from tests.support.cases import each

Step = Callable[[], None]
ROOT = Path("/workspace")


class SimulatedFiles:
    """Files in memory under a clock that only sleeping moves; ``script`` holds what happens at which second."""

    def __init__(self, contents: dict[str, Any], changed_at: float = -100.0) -> None:
        self.files = {path: (json.dumps(contents[name]).encode(), changed_at) for name, path in PATHS.items()}
        self.script: list[tuple[float, Step]] = []
        self.on_read: Callable[[str], object] = len
        self.clock = 0.0
        self.folders = {"share": changed_at, "share/oa": changed_at}

    def put(self, path: str, content: bytes) -> None:
        """Write a file now."""
        self.files[path] = (content, self.clock)

    def look(self, path: Path) -> Look:
        """See ``Files``."""
        found = self.files.get(str(path.relative_to(ROOT)))
        if found is None:
            changed_at = self.folders.get(str(path.relative_to(ROOT)))
            return Look("missing") if changed_at is None else Look("other", (), changed_at)
        return Look("file", (len(found[0]), int(found[1] * 1e6)), found[1])

    def read(self, path: Path, limit: int) -> bytes:
        """See ``Files``."""
        name = str(path.relative_to(ROOT))
        content = self.files[name][0][:limit]
        self.on_read(name)
        return content

    def names(self, folder: Path) -> list[str]:
        """See ``Files``."""
        inside = str(folder.relative_to(ROOT)) + "/"
        return [path.removeprefix(inside) for path in self.files if path.startswith(inside)]

    def now(self) -> float:
        """See ``Files``."""
        return self.clock

    def elapsed(self) -> float:
        """See ``Files``."""
        return self.clock

    def sleep(self, seconds: float) -> None:
        """Let the script happen."""
        assert seconds > 0
        self.clock += seconds
        while self.script and self.script[0][0] <= self.clock:
            self.script.pop(0)[1]()


def statuses(observation: KernelObserved) -> dict[str, str]:
    return {reading.name: reading.status for reading in observation.surfaces}


def by_name(observation: KernelObserved, name: str) -> SurfaceReading:
    return next(reading for reading in observation.surfaces if reading.name == name)


def test_quiet_surfaces_are_read_without_waiting(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    observation = read_surfaces(ROOT, files, request=7)
    assert files.clock == 0.0
    assert observation.request == 7
    assert [reading.name for reading in observation.surfaces] == list(NAMES)
    assert set(statuses(observation).values()) == {"ok"}
    assert by_name(observation, BOOTSTRAP).content == green[BOOTSTRAP]


def test_a_surface_that_just_changed_is_left_alone_for_the_quiet_period(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green, changed_at=0.0)
    read_surfaces(ROOT, files)
    assert QUIET_S <= files.clock < QUIET_S + 0.1


def test_all_surfaces_are_of_one_moment(green: dict[str, Any]) -> None:
    """A writer that replaces one file after another is never seen half way."""
    files = SimulatedFiles(green, changed_at=0.0)
    new = dict(green[BOOTSTRAP], branch="other")
    red = dict(green[REALITY], reality_green=False)
    files.script = [
        (0.1, lambda: files.put(PATHS[REALITY], json.dumps(red).encode())),
        (0.25, lambda: files.put(PATHS[BOOTSTRAP], json.dumps(new).encode())),
    ]
    observation = read_surfaces(ROOT, files)
    assert by_name(observation, BOOTSTRAP).content["branch"] == "other"
    assert by_name(observation, REALITY).content["reality_green"] is False


def test_a_half_written_surface_is_read_again_until_it_parses(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    whole = files.files[PATHS[SSOT]][0]
    files.put(PATHS[SSOT], whole[:40])
    files.script = [(0.5, lambda: files.put(PATHS[SSOT], whole))]
    assert statuses(read_surfaces(ROOT, files))[SSOT] == "ok"
    assert files.clock <= WAIT_S


def test_a_surface_that_is_deleted_and_written_anew_is_not_taken_for_missing(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    content, _ = files.files.pop(PATHS[SSOT])
    files.folders["share"] = 0.0
    files.script = [(0.1, lambda: files.put(PATHS[SSOT], content))]
    assert statuses(read_surfaces(ROOT, files))[SSOT] == "ok"


def test_a_surface_that_stays_missing_costs_no_more_than_the_quiet_period(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    del files.files[PATHS[SSOT]]
    files.folders["share"] = 0.0
    assert statuses(read_surfaces(ROOT, files))[SSOT] == "missing"
    assert QUIET_S <= files.clock < QUIET_S + 0.1


def test_a_surface_that_stays_half_written_is_recorded_as_such_after_a_second(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    files.put(PATHS[SSOT], b'{"current_phase": "2')
    observation = read_surfaces(ROOT, files)
    assert by_name(observation, SSOT).status == "not_json"
    assert by_name(observation, SSOT).content is None
    assert WAIT_S <= files.clock <= WAIT_S + 0.1


def test_a_long_broken_surface_costs_no_waiting(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    files.files[PATHS[SSOT]] = (b"{", -10.0)
    assert statuses(read_surfaces(ROOT, files))[SSOT] == "not_json"
    assert files.clock == 0.0


def test_a_surface_that_never_stops_changing_is_not_trusted(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    count = 0

    def rewrite(path: str) -> None:
        nonlocal count
        if path == PATHS[REALITY]:
            count += 1
            files.put(path, json.dumps(green[REALITY] | {"n": "x" * count}).encode())

    files.on_read = rewrite
    observation = read_surfaces(ROOT, files)
    assert by_name(observation, REALITY).status == "unreadable"
    assert statuses(observation)[BOOTSTRAP] == "ok"
    assert WAIT_S <= files.clock <= WAIT_S + 0.1


def test_a_clock_that_was_set_back_only_costs_the_waiting(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green, changed_at=1e9)
    assert set(statuses(read_surfaces(ROOT, files)).values()) == {"ok"}
    assert files.clock <= WAIT_S + 0.1


def test_the_highest_ssot_surface_is_read(green: dict[str, Any]) -> None:
    files = SimulatedFiles(green)
    files.files["share/SSOT_SURFACE_V18.json"] = (b'{"current_phase": "2"}', -10.0)
    observation = read_surfaces(ROOT, files)
    assert by_name(observation, SSOT).path == "share/SSOT_SURFACE_V18.json"
    assert by_name(observation, SSOT).content == {"current_phase": "2"}
    assert "share/SSOT_SURFACE_V18.json" in observation.existing


@each(
    "raw, status",
    [
        (b"", "not_json"), (b" \n", "not_json"), (b"{", "not_json"), (b"{} {}", "not_json"), (b"{'a': 1}", "not_json"),
        (b'{"a": NaN}', "not_json"), (b'{"a": 1e999}', "not_json"), (b'{"a": ' + b"9" * 5000 + b"}", "not_json"),
        (b'{"a": "\\ud800"}', "not_json"), (b'{"branch": "a", "branch": "b"}', "not_json"),
        (b'{"branch": "a", "x": {"y": 1, "y": 2}}', "not_json"), (b'\xef\xbb\xbf{"branch": "a"}', "not_json"),
        (b'{"branch": "a", "x": ' + b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1) + b"}", "not_json"),
        (b"[" * 200_000, "not_json"), (b"[" * 200_000 + b"]" * 200_000, "not_json"), (b"\xff", "not_utf8"),
        (b'{"branch": "\xe9"}', "not_utf8"), (b"null", "invalid"), (b"42", "invalid"), (b'{"branch": 42}', "invalid"),
        (b'{"branch": "a", "x": 123456789012345678901234567890}', "ok"),
        (b'{"branch": "a", "x": -0.0, "y": [null, {}]}', "ok"),
    ],
)
def test_whatever_the_bytes_the_reading_has_a_status_and_can_be_logged(raw: bytes, status: str) -> None:
    found, detail, content = parse(BOOTSTRAP, raw)
    assert found == status
    reading = SurfaceReading(name=BOOTSTRAP, path="p", required=True, status=found, detail=detail, content=content)
    encoded = encode(KernelObserved(surfaces=[reading], existing=[]))
    assert msgspec.json.decode(encoded, type=KernelObserved).surfaces[0] == reading


def test_files_that_are_missing_huge_or_no_files(workspace: Path) -> None:
    """One real folder with one of each; nothing hangs, nothing raises."""
    (workspace / PATHS[BOOTSTRAP]).write_bytes(b"[" + b" " * SURFACE_BYTES_MAX + b"]")
    (workspace / PATHS[SSOT]).unlink()
    (workspace / PATHS[SSOT]).mkdir()
    (workspace / PATHS[REALITY]).unlink()
    os.mkfifo(workspace / PATHS[REALITY])
    (workspace / PATHS[HANDOFF]).unlink()
    (workspace / PATHS[HANDOFF]).symlink_to("/dev/zero")
    (workspace / PATHS[CONTEXT]).unlink()
    (workspace / PATHS[CONTEXT]).symlink_to("CONTEXT.json")
    assert statuses(read_surfaces(workspace)) == {
        BOOTSTRAP: "too_large", SSOT: "unreadable", REALITY: "unreadable", HANDOFF: "unreadable", CONTEXT: "unreadable",
    }


def test_a_surface_of_exactly_the_largest_size_is_read(workspace: Path) -> None:
    raw = json.dumps({"branch": "main"}).encode()
    (workspace / PATHS[BOOTSTRAP]).write_bytes(raw + b" " * (SURFACE_BYTES_MAX - len(raw)))
    assert statuses(read_surfaces(workspace))[BOOTSTRAP] == "ok"


def test_a_workspace_without_share_is_all_missing(tmp_path: Path) -> None:
    observation = read_surfaces(tmp_path)
    assert set(statuses(observation).values()) == {"missing"}
    assert observation.existing == []
    (tmp_path / "share").write_text("a file, not a folder")
    assert set(statuses(read_surfaces(tmp_path)).values()) == {"missing"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_surface_that_may_not_be_read_names_the_cause(workspace: Path) -> None:
    (workspace / PATHS[SSOT]).chmod(0)
    reading = by_name(read_surfaces(workspace), SSOT)
    assert (reading.status, reading.detail) == ("unreadable", "EACCES")


def test_reading_a_pipe_that_took_a_files_place_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        RealFiles().read(tmp_path / "pipe", 10)


def test_what_state_names_and_exists_is_listed(workspace: Path) -> None:
    (workspace / "share/kb_registry.json").unlink()
    existing = read_surfaces(workspace).existing
    assert "share/atlas/control_plane/system_health.json" in existing
    assert "share/kb_registry.json" not in existing
    assert existing == sorted(existing)
    assert len(existing) == 7
