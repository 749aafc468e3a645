"""Python's collector of reference cycles, in our own processes that end after seconds.

Imports create a hundred thousand objects that live until the end. The collector's default settings examine
all of them several times during the imports, once more at the end, and in each fork. In a fork, this also
copies their memory.
"""

import atexit
import gc

THRESHOLDS = (50_000, 20, 20)
"""How many new objects, and how many collections of younger objects, start a collection."""


def relax() -> None:
    """Collect cycles rarely, and none at the end of the process, where the system frees all memory.

    It is for programs of transom: a library leaves the collector of its caller's process alone.
    """
    gc.set_threshold(*THRESHOLDS)
    atexit.register(gc.freeze)
