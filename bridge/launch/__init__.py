"""Ways to start a runner."""
