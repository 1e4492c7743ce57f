import json
from pathlib import Path
from typing import Protocol

FIXTURES = Path(__file__).parent.parent / "fixtures"


class Unavailable(Exception):
    """A provider has nothing to say."""


class Provider(Protocol):
    def rides(self, city: str) -> list[dict]: ...
    def rooms(self, city: str) -> list[dict]: ...
    def book(self, offer_id: str) -> str: ...


class FromFiles:
    """Timetable and rooms from two JSON files, and a list of what was booked."""

    def __init__(self, folder: Path = FIXTURES, journal: Path = Path("booked.txt")):
        self.folder, self.journal = folder, journal

    def _read(self, name: str) -> list[dict]:
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, json.JSONDecodeError) as exc:
            raise Unavailable(f"{name}: {exc}") from exc

    def rides(self, city):
        return [r for r in self._read("rides.json") if r["to"] == city.lower()]

    def rooms(self, city):
        return [r for r in self._read("rooms.json") if r["city"] == city.lower()]

    def book(self, offer_id):
        with self.journal.open("a") as f:
            f.write(offer_id + "\n")
        return f"ok {offer_id}"
