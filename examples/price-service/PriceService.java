import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Every instance follows the prices. The leader sets them each second. */
public final class PriceService extends LeaderSelectorListenerAdapter implements AutoCloseable {
    private final CuratorCache prices;
    private final DistributedAtomicLong rounds;
    private final LeaderSelector selector;

    public PriceService(CuratorFramework client, String id) {
        prices = CuratorCache.build(client, "/prices");
        prices.listenable().addListener(CuratorCacheListener.builder()
            .forCreatesAndChanges((old, node) -> show(node)).build());
        rounds = new DistributedAtomicLong(client, "/rounds", new ExponentialBackoffRetry(100, 5));
        selector = new LeaderSelector(client, "/leader", this);
        selector.setId(id);
        selector.autoRequeue();
        prices.start();
        selector.start();
    }

    private static void show(ChildData node) {
        if (!node.getPath().equals("/prices")) {
            System.out.println(node.getPath() + " is " + new String(node.getData(), UTF_8));
        }
    }

    /** Leads until the adapter interrupts it, because the connection is suspended or lost. */
    @Override
    public void takeLeadership(CuratorFramework client) throws Exception {
        while (true) {
            AtomicValue<Long> round = rounds.increment();
            if (!round.succeeded()) {
                throw new IllegalStateException("the round is not counted");
            }
            for (String fruit : List.of("apple", "pear")) {
                byte[] price = Long.toString(round.postValue() * fruit.length()).getBytes(UTF_8);
                client.create().orSetData().creatingParentsIfNeeded().forPath("/prices/" + fruit, price);
            }
            Thread.sleep(1000);
        }
    }

    @Override
    public void close() {
        selector.close();
        prices.close();
    }

    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 5))) {
            client.start();
            try (PriceService service = new PriceService(client, args[1])) {
                System.in.read(); // the service ends with its input
            }
        }
    }
}
