"""spark-submit jobs/ingest.py: files become events, duplicates, rejections and file records.

Lines that cannot be read are kept in `rejected` with their reason, records that repeat another one of their
hour in `duplicates`; nothing is aggregated here.
"""

from transom.app.main import Job

JOB = Job("ingest", __doc__)

if __name__ == "__main__":
    JOB.main()
