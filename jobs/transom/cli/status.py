"""..."""


def status() -> None: ...
