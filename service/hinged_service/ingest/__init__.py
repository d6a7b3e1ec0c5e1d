"""Sources of events: files, Redis Streams, Kafka, the inbox; all by offsets, each event once."""
