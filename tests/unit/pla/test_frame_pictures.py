"""Pictures by their bytes: known, bounded, and refused where they are not all there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.pla.frames.pictures import SIDE_MAX, NotAPicture, Picture, TooLarge, picture
from tests.support.cases import each
from tests.support.frames import bmp, chunk, jpeg, png, webp

GOOD = {
    "png": png(), "png with a comment": png(comment=b"x\0y"), "jpeg": jpeg(), "bmp": bmp(), "bmp, top down": bmp(4, -3),
    "webp": webp(), "webp, lossless": webp(kind="VP8L"), "webp, lossy": webp(kind="VP8"),
}  # fmt: skip


@each("name", GOOD)
def test_a_picture_says_what_it_is(name: str) -> None:
    assert picture(GOOD[name]) == Picture(f"image/{name[:4].strip(', ')}", 4, 3)


def test_a_real_jpeg_is_one() -> None:
    pymupdf = pytest.importorskip("pymupdf")
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 30), 0)
    pixels.clear_with(200)
    assert picture(pixels.tobytes("jpeg")) == Picture("image/jpeg", 40, 30)
    assert picture(pixels.tobytes("png")) == Picture("image/png", 40, 30)


@each("name", GOOD)
def test_what_is_cut_off_is_no_picture_yet(name: str) -> None:
    whole = GOOD[name]
    for length in range(len(whole)):
        with pytest.raises(NotAPicture) as caught:
            picture(whole[:length])
        assert caught.value.unfinished or length > 1, length


@each("name", ["png", "bmp", "webp"])
def test_a_cut_is_told_from_nonsense(name: str) -> None:
    whole = GOOD[name]
    assert all(_unfinished(whole[:length]) for length in range(len(whole) - 1, 8, -1))


def _unfinished(content: bytes) -> bool:
    with pytest.raises(NotAPicture) as caught:
        picture(content)
    return caught.value.unfinished


@each(
    "content, told",
    [
        (b"GIF89a", "no PNG"),
        (b"%PDF-1.7", "no PNG"),
        (png() + b"<?php", "behind its end"),
        (png()[:40] + b"\0" + png()[41:], "checksum"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "begin with a header"),
        (png(0, 3), "no pixels"),
        (b"\xff\xd8\xff\xd9", "no frame header"),
        (b"\xff\xd8\xff\xe0\x00\x00", "no frame header"),
        (b"\xff\xd8\xff\xe0\x00\x02xx", "marker"),
        (b"RIFF\x04\0\0\0WAVE", "no WebP"),
        (webp(kind="ALPH"), "no WebP"),
        (webp(kind="VP8")[:23] + b"xxx" + webp(kind="VP8")[26:], "no WebP"),
        (bmp() + b"x", "no BMP"),
    ],
)
def test_what_is_none_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(NotAPicture, match=told):
        picture(content)


@each("content", [jpeg(SIDE_MAX + 1, 1), webp(10_000, 10_000), jpeg(65_535, 65_535)])
def test_what_has_too_many_pixels_is_not_decoded_by_anybody(content: bytes) -> None:
    with pytest.raises(TooLarge):
        picture(content)


@given(st.sampled_from(sorted(GOOD)), st.data())
def test_no_bytes_do_more_than_be_refused(name: str, data: st.DataObject) -> None:
    whole = bytearray(GOOD[name])
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = picture(bytes(whole))
    except (NotAPicture, TooLarge) as error:
        told = error.text
    else:
        told = found.media_type
    assert told
