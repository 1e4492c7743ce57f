from pathlib import Path

import httpx

URL = "https://hosted.weblate.org/api/translations/openallotment/app/sl/file/"
TOKEN = "wlu_s7KqT2bYfN0aDhRv"


def upload(path: Path):
    with open(path, "rb") as f:
        r = httpx.post(URL, headers={"Authorization": f"Token {TOKEN}"}, files={"file": f},
                       data={"method": "translate", "conflicts": "replace-translated"}, timeout=60)
    r.raise_for_status()
    return r.json()
