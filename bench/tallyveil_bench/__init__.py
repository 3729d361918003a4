"""Performance figures of Tallyveil, measured on the machine at hand."""
