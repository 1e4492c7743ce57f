import subprocess
import tempfile
from pathlib import Path

_keep: list[tempfile.TemporaryDirectory] = []


def clone(url: str) -> Path:
    """Clone into a temporary directory, which is removed when the program ends."""
    if url.startswith("-"):
        raise ValueError("no options, please")
    box = tempfile.TemporaryDirectory()
    _keep.append(box)
    dest = Path(box.name, "target")
    subprocess.run(["git", "clone", "--depth=100", url, str(dest)], check=True, capture_output=True, timeout=100)
    return dest


def log(repo: Path) -> str:
    return subprocess.run(["git", "log", "--oneline", "--reverse"], cwd=repo, capture_output=True, text=True, check=True).stdout


def images(pdf: str) -> list[bytes]:
    import pymupdf
    doc = pymupdf.open(pdf)
    return [doc.extract_image(i[0])["image"] for page in doc for i in page.get_images()]
