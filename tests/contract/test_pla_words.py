"""The PLA's words are the same in its lists, its protocol's page, its firmware and its types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pmagent.contracts.hid import HidLost
from pmagent.contracts.pla import Unfit
from pmagent.contracts.pla_documents import AbortCode
from pmagent.contracts.pla_events import PlaModeChanged, PlaProposalClosed, PlaViolation
from pmagent.contracts.pla_schemas import SCHEMAS
from pmagent.contracts.pla_words import FIELDS, LOSS_CODES, MODE_CODES, OUTCOMES, REFUSALS, VIOLATIONS
from tests.support.cases import each

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hid-protocol.md").read_text()


def test_the_page_lists_the_words_with_which_a_device_refuses() -> None:
    table = PAGE.partition("| `error` | when |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE) == list(REFUSALS)


def test_the_firmware_refuses_with_these_words_only() -> None:
    raised = set()
    for file in sorted((ROOT / "firmware").glob("*.py")):
        raised |= set(re.findall(r'Refused\(\s*"([A-Z_]+)"', file.read_text()))
    assert raised <= set(REFUSALS)
    assert {"KILLED", "NOT_ARMED", "DIGEST", "APPROVAL"} <= raised


def test_the_page_lists_the_ways_in_which_an_execution_is_aborted() -> None:
    said = PAGE.partition("`code` of an execution that was ABORTED:")[2].partition("\n\n")[0]
    assert re.findall(r"`([A-Z_]+)`", said) == [code for code in get_args(AbortCode) if code]


def test_the_kinds_of_violations_hold_those_of_documents() -> None:
    assert set(get_args(Unfit)) <= set(VIOLATIONS)


@each(
    "cls, words",
    [
        (PlaModeChanged, MODE_CODES), (PlaViolation, VIOLATIONS), (PlaProposalClosed, OUTCOMES), (HidLost, LOSS_CODES),
    ],
)  # fmt: skip
def test_an_events_description_lists_the_words_that_it_may_say(cls: type, words: Sequence[str]) -> None:
    said = set(re.findall(r"[a-z_]+", cls.__doc__ or ""))
    assert [word for word in words if word not in said] == []


def test_the_named_fields_stand_in_the_contracts() -> None:
    text = repr(SCHEMAS)
    assert [name for name in FIELDS if f"'{name}'" not in text] == []
