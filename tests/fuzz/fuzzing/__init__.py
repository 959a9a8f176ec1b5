"""Damaged and hostile input for everything that reads what others write: `python -m fuzzing`, or `make fuzz`.

The rule that each target holds: what comes out is a value, a row in the quarantine, or an error of ours in
words. Any other exception, a crash of the process, rows that are lost, or want of memory is a finding.
"""
