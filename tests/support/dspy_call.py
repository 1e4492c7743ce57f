"""One call of a DSPy program through the gateway, by a provider's real client, in a process of its own: prints the end
of each question and every address that was looked up or connected to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio

from pmagent.actors.model.models import Models
from pmagent.contracts.model import ModelLimits
from tests.support.models import live_gateway
from tests.support.provider import Answer, completion, error, provider

FIELDS = {"allowed_action": "WARN", "safety_check_summary": "s", "rationale": "r", "conditions": "[]", "warnings": "[]"}
TEXT = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in FIELDS.items()) + "\n\n[[ ## completed ## ]]"
ANSWERS = [error(429), completion(TEXT), error(401), Answer(hang=True)]


def watch(hosts: set[str]) -> None:
    """Note every host that this process talks to from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            hosts.add(str(arguments[0]))
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            hosts.add(str(arguments[1][0]))

    sys.addaudithook(hook)


async def ask(models: Models) -> list[Any]:
    """Three questions: one that is answered at the second attempt, one that is rejected, one that is not answered."""
    async with live_gateway(models) as rig:
        return [
            await rig.ask(
                engine="dspy", model="openai:gpt-x", messages=[], program="SafeOPSDecision",
                inputs={"envelope": {}, "evidence": {}},
                limits=ModelLimits(call_seconds=seconds, attempts=1 if seconds < 1 else 3),
            )
            for seconds in (60.0, 60.0, 0.5)
        ]


def main() -> None:
    """See the module."""
    hosts: set[str] = set()
    watch(hosts)
    with provider(*ANSWERS) as server:
        os.environ["OPENAI_API_BASE"] = os.environ["OPENAI_BASE_URL"] = server.url
        replied, rejected, hung = anyio.run(ask, Models({"OPENAI_API_KEY": "test-key"}))
        assert set(server.keys) == {"Bearer test-key"}
    sys.stdout.write(f"{replied.fields['allowed_action']} {replied.usage.input_tokens} ")
    sys.stdout.write(f"{rejected.code} {hung.code} {sorted(hosts)}\n")


if __name__ == "__main__":
    main()
