"""Ready-made models, to be named as `train.model` or copied.

Each model, such as `slipway.components.trainer.models.cnn.build_model`, takes the features of the transformed
examples and `train.hyperparameters`. It returns a compiled `keras.Model` of static shapes that XLA compiles,
so that it trains on any device and any Keras backend.
"""
