// SPDX-License-Identifier: Apache-2.0
//
// Rust: calls through a trait object, and large frames. main() is C's, so that no runtime is between.
#![no_main]
use std::hint::black_box;

extern "C" {
    fn prctl(option: i32, name: *const u8) -> i32;
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn r_leaf(count: u64) -> u64 {
    let mut value: u64 = 1;
    for _ in 0..count {
        value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    value
}

#[no_mangle]
#[inline(never)]
pub fn r_closure(work: &dyn Fn(u64) -> u64, count: u64) -> u64 {
    black_box(work(count)) + black_box(r_middle(count))
}

#[no_mangle]
#[inline(never)]
pub fn r_middle(count: u64) -> u64 {
    let mut room = [0u64; 40];
    room[(count % 40) as usize] = r_leaf(count);
    black_box(&room)[(count % 40) as usize]
}

#[no_mangle]
#[inline(never)]
pub fn r_outer(count: u64) -> u64 {
    black_box(r_middle(count)) + black_box(r_middle(count / 2))
}

#[no_mangle]
pub extern "C" fn main() -> i32 {
    unsafe {
        prctl(15, concat!("t.", env!("TRUTH_NAME"), "\0").as_ptr());
    }
    loop {
        black_box(r_closure(black_box(&|n| r_outer(n) + 1), black_box(100000)));
    }
}
