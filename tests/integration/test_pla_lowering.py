"""Settings that are broken meanwhile keep nobody from stopping the PLA."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import pmagent
from tests.support.pla_live import asked, configure, events, pla

LOWERING = (("disarm",), ("mode", "OBSERVE"), ("end",))
BROKEN = {
    "no TOML": b"= no TOML",
    "not UTF-8": b"\xff\xfe",
    "an unknown setting": b"[pla]\nnope = 1\n",
    "a value of the wrong type": b"[pla]\ntwo_persons = 'yes'\n",
    "an operator that can be none": b"[pla]\noperator = 'a b'\n",
}


@pytest.fixture
def lab(workspace: Path) -> Path:
    """A workspace in SUGGEST."""
    configure(workspace)
    pla(workspace, "mode", "SUGGEST")
    return workspace


@pytest.mark.parametrize("command", LOWERING, ids=" ".join)
def test_settings_that_cannot_be_read_keep_nobody_from_lowering(lab: Path, command: tuple[str, ...]) -> None:
    (lab / ".pmagent" / "config.toml").write_bytes(BROKEN["no TOML"])
    done = pla(lab, *command)
    assert done.errors.startswith("warning: ")
    assert "goes on without the settings" in done.errors
    configure(lab)
    assert asked(lab, "status")["mode"] == ("SUGGEST" if command == ("disarm",) else "OBSERVE")


@pytest.mark.parametrize("name", list(BROKEN))
def test_however_settings_are_broken_the_mode_can_be_lowered_and_not_raised(workspace: Path, name: str) -> None:
    (workspace / ".pmagent").mkdir()
    (workspace / ".pmagent" / "config.toml").write_bytes(BROKEN[name])
    assert pmagent(workspace, "pla", "mode", "SUGGEST").code == 2
    assert "goes on without the settings" in pla(workspace, "mode", "OBSERVE").errors


def test_who_is_named_lowers_it_also_where_the_settings_are_broken(lab: Path) -> None:
    (lab / ".pmagent" / "config.toml").write_bytes(BROKEN["no TOML"])
    pla(lab, "mode", "OBSERVE", "--operator", "grace")
    configure(lab)
    assert [one["who"] for one in events(lab, "pla.mode_changed")] == ["ada", "grace"]


def test_a_name_that_is_none_is_refused_with_good_settings_and_with_bad_ones(lab: Path) -> None:
    for settings in (b"", b"= no TOML"):
        (lab / ".pmagent" / "config.toml").write_bytes(settings)
        assert "--operator is no operator's name" in pla(lab, "disarm", "--operator", "a b", expect=2).errors


def test_no_device_is_said_to_be_disarmed_that_did_not_say_so(lab: Path) -> None:
    done = pla(lab, "disarm")
    assert done.lines == [
        "✓ disarmed on this side:",
        "  no device is linked; one that was armed disarms itself within 5 s",
    ]
