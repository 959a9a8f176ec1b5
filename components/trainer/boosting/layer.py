"""Keras layers: boosted trees that are walked for a whole batch at once, and sums over words."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from slipway.components.trainer.boosting.arrays import WORD_BITS, Forest, nodes_of
from slipway.components.trainer.boosting.texts import ROOM, Words


@keras.saving.register_keras_serializable(package="slipway")
class Trees(keras.layers.Layer):  # type: ignore[misc]
    """Sums the predictions of boosted trees: float32 [rows, columns] -> float32 [rows, outputs].

    The trees are the layer's weights, with room for `max_trees`; gradients do not change them. Computes with
    TensorFlow only.

    Args:
        outputs: scores per row; tree n adds to score n % outputs.
        coded: how many columns are categories; they come first.
        max_trees: room for this many trees, a multiple of outputs.
        words: integers per set of categories, see `arrays.words_of`.
    """

    def __init__(
        self, *, outputs: int, coded: int, max_trees: int, max_leaves: int, words: int, **kwargs: Any
    ) -> None:
        super().__init__(**{**kwargs, "trainable": False})  # the config of a copy contains it as well
        self.outputs, self.coded, self.max_leaves, self.words = outputs, coded, max_leaves, words
        self.max_trees = max_trees

    def build(self, _shape: Any) -> None:
        """Create the weights for the trees."""
        shape = (self.max_trees, nodes_of(self.max_leaves))

        def room(name: str, dtype: str, size: tuple[int, ...] = shape) -> Any:
            return self.add_weight(
                name=name, shape=size, dtype=dtype, initializer="zeros", trainable=False, autocast=False
            )

        self.column, self.right = room("column", "int32"), room("right", "int32")
        self.threshold, self.value = room("threshold", "float32"), room("value", "float32")
        self.left_codes = room("left_codes", "int32", (*shape, self.words)) if self.coded else None
        self.size = room("size", "int32", (2,))  # the number of trees, and the depth of the deepest

    def plant(self, forest: Forest, *, factor: float = 1.0) -> None:
        """Store the trees, with their answers multiplied by the factor; there must be room for them."""
        count = len(forest.value)
        for variable, values in (
            (self.column, forest.column),
            (self.right, forest.right),
            (self.threshold, forest.threshold),
            (self.value, (factor * forest.value).astype(np.float32)),
            (self.left_codes, forest.left_codes),
        ):
            if variable is not None:
                room = np.zeros(variable.shape, values.dtype)
                room[:count] = values
                variable.assign(room)
        self.size.assign(np.array([count, forest.depth], np.int32))

    def call(self, matrix: Any) -> Any:
        """Return the scores of the rows."""
        trees, depth = self.size.value[0], self.size.value[1]
        rows, nodes = tf.shape(matrix)[0], nodes_of(self.max_leaves)
        first = tf.range(trees)[tf.newaxis, :] * nodes  # where each tree's nodes begin
        places = tf.zeros([rows, 1], tf.int32) + first
        column, right, threshold = (
            tf.reshape(each.value, [-1]) for each in (self.column, self.right, self.threshold)
        )

        def step(done: Any, places: Any) -> tuple[Any, Any]:
            columns = tf.gather(column, places)
            values = tf.gather(matrix, columns, axis=1, batch_dims=1)
            is_left = values <= tf.gather(threshold, places)
            if self.left_codes is not None:
                is_left |= self._is_left_code(places, columns, values)
            return done + 1, tf.where(is_left, places + 1, first + tf.gather(right, places))

        _, places = tf.while_loop(
            lambda done, _: done < depth, step, [tf.constant(0), places],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])],
        )  # fmt: skip
        values = tf.gather(tf.reshape(self.value.value, [-1]), places)
        return tf.reduce_sum(tf.reshape(values, [rows, trees // self.outputs, self.outputs]), axis=1)

    def _is_left_code(self, places: Any, columns: Any, values: Any) -> Any:
        is_coded = columns < self.coded
        most = float(self.words * WORD_BITS - 1)
        codes = tf.where(is_coded, tf.cast(tf.clip_by_value(values, 0.0, most), tf.int32), 0)
        sets: Any = self.left_codes
        words = tf.reshape(sets.value, [-1])
        word = tf.gather(words, places * self.words + codes // WORD_BITS)
        # Not bitwise_and, which LiteRT lacks.
        return is_coded & (tf.bitwise.right_shift(word, codes % WORD_BITS) % 2 == 1)

    def compute_output_shape(self, shape: Any) -> tuple[Any, int]:
        """Return [rows, outputs]."""
        return shape[0], self.outputs

    def get_config(self) -> dict[str, object]:
        """Return the layer's configuration, for Keras."""
        names = ("outputs", "coded", "max_trees", "max_leaves", "words")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="slipway")
class TextScores(keras.layers.Layer):  # type: ignore[misc]
    """Sums the scores of a row's words: int32 [rows, codes per row] -> float32 [rows, outputs].

    Args:
        outputs: scores per row.
        codes: the number of codes, 0 included.
    """

    def __init__(self, *, outputs: int, codes: int, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "trainable": False})  # the config of a copy contains it as well
        self.outputs, self.codes = outputs, codes

    def build(self, _shape: Any) -> None:
        """Create the weights for the words."""

        def room(name: str, dtype: str, size: tuple[int, ...]) -> Any:
            return self.add_weight(
                name=name, shape=size, dtype=dtype, initializer="zeros", trainable=False, autocast=False
            )

        self.place, self.weight = room("place", "int32", (self.codes,)), room("weight", "float32", (ROOM,))
        self.kernel = room("kernel", "float32", (ROOM, self.outputs))

    def learn(self, words: Words, kernel: Any) -> None:
        """Store the words to distinguish, and what each adds to the scores, [rows, outputs]."""
        free = ROOM - len(words.weight)
        self.place.assign(words.place)
        self.weight.assign(np.pad(words.weight, (0, free)))
        weighed = (words.weight[:, np.newaxis] * kernel).astype(np.float32)
        self.kernel.assign(np.pad(weighed, ((0, free), (0, 0))))

    def call(self, codes: Any) -> Any:
        """Return the scores of the rows; 0 if no word is known."""
        places = tf.gather(self.place.value, tf.clip_by_value(codes, 0, self.codes - 1))
        lengths = tf.sqrt(tf.reduce_sum(tf.gather(self.weight.value, places) ** 2, axis=1, keepdims=True))
        sums = tf.reduce_sum(tf.gather(self.kernel.value, places), axis=1)
        return tf.math.divide_no_nan(sums, lengths)

    def compute_output_shape(self, shape: Any) -> tuple[Any, int]:
        """Return [rows, outputs]."""
        return shape[0], self.outputs

    def get_config(self) -> dict[str, object]:
        """Return the layer's configuration, for Keras."""
        return {**super().get_config(), "outputs": self.outputs, "codes": self.codes}
