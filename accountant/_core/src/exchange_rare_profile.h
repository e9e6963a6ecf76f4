/* Brackets by lines whose largest losses are apart (exchange_rare.h). */
#ifndef ACCT_EXCHANGE_RARE_PROFILE_H
#define ACCT_EXCHANGE_RARE_PROFILE_H

#include "bounds.h"
#include "exchange_rare.h"

/* intersect *out with what lines show */
void acct_exchange_rare_epsilon(acct_exchange_rare *rare, double delta, acct_bounds *out);
void acct_exchange_rare_delta(acct_exchange_rare *rare, double epsilon, acct_bounds *out);

#endif
