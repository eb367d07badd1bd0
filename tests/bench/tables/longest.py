"""The longest input that a program answers: doubling to a bracket, bisection within it."""

import math


def longest(answers, guess, most, within=1.04):
    """(largest size that answered, smallest that did not or None where `most` answers), apart by at most the
    factor `within`; 0 where nothing answers. Sizes are tried around `guess` first."""
    tried = {}

    def works(size):
        if size not in tried:
            tried[size] = answers(size)
        return tried[size]

    def clip(size):
        return max(1, min(most, int(size)))

    near = math.sqrt(within)
    low, high = clip(guess / near), clip(guess * near)
    while not works(low):
        if low == 1:
            return 0, 1
        low, high = clip(low / 2), low
    step = within
    while works(high):
        if high == most:
            return most, None
        low, high = high, clip(high * step)
        step = min(2.0, step * step)
    while high / low > within and high - low > 1:
        middle = clip(math.sqrt(low * high))
        if works(middle):
            low = middle
        else:
            high = middle
    return low, high
