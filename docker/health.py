"""Exit with 0 if a service is healthy: health.py URL [COMPONENT].

A service is healthy if the URL answers without an error. COMPONENT is a component in the answer of Airflow's
health URL; it must be healthy too.
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
