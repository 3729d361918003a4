"""The command `tallyveil audit`: a mechanism, or the agent itself, measured as a black box."""
