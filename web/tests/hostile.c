/* Asks the page's functions extreme and impossible questions: no crash, and statuses and ranges as page.h says. */
#include "page.h"

#include "drive.h"

static const double NUMBERS[] = {NAN,  -INFINITY, -1.0, -0.0, 0.0,   1e-300, 0.01,  0.149, 0.15, 0.3, 0.5,
                                 0.9,  1.0,       1.5,  2.0,  10.0,  1000.0, 1e6,   1e12,  1e15, 1e300, INFINITY};

static int is_status(int status) { return status <= ACCOUNTANT_OK && status >= ACCOUNTANT_EUNBOUNDED; }

static void ask_allocation(double sigma, double steps, double third, double delta) {
    double found = NAN;
    int status = page_allocation_epsilon_upper(sigma, steps, third, delta, &found);
    REQUIRE(is_status(status), "status %d", status);
    if (!status) REQUIRE(found >= 0.0, "allocation %a %a %a %a: %a", sigma, steps, third, delta, found);
    status = page_shuffled_epsilon_lower(sigma, steps, third, delta, &found);
    REQUIRE(is_status(status), "status %d", status);
    if (!status) REQUIRE(found >= 0.0 && found < INFINITY, "shuffled: %a", found);
}

int main(void) {
    double rate = NAN;
    for (size_t i = 0; i < COUNT(NUMBERS); i++)
        for (size_t j = i % 11; j < COUNT(NUMBERS); j += 11) { /* each with two others */
            const double a = NUMBERS[i], b = NUMBERS[j];
            ask_allocation(a, b, 1.0, 1e-5);
            ask_allocation(1.0, a, b, 0.3);
            ask_allocation(b, 7.0, 3.0, a);
            int status = page_attack_rate(a, b, 10.0, 0.01, &rate);
            REQUIRE(is_status(status) && (status || (rate >= 0.01 && rate <= 1.0)), "attack: %a", rate);
            status = page_attack_rate(0.1, 1.0, a, b, &rate);
            REQUIRE(is_status(status) && (status || (rate >= b && rate <= 1.0)), "attack: %a", rate);
            const double steps[1] = {a}, delta[1] = {b};
            accountant_bounds out;
            status = page_epsilon_curve(0.1, 1.0, steps, delta, 1, &out);
            REQUIRE(is_status(status) && out.lower <= out.upper, "curve: %d", status);
            (void)page_ratio_up(a, b);
        }
    for (int order = -2; order < 515; order += 47)
        for (int direction = -1; direction < 4; direction++)
            for (size_t i = 0; i < COUNT(NUMBERS); i += 7) {
                const int status = page_allocation_renyi_upper(NUMBERS[i], 5.0, order, direction, &rate);
                REQUIRE(is_status(status) && (status || rate >= 0.0), "Renyi: %a", rate);
            }
    REQUIRE(page_elementary(-1, &rate, &rate, 1, &rate) == ACCOUNTANT_EDOMAIN, "function -1");
    REQUIRE(page_elementary(99, &rate, &rate, 1, &rate) == ACCOUNTANT_EDOMAIN, "function 99");
    REQUIRE(page_attack_rate(0.1, 1.0, 1.0, 0.1, NULL) == ACCOUNTANT_EDOMAIN, "NULL");
    REQUIRE(page_shuffled_epsilon_lower(1.0, 1.0, 1.0, 0.1, NULL) == ACCOUNTANT_EDOMAIN, "NULL");
    REQUIRE(page_allocation_epsilon_upper(1.0, 1.0, 1.0, 0.1, NULL) == ACCOUNTANT_EDOMAIN, "NULL");
    REQUIRE(page_allocation_renyi_upper(1.0, 1.0, 2, 0, NULL) == ACCOUNTANT_EDOMAIN, "NULL");
    printf("hostile: nothing found\n");
    return 0;
}
