"""MarketAgent: day-ahead prices."""


def market_agent(state):
    return {"prices": [60.0] * 24}


def arbitrage(prices, storage_mwh):
    """Optimal storage schedule by dynamic programming."""
    raise NotImplementedError
