"""Many noise multipliers at one sampling probability, read off a table of a few (Theorem 19).

The truth is in ball arithmetic: integrals over the window of u by the library's own integrator, and
profiles by shift_compositions.py, which knows no window, table or certificate of the core's.
"""

import ctypes
import random
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant._core import answers as core
from support.native import build, core_files
from support.oracle.shift_compositions import line

# One table on a line as it is planned; parts that it holds are added one at a time.
DRIVER = """
#include <math.h>
#include <stdlib.h>
#include "noise_table.c"
static double law_memory[2][ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES)];
static double cf_memory[ACCT_SUM_ARRAYS * ACCT_MAX_NODES];
static double points[ACCT_HETEROGENEOUS_SUM_DOUBLES];
static acct_heterogeneous_sum sums;
static acct_tilted_law law, scratch;
static acct_characteristic_sum cf;
static acct_noise_table table;
static double *memory;

int table_set(double q, double least, double most, int direction, double b, double dy, int count,
              double most_loss, double log_error, double coarser, double *window) {
    acct_heterogeneous_plan plan = {
        .direction = direction, .steps = 1000.0 * exp(-coarser), .deviations = 9.0,
        .most_loss = most_loss, .b = b, .right_b = 1.4 * b, .left_b = 0.6 * b, .dy = dy,
        .count = count, .most_work = 1e9,
        .reverse_order = most_loss < 1e300 ? 3.0 : 0.0, .flat = count * dy, .log_error = log_error};
    acct_tilted_law_place(&law, law_memory[0], ACCT_MAX_NODES);
    acct_tilted_law_place(&scratch, law_memory[1], ACCT_MAX_NODES);
    acct_characteristic_sum_place(&cf, cf_memory, ACCT_MAX_NODES);
    acct_heterogeneous_sum_place(&sums, points);
    sums.scratch = &scratch;
    acct_heterogeneous_sum_start(&sums, &plan);
    free(memory);
    memory = NULL;
    double remainder[1 + ORDERS] = {0.0};
    const int kinds = plan_table(&table, &sums, q, least, most, remainder);
    if (!kinds) return 0;
    sums.plan.steps = 1000.0; /* nodes are as fine as ever where kinds are few */
    memory = malloc(table_doubles(&table) * sizeof *memory);
    if (set_table(&table, memory, remainder, &sums, &law, &cf)) return 0;
    window[0] = table.range.lo;
    window[1] = table.range.hi;
    window[2] = sums.order;
    return kinds;
}

void table_at(double sigma, int k, double *out) {
    weights w;
    out[0] = out[1] = 0.0;
    set_weights(&table, sigma, &w);
    for (int j = 0; j < table.kinds; j++) {
        out[0] += w.of[j] * table.re[j * table.stride + k];
        out[1] += w.of[j] * table.im[j * table.stride + k];
    }
    out[2] = w.error * table.error[k] + w.moduli * table.remainder[k];
    acct_characteristic_polar b;
    read_block(&table, &w, table.stride - ACCT_SUM_BLOCK, &b);
    out[3] = b.log_modulus[REVERSE];
    out[4] = log_error(&b, REVERSE);
    out[5] = b.log_modulus[RIGHT];
    out[6] = log_error(&b, RIGHT);
}

double table_decay(double sigma, int level, double *y) {
    const acct_part part = {table.range.q, sigma, 1.0, NULL};
    const double before = sums.decay[level];
    y[0] = sums.level[level];
    if (acct_noise_table_add(&table, &sums, &law, &part)) return 1.0;
    return sums.decay[level] - before;
}

/* the sums of a line that has this part alone */
int table_line(double sigma, double steps, int k, double *out) {
    const acct_part part = {table.range.q, sigma, steps, NULL};
    const acct_heterogeneous_plan plan = sums.plan;
    acct_heterogeneous_sum_start(&sums, &plan);
    if (acct_noise_table_add(&table, &sums, &law, &part)) return 1;
    const double found[] = {acct_sum_total(&sums.log_mgf), sums.log_mgf_err,
                            acct_sum_total(&sums.log_mod[k]), acct_sum_total(&sums.arg[k]),
                            sums.relative[k], sums.high[k], sums.size[k]};
    for (int i = 0; i < 7; i++) out[i] = found[i];
    return 0;
}

/* a block of real moduli, each off by as much as `error` says: the bounds on their logarithms */
void bounds_of(const double *modulus, const double *error, double log_mgf, double *relative,
               double *high) {
    const acct_characteristic_errors none = {0.0, 0.0, 0.0, 0.0};
    double u[ACCT_SUM_BLOCK], v[ACCT_SUM_BLOCK] = {0};
    acct_characteristic_polar b;
    for (int k = 0; k < ACCT_SUM_BLOCK; k++) u[k] = modulus[k] - 1.0;
    acct_characteristic_polar_set(&b, &none, 0, 0.0, error, u, v);
    for (int k = 0; k < ACCT_SUM_BLOCK; k++) {
        relative[k] = b.ratio[k];
        high[k] = b.log_most[k] - log_mgf;
    }
}
"""

# q, 1/sigma from, to, direction, b, dy, points, most loss, log of the error
TABLES = [
    (0.01, 0.5, 0.71, core.REMOVE, 9.2, 0.3, 84, 2.4, -25.8),
    (0.01, 0.71, 0.99, core.REMOVE, 9.2, 0.3, 84, 2.4, -25.8),
    (0.01, 0.71, 0.99, core.ADD, 18.2, 2.6, 17, np.inf, -25.0),
    (0.3, 0.2, 0.28, core.REMOVE, 3.0, 0.2, 40, np.inf, -25.0),
    (0.9, 0.05, 0.06, core.ADD, 2.0, 0.2, 40, np.inf, -25.0),
    (1e-6, 1.1, 1.3, core.REMOVE, 12.0, 0.5, 30, 4.0, -20.0),
    (0.02, 2.0, 2.1, core.ADD, 5.0, 0.5, 30, np.inf, -20.0),
]

# As above, and by how much less (e to the power of it) is asked of the kinds than of their nodes:
# the remainder decides. In the last two that of the reverse term is the largest.
FEW = [
    (0.01, 0.5, 0.71, core.REMOVE, 9.2, 0.3, 84, 2.4, -25.8, 33.0),
    (0.3, 0.2, 0.28, core.REMOVE, 3.0, 0.2, 40, np.inf, -25.0, 40.0),
    (0.02, 2.0, 2.8, core.ADD, 2.0, 0.5, 30, np.inf, -20.0, 40.0),
    (0.9, 0.5, 0.7, core.REMOVE, 0.1, 0.1, 20, 1.5, -25.0, 35.0),
    (0.5, 0.6, 0.8, core.REMOVE, 0.05, 0.1, 20, 0.6, -25.0, 35.0),
]


# seed, direction, ε, the oracle's δ: its enclosures are no wider than 1e-22
KEPT = [
    (1, core.REMOVE, 0.19455572310336103, "9.999999999606282142500793e-7"),
    (1, core.ADD, 0.1718480443374545, "9.999999999816856632926449e-7"),
    (2, core.REMOVE, 0.4021781050780197, "9.999999999007705538678315e-7"),
    (2, core.ADD, 0.3017786527830882, "9.999999999808031984807649e-7"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tables")
    source = directory / "driver.c"
    source.write_text(DRIVER)
    others = [f for f in core_files() if f.name != "noise_table.c"]
    library = build(directory, [source, *others])
    library.table_decay.restype = ctypes.c_double
    return library


def doubles(*values):
    return [ctypes.c_double(value) for value in values]


def place(tables, q, least, most, direction, b, dy, count, most_loss, log_error, coarser=0.0):
    """The window of u and the order of a table, which must have been made."""
    window = (ctypes.c_double * 3)()
    kinds = tables.table_set(
        *doubles(q, least, most),
        direction,
        *doubles(b, dy),
        count,
        *doubles(most_loss, log_error, coarser),
        window,
    )
    assert 4 <= kinds < 64
    return window


def transform(q, sigma, low, high, s):
    """∫ G e^{sL} du over a window, as a ball; the logarithm has no zero near the real line."""
    q, sigma = acb(q), acb(sigma)

    def integrand(u, _):
        noise = (u * sigma + 1 / (2 * sigma)) ** 2 / 2
        return (s * (1 - q + q * u.exp()).log() - noise).exp()

    total = acb(0)
    ends = [low + (high - low) * i / 24 for i in range(25)]
    for a, b in pairwise(ends):
        total += acb.integral(integrand, acb(a), acb(b), rel_tol=2.0**-110, abs_tol=2.0**-130)
    return total * sigma / (2 * acb.pi()).sqrt()


@pytest.mark.long
@pytest.mark.parametrize("given", TABLES + FEW)
def test_every_value_is_within_its_error(tables, given):
    ctx.prec = 140
    q, least, most, direction, b, dy, count, most_loss = given[:8]
    low, high, order = place(tables, *given)
    rng = random.Random(7)
    out = (ctypes.c_double * 7)()
    for sigma in (1 / rng.uniform(least, most), (1 - 1e-12) / least, (1 + 1e-12) / most):
        for k in (0, rng.randrange(1, count), count - 1):
            tables.table_at(*doubles(sigma), k, out)
            truth = transform(q, sigma, low, high, acb(order, k * dy)) - 1
            assert abs(acb(out[0], out[1]) - truth) <= arb(out[2])
            assert out[2] < (1e-9 if given in TABLES else 10.0)
        right = 1.0 + 1.4 * b if direction == core.REMOVE else -1.4 * b
        orders = [(out[5], out[6], right)]
        if most_loss < np.inf:
            orders.append((out[3], out[4], -3.0))
        for found, error, at in orders:
            truth = transform(q, sigma, low, high, acb(at)).real.log()
            assert abs(arb(found) - truth) <= arb(error)


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("given", TABLES)
def test_no_decay_is_claimed_that_is_not_there(tables, given):
    ctx.prec = 140
    q, least, most = given[:3]
    low, high, order = place(tables, *given)
    rng = random.Random(11)
    y, claimed = (ctypes.c_double * 1)(), False
    for level in (0, 2, 6):
        sigma = 1 / rng.uniform(least, most)
        bound = tables.table_decay(*doubles(sigma), level, y)
        assert bound <= 0.0
        claimed = claimed or bound < 0.0
        truth = abs(transform(q, sigma, low, high, acb(order, y[0]))).log()
        truth -= transform(q, sigma, low, high, acb(order)).real.log()
        assert truth <= arb(bound)
    assert claimed


# Transforms that turn by several right angles, and nearly vanish, on the way.
TURNING = [
    (0.95, 0.5, 0.7, core.REMOVE, 2.0, 0.3, 20, np.inf, -25.0),
    (0.9, 1.3, 1.8, core.ADD, 2.0, 0.4, 40, np.inf, -25.0),
    (0.6, 0.3, 0.4, core.REMOVE, 6.0, 1.0, 24, np.inf, -25.0),
]


@pytest.mark.parametrize("given", TABLES + FEW[:1] + FEW[3:] + TURNING)
def test_the_sums_of_a_line_hold_the_powers_of_a_transform(tables, given):
    ctx.prec = 140
    q, least, most, _, _, dy, count = given[:7]
    low, high, order = place(tables, *given)
    rng = random.Random(5)
    out = (ctypes.c_double * 7)()
    for steps, k in ((1, 1), (3, rng.randrange(1, count)), (2, count // 2), (1, count - 1)):
        sigma = 1 / rng.uniform(least, most)
        assert tables.table_line(*doubles(sigma, steps), k, out) == 0
        log_mgf, log_mgf_err, log_mod, turned, relative, above, size = map(arb, out)
        at_zero = transform(q, sigma, low, high, acb(order)).real
        truth = transform(q, sigma, low, high, acb(order, k * dy))
        round_off = arb(2) ** -53 * (40 + 24 * size)
        assert relative < 1e-2
        assert abs(log_mgf - steps * at_zero.log()) <= log_mgf_err
        assert steps * (abs(truth).log() - at_zero.log()) <= above + round_off + log_mgf_err
        off = acb(log_mod + log_mgf, turned).exp() / truth**steps - 1
        assert abs(off) <= (relative.exp() - 1 + round_off) * (1 + relative)


# Lines so short that the bounds are nearly the truth; at the least 1/sigma the kind that they are
# taken from has the larger spread of losses.
SHORT = [
    (0.01, 0.5, 0.71, core.REMOVE, 9.2, 0.01, 5, np.inf, -25.0),
    (0.3, 0.5, 0.71, core.ADD, 2.0, 0.01, 5, np.inf, -25.0),
    (0.9, 0.05, 0.06, core.REMOVE, 2.0, 0.1, 5, np.inf, -25.0),
]


@pytest.mark.parametrize("given", SHORT)
def test_no_decay_of_a_kind_that_falls_faster_is_claimed(tables, given):
    ctx.prec = 140
    q, least, most = given[:3]
    low, high, order = place(tables, *given)
    y = (ctypes.c_double * 1)()
    for sigma in ((1 - 1e-12) / least, (1 + 1e-12) / most):
        bound = tables.table_decay(*doubles(sigma), 0, y)
        truth = abs(transform(q, sigma, low, high, acb(order, y[0]))).log()
        truth -= transform(q, sigma, low, high, acb(order)).real.log()
        assert truth <= arb(bound)
        assert bound <= 0.8 * float(truth.mid())


def schedule(rng):
    """Parts of one q that are near in noise, as the oracle takes them."""
    q, sigma = rng.choice([0.003, 0.01, 0.1]), rng.uniform(0.9, 2.0)
    return [(rng.uniform(sigma, 1.2 * sigma), [1.0], [q], rng.randint(1, 30)) for _ in range(40)]


def asked(question, parts, at, direction):
    columns = [
        np.array([float(p[2][0]) for p in parts]),
        np.array([p[0] for p in parts]),
        np.array([float(p[3]) for p in parts]),
    ]
    return question(*columns, at, direction)


@pytest.mark.parametrize(("seed", "direction", "epsilon", "delta"), KEPT)
def test_brackets_hold_a_kept_profile(seed, direction, epsilon, delta):
    parts = schedule(random.Random(seed))
    lower, upper = asked(core.heterogeneous_delta_bounds, parts, epsilon, direction)
    assert Decimal(lower) <= Decimal(delta) + Decimal("1e-22")
    assert Decimal(upper) >= Decimal(delta) - Decimal("1e-22")
    assert upper - lower <= 1e-7 * upper


def judged(seed, direction):
    """An ε of a random schedule, and an enclosure of its profile there by the oracle."""
    parts = schedule(random.Random(seed))
    epsilon = asked(core.heterogeneous_epsilon_bounds, parts, 1e-6, direction)[1]
    truth = line(parts, epsilon, direction == core.REMOVE)
    return epsilon, truth


@pytest.mark.slow
@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD])
@pytest.mark.parametrize("seed", range(4, 8))
def test_random_schedules_hold_the_oracles_profile(seed, direction):
    epsilon, truth = judged(seed, direction)
    parts = schedule(random.Random(seed))
    lower, upper = asked(core.heterogeneous_delta_bounds, parts, epsilon, direction)
    assert arb(lower) <= truth
    assert truth <= arb(upper)


@pytest.mark.parametrize("sizes", [(0.0, 1e-300, 1e-5, 0.5), (0.5,)])
@pytest.mark.parametrize("far", [0, 1, 16])
def test_moduli_near_and_far_from_their_errors_are_bounded(tables, far, sizes):
    """In a block without, with one and of nothing but points that are next to nothing known of."""
    draw, log_mgf = random.Random(far), 0.25
    modulus = [draw.uniform(0.2, 1.0) for _ in range(16)]
    error = [draw.choice([1e-13, 1e-3, 0.01]) * each for each in modulus]
    for k in range(far):
        modulus[k] = draw.choice(sizes)
        error[k] = draw.choice([0.2, 1.0, 3.0]) * max(modulus[k], 1e-12)
    array = ctypes.c_double * 16
    relative, high = array(), array()
    tables.bounds_of(array(*modulus), array(*error), ctypes.c_double(log_mgf), relative, high)
    for k, (size, off) in enumerate(zip(modulus, error, strict=True)):
        with ctx.workprec(200):
            most = (arb(size) + arb(off)).log() - arb(log_mgf)
            assert not arb(high[k]) + arb(2.0**-48) < most
            assert high[k] < float(most) + 0.01
            if size > off:
                least = arb(off) / (arb(size) - arb(off))
                assert not arb(relative[k]) < least
            else:
                assert relative[k] == np.inf
