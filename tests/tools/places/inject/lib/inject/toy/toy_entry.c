/* An interface whose loader calls one function when it has loaded the library. */
#include <stave/stave.h>

__attribute__((visibility("default"))) void toy_begin(void);

void toy_begin(void)
{
    stave_enabled(NULL);
}
