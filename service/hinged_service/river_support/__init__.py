"""River's estimators in the service: imports on demand, learners, stored state."""
