"""Runs a plan: schedules its nodes, watches them, keeps the record, and shuts down in order."""
