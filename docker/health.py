"""Exit with 0 if a service is healthy: health.py URL [COMPONENT].

Any answer without an error is enough. With a component, the answer must be Airflow's health, in which the
component is healthy.
"""

import json
import sys
from urllib.request import urlopen

url, *components = sys.argv[1:]
with urlopen(url, timeout=10) as response:
    body = response.read()
for component in components:
    answer = json.loads(body)
    if answer[component]["status"] != "healthy":
        sys.exit(f"{component}: {answer[component]}")
