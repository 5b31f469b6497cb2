"""One process, one run: hosts flower's `Workflow` and `Runtime`, tells its news, takes its commands."""
