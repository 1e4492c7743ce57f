"""Sessions: how long they last, through what, and what lies on the disk of them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import anyio
import pytest

from pmagent.console.auth import entrance, operators, sessions
from pmagent.console.auth.entrance import Entrance
from pmagent.console.auth.operators import BadOperators
from pmagent.console.auth.tokens import digest, new_token
from pmagent.service.client import DaemonUnreachable
from pmagent.workspace.settings import ConsoleSettings
from tests.support.cases import each
from tests.support.entrances import GuardedConsole

# --- sessions --------------------------------------------------------------------------------------------------------


def test_a_session_ends_when_nobody_has_used_it_for_two_hours(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    for _ in range(3):
        guarded.clock.now += 7_199.0
        assert guarded.entrance.visitor(cookie) is not None
    guarded.clock.now += 7_200.0
    assert guarded.entrance.visitor(cookie) is None


def test_what_a_page_does_by_itself_keeps_no_session_alive(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    guarded.clock.now += 7_000.0
    assert guarded.entrance.visitor(cookie, used=False) is not None
    guarded.clock.now += 200.0
    assert guarded.entrance.visitor(cookie, used=False) is None


def test_a_session_ends_after_its_hours_however_it_is_used(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    for _ in range(11):
        guarded.clock.now += 3_600.0
        assert guarded.entrance.visitor(cookie) is not None
    guarded.clock.now += 3_600.0
    assert guarded.entrance.visitor(cookie) is None


def test_a_session_whose_age_nobody_knows_has_ended(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    guarded.clock.now -= 61.0
    assert guarded.entrance.visitor(cookie) is None
    guarded.clock.now += 61.0
    assert guarded.entrance.visitor(cookie) is None, "it does not come back"


def test_a_session_survives_a_restart_with_its_age(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    guarded.clock.now += 7_000.0
    guarded.start()
    assert guarded.entrance.visitor(entered.cookie) == entered.visitor
    guarded.clock.now += 7_000.0
    anyio.run(guarded.entrance.keep)
    guarded.start()
    assert guarded.entrance.visitor(entered.cookie) is not None, "when it was last used is kept as well"
    guarded.clock.now += 12 * 3_600.0 - 14_000.0
    guarded.start()
    assert guarded.entrance.visitor(entered.cookie) is None


def test_a_shorter_limit_holds_for_sessions_that_have_begun(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    guarded.clock.now += 1_800.0
    shorter = Entrance(guarded.paths, ConsoleSettings(hours=0.5), guarded._note, guarded.clock, guarded.steady)
    assert shorter.visitor(cookie) is None


def test_who_signs_out_is_out_everywhere_and_after_a_restart(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    anyio.run(guarded.entrance.sign_out, entered.visitor)
    assert guarded.entrance.visitor(entered.cookie) is None
    guarded.start()
    assert guarded.entrance.visitor(entered.cookie) is None
    assert guarded.notes[-1] == ("ada", "signed_out", "session", "")


def test_who_signs_out_is_out_though_nobody_can_record_it(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    guarded.unrecordable = DaemonUnreachable("the daemon is away", "")
    with pytest.raises(DaemonUnreachable):
        anyio.run(guarded.entrance.sign_out, entered.visitor)
    guarded.start()
    assert guarded.entrance.visitor(entered.cookie) is None


def test_nobody_is_in_whose_session_cannot_be_kept(guarded: GuardedConsole) -> None:
    guarded.paths.sessions.mkdir()
    with pytest.raises(OSError, match="irectory"):
        guarded.entered("ada")
    assert len(guarded.entrance._sessions) == 0


def test_a_role_and_a_removal_hold_at_once(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    operators.set_role(guarded.paths.operators, "ada", "view")
    now = guarded.entrance.visitor(entered.cookie)
    assert now is not None
    assert now.role == "view"
    operators.remove(guarded.paths.operators, "ada")
    assert guarded.entrance.visitor(entered.cookie) is None
    guarded.add("ada", "approve")
    assert guarded.entrance.visitor(entered.cookie) is None, "another Ada has nothing of the first"


def test_a_session_of_an_operator_who_went_while_the_console_was_away_has_ended(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    operators.remove(guarded.paths.operators, "ada")
    guarded.add("ada", "approve")
    guarded.start()
    assert guarded.entrance.visitor(cookie) is None


def test_another_secret_ends_the_sessions(guarded: GuardedConsole) -> None:
    cookie = guarded.entered("ada").cookie
    operators.set_secret(guarded.paths.operators, "ada", None)
    assert guarded.entrance.visitor(cookie) is None


def test_a_file_of_operators_that_goes_bad_puts_everybody_out_until_it_is_mended(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    guarded.paths.operators.chmod(0o644)
    for _ in range(2):
        with pytest.raises(BadOperators):
            guarded.entrance.visitor(entered.cookie)
    with pytest.raises(BadOperators):
        anyio.run(guarded.entrance.enter, new_token())
    guarded.paths.operators.chmod(0o600)
    assert guarded.entrance.visitor(entered.cookie) == entered.visitor


def test_what_was_forged_or_is_the_name_of_a_session_is_no_cookie(guarded: GuardedConsole) -> None:
    entered = guarded.entered("ada")
    for cookie in ("", "x", new_token(), entered.visitor.session, entered.cookie[:-1], entered.cookie + "A",
                   entered.cookie.swapcase(), entered.cookie + "\n", "\ud800" * 43):  # fmt: skip
        assert guarded.entrance.visitor(cookie) is None


def test_who_enters_anew_leaves_the_session_before(guarded: GuardedConsole) -> None:
    first = guarded.entered("ada")
    second = guarded.entered("vic", first.cookie)
    assert guarded.entrance.visitor(first.cookie) is None
    assert guarded.entrance.visitor(second.cookie) == second.visitor


def test_there_are_at_most_so_many_sessions_and_the_one_unused_longest_goes(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 3)
    cookies = []
    for _ in range(3):
        cookies.append(guarded.entered("ada").cookie)
        guarded.clock.now += 1.0
    guarded.entrance.visitor(cookies[0])
    guarded.steady.now += 60.0
    last = guarded.entered("ada").cookie
    alive = [guarded.entrance.visitor(cookie) is not None for cookie in [*cookies, last]]
    assert alive == [True, False, True, True]


def test_every_session_has_a_token_of_its_own_for_forms(guarded: GuardedConsole) -> None:
    one, other = guarded.entered("ada"), guarded.entered("ada")
    assert re.fullmatch("[0-9a-f]{64}", one.visitor.csrf)
    assert len({one.visitor.csrf, other.visitor.csrf, one.visitor.session, other.visitor.session}) == 4


# --- files -----------------------------------------------------------------------------------------------------------


@each("umask", [0o000, 0o077])
def test_files_are_this_users_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        guarded = GuardedConsole(tmp_path, ada="approve")
        guarded.entered("ada")
        guarded.invited("ada")
    finally:
        os.umask(before)
    console = guarded.paths.folder
    modes = {path: path.stat().st_mode & 0o777 for path in [console, *console.rglob("*"), guarded.paths.operators]}
    assert set(modes.values()) == {0o600, 0o700}, modes
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())


def test_no_file_holds_what_lets_somebody_in(guarded: GuardedConsole) -> None:
    entered, token = guarded.entered("ada"), guarded.invited("ada")
    written = b"".join([*guarded.files().values(), *(name.encode() for name in guarded.files())])
    for secret in (entered.cookie, entered.visitor.csrf, token):
        assert secret.encode() not in written
    assert digest(entered.cookie).encode() in written
    assert digest(token).encode() in written


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"version": 2, "sessions": []}', b'{"version": 1, "sessions": [{}]}'], ids=ascii
)
def test_sessions_that_are_not_understood_are_none_and_the_next_replaces_them(
    guarded: GuardedConsole, content: bytes
) -> None:
    cookie = guarded.entered("ada").cookie
    guarded.paths.sessions.write_bytes(content)
    guarded.start()
    assert guarded.entrance.visitor(cookie) is None
    guarded.entered("ada")
    assert len(json.loads(guarded.paths.sessions.read_bytes())["sessions"]) == 1


@pytest.mark.parametrize("what", ["a link", "open to others"])
def test_sessions_that_somebody_else_may_have_written_are_none(
    guarded: GuardedConsole, tmp_path: Path, what: str
) -> None:
    cookie = guarded.entered("ada").cookie
    if what == "a link":
        guarded.paths.sessions.rename(tmp_path / "elsewhere")
        guarded.paths.sessions.symlink_to(tmp_path / "elsewhere")
    else:
        guarded.paths.sessions.chmod(0o606)
    guarded.start()
    assert guarded.entrance.visitor(cookie) is None


def test_sessions_are_not_written_through_a_link(guarded: GuardedConsole, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("as it was")
    guarded.paths.sessions.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        guarded.entered("ada")
    assert (tmp_path / "elsewhere").read_text() == "as it was"


def test_the_register_says_what_is_wrong_once_for_each_state_of_the_file(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Log:
        def error(self, event: str, **_: object) -> None:
            said.append(event)

    monkeypatch.setattr(entrance, "_log", Log())
    guarded.paths.operators.chmod(0o644)
    for _ in range(3):
        with pytest.raises(BadOperators):
            guarded.entrance.visitor(new_token())
    assert said == ["the console lets nobody in"]
    guarded.paths.operators.chmod(0o604)
    with pytest.raises(BadOperators):
        guarded.entrance.visitor(new_token())
    assert len(said) == 2
    guarded.start()
    assert len(said) == 3, "and as soon as the console comes up"
