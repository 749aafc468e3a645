"""The streams of the stream files, each opened once for all requests."""

import threading
from pathlib import Path

from transom.core.locations import lake
from transom.spec.errors import SpecificationError
from transom.spec.stream import Stream
from transom.stream_files import folder, names_of, streams
from transom.views.open_stream import OpenStream
from transom.views.stream_hours import StreamHours

Stamp = tuple[tuple[str, int, int], ...]
"""Path, time of the last change and size of each stream file."""


class UnknownStream(LookupError):
    """No stream file declares a name."""


class OpenStreams:
    """The streams of the stream files; a changed file is read again. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._streams: dict[str, tuple[Path, Stream]] = {}
        self._wrong: dict[str, SpecificationError] = {}
        self._opened: dict[str, tuple[OpenStream, StreamHours]] = {}

    def names(self) -> list[str]:
        """Return the names of all streams, also of invalid files, sorted."""
        with self._lock:
            self._update()
            return sorted({*self._streams, *self._wrong})

    def file(self, name: str) -> Path:
        """Return the file of a stream; raises as `opened`."""
        with self._lock:
            self._stream(name)
            return self._streams[name][0]

    def opened(self, name: str) -> tuple[OpenStream, StreamHours]:
        """Return an open stream and its hours.

        Raises:
            UnknownStream: no file declares the name.
            SpecificationError: the file is invalid.
            NothingToView: no run of the stream is in the lake.
        """
        with self._lock:
            stream = self._stream(name)
            known = self._opened.get(name)
        if known is not None:
            return known
        # Outside of the lock: a lake may be slow, and the other streams need not wait for it.
        opened = OpenStream(lake(), stream)
        hours = StreamHours(opened)
        with self._lock:
            if self._streams.get(name, (None, None))[1] is stream:
                return self._opened.setdefault(name, (opened, hours))
            return opened, hours

    def _stream(self, name: str) -> Stream:
        self._update()
        if name in self._wrong:
            raise self._wrong[name]
        if name not in self._streams:
            raise UnknownStream(name)
        return self._streams[name][1]

    def _update(self) -> None:
        stamp = _stamp()
        if stamp == self._stamp:
            return
        valid, errors = streams()
        before = self._streams
        self._streams = {stream.name: (file, stream) for file, stream in valid.items()}
        self._wrong = {name: error for error in errors for name in names_of(error)}
        for name, (_, stream) in list(self._streams.items()):
            file, old = before.get(name, (None, None))
            if old == stream and file is not None:
                # The same object: what is open stays open.
                self._streams[name] = self._streams[name][0], old
            else:
                self._opened.pop(name, None)
        for name in self._opened.keys() - self._streams.keys():
            del self._opened[name]
        self._stamp = stamp


def _stamp() -> Stamp:
    stamps = []
    for file in sorted(folder().glob("*.yaml")):
        try:
            status = file.stat()
        except OSError:
            continue
        stamps.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(stamps)
