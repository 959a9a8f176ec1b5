"""The fares workload: what will a taxi trip cost, and will the rider tip more than a fifth of it?"""
