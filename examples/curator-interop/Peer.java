import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The Java side: args are servers, the lock's path, the counter's path, and how often to count. */
public final class Peer {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
            for (int i = 0; i < Integer.parseInt(args[3]); i++) {
                if (!mutex.acquire(60, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("no lock within a minute");
                }
                try {
                    String old = new String(client.getData().forPath(args[2]), StandardCharsets.UTF_8);
                    Thread.sleep(10); // time enough for somebody to come in between
                    String now = Integer.toString(Integer.parseInt(old) + 1);
                    client.setData().forPath(args[2], now.getBytes(StandardCharsets.UTF_8)); // of any version
                    System.out.println("Curator counts " + now);
                } finally {
                    mutex.release();
                }
            }
        }
        System.exit(0);
    }
}
