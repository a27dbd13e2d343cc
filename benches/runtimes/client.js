// Sends a number for one of a hundred keys, compares the answer with its own sum, and so on until it is killed.
const net = require('net');

const sums = new Map();
let sent = 0;
let key, expected;
let text = '';
const socket = net.connect(7000, '127.0.0.1');

function send() {
    const number = sent * 7919 % 1000003;
    key = `key${sent % 100}`;
    expected = (sums.get(key) ?? 0) + number;
    sums.set(key, expected);
    sent += 1;
    socket.write(`add ${key} ${number}\n`);
}

function fail(why) {
    console.error(why);
    process.exit(1);
}

socket.setEncoding('latin1');
socket.setNoDelay();
socket.on('connect', send);
socket.on('data', (data) => {
    text += data;
    if (!text.endsWith('\n')) return;
    if (text !== `${expected}\n`) fail(`${key}: ${text.trim()} instead of ${expected}`);
    text = '';
    send();
});
socket.on('error', (error) => fail(error.message));
socket.on('end', () => fail('the server closed the connection'));
