"""The whole system on one machine with real data, run as the separate processes it consists of."""
