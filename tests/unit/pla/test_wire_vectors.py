"""The host understands what the firmware's vectors have the device say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from pmagent.actors.pla.wire.answers import answer_of, ended_of
from pmagent.actors.pla.wire.messages import Broken, Ended, Op, Refused
from pmagent.contracts.checking import check
from tests.support.cases import each
from tests.support.pla_wired import no_check

EXCHANGES = json.loads((Path(__file__).parents[3] / "firmware/vectors/exchanges.json").read_text())
ANYTHING = "..."
"""Stands in a vector for fields that do not matter there."""


@each("exchange", EXCHANGES)
def test_all_that_the_device_says_is_understood(exchange: dict[str, Any]) -> None:
    ops: dict[int, Any] = {}
    for step in exchange["steps"]:
        for asked in step.get("hear", []):
            if isinstance(asked, dict) and isinstance(asked.get("n"), int):
                ops[asked["n"]] = asked.get("op")
        for said in step.get("tell", []):
            if not isinstance(said, dict):
                continue
            if "re" in said:
                understood(ops[said["re"]], said)
            elif said["op"] == "ended":
                assert isinstance(ended_of(said), Ended)
            else:
                assert said["op"] == "status"


def understood(op: Any, said: dict[str, Any]) -> None:
    """An answer has its shape; only what the host never asks is answered with nothing but a refusal."""
    if op not in get_args(Op):
        assert said["ok"] is False
        return
    status_is_open = ANYTHING in said.get("status", {})
    answer = answer_of(op, said, no_check if status_is_open else check)
    assert not isinstance(answer, Broken), (op, said)
    assert isinstance(answer, Refused) == (said["ok"] is False)


def test_the_vectors_hold_answers_to_everything_that_is_asked() -> None:
    answered = set()
    for exchange in EXCHANGES:
        for step in exchange["steps"]:
            numbers = {said["re"] for said in step.get("tell", []) if isinstance(said, dict) and said.get("ok")}
            answered |= {
                asked["op"] for asked in step.get("hear", []) if isinstance(asked, dict) and asked.get("n") in numbers
            }
    assert answered == set(get_args(Op))
