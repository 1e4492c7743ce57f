"""Which values of the environment are masked."""

from __future__ import annotations

import pytest

from events.redact import MASK, Redactor
from pmagent.secrets import known_secrets


@pytest.mark.parametrize("word", ["kernel", "kernel.observed", "NORMAL", "oa.kernel_status", "DEGRADED", "bootstrap"])
def test_a_word_of_our_own_is_no_secret(word: str) -> None:
    assert known_secrets({"CACHE_KEY": word, "API_KEY": "sesame-open-9"}) == ["sesame-open-9"]


def test_a_word_of_our_own_with_more_to_it_is_one() -> None:
    redactor = Redactor(known_secrets({"API_KEY": "kernel-4711"}))
    assert redactor.text("the kernel says kernel-4711") == f"the kernel says {MASK}"
