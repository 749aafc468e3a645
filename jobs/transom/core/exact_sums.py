"""Sums of int64 that are exact: what they may come to, so that their order does not matter."""

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_EXACT_SUM = 2**62
"""Where the magnitudes that are added stay below this together, their sum is exact."""
