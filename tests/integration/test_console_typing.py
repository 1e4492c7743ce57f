"""Approving on the console, beside a real daemon with a device: it is typed once, it is followed to its end, and what
ends it is one step away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import fresh_example
from tests.support.approving import APPROVING, Approver, forms, page_of, told
from tests.support.consoles import Console, console
from tests.support.pla_live import Lab, await_event, lab

pytestmark = pytest.mark.slow

LONG = "a long text that takes its time " * 30
"""At least fifteen seconds of typing."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with a daemon of its own."""
    folder = tmp_path_factory.mktemp("console-typing")
    with lab(folder, fresh_example(folder / "workspace")) as one:
        yield one


@pytest.fixture(scope="module")
def browser(made: Lab) -> Iterator[Console]:
    """Somebody at its console."""
    with console(made.workspace, APPROVING) as one:
        yield one


def armed(made: Lab, browser: Console) -> Approver:
    """In EXECUTE and armed, all of it set on the console."""
    made.pla("mode", "OBSERVE")
    for mode in ("SUGGEST", "EXECUTE"):
        assert browser.post("/control/mode", mode=mode).status_code == 303
    assert browser.post("/control/arm").status_code == 303
    text = told(page_of(browser.get("/"), 200))
    assert "! armed" in text
    assert "✓ kill switch: ready" in text
    return Approver(browser)


def test_what_is_approved_is_typed_once_and_followed_to_its_end(made: Lab, browser: Console) -> None:
    bob = armed(made, browser)
    name = made.proposed('type: "ls\\n"')["proposal_id"]
    card = bob.card(name)
    assert "In EXECUTE what is approved is typed at once." in told(card)
    assert "Types on the machine behind" in told(card)
    fields = bob.filled(name)
    before = made.device.typed
    assert [bob.send(name, "approve", fields).status_code for _ in range(2)] == [303, 303]
    made.pla("approve", name, "--digest", fields["digest"], expect=1)  # it is used
    await_event(made.workspace, "pla.proposal_closed", f"data.proposal_id={name}")
    done = told(bob.card(name))
    assert made.device.typed == before + "ls\n"
    assert "It was typed" in done
    assert "pla.executed" in done
    assert "hid.ended" in done, "an event that names only the execution belongs to the story too"


def test_what_is_being_typed_is_ended_from_its_page(made: Lab, browser: Console) -> None:
    bob = armed(made, browser)
    name = made.proposed(f"type: {LONG}")["proposal_id"]
    assert bob.approve(name).status_code == 303
    typing = bob.card(name)
    assert "Approved: it is being typed" in told(typing)
    assert 'content="2;url=/approvals/' in typing.source
    (fields,) = forms(typing.source, "/control/disarm")
    answer = browser.post("/control/disarm", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{name}")
    await_event(made.workspace, "pla.proposal_closed", f"data.proposal_id={name}")
    text = told(bob.card(name))
    assert "It was disarmed while it typed" in text
    assert "Look at the machine's screen" in text
    assert len(made.device.typed) < len(LONG)


def test_a_device_that_was_armed_while_one_looks_is_told_and_nothing_is_typed(made: Lab, browser: Console) -> None:
    bob = armed(made, browser)
    name = made.proposed("type: not like this")["proposal_id"]
    made.pla("disarm")
    card = bob.card(name, "?decide=approve")
    assert "the device is not armed" in told(card)
    fields = bob.filled(name)
    before = made.device.typed
    made.pla("arm")
    text = told(page_of(bob.send(name, "approve", fields), 409))
    assert "device: it was not armed when it was shown, and is armed now" in text
    assert made.device.typed == before
    assert bob.approve(name).status_code == 303  # as it is shown now
    await_event(made.workspace, "pla.proposal_closed", f"data.proposal_id={name}")
    assert made.device.typed == before + "not like this"


def test_a_switch_that_is_hit_while_one_looks_is_told_and_nothing_is_typed(made: Lab, browser: Console) -> None:
    bob = armed(made, browser)
    name = made.proposed("type: never")["proposal_id"]
    fields = bob.filled(name)
    before = made.device.typed
    made.device.do("kill")
    await_event(made.workspace, "pla.proposal_closed", f"data.proposal_id={name}")
    text = told(page_of(bob.send(name, "approve", fields), 409))
    assert "mode EXECUTE OBSERVE" in text
    assert "withdrawn" in text
    assert made.device.typed == before
    assert "✗ kill switch hit: nothing can be typed" in told(page_of(browser.get("/"), 200))
