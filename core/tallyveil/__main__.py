"""``python -m tallyveil``: the command line, where its script is not on the path."""

from tallyveil.cli import main

main()
