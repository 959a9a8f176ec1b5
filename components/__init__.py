"""The parts of a pipeline that this project owns: one folder each, a thin TFX wrapper beside plain code."""
