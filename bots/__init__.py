"""Adapters of chat platforms to `bridge.ports.Chat`, one package a platform."""
