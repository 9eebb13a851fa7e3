import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/**
 * Does with Curator's x-discovery what the Go test asks for, one line per command. The protocol is
 * described in the Go package's doc.go. It runs as a single source file. The end of its input ends it.
 */
public final class DiscoveryDriver {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** A payload with a class of its own, as Spring Cloud's. */
    public static final class Place {
        public String id;
        public String name;
        public Map<String, String> metadata = new TreeMap<>();

        @Override
        public String toString() {
            return id + "/" + name + "/" + metadata;
        }
    }

    public static void main(String[] args) throws IOException {
        // Jackson looks for classes there; a program that runs from its source has another loader.
        Thread.currentThread().setContextClassLoader(DiscoveryDriver.class.getClassLoader());
        Map<String, Actor> actors = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OUT.println("* ready");
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = actors.computeIfAbsent(words[1], name -> new Actor()).obey(words);
            } catch (Exception e) {
                answer = "error " + e.toString().replace('\n', ' ');
            }
            OUT.println(words[0] + " " + answer);
        }
        for (Actor actor : actors.values()) {
            actor.client.close();
        }
        System.exit(0);
    }

    /** A client, with one view of the services per base path and payload class. */
    private static final class Actor {
        CuratorFramework client;
        private final Map<String, ServiceDiscovery<Object>> views = new HashMap<>();
        private final Map<String, ServiceCache<Object>> caches = new HashMap<>();

        String obey(String[] words) throws Exception {
            switch (words[2]) {
                case "connect":
                    client = CuratorFrameworkFactory.newClient(words[3], Integer.parseInt(words[4]), 15000, new RetryNTimes(3, 100));
                    client.start();
                    client.blockUntilConnected();
                    return "ok " + client.getZookeeperClient().getZooKeeper().getSessionId();
                case "close":
                    client.close();
                    return "ok";
                case "register":
                    view(words).registerService(instance(words));
                    return "ok";
                case "update":
                    view(words).updateService(instance(words));
                    return "ok";
                case "unregister":
                    view(words).unregisterService(instance(words));
                    return "ok";
                case "read": { // the text, as the default serializer reads it
                    byte[] text = Base64.getDecoder().decode(words[3].substring(1)); // after a sign, because it may be empty
                    try {
                        ServiceInstance<Object> in = new JsonInstanceSerializer<>(Object.class).deserialize(text);
                        String shown = String.format("OK name=%s id=%s address=%s port=%s ssl=%s reg=%d type=%s enabled=%s uri=%s",
                                in.getName(), in.getId(), in.getAddress(), in.getPort(), in.getSslPort(), in.getRegistrationTimeUTC(),
                                in.getServiceType(), in.isEnabled(), in.getUriSpec() == null ? "null" : in.getUriSpec().getParts().size());
                        return "ok " + Base64.getEncoder().encodeToString(shown.getBytes(StandardCharsets.UTF_8));
                    } catch (Exception e) {
                        return "ok";
                    }
                }
                case "names":
                    return "ok " + String.join(" ", view(words).queryForNames());
                case "query":
                    return listed(view(words).queryForInstances(words[5]));
                case "cached": {
                    ServiceCache<Object> cache = caches.get(words[3] + words[5]);
                    if (cache == null) {
                        cache = view(words).serviceCacheBuilder().name(words[5]).build();
                        cache.startImmediate().await(30, TimeUnit.SECONDS);
                        caches.put(words[3] + words[5], cache);
                    }
                    return listed(cache.getInstances());
                }
                default:
                    throw new IllegalArgumentException("no such command: " + words[2]);
            }
        }

        /** The view of the base path words[3], whose payloads are of the class words[4]. */
        private ServiceDiscovery<Object> view(String[] words) throws Exception {
            String key = words[3] + words[4];
            ServiceDiscovery<Object> view = views.get(key);
            if (view == null) {
                boolean withEnabled = words[4].startsWith("enabled-");
                Class<?> type = words[4].endsWith("place") ? Place.class : words[4].endsWith("map") ? Map.class : Object.class;
                @SuppressWarnings("unchecked")
                Class<Object> payload = (Class<Object>) type;
                view = ServiceDiscoveryBuilder.builder(payload).client(client).basePath(words[3])
                        .serializer(new JsonInstanceSerializer<>(payload, !withEnabled)).build();
                view.start();
                views.put(key, view);
            }
            return view;
        }

        /** The instance words[6] of the service words[5], with a port, a kind, a payload and whether it is enabled. */
        private static ServiceInstance<Object> instance(String[] words) throws Exception {
            ServiceInstanceBuilder<Object> builder = ServiceInstance.builder().name(words[5]).id(words[6])
                    .address("10.0.0.1").port(Integer.parseInt(words[7])).registrationTimeUTC(1795319723988L)
                    .serviceType(ServiceType.valueOf(words[8])).enabled(!words[10].equals("disabled"));
            switch (words[9]) {
                case "place": {
                    Place place = new Place();
                    place.id = "application-1";
                    place.name = words[5];
                    place.metadata.put("zone", "eu");
                    return builder.payload(place).build();
                }
                case "map": {
                    Map<String, String> map = new HashMap<>();
                    map.put("zone", "eu");
                    return builder.payload(map).build();
                }
                case "string":
                    return builder.payload("eu<&>").uriSpec(new UriSpec("{scheme}://{address}")).build();
                default:
                    return builder.build();
            }
        }

        private static String listed(Collection<ServiceInstance<Object>> instances) {
            List<String> all = new ArrayList<>();
            for (ServiceInstance<Object> in : instances) {
                Object payload = in.getPayload();
                String text = in.getId() + "|" + in.getAddress() + "|" + in.getPort() + "|" + in.getSslPort() + "|"
                        + payload + "|" + in.getRegistrationTimeUTC() + "|" + in.getServiceType() + "|" + in.isEnabled()
                        + "|" + (in.getUriSpec() == null ? null : in.buildUriSpec());
                all.add(Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8)));
            }
            all.sort(null);
            return "ok " + String.join(" ", all);
        }
    }
}
