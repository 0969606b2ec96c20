#!/usr/bin/env bash
# Calls that copy from one descriptor to another have two ends: of a log of strace (paths by -y or from the opens before), in SQL and in the report.
. "$SRC/tests/harness/cli.sh"

cat >in.strace <<'END'
7 1700000000.000001 openat(AT_FDCWD, "/data/from", O_RDONLY) = 3 <0.000010>
7 1700000000.000020 openat(AT_FDCWD, "/data/to", O_WRONLY|O_CREAT, 0600) = 4 <0.000010>
7 1700000000.000040 sendfile(4, 3, [0] => [100], 200) = 100 <0.000005>
7 1700000000.000060 copy_file_range(3</data/from>, NULL, 4</data/to>, NULL, 30, 0) = 30 <0.000005>
7 1700000000.000080 splice(3, NULL, 9<pipe:[12]>, NULL, 5, 0) = 5 <0.000005>
END
run_any strace 0 "$STAVE" convert -q in.strace -o copy.txt
check strace_ends diff - <(grep -E '"(sendfile|copy_file_range|splice)"' copy.txt | sed 's/^[^{]*//') <<'END'
{fd=3 path="/data/from" fd2=4 path2="/data/to" requested=200 bytes=100 ret=100}
{fd=3 path="/data/from" fd2=4 path2="/data/to" requested=30 bytes=30 ret=30}
{fd=3 path="/data/from" fd2=9 requested=5 bytes=5 ret=5}
END
run_any file 0 "$STAVE" query -q --to csv copy.txt "select path, reads, writes, bytes_read, bytes_written, dur from file order by path"
check file_ends diff - file.out <<'END'
path,reads,writes,bytes_read,bytes_written,dur
/data/from,3,0,135,,25000
/data/to,0,2,,130,10000
END
run_any report 0 "$STAVE" report io -q --no-index --csv --by file copy.txt
check report_ends diff - <(sed 1d report.out | cut -d, -f1,4,5,6,11-13 | sort) <<'END'
/data/from,1,3,0,135,0,25000
/data/to,1,0,2,0,130,10000
END
