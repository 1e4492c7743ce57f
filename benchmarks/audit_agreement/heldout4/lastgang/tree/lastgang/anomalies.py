"""What is suspicious about a day. No model here."""
from dataclasses import dataclass
from statistics import mean, pstdev

from .readings import Curve


@dataclass
class Anomaly:
    kind: str
    slot: int
    observed: float
    expected: float

    @property
    def text(self):
        hour = f"{self.slot // 4:02d}:{self.slot % 4 * 15:02d}"
        return f"{self.kind} at {hour}: {self.observed:.1f} kWh, expected {self.expected:.1f}"


def find(today: Curve, before: list[Curve]) -> list[Anomaly]:
    found = []
    full = [c for c in before if len(c.kwh) == len(today.kwh)]
    if len(full) < 3:
        return found
    for slot, value in enumerate(today.kwh):
        history = [c.kwh[slot] for c in full]
        mu, sd = mean(history), pstdev(history)
        if value > mu + 4 * max(sd, 0.2):
            found.append(Anomaly("peak", slot, value, mu))
    base = mean(c.base for c in full)
    if today.base > 1.5 * base:
        found.append(Anomaly("base load", 4, today.base, base))
    # a peak is usually several quarter hours long
    merged = []
    for a in found:
        if merged and a.kind == merged[-1].kind == "peak" and a.slot - merged[-1].slot <= 2:
            continue
        merged.append(a)
    return merged


def savings(anomalies, price=0.31):
    """Euros per year, if the anomaly goes on."""
    return sum((a.observed - a.expected) * price * 365 for a in anomalies)
