/* The functions of libaccountant for .Call. Vectors have one length, which R saw to; an answer is a matrix of two
 * columns with the statuses as an attribute. */
#include <accountant.h>

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

#define AT(vector, i) (REAL(vector)[i])

/* n rows, and in *statuses their statuses; both are protected */
static SEXP answers(R_xlen_t n, int **statuses) {
    SEXP found = PROTECT(Rf_allocMatrix(REALSXP, (int)n, 2)), status = PROTECT(Rf_allocVector(INTSXP, n));
    Rf_setAttrib(found, Rf_install("status"), status);
    *statuses = INTEGER(status);
    return found;
}

static void put(SEXP found, R_xlen_t i, accountant_bounds b) {
    REAL(found)[i] = b.lower;
    REAL(found)[i + Rf_nrows(found)] = b.upper;
}

typedef int four(double, double, double, double, int, accountant_bounds *);

static SEXP equal_steps(four *question, SEXP q, SEXP sigma, SEXP steps, SEXP given, SEXP direction) {
    int *status;
    accountant_bounds b;
    const R_xlen_t n = Rf_xlength(q);
    SEXP found = answers(n, &status);
    for (R_xlen_t i = 0; i < n; i++) {
        status[i] = question(AT(q, i), AT(sigma, i), AT(steps, i), AT(given, i), Rf_asInteger(direction), &b);
        put(found, i, b);
        if (i % 64 == 63) R_CheckUserInterrupt();
    }
    UNPROTECT(2);
    return found;
}

static SEXP epsilon_bounds(SEXP q, SEXP sigma, SEXP steps, SEXP delta, SEXP direction) {
    return equal_steps(accountant_epsilon_bounds, q, sigma, steps, delta, direction);
}

static SEXP delta_bounds(SEXP q, SEXP sigma, SEXP steps, SEXP epsilon, SEXP direction) {
    return equal_steps(accountant_delta_bounds, q, sigma, steps, epsilon, direction);
}

static int renyi(double q, double sigma, double steps, double order, int direction, accountant_bounds *out) {
    (void)steps;
    return accountant_renyi_bounds(q, sigma, order, direction, out);
}

static SEXP rdp_bounds(SEXP q, SEXP sigma, SEXP order, SEXP direction) {
    return equal_steps(renyi, q, sigma, order, order, direction);
}

/* the columns are epsilon and the order */
static int by_renyi(double q, double sigma, double steps, double delta, int direction, accountant_bounds *out) {
    (void)direction;
    return accountant_epsilon_renyi_upper(q, sigma, steps, delta, &out->lower, &out->upper);
}

static SEXP epsilon_rdp(SEXP q, SEXP sigma, SEXP steps, SEXP delta, SEXP direction) {
    return equal_steps(by_renyi, q, sigma, steps, delta, direction);
}

static int gaussian_epsilon(double q, double sigma, double steps, double delta, int direction,
                            accountant_bounds *out) {
    (void)q, (void)steps, (void)direction;
    return accountant_gaussian_epsilon_bounds(sigma, delta, out);
}

static int gaussian_delta(double q, double sigma, double steps, double epsilon, int direction,
                          accountant_bounds *out) {
    (void)q, (void)steps, (void)direction;
    return accountant_gaussian_delta_bounds(sigma, epsilon, out);
}

static SEXP gaussian_epsilon_bounds(SEXP sigma, SEXP delta) {
    return equal_steps(gaussian_epsilon, sigma, sigma, sigma, delta, Rf_ScalarInteger(ACCOUNTANT_EITHER));
}

static SEXP gaussian_delta_bounds(SEXP sigma, SEXP epsilon) {
    return equal_steps(gaussian_delta, sigma, sigma, sigma, epsilon, Rf_ScalarInteger(ACCOUNTANT_EITHER));
}

/* the column upper is not used */
#define CALIBRATION(name)                                                                                       \
    static int name##_one(double target, double delta, double first, double second, int direction,              \
                          accountant_bounds *out) {                                                             \
        (void)direction;                                                                                        \
        out->upper = 0.0;                                                                                       \
        return accountant_calibrate_##name(target, delta, first, second, &out->lower);                          \
    }                                                                                                           \
    static SEXP calibrate_##name(SEXP target, SEXP delta, SEXP first, SEXP second) {                            \
        return equal_steps(name##_one, target, delta, first, second, Rf_ScalarInteger(ACCOUNTANT_EITHER));      \
    }
CALIBRATION(sigma)
CALIBRATION(steps)
CALIBRATION(q)

/* list(shift, weight, c(no_shift, weight_error)), in memory of R that the caller's list keeps */
static accountant_shifts law_of(SEXP law) {
    SEXP shift = VECTOR_ELT(law, 0), weight = VECTOR_ELT(law, 1), rest = VECTOR_ELT(law, 2);
    return (accountant_shifts){.count = (size_t)Rf_xlength(shift),
                               .shift = REAL(shift),
                               .weight = REAL(weight),
                               .no_shift = AT(rest, 0),
                               .weight_error = AT(rest, 1)};
}

typedef int of_law(const accountant_shifts *, double, double, double, int, accountant_bounds *);

static SEXP random_shifts(of_law *question, SEXP law, SEXP sigma, SEXP steps, SEXP given, SEXP direction) {
    int *status;
    accountant_bounds b;
    const accountant_shifts shifts = law_of(law);
    const R_xlen_t n = Rf_xlength(sigma);
    SEXP found = answers(n, &status);
    for (R_xlen_t i = 0; i < n; i++) {
        status[i] = question(&shifts, AT(sigma, i), AT(steps, i), AT(given, i), Rf_asInteger(direction), &b);
        put(found, i, b);
        R_CheckUserInterrupt();
    }
    UNPROTECT(2);
    return found;
}

static SEXP mixture_epsilon_bounds(SEXP law, SEXP sigma, SEXP steps, SEXP delta, SEXP direction) {
    return random_shifts(accountant_mixture_epsilon_bounds, law, sigma, steps, delta, direction);
}

static SEXP mixture_delta_bounds(SEXP law, SEXP sigma, SEXP steps, SEXP epsilon, SEXP direction) {
    return random_shifts(accountant_mixture_delta_bounds, law, sigma, steps, epsilon, direction);
}

typedef int of_parts(const accountant_part *, size_t, double, int, accountant_bounds *);

/* `laws` has a law of shifts, or NULL, for each part */
static SEXP composition(of_parts *question, SEXP q, SEXP sigma, SEXP steps, SEXP laws, SEXP given, SEXP direction) {
    int *status;
    accountant_bounds b;
    const R_xlen_t n = Rf_xlength(q), asked = Rf_xlength(given);
    accountant_part *part = (accountant_part *)R_alloc((size_t)n + 1, sizeof *part);
    accountant_shifts *shifts = (accountant_shifts *)R_alloc((size_t)n + 1, sizeof *shifts);
    for (R_xlen_t i = 0; i < n; i++) {
        part[i] = (accountant_part){AT(q, i), AT(sigma, i), AT(steps, i), NULL};
        if (Rf_isNull(VECTOR_ELT(laws, i))) continue;
        shifts[i] = law_of(VECTOR_ELT(laws, i));
        part[i].shifts = &shifts[i];
    }
    SEXP found = answers(asked, &status);
    for (R_xlen_t i = 0; i < asked; i++) {
        status[i] = question(part, (size_t)n, AT(given, i), Rf_asInteger(direction), &b);
        put(found, i, b);
        R_CheckUserInterrupt();
    }
    UNPROTECT(2);
    return found;
}

static SEXP composition_epsilon_bounds(SEXP q, SEXP sigma, SEXP steps, SEXP laws, SEXP delta, SEXP direction) {
    return composition(accountant_composition_epsilon_bounds, q, sigma, steps, laws, delta, direction);
}

static SEXP composition_delta_bounds(SEXP q, SEXP sigma, SEXP steps, SEXP laws, SEXP epsilon, SEXP direction) {
    return composition(accountant_composition_delta_bounds, q, sigma, steps, laws, epsilon, direction);
}

static SEXP status_message(SEXP status) {
    return Rf_mkString(accountant_status_message(Rf_asInteger(status)));
}

static SEXP version(void) { return Rf_mkString(accountant_version()); }

#define ENTRY(name, arguments) {#name, (DL_FUNC)&name, arguments}

static const R_CallMethodDef entries[] = {
    ENTRY(epsilon_bounds, 5),
    ENTRY(delta_bounds, 5),
    ENTRY(rdp_bounds, 4),
    ENTRY(epsilon_rdp, 5),
    ENTRY(gaussian_epsilon_bounds, 2),
    ENTRY(gaussian_delta_bounds, 2),
    ENTRY(calibrate_sigma, 4),
    ENTRY(calibrate_steps, 4),
    ENTRY(calibrate_q, 4),
    ENTRY(mixture_epsilon_bounds, 5),
    ENTRY(mixture_delta_bounds, 5),
    ENTRY(composition_epsilon_bounds, 6),
    ENTRY(composition_delta_bounds, 6),
    ENTRY(status_message, 1),
    ENTRY(version, 0),
    {NULL, NULL, 0},
};

void R_init_accountant(DllInfo *library);

void R_init_accountant(DllInfo *library) {
    R_registerRoutines(library, NULL, entries, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
    R_forceSymbols(library, TRUE);
}
