"""Jobs of newcomers, one script each: ``python -m benchmarks.jobs`` runs them and says how long they are and take."""
