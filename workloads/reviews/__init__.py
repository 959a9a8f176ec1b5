"""The reviews workload: is what a critic says of a film good or bad?"""
