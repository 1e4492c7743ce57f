"""A refusal says why, and each way out once; what a command lacks is said on one line."""

from __future__ import annotations

from pmagent.cli.output import Output
from pmagent.cli.pla.common import refusal
from tests.support.commands import _Stream, invoke


def test_what_would_mend_several_reasons_is_said_once_in_its_order() -> None:
    out, err = _Stream(), _Stream()
    document = {"reasons": ["one", "two", "three"], "mend": ["refresh", "look", "refresh"]}
    refusal(Output(out, err, {}), "the device is not armed", document)
    assert out.getvalue().decode().splitlines()[1:] == ["  one", "  two", "  three"]
    assert err.getvalue().decode().splitlines() == ["hint: refresh", "hint: look"]


def test_a_choice_that_is_missing_is_asked_for_on_one_line() -> None:
    done = invoke("pla", "mode")
    assert done.code == 2
    assert done.errors.startswith("error: ")
    assert done.errors.splitlines()[0].endswith("Choose from: OBSERVE, SUGGEST, EXECUTE")
