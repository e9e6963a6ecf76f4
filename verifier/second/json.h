/* A reader of small JSON documents: objects, arrays, strings and numbers, the last as they are
 * written. It refuses (exit code 1) whatever it does not know, and more than 200,000 bytes. */
#ifndef SECOND_JSON_H
#define SECOND_JSON_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 200000, DEEPEST = 12 };

typedef struct value {
    char kind;               /* 'o', 'a', 's', 'n', '0' for null */
    char *text;              /* of a string or a number */
    char *key;               /* in an object */
    struct value *first, *next;
} value;

static void refuse(const char *why)
{
    printf("FAIL: %s\n", why);
    exit(1);
}

static void *room(size_t size)
{
    void *found = calloc(1, size);
    if (!found) refuse("no memory");
    return found;
}

static void skip(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static char *quoted(const char **at)
{
    if (*(*at)++ != '"') refuse("a string was expected");
    const char *end = *at;
    while (*end && *end != '"' && *end != '\\') ++end;
    if (*end != '"') refuse("a string with an escape, or without an end");
    char *text = room((size_t)(end - *at) + 1);
    memcpy(text, *at, (size_t)(end - *at));
    *at = end + 1;
    return text;
}

static int is_number(const char *text)
{
    const char *at = text + (*text == '-');
    int digits = 0;
    while (isdigit((unsigned char)*at)) ++at, ++digits;
    if (digits < 1 || (digits > 1 && at[-digits] == '0')) return 0;
    if (*at == '.') {
        if (!isdigit((unsigned char)*++at)) return 0;
        while (isdigit((unsigned char)*at)) ++at, ++digits;
    }
    if (*at == 'e' || *at == 'E') {
        ++at;
        at += *at == '-' || *at == '+';
        int size = 0;
        while (isdigit((unsigned char)*at)) ++at, ++size;
        if (size < 1 || size > 3) return 0;
    }
    return *at == 0 && digits <= 80;
}

static value *parsed(const char **at, int depth)
{
    if (depth > DEEPEST) refuse("too deep");
    skip(at);
    value *made = room(sizeof *made);
    if (**at == '"') {
        made->kind = 's';
        made->text = quoted(at);
    } else if (**at == '{' || **at == '[') {
        const char close = **at == '{' ? '}' : ']';
        made->kind = **at == '{' ? 'o' : 'a';
        value **last = &made->first;
        ++*at;
        skip(at);
        while (**at != close) {
            char *key = NULL;
            if (made->kind == 'o') {
                key = quoted(at);
                for (value *u = made->first; u; u = u->next)
                    if (!strcmp(u->key, key)) refuse("a key stands twice");
                skip(at);
                if (*(*at)++ != ':') refuse("a colon was expected");
            }
            *last = parsed(at, depth + 1);
            (*last)->key = key;
            last = &(*last)->next;
            skip(at);
            if (**at == ',') {
                ++*at;
                skip(at);
                if (**at == close) refuse("a comma too many");
            } else if (**at != close)
                refuse("a comma was expected");
        }
        ++*at;
    } else if (!strncmp(*at, "null", 4)) {
        made->kind = '0';
        *at += 4;
    } else {
        size_t size = strcspn(*at, ",]} \t\r\n");
        made->kind = 'n';
        made->text = room(size + 1);
        memcpy(made->text, *at, size);
        if (!is_number(made->text)) refuse("a number was expected");
        *at += size;
    }
    return made;
}

static value *maybe(const value *object, const char *key)
{
    if (!object || object->kind != 'o') refuse("an object was expected");
    for (value *u = object->first; u; u = u->next)
        if (!strcmp(u->key, key)) return u;
    return NULL;
}

static value *need(const value *object, const char *key, char kind)
{
    value *found = maybe(object, key);
    if (!found || found->kind != kind) refuse(key);
    return found;
}

/* Refuses whatever is not one of some keys, of which there is a space on both sides. */
static void only(const value *object, const char *keys)
{
    char word[64];
    for (const value *u = object->first; u; u = u->next) {
        const int size = snprintf(word, sizeof word, " %s ", u->key);
        if (size >= (int)sizeof word || strchr(u->key, ' ') || !strstr(keys, word))
            refuse("an unknown key");
    }
}

static long whole(const value *number, long most)
{
    char *end;
    if (!number || number->kind != 'n' || strlen(number->text) > 17) refuse("a whole number");
    const long found = strtol(number->text, &end, 10);
    if (*end || found < 1 || found > most) refuse("a whole number in its range");
    return found;
}

static size_t length(const value *array)
{
    size_t size = 0;
    for (const value *u = array ? array->first : NULL; u; u = u->next) ++size;
    return size;
}

#endif
