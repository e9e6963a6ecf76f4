#include "split_line.h"

#include <math.h>
#include <stddef.h>

#include "cut.h"
#include "gauss_legendre.h"
#include "rounding.h"
#include "status.h"
#include "vmath.h"

#define LANES 4

static void place(acct_split_line *line, double *memory) {
    double **slots[ACCT_SPLIT_ARRAYS] = {
        &line->l_re,  &line->l_im,  &line->w_re,  &line->w_im,  &line->c_re,
        &line->c_im,  &line->size,  &line->large, &line->w_err, &line->c_err,
        &line->moved, &line->z1_re, &line->z1_im, &line->z_re,  &line->z_im};
    for (int i = 0; i < ACCT_SPLIT_ARRAYS; i++) *slots[i] = memory + (size_t)i * ACCT_MAX_NODES;
    line->count = line->low = 0;
}

typedef struct {
    double above[2], below[2];
    double most_above, most_below; /* sums of moduli */
    double of_above, of_below;     /* their relative round-off */
    double turn_above, turn_below; /* their relative changes, per relative change of E */
} cut_at;

static void cut_set(double re, double im, acct_cut cut, cut_at *c) {
    acct_cut_complex(re, im, cut, c->above, c->below);
    const double a = (re - cut.origin) / cut.scale, b = im / cut.scale, e = exp((b - a) * (a + b));
    c->most_above = hypot(c->above[0], c->above[1]);
    const double size = pow(c->most_above, ldexp(1.0, -cut.doublings)) * (1.0 + 1e-12);
    double t = size, sum = 1.0, noise = 0.0, power = 1.0;
    for (int i = 0; i < cut.doublings; i++, t *= t, power *= 2.0) {
        sum *= 1.0 + t;
        noise += power * fmin(t, 1.0);
    }
    /* t itself is within 12 u, every square doubles that */
    c->of_above = (64.0 + 16.0 * power) * ACCT_U;
    c->of_below = (64.0 + 16.0 * noise) * ACCT_U;
    c->most_below = e * sum;
    /* d(t^m) = m t^{m-1} e^{-z} dz, dz = 2 z dE/E */
    const double rate = ldexp(2.0, cut.doublings) * (a * a + b * b);
    c->turn_above = size > 0.0 ? rate * e / size : 2.0 * ldexp(1.0, cut.doublings);
    c->turn_below = size > 0.0 ? rate * c->most_above / size / sum : 0.0;
}

/* the node x + i eta with quadrature weight quad e^{i turn_quad} over sigma sqrt(2 pi) */
static void add_node(acct_split_line *line, const acct_step *step, double x, double eta,
                     double quad, double turn_quad, const acct_moments *m, const acct_cuts *cuts) {
    const double var = step->sigma * step->sigma, order = m->order, x2 = 0.5 * x * x / var;
    const int j = line->count++;
    double lr, li, p;
    const double loss = acct_loss(step, x, &p), u = (x - 0.5) / var;
    acct_loss_complex(step, x, eta, &lr, &li);
    const double size = quad * exp(order * lr - x2 + 0.5 * eta * eta / var - m->log_mgf);
    const double turn = order * li - x * eta / var + turn_quad;
    const double wr = size * cos(turn), wi = size * sin(turn);
    cut_at out, in;
    cut_set(lr, li, cuts->outer, &out);
    cut_set(lr, li, cuts->inner, &in);
    /* between the cuts: the difference that cancels less */
    const double by_above = in.most_above + out.most_above;
    const double by_below = in.most_below + out.most_below;
    const int near = by_above < by_below;
    const double mr = near ? in.above[0] - out.above[0] : out.below[0] - in.below[0];
    const double mi = near ? in.above[1] - out.above[1] : out.below[1] - in.below[1];
    line->l_re[j] = lr - m->mean;
    line->l_im[j] = li;
    line->w_re[j] = wr * out.below[0] - wi * out.below[1];
    line->w_im[j] = wr * out.below[1] + wi * out.below[0];
    line->c_re[j] = wr * mr - wi * mi;
    line->c_im[j] = wr * mi + wi * mr;
    line->size[j] = size * out.most_below;
    line->large[j] = size * (near ? by_above : by_below);
    /* L: twice acct_loss's error, that of the node and of the complex logarithm */
    const double er = lr - cuts->outer.origin, modulus = fmax(sqrt(er * er + li * li), 1e-300);
    const double le = ACCT_U * (24.0 * fabs(loss) + 12.0 * p * fabs(u) + 8.0 * p * (fabs(x) + 1.0) / var);
    const double moved = 2.0 * le + 64.0 * ACCT_U * (sqrt(lr * lr + li * li) + fabs(m->mean) + fabs(loss));
    const double plain = (128.0 + 12.0 * x2) * ACCT_U + fabs(order) * moved;
    const double turn_above = fmin(1.1 * moved / modulus, 1e100), turn_below = turn_above;
    line->moved[j] = moved;
    line->w_err[j] = line->size[j] * (plain + out.of_below + out.turn_below * turn_below);
    line->c_err[j] = line->large[j] * plain +
                     size * (near ? in.most_above * (in.of_above + in.turn_above * turn_above) +
                                        out.most_above * (out.of_above + out.turn_above * turn_above)
                                  : in.most_below * (in.of_below + in.turn_below * turn_below) +
                                        out.most_below * (out.of_below + out.turn_below * turn_below));
}

static int add_grid(acct_split_line *line, const acct_grid *grid, double eta, double y,
                    const acct_moments *m, const acct_cuts *cuts, acct_split_errors *e) {
    if (line->count + grid->count + ACCT_GL_ORDER > ACCT_MAX_NODES) return ACCT_EPRECISION;
    for (int j = 0; j < grid->count; j++)
        add_node(line, &grid->step, grid->node[j], eta, grid->quad[j], 0.0, m, cuts);
    e->a += acct_grid_error(grid, m, y);
    for (int i = 0; i < grid->panels; i++) {
        const acct_panel *p = &grid->panel[i];
        const double factor = p->middle - p->damp - m->log_mgf;
        e->c += exp(acct_grid_panel_error(grid, i, m->order, y) + factor);
        e->tail_c += exp(acct_grid_panel_error(grid, i, m->order, 0.0) + factor);
    }
    e->reach = fmax(e->reach, acct_grid_reach(grid, m->mean));
    return ACCT_OK;
}

/* bounds on the factors within |Im x| <= theta var of [x0, x1], times |N e^{cL}| e^{y arg} there */
static int factors(const acct_step *step, const acct_cuts *cuts, double c, double x0, double x1,
                   double theta, double y, double *log_a, double *log_c, double *reach) {
    double p, la, lb, ia, ib;
    const double var = step->sigma * step->sigma;
    const double low = acct_loss(step, x0, NULL), high = acct_loss(step, x1, &p);
    const double arg = acct_loss_turn(theta, p), half = sin(0.5 * theta);
    if (!(theta < 3.0)) return 0;
    /* |1 + r e^{it}| >= (1 + r) (1 - 4 p (1-p) sin^2(t/2))^{1/2} */
    const double spread = (p < 0.5 ? 4.0 * p * (1.0 - p) : 1.0) * half * half;
    const double modulus = -0.5 * log1p(-fmin(spread * (1.0 + 1e-9), 1.0));
    if (!acct_cut_bounds(low, high, modulus, arg, cuts->outer, &la, &lb) ||
        !acct_cut_bounds(low, high, modulus, arg, cuts->inner, &ia, &ib))
        return 0;
    const double nearest = x0 > 0.0 ? x0 : x1 < 0.0 ? x1 : 0.0;
    const double both = c * high - 0.5 * nearest * nearest / var + 0.5 * theta * theta * var + y * arg;
    *log_a = lb + both;
    *log_c = fmin(fmax(la, ia), fmax(lb, ib)) + 0.6931471805599454 + both;
    *reach = fmax(fabs(low), fabs(high)) + arg + modulus;
    return 1;
}

/* the path's rise at x: one panel, of the ellipse with the least bound */
static int add_rise(acct_split_line *line, const acct_step *step, double x, double shift, double y,
                    const acct_moments *m, const acct_cuts *cuts, acct_split_errors *e) {
    const double half = 0.5 * shift, var = step->sigma * step->sigma;
    const double norm = half / (step->sigma * 2.5066282746310002);
    double log_a, log_c, reach, rest, of_a = INFINITY, of_c = INFINITY, far = INFINITY;
    for (double rho = 12.0; rho > 1.5; rho *= 0.8) {
        const double wide = 0.5 * half * (rho - 1.0 / rho), tall = 0.5 * half * (rho + 1.0 / rho);
        const double front =
            log(8.0 * norm / (rho - 1.0)) - (2.0 * ACCT_GL_ORDER - 1.0) * log(rho) - m->log_mgf;
        if (!factors(step, cuts, m->order, x - wide, x + wide, (half + tall) / var, y, &log_a, &log_c, &reach))
            continue;
        if (!(front + log_a < of_a)) continue;
        of_a = front + log_a;
        of_c = front + log_c;
        far = reach;
    }
    /* |e^{iyL}| <= 1 on the path itself */
    if (!factors(step, cuts, m->order, x, x, shift / var, 0.0, &log_a, &log_c, &rest)) return ACCT_EPRECISION;
    for (int i = 0; i < ACCT_GL_ORDER; i++)
        add_node(line, step, x, half * (1.0 + ACCT_GL_NODE[i]), norm * ACCT_GL_WEIGHT[i], 0.5 * ACCT_PI,
                 m, cuts);
    e->a += exp(of_a);
    e->c += exp(of_c);
    e->tail_c += exp(log(2.0 * norm) + log_c - m->log_mgf);
    e->reach = fmax(e->reach, far + fabs(m->mean));
    return far < INFINITY ? ACCT_OK : ACCT_EPRECISION;
}

int acct_split_line_set(acct_split_line *line, double *memory, acct_grid *grid,
                        const acct_step *step, const acct_window *window, double x_rise,
                        const acct_moments *m, const acct_cuts *cuts, double y_most,
                        double log_error, acct_split_errors *e) {
    const double shift = window->shift, var = step->sigma * step->sigma;
    double log_a, log_c, reach;
    place(line, memory);
    line->origin = step->log_1mq - m->mean;
    *e = (acct_split_errors){0.0, 0.0, 0.0, 0.0};
    acct_window part = *window;
    part.hi = x_rise;
    part.shift = 0.0;
    int status = acct_grid_set(grid, step, &part, m->order, y_most, log_error);
    if (!status) status = add_grid(line, grid, 0.0, y_most, m, cuts, e);
    if (!status) status = add_rise(line, step, x_rise, shift, y_most, m, cuts, e);
    if (status) return status;
    part = *window;
    part.lo = x_rise;
    status = acct_grid_set(grid, step, &part, m->order, 0.0, log_error);
    if (!status) status = add_grid(line, grid, shift, 0.0, m, cuts, e);
    if (status) return status;
    /* the way down at hi is left out */
    if (!factors(step, cuts, m->order, window->hi, window->hi, shift / var, 0.0, &log_a, &log_c, &reach))
        return ACCT_EPRECISION;
    const double front = log(shift / (step->sigma * sqrt(2.0 * ACCT_PI))) - m->log_mgf;
    e->a = (e->a + exp(front + log_a)) * ACCT_SLACK;
    e->c = (e->c + exp(front + log_c)) * ACCT_SLACK;
    e->tail_c = (e->tail_c + exp(front + log_c)) * ACCT_SLACK;
    return ACCT_OK;
}

/* e^{iyl}, Im l >= 0 */
ACCT_CLONES
static void direct(int n, double y, const double *restrict l_re, const double *restrict l_im,
                   double *restrict z_re, double *restrict z_im) {
    for (int j = 0; j < n; j++) {
        double s, c;
        acct_vsincos(y * l_re[j], &s, &c);
        const double e = acct_vexp(-y * l_im[j]);
        z_re[j] = e * c;
        z_im[j] = e * s;
    }
}

void acct_split_line_step(acct_split_line *line, double dy) {
    double most = 0.0, sum = 0.0;
    line->dy = dy;
    direct(line->count, dy, line->l_re, line->l_im, line->z1_re, line->z1_im);
    line->dead = line->count;
    line->dead_size = line->dead_large = 0.0;
    /* what the moments leave out of C must be nothing */
    for (int j = 0; j < line->count; j++) most += line->large[j];
    line->low = 0;
    for (int j = 0; j < line->count && sum <= 1e-19 * most; j++) {
        if (j % ACCT_GL_ORDER == 0) line->low = j;
        sum += line->large[j];
    }
    line->fresh = 1;
}

/* moments of the weights below `low`: sum w (L - log(1-q))^k / k! */
static void set_moments(acct_split_line *line, int low) {
    line->low = low;
    line->low_large = 0.0;
    for (int i = 0; i < 3; i++) line->m_size[i] = 0.0;
    for (int i = 0; i < ACCT_SPLIT_MOMENTS; i++) line->m_re[i] = line->m_im[i] = 0.0;
    for (int j = 0; j < low; j++) {
        const double er = line->l_re[j] - line->origin, ei = line->l_im[j];
        const double modulus = sqrt(er * er + ei * ei);
        double pr = line->w_re[j], pi = line->w_im[j];
        for (int i = 0; i < ACCT_SPLIT_MOMENTS; i++) {
            line->m_re[i] += pr;
            line->m_im[i] += pi;
            const double over = 1.0 / (i + 1), nr = (pr * er - pi * ei) * over;
            pi = (pr * ei + pi * er) * over;
            pr = nr;
        }
        line->m_size[0] += line->size[j];
        line->m_size[1] += line->size[j] * modulus;
        line->m_size[2] += line->size[j] * modulus * modulus;
        line->low_large += line->large[j];
    }
}

/* the nodes below this are within |ye| <= 1/4 */
static int low_at(const acct_split_line *line, double y) {
    int low = line->low;
    while (low > 0) {
        const double er = line->l_re[low - 1] - line->origin, ei = line->l_im[low - 1];
        if (y * y * (er * er + ei * ei) <= 0.0625) break;
        low -= ACCT_GL_ORDER;
    }
    return low;
}

/* what of the nodes is to be taken one by one for y0 <= y <= y1 */
static void set_ranges(acct_split_line *line, double y0, double y1) {
    const int low = low_at(line, y1);
    if (low != line->low || line->fresh) {
        set_moments(line, low);
        line->rest_re = line->rest_im = line->rest_l_re = line->rest_l_im = 0.0;
        for (int j = low; j < line->count; j++) {
            line->rest_re += line->w_re[j];
            line->rest_im += line->w_im[j];
            line->rest_l_re += line->w_re[j] * line->l_re[j] - line->w_im[j] * line->l_im[j];
            line->rest_l_im += line->w_re[j] * line->l_im[j] + line->w_im[j] * line->l_re[j];
        }
    }
    line->fresh = 0;
    while (line->dead > low && y0 * line->l_im[line->dead - ACCT_GL_ORDER] > 48.0)
        for (int i = 0; i < ACCT_GL_ORDER; i++) {
            line->dead--;
            line->dead_size += line->size[line->dead];
            line->dead_large += line->large[line->dead];
        }
}

/* The low nodes' sum of w v(yl), and the rest's but for their w e^{iyl}: v(t) = e^{it} - 1 - it, and
 * with t0 = y origin and e = L - log(1-q), v(t0 + ye) = v(t0) + iye (e^{it0} - 1) + e^{it0} v(ye) */
static void outer_sums(const acct_split_line *line, double y, double *re, double *im) {
    const double t0 = y * line->origin, half = sin(0.5 * t0), square = t0 * t0;
    const double d_re = -2.0 * half * half, d_im = sin(t0);
    const double inner = 1.0 / 120.0 - square * (1.0 / 5040.0 - square / 362880.0);
    const double series = t0 * square * (-1.0 / 6.0 + square * inner);
    const double v_im = square < 0.01 ? series : d_im - t0;
    double sr = 0.0, si = 0.0;
    for (int i = ACCT_SPLIT_MOMENTS - 1; i >= 2; i--) { /* Horner in iy */
        const double ar = line->m_re[i] + sr, ai = line->m_im[i] + si;
        sr = -y * ai;
        si = y * ar;
    }
    const double tr = -y * si, ti = y * sr; /* once more */
    const double ur = -y * line->m_im[1], ui = y * line->m_re[1];
    *re = line->m_re[0] * d_re - line->m_im[0] * v_im + ur * d_re - ui * d_im +
          tr * (1.0 + d_re) - ti * d_im - (line->rest_re - y * line->rest_l_im);
    *im = line->m_re[0] * v_im + line->m_im[0] * d_re + ur * d_im + ui * d_re +
          tr * d_im + ti * (1.0 + d_re) - (line->rest_im + y * line->rest_l_re);
}

/* the nodes in between, then one step on */
ACCT_CLONES
static void next(int n, const double *restrict w_re, const double *restrict w_im,
                 const double *restrict c_re, const double *restrict c_im,
                 const double *restrict z1_re, const double *restrict z1_im, double *restrict z_re,
                 double *restrict z_im, double *restrict sums) {
    double ar[LANES] = {0}, ai[LANES] = {0}, br[LANES] = {0}, bi[LANES] = {0};
    for (int j = 0; j < n; j += LANES)
        for (int i = 0; i < LANES; i++) {
            const int k = j + i;
            const double r = z_re[k], s = z_im[k];
            ar[i] += w_re[k] * r - w_im[k] * s;
            ai[i] += w_re[k] * s + w_im[k] * r;
            br[i] += c_re[k] * r - c_im[k] * s;
            bi[i] += c_re[k] * s + c_im[k] * r;
            z_re[k] = r * z1_re[k] - s * z1_im[k];
            z_im[k] = r * z1_im[k] + s * z1_re[k];
        }
    sums[0] = (ar[0] + ar[1]) + (ar[2] + ar[3]);
    sums[1] = (ai[0] + ai[1]) + (ai[2] + ai[3]);
    sums[2] = (br[0] + br[1]) + (br[2] + br[3]);
    sums[3] = (bi[0] + bi[1]) + (bi[2] + bi[3]);
}

void acct_split_line_block(acct_split_line *line, long first, int n,
                           double sums[ACCT_SPLIT_BLOCK][4], double *of_a, double *of_c) {
    const double y0 = (double)first * line->dy, y1 = (double)(first + n - 1) * line->dy;
    set_ranges(line, y0, y1);
    const int low = line->low, active = line->dead - low;
    direct(active, y0, line->l_re + low, line->l_im + low, line->z_re + low, line->z_im + low);
    for (int i = 0; i < n; i++) {
        double re, im;
        next(active, line->w_re + low, line->w_im + low, line->c_re + low, line->c_im + low,
             line->z1_re + low, line->z1_im + low, line->z_re + low, line->z_im + low, sums[i]);
        outer_sums(line, (double)(first + i) * line->dy, &re, &im);
        sums[i][0] += re;
        sums[i][1] += im;
    }
    /* moments: the remainder of the series, |ye| <= 1/4, and their own round-off */
    const double t0 = y1 * fabs(line->origin), d0 = fmin(t0, 2.0), v0 = fmin(t0 * t0, 2.0 + t0);
    const double first_size = y1 * line->m_size[1], second = y1 * y1 * line->m_size[2];
    const double gone = exp(-48.0);
    *of_a = second * 1e-14 + gone * line->dead_size +
            (96.0 + line->count) * ACCT_U * (line->m_size[0] * v0 + first_size * d0 + second);
    *of_c = line->low_large + gone * line->dead_large;
}

ACCT_CLONES
double acct_split_line_large(const acct_split_line *line, double y) {
    const double *restrict large = line->large, *restrict l_im = line->l_im;
    double sum[LANES] = {0};
    for (int j = 0; j < line->count; j += LANES)
        for (int i = 0; i < LANES; i++) sum[i] += large[j + i] * acct_vexp(-y * l_im[j + i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void acct_split_line_roundoff(const acct_split_line *line, double y, double *of_a, double *of_c) {
    double a = 0.0, c = 0.0;
    const int low = low_at(line, y);
    const double of_z = (32.0 + 24.0 * ACCT_SPLIT_BLOCK + line->count / LANES) * ACCT_U;
    for (int j = 0; j < line->count; j++) {
        const double size = sqrt(line->l_re[j] * line->l_re[j] + line->l_im[j] * line->l_im[j]);
        const double t = y * size, v = fmin(t * t, 2.0 + t), turned = y * line->moved[j];
        a += line->w_err[j] * v + line->size[j] * fmin(t, 2.0) * turned;
        c += line->c_err[j] + line->large[j] * (of_z + turned);
        /* e^{iyl}, and the sums of w and of wl that are taken off again */
        if (j >= low) a += line->size[j] * of_z * (2.0 + t);
    }
    *of_a = a * ACCT_SLACK;
    *of_c = c * ACCT_SLACK;
}
