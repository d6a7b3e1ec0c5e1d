"""What brings events from outside: files, Redis streams, the inbox; all by offsets, each once."""
