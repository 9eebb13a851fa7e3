import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Writes a report on one host at a time. */
public final class ReportJob {
    private final InterProcessMutex mutex;

    public ReportJob(CuratorFramework client) {
        mutex = new InterProcessMutex(client, "/locks/report");
    }

    /** Returns false if another host has been writing for 5 seconds. */
    public boolean run(Report report) throws Exception {
        if (!mutex.acquire(5, TimeUnit.SECONDS)) {
            return false;
        }
        try {
            report.write();
            return true;
        } finally {
            mutex.release();
        }
    }

    /** A report. */
    public interface Report {
        void write() throws Exception;
    }

    /** Runs the job for each line "run" of its input; its report takes until the next line. */
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 5))) {
            client.start();
            client.blockUntilConnected();
            ReportJob job = new ReportJob(client);
            Scanner in = new Scanner(System.in);
            System.out.println("connected");
            while (in.hasNextLine() && in.nextLine().equals("run")) {
                boolean done = job.run(() -> {
                    System.out.println("writing");
                    in.nextLine();
                });
                System.out.println(done ? "done" : "busy");
            }
        }
        System.exit(0);
    }
}
