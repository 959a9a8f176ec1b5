"""Writes a workload's pipeline as an Airflow DAG."""
