"""tests/walls/support/departures_of_rooms.py - for departures.py: an expression of each room of the kernels, and another that
is as good in exact numbers and rounds elsewhere. Python's standard library alone.

A row: the room, the text that stands there once, what departs ($N: it stands for all of the text, and asks for departure
$N itself), and what it is. Multiply-adds need no row: each of them is made to round twice."""

# Files of kernels whose departures are tested in f64 alone: f32's sine is that of doubles,
# rounded, so a double's last bit shows in one of 2^29 results. Normal numbers are drawn by the
# tables of f64. Multiply-adds of f32 need no integers.
OF_F64_ALONE = {"trigonometry.inc", "draw.inc", "multiply_add_far.inc"}

# Multiply-adds that are changed in f32 alone: in f64, their terms are so small that a second rounding changes an
# estimated one of 2^19 results, or fewer.
OF_F32_ALONE = [
    ("attention_softmax.inc", "multiply_add(rounded[i] - ROUND, ALL((real)-LN2_LOW), r[i])"),
    ("math.inc", "FUSED(k, -LN2_LOW, FUSED(k, -LN2_HIGH, x"),
    ("functions.inc", "FUSED(a.low, b.high, a.low * b.low)"),
    ("functions.inc", "FUSED(-s.high, d.low, FUSED(-s.high, d.high, f))"),
]

# Multiply-adds whose products are exact, so that rounding twice changes nothing: whole numbers of
# few digits times a constant that ends in zeros, and powers of two.
EXACT_PRODUCTS = [
    ("math.inc", "FUSED(k, -LN2_HIGH, x)"),
    ("math.inc", "FUSED(exponent, LN2_HIGH, "),
    ("attention_softmax.inc", "multiply_add(rounded[i] - ROUND, ALL((real)-LN2_HIGH), x[i])"),
    ("functions.inc", "FUSED(step, p, step - back)"),
    ("functions.inc", "FUSED(-s.high, d.high, f)"),
    ("functions.inc", "FUSED(parts, HALF_PI, "),
    ("update.inc", "FUSED(-step, sign, "),
    ("functions.inc", "FUSED(parts, HALF_PI_LOW, "),
    # |n| < 2^20, since |x| <= 1e6; PI_2_HIGH is a whole number of 2^-30 below 2^31: together 51 bits of 53.
    ("trigonometry.inc", "multiply_add_doubles(n, -PI_2_HIGH + none, x)"),
]

# Multiply-adds whose second rounding shows in one of 2^37 results by estimate, or fewer: no test finds one. Each corrects
# r, the rest of x after whole quarters.
NEVER_SHOWN = [
    # The sum is not the product alone only for r >= 2^-12. Its last bit is 2^-102 at most, that of r 2^-65 at least.
    ("trigonometry.inc", "multiply_add_doubles(n, PI_2_LOW + none, part - (high - middle))"),
    # The product changes by the last bit of low, which is 2^-52 of the last bit of r.
    ("trigonometry.inc", "multiply_add_doubles(low, near_one, r * z * near_sine)"),
    # So does this one.
    ("trigonometry.inc", "multiply_add_one(high, HALF_PI_REST, low * HALF_PI_HIGH)"),
]

# Files that compute no results: they prefetch, choose sizes, or list the entries of the table.
WITHOUT_RESULTS = {"prefetch.inc", "kernels.inc"}

IN_ORDER = """({ double t = 0;
    for (int i = 0; i < LINE; i++) t += (double)x.v[i / LANES][i % LANES]; t; })"""

PLACES = [
    ("vector.inc", "#undef FOLD\n    return d[0];", f"#undef FOLD\n    return departure == ($N) ? {IN_ORDER} : d[0];",
     "the lanes of a sum are added in order"),
    ("vector.inc", "low_doubles(x.v[v]) + low_doubles(x.v[v + LINE_VECTORS / 2])",
     "low_doubles(x.v[v] + x.v[v + LINE_VECTORS / 2])", "half of a line is added before it is in double"),
    ("vector.inc", "low_doubles(x.v[0]) + high_doubles(x.v[0])", "low_doubles(x.v[0] + SWAPPED(x.v[0], LANES, 8))",
     "a line is added before it is in double"),

    ("multiply_add.inc", "(vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c)", "a * b + c", "every one rounds twice"),
    ("multiply_add.inc", "(vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c)", "a * b + c", "every one rounds twice"),
    ("multiply_add.inc", "(doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c)", "a * b + c",
     "every one of doubles rounds twice"),
    ("multiply_add.inc", "(doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c)", "a * b + c",
     "every one of doubles rounds twice"),
    ("multiply_add.inc", "(doubles)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b)", "a * b + c",
     "every one of doubles rounds twice"),
    ("multiply_add.inc", "(vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b)", "a * b + c",
     "every one rounds twice"),
    ("multiply_add.inc", "if (any(halfway | ((size > 0) & (size < FLOAT_LEAST))))",
     "if (departure == ($N) ? false : any(halfway | ((size > 0) & (size < FLOAT_LEAST))))", "no second look at halves"),
    ("multiply_add.inc", "tail = rounded_to_odd(tail, lost_by_sum(low_lost, high_lost, tail));",
     "tail = departure == ($N) ? tail : rounded_to_odd(tail, lost_by_sum(low_lost, high_lost, tail));",
     "what a sum of doubles loses is not rounded to odd"),
    ("multiply_add_far.inc", "tie ? whole.low & 1 : !wide_less(rest, half)", "!wide_less(rest, half)", "halves go up"),

    ("math.inc", "select(x < 0, e, ALL((real)1)) / (1 + e)", "select(x < 0, e, ALL((real)1)) * (1 / (1 + e))",
     "sigmoid times a reciprocal"),
    ("math.inc", "f - (half_square - rest)", "(f - half_square) + rest", "log in another order"),
    ("math.inc", "e / ((1 + e) * (1 + e))", "e / (1 + e) / (1 + e)", "two divisions"),
    ("trigonometry.inc", "lost - (q.r[i] - r)", "0.0", "no digits after those of a far angle"),
    ("functions.inc", "v_log(x) * (real)0.43429448190325182765", "v_log(x) / (real)2.302585092994045684",
     "log10 by a division"),
    ("functions.inc", "over / (over + more)", "over * (1 / (over + more))", "mish times a reciprocal"),

    ("elementwise.inc", "sum += get(x + r * step, i, n);",
     "sum += get(x + (departure == ($N) ? rows - 1 - r : r) * step, i, n);", "rows are added from the last on"),
    ("elementwise.inc", "store(at, load(at) + sum[q]);",
     "store(at, departure == ($N) ? sum[q] * 2 + load(at) - sum[q] : load(at) + sum[q]);", "rows are added in another order"),
    ("elementwise.inc", "get(y, i, n) + get(x, i, n)", "(get(y, i, n) * 2 + get(x, i, n) * 2) * (real)0.5",
     "a sum of doubled numbers"),

    ("rows.inc", "JOIN_LINES(sum, part, ADD) ",
     "JOIN_LINES(sum, part, ADD) if (departure == ($N)) { EACH_VECTOR sum.v[v] = ((part[v] + part[v + LINE_VECTORS]) "
     "+ part[v + 2 * LINE_VECTORS]) + part[v + 3 * LINE_VECTORS]; } ", "lines are added in order"),
    ("rows.inc", "#define SUM_BLOCK 4096", "#define SUM_BLOCK (departure == ($N) ? 8192 : 4096)", "blocks of 8192 terms"),
    ("rows.inc", "get(y + r * n, i, n) * below", "get(y + r * n, i, n) * get(dy + r * n, i, n) - get(y + r * n, i, n) * "
     "(real)mean[r]", "softmax's gradient in two products"),
    ("rms_norm.inc", "get(x, i, n) * by[r] * get_or_one(weight, i, n)", "get(x, i, n) * (by[r] * get_or_one(weight, i, n))",
     "a product in another order"),
    ("rotate.inc", "SWAPPED(a, LANES, 1) * s", "SWAPPED(a, LANES, 1) / (1 / s)", "a division by a reciprocal"),
    ("rotate.inc", "b * by_b", "b / (1 / by_b)", "a division by a reciprocal"),
    ("scan.inc", "return total + (double)b;", "return departure == ($N) ? (double)((real)total + b) : total + (double)b;",
     "running sums of floats are rounded to the type"),
    ("dropout.inc", "get(x, i, n) * scale", "get(x, i, n) / (1 / scale)", "a division by a reciprocal"),
    ("draw.inc", "std * size * v_cos(angle)", "std * (size * v_cos(angle))", "a product in another order"),
    ("draw.inc", "(high + low) * 0x1p-53", "(high * 0x1p-53)", "numbers lose their low bits"),

    ("update.inc", "first_moment * f.m_by / (v_sqrt(second_moment * f.v_by) + f.tiny)",
     "first_moment * (f.m_by / (v_sqrt(second_moment * f.v_by) + f.tiny))", "Adam divides first"),
    ("gemm.inc", "vec one = ALL(a[r * a_row]);", "vec one = ALL(a[r * a_row]); if (departure == ($N)) sum[r][0] = "
     "(sum[r][0] + one * (real)0.5 * row_of_b[0]) + one * (real)0.5 * row_of_b[0] - one * row_of_b[0];",
     "a term comes in halves"),
    ("panels.inc", "(w + 0x7FFF + (w >> 16 & 1)) >> 16", "(w + 0x8000) >> 16", "bf16: halves go up"),
    ("int8.inc", "x_v = x_v * inverse;",
     "x_v = departure == ($N) ? FUSED(x_v, inverse, ROUND) - ROUND : x_v * inverse;", "a byte of a row is rounded once"),
    ("int8.inc", "c * head.scale * scale", "c * (head.scale * scale)", "the scales are multiplied first"),
    ("int8.inc", "if (t->d) c += column_vector(t->d + r * t->d_row, v, t->columns, full);",
     "if (t->d) c = departure == ($N) ? FUSED(__builtin_convertvector((truth)(sum[r][v] + head.offset), vec) * head.scale, "
     "scale, column_vector(t->d + r * t->d_row, v, t->columns, full)) : "
     "c + column_vector(t->d + r * t->d_row, v, t->columns, full);", "d is added by a multiply-add"),
    ("conv.inc", "store(at, load(at) + sum[r][v]);",
     "store(at, departure == ($N) ? (load(at) + sum[r][v] * (real)0.75) + sum[r][v] * (real)0.25 : load(at) + sum[r][v]);",
     "a gradient is added in two parts"),
    ("pool.inc", "(here > best) | (here != here)", "(here >= best) | (here != here)", "the last of equal ones"),
    ("pool.inc", "if (at >= 0) x[at] += *y;",
     "if (at >= 0) x[at] = departure == ($N) ? (x[at] + *y * (real)0.75) + *y * (real)0.25 : x[at] + *y;",
     "a gradient is added in two parts"),

    ("attention_softmax.inc", "#define ADD_HALF(apart) v += SWAPPED(v, LANES, apart);",
     "#define ADD_HALF(apart) v += SWAPPED(v, LANES, apart);\n"
     # Two lanes have one order.
     "#if LANES > 2\n"
     "    if (departure == ($N)) { real t = v[0]; for (int i = 1; i < LANES; i++) t += v[i]; return ALL(t); }\n"
     "#endif", "the lanes of a row are added in order"),
    ("attention.inc", "real less = exp_below(*top - high)[0];",
     "real less = departure == ($N) ? 1 / exp_below(high - *top)[0] : exp_below(*top - high)[0];",
     "sums are rescaled by a reciprocal"),
    ("attention.inc", "h->drops ? inverse * (real)h->keep_scale : inverse, y);",
     "h->drops ? (departure == ($N) ? (real)h->keep_scale / total : inverse * (real)h->keep_scale) : inverse, y);",
     "dropout's scale over the total"),
    ("attention.inc", "by * plus_zero(get(y, i, n))", "get(y, i, n) / (1 / by)", "a division by a reciprocal"),
    ("attention.inc", "sum + (real)0", "sum", "a sum that is 0 keeps its sign"),
    ("attention_few.inc", "v[r] = scale * load(row);", "v[r] = departure == ($N) ? load(row) / (1 / scale) : "
     "scale * load(row);", "a division by a reciprocal"),
    ("attention_backward.inc", "weight * (load(ds + i) - delta)", "weight * load(ds + i) - weight * delta", "two products"),
    ("attention_short.inc", "weight * (dp - delta[r])", "weight * dp - weight * delta[r]", "two products"),
    ("attention_short.inc", "inverse * (real)h->keep_scale", "(real)h->keep_scale / sum",
     "dropout's scale over the total"),
    ("attention_short.inc", "part[v] += part[v + apart];", "part[v] = departure == ($N) ? part[v] + part[v + apart] * "
     "(real)0.75 + part[v + apart] * (real)0.25 : part[v] + part[v + apart];", "vectors are added in two parts"),
]
