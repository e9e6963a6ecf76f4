#include "rare_event_nodes.h"

#include <math.h>

#include "rounding.h"
#include "soft_threshold_inline.h"
#include "vmath.h"

/* below it a weight is taken for as much as e^{-700}, and for wrong by all of that */
#define LEAST_LOG (-690.0)
#define MOST_LOG 700.0

/* The first half: the tilted weight without chances, its modulus in `size`; beyond: where the angle leaves the range
 * of acct_vsincos, the angle, else 0. */
ACCT_CLONES
static void set_tilted(int count, double order, double log_mgf, const double *restrict l_re,
                       const double *restrict l_im, double *restrict size, double *restrict re,
                       double *restrict im, double *restrict least, double *restrict beyond) {
    for (int j = 0; j < count; j++) {
        const double e = order * l_re[j] + re[j] - log_mgf, turn = order * l_im[j] + im[j];
        const int known = fabs(turn) < ACCT_MOST_ANGLE;
        const double weight = size[j] * (e < MOST_LOG ? acct_vexp(e) : INFINITY);
        double sine, cosine;
        acct_vsincos(known ? turn : 0.0, &sine, &cosine);
        size[j] = weight;
        re[j] = weight * cosine;
        im[j] = weight * sine;
        least[j] = e < LEAST_LOG ? weight : 0.0;
        beyond[j] = known ? 0.0 : turn;
    }
}

static void set_far_angles(int count, const double *size, const double *beyond, double *re, double *im) {
    for (int j = 0; j < count; j++)
        if (beyond[j] != 0.0) { /* a NaN, too */
            re[j] = size[j] * cos(beyond[j]);
            im[j] = size[j] * sin(beyond[j]);
        }
}

/* of one threshold at one node */
typedef struct {
    double above[2], below[2];
    double most_above, most_below; /* sums of moduli */
    double of_above, of_below;     /* their relative round-off */
    double turn_above, turn_below; /* their relative changes, per relative change of E */
} chances;

ACCT_INLINE void chances_at(double re, double im, acct_threshold threshold, int doublings, chances *c) {
    double e;
    const double size = acct_threshold_complex_at(re, im, threshold.origin, threshold.scale, doublings, c->above,
                                                  c->below, &e);
    const double modulus = size * (1.0 + 1e-12);
    const double a = (re - threshold.origin) / threshold.scale, b = im / threshold.scale;
    const double m = (double)(1 << doublings);
    /* far below what any bound notices, and squares may underflow there */
    c->most_above = sqrt(c->above[0] * c->above[0] + c->above[1] * c->above[1]) + 1e-150;
    double t = modulus, sum = 1.0, noise = 0.0, power = 1.0;
    for (int i = 0; i < doublings; i++) {
        sum *= 1.0 + t;
        noise += power * (t < 1.0 ? t : 1.0);
        t *= t;
        power *= 2.0;
    }
    /* t itself is within 12 u, every square doubles that */
    c->of_above = (64.0 + 16.0 * m) * ACCT_U;
    c->of_below = (64.0 + 16.0 * noise) * ACCT_U;
    c->most_below = e * sum;
    /* d(t^m) = m t^{m-1} e^{-z} dz, dz = 2 z dE/E */
    const double rate = 2.0 * m * (a * a + b * b);
    c->turn_above = modulus > 0.0 ? rate * e / modulus : 2.0 * m;
    c->turn_below = modulus > 0.0 ? rate * c->most_above / modulus / sum : 0.0;
}

/* what is the same for all nodes */
typedef struct {
    double order, mean;
    acct_threshold outer, inner;
} setting;

/* the second half of acct_rare_event_nodes_weigh: `least` is what a weight is wrong by beyond all else */
ACCT_CLONES
static void set_weights(int count, const setting *s, double *restrict l_re, const double *restrict l_im,
                        double *restrict w_re, double *restrict w_im, double *restrict c_re,
                        double *restrict c_im, double *restrict size, double *restrict large,
                        double *restrict rest, double *restrict w_err, double *restrict c_err,
                        double *restrict moved, const double *restrict least) {
    const double order = s->order, mean = s->mean;
    const acct_threshold outer = s->outer, inner = s->inner;
    for (int j = 0; j < count; j++) {
        const double lr = l_re[j], li = l_im[j], weight = size[j], wr = w_re[j], wi = w_im[j];
        const double loss = c_re[j], x2 = c_err[j], loss_err = moved[j];
        chances out, in;
        chances_at(lr, li, outer, ACCT_OUTER_DOUBLINGS, &out);
        chances_at(lr, li, inner, ACCT_INNER_DOUBLINGS, &in);
        /* between the thresholds: the difference that cancels less */
        const double by_above = in.most_above + out.most_above, by_below = in.most_below + out.most_below;
        const int near = by_above < by_below;
        const double mr = near ? in.above[0] - out.above[0] : out.below[0] - in.below[0];
        const double mi = near ? in.above[1] - out.above[1] : out.below[1] - in.below[1];
        const double between = near ? by_above : by_below;
        /* L: twice the error of the real loss and of the node, and what the complex logarithm adds */
        const double er = lr - outer.origin, apart = sqrt(er * er + li * li);
        const double off = 2.0 * loss_err + 64.0 * ACCT_U * (fabs(lr) + fabs(li) + fabs(mean) + fabs(loss));
        const double plain = acct_weight_roundoff(x2) + fabs(order) * off;
        const double relative = 1.1 * off / (apart > 1e-300 ? apart : 1e-300);
        const double turned = relative < 1e100 ? relative : 1e100;
        const double of_above = in.most_above * (in.of_above + in.turn_above * turned) +
                                out.most_above * (out.of_above + out.turn_above * turned);
        const double of_below = in.most_below * (in.of_below + in.turn_below * turned) +
                                out.most_below * (out.of_below + out.turn_below * turned);
        l_re[j] = lr - mean;
        w_re[j] = wr * out.below[0] - wi * out.below[1];
        w_im[j] = wr * out.below[1] + wi * out.below[0];
        c_re[j] = wr * mr - wi * mi;
        c_im[j] = wr * mi + wi * mr;
        size[j] = weight * out.most_below;
        rest[j] = weight * in.most_below;
        moved[j] = off;
        w_err[j] = weight * out.most_below * (plain + out.of_below + out.turn_below * turned) +
                   least[j] * out.most_below + weight * ACCT_UNDERFLOW;
        c_err[j] = weight * (between * plain + (near ? of_above : of_below)) + least[j] * between +
                   weight * ACCT_UNDERFLOW; /* e^{-z} may underflow */
        large[j] = weight * between + c_err[j];
    }
}

void acct_rare_event_nodes_weigh(const acct_rare_event_nodes *n, int count, const acct_moments *m,
                                 const acct_thresholds *thresholds) {
    const setting s = {m->order, m->mean, thresholds->outer, thresholds->inner};
    double *least = n->spare[0], *beyond = n->spare[1];
    set_tilted(count, m->order, m->log_mgf, n->l_re, n->l_im, n->size, n->w_re, n->w_im, least, beyond);
    set_far_angles(count, n->size, beyond, n->w_re, n->w_im);
    set_weights(count, &s, n->l_re, n->l_im, n->w_re, n->w_im, n->c_re, n->c_im, n->size, n->large, n->rest,
                n->w_err, n->c_err, n->moved, least);
}
