"""The experiments of the paper and of the note, drawn again with this project's own code."""
