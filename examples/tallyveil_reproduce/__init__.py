"""The experiments that the project's sources report, run again on its own mechanisms and drawn again."""
