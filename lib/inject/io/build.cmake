# Calls on files, by LD_PRELOAD. What it shares with lib/inject/locks is in lib/inject/preload.
sv_inject(io)
target_sources(stave_inject_io PRIVATE lib/inject/preload/preload.c lib/inject/preload/stacks.c lib/inject/preload/waits.c)
