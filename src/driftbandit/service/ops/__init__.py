"""Operating a service: backups, Prometheus metrics, and the demonstration shop."""
