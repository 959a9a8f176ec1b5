"""The project's own folder, under the name that the tests which `new` and `init` have written import."""

from slipway.components.project import PROJECT_ROOT as PROJECT_ROOT
