"""Which values of the environment are masked."""

from __future__ import annotations

from pmagent.contracts.payload import types
from pmagent.events.redact import MASK, Redactor
from pmagent.service.secrets import CHOICE_CHARS_MAX, choices, known_secrets
from tests.support.cases import each


@each("word", ["kernel", "kernel.observed", "NORMAL", "oa.kernel_status", "DEGRADED", "bootstrap"])
def test_a_word_of_our_own_is_no_secret(word: str) -> None:
    assert known_secrets({"CACHE_KEY": word, "API_KEY": "sesame-open-9"}) == ["sesame-open-9"]


ORCHESTRA = [
    "planned", "running", "blocked", "failed", "succeed", "give_up", "unblock", "cancelled", "timed_out", "bad_plan",
    "queued", "complete", "read-only", "refused", "allowed", "claude_code", "not_installed", "python", "poetry",
    "./runs", "artifacts", "tasks.jsonl", "orchestrator", "coordinator", "worker", "run.requested",
    "task.attempt_requested",
]  # fmt: skip


@each("word", ORCHESTRA)
def test_a_word_of_orchestra_is_no_secret(word: str) -> None:
    assert known_secrets({"SECRET_WORD": word}) == []


@each("word", [
    "TYPE_TEXT", "EXECUTE", "page_down", "backspace", "heartbeat_stale", "action_execute", "BOOT_MISMATCH",
    "missing_approval", "MODE_CHANGE", "USB_HID_FAILURE", "min_action_delay_ms", "unplugged", "not_executed",
])  # fmt: skip
def test_a_word_of_the_pla_is_no_secret(word: str) -> None:
    assert known_secrets({"SECRET_WORD": word}) == []


def test_no_choice_of_any_payload_is_a_secret() -> None:
    """The choices of every type's fields are known to everybody, whatever types there will be."""
    words = choices(frozenset(types().values()))
    assert {"rw", "deny", "allow", "done", "read-only", "BLOCKED", "rules"} <= words
    assert max(map(len, words)) <= CHOICE_CHARS_MAX
    assert known_secrets({f"{number}_TOKEN": word for number, word in enumerate([*words, *types()])}) == []


def test_a_word_of_our_own_with_more_to_it_is_one() -> None:
    redactor = Redactor(known_secrets({"API_KEY": "kernel-4711"}))
    assert redactor.text("the kernel says kernel-4711") == f"the kernel says {MASK}"
    assert known_secrets({"A_KEY": "read-only!", "B_KEY": "unplanned"}) == ["read-only!", "unplanned"]
