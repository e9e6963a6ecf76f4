#include "chacha.h"

#include <string.h>

#include "clones.h"

/* Several blocks are computed side by side, one lane each. Clones serve machines with wide vectors;
 * integer arithmetic makes every one of them give the same bytes. */
#if defined(__GNUC__)
enum { WIDTH = 8 };
typedef uint32_t lanes __attribute__((vector_size(4 * 8)));
#else
enum { WIDTH = 1 };
typedef uint32_t lanes;
#endif

#define ADD_XOR_ROTATE(a, b, d, n)                                                                 \
    x[a] += x[b];                                                                                  \
    x[d] ^= x[a];                                                                                  \
    x[d] = (x[d] << (n)) | (x[d] >> (32 - (n)));
#define QUARTER(a, b, c, d)                                                                        \
    ADD_XOR_ROTATE(a, b, d, 16)                                                                    \
    ADD_XOR_ROTATE(c, d, b, 12)                                                                    \
    ADD_XOR_ROTATE(a, b, d, 8)                                                                     \
    ADD_XOR_ROTATE(c, d, b, 7)

ACCT_CLONES_MEMORY static void some_blocks(const uint32_t key[8], uint64_t counter, uint8_t *out,
                                    size_t blocks)
{
    static const uint32_t constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    uint32_t words[16][WIDTH];
    lanes start[16], x[16];
    for (int l = 0; l < WIDTH; l++) {
        const uint64_t block = counter + (uint64_t)l;
        for (int w = 0; w < 4; w++)
            words[w][l] = constants[w];
        for (int w = 0; w < 8; w++)
            words[4 + w][l] = key[w];
        words[12][l] = (uint32_t)block;
        words[13][l] = (uint32_t)(block >> 32);
        words[14][l] = words[15][l] = 0;
    }
    memcpy(start, words, sizeof start);
    memcpy(x, words, sizeof x);
    for (int round = 0; round < 10; round++) {
        QUARTER(0, 4, 8, 12)
        QUARTER(1, 5, 9, 13)
        QUARTER(2, 6, 10, 14)
        QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15)
        QUARTER(1, 6, 11, 12)
        QUARTER(2, 7, 8, 13)
        QUARTER(3, 4, 9, 14)
    }
    for (int w = 0; w < 16; w++)
        x[w] += start[w];
    memcpy(words, x, sizeof words);
    for (size_t l = 0; l < blocks; l++)
        for (int w = 0; w < 16; w++) {
            const uint32_t word = words[w][l];
            uint8_t *at = out + 64 * l + 4 * w;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            memcpy(at, &word, sizeof word);
#else
            at[0] = (uint8_t)word;
            at[1] = (uint8_t)(word >> 8);
            at[2] = (uint8_t)(word >> 16);
            at[3] = (uint8_t)(word >> 24);
#endif
        }
}

void acct_chacha20(const uint32_t key[8], uint64_t counter, uint8_t *out, size_t blocks)
{
    for (size_t done = 0; done < blocks; done += WIDTH) {
        const size_t now = blocks - done < WIDTH ? blocks - done : WIDTH;
        some_blocks(key, counter + done, out + 64 * done, now);
    }
}
