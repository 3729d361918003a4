"""How departments, operators and consumers come by the certificates that say who they are."""
