"""Each alteration of each blob of a real run is found by whatever checks the workspace."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.known import blob_check
from pmagent.cli import checks
from pmagent.console.pages.reading.checking import Checks
from pmagent.console.paths import ConsolePaths
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.named_blobs import BlobsChecked
from pmagent.events.verify import verify_log
from pmagent.service.host import open_host
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.console_pages import reading
from tests.support.effort import some
from tests.support.logged import note, write_log
from tests.support.orchestra import RUN, config, plan
from tests.support.sandboxes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.slow]

TASKS = 6
PATIENCE = 60.0


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace after a run with output and artifacts, with a frame and a payload that lies in a blob as a whole."""
    workspace = fresh_example(tmp_path_factory.mktemp("evidence") / "workspace")
    scripts = {
        f"t{n}": {"tools": ["sh"], "inputs": {"args": ["-c", f"seq {n}00; echo {n} >&2; seq 5{n} > $ARTIFACTS/rows"]}}
        for n in range(TASKS)
    }

    async def go() -> None:
        async with open_host(workspace, "orchestra.run") as host:
            await host.ready()
            asked = RunRequested(
                run_id=RUN, intent="x" * 2_000, plan=plan({name: [] for name in scripts}, **scripts),
                config=config("whitelist_tools: [sh]\n", base=0.05),
            )  # fmt: skip
            ended = await host.ask(asked, RUN, {"run.ended"}, PATIENCE)
            assert ended.data.state == "done"

    anyio.run(go)
    store = BlobStore(RealDisk(), str(Layout(workspace).blobs))
    picture, payload = b"\x89PNG" * 500, b'{"n":%s}' % (b"1" * 70_000)
    frame = {
        "request": 1, "name": "f", "media_type": "image/png", "sha256": store.put(picture), "size": len(picture),
        "width": 1, "height": 1, "ocr_text": "", "ocr": "", "note": "", "kept": True,
    }  # fmt: skip
    gone = {**frame, "sha256": "0" * 64, "kept": False}
    moved = {"blob": {"sha256": store.put(payload), "size": len(payload), "media_type": "application/json"}}
    facts = [(frame, "pla.frame_observed"), (gone, "pla.frame_observed"), (moved, "toy.noted")]
    write_log(workspace, [note(number, data, type=type) for number, (data, type) in enumerate(facts)])
    return workspace


@pytest.fixture
def workspace(evidence: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(evidence, tmp_path / "workspace", ignore=shutil.ignore_patterns("run")))


def blobs_of(workspace: Path) -> list[Path]:
    return sorted(Layout(workspace).blobs.glob("??/*"))


def looked(workspace: Path) -> BlobsChecked:
    found = verify_log(str(Layout(workspace).log), blobs=blob_check(Layout(workspace).store.blobs())).blobs
    assert found is not None
    return found


# --- alterations ---------------------------------------------------------------------------------------------------


def flip(blob: Path, at: float) -> None:
    raw = bytearray(blob.read_bytes() or b"\0")
    raw[int(at * len(raw))] ^= 1 << int(at * 1000) % 8
    replace(blob, bytes(raw))


def cut(blob: Path, at: float) -> None:
    raw = blob.read_bytes()
    replace(blob, raw[: int(at * len(raw))] if raw else b"\n")


def append(blob: Path, at: float) -> None:
    replace(blob, blob.read_bytes() + b"\0" * (1 + int(at * 5000)))


def swap(blob: Path, at: float) -> None:
    others = [other for other in blobs_of(blob.parents[4]) if other != blob]
    replace(blob, others[int(at * len(others))].read_bytes())


def replace(blob: Path, content: bytes) -> None:
    blob.chmod(0o600)
    blob.write_bytes(content)


def link(blob: Path, target: str) -> None:
    blob.unlink()
    blob.symlink_to(target)


def link_to_its_content(blob: Path, _at: float) -> None:
    blob.rename(blob.with_name("elsewhere"))
    blob.symlink_to("elsewhere")


def hard_link(blob: Path, _at: float) -> None:
    blob.unlink()
    other = blob.parents[4] / "README.md"
    os.link(other, blob)


def folder(blob: Path, _at: float) -> None:
    blob.unlink()
    blob.mkdir()


def fifo(blob: Path, _at: float) -> None:
    blob.unlink()
    os.mkfifo(blob)


ALTERATIONS: dict[str, Callable[[Path, float], None]] = {
    "flipped": flip, "removed": lambda blob, _: blob.unlink(), "cut": cut, "appended": append, "swapped": swap,
    "linked": lambda blob, _: link(blob, "/etc/hostname"), "linked to its content": link_to_its_content,
    "linked nowhere": lambda blob, _: link(blob, "nowhere"), "hard link": hard_link, "a folder": folder, "a FIFO": fifo,
    "folder removed": lambda blob, _: shutil.rmtree(blob.parent),
}  # fmt: skip


# --- who finds it --------------------------------------------------------------------------------------------------


def by_verify(workspace: Path) -> bool:
    ran = pmagent(workspace, "log", "verify", "--format", "json")
    document = ran.document
    assert document["blobs"]["bad"] == len(document["blobs"]["findings"])
    assert (ran.code == 4) == (not document["ok"]) == bool(document["blobs"]["bad"])
    return ran.code == 4


def by_rebuild(workspace: Path) -> bool:
    ran = pmagent(workspace, "rebuild", "--check", "--format", "json")
    return ran.code == 4  # a payload that lies in a bad blob is an error, and no document


def by_doctor(workspace: Path) -> bool:
    return checks._LOOKS["log"](Layout(workspace)).state == "fail"


def by_integrity(workspace: Path) -> bool:
    paths = ConsolePaths(Layout(workspace))
    paths.prepare()
    asked = Checks(workspace, paths.folder)
    codes = []
    for kind in ("log", "documents"):
        asked.begin(kind, "ada")
        assert asked.wait(PATIENCE)
        found = asked.latest(kind)
        assert found is not None
        codes.append(found.exit_code)
    return codes == [4, 4]


FINDERS = {"log verify": by_verify, "rebuild --check": by_rebuild, "doctor": by_doctor, "Integrity": by_integrity}


def test_an_unaltered_workspace_is_found_intact(workspace: Path) -> None:
    assert len(blobs_of(workspace)) == looked(workspace).checked >= 2 * TASKS + 3
    assert {name: finds(workspace) for name, finds in FINDERS.items()} == dict.fromkeys(FINDERS, False)


@each("alteration", ALTERATIONS)
def test_each_alteration_of_each_blob_is_found(workspace: Path, evidence: Path, alteration: str) -> None:
    draw = random.Random(alteration)
    for blob in blobs_of(workspace):
        ALTERATIONS[alteration](blob, draw.random())
        found = looked(workspace)
        assert f"blobs/{blob.parent.name}/{blob.name}" in {bad.file for bad in found.findings}
        if alteration != "folder removed":
            assert found.bad == 1
        shutil.rmtree(Layout(workspace).blobs)
        shutil.copytree(Layout(evidence).blobs, Layout(workspace).blobs)


@pytest.mark.parametrize("alteration", some([*ALTERATIONS], 4))
def test_each_alteration_is_found_by_every_checker(workspace: Path, alteration: str) -> None:
    draw = random.Random(alteration)
    ALTERATIONS[alteration](draw.choice(blobs_of(workspace)), draw.random())
    assert {name: finds(workspace) for name, finds in FINDERS.items()} == dict.fromkeys(FINDERS, True)


@given(which=st.integers(0, 10_000), at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(evidence: Path, which: int, at: float, bit: int) -> None:
    blobs = [blob for blob in blobs_of(evidence) if blob.stat().st_size]
    blob = blobs[which % len(blobs)]
    before = blob.read_bytes()
    raw = bytearray(before)
    raw[int(at * len(raw))] ^= 1 << bit
    try:
        replace(blob, bytes(raw))
        assert [bad.file for bad in looked(evidence).findings] == [f"blobs/{blob.parent.name}/{blob.name}"]
    finally:
        replace(blob, before)


def test_a_log_without_its_blobs_is_checked_for_its_lines_alone(workspace: Path, tmp_path: Path) -> None:
    shutil.copytree(Layout(workspace).log, tmp_path / "copy" / "log")
    verify = partial(pmagent, workspace, "log", "verify", str(tmp_path / "copy" / "log"), "--format", "json")
    assert verify().code == 4
    alone = verify("--no-blobs")
    assert (alone.code, alone.document["ok"], alone.document["blobs"]) == (0, True, None)


def test_the_page_names_the_bad_blobs(workspace: Path) -> None:
    blob = blobs_of(workspace)[0]
    blob.unlink()
    by_integrity(workspace)
    with reading(workspace) as browser:
        text = browser.page("/integrity").text
    assert f"blobs/{blob.parent.name}/{blob.name}" in text
    assert "it is missing" in text
    assert "Exit code 4" in text
