"""Sends finished runs to a team's trackers, from a background process or later by a command."""
