/* A second checker of certificates, for noise with random shifts and evidence without labels.
 *
 * It shares nothing with the first (verifier/dp_verifier) but the theorems that both were written
 * from, docs/theorems_certificates.md (K), docs/theorems.md and docs/theorems_mixtures.md (D), and
 * Arb's balls. Exit code 0: shown; 1: refused; 3: a kind of evidence that only the first knows.
 *
 *     cc -O2 dp_verify.c -o dp_verify_c -lflint-arb -lflint -lm     (-lflint alone from FLINT 3)
 */
#include <time.h>

#include "bounds.h"

static const clock_t MOST_SECONDS = 15; /* after which no higher precision is begun */

/* Whether one direction is shown, at the first precision that decides. */
static int shown(value *claim, value *given, int remove)
{
    static part parts[MOST_PARTS];
    for (prec = 128; prec <= 1024; prec *= 2) {
        if (clock() > MOST_SECONDS * CLOCKS_PER_SEC) refuse("too much time");
        arb_t epsilon, delta, found;
        arb_init(epsilon);
        arb_init(delta);
        arb_init(found);
        number(epsilon, need(claim, "epsilon", 'n'));
        number(delta, need(claim, "delta", 'n'));
        if (!arb_is_nonnegative(epsilon)) refuse("epsilon must not be negative"); /* (K6, 1) */
        arb_sub_si(found, delta, 1, prec);
        if (!arb_is_nonnegative(delta) || arb_is_positive(found)) refuse("delta must be in [0, 1]");
        long size = 0;
        memset(parts, 0, sizeof parts);
        for (value *u = need(claim, "parts", 'a')->first; u; u = u->next) {
            if (size == MOST_PARTS) refuse("too many parts");
            read_part(parts + size++, u);
        }
        if (!size) refuse("no parts");
        for (long i = 0; i < size && !strcmp(need(claim, "relation", 's')->text, "replace-one"); ++i)
            if (!parts[i].plain) refuse("the pair of a sample is not that of replacing a record");
        bound(found, parts, size, given, epsilon, remove);
        printf("%s: H(epsilon) <= ", remove ? "remove" : "add");
        arb_printn(found, 8, 0);
        printf(" at %ld bits\n", (long)prec);
        if (arb_le(found, delta)) return 1;
        if (arb_gt(found, delta)) return 0;
    }
    return 0;
}

int main(int count, char **names)
{
    static char text[MOST_BYTES + 1];
    if (count != 2) return fprintf(stderr, "usage: dp_verify_c certificate.json\n"), 2;
    FILE *file = fopen(names[1], "rb");
    if (!file) refuse("the file cannot be read");
    const size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    if (size > MOST_BYTES || strlen(text) != size) refuse("too large, or a zero byte");
    const char *at = text;
    value *document = parsed(&at, 0);
    skip(&at);
    if (*at) refuse("more than one document");
    if (strcmp(need(document, "format", 's')->text, "dp-certificate")) refuse("format");
    only(document, " format version claim evidence note ");
    whole(maybe(document, "version"), 1);
    value *claim = need(document, "claim", 'o'), *evidence = need(document, "evidence", 'o');
    only(claim, " relation direction epsilon delta parts ");
    const char *way = need(claim, "direction", 's')->text;
    const char *relation = need(claim, "relation", 's')->text;
    const int both = !strcmp(way, "both");
    if (!both && strcmp(way, "remove") && strcmp(way, "add")) refuse("direction");
    if (strcmp(relation, "add-or-remove") && strcmp(relation, "replace-one") && strcmp(relation, "zero-out"))
        refuse("relation");
    only(evidence, both ? " remove add " : *way == 'r' ? " remove " : " add ");
    if ((both || !strcmp(way, "remove")) && !shown(claim, need(evidence, "remove", 'o'), 1))
        refuse("remove is not shown");
    if ((both || !strcmp(way, "add")) && !shown(claim, need(evidence, "add", 'o'), 0))
        refuse("add is not shown");
    printf("PASS\n");
    return 0;
}
