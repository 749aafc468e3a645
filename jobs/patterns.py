"""spark-submit jobs/patterns.py: events become batches, and what patterns match in windows that widen."""

from transom.app.main import Job

JOB = Job("patterns", __doc__)

if __name__ == "__main__":
    JOB.main()
