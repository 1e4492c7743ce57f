"""Document tooling: RAG-lite over the architectural report."""
import re
from typing import List

KEYWORDS = ("Dialectical Synthesis", "Fan-In", "Fan-Out", "Metacognition", "State Synchronization")


def chunk_document(text: str, size: int = 1200) -> List[str]:
    """Split the document into overlapping chunks."""
    return [text[i:i + size] for i in range(0, len(text), size // 2)]


def keyword_depth(chunks: List[str]) -> dict:
    """How often each theoretical keyword is explained."""
    return {k: sum(len(re.findall(k, c, re.I)) for c in chunks) for k in KEYWORDS}


def cross_reference(claimed: List[str], existing: List[str]) -> List[str]:
    """Return hallucinated paths."""
    return sorted(set(claimed) - set(existing))
