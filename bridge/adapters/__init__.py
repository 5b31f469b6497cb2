"""The state ports, over Redis and in memory; the composition roots open them, nobody else looks in here."""
