"""A byte n-gram model with interpolated Witten-Bell smoothing, the baseline of evaluate.py.

Counts are exact and kept as sorted arrays: a context of up to 7 bytes and the byte after it fit
in one 64-bit key.
"""
import numpy


def _keys(data, order):
    """Keys of `order` + 1 consecutive bytes, the last one lowest; [len(data) - order]."""
    keys = numpy.zeros(len(data) - order, dtype=numpy.uint64)
    for offset in range(order + 1):
        keys = keys << numpy.uint64(8) | data[offset:len(data) - order + offset].astype(numpy.uint64)
    return keys


def _look_up(keys, values, wanted):
    """values[i] where keys[i] is wanted, 0 where it is not there."""
    at = numpy.minimum(numpy.searchsorted(keys, wanted), len(keys) - 1)
    return numpy.where(keys[at] == wanted, values[at], 0)


class Ngram:
    """Interpolates all orders from 0 to `order` <= 7."""

    def __init__(self, data, order):
        self.tables = []
        for k in range(order + 1):
            keys, counts = numpy.unique(_keys(data, k), return_counts=True)
            contexts, starts, kinds = numpy.unique(keys >> numpy.uint64(8), return_index=True,
                                                   return_counts=True)
            self.tables.append((keys, counts, contexts, numpy.add.reduceat(counts, starts), kinds))

    def bits(self, data):
        """Bits of every byte of `data`, each after at most `order` bytes of it."""
        chance = numpy.full(len(data), 1 / 256)
        for k, (keys, counts, contexts, totals, kinds) in enumerate(self.tables):
            wanted = _keys(data, k)
            total = _look_up(contexts, totals, wanted >> numpy.uint64(8))
            kind = _look_up(contexts, kinds, wanted >> numpy.uint64(8))
            seen = _look_up(keys, counts, wanted)
            # Witten-Bell: a context's kinds of followers stand for the chance of a new one.
            chance[k:] = (seen + kind * chance[k:]) / numpy.maximum(total + kind, 1) + numpy.where(
                total == 0, chance[k:], 0)
        return -numpy.log2(chance)
