"""Detect error logs of web servers: messages with the client and the request."""

from collections.abc import Sequence

from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss
from transom.cli.init.job_readers import groups_of

_PARTS = r'(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)'
_REQUEST = rf'(?:, request: "(?P<request>{_PARTS}|[^"]*)")?'
NGINX = (
    r"(?P<time>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}) \[(?P<level>[a-z]+)\] (?P<pid>[0-9]+)#(?P<tid>[0-9]+): "
    r"(?:\*(?P<connection>[0-9]+) )?(?P<message>.*?)"
    r"(?:, client: (?P<client>[^,]+))?(?:, server: (?P<server>[^,]*))?"
    + _REQUEST
    + "".join(
        rf'(?:, {name}: "(?P<{name}>[^"]*)")?' for name in ("subrequest", "upstream", "host", "referrer")
    )
)
"""nginx and its derivatives: optional pairs after the message, in this order."""
APACHE = (
    r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [^\]]+)\] \[(?:(?P<module>[^:\]]*):)?(?P<level>[a-z0-9]+)\]"
    r"(?: \[pid (?P<pid>[0-9]+)(?::tid (?P<tid>[0-9]+))?\])?"
    r"(?:(?: (?P<cause>\([0-9-]+\)[^\[]*):)?"
    r" \[(?:client|remote) (?P<client>[^\]]*?)(?::(?P<port>[0-9]+))?\])?"
    r" (?:(?P<code>[A-Z]{2}[0-9]{5}): )?(?P<message>.*?)(?:, referer: (?P<referer>.*))?"
)
"""Apache httpd, 2.4 and earlier."""
NOTE = "a web server's error log; what its lines do not all have is left out where it is not there"


def error_log(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect the error log of nginx or of Apache httpd; the format is a pattern."""
    max_matched = 0
    for pattern in (NGINX, APACHE):
        fields, matched = groups_of(lines, pattern)
        if matched >= MIN_SHARE * len(lines):
            nonempty = {name: texts for name, texts in fields.items() if texts}
            return DetectedFormat("regex", nonempty, {}, {"pattern": pattern}, notes=(NOTE,))
        max_matched = max(max_matched, matched)
    return NearMiss(max_matched)
