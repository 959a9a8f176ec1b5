"""The pipeline: its configuration, its wiring, and the ways to run it."""

from slipway import refuse_other_name

refuse_other_name(__name__)
