"""spark-submit jobs/fills.py: frames are filled with what lies between their ends, or did in the past."""

from transom.app.main import Job

JOB = Job("fills", __doc__)

if __name__ == "__main__":
    JOB.main()
