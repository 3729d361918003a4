"""Public hash functions of a sketch: each a table over the whole domain, from a seed that everybody knows.

Not here: hash functions that each report draws anew (`olh`). The tables are as if drawn uniformly and independently.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

SEED_BYTES = 32


@lru_cache(maxsize=64)
def hash_tables(seed: bytes, rows: int, domain_size: int, width: int) -> NDArray[np.int64]:
    """Bucket of each value in each row, shape (rows, K), in 0..width−1; not to be written to.

    Args:
        seed: Of the whole sketch.
        rows: Hash functions.
        domain_size: K.
        width: Buckets: a power of two up to 65,536, so that 16 bits of a uniform stream choose without bias.
    """
    stream = shake_256(b"tallyveil/hash-tables/1\n" + seed).digest(2 * rows * domain_size)
    tables = np.frombuffer(stream, dtype="<u2").reshape(rows, domain_size).astype(np.int64) & (width - 1)
    tables.flags.writeable = False
    return tables
