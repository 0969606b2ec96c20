"""A compiler's run: healthy, and without units. The driver waits for its children, which is no fault of theirs."""
import json
import os

from truth import FOLDER

with open(f"{FOLDER}/big.c", "w") as file:
    for i in range(1500):
        file.write(f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) "
                   f"s += a[i] * {i % 7 + 1} ^ (s >> {i % 5 + 1}); return s; }}\n")
with open(os.environ["WHY_TRUTH"], "w") as file:
    json.dump({"healthy": True, "units": {"kind": None, "n": 0, "marked": False}, "dur_ns": 0,
               "pid": os.getpid(), "causes": [], "allowed": [{"cause": ["child"], "share": 1}],
               "noise": {}}, file)
os.chdir(FOLDER)
os.execvp("cc", ["cc", "-O2", "-c", "big.c", "-o", "big.o"])
