/*
 * Lists of macro arguments: let a macro take any number of key/value pairs. Included by macros.h;
 * nothing here is for users.
 *
 * STAVE_I_M(f, category, name, k1, v1, …) expands to f(k1, v1) f(k2, v2) …, for up to sixteen
 * pairs.
 */
#ifndef STAVE_LISTS_H
#define STAVE_LISTS_H

#define STAVE_I_CAT2(a, b)     a##b
#define STAVE_I_JOIN(a, b)     STAVE_I_CAT2(a, b)
#define STAVE_I_1ST(a, ...)    a
#define STAVE_I_2ND(a, b, ...) b
#define STAVE_I_COUNT(...)                                                              \
    STAVE_I_COUNT_(__VA_ARGS__, 34, key_without_value, 32, key_without_value, 30,       \
                   key_without_value, 28, key_without_value, 26, key_without_value, 24, \
                   key_without_value, 22, key_without_value, 20, key_without_value, 18, \
                   key_without_value, 16, key_without_value, 14, key_without_value, 12, \
                   key_without_value, 10, key_without_value, 8, key_without_value, 6,   \
                   key_without_value, 4, key_without_value, 2, category_without_name, 0)
#define STAVE_I_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, \
                       z, A, B, C, D, E, F, G, H, count, ...)                                     \
    count
#define STAVE_I_M(f, ...) STAVE_I_JOIN(STAVE_I_M_, STAVE_I_COUNT(__VA_ARGS__))(f, __VA_ARGS__)
#define STAVE_I_M_2(f, c, n)
#define STAVE_I_M_4(f, c, n, k, v)       f(k, v)
#define STAVE_I_M_6(f, c, n, k, v, ...)  f(k, v) STAVE_I_M_4(f, c, n, __VA_ARGS__)
#define STAVE_I_M_8(f, c, n, k, v, ...)  f(k, v) STAVE_I_M_6(f, c, n, __VA_ARGS__)
#define STAVE_I_M_10(f, c, n, k, v, ...) f(k, v) STAVE_I_M_8(f, c, n, __VA_ARGS__)
#define STAVE_I_M_12(f, c, n, k, v, ...) f(k, v) STAVE_I_M_10(f, c, n, __VA_ARGS__)
#define STAVE_I_M_14(f, c, n, k, v, ...) f(k, v) STAVE_I_M_12(f, c, n, __VA_ARGS__)
#define STAVE_I_M_16(f, c, n, k, v, ...) f(k, v) STAVE_I_M_14(f, c, n, __VA_ARGS__)
#define STAVE_I_M_18(f, c, n, k, v, ...) f(k, v) STAVE_I_M_16(f, c, n, __VA_ARGS__)
#define STAVE_I_M_20(f, c, n, k, v, ...) f(k, v) STAVE_I_M_18(f, c, n, __VA_ARGS__)
#define STAVE_I_M_22(f, c, n, k, v, ...) f(k, v) STAVE_I_M_20(f, c, n, __VA_ARGS__)
#define STAVE_I_M_24(f, c, n, k, v, ...) f(k, v) STAVE_I_M_22(f, c, n, __VA_ARGS__)
#define STAVE_I_M_26(f, c, n, k, v, ...) f(k, v) STAVE_I_M_24(f, c, n, __VA_ARGS__)
#define STAVE_I_M_28(f, c, n, k, v, ...) f(k, v) STAVE_I_M_26(f, c, n, __VA_ARGS__)
#define STAVE_I_M_30(f, c, n, k, v, ...) f(k, v) STAVE_I_M_28(f, c, n, __VA_ARGS__)
#define STAVE_I_M_32(f, c, n, k, v, ...) f(k, v) STAVE_I_M_30(f, c, n, __VA_ARGS__)
#define STAVE_I_M_34(f, c, n, k, v, ...) f(k, v) STAVE_I_M_32(f, c, n, __VA_ARGS__)

/* a, b → "a", a, "b", b: the arguments of a function with their names. */
#define STAVE_I_NAMED(...) \
    STAVE_I_JOIN(STAVE_I_A_, STAVE_I_COUNT8(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0))(__VA_ARGS__)
#define STAVE_I_COUNT8(a, b, c, d, e, f, g, h, n, ...) n
#define STAVE_I_A_1(a)                                 #a, a
#define STAVE_I_A_2(a, b)                              #a, a, #b, b
#define STAVE_I_A_3(a, b, c)                           #a, a, #b, b, #c, c
#define STAVE_I_A_4(a, b, c, d)                        STAVE_I_A_2(a, b), STAVE_I_A_2(c, d)
#define STAVE_I_A_5(a, b, c, d, e)                     STAVE_I_A_2(a, b), STAVE_I_A_3(c, d, e)
#define STAVE_I_A_6(a, b, c, d, e, f)                  STAVE_I_A_3(a, b, c), STAVE_I_A_3(d, e, f)
#define STAVE_I_A_7(a, b, c, d, e, f, g)               STAVE_I_A_4(a, b, c, d), STAVE_I_A_3(e, f, g)
#define STAVE_I_A_8(a, b, c, d, e, f, g, h)            STAVE_I_A_4(a, b, c, d), STAVE_I_A_4(e, f, g, h)

#endif
