import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups by Kafka's own client, as many as are asked for: see tools/clients/members.py.
 *
 * java -cp 'JARS/*:CLASSES' Members
 */
public class Members {
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] given) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] words = line.split("\t");
            if (words[0].equals("start")) {
                Member member = new Member(words);
                MEMBERS.put(words[1], member);
                Thread thread = new Thread(member);
                thread.setDaemon(true);
                thread.start();
            } else {
                MEMBERS.get(words[1]).isLeaving = true;
            }
        }
        // Members that hang must not keep the program.
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void say(String member, String event, String text) {
        String plain = text.replaceAll("[\\\\\"\\p{Cntrl}]", " ");
        System.out.println(
            "{\"member\": \"" + member + "\", \"event\": \"" + event + "\", \"text\": \"" + plain + "\"}");
    }

    private static class Member implements Runnable {
        private final String[] words;
        private volatile boolean isLeaving = false;

        Member(String[] words) {
            this.words = words;
        }

        @Override
        public void run() {
            try {
                consume();
            } catch (Throwable failed) {
                Throwable cause = failed;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                say(words[1], "failed", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            say(words[1], "left", "");
        }

        private void consume() {
            Properties told = new Properties();
            told.put("bootstrap.servers", words[2]);
            told.put("group.id", words[3]);
            // Members that read nothing ask a broker seldom.
            told.put("fetch.max.wait.ms", "5000");
            for (String setting : Arrays.copyOfRange(words, 5, words.length)) {
                String[] both = setting.split("=", 2);
                told.put(both[0], both[1]);
            }
            StringDeserializer text = new StringDeserializer();
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(told, text, text)) {
                if (words[4].startsWith("^")) {
                    consumer.subscribe(Pattern.compile(words[4]));
                } else {
                    consumer.subscribe(Collections.singletonList(words[4]));
                }
                say(words[1], "started", "");
                while (!isLeaving) {
                    consumer.poll(Duration.ofMillis(200));
                }
            }
        }
    }

    /** An assignor of its own that adds nothing to an assignment. */
    public static class Plain extends RangeAssignor {
        @Override
        public String name() {
            return "plain";
        }
    }

    /** An assignor of its own that adds user data to each assignment. */
    public static class Marked extends RangeAssignor {
        @Override
        public String name() {
            return "marked";
        }

        @Override
        public GroupAssignment assign(Cluster cluster, GroupSubscription subscription) {
            Map<String, Assignment> marked = new HashMap<>();
            super.assign(cluster, subscription).groupAssignment().forEach((member, one) -> marked.put(
                member, new Assignment(one.partitions(), ByteBuffer.wrap("own".getBytes(StandardCharsets.UTF_8)))));
            return new GroupAssignment(marked);
        }
    }
}
