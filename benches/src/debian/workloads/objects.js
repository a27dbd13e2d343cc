// Orders of a shop: objects with methods, maps, sorted arrays and closures. Each round of orders passes through JSON,
// as between two servers.
'use strict';

let state = 12345;
const random = bound => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % bound;
};

class Product {
    constructor(number) {
        this.name = `product-${number}`;
        this.price = 100 + random(9900);
        this.stock = 400;
    }
    take(count) {
        const taken = Math.min(count, this.stock);
        this.stock -= taken;
        return taken;
    }
}

class Order {
    constructor(number, customer) {
        this.number = number;
        this.customer = customer;
        this.lines = [];
    }
    add(product, count) {
        if (count > 0) {
            this.lines.push({ product: product.name, count, price: product.price });
        }
        return this;
    }
    total() {
        return this.lines.reduce((sum, line) => sum + line.count * line.price, 0);
    }
}

class Bulk extends Order {
    total() {
        return Math.floor(super.total() * 9 / 10);
    }
}

class Shop {
    constructor(products) {
        this.products = new Map();
        for (let number = 0; number < products; number++) {
            const product = new Product(number);
            this.products.set(product.name, product);
        }
        this.turnover = new Map();
    }
    order(number) {
        const customer = `customer-${random(300)}`;
        const order = number % 5 === 0 ? new Bulk(number, customer) : new Order(number, customer);
        for (let line = 1 + random(6); line > 0; line--) {
            const product = this.products.get(`product-${random(this.products.size)}`);
            order.add(product, product.take(1 + random(4)));
        }
        return { total: order.total(), ...order };
    }
    book(order) {
        this.turnover.set(order.customer, (this.turnover.get(order.customer) ?? 0) + order.total);
    }
    restock() {
        this.products.forEach(product => { product.stock += 100; });
    }
    best(count) {
        return [...this.turnover].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, count);
    }
}

const shop = new Shop(500);
let digest = 0;
for (let round = 0; round < 60; round++) {
    const orders = [];
    for (let number = 0; number < 1000; number++) {
        orders.push(shop.order(round * 1000 + number));
    }
    const text = JSON.stringify({ round, orders });
    for (const order of JSON.parse(text).orders) {
        shop.book(order);
    }
    for (let place = 0; place < text.length; place += 97) {
        digest = (Math.imul(digest, 31) + text.charCodeAt(place)) | 0;
    }
    shop.restock();
}
console.log(digest, JSON.stringify(shop.best(3)));
