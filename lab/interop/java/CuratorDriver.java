import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPOutputStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/**
 * Does with Apache Curator what the Go test asks for, one line per command, and
 * says what came of it. The protocol is described in the Go package's doc.go.
 *
 * <p>It runs as a single source file. The end of its input ends it.
 */
public final class CuratorDriver {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws IOException {
        Map<String, Actor> actors = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OUT.println("* ready");
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            Actor actor = actors.computeIfAbsent(words[1], Actor::new);
            if (words[2].equals("interrupt")) {
                actor.thread.interrupt();
                OUT.println(words[0] + " ok");
            } else {
                actor.commands.add(words);
            }
        }
        actors.values().forEach(Actor::disconnect);
        System.exit(0);
    }

    /** A mutex as a client with enableCompression has it, which is newer than 5.4. */
    private static final class CompressedMutex extends InterProcessMutex {
        CompressedMutex(CuratorFramework client, String path) {
            super(client, path);
        }

        @Override
        protected byte[] getLockNodeBytes() {
            ByteArrayOutputStream packed = new ByteArrayOutputStream();
            try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
                out.write("10.1.2.3".getBytes(StandardCharsets.UTF_8));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return packed.toByteArray();
        }
    }

    /** A LeaderLatch as a lock: its leader has the lock. */
    private static final class LatchLock implements InterProcessLock {
        final CuratorFramework client;
        final String path;
        final String id;
        LeaderLatch latch;

        LatchLock(CuratorFramework client, String path, String id) {
            this.client = client;
            this.path = path;
            this.id = id;
        }

        @Override
        public void acquire() throws Exception {
            acquire(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            latch = new LeaderLatch(client, path, id);
            latch.start();
            boolean leads = false;
            try {
                leads = latch.await(time, unit);
            } finally {
                if (!leads) {
                    latch.close();
                }
            }
            return leads;
        }

        @Override
        public void release() throws Exception {
            latch.close();
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return latch.hasLeadership();
        }
    }

    /** A LeaderSelector as a lock: its leader has the lock until it is released. */
    private static final class SelectorLock implements InterProcessLock {
        final CuratorFramework client;
        final String path;
        final String id;
        CountDownLatch leads;
        CountDownLatch released;
        CountDownLatch ended;
        LeaderSelector selector;

        SelectorLock(CuratorFramework client, String path, String id) {
            this.client = client;
            this.path = path;
            this.id = id;
        }

        @Override
        public void acquire() throws Exception {
            acquire(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            leads = new CountDownLatch(1);
            released = new CountDownLatch(1);
            ended = new CountDownLatch(1);
            selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework unused) throws Exception {
                    leads.countDown();
                    try {
                        released.await();
                    } finally {
                        ended.countDown();
                    }
                }
            });
            selector.setId(id);
            selector.start();
            boolean granted = false;
            try {
                granted = leads.await(time, unit);
            } finally {
                if (!granted) {
                    selector.close();
                }
            }
            return granted;
        }

        @Override
        public void release() throws Exception {
            released.countDown();
            ended.await();
            selector.close();
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return selector.hasLeadership();
        }
    }

    /** One contender: a session, and the one thread that Curator's locks know as their owner. */
    private static final class Actor implements Runnable {
        final String name;
        final Thread thread;
        final BlockingQueue<String[]> commands = new LinkedBlockingQueue<>();
        final Map<String, InterProcessLock> locks = new HashMap<>();
        final Map<String, InterProcessReadWriteLock> readWrites = new HashMap<>();
        volatile CuratorFramework client;
        DistributedDoubleBarrier door;

        Actor(String name) {
            this.name = name;
            thread = new Thread(this, name);
            thread.setDaemon(true);
            thread.start();
        }

        @Override
        public void run() {
            while (true) {
                String[] words;
                try {
                    words = commands.take();
                } catch (InterruptedException e) {
                    continue; // what was to be interrupted is over
                }
                String answer;
                try {
                    answer = obey(words[2], Arrays.copyOfRange(words, 3, words.length));
                } catch (Exception | LinkageError e) { // an old version may lack a class or a method
                    answer = "error " + e.toString().replace('\n', ' ');
                }
                Thread.interrupted(); // an answered command's interrupt is not the next one's
                OUT.println(words[0] + " " + answer);
            }
        }

        private final Map<String, Closeable> kept = new HashMap<>();

        void disconnect() {
            if (client != null) {
                client.close();
            }
        }

        /** Returns "ok" with the results, or "no" where the time was over before. */
        private String obey(String command, String[] args) throws Exception {
            switch (command) {
                case "connect":
                    return connect(args[0], Integer.parseInt(args[1]));
                case "close":
                    disconnect();
                    return "ok";
                case "lock":
                    return acquire(args[0], args[1], Long.parseLong(args[2]));
                case "unlock":
                    lock(args[0], args[1]).release();
                    return "ok";
                case "participants":
                    return ok(((InterProcessMutex) lock(args[0], args[1])).getParticipantNodes());
                case "permits":
                    return ok(new InterProcessSemaphoreV2(client, args[0], Integer.parseInt(args[1])).getParticipantNodes());
                case "ids":
                    return ok(ids(args[0], args[1]));
                case "revocable":
                    ((InterProcessMutex) lock(args[0], args[1]))
                            .makeRevocable(l -> OUT.println("* revoked " + name + " " + args[1]));
                    return "ok";
                case "revoke":
                    Revoker.attemptRevoke(client, args[0]);
                    return "ok";
                default:
                    return obeyOther(command, args);
            }
        }

        /** Keeps a znode by a recipe that old versions lack, so it is not linked. */
        private String keep(String recipe, String path, long millis, Object... args) throws Exception {
            Class<?> type = Class.forName("org.apache.curator.framework.recipes.nodes." + recipe);
            for (Constructor<?> made : type.getConstructors()) {
                if (made.getParameterCount() != args.length) {
                    continue;
                }
                Closeable node = (Closeable) made.newInstance(args);
                kept.put(path, node);
                type.getMethod("start").invoke(node);
                if (millis == 0) {
                    return "ok";
                }
                Object done = type.getMethod("waitForInitialCreate", long.class, TimeUnit.class).invoke(node, millis, TimeUnit.MILLISECONDS);
                return (Boolean) done ? "ok" : "no";
            }
            throw new IllegalStateException(recipe + " has no such constructor");
        }

        /** Plain data, and the recipes other than locks. */
        private String obeyOther(String command, String[] args) throws Exception {
            switch (command) {
                case "create":
                    client.create().creatingParentsIfNeeded().forPath(args[0], decoded(args[1]));
                    return "ok";
                case "create-gzip":
                    client.create().compressed().creatingParentsIfNeeded().forPath(args[0], decoded(args[1]));
                    return "ok";
                case "set-gzip":
                    client.setData().compressed().forPath(args[0], decoded(args[1]));
                    return "ok";
                case "data":
                    return "ok " + encoded(client.getData().forPath(args[0]));
                case "data-gzip":
                    return "ok " + encoded(client.getData().decompressed().forPath(args[0]));
                case "count": {
                    SharedCount count = new SharedCount(client, args[0], 0);
                    count.start();
                    try {
                        int delta = Integer.parseInt(args[1]);
                        while (delta != 0 && !count.trySetCount(count.getVersionedValue(), count.getCount() + delta)) {
                            // Somebody else was quicker; the value has been read again.
                        }
                        return "ok " + count.getCount();
                    } finally {
                        count.close();
                    }
                }
                case "add": {
                    DistributedAtomicLong number = new DistributedAtomicLong(client, args[0], new RetryNTimes(100, 10));
                    AtomicValue<Long> result = number.add(Long.parseLong(args[1]));
                    return result.succeeded() ? "ok " + result.postValue() : "no";
                }
                case "share": {
                    SharedValue value = new SharedValue(client, args[0], new byte[0]);
                    value.start();
                    try {
                        value.setValue(decoded(args[1]));
                        return "ok";
                    } finally {
                        value.close();
                    }
                }
                case "acquire": {
                    InterProcessSemaphoreV2 permits;
                    if (args[1].startsWith("/")) {
                        SharedCount count = new SharedCount(client, args[1], 0);
                        count.start();
                        kept.put(args[1], count);
                        permits = new InterProcessSemaphoreV2(client, args[0], count);
                    } else {
                        permits = new InterProcessSemaphoreV2(client, args[0], Integer.parseInt(args[1]));
                    }
                    Collection<Lease> got = permits.acquire(Integer.parseInt(args[2]), Long.parseLong(args[3]), TimeUnit.MILLISECONDS);
                    if (got == null) {
                        return "no";
                    }
                    kept.put(args[0], () -> permits.returnAll(got));
                    return "ok";
                }
                case "bar":
                    new DistributedBarrier(client, args[0]).setBarrier();
                    return "ok";
                case "unbar":
                    new DistributedBarrier(client, args[0]).removeBarrier();
                    return "ok";
                case "pass":
                    return new DistributedBarrier(client, args[0]).waitOnBarrier(Long.parseLong(args[1]), TimeUnit.MILLISECONDS) ? "ok" : "no";
                case "enter":
                    door = new DistributedDoubleBarrier(client, args[0], Integer.parseInt(args[1]));
                    return door.enter(Long.parseLong(args[2]), TimeUnit.MILLISECONDS) ? "ok" : "no";
                case "leave":
                    return door.leave(Long.parseLong(args[2]), TimeUnit.MILLISECONDS) ? "ok" : "no";
                case "keep": {
                    return keep("PersistentNode", args[0], Long.parseLong(args[2]), client, CreateMode.EPHEMERAL, false, args[0], decoded(args[1]));
                }
                case "keep-ttl": {
                    return keep("PersistentTtlNode", args[0], 30_000, client, args[0], Long.parseLong(args[2]), decoded(args[1]));
                }
                case "join": {
                    return keep("GroupMember", args[0], 0, client, args[0], args[1], decoded(args[2]));
                }
                case "members": {
                    List<String> found = new ArrayList<>();
                    Closeable member = kept.get(args[0]);
                    Map<?, ?> current = (Map<?, ?>) member.getClass().getMethod("getCurrentMembers").invoke(member);
                    current.forEach((id, data) -> found.add(id + encoded((byte[]) data)));
                    return ok(found);
                }
                case "release":
                    kept.remove(args[0]).close();
                    return "ok";
                default:
                    throw new IllegalArgumentException("no such command: " + command);
            }
        }

        private String connect(String servers, int sessionTimeout) throws Exception {
            client = CuratorFrameworkFactory.newClient(servers, sessionTimeout, sessionTimeout, new RetryNTimes(3, 100));
            client.start();
            client.blockUntilConnected();
            return "ok " + session();
        }

        private long session() throws Exception {
            return client.getZookeeperClient().getZooKeeper().getSessionId();
        }

        private String acquire(String kind, String path, long millis) throws Exception {
            InterProcessLock lock = lock(kind, path);
            if (millis < 0) {
                lock.acquire();
            } else if (!lock.acquire(millis, TimeUnit.MILLISECONDS)) {
                return "no";
            }
            return ok(fences(kind, path));
        }

        private InterProcessLock lock(String kind, String path) {
            return locks.computeIfAbsent(kind + " " + path, key -> {
                switch (kind) {
                    case "mutex":
                        return new InterProcessMutex(client, path);
                    case "mutex-gzip":
                        return new CompressedMutex(client, path);
                    case "semaphore":
                        return new InterProcessSemaphoreMutex(client, path);
                    case "read":
                        return readWrite(path).readLock();
                    case "write":
                        return readWrite(path).writeLock();
                    case "latch":
                        return new LatchLock(client, path, name);
                    case "selector":
                        return new SelectorLock(client, path, name);
                    case "multi":
                        return new InterProcessMultiLock(client, List.of(path.split(",")));
                    default:
                        throw new IllegalArgumentException("no such kind of lock: " + kind);
                }
            });
        }

        /** Returns the ids of an election's participants, the leader first. */
        private List<String> ids(String kind, String path) throws Exception {
            Collection<Participant> all;
            Participant leader;
            if (kind.equals("latch")) {
                LeaderLatch latch = new LeaderLatch(client, path);
                all = latch.getParticipants();
                leader = latch.getLeader();
            } else {
                LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework unused) {}
                });
                all = selector.getParticipants();
                leader = selector.getLeader();
            }
            List<String> ids = new ArrayList<>();
            ids.add(leader.getId());
            for (Participant p : all) {
                if (!p.isLeader()) {
                    ids.add(p.getId());
                }
            }
            return ids;
        }

        private InterProcessReadWriteLock readWrite(String path) {
            return readWrites.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
        }

        /** Returns the transactions that created this session's znodes of the kind, one in each directory. */
        private List<String> fences(String kind, String path) throws Exception {
            List<String> fences = new ArrayList<>();
            for (String member : path.split(",")) {
                fences.add(Long.toString(fence(kind.equals("multi") ? "mutex" : kind, member)));
            }
            return fences;
        }

        private long fence(String kind, String path) throws Exception {
            String dir = kind.equals("semaphore") ? path + "/leases" : path;
            String mark = Map.of("mutex", "-lock-", "mutex-gzip", "-lock-", "semaphore", "-lease-",
                    "latch", "-latch-", "selector", "-lock-", "read", "__READ__", "write", "__WRIT__").get(kind);
            long session = session();
            for (String child : client.getChildren().forPath(dir)) {
                Stat stat = child.contains(mark) ? client.checkExists().forPath(dir + "/" + child) : null;
                if (stat != null && stat.getEphemeralOwner() == session) {
                    return stat.getCzxid();
                }
            }
            throw new IllegalStateException("holds " + kind + " of " + path + " and has no znode there");
        }

        private static byte[] decoded(String word) {
            return Base64.getDecoder().decode(word.substring(1));
        }

        private static String encoded(byte[] data) {
            return "=" + Base64.getEncoder().encodeToString(data);
        }

        private static String ok(Collection<String> words) {
            List<String> all = new ArrayList<>(words);
            all.add(0, "ok");
            return String.join(" ", all);
        }
    }
}
