"""The origin check tells our packages from others of the same name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pmagent import _origin

SHAPES = {
    "package": ("events/__init__.py", "events"),
    "module": ("events.py", "events.py"),
    "package without __init__": ("events/codec.py", None),  # a regular package later on the path wins
}


@pytest.fixture
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands first on the import path, with our packages not imported yet."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] in _origin.FIRST_PARTY]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_our_own_installation_passes() -> None:
    assert _origin.misplaced() == []


@pytest.mark.parametrize("shape", SHAPES)
def test_a_package_from_elsewhere_is_found(shadow: Path, shape: str) -> None:
    file, seen = SHAPES[shape]
    (shadow / file).parent.mkdir(exist_ok=True)
    (shadow / file).write_text("raise AssertionError('imported')\n")
    expected = [] if seen is None else [("events", os.path.realpath(shadow / seen))]
    assert _origin.misplaced() == expected


def test_a_package_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_origin, "FIRST_PARTY", ("pmagent", "no_such_package"))
    assert _origin.misplaced() == [("no_such_package", None)]


def test_refusal_exits_7_and_names_package_and_place_in_plain_characters(
    shadow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = shadow / "\x1b[31mred"
    (place / "events").mkdir(parents=True)
    (place / "events" / "__init__.py").touch()
    sys.path.insert(0, str(place))
    with pytest.raises(SystemExit) as refusal:
        _origin.check()
    assert refusal.value.code == 7
    message = capsys.readouterr().err
    assert "package 'events' would come from" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("entry", ["", ".", "{here}"])
def test_the_directory_started_in_is_taken_off_the_path_before_the_standard_library_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.chdir(tmp_path)
    here, standard = str(tmp_path), os.path.dirname(os.__file__)
    path = [entry.format(here=here), "/elsewhere", standard, here]
    assert _origin.trusted(path, here) == ["/elsewhere", standard, here]


def test_the_root_of_an_editable_install_stays_on_the_path() -> None:
    assert _origin.trusted([_origin.ROOT, "/elsewhere"], _origin.ROOT) == [_origin.ROOT, "/elsewhere"]
