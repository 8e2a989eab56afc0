/* SPDX-License-Identifier: Apache-2.0 */

/* A ring of 64 bytes that the test fills as the kernel would, or as it must not. */
#include "perf_ring.h"
#include "unit_test.h"

#include "perf_abi.h"

#include <errno.h>

#define DATA_BYTES ((uint64_t)64)

struct fixture {
    struct perf_event_mmap_page meta;
    struct perf_ring ring;
    uint8_t *data; /* of exactly DATA_BYTES */
    uint8_t *bounce;
};

static void begin_at(struct fixture *fixture, uint64_t start)
{
    fixture->meta.data_head = start;
    fixture->meta.data_tail = start;
    perf_ring_init(&fixture->ring, &fixture->meta, fixture->data, DATA_BYTES, fixture->bounce);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->data = calloc(1, DATA_BYTES);
    fixture->bounce = calloc(1, PERF_RING_BOUNCE_BYTES);
    begin_at(fixture, 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    free(fixture->data);
    free(fixture->bounce);
    free(fixture);
    return 0;
}

#define STORY(name) TEST_OF(struct fixture *fixture, name, set_up, tear_down)

/* Writes a record whose body bytes are all `fill`, and moves the head by `size_bytes`. */
static void write_record(struct fixture *fixture, uint16_t size_bytes, uint8_t fill)
{
    uint8_t record[DATA_BYTES];
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size_bytes};
    memset(record, fill, sizeof record);
    memcpy(record, &header, sizeof header);
    for (uint64_t i = 0; i < size_bytes && i < DATA_BYTES; i++) {
        fixture->data[(fixture->meta.data_head + i) % DATA_BYTES] = record[i];
    }
    fixture->meta.data_head += size_bytes;
}

/* The next record is `size_bytes` of `fill`, however often it is looked at. Returns where it is
 * shown. */
static const uint8_t *expect_record(struct fixture *fixture, size_t size_bytes, uint8_t fill)
{
    const uint8_t *record = NULL;
    size_t shown_bytes = 0;
    for (int look = 0; look < 2; look++) {
        assert_int_equal(perf_ring_peek(&fixture->ring, &record, &shown_bytes), 1);
        assert_int_equal(shown_bytes, size_bytes);
    }
    assert_int_equal((uintptr_t)record % 8, 0);
    for (size_t i = sizeof(struct perf_event_header); i < size_bytes; i++) {
        assert_int_equal(record[i], fill);
    }
    perf_ring_advance(&fixture->ring, shown_bytes);
    return record;
}

static void expect_none(struct fixture *fixture)
{
    const uint8_t *record = NULL;
    size_t size_bytes = 0;
    assert_int_equal(perf_ring_peek(&fixture->ring, &record, &size_bytes), 0);
}

STORY(sees_nothing_newer_than_the_noted_head)
{
    write_record(fixture, 16, 1);
    perf_ring_refresh(&fixture->ring);
    write_record(fixture, 16, 2);
    (void)expect_record(fixture, 16, 1);
    expect_none(fixture);
    perf_ring_refresh(&fixture->ring);
    (void)expect_record(fixture, 16, 2);
}

STORY(gives_space_back_only_when_published)
{
    write_record(fixture, 16, 1);
    perf_ring_refresh(&fixture->ring);
    (void)expect_record(fixture, 16, 1);
    assert_int_equal(fixture->meta.data_tail, 0);
    (void)perf_ring_publish(&fixture->ring);
    assert_int_equal(fixture->meta.data_tail, 16);
}

/* Of every size at every place; the numbers of bytes go past the end of 64 bits. */
STORY(shows_records_in_place_or_puts_them_together)
{
    static const uint64_t begins[] = {0, DATA_BYTES * 1000, UINT64_MAX - (DATA_BYTES - 1)};
    for (uint64_t i = 0; i < COUNT_OF(begins) * DATA_BYTES; i++) {
        for (uint16_t size_bytes = 8; size_bytes <= DATA_BYTES; size_bytes++) {
            const uint64_t at = i % DATA_BYTES;
            bool is_in_place = at % 8 == 0 && at + size_bytes <= DATA_BYTES;
            begin_at(fixture, begins[i / DATA_BYTES] + at);
            write_record(fixture, size_bytes, 7);
            perf_ring_refresh(&fixture->ring);
            assert_ptr_equal(expect_record(fixture, size_bytes, 7),
                             is_in_place ? fixture->data + at : fixture->bounce);
            expect_none(fixture);
        }
    }
}

STORY(throws_away_what_makes_no_sense_and_goes_on)
{
    static const struct {
        const char *what;
        uint64_t tail, head;
        uint16_t record_size;
    } cases[] = {
        {"record without room for its header", 0, 32, 4},
        {"record of size 0", 0, 32, 0},
        {"record longer than what is there", 0, 32, 40},
        {"record of the largest size", 0, 64, UINT16_MAX & ~7},
        {"head before tail", 64, 32, 16},
        {"head more than a ring ahead", 0, 72, 16},
        {"head at the end of all numbers", 0, UINT64_MAX, 16},
        {"head within a header", 0, 4, 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_at(fixture, cases[i].tail);
        const uint8_t *record = NULL;
        size_t size_bytes = 0;
        write_record(fixture, cases[i].record_size, 1);
        fixture->meta.data_head = cases[i].head;
        perf_ring_refresh(&fixture->ring);
        if (perf_ring_peek(&fixture->ring, &record, &size_bytes) != -EBADMSG) {
            fail_msg("%s is not refused", cases[i].what);
        }
        expect_none(fixture);

        (void)perf_ring_publish(&fixture->ring);
        assert_int_equal(fixture->meta.data_tail, cases[i].head);
        fixture->meta.data_head = fixture->meta.data_tail;
        write_record(fixture, 24, 2);
        perf_ring_refresh(&fixture->ring);
        (void)expect_record(fixture, 24, 2);
    }
}

STORY(wipes_what_it_put_together)
{
    begin_at(fixture, 40);
    write_record(fixture, 48, 7);
    write_record(fixture, 8, 0);
    perf_ring_refresh(&fixture->ring);
    const uint8_t *record = expect_record(fixture, 48, 7);
    assert_ptr_equal(record, fixture->bounce);
    for (size_t i = 0; i < 48; i++) {
        assert_int_equal(record[i], 0);
    }
    (void)expect_record(fixture, 8, 0);
}

/* As large as a sample with a copied stack can be. */
TEST(puts_the_largest_record_together)
{
    enum {
        SIZE_BYTES = UINT16_MAX / 8 * 8,
        RING_BYTES = 131072,
        START = RING_BYTES - 8
    };
    struct perf_event_mmap_page meta = {.data_tail = START, .data_head = START + SIZE_BYTES};
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = SIZE_BYTES};
    struct perf_ring ring;
    const uint8_t *record = NULL;
    size_t size_bytes = 0;
    uint8_t *data = malloc(RING_BYTES);
    uint8_t *bounce = malloc(PERF_RING_BOUNCE_BYTES);
    assert_non_null(data);
    assert_non_null(bounce);
    memset(data, 3, RING_BYTES);
    memcpy(data + START, &header, sizeof header);
    perf_ring_init(&ring, &meta, data, RING_BYTES, bounce);
    perf_ring_refresh(&ring);
    assert_int_equal(perf_ring_peek(&ring, &record, &size_bytes), 1);
    assert_int_equal(size_bytes, SIZE_BYTES);
    assert_int_equal(record[SIZE_BYTES - 1], 3);
    perf_ring_advance(&ring, size_bytes);
    assert_int_equal(record[SIZE_BYTES - 1], 0);
    assert_int_equal(data[SIZE_BYTES - 9], 3);
    free(data);
    free(bounce);
}

/* Any user can have the kernel write one of an odd size. */
STORY(goes_on_behind_an_odd_record)
{
    const uint64_t begin = 40;
    begin_at(fixture, begin);
    write_record(fixture, 21, 1);
    write_record(fixture, 24, 2);
    write_record(fixture, 16, 3);
    perf_ring_refresh(&fixture->ring);
    assert_ptr_equal(expect_record(fixture, 21, 1), fixture->data + begin);
    assert_ptr_equal(expect_record(fixture, 24, 2), fixture->bounce);
    assert_ptr_equal(expect_record(fixture, 16, 3), fixture->bounce);
    assert_int_equal(fixture->bounce[8], 0);
    expect_none(fixture);
    (void)perf_ring_publish(&fixture->ring);
    assert_int_equal(fixture->meta.data_tail, begin + 61);
}

/* A record that ends just where the watermark is does not pass it. */
TEST(knows_with_which_record_its_reader_was_woken)
{
    const uint64_t sizes[] = {40, 60, 8, 92, 8, 300, 92, 8};
    const bool wakes[] = {false, false, true, false, true, true, false, true};
    struct perf_ring ring = {0};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(perf_ring_woke(&ring, sizes[i], 100), wakes[i]);
        ring.tail += sizes[i];
    }
}

TEST(a_zeroed_one_is_empty_for_ever)
{
    struct perf_ring ring = {0};
    const uint8_t *record = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(&ring);
    assert_int_equal(perf_ring_peek(&ring, &record, &size_bytes), 0);
    (void)perf_ring_publish(&ring);
}
