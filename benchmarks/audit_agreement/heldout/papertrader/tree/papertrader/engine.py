from .risk import RiskLimits
from .strategies import REGISTRY


class Broker:
    def __init__(self, cash=10_000.0, fee=0.001):
        self.cash = cash
        self.shares = 0
        self.fee = fee
        self.trades = []

    def buy(self, price, day):
        n = int(self.cash / (price * (1 + self.fee)))
        if n > 0:
            self.cash -= n * price * (1 + self.fee)
            self.shares += n
            self.trades.append((day, "buy", n, price))

    def sell(self, price, day):
        if self.shares:
            self.cash += self.shares * price * (1 - self.fee)
            self.trades.append((day, "sell", self.shares, price))
            self.shares = 0

    def equity(self, price):
        return self.cash + self.shares * price


class Backtest:
    def __init__(self, bars, strategy_name):
        self.bars = bars
        self.strategy = REGISTRY[strategy_name]()
        self.broker = Broker()
        self.limits = RiskLimits()
        self.curve = []

    def run(self):
        closes, peak = [], 0
        for bar in self.bars:
            closes.append(bar.close)
            sig = self.strategy.signal(closes)
            violations = self.limits.check(self.broker.equity(bar.close), peak, self.broker.shares * bar.close)
            if sig > 0:
                self.broker.buy(bar.close, bar.day)
            elif sig < 0:
                self.broker.sell(bar.close, bar.day)
            equity = self.broker.equity(bar.close)
            peak = max(peak, equity)
            self.curve.append((bar.day, equity))
        return self.curve
