"""Which addresses of the outside a tool may reach through the proxy, and which are somebody's inside; pure.

| address | why it is refused |
|---|---|
| 0.0.0.0/8, ::, 192.88.99.0/24, 240.0.0.0/4 | unspecified, or reserved (RFC 6890) |
| 10/8, 172.16/12, 192.168/16, fc00::/7, fec0::/10 | private (RFC 1918, 4193, 3879) |
| 100.64/10 | carrier-grade NAT (RFC 6598) |
| 127/8, ::1 | loopback |
| 169.254/16, fe80::/10 | link-local (RFC 3927, 4291) |
| 169.254.169.254, fd00:ec2::254, 168.63.129.16 | what a cloud tells its machines; the last looks public |
| 192.0.0/24, 198.18/15, 2001::/23 | protocol assignments and benchmarks; Teredo (RFC 4380) among them |
| 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20 | documentation |
| 224/4, ff00::/8 | multicast |
| ::ffff:0:0/96, ::/96, 2002::/16, 64:ff9b:1::/48 | another address in disguise: IPv4-mapped, 6to4, local NAT64 |
| 64:ff9b::/96 (NAT64, RFC 6052) | if the IPv4 address in it is refused: a network of IPv6 alone has all of IPv4 there |
| of IPv6 all but 2000::/3 | nothing else is assigned to anybody |

The table is written out because ``ipaddress.is_global`` says different things in different releases of Python.
"""

from __future__ import annotations

import ipaddress
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_KINDS: Final = {
    # The more exact ones first: the first match is reported.
    "metadata": ("169.254.169.254/32", "fd00:ec2::254/128", "168.63.129.16/32"),
    "unspecified": ("0.0.0.0/8", "::/128"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "carrier-grade NAT": ("100.64.0.0/10",),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "for documentation": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    "another address in disguise": ("::ffff:0:0/96", "::/96", "2002::/16", "64:ff9b:1::/48"),
    "reserved": ("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "2001::/23"),
}
REFUSED: Final[tuple[tuple[Network, str], ...]] = tuple(
    (ipaddress.ip_network(network), kind) for kind, networks in _KINDS.items() for network in networks
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ASSIGNED: Final = ipaddress.IPv6Network("2000::/3")


def refusal(address: str) -> str:
    """The kind of ``address`` (as text), when nothing may be connected to it; "" when it is a public host's."""
    try:
        parsed: Address = ipaddress.ip_address(address)
    except ValueError:
        return "no address"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return "bound to a zone"
        if parsed in _NAT64:
            parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)
    for network, kind in REFUSED:
        if parsed in network:
            return kind
    return "reserved" if isinstance(parsed, ipaddress.IPv6Address) and parsed not in _ASSIGNED else ""
