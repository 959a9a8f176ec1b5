"""The Chicago taxi workload: will the rider tip more than a fifth of the fare?"""
