"""Models ready to use: name one as `train.model` (`slipway.components.trainer.models.cnn.build_model`), or
copy it.

Each takes the features of the transformed examples and `train.hyperparameters`, and returns a compiled
`keras.Model` of static shapes that XLA compiles, so that it trains on any device and any Keras backend.
"""
