"""Log messages of the package on a terminal."""

import logging

import pytest

from transom.core.terminal_log import terminal_log

LOG = logging.getLogger("transom.some.part")


def test_messages_are_shown_without_prefix_and_errors_separately(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal_log():
        LOG.debug("too much")
        LOG.info("100% done")
        LOG.warning("look at this")
        LOG.error("failed")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("100% done\nlook at this\n", "failed\n")


def test_inner_handler_applies_within_its_context(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal_log("transom: ", to_stderr=True):
        LOG.info("one")
        with terminal_log("transom: ", to_stderr=True, rewrite=str.upper):
            LOG.info("two")
        LOG.info("three")
    LOG.info("four")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "transom: one\ntransom: TWO\ntransom: three\n")


def test_messages_without_a_handler_go_to_other_listeners(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with terminal_log():
        pass
    with caplog.at_level("INFO", "transom"):
        LOG.info("one")
    assert caplog.messages == ["one"]
    assert capsys.readouterr().out == ""
