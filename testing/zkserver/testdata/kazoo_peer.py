"""What a kazoo client does with the server at sys.argv[1]; it prints what it sees."""
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.recipe.lock import Lock
from kazoo.security import make_digest_acl

hosts = sys.argv[1]
one, two = KazooClient(hosts, timeout=10), KazooClient(hosts, timeout=10)
one.start(timeout=10)
two.start(timeout=10)

print("create", one.create("/kazoo/e", b"1", ephemeral=True, makepath=True))
seen = threading.Event()
two.get("/kazoo/e", watch=lambda event: (print("watch", event.type, event.path), seen.set()))
one.set("/kazoo/e", b"2")
seen.wait(10)

transaction = one.transaction()
transaction.create("/kazoo/x")
transaction.check("/kazoo/e", 1)
transaction.delete("/kazoo/x")
print("transaction", transaction.commit())
transaction = one.transaction()
transaction.create("/kazoo/x")
transaction.check("/kazoo/e", 7)
print("transaction", [type(result).__name__ for result in transaction.commit()], one.exists("/kazoo/x"))

mine, theirs = Lock(one, "/kazoo/lock", "one"), Lock(two, "/kazoo/lock", "two")
mine.acquire(timeout=10)
print("lock", mine.contenders(), theirs.acquire(blocking=False))
mine.release()
print("lock", theirs.acquire(timeout=10))
theirs.release()

one.add_auth("digest", "ann:secret")
one.create("/kazoo/private", b"s", acl=[make_digest_acl("ann", "secret", all=True)])
try:
    two.get("/kazoo/private")
except NoAuthError:
    print("stranger refused")
print("version", one.server_version()[:2], one.command(b"ruok"))
two.stop()
one.stop()
