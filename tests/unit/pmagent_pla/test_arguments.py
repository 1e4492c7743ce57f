"""The daemon's socket trusts nobody: arguments that are none are refused before anything is recorded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.pla.arguments import (
    DOCUMENT_CHARS_MAX,
    BadPla,
    DecideArguments,
    ListArguments,
    ModeArguments,
    ObserveArguments,
    OperatorArguments,
    OutcomeArguments,
    ProposeArguments,
    ShowArguments,
    StatusArguments,
    understood,
)
from tests.support.cases import each

WHO = {"operator": "ada"}


def test_the_request_s_id_is_nobody_s_argument() -> None:
    assert understood({"request": "pla.list-1", "count": 3}, ListArguments).count == 3


@each("shape, arguments", [
    (ModeArguments, {"mode": "SUGGEST"}),
    (ModeArguments, {**WHO, "mode": "TYPE"}),
    (ModeArguments, {**WHO, "mode": "SUGGEST", "action_class": "anything"}),
    (ModeArguments, {**WHO, "mode": "SUGGEST", "reason": "x" * 501}),
    (OperatorArguments, {"operator": "a"}),
    (OperatorArguments, {"operator": "ada\n"}),
    (OperatorArguments, {"operator": "ada lovelace"}),
    (OperatorArguments, {**WHO, "channel": "daemon"}),
    (OperatorArguments, {**WHO, "channel": "document"}),
    (OperatorArguments, {**WHO, "more": 1}),
    (ProposeArguments, {**WHO, "goal": "x" * 16_385}),
    (ProposeArguments, {**WHO, "goal": 3}),
    (ProposeArguments, {**WHO, "document": "x" * (DOCUMENT_CHARS_MAX + 1)}),
    (ProposeArguments, {**WHO, "policy": "acknowledge"}),
    (ProposeArguments, {**WHO, "lifetime_s": 1e9}),
    (ProposeArguments, {**WHO, "two_persons": False}),
    (ProposeArguments, {**WHO, "digest": "ab" * 32}),
    (ProposeArguments, {**WHO, "findings": []}),
    (ProposeArguments, {**WHO, "look": "yes"}),
    (ObserveArguments, {**WHO, "frames": "x" * 4097}),
    (DecideArguments, {**WHO, "decision": "MAYBE"}),
    (DecideArguments, {**WHO, "digest": "ab" * 33}),
    (DecideArguments, {**WHO, "acknowledged": 1}),
    (OutcomeArguments, {"proposal_id": "x", "seconds": float("inf")}),
    (OutcomeArguments, {"proposal_id": "x", "seconds": -1}),
    (ListArguments, {"count": 101}),
    (ListArguments, {"count": 0}),
    (ShowArguments, {"proposal_id": "x" * 201}),
    (ShowArguments, {"reveal": "true"}),
    (StatusArguments, {"x": 1}),
])
def test_what_does_not_fit_is_refused(shape: type, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadPla, match="cannot be asked of the PLA"):
        understood(arguments, shape)


@each("shape", [ProposeArguments, OperatorArguments, ModeArguments, ShowArguments])
def test_bytes_that_were_no_text_are_refused(shape: type[msgspec.Struct]) -> None:
    for name in shape.__struct_fields__:
        with pytest.raises(BadPla, match=f"^{name} is no text in UTF-8"):
            understood({**WHO, name: "a\udcff"}, shape)


def test_what_is_said_of_bad_arguments_holds_nothing_of_them() -> None:
    with pytest.raises(BadPla) as caught:
        understood({**WHO, "goal": ["hunter2-hunter2"]}, ProposeArguments)
    assert "hunter2" not in caught.value.message
