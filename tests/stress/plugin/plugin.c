/* An instrumented shared object that comes and goes. */
#include <stave/stave.h>

STAVE_API void plugin_work(int n);

void plugin_work(int n)
{
    for (int i = 0; i < n; i++) {
        STAVE_SCOPE("plugin", "in plugin", "i", i);
    }
}
