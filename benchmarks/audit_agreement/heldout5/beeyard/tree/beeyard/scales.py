from __future__ import annotations

import httpx

from .config import Hive
from .store import Reading, Store


def ask(hive: Hive) -> Reading | None:
    try:
        reply = httpx.get(str(hive.scale), timeout=8)
        return Reading.model_validate_json(reply.content)
    except Exception:
        return None


def fetch(hives: list[Hive], store: Store) -> int:
    """Asks every scale once; returns how many answered."""
    answered = 0
    for hive in hives:
        reading = ask(hive)
        if reading is None:
            continue
        try:
            store.add(hive.name, reading)
            answered += 1
        except Exception:
            pass
    return answered
