"""The file of the operators: what it holds, who may have written it, and how it is changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.console.auth import operators, passwords
from pmagent.console.auth.operators import BadOperators, NoSuchOperator
from pmagent.console.auth.passwords import BadSecret, checked_secret
from pmagent.pla.operators import BadOperator
from tests.support.cases import each
from tests.support.entrances import SECRET, cheap_secrets, unsynced


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the operators are; secrets cost nothing."""
    cheap_secrets(monkeypatch)
    unsynced(monkeypatch)
    return tmp_path / "operators.json"


def test_without_a_file_there_are_no_operators(file: Path) -> None:
    assert operators.read(file) == {}


def test_who_was_added_is_read_with_role_and_what_is_kept_of_the_secret(file: Path) -> None:
    added = operators.add(file, "ada", "approve", SECRET)
    operators.add(file, "bob", "view", None)
    known = operators.read(file)
    assert known == {"ada": added, "bob": known["bob"]}
    assert (known["ada"].role, known["bob"].role, known["bob"].secret) == ("approve", "view", None)
    assert passwords.fits(SECRET, known["ada"].secret)
    assert not passwords.fits(SECRET + "x", known["ada"].secret)
    assert not passwords.fits(SECRET, None)


def test_the_file_holds_no_secret_and_each_has_salt_of_its_own(file: Path) -> None:
    operators.add(file, "ada", "view", SECRET)
    operators.add(file, "bob", "view", SECRET)
    known = operators.read(file)
    assert SECRET.encode() not in file.read_bytes()
    assert known["ada"].secret != known["bob"].secret


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_the_file_is_this_users_alone_whatever_the_umask(file: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        operators.add(file, "ada", "view", None)
        operators.set_role(file, "ada", "approve")
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o077 for path in file.parent.iterdir()} == {0}


def test_role_and_secret_change_and_who_is_removed_is_gone(file: Path) -> None:
    first = operators.add(file, "ada", "view", None)
    assert operators.set_role(file, "ada", "approve").issue == first.issue
    changed = operators.set_secret(file, "ada", SECRET)
    assert (changed.role, changed.issue != first.issue) == ("approve", True)
    assert operators.read(file)["ada"] == changed
    assert operators.set_secret(file, "ada", None).secret is None
    assert operators.remove(file, "ada").name == "ada"
    assert operators.read(file) == {}
    assert operators.add(file, "ada", "view", None).issue != first.issue


@each("name", ["", "a", "a" * 65, "ada\n", "a da", "../ada", "ädä", "pmagent", "a\x00b"])
def test_what_is_no_operators_name_is_not_added(file: Path, name: str) -> None:
    with pytest.raises(BadOperator):
        operators.add(file, name, "view", None)
    assert not file.exists()


def test_a_change_that_names_the_wrong_operator_is_refused_and_changes_nothing(file: Path) -> None:
    operators.add(file, "ada", "view", None)
    before = file.read_bytes()
    for taken in ("ada", "Ada", "ADA"):
        with pytest.raises(NoSuchOperator, match="there is an operator ada already"):
            operators.add(file, taken, "approve", None)
    changes: list[Callable[[], object]] = [
        lambda: operators.remove(file, "eve"), lambda: operators.set_role(file, "eve", "approve"),
        lambda: operators.set_secret(file, "eve", SECRET), lambda: operators.named(file, "eve"),
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(NoSuchOperator, match="no operator eve") as raised:
            change()
        assert "ada" in raised.value.hint
    assert file.read_bytes() == before


def test_there_are_only_so_many(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "OPERATORS_MAX", 1)
    operators.add(file, "ada", "view", None)
    with pytest.raises(NoSuchOperator, match="1 operators already"):
        operators.add(file, "bob", "view", None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666], ids=oct)
def test_a_file_that_is_open_to_others_lets_nobody_in(file: Path, mode: int) -> None:
    operators.add(file, "ada", "view", None)
    file.chmod(mode)
    with pytest.raises(BadOperators, match=f"mode {mode:04o}") as raised:
        operators.read(file)
    assert "chmod 600" in raised.value.hint
    with pytest.raises(BadOperators):
        operators.add(file, "eve", "approve", None)
    assert b"eve" not in file.read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_lets_nobody_in(file: Path) -> None:
    operators.add(file, "ada", "view", None)
    os.chown(file, 54321, 54321)
    with pytest.raises(BadOperators, match="belongs to another user"):
        operators.read(file)


def test_a_link_lets_nobody_in_and_is_not_written_through(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    operators.add(target, "ada", "approve", None)
    before = target.read_bytes()
    file.symlink_to(target)
    with pytest.raises(BadOperators, match="is a link"):
        operators.read(file)
    with pytest.raises(BadOperators, match="is a link"):
        operators.add(file, "eve", "approve", None)
    assert target.read_bytes() == before
    assert file.is_symlink()


def test_a_dangling_link_is_no_missing_file(file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadOperators, match="is a link"):
        operators.add(file, "eve", "approve", None)
    assert not (tmp_path / "nowhere").exists()


def test_a_second_name_a_folder_and_a_pipe_let_nobody_in(file: Path, tmp_path: Path) -> None:
    operators.add(file, "ada", "view", None)
    (tmp_path / "second").hardlink_to(file)
    with pytest.raises(BadOperators, match="another name too"):
        operators.read(file)
    (tmp_path / "folder").mkdir(mode=0o700)
    with pytest.raises(BadOperators, match="is no file"):
        operators.read(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(BadOperators, match="is no file"):
        operators.read(tmp_path / "pipe")


_ADA = '"name": "ada", "role": "view", "secret": null, "issue": "1"'


def _one(fields: str) -> bytes:
    return f'{{"version": 1, "operators": [{{{fields}}}]}}'.encode()


@each(
    "content, why",
    [
        pytest.param(b"", "no JSON", id="empty"),
        pytest.param(b"{", "no JSON", id="cut off"),
        pytest.param(b"\xff", "no JSON", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "array", id="deep"),
        pytest.param(b" " * (1 << 20) + b"x", "longer than", id="long"),
        pytest.param(b"[]", "array", id="a list"),
        pytest.param(b'{"operators": []}', "version", id="no version"),
        pytest.param(b'{"version": 2, "operators": []}', "version", id="another version"),
        pytest.param(b'{"version": 1, "operators": [], "more": 1}', "more", id="more than it should have"),
        pytest.param(_one('"name": "ada"'), "role", id="no role"),
        pytest.param(_one('"name": "ada", "role": "admin"'), "role", id="an unknown role"),
        pytest.param(_one('"name": "ada", "role": "view", "admin": true'), "admin", id="an unknown field"),
        pytest.param(_one('"name": "a da", "role": "view"'), "no operator's name", id="no name"),
        pytest.param(_one('"name": "pmagent", "role": "view"'), "stands for nobody", id="nobody's name"),
        pytest.param(_one(_ADA + "}, {" + _ADA), "ada stands in it twice", id="twice"),
        pytest.param(_one('"name": "ada", "role": "view", "secret": "plain"'), "not as it is kept", id="plain secret"),
        pytest.param(_one('"name": "ada", "role": "view", "secret": ""'), "not as it is kept", id="empty secret"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_understood_lets_nobody_in_and_stays(file: Path, content: bytes, why: str) -> None:
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(BadOperators, match=why) as raised:
        operators.read(file)
    assert raised.value.exit_code == 7
    assert raised.value.hint
    with pytest.raises(BadOperators):
        operators.add(file, "eve", "approve", None)
    assert file.read_bytes() == content


def test_several_that_add_at_once_lose_nobody(file: Path) -> None:
    threads = [threading.Thread(target=operators.add, args=(file, f"op-{n}", "view", None)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(operators.read(file)) == {f"op-{n}" for n in range(12)}


@each(
    "text, why",
    [
        ("short", "needs 12"), ("", "needs 12"), ("a" * 11, "needs 12"), ("a" * 1025, "may have 1024"),
        ("ä" * 513, "may have 1024"), ("has a\nline break", "control"), ("has a\x00 in it", "control"),
        ("has a tab\tin it", "control"), ("lone \ud800 surrogate", "UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_secret_is_not_taken(text: str, why: str) -> None:
    with pytest.raises(BadSecret, match=why):
        checked_secret(text)


def test_a_secret_is_the_same_however_its_umlauts_were_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_secrets(monkeypatch)
    kept = passwords.kept(checked_secret("gru\u0308ne Wiese im Mai"))
    assert passwords.fits("gr\u00fcne Wiese im Mai", kept)
    assert passwords.fits("gru\u0308ne Wiese im Mai", kept)


def test_secrets_that_are_made_are_taken_and_differ() -> None:
    made = {passwords.new_secret() for _ in range(50)}
    assert len(made) == 50
    assert {checked_secret(secret) for secret in made} == made


def test_what_is_kept_is_scrypt_with_the_documented_cost() -> None:
    kept = passwords.kept(SECRET)
    assert kept.startswith("scrypt$15$8$1$")
    assert passwords.is_kept(kept)
    assert passwords.fits(SECRET, kept)
    assert not passwords.is_kept(kept.replace("$15$", "$10$"))
