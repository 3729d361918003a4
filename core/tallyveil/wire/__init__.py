"""The wire: generated protobuf code and the one codec between it and our values."""
