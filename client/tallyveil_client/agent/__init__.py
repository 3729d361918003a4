"""The department's agent: source → encode → perturb → outbox → upload, under the department's own policy."""
