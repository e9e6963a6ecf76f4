/* Measures the C library's elementary functions beside stored truths: the certificates trust them to 8 units of
 * round-off, and erfc to 16 (rounding.h). Usage: elementary FILE, that of accountant/selftest/elementary.json, in which
 * every row stands on a line: the arguments, the double nearest to the truth, and the rest in units. */
#include <string.h>

#include "drive.h"

typedef struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double trusted, worst;
    int rows;
} function;

#define UNIT 0x1p-53

/* the numbers between quotation marks; the last of a row, the rest, stands outside of them */
static int numbers_of(char *line, double number[3], double *rest) {
    int count = 0;
    char *at = strchr(line, '[');
    for (; at && count < 3 && (at = strchr(at, '"')) != NULL; count++) {
        number[count] = strtod(at + 1, &at);
        if (*at != '"') return 0;
        at++;
    }
    char *comma = strrchr(line, '.');
    while (comma && comma > line && *comma != ' ') comma--;
    *rest = comma ? strtod(comma, NULL) : NAN;
    return count;
}

int main(int argc, char **argv) {
    function functions[] = {
        {"exp", exp, NULL, 8.0, 0.0, 0},     {"expm1", expm1, NULL, 8.0, 0.0, 0},
        {"log", log, NULL, 8.0, 0.0, 0},     {"log1p", log1p, NULL, 8.0, 0.0, 0},
        {"sin", sin, NULL, 8.0, 0.0, 0},     {"cos", cos, NULL, 8.0, 0.0, 0},
        {"erf", erf, NULL, 8.0, 0.0, 0},     {"erfc", erfc, NULL, 16.0, 0.0, 0},
        {"atan2", NULL, atan2, 8.0, 0.0, 0}, {"pow", NULL, pow, 8.0, 0.0, 0},
    };
    char line[1024], name[64];
    function *f = NULL;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    REQUIRE(file, "usage: elementary FILE");
    while (fgets(line, sizeof line, file)) {
        double number[3] = {0.0}, rest = NAN;
        if (sscanf(line, "\"%63[a-z0-9]\": [", name) == 1) {
            f = NULL;
            for (size_t i = 0; i < COUNT(functions); i++)
                if (strcmp(functions[i].name, name) == 0) f = &functions[i];
            continue;
        }
        const int count = numbers_of(line, number, &rest);
        if (!f || count != (f->two ? 3 : 2)) continue;
        const double nearest = number[count - 1];
        const double value = f->two ? f->two(number[0], number[1]) : f->one(number[0]);
        const double error = fabs((value - nearest) / (UNIT * fabs(nearest)) - rest);
        if (!(error <= f->worst)) f->worst = error;
        f->rows++;
    }
    fclose(file);
    int bad = 0;
    for (size_t i = 0; i < COUNT(functions); i++) {
        f = &functions[i];
        REQUIRE(f->rows > 20, "%s was asked %d times", f->name, f->rows);
        if (!(f->worst <= f->trusted)) bad = 1;
        printf("%-6s errs by %.2f units of %.0f\n", f->name, f->worst, f->trusted);
    }
    return bad;
}
