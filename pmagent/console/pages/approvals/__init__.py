"""What the page of a proposal says about it, and what an operator's decision there has to bring: pure, but for what is
read from the log."""
