"""Small linkages, and how each library is asked for their frequencies."""
