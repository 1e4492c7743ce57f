"""The offline engine: deterministic opinions from evidence and the words of the rubric."""
