/* How fast the characteristic function of a tilted replace-one loss decays (Theorem D22). */
#ifndef ACCT_EXCHANGE_DECAY_H
#define ACCT_EXCHANGE_DECAY_H

#include "exchange_law.h"
#include "soft_threshold.h"

#define ACCT_EXCHANGE_SCALES 6
#define ACCT_EXCHANGE_PIECES 512

/* pieces of the noise on which the loss has at least a uniform law: its length and the mass */
typedef struct {
    int count[ACCT_EXCHANGE_SCALES]; /* pieces of each width */
    double length[ACCT_EXCHANGE_PIECES], mass[ACCT_EXCHANGE_PIECES];
} acct_exchange_decay;

/* log_mgf: an upper bound on K at the order c; outer: steps that count as large are left out, scale 0: none are */
void acct_exchange_decay_set(acct_exchange_decay *decay, const acct_exchange_law *law, double c, double mode,
                             double log_mgf, acct_threshold outer);

/* the chance that a step counts as large, rounded up; up: U of its noise */
double acct_exchange_large_chance(acct_threshold outer, double up);

/* ensures |phi(y')| <= returned for every y' >= y > 0 */
double acct_exchange_decay_at(const acct_exchange_decay *decay, double y);

#endif
