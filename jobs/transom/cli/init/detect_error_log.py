"""Error logs of web servers: what they say in words, with the client and the request beside it."""

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
"""nginx and what is made of it: pairs behind the message, in this order, of which each may be left out."""
APACHE = (
    r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [^\]]+)\] \[(?:(?P<module>[^:\]]*):)?(?P<level>[a-z0-9]+)\]"
    r"(?: \[pid (?P<pid>[0-9]+)(?::tid (?P<tid>[0-9]+))?\])?"
    r"(?:(?: (?P<cause>\([0-9-]+\)[^\[]*):)?"
    r" \[(?:client|remote) (?P<client>[^\]]*?)(?::(?P<port>[0-9]+))?\])?"
    r" (?:(?P<code>[A-Z]{2}[0-9]{5}): )?(?P<message>.*?)(?:, referer: (?P<referer>.*))?"
)
"""Apache httpd, 2.4 and those before it."""
NOTE = "a web server's error log; what its lines do not all have is left out where it is not there"


def error_log(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """The error log of nginx or of Apache httpd, by a pattern."""
    most = 0
    for pattern in (NGINX, APACHE):
        fields, matched = groups_of(lines, pattern)
        if matched >= MIN_SHARE * len(lines):
            seen = {name: texts for name, texts in fields.items() if texts}
            return DetectedFormat("regex", seen, {}, {"pattern": pattern}, notes=(NOTE,))
        most = max(most, matched)
    return NearMiss(most)
