"""Nothing of the directory that we are started in is imported, and all of ours is there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pmagent import _origin
from tests.support.cases import each


def test_our_own_installation_passes() -> None:
    assert _origin.missing() == []
    _origin.check()


@pytest.mark.parametrize("package", _origin.PACKAGES)
def test_a_checkout_without_symbolic_links_is_refused_by_name(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "\x1b[31mred"
    others = shutil.ignore_patterns("__pycache__", *_origin.PACKAGES)
    shutil.copytree(_origin.PLACE, place, symlinks=True, ignore=others)
    for other in _origin.PACKAGES:
        (place / other).symlink_to(os.path.realpath(os.path.join(_origin.PLACE, other)))
    assert _origin.missing(str(place)) == []
    (place / package).unlink()
    (place / package).write_text(f"../{package}")  # as git leaves a link where it makes none
    assert _origin.missing(str(place)) == [package]

    monkeypatch.setattr(_origin, "missing", lambda: [package])
    monkeypatch.setattr(_origin, "PLACE", str(place))
    with pytest.raises(SystemExit) as refusal:
        _origin.check()
    assert refusal.value.code == 7
    message = capsys.readouterr().err
    assert package in message
    assert "\x1b" not in message


@each("entry", ["", ".", "{here}"])
def test_the_directory_started_in_is_taken_off_the_path_before_the_standard_library_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.chdir(tmp_path)
    here, standard = str(tmp_path), os.path.dirname(os.__file__)
    path = [entry.format(here=here), "/elsewhere", standard, here]
    assert _origin.trusted(path, here) == ["/elsewhere", standard, here]


def test_the_root_of_an_editable_install_stays_on_the_path() -> None:
    assert _origin.trusted([_origin.ROOT, "/elsewhere"], _origin.ROOT) == [_origin.ROOT, "/elsewhere"]
