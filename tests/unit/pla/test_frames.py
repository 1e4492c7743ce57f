"""Frames: the newest picture of a folder or of a camera, and what stands on it."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from pmagent.actors.pla.frames import camera, folder, ocr
from pmagent.actors.pla.frames.folder import BYTES_MAX, newest
from pmagent.actors.pla.frames.performer import frame
from pmagent.actors.pla.frames.problem import NoFrame
from pmagent.actors.pla.frames.program import run
from pmagent.actors.sandbox.reader import arguments as sandbox
from pmagent.actors.sandbox.reader import run as limited
from pmagent.actors.sandbox.reader.run import run_limited
from pmagent.contracts.pla_events import FrameSource
from pmagent.events.redact import Redactor
from pmagent.events.secret_forms import MASK
from tests.support.cases import each
from tests.support.frames import jpeg, png, put, stand_in
from tests.support.secrets import KEYS

SHAPES_ONLY = Redactor().text


def ago(seconds: float) -> float:
    """The time so many seconds before now, whenever the test runs."""
    return time.time() - seconds


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found; it is empty."""
    found = tmp_path / "bin"
    found.mkdir()
    bubblewrap = os.path.realpath("/usr/bin/bwrap")
    if os.path.exists(bubblewrap):
        (found / "bwrap").symlink_to(bubblewrap)
    monkeypatch.setenv("PATH", str(found))
    return found


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    made = tmp_path / "frames"
    made.mkdir()
    return made


# --- folders ---------------------------------------------------------------------------------------------------------


def test_the_newest_picture_is_taken(frames: Path) -> None:
    put(frames, "b.png", png(4, 3), ago(20))
    put(frames, "a.jpg", jpeg(8, 6), ago(10))
    put(frames, "c.PNG", png(5, 5), ago(30))
    taken = newest(str(frames))
    assert (taken.name, taken.picture.width, taken.notes) == ("a.jpg", 8, [])
    assert taken.content == jpeg(8, 6)


def test_a_picture_that_is_old_is_told_to_be(frames: Path) -> None:
    put(frames, "a.png", png(), ago(3600))
    assert newest(str(frames)).notes[0].startswith("the picture is 36")


def test_a_picture_that_is_dated_ahead_is_told_to_be(frames: Path) -> None:
    put(frames, "a.png", png(), ago(-3600))
    assert "ahead of now" in newest(str(frames)).notes[0]


def test_what_is_no_file_of_the_folder_is_passed_over(frames: Path, tmp_path: Path) -> None:
    secret = put(tmp_path, "secret.png", png(9, 9), ago(0))
    put(frames, "a.png", png(4, 3), ago(100))
    (frames / "link.png").symlink_to(secret)
    (frames / "out.png").symlink_to("/etc/passwd")
    os.mkfifo(frames / "pipe.png")
    (frames / "folder.png").mkdir()
    put(frames, ".hidden.png", png(9, 9), ago(0))
    put(frames, "notes.txt", png(9, 9), ago(0))
    assert newest(str(frames)).name == "a.png"


def test_what_becomes_a_link_in_between_is_not_followed(frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(frames, "a.png", png(), ago(10))
    monkeypatch.setattr(folder, "_newest_first", lambda _: [(1, "b.png"), (1, "gone.png"), (1, "a.png")])
    (frames / "b.png").symlink_to("a.png")
    assert newest(str(frames)).name == "a.png"


def test_a_picture_that_is_still_written_is_left_for_the_next_look(frames: Path) -> None:
    put(frames, "a.png", png(4, 3), ago(10))
    put(frames, "b.png", png(5, 5)[:-4], ago(0))
    taken = newest(str(frames))
    assert taken.name == "a.png"
    assert "b.png is not all there" in taken.notes[0]


@each(
    "content, code",
    [(b"not a picture", "not_a_picture"), (png()[:-1], "not_a_picture"), (jpeg(60_000, 1), "too_large")],
)
def test_what_is_no_frame_is_told(frames: Path, content: bytes, code: str) -> None:
    put(frames, "a.png", content, ago(0))
    with pytest.raises(NoFrame) as caught:
        newest(str(frames))
    assert caught.value.code == code
    assert caught.value.hint


def test_a_file_that_is_too_large_is_not_read(frames: Path) -> None:
    path = frames / "a.png"
    with path.open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    with pytest.raises(NoFrame) as caught:
        newest(str(frames))
    assert caught.value.code == "too_large"


def test_an_empty_folder_and_what_is_none_are_told_apart(frames: Path, tmp_path: Path) -> None:
    codes = []
    (tmp_path / "file").touch()
    for path in (frames, tmp_path / "nothing", tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null")):
        with pytest.raises(NoFrame) as caught:
            frame(FrameSource(path=str(path)), SHAPES_ONLY, threading.Event())
        codes.append(caught.value.code)
    assert codes == ["no_frame", *["no_source"] * 4]


@pytest.mark.skipif(sys.platform != "linux", reason="file names may be any bytes on Linux")
def test_a_name_that_is_no_text_is_told_as_one(frames: Path) -> None:
    with open(os.fsencode(frames) + b"/a\xff.png", "wb") as file:
        file.write(png())
    assert newest(str(frames)).name == "a?.png"


# --- what stands on it -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("programs")
def test_without_a_program_to_read_there_is_a_frame_and_a_note(frames: Path) -> None:
    put(frames, "a.png", png(), ago(0))
    found = frame(FrameSource(path=str(frames)), SHAPES_ONLY, threading.Event())
    assert (found.text, found.program) == ("", "")
    assert found.notes == [ocr.MISSING]


def test_text_is_read_by_the_program_from_the_pictures_bytes(programs: Path) -> None:
    body = "print('tesseract 5.9.1' if '--version' in arguments else f'{arguments} {len(given)} bytes')"
    stand_in(programs, "tesseract", body)
    reading = ocr.read(png())
    assert reading.text == f"['stdin', 'stdout'] {len(png())} bytes"
    assert reading.program == "tesseract 5.9.1"


def test_text_is_cleaned_of_what_is_not_seen(programs: Path) -> None:
    stand_in(
        programs, "tesseract", r"""sys.stdout.buffer.write(b'a\x1b[31mb\xe2\x80\xae  c\r\n\n \n\x0cd\xff\t e\x00\n')"""
    )
    assert ocr.read(png()).text == "a[31mb c\nd\ufffd e"


@each(
    "body, told",
    [
        ("sys.exit(1)", "could not read the picture"),
        ("os.kill(os.getpid(), 11)", "could not read the picture"),
        ("print('x' * 300_000)", "too much text"),
        ("print(len(bytearray(3 * 2**30)))", "could not read the picture"),
    ],
)
def test_a_program_that_fails_is_a_note_and_no_error(programs: Path, body: str, told: str) -> None:
    stand_in(programs, "tesseract", body)
    reading = ocr.read(png())
    assert (reading.text, reading.program) == ("", "")
    assert told in reading.notes[0]


def test_a_program_that_hangs_is_ended(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(programs, "tesseract", "while True: pass")
    monkeypatch.setattr(ocr, "SECONDS", 0.5)
    assert "took longer" in ocr.read(png()).notes[0]


def test_who_stops_waiting_ends_the_program(programs: Path) -> None:
    stand_in(programs, "tesseract", "while True: pass")
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    assert ocr.read(png(), stop).notes[0] == "reading was stopped"
    timer.join()


def test_a_program_behind_the_wall_sees_neither_files_nor_network(programs: Path, tmp_path: Path) -> None:
    if not sandbox.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a sandbox")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    body = f"print(os.path.exists({str(secret)!r}), os.listdir('/sys/class/net') if os.path.exists('/sys') else [])"
    stand_in(programs, "tesseract", f"{body}; open('/tmp/x', 'w')")
    reading = ocr.read(png())
    assert reading.notes == ["tesseract could not read the picture"]
    stand_in(programs, "tesseract", body)
    assert ocr.read(png()).text == "False []"


def test_what_looks_like_a_credential_is_masked_in_the_text(frames: Path, programs: Path) -> None:
    put(frames, "a.png", png(), ago(0))
    stand_in(programs, "tesseract", f"print('Welcome\\nkey {KEYS['github']} x\\nlast')")
    found = frame(FrameSource(path=str(frames)), SHAPES_ONLY, threading.Event())
    assert found.text == f"Welcome\nkey {MASK} x\nlast"
    assert "masked in the text" in found.notes[0]


def test_the_text_is_bounded(frames: Path, programs: Path) -> None:
    put(frames, "a.png", png(), ago(0))
    stand_in(programs, "tesseract", "print('word and word\\n' * 2000)")
    found = frame(FrameSource(path=str(frames)), SHAPES_ONLY, threading.Event())
    assert len(found.text) == 10_000
    assert "cut to 10000" in found.notes[-1]


# --- cameras ---------------------------------------------------------------------------------------------------------


def test_only_video_devices_are_cameras(tmp_path: Path) -> None:
    assert not camera.is_camera(os.stat("/dev/null"))
    assert not camera.is_camera(os.stat(tmp_path))
    null = os.stat("/dev/null")
    video = os.stat_result((*null[:10],), {"st_rdev": os.makedev(81, 0)})
    assert camera.is_camera(video)


@pytest.mark.parametrize("program", ["ffmpeg", "fswebcam"])
def test_a_camera_is_asked_by_the_program_that_is_there(programs: Path, program: str) -> None:
    body = f"assert '/dev/null' in arguments; sys.stdout.buffer.write({png(7, 5)!r})"
    stand_in(programs, program, body)
    taken = camera.taken("/dev/null")
    assert (taken.name, taken.picture.width, taken.picture.height) == ("/dev/null", 7, 5)


@each(
    "body, code",
    [
        ("sys.exit(1)", "no_frame"),
        ("print('no picture')", "not_a_picture"),
        ("pass", "not_a_picture"),
        (f"sys.stdout.buffer.write({jpeg(60_000, 1)!r})", "too_large"),
        ("sys.stdout.buffer.write(bytes(17 * 2**20))", "too_large"),
    ],
)
def test_a_camera_that_gives_no_picture_is_told(programs: Path, body: str, code: str) -> None:
    stand_in(programs, "ffmpeg", body)
    with pytest.raises(NoFrame) as caught:
        camera.taken("/dev/null")
    assert caught.value.code == code
    assert caught.value.hint


def test_a_camera_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(programs, "ffmpeg", "while True: pass")
    monkeypatch.setattr(camera, "SECONDS", 0.5)
    with pytest.raises(NoFrame) as caught:
        camera.taken("/dev/null")
    assert caught.value.code == "timed_out"


@pytest.mark.usefixtures("programs")
def test_without_a_program_a_camera_says_which_to_install() -> None:
    with pytest.raises(NoFrame) as caught:
        camera.taken("/dev/video0")
    assert caught.value.code == "no_program"
    assert caught.value.hint == "apt install ffmpeg"


def test_a_device_is_lent_through_the_wall_and_nothing_else_of_dev(programs: Path) -> None:
    if not sandbox.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a sandbox")
    device = next((path for path in ("/dev/fuse", "/dev/kmsg", "/dev/net/tun") if os.path.exists(path)), "")
    if not device:
        pytest.skip("no device here to lend")
    program = stand_in(programs, "look", "print(*sorted(name for name in os.listdir('/dev') if name != 'core'))")
    without = run((str(program),), seconds=20, output_bytes=10_000).output.split()
    lent = run((str(program),), seconds=20, output_bytes=10_000, devices=(device,)).output.split()
    assert {*lent} - {*without} == {device.split("/")[2].encode()}


@pytest.mark.usefixtures("programs")
def test_where_there_is_no_wall_nothing_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert sandbox.bubblewrap_options((), ("/dev/video0",)) == ()


def test_a_program_that_is_not_there_is_told_as_one_that_fails(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("#!/nowhere\n")
    ended = run((str(tmp_path / "none"),), seconds=20, output_bytes=100)
    assert (ended.ended, ended.exit_code) == ("crashed", 96)


def test_what_is_no_command_is_not_run() -> None:
    ended = run_limited(
        "pmagent.actors.pla.frames.program_child", b"x" * 20_000, seconds=20, memory_bytes=2**30, output_bytes=10
    )
    assert (ended.ended, ended.exit_code) == ("crashed", 96)


def test_without_a_wall_it_is_noted(programs: Path, frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "bubblewrap_options", lambda *_: ())
    put(frames, "a.png", png(), ago(0))
    stand_in(programs, "tesseract", "print('text')")
    found = frame(FrameSource(path=str(frames)), SHAPES_ONLY, threading.Event())
    assert found.text == "text"
    assert sandbox.UNSANDBOXED in found.notes
