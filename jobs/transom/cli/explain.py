"""..."""


def explain() -> None: ...
