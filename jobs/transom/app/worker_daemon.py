"""The parent of Spark's Python workers, as `spark.python.daemon.module`.

It imports what tasks need once, and then forks workers. On a server, it forks one for each task: a task
starts at once, and a detector of a stream file is imported again for each task. A session has a parent of its
own, which starts with its first task.
"""

import ctypes
import gc
from importlib import import_module
from pkgutil import walk_packages

import pyspark.daemon

import transom.app.pipeline
from transom import features
from transom.storage.connect import code_hash
from transom.storage.session import use_utc

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
FREE_BYTES, MMAP_BYTES = 128 * 2**20, 32 * 2**20
"""The most freed memory that a worker keeps, and the size from which an array is never kept."""


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next arrays; other C libraries are left as they are.

    Otherwise the system maps each temporary array of some MiB again, page by page.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)
        mallopt(M_TRIM_THRESHOLD, FREE_BYTES)


assert transom.app.pipeline
use_utc()
keep_freed_memory()
# Features import their modules when they are first used, which is too late if the files change.
for module in walk_packages(features.__path__, f"{features.__name__}."):
    import_module(module.name)
# Workers inherit the hash of the code that they run, not of what the files have later.
code_hash()
# Spark's workers collect all cycles after each task, which takes a tenth of a second with what is imported.
gc.freeze()

if __name__ == "__main__":
    pyspark.daemon.manager()
