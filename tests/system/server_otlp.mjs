// A collector over gRPC for server_otlp.sh, on Node's own HTTP/2: messages, status and trailers are made here by hand, so that not both ends are libgrpc.
//   node server_otlp.mjs FILE ANSWER…      prints its port; FILE.bin: the messages that it took, FILE.log: its answers, as of server_otlp.py
// An answer is the number of a status, STATUS:SECONDS with a google.rpc.RetryInfo, `partial` (0, one span rejected), `close` (the connection ends after half of the
// message), or `silent` (no answer until the client goes). The last one is that of all further calls.
import fs from 'node:fs';
import http2 from 'node:http2';

const [file, ...plan] = process.argv.slice(2);
const field = (id, bytes) => Buffer.concat([Buffer.from([id << 3 | 2, bytes.length]), bytes]);
const retryInfo = (seconds) => field(3, Buffer.concat([
  field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')), field(2, field(1, Buffer.from([1 << 3, seconds])))]));
const partial = Buffer.from([0x0a, 6, 8, 1, 0x12, 2, 0x6e, 0x6f]);

function answer(stream, status, seconds, body) {
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]);
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status, 'grpc-message': 'on purpose',
    ...(seconds ? { 'grpc-status-details-bin': retryInfo(seconds).toString('base64').replace(/=+$/, '') } : {}) }));
  stream.end(status === '0' ? message : undefined);
}

const server = http2.createServer();
server.on('stream', (stream, headers) => {
  const word = plan.length > 1 ? plan.shift() : plan[0];
  const seen = [];
  let size = 0;
  fs.appendFileSync(`${file}.log`, `${word} ${headers[':path']} ${headers['content-type']} ${performance.now() / 1000}\n`);
  stream.on('error', () => {});
  stream.on('data', (piece) => {
    seen.push(piece);
    size += piece.length;
    if (word === 'close') stream.session.destroy();
  });
  stream.on('end', () => {
    const message = Buffer.concat(seen);
    if (word === 'close' || word === 'silent' || headers.te !== 'trailers' || message[0] !== 0 || message.readUInt32BE(1) !== size - 5) return;
    const [status, seconds] = word === 'partial' ? ['0'] : word.split(':');
    if (status === '0') fs.appendFileSync(`${file}.bin`, message.subarray(5));
    answer(stream, status, Number(seconds || 0), word === 'partial' ? partial : Buffer.alloc(0));
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
