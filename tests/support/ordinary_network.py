"""Program: run a tool with a network, and print who we are and what the tool could reach. For an ordinary user."""

from __future__ import annotations

import os
import tempfile

import anyio

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, SandboxSpec
from tests.support.proxied import NAME, answering, host, outside

TOOL = """
use IO::Socket::INET;
for my $name ("api.example.org", "other.example") {
    my $proxy = IO::Socket::INET->new("127.0.0.1:3128") or die $!;
    print $proxy "GET http://$name/ HTTP/1.0\\r\\n\\r\\n";
    my @lines = <$proxy>;
    s/\\s+$// for @lines;
    my ($end) = grep { $lines[$_] eq "" } 0..$#lines;
    print "$lines[$end + 1]\\n";
}
"""


async def main() -> None:
    """One run, two requests."""
    async with host(answering()) as made:
        one = SandboxSpec(
            argv=("perl", "-e", TOOL), artifacts=tempfile.mkdtemp(), net="allow", allow_domains=(NAME,),
            limits=Limits(seconds=20),
        )  # fmt: skip
        outcome = await run(one, upstream=outside([made.endpoint]))
    print(outcome.stdout.decode() + outcome.stderr.decode(), end="")  # noqa: T201
    print(*(contact.verdict for contact in outcome.contacts))  # noqa: T201


if __name__ == "__main__":
    print(os.getuid())  # noqa: T201
    anyio.run(main)
