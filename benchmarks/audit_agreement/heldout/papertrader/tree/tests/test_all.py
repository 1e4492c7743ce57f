import unittest

from papertrader import strategies
from papertrader.engine import Backtest


class TestAll(unittest.TestCase):
    def test_strategies_exist(self):
        assert strategies.REGISTRY is not None

    def test_backtest(self):
        assert Backtest

    def test_math(self):
        self.assertTrue(True)
