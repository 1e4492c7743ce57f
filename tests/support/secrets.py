"""Secrets for tests: keys of each shape, names with a value, a known secret and its forms.

Keys are made here from pieces, so that no file of the project holds the shape of a key.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

ALNUM = "Ab3dEf6hIjKlMn0pQrStUvWxYz12345678" * 8
HEX = "0123456789abcdef" * 8
KNOWN = 'correct/horse+"battery"\nstäple'


def jwt() -> str:
    """Three parts, as a login server makes them."""
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": "1234567890"}), "signature-bytes"]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def pem(kind: str) -> str:
    """A block with the header of a private key."""
    return f"-----BEGIN {kind}-----\n{ALNUM}\n{ALNUM}\n-----END {kind}-----"


BLANK_PEM = "PRIVATE" + " KEY"
KEYS = {
    "aws": "AK" + "IA" + "Q7" * 8,
    "aws-session": "AS" + "IA" + "Q7" * 8,
    "github": "gh" + "p_" + ALNUM[:36],
    "github-app": "gh" + "s_" + ALNUM[:40],
    "github-fine": "github" + "_pat_" + ALNUM[:22] + "_" + ALNUM[:59],
    "gitlab": "gl" + "pat-" + ALNUM[:20],
    "openai": "s" + "k-" + ALNUM[:48],
    "openai-project": "s" + "k-proj-" + ALNUM[:40] + "_" + ALNUM[:30],
    "anthropic": "s" + "k-ant-api03-" + ALNUM[:80] + "-" + ALNUM[:6],
    "stripe": "s" + "k_live_" + ALNUM[:24],
    "stripe-webhook": "wh" + "sec_" + ALNUM[:32],
    "slack": "xo" + "xb-" + "1234567890-" + ALNUM[:24],
    "slack-app": "xa" + "pp-1-" + "A0123-" + ALNUM[:32],
    "google": "AI" + "za" + ALNUM[:35],
    "google-oauth": "ya" + "29." + ALNUM[:60],
    "huggingface": "h" + "f_" + ALNUM[:34],
    "npm": "np" + "m_" + ALNUM[:36],
    "groq": "gs" + "k_" + ALNUM[:52],
    "pypi": "py" + "pi-Ag" + ALNUM[:100],
    "digitalocean": "do" + "p_v1_" + HEX[:64],
    "sendgrid": "S" + "G." + ALNUM[:22] + "." + ALNUM[:43],
    "telegram": "123456789" + ":A" + "A" + ALNUM[:33],
    "age": "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"[:29] * 2,
    "jwt": jwt(),
    "pem": pem(BLANK_PEM),
    "pem-openssh": pem("OPENSSH " + BLANK_PEM),
    "pem-rsa": pem("RSA " + BLANK_PEM),
    "pgp": pem("PGP " + BLANK_PEM + " BLOCK"),
    "pem-cut-off": pem(BLANK_PEM)[:100],
}

NAMED = [
    ("password=", "hunter2hunter2"),
    ("Password: ", "hunter2hunter2"),
    ('"password": "', "correct horse battery"),
    ("'db_password' : '", "correct horse battery"),
    ('{\\"password\\": \\"', "hunter2hunter2"),
    ("clientSecret=", "0a1b2c3d4e"),
    ("AWS_SECRET_ACCESS_" + "KEY=", "wJalrXUtnFEMI/K7MDENG"),
    ("aws_secret_access_" + "key = ", "wJalrXUtnFEMI/K7MDENG"),
    ("SECRET_KEY_BASE=", "0a1b2c3d4e"),
    ("x-api-" + "key: ", "0a1b2c3d4e"),
    ("refresh_token=", "0a1b2c3d4e"),
    ("MY_TOKEN=", "0a1b2c3d4e"),
    ("export DEPLOY_KEY='", "0a1b2c3d4e"),
    ("mysql --password ", "hunter2hunter2"),
    ("tool --api-token ", "0a1b2c3d4e"),
    ("Authorization: Bearer ", "abc.def-ghi"),
    ('"Authorization": "token ', "abcdefghij"),
    ("curl -H 'authorization: Basic ", base64.b64encode(b"user:pass").decode()),
    ("Bearer ", "abcDEF123456789"),
    ("sent Basic ", base64.b64encode(b"someuser:somepassword").decode()),
    ("postgres://user:", "hunter2"),
    ("redis://:", "hunter2"),
    ("https://x-access-token:", "a" * 1000),
    ("amqp://user:p@", "hunter2"),
    ("https://hooks.slack.com/services/", f"T0123/B0123/{ALNUM[:24]}"),
]

FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64-url": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "hex": lambda secret: secret.encode().hex(),
    "HEX": lambda secret: secret.encode().hex().upper(),
    "url": lambda secret: quote(secret, safe=""),
    "url-with-slashes": quote,
    "url-form": quote_plus,
    "url-lower": lambda secret: re.sub("%..", lambda match: match[0].lower(), quote(secret, safe="")),
    "json": lambda secret: json.dumps(secret)[1:-1],
    "json-unicode": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
}
