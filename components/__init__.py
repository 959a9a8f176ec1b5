"""Our own pipeline components: one folder each, a thin TFX wrapper beside plain code."""
