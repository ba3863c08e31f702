"""Output for people: plots, animations, the viewer in a browser, the command line."""
