"""A text that is masked in the log is held in plain only as long as it may be typed."""

from __future__ import annotations

import pytest

from pmagent.contracts.payload import encode
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import PlaProposalClosed
from pmagent.events.event import Event
from pmagent.pla.vault import GRACE_SECONDS, HELD_MAX, Vault, VaultFull

ACTION = TypeText(text="correct horse battery staple")
NAME = digest(ACTION)


class Clock:
    """Seconds, as a test moves them."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vault(clock: Clock) -> Vault:
    return Vault(clock)


def closed(digest: str) -> Event:
    """The last word on a proposal with this digest."""
    data = PlaProposalClosed(session_id="pla-12345678", proposal_id="prop-12345678", digest=digest, outcome="rejected")
    return Event(
        position=1, id="a", time="2026-11-22T09:00:00.000000Z", type="pla.proposal_closed", kind="decision",
        actor="warden", correlation="c", causation=0, data=data, raw=encode(data),
    )  # fmt: skip


def test_what_was_put_is_got_by_its_digest_and_by_no_other(vault: Vault) -> None:
    vault.put(NAME, ACTION, 60.0)
    assert vault.get(NAME) == ACTION
    assert vault.get("0" * 64) is None


def test_it_goes_when_its_proposal_is_closed(vault: Vault) -> None:
    vault.put(NAME, ACTION, 60.0)
    vault.hear([closed("0" * 64)], [""])
    assert vault.get(NAME) == ACTION, "another proposal's end is not its own"
    vault.hear([closed(NAME)], [""])
    assert vault.get(NAME) is None


def test_a_proposal_that_is_refused_does_not_take_the_text_of_one_that_is_open(vault: Vault) -> None:
    vault.put(NAME, ACTION, 60.0)
    vault.put(NAME, ACTION, 60.0)
    vault.drop(NAME)
    assert vault.get(NAME) == ACTION
    vault.drop(NAME)
    assert vault.get(NAME) is None
    vault.drop(NAME)


def test_it_goes_with_time_also_when_nobody_closes_it(vault: Vault, clock: Clock) -> None:
    vault.put(NAME, ACTION, 60.0)
    clock.now += 60.0 + GRACE_SECONDS - 0.001
    assert vault.get(NAME) == ACTION
    clock.now += 0.001
    assert vault.get(NAME) is None


def test_what_is_put_again_stands_for_the_longer_time(vault: Vault, clock: Clock) -> None:
    vault.put(NAME, ACTION, 60.0)
    vault.put(NAME, ACTION, 10.0)
    clock.now += 50.0 + GRACE_SECONDS
    assert vault.get(NAME) == ACTION


def test_there_is_a_bound_and_what_has_expired_makes_room(vault: Vault, clock: Clock) -> None:
    for number in range(HELD_MAX):
        vault.put(f"{number:064x}", ACTION, 60.0)
    with pytest.raises(VaultFull, match="under way"):
        vault.put(NAME, ACTION, 60.0)
    vault.put(f"{0:064x}", ACTION, 60.0)
    clock.now += 60.0 + GRACE_SECONDS
    vault.put(NAME, ACTION, 60.0)
    assert vault.get(NAME) == ACTION


def test_its_looks_tell_nothing_of_what_it_holds(vault: Vault) -> None:
    vault.put(NAME, ACTION, 60.0)
    assert "horse" not in repr(vault) + str(vault)
