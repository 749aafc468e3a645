"""A service for `test_watch.py`, which ends at no signal but SIGKILL: unhealthy_service.py FOLDER PORT."""

import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

folder, port = Path(sys.argv[1]), int(sys.argv[2])


class Health(BaseHTTPRequestHandler):
    """Healthy while a file exists."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200 if (folder / "healthy").exists() else 503)
        self.end_headers()


for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda received, _: (folder / signal.Signals(received).name).touch())
child = subprocess.Popen(["sleep", "600"])
with HTTPServer(("127.0.0.1", port), Health) as server:
    written = folder / "ids.part"
    written.write_text(f"{os.getpid()} {child.pid}")
    written.rename(folder / "ids")
    server.serve_forever()
