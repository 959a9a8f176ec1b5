"""The digits workload: which digit did someone write?"""
