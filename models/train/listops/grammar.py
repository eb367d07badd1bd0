"""Expressions of ListOps (Nangia & Bowman 2018) with the parameters of Long Range Arena (Tay et al. 2021).

An expression is a digit or an operator over two to ten expressions: `[MAX 4 [MIN 2 3 ] 1 ]`. Values
are digits: MAX, MIN, MED (the median, rounded down), SM (the sum modulo 10). A draw stops at a digit
with probability 3/4 and always at the deepest level; only expressions of a wanted length are kept,
which makes long ones rare and the labels uneven, as in the published data.
"""

import random

OPERATORS = ("[MAX", "[MIN", "[MED", "[SM")
END = "]"
DIGITS = tuple(str(digit) for digit in range(10))
SYMBOLS = (*DIGITS, *OPERATORS, END)

MOST_ARGUMENTS = 10
DEEPEST = 10
DIGIT_SHARE = 0.75


def draw(rng, longest, depth=1):
    """Symbols of one random expression; None once it is longer than `longest`."""
    if depth >= DEEPEST or rng.random() < DIGIT_SHARE:
        return [rng.choice(DIGITS)]
    symbols = [rng.choice(OPERATORS)]
    for _ in range(rng.randint(2, MOST_ARGUMENTS)):
        argument = draw(rng, longest - len(symbols) - 1, depth + 1)
        if argument is None or len(symbols) + len(argument) + 1 > longest:
            return None
        symbols += argument
    return [*symbols, END]


def apply(operator, values):
    if operator == "[MAX":
        return max(values)
    if operator == "[MIN":
        return min(values)
    if operator == "[SM":
        return sum(values) % 10
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) // 2


def value(symbols):
    """The digit an expression stands for. ValueError if it is none."""
    stack = [[]]
    for symbol in symbols:
        if symbol in OPERATORS:
            stack.append([symbol])
        elif symbol == END:
            if len(stack) < 2 or len(stack[-1]) < 2:
                raise ValueError("an end without an operator and its arguments")
            operator, *values = stack.pop()
            stack[-1].append(apply(operator, values))
        elif symbol in DIGITS:
            stack[-1].append(int(symbol))
        else:
            raise ValueError(f"{symbol!r} is no symbol")
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError("not one whole expression")
    return stack[0][0]


def expressions(seed, shortest, longest):
    """Different random expressions of shortest to longest symbols, for ever."""
    rng, seen = random.Random(seed), set()
    while True:
        symbols = draw(rng, longest)
        if symbols is None or len(symbols) < shortest:
            continue
        text = " ".join(symbols)
        if text not in seen:
            seen.add(text)
            yield symbols
