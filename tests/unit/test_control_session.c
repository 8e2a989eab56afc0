/* SPDX-License-Identifier: Apache-2.0 */

/* The methods of io.cpuprofilerd.Sampler, and whose session it is, over a fake session. */
#include "control_harness.h"

#include <cjson/cJSON.h>

CLIENT(creates_a_session_of_the_config_and_the_peer)
{
    ask(client,
        CALL_WITH("Create", "{\"config\":{\"frequency_hz\":1000,\"targets\":{\"pids\":[5,6]}},"
                            "\"detach\":false}"),
        CREATED);
    assert_int_equal(fake.config.period_ns, 1001000);
    assert_int_equal(fake.config.targets.pid_count, 2);
    assert_int_equal(fake.config.targets.pids[1], 6);
    assert_int_equal(fake.owner.uid, geteuid());
    assert_int_equal(fake.owner.pid, getpid());
    assert_false(fake.owner.detached);
}

CLIENT(remarks_on_what_it_creates)
{
    ask(client, CALL_WITH("Create", "{\"config\":{\"sample_period_ns\":1000000}}"),
        "{\"parameters\":{\"session\":\"7\",\"holds_s\":60,\"notes\":[\"sample_period_ns: is in step "
        "with kernel ticks of 1 ms: in 1 s no sample falls into 1.000 ms of them, so work that runs "
        "in step with them is miscounted; ask for a frequency_hz of 1000\"]}}");
}

CLIENT(refuses_what_it_cannot_create)
{
    ask(client, CALL_WITH("Create", "{\"config\":{\"frequency_hz\":0}}"),
        ERROR("InvalidArgs", "{\"member\":\"frequency_hz\",\"text\":\"is out of range; an integer "
                             "from 1 to 100000 is allowed\"}"));
    ask(client, CALL_WITH("Create", "{\"config\":{\"unwind\":\"fp\",\"unwind\":\"fp\"}}"),
        ERROR("InvalidArgs",
              "{\"member\":\"unwind\",\"text\":\"is there twice; once is allowed\"}"));
    assert_int_equal(fake.new_count, 0);
}

CLIENT(says_why_a_session_could_not_be_made)
{
    static const struct {
        int result;
        struct fault fault;
        const char *reply;
    } cases[] = {
        {-EACCES, {EACCES, "", "no rights"}, ERROR("PermissionDenied", "{\"text\":\"no rights\"}")},
        {-EPERM, {EPERM, "", "no rights"}, ERROR("PermissionDenied", "{\"text\":\"no rights\"}")},
        {-EOPNOTSUPP, {EOPNOTSUPP, "", "too old"}, ERROR("NotSupported", "{\"text\":\"too old\"}")},
        {-ENOSYS, {ENOSYS, "", "too old"}, ERROR("NotSupported", "{\"text\":\"too old\"}")},
        {-EINVAL,
         {EINVAL, "max_stack_depth", "more than the kernel's"},
         ERROR("InvalidArgs",
               "{\"member\":\"max_stack_depth\",\"text\":\"more than the kernel's\"}")},
        {-ENOMEM, {0, "", ""}, ERROR("Failed", "{\"text\":\"Cannot allocate memory\"}")},
        {-EMFILE, {EMFILE, "", "too many files"}, ERROR("Failed", "{\"text\":\"too many files\"}")},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fake.new_result = cases[i].result;
        fake.fault = cases[i].fault;
        ask(client, CREATE, cases[i].reply);
    }
    fake.new_result = 0;
    ask(client, CREATE, CREATED);
    fake.start_result = -EIO;
    fake.fault = (struct fault){EIO, "", "the event is gone"};
    ask(client, CALL("Start"), ERROR("Failed", "{\"text\":\"the event is gone\"}"));
}

STORY(has_one_session_at_a_time)
{
    struct client *owner = dial();
    struct client *other = dial();
    const char *exists =
        spell(ERROR("AlreadyExists", "{\"owner_uid\":%u,\"age_ms\":2500}"), geteuid());
    ask(owner, CREATE, CREATED);
    ask(other, CREATE, exists);
    ask(owner, CREATE, exists);
    ask(owner, CALL("Close"), EMPTY);
    ask(other, CREATE, CREATED);
    ask(owner, CREATE, exists);
    hang_up(owner);
    assert_int_equal(fake.live_count, 1);
    ask(other, CALL("Start"), EMPTY);
}

STORY(refuses_calls_in_the_wrong_state)
{
    fake.stops_at_once = true;
    struct client *client = dial_and_create(CREATE);
    ask(client, CALL("Stop"), RUNS_NOT("created"));
    ask(client, CALL("Start"), EMPTY);
    ask(client, CALL("Start"), RUNS_ALREADY);
    ask(client, CALL("Stop"), STOPPED("client"));
    ask(client, CALL("Stop"), RUNS_NOT("stopped"));
    ask(client, CALL("Start"), EMPTY);
    ask(client, CALL("Close"), EMPTY);
    ask(client, CALL("Close"), NO_SESSION);
}

STORY(takes_a_close_during_a_stop_after_it)
{
    struct client *client = dial_and_start(CREATE);
    say(client, CALL("Stop"));
    say(client, CALL("Close"));
    hear_nothing(client);
    assert_int_equal(fake.live_count, 1);
    fake_finish_stop("client");
    assert_int_equal(fake.live_count, 1); /* never from inside the session's own callback */
    expect_reply(client, STOPPED("client"));
    expect_reply(client, EMPTY);
    assert_int_equal(fake.live_count, 0);
}

STORY(says_max_duration_once_of_a_session_that_ended_by_itself)
{
    struct client *client = dial_and_start(CREATE);
    fake_finish_stop("max_duration");
    hear_nothing(client);
    ask(client, CALL("Stop"), STOPPED("max_duration"));
    ask(client, CALL("Stop"), RUNS_NOT("stopped"));

    ask(client, CALL("Start"), EMPTY);
    fake_finish_stop("max_duration");
    ask(client, CALL("Start"), EMPTY);
    say(client, CALL("Stop")); /* of the new run */
    hear_nothing(client);
    fake_finish_stop("client");
    expect_reply(client, STOPPED("client"));
}

STORY(waits_for_a_session_that_is_ending_by_itself)
{
    struct client *client = dial_and_start(CREATE);
    fake_begin_own_stop();
    say(client, CALL("Stop"));
    hear_nothing(client);
    fake_finish_stop("max_duration");
    expect_reply(client, STOPPED("max_duration"));
    ask(client, CALL("Stop"), RUNS_NOT("stopped"));
}

/* How far a session gets before its connection ends, with an unread stream or none. */
STORY(ends_a_session_with_its_connection_in_every_state)
{
    for (unsigned steps = 0; steps < 8; steps++) {
        fake_reset();
        fake.ready_bytes = 10;
        struct client *client = dial_and_create(CREATE);
        if (steps / 2 >= 1) {
            ask(client, CALL("Start"), EMPTY);
        }
        if (steps % 2 == 1) {
            say(client, CALL("Read"));
        }
        if (steps / 2 >= 2) {
            say(client, CALL("Stop"));
        }
        if (steps / 2 >= 3) {
            fake_finish_stop("client"); /* and there is a reply to come */
        }
        assert_int_equal(fake.live_count, 1);
        hang_up(client);
        assert_int_equal(fake.live_count, 0);
    }
}

static cJSON *hear_status(struct client *client, bool continues)
{
    const char *text = hear(client);
    assert_non_null(text);
    cJSON *reply = cJSON_Parse(text);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues")), continues);
    cJSON *parameters = cJSON_GetObjectItem(reply, "parameters");
    cJSON *status = cJSON_DetachItemFromObject(parameters, "status");
    assert_non_null(status);
    cJSON_Delete(reply);
    return status;
}

static const cJSON *at(const cJSON *object, const char *path)
{
    char name[32];
    while (path != NULL && sscanf(path, "%31[^.]", name) == 1) {
        object = cJSON_GetObjectItem(object, name);
        path = strchr(path, '.');
        path = path == NULL ? NULL : path + 1;
    }
    return object;
}

CLIENT(reports_the_daemon_and_the_kernel_without_a_session)
{
    say(client, CALL("Status"));
    cJSON *status = hear_status(client, false);
    assert_string_equal(cJSON_GetStringValue(at(status, "daemon.version")), CPU_PROFILERD_VERSION);
    assert_int_equal(at(status, "daemon.pid")->valueint, getpid());
    assert_int_equal(at(status, "daemon.uptime_s")->valueint, 0);
    assert_true(strlen(cJSON_GetStringValue(at(status, "kernel.release"))) > 0);
    assert_true(cJSON_IsFalse(at(status, "kernel.deferred_callchains")));
    assert_true(cJSON_IsTrue(at(status, "kernel.mmap_build_id")));
    assert_true(cJSON_IsTrue(at(status, "kernel.format_lost")));
    assert_true(cJSON_IsTrue(at(status, "kernel.cgroup")));
    assert_true(cJSON_IsNull(at(status, "session")));
    cJSON_Delete(status);
}

STORY(reports_the_session_to_everybody)
{
    static const struct {
        const char *path;
        const char *printed;
    } cases[] = {
        {"session.session", "\"7\""},
        {"session.state", "\"running\""},
        {"session.detached", "false"},
        {"session.age_s", "2"},
        {"session.config.sample_period_ns", "1002001"},
        {"session.config.unwind", "\"auto\""},
        {"session.books", "{\"period_ns\":1002001,\"cpus\":[],\"events\":[{\"cpus\":[\"\"]}],"
                          "\"total\":{}}"},
        {"session.notes", "[]"},
        {"session.buffer_bytes", "4096"},
        {"session.buffer_used_bytes", "12"},
        {"session.is_read", "false"},
        {"session.worker_restarts", "3"}, /* since it was created */
        {"session.cpus_returned", "8"},
        {"session.cpus_refused", "9"},
    };
    struct client *other = dial();
    fake.ready_bytes = 12;
    fake.worker_restarts = 2;
    struct client *owner = dial_and_create(CREATE);
    fake.worker_restarts = 5;
    ask(owner, CALL("Start"), EMPTY);
    say(other, CALL("Status"));
    cJSON *status = hear_status(other, false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(freep) char *printed = cJSON_PrintUnformatted(at(status, cases[i].path));
        assert_string_equal(printed, cases[i].printed);
    }
    assert_int_equal(at(status, "session.owner_uid")->valueint, geteuid());
    assert_int_equal(at(status, "session.owner_pid")->valueint, getpid());
    cJSON_Delete(status);
}

STORY(says_of_a_session_that_it_was_read_to_its_end)
{
    struct client *other = dial();
    struct client *owner = dial_and_start(CREATE);
    fake.stops_at_once = true;
    for (size_t ready_bytes = 0; ready_bytes < 2; ready_bytes++) {
        ask(owner, CALL("Stop"), ready_bytes == 0 ? STOPPED("client") : RUNS_NOT("stopped"));
        fake.ready_bytes = ready_bytes;
        say(other, CALL("Status"));
        cJSON *status = hear_status(other, false);
        assert_int_equal(cJSON_IsTrue(at(status, "session.is_read")), ready_bytes == 0);
        cJSON_Delete(status);
    }
}

STORY(leaves_out_the_cpus_when_their_books_do_not_fit)
{
    fake.books_bytes = VARLINK_MESSAGE_BYTES_MAX;
    struct client *client = dial_and_create(CREATE);
    say(client, CALL("Status"));
    cJSON *status = hear_status(client, false);
    assert_null(at(status, "session.books.cpus"));
    assert_non_null(at(status, "session.books.total"));
    cJSON_Delete(status);
}

STORY(streams_a_status_every_second)
{
    struct client *watcher = dial();
    struct client *owner = dial();
    say(watcher, MORE_STATUS);
    cJSON *status = hear_status(watcher, true);
    assert_true(cJSON_IsNull(at(status, "session")));
    cJSON_Delete(status);
    hear_nothing(watcher);
    ask(owner, CREATE, CREATED);
    status = hear_status(watcher, true);
    assert_string_equal(cJSON_GetStringValue(at(status, "session.state")), "created");
    assert_int_equal(at(status, "daemon.uptime_s")->valueint, 1);
    cJSON_Delete(status);
}
