"""Does with kazoo what the Go test asks for, one line per command, and says what
came of it. The protocol is described in the Go package's doc.go.

The end of its input ends it.
"""

import base64
import os
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.counter import Counter
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock


class CuratorLock(Lock):
    """kazoo's algorithm on Curator's names: docs/migrating-from-curator.md has it as a recipe."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorWriteLock(Lock):
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class CuratorReadLock(Lock):
    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


def polite(cls, *patterns):
    """kazoo's own names; what matches the patterns counts as contenders."""
    return lambda client, path: cls(client, path, extra_lock_patterns=patterns)


def named(cls, **options):
    """kazoo's own, with the session's id as the identifier."""
    return lambda client, path: cls(client, path, str(client.client_id[0]), **options)


KINDS = {
    "lock-named": named(Lock),
    "write-named": named(WriteLock),
    "read-named": named(ReadLock),
    "semaphore-named": named(Semaphore, max_leases=2),
    "lock": Lock,
    "lock-polite": polite(Lock, "-lock-"),
    "lock-renamed": CuratorLock,
    "write": WriteLock,
    "write-polite": polite(WriteLock, "__WRIT__", "__READ__"),
    "write-renamed": CuratorWriteLock,
    "read": ReadLock,
    "read-polite": polite(ReadLock, "__WRIT__"),
    "read-renamed": CuratorReadLock,
    "semaphore": Semaphore,
}

output = threading.Lock()


def encoded(data):
    return "=" + base64.b64encode(data).decode()


def decoded(word):
    return base64.b64decode(word[1:])


def say(*words):
    with output:
        print(*words, flush=True)


class Actor(threading.Thread):
    """One contender: a session, and a thread of its own."""

    def __init__(self):
        super().__init__(daemon=True)
        self.commands = queue.Queue()
        self.client = None
        self.locks = {}
        self.start()

    def run(self):
        while True:
            number, command, *args = self.commands.get()
            try:
                say(number, *getattr(self, "do_" + command)(*args))
            except Exception as e:
                say(number, "error", repr(e).replace("\n", " "))

    def do_connect(self, servers, session_timeout):
        self.client = KazooClient(servers, timeout=int(session_timeout) / 1000)
        self.client.start()
        return "ok", self.client.client_id[0]

    def do_close(self):
        self.client.stop()
        self.client.close()
        return ("ok",)

    def lock(self, kind, path):
        key = kind, path
        if key not in self.locks:
            self.locks[key] = KINDS[kind](self.client, path)
        return self.locks[key]

    def do_lock(self, kind, path, millis):
        lock, millis = self.lock(kind, path), int(millis)
        try:
            if millis < 0:
                held = lock.acquire()
            elif millis == 0:
                held = lock.acquire(blocking=False)
            else:
                held = lock.acquire(timeout=millis / 1000)
        except LockTimeout:
            held = False
        if not held:
            return ("no",)
        node = lock.create_path if kind.startswith("semaphore") else path + "/" + lock.node
        return "ok", self.client.exists(node).czxid

    def do_unlock(self, kind, path):
        self.lock(kind, path).release()
        return ("ok",)

    def do_contenders(self, kind, path):
        return "ok", *(encoded(text.encode()) for text in self.lock(kind, path).contenders())

    def do_holders(self, kind, path):
        return "ok", *(encoded(text.encode()) for text in self.lock(kind, path).lease_holders())

    def do_create(self, path, data):
        self.client.create(path, decoded(data), makepath=True)
        return ("ok",)

    def do_data(self, path):
        return "ok", encoded(self.client.get(path)[0])

    def do_count(self, path, delta):
        counter = Counter(self.client, path, support_curator=True)
        if int(delta):
            counter += int(delta)
        return "ok", counter.value

    def do_bar(self, path):
        Barrier(self.client, path).create()
        return ("ok",)

    def do_unbar(self, path):
        Barrier(self.client, path).remove()
        return ("ok",)

    def do_pass(self, path, millis):
        return ("ok",) if Barrier(self.client, path).wait(int(millis) / 1000) else ("no",)

    def do_enter(self, path, count, _):
        self.door = DoubleBarrier(self.client, path, int(count))
        self.door.enter()
        return ("ok",) if self.door.participating else ("no",)

    def do_leave(self, path, count, _):
        self.door.leave()
        return ("no",) if self.door.participating else ("ok",)


def main():
    actors = {}
    say("* ready")
    for line in sys.stdin:
        number, name, *command = line.split()
        if name not in actors:
            actors[name] = Actor()
        actors[name].commands.put((number, *command))
    for actor in actors.values():
        if actor.client is not None:
            actor.client.stop()
    os._exit(0)  # threads of waiting actors must not keep it


main()
