"""Slipway's pipeline components: one folder each, with a thin TFX wrapper around plain code."""

from slipway import refuse_other_name

refuse_other_name(__name__)
