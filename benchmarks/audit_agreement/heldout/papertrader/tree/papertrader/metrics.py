import math
import statistics


def total_return(curve):
    return curve[-1][1] / curve[0][1] - 1


def sharpe(curve):
    returns = [b[1] / a[1] - 1 for a, b in zip(curve, curve[1:])]
    sd = statistics.pstdev(returns)
    return statistics.mean(returns) / sd * math.sqrt(252) if sd else 0.0


def max_drawdown(curve):
    peak, worst = 0, 0
    for _, e in curve:
        peak = max(peak, e)
        worst = max(worst, (peak - e) / peak)
    return worst
