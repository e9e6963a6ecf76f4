/* How fast the characteristic function of a tilted replace-one loss decays (Theorem D22). */
#ifndef ACCT_EXCHANGE_DECAY_H
#define ACCT_EXCHANGE_DECAY_H

#include "exchange_law.h"

#define ACCT_EXCHANGE_SCALES 6
#define ACCT_EXCHANGE_PIECES 512

/* pieces of the noise on which the loss has at least a uniform law: its length and the mass */
typedef struct {
    int count[ACCT_EXCHANGE_SCALES]; /* pieces of each width */
    double length[ACCT_EXCHANGE_PIECES], mass[ACCT_EXCHANGE_PIECES];
} acct_exchange_decay;

/* log_mgf: an upper bound on K at the order c */
void acct_exchange_decay_set(acct_exchange_decay *decay, const acct_exchange_law *law, double c, double mode,
                             double log_mgf);

/* ensures |phi(y')| <= returned for every y' >= y > 0 */
double acct_exchange_decay_at(const acct_exchange_decay *decay, double y);

#endif
