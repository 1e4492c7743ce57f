from .doc import doc_detective
from .repo import repo_detective
from .vision import vision_detective

__all__ = ["doc_detective", "repo_detective", "vision_detective"]
