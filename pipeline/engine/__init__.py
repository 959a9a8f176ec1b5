"""Runs a plan: schedules its nodes, watches them, keeps the record, ends in order."""
