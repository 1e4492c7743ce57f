"""Nothing of a secret that is asked to be typed stands in the request that is recorded, however it is asked for."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.pla.credentials.goal_masking import masked_goal, masked_reason
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import PlaProposalRequested
from pmagent.events.redact import Redactor
from pmagent.events.secret_forms import MASK
from pmagent.pla.requests import ProposalRequest, made
from pmagent.workspace.settings import PlaSettings
from tests.support.cases import each
from tests.support.labelled_texts import PASSWORDS, TOKENS
from tests.support.secrets import KEYS

KNOWN = "swordfish-and-chips"
REDACT = Redactor([KNOWN]).text
STANDING = PlaSettings(proposal_seconds=30.0)

SECRETS = st.sampled_from([*PASSWORDS, *TOKENS, *(key for key in KEYS.values() if "\n" not in key), KNOWN])
TEXTS = st.sampled_from(
    ["{}", "{}\n", "alice\t{}\n", "sshpass -p {} ssh host\n", "my password is {}", "echo '{}'\npw: x\n"]
)
REASONS = st.sampled_from(["", "the lab wants it", "so that {} is set", "{}"])


def windows(secret: str) -> set[str]:
    secret = secret.removeprefix("secret_")  # a prefix of keys, and a word of ours
    return {secret[at : at + 6] for at in range(len(secret) - 5)}


def asked(text: str, why: str, *, quoted: bool, model: str = "") -> PlaProposalRequested:
    goal = f"type: {json.dumps(text)}" if quoted else f"type: {text}"
    request = ProposalRequest(goal=goal, operator="alice", channel="cli", why=why, model=model)
    return made(request, STANDING, REDACT).asked


@given(SECRETS, TEXTS, REASONS, st.booleans())
def test_nothing_of_a_secret_stands_in_the_request(secret: str, text: str, why: str, quoted: bool) -> None:
    plain = text.format(secret)
    request = asked(plain, why.format(secret), quoted=quoted)
    recorded = msgspec.json.encode(msgspec.structs.replace(request, digest="")).decode()
    assert [window for window in windows(secret) if window in recorded] == []
    assert request.masked
    assert request.findings
    assert request.digest == digest(TypeText(text=plain))
    assert request.chars == len(plain)


@given(SECRETS, TEXTS, st.booleans())
def test_nor_does_it_when_a_model_is_to_make_something_of_the_goal(secret: str, text: str, quoted: bool) -> None:
    request = asked(text.format(secret), "", quoted=quoted, model="toy:one")
    assert request.action is None
    assert [window for window in windows(secret) if window in request.goal] == []


@each(
    "goal, shown",
    [
        ("type: hello", "type: hello"),
        ("type: hunter2hunter2", f"type: {MASK}"),
        ('type: "alice\\thunter2x\\n"', f"type: {MASK}"),
        ("type: say hello to alice", "type: say hello to alice"),
        ("keys: ctrl+c", "keys: ctrl+c"),
        ("open the editor", "open the editor"),
        ("open the editor, the password is x", MASK),
        ('type: "hunter2 is my password', MASK),
    ],
)
def test_a_goal_is_recorded_but_for_what_it_hides(goal: str, shown: str) -> None:
    assert masked_goal(goal, REDACT) == shown


def test_a_reason_that_repeats_what_is_hidden_is_hidden() -> None:
    assert masked_reason("because of hunter2x", "alice\thunter2x", MASK, REDACT) == MASK
    assert masked_reason("because of the lab", "echo hunter2x", f"echo {MASK}", REDACT) == "because of the lab"
    assert masked_reason("so that echo says it", "echo hunter2x", f"echo {MASK}", REDACT) == "so that echo says it"
