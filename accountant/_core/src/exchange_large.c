#include "exchange_large.h"

#include <math.h>

#include "exchange_strip.h"
#include "rounding.h"

/* cells are narrow as long as the noise is not negligible */
#define NARROW_CELL 0.25
#define FAR_NOISE 30.0
#define FAR_LOSS 8.0

/* log(e^a + e^b), rounded up */
static double log_add(double a, double b) {
    const double most = acct_max(a, b);
    return most > -INFINITY ? most + log(exp(a - most) + exp(b - most)) + 1e-12 : most;
}

typedef struct {
    const acct_exchange_law *law;
    const acct_exchange_split *split;
    double c, turn;
    double *log_all, *from; /* of the cells of x > 0, and where they begin */
    int count;
    double end;                 /* of the last one */
    double all, middling, p, q; /* logs of the sums over them */
    double beyond;              /* of the rest of the noise */
    double left_above, left_below;
} strip;

/* log of the bound on what is right of a cell: the exponent falls, as it does beyond c scale^2 / 2, or all of it is
 * small */
static double beyond_cell(const strip *s, const acct_exchange_cell *c) {
    const acct_exchange_law *law = s->law;
    const double scale = s->split->outer.scale, e = c->p1.up - law->log_1mq;
    const double end = e - acct_exchange_lost_modulus(0.5, s->turn) - 1e-9;
    const double r = acct_min(acct_exchange_posterior(law, -c->x1) * (1.0 + 1e-9), 0.5);
    const double fall = (s->c - 1.0) * acct_exchange_lost_modulus(r, s->turn);
    double falling = INFINITY;
    if (end > FAR_LOSS * scale && end > 3.0 * s->turn && end > 0.5 * s->c * scale * scale)
        falling = log(129.0) + s->c * e - (end - s->turn) * (end + s->turn) / (scale * scale) + fall -
                  0.5 * c->x1 * c->x1;
    const double whole = acct_exchange_log_outside(law->mu, law->q, law->log_1mq, s->c, -c->x1, c->x1) +
                         (s->c - 1.0) * acct_exchange_lost_modulus(0.5, s->turn);
    return acct_min(falling, acct_max(s->left_below, 0.0) + 5.0 + whole) +
           1e-9 * (1.0 + fabs(falling < INFINITY ? falling : 0.0));
}

static int add_cell(strip *s, const acct_exchange_cell *c) {
    const acct_exchange_law *law = s->law;
    double above, below, in_above = 0.0, in_below;
    if (!acct_exchange_cell_large(law, s->split->outer, c, s->turn, &above, &below)) return 0;
    if (s->split->threshold.scale > 0.0 &&
        !acct_exchange_cell_bounds(law, s->split->threshold, c, s->turn, &in_above, &in_below))
        return 0;
    const double r = acct_min(acct_exchange_posterior(law, -c->x0) * (1.0 + 1e-9), 0.5);
    const double noise = log((c->x1 - c->x0) / ACCT_SQRT_2PI) - 0.5 * c->x0 * c->x0 +
                         1e-9 * (1.0 + c->x0 * c->x0);
    const double all = noise + s->c * c->p1.loss + c->p0.down + below +
                       (s->c - 1.0) * acct_exchange_lost_modulus(r, s->turn) + 1e-12 * s->c * c->p1.loss;
    s->log_all[s->count] = all;
    s->from[s->count++] = c->x0;
    s->all = log_add(s->all, all);
    s->middling = log_add(s->middling, all + in_above);
    s->p = log_add(s->p, noise + c->p1.up + above);
    s->q = log_add(s->q, noise + c->p0.down + above);
    return 1;
}

/* fills the cells, until what is beyond the last one is negligible */
static int fill(strip *s, double log_wanted, double log_mass) {
    const acct_exchange_law *law = s->law;
    const double scale = s->split->threshold.scale > 0.0 ? s->split->threshold.scale : s->split->outer.scale;
    acct_exchange_cell c = {.x1 = 0.0};
    s->count = 0;
    s->all = s->middling = s->p = s->q = -INFINITY;
    if (!acct_exchange_left_large(law, s->split->outer, s->turn, &s->left_above, &s->left_below)) return 0;
    for (int i = 0; i < ACCT_EXCHANGE_LARGE_CELLS; i++) {
        acct_exchange_cell_next(law, scale, c.x1 < FAR_NOISE ? NARROW_CELL : INFINITY, &c);
        if (!add_cell(s, &c)) return 0;
        s->beyond = beyond_cell(s, &c);
        s->end = c.x1;
        if (s->beyond < log_wanted &&
            acct_exchange_log_outside(law->mu, law->q, law->log_1mq, 1.0, -c.x1, c.x1) < log_mass)
            return 1;
    }
    return 0;
}

int acct_exchange_nodes_set(acct_exchange_nodes *n, double *memory, const acct_exchange_law *law,
                            const acct_exchange_split *split, double c, double turn, double log_mgf,
                            double log_mass, double digits) {
    strip s = {.law = law, .split = split, .c = c, .turn = turn};
    s.log_all = memory;
    s.from = memory + ACCT_EXCHANGE_LARGE_CELLS;
    const double a = 0.5 * turn / law->mu, rise = 2.0 * a * a + 1e-9, wanted = log_mgf - digits - rise - 2.0;
    const double masses = log_mass - rise - 2.0;
    if (!(turn <= ACCT_EXCHANGE_MOST_TURN) || !fill(&s, wanted, masses)) return 0;
    /* On the left U < 0, and W is more than log(1 - q) above what its modulus may fall. */
    const double left = -(c - 1.0) * law->log_1mq * (1.0 + 1e-12) + acct_max(s.left_below, 0.0) + 1e-9;
    double suffix = s.beyond;
    int k = s.count;
    n->hi = s.end;
    while (k > 0 && log_add(suffix, s.log_all[k - 1]) < wanted &&
           acct_exchange_log_outside(law->mu, law->q, law->log_1mq, 1.0, -s.from[k - 1], s.from[k - 1]) <
               masses) {
        suffix = log_add(suffix, s.log_all[--k]);
        n->hi = s.from[k];
    }
    n->lo = -sqrt(2.0 * (digits + rise + left - log_mgf + 4.0)) - law->mu;
    const double below_lo = left - 0.5 * n->lo * n->lo;
    const double over_hi = acct_exchange_log_outside(law->mu, law->q, law->log_1mq, 1.0, -n->hi, n->hi) +
                           1e-9;
    n->mu = law->mu;
    n->q = law->q;
    n->height = a;
    n->strip_all = rise + log_add(log_add(s.all, s.beyond), left);
    n->strip_middling = rise + log_add(log_add(s.middling, s.beyond), left);
    n->strip_p = rise + log_add(log_add(s.p, over_hi + 1e-6), s.left_above);
    n->strip_q = rise + log_add(log_add(s.q, over_hi + 1e-6), s.left_above);
    n->out_all = rise + log_add(suffix + ACCT_LOG_2_UP, below_lo);
    n->out_p = n->out_q = rise + log_add(over_hi + 1e-6, s.left_above);
    return 1;
}
