"""A report that cannot be read ends in one clear error, and nothing outlives it."""

from __future__ import annotations

import os
import random
import socket
import threading
from pathlib import Path

import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf import reader
from pmagent.actors.audit.sources.pdf.reader import content, shown
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import PdfReading
from tests.support import pdfs
from tests.support.pdf_readings import read

LIMITS = AuditLimits(pdf_seconds=60)


def failure(path: Path | str, limits: AuditLimits = LIMITS, stop: threading.Event | None = None) -> SourceFailed:
    with pytest.raises(SourceFailed) as raised:
        read_pdf(str(path), [], limits, stop)
    assert raised.value.hint
    assert raised.value.exit_code == 1
    return raised.value


def test_what_is_no_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("missing.pdf", "fifo", "dangling", "socket", "missing/deeper.pdf", "nul\x00.pdf", ""):
            found = failure(tmp_path / name if name else "")
            assert found.code == "pdf_missing"
    assert failure(tmp_path).message == f"{tmp_path} is not a file"
    assert failure("/dev/zero").code == "pdf_missing"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"%PDF-")
    (tmp_path / "link.pdf").symlink_to("real")
    assert content(str(tmp_path / "link.pdf"), 10) == b"%PDF-"


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "open", refused)
    assert failure(tmp_path / "secret.pdf").message.endswith("may not be read")


@pytest.mark.parametrize("made", [
    b"<html><body>not a PDF</body></html>", b"PK\x03\x04zip", b"\x89PNG\r\n\x1a\n", b"plain text",
    b" " * 2_000 + b"%PDF-1.7",
])
def test_only_a_pdf_is_taken_for_one(made: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(made)
    found = failure(tmp_path / "r.pdf")
    assert (found.code, found.message) == (
        "pdf_damaged", f"{tmp_path}/r.pdf is not a PDF: it does not begin with %PDF-",
    )


def test_another_kind_of_document_that_says_it_is_a_pdf_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(b"<html><!-- %PDF-1.7 --><body>not a PDF</body></html>")
    assert failure(tmp_path / "r.pdf").code == "pdf_damaged"


@pytest.mark.parametrize(("made", "code"), [
    (b"", "pdf_empty"),
    (pdfs.no_pages(), "pdf_empty"),
    (b"%PDF-1.7 and then nothing of the kind", "pdf_damaged"),
    (pdfs.endless_pages(), "pdf_damaged"),
])
def test_empty_and_damaged_files_are_told_apart(made: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(made)
    assert failure(tmp_path / "r.pdf").code == code


def test_a_password_is_not_guessed(tmp_path: Path) -> None:
    made = pdfs.Report()
    made.page("<p>Secret.</p>")
    path = made.saved(tmp_path / "r.pdf", encryption=pdfs.mupdf.PDF_ENCRYPT_AES_256, owner_pw="o", user_pw="u")
    found = failure(path)
    assert found.code == "pdf_encrypted"
    assert "password" in found.message


def test_each_limit_is_named_with_its_value(tmp_path: Path) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", ["one", "two", "three"])
    size = Path(path).stat().st_size
    pages = failure(path, AuditLimits(pdf_pages=2))
    assert (pages.code, pages.message) == ("pdf_too_large", f"{path} has 3 pages; the limit is 2")
    bytes_ = failure(path, AuditLimits(pdf_bytes=size - 1))
    assert (bytes_.code, bytes_.message) == ("pdf_too_large", f"{path} has more than {size - 1:,} bytes, the limit")
    seconds = failure(path, AuditLimits(pdf_seconds=0.01))
    assert (seconds.code, seconds.message) == (
        "pdf_timed_out", f"{path} could not be read within 0.01 seconds, the limit",
    )
    assert read_pdf(path, [], AuditLimits(pdf_bytes=size, pdf_pages=3)).pages == 3


def test_too_little_memory_to_begin_with_is_no_missing_package(tmp_path: Path) -> None:
    found = failure(pdfs.plain_pages(tmp_path / "r.pdf", ["one"]), AuditLimits(pdf_memory=2**26))
    assert found.code == "pdf_too_large"
    assert "64 MiB of memory, the limit" in found.message


def test_a_bomb_ends_at_the_limit_of_memory_or_time(tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(pdfs.bomb(2**28))
    found = failure(tmp_path / "r.pdf", AuditLimits(pdf_seconds=1, pdf_memory=2**29))
    assert found.code in {"pdf_timed_out", "pdf_too_large"}
    assert "the limit" in found.message


def test_pages_that_bring_the_process_down_are_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MODULE", "tests.support.breaking_reader")
    found = read(pdfs.plain_pages(tmp_path / "r.pdf", ["one", "BREAK", "three", "BREAK"]))
    assert (found.pages, found.text_pages, found.characters) == (4, 2, len("onethree"))
    assert found.notes == ["pages on which the reader broke down, left out: 2"]


def test_a_pdf_that_brings_the_process_down_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MODULE", "tests.support.breaking_reader")
    monkeypatch.setattr(reader, "BREAKS_MAX", 2)
    broken = failure(pdfs.plain_pages(tmp_path / "r.pdf", ["BREAK"] * 4))
    assert broken.code == "pdf_damaged"
    assert "broke down (signal 6)" in broken.message
    assert failure(pdfs.plain_pages(tmp_path / "all.pdf", ["BREAK"] * 2)).code == "pdf_damaged"


def test_a_reading_is_cancelled(tmp_path: Path) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", ["one"])
    stop = threading.Event()
    stop.set()
    assert failure(path, stop=stop).code == "cancelled"


def test_a_path_is_shown_without_what_is_not_seen(tmp_path: Path) -> None:
    assert shown("a\u202eb\x1b[31m\nc") == "ab[31m c"
    assert "\x1b" not in failure(tmp_path / "\x1b[31mred").message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_pdf_with_flaws_anywhere_is_read_or_refused_but_never_an_error_of_ours(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    made = pdfs.Report()
    page = made.page("<h1>Title</h1><p>The judges run in parallel in <code>src/nodes/judges.py</code>.</p>")
    pdfs.boxes_and_arrows(page, ["a", "b", "c"], top=400)
    pdfs.table(made.page("<p>Second.</p>"), 3, 3, top=300)
    data = bytearray(made.bytes(deflate=bool(seed % 2), use_objstms=seed % 3 == 0))
    for _ in range(chance.choice((1, 5, 40))):
        at = chance.randrange(len(data))
        match chance.randrange(3):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(1, 30)]
            case _:
                data[at : at + 4] = chance.choice((b"-999", b"null", b"<<<<", b"9999", b" 3 0 R "))
    (tmp_path / "r.pdf").write_bytes(data)
    found = outcome(tmp_path / "r.pdf")
    if isinstance(found, SourceFailed):
        assert found.code in {"pdf_damaged", "pdf_empty", "pdf_encrypted"}
    else:
        assert found.pages > 0


def outcome(path: Path) -> PdfReading | SourceFailed:
    try:
        return read_pdf(str(path), [], LIMITS)
    except SourceFailed as error:
        return error


def test_an_error_of_the_process_itself_is_not_blamed_on_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", ["one"])
    monkeypatch.setattr(reader, "MODULE", "tests.support.no_such_module")
    assert failure(path).code == "failed"


def test_pymupdf_that_is_not_there_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", ["one"])
    monkeypatch.setattr(reader, "MODULE", "tests.support.without_pymupdf")
    found = failure(path)
    assert found.code == "pdf_unavailable"
    assert found.hint.startswith("pip install ")
    assert "'pymupdf>=1.28,<2'" in found.hint
