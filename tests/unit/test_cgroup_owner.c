/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths of control groups as service managers, container runtimes and kubelet make them, with all
 * that each of them tells. What a row does not say must be unknown.
 */
#include "cgroup_owner.h"
#include "unit_test.h"

#define ID        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER     "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UPPER     "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD       "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
#define POD_SLICE "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"
#define STATIC    "00112233445566778899aabbccddeeff"
#define USER      "/user.slice/user-1000.slice"
#define MANAGER   USER "/user@1000.service"
#define LONG_16   "0123456789abcde-"
#define LONG_256                                                                                   \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16        \
        LONG_16 LONG_16 LONG_16 LONG_16 LONG_16

struct row {
    const char *path;
    const char *unit, *user_unit, *container, *runtime, *pod;
    const char *rest; /* what the path has behind the prefix */
};

static void expect_part(const char *what, struct cgroup_part part, const char *expected,
                        const char *path)
{
    expected = expected == NULL ? "" : expected;
    if (part.bytes != strlen(expected) ||
        (part.bytes > 0 && memcmp(part.text, expected, part.bytes) != 0)) {
        fail_msg("%s of %s is '%.*s', not '%s'", what, path, (int)part.bytes, part.text, expected);
    }
}

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        struct cgroup_owner owner;
        cgroup_owner_parse(row->path, &owner);
        expect_part("the unit", owner.unit, row->unit, row->path);
        expect_part("the user's unit", owner.user_unit, row->user_unit, row->path);
        expect_part("the container", owner.container, row->container, row->path);
        const char *runtime = owner.runtime == NULL ? "" : owner.runtime;
        expect_part("the runtime", (struct cgroup_part){runtime, strlen(runtime)}, row->runtime,
                    row->path);
        expect_part("the pod", (struct cgroup_part){owner.pod, strlen(owner.pod)}, row->pod,
                    row->path);
        assert_in_range(owner.prefix_bytes, 0, strlen(row->path));
        const char *rest = row->path + owner.prefix_bytes;
        expect_part("what follows the prefix", (struct cgroup_part){rest, strlen(rest)}, row->rest,
                    row->path);
    }
}

TEST(knows_the_units_of_the_system)
{
    expect_rows(ROWS_OF(
        struct row, {"/init.scope", .unit = "init.scope"},
        {"/system.slice/cron.service", .unit = "cron.service"},
        {"/system.slice/system-getty.slice/getty@tty1.service", .unit = "getty@tty1.service"},
        {"/system.slice/system-serial\\x2dgetty.slice/serial-getty@ttyS0.service",
         .unit = "serial-getty@ttyS0.service"},
        {"/system.slice/systemd-udevd.service/udev", .unit = "systemd-udevd.service",
         .rest = "/udev"},
        {"/system.slice/run-user-1000.mount", .unit = "run-user-1000.mount"},
        {"/system.slice/dev-sda2.swap", .unit = "dev-sda2.swap"},
        {"/system.slice/cups.socket", .unit = "cups.socket"},
        {"/system.slice/dbus-:1.2-org.freedesktop.problems@0.service",
         .unit = "dbus-:1.2-org.freedesktop.problems@0.service"},
        /* A unit keeps what it makes below, whatever its name. */
        {"/system.slice/a.service/b.service", .unit = "a.service", .rest = "/b.service"},
        {"/system.slice/a.service/b.slice/c.service", .unit = "a.service",
         .rest = "/b.slice/c.service"},
        {"/a.slice/a-b.slice/a-b-c.slice/d.scope", .unit = "d.scope"},
        {"/cron.service", .unit = "cron.service"}));
}

TEST(takes_the_underscore_off_a_name_that_is_escaped)
{
    expect_rows(ROWS_OF(
        struct row, {"/system.slice/_cpu.service", .unit = "cpu.service"},
        {"/system.slice/__under.service", .unit = "_under.service"},
        {"/_memory.slice/a.service", .unit = "a.service"},
        {MANAGER "/_pids.service", .unit = "user@1000.service", .user_unit = "pids.service"}));
}

TEST(knows_sessions_and_the_units_of_a_user)
{
    expect_rows(ROWS_OF(
        struct row, {USER "/session-3.scope", .unit = "session-3.scope"},
        {"/user.slice/user-42.slice/session-c1.scope", .unit = "session-c1.scope"},
        {MANAGER, .unit = "user@1000.service"},
        {MANAGER "/init.scope", .unit = "user@1000.service", .user_unit = "init.scope"},
        {MANAGER "/app.slice", .unit = "user@1000.service", .rest = "/app.slice"},
        {MANAGER "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-" POD ".scope",
         .unit = "user@1000.service", .user_unit = "vte-spawn-" POD ".scope"},
        {MANAGER "/app.slice/app-flatpak-org.mozilla.firefox-4242.scope",
         .unit = "user@1000.service", .user_unit = "app-flatpak-org.mozilla.firefox-4242.scope"},
        {MANAGER "/session.slice/a.service/b.service", .unit = "user@1000.service",
         .user_unit = "a.service", .rest = "/b.service"},
        {MANAGER "/own/a.service", .unit = "user@1000.service", .rest = "/own/a.service"},
        {MANAGER "/user.slice/podman-4242.scope", .unit = "user@1000.service",
         .user_unit = "podman-4242.scope"},
        {USER "/user-runtime-dir@1000.service", .unit = "user-runtime-dir@1000.service"}));
}

TEST(knows_containers_with_a_scope)
{
    expect_rows(ROWS_OF(
        struct row,
        {"/system.slice/docker-" ID ".scope", .unit = "docker-" ID ".scope", .container = ID,
         .runtime = "docker"},
        {"/machine.slice/libpod-" ID ".scope/container", .unit = "libpod-" ID ".scope",
         .container = ID, .runtime = "podman", .rest = "/container"},
        {"/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID ".scope/container",
         .unit = "libpod-" ID ".scope", .container = ID, .runtime = "podman", .rest = "/container"},
        {MANAGER "/user.slice/libpod-" ID ".scope/container", .unit = "user@1000.service",
         .user_unit = "libpod-" ID ".scope", .container = ID, .runtime = "podman",
         .rest = "/container"},
        {MANAGER "/docker-" ID ".scope/system.slice/nginx.service", .unit = "user@1000.service",
         .user_unit = "nginx.service", .container = ID, .runtime = "docker"},
        {MANAGER "/user.slice/docker-" ID ".scope", .unit = "user@1000.service",
         .user_unit = "docker-" ID ".scope", .container = ID, .runtime = "docker"},
        {"/system.slice/nerdctl-" ID ".scope", .unit = "nerdctl-" ID ".scope", .container = ID,
         .runtime = "containerd"},
        {"/ecstasks.slice/ecstasks-" STATIC ".slice/docker-" ID ".scope",
         .unit = "docker-" ID ".scope", .container = ID, .runtime = "docker"}));
}

TEST(knows_containers_without_systemd)
{
    expect_rows(
        ROWS_OF(struct row, {"/docker/" ID, .container = ID, .runtime = "docker"},
                {"/docker/" ID "/init", .container = ID, .runtime = "docker", .rest = "/init"},
                {"/libpod_parent/libpod-" ID, .container = ID, .runtime = "podman"},
                {"/libpod_parent/" OTHER "/libpod-" ID, .container = ID, .runtime = "podman"},
                {"/default/" ID, .container = ID}, {"/" ID, .container = ID},
                {"/ecs/" STATIC "/" ID, .container = ID}));
}

TEST(what_watches_a_container_is_in_none)
{
    expect_rows(
        ROWS_OF(struct row,
                {"/machine.slice/libpod-conmon-" ID ".scope", .unit = "libpod-conmon-" ID ".scope"},
                {MANAGER "/user.slice/libpod-conmon-" ID ".scope", .unit = "user@1000.service",
                 .user_unit = "libpod-conmon-" ID ".scope"},
                {"/system.slice/crio-conmon-" ID ".scope", .unit = "crio-conmon-" ID ".scope"},
                {"/libpod_parent/conmon", .rest = "/libpod_parent/conmon"},
                {"/lxc.monitor.web", .rest = "/lxc.monitor.web"},
                {"/machine.slice/systemd-nspawn@web.service/supervisor",
                 .unit = "systemd-nspawn@web.service"},
                {"/system.slice/docker.service", .unit = "docker.service"},
                {"/system.slice/containerd.service", .unit = "containerd.service"}));
}

TEST(knows_pods_with_slices)
{
    expect_rows(ROWS_OF(
        struct row,
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_SLICE
         ".slice/cri-containerd-" ID ".scope",
         .unit = "cri-containerd-" ID ".scope", .container = ID, .runtime = "containerd",
         .pod = POD},
        {"/kubepods.slice/kubepods-pod" POD_SLICE ".slice/crio-" ID ".scope/container",
         .unit = "crio-" ID ".scope", .container = ID, .runtime = "cri-o", .pod = POD,
         .rest = "/container"},
        {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_SLICE
         ".slice/crio-conmon-" ID ".scope",
         .unit = "crio-conmon-" ID ".scope", .pod = POD},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC
         ".slice/docker-" ID ".scope",
         .unit = "docker-" ID ".scope", .container = ID, .runtime = "docker", .pod = STATIC},
        {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_SLICE ".slice",
         .pod = POD},
        {"/kubepods.slice/kubepods-besteffort.slice",
         .rest = "/kubepods.slice/kubepods-besteffort.slice"},
        /* Not by systemd, although the path is written for it. */
        {"/kubepods-burstable-pod" POD_SLICE ".slice:cri-containerd:" ID, .container = ID,
         .runtime = "containerd", .pod = POD},
        {"/system.slice/containerd.service/kubepods-burstable-pod" POD_SLICE
         ".slice:cri-containerd:" ID,
         .container = ID, .runtime = "containerd", .pod = POD}));
}

TEST(knows_pods_without_slices)
{
    expect_rows(
        ROWS_OF(struct row, {"/kubepods/burstable/pod" POD "/" ID, .container = ID, .pod = POD},
                {"/kubepods/pod" POD "/" ID, .container = ID, .pod = POD},
                {"/kubepods/besteffort/pod" STATIC "/crio-" ID, .container = ID, .runtime = "cri-o",
                 .pod = STATIC},
                {"/kubepods/burstable/pod" POD, .pod = POD},
                {"/kubepods/burstable/podsandbox", .rest = "/kubepods/burstable/podsandbox"},
                {"/kubepods/burstable/pod" POD "00", .rest = "/kubepods/burstable/pod" POD "00"},
                {"/kubepods/burstable/pod", .rest = "/kubepods/burstable/pod"}));
}

TEST(knows_containers_of_whole_systems)
{
    expect_rows(ROWS_OF(
        struct row,
        {"/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service",
         .unit = "nginx.service", .container = "web", .runtime = "systemd-nspawn"},
        {"/machine.slice/systemd-nspawn@web.service/payload", .unit = "systemd-nspawn@web.service",
         .container = "web", .runtime = "systemd-nspawn"},
        {"/lxc.payload.web/init.scope", .unit = "init.scope", .container = "web", .runtime = "lxc"},
        {"/lxc.payload.web/system.slice/cron.service", .unit = "cron.service", .container = "web",
         .runtime = "lxc"},
        {"/lxc.payload.web/user.slice/user-0.slice/user@0.service/app.slice/a.service",
         .unit = "user@0.service", .user_unit = "a.service", .container = "web", .runtime = "lxc"},
        {"/machine.slice/systemd-nspawn@.service/payload", .unit = "systemd-nspawn@.service",
         .rest = "/payload"},
        {"/lxc.payload.", .rest = "/lxc.payload."},
        {"/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0",
         .unit = "machine-qemu\\x2d1\\x2dweb.scope", .rest = "/libvirt/vcpu0"},
        {"/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator",
         .unit = "machine-qemu\\x2d1\\x2dweb.scope", .rest = "/libvirt/emulator"},
        {"/system.slice/docker-" ID ".scope/system.slice/nginx.service", .unit = "nginx.service",
         .container = ID, .runtime = "docker"},
        {"/docker/" ID "/system.slice/docker-" OTHER ".scope", .unit = "docker-" OTHER ".scope",
         .container = OTHER, .runtime = "docker"},
        {"/docker/" ID "/docker/" OTHER, .container = OTHER, .runtime = "docker"}));
}

TEST(knows_kubelet_in_a_container)
{
    expect_rows(ROWS_OF(
        struct row,
        {"/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
         "kubelet-kubepods-burstable-pod" POD_SLICE ".slice/cri-containerd-" OTHER ".scope",
         .unit = "cri-containerd-" OTHER ".scope", .container = OTHER, .runtime = "containerd",
         .pod = POD},
        {"/docker/" ID "/kubelet/kubepods/besteffort/pod" POD "/" OTHER, .container = OTHER,
         .pod = POD},
        {"/system.slice/docker-" ID ".scope/system.slice/kubelet.service",
         .unit = "kubelet.service", .container = ID, .runtime = "docker"},
        {"/my-pods.slice/my-pods-kubepods.slice/my-pods-kubepods-pod" POD_SLICE ".slice",
         .pod = POD}));
}

TEST(says_nothing_of_what_means_nothing)
{
    expect_rows(ROWS_OF(
        struct row, {.path = ""}, {"/", .rest = "/"}, {"///", .rest = "///"},
        {"/system.slice", .rest = "/system.slice"}, {"/foo/bar", .rest = "/foo/bar"},
        {"/foo/system.slice/cron.service", .rest = "/foo/system.slice/cron.service"},
        {"/.service", .rest = "/.service"}, {"/.slice", .rest = "/.slice"}, {"/_", .rest = "/_"},
        {"/system.slice/a b.service", .rest = "/system.slice/a b.service"},
        {"/system.slice/\xff\x01\".service", .rest = "/system.slice/\xff\x01\".service"},
        {"/system.slice/cron.timer", .rest = "/system.slice/cron.timer"},
        {"/docker/" UPPER, .rest = "/docker/" UPPER},
        {"/docker/" ID "0", .rest = "/docker/" ID "0"},
        {"/docker-" UPPER, .rest = "/docker-" UPPER},
        {"/x:cri-containerd:" UPPER, .rest = "/x:cri-containerd:" UPPER},
        {"/:cri-containerd:" STATIC, .rest = "/:cri-containerd:" STATIC}));
}

TEST(bears_slashes_and_lengths_of_any_number)
{
    expect_rows(ROWS_OF(struct row,
                        {"//system.slice///cron.service//", .unit = "cron.service", .rest = "//"},
                        {"/system.slice/cron.service/", .unit = "cron.service", .rest = "/"},
                        {"/docker//" ID, .container = ID, .runtime = "docker"},
                        {"/" LONG_256 LONG_256 ".service", .unit = LONG_256 LONG_256 ".service"},
                        {"/pod" LONG_256 "/pod" POD, .pod = POD},
                        {"/lxc.payload." LONG_256 "/" LONG_256 "/" LONG_256, .container = LONG_256,
                         .runtime = "lxc", .rest = "/" LONG_256 "/" LONG_256},
                        {"/lxc.payload.\xff\"\\\n", .container = "\xff\"\\\n", .runtime = "lxc"}));
}
