"""Slack as a chat of the bridge, through Socket Mode. Started with `flower-chat slack`."""
