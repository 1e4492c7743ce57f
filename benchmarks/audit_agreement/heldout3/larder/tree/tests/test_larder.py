# python3 -m unittest discover tests
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from recipe import parse, parse_line
from shopping import to_buy
from units import pretty

SOUP = "Soup\nfor 2\n300 g lentils\n1/2 l stock\n2 carrots\n---\nCook."


class TestParse(unittest.TestCase):
    def test_line(self):
        i = parse_line("1,5 kg potatoes")
        self.assertEqual((i.amount, i.unit, i.name), (1.5, "kg", "potatoes"))

    def test_no_unit(self):
        self.assertEqual(parse_line("2 carrots").unit, "")

    def test_recipe(self):
        r = parse(SOUP)
        self.assertEqual((r.title, r.serves, len(r.ingredients), r.text), ("Soup", 2, 3, "Cook."))


class TestShop(unittest.TestCase):
    def test_scaled_and_stock(self):
        buy = to_buy([parse(SOUP).scaled(4)], {("lentils", "mass"): 100})
        self.assertEqual(buy[("lentils", "mass")], 500)
        self.assertEqual(buy[("stock", "volume")], 1000)

    def test_pretty(self):
        self.assertEqual(pretty(1500, "mass"), "1.5 kg")


if __name__ == "__main__":
    unittest.main()
