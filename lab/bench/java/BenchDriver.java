import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;

/**
 * Puts the benchmark's loads on Apache Curator. The protocol and the loads are those of
 * the Go package contender, whose doc.go describes them.
 */
public final class BenchDriver {
    private static final int REENTRY_BATCH = 1000;
    private static final int MULTI_SIZE = 10;
    private static final int PERMITS = 2;
    private static final int PAIR_LIMIT_MS = 1000;
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final BlockingQueue<String> LINES = new LinkedBlockingQueue<>();
    private static final CuratorFramework[] SESSIONS = new CuratorFramework[2];

    /** What one run has to do. */
    private static final class Plan {
        final String load;
        final String kind;
        final String path;
        final int workers;
        final int ops;
        final int settle;

        Plan(String[] words) {
            load = words[1];
            kind = words[2];
            path = words[3];
            workers = Integer.parseInt(words[4]);
            ops = Integer.parseInt(words[5]);
            settle = Integer.parseInt(words[6]);
        }
    }

    private interface Work {
        void accept(int worker) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Thread reader = new Thread(BenchDriver::readLines);
        reader.setDaemon(true);
        reader.start();
        OUT.println("{\"version\":\"" + args[0] + ", Java " + System.getProperty("java.version") + "\"}");
        while (true) {
            String answer;
            try {
                answer = obey(LINES.take().split(" "));
            } catch (Exception e) {
                answer = "{\"error\":\"" + e.toString().replaceAll("[\"\\\\\\n]", " ") + "\"}";
            }
            OUT.println(answer);
        }
    }

    /** The end of the input ends the process, whatever it is about. */
    private static void readLines() {
        try {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = in.readLine()) != null; ) {
                LINES.add(line);
            }
        } catch (IOException e) {
            // as its end
        }
        System.exit(0);
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "connect":
                String[] servers = words[1].split(",");
                for (int i = 0; i < SESSIONS.length; i++) {
                    int timeout = Integer.parseInt(words[2]);
                    SESSIONS[i] = CuratorFrameworkFactory.newClient(
                            servers[i % servers.length], timeout, timeout, new RetryNTimes(3, 100));
                    SESSIONS[i].start();
                    SESSIONS[i].blockUntilConnected();
                }
                return "{}";
            case "gc":
                System.gc();
                Runtime r = Runtime.getRuntime();
                return "{\"heap\":" + (r.totalMemory() - r.freeMemory()) + "}";
            case "run":
                return run(new Plan(words));
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private static String run(Plan p) throws Exception {
        switch (p.load) {
            case "sequence":
            case "paths":
            case "shared":
            case "mix":
                return workers(p);
            case "reentry":
                return reentry(p);
            case "handoff":
                return handoff(p);
            case "cycle":
                return cycle(p);
            case "queue":
                return queue(p);
            case "hold":
                return hold(p);
            case "refused":
                return refused(p);
            case "pair":
                return pair(p);
            case "fill":
                return fill(p);
            case "change":
                return change(p);
            case "cached":
                return cached(p);
            default:
                throw new IllegalArgumentException("no such load: " + p.load);
        }
    }

    /** A LeaderLatch as a lock: its leader has the lock. A latch leads once. */
    private static final class LatchLock implements InterProcessLock {
        private final CuratorFramework client;
        private final String path;
        private LeaderLatch latch;

        LatchLock(CuratorFramework client, String path) {
            this.client = client;
            this.path = path;
        }

        @Override
        public void acquire() throws Exception {
            latch = new LeaderLatch(client, path);
            latch.start();
            latch.await();
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) {
            throw new UnsupportedOperationException();
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

    /** A counter as a lock: to acquire it is to add, again and again at once until that succeeds. */
    private static final class Adder implements InterProcessLock {
        private final DistributedAtomicLong counter;

        Adder(CuratorFramework client, String path) {
            counter = new DistributedAtomicLong(client, path, new RetryNTimes(Integer.MAX_VALUE, 0));
        }

        @Override
        public void acquire() throws Exception {
            if (!counter.increment().succeeded()) {
                throw new IllegalStateException("not incremented");
            }
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void release() {}

        @Override
        public boolean isAcquiredInThisProcess() {
            return false;
        }
    }

    /** A semaphore as a lock of all its permits. */
    private static final class PermitsLock implements InterProcessLock {
        private final InterProcessSemaphoreV2 semaphore;
        private Collection<Lease> leases;

        PermitsLock(CuratorFramework client, String path) {
            semaphore = new InterProcessSemaphoreV2(client, path, PERMITS);
        }

        @Override
        public void acquire() throws Exception {
            leases = semaphore.acquire(PERMITS);
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            leases = semaphore.acquire(PERMITS, time, unit);
            return leases != null;
        }

        @Override
        public void release() {
            semaphore.returnAll(leases);
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return leases != null;
        }
    }

    private static InterProcessLock lock(int session, String kind, String path) {
        CuratorFramework client = SESSIONS[session];
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "read":
                return new InterProcessReadWriteLock(client, path).readLock();
            case "write":
                return new InterProcessReadWriteLock(client, path).writeLock();
            case "semaphore":
                return new InterProcessSemaphoreMutex(client, path);
            case "leader":
                return new LatchLock(client, path);
            case "counter":
                return new Adder(client, path);
            case "permits":
                return new PermitsLock(client, path);
            case "multi":
                return new InterProcessMultiLock(
                        client,
                        IntStream.range(0, MULTI_SIZE).mapToObj(i -> path + "/" + i).collect(Collectors.toList()));
            default:
                throw new IllegalArgumentException("no such kind of lock: " + kind);
        }
    }

    private static String workers(Plan p) throws Exception {
        InterProcessLock[][] locks = new InterProcessLock[p.workers][];
        for (int i = 0; i < p.workers; i++) {
            if (p.load.equals("mix")) {
                InterProcessReadWriteLock rw = new InterProcessReadWriteLock(SESSIONS[0], p.path);
                locks[i] = new InterProcessLock[] {rw.readLock(), rw.writeLock()};
            } else {
                locks[i] = new InterProcessLock[] {lock(0, p.kind, p.load.equals("paths") ? p.path + "/" + i : p.path)};
            }
        }
        long[] samples = new long[p.ops];
        AtomicInteger next = new AtomicInteger();
        long start = System.nanoTime();
        together(p.workers, worker -> {
            int count = worker;
            for (int i; (i = next.getAndIncrement()) < p.ops; count++) {
                InterProcessLock l = locks[worker][locks[worker].length == 2 && count % 10 == 0 ? 1 : 0];
                long begun = System.nanoTime();
                l.acquire();
                l.release();
                samples[i] = System.nanoTime() - begun;
            }
        });
        return answer(System.nanoTime() - start, p.ops, samples);
    }

    /** Runs the work for each number in a thread of its own. */
    private static void together(int n, Work work) throws Exception {
        begin(n, work).await();
    }

    private interface Waited {
        void await() throws Exception;
    }

    private static Waited begin(int n, Work work) {
        ExecutorService pool = Executors.newFixedThreadPool(n);
        List<Future<?>> futures = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int worker = i;
            futures.add(pool.submit(() -> {
                work.accept(worker);
                return null;
            }));
        }
        pool.shutdown();
        return () -> {
            for (Future<?> f : futures) {
                f.get();
            }
        };
    }

    private static String reentry(Plan p) throws Exception {
        InterProcessLock l = lock(0, p.kind, p.path);
        l.acquire();
        long[] samples = new long[Math.max(1, p.ops / REENTRY_BATCH)];
        long start = System.nanoTime();
        for (int i = 0; i < samples.length; i++) {
            long begun = System.nanoTime();
            for (int j = 0; j < REENTRY_BATCH; j++) {
                l.acquire();
                l.release();
            }
            samples[i] = (System.nanoTime() - begun) / REENTRY_BATCH;
        }
        String answer = answer(System.nanoTime() - start, samples.length * REENTRY_BATCH, samples);
        l.release();
        return answer;
    }

    private static String handoff(Plan p) throws Exception {
        InterProcessLock[] locks = {lock(0, p.kind, p.path), lock(1, p.kind, p.path)};
        ExecutorService[] sides = {Executors.newSingleThreadExecutor(), Executors.newSingleThreadExecutor()};
        long[] samples = new long[p.ops];
        sides[0].submit(() -> acquired(locks[0])).get();
        for (int i = 0; i < p.ops; i++) {
            int holder = i % 2;
            int waiter = 1 - holder;
            Future<Long> granted = sides[waiter].submit(() -> acquired(locks[waiter]));
            Thread.sleep(p.settle);
            Future<Long> released = sides[holder].submit(() -> {
                long begun = System.nanoTime();
                locks[holder].release();
                return begun;
            });
            samples[i] = granted.get() - released.get();
        }
        sides[p.ops % 2].submit(() -> {
            locks[p.ops % 2].release();
            return null;
        }).get();
        sides[0].shutdown();
        sides[1].shutdown();
        return answer(LongStream.of(samples).sum(), p.ops, samples);
    }

    private static long acquired(InterProcessLock l) throws Exception {
        l.acquire();
        return System.nanoTime();
    }

    private static String cycle(Plan p) throws Exception {
        long[] samples = new long[p.ops];
        long start = System.nanoTime();
        for (int i = 0; i < p.ops; i++) {
            long begun = System.nanoTime();
            InterProcessLock l = lock(0, p.kind, p.path + "/" + i % p.workers);
            l.acquire();
            l.release();
            samples[i] = System.nanoTime() - begun;
        }
        return answer(System.nanoTime() - start, p.ops, samples);
    }

    private static String queue(Plan p) throws Exception {
        InterProcessLock holder = lock(0, p.kind, p.path);
        holder.acquire();
        InterProcessLock[] locks = new InterProcessLock[p.workers];
        for (int i = 0; i < p.workers; i++) {
            locks[i] = lock(0, p.kind, p.path);
        }
        long[] moments = new long[p.workers];
        Waited drained = begin(p.workers, worker -> {
            moments[worker] = acquired(locks[worker]);
            locks[worker].release();
        });
        waitForGo();
        long start = System.nanoTime();
        holder.release();
        drained.await();
        long elapsed = System.nanoTime() - start;
        Arrays.sort(moments);
        long[] samples = new long[p.workers];
        for (int i = 0; i < p.workers; i++) {
            samples[i] = moments[i] - (i == 0 ? start : moments[i - 1]);
        }
        return answer(elapsed, p.workers, samples);
    }

    private static String hold(Plan p) throws Exception {
        InterProcessLock[] locks = new InterProcessLock[p.workers];
        long[] samples = new long[p.workers];
        long start = System.nanoTime();
        for (int i = 0; i < p.workers; i++) {
            long begun = System.nanoTime();
            locks[i] = lock(0, p.kind, p.path + "/" + i);
            locks[i].acquire();
            samples[i] = System.nanoTime() - begun;
        }
        long elapsed = System.nanoTime() - start;
        waitForGo();
        for (InterProcessLock l : locks) {
            l.release();
        }
        return answer(elapsed, p.workers, samples);
    }

    private static String refused(Plan p) throws Exception {
        InterProcessLock holder = lock(0, p.kind, p.path);
        InterProcessLock other = lock(1, p.kind, p.path);
        holder.acquire();
        long[] samples = new long[p.ops];
        long start = System.nanoTime();
        for (int i = 0; i < p.ops; i++) {
            long begun = System.nanoTime();
            if (other.acquire(0, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("a lock that is held was not refused");
            }
            samples[i] = System.nanoTime() - begun;
        }
        String answer = answer(System.nanoTime() - start, p.ops, samples);
        holder.release();
        return answer;
    }

    /** Has both sessions acquire at the same time. A session that can't withdraws after a second. */
    private static String pair(Plan p) throws Exception {
        long[] samples = new long[p.ops];
        long start = System.nanoTime();
        for (int i = 0; i < p.ops; i++) {
            String path = p.path + "/" + i;
            long begun = System.nanoTime();
            together(SESSIONS.length, side -> {
                InterProcessLock l = lock(side, p.kind, path);
                if (l.acquire(PAIR_LIMIT_MS, TimeUnit.MILLISECONDS)) {
                    l.release();
                }
            });
            samples[i] = System.nanoTime() - begun;
        }
        return answer(System.nanoTime() - start, p.ops, samples);
    }

    /** Returns a filled cache of a tree with as many znodes below its path as the plan has workers. */
    private static CuratorCache filled(Plan p, CuratorCacheListener... further) throws Exception {
        CuratorCache cache = CuratorCache.build(SESSIONS[0], p.path);
        CountDownLatch initialized = new CountDownLatch(1);
        cache.listenable()
                .addListener(CuratorCacheListener.builder()
                        .forInitialized(initialized::countDown)
                        .build());
        for (CuratorCacheListener listener : further) {
            cache.listenable().addListener(listener);
        }
        cache.start();
        initialized.await();
        if (cache.size() != p.workers + 1) {
            throw new IllegalStateException("the cache has " + cache.size() + " znodes");
        }
        return cache;
    }

    private static String fill(Plan p) throws Exception {
        long[] samples = new long[p.ops];
        for (int i = 0; i < p.ops; i++) {
            long begun = System.nanoTime();
            CuratorCache cache = filled(p);
            samples[i] = System.nanoTime() - begun;
            cache.close();
        }
        return answer(LongStream.of(samples).sum(), p.ops, samples);
    }

    private static String change(Plan p) throws Exception {
        BlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        CuratorCache cache = filled(
                p,
                CuratorCacheListener.builder()
                        .forChanges((was, is) -> changed.add(System.nanoTime()))
                        .build());
        String path = p.path + "/0/7";
        long[] samples = new long[p.ops];
        for (int i = 0; i < p.ops; i++) {
            Thread.sleep(p.settle);
            long begun = System.nanoTime();
            SESSIONS[1].setData().inBackground().forPath(path, Integer.toString(i).getBytes(StandardCharsets.UTF_8));
            samples[i] = changed.take() - begun;
        }
        cache.close();
        return answer(LongStream.of(samples).sum(), p.ops, samples);
    }

    private static String cached(Plan p) throws Exception {
        long start = System.nanoTime();
        CuratorCache cache = filled(p);
        long elapsed = System.nanoTime() - start;
        waitForGo();
        cache.close();
        return answer(elapsed, p.workers, new long[] {elapsed});
    }

    private static void waitForGo() throws Exception {
        OUT.println("{\"waiting\":true}");
        for (String line; !(line = LINES.take()).equals("go"); ) {
            OUT.println(obey(line.split(" ")));
        }
    }

    private static String answer(long elapsed, int ops, long[] samples) {
        return "{\"elapsed\":" + elapsed + ",\"ops\":" + ops + ",\"samples\":"
                + LongStream.of(samples).mapToObj(Long::toString).collect(Collectors.joining(",", "[", "]")) + "}";
    }
}
