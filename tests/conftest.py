"""What holds for all tests: output is as wide as it likes unless a test says otherwise.

Not here: fixtures. Readline, which pytest loads, tells child processes the width of a terminal that is none of theirs.
"""

import os

for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
