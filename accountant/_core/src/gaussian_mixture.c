#include "gaussian_mixture.h"

#include <math.h>

#include "gauss_legendre.h"
#include "mixture_loss.h"
#include "one_direction.h"
#include "rounding.h"
#include "single_mixture.h"
#include "status.h"

static int set(acct_mixture *mixture, const acct_mixture_part *part, double steps, int direction) {
    if (!(part->sigma > 1e-100 && part->sigma < 1e100)) return ACCT_EDOMAIN;
    if (!(acct_valid_steps(steps) && steps >= 1.0)) return ACCT_EDOMAIN;
    if (direction != ACCT_REMOVE && direction != ACCT_ADD) return ACCT_EDOMAIN;
    return acct_mixture_set(mixture, part);
}

int acct_gaussian_mixture_delta(const acct_mixture_part *part, double steps, double epsilon, int direction,
                                acct_bounds *out) {
    acct_mixture mixture;
    acct_workspace w;
    *out = (acct_bounds){0.0, 1.0};
    int status = acct_valid_epsilon(epsilon) ? set(&mixture, part, steps, direction) : ACCT_EDOMAIN;
    if (status) return status;
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    if (steps == 1.0) {
        acct_single_mixture_delta(&step, epsilon, direction, out);
    } else {
        status = acct_workspace_alloc(&w, ACCT_MIXTURE_NODES);
        if (!status) status = acct_delta_one_way(&w, &step, steps, epsilon, direction, out);
        acct_workspace_free(&w);
        if (status) return status;
    }
    out->upper = acct_min(out->upper, acct_ever_sampled_upper(&step, steps));
    out->lower = acct_min(out->lower, out->upper);
    return ACCT_OK;
}

int acct_gaussian_mixture_epsilon(const acct_mixture_part *part, double steps, double delta, int direction,
                                  acct_bounds *out) {
    acct_mixture mixture;
    acct_workspace w;
    *out = (acct_bounds){0.0, INFINITY};
    int status = acct_valid_delta(delta) ? set(&mixture, part, steps, direction) : ACCT_EDOMAIN;
    if (status) return status;
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    if (acct_ever_sampled_upper(&step, steps) <= delta) {
        out->upper = 0.0;
        return ACCT_OK;
    }
    if (steps == 1.0) {
        acct_single_mixture_epsilon(&step, delta, direction, out);
        return ACCT_OK;
    }
    status = acct_workspace_alloc(&w, ACCT_MIXTURE_NODES);
    if (!status) status = acct_epsilon_one_way(&w, &step, steps, delta, direction, out);
    acct_workspace_free(&w);
    out->lower = acct_min(out->lower, out->upper);
    return status;
}
