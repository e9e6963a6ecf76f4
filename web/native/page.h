/* What the web page asks of the core beside the public functions of accountant.h. Statuses, brackets and domains
 * are those of that header. */
#ifndef ACCOUNTANT_PAGE_H
#define ACCOUNTANT_PAGE_H

#include "accountant.h"

/* numerator / denominator, both positive, rounded up where it is no double */
ACCOUNTANT_API double page_ratio_up(double numerator, double denominator);

/* sets     out[i] to the bracket of epsilon(delta[i]) after steps[i] steps; either direction
 * returns  the first status that is not ACCOUNTANT_OK; out[i] is then [0, inf] */
ACCOUNTANT_API int page_epsilon_curve(double q, double sigma, const double *steps, const double *delta,
                                      int count, accountant_bounds *out);

/* sets     *rate to an upper bound on the true-positive rate of any attack whose false-positive rate is at most
 *          `false_positives`, in [0, 1] (Theorem C16, docs/theorems_conversions.md) */
ACCOUNTANT_API int page_attack_rate(double q, double sigma, double steps, double false_positives,
                                    double *rate);

/* sets     *epsilon to a lower bound on epsilon(delta) under zero-out of a run that shuffles its records in every
 *          epoch and goes through them in `steps` batches (Theorem S12 (ii), docs/theorems_sampling.md)
 * requires whole numbers >= 1 below 2^53 */
ACCOUNTANT_API int page_shuffled_epsilon_lower(double sigma, double steps, double epochs, double delta,
                                               double *epsilon);

/* sets     *divergence to an upper bound on the Rényi divergence of one epoch in which every record picks one of
 *          `steps` batches, of an order from 2 to 512; INFINITY where none is known (Theorems S10, S26)
 * requires sigma in [0.15, 1e6], one direction */
ACCOUNTANT_API int page_allocation_renyi_upper(double sigma, double steps, int order, int direction,
                                               double *divergence);

/* sets     *epsilon to an upper bound on epsilon(delta) of so many epochs of that, by these divergences; never above
 *          that of full batches */
ACCOUNTANT_API int page_allocation_epsilon_upper(double sigma, double steps, double epochs, double delta,
                                                 double *epsilon);

/* out[i] = the elementary function of x[i] and y[i], by its number in elementary.h: for measuring errors */
ACCOUNTANT_API int page_elementary(int function, const double *x, const double *y, int count, double *out);

#endif
