/* Asks the questions of a file and compares the answers, bit for bit.
 *
 * Usage: cases FILE [exact|near].  A line is the name of a public function without its prefix, its arguments,
 * "=", and the status and the numbers expected; numbers are hexadecimal doubles, an array follows its
 * length.  libaccountant/tests/make_cases.py writes the file.  `near` is for answers of another platform: brackets must
 * overlap, and what was searched for may differ by 1e-6 of itself or by one step. */
#include "accountant.h"

#include <string.h>

#include "drive.h"

enum { MOST_NUMBERS = 4096, MOST_PARTS = 64, MOST_LINE = 1 << 17 };

typedef struct {
    double number[MOST_NUMBERS];
    int count, next;
} numbers;

static double take(numbers *n) {
    REQUIRE(n->next < n->count, "the line ended early");
    return n->number[n->next++];
}

static int whole(numbers *n) { return (int)take(n); }

static const double *array(numbers *n, size_t count) {
    REQUIRE(n->next + (int)count <= n->count, "the line ended early");
    n->next += (int)count;
    return &n->number[n->next - (int)count];
}

static accountant_shifts law_of(numbers *n, size_t count) {
    accountant_shifts law = {.count = count};
    law.no_shift = take(n);
    law.weight_error = take(n);
    law.shift = array(n, count);
    law.weight = array(n, count);
    return law;
}

/* what is answered: a bracket, one number, or a number that is compared and one that is not */
typedef struct {
    int status, kind;
    double first, second;
} answer;

enum { BRACKET, SEARCHED, BOUND };

static answer of_bracket(int status, accountant_bounds b) {
    return (answer){status, BRACKET, b.lower, b.upper};
}

typedef int four(double, double, double, double, int, accountant_bounds *);

static answer equal_steps(four *question, numbers *n) {
    accountant_bounds b;
    const double q = take(n), sigma = take(n), steps = take(n), given = take(n);
    const int direction = whole(n);
    return of_bracket(question(q, sigma, steps, given, direction, &b), b);
}
static answer epsilon_bounds(numbers *n) { return equal_steps(accountant_epsilon_bounds, n); }
static answer delta_bounds(numbers *n) { return equal_steps(accountant_delta_bounds, n); }

static answer renyi_bounds(numbers *n) {
    accountant_bounds b;
    const double q = take(n), sigma = take(n), order = take(n);
    const int direction = whole(n);
    return of_bracket(accountant_renyi_bounds(q, sigma, order, direction, &b), b);
}

static answer epsilon_renyi_upper(numbers *n) {
    answer a = {.kind = BOUND};
    const double q = take(n), sigma = take(n), steps = take(n), delta = take(n);
    a.status = accountant_epsilon_renyi_upper(q, sigma, steps, delta, &a.first, &a.second);
    return a;
}

static answer gaussian_epsilon_bounds(numbers *n) {
    accountant_bounds b;
    const double sigma = take(n), delta = take(n);
    return of_bracket(accountant_gaussian_epsilon_bounds(sigma, delta, &b), b);
}

static answer gaussian_delta_bounds(numbers *n) {
    accountant_bounds b;
    const double sigma = take(n), epsilon = take(n);
    return of_bracket(accountant_gaussian_delta_bounds(sigma, epsilon, &b), b);
}

typedef int of_law(const accountant_shifts *, double, double, double, int, accountant_bounds *);

static answer random_shifts(of_law *question, numbers *n) {
    accountant_bounds b;
    const double sigma = take(n), steps = take(n), given = take(n);
    const int direction = whole(n), count = whole(n);
    const accountant_shifts law = law_of(n, (size_t)count);
    return of_bracket(question(&law, sigma, steps, given, direction, &b), b);
}
static answer mixture_epsilon_bounds(numbers *n) {
    return random_shifts(accountant_mixture_epsilon_bounds, n);
}
static answer mixture_delta_bounds(numbers *n) { return random_shifts(accountant_mixture_delta_bounds, n); }

typedef int of_parts(const accountant_part *, size_t, double, int, accountant_bounds *);

static answer different_steps(of_parts *question, numbers *n) {
    accountant_bounds b;
    accountant_part part[MOST_PARTS];
    accountant_shifts law[MOST_PARTS];
    const double given = take(n);
    const int direction = whole(n), count = whole(n);
    REQUIRE(count >= 0 && count <= MOST_PARTS, "%d parts", count);
    for (int i = 0; i < count; i++) {
        part[i] = (accountant_part){.q = take(n)};
        part[i].sigma = take(n);
        part[i].steps = take(n);
        const int shifts = whole(n);
        if (shifts == 0) continue;
        law[i] = law_of(n, (size_t)shifts);
        part[i].shifts = &law[i];
    }
    return of_bracket(question(part, (size_t)count, given, direction, &b), b);
}
static answer composition_epsilon_bounds(numbers *n) {
    return different_steps(accountant_composition_epsilon_bounds, n);
}
static answer composition_delta_bounds(numbers *n) {
    return different_steps(accountant_composition_delta_bounds, n);
}

typedef int of_target(double, double, double, double, double *);

static answer calibrated(of_target *question, numbers *n) {
    answer a = {.kind = SEARCHED};
    const double target = take(n), delta = take(n), first = take(n), second = take(n);
    a.status = question(target, delta, first, second, &a.first);
    return a;
}
static answer calibrate_sigma(numbers *n) { return calibrated(accountant_calibrate_sigma, n); }
static answer calibrate_steps(numbers *n) { return calibrated(accountant_calibrate_steps, n); }
static answer calibrate_q(numbers *n) { return calibrated(accountant_calibrate_q, n); }

typedef struct {
    const char *name;
    answer (*ask)(numbers *n);
    int asked;
} function;

#define FUNCTION(name) {#name, name, 0}

static int same(double a, double b) { return a == b || (a != a && b != b); }

static int agrees(const answer *a, const answer *expected, int near) {
    if (a->status != expected->status) return 0;
    if (a->status != ACCOUNTANT_OK) return 1;
    if (!near)
        return same(a->first, expected->first) && (a->kind == SEARCHED || same(a->second, expected->second));
    if (a->kind == BRACKET) return a->first <= expected->second && expected->first <= a->second;
    return same(a->first, expected->first) ||
           fabs(a->first - expected->first) <=
               fmax(1e-6 * fabs(expected->first), a->first >= 1.0 ? 1.0 : 0.0);
}

/* splits a line at spaces; returns the name, and where the expected numbers begin */
static char *split(char *line, numbers *n, int *expected) {
    char *name = strtok(line, " \n"), *word;
    *n = (numbers){.count = 0};
    while ((word = strtok(NULL, " \n")) != NULL) {
        if (strcmp(word, "=") == 0) {
            *expected = n->count;
            continue;
        }
        char *end;
        REQUIRE(n->count < MOST_NUMBERS, "more than %d numbers", MOST_NUMBERS);
        n->number[n->count++] = strtod(word, &end);
        REQUIRE(*end == '\0', "no number: %s", word);
    }
    return name;
}

static answer expected_of(numbers *n, int kind) {
    answer a = {.kind = kind, .first = NAN, .second = NAN};
    a.status = whole(n);
    if (a.status == ACCOUNTANT_OK) a.first = take(n);
    if (a.status == ACCOUNTANT_OK && kind != SEARCHED) a.second = take(n);
    REQUIRE(n->next == n->count, "%d numbers too many", n->count - n->next);
    return a;
}

int main(int argc, char **argv) {
    static char line[MOST_LINE];
    static numbers n;
    function functions[] = {
        FUNCTION(epsilon_bounds),
        FUNCTION(delta_bounds),
        FUNCTION(renyi_bounds),
        FUNCTION(epsilon_renyi_upper),
        FUNCTION(gaussian_epsilon_bounds),
        FUNCTION(gaussian_delta_bounds),
        FUNCTION(mixture_epsilon_bounds),
        FUNCTION(mixture_delta_bounds),
        FUNCTION(composition_epsilon_bounds),
        FUNCTION(composition_delta_bounds),
        FUNCTION(calibrate_sigma),
        FUNCTION(calibrate_steps),
        FUNCTION(calibrate_q),
    };
    const int near = argc > 2 && strcmp(argv[2], "near") == 0;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    REQUIRE(file, "usage: cases FILE [exact|near]");
    long asked = 0, differ = 0;
    for (long number = 1; fgets(line, sizeof line, file); number++) {
        int expected = 0;
        if (line[0] == '#') continue;
        const char *name = split(line, &n, &expected);
        size_t f = 0;
        while (f < COUNT(functions) && strcmp(functions[f].name, name) != 0) f++;
        REQUIRE(f < COUNT(functions), "line %ld: no function %s", number, name);
        const answer found = functions[f].ask(&n);
        REQUIRE(n.next == expected, "line %ld: the arguments end at %d", number, expected);
        const answer stored = expected_of(&n, found.kind);
        functions[f].asked++;
        asked++;
        if (agrees(&found, &stored, near)) continue;
        if (differ++ < 10)
            fprintf(stderr, "line %ld, %s: %d %a %a, and stored %d %a %a\n", number, name, found.status,
                    found.first, found.second, stored.status, stored.first, stored.second);
    }
    fclose(file);
    for (size_t f = 0; f < COUNT(functions); f++)
        REQUIRE(functions[f].asked > 0, "%s was not asked", functions[f].name);
    printf("cases: %ld answers, %ld of them %s\n", asked, differ, near ? "apart" : "different");
    return differ > 0;
}
