"""Policies in Cedar, beside the rules: ``policy.cedar`` next to a ``policy.yaml`` (docs/policy.md).

Cedar's engine (the extra ``cedar``) is asked once, when a call is looked at; its opinion stands with the call's facts,
so a verdict can be recomputed without it. ``permit`` allows, ``forbid`` denies, and ``@decision("ask")`` over either
makes it a question. A policy that cannot be evaluated makes one, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pmagent.actors.guests.matching import Part, hints_of, parts_of
from pmagent.contracts.guest_calls import ANSWERS, Answer, Call, Layer, LayerName, Opinion
from pmagent.events.atomic import read_plain
from pmagent.workspace.layout import POLICY_BYTES_MAX

BYTES_MAX: Final = POLICY_BYTES_MAX
_RESOURCES: Final = {
    "command": "Command", "read": "Path", "write": "Path", "mention": "Path", "host": "Host", "agent": "Kind",
}  # fmt: skip


def opinion_of(call: Call, files: Sequence[Path]) -> Opinion | None:
    """The answer of the Cedar policies in these files to the call; None where there are none, or none speaks of it.
    A file that cannot be used is the matter of ``layer``."""
    texts = [read_plain(path, BYTES_MAX).decode("utf-8") for path in files if path.is_file()]
    if not texts or any(_problem(text) for text in texts):
        return None
    text, parts = "\n".join(texts), list(parts_of(call))
    said = [_answer(text, part, call) for part in (*parts, *hints_of(call))]
    answer = max((one for one, _ in said if one is not None), key=ANSWERS.index, default=None)
    if answer is None or (answer == "allow" and None in [one for one, _ in said[: len(parts)]]):
        return None  # what no policy speaks of is not allowed by those that speak of the rest
    rules = dict.fromkeys(rule for one, some in said if one == answer for rule in some)
    return Opinion(answer=answer, rules=list(rules), engine=f"cedarpy {version('cedarpy')}")


def layer(name: LayerName, path: Path) -> Layer | None:
    """The layer of a Cedar file: its digest, and why it cannot be used; None where there is no such file."""
    try:
        raw = read_plain(path, BYTES_MAX)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Layer(name=name, path=str(path), problem=f"{path} cannot be read: {error.strerror}")
    problem = "it is too large" if len(raw) > BYTES_MAX else _problem(raw.decode("utf-8", "replace"))
    return Layer(name=name, path=str(path), sha256=sha256(raw).hexdigest(), problem=problem and f"{path}: {problem}")


@lru_cache(maxsize=8)
def _problem(text: str) -> str:
    try:
        _policies(text)
    except ImportError:
        return "Cedar's engine is not installed: pip install 'pmagent[cedar]'"
    except ValueError as error:
        return f"it is not Cedar: {error}"
    return ""


@lru_cache(maxsize=8)
def _policies(text: str) -> tuple[Any, dict[str, tuple[str, bool]]]:
    """The policies, parsed, and of each its name and whether it asks. Raises ImportError, ValueError."""
    import cedarpy

    given = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"]
    notes = {id: one.get("annotations", {}) for id, one in given.items()}
    known = {id: (f"cedar:{one.get('id', id)}", one.get("decision") == "ask") for id, one in notes.items()}
    return cedarpy.PolicySet.from_str(text), known


def _answer(text: str, part: Part, call: Call) -> tuple[Answer | None, list[str]]:
    import cedarpy

    policies, known = _policies(text)
    line = " ".join("?" if word is None else word for word in part.words)
    request = {
        "principal": {"type": "Agent", "id": call.harness},
        "action": {"type": "Action", "id": part.kind},
        "resource": {"type": _RESOURCES.get(part.kind, "Tool"), "id": line or part.text},
        "context": _context(part, call, line),
    }
    result = cedarpy.is_authorized(request, policies, [])
    rules = [known[id][0] for id in result.diagnostics.reasons]
    asks = [known[id][1] for id in result.diagnostics.reasons]
    if result.diagnostics.errors:
        return "ask", [f"cedar: {result.diagnostics.errors[0][:200]}"]
    if not rules:
        return None, []
    if result.allowed:
        return ("ask" if any(asks) else "allow"), rules
    return ("ask" if all(asks) else "deny"), rules


def _context(part: Part, call: Call, line: str) -> Mapping[str, Any]:
    """The facts of the call: each is always there, so that no policy fails for want of one."""
    inside = part.text.startswith(f"{call.root}/") and bool(call.root)
    return {
        "line": line, "words": [word or "?" for word in part.words], "sets": list(part.sets), "path": part.text,
        "inside": part.text[len(call.root) + 1 :] if inside else "", "whole": part.whole, "host": part.text,
        "tool": call.tool, "kind": call.kind, "server": call.server, "agent_type": call.agent_type, "root": call.root,
        "subagent": bool(call.agent or call.agent_type), "branch": call.branch, "hour": call.hour,
        "outward": call.outward, "understood": not call.unclear,
    }  # fmt: skip
