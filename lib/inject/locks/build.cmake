# Waits for locks, by LD_PRELOAD. What it shares with lib/inject/io is in lib/inject/preload.
sv_inject(locks)
target_sources(stave_inject_locks PRIVATE lib/inject/preload/preload.c lib/inject/preload/stacks.c lib/inject/preload/waits.c)
