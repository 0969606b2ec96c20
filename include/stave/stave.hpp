/*
 * Stave for C++: the macros of stave.h for C++ types, and a scope class. Header only, on top of the
 * C API.
 *
 *     #include <stave/stave.hpp>
 *     STAVE_SCOPE("nn", "attention", "layer", 12, "op", std::string_view(op));      ends with the block, also by an exception
 *     stave::scope s("nn", name);                                                    a name known at run time
 */
#ifndef STAVE_STAVE_HPP
#define STAVE_STAVE_HPP

#include <cstring>
#include <stave/stave.h>
#include <string>
#include <string_view>
#include <type_traits>

namespace stave
{

/* The type of a value in a record. Enumerations are numbers; use stave_enum() for their text. */
template <class T> constexpr std::uint8_t type_of()
{
    using V = std::decay_t<T>;
    if constexpr (std::is_same_v<V, bool>)
        return STAVE_I_BOOL;
    else if constexpr (std::is_floating_point_v<V>)
        return STAVE_I_DOUBLE;
    else if constexpr (std::is_enum_v<V>)
        return STAVE_I_INT;
    else if constexpr (std::is_integral_v<V>)
        return std::is_signed_v<V> ? STAVE_I_INT : STAVE_I_UINT;
    else if constexpr (std::is_convertible_v<V, const stave_args *>)
        return STAVE_I_ARGS;
    else if constexpr (std::is_convertible_v<V, std::string_view>)
        return STAVE_I_TEXT;
    else
        return STAVE_I_POINTER;
}

/* A value as a 64-bit word. A string_view need not end in NUL: its first 255 bytes are copied
 * for the duration of the call. */
template <bool IsView> struct text_copy {
};
template <> struct text_copy<true> {
    char text[256];
};

template <class T> struct word_of : text_copy<std::is_same_v<T, std::string_view>> {
    std::uint64_t bits;

    explicit word_of(const T &v)
    {
        constexpr auto type = type_of<T>();
        if constexpr (type == STAVE_I_DOUBLE) {
            bits = stave_i_from_double(static_cast<double>(v));
        } else if constexpr (type == STAVE_I_INT || type == STAVE_I_UINT || type == STAVE_I_BOOL) {
            bits = static_cast<std::uint64_t>(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
            bits = stave_i_from_ptr(v.c_str());
        } else if constexpr (std::is_same_v<T, std::string_view>) {
            const std::size_t n = v.size() < sizeof this->text ? v.size() : sizeof this->text - 1;
            std::memcpy(this->text, v.data(), n);
            this->text[n] = '\0';
            bits = stave_i_from_ptr(this->text);
        } else {
            bits = stave_i_from_ptr(v);
        }
    }
};

template <class T> word_of<std::decay_t<const T>> word(const T &v)
{
    return word_of<std::decay_t<const T>>(v);
}

struct list {
    std::uint64_t at[20];
};

/* A slice with a category and a name known at run time, from construction to destruction. */
class scope
{
  public:
    scope(const char *category, const std::string &name, const stave_args *args = nullptr)
    {
        const stave_event e = {
            sizeof e, STAVE_KIND_BEGIN, STAVE_THREAD, category, name.c_str(), args, 0, 0, 0};
        is_open_ = stave_emit(&e);
        category_ = category;
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope()
    {
        const stave_event e = {
            sizeof e, STAVE_KIND_END, STAVE_THREAD, category_, nullptr, nullptr, 0, 0, 0};
        if (is_open_)
            stave_emit(&e);
    }

  private:
    const char *category_;
    bool is_open_;
};

} /* namespace stave */

#endif
