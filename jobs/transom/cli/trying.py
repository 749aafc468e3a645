"""..."""


def try_() -> None: ...
