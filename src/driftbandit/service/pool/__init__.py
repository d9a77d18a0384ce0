"""The open loops of a service, and the threads that call them in batches."""
