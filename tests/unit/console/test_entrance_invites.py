"""One-time addresses: used once, for a while, by whom they are for."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import msgspec
import pytest

from pmagent.console.auth import invites, operators
from pmagent.console.auth.entrance import Entered, Entrance, NotAdmitted, invite
from pmagent.console.auth.invites import BadInvites
from pmagent.console.auth.tokens import digest, new_token
from pmagent.events.errors import PmagentError
from pmagent.service.client import DaemonUnreachable
from pmagent.workspace.settings import ConsoleSettings
from tests.support.cases import each
from tests.support.entrances import GuardedConsole


def test_an_invite_lets_its_operator_in_and_that_is_recorded(guarded: GuardedConsole) -> None:
    entered = guarded.entered("vic")
    assert (entered.visitor.operator, entered.visitor.role) == ("vic", "view")
    assert guarded.entrance.visitor(entered.cookie) == entered.visitor
    assert entered.visitor.since == "2026-09-21T14:13:20.000000Z"
    assert guarded.notes == [("vic", "signed_in", "link", "")]


def refused(guarded: GuardedConsole, token: str) -> str:
    """Why a token lets nobody in."""
    with pytest.raises(NotAdmitted) as raised:
        anyio.run(guarded.entrance.enter, token)
    assert raised.value.hint
    assert guarded.notes[-1][:3] == ("", "refused", "link")
    assert len(guarded.entrance._sessions) == 0
    return raised.value.message


def test_an_invite_is_used_once(guarded: GuardedConsole) -> None:
    token = guarded.invited("ada")
    entered = anyio.run(guarded.entrance.enter, token)
    guarded.entrance._sessions.end(entered.visitor.session)
    assert "used already" in refused(guarded, token)
    assert list(guarded.paths.invites.iterdir()) == []


def test_an_invite_is_over_after_five_minutes(guarded: GuardedConsole) -> None:
    token = guarded.invited("ada")
    guarded.clock.now += 300.0
    refused(guarded, token)
    token = guarded.invited("ada")
    guarded.clock.now += 299.9
    assert anyio.run(guarded.entrance.enter, token).visitor.operator == "ada"


def test_an_invite_made_in_the_future_is_none(guarded: GuardedConsole) -> None:
    """The clock was set back: nobody knows how old it is."""
    token = guarded.invited("ada")
    guarded.clock.now -= 3600.0
    refused(guarded, token)


def test_an_invite_says_itself_how_long_it_lasts_and_that_is_not_believed(guarded: GuardedConsole) -> None:
    token = new_token()
    ada = operators.named(guarded.paths.operators, "ada")
    now = guarded.clock.now
    forged = invites.Invite("ada", ada.issue, now - 1_000.0, now + 1_000.0)
    path = guarded.paths.invites / digest(token)
    path.write_bytes(msgspec.json.encode(forged))
    path.chmod(0o600)
    refused(guarded, token)


@each(
    "token",
    ["", "x", "../sessions.json", "a" * 43, "a" * 64, "A" * 42 + "\n", "é" * 43, "\ud800" * 43, ".", "a/" * 21 + "a"],
)
def test_what_is_no_token_of_ours_lets_nobody_in(guarded: GuardedConsole, token: str) -> None:
    guarded.invited("ada")
    before = guarded.files()
    refused(guarded, token)
    assert guarded.files() == before


def test_the_name_of_an_invites_file_lets_nobody_in(guarded: GuardedConsole) -> None:
    guarded.invited("ada")
    (path,) = guarded.paths.invites.iterdir()
    refused(guarded, path.name)
    assert path.exists()


def test_an_invite_of_another_workspace_lets_nobody_in(guarded: GuardedConsole, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    refused(guarded, GuardedConsole(tmp_path / "other", ada="approve").invited("ada"))


def test_an_invite_for_an_operator_who_was_removed_is_none_also_when_the_name_comes_back(
    guarded: GuardedConsole
) -> None:
    token, second = guarded.invited("ada"), guarded.invited("ada")
    operators.remove(guarded.paths.operators, "ada")
    refused(guarded, token)
    guarded.add("ada", "view")
    refused(guarded, second)


def test_of_many_who_use_an_invite_at_once_one_gets_in(guarded: GuardedConsole) -> None:
    token = guarded.invited("ada")
    ways: list[object] = []

    async def enter(entrance: Entrance) -> None:
        try:
            ways.append(await entrance.enter(token))
        except NotAdmitted:
            ways.append(None)

    async def at_once() -> None:
        made = (guarded.paths, ConsoleSettings(), guarded._note, guarded.clock, guarded.steady)
        entrances = [Entrance(*made) for _ in range(10)]
        async with anyio.create_task_group() as tasks:
            for entrance in entrances:
                tasks.start_soon(enter, entrance)

    anyio.run(at_once)
    assert len(ways) == 10
    assert len([way for way in ways if isinstance(way, Entered)]) == 1


def test_who_has_read_an_invite_that_somebody_else_uses_up_meanwhile_does_not_get_in(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, read, quicker = guarded.invited("ada"), invites._read, []

    def slow(path: Path) -> invites.Invite | None:
        found = read(path)
        monkeypatch.setattr(invites, "_read", read)
        quicker.append(invites.take(guarded.paths.invites, token, guarded.clock.now))
        return found

    monkeypatch.setattr(invites, "_read", slow)
    assert invites.take(guarded.paths.invites, token, guarded.clock.now) is None
    assert [invite.operator for invite in quicker if invite] == ["ada"]


def test_invites_are_cleared_away_when_they_are_over_or_too_many(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invites, "INVITES_MAX", 3)
    made = []
    for age in (400, 40, 30, 20, 10):
        made.append(guarded.invited("ada"))
        path = guarded.paths.invites / digest(made[-1])
        os.utime(path, (guarded.clock.now - age,) * 2)
    left = {path.name for path in guarded.paths.invites.iterdir()}
    assert left == {digest(token) for token in made[-3:]}


@pytest.mark.parametrize("what", ["a link", "open to others", "another name", "no JSON"])
def test_an_invite_that_somebody_else_may_have_made_is_none(guarded: GuardedConsole, tmp_path: Path, what: str) -> None:
    token = guarded.invited("ada")
    path = guarded.paths.invites / digest(token)
    if what == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "open to others":
        path.chmod(0o644)
    elif what == "another name":
        (tmp_path / "second").hardlink_to(path)
    else:
        path.write_text("{")
    refused(guarded, token)
    assert not path.exists()


@pytest.mark.parametrize("what", ["open to others", "a link", "another user's"])
def test_a_folder_of_invites_that_others_may_write_lets_nobody_in(
    guarded: GuardedConsole, tmp_path: Path, what: str
) -> None:
    token = guarded.invited("ada")
    if what == "open to others":
        guarded.paths.invites.chmod(0o770)
    elif what == "a link":
        guarded.paths.invites.rename(tmp_path / "elsewhere")
        guarded.paths.invites.symlink_to(tmp_path / "elsewhere")
    elif os.geteuid() == 0:
        os.chown(guarded.paths.invites, 54321, 54321)
    else:
        pytest.skip("only root can give a folder away")
    with pytest.raises(BadInvites):
        anyio.run(guarded.entrance.enter, token)


def test_an_invite_needs_a_folder_that_is_this_users_alone(tmp_path: Path) -> None:
    guarded = GuardedConsole(tmp_path, ada="approve")
    guarded.paths.invites.rmdir()
    (tmp_path / "mine").mkdir()
    guarded.paths.invites.symlink_to(tmp_path / "mine")
    with pytest.raises((BadInvites, PmagentError)):
        invite(guarded.paths, operators.named(guarded.paths.operators, "ada"), guarded.clock)
    assert list((tmp_path / "mine").iterdir()) == []


def test_too_many_tries_of_addresses_are_not_looked_at(guarded: GuardedConsole) -> None:
    token = guarded.invited("ada")
    for _ in range(20):
        refused(guarded, new_token())
    with pytest.raises(NotAdmitted, match="too many") as raised:
        anyio.run(guarded.entrance.enter, token)
    assert raised.value.after >= 1.0
    guarded.steady.now += 1.0
    assert anyio.run(guarded.entrance.enter, token).visitor.operator == "ada"


def test_refusals_are_recorded_some_in_a_minute_and_the_others_counted(guarded: GuardedConsole) -> None:
    for _ in range(15):
        with pytest.raises(NotAdmitted):
            anyio.run(guarded.entrance.enter, new_token())
    assert len(guarded.notes) == 5
    guarded.steady.now += 12.0
    refused(guarded, new_token())
    assert len(guarded.notes) == 6
    assert "(10 more before it)" in guarded.notes[-1][3]


def test_a_refusal_that_cannot_be_recorded_is_still_one(guarded: GuardedConsole) -> None:
    guarded.unrecordable = DaemonUnreachable("the daemon is away", "")
    with pytest.raises(NotAdmitted):
        anyio.run(guarded.entrance.enter, new_token())
    guarded.unrecordable = None
    refused(guarded, new_token())
    assert "(1 more before it)" in guarded.notes[-1][3]


def test_nobody_is_in_whose_entering_is_not_recorded(guarded: GuardedConsole) -> None:
    guarded.unrecordable = DaemonUnreachable("the daemon is away", "")
    token = guarded.invited("ada")
    with pytest.raises(DaemonUnreachable):
        anyio.run(guarded.entrance.enter, token)
    assert len(guarded.entrance._sessions) == 0
    guarded.unrecordable = None
    assert "used already" in refused(guarded, token)
