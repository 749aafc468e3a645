"""spark-submit jobs/aggregates.py: events become granules, and granules aggregates over sliding windows."""

from transom.app.main import Job

JOB = Job("aggregates", __doc__)

if __name__ == "__main__":
    JOB.main()
