"""The properties of each metric, and its formula per row. New metrics are added here."""
