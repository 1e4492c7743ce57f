from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from . import config, rules, scales, telegram
from .store import Store

QUIET = timedelta(hours=12)


def check(settings: config.Config, store: Store, now: datetime) -> None:
    for hive in settings.hive:
        try:
            readings = store.since(hive.name, now - timedelta(hours=4))
            for alarm in rules.alarms(hive.name, readings, settings.thresholds):
                if store.recently_sent(hive.name, alarm.kind, now, QUIET):
                    continue
                if telegram.send(alarm, settings.chat):
                    store.mark_sent(hive.name, alarm.kind, now)
        except Exception:
            continue


def week(settings: config.Config, store: Store, now: datetime) -> None:
    for hive in settings.hive:
        readings = store.since(hive.name, now - timedelta(days=7))
        if readings:
            change = readings[-1].kilograms - readings[0].kilograms
            print(f"{hive.name:12} {readings[-1].kilograms:6.1f} kg {change:+6.1f} kg {readings[-1].celsius:5.1f} °C")


def main() -> int:
    parser = argparse.ArgumentParser(prog="beeyard")
    parser.add_argument("command", choices=("fetch", "check", "week"))
    parser.add_argument("--config", type=Path, default=Path("beeyard.toml"))
    given = parser.parse_args()
    try:
        settings = config.load(given.config)
        store = Store(settings.database)
        now = datetime.now(UTC)
        if given.command == "fetch":
            scales.fetch(settings.hive, store)
        elif given.command == "check":
            check(settings, store, now)
        else:
            week(settings, store, now)
        store.close()
    except Exception:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
