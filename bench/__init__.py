"""Benchmarks: `python -m bench NAME --json`. They measure and judge nothing; machines are noisy (rulings R14)."""
