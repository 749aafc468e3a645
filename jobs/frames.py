"""spark-submit jobs/frames.py: readings become frames, periods that the data delimits."""

from transom.app.main import Job

JOB = Job("frames", __doc__)

if __name__ == "__main__":
    JOB.main()
