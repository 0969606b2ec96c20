/*
 * C++ values as arguments of events: numbers, texts, pointers, nullptr, std::optional, and
 * containers of these. Included by macros.h in C++17 and later.
 *
 * Numbers and texts are words of the record, as in C. The others are built with stave_args_…()
 * while the event is recorded; nothing is built while tracing is off.
 */
#ifndef STAVE_VALUES_HPP
#define STAVE_VALUES_HPP

#if __cplusplus < 201703L
#error "stave/values.hpp needs C++17 or newer: include stave/stave.h"
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stave/stave.h>
#include <stave/words.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace stave
{

template <class T, class = void> struct is_range : std::false_type {
};
/* A path is a range of paths: not one of values. */
template <class T>
struct is_range<T, std::void_t<decltype(std::begin(std::declval<const T &>())),
                               decltype(std::end(std::declval<const T &>()))>>
    : std::bool_constant<
          !std::is_convertible_v<const T &, std::string_view> &&
          !std::is_same_v<plain<decltype(*std::begin(std::declval<const T &>()))>, T>> {
};

template <class T, class = void> struct is_map : std::false_type {
};
template <class T>
struct is_map<T, std::void_t<typename T::key_type, typename T::mapped_type>> : is_range<T> {
};

/* std::optional and what is like it. */
template <class T, class = void> struct is_optional : std::false_type {
};
template <class T>
struct is_optional<
    T, std::void_t<typename T::value_type, decltype(std::declval<const T &>().has_value()),
                   decltype(*std::declval<const T &>())>> : std::true_type {
};

template <class T> constexpr bool is_args()
{
    return std::is_convertible_v<std::decay_t<T>, const stave_args *> &&
           !std::is_same_v<plain<T>, std::nullptr_t>;
}

/* Is the value built with stave_args_…()? Arrays of char are texts. */
template <class T> constexpr bool is_built()
{
    using V = plain<T>;
    if constexpr (std::is_same_v<V, std::nullptr_t>)
        return true;
    else if constexpr (std::is_convertible_v<const V &, std::string_view>)
        return false;
    else
        return is_optional<V>::value || is_range<V>::value ||
               (std::is_class_v<V> && std::is_convertible_v<const V &, std::string>);
}

template <class V> void put(stave_args &to, const char *key, const V &v);

template <class M> void put_map(stave_args &to, const char *key, const M &map)
{
    stave_args_dict(&to, key);
    for (const auto &[k, v] : map) {
        if constexpr (std::is_convertible_v<decltype(k), std::string_view>)
            put(to, std::string(std::string_view(k)).c_str(), v);
        else
            put(to, std::to_string(k).c_str(), v);
    }
    stave_args_end(&to);
}

template <class R> void put_list(stave_args &to, const char *key, const R &range)
{
    stave_args_list(&to, key);
    for (const auto &v : range)
        put(to, nullptr,
            static_cast<
                const typename std::iterator_traits<decltype(std::begin(range))>::value_type &>(v));
    stave_args_end(&to);
}

template <class V> void put_number(stave_args &to, const char *key, const V &v)
{
    if constexpr (std::is_same_v<V, bool>)
        stave_args_bool(&to, key, v);
    else if constexpr (std::is_floating_point_v<V>)
        stave_args_double(&to, key, static_cast<double>(v));
    else if constexpr (std::is_enum_v<V> || std::is_signed_v<V>)
        stave_args_int(&to, key, static_cast<std::int64_t>(v));
    else
        stave_args_uint(&to, key, static_cast<std::uint64_t>(v));
}

/* Adds a value of any of these types. In a list the key is nullptr. */
template <class V> void put(stave_args &to, const char *key, const V &v)
{
    if constexpr (std::is_same_v<V, std::nullptr_t>) {
        stave_args_null(&to, key);
    } else if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V>) {
        if (key && key[0] == STAVE_FLOW_OUT[0]) {
            if constexpr (std::is_integral_v<V>)
                stave_args_flow(&to, key, static_cast<std::uint64_t>(v));
        } else {
            put_number(to, key, v);
        }
    } else if constexpr (std::is_convertible_v<const V &, const char *>) {
        stave_args_text(&to, key, v);
    } else if constexpr (std::is_convertible_v<const V &, std::string_view>) {
        const std::string_view text = v;
        stave_args_text_n(&to, key, text.data() ? text.data() : "", text.size());
    } else if constexpr (is_optional<V>::value) {
        if (v.has_value())
            put(to, key, *v);
        else
            stave_args_null(&to, key);
    } else if constexpr (is_map<V>::value) {
        put_map(to, key, v);
    } else if constexpr (is_range<V>::value) {
        put_list(to, key, v);
    } else if constexpr (std::is_convertible_v<const V &, std::string>) {
        const std::string text = v;
        stave_args_text_n(&to, key, text.data(), text.size());
    } else {
        static_assert(std::is_pointer_v<V>,
                      "stave: an argument is a number, a text, a pointer, nullptr, a std::optional "
                      "or a container of these");
        stave_args_pointer(&to, key, v);
    }
}

inline void put_all(stave_args &)
{
}
template <class V, class... Rest>
void put_all(stave_args &to, const char *key, const V &v, const Rest &...rest)
{
    put(to, key, v);
    put_all(to, rest...);
}

/* ---- for the macros ---- */

/* The type of a value in a record. Enumerations are numbers; use stave_enum() for their text. */
template <class T> constexpr std::uint8_t type_of()
{
    using V = std::decay_t<T>;
    if constexpr (is_built<T>() || is_args<T>())
        return STAVE_I_ARGS;
    else if constexpr (std::is_same_v<V, bool>)
        return STAVE_I_BOOL;
    else if constexpr (std::is_floating_point_v<V>)
        return STAVE_I_DOUBLE;
    else if constexpr (std::is_enum_v<V>)
        return STAVE_I_INT;
    else if constexpr (std::is_integral_v<V>)
        return std::is_signed_v<V> ? STAVE_I_INT : STAVE_I_UINT;
    else if constexpr (std::is_convertible_v<V, std::string_view>)
        return STAVE_I_TEXT;
    else
        return STAVE_I_POINTER;
}

/* The key of a value that is built is in what is built. */
template <class T> constexpr const char *key_of(const char *key)
{
    return is_built<T>() ? "" : key;
}

/* A value as a 64-bit word, with what must live until the event is recorded. */
template <class T, class = void> struct word_of {
    std::uint64_t bits;

    word_of(const char *, const T &v)
    {
        constexpr auto type = type_of<T>();
        if constexpr (type == STAVE_I_DOUBLE)
            bits = stave_i_from_double(static_cast<double>(v));
        else if constexpr (type == STAVE_I_INT || type == STAVE_I_UINT || type == STAVE_I_BOOL)
            bits = static_cast<std::uint64_t>(v);
        else if constexpr (std::is_same_v<T, std::string>)
            bits = stave_i_from_ptr(v.c_str());
        else {
            static_assert(std::is_pointer_v<T>,
                          "stave: an argument is a number, a text, a pointer, nullptr, a "
                          "std::optional or a container of these");
            bits = stave_i_from_ptr(v);
        }
    }
};

/* A string_view need not end in NUL: it is copied for the duration of the call, to the heap where
 * it is long. */
template <class T>
struct word_of<T, std::enable_if_t<!std::is_same_v<T, std::string> && !std::is_pointer_v<T> &&
                                   type_of<T>() == STAVE_I_TEXT>> {
    std::uint64_t bits;
    char brief[256];
    std::string text;

    word_of(const char *, const T &given)
    {
        const std::string_view v = given;
        if (v.size() < sizeof brief) {
            if (v.size())
                std::memcpy(brief, v.data(), v.size());
            brief[v.size()] = '\0';
            bits = stave_i_from_ptr(brief);
        } else {
            text = v;
            bits = stave_i_from_ptr(text.c_str());
        }
    }
};

template <class T> struct word_of<T, std::enable_if_t<is_built<T>()>> {
    std::uint64_t bits;
    stave_args args;

    word_of(const char *key, const T &v)
    {
        stave_args_init(&args);
        put(args, key, v);
        bits = stave_i_from_ptr(&args);
    }
};

/* Arrays of anything but char are built, so that they must not decay. */
template <class T> using kept = std::conditional_t<is_built<T>(), plain<T>, std::decay_t<const T>>;
template <class T> word_of<kept<T>> word(const char *key, const T &v)
{
    return word_of<kept<T>>(key, v);
}

} /* namespace stave */

#endif
