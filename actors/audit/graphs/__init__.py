"""Reads the graphs of LangGraph programs from their source, without running them: a bounded partial evaluation."""
