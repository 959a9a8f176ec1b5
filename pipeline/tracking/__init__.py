"""Runs told to the trackers that a team looks at, by a process beside the run or after it."""
