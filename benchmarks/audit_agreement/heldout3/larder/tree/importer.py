"""Recipes from the web: most blogs have schema.org data in them."""
import json
import re
import urllib.request
from pathlib import Path

SCRIPT = re.compile(r'<script[^>]*application/ld\+json[^>]*>(.*?)</script>', re.S | re.I)


def find(data):
    """The first Recipe in nested JSON-LD."""
    if isinstance(data, list):
        for d in data:
            r = find(d)
            if r:
                return r
    if isinstance(data, dict):
        if data.get("@type") in ("Recipe", ["Recipe"]):
            return data
        return find(data.get("@graph"))
    return None


def download(url):
    request = urllib.request.Request(url, headers={"User-Agent": "larder/1"})
    with urllib.request.urlopen(request) as r:
        return r.read().decode("utf-8", "replace")


def import_recipe(url, folder):
    for block in SCRIPT.findall(download(url)):
        try:
            recipe = find(json.loads(block))
        except ValueError:
            continue
        if recipe:
            serves = re.search(r"\d+", str(recipe.get("recipeYield", "4")))
            steps = recipe.get("recipeInstructions", "")
            if isinstance(steps, list):
                steps = "\n".join(s.get("text", "") if isinstance(s, dict) else s for s in steps)
            slug = re.sub(r"[^a-z0-9]+", "-", recipe["name"].lower()).strip("-")
            text = "\n".join([recipe["name"], f"for {serves.group() if serves else 4}", *recipe["recipeIngredient"]])
            (Path(folder) / f"{slug}.txt").write_text(text + "\n---\n" + steps + "\n")
            return slug
    return None
