/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver of an indirect function runs; the function that it stands for never does then. */
#include "truth.h"
static uint64_t plain(uint64_t count)
{
    return count + 1;
}
typedef uint64_t function(uint64_t);
__attribute__((used)) static function *choose_work(void)
{
    truth_begin();
    for (;;) {
        (void)truth_spin(100000);
    }
    return plain;
}
uint64_t work(uint64_t count) __attribute__((ifunc("choose_work")));
int main(void)
{
    return (int)work(1);
}
