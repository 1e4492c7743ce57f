"""``pmagent console`` and ``pmagent operators``, without a daemon's process: a live host, and whoever listens."""

from __future__ import annotations

import getpass
import io
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.cli import console as command
from pmagent.cli import inputs
from pmagent.cli.checks import all_checks
from pmagent.console import address
from pmagent.console.address import Address
from pmagent.console.auth import invites, operators, passwords
from pmagent.console.auth.tokens import digest
from pmagent.console.paths import ConsolePaths
from pmagent.pla.operators import login
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.consoles import live_host
from tests.support.entrances import SECRET, cheap_secrets


@pytest.fixture(autouse=True)
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Secrets cost nothing."""
    return cheap_secrets(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace in which nothing runs."""
    Layout(tmp_path).prepare()
    return tmp_path


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace whose daemon answers, with whoever listens at a loopback port in place of its console."""
    folder = tmp_path_factory.mktemp("live")
    with live_host(folder), socket.create_server(("127.0.0.1", 0)) as listener:
        paths, port = ConsolePaths(Layout(folder)), listener.getsockname()[1]
        paths.prepare()
        address.tell(paths, Address(os.getpid(), f"http://127.0.0.1:{port}", port))
        yield folder


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Put this content on the command's stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def known(folder: Path) -> dict[str, operators.Operator]:
    """The operators of the workspace."""
    return operators.read(ConsolePaths(Layout(folder)).operators)


# --- pmagent console -------------------------------------------------------------------------------------------------


def test_without_a_daemon_there_is_no_address_and_nobody_is_added(folder: Path) -> None:
    told = pmagent(folder, "console")
    assert (told.code, told.out) == (5, b"")
    assert "no daemon runs" in told.errors
    assert "pmagent up" in told.errors
    assert known(folder) == {}


def test_where_there_is_no_workspace_that_is_said(tmp_path: Path) -> None:
    for words in (["console"], ["operators", "add", "ada"], ["operators", "list"]):
        told = pmagent(tmp_path, *words)
        assert told.code == 1
        assert "is no workspace" in told.errors
    assert list(tmp_path.iterdir()) == []


def test_operators_can_be_known_where_nothing_but_the_surfaces_is_yet(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    assert "there are none yet" in pmagent(tmp_path, "operators", "list").text
    for words in (["remove", "ada"], ["role", "ada", "view"], ["secret", "ada"]):
        assert "there is no operator ada" in pmagent(tmp_path, "operators", *words).errors
    assert not (tmp_path / ".pmagent").exists()
    added = pmagent(tmp_path, "operators", "add", "ada")
    assert added.code == 0, added.errors
    assert list(known(tmp_path)) == ["ada"]
    assert (tmp_path / ".pmagent/.gitignore").is_file()


def test_who_comes_first_becomes_an_operator_who_approves_and_that_is_said(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.unlink(missing_ok=True)
    told = pmagent(live, "console")
    assert told.code == 0, told.errors
    assert f"there were no operators: {login()} is the first, with the role approve" in told.errors
    assert f"for {login()}, who may look, approve and control; once, within 5 minutes" in told.errors
    assert [(one.name, one.role, one.secret) for one in known(live).values()] == [(login(), "approve", None)]
    again = pmagent(live, "console")
    assert "there were no operators" not in again.errors
    assert again.lines != told.lines


def test_two_who_come_first_at_once_both_get_an_address(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ConsolePaths(Layout(live)).operators
    file.unlink(missing_ok=True)
    add = operators.add

    def later(path: Path, name: str, role: operators.Role, secret: str | None) -> operators.Operator:
        monkeypatch.setattr(operators, "add", add)
        add(path, name, "approve", None)
        return add(path, name, role, secret)

    monkeypatch.setattr(operators, "add", later)
    told = pmagent(live, "console")
    assert told.code == 0, told.errors
    assert "there were no operators" not in told.errors
    assert list(known(live)) == [login()]


def test_the_address_is_one_line_and_its_token_is_kept_as_a_digest_for_that_operator(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.unlink(missing_ok=True)
    operators.add(paths.operators, "ada", "approve", None)
    operators.add(paths.operators, "vic", "view", None)
    told = pmagent(live, "console", "--operator", "vic")
    served = address.read(paths.address)
    assert served is not None
    (line,) = told.lines
    url, _, token = line.partition("/enter?token=")
    assert (url, len(token)) == (served.url, 43)
    assert "for vic, who may look and stop, and change nothing else" in told.errors
    assert token not in told.errors
    path = paths.invites / digest(token)
    taken = invites.take(paths.invites, token, path.stat().st_mtime)
    assert taken is not None
    assert taken.operator == "vic"


def test_a_program_gets_one_document(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.unlink(missing_ok=True)
    document = pmagent(live, "console", "--operator", "ada", "--format", "json").document
    assert {**document, "url": ""} == {
        "url": "", "operator": "ada", "role": "approve", "seconds": 300, "socket": None
    }  # fmt: skip
    assert "/enter?token=" in document["url"]


def test_who_is_no_operator_is_told_who_is(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.unlink(missing_ok=True)
    operators.add(paths.operators, "ada", "approve", None)
    for path in paths.invites.iterdir():
        path.unlink()
    told = pmagent(live, "console", "--operator", "eve")
    assert (told.code, told.out) == (1, b"")
    assert "no operator eve" in told.errors
    assert "ada" in told.errors
    assert pmagent(live, "console", "--operator", "no name").code == 2
    assert list(paths.invites.iterdir()) == []


def test_operators_that_cannot_be_trusted_let_nobody_in(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.write_text("{")
    paths.operators.chmod(0o666)
    for words in (["console"], ["operators", "list"], ["operators", "add", "ada"], ["operators", "remove", "ada"]):
        told = pmagent(live, *words)
        assert told.code == 7, told
        assert "mode 0666" in told.errors
        assert "chmod 600" in told.errors
    assert paths.operators.read_text() == "{"
    paths.operators.unlink()


def test_a_port_at_which_nobody_of_ours_listens_gets_no_address(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console is away, and another user's program has taken its port: it must not be told what lets somebody in."""
    monkeypatch.setattr(command, "READY_SECONDS", 0.0)
    paths = ConsolePaths(Layout(live))
    served = paths.address.read_bytes()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        address.tell(paths, Address(os.getpid(), f"http://127.0.0.1:{port}", port))
        told = pmagent(live, "console")
    assert (told.code, told.out) == (5, b"")
    assert "does not serve its console" in told.errors
    paths.address.write_bytes(served)


def test_a_console_that_is_switched_off_is_not_waited_for(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    served = paths.address.read_bytes()
    paths.address.unlink()
    told = pmagent(live, "console", environ={"PMAGENT_CONSOLE_ENABLED": "false"})
    assert told.code == 5
    assert "switched off" in told.errors
    paths.address.write_bytes(served)


def test_over_a_socket_the_command_says_how_to_reach_it(live: Path) -> None:
    paths = ConsolePaths(Layout(live))
    paths.operators.unlink(missing_ok=True)
    served = paths.address.read_bytes()
    with socket.socket(socket.AF_UNIX) as listener:
        path = live / "s"
        listener.bind(str(path))
        listener.listen()
        address.tell(paths, Address(os.getpid(), "http://localhost", 0, str(path)))
        told = pmagent(live, "console")
    assert told.code == 0
    assert told.text.startswith("http://localhost/enter?token=")
    assert f"it is served on the socket {path}" in told.errors
    paths.address.write_bytes(served)


def test_the_doctor_says_how_many_may_enter_and_what_is_wrong_with_the_file(folder: Path) -> None:
    def told() -> tuple[str, str, str]:
        (check,) = [check for check in all_checks(str(folder), {}) if check.name == "operators"]
        return check.state, check.text, check.remedy

    assert told() == ("ok", "none may enter the console yet; pmagent console adds you", "")
    file = ConsolePaths(Layout(folder)).operators
    operators.add(file, "ada", "approve", None)
    operators.add(file, "vic", "view", None)
    assert told() == ("ok", "2 may enter the console, 1 may approve there", "")
    file.chmod(0o640)
    state, text, remedy = told()
    assert (state, "mode 0640" in text, "chmod 600" in remedy) == ("fail", True, True)


# --- pmagent operators -----------------------------------------------------------------------------------------------


def test_a_secret_that_is_made_is_shown_once_and_lets_in(folder: Path) -> None:
    told = pmagent(folder, "operators", "add", "ada")
    assert told.lines[0] == "✓ ada (view): added"
    secret = told.lines[1].removeprefix("  secret: ")
    assert passwords.fits(secret, known(folder)["ada"].secret)
    assert secret not in pmagent(folder, "operators", "list").text
    document = pmagent(folder, "operators", "add", "bob", "--role", "approve", "--format", "json").document
    assert passwords.fits(document.pop("secret"), known(folder)["bob"].secret)
    assert document == {"name": "bob", "role": "approve", "has_secret": True}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=ascii)
def test_a_secret_is_read_from_stdin_and_not_repeated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    stdin(monkeypatch, SECRET.encode() + end)
    told = pmagent(folder, "operators", "add", "ada", "--secret-stdin", "--role", "approve")
    assert told.lines == ["✓ ada (approve): added"]
    assert SECRET not in told.text + told.errors
    assert passwords.fits(SECRET, known(folder)["ada"].secret)


def test_at_a_terminal_the_secret_is_asked_for_and_not_echoed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return SECRET

    monkeypatch.setattr(inputs, "stdin_waits", lambda: False)
    monkeypatch.setattr(getpass, "getpass", typed)
    told = pmagent(folder, "operators", "add", "ada", "--secret-stdin")
    assert told.lines == ["✓ ada (view): added"]
    assert "it is not shown" in told.errors
    assert asked == [""]
    assert passwords.fits(SECRET, known(folder)["ada"].secret)


@each("given", [b"", b"\n", b"too short\n", b"one line that is long\nand another\n", b"\xff" * 20, b"x" * 5000])
def test_what_is_no_secret_adds_nobody_and_is_not_repeated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: bytes
) -> None:
    stdin(monkeypatch, given)
    told = pmagent(folder, "operators", "add", "ada", "--secret-stdin")
    assert (told.code, told.out) == (2, b"")
    assert told.errors.startswith("error: ")
    assert "too short\n" not in told.errors
    assert "one line that is long" not in told.errors
    assert known(folder) == {}


def test_roles_secrets_and_removals(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there are none yet" in pmagent(folder, "operators", "list").text
    pmagent(folder, "operators", "add", "ada")
    assert pmagent(folder, "operators", "role", "ada", "approve").lines == [
        "✓ ada (approve): may look, approve and control from now on"
    ]
    stdin(monkeypatch, SECRET.encode())
    assert pmagent(folder, "operators", "secret", "ada", "--secret-stdin").code == 0
    assert passwords.fits(SECRET, known(folder)["ada"].secret)
    assert "approve  secret" in pmagent(folder, "operators", "list").text
    assert pmagent(folder, "operators", "secret", "ada", "--none").lines == ["✓ ada (approve): has none"]
    assert "one-time addresses only" in pmagent(folder, "operators", "list").text
    assert pmagent(folder, "operators", "list", "--format", "json").document == {
        "operators": [{"name": "ada", "role": "approve", "has_secret": False}]
    }
    assert pmagent(folder, "operators", "remove", "ada").lines == ["✓ ada (approve): removed"]
    assert known(folder) == {}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "ada"], 1, "there is an operator ada already"),
        (["add", "ADA"], 1, "there is an operator ada already"),
        (["add", "a da"], 2, "no operator's name"),
        (["add", "bob", "--role", "admin"], 2, "admin"),
        (["role", "bob", "approve"], 1, "there is no operator bob"),
        (["role", "ada", "admin"], 2, "admin"),
        (["secret", "bob"], 1, "there is no operator bob"),
        (["secret", "ada", "--none", "--secret-stdin"], 2, "leave one out"),
        (["remove", "bob"], 1, "there is no operator bob"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error_and_changes_nothing(
    folder: Path, derived: list[str], words: list[str], code: int, said: str
) -> None:
    file = ConsolePaths(Layout(folder)).operators
    operators.add(file, "ada", "view", None)
    before = file.read_bytes()
    told = pmagent(folder, "operators", *words)
    assert (told.code, told.out) == (code, b"")
    assert said in told.errors
    assert file.read_bytes() == before
    assert derived == [], "no secret was computed for nothing"
