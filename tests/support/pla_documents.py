"""Documents of the PLA for any values: drawn by the contracts' texts, neither from the schemas nor from the types."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from pmagent.contracts.pla import KEYS, MODIFIERS
from tests.support.single_changes import NAMES, STRANGE, containers

WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
HEX = "0123456789abcdef"

ids = st.text(WORDS, min_size=8, max_size=64)
operators = st.text(WORDS, min_size=2, max_size=64)
devices = st.text(WORDS + ":", min_size=8, max_size=64)
digests = st.text(HEX, min_size=64, max_size=64)
boots = st.text(HEX, min_size=16, max_size=16)
modes = st.sampled_from(["OBSERVE", "SUGGEST", "EXECUTE"])
switches = st.sampled_from(["ARMED", "DISABLED", "UNKNOWN"])
counts = st.integers(0, 4_294_967_295)
numbered = st.tuples(*[st.integers(0, 99_999)] * 3).map(lambda three: ".".join(map(str, three)))
typable = st.text(st.characters(min_codepoint=32, max_codepoint=126, include_characters="\t\n"), min_size=1)
prose = st.text(st.characters(codec="utf-8"), max_size=40)


def spoken(shortest: int) -> st.SearchStrategy[str]:
    """Texts in which something is to be seen."""
    return prose.map(lambda text: text + "x" * max(shortest - len(text), 1))


@st.composite
def moments(draw: st.DrawFn) -> str:
    day = draw(st.dates()).isoformat()
    zone = draw(st.sampled_from(["Z", "+00:00", "-23:59", "+05:30"]))
    fraction = draw(st.sampled_from(["", ".5", ".123456"]))
    return f"{day}T{draw(st.times()).strftime('%H:%M:%S')}{fraction}{zone}"


@st.composite
def combinations(draw: st.DrawFn) -> list[str]:
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True))
    return keys[:1] if all(key in MODIFIERS for key in keys) else keys


actions = st.one_of(
    st.fixed_dictionaries({"action_type": st.just("TYPE_TEXT"), "payload": st.fixed_dictionaries({"text": typable})}),
    st.fixed_dictionaries(
        {"action_type": st.just("KEY_COMBO"), "payload": st.fixed_dictionaries({"keys": combinations()})}
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_MOVE"),
            "payload": st.fixed_dictionaries({"x": st.integers(-1000, 5000), "y": st.integers(-1000, 5000)}),
        }
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_CLICK"),
            "payload": st.fixed_dictionaries({"button": st.sampled_from(["left", "right", "middle"])}),
        }
    ),
)

_proposals = st.builds(
    lambda base, action: base | action,
    st.fixed_dictionaries(
        {
            "proposal_id": ids, "timestamp": moments(), "mode": modes, "rationale": spoken(10),
            "credential_warning": st.booleans(),
            "safety_bounds": st.just({"max_chars": 1024, "rate_limit_ms": 100}),
        },
        optional={
            "screen_context": st.fixed_dictionaries(
                {}, optional={"ocr_text": prose, "detected_elements": st.lists(prose, max_size=3)}
            )
        },
    ),
    actions,
)  # fmt: skip

_decisions = st.fixed_dictionaries(
    {"proposal_id": ids, "decision": st.just("APPROVED"), "timestamp": moments(), "operator_id": operators},
    optional={"override_reason": spoken(1), "credential_acknowledged": st.booleans(), "digest": digests},
) | st.fixed_dictionaries(
    {
        "proposal_id": ids, "decision": st.just("REJECTED"), "timestamp": moments(), "operator_id": operators,
        "override_reason": spoken(1),
    }
)  # fmt: skip

_executions = st.builds(
    lambda base, action: base | action,
    st.fixed_dictionaries(
        {
            "execution_id": ids, "proposal_id": ids, "timestamp": moments(), "mode": st.just("EXECUTE"),
            "safety_bounds": st.just({"max_text_length": 1024, "min_action_delay_ms": 100}),
            "operator_approval": st.fixed_dictionaries(
                {"decision_timestamp": moments(), "operator_id": operators}, optional={"digest": digests}
            ),
        }
    ),
    actions,
)  # fmt: skip

_details = st.builds(
    lambda known, others: others | known,
    st.fixed_dictionaries(
        {},
        optional={
            "action_type": st.sampled_from(["TYPE_TEXT", "KEY_COMBO", "MOUSE_MOVE", "MOUSE_CLICK"]),
            "payload_summary": prose, "decision": st.sampled_from(["APPROVED", "REJECTED"]), "error_message": prose,
            "old_mode": modes, "new_mode": modes, "credential_warning": st.booleans(),
        },
    ),
    st.dictionaries(
        st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=3),
        prose | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1), max_size=4,
    ),
)  # fmt: skip

_entries = st.fixed_dictionaries(
    {
        "log_id": ids, "timestamp": moments(), "mode": modes, "operator_id": operators, "details": _details,
        "event_type": st.sampled_from(["PROPOSAL", "DECISION", "EXECUTION", "ERROR", "MODE_CHANGE"]),
        "checksum": digests, "previous_log_checksum": digests,
    },
    optional={"proposal_id": ids, "execution_id": ids},
)  # fmt: skip

_statuses = st.fixed_dictionaries(
    {
        "device_id": devices, "timestamp": moments(), "mode": modes, "led_state": st.booleans(),
        "kill_switch_state": switches, "uptime_seconds": counts,
    },
    optional={
        "last_execution_time": moments(),
        "error_state": st.fixed_dictionaries(
            {"has_error": st.booleans(), "error_code": st.sampled_from(["NONE", "MODE_MISMATCH", "UNKNOWN_ERROR"])},
            optional={"error_message": prose, "error_count": counts},
        ),
        "firmware_version": numbered | numbered.map("v{}".format), "action_count": counts,
        "contract_version": numbered, "contract_hash": digests, "boot_id": boots, "caps_lock": st.booleans(),
        "lease_ms": st.integers(0, 5000),
        "execution": st.fixed_dictionaries(
            {
                "execution_id": ids, "state": st.sampled_from(["NONE", "PREPARED", "RUNNING", "DONE", "ABORTED"]),
                "digest": digests | st.just(""), "done": counts, "of": counts,
                "code": st.sampled_from(["", "KILLED", "LEASE", "CAPS_LOCK", "WATCHDOG"]),
            }
        ),
    },
)  # fmt: skip

_hellos = st.fixed_dictionaries(
    {
        "device_id": devices, "boot_id": boots, "contract_version": numbered, "contract_hash": digests,
        "firmware_version": numbered, "reset_reason": st.sampled_from(["POWER_ON", "watchdog", "power on"]),
        "kill_switch_state": switches, "led_state": st.just(False), "armed": st.just(False),  # noqa: FBT003
        "max_line": st.just(2048), "layout": st.just("us"), "remembers": st.just(64),
    }
)  # fmt: skip

_values = st.recursive(
    st.none() | st.booleans() | prose | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(-1e300, 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(prose, inner, max_size=3), max_leaves=6,
)  # fmt: skip


@st.composite
def _jobs(draw: st.DrawFn) -> dict[str, Any]:
    status = draw(st.sampled_from(["queued", "running", "complete", "failed"]))
    part = {"queued": st.just(0), "complete": st.sampled_from([1, 1.0])}.get(status, st.floats(0, 1))
    optional: dict[str, Any] = {"progress": part, "message": prose}
    if status == "failed":
        optional["error"] = st.fixed_dictionaries({"code": spoken(1), "detail": prose})
    if status in ("complete", "failed"):
        optional["result"] = st.dictionaries(prose, _values, max_size=3)
    names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{2,20}", fullmatch=True)
    base = {"job_id": names, "status": st.just(status), "service": spoken(2), "updated_at": moments()}
    return draw(st.fixed_dictionaries(base, optional=optional))


_assets = st.lists(st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,9}", fullmatch=True), min_size=1, max_size=4).map(
    lambda names: "/assets/" + "/".join(names)
)
_manifests = st.fixed_dictionaries(
    {
        "version": st.just("v1"), "job_id": st.just("case-0042"), "service": spoken(2), "updated_at": moments(),
        "public_root": _assets | _assets.map("{}/".format) | st.just("/assets/"),
        "public": st.fixed_dictionaries(
            {
                "job_json": _assets,
                "enclosure": st.fixed_dictionaries({"stl": _assets}, optional={"obj": _assets, "glb": _assets}),
                "textures": st.fixed_dictionaries(
                    {"texture_png": _assets, "heightmap_png": _assets}, optional={"heightmap_exr": _assets}
                ),
                "previews": st.fixed_dictionaries(dict.fromkeys(("hero", "iso", "top", "side"), _assets)),
            }
        ),
    },
    optional={"subfolder": st.none() | st.just("case-0042")},
)  # fmt: skip

DOCUMENTS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "action_proposal": _proposals,
    "action_decision": _decisions,
    "action_execute": _executions,
    "session_log": _entries,
    "device_status": _statuses,
    "hello": _hellos,
    "job_status": _jobs(),
    "job_manifest": _manifests,
}
"""Contract -> documents that keep it."""


@st.composite
def spoiled(draw: st.DrawFn, documents: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """A document in which one to three things are left out, added or replaced; some are documents still."""
    document = copy.deepcopy(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.sampled_from(containers(document)))
        place = draw(st.sampled_from(list(where) if isinstance(where, dict) else range(len(where)))) if where else None
        match draw(st.sampled_from(["drop", "replace", "edit", "add"])):
            case "drop" if place is not None:
                del where[place]
            case "replace" if place is not None:
                where[place] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
            case "edit" if place is not None and isinstance(where[place], str):
                where[place] += draw(st.sampled_from(["\n", " ", "x", "\u00e9", "/", "-"]))
            case "add" if isinstance(where, dict):
                where[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
            case _:
                document["surprise"] = 1
    return document
