"""Data that crosses a border: events, positions, stored forms, faults."""
