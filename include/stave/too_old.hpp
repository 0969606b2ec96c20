/*
 * What stave.hpp is for compilers that are too old for it, after its #error: macros and a scope
 * that do nothing, so that the #error is the only message.
 */
#ifndef STAVE_TOO_OLD_HPP
#define STAVE_TOO_OLD_HPP

#ifndef STAVE_MACROS_H /* else stave.h was included before, and has those for this standard */
#define STAVE_I_TOO_OLD
#define STAVE_MACROS_H /* instead of macros.h */
#endif
#include <stave/stave.h>
#include <stave/too_old.h>

namespace stave
{
struct scope {
    template <class... Any> explicit scope(const Any &...)
    {
    }
    template <class V> scope &add(const char *, const V &)
    {
        return *this;
    }
    void end()
    {
    }
};
} /* namespace stave */

#endif
