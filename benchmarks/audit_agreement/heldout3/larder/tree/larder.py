import argparse
import os
import sys

import importer
import recipe
import shopping
from units import pretty, to_base


def show(name, people):
    r = recipe.load(name)
    if people:
        r = r.scaled(people)
    print(f"{r.title} (for {r.serves})\n")
    for i in r.ingredients:
        print(" ", pretty(to_base(i.amount, i.unit), i.kind), i.name)
    print("\n" + r.text)


def shop(names, people):
    recipes = []
    for name in names:
        try:
            r = recipe.load(name)
            recipes.append(r.scaled(people) if people else r)
        except Exception:
            pass
    for line in shopping.lines(shopping.to_buy(recipes, shopping.stock())):
        print("[ ]", line)


def backup():
    os.system("tar czf larder-backup.tgz recipes larder.csv")
    print("backup made")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command", choices=["list", "show", "shop", "import", "backup"])
    p.add_argument("what", nargs="*")
    p.add_argument("--for", dest="people", type=int)
    a = p.parse_args()
    if a.command == "list":
        print("\n".join(recipe.every()))
    elif a.command == "show":
        try:
            show(a.what[0], a.people)
        except FileNotFoundError:
            sys.exit(f"no recipe {a.what[0]}, we have: {', '.join(recipe.every())}")
    elif a.command == "shop":
        shop(a.what, a.people)
    elif a.command == "import":
        slug = importer.import_recipe(a.what[0], recipe.FOLDER)
        if slug is None:
            sys.exit("no recipe found on that page")
        print("imported", slug)
    elif a.command == "backup":
        backup()


if __name__ == "__main__":
    main()
