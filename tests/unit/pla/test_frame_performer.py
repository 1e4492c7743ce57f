"""The performer of pla.frame_requested: the picture is stored before it is named, and nothing of a program is left."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pmagent.actors.pla.frames.ocr import MISSING
from pmagent.actors.pla.frames.performer import FRAME_PERFORMERS, take
from pmagent.contracts.pla_events import FrameSource, PlaFrameFailed, PlaFrameObserved, PlaFrameRequested
from pmagent.events.event import Event
from pmagent.events.redact import Redactor
from pmagent.events.secret_forms import MASK
from tests.support.cases import on_loop
from tests.support.frames import png, put, stand_in
from tests.support.live import NoIo
from tests.support.secrets import KEYS


class StoringIo(NoIo):
    """Stores blobs, and masks what it was told."""

    def __init__(self, known: str = "swordfish") -> None:
        self.redactor = Redactor([known])
        self.stored: list[bytes] = []

    def masked(self, text: str) -> str:
        """See Io."""
        return self.redactor.text(text)

    async def store_blob(self, content: bytes) -> str:
        """See Io."""
        self.stored.append(self.redactor.content(content))
        return sha256(self.stored[-1]).hexdigest()


def request(path: Path, *, keep: bool = True) -> Event:
    asked = PlaFrameRequested(source=FrameSource(path=str(path), keep=keep))
    return Event(
        7, "2026-11-22T12:00:00.000000Z", "6.brain.0", "decision", "brain", "pla.frame_requested", "c", 6, asked, b""
    )


@pytest.fixture
def frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a picture, and no program to be found."""
    made = tmp_path / "frames"
    made.mkdir()
    put(made, "a.png", png(6, 4), time.time() - 1)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return made


@on_loop
async def test_a_frame_is_named_by_its_bytes_and_kept(frames: Path) -> None:
    io = StoringIo()
    seen = await take(request(frames), io)
    assert isinstance(seen, PlaFrameObserved)
    assert io.stored == [png(6, 4)]
    assert (seen.request, seen.name, seen.sha256) == (7, "a.png", sha256(png(6, 4)).hexdigest())
    assert (seen.size, seen.width, seen.height, seen.media_type) == (len(png(6, 4)), 6, 4, "image/png")
    assert (seen.kept, seen.ocr, seen.ocr_text, seen.note) == (True, "", "", MISSING)


@on_loop
async def test_a_frame_that_is_not_to_be_kept_is_not_stored(frames: Path) -> None:
    io = StoringIo()
    seen = await take(request(frames, keep=False), io)
    assert isinstance(seen, PlaFrameObserved)
    assert not seen.kept
    assert io.stored == []


@on_loop
async def test_a_picture_in_whose_bytes_a_secret_stands_is_not_called_kept(frames: Path) -> None:
    put(frames, "b.png", png(6, 4, comment=b"note\0swordfish"), time.time())
    seen = await take(request(frames), StoringIo())
    assert isinstance(seen, PlaFrameObserved)
    assert not seen.kept
    assert "not kept" in seen.note


@on_loop
async def test_secrets_of_this_process_and_keys_are_masked_in_the_text(frames: Path, tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "tesseract", f"print('first\\nso swordfish is it\\n\\nand {KEYS['aws']}\\nlast')")
    seen = await take(request(frames), StoringIo())
    assert isinstance(seen, PlaFrameObserved)
    assert seen.ocr_text == f"first\nso {MASK} is it\nand {MASK}\nlast"
    assert seen.ocr == "tesseract"


@on_loop
async def test_without_a_frame_the_outcome_says_so(tmp_path: Path) -> None:
    failed = await take(request(tmp_path / "nothing"), StoringIo())
    assert isinstance(failed, PlaFrameFailed)
    assert (failed.request, failed.code) == (7, "no_source")
    assert str(tmp_path / "nothing") in failed.text
    assert failed.mend


@on_loop
async def test_who_is_stopped_leaves_no_program_behind(frames: Path, tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "tesseract", "while True: pass")
    program = str(tmp_path / "bin" / "tesseract")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take, request(frames), StoringIo())
        while program not in _running():
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert program not in _running()


def _running() -> str:
    """The command lines of all processes."""
    lines = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
            except OSError:
                continue
    return "\n".join(lines)


def test_frames_have_one_performer() -> None:
    assert list(FRAME_PERFORMERS) == [PlaFrameRequested]
