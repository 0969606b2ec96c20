// stave-server over gRPC, by @grpc/grpc-js and the public field numbers of server_grpc.proto.
//   node server_grpc.mjs NPM_FOLDER PROTO GRPC_PORT HTTP_PORT WHAT…
// WHAT: all (every method, every type, refusals), gone (clients that leave), stop (calls in the middle of a shutdown), rows N (N requests)
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { createRequire } from 'node:module';

const [npm, proto, grpcPort, httpPort, what, count] = process.argv.slice(2);
const require = createRequire(npm + '/');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const Service = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, longs: String, defaults: true })).inference.GRPCInferenceService;
const open = (options = {}) => new Service(`127.0.0.1:${grpcPort}`, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1, ...options });
const client = open();
const { status } = grpc;

let failed = false;
function check(name, condition, detail) {
  console.log(condition ? `ok ${name}` : `not ok ${name}: ${JSON.stringify(detail)}`);
  failed ||= !condition;
}
// [error code or 0, answer or message]
const call = (method, message, options = {}, by = client) =>
  new Promise((done) => by[method](message, new grpc.Metadata(), { deadline: Date.now() + 60000, ...options },
    (e, v) => done(e ? [e.code, e.details] : [0, v])));
const tensor = (name, datatype, shape, contents) => ({ name, datatype, shape, ...(contents ? { contents } : {}) });
const tokens = (ids, more = {}) => ({
  model_name: 'tokens', ...more,
  inputs: [tensor('input_ids', 'INT64', [1, ids.length], { int64_contents: ids }), tensor('attention_mask', 'INT64', [1, ids.length], { int64_contents: ids.map(() => 1) })],
});
const overHttp = (path, body) => new Promise((done, fail) => {
  const r = http.request({ port: httpPort, path, method: body ? 'POST' : 'GET' }, (a) => {
    let text = ''; a.on('data', (d) => { text += d; }); a.on('end', () => done(JSON.parse(text)));
  });
  r.on('error', fail); r.end(body && JSON.stringify(body));
});

async function plain() {
  check('grpc_live', (await call('ServerLive', {}))[1].live === true);
  check('grpc_ready', (await call('ServerReady', {}))[1].ready === true);
  check('grpc_model_ready', (await call('ModelReady', { name: 'tokens', version: '1' }))[1].ready === true);
  const server = (await call('ServerMetadata', {}))[1];
  check('grpc_server', server.name === 'stave-server' && server.extensions.includes('statistics'), server);
  const model = (await call('ModelMetadata', { name: 'tokens' }))[1], page = await overHttp('/v2/models/tokens');
  const shapes = (list) => list.map((t) => [t.name, t.datatype, t.shape.map(Number)]);
  check('grpc_model', model.name === 'tokens' && JSON.stringify([shapes(model.inputs), shapes(model.outputs)]) === JSON.stringify([shapes(page.inputs), shapes(page.outputs)]), model);
  const config = (await call('ModelConfig', { name: 'tokens' }))[1].config;
  check('grpc_config', config.max_batch_size === 16 && config.input[0].data_type === 9 && config.output[0].data_type === 11 && Number(config.input[0].dims[0]) === -1, config);
  const index = (await call('RepositoryIndex', { ready: true }))[1].models;
  check('grpc_index', index.some((m) => m.name === 'tokens' && m.state === 'READY'), index);
}

async function numbers() {
  const body = { inputs: tokens([5, 17, 3]).inputs.map((t) => ({ name: t.name, datatype: t.datatype, shape: t.shape, data: t.contents.int64_contents })) };
  const expected = (await overHttp('/v2/models/tokens/infer', body)).outputs[0].data.map(Math.fround);
  let [code, a] = await call('ModelInfer', tokens([5, 17, 3], { id: 'é"', unknown: 'x', parameters: { p: { int64_param: 1 } } }));
  check('grpc_infer_typed', code === 0 && a.id === 'é"' && a.outputs[0].datatype === 'FP32' && String(a.outputs[0].shape) === '1,4' &&
    a.outputs[0].contents.fp32_contents.every((v, i) => v === expected[i]) && a.raw_output_contents.length === 0, [a, expected]);
  check('grpc_infer_numbers', Number(a.parameters.batch_id.int64_param) > 0 && Number(a.parameters.batch_size.int64_param) >= 1, a.parameters);
  const raw = (v) => { const b = Buffer.alloc(v.length * 8); v.forEach((x, i) => b.writeBigInt64LE(BigInt(x), i * 8)); return b; };
  const message = tokens([5, 17, 3], { raw_input_contents: [raw([5, 17, 3]), raw([1, 1, 1])] });
  message.inputs.forEach((t) => delete t.contents);
  [code, a] = await call('ModelInfer', message);
  check('grpc_infer_raw', code === 0 && a.raw_output_contents.length === 1 && expected.every((v, i) => v === a.raw_output_contents[0].readFloatLE(i * 4)), a);
  const metadata = new grpc.Metadata();
  metadata.set('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
  metadata.set('tracestate', 'a=1');
  const given = await new Promise((done) => client.ModelInfer(tokens([5]), metadata, (e) => e && done([String(e)])).on('metadata', (m) => done(m.get('traceparent'))));
  check('grpc_traceparent', given.length === 1 && /^00-0af7651916cd43dd8448eb211c80319c-(?!b7ad6b7169203331)[0-9a-f]{16}-01$/.test(given[0]), given);
  const packed = open({ 'grpc.default_compression_algorithm': 2 });
  check('grpc_infer_gzip', (await call('ModelInfer', tokens(Array(5000).fill(7)), {}, packed))[0] === 0);
  packed.close();
}

async function types() {
  const rows = [['t_bool', 'BOOL', 'bool_contents', [true, false]], ['t_uint8', 'UINT8', 'uint_contents', [0, 255]], ['t_uint16', 'UINT16', 'uint_contents', [0, 65535]],
    ['t_uint32', 'UINT32', 'uint_contents', [0, 4294967295]], ['t_uint64', 'UINT64', 'uint64_contents', ['0', '18446744073709551615']],
    ['t_int8', 'INT8', 'int_contents', [-128, 127]], ['t_int16', 'INT16', 'int_contents', [-32768, 32767]], ['t_int32', 'INT32', 'int_contents', [-2147483648, 2147483647]]];
  const inputs = rows.map(([n, t, f, v]) => tensor(n, t, [1, 2], { [f]: v }));
  let [code, a] = await call('ModelInfer', { model_name: 'types_a', inputs });
  check('grpc_types', code === 0 && rows.every(([n, t, f, v], i) => a.outputs[i].name === n && a.outputs[i].datatype === t && JSON.stringify(a.outputs[i].contents[f]) === JSON.stringify(v)), a);
  [code, a] = await call('ModelInfer', { model_name: 'types_a', inputs, outputs: [{ name: 't_int8' }] });
  check('grpc_outputs_asked', code === 0 && a.outputs.length === 1 && a.outputs[0].name === 't_int8', a);
  inputs[5].contents = { int_contents: [-129, 0] };
  [code, a] = await call('ModelInfer', { model_name: 'types_a', inputs });
  check('grpc_out_of_range', code === status.INVALID_ARGUMENT && /contents of input 't_int8'/.test(a), [code, a]);
  const raws = [Buffer.alloc(16, 1), Buffer.alloc(8, 2), Buffer.alloc(16, 3), Buffer.alloc(4, 4), Buffer.alloc(4, 5), Buffer.from('\x02\0\0\0hi\0\0\0\0\x01\0\0\0!', 'latin1')];
  const raw = { model_name: 'types_b', raw_input_contents: raws, inputs: [['t_int64', 'INT64', 2], ['t_fp32', 'FP32', 2], ['t_fp64', 'FP64', 2], ['t_fp16', 'FP16', 2],
    ['t_bf16', 'BF16', 2], ['t_bytes', 'BYTES', 3]].map(([n, t, d]) => tensor(n, t, [1, d])) };
  [code, a] = await call('ModelInfer', raw);
  check('grpc_types_raw', code === 0 && raws.every((b, i) => b.equals(a.raw_output_contents[i])), a);
  raw.raw_input_contents[5] = Buffer.from('\x02\0\0\0hi\xff\xff\xff\xff', 'latin1');
  check('grpc_bytes_damaged', (await call('ModelInfer', raw))[0] === status.INVALID_ARGUMENT);
}

// The library compares a message with the limit when it has all of it: of one past max_pending_bytes (16 MB here) it does not take all.
async function farTooLarge() {
  let sent = 0;
  const counter = net.createServer((a) => {
    const b = net.connect(grpcPort, '127.0.0.1');
    a.on('data', (d) => { sent += d.length; if (!b.write(d)) { a.pause(); b.once('drain', () => a.resume()); } });
    b.on('data', (d) => a.write(d));
    for (const [x, y] of [[a, b], [b, a]]) { x.on('error', () => {}); x.on('close', () => y.destroy()); }
  });
  await new Promise((done) => counter.listen(0, '127.0.0.1', done));
  const huge = new grpc.Client(`127.0.0.1:${counter.address().port}`, grpc.credentials.createInsecure(), { 'grpc.max_send_message_length': -1 });
  const code = await new Promise((done) => huge.makeUnaryRequest('/inference.GRPCInferenceService/ModelInfer', (b) => b, (b) => b, Buffer.alloc(100000000), (e) => done(e?.code ?? 0)));
  huge.close(); counter.close();
  check('grpc_far_too_large', code === status.RESOURCE_EXHAUSTED && sent < 50000000, [code, sent]);
  // Until its memory is free again the library may refuse others' calls, too.
  let got;
  for (let i = 0; i < 200; i++) {
    [got] = await call('ModelInfer', tokens([1]));
    if (got === 0) break;
    await new Promise((done) => setTimeout(done, 50));
  }
  check('grpc_takes_calls_again', got === 0, got);
}

async function refusals() {
  const refused = async (name, code, words, method, message) => {
    const [got, text] = await call(method, message);
    check(`grpc_${name}`, got === code && words.test(text), [got, text]);
  };
  await refused('no_method', status.UNIMPLEMENTED, /no such method/, 'NoSuchMethod', {});
  await refused('no_model', status.NOT_FOUND, /no such model/, 'ModelInfer', { model_name: 'other' });
  await refused('no_model_ready', status.NOT_FOUND, /no such model/, 'ModelReady', { name: 'other' });
  await refused('no_version', status.NOT_FOUND, /no such version/, 'ModelInfer', tokens([1], { model_version: '9' }));
  await refused('no_inputs', status.INVALID_ARGUMENT, /no inputs/, 'ModelInfer', { model_name: 'tokens' });
  await refused('no_stats', status.NOT_FOUND, /no such model/, 'ModelStatistics', { name: 'other' });
  const changed = (f) => { const m = tokens([1, 2]); f(m); return m; };
  await refused('few_inputs', status.INVALID_ARGUMENT, /attention_mask' is missing/, 'ModelInfer', changed((m) => m.inputs.pop()));
  await refused('many_inputs', status.INVALID_ARGUMENT, /more inputs/, 'ModelInfer', changed((m) => { m.inputs = Array(9).fill(m.inputs[0]); }));
  await refused('few_values', status.INVALID_ARGUMENT, /contents of input/, 'ModelInfer', changed((m) => m.inputs[0].contents.int64_contents.pop()));
  await refused('wrong_field', status.INVALID_ARGUMENT, /contents of input/, 'ModelInfer', changed((m) => { m.inputs[0].contents = { fp32_contents: [1, 2] }; }));
  await refused('wrong_type', status.INVALID_ARGUMENT, /must be INT64/, 'ModelInfer', changed((m) => { m.inputs[0].datatype = 'FP32'; }));
  await refused('wrong_shape', status.INVALID_ARGUMENT, /must be \[rows, -1\]/, 'ModelInfer', changed((m) => { m.inputs[0].shape = [1, 1, 2]; }));
  await refused('huge_shape', status.INVALID_ARGUMENT, /more than 4194304/, 'ModelInfer', changed((m) => { m.inputs[0].shape = [1, '1099511627776']; }));
  await refused('many_rows', status.INVALID_ARGUMENT, /at most 16/, 'ModelInfer', changed((m) => { m.inputs[0].shape = [1000, 2]; }));
  await refused('raw_and_typed', status.INVALID_ARGUMENT, /both contents and raw/, 'ModelInfer', changed((m) => { m.raw_input_contents = [Buffer.alloc(16), Buffer.alloc(16)]; }));
  await refused('few_raw', status.INVALID_ARGUMENT, /as many raw_input_contents/, 'ModelInfer', changed((m) => { m.raw_input_contents = [Buffer.alloc(16)]; }));
  await refused('unknown_output', status.INVALID_ARGUMENT, /no such output/, 'ModelInfer', changed((m) => { m.outputs = [{ name: 'x' }]; }));
  await refused('vocabulary', status.INVALID_ARGUMENT, /not in the vocabulary/, 'ModelInfer', tokens([64]));
  await refused('long_id', status.INVALID_ARGUMENT, /less than 128/, 'ModelInfer', tokens([1], { id: 'x'.repeat(200) }));
  const big = open({ 'grpc.max_send_message_length': -1 });
  const [code, text] = await call('ModelInfer', { model_name: 'tokens', raw_input_contents: [Buffer.alloc(3000000)] }, {}, big);
  check('grpc_too_large', code === status.RESOURCE_EXHAUSTED, [code, text]);
  big.close();
  await farTooLarge();
  // Bytes that are no message, in a call that is well-formed otherwise.
  const bad = (bytes) => new Promise((done) => client.makeUnaryRequest('/inference.GRPCInferenceService/ModelInfer', (b) => b, (b) => b, bytes, (e) => done(e?.code ?? 0)));
  check('grpc_damaged', await bad(Buffer.from([0x0a, 0x7f, 1])) === status.INVALID_ARGUMENT && await bad(Buffer.alloc(0)) === status.NOT_FOUND);
  // Bytes that are not even HTTP/2.
  const noise = net.connect(grpcPort, '127.0.0.1');
  noise.on('error', () => {});
  noise.end('GET / HTTP/1.1\r\n\r\n' + 'x'.repeat(1000));
  check('grpc_goes_on', (await call('ModelInfer', tokens([1])))[0] === 0);
}

const stream = (messages, by = client) => new Promise((done) => {
  const s = by.ModelStreamInfer(), answers = [];
  s.on('data', (d) => answers.push(d)); s.on('error', () => {}); s.on('status', (st) => done([st.code, answers]));
  messages.forEach((m) => s.write(m)); s.end();
});

async function streams() {
  const messages = Array.from({ length: 100 }, (_, i) => (i === 50 ? { model_name: 'other' } : i === 60 ? tokens([99], { id: 'r60' }) : tokens([i % 64], { id: `r${i}` })));
  const [code, answers] = await stream(messages);
  const good = answers.filter((a) => !a.error_message), bad = answers.filter((a) => a.error_message);
  check('grpc_stream', code === 0 && good.length === 98 && new Set(good.map((a) => a.infer_response.id)).size === 98, [code, answers.length]);
  check('grpc_stream_errors', bad.length === 2 && bad.some((a) => /no such model/.test(a.error_message)) && bad.some((a) => a.infer_response?.id === 'r60' && /vocabulary/.test(a.error_message)), bad);
  check('grpc_stream_empty', (await stream([]))[0] === 0);
}

async function statistics() {
  const read = async () => (await call('ModelStatistics', { name: 'tokens' }))[1].model_stats[0];
  const before = await read();
  await Promise.all(Array.from({ length: 20 }, (_, i) => call('ModelInfer', tokens([i]))));
  const after = await read(), page = (await overHttp('/v2/models/tokens/stats')).model_stats[0];
  check('grpc_stats', after.inference_count - before.inference_count === 20 && after.inference_stats.success.count - before.inference_stats.success.count === 20, after);
  check('grpc_stats_as_http', Number(after.inference_count) === page.inference_count && Number(after.inference_stats.queue.ns) === page.inference_stats.queue.ns &&
    after.batch_stats.length === page.batch_stats.length, [after, page]);
  check('grpc_stats_of_all', (await call('ModelStatistics', {}))[1].model_stats.length > 1);
}

// Triton's trace settings: read by everybody, set by the server's user on the port of gRPC, or with the token.
async function settings() {
  const set = (message, token) => new Promise((done) => {
    const m = new grpc.Metadata();
    if (token) m.set('authorization', `Bearer ${token}`);
    client.TraceSetting(message, m, { deadline: Date.now() + 60000 }, (e, v) => done(e ? [e.code, e.details] : [0, v.settings]));
  });
  const one = (key, ...value) => ({ settings: { [key]: { value } }, model_name: 'slow' });
  const page = async () => overHttp('/v2/models/slow/trace/setting');
  const read = await set({ model_name: 'slow' }), asHttp = await page();
  check('grpc_trace_read', read[0] === 0 && read[1].trace_level.value.join() === asHttp.trace_level.join() && read[1].trace_file.value[0] === asHttp.trace_file &&
    Object.keys(read[1]).sort().join() === Object.keys(asHttp).sort().join(), [read, asHttp]);
  if (grpcPort === httpPort) check('grpc_trace_needs_token', (await set(one('trace_rate', '6')))[0] === status.PERMISSION_DENIED);
  else check('grpc_trace_by_user', (await set(one('trace_rate', '6')))[0] === 0 && (await page()).trace_rate === '6');
  check('grpc_trace_wrong_token', (await set(one('trace_rate', '7'), 'wrong'))[0] === status.PERMISSION_DENIED);
  const changed = await set(one('trace_rate', '7'), 'secret-word');
  check('grpc_trace_set', changed[0] === 0 && changed[1].trace_rate.value[0] === '7' && (await page()).trace_rate === '7', changed);
  const off = await set({ settings: { trace_level: { value: ['OFF'] }, trace_count: { value: ['3'] } }, model_name: 'slow' }, 'secret-word');
  check('grpc_trace_two', off[0] === 0 && off[1].trace_level.value.join() === 'OFF' && off[1].trace_count.value[0] === '3', off);
  const back = await set({ settings: { trace_rate: { value: [] }, trace_level: { value: [] }, trace_count: { value: [] } }, model_name: 'slow' }, 'secret-word');
  check('grpc_trace_null', back[0] === 0 && JSON.stringify(back[1]) === JSON.stringify(read[1]), [back, read]);
  const [code, text] = await set(one('trace_rates', '7'), 'secret-word');
  check('grpc_trace_unknown', code === status.INVALID_ARGUMENT && /no setting 'trace_rates'/.test(text), [code, text]);
  check('grpc_trace_no_model', (await set({ model_name: 'none' }))[0] === status.NOT_FOUND);
}

// The server waits 400 ms for a batch: what is cancelled meanwhile is never computed.
async function gone() {
  const before = (await call('ModelStatistics', { name: 'slow' }))[1].model_stats[0];
  const message = { ...tokens([1, 2]), model_name: 'slow' };
  const late = await call('ModelInfer', message, { deadline: Date.now() + 50 });
  check('grpc_deadline', late[0] === status.DEADLINE_EXCEEDED, late);
  const cancelled = await new Promise((done) => { const c = client.ModelInfer(message, (e) => done(e?.code)); setTimeout(() => c.cancel(), 20); });
  check('grpc_cancelled', cancelled === status.CANCELLED, cancelled);
  const killed = open(), leaver = killed.ModelStreamInfer();
  leaver.on('error', () => {});
  for (let i = 0; i < 5; i++) leaver.write(message);
  await new Promise((done) => setTimeout(done, 50));
  leaver.cancel(); killed.close();
  const [code, a] = await call('ModelInfer', message);
  check('grpc_after_gone', code === 0, [code, a]);
  const after = (await call('ModelStatistics', { name: 'slow' }))[1].model_stats[0];
  console.log(`  computed ${after.inference_count - before.inference_count}`);
}

// The server has closed its side of all our connections, and we have not looked at it: their state is CLOSE_WAIT. No event is handled meanwhile.
function waitForClose() {
  const port = Number(grpcPort).toString(16).toUpperCase().padStart(4, '0');
  const ours = () => ['tcp', 'tcp6'].flatMap((f) => fs.readFileSync(`/proc/self/net/${f}`, 'latin1').split('\n').map((l) => l.trim().split(/\s+/)))
    .filter((w) => w[2]?.endsWith(`:${port}`) && (w[3] === '01' || w[3] === '08'));
  for (let i = 0; i < 6000 && ours().some((w) => w[3] === '01'); i++) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  return ours().length > 0;
}

// Calls that were accepted are answered; later ones find no server, also those that are sent when it is gone.
async function stop() {
  const codes = { ok: 0, unavailable: 0, other: 0 }, idle = open(), late = open(), waiting = idle.ModelStreamInfer();
  const streamed = new Promise((done) => waiting.on('data', done)), ended = new Promise((done) => waiting.on('status', done));
  waiting.on('error', () => {});
  waiting.write(tokens([3]));
  await streamed;
  await call('ServerLive', {}, {}, late);
  for (let i = 0; i < 2000 && codes.unavailable === 0; i++) {
    const all = await Promise.all(Array.from({ length: 8 }, () => call('ModelInfer', tokens([3]), { deadline: Date.now() + 5000 })));
    if (i === 0) console.log('started');
    for (const [code, text] of all) {
      codes[code === 0 ? 'ok' : code === status.UNAVAILABLE ? 'unavailable' : 'other']++;
      if (code !== 0 && code !== status.UNAVAILABLE) codes.first ??= [code, text];
    }
  }
  check('grpc_stop', codes.ok > 0 && codes.unavailable > 0 && codes.other === 0, codes);
  const end = await ended;
  check('grpc_stop_stream', end.code === status.UNAVAILABLE && end.details === 'the server stops', end);
  check('grpc_stop_seen_late', waitForClose());
  const [code, text] = await call('ModelInfer', tokens([3]), {}, late);
  check('grpc_stop_late', code === status.UNAVAILABLE, [code, text]);
  idle.close(); late.close();
}

if (what === 'all') for (const part of [plain, numbers, types, refusals, streams, statistics, settings]) await part();
else if (what === 'gone') await gone();
else if (what === 'rows') {
  const all = await Promise.all(Array.from({ length: Number(count) }, (_, i) => call('ModelInfer', tokens([i % 64]))));
  check('grpc_rows', all.every(([code]) => code === 0), all.find(([code]) => code !== 0));
} else if (what === 'stop') await stop();
client.close();
process.exit(failed ? 1 : 0);
