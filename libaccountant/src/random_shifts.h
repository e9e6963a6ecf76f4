/* The caller's law of shifts in the core's terms. */
#ifndef ACCOUNTANT_RANDOM_SHIFTS_H
#define ACCOUNTANT_RANDOM_SHIFTS_H

#include "accountant.h"
#include "mixture_loss.h"

/* sets     *part, which points into the caller's arrays; whether they are a law is for acct_mixture_set to say
 * returns  0 where there is no law, no array, or too many shifts */
int acct_random_shifts(const accountant_shifts *law, double sigma, acct_mixture_part *part);

#endif
