import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException.Code;

/** Puts the loads on Apache Curator. Reads are asynchronous: one counts if its reply is there in time. */
public final class GoodputDriver {
    private static final long PATIENCE_MS = 100;
    private static CuratorFramework client;

    public static void main(String[] args) throws Exception {
        int reads = Integer.parseInt(args[1]);
        client = CuratorFrameworkFactory.builder().connectString(args[0]).sessionTimeoutMs(10_000)
            .connectionTimeoutMs(10_000).retryPolicy(new RetryNTimes(3, 100)).build();
        client.start();
        new InterProcessMutex(client, "/lock").acquire();
        System.out.println("locked");
        Scanner lines = new Scanner(System.in);
        lines.nextLine();
        System.out.println(reads > 0 ? bulk(reads) : overload(Integer.parseInt(args[2]), Long.parseLong(args[3])));
        if (lines.hasNextLine()) {
            lines.nextLine();
        }
        System.exit(0);
    }

    private static long millis() {
        return System.nanoTime() / 1_000_000;
    }

    private static String bulk(int reads) throws Exception {
        AtomicInteger ok = new AtomicInteger();
        CountDownLatch left = new CountDownLatch(reads);
        long start = millis();
        for (int i = 0; i < reads; i++) {
            client.getData().inBackground((c, event) -> {
                if (event.getResultCode() == Code.OK.intValue()) {
                    ok.incrementAndGet();
                }
                left.countDown();
            }).forPath("/large");
        }
        left.await(5, TimeUnit.MINUTES);
        return ok + " " + (millis() - start) + " 0";
    }

    private static String overload(int perTick, long lasts) throws Exception {
        AtomicInteger ok = new AtomicInteger();
        long start = millis();
        for (long tick = start; tick < start + lasts; tick += 10) {
            for (int i = 0; i < perTick; i++) {
                long asked = millis();
                client.getData().inBackground((c, event) -> {
                    if (event.getResultCode() == Code.OK.intValue() && millis() - asked <= PATIENCE_MS) {
                        ok.incrementAndGet();
                    }
                }).forPath("/small");
            }
            Thread.sleep(Math.max(0, tick + 10 - millis()));
        }
        Thread.sleep(PATIENCE_MS);
        int total = ok.get();
        long end = millis();
        while (!answered() && millis() - end < 120_000) {
            Thread.sleep(10);
        }
        return total + " " + (end - start) + " " + (millis() - end);
    }

    private static boolean answered() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        client.getData().inBackground((c, event) -> {
            if (event.getResultCode() == Code.OK.intValue()) {
                done.countDown();
            }
        }).forPath("/small");
        return done.await(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }
}
