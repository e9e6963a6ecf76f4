#include "heterogeneous_line.h"

#include <math.h>
#include <stdlib.h>

#include "bounds.h"
#include "heterogeneous_workspace.h"
#include "order.h"
#include "rounding.h"
#include "sampled_transform.h"

/* terms times nodes of sums that no decay ends */
static const double MOST_DIRECT_WORK = 3e7;

/* log of what a product beyond the last node of its own is to be below; ACCT_LINE_CUT with room for rounding */
static const double LOG_CUT = -41.0;

/* points times nodes of all parts together that may be summed, some 1 ns each */
static const double MOST_WORK = 3e7;

/* how often a line is made longer where its decay does not end it */
#define MOST_TRIES 4

static int start(acct_heterogeneous_workspace *w, const acct_part *parts, int count, int direction) {
    double steps;
    if (!acct_heterogeneous_valid(parts, count, direction, &steps) || direction == ACCT_EITHER) return ACCT_EDOMAIN;
    const int status = acct_heterogeneous_alloc(w, parts, count, direction, steps);
    if (!status) acct_heterogeneous_set_groups(w, count);
    return status;
}

int acct_heterogeneous_line_logs(const acct_part *parts, int count, int direction, double log_delta, int64_t size,
                                 const double *b, double *value) {
    acct_heterogeneous_workspace w;
    const int status = start(&w, parts, count, direction);
    if (status) return status;
    acct_heterogeneous_set_coarse(&w, log_delta, INFINITY);
    acct_coarse_composition m = {w.coarse, w.groups, direction};
    for (int64_t i = 0; i < size; i++) {
        acct_cumulants k;
        acct_coarse_cumulants(&m, b[i], &k);
        value[i] = k.log_mgf;
    }
    acct_heterogeneous_free(&w);
    return ACCT_OK;
}

/* log of an upper bound on the modulus at all nodes beyond the sum's points */
static double beyond(const acct_heterogeneous_sum *sums) {
    double most = -INFINITY;
    for (int j = 0; j <= sums->levels; j++) most = acct_max(most, sums->decay[j]);
    return most;
}

/* the sum over all parts, as long as their decay asks for and there is room */
static int add_up(acct_heterogeneous_workspace *w, acct_heterogeneous_plan *plan, int64_t room, int *decays) {
    const double end = (double)room - 1.0;
    double least = plan->y_near;
    int status = ACCT_OK;
    *decays = 0;
    for (int i = 0; i < MOST_TRIES && !status && !*decays; i++) {
        const double points = acct_min(ceil(least / plan->dy), end) + 1.0;
        const int last = points > end || i == MOST_TRIES - 1;
        plan->count = last ? (int)room : (int)points;
        const double placed = (plan->count - 1) * plan->dy;
        plan->far = i ? end * plan->dy : 0.0;
        plan->paths = i && w->steps < ACCT_MOST_STEPS_OF_PATHS;
        plan->flat = i ? 0.3 * placed : acct_max(1.2 * sqrt(w->steps) / plan->spread, placed);
        /* the decay of groups shows where that of many parts will end */
        const int whole = w->groups == w->count;
        status = acct_heterogeneous_add_all(w, plan, whole ? w->part : w->group, w->groups);
        *decays = beyond(&w->sums) < LOG_CUT - 1.0;
        if (!status && !whole && (*decays || last)) {
            status = acct_heterogeneous_add_all(w, plan, w->part, w->count);
            *decays = beyond(&w->sums) < LOG_CUT - 1.0;
        }
        if (last) break;
        least = acct_max(acct_heterogeneous_sum_stop(&w->sums, 0.1 * ACCT_LINE_CUT) * 1.05, 1.5 * placed);
    }
    return status;
}

/* the product at node k, from the sums over the parts as heterogeneous_sum.c makes terms of them */
static int set_node(const acct_heterogeneous_sum *sums, double sign, int k, acct_line_nodes *nodes) {
    const double power = acct_sum_total(&sums->log_mod[k]), above = sums->high[k] + 1e-9 * (1.0 + fabs(sums->high[k]));
    const double turn = sign * acct_sum_total(&sums->arg[k]) + k * sums->plan.dy * acct_sum_total(&sums->drift);
    const double size = exp(power), most = exp(above) * (1.0 + 1e-12) + ACCT_UNDERFLOW, relative = sums->relative[k];
    const double moved = relative < ACCT_MOST_RELATIVE ? size * expm1(relative) : size + most;
    nodes->re[k] = size * cos(turn);
    nodes->im[k] = size * sin(turn);
    nodes->err[k] = moved * ACCT_SLACK + size * ACCT_U * (64.0 + 32.0 * sums->size[k]) + ACCT_UNDERFLOW;
    nodes->most[k] = most;
    return isfinite(size) && isfinite(turn) && nodes->err[k] < 1.0 && most < 1.5;
}

/* the sums of all parts at one order; adds up their logarithms */
static int set_sums(const acct_part *parts, int count, int direction, double b, acct_sampled_sum *sums, double *log_mgf,
                    double *err) {
    int status = ACCT_OK;
    for (int j = 0; j < count; j++) sums[j].memory = NULL;
    for (int j = 0; j < count && !status; j++) {
        status = acct_sampled_sum_set(&sums[j], &parts[j], direction, b);
        if (status) break;
        *log_mgf += sums[j].log_mgf;
        *err += sums[j].log_mgf_err + 2.0 * (double)count * ACCT_U * fabs(sums[j].log_mgf);
    }
    return status;
}

static void free_sums(acct_sampled_sum *sums, int count) {
    for (int j = 0; j < count; j++) acct_sampled_sum_free(&sums[j]);
}

/* the nodes, all there is room for or up to where the product has decayed, and the sums at them */
static int fill_nodes(acct_sampled_sum *sums, int count, double dy, acct_line_nodes *nodes, int *decays) {
    const double end = ((double)nodes->room - 1.0) * dy;
    double y = 16.0 * dy, work = 0.0;
    for (; y < end && !*decays; y *= 1.1) {
        double log_most = 0.0;
        for (int j = 0; j < count; j++) log_most += acct_sampled_sum_log_modulus(&sums[j], y);
        *decays = log_most < LOG_CUT - 1.0;
    }
    nodes->kept = *decays ? (int64_t)acct_min(ceil(y / dy) + 1.0, (double)nodes->room) : nodes->room;
    for (int j = 0; j < count; j++) work += (double)sums[j].terms.count * (double)nodes->kept;
    if (work > MOST_DIRECT_WORK) return ACCT_EPRECISION;
    for (int64_t k = 0; k < nodes->kept; k++) {
        nodes->re[k] = nodes->most[k] = 1.0;
        nodes->im[k] = nodes->err[k] = 0.0;
    }
    for (int j = 0; j < count; j++) acct_sampled_sum_multiply(&sums[j], dy, nodes);
    return ACCT_OK;
}

static int directly(const acct_part *parts, int count, const acct_sampled_line *line, acct_line_nodes *nodes,
                    acct_sampled_orders *out, int *decays) {
    double steps;
    if (!acct_heterogeneous_valid(parts, count, line->direction, &steps)) return ACCT_EDOMAIN;
    acct_sampled_sum *sums = malloc((size_t)count * sizeof *sums);
    if (!sums) return ACCT_ENOMEM;
    *decays = 0;
    *out = (acct_sampled_orders){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    int status = set_sums(parts, count, line->direction, line->b, sums, &out->log_mgf, &out->log_mgf_err);
    if (!status) status = fill_nodes(sums, count, line->dy, nodes, decays);
    free_sums(sums, count);
    if (!status) {
        status = set_sums(parts, count, line->direction, line->right_b, sums, &out->right_log, &out->right_err);
        free_sums(sums, count);
    }
    if (!status) {
        status = set_sums(parts, count, line->direction, line->left_b, sums, &out->left_log, &out->left_err);
        free_sums(sums, count);
    }
    free(sums);
    return status;
}

int acct_heterogeneous_line(const acct_part *parts, int count, const acct_sampled_line *line, acct_line_nodes *nodes,
                            acct_sampled_orders *orders, int *decays) {
    acct_heterogeneous_workspace w;
    acct_cumulants k;
    if (line->direct) return directly(parts, count, line, nodes, orders, decays);
    int status = start(&w, parts, count, line->direction);
    if (status) return status;
    acct_heterogeneous_set_coarse(&w, line->log_delta, INFINITY);
    acct_coarse_composition m = {w.coarse, w.groups, line->direction};
    acct_coarse_cumulants(&m, line->b, &k);
    acct_heterogeneous_plan plan = {.direction = line->direction, .steps = w.steps, .most_loss = INFINITY};
    plan.deviations = acct_window_deviations(w.steps, line->log_delta);
    plan.b = line->b;
    plan.right_b = line->right_b;
    plan.left_b = line->left_b;
    plan.dy = line->dy;
    plan.log_error = line->log_error;
    plan.spread = sqrt(k.variance);
    plan.bulk = acct_coarse_bulk(&m, line->b);
    plan.y_near = 1.1 * sqrt(-2.0 * LOG_CUT) / plan.spread;
    plan.most_work = MOST_WORK / count;
    status = add_up(&w, &plan, nodes->room < ACCT_HETEROGENEOUS_POINTS ? nodes->room : ACCT_HETEROGENEOUS_POINTS, decays);
    const acct_heterogeneous_sum *sums = &w.sums;
    nodes->kept = status ? 0 : plan.count;
    for (int j = 0; j < nodes->kept && !status; j++)
        if (!set_node(sums, line->direction == ACCT_REMOVE ? 1.0 : -1.0, j, nodes)) status = ACCT_EPRECISION;
    if (!status) {
        const double log_mgf = acct_sum_total(&sums->log_mgf), round = (16.0 + count) * ACCT_U;
        *orders = (acct_sampled_orders){
            log_mgf, sums->log_mgf_err * ACCT_SLACK + 8.0 * ACCT_U * fabs(log_mgf),
            sums->right_log, sums->right_err * ACCT_SLACK + round * fabs(sums->right_log),
            sums->left_log, sums->left_err * ACCT_SLACK + round * fabs(sums->left_log),
            sums->outside * ACCT_SLACK,
        };
    }
    acct_heterogeneous_free(&w);
    return status;
}
