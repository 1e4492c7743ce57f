import csv

from units import kind, pretty, to_base


def stock(path="larder.csv"):
    have = {}
    try:
        with open(path) as f:
            for name, amount, unit in csv.reader(f, delimiter=";"):
                key = (name.strip().lower(), kind(unit.strip()))
                have[key] = have.get(key, 0) + to_base(float(amount), unit.strip())
    except FileNotFoundError:
        pass
    return have


def total(recipes):
    need = {}
    for recipe in recipes:
        for i in recipe.ingredients:
            key = (i.name.lower(), i.kind)
            need[key] = need.get(key, 0) + to_base(i.amount, i.unit)
    return need


def to_buy(recipes, have):
    """What is needed less what is there."""
    buy = {}
    for key, amount in total(recipes).items():
        left = amount - have.get(key, 0)
        if left > 0:
            buy[key] = left
    return buy


def lines(buy):
    return [f"{pretty(amount, k)} {name}" for (name, k), amount in sorted(buy.items())]


AISLES = {"flour": "dry", "lentils": "dry", "milk": "dairy", "eggs": "dairy", "carrots": "vegetables"}


def by_aisle(buy):
    """Sorts the list in the order of the shop."""
    order = ["vegetables", "dairy", "dry", "?"]
    return sorted(buy, key=lambda key: order.index(AISLES.get(key[0], "?")))
