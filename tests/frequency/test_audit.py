"""The verdicts of an audit on its counts."""

import pytest

from transom.features.frequency.audit import result_of

COUNTS = {"items": 4, "records": 40, "error": 6, "most": 5, "beyond": 1, "below": 0, "outside": 0}


@pytest.mark.parametrize("variant", ["perfect", "vanilla", "simple", "proportional", "splitter"])
def test_deterministic_guarantee_is_required(variant: str) -> None:
    def sound(**changes: int) -> bool:
        return result_of("pages", variant, 2, {**COUNTS, **changes}).sound

    assert sound()
    assert not sound(outside=1)
    # The other variants may forget too early.
    assert sound(below=1) == (variant not in ("perfect", "vanilla"))


def test_rates_and_texts_follow_from_the_counts() -> None:
    result = result_of("pages", "perfect", 2, COUNTS)
    assert result.rates == {"mean_error": 1.5, "beyond_epsilon": 0.25}
    assert str(result) == (
        "pages, perfect, 2 windows: 4 items of 40 records, wrong by 1.50 on average and 5 at most;"
        " 1 too large by epsilon or more (25.00%), 0 too small, 0 outside the published bounds"
    )
