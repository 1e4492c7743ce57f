"""Risk management."""


class RiskLimits:
    def __init__(self, max_drawdown=0.2, max_position=0.5):
        self.max_drawdown = max_drawdown
        self.max_position = max_position

    def check(self, equity, peak, position_value):
        """List of violated limits."""
        violations = []
        if peak and (peak - equity) / peak > self.max_drawdown:
            violations.append("drawdown")
        if equity and position_value / equity > self.max_position:
            violations.append("position")
        return violations
