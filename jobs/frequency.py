"""spark-submit jobs/frequency.py: events become how often items are seen, in little memory."""

from transom.app.main import Job

JOB = Job("frequency", __doc__)

if __name__ == "__main__":
    JOB.main()
