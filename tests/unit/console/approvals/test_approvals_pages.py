"""The pages of proposals over a live host: what they show, what their forms do, and what is refused how."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from pmagent.console.auth import operators
from pmagent.console.pages.approvals.shown_state import Situation, packed, unpacked
from pmagent.console.paths import ConsolePaths
from tests.conftest import fresh_example
from tests.support.approving import (
    APPROVING,
    ASKING,
    Approver,
    buttons,
    configure,
    forms,
    main_of,
    page_of,
    proposed,
    told,
    view_of,
)
from tests.support.cases import each
from tests.support.consoles import ORIGIN, LiveHost, console, live_host

# --- what is shown --------------------------------------------------------------------------------------------------


def test_a_card_has_every_fact_that_the_command_line_shows(host: LiveHost, bob: Approver) -> None:
    made = proposed(host, why="to see what is there, and why")
    page = bob.card(made["proposal_id"])
    text, shown = told(page), view_of(host, made["proposal_id"])
    assert shown["digest"] in page.text
    for fact in ("proposal_id", "rationale", "requested_by", "channel", "proposed_by", "proposed_in"):
        assert str(shown[fact]) in text, fact
    assert "ls·-la⏎" in page.text
    assert "7 characters, Enter 1 time" in text
    assert "6c 73 20 2d 6c 61 0a" in text
    assert "expires in" in text


def test_a_card_says_what_it_may_do_who_it_reaches_and_what_stops_it(host: LiveHost, bob: Approver) -> None:
    text = told(bob.card(proposed(host)["proposal_id"]))
    assert "medium risk" in text
    assert "a line break: Enter runs or sends what stands there" in text
    assert "what Enter has run or sent is done" in text
    assert "no device is linked now" in text
    assert "14 reports, at least" in text
    assert "In SUGGEST an approval is recorded, and nothing is typed." in text
    assert "one operator, one proposal, exactly these bytes, once" in text


def test_a_card_tells_how_it_came_about_and_links_each_event(host: LiveHost, bob: Approver) -> None:
    made = proposed(host)
    page = bob.card(made["proposal_id"])
    assert "pla.proposal_requested" in told(page)
    assert f"/log/{made['position']}" in page.links()
    assert len([link for link in page.links() if link.startswith("/log/")]) >= 2


def test_a_card_shows_earlier_ones_of_the_same_bytes_and_what_came_of_them(host: LiveHost, bob: Approver) -> None:
    first = proposed(host, "type: earlier")
    assert bob.reject(first["proposal_id"], "not that one").status_code == 303
    page = bob.card(proposed(host, "type: earlier")["proposal_id"])
    assert f"/approvals/{first['proposal_id']}" in page.links()
    assert "the same bytes" in told(page)
    assert "not that one" in told(page)


def test_the_content_has_the_focus_and_comes_before_anything_that_acts(host: LiveHost, bob: Approver) -> None:
    page = bob.card(proposed(host)["proposal_id"], "?decide=approve")
    focused = [(tag, attributes) for tag, attributes in page.elements if "autofocus" in attributes]
    assert [tag for tag, _ in focused] == ["div"]
    assert page.source.index("autofocus") < page.source.index('class="act"')


def test_the_first_button_of_each_form_that_decides_is_disabled(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    for word in ("approve", "reject"):
        page = bob.card(name, f"?decide={word}")
        first, *others = buttons(page.source, f"/approvals/{name}/{word}")
        assert "disabled" in first
        assert "hidden" in first
        assert len(others) == 1


def test_the_command_beside_a_form_is_that_of_who_looks(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    for word in ("approve", "reject"):
        page = bob.card(name, f"?decide={word}")
        assert f"pmagent pla {word} {name} --operator {APPROVING}" in page.source
        assert "--reason …" not in page.source, "copied, that would be the reason"
    assert "--acknowledge-credentials" not in bob.card(name, "?decide=approve").source


def test_without_scripts_an_open_card_comes_again_and_a_form_stays_until_it_expires(
    host: LiveHost, bob: Approver
) -> None:
    name = proposed(host)["proposal_id"]
    refresh = re.compile(r'<noscript><meta http-equiv="refresh" content="(\d+);url=/approvals/([^"]+)"></noscript>')
    plain, deciding = (refresh.search(bob.card(name, query).source) for query in ("", "?decide=approve"))
    assert plain is not None
    assert deciding is not None
    assert (plain[1], plain[2], deciding[2]) == ("5", name, name)
    assert 290 <= int(deciding[1]) <= 301
    assert bob.reject(name, "enough").status_code == 303
    assert refresh.search(bob.card(name).source) is None


def test_a_form_is_the_same_when_its_page_is_made_anew_and_another_in_another_tab(
    host: LiveHost, bob: Approver
) -> None:
    name = proposed(host)["proposal_id"]
    first = bob.console.get(f"/approvals/{name}?decide=approve")
    second = bob.console.get(f"/approvals/{name}?decide=approve")
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] != second.headers["location"]
    again = [forms(bob.console.page(first.headers["location"]), f"/approvals/{name}/approve") for _ in range(2)]
    assert again[0] == again[1]


OTHERWISE = {
    "mode": Situation("EXECUTE", "not armed", "none", "running"),
    "armed": Situation("SUGGEST", "armed", "none", "running"),
    "device": Situation("SUGGEST", "not armed", "pla-7 on /dev/ttyACM0", "running"),
    "effects": Situation("SUGGEST", "not armed", "none", "paused"),
}
LIVE_REGION = re.compile(r'id="(\w+)"[^>]*data-region')


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_nothing_that_an_open_form_rests_on_is_made_anew(host: LiveHost, bob: Approver, word: str) -> None:
    name = proposed(host)["proposal_id"]
    plain, form = bob.card(name), bob.card(name, f"?decide={word}")
    resting = {"content", "why", "weight", "decide"}
    assert resting <= set(LIVE_REGION.findall(main_of(plain)))
    regions = set(LIVE_REGION.findall(main_of(form)))
    assert not resting & regions
    assert "since" in regions
    main = main_of(form)
    assert main.index('role="status"><div id="since"') > main.rindex("</form>"), "beside it, not inside"


@pytest.mark.parametrize("what", OTHERWISE)
def test_the_address_of_a_form_that_was_opened_otherwise_has_the_difference_and_no_form(
    host: LiveHost, bob: Approver, what: str
) -> None:
    """As after a reload, in a copied tab, or when a browser is started again."""
    name = proposed(host)["proposal_id"]
    address = f"/approvals/{name}?decide=approve&form={'0' * 32}&opened={packed(OTHERWISE[what])}"
    page = page_of(bob.console.get(address), 200)
    assert forms(page.source, f"/approvals/{name}/approve") == []
    assert f"{what}: " in told(page) or f"{what if what != 'armed' else 'device'}: " in told(page)
    assert "approves nothing any more" in told(page)
    rejecting = page_of(bob.console.get(address.replace("=approve", "=reject")), 200)
    assert len(forms(rejecting.source, f"/approvals/{name}/reject")) == 1, "a rejection is the same in every mode"


STRANGE = [
    packed(Situation(*words)) for words in (
        ("IDLE", "armed", "none", "running"), ("SUGGEST", "yes", "none", "running"),
        ("SUGGEST", "armed", "a\u202eb", "running"), ("SUGGEST", "armed", "x" * 121, "running"),
        ("SUGGEST", "armed", "none", "who knows"),
    )
]  # fmt: skip


@each("opened", ["", "x", "e30=", "W10=", "A" * 3000, "\u00fc", *STRANGE])
def test_an_address_that_does_not_say_how_things_stood_is_no_form_s(host: LiveHost, bob: Approver, opened: str) -> None:
    name = proposed(host)["proposal_id"]
    answer = bob.console.get(f"/approvals/{name}?decide=approve&form={'0' * 32}&opened={opened}")
    assert answer.status_code == 303
    assert f"form={'0' * 32}" not in answer.headers["location"]
    assert len(forms(bob.console.page(answer.headers["location"]), f"/approvals/{name}/approve")) == 1


@pytest.mark.parametrize("filled", [True, False], ids=["filled in", "with something missing"])
def test_a_form_that_was_opened_in_another_mode_approves_nothing_and_asks_again(
    host: LiveHost, bob: Approver, filled: bool
) -> None:
    """Also where it would be asked for the rest of it: that form would be another."""
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    shown = msgspec.structs.replace(unpacked(fields["seen"]), mode="EXECUTE")
    fields = {**fields, "mode": "EXECUTE", "seen": packed(shown), **({} if filled else {"first": "", "read": ""})}
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "mode EXECUTE SUGGEST" in told(page)
    assert f"/approvals/{name}?decide=approve#decide" in page.links(), "it asks again"
    assert view_of(host, name)["stands"] == "open"
    assert bob.approve(name).status_code == 303
    assert view_of(host, name)["outcome"] == "recorded"


def test_the_button_says_what_it_does(host: LiveHost, bob: Approver) -> None:
    page = bob.card(proposed(host)["proposal_id"], "?decide=approve")
    assert re.search(r'<button class="act">Approve, record only</button>', page.source)


def test_the_list_has_the_open_one_and_those_that_are_over(host: LiveHost, bob: Approver) -> None:
    over = proposed(host, "type: over")
    assert bob.reject(over["proposal_id"], "no").status_code == 303
    still = proposed(host, "keys: ctrl+c")
    page = page_of(bob.console.get("/approvals"), 200)
    assert {f"/approvals/{one['proposal_id']}" for one in (over, still)} <= set(page.links())
    assert told(page).index("Press ctrl + c") < told(page).index("Type over")
    assert "medium risk" in told(page)


def test_the_filters_of_the_list_stand_in_its_address(host: LiveHost, bob: Approver) -> None:
    over = proposed(host, "type: filtered")
    assert bob.reject(over["proposal_id"], "no").status_code == 303
    address = f"/approvals/{over['proposal_id']}"
    for query in ("stands=closed", "outcome=rejected", "by=bob", "by=ada", "stands=closed&outcome=rejected&by=bob"):
        assert address in page_of(bob.console.get(f"/approvals?{query}"), 200).links(), query
    for query in ("stands=open", "outcome=executed", "by=nobody"):
        assert address not in page_of(bob.console.get(f"/approvals?{query}"), 200).links(), query


@each("query", ["stands=ajar", "outcome=fine"])
def test_a_filter_that_is_not_known_is_refused(bob: Approver, query: str) -> None:
    assert query.partition("=")[0] in told(page_of(bob.console.get(f"/approvals?{query}"), 400))


def test_a_beginning_of_an_id_leads_to_the_proposal(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    answer = bob.console.get(f"/approvals/{name[:20]}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{name}")


@each("name", ["prop-none", "a" * 100, "%E2%80%AE", "prop-" + "f" * 32])
def test_there_is_no_card_of_what_was_never_proposed(bob: Approver, name: str) -> None:
    page_of(bob.console.get(f"/approvals/{name}"), 404)


def test_a_beginning_that_several_ids_have_names_them(host: LiveHost, bob: Approver) -> None:
    names = [proposed(host)["proposal_id"] for _ in range(2)]
    assert names[0][:5] == names[1][:5]
    assert "proposals are called so" in told(page_of(bob.console.get(f"/approvals/{names[0][:5]}"), 404))


@pytest.mark.parametrize("word", ["approve", "reject", "reveal"])
def test_where_a_form_is_sent_the_card_is_found_too(host: LiveHost, bob: Approver, word: str) -> None:
    name = proposed(host)["proposal_id"]
    assert "Exactly this" in told(bob.card(f"{name}/{word}"))


# --- deciding -------------------------------------------------------------------------------------------------------


def test_an_approval_is_recorded_once_with_who_over_which_channel_and_what_was_seen(
    host: LiveHost, bob: Approver
) -> None:
    made = proposed(host)
    answer = bob.approve(made["proposal_id"])
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{made['proposal_id']}")
    shown = view_of(host, made["proposal_id"])
    assert (shown["outcome"], shown["decided_by"], shown["decided_over"]) == ("recorded", APPROVING, "console")
    text = told(bob.card(made["proposal_id"]))
    assert "Approved, and recorded by bob" in text
    assert "the same as above" in text
    assert "Mode seen SUGGEST" in text
    assert "Viewed for" in text


def test_a_form_that_is_sent_twice_is_one_request(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    answers = [bob.send(name, "approve", fields) for _ in range(3)]
    assert [answer.headers["location"] for answer in answers] == [f"/approvals/{name}"] * 3
    assert told(bob.card(name)).count("pla.decision_requested") == 1


def test_a_second_tab_is_told_what_was_decided_and_by_whom(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    tabs = [bob.filled(name), bob.filled(name)]
    assert bob.send(name, "approve", tabs[0]).status_code == 303
    page = page_of(bob.send(name, "approve", tabs[1]), 409)
    assert "Already decided" in told(page)
    assert "state open recorded by bob" in told(page)


def test_a_proposal_that_was_rejected_meanwhile_is_not_approved(host: LiveHost, bob: Approver, ada: Approver) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    assert ada.reject(name, "I was wrong").status_code == 303
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "state open rejected by ada" in told(page)
    assert "I was wrong" in told(page)
    assert view_of(host, name)["outcome"] == "rejected"


def test_a_mode_that_changed_meanwhile_is_told_and_nothing_is_approved(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    fields = bob.filled(name)
    host.perform("pla.mode", operator=ASKING, channel="cli", mode="OBSERVE")
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "mode SUGGEST OBSERVE" in told(page)
    assert view_of(host, name)["outcome"] == "withdrawn"


def test_bytes_of_another_proposal_are_shown_beside_its_own(host: LiveHost, bob: Approver) -> None:
    other = proposed(host, 'type: "other\\nsame\\n"')
    fields = bob.filled(other["proposal_id"])
    name = proposed(host, 'type: "mine\\nsame\\n"')["proposal_id"]
    page = page_of(bob.send(name, "approve", fields), 409)
    assert "This is about other bytes" in told(page)
    assert "- other⏎" in page.text
    assert "+ mine⏎" in page.text
    assert f"digest {other['digest']}" in told(page)
    assert view_of(host, name)["stands"] == "open"


@each("forged", ["mode", "digest"])
def test_a_form_that_says_two_things_is_none(host: LiveHost, bob: Approver, forged: str) -> None:
    name = proposed(host)["proposal_id"]
    fields = {**bob.filled(name), forged: {"mode": "EXECUTE", "digest": "0" * 64}[forged]}
    page_of(bob.send(name, "approve", fields), 400)
    assert view_of(host, name)["stands"] == "open"


@each("field, value", [("read", ""), ("first", ""), ("first", "000000")])
def test_without_the_second_step_nothing_is_recorded(host: LiveHost, bob: Approver, field: str, value: str) -> None:
    name = proposed(host, 'type: "rm -r build\\n"')["proposal_id"]
    before = host.position
    page = page_of(bob.approve(name, **{field: value}), 422)
    assert "Nothing was recorded yet" in told(page)
    assert host.position == before
    assert bob.send(name, "approve", {**bob.filled(name)}).status_code == 303


def test_low_risk_needs_no_digest_typed_but_the_box(host: LiveHost, bob: Approver) -> None:
    name = proposed(host, "type: hello")["proposal_id"]
    assert "first 6 characters of the digest" not in told(bob.card(name, "?decide=approve"))
    page_of(bob.approve(name, read="", first=""), 422)
    assert bob.approve(name, first="").status_code == 303


@each("reason", ["", " \n", "x" * 501])
def test_a_rejection_needs_a_reason_that_can_be_kept(host: LiveHost, bob: Approver, reason: str) -> None:
    name = proposed(host)["proposal_id"]
    before = host.position
    page_of(bob.reject(name, reason), 422)
    assert host.position == before
    assert view_of(host, name)["stands"] == "open"


def test_what_was_typed_is_still_there_when_a_form_comes_back(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    page = page_of(bob.reject(name, "x" * 501), 422)
    (fields,) = forms(page.source, f"/approvals/{name}/reject")
    assert fields["reason"] == "x" * 501


def test_a_rejection_is_recorded_with_its_reason(host: LiveHost, bob: Approver) -> None:
    name = proposed(host)["proposal_id"]
    assert bob.reject(name, "the wrong window").status_code == 303
    text = told(bob.card(name))
    assert "Rejected by bob" in text
    assert "Reason the wrong window" in text
    assert view_of(host, name)["why"] == "the wrong window"


# --- who may not ----------------------------------------------------------------------------------------------------


def test_who_asked_for_it_finds_no_form_and_is_refused_what_they_send(
    host: LiveHost, bob: Approver, ada: Approver
) -> None:
    name = proposed(host)["proposal_id"]
    page = ada.card(name, "?decide=approve")
    assert "another operator has to approve it" in told(page)
    assert forms(page.source, f"/approvals/{name}/approve") == []
    fields = bob.filled(name)
    refused = page_of(ada.send(name, "approve", {**fields, "csrf": ada.console.csrf()}), 403)
    assert "You asked for it yourself" in told(refused)
    assert view_of(host, name)["stands"] == "open"


def test_who_asked_for_it_may_take_it_back(host: LiveHost, ada: Approver) -> None:
    name = proposed(host)["proposal_id"]
    assert ada.reject(name, "a mistake").status_code == 303
    assert view_of(host, name)["decided_by"] == ASKING


def test_who_may_only_look_finds_no_form_and_is_refused(host: LiveHost, bob: Approver, eve: Approver) -> None:
    name = proposed(host)["proposal_id"]
    for query in ("", "?decide=approve", "?decide=reject"):
        page = eve.card(name, query)
        assert "your role is view" in told(page)
        assert not [
            one for word in ("approve", "reject", "reveal") for one in buttons(page.source, f"/approvals/{name}/{word}")
        ]
    for word, fields in (("approve", bob.filled(name)), ("reject", {"reason": "no"}), ("reveal", {})):
        assert eve.send(name, word, {**fields, "csrf": eve.console.csrf()}).status_code == 403
    assert view_of(host, name)["stands"] == "open"


# --- credentials ----------------------------------------------------------------------------------------------------


def test_of_two_persons_each_has_signed_in_with_a_secret(tmp_path: Path) -> None:
    """A one-time address proves only that somebody could run a command; nor does it help to say to be the console."""
    secret = "correct-horse-battery"
    workspace = configure(fresh_example(tmp_path / "workspace"), "two_persons = true")
    with live_host(workspace) as host:
        file = ConsolePaths(host.host.layout).operators
        for name in (ASKING, APPROVING):
            operators.add(file, name, "approve", f"{secret}-{name}")
        host.perform("pla.mode", operator=ASKING, channel="cli", mode="SUGGEST")
        forged = host.perform(
            "pla.propose", operator=ASKING, channel="console", by_secret=True, goal="type: ls", request="pla.propose-1"
        )
        assert forged.document["code"] == "unproven", "another process than the console"
        asked = host.perform(
            "pla.propose", operator=ASKING, channel="cli", secret=f"{secret}-{ASKING}", goal="type: ls"
        ).document
        host.host.console_pid = os.getpid()  # what asks over the socket from here is the console
        with console(workspace, APPROVING) as browser:
            bob = Approver(browser)
            refused = page_of(bob.approve(asked["proposal_id"]), 409)
            assert "nobody proved to be bob" in told(refused)
            browser.post("/sign-out")
            sent = {"name": APPROVING, "secret": f"{secret}-{APPROVING}", "next": "/"}
            entered = browser.client.post("/sign-in", data=sent, headers={"origin": ORIGIN})
            assert entered.status_code == 303
            assert bob.approve(asked["proposal_id"]).status_code == 303
        view = view_of(host, asked["proposal_id"])
        assert (view["outcome"], view["decided_by"]) == ("recorded", APPROVING)
