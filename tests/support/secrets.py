"""Secrets for tests: keys of each shape, names with a value, a known secret and its forms.

Keys are made here from pieces, so that no file of the project holds the shape of a key.
"""

from __future__ import annotations

import base64
import html
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


def pem(kind: str, lines: int = 2) -> str:
    """A block with the header of a private key."""
    body = f"{ALNUM}\n" * lines
    return f"-----BEGIN {kind}-----\n{body}-----END {kind}-----"


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
    "vault": "hv" + "s." + ALNUM[:90],
    "vault-batch": "hv" + "b." + "AAAA" + ALNUM[:120],
    "terraform": ALNUM[:14] + ".atlas" + "v1." + ALNUM[:67],
    "databricks": "da" + "pi" + HEX[:32],
    "databricks-numbered": "da" + "pi" + HEX[:32] + "-2",
    "shopify": "shp" + "at_" + HEX[:32],
    "shopify-shared": "shp" + "ss_" + HEX[:32].upper(),
    "shopify-custom": "shp" + "ca_" + HEX[:32],
    "shopify-partner": "shp" + "pa_" + HEX[:32],
    "linear": "lin_" + "api_" + ALNUM[:40],
    "notion": "sec" + "ret_" + ALNUM[:43],
    "notion-new": "nt" + "n_" + "1234567890" + ALNUM[:36],
    "figma": "fi" + "gd_" + ALNUM[:34] + "-_" + ALNUM[:4],
    "doppler": "d" + "p.pt." + ALNUM[:43],
    "doppler-service": "d" + "p.st.prd_main." + ALNUM[:43],
    "mailgun": "ke" + "y-" + HEX[:32],
    "twilio": "S" + "K" + HEX[:32],
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
    ("https://x.blob.core.windows.net/c/b?sp=r&si" + "g=", ALNUM[:40] + "%2Bw%3D"),
    ('"registry.example.org": {"auth": "', base64.b64encode(b"someuser:somepassword").decode()),
    ('{\\"auth\\":\\"', base64.b64encode(b"user:pass").decode()),
    ("Set-Cookie: session=", "0a1b2c3d4e"),
    ("set-cookie: __Host-id=", "abcdefghij"),
    ("Set-Cookie: a.b=", "s%3Aabcdef.ghijkl"),
    ("Cookie: ", "theme=dark; session=0a1b2c3d4e"),
    ("curl -u someuser:", "hunter2hunter2"),
    ("curl -sSfu someuser:", "hunter2hunter2"),
    ("curl -X POST --user 'someuser:", "hunter2hunter2"),
    ("curl --retry 3 -L -u someuser:", "p4ss"),
    ("sshpass -p ", "hunter2hunter2"),
    ("sshpass -p'", "hunter2hunter2"),
    ("mysql -u root -p", "hunter2hunter2"),
    ("mysqldump -h db -p'", "hunter2hunter2"),
    ("mariadb -uroot -p", "hunter2hunter2"),
    ("machine api.example.org login someone password ", "hunter2hunter2"),
    ("machine api.example.org\n  login someone\n  password ", "hunter2hunter2"),
    ("default login someone password ", "hunter2"),
    ("the bot's MTk4NjIyNDgzNDcxOTI1MjQ4.", f"Cl2FMQ.{ALNUM[:27]}"),
]

JWKS = [
    '{"kty":"EC","crv":"P-256","x":"f83OJ3D2","y":"x_FEzRu9","d":"' + ALNUM[:43] + '"}',
    '{"crv": "P-256", "d": "' + ALNUM[:43] + '", "kty": "EC"}',
    '{"p":"' + ALNUM[:86] + '","kty":"RSA","q":"' + ALNUM[:86] + '","d":"' + ALNUM[:171] + '","e":"AQAB","n":"x"}',
    '{"kty":"oct","k":"' + ALNUM[:43] + '","alg":"HS256"}',
    '{\\"kty\\":\\"OKP\\",\\"crv\\":\\"Ed25519\\",\\"d\\":\\"' + ALNUM[:43] + '\\"}',
    '{\n  "kty" : "EC",\n  "d" : "' + ALNUM[:43] + '"\n}',
]
"""Private keys as JSON."""

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


def _within(*around: bytes) -> Callable[[str], bytes]:
    """In base64 between other content, wrapped after 76 characters."""
    return lambda secret: base64.encodebytes(around[0] + as_bytes(secret) + around[1])


def as_bytes(secret: str) -> bytes:
    """The bytes of a secret, which need not be text."""
    return secret.encode("utf-8", "surrogateescape")


def _wide(encoding: str) -> Callable[[str], bytes]:
    return lambda secret: f"so {secret}!".encode(encoding, "surrogatepass")


def _coloured(secret: str) -> bytes:
    return b"\x1b[31m" + as_bytes(secret[:3]) + b"\x1b[0;1m" + as_bytes(secret[3:]) + b"\x1b[0m"


CONTENT_FORMS: dict[str, Callable[[str], bytes]] = {
    "itself": as_bytes,
    **{f"base64, {n} bytes before it": _within(b"padding-" * 9 + b"x" * n, b" and more" * 9) for n in range(3)},
    "base64, no lines": lambda secret: base64.b64encode(as_bytes(secret)),
    "base64, escaped line breaks": lambda secret: _within(b"y" * 50, b"")(secret).replace(b"\n", b"\\n"),
    "base64, indented": lambda secret: _within(b"y" * 50, b"z")(secret).replace(b"\n", b"\r\n    "),
    "base64 of UTF-16": lambda secret: base64.b64encode(f"say {secret}".encode("utf-16-le", "surrogatepass")),
    "hex": lambda secret: as_bytes(secret).hex().encode(),
    "hex with colons": lambda secret: as_bytes(secret).hex(":").upper().encode(),
    "hex with blanks": lambda secret: as_bytes(secret).hex(" ", 2).encode(),
    "hex as in C": lambda secret: b"".join(b"\\x%02x" % byte for byte in as_bytes(secret)),
    "hex as in an array": lambda secret: b", ".join(b"0x%02X" % byte for byte in as_bytes(secret)),
    "all in percent": lambda secret: b"".join(b"%%%02x" % byte for byte in as_bytes(secret)),
    "html": lambda secret: as_bytes(html.escape(secret)),
    "html without quotes": lambda secret: as_bytes(html.escape(secret, quote=False)),
    "json, slashes escaped": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/").encode(),
    **{
        encoding: _wide(encoding)
        for encoding in ("utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32")
    },
    "coloured": _coloured,
    "letter by letter": lambda secret: b"\x1b[1m\x1b[0m".join(as_bytes(letter) for letter in secret),
    "in a link": lambda secret: as_bytes(f"{secret[:4]}\x1b]8;;https://x.org\x07{secret[4:]}"),
    "broken by a terminal": lambda secret: b"\r\n".join(as_bytes(secret[at:][:5]) for at in range(0, len(secret), 5)),
    "with characters of no width": lambda secret: as_bytes("\u200b".join(secret)),
}
"""A known secret as it may stand in content, between other bytes."""
