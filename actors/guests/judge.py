"""The verdict on a call; pure (docs/policy.md)."""

from __future__ import annotations

from pmagent.contracts.guest_calls import Call, Policy, Situation, Verdict


def judge(call: Call, policy: Policy, situation: Situation) -> Verdict:
    """Reading is allowed unless the workspace is BLOCKED and unread, everything else asks; a rule named like the tool
    decides. Any problem of a layer refuses all but reading."""
    if any(layer.problem for layer in policy.layers) and call.kind != "read":
        return Verdict(answer="deny", rules=["built-in"], policy=policy.digest, reasons=["the policy cannot be used"])
    for layer in policy.layers:
        for rule in layer.rules:
            holds = not rule.expires or rule.expires > situation.time
            if rule.match == call.tool and rule.answer is not None and holds:
                gains = [rule.label] if rule.label else []
                return Verdict(answer=rule.answer, rules=[rule.id], policy=policy.digest, reasons=[rule.reason],
                               approvals=rule.approvals, gains=gains)  # fmt: skip
    if call.kind == "read":
        return Verdict(answer="allow", rules=["built-in"], policy=policy.digest, reasons=["reading"])
    return Verdict(answer="ask", rules=["default"], policy=policy.digest, reasons=["no rule says anything of it"])
