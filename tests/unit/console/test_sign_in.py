"""Signing in by name and secret: what it costs, what it tells, and how often it may be tried."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pmagent.console.auth import operators, passwords
from pmagent.console.auth.entrance import Entered, NotAdmitted
from tests.support.entrances import SECRET, GuardedConsole, cheap_secrets, unsynced


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The secrets that were derived, in order."""
    return cheap_secrets(monkeypatch)


@pytest.fixture
def guarded(tmp_path: Path, derived: list[str], monkeypatch: pytest.MonkeyPatch) -> GuardedConsole:
    """With Ada, who has a secret, and Bob, who has none."""
    unsynced(monkeypatch)
    guarded = GuardedConsole(tmp_path)
    guarded.add("ada", "approve", SECRET)
    guarded.add("bob", "approve", None)
    derived.clear()
    return guarded


def signed_in(guarded: GuardedConsole, name: str, secret: str, before: str = "") -> Entered:
    """The result of signing in."""
    return anyio.run(guarded.entrance.sign_in, name, secret, before)


def test_name_and_secret_let_in_and_that_is_recorded(guarded: GuardedConsole) -> None:
    entered = signed_in(guarded, "ada", SECRET)
    assert guarded.entrance.visitor(entered.cookie) == entered.visitor
    assert guarded.notes == [("ada", "signed_in", "secret", "")]


WRONG = {
    "a wrong secret": ("ada", "correct horse batterx"),
    "an empty one": ("ada", ""),
    "a longer one": ("ada", SECRET + " "),
    "a very long one": ("ada", SECRET * 5_000),
    "no text": ("ada", "\ud800" * 12),
    "somebody without a secret": ("bob", SECRET),
    "somebody without a secret, and none": ("bob", ""),
    "nobody": ("eve", SECRET),
    "nobody, empty": ("", ""),
    "a name that is none": ("../operators.json", SECRET),
    "other capitals": ("Ada", SECRET),
    "what is kept of it": ("ada", "(kept)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_costs_one_derivation_and_says_the_same(
    guarded: GuardedConsole, derived: list[str], case: str
) -> None:
    name, secret = WRONG[case]
    if secret == "(kept)":
        secret = operators.named(guarded.paths.operators, "ada").secret or ""
    with pytest.raises(NotAdmitted) as raised:
        signed_in(guarded, name, secret)
    assert len(derived) == 1
    assert raised.value.message == "Wrong name or secret."
    assert raised.value.after == 0.0
    assert len(guarded.entrance._sessions) == 0


def test_a_name_that_nobody_has_is_not_recorded_for_it_may_be_a_secret(guarded: GuardedConsole) -> None:
    for name in (SECRET, "ada"):
        with pytest.raises(NotAdmitted):
            signed_in(guarded, name, "not the secret of her")
    assert [note[0] for note in guarded.notes] == ["", "ada"]
    assert SECRET not in str(guarded.notes)


def test_all_derivations_have_the_same_parameters_whoever_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[tuple[int, ...]] = []

    def scrypt(_: bytes, *, salt: bytes, n: int, r: int, p: int, maxmem: int, dklen: int) -> bytes:
        costs.append((len(salt), n, r, p, maxmem, dklen))
        return b"k" * dklen

    monkeypatch.setattr(hashlib, "scrypt", scrypt)
    kept = passwords.kept(SECRET)
    assert [passwords.fits(SECRET, stored) for stored in (kept, None, "no such thing")] == [True, False, False]
    assert costs == [(16, 1 << 15, 8, 1, 1 << 26, 32)] * 4


def test_five_tries_for_a_name_and_then_one_in_half_a_minute(guarded: GuardedConsole, derived: list[str]) -> None:
    for _ in range(5):
        with pytest.raises(NotAdmitted, match="Wrong name or secret"):
            signed_in(guarded, "ada", "guess guess guess")
    with pytest.raises(NotAdmitted, match="too many tries") as raised:
        signed_in(guarded, "ada", SECRET)
    assert raised.value.after == 30.0
    assert len(derived) == 5, "what is not looked at costs nothing"
    guarded.steady.now += 30.0
    assert signed_in(guarded, "ada", SECRET).visitor.operator == "ada"


def test_names_that_nobody_has_are_limited_in_the_same_way(guarded: GuardedConsole) -> None:
    for _ in range(5):
        with pytest.raises(NotAdmitted, match="Wrong name or secret"):
            signed_in(guarded, "eve", "guess guess guess")
    with pytest.raises(NotAdmitted, match="too many tries"):
        signed_in(guarded, "eve", "guess guess guess")


def test_twenty_tries_for_all_names_together(guarded: GuardedConsole, derived: list[str]) -> None:
    for number in range(20):
        with pytest.raises(NotAdmitted, match="Wrong name or secret"):
            signed_in(guarded, f"name-{number}", "guess guess guess")
    with pytest.raises(NotAdmitted, match="too many tries"):
        signed_in(guarded, "ada", SECRET)
    assert len(derived) == 20


def test_who_was_removed_while_the_secret_was_compared_is_not_let_in(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = passwords.fits

    def slow(secret: str, stored: str | None) -> bool:
        operators.remove(guarded.paths.operators, "ada")
        return fits(secret, stored)

    monkeypatch.setattr(passwords, "fits", slow)
    with pytest.raises(NotAdmitted):
        signed_in(guarded, "ada", SECRET)


CHANGES: dict[str, Callable[[Path], object]] = {
    "another secret": lambda path: operators.set_secret(path, "ada", "another battery staple"),
    "no secret any more": lambda path: operators.set_secret(path, "ada", None),
    "another role": lambda path: operators.set_role(path, "ada", "view"),
    "removed and added again": lambda path: (
        operators.remove(path, "ada"), operators.add(path, "ada", "approve", SECRET),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_who_was_changed_while_the_secret_was_compared_is_not_let_in(
    guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A person who changes a secret because it has leaked keeps out also who is just being let in by it."""
    fits = passwords.fits

    def slow(secret: str, stored: str | None) -> bool:
        fit = fits(secret, stored)
        monkeypatch.setattr(passwords, "fits", fits)
        CHANGES[change](guarded.paths.operators)
        return fit

    monkeypatch.setattr(passwords, "fits", slow)
    with pytest.raises(NotAdmitted, match="Wrong name or secret"):
        signed_in(guarded, "ada", SECRET)
    assert [what for _, what, _, _ in guarded.notes] == ["refused"]


def test_a_cookie_from_before_signing_in_is_worth_nothing_after(guarded: GuardedConsole) -> None:
    """Fixation: whoever planted it, or knows it, has nothing of the session."""
    planted = "A" * 43
    entered = signed_in(guarded, "ada", SECRET, planted)
    assert entered.cookie != planted
    assert guarded.entrance.visitor(planted) is None
    second = signed_in(guarded, "ada", SECRET, entered.cookie)
    assert guarded.entrance.visitor(entered.cookie) is None
    assert guarded.entrance.visitor(second.cookie) == second.visitor


def test_secrets_are_compared_one_at_a_time(guarded: GuardedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 32 MiB: twenty at once would take 640."""
    two = threading.Barrier(2)
    together: list[bool] = []

    def waiting(secret: str, stored: str | None) -> bool:
        assert (secret, stored) == ("guess guess guess", None)
        try:
            two.wait(0.2)
        except threading.BrokenBarrierError:
            together.append(False)
        else:
            together.append(True)
        return False

    monkeypatch.setattr(passwords, "fits", waiting)

    async def one(number: int) -> None:
        with pytest.raises(NotAdmitted):
            await guarded.entrance.sign_in(f"name-{number}", "guess guess guess")

    async def at_once() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(one, number)

    anyio.run(at_once)
    assert together == [False] * 3
