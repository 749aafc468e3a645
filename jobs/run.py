"""spark-submit jobs/run.py: several stages in one application, each after the gate of the one that it reads.

The start of an application is most of what a small hour costs. Where a gate does not pass, the later stages
do not run.
"""

from transom.app.main import Job

JOB = Job(None, __doc__)

if __name__ == "__main__":
    JOB.main()
