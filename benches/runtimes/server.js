// Adds numbers up. "add KEY NUMBER" is answered with the sum of the key, "count" with the number of sums that were sent.
const net = require('net');

const sums = new Map();
let exchanges = 0;

function answer(line) {
    const [command, key, number] = line.split(' ');
    if (command === 'count') return exchanges;
    exchanges += 1;
    const sum = (sums.get(key) ?? 0) + Number(number);
    sums.set(key, sum);
    return sum;
}

net.createServer((socket) => {
    let text = '';
    socket.setEncoding('latin1');
    socket.setNoDelay();
    socket.on('data', (data) => {
        const lines = (text + data).split('\n');
        text = lines.pop();
        for (const line of lines) socket.write(`${answer(line)}\n`);
    });
    socket.on('error', () => {});
}).listen(7000, '127.0.0.1');
