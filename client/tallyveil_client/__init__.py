"""What runs beside the data and beside the reader: the department's agent and the consumer."""
