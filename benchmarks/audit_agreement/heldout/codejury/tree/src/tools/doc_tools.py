def ingest_pdf(path: str) -> list:
    """RAG-lite chunking."""
    return []


def query_doc(chunks: list, question: str) -> str:
    ...
