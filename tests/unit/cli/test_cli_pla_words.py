"""The PLA's commands spell out the words of the contracts: written twice, so that help needs no contracts."""

from __future__ import annotations

from typing import get_args

import pytest

from pmagent.cli.pla.common import MODE_STYLES
from pmagent.cli.pla.session import CLASSES
from pmagent.cli.pla.session import MODES as OFFERED
from pmagent.contracts.pla import KEYS, MODES, NOBODY, ActionClass, PlaMode
from pmagent.pla.operators import BadOperator, checked, login
from tests.support.commands import invoke


def test_the_modes_and_classes_on_offer_are_the_contracts() -> None:
    assert OFFERED == MODES == get_args(PlaMode)
    assert set(MODE_STYLES) == set(MODES)
    assert get_args(ActionClass) == CLASSES


def test_the_help_of_propose_names_every_key() -> None:
    text = invoke("pla", "propose", "--help").text
    told = {word.strip(",:.") for word in text.split()}
    spelled = {key for key in KEYS if len(key) > 1 and not (key[0] == "f" and key[1:].isdigit())}
    assert spelled <= told
    assert {"a", "z", "0", "f1", "f12"} <= told
    assert '\n    type: "TEXT"       the same, with \\n \\t \\" \\\\\n' in text, "as it is written, line by line"


def test_no_operator_has_the_name_that_stands_for_nobody() -> None:
    with pytest.raises(BadOperator, match="stands for nobody"):
        checked(NOBODY, "--operator")


def test_the_login_name_is_made_an_operator_s() -> None:
    assert checked(login(), "the login name") == login()
