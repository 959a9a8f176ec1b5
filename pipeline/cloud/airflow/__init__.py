"""The same pipeline as an Airflow DAG."""
