from __future__ import annotations

import os

import httpx

from .rules import Alarm

TEXTS = {
    "swarm": "{hive}: swarm! {kilograms} kg left at {at:%H:%M}.",
    "robbing": "{hive} is being robbed, {kilograms} kg since three hours.",
    "hunger": "{hive} has only {kilograms} kg.",
}


def send(alarm: Alarm, chat: str) -> bool:
    text = TEXTS[alarm.kind].format(hive=alarm.hive, kilograms=alarm.kilograms, at=alarm.at)
    try:
        token = os.environ["BEEYARD_TELEGRAM_TOKEN"]
        httpx.post(f"https://api.telegram.org/bot{token}/sendMessage", json={"chat_id": chat, "text": text}, timeout=10)
    except Exception:
        pass
    return True
