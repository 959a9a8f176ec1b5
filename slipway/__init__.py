"""The name under which everything of this project is imported: `slipway.pipeline`, `slipway.components`.

A checkout links its folders here; a wheel holds them here. So each module has one name in both, and the names
`pipeline`, `components` and `schemas` are left to users, whose projects have them since TFX's templates.
"""
