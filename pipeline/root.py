"""The project's own folder: the one that holds workloads/, schemas/ and output/; in a checkout, its root."""

from slipway.components.project import PROJECT_ROOT as PROJECT_ROOT
