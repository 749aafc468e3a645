"""spark-submit tests/support/toy_job.py: events become keys with many of them."""

from tests.support.toy_feature import ToyStream
from transom.app.main import Job

JOB = Job("crowds", __doc__, ToyStream)

if __name__ == "__main__":
    JOB.main()
