/*
 * Stave for C++: a scope class besides the macros of stave.h. Header only, on top of the C API.
 *
 *     #include <stave/stave.hpp>
 *     STAVE_SCOPE("nn", "attention", "layer", 12, "op", op, "shape", shape);     ends with the
 *         block, also by an exception
 *     stave::scope s("nn", name, "layer", 12);                                   a name known at
 *         run time
 *     s.add("loss", loss);                                                       an argument known
 *         later
 *
 * Arguments are numbers, texts (std::string, std::string_view, const char *), pointers, nullptr,
 * std::optional, and containers of these (std::vector, std::map …).
 */
#ifndef STAVE_STAVE_HPP
#define STAVE_STAVE_HPP

#if __cplusplus < 201703L
#error "stave/stave.hpp needs C++17 or newer: compile with -std=c++17, or include stave/stave.h"
#include <stave/too_old.hpp>
#else

#include <memory>
#include <stave/values.hpp>
#include <utility>

namespace stave
{

/* A slice with a name known at run time, from construction to end() or destruction.
 *
 * The category is a literal. The name is a text, or a function that returns one and is only called
 * while the category is recorded. Pairs of keys and values follow, or one const stave_args *. With
 * a track (stave_track()) the slice is on it; such a scope may be moved to another thread and end
 * in any order. One without a track ends on the thread where it began, innermost first. */
class scope
{
  public:
    scope() = default; /* none */
    template <class Name, class... Pairs>
    scope(const char *category, const Name &name, const Pairs &...pairs)
        : scope(STAVE_THREAD, category, name, pairs...)
    {
    }
    template <class Name, class... Pairs>
    scope(stave_track_t track, const char *category, const Name &name, const Pairs &...pairs)
        : category_(category), track_(track)
    {
        if (stave_enabled(category)) {
            if constexpr (std::is_convertible_v<const Name &, const char *>)
                begin(name, pairs...);
            else if constexpr (std::is_same_v<Name, std::string>)
                begin(name.c_str(), pairs...);
            else if constexpr (std::is_invocable_v<const Name &>)
                begin(std::string(name()).c_str(), pairs...);
            else
                begin(std::string(name).c_str(), pairs...);
        }
    }
    scope(scope &&from) noexcept
        : category_(from.category_), track_(from.track_), slice_(std::exchange(from.slice_, 0)),
          more_(std::move(from.more_))
    {
    }
    scope &operator=(scope &&from) noexcept
    {
        if (this != &from) {
            end();
            category_ = from.category_;
            track_ = from.track_;
            slice_ = std::exchange(from.slice_, 0);
            more_ = std::move(from.more_);
        }
        return *this;
    }
    ~scope()
    {
        end();
    }

    /* Is it being recorded? Lets a program skip what is only done for add(). */
    explicit operator bool() const
    {
        return slice_ != 0;
    }
    /* Adds an argument to the slice; they are recorded with its end. */
    template <class V> scope &add(const char *key, const V &v);
    /* Ends the slice now. */
    void end() noexcept;

  private:
    template <class... Pairs> void begin(const char *name, const Pairs &...pairs);
    void send(const char *name, const stave_args *args);

    const char *category_ = nullptr;
    stave_track_t track_ = STAVE_THREAD;
    std::uint64_t slice_ = 0; /* 0: not open. Without a track any other number */
    std::unique_ptr<stave_args> more_;
};

template <class V> scope &scope::add(const char *key, const V &v)
{
    if (slice_ != 0) {
        if (!more_) {
            more_ = std::make_unique<stave_args>();
            stave_args_init(more_.get());
        }
        put(*more_, key, v);
    }
    return *this;
}

template <class... Pairs> void scope::begin(const char *name, const Pairs &...pairs)
{
    if constexpr (sizeof...(Pairs) == 0) {
        send(name, nullptr);
    } else if constexpr (sizeof...(Pairs) == 1) {
        send(name, pairs...);
    } else {
        stave_args args;
        stave_args_init(&args);
        put_all(args, pairs...);
        send(name, &args);
    }
}

inline void scope::send(const char *name, const stave_args *args)
{
    const stave_event e = {sizeof e, STAVE_KIND_BEGIN, track_, category_, name, args, 0, 0, 0};
    slice_ = track_ == STAVE_THREAD ? stave_emit(&e) : stave_slice_begin(&e);
}

inline void scope::end() noexcept
{
    const stave_event e = {sizeof e, STAVE_KIND_END, track_, category_, nullptr, more_.get(), 0, 0,
                           0};
    if (slice_ == 0)
        return;
    if (track_ == STAVE_THREAD)
        stave_emit(&e);
    else
        stave_slice_end(slice_, &e);
    slice_ = 0;
    more_.reset();
}

} /* namespace stave */

#endif /* C++17 */

#endif
