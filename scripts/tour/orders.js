// SPDX-License-Identifier: Apache-2.0
//
// Sums orders by customer. One of the functions looks at all customers for each order.
function parse(line) {
    const [customer, amount] = line.split(";");
    return { customer, amount: Number(amount) };
}

function findCustomer(customers, name) {
    for (let i = 0; i < customers.length; i++)
        if (customers[i].name === name)
            return customers[i];
    customers.push({ name, sum: 0 });
    return customers[customers.length - 1];
}

function total(lines) {
    const customers = [];
    for (const line of lines) {
        const order = parse(line);
        findCustomer(customers, order.customer).sum += order.amount;
    }
    return customers;
}

const lines = Array.from({ length: 160000 }, (_, i) => `customer${(i * 7919) % 9001};${i % 97}`);
console.log(total(lines).length);
