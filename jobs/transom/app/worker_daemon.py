"""The parent of a Spark server's Python workers, as `spark.python.daemon.module`.

It imports what tasks need once, and then forks a worker for each task. So a task starts at once, and a
detector of a stream file is imported again for each task. A session has a parent of its own, which starts
with its first task.
"""

import pyspark.daemon

import transom.app.pipeline
from transom.storage.connect import code_hash

assert transom.app.pipeline
# Workers inherit the hash of the code that they run, not of what the files have later.
code_hash()

if __name__ == "__main__":
    pyspark.daemon.manager()
