"""The input of training: from files of tf.Examples to batches of static shape."""
