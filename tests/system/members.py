# SPDX-License-Identifier: Apache-2.0
"""Real users of the machine, for the tests of what the daemon promises against them."""
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER = 0x10000000


def become(uid, gid, groups):
    """This process is that user from now on, and cannot go back."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


class Child:
    """A process that runs function(child, *arguments) and is killed with this object's block."""

    def __init__(self, function, *arguments):
        from_child, to_parent = os.pipe()
        from_parent, to_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(from_child)
            os.close(to_child)
            self.input, self.output = os.fdopen(from_parent, "r"), os.fdopen(to_parent, "w")
            try:
                function(self, *arguments)
                os._exit(0)
            except BaseException as error:
                self.say("failed: %r" % error)
                os._exit(1)
        os.close(from_parent)
        os.close(to_parent)
        self.input, self.output = os.fdopen(from_child, "r"), os.fdopen(to_child, "w")

    def say(self, line):
        self.output.write(line + "\n")
        self.output.flush()

    def hear(self):
        """The next line of the other side, without its end; "" when there is none."""
        return self.input.readline().rstrip("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self.input.close()
        self.output.close()


def enter_user_namespace(child):
    """In a Child that is a user: a user namespace of its own, whose maps the parent writes. Raises OSError."""
    if LIBC.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    child.say("unshared")
    if child.hear() != "mapped":
        raise OSError(0, "no maps")


def map_user_namespace(child, uid, first, count):
    """In the parent, which is root: `uid` is 0 there, and its subordinate uids from `first` are 1 to `count`."""
    answer = child.hear()
    if answer != "unshared":
        return answer
    for name, text in (("uid_map", "0 %d 1\n1 %d %d\n" % (uid, first, count)), ("gid_map", "0 %d 1\n" % uid)):
        with open("/proc/%d/%s" % (child.pid, name), "w", encoding="ascii") as file:
            file.write(text)
    child.say("mapped")
    return None
