"""Puts the benchmark's loads on kazoo. The protocol and the loads are those of the
Go package contender, whose doc.go describes them."""

import gc
import json
import os
import platform
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import kazoo.version
from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock

MULTI_SIZE = 10

lines = queue.Queue()
sessions = []


class Multi:
    """As many locks, one after another: the library has no lock of several."""

    def __init__(self, client, path):
        self.locks = [Lock(client, "%s/%d" % (path, i)) for i in range(MULTI_SIZE)]

    def acquire(self):
        for lock in self.locks:
            lock.acquire()

    def release(self):
        for lock in self.locks:
            lock.release()


KINDS = {"mutex": Lock, "read": ReadLock, "write": WriteLock, "semaphore": Semaphore, "multi": Multi}


def make(session, kind, path):
    return KINDS[kind](sessions[session], path)


def say(**answer):
    print(json.dumps(answer), flush=True)


def read_lines():
    """The end of the input ends the process, whatever it is about."""
    for line in sys.stdin:
        lines.put(line.strip())
    os._exit(0)


def now():
    return time.perf_counter_ns()


def wait_for_go():
    say(waiting=True)
    while (line := lines.get()) != "go":
        say(**obey(line.split()))


def result(elapsed, samples):
    return {"elapsed": elapsed, "ops": len(samples), "samples": samples}


def workers(load, kind, path, count, ops, settle):
    def locks_of(worker):
        if load == "mix":
            return [make(0, "read", path), make(0, "write", path)]
        return [make(0, kind, "%s/%d" % (path, worker) if load == "paths" else path)]

    locks = [locks_of(i) for i in range(count)]
    left = iter(range(ops))  # next() on it is atomic
    samples = []

    def work(worker):
        turn = worker
        for _ in left:
            lock = locks[worker][1 if load == "mix" and turn % 10 == 0 else 0]
            turn += 1
            begun = now()
            lock.acquire()
            lock.release()
            samples.append(now() - begun)

    with ThreadPoolExecutor(count) as pool:
        start = now()
        for done in [pool.submit(work, i) for i in range(count)]:
            done.result()
        return result(now() - start, samples)


def handoff(load, kind, path, count, ops, settle):
    locks = [make(i, kind, path) for i in range(2)]
    samples = []

    def acquired(lock):
        lock.acquire()
        return now()

    def released(lock):
        begun = now()
        lock.release()
        return begun

    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        sides = [a, b]
        a.submit(acquired, locks[0]).result()
        for i in range(ops):
            holder, waiter = i % 2, 1 - i % 2
            grant = sides[waiter].submit(acquired, locks[waiter])
            time.sleep(settle / 1000)
            release = sides[holder].submit(released, locks[holder])
            samples.append(grant.result() - release.result())
        sides[ops % 2].submit(released, locks[ops % 2]).result()
    return result(sum(samples), samples)


def drain(load, kind, path, count, ops, settle):
    holder = make(0, kind, path)
    holder.acquire()
    locks = [make(0, kind, path) for _ in range(count)]
    moments = []

    def work(lock):
        lock.acquire()
        moments.append(now())
        lock.release()

    with ThreadPoolExecutor(count) as pool:
        waiters = [pool.submit(work, lock) for lock in locks]
        wait_for_go()
        start = now()
        holder.release()
        for waiter in waiters:
            waiter.result()
        elapsed = now() - start
    moments.sort()
    return result(elapsed, [b - a for a, b in zip([start] + moments, moments)])


def hold(load, kind, path, count, ops, settle):
    locks, samples = [], []
    start = now()
    for i in range(count):
        begun = now()
        locks.append(make(0, kind, "%s/%d" % (path, i)))
        locks[-1].acquire()
        samples.append(now() - begun)
    elapsed = now() - start
    wait_for_go()
    for lock in locks:
        lock.release()
    return result(elapsed, samples)


def refused(load, kind, path, count, ops, settle):
    holder, other = make(0, kind, path), make(1, kind, path)
    holder.acquire()
    samples = []
    start = now()
    for _ in range(ops):
        begun = now()
        if other.acquire(blocking=False):
            raise RuntimeError("a lock that is held was not refused")
        samples.append(now() - begun)
    elapsed = now() - start
    holder.release()
    return result(elapsed, samples)


LOADS = {
    "sequence": workers,
    "paths": workers,
    "shared": workers,
    "mix": workers,
    "handoff": handoff,
    "queue": drain,
    "hold": hold,
    "refused": refused,
}


def obey(words):
    if words[0] == "connect":
        servers = words[1].split(",")
        for i in range(2):
            client = KazooClient(servers[i % len(servers)], timeout=int(words[2]) / 1000)
            client.start()
            sessions.append(client)
        return {}
    if words[0] == "gc":
        gc.collect()
        return {}
    if words[0] == "run":
        return LOADS[words[1]](*words[1:4], *map(int, words[4:7]))
    raise ValueError("no such command: " + words[0])


def main():
    threading.Thread(target=read_lines, daemon=True).start()
    say(version="%s, Python %s" % (kazoo.version.__version__, platform.python_version()))
    while True:
        try:
            say(**obey(lines.get().split()))
        except Exception as e:
            say(error=repr(e))


main()
