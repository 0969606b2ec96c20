# shellcheck shell=bash
# Two ClickHouse servers on loopback for a test; after tests/harness/cli.sh:
#
#     . "$SRC/tests/harness/clickhouse.sh"
#     ch_start                     # or the script is skipped: no server installed, no libcurl in the build
#     "$STAVE" query "clickhouse://127.0.0.1:$CH_PORT/default" 'SELECT 1'
#     ch_kill 2; ch_run 2          # the second shard dies without a word, and comes back with its data
#
# The shards of the cluster `two` are 127.0.0.1 and 127.0.0.2 with the same random port for HTTP, as two machines would have it (their native ports
# differ: a server takes 127.0.0.1 with its own port for itself). Their files are in $TMP/ch1 and $TMP/ch2,
# they are stopped by their pids at the script's end, and by the kernel when the script is killed.

# Ports that are free on both addresses, and that no program gets by itself.
ch_ports() {
  python3 - <<'P'
import random, socket
found = []
while len(found) < 4:
    port = random.randrange(20000, 32000)
    try:
        for host in ("127.0.0.1", "127.0.0.2"):
            with socket.socket() as s:
                s.bind((host, port))
    except OSError:
        continue
    if port not in found:
        found.append(port)
print(*found)
P
}

# ch_config NUMBER: a small server; the password of user `reader` is in CH_PASSWORD. The first one has TLS on CH_TLS_PORT ("": no openssl here), by a certificate of its own.
ch_config() {
  local tls=
  mkdir -p "$TMP/ch$1"
  if [ "$1" = 1 ] && [ -n "$CH_TLS_PORT" ]; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
      -keyout "$TMP/ch1/key.pem" -out "$TMP/ch1/certificate.pem" 2>"$TMP/ch1/openssl"
    tls="<https_port>$CH_TLS_PORT</https_port><openSSL><server><certificateFile>$TMP/ch1/certificate.pem</certificateFile>
      <privateKeyFile>$TMP/ch1/key.pem</privateKeyFile><verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile></server></openSSL>"
  fi
  cat >"$TMP/ch$1/config.xml" <<X
<yandex>
  <logger><level>warning</level><log>$TMP/ch$1/log</log><errorlog>$TMP/ch$1/errors</errorlog></logger>
  $tls<http_port>$CH_PORT</http_port><tcp_port>${CH_TCP_PORTS[$1]}</tcp_port><listen_host>127.0.0.$1</listen_host>
  <interserver_http_host>127.0.0.$1</interserver_http_host>
  <path>$TMP/ch$1/data/</path><tmp_path>$TMP/ch$1/tmp/</tmp_path>
  <users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>16777216</mark_cache_size><max_concurrent_queries>50</max_concurrent_queries>
  <remote_servers><two>
    <shard><replica><host>127.0.0.1</host><port>${CH_TCP_PORTS[1]}</port></replica></shard>
    <shard><replica><host>127.0.0.2</host><port>${CH_TCP_PORTS[2]}</port></replica></shard>
  </two></remote_servers>
</yandex>
X
  cat >"$TMP/ch$1/users.xml" <<X
<yandex>
  <profiles><default><max_memory_usage>1000000000</max_memory_usage><max_threads>2</max_threads></default></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile><quota>default</quota></default>
    <reader><password>$CH_PASSWORD</password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile><quota>default</quota></reader>
  </users>
  <quotas><default/></quotas>
</yandex>
X
}

ch_answers() { "$STAVE" query -q "clickhouse://127.0.0.$1:$CH_PORT/default" 'SELECT 1' >"$TMP/ch$1/hello" 2>&1; }

# ch_run NUMBER: starts a server and waits until it answers.
ch_run() {
  local i
  (cd "$TMP/ch$1" && exec setpriv --pdeathsig KILL clickhouse-server --config-file=config.xml >>out 2>&1) &
  CH_PIDS[$1]=$!
  for ((i = 0; i < 600; i++)); do
    ch_answers "$1" && return 0
    kill -0 "${CH_PIDS[$1]}" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 5 "$TMP/ch$1/errors" "$TMP/ch$1/out" "$TMP/ch$1/hello"
  return 1
}

ch_kill() { kill -KILL "${CH_PIDS[$1]}" 2>/dev/null; wait "${CH_PIDS[$1]}" 2>/dev/null; unset "CH_PIDS[$1]"; }
ch_stop() { local i; for i in "${!CH_PIDS[@]}"; do ch_kill "$i"; done; }

# ch_missing: prints what is not there; fails when nothing is missing.
ch_missing() {
  command -v clickhouse-server >/dev/null || { echo "no clickhouse-server (tools/install-deps test)"; return 0; }
  { command -v setpriv && command -v python3; } >/dev/null || { echo "no setpriv or python3"; return 0; }
  "$STAVE" query -q clickhouse://127.0.0.1:1/x 'SELECT 1' 2>"$TMP/no_curl"
  grep -q 'no libcurl' "$TMP/no_curl" || return 1
  echo "built without libcurl"
}

# ch_up: both servers, for callers that stop them themselves.
ch_up() {
  local ports
  declare -gA CH_PIDS=()
  CH_PASSWORD="it's a pass\\word"
  read -ra ports < <(ch_ports)
  CH_TLS_PORT=; ! command -v openssl >/dev/null || CH_TLS_PORT=${ports[3]}
  CH_PORT=${ports[0]} CH_TCP_PORTS=([1]="${ports[1]}" [2]="${ports[2]}")
  ch_config 1; ch_config 2
  ch_run 1 && ch_run 2
}

ch_start() {
  local why
  if why=$(ch_missing); then skip_all "$why"; fi
  trap 'ch_stop; cli_begin; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
  ch_up || { not_ok "there_are_two_servers"; exit 1; }
}
