from abc import ABC, abstractmethod

REGISTRY = {}


def strategy(name):
    def register(cls):
        REGISTRY[name] = cls
        return cls
    return register


class Strategy(ABC):
    @abstractmethod
    def signal(self, closes: list[float]) -> int:
        """1 buy, -1 sell, 0 nothing."""


@strategy("sma")
class MovingAverages(Strategy):
    def __init__(self, fast: int = 10, slow: int = 30):
        self.fast, self.slow = fast, slow

    def signal(self, closes):
        if len(closes) < self.slow:
            return 0
        a = sum(closes[-self.fast:]) / self.fast
        b = sum(closes[-self.slow:]) / self.slow
        return 1 if a > b else -1


@strategy("rsi")
class Rsi(Strategy):
    period = 14

    def signal(self, closes):
        if len(closes) <= self.period:
            return 0
        moves = [b - a for a, b in zip(closes[-self.period - 1:], closes[-self.period:])]
        ups = sum(m for m in moves if m > 0)
        downs = -sum(m for m in moves if m < 0)
        rsi = 100 - 100 / (1 + ups / downs) if downs else 100
        return 1 if rsi < 30 else -1 if rsi > 70 else 0


@strategy("hold")
class Hold(Strategy):
    def signal(self, closes):
        return 1
