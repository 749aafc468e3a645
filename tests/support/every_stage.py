"""A stream with a block of every feature, and the requests of its hours."""

from tests.support.stream_harness import line

HEAD = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
"""
PATTERNS_AND_FRAMES = """patterns:
  back:
    within: 3 hours
    batch: 20 minutes
    merge_gap: 1 hour
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200, gap: {min: 5 minutes}}]
frames:
  served: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}
"""
LATER = """fills:
  around: {frame: served, lead: 30 minutes, measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 3 hours, alpha: 0.6, epsilon: 0.4}
frequency:
  often: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, variant: splitter}
"""
EVERY_STAGE = f"""{HEAD}aggregates:
  traffic:
    measures: {{n: count, sent: sum(bytes)}}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
    fit: {{unit: 30 minutes, value: sum, missing: zero}}
    recurring: [status]
    alert: {{many: n > 12}}
{PATTERNS_AND_FRAMES}  silent:
    {{source: traffic, kind: threshold, where: n < 1, missing: satisfies, known: 2 hours}}
{LATER}"""


def requests(number: int) -> list[str]:
    """Land the requests of one hour: two clients in every hour, two now and then, the last request at the
    hour's end.
    """
    return [
        line(
            3600 * number + second,
            f"10.0.0.{second * (number + 3) % 11 % 4}",
            100 + second % 7,
            404 if second % 5 == number else 200,
        )
        for second in (*range(0, 3600, 151), 3599)
    ]
