"""The bound below which sums of int64 cannot overflow, so that their order does not matter."""

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_EXACT_SUM = 2**62
"""A sum is exact if the magnitudes of its terms add up to less than this."""
