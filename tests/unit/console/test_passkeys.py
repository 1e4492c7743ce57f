"""Passkeys: an answer counts once, from our page alone, with the person verified and a counter that went on; and where
one is required nothing is approved without it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from pmagent.console.address import Address, PortTaken, alone_at_localhost
from pmagent.console.auth import operators
from pmagent.console.auth.entrance import CONFIRMED_SECONDS, Entrance, NotAdmitted, Visitor, invite
from pmagent.console.auth.passkeys import CHALLENGES_MAX, SECONDS, BadPasskey, Challenges, NoPasskeys
from pmagent.console.paths import ConsolePaths
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import ConsoleSettings
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, Approver, forms, proposed
from tests.support.authenticator import PRESENT, Authenticator
from tests.support.cases import each
from tests.support.consoles import Console, live_host
from tests.support.entrances import Clock, unsynced

HOST: Final = "localhost:8123"
ORIGIN: Final = f"http://{HOST}"


class AdasConsole:
    """An entrance where passkeys are wanted, ada who is signed in by a one-time address, and her device."""

    def __init__(self, folder: Path, wanted: Any = "required") -> None:
        self.clock, self.notes = Clock(), list[tuple[str, ...]]()
        self.paths = ConsolePaths(Layout(folder))
        self.paths.prepare()
        settings = ConsoleSettings(passkeys=wanted)
        self.entrance = Entrance(self.paths, settings, self._note, self.clock, self.clock)
        self.device = Authenticator()
        ada = operators.add(self.paths.operators, "ada", "approve", None)
        self.cookie = self.run(self.entrance.enter, invite(self.paths, ada, self.clock)).cookie

    async def _note(self, *what: str) -> None:
        self.notes.append(what)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Await it."""
        return anyio.run(function, *arguments)

    @property
    def visitor(self) -> Visitor:
        """As she is now."""
        found = self.entrance.visitor(self.cookie)
        assert found is not None
        return found

    def challenge(self, purpose: Any, session: str = "") -> str:
        """Of a page that was loaded."""
        options = self.entrance.passkeys.options(purpose, session, HOST, self.entrance.operator(self.visitor))
        return str(json.loads(options)["challenge"])

    def add(self, device: Authenticator | None = None, **made: Any) -> None:
        """She adds a passkey."""
        challenge = self.challenge("add", self.visitor.session)
        answer = (device or self.device).made(challenge, **{"origin": ORIGIN, **made})
        self.run(self.entrance.add_passkey, self.visitor, HOST, challenge, answer, "a key")

    def enter(self, **answered: Any) -> Visitor:
        """She signs in with it."""
        challenge = self.challenge("enter")
        answer = self.device.answered(challenge, **{"origin": ORIGIN, **answered})
        visitor: Visitor = self.run(self.entrance.sign_in_by_passkey, HOST, challenge, answer).visitor
        return visitor


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdasConsole:
    unsynced(monkeypatch)
    return AdasConsole(tmp_path)


def test_an_operator_adds_a_passkey_and_signs_in_with_it_as_one_who_is_proven(ada: AdasConsole) -> None:
    assert not ada.visitor.by_secret
    ada.add()
    visitor = ada.enter()
    assert (visitor.operator, visitor.by_secret, visitor.due) == ("ada", True, False)
    assert [note[1] for note in ada.notes] == ["signed_in", "passkey_added", "signed_in"]
    assert ada.notes[-1][2] == "passkey"


def test_a_challenge_is_good_for_one_answer_of_its_session_and_purpose_for_five_minutes() -> None:
    clock = Clock()
    out = Challenges(clock)
    drawn = out.draw("confirm", "s")
    for purpose, session in (("confirm", "t"), ("enter", "s"), ("add", "s")):
        with pytest.raises(BadPasskey):
            out.take(purpose, session, drawn)  # type: ignore[arg-type]
    assert len(out.take("confirm", "s", drawn)) == 32
    with pytest.raises(BadPasskey):
        out.take("confirm", "s", drawn)
    late = out.draw("confirm", "s")
    clock.now += SECONDS + 1
    with pytest.raises(BadPasskey):
        out.take("confirm", "s", late)
    first = out.draw("enter", "")
    for _ in range(CHALLENGES_MAX):
        out.draw("enter", "")
    with pytest.raises(BadPasskey):
        out.take("enter", "", first)


WRONG: Final[dict[str, dict[str, Any]]] = {
    "of another site": {"origin": "https://evil.example"},
    "of another port": {"origin": "http://localhost:8124"},
    "of the number": {"origin": "http://127.0.0.1:8123"},
    "over TLS": {"origin": "https://localhost:8123"},
    "for another party": {"rp": "evil.example"},
    "without the person": {"flags": PRESENT},
    "without anybody": {"flags": 0},
}


@each("why", list(WRONG))
def test_an_answer_that_is_not_of_our_page_and_of_the_person_counts_for_nothing(
    tmp_path_factory: pytest.TempPathFactory, why: str
) -> None:
    ada = AdasConsole(tmp_path_factory.mktemp("console"))
    with pytest.raises(BadPasskey):
        ada.add(**WRONG[why])
    assert not ada.entrance.operator(ada.visitor).passkeys
    ada.add()
    with pytest.raises(NotAdmitted):
        ada.enter(**WRONG[why])
    assert ada.notes[-1][:3] == ("", "refused", "passkey")
    challenge = ada.challenge("confirm", ada.visitor.session)
    answer = ada.device.answered(challenge, **{"origin": ORIGIN, **WRONG[why]})
    with pytest.raises(BadPasskey):
        ada.run(ada.entrance.confirm, ada.visitor, HOST, challenge, answer)
    assert ada.visitor.due


def test_a_counter_that_does_not_go_on_is_that_of_a_copy(ada: AdasConsole) -> None:
    ada.add()
    ada.device.count = 7
    ada.enter()
    assert ada.entrance.operator(ada.visitor).passkeys[0].count == 7
    for count in (7, 3, 0):
        ada.device.count = count
        with pytest.raises(NotAdmitted):
            ada.enter()
    ada.device.count = 8
    ada.enter()
    with pytest.raises(operators.NoSuchOperator):  # two answers that were looked at side by side
        operators.count_passkey(ada.paths.operators, "ada", ada.entrance.operator(ada.visitor).passkeys[0].id, 8)


def test_somebody_elses_passkey_a_removed_one_and_junk_let_nobody_in(ada: AdasConsole) -> None:
    with pytest.raises(NotAdmitted):
        ada.enter()
    ada.add()
    for junk in ("", "{}", "[]", "null", '{"id": 3}', "[" * 100_000, f'{{"id":"{ada.device.id.hex()}"}}'):
        with pytest.raises(NotAdmitted):
            ada.run(ada.entrance.sign_in_by_passkey, HOST, ada.challenge("enter"), junk)
        ada.clock.now += 30  # so that there are not too many tries
    with pytest.raises(operators.NoSuchOperator):
        ada.add()
    assert [note[1] for note in ada.notes].count("passkey_added") == 1, "the log tells of none that there is not"
    operators.add(ada.paths.operators, "bert", "approve", None)
    with pytest.raises(operators.NoSuchOperator):
        operators.add_passkey(ada.paths.operators, "bert", ada.entrance.operator(ada.visitor).passkeys[0])
    gone = operators.remove_passkey(ada.paths.operators, "ada", ada.entrance.operator(ada.visitor).passkeys[0].id[:6])
    assert gone.name == "a key"
    assert ada.entrance.visitor(ada.cookie) is None, "her sessions have ended"


def test_who_has_confirmed_may_approve_for_ten_minutes(ada: AdasConsole) -> None:
    ada.add()
    before = ada.visitor
    assert before.due, "adding one is no confirmation"
    challenge = ada.challenge("confirm", ada.visitor.session)
    ada.run(ada.entrance.confirm, ada.visitor, HOST, challenge, ada.device.answered(challenge, ORIGIN))
    assert not ada.visitor.due
    again = Entrance(ada.paths, ConsoleSettings(passkeys="required"), ada._note, ada.clock, ada.clock)
    kept = again.visitor(ada.cookie)
    assert kept is not None
    assert not kept.due, "a restart keeps it"
    ada.clock.now += CONFIRMED_SECONDS
    late = ada.visitor
    assert late.due
    ada.clock.now -= 2 * CONFIRMED_SECONDS  # the clock was set back: nobody knows how long ago it was
    assert (back := ada.entrance.visitor(ada.cookie)) is None or back.due


@each("wanted, host", [("off", HOST), ("required", "127.0.0.1:8123"), ("offered", "[::1]:8123")])
def test_without_the_setting_or_a_name_there_are_none(
    tmp_path_factory: pytest.TempPathFactory, wanted: Any, host: str
) -> None:
    ada = AdasConsole(tmp_path_factory.mktemp("console"), wanted)
    assert ada.entrance.passkeys.lack(host)
    with pytest.raises(NoPasskeys):
        ada.entrance.passkeys.options("enter", "", host)
    with pytest.raises(NoPasskeys):
        ada.run(ada.entrance.sign_in_by_passkey, host, "", "{}")
    assert ada.visitor.due == (wanted == "required")


def test_where_one_is_required_nothing_is_approved_without_and_rejecting_stays_open(tmp_path: Path) -> None:
    workspace = fresh_example(tmp_path / "workspace")
    with live_host(workspace) as live:
        browser = Console(workspace, ConsoleSettings(passkeys="required")).enter(APPROVING)
        name = proposed(live)["proposal_id"]
        card = browser.get(f"/approvals/{name}?decide=approve", follow_redirects=True).text
        assert not forms(card, f"/approvals/{name}/approve")
        back = f"/passkeys?next=%2Fapprovals%2F{name}%3Fdecide%3Dapprove"
        assert f'href="{back.replace("%2F", "/")}"' in card or back in card
        answer = browser.post(f"/approvals/{name}/approve", digest="0" * 64, read="yes")
        assert (answer.status_code, answer.headers["location"]) == (303, back)
        for path, page in (("/agents/calls/4711/approve", "%2Fagents%2Fcalls%2F4711"), ("/policy/accept", "%2Fpolicy")):
            answer = browser.post(path, layer="project", digest="0" * 64)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/passkeys?next={page}")
        shown = browser.page(back)
        assert "http://localhost:8321/sign-in" in shown
        assert "lets nobody approve without one" in shown
        assert Approver(browser).reject(name, "enough").status_code == 303


def test_the_port_at_the_first_address_of_localhost_is_kept_from_others_where_passkeys_are_used() -> None:
    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::1", 0))
        address = Address(1, "http://127.0.0.1", other.getsockname()[1])
        with pytest.raises(PortTaken), alone_at_localhost(address, ConsoleSettings(passkeys="offered")):
            pass
        with alone_at_localhost(address, ConsoleSettings()):
            pass
    with alone_at_localhost(address, ConsoleSettings(passkeys="offered")), socket.socket(socket.AF_INET6) as late:
        late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            late.bind(("::1", address.port))
        with pytest.raises(ConnectionRefusedError):
            late.connect(("::1", address.port))
