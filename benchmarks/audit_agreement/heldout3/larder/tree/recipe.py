import re
from dataclasses import dataclass, field
from pathlib import Path

from units import kind

FOLDER = Path("recipes")
LINE = re.compile(r"(?P<n>\d+(?:[.,/]\d+)?)\s*(?P<rest>.*)")
UNITS = {"g", "kg", "oz", "lb", "pinch", "ml", "cl", "l", "tsp", "tbsp", "cup", "can", "clove", "bunch"}


@dataclass
class Ingredient:
    amount: float
    unit: str
    name: str

    @property
    def kind(self) -> str:
        return kind(self.unit)


@dataclass
class Recipe:
    title: str
    serves: int
    ingredients: list = field(default_factory=list)
    text: str = ""

    def scaled(self, people: int) -> "Recipe":
        f = people / self.serves
        return Recipe(self.title, people, [Ingredient(i.amount * f, i.unit, i.name) for i in self.ingredients], self.text)


def number(text):
    if "/" in text:
        a, b = text.split("/")
        return int(a) / int(b)
    return float(text.replace(",", "."))


def parse_line(line):
    m = LINE.match(line.strip())
    if not m:
        return Ingredient(1, "", line.strip())
    rest = m["rest"].split(maxsplit=1)
    if len(rest) == 2 and rest[0] in UNITS:
        return Ingredient(number(m["n"]), rest[0], rest[1])
    return Ingredient(number(m["n"]), "", m["rest"])


def parse(text):
    head, _, body = text.partition("\n---\n")
    lines = [line for line in head.splitlines() if line.strip()]
    serves = 4
    ingredients = []
    for line in lines[1:]:
        if line.startswith("for "):
            serves = int(line[4:])
        else:
            ingredients.append(parse_line(line))
    return Recipe(lines[0], serves, ingredients, body.strip())


def load(name):
    return parse((FOLDER / f"{name}.txt").read_text())


def every():
    return sorted(p.stem for p in FOLDER.glob("*.txt"))
