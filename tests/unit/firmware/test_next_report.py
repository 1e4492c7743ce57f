"""Before each report it is looked again whether anything may be typed, whoever forgot to end what runs."""

from __future__ import annotations

from pmagent.contracts.pla import TypeText
from tests.support.cases import each
from tests.support.pla_wired import Wired, commit

LONG = TypeText(text="x" * 100)


@each("name, value", [("armed", False), ("killed", True), ("failed", True)])
def test_nothing_goes_out_of_a_device_that_may_not_type(name: str, value: bool) -> None:
    wired = Wired().prepared(LONG)
    wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 3)
    setattr(wired.core, name, value)
    pressed = wired.presses
    for _ in range(50):
        wired.step()
    assert wired.presses == pressed
