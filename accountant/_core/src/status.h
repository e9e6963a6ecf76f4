/* Status codes shared by every entry point of the native core. */
#ifndef ACCT_STATUS_H
#define ACCT_STATUS_H

enum acct_status {
    ACCT_OK = 0,
    ACCT_EDOMAIN = -1,    /* an argument outside its stated domain (callers check first) */
    ACCT_ENOMEM = -2,     /* no memory for the workspace */
    ACCT_EPRECISION = -3, /* no certified answer at any width was reached */
    ACCT_EUNBOUNDED = -4, /* no least, or no largest, answer exists: every one meets the target */
    ACCT_ESTOPPED = -5    /* a function of the caller's asked for the end of a search */
};

#endif
