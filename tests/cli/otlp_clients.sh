#!/usr/bin/env bash
# Real clients: OpenTelemetry's JavaScript SDK and its exporters (JSON and protobuf over HTTP, gRPC) send to stave listen --otlp; stave export sends to it, too.
. "$SRC/tests/harness/cli.sh"
case $BUILD in *asan) [ -n "${STAVE_LONG:-}" ] || skip_all "with ASan only in the long suite" ;; esac
why=$("$SRC/tools/install-deps" readers 2>&1) || skip_all "${why:-npm cannot be used}"

# begin GRPC_ADDRESS: false when the listener ends at once.
begin() {
  : >log
  "$STAVE" listen --otlp 127.0.0.1:0 --otlp-grpc "$1" -o clients.pftrace 2>log & listener=$!
  for _ in $(seq 1200); do grep -q 'Ctrl-C' log && return; kill -0 "$listener" 2>/dev/null || return 1; sleep 0.05; done
}
forms="json proto grpc"
if ! begin 127.0.0.1:0; then skip grpc "$(tail -n 1 log)"; forms="json proto"; begin off; fi
http_port=$(sed -n 's/.*OTLP on port \([0-9]*\).*/\1/p' log) grpc_port=$(sed -n 's/.*gRPC on port \([0-9]*\).*/\1/p' log)
# shellcheck disable=SC2086 # forms are words
node "$SRC/tests/cli/otlp/client.cjs" "$SRC/build/npm" "$http_port" "${grpc_port:-0}" $forms >told 2>&1
kill -INT "$listener"; wait "$listener"
for form in $forms; do
  check "${form}_is_taken" grep -qx "$form taken" told
  cat >want.csv <<END
name,otel_kind,status,message,scope,flag
child $form,internal,error,on purpose,real-client,
happened $form,,,,,
parent $form,client,,,real-client,1
END
  "$STAVE" query -q clients.pftrace "SELECT name, extract_arg(arg_set_id, 'otel.kind') AS otel_kind, extract_arg(arg_set_id, 'otel.status') AS status,
    extract_arg(arg_set_id, 'otel.status_message') AS message, extract_arg(arg_set_id, 'otel.scope') AS scope, extract_arg(arg_set_id, 'flag') AS flag
    FROM slice WHERE name LIKE '% $form' ORDER BY name" >got.csv 2>&1
  check "${form}_has_all" diff want.csv got.csv
done
