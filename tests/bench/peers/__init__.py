"""What the service is measured against: the least that could answer, and what people write."""
