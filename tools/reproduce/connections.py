"""Generate a stream like LBL-CONN-7: wide-area connections of a laboratory, at a constant rate.

The attributes in the paper's figures resemble the trace: durations have a heavy tail and are sometimes
unknown (`?` in the trace), and a few protocols have most connections.
"""

from dataclasses import dataclass

import numpy as np

from transom.core.exact_sums import Int64s

SEED = 7
PROTOCOLS = ("nntp", "smtp", "www", "finger", "ftp-data", "ftp", "telnet", "domain", "gopher", "login")
UNKNOWN = 0.05
"""Share of connections with an unknown duration."""


@dataclass(frozen=True)
class Connections:
    """The connections of one unit of time.

    Attributes:
        duration: the known durations, in milliseconds.
        protocol: the index in `PROTOCOLS` of each connection.
    """

    duration: Int64s
    protocol: Int64s


def drawn(units: int, rate: int, protocols: int = len(PROTOCOLS)) -> list[Connections]:
    """Generate the connections of some units: the same for the same arguments.

    Args:
        units: the number of units.
        rate: the number of connections per unit.
        protocols: the number of protocols, the first of `PROTOCOLS`.
    """
    found = []
    shares = 1 / np.arange(1, protocols + 1)
    for unit in range(units):
        rng = np.random.default_rng([SEED, unit, rate, protocols])
        # The mean rises and falls within a day, so that windows have a slope.
        median = 1500 * (2 + np.sin(unit / 7))
        duration = np.rint(rng.lognormal(np.log(median), 1.7, rate)).astype(np.int64)
        protocol = rng.choice(protocols, rate, p=shares / shares.sum()).astype(np.int64)
        # Rare protocols are absent at times; otherwise all would always recur.
        protocol[(protocol == protocols - 1) & (unit % 11 > 1)] = 0
        found.append(Connections(duration[rng.random(rate) >= UNKNOWN], protocol))
    return found
