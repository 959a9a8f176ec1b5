"""Our own pipeline components: one folder each, a thin TFX wrapper beside plain code."""

from slipway import refuse_other_name

refuse_other_name(__name__)
