"""Units and what they are in grams or millilitres."""

MASS = {"g": 1, "kg": 1000, "oz": 28.35, "lb": 453.6, "pinch": 0.4}
VOLUME = {"ml": 1, "cl": 10, "l": 1000, "tsp": 5, "tbsp": 15, "cup": 240}


def kind(unit):
    if unit in MASS:
        return "mass"
    if unit in VOLUME:
        return "volume"
    return unit


def to_base(amount, unit):
    return amount * MASS.get(unit, VOLUME.get(unit, 1))


def pretty(amount, kind_):
    if kind_ == "mass":
        return f"{amount / 1000:g} kg" if amount >= 1000 else f"{round(amount)} g"
    if kind_ == "volume":
        return f"{amount / 1000:g} l" if amount >= 1000 else f"{round(amount)} ml"
    n = f"{amount:.2f}".rstrip("0").rstrip(".")
    return f"{n} {kind_}".strip()
