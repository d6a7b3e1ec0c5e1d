"""Live models of a worker: replicas of a log, the writes to it, snapshots, life cycle."""
