"""Programs to read, run and copy. What each shows stands at its top."""
