"""The page of a proposal, and the parts of an operator's decision there: pure, but for what is read from the log."""
