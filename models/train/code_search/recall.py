"""Whether the right piece is among the best ten."""
import numpy


def ranks(scores, wanted):
    """The place of each row's wanted column, from 0; equal scores count against it."""
    own = scores[numpy.arange(len(scores)), wanted][:, None]
    return (scores >= own).sum(1) - 1


def recall(scores, wanted, best=10):
    return ranks(scores, wanted) < best


def reciprocal(scores, wanted, best=10):
    places = ranks(scores, wanted)
    return numpy.where(places < best, 1.0 / (places + 1), 0.0)
