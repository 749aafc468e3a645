"""spark-submit jobs/persistence.py: events become items that appear all the time, in little memory."""

from transom.app.main import Job

JOB = Job("persistence", __doc__)

if __name__ == "__main__":
    JOB.main()
