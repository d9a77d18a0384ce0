"""Operating a service: backups, Prometheus metrics, and the demonstration shop.

May import the pool and below; the demonstration also uses the client, as any program would.
"""
