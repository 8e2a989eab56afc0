// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn work(round: u64) -> Result<usize, String> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for i in 0..500u64 {
        *counts.entry(format!("{}", (i + round) * 7919 % 97)).or_insert(0) += fibonacci(6);
    }
    let mut keys: Vec<_> = counts.iter().collect();
    keys.sort_by(|a, b| a.1.cmp(b.1).then_with(|| a.0.cmp(b.0)));
    keys.first().map(|k| k.0.len()).ok_or_else(|| "none".to_string())
}

fn main() {
    let other = std::thread::spawn(|| loop {
        std::hint::black_box(work(1).unwrap());
    });
    for round in 0.. {
        std::hint::black_box(work(round).unwrap());
    }
    other.join().unwrap();
}
