"""Where no browser is installed its tests are skipped, with the reason; on a machine that builds they fail."""

from __future__ import annotations

import pytest

from tests.support import screens


@pytest.mark.parametrize(
    ("building", "raised"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)], ids=["build", "at_home"]
)
def test_without_a_browser_nothing_passes(
    monkeypatch: pytest.MonkeyPatch, building: str, raised: type[BaseException]
) -> None:
    monkeypatch.setattr(screens, "CHROMIUM", "")
    monkeypatch.setenv("CI", building)
    with pytest.raises(raised, match="Chromium is not installed"):
        screens.require_chromium()
