import json
import os
from datetime import datetime, timedelta
from pathlib import Path


class Calendar:
    """The practice's calendar: a JSON file of taken slots."""

    def __init__(self) -> None:
        self.path = Path(os.environ.get("VETLINE_CALENDAR", "calendar.json"))
        self.taken: dict[str, str] = {}
        if self.path.exists():
            try:
                self.taken = json.loads(self.path.read_text())
            except Exception:
                pass

    def first_free(self, within_days: int) -> str:
        now = datetime.now().replace(minute=0, second=0, microsecond=0)
        for hour in range(1, 24 * (within_days + 1)):
            slot = now + timedelta(hours=hour)
            if 9 <= slot.hour < 18 and slot.isoformat() not in self.taken:
                return slot.isoformat()
        return (now + timedelta(days=7)).isoformat()

    def reserve(self, slot: str, species: str) -> None:
        self.taken[slot] = species

    def save(self) -> None:
        self.path.write_text(json.dumps(self.taken, indent=2))
