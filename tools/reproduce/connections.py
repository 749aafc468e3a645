"""A stream like LBL-CONN-7, drawn: wide-area connections of a laboratory, as many in each unit of time.

What the figures read of a connection is drawn like the trace's: durations with a heavy tail, unknown now and
then (`?` there), and protocols of which a few make most connections.
"""

from dataclasses import dataclass

import numpy as np

from transom.core.exact_sums import Int64s

SEED = 7
PROTOCOLS = ("nntp", "smtp", "www", "finger", "ftp-data", "ftp", "telnet", "domain", "gopher", "login")
UNKNOWN = 0.05
"""Share of connections whose duration is not known."""


@dataclass(frozen=True)
class Connections:
    """The connections of one unit of time.

    Attributes:
        duration: in milliseconds, of those whose duration is known.
        protocol: of each, its place in `PROTOCOLS`.
    """

    duration: Int64s
    protocol: Int64s


def drawn(units: int, rate: int, protocols: int = len(PROTOCOLS)) -> list[Connections]:
    """The connections of some units: the same for the same arguments.

    Args:
        rate: connections in each unit.
        protocols: how many of `PROTOCOLS` there are.
    """
    found = []
    shares = 1 / np.arange(1, protocols + 1)
    for unit in range(units):
        rng = np.random.default_rng([SEED, unit, rate, protocols])
        # It grows and falls within a day, so that there is a line to find.
        median = 1500 * (2 + np.sin(unit / 7))
        duration = np.rint(rng.lognormal(np.log(median), 1.7, rate)).astype(np.int64)
        protocol = rng.choice(protocols, rate, p=shares / shares.sum()).astype(np.int64)
        # A protocol that is rare is not there all the time: else each would always be recurring.
        protocol[(protocol == protocols - 1) & (unit % 11 > 1)] = 0
        found.append(Connections(duration[rng.random(rate) >= UNKNOWN], protocol))
    return found
