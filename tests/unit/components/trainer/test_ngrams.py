"""Words and pairs of words as numbers, in a graph as tf.Transform makes it."""

import pytest
import tensorflow as tf

from slipway.components.trainer.ngrams import NGRAM_CODES, hashed_ngrams, hashed_values

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


def _codes(*texts, size=7):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        found = hashed_ngrams(tf.constant([[text] for text in texts], tf.string), size=size)
        assert found.shape[1] == size
        return session.run(found).tolist()


def test_a_text_is_its_words_and_then_its_pairs_of_words():
    both, red, car, other = _codes("red car", "red", "car", "car red")
    assert both[:2] == [red[0], car[0]]
    assert both[2] not in (0, *both[:2])
    assert both[3:] == [0, 0, 0, 0]
    assert other[2] not in (0, both[2])


def test_case_and_signs_do_not_matter_in_any_script():
    assert len({tuple(row) for row in _codes("Rotes Haus!", "  rotes, haus", "ROTES-HAUS")}) == 1
    big, small = _codes("ÄRGER Дом", "ärger дом")
    assert big == small
    assert big[2] > 0


def test_texts_without_words_are_empty_and_long_ones_are_cut():
    empty, signs, damaged, long = _codes("", "?! --", b"\xff\xfe", "a b c d e f g h i", size=4)
    assert empty == signs == [0, 0, 0, 0]
    assert len(damaged) == 4
    assert all(0 < code < NGRAM_CODES for code in long)


def test_words_that_are_dropped_take_no_memory(monkeypatch):
    counts, ngrams = [], tf.strings.ngrams

    def counted(words, widths):
        counts.append(words.row_lengths())
        return ngrams(words, widths)

    monkeypatch.setattr(tf.strings, "ngrams", counted)
    texts = [" one two ", "one two three", "one two three four", "one, two; three - four five", ""]
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        found = session.run([hashed_ngrams(tf.constant(texts), size=3), counts[0]])
    codes, lengths = (each.tolist() for each in found)
    assert lengths == [2, 3, 3, 3, 0]
    assert codes[0][:2] == codes[1][:2]
    assert codes[1] == codes[2] == codes[3], "the first words, however many follow"
    assert codes[0][2] > 0, "a pair, where the words leave room"


def test_values_of_lists_are_hashed_as_a_whole():
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        lists = tf.ragged.constant([["new york", "york", "a"], [], ["york", ""], [""], ["", "york"]])
        texts = hashed_values(lists.to_sparse(), size=2)
        numbers = hashed_values(tf.constant([[7, 8], [8, 9]], tf.int64), size=3, codes=1000)
        assert (texts.shape[1], numbers.shape[1]) == (2, 3)
        texts, numbers = session.run([texts, numbers])
    assert texts[0, 0] not in (0, texts[0, 1])
    york = texts[0, 1]
    assert texts[1:].tolist() == [[0, 0], [york, 0], [0, 0], [0, york]]  # an empty text is as padding
    assert 0 < numbers[0, 1] == numbers[1, 0] < 1000
    assert numbers[:, 2].tolist() == [0, 0]
