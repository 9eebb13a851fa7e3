import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;

/** What a Curator client does with the server at args[0]; it prints what it sees. */
public class CuratorPeer {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework one = connect(args[0]); CuratorFramework two = connect(args[0])) {
            nodes(one);
            locks(one, two);
        }
        System.exit(0);
    }

    private static CuratorFramework connect(String hosts) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, 10000, 5000, new ExponentialBackoffRetry(100, 3));
        client.start();
        System.out.println("connected " + client.blockUntilConnected(10, TimeUnit.SECONDS));
        return client;
    }

    private static void nodes(CuratorFramework one) throws Exception {
        System.out.println("create " + one.create().creatingParentContainersIfNeeded()
                .withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/curator/n-", "hi".getBytes()));
        CountDownLatch seen = new CountDownLatch(1);
        CuratorWatcher watcher = event -> {
            System.out.println("watch " + event.getType() + " " + event.getPath());
            seen.countDown();
        };
        one.getChildren().usingWatcher(watcher).forPath("/curator");
        one.create().withProtection().forPath("/curator/protected");
        seen.await(10, TimeUnit.SECONDS);
        System.out.println("transaction " + one.transaction().forOperations(
                one.transactionOp().create().forPath("/curator/t"),
                one.transactionOp().check().forPath("/curator"),
                one.transactionOp().delete().forPath("/curator/t")).size());

        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorCache cache = CuratorCache.build(one, "/cached");
        cache.listenable().addListener((type, before, after) -> events.add(type + " " + (after != null ? after : before).getPath()));
        one.create().forPath("/cached");
        cache.start();
        System.out.println("cache " + events.poll(10, TimeUnit.SECONDS));
        one.create().forPath("/cached/a");
        System.out.println("cache " + events.poll(10, TimeUnit.SECONDS));
        one.delete().forPath("/cached/a");
        System.out.println("cache " + events.poll(10, TimeUnit.SECONDS));
        cache.close();
    }

    private static void locks(CuratorFramework one, CuratorFramework two) throws Exception {
        InterProcessMutex mine = new InterProcessMutex(one, "/mutex");
        InterProcessMutex theirs = new InterProcessMutex(two, "/mutex");
        mine.acquire();
        mine.acquire();
        System.out.println("mutex held, to another " + theirs.acquire(300, TimeUnit.MILLISECONDS));
        mine.release();
        mine.release();
        System.out.println("mutex free, to another " + theirs.acquire(10, TimeUnit.SECONDS));
        theirs.release();

        InterProcessReadWriteLock left = new InterProcessReadWriteLock(one, "/rw");
        InterProcessReadWriteLock right = new InterProcessReadWriteLock(two, "/rw");
        left.readLock().acquire();
        System.out.println("read-write reader " + right.readLock().acquire(10, TimeUnit.SECONDS)
                + ", writer " + right.writeLock().acquire(300, TimeUnit.MILLISECONDS));
        left.readLock().release();
        right.readLock().release();

        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(one, "/semaphore", 2);
        Lease first = semaphore.acquire();
        Lease second = semaphore.acquire();
        System.out.println("semaphore third of two " + semaphore.acquire(300, TimeUnit.MILLISECONDS));
        semaphore.returnLease(first);
        semaphore.returnLease(second);

        InterProcessMultiLock both = new InterProcessMultiLock(one, List.of("/both-a", "/both-b"));
        System.out.println("multi " + both.acquire(10, TimeUnit.SECONDS));
        both.release();
    }
}
