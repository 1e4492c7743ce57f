import argparse
import csv

from . import metrics
from .engine import Backtest
from .prices import read_prices
from .strategies import REGISTRY

p = argparse.ArgumentParser()
p.add_argument("prices")
p.add_argument("--strategy", choices=[*REGISTRY, "all"], default="sma")
a = p.parse_args()

bars = read_prices(a.prices)
names = list(REGISTRY) if a.strategy == "all" else [a.strategy]
for name in names:
    curve = Backtest(bars, name).run()
    row = {"strategy": name, "return": metrics.total_return(curve), "sharpe": metrics.sharpe(curve),
           "drawdown": metrics.max_drawdown(curve)}
    with open("results.csv", "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=row)
        w.writeheader()
        w.writerow(row)
    print(name, "done")
