/*
 * C++ values as words of a record, for the macros in C++. Included by macros.h; nothing here is for
 * users.
 *
 * In C++11 and C++14 an argument is a number, a text (const char *, std::string), a pointer, or a
 * const stave_args *. From C++17 on values.hpp takes the place of that part, and takes more types.
 */
#include <stave/stave.h> /* before the guard: where this file is the first, stave.h includes it */

#ifndef STAVE_WORDS_HPP
#define STAVE_WORDS_HPP

#include <cstdint>
#include <type_traits>

namespace stave
{

template <class T>
using plain = typename std::remove_cv<typename std::remove_reference<T>::type>::type;

/* Literals and __func__ are; a buffer, whose text may change, is not. */
template <class T> constexpr bool is_array_of_const()
{
    using A = typename std::remove_reference<T>::type;
    return std::is_array<A>::value && std::is_const<typename std::remove_extent<A>::type>::value;
}

struct list {
    std::uint64_t at[20];
};

#if __cplusplus < 201703L
/* Names of its own in the object files: they may be linked with those of a later standard. */
inline namespace cpp11
{

inline std::uint64_t bits_of(double v)
{
    return stave_i_from_double(v);
}
inline std::uint64_t bits_of(const volatile void *v)
{
    return stave_i_from_ptr(v);
}

/* One struct per sort of value: its type in a record, and its word. */
template <class T, class = void> struct sort {
    static_assert(std::is_pointer<T>::value,
                  "stave: before C++17 an argument is a number, a text or a pointer");
    static constexpr std::uint8_t type()
    {
        return std::is_convertible<T, const char *>::value         ? STAVE_I_TEXT
               : std::is_convertible<T, const stave_args *>::value ? STAVE_I_ARGS
                                                                   : STAVE_I_POINTER;
    }
    static std::uint64_t bits(const T &v)
    {
        return bits_of(v);
    }
};
template <class T>
struct sort<T,
            typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value>::type> {
    static constexpr std::uint8_t type()
    {
        return std::is_same<T, bool>::value                         ? STAVE_I_BOOL
               : std::is_enum<T>::value || std::is_signed<T>::value ? STAVE_I_INT
                                                                    : STAVE_I_UINT;
    }
    static std::uint64_t bits(const T &v)
    {
        return static_cast<std::uint64_t>(v);
    }
};
template <class T> struct sort<T, typename std::enable_if<std::is_floating_point<T>::value>::type> {
    static constexpr std::uint8_t type()
    {
        return STAVE_I_DOUBLE;
    }
    static std::uint64_t bits(const T &v)
    {
        return bits_of(static_cast<double>(v));
    }
};
template <class T>
struct sort<T, typename std::enable_if<std::is_convertible<
                   decltype(std::declval<const T &>().c_str()), const char *>::value>::type> {
    static constexpr std::uint8_t type()
    {
        return STAVE_I_TEXT;
    }
    static std::uint64_t bits(const T &v)
    {
        return bits_of(v.c_str());
    }
};

template <class T> constexpr std::uint8_t type_of()
{
    return sort<typename std::decay<T>::type>::type();
}
template <class T> constexpr const char *key_of(const char *key)
{
    return key;
}
struct bits_only {
    std::uint64_t bits;
};
template <class T> bits_only word(const char *, const T &v)
{
    return {sort<typename std::decay<const T>::type>::bits(v)};
}

} // namespace cpp11
#endif

} /* namespace stave */

#endif
