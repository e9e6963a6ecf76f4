/* The game of replaced records: the largest of a few expectations, step after step (Theorem S19). */
#ifndef ACCT_GAME_H
#define ACCT_GAME_H

#include <stddef.h>

/* The laws of a game on the losses kD.
 *
 * near_mass has a row of `near` masses at the losses near_place[] * D for each law, with |place| < stride; far_mass a
 * row of below + above + 1 masses at the multiples -below..above of stride * D.  share[0..stride-1] are the shares of
 * the second of two knots stride * D apart in the chord at the places between; decay[0..above * stride] are e^{-kD}
 * and gain[] one minus them. */
typedef struct acct_game {
    ptrdiff_t laws;
    ptrdiff_t near, stride, below, above;
    const ptrdiff_t *near_place;
    const double *near_mass;
    const double *far_mass;
    const double *share;
    const double *decay;
    const double *gain;
    const double *infinite; /* mass of infinite loss, of each law */
} acct_game;

/* values[0..size-1] bound at kD what is reached: replaces them `count` times by what the best law makes of them, a
 * valid bound again.  Values at -kD are those of symmetry, those beyond the last knot at most its own.
 * work: workspace, acct_game_work() doubles · requires size - 1 to be a multiple of stride, below >= 1, no aliasing */
void acct_game_play(const acct_game *game, ptrdiff_t size, double *values, ptrdiff_t count, double *work);

ptrdiff_t acct_game_work(const acct_game *game, ptrdiff_t size);

#endif
