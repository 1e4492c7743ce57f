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
from tests.support.entrances import GuardedConsole, unsynced


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuardedConsole:
    """With Ada, who approves, and Vic, who views."""
    unsynced(monkeypatch)
    return GuardedConsole(tmp_path, ada="approve", vic="view")


def files(house: GuardedConsole) -> dict[str, bytes]:
    """Everything that lies in the console's folder, and the operators' file."""
    paths = [path for path in house.places.folder.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in [*paths, house.places.operators]}


# --- sessions --------------------------------------------------------------------------------------------------------


def test_a_session_ends_when_nobody_has_used_it_for_two_hours(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    for _ in range(3):
        house.clock.now += 7_199.0
        assert house.entrance.visitor(cookie) is not None
    house.clock.now += 7_200.0
    assert house.entrance.visitor(cookie) is None


def test_what_a_page_does_by_itself_keeps_no_session_alive(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    house.clock.now += 7_000.0
    assert house.entrance.visitor(cookie, used=False) is not None
    house.clock.now += 200.0
    assert house.entrance.visitor(cookie, used=False) is None


def test_a_session_ends_after_its_hours_however_it_is_used(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    for _ in range(11):
        house.clock.now += 3_600.0
        assert house.entrance.visitor(cookie) is not None
    house.clock.now += 3_600.0
    assert house.entrance.visitor(cookie) is None


def test_a_session_whose_age_nobody_knows_has_ended(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    house.clock.now -= 61.0
    assert house.entrance.visitor(cookie) is None
    house.clock.now += 61.0
    assert house.entrance.visitor(cookie) is None, "it does not come back"


def test_a_session_survives_a_restart_with_its_age(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    house.clock.now += 7_000.0
    house.start()
    assert house.entrance.visitor(entered.cookie) == entered.visitor
    house.clock.now += 7_000.0
    anyio.run(house.entrance.keep)
    house.start()
    assert house.entrance.visitor(entered.cookie) is not None, "when it was last used is kept as well"
    house.clock.now += 12 * 3_600.0 - 14_000.0
    house.start()
    assert house.entrance.visitor(entered.cookie) is None


def test_a_shorter_limit_holds_for_sessions_that_have_begun(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    house.clock.now += 1_800.0
    shorter = Entrance(house.places, ConsoleSettings(hours=0.5), house._note, house.clock, house.steady)
    assert shorter.visitor(cookie) is None


def test_who_signs_out_is_out_everywhere_and_after_a_restart(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    anyio.run(house.entrance.sign_out, entered.visitor)
    assert house.entrance.visitor(entered.cookie) is None
    house.start()
    assert house.entrance.visitor(entered.cookie) is None
    assert house.notes[-1] == ("ada", "signed_out", "session", "")


def test_who_signs_out_is_out_though_nobody_can_record_it(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    house.unrecordable = DaemonUnreachable("the daemon is away", "")
    with pytest.raises(DaemonUnreachable):
        anyio.run(house.entrance.sign_out, entered.visitor)
    house.start()
    assert house.entrance.visitor(entered.cookie) is None


def test_nobody_is_in_whose_session_cannot_be_kept(house: GuardedConsole) -> None:
    house.places.sessions.mkdir()
    with pytest.raises(OSError, match="irectory"):
        house.entered("ada")
    assert len(house.entrance._sessions) == 0


def test_a_role_and_a_removal_hold_at_once(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    operators.set_role(house.places.operators, "ada", "view")
    now = house.entrance.visitor(entered.cookie)
    assert now is not None
    assert now.role == "view"
    operators.remove(house.places.operators, "ada")
    assert house.entrance.visitor(entered.cookie) is None
    house.add("ada", "approve")
    assert house.entrance.visitor(entered.cookie) is None, "another Ada has nothing of the first"


def test_a_session_of_an_operator_who_went_while_the_console_was_away_has_ended(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    operators.remove(house.places.operators, "ada")
    house.add("ada", "approve")
    house.start()
    assert house.entrance.visitor(cookie) is None


def test_another_secret_ends_the_sessions(house: GuardedConsole) -> None:
    cookie = house.entered("ada").cookie
    operators.set_secret(house.places.operators, "ada", None)
    assert house.entrance.visitor(cookie) is None


def test_a_file_of_operators_that_goes_bad_puts_everybody_out_until_it_is_mended(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    house.places.operators.chmod(0o644)
    for _ in range(2):
        with pytest.raises(BadOperators):
            house.entrance.visitor(entered.cookie)
    with pytest.raises(BadOperators):
        anyio.run(house.entrance.enter, new_token())
    house.places.operators.chmod(0o600)
    assert house.entrance.visitor(entered.cookie) == entered.visitor


def test_what_was_forged_or_is_the_name_of_a_session_is_no_cookie(house: GuardedConsole) -> None:
    entered = house.entered("ada")
    for cookie in ("", "x", new_token(), entered.visitor.session, entered.cookie[:-1], entered.cookie + "A",
                   entered.cookie.swapcase(), entered.cookie + "\n", "\ud800" * 43):  # fmt: skip
        assert house.entrance.visitor(cookie) is None


def test_who_enters_anew_leaves_the_session_before(house: GuardedConsole) -> None:
    first = house.entered("ada")
    second = house.entered("vic", first.cookie)
    assert house.entrance.visitor(first.cookie) is None
    assert house.entrance.visitor(second.cookie) == second.visitor


def test_there_are_at_most_so_many_sessions_and_the_one_unused_longest_goes(
    house: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 3)
    cookies = []
    for _ in range(3):
        cookies.append(house.entered("ada").cookie)
        house.clock.now += 1.0
    house.entrance.visitor(cookies[0])
    house.steady.now += 60.0
    last = house.entered("ada").cookie
    alive = [house.entrance.visitor(cookie) is not None for cookie in [*cookies, last]]
    assert alive == [True, False, True, True]


def test_every_session_has_a_token_of_its_own_for_forms(house: GuardedConsole) -> None:
    one, other = house.entered("ada"), house.entered("ada")
    assert re.fullmatch("[0-9a-f]{64}", one.visitor.csrf)
    assert len({one.visitor.csrf, other.visitor.csrf, one.visitor.session, other.visitor.session}) == 4


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o077], ids=oct)
def test_files_are_this_users_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        house = GuardedConsole(tmp_path, ada="approve")
        house.entered("ada")
        house.invited("ada")
    finally:
        os.umask(before)
    console = house.places.folder
    modes = {path: path.stat().st_mode & 0o777 for path in [console, *console.rglob("*"), house.places.operators]}
    assert set(modes.values()) == {0o600, 0o700}, modes
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())


def test_no_file_holds_what_lets_somebody_in(house: GuardedConsole) -> None:
    entered, token = house.entered("ada"), house.invited("ada")
    written = b"".join([*files(house).values(), *(name.encode() for name in files(house))])
    for secret in (entered.cookie, entered.visitor.csrf, token):
        assert secret.encode() not in written
    assert digest(entered.cookie).encode() in written
    assert digest(token).encode() in written


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"version": 2, "sessions": []}', b'{"version": 1, "sessions": [{}]}'], ids=ascii
)
def test_sessions_that_are_not_understood_are_none_and_the_next_replaces_them(
    house: GuardedConsole, content: bytes
) -> None:
    cookie = house.entered("ada").cookie
    house.places.sessions.write_bytes(content)
    house.start()
    assert house.entrance.visitor(cookie) is None
    house.entered("ada")
    assert len(json.loads(house.places.sessions.read_bytes())["sessions"]) == 1


@pytest.mark.parametrize("what", ["a link", "open to others"])
def test_sessions_that_somebody_else_may_have_written_are_none(
    house: GuardedConsole, tmp_path: Path, what: str
) -> None:
    cookie = house.entered("ada").cookie
    if what == "a link":
        house.places.sessions.rename(tmp_path / "elsewhere")
        house.places.sessions.symlink_to(tmp_path / "elsewhere")
    else:
        house.places.sessions.chmod(0o606)
    house.start()
    assert house.entrance.visitor(cookie) is None


def test_sessions_are_not_written_through_a_link(house: GuardedConsole, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("as it was")
    house.places.sessions.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        house.entered("ada")
    assert (tmp_path / "elsewhere").read_text() == "as it was"


def test_the_register_says_what_is_wrong_once_for_each_state_of_the_file(
    house: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Log:
        def error(self, event: str, **_: object) -> None:
            said.append(event)

    monkeypatch.setattr(entrance, "_log", Log())
    house.places.operators.chmod(0o644)
    for _ in range(3):
        with pytest.raises(BadOperators):
            house.entrance.visitor(new_token())
    assert said == ["the console lets nobody in"]
    house.places.operators.chmod(0o604)
    with pytest.raises(BadOperators):
        house.entrance.visitor(new_token())
    assert len(said) == 2
    house.start()
    assert len(said) == 3, "and as soon as the console comes up"
