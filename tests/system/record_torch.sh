#!/usr/bin/env bash
# A real loader: PyTorch's DataLoader with two workers reads 640 files; every open, read and byte is counted.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip_all "no PyTorch here: apt-get install python3-torch"
. "$SRC/tests/harness/kernel.sh"

mkdir data; for i in $(seq 0 639); do head -c $((1000 + i)) /dev/zero >"data/sample_$i.bin"; done
cat >load.py <<'END'
import os, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"sample_{i}.bin") for i in range(640)]
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, i):
        fd = os.open(self.paths[i], os.O_RDONLY)
        try:
            return len(os.read(fd, 1 << 16))
        finally:
            os.close(fd)

total = sum(int(b.sum()) for b in DataLoader(Files(sys.argv[1]), batch_size=32, num_workers=2))
print(total)
END
run_any torch 0 "$STAVE" record --strict -o torch.pftrace --path "$TMP/data/" -- /usr/bin/python3 load.py "$TMP/data"
check torch_read_all grep -qx $((640 * 1000 + 639 * 320)) torch.out
ask() { "$STAVE" query -q --to csv torch.pftrace "$1" | tail -n +2; }
equals() { check "$1" test "$2" = "$3"; }
equals torch_opens "$(ask "SELECT count(*), count(DISTINCT path) FROM io WHERE op = 'openat'")" 640,640
equals torch_reads "$(ask "SELECT count(*), sum(bytes) FROM io WHERE op = 'read' AND category = 'syscall'")" 640,$((640 * 1000 + 639 * 320))
equals torch_closes "$(ask "SELECT count(*) FROM io WHERE op = 'close'")" 640
equals torch_workers "$(ask "SELECT count(DISTINCT pid) FROM io WHERE op = 'read' AND category = 'syscall'")" 2
equals torch_nothing_lost "$("$STAVE" cat -q torch.pftrace | grep -c ' loss ')" 0
check torch_valid "$STAVE" validate -q torch.pftrace
