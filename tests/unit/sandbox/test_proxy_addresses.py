"""Which addresses are somebody's inside."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.sandbox.egress.addresses import REFUSED, refusal
from tests.support.cases import each


@each("address, kind", [
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("10.0.0.1", "private"),
    ("100.64.0.1", "carrier-grade NAT"),
    ("100.100.100.200", "carrier-grade NAT"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("169.254.169.254", "metadata"),
    ("169.254.0.1", "link-local"),
    ("168.63.129.16", "metadata"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "reserved"),
    ("192.0.2.1", "for documentation"),
    ("192.88.99.1", "reserved"),
    ("192.168.1.1", "private"),
    ("198.18.0.1", "reserved"),
    ("198.19.255.255", "reserved"),
    ("198.51.100.1", "for documentation"),
    ("203.0.113.1", "for documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::8.8.8.8", "another address in disguise"),
    ("::ffff:127.0.0.1", "another address in disguise"),
    ("::ffff:8.8.8.8", "another address in disguise"),
    ("64:ff9b::7f00:1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("64:ff9b:1::1", "another address in disguise"),
    ("100::1", "reserved"),
    ("2001::1", "reserved"),
    ("2001:20::1", "reserved"),
    ("2001:db8::1", "for documentation"),
    ("2002:7f00:1::", "another address in disguise"),
    ("2002:808:808::", "another address in disguise"),
    ("3fff::1", "for documentation"),
    ("4000::1", "reserved"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "metadata"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "bound to a zone"),
    ("2606:4700::1%1", "bound to a zone"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("", "no address"),
    ("example.org", "no address"),
    ("127.1", "no address"),
    ("2130706433", "no address"),
    ("127.0.0.1 ", "no address"),
])
def test_what_is_no_public_host_is_refused_by_what_it_is(address: str, kind: str) -> None:
    assert refusal(address) == kind


@each(
    "address",
    ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
     "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "192.0.1.0",
     "198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1", "2606:4700:4700::1111", "2a00::1",
     "3ffe:ffff::1", "3fff:1000::1", "64:ff9b::808:808"],
)  # fmt: skip
def test_public_hosts_up_to_the_very_borders_are_reached(address: str) -> None:
    assert refusal(address) == ""


@given(st.sampled_from([network for network, _ in REFUSED]).flatmap(
    lambda network: st.integers(int(network.network_address), int(network.broadcast_address)).map(
        ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    )
))  # fmt: skip
def test_every_address_of_a_refused_network_is_refused(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert refusal(str(address))


@given(st.ip_addresses(v=4))
def test_no_disguise_makes_a_refused_address_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    assert refusal(str(ipaddress.IPv6Address(0xFFFF_0000_0000 | number)))
    assert refusal(str(ipaddress.IPv6Address(0x2002 << 112 | number << 80)))
    assert refusal(str(ipaddress.IPv6Address(0x64_FF9B << 96 | number))) == refusal(str(address))


@given(st.ip_addresses())
def test_whatever_is_reached_is_global_to_python_too(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if refusal(str(address)) == "" and address not in ipaddress.ip_network(
        "64:ff9b::/96" if address.version == 6 else "192.0.0.0/24"
    ):
        assert address.is_global
        assert not any((address.is_multicast, address.is_reserved, address.is_loopback, address.is_link_local))
