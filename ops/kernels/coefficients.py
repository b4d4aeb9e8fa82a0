#!/usr/bin/env python3
"""Prints coefficients.inc: the polynomials of math.inc and functions.inc, and the digits of 2/pi that trigonometry.inc
reduces large numbers by. Needs mpmath; building weft does not.

Each is the polynomial whose largest weighted error is smallest (Remez's exchange, 60 digits),
rounded to the type at the end.
    python3 ops/kernels/coefficients.py > ops/kernels/coefficients.inc
"""
from mpmath import (binomial, cos, erfc, exp, fac, log, lu_solve, matrix, mp, mpf, nstr, pi, polyval,
                    sqrt, tanh)

mp.dps = 60
CENTRE = 4  # of the tail: t = (u - CENTRE) / (u + CENTRE)
LN2 = log(mpf(2))


def chebyshev(low, high, count):
    return [(low + high) / 2 - (high - low) / 2 * cos(pi * i / (count - 1)) for i in range(count)]


def remez(f, weight, low, high, degree):
    """The p, constant first, whose max |p - f| weight on [low, high] is smallest; and that max."""
    count = degree + 2
    points, grid = chebyshev(low, high, count), chebyshev(low, high, 2000)
    values, weights = [f(x) for x in grid], [weight(x) for x in grid]
    for _ in range(12):
        rows = [[x ** j for j in range(degree + 1)] + [(-1) ** i / weight(x)]
                for i, x in enumerate(points)]
        *p, level = lu_solve(matrix(rows), matrix([f(x) for x in points]))
        error = [(polyval(p[::-1], x) - y) * w for x, y, w in zip(grid, values, weights)]
        worst = max(map(abs, error))
        if worst < abs(level) * mpf("1.001"):
            break
        points = extrema(grid, error, count)
    return p, worst


def extrema(grid, error, count):
    """Where |error| is largest in each run of one sign; of too many, the smaller end goes."""
    found = []
    for x, e in zip(grid, error):
        if not found or (found[-1][1] > 0) != (e > 0):
            found.append((x, e))
        elif abs(e) > abs(found[-1][1]):
            found[-1] = (x, e)
    while len(found) > count:
        found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
    assert len(found) == count
    return [x for x, _ in found]


def series(term):
    """term(0) + term(1) + ...: for what cancels near 0 in closed form."""
    total, i, t = mpf(0), 0, mpf(1)
    while i < 4 or abs(t) > mpf(10) ** -55:
        t = term(i)
        total, i = total + t, i + 1
    return total


def tail(t):
    u = CENTRE * (1 + t) / (1 - t)
    return (u + CENTRE) * erfc(u / sqrt(mpf(2))) * exp(u * u / 2) / 2


def tail_end(u):
    return mpf(u - CENTRE) / (u + CENTRE)


# name, formula, f, weight, {type: (low, high, degree)}
HALF_LN2, QUARTER_PI = LN2 / 2 * mpf("1.001"), (pi / 4) ** 2 * mpf("1.001")
POLYNOMIALS = [
    ("exp_q", "(exp(r) - 1 - r) / r^2; |r| <= ln(2) / 2",
     lambda r: series(lambda i: r ** i / fac(i + 2)), lambda r: r * r + mpf("0.01"),
     {"float": (-HALF_LN2, HALF_LN2, 4), "double": (-HALF_LN2, HALF_LN2, 9)}),
    ("log_r", "(log((1 + s) / (1 - s)) / s - 2) / z; z = s^2 <= (3 - sqrt(8))^2",
     lambda z: series(lambda i: 2 * z ** i / (2 * i + 3)), lambda z: z + mpf("0.003"),
     {"float": (mpf(0), mpf("0.02944"), 2), "double": (mpf(0), mpf("0.02944"), 6)}),
    ("tanh_p", "(tanh(x) / x - 1) / z; z = x^2 <= 0.625^2",
     lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -18 else mpf(-1) / 3,
     lambda z: z + mpf("0.05"),
     {"float": (mpf(0), mpf("0.390625"), 4), "double": (mpf(0), mpf("0.390625"), 10)}),
    ("erf_p", "erf(x) / x - 1; z = x^2 <= 1",
     lambda z: 2 / sqrt(pi) * series(lambda i: (-z) ** i / (fac(i) * (2 * i + 1))) - 1,
     lambda z: mpf(1),
     {"float": (mpf(0), mpf(1), 6), "double": (mpf(0), mpf(1), 11)}),
    ("tail_p", "(u + 4) erfc(u / sqrt(2)) exp(u^2 / 2) / 2; t = (u - 4) / (u + 4), u >= 0",
     tail, lambda t: 1 / tail(t),
     {"float": (mpf(-1), tail_end(15), 9), "double": (mpf(-1), tail_end(40), 22)}),
    ("pow_p", "(log((1 + s) / (1 - s)) / s - 2 - 2/3 z) / z^2; z = s^2 <= (3 - sqrt(8))^2",
     lambda z: series(lambda i: 2 * z ** i / (2 * i + 5)), lambda z: z + mpf("0.003"),
     {"float": (mpf(0), mpf("0.02944"), 2), "double": (mpf(0), mpf("0.02944"), 7)}),
    ("sinh_p", "(sinh(x) / x - 1) / z; z = x^2 <= 1",
     lambda z: series(lambda i: z ** i / fac(2 * i + 3)), lambda z: z + mpf("0.05"),
     {"float": (mpf(0), mpf(1), 3), "double": (mpf(0), mpf(1), 6)}),
    ("atan_p", "(atan(x) / x - 1) / z; z = x^2 <= 0.5^2",
     lambda z: series(lambda i: (-1) ** (i + 1) * z ** i / (2 * i + 3)), lambda z: z + mpf("0.05"),
     {"float": (mpf(0), mpf("0.2501"), 5), "double": (mpf(0), mpf("0.2501"), 12)}),
    ("asin_p", "(asin(x) / x - 1) / z; z = x^2 <= 0.5^2",
     lambda z: series(lambda i: binomial(2 * i + 2, i + 1) * (z / 4) ** i / 4 / (2 * i + 3)),
     lambda z: z + mpf("0.05"),
     {"float": (mpf(0), mpf("0.2501"), 4), "double": (mpf(0), mpf("0.2501"), 12)}),
    ("sin_p", "(sin(r) - r) / r^3; z = r^2 <= (pi / 4)^2",
     lambda z: series(lambda i: (-1) ** (i + 1) * z ** i / fac(2 * i + 3)), lambda z: mpf(1),
     {"float": (mpf(0), QUARTER_PI, 3), "double": (mpf(0), QUARTER_PI, 5)}),
    ("cos_p", "(cos(r) - 1 + r^2 / 2) / r^4; z = r^2 <= (pi / 4)^2",
     lambda z: series(lambda i: (-1) ** i * z ** i / fac(2 * i + 4)), lambda z: mpf(1),
     {"float": (mpf(0), QUARTER_PI, 3), "double": (mpf(0), QUARTER_PI, 5)}),
]
IN_DOUBLE = ("sin_p", "cos_p")  # of both types: double inside


def hexadecimal(x, bits):
    """x rounded to nearest with `bits` bits of mantissa, exactly."""
    man, e = mp.frexp(abs(x))
    rounded = int(mp.nint(man * 2 ** bits)) * mpf(2) ** (int(e) - bits)
    return ("-" if x < 0 else "") + float(rounded).hex()


def show(name, formula, f, weight, low, high, degree, bits):
    p, worst = remez(f, weight, low, high, degree)
    print(f"/* {formula}; error {nstr(worst, 2)} */")
    print(f"static const {'double' if name in IN_DOUBLE else 'real'} {name}[] = {{")
    for c in p:
        print(f"    {hexadecimal(c, bits)},")
    print("};")


def show_two_over_pi(words):
    """Its first bits after the point, in words of 32."""
    with mp.workprec(32 * words + 64):
        digits = int(mp.floor(2 / mp.pi * mpf(2) ** (32 * words)))
    all_words = [f"0x{digits >> 32 * (words - 1 - i) & 0xffffffff:08x}," for i in range(words)]
    print("/* 2/pi: the bits after the point, the first ones first */")
    print("static const uint32_t two_over_pi[] = {")
    for i in range(0, words, 8):
        print("    " + " ".join(all_words[i:i + 8]))
    print("};")


if __name__ == "__main__":
    print("/* coefficients.inc - the polynomials of math.inc and functions.inc, constant term first, with")
    print(" * their largest (weighted) error before rounding. Written by coefficients.py. */")
    kinds = {"float": "#if REAL_BITS == 32", "double": "#else"}
    for kind, condition in kinds.items():
        print(condition)
        for name, formula, f, weight, ranges in POLYNOMIALS:
            if kind in ranges:
                bits = 24 if kind == "float" and name not in IN_DOUBLE else 53
                show(name, formula, f, weight, *ranges[kind], bits)
    show_two_over_pi(40)
    print("#endif")
